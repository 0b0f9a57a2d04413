"""MO-Gymnasium's environments by their names, solved to the exact lexicographic optimum.

The truth is computed: every state is visited, every action taken, every roll of the dice made, and the process that
comes out of it is solved by `lexrl.solve`.
"""

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp

import lexrl
from lexrl import catalog
from lexrl.envs.gym import GymEnv
from lexrl.envs.vector import GymVectorEnv
from lexrl.momdp import from_outcomes
from lexrl.types import Box, Discrete, EnvSpec

mo = pytest.importorskip("mo_gymnasium")

GAMMA = 0.99
TREASURE = "max reward_1 > max reward_2"
SAFE = "max reward_1 > max reward_2 > max reward_3"
FRUIT = " > ".join(f"max reward_{i}" for i in (3, 1, 2, 4, 5, 6))


class Dice:
    """A generator that always rolls the same."""

    def __init__(self, roll):
        self.roll = roll

    def random(self):
        return self.roll


def put_in_cell(env, obs):
    env.current_state, env.terminal = obs.copy(), False


def put_in_field(env, obs):
    env.current_pos, (env.has_gold, env.has_gem) = obs[:2].copy(), obs[2:]


def explored(world, put, rolls=((1.0, 0.5),)):
    """The process behind an environment, in the world's numbers; one more state stands for every end."""
    env = world.make().unwrapped
    n, a = world.spec.observation_space.n, world.spec.action_space.n
    first, _ = env.reset(seed=0)
    known, queue, entries, paid = {world.interface.observations.convert(first)}, [first], [], []
    while queue:
        here = queue.pop()
        for action in range(a):
            for chance, roll in rolls:
                put(env, here)
                env.np_random = Dice(roll)
                there, reward, ended, _, _ = env.step(action)
                number = n if ended else int(world.interface.observations.convert(there))
                entries.append((world.interface.observations.convert(here) * a + action, number, chance))
                paid.append(reward)
                if number not in known and not ended:
                    known.add(number)
                    queue.append(there.copy())
    return process(
        n, a, entries, np.array(paid, float), known, world.interface.observations.convert(first), world.spec.signals
    )


def process(n, a, entries, paid, known, first, signals):
    rows, columns, chances = (np.array(part) for part in zip(*entries, strict=True))

    def matrix(weights):
        return sp.csr_array((weights, (rows, columns)), shape=((n + 1) * a, n + 1))

    together = matrix(chances)  # rolls that lead to the same successor are one entry
    each = [matrix(chances * column).toarray() for column in paid.T]
    dense = together.toarray()
    stored = together.nonzero()
    outcomes = np.stack([one[stored] / dense[stored] for one in each], axis=-1)
    ended = ~np.isin(np.arange(n + 1), list(known))
    return from_outcomes(
        sp.csr_array(together), outcomes, a, GAMMA, initial=np.eye(n + 1)[first], terminal=ended, signals=signals
    )


def worth(result, truth):
    """What every seed's policy is worth exactly."""
    rows = [np.vstack([table, np.full(truth.num_actions, 1 / truth.num_actions)]) for table in result.probabilities()]
    return np.array([lexrl.exact.evaluate(truth, table, result.run.order).returns for table in rows])


class Case:
    """An environment, its truth, and an order."""

    def __init__(self, name, put, order, rolls=((1.0, 0.5),), **settings):
        self.world, self.order = GymEnv(name, discrete_observations=True, **settings), order
        self.truth = explored(self.world, put, rolls)
        self.best = lexrl.solve(self.truth, order).returns


CASES = {
    "treasure": lambda: Case("deep-sea-treasure-v0", put_in_cell, TREASURE),
    "gathering": lambda: Case("resource-gathering-v0", put_in_field, SAFE, ((0.1, 0.05), (0.9, 0.5))),
    "fruit": lambda: Case("fruit-tree-v0", put_in_cell, FRUIT, max_episode_steps=10),
}


def plain(**settings):
    return lexrl.QLearning(**catalog.TEXTBOOK | settings)


TABULAR = {
    # Deterministic, so that one visit tells all; high first values make the learner look everywhere.
    "treasure": (plain(alpha=1.0, exploration="epsilon 0", tolerance=1e-3, initial_q=(24.0, 0.0)), 6_000),
    "gathering": (
        plain(alpha="n^-0.5", exploration="epsilon 0.05", initial_q=(0.0, 1.0, 0.0), tolerance=(0.01, 1e-3, 1e-3)),
        10_000,
    ),
    "fruit": (plain(alpha=1.0, exploration="epsilon 0", tolerance=1e-4, initial_q=10.0), 2_000),
}

TABLE = {
    "hidden_sizes": (),
    "use_bias": False,
    "gamma": GAMMA,
    "num_envs": 32,
    "num_steps": 4,
    "batch_size": 128,
    "gradient_steps": 32,
    "num_members": 1,
    "polyak": 1.0,
    "double_q": False,
    "evidence": None,
    "explore_prefixes": False,
    "explore_novelty": False,
    "target_update_interval": 80,
    "buffer_size": 65_536,
    "optimizer": "sgd",
    "max_grad_norm": 0.0,
}
"""A linear network over numbered states is a table, learned by gradients from a replay. The steps are plain: Adam goes
on pushing a row long after it was seen. At each step a row learns the rate times its share of the replay, so that the
rate must keep this below 1 for the commonest row, and should be no lower for the rarest."""
NETWORKS = {
    # Values begin at 0, so that no treasure is hoped for: each is found from the one before, by many random steps.
    "treasure": (lexrl.LDQN(**TABLE, learning_rate=12.0, epsilon=0.8, return_scale=20.0, tolerance=0.02), 60_000),
    # Chance, where enemies wait: a lower rate averages over it.
    "gathering": (
        lexrl.LDQN(**TABLE, learning_rate=6.0, epsilon=0.7, return_scale=1.0, tolerance=(0.01, 1e-3, 1e-3)),
        30_000,
    ),
    "fruit": (lexrl.LDQN(**TABLE, learning_rate=12.0, epsilon=1.0, return_scale=10.0, tolerance=1e-3), 8_000),
}


POLICY = {"networks": lexrl.Networks(hidden_sizes=(), use_bias=False), "gamma": GAMMA, "num_envs": 32, "num_steps": 64,
          "num_minibatches": 4, "num_epochs": 4, "critic_learning_rate": 0.05, "tolerance": 0.0}  # fmt: skip
"""Much entropy at first, which leaves slowly: what is not tried is not found."""
POLICIES = {
    "treasure": (
        lexrl.PaperLPPO(**POLICY, learning_rate="0.03 to 0.005 in 600", ent_coef="3 to 0.01 in 600", gae_lambda=0.99),
        1_500_000,
    ),
    "gathering": (
        lexrl.PaperLPPO(
            **POLICY,
            learning_rate="0.03 to 0.005 in 600",
            ent_coef="1 to 0.001 in 600",
            multipliers=lexrl.DualAscent(beta=1.0, eta=1.0),
        ),
        1_500_000,
    ),
    # Six objectives: the first counts most from the beginning, else their sum is followed into the wrong branch.
    "fruit": (
        lexrl.PaperLPPO(
            **POLICY,
            learning_rate="0.05 to 0.01 in 2500",
            ent_coef="3 to 0.1 in 2500",
            multipliers=lexrl.DualAscent(beta=(1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)),
        ),
        5_200_000,
    ),
}


@pytest.fixture(scope="module")
def case():
    known = {}

    def one(name):
        if name not in known:
            known[name] = CASES[name]()
        return known[name]

    return one


class TestNames:
    def test_what_is_found(self):
        world = GymEnv("deep-sea-treasure-v0")
        assert world.description == "The signals are reward_1 (reward[0]), reward_2 (reward[1])."
        assert world.spec == EnvSpec(Box((2,), 0.0, 11.0), Discrete(4), ("reward_1", "reward_2"), 100)

    def test_settings_reach_the_environment(self):
        from mo_gymnasium.envs.deep_sea_treasure.deep_sea_treasure import CONCAVE_MAP

        world = GymEnv("deep-sea-treasure-v0", dst_map=CONCAVE_MAP)
        assert world.make().unwrapped.sea_map.max() == 124.0

    def test_vector_environments(self):
        world = GymVectorEnv(lambda: mo.wrappers.vector.MOSyncVectorEnv([lambda: mo.make("fruit-tree-v0")] * 3), 10)
        learner = lexrl.Random(num_envs=3, num_steps=20)
        one, other = (
            lexrl.train(learner, each, FRUIT, seeds=1, total_timesteps=120, num_log_points=2)
            for each in (world, GymEnv("fruit-tree-v0", 10))
        )
        np.testing.assert_array_equal(one.metrics["episode_return"], other.metrics["episode_return"])
        assert np.isfinite(one.metrics["episode_return"]).all()


class TestTruths:
    def test_of_the_treasure(self, case):
        """As it is published: the farthest treasure, 23.7, after 19 steps."""
        steps = np.arange(19)
        np.testing.assert_allclose(case("treasure").best, [19.77798, -17.38314], atol=5e-6)
        np.testing.assert_allclose(case("treasure").best, [23.7 * GAMMA**18, -(GAMMA**steps).sum()], rtol=1e-6)

    def test_of_gathering(self, case):
        """Safe comes first; then the gold, around all enemies; then nothing is left for the diamond."""
        front = gymnasium.make("resource-gathering-v0").unwrapped.pareto_front(GAMMA)
        assert case("gathering").best[0] == 0
        assert case("gathering").best[1] > 0.8
        assert len(front) > 2

    def test_of_the_fruit(self, case):
        world = case("fruit").world.make().unwrapped
        fruits = np.array(world.pareto_front(GAMMA))[:, [2, 0, 1, 3, 4, 5]]
        np.testing.assert_allclose(case("fruit").best, max(fruits.tolist()), rtol=1e-6)


class TestLearned:
    @pytest.mark.parametrize(
        ("learners", "name"),
        [
            pytest.param(TABULAR, "treasure", id="tables-treasure"),
            pytest.param(TABULAR, "gathering", id="tables-gathering", marks=pytest.mark.slow),
            pytest.param(TABULAR, "fruit", id="tables-fruit"),
            pytest.param(NETWORKS, "treasure", id="networks-treasure", marks=pytest.mark.slow),
            pytest.param(NETWORKS, "gathering", id="networks-gathering", marks=pytest.mark.slow),
            pytest.param(NETWORKS, "fruit", id="networks-fruit"),
        ],
    )
    def test_exactly(self, case, learners, name):
        one, (learner, steps) = case(name), learners[name]
        result = lexrl.train(learner, one.world, one.order, seeds=1, total_timesteps=steps, num_log_points=2)
        np.testing.assert_allclose(worth(result, one.truth), [one.best], rtol=1e-6, atol=1e-9)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("learners", "name"),
        [
            pytest.param(learners, name, id=f"{kind}-{name}")
            for kind, learners in (("tables", TABULAR), ("networks", NETWORKS), ("policies", POLICIES))
            for name in learners
        ],
    )
    def test_exactly_with_every_seed(self, case, learners, name):
        """In the compiled loop, on the process that was explored."""
        one, (learner, steps) = case(name), learners[name]
        world = lexrl.FiniteEnv(one.truth, max_episode_steps=one.world.spec.max_episode_steps)
        result = lexrl.train(learner, world, one.order, seeds=16, total_timesteps=steps, num_log_points=2)
        worths = [lexrl.exact.evaluate(one.truth, table, one.order).returns for table in result.probabilities()]
        np.testing.assert_allclose(worths, [one.best] * 16, rtol=1e-6, atol=1e-9)


class TestLander:
    """Down to the pad first, by the shaped reward; then the landing itself, 100 or -100."""

    def train(self, steps, chunks):
        world = GymEnv("mo-lunar-lander-v3", max_episode_steps=400)
        assert len(world.spec.signals) == 4
        learner = lexrl.LPPO(
            num_envs=16,
            num_steps=128,
            num_minibatches=16,
            num_epochs=6,
            gae_lambda=0.97,
            learning_rate="1e-3 to 1e-4 in 150",
            ent_coef=0.01,
        )
        return lexrl.train(
            learner, world, "max reward_2 > max reward_1", seeds=1, total_timesteps=steps, num_log_points=chunks
        )

    @pytest.mark.slow
    def test_improves_soon(self):
        """What is handed over; while its last stage is young, it may lose what the first one has reached."""
        result = self.train(49_152, 8)
        shaped = result.metrics["episode_return"][:, 0, 0]
        assert result.evaluate(20).returns[0, :, 0].mean() > shaped[0] + 40

    @pytest.mark.slow
    def test_no_longer_crashes(self):
        shaped, landed = self.train(200_000, 20).metrics["episode_return"][:, 0].T
        assert shaped[-3:].mean() > shaped[0] + 100
        assert landed[0] < -90
        assert landed[-3:].mean() > -30


def test_cart_pole_by_its_name():
    learner = lexrl.PPO(
        num_envs=8, num_steps=128, num_minibatches=8, num_epochs=6, learning_rate=2e-3, critic_learning_rate=2e-3
    )
    result = lexrl.train(learner, "CartPole-v1", "max reward", seeds=1, total_timesteps=20_480, num_log_points=5)
    stands = result.metrics["episode_return"][:, 0, 0]
    assert stands[0] < 60
    assert stands[-1] > 150
