"""The algorithms, one file each. The union of their types is the list of them."""

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

AnyAlgorithm = Tabular

__all__ = [
    "AnyAlgorithm",
    "EpsilonGreedy",
    "Softmax",
    "Tabular",
    "double_q",
    "expected_sarsa",
    "gabor",
    "q_learning",
    "sarsa",
]
