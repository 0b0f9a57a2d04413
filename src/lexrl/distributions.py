"""What a policy says at a state: a distribution over actions. Leading axes are a batch.

Every distribution answers `sample(key)`, `mode()`, `log_prob(action)`, `entropy()` and `kl(other)`, the divergence
`KL(self || other)` from another one of its kind.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int


class Categorical(NamedTuple):
    """One of A actions."""

    logits: Float[Array, "*batch A"]

    def sample(self, key: Array) -> Int[Array, "*batch"]:
        return draw(jax.nn.softmax(self.logits), key)

    def mode(self) -> Int[Array, "*batch"]:
        return jnp.argmax(self.logits, axis=-1).astype(jnp.int32)

    def log_prob(self, action: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
        chosen = jnp.arange(self.logits.shape[-1]) == action[..., None]  # a sum is cheaper than a look-up, both ways
        return jnp.sum(jnp.where(chosen, jax.nn.log_softmax(self.logits), 0.0), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        logs = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(logs) * logs, axis=-1)

    def restrict(self, allowed: Bool[Array, "*batch A"]) -> "Categorical":
        """The same with only some of the actions."""
        return Categorical(jnp.where(allowed, self.logits, -1e9))  # its exponential is 0, and it is finite

    def kl(self, other: Any) -> Float[Array, "*batch"]:
        mine, theirs = jax.nn.log_softmax(self.logits), jax.nn.log_softmax(other.logits)
        return jnp.sum(jnp.exp(mine) * (mine - theirs), axis=-1)


class Normal(NamedTuple):
    """Independent normals, one for each dimension of the action. The environment clips what lies outside its box."""

    mean: Float[Array, "*batch D"]
    log_std: Float[Array, "*batch D"]

    def sample(self, key: Array) -> Float[Array, "*batch D"]:
        return self.mean + jnp.exp(self.log_std) * jax.random.normal(key, self.mean.shape)

    def mode(self) -> Float[Array, "*batch D"]:
        return self.mean

    def log_prob(self, action: Float[Array, "*batch D"]) -> Float[Array, "*batch"]:
        away = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * away**2 - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e), axis=-1)

    def kl(self, other: Any) -> Float[Array, "*batch"]:
        ratio = jnp.exp(2 * (self.log_std - other.log_std))
        away = (self.mean - other.mean) * jnp.exp(-other.log_std)
        return jnp.sum(0.5 * (ratio + away**2 - 1) + other.log_std - self.log_std, axis=-1)


class Squashed(NamedTuple):
    """A normal pressed into the box `[low, high]` by tanh. Its entropy has no formula: the normal's stands in."""

    normal: Normal
    low: float | Array
    high: float | Array

    def sample(self, key: Array) -> Float[Array, "*batch D"]:
        return self._press(self.normal.sample(key))

    def mode(self) -> Float[Array, "*batch D"]:
        return self._press(self.normal.mean)

    def log_prob(self, action: Float[Array, "*batch D"]) -> Float[Array, "*batch"]:
        inside = 1 - 1e-6  # the borders are infinitely far away
        unit = jnp.clip(2 * (action - self.low) / (self.high - self.low) - 1, -inside, inside)
        stretch = jnp.log((self.high - self.low) / 2 * (1 - unit**2))
        return self.normal.log_prob(jnp.arctanh(unit)) - jnp.sum(stretch, axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        return self.normal.entropy()

    def kl(self, other: Any) -> Float[Array, "*batch"]:
        return self.normal.kl(other.normal)  # the same map on both sides changes nothing

    def _press(self, x: Array) -> Array:
        return self.low + (self.high - self.low) * (jnp.tanh(x) + 1) / 2


Distribution = Categorical | Normal | Squashed


def draw(probabilities: Float[Array, "*batch A"], key: Array) -> Int[Array, "*batch"]:
    """Invert the distribution function. Impossible actions are left out: rounding could else reach them."""
    heights = jnp.where(probabilities > 0, jnp.cumsum(probabilities, axis=-1), -jnp.inf)
    top = jnp.max(heights, axis=-1, keepdims=True)
    at = jax.random.uniform(key, probabilities.shape[:-1])[..., None] * top
    return jnp.argmax(heights > at, axis=-1).astype(jnp.int32)
