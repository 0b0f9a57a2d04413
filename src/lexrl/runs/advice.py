"""What to try where a priority is violated, undecided, or kept for little reason: the most promising first."""

import math
from collections.abc import Sequence

from lexrl.runs.references import OWN
from lexrl.runs.result import Result
from lexrl.runs.statements import MARGIN, MARGIN_OF_SEEDS, OTHERS
from lexrl.runs.symptoms import Symptoms
from lexrl.types import HasPrefixes, HasTolerance
from lexrl.verdict import Finding

LITTLE = 0.25
"""Share of the range that somebody may be ready to lose."""


def advise(
    result: Result, findings: Sequence[Finding], found: Symptoms, has_references: bool, needed: int | None
) -> list[str]:
    """What to try where something is violated, open or symptomatic.

    Args:
        result: of the run.
        findings: of its verdict.
        found: what training showed.
        has_references: whether policies were compared with others than those of other seeds.
        needed: episodes that would decide what is open; None if that cannot be said.
    """
    violated = [one for one in findings if one.status == "violated"]
    tries = _where_violated(result, violated, findings) if violated else []
    if not violated and found.too_short:
        tries.append(f"more steps, as in `--total-timesteps {3 * result.run.total_timesteps:g}`.")
    if found.reservations.get("hidden"):
        tries.append("a discount nearer to 1, as in `--gamma 0.999`: what comes late in an episode hardly counted.")
    if found.no_episode:
        tries.insert(0, "a shorter `max_episode_steps`, or more steps: no episode ended in training.")
    if any(one.status == "undecided" and math.isfinite(one.difference) for one in findings):
        tries.append(f"more episodes: `lexrl verify RUN --episodes {needed or 10_000}`.")
    if not has_references:
        tries.append("`lexrl verify RUN --retrain`: it trains references, for this algorithm keeps none.")
    elif found.not_better or any(found.reservations.get(name) for name in ("weak", "forgotten", "uncompared")):
        tries.append("`lexrl verify RUN --retrain`: it trains references for as long as the whole run.")
    return tries


def _where_violated(result: Result, violated: Sequence[Finding], findings: Sequence[Finding]) -> list[str]:
    """What to try for the most important objective that is violated."""
    names = result.run.order.names
    first = min(violated, key=lambda one: names.index(one.objective))
    own = [one for one in violated if one.objective == first.objective]
    given_up = any(one.reference.startswith(OWN) for one in own)
    why = "was given up for what is less important" if given_up else "was not learned well enough"
    more = f"{3 * result.run.total_timesteps:g}"
    tries = [f"more steps, as in `--total-timesteps {more}`: {first.objective!r} {why}."]
    others = [one for one in own if one.reference.startswith(OTHERS)]
    broken = {one.seed for one in violated}
    if others and (better := [seed for seed in result.run.seeds if seed not in broken]):
        listed = ", ".join(map(str, better[:5]))
        tries.append(f"the policies of the better seeds ({listed}): this is luck of the seed, not of the order.")
    if isinstance(result.policies[0].algorithm, HasTolerance):
        loss = max(one.slack_used for one in own)
        if loss <= LITTLE * max(map(_range, own)):
            wider = f"'{_with_tolerance(result, first.objective, 1.2 * loss)}'"
            tries.append(f"a tolerance, if a loss of {loss:.2g} (discounted) is little to you: {wider}.")
    return [*tries, _another(result)]


def _range(one: Finding) -> float:
    """The range of the objective of a finding, of which the margin is a share; 0 for a limit, which has none."""
    return (one.tolerance - one.slack) / (MARGIN_OF_SEEDS if one.reference.startswith(OTHERS) else MARGIN)


def _with_tolerance(result: Result, name: str, tolerance: float) -> str:
    """The order with a tolerance for one objective."""
    changed = [
        one._replace(tolerance=f"{tolerance:.2g}") if one.name == name else one for one in result.run.order.objectives
    ]
    return " > ".join(map(str, changed))


def _another(result: Result) -> str:
    other = "lppo" if isinstance(result.policies[0].algorithm, HasPrefixes) else "ldqn"
    return f"another algorithm, such as {other}."
