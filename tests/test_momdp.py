"""Finite MOMDPs: what is kept of the input, numbers by hand, random ones, and every complaint."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from lexrl.errors import InputError
from lexrl.momdp import MOMDP, from_outcomes
from lexrl.order import parse

# Three states, two actions; state 2 is where the task ends, so what its row says must not count.
P = np.array(
    [
        [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]],
        [[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]],
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
    ]
)
R = np.array([[[1.0, 2.0], [3.0, 4.0], [7.0, 7.0]], [[-1.0, 0.0], [0.5, 8.0], [7.0, 7.0]]])
# The same process where the successor matters: R4[m, s, a, s'] = 100 m + 10 s + a + s' / 10.
R4 = np.fromfunction(lambda m, s, a, t: 100 * m + 10 * s + a + t / 10, (2, 3, 2, 3))


def tiny(**changes):
    given = {"transitions": P, "rewards": R, "gamma": [0.5, 1.0], "terminal": [2], "signals": ["cost", "gain"]}
    return MOMDP.from_arrays(**(given | changes))


def dense(process):
    """`P[S, A, S]` back from the sparse rows."""
    return process.transitions.toarray().reshape(process.num_states, process.num_actions, process.num_states)


def same(one, other):
    assert one.signals == other.signals
    np.testing.assert_array_equal(one.transitions.toarray(), other.transitions.toarray())
    for name in ("rewards", "outcome_rewards", "gamma", "initial", "terminal"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


class TestWhatIsKept:
    def test_shapes(self):
        process = tiny()
        assert (process.num_states, process.num_actions, process.num_objectives) == (3, 2, 2)
        assert process.transitions.shape == (6, 3)
        assert process.transitions.nnz == 8
        assert process.outcome_rewards.shape == (8, 2)
        assert process.rewards.shape == (2, 3, 2)
        assert process.signals == ("cost", "gain")
        assert process.gamma.tolist() == [0.5, 1.0]
        assert process.terminal.tolist() == [False, False, True]
        assert process.initial.tolist() == [0.5, 0.5, 0.0]  # uniform over the states that do not end the task
        np.testing.assert_array_equal(dense(process), P)

    def test_defaults(self):
        process = MOMDP.from_arrays(P, R, 0.9)
        assert process.signals == ("signal_1", "signal_2")
        assert process.gamma.tolist() == [0.9, 0.9]
        assert process.initial.tolist() == [1 / 3] * 3
        assert process.continuing
        assert not tiny().continuing
        assert tiny(terminal=[]).continuing

    def test_terminal_states_pay_nothing(self):
        process = tiny()
        np.testing.assert_array_equal(process.rewards[:, :2], R[:, :2])
        np.testing.assert_array_equal(process.rewards[:, 2], 0.0)

    @pytest.mark.parametrize(
        "terminal", [[2], (2,), [2, 2], np.array([False, False, True]), [False, False, True]], ids=str
    )
    def test_terminal_as_indices_or_mask(self, terminal):
        assert tiny(terminal=terminal).terminal.tolist() == [False, False, True]

    def test_initial(self):
        assert tiny(initial=[0.25, 0.75, 0.0]).initial.tolist() == [0.25, 0.75, 0.0]

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array])
    @pytest.mark.parametrize("rewards", [R, R4], ids=["R[M,S,A]", "R[M,S,A,S]"])
    def test_dense_and_sparse_are_the_same(self, kind, rewards):
        same(tiny(rewards=rewards), tiny(rewards=rewards, transitions=kind(P.reshape(6, 3))))

    def test_the_input_is_not_changed(self):
        before = P.copy(), R.copy()
        process = tiny()
        process.rewards[:] = 0
        process.transitions.data[:] = 0
        np.testing.assert_array_equal(P, before[0])
        np.testing.assert_array_equal(R, before[1])

    def test_what_happens_in_terminal_states_is_ignored(self):
        transitions = P.copy()
        transitions[2] = 0.0
        same_but_for_the_end = tiny(transitions=transitions)
        np.testing.assert_array_equal(same_but_for_the_end.backup(np.ones(3), 0), tiny().backup(np.ones(3), 0))


class TestRewards:
    def test_expected_over_successors_by_hand(self):
        process = tiny(rewards=R4)
        # (0, 0): successors 0 and 1 with 1/2 each pay 0 and 0.1: 0.05. (0, 1): successor 2 pays 1 + 0.2.
        # (1, 0): successor 1 pays 10.1 with 1/4, successor 2 pays 10.2 with 3/4: 10.175. (1, 1): successor 0 pays 11.
        np.testing.assert_allclose(process.rewards[0], [[0.05, 1.2], [10.175, 11.0], [0.0, 0.0]])
        np.testing.assert_allclose(process.rewards[1, :2], process.rewards[0, :2] + 100)

    def test_outcomes_follow_the_stored_entries(self):
        process = tiny(rewards=R4)
        entries = process.transitions.tocoo()
        for row, successor, paid in zip(entries.row, entries.col, process.outcome_rewards, strict=True):
            state, action = divmod(int(row), 2)
            np.testing.assert_array_equal(paid, R4[:, state, action, successor])

    def test_without_successors_each_outcome_pays_the_same(self):
        process = tiny()
        entries = process.transitions.tocoo()
        for row, paid in zip(entries.row, process.outcome_rewards, strict=True):
            np.testing.assert_array_equal(paid, R[:, row // 2, row % 2])

    def test_from_outcomes(self):
        whole = tiny(rewards=R4)
        same(
            whole,
            from_outcomes(
                whole.transitions,
                whole.outcome_rewards,
                2,
                [0.5, 1.0],
                terminal=[2],
                signals=["cost", "gain"],
            ),
        )


class TestOrdered:
    def test_select_order_and_sign(self):
        three = tiny(rewards=np.concatenate([R4, R4[:1] + 5]), gamma=[0.5, 0.9, 1.0], signals=["cost", "gain", "other"])
        got = three.ordered("max other > min cost")
        assert got.signals == ("other", "cost")
        assert got.gamma.tolist() == [1.0, 0.5]
        np.testing.assert_array_equal(got.rewards, [three.rewards[2], -three.rewards[0]])
        np.testing.assert_array_equal(got.outcome_rewards[:, 0], three.outcome_rewards[:, 2])
        np.testing.assert_array_equal(got.outcome_rewards[:, 1], -three.outcome_rewards[:, 0])
        np.testing.assert_array_equal(dense(got), P)
        same(got, three.ordered(parse("max other > min cost")))

    def test_the_original_stays(self):
        process = tiny()
        process.ordered("min cost > min gain")
        np.testing.assert_array_equal(process.rewards, tiny().rewards)

    def test_complaints_are_those_of_orders(self):
        with pytest.raises(InputError, match="names 'speed', but the signals here are 'cost', 'gain'"):
            tiny().ordered("min cost > max speed")
        with pytest.raises(InputError, match="An order is needed"):
            tiny().ordered(None)

    def test_one_signal_needs_no_order(self):
        process = MOMDP.from_arrays(P, R[:1], 0.9)
        same(process, process.ordered(None))


class TestChain:
    def test_by_hand(self):
        policy = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
        matrix, rewards = tiny().chain(policy)
        # State 0: half of (1/2, 1/2, 0) and half of (0, 0, 1). State 1: 1/4 of (0, 1/4, 3/4) and 3/4 of (1, 0, 0).
        np.testing.assert_allclose(matrix.toarray(), [[0.25, 0.25, 0.5], [0.75, 0.0625, 0.1875], [0.0, 0.0, 0.0]])
        # Rewards of state 0: (1 + 2) / 2 and (-1 + 0) / 2; of state 1: 3/4 + 3 and 1/8 + 6.
        np.testing.assert_allclose(rewards, [[1.5, 3.75, 0.0], [-0.5, 6.125, 0.0]])

    def test_evaluating_a_policy_agrees_with_simulating_it(self):
        """The chain's value equation, solved, is what backups of the same policy settle at."""
        process = tiny()
        policy = np.array([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
        matrix, rewards = process.chain(policy)
        for i, gamma in enumerate(process.gamma):
            solved = np.linalg.solve(np.eye(3) - gamma * matrix.toarray(), rewards[i])
            values = np.zeros(3)
            for _ in range(200):
                values = (policy * process.backup(values, i)).sum(axis=1)
            np.testing.assert_allclose(values, solved, atol=1e-12)


class TestBackup:
    def test_by_hand(self):
        # Values 10 and 20, gamma 1/2; what the caller says of the terminal state (1000) does not count.
        # (0, 0): 1 + 15/2. (0, 1): 2 + 0. (1, 0): 3 + 5/2. (1, 1): 4 + 10/2.
        got = tiny().backup(np.array([10.0, 20.0, 1000.0]), 0)
        np.testing.assert_allclose(got, [[8.5, 2.0], [5.5, 9.0], [0.0, 0.0]])

    def test_each_objective_has_its_own_discount(self):
        # gamma 1: -1 + 15, 0, 0.5 + 5, 8 + 10.
        got = tiny().backup(np.array([10.0, 20.0, 1000.0]), 1)
        np.testing.assert_allclose(got, [[14.0, 0.0], [5.5, 18.0], [0.0, 0.0]])

    def test_rewards_of_the_successor_count(self):
        np.testing.assert_allclose(tiny(rewards=R4).backup(np.zeros(3), 0), tiny(rewards=R4).rewards[0])


class TestNeverEnding:
    @staticmethod
    def world(moves, num_states):
        """One row of successors for each (state, action), all equally likely; the last state is terminal."""
        transitions = np.zeros((num_states, len(moves[0]), num_states))
        for state, actions in enumerate(moves):
            for action, successors in enumerate(actions):
                transitions[state, action, successors] = 1 / len(successors)
        rewards = np.zeros((1, num_states, len(moves[0])))
        return MOMDP.from_arrays(transitions, rewards, 1.0, terminal=[num_states - 1])

    def test_by_hand(self):
        moves = [
            [[0], [5]],  # 0 can stay where it is for ever
            [[0, 5], [1, 5]],  # 1 risks the end whatever it does
            [[0], [1]],  # 2 can go to 0
            [[0, 1], [5]],  # 3 may land in 1, from where the end cannot be avoided
            [[3], [1]],  # 4 can only go where the end is near
            [[5], [5]],
        ]
        assert self.world(moves, 6).never_ending().tolist() == [True, False, True, False, False, False]

    def test_two_states_that_keep_each_other(self):
        moves = [[[1]], [[0]], [[2]]]
        assert self.world(moves, 3).never_ending().tolist() == [True, True, False]

    def test_the_end_cannot_be_avoided(self):
        moves = [[[0, 1]], [[1, 2]], [[2]]]
        assert not self.world(moves, 3).never_ending().any()

    def test_what_a_terminal_state_does_is_no_way_back(self):
        moves = [[[1]], [[0]]]  # state 1 ends the task, though its row leads back to 0
        assert not self.world(moves, 2).never_ending().any()

    def test_without_terminal_states_nothing_ends(self):
        assert MOMDP.from_arrays(P, R, 0.9).never_ending().all()

    def test_a_stored_zero_is_no_successor(self):
        matrix = sp.csr_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
        process = MOMDP.from_arrays(matrix, np.zeros((1, 2, 1)), 1.0, terminal=[1])
        assert process.never_ending().tolist() == [True, False]


class TestRandom:
    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"num_successors": 3},
            {"num_successors": 99},
            {"tie_fraction": 0.5},
            {"episodic": True},
            {"tie_fraction": 1.0, "episodic": True, "num_successors": 4},
        ],
        ids=str,
    )
    def test_it_is_one(self, settings):
        process = MOMDP.random(3, num_states=30, num_actions=3, num_signals=3, gamma=[0.9, 0.8, 0.7], **settings)
        assert (process.num_states, process.num_actions, process.num_objectives) == (30, 3, 3)
        assert process.gamma.tolist() == [0.9, 0.8, 0.7]
        np.testing.assert_allclose(process.transitions.sum(axis=1), 1.0)
        assert (process.transitions.data > 0).all()
        assert np.abs(process.outcome_rewards).max() <= 1
        assert process.outcome_rewards.shape == (process.transitions.nnz, 3)
        assert process.transitions.has_canonical_format
        # The expected rewards are those of the outcomes.
        outcomes = np.zeros((90, 30, 3))
        entries = process.transitions.tocoo()
        outcomes[entries.row, entries.col] = process.outcome_rewards
        expected = np.einsum("rt,rtm->mr", process.transitions.toarray(), outcomes).reshape(3, 30, 3)
        np.testing.assert_allclose(process.rewards, np.where(process.terminal[:, None], 0.0, expected), atol=1e-12)

    @pytest.mark.parametrize("settings", [{}, {"num_successors": 3, "tie_fraction": 0.5, "episodic": True}], ids=str)
    def test_everything_follows_from_the_seed(self, settings):
        same(MOMDP.random(7, 20, 3, 2, **settings), MOMDP.random(7, 20, 3, 2, **settings))
        other = MOMDP.random(8, 20, 3, 2, **settings)
        assert not np.array_equal(MOMDP.random(7, 20, 3, 2, **settings).rewards, other.rewards)

    def test_density_is_drawn_for_each_action(self):
        process = MOMDP.random(0, num_states=100, num_actions=4)
        successors = np.diff(process.transitions.indptr)
        assert successors.min() >= 1
        # A uniform density: a tenth of the rows is sparse, a tenth full, half of all entries are there.
        assert (successors < 15).mean() > 0.08
        assert (successors > 85).mean() > 0.08
        assert 45 < successors.mean() < 55

    def test_a_given_number_of_successors_keeps_it_sparse(self):
        process = MOMDP.random(0, num_states=2000, num_actions=2, num_successors=3)
        assert (np.diff(process.transitions.indptr) == 3).all()
        assert process.transitions.nnz == 2000 * 2 * 3
        # Every state is somebody's successor about equally often: 6 on average, Poisson.
        assert np.bincount(process.transitions.indices, minlength=2000).max() < 30
        ending = MOMDP.random(0, num_states=2000, num_actions=2, num_successors=3, episodic=True)
        assert set(np.diff(ending.transitions.indptr)) <= {3, 4}

    def test_no_more_successors_than_states(self):
        assert (np.diff(MOMDP.random(0, num_states=4, num_actions=2, num_successors=9).transitions.indptr) == 4).all()

    @pytest.mark.parametrize("episodic", [False, True])
    def test_planted_ties_really_tie(self, episodic):
        process = MOMDP.random(
            1, num_states=200, num_actions=3, num_signals=4, tie_fraction=1.0, num_successors=5, episodic=episodic
        )
        live = ~process.terminal
        transitions = process.transitions.toarray().reshape(200, 3, 200)[live]
        assert (transitions == transitions[:, :1]).all()
        tied = (process.rewards == process.rewards[:, :, :1]).all(axis=2)[:, live]
        assert tied[0].all()
        assert (np.diff(tied.astype(int), axis=0) <= 0).all()  # the first k tie, the rest does not
        assert not tied[3].any()
        # k is uniform in 1 .. 3: about 66 states each.
        counts = np.bincount(tied.sum(axis=0), minlength=4)[1:]
        assert (counts > 40).all()

    def test_ties_hold_for_any_continuation(self):
        process = MOMDP.random(2, num_states=50, num_actions=4, num_signals=2, tie_fraction=1.0)
        q = process.backup(np.random.default_rng(0).normal(size=50), 0)
        assert (q == q[:, :1]).all()

    def test_share_of_ties(self):
        def share(ties):
            process = MOMDP.random(5, num_states=400, num_actions=2, num_successors=3, tie_fraction=ties)
            return (process.rewards[0, :, 0] == process.rewards[0, :, 1]).mean()

        assert share(0.0) == 0
        assert 0.4 < share(0.5) < 0.6
        assert share(1.0) == 1

    def test_other_states_are_left_alone_by_ties(self):
        process = MOMDP.random(5, num_states=100, num_actions=2, num_signals=2, tie_fraction=0.5, num_successors=3)
        transitions = process.transitions.toarray().reshape(100, 2, 100)
        tied = process.rewards[0, :, 0] == process.rewards[0, :, 1]
        alike = (transitions[:, 0] == transitions[:, 1]).all(axis=1)
        np.testing.assert_array_equal(tied, alike)

    @pytest.mark.parametrize("successors", [None, 2])
    def test_episodic_reaches_the_end(self, successors):
        process = MOMDP.random(4, num_states=40, num_actions=3, num_successors=successors, episodic=True, gamma=1.0)
        assert process.terminal.tolist() == [False] * 39 + [True]
        exits = process.transitions.toarray()[:, -1]
        assert exits.min() >= 0.05 - 1e-12
        assert not process.never_ending().any()
        assert process.initial[-1] == 0
        assert not MOMDP.random(4, num_states=40, num_actions=3, num_successors=successors).terminal.any()

    def test_the_way_out_pays_nothing_of_its_own(self):
        process = MOMDP.random(4, num_states=40, num_actions=3, num_successors=2, episodic=True)
        before = MOMDP.random(4, num_states=40, num_actions=3, num_successors=2)
        # Rewards shrink by the 5 % of the time in which the task ends.
        np.testing.assert_allclose(process.rewards[:, :-1], 0.95 * before.rewards[:, :-1], atol=1e-12)

    def test_one_objective_has_nothing_to_tie(self):
        same(MOMDP.random(0, 10, 2, 1, tie_fraction=1.0), MOMDP.random(0, 10, 2, 1))


class TestRefused:
    @staticmethod
    def changed(state, action, row):
        transitions = P.copy()
        transitions[state, action] = row
        return transitions

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize(
        ("row", "sentence"),
        [
            ([0.5, 0.25, 0.0], "The transition probabilities of state 1, action 0 sum to 0.75; each row must be"),
            ([0.5, 0.75, 0.0], "The transition probabilities of state 1, action 0 sum to 1.25; each row must be"),
            ([1.5, -0.5, 0.0], "The transition probabilities of state 1, action 0 contain -0.5; each row must be"),
            ([0.0, 0.0, 0.0], "The transition probabilities of state 1, action 0 sum to 0; each row must be"),
        ],
    )
    def test_probabilities(self, row, sentence, sparse):
        transitions = self.changed(1, 0, row)
        with pytest.raises(InputError, match=re.escape(sentence)):
            tiny(transitions=sp.csr_array(transitions.reshape(6, 3)) if sparse else transitions)

    def test_nan_probability(self):
        with pytest.raises(InputError, match="of state 1, action 0 contain nan"):
            tiny(transitions=self.changed(1, 0, [np.nan, 0.5, 0.5]))

    def test_first_of_several_wrong_rows(self):
        transitions = self.changed(0, 1, [0.5, 0.0, 0.0])
        transitions[1] = 0.25
        with pytest.raises(InputError, match=r"of state 0, action 1 sum to 0.5 \(and 2 more rows\)"):
            tiny(transitions=transitions)

    def test_rounding_errors_are_not_mistakes(self):
        tiny(transitions=self.changed(0, 0, [1 / 3 + 1e-8, 1 / 3, 1 / 3]))

    @pytest.mark.parametrize("shape", [(3, 3), (3, 2, 4), (0, 2, 0), (3, 0, 3), (3,)])
    def test_shape_of_transitions(self, shape):
        sentence = f"The transitions have shape {shape}; they need [S, A, S]: state, action, successor."
        with pytest.raises(InputError, match=re.escape(sentence)):
            tiny(transitions=np.ones(shape))

    @pytest.mark.parametrize("shape", [(5, 3), (2, 3), (0, 3)])
    def test_shape_of_sparse_transitions(self, shape):
        sentence = f"The sparse transitions have shape {shape}; they need a row for each state and action, [S * A, S]."
        with pytest.raises(InputError, match=re.escape(sentence)):
            tiny(transitions=sp.csr_array(shape))

    @pytest.mark.parametrize("shape", [(3, 2), (2, 2, 3), (2, 3, 3), (2, 3, 2, 2), (2, 3, 2, 3, 1)])
    def test_shape_of_rewards(self, shape):
        sentence = f"The rewards have shape {shape}; for 3 states and 2 actions they need [M, 3, 2] or [M, 3, 2, 3]."
        with pytest.raises(InputError, match=re.escape(sentence)):
            tiny(rewards=np.zeros(shape))

    def test_no_objectives(self):
        with pytest.raises(InputError):
            MOMDP.from_arrays(P, np.zeros((0, 3, 2)), 0.9)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_rewards_that_are_not_numbers(self, bad):
        rewards = R.copy()
        rewards[1, 0, 1] = bad
        with pytest.raises(InputError, match="The rewards contain NaN or infinity; every theorem needs bounded ones"):
            tiny(rewards=rewards)

    @pytest.mark.parametrize("gamma", [-0.1, 1.1, float("nan"), [0.9, 1.5], [-1.0, 0.5]])
    def test_gamma_outside(self, gamma):
        with pytest.raises(InputError, match=re.escape(f"Gamma is {gamma}; a discount lies in [0, 1].")):
            tiny(gamma=gamma)

    @pytest.mark.parametrize("gamma", [[0.9], [0.9, 0.9, 0.9]])
    def test_number_of_gammas(self, gamma):
        sentence = f"Gamma has shape ({len(gamma)},); give one number, or one for each of 2 objectives."
        with pytest.raises(InputError, match=re.escape(sentence)):
            tiny(gamma=gamma)

    def test_the_ends_of_the_interval_are_discounts(self):
        assert tiny(gamma=[0.0, 1.0]).gamma.tolist() == [0.0, 1.0]

    @pytest.mark.parametrize("gamma", [1, np.array([1.0, 0.5])], ids=["int", "array"])
    def test_gamma_as_people_give_it(self, gamma):
        assert tiny(gamma=gamma).gamma[0] == 1.0

    @pytest.mark.parametrize(
        "terminal", [[3], [-1], [0, 7], np.array([True, False]), np.array([False] * 4), [True, False]], ids=str
    )
    def test_terminal(self, terminal):
        sentence = f"The terminal states {terminal} should be indices below 3, or a mask of that length."
        with pytest.raises(InputError, match=re.escape(sentence)):
            tiny(terminal=terminal)

    def test_terminal_fraction(self):
        process = tiny()
        with pytest.raises(InputError, match="indices below 3"):
            from_outcomes(process.transitions, process.outcome_rewards, 2, 0.9, terminal=[0.5])

    def test_every_state_terminal(self):
        with pytest.raises(InputError, match=r"Every state is terminal; at least one must not be."):
            tiny(terminal=[0, 1, 2])

    @pytest.mark.parametrize(
        ("initial", "said"),
        [
            ([0.5, 0.25, 0.0], "has shape (3,) and sums to 0.75"),
            ([0.5, 0.5], "has shape (2,) and sums to 1"),
            ([[0.5, 0.5, 0.0]], "has shape (1, 3) and sums to 1"),
            ([1.5, -0.5, 0.0], "has shape (3,) and sums to 1"),
            ([np.nan, 0.5, 0.5], "has shape (3,) and sums to nan"),
        ],
    )
    def test_initial(self, initial, said):
        sentence = f"The initial distribution {said}; it needs 3 non-negative numbers that sum to 1."
        with pytest.raises(InputError, match=re.escape(sentence)):
            tiny(initial=initial)

    @pytest.mark.parametrize("names", [["cost"], ["cost", "gain", "more"], ["cost", "cost"], []])
    def test_names(self, names):
        sentence = f"The signals are named {tuple(names)}; 2 different names are needed, one for each of them."
        with pytest.raises(InputError, match=re.escape(sentence)):
            tiny(signals=names)


def test_no_task_starts_at_its_end():
    stay = np.eye(2)[:, None, :]
    with pytest.raises(InputError, match="starts in a terminal state"):
        MOMDP.from_arrays(stay, np.zeros((1, 2, 1)), 0.9, initial=[0.5, 0.5], terminal=[1])
