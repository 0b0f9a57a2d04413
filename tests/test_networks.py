"""Networks and optimizers, against plain matrix products and Adam written out; and those of a user's own."""

import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexrl
from lexrl import networks, optimizers, perceptrons
from lexrl.distributions import Categorical, Normal, Squashed
from lexrl.errors import InputError
from lexrl.order import parse
from lexrl.perceptrons import MLP
from lexrl.types import Box, Discrete, EnvSpec, Spec, Step

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
    biases = tuple(b + 0.1 * (i + 1) for i, b in enumerate(net.biases))
    return MLP(net.weights, biases, net.activation, net.input_shape, net.output_shape)


answer = jax.jit(lambda net, obs: net(obs))


class TestMLP:
    @pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
    @pytest.mark.parametrize("activation", ["tanh", "relu"])
    @pytest.mark.parametrize("bias", [True, False])
    def test_a_number_is_a_one_hot_vector(self, hidden, activation, bias):
        discrete_observations = with_biases(
            perceptrons.mlp(KEY, Discrete(7), (2, 3), hidden, activation=activation, use_bias=bias)
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
        net = perceptrons.mlp(KEY, Discrete(4), (3,), (), use_bias=False)
        assert net.biases == ()
        np.testing.assert_array_equal(answer(net, jnp.arange(4)), net.weights[0])
        steep = jax.grad(lambda net: net(jnp.int32(2))[1])(net).weights[0]
        np.testing.assert_array_equal(steep, np.eye(4)[2][:, None] * np.eye(3)[1])

    @pytest.mark.parametrize("batch", [(), (5,), (2, 5)])
    def test_shapes_of_observations(self, batch):
        net = with_biases(perceptrons.mlp(KEY, Box((2, 3)), (4,), (5,)))
        obs = jax.random.normal(KEY, (*batch, 2, 3))
        assert answer(net, obs).shape == (*batch, 4)
        expected = by_hand(net, np.asarray(obs, float).reshape(-1, 6)).reshape(*batch, 4)
        np.testing.assert_allclose(answer(net, obs), expected, rtol=1e-4, atol=1e-5)

    def test_a_box_without_axes(self):
        assert perceptrons.mlp(KEY, Box(()), (2,), (3,))(jnp.zeros((6,))).shape == (6, 2)

    def test_sizes_of_new_weights(self):
        net = perceptrons.mlp(KEY, Box((100,)), (50,), (200,), output_scale=0.01)
        assert [weight.shape for weight in net.weights] == [(100, 200), (200, 50)]
        assert [bias.shape for bias in net.biases] == [(200,), (50,)]
        assert all((np.asarray(bias) == 0).all() for bias in net.biases)
        np.testing.assert_allclose(np.std(net.weights[0]), 100**-0.5, rtol=0.05)
        np.testing.assert_allclose(np.std(net.weights[1]), 0.01 * 200**-0.5, rtol=0.05)
        # Only one row of the first layer comes in where states are discrete.
        np.testing.assert_allclose(
            np.std(perceptrons.mlp(KEY, Discrete(100), (50,), (200,)).weights[0]), 1.0, rtol=0.05
        )

    def test_layers_differ(self):
        net = perceptrons.mlp(KEY, Box((4,)), (4,), (4,))
        assert not np.allclose(net.weights[0], net.weights[1])

    def test_every_leaf_is_an_array(self):
        assert all(
            isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(perceptrons.mlp(KEY, Discrete(3), (2,), (4,)))
        )


def spec(action):
    return Spec(Box((3,)), action, ("reward",), 10)


def actor(action, **changes):
    return lexrl.Networks(**({"hidden_sizes": (8,)} | changes)).init_actor(KEY, spec(action))


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
        policy = actor(Box((2,), -2.0, 6.0), squash_output=True, init_std=0.5)(self.obs)
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

    @pytest.mark.parametrize("changes", [{}, {"use_bias": False}, {"hidden_sizes": ()}], ids=str)
    def test_softened_logits_are_a_third(self, changes):
        one = actor(Discrete(4), **changes)
        one = jax.tree.map(lambda leaf: leaf + 0.3, one)  # with biases that are not 0
        np.testing.assert_allclose(3 * one.soften(3.0)(self.obs).logits, one(self.obs).logits, rtol=1e-5)

    @pytest.mark.parametrize("kind", ["attention", "pooling", "pairs"])
    def test_softened_logits_of_sets_are_a_third_too(self, kind):
        given = Spec(Box((5, 3)), Discrete(4), ("reward",), 10)
        one, obs = lexrl.Networks(actor=kind).init_actor(KEY, given), jax.random.normal(KEY, (5, 3))
        one = jax.tree.map(lambda leaf: leaf + 0.3, one)
        np.testing.assert_allclose(3 * one.soften(3.0)(obs).logits, one(obs).logits, rtol=1e-5)

    def test_a_network_of_ones_own_stays_as_it_is(self):
        one = actor(Discrete(3), actor=lambda key, spec: eqx.nn.Linear(3, 3, key=key))
        np.testing.assert_array_equal(one.soften(3.0)(self.obs[0]).logits, one(self.obs[0]).logits)

    def test_softened_continuous_actions_spread_three_times_as_far(self):
        one = actor(Box((2,)))
        np.testing.assert_allclose(one.soften(3.0).log_std, np.log(1.8), rtol=1e-6)
        np.testing.assert_array_equal(one.soften(3.0)(self.obs).mean, one(self.obs).mean)

    @pytest.mark.parametrize("box", [Box((2,)), Box((2,), -1.0), Box((2,), -math.inf, 1.0)])
    def test_squashing_needs_bounds(self, box):
        with pytest.raises(InputError, match="squash_output needs finite bounds"):
            actor(box, squash_output=True)

    @pytest.mark.parametrize("shape", [(), (2, 2)])
    def test_actions_are_vectors(self, shape):
        with pytest.raises(InputError, match="actions that are vectors"):
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


@functools.partial(jax.jit, static_argnums=0)
def step(optimizer, max_grad_norm, *rest):
    return optimizers.step(optimizer, max_grad_norm, *rest)


def adam_written_out(learning_rate):
    """The same transformation as `"adam"`."""
    return optax.chain(optax.scale_by_adam(eps=1e-5), optax.scale_by_learning_rate(learning_rate))


class TestOptimizers:
    @pytest.mark.parametrize("longest", [0.0, 0.5, 10.0])
    def test_adam(self, longest):
        rates = [0.1, 0.01, 0.02]
        here, opt_state = START, optimizers.init("adam", START)
        for i, (gradient, rate) in enumerate(zip(GRADIENTS, rates, strict=True)):
            here, opt_state = step("adam", longest, here, gradient, opt_state, rate)
            truth = adam(flat(START), [flat(g) for g in GRADIENTS[: i + 1]], rates[: i + 1], longest)
            np.testing.assert_allclose(flat(here), truth, rtol=1e-5, atol=1e-6)

    def test_adams_first_step_by_hand(self):
        # m / (1 - 0.9) = g and v / (1 - 0.999) = g^2: the step is g / (|g| + 1e-5), half the rate for g = 1e-5.
        gradient = {"a": jnp.array([4.0, -1e-5]), "b": jnp.array([[0.0]])}
        moved, _ = step("adam", 0.0, START, gradient, optimizers.init("adam", START), 0.1)
        np.testing.assert_allclose(flat(moved), [0.9, -1.95, 0.5], rtol=1e-4)

    def test_plain_steps(self):
        moved, opt_state = step("sgd", 0.0, START, GRADIENTS[0], optimizers.init("sgd", START), 0.1)
        np.testing.assert_allclose(flat(moved), [0.7, -2.0, 0.1], rtol=1e-6)
        moved, _ = step("sgd", 0.0, moved, GRADIENTS[1], opt_state, 1.0)
        np.testing.assert_allclose(flat(moved), [0.6, -1.8, -0.1], rtol=1e-5)

    def test_a_long_gradient_is_shortened(self):
        # Norm 5 becomes 0.5: (3, 0, 4) becomes (0.3, 0, 0.4).
        moved, opt_state = step("sgd", 0.5, START, GRADIENTS[0], optimizers.init("sgd", START), 1.0)
        np.testing.assert_allclose(flat(moved), [0.7, -2.0, 0.1], rtol=1e-6)
        moved, _ = step("sgd", 0.5, START, GRADIENTS[1], opt_state, 1.0)  # norm 0.3 stays
        np.testing.assert_allclose(flat(moved), [0.9, -1.8, 0.3], rtol=1e-6)

    @pytest.mark.parametrize("optimizer", ["adam", "sgd", adam_written_out, optax.sgd(0.1)])
    def test_no_gradient_no_step(self, optimizer):
        nothing = jax.tree.map(jnp.zeros_like, START)
        moved, _ = step(optimizer, 0.5, START, nothing, optimizers.init(optimizer, START), 1.0)
        np.testing.assert_array_equal(flat(moved), flat(START))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=3, max_size=3), st.floats(0.01, 100))
    def test_never_longer_and_in_the_same_direction(self, gradient, longest):
        parameters = jnp.zeros(3)
        gradients = jnp.array(gradient, jnp.float32)
        moved, _ = step("sgd", longest, parameters, gradients, optimizers.init("sgd", parameters), 1.0)
        went, given = -np.asarray(moved, float), np.array(gradient)
        length = np.linalg.norm(given)
        np.testing.assert_allclose(went, given * min(1.0, longest / max(length, 1e-30)), rtol=1e-4, atol=1e-6)

    def test_own_optimizer_is_adam_bit_for_bit_where_it_is_the_same(self):
        ends = []
        for optimizer in ("adam", adam_written_out, functools.partial(optax.adam, eps=1e-5)):
            here, opt_state = START, optimizers.init(optimizer, START)
            for gradient, rate in zip(GRADIENTS, [0.1, 0.01, 0.02], strict=True):
                here, opt_state = step(optimizer, 0.5, here, gradient, opt_state, rate)
            ends.append(flat((here, opt_state)))
        np.testing.assert_array_equal(ends[0], ends[1])
        np.testing.assert_array_equal(ends[0], ends[2])

    def test_a_transformation_has_its_own_learning_rate(self):
        given = optax.sgd(0.1)
        moved, _ = step(given, 0.0, START, GRADIENTS[0], optimizers.init(given, START), 1e6)
        np.testing.assert_allclose(flat(moved), [0.7, -2.0, 0.1], rtol=1e-6)

    def test_by_its_place(self):
        assert lexrl.Networks(optimizer="optax:adamw").optimizer is optax.adamw
        for wrong in ("rms", 3, None, "optax:nothing", "no_such_module:adam"):
            with pytest.raises(InputError, match=r"is not known|There is no"):
                lexrl.LDQN(optimizer=wrong)


class Linear(eqx.Module):
    """A network as a user might write it: it knows one observation only."""

    weight: jax.Array
    activation: Any = jnp.tanh
    outputs: tuple[int, ...] = eqx.field(static=True, default=())

    def __call__(self, obs):
        return self.activation(self.weight @ obs).reshape(self.outputs)


def own_actor(key, spec):
    return Linear(0.1 * jax.random.normal(key, (2, *spec.observation_space.shape)), outputs=(2,))


def own_critic(key, spec):
    return eqx.nn.MLP(spec.observation_space.shape[0], len(spec.objectives), 8, 1, key=key)


def identity(x):
    return x


def own_q(key, spec):
    shape = (len(spec.objectives), spec.action_space.n)
    weight = 0.1 * jax.random.normal(key, (shape[0] * shape[1], *spec.observation_space.shape))
    return Linear(weight, activation=identity, outputs=shape)


def lookup(key, spec):
    """A table, for discrete observations."""
    return eqx.nn.Embedding(spec.observation_space.n, spec.action_space.n, key=key)


class Sign(eqx.Module):
    """The better action says on which side of 0 the observation is; every episode has one step."""

    @property
    def spec(self):
        return EnvSpec(Box((1,), -1.0, 1.0), Discrete(2), ("reward",), 1)

    def reset(self, key):
        obs = jax.random.uniform(key, (1,), minval=-1.0, maxval=1.0)
        return obs, obs

    def step(self, state, action, key):
        right = (state[0] > 0) == (action == 1)
        return Step(state, state, jnp.where(right, 1.0, 0.0)[None], jnp.float32(0))


SIGN = parse("max reward").spec(Sign().spec)
TINY = {"num_envs": 8, "num_steps": 8, "learning_rate": 0.05}
OWN = {
    "actor": lambda: lexrl.A2C(networks=lexrl.Networks(actor=own_actor, hidden_sizes=(4,)), **TINY),
    "critic": lambda: lexrl.A2C(networks=lexrl.Networks(critic=own_critic, hidden_sizes=(4,)), **TINY),
    "q": lambda: lexrl.DQN(network=own_q, buffer_size=1024, learning_starts=64, epsilon=0.3, gradient_steps=4, **TINY),
}


class TestCustom:
    @pytest.mark.parametrize("part", OWN)
    def test_it_learns(self, part):
        result = lexrl.train(OWN[part](), Sign(), "max reward", seeds=2, total_timesteps=8_000, num_log_points=2)
        assert min(greedy_share(OWN[part](), result)) > 0.9

    @pytest.mark.parametrize("batch", [(), (5,), (2, 5)])
    def test_batches(self, batch):
        actor = lexrl.Networks(actor=own_actor).init_actor(KEY, SIGN)
        obs = jax.random.normal(KEY, (*batch, 1))
        expected = np.tanh(np.asarray(obs) @ np.asarray(actor.net.parameters.weight).T)
        np.testing.assert_allclose(actor(obs).logits, expected, rtol=1e-5, atol=1e-6)

    def test_discrete_observations(self):
        spec = Spec(Discrete(5), Discrete(3), ("reward",), 10)
        actor = lexrl.Networks(actor=lookup).init_actor(KEY, spec)
        assert actor(jnp.array([[0, 4]])).logits.shape == (1, 2, 3)

    def test_every_leaf_is_an_array(self):
        critic = lexrl.Networks(critic=own_critic).init_critic(KEY, SIGN, (1,))
        assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(critic))
        assert len(jax.tree.leaves(critic)) == 4

    def test_the_same_builder_is_the_same_program(self):
        one, other = (lexrl.Networks(critic=own_critic, init_std=std) for std in (0.5, 0.6))
        assert jax.tree.structure(one) == jax.tree.structure(other)
        critics = [one.init_critic(jax.random.key(seed), SIGN, (1,)) for seed in (1, 2)]
        assert jax.tree.structure(critics[0]) == jax.tree.structure(critics[1])
        assert hash(jax.tree.structure(critics[0])) == hash(jax.tree.structure(critics[1]))

    @pytest.mark.parametrize(
        ("build", "sentence"),
        [
            (lambda key, spec: None, "must return a callable eqx.Module"),
            (lambda key, spec: eqx.nn.Linear(1, 3, key=key), r"shape \(3,\) for one observation; .* shape \(2,\)"),
            (lambda key, spec: Linear(jnp.ones((2, 1)), outputs=(1, 2)), r"shape \(1, 2\) for one observation"),
            (lambda key, spec: Linear(jnp.ones((2, 1), jnp.int32), outputs=(2,)), "arrays of integers"),
        ],
    )
    def test_what_does_not_fit(self, build, sentence):
        with pytest.raises(InputError, match=sentence):
            lexrl.Networks(actor=build).init_actor(KEY, SIGN)

    def test_by_its_place(self):
        assert lexrl.LDQN(network="equinox.nn:Embedding").network is eqx.nn.Embedding
        with pytest.raises(InputError, match=r"function \(key, spec\) -> eqx.Module, not as 3"):
            lexrl.Networks(actor=3)


def greedy_share(algorithm, result):
    """For every seed, how often the greedy action is right."""
    points = jnp.linspace(-0.95, 0.95, 20)[:, None]
    shares = []
    for seed in range(2):
        state = result.agent(seed)
        actions = [int(algorithm.act(state, obs, KEY, greedy=True)) for obs in points]
        shares.append(
            np.mean([(float(obs[0]) > 0) == (action == 1) for obs, action in zip(points, actions, strict=True)])
        )
    return shares


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


class TestNormalizer:
    def test_mean_and_variance_of_everything_seen(self):
        """In rollouts of one size, as if all were one."""
        rollouts = np.random.default_rng(0).normal([3.0, -1e3], [2.0, 50.0], (6, 7, 4, 2)).astype(np.float32)
        normalizer = perceptrons.Normalizer(jnp.zeros(2), jnp.ones(2))
        for n, obs in enumerate(rollouts, 1):
            normalizer = normalizer.update(jnp.asarray(obs), jnp.float32(1 / n))
        rows = rollouts.reshape(-1, 2).astype(float)
        np.testing.assert_allclose(normalizer.mean, rows.mean(axis=0), rtol=1e-4)
        np.testing.assert_allclose(normalizer.variance, rows.var(axis=0), rtol=1e-3)
        seen = np.asarray(normalizer(jnp.asarray(rollouts.reshape(-1, 2))))
        np.testing.assert_allclose(seen.std(axis=0), 1.0, rtol=1e-3)
        assert np.abs(normalizer(jnp.array([1e9, -1e9]))).tolist() == [10.0, 10.0]

    def test_only_our_own_networks_of_arrays_have_one(self):
        spec = Spec(Box((3,)), Discrete(2), ("reward",), 5)
        nets = networks.Networks(hidden_sizes=(4,))
        own = networks.Networks(actor=lambda key, spec: eqx.nn.Linear(3, 2, key=key), critic_features=jnp.sin)
        discrete = spec._replace(observation_space=Discrete(3))
        assert len(networks.normalizers(nets.init_actor(KEY, spec))) == 1
        assert len(networks.normalizers(nets.init_critic(KEY, spec, (1,)))) == 1
        for network in (
            own.init_actor(KEY, spec),
            own.init_critic(KEY, spec, (1,)),
            nets.init_actor(KEY, discrete),
            networks.Networks(normalize_observations=False).init_actor(KEY, spec),
        ):
            assert networks.normalizers(network) == []

    def test_no_optimizer_moves_it(self):
        decay = networks.Networks(hidden_sizes=(4,), optimizer=functools.partial(optax.adamw, weight_decay=0.5))
        actor = decay.init_actor(KEY, Spec(Box((3,)), Discrete(2), ("reward",), 5))
        gradient = jax.grad(lambda actor: actor(jnp.ones(3)).logits[0])(actor)
        moved, _ = decay.gradient_step(actor, gradient, decay.init_opt_state(actor), 0.1)
        assert eqx.tree_equal(networks.normalizers(moved), networks.normalizers(actor))
        assert not eqx.tree_equal(moved.net.weights, actor.net.weights)

    def test_units_of_observations_do_not_matter(self):
        """After the first rollout, which is collected without knowing them."""
        agents = []
        for unit in (1.0, 2.0**12):
            algorithm = lexrl.PPO(num_envs=4, num_steps=8, networks=networks.Networks(hidden_sizes=(4,)))
            spec = Spec(Box((2,)), Discrete(2), ("reward",), 5)
            state = algorithm.init(spec, KEY)
            obs = unit * jax.random.normal(KEY, (8, 4, 2))
            actor = eqx.tree_at(
                lambda actor: actor.net.normalizer,
                state.agent.actor,
                state.agent.actor.net.normalizer.update(obs, jnp.float32(1)),
            )
            agents.append(actor(obs).logits)
        np.testing.assert_allclose(agents[0], agents[1], rtol=1e-4, atol=1e-7)
