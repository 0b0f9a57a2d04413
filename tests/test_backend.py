"""Importing lexrl sets nothing; `configure` sets JAX up before its first use, and says what was lost after it."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import lexrl
from lexrl.backend import num_cores

OURS = "xla_cpu_small_while_loop_byte_threshold"


def run(program, **environment):
    """What a fresh process prints as JSON, with nothing configured, and the warnings it wrote."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_"))}
    process = subprocess.run(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(program)],
        env=clean | environment,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    warnings = [line for line in process.stderr.splitlines() if "UserWarning" in line and "lexrl" in line]
    return json.loads(process.stdout.splitlines()[-1]), warnings


STATE = """
def state():
    flags, values = os.environ.get("XLA_FLAGS", ""), jax.config.values
    return {"flags": flags, "devices": jax.local_device_count(), "cache": values["jax_compilation_cache_dir"]}
"""
TRAIN = """
def train():
    lexrl.train(lexrl.QLearning(), lexrl.GridNav.generate(3), "min cost > max reward", seeds=2, total_timesteps=10)
"""


def test_import_sets_nothing():
    program = """
    import json, os, jax
    environment, values = dict(os.environ), dict(jax.config.values)
    import lexrl, lexrl.cli, lexrl.experiments
    from lexrl.backend import _jax_is_in_use
    changed = {name for name in os.environ if name[:3] in ("XLA", "JAX") and environment.get(name) != os.environ[name]}
    changed |= {name for name in values if jax.config.values[name] != values[name]}
    print(json.dumps([sorted(changed), _jax_is_in_use()]))
    """
    assert run(program) == ([[], False], [])


def test_first_run_configures():
    """Everything a user needs to make a run leaves JAX alone, so the run still gets all cores."""
    program = f"import json, os, jax, lexrl{STATE}{TRAIN}train()\nprint(json.dumps(state()))"
    found, warnings = run(program)
    assert OURS in found["flags"]
    assert found["devices"] == num_cores()
    assert found["cache"].endswith("lexrl/xla")
    assert warnings == []


@pytest.mark.parametrize(
    "use",
    [
        "lexrl.check_env(gymnasium.make('CartPole-v1'))",
        "gymnasium.make('lexrl/CartSafe-v0').reset(seed=0)",
        "lexrl.Policy.load('policy.safetensors').predict([0.0] * 4)",
    ],
)
def test_what_comes_before_the_first_run_configures(use, tmp_path, monkeypatch):
    """A user who has only called lexrl is not told to have used JAX too early."""
    monkeypatch.chdir(tmp_path)
    result = lexrl.train("random", lexrl.CartPole(), "max reward", seeds=1, total_timesteps=10, num_log_points=1)
    result.policies[0].save("policy.safetensors")
    program = f"import json, os, gymnasium, lexrl, jax{STATE}{TRAIN}{use}\ntrain()\nprint(json.dumps(state()))"
    found, warnings = run(program)
    assert OURS in found["flags"]
    assert (found["devices"], warnings) == (num_cores(), [])


@pytest.mark.parametrize("order", ["import jax, lexrl", "import lexrl, jax"])
def test_jax_in_use_before_warns_once(order):
    program = f"import json, os\n{order}{STATE}{TRAIN}jax.random.key(0)\ntrain()\ntrain()\nprint(json.dumps(state()))"
    found, warnings = run(program)
    assert found["devices"] == 1
    assert len(warnings) == 1
    assert "JAX was in use before lexrl could configure it" in warnings[0]
    assert "compiled loops run slower" in warnings[0]


def test_what_was_lost_is_only_what_was_lost():
    """A user who has set devices and flags loses nothing."""
    program = f"import json, os, jax, lexrl{STATE}jax.random.key(0)\nlexrl.configure()\nprint(json.dumps(state()))"
    mine = f"--xla_force_host_platform_device_count=2 --xla_backend_extra_options={OURS}=5"
    found, warnings = run(program, XLA_FLAGS=mine)
    assert (found["flags"], found["devices"], warnings) == (mine, 2, [])


def test_arguments():
    program = f"""import json, os, jax, lexrl{STATE}
lexrl.configure(num_devices=3, cache_dir="somewhere")
lexrl.configure(num_devices=3)
print(json.dumps(state()))"""
    found, warnings = run(program)
    assert (found["devices"], found["cache"], warnings) == (3, "somewhere", [])


def test_too_late_to_change_devices():
    program = f"""import json, os, jax, lexrl{STATE}
lexrl.configure(num_devices=2)
jax.devices()
lexrl.configure(num_devices=2)
lexrl.configure(num_devices=1)
print(json.dumps(state()))"""
    found, warnings = run(program)
    assert found["devices"] == 2
    assert len(warnings) == 1
    assert "CPU devices: 2 instead of 1." in warnings[0]
