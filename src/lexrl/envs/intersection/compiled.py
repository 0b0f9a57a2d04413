"""The compiler of the environment: numba, which is an extra because it is larger than everything else here.

Functions are compiled into the few of `batch.py` that Python calls; only these are kept on disk.
"""

from typing import Any

from lexrl.errors import InputError

try:
    import numba
except ImportError:
    raise InputError(
        "The environment intersection is compiled by numba, which is not installed; try pip install "
        "'lexrl[intersection]'."
    ) from None

# Strict arithmetic: no fused or reordered operations, so that results do not depend on the machine. As in NumPy, a
# division by zero gives infinity; the dynamics never divide by zero.
compiled: Any = numba.njit(nogil=True, error_model="numpy")
entry_point: Any = numba.njit(nogil=True, error_model="numpy", cache=True)
