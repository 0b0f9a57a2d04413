"""Certificates computed again: what is right is found right, what is spoiled is noticed."""

import dataclasses

import numpy as np
import pytest
from brute_force import integer_world, order_of

from lexrl.errors import InputError
from lexrl.exact import certify, certify_program, solve, solve_slack
from lexrl.momdp import MOMDP


def world_of(seed):
    return integer_world(seed, 2, gamma=0.9) if seed % 2 else MOMDP.random(seed, 6, 3, 3, tie_fraction=0.5)


def spoil_action(rng, policy, allowed):
    """In one state an action that is not among the allowed ones; None where there is no such state."""
    states = np.flatnonzero(~allowed.all(axis=1))
    if not len(states):
        return None
    state = rng.choice(states)
    spoiled = policy.copy()
    spoiled[state] = np.eye(policy.shape[1])[rng.choice(np.flatnonzero(~allowed[state]))]
    return spoiled


def spoiled_solutions(seeds):
    """How many spoiled solutions there were, and which were not noticed."""
    count, missed = 0, []
    for seed in seeds:
        rng, world = np.random.default_rng(seed), world_of(seed)
        order = order_of(world)
        solution = solve(world, order)
        assert certify(world, order, solution.policy, solution.values).holds
        policy = spoil_action(rng, solution.policy, solution.sets[-1])
        values = solution.values.copy()
        place = tuple(rng.integers(values.shape))
        values[place] += rng.choice([-1, 1]) * 10.0 ** -rng.integers(1, 12) * max(1.0, abs(values[place]))
        for claim in ((policy, solution.values), (solution.policy, values)):
            if claim[0] is not None:
                count += 1
                missed += [seed] * certify(world, order, *claim).holds
    return count, missed


def spoiled_programs(seeds):
    count, missed = 0, []
    for seed in seeds:
        rng, world = np.random.default_rng(seed), MOMDP.random(seed, 6, 3, 2)
        found = solve_slack(world, order_of(world), slack=(0.05, 0.0))
        assert certify_program(world, found).faults == ()
        policy = found.policy.copy()
        state = int(np.argmax(found.occupancy.sum(axis=1)))
        policy[state] = np.roll(policy[state], 1)
        best = found.best.copy()
        best[rng.integers(2)] += 10.0 ** -rng.integers(1, 6)
        claims = [{"policy": policy}, {"best": best}]
        if found.shadow_prices[1, 0] > 0:
            factor = 1 + rng.choice([-1, 1]) * rng.uniform(0.05, 0.5)
            claims += [
                {"shadow_prices": found.shadow_prices * factor},
                {"shadow_prices": found.shadow_prices + np.array([[0, 0.1], [0, 0]])},
            ]
        for claim in claims:
            count += 1
            missed += [(seed, list(claim))] * (not certify_program(world, dataclasses.replace(found, **claim)).faults)
    return count, missed


def test_what_is_spoiled_is_noticed():
    count, missed = spoiled_solutions(range(20))
    more, unseen = spoiled_programs(range(8))
    assert count + more > 60
    assert not missed
    assert not unseen


@pytest.mark.slow
def test_what_is_spoiled_is_noticed_300_times():
    count, missed = spoiled_solutions(range(1000, 1100))
    more, unseen = spoiled_programs(range(1000, 1040))
    print(f"{count + more} spoiled solutions, {len(missed) + len(unseen)} not noticed")
    assert count + more >= 300
    assert not missed
    assert not unseen


def test_the_sentence_names_the_place():
    world = MOMDP.random(0, 5, 2, 2)
    order = order_of(world)
    solution = solve(world, order)
    values = solution.values.copy()
    values[1, 3] += 1e-9
    (fault,) = certify(world, order, solution.policy, values).faults
    assert fault.startswith("signal_2: the value of state 3 is")
    wrong = 1 - solution.policy
    (fault,) = certify(world, order, wrong, solution.values).faults
    assert "in state 0, which signal_1 does not leave (and 4 more)" in fault
    with pytest.raises(InputError, match=r"values have shape \(5,\); they need \(2, 5\)"):
        certify(world, order, solution.policy, solution.values[0])


def test_any_choice_among_the_sets_will_do():
    world = integer_world(1, 2)
    solution = solve(world, order_of(world), tolerance=0.3)
    greedy = np.eye(world.num_actions)[np.argmax(solution.sets[-1], axis=1)]
    assert certify(world, order_of(world), greedy, solution.values, tolerance=0.3).holds
