"""Combinations of values that optuna proposes.

Optuna is asked for one batch after the other. It learns in which order the combinations so far stand, best first, and
nothing else: its sampler only asks which of them are the better ones. Its storage, `optuna.db` in the sweep's folder,
has the returns of every objective.
"""

import importlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lexrl.engine.values import Over, Range
from lexrl.store import Damaged

STORAGE = "optuna.db"
BATCH = 8
"""Combinations that optuna proposes at a time; they are trained together."""


class Optuna:
    """Optuna's tree-structured Parzen estimator, by ask and tell."""

    def __init__(self, over: Over, trials: int, folder: pathlib.Path, signs: Sequence[int]):
        self.over, self.trials, self.signs = over, trials, signs
        self.optuna: Any = importlib.import_module("optuna")
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.path = folder / STORAGE
        self.chosen: list[dict[str, Any]] = []
        self.order: Sequence[int] = ()

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        study, known = self._kept()
        for first in range(0, self.trials, BATCH):
            count = min(BATCH, self.trials - first)
            batch = known[first : first + count]  # proposed before the sweep was stopped, perhaps amid a batch
            more = self._propose(count)[len(batch) :] if len(batch) < count else []
            for each in more:
                study.add_trial(self._trial(each, state=self.optuna.trial.TrialState.RUNNING))
            self.chosen += batch + more
            yield batch + more

    def tell(self, order: Sequence[int], returns: np.ndarray) -> None:
        self.order = order
        study = self._study()
        for trial, each in zip(study.get_trials(deepcopy=False), returns, strict=False):
            if trial.state.is_finished():
                continue
            if np.isfinite(each).all():
                study.tell(trial.number, each.tolist())
            else:
                study.tell(trial.number, state=self.optuna.trial.TrialState.FAIL)

    def _kept(self) -> tuple[Any, list[dict[str, Any]]]:
        """The study, and what it has proposed so far."""
        try:
            study = self._study()
            return study, [self._as_given(trial.params) for trial in study.get_trials(deepcopy=False)]
        except Exception as error:  # from SQLite, SQLAlchemy and optuna, of many kinds
            raise Damaged(
                f"The file {str(self.path)!r} is damaged, or of another search ({type(error).__name__}); move it away, "
                "and the search makes it anew."
            ) from None

    def _study(self) -> Any:
        """What is kept: the returns of every objective, also for optuna's own tools."""
        address = importlib.import_module("sqlalchemy").engine.URL.create("sqlite", database=str(self.path))
        ways = ["maximize" if sign > 0 else "minimize" for sign in self.signs]
        return self.optuna.create_study(
            storage=address.render_as_string(), study_name="sweep", directions=ways, load_if_exists=True
        )

    def _propose(self, count: int) -> list[dict[str, Any]]:
        """What the sampler proposes, from the order of what is known."""
        sampler = self.optuna.samplers.TPESampler(seed=len(self.chosen), n_startup_trials=BATCH, constant_liar=True)
        study = self.optuna.create_study(sampler=sampler, direction="minimize")
        for rank, i in enumerate(self.order):
            study.add_trial(self._trial(self.chosen[i], value=rank))
        return [self._as_given(study.ask(self._distributions()).params) for _ in range(count)]

    def _trial(self, settings: dict[str, Any], **more: Any) -> Any:
        """A combination of values as optuna keeps it: it is stored at once, or not at all."""
        return self.optuna.trial.create_trial(
            params=self._as_params(settings), distributions=self._distributions(), **more
        )

    def _distributions(self) -> dict[str, Any]:
        kinds = self.optuna.distributions
        return {
            name: kinds.FloatDistribution(given.low, given.high, log=given.log) if isinstance(given, Range)
            else kinds.CategoricalDistribution(list(map(str, given)))
            for name, given in self.over.items()
        }  # fmt: skip

    def _as_params(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {
            name: min(max(float(value), given.low), given.high) if isinstance(given := self.over[name], Range)
            else str(value)
            for name, value in settings.items()
        }  # fmt: skip

    def _as_given(self, params: dict[str, Any]) -> dict[str, Any]:
        """Ranges with four digits; of a list, the value itself."""
        found = {}
        for name, given in self.over.items():
            if isinstance(given, Range):
                found[name] = f"{params[name]:.4g}"
            else:
                found[name] = next(each for each in given if str(each) == params[name])
        return found
