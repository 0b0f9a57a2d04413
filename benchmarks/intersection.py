"""Intersection against highway-env's intersection-v0: the same episodes, and how much faster.

    python benchmarks/intersection.py [--seconds 20] [--episodes 100] [--policy FILE] [--train-timesteps 20000]
                                      [--blind-episodes 2000]

The first table counts environment steps per second of CPU time on one core, resets included, with random actions; both
take turns. The second plays the same episodes in both (seeds 0, 1, ...; the same actions) and counts those that are
equal in length, collision and arrival, and those whose observations are equal to the last bit. A policy file is one
that `lexrl train` leaves. The third says what policies reach that do not look. The last one trains LPPO and says how
much of the time the environment takes.
"""

import argparse
import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

import lexrl
from lexrl import Intersection
from lexrl.envs.intersection import batch
from lexrl.envs.intersection.env import IntersectionEnvs
from lexrl.loops import host
from lexrl.runs import plan
from lexrl.types import EnvSpec

Player = Callable[[int, int, np.ndarray], int]
"""From an episode's seed, the time and the observation to an action."""
NUM_SIDE_BY_SIDE, BLOCK = 64, 1.0
"""Intersections in a call, and seconds that each of the two has before it is the other's turn."""


class Episode(NamedTuple):
    """How an episode ended, and what was observed."""

    length: int
    ends: tuple[bool, bool]
    """A collision, an arrival."""
    seen: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description="Intersection against highway-env.")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--policy")
    parser.add_argument("--train-timesteps", type=int, default=20_000)
    parser.add_argument("--blind-episodes", type=int, default=2_000)
    settings = parser.parse_args()
    console = Console(highlight=False)
    console.print(compare_speed(settings.seconds))
    console.print(compare_episodes(settings.episodes, settings.policy))
    console.print(blind_policies(settings.blind_episodes))
    console.print(share_of_training(settings.train_timesteps))


def make_reference() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gymnasium.make("highway_env:intersection-v0", disable_env_checker=True)


def compare_speed(seconds: float) -> Table:
    """Steps per second of both, in turns."""
    ours, theirs = [0, 0.0], [0, 0.0]
    mine, reference = play_ours(), play_reference()
    next(mine)
    next(reference)
    while theirs[1] < seconds:
        for steps, total in ((mine, ours), (reference, theirs)):
            begun = time.process_time()
            while time.process_time() - begun < BLOCK:
                total[0] += next(steps)
            total[1] += time.process_time() - begun
    speeds = [steps / spent for steps, spent in (ours, theirs)]
    table = Table("", "steps/s", "of highway-env's", "goal", box=None, title="One core, resets included")
    table.add_row("lexrl's Intersection", f"{speeds[0]:,.0f}", f"{speeds[0] / speeds[1]:,.0f} x", ">= 150 x")
    table.add_row("highway-env's intersection-v0", f"{speeds[1]:,.1f}")
    return table


def play_reference() -> Iterator[int]:
    """Random actions in highway-env; yields the number of steps taken."""
    env, rng = make_reference(), np.random.default_rng(0)
    env.reset(seed=0)
    while True:
        _, _, terminated, truncated, _ = env.step(int(rng.integers(3)))
        if terminated or truncated:
            env.reset()
        yield 1


def play_ours() -> Iterator[int]:
    """Random actions in many intersections, on one core; yields the number of steps taken."""
    batch.os.cpu_count = lambda: 1  # type: ignore[attr-defined]
    env, rng, n = Intersection(), np.random.default_rng(0), NUM_SIDE_BY_SIDE
    state, age = env.empty_state(n), np.zeros(n, int)
    env.advance(state, np.ones(n, bool), rng.integers(2**32, size=n), np.full(n, -1))
    while True:
        _, _, discount = env.advance(state, np.zeros(n, bool), np.zeros(n), rng.integers(3, size=n))
        age += 1
        last = (discount == 0) | (age >= env.max_episode_steps)
        if last.any():
            env.advance(state, last, rng.integers(2**32, size=n), np.full(n, -1))
            age[last] = 0
        yield n


def compare_episodes(episodes: int, policy: str | None) -> Table:
    """How many episodes are the same in both."""
    players: dict[str, Player] = {
        "random": lambda seed, t, obs: int(np.random.default_rng(seed).integers(3, size=13)[t]),
        "SLOWER": lambda seed, t, obs: 0,
        "IDLE": lambda seed, t, obs: 1,
    }
    if policy is not None:
        learned = lexrl.Policy.load(policy)
        players["learned"] = lambda seed, t, obs: int(learned.predict(obs)[0])
    table = Table(
        "policy", "episodes", "same end", "same observations", "collisions", "arrivals", "in highway-env", box=None,
        title="The same seeds and actions in both",
    )  # fmt: skip
    ours, theirs = gymnasium.make("lexrl/Intersection-v0"), make_reference()
    for name, player in players.items():
        pairs = [(play(ours, seed, player), play(theirs, seed, player)) for seed in range(episodes)]
        same = sum(mine[:2] == other[:2] for mine, other in pairs)
        bits = sum(mine.seen.tobytes() == other.seen.tobytes() for mine, other in pairs)
        (collision, arrival), (hit, arrived) = np.mean([[one.ends for one in pair] for pair in pairs], axis=0)
        rates = f"{collision:.3f}", f"{arrival:.3f}", f"{hit:.3f}, {arrived:.3f}"
        table.add_row(name, str(episodes), str(same), str(bits), *rates)
    return table


def blind_policies(episodes: int) -> Table:
    """How often policies that do not look collide and arrive, with 95 % intervals; only in ours."""
    table = Table("policy", "collisions", "arrivals", "steps", box=None, title=f"{episodes:,} episodes each")
    random = np.random.default_rng(0).integers(3, size=(13, episodes))
    for name, actions in {"random": random, "SLOWER": 0 * random, "IDLE": 0 * random + 1}.items():
        env = Intersection()
        state, running = env.empty_state(episodes), np.ones(episodes, bool)
        env.advance(state, running, np.arange(episodes), np.full(episodes, -1))
        ends, lengths = np.zeros((episodes, 2)), np.zeros(episodes)
        for chosen in actions:
            _, signals, discount = env.advance(state, ~np.ones(episodes, bool), chosen, np.where(running, chosen, -1))
            ends[running] = signals[running]
            lengths += running
            running = running & (discount > 0)
        rates = ends.mean(axis=0)
        margins = 1.96 * np.sqrt(rates * (1 - rates) / episodes)
        shown = [f"{rate:.3f} ± {margin:.3f}" for rate, margin in zip(rates, margins, strict=True)]
        table.add_row(name, *shown, f"{lengths.mean():.2f}")
    return table


def play(env: Any, seed: int, player: Player) -> Episode:
    """One episode."""
    obs, _ = env.reset(seed=seed)
    seen, over, info = [obs], False, {}
    while not over:
        obs, _, terminated, truncated, info = env.step(player(seed, len(seen) - 1, obs))
        seen.append(obs)
        over = terminated or truncated
    names = ("collision", "arrived") if "signals" in info else ("collision_reward", "arrived_reward")
    found = info["signals"] if "signals" in info else info["rewards"]
    return Episode(len(seen) - 1, (bool(found[names[0]]), bool(found[names[1]])), np.array(seen, np.float32))


@dataclasses.dataclass
class Timed:
    """Intersections whose steps and resets are timed."""

    inner: Intersection
    seconds: float = 0.0

    @property
    def spec(self) -> EnvSpec:
        return self.inner.spec

    def batched(self, n: int) -> "TimedEnvs":
        return TimedEnvs(self.inner.batched(n), self)

    def empty_state(self, n: int) -> Any:
        return self.inner.empty_state(n)


@dataclasses.dataclass
class TimedEnvs:
    """A batch of them."""

    envs: IntersectionEnvs
    clock: Timed

    def _timed(self, call: Callable[..., Any], *given: Any) -> Any:
        begun = time.perf_counter()
        answer = call(*given)
        self.clock.seconds += time.perf_counter() - begun
        return answer

    def reset(self, which: np.ndarray, keys: Any) -> np.ndarray:
        return self._timed(self.envs.reset, which, keys)

    def step(self, actions: np.ndarray, keys: Any) -> Any:
        return self._timed(self.envs.step, actions, keys)

    def save(self) -> Any:
        return self.envs.save()

    def restore(self, state: Any) -> None:
        self.envs.restore(state)

    def close(self) -> None:
        self.envs.close()


def share_of_training(steps: int) -> Table:
    """How much of LPPO's training is spent in the environment, with ten seeds and all cores."""
    table = Table("LPPO, ten seeds", "steps/s", "in the environment", box=None, title="Training")
    networks = {
        "two hidden layers of 64": lexrl.Networks(),
        "attention": lexrl.Networks(actor="attention", critic="attention"),  # pyright: ignore[reportArgumentType]
    }
    for name, network in networks.items():
        env = Timed(Intersection())
        algorithm = lexrl.LPPO(num_envs=32, num_steps=64, num_epochs=4, num_minibatches=4, networks=network)
        population = plan(algorithm, env, "min collision > max arrived", range(10), steps).population()
        *_, first = host.advance(population, env, host.start(population, env), 1, num_log_points=1)
        env.seconds, begun = 0.0, time.perf_counter()
        *_, last = host.advance(population, env, first.train_states, first.steps + steps, num_log_points=1)
        spent = time.perf_counter() - begun
        table.add_row(name, f"{10 * (last.steps - first.steps) / spent:,.0f}", f"{env.seconds / spent:.0%}")
    return table


if __name__ == "__main__":
    main()
