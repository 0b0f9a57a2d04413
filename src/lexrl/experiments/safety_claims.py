"""What the paper says about E2, and whether the runs confirm it."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lexrl.constraints import as_limits
from lexrl.experiments.schedule import Finished, finals
from lexrl.experiments.summary import decide
from lexrl.presets.cart_safe import CONSTRAINTS
from lexrl.report import stats
from lexrl.report.sections.claims import Claim
from lexrl.report.stats import Interval

SAFE_COST = as_limits(CONSTRAINTS.limit)[0].bound
"""A policy for CartSafe is safe if an episode costs at most this: the limit of the constrained algorithms."""
LEXICOGRAPHIC = {"paper": ("ldqn", "paper-la2c", "paper-lppo"), "tuned": ("ldqn", "la2c", "lppo")}
"""By preset."""

ALIKE = 0.05
"""Policies whose probabilities of a collision differ by less are about as safe."""


def all_claims(results: Sequence[Finished], titles: Mapping[str, str]) -> list[Claim]:
    """The claims about every environment and preset for which enough runs are finished; `titles` by algorithm."""
    claims = []
    for preset in dict.fromkeys(one.job.tags["preset"] for one in results):
        cart = _finals(results, "cart-safe", preset)
        if set(LEXICOGRAPHIC[preset]) <= cart.keys():
            claims += _about_cart_safe(preset, cart, titles)
        grid = _finals(results, "grid-nav", preset)
        if {"ldqn"} < grid.keys():
            claims.append(_about_grid_nav(preset, grid, titles))
        crossing = _finals(results, "intersection", preset)
        if {"random"} < crossing.keys():
            claims.append(_about_intersection(preset, crossing, titles))
    return claims


def _finals(results: Sequence[Finished], env: str, preset: str) -> dict[str, np.ndarray]:
    """`[seeds, (cost, reward)]` by algorithm."""
    key = (env, preset)
    here = [one for one in results if (one.job.tags["env"], one.job.tags["preset"]) == key]
    return {one.job.tags["algorithm"]: finals(one) for one in here}


def _is_safe(cost: Interval) -> bool:
    return bool(cost.high <= SAFE_COST)


def _is_unsafe(cost: Interval) -> bool:
    return bool(cost.low > SAFE_COST)


def _about_cart_safe(preset: str, values: Mapping[str, np.ndarray], titles: Mapping[str, str]) -> list[Claim]:
    cost = {name: stats.bootstrap([each[:, 0]]) for name, each in values.items()}
    reward = {name: stats.bootstrap([each[:, 1]]) for name, each in values.items()}
    claims = []
    for said, names in (
        ("On CartSafe the lexicographic algorithms are safe", LEXICOGRAPHIC[preset]),
        ("On CartSafe RCPO and ApproPO learn quite safe policies", ("rcpo", "appropo")),
    ):
        there = [cost[name] for name in names if name in cost]
        answer = decide(len(there) > 0 and all(map(_is_safe, there)), any(map(_is_unsafe, there)))
        claim = f"{said} ({preset} settings; safe: cost below {SAFE_COST:g})."
        claims.append(Claim(claim, answer, f"cost: {_listed(names, cost, titles)}"))
    claims.append(_most_reward(preset, cost, reward, titles))
    if "var-ac" in cost:
        over = (values["var-ac"][:, 0] > SAFE_COST).mean()
        numbers = (
            f"cost {cost['var-ac']}, reward {reward['var-ac']}; {over:.0%} of the seeds above {SAFE_COST:g} on average"
        )
        answer = decide(_is_unsafe(cost["var-ac"]), _is_safe(cost["var-ac"]))
        claims.append(Claim(f"VaR-AC struggles ({preset} settings).", answer, numbers))
    return claims


def _most_reward(
    preset: str, cost: Mapping[str, Interval], reward: Mapping[str, Interval], titles: Mapping[str, str]
) -> Claim:
    safe = [name for name in cost if _is_safe(cost[name]) and name != "random"]
    others = [name for name in safe if name != "ldqn"]
    most = "ldqn" in safe and all(reward["ldqn"].low > reward[name].high for name in others)
    less = _is_unsafe(cost["ldqn"]) or any(reward["ldqn"].high < reward[name].low for name in others)
    numbers = f"reward: {_listed(['ldqn', *others], reward, titles)}; LDQN's cost {cost['ldqn']}"
    return Claim(f"Of the safe ones LDQN has the most reward ({preset} settings).", decide(most, less), numbers)


def _about_grid_nav(preset: str, values: Mapping[str, np.ndarray], titles: Mapping[str, str]) -> Claim:
    cost = {name: stats.bootstrap([each[:, 0]]) for name, each in values.items()}
    reward = stats.bootstrap([values["ldqn"][:, 1]])
    others = [name for name in cost if name != "ldqn"]
    safest = all(cost["ldqn"].high < cost[name].low for name in others)
    not_safest = any(cost["ldqn"].low > cost[name].high for name in others)
    idle = reward.high < 1.0
    return Claim(
        f"On GridNav LDQN is safest, with no reward ({preset} settings).",
        decide(safest and idle, not_safest or reward.low >= 1.0),
        f"cost: {_listed(cost, cost, titles)}; LDQN's reward {reward}",
    )


def _about_intersection(preset: str, values: Mapping[str, np.ndarray], titles: Mapping[str, str]) -> Claim:
    collision = {name: stats.bootstrap([each[:, 0]]) for name, each in values.items() if name in titles}
    blind = collision["random"]
    learned = [each for name, each in collision.items() if name != "random"]
    none_safer = all(each.low > blind.low - ALIKE for each in learned)
    return Claim(
        f"On Intersection no algorithm is safer than random ({preset} settings).",
        decide(none_safer, any(each.high < blind.low for each in learned)),
        f"collisions per episode: {_listed(collision, collision, titles)}",
    )


def _listed(names: Iterable[str], values: Mapping[str, Interval], titles: Mapping[str, str]) -> str:
    return "; ".join(f"{titles[name]} {values[name]}" for name in names if name in values)
