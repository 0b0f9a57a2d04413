"""Proposition 1, learned: an arbitrary tolerance costs a learner at most `tau_i / (1 - gamma)` in objectives 1 and 2.

`J*` is the return of a lexicographically optimal policy, exact; `J` is the exact return of the policy that was learned.
The proposition speaks of the limit; until then an estimate may be wrong by a little, and an action may seem admissible
that falls short by the tolerance and twice the error. `ERROR` is what the estimates are allowed here.
"""

import numpy as np
import pytest

import lexrl
from lexrl.schedules import Power, glie

ORDER = "max signal_1 > max signal_2 > max signal_3"
GAMMA = 0.8
ERROR = 0.03
SEEDS = range(12)


def train(algorithms, processes, steps):
    worlds = lexrl.per_seed([lexrl.FiniteEnv(process, reward_noise=0.1) for process in processes])
    order = ORDER if processes[0].num_objectives == 3 else ORDER.rpartition(" > ")[0]
    result = lexrl.train(algorithms, worlds, order, seeds=len(processes), total_timesteps=steps, num_log_points=1)
    assert not result.faults
    return list(result.probabilities())


@pytest.fixture(scope="module")
def learned():
    """Random worlds with arbitrary, mostly large tolerances: losses `J* - J` and tolerances, `[worlds, M]` each."""
    rng = np.random.default_rng(0)
    taus = 10 ** rng.uniform(-1.5, 0.3, (len(SEEDS), 3))
    processes = [lexrl.MOMDP.random(seed, 5, 3, 3, gamma=GAMMA, num_successors=3, tie_fraction=0.3) for seed in SEEDS]
    bandit = lexrl.EpsilonGreedy(glie(1000.0))
    algorithms = [
        lexrl.QLearning(
            evidence=None,
            guard=None,
            min_alpha=0.0,
            gamma=GAMMA,
            alpha=Power(0.7),
            exploration=bandit,
            tolerance=tuple(map(float, tau)),
        )
        for tau in taus
    ]
    policies = train(algorithms, processes, 400_000)
    best = [lexrl.solve(process, ORDER).returns for process in processes]
    achieved = [
        lexrl.exact.evaluate(process, policy, ORDER).returns
        for process, policy in zip(processes, policies, strict=True)
    ]
    return np.array(best) - np.array(achieved), taus


@pytest.mark.parametrize("objective", [0, 1])
def test_an_arbitrary_tolerance_costs_no_more_than_the_bound(learned, objective):
    losses, taus = learned
    assert (losses[:, objective] <= (taus[:, objective] + 2 * ERROR) / (1 - GAMMA)).all()


def test_the_tolerances_were_large_enough_to_cost_something(learned):
    losses, taus = learned
    shares = losses * (1 - GAMMA) / taus
    assert (shares[:, 0] > 0.1).sum() >= 3
    # Nothing is promised of objective 3, and indeed it loses more than its bound somewhere.
    assert (losses[:, 2] > (taus[:, 2] + 2 * ERROR) / (1 - GAMMA)).any()


def test_the_bound_is_nearly_reached_and_switches_with_the_tolerance():
    # One state that loops: the first action pays (1, 0), the second (0, 1). A tolerance above 1 gives it all away.
    process = lexrl.MOMDP.from_arrays(np.ones((1, 2, 1)), [[[1.0, 0.0]], [[0.0, 1.0]]], GAMMA)
    taus = (1.1, 0.9)
    bandit = lexrl.EpsilonGreedy(glie(1000.0))
    algorithms = [
        lexrl.QLearning(
            evidence=None,
            guard=None,
            min_alpha=0.0,
            gamma=GAMMA,
            alpha=Power(0.7),
            exploration=bandit,
            tolerance=(tau, 0.5),
            initial_q=0.0,
        )
        for tau in taus
    ]
    policies = train(algorithms, [process] * 2, 100_000)
    order = "max signal_1 > max signal_2"
    generous, strict = (
        lexrl.solve(process, order).returns - lexrl.exact.evaluate(process, p, order).returns for p in policies
    )
    np.testing.assert_allclose(generous, [1 / (1 - GAMMA), -1 / (1 - GAMMA)], rtol=1e-6)
    np.testing.assert_allclose(strict, [0.0, 0.0], atol=1e-6)
