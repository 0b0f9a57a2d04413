"""Value-based lexicographic RL on tables (VB-LRL, Algorithm 2 of the paper): four update rules, any bandit.

At each step, for every objective i, with `alpha = alpha(n(s, a))`:

    Q_i(s, a) <- Q_i(s, a) + alpha * (r_i + gamma_i * boot_i - Q_i(s, a))

where `boot_i` is the value of the *successor* s' (0 if the task ended there), and D_{i-1} are the admissible sets:

    q-learning      max over D_{i-1}(s') of Q_i(s', .), with the update's tolerance
    sarsa           Q_i(s', a'), with a' the action really taken next
    expected-sarsa  sum_a pi(a | s') Q_i(s', a), with pi the bandit's own distribution at s'
    double-q        tables A and B; a coin picks which one learns (say A): Q^B_i(s', argmax over D^A_{i-1}(s') of Q^A_i)

The bandit looks at Q (for double-q at the mean of A and B) through its own tolerance.
"""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import tyro
from jax import Array
from jaxtyping import Float, Int

from lexrl import distributions, lex
from lexrl.algorithms import validation
from lexrl.backend import compute_once
from lexrl.errors import InputError
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Moment, Tolerances, as_tolerance, needs_spread, slack
from lexrl.types import Discrete, Metrics, Spec, Transition

Rule = Literal["q-learning", "sarsa", "expected-sarsa", "double-q"]


class EpsilonGreedy(eqx.Module):
    """Lexicographic epsilon-greedy (Algorithm 1): epsilon as a schedule in n(s), the visits to the state."""

    epsilon: Schedule = eqx.field(converter=named("epsilon"), default=Constant(0.05))

    def __str__(self) -> str:
        return f"epsilon {self.epsilon}"

    def probabilities(self, q: Array, tau: lex.Slack, visits: Array) -> Array:
        return lex.epsilon_greedy(q, tau, self.epsilon(visits))


class Softmax(eqx.Module):
    """Lexicographic softmax: the temperature as a schedule in n(s), the visits to the state."""

    temperature: Schedule = eqx.field(converter=named("temperature"), default=Constant(0.05))

    def __str__(self) -> str:
        return f"softmax {self.temperature}"

    def probabilities(self, q: Array, tau: lex.Slack, visits: Array) -> Array:
        return lex.softmax(q, tau, self.temperature(visits))


Bandit = EpsilonGreedy | Softmax


def as_bandit(given: Any) -> Any:
    """Text is read as people write it: `epsilon 0.05`, `epsilon 100/n`, `softmax n^-0.3`."""
    if not isinstance(given, str):
        return given
    kind, _, rate = given.strip().partition(" ")
    if kind not in ("epsilon", "softmax") or not rate:
        raise InputError(
            f"The bandit {given!r} cannot be read; write 'epsilon 0.05', 'epsilon 100/n' or 'softmax 0.1'."
        )
    schedule = as_schedule(rate)
    return EpsilonGreedy(schedule) if kind == "epsilon" else Softmax(schedule)


class State(NamedTuple):
    """Everything a tabular learner remembers. `C` is 2 for double-q, else 1."""

    q: Float[Array, "C S M A"]
    visits: Int[Array, "C S A"]
    variance: Float[Array, "S M A"] | None
    """Sampling variance of each estimate, kept where a tolerance asks for it."""
    pending: Transition | None
    """SARSA only: the last transition, waiting to hear which action was taken next."""
    time: Int[Array, ""]


class Tabular(eqx.Module):
    """A tabular lexicographic learner; `QLearning(...)` and its siblings below set the rule."""

    rule: tyro.conf.Suppress[Rule] = eqx.field(static=True, default="q-learning")
    """Which update rule; on the command line the name of the algorithm says it."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one for all objectives, or one each."""
    alpha: Schedule = eqx.field(converter=named("alpha"), default=Constant(0.01))
    """Learning rate, in the visits n to a state and action: 0.01, n^-0.7, 10/n, 1 to 0.01 in 1e5."""
    exploration: Bandit = eqx.field(converter=as_bandit, default=EpsilonGreedy())
    """How actions are picked while learning: 'epsilon 0.05' or 'softmax 0.1', in the visits n to a state."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.01))
    """What an objective may lose for the next one: 0.01, 5% of the best value, '0.01 + 5%'; one, or one each. Careful
    with one that shrinks to 0: if it does so faster than Q converges, lower objectives never get their say."""
    update_tolerance: Tolerances | None = eqx.field(
        converter=lambda given: None if given is None else as_tolerance(given), default=None
    )
    """Another tolerance for the update (tau_Q) than for the bandit (tau_B); theory wants it no larger."""
    initial_q: tuple[float, ...] | float = 0.0
    """First Q-values: one for all objectives, or one each; high ones make the learner explore."""

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)

    @property
    def num_steps(self) -> int:
        return 1

    @property
    def num_envs(self) -> int:
        return 1

    def init(self, spec: Spec, key: Array) -> State:
        if not isinstance(spec.observation_space, Discrete) or not isinstance(spec.action_space, Discrete):
            raise InputError(
                f"A tabular algorithm needs discrete observations and actions, but this environment has "
                f"{spec.observation_space} and {spec.action_space}: use LDQN, or a discrete version of the environment."
            )
        n_objectives = len(spec.objectives)
        validation.require_lengths(self, n_objectives)
        copies, n_states, n_actions = 2 if self.rule == "double-q" else 1, spec.observation_space.n, spec.action_space.n
        first = jnp.broadcast_to(jnp.asarray(self.initial_q, jnp.float32), (n_objectives,))
        table = jnp.broadcast_to(first[:, None], (copies, n_states, n_objectives, n_actions))
        zero = jnp.int32(0)
        nothing = Transition(zero, zero, jnp.zeros(n_objectives), jnp.float32(0), zero, jnp.bool_(False))
        return State(
            q=table,
            visits=jnp.zeros((copies, n_states, n_actions), jnp.int32),
            variance=jnp.full(table.shape[1:], 1e12, jnp.float32) if self._keeps_variance() else None,
            pending=nothing if self.rule == "sarsa" else None,
            time=zero,
        )

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return distributions.draw(self.probabilities(state, obs, greedy=greedy), key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The bandit's chances of each action; greedy: uniform over `D_M`."""
        q = _mean(state.q[:, obs])
        tau = self._slack(state, obs)
        if greedy:
            return lex.uniform(lex.admissible(q, tau))
        return self.exploration.probabilities(q, tau, 1 + state.visits[:, obs].sum())

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        """One transition after the other, in the order they came."""
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)
        if flat.obs.shape[0] == 1:
            return self._one(state, jax.tree.map(lambda x: x[0], flat), key)
        keys = jax.random.split(key, flat.obs.shape[0])
        state, metrics = jax.lax.scan(lambda state, item: self._one(state, *item), state, (flat, keys))
        return state, jax.tree.map(lambda x: x.mean(axis=0), metrics)

    def sets(self, state: State) -> Any:
        """The learned admissible sets `D_0 .. D_M` of every state, `[S, M+1, A]`."""
        spread = None if state.variance is None else jnp.sqrt(state.variance)
        return lex.levels(_mean(state.q), slack(self.tolerance, Moment(state.time + 1, spread))).sets

    def _one(self, state: State, now: Transition, key: Array) -> tuple[State, Metrics]:
        if self.rule != "sarsa":
            return self._learn(state, now, None, jnp.bool_(True), key)
        # SARSA hears of a' one step late. Where an episode was cut off nobody acted in s': draw what would have been.
        before: Any = state.pending
        drawn = self.act(state, before.next_obs, key)
        next_action = jnp.where(before.last, drawn, now.action)
        state, metrics = self._learn(state, before, next_action, state.time > 0, key)
        return state._replace(pending=now), metrics

    def _learn(
        self, state: State, seen: Transition, next_action: Array | None, counts: Array, key: Array
    ) -> tuple[State, Metrics]:
        s, a = seen.obs, seen.action
        c = jnp.int32(jax.random.uniform(key) < 0.5) if self.rule == "double-q" else 0
        n = state.visits[c, s, a] + 1
        rate = jnp.where(counts, self.alpha(n), 0.0)
        boot, admissible = self._bootstrap(state, seen.next_obs, next_action, c)
        target = seen.reward + jnp.asarray(self.gamma) * seen.discount * boot
        error, admissible = compute_once((target - state.q[c, s, :, a], admissible), state.time >= 0)
        step = rate * error
        variance = state.variance
        if variance is not None:
            variance = variance.at[s, :, a].set((1 - rate) ** 2 * variance[s, :, a] + step**2)
        learned = state._replace(
            q=state.q.at[c, s, :, a].add(step),
            visits=state.visits.at[c, s, a].add(counts.astype(jnp.int32)),
            variance=variance,
            time=state.time + 1,
        )
        return learned, {"td_error": jnp.abs(error), "num_admissible": admissible.sum()}

    def _bootstrap(self, state: State, s: Array, action: Array | None, c: Any) -> tuple[Array, Array]:
        """`boot` for every objective at the successor, and the admissible set there."""
        q = compute_once(state.q[c, s], state.time >= 0)
        if self.rule in ("sarsa", "expected-sarsa"):
            tau = self._slack(state, s)
            allowed = lex.admissible(q, tau)
            if action is not None:
                return q[:, action], allowed
            chances = self.exploration.probabilities(q, tau, 1 + state.visits[:, s].sum())
            return jnp.sum(q * chances, axis=-1), allowed
        tau = self._slack(state, s, update=True)
        other = self.rule == "double-q"
        sets, best = lex.double_levels(q, state.q[1 - c, s], tau) if other else lex.levels(q, tau)
        return best, sets[-1]

    def _slack(self, state: State, s: Array, *, update: bool = False) -> lex.Slack:
        spread = None if state.variance is None else jnp.sqrt(state.variance[s])
        chosen = self.update_tolerance if update and self.update_tolerance is not None else self.tolerance
        return slack(chosen, Moment(state.time + 1, spread))

    def _keeps_variance(self) -> bool:
        return needs_spread(self.tolerance) or (
            self.update_tolerance is not None and needs_spread(self.update_tolerance)
        )


def QLearning(**settings: Any) -> Tabular:
    """Lexicographic Q-learning."""
    return Tabular(rule="q-learning", **settings)


def Sarsa(**settings: Any) -> Tabular:
    """Lexicographic SARSA."""
    return Tabular(rule="sarsa", **settings)


def ExpectedSarsa(**settings: Any) -> Tabular:
    """Lexicographic Expected SARSA."""
    return Tabular(rule="expected-sarsa", **settings)


def DoubleQLearning(**settings: Any) -> Tabular:
    """Lexicographic Double Q-learning."""
    return Tabular(rule="double-q", **settings)


def gabor(**settings: Any) -> Tabular:
    """The algorithm of Gabor, Kalmar & Szepesvari (1998): lexicographic Q-learning without tolerance."""
    return Tabular(rule="q-learning", tolerance=Absolute(0.0), **settings)


def _mean(q: Float[Array, "C *rest"]) -> Float[Array, "*rest"]:
    return q[0] if q.shape[0] == 1 else 0.5 * (q[0] + q[1])
