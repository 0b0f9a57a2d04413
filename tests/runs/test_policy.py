"""Policies to take away: as Stable-Baselines3's users know them, in one file, with the same actions as in training."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import Networks, Policy
from lexrl.envs.registration import _space as gymnasium_space
from lexrl.errors import InputError
from lexrl.loops import keys
from lexrl.loops.keys import Purpose

ORDER = "min cost > max reward"


def small(kind, **changes):
    more = (
        {"hidden_sizes": (8,), "buffer_size": 640, "learning_starts": 64}
        if kind is lexrl.LDQN
        else {"networks": Networks(hidden_sizes=(8,))}
    )
    return kind(num_envs=4, num_steps=16, **(more | changes))


CASES = {
    "lppo": (lambda: small(lexrl.LPPO, num_minibatches=2), lambda: lexrl.CartSafe()),
    "ldqn": (lambda: small(lexrl.LDQN), lambda: lexrl.CartSafe()),
    "continuous": (lambda: small(lexrl.LA2C), lambda: lexrl.MountainCarSafe()),
    "tabular": (
        lambda: lexrl.QLearning(tolerance=0.1, exploration="epsilon 0.5", guard=None),
        lambda: lexrl.GridNav.generate(5, map_seed=3),
    ),
}


@pytest.fixture(scope="module", params=CASES)
def result(request):
    algorithm, world = (make() for make in CASES[request.param])
    return lexrl.train(algorithm, world, ORDER, seeds=[4, 9], total_timesteps=2000, num_log_points=2)


def observations(result, n=6):
    world, key = result.run.env, jax.random.key(0)
    return np.stack([np.asarray(world.reset(jax.random.fold_in(key, i))[1]) for i in range(n)])


class TestPredict:
    def test_one_and_several(self, result):
        policy, seen = result.policies[1], observations(result)
        together, state = policy.predict(seen)
        assert state is None
        for i, obs in enumerate(seen if not policy.is_sampled else ()):
            action, _ = policy.predict(obs)
            np.testing.assert_allclose(action, together[i], rtol=1e-5)
        space = policy.spec.action_space
        assert together.shape == (6,) if hasattr(space, "n") else (6, *space.shape)

    def test_the_greedy_action_of_the_learner(self, result):
        policy, seen = result.policies[1], observations(result)
        algorithm = jax.tree.map(lambda leaf: leaf[1], result.run.population().algorithms)
        for i, obs in enumerate(seen):
            key = keys.at(keys.stream(0, Purpose.ACT), i)
            action = algorithm.act(result.agent(1), jnp.asarray(obs), key, greedy=True)
            np.testing.assert_allclose(policy.act(obs, key), action, rtol=1e-5)

    def test_drawn_actions_differ_and_can_be_had_again(self, result, tmp_path):
        result.policies[0].save(tmp_path / "policy.safetensors")
        first, second = (Policy.load(tmp_path / "policy.safetensors") for _ in range(2))
        obs = np.repeat(observations(result, 1), 200, axis=0)
        draws = [policy.predict(obs, deterministic=False)[0] for policy in (first, first, second, second)]
        np.testing.assert_array_equal(draws[0], draws[2])
        np.testing.assert_array_equal(draws[1], draws[3])
        assert not np.array_equal(draws[0], draws[1])

    def test_continuous_actions_are_within_their_bounds(self, result):
        """As those of Stable-Baselines3; samples of a normal were not."""
        policy, obs = result.policies[0], np.repeat(observations(result, 1), 200, axis=0)
        space = gymnasium_space(policy.spec.action_space)
        assert all(space.contains(action) for action in policy.predict(obs, deterministic=False)[0])

    def test_a_state_is_handed_back(self, result):
        assert result.policies[0].predict(observations(result)[0], state="mine", episode_start=True)[1] == "mine"


class TestSampled:
    """A policy whose greedy actions would lose something important: `deterministic` samples it, too."""

    @pytest.fixture(scope="class")
    def sampled(self):
        process = lexrl.MOMDP.random(0, 4, 3, 2, episodic=True)
        result = lexrl.train(
            small(lexrl.LPPO, num_minibatches=2), lexrl.FiniteEnv(process, max_episode_steps=20),
            "max signal_1 > max signal_2", seeds=[4, 9], total_timesteps=256, num_log_points=1,
        )  # fmt: skip
        states = [policy.state for policy in result.policies]
        states = [one._replace(course=one.course._replace(sampled=np.array(True))) for one in states]
        policies = [
            dataclasses.replace(policy, state=state) for policy, state in zip(result.policies, states, strict=True)
        ]
        return dataclasses.replace(result, policies=tuple(policies))

    def test_every_call_draws_anew(self, sampled):
        policy, obs = sampled.policies[0], np.zeros(200, int)
        assert policy.is_sampled
        one, other = policy.predict(obs)[0], policy.predict(obs)[0]
        assert len(set(one.tolist())) == 3
        assert not np.array_equal(one, other)
        alone = {int(policy.predict(0)[0]) for _ in range(60)}
        assert alone == {0, 1, 2}

    def test_as_often_as_it_says(self, sampled):
        policy, obs = sampled.policies[1], np.full(4000, 2)
        drawn = np.bincount(policy.predict(obs)[0], minlength=3) / 4000
        np.testing.assert_allclose(drawn, sampled.probabilities()[1, 2], atol=0.04)
        np.testing.assert_allclose(sampled.probabilities(), sampled.probabilities(deterministic=False))

    def test_a_file_keeps_it(self, sampled, tmp_path):
        policy, obs = sampled.policies[1], np.zeros(50, int)
        policy.save(tmp_path / "policy.safetensors")
        first, second = (Policy.load(tmp_path / "policy.safetensors") for _ in range(2))
        assert first.is_sampled
        np.testing.assert_array_equal(first.predict(obs)[0], second.predict(obs)[0])

    def test_it_is_evaluated_as_it_acts(self, sampled):
        """With the same keys, greedy or not: the same episodes."""
        one, other = sampled.evaluate(20), sampled.evaluate(20, deterministic=False)
        np.testing.assert_array_equal(one.returns, other.returns)

    def test_others_are_not_sampled(self, result):
        policy = result.policies[0]
        if not isinstance(result.run.algorithm, lexrl.LPPO | lexrl.LA2C):
            assert policy.is_sampled is False
            obs = np.repeat(observations(result, 1), 20, axis=0)
            actions = policy.predict(obs)[0]
            np.testing.assert_array_equal(actions, np.broadcast_to(actions[:1], actions.shape))


class TestFiles:
    def test_the_same_actions_and_bytes(self, result, tmp_path):
        policy, path = result.policies[1], tmp_path / "deep" / "policy.safetensors"
        policy.save(path)
        again = Policy.load(path)
        seen = observations(result)
        fresh = dataclasses.replace(policy, _draws=itertools.count())  # of a sampled one, from its first action on
        np.testing.assert_array_equal(fresh.predict(seen)[0], again.predict(seen)[0])
        assert (again.seed, again.spec, str(again.order)) == (9, policy.spec, str(policy.order))
        again.save(tmp_path / "again.safetensors")
        assert path.read_bytes() == (tmp_path / "again.safetensors").read_bytes()

    def test_small_enough_to_send(self, result, tmp_path):
        result.policies[0].save(tmp_path / "policy.safetensors")
        assert (tmp_path / "policy.safetensors").stat().st_size < 30_000

    @pytest.mark.parametrize("place", [0.1, 0.5, 0.95])
    def test_damage_is_noticed(self, result, tmp_path, place):
        path = tmp_path / "policy.safetensors"
        result.policies[0].save(path)
        content = bytearray(path.read_bytes())
        content[int(len(content) * place)] ^= 4
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"damaged|format|no .* which this lexrl"):
            Policy.load(path)

    def test_other_files(self, tmp_path):
        with pytest.raises(InputError, match="There is no file"):
            Policy.load(tmp_path / "none")
        (tmp_path / "text").write_text("hello")
        with pytest.raises(InputError, match="damaged, or not written by lexrl"):
            Policy.load(tmp_path / "text")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (np.zeros(5), r"has shape \[5\], but this policy was trained on Box"),
        (np.zeros((2, 5)), r"has shape \[2, 5\]"),
        (0.0, r"has shape \[\]"),
        ("left", "A str is not an observation"),
        (None, "has shape|is not an observation"),
    ],
)
def test_wrong_observations(given, sentence):
    result = lexrl.train(
        small(lexrl.LPPO, num_minibatches=2), lexrl.CartSafe(), ORDER, seeds=1, total_timesteps=128, num_log_points=1
    )
    with pytest.raises(InputError, match=sentence):
        result.policies[0].predict(given)
