"""GridNav: cross a grid of obstacles to a goal, with moves that may slip.

Start bottom right, the goal at a random column of the top row, obstacles in the rows between. Signals: `reward` when
the goal is reached, `cost` whenever the new cell is an obstacle. Since moves may slip, every crossing carries some
risk, so the lexicographic optimum of "min cost > max reward" *never goes to the goal*: a policy that stays near the
start is right, and one that reaches the goal is not lexicographically optimal unless there is a slack on cost.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array

from lexrl import memory
from lexrl.envs import drawing
from lexrl.errors import InputError, require_finite, require_whole
from lexrl.momdp import MOMDP, from_outcomes
from lexrl.types import Box, Discrete, EnvSpec, Step

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Up, right, down, left, as (row, column)."""

ARROWS = "↑→↓←"


class GridNav(eqx.Module):
    """Cross a grid of obstacles to a goal, where moves may slip. Cells are indexed row by row from the top left.

    `GridNav.generate(...)` draws a random map; the constructor takes one of yours.
    """

    render_fps: ClassVar[float] = 5.0

    obstacles: Array | np.ndarray
    """`[S]` mask."""
    goal: Array | np.ndarray
    """Index of the goal's cell."""
    slip_probability: float
    goal_reward: float
    step_reward: float
    size: int = eqx.field(static=True)
    max_episode_steps: int = eqx.field(static=True)
    one_hot: bool = eqx.field(static=True)

    def __check_init__(self):
        require_whole(max_episode_steps=self.max_episode_steps)

    @classmethod
    def generate(
        cls,
        size: int = 25,
        map_seed: int = 0,
        obstacle_density: float = 0.3,
        slip_probability: float = 0.1,
        goal_reward: float = 100.0,
        step_reward: float = 0.0,
        max_episode_steps: int = 50,
        one_hot: bool = False,
    ) -> "GridNav":
        """A random grid of obstacles to cross, where moves may slip.

        Args:
            size: rows and columns; the paper's experiments have 25, the original also 60.
            map_seed: seed of the random map.
            obstacle_density: fraction of obstacles in the rows between start and goal.
            slip_probability: probability that a move is replaced by a random one.
            goal_reward: reward on reaching the goal; the original environment has 1000.
            step_reward: reward of every step; the original environment has -1.
            max_episode_steps: length of an episode; the original environment has 200.
            one_hot: observe the position as a one-hot vector instead of an integer.
        """
        require_whole(-(2**31), size=size)
        require_whole(0, most=2**63, map_seed=map_seed)
        if size < 3:
            raise InputError(f"A grid of size {size} has no room for obstacles; size must be 3 or more.")
        require_finite(goal_reward=goal_reward, step_reward=step_reward)
        require_finite(slip_probability=slip_probability, obstacle_density=obstacle_density)
        if not (0 <= slip_probability <= 1 and 0 <= obstacle_density <= 1):
            raise InputError(
                f"slip_probability is {slip_probability:g} and obstacle_density is {obstacle_density:g}; both must "
                "lie in [0, 1]."
            )
        memory.require({"the map": 10 * size**2}, {"the map": "size"})
        rng = np.random.default_rng(map_seed)
        goal = int(rng.integers(size))
        obstacles = np.zeros((size, size), bool)
        obstacles[1:-1] = rng.random((size - 2, size)) < obstacle_density
        return cls(
            obstacles=obstacles.ravel(),
            goal=np.asarray(goal, np.int32),
            slip_probability=slip_probability,
            goal_reward=goal_reward,
            step_reward=step_reward,
            size=size,
            max_episode_steps=max_episode_steps,
            one_hot=one_hot,
        )

    @property
    def spec(self) -> EnvSpec:
        n_cells = self.size**2
        observation_space = Box((n_cells,), 0.0, 1.0) if self.one_hot else Discrete(n_cells)
        return EnvSpec(observation_space, Discrete(len(MOVES)), ("reward", "cost"), self.max_episode_steps)

    @property
    def return_bounds(self) -> dict[str, tuple[float, float]]:
        """What sums of the costs lie between."""
        return {"cost": (0.0, float(self.max_episode_steps))}

    def reset(self, key: Array) -> tuple[Array, Array]:
        cell = jnp.int32(self.size**2 - 1)
        return cell, self._observe(cell)

    def step(self, state: Array, action: Array, key: Array) -> Step:
        slips, where = jax.random.uniform(key, (2,))
        move = jnp.where(slips < self.slip_probability, (where * len(MOVES)).astype(jnp.int32), action)
        d_row, d_column = (jnp.asarray(part)[move] for part in np.array(MOVES, np.int32).T)
        row = jnp.clip(state // self.size + d_row, 0, self.size - 1)
        column = jnp.clip(state % self.size + d_column, 0, self.size - 1)
        cell = row * self.size + column
        at_goal = cell == self.goal
        reward = self.step_reward + jnp.where(at_goal, self.goal_reward, 0.0)
        cost = jnp.where(jnp.asarray(self.obstacles)[cell], 1.0, 0.0)
        return Step(cell, self._observe(cell), jnp.stack([reward, cost]), jnp.where(at_goal, 0.0, 1.0))

    def momdp(self, gamma: float | tuple[float, ...] = 0.99) -> MOMDP:
        """The same as a finite MOMDP. The environment truncates episodes, the MOMDP does not."""
        n_cells, n_moves = self.size**2, len(MOVES)
        cells = np.arange(n_cells)
        moves = np.array(MOVES)
        rows = np.clip(cells[:, None] // self.size + moves[:, 0], 0, self.size - 1)
        columns = np.clip(cells[:, None] % self.size + moves[:, 1], 0, self.size - 1)
        target = rows * self.size + columns
        probability = np.where(
            np.eye(n_moves, dtype=bool),
            1 - self.slip_probability + self.slip_probability / n_moves,
            self.slip_probability / n_moves,
        )
        pair = np.repeat(np.arange(n_cells * n_moves), n_moves)
        entries = (np.tile(probability, (n_cells, 1)).ravel(), (pair, np.repeat(target, n_moves, axis=0).ravel()))
        matrix = sp.csr_array(entries, shape=(n_cells * n_moves, n_cells))
        matrix.sum_duplicates()
        matrix.sort_indices()
        at_goal = matrix.indices == int(self.goal)
        reward = self.step_reward + self.goal_reward * at_goal
        signals = np.stack([reward, np.asarray(self.obstacles)[matrix.indices].astype(float)], axis=1)
        start = np.zeros(n_cells)
        start[-1] = 1.0
        return from_outcomes(
            matrix, signals, n_moves, gamma, initial=start, terminal=[int(self.goal)], signals=("reward", "cost")
        )

    def picture(self, policy: np.ndarray | None = None) -> str:
        """The map as text: S start, G goal, # obstacle, and the policy `[S, A]` as arrows (· where all moves tie)."""
        cells = []
        for cell in range(self.size**2):
            if cell == int(self.goal):
                cells.append("G")
            elif self.obstacles[cell]:
                cells.append("#")
            elif policy is None or np.ptp(policy[cell]) < 1e-9:
                cells.append("S" if cell == self.size**2 - 1 else "·")
            else:
                cells.append(ARROWS[int(np.argmax(policy[cell]))])
        return "\n".join(" ".join(cells[row * self.size : (row + 1) * self.size]) for row in range(self.size))

    def render(self, state: Array | np.ndarray) -> np.ndarray:
        """A picture of the state, `[height, width, 3]`."""
        return drawing.grid(self.size, np.asarray(self.obstacles), int(self.goal), int(state))

    def _observe(self, cell: Array) -> Array:
        return jax.nn.one_hot(cell, self.size**2) if self.one_hot else cell
