"""Train on a Gymnasium environment of your own, with costs in its info: cool a room, but do not waste power.

python examples/own_gym_env.py [--total-timesteps 1e5]
"""

import argparse
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit

import lexrl


class Room(gymnasium.Env[Any, Any]):
    """The sun heats a room at random; the cooler is off, on, or on full power. Heat is a cost, and so is power."""

    observation_space = gymnasium.spaces.Box(-20.0, 20.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.excess = self.np_random.uniform(-2.0, 2.0)  # degrees above what is comfortable
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        self.excess = float(np.clip(self.excess + self.np_random.uniform(0.0, 1.0) - action, -20.0, 20.0))
        reward = -abs(self.excess)
        info = {"cost_heat": max(self.excess, 0.0), "cost_power": float(action)}
        return self._observation(), reward, False, False, info

    def _observation(self) -> np.ndarray:
        return np.array([self.excess], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total-timesteps", type=float, default=1e5)
    args = parser.parse_args()

    env = lexrl.GymEnv(TimeLimit(Room(), max_episode_steps=50))
    print(env.description)
    algorithm = lexrl.LPPO(num_envs=8, num_steps=128, gamma=0.95)
    for order in ("min cost_heat ±0.5 > min cost_power", "min cost_power ±0.5 > min cost_heat"):
        result = lexrl.train(algorithm, env, order, seeds=1, total_timesteps=args.total_timesteps)
        first, second = result.run.order.names
        means = result.evaluate(20).returns.mean(axis=(0, 1))
        print(f"{order}: {first} {means[0]:.1f}, {second} {means[1]:.1f} per episode")


if __name__ == "__main__":
    main()
