"""Does an environment keep to its own spec? `lexrl.check_env(env)` raises an error that says what does not fit."""

import contextlib
import reprlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lexrl.backend import ensure_configured
from lexrl.envs.factory import as_env
from lexrl.envs.per_seed import PerSeed
from lexrl.envs.vector import GymVectorEnv
from lexrl.errors import InputError
from lexrl.types import Batchable, BatchedStep, Box, Discrete, EnvSpec, Step


def check_env(env: Any) -> None:
    """Raise an error if an environment does not do what its spec says.

    For an environment written in JAX nothing is computed, only shapes are compared; any other takes one step.

    Args:
        env: an environment, or anything else that `lexrl.train` takes for one.
    """
    ensure_configured()
    env = as_env(env)
    env = env.one(0) if isinstance(env, PerSeed) else env
    check_spec(env)
    if isinstance(env, eqx.Module):
        _check_fields(env)
        _check_shapes(env)
    elif isinstance(env, Batchable):
        _check_one_batched_step(env)
    else:
        key = jax.random.key(0)
        state, obs = env.reset(key)
        check_observation(env.spec, obs, "reset")
        check_step(env.spec, env.step(state, _zero_actions(env.spec), key))


def check_spec(env: Any) -> None:
    """Raise an error if what an environment says of itself cannot be."""
    name, spec = type(env).__name__, env.spec
    if not isinstance(spec, EnvSpec):
        raise InputError(
            f"The spec of {name} is {reprlib.repr(spec)}; it must be a "
            f"lexrl.types.EnvSpec({', '.join(EnvSpec._fields)})."
        )
    for what, space in (("observation_space", spec.observation_space), ("action_space", spec.action_space)):
        if not _is_space(space):
            raise InputError(
                f"The {what} of {name} is {reprlib.repr(space)}; it must be a lexrl.types.Discrete(n) or a "
                "lexrl.types.Box(shape, low, high) of whole sizes."
            )
    signals = spec.signals
    if not isinstance(signals, tuple) or not signals or not all(isinstance(one, str) and one for one in signals):
        raise InputError(f"The signals of {name} are {reprlib.repr(signals)}; name them, as in ('reward', 'cost').")
    if len(set(signals)) < len(signals):
        raise InputError(f"The signals of {name} are {', '.join(signals)}; give each a name of its own.")
    steps = spec.max_episode_steps
    if not _is_whole(steps):
        raise InputError(
            f"The max_episode_steps of {name} is {reprlib.repr(steps)}; it must be a whole number from 1 on: after so "
            "many steps an episode that has not ended is truncated."
        )


def check_step(spec: EnvSpec, step: Any) -> None:
    """Raise an error if a step does not fit the spec."""
    if not isinstance(step, Step):
        raise InputError(
            f"A step returns a {type(step).__name__}; it must return a lexrl.types.Step({', '.join(Step._fields)})."
        )
    check_observation(spec, step.obs, "step")
    _check_signals(spec, step.signals)
    if np.shape(step.discount) != ():
        raise InputError(
            f"A step's discount is {_shown(step.discount)}; it must be a single number, 0 where the task ended and "
            "else 1: try jnp.where(terminated, 0.0, 1.0)."
        )


def check_batched_step(spec: EnvSpec, step: BatchedStep) -> None:
    """The same for several environments at once, whose numbers are in arrays already: only shapes can be wrong."""
    shape = () if isinstance(spec.observation_space, Discrete) else spec.observation_space.shape
    if step.obs.shape[1:] != shape:
        check_observation(spec, step.obs[0], "step")
    if step.signals.shape[1:] != (len(spec.signals),):
        _check_signals(spec, step.signals[0])


def check_observation(spec: EnvSpec, obs: Any, when: str) -> None:
    """Raise an error if an observation does not fit the spec; `when` is "reset" or "step"."""
    space = spec.observation_space
    shape, kind, name = (
        ((), jnp.integer, "integer") if isinstance(space, Discrete) else (space.shape, jnp.floating, "float")
    )
    if np.shape(obs) != shape or not jnp.issubdtype(_dtype(obs), kind):
        raise InputError(
            f"A {when} returns the observation {_shown(obs)}, but the spec says {space}, which is "
            f"{_text(name, shape)}; change one of them."
        )


def _is_space(space: Any) -> bool:
    if isinstance(space, Discrete):
        return _is_whole(space.n)
    return isinstance(space, Box) and isinstance(space.shape, tuple) and all(map(_is_whole, space.shape))


def _is_whole(given: Any) -> bool:
    """A number of something, from 1 on."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool) and bool(given >= 1)


def _check_fields(env: eqx.Module) -> None:
    """What is not a number must be static: JAX computes with the rest."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(env):
        if not isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic | jax.Array):
            name = jax.tree_util.keystr(path)
            raise InputError(
                f"{type(env).__name__}{name} is {reprlib.repr(leaf)}, which JAX cannot compute with; declare the field "
                "as static, as in `field: str = eqx.field(static=True)`."
            )


def _check_shapes(env: Any) -> None:
    """Compare shapes and types without computing anything."""
    key = jax.random.key(0)
    state, obs = jax.eval_shape(lambda key: env.reset(key), key)
    check_observation(env.spec, obs, "reset")
    space = env.spec.action_space
    shape, dtype = ((), jnp.int32) if isinstance(space, Discrete) else (space.shape, jnp.float32)
    step = jax.eval_shape(lambda *given: env.step(*given), state, jax.ShapeDtypeStruct(shape, dtype), key)
    check_step(env.spec, step)
    before, after = (_parts(one) for one in (state, step.state))
    for part in before | after:
        if before.get(part) != after.get(part):
            raise InputError(
                f"state{part} is {before.get(part, 'missing')} after a reset, but {after.get(part, 'missing')} after a "
                "step; its parts, their shapes and types must stay the same: convert one of them."
            )


def _check_one_batched_step(env: Batchable) -> None:
    n = env.num_envs if isinstance(env, GymVectorEnv) else 1
    with contextlib.closing(env.batched(n)) as envs:
        keys = jax.random.split(jax.random.key(0), n)
        check_observation(env.spec, envs.reset(np.ones(n, bool), lambda: keys)[0], "reset")
        check_batched_step(env.spec, envs.step(_zero_actions(env.spec, n), lambda: keys))


def _zero_actions(spec: EnvSpec, *leading: int) -> np.ndarray:
    if isinstance(spec.action_space, Discrete):
        return np.zeros(leading, np.int32)
    return np.zeros((*leading, *spec.action_space.shape), np.float32)


def _check_signals(spec: EnvSpec, signals: Any) -> None:
    if np.shape(signals) != (len(spec.signals),):
        raise InputError(
            f"A step returns the signals {_shown(signals)}, but the spec names {', '.join(spec.signals)}; return "
            f"{_text('float', (len(spec.signals),))}, one number for each."
        )


def _parts(state: Any) -> dict[str, str]:
    """Every array of a state, by where it is."""
    return {jax.tree_util.keystr(path): _shown(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(state)}


def _shown(given: Any) -> str:
    return _text(str(_dtype(given)), np.shape(given))


def _dtype(given: Any) -> Any:
    if isinstance(given, jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic):
        return given.dtype
    return np.asarray(given).dtype


def _text(name: str, shape: tuple[int, ...]) -> str:
    return f"{name}[{','.join(map(str, shape))}]"
