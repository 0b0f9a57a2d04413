"""The verdict of real runs: a finite environment, stages, prefix policies, retraining; and what a run keeps of it."""

import dataclasses
import json
import shutil
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

import lexrl
from lexrl import InputError, Networks, cli, verify
from lexrl.envs.batched import num_side_by_side
from lexrl.order import parse
from lexrl.runs import plan, references, sampling, verification, watching
from lexrl.runs.measuring import measure
from lexrl.runs.policy import Policy
from lexrl.runs.result import Result
from lexrl.runs.sampling import EpisodeTime, Limits
from lexrl.runs.scales import Episodes, Scale, make_scale
from lexrl.runs.statements import Known, Statement, make_statements
from lexrl.verdict import from_json

ORDER = "min cost > max reward"


def corridor(max_episode_steps=10):
    """Two states: staying costs nothing and pays nothing; going costs 1 and pays 1."""
    transitions = np.tile(np.eye(2)[0], (2, 2, 1))
    costs, rewards = np.array([[0.0, 1.0]] * 2), np.array([[0.0, 1.0]] * 2)
    momdp = lexrl.MOMDP.from_arrays(transitions, np.stack([costs, rewards]), 0.9, signals=("cost", "reward"))
    return lexrl.FiniteEnv(momdp, max_episode_steps=max_episode_steps)


@pytest.fixture(scope="module")
def exact():
    """Trained long enough to stay, and looked at as it is and as if the order were the other way round."""
    return lexrl.train(
        lexrl.QLearning(gamma=0.9), corridor(), ORDER, seeds=2, total_timesteps=4000, verify_episodes=200
    )


def test_the_exact_optimum_is_the_reference(exact):
    verdict = verification.verify_result(exact, Limits(200))
    assert verdict.status == exact.verdict.status == "kept"
    assert {one.reference for one in verdict.findings} == {"the exact optimum"}
    assert all(one.episodes == 0 and one.value == one.reference_value == 0 for one in verdict.findings)
    assert verdict.episodes == 200
    assert [one.events for one in verdict.rare_events] == [0, 0]
    assert "Priority kept in all 2 seeds." in repr(exact)
    assert "Priority kept" in exact._repr_html_()


def test_a_policy_of_another_order_violates(exact):
    greedy = lexrl.train(lexrl.QLearning(gamma=0.9), corridor(), "max reward > min cost", seeds=2, total_timesteps=4000)
    assert greedy.verdict is None
    turned = [dataclasses.replace(one, order=exact.run.order) for one in greedy.policies]
    # Values are stored in the order of the objectives: those of the other order choose to go.
    wrong = dataclasses.replace(exact, policies=tuple(turned))
    verdict = verification.verify_result(wrong, Limits(100))
    assert verdict.status == "violated"
    found = verdict.findings[0]
    assert found.value == pytest.approx(10.0, rel=1e-4)  # 1 / (1 - 0.9)
    assert found.slack_used == pytest.approx(10.0, rel=1e-4)


def test_prefix_policies_are_references_where_nothing_is_exact(exact, monkeypatch):
    monkeypatch.setattr(references, "exact_returns", lambda *_: None)
    looks = []
    verdict = verification.verify_result(exact, Limits(1000), watch=looks.append)
    assert verdict.status == "kept"
    assert {one.reference for one in verdict.findings} >= {"its own policy for 'cost' alone"}
    assert [one.episodes for one in looks] == list(range(0, verdict.episodes + 1, 100))
    assert looks[-1].undecided == 0


def test_time_is_limited(exact):
    """Also that of the exact optimum: without it, policies are compared with what the algorithm reached itself."""
    verdict = verification.verify_result(exact, Limits(1000, seconds=1e-6))
    assert verdict.episodes == sampling.PROBE
    assert verdict.status == "undecided"
    assert {one.reference for one in verdict.findings} == {"its own policy for 'cost' alone"}
    assert verdict.references.endswith("The exact optimum was not found within 5e-07 s.")


def test_an_optimum_that_takes_too_long_is_none(exact, monkeypatch):
    """The solver returns the policy that it has found so far, which is no reference."""
    given, now = [], [0.0]

    def slow(process, order, time_limit):
        given.append(time_limit)
        now[0] += 0.15
        return solve(process, order)

    solve = lexrl.exact.solve
    monkeypatch.setattr(references.exact, "solve", slow)
    monkeypatch.setattr(references, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert references.exact_returns(exact, 0.2) is None
    assert given == pytest.approx([0.2, 0.05])
    assert references.exact_returns(exact).best.tolist() == [0, 0]


def test_episodes_that_never_end_are_cut_off(monkeypatch):
    """A million steps each, after 4,000 steps of training: the verdict takes no longer than it may, and says how."""
    monkeypatch.setattr(references, "exact_returns", lambda *_: None)
    endless = lexrl.train(
        lexrl.QLearning(gamma=0.9), corridor(1_000_000), ORDER, seeds=2, total_timesteps=4000, verify_episodes=0
    )
    verdict = verification.verify_result(endless, Limits(100, seconds=10.0))
    assert verdict.seconds < 10.0
    assert verdict.reservations["cut"] == verdict.reservations["endless"] == (0, 1)
    assert verdict.references.endswith("Episodes were cut off after 1,000 steps, for want of time.")
    # Where time is not limited, they are played to their end.
    assert sampling._longest(endless, Limits(100), 3) is None


def test_few_long_episodes_show_how_long_they_take(exact):
    """Ten of every policy would take more than a tenth of the steps of training."""
    paces = [
        sampling._expected_pace(
            dataclasses.replace(exact, metrics={**exact.metrics, "episode_length": np.full((50, 2), length)}), 3
        )
        for length in (10.0, 20.0)
    ]
    assert [one.side_by_side for one in paces] == [sampling.PROBE, sampling.FEWEST]


def test_one_objective_has_no_priority(exact):
    alone = dataclasses.replace(exact, run=dataclasses.replace(exact.run, order=parse("min cost")))
    assert verification.verify_result(alone, Limits(100)) is None


def test_prefixes_are_trained_with_the_same_budget():
    run = plan(lexrl.LPPO(gamma=(0.9, 0.99), num_envs=2, num_steps=8), "cart-safe", "min cost ±1 > max reward", 3, 1000)
    same, parent = references.prefix_runs(run, 1)
    assert (str(same.order), same.seeds, same.total_timesteps) == ("min cost ±1", run.seeds, 1000)
    assert same.algorithm.gamma == (0.9,)
    assert (parent.name, parent.total_timesteps, str(parent.order)) == ("ppo", 1000, "min cost ±1")
    assert same.verify_episodes == parent.verify_episodes == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run with stages, of a few updates."""
    place = tmp_path_factory.mktemp("verified") / "run"
    algorithm = lexrl.LPPO(num_envs=4, num_steps=64, num_minibatches=2, networks=Networks(hidden_sizes=(8,)))
    lexrl.train(
        algorithm, "cart-safe", ORDER, seeds=2, total_timesteps=2048, num_log_points=2, out=place, verify_episodes=100
    )
    return place


def test_stages_leave_references(folder):
    result = lexrl.load(folder)
    assert all(0 <= index < 11 for one in result.selection for index in one["references"])
    (reference,) = references.own_references(result)
    assert reference.num_objectives == 1
    stage_1 = [result.policies[0].algorithm.describe_candidate(2, one["references"][0]) for one in result.selection]
    assert {one["stage"] for one in stage_1} == {1}


def test_the_verdict_is_in_the_summary(folder):
    content = json.loads((folder / "summary.json").read_text())["verdict"]
    verdict = lexrl.load(folder).verdict
    assert verdict.as_json() == content
    assert content["status"] == verdict.status
    assert content["episodes"] == 100
    # The best of the seeds is chosen by the first batch, which then does not count: with one batch there is no finding.
    assert {one["reference"] for one in content["findings"]} == {"its own policy for 'cost' alone"}


def test_verify_on_the_command_line(folder, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["verify", str(folder), "--episodes", "200"])
    status = lexrl.load(folder).verdict.status
    assert stopped.value.code == {"kept": 0, "violated": 1, "undecided": 3}[status]
    assert "Was the priority kept?" in capsys.readouterr().out
    assert lexrl.load(folder).verdict.episodes in (100, 200)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["verify", str(folder / "nothing")])
    assert stopped.value.code == 2


@pytest.mark.parametrize(("status", "code"), [("kept", 0), ("violated", 1), ("undecided", 3)])
def test_the_exit_code_says_the_verdict(folder, tmp_path, monkeypatch, capsys, status, code):
    """That of `lexrl verify`; `lexrl train` succeeds whatever the verdict is."""
    shutil.copytree(folder, tmp_path / "run")
    known = lexrl.load(folder).verdict
    found = dataclasses.replace(known, findings=tuple(one._replace(status=status) for one in known.findings))
    monkeypatch.setattr("lexrl.cli.verify.verify_result", lambda *_: found)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["verify", str(tmp_path / "run")])
    assert stopped.value.code == code
    assert lexrl.load(tmp_path / "run").verdict.status == status
    monkeypatch.setattr(verification, "verify_result", lambda *_, **__: found)
    command = [
        "train",
        "random",
        "cart-safe",
        "--seeds",
        "2",
        "--total-timesteps",
        "64",
        "--out",
        str(tmp_path / "new"),
    ]
    cli.main(command)
    assert f"Priority {found.sentence}"[:30] in capsys.readouterr().out
    assert lexrl.load(tmp_path / "new").verdict.status == status


class Toll(gymnasium.Env):
    """Going costs 1 and pays 1."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float(action), False, False, {"cost": float(action)}


def test_time_is_shown_where_progress_is(capsys):
    """Of an environment that is stepped from Python it is said before the verdict begins."""
    env = lexrl.GymEnv(gymnasium.wrappers.TimeLimit(Toll(), 5))
    result = lexrl.train(
        lexrl.Random(), env, ORDER, seeds=2, total_timesteps=500, num_log_points=2, verify_episodes=40, progress=True
    )
    assert result.verdict.episodes == 40
    assert "Verifying the priority: at most 40 episodes of each policy, at most" in capsys.readouterr().out


def test_a_damaged_verdict_is_a_sentence(folder, tmp_path):
    with pytest.raises(InputError, match="lexrl verify RUN"):
        from_json({"findings": [{"seed": 1}], "rare_events": []})


def test_the_number_of_episodes_is_checked():
    with pytest.raises(InputError, match="verify_episodes is -1"):
        plan(lexrl.Random(), "cart-safe", ORDER, verify_episodes=-1)


def episodes(values):
    """Of one policy of each seed, undiscounted and discounted alike: `[seeds, n, M]`."""
    return Episodes(np.asarray(values, float), np.asarray(values, float), np.full(np.shape(values)[:2], 5))


def test_a_limit_is_tested_as_it_is_written():
    """A mean cost of 2, and limits of 1, 2.5 and 4."""
    costs = -np.random.default_rng(0).uniform(1, 3, (1, 800, 1))
    wide = Scale(*(np.full(1, 3.0) for _ in range(4)))
    decisions = [
        measure(Statement(0, 0, "the limit", limit=-limit), [episodes(costs)], wide, None).decide(0.05, 800)
        for limit in (1.0, 2.5, 4.0)
    ]
    assert decisions == [-1, 1, 1]


def test_a_reference_that_gave_up_something_more_important_does_not_count():
    """Of seed 1, the policy for the first two objectives earns more of the second, at the expense of the first."""
    random = np.random.default_rng(1)
    noise = random.normal(size=(2, 100, 3))
    final = episodes(noise)
    first, second = episodes(noise[..., :1]), noise[..., :2].copy()
    second[1] += [-1.0, 5.0]
    order = parse("max a > max b > max c")
    known = [Known(1, "for a"), Known(2, "for a and b")]
    made = make_statements([final, first, episodes(second)], known, order, across=False)
    assert [(one.seed, one.objective, one.name) for one in made] == [
        (0, 0, "for a"), (1, 0, "for a"), (0, 1, "for a and b")
    ]  # fmt: skip


def test_the_range_is_that_of_mean_returns():
    curves = np.array([[[0.0, 5.0]], [[8.0, np.nan]]])
    played, untrained = episodes(np.full((1, 10, 2), 2.0)), episodes(np.full((1, 10, 2), [1.0, 30.0]))
    scale = make_scale(curves, [played], untrained, 1.0)
    assert scale.undiscounted.tolist() == [8.0, 28.0]
    assert scale.span.tolist() == [8.0, 28.0]
    halved = make_scale(curves, [played], untrained, (0.0, 1.0))
    assert halved.discounted.tolist() == [8.0 / 5, 28.0]  # of five even rewards the first counts


def test_a_limit_is_tested_by_betting_where_returns_are_bounded():
    """A mean cost of 2 of at most 10 per episode, and a limit of 2.5: nothing is assumed about its distribution."""
    costs = -np.random.default_rng(0).uniform(1, 3, (1, 800, 1))
    bounded = Scale(*(np.full(1, 3.0) for _ in range(4)), known=(verify.Range(-10.0, 0.0),))
    measured = measure(Statement(0, 0, "the limit", limit=-2.5), [episodes(costs)], bounded, None)
    assert measured.known == verify.Range(-7.5, 2.5)
    assert measured.by_betting(0.05, 800)
    assert measured.decide(0.05, 800) == verify.KEPT
    # Bounds that returns do not keep are none; and a range that is too wide to decide anything is of no use.
    broken = bounded._replace(known=(verify.Range(-2.0, 0.0),))
    assert measure(Statement(0, 0, "the limit", limit=-2.5), [episodes(costs)], broken, None).known is None
    wide = bounded._replace(known=(verify.Range(-1e6, 0.0),))
    assert not measure(Statement(0, 0, "the limit", limit=-2.5), [episodes(costs)], wide, None).by_betting(0.05, 800)


@pytest.mark.parametrize("name", ["cart-safe", "grid-nav", "mountain-car-safe"])
def test_returns_of_environments_lie_between_their_bounds(name):
    """Of random policies, undiscounted and discounted."""
    result = lexrl.train(lexrl.Random(), name, "min cost > max reward", seeds=2, total_timesteps=64, verify_episodes=0)
    known = result.run.env.return_bounds
    for gamma in (1.0, 0.97):
        played = result.evaluate(50, gamma=gamma).discounted
        for j, signal in enumerate(result.run.order.names):
            if signal in known:
                low, high = known[signal]
                assert low - 1e-3 <= played[..., j].min()
                assert played[..., j].max() <= high + 1e-3
    assert "cost" in known


def test_no_more_episodes_begin_than_there_is_time_for():
    """At most half of the time that is left; in rounds of as many as are played side by side."""
    unknown = EpisodeTime(None, 10)
    assert (unknown.portion(100, 9.0), unknown.portion(100, np.inf)) == (10, 100)
    known = EpisodeTime(0.1, 10)
    assert [known.portion(100, left) for left in (20.0, 19.0, 2.0, 1.9, 0.0, -1.0)] == [100, 90, 10, 0, 0, 0]
    assert known.portion(5, 1.0) == 5
    # Of the first ones there are two at least.
    slow = EpisodeTime(1.0, 16)
    assert [slow.first_portion(32, left) for left in (64.0, 40.0, 20.0, 3.0, 0.0)] == [32, 16, 10, 2, 2]
    assert slow.first_portion(1, 0.0) == 1


def slow_player(now, seconds):
    """Plays in no time, on a clock that says how long it would have taken."""

    def play(first, count):
        now[0] += count * seconds
        return episodes(np.zeros((1, count, 1)))

    return play


@pytest.mark.parametrize("seconds", [0.001, 0.05, 0.3, 3.0])
def test_batches_end_in_time(monkeypatch, seconds):
    """Also where episodes take longer than was expected: then it is noticed with the first of them."""
    now = [0.0]
    monkeypatch.setattr(sampling, "time", SimpleNamespace(monotonic=lambda: now[0]))
    played, pace = sampling._play([slow_player(now, seconds)] * 2, 0, 100, EpisodeTime(None, 10), 10.0)
    assert pace.seconds == pytest.approx(2 * seconds)
    assert now[0] <= max(10.0, sampling.PROBE * 2 * seconds)
    assert played[0].returns.shape[1] == {0.001: 100, 0.05: 90, 0.3: 10, 3.0: 10}[seconds]


def test_what_was_compiled_is_not_taken_for_the_speed(monkeypatch):
    """Compiling takes 6 of 10 seconds, and episodes next to nothing: then there are a hundred, not ten. The policies'
    episodes are of different lengths, and steps per second alike."""
    now, compiled = [0.0], []

    def player(steps):
        def play(first, count):
            now[0] += count * steps * 1e-5 + (0.0 if compiled else 6.0)
            compiled.append(True)
            return episodes(np.zeros((1, count, 1)))._replace(lengths=np.full((1, count), steps))

        return play

    monkeypatch.setattr(sampling, "time", SimpleNamespace(monotonic=lambda: now[0]))
    played, pace = sampling._play([player(1000), player(10)], 0, 100, EpisodeTime(None, 10), 10.0)
    assert played[0].returns.shape[1] == 100
    assert pace.seconds == pytest.approx(0.0101)
    # The one that is long is known to be, although the other one was timed.
    assert sampling._by_speed([one._replace(lengths=one.lengths[:, :10]) for one in played], [16.0, 0.001]) == (
        pytest.approx(0.0101)
    )


def test_as_many_environments_as_episodes():
    """Few episodes are not worth sixteen environments, unless these can only be had together."""
    one, together = SimpleNamespace(), SimpleNamespace(num_envs=16)
    assert [num_side_by_side(env, 16, 2) for env in (one, together)] == [2, 16]
    assert [num_side_by_side(env, 16, 40) for env in (one, together)] == [16, 16]


def test_a_reference_that_is_handed_over_itself_is_noticed(folder):
    result = lexrl.load(folder)
    kept = np.array([one["references"][0] for one in result.selection])
    describe = result.policies[0].algorithm.describe_candidate
    chosen = tuple(dict(one) | describe(2, int(k)) for one, k in zip(result.selection, kept, strict=True))
    (reference,) = references.own_references(dataclasses.replace(result, selection=chosen))
    assert reference.same == (True, True)
    final = tuple(one | describe(2, 0) for one in chosen)
    (reference,) = references.own_references(dataclasses.replace(result, selection=final))
    assert reference.same == (False, False)


def test_nothing_is_trained_where_the_optimum_is_known(exact):
    def retrain():
        raise AssertionError("the exact optimum is known")

    verdict = verification.verify_result(exact, Limits(100), retrain)
    assert {one.test for one in verdict.findings} == {"exact"}


def test_time_is_said_before_the_first_episode():
    """What an episode of three policies takes follows from the speed of training: 20 s for 1,000 steps of 2 seeds."""
    env = lexrl.GymEnv(gymnasium.make("CartPole-v1"))
    run = plan(lexrl.Random(), env, "max reward", 2, 1000)
    curves = {"episode_length": np.array([[np.nan, np.nan], [20.0, 30.0]])}
    policies = tuple(Policy(run.algorithm, None, run.order.spec(env.spec), run.order, seed) for seed in run.seeds)
    result = Result(run, policies, np.array([500, 1000]), curves, {}, 20.0)
    pace = sampling._expected_pace(result, 3)
    assert pace.seconds == pytest.approx(3 * 25 * 0.02)
    look = sampling.Look(0, 0.0, Limits(2000, 12.0), 0, 3000.0)
    assert watching._progress(look) == "at most 2,000 episodes of each policy, at most 12 s"
    assert watching._progress(look._replace(limits=Limits(2000))).endswith("at most 50 minutes")
    later = look._replace(episodes=500, seconds=10.0, expected=40.0)
    assert watching._progress(later) == "500 of at most 2,000 episodes of each policy, at most 2 s more"
