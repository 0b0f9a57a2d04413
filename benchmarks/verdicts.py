"""Are verdicts right as often as they claim? Finite MOMDPs whose returns are known exactly, and policies that violate
their first objective by a given number of tolerances.

    python benchmarks/verdicts.py                      2,000 verdicts of each policy
    python benchmarks/verdicts.py --verdicts 200

A policy that plays the optimum for objective 1, but with probability q in an episode another policy, loses q times the
difference of the two: exactly as much as is wanted. It is compared with the optimum on the same episodes, by the
statistics of a verdict (`lexrl.verify`); the tolerance is a share of that difference. The other policy is what
training began with: a batch of its episodes shows how far returns may differ, as in a run. A verdict is *wrong* if it
says "violated" of a policy that loses at most the tolerance, or "kept" of one that loses more; at most 5 % may be.
"""

import argparse
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lexrl import exact, verify
from lexrl.momdp import MOMDP

VIOLATIONS = (0.0, 0.5, 1.0, 2.0, 5.0)
"""Losses, in tolerances."""
LOOKS = (100, 500, 1000, 2000)
"""Episodes after which the table shows what has been decided."""
BATCH, POOL = 100, 100_000
"""Episodes between two looks; episodes that are simulated, and that verdicts draw from."""


class Problem(NamedTuple):
    """A finite MOMDP with one objective, and a policy that is worse than the optimum."""

    name: str
    transitions: np.ndarray
    """`[S, A, S]`"""
    rewards: np.ndarray
    """`[S, A, S]`"""
    initial: np.ndarray
    horizon: int
    other: np.ndarray
    """`[S, A]`: the policy that the optimum is mixed with."""
    share: float
    """The tolerance, as a share of the difference between the two policies."""
    paired: bool = True
    """The two policies play the same episodes; else independent ones, as policies of different seeds do."""
    width: float | None = None
    """How far any two returns may differ, where that is narrow enough to bet on it."""

    def process(self) -> MOMDP:
        return MOMDP.from_arrays(self.transitions, self.rewards[None], 0.95, initial=self.initial)

    def worth(self, policy: np.ndarray) -> float:
        """The exact return of a stationary policy over the horizon."""
        found = exact.evaluate_horizon(self.process(), np.repeat(policy[None], self.horizon, axis=0))
        return float(found.returns[0])


def dense(paired: bool) -> Problem:
    """Rewards everywhere: returns are nearly normal."""
    random, s, a = np.random.default_rng(0), 12, 3
    rewards = np.repeat(random.uniform(-1, 1, (s, a, 1)), s, axis=2)
    transitions = random.dirichlet(np.full(s, 0.3), (s, a))
    name, share = ("dense rewards", 0.02) if paired else ("dense, unpaired", 0.1)
    return Problem(name, transitions, rewards, np.full(s, 1 / s), 30, np.full((s, a), 1 / a), share, paired)


def accidents() -> Problem:
    """A corridor: hurrying ends in an accident with probability 0.05 at each step, and an accident costs 1."""
    s = 8
    transitions, rewards = np.zeros((s, 2, s)), np.zeros((s, 2, s))
    for state in range(s - 2):
        transitions[state, 0, state + 1] = 1.0
        transitions[state, 1, [state + 1, s - 1]] = 0.95, 0.05
        rewards[state, 1, s - 1] = -1.0
    transitions[[s - 2, s - 1], :, [s - 2, s - 1]] = 1.0
    return Problem(
        "rare accidents", transitions, rewards, np.eye(s)[0], s - 2, np.tile([0.0, 1.0], (s, 1)), 0.02, width=1.0
    )


def jackpots() -> Problem:
    """One action pays 10 with probability 0.2, the other with 0.05, until nothing is paid."""
    transitions, rewards = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    transitions[0, 0], transitions[0, 1], transitions[1, :, 1] = (0.2, 0.8), (0.05, 0.95), 1.0
    rewards[0, :, 0] = 10.0
    return Problem("jackpots", transitions, rewards, np.eye(2)[0], 5, np.tile([0.0, 1.0], (2, 1)), 0.1, width=50.0)


def simulate(problem: Problem, policy: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Discounted returns `[n]` of episodes with given randomness `[n, 1 + T, 2]`: of actions, and of transitions."""
    state = (uniforms[:, 0, 1, None] > np.cumsum(problem.initial)[:-1]).sum(axis=1)
    acts, moves = np.cumsum(policy, axis=1), np.cumsum(problem.transitions, axis=2)
    total = np.zeros(len(uniforms))
    for t in range(problem.horizon):
        action = (uniforms[:, t + 1, 0, None] > acts[state, :-1]).sum(axis=1)
        following = (uniforms[:, t + 1, 1, None] > moves[state, action, :-1]).sum(axis=1)
        total += 0.95**t * problem.rewards[state, action, following]
        state = following
    return total


class Pool(NamedTuple):
    """Episodes of the optimum and of the other policy with the same randomness, and what they are worth exactly."""

    best: np.ndarray
    other: np.ndarray
    loss: float
    problem: Problem


def make_pool(problem: Problem) -> Pool:
    """Simulate, and check the simulation against the exact returns."""
    solution = exact.solve(problem.process())
    best = np.asarray(solution.policy, float)
    uniforms = np.random.default_rng(1).random((POOL, problem.horizon + 1, 2))
    played = [simulate(problem, policy, uniforms) for policy in (best, problem.other)]
    for policy, returns in zip((best, problem.other), played, strict=True):
        error = 5 * returns.std() / np.sqrt(POOL) + 1e-9
        assert abs(returns.mean() - problem.worth(policy)) < error, "the simulation disagrees with the exact return"
    return Pool(played[0], played[1], problem.worth(best) - problem.worth(problem.other), problem)


def decide(
    pool: Pool, violation: float, verdicts: int, every_batch: bool, bet: bool
) -> Iterator[tuple[int, np.ndarray]]:
    """Decisions `[verdicts]` after each number of episodes in `LOOKS`."""
    random, problem = np.random.default_rng([2, int(10 * violation)]), pool.problem
    index = random.integers(POOL, size=(verdicts, LOOKS[-1]))
    strays = random.random(index.shape) < violation * problem.share
    mine = np.where(strays, pool.other[index], pool.best[index])
    reference = pool.best[index if problem.paired else random.integers(POOL, size=index.shape)]
    before = pool.other[random.integers(POOL, size=(verdicts, BATCH))]
    decided, tau = np.zeros(verdicts, int), problem.share * pool.loss
    for n in range(BATCH, LOOKS[-1] + 1, BATCH):
        if not every_batch and n not in LOOKS:
            continue
        seen = np.concatenate([mine[:, :n], reference[:, :n], before], axis=1)
        span = np.maximum(pool.loss, np.ptp(seen, axis=1))
        differences = (mine - reference)[:, :n]
        if bet and problem.width is not None:
            now = verify.judge_bounded(differences, tau, verify.ALPHA, verify.Range(-problem.width, problem.width))
        else:
            now = verify.judge(differences, tau, verify.ALPHA, span)
        decided = verify.first_decision(decided, now) if every_batch else now
        if n in LOOKS:
            yield n, decided


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", type=int, default=2000)
    verdicts = parser.parse_args().verdicts
    print(f"{verdicts:,} verdicts each: kept / not decidable / violated in %\n")
    heads = ("problem", "test", "looks", "loss in tolerances", *(f"{n:,} episodes" for n in LOOKS), "wrong")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    worst = 0.0
    for problem in (dense(True), dense(False), accidents(), jackpots()):
        pool = make_pool(problem)
        for bet in (False, True) if problem.width is not None else (False,):
            worst = max(worst, show(pool, verdicts, bet))
    print(f"\nLargest share of wrong verdicts: {100 * worst:.2f} % (at most 5 % are allowed).")
    if worst > verify.ALPHA:
        raise SystemExit(1)


def show(pool: Pool, verdicts: int, bet: bool) -> float:
    """Print the rows of a problem; the largest share of wrong verdicts."""
    worst = 0.0
    for every_batch, violation in itertools.product((True, False), VIOLATIONS):
        rows = [decided for _, decided in decide(pool, violation, verdicts, every_batch, bet)]
        wrong = verify.VIOLATED if violation <= 1 else verify.KEPT
        share = max(float((decided == wrong).mean()) for decided in rows)
        worst = max(worst, share)
        cells = [" / ".join(f"{100 * (d == status).mean():.0f}" for status in (1, 0, -1)) for d in rows]
        test, looks = "betting" if bet else "asymptotic", "every batch" if every_batch else "once"
        row = (pool.problem.name, test, looks, f"{violation:g}", *cells, f"{100 * share:.2f} %")
        print(f"| {' | '.join(row)} |", flush=True)
    return worst


if __name__ == "__main__":
    main()
