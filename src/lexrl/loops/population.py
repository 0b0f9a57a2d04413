"""Seeds side by side: how a population is laid out over the machine's devices.

Each member has a seed, hyper-parameters of its own, and an environment, shared or its own. Members are dealt out to the
devices; on a device they run one after the other through the *same* compiled program, so that no member's numbers
depend on how many others there are or where they run.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lexrl.backend import ensure_configured, inline_jit, opaque_loop
from lexrl.envs.batched import over_envs
from lexrl.envs.per_seed import PerSeed
from lexrl.errors import InputError
from lexrl.order import Order
from lexrl.types import ActsByEnv, Algorithm, AnyArray, EnvSpec, Spec, State


class Layout(NamedTuple):
    """What the compiled functions are specialized on: hashable, one static argument everywhere."""

    per_seed_env: bool
    columns: tuple[int, ...]
    """Of the environment's signals, the one of each objective."""
    signs: tuple[float, ...]
    mesh: Mesh


class Population(NamedTuple):
    """What is trained: the leading axis of every array is the member, padded to a multiple of the devices."""

    seeds: Array
    algorithms: Algorithm
    """Float leaves `[members]`."""
    env: Any
    """Shared by all members, or one each (`per_seed_env`); empty if it is stepped from Python."""
    per_seed_env: bool
    spec: EnvSpec
    """The environment's own spec, with all its signals."""
    order: Order
    mesh: Mesh
    share: Array
    """Members on each device."""
    size: int
    """Members without the padding."""

    @property
    def agent_spec(self) -> Spec:
        """The environment as agents see it: with objectives in place of signals."""
        return self.order.spec(self.spec)

    @property
    def layout(self) -> Layout:
        """What compiled functions need to know before they are compiled."""
        columns = tuple(int(column) for column in self.order.columns(self.spec.signals))
        return Layout(self.per_seed_env, columns, tuple(float(sign) for sign in self.order.signs), self.mesh)


def members(algorithm: Algorithm | Sequence[Algorithm], env: Any, seeds: Sequence[int]) -> list[Algorithm]:
    """One algorithm for each seed, after checking that what was given fits together."""
    n = len(seeds)
    if n == 0:
        raise InputError("No seeds were given; give at least one.")
    if not all(0 <= seed < 2**32 for seed in seeds):
        raise InputError(f"The seeds {list(seeds)} must be whole numbers from 0 to {2**32 - 1}.")
    each = list(algorithm) if isinstance(algorithm, Sequence) else [algorithm] * n
    if len(each) != n:
        raise InputError(f"{len(each)} algorithms were given for {n} seeds; give one for all, or one for each seed.")
    if len({jax.tree.structure(one) for one in each}) != 1:
        raise InputError(
            "The algorithms of a run may differ in float hyper-parameters only; train these in separate runs."
        )
    if isinstance(env, PerSeed) and env.count != n:
        raise InputError(f"{env.count} environments were given for {n} seeds; give one for all, or one for each seed.")
    return each


def make_population(
    algorithm: Algorithm | Sequence[Algorithm],
    env: Any,
    order: Order,
    seeds: Sequence[int],
    devices: Sequence[Any] | None = None,
) -> Population:
    """Lay out one member for each seed: one algorithm for all of them, or one each (same class, other floats)."""
    ensure_configured()
    each, n = members(algorithm, env, seeds), len(seeds)
    per_seed_env = isinstance(env, PerSeed)
    spec = env.one(0).spec if per_seed_env else env.spec
    shared_env = env.stacked if per_seed_env else env if isinstance(env, eqx.Module) else ()
    order.columns(spec.signals)
    chosen = (list(devices) if devices is not None else jax.devices())[:n]
    mesh = Mesh(np.array(chosen), ("members",))
    deal, everywhere = NamedSharding(mesh, PartitionSpec("members")), NamedSharding(mesh, PartitionSpec())
    padding = np.minimum(np.arange(-(-n // len(chosen)) * len(chosen)), n - 1)
    stacked = jax.tree.map(lambda *leaves: np.stack([number(leaf) for leaf in leaves])[padding], *each)
    env_arrays = jax.tree.map(lambda leaf: number(leaf)[padding] if per_seed_env else number(leaf), shared_env)
    return Population(
        seeds=jax.device_put(np.asarray(seeds, np.uint32)[padding], deal),
        algorithms=jax.device_put(stacked, deal),
        env=jax.device_put(env_arrays, deal if per_seed_env else everywhere),
        per_seed_env=per_seed_env,
        spec=spec,
        order=order,
        mesh=mesh,
        share=jax.device_put(np.int32(len(padding) // len(chosen)), everywhere),
        size=n,
    )


def number(leaf: Any) -> np.ndarray:
    """A hyper-parameter as it is computed with: floats in single precision, integers such as `gamma=1` as floats."""
    array = np.asarray(float(leaf) if type(leaf) is int else leaf)
    return array.astype(np.float32) if np.issubdtype(array.dtype, np.floating) else array


def act_in_training(algorithm: Algorithm, agent: State, obs: AnyArray, keys: Array) -> Array:
    """An action for each of the `N` environments; an algorithm may play differently in some of them."""
    n = algorithm.num_envs
    if isinstance(algorithm, ActsByEnv):
        act_in = algorithm.act_in
        return over_envs(lambda env, obs, key: act_in(agent, env, obs, key), n)(jnp.arange(n), obs, keys)
    return over_envs(lambda obs, key: algorithm.act(agent, obs, key), n)(obs, keys)


def over_members(one: Callable[..., Any], mesh: Mesh, shared: tuple[bool, ...]) -> Callable[..., Any]:
    """Run `one(...)` for every member: spread over the devices, one after the other on each.

    `shared` says which arguments are the same for all members. The function returned takes the number of members on
    each device first, as data: for one or two members XLA would otherwise compile another program (`opaque_loop`).
    """

    def on_device(share: Array, *arguments: Any) -> Any:
        @inline_jit
        def member(i: Array) -> Any:
            own = [
                argument if same else jax.tree.map(lambda leaf: leaf[i], argument)
                for argument, same in zip(arguments, shared, strict=True)
            ]
            return one(*own)

        count = next(
            leaf.shape[0]
            for argument, same in zip(arguments, shared, strict=True)
            if not same
            for leaf in jax.tree.leaves(argument)
        )
        shapes = jax.eval_shape(member, jnp.int32(0))
        empty = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), shapes)

        def run_member(i: Array, done: Any) -> Any:
            return jax.tree.map(lambda all_, new: all_.at[i].set(new), done, member(i))

        return opaque_loop(share, run_member, empty)

    deal, everywhere = PartitionSpec("members"), PartitionSpec()
    specs = (everywhere, *(everywhere if same else deal for same in shared))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=deal, check_vma=False)


def rewards(signals: AnyArray, columns: tuple[int, ...], signs: tuple[float, ...]) -> Array:
    """Signals `[..., K]` as rewards `[..., M]`: `Order.apply` with the look-up unrolled."""
    return jnp.stack([signals[..., c] if s > 0 else -signals[..., c] for c, s in zip(columns, signs, strict=True)], -1)
