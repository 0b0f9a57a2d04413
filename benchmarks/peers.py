"""Others to compare with, each run in an environment of its own, so that their needs never meet the library's.

    peers.sb3(algorithm="ppo", env="cart-safe", num_envs=8, steps=50_000, settings={"n_steps": 256})

The fields are those of `Job` in `peers/sb3.py`. The process inherits the cores this one is confined to, if it is.
"""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from rich.console import Console

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements-peers.txt"
VENV = HERE / ".venv-peers"
PYTHON = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
INSTALLED = VENV / ".installed"
"""The requirements as they were when they were last installed; absent until that has succeeded."""


def ensure() -> Path:
    """The Python of the peers' environment, which is made on first use, and again when what it needs has changed."""
    wanted = REQUIREMENTS.read_text()
    if INSTALLED.exists() and INSTALLED.read_text() == wanted:
        return PYTHON
    Console(stderr=True).print(f"Installing {REQUIREMENTS.name} in {VENV}: once, about 1 GB, several GB with CUDA.")
    venv.create(VENV, with_pip=True, clear=True)
    (VENV / ".gitignore").write_text("*\n")
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    answered(subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], capture_output=True, text=True))
    INSTALLED.write_text(wanted)
    return PYTHON


def sb3(**spec: Any) -> dict[str, Any]:
    """Train with Stable-Baselines3; `steps_per_second`, `seconds`, `cpu_seconds`, `steps`, `threads`, `returns`."""
    command = [str(ensure()), str(HERE / "peers" / "sb3.py"), json.dumps(spec)]
    return json.loads(answered(subprocess.run(command, capture_output=True, text=True)).splitlines()[-1])


def answered(process: subprocess.CompletedProcess[str]) -> str:
    """What a process printed, or an error with the end of its error output."""
    if process.returncode:
        raise RuntimeError(f"{process.args[:3]} ended with {process.returncode}:\n{process.stderr[-2000:]}")
    return process.stdout
