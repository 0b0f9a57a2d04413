"""DQN (Mnih et al. 2015): Q-learning with networks, a replay buffer and target networks. One objective.

    Q_k(s, a)  moves towards  r + gamma Q'_j(s', argmax_b Q_k(s', b)),        only r where the task ended

for each of K members k, networks that learn side by side from batches of their own; `Q'_j` is the target network of
another member. The maximum of estimates is too high on average, and what one member overestimates its neighbor seldom
does: these are the cross targets of Double Q-learning (van Hasselt 2010). With one member, j = k, it is Double DQN (van
Hasselt et al. 2016), or without `double_q`, where the target network itself chooses b, plain DQN.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from lexrl import distributions, lex, networks, optimizers, replay, returns
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import scaling, validation
from lexrl.algorithms.scaling import Scale
from lexrl.backend import compute_once
from lexrl.errors import InputError, require_whole
from lexrl.networks import Builder, Network, as_builder
from lexrl.optimizers import Optimizer, OptState, as_optimizer
from lexrl.perceptrons import Activation, mlp, require_layers
from lexrl.replay import Replay
from lexrl.reprs import short_repr
from lexrl.schedules import Linear, OfRun, Schedule, named
from lexrl.types import Discrete, Metrics, Spec, Transition
from lexrl.units import counts

MAX_MEMBERS = 100
"""Each is a network of its own in the program, whose compilation takes longer with every one."""


class State(NamedTuple):
    """The members, the optimizer and the replay buffer."""

    net: Network
    """Leading axis: the members."""
    target: Network | None
    """Copies of the members that follow them slowly and give the targets; None: the members themselves do."""
    opt_state: OptState
    replay: Replay
    num_updates: Int[Array, ""]
    """Gradient steps so far."""
    scale: Scale


class DQN(eqx.Module):
    """Deep Q-learning of one objective."""

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
    gamma: float = 0.99
    """Discount."""
    learning_rate: Schedule = eqx.field(
        converter=named("learning_rate"), default=Linear(1e-3, 1e-5), metadata=counts("gradient steps")
    )
    """Step size, by the number of gradient steps."""
    epsilon: Schedule = eqx.field(
        converter=named("epsilon"), default=Linear(1.0, 0.05, OfRun(0.5)), metadata=counts("environment steps")
    )
    """Probability of a random action, by the number of environment steps."""
    return_scale: float | None = None
    """Typical size of returns: the networks' output is in units of it; None: found while learning."""
    hidden_sizes: tuple[int, ...] = eqx.field(static=True, default=(64, 64))
    """Sizes of the hidden layers; none: linear."""
    activation: Activation = eqx.field(static=True, default="relu")
    """Between the layers."""
    use_bias: bool = eqx.field(static=True, default=True)
    """A network with biases; without hidden layers and biases it is a table on discrete observations."""
    network: Builder | None = eqx.field(static=True, converter=as_builder, default=None)
    """A function (key, spec) -> eqx.Module that builds a Q-network of your own, whose output has shape (M, A);
    'attention', 'pooling' or 'pairs' for observations of rows x features."""
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
        q = values(state, obs)[0]
        epsilon = 0.0 if greedy else self.epsilon(state.replay.added + 1)
        return (1.0 - epsilon) * lex.uniform(q == q.max()) + epsilon * lex.uniform(jnp.ones_like(q, bool))

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        return learn(self, state, rollout, key, best)


Draw = Callable[[Replay, Array, int], Transition]
"""So many transitions from the buffer."""
Bootstrap = Callable[["Successors"], tuple[Float[Array, "K B M"], Metrics]]
"""Values of the successors and metrics."""


class Successors(NamedTuple):
    """Q-values of a batch's successors, each member's batch being its own; in units of the returns."""

    choice: Float[Array, "K B M A"]
    """Those that choose actions."""
    value: Float[Array, "K B M A"]
    """Those that evaluate them."""
    members: Float[Array, "J K B M A"]
    """Of all target networks: what each of them thinks of each batch."""
    num_updates: Int[Array, ""]
    """Gradient steps, with this one."""


def best(successors: Successors) -> tuple[Float[Array, "K B 1"], Metrics]:
    """The value of the best action."""
    return returns.of_action(successors.value, jnp.argmax(successors.choice[..., 0, :], axis=-1)), {}


def init(settings: Any, spec: Spec, key: Array) -> State:
    """New members `Q_i(s, a)`, all 0, and an empty buffer."""
    if not isinstance(spec.action_space, Discrete):
        raise InputError(
            f"A Q-network needs discrete actions, but this environment has {spec.action_space}; use LPPO or LA2C."
        )
    m = len(spec.objectives)
    keys = jax.random.split(key, settings.num_members)
    built = [_new(settings, spec, (m, spec.action_space.n), one) for one in keys]
    nets = jax.tree.map(lambda *leaves: jnp.stack(leaves), *built)
    fixed = None if settings.return_scale is None else ac.per_objective(settings.return_scale, m)
    return State(
        net=nets,
        target=nets if settings.target_update_interval else None,
        opt_state=optimizers.init(settings.optimizer, nets),
        replay=replay.empty(spec, settings.buffer_size),
        num_updates=jnp.int32(0),
        scale=scaling.init(fixed, m),
    )


def _new(settings: Any, spec: Spec, shape: tuple[int, int], key: Array) -> Network:
    if settings.network is not None:
        return networks.build_network(settings.network, key, spec, shape, "Q-network")
    return mlp(
        key,
        spec.observation_space,
        shape,
        settings.hidden_sizes,
        activation=settings.activation,
        use_bias=settings.use_bias,
        output_scale=0.0,
    )


def members(nets: Network, obs: Array) -> Float[Array, "K ... M A"]:
    """What each member says of the same observations."""
    return jax.vmap(lambda net: net(obs))(nets)


def members_values(state: State, obs: Array) -> Float[Array, "K ... M A"]:
    """`Q_i(s, a)` of each member, in the units of the returns."""
    return members(state.net, obs) * (state.scale.gain * state.scale.size)[:, None]


def values(state: State, obs: Array) -> Float[Array, "... M A"]:
    """`Q_i(s, a)`, the members' mean, in the units of the returns."""
    return members_values(state, obs).mean(axis=0)


def learn(
    settings: Any,
    state: State,
    rollout: Transition,
    key: Array,
    bootstrap: Bootstrap,
    reward_of: Callable[[Array], Array] = lambda reward: reward,
    draw: Draw = replay.draw,
) -> tuple[State, Metrics]:
    """Add the rollout to the buffer, then take a few gradient steps, each on batches from it.

    `settings` is the algorithm itself, `DQN` or `LDQN`. `reward_of` turns the stored rewards into those that are
    learned from: ApproPO's change with its direction. `draw` takes batches from the buffer.
    """
    kept = replay.add(state.replay, rollout)
    agent = state._replace(replay=(), scale=scaling.begin(state.scale, reward_of(rollout.reward)))

    def step(carry: State, key: Array) -> tuple[State, Metrics]:
        batch = draw(kept, key, settings.num_members * settings.batch_size)
        batch = compute_once(batch, carry.num_updates >= 0)
        batch = batch._replace(reward=reward_of(batch.reward))
        return _step(settings, carry, batch, bootstrap)

    keys = jax.random.split(key, settings.gradient_steps)
    shapes = jax.eval_shape(lambda: jax.lax.scan(step, agent, keys)[1])

    def nothing() -> Any:
        return agent, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    ready = kept.added >= settings.learning_starts
    agent, metrics = jax.lax.cond(ready, lambda: jax.lax.scan(step, agent, keys), nothing)
    return agent._replace(replay=kept), jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics)


def _step(settings: Any, state: State, batch: Transition, bootstrap: Bootstrap) -> tuple[State, Metrics]:
    """A gradient step of all members on a batch `[K * B]`."""
    done, size, gain = state.num_updates + 1, state.scale.size, state.scale.gain[:, None]
    gamma = ac.per_objective(settings.gamma, len(size))
    each = jax.tree.map(lambda leaf: leaf.reshape(settings.num_members, -1, *leaf.shape[1:]), batch)
    successors = _successors(settings, state, each.next_obs, size[:, None] * gain)
    boot, metrics = bootstrap(successors)
    goal = (each.reward + gamma * each.discount[..., None] * boot) / size

    def loss(nets: Network) -> tuple[Array, Metrics]:
        q = returns.of_action(gain * jax.vmap(lambda net, obs: net(obs))(nets, each.obs), each.action)
        huber = jnp.mean(optax.huber_loss(q, goal), axis=(0, 1))
        error = size * jnp.mean(jnp.abs(q - goal), axis=(0, 1))
        # Members are summed, so that each learns as it would alone.
        total = settings.num_members * huber.sum()
        return total, {"loss": huber, "td_error": error, "q_value": size * q.mean(axis=(0, 1))}

    gradient, more = jax.grad(loss, has_aux=True)(state.net)
    rate, length = settings.learning_rate(done), settings.max_grad_norm
    nets, opt_state = optimizers.step(settings.optimizer, length, state.net, gradient, state.opt_state, rate)
    targets = _follow(settings, state.target, nets, done)
    scale = scaling.observe(state.scale, goal, done)
    if settings.return_scale is None:
        scale, nets, targets = scaling.double(scale, nets, targets)
    state = state._replace(net=nets, target=targets, opt_state=opt_state, num_updates=done, scale=scale)
    return state, metrics | more


def _successors(settings: Any, state: State, next_obs: Array, size: Array) -> Successors:
    """Each member is evaluated by the next one's target network."""
    source = state.net if state.target is None else state.target
    all_values = size * members(source, next_obs)
    k = jnp.arange(settings.num_members)
    value = all_values[jnp.roll(k, -1), k]
    choice = size * jax.vmap(lambda net, obs: net(obs))(state.net, next_obs) if settings.double_q else value
    return Successors(choice, value, all_values, state.num_updates + 1)


def _follow(settings: Any, targets: Network | None, nets: Network, num_updates: Array) -> Network | None:
    """The target networks, moved towards the members when their period is over."""
    if targets is None:
        return None
    share = jnp.where(num_updates % target_update_period(settings) == 0, settings.polyak, 0.0)
    return jax.tree.map(lambda old, new: (1 - share) * old + share * new, targets, nets)


def target_update_period(settings: Any) -> int:
    """Gradient steps between updates of the target networks: the setting counts environment steps."""
    per_step = settings.gradient_steps / (settings.num_envs * settings.num_steps)
    return min(max(1, int(settings.target_update_interval * per_step)), 2**31 - 1)


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
    require_whole(1, MAX_MEMBERS, num_members=settings.num_members)
    validation.require_in_unit_interval(gamma=settings.gamma, polyak=settings.polyak)
    if settings.return_scale is not None:
        validation.require_above_zero(return_scale=settings.return_scale)
    validation.require_at_least(
        0, target_update_interval=settings.target_update_interval, learning_starts=settings.learning_starts
    )
    require_layers(settings.activation, settings.hidden_sizes)
    networks.require_max_grad_norm(settings.max_grad_norm)
    largest = settings.epsilon.largest()
    if isinstance(largest, int | float) and largest > 1:
        raise InputError(f"epsilon is up to {largest:g}; a probability is at most 1.")
    require_whole(buffer_size=settings.buffer_size, most=2**62)
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
    if settings.learning_starts > settings.buffer_size:
        raise InputError(
            f"learning_starts is {settings.learning_starts}, but the buffer holds only {settings.buffer_size} "
            "transitions; make it smaller, or buffer_size larger."
        )
