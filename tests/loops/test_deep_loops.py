"""Network algorithms in the loops: the same seed gives the same numbers bit for bit, however it is run; and a seed that
meets NaN or infinity stops, says where, and leaves the others alone.

Programs are few, since compiling is what costs: each algorithm has a population of three seeds on all devices,
each with its own environment (clean, or poisoned from some step on), one seed alone, and the host loop.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from poisoned import Poisoned

import lexrl
from lexrl import per_seed
from lexrl.loops import compiled
from lexrl.loops.population import make_population
from lexrl.order import parse
from loops import compiled_run, host_run

CART, ORDER = lexrl.CartSafe(observe_cos_sin=True, max_episode_steps=50), parse("min cost > max reward")
NETWORKS = lexrl.Networks(hidden_sizes=(8,))
ALGORITHMS = {
    "LPPO": lexrl.LPPO(
        networks=NETWORKS,
        num_envs=4,
        num_steps=16,
        num_minibatches=2,
        num_epochs=2,
        learning_rate=0.01,
        stages=lexrl.Stages(budget=15.0),
    ),
    "LA2C": lexrl.LA2C(
        networks=NETWORKS, num_envs=4, num_steps=8, learning_rate=0.01, stages=lexrl.Stages(budget=30.0)
    ),
    "LDQN": lexrl.LDQN(
        hidden_sizes=(8,),
        num_envs=4,
        num_steps=4,
        learning_starts=64,
        buffer_size=128,
        batch_size=16,
        gradient_steps=2,
        target_update_interval=32,
        learning_rate=0.01,
        epsilon=0.3,
        guard=lexrl.Guard(num_episodes=2.0, interval=1.0, growth_ends=40.0),
        return_scale=1.0,
    ),
}
SEEDS, PLACE, MINE = (4, 3, 9), 1, 3
STEPS = 960
NEVER = 10**6


def make_env(reward=NEVER, cost=NEVER, poison=float("nan")):
    return Poisoned(CART, np.array([reward, cost], np.int32), np.float32(poison))


def train_members(algorithm, *, num_envs=None, seeds=SEEDS, steps=STEPS, num_log_points=5, devices=None):
    given = per_seed(num_envs or [make_env()] * len(seeds))
    return list(compiled_run(algorithm, given, ORDER, seeds, steps, num_log_points=num_log_points, devices=devices))


def member(train_states, place=0):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[place], train_states)


def same(one, other):
    """The same trees, bit for bit."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for (path, mine), theirs in zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs, err_msg=jax.tree_util.keystr(path))


def differ(one, other):
    return not all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


class Case:
    """A agent and its clean run."""

    def __init__(self, name):
        self.name, self.algorithm = name, ALGORITHMS[name]
        self.block = self.algorithm.num_envs * self.algorithm.num_steps
        self.clean = train_members(self.algorithm)

    @property
    def mine(self):
        """What seed 3 carries at the end, without the state of its environment."""
        return member(self.clean[-1].train_states._replace(env_state=None), PLACE)


@pytest.fixture(scope="module", params=ALGORITHMS)
def case(request):
    return Case(request.param)


class TestTheSameNumbers:
    def test_the_run_has_something_to_show(self, case):
        """Agents moved, seeds differ, episodes ended: else the tests below would prove little."""
        population = make_population(case.algorithm, per_seed([make_env()] * 3), ORDER, SEEDS)
        begun, end = compiled.start(population), case.clean[-1]
        assert end.faults == {}
        assert differ(member(end.train_states.agent, 0), member(end.train_states.agent, 1))
        for place in range(3):
            before, after = (member(train_states.agent, place) for train_states in (begun, end.train_states))
            if case.name == "LDQN":
                assert after.agent.num_updates > 50
                assert after.agent.replay.added == STEPS > 128
                assert differ(before.agent.net, after.agent.net)
                assert differ(after.agent.target, after.agent.net)
                assert after.num_episodes > 12
            else:
                assert differ(before.agent.actor, after.agent.actor)
                assert after.course.stages.stage == 1
                assert after.course.num_references == 1
                assert after.course.stages.recent.episodes >= 12
                assert differ(before.course.references, after.course.references)
        if case.name != "LDQN":
            first, *_, last = (np.asarray(chunk.metrics["stage"])[:3] for chunk in case.clean)
            assert (first < 2).all()
            assert (last == 2).all()

    def test_stepped_from_python_alone(self, case):
        """In company, on all devices, compiled; alone, on the host, in other chunks, in the bare environment."""
        *_, end = host_run(case.algorithm, CART, ORDER, [MINE], STEPS, num_log_points=2)
        same(case.mine, member(end.train_states._replace(env_state=None)))

    @pytest.mark.slow
    def test_compiled_alone(self, case):
        *_, end = compiled_run(case.algorithm, CART, ORDER, [MINE], STEPS, num_log_points=1)
        assert len(end.train_states.iteration.sharding.device_set) == 1
        same(case.mine, member(end.train_states._replace(env_state=None)))
        same(member(case.clean[-1].train_states.env_state[0], PLACE), member(end.train_states.env_state))

    @pytest.mark.slow
    @pytest.mark.skipif(len(jax.devices()) < 2, reason="this machine has one core, so there is one device")
    def test_on_one_device(self, case):
        *_, end = train_members(case.algorithm, devices=jax.devices()[:1])
        assert len(end.train_states.iteration.sharding.device_set) == 1
        assert len(case.clean[-1].train_states.iteration.sharding.device_set) == 2
        for place in range(3):
            same(member(case.clean[-1].train_states, place), member(end.train_states, place))
        jax.tree.map(np.testing.assert_array_equal, case.clean[-1].metrics, end.metrics)

    def test_beside_others(self, case):
        *_, end = train_members(case.algorithm, seeds=(MINE, 77, 78))
        same(case.mine, member(end.train_states._replace(env_state=None), 0))

    @pytest.mark.parametrize("chunks", [1, 3, 1000])
    def test_cut_differently(self, case, chunks):
        seen = train_members(case.algorithm, num_log_points=chunks)
        assert len(seen) == min(chunks, -(-STEPS // case.block))
        for place in range(3):
            same(member(case.clean[-1].train_states, place), member(seen[-1].train_states, place))

    @pytest.mark.parametrize("stop", [1, 500, 959])
    def test_stopped_and_taken_up_again(self, case, stop):
        population = make_population(case.algorithm, per_seed([make_env()] * 3), ORDER, SEEDS)
        *_, half = compiled.advance(population, compiled.start(population), stop, num_log_points=2)
        assert half.steps == -(-stop // case.block) * case.block
        rest = list(compiled.advance(population, half.train_states, STEPS, num_log_points=2))
        end = rest[-1] if rest else half  # the last step before the end may have been in the last block
        assert end.steps == -(-STEPS // case.block) * case.block
        for place in range(3):
            same(member(case.clean[-1].train_states, place), member(end.train_states, place))

    @pytest.mark.slow
    def test_taken_up_again_from_numbers(self, case):
        """As a saved run is: from plain arrays, wherever they lie."""
        population = make_population(case.algorithm, per_seed([make_env()] * 3), ORDER, SEEDS)
        kept = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), case.clean[1].train_states)
        *_, end = compiled.advance(population, kept, STEPS, num_log_points=2)
        for place in range(3):
            same(member(case.clean[-1].train_states, place), member(end.train_states, place))

    def test_curves_of_both_loops(self, case):
        """Sums in another order, so equal up to rounding."""
        stepped = list(host_run(case.algorithm, CART, ORDER, [MINE], STEPS, num_log_points=5))
        assert [chunk.steps for chunk in stepped] == [chunk.steps for chunk in case.clean]
        for one, other in zip(case.clean, stepped, strict=True):
            assert one.metrics.keys() == other.metrics.keys()
            for name in one.metrics:
                mine, theirs = one.metrics[name][PLACE], other.metrics[name][0]
                np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5, err_msg=name)


VALUES = {
    "learning_rate": (0.0, 0.3, 1),
    "gamma": (0.0, 0.5, 1.0),
    "tolerance": (0.0, 0.5, "3"),
    "gae_lambda": (0.0, 1.0),
    "critic_learning_rate": (0.0, "0.3"),
    "clip_range": (0.5,),
    "ent_coef": (0.1,),
    "epsilon": (0.0, 0.5),
    "return_scale": (7.0, 100.0),
}


def with_setting(algorithm, name, value):
    return dataclasses.replace(algorithm, **{name: value})


class TestNumbersAreData:
    def test_values_never_compile(self, case):
        before = compiled._start._cache_size(), compiled._chunk._cache_size()
        given = [(name, value) for name in VALUES if hasattr(case.algorithm, name) for value in VALUES[name]]
        assert len(given) >= 8
        learned = [
            member(
                train_members(with_setting(case.algorithm, *one), steps=320, num_log_points=1)[-1].train_states.agent
            )
            for one in given
        ]
        mixed = [with_setting(case.algorithm, "gamma", value) for value in (0.1, 0.9, 0.99)]
        train_members(mixed, steps=320, num_log_points=1)
        assert (compiled._start._cache_size(), compiled._chunk._cache_size()) == before
        # And they reach the program: else the counter would stand still, too.
        usual = member(train_members(case.algorithm, steps=320, num_log_points=1)[-1].train_states.agent)
        idle = [one for one, state in zip(given, learned, strict=True) if not differ(state, usual)]
        assert idle == [("tolerance", value) for _, value in idle]  # nothing has converged yet, or no tie comes up

    def test_structure_compiles(self, case):
        """And so the counter counts: integers, and one each instead of one for all."""
        structure = jax.tree.structure(case.algorithm)
        fewer = {"num_envs": 2} if case.name != "LDQN" else {"batch_size": 8}
        for name, value in ({"num_steps": 8 if case.name == "LPPO" else 2} | fewer | {"gamma": (0.9, 0.9)}).items():
            assert jax.tree.structure(with_setting(case.algorithm, name, value)) != structure


class TestBadRewards:
    @pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("signal", ["reward", "cost"])
    def test_the_seed_stops_and_the_others_go_on(self, case, signal, poison):
        """The cart cannot leave the track within 20 steps, so all environments meet the poison at the 20th."""
        place = 1 if signal == "reward" else 2
        envs = [make_env()] * 3
        envs[place] = make_env(**{signal: 20}, poison=poison)
        seen = train_members(case.algorithm, num_envs=envs)
        stop = -(-20 // case.algorithm.num_steps) * case.block
        sentence = (
            f"Seed {SEEDS[place]} stopped at step {stop}: the environment returned NaN or infinity for '{signal}'."
        )
        assert [chunk.faults for chunk in seen] == [{place: sentence} if chunk.steps >= stop else {} for chunk in seen]
        for one, other in zip(seen, case.clean, strict=True):
            for someone in {0, 1, 2} - {place}:
                same(member(one.train_states, someone), member(other.train_states, someone))
                for name, values in one.metrics.items():
                    np.testing.assert_array_equal(values[someone], other.metrics[name][someone], err_msg=name)

    def test_it_keeps_its_last_good_state(self, case):
        """What it was before the chunk that broke it; later chunks change nothing and show nothing."""
        seen = train_members(case.algorithm, num_envs=[make_env(), make_env(reward=45), make_env()])
        broken = next(i for i, chunk in enumerate(seen) if chunk.faults)
        assert broken >= 0
        population = make_population(case.algorithm, per_seed([make_env()] * 3), ORDER, SEEDS)
        before = case.clean[broken - 1].train_states if broken else compiled.start(population)
        good = member(before, PLACE)
        for chunk in seen[broken:]:
            kept = member(chunk.train_states, PLACE)
            same(
                (kept.agent, kept.obs, kept.episode_step, kept.episode_return),
                (good.agent, good.obs, good.episode_step, good.episode_return),
            )
        for chunk in seen[broken + 1 :]:
            assert chunk.metrics["num_episodes"][PLACE] == 0
            assert np.isnan(chunk.metrics["episode_return"][PLACE]).all()
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(member(seen[-1].train_states.agent, PLACE)))

    def test_the_host_says_the_same(self, case):
        *_, compiled_end = train_members(case.algorithm, num_envs=[make_env(), make_env(cost=20), make_env()])
        *_, end = host_run(case.algorithm, make_env(cost=20), ORDER, [MINE], STEPS, num_log_points=1)
        assert end.faults == {0: compiled_end.faults[PLACE]}

    def test_a_cost_of_any_finite_size_is_none(self, case):
        """1e30 is a number: whether an algorithm copes with it is its own affair, and reported so."""
        *_, end = train_members(case.algorithm, num_envs=[make_env(), make_env(cost=20, poison=1e30), make_env()])
        assert "the environment returned" not in end.faults.get(PLACE, "")
        same(member(case.clean[-1].train_states, 0), member(end.train_states, 0))
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(member(end.train_states.agent, PLACE)))


class TestBadAgents:
    @pytest.mark.parametrize("rate", [1e38, 3e38])
    def test_parameters_that_overflow(self, case, rate):
        wild = with_setting(case.algorithm, "learning_rate", rate)
        seen = train_members([case.algorithm, wild, case.algorithm])
        *_, end = seen
        assert end.faults.keys() == {PLACE}
        sentence = end.faults[PLACE]
        assert sentence.startswith(f"Seed {MINE} stopped at step ")
        assert "the algorithm computed NaN or infinity for " in sentence
        assert sentence.endswith(("'cost'.", "'reward'.", "its loss or state."))
        stop = int(sentence.split("step ")[1].split(":")[0])
        assert stop % case.block == 0
        assert 0 < stop <= STEPS
        for place in (0, 2):
            same(member(case.clean[-1].train_states, place), member(end.train_states, place))
        for chunk in seen:
            assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(member(chunk.train_states.agent, PLACE)))

    def test_a_result_says_so(self, case):
        each = [case.algorithm, case.algorithm, with_setting(case.algorithm, "learning_rate", 3e38)]
        result = lexrl.train(
            each, per_seed([make_env()] * 3), ORDER, seeds=SEEDS, total_timesteps=STEPS, num_log_points=5
        )
        assert result.faults.keys() == {2}
        assert result.faults[2] in str(result)
