"""Second-order multipliers, against explicit Hessians."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms import second_order
from lexrl.types import Discrete, Spec

# A tiny softmax policy on three rows of two features, with three smooth gains; and quadratics.

ROWS = jnp.array([[1.0, -0.5], [0.3, 0.8], [-1.2, 0.1]])
WORTH = jnp.array([[[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [3.0, 1.0, 0.0]],
                   [[0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 5.0]],
                   [[1.0, 1.0, 0.0], [2.0, 0.0, 1.0], [0.0, 4.0, 0.0]]])  # fmt: skip
THETA = {"w": jnp.array([[0.2, -0.4, 0.1], [0.5, 0.0, -0.3]]), "b": jnp.array([0.1, -0.2, 0.3])}
VECTOR, UNRAVEL = jax.flatten_util.ravel_pytree(THETA)


def gains(theta):
    probabilities = jax.nn.softmax(ROWS @ theta["w"] + theta["b"])
    return jnp.einsum("mra,ra->m", WORTH, probabilities)


GRADIENTS = np.asarray(jax.jit(jax.jacobian(lambda vector: gains(UNRAVEL(vector))))(VECTOR), float)
HESSIANS = np.asarray(jax.jit(jax.hessian(lambda vector: gains(UNRAVEL(vector))))(VECTOR), float)
slopes = jax.jit(lambda at, directions: second_order.slopes(gains, at, directions))
gradient_term = jax.jit(lambda beta, nu: second_order.gradient_term(second_order.later_rates(beta), nu, gains, THETA))
update = jax.jit(lambda nu, eta, converged: second_order.update(nu, eta, converged, gains, THETA))
BETA = jnp.array([1.0, 0.5, 0.25])
ETA = 0.03


def flat(tree):
    """`[M, parameters]` from directions with a leading axis, in the order of the flat vector."""
    return np.concatenate([np.asarray(leaf, float).reshape(3, -1) for leaf in jax.tree.leaves(tree)], axis=1)


def directions(seed, length):
    rows = np.random.default_rng(seed).normal(size=(3, VECTOR.size))
    rows = np.float32(length * rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return {"b": jnp.asarray(rows[:, :3]), "w": jnp.asarray(rows[:, 3:].reshape(3, 2, 3))}


class TestSecondOrder:
    def test_starts_at_0(self):
        nu = second_order.init(3, THETA)
        assert jax.tree.map(jnp.shape, nu) == {"w": (3, 2, 3), "b": (3, 3)}
        assert (flat(nu) == 0).all()

    def test_slopes(self):
        nu = directions(0, 1.0)
        steep, products = slopes(THETA, nu)
        np.testing.assert_allclose(flat(steep), GRADIENTS, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(flat(products), np.einsum("mij,mj->mi", HESSIANS, flat(nu)), rtol=1e-4, atol=1e-5)

    def test_gradient_term(self):
        nu = directions(1, 0.7)
        got = gradient_term(BETA, nu)
        # The second and third constrain the first, only the third the second, none the third.
        later = np.array([0.5 + 0.25, 0.25, 0.0])
        expected = np.einsum("m,mij,mj->i", later, HESSIANS, flat(nu))
        np.testing.assert_allclose(
            np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(got)]), expected, rtol=1e-4, atol=1e-5
        )
        assert np.abs(expected).max() > 0.01

    def test_gradient_term_by_hand(self):
        # K_1 = x^2 + 3 x y and K_2 = y: H_1 = [[2, 3], [3, 0]], so nu_1 = (1, 2) gives (8, 3), times beta_2 = 1/2.
        later, nu = second_order.later_rates(jnp.array([1.0, 0.5])), jnp.array([[1.0, 2.0], [5.0, 5.0]])
        quadratic = lambda at: jnp.stack([at[0] ** 2 + 3 * at[0] * at[1], at[1]])  # noqa: E731
        got = jax.jit(lambda at: second_order.gradient_term(later, nu, quadratic, at))(jnp.array([0.3, 0.4]))
        np.testing.assert_allclose(got, [4.0, 1.5], rtol=1e-6)

    @pytest.mark.parametrize(
        "converged", [[False, False, False], [True, False, False], [True, True, False], [True, True, True]]
    )
    def test_moves_against_the_gradients_of_converged_objectives(self, converged):
        nu = directions(2, 0.5)
        after = flat(update(nu, ETA, jnp.array(converged)))
        for j in range(3):
            moved = flat(nu)[j] - 0.03 * GRADIENTS[j] if converged[j] and j < 2 else np.zeros(VECTOR.size)
            np.testing.assert_allclose(after[j], moved, rtol=1e-4, atol=1e-6)
        assert (np.linalg.norm(GRADIENTS, axis=1) > 0.1).all()  # else the test would have proved little

    def test_never_longer_than_1(self):
        after = flat(update(second_order.init(3, THETA), 1e3, jnp.array([True, True, False])))
        np.testing.assert_allclose(np.linalg.norm(after, axis=1), [1.0, 1.0, 0.0], rtol=1e-5)
        for j in range(2):
            np.testing.assert_allclose(after[j], -GRADIENTS[j] / np.linalg.norm(GRADIENTS[j]), rtol=1e-3, atol=1e-4)

    def test_it_lowers_the_term_in_the_lagrangian(self):
        """`nu . grad K` falls by eta times the squared length of the gradient."""
        before = directions(3, 0.5)
        after = update(before, ETA, jnp.array([True, True, True]))
        change = np.sum((flat(after) - flat(before)) * GRADIENTS, axis=1)
        np.testing.assert_allclose(change[:2], -0.03 * np.sum(GRADIENTS**2, axis=1)[:2], rtol=1e-3)


@pytest.mark.parametrize("kind", [lexrl.LPPOSecondOrder, lexrl.LA2CSecondOrder])
def test_one_direction_like_the_actor_for_each_objective(kind):
    spec = Spec(Discrete(5), Discrete(2), ("a", "b", "c"), 9)
    state = jax.eval_shape(lambda: kind(num_envs=2, num_steps=8).init(spec, jax.random.key(0)))
    shapes = jax.tree.map(lambda leaf: (3, *leaf.shape), state.agent.actor)
    assert jax.tree.map(lambda leaf: leaf.shape, state.nu) == shapes
