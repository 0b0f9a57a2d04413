"""Which way algorithms move the policy: against finite differences in float64, and against the exact gradient of J.

A plain gradient step of size 1, not cut off, moves the actor by the gradient itself; so what is checked is the code
that learns, not a copy of it. The objectives it is checked against are written out in NumPy.
"""

import functools
import itertools

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax as log_softmax_of

import lexrl
from lexrl.algorithms import a2c, paper_lppo, ppo
from lexrl.algorithms import actor_critic as ac
from lexrl.types import Box, Discrete, Spec, Transition

B, M = 12, 3
BONUS = 0.3
PLAIN = {"optimizer": "sgd", "max_grad_norm": 0.0, "normalize_observations": False}
KEY = jax.random.key(0)


def vector(actor):
    return jax.flatten_util.ravel_pytree(actor)


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


SPECS = {
    "discrete": Spec(Box((2,)), Discrete(3), ("a", "b", "c"), 10),
    "continuous": Spec(Box((2,)), Box((2,), -1.0, 1.0), ("a", "b", "c"), 10),
    "discrete_observations": Spec(Discrete(4), Discrete(3), ("a", "b", "c"), 10),
}


@functools.cache
def evidence(kind):
    """An actor far from uniform, rows from another policy near it, and advantages; all in float64."""
    rng, spec = np.random.default_rng(7), SPECS[kind]
    networks = lexrl.Networks(hidden_sizes=(3,), **PLAIN)
    learner = ac.init_agent(networks, spec, KEY, 1)
    random = lambda scale: lambda leaf: jnp.asarray(scale * rng.normal(size=leaf.shape))  # noqa: E731
    actor = jax.tree.map(random(0.5), learner.actor)
    older = jax.tree.map(
        lambda leaf, move: leaf + move, actor, jax.tree.map(random(0.15 if kind == "continuous" else 0.4), actor)
    )
    obs = (
        jnp.asarray(rng.integers(0, 4, B)) if kind == "discrete_observations" else jnp.asarray(rng.normal(size=(B, 2)))
    )
    action = jnp.asarray(rng.normal(size=(B, 2)) if kind == "continuous" else rng.integers(0, 3, B))
    policy = older(obs)
    seen = ac.Batch(
        obs=obs, action=action, policy=policy, log_prob=policy.log_prob(action), value=(),
        advantage=jnp.asarray(rng.normal(size=(B, M))), target=jnp.zeros((B, M)), episode_stats=(),
    )  # fmt: skip
    learner = jax.tree.map(lambda leaf: leaf.astype(float) if leaf.dtype == jnp.float32 else leaf, learner)
    return networks, learner._replace(actor=actor, num_updates=jnp.int32(1)), seen


# The policy and the objectives once more, in NumPy, from a flat vector of parameters.


def shaped(theta, like):
    """A flat vector as a tree of NumPy arrays."""
    leaves, kind = jax.tree.flatten(like)
    parts = np.split(np.asarray(theta), np.cumsum([leaf.size for leaf in leaves])[:-1])
    return jax.tree.unflatten(kind, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])


class Plain:
    """What a policy with parameters `theta` says at the rows of the evidence."""

    def __init__(self, theta, like, seen):
        actor = shaped(theta, like)
        obs = np.asarray(seen.obs)
        x = actor.net.weights[0][obs] if obs.dtype.kind in "iu" else obs @ actor.net.weights[0]
        out = np.tanh(x + actor.net.biases[0]) @ actor.net.weights[1] + actor.net.biases[1]
        self.action, self.rows = np.asarray(seen.action), np.arange(B)
        if actor.log_std is None:
            self.logs = out - np.log(np.exp(out).sum(axis=1, keepdims=True))
        else:
            self.logs, self.mean, self.std = None, out, np.exp(actor.log_std)

    def log_prob(self):
        if self.logs is not None:
            return self.logs[self.rows, self.action]
        away = (self.action - self.mean) / self.std
        return np.sum(-(away**2) / 2 - np.log(self.std * np.sqrt(2 * np.pi)), axis=1)

    def entropy(self):
        if self.logs is not None:
            return -np.sum(np.exp(self.logs) * self.logs, axis=1)
        return np.full(B, np.sum(np.log(self.std * np.sqrt(2 * np.pi * np.e))))

    def kl_from(self, older):
        """KL(this || older)."""
        if self.logs is not None:
            return np.sum(np.exp(self.logs) * (self.logs - log_softmax_of(older.logits, axis=1)), axis=1)
        mean, std = np.asarray(older.mean), np.exp(older.log_std)
        return np.sum(np.log(std / self.std) + (self.std**2 + (mean - self.mean) ** 2) / (2 * std**2) - 0.5, axis=1)


def central(function, theta, step=1e-5):
    theta = np.asarray(theta, float)
    return np.stack(
        [(function(theta + step * unit) - function(theta - step * unit)) / (2 * step) for unit in np.eye(len(theta))],
        -1,
    )


def differences(objective, actor, seen):
    """The gradient of `objective(policy)` by central differences."""
    seen = jax.tree.map(np.asarray, seen)
    return central(lambda at: objective(Plain(at, actor, seen)), vector(actor)[0])


improve_a2c, improve_ppo, advantages = jax.jit(a2c.step), jax.jit(ppo.epochs), jax.jit(ac.advantages)
KINDS = pytest.mark.parametrize("kind", SPECS)


@pytest.mark.usefixtures("double")
class TestFiniteDifferences:
    @KINDS
    def test_a2c(self, kind):
        networks, learner, seen = evidence(kind)
        advantage = np.asarray(seen.advantage[:, 0])

        def objective(policy):
            return np.mean(policy.log_prob() * advantage) + BONUS * np.mean(policy.entropy())

        settings = lexrl.A2C(learning_rate=1.0, ent_coef=BONUS, networks=networks)
        after, metrics = improve_a2c(settings, learner, seen, jnp.asarray(advantage))
        moved = vector(after.actor)[0] - vector(learner.actor)[0]
        np.testing.assert_allclose(moved, differences(objective, learner.actor, seen), rtol=1e-6, atol=1e-8)
        here = Plain(vector(learner.actor)[0], learner.actor, seen)
        assert np.isclose(metrics["surrogate"], np.mean(here.log_prob() * advantage))

    @KINDS
    @pytest.mark.parametrize("surrogate", ["clip", "kl_penalty"])
    def test_ppo(self, kind, surrogate):
        networks, learner, seen = evidence(kind)
        advantage, kappa = np.asarray(seen.advantage[:, 0]), 0.7

        def objective(policy):
            ratio = np.exp(policy.log_prob() - np.asarray(seen.log_prob))
            if surrogate == "clip":
                gain = np.mean(np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage))
            else:
                gain = np.mean(ratio * advantage) - kappa * np.mean(policy.kl_from(seen.policy))
            return gain + BONUS * np.mean(policy.entropy())

        theta, _ = vector(learner.actor)
        ratio = np.exp(Plain(theta, learner.actor, seen).log_prob() - np.asarray(seen.log_prob))
        assert (ratio > 1.2).any()  # some are clipped, at both ends, and none is at an edge
        assert (ratio < 0.8).any()
        assert ((ratio > 0.8) & (ratio < 1.2)).any()
        assert min(np.abs(ratio - 0.8).min(), np.abs(ratio - 1.2).min()) > 1e-3

        settings = lexrl.PPO(
            num_envs=1,
            num_steps=B,
            num_epochs=1,
            num_minibatches=1,
            learning_rate=1.0,
            surrogate=surrogate,
            ent_coef=BONUS,
            networks=networks,
        )
        after, divergence, _ = improve_ppo(settings, learner, seen, jnp.asarray(advantage), jnp.asarray(kappa), KEY)
        moved = vector(after.actor)[0] - theta
        np.testing.assert_allclose(moved, differences(objective, learner.actor, seen), rtol=1e-6, atol=1e-8)
        there, _ = vector(after.actor)
        assert np.isclose(divergence, np.mean(Plain(there, learner.actor, seen).kl_from(seen.policy)))

    @KINDS
    def test_lppos_gains(self, kind):
        """`E[rho A_i]` for every objective, as the second order differentiates it."""
        _, learner, seen = evidence(kind)

        def objectives(policy):
            ratio = np.exp(policy.log_prob() - np.asarray(seen.log_prob))
            return np.mean(ratio[:, None] * np.asarray(seen.advantage), axis=0)

        theta, unravel = vector(learner.actor)
        got = jax.jit(jax.jacobian(lambda at: paper_lppo.surrogates(unravel(at), seen)))(theta)
        expected = differences(objectives, learner.actor, seen)
        assert got.shape == expected.shape == (M, theta.size)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)

    def test_at_the_old_policy_all_surrogates_agree(self):
        """There the ratio is 1, and each has the policy gradient."""
        networks, learner, seen = evidence("discrete")
        policy = learner.actor(seen.obs)
        seen = seen._replace(policy=policy, log_prob=policy.log_prob(seen.action))
        advantage = seen.advantage[:, 0]
        steps = [improve_a2c(lexrl.A2C(learning_rate=1.0, networks=networks), learner, seen, advantage)[0]]
        for surrogate in ("clip", "kl_penalty"):
            settings = lexrl.PPO(
                num_envs=1,
                num_steps=B,
                num_epochs=1,
                num_minibatches=1,
                learning_rate=1.0,
                surrogate=surrogate,
                networks=networks,
            )
            steps.append(improve_ppo(settings, learner, seen, advantage, jnp.asarray(1.0), KEY)[0])
        one, *others = (vector(after.actor)[0] for after in steps)
        for other in others:
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)

    def test_the_critic(self):
        """Half the mean squared error, summed over the objectives."""
        networks, learner, seen = evidence("discrete")
        seen = seen._replace(target=seen.advantage)
        theta, _ = vector(learner.critic)

        def loss(at):
            net = shaped(at, learner.critic)
            out = np.tanh(np.asarray(seen.obs) @ net.weights[0] + net.biases[0]) @ net.weights[1] + net.biases[1]
            return 0.5 * np.mean((out - np.asarray(seen.target)) ** 2, axis=0).sum()

        after, losses = ac.step_critic(networks, learner, seen, 1.0)
        np.testing.assert_allclose(vector(after.critic)[0] - theta, -central(loss, theta), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(losses.sum(), loss(np.asarray(theta)), rtol=1e-9)


# A process with three states, two actions and two objectives, each with its own discount; J is a formula.

CHANGE = np.array([[[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]], [[0.3, 0.3, 0.4], [0.9, 0.1, 0.0]],
                   [[0.2, 0.0, 0.8], [0.5, 0.25, 0.25]]])  # fmt: skip
PAY = np.array([[[1.0, -1.0], [0.5, 2.0], [0.0, 1.5]], [[0.0, 3.0], [-1.0, 1.0], [2.0, 0.0]]])
START = np.array([0.6, 0.3, 0.1])
DISCOUNT = np.array([0.9, 0.6])
TABLE = np.array([[0.4, -0.3], [0.1, 0.8], [-0.5, 0.2]])


def exactly(table):
    """Policy `[S, A]`, `J [M]`, advantages `[M, S, A]`, discounted visits `[M, S]`."""
    pi = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
    walk = np.einsum("sa,sat->st", pi, CHANGE)
    value = np.stack(
        [np.linalg.solve(np.eye(3) - g * walk, (pi * r).sum(axis=1)) for g, r in zip(DISCOUNT, PAY, strict=True)]
    )
    q = PAY + DISCOUNT[:, None, None] * np.einsum("sat,mt->msa", CHANGE, value)
    visits = np.stack([np.linalg.solve(np.eye(3) - g * walk.T, START) for g in DISCOUNT])
    return pi, value @ START, q - value[:, :, None], visits


def table_actor(table):
    """The same policy as the library's: a network without layers and biases on discrete states."""
    tables = lexrl.Networks(hidden_sizes=(), use_bias=False)
    actor = tables.init_actor(KEY, Spec(Discrete(3), Discrete(2), ("a",), 10))
    return eqx.tree_at(lambda one: one.net.weights, actor, (jnp.asarray(table),))


@pytest.mark.usefixtures("double")
class TestPolicyGradient:
    """`grad J = sum_s d(s) sum_a pi(a|s) grad log pi(a|s) A(s, a)`, with d the discounted visits."""

    STATES, ACTIONS = (np.repeat(np.arange(3), 2), np.tile(np.arange(2), 3))

    def evidence(self):
        """Every state and action once; its chance times its advantage stands for its share of the data."""
        pi, _, advantage, visits = exactly(TABLE)
        share = 6 * np.einsum("ms,sa,msa->sam", visits, pi, advantage).reshape(6, 2)
        actor = table_actor(TABLE)
        policy = actor(jnp.asarray(self.STATES))
        return actor, ac.Batch(
            obs=jnp.asarray(self.STATES), action=jnp.asarray(self.ACTIONS), policy=policy,
            log_prob=policy.log_prob(jnp.asarray(self.ACTIONS)), value=(), advantage=jnp.asarray(share),
            target=jnp.zeros((6, 2)), episode_stats=(),
        )  # fmt: skip

    def gradients(self):
        return central(lambda flat: exactly(flat.reshape(3, 2))[1], TABLE.ravel())

    @pytest.mark.parametrize("objective", [0, 1])
    def test_a2c(self, objective):
        actor, seen = self.evidence()
        networks = lexrl.Networks(hidden_sizes=(), use_bias=False, **PLAIN)
        learner = ac.init_agent(networks, Spec(Discrete(3), Discrete(2), ("a", "b"), 10), KEY, 1)
        learner = learner._replace(actor=actor, num_updates=jnp.int32(1))
        settings = lexrl.A2C(learning_rate=1.0, networks=networks)
        after, _ = improve_a2c(settings, learner, seen, seen.advantage[:, objective])
        moved = vector(after.actor)[0] - vector(actor)[0]
        np.testing.assert_allclose(moved, self.gradients()[objective], rtol=1e-6, atol=1e-8)

    def test_lppo(self):
        actor, seen = self.evidence()
        theta, unravel = vector(actor)
        got = jax.jit(jax.jacobian(lambda at: paper_lppo.surrogates(unravel(at), seen)))(theta)
        np.testing.assert_allclose(got, self.gradients(), rtol=1e-6, atol=1e-8)


# Whole updates. Worlds are so many that each course of three actions comes as often as it is likely: the rollout is no
# sample but the distribution itself, and an update must move along the exact gradient of the objectives' sum.

LENGTH = 3
NEXT = np.array([[1, 2], [3, 4], [4, 3], [0, 1], [2, 0]])
PAID = np.array([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 1.0], [-1.0, 0.0]], [[0.5, 2.0], [2.0, -2.0]],
                 [[0.0, 1.0], [4.0, 0.0]], [[1.0, 1.0], [-2.0, 3.0]]])  # fmt: skip
"""Successors `[S, A]` and rewards `[S, A, M]`; all begin in state 0, and the task ends after three steps."""
QUARTERS = np.array([3, 1, 2, 1, 3])
"""Chances of action 0, by state, in quarters."""


def num_steps():
    """All courses, each as often as it is likely: 4^3 worlds."""
    worlds = []
    for actions in itertools.product(range(2), repeat=LENGTH):
        state, steps, times = 0, [], 1
        for action in actions:
            times *= QUARTERS[state] if action == 0 else 4 - QUARTERS[state]
            steps.append((state, action, PAID[state, action], NEXT[state, action]))
            state = NEXT[state, action]
        worlds += [steps] * times
    assert len(worlds) == 4**LENGTH
    obs, action, reward, following = (
        np.stack([np.array([step[i] for step in world]) for world in worlds], axis=1) for i in range(4)
    )
    last = np.zeros(obs.shape, bool)
    last[-1] = True
    return Transition(
        obs=jnp.asarray(obs, jnp.int32), action=jnp.asarray(action, jnp.int32), reward=jnp.asarray(reward, jnp.float32),
        discount=jnp.asarray(1.0 - last, jnp.float32), next_obs=jnp.asarray(following, jnp.int32),
        last=jnp.asarray(last),
    )  # fmt: skip


LOGITS = np.log(np.stack([QUARTERS, 4 - QUARTERS], axis=1))


def returns_of(table, gamma):
    """`J [M]` by enumeration of the courses."""
    pi = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
    total = np.zeros(2)
    for actions in itertools.product(range(2), repeat=LENGTH):
        state, chance, earned = 0, 1.0, np.zeros(2)
        for t, action in enumerate(actions):
            chance *= pi[state, action]
            earned = earned + gamma**t * PAID[state, action]
            state = NEXT[state, action]
        total += chance * earned
    return total


def exact_gradient(gamma):
    """`[M, S * A]`"""
    return central(lambda flat: returns_of(flat.reshape(5, 2), gamma), LOGITS.ravel())


def ready(algorithm, objectives):
    """A learner with the policy the rollout was collected with, and a critic that knows nothing in particular."""
    state = algorithm.init(Spec(Discrete(5), Discrete(2), ("a", "b")[:objectives], LENGTH), KEY)
    actor = eqx.tree_at(lambda one: one.net.weights, state.agent.actor, (jnp.asarray(LOGITS, jnp.float32),))
    return state._replace(agent=state.agent._replace(actor=actor))


update = jax.jit(lambda algorithm, state, rollout: algorithm.update(state, rollout, KEY)[0])


def moves(algorithm, state, rollout):
    """How far an update of rate 1 moves the table."""
    after = update(algorithm, state, rollout)
    return np.asarray(vector(after.agent.actor)[0] - vector(state.agent.actor)[0], float)


def along(mine, theirs):
    """The cosine between two directions."""
    return mine @ theirs / np.linalg.norm(mine) / np.linalg.norm(theirs)


TABLES = lexrl.Networks(hidden_sizes=(), use_bias=False, **PLAIN)
SHARED = {"num_envs": 4**LENGTH, "num_steps": LENGTH, "learning_rate": 1.0, "networks": TABLES, "gae_lambda": 1.0}
ONCE = {"num_epochs": 1, "num_minibatches": 1}
LEARNERS = {
    "PaperLA2C": lambda **changes: lexrl.PaperLA2C(**(SHARED | changes)),
    "PaperLPPO clipped": lambda **changes: lexrl.PaperLPPO(**(SHARED | ONCE | changes)),
    "PaperLPPO penalised": lambda **changes: lexrl.PaperLPPO(**(SHARED | ONCE | {"surrogate": "kl_penalty"} | changes)),
}
SECOND_ORDER = {
    "PaperLA2C": lambda **changes: lexrl.LA2CSecondOrder(**(SHARED | changes)),
    "PaperLPPO clipped": lambda **changes: lexrl.LPPOSecondOrder(**(SHARED | ONCE | changes)),
}
EACH = pytest.mark.parametrize("name", LEARNERS)


class TestWholeUpdates:
    @EACH
    def test_along_the_weighted_sum_of_the_exact_gradients(self, name):
        """Discounted, with the steps weighted; multipliers and rates as given."""
        gamma = np.array([0.5, 0.9])
        algorithm = LEARNERS[name](
            gamma=(0.5, 0.9), discounted_states=True, multipliers=lexrl.DualAscent(beta=(1.0, 0.5))
        )
        state = ready(algorithm, 2)
        state = state._replace(multipliers=state.multipliers._replace(value=jnp.array([3.0, 0.0])))
        expected = np.array([1.0 + 3.0 * 0.5, 0.5]) @ exact_gradient(gamma)
        mine = moves(algorithm, state, num_steps())
        assert along(mine, expected) > 1 - 1e-5
        # The surrogate is a mean over steps, in units of the deviation of the combined advantage: only the length is
        # its own, and the same for all objectives.
        ratio = np.linalg.norm(mine) / np.linalg.norm(expected)
        assert 0.01 < ratio < 10

    @pytest.mark.parametrize("name", ["PaperLA2C", "PaperLPPO clipped"])
    def test_without_weighting_only_undiscounted_sums_are_exact(self, name):
        one = LEARNERS[name](gamma=1.0)
        assert along(moves(one, ready(one, 2), num_steps()), exact_gradient(np.ones(2)).sum(axis=0)) > 1 - 1e-5
        half = LEARNERS[name](gamma=0.5)
        assert along(moves(half, ready(half, 2), num_steps()), exact_gradient(np.full(2, 0.5)).sum(axis=0)) < 1 - 1e-3

    @pytest.mark.parametrize("algorithm", [lexrl.A2C(**SHARED, gamma=1.0), lexrl.PPO(**SHARED, **ONCE, gamma=1.0)])
    def test_one_objective(self, algorithm):
        seen = num_steps()
        mine = moves(algorithm, ready(algorithm, 1), seen._replace(reward=seen.reward[..., :1]))
        assert along(mine, exact_gradient(np.ones(2))[0]) > 1 - 1e-5

    @pytest.mark.parametrize("name", ["PaperLA2C", "PaperLPPO clipped"])
    @pytest.mark.parametrize("multiplier", [pytest.param(0.0, marks=pytest.mark.slow), 9.0])
    def test_the_second_order_counts_as_much_as_it_should(self, name, multiplier):
        """Dividing the weights by their sum must not change what the second order counts beside the first.

        The update must go along `sum_i beta_i grad L_i = sum_i c_i grad K_i + sum_{i>0} beta_i H_0 nu_0`.
        """
        algorithm = SECOND_ORDER[name](gamma=1.0, multipliers=lexrl.DualAscent(beta=(1.0, 0.5)))
        state, seen = ready(algorithm, 2), num_steps()
        nu = np.zeros((2, 10))
        nu[0] = np.linspace(-0.4, 0.5, 10)
        directions = eqx.tree_at(
            lambda one: one.net.weights, state.nu, (jnp.asarray(nu.reshape(2, 5, 2), jnp.float32),)
        )

        def with_nu(nu):
            multipliers = state.multipliers._replace(value=jnp.array([multiplier, 0.0]))
            return state._replace(multipliers=multipliers, nu=nu)

        straight = moves(algorithm, with_nu(state.nu), seen)
        bent = moves(algorithm, with_nu(directions), seen) - straight

        # The same surrogates on the same advantages, whose Hessians differ between the two algorithms.
        _, evidence = advantages(TABLES, state.agent, seen, 1.0, 1.0)
        theta, unravel = vector(state.agent.actor)

        def gain(at):
            logs = unravel(at)(evidence.obs).log_prob(evidence.action)
            return jnp.mean(
                (logs if name == "PaperLA2C" else jnp.exp(logs - evidence.log_prob)) * evidence.advantage[:, 0]
            )

        first = np.array([1.0 + multiplier * 0.5, 0.5]) @ exact_gradient(np.ones(2)) / LENGTH
        second = 0.5 * np.asarray(jax.jit(jax.hessian(gain))(theta) @ nu[0], float)
        assert along(straight, first) > 1 - 1e-5
        assert along(bent, second) > 1 - 1e-4
        np.testing.assert_allclose(
            np.linalg.norm(bent) / np.linalg.norm(straight), np.linalg.norm(second) / np.linalg.norm(first), rtol=1e-3
        )

    @pytest.mark.parametrize("squash", [False, True])
    @pytest.mark.parametrize("algorithm", [lexrl.A2C, lexrl.PPO, lexrl.PaperLA2C, lexrl.PaperLPPO])
    def test_continuous_actions_free_or_squashed(self, algorithm, squash):
        """Only shapes: nothing is compiled."""
        one = algorithm(num_envs=2, num_steps=4, networks=lexrl.Networks(hidden_sizes=(3,), squash_output=squash))
        state = jax.eval_shape(lambda: one.init(Spec(Box((3,)), Box((2,), -1.0, 2.0), ("a",), 9), KEY))
        shapes = ((4, 2, 3), (4, 2, 2), (4, 2, 1), (4, 2), (4, 2, 3))
        seen = Transition(
            *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes), jax.ShapeDtypeStruct((4, 2), bool)
        )
        after, _ = jax.eval_shape(lambda state, seen: one.update(state, seen, KEY), state, seen)
        assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), after) == jax.tree.map(
            lambda leaf: (leaf.shape, leaf.dtype), state
        )
