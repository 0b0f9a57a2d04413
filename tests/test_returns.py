"""Advantages and returns along rollouts, against plain Python loops and numbers worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl import returns

T, N, M = 7, 3, 2
GAMMA = np.array([0.9, 0.5])

td_errors = jax.jit(returns.td_errors)
gae = jax.jit(returns.gae)
track_episodes = jax.jit(returns.track_episodes)


def single(*arrays):
    """In the precision of learners."""
    return [jnp.asarray(a, jnp.float32) if np.asarray(a).dtype != bool else jnp.asarray(a) for a in arrays]


def num_steps(seed):
    """Rewards, discounts, values, values of successors, ends: a third of the steps ends an episode, half by itself."""
    rng = np.random.default_rng(seed)
    reward, value, following = (rng.normal(size=(T, N, M)) for _ in range(3))
    ended = rng.random((T, N)) < 0.17
    cut_off = rng.random((T, N)) < 0.17
    return reward, np.where(ended, 0.0, 1.0), value, following, ended | cut_off


def double_loop(reward, discount, value, following, last, gamma, gae_lambda, average=0.0):
    """`A_t = sum_k (gamma trace)^k delta_{t+k}` up to the end of the episode or of the rollout."""
    out = np.zeros_like(reward)
    for n in range(N):
        for i in range(M):
            for t in range(T):
                weight = 1.0
                for k in range(t, T):
                    bootstrap = gamma[i] * following[k, n, i] if discount[k, n] else 0.0
                    mean = average[i] if np.ndim(average) else average
                    out[t, n, i] += weight * (reward[k, n, i] - mean + bootstrap - value[k, n, i])
                    weight *= gamma[i] * gae_lambda
                    if last[k, n]:
                        break
    return out


class TestAdvantages:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.95, 1.0]))
    def test_against_a_double_loop(self, seed, gae_lambda):
        reward, discount, value, following, last = num_steps(seed)
        errors = td_errors(*single(reward, discount, value, following, GAMMA))
        got = gae(errors, jnp.asarray(last), *single(GAMMA, gae_lambda))
        expected = double_loop(reward, discount, value, following, last, GAMMA, gae_lambda)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_differential(self, seed):
        reward, discount, value, following, last = num_steps(seed)
        mean, one = np.array([0.7, -0.2]), np.ones(M)
        errors = td_errors(*single(reward, discount, value, following, one, mean))
        got = gae(errors, jnp.asarray(last), *single(one, 0.8))
        expected = double_loop(reward, discount, value, following, last, one, 0.8, mean)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)

    def test_by_hand(self):
        # One world, one objective, gamma = 1/2, trace = 1/2. Rewards 1, 2, 3, 4; values 8, 4, 2, 6; successors are
        # worth 4, 2, 10, 20. The episode is cut off at the third step (10 still counts), the task ends at the fourth.
        reward, value, following = (
            jnp.array(row, jnp.float32)[:, None, None]
            for row in ([1, 2, 3, 4], [8, 4, 2, 6], [4, 2, 10, 20])
        )  # fmt: skip
        discount, last = jnp.array([[1.0], [1.0], [1.0], [0.0]]), jnp.array([[False], [False], [True], [True]])
        gamma = jnp.array([0.5])
        errors = td_errors(reward, discount, value, following, gamma)
        # 1 + 2 - 8, 2 + 1 - 4, 3 + 5 - 2, 4 + 0 - 6
        assert errors.ravel().tolist() == [-5.0, -1.0, 6.0, -2.0]
        # From behind: -2; 6 (nothing of the next episode); -1 + 6/4; -5 + 0.5/4.
        assert gae(errors, last, gamma, 0.5).ravel().tolist() == [-4.875, 0.5, 6.0, -2.0]

    def test_differential_by_hand(self):
        got = td_errors(*single([[3.0]], [1.0], [[5.0]], [[7.0]], [1.0], [2.0]))
        assert got.tolist() == [[3.0]]  # 3 - 2 + 7 - 5

    def test_trace_0_is_the_errors(self):
        reward, discount, value, following, last = num_steps(1)
        errors = td_errors(*single(reward, discount, value, following, GAMMA))
        np.testing.assert_array_equal(gae(errors, jnp.asarray(last), *single(GAMMA, 0.0)), errors)

    def test_trace_1_is_the_returns_distance_to_the_value(self):
        """A world's own values along the way cancel: `r_t + .. + gamma^k V(end) - V(s_t)`."""
        rng = np.random.default_rng(2)
        reward, value = rng.normal(size=(T, N, M)), rng.normal(size=(T + 1, N, M))
        last = np.zeros((T, N), bool)
        last[-1] = True
        for ends in (0.0, 1.0):  # the task ends with the rollout, or only its time is up
            discount = np.ones((T, N))
            discount[-1] = ends
            errors = td_errors(*single(reward, discount, value[:-1], value[1:], GAMMA))
            got = gae(errors, jnp.asarray(last), *single(GAMMA, 1.0))
            for t in range(T):
                total = sum(GAMMA ** (k - t) * reward[k] for k in range(t, T)) + ends * GAMMA ** (T - t) * value[-1]
                np.testing.assert_allclose(got[t], total - value[t], rtol=1e-4, atol=1e-5)

    def test_the_end_of_a_rollout_is_not_an_episodes(self):
        """What comes after the rollout is in the successor's value, once; nothing else is carried in."""
        reward, discount, value, following, last = num_steps(3)
        last[-1], discount[-1] = False, 1.0
        errors = td_errors(*single(reward, discount, value, following, GAMMA))
        got = gae(errors, jnp.asarray(last), *single(GAMMA, 0.9))
        np.testing.assert_allclose(got[-1], reward[-1] + GAMMA * following[-1] - value[-1], rtol=1e-4, atol=1e-5)

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.integers(0, T - 2))
    def test_nothing_is_carried_over_an_episodes_end(self, seed, end):
        reward, discount, value, following, last = num_steps(seed)
        last[end, 1] = True
        spoiled = reward.copy()
        spoiled[end + 1 :, 1] += 1000.0
        one, other = (
            gae(td_errors(*single(paid, discount, value, following, GAMMA)), jnp.asarray(last), *single(GAMMA, 0.9))
            for paid in (reward, spoiled)
        )
        np.testing.assert_array_equal(one[: end + 1], other[: end + 1])
        assert (np.asarray(one)[end + 1 :, 1] != np.asarray(other)[end + 1 :, 1]).all()


def episodes(reward, last, gamma):
    """Of all that ended: discounted returns and lengths; and each step's place in its episode."""
    steps = reward.shape[0]
    earned, lengths, ages = [], [], np.zeros((steps, N), int)
    for n in range(N):
        begun = 0
        for t in range(steps):
            ages[t, n] = t - begun
            if last[t, n]:
                earned.append(sum(gamma**k * reward[begun + k, n] for k in range(t + 1 - begun)))
                lengths.append(t + 1 - begun)
                begun = t + 1
    return np.array(earned).reshape(-1, M), lengths, ages


class TestFollow:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1, 0.5]))
    def test_episodes_that_span_rollouts(self, seed, ending):
        """Eight rollouts in a row; most episodes span several of them."""
        rng = np.random.default_rng(seed)
        reward, last = rng.normal(size=(8 * T, N, M)), rng.random((8 * T, N)) < ending
        track, passages = returns.init_tracker(N, M), []
        for part in range(8):
            here = slice(part * T, (part + 1) * T)
            track, episode_stats = track_episodes(track, *single(reward[here], last[here], GAMMA))
            passages.append(episode_stats)
        earned, lengths, ages = episodes(reward, last, GAMMA)
        assert sum(episode_stats.episodes for episode_stats in passages) == len(earned)
        assert sum(episode_stats.length for episode_stats in passages) == sum(lengths)
        for name, expected in (("total", earned.sum(axis=0)), ("squares", (earned**2).sum(axis=0))):
            together = sum(np.asarray(getattr(episode_stats, name), float) for episode_stats in passages)
            np.testing.assert_allclose(together, expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(np.concatenate([episode_stats.first for episode_stats in passages]), ages == 0)
        weight = np.concatenate([episode_stats.weight for episode_stats in passages])
        np.testing.assert_allclose(weight, GAMMA ** ages[..., None], rtol=1e-4)
        following = np.where(last[-1], 0, ages[-1] + 1)
        np.testing.assert_array_equal(track.age, following)
        np.testing.assert_allclose(track.weight, GAMMA ** following[:, None], rtol=1e-4)

    def test_by_hand(self):
        # One world, gamma = 1/2 and 1. The first episode pays (1, 1), (4, 4) and, in the next rollout, (8, 8):
        # 1 + 2 + 2 = 5 and 13. The second one pays (3, 3) at once. A third has begun with (16, 16).
        gamma = jnp.array([0.5, 1.0])
        paid = jnp.array([1.0, 4.0, 8.0, 3.0, 16.0])[:, None, None] * jnp.ones(2)
        last = jnp.array([False, False, True, True, False])[:, None]
        track, before = track_episodes(returns.init_tracker(1, 2), paid[:2], last[:2], gamma)
        assert before.episodes == 0
        assert before.total.tolist() == [0.0, 0.0]
        assert track.earned.tolist() == [[3.0, 5.0]]
        assert track.weight.tolist() == [[0.25, 1.0]]
        track, after = track_episodes(track, paid[2:], last[2:], gamma)
        assert after.episodes == 2
        assert after.total.tolist() == [5.0 + 3.0, 13.0 + 3.0]
        assert after.squares.tolist() == [25.0 + 9.0, 169.0 + 9.0]
        assert after.length == 3 + 1
        assert after.first.ravel().tolist() == [False, True, True]
        assert after.weight[:, 0].tolist() == [[0.25, 1.0], [1.0, 1.0], [1.0, 1.0]]
        assert track.age.tolist() == [1]
        assert track.earned.tolist() == [[16.0, 16.0]]

    def test_a_new_track(self):
        track = returns.init_tracker(3, 2)
        assert track.age.tolist() == [0, 0, 0]
        assert (np.asarray(track.weight) == 1).all()
        assert (np.asarray(track.earned) == 0).all()

    @pytest.mark.parametrize("gamma", [0.0, 1.0])
    def test_the_ends_of_gamma(self, gamma):
        reward, last = np.ones((T, N, M)), np.zeros((T, N), bool)
        last[-1] = True
        _, episode_stats = track_episodes(returns.init_tracker(N, M), *single(reward, last, np.full(M, gamma)))
        np.testing.assert_array_equal(episode_stats.total, np.full(M, N * (T if gamma else 1)))
