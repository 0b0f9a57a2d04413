"""The algorithms, one file each."""

from lexrl.algos.a2c import A2C
from lexrl.algos.actor_critic import Networks
from lexrl.algos.appropo import ApproPO
from lexrl.algos.dqn import DQN
from lexrl.algos.la2c import LA2C
from lexrl.algos.ldqn import LDQN
from lexrl.algos.lppo import LPPO
from lexrl.algos.multipliers import Multipliers
from lexrl.algos.only import Only
from lexrl.algos.ppo import PPO
from lexrl.algos.ppo_lagrangian import PPOLagrangian
from lexrl.algos.projection import Projection
from lexrl.algos.random import Random
from lexrl.algos.rcpo import RCPO
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
from lexrl.algos.var_ac import VaRAC

__all__ = [
    "A2C",
    "DQN",
    "LA2C",
    "LDQN",
    "LPPO",
    "PPO",
    "RCPO",
    "ApproPO",
    "EpsilonGreedy",
    "Multipliers",
    "Networks",
    "Only",
    "PPOLagrangian",
    "Projection",
    "Random",
    "Softmax",
    "Tabular",
    "VaRAC",
    "double_q",
    "expected_sarsa",
    "gabor",
    "q_learning",
    "sarsa",
]
