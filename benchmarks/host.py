"""How fast the host loop is: CartPole-v1 in 8 environments, against Stable-Baselines3's PPO.

    python benchmarks/host.py [--repeats 3] [--total-timesteps 40000]

Both train one seed with Stable-Baselines3's usual settings: rollouts of 256 steps, minibatches of 64, 10 epochs, two
networks with two hidden layers of 64 and tanh. Numbers are environment steps per second with compilation done. Runs
take turns; ratios are of medians.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import gymnasium
from rich.console import Console
from rich.table import Table

import peers
from deep import PROXIMAL, in_turns
from lexrl import LPPO, PPO, Networks
from lexrl.envs.gym import GymEnv
from lexrl.envs.vector import GymVectorEnv
from lexrl.loops import host
from lexrl.runs import plan

NETWORKS = Networks(hidden_sizes=(64, 64))
NUM_ENVS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the host loop, as ratios within one run.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--total-timesteps", type=int, default=40_000)
    settings = parser.parse_args()
    single = GymEnv("CartPole-v1")
    vector = GymVectorEnv(lambda: gymnasium.make_vec("CartPole-v1", num_envs=NUM_ENVS, vectorization_mode="sync"))
    mine: dict[str, Callable[[], float]] = {
        "PPO, 8 environments": ours(PPO(networks=NETWORKS, **PROXIMAL), single, settings.total_timesteps),
        "LPPO, 8 environments": ours(LPPO(networks=NETWORKS, **PROXIMAL), single, settings.total_timesteps),
        "PPO, a vector environment of 8": ours(PPO(networks=NETWORKS, **PROXIMAL), vector, settings.total_timesteps),
    }
    speed = in_turns({**mine, "SB3": theirs(settings.total_timesteps)}, settings.repeats)
    table = Table("", "steps/s", "of SB3's", "goal", box=None, title="CartPole-v1, stepped from Python")
    for name in mine:
        table.add_row(name, f"{speed[name]:,.0f}", f"{speed[name] / speed['SB3']:.2f} x", ">= 1 x")
    table.add_row("Stable-Baselines3's PPO, 8 environments", f"{speed['SB3']:,.0f}")
    Console(highlight=False).print(table)


def ours(algorithm: Any, env: Any, steps: int) -> Callable[[], float]:
    """A function that trains for `steps` steps and gives steps per second."""
    population = plan(algorithm, env, "max reward", [0], steps).population()
    *_, first = host.advance(population, env, host.start(population, env), 1, num_log_points=1)

    def measure() -> float:
        begun = time.perf_counter()
        *_, last = host.advance(population, env, first.train_states, first.steps + steps, num_log_points=1)
        return (last.steps - first.steps) / (time.perf_counter() - begun)

    return measure


def theirs(steps: int) -> Callable[[], float]:
    job: dict[str, Any] = {
        "algorithm": "ppo",
        "env": "CartPole-v1",
        "num_envs": NUM_ENVS,
        "hidden_sizes": [64, 64],
        "steps": steps,
        "seed": 0,
        "threads": 1,
        "settings": {"n_steps": 256, "batch_size": 64, "n_epochs": 10},
    }
    return lambda: peers.sb3(**job)["steps_per_second"]


if __name__ == "__main__":
    main()
