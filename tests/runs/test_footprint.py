"""What does not fit into memory is refused before it is allocated, with numbers and what to lower."""

import pytest

import lexrl
from lexrl import cli, memory
from lexrl.errors import InputError
from lexrl.runs import footprint, plan

GIGABYTE = 10**9


@pytest.fixture
def small_machine(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: GIGABYTE)


def test_what_a_replay_buffer_takes():
    """Rows of LDQN on CartSafe: 4 + 4 floats of observations, an action, 2 rewards, a discount and a flag."""
    algorithm = lexrl.LDQN(num_envs=4, num_steps=4, buffer_size=16_000, learning_starts=16, num_members=1)
    run = plan(algorithm, "cart-safe", "min cost > max reward", 3, 100_000)
    assert footprint.estimate(run)["replay buffers"] == footprint.COPIES * 3 * 16_000 * (4 * (4 + 4 + 1 + 2 + 1) + 1)


def test_what_a_table_takes():
    run = plan(lexrl.QLearning(), "random-momdp", "max signal_1", 2, 1000, env_kwargs={"num_states": 8})
    parts = footprint.estimate(run)
    assert parts["replay buffers"] == 0
    assert parts["parameters"] >= footprint.COPIES * 2 * 8 * 4 * 4  # a float for each state and action


@pytest.mark.parametrize(
    ("words", "part", "lower"),
    [
        ("train ldqn cart-safe --buffer-size 1000000000 --total-timesteps 1e9", "replay buffers", "buffer_size"),
        ("train ppo cart-pole --order 'max reward' --hidden-sizes 1000000 1000000", "parameters", "hidden_sizes"),
        ("train q-learning grid-nav --size 100000", "the map", "size"),
        ("train q-learning random-momdp --num-states 1000000", "transitions and rewards", "num_states"),
        ("solve random-momdp --num-states 1000000 --order 'max signal_1'", "transitions and rewards", "num_states"),
        ("train a2c cart-pole --order 'max reward' --num-envs 1000000000", "rollouts|environments", "num_envs"),
        ("train random gym:CartPole-v1 --order 'max reward' --num-envs 1000000 --seeds 2", "environments", "num_envs"),
    ],
)
def test_refused_with_numbers(words, part, lower, small_machine, tmp_path, monkeypatch, capsys):
    import shlex

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        cli.main(shlex.split(words))
    said = " ".join(capsys.readouterr().err.split())
    assert stopped.value.code == 2, said
    assert "This would take about" in said
    assert "and 1 GB are free; lower" in said
    assert any(one in said for one in part.split("|"))
    assert lower in said
    assert "--force" in said
    assert not list(tmp_path.iterdir())


def test_those_who_insist_are_believed(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    settings = {"seeds": 1, "total_timesteps": 64, "num_log_points": 1}
    with pytest.raises(InputError, match="This would take about"):
        lexrl.train("random", "cart-safe", **settings)
    assert len(lexrl.train("random", "cart-safe", **settings, force=True)) == 1


def test_those_who_insist_may_continue(monkeypatch, tmp_path):
    """A run that was begun with --force is continued with it."""
    settings = {"seeds": 1, "total_timesteps": 64, "num_log_points": 1, "eval_episodes": 1}
    lexrl.train("random", "cart-safe", **settings, out=tmp_path / "run")
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(SystemExit):
        cli.main(["continue", str(tmp_path / "run"), "--steps", "64"])
    with pytest.raises(InputError, match="This would take about"):
        lexrl.resume(tmp_path / "run")
    cli.main(["resume", str(tmp_path / "run"), "--force"])
    assert lexrl.load(tmp_path / "run").run.total_timesteps == 128
    assert lexrl.resume(tmp_path / "run", steps=64, force=True).run.total_timesteps == 192


def test_a_sweep_that_does_not_fit_trains_nothing(monkeypatch, tmp_path):
    """It would be in the way of a smaller one in the same folder."""
    given = {"out": tmp_path / "out", "seeds": 2, "confirm": 2, "total_timesteps": 64, "num_log_points": 1}
    given |= {"env_kwargs": {"num_states": 4}, "eval_episodes": 1}
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available", lambda: 1000)
        with pytest.raises(InputError, match="This would take about"):
            lexrl.sweep("random", "random-momdp", "max signal_1", over={"num_envs": [2, 3]}, **given)
    assert len(lexrl.sweep("random", "random-momdp", "max signal_1", over={"num_envs": [1, 2]}, **given).rows) == 2


@pytest.mark.parametrize(
    ("count", "shown"),
    [(10, "0.01 kB"), (1500, "1.5 kB"), (2_500_000, "2.5 MB"), (3 * 10**9, "3 GB"), (10**13, "10 TB"),
     (10**30, "1,000,000,000,000,000,000 TB")],
)  # fmt: skip
def test_sizes(count, shown):
    assert memory.size(count) == shown


def test_this_machine_has_some():
    free = memory.available()
    assert free is None or free > 10_000_000
