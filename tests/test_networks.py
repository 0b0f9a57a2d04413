"""Networks and the optimiser's step, against plain matrix products and Adam written out."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl import networks
from lexrl.distributions import Categorical, Normal, Squashed
from lexrl.errors import InputError
from lexrl.networks import MLP, Optimiser
from lexrl.types import Box, Discrete, Spec

KEY = jax.random.key(5)


def by_hand(net, x):
    """The network's answer to flat rows, in float64 NumPy."""
    for i, weight in enumerate(net.weights):
        if i > 0:
            x = np.tanh(x) if net.activation == "tanh" else np.maximum(x, 0)
        x = x @ np.asarray(weight, float)
        if net.biases:
            x = x + np.asarray(net.biases[i], float)
    return x


def with_biases(net):
    """New networks have no biases yet; a test must see them."""
    return MLP(
        net.weights, tuple(b + 0.1 * (i + 1) for i, b in enumerate(net.biases)), net.activation, net.seen, net.shape
    )


answer = jax.jit(lambda net, obs: net(obs))


class TestMLP:
    @pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
    @pytest.mark.parametrize("activation", ["tanh", "relu"])
    @pytest.mark.parametrize("bias", [True, False])
    def test_a_number_is_a_one_hot_vector(self, hidden, activation, bias):
        discrete_observations = with_biases(
            networks.mlp(KEY, Discrete(7), (2, 3), hidden, activation=activation, use_bias=bias)
        )
        hot = MLP(discrete_observations.weights, discrete_observations.biases, activation, (7,), (2, 3))
        states = jnp.array([[0, 6], [3, 3]])
        assert answer(discrete_observations, states).shape == (2, 2, 2, 3)
        np.testing.assert_allclose(
            answer(discrete_observations, states), answer(hot, jax.nn.one_hot(states, 7)), rtol=1e-5, atol=1e-6
        )
        expected = by_hand(discrete_observations, np.eye(7)[np.asarray(states).ravel()]).reshape(2, 2, 2, 3)
        np.testing.assert_allclose(answer(discrete_observations, states), expected, rtol=1e-4, atol=1e-5)

    def test_without_layers_and_biases_it_is_a_table(self):
        net = networks.mlp(KEY, Discrete(4), (3,), (), use_bias=False)
        assert net.biases == ()
        np.testing.assert_array_equal(answer(net, jnp.arange(4)), net.weights[0])
        steep = jax.grad(lambda net: net(jnp.int32(2))[1])(net).weights[0]
        np.testing.assert_array_equal(steep, np.eye(4)[2][:, None] * np.eye(3)[1])

    @pytest.mark.parametrize("batch", [(), (5,), (2, 5)])
    def test_shapes_of_observations(self, batch):
        net = with_biases(networks.mlp(KEY, Box((2, 3)), (4,), (5,)))
        obs = jax.random.normal(KEY, (*batch, 2, 3))
        assert answer(net, obs).shape == (*batch, 4)
        expected = by_hand(net, np.asarray(obs, float).reshape(-1, 6)).reshape(*batch, 4)
        np.testing.assert_allclose(answer(net, obs), expected, rtol=1e-4, atol=1e-5)

    def test_a_box_without_axes(self):
        assert networks.mlp(KEY, Box(()), (2,), (3,))(jnp.zeros((6,))).shape == (6, 2)

    def test_sizes_of_new_weights(self):
        net = networks.mlp(KEY, Box((100,)), (50,), (200,), last=0.01)
        assert [weight.shape for weight in net.weights] == [(100, 200), (200, 50)]
        assert [bias.shape for bias in net.biases] == [(200,), (50,)]
        assert all((np.asarray(bias) == 0).all() for bias in net.biases)
        np.testing.assert_allclose(np.std(net.weights[0]), 100**-0.5, rtol=0.05)
        np.testing.assert_allclose(np.std(net.weights[1]), 0.01 * 200**-0.5, rtol=0.05)
        # Only one row of the first layer comes in where states are numbered.
        np.testing.assert_allclose(np.std(networks.mlp(KEY, Discrete(100), (50,), (200,)).weights[0]), 1.0, rtol=0.05)

    def test_layers_differ(self):
        net = networks.mlp(KEY, Box((4,)), (4,), (4,))
        assert not np.allclose(net.weights[0], net.weights[1])

    def test_every_leaf_is_an_array(self):
        assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(networks.mlp(KEY, Discrete(3), (2,), (4,))))


def spec(action):
    return Spec(Box((3,)), action, ("reward",), 10)


def actor(action, **changes):
    given = {"activation": "tanh", "use_bias": True, "squash_output": False, "spread": 0.6}
    return networks.actor(KEY, spec(action), (8,), **(given | changes))


class TestActor:
    obs = jax.random.normal(KEY, (6, 3))

    def test_discrete(self):
        policy = actor(Discrete(4))(self.obs)
        assert isinstance(policy, Categorical)
        assert policy.logits.shape == (6, 4)
        np.testing.assert_allclose(policy.entropy(), np.log(4), atol=1e-3)  # nearly uniform at first

    def test_continuous(self):
        policy = actor(Box((2,), -1.0, 1.0))(self.obs)
        assert isinstance(policy, Normal)
        assert policy.mean.shape == policy.log_std.shape == (6, 2)
        np.testing.assert_allclose(policy.log_std, np.log(0.6), rtol=1e-6)
        assert np.abs(policy.mean).max() < 0.1

    def test_squashed(self):
        policy = actor(Box((2,), -2.0, 6.0), squash_output=True, spread=0.5)(self.obs)
        assert isinstance(policy, Squashed)
        assert np.all(policy.low == -2.0)
        assert np.all(policy.high == 6.0)
        np.testing.assert_allclose(policy.mode(), 2.0, atol=0.3)
        np.testing.assert_allclose(policy.normal.log_std, np.log(0.5), rtol=1e-6)
        assert (np.abs(policy.sample(KEY) - 2.0) < 4.0).all()

    def test_discrete_actions_are_never_squashed(self):
        assert isinstance(actor(Discrete(3), squash_output=True)(self.obs), Categorical)

    def test_the_spread_is_learned(self):
        one = actor(Box((2,)))
        steep = jax.grad(lambda one: one(self.obs).entropy().sum())(one)
        np.testing.assert_allclose(steep.log_std, [6.0, 6.0])

    @pytest.mark.parametrize("box", [Box((2,)), Box((2,), -1.0), Box((2,), -math.inf, 1.0)])
    def test_squashing_needs_bounds(self, box):
        with pytest.raises(InputError, match="squashing needs finite bounds"):
            actor(box, squash_output=True)

    @pytest.mark.parametrize("shape", [(), (2, 2)])
    def test_actions_are_vectors(self, shape):
        with pytest.raises(InputError, match="answers with a vector"):
            actor(Box(shape, -1.0, 1.0))


START = {"a": jnp.array([1.0, -2.0]), "b": jnp.array([[0.5]])}
GRADIENTS = [
    {"a": jnp.array([3.0, 0.0]), "b": jnp.array([[4.0]])},  # length 5
    {"a": jnp.array([0.1, -0.2]), "b": jnp.array([[0.2]])},  # length 0.3
    {"a": jnp.array([-60.0, 20.0]), "b": jnp.array([[90.0]])},  # length 110
]


def adam(parameters, gradients, rates, longest):
    """Adam with the gradient cut to a length, written out for flat float64 vectors."""
    x = np.array(parameters, float)
    m, v = np.zeros_like(x), np.zeros_like(x)
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        g = np.array(g, float)
        length = np.sqrt(np.sum(g**2))
        if 0 < longest < length:
            g = g * longest / length
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-5)
    return x


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


step = jax.jit(lambda optimiser, *rest: optimiser.step(*rest))


class TestOptimiser:
    @pytest.mark.parametrize("longest", [0.0, 0.5, 10.0])
    def test_adam(self, longest):
        optimiser, rates = Optimiser(longest=longest), [0.1, 0.01, 0.02]
        here, opt_state = START, Optimiser(longest=longest).start(START)
        for i, (gradient, rate) in enumerate(zip(GRADIENTS, rates, strict=True)):
            here, opt_state = step(optimiser, here, gradient, opt_state, rate)
            truth = adam(flat(START), [flat(g) for g in GRADIENTS[: i + 1]], rates[: i + 1], longest)
            np.testing.assert_allclose(flat(here), truth, rtol=1e-5, atol=1e-6)

    def test_adams_first_step_by_hand(self):
        # m / (1 - 0.9) = g and v / (1 - 0.999) = g^2: the step is g / (|g| + 1e-5), half the rate for g = 1e-5.
        optimiser = Optimiser(longest=0.0)
        gradient = {"a": jnp.array([4.0, -1e-5]), "b": jnp.array([[0.0]])}
        moved, _ = step(optimiser, START, gradient, optimiser.start(START), 0.1)
        np.testing.assert_allclose(flat(moved), [0.9, -1.95, 0.5], rtol=1e-4)

    def test_plain_steps(self):
        optimiser = Optimiser("sgd", longest=0.0)
        moved, opt_state = step(optimiser, START, GRADIENTS[0], optimiser.start(START), 0.1)
        np.testing.assert_allclose(flat(moved), [0.7, -2.0, 0.1], rtol=1e-6)
        moved, _ = step(optimiser, moved, GRADIENTS[1], opt_state, 1.0)
        np.testing.assert_allclose(flat(moved), [0.6, -1.8, -0.1], rtol=1e-5)

    def test_a_long_gradient_is_shortened(self):
        optimiser = Optimiser("sgd", longest=0.5)  # length 5 becomes 0.5: (3, 0, 4) becomes (0.3, 0, 0.4)
        moved, opt_state = step(optimiser, START, GRADIENTS[0], optimiser.start(START), 1.0)
        np.testing.assert_allclose(flat(moved), [0.7, -2.0, 0.1], rtol=1e-6)
        moved, _ = step(optimiser, START, GRADIENTS[1], opt_state, 1.0)  # length 0.3 stays
        np.testing.assert_allclose(flat(moved), [0.9, -1.8, 0.3], rtol=1e-6)

    @pytest.mark.parametrize("method", ["adam", "sgd"])
    def test_no_gradient_no_step(self, method):
        optimiser = Optimiser(method)
        nothing = jax.tree.map(jnp.zeros_like, START)
        moved, _ = step(optimiser, START, nothing, optimiser.start(START), 1.0)
        np.testing.assert_array_equal(flat(moved), flat(START))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=3, max_size=3), st.floats(0.01, 100))
    def test_never_longer_and_in_the_same_direction(self, gradient, longest):
        optimiser, parameters = Optimiser("sgd", longest=longest), jnp.zeros(3)
        moved, _ = step(optimiser, parameters, jnp.array(gradient, jnp.float32), optimiser.start(parameters), 1.0)
        went, given = -np.asarray(moved, float), np.array(gradient)
        length = np.linalg.norm(given)
        np.testing.assert_allclose(went, given * min(1.0, longest / max(length, 1e-30)), rtol=1e-4, atol=1e-6)


SIZES = [1, 2, 3, 6, 12, 30, 64, 97, 100, 210, 1000, 1024, 4096, 30030, 65535]


shuffled = jax.jit(networks.shuffled, static_argnums=(1, 2))


class TestShuffled:
    @pytest.mark.parametrize("size", SIZES)
    def test_a_permutation(self, size):
        for seed in range(3):
            order = np.asarray(shuffled(jax.random.key(seed), size, 1))
            assert order.shape == (1, size)
            np.testing.assert_array_equal(np.sort(order[0]), np.arange(size))

    @settings(max_examples=15, deadline=None)
    @given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 2**32 - 1))
    def test_equal_parts(self, length, parts, seed):
        order = np.asarray(shuffled(jax.random.key(seed), length * parts, parts))
        assert order.shape == (parts, length)
        assert sorted(order.ravel().tolist()) == list(range(length * parts))

    def test_keys_give_orders(self):
        orders = {np.asarray(shuffled(jax.random.key(seed), 1024, 4)).tobytes() for seed in range(20)}
        assert len(orders) == 20

    def test_every_number_comes_first_sometimes(self):
        first = jax.vmap(lambda key: shuffled(key, 8, 2))(jax.random.split(KEY, 400))[:, 0, 0]
        counts = np.bincount(first, minlength=8)
        assert (counts > 20).all()

    @pytest.mark.parametrize(("size", "parts"), [(1024, 4), (256, 4), (120, 2)])
    def test_each_part_takes_from_the_whole_rollout(self, size, parts):
        """As its docstring says: in none is an eighth of the rollout's time missing."""
        orders = jax.vmap(lambda key: shuffled(key, size, parts))(jax.random.split(KEY, 300))
        eighths = np.asarray(orders) * 8 // size
        missing = [len(set(range(8)) - set(part.tolist())) for order in eighths for part in order]
        assert max(missing) == 0, f"{np.mean(np.array(missing) > 0):.0%} of the parts leave out an eighth or more"

    def test_too_long(self):
        with pytest.raises(InputError, match="65536 transitions is too long to shuffle"):
            networks.shuffled(KEY, 2**16, 4)
