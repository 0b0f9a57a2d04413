"""Ground truth in rational numbers, by enumeration; written without the code under test.

Everything is taken as the doubles say it, probabilities in the proportions they say, and computed exactly: a tie is a
tie, and a gap of 1e-40 is a gap.
"""

import itertools
from fractions import Fraction

import numpy as np


def exact_arrays(world):
    """Transitions `[S][A][S]` and rewards `[M][S][A]` as fractions."""
    dense = world.transitions.toarray().reshape(world.num_states, world.num_actions, world.num_states)
    transitions = [[unit([Fraction(float(p)) for p in row]) for row in state] for state in dense]
    if world.rewards_rest is not None:
        return transitions, [[[Fraction(float(r)) for r in state] for state in one] for one in world.rewards]
    return transitions, [[[_mean(world, i, s, a) for a in range(world.num_actions)] for s in range(world.num_states)]
                         for i in range(world.num_objectives)]  # fmt: skip


def _mean(world, objective, state, action):
    """What (s, a) is expected to pay where that depends on the successor."""
    row = state * world.num_actions + action
    stored = slice(world.transitions.indptr[row], world.transitions.indptr[row + 1])
    weights = unit([Fraction(float(p)) for p in world.transitions.data[stored]])
    paid = [Fraction(float(r)) for r in world.outcome_rewards[stored, objective]]
    return sum((p * r for p, r in zip(weights, paid, strict=True)), Fraction(0))


def solve_equations(matrix, right):
    """Gauss and Jordan; None where the matrix is singular."""
    n = len(matrix)
    rows = [[*matrix[i], right[i]] for i in range(n)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def policies_within(allowed):
    """Every deterministic policy within sets of actions, one for each state."""
    return itertools.product(*(np.flatnonzero(row).tolist() for row in allowed))


def values_of(world, arrays, objective, policy):
    """Values of a policy; None where gamma is 1 and it does not end."""
    transitions, rewards = arrays
    n, gamma = world.num_states, Fraction(float(world.gamma[objective]))
    end = world.terminal
    if gamma == 1 and not ends(world, policy):
        return None
    matrix = [
        [Fraction(int(s == t)) - (0 if end[s] else gamma * transitions[s][policy[s]][t]) for t in range(n)]
        for s in range(n)
    ]
    right = [Fraction(0) if end[s] else rewards[objective][s][policy[s]] for s in range(n)]
    return solve_equations(matrix, right)


def ends(world, policy):
    dense = world.transitions.toarray().reshape(world.num_states, world.num_actions, world.num_states)
    reached = world.terminal.copy()
    for _ in range(world.num_states):
        for s in range(world.num_states):
            reached[s] |= bool((dense[s, policy[s]] > 0) @ reached)
    return bool(reached.all())


def lexicographic_truth(world, tolerances):
    """Values `[M][S]` and sets `[M + 1, S, A]` with action tolerance, level by level."""
    arrays = exact_arrays(world)
    transitions, rewards = arrays
    allowed = world.action_mask.copy()
    sets, values, gaps = [allowed], [], []
    for i in range(world.num_objectives):
        each = [values_of(world, arrays, i, policy) for policy in policies_within(allowed)]
        each = [one for one in each if one is not None]
        best = [max(one[s] for one in each) for s in range(world.num_states)]
        gamma, tau = Fraction(float(world.gamma[i])), Fraction(float(tolerances[i]))
        kept = np.zeros_like(allowed)
        for s, a in np.argwhere(allowed):
            if world.terminal[s]:
                kept[s, a] = True
                continue
            ahead = sum((transitions[s][a][t] * best[t] for t in range(world.num_states) if not world.terminal[t]), 0)
            distance = rewards[i][s][a] + gamma * ahead - best[s] + tau
            kept[s, a] = distance >= 0
            scale = abs(rewards[i][s][a]) + abs(best[s]) + tau
            gaps.append((i, int(s), int(a), float(distance / scale) if scale else 0.0))
        allowed = kept
        sets.append(kept)
        values.append(best)
    return values, np.stack(sets), gaps


def returns_of_all(world):
    """`J` of every deterministic policy, one gamma for all."""
    arrays = exact_arrays(world)
    first = unit([Fraction(float(p)) for p in world.initial])
    found = []
    for policy in policies_within(world.action_mask):
        each = [values_of(world, arrays, i, policy) for i in range(world.num_objectives)]
        found.append([sum((p * v for p, v in zip(first, one, strict=True)), Fraction(0)) for one in each])
    return found


def best_mixture(points, threshold):
    """The largest second coordinate of a mixture of points whose first is at least the threshold."""
    best = None
    for (a1, a2), (b1, b2) in itertools.combinations_with_replacement(points, 2):
        if max(a1, b1) < threshold:
            continue
        ends_ = [a2 if a1 >= threshold else None, b2 if b1 >= threshold else None]
        if (a1 - threshold) * (b1 - threshold) < 0:
            share = (threshold - b1) / (a1 - b1)
            ends_.append(share * a2 + (1 - share) * b2)
        best = max(one for one in [best, *ends_] if one is not None)
    return best


def successive_optima(points, slacks, limits):
    """What each objective can have within the slacks and limits (None: there is none) of the ones before, and the
    threshold it leaves: successive linear programs over mixtures of points, by enumeration of their vertices."""
    best, thresholds = [], []
    for i in range(len(points[0])):
        best.append(max(_vertices(points, i, thresholds)))
        enough = best[i] if limits[i] is None else min(best[i], limits[i])
        thresholds.append(enough - slacks[i])
    return best, thresholds


def _vertices(points, i, thresholds):
    """Objective i at every vertex of the mixtures that reach the thresholds of the first objectives: weights that are
    determined by the constraints that hold with equality."""
    for tight in range(len(thresholds) + 1):
        for mixed in itertools.combinations(points, tight + 1):
            for which in itertools.combinations(range(len(thresholds)), tight):
                matrix = [[Fraction(1)] * len(mixed), *([point[j] for point in mixed] for j in which)]
                weights = solve_equations(matrix, [Fraction(1), *(thresholds[j] for j in which)])
                if weights is None or min(weights) < 0:
                    continue
                reached = [sum((w * point[j] for w, point in zip(weights, mixed, strict=True)), Fraction(0))
                           for j in range(i + 1)]  # fmt: skip
                if all(reached[j] >= threshold for j, threshold in enumerate(thresholds)):
                    yield reached[i]


def corners_of(points):
    """Where `f(e) = max J_2` over mixtures with `J_1 >= J*_1 - e` bends, from its left end to its right one."""
    found = []
    for point in sorted(map(tuple, points), key=lambda one: (-one[0], -one[1])):
        if found and point[1] <= found[-1][1]:
            continue
        while len(found) > 1 and _above(found[-2], found[-1], point):
            found.pop()
        found.append(point)
    return found


def _above(first, second, third):
    """Is the chord from the first point to the third nowhere below the second?"""
    gained, given = second[1] - first[1], first[0] - second[0]
    return gained * (second[0] - third[0]) <= (third[1] - second[1]) * given


def unit(row):
    """Probabilities sum to 1, exactly; a row of zeros, of an action that there is not, stays."""
    whole = sum(row)
    return [p / whole for p in row] if whole else row


def averages_of_all(world):
    """Long-run averages `[policies][M]` from the initial distribution, whatever classes a policy has."""
    transitions, rewards = exact_arrays(world)
    first = unit([Fraction(float(p)) for p in world.initial])
    found = []
    for policy in policies_within(world.action_mask):
        chain = [unit(transitions[s][policy[s]]) for s in range(world.num_states)]
        weights = long_run(chain, first)
        found.append([sum((weights[s] * one[s][policy[s]] for s in range(len(chain))), Fraction(0)) for one in rewards])
    return found


def long_run(chain, first):
    """How a chain spends its time in the long run."""
    n = len(chain)
    reach = np.array([[chain[s][t] > 0 or s == t for t in range(n)] for s in range(n)])
    for _ in range(n):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    recurrent = [s for s in range(n) if all(reach[t, s] for t in range(n) if reach[s, t])]
    passing = [s for s in range(n) if s not in recurrent]
    arrived = {s: first[s] for s in recurrent}
    if passing:
        matrix = [[Fraction(int(s == t)) - chain[t][s] for t in passing] for s in passing]
        visits = solve_equations(matrix, [first[s] for s in passing])
        for s in recurrent:
            arrived[s] += sum((v * chain[t][s] for v, t in zip(visits, passing, strict=True)), Fraction(0))
    weights = [Fraction(0)] * n
    for one in {tuple(t for t in recurrent if reach[s, t]) for s in recurrent}:
        matrix = [[chain[t][s] - Fraction(int(s == t)) for t in one] for s in one]
        matrix[0] = [Fraction(1)] * len(one)
        share = solve_equations(matrix, [Fraction(1)] + [Fraction(0)] * (len(one) - 1))
        arriving = sum((arrived[s] for s in one), Fraction(0))
        for s, part in zip(one, share, strict=True):
            weights[s] = arriving * part
    return weights
