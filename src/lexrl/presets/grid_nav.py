"""GridNav: the paper's settings, and those that reach the results in the documentation."""

from typing import Any

from lexrl.algorithms.lagrangian import PIDLagrangian
from lexrl.convergence import Convergence
from lexrl.dual_ascent import DualAscent
from lexrl.networks import Networks
from lexrl.presets import REWARD, SAFE, Preset, Presets, make
from lexrl.presets.paper import PLAIN, Constraints, table
from lexrl.schedules import Linear, OfRun
from lexrl.tolerance import Relative

CONSTRAINTS = Constraints("cost <= 5", "reward in 90..100, cost in 0..5", "cost <= 5 with 0.95")
TABLE = Networks(hidden_sizes=(), use_bias=False)

LPPO: dict[str, Any] = {
    "gamma": 0.95,
    "networks": TABLE,
    "num_envs": 64,
    "num_steps": 32,
    "gae_lambda": 0.99,
    "learning_rate": Linear(1e-2, 3.3e-4),
}
PROXIMAL = LPPO | {"critic_learning_rate": Linear(5e-2, 3.1e-3), "ent_coef": Linear(0.05, 0.0, OfRun(0.717))}
LA2C: dict[str, Any] = {
    "gamma": 0.95,
    "networks": TABLE,
    "num_envs": 32,
    "num_steps": 16,
    "learning_rate": Linear(3e-2, 1e-3),
}
ON_POLICY = LA2C | {"critic_learning_rate": Linear(5e-2, 5e-3)}
REPLAYED: dict[str, Any] = {
    "num_envs": 16,
    "num_steps": 4,
    "batch_size": 64,
    "gradient_steps": 4,
    "num_members": 1,
    "target_update_interval": 400,
    "polyak": 1.0,
    "double_q": True,
    "gamma": 0.95,
    "learning_rate": Linear(12.0, 0.0, OfRun(0.96)),
    "epsilon": Linear(0.3, 0.1, OfRun(0.667)),
    "hidden_sizes": (),
    "use_bias": False,
    "optimizer": "sgd",
    "max_grad_norm": 0.0,
}


def _paper_lppo() -> Preset:
    # Damped: with slack, the best policy mixes two that are worth the same.
    damped = DualAscent(damping=16.0, eta=Linear(0.3, 0.036))
    convergence = Convergence(sequential=True, patience=1_000.0)
    return Preset(
        make("paper-lppo", tolerance=0.0, multipliers=damped, convergence=convergence, **PROXIMAL), SAFE, 8_000_000
    )


def _paper_la2c() -> Preset:
    multipliers = DualAscent(beta=(1.0, 0.1), eta=0.3)
    return Preset(make("paper-la2c", tolerance=0.0, multipliers=multipliers, **ON_POLICY), SAFE, 2_000_000)


def _ldqn() -> Preset:
    return Preset(make("ldqn", tolerance=(1e-4, 0.0), return_scale=(5.0, 100.0), **PLAIN, **REPLAYED), SAFE, 3_000_000)


def _appropo() -> Preset:
    oracle = make("dqn", return_scale=1.0, **REPLAYED)
    appropo = make("appropo", target_set=CONSTRAINTS.target_set, episodes_per_update=8, oracle=oracle)
    return Preset(appropo, SAFE, 3_000_000)


def tuned() -> Presets:
    """Our settings: tables instead of networks."""
    return {
        "lppo": lambda: Preset(make("lppo", **LPPO), SAFE, 8_000_000),
        "la2c": lambda: Preset(make("la2c", **LA2C), SAFE, 2_000_000),
        "paper-lppo": _paper_lppo,
        "paper-la2c": _paper_la2c,
        "ldqn": _ldqn,
        "ppo": lambda: Preset(make("ppo", **PROXIMAL), REWARD, 8_000_000),
        "a2c": lambda: Preset(make("a2c", **ON_POLICY), REWARD, 2_000_000),
        "dqn": lambda: Preset(make("dqn", return_scale=100.0, **REPLAYED), REWARD, 3_000_000),
        "rcpo": lambda: Preset(
            make("rcpo", constraints=CONSTRAINTS.limit, lagrangian=PIDLagrangian(), **ON_POLICY), SAFE, 2_000_000
        ),
        "ppo-lagrangian": lambda: Preset(
            make("ppo-lagrangian", constraints=CONSTRAINTS.limit, lagrangian=PIDLagrangian(), **PROXIMAL),
            SAFE,
            8_000_000,
        ),
        "var-ac": lambda: Preset(
            make("var-ac", chance_constraints=CONSTRAINTS.chance_constraint, **ON_POLICY), SAFE, 2_000_000
        ),
        "appropo": _appropo,
        "random": lambda: Preset(make("random"), SAFE, 100_000),
    }


def paper() -> Presets:
    """Linear in a one-hot position without bias, Adam at 0.01, an update every 32 steps on 32 transitions."""
    return table(TABLE, CONSTRAINTS, learning_rate=0.01, num_steps=32, tolerance=Relative(0.05), episodes_per_update=8)


PRESETS = {"paper": paper, "tuned": tuned}
