"""How fast deep learning is, as ratios within one run: against Stable-Baselines3, in M, in the replay's size, in cores.

    python benchmarks/deep.py [--repeats 3] [--only sb3 objectives replay cores start cartpole]

Ours trains 10 seeds on CartSafe on all cores; the numbers are environment steps per second of all seeds together, with
compilation done. Stable-Baselines3 trains one seed in its usual vectorized environments (a plain-Python CartSafe), with
the same networks (two hidden layers of 24), environments, rollouts, epochs, minibatches and updates per step, on one
thread, which is the fastest here. Runs take turns; ratios are of medians.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

import lexrl
import peers
from lexrl import A2C, DQN, LA2C, LDQN, LPPO, PPO, Networks
from lexrl.loops import compiled
from lexrl.loops.population import make_population
from lexrl.runs import plan
from lexrl.types import EnvSpec, Step

SEEDS = list(range(10))
SMALL = Networks(hidden_sizes=(24, 24))
ORDER = "min cost > max reward"
console = Console(highlight=False)

PROXIMAL: dict[str, Any] = {"num_envs": 8, "num_steps": 256, "num_epochs": 10, "num_minibatches": 32}
"""Stable-Baselines3's usual PPO: minibatches of 64."""
LARGE: dict[str, Any] = {"num_envs": 32, "num_steps": 64, "num_epochs": 4, "num_minibatches": 4}
"""Our tuned PPO: minibatches of 512."""
REPLAYED: dict[str, Any] = {
    "num_envs": 8,
    "num_steps": 4,
    "batch_size": 32,
    "gradient_steps": 8,
    "buffer_size": 102_400,
    "learning_starts": 1_024,
    "target_update_interval": 2_000,
    "hidden_sizes": (24, 24),
}
"""Stable-Baselines3's usual DQN: a batch of 32 for every four steps; here in eight environments."""
ONE_ENV: dict[str, Any] = REPLAYED | {"num_envs": 1, "gradient_steps": 1}


class Copies(eqx.Module):
    """CartSafe with its signals repeated, so that there are as many objectives as wanted."""

    inner: Any
    n: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        return self.inner.spec._replace(signals=tuple(f"signal_{i}" for i in range(self.n)))

    def reset(self, key: Any) -> Any:
        return self.inner.reset(key)

    def step(self, state: Any, action: Any, key: Any) -> Step:
        step = self.inner.step(state, action, key)
        return step._replace(signals=jnp.tile(step.signals, self.n)[: self.n])


def main() -> None:
    parts: dict[str, Callable[[int], None]] = {
        "sb3": against_sb3, "objectives": in_objectives, "replay": in_capacity, "cores": in_cores, "start": start_up,
        "cartpole": cartpole,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description="Speed of deep learning, as ratios within one run.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(parts), default=list(parts))
    settings = parser.parse_args()
    for name in settings.only:
        parts[name](settings.repeats)


def ours(algorithm: Any, env: Any, order: str, steps: int, devices: Any = None) -> Callable[[], float]:
    """A function that trains for `steps` steps of every seed and gives steps per second."""
    run = plan(algorithm, env, order, SEEDS, steps)
    population = make_population(run.algorithm, run.env, run.order, SEEDS, devices)
    train_states = next(compiled.advance(population, compiled.start(population), 1, num_log_points=1)).train_states

    def measure() -> float:
        begun = time.perf_counter()
        *_, last = compiled.advance(population, train_states, steps, num_log_points=1)
        jax.block_until_ready(last.train_states.iteration)
        return steps * len(SEEDS) / (time.perf_counter() - begun)

    return measure


def theirs(algorithm: str, num_envs: int, steps: int, settings: dict[str, Any]) -> Callable[[], float]:
    job: dict[str, Any] = {
        "algorithm": algorithm,
        "env": "cart-safe",
        "num_envs": num_envs,
        "hidden_sizes": [24, 24],
        "steps": steps,
        "seed": 0,
        "threads": 1,
        "observe_cos_sin": True,
        "settings": settings,
        "evaluate": 0,
    }
    return lambda: peers.sb3(**job)["steps_per_second"]


def in_turns(contestants: dict[Any, Callable[[], float]], repeats: int) -> dict[Any, float]:
    """Medians of every contestant's speed, measured in turns so that a slow moment hits all of them."""
    speeds: dict[Any, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, run in contestants.items():
            speeds[name].append(run())
    return {name: statistics.median(each) for name, each in speeds.items()}


def against_sb3(repeats: int) -> None:
    env = lexrl.CartSafe(observe_cos_sin=True)
    replayed = {"train_freq": 4, "batch_size": 32, "buffer_size": 100_000, "learning_starts": 1000}
    pairs: dict[str, tuple[Callable[[], float], Callable[[], float], int]] = {
        "LPPO / PPO, 8 x 256, 10 epochs, batch 64": (
            ours(LPPO(networks=SMALL, **PROXIMAL), env, ORDER, 100_000),
            theirs("ppo", 8, 8_000, {"n_steps": 256, "batch_size": 64, "n_epochs": 10}),
            50,
        ),
        "LPPO / PPO, 32 x 64, 4 epochs, batch 512": (
            ours(LPPO(networks=SMALL, **LARGE), env, ORDER, 200_000),
            theirs("ppo", 32, 60_000, {"n_steps": 64, "batch_size": 512, "n_epochs": 4}),
            50,
        ),
        "LA2C / A2C, 8 x 5": (
            ours(LA2C(networks=SMALL, num_envs=8, num_steps=5), env, ORDER, 200_000),
            theirs("a2c", 8, 20_000, {"n_steps": 5}),
            100,
        ),
        "LA2C / A2C, 16 x 64": (
            ours(LA2C(networks=SMALL, num_envs=16, num_steps=64), env, ORDER, 400_000),
            theirs("a2c", 16, 60_000, {"n_steps": 64}),
            100,
        ),
        "LDQN / DQN, 8 envs, batch 32 for 4 steps": (
            ours(LDQN(**REPLAYED), env, ORDER, 100_000),
            theirs("dqn", 8, 16_000, replayed | {"gradient_steps": 8}),
            150,
        ),
        "LDQN / DQN, 1 env, batch 32 for 4 steps": (
            ours(LDQN(**ONE_ENV), env, ORDER, 50_000),
            theirs("dqn", 1, 8_000, replayed),
            150,
        ),
    }
    contestants = {f"{name} ours": pair[0] for name, pair in pairs.items()}
    contestants |= {f"{name} SB3": pair[1] for name, pair in pairs.items()}
    medians = in_turns(contestants, repeats)
    table = Table("", "ours, steps/s", "SB3, steps/s", "ratio", "goal", box=None, title="Against Stable-Baselines3")
    for name, (_, _, goal) in pairs.items():
        mine, other = medians[f"{name} ours"], medians[f"{name} SB3"]
        table.add_row(name, f"{mine:,.0f}", f"{other:,.0f}", f"{mine / other:.0f} x", f">= {goal} x")
    console.print(table)


def in_objectives(repeats: int) -> None:
    makers: dict[str, Callable[[], Any]] = {
        "LPPO": lambda: LPPO(networks=SMALL, **LARGE),
        "LA2C": lambda: LA2C(networks=SMALL, num_envs=16, num_steps=64),
        "LDQN": lambda: LDQN(**REPLAYED),
    }
    sizes = (2, 4, 8)
    heads = ("", "M = 1, steps/s", *(f"M = {m} costs" for m in sizes))
    table = Table(*heads, box=None, title="In the number of objectives")
    for name, make in makers.items():
        contestants: dict[str, Callable[[], float]] = {}
        for m in (1, *sizes):
            order = " > ".join(f"max signal_{i}" for i in range(m))
            env = Copies(lexrl.CartSafe(observe_cos_sin=True), m)
            contestants[str(m)] = ours(make(), env, order, 100_000)
        speed = in_turns(contestants, repeats)
        costs = [f"{speed['1'] / speed[m]:.2f} x" for m in map(str, sizes)]
        table.add_row(name, f"{speed['1']:,.0f}", *costs)
    table.add_row("goal", "", "< 1.15 x, LDQN < 1.3 x", "< 1.3 x", "< 2 x")
    console.print(table)


def in_capacity(repeats: int) -> None:
    """Time per update: of a long run less a short one, since every part of a run copies its buffers once."""
    env = lexrl.CartSafe(observe_cos_sin=True)
    short, long = 6_400, 64_000
    runs = {
        (size, steps): ours(LDQN(**dict(REPLAYED, buffer_size=size)), env, ORDER, steps)
        for size in (10_240, 1_024_000)
        for steps in (short, long)
    }
    speed = in_turns(runs, 3 * repeats)
    seconds = {key: key[1] * len(SEEDS) / each for key, each in speed.items()}
    small, large = (seconds[size, long] - seconds[size, short] for size in (10_240, 1_024_000))
    copying = seconds[1_024_000, short] - seconds[10_240, short]
    console.print(
        f"An update from a replay of 1,024,000 instead of 10,240 transitions costs {large / small:.2f} x "
        f"(goal: < 1.2 x). A part of a run takes {copying:.2f} s longer: all buffers are copied."
    )


def in_cores(repeats: int) -> None:
    env = lexrl.CartSafe(observe_cos_sin=True)
    algorithm = LPPO(networks=SMALL, **LARGE)
    contestants = {
        "one": ours(algorithm, env, ORDER, 100_000, jax.devices()[:1]),
        "all": ours(algorithm, env, ORDER, 100_000),
    }
    speed = in_turns(contestants, repeats)
    ratio = speed["all"] / speed["one"]
    console.print(f"{jax.device_count()} cores give {ratio:.2f} x one core (goal: >= 1.7 x on two).")


def start_up(repeats: int) -> None:
    """From pressing enter to the first progress line: with an empty compilation cache, and with a warm one.

    The third column is what the cold line itself says: compiling, and the first part of the run.
    """
    title = "To the first progress line (goal: < 20 cold, < 6 warm)"
    table = Table("", "cold, s", "warm, s", "cold: compiled and started in, s", box=None, title=title)
    program = pathlib.Path(sys.executable).with_name("lexrl")
    for name in (
        "lppo", "la2c", "ldqn", "projection", "ppo", "a2c", "dqn", "rcpo", "ppo-lagrangian", "var-ac", "appropo"
    ):  # fmt: skip
        cold: list[tuple[float, float]] = []
        warm: list[tuple[float, float]] = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                command = [
                    str(program),
                    "train",
                    name,
                    "cart-safe",
                    "--total-timesteps",
                    "200000",
                    "--eval-episodes",
                    "1",
                ]
                command += ["--order", ORDER] if name == "projection" else []  # it has no preset
                environment = os.environ | {"XDG_CACHE_HOME": folder, "TERM": "dumb"}
                for times in (cold, warm):
                    times.append(_first_line(command, folder, environment))
        (cold_line, compiling), (warm_line, _) = (
            [statistics.median(each) for each in zip(*times, strict=True)] for times in (cold, warm)
        )
        table.add_row(name, f"{cold_line:.1f}", f"{warm_line:.1f}", f"{compiling:.0f}")
    console.print(table)


def _first_line(command: list[str], folder: str, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds until the first progress line, and the seconds of compiling it reports."""
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if " steps  " in line:
                seconds = time.perf_counter() - begun
                process.kill()
                reported = re.search(r"compiled and started in (\d+) s", line)
                assert reported is not None, line
                return seconds, float(reported[1])
    raise RuntimeError(f"{command} ended without a progress line")


def cartpole(repeats: int) -> None:
    """What PPO and DQN reach on CartPole with 100,000 steps and two hidden layers of 64, ours and theirs."""
    from lexrl.schedules import Linear

    steps, network = 100_000, Networks(hidden_sizes=(64, 64))
    mine = {
        "PPO": PPO(networks=network, num_envs=8, num_steps=128, num_epochs=8, gae_lambda=0.9),
        "A2C": A2C(networks=network, num_envs=8, num_steps=16, learning_rate=3e-3, critic_learning_rate=3e-3),
        "DQN": DQN(
            num_envs=8,
            num_steps=4,
            gradient_steps=8,
            target_update_interval=120,
            learning_rate=Linear(2e-3, 2e-4, 25_000),
            epsilon=Linear(1.0, 0.04, 16_000),
            return_scale=20.0,
            buffer_size=51_200,
        ),
    }
    job: dict[str, Any] = {
        "env": "CartPole-v1",
        "num_envs": 8,
        "hidden_sizes": [64, 64],
        "steps": steps,
        "threads": 1,
    }
    other: dict[str, dict[str, Any]] = {
        "PPO": {"n_steps": 128, "batch_size": 256, "n_epochs": 8, "learning_rate": 1e-3, "gae_lambda": 0.9},
        "A2C": {"n_steps": 16},
        "DQN": {
            "learning_rate": 2e-3, "batch_size": 64, "buffer_size": 51_200, "learning_starts": 1000, "train_freq": 4,
            "gradient_steps": 8, "target_update_interval": 120, "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
        },
    }  # fmt: skip
    table = Table("", "ours, each seed", "SB3, each seed", box=None, title="CartPole-v1, greedy return, 100,000 steps")
    for name, algorithm in mine.items():
        result = lexrl.train(algorithm, lexrl.CartPole(), "max reward", seeds=5, total_timesteps=steps)
        reached = result.evaluate(20).returns.mean(axis=1)[:, 0]
        peer = []
        for seed in range(repeats):
            spec = job | {"algorithm": name.lower(), "seed": seed, "settings": other[name], "evaluate": 20}
            returns = peers.sb3(**spec)["returns"]
            peer.append(sum(returns) / len(returns))
        table.add_row(name, " ".join(f"{x:.0f}" for x in reached), " ".join(f"{x:.0f}" for x in peer))
    console.print(table)


if __name__ == "__main__":
    main()
