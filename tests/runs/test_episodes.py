"""The episode that is shown is the one that was evaluated."""

import gymnasium
import numpy as np
import pytest

import lexrl
from lexrl import Networks
from lexrl.errors import InputError
from lexrl.runs import episodes

ORDER = "min cost > max reward"
CASES = {
    "cart-safe": (lexrl.LPPO(num_envs=4, num_steps=16, num_minibatches=2, networks=Networks(hidden_sizes=(8,))), ORDER),
    "grid-nav": (lexrl.QLearning(tolerance=5.0), ORDER),  # many actions are as good as the best
    "CartPole-v1": (
        lexrl.PPO(num_envs=4, num_steps=16, num_minibatches=2, networks=Networks(hidden_sizes=(8,))),
        "max reward",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_episode(name):
    algorithm, order = CASES[name]
    result = lexrl.train(algorithm, name, order, seeds=[3, 8], total_timesteps=1000, num_log_points=1)
    played = result.evaluate(3)
    for number in (0, 2):
        seen = episodes.record_episode(result.policies[1], result.run.env, number)
        assert len(seen.frames) == played.lengths[1, number] + 1
        np.testing.assert_allclose(seen.returns, played.returns[1, number], rtol=1e-5)
    assert {frame.dtype for frame in seen.frames} == {np.dtype(np.uint8)}
    assert len({frame.shape for frame in seen.frames}) == 1
    assert episodes.render_fps(result.run.env) >= 5


def test_worlds_that_cannot_be_drawn():
    world = lexrl.random_env(num_states=4)
    result = lexrl.train(lexrl.QLearning(), world, "max signal_1", seeds=1, total_timesteps=100, num_log_points=1)
    with pytest.raises(InputError, match="FiniteEnv cannot be rendered"):
        episodes.record_episode(result.policies[0], world)
    with pytest.raises(InputError, match="The episode is -1"):
        episodes.record_episode(result.policies[0], world, -1)


class Ring(gymnasium.Env):
    """An environment of a user's own."""

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(3))
        return self.place, {}

    def step(self, action):
        self.place = (self.place + 1 + int(action)) % 3
        return self.place, 1.0, False, False, {"cost": float(action)}

    def render(self):
        return np.full((8, 8, 3), 80 * self.place, np.uint8)


def ring(env):
    given = gymnasium.wrappers.TimeLimit(env, 5)
    return lexrl.train(lexrl.QLearning(), given, ORDER, seeds=[3, 8], total_timesteps=50, num_log_points=1)


def test_video_of_an_instance(tmp_path):
    result = ring(Ring("rgb_array"))
    episode = result.video(tmp_path / "episode.gif", seed=8, episode=1)
    np.testing.assert_allclose(episode.returns, result.evaluate(2).returns[1, 1])
    assert len(episode.frames) == 6
    assert (tmp_path / "episode.gif").read_bytes().startswith(b"GIF")
    result.video(str(tmp_path / "strip.png"))
    assert (tmp_path / "strip.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"path": "episode.avi"}, "cannot be written as 'episode.avi'"),
        ({"path": "episode.gif", "seed": 5}, "The run has no seed 5; it has 3, 8"),
        ({"path": "episode.gif"}, "render_mode='rgb_array': it is an instance"),
    ],
)
def test_videos_that_cannot_be(wanted, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        ring(Ring()).video(**wanted | {"path": tmp_path / wanted["path"]})
    assert not list(tmp_path.iterdir())


def test_what_is_printed_is_short():
    result = ring(Ring())
    assert repr(result.policies[0]).endswith("order=Order('min cost > max reward'), seed=3)")
    assert repr(result.evaluate(4)).startswith("Evaluation(2 x 4 episodes, mean returns (")
    assert repr(result.plot("mine")) == "Chart(mine)"
    for shown in (result, result.policies[0], result.evaluate(4), result.plot()):
        assert len(repr(shown)) < 24 * 120
