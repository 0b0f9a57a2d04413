"""Optimizers: how a gradient moves the parameters. Nothing else calls optax to do so."""

import contextlib
import contextvars
import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from lexrl.errors import InputError

Optimizer = str | optax.GradientTransformation | Callable[[Any], optax.GradientTransformation]
"""`"adam"`, `"sgd"`, a function from a learning rate to an optax transformation (as `optax.adamw` is one), or a
transformation. A transformation has a learning rate of its own: the algorithm's is not used."""

OptState = Any
"""An optimizer's own state."""

OPTIMIZERS: dict[str, Callable[[Any], optax.GradientTransformation]] = {
    "adam": partial(optax.adam, eps=1e-5),
    "sgd": optax.sgd,
}


def as_optimizer(given: Any) -> Any:
    """A string is the name of an optimizer, or names a function, as in `optax:adamw`."""
    if isinstance(given, str) and given not in OPTIMIZERS and ":" in given:
        given = find_function(given)
    if given in OPTIMIZERS if isinstance(given, str) else callable(given) or _is_transformation(given):
        return given
    raise InputError(
        f"The optimizer {given!r} is not known; use 'adam', 'sgd', a function from a learning rate to an optax "
        "transformation, such as optax.adamw, or such a transformation."
    )


def optimizer_name(optimizer: Optimizer) -> str:
    """In reports."""
    return {"adam": "Adam", "sgd": "SGD"}[optimizer] if isinstance(optimizer, str) else "a custom one"


def init(optimizer: Optimizer, parameters: Any) -> OptState:
    """The state before the first step."""
    return _transformation(optimizer, 0.0).init(parameters)


def step(
    optimizer: Optimizer,
    max_grad_norm: Any,
    parameters: Any,
    gradient: Any,
    opt_state: OptState,
    learning_rate: Any,
) -> tuple[Any, OptState]:
    """The parameters after a step *down* the gradient, whose norm is clipped to `max_grad_norm` first (0: never)."""
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
    factor = jnp.where((max_grad_norm > 0) & (norm > max_grad_norm), max_grad_norm / norm, 1.0)
    clipped = jax.tree.map(lambda leaf: leaf * factor, gradient)
    changes, opt_state = _transformation(optimizer, learning_rate).update(clipped, opt_state, parameters)
    return jax.tree.map(lambda old, change: old + change, parameters, changes), opt_state


_reading = contextvars.ContextVar("reading", default=False)


@contextlib.contextmanager
def without_code() -> Iterator[None]:
    """Inside, no function is imported by its name: text from a file must not have code run."""
    token = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(token)


def find_function(place: str) -> Any:
    """The function at `module:function`."""
    if _reading.get():
        raise InputError(f"The file names the function {place!r}, and files may not name code; give it again yourself.")
    module, _, name = place.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise InputError(
            f"There is no {name!r} in a module {module!r}; write the place of a function as in 'my_package.nets:build'."
        ) from None


def _transformation(optimizer: Optimizer, learning_rate: Any) -> Any:
    if isinstance(optimizer, optax.GradientTransformation):
        return optimizer
    build = OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer
    try:
        built = build(learning_rate)
    except TypeError as error:
        raise InputError(f"The optimizer {optimizer!r} cannot be called with a learning rate ({error}).") from error
    if not _is_transformation(built):
        raise InputError(f"The optimizer {optimizer!r} returned {built!r}; it must return an Optax transformation.")
    return built


def _is_transformation(given: Any) -> bool:
    return isinstance(given, optax.GradientTransformation)
