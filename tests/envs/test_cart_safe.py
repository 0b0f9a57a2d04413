"""CartSafe against an independent double-precision simulation, and its signals by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.envs.cart_safe import CartSafe, State
from lexrl.errors import InputError
from lexrl.types import Box


def simulate(body, force):
    """The same physics from the Lagrangian: solve the 2 x 2 system for both accelerations, in double precision.

    Pole as a thin rod: its centre at half its length, inertia m half^2 / 3 about the centre.
    """
    x, v, a, w = body
    m_c, m_p, half, g, dt = 1.0, 0.1, 0.5, 9.8, 0.02
    mass = np.array([[m_c + m_p, m_p * half * math.cos(a)], [m_p * half * math.cos(a), m_p * half * half * 4 / 3]])
    forces = np.array([force + m_p * half * w * w * math.sin(a), m_p * g * half * math.sin(a)])
    v_dot, w_dot = np.linalg.solve(mass, forces)
    return np.array([x + dt * v, v + dt * v_dot, (a + dt * w) % (2 * math.pi), w + dt * w_dot])


def apart(first, second):
    """Differences, with the angle's on the circle."""
    difference = np.abs(np.asarray(first, float) - second)
    difference[2] = min(difference[2], 2 * math.pi - difference[2])
    return difference


@pytest.fixture(scope="module")
def world():
    return CartSafe()


@pytest.fixture(scope="module")
def step(world):
    return jax.jit(world.step)


def at(x, v, a, w, time=0):
    return State(jnp.array([x, v, a, w], jnp.float32), jnp.int32(time))


def test_every_step_is_the_physics(step):
    rng = np.random.default_rng(0)
    for _ in range(2000):
        body = np.array([rng.uniform(-2.3, 2.3), rng.normal() * 2, rng.uniform(0, 2 * math.pi), rng.normal() * 5])
        action = int(rng.integers(2))
        found = step(at(*body), jnp.int32(action), jax.random.key(0)).state.body
        assert apart(found, simulate(np.float32(body).astype(float), 10.0 if action else -10.0)).max() < 5e-6


def test_a_whole_path_stays_together_for_a_second(world, step):
    state, _ = world.reset(jax.random.key(1))
    body = np.asarray(state.body, float)
    for time in range(50):
        action = (time // 7) % 2
        state = step(state, jnp.int32(action), jax.random.key(0)).state
        body = simulate(body, 10.0 if action else -10.0)
        assert apart(state.body, body).max() < 1e-3


def test_it_starts_hanging_near_the_middle(world):
    bodies = np.array([world.reset(jax.random.key(i))[0].body for i in range(200)]) - [0, 0, math.pi, 0]
    assert np.abs(bodies).max() <= 0.05 + 1e-6
    assert np.abs(bodies).max(axis=0).min() > 0.045
    assert abs(bodies.mean()) < 0.005


@pytest.mark.parametrize(
    ("place", "cost", "discount"),
    [
        (0.0, 0.0, 1.0),
        (0.99, 0.0, 1.0),
        (1.01, 1.0, 1.0),
        (-1.01, 1.0, 1.0),
        (2.41, 1.0 + (300 - 11), 0.0),  # eleven steps are done, the others are charged
        (-2.41, 1.0 + (300 - 11), 0.0),
    ],
)
def test_signals_of_the_new_state(step, place, cost, discount):
    answer = step(at(place, 0.0, 0.3, 0.0, time=10), jnp.int32(1), jax.random.key(0))
    # Without speed the place and the angle do not change in an explicit Euler step.
    np.testing.assert_allclose(answer.signals, [1 + math.cos(0.3), cost], rtol=1e-6)
    assert answer.discount == discount


def test_the_rest_need_not_be_charged():
    answer = CartSafe(charge_remaining=False).step(at(2.5, 0.0, 0.0, 0.0), jnp.int32(0), jax.random.key(0))
    assert answer.signals[1] == 1.0


def test_cosine_and_sine_instead_of_the_angle():
    world = CartSafe(observe_cos_sin=True)
    _, seen = world.reset(jax.random.key(0))
    assert world.spec.observation_space == Box((5,))
    assert seen.shape == (5,)
    np.testing.assert_allclose(seen[2] ** 2 + seen[3] ** 2, 1.0, rtol=1e-6)
    assert seen[2] < -0.99  # it hangs


def test_its_names_and_length(world):
    assert world.spec.signals == ("reward", "cost")
    assert world.spec.max_episode_steps == 300


def test_an_episode_needs_a_step():
    with pytest.raises(InputError, match="max_episode_steps is 0; it must be 1 or more"):
        CartSafe(max_episode_steps=0)


def test_a_table_is_no_place_for_it():
    with pytest.raises(InputError, match="needs discrete observations"):
        lexrl.train(lexrl.QLearning(), CartSafe(), "min cost > max reward", seeds=1, total_timesteps=10)


class TestEffort:
    """The third signal, and what must be seen for it."""

    @pytest.mark.parametrize("observe_cos_sin", [False, True])
    def test_it_counts_changes_of_direction(self, observe_cos_sin):
        world = CartSafe(effort_signal=True, observe_cos_sin=observe_cos_sin)
        assert world.spec.signals == ("reward", "cost", "effort")
        assert world.spec.observation_space == Box((6 if observe_cos_sin else 5,))
        step = jax.jit(world.step)
        state, seen = world.reset(jax.random.key(0))
        assert seen.shape == world.spec.observation_space.shape
        assert seen[-1] == 0
        efforts, shown = [], []
        for action in (1, 1, 0, 1, 1, 0, 0):
            answer = step(state, jnp.int32(action), jax.random.key(0))
            state = answer.state
            efforts.append(float(answer.signals[2]))
            shown.append(float(answer.obs[-1]))
        assert efforts == [0, 0, 1, 1, 0, 1, 0]
        assert shown == [1, 1, -1, 1, 1, -1, -1]

    @pytest.mark.parametrize("first", [0, 1])
    def test_the_first_push_of_an_episode_is_no_change(self, first):
        world = CartSafe(effort_signal=True)
        state, _ = world.reset(jax.random.key(0))
        assert world.step(state, jnp.int32(first), jax.random.key(0)).signals[2] == 0

    def test_all_else_stays(self, world, step):
        more = jax.jit(CartSafe(effort_signal=True).step)
        one, other = (w.reset(jax.random.key(5))[0] for w in (world, CartSafe(effort_signal=True)))
        for time in range(40):
            action = jnp.int32((time // 3) % 2)
            plain, rich = step(one, action, jax.random.key(0)), more(other, action, jax.random.key(0))
            np.testing.assert_array_equal(plain.signals, rich.signals[:2])
            np.testing.assert_array_equal(plain.obs, rich.obs[:-1])
            assert plain.discount == rich.discount
            one, other = plain.state, rich.state
