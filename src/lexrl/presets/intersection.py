"""Intersection: the paper's settings, and those that reach the results in the documentation.

Its reward is 10 for arriving; here the signal `arrived` is 1, so that the range from 9 to 10 is 0.9 to 1. An episode
ends at its first collision: a limit of 1 on the collisions of an episode cannot bind. Ours are for the order with a
slack, `SLACK`, and the constrained algorithms have the same number of collisions as a limit.
"""

import dataclasses
from typing import Any

from lexrl.networks import Networks
from lexrl.presets import Preset, Presets, make
from lexrl.presets.paper import Constraints, table
from lexrl.schedules import Linear, OfRun
from lexrl.set_encoders import SetEncoder
from lexrl.stages import Stages
from lexrl.tolerance import Relative

ORDER, REWARD = "min collision > max arrived", "max arrived"
SLACK = "min collision ±0.05 > max arrived"
CONSTRAINTS = Constraints("collision <= 1", "arrived in 0.9..1, collision in 0..1", "collision <= 1 with 0.95")
TIGHT = Constraints("collision <= 0.05", "arrived in 0.5..1, collision in 0..0.05", "collision <= 0 with 0.95")
TIMESTEPS, REPLAYED_TIMESTEPS = 1_200_000, 500_000
ENV = {"timeout_terminates": True, "observe_time": True}

ENCODER = SetEncoder(width=32, embed_sizes=(32,), hidden_sizes=(32,))
ON_POLICY: dict[str, Any] = {
    "num_envs": 64,
    "num_steps": 32,
    "networks": Networks(actor=dataclasses.replace(ENCODER, output_scale=0.01), critic=ENCODER),
    "gamma": 0.95,
    "gae_lambda": 0.95,
}
PROXIMAL: dict[str, Any] = ON_POLICY | {"num_epochs": 3, "num_minibatches": 8}
# To stop is soon learned. Little of that stage's entropy may be left in what is to be kept: it would collide.
STAGED: dict[str, Any] = {
    "gamma": (1.0, 0.95),
    "stages": Stages(last_length=8.0, initial_ent_coef=0.005, final_ent_coef=0.0, slack_ent_coef=0.2),
}
FALLING: dict[str, Any] = {
    "learning_rate": Linear(3e-3, 1e-4),
    "critic_learning_rate": Linear(1e-3, 5e-5),
    "ent_coef": Linear(0.05, 0.0, OfRun(0.7)),
}
LIMITED: dict[str, Any] = FALLING | {"constraints": TIGHT.limit}
FLAT: dict[str, Any] = ON_POLICY | FALLING | {"networks": Networks()}
"""For VaR-AC, which observes more than rows."""
REPLAYED: dict[str, Any] = {"network": ENCODER, "gamma": 0.95, "learning_rate": Linear(1e-3, 1e-5)}


def tuned() -> Presets:
    """Our settings: attention to the other vehicles."""

    def of(algorithm: str, order: str = SLACK, total_timesteps: int = TIMESTEPS, **settings: Any) -> Preset:
        return Preset(make(algorithm, **settings), order, total_timesteps, ENV)

    return {
        "lppo": lambda: of("lppo", **PROXIMAL | STAGED),
        "la2c": lambda: of("la2c", **ON_POLICY | STAGED),
        "ldqn": lambda: of("ldqn", total_timesteps=REPLAYED_TIMESTEPS, return_scale=(1.0, 1.0), **REPLAYED),
        "ppo": lambda: of("ppo", REWARD, **PROXIMAL | FALLING),
        "a2c": lambda: of("a2c", REWARD, **ON_POLICY | FALLING),
        "dqn": lambda: of("dqn", REWARD, REPLAYED_TIMESTEPS, return_scale=1.0, **REPLAYED),
        "rcpo": lambda: of("rcpo", **ON_POLICY | LIMITED),
        "ppo-lagrangian": lambda: of("ppo-lagrangian", **PROXIMAL | LIMITED),
        "var-ac": lambda: of("var-ac", chance_constraints=TIGHT.chance_constraint, **FLAT),
        "appropo": lambda: of(
            "appropo",
            total_timesteps=REPLAYED_TIMESTEPS,
            target_set=TIGHT.target_set,
            oracle=make("dqn", return_scale=1.0, **REPLAYED),
        ),
        "random": lambda: of("random", total_timesteps=100_000),
    }


def paper() -> Presets:
    """Two hidden layers of 512, Adam at 0.001, an update every 32 steps on 32 transitions."""
    return table(
        Networks(hidden_sizes=(512, 512), normalize_observations=False),
        CONSTRAINTS,
        learning_rate=0.001,
        num_steps=32,
        tolerance=Relative(0.05),
        episodes_per_update=8,
        order=ORDER,
        reward=REWARD,
    )


PRESETS = {"paper": paper, "tuned": tuned}
