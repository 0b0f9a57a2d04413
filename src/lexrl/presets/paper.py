"""The paper's table of hyper-parameters (its supplement, "Hyperparameters"), with what it leaves open chosen plainly.

The table is the same for all environments but for a few numbers; each environment's file gives those.
"""

from typing import Any, NamedTuple

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
from lexrl.networks import Networks
from lexrl.presets import REWARD, SAFE, Preset, Presets
from lexrl.tolerance import Relative

TIMESTEPS = 100_000


class Constraints(NamedTuple):
    """What the constrained algorithms are given in an environment."""

    limit: str
    target_set: str
    chance_constraint: str


def table(
    networks: Networks,
    constraints: Constraints,
    *,
    learning_rate: float,
    num_steps: int,
    tolerance: Relative,
    episodes_per_update: int,
) -> Presets:
    """Every algorithm of the paper with the settings of one environment."""
    on_policy: dict[str, Any] = {
        "num_envs": 1,
        "num_steps": num_steps,
        "networks": networks,
        "learning_rate": learning_rate,
        "critic_learning_rate": learning_rate,
    }
    proximal: dict[str, Any] = on_policy | {"surrogate": "kl_penalty", "num_minibatches": 1}
    replayed: dict[str, Any] = {
        "num_envs": 1,
        "num_steps": num_steps,
        "batch_size": num_steps,
        "gradient_steps": 1,
        "buffer_size": 100_000,
        "learning_starts": num_steps,
        "target_update_interval": 0,
        "hidden_sizes": networks.hidden_sizes,
        "use_bias": networks.use_bias,
        "learning_rate": learning_rate,
        "epsilon": 0.05,
    }
    limit, target_set, chance_constraint = constraints
    oracle = DQN(**replayed)
    return {
        "lppo": Preset(LPPO(tolerance=tolerance, **proximal), SAFE, TIMESTEPS),
        "la2c": Preset(LA2C(tolerance=tolerance, **on_policy), SAFE, TIMESTEPS),
        "ldqn": Preset(LDQN(tolerance=tolerance, **replayed), SAFE, TIMESTEPS),
        "ppo": Preset(PPO(**proximal), REWARD, TIMESTEPS),
        "a2c": Preset(A2C(**on_policy), REWARD, TIMESTEPS),
        "dqn": Preset(DQN(**replayed), REWARD, TIMESTEPS),
        "rcpo": Preset(RCPO(constraints=limit, **on_policy), SAFE, TIMESTEPS),
        "ppo-lagrangian": Preset(PPOLagrangian(constraints=limit, **proximal), SAFE, TIMESTEPS),
        "var-ac": Preset(VaRAC(chance_constraints=chance_constraint, **on_policy), SAFE, TIMESTEPS),
        "appropo": Preset(
            ApproPO(target_set=target_set, episodes_per_update=episodes_per_update, oracle=oracle), SAFE, TIMESTEPS
        ),
        "random": Preset(Random(), SAFE, TIMESTEPS),
    }
