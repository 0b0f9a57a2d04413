"""ApproPO's parts: the nearest point of a cone, the sample of policies, and a mixture that is played as one."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import lexrl
from lexrl import DQN, ApproPO, Policy
from lexrl.algorithms.appropo import nearest_in_cone
from lexrl.constraints import as_target_set
from lexrl.types import Box, Discrete, Spec

KAPPA = 0.7
nearest = jax.jit(lambda low, high, point: nearest_in_cone(lambda x: jnp.clip(x, low, high), KAPPA, point))
COORDINATES = st.floats(-3, 3, width=32)


@st.composite
def cases(draw):
    sides = [sorted((draw(COORDINATES), draw(COORDINATES))) for _ in range(2)]
    low, high = np.array(sides, np.float32).T
    return low, high, np.array([draw(COORDINATES) for _ in range(3)], np.float32)


def by_search(low, high, point):
    """The distance by a solver that knows nothing of cones: over all `(a x, a kappa)` with a >= 0 and x in the box."""

    def square(given):
        return (given[0] - point[0]) ** 2 + (given[1] - point[1]) ** 2 + (given[2] * KAPPA - point[2]) ** 2

    rules = [{"type": "ineq", "fun": lambda given, i=i: given[i] - given[2] * low[i]} for i in range(2)] + [
        {"type": "ineq", "fun": lambda given, i=i: given[2] * high[i] - given[i]} for i in range(2)
    ]
    found = minimize(
        square, np.append(low + high, 2.0) / 2, bounds=[(None, None), (None, None), (0, None)], constraints=rules,
        method="SLSQP", options={"maxiter": 300, "ftol": 1e-12},
    )  # fmt: skip
    return np.sqrt(max(found.fun, 0.0))


class TestTheCone:
    @settings(deadline=None, max_examples=60)
    @given(cases())
    def test_no_point_is_nearer(self, case):
        low, high, point = case
        mine = np.linalg.norm(np.asarray(nearest(low, high, point), float) - point)
        assert mine == pytest.approx(by_search(low, high, point), abs=2e-3)

    @settings(deadline=None, max_examples=200)
    @given(cases())
    def test_moreau(self, case):
        """A point is the sum of its nearest in the cone and in the polar cone, and these are at right angles."""
        low, high, point = case
        inside = np.asarray(nearest(low, high, point), float)
        polar = point - inside
        scale = 1 + float(point @ point)
        a = inside[2] / KAPPA
        assert a >= 0
        assert (inside[:2] >= a * low - 1e-4 * scale).all()
        assert (inside[:2] <= a * high + 1e-4 * scale).all()
        assert inside @ polar == pytest.approx(0, abs=1e-4 * scale)
        for corner in ((x, y) for x in (low[0], high[0]) for y in (low[1], high[1])):
            assert polar @ np.append(corner, KAPPA) <= 1e-4 * scale

    def test_by_hand(self):
        """The box is the point 1, kappa 1: the cone is the ray along (1, 1)."""
        project = as_target_set("one in 1..1").project
        for point, expected in (([2.0, 0.0], [1.0, 1.0]), ([-1.0, 0.0], [0.0, 0.0]), ([3.0, 3.0], [3.0, 3.0])):
            np.testing.assert_allclose(nearest_in_cone(project, 1.0, jnp.array(point)), expected, atol=1e-5)


SPEC = Spec(Discrete(2), Discrete(2), ("reward", "cost"), 9)


def test_units():
    """A box is measured in its own units, signal by signal; in another set all signals have one unit."""

    class Ball:
        names = ("reward", "cost")

        def project(self, point):
            off = point - jnp.array([30.0, 0.0])
            return jnp.array([30.0, 0.0]) + off / jnp.maximum(1.0, jnp.linalg.norm(off) / 5)

    np.testing.assert_array_equal(ApproPO(target_set="reward in 90..350, cost in 0..10")._size(), [350, 10])
    np.testing.assert_array_equal(ApproPO(target_set="reward in 0.1..0.5, cost in -7..0")._size(), [1, 7])
    sizes = np.asarray(ApproPO(target_set=Ball())._size())
    assert sizes[0] == sizes[1] >= 30


def test_every_policy_is_kept_with_the_same_chance():
    """Of 12 policies 3 are kept: each in a quarter of 2000 reservoirs, but for five standard deviations."""
    learner = ApproPO(
        target_set="cost in 0..1", mixture_size=3, oracle=DQN(hidden_sizes=(), buffer_size=64, learning_starts=32)
    )
    start = learner.init(SPEC, jax.random.key(0))

    def one(key):
        def turn(state, number):
            net = jax.tree.map(lambda leaf: jnp.full_like(leaf, number), state.oracle.net)  # told from others by this
            return learner._update_direction(state, net, jax.random.fold_in(key, number)), None

        end, _ = jax.lax.scan(turn, start, jnp.arange(12))
        return jax.tree.leaves(end.mixture)[0].reshape(3, -1)[:, 0], end.num_direction_updates

    kept, turns = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), 2000))
    assert (turns == 12).all()
    kept = np.asarray(kept)
    assert all(len(set(row)) == 3 for row in kept)
    share = np.array([(kept == number).any(axis=1).mean() for number in range(12)])
    np.testing.assert_allclose(share, 0.25, atol=5 * np.sqrt(0.25 * 0.75 / 2000))


class TestTheMixture:
    """A world of one choice, paid 1, 10 or 100; a mixture of two policies, one for each of the last two actions."""

    @pytest.fixture(scope="class")
    @classmethod
    def result(cls):
        rewards = np.array([[[1.0, 10.0, 100.0], [0, 0, 0]], np.zeros((2, 3))])
        moves = np.zeros((2, 3, 2))
        moves[:, :, 1] = 1
        process = lexrl.MOMDP.from_arrays(
            moves, rewards, 1.0, initial=np.array([1.0, 0]), terminal=[1], signals=("reward", "cost")
        )
        world = lexrl.FiniteEnv(process, max_episode_steps=2)
        oracle = DQN(num_envs=4, num_steps=4, hidden_sizes=(), use_bias=False, buffer_size=64, learning_starts=32)
        result = lexrl.train(
            ApproPO(target_set="reward in 0..9", mixture_size=2, oracle=oracle),
            world,
            "max reward > min cost",
            seeds=2,
            total_timesteps=64,
            num_log_points=1,
        )

        def planted(leaf):
            """Tables `[..., S, 1 x A]` that like action 1 in the first place and action 2 in the second."""
            values = np.zeros(leaf.shape, np.float32)
            flat = values.reshape(*leaf.shape[:2], -1, 3)
            flat[:, 0, :, 1] = flat[:, 1, :, 2] = 1
            return jnp.asarray(values)

        states = jax.tree.map(lambda *leaves: np.stack(leaves), *[policy.state for policy in result.policies])
        assert (states.num_direction_updates >= 2).all()
        mixture = jax.tree.map(planted, states.mixture)
        policies = [
            dataclasses.replace(
                policy,
                state=policy.state._replace(mixture=jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], mixture)),
            )
            for i, policy in enumerate(result.policies)
        ]
        return dataclasses.replace(result, policies=tuple(policies))

    def test_a_part_plays_an_episode(self, result):
        paid = result.evaluate(400).returns[..., 0]
        assert set(np.unique(paid)) == {10.0, 100.0}
        assert ((paid == 10).mean(axis=1) > 0.4).all()
        assert ((paid == 10).mean(axis=1) < 0.6).all()
        np.testing.assert_array_equal(paid, result.evaluate(400).returns[..., 0])
        assert (paid[0] != paid[1]).any()

    def test_predict_plays_one_part_in_an_episode(self, result):
        policy = result.policies[0]
        chosen = []
        for _ in range(40):
            first, state = policy.predict(0, None)
            again = {int(policy.predict(0, state)[0]) for _ in range(5)}
            assert again == {int(first)}
            chosen.append(int(first))
        assert set(chosen) == {1, 2}
        anew = {policy.predict(0, state, episode_start=True)[1] for _ in range(3)}
        assert len(anew) == 3
        assert state not in anew

    def test_it_is_saved(self, result, tmp_path):
        policy = result.policies[0]
        policy.save(tmp_path / "mixture")
        again = Policy.load(tmp_path / "mixture")
        jax.tree.map(np.testing.assert_array_equal, policy.state.mixture, again.state.mixture)
        drawn = {
            int(again.algorithm.act(again.algorithm.begin(again.state, key), jnp.int32(0), key, greedy=True))
            for key in jax.random.split(jax.random.key(1), 20)
        }
        assert drawn == {1, 2}


def test_discrete_actions_only():
    with pytest.raises(lexrl.InputError, match="needs discrete actions"):
        ApproPO(target_set="cost in 0..1").init(SPEC._replace(action_space=Box((1,), -1.0, 1.0)), jax.random.key(0))
