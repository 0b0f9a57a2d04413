"""PB-LRL against ground truth: policies learned in small random MOMDPs are worth what the exact solver says is best.

A policy is a softmax of a table (a network without hidden layers and biases on numbered states); its worth is computed
exactly, as it is (randomised) and as its likeliest actions. Distances are shares of what is at stake: 2 % means

    |J*_i - J_i(pi)| <= 0.02 (max_pi J_i - min_pi J_i)        for every objective i

on both sides: more than `J*_i` for a less important objective would be bought with a more important one. In about half
of the states the first objectives cannot tell the actions apart, so that every objective has something to decide. How
fast a learner tells two actions apart depends on how far they are: the worlds are the first seeds whose smallest gap is
at least `LEAST_GAP`, and each test checks that it is.

A single learner may fail by bad luck: noise may drive its policy to an action that the objective it is about finds too
late. Three learn in each world, from seeds that played no part in choosing the settings, and two must succeed.
"""

import functools
from typing import NamedTuple

import numpy as np
import pytest

import lexrl
from lexrl import Dual, Networks, exact
from lexrl.algos.projection import Projection
from lexrl.schedules import Linear

SEEDS = {2: (0, 1, 10, 12, 19, 21, 41, 55), 3: (6, 12, 17, 18, 19, 24, 30, 35)}
ORDERS = {2: "max signal_1 > max signal_2", 3: "max signal_1 > max signal_2 > max signal_3"}
STEPS = {2: 500_000, 3: 1_000_000}
WINDOW = {2: 300.0, 3: 500.0}
LEARNERS_EACH, ENOUGH = 3, 2
FIRST_SEED = 5000
GAMMA, LEAST_GAP = 0.9, 0.1
CLOSE = 0.02
STRICT = 0.005
"""The tolerance of a learner that should be optimal, as a share of what is at stake."""
SLACK = 0.05
"""The tolerance of one that may give something up."""
GENEROUS = (0, 19, 21, 55)
"""Worlds where slack is worth a lot."""
LEARNERS = {"LA2C": (lexrl.LA2C, 256, 0.03), "LPPO": (lexrl.LPPO, 512, 0.02), "Projection": (Projection, 512, 0.02)}


class Case(NamedTuple):
    process: lexrl.MOMDP
    best: np.ndarray
    """`J*`, objective by objective."""
    stake: np.ndarray
    """The best an objective can have, less the worst."""


@functools.cache
def case(m, seed):
    process = lexrl.random_momdp(seed, 8, 3, m, ties=0.5, episodic=True, gamma=GAMMA, successors=3)
    solution = lexrl.solve(process, ORDERS[m])
    gaps = exact.action_gaps(solution).deciding
    assert np.isfinite(gaps).all(), "every objective must have something to decide"
    assert gaps.min() >= LEAST_GAP
    ends = [[lexrl.solve(process, f"{way} {name}").returns[0] for way in ("max", "min")] for name in process.objectives]
    return Case(process, solution.returns, np.sum(ends, axis=1))


def learner(name, m, tolerance):
    """One objective after the other. Prices must move faster than the policy, and levels be known well enough."""
    kind, batch, rate = LEARNERS[name]
    updates = STEPS[m] / batch
    more = {} if name == "LA2C" else {"epochs": 2, "minibatches": 2}
    return kind(
        worlds=16,
        rollout=batch // 16,
        gamma=GAMMA,
        trace=0.5,
        rate=Linear(rate, 0.0, updates),
        critic_rate=Linear(0.05, 0.005, updates),
        tolerance=tuple(map(float, tolerance)),
        dual=Dual(sequential=True, window=WINDOW[m], patience=2000.0, eta=15.0, ceiling=30.0),
        networks=Networks(hidden=(), bias=False),
        **more,
    )


@functools.cache
def learned(name, m):
    """For each (kind, world) the policies `[learners, S, A]`, as they are and greedy: one program trains them all."""
    kinds = {("strict", seed): STRICT * case(m, seed).stake for seed in SEEDS[m]}
    if m == 2 and name != "Projection":
        kinds |= {("slack", seed): case(m, seed).stake * (SLACK, STRICT) for seed in GENEROUS}
    keys = [key for key in kinds for _ in range(LEARNERS_EACH)]
    algorithms = [learner(name, m, kinds[key]) for key in keys]
    worlds = lexrl.per_seed([lexrl.finite_world(case(m, seed).process) for _, seed in keys])
    seeds = range(FIRST_SEED, FIRST_SEED + len(keys))
    result = lexrl.train(algorithms, worlds, ORDERS[m], seeds=seeds, steps=STEPS[m], chunks=1)
    assert not result.faults
    shape = (len(kinds), LEARNERS_EACH, 8, 3)
    both = result.policies(greedy=False).reshape(shape), result.policies().reshape(shape)
    return {key: (both[0][place], both[1][place]) for place, key in enumerate(kinds)}


def shortfalls(world, policies, best, m):
    """`(J*_i - J_i) / stake_i` for each learner, `[learners, M]`."""
    returns = [lexrl.evaluate(world.process, policy, ORDERS[m]).returns for policy in policies]
    return (best - np.array(returns)) / world.stake


def marks(name, m):
    """One program is fast enough for every day; projection does not reach every world yet."""
    missed = [pytest.mark.xfail(reason="some worlds are missed", strict=False)] if name == "Projection" else []
    return missed + ([] if (name, m) == ("LPPO", 2) else [pytest.mark.slow])


@pytest.mark.parametrize("place", range(8), ids=lambda place: f"world{place}")
@pytest.mark.parametrize(
    ("name", "m"), [pytest.param(name, m, marks=marks(name, m)) for m in SEEDS for name in LEARNERS]
)
def test_within_two_percent_of_the_exact_optimum(name, m, place):
    seed = SEEDS[m][place]
    world = case(m, seed)
    chances, likeliest = (shortfalls(world, each, world.best, m) for each in learned(name, m)["strict", seed])
    reached = (np.abs(chances) <= CLOSE).all(axis=1) & (np.abs(likeliest) <= CLOSE).all(axis=1)
    assert reached.sum() >= ENOUGH, chances.round(4).tolist()


@pytest.mark.parametrize("m", SEEDS)
def test_the_worlds_are_none_that_another_order_would_solve_as_well(m):
    """In the reverse order the best policy is far from the one that is asked for."""
    back = " > ".join(reversed(ORDERS[m].split(" > ")))
    for seed in SEEDS[m]:
        world = case(m, seed)
        other = lexrl.evaluate(world.process, lexrl.solve(world.process, back).policy, ORDERS[m]).returns
        assert np.abs((world.best - other) / world.stake).max() > 5 * CLOSE


@pytest.mark.parametrize("name", [pytest.param("LA2C", marks=pytest.mark.slow), "LPPO"])
@pytest.mark.parametrize("seed", GENEROUS)
def test_slack_buys_what_the_linear_program_says(name, seed):
    """Objective 1 gives up no more than its slack (and 2 % of the stake), objective 2 has 95 % of what that buys."""
    world = case(2, seed)
    program = lexrl.solve_slack(world.process, ORDERS[2], slack=(float(SLACK * world.stake[0]), 0.0))
    bought = (program.returns - world.best)[1] / world.stake[1]
    assert bought > 0.08
    chances, _ = learned(name, 2)["slack", seed]
    short = shortfalls(world, chances, program.returns, 2)
    # The last: the slack was used, and not just left alone.
    reached = (short[:, 0] <= CLOSE) & (short[:, 1] <= 0.05) & (short[:, 1] <= bought / 2)
    assert reached.sum() >= ENOUGH, short.round(4).tolist()
