"""CartSafe: the paper's settings, and those that reach the results in the documentation."""

from typing import Any

from lexrl.algorithms.lagrangian import PIDLagrangian
from lexrl.dual_ascent import DualAscent
from lexrl.networks import Networks
from lexrl.presets import REWARD, SAFE, Preset, Presets, make
from lexrl.presets.paper import PLAIN, Constraints, table
from lexrl.schedules import Linear, OfRun
from lexrl.tolerance import Relative

CONSTRAINTS = Constraints("cost <= 10", "reward in 90..350, cost in 0..10", "cost <= 10 with 0.95")
NETWORKS = Networks(hidden_sizes=(24, 24), normalize_observations=False)
ENV = {"observe_cos_sin": True}

LPPO: dict[str, Any] = {
    "num_envs": 32,
    "num_steps": 64,
    "networks": NETWORKS,
    "gae_lambda": 0.97,
    "learning_rate": Linear(5e-3, 5e-5, OfRun(0.99)),
}
PROXIMAL = LPPO | {"critic_learning_rate": Linear(2e-3, 1e-4, OfRun(0.99))}
LA2C: dict[str, Any] = {
    "num_envs": 16,
    "num_steps": 64,
    "networks": NETWORKS,
    "gae_lambda": 0.98,
    "learning_rate": Linear(3e-3, 1.3e-4),
}
ON_POLICY = LA2C | {"critic_learning_rate": 3e-3}
REPLAYED: dict[str, Any] = {
    "num_envs": 8,
    "num_steps": 4,
    "batch_size": 64,
    "gradient_steps": 4,
    "num_members": 1,
    "target_update_interval": 800,
    "polyak": 1.0,
    "double_q": True,
    "buffer_size": 1_536_000,
    "learning_rate": Linear(3e-4, 9e-6),
    "epsilon": Linear(1.0, 0.05, OfRun(0.0667)),
}


def _paper_lppo() -> Preset:
    return Preset(
        make("paper-lppo", tolerance=(0.02, 0.0), multipliers=_dual_ascent(), **PROXIMAL), SAFE, 6_000_000, ENV
    )


def _paper_la2c() -> Preset:
    return Preset(
        make("paper-la2c", tolerance=(0.05, 0.0), multipliers=_dual_ascent(), **ON_POLICY), SAFE, 10_000_000, ENV
    )


def _ldqn() -> Preset:
    ldqn = make("ldqn", gamma=(0.96, 0.99), tolerance=(0.25, 0.0), return_scale=(20.0, 100.0), **PLAIN, **REPLAYED)
    return Preset(ldqn, SAFE, 1_500_000, ENV)


def _rcpo() -> Preset:
    settings = ON_POLICY | {"learning_rate": Linear(3e-3, 6e-5), "lagrangian": _pid()}
    return Preset(make("rcpo", constraints=CONSTRAINTS.limit, **settings), SAFE, 2_000_000, ENV)


def _ppo_lagrangian() -> Preset:
    settings = PROXIMAL | {
        "learning_rate": Linear(5e-3, 5e-5),
        "critic_learning_rate": Linear(2e-3, 1e-4),
        "lagrangian": _pid(),
    }
    return Preset(make("ppo-lagrangian", constraints=CONSTRAINTS.limit, **settings), SAFE, 1_500_000, ENV)


def _var_ac() -> Preset:
    risk = PIDLagrangian(ki=Linear(30.0, 3.0), max_multiplier=300.0)
    settings = ON_POLICY | {"learning_rate": Linear(3e-3, 6e-5), "lagrangian": risk}
    var_ac = make("var-ac", chance_constraints=CONSTRAINTS.chance_constraint, **settings)
    return Preset(var_ac, SAFE, 4_000_000, ENV)


def _appropo() -> Preset:
    replayed = REPLAYED | {
        "gradient_steps": 8,
        "buffer_size": 512_000,
        "learning_rate": 3e-4,
        "epsilon": Linear(1.0, 0.05, OfRun(0.03)),
    }
    appropo = make(
        "appropo",
        target_set=CONSTRAINTS.target_set,
        episodes_per_update=8,
        mixture_size=128,
        eta=0.02,
        oracle=make("dqn", return_scale=1.0, **replayed),
    )
    return Preset(appropo, SAFE, 1_000_000, ENV)


def _dual_ascent() -> DualAscent:
    return DualAscent(beta=(1.0, 0.3), eta=0.3, damping=2.0)


def _pid() -> PIDLagrangian:
    return PIDLagrangian(ki=Linear(0.01, 0.001), kp=0.005, max_multiplier=5.0)


def tuned() -> Presets:
    """Our settings."""
    return {
        "lppo": lambda: Preset(make("lppo", **LPPO), SAFE, 6_000_000, ENV),
        "la2c": lambda: Preset(make("la2c", **LA2C), SAFE, 10_000_000, ENV),
        "paper-lppo": _paper_lppo,
        "paper-la2c": _paper_la2c,
        "ldqn": _ldqn,
        "ppo": lambda: Preset(make("ppo", **PROXIMAL), REWARD, 6_000_000, ENV),
        "a2c": lambda: Preset(make("a2c", **ON_POLICY), REWARD, 10_000_000, ENV),
        "dqn": lambda: Preset(make("dqn", return_scale=100.0, **REPLAYED), REWARD, 1_500_000, ENV),
        "rcpo": _rcpo,
        "ppo-lagrangian": _ppo_lagrangian,
        "var-ac": _var_ac,
        "appropo": _appropo,
        "random": lambda: Preset(make("random"), SAFE, 100_000, ENV),
    }


def paper() -> Presets:
    """Two hidden layers of 24, Adam at 0.001, an update every 8 steps on 8 transitions."""
    return table(
        NETWORKS, CONSTRAINTS, learning_rate=0.001, num_steps=8, tolerance=Relative(0.001), episodes_per_update=1
    )


PRESETS = {"paper": paper, "tuned": tuned}
