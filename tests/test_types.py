"""The shapes everything agrees on: metrics by name, specs, and modules that no function hides."""

import importlib
import pkgutil

import pytest

import lexrl
from lexrl import envs, exact
from lexrl.envs.cost_aware import CostAwareObservation
from lexrl.loops.chunks import IN_RETURN_UNITS
from lexrl.order import parse
from lexrl.types import METRICS, Box, Discrete, EnvSpec, Renderable, Spec, unwrapped

MODULES = [f"{room.__name__}.{one.name}" for room in (envs, exact) for one in pkgutil.iter_modules(room.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_no_module_is_hidden(name):
    module = importlib.import_module(name)
    room, _, own = name.rpartition(".")
    assert vars(importlib.import_module(room))[own] is module


def test_metrics_have_a_help():
    assert all(metric.help and not metric.help.endswith(".") for metric in METRICS.values())


def test_returns_are_shown_with_the_users_signs():
    assert {"return_estimate", "threshold", "q_value"} <= IN_RETURN_UNITS
    assert not {"multiplier", "violation", "gradient_weight", "td_error"} & IN_RETURN_UNITS


def test_an_order_makes_a_spec_of_an_env_spec():
    env = EnvSpec(Box((4,)), Discrete(2), ("reward", "cost", "effort"), 9)
    assert parse("min cost > max reward").spec(env) == Spec(Box((4,)), Discrete(2), ("cost", "reward"), 9, (-1, 1))


def test_what_is_inside_wrappers():
    env = lexrl.CartSafe()
    wrapped = CostAwareObservation(CostAwareObservation(env, ("cost",), (3.0,)), ("reward",), (9.0,))
    assert wrapped.unwrapped is unwrapped(wrapped) is env
    assert isinstance(unwrapped(wrapped), Renderable)
    assert wrapped.render_fps == env.render_fps == 50
