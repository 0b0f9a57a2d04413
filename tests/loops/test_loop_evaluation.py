"""Evaluation against the exact worth of the same policy; it takes nothing from training and gives nothing to it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import catalog, exact, per_seed
from lexrl.loops import compiled
from lexrl.loops.evaluation import evaluate, evaluate_on_host
from lexrl.loops.population import make_population
from lexrl.momdp import MOMDP
from lexrl.order import parse

# Every step ends the task with 5 %, so that 400 steps are as good as for ever.
PROCESS = MOMDP.random(2, 6, 3, 2, gamma=(0.8, 0.9), num_successors=3, episodic=True)
ORDER = parse("max signal_2 > min signal_1")
GAMMA = (0.9, 0.8)
"""In the order's order."""
EPSILON = 0.4
SEEDS = (3, 7, 5)
EPISODES = 4000


def make_algorithm(**changes):
    given = {"tolerance": 0.05, "alpha": 0.2, "exploration": lexrl.EpsilonGreedy(EPSILON)}
    return lexrl.QLearning(**(catalog.TEXTBOOK | given | changes))


@pytest.fixture(scope="module")
def trained():
    population = make_population(
        make_algorithm(), lexrl.FiniteEnv(PROCESS, reward_noise=0.2, max_episode_steps=400), ORDER, SEEDS
    )
    *_, end = compiled.advance(population, compiled.start(population), 500, num_log_points=2)
    return population, end.train_states


@pytest.fixture(scope="module")
def played(trained):
    population, train_states = trained
    return {greedy: evaluate(population, train_states.agent, episodes=EPISODES, gamma=GAMMA, greedy=greedy)
            for greedy in (True, False)}  # fmt: skip


def policy(trained, place, greedy):
    """The table of one member's policy; while it learns, it tries anything with probability epsilon."""
    state = jax.tree.map(lambda leaf: leaf[place], trained[1].agent)
    table = np.stack(
        [make_algorithm().probabilities(state, jnp.int32(s), greedy=True) for s in range(state.q.shape[0])]
    ).astype(float)
    return table if greedy else (1 - EPSILON) * table + EPSILON / 3


@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("place", range(3))
class TestAgainstTheExactWorth:
    def agree(self, samples, truth):
        error = samples.std(axis=0) / np.sqrt(EPISODES)
        assert (np.abs(samples.mean(axis=0) - truth) < 4.5 * error).all()
        assert (error < 0.2 + 0.05 * np.abs(truth)).all()

    def test_discounted(self, trained, played, place, greedy):
        worth = exact.evaluate(PROCESS, policy(trained, place, greedy), ORDER).returns
        self.agree(played[greedy].discounted[place], ORDER.unsigned(worth))

    def test_plain_sums(self, trained, played, place, greedy):
        plain = MOMDP.random(2, 6, 3, 2, gamma=1.0, num_successors=3, episodic=True)
        worth = exact.evaluate(plain, policy(trained, place, greedy), ORDER).returns
        self.agree(played[greedy].returns[place], ORDER.unsigned(worth))

    def test_lengths(self, trained, played, place, greedy):
        chain, _ = PROCESS.chain(policy(trained, place, greedy))
        alive = np.where(PROCESS.terminal, 0.0, 1.0)
        steps = np.linalg.solve(np.eye(6) - chain.toarray(), alive)
        self.agree(played[greedy].lengths[place][:, None].astype(float), PROCESS.initial @ steps)


class TestShapes:
    def test_one_number_for_each_member_and_episode(self, played):
        assert played[True].returns.shape == played[True].discounted.shape == (3, EPISODES, 2)
        assert played[True].lengths.shape == (3, EPISODES)
        assert played[True].lengths.min() >= 1

    def test_episodes_differ_and_so_do_members(self, played):
        assert len(np.unique(played[True].returns[0, :, 0])) > EPISODES / 2
        assert not np.array_equal(played[True].lengths[0], played[True].lengths[1])

    def test_nothing_to_play(self, trained):
        with pytest.raises(lexrl.InputError, match="evaluation episodes is 0"):
            evaluate(trained[0], trained[1].agent, episodes=0)

    @pytest.mark.parametrize("gamma", [-0.1, 1.5, (0.9, 0.9, 0.9), float("nan")])
    def test_a_discount_that_is_none(self, trained, gamma):
        population, train_states = trained
        with pytest.raises(lexrl.InputError, match="gamma is "):
            evaluate(population, train_states.agent, episodes=1, gamma=gamma)
        with pytest.raises(lexrl.InputError, match="gamma is "):
            evaluate_on_host(population, population.env, train_states.agent, episodes=1, gamma=gamma)


class TestApartFromTraining:
    def test_the_same_every_time(self, trained, played):
        again = evaluate(trained[0], trained[1].agent, episodes=EPISODES, gamma=GAMMA)
        for one, other in zip(again, played[True], strict=True):
            np.testing.assert_array_equal(one, other)

    def test_more_episodes_begin_with_the_same_ones(self, trained, played):
        few = evaluate(trained[0], trained[1].agent, episodes=50, gamma=GAMMA)
        for one, other in zip(few, played[True], strict=True):
            np.testing.assert_array_equal(one, other[:, :50])

    def test_episodes_with_other_numbers(self, trained, played):
        """Each number has its own randomness, whichever is the first; in both loops."""
        population, train_states = trained
        few = evaluate(population, train_states.agent, episodes=50, gamma=GAMMA, first=30)
        stepped = evaluate_on_host(population, population.env, train_states.agent, episodes=50, gamma=GAMMA, first=30)
        for one, other, whole in zip(few, stepped, played[True], strict=True):
            np.testing.assert_array_equal(one, whole[:, 30:80])
            np.testing.assert_allclose(other, whole[:, 30:80], rtol=1e-5)

    def test_training_goes_on_as_if_nothing_had_been(self, trained, played):
        population, _ = trained
        straight = list(compiled.advance(population, compiled.start(population), 500, num_log_points=5))[-1]
        train_states = compiled.start(population)
        for chunk in compiled.advance(population, train_states, 500, num_log_points=5):
            evaluate(population, chunk.train_states.agent, episodes=50)
        for one, other in zip(jax.tree.leaves(chunk.train_states), jax.tree.leaves(straight.train_states), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_a_discount_changes_the_discounted_sums_only(self, trained, played):
        plain = evaluate(trained[0], trained[1].agent, episodes=EPISODES)
        np.testing.assert_array_equal(plain.returns, plain.discounted)
        np.testing.assert_array_equal(plain.returns, played[True].returns)
        assert not np.array_equal(plain.discounted, played[True].discounted)


class TestGrid:
    """Obstacles everywhere between: costs are positive in the user's signs, whichever way they count."""

    ENV = lexrl.GridNav.generate(4, obstacle_density=1.0, slip_probability=0.3, max_episode_steps=12)

    @pytest.fixture(scope="class")
    @staticmethod
    def untrained():
        population = make_population(make_algorithm(), TestGrid.ENV, parse("min cost > max reward"), SEEDS)
        return population, compiled.start(population).agent

    def test_signs_and_lengths(self, untrained):
        played = evaluate(*untrained, episodes=2000)
        cost, reward = np.moveaxis(played.returns, -1, 0)
        assert cost.min() == 0
        assert cost.max() > 3
        assert set(np.unique(reward)) == {0.0, 100.0}
        assert played.lengths.max() == 12
        assert (played.lengths[reward == 0] == 12).all()  # cut off
        assert played.lengths[reward == 100].min() >= 3 + 3 - int(self.ENV.goal)  # rows and columns to cross

    def test_cut_off_in_time(self, untrained):
        """The uniform policy over twelve steps, exactly."""
        population, agents = untrained
        process = self.ENV.momdp(1.0)
        worth = exact.evaluate_horizon(process, np.full((12, 16, 4), 0.25), "min cost > max reward").returns
        played = evaluate(population, agents, episodes=2000)
        returns = played.returns.reshape(-1, 2)
        error = returns.std(axis=0) / np.sqrt(len(returns))
        assert (np.abs(returns.mean(axis=0) - worth * [-1, 1]) < 4.5 * error).all()

    def test_cut_off_earlier(self, untrained):
        """In either loop; what an episode has until then is the same as in the whole one."""
        population, agents = untrained
        cut = evaluate(population, agents, episodes=8, greedy=False, max_steps=3)
        on_host = evaluate_on_host(population, self.ENV, agents, episodes=8, greedy=False, max_steps=3)
        assert cut.lengths.max() == 3
        for mine, other in zip(cut, on_host, strict=True):
            np.testing.assert_array_equal(mine, other)

    def test_a_env_each(self):
        order = parse("min cost > max reward")
        envs = [lexrl.GridNav.generate(4, map_seed=i, slip_probability=0.2 * i, max_episode_steps=12) for i in range(3)]
        together = make_population(make_algorithm(), per_seed(envs), order, SEEDS)
        played = evaluate(together, compiled.start(together).agent, episodes=50)
        for place in (0, 2):
            alone = make_population(make_algorithm(), envs[place], order, SEEDS)
            other = evaluate(alone, compiled.start(alone).agent, episodes=50)
            np.testing.assert_array_equal(played.returns[place], other.returns[place])
