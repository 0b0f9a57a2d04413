"""References, candidates and averages of LPPO and LA2C, on tables of logits that are written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms import staged
from lexrl.algorithms.actor_critic import Batch
from lexrl.errors import InputError
from lexrl.stages import Progress
from lexrl.types import Box, Discrete, HasCandidates, HasColumns, MaySample, Mixture, Spec

S, A = 2, 4
TABLES = lexrl.Networks(hidden_sizes=(), use_bias=False)
ALGORITHMS = {
    "LPPO": lexrl.LPPO(num_envs=2, num_steps=4, num_minibatches=1, networks=TABLES),
    "LA2C": lexrl.LA2C(num_envs=2, num_steps=4, networks=TABLES),
    "Projection": lexrl.Projection(num_envs=2, num_steps=4, num_minibatches=1, networks=TABLES),
}
ONE = ALGORITHMS["LPPO"]


def begun(m=3, actions=None, algorithm=ONE):
    spec = Spec(Discrete(S), Discrete(A) if actions is None else actions, ("one", "two", "three")[:m], 9)
    return algorithm.init(spec, jax.random.key(0))


def with_tables(actor, *tables):
    """Actors whose logits are these, along a first axis if there are several."""
    stacked = jnp.asarray(tables[0] if len(tables) == 1 else np.stack(tables), jnp.float32)
    return jax.tree.map(lambda leaf: stacked.reshape(leaf.shape), actor)


def restricted(state, number, *tables):
    """The state with so many of these references at work."""
    references = with_tables(state.course.references, *tables)
    return state._replace(course=state.course._replace(references=references, num_references=jnp.int32(number)))


def logits_of(actor):
    (table,) = jax.tree.leaves(actor)
    return np.asarray(table)


# In state 0 the first reference likes action 0, and action 1 a little more than a tenth, 2 a little less; the second
# reference likes 2 most, which is excluded, then 1, and 0 less than a tenth. In state 1 both are indifferent.
FIRST = np.log([[1.0, 0.101, 0.099, 0.5], [1.0, 1.0, 1.0, 1.0]])
SECOND = np.log([[0.05, 0.6, 9.0, 0.07], [1.0, 1.0, 1.0, 1.0]])


class TestReferences:
    @pytest.mark.parametrize(
        ("number", "expected"), [(0, [1, 1, 1, 1]), (1, [1, 1, 0, 1]), (2, [0, 1, 0, 1])], ids=["none", "one", "two"]
    )
    def test_what_is_less_than_a_tenth_as_likely_is_excluded(self, number, expected):
        state = restricted(begun(), number, FIRST, SECOND)
        np.testing.assert_array_equal(staged.allowed(state.course, jnp.int32(0)), np.array(expected, bool))
        np.testing.assert_array_equal(staged.allowed(state.course, jnp.int32(1)), np.ones(A, bool))

    def test_many_observations_at_once(self):
        state = restricted(begun(), 2, FIRST, SECOND)
        found = staged.allowed(state.course, jnp.array([[0, 1, 0]]))
        assert found.shape == (1, 3, A)
        np.testing.assert_array_equal(found[0, :, 0], [False, True, False])

    @pytest.mark.parametrize("name", ALGORITHMS)
    def test_the_policy_is_renormalized_over_what_is_left(self, name):
        algorithm = ALGORITHMS[name]
        state = restricted(begun(algorithm=algorithm), 2, FIRST, SECOND)
        own = np.log([[0.6, 0.1, 0.2, 0.1], [0.25] * 4])
        state = state._replace(agent=state.agent._replace(actor=with_tables(state.agent.actor, own)))
        probabilities = algorithm.probabilities(state, jnp.int32(0))
        np.testing.assert_allclose(probabilities, [0.0, 0.5, 0.0, 0.5], atol=1e-6)
        keys = jax.random.split(jax.random.key(1), 100)
        drawn = jax.vmap(lambda key: algorithm.act(state, jnp.int32(0), key))(keys)
        assert set(np.asarray(drawn).tolist()) == {1, 3}
        greedy = jax.vmap(lambda key: algorithm.act(state, jnp.int32(0), key, greedy=True))(keys)
        assert set(np.asarray(greedy).tolist()) <= {1, 3}
        assert len(set(np.asarray(greedy).tolist())) == 1

    def test_continuous_actions_have_none(self):
        state = begun(actions=Box((2,), -1.0, 1.0))
        assert staged.allowed(state.course, jnp.zeros(3)) is None
        with pytest.raises(InputError, match="densities, not"):
            ONE.probabilities(state, jnp.int32(0))

    def test_one_objective_has_no_course(self):
        state = begun(1)
        assert state.course is None
        assert ONE.num_candidates(1) == 0
        assert not ONE.is_sampled(state)


class TestSampled:
    def test_actions_are_sampled_where_greedy_ones_are_asked_for(self):
        state = begun(2)
        assert isinstance(ONE, MaySample)
        keys = jax.random.split(jax.random.key(1), 200)
        for flag, number in ((False, 1), (True, A)):
            one = state._replace(course=state.course._replace(sampled=jnp.bool_(flag)))
            assert bool(ONE.is_sampled(one)) is flag
            drawn = jax.vmap(lambda key, one=one: ONE.act(one, jnp.int32(0), key, greedy=True))(keys)
            assert len(set(np.asarray(drawn).tolist())) == number
            found = ONE.probabilities(one, jnp.int32(0), greedy=True)
            expected = ONE.probabilities(one, jnp.int32(0)) if flag else jax.nn.one_hot(drawn[0], A)
            np.testing.assert_allclose(found, expected, atol=1e-6)


class TestCandidates:
    def test_in_order_of_preference(self):
        """Later stages first; of a stage first the greedy policies; the last before the best."""
        assert isinstance(ONE, HasCandidates)
        state = begun(2)
        places = np.arange(4)[:, None, None] * np.ones((4, S, A))  # best and last of stage 1, best and last of stage 2
        state = state._replace(course=state.course._replace(candidates=with_tables(state.course.candidates, *places)))
        found = []
        for index in range(ONE.num_candidates(2)):
            one = ONE.candidate(state, jnp.int32(index))
            place, freedom = int(logits_of(one.agent.actor)[0, 0]), float(one.course.freedom)
            found.append((place, int(one.course.num_references), bool(one.course.sampled), round(freedom, 2)))
            about = ONE.describe_candidate(2, index)
            assert about == {
                "stage": place // 2 + 1,
                "policy": ("best", "last")[place % 2],
                "actions": "sampled" if bool(one.course.sampled) else "greedy",
            } | ({} if freedom == 1 else {"freedom": pytest.approx(freedom)})
        assert found == [
            (3, 1, False, 1), (2, 1, False, 1), (3, 1, True, 1), (2, 1, True, 1),
            (3, 1, False, 0.7), (3, 1, False, 0.45), (3, 1, False, 0.2),
            (1, 0, False, 1), (0, 0, False, 1), (1, 0, True, 1), (0, 0, True, 1),
        ]  # fmt: skip

    def test_six_objectives_have_39(self):
        assert ONE.num_candidates(6) == 39
        assert ONE.describe_candidate(6, 38) == {"stage": 1, "policy": "best", "actions": "sampled"}

    def test_little_freedom_narrows_the_sets(self):
        """An action that the reference finds a fifth as likely as its favorite is left out at 0.45, not at 0.7 or 1:
        a tenth to the power of 0.7 is a fifth, of 0.45 it is 0.35."""
        state = begun(2)
        likely = jnp.log(jnp.array([1.0, 0.21, 0.05] + [0.05] * (A - 3)))
        course = state.course._replace(
            references=with_tables(state.course.references, np.broadcast_to(likely, (S, A))),
            num_references=jnp.int32(1),
        )
        for freedom, allowed in ((1.0, 2), (0.7, 2), (0.45, 1)):
            sets = staged.allowed(course._replace(freedom=jnp.float32(freedom)), jnp.int32(0))
            assert np.flatnonzero(sets).tolist() == list(range(allowed))

    def test_continuous_actions_with_little_freedom_are_near_the_reference(self):
        state = begun(actions=Box((2,), -1.0, 1.0))
        shifted = lambda tree, by: jax.tree.map(lambda leaf: leaf + by, tree)  # noqa: E731
        course = state.course
        course = course._replace(candidates=shifted(course.candidates, 1.0), references=course.references)
        state = state._replace(course=course)
        base = jax.tree.leaves(jax.tree.map(lambda leaf: leaf[0], course.references))
        for index, away in ((0, 1.0), (4, 0.7), (6, 0.2)):
            own = jax.tree.leaves(ONE.candidate(state, jnp.int32(index)).agent.actor)
            for mine, reference in zip(own, base, strict=True):
                np.testing.assert_allclose(mine, reference + away, atol=1e-5)


class TestMixtures:
    def kept(self):
        """Two objectives; the logits of column i are 100 + i, of candidates their places."""
        state = begun(2)
        tables = [first + np.arange(n)[:, None, None] * np.ones((n, S, A)) for first, n in ((0, 4), (100, 16))]
        candidates = with_tables(state.course.candidates, *tables[0])
        columns = with_tables(state.course.columns, *tables[1])
        return state._replace(course=state.course._replace(candidates=candidates, columns=columns))

    def test_columns_come_behind_the_candidates(self):
        assert isinstance(ONE, HasColumns)
        assert ONE.num_columns(2) == 16
        one = ONE.candidate(self.kept(), jnp.int32(11 + 5))
        assert logits_of(one.agent.actor)[0, 0] == 105
        assert int(one.course.num_references) == 1
        assert not ONE.is_sampled(one)
        assert ONE.describe_candidate(2, 11 + 5) == {"stage": 2, "policy": "block 6", "actions": "greedy"}
        assert ONE.describe_candidate(3, 18 + 16) == {"stage": 3, "policy": "block 1", "actions": "greedy"}

    def test_policies_are_drawn_as_often_as_they_should(self):
        weights = np.zeros(11 + 16, np.float32)
        weights[[0, 11 + 5]] = 0.75, 0.25
        state = ONE.mix(self.kept(), jnp.asarray(weights))
        assert isinstance(ONE, Mixture)
        np.testing.assert_array_equal(ONE.weights(state), weights)
        assert logits_of(state.agent.actor)[0, 0] == 3, "the most likely one"
        keys = jax.random.split(jax.random.key(0), 400)
        begins = jax.vmap(lambda key: ONE.begin(state, key))(keys)
        drawn = logits_of(begins.agent.actor)[:, 0, 0]
        assert set(drawn.tolist()) == {3.0, 105.0}
        assert np.mean(drawn == 105) == pytest.approx(0.25, abs=0.06)
        assert not np.any(begins.course.weights), "what was drawn is no mixture"

    def test_one_policy_is_no_mixture(self):
        state = ONE.mix(self.kept(), jnp.eye(11 + 16)[11 + 5])
        assert not np.any(ONE.weights(state))
        begins = ONE.begin(state, jax.random.key(0))
        assert all(np.array_equal(*both) for both in zip(jax.tree.leaves(begins), jax.tree.leaves(state), strict=True))

    def test_one_objective_is_no_mixture(self):
        state = begun(1)
        assert ONE.begin(state, jax.random.key(0)) is state
        assert not np.any(ONE.weights(state))


def progress(stage, fraction, *, improved=False, ended=False, found=True, block=0, block_ended=False, slack=(0, 0, 0)):
    zero = jnp.float32(0)
    return Progress(
        stage=jnp.int32(stage),
        fraction=jnp.float32(fraction),
        violation=jnp.zeros(2),
        at_limit=jnp.zeros(2, bool),
        renewed=zero,
        time=zero,
        improved=jnp.bool_(improved),
        ended=jnp.bool_(ended),
        found=jnp.bool_(found),
        block=jnp.int32(block),
        block_ended=jnp.bool_(block_ended),
        slack=jnp.array(slack, bool),
        returns=jnp.zeros(2),
        threshold=jnp.zeros(2),
    )


class TestKeep:
    """Tables that are constant, so that a number says which policy it is."""

    def kept(self, steps, m=2):
        state = begun(m)
        course, actor = state.course, with_tables(state.agent.actor, np.zeros((S, A)))
        zeros = jax.tree.map(jnp.zeros_like, (course.average, course.candidates, course.references))
        course = course._replace(average=zeros[0], candidates=zeros[1], references=zeros[2])
        for value, step in steps:
            actor = with_tables(actor, np.full((S, A), value))
            after = course.stages._replace(stage=step.stage + step.ended)
            course, actor = staged.keep(course._replace(stages=after), actor, step)
        return course, actor

    def numbers(self, actor):
        return logits_of(actor)[..., 0, 0].tolist()

    def test_the_average_of_the_last_quarter(self):
        course, _ = self.kept([(8.0, progress(0, 0.5))])
        assert self.numbers(course.average) == 8.0
        course, _ = self.kept([(8.0, progress(0, 0.7)), (1.0, progress(0, 0.75)), (3.0, progress(0, 0.8))])
        assert self.numbers(course.average) == 2.0
        assert float(course.num_averaged) == 2

    def test_the_next_stage_begins_anew(self):
        course, _ = self.kept([(1.0, progress(0, 0.9, ended=True, improved=True)), (7.0, progress(1, 0.0))])
        assert self.numbers(course.average) == 7.0
        assert float(course.num_averaged) == 0

    def test_best_and_last_of_each_stage(self):
        course, _ = self.kept(
            [
                (1.0, progress(0, 0.75, improved=True)),
                (3.0, progress(0, 0.9, ended=True)),
                (5.0, progress(1, 0.5)),
                (7.0, progress(1, 0.75, improved=True)),
                (9.0, progress(1, 0.8)),
            ]
        )
        assert self.numbers(course.candidates) == [1.0, 2.0, 7.0, 8.0]
        assert int(course.num_references) == 1

    def test_the_best_of_a_stage_is_its_reference(self):
        course, actor = self.kept(
            [(1.0, progress(0, 0.75, improved=True)), (3.0, progress(0, 0.9, ended=True)), (5.0, progress(1, 0.1))]
        )
        assert np.ravel(self.numbers(course.references)).tolist() == [1.0]
        assert self.numbers(actor) == 5.0

    def test_a_column_for_each_block(self):
        """Of every stage but the first, and not averaged."""
        course, _ = self.kept(
            [
                (1.0, progress(0, 0.9, ended=True, block=15, block_ended=True)),
                (3.0, progress(1, 0.8, block=13, block_ended=False)),
                (5.0, progress(1, 0.9, block=14, block_ended=True)),
            ]
        )
        before = self.numbers(begun(2).course.columns)
        assert self.numbers(course.columns) == [*before[:14], 5.0, before[15]]

    def test_an_objective_with_slack_excludes_nothing(self):
        steps = [(1.0, progress(0, 0.9, ended=True, slack=(1, 1, 1))), (3.0, progress(1, 0.9, ended=True))]
        course, _ = self.kept(steps, m=3)
        assert course.restricts.tolist() == [False, True]
        tables = with_tables(course.references, FIRST, SECOND)
        course = course._replace(references=tables, num_references=jnp.int32(2))
        np.testing.assert_array_equal(staged.allowed(course, jnp.int32(0)), [False, False, True, False])

    def test_a_stage_that_found_nothing_is_undone(self):
        """Three objectives; in the second stage the first was never kept: its reference is the policy before it."""
        course, actor = self.kept(
            [
                (1.0, progress(0, 0.75, improved=True, ended=True)),
                (6.0, progress(1, 0.75, improved=True, found=False)),
                (8.0, progress(1, 0.9, ended=True, found=False)),
            ],
            m=3,
        )
        assert self.numbers(course.references) == [1.0, 1.0]
        assert self.numbers(actor) == 1.0
        assert self.numbers(course.candidates)[2:4] == [6.0, 7.0]  # still candidates, to be judged by fresh episodes


class TestUnits:
    """Of advantages, two objectives: the root mean square of all updates."""

    def measured(self, *updates):
        course = begun(2).course
        for n, rows in enumerate(updates, 1):
            each = jnp.asarray(rows)
            batch = Batch(
                obs=each,
                action=each,
                policy=None,
                log_prob=each[:, 0],
                value=(),
                advantage=each,
                target=each,
                episode_stats=(),
            )
            course = staged.measure(course, batch, jnp.int32(n))
        return course

    def test_by_hand(self):
        """Mean squares 1 and 49, then 9 and 1: 5 and 25."""
        course = self.measured([[1.0, 7.0], [-1.0, 7.0]], [[3.0, 1.0], [-3.0, -1.0]])
        np.testing.assert_allclose(course.square, [5.0, 25.0], rtol=1e-6)
        np.testing.assert_allclose(staged.unit(course), [np.sqrt(5.0), 5.0], rtol=1e-6)

    def test_an_objective_without_advantages_has_unit_1(self):
        np.testing.assert_array_equal(staged.unit(self.measured([[0.0, 2.0], [0.0, -2.0]])), [1.0, 2.0])

    @pytest.mark.parametrize("power", [-20, -3, 7, 20])
    def test_a_power_of_two_more_is_a_power_of_two_more(self, power):
        rows = np.random.default_rng(0).normal(size=(3, 50, 2)).astype(np.float32)
        one, other = self.measured(*rows), self.measured(*(rows * np.float32(2.0**power)))
        np.testing.assert_array_equal(staged.unit(one) * 2.0**power, staged.unit(other))
