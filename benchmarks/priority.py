"""Do algorithms with default settings reach the lexicographic optimum, and keep the most important objective?

    python benchmarks/priority.py                                      everything, held-out problems
    python benchmarks/priority.py --split development --questions finite --algorithms q-learning
    python benchmarks/priority.py --split development --questions finite --algorithms q-learning --without guard novelty

Finite MOMDPs whose optimum is known exactly (`priority_families`), every algorithm with the settings that the catalog
gives it. Rates come with 95 % Wilson intervals over problems and seeds. A question is a function from an algorithm to
rows of the table; another family of algorithms is a line in `ALGORITHMS`.
"""

import argparse
import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

import equinox as eqx
import jax
import numpy as np
from rich.console import Console
from scipy import stats

import lexrl
import priority_families as families
from lexrl import catalog
from lexrl.algorithms import staged
from lexrl.algorithms.exploration import Prefixes
from lexrl.loops import selection
from lexrl.multipliers import Multipliers
from lexrl.stages import Stages
from lexrl.tolerance import Evidence
from priority_families import WITHIN, Problem, Split


class Patch(NamedTuple):
    """An ingredient that is no setting: what stands in its place in a module."""

    module: Any
    name: str
    value: Any


class Contestant(NamedTuple):
    """An algorithm by its name in the catalog, and how long it is trained."""

    name: str
    total_timesteps: float
    deep_timesteps: float
    changes: Mapping[str, Any] = MappingProxyType({})
    """Settings that differ from the defaults, for ablations."""
    patch: Patch | None = None

    def make(self, **changes: Any) -> Any:
        return catalog.ALGORITHMS[self.name].make(**{**self.changes, **changes})

    def without(self, ingredient: Mapping[str, Any] | Patch) -> "Contestant":
        if isinstance(ingredient, Patch):
            return self._replace(patch=ingredient)
        return self._replace(changes=ingredient)

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """While its patch, if it has one, is in the module."""
        if self.patch is None:
            yield
            return
        with mock.patch.object(*self.patch):
            jax.clear_caches()  # programs of the module as it was
            yield
        jax.clear_caches()


ALGORITHMS = {
    name: Contestant(name, 3e5, 1e6) for name in ("q-learning", "sarsa", "expected-sarsa", "double-q", "gabor")
}
ALGORITHMS["ldqn"] = Contestant("ldqn", 2e5, 1e6)
ALGORITHMS |= {name: Contestant(name, 1e6, 1e6) for name in ("lppo", "la2c", "projection")}
SIZES = (2, 3, 4)
"""Numbers of objectives."""

TABULAR = {
    "evidence": {"evidence": Evidence(0.0, 0.0)},
    "guard": {"guard": None},
    "prefixes": {"exploration": "epsilon 0.3"},
    "novelty": {"exploration": Prefixes(novelty=0.0)},
    "min-alpha": {"min_alpha": 0.0},
}
STAGED = {
    "sets": Patch(staged, "LEAST_LIKELY", 1e-30),
    "multipliers": {"multipliers": Multipliers(initial_multiplier=1e-6, max_multiplier=1e-6)},
    "preview": {"stages": Stages(preview=0.0)},
    "entropy": {"stages": Stages(initial_ent_coef=0.0, final_ent_coef=0.0)},
    "decay": {"stages": Stages(initial_rate=1.0, final_rate=1.0, critic_final_rate=1.0)},
    "last-length": {"stages": Stages(last_length=1.0)},
    "choice": Patch(selection, "select", lambda *_: None),
}
WITHOUT: dict[str, Mapping[str, Mapping[str, Any] | Patch]] = {
    **dict.fromkeys(("q-learning", "sarsa", "expected-sarsa", "double-q"), TABULAR),
    **dict.fromkeys(("lppo", "la2c"), STAGED),
    "ldqn": {
        "evidence": {"evidence": Evidence(0.0, 0.0)},
        "guard": {"guard": None},
        "prefixes": {"explore_prefixes": False},
        "novelty": {"explore_novelty": False},
        "members": {"num_members": 1},
        "scaling": {"return_scale": 1.0},
        "decay": {"learning_rate": 1e-3},
    },
}
"""For each algorithm, the ingredients of its defaults that can be left out, and what is set instead: without `prefixes`
any action is explored (and tables do not look for novelty); without `choice` the last policy is handed over; without
`sets` only multipliers keep later stages from what earlier ones exclude, and the other way round."""


class Setup(NamedTuple):
    """Which problems, and how often each."""

    split: Split
    problems: range
    """Their numbers in each family."""
    seeds: int
    sizes: tuple[int, ...] = SIZES
    """Numbers of objectives."""

    @property
    def twice(self) -> range:
        """Twice as many, where there are few families."""
        return range(2 * self.problems.start, 2 * self.problems.stop)


class Row(NamedTuple):
    """One line of the result: how many of how many runs."""

    question: str
    what: str
    good: int
    runs: int

    def __str__(self) -> str:
        low, high = wilson(self.good, self.runs)
        return f"{self.good}/{self.runs} ({100 * low:.0f} to {100 * high:.0f} %)"


def wilson(good: int, runs: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % score interval of a rate."""
    rate, extra = good / runs, z * z / runs
    middle, half = rate + extra / 2, z * np.sqrt(rate * (1 - rate) / runs + extra / (4 * runs))
    return float((middle - half) / (1 + extra)), float((middle + half) / (1 + extra))


def policies(
    contestant: Contestant,
    problems: Sequence[Problem],
    seeds: int,
    total_timesteps: float,
    algorithms: Sequence[Any] | None = None,
    order: str | None = None,
) -> np.ndarray:
    """`[seeds, problems, S, A]`: what was learned, all problems and seeds by one program. A mixture counts as the
    stationary policy with the same returns. `order` is another one than that of the problems."""
    members = [(seed, k) for seed in range(seeds) for k in range(len(problems))]
    envs = lexrl.per_seed([problems[k].env for _, k in members])
    each = contestant.make() if algorithms is None else [algorithms[k] for _, k in members]
    numbers = [1000 * seed + k for seed, k in members]
    result = lexrl.train(
        each,
        envs,
        order or problems[0].order,
        seeds=numbers,
        total_timesteps=total_timesteps,
        num_log_points=2,
        eval_episodes=1,
        verify_episodes=0,  # returns of what was learned are computed, not sampled
    )
    tables = result.probabilities(process=[problems[k].momdp for _, k in members])
    return tables.reshape(seeds, len(problems), *tables.shape[1:])


def shortfalls(problems: Sequence[Problem], learned: np.ndarray) -> np.ndarray:
    """`[seeds, problems, M]`: what the policies lack, in units of the spans."""
    return np.array([[p.shortfalls(policy) for p, policy in zip(problems, one, strict=True)] for one in learned])


def rows_of(question: str, problems: Sequence[Problem], learned: np.ndarray) -> Iterable[Row]:
    """How many runs keep the first objective, how many are optimal; then, by family, how many are optimal."""
    short = shortfalls(problems, learned)
    yield from _rates(question, short)
    optimal = np.asarray((short <= WITHIN).all(axis=-1))
    names = np.array([p.name for p in problems])
    for name in dict.fromkeys(names):
        own = optimal[:, names == name]
        yield Row(question, f"  optimum, {name}", int(own.sum()), own.size)


def finite(contestant: Contestant, setup: Setup) -> Iterable[Row]:
    """The families."""
    for m in setup.sizes:
        problems = families.problems(m, setup.split, setup.problems)
        learned = policies(contestant, problems, setup.seeds, contestant.total_timesteps)
        yield from rows_of(f"finite, M = {m}", problems, learned)


def deep(contestant: Contestant, setup: Setup) -> Iterable[Row]:
    """Long chains with sparse rewards."""
    for m in setup.sizes:
        problems = families.deep(m, setup.split, setup.twice)
        learned = policies(contestant, problems, setup.seeds, contestant.deep_timesteps)
        yield from rows_of(f"deep, M = {m}", problems, learned)


def units(contestant: Contestant, setup: Setup) -> Iterable[Row]:
    """The same problems, each objective in another unit, from 2^-20 to 2^20: the same policies?"""
    problems = families.problems(3, setup.split, setup.problems[:1])
    powers = np.random.default_rng(0).integers(-20, 21, (len(problems), 3))
    scaled = [_in_units(p, 2.0**power) for p, power in zip(problems, powers, strict=True)]
    one, other = (policies(contestant, each, 1, contestant.total_timesteps // 3) for each in (problems, scaled))
    same = (one == other).all(axis=(2, 3))
    yield Row("units 2^-20 to 2^20", "same policy, bit for bit", int(same.sum()), same.size)


def slack(contestant: Contestant, setup: Setup) -> Iterable[Row]:
    """A slack on the return of every objective but the last: obeyed, and what does it buy the last one?

    What it buys at best is what the best stochastic policy has, which is known from linear programs.
    """
    for m in setup.sizes:
        each = families.slacks(m, setup.split, setup.twice)
        problems = [one.problem for one in each]
        algorithms = [contestant.make(tolerance=one.slack) for one in each]
        learned = policies(contestant, problems, setup.seeds, contestant.total_timesteps, algorithms)
        lost = shortfalls(problems, learned)
        spans, optimum = (np.array(part) for part in zip(*((p.spans, p.optimum) for p in problems), strict=True))
        positive = np.where(spans > 0, spans, np.inf)
        allowed = np.array([one.slack for one in each]) / positive
        what = f"slack, M = {m}"
        for name, noise in (("obeyed", WITHIN), ("obeyed, with nothing for noise", 1e-9)):
            obeyed = (lost <= allowed + noise)[..., :-1].all(axis=-1)
            yield Row(what, name, int(obeyed.sum()), obeyed.size)
        gain = ([one.most for one in each] - optimum[:, -1]) / positive[:, -1]
        share = np.where(gain > 1e-6, -lost[..., -1] / np.maximum(gain, 1e-6), 1.0)
        for least in (0.25, 0.95):
            shown = f"{100 * least:.0f} % of what it buys at best (median {np.median(share):.3f})"
            yield Row(what, shown, int((share >= least).sum()), share.size)


def noise(contestant: Contestant, setup: Setup) -> Iterable[Row]:
    """Pure noise as the first objective: does the second get 95 % of what it can?"""
    problems = families.noise_first(2, setup.split, setup.problems)
    short = shortfalls(problems, policies(contestant, problems, setup.seeds, contestant.total_timesteps))[..., 1]
    yield Row("noise first", "second objective at 95 %", int((short <= 0.05).sum()), short.size)


def inserted(contestant: Contestant, setup: Setup) -> Iterable[Row]:
    """A constant objective, or nothing but noise, anywhere among two others: are these optimal as before?"""
    for what, size in (("constant", 0.0), ("noise", 1.0)):
        for place in range(3):
            problems = families.inserted(setup.split, place, size, setup.problems)
            short = shortfalls(problems, policies(contestant, problems, setup.seeds, contestant.total_timesteps))
            where = f"{what} inserted as {place + 1} of 3"
            yield from _rates(where, np.delete(short, place, axis=-1))


def added(contestant: Contestant, setup: Setup) -> Iterable[Row]:
    """Less important objectives, one after the other: what do the more important ones lose by them?

    Each environment is trained on with one, two and three objectives, with the same seeds. An objective has *lost* in
    an environment if its mean over seeds is lower than without the added one by more than 2 % of its span with 95 %
    confidence (Student's t of the differences, seed by seed).
    """
    problems = families.problems(3, setup.split, setup.problems)
    short = []
    for m in (1, 2, 3):
        order = " > ".join(f"max o{i + 1}" for i in range(m))
        learned = policies(contestant, problems, setup.seeds, contestant.total_timesteps, order=order)
        short.append(shortfalls(problems, learned))
    for m in (2, 3):
        loss = short[m - 1][..., : m - 1] - short[m - 2][..., : m - 1]
        keeps = (loss <= WITHIN).all(axis=-1)
        yield Row(f"objective {m} added", "runs in which none lost 2 %", int(keeps.sum()), keeps.size)
        half = stats.t.ppf(0.95, setup.seeds - 1) * loss.std(axis=0, ddof=1) / np.sqrt(setup.seeds)
        kept = (loss.mean(axis=0) - half <= WITHIN).all(axis=-1)
        yield Row(f"objective {m} added", "environments in which none lost", int(kept.sum()), kept.size)


def _rates(question: str, short: np.ndarray) -> Iterable[Row]:
    """How many runs `[..., M]` keep the first objective, and how many are optimal."""
    kept, optimal = short[..., 0] <= WITHIN, np.asarray((short <= WITHIN).all(axis=-1))
    yield Row(question, "first objective kept", int(kept.sum()), kept.size)
    yield Row(question, "optimum", int(optimal.sum()), optimal.size)


Question = Callable[[Contestant, Setup], Iterable[Row]]
QUESTIONS: dict[str, Question] = {
    "finite": finite,
    "deep": deep,
    "units": units,
    "slack": slack,
    "noise": noise,
    "inserted": inserted,
    "added": added,
}


def _in_units(problem: Problem, unit: np.ndarray) -> Problem:
    def scale(env: Any) -> tuple[Any, Any]:
        return env.slots, env.reward_noise

    slots = np.concatenate([problem.env.slots[..., :3], problem.env.slots[..., 3:] * unit], axis=-1)
    return problem._replace(env=eqx.tree_at(scale, problem.env, (slots, problem.env.reward_noise * unit)))


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to run."""

    algorithms: list[str]
    questions: list[str]
    setup: Setup
    total_timesteps: float | None
    """Instead of each algorithm's own."""

    without: list[str]
    """Ingredients to leave out, one at a time; none: the defaults."""

    def contestants(self, name: str) -> dict[str, Contestant]:
        """The algorithm as it is, or without each of the ingredients."""
        found = ALGORITHMS[name]
        if self.total_timesteps is not None:
            found = found._replace(total_timesteps=self.total_timesteps, deep_timesteps=self.total_timesteps)
        if not self.without:
            return {name: found}
        known = WITHOUT.get(name, {})
        return {f"{name} without {one}": found.without(known[one]) for one in self.without if one in known}


def main() -> None:
    settings = parse()
    console = Console(width=110)
    contestants = {what: each for name in settings.algorithms for what, each in settings.contestants(name).items()}
    for what, contestant in contestants.items():
        console.print(f"{what}, {settings.setup.split}")
        for question in settings.questions:
            begun = time.time()
            with contestant.patched():
                for row in QUESTIONS[question](contestant, settings.setup):
                    console.print(f"  {row.question:<27}{row.what:<52}{row}")
            console.print(f"  {'':<27}{time.time() - begun:.0f} s")


def parse() -> Settings:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--split", choices=("development", "held-out"), default="held-out")
    parser.add_argument("--count", type=int, default=3, help="problems of each family")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem of each family")
    parser.add_argument("--seeds", type=int, default=5, help="seeds for each problem")
    parser.add_argument("--objectives", type=int, nargs="+", default=list(SIZES), help="numbers of objectives")
    parser.add_argument("--total-timesteps", type=float, help="of each run; by default each algorithm's own")
    ingredients = sorted({one for each in WITHOUT.values() for one in each})
    parser.add_argument(
        "--without", nargs="+", choices=ingredients, default=[], help="the algorithms without each of these instead"
    )
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.count)
    setup = Setup(given.split, numbers, given.seeds, tuple(given.objectives))
    return Settings(given.algorithms, given.questions, setup, given.total_timesteps, given.without)


if __name__ == "__main__":
    main()
