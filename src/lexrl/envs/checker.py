"""A world against its own spec: what it shows, pays and remembers, and a sentence where that does not fit."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.envs.crowd import BatchedStep
from lexrl.errors import InputError
from lexrl.types import Discrete, Env, Spec, Step


def check_env(world: Env, key: Array) -> None:
    """Complain about a world in JAX that does not answer as its spec says; nothing is computed, only shapes."""
    spec = world.spec
    state, obs = jax.eval_shape(lambda key: world.reset(key), key)
    check_observation(spec, obs, "reset")
    shape, kind = ((), jnp.int32) if isinstance(spec.action_space, Discrete) else (spec.action_space.shape, jnp.float32)
    action = jax.ShapeDtypeStruct(shape, kind)
    answer = jax.eval_shape(lambda *given: world.step(*given), state, action, key)
    check_step(spec, answer)
    before, after = (_parts(one) for one in (state, answer.state))
    for part in before | after:
        if before.get(part) != after.get(part):
            raise InputError(
                f"state{part} is {before.get(part, 'nothing')} after a reset, but {after.get(part, 'nothing')} after a "
                "step; a state keeps its parts, their shapes and types: convert one of them."
            )


def check_step(spec: Spec, answer: Any) -> None:
    """Complain about a step that does not answer as the spec says."""
    if not all(hasattr(answer, name) for name in Step._fields):
        raise InputError(
            f"A step answers with {type(answer).__name__}; it must be a lexrl.types.Step({', '.join(Step._fields)})."
        )
    check_observation(spec, answer.obs, "step")
    _check_signals(spec, answer.signals)
    if np.shape(answer.discount) != ():
        raise InputError(
            f"A step's discount is {_shown(answer.discount)}; it must be a single number, 0 where the task ended and "
            "else 1: try jnp.where(ended, 0.0, 1.0)."
        )


def check_batched_step(spec: Spec, answers: BatchedStep) -> None:
    """The same for several worlds at once, whose numbers are in arrays already: only shapes are left to look at."""
    shape = () if isinstance(spec.observation_space, Discrete) else spec.observation_space.shape
    if answers.obs.shape[1:] != shape:
        check_observation(spec, answers.obs[0], "step")
    if answers.signals.shape[1:] != (len(spec.objectives),):
        _check_signals(spec, answers.signals[0])


def _check_signals(spec: Spec, signals: Any) -> None:
    if np.shape(signals) != (len(spec.objectives),):
        raise InputError(
            f"A step pays {_shown(signals)}, but the spec's signals are {', '.join(spec.objectives)}; "
            f"pay {_text('float', (len(spec.objectives),))}, one number for each."
        )


def check_observation(spec: Spec, obs: Any, when: str) -> None:
    """Complain about an observation that is not what the spec says."""
    space = spec.observation_space
    shape, kind, name = (
        ((), jnp.integer, "integer") if isinstance(space, Discrete) else (space.shape, jnp.floating, "float")
    )
    if np.shape(obs) != shape or not jnp.issubdtype(_dtype(obs), kind):
        raise InputError(
            f"A {when} shows {_shown(obs)}, but the spec says {space}, which is {_text(name, shape)}; "
            "change one of them."
        )


def _parts(state: Any) -> dict[str, str]:
    """Every array of a state, by where it is."""
    return {jax.tree_util.keystr(path): _shown(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(state)}


def _shown(given: Any) -> str:
    return _text(str(_dtype(given)), np.shape(given))


def _dtype(given: Any) -> Any:
    return given.dtype if hasattr(given, "dtype") else np.asarray(given).dtype


def _text(name: str, shape: tuple[int, ...]) -> str:
    return f"{name}[{','.join(map(str, shape))}]"
