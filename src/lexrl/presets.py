"""Settings that are known to work, as data: the paper's own, and ours.

`paper` is the paper's table of hyper-parameters (its supplement, "Hyperparameters"), with what it leaves open filled in
plainly. `tuned` is what reaches the results in the documentation.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from lexrl.algos import A2C, DQN, LA2C, LDQN, LPPO, PPO, Networks, Random
from lexrl.dual import Dual
from lexrl.errors import InputError
from lexrl.nets import Optimiser
from lexrl.schedules import Linear
from lexrl.tolerance import Relative

Name = Literal["paper", "tuned"]


class Preset(NamedTuple):
    """An algorithm with its settings, the world's settings, the order, and how long to train."""

    algorithm: Any
    world: dict[str, Any]
    order: str
    steps: int


SAFE, REWARD = "min cost > max reward", "max reward"
SMALL = Networks(hidden=(24, 24))
TABLE = Networks(hidden=(), bias=False)


def _paper_cart_safe() -> dict[str, Preset]:
    """Two hidden layers of 24, Adam at 0.001, an update every 8 steps on 8 transitions."""
    return _paper(SMALL, rate=0.001, every=8, slack=Relative(0.001))


def _paper_grid_nav() -> dict[str, Preset]:
    """Linear in a one-hot position without bias, Adam at 0.01, an update every 32 steps on 32 transitions."""
    return _paper(TABLE, rate=0.01, every=32, slack=Relative(0.05))


def _paper(networks: Networks, rate: float, every: int, slack: Relative) -> dict[str, Preset]:
    on_policy: dict[str, Any] = {
        "worlds": 1, "rollout": every, "networks": networks, "rate": rate, "critic_rate": rate
    }  # fmt: skip
    proximal: dict[str, Any] = on_policy | {"surrogate": "penalised", "minibatches": 1}
    replayed: dict[str, Any] = {
        "worlds": 1, "rollout": every, "batch": every, "updates": 1, "capacity": 100_000, "warmup": every, "period": 0,
        "hidden": networks.hidden, "bias": networks.bias, "rate": rate, "epsilon": 0.05,
    }  # fmt: skip
    return {
        "lppo": Preset(LPPO(tolerance=slack, **proximal), {}, SAFE, 100_000),
        "la2c": Preset(LA2C(tolerance=slack, **on_policy), {}, SAFE, 100_000),
        "ldqn": Preset(LDQN(tolerance=slack, **replayed), {}, SAFE, 100_000),
        "ppo": Preset(PPO(**proximal), {}, REWARD, 100_000),
        "a2c": Preset(A2C(**on_policy), {}, REWARD, 100_000),
        "dqn": Preset(DQN(**replayed), {}, REWARD, 100_000),
        "random": Preset(Random(), {}, SAFE, 100_000),
    }


def _tuned_cart_safe() -> dict[str, Preset]:
    world = {"trigonometric": True}
    prices = Dual(beta=(1.0, 0.3), eta=0.3, damping=2.0)
    proximal: dict[str, Any] = {
        "worlds": 32, "rollout": 64, "networks": SMALL, "trace": 0.97, "rate": Linear(5e-3, 5e-5, 2_900.0),
        "critic_rate": Linear(2e-3, 1e-4, 2_900.0),
    }  # fmt: skip
    on_policy: dict[str, Any] = {
        "worlds": 16, "rollout": 64, "networks": SMALL, "trace": 0.98, "rate": Linear(3e-3, 6e-5, 10_000.0),
        "critic_rate": 3e-3,
    }  # fmt: skip
    replayed: dict[str, Any] = {
        "worlds": 8, "rollout": 4, "batch": 64, "updates": 4, "period": 100, "double": True, "capacity": 1_536_000,
        "rate": Linear(3e-4, 5e-6, 190_000.0), "epsilon": Linear(1.0, 0.05, 100_000.0),
    }  # fmt: skip
    return {
        "lppo": Preset(LPPO(tolerance=(0.02, 0.0), dual=prices, **proximal), world, SAFE, 6_000_000),
        "la2c": Preset(LA2C(tolerance=(0.05, 0.0), dual=prices, **on_policy), world, SAFE, 10_000_000),
        "ldqn": Preset(
            LDQN(gamma=(0.96, 0.99), tolerance=(0.25, 0.0), scale=(20.0, 100.0), **replayed), world, SAFE, 1_500_000
        ),
        "ppo": Preset(PPO(**proximal), world, REWARD, 6_000_000),
        "a2c": Preset(A2C(**on_policy), world, REWARD, 10_000_000),
        "dqn": Preset(DQN(scale=100.0, **replayed), world, REWARD, 1_500_000),
        "random": Preset(Random(), world, SAFE, 100_000),
    }


def _tuned_grid_nav() -> dict[str, Preset]:
    """Tables. The prices are damped: with slack, the best policy is a mixture of two that are worth the same."""
    on_policy: dict[str, Any] = {"gamma": 0.95, "networks": TABLE}
    proximal: dict[str, Any] = on_policy | {
        "worlds": 64, "rollout": 32, "trace": 0.99, "rate": Linear(1e-2, 1e-4, 4_000.0),
        "critic_rate": Linear(5e-2, 2e-3, 4_000.0), "entropy": Linear(0.05, 0.0, 2_800.0),
    }  # fmt: skip
    plain: dict[str, Any] = on_policy | {
        "worlds": 32, "rollout": 16, "rate": Linear(3e-2, 1e-3, 3_900.0), "critic_rate": Linear(5e-2, 5e-3, 3_900.0),
    }  # fmt: skip
    replayed: dict[str, Any] = {
        "worlds": 16, "rollout": 4, "batch": 64, "updates": 4, "period": 25, "double": True, "gamma": 0.95,
        "rate": Linear(12.0, 0.0, 180_000.0), "epsilon": Linear(0.3, 0.1, 2_000_000.0), "hidden": (), "bias": False,
        "optimiser": Optimiser("sgd", longest=0.0),
    }  # fmt: skip
    prices = Dual(sequential=True, damping=16.0, eta=Linear(0.3, 0.03, 4_000.0), patience=1_000.0)
    return {
        "lppo": Preset(LPPO(tolerance=0.0, dual=prices, **proximal), {}, SAFE, 8_000_000),
        "la2c": Preset(LA2C(tolerance=0.0, dual=Dual(beta=(1.0, 0.1), eta=0.3), **plain), {}, SAFE, 2_000_000),
        "ldqn": Preset(LDQN(tolerance=(1e-4, 0.0), scale=(5.0, 100.0), **replayed), {}, SAFE, 3_000_000),
        "ppo": Preset(PPO(**proximal), {}, REWARD, 8_000_000),
        "a2c": Preset(A2C(**plain), {}, REWARD, 2_000_000),
        "dqn": Preset(DQN(scale=100.0, **replayed), {}, REWARD, 3_000_000),
        "random": Preset(Random(), {}, SAFE, 100_000),
    }


_MAKERS: dict[tuple[Name, str], Callable[[], dict[str, Preset]]] = {
    ("paper", "cart-safe"): _paper_cart_safe,
    ("paper", "grid-nav"): _paper_grid_nav,
    ("tuned", "cart-safe"): _tuned_cart_safe,
    ("tuned", "grid-nav"): _tuned_grid_nav,
}


def known(name: Name, world: str) -> dict[str, Preset]:
    """The presets of a name for a world, by algorithm."""
    maker = _MAKERS.get((name, world))
    return {} if maker is None else maker()


def preset(algorithm: str, world: str, name: Name = "tuned") -> Preset:
    """The settings of an algorithm on a world, as in `preset("lppo", "cart-safe")`."""
    found = known(name, world).get(algorithm)
    if found is None:
        there = [f"{one} on {place}" for kind, place in _MAKERS if kind == name for one in known(name, place)]
        raise InputError(f"There is no preset {name!r} for {algorithm} on {world}; there are: {', '.join(there)}.")
    return found
