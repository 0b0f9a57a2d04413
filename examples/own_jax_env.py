"""Train on an environment of your own, written in JAX: cross a frozen lake, dry first and fast second.

python examples/own_jax_env.py [--total-timesteps 1e5]
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

import lexrl
from lexrl.types import Discrete, EnvSpec, Step

GOAL = 9


class Lake(eqx.Module):
    """Cells 0 .. 9, the goal is 9. Action 0 moves 1 ahead safely; action 1 jumps 2 ahead, and may break the ice."""

    break_probability: float = 0.2
    """Probability that a jump breaks the ice."""

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(
            observation_space=Discrete(GOAL + 1),
            action_space=Discrete(2),
            signals=("wet", "time"),
            max_episode_steps=50,
        )

    def reset(self, key: Array) -> tuple[Array, Array]:
        cell = jax.random.randint(key, (), 0, 3)
        return cell, cell  # state and observation

    def step(self, state: Array, action: Array, key: Array) -> Step:
        wet = (action == 1) & (jax.random.uniform(key) < self.break_probability)
        cell = jnp.minimum(state + jnp.where(wet, 0, 1 + action), GOAL)
        discount = jnp.where(cell == GOAL, 0.0, 1.0)
        return Step(state=cell, obs=cell, signals=jnp.array([wet, 1.0]), discount=discount)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total-timesteps", type=float, default=1e5)
    args = parser.parse_args()

    algorithm = lexrl.QLearning()
    for order in ("min wet > min time", "min time > min wet"):
        result = lexrl.train(algorithm, Lake(), order, seeds=5, total_timesteps=args.total_timesteps)
        means = dict(zip(result.run.order.names, result.evaluate().returns.mean(axis=(0, 1)), strict=True))
        print(f"{order}: {means['wet']:.2f} times in the water, {means['time']:.1f} steps to the goal")


if __name__ == "__main__":
    main()
