"""What A2C, PPO and their lexicographic versions have in common: two networks, and what a rollout tells them.

Actor and critic are separate networks. The critic gives one value per objective, `V_i(s)` (or `Q_i(s, a)`), in units of
a running scale of its targets, so that objectives of any size learn alike.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lexrl import returns
from lexrl.distributions import Categorical, Distribution
from lexrl.errors import InputError
from lexrl.networks import Actor, Network, Networks
from lexrl.optimizers import OptState
from lexrl.returns import EpisodeTracker
from lexrl.types import Discrete, Spec, Transition


class Agent(NamedTuple):
    """What an actor-critic remembers."""

    actor: Actor
    critic: Network
    actor_opt_state: OptState
    critic_opt_state: OptState
    scale: Float[Array, " M"]
    """Size of the critic's targets."""
    average: Float[Array, " M"]
    """Mean reward per step."""
    episode_tracker: EpisodeTracker
    time: Array
    """Updates so far."""


class Batch(NamedTuple):
    """What a rollout tells, one row per transition where it says `B`."""

    obs: Array
    action: Array
    policy: Distribution
    """The policy that collected the data."""
    log_prob: Float[Array, " B"]
    value: Any
    """`V_i(s)`, `[T, N, M]`"""
    advantage: Float[Array, "B M"]
    """`A_i`, or `Q_i` with critics of actions."""
    target: Float[Array, "B M"]
    """What the critic should say, in units of the scale."""
    episode_stats: Any
    """`Passage`"""
    weight: Any = None
    """How much each transition counts for each objective, `[B, M]`; None: all the same."""

    def rows(self) -> "Batch":
        """Only what has a row per transition."""
        return self._replace(value=(), episode_stats=())


def init_agent(networks: Networks, spec: Spec, key: Array, num_envs: int) -> Agent:
    """New networks for an environment."""
    if networks.action_values and not isinstance(spec.action_space, Discrete):
        raise InputError(
            f"Q-critics need discrete actions, but this environment has {spec.action_space}; use state critics."
        )
    m, keys = len(spec.objectives), jax.random.split(key, 2)
    shape = (m, spec.action_space.n) if networks.action_values and isinstance(spec.action_space, Discrete) else (m,)
    actor = networks.init_actor(keys[0], spec)
    critic = networks.init_critic(keys[1], spec, shape)
    return Agent(
        actor=actor,
        critic=critic,
        actor_opt_state=networks.init_opt_state(actor),
        critic_opt_state=networks.init_opt_state(critic),
        scale=jnp.ones(m),
        average=jnp.zeros(m),
        episode_tracker=returns.init_tracker(num_envs, m),
        time=jnp.int32(0),
    )


def predict(networks: Networks, critic: Network, obs: Array) -> Float[Array, "..."]:
    """The critic's prediction, divided by the scale."""
    return critic(obs if networks.critic_features is None else networks.critic_features(obs))


def predict_values(
    networks: Networks, agent: Agent, obs: Array, policy: Distribution | None = None
) -> Float[Array, "*batch M"]:
    """`V_i(s)` in the objectives' own units."""
    out = predict(networks, agent.critic, obs)
    if isinstance(policy, Categorical) and networks.action_values:
        out = jnp.sum(out * jax.nn.softmax(policy.logits)[..., None, :], axis=-1)
    return agent.scale * out


def look(
    networks: Networks,
    agent: Agent,
    rollout: Transition,
    gamma: Float[Array, " M"],
    gae_lambda: Any,
    *,
    average: bool = False,
    discounted_states: bool = False,
    steady: bool = True,
) -> tuple[Agent, Batch]:
    """Values, advantages and targets of a rollout, and the learner with its running sums brought up to date.

    `average`: objectives are limit averages, and gamma is 1. `discounted_states`: the t-th step of an episode counts
    `gamma_i^t`, as in the discounted state distribution. `steady`: running means follow the last hundred updates; else
    they are over all of them, and come to rest.
    """
    gamma = jnp.ones_like(gamma) if average else gamma
    time = agent.time + 1
    share = jnp.maximum(1.0 / time, 0.01) if steady else 1.0 / time
    mean_reward = agent.average + share * (rollout.reward.mean(axis=(0, 1)) - agent.average)
    policy = agent.actor(rollout.obs)
    later = agent.actor(rollout.next_obs) if networks.action_values else None
    value = predict_values(networks, agent, rollout.obs, policy)
    next_value = predict_values(networks, agent, rollout.next_obs, later)
    baseline = mean_reward if average else jnp.zeros_like(mean_reward)
    errors = returns.td_errors(rollout.reward, rollout.discount, value, next_value, gamma, baseline)
    advantage = returns.advantages(errors, rollout.last, gamma, gae_lambda)
    target = advantage + value
    square = agent.scale**2 + share * (jnp.mean(target**2, axis=(0, 1)) - agent.scale**2)
    scale = jnp.sqrt(jnp.maximum(square, 1e-6))
    episode_tracker, episode_stats = returns.track_episodes(agent.episode_tracker, rollout.reward, rollout.last, gamma)
    if networks.action_values:
        advantage = agent.scale * of_action(predict(networks, agent.critic, rollout.obs), rollout.action)
    weight = episode_stats.weight if discounted_states else None
    if discounted_states:
        advantage = advantage * episode_stats.weight
    flat = lambda x: x.reshape(-1, *x.shape[2:])  # noqa: E731
    evidence = Batch(
        obs=flat(rollout.obs),
        action=flat(rollout.action),
        policy=jax.tree.map(flat, policy),
        log_prob=flat(policy.log_prob(rollout.action)),
        value=value,
        advantage=flat(advantage),
        target=flat(target / scale),
        weight=None if weight is None else flat(weight),
        episode_stats=episode_stats,
    )
    return agent._replace(scale=scale, average=mean_reward, episode_tracker=episode_tracker, time=time), evidence


def probabilities(agent: Agent, obs: Array, greedy: bool) -> Float[Array, "*batch A"]:
    """Chances of numbered actions."""
    policy = agent.actor(obs)
    if not isinstance(policy, Categorical):
        raise InputError("Continuous actions have densities, not chances; sample the policy with `act` instead.")
    if greedy:
        return jax.nn.one_hot(policy.mode(), policy.logits.shape[-1])
    return jax.nn.softmax(policy.logits)


def standardised(advantage: Float[Array, " B"]) -> Float[Array, " B"]:
    """Mean 0 and deviation 1, so that rates and bonuses mean the same in every world.

    The barriers keep XLA from melting this into what comes before and after: whether the advantage is one objective's
    or a sum of several must not change how it is rounded.
    """
    whole = jax.lax.optimization_barrier(advantage)
    return jax.lax.optimization_barrier((whole - whole.mean()) / (whole.std() + 1e-8))


def combined(
    weights: Float[Array, " M"], advantage: Float[Array, "B M"], normalize_advantage: bool
) -> tuple[Float[Array, " M"], Float[Array, " B"], Float[Array, ""] | float]:
    """The weights as they are used, the one advantage they make, and the unit it is measured in."""
    if not normalize_advantage:
        return weights, jnp.sum(weights * advantage, axis=-1), 1.0
    relative = weights / weights.sum()
    whole = jnp.sum(relative * advantage, axis=-1)
    return relative, standardised(whole), whole.std() + 1e-8


def move_actor(networks: Networks, agent: Agent, gradient: Any, rate: Any) -> Agent:
    """The learner after its actor took a step down the gradient."""
    actor, opt_state = networks.gradient_step(agent.actor, gradient, agent.actor_opt_state, rate)
    return agent._replace(actor=actor, actor_opt_state=opt_state)


def move_critic(networks: Networks, agent: Agent, seen: Batch, rate: Any) -> tuple[Agent, Float[Array, " M"]]:
    """The learner after its critic took a step towards the targets; and half the mean squared error per objective."""

    def loss(critic: Network) -> tuple[Array, Array]:
        out = predict(networks, critic, seen.obs)
        if networks.action_values:
            out = of_action(out, seen.action)
        errors = (out - seen.target) ** 2
        each = 0.5 * jnp.mean(errors if seen.weight is None else seen.weight * errors, axis=0)
        return each.sum(), each

    gradient, losses = jax.grad(loss, has_aux=True)(agent.critic)
    critic, opt_state = networks.gradient_step(agent.critic, gradient, agent.critic_opt_state, rate)
    return agent._replace(critic=critic, critic_opt_state=opt_state), losses


def of_action(values: Float[Array, "*batch M A"], action: Int[Array, "*batch"]) -> Float[Array, "*batch M"]:
    """Each objective's value of the action taken; a sum is cheaper than a look-up, both ways."""
    chosen = jnp.arange(values.shape[-1]) == action[..., None]
    return jnp.sum(jnp.where(chosen[..., None, :], values, 0.0), axis=-1)


def per_objective(value: Any, objectives: int) -> Float[Array, " M"]:
    """One number for all objectives, or one each, as an array."""
    return jnp.broadcast_to(jnp.asarray(value, jnp.float32), (objectives,))
