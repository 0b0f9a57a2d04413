"""Networks for sets: the order of the others and the contents of absent rows do not matter; any algorithm takes one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms.actor_critic import see
from lexrl.errors import InputError
from lexrl.networks import Networks, as_builder, build_network
from lexrl.runs import codec
from lexrl.set_encoders import SetEncoder
from lexrl.types import Box, Discrete, Spec

KEY = jax.random.key(0)
SPEC = Spec(Box((6, 4)), Discrete(3), ("a", "b"), 10)


def rows(seed=0, present=4):
    obs = np.random.default_rng(seed).normal(size=(6, 4)).astype(np.float32)
    obs[:, 0] = np.arange(6) < present
    return obs


def built(kind, **settings):
    return build_network(SetEncoder(kind, output_scale=1.0, **settings), KEY, SPEC, (2, 3), "actor")


def network(kind, **settings):
    """From an observation, or several, to the answer."""
    net = built(kind, **settings)
    return lambda obs: np.asarray(net(jnp.asarray(obs)))


@pytest.mark.parametrize("kind", ["attention", "pooling", "pairs"])
class TestAll:
    def test_the_shape(self, kind):
        net = network(kind)
        assert net(rows()).shape == (2, 3)
        assert net(np.stack([rows(1), rows(2)])).shape == (2, 2, 3)

    def test_the_order_of_the_others_does_not_matter(self, kind):
        obs, net = rows(), network(kind)
        shuffled = obs[[0, 3, 5, 1, 4, 2]]
        np.testing.assert_allclose(net(obs), net(shuffled), rtol=1e-5, atol=1e-6)

    def test_the_agent_is_not_one_of_the_others(self, kind):
        obs, net = rows(), network(kind)
        assert np.abs(net(obs) - net(obs[[1, 0, 2, 3, 4, 5]])).max() > 1e-3

    def test_absent_rows_do_not_matter(self, kind):
        obs, net = rows(present=3), network(kind)
        other = obs.copy()
        other[3:, 1:] = 7.0
        np.testing.assert_array_equal(net(obs), net(other))

    def test_present_rows_do(self, kind):
        obs, net = rows(present=3), network(kind)
        other = obs.copy()
        other[2, 1:] += 1.0
        assert np.abs(net(obs) - net(other)).max() > 1e-3

    def test_alone(self, kind):
        obs, net = jnp.asarray(rows(present=1)), built(kind)
        assert np.isfinite(net(obs)).all()
        assert np.isfinite(jax.grad(lambda obs: net(obs).sum())(obs)).all()

    def test_gradients_against_differences(self, kind):
        obs, net = rows(), network(kind, activation="tanh")
        inner = built(kind, activation="tanh")
        gradient = jax.grad(lambda obs: inner(obs).sum())(jnp.asarray(obs))
        for place in [(0, 1), (2, 3)]:
            step = np.zeros_like(obs)
            step[place] = 1e-3
            slope = (net(obs + step).sum() - net(obs - step).sum()) / 2e-3
            assert float(gradient[place]) == pytest.approx(float(slope), rel=0.02, abs=1e-3)


def test_attention_by_hand():
    """One head whose projections are known: the weights are those of a softmax."""
    obs, net = rows(), built("attention", num_heads=1, width=4, embed_sizes=(5,))
    module = net.parameters
    embedded = np.maximum(np.asarray(module.embed(jnp.asarray(obs))), 0)
    query, keys, values = (embedded @ np.asarray(part[:, 0]) for part in module.project)
    scores = np.where(obs[:, 0] > 0, keys @ query[0] / 2, -np.inf)
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    expected = module.read(jnp.concatenate([embedded[0], weights @ values]))
    np.testing.assert_allclose(net(jnp.asarray(obs)), expected, rtol=1e-4, atol=1e-5)


def test_pairs_by_hand():
    """Each other row is embedded beside the agent's, and the largest and the mean embedding are read."""
    obs = rows(present=3)
    net = built("pairs", width=4, embed_sizes=(5,))
    module = net.parameters
    both = np.concatenate([obs[1:3], np.stack([obs[0], obs[0]])], axis=1)
    others = np.maximum(np.asarray(module.embed(jnp.asarray(both))), 0)
    own = np.maximum(np.asarray(module.own(jnp.asarray(obs[0]))), 0)
    expected = module.read(jnp.concatenate([own, others.max(axis=0), others.mean(axis=0)]))
    np.testing.assert_allclose(net(jnp.asarray(obs)), expected, rtol=1e-4, atol=1e-5)


def test_features_are_normalized():
    """By what the rollouts of an algorithm with an actor have shown, so that their units do not matter."""
    obs = np.stack([rows(seed) for seed in range(32)])
    net = see(built("pairs"), jnp.asarray(obs), jnp.int32(1))
    units = np.array([1.0, 100.0, 0.01, 7.0], np.float32)
    other = see(built("pairs"), jnp.asarray(obs * units), jnp.int32(1))
    np.testing.assert_allclose(net(jnp.asarray(obs)), other(jnp.asarray(obs * units)), rtol=1e-3, atol=1e-3)
    assert built("pairs", normalize_observations=False).parameters.normalizer is None


ENV = "intersection"
SMALL = SetEncoder(width=8, embed_sizes=(8,), hidden_sizes=(8,))


@pytest.mark.parametrize(
    "algorithm",
    [
        lexrl.LPPO(networks=Networks(actor=SMALL, critic=SMALL), num_envs=2, num_steps=8, num_minibatches=1),
        lexrl.LDQN(network=SetEncoder("pooling", 8, (8,), 1, (8,)), num_envs=2, num_steps=4, learning_starts=8),
    ],
    ids=["LPPO", "LDQN"],
)
def test_algorithms_take_one(algorithm, tmp_path):
    order = "min collision > max arrived"
    result = lexrl.train(algorithm, ENV, order, seeds=1, total_timesteps=64, num_log_points=1, out=tmp_path / "run")
    again = lexrl.load(tmp_path / "run")
    obs = np.zeros((15, 7), np.float32)
    obs[0, 0] = 1
    assert again.policies[0].predict(obs)[0] == result.policies[0].predict(obs)[0]
    assert again.run.algorithm == result.run.algorithm


def test_it_goes_by_name():
    assert as_builder("attention") == SetEncoder("attention")
    assert Networks(actor="pooling").actor == SetEncoder("pooling")
    assert codec.decode(codec.encode(SMALL)) == SMALL


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"mode": "mean"}, "mode of a set encoder is 'mean'"),
        ({"width": 7}, "num_heads is 2 and width is 7"),
        ({"embed_sizes": ()}, "at least one hidden layer"),
        ({"hidden_sizes": (0,)}, "each size must be 1 or more"),
    ],
)
def test_bad_settings(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        SetEncoder(**settings)


def test_it_needs_rows():
    flat = Spec(Box((6,)), Discrete(3), ("a",), 10)
    with pytest.raises(InputError, match="observations of rows x features, but these are Box"):
        Networks(actor="attention").init_actor(KEY, flat)
