"""Settings are printed as what differs from the defaults."""

import optax
import pytest

import lexrl
from lexrl.tolerance import Absolute, Relative


def build(key, spec):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (lexrl.QLearning(), "QLearning()"),
        (lexrl.QLearning(gamma=0.99, tolerance=0.0), "QLearning()"),
        (lexrl.QLearning(gamma=(0.9, 0.8), alpha="n^-0.7"), "QLearning(gamma=(0.9, 0.8), alpha='n^-0.7')"),
        (lexrl.Sarsa(exploration="softmax 0.1"), "Sarsa(exploration='softmax 0.1')"),
        (lexrl.DoubleQLearning(update_tolerance=0), "DoubleQLearning(update_tolerance=0)"),
        (lexrl.ExpectedSarsa(tolerance=Absolute(0.1) + Relative(0.05)), "ExpectedSarsa(tolerance='0.1 + 5%')"),
        (lexrl.LDQN(learning_rate=0.01, epsilon="1 to 0"), "LDQN(learning_rate=0.01, epsilon='1 to 0')"),
        (lexrl.LDQN(tolerance=(0.1, "5%"), double_q=False), "LDQN(double_q=False, tolerance=(0.1, '5%'))"),
        (lexrl.DQN(network=build, hidden_sizes=(8,)), "DQN(hidden_sizes=(8,), network=build)"),
        (lexrl.Networks(optimizer=optax.adamw), "Networks(optimizer=adamw)"),
        (lexrl.ApproPO(oracle=lexrl.DQN(gamma=0.9)), "ApproPO(oracle=DQN(gamma=0.9))"),
        (lexrl.Random(num_envs=3), "Random(num_envs=3)"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_by_hand(settings, text):
    assert repr(settings) == str(settings) == text
