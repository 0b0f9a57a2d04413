"""How far a numerical solution can be trusted, in numbers and in sentences."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from lexrl import lex


@dataclasses.dataclass(frozen=True)
class Certificate:
    """One entry for each objective; what is said of one holds given the sets of the more important ones."""

    objectives: tuple[str, ...]
    residuals: Float[np.ndarray, " M"]
    """`max_s |v(s) - max_{D(s)} q(s, .)|`, rounding included."""
    errors: Float[np.ndarray, " M"]
    """Bound on `|v - v*|` that the residual implies."""
    ties: Float[np.ndarray, " M"]
    """Actions closer to their threshold than this count as reaching it."""
    noise: Float[np.ndarray, " M"]
    """The largest distance to a threshold that was counted as none."""
    margins: Float[np.ndarray, " M"]
    """The smallest distance to a threshold that was counted as one; infinite where there is none."""
    iterations: tuple[int, ...]

    def sentences(self) -> tuple[str, ...]:
        """The certificate as a person would say it, one sentence for each objective."""
        return tuple(
            f"{name}: {self._error(i)} (Bellman residual {self.residuals[i]:.1e}, "
            f"{self.iterations[i]} iterations); {self._sets(i)}."
            for i, name in enumerate(self.objectives)
        )

    def _error(self, i: int) -> str:
        if np.isinf(self.errors[i]):
            return "how close the values are to the truth is not known, because episodes can be too long to tell"
        return f"values are within {self.errors[i]:.1e} of the truth"

    def _sets(self, i: int) -> str:
        if np.isinf(self.margins[i]):
            return f"all actions are tied to within {self.noise[i]:.1e}"
        return (
            f"ties are equal to within {self.noise[i]:.1e}, and every other action is at least {self.margins[i]:.1e} "
            f"from its threshold, where {self.ties[i]:.1e} would be noise"
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def distances(
    q: Float[np.ndarray, "*batch M A"], slack: lex.Slack, ties: Sequence[float]
) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
    """How near the actions of `D_{i-1}` come to the threshold of objective i: the smallest distance beyond its tie
    width (margins), and the largest one within it (noise)."""
    widths = np.asarray(ties)
    sets, best = lex.levels(q, lambda i, *rest: slack(i, *rest) + widths[i])
    margins, noise = np.full(len(widths), np.inf), np.zeros(len(widths))
    for i, width in enumerate(widths):
        entering, top = sets[..., i, :], best[..., i]
        threshold = top - slack(i, q[..., i, :], entering, top)
        distance = np.abs(q[..., i, :] - threshold[..., None])[entering]
        margins[i] = np.min(distance[distance > width], initial=np.inf)
        noise[i] = np.max(distance[distance <= width], initial=0.0)
    return margins, noise
