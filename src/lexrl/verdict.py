"""Was the priority kept? The answer at the end of a run, in words, as JSON, and as lines of a terminal.

A *finding* is one statement: seed s, objective i, against one reference. A verdict is all findings of a run, with what
else should be known: rare events, symptoms of the training, and what to try.
"""

import dataclasses
import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

from lexrl import colors, store, verify
from lexrl.errors import InputError

Status = Literal["kept", "violated", "undecided"]
Test = Literal["asymptotic", "betting", "exact", "same policy"]
NAMES: dict[int, Status] = {verify.KEPT: "kept", verify.VIOLATED: "violated", verify.UNDECIDED: "undecided"}
SYMBOLS: dict[str, str] = {"kept": "✓", "violated": "✗", "undecided": "?"}
PHRASES: dict[str, str] = {"kept": "kept", "violated": "violated", "undecided": "not decidable"}
COLORS: dict[str, str] = {"kept": colors.GREEN, "violated": colors.RED, "undecided": colors.ORANGE}
RESERVATIONS = {
    "stopped": "but training stopped before its end",
    "endless": "but no episode ended in training",
    "cut": "but by episodes that were cut off",
    "brief": "but training was too short to show whether it had converged",
    "uncompared": "but an objective was compared with nothing",
    "unlearned": "but an objective is no better than before training",
    "unmoved": "but an objective was the same for every policy",
    "hidden": "but worse per episode than what it was compared with, which the discount hides",
    "forgotten": "but much worse than earlier in training",
    "weak": "but by references that had not been learned to the end",
    "itself": "but compared with itself",
}
"""What is said of seeds that keep the priority for little reason."""
WIDTH = 110
"""Characters of a printed line."""
SHOWN = 5
"""Findings that are shown in full in a terminal."""


class Finding(NamedTuple):
    """Whether a seed's policy kept an objective, measured by one reference."""

    seed: int
    objective: str
    status: Status
    reference: str
    """What it was compared with, as in "the exact optimum"."""
    value: float
    """What the policy returns per episode, undiscounted, in the user's sign; for an exact comparison discounted."""
    value_error: float
    """Half of its 95 % interval; 0 if it is exact."""
    reference_value: float
    reference_error: float
    difference: float
    """How much better than the reference the policy is in what was optimized (discounted); negative: worse."""
    low: float
    """Confidence bounds of the difference, each of them valid however often one looks."""
    high: float
    tolerance: float
    """How much worse the policy may be: `slack`, and a margin below which no difference counts."""
    slack: float
    """What the order grants."""
    slack_used: float
    episodes: int
    """That decided, of each policy; 0: it was computed exactly."""
    test: Test = "asymptotic"
    """How it was decided: by which confidence sequence, computed, or because the reference is the policy itself."""

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.status]

    def __str__(self) -> str:
        values = f"{shown(self.value, self.value_error)} against {shown(self.reference_value, self.reference_error)}"
        compared = f"{values} of {self.reference}"
        # What is shown, per episode, is not what is tested, discounted: it may show something else.
        apart = abs(self.value - self.reference_value) > self.value_error + self.reference_error
        if self.status == "violated":
            gap = "" if apart else f"discounted, as optimized, {shown(-self.difference, self._width)} worse; "
            return f"violated at objective {self.objective!r}: {compared} ({gap}{self._how})"
        if self.status == "kept":
            alike = apart and self.low <= 0.0 <= self.high and self.test != "exact"
            gap = (
                f"discounted, as optimized, the difference is {shown(self.difference, self._width)}; " if alike else ""
            )
            return f"kept {self.objective!r}: {compared} ({gap}{self._how})"
        gap = f"difference {shown(self.difference, self._width)}, tolerance {self.tolerance:.3g}"
        return f"not decidable at objective {self.objective!r} with {self.episodes:,} episodes: {compared} ({gap})"

    @property
    def _width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def _how(self) -> str:
        return {"exact": "exact", "same policy": "the same policy"}.get(self.test, "95 %")


class RareEvents(NamedTuple):
    """How often an episode of a seed had any cost, or any loss of what is to be maximized."""

    seed: int
    objective: str
    events: int
    episodes: int
    bound: float
    """Upper bound of the probability, at 95 %."""
    loss: bool = False
    """Is the objective to be maximized? Then it is never positive, and an event is a return below 0."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Was the priority kept, per seed and in all?"""

    seeds: tuple[int, ...]
    objectives: tuple[str, ...]
    """The most important first."""
    findings: tuple[Finding, ...]
    """One for each seed, objective and reference."""
    references: str
    """A sentence on what the policies were compared with."""
    method: str
    """A sentence on how it was decided."""
    episodes: int
    """Fresh episodes of each policy."""
    seconds: float
    rare_events: tuple[RareEvents, ...] = ()
    symptoms: tuple[str, ...] = ()
    """What the training itself showed."""
    advice: tuple[str, ...] = ()
    """What to try, the most promising first."""
    reservations: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    """Why *kept* is worth less in some seeds: names of `RESERVATIONS`, and those seeds."""

    @property
    def status(self) -> Status:
        """Of the run: violated if any seed violates; kept if every seed keeps every objective."""
        return _all([self.of_seed(seed) for seed in self.seeds])

    def of_seed(self, seed: int) -> Status:
        """Of one seed; undecided if it was compared with nothing."""
        return _all([finding.status for finding in self.findings if finding.seed == seed])

    def of_objective(self, seed: int, objective: str) -> Status | None:
        """Of one objective of a seed, over all references; None where there was none."""
        found: list[Status] = [one.status for one in self.findings if (one.seed, one.objective) == (seed, objective)]
        return _all(found) if found else None

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if not self.findings:
            return "not decidable: there is nothing to compare with"
        by_status = {status: [s for s in self.seeds if self.of_seed(s) == status] for status in get_args(Status)}
        if len(self.seeds) == 1 or len(by_status[self.status]) == len(self.seeds):
            where = "" if len(self.seeds) == 1 else f" in all {len(self.seeds)} seeds"
            return f"{PHRASES[self.status]}{where}{self._but(by_status['kept'])}"
        parts = [
            f"{PHRASES[status]} in {len(seeds)} of {len(self.seeds)} seeds"
            + (f" ({_listed(seeds)})" if status != "kept" else self._but(seeds))
            for status, seeds in by_status.items()
            if seeds
        ]
        return "; ".join(parts)

    def _but(self, kept: Sequence[int]) -> str:
        """What *kept* is worth less for."""
        known = {**self.reservations, "itself": [seed for seed in kept if self._is_alone(seed)]}
        reasons = {words: [s for s in kept if s in known.get(name, ())] for name, words in RESERVATIONS.items()}
        return "".join(f", {words}{self._where(seeds)}" for words, seeds in reasons.items() if seeds)

    def _where(self, seeds: Sequence[int]) -> str:
        return "" if len(self.seeds) == 1 else f" ({_listed(seeds)})"

    def _is_alone(self, seed: int) -> bool:
        """Was an objective of this seed compared with nothing but the policy itself?"""
        tests: dict[str, set[Test]] = {}
        for one in self.findings:
            if one.seed == seed:
                tests.setdefault(one.objective, set()).add(one.test)
        return {"same policy"} in tests.values()

    def lines(self) -> list[tuple[Status | None, str]]:
        """The verdict in lines, each with the status that gives it a symbol and a color."""
        shown = [one for status in ("violated", "undecided") for one in self.findings if one.status == status]
        found: list[tuple[Status | None, str]] = [(self.status, f"Priority {self.sentence}.")]
        for one in shown[:SHOWN]:
            found.append((one.status, f"seed {one.seed}: {one}"))
        if len(shown) > SHOWN:
            found.append((None, f"and {len(shown) - SHOWN} more: `lexrl report` has the table"))
        found.append((None, f"{self.references} {self.method}"))
        found += [(None, sentence) for sentence in (*self._rare(), *self.symptoms)]
        return found + [(None, f"Try: {one}") for one in self.advice]

    def _rare(self) -> list[str]:
        """One line for each objective with events: how often there were any, and what that shows."""
        lines = []
        for objective in dict.fromkeys(one.objective for one in self.rare_events):
            own = [one for one in self.rare_events if one.objective == objective]
            worst = max(own, key=lambda one: one.bound)
            events, episodes = sum(one.events for one in own), sum(one.episodes for one in own)
            what = f"{objective} below 0" if worst.loss else f"any {objective}"
            sentence = f"Episodes with {what}: {events:,} of {episodes:,}"
            sentence += (
                "." if worst.bound > 0.5 else f"; its probability is below {worst.bound:.2g} in every seed (95 %)."
            )
            if worst.events == 0:
                needed = " and ".join(f"{verify.clean_episodes(p):,} for {100 * p:g} %" for p in (0.01, 0.001))
                sentence += f" Episodes without any that are needed to show less: {needed}."
            lines.append(sentence)
        return lines

    def __str__(self) -> str:
        return "\n".join(
            textwrap.fill(text, WIDTH, initial_indent=f"{SYMBOLS.get(status or '', ' ')} ", subsequent_indent="  ")
            for status, text in self.lines()
        )

    def _repr_html_(self) -> str:
        """For notebooks: the same lines, with a symbol and a color where there is a status."""
        rows = []
        for status, text in self.lines():
            style = f"display:inline-block;width:1.3em;font-weight:bold;color:{COLORS.get(status or '', 'inherit')}"
            rows.append(f"<li><span style='{style}'>{SYMBOLS.get(status or '', '')}</span>{html.escape(text)}</li>")
        return f"<ul style='list-style:none;padding:0'>{''.join(rows)}</ul>"

    def as_json(self) -> dict[str, Any]:
        """For `summary.json`."""
        return {
            "status": self.status,
            "sentence": self.sentence,
            "confidence": 1.0 - verify.ALPHA,
            "by_seed": {str(seed): self.of_seed(seed) for seed in self.seeds},
            "seeds": list(self.seeds),
            "objectives": list(self.objectives),
            "findings": [store.finite(one._asdict()) for one in self.findings],
            "rare_events": [one._asdict() for one in self.rare_events],
            "references": self.references,
            "method": self.method,
            "episodes": self.episodes,
            "seconds": round(self.seconds, 2),
            "symptoms": list(self.symptoms),
            "advice": list(self.advice),
            "reservations": {name: list(seeds) for name, seeds in self.reservations.items()},
        }


def from_json(content: Mapping[str, Any]) -> Verdict:
    """What `as_json` wrote."""
    try:
        parts = {name: tuple(_read(kind, each) for each in content[name]) for name, kind in PARTS.items()}
        reservations = {name: tuple(seeds) for name, seeds in content.get("reservations", {}).items()}
        return _read(Verdict, {**content, **parts, "reservations": reservations})
    except (AttributeError, KeyError, TypeError):
        raise InputError(
            "The verdict in the summary is damaged, or of another version; `lexrl verify RUN` makes it anew."
        ) from None


PARTS: dict[str, Any] = {"findings": Finding, "rare_events": RareEvents}
"""What a verdict has records of."""


def _read(kind: Any, content: Mapping[str, Any]) -> Any:
    """A record from JSON, where null is NaN; a TypeError where a value is not of the type of its field."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in PARTS}
    fields = {
        name: math.nan if content[name] is None and hints.get(name) is float else content[name]
        for name in get_type_hints(kind)
        if name in content
    }
    for name, hint in hints.items():
        if name in fields and not store.fits(fields[name], hint):
            raise TypeError(name)
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def shown(value: float, error: float) -> str:
    """A number with as many digits as its error justifies: two of it."""
    if not math.isfinite(value):
        return "no number"
    if not (math.isfinite(error) and error > 0):
        return f"{value:.4g}"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:,.{places}f} ± {error:,.{places}f}"


def _all(statuses: Sequence[Status]) -> Status:
    """Violated if any is, kept if all are; nothing is kept where there is nothing to compare with."""
    if "violated" in statuses:
        return "violated"
    return "kept" if statuses and "undecided" not in statuses else "undecided"


def _listed(seeds: Sequence[int]) -> str:
    text = ", ".join(map(str, seeds[:10])) + (", ..." if len(seeds) > 10 else "")
    return f"seed {text}" if len(seeds) == 1 else f"seeds {text}"
