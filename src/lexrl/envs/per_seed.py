"""Several worlds of one kind: one for each seed."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from lexrl.errors import InputError
from lexrl.types import Env


class PerSeed(eqx.Module):
    """One world for each member, of the same kind and size: `per_seed([...])` makes it."""

    stacked: Any
    count: int = eqx.field(static=True)
    recipe: tuple[Any, dict[str, Any]] | None = eqx.field(static=True, default=None)
    """The function that makes them and what it is given, so that a file need not hold them."""

    def one(self, i: int) -> Any:
        """The world of one member."""
        return jax.tree.map(lambda leaf: leaf[i], self.stacked)


def per_seed(worlds: Sequence[Env]) -> PerSeed:
    """Give every seed a world of its own; slots that only some of them need are padded."""
    if len({world.spec for world in worlds}) != 1 or len({jax.tree.structure(world) for world in worlds}) != 1:
        raise InputError("The worlds differ in their spaces, signals or length; all seeds need worlds of one kind.")
    leaves = [jax.tree.leaves(world) for world in worlds]
    padded = [_stack_padded(each) for each in zip(*leaves, strict=True)]
    return PerSeed(jax.tree.unflatten(jax.tree.structure(worlds[0]), padded), len(worlds))


def _stack_padded(leaves: Sequence[Any]) -> np.ndarray:
    """Stack arrays that may differ in length along an axis, repeating each one's last entry there."""
    arrays = [np.asarray(leaf) for leaf in leaves]
    shape = np.max([array.shape for array in arrays], axis=0)
    padded = [
        np.pad(array, [(0, int(n)) for n in shape - np.array(array.shape, int)], mode="edge") if array.ndim else array
        for array in arrays
    ]
    return np.stack(padded)
