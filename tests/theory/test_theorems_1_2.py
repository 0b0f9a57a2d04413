"""Theorems 1 and 2: every update rule ends at the lexicographically optimal policy.

The worlds are small random MOMDPs, continuing with gamma < 1 and episodic with gamma = 1, half of them with noise on
the rewards. In about half of their states the first objectives cannot tell the actions apart, so that every objective
has something to decide. Rates are Robbins-Monro, exploration is greedy in the limit and never ends, the tolerance is
half the smallest action gap. "Reached" means: in every state, each action the learner would choose is one of the exact
solver's `D_M`.

How fast a theorem comes true depends on the gap: actions closer than the estimates' noise cannot be told apart. The
worlds are therefore the first seeds whose gap is large enough for the budget; each test checks that it is.

For SARSA and Expected SARSA a tolerance below the gap is not enough, whatever the theorem says: see the last test. So
the seeds are also the first where no other policy can take an on-policy rule in.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
import pytest

import lexrl
from lexrl import exact, lex
from lexrl.schedules import Power, glie
from lexrl.tolerance import Absolute, Evidence

PLAIN = {"evidence": None, "guard": None, "min_alpha": 0.0}
RULES = {
    "q-learning": lexrl.QLearning,
    "sarsa": lexrl.Sarsa,
    "expected-sarsa": lexrl.ExpectedSarsa,
    "double-q": lexrl.DoubleQLearning,
}
ORDERS = {2: "max signal_1 > max signal_2", 3: "max signal_1 > max signal_2 > max signal_3"}
GAMMAS = (0.8, 0.7, 0.6)
ALPHA = Power(0.7)


class Family(NamedTuple):
    """Random worlds of one size; their seeds are the first whose smallest gap is at least the least one, and where no
    policy but the best supports itself."""

    states: int
    steps: int
    exploration: float
    """Visits to a state before exploration begins to fade."""
    least_continuing: float
    least_episodic: float
    continuing: tuple[int, ...]
    episodic: tuple[int, ...]


SHORT = {
    2: Family(5, 600_000, 600.0, 0.3, 0.5, (1, 111, 155), (63, 72, 509)),
    3: Family(5, 600_000, 600.0, 0.3, 0.5, (30, 257, 381), (44, 172, 1320)),
}
LONG = {
    2: Family(8, 5_000_000, 1000.0, 0.1, 0.2, (0, 1, 12, 16, 17, 18, 32, 41), (1, 10, 12, 19, 81, 115, 121, 144)),
    3: Family(8, 5_000_000, 1000.0, 0.1, 0.2, (10, 17, 19, 24, 30, 35, 38, 53), (18, 46, 57, 100, 135, 180, 189, 227)),
}


class Case(NamedTuple):
    name: str
    process: lexrl.MOMDP
    world: object
    solution: exact.Solution
    gaps: np.ndarray

    @property
    def gamma(self):
        return tuple(map(float, self.process.gamma))

    @property
    def below_the_gap(self):
        return tuple(float(gap) / 2 for gap in self.gaps)


@functools.cache
def cases(family, m):
    """The worlds of a family, with their exact solutions; every other one pays noisy rewards."""
    found = []
    for kind, seeds, least in (
        ("continuing", family.continuing, family.least_continuing),
        ("episodic", family.episodic, family.least_episodic),
    ):
        for place, seed in enumerate(seeds):
            episodic = kind == "episodic"
            gamma = 1.0 if episodic else GAMMAS[:m]
            process = lexrl.MOMDP.random(
                seed, family.states, 3, m, gamma=gamma, num_successors=3, tie_fraction=0.5, episodic=episodic
            )
            solution = lexrl.solve(process, ORDERS[m])
            gaps = exact.action_gaps(solution).deciding
            assert np.isfinite(gaps).all(), "every objective must have something to decide"
            assert gaps.min() >= least
            world = lexrl.FiniteEnv(process, reward_noise=0.2 * (place % 2))
            found.append(Case(f"{kind} {seed}", process, world, solution, gaps))
    return found


def learned_sets(chosen, algorithms, m, steps):
    """Train one learner in each world; the sets `[S, M+1, A]` each of them ends with."""
    worlds = lexrl.per_seed([case.world for case in chosen])
    result = lexrl.train(algorithms, worlds, ORDERS[m], seeds=len(chosen), total_timesteps=steps, num_log_points=1)
    assert not result.faults
    return [np.asarray(one.sets(result.agent(place))) for place, one in enumerate(algorithms)]


def strays(chosen, learned, level=-1):
    """By world, the states where the learner would choose an action outside the exact set of a level."""
    outside = {
        case.name: np.flatnonzero((sets[:, -1] & ~case.solution.sets[level]).any(axis=1) & ~case.solution.terminal)
        for case, sets in zip(chosen, learned, strict=True)
    }
    return {name: states.tolist() for name, states in outside.items() if len(states)}


def self_supporting(process, tau):
    """The deterministic policies that choose from `D_M` of their *own* values: where an on-policy rule can stay."""
    m, n, a = process.rewards.shape
    states = np.flatnonzero(~process.terminal)
    policies = np.array(list(itertools.product(range(a), repeat=len(states))))
    moves = process.transitions.toarray().reshape(n, a, n)[states][:, :, states]
    place = np.arange(len(states))
    q = np.empty((len(policies), len(states), m, a))
    for i, gamma in enumerate(process.gamma):
        pays = process.rewards[i][states]
        chain, own = moves[place, policies], pays[place, policies]
        values = np.linalg.solve(np.eye(len(states)) - gamma * chain, own[..., None])[..., 0]
        q[:, :, i] = pays + gamma * np.einsum("sat,pt->psa", moves, values)
    allowed = lex.admissible(q, np.asarray(tau))
    return policies[np.take_along_axis(allowed, policies[..., None], axis=2).all(axis=(1, 2))]


def learners(family, chosen, rule="q-learning", tolerance=None, exploration=None, **more):
    """An algorithm for each world: the rates of the theorem, and half the gap as tolerance unless told otherwise."""
    bandit = lexrl.EpsilonGreedy(glie(family.exploration)) if exploration is None else exploration
    return [
        RULES[rule](
            case.gamma, ALPHA, bandit, tolerance=case.below_the_gap if tolerance is None else tolerance, **PLAIN | more
        )
        for case in chosen
    ]


def stray_states(family, m, **settings):
    """Where learners in the worlds of a family end outside the exact policy."""
    chosen = cases(family, m)
    return strays(chosen, learned_sets(chosen, learners(family, chosen, **settings), m, family.steps))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("m", [2, 3])
def test_each_rule_reaches_the_exact_policy(rule, m):
    assert stray_states(SHORT[m], m, rule=rule) == {}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("m", [2, 3])
def test_each_rule_reaches_the_exact_policy_of_larger_worlds_with_smaller_gaps(rule, m):
    assert stray_states(LONG[m], m, rule=rule) == {}


@pytest.mark.parametrize("m", [2, 3])
def test_the_conditions_of_the_theorems_hold_in_these_worlds(m):
    for case in cases(SHORT[m], m):
        for algorithm in (*learners(SHORT[m], [case], "q-learning"), *learners(SHORT[m], [case], "double-q")):
            theorem = lexrl.check(algorithm, case.process, ORDERS[m])[0]
            assert theorem.verdict == "holds", str(theorem)


@pytest.mark.parametrize("m", [2, 3])
def test_no_other_policy_supports_itself_in_these_worlds(m):
    for case in (*cases(SHORT[m], m), *cases(LONG[m], m)):
        best = case.solution.sets[-1][~case.solution.terminal]
        policies = self_supporting(case.process, case.below_the_gap)
        assert len(policies) == best.sum(axis=1).prod(), case.name
        assert best[np.arange(len(best)), policies].all(), case.name


def test_a_softmax_bandit_that_cools_slowly_reaches_the_exact_policy():
    # n^-0.15 falls from 1 to about 0.2 here: cold enough to be nearly greedy, warm enough to try everything often.
    assert stray_states(SHORT[3], 3, rule="expected-sarsa", exploration=lexrl.Softmax(Power(0.15))) == {}


def test_a_tolerance_that_shrinks_with_the_errors_of_the_estimates_reaches_the_exact_policy():
    # Nothing is known of the gap here. Four standard errors: two estimates of the same value rarely part that far.
    assert stray_states(SHORT[3], 3, tolerance=0.0, evidence=Evidence(4.0)) == {}


def test_a_tolerance_that_shrinks_too_fast_leaves_lower_objectives_nothing_to_decide():
    # After a thousand updates it is 1e-9. Actions that truly tie then differ by their noise for ever: objective 1 is
    # served as before, but which of its best actions is taken, chance decides.
    chosen = cases(SHORT[3], 3)
    hasty = learners(SHORT[3], chosen, tolerance=Absolute(1.0) * Power(3.0))
    learned = learned_sets(chosen, hasty, 3, SHORT[3].steps)
    assert strays(chosen, learned, level=1) == {}
    assert len(strays(chosen, learned)) > len(chosen) / 2
    for case, sets in zip(chosen, learned, strict=True):
        assert (sets[~case.solution.terminal, -1].sum(axis=-1) == 1).all()


@pytest.mark.parametrize(
    ("rule", "tau", "stays"),
    [
        ("q-learning", 2.0, True),
        ("double-q", 2.0, True),
        ("sarsa", 2.0, False),
        ("expected-sarsa", 2.0, False),
        ("sarsa", 0.4, True),
        ("expected-sarsa", 0.4, True),
    ],
)
def test_on_policy_rules_need_a_smaller_tolerance_than_the_gap(rule, tau, stays):
    # Stay: (1, 0) and again; leave: (5, 100) and the end. To stay for ever is worth 10 to objective 1, to leave 5: the
    # gap is 5, and no two actions tie. But of a policy that leaves, staying once more is worth 1 + 0.9 * 5 = 5.5. That
    # is within a tolerance of 2 of leaving, so objective 2 decides, and goes on leaving: a fixed point. There is none
    # where tau < (1 - gamma) * gap = 0.5, since a policy within tau of its own best is within tau / (1 - gamma) of the
    # optimum. Q-learning never looks at what lower objectives do, so its Q_1 is right whatever the tolerance.
    stay_or_leave = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    process = lexrl.MOMDP.from_arrays(stay_or_leave, [[[1.0, 5.0], [0, 0]], [[0.0, 100.0], [0, 0]]], 0.9, terminal=[1])
    gaps = exact.action_gaps(lexrl.solve(process, ORDERS[2]))
    np.testing.assert_allclose(gaps.literal, [5.0, 100.0])
    np.testing.assert_allclose(gaps.deciding, [5.0, np.inf])
    np.testing.assert_array_equal(self_supporting(process, (tau, tau)), [[0]] if tau < 0.5 else [[0], [1]])
    algorithm = RULES[rule](0.9, ALPHA, lexrl.EpsilonGreedy(glie(30.0)), tolerance=tau, **PLAIN)
    result = lexrl.train(
        algorithm, lexrl.FiniteEnv(process), ORDERS[2], seeds=3, total_timesteps=100_000, num_log_points=1
    )
    for seed in range(3):
        np.testing.assert_array_equal(algorithm.sets(result.agent(seed))[0, -1], [stays, not stays])
