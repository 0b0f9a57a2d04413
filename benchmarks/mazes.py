"""Goals that random moves seldom reach: does LDQN find them with its defaults, and without its search for novelty?

    python benchmarks/mazes.py [--size 12] [--maps 2] [--seeds 5] [--total-timesteps 2e5]

Square mazes: a fifth of the cells are hazards, which end the task as the goal in the far corner does. "min hazard > max
goal > min time", episodes of at most 100 steps. A run is right if it walks to the goal without a hazard, by a shortest
path (evaluated in one episode: nothing is random).
"""

import argparse
import time
from collections import deque

import numpy as np

import lexrl

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
ORDER = "min hazard > max goal > min time"


def draw_hazards(size: int, number: int) -> tuple[np.ndarray, int]:
    """Cells that are hazards, and how many moves the goal is away; a map without a way is drawn again."""
    rng = np.random.default_rng(number)
    while True:
        hazards = rng.random((size, size)) < 0.2
        hazards[0, 0] = hazards[-1, -1] = False
        away, todo = {(0, 0): 0}, deque([(0, 0)])
        while todo:
            here = todo.popleft()
            for down, right in MOVES:
                there = (here[0] + down, here[1] + right)
                if 0 <= min(there) <= max(there) < size and not hazards[there] and there not in away:
                    away[there] = away[here] + 1
                    todo.append(there)
        if (size - 1, size - 1) in away:
            return hazards, away[size - 1, size - 1]


def maze(hazards: np.ndarray) -> lexrl.FiniteEnv:
    """From the upper left corner to the lower right one; the last state is where episodes end."""
    size = len(hazards)
    end = size * size
    transitions, rewards = np.zeros((end + 1, 4, end + 1)), np.zeros((3, end + 1, 4))
    transitions[end, :, end] = 1.0
    rewards[2, :end] = 1.0
    for cell in range(end):
        for action, (down, right) in enumerate(MOVES):
            row, column = (int(np.clip(x, 0, size - 1)) for x in (cell // size + down, cell % size + right))
            hazard, goal = bool(hazards[row, column]), row == column == size - 1
            rewards[:2, cell, action] = hazard, goal
            transitions[cell, action, end if hazard or goal else size * row + column] = 1.0
    first = np.eye(end + 1)[0]
    momdp = lexrl.MOMDP.from_arrays(
        transitions, rewards, 0.99, initial=first, terminal=[end], signals=("hazard", "goal", "time")
    )
    return lexrl.FiniteEnv(momdp, max_episode_steps=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=12)
    parser.add_argument("--maps", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--total-timesteps", type=float, default=2e5)
    setup = parser.parse_args()
    drawn = [draw_hazards(setup.size, number) for number in range(setup.maps) for _ in range(setup.seeds)]
    envs = lexrl.per_seed([maze(hazards) for hazards, _ in drawn])
    for what, algorithm in (("LDQN", lexrl.LDQN()), ("without novelty", lexrl.LDQN(explore_novelty=False))):
        begun = time.time()
        result = lexrl.train(
            algorithm, envs, ORDER, seeds=len(drawn), total_timesteps=setup.total_timesteps, num_log_points=2,
            verify_episodes=0,
        )  # fmt: skip
        hazard, goal, steps = result.evaluate(1).returns[:, 0].T
        right = (hazard == 0) & (goal == 1) & (steps == [away for _, away in drawn])
        print(f"{what}: no hazard {(hazard == 0).sum()}, goal {(goal == 1).sum()}, right {right.sum()} of {len(drawn)} "
              f"({time.time() - begun:.0f} s)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
