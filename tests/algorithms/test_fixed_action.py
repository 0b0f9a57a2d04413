"""Always the same action, whatever is seen; and sentences about actions that do not exist."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.errors import InputError
from lexrl.types import Box, Discrete, Spec

KEY = jax.random.key(0)


def spec_of(action_space):
    return Spec(Box((2,)), action_space, ("one", "two"), 9)


@pytest.mark.parametrize("greedy", [False, True])
def test_the_action(greedy):
    algorithm = lexrl.FixedAction(action=2)
    state = algorithm.init(spec_of(Discrete(3)), KEY)
    action = algorithm.act(state, jnp.zeros(2), KEY, greedy=greedy)
    assert (int(action), action.dtype) == (2, np.int32)
    np.testing.assert_array_equal(algorithm.probabilities(state, jnp.zeros(2)), [0, 0, 1])


def test_it_is_evaluated_like_any_other():
    """In the compiled loop, in evaluations, and by what is seen."""
    env = lexrl.CartSafe(max_episode_steps=10)
    result = lexrl.train(lexrl.FixedAction(action=1, num_envs=1), env, "max reward", seeds=2, total_timesteps=16)
    assert result.evaluate(3).lengths.tolist() == [[10, 10, 10]] * 2
    assert result.policies[0].predict(np.zeros(4, np.float32))[0] == 1


@pytest.mark.parametrize(("action", "space"), [(3, Discrete(3)), (-1, Discrete(3)), (0, Box((1,)))])
def test_actions_that_do_not_exist(action, space):
    with pytest.raises(InputError, match=f"The action is {action}, but this environment's actions are"):
        lexrl.FixedAction(action=action).init(spec_of(space), KEY)
