"""A sweep over 32 learning rates against 32 runs one after the other: LPPO with a small network on CartSafe.

Both are commands, as a user would type them: `lexrl sweep` trains all values in one compiled program, `lexrl train` one
value each, without a verdict, for the sweep gives none. Three of the 32 runs are measured. Seconds of all cores do not
depend on what else a machine does; those on the clock do.
"""

import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

SMALL = [
    "--num-envs", "8", "--num-steps", "32", "--num-minibatches", "2", "--hidden-sizes", "16",
    "--total-timesteps", "20000", "--eval-episodes", "10", "--num-log-points", "5",
]  # fmt: skip
NUM_VALUES, NUM_MEASURED = 32, 3


def seconds(*words: str) -> np.ndarray:
    """How long a command takes: on the clock, and of all cores."""
    with tempfile.TemporaryDirectory() as folder:
        begun = _now()
        command = [sys.executable, "-m", "lexrl", *words, *SMALL, "--out", str(pathlib.Path(folder) / "out")]
        subprocess.run(command, check=True, capture_output=True)
        return _now() - begun


def _now() -> np.ndarray:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array([time.monotonic(), children.ru_utime + children.ru_stime])


def main() -> None:
    """Print both times, and their ratio."""
    over = f"learning_rate=1e-4..1e-2:log:{NUM_VALUES}"
    plain = ("train", "lppo", "cart-safe", "--seeds", "2", "--no-verify")
    seconds(*plain)  # compiled programs are cached on disk from here on
    single = [seconds(*plain, "--learning-rate", str(rate)) for rate in (1e-4, 1e-3, 1e-2)[:NUM_MEASURED]]
    each = np.mean(single, axis=0)
    sweep = seconds("sweep", "lppo", "cart-safe", "--over", over, "--seeds", "2", "--confirm", "2")
    for i, what in enumerate(("on the clock", "of all cores")):
        print(
            f"{what}: one run of 2 seeds {each[i]:.1f} s, {NUM_VALUES} of them {NUM_VALUES * each[i]:.0f} s;", end=" "
        )
        print(f"a sweep of {NUM_VALUES} values, 2 seeds each, and 2 that confirm {sweep[i]:.1f} s:", end=" ")
        print(f"ratio {NUM_VALUES * each[i] / sweep[i]:.1f}")


if __name__ == "__main__":
    main()
