"""Write `intersection_trace.npz`: 20 episodes of highway-env, to compare with where it is not installed.

    NPY_DISABLE_CPU_FEATURES=X86_V4 OPENBLAS_CORETYPE=Nehalem python tests/envs/record_intersection_trace.py

The variables make NumPy compute as the C library does, as compiled code does everywhere. Twelve episodes have random
actions, four always SLOWER, four always IDLE.
"""

import pathlib
import warnings

import gymnasium
import numpy as np

EPISODES, STEPS = 20, 13


def actions_of(seed):
    if seed < 12:
        return np.random.default_rng(seed).integers(3, size=STEPS)
    return np.full(STEPS, 0 if seed < 16 else 1)


def main():
    warnings.simplefilter("ignore")
    env = gymnasium.make("highway_env:intersection-v0", disable_env_checker=True)
    lengths, ends = np.zeros(EPISODES, int), np.zeros((EPISODES, 2))
    observations = np.zeros((EPISODES, STEPS + 1, 15, 7), np.float32)
    for seed in range(EPISODES):
        observations[seed, 0], _ = env.reset(seed=seed)
        for time, action in enumerate(actions_of(seed).tolist()):
            observations[seed, time + 1], _, terminated, truncated, info = env.step(action)
            lengths[seed] = time + 1
            if terminated or truncated:
                break
        ends[seed] = info["rewards"]["collision_reward"], info["rewards"]["arrived_reward"]
    actions = np.stack([actions_of(seed) for seed in range(EPISODES)])
    np.savez_compressed(
        pathlib.Path(__file__).with_name("intersection_trace.npz"),
        seeds=np.arange(EPISODES), actions=actions, lengths=lengths, ends=ends, observations=observations,
    )  # fmt: skip


if __name__ == "__main__":
    main()
