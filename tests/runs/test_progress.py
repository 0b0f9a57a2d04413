"""The progress line: what it says of made-up results whose meaning is known."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from lexrl.order import parse
from lexrl.runs import progress as module
from lexrl.runs.progress import Speed, arrow, board, details, last, mean_return, plain, progress, stage, trend

NAN = float("nan")
SEEDS = 4
RISING = np.linspace(1.0, 2.0, 20)[:, None] + np.array([0.0, 0.01, 0.02, 0.03])
"""`[points, seeds]`: every seed goes up."""
FLAT = np.ones((20, 1)) + np.random.default_rng(0).normal(0, 0.1, (20, SEEDS))


def result(returns=None, multiplier=None, steps=None, faults=None, total=1000, order="min cost > max reward"):
    """What training with two objectives leaves: by default cost and reward rise, and cost has a multiplier."""
    returns = np.stack([RISING, RISING], axis=-1) if returns is None else returns
    points = len(returns)
    metrics = {"episode_return": returns}
    if multiplier is not None:
        metrics["multiplier"] = np.broadcast_to(np.array([multiplier, 0.0]), returns.shape)
    run = SimpleNamespace(order=parse(order), seeds=tuple(range(returns.shape[1])), total_timesteps=total)
    steps = np.arange(1, points + 1) * total // points if steps is None else np.asarray(steps)
    return SimpleNamespace(run=run, steps=steps, metrics=metrics, faults=faults or {})


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: now.seconds)
    return now


def timed(clock, one, seconds=10.0) -> Speed:
    speed = Speed(one.run.total_timesteps)
    clock.seconds += seconds
    speed.update(one)
    return speed


def lines(results, title="a title") -> list[str]:
    """What a file sees."""
    file = io.StringIO()
    results[0].run.title = title
    with progress(results[0].run, Console(file=file, width=80, highlight=False)) as see:
        for one in results:
            see(one)
    return file.getvalue().splitlines()


def part(whole, points):
    """The result after its first points."""
    metrics = {name: values[:points] for name, values in whole.metrics.items()}
    return SimpleNamespace(run=whole.run, steps=whole.steps[:points], metrics=metrics, faults=whole.faults)


class TestTrend:
    def test_more_is_better_for_max_and_worse_for_min(self):
        assert trend(RISING, 1) == 1
        assert trend(RISING, -1) == -1
        assert trend(-RISING, 1) == -1
        assert trend(-RISING, -1) == 1

    def test_noise_is_steady(self):
        assert trend(FLAT, 1) == 0

    def test_no_change_is_steady(self):
        assert trend(np.ones((20, SEEDS)), 1) == 0

    def test_seeds_that_disagree_are_steady(self):
        assert trend(np.stack([RISING[:, 0], -RISING[:, 0], RISING[:, 0], -RISING[:, 0]], axis=1), 1) == 0

    def test_compares_the_last_quarter_with_the_one_before(self):
        parts = [np.full((points, SEEDS), value) for points, value in ((10, 5.0), (5, 1.0), (5, 2.0))]
        assert trend(np.concatenate(parts), 1) == 1
        assert trend(np.concatenate([parts[0], parts[2], parts[1]]), 1) == -1

    def test_seeds_without_episodes_are_left_out(self):
        values = RISING.copy()
        values[:, 3] = NAN
        values[-1, 2] = NAN  # the other points still count
        assert trend(values, 1) == 1

    @pytest.mark.parametrize("values", [RISING[:1], RISING[:, :1], np.full((20, SEEDS), NAN), np.zeros((0, SEEDS))])
    def test_is_not_known_of_one_point_one_seed_or_no_episode(self, values):
        assert trend(values, 1) is None

    def test_is_wrong_about_nothing_in_5_of_100_cases(self):
        random = np.random.default_rng(0)
        said = [trend(random.normal(size=(20, 5)), 1) for _ in range(2000)]
        assert 0.03 < np.mean([way != 0 for way in said]) < 0.07

    def test_the_arrow_shows_where_the_number_goes(self):
        assert [arrow(1, 1), arrow(1, -1), arrow(-1, -1), arrow(0, -1), arrow(None, 1)] == ["↑", "↓", "↑", "→", ""]


class TestMeanReturn:
    def test_is_of_the_last_point_with_its_interval(self):
        one = result(np.array([[[9.0], [9.0], [9.0]], [[1.0], [2.0], [3.0]]]), order="max reward")
        assert mean_return(one, 0) == "2 [-0.5, 4.5]"

    def test_leaves_out_seeds_without_episodes(self):
        one = result(np.array([[[1.0], [NAN], [2.0], [3.0]]]), order="max reward")
        assert mean_return(one, 0) == "2 [-0.5, 4.5]"

    def test_of_one_seed_has_no_interval(self):
        assert mean_return(result(np.array([[[1.5]]]), order="max reward"), 0) == "1.5"

    def test_says_when_there_is_none(self):
        assert mean_return(result(np.full((1, SEEDS, 2), NAN)), 0) == "no episode yet"


class TestMultiplier:
    def test_is_the_mean_over_seeds(self):
        one = result()
        one.metrics["multiplier"] = np.array([[[9.0, 0.0]] * SEEDS, [[1.0, 0.0], [2.0, 0.0], [NAN, 0.0], [6.0, 0.0]]])
        assert last(one, "multiplier", 0) == 3.0

    def test_the_last_objective_has_none(self):
        assert last(result(multiplier=2.0), "multiplier", 1) is None

    def test_an_algorithm_without_multipliers_has_none(self):
        assert last(result(), "multiplier", 0) is None

    def test_seeds_that_stopped_have_none(self):
        assert last(result(multiplier=NAN), "multiplier", 0) is None


def staged(stage, threshold=(2.0, 0.0), estimate=(1.75, 0.0), multiplier=0.25, **more):
    """Of an algorithm with stages: one number for each seed, or one for all."""
    one = result(multiplier=multiplier, **more)
    shape = one.metrics["episode_return"].shape
    one.metrics["stage"] = np.broadcast_to(np.asarray(stage, float), shape[:2])
    one.metrics["threshold"] = np.broadcast_to(np.asarray(threshold), shape)
    one.metrics["return_estimate"] = np.broadcast_to(np.asarray(estimate), shape)
    return one


class TestStages:
    def test_the_stage_and_its_objective(self):
        assert stage(staged(1)) == ["stage 1/2: cost"]
        assert stage(staged(2)) == ["stage 2/2: reward"]

    def test_seeds_that_are_not_equally_far(self):
        assert stage(staged([1, 2, 2, 1])) == ["stages 1 to 2 of 2: cost, reward"]

    def test_a_stage_that_began_within_the_chunk(self):
        assert stage(staged(1.5)) == ["stage 2/2: reward"]

    def test_seeds_that_stopped(self):
        assert stage(staged([1, NAN, 1, 1])) == ["stage 1/2: cost"]
        assert stage(staged(NAN)) == []

    def test_algorithms_without(self):
        assert stage(result(multiplier=2.0)) == []
        assert details(result(multiplier=2.0), 0) == ["multiplier 2"]

    def test_threshold_and_multiplier_once_the_stage_is_over(self):
        assert details(staged(1), 0) == []
        assert details(staged(2), 0) == ["discounted 1.75, threshold 2", "multiplier 0.25"]
        assert details(staged(2), 1) == []

    def test_of_the_seeds_where_it_is_over(self):
        one = staged([2, 1, 2, 1])
        one.metrics["threshold"] = np.tile([[[4.0, 0.0], [90.0, 0.0], [6.0, 0.0], [90.0, 0.0]]], (20, 1, 1))
        assert details(one, 0) == ["discounted 1.75, threshold 5", "multiplier 0.25"]

    def test_in_one_line(self, clock):
        one = staged(2)
        interval = mean_return(one, 0)
        assert plain(one, timed(clock, one)).startswith(
            f"       1,000 steps  stage 2/2: reward  cost {interval} worse, discounted 1.75, threshold 2, "
            f"multiplier 0.25  reward {interval} better  "
        )

    def test_on_a_terminal(self, clock):
        one = staged(2)
        console = Console(record=True, width=110, force_terminal=True, file=io.StringIO(), highlight=False)
        console.print(board(one, timed(clock, one)))
        cost, reward, now, bar = console.export_text().splitlines()
        assert cost.rstrip().endswith("discounted 1.75, threshold 2, multiplier 0.25")
        assert reward.rstrip().endswith("better")
        assert now.rstrip() == "stage 2/2: reward"
        assert "100 %" in bar


class TestSpeed:
    def test_counts_from_the_first_result_on_for_compiling_comes_before(self, clock):
        whole = result()
        speed = timed(clock, part(whole, 1), seconds=60)
        clock.seconds += 2
        speed.update(part(whole, 3))
        assert speed.per_second == 50
        assert speed.left == "0:17"

    def test_the_first_result_counts_from_the_beginning(self, clock):
        speed = timed(clock, part(result(), 1), seconds=5)
        assert speed.per_second == 10
        assert speed.describe(4) == [
            "compiled and started in 5 s"
        ]  # a time left with the compiling in it would frighten
        clock.seconds += 1
        speed.update(part(result(), 2))
        assert speed.describe(4) == ["200 steps/s", "0:18 left"]

    def test_a_run_of_one_part_tells_its_speed(self, clock):
        one = result(RISING[:1, :, None], steps=[1000], total=1000)
        assert timed(clock, one, seconds=5).describe(4) == ["800 steps/s", "0:00 left"]

    def test_a_run_that_goes_on_counts_only_what_is_new(self, clock):
        assert timed(clock, part(result(), 15), seconds=5).per_second == 10

    @pytest.mark.parametrize(("total", "text"), [(2, "0:00"), (67, "1:05"), (3663, "1:01:01"), (360_002, "100:00:00")])
    def test_time_left_reads_like_a_clock(self, clock, total, text):
        one = result(RISING[:2, :, None], steps=[1, 2], total=total)
        speed = timed(clock, part(one, 1))
        clock.seconds += 1
        speed.update(one)
        assert speed.left == text

    def test_more_than_was_asked_for_is_still_all(self, clock):
        speed = timed(clock, result(steps=[*range(1, 20), 2048]))
        assert (speed.percent, speed.left) == (100, "0:00")


class TestPlain:
    def test_says_everything_in_one_line(self, clock):
        one = result(multiplier=0.25)
        interval = mean_return(one, 0)
        assert plain(one, timed(clock, one)) == (
            f"       1,000 steps  cost {interval} worse, multiplier 0.25  reward {interval} better  "
            "20 steps/s  0:00 left"
        )

    def test_counts_the_steps_of_all_seeds(self, clock):
        assert "  200 steps/s" in plain(result(), timed(clock, result(), seconds=1))

    def test_says_nothing_of_a_trend_that_is_not_known(self, clock):
        one = result(np.array([[[3.0, 4.0]]]), multiplier=0.5)
        assert "  cost 3, multiplier 0.5  reward 4  " in plain(one, timed(clock, one))

    def test_says_when_there_was_no_episode(self, clock):
        one = result(np.full((3, SEEDS, 2), NAN))
        assert "  cost no episode yet  reward no episode yet  " in plain(one, timed(clock, one))


class TestInAFile:
    def test_a_line_for_every_tenth_and_one_at_once(self):
        whole = result()
        told = lines([part(whole, points) for points in range(1, 21)])
        assert told[0] == "a title"
        assert [int(line.split()[0].replace(",", "")) for line in told[1:]] == [50, *range(100, 1001, 100)]

    def test_results_further_apart_have_a_line_each(self):
        whole = result()
        assert len(lines([part(whole, points) for points in (5, 10, 15, 20)])) == 1 + 4

    def test_a_long_line_is_not_broken(self):
        told = lines([result(multiplier=0.25)], title="a long title " * 10)
        assert len(told) == 2
        assert len(told[0]) > 100
        assert len(told[1]) > 100

    def test_brackets_are_no_markup(self):
        (title, _) = lines([result()], title="Own[red]World")
        assert title == "Own[red]World"

    def test_a_seed_that_stopped_is_told_once(self):
        whole = result()
        stopped = result(faults={2: "Seed 2 stopped [nan]."})
        told = lines([part(whole, 1), part(stopped, 2), part(stopped, 3), whole])
        assert told.count("Seed 2 stopped [nan].") == 1


class TestOnATerminal:
    def shown(self, one, clock) -> str:
        console = Console(record=True, width=100, force_terminal=True, file=io.StringIO(), highlight=False)
        console.print(board(one, timed(clock, one)))
        return console.export_text()

    def test_one_row_for_each_objective_then_the_bar(self, clock):
        one = part(result(multiplier=0.25), 10)
        cost, reward, bar = self.shown(one, clock).splitlines()
        assert cost.split("  ")[0] == "1. min cost"
        assert mean_return(one, 0) in cost
        assert "↑ worse" in cost
        assert cost.rstrip().endswith("multiplier 0.25")
        assert reward.startswith("2. max reward")
        assert "↑ better" in reward
        assert "multiplier" not in reward
        assert " 50 %  500 of 1,000 steps of each seed  compiled and started in " in bar

    def test_a_seed_that_stopped_has_its_sentence(self, clock):
        assert self.shown(result(faults={1: "Seed 1 stopped."}), clock).splitlines()[-1].rstrip() == "Seed 1 stopped."

    def test_names_are_shown_as_they_are(self, clock):
        one = result()
        objectives = tuple(objective._replace(name=f"[bold]{objective.name}") for objective in one.run.order.objectives)
        one.run.order = one.run.order._replace(objectives=objectives)
        assert "1. min [bold]cost" in self.shown(one, clock)

    def test_the_last_board_stays(self, clock):
        file = io.StringIO()
        console = Console(file=file, width=100, force_terminal=True, highlight=False)
        whole = result()
        whole.run.title = "a title"
        with progress(whole.run, console) as see:
            for points in (1, 20):
                clock.seconds += 10
                see(part(whole, points))
        written = file.getvalue()
        assert written.index("a title") < written.index("compiling ...") < written.rindex("100 %")
