"""GridNav: the paper's settings, and those that reach the results in the documentation."""

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
    PPOLagrangian,
    Random,
    VaRAC,
)
from lexrl.multipliers import Multipliers
from lexrl.networks import Networks
from lexrl.presets import REWARD, SAFE, Preset, Presets
from lexrl.presets.paper import Constraints, table
from lexrl.schedules import Linear
from lexrl.stages import Stages
from lexrl.tolerance import Relative

CONSTRAINTS = Constraints("cost <= 5", "reward in 90..100, cost in 0..5", "cost <= 5 with 0.95")
TABLE = Networks(hidden_sizes=(), use_bias=False)

PROXIMAL: dict[str, Any] = {
    "gamma": 0.95,
    "networks": TABLE,
    "num_envs": 64,
    "num_steps": 32,
    "gae_lambda": 0.99,
    "learning_rate": Linear(1e-2, 1e-4, 4_000.0),
    "critic_learning_rate": Linear(5e-2, 2e-3, 4_000.0),
    "ent_coef": Linear(0.05, 0.0, 2_800.0),
}
ON_POLICY: dict[str, Any] = {
    "gamma": 0.95,
    "networks": TABLE,
    "num_envs": 32,
    "num_steps": 16,
    "learning_rate": Linear(3e-2, 1e-3, 3_900.0),
    "critic_learning_rate": Linear(5e-2, 5e-3, 3_900.0),
}
REPLAYED: dict[str, Any] = {
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


def paper() -> Presets:
    """Linear in a one-hot position without bias, Adam at 0.01, an update every 32 steps on 32 transitions."""
    return table(TABLE, CONSTRAINTS, learning_rate=0.01, num_steps=32, tolerance=Relative(0.05), episodes_per_update=8)


def tuned() -> Presets:
    """Tables. The multipliers are damped: with slack, the best policy mixes two that are worth the same."""
    limit, target_set, chance_constraint = CONSTRAINTS
    damped = Multipliers(damping=16.0, eta=Linear(0.3, 0.03, 4_000.0))
    stages = Stages(sequential=True, patience=1_000.0)
    lppo = LPPO(tolerance=0.0, multipliers=damped, stages=stages, **PROXIMAL)
    la2c = LA2C(tolerance=0.0, multipliers=Multipliers(beta=(1.0, 0.1), eta=0.3), **ON_POLICY)
    ldqn = LDQN(tolerance=(1e-4, 0.0), return_scale=(5.0, 100.0), **REPLAYED)
    appropo = ApproPO(target_set=target_set, episodes_per_update=8, oracle=DQN(**REPLAYED))
    return {
        "lppo": Preset(lppo, SAFE, 8_000_000),
        "la2c": Preset(la2c, SAFE, 2_000_000),
        "ldqn": Preset(ldqn, SAFE, 3_000_000),
        "ppo": Preset(PPO(**PROXIMAL), REWARD, 8_000_000),
        "a2c": Preset(A2C(**ON_POLICY), REWARD, 2_000_000),
        "dqn": Preset(DQN(return_scale=100.0, **REPLAYED), REWARD, 3_000_000),
        "rcpo": Preset(RCPO(constraints=limit, **ON_POLICY), SAFE, 2_000_000),
        "ppo-lagrangian": Preset(PPOLagrangian(constraints=limit, **PROXIMAL), SAFE, 8_000_000),
        "var-ac": Preset(VaRAC(chance_constraints=chance_constraint, **ON_POLICY), SAFE, 2_000_000),
        "appropo": Preset(appropo, SAFE, 3_000_000),
        "random": Preset(Random(), SAFE, 100_000),
    }


PRESETS = {"paper": paper, "tuned": tuned}
