"""A mixture of policies and the stationary policy that stands for it."""

import numpy as np
import pytest

from lexrl import exact
from lexrl.errors import InputError
from lexrl.momdp import MOMDP

WEIGHTS = np.array([0.3, 0.5, 0.2])


def policies(process, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(process.num_actions), (3, process.num_states))


@pytest.mark.parametrize("seed", range(3))
def test_returns_are_those_of_the_mixture(seed):
    process = MOMDP.random(seed, 6, 3, 2, gamma=0.9, num_successors=3, episodic=True)
    each = policies(process, seed)
    merged = exact.stationary(process, WEIGHTS, each)
    expected = WEIGHTS @ np.stack([exact.evaluate(process, policy).returns for policy in each])
    np.testing.assert_allclose(exact.evaluate(process, merged).returns, expected, rtol=1e-10)
    of_mean = exact.evaluate(process, np.tensordot(WEIGHTS, each, 1)).returns
    assert np.abs(of_mean - expected).max() > 1e-3, "the mean of the policies is another policy"


def test_several_discounts_have_no_such_policy():
    process = MOMDP.random(0, 6, 3, 2, gamma=(0.8, 0.9), num_successors=3)
    with pytest.raises(InputError, match=r"The discounts are 0\.8, 0\.9"):
        exact.stationary(process, WEIGHTS, policies(process))
