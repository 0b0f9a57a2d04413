"""Schedules over fractions of a run become schedules with a length, in what each setting counts."""

import equinox as eqx
import jax
import pytest

import lexrl
from lexrl.errors import InputError
from lexrl.schedules import Constant, Linear, OfRun, Power
from lexrl.tolerance import Absolute
from lexrl.units import counts, resolve

SMALL = {"num_envs": 2, "num_steps": 5, "buffer_size": 100}


class TestByHand:
    def test_q_networks(self):
        algorithm = lexrl.LDQN(
            learning_starts=31,
            gradient_steps=3,
            learning_rate="1 to 0.1",
            epsilon="1 to 0.05 in 20%",
            tolerance=Absolute(1.0) * Linear(1.0, 0.0, OfRun(0.5)),
            **SMALL,
        )
        found = resolve(algorithm, 1_000)
        # 100 updates of 10 steps; the first three leave 30 transitions in the buffer: 97 x 3 gradient steps.
        assert found.learning_rate == Linear(1.0, 0.1, 291.0)
        assert found.epsilon == Linear(1.0, 0.05, 200.0)
        assert found.tolerance.schedule == Linear(1.0, 0.0, 145.5)

    @pytest.mark.parametrize(("learning_starts", "gradient_steps"), [(0, 10), (1, 10), (10, 10), (11, 9), (100, 1)])
    def test_gradient_steps_begin_with_learning(self, learning_starts, gradient_steps):
        algorithm = lexrl.DQN(learning_starts=learning_starts, gradient_steps=1, **SMALL)
        assert algorithm.num_gradient_steps(10) == gradient_steps

    def test_a_run_ends_with_a_whole_rollout(self):
        algorithm = lexrl.DQN(epsilon="1 to 0", learning_starts=0, **SMALL)
        assert resolve(algorithm, 11).epsilon.steps == 20.0

    def test_parts_of_an_algorithm(self):
        algorithm = lexrl.ApproPO(oracle=lexrl.DQN(epsilon="1 to 0 in 10%", learning_starts=0, **SMALL))
        assert resolve(algorithm, 1_000).oracle.epsilon == Linear(1.0, 0.0, 100.0)

    def test_one_tolerance_each(self):
        algorithm = lexrl.QLearning(tolerance=(Absolute(1.0) * Linear(1.0, 0.0), 0.5))
        first, second = resolve(algorithm, 500).tolerance
        assert first.schedule == Linear(1.0, 0.0, 500.0)
        assert second == Absolute(0.5)

    def test_no_length_is_0(self):
        algorithm = lexrl.DQN(learning_rate="1 to 0", learning_starts=100, **SMALL)
        assert resolve(algorithm, 10).learning_rate.steps == 1.0

    def test_a_field_that_is_a_length(self):
        found = resolve(Timed(), 1_000)
        assert (found.budget, found.warmup) == (100.0, 10.0)

    def test_a_length_that_counts_nothing_known(self):
        with pytest.raises(InputError, match=r"^memory is '50%', a fraction of the run, but it counts visits"):
            resolve(Timed(memory=OfRun(0.5)), 1_000)


class Timed(eqx.Module):
    """Settings that must know how long the run is."""

    budget: float | OfRun = eqx.field(default=OfRun(), metadata=counts("updates"))
    warmup: float | OfRun = eqx.field(default=OfRun(0.01), metadata=counts("environment steps"))
    memory: float | OfRun = eqx.field(default=7.0, metadata=counts("visits"))
    num_envs: int = eqx.field(static=True, default=2)
    num_steps: int = eqx.field(static=True, default=5)


def test_what_has_a_length_stays():
    algorithm = lexrl.DQN(epsilon="1 to 0.05 in 1e5", learning_rate=Power(0.6))
    assert resolve(algorithm, 100) is algorithm


def test_only_floats_change():
    """So that a longer run is the same program."""
    algorithm = lexrl.DQN(epsilon="1 to 0.05 in 20%", learning_rate=1e-3)
    short, long = resolve(algorithm, 1_000), resolve(algorithm, 100_000)
    assert jax.tree.structure(short) == jax.tree.structure(long)
    assert all(isinstance(leaf, float) for leaf in jax.tree.leaves(short))
    assert short.learning_rate == Constant(1e-3)


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (lexrl.QLearning(alpha="1 to 0.1"), r"^alpha is '1 to 0.1', .* counts visits, .* as in '1 to 0.1 in 1e5'.$"),
        (lexrl.Sarsa(exploration="epsilon 1 to 0 in 5%"), r"^exploration.epsilon is '1 to 0 in 5%', .* counts visits"),
        (lexrl.QLearning(exploration="softmax 1 to 0"), r"^exploration.temperature is '1 to 0', .* counts visits"),
        (lexrl.ApproPO(eta="1 to 0"), r"^eta is '1 to 0', .* counts direction updates"),
    ],
)
def test_where_the_number_is_not_known_beforehand(algorithm, sentence):
    with pytest.raises(InputError, match=sentence):
        resolve(algorithm, 1_000)
