"""LDQN against ground truth: with a table for a network it ends in the exact lexicographic sets, M up to 5.

The worlds are small random MOMDPs in which the first objectives often cannot tell the actions apart, so that each
objective has something to decide. A network without hidden layers and biases on numbered states is a table; replay and
target network are what they are for any network. The tolerance is half the smallest action gap; the worlds are the
first seeds whose gap is at least `LEAST_GAP`, and each test checks that it is.
"""

import functools

import jax
import numpy as np
import pytest

import lexrl
from lexrl import exact
from lexrl.schedules import Linear

SEEDS = {1: (1, 5, 8, 17), 2: (9, 15, 18, 35), 3: (1, 2, 3, 26), 5: (22, 60, 107, 218)}
TIES = {1: 0.5, 2: 0.5, 3: 0.5, 5: 0.8}
LEAST_GAP = {1: 0.15, 2: 0.15, 3: 0.15, 5: 0.1}
STATES, ACTIONS, GAMMA, STEPS = 6, 3, 0.8, 120_000


def order(m):
    return " > ".join(f"max signal_{i + 1}" for i in range(m))


@functools.cache
def cases(m):
    """Processes, their exact solutions, and half their gaps."""
    found = []
    for seed in SEEDS[m]:
        process = lexrl.MOMDP.random(
            seed, STATES, ACTIONS, m, gamma=GAMMA, num_successors=3, tie_fraction=TIES[m], episodic=True
        )  # fmt: skip
        solution = lexrl.solve(process, order(m))
        gaps = exact.action_gaps(solution).deciding
        assert np.isfinite(gaps).all(), "every objective must have something to decide"
        assert gaps.min() >= LEAST_GAP[m]
        found.append((process, solution, gaps / 2))
    return found


@functools.cache
def learned(m):
    """Greedy policies `[worlds, S, A]` and values `[worlds, M, S, A]`: one program trains them all.

    Every action is tried alike. The scale keeps errors within the part of the loss that is a square: beyond it the
    targets' median would be learned, not their mean.
    """
    algorithms = [
        lexrl.LDQN(
            gamma=GAMMA,
            tolerance=tuple(map(float, tau)),
            epsilon=1.0,
            learning_rate=Linear(0.03, 0.0, STEPS / 16),
            return_scale=5.0,
            num_envs=8,
            num_steps=4,
            gradient_steps=2,
            num_members=1,
            target_update_interval=400,
            polyak=1.0,
            double_q=False,
            evidence=None,
            explore_prefixes=False,
            explore_novelty=False,
            buffer_size=51_200,
            hidden_sizes=(),
            use_bias=False,
        )
        for _, _, tau in cases(m)
    ]
    worlds = lexrl.per_seed([lexrl.FiniteEnv(process) for process, _, _ in cases(m)])
    result = lexrl.train(algorithms, worlds, order(m), seeds=range(50, 54), total_timesteps=STEPS, num_log_points=1)
    assert not result.faults
    values = [
        np.asarray(jax.vmap(functools.partial(algorithm.values, result.agent(place)))(np.arange(STATES)))
        for place, algorithm in enumerate(algorithms)
    ]
    return result.probabilities(), np.stack(values).swapaxes(1, 2)


@pytest.mark.parametrize("place", range(4), ids=lambda place: f"world{place}")
@pytest.mark.parametrize("m", SEEDS)
def test_the_greedy_actions_are_the_exact_ones(m, place):
    process, solution, _ = cases(m)[place]
    policy = learned(m)[0][place]
    inside = ~solution.terminal
    np.testing.assert_array_equal(policy[inside] > 0, solution.sets[-1, inside])
    np.testing.assert_allclose(exact.gap(process, policy, order(m)).shortfall, 0.0, atol=1e-6)


@pytest.mark.parametrize("place", range(4), ids=lambda place: f"world{place}")
@pytest.mark.parametrize("m", SEEDS)
def test_the_values_are_near_the_exact_ones(m, place):
    """Of every objective and action, also of those that are not taken; returns here are of size 1 to 5."""
    _, solution, _ = cases(m)[place]
    np.testing.assert_allclose(learned(m)[1][place][:, ~solution.terminal], solution.q[:, ~solution.terminal], atol=0.2)


def test_one_objective_is_the_optimum():
    """With M = 1 there is nothing lexicographic about it: the best return there is, by plain policy iteration."""
    for place, (process, _, _) in enumerate(cases(1)):
        best = lexrl.solve(process, method="value").returns
        np.testing.assert_allclose(lexrl.exact.evaluate(process, learned(1)[0][place]).returns, best, atol=1e-6)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_last_objective_decides_somewhere(m):
    """Who stops short of the last objective keeps more actions."""
    for _, solution, _ in cases(m):
        assert solution.sets[-1].sum() < solution.sets[-2].sum()
        assert solution.sets[1].sum() < solution.sets[0].sum()
