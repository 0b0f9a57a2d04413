"""What full information would reach on Intersection: a planner that knows the true model, as a reference for policies.

    python benchmarks/intersection_planner.py [--episodes 300] [--weights 2 100] [--samples 2]

In every state it plays timing plans to the end of the episode, in copies of that very state: SLOWER for so long, IDLE
for so long, then FASTER. It sees what policies do not: the time, the destinations, the vehicles that are hidden. It
does not see which vehicles will join, so each plan is played with several random ones. It takes the first action of
the plan with the most `arrived - weight * collision`, and plans again a second later.
"""

import argparse
import itertools

import numpy as np
from rich.console import Console
from rich.table import Table

from lexrl import Intersection
from lexrl.envs.intersection.episode import FASTER, IDLE, SLOWER
from lexrl.envs.intersection.state import State

LENGTH = Intersection.max_episode_steps
WAITS, HOLDS = range(9), range(4)
"""Seconds of SLOWER, and of IDLE after that."""
FIRST = 10**6
"""The seed of the first episode."""


def main() -> None:
    parser = argparse.ArgumentParser(description="A planner with the true model of Intersection.")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--weights", type=float, nargs="+", default=[2.0, 100.0])
    parser.add_argument("--samples", type=int, default=2)
    settings = parser.parse_args()
    table = Table("weight of a collision", "collision", "arrival", box=None, title=f"{settings.episodes} episodes each")
    for weight in settings.weights:
        ends = play(settings.episodes, weight, settings.samples)
        rates = ends.mean(axis=0)
        margins = 1.96 * np.sqrt(rates * (1 - rates) / len(ends))
        shown = [f"{rate:.3f} ± {margin:.3f}" for rate, margin in zip(rates, margins, strict=True)]
        table.add_row(f"{weight:g}", *shown)
    Console(highlight=False).print(table)


def timing_plans() -> np.ndarray:
    """`[plans, LENGTH]`: actions; the last plan is to stop for good."""
    rest = [FASTER] * LENGTH
    plans = [[SLOWER] * wait + [IDLE] * hold + rest for wait, hold in itertools.product(WAITS, HOLDS)]
    return np.array([plan[:LENGTH] for plan in [*plans, [SLOWER] * LENGTH]])


def play(episodes: int, weight: float, samples: int) -> np.ndarray:
    """`[episodes, 2]`: collisions and arrivals of the planner."""
    env, rng, plans = Intersection(), np.random.default_rng(0), timing_plans()
    state, nobody = env.empty_state(episodes), np.zeros(episodes, bool)
    env.advance(state, ~nobody, FIRST + np.arange(episodes), np.full(episodes, -1))
    ends, running = np.zeros((episodes, 2)), np.arange(episodes)
    for time in range(LENGTH):
        now = State(*(part[running] for part in state))
        values = forecast(env, now, plans[:, : LENGTH - time], samples, rng) @ np.array([-weight, 1.0])
        actions = np.full(episodes, -1)
        actions[running] = plans[values.argmax(axis=1), 0]
        _, signals, discount = env.advance(state, nobody, np.zeros(episodes), actions)
        ends[running] = signals[running]
        running = running[discount[running] > 0]
    return ends


def forecast(env: Intersection, state: State, plans: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
    """`[N, plans, 2]`: how often each plan collides and arrives, in copies of each state."""
    count = len(state.counters)
    n = count * len(plans) * samples
    copies = State(*(np.repeat(part, len(plans) * samples, axis=0) for part in state))
    joining = reseeded(rng, count * samples).reshape(count, 1, samples, -1)  # the same ones for all plans
    copies.generator[:] = np.broadcast_to(joining, (count, len(plans), *joining.shape[2:])).reshape(n, -1)
    chosen = np.broadcast_to(plans[None, :, None], (count, len(plans), samples, plans.shape[1])).reshape(n, -1)
    ends, running = np.zeros((n, 2)), np.ones(n, bool)
    for actions in chosen.T:
        _, signals, discount = env.advance(copies, np.zeros(n, bool), np.zeros(n), np.where(running, actions, -1))
        ends[running] = signals[running]
        running = running & (discount > 0)
    return ends.reshape(count, len(plans), samples, 2).mean(axis=2)


def reseeded(rng: np.random.Generator, n: int) -> np.ndarray:
    """`[n, ...]`: random generators, as intersections have them."""
    states = Intersection().empty_state(n)
    Intersection().advance(states, np.ones(n, bool), rng.integers(2**32, size=n), np.full(n, -1))
    return states.generator


if __name__ == "__main__":
    main()
