"""Levels, floors, prices and second-order multipliers, with numbers worked out by hand and explicit Hessians."""

import functools

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl import dual, returns
from lexrl.dual import Dual, Sample
from lexrl.errors import InputError
from lexrl.schedules import Power
from lexrl.tolerance import Absolute, Relative

NOTHING = Absolute(0.0)
observe = jax.jit(lambda how, state, sample, tolerance: how.observe(state, sample, tolerance))
weights = jax.jit(lambda how, state: how.weights(state))


def sample(*returns, change=0.0):
    """Fresh episodes, each with its returns `[M]`."""
    each = np.array(returns, float)
    return Sample(
        jnp.float32(len(each)),
        jnp.array(each.sum(axis=0), jnp.float32),
        jnp.array((each**2).sum(axis=0), jnp.float32),
        change,
    )


def nothing(objectives):
    return Sample(jnp.float32(0), jnp.zeros(objectives), jnp.zeros(objectives))


def state(how=None, objectives=2, **given):
    """A state with some of its numbers set."""
    fresh = (how or Dual()).start(objectives, None)
    kinds = {"converged": bool, "time": jnp.int32}
    return fresh._replace(**{name: jnp.asarray(it, kinds.get(name, jnp.float32)) for name, it in given.items()})


class TestLevels:
    def test_averages_by_hand(self):
        # One episode at a time, window 4. Plain means at first: 4, 6, 4, 4. The fifth counts 1/4: 4 + 8/4 = 6;
        # for the slow average the window is 16, and it is still a plain mean: 28 / 5.
        how, now = Dual(stats_window_size=4.0), state(objectives=1)
        quick, slow = [], []
        for value in (4.0, 8.0, 0.0, 4.0, 12.0):
            now = observe(how, now, sample([value]), NOTHING)
            quick.append(float(now.quick[0]))
            slow.append(float(now.slow[0]))
        np.testing.assert_allclose(quick, [4, 6, 4, 4, 6], rtol=1e-5)
        np.testing.assert_allclose(slow, [4, 6, 4, 4, 5.6], rtol=1e-5)
        assert now.seen == 5
        assert now.time == 5

    def test_several_episodes_count_as_one_after_the_other(self):
        """Of alike episodes it makes no difference whether they come one by one."""
        how = Dual(stats_window_size=4.0)
        full = state(objectives=1, quick=[1.0], slow=[1.0], seen=1000.0)
        together = observe(how, full, sample([5.0], [5.0], [5.0]), NOTHING)
        one_by_one = functools.reduce(lambda now, _: observe(how, now, sample([5.0]), NOTHING), range(3), full)
        np.testing.assert_allclose(together.quick, 5 - 4 * 0.75**3, rtol=1e-5)
        np.testing.assert_allclose(together.quick, one_by_one.quick, rtol=1e-5)
        np.testing.assert_allclose(together.slow, one_by_one.slow, rtol=1e-5)

    def test_without_episodes_nothing_moves(self):
        before = state(
            quick=[3.0, 1.0], slow=[4.0, 1.0], spread=[1.0, 2.0], seen=50.0, calm=[7.0, 0.0], settled=[True, False],
            floor=[5.0, 1.0], multipliers=[2.0, 0.0],
        )  # fmt: skip
        after = observe(Dual(patience=1e6, stats_window_size=1e6), before, nothing(2), NOTHING)
        for name in ("quick", "slow", "spread", "seen", "converged", "threshold", "prices"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name), err_msg=name)

    def test_the_very_first_update_may_see_no_episode(self):
        after = observe(Dual(), state(), nothing(2), NOTHING)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))
        assert not after.settled.any()

    def test_spread_moves_towards_the_squared_distance(self):
        # Around the slow average 6: episodes with 4, 8, 4, 8 are 4 away in the square, as was known: nothing moves.
        before = state(objectives=1, quick=[6.0], slow=[6.0], spread=[4.0], seen=1000.0)
        assert observe(Dual(), before, sample([4.0], [8.0], [4.0], [8.0]), NOTHING).spread.tolist() == [4.0]

    def test_episodes_that_are_all_alike_have_no_spread(self):
        """`spread` is the variance of an episode's return, also after the first episodes."""
        after = observe(Dual(), state(objectives=1), sample([5.0], [5.0], [5.0]), NOTHING)
        np.testing.assert_allclose(after.spread, [0.0], atol=1e-4)

    def test_spread_is_the_variance_wherever_the_returns_lie(self):
        rng, now = np.random.default_rng(0), state(objectives=1)
        for _ in range(20):
            now = observe(Dual(), now, sample(*(-50 + rng.normal(size=(16, 1)))), NOTHING)
        np.testing.assert_allclose(now.spread, [1.0], rtol=0.3)


class TestSamples:
    def test_from_episodes(self):
        gamma, last = jnp.array([0.5]), jnp.array([[False, True], [True, True]])
        _, episode_stats = returns.follow(
            returns.init_tracker(2, 1), jnp.array([[[1.0], [2.0]], [[4.0], [8.0]]]), last, gamma
        )
        got = dual.from_episodes(episode_stats)  # 1 + 4/2, 2, and 8
        assert (got.episodes, got.total.tolist(), got.squares.tolist()) == (3, [13.0], [9.0 + 4.0 + 64.0])

    def test_from_critic(self):
        value = jnp.array([[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]])
        got = dual.from_critic(value, jnp.array([[True, False], [False, True]]))
        assert (got.episodes, got.total.tolist(), got.squares.tolist()) == (2, [5.0, 50.0], [17.0, 1700.0])

    def test_from_rewards(self):
        reward = jnp.array([[[1.0], [2.0]], [[3.0], [6.0]]])  # means of the two worlds: 2 and 4
        got = dual.from_rewards(reward)
        assert (got.episodes, got.total.tolist(), got.squares.tolist()) == (2, [6.0], [20.0])


BATCH = 10


def play(how, now, batches, *columns):
    """Batches of ten alike episodes; each column says the t-th batch's return of an objective."""
    trail = []
    for t in range(batches):
        now = observe(how, now, sample(*[[column(t) for column in columns]] * BATCH), NOTHING)
        trail.append(now)
    return trail


def constant(_):
    return 5.0


def ramp(t):
    return float(t)


class TestSettling:
    how = Dual(stats_window_size=100.0, patience=200.0)

    def test_an_objective_without_trend_settles_after_its_patience(self):
        trail = play(self.how, state(), 40, constant, ramp)
        assert [bool(now.settled[0]) for now in trail] == [False] * 29 + [True] * 11  # 200 episodes after the first 100
        assert not trail[-1].settled[1]

    def test_the_second_does_not_settle_before_the_first(self):
        trail = play(self.how, state(), 60, ramp, constant)
        assert not any(now.settled.any() for now in trail)
        assert trail[-1].calm[1] == 0  # it is not its turn

    def test_then_both_settle(self):
        trail = play(self.how, state(), 400, lambda t: float(min(t, 50)), constant)
        at = [[bool(flag) for flag in now.settled] for now in trail]
        assert [False, True] not in at
        assert at[-1] == [True, True]
        first = at.index([True, True])
        assert first > 50 + 20
        assert at.index([True, False]) + 20 <= first  # only then the second's patience begins

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_always_in_order_and_never_undone(self, seed):
        rng = np.random.default_rng(seed)
        how, now, before = Dual(stats_window_size=20.0, patience=30.0), state(objectives=3), np.zeros(3, bool)
        for _ in range(40):
            now = observe(how, now, sample(*rng.normal(size=(BATCH, 3)).cumsum(axis=0)), NOTHING)
            settled = np.asarray(now.settled)
            assert (settled >= before).all()
            assert (settled[1:] <= settled[:-1]).all()
            assert (np.asarray(now.multipliers)[~settled] == 0).all()
            before = settled

    def test_a_trend_starts_the_patience_anew(self):
        trail = play(self.how, state(objectives=1), 60, lambda t: float(t >= 10) * 5)
        calm = [float(now.calm[0]) for now in trail]
        assert 0.0 in calm[10:]
        assert trail[-1].seen > 200


class TestFloors:
    def test_follows_then_holds(self):
        how = Dual(stats_window_size=100.0, patience=200.0)
        trail = play(how, state(objectives=1), 60, lambda t: 5.0 if t < 30 else 1.0)
        for now in trail[:20]:
            np.testing.assert_array_equal(now.floor, now.quick)
        assert trail[-1].quick[0] < 2
        assert all(now.floor[0] == 5.0 for now in trail)  # it settled at 5 and holds

    def test_follows_down_as_well_before(self):
        trail = play(Dual(stats_window_size=100.0, patience=200.0), state(objectives=1), 30, lambda t: -float(t))
        np.testing.assert_array_equal([now.floor for now in trail], [now.quick for now in trail])
        assert trail[-1].floor[0] < -10

    def test_then_only_rises(self):
        values = [5.0] * 30 + [1.0] * 60 + [9.0] * 150 + [2.0] * 30
        trail = play(
            Dual(stats_window_size=100.0, patience=200.0), state(objectives=1), len(values), lambda t: values[t]
        )
        floors = np.array([float(now.floor[0]) for now in trail])
        assert (np.diff(floors) >= 0).all()
        assert floors[80] == 5.0
        assert 8.0 < floors[-1] <= 9.0  # what was found to be possible is now held

    def test_rises_to_the_slow_average_by_hand(self):
        before = state(objectives=1, quick=[10.0], slow=[10.0], seen=1e6, settled=[True], floor=[8.0])
        assert observe(Dual(), before, sample([10.0]), NOTHING).floor.tolist() == [10.0]
        before = state(objectives=1, quick=[10.0], slow=[6.0], seen=1e6, settled=[True], floor=[8.0])
        assert observe(Dual(), before, sample([6.0]), NOTHING).floor.tolist() == [8.0]


def holding(level, price=1.0, **changes):
    """The first objective has settled and holds 8; where it is now is given."""
    given = {
        "quick": [level, 0.0],
        "slow": [min(level, 7.0), 0.0],
        "seen": 1e6,
        "converged": [True, False],
        "threshold": [8.0, 0.0],
        "prices": [price, 0.0],
    }
    return state(**(given | changes))


def five(level):
    return sample(*[[level, 0.0]] * 5)


class TestPrices:
    how = Dual(eta=0.5, stats_window_size=10.0, normalize_violation=False)
    """Five episodes: eta * episodes / window = 0.25."""

    def test_rises_below_the_floor(self):
        after = observe(self.how, holding(6.0), five(6.0), Absolute(0.25))
        assert after.multipliers.tolist() == [1.4375, 0.0]  # 1 + 0.25 (8 - 0.25 - 6)

    def test_falls_above_the_floor(self):
        after = observe(self.how, holding(10.0), five(10.0), Absolute(0.25))
        assert after.floor[0] == 8.0
        assert after.multipliers.tolist() == [0.4375, 0.0]  # 1 + 0.25 (8 - 0.25 - 10)

    def test_the_level_is_that_of_the_new_average(self):
        after = observe(self.how, holding(6.0), five(4.0), NOTHING)
        level = 6 + (1 - 0.9**5) * (4 - 6)
        np.testing.assert_allclose(after.quick[0], level, rtol=1e-6)
        np.testing.assert_allclose(after.multipliers[0], 1 + 0.25 * (8 - level), rtol=1e-6)

    @pytest.mark.parametrize(("level", "charged"), [(6.0, 2 * 1.875), (8.0, 2 * 0.875), (10.0, 0.0)])
    def test_damping_charges_more_below_the_floor_and_less_above(self, level, charged):
        how = Dual(eta=0.0, stats_window_size=10.0, normalize_violation=False, damping=0.5)
        after = observe(how, holding(level, price=2.0), five(level), Absolute(0.25))
        assert after.multipliers[0] == 2.0
        assert weights(how, after).tolist() == [1 + charged, 1.0]  # 2 (1 + 0.5 (8 - 0.25 - level)), never below 0

    def test_without_damping_the_price_is_charged(self):
        after = observe(self.how, holding(6.0), five(6.0), NOTHING)
        assert weights(self.how, after)[0] == 1 + after.multipliers[0]

    def test_never_below_0(self):
        assert observe(self.how, holding(10.0, price=0.125), five(10.0), NOTHING).multipliers.tolist() == [0.0, 0.0]

    def test_at_most_the_ceiling(self):
        how = Dual(eta=0.5, stats_window_size=10.0, normalize_violation=False, max_multiplier=1.25)
        assert observe(how, holding(6.0), five(6.0), NOTHING).multipliers.tolist() == [1.25, 0.0]

    def test_the_last_is_always_0(self):
        before = holding(6.0, settled=[True, True], floor=[8.0, 100.0])
        assert observe(self.how, before, five(6.0), NOTHING).multipliers.tolist() == [1.5, 0.0]

    def test_unsettled_objectives_charge_nothing(self):
        before = holding(6.0, settled=[False, False], multipliers=[0.0, 0.0])
        assert observe(self.how, before, five(6.0), NOTHING).multipliers.tolist() == [0.0, 0.0]

    def test_a_change_counts_for_the_level(self):
        change = jnp.array([1.0, 5.0])
        after = observe(self.how, holding(6.0), five(6.0)._replace(change=change), Absolute(0.25))
        assert after.multipliers.tolist() == [1.1875, 0.0]  # 1 + 0.25 (8 - 0.25 - 7)
        assert after.quick[0] == 6.0

    def test_relative_tolerance_is_of_the_floor(self):
        after = observe(self.how, holding(6.0), five(6.0), Relative(0.125))
        assert after.multipliers[0] == 1.25  # 1 + 0.25 (8 - 1 - 6)

    def test_tolerances_one_each(self):
        after = observe(self.how, holding(6.0), five(6.0), (Absolute(1.0), Absolute(99.0)))
        assert after.multipliers[0] == 1.25

    def test_tolerances_with_time(self):
        after = observe(self.how, holding(6.0, time=3), five(6.0), Absolute(4.0) * Power(1.0))
        assert after.multipliers[0] == 1.25  # tau = 4 / 4 in the fourth update

    def test_in_deviations_of_an_episode(self):
        # Deviation 2 (as the episodes themselves show), tau = 0.5: eta is divided by 2.5.
        before = holding(7.0, slow=[7.0, 0.0], spread=[4.0, 0.0])
        episodes = sample([5.0, 0.0], [9.0, 0.0], [5.0, 0.0], [9.0, 0.0])
        after = observe(Dual(eta=0.5, stats_window_size=10.0), before, episodes, Absolute(0.5))
        np.testing.assert_allclose(after.multipliers, [1 + 0.5 * 0.4 / 2.5 * (8 - 0.5 - 7), 0.0], rtol=1e-6)

    @settings(max_examples=15, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([1 / 64, 32.0, 1024.0]))
    def test_scaled_prices_do_not_know_the_units(self, seed, unit):
        rng = np.random.default_rng(seed)
        how = Dual(eta=1.0, stats_window_size=20.0, patience=30.0)
        one, other = state(), state()
        for t in range(30):
            each = rng.normal([3.0 - 0.1 * t, 1.0], size=(BATCH, 2))
            one = observe(how, one, sample(*each), Absolute(0.25))
            other = observe(how, other, sample(*(unit * each)), Absolute(0.25 * unit))
        np.testing.assert_array_equal(one.settled, other.settled)
        np.testing.assert_allclose(one.multipliers, other.multipliers, rtol=1e-3, atol=1e-5)

    @settings(max_examples=30, deadline=None)
    @given(
        st.lists(st.floats(-20, 20, width=32), min_size=3, max_size=3),
        st.lists(st.floats(0, 3, width=32), min_size=3, max_size=3),
        st.floats(0.0, 10.0),
        st.booleans(),
    )
    def test_always_between_0_and_the_ceiling(self, level, multipliers, eta, scaled):
        how = Dual(eta=float(eta), stats_window_size=10.0, normalize_violation=scaled, max_multiplier=3.0)
        before = state(objectives=3, quick=level, slow=level, seen=1e6, settled=[True] * 3, floor=[1.0] * 3,
                       multipliers=[*multipliers[:2], 0.0])  # fmt: skip
        after = np.asarray(observe(how, before, sample(level), NOTHING).multipliers)
        assert ((after >= 0) & (after <= [9.0, 3.0, 3.0])).all()
        assert after[2] == 0

    def test_floor_and_level_meet_the_price_rests(self):
        before = holding(8.0, slow=[8.0, 0.0])
        assert observe(self.how, before, five(8.0), NOTHING).multipliers.tolist() == [1.0, 0.0]


class TestRates:
    def test_eta_by_the_number_of_settled_objectives(self):
        how = Dual(eta=(100.0, 0.5, 0.25), stats_window_size=10.0, normalize_violation=False)
        assert observe(how, holding(6.0), five(6.0), NOTHING).multipliers[0] == 1.5  # 1 + 0.5 * 0.5 * 2
        both = holding(6.0, settled=[True, True])
        assert observe(how, both, five(6.0), NOTHING).multipliers[0] == 1.25

    def test_eta_switches_with_the_update_in_which_an_objective_settles(self):
        how = Dual(eta=(100.0, 0.5, 0.25), stats_window_size=10.0, normalize_violation=False, patience=50.0)
        # The second has seen 45 calm episodes, and five more that change nothing.
        before = holding(6.0, calm=[0.0, 45.0], slow=[8.0, 0.0])
        after = observe(how, before, five(6.0), Absolute(1.0))
        assert after.settled.tolist() == [True, True]
        assert after.multipliers[0] == 1.125  # 1 + 0.25 * 0.5 * (8 - 1 - 6)

    def test_nobody_settles_while_a_more_important_one_is_below_its_floor(self):
        how = Dual(eta=0.5, stats_window_size=10.0, patience=50.0)
        after = observe(how, holding(6.0, calm=[0.0, 45.0], slow=[6.0, 0.0]), five(6.0), Absolute(1.0))
        assert after.settled.tolist() == [True, False]

    def test_eta_with_time(self):
        how = Dual(eta="2/n", stats_window_size=10.0, normalize_violation=False)
        assert observe(how, holding(6.0, time=3), five(6.0), NOTHING).multipliers[0] == 1.5  # eta = 2 / 4

    def test_beta_with_time(self):
        how = Dual(beta=("1", "1/n"))
        assert weights(how, state(multipliers=[3.0, 0.0], time=3)).tolist() == [1.75, 0.25]  # 1 + 3 / 4

    def test_one_beta_for_all(self):
        assert weights(Dual(beta=0.5), state(objectives=3, multipliers=[2.0, 4.0, 0.0])).tolist() == [2.5, 2.5, 0.5]

    def test_simultaneous(self):
        how = Dual(beta=(1.0, 0.5, 0.25))
        # 1 + 2 (0.5 + 0.25), 0.5 + 3 * 0.25, 0.25
        assert weights(how, state(objectives=3, multipliers=[2.0, 3.0, 0.0])).tolist() == [2.5, 1.25, 0.25]

    @pytest.mark.parametrize(
        ("converged", "expected"),
        [
            ([False, False, False], [1.0, 0.0, 0.0]),
            ([True, False, False], [1.0, 0.5, 0.0]),  # 2 * 0.5
            ([True, True, False], [0.5, 0.75, 0.25]),  # 2 * 0.25, 3 * 0.25
            ([True, True, True], [0.5, 0.75, 0.25]),
        ],
    )
    def test_sequential(self, settled, expected):
        how = Dual(beta=(1.0, 0.5, 0.25), sequential=True)
        got = weights(how, state(objectives=3, settled=settled, multipliers=[2.0, 3.0, 0.0]))
        assert got.tolist() == expected

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"beta": (1.0, 1.0)}, "beta has 2 rates for 3 objectives; give one for all, or 3"),
            ({"eta": (1.0, 1.0, 1.0)}, "eta has 3 rates for 3 objectives; give one for all, or 4"),
        ],
    )
    def test_numbers_of_rates(self, changes, sentence):
        with pytest.raises(InputError, match=sentence):
            Dual(**changes).check(3)

    def test_fitting_numbers_of_rates(self):
        Dual(beta=(1.0, 1.0, 1.0), eta=(1.0, 1.0, 1.0, 1.0)).check(3)


# A tiny softmax policy on three rows of two features, with three smooth gains; and quadratics.

ROWS = jnp.array([[1.0, -0.5], [0.3, 0.8], [-1.2, 0.1]])
WORTH = jnp.array([[[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [3.0, 1.0, 0.0]],
                   [[0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 5.0]],
                   [[1.0, 1.0, 0.0], [2.0, 0.0, 1.0], [0.0, 4.0, 0.0]]])  # fmt: skip
THETA = {"w": jnp.array([[0.2, -0.4, 0.1], [0.5, 0.0, -0.3]]), "b": jnp.array([0.1, -0.2, 0.3])}
VECTOR, UNRAVEL = jax.flatten_util.ravel_pytree(THETA)


def gains(theta):
    chances = jax.nn.softmax(ROWS @ theta["w"] + theta["b"])
    return jnp.einsum("mra,ra->m", WORTH, chances)


GRADIENTS = np.asarray(jax.jit(jax.jacobian(lambda vector: gains(UNRAVEL(vector))))(VECTOR), float)
HESSIANS = np.asarray(jax.jit(jax.hessian(lambda vector: gains(UNRAVEL(vector))))(VECTOR), float)
slopes = jax.jit(lambda at, directions: dual.slopes(gains, at, directions))
bend = jax.jit(lambda how, state: how.bend(state, gains, THETA))
pull = jax.jit(lambda how, state: how.pull(state, gains, THETA))


def flat(tree):
    """`[M, parameters]` from directions with a leading axis, in the order of the flat vector."""
    return np.concatenate([np.asarray(leaf, float).reshape(3, -1) for leaf in jax.tree.leaves(tree)], axis=1)


def directions(seed, length):
    rows = np.random.default_rng(seed).normal(size=(3, VECTOR.size))
    rows = np.float32(length * rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return {"b": jnp.asarray(rows[:, :3]), "w": jnp.asarray(rows[:, 3:].reshape(3, 2, 3))}


class TestSecondOrder:
    how = Dual(beta=(1.0, 0.5, 0.25), eta=0.03, second_order=True)

    def state(self, settled, pulls=None):
        fresh = self.how.start(3, THETA)
        return fresh._replace(settled=jnp.array(settled), pulls=fresh.pulls if pulls is None else pulls)

    def test_starts_with_nothing(self):
        assert Dual().start(3, THETA).pulls is None
        assert jax.tree.map(jnp.shape, self.how.start(3, THETA).pulls) == {"w": (3, 2, 3), "b": (3, 3)}
        assert (flat(self.how.start(3, THETA).pulls) == 0).all()

    def test_slopes(self):
        nu = directions(0, 1.0)
        steep, products = slopes(THETA, nu)
        np.testing.assert_allclose(flat(steep), GRADIENTS, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(flat(products), np.einsum("mij,mj->mi", HESSIANS, flat(nu)), rtol=1e-4, atol=1e-5)

    def test_bend(self):
        nu = directions(1, 0.7)
        got = bend(self.how, self.state([True, True, False], nu))
        # The second and third hold the first to its place, only the third the second, none the third.
        later = np.array([0.5 + 0.25, 0.25, 0.0])
        expected = np.einsum("m,mij,mj->i", later, HESSIANS, flat(nu))
        np.testing.assert_allclose(
            np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(got)]), expected, rtol=1e-4, atol=1e-5
        )
        assert np.abs(expected).max() > 0.01

    def test_bend_by_hand(self):
        # K_1 = x^2 + 3 x y and K_2 = y: H_1 = [[2, 3], [3, 0]], so nu_1 = (1, 2) gives (8, 3), times beta_2 = 1/2.
        how = Dual(beta=(1.0, 0.5), second_order=True)
        now = how.start(2, jnp.zeros(2))._replace(pulls=jnp.array([[1.0, 2.0], [5.0, 5.0]]))
        quadratic = lambda at: jnp.stack([at[0] ** 2 + 3 * at[0] * at[1], at[1]])  # noqa: E731
        bent = jax.jit(lambda at: how.bend(now, quadratic, at))(jnp.array([0.3, 0.4]))
        np.testing.assert_allclose(bent, [4.0, 1.5], rtol=1e-6)

    @pytest.mark.parametrize(
        "converged", [[False, False, False], [True, False, False], [True, True, False], [True, True, True]]
    )
    def test_pull_moves_against_the_gradients_of_the_settled(self, settled):
        nu = directions(2, 0.5)
        after = flat(pull(self.how, self.state(settled, nu)).pulls)
        for j in range(3):
            moved = flat(nu)[j] - 0.03 * GRADIENTS[j] if settled[j] and j < 2 else np.zeros(VECTOR.size)
            np.testing.assert_allclose(after[j], moved, rtol=1e-4, atol=1e-6)
        assert (np.linalg.norm(GRADIENTS, axis=1) > 0.1).all()  # else the test would have proved little

    def test_never_longer_than_1(self):
        how = Dual(eta=1e3, second_order=True)
        now = how.start(3, THETA)._replace(settled=jnp.array([True, True, False]))
        after = flat(pull(how, now).pulls)
        np.testing.assert_allclose(np.linalg.norm(after, axis=1), [1.0, 1.0, 0.0], rtol=1e-5)
        for j in range(2):
            np.testing.assert_allclose(after[j], -GRADIENTS[j] / np.linalg.norm(GRADIENTS[j]), rtol=1e-3, atol=1e-4)

    def test_pulling_lowers_the_term_in_the_lagrangian(self):
        """`nu . grad K` falls by eta times the squared length of the gradient."""
        before = self.state([True, True, True], directions(3, 0.5))
        after = pull(self.how, before)
        change = np.sum((flat(after.pulls) - flat(before.pulls)) * GRADIENTS, axis=1)
        np.testing.assert_allclose(change[:2], -0.03 * np.sum(GRADIENTS**2, axis=1)[:2], rtol=1e-3)


def test_metrics():
    now = holding(6.0)
    got = dual.metrics(now, jnp.array([0.75, 0.25]))
    assert {name: value.tolist() for name, value in got.items()} == {
        "return_estimate": [6.0, 0.0],
        "threshold": [8.0, 0.0],
        "multiplier": [1.0, 0.0],
        "gradient_weight": [0.75, 0.25],
        "converged": [1.0, 0.0],
    }
