"""The algorithms, one file each."""

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
    "EpsilonGreedy",
    "Softmax",
    "Tabular",
    "double_q",
    "expected_sarsa",
    "gabor",
    "q_learning",
    "sarsa",
]
