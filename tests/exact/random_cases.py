"""Small random MOMDPs of every kind, full of ties and near ties; and whether a solver is right about them."""

import itertools
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from rational_truth import (
    averages_of_all,
    best_mixture,
    corners_of,
    lexicographic_truth,
    returns_of_all,
    successive_optima,
)

from lexrl.exact import certify_program, critical_slack, solve, solve_average, solve_slack
from lexrl.momdp import MOMDP


class Verdict(NamedTuple):
    right: bool
    undecided: bool
    what: str = ""


def order_of(world):
    return " > ".join(f"max {name}" for name in world.signals)


def transitions(rng, states, actions):
    """Deterministic, in eighths, or arbitrary."""
    kind = rng.integers(3)
    if kind == 0:
        return np.eye(states)[rng.integers(states, size=(states, actions))]
    if kind == 1:
        return rng.multinomial(8, np.ones(states) / states, size=(states, actions)) / 8.0
    weights = rng.random((states, actions, states)) * (rng.random((states, actions, states)) < 0.7)
    weights[..., 0] += 1e-3
    return weights / weights.sum(axis=2, keepdims=True)


def rewards(rng, objectives, states, actions):
    """Small integers, quarters, or arbitrary."""
    kind = rng.integers(3)
    shape = (objectives, states, actions)
    if kind == 0:
        return rng.integers(-1, 2, shape).astype(float)
    return rng.integers(-4, 5, shape) / 4.0 if kind == 1 else rng.normal(size=shape)


def plain(rng, gamma=None, scales=None, masked=False):
    states, actions, objectives = rng.integers(2, 4), rng.integers(2, 4), rng.integers(1, 4)
    paid = rewards(rng, objectives, states, actions)
    if scales is not None:
        paid = paid * 2.0 ** rng.integers(-scales, scales + 1, (objectives, 1, 1))
    mask = rng.random((states, actions)) < 0.7 if masked else np.ones((states, actions), bool)
    mask[:, 0] |= ~mask.any(axis=1)
    gamma = rng.choice([0.5, 0.75, 0.9, 0.99]) if gamma is None else gamma
    moves = transitions(rng, states, actions)
    if masked:  # what is masked may be anything
        moves = np.where(mask[:, :, None], moves, np.nan)
    return MOMDP.from_arrays(moves, paid, gamma, action_mask=mask if masked else None)


def long(rng):
    return plain(rng, gamma=1 - 10 ** -rng.uniform(3, 6))


def scaled(rng):
    return plain(rng, scales=30)


def masked(rng):
    return plain(rng, masked=True)


def by_successor(rng):
    """Rewards that depend on the successor, and a discount for each objective."""
    states, actions, objectives = (int(n) for n in rng.integers((2, 2, 1), 4))
    paid = rng.integers(-3, 4, (objectives, states, actions, states)) / rng.choice([1.0, 2.0, 10.0])
    paid *= 2.0 ** rng.integers(-20, 21, (objectives, 1, 1, 1))
    return MOMDP.from_arrays(
        transitions(rng, states, actions), paid, rng.choice([0.5, 0.9, 0.99, 0.9999], size=objectives)
    )


def shortest_path(rng):
    """Gamma 1, costs only: some policies never end, and never gain."""
    states, actions = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    moves = np.zeros((states + 1, actions, states + 1))
    moves[:states] = transitions(rng, states + 1, actions)[:states]
    moves[:states, 0] = 0.5 * moves[:states, 0] + 0.5 * np.eye(states + 1)[states]
    moves[states, :, states] = 1.0
    costs = -rng.integers(0, 3, (int(rng.integers(1, 3)), states + 1, actions)) / 2.0
    return MOMDP.from_arrays(moves, costs, 1.0, terminal=[states])


def judge_actions(world, tolerances=None):
    """Values and sets of `solve` against the truth."""
    tolerances = [0.0] * world.num_objectives if tolerances is None else tolerances
    solution = solve(world, order_of(world), tolerance=tuple(map(float, tolerances)))
    values, sets, gaps = lexicographic_truth(world, tolerances)
    certificate = solution.certificate
    if certificate.num_undecided.any() or certificate.num_rounded.any():
        near = {(world.signals[i], s, a): gap for i, s, a, gap in gaps}
        listed = certificate.undecided + certificate.rounded
        real = all(abs(near[one.objective, one.state, one.action]) < 1e-12 for one in listed)
        return Verdict(real, True, "a pair that counts as tied has a gap")
    if not (solution.sets == sets).all():
        return Verdict(False, False, "sets")
    truth = np.array([[float(v) for v in one] for one in values])
    size = np.max(np.abs(truth), axis=1, keepdims=True)  # what cancels to 0 leaves the last of 30 digits
    close = (np.abs(solution.values - truth) <= 1e-14 * np.abs(truth) + 1e-20 * size).all()
    right = close and solution.certificate.holds
    return Verdict(bool(right), False, "values")


def judge_averages(rng):
    """Averages of processes that fall apart into classes."""
    states, actions, objectives = rng.integers(2, 5), 2, rng.integers(1, 4)
    moves = np.eye(states)[rng.integers(states, size=(states, actions))]
    if rng.random() < 0.5:
        moves = 0.5 * moves + 0.5 * np.eye(states)[rng.integers(states, size=(states, actions))]
    initial = np.eye(states)[rng.integers(states)] if rng.random() < 0.5 else np.ones(states) / states
    paid = rewards(rng, objectives, states, actions)
    world = MOMDP.from_arrays(moves, paid, 0.9, initial=initial)
    found = solve_average(world, order_of(world))
    best = [float(one) for one in max(averages_of_all(world))]
    right = np.allclose(found.best, best, rtol=1e-12, atol=1e-12) and not found.faults
    return Verdict(right and np.allclose(found.returns, best, rtol=1e-9, atol=1e-9), False, "averages")


def judge_limits(rng):
    """A limit, perhaps with a tolerance, on the first of two objectives, against mixtures of all policies."""
    states, actions = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    paid = rewards(rng, 2, states, actions) * 2.0 ** rng.integers(-20, 21, (2, 1, 1))
    world = MOMDP.from_arrays(transitions(rng, states, actions), paid, rng.choice([0.5, 0.9, 0.99]))
    points = returns_of_all(world)
    best, worst = max(one for one, _ in points), min(one for one, _ in points)
    limit = float(worst + (best - worst) * int(rng.integers(-1, 6)) / 4)
    slack = float(best - worst) / 8 if rng.random() < 0.3 else 0.0
    found = solve_slack(world, f"signal_1 >= {limit!r} > max signal_2", slack=(slack, 0.0))

    threshold = min(best, Fraction(limit)) - Fraction(slack)
    truth = [float(best), float(best_mixture(points, threshold))]
    size = np.max(np.abs(np.array([[float(a), float(b)] for a, b in points])), axis=0)
    # What cancels to 0 leaves the last of 30 digits.
    right = (np.abs(found.best - truth) <= 1e-12 * np.abs(truth) + 1e-20 * size).all() and not found.faults
    kept = (found.returns >= np.array([float(threshold), truth[1]]) - 1e-9 * size).all()
    if slack or limit < best:  # else the optimum is kept, without a price
        little = Fraction(1, 2**79) * max(abs(threshold), *(abs(one) for one, _ in points))
        brought = (best_mixture(points, threshold - little) - best_mixture(points, threshold)) / little
        right &= np.allclose(
            found.shadow_prices[1, 0], float(brought), rtol=1e-9, atol=1e-20 * size[1] / max(size[0], 1e-300)
        )
    near = abs(found.shortfalls[0] - max(0.0, limit - float(best))) <= 1e-12 * max(abs(limit), abs(float(best)))
    return Verdict(bool(right and kept and near), False, "limits")


def judge_programs(rng):
    """Up to three objectives of any size, each with a slack, a limit, both or neither; and the certificate."""
    states, actions, objectives = (int(n) for n in rng.integers((2, 2, 2), (4, 3, 4)))
    paid = rewards(rng, objectives, states, actions) * 2.0 ** rng.integers(-30, 31, (objectives, 1, 1))
    world = MOMDP.from_arrays(transitions(rng, states, actions), paid, rng.choice([0.5, 0.9, 0.99, 0.9999]))
    points = returns_of_all(world)
    spans = [(min(column), max(column)) for column in zip(*points, strict=True)]
    slacks = [float(high - low) * rng.choice([0.0, 0.0, 0.0625, 0.3]) for low, high in spans]
    limits = [float(low + (high - low) * int(rng.integers(-1, 6)) / 4) for low, high in spans]
    limits = [limit if rng.random() < 0.5 else None for limit in limits]
    parts = [
        f"max {name}" if limit is None else f"{name} >= {limit!r}"
        for name, limit in zip(world.signals, limits, strict=True)
    ]
    found = solve_slack(world, " > ".join(parts), slack=tuple(slacks))
    best, thresholds = successive_optima(
        points, [Fraction(one) for one in slacks], [None if one is None else Fraction(one) for one in limits]
    )
    size = np.max(np.abs(np.array(points, float)), axis=0)
    truth, needed = np.array(best, float), np.array([*thresholds[:-1], best[-1]], float)
    right = (np.abs(found.best - truth) <= 1e-10 * np.abs(truth) + 1e-18 * size).all()
    kept = (found.returns >= needed - 1e-9 * size).all()
    return Verdict(bool(right and kept and not certify_program(world, found).faults), False, "programs")


def judge_curves(rng):
    """Every corner of the critical-slack curve, its place and its shadow price, for objectives of any size."""
    states, actions = (int(n) for n in rng.integers(2, 4, 2))
    paid = rewards(rng, 2, states, actions) * 2.0 ** rng.integers(-40, 41, (2, 1, 1))
    world = MOMDP.from_arrays(transitions(rng, states, actions), paid, rng.choice([0.5, 0.9, 0.99, 0.9999]))
    corners, found = corners_of(returns_of_all(world)), critical_slack(world, order_of(world))
    if len(corners) != len(found):
        return Verdict(False, False, f"{len(found)} corners, not {len(corners)}")
    slacks = np.array([corners[0][0] - corner[0] for corner in corners], float)
    bought = np.array([corner[1] for corner in corners], float)
    size = np.max(np.abs(np.array(corners, float)), axis=0)
    right = (np.abs(np.array([point.slack for point in found]) - slacks) <= 1e-12 * size[0]).all()
    right &= (np.abs(np.array([point.returns[1] for point in found]) - bought) <= 1e-12 * size[1]).all()
    prices = [float((after[1] - corner[1]) / (corner[0] - after[0])) for corner, after in itertools.pairwise(corners)]
    right &= np.allclose([point.shadow_price for point in found], [*prices, 0.0], rtol=1e-9, atol=0)
    return Verdict(bool(right), False, "curve")


KINDS = {
    "plain": lambda rng: judge_actions(plain(rng)),
    "tolerance": lambda rng: judge_actions(
        world := plain(rng), rng.choice([0.0, 0.25, 0.5, 1.0], size=world.num_objectives).tolist()
    ),
    "scales": lambda rng: judge_actions(scaled(rng)),
    "long": lambda rng: judge_actions(long(rng)),
    "masks": lambda rng: judge_actions(masked(rng)),
    "shortest path": lambda rng: judge_actions(shortest_path(rng)),
    "averages": judge_averages,
    "limits": judge_limits,
    "by successor": lambda rng: judge_actions(by_successor(rng)),
    "programs": judge_programs,
    "curves": judge_curves,
}
