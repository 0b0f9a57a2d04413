"""What actor-critic algorithms share: the two networks, the advantages of a rollout, and single gradient steps.

Actor and critic are separate networks. The critic predicts one value per objective, `V_i(s)`, divided by a running
scale of its targets, so that objectives of any size learn equally well.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import returns
from lexrl.backend import fusion_barrier, reciprocal
from lexrl.distributions import Categorical, Distribution
from lexrl.errors import InputError
from lexrl.networks import Actor, Network, Networks, normalizers, with_normalizers
from lexrl.optimizers import OptState
from lexrl.returns import EpisodeTracker
from lexrl.types import Discrete, Spec, Transition


class Agent(NamedTuple):
    """The networks and running statistics of an actor-critic."""

    actor: Actor
    critic: Network
    actor_opt_state: OptState
    critic_opt_state: OptState
    value_scale: Float[Array, " M"]
    """Root mean square of the critic's targets: 0 before the first update, and as long as all of them are 0."""
    mean_reward: Float[Array, " M"]
    """Mean reward per step."""
    episode_tracker: EpisodeTracker
    num_updates: Int[Array, ""]


class Pace(NamedTuple):
    """What an update changes about the settings of an algorithm."""

    rate: Any = 1.0
    """The actor's learning rate is multiplied by it."""
    critic_rate: Any = 1.0
    """The critic's."""
    ent_coef: Any = 0.0
    """Added to the entropy coefficient."""


AS_SET = Pace()
"""Nothing is changed."""


class Batch(NamedTuple):
    """A rollout with what was computed from it, one row per transition where it says `B`."""

    obs: Array
    action: Array
    policy: Distribution
    """The policy that collected the data."""
    log_prob: Float[Array, " B"]
    value: Any
    """`V_i(s)`, `[T, N, M]`"""
    advantage: Float[Array, "B M"]
    """`A_i`, or `Q_i` with Q-critics."""
    target: Float[Array, "B M"]
    """What the critic should predict, divided by the scale."""
    episode_stats: Any
    """`EpisodeStats`"""
    weight: Any = None
    """Weight of each transition for each objective, `[B, M]`; None: all the same."""
    allowed: Any = None
    """The actions that the policy may choose from, `[B, A]`; None: all."""

    def policy_of(self, actor: Actor) -> Distribution:
        """An actor's policy where the transitions began."""
        return restrict(actor(self.obs), self.allowed)

    def rows(self) -> "Batch":
        """Only the parts with one row per transition."""
        return self._replace(value=(), episode_stats=())


def init_agent(networks: Networks, spec: Spec, key: Array, num_envs: int, per_action: bool = False) -> Agent:
    """New networks; `per_action` makes the critic predict `Q_i(s, a)` for each discrete action."""
    m, keys = len(spec.objectives), jax.random.split(key, 2)
    shape = (m, spec.action_space.n) if per_action and isinstance(spec.action_space, Discrete) else (m,)
    actor, critic = networks.init_actor(keys[0], spec), networks.init_critic(keys[1], spec, shape)
    return Agent(
        actor=actor,
        critic=critic,
        actor_opt_state=networks.init_opt_state(actor),
        critic_opt_state=networks.init_opt_state(critic),
        value_scale=jnp.zeros(m),
        mean_reward=jnp.zeros(m),
        episode_tracker=returns.init_tracker(num_envs, m),
        num_updates=jnp.int32(0),
    )


Prediction = Callable[[Networks, Network, Batch], Float[Array, "B M"]]


def act(self: Any, state: Any, obs: Array, key: Array, *, greedy: bool = False) -> Array:
    """An action for one observation; greedy: the most likely one."""
    policy = state.agent.actor(obs)
    return policy.mode() if greedy else policy.sample(key)


def probabilities(self: Any, state: Any, obs: Array, *, greedy: bool = False) -> Float[Array, "*batch A"]:
    """The policy's probability of each discrete action; greedy: 1 for the most likely one."""
    policy = state.agent.actor(obs)
    if not isinstance(policy, Categorical):
        raise InputError("Continuous actions have densities, not probabilities; sample the policy with `act` instead.")
    if greedy:
        return jax.nn.one_hot(policy.mode(), policy.logits.shape[-1])
    return jax.nn.softmax(policy.logits)


def restrict(policy: Distribution, allowed: Bool[Array, "*batch A"] | None) -> Distribution:
    """The policy with only some of its discrete actions; None: as it is."""
    return policy.restrict(allowed) if allowed is not None and isinstance(policy, Categorical) else policy


def advantages(
    networks: Networks,
    agent: Agent,
    rollout: Transition,
    gamma: Any,
    gae_lambda: Any,
    min_step: float = 0.01,
    allowed: Bool[Array, "T N A"] | None = None,
) -> tuple[Agent, Batch]:
    """Discounted advantages and value targets of a rollout, and the agent with its running statistics updated.

    The n-th update moves running means by `1 / n` of the way, but at least by `min_step`; with 0 they converge.
    """
    gamma, agent = per_objective(gamma, rollout.reward.shape[-1]), count_update(agent, rollout, min_step)
    policy = restrict(agent.actor(rollout.obs), allowed)
    value = agent.value_scale * predict(networks, agent.critic, rollout.obs)
    next_value = agent.value_scale * predict(networks, agent.critic, rollout.next_obs)
    errors = returns.td_errors(rollout.reward, rollout.discount, value, next_value, gamma)
    advantage = returns.gae(errors, rollout.last, gamma, gae_lambda)
    agent, batch = make_batch(agent, rollout, policy, value, advantage, gamma, min_step)
    return agent, batch if allowed is None else batch._replace(allowed=allowed.reshape(-1, allowed.shape[-1]))


def lexicographic_advantages(algorithm: Any, agent: Agent, rollout: Transition) -> tuple[Agent, Batch]:
    """Advantages of every objective, by the settings of LPPO or LA2C."""
    min_step = 0.01 if algorithm.normalize_advantage else 0.0
    agent, batch = advantages(
        algorithm.networks, agent, rollout, algorithm.gamma, algorithm.gae_lambda, min_step=min_step
    )
    return agent, discount_states(batch) if algorithm.discounted_states else batch


def count_update(agent: Agent, rollout: Transition, min_step: float) -> Agent:
    """The agent with its number of updates, its mean reward and what it knows of observations brought up to date."""
    agent = agent._replace(num_updates=agent.num_updates + 1)
    actor, critic = (see(network, rollout.obs, agent.num_updates) for network in (agent.actor, agent.critic))
    step = running_step(agent, min_step)
    mean_reward = agent.mean_reward + step * (rollout.reward.mean(axis=(0, 1)) - agent.mean_reward)
    return agent._replace(actor=actor, critic=critic, mean_reward=mean_reward)


def see(network: Any, obs: Array, num_updates: Array) -> Any:
    """The actor or critic with the observations of its n-th rollout in its normalizer, if it has one."""
    return with_normalizers(network, [one.update(obs, reciprocal(num_updates)) for one in normalizers(network)])


def running_step(agent: Agent, min_step: float) -> Float[Array, ""]:
    """How far this update moves running means."""
    return jnp.maximum(1.0 / agent.num_updates, min_step)


def make_batch(
    agent: Agent,
    rollout: Transition,
    policy: Distribution,
    value: Array,
    advantage: Array,
    gamma: Array,
    min_step: float,
) -> tuple[Agent, Batch]:
    """The rollout `[T, N]` as rows `[B]`; the scale of the targets and the episodes are followed."""
    target = advantage + value
    square = agent.value_scale**2
    square = square + running_step(agent, min_step) * (jnp.mean(target**2, axis=(0, 1)) - square)
    value_scale = jnp.sqrt(square)
    tracker, episode_stats = returns.track_episodes(agent.episode_tracker, rollout.reward, rollout.last, gamma)
    flat = lambda x: x.reshape(-1, *x.shape[2:])  # noqa: E731
    batch = Batch(
        obs=flat(rollout.obs),
        action=flat(rollout.action),
        policy=jax.tree.map(flat, policy),
        log_prob=flat(policy.log_prob(rollout.action)),
        value=value,
        advantage=flat(advantage),
        target=flat(target / positive(value_scale)),
        episode_stats=episode_stats,
    )
    return agent._replace(value_scale=value_scale, episode_tracker=tracker), batch


def discount_states(batch: Batch) -> Batch:
    """Weight the t-th step of an episode by `gamma_i^t`, as in the discounted state distribution."""
    weight = batch.episode_stats.weight.reshape(batch.advantage.shape)
    return batch._replace(advantage=batch.advantage * weight, weight=weight)


def normalize(advantage: Float[Array, " B"]) -> Float[Array, " B"]:
    """Mean 0 and standard deviation 1, so that learning rates and entropy bonuses mean the same in every environment.

    The barriers keep XLA from fusing this with what comes before and after: whether the advantage is one objective's or
    a sum of several must not change how it is rounded.
    """
    whole = fusion_barrier(advantage)
    return fusion_barrier((whole - whole.mean()) / positive(whole.std()))


def combine(
    weights: Float[Array, " M"], advantage: Float[Array, "B M"], normalize_advantage: bool
) -> tuple[Float[Array, " M"], Float[Array, " B"], Float[Array, ""] | float]:
    """The weights as they are used, the combined advantage `sum_i c_i A_i`, and the scale it was divided by."""
    if not normalize_advantage:
        return weights, jnp.sum(weights * advantage, axis=-1), 1.0
    relative = weights / weights.sum()
    whole = jnp.sum(relative * advantage, axis=-1)
    return relative, normalize(whole), positive(whole.std())


def predict(networks: Networks, critic: Network, obs: Array) -> Float[Array, "..."]:
    """The critic's output, divided by the scale as it is."""
    return critic(obs if networks.critic_features is None else networks.critic_features(obs))


def predict_values(networks: Networks, critic: Network, batch: Batch) -> Float[Array, "B M"]:
    """What is compared with the targets of a batch."""
    return predict(networks, critic, batch.obs)


def step_actor(networks: Networks, agent: Agent, gradient: Any, learning_rate: Any) -> Agent:
    """One step of the actor down the gradient."""
    actor, opt_state = networks.gradient_step(agent.actor, gradient, agent.actor_opt_state, learning_rate)
    return agent._replace(actor=actor, actor_opt_state=opt_state)


def step_critic(
    networks: Networks, agent: Agent, batch: Batch, learning_rate: Any, prediction: Prediction = predict_values
) -> tuple[Agent, Float[Array, " M"]]:
    """One step of the critic towards the targets; and half the mean squared error per objective."""

    def loss(critic: Network) -> tuple[Array, Array]:
        errors = (prediction(networks, critic, batch) - batch.target) ** 2
        each = 0.5 * jnp.mean(errors if batch.weight is None else batch.weight * errors, axis=0)
        return each.sum(), each

    gradient, losses = jax.grad(loss, has_aux=True)(agent.critic)
    critic, opt_state = networks.gradient_step(agent.critic, gradient, agent.critic_opt_state, learning_rate)
    return agent._replace(critic=critic, critic_opt_state=opt_state), losses


def positive(scale: Array) -> Array:
    """A scale to divide by: 1 in place of 0. No small number is added, so that units do not matter."""
    return jnp.where(scale > 0, scale, 1.0)


def per_objective(value: Any, objectives: int) -> Float[Array, " M"]:
    """One number for all objectives, or one each, as an array."""
    return jnp.broadcast_to(jnp.asarray(value, jnp.float32), (objectives,))
