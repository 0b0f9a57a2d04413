"""Train with Stable-Baselines3 and say how fast it was; run by the Python of the peers' environment (`../peers.py`).

    python sb3.py '{"algorithm": "ppo", "env": "cart-safe", "num_envs": 8, "settings": {"n_steps": 256}}'

The argument holds the fields of `Job`; the answer is one line of JSON. Timed is `learn` and nothing else, after a short
training of another model, since PyTorch loads parts of itself when they are first used.
"""

# pyright: reportMissingImports=false
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import torch
from cart_safe import CartSafe
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

ALGORITHMS = {"ppo": PPO, "a2c": A2C, "dqn": DQN}
VECTORS = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}
ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}


@dataclass(frozen=True)
class Job:
    """What to train, and how."""

    algorithm: str
    """ppo, a2c or dqn."""
    env: str = "cart-safe"
    """cart-safe, or a name that Gymnasium knows."""
    num_envs: int = 8
    hidden_sizes: tuple[int, ...] = (24, 24)
    """Of the actor and the critic each, which share nothing."""
    steps: int = 50_000
    """Of all environments together; whole rollouts, so it may be a few more."""
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    """Given to the algorithm's class."""
    evaluate: int = 0
    """Greedy episodes after training."""
    activation: str = "tanh"
    vec: str = "dummy"
    """dummy: all environments in this process, as is usual; subproc: each in a process of its own."""
    threads: int | None = None
    """Of PyTorch; by default all cores."""
    observe_cos_sin: bool = False
    """Whether CartSafe shows the angle as cosine and sine."""


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    early = {"learning_starts": 0} if job.algorithm == "dqn" else {}
    warm = make_model(job, early)
    warm.learn(1)
    warm.get_env().close()
    model = make_model(job)
    begun, begun_cpu = time.perf_counter(), time.process_time()
    model.learn(job.steps)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - begun_cpu
    model.get_env().close()
    answer = {
        "steps_per_second": model.num_timesteps / seconds,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,  # of this process and all its threads
        "steps": model.num_timesteps,
        "threads": torch.get_num_threads(),
        "returns": returns(model, job),
    }
    print(json.dumps(answer))


def make_model(job: Job, changes: dict[str, Any] | None = None) -> Any:
    """An untrained model with its environments."""
    hidden = list(job.hidden_sizes)
    nets = {
        "net_arch": hidden if job.algorithm == "dqn" else {"pi": hidden, "vf": hidden},
        "activation_fn": ACTIVATIONS[job.activation],
    }
    settings = job.settings | (changes or {})
    return ALGORITHMS[job.algorithm](
        "MlpPolicy",
        make_envs(job, job.num_envs, job.seed),
        policy_kwargs=nets,
        seed=job.seed,
        device="cpu",
        **settings,
    )


def returns(model: Any, job: Job) -> list[float]:
    """Undiscounted returns of greedy episodes, in environments that training has not seen."""
    if not job.evaluate:
        return []
    fresh = make_envs(job, min(job.evaluate, job.num_envs), 1_000_000 + job.seed, "dummy")
    found, _ = evaluate_policy(model, fresh, job.evaluate, deterministic=True, return_episode_rewards=True)
    return [float(each) for each in found]


def make_envs(job: Job, count: int, seed: int, vec: str | None = None) -> Any:
    own = job.env == "cart-safe"
    return make_vec_env(
        CartSafe if own else job.env,
        n_envs=count,
        seed=seed,
        env_kwargs={"observe_cos_sin": job.observe_cos_sin} if own else None,
        vec_env_cls=VECTORS[vec or job.vec],
    )


if __name__ == "__main__":
    main()
