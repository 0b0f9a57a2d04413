"""The result of a run: learning curves, policies, and the seeds that had to stop."""

import dataclasses
import functools
import html
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from lexrl import exact, lex, store
from lexrl.errors import InputError, as_path, require_whole
from lexrl.loops import evaluation
from lexrl.loops.evaluation import Evaluation
from lexrl.loops.population import Population
from lexrl.momdp import MOMDP
from lexrl.runs import footprint
from lexrl.runs.policy import Policy, as_numbers
from lexrl.runs.run import Run, directions, on_host
from lexrl.types import Discrete, State
from lexrl.verdict import Verdict

if TYPE_CHECKING:
    from lexrl.runs.episodes import RecordedEpisode


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
    selection: tuple[Mapping[str, Any], ...] = ()
    """Which policy each seed hands over, where an algorithm keeps several: its stage, whether it is the last or the
    best of it, whether its actions are greedy or sampled, and its mean returns in the episodes that decided. Of a
    mixture, these are listed for each part, with its probability."""
    summary: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The evaluation and everything else in `summary.json`; empty before the run is finished and kept in a folder."""
    verdict: Verdict | None = None
    """Was the priority kept? None before the run is finished, with one objective, or if no verdict was asked for."""

    def with_summary(self, summary: Mapping[str, Any]) -> "Result":
        """The same result, with its summary."""
        return dataclasses.replace(self, summary=summary)

    def agent(self, position: int = 0) -> State:
        """The agent state of one seed as JAX arrays, without its replay buffer."""
        require_whole(-len(self), len(self) - 1, position=position)
        return jax.tree.map(jnp.asarray, self.policies[position].state)

    def on_devices(self) -> tuple[Population, State]:
        """All seeds with their agent states as the loops take them."""
        population = self.run.population()
        padded = [*self.policies, *[self.policies[-1]] * (population.seeds.shape[0] - len(self))]
        agents = jax.tree.map(lambda *leaves: np.stack(leaves), *[policy.state for policy in padded])
        return population, agents if on_host(self.run.env) else jax.device_put(agents, population.seeds.sharding)

    def probabilities(
        self, *, deterministic: bool = True, process: MOMDP | Sequence[MOMDP] | None = None
    ) -> np.ndarray:
        """Each seed's policy as a table of action probabilities, where observations are discrete: `[seeds, S, A]`.

        Args:
            deterministic: the greedy policy, which may still be indifferent between actions that are equally good.
            process: the process, or each seed's. A mixture is a table only with regard to it: that of the policy with
                the same discounted returns (`exact.stationary`).
        """
        components = [policy.components() for policy in self.policies]
        tables = _tables([[each for _, each in of_seed] for of_seed in components], deterministic)
        if max(map(len, components)) == 1:
            return tables[:, 0]
        if process is None:
            raise InputError(
                "The policy is a mixture, one of several policies for each episode, which is no table; give the "
                "process, as in probabilities(process=momdp), for the policy with the same returns in it."
            )
        weights = [[weight for weight, _ in of_seed] for of_seed in components]
        each = self._each(process)
        return np.stack(
            [
                exact.stationary(one, own, table[: len(own)])
                for one, own, table in zip(each, weights, tables, strict=True)
            ]
        )

    def evaluate(
        self, episodes: int = 100, *, gamma: float | tuple[float, ...] = 1.0, deterministic: bool = True
    ) -> Evaluation:
        """Play fresh episodes with every seed's policy; `deterministic` is the greedy one, as in `Policy.predict`."""
        evaluation.check_episodes(episodes)
        footprint.require_evaluation(self.run, episodes)
        population, agents = self.on_devices()
        if on_host(self.run.env):
            return evaluation.evaluate_on_host(
                population, self.run.env, agents, episodes=episodes, gamma=gamma, greedy=deterministic
            )
        return evaluation.evaluate(population, agents, episodes=episodes, gamma=gamma, greedy=deterministic)

    def gaps(self, process: MOMDP | Sequence[MOMDP], tolerance: Any = 0.0) -> list[lex.Gap]:
        """Each seed's exact distance to the lexicographic optimum of the process (or of its own)."""
        each, tables = self._each(process), self.probabilities(process=process)
        return [exact.gap(one, table, self.run.order, tolerance) for one, table in zip(each, tables, strict=True)]

    def _each(self, process: MOMDP | Sequence[MOMDP]) -> Sequence[MOMDP]:
        each = [process] * len(self) if isinstance(process, MOMDP) else process
        if not isinstance(each, Sequence) or not all(isinstance(one, MOMDP) for one in each):
            raise InputError(f"A {type(process).__name__} is not a MOMDP; give one, or one for each seed.")
        if len(each) != len(self):
            raise InputError(f"{len(each)} processes were given for {len(self)} seeds; give one, or one each.")
        return each

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
        """The learning curves: a notebook shows them, `.save("curves.svg")` writes them, `.spec` is Vega-Lite's."""
        from lexrl.report.learning_curves import Learned, draw

        objectives = [str(objective) for objective in directions(self.run.order)]
        learned = Learned(self.steps, self.metrics, objectives, self.run.order.names, self.run.seeds)
        return draw(learned, self.run.title if title is None else title)

    def video(
        self, path: str | pathlib.Path, seed: int | None = None, episode: int = 0, fps: float | None = None
    ) -> "RecordedEpisode":
        """Record an episode of `evaluate` as GIF or MP4, or a strip of its frames as PNG, by the file name's extension.

        Args:
            path: the file.
            seed: whose policy; by default the first seed's.
            episode: which one, counted from 0.
            fps: frames per second; by default the environment's own.
        """
        from lexrl import video
        from lexrl.runs.episodes import record_episode, render_fps

        path, seed = as_path(path), self.run.seeds[0] if seed is None else seed
        if seed not in self.run.seeds:
            raise InputError(f"The run has no seed {seed}; it has {', '.join(map(str, self.run.seeds))}.")
        video.require_ending(path)
        recorded = record_episode(self.policies[self.run.seeds.index(seed)], self.run.env, episode)
        rate = render_fps(self.run.env) if fps is None else fps
        store.write_bytes(path, video.encode(path.suffix, recorded.frames, rate))
        return recorded

    def __len__(self) -> int:
        """The number of seeds."""
        return len(self.policies)

    def __repr__(self) -> str:
        lines = [f"{self.run} in {self.seconds:.1f} s"]
        for name, shown in self._returns():
            lines.append(f"  {name} per episode in training: {shown}")
        known = list(self.faults.values()) if self.verdict is None else str(self.verdict).splitlines()
        return "\n".join(lines + [f"  {line}" for line in known])

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(shown)}</td></tr>"
            for name, shown in self._returns()
        )
        faults = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.faults.values())
        verdict = "" if self.verdict is None else self.verdict._repr_html_()
        return (
            f"<p><b>{html.escape(str(self.run))}</b> in {self.seconds:.1f} s</p>"
            f"<table><tr><th></th><th>per episode in training</th></tr>{rows}</table>{faults}{verdict}"
        )

    def _returns(self) -> list[tuple[str, str]]:
        """Each objective and its mean return at the last point of the curve."""
        last, shown = self.metrics["episode_return"][-1], []
        for i, objective in enumerate(self.run.order.objectives):
            known = last[:, i][np.isfinite(last[:, i])]
            text = f"{known.mean():.4g} (seeds: {known.min():.4g} to {known.max():.4g})" if len(known) else "no episode"
            shown.append((objective.name, text))
        return shown


def _tables(policies: Sequence[Sequence[Policy]], deterministic: bool) -> np.ndarray:
    """Action probabilities `[seeds, policies, S, A]`; a seed with fewer policies than another repeats its first."""
    space = policies[0][0].spec.observation_space
    if not isinstance(space, Discrete):
        raise InputError(f"A policy is a table only where observations are discrete, but these are {space}.")

    def table(algorithm: Any, agent: Any) -> Any:
        of_agent = functools.partial(algorithm.probabilities, agent, greedy=deterministic)
        return jax.vmap(of_agent)(jnp.arange(space.n))

    tables_of = jax.jit(jax.vmap(table))  # one program; without it every operation is compiled by itself
    padded = [(*each, *[each[0]] * (max(map(len, policies)) - len(each))) for each in policies]
    found = []
    for column in zip(*padded, strict=True):
        pairs = [(as_numbers(policy.algorithm), policy.state) for policy in column]
        found.append(tables_of(*jax.tree.map(lambda *leaves: jnp.stack(leaves), *pairs)))
    tables = np.stack([np.asarray(each, float) for each in found], axis=1)
    return tables / tables.sum(axis=-1, keepdims=True)
