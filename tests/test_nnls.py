"""Non-negative least squares from inner products, against SciPy in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls as reference

from lexrl import nnls

SIZES = (2, 3, 5, 16)
KINDS = ("random", "correlated", "nearly parallel", "opposite", "repeated", "flat", "zero")


def vectors(rng, m, kind):
    """`m` vectors in 40 dimensions and one more to be projected."""
    found = rng.normal(size=(m + 1, 40))
    if kind == "correlated":
        found += 3 * rng.normal(size=40) * rng.choice([-1, 1], size=(m + 1, 1))
    if kind == "nearly parallel":
        found[1:] = found[0] + 1e-2 * found[1:]
    if kind == "opposite":
        found[1::2] = -found[0] + 0.1 * found[1::2]
    if kind == "repeated":
        found[1:] = found[rng.integers(0, 2, m)]
    if kind == "flat":  # more vectors than dimensions
        found[:, 2:] = 0.0
    if kind == "zero":
        found[rng.integers(m)] = 0.0
    return found


@pytest.fixture(scope="module")
def solve():
    with jax.enable_x64(True):
        yield jax.jit(nnls.weights)


def residual(given, mu):
    return given[-1] + mu @ given[:-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", SIZES)
def test_equals_scipy(m, kind, solve):
    rng = np.random.default_rng(m)
    with jax.enable_x64(True):
        for _ in range(25):
            given = vectors(rng, m, kind)
            gram = given @ given.T
            mu = np.asarray(solve(gram[:-1, :-1], gram[:-1, -1], np.sqrt(gram[-1, -1]), np.ones(m, bool)))
            assert (mu >= 0).all()
            truth = residual(given, reference(given[:-1].T, -given[-1])[0])
            assert np.linalg.norm(residual(given, mu) - truth) <= 1e-6 * np.linalg.norm(given[-1])


def test_units_do_not_matter(solve):
    rng = np.random.default_rng(0)
    given = vectors(rng, 5, "opposite")
    powers = 2.0 ** rng.integers(-30, 30, 6)
    with jax.enable_x64(True):
        plain, scaled = (
            np.asarray(solve(gram[:-1, :-1], gram[:-1, -1], np.sqrt(gram[-1, -1]), np.ones(5, bool)))
            for gram in (given @ given.T, (given @ given.T) * powers[:, None] * powers)
        )
    np.testing.assert_array_equal(scaled, plain * powers[-1] / powers[:-1])
    assert (plain > 0).any()


def test_only_what_is_allowed_has_a_weight(solve):
    given = vectors(np.random.default_rng(1), 5, "opposite")
    gram, allowed = given @ given.T, np.array([True, False, True, False, True])
    with jax.enable_x64(True):
        mu = np.asarray(solve(gram[:-1, :-1], gram[:-1, -1], np.sqrt(gram[-1, -1]), allowed))
    assert (mu[~allowed] == 0).all()
    truth, _ = reference(given[:-1][allowed].T, -given[-1])
    np.testing.assert_allclose(mu[allowed], truth, atol=1e-9)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_projections_in_single_precision(m):
    """Where 60 sweeps of Dykstra's algorithm were off by more than 1e-3 in every second case."""
    rng = np.random.default_rng(m)
    program = jax.jit(nnls.weights)
    for _ in range(40):
        given = rng.normal(size=(m + 1, 30)) + 2 * rng.normal(size=30) * rng.choice([-1, 1], size=(m + 1, 1))
        gram = jnp.asarray(given @ given.T, jnp.float32)
        mu = np.asarray(program(gram[:-1, :-1], gram[:-1, -1], jnp.sqrt(gram[-1, -1]), jnp.ones(m, bool)))
        truth = residual(given, reference(given[:-1].T, -given[-1])[0])
        assert np.linalg.norm(residual(given, mu) - truth) <= 1e-3 * np.linalg.norm(given[-1])
