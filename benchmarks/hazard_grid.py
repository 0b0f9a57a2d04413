"""A small grid world with hazards, as a user would write one for Gymnasium: for `benchmarks/foreign.py`.

The shortest path leads between hazards, a longer one around them; a hazard and the goal both end the task. Three
signals: `hazard`, `goal` and `time`.
"""

from typing import Any

import gymnasium
import numpy as np

MAP = (
    "S..#...",
    ".#...#.",
    "...#...",
    ".#..#..",
    "..#..#.",
    ".#...#G",
)
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


class HazardGrid(gymnasium.Env[np.ndarray, int]):
    """Walk from S to G and avoid `#`. One move in `1 / slip` goes in a random direction."""

    def __init__(self, slip: float = 0.0, unit: float = 1.0):
        self.slip = slip
        self.unit = unit
        """What the signal `goal` is multiplied by: units must not matter."""
        self.cells = np.array([list(row) for row in MAP])
        self.place = np.zeros(2, int)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space: Any = gymnasium.spaces.Discrete(len(MOVES))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = np.argwhere(self.cells == "S")[0]
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        move = self.np_random.integers(len(MOVES)) if self.np_random.random() < self.slip else action
        self.place = np.clip(self.place + MOVES[move], 0, np.array(self.cells.shape) - 1)
        cell = str(self.cells[tuple(self.place)])
        signals = {"hazard": float(cell == "#"), "goal": self.unit * float(cell == "G"), "time": 1.0}
        return self._obs(), signals["goal"], cell in "#G", False, {"signals": signals}

    def _obs(self) -> np.ndarray:
        return (2 * self.place / (np.array(self.cells.shape) - 1) - 1).astype(np.float32)
