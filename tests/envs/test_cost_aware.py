"""A world that shows what was spent: its spec, its numbers, and what it cannot show."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.constraints import as_limits
from lexrl.envs import checker
from lexrl.envs.cost_aware import CostAwareObservation
from lexrl.envs.cost_aware_batched import CostAwareBatch
from lexrl.runs import plan
from lexrl.types import Box, Discrete, Step

KEY = jax.random.key(0)


def chain(cost):
    """One state that is stepped through for ever, at a cost for each action."""
    rewards = np.array([[[0.0, 1.0]], [cost]])
    process = lexrl.MOMDP.from_arrays(np.ones((1, 2, 1)), rewards, 0.9, signals=("reward", "cost"))
    return lexrl.FiniteEnv(process, max_episode_steps=9)


def seen(world, actions):
    state, obs = world.reset(KEY)
    shown = [obs]
    for action in actions:
        state, obs, *_ = world.step(state, jnp.int32(action), KEY)
        shown.append(obs)
    return np.array(shown)


class TestNumbered:
    def test_spec(self):
        """One state, sums 0, 1, 2 and beyond."""
        world = CostAwareObservation.wrap(chain([0, 1]), as_limits("cost <= 2"))
        assert world.spec == chain([0, 1]).spec._replace(observation_space=Discrete(4))
        checker.check_env(world)

    def test_sums_are_counted_to_just_beyond_the_limit(self):
        world = CostAwareObservation.wrap(chain([0, 1]), as_limits("cost <= 2"))
        np.testing.assert_array_equal(seen(world, [1, 0, 1, 1, 1]), [0, 1, 1, 2, 3, 3])

    def test_two_signals(self):
        """reward in 0..1 and beyond, then cost in 0..2 and beyond: (3 sums) x (4 sums)."""
        world = CostAwareObservation.wrap(chain([1, 0]), as_limits("reward <= 1, cost <= 2"))
        assert world.spec.observation_space == Discrete(12)
        np.testing.assert_array_equal(seen(world, [0, 1, 1, 1]), [0, 1, 5, 9, 9])

    def test_a_broken_limit_never_looks_kept(self):
        """Parts of a unit are rounded to the bad side: up for 'at most', down for 'at least'."""
        above = CostAwareObservation.wrap(chain([0, 0.75]), as_limits("cost <= 2"))
        np.testing.assert_array_equal(seen(above, [1, 1, 1]), [0, 1, 2, 3])  # 2.25 is beyond 2
        below = CostAwareObservation.wrap(chain([0, 0.75]), as_limits("cost >= 2"))
        np.testing.assert_array_equal(seen(below, [1, 1, 1]), [0, 0, 1, 2])  # 1.5 is not yet 2

    def test_rounding_errors_do_not_count(self):
        world = CostAwareObservation.wrap(chain([0, 0.1]), as_limits("cost <= 1"))
        assert seen(world, [1] * 10)[-1] == 1  # ten tenths are 1, not a little more

    def test_limits_below_zero(self):
        with pytest.raises(lexrl.InputError, match="counted from 0, but a limit is -1"):
            CostAwareObservation.wrap(chain([0, 1]), as_limits("cost <= -1"))


class TestVectors:
    WORLD = lexrl.CartSafe(observe_cos_sin=True, max_episode_steps=20)

    def test_spec(self):
        world = CostAwareObservation.wrap(self.WORLD, as_limits("cost <= 10"))
        assert world.spec.observation_space == Box((self.WORLD.spec.observation_space.shape[0] + 1,))
        assert world.spec._replace(observation_space=None) == self.WORLD.spec._replace(observation_space=None)
        checker.check_env(world)

    def test_sums_in_units_of_the_limit(self):
        """No further than twice the limit; and what else is seen is the world's own."""
        world, bare = CostAwareObservation.wrap(self.WORLD, as_limits("reward <= 4")), self.WORLD
        state, _ = world.reset(KEY)
        inner, _ = bare.reset(KEY)
        total, most = 0.0, 0.0
        for _ in range(19):
            answer, own = world.step(state, jnp.int32(1), KEY), bare.step(inner, jnp.int32(1), KEY)
            state, inner, total = answer.state, own.state, total + float(own.signals[0])
            np.testing.assert_array_equal(answer.obs[:-1], own.obs)
            np.testing.assert_array_equal(answer.signals, own.signals)
            assert answer.obs[-1] == pytest.approx(min(total / 4, 2.0), rel=1e-5)
            most = max(most, total)
        assert most > 0

    def test_it_begins_anew(self):
        world = CostAwareObservation.wrap(self.WORLD, as_limits("reward <= 4"))
        assert world.reset(KEY)[1][-1] == 0

    def test_render(self):
        world = CostAwareObservation.wrap(self.WORLD, as_limits("cost <= 10"))
        state, _ = world.reset(KEY)
        np.testing.assert_array_equal(world.render(state), self.WORLD.render(state[0]))


def test_unknown_signals():
    with pytest.raises(lexrl.InputError, match="A limit names 'risk', but the signals here are 'reward', 'cost'"):
        CostAwareObservation.wrap(chain([0, 1]), as_limits("risk <= 1"))


def test_worlds_in_python():
    class Stepped:
        spec = chain([0, 1]).spec

        def reset(self, key):
            return 0, 0

        def step(self, state, action, key):
            return Step(0, 0, np.zeros(2), 1.0)

    with pytest.raises(lexrl.InputError, match="cannot be added to this environment"):
        CostAwareBatch.wrap(Stepped(), as_limits("cost <= 1"))


def test_a_run_wraps_its_world_once():
    learner = lexrl.VaRAC(chance_constraints="cost <= 2 with 0.9")
    run = plan(learner, chain([0, 1]), "max reward > min cost", seeds=1, total_timesteps=100)
    assert isinstance(run.env, CostAwareObservation)
    assert plan(learner, run.env, "max reward > min cost", seeds=1, total_timesteps=100).env is run.env
    assert not isinstance(
        plan(lexrl.RCPO(), chain([0, 1]), "max reward > min cost", seeds=1, total_timesteps=100).env,
        CostAwareObservation,
    )


def test_the_environments_own_observation():
    table = CostAwareObservation.wrap(lexrl.GridNav.generate(4), as_limits("cost <= 2"))
    np.testing.assert_array_equal(table.inner_observation(table.reset(KEY)[1]), table.env.reset(KEY)[1])
    vector = CostAwareObservation.wrap(lexrl.CartSafe(), as_limits("cost <= 2"))
    np.testing.assert_array_equal(vector.inner_observation(vector.reset(KEY)[1]), vector.env.reset(KEY)[1])
