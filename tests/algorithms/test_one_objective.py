"""With one objective the lexicographic algorithms are the ordinary ones, to the last bit; and an objective that is
there twice changes nothing."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.runs import plan
from lexrl.runs.pipeline import snapshots
from lexrl.types import Discrete, Spec, Transition

# Short episodes: many ends, of both kinds, in few steps.
CART = lexrl.CartSafe(observe_cos_sin=True, max_episode_steps=30)
CAR = lexrl.MountainCarSafe(max_episode_steps=30)
NETWORKS = lexrl.Networks(hidden_sizes=(24, 24))
PPO = {
    "num_envs": 4,
    "num_steps": 16,
    "num_epochs": 2,
    "num_minibatches": 2,
    "networks": NETWORKS,
    "ent_coef": 0.01,
    "learning_rate": 3e-3,
    "gae_lambda": 0.96,
}
A2C = {
    "num_envs": 4,
    "num_steps": 8,
    "networks": NETWORKS,
    "ent_coef": 0.01,
    "learning_rate": "3e-3 to 1e-3 in 40",
    "gae_lambda": 0.96,
}
DQN = {
    "num_envs": 4,
    "num_steps": 4,
    "batch_size": 16,
    "gradient_steps": 2,
    "buffer_size": 256,
    "learning_starts": 64,
    "hidden_sizes": (24, 24),
    "epsilon": "1 to 0.05 in 500",
}
ORDINARY = {"num_members": 1, "target_update_interval": 56, "polyak": 1.0, "return_scale": 20.0}
# The objective converges early, else the multipliers would only be idle.
EAGER = lexrl.Convergence(stats_window_size=5.0, patience=10.0)

slow = pytest.mark.slow
CASES = [
    pytest.param(lexrl.PPO(**PPO), lexrl.LPPO(**PPO), CART, id="staged ppo clipped discrete"),
    pytest.param(lexrl.PPO(**PPO), lexrl.Projection(**PPO), CART, id="projection discrete"),
    pytest.param(
        lexrl.PPO(**PPO, surrogate="kl_penalty"),
        lexrl.LPPO(**PPO, surrogate="kl_penalty"),
        CAR,
        id="staged ppo penalised continuous",
        marks=slow,
    ),
    pytest.param(lexrl.A2C(**A2C), lexrl.LA2C(**A2C), CART, id="staged a2c discrete"),
    pytest.param(lexrl.A2C(**A2C), lexrl.LA2C(**A2C), CAR, id="staged a2c continuous", marks=slow),
    pytest.param(lexrl.PPO(**PPO), lexrl.PaperLPPO(**PPO, convergence=EAGER), CART, id="ppo clipped discrete"),
    pytest.param(
        lexrl.PPO(**PPO, surrogate="kl_penalty"),
        lexrl.PaperLPPO(**PPO, convergence=EAGER, surrogate="kl_penalty"),
        CAR,
        id="ppo penalised continuous",
        marks=slow,
    ),
    pytest.param(
        lexrl.PPO(**PPO), lexrl.PaperLPPO(**PPO, convergence=EAGER), CAR, id="ppo clipped continuous", marks=slow
    ),
    pytest.param(
        lexrl.PPO(**PPO, surrogate="kl_penalty"),
        lexrl.PaperLPPO(**PPO, convergence=EAGER, surrogate="kl_penalty"),
        CART,
        id="ppo penalised discrete",
        marks=slow,
    ),
    pytest.param(lexrl.A2C(**A2C), lexrl.PaperLA2C(**A2C, convergence=EAGER), CART, id="a2c discrete"),
    pytest.param(lexrl.A2C(**A2C), lexrl.PaperLA2C(**A2C, convergence=EAGER), CAR, id="a2c continuous", marks=slow),
    pytest.param(lexrl.DQN(**DQN), lexrl.LDQN(**DQN), CART, id="dqn"),
    pytest.param(
        lexrl.DQN(**DQN, **ORDINARY),
        lexrl.LDQN(**DQN, **ORDINARY),
        CART,
        id="double dqn with one member",
        marks=slow,
    ),
    pytest.param(
        lexrl.DQN(**DQN, double_q=False, target_update_interval=0),
        lexrl.LDQN(**DQN, double_q=False, target_update_interval=0),
        CART,
        id="dqn without a target network",
        marks=slow,
    ),
]
UPDATES = 60


def same(one, other):
    """The same trees, bit for bit."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for (path, mine), (_, theirs) in zip(
        jax.tree_util.tree_leaves_with_path(one), jax.tree_util.tree_leaves_with_path(other), strict=True
    ):
        where = jax.tree_util.keystr(path)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_array_equal(mine, theirs, err_msg=where)


def trained(algorithm, world):
    steps = UPDATES * algorithm.num_envs * algorithm.num_steps
    *_, last = snapshots(plan(algorithm, world, "max reward", 2, steps, 1))
    assert not last.result.faults
    return SimpleNamespace(train_states=last.train_states, metrics=last.result.metrics)


@pytest.mark.parametrize(("ordinary", "lexicographic", "world"), CASES)
def test_the_same_numbers(ordinary, lexicographic, world):
    one, other = trained(ordinary, world), trained(lexicographic, world)
    mine, theirs = one.train_states.agent, other.train_states.agent
    if isinstance(ordinary, lexrl.DQN):
        same(mine, theirs.agent)  # members, target network, the optimiser's memory, the buffer
        assert (np.asarray(mine.num_updates) == (UPDATES - 3) * 2).all()  # the fourth rollout reaches the warm-up
        assert np.asarray(mine.replay.added).max() > 256  # the buffer went round
    else:
        same(mine.agent, theirs.agent)  # actor, critic, memories, scales
        if isinstance(ordinary, lexrl.PPO) and not isinstance(lexicographic, lexrl.Projection):
            same(mine.kappa, theirs.kappa)
        if isinstance(lexicographic, lexrl.LPPO | lexrl.LA2C | lexrl.Projection):
            assert theirs.course is None
            assert one.metrics.keys() == other.metrics.keys()
        else:
            assert (np.asarray(theirs.convergence.num_episodes) > 10).all()
            assert (np.asarray(theirs.multipliers.value) == 0).all()
        assert (np.asarray(mine.agent.num_updates) == UPDATES).all()
    same(one.train_states.env_state, other.train_states.env_state)
    for name in one.metrics.keys() & other.metrics.keys():  # only told, not learned from: sums may be rounded elsewise
        np.testing.assert_allclose(one.metrics[name], other.metrics[name], rtol=1e-5, atol=1e-6, err_msg=name)
    # Two seeds that learned the same would prove little.
    learned = mine.net if isinstance(ordinary, lexrl.DQN) else mine.agent.actor.net
    assert not np.array_equal(learned.weights[0][0], learned.weights[0][1])


# An objective that is there twice. Tables, so that the objectives' numbers are apart; rollouts at random.

S, A, T, N = 5, 3, 4, 6
PLAIN = {"optimizer": "sgd", "max_grad_norm": 0.0}
KEY = jax.random.key(1)
TABLES = lexrl.Networks(hidden_sizes=(), use_bias=False, **PLAIN)


def spec(objectives):
    return Spec(Discrete(S), Discrete(A), ("one", "two")[:objectives], 9)


def rollouts(count, objectives):
    """The same reward for each objective."""
    rng = np.random.default_rng(3)
    for _ in range(count):
        ended = rng.random((T, N)) < 0.1
        yield Transition(
            obs=jnp.asarray(rng.integers(0, S, (T, N)), jnp.int32),
            action=jnp.asarray(rng.integers(0, A, (T, N)), jnp.int32),
            reward=jnp.asarray(rng.normal(size=(T, N, 1)).repeat(objectives, axis=-1), jnp.float32),
            discount=jnp.asarray(1.0 - ended, jnp.float32),
            next_obs=jnp.asarray(rng.integers(0, S, (T, N)), jnp.int32),
            last=jnp.asarray(ended | (rng.random((T, N)) < 0.1)),
        )


update = jax.jit(lambda algorithm, state, rollout, key: algorithm.update(state, rollout, key)[0])


def twice(net, wide):
    """Tables for one objective `[.., S, n]` in the place of one for two, each of them the same."""
    return eqx.tree_at(lambda one: one.weights, wide, (jnp.concatenate([net.weights[0]] * 2, axis=-1),))


TABLE_DQN = {
    "num_envs": N,
    "num_steps": T,
    "batch_size": 16,
    "buffer_size": 240,
    "learning_starts": 24,
    "hidden_sizes": (),
    "use_bias": False,
    "learning_rate": 0.1,
    **PLAIN,
    "gamma": 0.9,
    "target_update_interval": 3 * N * T // 2,
    "num_members": 1,
    "polyak": 1.0,
    "double_q": False,
    "return_scale": 1.0,
}
PLAIN_LDQN = {"evidence": None, "explore_prefixes": False, "explore_novelty": False}


class TestAnObjectiveTwice:
    def test_ldqn_learns_the_same_values(self):
        one, two = lexrl.DQN(**TABLE_DQN), lexrl.LDQN(**TABLE_DQN, **PLAIN_LDQN)
        single, double = one.init(spec(1), KEY), two.init(spec(2), KEY)
        same_twice = twice(single.net, double.agent.net)
        double = double._replace(agent=double.agent._replace(net=same_twice, target=same_twice))
        for i, (mine, theirs) in enumerate(zip(rollouts(40, 1), rollouts(40, 2), strict=True)):
            single = update(one, single, mine, jax.random.key(i))
            double = update(two, double, theirs, jax.random.key(i))
        expected = np.asarray(single.net.weights[0])
        assert np.abs(expected - same_twice.weights[0][..., :A]).max() > 0.1
        table = np.asarray(double.agent.net.weights[0]).reshape(1, S, 2, A)
        np.testing.assert_allclose(table[:, :, 0], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(table[:, :, 1], expected, rtol=1e-5, atol=1e-6)

    def test_ldqn_chooses_the_same_actions(self):
        rng = np.random.default_rng(0)
        one, two = lexrl.DQN(**TABLE_DQN, epsilon=0.3), lexrl.LDQN(**TABLE_DQN, **PLAIN_LDQN, epsilon=0.3)
        single, double = one.init(spec(1), KEY), two.init(spec(2), KEY)
        table = jnp.asarray(rng.integers(0, 2, (1, S, A)), jnp.float32)  # ties, too
        single = single._replace(net=eqx.tree_at(lambda net: net.weights, single.net, (table,)))
        double = double._replace(agent=double.agent._replace(net=twice(single.net, double.agent.net)))
        keys = jax.random.split(KEY, 200)
        for greedy in (False, True):

            def choose(algorithm, state, greedy=greedy):
                act = jax.vmap(lambda obs, key: algorithm.act(state, obs, key, greedy=greedy), (None, 0))
                return np.asarray(jax.jit(jax.vmap(act, (0, None)))(jnp.arange(S), keys))

            mine, theirs = choose(one, single), choose(two, double)
            np.testing.assert_array_equal(mine, theirs)
            best = np.asarray(table[0]) == np.asarray(table[0]).max(axis=1, keepdims=True)
            chosen = [set(row.tolist()) for row in mine]
            assert chosen == [set(np.flatnonzero(row)) for row in best] if greedy else [set(range(A))] * S

    @pytest.mark.parametrize("multiplier", [0.0, 7.0])
    @pytest.mark.parametrize("name", ["a2c", "ppo"])
    def test_actor_critics_move_the_same_way(self, name, multiplier):
        """The weights make a mean of two equal advantages, whatever they are."""
        shared = {"num_envs": N, "num_steps": T, "networks": TABLES, "gae_lambda": 0.95}
        shared |= {"learning_rate": 0.3, "critic_learning_rate": 0.1}
        few = {"num_epochs": 2, "num_minibatches": 2}
        one = lexrl.A2C(**shared) if name == "a2c" else lexrl.PPO(**shared, **few)
        two = lexrl.PaperLA2C(**shared) if name == "a2c" else lexrl.PaperLPPO(**shared, **few)
        single, double = one.init(spec(1), KEY), two.init(spec(2), KEY)
        critic = twice(single.agent.critic, double.agent.critic)
        double = double._replace(
            agent=double.agent._replace(critic=critic),
            convergence=double.convergence._replace(converged=jnp.array([True, False])),
            multipliers=double.multipliers._replace(value=jnp.array([multiplier, 0.0])),
        )
        for i, (mine, theirs) in enumerate(zip(rollouts(5, 1), rollouts(5, 2), strict=True)):
            single = update(one, single, mine, jax.random.key(i))
            double = update(two, double, theirs, jax.random.key(i))
        moved, expected = (state.agent.actor.net.weights[0] for state in (double, single))
        np.testing.assert_allclose(moved, expected, rtol=1e-3, atol=1e-5)
        assert np.ptp(expected, axis=1).max() > 0.05
        values = np.asarray(double.agent.critic.weights[0])
        np.testing.assert_allclose(values, np.repeat(single.agent.critic.weights[0], 2, axis=1), rtol=1e-3, atol=1e-5)
