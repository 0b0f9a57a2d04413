"""A sweep over 32 learning rates against 32 runs one after the other: LPPO with a small network on CartSafe.

Both are commands, as a user would type them: `lexrl sweep` trains all values in one compiled program, `lexrl train` one
value each. Three of the 32 runs are measured.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

SMALL = [
    "--num-envs", "8", "--num-steps", "32", "--num-minibatches", "2", "--hidden-sizes", "16",
    "--total-timesteps", "20000", "--eval-episodes", "10", "--num-log-points", "5",
]  # fmt: skip
NUM_VALUES, NUM_MEASURED = 32, 3


def seconds(*words: str) -> float:
    """How long a command takes."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        command = [sys.executable, "-m", "lexrl", *words, *SMALL, "--out", str(pathlib.Path(folder) / "out")]
        subprocess.run(command, check=True, capture_output=True)
        return time.monotonic() - begun


def main() -> None:
    """Print both times, and their ratio."""
    over = f"learning_rate=1e-4..1e-2:log:{NUM_VALUES}"
    seconds("train", "lppo", "cart-safe", "--seeds", "2")  # compiled programs are cached on disk from here on
    single = [
        seconds("train", "lppo", "cart-safe", "--seeds", "2", "--learning-rate", str(rate))
        for rate in (1e-4, 1e-3, 1e-2)[:NUM_MEASURED]
    ]
    each = sum(single) / len(single)
    sweep = seconds("sweep", "lppo", "cart-safe", "--over", over, "--seeds", "2", "--confirm", "2")
    print(f"one run of 2 seeds: {each:.1f} s; {NUM_VALUES} of them: {NUM_VALUES * each:.0f} s")
    print(f"a sweep of {NUM_VALUES} values, 2 seeds each, and 2 that confirm: {sweep:.1f} s")
    print(f"ratio: {NUM_VALUES * each / sweep:.1f}")


if __name__ == "__main__":
    main()
