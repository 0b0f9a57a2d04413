"""One environment for each seed."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from lexrl.errors import InputError
from lexrl.types import Env


class PerSeed(eqx.Module):
    """One environment for each seed, of the same kind and size: `per_seed([...])` makes it."""

    stacked: Any
    count: int = eqx.field(static=True)

    def one(self, i: int) -> Any:
        """The environment of one seed."""
        return jax.tree.map(lambda leaf: leaf[i], self.stacked)


def per_seed(envs: Sequence[Env]) -> PerSeed:
    """Give every seed an environment of its own; arrays that differ in length are padded."""
    if not isinstance(envs, Sequence) or not envs or not all(isinstance(env, eqx.Module) for env in envs):
        raise InputError(
            "per_seed takes a list of lexrl's environments, one for each seed, as in [GridNav.generate(5)]."
        )
    if len({env.spec for env in envs}) != 1 or len({jax.tree.structure(env) for env in envs}) != 1:
        raise InputError(
            "The environments differ in their spaces, signals or episode length; all seeds need environments of one "
            "kind."
        )
    leaves = [jax.tree.leaves(env) for env in envs]
    padded = [_stack_padded(each) for each in zip(*leaves, strict=True)]
    return PerSeed(jax.tree.unflatten(jax.tree.structure(envs[0]), padded), len(envs))


def _stack_padded(leaves: Sequence[Any]) -> np.ndarray:
    """Stack arrays that may differ in length along an axis, repeating each one's last entry there."""
    arrays = [np.asarray(leaf) for leaf in leaves]
    shape = np.max([array.shape for array in arrays], axis=0)
    padded = [
        np.pad(array, [(0, int(n)) for n in shape - np.array(array.shape, int)], mode="edge") if array.ndim else array
        for array in arrays
    ]
    return np.stack(padded)
