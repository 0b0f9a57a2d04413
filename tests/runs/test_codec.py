"""Settings survive being written as JSON, and nothing but settings can be read."""

import json

import equinox as eqx
import jax
import jaxtyping
import numpy as np
import pytest

import lexrl
from lexrl import SingleObjective, presets
from lexrl.catalog import ALGORITHMS, ENVS
from lexrl.errors import InputError
from lexrl.runs import codec
from lexrl.schedules import as_schedule
from lexrl.tolerance import parse
from lexrl.types import Box, Discrete, Spec


def there_and_back(value):
    return codec.decode(json.loads(json.dumps(codec.encode(value), allow_nan=False)))


def same(first, second):
    """Same structure, same numbers, same types of numbers."""
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm(name):
    same(ALGORITHMS[name].make(), there_and_back(ALGORITHMS[name].make()))


@pytest.mark.parametrize("kind", ["tuned", "paper"])
@pytest.mark.parametrize("world", ["cart-safe", "grid-nav"])
def test_every_preset(kind, world):
    for build in presets.known(world, kind).values():
        algorithm = build().algorithm
        same(algorithm, there_and_back(algorithm))


def test_names_in_files_are_unambiguous():
    names = [name for table in codec.tables() for name in table]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ENVS)
def test_every_environment(name):
    world = ENVS[name].make()
    again = there_and_back(world)
    same(world, again)
    assert again.spec == world.spec


@pytest.mark.parametrize("text", ["0.1", "n^-0.7", "0.5 n^-1", "0.1 to 0.01 in 500"])
def test_schedules(text):
    schedule = as_schedule(text)
    assert str(there_and_back(schedule)) == str(schedule)


def test_tolerances_and_spaces():
    assert str(there_and_back(parse("0.01 + 5%"))) == str(parse("0.01 + 5%"))
    spec = Spec(Box((2, 3), -np.inf, 4.0), Discrete(5), ("a", "b"), 7)
    assert there_and_back(spec) == spec


@pytest.mark.parametrize("size", [3, codec.MAX_READABLE, codec.MAX_READABLE + 1])
def test_arrays_of_any_size(size):
    for array in (np.linspace(0, 1, size, dtype=np.float32), np.arange(size), np.arange(size) % 2 == 0):
        again = there_and_back(array)
        assert again.dtype == array.dtype
        np.testing.assert_array_equal(again, array)
    np.testing.assert_array_equal(there_and_back(np.array([np.nan, np.inf])), [np.nan, np.inf])


def test_worlds_of_each_seed():
    """Stacked, their numbers are arrays, which the type checker of these tests would refuse."""
    worlds = lexrl.per_seed([lexrl.GridNav.generate(5, map_seed=seed) for seed in (1, 2)])
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        same(worlds, there_and_back(worlds))
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


class Mine(eqx.Module):
    """A world of the user's own."""

    length: int


def test_what_is_not_ours_must_be_given_again():
    sentence = r"refers to .*Mine, which is not stored, because it has no name in lexrl's catalog.*load\(folder, env="
    with pytest.raises(InputError, match=sentence):
        there_and_back(Mine(3))


def test_a_function_in_a_setting_must_be_given_again():
    algorithm = SingleObjective(lambda: None, "reward")
    with pytest.raises(
        InputError, match=r"refers to .*<lambda>, which is not stored, because it has no name in lexrl's catalog"
    ):
        there_and_back(algorithm)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"kind": "os:system", "command": "true"}, "is not in the catalog"),
        ({"kind": "lexrl.store:os.system"}, "is not in the catalog"),
        ({"kind": "lexrl.store:remove_checkpoints", "folder": "x"}, "is not in the catalog"),
        ({"class": "lexrl.store:remove_checkpoints", "folder": "x"}, "The settings in the file do not fit"),
        ({"call": "lexrl.store:remove_checkpoints", "folder": "x"}, "The settings in the file do not fit"),
        ({"kind": "lexrl.algorithms.lppo:Nothing"}, "is not in the catalog"),
        ({"kind": "nothing"}, "is not in the catalog"),
        ({"kind": "linear", "speed": 3}, "The settings in the file do not fit"),
        ({"kind": "linear", "start": 3}, "The settings in the file do not fit"),
        ({"kind": ["linear"]}, "The settings in the file do not fit"),
        ({"float": "much"}, "The settings in the file do not fit"),
        ({"array": "float32", "values": [1.0]}, "The settings in the file do not fit"),
        ({"dict": [1]}, "The settings in the file do not fit"),
    ],
)
def test_nothing_else_is_built(content, sentence):
    with pytest.raises(InputError, match=sentence):
        codec.decode(content)


@pytest.mark.parametrize(
    ("algorithm", "field"),
    [(lexrl.LPPO(), "actor"), (lexrl.LPPO(), "critic"), (lexrl.LPPO(), "optimizer"), (lexrl.LDQN(), "network")],
)
@pytest.mark.parametrize("place", ["harmful:run", "harmful"])
def test_no_code_is_imported_from_a_file(algorithm, field, place, tmp_path, monkeypatch):
    """A text names a function on the command line; in a file it was written by nobody."""
    (tmp_path / "harmful.py").write_text("raise SystemExit('this was run')")
    monkeypatch.syspath_prepend(tmp_path)
    stored = codec.encode(algorithm)
    stored.get("networks", stored)[field] = place
    with pytest.raises(InputError, match=r"files may not name code|'harmful' is not known"):
        codec.decode(stored)


def test_optimizers_with_a_name_are_read():
    algorithm = lexrl.LPPO(networks=lexrl.Networks(optimizer="sgd"))
    assert codec.decode(codec.encode(algorithm)).networks.optimizer == "sgd"
