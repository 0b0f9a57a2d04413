"""The lexicographic order with tolerance, against sets written out in plain Python and numbers worked out by hand."""

import functools
import math
import warnings
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl import lex
from lexrl import tolerance as tol

INF, NAN = math.inf, math.nan

# Multiples of a power of 2: every sum and product below is exact in float32 too, so ties are ties and
# "exactly at the edge of the tolerance" happens often and means the same everywhere.
GRID = [k / 4 for k in range(-4, 5)]
SLACKS = [k / 8 for k in range(9)]
SPECIAL = [-INF, -1.0, 0.0, 0.5, 1.0, INF, NAN]


# The reference: Python sets and exact fractions, no arrays.


def rounded(value, step):
    """The multiple of `step` nearest to the value, halves up."""
    return math.floor(Fraction(value) / Fraction(step) + Fraction(1, 2))


def stays(kind, value, top):
    """Does an action with this value stay, if the best left has `top`?"""
    name, *numbers = kind
    short = Fraction(top) - Fraction(value)
    if name == "absolute":
        return short <= Fraction(numbers[0])
    if name == "relative":
        return short <= Fraction(numbers[0]) * abs(Fraction(top))
    if name == "sum":
        return short <= Fraction(numbers[0]) + Fraction(numbers[1]) * abs(Fraction(top))
    return rounded(value, numbers[0]) == rounded(top, numbers[0])


def reference(q, kinds, stays=stays):
    """The sets D_0 .. D_M and the best values, for one state."""
    sets, best = [set(range(len(q[0])))], []
    for values, kind in zip(q, kinds, strict=True):
        numbers = {a for a in sets[-1] if not math.isnan(values[a])}
        if not numbers:
            sets.append(set(sets[-1]))
            best.append(NAN)
            continue
        top = max(values[a] for a in numbers)
        sets.append({a for a in numbers if stays(kind, values[a], top)})
        best.append(top)
    return sets, best


def stays_plain(slack, value, top):
    """The same for a plain number as slack, in floating point; infinite values allowed."""
    return value == top or value >= top - slack


def value_of(kind):
    name, *numbers = kind
    if name == "sum":
        return tol.Absolute(numbers[0]) + tol.Relative(numbers[1])
    return {"absolute": tol.Absolute, "relative": tol.Relative, "rounding": tol.Rounding}[name](*numbers)


def as_sets(masks):
    return [set(np.flatnonzero(mask).tolist()) for mask in np.asarray(masks)]


def tables(entries, shape=None):
    """Tables q as lists of lists, `[M][A]`; few different entries, so many ties."""
    sizes = st.tuples(st.integers(1, 6), st.integers(1, 7)) if shape is None else st.just(shape)
    return sizes.flatmap(
        lambda size: st.lists(
            st.lists(st.sampled_from(entries), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
        )
    )


one_kind = st.one_of(
    st.tuples(st.just("absolute"), st.sampled_from(SLACKS)),
    st.tuples(st.just("relative"), st.sampled_from(SLACKS)),
    st.tuples(st.just("sum"), st.sampled_from(SLACKS), st.sampled_from(SLACKS)),
    st.tuples(st.just("rounding"), st.sampled_from([0.25, 0.5, 1.0, 2.0])),
)


def with_kinds(q):
    return st.tuples(st.just(q), st.lists(one_kind, min_size=len(q), max_size=len(q)))


def with_slacks(q, slacks=None):
    slacks = st.sampled_from(SLACKS) if slacks is None else slacks
    return st.tuples(st.just(q), st.lists(slacks, min_size=len(q), max_size=len(q)))


quiet = functools.partial(np.errstate, invalid="ignore")
"""inf - inf is meant to happen in the tests that use it."""


class TestAgainstSets:
    @settings(max_examples=200, deadline=None)
    @given(tables(GRID).flatmap(with_kinds))
    def test_every_kind_of_tolerance(self, case):
        q, kinds = case
        got = lex.levels(np.array(q), tol.slack(tuple(value_of(kind) for kind in kinds)))
        sets, best = reference(q, kinds)
        assert as_sets(got.sets) == sets
        assert got.best.tolist() == best

    @settings(max_examples=120, deadline=None)
    @given(tables([k / 2 for k in range(-4, 5)]).flatmap(lambda q: with_slacks(q, st.floats(0, 3))))
    def test_any_number_as_slack(self, case):
        q, slack = case
        got = lex.levels(np.array(q), slack)
        sets, best = reference(q, slack, stays_plain)
        assert as_sets(got.sets) == sets
        assert got.best.tolist() == best

    @settings(max_examples=120, deadline=None)
    @given(tables(SPECIAL).flatmap(lambda q: with_slacks(q, st.sampled_from([0.0, 0.5, 1.0, INF]))))
    def test_nan_and_infinity(self, case):
        q, slack = case
        with quiet():
            got = lex.levels(np.array(q), slack)
        sets, best = reference(q, slack, stays_plain)
        assert as_sets(got.sets) == sets
        np.testing.assert_array_equal(got.best, best)

    # One program per shape: the numbers, tolerances too, are arguments.
    compiled_sum = staticmethod(jax.jit(lambda q, taus: lex.levels(q, tol.slack(taus))))

    @pytest.mark.parametrize("shape", [(1, 3), (2, 5), (6, 6)])
    def test_compiled(self, shape):
        @settings(max_examples=40, deadline=None)
        @given(tables(GRID, shape), st.data())
        def check(q, data):
            kinds = data.draw(
                st.lists(
                    st.tuples(st.just("sum"), st.sampled_from(SLACKS), st.sampled_from(SLACKS)),
                    min_size=shape[0],
                    max_size=shape[0],
                )
            )
            got = self.compiled_sum(jnp.array(q), tuple(value_of(kind) for kind in kinds))
            sets, best = reference(q, kinds)
            assert as_sets(got.sets) == sets
            assert got.best.tolist() == best

        check()

    @settings(max_examples=60, deadline=None)
    @given(tables(GRID, (4, 5)), st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0]), min_size=4, max_size=4))
    def test_compiled_rounding(self, q, steps):
        got = self.compiled_sum(jnp.array(q), tuple(tol.Rounding(step) for step in steps))
        sets, best = reference(q, [("rounding", step) for step in steps])
        assert as_sets(got.sets) == sets
        assert got.best.tolist() == best


class TestDouble:
    def test_by_hand(self):
        q = np.array([[3.0, 2.5, 0.0], [1.0, 2.0, 9.0]])
        value = np.array([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]])
        sets, best = lex.double_levels(q, value, [1.0, 0.0])
        np.testing.assert_array_equal(sets, lex.levels(q, [1.0, 0.0]).sets)
        assert best.tolist() == [10.0, 50.0]  # action 0 is best for the first; of 0 and 1, action 1 for the second

    @settings(max_examples=120, deadline=None)
    @given(tables(GRID).flatmap(with_slacks))
    def test_with_its_own_values_it_is_the_ordinary_one(self, case):
        q, slack = np.array(case[0]), case[1]
        np.testing.assert_array_equal(lex.double_levels(q, q, slack).best, lex.levels(q, slack).best)


class TestSets:
    def test_by_hand(self):
        q = np.array([[5.0, 4.5, 4.0, 5.0], [0.0, 3.0, 9.0, 2.0], [7.0, 1.0, 8.0, 2.0]])
        # tau_1 = 0.5 keeps 5, 4.5 and 5; of their second values 0, 3, 2 the best is 3 and tau_2 = 1 keeps 3 and 2;
        # of their third values 1 and 2 the best is 2. The 9 and 8 of action 2 no longer count, nor the 7 of action 0.
        sets, best = lex.levels(q, [0.5, 1.0, 0.0])
        assert as_sets(sets) == [{0, 1, 2, 3}, {0, 1, 3}, {1, 3}, {3}]
        assert best.tolist() == [5.0, 3.0, 2.0]
        assert as_sets([lex.admissible(q, [0.5, 1.0, 0.0])]) == [{3}]
        assert lex.lexmax(q, [0.5, 1.0, 0.0]).tolist() == [5.0, 3.0, 2.0]

    def test_the_edge_of_the_tolerance_is_inside(self):
        assert lex.admissible(np.array([[1.0, 0.5, 0.49]]), [0.5]).tolist() == [True, True, False]

    def test_tolerance_is_measured_from_the_best_left_not_from_the_best_of_all(self):
        # Action 2 has the best second value, 10, but lost in the first objective.
        q = np.array([[1.0, 1.0, 0.0], [2.0, 1.5, 10.0]])
        assert lex.admissible(q, [0.0, 0.5]).tolist() == [True, True, False]
        assert lex.lexmax(q, [0.0, 0.5]).tolist() == [1.0, 2.0]

    def test_the_first_objective_is_never_restricted(self):
        q = np.array([[1.0, 3.0, 2.0], [9.0, 0.0, 9.0]])
        assert lex.lexmax(q, [0.0, 0.0])[0] == 3.0

    @settings(max_examples=120, deadline=None)
    @given(tables(SPECIAL).flatmap(lambda q: with_slacks(q, st.sampled_from([0.0, 0.5, INF]))))
    def test_nested_and_never_empty(self, case):
        q, slack = case
        with quiet():
            sets = lex.levels(np.array(q), slack).sets
        assert sets.shape == (len(q) + 1, len(q[0]))
        assert sets[0].all()
        assert sets.any(axis=-1).all()
        assert (sets[1:] <= sets[:-1]).all()

    @settings(max_examples=60, deadline=None)
    @given(tables(GRID).flatmap(with_slacks))
    def test_ties_are_kept(self, case):
        """Two actions with the same values are both in every set, or both out of it."""
        q, slack = case
        twice = np.concatenate([np.array(q), np.array(q)], axis=1)
        sets = lex.levels(twice, slack).sets
        n = len(q[0])
        np.testing.assert_array_equal(sets[:, :n], sets[:, n:])

    @settings(max_examples=60, deadline=None)
    @given(tables(SPECIAL).flatmap(with_slacks), st.randoms(use_true_random=False))
    def test_the_order_of_actions_does_not_matter(self, case, random):
        q, slack = np.array(case[0]), case[1]
        shuffled = list(range(q.shape[1]))
        random.shuffle(shuffled)
        with quiet():
            straight, moved = lex.levels(q, slack), lex.levels(q[:, shuffled], slack)
        np.testing.assert_array_equal(moved.sets, straight.sets[:, shuffled])
        np.testing.assert_array_equal(moved.best, straight.best)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.sampled_from(GRID), min_size=1, max_size=8))
    def test_one_objective_is_the_ordinary_argmax(self, values):
        q = np.array([values])
        got = lex.levels(q, [0.0])
        assert as_sets(got.sets)[1] == {a for a, value in enumerate(values) if value == max(values)}
        assert np.argmax(values) in as_sets(got.sets)[1]
        assert got.best.tolist() == [max(values)]

    @settings(max_examples=60, deadline=None)
    @given(tables(GRID, (1, 5)), st.sampled_from(SLACKS), st.sampled_from(SLACKS))
    def test_more_tolerance_keeps_more_in_the_first_set(self, q, slack, more):
        assert (lex.admissible(np.array(q), [slack]) <= lex.admissible(np.array(q), [slack + more])).all()


class TestNanAndInfinity:
    """`best` and the sets where values are not ordinary numbers; NumPy and JAX alike."""

    @pytest.fixture(params=[np, jnp], ids=["numpy", "jax"])
    def xp(self, request):
        return request.param

    def walk(self, xp, q, slack):
        levels = jax.jit(lex.levels) if xp is jnp else lex.levels
        with quiet():
            sets, best = levels(xp.array(q), slack)
        return as_sets(sets)[1:], np.asarray(best).tolist()

    def test_nan_is_out_while_a_number_is_left(self, xp):
        assert self.walk(xp, [[NAN, -5.0, NAN]], [INF]) == ([{1}], [-5.0])

    def test_nan_below_minus_infinity(self, xp):
        assert self.walk(xp, [[NAN, -INF]], [0.0]) == ([{1}], [-INF])

    def test_nothing_but_nan_leaves_the_set_as_it_was_and_shows(self, xp):
        # Objective 1 leaves {0, 1}; objective 2 knows neither; objective 3 decides between them.
        q = [[1.0, 1.0, 0.0], [NAN, NAN, 7.0], [0.0, 2.0, 9.0]]
        sets, best = self.walk(xp, q, [0.0, 0.0, 0.0])
        assert sets == [{0, 1}, {0, 1}, {1}]
        assert best[0] == 1.0
        assert math.isnan(best[1])
        assert best[2] == 2.0

    def test_all_nan(self, xp):
        sets, best = self.walk(xp, [[NAN, NAN], [NAN, NAN]], [0.5, 0.5])
        assert sets == [{0, 1}, {0, 1}]
        assert np.isnan(best).all()

    def test_plus_infinity_wins_alone(self, xp):
        assert self.walk(xp, [[INF, 1e30, INF], [1.0, 9.0, 2.0]], [100.0, 0.0]) == ([{0, 2}, {2}], [INF, 2.0])

    def test_all_minus_infinity_tie(self, xp):
        assert self.walk(xp, [[-INF, -INF], [1.0, 2.0]], [0.5, 0.0]) == ([{0, 1}, {1}], [-INF, 2.0])

    def test_infinite_tolerance_keeps_every_number(self, xp):
        assert self.walk(xp, [[3.0, -1e30, -INF], [1.0, 2.0, 3.0]], [INF, 0.0]) == ([{0, 1, 2}, {2}], [3.0, 3.0])

    def test_infinite_tolerance_below_infinity_keeps_the_best(self, xp):
        sets, best = self.walk(xp, [[INF, 0.0]], [INF])
        assert 0 in sets[0]
        assert best == [INF]

    # One level of NaN in one state must not touch its neighbours.
    def test_states_do_not_see_each_other(self, xp):
        q = xp.array([[[NAN, NAN]], [[1.0, 2.0]]])
        levels = jax.jit(lex.levels) if xp is jnp else lex.levels
        sets, best = (np.asarray(part) for part in levels(q, [0.0]))
        assert as_sets(sets[0]) == [{0, 1}, {0, 1}]
        assert as_sets(sets[1]) == [{0, 1}, {1}]
        assert best[1].tolist() == [2.0]

    @pytest.mark.parametrize(
        ("values", "tolerance"),
        [
            ([INF, 0.0], tol.Absolute(INF)),
            ([INF, 0.0], tol.Relative(0.5)),
            ([INF, 0.0], tol.Rounding(1.0)),
            ([NAN, NAN], tol.Relative(0.0)),
            ([NAN, NAN], tol.Rounding(1.0)),
        ],
        ids=str,
    )
    def test_numpy_does_not_warn(self, values, tolerance):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert lex.admissible(np.array([values]), tol.slack(tolerance))[0]


class TestNumpyAndJax:
    SHAPE = (3, 5)

    @staticmethod
    @jax.jit
    def everything(q, slack, epsilon, temperature):
        return lex.levels(q, slack), lex.epsilon_greedy(q, slack, epsilon), lex.softmax(q, slack, temperature)

    @settings(max_examples=60, deadline=None)
    @given(
        tables(SPECIAL, SHAPE),
        st.lists(st.sampled_from([0.0, 0.5, 1.0, INF]), min_size=3, max_size=3),
        st.sampled_from([0.0, 0.25, 1.0]),
        st.sampled_from([0.25, 1.0, 4.0]),
    )
    def test_same_answer(self, q, slack, epsilon, temperature):
        q32, tau32 = np.array(q, np.float32), np.array(slack, np.float32)
        with quiet():
            levels = lex.levels(q32, tau32)
            bandits = lex.epsilon_greedy(q32, tau32, epsilon), lex.softmax(q32, tau32, temperature)
        fast, *fast_bandits = self.everything(jnp.array(q32), jnp.array(tau32), epsilon, temperature)
        np.testing.assert_array_equal(levels.sets, fast.sets)
        np.testing.assert_array_equal(levels.best, fast.best)
        for mine, theirs in zip(bandits, fast_bandits, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(np.sum(theirs), 1.0, rtol=1e-5)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_precision_is_that_of_the_values(self, dtype):
        q = np.array([[1.0, 2.0], [3.0, 4.0]], dtype)
        assert lex.levels(q, [0.1, 0.1]).best.dtype == dtype
        assert lex.levels(q, [0.1, 0.1]).sets.dtype == bool

    def test_float64_tells_apart_what_float32_cannot(self):
        q = np.array([[1.0, 1.0 + 1e-12]])
        assert lex.admissible(q, [0.0]).tolist() == [False, True]
        assert lex.admissible(q.astype(np.float32), [0.0]).tolist() == [True, True]

    def test_too_few_tolerances_are_an_error(self):
        with pytest.raises((IndexError, ValueError)):
            jax.jit(lex.levels)(jnp.zeros((3, 2)), jnp.array([0.0, 0.0]))


class TestManyStates:
    rng = np.random.default_rng(0)
    q = rng.choice(GRID, (4, 3, 3, 5)).astype(np.float32)  # 4 x 3 states, M = 3, A = 5
    slack = np.array([0.25, 0.5, 0.0], np.float32)

    @staticmethod
    def everything(q, slack):
        return {
            "levels": lex.levels(q, slack),
            "admissible": lex.admissible(q, slack),
            "lexmax": lex.lexmax(q, slack),
            "epsilon_greedy": lex.epsilon_greedy(q, slack, 0.3),
            "softmax": lex.softmax(q, slack, 0.5),
        }

    def test_batch_vmap_and_jit_equal_the_loop(self):
        alone = [self.everything(q, self.slack) for q in self.q.reshape(-1, 3, 5)]
        expected = jax.tree.map(lambda *parts: np.stack(parts).reshape(4, 3, *parts[0].shape), *alone)
        q, slack = jnp.array(self.q), jnp.array(self.slack)
        mapped = jax.vmap(jax.vmap(self.everything, (0, None)), (0, None))
        for got in (self.everything(self.q, self.slack), jax.jit(self.everything)(q, slack), jax.jit(mapped)(q, slack)):
            assert jax.tree.map(np.shape, got) == jax.tree.map(np.shape, expected)
            jax.tree.map(lambda mine, theirs: np.testing.assert_allclose(mine, theirs, rtol=1e-6), got, expected)

    def test_relative_tolerance_of_each_state_is_its_own(self):
        # 10 % of 10 covers the distance of 1, 10 % of 1 does not.
        q = np.array([[[10.0, 9.0]], [[1.0, 0.0]]])
        assert lex.admissible(q, tol.slack(tol.Relative(0.1))).tolist() == [[True, True], [True, False]]

    def test_vmap_over_tolerances_equals_the_loop(self):
        values = [
            tuple(tol.Absolute(a) + tol.Relative(r) for _ in range(3)) for a in (0.0, 0.25, 1.0) for r in (0.0, 0.5)
        ]
        stacked = jax.tree.map(lambda *leaves: jnp.array(leaves), *values)
        q = jnp.array(self.q)
        together = jax.jit(jax.vmap(lambda one: lex.levels(q, tol.slack(one))))(stacked)
        for i, one in enumerate(values):
            alone = lex.levels(self.q, tol.slack(one))
            np.testing.assert_array_equal(together.sets[i], alone.sets)
            np.testing.assert_array_equal(together.best[i], alone.best)
        assert len({np.asarray(sets).tobytes() for sets in together.sets}) > 1  # else the values made no difference


class TestCompilations:
    """Floats are data: new values of a tolerance, an epsilon, a temperature run the program there is."""

    def test_new_numbers_do_not_compile_again(self):
        @jax.jit
        def bandits(q, tolerance, epsilon, temperature):
            slack = tol.slack(tolerance)
            return lex.epsilon_greedy(q, slack, epsilon), lex.softmax(q, slack, temperature)

        q = jnp.array([[1.0, 0.9, 0.0], [0.0, 1.0, 2.0]])
        first = bandits(q, tol.Absolute(0.0) + tol.Relative(0.0), 0.1, 1.0)[0]
        other = bandits(q, tol.Absolute(0.2) + tol.Relative(0.01), 0.2, 0.5)[0]
        bandits(q + 1, tol.Absolute(1e6) + tol.Relative(0.5), 0.0, 1e-3)
        assert bandits._cache_size() == 1
        assert np.argmax(first) == 0  # the new numbers did count
        assert np.argmax(other) == 1
        bandits(q, tol.Absolute(0.0), 0.1, 1.0)  # another kind of tolerance is another program
        assert bandits._cache_size() == 2

    def test_plain_numbers_as_slack(self):
        levels = jax.jit(lambda q, slack: lex.levels(q, slack))
        q = jnp.ones((2, 3))
        for slack in ([0.0, 0.0], [0.1, 0.2], [5.0, 1.0]):
            levels(q, slack)
        assert levels._cache_size() == 1


class TestUniform:
    def test_by_hand(self):
        assert lex.uniform(np.array([True, False, True, True, True])).tolist() == [0.25, 0.0, 0.25, 0.25, 0.25]

    def test_batch(self):
        got = lex.uniform(jnp.array([[True, True], [False, True]]))
        assert got.tolist() == [[0.5, 0.5], [0.0, 1.0]]


class TestEpsilonGreedy:
    def test_by_hand(self):
        q = np.array([[1.0, 1.0, 0.0, 1.0], [3.0, 3.0, 9.0, 2.0]])
        # D_2 = {0, 1}. Each action gets 0.2 / 4 = 0.05; the two best share 0.8 besides: 0.4 + 0.05.
        np.testing.assert_allclose(lex.epsilon_greedy(q, [0.0, 0.0], 0.2), [0.45, 0.45, 0.05, 0.05])
        # With tau_1 = 1 the second objective has all to choose from: D_2 = {2}.
        np.testing.assert_allclose(lex.epsilon_greedy(q, [1.0, 0.0], 0.2), [0.05, 0.05, 0.85, 0.05])

    @settings(max_examples=60, deadline=None)
    @given(tables(SPECIAL).flatmap(with_slacks), st.floats(0, 1))
    def test_probabilities_and_limits(self, case, epsilon):
        q, slack = np.array(case[0]), case[1]
        with quiet():
            p = lex.epsilon_greedy(q, slack, epsilon)
            admissible = lex.admissible(q, slack)
            greedy, blind = lex.epsilon_greedy(q, slack, 0.0), lex.epsilon_greedy(q, slack, 1.0)
        assert (p >= epsilon / q.shape[1]).all()
        np.testing.assert_allclose(p.sum(), 1.0)
        np.testing.assert_array_equal(greedy, admissible / admissible.sum())
        np.testing.assert_allclose(blind, 1 / q.shape[1])


class TestSoftmax:
    HALVES = 1 / math.log(2)
    """The temperature at which falling short by d means 2^-d."""

    def test_by_hand(self):
        q = np.array([[1.0, 1.0, 0.0, -1.0], [2.0, 3.0, 9.0, 9.0]])
        # Action 1 is all of D_2: weight 1. Action 0 leaves at objective 2, short by 3 - 2 = 1: 1/2.
        # Actions 2 and 3 leave at objective 1, short by 1 and 2: 1/2 and 1/4. All together 9/4.
        np.testing.assert_allclose(lex.softmax(q, [0.0, 0.0], self.HALVES), [2 / 9, 4 / 9, 2 / 9, 1 / 9])

    def test_what_the_tolerance_covers_costs_nothing(self):
        q = np.array([[1.0, 0.5, 0.0], [2.0, 2.0, 9.0]])
        # tau_1 = 0.5 keeps actions 0 and 1, which tie in objective 2: weight 1 each. Action 2 falls short by all of 1.
        np.testing.assert_allclose(lex.softmax(q, [0.5, 0.0], self.HALVES), [2 / 5, 2 / 5, 1 / 5])

    @settings(max_examples=60, deadline=None)
    @given(tables(SPECIAL).flatmap(with_slacks), st.floats(1e-3, 1e3))
    def test_probabilities(self, case, temperature):
        q, slack = np.array(case[0]), case[1]
        with quiet():
            p = lex.softmax(q, slack, temperature)
            admissible = lex.admissible(q, slack)
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(), 1.0)
        # Every admissible action is as likely as any other, and at least as likely as the rest.
        assert np.ptp(p[admissible]) == 0
        assert (p <= p[admissible].min()).all()

    @settings(max_examples=60, deadline=None)
    @given(tables(GRID).flatmap(with_slacks))
    def test_cold_is_uniform_on_the_admissible_actions(self, case):
        q, slack = np.array(case[0]), case[1]
        cold = lex.softmax(q, slack, 1e-4)  # on this grid an action falls short by 1/8 or not at all: exp(-1250)
        np.testing.assert_allclose(cold, lex.uniform(lex.admissible(q, slack)), atol=1e-12)

    def test_hot_is_uniform_on_all(self):
        np.testing.assert_allclose(lex.softmax(np.array([[1.0, 0.0, -1.0]]), [0.0], 1e9), 1 / 3, rtol=1e-6)

    def test_one_objective_without_tolerance_is_the_ordinary_softmax(self):
        values = np.array([0.3, -1.0, 2.0, 0.0])
        expected = np.exp(values / 0.7) / np.exp(values / 0.7).sum()
        np.testing.assert_allclose(lex.softmax(values[None], [0.0], 0.7), expected)

    def test_nan_has_no_chance_while_a_number_is_left(self):
        assert lex.softmax(np.array([[NAN, 1.0]]), [0.0], 10.0).tolist() == [0.0, 1.0]

    def test_temperature_zero(self):
        assert jax.jit(lex.softmax)(jnp.array([[1.0, 2.0, 2.0]]), [0.0], 0.0).tolist() == [0.0, 0.5, 0.5]


class TestGap:
    def test_by_hand(self):
        # Short by 0.5 (covered), -1 (better than the optimum has to be), 3 (not covered by 0.1).
        got = lex.gap(np.array([1.0, 5.0, 0.0]), np.array([1.5, 4.0, 3.0]), [0.5, 0.1, 0.1])
        assert got.shortfall.tolist() == [0.5, -1.0, 3.0]
        assert got.level == 2

    def test_the_first_level_that_is_exceeded(self):
        assert lex.gap(np.array([0.0, 0.0]), np.array([1.0, 9.0]), [0.5, 0.5]).level == 0

    def test_optimal_within_tolerance(self):
        assert lex.gap(np.array([1.0, 2.0]), np.array([1.25, 2.0]), [0.25, 0.0]).level is None

    def test_nan_is_never_optimal(self):
        assert lex.gap(np.array([1.0, NAN]), np.array([1.0, 2.0]), [0.0, 100.0]).level == 1

    def test_jax(self):
        got = lex.gap(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]), jnp.array([0.0, 0.5]))
        assert got.shortfall.tolist() == [0.0, 1.0]
        assert got.level == 1


numbers = st.sampled_from([*GRID, NAN])


class TestCompare:
    @pytest.mark.parametrize(
        ("first", "second", "tolerance", "winner", "level"),
        [
            ([1.0, 0.0], [0.0, 9.0], [0.0, 0.0], 1, 0),  # the first difference decides
            ([0.0, 9.0], [1.0, 0.0], [0.0, 0.0], -1, 0),
            ([1.0, 0.0], [1.0, 9.0], [0.0, 0.0], -1, 1),
            ([1.0, 0.0], [0.0, 9.0], [1.0, 0.0], -1, 1),  # a difference of 1 is not larger than 1
            ([1.0, 0.0], [0.0, 9.0], [0.9, 0.0], 1, 0),
            ([1.0, 2.0], [1.0, 2.0], [0.0, 0.0], 0, None),
            ([1.0, 2.0], [1.5, 2.5], [1.0, 1.0], 0, None),
            ([-9.0, 0.0], [NAN, 9.0], [100.0, 0.0], 1, 0),  # any number beats NaN, whatever the tolerance
            ([NAN, 1.0], [NAN, 0.0], [0.0, 0.0], 1, 1),  # two NaN are equal
            ([INF, 1.0], [INF, 0.0], [0.0, 0.0], 1, 1),
            ([INF, 0.0], [5.0, 1.0], [3.0, 0.0], 1, 0),
            ([5.0, 0.0], [1.0, 1.0], [INF, 0.0], -1, 1),
        ],
    )
    def test_by_hand(self, first, second, tolerance, winner, level):
        assert lex.compare(first, second, tolerance) == (winner, level)
        with quiet():
            assert lex.compare(np.array(first), np.array(second), tolerance) == (winner, level)

    def test_numpy_does_not_warn(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert lex.compare(np.array([INF, 1.0]), np.array([INF, 0.0]), [0.0, 0.0]) == (1, 1)

    @settings(max_examples=120, deadline=None)
    @given(st.lists(st.tuples(numbers, numbers, st.sampled_from(SLACKS)), min_size=1, max_size=6))
    def test_antisymmetric_and_the_first_difference_decides(self, rows):
        first, second, tolerance = (list(column) for column in zip(*rows, strict=True))
        winner, level = lex.compare(first, second, tolerance)
        assert lex.compare(second, first, tolerance) == (-winner, level)
        assert lex.compare(first, first, tolerance) == (0, None)
        assert (winner == 0) == (level is None)
        for i, (a, b, tau) in enumerate(rows[: level if level is not None else len(rows)]):
            assert abs(a - b) <= tau or (math.isnan(a) and math.isnan(b)), f"objective {i} should have decided"

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(GRID), st.sampled_from(GRID)), min_size=1, max_size=6))
    def test_without_tolerance_it_is_the_order_of_tuples(self, rows):
        first, second = zip(*rows, strict=True)
        assert lex.compare(first, second, [0.0] * len(rows)).winner == (first > second) - (first < second)

    def test_beyond_its_limit_an_objective_makes_no_difference(self):
        limits = np.array([-10.0, INF])
        assert lex.compare([-5.0, 1.0], [-9.0, 2.0], [0.0, 0.0], limits) == (-1, 1)
        assert lex.compare([-5.0, 1.0], [-11.0, 2.0], [0.0, 0.0], limits) == (1, 0)
        assert lex.compare([-12.0, 1.0], [-11.0, 0.0], [0.0, 0.0], limits) == (-1, 0)
        assert lex.compare([-10.5, 1.0], [-5.0, 0.0], [0.5, 0.0], limits) == (1, 1)
        assert lex.compare([math.nan, 1.0], [-50.0, 0.0], [0.0, 0.0], limits) == (-1, 0)

    def test_lengths_must_agree(self):
        with pytest.raises(ValueError, match="shorter"):
            lex.compare([1.0, 2.0], [1.0, 2.0], [0.0])


# Slack for each action, prefixes, and measured returns.


def test_a_slack_for_each_action():
    q = np.array([[1.0, 0.5, 0.5], [0.0, 0.0, 0.0]])
    sets = lex.levels(q, lambda i, values, allowed, best: np.array([0.0, 0.6, 0.4])).sets
    np.testing.assert_array_equal(sets[1], [True, True, False])


def test_what_would_be_played_if_the_order_ended_earlier():
    q = np.array([[1.0, 0.9, 0.0], [0.0, 2.0, 9.0]])
    np.testing.assert_array_equal(
        lex.best_of(q, lex.levels(q, [0.2, 0.0])), [[True, False, False], [False, True, False]]
    )
    nothing = np.full((1, 2), np.nan)
    np.testing.assert_array_equal(lex.best_of(nothing, lex.levels(nothing, [0.0])), [[True, True]])


def test_prefix_greedy_by_hand():
    # D_0 has all three actions, D_1 the first two, D_2 the second.
    q = np.array([[1.0, 0.9, 0.0], [0.0, 2.0, 9.0]])
    found = lex.prefix_greedy(q, [0.2, 0.0], 0.6)
    np.testing.assert_allclose(found, [0.3 / 3 + 0.3 / 2, 0.3 / 3 + 0.3 / 2 + 0.4, 0.3 / 3])
    np.testing.assert_array_equal(lex.prefix_greedy(q, [0.2, 0.0], 0.0), [0, 1, 0])


class TestBeats:
    @pytest.mark.parametrize(
        ("challenger", "incumbent", "wins"),
        [
            ((1.0, 5.0), (0.0, 9.0), True),  # the first decides
            ((0.0, 9.0), (1.0, 5.0), False),
            ((1.0, 5.0), (1.1, 4.0), True),  # 0.1 is within 2 x sqrt(2) x 0.1: the second decides
            ((1.0, 5.0), (1.1, 5.1), False),  # nothing decides: the incumbent stays
            ((1.0, 5.0), (1.0, 5.0), False),
            ((math.nan, 5.0), (1.0, 4.0), False),
            ((1.0, 4.0), (math.nan, 5.0), True),
            ((math.nan, 5.0), (math.nan, 4.0), True),
        ],
    )
    def test_by_hand(self, challenger, incumbent, wins):
        one, other = (lex.Estimate(np.array(mean), np.array([0.1, 0.1])) for mean in (challenger, incumbent))
        assert bool(lex.beats(one, other, [0.0, 0.0])) is wins
        compiled = jax.jit(lambda a, b: lex.beats(a, b, jnp.zeros(2)))
        assert bool(compiled(*jax.tree.map(jnp.asarray, (one, other)))) is wins

    def test_slack_widens_what_is_equal(self):
        one, other = (lex.Estimate(np.array(mean), np.zeros(2)) for mean in ((1.0, 5.0), (2.0, 4.0)))
        assert not lex.beats(one, other, [0.5, 0.0])
        assert lex.beats(one, other, [1.0, 0.0])


def test_a_gap_counts_up_to_the_limit():
    limits = np.array([-10.0, INF])
    enough = lex.gap(np.array([-8.0, 3.0]), np.array([-2.0, 4.0]), [0.0, 0.0], limits)
    np.testing.assert_array_equal(enough.shortfall, [0.0, 1.0])
    assert enough.level == 1
    short = lex.gap(np.array([-13.0, 9.0]), np.array([-11.0, 4.0]), [1.0, 0.0], limits)
    np.testing.assert_array_equal(short.shortfall, [2.0, -5.0])
    assert short.level == 0


class TestChoose:
    """Candidates that played the same episodes: `[candidates, episodes, views, M]`."""

    def chosen(self, *candidates, slack=(0.0, 0.0), **more):
        """Each candidate is a list of episodes, each of them the returns of two objectives, in one view."""
        return lex.choose(np.array(candidates, float)[:, :, None, :], np.array(slack), **more)

    def test_the_first_unless_it_is_beaten(self):
        same = [[1, 1], [3, 3]]
        assert self.chosen(same, same) == 0
        assert self.chosen(same, [[2, 1], [4, 3]]) == 1
        assert self.chosen(same, [[1, 2], [3, 4]]) == 1
        assert self.chosen([[2, 1], [4, 3]], same) == 0

    def test_a_less_important_gain_does_not_make_up_for_a_loss(self):
        assert self.chosen([[1, 0], [1, 0]], [[0, 99], [0, 99]]) == 0
        assert self.chosen([[0, 99], [0, 99]], [[1, 0], [1, 0]]) == 1

    def test_differences_within_two_standard_errors_do_not_count(self):
        """Differences 0 and 2: mean 1, standard error 1."""
        first, second = [[0, 5], [0, 5]], [[0, 4], [2, 4]]
        assert self.chosen(first, second) == 0  # equal in the first, worse in the second
        assert self.chosen(first, second, standard_errors=0.5) == 1
        assert self.chosen(second, first) == 1
        assert self.chosen(second, first, standard_errors=0.5) == 0

    def test_noise_of_the_episodes_themselves_is_left_out(self):
        """The same start for both: only the difference counts, and it is always 0.1."""
        noise = np.random.default_rng(0).normal(size=(50, 2)) * 100
        assert self.chosen(noise, noise + np.array([0.1, 0.0])) == 1

    def test_slack(self):
        first, second = [[5, 0], [5, 0]], [[4, 3], [4, 3]]
        assert self.chosen(first, second, slack=(1.0, 0.0)) == 1
        assert self.chosen(first, second, slack=(0.9, 0.0)) == 0
        assert self.chosen(second, first, slack=(1.0, 0.0)) == 0  # nor does the gain within the slack count
        assert self.chosen(first, second, slack=(1.0, 3.0)) == 0

    def test_later_ones_are_compared_with_the_new_choice(self):
        assert self.chosen([[1, 0]] * 2, [[2, 0]] * 2, [[2, 1]] * 2, [[1, 9]] * 2) == 2

    def test_means_count_up_to_the_limits(self):
        """Means -8 and -2 of the first objective: more than -10 is of no use, however the episodes differ."""
        first, second = [[-16, 5], [0, 5]], [[-2, 4], [-2, 4]]
        assert self.chosen(second, first, standard_errors=0.0) == 0
        limits = np.array([-10.0, np.inf])
        assert self.chosen(second, first, limits=limits, standard_errors=0.0) == 1
        assert self.chosen(first, second, limits=limits, standard_errors=0.0) == 0
        assert self.chosen(second, [[-11, 9]] * 2, limits=limits) == 0
        assert self.chosen([[-12, 9]] * 2, [[-11, 1]] * 2, limits=limits) == 1  # none satisfies it: the nearest

    def test_other_views_count_where_there_is_no_slack(self):
        """Discounted the same, undiscounted worse."""
        two = np.array([[[[1.0, 0.0], [5.0, 0.0]]] * 3, [[[1.0, 2.0], [4.0, 2.0]]] * 3])
        assert lex.choose(two, np.zeros(2)) == 0
        assert lex.choose(two, np.array([0.1, 0.0])) == 1
        assert lex.choose(two[::-1], np.zeros(2)) == 1

    def test_one_view_better_and_one_worse_is_worse(self):
        two = np.array([[[[1.0, 0.0], [5.0, 0.0]]] * 3, [[[2.0, 0.0], [4.0, 0.0]]] * 3])
        assert lex.choose(two, np.zeros(2)) == 0
        assert lex.choose(two[::-1], np.zeros(2)) == 0

    def test_one_episode_is_taken_as_it_is(self):
        assert self.chosen([[1, 0]], [[1, 1]]) == 1
        assert self.chosen([[1, 1]], [[1, 0]]) == 0
