"""A figure as a value: drawn by matplotlib, shown by a notebook, encoded as PNG or SVG, saved to a file."""

import contextlib
import dataclasses
import io
import pathlib
from collections.abc import Iterator
from typing import Any

from lexrl import store
from lexrl.colors import FAINT, INK
from lexrl.errors import InputError, as_path

UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Metadata to leave out of each kind of file, so that the same picture has the same bytes."""


@dataclasses.dataclass(frozen=True)
class Picture:
    """A matplotlib figure with a fixed layout."""

    figure: Any
    """The `matplotlib.figure.Figure`."""

    @property
    def png(self) -> bytes:
        return self._encode("png")

    @property
    def svg(self) -> bytes:
        return self._encode("svg")

    def save(self, path: str | pathlib.Path) -> None:
        """Save as PNG, SVG or PDF, depending on the file name's extension."""
        path = as_path(path)
        kind = path.suffix[1:].lower()
        if kind not in UNDATED:
            raise InputError(
                f"A picture cannot be saved as {path.name!r}; use a file name that ends in .png, .svg or .pdf."
            )
        store.write_bytes(path, self._encode(kind))

    def _repr_png_(self) -> bytes:
        return self.png

    def _encode(self, kind: str) -> bytes:
        import matplotlib  # takes its time to import

        buffer = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "lexrl"}):  # otherwise the ids in the file are random
            self.figure.savefig(buffer, format=kind, dpi=150, facecolor="white", metadata=UNDATED[kind])
        return buffer.getvalue()


@contextlib.contextmanager
def drawing(width: float | int, height: float | int) -> Iterator[Any]:
    """An empty figure of a size in inches; inside the block a dollar sign in a text is a dollar sign."""
    import matplotlib  # takes its time to import
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"text.parse_math": False}):
        yield Figure(figsize=(width, height), layout="constrained")


def finish(figure: Any) -> Picture:
    """A picture whose layout is computed once: computed again it would differ slightly, and so would the bytes."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return Picture(figure)


def open_box(axes: Any) -> None:
    """Lines at the left and the bottom, and a grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK)
    axes.grid(color="#EEEEEE", lw=0.8)
    axes.set_axisbelow(True)
