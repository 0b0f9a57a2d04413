"""How far a numerical solution can be trusted, in numbers and in sentences."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class NearTie(NamedTuple):
    """An action that counts as reaching its threshold, and how far below it may be."""

    objective: str
    state: int
    action: int
    gap: float


@dataclasses.dataclass(frozen=True)
class Certificate:
    """One entry for each objective; what is said of one holds given the sets of the more important ones."""

    objectives: tuple[str, ...]
    residuals: Float[np.ndarray, " M"]
    """`max_s |v(s) - max_{D(s)} q(s, .)|`, in arithmetic of twice the digits."""
    errors: Float[np.ndarray, " M"]
    """Bound on `|v - v*|`."""
    noise: Float[np.ndarray, " M"]
    """The largest distance to a threshold that was counted as none."""
    margins: Float[np.ndarray, " M"]
    """The smallest distance to a threshold that was counted as one; infinite where there is none."""
    num_rounded: Int[np.ndarray, " M"]
    """How many actions count as reaching their threshold though they are below it, by no more than the rounding of the
    input: as doubles, 0.3 is less than 0.1 + 0.2."""
    rounded: tuple[NearTie, ...]
    """The ones with the largest gaps, a few for each objective."""
    num_undecided: Int[np.ndarray, " M"]
    """Of how many actions even twice the digits do not tell whether they reach their threshold."""
    undecided: tuple[NearTie, ...]
    """The ones with the largest gaps, a few for each objective."""
    iterations: tuple[int, ...]
    faults: tuple[str, ...] = ()
    """What is wrong with the solution, in sentences; empty if nothing is."""

    @property
    def holds(self) -> bool:
        """Is the solution what it claims to be?"""
        return not self.faults

    def sentences(self) -> tuple[str, ...]:
        """The certificate as a person would say it: one sentence for each objective, then what is wrong."""
        each = [
            f"{name}: {self._given(i)}{self._near(i)} (Bellman residual {self.residuals[i]:.1e}, {self.iterations[i]} "
            f"iterations); {self._sets(i)}."
            for i, name in enumerate(self.objectives)
        ]
        return (*each, *self.faults)

    def _given(self, i: int) -> str:
        return f"given the sets that {', '.join(self.objectives[:i])} leave, " if i else ""

    def _near(self, i: int) -> str:
        if np.isinf(self.errors[i]):
            return "how near values are to the truth is not known"
        return f"values are within {self.errors[i]:.1e} of the truth"

    def _sets(self, i: int) -> str:
        if np.isinf(self.margins[i]):
            said = "all actions are tied"
        else:
            said = f"every action that is not tied is at least {self.margins[i]:.1e} from its threshold"
        if self.num_rounded[i]:
            said += (
                f"; {self.num_rounded[i]} count as tied that differ by no more than the rounding of the input, at most "
                f"{self.noise[i]:.1e}"
            )
        if self.num_undecided[i]:
            said += f"; {self.num_undecided[i]} count as tied of which that cannot be told"
        return said

    def __str__(self) -> str:
        return "\n".join(self.sentences())


_SHOWN = 10


def largest(objective: str, num_actions: int, index: Int[np.ndarray, " k"], gaps: Float[np.ndarray, " k"]) -> tuple:
    """The pairs `s * A + a` of one objective with the largest gaps."""
    chosen = np.argsort(-gaps, kind="stable")[:_SHOWN]
    pairs = ((*divmod(int(index[k]), num_actions), float(gaps[k])) for k in chosen)
    return tuple(NearTie(objective, *pair) for pair in pairs)
