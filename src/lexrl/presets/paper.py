"""The paper's table of hyper-parameters (its supplement, "Hyperparameters"), with what it leaves open chosen plainly.

The table is the same for all environments but for a few numbers; each environment's file gives those.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from lexrl.algorithms.lagrangian import PIDLagrangian
from lexrl.networks import Networks
from lexrl.presets import REWARD, SAFE, Preset, Presets, make
from lexrl.tolerance import Relative

TIMESTEPS = 100_000
PLAIN: dict[str, Any] = {"evidence": None, "guard": None, "explore_prefixes": False, "explore_novelty": False}
"""LDQN as the paper describes it, without what the defaults add."""


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
    order: str = SAFE,
    reward: str = REWARD,
) -> Presets:
    """Every algorithm of the paper with the settings of one environment, by its two orders."""
    on_policy: dict[str, Any] = {
        "num_envs": 1,
        "num_steps": num_steps,
        "networks": networks,
        "learning_rate": learning_rate,
        "critic_learning_rate": learning_rate,
    }
    proximal: dict[str, Any] = on_policy | {"surrogate": "kl_penalty", "num_minibatches": 1}
    replayed = _replayed(networks, learning_rate, num_steps)
    safe: dict[str, dict[str, Any]] = {
        "paper-lppo": proximal | {"tolerance": tolerance},
        "paper-la2c": on_policy | {"tolerance": tolerance},
        "ldqn": replayed | PLAIN | {"tolerance": tolerance},
        "rcpo": on_policy | {"constraints": constraints.limit, "lagrangian": PIDLagrangian()},
        "ppo-lagrangian": proximal | {"constraints": constraints.limit, "lagrangian": PIDLagrangian()},
        "var-ac": on_policy | {"chance_constraints": constraints.chance_constraint},
        "random": {},
    }
    plain: dict[str, dict[str, Any]] = {"ppo": proximal, "a2c": on_policy, "dqn": replayed}
    target = {"target_set": constraints.target_set, "episodes_per_update": episodes_per_update}
    return {
        **{name: partial(_preset, name, order, settings) for name, settings in safe.items()},
        **{name: partial(_preset, name, reward, settings) for name, settings in plain.items()},
        "appropo": lambda: _preset("appropo", order, target | {"oracle": make("dqn", **replayed)}),
    }


def _replayed(networks: Networks, learning_rate: float, num_steps: int) -> dict[str, Any]:
    """The settings of algorithms with a replay buffer."""
    return {
        "num_envs": 1,
        "num_steps": num_steps,
        "batch_size": num_steps,
        "gradient_steps": 1,
        "buffer_size": 100_000,
        "learning_starts": num_steps,
        "num_members": 1,
        "target_update_interval": 0,
        "double_q": False,
        "return_scale": 1.0,
        "hidden_sizes": networks.hidden_sizes,
        "use_bias": networks.use_bias,
        "learning_rate": learning_rate,
        "epsilon": 0.05,
    }


def _preset(algorithm: str, order: str, settings: Mapping[str, Any]) -> Preset:
    return Preset(make(algorithm, **settings), order, TIMESTEPS)
