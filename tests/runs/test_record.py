"""Runs from Python: folders, results that are read again, runs that go on, loops of one's own."""

import contextlib
import dataclasses
import json
import pathlib
import warnings
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import anonymous
import lexrl
from lexrl import Networks, store
from lexrl.errors import InputError
from lexrl.loops import selection
from lexrl.loops.evaluation import evaluate
from lexrl.order import parse
from lexrl.runs import execute, pipeline, plan, record
from lexrl.runs.observers import callback
from lexrl.runs.run import fit
from lexrl.types import Box, Discrete, EnvSpec, Step

ORDER = "min cost > max reward"
SMALL = Networks(hidden_sizes=(8,))


def learners():
    return {
        "lppo": (lexrl.LPPO(num_envs=4, num_steps=16, num_minibatches=2, networks=SMALL), "cart-safe"),
        "ldqn": (
            lexrl.LDQN(num_envs=4, num_steps=4, buffer_size=640, learning_starts=64, hidden_sizes=(8,)),
            "cart-safe",
        ),
        "double-q": (lexrl.DoubleQLearning(tolerance=0.1), lexrl.GridNav.generate(5, map_seed=3)),
        "per seed": (
            lexrl.QLearning(),
            lexrl.per_seed([lexrl.GridNav.generate(5, map_seed=seed) for seed in (1, 2, 3)]),
        ),
        "host": (lexrl.PPO(num_envs=2, num_steps=16, num_minibatches=2, networks=SMALL), "CartPole-v1"),
    }


def files(folder):
    """What must be the same, by name."""
    paths = [folder / "metrics.csv", *sorted((folder / "policies").iterdir())]
    return {path.name: anonymous.content(path) for path in paths}


def order_of(name):
    return "max reward" if name == "host" else ORDER


def interrupted(folder, run, parts):
    """A run that is left after some parts."""

    def stop(result):
        if len(result.steps) == parts:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        list(execute(run, folder, [callback(stop)]))


@pytest.mark.parametrize(
    ("name", "stops"),
    [pytest.param("lppo", (3,), marks=pytest.mark.slow), ("ldqn", (3,)), ("double-q", (1, 3, 5)), ("host", (3,))],
)
def test_stopped_and_resumed_it_ends_with_the_same_bytes(name, stops, tmp_path):
    algorithm, world = learners()[name]
    settings = {"seeds": [5, 2, 11], "total_timesteps": 1280, "num_log_points": 5}
    whole = lexrl.train(algorithm, world, order_of(name), **settings, out=tmp_path / "whole", eval_episodes=5)
    for parts in stops:
        folder = store.new_folder(tmp_path / f"stopped-{parts}")
        interrupted(folder, plan(algorithm, world, order_of(name), **settings, eval_episodes=5), parts)
        assert store.checkpoints(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = lexrl.resume(folder)
        assert files(folder) == files(tmp_path / "whole")
        assert not store.checkpoints(folder)
        np.testing.assert_array_equal(again.steps, whole.steps)


@pytest.mark.parametrize("name", ["lppo", "double-q", "host"])
def test_a_finished_run_is_read_as_it_was(name, tmp_path):
    algorithm, world = learners()[name]
    result = lexrl.train(
        algorithm,
        world,
        order_of(name),
        seeds=[5, 2, 11],
        total_timesteps=1280,
        num_log_points=4,
        out=tmp_path / "run",
        eval_episodes=5,
    )
    again = lexrl.load(tmp_path / "run")
    assert again.run.order == result.run.order
    assert again.run.seeds == (5, 2, 11)
    assert again.metrics.keys() == result.metrics.keys()
    for key, values in result.metrics.items():
        np.testing.assert_array_equal(again.metrics[key], values)
    np.testing.assert_array_equal(again.evaluate(3).returns, result.evaluate(3).returns)
    assert str(again).splitlines()[1:] == str(result).splitlines()[1:]
    assert lexrl.resume(tmp_path / "run").run.seeds == (5, 2, 11)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-100])


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncated, flipped, emptied])
def test_damaged_checkpoints_are_passed_over(damage, tmp_path, monkeypatch):
    """The one before is used, and without any the run begins anew; the numbers are the same."""
    algorithm, world = learners()["double-q"]
    run = plan(algorithm, world, ORDER, 2, 1280, 8)
    whole = lexrl.train(
        algorithm, world, ORDER, seeds=2, total_timesteps=1280, num_log_points=8, out=tmp_path / "whole"
    )
    for count in (1, 2):
        folder = store.new_folder(tmp_path / f"damaged-{count}")
        monkeypatch.setattr(pipeline, "MAX_SHARE", float("inf"))  # after every chunk, however long it takes
        interrupted(folder, run, 5)
        assert len(store.checkpoints(folder)) == 2
        for path in store.checkpoints(folder)[:count]:
            damage(path)
        where, said = pipeline.latest_checkpoint(folder, store.read_identity(folder))
        assert (None if where is None else len(where.steps)) == (4 if count == 1 else None)
        assert len(said) == count
        with pytest.warns(UserWarning, match="is damaged"):
            lexrl.resume(folder)
        assert files(folder) == files(tmp_path / "whole")
    assert len(whole) == 2


def test_a_folder_tells_everything(tmp_path):
    algorithm, world = learners()["lppo"]
    lexrl.train(algorithm, world, ORDER, seeds=2, total_timesteps=640, num_log_points=2, out=tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "run.json", "metrics.csv", "curves.png", "policies", "summary.json", "final.safetensors",
    }  # fmt: skip
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    assert about["order"] == ORDER
    assert about["seeds"] == [0, 1]
    assert about["format"] == 2
    assert about["algorithm"]["kind"] == about["name"] == "lppo"
    assert about["algorithm"]["num_minibatches"] == 2
    assert about["env"] == {"name": "cart-safe", "kwargs": {}}
    assert {"lexrl", "jax", "numpy", "python"} == about["versions"].keys()
    assert about["commit"] == record.commit()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert len(summary["per_episode"]["cost"]) == 2


def test_which_policy_is_handed_over(tmp_path):
    """The summary says it, a result that is loaded too; where there was no choice, nothing is said."""
    algorithm, world = learners()["lppo"]
    result = lexrl.train(algorithm, world, ORDER, seeds=2, total_timesteps=640, num_log_points=2, out=tmp_path / "run")
    summary, again = json.loads((tmp_path / "run" / "summary.json").read_text()), lexrl.load(tmp_path / "run")
    assert summary["selection"] == list(result.selection) == list(again.selection)
    for seed, (one, policy) in enumerate(zip(again.selection, again.policies, strict=True)):
        assert one["seed"] == seed == policy.seed
        assert one["stage"] in (1, 2)
        assert one["stage"] == policy.state.course.num_references + 1
        assert one["policy"] in ("best", "last")
        assert one["actions"] == ("sampled" if policy.is_sampled else "greedy")
    decided = np.array([[one["per_episode"][name] for name in ("cost", "reward")] for one in again.selection])
    population, agents = again.on_devices()
    played = evaluate(population, agents, episodes=selection.EPISODES, first=selection.FIRST)
    np.testing.assert_allclose(played.returns.mean(axis=1), decided, rtol=1e-5)
    # Other episodes than those it is evaluated on: they would flatter it.
    assert not np.allclose(again.evaluate(selection.EPISODES).returns.mean(axis=1)[:, 1], decided[:, 1])
    unfinished = next(iter(lexrl.stream(algorithm, world, ORDER, seeds=2, total_timesteps=640, num_log_points=2)))
    assert unfinished.selection == ()
    algorithm, world = learners()["double-q"]
    other = lexrl.train(algorithm, world, ORDER, seeds=1, total_timesteps=100, num_log_points=1, out=tmp_path / "other")
    assert other.selection == ()
    assert "selection" not in other.summary


def test_without_git_there_is_no_commit(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert record.commit() == ""


def test_a_finished_folder_is_left_alone(tmp_path):
    algorithm, world = learners()["double-q"]
    for _ in range(2):
        lexrl.train(algorithm, world, ORDER, seeds=1, total_timesteps=100, num_log_points=1, out=tmp_path / "run")
    assert store.is_finished(tmp_path / "run")
    assert store.is_finished(tmp_path / "run-2")


class Line(eqx.Module):
    """A world of the user's own."""

    length: float

    @property
    def spec(self):
        return EnvSpec(Box((1,)), Discrete(2), ("gain", "harm"), 10)

    def reset(self, key):
        return jnp.float32(0), jnp.zeros(1)

    def step(self, state, action, key):
        state = state + jnp.where(action == 1, 1.0, -1.0)
        signals = jnp.stack([state, jnp.abs(state) / self.length])
        return Step(state, state[None], signals, jnp.float32(1))


def test_a_world_of_ones_own_must_be_given_again(tmp_path):
    algorithm, _ = learners()["lppo"]
    run = plan(algorithm, Line(2.0), "min harm > max gain", 2, 640, 4)
    interrupted(store.new_folder(tmp_path / "run"), run, 2)
    with pytest.raises(
        InputError, match=r"refers to .*Line, which is not stored, because it has no name in lexrl's catalog"
    ):
        lexrl.resume(tmp_path / "run")
    result = lexrl.resume(tmp_path / "run", env=Line(2.0))
    assert result.steps[-1] == 640
    assert lexrl.load(tmp_path / "run", env=Line(2.0)).steps[-1] == 640


def test_an_unfinished_run_cannot_be_read_as_a_result(tmp_path):
    algorithm, world = learners()["double-q"]
    interrupted(store.new_folder(tmp_path / "run"), plan(algorithm, world, ORDER, 1, 100, 4), 2)
    with pytest.raises(InputError, match="is not finished; `lexrl resume"):
        lexrl.load(tmp_path / "run")


def test_other_versions_are_told(tmp_path, monkeypatch):
    algorithm, world = learners()["double-q"]
    run = plan(algorithm, world, ORDER, 1, 100, 4)
    interrupted(store.new_folder(tmp_path / "run"), run, 2)
    monkeypatch.setattr(lexrl, "__version__", "99")
    _, said = pipeline.latest_checkpoint(tmp_path / "run", store.read_identity(tmp_path / "run"))
    assert "this is lexrl 99" in said[0]


def test_checkpoints_take_little_of_the_time(tmp_path, monkeypatch):
    """With a clock that says a checkpoint takes as long as ten parts, there is one in two hundred parts."""
    clock, saved = [0.0], []
    algorithm, world = learners()["double-q"]
    run = plan(algorithm, world, ORDER, 1, 500, 500)
    monkeypatch.setattr(pipeline, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def save(folder, snapshot, identity):
        clock[0] += 10
        saved.append(int(snapshot.result.steps[-1]))

    monkeypatch.setattr(pipeline, "save_checkpoint", save)
    for _ in execute(run, pathlib.Path(tmp_path)):
        clock[0] += 1
    assert saved == [1, 201, 401]


class TestLoopsOfOnesOwn:
    def test_results_so_far(self):
        algorithm, world = learners()["lppo"]
        results = list(lexrl.stream(algorithm, world, ORDER, seeds=2, total_timesteps=640, num_log_points=5))
        assert [int(result.steps[-1]) for result in results] == [128, 256, 384, 512, 640]
        assert [len(result.metrics["episode_return"]) for result in results] == [1, 2, 3, 4, 5]
        whole = lexrl.train(algorithm, world, ORDER, seeds=2, total_timesteps=640, num_log_points=5)
        for policy, other in zip(results[-1].policies, whole.policies, strict=True):
            jax.tree.map(np.testing.assert_array_equal, policy.state, other.state)

    def test_stop_when_you_have_seen_enough(self):
        algorithm, world = learners()["lppo"]
        for result in lexrl.stream(algorithm, world, ORDER, seeds=2, total_timesteps=1e9, num_log_points=10_000_000):
            if len(result.steps) == 3:
                break
        assert len(result.policies) == 2


class TestNames:
    def test_a_named_learner_has_its_tuned_settings(self):
        run = plan("lppo", "cart-safe")
        tuned = lexrl.preset("lppo", "cart-safe")
        fitted = fit(tuned.algorithm, run.order, tuned.total_timesteps)  # schedules have the length of the run
        assert jax.tree.leaves(run.algorithm) == jax.tree.leaves(fitted)
        assert (str(run.order), run.total_timesteps) == (tuned.order, tuned.total_timesteps)
        assert run.env.observe_cos_sin

    def test_some_of_it_can_be_changed(self):
        run = plan("lppo", "cart-safe", "max reward > min cost", seeds=3, total_timesteps=9000)
        assert (str(run.order), run.total_timesteps, run.seeds) == ("max reward > min cost", 9000, (0, 1, 2))

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (("lppo", lexrl.CartSafe()), "An order is needed"),
            (("lpo", "cart-safe"), "There is no algorithm 'lpo'; there are q-learning"),
            ((lexrl.LPPO(), "cartsafe"), "There is no environment 'cartsafe'; there are cart-safe"),
            (
                ("q-learning", "cart-safe", ORDER, 1, 10, 1, "paper"),
                "There is no preset 'paper' for q-learning on cart-safe",
            ),
            ((lexrl.LPPO(), "gym:Nothing-v9"), "Gymnasium cannot make 'Nothing-v9'"),
        ],
    )
    def test_names_that_mean_nothing(self, words, sentence):
        *words, preset = words if words[-1] == "paper" else (*words, "tuned")
        with pytest.raises(InputError, match=sentence):
            plan(*words, preset=preset)


class TestNotebook:
    def test_what_is_shown(self):
        algorithm, world = learners()["lppo"]
        result = lexrl.train(algorithm, world, ORDER, seeds=2, total_timesteps=2560, num_log_points=2)
        text = result._repr_html_()
        assert "<table>" in text
        assert "min cost &gt; max reward" in text
        assert result.plot()._repr_png_().startswith(b"\x89PNG")
        tolerant = dataclasses.replace(result.run, order=parse("min cost ±0.1 > max reward"))
        spec = dataclasses.replace(result, run=tolerant).plot("mine").spec
        assert spec["title"]["text"] == "mine"
        assert [panel["title"]["text"] for panel in spec["concat"]] == ["1. min cost", "2. max reward"]

    def test_progress_when_asked_for(self, capsys):
        algorithm, world = learners()["lppo"]
        lexrl.train(algorithm, world, ORDER, seeds=2, total_timesteps=2560, num_log_points=2, progress=True)
        assert "steps/s" in capsys.readouterr().out
        lexrl.train(algorithm, world, ORDER, seeds=2, total_timesteps=2560, num_log_points=2)
        assert capsys.readouterr().out == ""
