"""What came of a run: learning curves, policies, and the seeds that had to stop."""

import dataclasses
import functools
import html
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lexrl import exact, lex, replay
from lexrl.errors import InputError
from lexrl.loops.chunks import TrainState
from lexrl.loops.evaluation import Evaluation, evaluate, evaluate_on_host
from lexrl.loops.population import Population
from lexrl.momdp import MOMDP
from lexrl.report.run_folder import objectives
from lexrl.runs.plan import Run, on_host
from lexrl.runs.policy import Policy
from lexrl.types import Discrete


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run left so far."""

    run: Run
    population: Population
    train_states: TrainState
    steps: np.ndarray
    """`[points]`: environment steps of each seed at each point of the curves."""
    metrics: dict[str, np.ndarray]
    """`[points, seeds]` or `[points, seeds, M]`, in the user's signs."""
    faults: dict[int, str]
    """Why a seed stopped, by its place among the seeds."""
    seconds: float

    def agent(self, place: int = 0) -> Any:
        """The state of one seed's learner."""
        return jax.tree.map(lambda leaf: leaf[place], self.train_states.agent)

    @functools.cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Each seed's policy, to use or to save."""
        each = self.run.algorithm if isinstance(self.run.algorithm, Sequence) else [self.run.algorithm] * len(self)
        states = jax.tree.map(np.asarray, _without_memory(self.train_states.agent))
        spec = self.run.order.spec(self.population.spec)
        return tuple(
            Policy(one, jax.tree.map(lambda leaf, i=i: leaf[i], states), spec, self.run.order, seed)
            for i, (one, seed) in enumerate(zip(each, self.run.seeds, strict=True))
        )

    def chances(self, *, greedy: bool = True) -> np.ndarray:
        """Each seed's policy as a table, in a world of numbered states: `[seeds, S, A]`."""
        space = self.population.spec.observation_space
        if not isinstance(space, Discrete):
            raise InputError(f"A policy is a table only where states are numbered, but this world shows {space}.")

        def table(algorithm: Any, learner: Any) -> Any:
            chances = functools.partial(algorithm.probabilities, learner, greedy=greedy)
            return jax.vmap(chances)(jnp.arange(space.n))

        exactly = np.asarray(jax.vmap(table)(self.population.algorithms, self.train_states.agent), float)[: len(self)]
        return exactly / exactly.sum(axis=-1, keepdims=True)

    def evaluate(
        self, episodes: int = 100, *, gamma: float | tuple[float, ...] = 1.0, greedy: bool = True
    ) -> Evaluation:
        """Play fresh episodes with every seed's policy."""
        if on_host(self.run.env):
            return evaluate_on_host(
                self.population, self.run.env, self.train_states.agent, episodes=episodes, gamma=gamma, greedy=greedy
            )
        return evaluate(self.population, self.train_states.agent, episodes=episodes, gamma=gamma, greedy=greedy)

    def gaps(self, process: MOMDP | Sequence[MOMDP], tolerance: Any = 0.0) -> list[lex.Gap]:
        """Each seed's exact distance to the lexicographic optimum of the process (or of its own)."""
        each = [process] * len(self) if isinstance(process, MOMDP) else list(process)
        if len(each) != len(self):
            raise InputError(f"{len(each)} processes were given for {len(self)} seeds; give one, or one each.")
        policies = self.chances()
        return [exact.gap(one, policy, self.run.order, tolerance) for one, policy in zip(each, policies, strict=True)]

    def table(self) -> list[dict[str, Any]]:
        """The learning curves, tidy: one row for each seed, point, metric and objective."""
        rows = []
        for name, values in self.metrics.items():
            for (point, place, *objective), value in np.ndenumerate(values):
                row = {"seed": self.run.seeds[place], "step": int(self.steps[point]), "metric": name}
                rows.append(
                    row | {"objective": self.run.order.names[objective[0]] if objective else "", "value": value}
                )
        return rows

    def plot(self, title: str | None = None) -> Any:
        """The learning curves: a notebook shows them, `.save("curves.svg")` keeps them, `.figure` is matplotlib's."""
        from lexrl.report import learning_curves  # matplotlib takes its time to import

        names = [str(objective) for objective in objectives(self.run.order)]
        return learning_curves.draw(
            self.steps, self.metrics["episode_return"], names, str(self.run) if title is None else title
        )

    def __len__(self) -> int:
        """How many seeds."""
        return self.population.size

    def __str__(self) -> str:
        lines = [f"{self.run} in {self.seconds:.1f} s"]
        for name, shown in self._levels():
            lines.append(f"  {name} per episode while learning: {shown}")
        return "\n".join(lines + [f"  {sentence}" for sentence in self.faults.values()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(shown)}</td></tr>"
            for name, shown in self._levels()
        )
        faults = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.faults.values())
        return (
            f"<p><b>{html.escape(str(self.run))}</b> in {self.seconds:.1f} s</p>"
            f"<table><tr><th></th><th>per episode while learning</th></tr>{rows}</table>{faults}"
        )

    def _levels(self) -> list[tuple[str, str]]:
        """Each objective, and where it stood in the last part of training."""
        last, shown = self.metrics["episode_return"][-1], []
        for i, objective in enumerate(self.run.order.objectives):
            known = last[:, i][np.isfinite(last[:, i])]
            text = f"{known.mean():.4g} (seeds: {known.min():.4g} to {known.max():.4g})" if len(known) else "no episode"
            shown.append((objective.name, text))
        return shown


_without_memory = jax.jit(jax.vmap(replay.emptied))
"""Learners as policies keep them."""
