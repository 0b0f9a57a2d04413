"""Something added from outside is one line: it is then on the command line, in `lexrl list`, and in saved runs."""

import json
import sys
import textwrap

import jax
import numpy as np
import pytest

import lexrl
from lexrl import catalog, cli, units
from lexrl.catalog import ALGORITHMS, ENVS, VALUES, Entry
from lexrl.errors import InputError
from lexrl.types import METRICS, Box, Discrete, Spec, Transition

MODULE = '''
    """A package of a user's own."""

    import equinox as eqx
    import jax.numpy as jnp

    from lexrl.presets import Preset
    from lexrl.types import Box, Discrete, EnvSpec, Step


    class Drift(eqx.Module):
        """Choose a direction, and drift in it."""

        speed: float = 0.5
        """How far a step goes."""

        @property
        def spec(self):
            return EnvSpec(Box((1,)), Discrete(2), ("gain", "harm"), 5)

        def reset(self, key):
            return jnp.float32(0), jnp.zeros(1)

        def step(self, state, action, key):
            state = state + jnp.where(action == 1, self.speed, -self.speed)
            return Step(state, state[None], jnp.stack([state, jnp.abs(state)]), jnp.float32(1))


    class Always(eqx.Module):
        """Always the same action, unless luck decides."""

        num_envs: int = eqx.field(static=True, default=2)
        num_steps: int = eqx.field(static=True, default=4)
        luck: float = 0.25
        """How often another action is taken."""

        def init(self, spec, key):
            return jnp.zeros(3)

        def act(self, state, obs, key, *, greedy=False):
            return jnp.int32(1)

        def update(self, state, rollout, key):
            return state + self.luck, {}


    def tuned():
        return {"always": lambda: Preset(Always(luck=0.75), "min harm > max gain", 64, {"speed": 2.0})}


    PRESETS = {"tuned": tuned}
'''


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A temporary module, with one line in the catalog for its algorithm and one for its environment."""
    (tmp_path / "outside_lexrl.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    for table in (ALGORITHMS, ENVS):
        for name, entry in list(table.items()):
            monkeypatch.setitem(table, name, entry)
    monkeypatch.chdir(tmp_path)
    catalog.add(ALGORITHMS, Entry("always", "outside_lexrl:Always", "Always"))
    catalog.add(ENVS, Entry("drift", "outside_lexrl:Drift", "Drift", presets="outside_lexrl"))
    yield tmp_path
    del ALGORITHMS["always"], ENVS["drift"]
    sys.modules.pop("outside_lexrl", None)


def test_it_is_a_public_name(outside):
    assert lexrl.Always(luck=1.0).luck == 1.0
    assert {"Always", "Drift"} <= set(dir(lexrl))


def test_it_is_listed(outside, capsys):
    cli.main(["list", "--json"])
    content = json.loads(capsys.readouterr().out)
    assert {"name": "always", "summary": "Always the same action, unless luck decides."} in content["algorithms"]
    assert {"name": "drift", "signals": ["gain", "harm"], "summary": "Choose a direction, and drift in it."} in content[
        "environments"
    ]


def test_it_is_trained_by_name_with_its_preset_saved_and_loaded(outside, capsys):
    cli.main(["train", "always", "drift", "--seeds", "2", "--luck", "0.125", "--eval-episodes", "3"])
    assert capsys.readouterr().out.splitlines()[0] == "always on drift: min harm > max gain (tuned preset)"
    about = json.loads((outside / "runs" / "always-drift" / "run.json").read_text())
    assert about["algorithm"] == {"kind": "always", "num_envs": 2, "num_steps": 4, "luck": 0.125}
    assert about["env"] == {"name": "drift", "kwargs": {"speed": 2.0}}
    result = lexrl.load("runs/always-drift")
    np.testing.assert_array_equal(result.agent(1), np.full(3, 0.125 * 8))
    assert result.evaluate(2).returns.shape == (2, 2, 2)
    assert result.run.env.speed == 2.0


def test_its_settings_are_in_the_help(outside, capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "always", "drift", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for part in (
        "--luck FLOAT",
        "How often another action is taken. (default: 0.75)",
        "--speed FLOAT",
        "(default: 2.0)",
    ):
        assert part in shown


def test_it_meets_what_is_there(outside):
    """The environment with an algorithm of ours, and the algorithm on an environment of ours."""
    ours = lexrl.train("random", "drift", "min harm", seeds=1, total_timesteps=10)
    assert ours.run.preset == "default"
    assert lexrl.train("always", "cart-safe", "min cost", seeds=1, total_timesteps=16).run.name == "always"


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(InputError, match=r"The name 'lppo' is taken by lexrl\.algorithms\.lppo:LPPO; choose another"):
        catalog.add(ALGORITHMS, Entry("lppo", "elsewhere:LPPO", "LPPO"))
    catalog.add(ALGORITHMS, ALGORITHMS["lppo"])


@pytest.mark.parametrize("entry", [*ALGORITHMS.values(), *ENVS.values(), *VALUES.values()], ids=lambda one: one.name)
def test_every_line_can_be_loaded(entry):
    assert isinstance(entry.kind(), type)
    assert entry.title
    assert not entry.parent or entry.parent in ALGORITHMS


TABULAR = tuple(f"lexrl.algorithms.{name}:" for name in ("q_learning", "sarsa", "expected_sarsa", "double_q"))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_metric_is_declared(name):
    """Scalar algorithms get one objective, tables get discrete observations; nothing is computed."""
    algorithm = units.resolve(ALGORITHMS[name].make(), 10_000)
    scalar = name in {entry.parent for entry in ALGORITHMS.values()}
    observations = Discrete(3) if ALGORITHMS[name].target.startswith(TABULAR) else Box((2,))
    spec = Spec(observations, Discrete(2), ("reward",) if scalar else ("reward", "cost"), 5)

    def zeros(*shape, dtype=np.float32):
        return np.zeros((algorithm.num_steps, algorithm.num_envs, *shape), dtype)

    obs = zeros(dtype=np.int32) if isinstance(observations, Discrete) else zeros(2)
    action, reward = zeros(dtype=np.int32), zeros(len(spec.objectives))
    rollout = Transition(obs, action, reward, zeros(), obs, zeros(dtype=bool))

    def report(key, rollout):
        return algorithm.update(algorithm.init(spec, key), rollout, key)[1]

    assert set(jax.eval_shape(report, jax.random.key(0), rollout)) <= set(METRICS)
