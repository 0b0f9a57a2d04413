"""The result of a run: learning curves, policies, and the seeds that had to stop."""

import dataclasses
import functools
import html
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lexrl import exact, lex
from lexrl.errors import InputError
from lexrl.loops import evaluation
from lexrl.loops.evaluation import Evaluation
from lexrl.loops.population import Population
from lexrl.momdp import MOMDP
from lexrl.report.run_folder import objectives
from lexrl.runs.policy import Policy
from lexrl.runs.run import Run, on_host
from lexrl.types import Discrete, State


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """The result of a run, complete or so far: plain arrays, nothing on a device."""

    run: Run
    policies: tuple[Policy, ...]
    """One for each seed, to use or to save."""
    steps: np.ndarray
    """`[points]`: environment steps of each seed at each point of the curves."""
    metrics: dict[str, np.ndarray]
    """`[points, seeds]` or `[points, seeds, M]`, in the user's signs."""
    faults: dict[int, str]
    """Why a seed stopped, by its position among the seeds."""
    seconds: float
    summary: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The evaluation and everything else in `summary.json`; empty before the run is finished and kept in a folder."""

    def with_summary(self, summary: Mapping[str, Any]) -> "Result":
        """The same result, with its summary."""
        return dataclasses.replace(self, summary=summary)

    def agent(self, position: int = 0) -> State:
        """The agent state of one seed as JAX arrays, without its replay buffer."""
        return jax.tree.map(jnp.asarray, self.policies[position].state)

    def on_devices(self) -> tuple[Population, State]:
        """All seeds with their agent states as the loops take them."""
        population = self.run.population()
        padded = [*self.policies, *[self.policies[-1]] * (population.seeds.shape[0] - len(self))]
        agents = jax.tree.map(lambda *leaves: np.stack(leaves), *[policy.state for policy in padded])
        return population, agents if on_host(self.run.env) else jax.device_put(agents, population.seeds.sharding)

    def probabilities(self, *, greedy: bool = True) -> np.ndarray:
        """Each seed's policy as a table of action probabilities, where states are discrete: `[seeds, S, A]`."""
        space = self.policies[0].spec.observation_space
        if not isinstance(space, Discrete):
            raise InputError(f"A policy is a table only where observations are discrete, but these are {space}.")

        def table(algorithm: Any, agent: Any) -> Any:
            return jax.vmap(functools.partial(algorithm.probabilities, agent, greedy=greedy))(jnp.arange(space.n))

        population, agents = self.on_devices()
        found = np.asarray(jax.vmap(table)(population.algorithms, agents), float)[: len(self)]
        return found / found.sum(axis=-1, keepdims=True)

    def evaluate(
        self, episodes: int = 100, *, gamma: float | tuple[float, ...] = 1.0, deterministic: bool = True
    ) -> Evaluation:
        """Play fresh episodes with every seed's policy."""
        population, agents = self.on_devices()
        if on_host(self.run.env):
            return evaluation.evaluate_on_host(
                population, self.run.env, agents, episodes=episodes, gamma=gamma, greedy=deterministic
            )
        return evaluation.evaluate(population, agents, episodes=episodes, gamma=gamma, greedy=deterministic)

    def gaps(self, process: MOMDP | Sequence[MOMDP], tolerance: Any = 0.0) -> list[lex.Gap]:
        """Each seed's exact distance to the lexicographic optimum of the process (or of its own)."""
        each = [process] * len(self) if isinstance(process, MOMDP) else list(process)
        if len(each) != len(self):
            raise InputError(f"{len(each)} processes were given for {len(self)} seeds; give one, or one each.")
        tables = self.probabilities()
        return [exact.gap(one, table, self.run.order, tolerance) for one, table in zip(each, tables, strict=True)]

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
        """The learning curves: a notebook shows them, `.save("curves.svg")` writes them, `.figure` is matplotlib's."""
        from lexrl.report import learning_curves  # matplotlib takes its time to import

        names = [str(objective) for objective in objectives(self.run.order)]
        return learning_curves.draw(
            self.steps, self.metrics["episode_return"], names, self.run.title if title is None else title
        )

    def __len__(self) -> int:
        """The number of seeds."""
        return len(self.policies)

    def __repr__(self) -> str:
        lines = [f"{self.run} in {self.seconds:.1f} s"]
        for name, shown in self._returns():
            lines.append(f"  {name} per episode in training: {shown}")
        return "\n".join(lines + [f"  {sentence}" for sentence in self.faults.values()])

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(shown)}</td></tr>"
            for name, shown in self._returns()
        )
        faults = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.faults.values())
        return (
            f"<p><b>{html.escape(str(self.run))}</b> in {self.seconds:.1f} s</p>"
            f"<table><tr><th></th><th>per episode in training</th></tr>{rows}</table>{faults}"
        )

    def _returns(self) -> list[tuple[str, str]]:
        """Each objective and its mean return at the last point of the curve."""
        last, shown = self.metrics["episode_return"][-1], []
        for i, objective in enumerate(self.run.order.objectives):
            known = last[:, i][np.isfinite(last[:, i])]
            text = f"{known.mean():.4g} (seeds: {known.min():.4g} to {known.max():.4g})" if len(known) else "no episode"
            shown.append((objective.name, text))
        return shown
