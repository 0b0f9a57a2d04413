"""DQN (Mnih et al. 2015): Q-learning with a network, a replay buffer and a target network. One objective.

    Q(s, a)  moves towards  r + gamma Q_target(s', argmax_b Q'(s', b)),        only r where the task ended

where Q' is the target network itself or, for Double DQN (van Hasselt et al. 2016), the network that learns: the maximum
of estimates is too high on average, and two networks seldom overestimate the same action.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from lexrl import distributions, networks, optimizers, replay
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import validation
from lexrl.backend import compute_once
from lexrl.errors import InputError
from lexrl.networks import Builder, Network, as_builder
from lexrl.optimizers import Optimizer, OptState, as_optimizer
from lexrl.perceptrons import Activation, mlp, require_layers
from lexrl.replay import Replay
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, named
from lexrl.types import Discrete, Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The networks, the optimizer and the replay buffer."""

    net: Network
    target: Network | None
    """An older copy of the network that gives the targets; None: the network itself does."""
    opt_state: OptState
    replay: Replay
    num_updates: Int[Array, ""]
    """Gradient steps so far."""


class DQN(eqx.Module):
    """Deep Q-learning of one objective."""

    num_envs: int = eqx.field(static=True, default=8)
    """Parallel environments."""
    num_steps: int = eqx.field(static=True, default=4)
    """Steps of each environment between updates."""
    batch_size: int = eqx.field(static=True, default=64)
    """Transitions in a gradient step, drawn from the buffer."""
    gradient_steps: int = eqx.field(static=True, default=2)
    """Gradient steps after each rollout, each on a batch of its own."""
    buffer_size: int = eqx.field(static=True, default=102_400)
    """Transitions the buffer holds."""
    learning_starts: int = eqx.field(static=True, default=1_024)
    """Transitions to collect before learning."""
    target_update_interval: int = eqx.field(static=True, default=8_000)
    """Environment steps between updates of the target network; 0: no target network."""
    double_q: bool = eqx.field(static=True, default=False)
    """Let the network choose the action whose value the target network gives."""
    gamma: float = 0.99
    """Discount."""
    learning_rate: Schedule = eqx.field(
        converter=named("learning_rate"), default=Constant(1e-3), metadata=counts("gradient steps")
    )
    """Step size, by the number of gradient steps."""
    epsilon: Schedule = eqx.field(
        converter=named("epsilon"), default=Constant(0.05), metadata=counts("environment steps")
    )
    """Probability of a random action, by the number of environment steps."""
    return_scale: float = 1.0
    """Typical size of returns: the network's output is in units of it."""
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
        check(self)

    def num_gradient_steps(self, num_updates: int) -> int:
        return num_gradient_steps(self, num_updates)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_one_objective("DQN", "LDQN", spec)
        return init(self, spec, key)

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return distributions.draw(self.probabilities(state, obs, greedy=greedy), key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """Epsilon-greedy; greedy: uniform over the best actions."""
        q = state.net(obs)[0] * self.return_scale
        best = (q == q.max()).astype(jnp.float32)
        epsilon = 0.0 if greedy else self.epsilon(state.replay.added + 1)
        return (1.0 - epsilon) * (best / best.sum()) + epsilon / q.shape[-1]

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        return learn(self, state, rollout, key, best)


Bootstrap = Callable[[Float[Array, "B M A"], Float[Array, "B M A"], Array], tuple[Float[Array, "B M"], Metrics]]
"""Values of the successors and metrics, from the Q-values that choose actions, the Q-values that evaluate them, and the
number of updates."""


def best(q: Float[Array, "B 1 A"], value: Float[Array, "B 1 A"], _: Array) -> tuple[Float[Array, "B 1"], Metrics]:
    """The value of the best action."""
    return ac.of_action(value, jnp.argmax(q[:, 0], axis=-1)), {}


def init(settings: Any, spec: Spec, key: Array) -> State:
    """A new network `Q_i(s, a)` and an empty buffer."""
    if not isinstance(spec.action_space, Discrete):
        raise InputError(
            f"A Q-network needs discrete actions, but this environment has {spec.action_space}; use LPPO or LA2C."
        )
    shape = (len(spec.objectives), spec.action_space.n)
    if settings.network is not None:
        net = networks.build_network(settings.network, key, spec, shape, "Q-network")
    else:
        net = mlp(
            key,
            spec.observation_space,
            shape,
            settings.hidden_sizes,
            activation=settings.activation,
            use_bias=settings.use_bias,
            output_scale=0.1,
        )
    return State(
        net=net,
        target=net if settings.target_update_interval else None,
        opt_state=optimizers.init(settings.optimizer, net),
        replay=replay.empty(spec, settings.buffer_size),
        num_updates=jnp.int32(0),
    )


def learn(
    settings: Any,
    state: State,
    rollout: Transition,
    key: Array,
    bootstrap: Bootstrap,
    reward_of: Callable[[Array], Array] = lambda reward: reward,
) -> tuple[State, Metrics]:
    """Add the rollout to the buffer, then take a few gradient steps, each on a batch from it.

    `settings` is the algorithm itself, `DQN` or `LDQN`. `reward_of` turns the stored rewards into those that are
    learned from: ApproPO's change with its direction.
    """
    kept = replay.add(state.replay, rollout)
    m = jax.eval_shape(reward_of, rollout.reward).shape[-1]
    scale, gamma = ac.per_objective(settings.return_scale, m), ac.per_objective(settings.gamma, m)

    def step(carry: State, key: Array) -> tuple[State, Metrics]:
        batch = replay.draw(kept, key, settings.batch_size)
        batch = compute_once(batch, carry.num_updates >= 0)
        source = carry.net if carry.target is None else carry.target
        value = source(batch.next_obs) * scale[:, None]
        q = carry.net(batch.next_obs) * scale[:, None] if settings.double_q else value
        boot, metrics = bootstrap(q, value, carry.num_updates + 1)
        goal = (reward_of(batch.reward) + gamma * batch.discount[:, None] * boot) / scale

        def loss(net: Network) -> tuple[Array, Metrics]:
            q = ac.of_action(net(batch.obs), batch.action)
            each = jnp.mean(optax.huber_loss(q, goal), axis=0)
            size = scale * jnp.mean(jnp.abs(q - goal), axis=0)
            return each.sum(), {"loss": each, "td_error": size, "q_value": scale * q.mean(axis=0)}

        gradient, more = jax.grad(loss, has_aux=True)(carry.net)
        done, length = carry.num_updates + 1, settings.max_grad_norm
        rate = settings.learning_rate(done)
        net, opt_state = optimizers.step(settings.optimizer, length, carry.net, gradient, carry.opt_state, rate)
        target = _renewed(settings, carry.target, net, done)
        return carry._replace(net=net, target=target, opt_state=opt_state, num_updates=done), metrics | more

    agent = state._replace(replay=())
    keys = jax.random.split(key, settings.gradient_steps)
    shapes = jax.eval_shape(lambda: jax.lax.scan(step, agent, keys)[1])

    def nothing() -> Any:
        return agent, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    ready = kept.added >= settings.learning_starts
    agent, metrics = jax.lax.cond(ready, lambda: jax.lax.scan(step, agent, keys), nothing)
    return agent._replace(replay=kept), jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics)


def _renewed(settings: Any, target: Network | None, net: Network, num_updates: Array) -> Network | None:
    """The target network: a copy of the network when its period is over."""
    if target is None:
        return None
    renew = num_updates % target_update_period(settings) == 0
    return jax.tree.map(lambda old, new: jnp.where(renew, new, old), target, net)


def target_update_period(settings: Any) -> int:
    """Gradient steps between updates of the target network: its setting counts environment steps."""
    return settings.target_update_interval * settings.gradient_steps // (settings.num_envs * settings.num_steps)


def num_gradient_steps(settings: Any, num_updates: int) -> int:
    """Gradient steps taken in so many updates: none before the buffer holds `learning_starts` transitions."""
    block = settings.num_steps * settings.num_envs
    waiting = max(0, -(-settings.learning_starts // block) - 1)
    return max(0, num_updates - waiting) * settings.gradient_steps


def check(settings: Any) -> None:
    """Refuse settings that are out of range or do not fit together."""
    validation.require_positive(
        num_steps=settings.num_steps,
        num_envs=settings.num_envs,
        batch_size=settings.batch_size,
        gradient_steps=settings.gradient_steps,
    )
    validation.require_in_unit_interval(gamma=settings.gamma)
    validation.require_above_zero(return_scale=settings.return_scale)
    validation.require_at_least(
        0, target_update_interval=settings.target_update_interval, learning_starts=settings.learning_starts
    )
    require_layers(settings.activation, settings.hidden_sizes)
    networks.require_max_grad_norm(settings.max_grad_norm)
    largest = settings.epsilon.largest()
    if isinstance(largest, int | float) and largest > 1:
        raise InputError(f"epsilon is up to {largest:g}; a probability is at most 1.")
    block = settings.num_steps * settings.num_envs
    if settings.buffer_size < block or settings.buffer_size % block:
        raise InputError(
            f"buffer_size is {settings.buffer_size}, not a multiple of a rollout's {block} transitions "
            f"({settings.num_steps} steps of {settings.num_envs} environments); try "
            f"{max(1, settings.buffer_size // block) * block}."
        )
    if settings.double_q and not settings.target_update_interval:
        raise InputError(
            "Double Q-learning needs a target network, but target_update_interval is 0; give one, such as 8000."
        )
    if settings.target_update_interval and target_update_period(settings) < 1:
        raise InputError(
            f"target_update_interval is {settings.target_update_interval} environment steps, less than one gradient "
            f"step; give at least {-(-block // settings.gradient_steps)}, or 0 for no target network."
        )
    if settings.learning_starts > settings.buffer_size:
        raise InputError(
            f"learning_starts is {settings.learning_starts}, but the buffer holds only {settings.buffer_size} "
            "transitions; make it smaller, or buffer_size larger."
        )
