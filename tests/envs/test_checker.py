"""A world that does not keep to its own spec is refused in one sentence: in JAX before anything is compiled, in Python
when it answers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.runs import plan
from lexrl.types import Box, Discrete, EnvSpec, Step

ORDER = "max reward > min cost"
STEPS = 10_000


class Told(eqx.Module):
    """A world whose answers can be told one by one."""

    given: dict = eqx.field(static=True)

    def get(self, name, usual):
        return self.given.get(name, usual)

    @property
    def spec(self):
        spaces = self.get("observation", Box((2,))), self.get("action", Discrete(2))
        return self.get("spec", EnvSpec)(*spaces, self.get("names", ("reward", "cost")), self.get("limit", 9))

    def reset(self, key):
        return self.get("first_state", lambda: jnp.int32(0))(), self.get("first", lambda: jnp.zeros(2))()

    def step(self, state, action, key):
        assert action.shape == self.get("shape", ())
        return self.get("answer", Step)(
            self.get("state", lambda: state + 1)(),
            self.get("obs", lambda: jnp.zeros(2))(),
            self.get("signals", lambda: jnp.zeros(2))(),
            self.get("discount", lambda: jnp.float32(1.0))(),
        )


class Plain:
    """The same in Python."""

    def __init__(self, given):
        self.told, self.spec = Told(given), Told(given).spec

    def reset(self, key):
        return jax.tree.map(np.asarray, self.told.reset(key))

    def step(self, state, action, key):
        return jax.tree.map(np.asarray, self.told.step(state, action, key))


def discrete_observations(obs):
    return {"observation": Discrete(3), "first": lambda: jnp.int32(0), "obs": lambda: obs}


SAID = {
    "the first observation's shape": (
        {"first": lambda: jnp.zeros(3)},
        ("A reset returns the observation float32[3]", "Box(shape=(2,)", "which is float[2]", "change one"),
    ),
    "an observation's shape": (
        {"obs": lambda: jnp.zeros((2, 1))},
        ("A step returns the observation float32[2,1]", "which is float[2]", "change one"),
    ),
    "whole numbers for a box": (
        {"obs": lambda: jnp.zeros(2, jnp.int32)},
        ("A step returns the observation int32[2]", "float[2]"),
    ),
    "a float for a number": (
        discrete_observations(jnp.float32(1)),
        ("A step returns the observation float32[]", "Discrete(n=3)", "integer[]"),
    ),
    "a vector for a number": (
        discrete_observations(jnp.zeros(3, jnp.int32)),
        ("A step returns the observation int32[3]", "integer[]"),
    ),
    "too few signals": (
        {"signals": lambda: jnp.zeros(1)},
        (
            "A step returns the signals float32[1]",
            "the spec names reward, cost; return float[2]",
            "one number for each",
        ),
    ),
    "signals in a matrix": (
        {"signals": lambda: jnp.zeros((1, 2))},
        ("A step returns the signals float32[1,2]", "float[2]"),
    ),
    "a single signal": ({"signals": lambda: jnp.float32(0)}, ("A step returns the signals float32[]", "float[2]")),
    "a discount for each signal": (
        {"discount": lambda: jnp.ones(2)},
        ("discount is float32[2]", "a single number", "try jnp.where"),
    ),
    "no step": ({"answer": lambda *parts: parts}, ("A step returns a tuple", "Step(state, obs, signals, discount)")),
}
NAMED = "name them, as in ('reward', 'cost')"
SPECS = {
    "no limit": ({"limit": None}, ("The max_episode_steps of Told is None", "a whole number from 1 on", "truncated")),
    "a limit of nothing": ({"limit": 0}, ("is 0; it must be a whole number from 1 on",)),
    "half a step": ({"limit": 2.5}, ("is 2.5; it must be a whole number",)),
    "a limit that is true": ({"limit": True}, ("is True; it must be a whole number",)),
    "no spec": ({"spec": lambda *parts: parts}, ("The spec of Told is (Box(", "it must be a lexrl.types.EnvSpec(")),
    "a space of another kind": ({"action": 3}, ("The action_space of Told is 3", "lexrl.types.Discrete(n)")),
    "no actions": ({"action": Discrete(0)}, ("The action_space of Told is Discrete(n=0)", "whole sizes")),
    "a number for a shape": ({"observation": Box(2)}, ("The observation_space of Told is Box(shape=2", "whole sizes")),
    "a list of signals": ({"names": ["reward", "cost"]}, ("The signals of Told are ['reward', 'cost']", NAMED)),
    "no signals": ({"names": ()}, ("The signals of Told are ()", NAMED)),
    "numbered signals": ({"names": (1, 2)}, ("The signals of Told are (1, 2)", NAMED)),
    "two signals of a name": ({"names": ("reward", "reward")}, ("give each a name of its own",)),
}
STATES = {
    "another type": ({"state": lambda: jnp.float32(0)}, ("state is int32[] after a reset", "float32[] after a step")),
    "another shape": ({"state": lambda: jnp.zeros(2, jnp.int32)}, ("state is int32[]", "int32[2] after a step")),
    "a part more": (
        {"state": lambda: {"a": jnp.int32(0), "b": jnp.int32(0)}, "first_state": lambda: {"a": jnp.int32(0)}},
        ("state['b'] is missing after a reset", "int32[] after a step", "convert"),
    ),
}


def check(error, parts):
    sentence = str(error.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    at = 0
    for part in parts:
        assert part in sentence[at:], (part, sentence)
        at = sentence.index(part, at)


@pytest.mark.parametrize("what", SAID | STATES)
def test_in_jax(what):
    given, parts = (SAID | STATES)[what]
    for world in (Told(given), lexrl.per_seed([Told(given)])):
        with pytest.raises(lexrl.InputError) as error:
            plan(lexrl.LPPO(), world, ORDER, 1, STEPS)
        check(error, parts)


@pytest.mark.parametrize("what", SAID)
def test_in_python(what):
    given, parts = SAID[what]
    algorithm = lexrl.LA2C(num_envs=2, num_steps=2, networks=lexrl.Networks(hidden_sizes=()))
    with pytest.raises(lexrl.InputError) as error:
        lexrl.train(algorithm, Plain(given), ORDER, seeds=1, total_timesteps=8)
    check(error, parts)


@pytest.mark.parametrize(
    "given",
    [
        {},
        discrete_observations(jnp.int32(2)),
        {"action": Box((3,), -1.0, 1.0), "shape": (3,)},
        {"discount": lambda: jnp.bool_(True)},
        {"observation": Box(()), "first": lambda: jnp.float32(0), "obs": lambda: jnp.float32(0)},
    ],
)
def test_what_fits_passes(given):
    plan(lexrl.LPPO(), Told(given), ORDER, 1, STEPS)


@pytest.mark.parametrize(
    "world",
    [
        lexrl.CartPole(),
        lexrl.CartSafe(effort_signal=True),
        lexrl.MountainCarSafe(),
        lexrl.GridNav.generate(4, one_hot=True),
        lexrl.random_env(0, num_states=3, num_actions=2),
    ],
)
def test_our_own_worlds_pass(world):
    order = " > ".join(f"max {name}" for name in world.spec.signals)
    plan(lexrl.LPPO(), world, order, 1, STEPS)


@pytest.mark.parametrize(("given", "said"), SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("kind", [Told, Plain])
def test_what_it_says_of_itself(kind, given, said):
    for call in (lexrl.check_env, lambda env: plan(lexrl.PPO(), env, "max reward", 1, STEPS)):
        with pytest.raises(lexrl.InputError) as caught:
            call(kind(given))
        assert all(part.replace("Told", kind.__name__) in str(caught.value) for part in said)


class Titled(Told):
    """With a field that JAX would compute with."""

    title: str = "x"


def test_texts_are_static():
    with pytest.raises(lexrl.InputError, match=r"Titled.title is 'x', which JAX cannot compute with; .*static=True"):
        lexrl.check_env(Titled({}))
