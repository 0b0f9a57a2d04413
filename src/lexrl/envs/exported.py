"""The names of our environments in Gymnasium, registered by importing both, whichever comes first.

Importing Gymnasium takes longer than all of `import lexrl`, which comes before the command line can look after Ctrl-C.
So it is not imported here: the names wait for whoever imports it.
"""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

GYMNASIUM = "gymnasium"


def register() -> None:
    """Register the names with Gymnasium, which is imported."""
    import gymnasium

    for name in ("CartSafe", "MountainCarSafe", "GridNav", "Intersection"):
        # Only strings: JAX is imported when an environment is made. Gymnasium's checker expects a number as the reward.
        gymnasium.register(f"lexrl/{name}-v0", f"lexrl.envs.registration:{name}", disable_env_checker=True)


def _find(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
    """Python asks here for every module that is imported; Gymnasium is found as usual, and the names follow."""
    if name != GYMNASIUM:
        return None
    sys.meta_path.remove(_waiting)
    found = importlib.util.find_spec(name)
    if found is not None and found.loader is not None:
        execute = found.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            register()

        found.loader.exec_module = execute_and_register
    return found


_waiting = SimpleNamespace(find_spec=_find)
if GYMNASIUM in sys.modules:
    register()
else:
    sys.meta_path.insert(0, _waiting)
