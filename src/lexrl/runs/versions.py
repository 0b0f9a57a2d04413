"""Which versions of what a run was made with."""

import os
import pathlib
import platform
import subprocess
from typing import Any

import jax
import numpy as np

import lexrl


def versions() -> dict[str, str]:
    """Of everything that decides the numbers."""
    return {
        "lexrl": lexrl.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def commit() -> str:
    """The commit of lexrl, if it is a working copy; `-dirty` if there are changes."""
    here = pathlib.Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        asked = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()


def machine() -> dict[str, Any]:
    """What the run was made on."""
    return {"cores": os.cpu_count(), "system": platform.platform(), "devices": len(jax.devices())}
