"""The experiments: what they plan, what they conclude from known numbers, and that they run, stop, go on and reuse."""

import dataclasses
import json
import pathlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import lexrl
from lexrl import catalog, cli, presets, store
from lexrl.algorithms.single_objective import SingleObjective
from lexrl.catalog import ENVS
from lexrl.experiments import (
    find,
    names,
    pb_settings,
    perform,
    plan,
    policies,
    safety,
    safety_claims,
    scaling,
    schedule,
    slack,
    speeds,
    write,
)
from lexrl.experiments.power_law import convergence_step, fit, learning_time
from lexrl.experiments.safety_envs import EnvRow
from lexrl.experiments.schedule import Finished
from lexrl.report import folder as reports
from lexrl.report.run_folder import RunFolder
from lexrl.tolerance import Relative

SIZES = ("smoke", "laptop", "paper")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Speeds are remembered here, not in the user's cache."""
    monkeypatch.setattr(speeds, "_own", lambda: tmp_path / "speeds.json")


@pytest.mark.parametrize("size", SIZES)
def test_a_name_stands_for_one_run(size):
    """Experiments share runs by their names: the same name must mean the same settings."""
    described = {}
    for name in names():
        for job in find(name).runs(size):
            assert described.setdefault(job.name, job.describe()) == job.describe()
    assert len(plan(names(), size)) == len(described)


def test_the_papers_sizes():
    found = scaling.runs("paper")
    assert {job.tags["states"] for job in found} == {256, 512}
    assert {job.tags["objectives"] for job in found} == {1, 2, 4, 8, 16}
    assert {job.seeds for job in found} == {30}
    assert {(job.tags["states"], job.total_timesteps) for job in found if job.tags["algorithm"] == "double-q"} == {
        (256, 400_000), (512, 800_000),
    }  # fmt: skip
    both = {"ldqn", "rcpo", "appropo", "var-ac", "dqn", "a2c", "random", "slower", "idle"}
    for preset, own in (("paper", {"paper-la2c", "paper-lppo"}), ("tuned", {"la2c", "lppo"})):
        nine = {job.tags["algorithm"] for job in safety.runs("paper") if job.tags["preset"] == preset}
        assert nine == both | own
    assert {job.seeds for job in safety.runs("paper")} == {10}
    tolerances = {job.tags["tolerance"] for job in slack.runs("paper")}
    assert tolerances == {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}
    assert len(pb_settings.runs("paper")) == 9


def test_the_limits_are_the_papers():
    found = {job.name: job.algorithm for job in safety.runs("paper")}
    assert str(found["cart-safe/tuned/rcpo"].constraints[0]) == "cost <= 10"
    assert str(found["grid-nav/paper/appropo"].target_set) == "reward in 90..100, cost in 0..5"
    assert str(found["cart-safe/paper/var-ac"].chance_constraints[0]) == "cost <= 10 with 0.95"


class TestStable:
    STEPS = np.arange(1, 101) * 10

    def test_from_where_on_the_way_is_done(self):
        found = convergence_step(self.STEPS, np.minimum(np.arange(100) / 40, 1.0)[:, None])
        assert found == self.STEPS[36]  # nine tenths of the way, from 0 to 1 in forty points

    def test_one_that_still_moves_at_the_end_is_not(self):
        assert np.isnan(convergence_step(self.STEPS, np.arange(100.0)[:, None]))

    def test_the_slowest_objective_counts_by_its_share_of_the_way(self):
        quick, slow = np.minimum(np.arange(100) / 10, 1.0), np.minimum(np.arange(100) / 50, 1.0)
        both = convergence_step(self.STEPS, np.stack([quick, slow], axis=-1))
        assert both > 2 * convergence_step(self.STEPS, quick[:, None])

    def test_points_without_an_episode_do_not_count(self):
        values = np.minimum(np.arange(100) / 40, 1.0)[:, None]
        later = convergence_step(np.append(5, self.STEPS), np.concatenate([[[np.nan]], values]))
        assert later == convergence_step(self.STEPS, values)

    def test_objectives_that_only_scatter_do_not_hide_the_one_that_learns(self):
        noise = np.random.default_rng(0).normal(0, 0.1, (100, 15))
        values = np.concatenate([np.minimum(np.arange(100) / 40, 1.0)[:, None], noise], axis=1)
        assert convergence_step(self.STEPS, values) == pytest.approx(self.STEPS[36], abs=50)

    def test_known_exponents_are_found(self):
        """Environments whose learning takes `200 M^0.5` steps, with noise: the interval holds the exponent."""
        rng = np.random.default_rng(0)
        sizes, found = np.array([1, 2, 4, 8]), []
        for size in sizes:
            ramp = np.minimum(self.STEPS / (200 * size**0.5), 1.0)
            found.append(learning_time(self.STEPS, ramp[:, None, None] + 0.1 * rng.normal(size=(100, 30, 1))))
        power = fit(sizes, found).exponent
        assert power.low < 0.5 < power.high
        assert power.high - power.low < 0.3


def test_the_distance_to_the_optimum():
    """As `gaps` tells it with all its programs; some policies are the optimum here, others miss it at either place."""
    settings = {"num_states": 3, "num_successors": 1, "tie_fraction": 0.5, "reward_noise": 0.0}
    envs = lexrl.per_seed([lexrl.random_env(seed, num_actions=2, **settings) for seed in range(16)])
    algorithm = lexrl.QLearning(**catalog.TEXTBOOK | {"alpha": 0.1, "gamma": 0.9, "tolerance": 0.001})
    result = lexrl.train(algorithm, envs, "max signal_1 > max signal_2", seeds=16, total_timesteps=400)
    found = scaling.distance_to_optimum(result)
    gaps = result.gaps([envs.one(i).momdp(0.9) for i in range(16)], tolerance=Relative(0.01))
    np.testing.assert_allclose(found["first_gap"], [gap.shortfall[0] for gap in gaps], atol=1e-8)
    assert found["exact"] == [gap.level is None for gap in gaps]
    assert {gap.level for gap in gaps} == {None, 0, 1}


def finished(job, final, **summary):
    """A job with made-up results, `final [seeds, (cost, reward)]`."""
    about = {
        "seeds": list(range(len(final))),
        "objectives": [["cost", -1], ["reward", 1]],
        "steps": job.total_timesteps,
    }
    content = {
        "per_episode": {"cost": final[:, 0].tolist(), "reward": final[:, 1].tolist()},
        "stopped": {},
        "seconds": 60.0,
        **summary,
    }
    found = RunFolder(pathlib.Path("nowhere"), about, content)
    return Finished(job, found, content)


def around(cost, reward, seeds=10):
    rng = np.random.default_rng(0)
    return np.stack([cost + 0.01 * rng.random(seeds), reward + rng.random(seeds)], axis=1)


def test_tuned_presets_keep_the_slack_of_their_order():
    """An algorithm with one objective records the other one, too."""
    jobs = {job.tags["algorithm"]: job for job in safety.runs("laptop") if job.name.startswith("intersection/tuned/")}
    assert {"lppo", "dqn", "slower"} < jobs.keys()
    assert (jobs["lppo"].order, jobs["dqn"].order) == (
        "min collision ±0.05 > max arrived",
        safety.ENVS["intersection"].order,
    )
    assert isinstance(jobs["dqn"].algorithm, SingleObjective)
    assert isinstance(jobs["lppo"].algorithm, lexrl.LPPO)


class TestClaims:
    def of_cart(self, preset="tuned", **values):
        done = [
            finished(safety.job(name.replace("_", "-"), "cart-safe", preset, 10, 100), around(*value))
            for name, value in values.items()
        ]
        return {claim: seen for claim, seen, _ in safety_claims.all_claims(done, safety.ALGORITHMS)}

    def test_as_the_paper_says(self):
        seen = self.of_cart(ldqn=(1, 400), la2c=(1, 200), lppo=(1, 100), rcpo=(2, 300), var_ac=(100, 300))
        assert seen["On CartSafe the lexicographic algorithms are safe (tuned settings; safe: cost below 10)."] == "yes"
        assert seen["Of the safe ones LDQN has the most reward (tuned settings)."] == "yes"
        assert seen["VaR-AC struggles (tuned settings)."] == "yes"

    def test_with_the_papers_settings_its_own_algorithms_count(self):
        seen = self.of_cart("paper", ldqn=(1, 400), paper_la2c=(1, 200), paper_lppo=(1, 100))
        assert seen["On CartSafe the lexicographic algorithms are safe (paper settings; safe: cost below 10)."] == "yes"

    def test_otherwise(self):
        seen = self.of_cart(ldqn=(50, 400), la2c=(1, 200), lppo=(1, 500), var_ac=(1, 300))
        assert seen["On CartSafe the lexicographic algorithms are safe (tuned settings; safe: cost below 10)."] == "no"
        assert seen["Of the safe ones LDQN has the most reward (tuned settings)."] == "no"
        assert seen["VaR-AC struggles (tuned settings)."] == "no"

    def test_alike_is_not_decidable(self):
        seen = self.of_cart(ldqn=(1, 400), la2c=(1, 400), lppo=(1, 100))
        assert seen["Of the safe ones LDQN has the most reward (tuned settings)."] == "not decidable"

    @pytest.mark.parametrize(("lppo", "seen"), [(0.1, "no"), (0.45, "yes"), (0.9, "yes")])
    def test_nobody_is_safer_than_random_on_intersection(self, lppo, seen):
        """Always SLOWER is safer, but no algorithm."""
        jobs_ = {job.tags["algorithm"]: job for job in safety.runs("smoke") if job.env == "intersection"}
        values = {"random": 0.44, "paper-lppo": lppo, "slower": 0.0, "idle": 0.5}
        done = [finished(jobs_[name], around(value, 0.5)) for name, value in values.items()]
        [(claim, answer, numbers)] = safety_claims.all_claims(done, safety.ALGORITHMS)
        assert (claim, answer) == ("On Intersection no algorithm is safer than random (paper settings).", seen)
        assert "SLOWER" not in numbers

    def test_seeds_that_disagree_decide_nothing(self):
        """Half of the seeds cost nothing, half of them far too much."""
        split = np.stack([np.tile([0.0, 100.0], 5), np.full(10, 400.0)], axis=1)
        names = ("ldqn", "la2c", "lppo", "rcpo", "var-ac")
        done = [finished(safety.job(name, "cart-safe", "tuned", 10, 100), split) for name in names]
        assert {seen for _, seen, _ in safety_claims.all_claims(done, safety.ALGORITHMS)} == {"not decidable"}

        noise = np.random.default_rng(0).normal(0, 100, (6, 10, 2))
        tuned = [job for job in slack.runs("paper") if job.tags["preset"] == "tuned"]
        ((_, seen, numbers),) = slack._claims("tuned", [finished(job, noise[i]) for i, job in enumerate(tuned)])
        assert seen == "not decidable"
        assert "of the resamples of seeds" in numbers

        done = [finished(job, split) for job in pb_settings.runs("paper")]
        assert [seen for _, seen, _ in pb_settings._claims(done)] == ["not decidable", "not decidable"]

    def test_one_seed_decides_nothing(self):
        done = [finished(job, around(1, 400, seeds=1)) for job in pb_settings.runs("paper")]
        _, seen, numbers = pb_settings._claims(done)[0]
        assert seen == "not decidable"
        assert numbers.endswith("a run has fewer than two seeds")

    def test_a_seed_that_stopped_is_left_out(self):
        values = around(1, 400)
        values[3] = 1e9
        one = finished(safety.job("ldqn", "cart-safe", "tuned", 10, 100), values, stopped={"3": "NaN"})
        assert schedule.finals(one).max() < 1e3

    @pytest.mark.parametrize(("values", "seen"), [((0, 1, 2, 3, 4, 5), "yes"), ((0, 0, 0, 5, 5, 5), "no")])
    def test_a_gradual_slack(self, values, seen):
        tuned = [job for job in slack.runs("paper") if job.tags["preset"] == "tuned"]
        done = [finished(job, around(value, 100 * value)) for job, value in zip(tuned, values, strict=True)]
        assert slack._claims("tuned", done)[0][1] == seen

    def test_settings(self):
        jobs_ = pb_settings.runs("paper")
        done = [finished(job, around(1, 400 if job.tags.get("family") == "paper-la2c" else 300)) for job in jobs_]
        assert [seen for _, seen, _ in pb_settings._claims(done)] == ["yes", "yes"]


def test_one_more_learner_and_one_more_world_are_a_line_each(tmp_path, monkeypatch):
    """Both have presets; a world that nobody draws is left out of the pictures."""
    made = {"random": lambda: presets.Preset(lexrl.Random(), presets.SAFE, 2_000)}
    monkeypatch.setitem(sys.modules, "my_presets", SimpleNamespace(PRESETS={"paper": lambda: made}))
    entry = ENVS["mountain-car-safe"]._replace(presets="my_presets")
    monkeypatch.setitem(ENVS, "mountain-car-safe", entry)
    size = {"presets": ("paper",), "seeds": 2, "max_timesteps": 2_000, "max_replayed": 2_000, "max_episodes": 100}
    monkeypatch.setitem(safety.ALGORITHMS, "ppo-lagrangian", "PPO-Lagrangian")
    monkeypatch.setitem(safety.SIZES, "smoke", size | {"envs": ("cart-safe",), "algorithms": ("ppo-lagrangian",)})
    assert [job.label for job in safety.runs("smoke")] == ["PPO-Lagrangian"]

    monkeypatch.setitem(safety.ENVS, "mountain-car-safe", EnvRow("MountainCarSafe", (1.0, 1.0)))
    monkeypatch.setitem(safety.SIZES, "smoke", size | {"envs": ("mountain-car-safe",), "algorithms": ("random",)})
    assert not policies.runs("smoke")
    list(perform(plan(["safety"], "smoke"), tmp_path))
    content = json.loads((write("safety", "smoke", tmp_path) / "experiment.json").read_text())
    titles = {section["title"] for section in content["sections"]}
    assert {f"MountainCarSafe, paper settings: {what}" for what in ("curves", "what was learned")} <= titles


SHORT = {
    "smoke": {
        "presets": ("paper",), "seeds": 2, "envs": ("grid-nav",), "algorithms": ("ldqn", "dqn"),
        "max_timesteps": 2_000, "max_replayed": 2_000, "max_episodes": 100,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("experiments") / "smoke"


class TestRunning:
    """Two algorithms on GridNav, with the real programs."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(safety, "SIZES", SHORT)
        monkeypatch.setitem(safety.ENVS, "grid-nav", EnvRow("GridNav", (0.1, 1.0), {"size": 8, "map_seed": 3}))

    def test_stopped_and_taken_up_again(self, root):
        first = next(perform(plan(["safety"], "smoke"), root))
        assert not first.over
        assert store.checkpoints(schedule.place(root, first.job))
        with pytest.raises(
            lexrl.InputError, match=r"No run of the experiment 'safety' in .* is finished; run it first"
        ):
            write("safety", "smoke", root)
        over = [event for event in perform(plan(["safety"], "smoke"), root) if event.over]
        assert [event.job.label for event in over] == ["LDQN", "DQN"]
        assert not list(perform(plan(["safety"], "smoke"), root))  # all is there

    def test_what_is_shown(self, root):
        folder = write("safety", "smoke", root)
        content = json.loads((folder / "experiment.json").read_text())
        kinds = [section["kind"] for section in content["sections"]]
        assert kinds == ["claims", "plane", "curves", "table", "ranking", "front", "text"]
        assert [run["state"] for run in content["runs"]] == ["finished", "finished"]
        assert [len(one["x"]) for one in content["sections"][1]["points"]] == [2, 2]  # seeds
        cost, reward = content["sections"][2]["panels"]
        assert (cost["title"], reward["title"]) == ("min cost", "max reward")
        assert len(cost["series"]) == 2
        front = content["sections"][5]
        assert len(front["points"]) == 2
        # No policy is above the exact curve; 1,000 episodes leave a little noise.
        for point in front["points"]:
            for x, y in zip(point["x"], point["y"], strict=True):
                assert y <= np.interp(x, front["curve"]["x"], front["curve"]["y"]) + 1.0

    def test_the_page_begins_with_the_verdicts_of_algorithms_that_know_the_order(self, root):
        text = reports.page(write("safety", "smoke", root))
        text = text[text.index("<main>") :]  # after the contents
        verdicts = text[text.index("Was the priority kept?") :]
        verdicts = verdicts[: verdicts.index("</section>")]
        assert verdicts.count("scope=rowgroup") == 1
        assert "LDQN (grid-nav/paper/ldqn)" in verdicts  # and not DQN, which knows the reward alone
        assert text.index("Was the priority kept?") < text.index("What the paper says")

    def test_pictures_of_the_policies(self, root):
        folder = write("policies", "smoke", root)
        section = json.loads((folder / "experiment.json").read_text())["sections"][0]
        assert [picture["label"] for picture in section["images"]] == ["LDQN", "DQN"]
        for picture in section["images"]:
            assert (folder / picture["file"]).read_bytes().startswith(b"\x89PNG")

    def test_a_run_that_fails_is_told_and_the_rest_is_shown(self, root, monkeypatch):
        real = schedule.is_finished

        def fails(root, job):
            if job.label == "DQN":
                raise lexrl.InputError("The disk was eaten.")
            return real(root, job)

        monkeypatch.setattr(schedule, "is_finished", fails)
        events = list(perform(plan(["safety"], "smoke"), root))
        assert [(event.job.label, event.why) for event in events] == [("DQN", "The disk was eaten.")]
        folder = write("safety", "smoke", root, {event.job.name: event.why for event in events})
        content = json.loads((folder / "experiment.json").read_text())
        assert [(run["state"], run["why"]) for run in content["runs"]] == [
            ("finished", ""),
            ("missing", "The disk was eaten."),
        ]

    def test_a_run_of_which_no_seed_came_to_its_end_has_failed(self, root, monkeypatch):
        real = store.read_summary
        stopped = {"0": "Seed 0 stopped at step 8: the agent computed NaN.", "1": "Seed 1 stopped at step 9."}

        def broken(folder, *given):
            return real(folder, *given) | ({"stopped": stopped} if folder.name == "dqn" else {})

        monkeypatch.setattr(store, "read_summary", broken)
        content = json.loads((write("safety", "smoke", root) / "experiment.json").read_text())
        assert [run["state"] for run in content["runs"]] == ["finished", "missing"]
        assert content["runs"][1]["why"] == f"No seed finished. {stopped['0']}"

    def test_other_settings_are_not_mistaken_for_these(self, root):
        job = dataclasses.replace(safety.runs("smoke")[0], total_timesteps=77)
        with pytest.raises(lexrl.InputError, match="has other settings than LDQN has now; move it away"):
            schedule.is_finished(root, job)

    def test_the_plan(self, root, capsys):
        cli.main(["experiment", "safety", "--size", "smoke", "--out", str(root), "--dry-run"])
        said = capsys.readouterr().out
        assert "grid-nav/paper/ldqn" in said
        assert "finished" in said
        assert "for the 0 runs that are left" in said

    def test_a_part_of_the_plan(self, root, capsys):
        cli.main(["experiment", "safety", "--size", "smoke", "--only", "*/dqn", "--out", str(root), "--dry-run"])
        said = capsys.readouterr().out
        assert "grid-nav/paper/dqn" in said
        assert "ldqn" not in said

    def test_only_what_was_asked_for_is_written(self, root, capsys):
        """Of 'all', the experiments of which nothing is to be run are left alone."""
        cli.main(["experiment", "all", "--size", "smoke", "--only", "grid-nav/paper/*", "--out", str(root)])
        said = capsys.readouterr().out
        assert "safety: written to" in said
        assert "scaling: written to" not in said

    def test_the_commits_of_the_runs_are_told(self, root, monkeypatch):
        real = store.read_run
        monkeypatch.setattr(
            store, "read_run", lambda folder: real(folder) | {"commit": {"ldqn": "f00", "dqn": "ba7"}[folder.name]}
        )
        content = json.loads((write("safety", "smoke", root) / "experiment.json").read_text())
        assert content["commit"] == "ba7, f00"


def test_speeds_are_remembered():
    job = scaling.runs("paper")[0]
    unknown = dataclasses.replace(job, name="never/seen")
    assert speeds.estimate(unknown) is None
    watch = speeds.Stopwatch(unknown)
    watch.begun, watch.first, watch.last = 0.0, (5.0, 1000), (5.1, 9000)
    watch.save()
    assert speeds.estimate(unknown) is None  # too short to say something
    watch.last = (9.0, 9000)
    watch.save()
    speed = 8000 * job.seeds / 4.0
    seconds = speeds.estimate(dataclasses.replace(unknown, total_timesteps=80_000))
    assert seconds == pytest.approx(4.5 + 80_000 * job.seeds / speed, abs=0.06)


def test_what_was_never_run_is_as_slow_as_the_slowest_like_it(cache):
    measured = {"wild/8/one-1": {"speed": 1000, "start": 1.0}, "wild/8/one-2": {"speed": 100, "start": 2.0}}
    store.write_json(speeds._own(), measured)
    job = dataclasses.replace(scaling.runs("paper")[0], name="wild/16/one-4", seeds=2, total_timesteps=500)
    assert speeds.estimate(job) == pytest.approx(2.0 + 1000 / 100)
    assert speeds.estimate(dataclasses.replace(job, name="wild/16/two-4")) is None


def test_a_pattern_that_no_run_has(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["experiment", "scaling", "--only", "*q-learning*", "*qlearning*"])
    assert stopped.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "No run matches '*qlearning*'; there are 20, such as random-momdps/256/q-learning-1, " in said
    assert "try '*ldqn*', or --dry-run to list all names." in said


def test_an_unknown_experiment(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["experiment", "nonsense"])
    assert stopped.value.code == 2
