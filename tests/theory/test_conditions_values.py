"""Every condition of the theorems, both ways, on processes small enough to know the answer by hand."""

import dataclasses

import equinox as eqx
import numpy as np
import pytest

import lexrl
from lexrl.momdp import MOMDP
from lexrl.schedules import Linear, Power, glie
from lexrl.tolerance import Absolute, Evidence, Relative
from lexrl.types import Box

ORDER = "max a > max b"
# One state that leads to itself: values are r / (1 - gamma), and gaps between actions are gaps between rewards.
# Objective a leaves actions 0 and 1 (gap 0.6), objective b then leaves action 1 (gap 0.25).
LOOP = MOMDP.from_arrays(np.ones((1, 3, 1)), [[[1.0, 1.0, 0.4]], [[0.0, 0.25, 9.0]]], 0.5, signals=["a", "b"])


PLAIN = {"evidence": None, "guard": None, "min_alpha": 0.0}


def learner(rule=lexrl.QLearning, **changes):
    """By default, everything the theorems ask for."""
    given = {"alpha": "n^-0.7", "exploration": lexrl.EpsilonGreedy(glie()), "tolerance": 0.1, "gamma": 0.5}
    return rule(**(PLAIN | given | changes))


def found(algorithm, world=LOOP, order=ORDER):
    """The verdicts and the evidence of the paper's guarantees, by a word of the condition's text."""
    convergence, proposition, *_ = lexrl.check(algorithm, world, order)
    return convergence, proposition


def condition(guarantee, words):
    (one,) = [one for one in guarantee.conditions if words in one.text]
    return one


def chain(n=4, gamma=1.0, back=False, initial=None, terminal=True):
    """A corridor whose last state ends the task; `back` lets the first action go back forever."""
    rows = np.zeros((n, 2, n))
    for state in range(n - 1):
        rows[state, 0, max(state - 1, 0) if back else state + 1] = 1
        rows[state, 1, state + 1] = 1
    rows[n - 1, :, n - 1] = 1
    rewards = np.zeros((2, n, 2))
    rewards[:, :, 1] = 1.0
    first = np.eye(n)[0] if initial is None else initial
    return MOMDP.from_arrays(
        rows, rewards, gamma, terminal=[n - 1] if terminal else None, initial=first, signals=["a", "b"]
    )


class TestAllInOrder:
    @pytest.mark.parametrize("rule", [lexrl.QLearning, lexrl.Sarsa, lexrl.ExpectedSarsa])
    def test_theorem_1_and_the_proposition(self, rule):
        convergence, proposition = found(learner(rule))
        assert (convergence.name, convergence.verdict) == ("Theorem 1", "holds")
        assert (proposition.name, proposition.verdict) == ("Proposition 1", "holds")

    def test_theorem_2(self):
        convergence, proposition = found(learner(lexrl.DoubleQLearning))
        assert (convergence.name, convergence.verdict) == ("Theorem 2 (Double Q-learning)", "holds")
        assert proposition.verdict == "fails"  # it does not speak of Double Q-learning
        assert condition(proposition, "an update rule and an exploration").verdict == "fails"
        assert "DoubleQLearning" in condition(proposition, "an update rule and an exploration").evidence

    def test_the_usual_settings_are_outside(self):
        convergence, proposition = found(lexrl.QLearning())
        assert convergence.verdict == proposition.verdict == "fails"

    def test_the_weakest_condition_decides(self):
        convergence, _ = found(learner())

        def verdict(*verdicts):
            return convergence._replace(
                conditions=tuple(convergence.conditions[0]._replace(verdict=one) for one in verdicts)
            ).verdict

        assert verdict("holds", "holds") == "holds"
        assert verdict("holds", "unknown", "holds") == "unknown"
        assert verdict("holds", "unknown", "fails") == "fails"

    def test_what_it_looks_like(self):
        text = str(found(learner(alpha=0.1))[0])
        first, second, *rest = text.splitlines()
        assert first == "Theorem 1: fails"
        assert second == "  promises: the policy converges to a lexicographically optimal one"
        assert "  - learning rates: sums diverge, sums of squares converge: alpha is 0.1" in rest
        assert "  + states and actions are finite: 1 states, 3 actions" in rest
        unknown = str(found(learner(exploration=lexrl.Softmax(glie())))[0])
        assert "\n  ? every action is tried forever in every state: " in unknown

    def test_networks_have_no_theorem_here(self):
        with pytest.raises(lexrl.InputError, match="no theorem about str here"):
            lexrl.check("dqn", LOOP, ORDER)

    def test_the_order_is_checked(self):
        with pytest.raises(lexrl.InputError, match="'a', 'b'"):
            lexrl.check(learner(), LOOP, "max speed")


class TestFinite:
    def test_it_is(self):
        one = condition(found(learner())[0], "finite")
        assert one == ("states and actions are finite", "holds", "1 states, 3 actions")

    def test_it_is_not(self):
        class Open(eqx.Module):
            @property
            def spec(self):
                return lexrl.GridNav.generate(3).spec._replace(observation_space=Box((4,)))

        convergence, proposition = lexrl.check(learner(), Open(), "min cost > max reward")
        assert condition(convergence, "finite").verdict == "fails"
        assert "Box" in condition(convergence, "finite").evidence
        for words in ("bounded", "gamma", "tried forever", "tau_B"):
            assert condition(convergence, words).verdict == "unknown", words
        assert condition(proposition, "tau_Q <= tau_B").verdict == "holds"
        assert proposition.promise.endswith("at most tau_i / (1 - gamma_i), for the first two objectives")

    def test_positions_shown_as_vectors_are_not_a_table(self):
        convergence, _ = lexrl.check(learner(), lexrl.GridNav.generate(3, one_hot=True), "min cost > max reward")
        assert condition(convergence, "finite").verdict == "fails"


class TestBounded:
    def test_the_largest_reward(self):
        assert condition(found(learner())[0], "bounded")[1:] == ("holds", "at most 9")
        assert condition(found(learner(), order="max a")[0], "bounded")[1:] == ("holds", "at most 1")

    def test_noise(self):
        noisy = condition(found(learner(), lexrl.FiniteEnv(LOOP, reward_noise=0.1))[0], "bounded")
        assert noisy.verdict == "fails"
        assert "Gaussian noise is unbounded" in noisy.evidence
        assert condition(found(learner(), lexrl.FiniteEnv(LOOP))[0], "bounded").verdict == "holds"


class TestDiscounts:
    WORDS = "every gamma < 1"

    def test_below_one(self):
        assert condition(found(learner())[0], self.WORDS)[1:] == ("holds", "gamma is at most 0.5")

    def test_one_each(self):
        process = dataclasses.replace(LOOP, gamma=np.array([0.3, 0.75]))
        assert condition(found(learner(), process)[0], self.WORDS).evidence == "gamma is at most 0.75"

    def test_a_world_has_the_learners(self):
        """In the order of the objectives, which here turns the world's around."""
        world = lexrl.FiniteEnv(LOOP)
        _, proposition = found(learner(gamma=(0.75, 0.5), tolerance=0.1), world, "max b > max a")
        assert condition(proposition, self.WORDS).evidence == "gamma is at most 0.75"
        assert "b by at most 0.4, a by at most 0.2" in proposition.promise

    def test_one_where_every_policy_ends(self):
        one = condition(found(learner(), chain(gamma=1.0))[0], self.WORDS)
        assert one[1:] == ("holds", "gamma is 1, and every policy ends")

    def test_one_where_a_policy_goes_on_for_ever(self):
        convergence, proposition = found(learner(), chain(gamma=1.0, back=True))
        one = condition(convergence, self.WORDS)
        assert one.verdict == "fails"
        assert "from 3 states a policy can go on forever" in one.evidence
        assert condition(convergence, "tau_B").verdict == "unknown"
        assert proposition.verdict == "fails"

    def test_no_number_is_promised_without_a_discount(self):
        _, proposition = found(learner(), chain(gamma=1.0))
        assert proposition.promise.endswith("for the first two objectives")

    def test_the_wrong_number_of_them(self):
        with pytest.raises(lexrl.InputError, match="3 entries for 2 objectives"):
            found(learner(gamma=(0.5, 0.5, 0.5)), lexrl.FiniteEnv(LOOP))


class TestLearningRates:
    @pytest.mark.parametrize(
        ("alpha", "verdict"),
        [(0.1, "fails"), ("n^-0.7", "holds"), ("n^-1", "holds"), ("n^-0.5", "fails"), ("n^-1.2", "fails"),
         ("100/n", "holds"), ("1 to 0 in 1000", "fails"), (Power(0.7, scale=0.0), "fails")],
    )  # fmt: skip
    def test_robbins_and_monro(self, alpha, verdict):
        one = condition(found(learner(alpha=alpha))[0], "learning rates")
        assert one.verdict == verdict
        assert one.evidence == f"alpha is {learner(alpha=alpha).alpha}"


class TestExploration:
    @pytest.mark.parametrize(
        ("epsilon", "explores", "becomes_greedy"),
        [(0.05, "holds", "fails"), (glie(), "holds", "holds"), (glie(20.0), "holds", "holds"),
         ("n^-0.5", "holds", "holds"), ("n^-2", "fails", "holds"), (0.0, "fails", "holds"),
         ("1 to 0.1 in 100", "holds", "fails"), ("1 to 0 in 100", "fails", "holds")],
    )  # fmt: skip
    def test_for_ever_and_less_and_less(self, epsilon, explores, becomes_greedy):
        for guarantee in found(learner(exploration=lexrl.EpsilonGreedy(epsilon))):
            assert condition(guarantee, "tried forever").verdict == explores
            assert condition(guarantee, "becomes greedy").verdict == becomes_greedy
            assert str(learner(exploration=lexrl.EpsilonGreedy(epsilon)).exploration.epsilon) in (
                condition(guarantee, "becomes greedy").evidence
            )

    def test_softmax(self):
        convergence, proposition = found(learner(exploration=lexrl.Softmax(glie())))
        assert condition(convergence, "tried forever").verdict == "unknown"
        assert condition(convergence, "becomes greedy")[1:] == ("holds", "the temperature is n^-1")
        assert convergence.verdict == "unknown"
        assert condition(proposition, "an update rule and an exploration").verdict == "fails"  # only epsilon-greedy
        _, proposition = found(learner(lexrl.Sarsa, exploration=lexrl.Softmax(0.1)))
        assert condition(proposition, "an update rule and an exploration").verdict == "holds"
        assert condition(proposition, "becomes greedy")[1:] == ("fails", "the temperature is 0.1")

    def test_states_out_of_reach(self):
        onwards = chain(4, gamma=0.9)
        assert condition(found(learner(), onwards)[0], "tried forever").verdict == "holds"
        later = chain(4, gamma=0.9, initial=np.eye(4)[1])
        one = condition(found(learner(), later)[0], "tried forever")
        assert one[1:] == ("fails", "1 states cannot be reached from the first ones")
        spread = chain(4, gamma=0.9, initial=np.array([0.5, 0.5, 0, 0]))
        assert condition(found(learner(), spread)[0], "tried forever").verdict == "holds"

    def test_what_comes_after_the_end_is_out_of_reach(self):
        rows = np.zeros((3, 1, 3))
        rows[0, 0, 1] = rows[1, 0, 2] = rows[2, 0, 2] = 1
        process = MOMDP.from_arrays(rows, np.ones((1, 3, 1)), 0.9, terminal=[1], initial=[1, 0, 0], signals=["a"])
        assert (
            "1 states cannot be reached" in condition(found(learner(), process, "max a")[0], "tried forever").evidence
        )

    def test_an_end_that_is_never_met(self):
        rows = np.zeros((2, 1, 2))
        rows[:, 0, 0] = 1
        process = MOMDP.from_arrays(rows, np.ones((1, 2, 1)), 0.9, terminal=[1], initial=[1, 0], signals=["a"])
        assert condition(found(learner(), process, "max a")[0], "tried forever").verdict == "holds"

    @pytest.mark.parametrize(("max_episode_steps", "verdict"), [(1, "fails"), (2, "fails")])
    def test_states_too_far_away(self, max_episode_steps, verdict):
        world = lexrl.FiniteEnv(chain(4, gamma=0.9), max_episode_steps=max_episode_steps)
        assert condition(found(learner(), world)[0], "tried forever").verdict == verdict

    def test_states_just_near_enough(self):
        """From state 0, two steps lead to state 2, where a third is the last that is taken."""
        world = lexrl.FiniteEnv(chain(4, gamma=0.9), max_episode_steps=3)
        assert condition(found(learner(), world)[0], "tried forever").verdict == "holds"


class TestToleranceAgainstTheGap:
    @pytest.mark.parametrize(
        ("tolerance", "verdict", "shown"),
        [
            (0.1, "holds", "a: 0.1 against 0.6; b: 0.1 against 0.25"),
            (0.0, "fails", "a: 0 against 0.6; b: 0 against 0.25"),
            (0.3, "fails", "a: 0.3 against 0.6; b: 0.3 against 0.25"),
            ((0.5, 0.2), "holds", "a: 0.5 against 0.6; b: 0.2 against 0.25"),
            ((0.7, 0.2), "fails", "a: 0.7 against 0.6; b: 0.2 against 0.25"),
            # The best values are 2 and 0.5.
            ("10%", "holds", "a: 0.2 against 0.6; b: 0.05 against 0.25"),
            ("20%", "holds", "a: 0.4 against 0.6; b: 0.1 against 0.25"),
            (("40%", 0.1), "fails", "a: 0.8 against 0.6; b: 0.1 against 0.25"),
            ("0.01 + 10%", "holds", "a: 0.21 against 0.6; b: 0.06 against 0.25"),
            # What remains of a tolerance in time.
            (Absolute(1.0) * Linear(1.0, 0.1, 1e4), "holds", "a: 0.1 against 0.6; b: 0.1 against 0.25"),
            (Absolute(1.0) * Linear(1.0, 0.5, 1e4), "fails", "a: 0.5 against 0.6; b: 0.5 against 0.25"),
            (Absolute(1.0) * Linear(1.0, 0.0, 1e4), "fails", "a: 0 against 0.6; b: 0 against 0.25"),
            (Relative(0.8) * Linear(1.0, 0.25, 10.0), "holds", "a: 0.4 against 0.6; b: 0.1 against 0.25"),
        ],
    )  # fmt: skip
    def test_the_bandits(self, tolerance, verdict, shown):
        one = condition(found(learner(tolerance=tolerance))[0], "0 < tau_B <")
        assert (one.verdict, one.evidence) == (verdict, shown)

    def test_written_in_the_order(self):
        one = condition(found(learner(tolerance=0.1), order="max a ±0.7 > max b")[0], "0 < tau_B <")
        assert (one.verdict, one.evidence) == ("fails", "a: 0.7 against 0.6; b: 0.1 against 0.25")

    def test_directions_count(self):
        """The least a, then the least b: action 2 alone is left, and b has nothing to decide."""
        one = condition(found(learner(tolerance=0.1), order="min a > min b")[0], "0 < tau_B <")
        assert (one.verdict, one.evidence) == ("holds", "a: 0.1 against 0.6; b: 0.1 against no gap")

    def test_the_largest_over_the_states(self):
        """Values 1, 2 and 10 in three states apart: a tenth of the last is larger than what its actions differ by."""
        rows = np.repeat(np.eye(3)[:, None, :], 2, axis=1)
        process = MOMDP.from_arrays(rows, [[[0.5, 0.0], [1.0, 0.0], [5.0, 4.2]]], 0.5, signals=["a"])
        one = condition(found(learner(tolerance="10%"), process, "max a")[0], "0 < tau_B <")
        assert (one.verdict, one.evidence) == ("fails", "a: 1 against 0.5")
        one = condition(found(learner(tolerance="4%"), process, "max a")[0], "0 < tau_B <")
        assert (one.verdict, one.evidence) == ("holds", "a: 0.4 against 0.5")

    @pytest.mark.parametrize("rule", [lexrl.QLearning, lexrl.DoubleQLearning])
    def test_the_updates_own(self, rule):
        convergence, _ = found(learner(rule, update_tolerance=0.3))
        assert condition(convergence, "0 < tau_B <").verdict == "holds"
        assert condition(convergence, "0 < tau_Q <").verdict == "fails"
        convergence, _ = found(learner(rule, update_tolerance=0.2, tolerance=0.3))
        assert condition(convergence, "0 < tau_B <").verdict == "fails"
        assert condition(convergence, "0 < tau_Q <").verdict == "holds"

    def test_rules_without_one(self):
        for algorithm in (learner(), learner(lexrl.Sarsa)):
            assert not [one for one in found(algorithm)[0].conditions if "tau_Q" in one.text]

    def test_gabor_has_none(self):
        algorithm = learner(tolerance=0.0)
        convergence, proposition = found(algorithm)
        assert convergence.verdict == "fails"
        assert proposition.verdict == "holds"
        assert "a by at most 0, b by at most 0" in proposition.promise


class TestTheProposition:
    @pytest.mark.parametrize(
        ("bandit", "update", "verdict", "shown"),
        [
            (0.3, None, "holds", "they are the same"),
            (0.3, 0.2, "holds", "0.2 against 0.3; 0.2 against 0.3"),
            (0.3, 0.3, "holds", "0.3 against 0.3; 0.3 against 0.3"),
            (0.3, (0.2, 0.4), "fails", "0.2 against 0.3; 0.4 against 0.3"),
            ("10%", 0.06, "fails", "0.06 against 0.2; 0.06 against 0.05"),
            (0.3, Absolute(1.0) * Linear(1.0, 0.1, 100.0), "holds", "0.1 against 0.3; 0.1 against 0.3"),
        ],
    )
    def test_the_update_is_no_wider_than_the_bandit(self, bandit, update, verdict, shown):
        _, proposition = found(learner(tolerance=bandit, update_tolerance=update))
        one = condition(proposition, "tau_Q <= tau_B")
        assert (one.verdict, one.evidence) == (verdict, shown)

    @pytest.mark.parametrize("rule", [lexrl.Sarsa, lexrl.ExpectedSarsa])
    def test_rules_without_a_tolerance_of_their_own(self, rule):
        _, proposition = found(learner(rule))
        assert condition(proposition, "tau_Q <= tau_B").verdict == "holds"

    @pytest.mark.parametrize(
        ("tolerance", "gamma", "bounds"),
        [
            (0.1, 0.5, "a by at most 0.2, b by at most 0.2"),
            ((3.0, 0.5), 0.5, "a by at most 6, b by at most 1"),
            (0.1, [0.9, 0.75], "a by at most 1, b by at most 0.4"),
            ("10%", 0.5, "a by at most 0.4, b by at most 0.1"),
            (Absolute(1.0) * Linear(1.0, 0.1, 100.0), 0.5, "a by at most 0.2, b by at most 0.2"),
        ],
    )
    def test_the_bound(self, tolerance, gamma, bounds):
        process = dataclasses.replace(LOOP, gamma=np.broadcast_to(np.asarray(gamma, float), 2).copy())
        _, proposition = found(learner(tolerance=tolerance), process)
        assert proposition.promise == f"returns fall short of the optimum: {bounds} (tau / (1 - gamma))"
        assert proposition.verdict == "holds"  # whatever the tolerance

    def test_a_relative_tolerance_is_a_share_of_what_is_learned(self):
        """40 % of a's 2 admit action 2, so b learns to live on 9 a step: 18, of which 40 % are 7.2."""
        _, proposition = found(learner(tolerance="40%"))
        assert "a by at most 1.6, b by at most 14.4" in proposition.promise

    def test_nothing_is_promised_for_the_third(self):
        process = MOMDP.from_arrays(np.ones((1, 2, 1)), np.arange(6.0).reshape(3, 1, 2), 0.5, signals=["a", "b", "c"])
        _, proposition = found(learner(), process, "max a > max b > max c")
        assert "a by at most 0.2, b by at most 0.2 (" in proposition.promise
        assert "c by" not in proposition.promise

    def test_the_bound_is_kept(self):
        """With a tolerance of 0.7 action 2 is admissible for a; it costs 0.6 a step, 1.2 in all, of the 1.4 allowed."""
        _, proposition = found(learner(tolerance=0.7))
        assert "a by at most 1.4" in proposition.promise
        loss = lexrl.solve(LOOP, ORDER).returns - lexrl.solve(LOOP, ORDER, tolerance=0.7).returns
        np.testing.assert_allclose(loss[0], 1.2)


def test_grids():
    """With a hand that slips every policy ends; with one that does not, one can walk in circles for ever."""
    slips = lexrl.GridNav.generate(4, slip_probability=0.1)
    convergence, _ = lexrl.check(learner(gamma=0.9), slips, "min cost > max reward")
    for words in ("finite", "bounded", "gamma", "learning rates", "tried forever", "becomes greedy"):
        assert condition(convergence, words).verdict == "holds", words
    assert condition(convergence, "bounded").evidence == "at most 100"
    assert condition(convergence, "finite").evidence == "16 states, 4 actions"
    convergence, _ = lexrl.check(learner(gamma=1.0), slips, "min cost > max reward")
    assert condition(convergence, "gamma")[1:] == ("holds", "gamma is 1, and every policy ends")


@pytest.mark.parametrize(
    ("rule", "tau", "verdict"),
    [
        (lexrl.QLearning, 2.0, "holds"),
        (lexrl.Sarsa, 2.0, "unknown"),
        (lexrl.ExpectedSarsa, 2.0, "unknown"),
        (lexrl.Sarsa, 0.4, "holds"),
    ],
)
def test_on_policy_rules_need_a_smaller_tolerance_than_the_theorem_says(rule, tau, verdict):
    """Staying pays (1, 0), leaving (5, 100) and ends: a policy that leaves supports itself if tau >= (1 - 0.9) * 5."""
    stay_or_leave = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    rewards = [[[1.0, 5.0], [0.0, 0.0]], [[0.0, 100.0], [0.0, 0.0]]]
    process = lexrl.MOMDP.from_arrays(stay_or_leave, rewards, 0.9, terminal=[1], signals=("first", "second"))
    plain = {"alpha": "n^-0.7", "min_alpha": 0.0, "exploration": "epsilon 1/n", "evidence": None, "guard": None}
    theorem = lexrl.check(rule(gamma=0.9, tolerance=tau, **plain), process, "max first > max second")[0]
    assert theorem.verdict == verdict, str(theorem)


class TestSetsByEvidence:
    """Rewards of a are 0.4 to 1 and gamma is 0.5: targets are between 0 and 2, of which a share is left; the gap is
    0.6."""

    WORDS = "what evidence leaves in the end < the smallest gap, but"

    def statement(self, rule=lexrl.QLearning, world=LOOP, order=ORDER, **changes):
        settings = {"gamma": 0.5, "guard": None, "tolerance": 0.0} | changes
        found = lexrl.check(rule(**settings), world, order)
        return [one for one in found if one.name == "Sets by evidence"]

    @pytest.mark.parametrize("rule", [lexrl.QLearning, lexrl.DoubleQLearning])
    def test_defaults_without_the_guard(self, rule):
        (one,) = self.statement(rule)
        assert one.verdict == "holds", str(one)
        assert condition(one, self.WORDS).evidence == "a: 0.002 against 0.6"

    def test_exploration_need_not_vanish(self):
        (one,) = self.statement(exploration="epsilon 0.3")
        assert one.verdict == "holds", str(one)
        (one,) = self.statement(exploration="epsilon n^-2")
        assert condition(one, "tried forever").verdict == "fails"

    def test_only_where_there_is_evidence(self):
        assert self.statement(evidence=None) == []

    @pytest.mark.parametrize("rule", [lexrl.Sarsa, lexrl.ExpectedSarsa])
    def test_on_policy(self, rule):
        (one,) = self.statement(rule)
        assert one.verdict == condition(one, "policy that is followed").verdict == "unknown"

    def test_a_guard(self):
        (one,) = self.statement(guard=lexrl.Guard())
        assert one.verdict == condition(one, "the tolerance converges").verdict == "unknown"

    @pytest.mark.parametrize(
        ("changes", "verdict", "shown"),
        [
            ({"tolerance": 0.7}, "fails", "a: 0.702 against 0.6"),
            ({"tolerance": (0.5, 9.0)}, "holds", "a: 0.502 against 0.6"),  # the last objective takes its best
            ({"evidence": Evidence(resolution=0.2)}, "holds", "a: 0.4 against 0.6"),
            ({"evidence": Evidence(resolution=0.4)}, "unknown", "a: 0.8 against 0.6"),  # the span may be smaller
            ({"evidence": Evidence(resolution=0.0)}, "fails", "a: 0 against 0.6"),  # ties are never exact
            ({"initial_q": 10.0}, "holds", "a: 0.01 against 0.6"),
            ({"initial_q": -10.0}, "holds", "a: 0.012 against 0.6"),
        ],
    )
    def test_against_the_gap(self, changes, verdict, shown):
        (one,) = self.statement(**changes)
        assert (condition(one, self.WORDS).verdict, condition(one, self.WORDS).evidence) == (verdict, shown)

    def test_one_objective(self):
        (one,) = self.statement(order="max a")
        assert condition(one, self.WORDS).evidence == "there is one objective"
        assert one.verdict == "holds"
