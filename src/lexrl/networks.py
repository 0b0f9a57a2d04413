"""Actor and critic: multilayer perceptrons, or modules of your own (docs/custom-networks.md)."""

import math
from collections.abc import Callable, Sequence
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import optimizers
from lexrl.distributions import Categorical, Distribution, Normal, Squashed
from lexrl.errors import InputError
from lexrl.optimizers import Optimizer, OptState, as_optimizer, find_function
from lexrl.perceptrons import MLP, Activation, Normalizer, Space, mlp, require_layers
from lexrl.reprs import short_repr
from lexrl.set_encoders import Mode, SetEncoder, SetNetwork
from lexrl.types import Box, Discrete, Spec

Builder = Callable[[Array, Spec], eqx.Module] | SetEncoder
"""Builds a module of your own from a random key and the spec. The module is called with *one* observation (a float
array of the observation's shape, or an integer) and returns one array; batches are handled by `jax.vmap`. Or a network
for sets, `lexrl.SetEncoder`."""


Features = Callable[[Array], Array]
"""A function of one observation."""


class CustomNetwork(eqx.Module):
    """A module of the user's: its float arrays are the parameters, all the rest is part of the program."""

    parameters: Any
    structure: Any = eqx.field(static=True)
    input_ndim: int = eqx.field(static=True)

    def __call__(self, obs: Array) -> Float[Array, "..."]:
        module: Any = eqx.combine(self.parameters, self.structure)
        batch = obs.shape[: obs.ndim - self.input_ndim]
        if not batch:
            return module(obs)
        out = jax.vmap(module)(obs.reshape(-1, *obs.shape[len(batch) :]))
        return out.reshape(*batch, *out.shape[1:])

    def shrink(self, factor: float) -> "CustomNetwork":
        """With its output divided by a factor if it is one for sets; what a network of the user's is made of is not
        known, so it stays as it is."""
        if not isinstance(self.parameters, SetNetwork):
            return self
        return CustomNetwork(self.parameters.shrink(factor), self.structure, self.input_ndim)


Network = MLP | CustomNetwork


def build_network(build: Builder, key: Array, spec: Spec, output_shape: tuple[int, ...], what: str) -> CustomNetwork:
    """The user's module, after checking what it returns; `what` is its name in errors, as in `actor`."""
    try:
        module = build.build(key, spec, output_shape) if isinstance(build, SetEncoder) else build(key, spec)
    except TypeError as error:
        raise InputError(f"The function for the {what} cannot be called with a key and a spec ({error}).") from error
    if not isinstance(module, eqx.Module) or not callable(module):
        raise InputError(f"The function for the {what} returned {module!r}; it must return a callable eqx.Module.")
    parameters, structure = eqx.partition(module, eqx.is_inexact_array)
    if any(eqx.is_array(leaf) for leaf in jax.tree.leaves(structure)):
        raise InputError(f"The {what} has arrays of integers, which cannot be trained; make them floats or constants.")
    one = one_observation(spec.observation_space)
    network = CustomNetwork(parameters, structure, len(one.shape))
    out = jax.eval_shape(network, one)
    if out.shape != output_shape:
        raise InputError(
            f"The {what} returns an array of shape {out.shape} for one observation; it must have shape {output_shape}."
        )
    return network


def as_builder(given: Any) -> Any:
    """A string is the mode of a set encoder, or names a function, as in `my_package.nets:build`."""
    if given in get_args(Mode):
        return SetEncoder(given)
    found = find_function(given) if isinstance(given, str) else given
    if found is not None and not isinstance(found, SetEncoder) and not callable(found):
        raise InputError(f"A network is given as a function (key, spec) -> eqx.Module, not as {found!r}.")
    return found


def one_observation(space: Space) -> jax.ShapeDtypeStruct:
    """Shape and type of one observation."""
    if isinstance(space, Discrete):
        return jax.ShapeDtypeStruct((), jnp.int32)
    return jax.ShapeDtypeStruct(space.shape, jnp.float32)


def require_max_grad_norm(value: Any) -> None:
    """Refuse a negative norm; traced values pass."""
    if isinstance(value, int | float) and not value >= 0:
        raise InputError(f"max_grad_norm is {value:g}; it must be 0 or more, and with 0 gradients are not clipped.")


class Actor(eqx.Module):
    """A policy: a network, and for continuous actions a standard deviation for each dimension."""

    net: Network
    log_std: Array | None
    bounds: tuple[float, float] | None = eqx.field(static=True)
    """Squash actions into these; None: leave them unbounded."""

    def __call__(self, obs: Array) -> Distribution:
        out = self.net(obs)
        if self.log_std is None:
            return Categorical(out)
        normal = Normal(out, jnp.broadcast_to(self.log_std, out.shape))
        if self.bounds is None:
            return normal
        return Squashed(normal, *(jnp.full(out.shape, end) for end in self.bounds))

    def soften(self, factor: float) -> "Actor":
        """A policy closer to uniform: logits are divided by the factor, standard deviations multiplied by it. The
        logits of a network of the user's stay as they are."""
        if self.log_std is not None:
            return eqx.tree_at(lambda actor: actor.log_std, self, self.log_std + math.log(factor))
        return eqx.tree_at(lambda actor: actor.net, self, self.net.shrink(factor))


class Networks(eqx.Module):
    """Actor and critic, two separate networks, and how they are trained."""

    hidden_sizes: tuple[int, ...] = eqx.field(static=True, default=(64, 64))
    """Sizes of the hidden layers of the actor and the critic; none: linear."""
    critic_hidden_sizes: tuple[int, ...] | None = eqx.field(static=True, default=None)
    """Sizes of the hidden layers of the critic, if they differ; empty: linear in the features."""
    activation: Activation = eqx.field(static=True, default="tanh")
    use_bias: bool = eqx.field(static=True, default=True)
    """Use biases; with neither hidden layers nor biases, networks are tables if observations are discrete."""
    normalize_observations: bool = eqx.field(static=True, default=True)
    """Subtract the running mean of the observations and divide by their running standard deviation; not for discrete
    observations, custom networks and critic features."""
    critic_features: Features | None = eqx.field(static=True, default=None)
    """A function of the observation whose result is the input of the critic."""
    squash_output: bool = eqx.field(static=True, default=False)
    """Squash continuous actions to their bounds with tanh."""
    init_std: float = 0.6
    """Initial standard deviation of continuous actions."""
    actor: Builder | None = eqx.field(static=True, converter=as_builder, default=None)
    """A function (key, spec) -> eqx.Module that builds the actor's network: logits, or means of continuous actions;
    'attention', 'pooling' or 'pairs' for observations of rows x features."""
    critic: Builder | None = eqx.field(static=True, converter=as_builder, default=None)
    """A function (key, spec) -> eqx.Module that builds the critic: one value per objective; 'attention', 'pooling'
    or 'pairs' for observations of rows x features."""
    optimizer: Optimizer = eqx.field(static=True, converter=as_optimizer, default="adam")
    """'adam', 'sgd' (as the theorems require), or an optax optimizer such as optax.adamw."""
    max_grad_norm: float = 0.5
    """Gradients are clipped to this norm; 0: no clipping."""

    __repr__ = short_repr

    def __check_init__(self):
        require_layers(self.activation, self.hidden_sizes, self.critic_hidden_sizes or ())
        require_max_grad_norm(self.max_grad_norm)
        if isinstance(self.init_std, int | float) and not self.init_std > 0:
            raise InputError(f"init_std is {self.init_std:g}; it must be above 0.")

    def init_actor(self, key: Array, spec: Spec) -> Actor:
        """A new policy, nearly uniform (or centered) unless the network is your own."""
        space = spec.action_space
        shape = (space.n,) if isinstance(space, Discrete) else space.shape
        if self.actor is None:
            net = self._mlp(key, spec.observation_space, shape, self.hidden_sizes, 0.01)
        else:
            net = build_network(self.actor, key, spec, shape, "actor")
        if isinstance(space, Discrete):
            return Actor(net, None, None)
        if len(shape) != 1:
            raise InputError(f"Actions are arrays of shape {shape}; an actor needs actions that are vectors.")
        bounds = (float(space.low), float(space.high))
        if self.squash_output and not all(map(math.isfinite, bounds)):
            raise InputError(f"Actions lie in {bounds}; squash_output needs finite bounds: leave it out.")
        return Actor(net, jnp.full(shape, jnp.log(self.init_std)), bounds if self.squash_output else None)

    def init_critic(self, key: Array, spec: Spec, output_shape: tuple[int, ...]) -> Network:
        """A new critic, `[M]` for values of states and `[M, A]` for values of actions."""
        seen = spec._replace(observation_space=self.feature_space(spec.observation_space))
        if self.critic is not None:
            return build_network(self.critic, key, seen, output_shape, "critic")
        sizes = self.hidden_sizes if self.critic_hidden_sizes is None else self.critic_hidden_sizes
        return self._mlp(key, seen.observation_space, output_shape, sizes, 0.1, plain=self.critic_features is not None)

    def feature_space(self, space: Space) -> Space:
        """The space of what the critic sees of an observation."""
        if self.critic_features is None:
            return space
        return Box(jax.eval_shape(self.critic_features, one_observation(space)).shape)

    def init_opt_state(self, parameters: Any) -> OptState:
        """The optimizer's state before the first step."""
        return optimizers.init(self.optimizer, parameters)

    def gradient_step(
        self, parameters: Any, gradient: Any, opt_state: OptState, learning_rate: Any
    ) -> tuple[Any, OptState]:
        """The parameters after a step down the gradient. An optimizer may move what has none, as weight decay does; so
        normalizers are put back."""
        moved, opt_state = optimizers.step(
            self.optimizer, self.max_grad_norm, parameters, gradient, opt_state, learning_rate
        )
        return with_normalizers(moved, normalizers(parameters)), opt_state

    def _mlp(
        self,
        key: Array,
        space: Space,
        shape: tuple[int, ...],
        sizes: Sequence[int],
        output_scale: float,
        plain: bool = False,
    ) -> MLP:
        return mlp(
            key,
            space,
            shape,
            sizes,
            activation=self.activation,
            use_bias=self.use_bias,
            output_scale=output_scale,
            normalize_observations=self.normalize_observations and not plain,
        )


def normalizers(network: Any) -> list[Normalizer]:
    """All that are in an actor or critic."""
    leaves = jax.tree.leaves(network, is_leaf=lambda part: isinstance(part, Normalizer))
    return [part for part in leaves if isinstance(part, Normalizer)]


def with_normalizers(network: Any, replacements: list[Normalizer]) -> Any:
    """The actor or critic with others in their place."""
    return eqx.tree_at(normalizers, network, replacements) if replacements else network


def minibatches(key: Array, size: int, epochs: int, parts: int) -> Array:
    """The rows of each gradient step on a rollout, `[epochs x parts, size / parts]`: reshuffled in every epoch."""
    orders = jax.vmap(lambda key: shuffled(key, size, parts))(jax.random.split(key, epochs))
    return orders.reshape(epochs * parts, -1)


def shuffled(key: Array, size: int, parts: int) -> Array:
    """The numbers 0 .. size-1 in a random order, as `[parts, size / parts]`: minibatches of a rollout.

    `i -> a i + b mod size` with a random `a` that shares no divisor with the size visits every number once, and costs
    nothing; a true shuffle would cost as much as the gradient steps. The factors are near the golden section of the
    size, so that each part takes evenly from the whole rollout.
    """
    require_shuffled(size)
    coprime = [a for a in range(1, size + 1) if math.gcd(a, size) == 1]
    golden = [a for a in coprime if 0.37 * size < min(a, size - a) < 0.395 * size] or coprime
    few = jnp.asarray(golden[:: -(-len(golden) // 256)], jnp.uint32)
    bits = jax.random.bits(key, (2,), jnp.uint32)
    factor, offset = few[bits[0] % few.shape[0]], bits[1] % size
    return ((jnp.arange(size, dtype=jnp.uint32) * factor + offset) % size).astype(jnp.int32).reshape(parts, -1)


def require_shuffled(size: int) -> None:
    """Refuse a rollout that is too long for `shuffled`: its products must fit into 32 bits."""
    if size >= 2**16:
        raise InputError(f"A rollout of {size} transitions is too long to shuffle; use fewer steps or environments.")
