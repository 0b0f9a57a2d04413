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
        study = self._study()
        known = [trial.params for trial in study.get_trials(deepcopy=False)]
        for first in range(0, self.trials, BATCH):
            count = min(BATCH, self.trials - first)
            kept = [self._as_given(each) for each in known[first : first + count]]  # proposed before the sweep stopped
            batch = kept + self._propose(count - len(kept))
            for each in batch[len(kept) :]:
                study.enqueue_trial(self._as_params(each))
                study.ask(self._distributions())
            self.chosen += batch
            yield batch

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
            params = self._as_params(self.chosen[i])
            known = self.optuna.trial.create_trial(params=params, distributions=self._distributions(), value=rank)
            study.add_trial(known)
        return [self._as_given(study.ask(self._distributions()).params) for _ in range(count)]

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
