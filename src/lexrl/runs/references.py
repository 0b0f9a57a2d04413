"""What the policies of a run are compared with: the best that is known for an objective, given those before it.

- On a finite environment, the exact optimum.
- Else what the algorithm itself reached for the first i objectives alone: value-based algorithms can play their policy
  for any prefix of the order, LPPO and LA2C keep policies of every stage.
- If it is asked for, policies that are trained for the prefix alone, as long as the run was.
"""

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from lexrl import catalog, exact
from lexrl.errors import InputError
from lexrl.loops import selection
from lexrl.loops.evaluation import Evaluation, evaluate, evaluate_on_host
from lexrl.order import Order
from lexrl.runs.optimum import GAMMA
from lexrl.runs.policy import without_replay
from lexrl.runs.result import Result
from lexrl.runs.run import Run, initialize, make_run, on_host, plan
from lexrl.types import (
    Discrete,
    HasCandidates,
    HasGamma,
    HasModel,
    HasMultipliers,
    HasPrefixes,
    HasProbabilities,
    HasTolerance,
)

PER_OBJECTIVE = ("gamma", "tolerance", "update_tolerance", "return_scale", "limits")
"""Settings that may have one value for each objective."""
Player = Callable[[int, int, int | None], Evaluation]
"""Plays so many episodes, from this number on; longer ones than so many steps are cut off."""
OWN = "its own policy"
"""What a seed learned for the first objectives alone."""


class Reference(NamedTuple):
    """A policy of each seed that serves the first objectives of the order."""

    num_objectives: int
    """How many; the last of them is what it is a reference for."""
    name: str
    play: Player
    same: tuple[bool, ...] = ()
    """For each seed: it is the policy that the run hands over."""


class Exact(NamedTuple):
    """Discounted returns over an infinite horizon; all objectives are maximized."""

    returns: np.ndarray
    """`[seeds, M]`: of the policies that are handed over."""
    best: np.ndarray
    """`[M]`: of each objective, given those before it."""
    optimum: np.ndarray
    """`[M]`: of the optimum of the whole order, which uses the tolerances where that buys something."""


def gamma_of(algorithm: Any) -> Any:
    """The discount of what an algorithm optimizes; 1 if it has none."""
    return algorithm.gamma if isinstance(algorithm, HasGamma) else 1.0


def player(result: Result) -> Player:
    """Plays the policies that the run hands over."""
    population, agents = result.on_devices()
    return _player(result, population, agents)


def untrained(result: Result) -> Player:
    """Plays the policies that training began with; where it keeps sampled ones among its candidates, these."""
    population = result.run.population()
    algorithms, m = population.algorithms, len(result.run.order.objectives)
    # By the program that training began with: it is compiled already.
    agents = without_replay(initialize(result.run, population).agent)
    if isinstance(algorithms, HasCandidates):
        sampled = [k for k in range(algorithms.num_candidates(m)) if _is_sampled(algorithms, m, k)]
        if sampled:
            index = np.full(population.seeds.shape[0], sampled[0], np.int32)
            agents = selection.each_candidate(algorithms, agents, index)
    return _player(result, population, agents)


def _is_sampled(algorithms: HasCandidates, num_objectives: int, index: int) -> bool:
    return algorithms.describe_candidate(num_objectives, index).get("actions") == "sampled"


def own_references(result: Result) -> list[Reference]:
    """What the algorithm reached for each prefix of the order; empty if it does not keep that."""
    population, agents = result.on_devices()
    algorithms, names = population.algorithms, result.run.order.names
    of = {i: f"{OWN} for {_prefix(names[:i])}" for i in range(1, len(names))}
    same = {}
    if isinstance(algorithms, HasPrefixes):
        played = {i: _prefix_agents(algorithms, agents, np.int32(i)) for i in of}
    elif isinstance(algorithms, HasCandidates) and (which := _kept_references(result)) is not None:
        padded = np.concatenate([which, np.repeat(which[-1:], population.seeds.shape[0] - len(which), axis=0)])
        played = {i: selection.each_candidate(algorithms, agents, padded[:, i - 1]) for i in of}
        same = {i: _is_handed_over(result, which[:, i - 1]) for i in of}
    else:
        played = {}
    return [Reference(i, of[i], _player(result, population, found), same.get(i, ())) for i, found in played.items()]


def _is_handed_over(result: Result, candidates: np.ndarray) -> tuple[bool, ...]:
    """For each seed: is this candidate the policy that was chosen?"""
    algorithm: Any = result.policies[0].algorithm
    described = [algorithm.describe_candidate(len(result.run.order.names), int(one)) for one in candidates]
    return tuple(
        all(chosen.get(name) == value for name, value in what.items())
        for what, chosen in zip(described, result.selection, strict=True)
    )


def _kept_references(result: Result) -> np.ndarray | None:
    """`[seeds, M - 1]`: the candidates that serve each prefix best; None where that is not known."""
    which = np.array([about.get("references", [-1]) for about in result.selection], np.int32)
    return which if which.size and (which >= 0).all() else None


def retrained_references(result: Result, train: Callable[[Run], Result]) -> list[Reference]:
    """Policies that are trained for each prefix alone, by the same algorithm, and for the first objective by the one
    that it extends, each as long as the run was."""
    found = []
    for i in range(1, len(result.run.order.objectives)):
        for run in prefix_runs(result.run, i):
            trained = train(run)
            name = f"{run.name} trained for {_prefix(run.order.names)}"
            found.append(Reference(i, name, player(trained)))
    return found


def prefix_runs(run: Run, num_objectives: int) -> list[Run]:
    """The same run with the first objectives alone, and by the scalar parent if there is only one."""
    order = Order(run.order.objectives[:num_objectives])
    about = {"name": run.name, "verify_episodes": 0, "env_kwargs": run.env_kwargs if run.env_id else None}
    target = run.env_id or run.env
    each = run.algorithm if isinstance(run.algorithm, list | tuple) else [run.algorithm]
    shortened = [_shortened(one, num_objectives) for one in each]
    one = shortened if isinstance(run.algorithm, list | tuple) else shortened[0]
    runs = [make_run(one, target, order, run.seeds, run.total_timesteps, run.num_log_points, **about)]
    entry = catalog.entry_of(catalog.ALGORITHMS, each[0])
    if num_objectives == 1 and entry is not None and entry.parent:
        kwargs = about["env_kwargs"]
        runs.append(
            plan(entry.parent, target, order, run.seeds, run.total_timesteps, env_kwargs=kwargs, verify_episodes=0)
        )
    return runs


def exact_returns(result: Result, seconds: float = float("inf")) -> Exact | None:
    """What the policies are worth, and the best of each objective given those before it.

    None if it is not known, or not found within so many seconds.
    """
    run, algorithm = result.run, result.policies[0].algorithm
    if not (isinstance(run.env, HasModel) and isinstance(algorithm, HasProbabilities)):
        return None
    if not isinstance(run.env.spec.observation_space, Discrete):
        return None
    gamma = algorithm.gamma if isinstance(algorithm, HasGamma) else GAMMA
    order = _with_tolerances(run.order, algorithm)
    try:
        process = run.env.momdp(order.discounts(gamma, run.env.spec.signals))
        # With multipliers, tolerances are about the return of the whole policy.
        whole = isinstance(algorithm, HasMultipliers) and len(set(process.gamma)) == 1
        solve = exact.solve_slack if whole else exact.solve
        solutions, deadline = [], time.monotonic() + seconds
        for i in range(len(order.objectives)):
            if (left := deadline - time.monotonic()) <= 0:
                return None
            prefix, limit = Order(order.objectives[: i + 1]), None if left == float("inf") else left
            solutions.append(np.asarray(solve(process, prefix, time_limit=limit).returns, float))
        if time.monotonic() >= deadline:  # the last one may be a policy that was found so far, not the optimum
            return None
        returns = np.stack(
            [exact.evaluate(process, one, order).returns for one in result.probabilities(process=process)]
        )
    except InputError:  # such as a discount of 1, without which there is no optimum over an infinite horizon
        return None
    return Exact(returns, np.array([solution[-1] for solution in solutions]), solutions[-1])


def _player(result: Result, population: Any, agents: Any) -> Player:
    """Plays agents of the run, or others of the same shapes."""
    gamma = gamma_of(result.policies[0].algorithm)
    if on_host(result.run.env):
        one = partial(evaluate_on_host, population, result.run.env)
    else:
        one = partial(evaluate, population)
        # Through the host: types and places are then the same for all, and one program plays them.
        agents = jax.device_put(jax.tree.map(np.asarray, agents), population.seeds.sharding)

    def play(first: int, episodes: int, longest: int | None) -> Evaluation:
        return one(agents, episodes=episodes, first=first, gamma=gamma, max_steps=longest)

    return play


@jax.jit
def _prefix_agents(algorithms: Any, agents: Any, num_objectives: Any) -> Any:
    return jax.vmap(lambda algorithm, agent: algorithm.prefix(agent, num_objectives))(algorithms, agents)


def _shortened(algorithm: Any, num_objectives: int) -> Any:
    """The algorithm with settings for the first objectives only."""
    changes = {
        field.name: value[:num_objectives]
        for field in dataclasses.fields(algorithm)
        if field.name in PER_OBJECTIVE and isinstance(value := getattr(algorithm, field.name), tuple)
    }
    return dataclasses.replace(algorithm, **changes)


def _with_tolerances(order: Order, algorithm: Any) -> Order:
    """The order with the tolerances that the algorithm was trained with."""
    if not isinstance(algorithm, HasTolerance):
        return order
    each = algorithm.tolerance if isinstance(algorithm.tolerance, tuple) else (algorithm.tolerance,) * len(order.names)
    pairs = zip(order.objectives, each, strict=True)
    return Order(tuple(objective._replace(tolerance=tolerance) for objective, tolerance in pairs))


def _prefix(names: tuple[str, ...]) -> str:
    return f"{names[0]!r} alone" if len(names) == 1 else f"the first {len(names)} objectives"
