"""Settings that are known to work, as data: the paper's own, and ours.

`paper` is the paper's table of hyper-parameters (its supplement, "Hyperparameters"), with what it leaves open filled in
plainly. `tuned` is what reaches the results in the documentation.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax

from lexrl.algorithms import (
    A2C,
    DQN,
    LA2C,
    LDQN,
    LPPO,
    PPO,
    RCPO,
    ApproPO,
    PIDLagrangian,
    PPOLagrangian,
    Random,
    VaRAC,
)
from lexrl.errors import InputError
from lexrl.multipliers import Multipliers
from lexrl.networks import Networks
from lexrl.schedules import Linear
from lexrl.stages import Stages
from lexrl.tolerance import Relative

Name = Literal["paper", "tuned"]


class Preset(NamedTuple):
    """An algorithm with its settings, the world's settings, the order, and how long to train."""

    algorithm: Any
    world: dict[str, Any]
    order: str
    steps: int


class Limits(NamedTuple):
    """What learners that are told limits are told in a world, as the paper has it."""

    limit: str
    box: str
    chance: str


CART_SAFE = Limits("cost <= 10", "reward in 90..350, cost in 0..10", "cost <= 10 with 0.95")
GRID_NAV = Limits("cost <= 5", "reward in 90..100, cost in 0..5", "cost <= 5 with 0.95")

SAFE, REWARD = "min cost > max reward", "max reward"
SMALL = Networks(hidden_sizes=(24, 24))
TABLE = Networks(hidden_sizes=(), use_bias=False)


def _paper_cart_safe() -> dict[str, Preset]:
    """Two hidden layers of 24, Adam at 0.001, an update every 8 steps on 8 transitions."""
    return _paper(SMALL, CART_SAFE, rate=0.001, every=8, slack=Relative(0.001), episodes=1)


def _paper_grid_nav() -> dict[str, Preset]:
    """Linear in a one-hot position without bias, Adam at 0.01, an update every 32 steps on 32 transitions."""
    return _paper(TABLE, GRID_NAV, rate=0.01, every=32, slack=Relative(0.05), episodes=8)


def _paper(
    networks: Networks, told: Limits, rate: float, every: int, slack: Relative, episodes: int
) -> dict[str, Preset]:
    on_policy: dict[str, Any] = {
        "num_envs": 1, "num_steps": every, "networks": networks, "learning_rate": rate, "critic_learning_rate": rate
    }  # fmt: skip
    proximal: dict[str, Any] = on_policy | {"surrogate": "kl_penalty", "num_minibatches": 1}
    replayed: dict[str, Any] = {
        "num_envs": 1,
        "num_steps": every,
        "batch_size": every,
        "gradient_steps": 1,
        "buffer_size": 100_000,
        "learning_starts": every,
        "target_update_interval": 0,
        "hidden_sizes": networks.hidden_sizes,
        "use_bias": networks.use_bias,
        "learning_rate": rate,
        "epsilon": 0.05,
    }
    return {
        "lppo": Preset(LPPO(tolerance=slack, **proximal), {}, SAFE, 100_000),
        "la2c": Preset(LA2C(tolerance=slack, **on_policy), {}, SAFE, 100_000),
        "ldqn": Preset(LDQN(tolerance=slack, **replayed), {}, SAFE, 100_000),
        "ppo": Preset(PPO(**proximal), {}, REWARD, 100_000),
        "a2c": Preset(A2C(**on_policy), {}, REWARD, 100_000),
        "dqn": Preset(DQN(**replayed), {}, REWARD, 100_000),
        "rcpo": Preset(RCPO(constraints=told.limit, **on_policy), {}, SAFE, 100_000),
        "ppo-lagrangian": Preset(PPOLagrangian(constraints=told.limit, **proximal), {}, SAFE, 100_000),
        "var-ac": Preset(VaRAC(chance_constraints=told.chance, **on_policy), {}, SAFE, 100_000),
        "appropo": Preset(
            ApproPO(target_set=told.box, episodes_per_update=episodes, oracle=DQN(**replayed)), {}, SAFE, 100_000
        ),
        "random": Preset(Random(), {}, SAFE, 100_000),
    }


def _tuned_cart_safe() -> dict[str, Preset]:
    world = {"observe_cos_sin": True}
    multipliers = Multipliers(beta=(1.0, 0.3), eta=0.3, damping=2.0)
    proximal: dict[str, Any] = {
        "num_envs": 32,
        "num_steps": 64,
        "networks": SMALL,
        "gae_lambda": 0.97,
        "learning_rate": Linear(5e-3, 5e-5, 2_900.0),
        "critic_learning_rate": Linear(2e-3, 1e-4, 2_900.0),
    }
    on_policy: dict[str, Any] = {
        "num_envs": 16,
        "num_steps": 64,
        "networks": SMALL,
        "gae_lambda": 0.98,
        "learning_rate": Linear(3e-3, 6e-5, 10_000.0),
        "critic_learning_rate": 3e-3,
    }
    replayed: dict[str, Any] = {
        "num_envs": 8,
        "num_steps": 4,
        "batch_size": 64,
        "gradient_steps": 4,
        "target_update_interval": 800,
        "double_q": True,
        "buffer_size": 1_536_000,
        "learning_rate": Linear(3e-4, 5e-6, 190_000.0),
        "epsilon": Linear(1.0, 0.05, 100_000.0),
    }
    return {
        "lppo": Preset(LPPO(tolerance=(0.02, 0.0), multipliers=multipliers, **proximal), world, SAFE, 6_000_000),
        "la2c": Preset(LA2C(tolerance=(0.05, 0.0), multipliers=multipliers, **on_policy), world, SAFE, 10_000_000),
        "ldqn": Preset(
            LDQN(gamma=(0.96, 0.99), tolerance=(0.25, 0.0), return_scale=(20.0, 100.0), **replayed),
            world,
            SAFE,
            1_500_000,
        ),
        "ppo": Preset(PPO(**proximal), world, REWARD, 6_000_000),
        "a2c": Preset(A2C(**on_policy), world, REWARD, 10_000_000),
        "dqn": Preset(DQN(return_scale=100.0, **replayed), world, REWARD, 1_500_000),
        **_limited_cart_safe(world, proximal, on_policy, replayed),
        "random": Preset(Random(), world, SAFE, 100_000),
    }


def _limited_cart_safe(
    world: dict[str, Any], proximal: dict[str, Any], on_policy: dict[str, Any], replayed: dict[str, Any]
) -> dict[str, Preset]:
    """Learners that are told limits need fewer steps than the others: their rates fall sooner."""
    limit, box, chance = CART_SAFE
    plain: dict[str, Any] = on_policy | {"learning_rate": Linear(3e-3, 6e-5, 1_950.0)}
    risky: dict[str, Any] = on_policy | {"learning_rate": Linear(3e-3, 6e-5, 3_900.0)}
    quick: dict[str, Any] = proximal | {
        "learning_rate": Linear(5e-3, 5e-5, 730.0),
        "critic_learning_rate": Linear(2e-3, 1e-4, 730.0),
    }
    oracle: dict[str, Any] = replayed | {
        "gradient_steps": 8, "buffer_size": 512_000, "learning_rate": 3e-4, "epsilon": Linear(1.0, 0.05, 30_000.0)
    }  # fmt: skip

    def prices(updates: float) -> PIDLagrangian:
        return PIDLagrangian(ki=Linear(0.01, 0.001, updates), kp=0.005, max_multiplier=5.0)

    broken = PIDLagrangian(ki=Linear(30.0, 3.0, 3_900.0), max_multiplier=300.0)
    mixture = ApproPO(target_set=box, episodes_per_update=8, mixture_size=128, eta=0.02, oracle=DQN(**oracle))
    return {
        "rcpo": Preset(RCPO(constraints=limit, lagrangian=prices(1_950.0), **plain), world, SAFE, 2_000_000),
        "ppo-lagrangian": Preset(
            PPOLagrangian(constraints=limit, lagrangian=prices(730.0), **quick), world, SAFE, 1_500_000
        ),
        "var-ac": Preset(VaRAC(chance_constraints=chance, lagrangian=broken, **risky), world, SAFE, 4_000_000),
        "appropo": Preset(mixture, world, SAFE, 1_000_000),
    }


def _tuned_grid_nav() -> dict[str, Preset]:
    """Tables. The prices are damped: with slack, the best policy is a mixture of two that are worth the same."""
    on_policy: dict[str, Any] = {"gamma": 0.95, "networks": TABLE}
    proximal: dict[str, Any] = on_policy | {
        "num_envs": 64, "num_steps": 32, "gae_lambda": 0.99, "learning_rate": Linear(1e-2, 1e-4, 4_000.0),
        "critic_learning_rate": Linear(5e-2, 2e-3, 4_000.0), "ent_coef": Linear(0.05, 0.0, 2_800.0),
    }  # fmt: skip
    plain: dict[str, Any] = on_policy | {
        "num_envs": 32,
        "num_steps": 16,
        "learning_rate": Linear(3e-2, 1e-3, 3_900.0),
        "critic_learning_rate": Linear(5e-2, 5e-3, 3_900.0),
    }
    replayed: dict[str, Any] = {
        "num_envs": 16,
        "num_steps": 4,
        "batch_size": 64,
        "gradient_steps": 4,
        "target_update_interval": 400,
        "double_q": True,
        "gamma": 0.95,
        "learning_rate": Linear(12.0, 0.0, 180_000.0),
        "epsilon": Linear(0.3, 0.1, 2_000_000.0),
        "hidden_sizes": (),
        "use_bias": False,
        "optimizer": "sgd",
        "max_grad_norm": 0.0,
    }
    stages = Stages(patience=1_000.0, sequential=True)
    multipliers = Multipliers(eta=Linear(0.3, 0.03, 4_000.0), damping=16.0)
    simultaneous = Multipliers(beta=(1.0, 0.1), eta=0.3)
    return {
        "lppo": Preset(LPPO(tolerance=0.0, stages=stages, multipliers=multipliers, **proximal), {}, SAFE, 8_000_000),
        "la2c": Preset(LA2C(tolerance=0.0, multipliers=simultaneous, **plain), {}, SAFE, 2_000_000),
        "ldqn": Preset(LDQN(tolerance=(1e-4, 0.0), return_scale=(5.0, 100.0), **replayed), {}, SAFE, 3_000_000),
        "ppo": Preset(PPO(**proximal), {}, REWARD, 8_000_000),
        "a2c": Preset(A2C(**plain), {}, REWARD, 2_000_000),
        "dqn": Preset(DQN(return_scale=100.0, **replayed), {}, REWARD, 3_000_000),
        "rcpo": Preset(RCPO(constraints=GRID_NAV.limit, **plain), {}, SAFE, 2_000_000),
        "ppo-lagrangian": Preset(PPOLagrangian(constraints=GRID_NAV.limit, **proximal), {}, SAFE, 8_000_000),
        "var-ac": Preset(VaRAC(chance_constraints=GRID_NAV.chance, **plain), {}, SAFE, 2_000_000),
        "appropo": Preset(
            ApproPO(target_set=GRID_NAV.box, episodes_per_update=8, oracle=DQN(**replayed)), {}, SAFE, 3_000_000
        ),
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


def shortened(found: Preset, share: float) -> Preset:
    """A preset with a share of its steps; rates that change over time do so in that share of it.

    A buffer that would never be filled is made smaller: that changes no number, and saves memory.
    """
    steps = max(1, round(share * found.steps))

    def shorter(part: Any) -> Any:
        length = part.steps if isinstance(part, Linear) else None
        return Linear(part.start, part.end, share * length) if isinstance(length, float) else part

    def smaller(learner: Any) -> Any:
        if isinstance(learner, ApproPO):
            return dataclasses.replace(learner, oracle=smaller(learner.oracle))
        if not isinstance(learner, DQN | LDQN):
            return learner
        block = learner.num_steps * learner.num_envs
        return dataclasses.replace(
            learner, buffer_size=min(learner.buffer_size, -(-max(steps, learner.learning_starts) // block) * block)
        )

    algorithm = jax.tree.map(shorter, found.algorithm, is_leaf=lambda part: isinstance(part, Linear))
    return found._replace(algorithm=smaller(algorithm), steps=steps)
