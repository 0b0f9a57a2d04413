"""highway-env's environments by name: their signals, their settings, and sentences about what is wrong."""

import subprocess
import sys

import numpy as np
import pytest

import lexrl
from lexrl import cli
from lexrl.envs.highway import make_highway
from lexrl.errors import InputError

highway_env = pytest.importorskip("highway_env")


@pytest.fixture(scope="module")
def env():
    return lexrl.make_env("highway:intersection-v0")


def test_the_parts_of_the_reward_are_signals(env):
    assert env.spec.signals == ("reward", "collision", "high_speed", "arrived", "on_road")
    assert env.spec.max_episode_steps == 13
    assert env.spec.observation_space.shape == (15, 7)
    assert "collision" in env.description


def test_they_are_read_at_every_step(env):
    """Seed 3 collides without slowing down; others' collisions are none of ours."""
    envs = env.batched(1)
    envs.envs[0].reset(seed=3)
    signals = []
    while True:
        step = envs.step(np.array([1]), lambda: None)
        signals.append(dict(zip(env.spec.signals, step.signals[0].tolist(), strict=True)))
        if step.discount[0] == 0:
            break
    assert [one["collision"] for one in signals] == [0.0] * (len(signals) - 1) + [1.0]
    assert all(one["arrived"] == 0 for one in signals)
    envs.close()


def test_other_environments_work_too():
    other = make_highway("highway-v0", config={"vehicles_count": 3, "duration": 4})
    assert {"reward", "collision", "right_lane", "high_speed", "on_road"} == set(other.spec.signals)
    assert other.spec.max_episode_steps == 4


def test_inner_dictionaries_keep_what_is_not_mentioned():
    few = make_highway("intersection-v0", config='{"observation": {"vehicles_count": 5}}')
    assert few.spec.observation_space.shape == (5, 7)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("highway:crossing-v0", {}, "highway-env has no environment 'crossing-v0'; it has .*intersection-v0"),
        ("highway:intersection-v0", {"config": {"durations": 3}}, "has no key 'durations'; its keys are .*duration"),
        ("highway:intersection-v0", {"config": {"initial_vehicle_count": -3}}, "initial_vehicle_count -3; it must be"),
        ("highway:intersection-v0", {"config": "duration=3"}, "is not JSON"),
        ("highway:intersection-v0", {"config": "[3]"}, "is no JSON object"),
        ("highway:intersection-v0", {"lanes": 3}, "has no setting 'lanes'; its settings are max_episode_steps, config"),
    ],
)
def test_bad_input(name, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        lexrl.make_env(name, **settings)


def test_without_highway_env():
    program = "import sys; sys.modules['highway_env'] = None; from lexrl import cli; cli.main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "train", "lppo", "highway:intersection-v0", "--seeds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert "pip install 'lexrl[highway]'" in " ".join((done.stdout + done.stderr).split())


def test_on_the_command_line(tmp_path, capsys):
    order = ["--order", "min collision > max arrived", "--out", str(tmp_path / "run")]
    flags = "--seeds 1 --total-timesteps 8 --num-steps 2 --num-envs 2 --num-minibatches 1 --eval-episodes 1"
    flags += " --no-verify"
    cli.main(["train", "lppo", "highway:intersection-v0", *order, *flags.split()])
    assert lexrl.load(tmp_path / "run").run.env_id == "highway:intersection-v0"
