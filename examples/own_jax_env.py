"""A world of your own in JAX: walk home across a frozen pond, as dry as possible first, as soon as possible second.

python examples/own_jax_world.py [--steps 1e5]
"""

import argparse
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import lexrl
from lexrl.types import Discrete, Spec, Step


class Pond(eqx.Module):
    """Cells 0 .. 9, home is 9. A step goes 1 ahead on safe ground; a leap goes 2, and sometimes into the water."""

    thin: float = 0.2
    """How often a leap breaks the ice."""

    @property
    def spec(self) -> Spec:
        return Spec(
            observation_space=Discrete(10), action_space=Discrete(2), objectives=("wet", "time"), max_episode_steps=50
        )

    def reset(self, key: Any) -> Any:
        start = jax.random.randint(key, (), 0, 3)
        return start, start  # what the world remembers, and what the learner sees

    def step(self, state: Any, action: Any, key: Any) -> Step:
        wet = (action == 1) & (jax.random.uniform(key) < self.thin)
        cell = jnp.minimum(state + jnp.where(wet, 0, 1 + action), 9)
        return Step(cell, cell, jnp.array([wet, 1.0]), jnp.where(cell == 9, 0.0, 1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description="A world of your own in JAX.")
    parser.add_argument("--steps", type=float, default=1e5)
    steps = parser.parse_args().steps
    for order in ("min wet > min time", "min time > min wet"):
        learner = lexrl.QLearning(alpha="n^-0.7", exploration="epsilon 0.2", tolerance=0.02)
        result = lexrl.train(learner, Pond(), order, seeds=5, total_timesteps=steps)
        means = result.evaluate().returns.mean(axis=(0, 1))
        named = dict(zip(result.run.order.names, means, strict=True))
        print(f"{order}: wet {named['wet']:.2f} times, home after {named['time']:.1f} steps")


if __name__ == "__main__":
    main()
