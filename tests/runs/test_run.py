"""Runs as values, what is said of wrong ones, and what a result can be asked."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import catalog, exact, per_seed
from lexrl.errors import InputError
from lexrl.loops import compiled
from lexrl.loops.population import number
from lexrl.order import parse
from lexrl.runs import execute, plan
from lexrl.runs.observers import callback
from lexrl.runs.pipeline import snapshots
from lexrl.tolerance import Absolute, Relative, Sum
from lexrl.types import Box, Discrete

ORDER = "min cost > max reward"
WORLD = lexrl.GridNav.generate(4, map_seed=1, slip_probability=0.3, max_episode_steps=12)


def learner(**changes):
    given = {"tolerance": 0.05, "alpha": 0.2, "exploration": lexrl.EpsilonGreedy(0.3), "initial_q": 0.5}
    return lexrl.QLearning(**(catalog.TEXTBOOK | given | changes))


@pytest.fixture(scope="module")
def result():
    return lexrl.train(learner(), WORLD, ORDER, seeds=[3, 7, 5], total_timesteps=2e3, num_log_points=4)


WRONG = {
    "no seeds": ({"seeds": []}, "No seeds were given"),
    "seeds: 0": ({"seeds": 0}, "No seeds were given"),
    "a negative seed": ({"seeds": [3, -1]}, r"The seeds \[3, -1\] must be whole numbers from 0"),
    "a large seed": ({"seeds": [2**32]}, "must be whole numbers from 0 to 4294967295"),
    "two algorithms for three seeds": (
        {"algorithm": [learner(), learner()], "seeds": 3},
        "2 algorithms were given for 3 seeds; give one for all, or one for each",
    ),
    "two kinds of algorithms": (
        {"algorithm": [learner(), lexrl.Sarsa()], "seeds": 2},
        "The algorithms of a run may differ in float hyper-parameters only",
    ),
    "two worlds for three seeds": (
        {"env": per_seed([WORLD, WORLD]), "seeds": 3},
        "2 environments were given for 3 seeds; give one for all, or one for each",
    ),
    "no chunks": ({"num_log_points": 0}, "both must be 1 or more"),
}


class TestPlans:
    def test_what_is_kept(self):
        run = plan(learner(), WORLD, ORDER, seeds=4, total_timesteps=2e3, num_log_points=7)
        assert (run.seeds, run.total_timesteps, run.num_log_points) == ((0, 1, 2, 3), 2000, 7)
        assert isinstance(run.total_timesteps, int)
        assert run.order == parse(ORDER)
        assert plan(learner(), WORLD, ORDER, seeds=[9, 2]).seeds == (9, 2)

    def test_a_whole_number_of_steps(self):
        assert plan(learner(), WORLD, ORDER, seeds=4, total_timesteps=2000).total_timesteps == 2000

    def test_an_order_may_be_left_out_for_one_signal(self):
        world = lexrl.random_env(0, num_states=3, num_actions=2, num_signals=1)
        assert str(plan(learner(), world, None).order) == "max signal_1"

    @pytest.mark.parametrize(
        ("order", "match"),
        [
            ("min speed > max reward", "names 'speed', but the signals here are 'reward', 'cost'"),
            ("", "An order is needed.*'reward', 'cost'"),
            ("   ", "An order is needed"),
            (None, "An order is needed"),
            ("cost > max reward", "'min cost' or 'max cost'"),
            ("min cost > max cost", "twice.*The signals here are 'reward', 'cost'"),
        ],
    )
    def test_orders(self, order, match):
        with pytest.raises(lexrl.InputError, match=match):
            plan(learner(), WORLD, order)

    @pytest.mark.parametrize("steps", [0.0, 1.5, -3.0, 0.999])
    def test_steps(self, steps):
        with pytest.raises(lexrl.InputError, match=f"total_timesteps is {steps:g}; give a whole number"):
            plan(learner(), WORLD, ORDER, total_timesteps=steps)

    @pytest.mark.parametrize("steps", [float("inf"), float("nan")])
    def test_steps_without_end(self, steps):
        with pytest.raises(lexrl.InputError, match="give a whole number"):
            plan(learner(), WORLD, ORDER, total_timesteps=steps)

    @pytest.mark.parametrize("what", WRONG)
    def test_seeds_algorithms_and_worlds(self, what):
        changes, match = WRONG[what]
        with pytest.raises(lexrl.InputError, match=match):
            lexrl.train(**({"algorithm": learner(), "env": WORLD, "order": ORDER, "total_timesteps": 10.0} | changes))

    @pytest.mark.parametrize("what", WRONG)
    def test_a_plan_is_checked_when_it_is_made(self, what):
        changes, match = WRONG[what]
        with pytest.raises(lexrl.InputError, match=match):
            plan(**({"algorithm": learner(), "env": WORLD, "order": ORDER, "total_timesteps": 10.0} | changes))

    def test_an_algorithm_that_does_not_fit_the_world(self):
        with pytest.raises(lexrl.InputError, match="needs discrete observations"):
            lexrl.train(learner(), lexrl.GridNav.generate(4, one_hot=True), ORDER, seeds=1, total_timesteps=5.0)
        with pytest.raises(lexrl.InputError, match="gamma has 3 entries for 2 objectives"):
            lexrl.train(learner(gamma=(0.9, 0.9, 0.9)), WORLD, ORDER, seeds=1, total_timesteps=5.0)
        with pytest.raises(lexrl.InputError, match="3 tolerances for the 2 objectives"):
            plan(learner(tolerance=(0.1, 0.1, 0.1)), WORLD, ORDER)


class TestTolerancesInTheOrder:
    def test_they_come_first(self):
        run = plan(learner(tolerance=0.05), WORLD, "min cost ±0.3 > max reward ±5%")
        assert run.algorithm.tolerance == (Absolute(0.3), Relative(0.05))

    def test_what_has_none_keeps_the_algorithms(self):
        assert plan(learner(), WORLD, "min cost > max reward ±1 + 2%").algorithm.tolerance == (
            Absolute(0.05),
            Sum((Absolute(1.0), Relative(0.02))),
        )
        assert plan(learner(tolerance=(0.1, 0.2)), WORLD, "min cost ±0.7 > max reward").algorithm.tolerance == (
            Absolute(0.7),
            Absolute(0.2),
        )
        assert plan(learner(), WORLD, ORDER).algorithm.tolerance == Absolute(0.05)

    def test_a_limit_is_refused_where_it_cannot_be_honored(self):
        with pytest.raises(lexrl.InputError, match="q-learning cannot honor the limit in 'cost <= 1 > max reward'"):
            plan(learner(), WORLD, "cost <= 1 > max reward")

    def test_the_refusal_names_those_that_can(self):
        with pytest.raises(lexrl.InputError, match="; la2c, lppo, projection can, and so does `lexrl solve"):
            plan(learner(), WORLD, "cost <= 1 > max reward")

    @pytest.mark.parametrize("kind", [lexrl.LPPO, lexrl.LA2C, lexrl.Projection])
    def test_limits_of_the_order_are_the_algorithms(self, kind):
        assert plan(kind(), WORLD, "cost <= 1 > max reward").algorithm.limits == (-1.0, np.inf)
        assert plan(kind(), WORLD, ORDER).algorithm.limits == np.inf

    def test_a_tolerance_of_nothing_is_a_tolerance(self):
        assert plan(learner(), WORLD, "min cost ±0 > max reward").algorithm.tolerance[0] == Absolute(0.0)

    def test_each_of_several_algorithms(self):
        run = plan([learner(gamma=0.5), learner(gamma=0.6)], WORLD, "min cost ±0.3 > max reward", seeds=2)
        assert [one.tolerance[0] for one in run.algorithm] == [Absolute(0.3)] * 2
        assert [one.gamma for one in run.algorithm] == [0.5, 0.6]

    def test_the_learner_obeys(self):
        """Everything is admissible within a tolerance of a million; hardly anything within none."""
        wide = lexrl.train(learner(), WORLD, "min cost ±1e6 > max reward ±1e6", seeds=[3, 7, 5], total_timesteps=2e3)
        narrow = lexrl.train(learner(), WORLD, "min cost ±0 > max reward ±0", seeds=[3, 7, 5], total_timesteps=2e3)
        np.testing.assert_allclose(wide.probabilities(), 0.25)
        assert (narrow.probabilities()[1].max(axis=1) == 1).mean() > 0.3


class TestResults:
    def test_curves(self, result):
        assert result.steps.tolist() == [500, 1000, 1500, 2000]
        assert result.metrics["episode_return"].shape == result.metrics["td_error"].shape == (4, 3, 2)
        assert result.metrics["episode_length"].shape == result.metrics["num_admissible"].shape == (4, 3)
        assert (result.metrics["episode_return"][..., 0] >= 0).all()  # a cost reads as a cost
        assert (result.metrics["episode_length"] <= 12).all()
        np.testing.assert_array_less(500 // 12 - 2, result.metrics["num_episodes"])
        assert result.faults == {}
        assert result.seconds > 0

    def test_tidy_rows(self, result):
        rows = result.table()
        assert len(rows) == 4 * 3 * (2 + 2 + 1 + 1 + 1)
        assert all(set(row) == {"seed", "step", "metric", "objective", "value"} for row in rows)
        assert len({(row["seed"], row["step"], row["metric"], row["objective"]) for row in rows}) == len(rows)
        assert {row["seed"] for row in rows} == {3, 7, 5}
        chosen = {(row["seed"], row["step"], row["metric"], row["objective"]): row["value"] for row in rows}
        assert chosen[7, 1500, "episode_return", "cost"] == result.metrics["episode_return"][2, 1, 0]
        assert chosen[5, 500, "td_error", "reward"] == result.metrics["td_error"][0, 2, 1]
        assert chosen[3, 2000, "episode_length", ""] == result.metrics["episode_length"][3, 0]

    def test_learners_and_policies(self, result):
        one = result.agent(1)
        assert one.q.shape == (16, 2, 4)
        np.testing.assert_array_equal(one.q, result.policies[1].state.q)
        policies = result.probabilities()
        assert policies.shape == (3, 16, 4)
        assert policies.dtype == float
        np.testing.assert_allclose(policies.sum(axis=-1), 1, rtol=1e-15)
        chances = [learner().probabilities(one, jnp.int32(s), greedy=True) for s in range(16)]
        np.testing.assert_allclose(policies[1], chances, rtol=1e-6)
        assert not np.array_equal(policies[0], policies[1])

    def test_policies_of_several_algorithms_use_their_own_tolerance(self):
        each = [learner(tolerance=tau) for tau in (0.0, 1e6, 0.05)]
        result = lexrl.train(each, WORLD, ORDER, seeds=[3, 7, 5], total_timesteps=2e3)
        np.testing.assert_allclose(result.probabilities()[1], 0.25)
        assert (result.probabilities()[0].max(axis=1) > 0.3).any()

    def test_gaps(self, result):
        process = WORLD.momdp(0.99)
        for policy, gap in zip(result.probabilities(), result.gaps(process), strict=True):
            expected = exact.gap(process, policy, ORDER)
            np.testing.assert_allclose(gap.shortfall, expected.shortfall)
            assert gap.level == expected.level
        generous = result.gaps(process, tolerance=1e9)
        assert [gap.level for gap in generous] == [None] * 3
        assert len(result.gaps([process, WORLD.momdp(0.5), process])) == 3
        with pytest.raises(lexrl.InputError, match="2 processes were given for 3 seeds"):
            result.gaps([process, process])

    def test_evaluation(self, result):
        played = result.evaluate(50)
        assert played.returns.shape == (3, 50, 2)
        assert (played.returns[..., 0] >= 0).all()

    def test_as_text(self, result):
        first, *rest = str(result).splitlines()
        assert first.startswith("q-learning on grid-nav, min cost > max reward: 3 seeds x 2,000 steps in ")
        last = result.metrics["episode_return"][-1, :, 1]
        assert rest[0].startswith("  cost per episode in training: ")
        assert rest[1] == (
            f"  reward per episode in training: {last.mean():.4g} (seeds: {last.min():.4g} to {last.max():.4g})"
        )
        assert len(rest) == 2

    def test_no_cost_is_zero(self):
        world = lexrl.GridNav.generate(4, obstacle_density=0.0, max_episode_steps=12)
        result = lexrl.train(learner(), world, ORDER, seeds=[3, 7, 5], total_timesteps=2e3, num_log_points=4)
        assert "cost per episode in training: 0 (seeds: 0 to 0)" in str(result)

    def test_several_algorithms_as_text(self):
        result = lexrl.train([learner()] * 3, WORLD, ORDER, seeds=[3, 7, 5], total_timesteps=2e3, num_log_points=4)
        assert str(result).startswith("q-learning on grid-nav, min cost > max reward: 3 seeds")

    def test_no_episode_yet(self):
        result = lexrl.train(learner(), WORLD, ORDER, seeds=[3, 7, 5], total_timesteps=3.0)
        assert "cost per episode in training: no episode" in str(result)
        assert np.isnan(result.metrics["episode_return"]).all()

    def test_the_length_of_a_curve(self):
        assert lexrl.train(learner(), WORLD, ORDER, seeds=[3, 7, 5], total_timesteps=3.0).steps.tolist() == [1, 2, 3]


class TestExecution:
    def test_someone_may_watch(self, result):
        seen = []
        run = plan(learner(), WORLD, ORDER, seeds=[3, 7, 5], total_timesteps=2e3, num_log_points=4)
        *_, again = execute(run, observers=[callback(seen.append)])
        assert [int(part.steps[-1]) for part in seen] == again.steps.tolist() == result.steps.tolist()
        for policy, other in zip(again.policies, result.policies, strict=True):
            jax.tree.map(np.testing.assert_array_equal, policy.state, other.state)

    def test_a_loop_of_ones_own(self, result):
        run = plan(learner(), WORLD, ORDER, seeds=[3, 7, 5], total_timesteps=2e3, num_log_points=4)
        population = run.population()
        *_, end = compiled.advance(population, compiled.start(population), 2000, num_log_points=9)
        *_, last = snapshots(run)
        for one, other in zip(jax.tree.leaves(end.train_states), jax.tree.leaves(last.train_states), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.asarray(end.train_states.agent.q)[1], result.agent(1).q)

    def test_a_world_each(self):
        worlds = per_seed([lexrl.GridNav.generate(4, map_seed=i, max_episode_steps=12) for i in range(3)])
        result = lexrl.train(learner(), worlds, ORDER, seeds=3, total_timesteps=2e3, num_log_points=2)
        gaps = result.gaps([worlds.one(i).momdp(0.99) for i in range(3)])
        assert len(gaps) == 3
        assert result.evaluate(50).returns.shape == (3, 50, 2)


def test_whole_numbers_are_numbers_too():
    """`gamma=1` must not become an integer leaf, which would be another program."""
    assert number(1).dtype == np.float32
    assert number(np.int32(3)).dtype == np.int32


@pytest.mark.parametrize("steps", [2**31, float("inf"), float("nan")])
def test_more_steps_than_can_be_counted(steps):
    with pytest.raises(lexrl.InputError, match="total_timesteps is"):
        plan(lexrl.QLearning(), lexrl.GridNav.generate(size=4), "min cost", 1, steps)


class TestTablesOnGymnasium:
    """Observations of a few integers become one for tabular algorithms, and stay as they are for networks."""

    @pytest.fixture(autouse=True)
    def registered(self):
        class Pair(gymnasium.Env):
            observation_space = gymnasium.spaces.MultiDiscrete([3, 4])
            action_space = gymnasium.spaces.Discrete(2)

            def reset(self, *, seed=None, options=None):
                return np.array([0, 0]), {}

            def step(self, action):
                return np.array([2, 3]), 1.0, False, False, {}

        gymnasium.register("Pair-v0", entry_point=lambda **_: Pair(), max_episode_steps=5)
        yield
        del gymnasium.registry["Pair-v0"]

    def test_tables(self):
        run = plan("q-learning", "gym:Pair-v0", "max reward", 1, 1000)
        assert run.env.spec.observation_space == Discrete(12)
        assert run.env_kwargs == {"discrete_observations": True}

    def test_networks(self):
        run = plan("ldqn", "gym:Pair-v0", "max reward", 1, 1000)
        assert isinstance(run.env.spec.observation_space, Box)
        assert run.env_kwargs == {}

    def test_too_much_for_a_table(self):
        with pytest.raises(InputError, match="A tabular algorithm needs discrete observations"):
            plan("q-learning", "gym:CartPole-v1", "max reward", 1, 1000)
