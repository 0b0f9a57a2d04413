"""Proposition 1: an arbitrary tolerance costs objective 1 and 2 at most `tau_i / (1 - gamma)`, and nothing is promised
further down.

`J*` is the return of a lexicographically optimal policy (tolerance 0); the policy may be *any* that chooses from `D_M`.
"""

import dataclasses

import numpy as np
import pytest

from lexrl.exact import solve
from lexrl.momdp import MOMDP

SEEDS = range(300)


def worst_return(world, objective, sets):
    """The least an objective can get from any policy that stays in the sets."""
    restricted = dataclasses.replace(world, action_mask=sets)
    return -solve(restricted, f"min {world.signals[objective]}").returns[0]


def draw(seed):
    """A small world, its order and arbitrary tolerances, from small to large."""
    rng = np.random.default_rng(seed)
    gamma = float(rng.choice([0.5, 0.9, 0.99]))
    world = MOMDP.random(seed, int(rng.integers(2, 8)), int(rng.integers(2, 5)), 3, gamma=gamma, tie_fraction=0.3)
    return world, "max signal_1 > max signal_2 > max signal_3", tuple(10 ** rng.uniform(-3, 0.5, 3)), gamma


@pytest.mark.parametrize("chunk", range(6))
def test_the_bound_holds_for_every_admissible_policy(chunk):
    for seed in SEEDS[chunk::6]:
        world, order, tau, gamma = draw(seed)
        best = solve(world, order).returns
        tolerant = solve(world, order, tolerance=tau)
        for i in (0, 1):
            bound = tau[i] / (1 - gamma) + 1e-9
            assert best[i] - tolerant.returns[i] <= bound, (seed, i)
            assert best[i] - worst_return(world, i, tolerant.sets[-1]) <= bound, (seed, i)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("delta", [0.25, 3.0])
def test_the_bound_is_tight(gamma, delta):
    # One state that loops; one action pays delta, the other nothing. Tolerance delta admits always choosing the other.
    world = MOMDP.from_arrays(np.ones((1, 2, 1)), np.array([[[delta, 0.0]]]), gamma)
    solution = solve(world, tolerance=delta)
    assert solution.sets[-1].all()
    loss = solve(world).returns[0] - worst_return(world, 0, solution.sets[-1])
    np.testing.assert_allclose(loss, delta / (1 - gamma))


@pytest.mark.parametrize("size", [1.0, 100.0, 1e6])
def test_nothing_holds_for_the_third_objective(size):
    # The tolerance on objective 1 lets in an action that objective 2 prefers; the one objective 3 lived on is gone.
    gamma, tau = 0.9, 0.1
    world = MOMDP.from_arrays(np.ones((1, 2, 1)), np.array([[[tau, 0.0]], [[0.0, 1.0]], [[size, 0.0]]]), gamma)
    order = "max signal_1 > max signal_2 > max signal_3"
    loss = solve(world, order).returns - solve(world, order, tolerance=tau).returns
    np.testing.assert_allclose(loss, [tau / (1 - gamma), -1 / (1 - gamma), size / (1 - gamma)])
