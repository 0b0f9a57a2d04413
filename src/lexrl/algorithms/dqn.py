"""DQN (Mnih et al. 2015): Q-learning with a network, a replay buffer and a target network. One objective.

    Q(s, a)  moves towards  r + gamma Q_target(s', argmax_b Q'(s', b)),        nothing after the + where the task ended

where Q' is the target network itself or, for Double DQN (van Hasselt et al. 2016), the network that learns: the maximum
of estimates is too high on average, and two networks seldom err on the same action.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from lexrl import distributions, networks, replay
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import validation
from lexrl.backend import once
from lexrl.errors import InputError
from lexrl.networks import MLP, Activation, Memory, Optimiser
from lexrl.replay import Replay
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Discrete, Metrics, Spec, Transition


class State(NamedTuple):
    """Everything a Q-network learner remembers."""

    net: MLP
    target: MLP | None
    """An older copy of the network that gives the targets; None: the network itself does."""
    memory: Memory
    replay: Replay
    updates: Int[Array, ""]
    """Gradient steps so far."""


class DQN(eqx.Module):
    """Deep Q-learning of one objective."""

    worlds: int = eqx.field(static=True, default=8)
    """Worlds side by side."""
    rollout: int = eqx.field(static=True, default=4)
    """Steps of each world between updates."""
    batch: int = eqx.field(static=True, default=64)
    """Transitions in a gradient step, drawn from the buffer."""
    updates: int = eqx.field(static=True, default=2)
    """Gradient steps after each rollout, each on a batch of its own."""
    capacity: int = eqx.field(static=True, default=102_400)
    """Transitions the buffer holds."""
    warmup: int = eqx.field(static=True, default=1_024)
    """Transitions to collect before learning."""
    period: int = eqx.field(static=True, default=500)
    """Gradient steps between renewals of the target network; 0: no target network."""
    double: bool = eqx.field(static=True, default=False)
    """Let the network choose the action whose value the target network gives."""
    gamma: float = 0.99
    """Discount."""
    rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """Step size, by the number of gradient steps."""
    epsilon: Schedule = eqx.field(converter=named("epsilon"), default=Constant(0.05))
    """Share of random actions, by the number of environment steps."""
    scale: float = 1.0
    """About how large returns are: the network computes in these units."""
    hidden: tuple[int, ...] = eqx.field(static=True, default=(64, 64))
    """Widths of the hidden layers; none: linear."""
    activation: Activation = eqx.field(static=True, default="relu")
    bias: bool = eqx.field(static=True, default=True)
    """A network with biases; without hidden layers and biases, numbered states make it a table."""
    optimiser: Optimiser = Optimiser(longest=10.0)

    def __check_init__(self):
        check_sizes(self)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_one_objective("DQN", "LDQN", spec)
        return start(self, spec, key)

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return distributions.draw(self.probabilities(state, obs, greedy=greedy), key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """Epsilon-greedy; greedy: uniform over the best actions."""
        q = state.net(obs)[0] * self.scale
        best = (q == q.max()).astype(jnp.float32)
        epsilon = 0.0 if greedy else self.epsilon(state.replay.added + 1)
        return (1.0 - epsilon) * (best / best.sum()) + epsilon / q.shape[-1]

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        return fit(self, state, rollout, key, best)


Bootstrap = Callable[[Float[Array, "B M A"], Float[Array, "B M A"], Array], tuple[Float[Array, "B M"], Metrics]]
"""The values of successors, from q-values that choose, q-values that count, and the number of updates; and what is
worth watching."""


def best(q: Float[Array, "B 1 A"], value: Float[Array, "B 1 A"], _: Array) -> tuple[Float[Array, "B 1"], Metrics]:
    """The value of the best action."""
    return ac.of_action(value, jnp.argmax(q[:, 0], axis=-1)), {}


def start(settings: Any, spec: Spec, key: Array) -> State:
    """A new network `Q_i(s, a)` and an empty buffer."""
    if not isinstance(spec.action, Discrete):
        raise InputError(
            f"A Q-network needs numbered actions, but this world has {spec.action}; use LPPO, LA2C or their parents."
        )
    shape = (len(spec.objectives), spec.action.n)
    net = networks.mlp(
        key, spec.observation, shape, settings.hidden, activation=settings.activation, bias=settings.bias, last=0.1
    )
    return State(
        net=net,
        target=net if settings.period else None,
        memory=settings.optimiser.start(net),
        replay=replay.empty(spec, settings.capacity),
        updates=jnp.int32(0),
    )


def fit(
    settings: Any,
    state: State,
    rollout: Transition,
    key: Array,
    bootstrap: Bootstrap,
    pay: Callable[[Array], Array] = lambda reward: reward,
) -> tuple[State, Metrics]:
    """Remember the rollout, then learn from a few batches of what is remembered.

    `settings` is the algorithm itself, `DQN` or `LDQN`. `pay` turns the rewards that were remembered into those that
    are learned from: ApproPO's change with its direction.
    """
    kept = replay.add(state.replay, rollout)
    m = jax.eval_shape(pay, rollout.reward).shape[-1]
    scale, gamma = ac.per_objective(settings.scale, m), ac.per_objective(settings.gamma, m)

    def step(carry: State, key: Array) -> tuple[State, Metrics]:
        seen = replay.draw(kept, key, settings.batch)
        seen = once(seen, carry.updates >= 0)
        source = carry.net if carry.target is None else carry.target
        value = source(seen.next_obs) * scale[:, None]
        q = carry.net(seen.next_obs) * scale[:, None] if settings.double else value
        boot, metrics = bootstrap(q, value, carry.updates + 1)
        goal = (pay(seen.reward) + gamma * seen.discount[:, None] * boot) / scale

        def loss(net: MLP) -> tuple[Array, Metrics]:
            q = ac.of_action(net(seen.obs), seen.action)
            each = jnp.mean(optax.huber_loss(q, goal), axis=0)
            size = scale * jnp.mean(jnp.abs(q - goal), axis=0)
            return each.sum(), {"loss": each, "td_error": size, "value": scale * q.mean(axis=0)}

        gradient, more = jax.grad(loss, has_aux=True)(carry.net)
        net, memory = settings.optimiser.step(carry.net, gradient, carry.memory, settings.rate(carry.updates + 1))
        done = carry.updates + 1
        target = carry.target
        if target is not None:
            renew = done % settings.period == 0
            target = jax.tree.map(lambda old, new: jnp.where(renew, new, old), target, net)
        return carry._replace(net=net, target=target, memory=memory, updates=done), metrics | more

    learner = state._replace(replay=())
    keys = jax.random.split(key, settings.updates)
    shapes = jax.eval_shape(lambda: jax.lax.scan(step, learner, keys)[1])

    def nothing() -> Any:
        return learner, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    ready = kept.added >= settings.warmup
    learner, metrics = jax.lax.cond(ready, lambda: jax.lax.scan(step, learner, keys), nothing)
    return learner._replace(replay=kept), jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics)


def check_sizes(settings: Any) -> None:
    """Complain about sizes that do not fit together."""
    validation.require_positive(
        rollout=settings.rollout, worlds=settings.worlds, batch=settings.batch, updates=settings.updates
    )
    validation.require_ranges(settings)
    validation.require_choices(settings)
    networks.require_widths(settings.hidden)
    first = settings.epsilon(1)
    if isinstance(first, int | float) and first > 1:
        raise InputError(f"epsilon begins at {first:g}; a share of random actions is at most 1.")
    block = settings.rollout * settings.worlds
    if settings.capacity < block or settings.capacity % block:
        raise InputError(
            f"A buffer of {settings.capacity} transitions cannot be filled in blocks of {block} ({settings.rollout} "
            f"steps in {settings.worlds} worlds); make the capacity a multiple, such as "
            f"{max(1, settings.capacity // block) * block}."
        )
    if settings.double and not settings.period:
        raise InputError("A double learner needs a target network, but the period is 0; give one, such as 500.")
    if settings.warmup > settings.capacity:
        raise InputError(
            f"Learning is to begin after {settings.warmup} transitions, but the buffer holds {settings.capacity}."
        )
