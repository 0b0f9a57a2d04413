"""CartSafe: the paper's settings, and those that reach the results in the documentation."""

from typing import Any

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
from lexrl.multipliers import Multipliers
from lexrl.networks import Networks
from lexrl.presets import REWARD, SAFE, Preset, Presets
from lexrl.presets.paper import Constraints, table
from lexrl.schedules import Linear
from lexrl.tolerance import Relative

CONSTRAINTS = Constraints("cost <= 10", "reward in 90..350, cost in 0..10", "cost <= 10 with 0.95")
NETWORKS = Networks(hidden_sizes=(24, 24))
ENV = {"observe_cos_sin": True}

PROXIMAL: dict[str, Any] = {
    "num_envs": 32,
    "num_steps": 64,
    "networks": NETWORKS,
    "gae_lambda": 0.97,
    "learning_rate": Linear(5e-3, 5e-5, 2_900.0),
    "critic_learning_rate": Linear(2e-3, 1e-4, 2_900.0),
}
ON_POLICY: dict[str, Any] = {
    "num_envs": 16,
    "num_steps": 64,
    "networks": NETWORKS,
    "gae_lambda": 0.98,
    "learning_rate": Linear(3e-3, 6e-5, 10_000.0),
    "critic_learning_rate": 3e-3,
}
REPLAYED: dict[str, Any] = {
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


def paper() -> Presets:
    """Two hidden layers of 24, Adam at 0.001, an update every 8 steps on 8 transitions."""
    return table(
        NETWORKS, CONSTRAINTS, learning_rate=0.001, num_steps=8, tolerance=Relative(0.001), episodes_per_update=1
    )


def tuned() -> Presets:
    """Ours."""
    multipliers = Multipliers(beta=(1.0, 0.3), eta=0.3, damping=2.0)
    lppo = LPPO(tolerance=(0.02, 0.0), multipliers=multipliers, **PROXIMAL)
    la2c = LA2C(tolerance=(0.05, 0.0), multipliers=multipliers, **ON_POLICY)
    ldqn = LDQN(gamma=(0.96, 0.99), tolerance=(0.25, 0.0), return_scale=(20.0, 100.0), **REPLAYED)
    return {
        "lppo": Preset(lppo, SAFE, 6_000_000, ENV),
        "la2c": Preset(la2c, SAFE, 10_000_000, ENV),
        "ldqn": Preset(ldqn, SAFE, 1_500_000, ENV),
        "ppo": Preset(PPO(**PROXIMAL), REWARD, 6_000_000, ENV),
        "a2c": Preset(A2C(**ON_POLICY), REWARD, 10_000_000, ENV),
        "dqn": Preset(DQN(return_scale=100.0, **REPLAYED), REWARD, 1_500_000, ENV),
        **_constrained(),
        "random": Preset(Random(), SAFE, 100_000, ENV),
    }


def _constrained() -> Presets:
    """Constrained algorithms need fewer steps than the others: their rates fall sooner."""
    limit, target_set, chance_constraint = CONSTRAINTS
    plain: dict[str, Any] = ON_POLICY | {"learning_rate": Linear(3e-3, 6e-5, 1_950.0)}
    risky: dict[str, Any] = ON_POLICY | {"learning_rate": Linear(3e-3, 6e-5, 3_900.0)}
    proximal: dict[str, Any] = PROXIMAL | {
        "learning_rate": Linear(5e-3, 5e-5, 730.0),
        "critic_learning_rate": Linear(2e-3, 1e-4, 730.0),
    }
    replayed: dict[str, Any] = REPLAYED | {
        "gradient_steps": 8,
        "buffer_size": 512_000,
        "learning_rate": 3e-4,
        "epsilon": Linear(1.0, 0.05, 30_000.0),
    }

    def pid(num_updates: float) -> PIDLagrangian:
        return PIDLagrangian(ki=Linear(0.01, 0.001, num_updates), kp=0.005, max_multiplier=5.0)

    ppo = PPOLagrangian(constraints=limit, lagrangian=pid(730.0), **proximal)
    risk = PIDLagrangian(ki=Linear(30.0, 3.0, 3_900.0), max_multiplier=300.0)
    var_ac = VaRAC(chance_constraints=chance_constraint, lagrangian=risk, **risky)
    appropo = ApproPO(target_set=target_set, episodes_per_update=8, mixture_size=128, eta=0.02, oracle=DQN(**replayed))
    return {
        "rcpo": Preset(RCPO(constraints=limit, lagrangian=pid(1_950.0), **plain), SAFE, 2_000_000, ENV),
        "ppo-lagrangian": Preset(ppo, SAFE, 1_500_000, ENV),
        "var-ac": Preset(var_ac, SAFE, 4_000_000, ENV),
        "appropo": Preset(appropo, SAFE, 1_000_000, ENV),
    }


PRESETS = {"paper": paper, "tuned": tuned}
