"""The same seed gives the same numbers, bit for bit: alone or in company, on one device or two, cut into any chunks,
stopped and taken up again, compiled or stepped from Python. And what an algorithm is shown is what happened."""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexrl
from lexrl import catalog, per_seed
from lexrl.loops import compiled, keys
from lexrl.loops.chunks import chunk_ends
from lexrl.loops.keys import Purpose
from lexrl.loops.population import make_population
from lexrl.momdp import MOMDP
from lexrl.order import parse
from lexrl.types import Box, Discrete, EnvSpec, Step, Transition
from loops import compiled_run, host_run

RULES = {
    "q-learning": lexrl.QLearning,
    "sarsa": lexrl.Sarsa,
    "expected-sarsa": lexrl.ExpectedSarsa,
    "double-q": lexrl.DoubleQLearning,
}
GRID, GRID_ORDER = (
    lexrl.GridNav.generate(4, map_seed=1, slip_probability=0.3, max_episode_steps=12),
    parse("min cost > max reward"),
)
# Every step may end the task (5 %), and episodes are cut off after six steps: both kinds of ends are common.
ENDING = lexrl.FiniteEnv(
    MOMDP.random(2, 6, 3, 2, num_successors=3, episodic=True), reward_noise=0.2, max_episode_steps=6
)
ENDING_ORDER = parse("max signal_2 > min signal_1")
MEMBERS = (*range(100, 115), 7, *range(200, 214))
"""Seed 7 among 29 others, in the middle."""


def make_algorithm(rule="q-learning", **changes):
    given = {"tolerance": 0.05, "alpha": 0.2, "exploration": lexrl.EpsilonGreedy(0.3), "initial_q": 0.5}
    return RULES[rule](**(catalog.TEXTBOOK | given | changes))


def last(chunks):
    return list(chunks)[-1]


def member(train_states, place=0):
    """Everything one member carries, as NumPy arrays; the state of the environment only if the loop keeps it there."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[place], train_states)


def same(one, other):
    """The same trees, bit for bit (NaN never comes up here)."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(np.testing.assert_array_equal, one, other)
    assert [leaf.dtype for leaf in jax.tree.leaves(one)] == [leaf.dtype for leaf in jax.tree.leaves(other)]


def differ(one, other):
    """Some number differs: a comparison that could not fail would prove nothing."""
    return not all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


class TestCompany:
    @pytest.mark.parametrize("rule", RULES)
    def test_in_company_and_alone_on_the_host(self, rule):
        together = last(compiled_run(make_algorithm(rule), ENDING, ENDING_ORDER, MEMBERS, 100, num_log_points=2))
        stepped = last(host_run(make_algorithm(rule), ENDING, ENDING_ORDER, [7], 100, num_log_points=1))
        mine = member(together.train_states, MEMBERS.index(7))
        same(mine, member(stepped.train_states))
        assert differ(mine.agent, member(together.train_states, 0).agent)
        table = mine.agent
        assert table.visits.sum() == 100 - (rule == "sarsa")  # SARSA learns one step late

    def test_in_company_and_alone_compiled(self):
        together = last(compiled_run(make_algorithm(), ENDING, ENDING_ORDER, MEMBERS, 1000, num_log_points=2))
        alone = last(compiled_run(make_algorithm(), ENDING, ENDING_ORDER, [7], 1000, num_log_points=3))
        same(member(together.train_states, MEMBERS.index(7)), member(alone.train_states))

    def test_a_grid_on_both_loops(self):
        """The agent, and the learning curves: sums in another order, so equal up to rounding."""
        together = list(compiled_run(make_algorithm(), GRID, GRID_ORDER, [3, 7, 5], 100, num_log_points=4))
        stepped = list(host_run(make_algorithm(), GRID, GRID_ORDER, [3], 100, num_log_points=4))
        same(member(together[-1].train_states), member(stepped[-1].train_states))
        assert [chunk.steps for chunk in together] == [chunk.steps for chunk in stepped] == [25, 50, 75, 100]
        for one, other in zip(together, stepped, strict=True):
            assert (
                one.metrics.keys()
                == other.metrics.keys()
                >= {"episode_return", "episode_length", "num_episodes", "td_error"}
            )
            for name in one.metrics:
                np.testing.assert_allclose(one.metrics[name][:1], other.metrics[name], rtol=1e-5, err_msg=name)

    @pytest.mark.skipif(len(jax.devices()) < 2, reason="this machine has one core, so there is one device")
    def test_on_one_device_and_on_two(self):
        runs = [
            last(compiled_run(make_algorithm(), GRID, GRID_ORDER, [3, 7, 5], 300, devices=devices))
            for devices in (jax.devices()[:1], jax.devices()[:2])
        ]
        assert len(runs[0].train_states.iteration.sharding.device_set) == 1
        assert len(runs[1].train_states.iteration.sharding.device_set) == 2
        for place in range(3):
            same(member(runs[0].train_states, place), member(runs[1].train_states, place))
        jax.tree.map(np.testing.assert_array_equal, runs[0].metrics, runs[1].metrics)

    def test_the_same_seed_twice_in_one_population(self):
        train_states = last(compiled_run(make_algorithm(), GRID, GRID_ORDER, [7, 3, 7], 200)).train_states
        same(member(train_states, 0), member(train_states, 2))
        assert differ(member(train_states, 0).agent, member(train_states, 1).agent)

    def test_a_env_each_is_that_env_alone(self):
        envs = [
            lexrl.GridNav.generate(4, map_seed=i, slip_probability=0.1 * i, obstacle_density=0.5, max_episode_steps=12)
            for i in range(3)
        ]
        together = last(compiled_run(make_algorithm(), per_seed(envs), GRID_ORDER, [5, 5, 9], 300)).train_states
        for place, (env, seed) in enumerate(zip(envs, [5, 5, 9], strict=True)):
            alone = last(compiled_run(make_algorithm(), env, GRID_ORDER, [seed], 300)).train_states
            same(member(together, place), member(alone))
        assert differ(member(together, 0).agent, member(together, 1).agent)

    def test_a_env_each_on_the_host(self):
        envs = [
            lexrl.GridNav.generate(4, map_seed=i, slip_probability=0.1 * i, obstacle_density=0.5, max_episode_steps=12)
            for i in range(3)
        ]
        together = last(compiled_run(make_algorithm(), per_seed(envs), GRID_ORDER, [5, 5, 9], 20)).train_states
        stepped = last(host_run(make_algorithm(), per_seed(envs), GRID_ORDER, [5, 5, 9], 20)).train_states
        for place in range(3):
            same(member(together, place), member(stepped, place))


N_STEPS = 60


@pytest.fixture(scope="module")
def population():
    return make_population(make_algorithm(), GRID, GRID_ORDER, [3, 7, 5])


@pytest.fixture(scope="module")
def every_step(population):
    """The train states after each single step."""
    chunks = list(compiled.advance(population, compiled.start(population), N_STEPS, num_log_points=N_STEPS))
    assert [chunk.steps for chunk in chunks] == list(range(1, N_STEPS + 1))
    return [jax.tree.map(np.asarray, chunk.train_states) for chunk in chunks]


class TestChunks:
    @pytest.mark.parametrize("chunks", [1, 2, 7, N_STEPS - 1, N_STEPS, 5 * N_STEPS])
    def test_every_cut_shows_the_same_moments(self, population, every_step, chunks):
        seen = list(compiled.advance(population, compiled.start(population), N_STEPS, num_log_points=chunks))
        assert len(seen) == min(chunks, N_STEPS)
        assert seen[-1].steps == N_STEPS
        for chunk in seen:
            same(jax.tree.map(np.asarray, chunk.train_states), every_step[chunk.steps - 1])

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(stop=st.integers(1, N_STEPS - 1), first=st.integers(1, 70), then=st.integers(1, 70), leave=st.integers(1, 4))
    def test_stopping_and_going_on(self, population, every_step, stop, first, then, leave):
        """Stop after some chunks, at a budget that was smaller at first, and cut the rest differently."""
        begun = compiled.advance(population, compiled.start(population), stop, num_log_points=first)
        for _, chunk in zip(range(leave), begun, strict=False):
            train_states = chunk.train_states
        *_, end = compiled.advance(population, train_states, N_STEPS, num_log_points=then)
        assert end.steps == N_STEPS
        same(jax.tree.map(np.asarray, end.train_states), every_step[-1])

    def test_train_states_kept_as_plain_arrays_go_on(self, population, every_step):
        """As a saved run does: nothing but numbers is carried over."""
        end = last(compiled.advance(population, jax.tree.map(jnp.asarray, every_step[20]), N_STEPS, num_log_points=3))
        same(jax.tree.map(np.asarray, end.train_states), every_step[-1])

    def test_nothing_is_left_to_do(self, population, every_step):
        assert list(compiled.advance(population, every_step[-1], N_STEPS)) == []

    @pytest.mark.parametrize("cut", [3, 200])
    def test_the_host_in_chunks(self, population, every_step, cut):
        for chunk in host_run(make_algorithm(), GRID, GRID_ORDER, [3], 30, num_log_points=cut):
            same(member(chunk.train_states), member(every_step[chunk.steps - 1]))
        assert chunk.steps == 30

    def test_the_parts_of_a_curve_add_up(self, population):
        def totals(chunks):
            parts = list(compiled.advance(population, compiled.start(population), N_STEPS, num_log_points=chunks))
            episodes = np.array([part.metrics["num_episodes"] for part in parts])
            earned = np.nansum(
                [part.metrics["episode_return"] * part.metrics["num_episodes"][:, None] for part in parts], axis=0
            )
            return episodes.sum(axis=0), earned

        (few, little), (many, much) = totals(2), totals(N_STEPS)
        np.testing.assert_array_equal(few, many)
        np.testing.assert_allclose(little, much, rtol=1e-5)
        assert (few >= N_STEPS // 12).all()

    @settings(max_examples=200, deadline=None)
    @given(total=st.integers(1, 500), num_chunks=st.integers(1, 700), done=st.integers(0, 500))
    def test_where_chunks_end(self, total, num_chunks, done):
        stops = chunk_ends(total, num_chunks)
        sizes = np.diff([0, *stops])
        assert stops[-1] == total
        assert len(stops) == min(total, num_chunks)
        even = sizes[num_chunks >= 10 :]  # of many, the first is short
        assert len(even) == 0 or even.max() - even.min() <= 1
        assert sizes[0] <= (-(-total // (10 * num_chunks)) if num_chunks >= 10 else sizes.max())
        assert chunk_ends(total, num_chunks, done) == [stop for stop in stops if stop > done]

    @pytest.mark.parametrize("loop", [compiled_run, host_run])
    @pytest.mark.parametrize(("steps", "chunks"), [(0, 1), (1, 0), (-5, 2)])
    def test_nothing_cannot_be_trained(self, loop, steps, chunks):
        with pytest.raises(lexrl.InputError, match="both must be 1 or more"):
            list(loop(make_algorithm(), GRID, GRID_ORDER, [0], steps, num_log_points=chunks))


# A agent with rollouts of three steps in four environments, that writes down all it is given.

ITERATIONS, LENGTH, NUM_ENVS = 6, 3, 4


class Pages(NamedTuple):
    seen: Transition
    """`[iterations, T, N, ...]`"""
    first: jax.Array
    """What the key of `init` draws."""
    draws: jax.Array
    """`[iterations]`: what the keys of `update` draw."""
    used: jax.Array


class Scribe(eqx.Module):
    """Acts at random, leaning to the right by `lean`; remembers everything."""

    lean: float = 0.7
    num_steps: int = eqx.field(static=True, default=LENGTH)
    num_envs: int = eqx.field(static=True, default=NUM_ENVS)

    def init(self, spec, key):
        shape = (ITERATIONS, self.num_steps, self.num_envs)
        pages = Transition(
            obs=jnp.zeros((*shape, *spec.observation_space.shape)),
            action=jnp.zeros(shape, jnp.int32),
            reward=jnp.zeros((*shape, len(spec.objectives))),
            discount=jnp.zeros(shape),
            next_obs=jnp.zeros((*shape, *spec.observation_space.shape)),
            last=jnp.zeros(shape, bool),
        )
        return Pages(pages, jax.random.uniform(key), jnp.zeros(ITERATIONS), jnp.int32(0))

    def act(self, state, obs, key, *, greedy=False):
        return (jax.random.uniform(key) < self.lean + 0.01 * state.used).astype(jnp.int32)

    def update(self, state, rollout, key):
        seen = jax.tree.map(lambda book, page: book.at[state.used].set(page), state.seen, rollout)
        draws = state.draws.at[state.used].set(jax.random.uniform(key))
        metrics = {"mean": rollout.reward.mean(axis=(0, 1)), "ends": rollout.last.sum()}
        return Pages(seen, state.first, draws, state.used + 1), metrics


class Corridor(eqx.Module):
    """Cells 0 .. 4, left or right; starts at 0 or 1 at random, ends at 4, cut off after six steps; walls at the left.

    What is seen is (cell, square of the cell); `toll` is what the new cell is numbered, `luck` is a random number.
    """

    worth: float = 2.0

    @property
    def spec(self):
        return EnvSpec(Box((2,)), Discrete(2), ("luck", "toll"), 6)

    def reset(self, key):
        cell = jax.random.randint(key, (), 0, 2)
        return cell, self._seen(cell)

    def step(self, state, action, key):
        cell = jnp.maximum(state + 2 * action - 1, 0)
        signals = jnp.stack([jax.random.uniform(key), self.worth * cell])
        return Step(cell, self._seen(cell), signals, jnp.where(cell == 4, 0.0, 1.0))

    def _seen(self, cell):
        return jnp.stack([cell, cell**2]).astype(jnp.float32)


CORRIDOR_ORDER = parse("min toll > max luck")
SEEDS = (4, 2, 9)
STEPS = ITERATIONS * LENGTH * NUM_ENVS


@pytest.fixture(scope="module")
def written():
    """What the scribes wrote, three in the compiled loop and one of them in the host loop."""
    run = {"algorithm": Scribe(), "env": Corridor(), "order": CORRIDOR_ORDER, "steps": STEPS - 5, "num_log_points": 3}
    return {
        "compiled": list(compiled_run(seeds=SEEDS, **run)),
        "host": list(host_run(seeds=SEEDS[:1], **run)),
    }


LOOPS = {"compiled": SEEDS, "host": SEEDS[:1]}


@pytest.fixture(scope="module")
def draws():
    """What each address draws: uniform numbers, or the cell a reset begins in; `[seed, environment, time]` each."""

    def one(seed, env, time):
        number = {
            purpose: jax.random.uniform(keys.at(keys.stream(seed, purpose, env), time))
            for purpose in (Purpose.ACT, Purpose.STEP, Purpose.UPDATE)
        }
        start = jax.random.randint(keys.at(keys.stream(seed, Purpose.RESET, env), time), (), 0, 2)
        return number | {Purpose.RESET: start}

    for axis in (2, 1, 0):
        one = jax.vmap(one, in_axes=[0 if i == axis else None for i in range(3)])
    tables = jax.jit(one)(jnp.array(SEEDS), jnp.arange(NUM_ENVS), jnp.arange(ITERATIONS * LENGTH + 1))
    return jax.tree.map(np.asarray, tables)


@pytest.fixture(scope="module")
def expected(draws):
    """What should have happened, computed again in plain Python from the addresses of the draws."""
    return [[_retell(draws, place, env) for env in range(NUM_ENVS)] for place in range(len(SEEDS))]


def _retell(draws, place, env):
    act, luck, start = (draws[purpose][place, env] for purpose in (Purpose.ACT, Purpose.STEP, Purpose.RESET))
    cell, clock, steps = int(start[0]), 0, []
    for time in range(ITERATIONS * LENGTH):
        lean = np.float32(0.7) + np.float32(0.01) * np.float32(time // LENGTH)
        action = int(act[time] < lean)
        following = max(cell + (1 if action else -1), 0)
        clock += 1
        ended = following == 4
        over = ended or clock == 6
        steps.append((cell, action, (-2.0 * following, luck[time]), 0.0 if ended else 1.0, following, over, clock))
        cell, clock = (int(start[time + 1]), 0) if over else (following, clock)
    return steps


class TestSeveralEnvs:
    @pytest.mark.parametrize("loop", LOOPS)
    def test_every_transition(self, written, expected, loop):
        for place in range(len(LOOPS[loop])):
            seen = member(written[loop][-1].train_states.agent.seen, place)
            flat = jax.tree.map(lambda leaf: leaf.reshape(ITERATIONS * LENGTH, *leaf.shape[2:]), seen)
            for env in range(NUM_ENVS):
                cell, action, reward, discount, following, over, _ = zip(*expected[place][env], strict=True)
                np.testing.assert_array_equal(flat.obs[:, env], np.stack([cell, np.square(cell)], axis=1))
                np.testing.assert_array_equal(flat.action[:, env], action)
                np.testing.assert_array_equal(flat.reward[:, env], np.array(reward, np.float32))
                np.testing.assert_array_equal(flat.discount[:, env], discount)
                np.testing.assert_array_equal(
                    flat.next_obs[:, env], np.stack([following, np.square(following)], axis=1)
                )
                np.testing.assert_array_equal(flat.last[:, env], over)

    def test_the_tale_has_both_kinds_of_ends(self, expected):
        """Else the test above would have proved little."""
        ends = [step for one in expected for env in one for step in env if step[5]]
        assert sum(step[3] == 0 for step in ends) > 8
        assert sum(step[3] == 1 for step in ends) > 8
        assert all(step[6] == 6 for step in ends if step[3] == 1)
        assert any(step[6] == 6 for step in ends if step[3] == 0)  # the task ends as the time is up: it ended
        for one in expected:
            for env in one:
                after = [now[0] for before, now in itertools.pairwise(env) if before[5]]
                assert set(after) <= {0, 1}

    @pytest.mark.parametrize("loop", LOOPS)
    def test_returns_and_lengths_of_episodes(self, written, expected, loop):
        """Each of the three chunks counts the episodes that ended in it, with all they earned, in the user's signs."""
        for part, chunk in enumerate(written[loop]):
            assert chunk.steps == (part + 1) * 2 * LENGTH * NUM_ENVS
            ended_in = range(part * 2 * LENGTH, (part + 1) * 2 * LENGTH)
            for place in range(len(LOOPS[loop])):
                episodes = [one for env in expected[place] for one in _episodes(env, ended_in)]
                assert chunk.metrics["num_episodes"][place] == len(episodes) > 0
                np.testing.assert_allclose(
                    chunk.metrics["episode_length"][place], np.mean([len(one) for one in episodes])
                )
                returns = np.mean([np.sum([step[2] for step in one], axis=0) for one in episodes], axis=0)
                np.testing.assert_allclose(chunk.metrics["episode_return"][place], returns * [-1, 1], rtol=1e-5)
                rewards = [[step[2] for step in env[ended_in.start : ended_in.stop]] for env in expected[place]]
                np.testing.assert_allclose(chunk.metrics["mean"][place], np.mean(rewards, axis=(0, 1)), rtol=1e-5)
                ends = np.sum([step[5] for env in expected[place] for step in env[ended_in.start : ended_in.stop]])
                np.testing.assert_allclose(chunk.metrics["ends"][place], ends / 2, rtol=1e-6)

    @pytest.mark.parametrize("loop", LOOPS)
    def test_the_clocks_go_on(self, written, expected, loop):
        train_states = written[loop][-1].train_states
        for place in range(len(LOOPS[loop])):
            ends = [env[-1] for env in expected[place]]
            clock = [0 if end[5] else end[6] for end in ends]
            np.testing.assert_array_equal(np.asarray(train_states.episode_step)[place], clock)
            earned = [np.sum([step[2] for step in env[len(env) - n :]], axis=0) if n else [0.0, 0.0]
                      for env, n in zip(expected[place], clock, strict=True)]  # fmt: skip
            np.testing.assert_allclose(np.asarray(train_states.episode_return)[place], earned, rtol=1e-5)
            assert np.asarray(train_states.iteration)[place] == ITERATIONS

    @pytest.mark.parametrize("loop", LOOPS)
    def test_the_agents_own_draws(self, written, draws, loop):
        for place, seed in enumerate(LOOPS[loop]):
            pages = member(written[loop][-1].train_states.agent, place)
            assert pages.first == jax.random.uniform(keys.stream(seed, Purpose.INIT))
            np.testing.assert_array_equal(pages.draws, draws[Purpose.UPDATE][place, 0, :ITERATIONS])

    def test_both_loops_write_the_same(self, written):
        one, other = (member(written[loop][-1].train_states) for loop in LOOPS)
        same(one.agent, other.agent)
        np.testing.assert_array_equal(one.obs, other.obs)

    def test_a_plain_python_env_on_the_host(self, written):
        """Any object with `spec`, `reset` and `step` will do, and numbers come out the same."""

        class Plain:
            spec = Corridor().spec

            def reset(self, key):
                cell = int(jax.random.randint(key, (), 0, 2))
                return cell, np.array([cell, cell**2], np.float32)

            def step(self, state, action, key):
                cell = max(state + 2 * int(action) - 1, 0)
                signals = np.array([jax.random.uniform(key), 2.0 * cell], np.float32)
                return Step(cell, np.array([cell, cell**2], np.float32), signals, 0.0 if cell == 4 else 1.0)

        end = last(host_run(Scribe(), Plain(), CORRIDOR_ORDER, SEEDS[:1], STEPS, num_log_points=1))
        same(member(end.train_states.agent), member(written["compiled"][-1].train_states.agent))


def _episodes(env, ended_in):
    """The steps of every episode that ended in a span of time."""
    begun = 0
    for time, step in enumerate(env):
        if step[5]:
            if time in ended_in:
                yield env[begun : time + 1]
            begun = time + 1
