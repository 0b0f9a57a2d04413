"""The guard over returns: decisions worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexrl.errors import InputError
from lexrl.guard import Guard, as_guard
from lexrl.schedules import OfRun
from lexrl.tolerance import Absolute, Relative

SETTINGS = {"num_episodes": 2.0, "interval": 0.0, "growth_ends": 100.0, "margin": 0.0}
NOTHING = Absolute(0.0)


def after(episodes, guard=None, tolerance=NOTHING, state=None, time=1):
    """The guard's state after episodes (number of objectives, discounted returns, undiscounted ones or the same)."""
    guard = Guard(**SETTINGS) if guard is None else guard
    update = jax.jit(guard.update)
    state = guard.init(len(episodes[0][1])) if state is None else state
    for served, discounted, *more in episodes:
        returns = jnp.array([discounted, more[0] if more else discounted], jnp.float32)
        state = update(state, jnp.int32(served), returns, tolerance, jnp.int32(time))
    return state


def both(own, full):
    """Two episodes of each policy for two objectives, of which the first returns these."""
    return [(1, (one, 0.0)) for one in own] + [(2, (one, 0.0)) for one in full]


def test_the_last_objective_gives_nothing_away():
    np.testing.assert_array_equal(Guard().init(3).scale, [1, 1, 0])
    np.testing.assert_array_equal(Guard().init(1).scale, [0])


def test_a_loss_halves_the_scale():
    np.testing.assert_array_equal(after(both((5.0, 5.0), (4.0, 4.0))).scale, [0.5, 0.0])


def test_a_gain_does_not():
    np.testing.assert_array_equal(after(both((4.0, 4.0), (5.0, 5.0))).scale, [1.0, 0.0])


def test_nor_what_sampling_explains():
    # Means 5 and 4; each has variance 2 / 2 = 1, so the standard error of the difference is sqrt(2).
    assert after(both((4.0, 6.0), (3.0, 5.0))).scale[0] == 1.0
    assert after(both((4.0, 6.0), (3.0, 5.0)), Guard(**SETTINGS, standard_errors=0.7)).scale[0] == 0.5


def test_nor_a_small_share_of_the_range():
    # A loss of 1; returns range from 4 to 5, or with another episode from 0 to 5, a fifth of which is 1.
    guard = Guard(**(SETTINGS | {"margin": 0.25}))
    assert after(both((5.0, 5.0), (4.0, 4.0)), guard).scale[0] == 0.5
    wide = [(3, (0.0, 0.0, 0.0))]
    three = [(1, (5.0, 0.0, 0.0))] * 2 + [(2, (5.0, 0.0, 0.0))] * 2 + [(3, (4.0, 0.0, 0.0))]
    assert after([*three, *wide], guard).scale[0] == 1.0


@pytest.mark.parametrize(("tolerance", "scale"), [(0.9, 0.5), (1.0, 1.0)])
def test_the_tolerance_may_be_lost(tolerance, scale):
    assert after(both((5.0, 5.0), (4.0, 4.0)), tolerance=Absolute(tolerance)).scale[0] == scale


def test_a_slack_has_no_margin_for_errors():
    # Means 5 and 4 with a standard error of sqrt(2) each way: no evidence of a loss, but more than was granted.
    assert after(both((4.0, 6.0), (3.0, 5.0)), tolerance=Absolute(0.5)).scale[0] == 0.5


def test_a_relative_tolerance_is_a_share_of_the_prefixs_return():
    assert after(both((5.0, 5.0), (4.0, 4.0)), tolerance=Relative(0.25)).scale[0] == 1.0
    assert after(both((5.0, 5.0), (4.0, 4.0)), tolerance=Relative(0.15)).scale[0] == 0.5


def test_undiscounted_returns_count_as_well():
    late = [(1, (5.0, 0.0), (9.0, 0.0))] * 2 + [(2, (5.0, 0.0), (8.0, 0.0))] * 2
    assert after(late).scale[0] == 0.5


def test_only_the_objective_that_loses():
    # Three objectives; the second loses in the full policy, the first does not.
    episodes = [(1, (1.0, 0.0, 0.0)), (2, (1.0, 7.0, 0.0)), (3, (1.0, 3.0, 0.0))] * 2
    np.testing.assert_array_equal(after(episodes).scale, [1.0, 0.5, 0.0])


def test_nothing_is_decided_too_early():
    assert after(both((5.0,), (4.0,))).scale[0] == 1.0, "one episode of each"
    waiting = after(both((5.0, 5.0), (4.0, 4.0)), Guard(**(SETTINGS | {"interval": 10.0})), time=9)
    assert waiting.scale[0] == 1.0
    assert after([(1, (5.0, 0.0))], Guard(**(SETTINGS | {"interval": 10.0})), state=waiting, time=10).scale[0] == 0.5


def test_growth_and_its_end():
    lost = after(both((5.0, 5.0), (4.0, 4.0)))
    np.testing.assert_allclose(after(both((5.0, 5.0), (5.0, 5.0)), state=lost).scale, [0.6, 0.0])
    assert after(both((5.0, 5.0), (5.0, 5.0)), state=lost, time=101).scale[0] == 0.5


@pytest.mark.parametrize("power", [-20, 20])
def test_units_do_not_matter(power):
    rng, unit = np.random.default_rng(0), 2.0**power
    episodes = [(int(rng.integers(1, 3)), tuple(rng.normal(size=2))) for _ in range(60)]
    scaled = [(served, tuple(unit * one for one in returns)) for served, returns in episodes]
    guard = Guard(**SETTINGS, standard_errors=1.0)
    np.testing.assert_array_equal(after(episodes, guard).scale, after(scaled, guard).scale)


def test_what_is_refused():
    assert as_guard("none") is None
    assert as_guard("3").standard_errors == 3.0
    with pytest.raises(InputError, match=r"growth is 0\.5; it must be 1 or more"):
        Guard(growth=0.5)
    with pytest.raises(InputError, match="margin of a guard is -1"):
        Guard(margin=-1.0)
    with pytest.raises(InputError, match="fractions of a run"):
        after([(1, (0.0, 0.0))], Guard(interval=OfRun(0.1)))
