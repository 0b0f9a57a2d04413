"""Sweeps and continued runs, killed again and again: what is left continues, and ends with the same files."""

import json
import random
import shutil
import subprocess
import sys
import time

import pytest

import anonymous

pytestmark = pytest.mark.slow
PROGRAM = [sys.executable, "-m", "lexrl"]
RUN = ["q-learning", "grid-nav", "--order", "min cost > max reward", "--num-log-points", "10"]
SWEEP = ["sweep", *RUN, "--over", "alpha=0.05,0.1,0.3", "--seeds", "3", "--confirm", "3", "--total-timesteps", "3e6"]
KILLS = 8


def run(place, *words):
    subprocess.run([*PROGRAM, *words], cwd=place, check=True, capture_output=True)


def kill_until_done(place, first, again, done):
    """Start the command and kill it after 2 to 6 seconds, `KILLS` times; then let it end. How often it was alive."""
    dice, alive, words = random.Random(0), 0, first
    for _ in range(KILLS):
        with subprocess.Popen([*PROGRAM, *words], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(dice.uniform(2, 6))
            alive += process.poll() is None
            process.kill()
        if done():
            break
        words = again() if callable(again) else again
    if not done():
        run(place, *words)
    return alive


@pytest.mark.parametrize("engine", [[], ["--engine", "processes", "--workers", "2"]], ids=["here", "processes"])
def test_a_sweep(tmp_path, engine):
    run(tmp_path, *SWEEP, "--out", "whole")
    command = [*SWEEP, *engine, "--out", "killed"]
    killed = tmp_path / "killed"
    alive = kill_until_done(tmp_path, command, command, lambda: (killed / "sweep.csv").is_file())
    assert alive >= 3
    assert (killed / "sweep.csv").read_bytes() == (tmp_path / "whole" / "sweep.csv").read_bytes()
    found, expected = (json.loads((tmp_path / name / "sweep.json").read_text()) for name in ("killed", "whole"))
    assert found["best"] == expected["best"]


def test_a_run_that_is_continued(tmp_path):
    run(tmp_path, "train", *RUN, "--seeds", "3", "--total-timesteps", "3e6", "--out", "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    run(tmp_path, "continue", "whole", "--steps", "5e6")
    killed, policies = tmp_path / "killed", lambda place: sorted((place / "policies").iterdir())
    steps = json.loads((killed / "run.json").read_text())["total_timesteps"]

    def again():
        """`resume` once the folder says that it is continued; `continue` if it was killed before."""
        began = json.loads((killed / "run.json").read_text())["total_timesteps"] > steps
        return ["resume", "killed"] if began else ["continue", "killed", "--steps", "5e6"]

    def done():
        return again()[0] == "resume" and (killed / "summary.json").is_file()

    assert kill_until_done(tmp_path, ["continue", "killed", "--steps", "5e6"], again, done) >= 2
    for one, other in zip(policies(killed), policies(tmp_path / "whole"), strict=True):
        assert anonymous.content(one) == anonymous.content(other)
