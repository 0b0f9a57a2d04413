"""A Gymnasium environment of your own, with costs in its info: cool a room cheaply, but never too far.

python examples/own_gym_env.py [--steps 1e5]
"""

import argparse
from typing import Any

import gymnasium
import numpy as np

import lexrl


class Room(gymnasium.Env[Any, Any]):
    """The sun heats a room at random; the cooler is off, on, or on full power. Too warm is a cost, so is power."""

    observation_space = gymnasium.spaces.Box(-20.0, 20.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)
    excess = 0.0
    """Degrees above what is comfortable."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.excess = self.np_random.uniform(-2.0, 2.0)
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.excess = float(np.clip(self.excess + self.np_random.uniform(0.0, 1.0) - action, -20.0, 20.0))
        reward = -abs(self.excess)
        info = {"cost_heat": max(self.excess, 0.0), "cost_power": float(action)}
        return self._seen(), reward, False, False, info

    def _seen(self) -> np.ndarray:
        return np.array([self.excess], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="A Gymnasium environment of your own.")
    parser.add_argument("--steps", type=float, default=1e5)
    steps = parser.parse_args().steps
    world = lexrl.GymEnv(Room, max_episode_steps=50)
    print(world.found)
    for order in ("min cost_heat ±0.5 > min cost_power", "min cost_power ±0.5 > min cost_heat"):
        result = lexrl.train(
            lexrl.LPPO(num_envs=8, num_steps=128, gamma=0.95), world, order, seeds=1, total_timesteps=steps
        )
        means = result.evaluate(20).returns.mean(axis=(0, 1))
        print(
            order, *(f"{name} {mean:.1f}" for name, mean in zip(result.run.order.names, means, strict=True)), sep="  "
        )


if __name__ == "__main__":
    main()
