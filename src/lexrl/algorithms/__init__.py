"""The algorithms, one file each."""

from lexrl.algorithms.a2c import A2C
from lexrl.algorithms.appropo import ApproPO
from lexrl.algorithms.average_reward import LA2CAverageReward, LPPOAverageReward
from lexrl.algorithms.double_q import DoubleQLearning
from lexrl.algorithms.dqn import DQN
from lexrl.algorithms.expected_sarsa import ExpectedSarsa
from lexrl.algorithms.la2c import LA2C
from lexrl.algorithms.lagrangian import PIDLagrangian
from lexrl.algorithms.ldqn import LDQN
from lexrl.algorithms.lppo import LPPO
from lexrl.algorithms.ppo import PPO
from lexrl.algorithms.ppo_lagrangian import PPOLagrangian
from lexrl.algorithms.projection import Projection
from lexrl.algorithms.q_critic import LPPOQCritic
from lexrl.algorithms.q_learning import QLearning
from lexrl.algorithms.random import Random
from lexrl.algorithms.rcpo import RCPO
from lexrl.algorithms.sarsa import Sarsa
from lexrl.algorithms.second_order import LA2CSecondOrder, LPPOSecondOrder
from lexrl.algorithms.single_objective import SingleObjective
from lexrl.algorithms.tabular import EpsilonGreedy, Softmax
from lexrl.algorithms.var_ac import VaRAC

TABULAR = QLearning | Sarsa | ExpectedSarsa | DoubleQLearning
"""The algorithms with a table."""

__all__ = [
    "A2C",
    "DQN",
    "LA2C",
    "LDQN",
    "LPPO",
    "PPO",
    "RCPO",
    "TABULAR",
    "ApproPO",
    "DoubleQLearning",
    "EpsilonGreedy",
    "ExpectedSarsa",
    "LA2CAverageReward",
    "LA2CSecondOrder",
    "LPPOAverageReward",
    "LPPOQCritic",
    "LPPOSecondOrder",
    "PIDLagrangian",
    "PPOLagrangian",
    "Projection",
    "QLearning",
    "Random",
    "Sarsa",
    "SingleObjective",
    "Softmax",
    "VaRAC",
]
