"""The verdict on a theorem: its conditions, each with a verdict and the number behind it."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from lexrl.envs.finite import FiniteEnv
from lexrl.momdp import MOMDP
from lexrl.types import Discrete

Verdict = Literal["holds", "fails", "unknown"]


class Condition(NamedTuple):
    """One condition of a theorem, and what was found."""

    text: str
    verdict: Verdict
    evidence: str


class Guarantee(NamedTuple):
    """A theorem, its conditions here, and what it promises if they hold."""

    name: str
    promise: str
    conditions: tuple[Condition, ...]

    @property
    def verdict(self) -> Verdict:
        """The weakest of the conditions."""
        return weakest(self.conditions)

    def __str__(self) -> str:
        mark = {"holds": "+", "fails": "-", "unknown": "?"}
        lines = [f"{self.name}: {self.verdict}", f"  promises: {self.promise}"]
        return "\n".join(lines + [f"  {mark[c.verdict]} {c.text}: {c.evidence}" for c in self.conditions])


def weakest(conditions: Iterable[Condition]) -> Verdict:
    """Fails if one does, else unknown if one is, else holds."""
    verdicts = {condition.verdict for condition in conditions}
    return "fails" if "fails" in verdicts else "unknown" if "unknown" in verdicts else "holds"


def finite(env: Any, process: MOMDP | None) -> Condition:
    """Are states and actions finite?"""
    text = "states and actions are finite"
    if process is not None:
        return Condition(text, "holds", f"{process.num_states} states, {process.num_actions} actions")
    finite = isinstance(env.spec.observation_space, Discrete) and isinstance(env.spec.action_space, Discrete)
    return Condition(text, "holds" if finite else "fails", f"{env.spec.observation_space}, {env.spec.action_space}")


def bounded(env: Any, process: MOMDP | None) -> Condition:
    """Are rewards bounded?"""
    text = "rewards are bounded"
    if process is None:
        return Condition(text, "unknown", "the environment does not say")
    largest = f"at most {np.abs(process.outcome_rewards).max():.4g}"
    if isinstance(env, FiniteEnv) and float(env.reward_noise) > 0:
        noise = f"{largest}, but Gaussian noise is unbounded (its variance is finite, which is what the proof uses)"
        return Condition(text, "fails", noise)
    return Condition(text, "holds", largest)


def none_of(text: str, others: dict[str, bool], otherwise: str) -> Condition:
    """Fails with all that are true."""
    found = [what for what, true in others.items() if true]
    return Condition(text, "fails" if found else "holds", "; ".join(found) or otherwise)
