"""What every algorithm with a network promises the loops, whatever the observations and actions are.

Shapes are checked for every kind of environment without compiling anything (`jax.eval_shape`); numbers for one kind
each, and for the others in the slow tests.
"""

import dataclasses
import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms.projection import Projection
from lexrl.loops.population import number
from lexrl.schedules import Power
from lexrl.types import Algorithm, Box, Discrete, Spec, Transition

T, N = 4, 3
NETWORKS = lexrl.Networks(hidden_sizes=(4,))
ACTOR_CRITIC = {
    "num_envs": N,
    "num_steps": T,
    "networks": NETWORKS,
    "learning_rate": 0.03,
    "critic_learning_rate": 0.03,
}
SURROGATE = {"num_epochs": 2, "num_minibatches": 2}
STAGES = lexrl.Stages(budget=8.0)
Q_NETWORK = {
    "num_envs": N,
    "num_steps": T,
    "hidden_sizes": (4,),
    "buffer_size": 48,
    "learning_starts": 12,
    "batch_size": 5,
    "target_update_interval": N * T,
    "learning_rate": 1e-3,
    "epsilon": 0.05,
    "return_scale": 1.0,
}
ALGORITHMS = {
    "PPO": lexrl.PPO(**ACTOR_CRITIC, **SURROGATE),
    "A2C": lexrl.A2C(**ACTOR_CRITIC),
    "DQN": lexrl.DQN(**Q_NETWORK),
    "LPPO": lexrl.LPPO(**ACTOR_CRITIC, **SURROGATE, stages=STAGES),
    "LA2C": lexrl.LA2C(**ACTOR_CRITIC, stages=STAGES),
    "LDQN": lexrl.LDQN(**Q_NETWORK, guard=lexrl.Guard(interval=1.0, growth_ends=2.0)),
    "PaperLPPO": lexrl.PaperLPPO(**ACTOR_CRITIC, **SURROGATE),
    "PaperLA2C": lexrl.PaperLA2C(**ACTOR_CRITIC),
    "LPPOSecondOrder": lexrl.LPPOSecondOrder(**ACTOR_CRITIC, **SURROGATE),
    "LA2CSecondOrder": lexrl.LA2CSecondOrder(**ACTOR_CRITIC),
    "LPPOAverageReward": lexrl.LPPOAverageReward(**ACTOR_CRITIC, **SURROGATE),
    "LA2CAverageReward": lexrl.LA2CAverageReward(**ACTOR_CRITIC),
    "LPPOQCritic": lexrl.LPPOQCritic(**ACTOR_CRITIC, **SURROGATE),
    "Projection": Projection(**ACTOR_CRITIC, **SURROGATE, stages=STAGES),
    "RCPO": lexrl.RCPO(constraints="two <= 1", **ACTOR_CRITIC),
    "PPOLagrangian": lexrl.PPOLagrangian(constraints="two <= 1", **ACTOR_CRITIC, **SURROGATE),
    "VaRAC": lexrl.VaRAC(chance_constraints="two <= 1 with 0.9", **ACTOR_CRITIC),
    # A small eta: a direction that is cut off at length 1 would not show by how much it was too long.
    "ApproPO": lexrl.ApproPO(
        target_set="one in 1..2, two in 0..1", mixture_size=3, eta=Power(0.5, 0.02), oracle=lexrl.DQN(**Q_NETWORK)
    ),
    "SingleObjective": lexrl.SingleObjective(lexrl.A2C(**ACTOR_CRITIC), "two"),
    "Random": lexrl.Random(num_envs=N, num_steps=T),
}
CONSTRAINED = ("RCPO", "PPOLagrangian", "VaRAC", "ApproPO", "SingleObjective")
"""For two objectives here: one that is limited, one that is not."""
Q_NETWORKS = ("DQN", "LDQN", "ApproPO")
DISCRETE = (*Q_NETWORKS, "LPPOQCritic")
"""Need discrete actions."""
VARIANTS = (
    "PaperLPPO", "PaperLA2C", "LPPOSecondOrder", "LA2CSecondOrder", "LPPOAverageReward", "LA2CAverageReward",
    "LPPOQCritic",
)  # fmt: skip
LEXICOGRAPHIC = ("LPPO", "LA2C", "LDQN", *VARIANTS, "Projection", "Random")
SPACES = {
    "discrete, discrete": (Discrete(5), Discrete(3)),
    "vectors, discrete": (Box((3,)), Discrete(3)),
    "discrete, continuous": (Discrete(5), Box((2,), -1.0, 1.0)),
    "vectors, continuous": (Box((3,)), Box((2,), -1.0, 1.0)),
    "pictures, discrete": (Box((2, 3), 0.0, 1.0), Discrete(2)),
}


def _cases():
    """Every kind of world; and any number of objectives, in one of them."""
    for name in ALGORITHMS:
        for spaces in SPACES:
            if name in DISCRETE and "continuous" in spaces:
                continue
            several = (1, 2, 3, 5) if spaces == "discrete, discrete" else (3,)
            for m in several if name in LEXICOGRAPHIC else (2 if name in CONSTRAINED else 1,):
                seldom = spaces in ("pictures, discrete", "discrete, continuous") and name not in ("LPPO", "LDQN")
                yield pytest.param(name, spaces, m, marks=[pytest.mark.slow] if seldom else [])


KEY = jax.random.key(0)

# Metrics by name, and whether it is one number per objective. These names are in files that users keep.
STAGED = {"stage": False, "return_estimate": True, "threshold": True, "multiplier": True, "gradient_weight": True}
PRICES = {"return_estimate": True, "threshold": True, "multiplier": True, "gradient_weight": True, "converged": True}
STEPS = {"surrogate": False, "entropy": False, "value_loss": True, "approx_kl": False}
LIMITED = {"value_loss": False, "multiplier": True, "violation": True}
FITS = {"loss": True, "td_error": True, "q_value": True}
METRICS = {
    "PPO": STEPS,
    "A2C": STEPS,
    "DQN": FITS,
    "LPPO": STEPS | STAGED,
    "LA2C": STEPS | STAGED,
    "LDQN": FITS | {"num_admissible": True, "guard_scale": True},
    **dict.fromkeys(VARIANTS, STEPS | PRICES),
    "Projection": STEPS | {name: each for name, each in STAGED.items() if name != "multiplier"},
    "RCPO": STEPS | LIMITED,
    "PPOLagrangian": STEPS | LIMITED,
    "VaRAC": STEPS | LIMITED,
    "ApproPO": {"distance": False, "multiplier": True, "loss": False, "td_error": False},
    "SingleObjective": STEPS | {"value_loss": False},
    "Random": {},
}  # fmt: skip


def metrics_of(name, m):
    """With one objective there are no stages."""
    return STEPS if name in ("LPPO", "LA2C", "Projection") and m == 1 else METRICS[name]


def spec_of(spaces, m):
    return Spec(*SPACES[spaces], ("one", "two", "three", "four", "five")[:m], 9)


def rollout_of(spec, seed=0):
    rng = np.random.default_rng(seed)

    def draw(space):
        if isinstance(space, Discrete):
            return jnp.asarray(rng.integers(0, space.n, (T, N)), jnp.int32)
        return jnp.asarray(rng.uniform(-1, 1, (T, N, *space.shape)), jnp.float32)

    ended = rng.random((T, N)) < 0.3
    return Transition(
        obs=draw(spec.observation_space),
        action=draw(spec.action_space),
        reward=jnp.asarray(rng.normal(size=(T, N, len(spec.objectives))), jnp.float32),
        discount=jnp.asarray(1.0 - ended, jnp.float32),
        next_obs=draw(spec.observation_space),
        last=jnp.asarray(ended | (rng.random((T, N)) < 0.2)),
    )


def shapes(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_is_an_algorithm(name):
    algorithm = ALGORITHMS[name]
    assert isinstance(algorithm, Algorithm)
    assert (algorithm.num_steps, algorithm.num_envs) == (T, N)
    for verb in ("init", "act", "update"):  # `isinstance` does not look at arguments
        mine, theirs = (inspect.signature(getattr(kind, verb)) for kind in (type(algorithm), Algorithm))
        assert [(p.name, p.kind, p.default) for p in mine.parameters.values()] == [
            (p.name, p.kind, p.default) for p in theirs.parameters.values()
        ]
    hash(jax.tree.structure(algorithm))  # compiled programs are looked up by it


@pytest.mark.parametrize("name", ALGORITHMS)
def test_its_numbers_are_leaves_and_its_sizes_are_not(name):
    algorithm = ALGORITHMS[name]
    assert all(isinstance(leaf, float) for leaf in jax.tree.leaves(algorithm))
    for field in dataclasses.fields(algorithm):
        value = getattr(algorithm, field.name)
        if isinstance(value, int | str):  # bool is an int
            assert field.metadata.get("static"), field.name
        elif isinstance(value, float):
            assert not field.metadata.get("static"), field.name


@pytest.mark.parametrize(("name", "spaces", "m"), list(_cases()))
def test_shapes(name, spaces, m):
    """Everything but numbers, in every kind of world, for any number of objectives."""
    algorithm, spec = ALGORITHMS[name], spec_of(spaces, m)
    rollout = rollout_of(spec)
    state = jax.eval_shape(functools.partial(algorithm.init, spec), KEY)
    assert all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(state))
    after, metrics = jax.eval_shape(algorithm.update, state, rollout, KEY)
    assert shapes(after) == shapes(state)
    assert {key: value.shape for key, value in metrics.items()} == {
        key: (m,) if each else () for key, each in metrics_of(name, m).items()
    }
    assert all(value.dtype == jnp.float32 for value in metrics.values())
    obs = jax.tree.map(lambda leaf: leaf[0, 0], rollout.obs)
    for greedy in (False, True):
        action = jax.eval_shape(functools.partial(algorithm.act, greedy=greedy), state, obs, KEY)
        if isinstance(spec.action_space, Discrete):
            assert (action.shape, action.dtype) == ((), jnp.int32)
            probabilities = jax.eval_shape(functools.partial(algorithm.probabilities, greedy=greedy), state, obs)
            assert probabilities.shape == (spec.action_space.n,)
        else:
            assert (action.shape, action.dtype) == (spec.action_space.shape, jnp.float32)


# Numbers. One program each: three seeds side by side, the first and the last the same.


@functools.partial(jax.jit, static_argnames="spec")
def begin(algorithm, keys, spec):
    return jax.vmap(lambda key: algorithm.init(spec, key))(keys)


@jax.jit
def learn(algorithm, states, rollout, keys):
    return jax.vmap(algorithm.update, (0, None, 0))(states, rollout, keys)


@functools.partial(jax.jit, static_argnames="greedy")
def choose(algorithm, state, obs, keys, greedy):
    """`[keys, rows of obs]`"""
    act = jax.vmap(lambda obs, key: algorithm.act(state, obs, key, greedy=greedy), (0, None))
    return jax.vmap(act, (None, 0))(obs, keys)


def lifted(algorithm):
    """As the loops hand it on: numbers in single precision."""
    return jax.tree.map(number, algorithm)


SEEDS = jax.random.wrap_key_data(jnp.stack([jax.random.key_data(jax.random.key(seed)) for seed in (1, 2, 1)]))
FIRST = {
    "PPO": ("vectors, continuous", 1), "A2C": ("discrete, discrete", 1), "DQN": ("vectors, discrete", 1),
    "LPPO": ("discrete, discrete", 3), "LA2C": ("vectors, continuous", 2), "LDQN": ("discrete, discrete", 5),
    "Projection": ("vectors, discrete", 3), "Random": ("vectors, continuous", 2),
    "PaperLPPO": ("discrete, discrete", 2), "PaperLA2C": ("discrete, discrete", 2),
    "LPPOSecondOrder": ("discrete, discrete", 2), "LA2CSecondOrder": ("discrete, discrete", 2),
    "LPPOAverageReward": ("discrete, discrete", 2), "LA2CAverageReward": ("discrete, discrete", 2),
    "LPPOQCritic": ("discrete, discrete", 2),
    "RCPO": ("discrete, discrete", 2), "PPOLagrangian": ("vectors, discrete", 2), "VaRAC": ("discrete, discrete", 2),
    "ApproPO": ("discrete, discrete", 2), "SingleObjective": ("discrete, discrete", 2),
}  # fmt: skip
SECOND = {
    "PPO": ("discrete, discrete", 1), "A2C": ("vectors, continuous", 1), "DQN": ("pictures, discrete", 1),
    "LPPO": ("vectors, continuous", 5), "LA2C": ("discrete, discrete", 5), "LDQN": ("vectors, discrete", 1),
    "Projection": ("discrete, continuous", 5), "Random": ("discrete, discrete", 1),
    "RCPO": ("vectors, continuous", 2), "PPOLagrangian": ("vectors, continuous", 2), "VaRAC": ("pictures, discrete", 2),
    "ApproPO": ("vectors, discrete", 2),
}  # fmt: skip
THIRD = {"LPPO": ("pictures, discrete", 1), "LA2C": ("discrete, continuous", 1), "Projection": ("vectors, discrete", 1)}
SLOW = ("PPO", "LPPO", "LA2C", "LDQN", "PPOLagrangian", "RCPO", *VARIANTS)
"""Cousins of others here, or at work in the tests of the loops: much compiling for little news."""
RUNS = [
    pytest.param(name, *FIRST[name], id=name, marks=[pytest.mark.slow] if name in SLOW else []) for name in ALGORITHMS
] + [
    pytest.param(name, *more[name], id=f"{name} {more[name]}", marks=pytest.mark.slow)
    for more in (SECOND, THIRD)
    for name in more
]


@functools.cache
def learned(name, spaces, m):
    algorithm, spec = lifted(ALGORITHMS[name]), spec_of(spaces, m)
    begun = begin(algorithm, SEEDS, spec)
    return begun, *learn(algorithm, begun, rollout_of(spec), SEEDS)


def lane(tree, i):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[i], tree)


def differ(one, other):
    return not all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


@pytest.mark.parametrize(("name", "spaces", "m"), RUNS)
class TestNumbers:
    def test_states_are_arrays_and_stay_what_they_are(self, name, spaces, m):
        begun, after, _ = learned(name, spaces, m)
        assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(begun))
        assert shapes(after) == shapes(begun)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((begun, after)))

    def test_metrics(self, name, spaces, m):
        _, _, metrics = learned(name, spaces, m)
        assert set(metrics) == set(metrics_of(name, m))
        for key, value in metrics.items():
            assert value.shape == ((3, m) if METRICS[name][key] else (3,))
            assert np.isfinite(value).all(), key

    def test_seeds_side_by_side(self, name, spaces, m):
        """The same key gives the same, whoever is beside; another gives another."""
        begun, after, metrics = learned(name, spaces, m)
        for tree in (begun, after):
            jax.tree.map(np.testing.assert_array_equal, lane(tree, 0), lane(tree, 2))
        if name == "Random":
            assert not differ(begun, after)
            return
        assert differ(lane(begun, 0), lane(begun, 1))
        assert differ(lane(after, 0), lane(after, 1))
        assert differ(lane(begun, 0), lane(after, 0))
        first = next(iter(metrics.values()))
        np.testing.assert_array_equal(first[0], first[2])

    def test_actions(self, name, spaces, m):
        spec = spec_of(spaces, m)
        _, after, _ = learned(name, spaces, m)
        algorithm, state = lifted(ALGORITHMS[name]), jax.tree.map(lambda leaf: leaf[0], after)
        obs = rollout_of(spec).obs.reshape(T * N, *rollout_of(spec).obs.shape[2:])
        keys = jax.random.split(KEY, 50)
        drawn, best = (np.asarray(choose(algorithm, state, obs, keys, greedy)) for greedy in (False, True))
        for actions in (drawn, best):
            if isinstance(spec.action_space, Discrete):
                assert actions.dtype == np.int32
                assert (actions >= 0).all()
                assert (actions < spec.action_space.n).all()
            else:
                assert actions.shape[2:] == spec.action_space.shape
                assert np.isfinite(actions).all()
                if name == "Random":
                    assert (np.abs(actions) <= 1).all()
        if name in Q_NETWORKS:  # greedy: one of the best actions, so that ties are not broken by their number
            probabilities = np.asarray(
                jax.vmap(lambda seen: ALGORITHMS[name].probabilities(state, seen, greedy=True))(obs)
            )
            np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
            assert (np.take_along_axis(probabilities, best.T, axis=1) > 0).all()
        elif name != "Random":
            assert (best == best[:1]).all()
        if name not in Q_NETWORKS:  # epsilon is small there
            assert (drawn != drawn[:1]).any()

    def test_the_same_key_draws_the_same(self, name, spaces, m):
        spec = spec_of(spaces, m)
        _, after, _ = learned(name, spaces, m)
        obs = rollout_of(spec).obs.reshape(T * N, *rollout_of(spec).obs.shape[2:])
        keys = jnp.concatenate([jax.random.split(KEY, 25)] * 2)
        drawn = np.asarray(choose(lifted(ALGORITHMS[name]), lane(after, 1), obs, keys, False))
        np.testing.assert_array_equal(drawn[:25], drawn[25:])


# Numbers are data.

VALUES: dict = {
    "gamma": (0.0, 0.5, 1.0),
    "learning_rate": (0.0, 0.1, "0.2"),
    "critic_learning_rate": (0.0, 1),
    "gae_lambda": (0.0, 1.0),
    "ent_coef": (0.1, 1.0),
    "clip_range": (0.01, 0.5),
    "kl_target": (0.5,),
    "tolerance": (0.0, 3, "0.5"),
    "limits": (-3.0, 1.0),
    "epsilon": (0.0, 0.7),
    "return_scale": (10.0, 3.0),
    "eta": (Power(0.9), Power(0.1, 0.01)),
    "kappa": (0.1, 5.0),
    "max_grad_norm": (0.0, 0.01),
    "polyak": (0.5, 1.0),
}
OWN = {"ApproPO": 4, "SingleObjective": 0}
"""How many values there are for those whose other settings are inside another algorithm; else 7 or more."""
IDLE = ("tolerance", "limits", "kl_target", "epsilon", "clip_range", "max_grad_norm")
"""What need not show in a state after an update: nothing has converged, the ratio is near 1, act alone uses it."""

AT_FIRST = (
    ("gamma", "DQN"),
    ("gamma", "LDQN"),
    ("return_scale", "DQN"),
    ("return_scale", "LDQN"),
    ("learning_rate", "LPPOQCritic"),
)
"""Q-networks start at 0: in their first update there is nothing to discount, and Adam's step is as long whatever the
scale is; and an actor whose critic finds all actions the same does not move."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in ALGORITHMS if name != "Random"],
)
def test_new_values_do_not_compile(name):
    spaces, m = FIRST[name]
    algorithm, spec = ALGORITHMS[name], spec_of(spaces, m)
    begun, usual, _ = learned(name, spaces, m)
    before = learn._cache_size()
    tried = 0
    for setting, values in VALUES.items():
        if setting not in {field.name for field in dataclasses.fields(algorithm)}:
            continue
        for value in values:
            changed = lifted(dataclasses.replace(algorithm, **{setting: value}))
            after, _ = learn(changed, begun, rollout_of(spec), SEEDS)
            assert differ(usual, after) or setting in IDLE or (setting, name) in AT_FIRST, (setting, value)
            tried += 1
    leaves, kind = jax.tree.flatten(lifted(algorithm))
    for i in range(len(leaves)):  # and every other number there is, deep inside
        changed = [leaf * np.float32(0.75) if i == j else leaf for j, leaf in enumerate(leaves)]
        learn(jax.tree.unflatten(kind, changed), begun, rollout_of(spec), SEEDS)
    assert tried >= OWN.get(name, 7)
    assert learn._cache_size() == before


SIZES = {
    "num_envs": 2,
    "num_steps": 2,
    "num_epochs": 3,
    "num_minibatches": 4,
    "batch_size": 6,
    "gradient_steps": 3,
    "buffer_size": 96,
    "learning_starts": 24,
    "target_update_interval": 3 * N * T // 2,
    "hidden_sizes": (5,),
    "activation": "tanh",
    "use_bias": False,
    "double_q": False,
    "num_members": 3,
    "explore_prefixes": False,
    "explore_novelty": False,
    "mixture": False,
    "optimizer": "sgd",
    "surrogate": "kl_penalty",
    "return_estimate": "critic",
    "discounted_states": True,
    "normalize_advantage": False,
    "networks": lexrl.Networks(hidden_sizes=(5,)),
    "convergence": lexrl.Convergence(sequential=True),
    "risk_measure": "cvar",
    "episodes_per_update": 2,
    "mixture_size": 5,
    "objective": "one",
    "algorithm": lexrl.A2C(),
}


INSIDE = {
    "update_tolerance": "has tests of its own: None by default",
    "constraints": "tests of constraints",
    "chance_constraints": "tests of constraints",
    "lagrangian": "every number of it is tried as a leaf",
    "stages": "every number of it is tried as a leaf",
    "multipliers": "every number of it is tried as a leaf",
    "target_set": "tests of ApproPO",
    "oracle": "an algorithm",
    "network": "tests of custom networks",
    "evidence": "every number of it is tried as a leaf",
    "guard": "every number of it is tried as a leaf",
}
"""Settings that are neither a plain number nor a size, and why they are not tried here."""
OWN_SIZES = {name: {"multipliers": lexrl.DualAscent(normalize_violation=False)} for name in VARIANTS}
OWN_SIZES["LPPOAverageReward"] |= {"return_estimate": "surrogate"}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_setting_is_listed(name):
    """A setting that this file does not know is an error: it would not be tested."""
    settings = {field.name for field in dataclasses.fields(ALGORITHMS[name])}
    assert settings <= VALUES.keys() | SIZES.keys() | INSIDE.keys()


def test_nothing_is_listed_that_does_not_exist():
    """So a renamed setting cannot silently lose its test."""
    known = {field.name for algorithm in ALGORITHMS.values() for field in dataclasses.fields(algorithm)}
    assert VALUES.keys() | SIZES.keys() | INSIDE.keys() <= known


@pytest.mark.parametrize("name", ALGORITHMS)
def test_sizes_and_kinds_shape_the_program(name):
    """A program is looked up by the structure; and whatever has another one is another program."""
    algorithm = ALGORITHMS[name]
    usual, tried = jax.tree.structure(algorithm), 0
    for setting, value in (SIZES | OWN_SIZES.get(name, {})).items():
        if isinstance(vars(algorithm).get(setting), type(value)):
            assert jax.tree.structure(dataclasses.replace(algorithm, **{setting: value})) != usual, setting
            tried += 1
    assert tried >= 2


def test_another_size_compiles_once():
    """So the counter counts."""
    spaces, m = FIRST["A2C"]
    algorithm, spec = ALGORITHMS["A2C"], spec_of(spaces, m)
    learned("A2C", spaces, m)
    before = learn._cache_size()
    other = dataclasses.replace(algorithm, networks=lexrl.Networks(hidden_sizes=()))
    for rate in (0.1, 0.2):
        changed = lifted(dataclasses.replace(other, learning_rate=rate))
        learn(changed, begin(changed, SEEDS, spec), rollout_of(spec), SEEDS)
    assert learn._cache_size() == before + 1
