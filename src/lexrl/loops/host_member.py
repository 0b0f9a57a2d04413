"""One member of the population on the host: the parts of its training that are compiled, and its keys."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.backend import opaque_loop
from lexrl.loops import chunks, keys
from lexrl.loops.chunks import Fault, TrainState
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population, act_in_training
from lexrl.types import Keys, Spec, Transition


class HostMember(NamedTuple):
    """One member of the population: its settings, its seed, and how the order reads its environment's signals.

    It is no `eqx.Module`: looking up a method of one costs more than a step of a small environment.
    """

    algorithm: Any
    seed: Array
    columns: np.ndarray
    signs: np.ndarray
    act_keys: Array
    """`[N]`; like the next one made only once, not at every step."""
    update_key: Array

    def init(self, spec: Spec) -> Any:
        return _init(self.algorithm, self.seed, spec)

    def act(self, agent: Any, obs: Any, time: int) -> np.ndarray:
        """An action for every environment."""
        return np.asarray(_act(self.algorithm, self.act_keys, agent, obs, np.uint32(time)))

    def update(self, state: TrainState, rollout: Transition) -> tuple[Any, Any, Fault]:
        return _update(self.algorithm, self.update_key, state.agent, state.iteration, state.fault, rollout)

    def rewards(self, signals: np.ndarray) -> np.ndarray:
        """Signals `[N, K]` as rewards `[N, M]`."""
        return (signals[:, self.columns] * self.signs).astype(np.float32)

    def keys(self, purpose: Purpose, envs: Any, times: Any) -> Keys:
        """A key for each environment, by its address; computed when it is asked for."""
        return lambda: _keys(self.seed, purpose, np.asarray(envs, np.uint32), np.asarray(times, np.uint32))


def unstack_members(population: Population) -> list[HostMember]:
    """Each member on its own."""
    columns = population.order.columns(population.spec.signals)
    each = unstack((population.algorithms, population.seeds), population.size)
    placed = [jax.device_put(one) for one in each]
    return [
        HostMember(algorithm, seed, columns, population.order.signs, *_streams(seed, algorithm.num_envs))
        for algorithm, seed in placed
    ]


def unstack(stacked: Any, count: int) -> list[Any]:
    """The tree of every member, as NumPy arrays."""
    arrays = jax.tree.map(np.asarray, stacked)
    return [jax.tree.map(lambda leaf, member=member: leaf[member], arrays) for member in range(count)]


@partial(jax.jit, static_argnames="spec")
def _init(algorithm: Any, seed: Array, spec: Spec) -> Any:
    return algorithm.init(spec, keys.stream(seed, Purpose.INIT))


@partial(jax.jit, static_argnames="num_envs")
def _streams(seed: Array, num_envs: int) -> tuple[Array, Array]:
    return keys.streams(seed, Purpose.ACT, num_envs), keys.stream(seed, Purpose.UPDATE)


@jax.jit
def _act(algorithm: Any, act_keys: Array, agent: Any, obs: Array, time: Array) -> Array:
    return act_in_training(algorithm, agent, obs, keys.at(act_keys, time))


@jax.jit
def _update(
    algorithm: Any, update_key: Array, agent: Any, iteration: Array, fault: Fault, rollout: Transition
) -> tuple[Any, Any, Fault]:
    def update(_: Any, carry: Any) -> Any:
        return algorithm.update(carry[0], rollout, keys.at(update_key, iteration))

    shapes = jax.eval_shape(update, 0, (agent, None))[1]
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    # A loop of one round: XLA then compiles the update as it does in the compiled loop, to the last bit.
    agent, metrics = opaque_loop(jnp.where(iteration >= 0, 1, 0), update, (agent, zeros))
    metrics = {name: jnp.asarray(value, jnp.float32) for name, value in metrics.items()}
    step = (iteration + 1) * algorithm.num_steps * algorithm.num_envs
    return agent, metrics, chunks.first_fault(fault, rollout.reward, metrics, step)


@partial(jax.jit, static_argnames="purpose")
def _keys(seed: Array, purpose: Purpose, envs: Array, times: Array) -> Array:
    return keys_at(seed, purpose, envs, times)


def keys_at(seed: Array, purpose: Purpose, envs: Array, times: Array) -> Array:
    """The key of each environment, at a time for all or one each."""
    return jax.vmap(lambda env, time: keys.at(keys.stream(seed, purpose, env), time))(
        envs, jnp.broadcast_to(times, envs.shape)
    )
