"""An environment that goes bad."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from lexrl.types import Step


class Poisoned(eqx.Module):
    """An environment that pays `poison` from a given step of an episode on, one for each signal."""

    inner: Any
    since: Any
    poison: Any

    @property
    def spec(self):
        return self.inner.spec

    def reset(self, key):
        state, obs = self.inner.reset(key)
        return (state, jnp.int32(0)), obs

    def step(self, state, action, key):
        inner, clock = state
        answer = self.inner.step(inner, action, key)
        signals = jnp.where(clock + 1 >= self.since, self.poison, answer.signals)
        return Step((answer.state, clock + 1), answer.obs, signals, answer.discount)
