"""One objective's optimum on restricted action sets: policy iteration, first in ordinary arithmetic, then exactly.

Ordinary arithmetic finds the policy, or nearly. Then its values are refined to twice the digits (iterative refinement:
residuals with twice the digits, corrections by the same elimination), every action that comes near is compared by
those, and the policy is improved until none is better. What is left are true ties.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from lexrl import doubled
from lexrl.doubled import Doubled
from lexrl.errors import InputError
from lexrl.exact import bounds, linear, proper
from lexrl.exact.backups import Backup, Pairs, Values, exact_pairs, exact_rewards, look_ahead
from lexrl.exact.clock import Clock
from lexrl.lex import Arr
from lexrl.momdp import MOMDP

Method = Literal["auto", "dense", "sparse", "iterative", "value"]
"""How the policy is found: policy iteration with the given linear solver (`auto` picks one), or value iteration."""

_ROUNDING = 2.0**-44
"""In ordinary arithmetic, an action that is better by less than this share is left to exact comparison."""
_SWEEPS, _MOST_SWEEPS = 25, 200
_MOST_REFINEMENTS = 8


class LevelSolution(NamedTuple):
    """One objective's optimum on restricted action sets."""

    values: Values
    backup: Backup
    policy: Int[Arr, " S"]
    """A best action for each state."""
    known: Pairs
    """Actions that come near the best, with their exact values."""
    iterations: int
    residual: float
    """`max_s |v(s) - max_{D(s)} q(s, .)|`."""
    bound: float
    """The optimum is at most so much above the values, anywhere: 0 unless time ran out."""


class Evaluated(NamedTuple):
    """A policy's values, refined."""

    values: Values
    residual: float


class Climbed(NamedTuple):
    """Where policy iteration in ordinary arithmetic ended."""

    policy: Int[Arr, " S"]
    values: Float[Arr, " S"]
    iterations: int
    system: linear.System
    """The equations of the policy."""


def optimize(
    process: MOMDP,
    objective: int,
    allowed: Bool[np.ndarray, "S A"],
    start: Int[np.ndarray, " S"],
    method: Method = "auto",
    clock: Clock | None = None,
) -> LevelSolution:
    """The best one objective can do when every state is held to `allowed`; `start` is a policy within it, proper where
    gamma is 1."""
    clock = Clock() if clock is None else clock
    way = linear.choose(process) if method in ("auto", "value") else method
    policy, guess, iterations, system = climb(
        process, objective, allowed, start, way, clock, by_values=method == "value"
    )
    while True:
        evaluated = refine(system, exact_rewards(process, objective, rows_of(process, policy)), guess)
        backup = look_ahead(process, objective, evaluated.values)
        known, gain = _gains(process, objective, allowed, policy, evaluated.values, backup)
        clock.report(process.signals[objective], iterations, _bound(process, objective, gain))
        if not (gain > 0).any() or clock.expired:
            break
        iterations += 1
        policy = _improve(process, objective, policy, gain)
        guess = evaluated.values.value.hi
        system = chain_system(process, rows_of(process, policy), float(process.gamma[objective]), way)
    backup.q.ravel()[known.index] = known.q.hi
    residual = max(evaluated.residual, float(np.max(gain, initial=0.0)))
    bound = _bound(process, objective, gain)
    return LevelSolution(evaluated.values, backup, policy, known, iterations, residual, bound)


def rows_of(process: MOMDP, policy: Int[np.ndarray, " S"]) -> Int[np.ndarray, " S"]:
    """The rows of the transitions that a policy takes, one for each state."""
    return np.arange(process.num_states) * process.num_actions + policy


def chain_system(process: MOMDP, rows: Int[np.ndarray, " S"], gamma: float, way: linear.Way) -> linear.System:
    """The equations of the chain that takes row `rows[s]` of the transitions in state s."""
    chain = process.transitions[rows]
    if process.terminal.any():
        kept = np.repeat(~process.terminal, np.diff(chain.indptr))
        chain.data = np.where(kept, chain.data, 0.0)
    return linear.System(way, chain, gamma)


def refine(system: linear.System, rewards: Doubled, guess: Float[np.ndarray, " S"] | None) -> Evaluated:
    """Solve `v = r + gamma P v`, then correct the solution by its exact residual until nothing is left to correct."""
    value = doubled.exactly(system.solve(rewards.hi, guess))
    residual, size = _residual(system, rewards, value)
    for _ in range(_MOST_REFINEMENTS):
        # What is left over where nothing can be corrected would hide how much can be where values are small.
        wrong = np.where(np.abs(residual) > doubled.PRECISION * size, residual, 0.0)
        if not wrong.any():
            break
        better = doubled.add(value, doubled.exactly(system.solve(wrong, rtol=1e-10)))
        left, total = _residual(system, rewards, better)
        if not np.max(np.abs(left), where=np.abs(left) > doubled.PRECISION * total, initial=0.0) < np.max(
            np.abs(wrong)
        ):
            break
        value, residual, size = better, left, total
    error = bounds.bound(system, np.abs(residual) + 2 * doubled.PRECISION * size)
    return Evaluated(Values(value, error), float(np.max(np.abs(residual), initial=0.0)))


def _residual(system: linear.System, rewards: Doubled, value: Doubled) -> tuple[Float[Arr, " S"], Float[Arr, " S"]]:
    """`r + gamma P v - v`, computed with twice the digits; and the size of what is added up in it."""
    ahead = doubled.times(system.mean(value), system.gamma)
    residual = doubled.subtract(doubled.add(rewards, ahead), value).hi
    size = np.abs(rewards.hi) + system.gamma * (system.chain @ np.abs(value.hi)) + np.abs(value.hi)
    return residual, size


def climb(
    process: MOMDP,
    objective: int,
    allowed: Bool[np.ndarray, "S A"],
    start: Int[np.ndarray, " S"],
    way: linear.Way,
    clock: Clock,
    *,
    by_values: bool = False,
) -> Climbed:
    """Policy iteration in ordinary arithmetic."""
    policy, values, iteration = start, np.zeros(process.num_states), 0
    if by_values or way == "iterative":
        policy, values, iteration = _sweep(process, objective, allowed, start, clock)
    states, gamma = np.arange(process.num_states), float(process.gamma[objective])
    while True:
        iteration += 1
        rows, before = rows_of(process, policy), values
        system = chain_system(process, rows, gamma, way)
        values = system.solve(process.rewards[objective].ravel()[rows], values)
        q = np.where(allowed, process.backup(values, objective), -np.inf)
        best, own = np.argmax(q, axis=1), q[states, policy]
        better = q[states, best] - own > _ROUNDING * (np.abs(q[states, best]) + np.abs(own))
        # No state loses by an improvement. Where one does lose as much as any gains, all that is left is noise between
        # actions that nearly tie, and going on could go round in circles.
        circles = iteration > 1 and np.max(values - before) <= np.max(before - values)
        clock.report(process.signals[objective], iteration, np.inf)
        if not better.any() or circles or clock.expired:
            return Climbed(policy, values, iteration, system)
        improved = np.where(better, best, policy)
        if gamma == 1 and not is_proper(process, improved):
            return Climbed(policy, values, iteration, system)
        policy = improved


def _sweep(
    process: MOMDP, objective: int, allowed: Bool[np.ndarray, "S A"], start: Int[np.ndarray, " S"], clock: Clock
) -> tuple[Int[np.ndarray, " S"], Float[np.ndarray, " S"], int]:
    """Modified policy iteration: improve, then some sweeps `v <- r + gamma P v` in place of an evaluation, until hardly
    any action changes."""
    states, gamma = np.arange(process.num_states), float(process.gamma[objective])
    policy, values = start, np.zeros(process.num_states)
    iteration = 0
    while iteration < _MOST_SWEEPS:
        iteration += 1
        q = np.where(allowed, process.backup(values, objective), -np.inf)
        best, own = np.argmax(q, axis=1), q[states, policy]
        better = q[states, best] - own > _ROUNDING * (np.abs(q[states, best]) + np.abs(own))
        policy = np.where(better, best, policy)
        if better.sum() <= 1e-4 * len(states) or clock.expired:
            break
        rows = rows_of(process, policy)
        chain, rewards = chain_system(process, rows, gamma, "iterative").chain, process.rewards[objective].ravel()[rows]
        for _ in range(_SWEEPS):
            values = rewards + gamma * (chain @ values)
    if gamma == 1 and not is_proper(process, policy):
        return start, np.zeros(process.num_states), iteration
    return policy, values, iteration


def _gains(
    process: MOMDP,
    objective: int,
    allowed: Bool[np.ndarray, "S A"],
    policy: Int[np.ndarray, " S"],
    values: Values,
    backup: Backup,
) -> tuple[Pairs, Float[np.ndarray, "S A"]]:
    """How much better than the policy's own each action surely is; and the exact values of those that come near."""
    own = values.value.hi
    unsure = backup.error + (values.error + 2.0**-52 * np.abs(own))[:, None]
    difference = backup.q - own[:, None]
    others = allowed & ~process.terminal[:, None]
    others[np.arange(process.num_states), policy] = False
    clear = others & (difference > 2 * unsure)
    gain = np.where(clear, difference, 0.0)
    near = others & (np.abs(difference) <= 2 * unsure)
    known = exact_pairs(process, objective, values, backup, np.flatnonzero(near))
    state = known.index // process.num_actions
    exact = doubled.subtract(known.q, values.value[state]).hi
    gain.ravel()[known.index] = np.where(exact > known.error + values.error[state], exact, 0.0)
    return known, gain


def _improve(
    process: MOMDP, objective: int, policy: Int[np.ndarray, " S"], gain: Float[np.ndarray, "S A"]
) -> Int[np.ndarray, " S"]:
    """Take the action that gains most wherever one gains; an error where that never ends and still gains."""
    better = np.where(gain.max(axis=1) > 0, np.argmax(gain, axis=1), policy)
    if process.gamma[objective] == 1 and not is_proper(process, better):
        chain = chain_system(process, rows_of(process, better), 1.0, "sparse").chain
        stuck = np.flatnonzero(~proper.ends(process, chain))
        raise InputError(
            f"Gamma is 1, and from {proper.states(stuck)} a policy that never ends gains "
            f"{process.signals[objective]!r} without limit; give a gamma below 1, or a finite horizon with "
            "`solve_horizon`."
        )
    return better


def is_proper(process: MOMDP, policy: Int[np.ndarray, " S"]) -> bool:
    """Does a policy end from everywhere?"""
    chain = chain_system(process, rows_of(process, policy), 1.0, "sparse").chain
    return bool(proper.ends(process, chain).all())


def _bound(process: MOMDP, objective: int, gain: Float[np.ndarray, "S A"]) -> float:
    """No policy is better than this one by more than its largest gain at every step, discounted."""
    most = float(np.max(gain, initial=0.0))
    gamma = float(process.gamma[objective])
    return most / (1 - gamma) if gamma < 1 else (np.inf if most > 0 else 0.0)
