"""The algorithms, one file each."""

from lexrl.algos.a2c import A2C
from lexrl.algos.actor_critic import Networks
from lexrl.algos.dqn import DQN
from lexrl.algos.la2c import LA2C
from lexrl.algos.ldqn import LDQN
from lexrl.algos.lppo import LPPO
from lexrl.algos.ppo import PPO
from lexrl.algos.projection import Projection
from lexrl.algos.random import Random
from lexrl.algos.tabular import (
    EpsilonGreedy,
    Softmax,
    Tabular,
    double_q,
    expected_sarsa,
    gabor,
    q_learning,
    sarsa,
)

__all__ = [
    "A2C",
    "DQN",
    "LA2C",
    "LDQN",
    "LPPO",
    "PPO",
    "EpsilonGreedy",
    "Networks",
    "Projection",
    "Random",
    "Softmax",
    "Tabular",
    "double_q",
    "expected_sarsa",
    "gabor",
    "q_learning",
    "sarsa",
]
