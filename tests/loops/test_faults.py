"""A NaN or an infinity stops the seed it came up in, says where, and leaves every other seed alone; in both loops."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from poisoned import Poisoned

import lexrl
from lexrl import catalog, per_seed
from lexrl.loops import compiled
from lexrl.loops.population import make_population
from lexrl.order import parse
from lexrl.types import Step
from loops import compiled_run, host_run

ORDER = parse("max signal_2 > min signal_1")
SEEDS = (11, 12, 13)
NEVER = 10**6


CLEAN = lexrl.random_env(1, num_states=5, num_actions=3, num_successors=2, max_episode_steps=100)


def poisoned(first=NEVER, second=NEVER, poison=float("nan")):
    """Signal 1 goes bad at one step, signal 2 at another."""
    return Poisoned(CLEAN, np.array([first, second], np.int32), np.float32(poison))


def make_algorithm(**changes):
    given = {"tolerance": 0.05, "alpha": 0.2, "exploration": lexrl.EpsilonGreedy(0.3), "gamma": 0.9, "initial_q": 0.5}
    return lexrl.QLearning(**(catalog.TEXTBOOK | given | changes))


def chunks(envs, loop=compiled_run, algorithm=None, seeds=SEEDS, steps=60, cuts=6):
    return list(loop(algorithm or make_algorithm(), per_seed(envs), ORDER, seeds, steps, num_log_points=cuts))


def member(train_states, place):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[place], train_states)


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.fixture(scope="module")
def clean():
    return chunks([poisoned()] * 3)


class TestBadRewards:
    @pytest.mark.parametrize("place", [0, 1, 2])
    @pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize(("signal", "name"), [("first", "signal_1"), ("second", "signal_2")])
    def test_it_is_named_and_the_others_go_on(self, clean, place, poison, signal, name):
        envs = [poisoned()] * 3
        envs[place] = poisoned(**{signal: 27}, poison=poison)
        seen = chunks(envs)
        sentence = f"Seed {SEEDS[place]} stopped at step 27: the environment returned NaN or infinity for '{name}'."
        assert [chunk.faults for chunk in seen] == [{}, {}] + [{place: sentence}] * 4
        for one, other in zip(seen, clean, strict=True):
            for someone in set(range(3)) - {place}:
                same(member(one.train_states, someone), member(other.train_states, someone))
                same(
                    {name: values[someone] for name, values in one.metrics.items()},
                    {name: values[someone] for name, values in other.metrics.items()},
                )

    def test_it_keeps_its_last_good_state(self, clean):
        """What it was before the chunk that broke it."""
        seen = chunks([poisoned(), poisoned(27), poisoned()])
        for chunk, good in zip(seen, [*clean[:2], *[clean[1]] * 4], strict=True):
            kept = member(chunk.train_states, 1)
            same((kept.agent, kept.obs, kept.episode_step, kept.episode_return, kept.env_state[0]), _state(good))
            assert np.isfinite(kept.agent.q).all()

    def test_it_shows_nothing_any_more(self, clean):
        seen = chunks([poisoned(), poisoned(27), poisoned()])
        for chunk in seen[3:]:
            assert chunk.metrics["num_episodes"][1] == 0
            for name in set(chunk.metrics) - {"num_episodes"}:
                assert np.isnan(chunk.metrics[name][1]).all(), name
        assert np.isfinite(seen[-1].metrics["td_error"][[0, 2]]).all()

    def test_from_the_first_step_on(self):
        *_, end = seen = chunks([poisoned(1), poisoned(), poisoned()])
        assert "stopped at step 1:" in end.faults[0]
        same(member(end.train_states, 0).agent, member(compiled.start(_population()), 0).agent)
        assert len(seen) == 6

    def test_the_first_fault_is_the_one_that_is_reported(self):
        """Later ones are not; of two in the same step the more important objective is named."""
        *_, end = chunks([poisoned(20, 20), poisoned(10, 40), poisoned(30, 9)])
        assert ["at step 20:" in end.faults[0], "'signal_2'" in end.faults[0]] == [True, True]
        assert ["at step 10:" in end.faults[1], "'signal_1'" in end.faults[1]] == [True, True]
        assert ["at step 9:" in end.faults[2], "'signal_2'" in end.faults[2]] == [True, True]

    def test_all_of_them(self):
        *_, end = chunks([poisoned(5), poisoned(15), poisoned(25)])
        assert [f"step {step}:" in end.faults[place] for place, step in enumerate((5, 15, 25))] == [True] * 3
        assert np.isnan(end.metrics["td_error"]).all()

    def test_going_on_after_a_fault(self, clean):
        population = _population([poisoned(), poisoned(27), poisoned()])
        *_, half = compiled.advance(population, compiled.start(population), 30, num_log_points=3)
        *_, end = compiled.advance(population, half.train_states, 60, num_log_points=3)
        assert end.faults.keys() == {1}
        same(member(end.train_states, 0), member(clean[-1].train_states, 0))
        same(member(end.train_states, 1).agent, member(clean[1].train_states, 1).agent)

    def test_a_result_says_so(self):
        result = lexrl.train(
            make_algorithm(), per_seed([poisoned(), poisoned(27), poisoned()]), ORDER, seeds=SEEDS, total_timesteps=6e1
        )
        assert result.faults.keys() == {1}
        assert result.faults[1] in str(result)
        assert "Seed 12 stopped at step 27" in result.faults[1]


def _population(num_envs=None):
    return make_population(make_algorithm(), per_seed(num_envs or [poisoned()] * 3), ORDER, SEEDS)


def _state(chunk):
    good = member(chunk.train_states, 1)
    return good.agent, good.obs, good.episode_step, good.episode_return, good.env_state[0]


class TestBadAgents:
    # A rate that throws the estimates further each time: they leave single precision after some steps.
    WILD = make_algorithm(alpha=1e9)

    def test_it_is_the_agents(self, clean):
        """Both loops say the same, and the others go on."""
        said = []
        for loop in (compiled_run, host_run):
            *_, end = chunks([poisoned()] * 3, loop, [make_algorithm(), self.WILD, make_algorithm()], steps=40, cuts=1)
            assert end.faults.keys() == {1}
            for place in (0, 2):
                same(member(end.train_states, place).agent, member(clean[3].train_states, place).agent)
            np.testing.assert_array_equal(member(end.train_states, 1).agent.q, np.float32(0.5))
            said.append(end.faults[1])
        assert said[0] == said[1]
        assert said[0].startswith("Seed 12 stopped at step ")
        assert "the algorithm computed NaN or infinity for 'signal_" in said[0]

    def test_values_too_large_from_the_start(self):
        """gamma * initial is fine, a step of alpha * error is not: the second visit finds infinity."""
        algorithms = [make_algorithm(), make_algorithm(), make_algorithm(initial_q=3e38, alpha=8.0, gamma=0.5)]
        *_, end = chunks([poisoned()] * 3, algorithm=algorithms, steps=60, cuts=1)
        assert end.faults.keys() == {2}
        assert "the algorithm computed NaN or infinity for 'signal_2'" in end.faults[2]
        np.testing.assert_array_equal(member(end.train_states, 2).agent.q, np.float32(3e38))

    def test_what_is_kept_is_finite(self):
        algorithms = [make_algorithm(), make_algorithm(), make_algorithm(initial_q=3e38, alpha=8.0, gamma=0.5)]
        *_, end = chunks([poisoned()] * 3, algorithm=algorithms, steps=60, cuts=60)
        assert end.faults.keys() == {2}
        assert np.isfinite(member(end.train_states, 2).agent.q).all()

    @pytest.mark.parametrize("loop", [compiled_run, host_run])
    def test_a_number_that_belongs_to_no_objective(self, loop):
        *_, end = loop(Loss(), CLEAN, ORDER, [21, 22], 60, num_log_points=3)
        assert end.faults.keys() == {0, 1}
        assert "Seed 21 stopped at step 36: the algorithm computed NaN or infinity for its loss" in end.faults[0]
        np.testing.assert_array_equal(end.train_states.agent, [4, 4])


class Loss(eqx.Module):
    """Counts updates of two environments and three steps; its loss is NaN at the sixth."""

    num_steps: int = eqx.field(static=True, default=3)
    num_envs: int = eqx.field(static=True, default=2)

    def init(self, spec, key):
        return jnp.int32(0)

    def act(self, state, obs, key, *, greedy=False):
        return jnp.int32(0)

    def update(self, state, rollout, key):
        return state + 1, {"loss": jnp.where(state == 5, jnp.nan, 0.0), "reward": rollout.reward.mean(axis=(0, 1))}


class TestTheHostLoop:
    @pytest.fixture(scope="class")
    @staticmethod
    def stepped():
        return chunks([poisoned(), poisoned(27)], host_run, seeds=SEEDS[:2])

    def test_it_is_named_and_the_others_go_on(self, stepped, clean):
        sentence = "Seed 12 stopped at step 27: the environment returned NaN or infinity for 'signal_1'."
        assert [chunk.faults for chunk in stepped] == [{}, {}] + [{1: sentence}] * 4
        for one, other in zip(stepped, clean, strict=True):
            same(member(one.train_states, 0), member(other.train_states, 0))

    def test_it_keeps_its_last_good_state(self, stepped, clean):
        for chunk in stepped[2:]:
            kept, good = member(chunk.train_states, 1), member(clean[1].train_states, 1)
            same(
                (kept.agent, kept.obs, kept.episode_step, kept.episode_return),
                (good.agent, good.obs, good.episode_step, good.episode_return),
            )

    def test_it_shows_nothing_any_more(self, stepped):
        for chunk in stepped[3:]:
            assert chunk.metrics["num_episodes"][1] == 0
            assert np.isnan(chunk.metrics["td_error"][1]).all()

    def test_its_env_is_left_alone(self):
        times = []

        class Counted:
            spec = CLEAN.spec

            def reset(self, key):
                return 0, np.int32(0)

            def step(self, state, action, key):
                times.append(state + 1)
                return Step(state + 1, np.int32(0), jnp.array([0.0, np.nan if state == 6 else 0.0]), 1.0)

        *_, end = host_run(make_algorithm(), Counted(), ORDER, [0], 20, num_log_points=4)
        assert "at step 7:" in end.faults[0]
        assert times == [1, 2, 3, 4, 5, 6, 7]
