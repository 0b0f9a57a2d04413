"""A policy that is a mixture, from training to the file: it is treated as one policy everywhere."""

import numpy as np
import pytest

import lexrl
from lexrl import Networks, Policy, exact
from lexrl.errors import InputError
from lexrl.momdp import MOMDP

# One step from one of two states: the risky action costs 1 of the first objective. It gains 2 of the second in state 0
# and a half in state 1. A slack of 0.25 allows it in half of the episodes that begin in state 0, which gains 0.5.
BANDIT = MOMDP.from_arrays(
    np.tile([0.0, 0.0, 1.0], (3, 2, 1)),
    np.array([[[0.0, -1.0], [0.0, -1.0], [0.0, 0.0]], [[0.0, 2.0], [0.0, 0.5], [0.0, 0.0]]]),
    gamma=0.99,
    initial=[0.5, 0.5, 0.0],
    terminal=[2],
    signals=("safety", "profit"),
)
ORDER = "max safety ±0.25 > max profit"
SEEDS = (0, 1)


def train(**changes):
    algorithm = lexrl.LPPO(num_envs=4, num_steps=8, num_minibatches=1, networks=Networks(hidden_sizes=()), **changes)
    env = lexrl.FiniteEnv(BANDIT, max_episode_steps=2)
    return lexrl.train(algorithm, env, ORDER, seeds=list(SEEDS), total_timesteps=12_000, num_log_points=2)


@pytest.fixture(scope="module")
def result():
    return train()


def test_slack_is_obeyed_and_used(result):
    for gap in result.gaps(BANDIT):
        assert gap.shortfall[0] <= 0.25 + 1e-6
        assert gap.shortfall[1] <= 0.05, "of 0.5; the rest is a margin for the noise of episodes"


def test_components(result):
    for policy in result.policies:
        parts = {int(one.predict(0)[0]): weight for weight, one in policy.components()}
        assert parts == pytest.approx({0: 0.5, 1: 0.5}, abs=0.05)
        assert sum(parts.values()) == pytest.approx(1.0)


def test_one_policy_is_drawn_for_each_episode(result):
    played = result.evaluate(episodes=400).returns
    assert {tuple(episode) for episode in played.reshape(-1, 2)} == {(0.0, 0.0), (-1.0, 2.0)}
    np.testing.assert_allclose(played[:, :, 1].mean(axis=1), [0.5, 0.5], atol=0.15)


def test_predict_keeps_to_the_policy_of_the_episode(result):
    policy = result.policies[0]
    actions = []
    for _ in range(200):
        action, state = policy.predict(0, episode_start=True)
        again = [policy.predict(0, state, episode_start=False)[0] for _ in range(3)]
        assert all(each == action for each in again)
        actions.append(int(action))
    assert np.mean(actions) == pytest.approx(0.5, abs=0.15)


def test_a_file_holds_the_mixture(result, tmp_path):
    result.policies[1].save(tmp_path / "policy.safetensors")
    loaded = Policy.load(tmp_path / "policy.safetensors")
    expected = [weight for weight, _ in result.policies[1].components()]
    assert [weight for weight, _ in loaded.components()] == expected


def test_a_mixture_is_a_table_only_with_regard_to_a_process(result):
    with pytest.raises(InputError, match="The policy is a mixture"):
        result.probabilities()
    tables = result.probabilities(process=BANDIT)
    for policy, table in zip(result.policies, tables, strict=True):
        weight = {int(one.predict(0)[0]): weight for weight, one in policy.components()}[1]
        np.testing.assert_allclose(exact.evaluate(BANDIT, table).returns, [-weight / 2, weight], atol=1e-6)


def test_the_best_single_policy_instead():
    result = train(mixture=False)
    for policy, gap in zip(result.policies, result.gaps(BANDIT), strict=True):
        assert len(policy.components()) == 1
        assert gap.shortfall[0] <= 0.3
