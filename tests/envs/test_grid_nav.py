"""GridNav against a second telling in plain Python, against its own finite MOMDP, and by hand."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexrl
from lexrl.envs.grid_nav import ARROWS, MOVES
from lexrl.loops import keys
from lexrl.loops.keys import Purpose
from lexrl.types import Box, Discrete

UP, RIGHT, DOWN, LEFT = range(4)
SMALL = lexrl.GridNav.generate(
    4, map_seed=3, slip_probability=0.4, obstacle_density=0.4, goal_reward=10.0, step_reward=-1.0
)
N_CELLS = 16


def retold(size, goal, obstacles, slip, goal_reward, step_reward, cell, action, slips, where):
    """One step in plain Python: (new cell, reward, cost, discount)."""
    row, column = divmod(cell, size)
    if slips < np.float32(slip):
        action = int(where * 4)
    if action == UP and row > 0:
        row -= 1
    elif action == RIGHT and column < size - 1:
        column += 1
    elif action == DOWN and row < size - 1:
        row += 1
    elif action == LEFT and column > 0:
        column -= 1
    new = size * row + column
    reward = step_reward + goal_reward if new == goal else step_reward
    return new, reward, float(obstacles[row][column]), 0.0 if new == goal else 1.0


@partial(jax.jit, static_argnums=0)
def many_keys(n, seed=0):
    return keys.at(keys.streams(seed, Purpose.STEP, n), 0)


@jax.jit
def sampled(world, cells, actions, draws):
    """Every (cell, action) with every key: leading axes `[cells, keys]`."""
    over_keys = jax.vmap(lambda world, cell, action, key: world.step(cell, action, key), (None, None, None, 0))
    return jax.vmap(over_keys, (None, 0, 0, None))(world, cells, actions, draws)


def all_pairs(world):
    pairs = np.arange(world.size**2 * 4)
    return jnp.array(pairs // 4), jnp.array(pairs % 4)


@pytest.mark.parametrize("slip", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("seed", [0, 3])
def test_a_second_telling_agrees_step_by_step(seed, slip):
    world = lexrl.GridNav.generate(
        4, map_seed=seed, slip_probability=slip, obstacle_density=0.4, goal_reward=10.0, step_reward=-1.0
    )
    cells, actions = all_pairs(world)
    draws = many_keys(60)
    chances = np.asarray(jax.jit(jax.vmap(lambda key: jax.random.uniform(key, (2,))))(draws))
    answer = jax.tree.map(np.asarray, sampled(world, cells, actions, draws))
    goal, obstacles = int(world.goal), np.reshape(world.obstacles, (4, 4))
    for pair in range(N_CELLS * 4):
        for k, (slips, where) in enumerate(chances):
            new, reward, cost, discount = retold(4, goal, obstacles, slip, 10.0, -1.0, *divmod(pair, 4), slips, where)
            assert answer.state[pair, k] == answer.obs[pair, k] == new
            assert answer.signals[pair, k].tolist() == [reward, cost]
            assert answer.discount[pair, k] == discount


def test_frequencies_are_those_of_the_finite_process():
    n = 8000
    cells, actions = all_pairs(SMALL)
    answer = jax.tree.map(np.asarray, sampled(SMALL, cells, actions, many_keys(n, 1)))
    process = SMALL.momdp()
    exact = process.transitions.toarray()
    seen = np.stack([np.bincount(row, minlength=N_CELLS) for row in answer.state]) / n
    assert (seen[exact == 0] == 0).all()
    error = np.sqrt(exact * (1 - exact) / n)
    assert (np.abs(seen - exact) <= 5 * error + 1e-9).all()
    assert error.max() < 0.006
    # And so do the expected signals, in every state where something still happens.
    paid = answer.signals.mean(axis=1).T.reshape(2, N_CELLS, 4)
    spread = answer.signals.std(axis=1).T.reshape(2, N_CELLS, 4)
    alive = ~process.terminal
    wrong = np.abs(paid - process.rewards)[:, alive]
    assert (wrong <= 5 * spread[:, alive] / np.sqrt(n) + 1e-5).all()


class TestByHand:
    # A map by hand: start at 8, goal at 1, one obstacle in the middle.
    #   0 G 2
    #   3 # 5
    #   6 7 S
    @staticmethod
    def world(slip_probability=0.0, **changes):
        spots = np.zeros(9, bool)
        spots[4] = True
        return eqx.tree_at(
            lambda world: (world.obstacles, world.goal),
            lexrl.GridNav.generate(3, slip_probability=slip_probability, **changes),
            (spots, np.array(1, np.int32)),
        )

    def go(self, cell, action, **changes):
        pair = jnp.array([cell]), jnp.array([action])
        answer = jax.tree.map(lambda leaf: leaf[0, 0], sampled(self.world(**changes), *pair, many_keys(1)))
        return int(answer.state), *answer.signals.tolist(), float(answer.discount)

    @pytest.mark.parametrize(
        ("cell", "action", "reached"),
        [(8, UP, 5), (8, LEFT, 7), (8, RIGHT, 8), (8, DOWN, 8), (0, UP, 0), (0, LEFT, 0), (0, DOWN, 3), (2, RIGHT, 2),
         (2, UP, 2), (6, DOWN, 6), (6, LEFT, 6), (6, RIGHT, 7), (5, RIGHT, 5), (3, LEFT, 3)],
    )  # fmt: skip
    def test_moves_and_walls(self, cell, action, reached):
        assert self.go(cell, action) == (reached, 0.0, 0.0, 1.0)

    @pytest.mark.parametrize(("cell", "action"), [(3, RIGHT), (5, LEFT), (7, UP)])
    def test_an_obstacle_costs_and_lets_pass(self, cell, action):
        assert self.go(cell, action) == (4, 0.0, 1.0, 1.0)

    def test_leaving_an_obstacle_costs_nothing(self):
        assert self.go(4, DOWN) == (7, 0.0, 0.0, 1.0)

    @pytest.mark.parametrize(("cell", "action"), [(0, RIGHT), (2, LEFT), (4, UP)])
    def test_the_goal_pays_and_ends(self, cell, action):
        assert self.go(cell, action) == (1, 100.0, 0.0, 0.0)

    def test_rewards_can_be_set(self):
        assert self.go(8, UP, step_reward=-1.0) == (5, -1.0, 0.0, 1.0)
        assert self.go(0, RIGHT, step_reward=-1.0, goal_reward=1000.0) == (1, 999.0, 0.0, 0.0)

    def test_a_hand_that_always_slips_does_not_listen(self):
        reached = np.asarray(
            sampled(self.world(slip_probability=1.0), jnp.full(4, 4), jnp.arange(4), many_keys(50)).state
        )
        assert (reached == reached[:1]).all()
        assert set(reached[0]) == {1, 5, 7, 3}

    def test_the_finite_process(self):
        process = self.world(slip_probability=0.2).momdp((0.9, 0.8))
        assert process.signals == ("reward", "cost")
        assert process.gamma.tolist() == [0.9, 0.8]
        assert np.flatnonzero(process.terminal).tolist() == [1]
        assert process.initial.tolist() == [0] * 8 + [1]
        rows = process.transitions.toarray().reshape(9, 4, 9)
        np.testing.assert_allclose(rows[8, UP], [0, 0, 0, 0, 0, 0.85, 0, 0.05, 0.1])  # two of the walls are hit
        np.testing.assert_allclose(rows[4, UP], [0, 0.85, 0, 0.05, 0, 0.05, 0, 0.05, 0])
        np.testing.assert_allclose(process.rewards[:, 0, RIGHT], [85, 0])
        np.testing.assert_allclose(process.rewards[:, 3, RIGHT], [0, 0.85])
        np.testing.assert_allclose(process.rewards[:, 3, UP], [0, 0.05])

    def test_without_slips_the_process_is_certain(self):
        rows = self.world().momdp().transitions.toarray()
        assert set(np.unique(rows)) == {0.0, 1.0}
        np.testing.assert_allclose(rows.sum(axis=1), 1)

    def test_the_shortest_safe_way(self):
        """Up, up, left around the obstacle: three moves, so the goal's 100 is worth 100 * 0.9^2 at the start."""
        solution = lexrl.solve(self.world().momdp(0.9), "min cost > max reward")
        np.testing.assert_allclose(solution.returns, [0, 81])

    def test_pictures(self):
        assert self.world().picture() == "· G ·\n· # ·\n· · S"
        policy = np.full((9, 4), 0.25)
        policy[0], policy[8], policy[5] = np.eye(4)[[RIGHT, LEFT, DOWN]]
        policy[3] = [0.5, 0.0, 0.5, 0.0]
        assert self.world().picture(policy) == "→ G ·\n↑ # ↓\n· · ←"
        assert len(ARROWS) == len(MOVES) == 4


class TestMaps:
    @settings(max_examples=40, deadline=None)
    @given(size=st.integers(3, 30), seed=st.integers(0, 2**32 - 1), obstacle_density=st.floats(0, 1))
    def test_the_map_follows_from_its_seed(self, size, seed, obstacle_density):
        one, other = (lexrl.GridNav.generate(size, map_seed=seed, obstacle_density=obstacle_density) for _ in range(2))
        np.testing.assert_array_equal(one.obstacles, other.obstacles)
        assert one.goal == other.goal
        assert 0 <= one.goal < size
        field = one.obstacles.reshape(size, size)
        assert not field[0].any()
        assert not field[-1].any()
        assert one.obstacles.shape == (size**2,)

    def test_seeds_make_different_maps(self):
        worlds = [lexrl.GridNav.generate(10, map_seed=seed) for seed in range(20)]
        assert len({world.obstacles.tobytes() for world in worlds}) == 20
        assert len({int(world.goal) for world in worlds}) > 5

    def test_the_goal_does_not_depend_on_the_density(self):
        assert (
            len(
                {
                    int(lexrl.GridNav.generate(10, map_seed=5, obstacle_density=density).goal)
                    for density in (0.0, 0.3, 1.0)
                }
            )
            == 1
        )

    def test_density(self):
        share = np.mean(
            [lexrl.GridNav.generate(30, map_seed=seed).obstacles.reshape(30, 30)[1:-1].mean() for seed in range(30)]
        )
        assert abs(share - 0.3) < 5 * np.sqrt(0.21 / (30 * 28 * 30))
        assert lexrl.GridNav.generate(5, obstacle_density=1.0).obstacles.sum() == 15
        assert lexrl.GridNav.generate(5, obstacle_density=0.0).obstacles.sum() == 0

    def test_goals_are_spread_over_the_top_row(self):
        counts = np.bincount([int(lexrl.GridNav.generate(4, map_seed=seed).goal) for seed in range(400)], minlength=4)
        assert (np.abs(counts - 100) < 5 * np.sqrt(400 * 0.25 * 0.75)).all()


class TestWhatIsSeen:
    def test_the_spec(self):
        world = lexrl.GridNav.generate(6, max_episode_steps=17)
        assert world.spec.observation_space == Discrete(36)
        assert world.spec.action_space == Discrete(4)
        assert world.spec.signals == ("reward", "cost")
        assert world.spec.max_episode_steps == 17

    def test_defaults_are_those_of_the_experiments(self):
        world = lexrl.GridNav.generate()
        assert (world.size, world.max_episode_steps, world.slip_probability) == (25, 50, 0.1)
        assert (world.goal_reward, world.step_reward) == (100.0, 0.0)

    @pytest.mark.parametrize("size", [3, 6])
    def test_every_episode_starts_bottom_right(self, size):
        for key in many_keys(5):
            state, obs = lexrl.GridNav.generate(size).reset(key)
            assert int(state) == int(obs) == size**2 - 1

    def test_one_hot(self):
        plain, shown = (
            lexrl.GridNav.generate(4, map_seed=3, slip_probability=0.4, one_hot=one_hot) for one_hot in (False, True)
        )
        assert shown.spec.observation_space == Box((16,), 0.0, 1.0)
        state, obs = shown.reset(many_keys(1)[0])
        assert int(state) == 15
        assert obs.tolist() == [0.0] * 15 + [1.0]
        cells, actions = all_pairs(plain)
        draws = many_keys(20)
        one, other = (jax.tree.map(np.asarray, sampled(world, cells, actions, draws)) for world in (plain, shown))
        np.testing.assert_array_equal(one.state, other.state)
        np.testing.assert_array_equal(one.signals, other.signals)
        np.testing.assert_array_equal(other.obs, np.eye(16)[one.obs])
        np.testing.assert_array_equal(plain.momdp().transitions.toarray(), shown.momdp().transitions.toarray())


class TestComplaints:
    @pytest.mark.parametrize("size", [2, 1, 0, -4])
    def test_size(self, size):
        with pytest.raises(lexrl.InputError, match=f"size {size} has no room.*size must be 3 or more"):
            lexrl.GridNav.generate(size)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"slip_probability": -0.1},
            {"slip_probability": 1.5},
            {"obstacle_density": 2.0},
        ],
    )
    def test_probabilities(self, wrong):
        with pytest.raises(lexrl.InputError, match=r"both must lie in \[0, 1\]"):
            lexrl.GridNav.generate(5, **wrong)

    @pytest.mark.parametrize("name", ["slip_probability", "obstacle_density", "goal_reward", "step_reward"])
    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_numbers_that_are_none(self, name, value):
        """A reward of NaN once stopped training at its first step."""
        with pytest.raises(lexrl.InputError, match=f"{name} is {value}; it must be a finite number"):
            lexrl.GridNav.generate(5, **{name: value})

    def test_length(self):
        with pytest.raises(lexrl.InputError, match="max_episode_steps is 0; it must be 1 or more"):
            lexrl.GridNav.generate(5, max_episode_steps=0)
