"""LDQN: DQN for objectives in order of importance: lexicographic Q-learning with networks that give `Q[M, A]`.

    Q_i(s, a)  moves towards  r_i + gamma_i max_{b in D_{i-1}(s')} Q_i(s', b)        for every objective i

with the members and cross targets of `DQN`; the admissible sets D at s' are those of the target networks' mean. What
objective i gives away at a state, for the next ones to choose from, is the user's tolerance and what the members cannot
tell apart (`Evidence`), times a scale that a `Guard` lowers where small losses add up over an episode.

Half of the environments explore: with probability epsilon they draw one of `D_0 .. D_{M-1}` and then any action in it,
so that every objective gets to know the choices that are left to it. Where observations are numbers, half of these look
for novelty instead (`novelty`). The others measure, without exploration, what the guard compares: the full policy, and
the policies of the first i objectives alone. With one objective nothing is guarded, all environments explore, and
this is DQN, bit for bit.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lexrl import distributions, lex, replay
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import candidates, dqn, measuring, novelty, validation
from lexrl.algorithms.dqn import Successors
from lexrl.algorithms.measuring import Measured
from lexrl.algorithms.novelty import Novelty
from lexrl.guard import Guard, as_guard
from lexrl.networks import Builder, as_builder
from lexrl.optimizers import Optimizer, as_optimizer
from lexrl.perceptrons import Activation
from lexrl.reprs import short_repr
from lexrl.schedules import Linear, OfRun, Schedule, named
from lexrl.tolerance import (
    Absolute,
    Estimates,
    Evidence,
    Moment,
    Tolerances,
    as_evidence,
    as_optional_tolerance,
    as_tolerance,
    slack,
)
from lexrl.types import Discrete, Metrics, Spec, Transition
from lexrl.units import counts

SHORT_EPISODE = 10.0
"""Losses add up over an episode: beyond so many steps the resolution falls with the root of the length."""
WINDOW = 100
"""Updates that the mean disagreement looks back."""


class State(NamedTuple):
    """The members, how far they disagree, what was measured, and how many objectives the policy serves."""

    agent: dqn.State
    error: Float[Array, " M"]
    """Mean standard error of a value compared with those of other actions, by the members' disagreement."""
    num_episodes: Int[Array, ""]
    measured: Measured | None
    """None without a guard."""
    novelty: Novelty | None
    """None where no environment looks for it."""
    rewards: Float[Array, "2 M"] | None
    """The smallest and the largest so far, and 0, which is what follows the end of a task; None where values may be
    anything."""
    num_served: Int[Array, ""]


class LDQN(eqx.Module):
    """Lexicographic deep Q-learning."""

    num_envs: int = eqx.field(static=True, default=16)
    """Parallel environments."""
    num_steps: int = eqx.field(static=True, default=2)
    """Steps of each environment between updates."""
    batch_size: int = eqx.field(static=True, default=64)
    """Transitions in a gradient step of each member, drawn from the buffer."""
    gradient_steps: int = eqx.field(static=True, default=4)
    """Gradient steps after each rollout, each on a batch of its own."""
    buffer_size: int = eqx.field(static=True, default=1_024_000)
    """Transitions the buffer holds."""
    learning_starts: int = eqx.field(static=True, default=1_024)
    """Transitions to collect before learning."""
    num_members: int = eqx.field(static=True, default=2)
    """Networks that learn side by side, each from the next one's target network; 1: an ordinary DQN."""
    target_update_interval: int = eqx.field(static=True, default=1)
    """Environment steps between updates of the target networks, at least one gradient step; 0: no target networks."""
    polyak: float = 0.005
    """How far an update takes the target networks towards the members; 1: copies."""
    double_q: bool = eqx.field(static=True, default=True)
    """Let a member choose the action whose value a target network gives."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one for all objectives, or one each."""
    learning_rate: Schedule = eqx.field(
        converter=named("learning_rate"), default=Linear(1e-3, 1e-5), metadata=counts("gradient steps")
    )
    """Step size, by the number of gradient steps."""
    epsilon: Schedule = eqx.field(
        converter=named("epsilon"), default=Linear(1.0, 0.3, OfRun(0.5)), metadata=counts("environment steps")
    )
    """Probability of an exploring action in the environments that explore, by the number of environment steps."""
    explore_prefixes: bool = eqx.field(static=True, default=True)
    """Explore among the actions that the first objectives admit, for each number of them; else among all actions."""
    explore_novelty: bool = eqx.field(static=True, default=True)
    """Where observations are numbers, let half of the environments that explore go where little was tried, and learn
    more often from what is seldom."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.0), metadata=counts("gradient steps"))
    """What an objective may lose for the next one: 0.01, 5%, '0.01 + 5%'; one, or one each."""
    update_tolerance: Tolerances | None = eqx.field(
        converter=as_optional_tolerance, default=None, metadata=counts("gradient steps")
    )
    """Another tolerance for the targets (tau_Q) than for choosing actions (tau_B)."""
    evidence: Evidence | None = eqx.field(converter=as_evidence, default=Evidence(2.0, resolution=0.02))
    """What the members cannot tell apart is added to the tolerance: a number of standard errors, or 'none'."""
    guard: Guard | None = eqx.field(converter=as_guard, default=Guard(3.0, margin=0.01))
    """Compare the returns of the policy with those of its prefixes, and give away less where it loses more than the
    tolerance: a number of standard errors, or 'none'."""
    return_scale: tuple[float, ...] | float | None = None
    """Typical size of returns, one or one each: the networks' output is in units of it; None: found while learning."""
    hidden_sizes: tuple[int, ...] = eqx.field(static=True, default=(64, 64))
    """Sizes of the hidden layers; none: linear."""
    activation: Activation = eqx.field(static=True, default="relu")
    """Between the layers."""
    use_bias: bool = eqx.field(static=True, default=True)
    """A network with biases; without hidden layers and biases it is a table on discrete observations."""
    network: Builder | None = eqx.field(static=True, converter=as_builder, default=None)
    """A function (key, spec) -> eqx.Module that builds a Q-network of your own, whose output has shape (M, A)."""
    optimizer: Optimizer = eqx.field(static=True, converter=as_optimizer, default="adam")
    """'adam', 'sgd', or an optax optimizer such as optax.adamw."""
    max_grad_norm: float = 10.0
    """Gradients are clipped to this norm; 0: never."""

    __repr__ = short_repr

    def __check_init__(self):
        dqn.check(self)

    def num_gradient_steps(self, num_updates: int) -> int:
        return dqn.num_gradient_steps(self, num_updates)

    def init(self, spec: Spec, key: Array) -> State:
        m = len(spec.objectives)
        n = self._num_measuring(m)
        validation.require_per_objective(
            m,
            gamma=self.gamma,
            tolerance=self.tolerance,
            update_tolerance=self.update_tolerance,
            return_scale=self.return_scale,
        )
        return State(
            agent=dqn.init(self, spec, key),
            error=jnp.zeros(m),
            num_episodes=jnp.int32(0),
            measured=measuring.init(self.guard, n, m) if self.guard is not None and n else None,
            novelty=self._init_novelty(spec),
            rewards=jnp.zeros((2, m)) if self._clips(spec) else None,
            num_served=jnp.int32(m),
        )

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return distributions.draw(self.probabilities(state, obs, greedy=greedy), key)

    def act_in(self, state: State, env: Array, obs: Array, key: Array) -> Array:
        """In some environments the policy, or that of the first objectives, without exploration; else exploring, or
        looking for novelty."""
        m = state.error.shape[0]
        measures = env < self._num_measuring(m)
        epsilon = jnp.where(measures, 0.0, self._epsilon(state))
        served = jnp.where(measures, measuring.num_served(env, m), m)
        drawn = self._probabilities(state, obs, served, epsilon)
        if state.novelty is not None:
            curious = env >= self.num_envs - self._num_curious(m)
            drawn = jnp.where(curious, novelty.most_novel(state.novelty.values[obs]), drawn)
        return distributions.draw(drawn, key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """Exploring within the sets of a random prefix with probability epsilon; greedy: the last objective's best."""
        return self._probabilities(state, obs, state.num_served, 0.0 if greedy else self._epsilon(state))

    def prefix(self, state: State, num_objectives: Any) -> State:
        """The agent state whose policy serves the first objectives alone."""
        return state._replace(num_served=jnp.int32(num_objectives))

    def num_candidates(self, num_objectives: int) -> int:
        """How many policies fresh episodes choose from in the end; 0 where nothing was guarded."""
        return candidates.number(num_objectives) if self._num_measuring(num_objectives) else 0

    def candidate(self, state: State, index: Any) -> State:
        """The agent state that plays one of them."""
        assert state.measured is not None
        guarded = candidates.rescaled(state.measured.guard, index)
        return state._replace(measured=state.measured._replace(guard=guarded))

    def first_returns(self, state: State) -> Float[Array, "2 M"]:
        """The lowest returns that were measured."""
        assert state.measured is not None
        return state.measured.guard.lowest

    describe_candidate = staticmethod(candidates.describe)

    def values(self, state: State, obs: Array) -> Float[Array, "M A"]:
        """`Q_i(s, a)` in the units of the returns."""
        return dqn.values(state.agent, obs)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        m = state.error.shape[0]
        if self.evidence is not None and m > 1:
            state = self._measure(_see(state, rollout.reward), rollout)
        if state.novelty is not None:
            state = state._replace(novelty=novelty.follow(state.novelty, rollout))

        def lexmax(successors: Successors) -> tuple[Float[Array, "K B M"], Metrics]:
            sets = lex.levels(successors.members.mean(axis=0), self._slack(state, successors.members, update=True)).sets
            allowed = sets[..., :-1, :]
            chosen = jnp.argmax(jnp.where(allowed, successors.choice, -jnp.inf), axis=-1)
            best = jnp.arange(sets.shape[-1]) == chosen[..., None]
            value = self._possible(state, jnp.sum(jnp.where(best, successors.value, 0.0), axis=-1))
            return value, {"num_admissible": sets[..., 1:, :].sum(axis=-1).astype(jnp.float32).mean(axis=(0, 1))}

        draw = replay.draw if state.novelty is None else functools.partial(novelty.draw, state.novelty)
        agent, metrics = dqn.learn(self, state.agent, rollout, key, lexmax, draw=draw)
        return state._replace(agent=agent), metrics | {"guard_scale": _scale(state)}

    def _num_measuring(self, num_objectives: int) -> int:
        guarded = self.guard is not None and self.evidence is not None
        return measuring.num_measuring(self.num_envs, num_objectives) if guarded else 0

    def _init_novelty(self, spec: Spec) -> Novelty | None:
        seen, actions = spec.observation_space, spec.action_space
        if not self._num_curious(len(spec.objectives)) or not isinstance(seen, Discrete):
            return None
        assert isinstance(actions, Discrete)
        return novelty.init(seen.n, actions.n, self.num_envs)

    def _clips(self, spec: Spec) -> bool:
        """Only where observations are numbers: a network for arrays learned less on CartSafe with clipped values."""
        guarded = self.evidence is not None and len(spec.objectives) > 1
        return guarded and isinstance(spec.observation_space, Discrete)

    def _num_curious(self, num_objectives: int) -> int:
        """The last environments; with one objective none, as in DQN."""
        if num_objectives == 1 or not self.explore_novelty:
            return 0
        return (self.num_envs - self._num_measuring(num_objectives)) // 2

    def _epsilon(self, state: State) -> Any:
        return self.epsilon(state.agent.replay.added + 1)

    def _probabilities(self, state: State, obs: Array, num_served: Any, epsilon: Any) -> Float[Array, " A"]:
        members = dqn.members_values(state.agent, obs)
        q = members.mean(axis=0)
        walk = lex.levels(q, self._slack(state, members))
        # With evidence, the last objective that is served gives nothing away.
        greedy = walk.sets[1:] if self.evidence is None else lex.best_of(q, walk)
        chosen = jnp.any(greedy & (jnp.arange(1, len(greedy) + 1) == num_served)[:, None], axis=0)
        prefixes = walk.sets[:-1] if self.explore_prefixes else walk.sets[:1]
        return (1.0 - epsilon) * lex.uniform(chosen) + epsilon * lex.uniform(prefixes).mean(axis=0)

    def _possible(self, state: State, values: Float[Array, "*batch M"]) -> Float[Array, "*batch M"]:
        """Values of successors within what rewards as those so far can sum up to."""
        if state.rewards is None:
            return values
        m = state.error.shape[0]
        lowest, highest = jnp.where(state.rewards == 0, 0.0, state.rewards / (1 - ac.per_objective(self.gamma, m)))
        return jnp.clip(values, lowest, highest)

    def _slack(self, state: State, members: Float[Array, "K *batch M A"], *, update: bool = False) -> lex.Slack:
        """What each objective gives away, where the members disagree as they do here."""
        chosen = self.update_tolerance if update and self.update_tolerance is not None else self.tolerance
        time = state.agent.num_updates + 1
        if self.evidence is None:
            return slack(chosen, Moment(time))
        length = state.agent.replay.added / (state.num_episodes + self.num_envs)  # each is in one more episode
        share = jnp.sqrt(SHORT_EPISODE / jnp.maximum(SHORT_EPISODE, length))
        error = jnp.maximum(_disagreement(members), state.error[:, None])
        estimates = Estimates(error, share * state.agent.scale.span, _scale(state))
        return slack(chosen, Moment(time, estimates), self.evidence)

    def _measure(self, state: State, rollout: Transition) -> State:
        """How far the members disagree where the agent goes, and what the policies return."""
        now = _disagreement(dqn.members_values(state.agent, rollout.obs)).mean(axis=(0, 1, 3))
        share = jnp.maximum(1 / WINDOW, 1 / (1.0 + state.agent.num_updates // self.gradient_steps))
        gamma, learning = ac.per_objective(self.gamma, len(now)), state.agent.num_updates > 0
        state = state._replace(
            error=state.error + share * (now - state.error), num_episodes=state.num_episodes + rollout.last.sum()
        )
        if self.guard is None or state.measured is None:
            return state
        followed = measuring.follow(self.guard, state.measured, rollout, gamma, self.tolerance, valid=learning)
        return state._replace(measured=followed)


def _see(state: State, reward: Float[Array, "T N M"]) -> State:
    if state.rewards is None:
        return state
    lowest, highest = state.rewards
    seen = [jnp.minimum(lowest, reward.min(axis=(0, 1))), jnp.maximum(highest, reward.max(axis=(0, 1)))]
    return state._replace(rewards=jnp.stack(seen))


def _scale(state: State) -> Float[Array, " M"]:
    """`c_i`: what the guard has left of what each objective gives away."""
    return jnp.asarray(lex.gives_way(len(state.error))) if state.measured is None else state.measured.guard.scale


def _disagreement(members: Float[Array, "K *batch M A"]) -> Float[Array, "*batch M A"]:
    """The members' standard deviation, of values compared with the mean over the actions: only that ranks them."""
    return jnp.std(members - members.mean(axis=-1, keepdims=True), axis=0)
