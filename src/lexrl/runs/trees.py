"""Trees of arrays as named arrays, and back: what a file can hold."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from lexrl.errors import InputError


def flatten(tree: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Every array of a tree by its path, as in `train_state/agent/net/weights/0`."""
    return {f"{prefix}{_path(path)}": np.asarray(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def rebuild(template: Any, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Any:
    """A tree like the template (arrays, or just their shapes) from named arrays."""

    def one(path: Any, leaf: Any) -> np.ndarray:
        name = f"{prefix}{_path(path)}"
        if name not in arrays:
            raise InputError(f"The file has no {name!r}, which this lexrl needs; use the version that wrote it.")
        found = arrays[name]
        if found.shape != tuple(leaf.shape) or found.dtype != leaf.dtype:
            raise InputError(
                f"In the file {name!r} is {found.dtype}{list(found.shape)}, but {leaf.dtype}{list(leaf.shape)} is "
                "needed; the settings are not those it was written with."
            )
        return found

    return jax.tree_util.tree_map_with_path(one, template)


def _path(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
