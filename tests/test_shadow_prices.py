"""The multiplier of an objective with slack: the shadow price of the best mixture so far, on numbers worked out by
hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from lexrl.multipliers import Multipliers, State
from lexrl.stages import NUM_BLOCKS, Progress

MULTIPLIERS = Multipliers()


def after_a_block(columns, thresholds, slack, log):
    """The logarithms of the multipliers in the last stage; the last of the columns is the block that ended."""
    m = len(thresholds)
    *before, latest = np.asarray(columns, np.float32)
    returns = jnp.asarray(np.concatenate([before, np.repeat(before[:1], NUM_BLOCKS + 1 - len(before), axis=0)]))
    progress = Progress(
        stage=jnp.int32(m - 1),
        fraction=jnp.float32(0.5),
        violation=jnp.zeros(m),
        at_limit=jnp.zeros(m, bool),
        renewed=jnp.float32(0),
        time=jnp.float32(0),
        improved=jnp.bool_(False),
        ended=jnp.bool_(False),
        block=jnp.int32(len(before) - 1),
        block_ended=jnp.bool_(True),
        slack=jnp.asarray(slack),
        returns=jnp.asarray(latest),
        threshold=jnp.asarray(thresholds, jnp.float32),
        found=jnp.bool_(True),
    )
    return np.asarray(
        MULTIPLIERS.update(State(jnp.log(jnp.asarray(log)), returns, jnp.zeros(m)), progress, jnp.ones(m)).log
    )


SAFE, RISKY = (0.0, 0.0), (-1.0, 2.0)


def test_the_slope_between_the_two_policies_of_the_mixture():
    for slack in (0.01, 0.5, 0.99):
        log = after_a_block([SAFE, (-1.0, 1.0), RISKY], (-slack, 0.0), (True, False), (1.0, 1.0))
        assert log[0] == pytest.approx(np.log(2.0), abs=1e-6)


@pytest.mark.parametrize(("threshold", "factor"), [(-1.5, 1 / 4), (0.5, 4.0)])
def test_it_moves_at_most_by_a_factor_of_4(threshold, factor):
    """Down while all of the slack is not enough to matter, and up while no policy keeps to it."""
    log = after_a_block([SAFE, RISKY], (threshold, 0.0), (True, False), (3.0, 1.0))
    assert log[0] == pytest.approx(np.log(3.0 * factor), abs=1e-6)


def test_without_slack_it_is_not_searched_for():
    assert after_a_block([SAFE, RISKY], (-0.5, 0.0), (False, False), (3.0, 1.0))[0] == pytest.approx(np.log(3.0))


def test_two_slacks():
    """Each of the two policies breaks one threshold; the shadow prices are what they gain per unit."""
    columns = [(0.0, 0.0, 0.0), (-1.0, 0.0, 2.0), (0.0, -1.0, 3.0)]
    log = after_a_block(columns, (-0.2, -0.2, 0.0), (True, True, False), (1.0, 1.0, 1.0))
    np.testing.assert_allclose(log[:2], np.log([2.0, 3.0]), atol=1e-4)
