"""Distributions over actions, against SciPy, numerical integration, and the frequencies of what they draw."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from lexrl import distributions
from lexrl.distributions import Categorical, Normal, Squashed

KEY = jax.random.key(3)
ALMOST_ONE = 1 - 2**-23
"""The largest number `jax.random.uniform` gives in float32."""

logits = st.lists(st.floats(-8, 8, width=32, allow_subnormal=False), min_size=4, max_size=4)
places = st.lists(st.floats(-3, 3, width=32), min_size=2, max_size=2)
spreads = st.lists(st.floats(-2, 1, width=32), min_size=2, max_size=2)


def numbers(given):
    return jnp.array(given, jnp.float32)


# Compiled whole: each operation by itself would take longer to compile than to test.
log_prob = jax.jit(lambda policy, action: policy.log_prob(action))
entropy = jax.jit(lambda policy: policy.entropy())
kl = jax.jit(lambda policy, other: policy.kl(other))
sample = jax.jit(lambda policy, key: policy.sample(key))


class TestCategorical:
    @settings(max_examples=60, deadline=None)
    @given(logits, logits)
    def test_against_scipy(self, mine, theirs):
        p, q = (np.exp(row - np.max(row)) for row in (np.array(mine), np.array(theirs)))
        p, q = p / p.sum(), q / q.sum()
        policy = Categorical(numbers(mine))
        for action in range(4):
            logs = stats.multinomial.logpmf(np.eye(4)[action], 1, p)
            np.testing.assert_allclose(log_prob(policy, jnp.int32(action)), logs, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(entropy(policy), stats.entropy(p), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(kl(policy, Categorical(numbers(theirs))), stats.entropy(p, q), rtol=1e-4, atol=1e-5)
        assert policy.mode() == np.argmax(np.float32(mine))

    def test_by_hand(self):
        # Logits log 3 and 0: chances 3/4 and 1/4.
        policy, even = Categorical(jnp.log(jnp.array([3.0, 1.0]))), Categorical(jnp.zeros(2))
        np.testing.assert_allclose(log_prob(policy, jnp.int32(1)), np.log(0.25), rtol=1e-6)
        np.testing.assert_allclose(entropy(policy), 0.75 * np.log(4 / 3) + 0.25 * np.log(4), rtol=1e-6)
        np.testing.assert_allclose(kl(policy, even), 0.75 * np.log(1.5) + 0.25 * np.log(0.5), rtol=1e-6)
        np.testing.assert_allclose(kl(even, policy), 0.5 * np.log(2 / 3) + 0.5 * np.log(2), rtol=1e-6)
        assert policy.mode() == 0

    def test_frequencies(self):
        p = np.array([0.5, 0.3, 0.15, 0.05])
        taken = Categorical(jnp.broadcast_to(jnp.log(numbers(p)), (8000, 4))).sample(KEY)
        counts = np.bincount(taken, minlength=4)
        assert stats.chisquare(counts, 8000 * p).pvalue > 1e-3

    def test_rows_of_a_batch_are_drawn_apart(self):
        taken = Categorical(jnp.zeros((2000, 2))).sample(KEY)
        assert 800 < taken.sum() < 1200

    def test_batch_axes(self):
        rows = jax.random.normal(KEY, (2, 3, 4))
        action = np.array([[0, 1, 2], [3, 0, 1]], np.int32)
        policy, other = Categorical(rows), Categorical(rows[::-1])
        logs, chaos, apart = (
            np.asarray(it) for it in (log_prob(policy, jnp.array(action)), entropy(policy), kl(policy, other))
        )
        rows, mode = np.asarray(rows), np.asarray(policy.mode())
        for i, j in itertools.product(range(2), range(3)):
            one, two = Categorical(jnp.array(rows[i, j])), Categorical(jnp.array(rows[1 - i, j]))
            np.testing.assert_allclose(logs[i, j], log_prob(one, jnp.int32(action[i, j])), rtol=1e-6)
            np.testing.assert_allclose(chaos[i, j], entropy(one), rtol=1e-6)
            np.testing.assert_allclose(apart[i, j], kl(one, two), rtol=1e-5)
            assert mode[i, j] == np.argmax(rows[i, j])
        assert sample(policy, KEY).shape == (2, 3)
        assert sample(policy, KEY).dtype == jnp.int32


class TestNormal:
    @settings(max_examples=60, deadline=None)
    @given(places, spreads, places)
    def test_log_prob_and_entropy_against_scipy(self, mean, log_std, at):
        policy = Normal(numbers(mean), numbers(log_std))
        truth = stats.norm(np.array(mean), np.exp(log_std))
        np.testing.assert_allclose(log_prob(policy, numbers(at)), truth.logpdf(at).sum(), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(entropy(policy), truth.entropy().sum(), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(policy.mode(), numbers(mean))

    @settings(max_examples=15, deadline=None)
    @given(places, spreads, places, spreads)
    def test_kl_against_integration(self, mean, log_std, other_mean, other_log_std):
        policy = Normal(numbers(mean), numbers(log_std))
        other = Normal(numbers(other_mean), numbers(other_log_std))
        total = 0.0
        for a, b, c, d in zip(mean, log_std, other_mean, other_log_std, strict=True):
            p, q = stats.norm(a, np.exp(b)), stats.norm(c, np.exp(d))
            x = np.linspace(a - 12 * np.exp(b), a + 12 * np.exp(b), 4001)
            total += integrate.simpson(p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), x=x)
        np.testing.assert_allclose(kl(policy, other), total, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(kl(policy, policy), 0.0, atol=1e-6)

    def test_kl_by_hand(self):
        # KL(N(1, 1) || N(0, 2)) = log 2 + (1 + 1) / (2 * 4) - 1/2.
        policy, other = Normal(jnp.ones(1), jnp.zeros(1)), Normal(jnp.zeros(1), jnp.log(jnp.array([2.0])))
        np.testing.assert_allclose(kl(policy, other), np.log(2) + 0.25 - 0.5, rtol=1e-6)

    def test_samples(self):
        mean, log_std = jnp.array([1.0, -2.0]), jnp.array([0.5, -1.0])
        shape = (4000, 2)
        drawn = np.asarray(Normal(jnp.broadcast_to(mean, shape), jnp.broadcast_to(log_std, shape)).sample(KEY))
        for i in range(2):
            assert stats.kstest(drawn[:, i], stats.norm(mean[i], np.exp(log_std[i])).cdf).pvalue > 1e-3
        assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.06  # the dimensions are independent

    def test_batch_axes(self):
        mean, log_std, at = (jax.random.normal(jax.random.key(i), (3, 5, 2)) for i in range(3))
        policy, other = Normal(mean, log_std), Normal(at, log_std[::-1])
        one, two = Normal(mean[1, 4], log_std[1, 4]), Normal(at[1, 4], log_std[1, 4])
        assert sample(policy, KEY).shape == policy.mode().shape == (3, 5, 2)
        assert entropy(policy).shape == (3, 5)
        np.testing.assert_allclose(log_prob(policy, at)[1, 4], log_prob(one, at[1, 4]), rtol=1e-5)
        np.testing.assert_allclose(entropy(policy)[1, 4], entropy(one), rtol=1e-5)
        np.testing.assert_allclose(kl(policy, other)[1, 4], kl(one, two), rtol=1e-5)


LOW, HIGH = -1.0, 3.0


def squashed(mean, log_std):
    return Squashed(Normal(numbers([mean]), numbers([log_std])), LOW, HIGH)


def density(policy, at):
    """Of a one-dimensional policy, at many points."""
    normal = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(at), 1)), policy.normal)
    logs = log_prob(Squashed(normal, policy.low, policy.high), numbers(at)[:, None])
    return np.asarray(logs, float)


def share(policy, at):
    """The distribution function by change of variables: how likely the normal is below atanh of the place."""
    unit = 2 * (np.asarray(at) - LOW) / (HIGH - LOW) - 1
    return stats.norm.cdf(np.arctanh(unit), policy.normal.mean[0], np.exp(policy.normal.log_std[0]))


CASES = pytest.mark.parametrize(("mean", "log_std"), [(0.0, -0.5), (0.7, -1.0), (-0.4, -0.2), (0.0, 0.0)])
# Cells of equal chance for the normal would be easier to integrate over, but would hide a wrong stretch.
GRID = np.linspace(LOW, HIGH, 8001)[1:-1]


class TestSquashed:
    @CASES
    def test_log_prob_integrates_to_the_distribution_function(self, mean, log_std):
        policy = squashed(mean, log_std)
        mass = integrate.cumulative_trapezoid(np.exp(density(policy, GRID)), GRID, initial=0.0)
        np.testing.assert_allclose(mass + share(policy, GRID[0]), share(policy, GRID), atol=2e-4)
        np.testing.assert_allclose(mass[-1], 1.0, atol=2e-3)

    @CASES
    def test_log_prob_by_change_of_variables(self, mean, log_std):
        policy = squashed(mean, log_std)
        x = np.linspace(-2, 2, 41)
        y = LOW + (HIGH - LOW) * (np.tanh(x) + 1) / 2
        steep = (HIGH - LOW) / 2 / np.cosh(x) ** 2  # dy / dx
        truth = stats.norm.logpdf(x, mean, np.exp(log_std)) - np.log(steep)
        np.testing.assert_allclose(density(policy, y), truth, rtol=1e-3, atol=1e-3)

    def test_dimensions_add_up(self):
        policy = Squashed(Normal(numbers([0.3, -0.2]), numbers([-1.0, 0.0])), LOW, HIGH)
        alone = [log_prob(squashed(0.3, -1.0), numbers([0.5])), log_prob(squashed(-0.2, 0.0), numbers([2.0]))]
        np.testing.assert_allclose(log_prob(policy, numbers([0.5, 2.0])), sum(alone), rtol=1e-5)

    def test_bounds_of_their_own_for_each_dimension(self):
        low, high = numbers([-1.0, 0.0]), numbers([3.0, 10.0])
        policy = Squashed(Normal(jnp.zeros(2), jnp.zeros(2)), low, high)
        np.testing.assert_allclose(policy.mode(), [1.0, 5.0])
        # At the middle tanh has slope 1: each dimension is stretched by half its width, 2 and 5.
        expected = 2 * stats.norm.logpdf(0.0) - np.log(2) - np.log(5)
        np.testing.assert_allclose(log_prob(policy, numbers([1.0, 5.0])), expected, rtol=1e-6)

    def test_kl_against_integration(self):
        one, other = squashed(0.3, -1.0), squashed(-0.2, -0.5)
        mine, theirs = density(one, GRID), density(other, GRID)
        expected = integrate.trapezoid(np.exp(mine) * (mine - theirs), GRID)
        np.testing.assert_allclose(kl(one, other), expected, rtol=2e-3)
        assert not np.isclose(kl(one, other), kl(other, one), rtol=0.1)

    def test_entropy_is_the_normals(self):
        assert squashed(0.3, -1.0).entropy() == squashed(0.3, -1.0).normal.entropy()

    def test_mode_is_the_middle_of_the_normal_pressed(self):
        np.testing.assert_allclose(squashed(0.5, 0.0).mode(), [LOW + 2 * (np.tanh(0.5) + 1)], rtol=1e-6)

    def test_samples(self):
        normal = Normal(jnp.full((4000, 1), 0.5), jnp.full((4000, 1), -0.3))
        drawn = np.asarray(Squashed(normal, LOW, HIGH).sample(KEY))[:, 0]
        assert stats.kstest(drawn, lambda at: share(squashed(0.5, -0.3), at)).pvalue > 1e-3

    @pytest.mark.parametrize("mean", [-30.0, 30.0])
    def test_the_borders_are_finite(self, mean):
        """tanh rounds to 1 far out; the action is then the border itself, and must not break a learner."""
        policy = squashed(mean, 0.0)
        action = sample(policy, KEY)
        assert LOW <= action[0] <= HIGH
        assert jnp.isfinite(log_prob(policy, action))
        steep = jax.grad(lambda normal: Squashed(normal, LOW, HIGH).log_prob(action))(policy.normal)
        assert all(np.isfinite(leaf).all() for leaf in steep)

    def test_batch_axes(self):
        mean, log_std = (jax.random.normal(jax.random.key(i), (3, 5, 2)) for i in range(2))
        policy = Squashed(Normal(mean, log_std), LOW, HIGH)
        action = sample(policy, KEY)
        assert action.shape == policy.mode().shape == (3, 5, 2)
        one = Squashed(Normal(mean[2, 1], log_std[2, 1]), LOW, HIGH)
        np.testing.assert_allclose(log_prob(policy, action)[2, 1], log_prob(one, action[2, 1]), rtol=1e-5)
        assert kl(policy, policy).shape == entropy(policy).shape == (3, 5)


@pytest.fixture
def fixed(monkeypatch):
    """Sets the uniform number that is drawn."""

    def at(number):
        monkeypatch.setattr(jax.random, "uniform", lambda key, shape=(): jnp.full(shape, number, jnp.float32))

    return at


class TestDraw:
    @pytest.mark.parametrize(
        ("number", "action"), [(0.0, 1), (0.2, 1), (0.24, 1), (0.26, 3), (0.74, 3), (0.76, 4), (ALMOST_ONE, 4)]
    )
    def test_by_hand(self, fixed, number, action):
        fixed(number)
        assert distributions.draw(jnp.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0]), KEY) == action

    @pytest.mark.parametrize("number", [0.0, 0.5, ALMOST_ONE])
    def test_impossible_actions_are_never_drawn_whatever_rounding_does(self, fixed, number):
        rng = np.random.default_rng(0)
        weight = rng.exponential(size=(2000, 7)) * rng.choice([0, 1e-12, 1e-3, 1], (2000, 7), p=[0.4, 0.1, 0.1, 0.4])
        weight[weight.sum(axis=1) == 0, 2] = 1.0
        p = (weight / weight.sum(axis=1, keepdims=True)).astype(np.float32)
        p *= rng.uniform(1 - 1e-6, 1 + 1e-6, (2000, 1)).astype(np.float32)  # sums a little off 1, too
        fixed(number)
        taken = np.asarray(distributions.draw(jnp.array(p), KEY))
        assert (p[np.arange(2000), taken] > 0).all()

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.sampled_from([0.0, 1e-30, 1e-7, 0.3, 1.0]), min_size=5, max_size=5).filter(any),
           st.integers(0, 2**32 - 1))  # fmt: skip
    def test_only_what_is_possible(self, p, seed):
        weight = numbers(p) / sum(p)
        assert weight[distributions.draw(weight, jax.random.key(seed))] > 0

    def test_frequencies(self):
        p = np.array([0.1, 0.0, 0.6, 0.3, 0.0])
        taken = distributions.draw(jnp.broadcast_to(numbers(p), (4000, 5)), KEY)
        counts = np.bincount(taken, minlength=5)
        assert counts[1] == counts[4] == 0
        assert stats.chisquare(counts[[0, 2, 3]], 4000 * p[[0, 2, 3]]).pvalue > 1e-3

    def test_batch_axes(self):
        p = jax.nn.one_hot(jnp.array([[2, 0], [1, 1], [0, 2]]), 3)
        np.testing.assert_array_equal(distributions.draw(p, KEY), [[2, 0], [1, 1], [0, 2]])
        assert distributions.draw(p, KEY).dtype == jnp.int32
