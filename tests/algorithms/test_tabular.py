"""The four tabular algorithms: numbers worked out by hand, and an independent version written with dicts and sets."""

import itertools
import math
from collections import Counter, defaultdict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import catalog, distributions, units
from lexrl.errors import InputError
from lexrl.schedules import Constant, Power, glie
from lexrl.tolerance import Absolute, Evidence, Relative
from lexrl.types import Box, Discrete, Spec, Transition

RULES = {
    "q-learning": lexrl.QLearning,
    "sarsa": lexrl.Sarsa,
    "expected-sarsa": lexrl.ExpectedSarsa,
    "double-q": lexrl.DoubleQLearning,
}
MAXIMIZING = ("q-learning", "double-q")
KEY = jax.random.key(0)
PLAIN = {"evidence": None, "guard": None, "min_alpha": 0.0}
"""Tables without what the defaults add: the paper's algorithms."""


def make(rule, *given, update_tolerance=None, **settings):
    """The algorithm of a name. Only those that maximize over the successor's actions have a tolerance for it."""
    own = {"update_tolerance": update_tolerance} if rule in MAXIMIZING else {}
    return RULES[rule](*given, **(PLAIN | settings), **own)


def tables(state):
    """`[C, S, M, A]`: C is 2 for double-q, else 1."""
    q = state.q
    return q if q.ndim == 4 else q[None]


def visits_of(state):
    """`[C, S, A]`"""
    counts = state.visits
    return counts if counts.ndim == 3 else counts[None]


def replaced(state, **changes):
    """The state with other arrays, where `q` and `visits` have the axis C."""
    one = tables(state).shape[0] == 1
    changes = {name: leaf[0] if one and name in ("q", "visits") else leaf for name, leaf in changes.items()}
    return state._replace(**changes)


def spec(states, actions, objectives):
    return Spec(Discrete(states), Discrete(actions), tuple(f"o{i}" for i in range(objectives)), 100)


def seen(s, a, reward, successor, discount=1.0, last=None):
    """One transition as a rollout of length 1 in one world; the episode ends with the task unless told otherwise."""
    one = Transition(
        jnp.int32(s),
        jnp.int32(a),
        jnp.asarray(reward, jnp.float32),
        jnp.float32(discount),
        jnp.int32(successor),
        jnp.bool_(discount == 0 if last is None else last),
    )
    return jax.tree.map(lambda leaf: leaf[None, None], one)


@jax.jit
def update(algorithm, state, rollout, key=KEY):
    return algorithm.update(state, rollout, key)[0]


# Numbers by hand. In state 0 action 2 is taken and pays (1, 2); the successor is state 1, where with tolerance 0.5
# D_1 = {0, 1} and D_2 = {1}. State 0 holds large numbers, so that a look at the wrong state shows.

HERE = [[50.0, 60.0, 1.0], [70.0, 80.0, -1.0]]
THERE = [[4.0, 3.75, 1.0], [2.0, 6.0, 12.0]]
OTHER = [[1.0, 8.75, 9.0], [20.0, -3.0, 30.0]]
"""The second table of double-q in state 1: D_1 = {1, 2}."""
MOVE = seen(0, 2, (1.0, 2.0), 1)
CUT_OFF = seen(0, 2, (1.0, 2.0), 1, last=True)
ENDED = seen(0, 2, (1.0, 2.0), 1, discount=0.0)
SETTINGS = {"gamma": (0.5, 0.9), "alpha": 0.5, "tolerance": 0.5}


def by_hand(rule, exploration=0.0, **settings):
    """A learner with the tables above."""
    algorithm = make(rule, exploration=lexrl.EpsilonGreedy(exploration), **(SETTINGS | settings))
    values = [[HERE, THERE], [HERE, OTHER]][: 2 if rule == "double-q" else 1]
    return algorithm, replaced(algorithm.init(spec(2, 3, 2), KEY), q=jnp.array(values))


def assert_moved(state, to, table=0):
    """Only the values of (0, 2) in one table have changed, and only that pair was counted."""
    expected = np.array([[HERE, THERE], [HERE, OTHER]][: len(tables(state))])
    expected[table, 0, :, 2] = to
    np.testing.assert_allclose(tables(state), expected, rtol=1e-6)
    visits = np.zeros(visits_of(state).shape)
    visits[table, 0, 2] = 1
    np.testing.assert_array_equal(visits_of(state), visits)


def test_q_learning_by_hand():
    # boot = (max over all = 4, max over {0, 1} = 6); targets 1 + 0.5 * 4 = 3 and 2 + 0.9 * 6 = 7.4; half the way.
    assert_moved(update(*by_hand("q-learning"), MOVE), (2.0, 3.2))


def test_q_learning_takes_the_updates_own_tolerance():
    # With tau_Q = 0.1 only action 0 is left to objective 2: target 2 + 0.9 * 2 = 3.8.
    assert_moved(update(*by_hand("q-learning", update_tolerance=0.1), MOVE), (2.0, 1.4))
    # The bandit's tolerance does not matter then.
    assert_moved(update(*by_hand("q-learning", update_tolerance=0.1, tolerance=100.0), MOVE), (2.0, 1.4))


def test_each_objective_has_its_own_tolerance():
    # With (100, 0) all actions are left to objective 2: target 2 + 0.9 * 12 = 12.8.
    assert_moved(update(*by_hand("q-learning", tolerance=(100.0, 0.0)), MOVE), (2.0, 5.9))


def test_the_rate_follows_the_visits_to_the_pair():
    algorithm, state = by_hand("q-learning", alpha=Power(1.0))
    visits = jnp.array([[[100, 100, 3], [100, 100, 100]]])
    after = update(algorithm, replaced(state, visits=visits), MOVE)
    # The fourth visit: a quarter of the way from (1, -1) to (3, 7.4).
    np.testing.assert_allclose(tables(after)[0, 0, :, 2], (1.5, 1.1), rtol=1e-6)
    np.testing.assert_array_equal(visits_of(after) - visits, [[[0, 0, 1], [0, 0, 0]]])


def test_sarsa_by_hand_learns_once_it_knows_the_action_really_taken():
    algorithm, start = by_hand("sarsa")
    first = update(algorithm, start, MOVE)
    np.testing.assert_array_equal(tables(first), tables(start))
    assert not visits_of(first).any()
    # Action 2 is inadmissible, but it is what was taken: boot = (1, 12), targets 1.5 and 12.8.
    assert_moved(update(algorithm, first, seen(1, 2, (9.0, 9.0), 0)), (1.25, 5.9))
    # Action 1: boot = (3.75, 6), targets 2.875 and 7.4.
    assert_moved(update(algorithm, first, seen(1, 1, (9.0, 9.0), 0)), (1.9375, 3.2))


def test_sarsa_by_hand_where_an_episode_was_cut_off():
    # The next transition belongs to another episode; the bandit, greedy here, would have taken action 1.
    algorithm, start = by_hand("sarsa")
    for key in jax.random.split(KEY, 5):
        after = update(algorithm, update(algorithm, start, CUT_OFF), seen(1, 2, (9.0, 9.0), 0), key)
        assert_moved(after, (1.9375, 3.2))


def test_sarsa_by_hand_draws_the_missing_action_from_the_bandit():
    # All actions are equally likely at epsilon 1, whatever the next episode begins with.
    algorithm, start = by_hand("sarsa", exploration=1.0)
    waiting = update(algorithm, start, CUT_OFF)
    moved = [
        np.round(tables(update(algorithm, waiting, seen(0, 0, (9.0, 9.0), 0), key))[0, 0, :, 2], 4).tolist()
        for key in jax.random.split(KEY, 40)
    ]
    np.testing.assert_allclose(sorted(map(list, set(map(tuple, moved)))), [(1.25, 5.9), (1.9375, 3.2), (2.0, 1.4)])


def test_expected_sarsa_by_hand():
    # pi = 0.7 * (0, 1, 0) + 0.1: boot = (0.4 + 3 + 0.1, 0.2 + 4.8 + 1.2) = (3.5, 6.2); targets 2.75 and 7.58.
    assert_moved(update(*by_hand("expected-sarsa", exploration=0.3), MOVE), (1.875, 3.29))


def test_expected_sarsa_takes_the_bandits_tolerance():
    with pytest.raises(TypeError):  # it has no other one for the update, and neither has SARSA
        lexrl.ExpectedSarsa(update_tolerance=100.0)
    with pytest.raises(TypeError):
        lexrl.Sarsa(update_tolerance=100.0)
    # Tolerance 0: D_2 = {0}, pi = (0.8, 0.1, 0.1): boot = (3.675, 3.4); targets 2.8375 and 5.06.
    assert_moved(update(*by_hand("expected-sarsa", exploration=0.3, tolerance=0.0), MOVE), (1.91875, 2.03))


def test_double_q_by_hand():
    algorithm, start = by_hand("double-q")
    moved = set()
    for key in jax.random.split(KEY, 20):
        after = update(algorithm, start, MOVE, key)
        if np.any(tables(after)[0] != tables(start)[0]):
            # A selects (0, 1) in its own sets, B evaluates: boot = (1, -3); targets 1.5 and -0.7.
            assert_moved(after, (1.25, -0.85), table=0)
            moved.add("A")
        else:
            # B selects (2, 2) in its own sets, A evaluates: boot = (1, 12); targets 1.5 and 12.8.
            assert_moved(after, (1.25, 5.9), table=1)
            moved.add("B")
    assert moved == {"A", "B"}


def test_the_coin_of_double_q_is_fair():
    algorithm, start = by_hand("double-q")
    n = 4000
    coins = jax.jit(jax.vmap(lambda key: visits_of(algorithm.update(start, MOVE, key)[0])))
    visits = coins(jax.random.split(KEY, n))
    first = int(visits[:, 0].sum())
    assert abs(first - n / 2) < 4 * math.sqrt(n / 4)
    assert first + int(visits[:, 1].sum()) == n


def test_the_bandit_of_double_q_sees_the_mean():
    # In state 1 the mean of objective 1 is (2.5, 6.25, 5): A alone would admit {0, 1}, B alone {1, 2}.
    algorithm, start = by_hand("double-q", tolerance=(1.5, 0.0))
    np.testing.assert_array_equal(algorithm.sets(start)[1, 1], [False, True, True])
    # Objective 2 has (11, 1.5, 21).
    np.testing.assert_array_equal(algorithm.probabilities(start, jnp.int32(1), greedy=True), [0, 0, 1])
    np.testing.assert_array_equal(draws(algorithm, start, 50, greedy=True), [0, 0, 50])


@pytest.mark.parametrize("rule", RULES)
def test_termination_stops_the_bootstrap(rule):
    algorithm, start = by_hand(rule)
    after = update(algorithm, start, ENDED)
    if rule == "sarsa":
        after = update(algorithm, after, seen(1, 2, (9.0, 9.0), 0))
    table = int(visits_of(after)[-1].any()) if rule == "double-q" else 0
    # Targets are the rewards: half the way from (1, -1) to (1, 2).
    assert_moved(after, (1.0, 0.5), table)


@pytest.mark.parametrize("rule", RULES)
def test_running_out_of_time_does_not_stop_the_bootstrap(rule):
    algorithm, start = by_hand(rule)
    states = [update(algorithm, start, rollout) for rollout in (MOVE, CUT_OFF)]
    if rule == "sarsa":
        states = [update(algorithm, state, seen(1, 1, (9.0, 9.0), 0)) for state in states]
    np.testing.assert_array_equal(tables(states[0]), tables(states[1]))
    assert np.any(tables(states[0]) != tables(start))


# The reference: one number at a time, no arrays.


class Reference:
    """The four rules with dicts and sets. `tau_b` and `tau_q` map an objective and its best value to a tolerance."""

    def __init__(self, rule, actions, gamma, alpha, bandit, tau_b, tau_q):
        self.rule, self.actions, self.gamma, self.alpha = rule, range(actions), gamma, alpha
        self.exploration, self.tau_b, self.tau_q = bandit, tau_b, tau_q
        self.q = defaultdict(float)
        self.visits = Counter()

    def value(self, table, s, i, a):
        if table == "mean":
            return (self.q[0, s, i, a] + self.q[1, s, i, a]) / 2
        return self.q[table, s, i, a]

    def sets(self, table, s, tau):
        """`D_0 .. D_M`, and the best value left to each objective."""
        sets, best = [set(self.actions)], []
        for i in range(len(self.gamma)):
            top = max(self.value(table, s, i, a) for a in sets[-1])
            sets.append({a for a in sets[-1] if self.value(table, s, i, a) >= top - tau(i, top)})
            best.append(top)
        return sets, best

    def chances(self, table, s):
        """The bandit's probabilities."""
        sets, best = self.sets(table, s, self.tau_b)
        kind, rate = self.exploration
        rate = rate(1 + sum(n for (_, state, _), n in self.visits.items() if state == s))
        if kind == "epsilon":
            return {a: rate / len(self.actions) + (a in sets[-1]) * (1 - rate) / len(sets[-1]) for a in self.actions}
        short = dict.fromkeys(self.actions, 0.0)
        for i, (before, after) in enumerate(itertools.pairwise(sets)):
            short |= {a: best[i] - self.value(table, s, i, a) for a in before - after}
        weight = {a: math.exp(-short[a] / rate) for a in self.actions}
        return {a: weight[a] / sum(weight.values()) for a in self.actions}

    def boot(self, table, s, next_action):
        objectives = range(len(self.gamma))
        if self.rule == "sarsa":
            return [self.q[0, s, i, next_action] for i in objectives]
        if self.rule == "expected-sarsa":
            chances = self.chances(0, s)
            return [sum(chances[a] * self.q[0, s, i, a] for a in self.actions) for i in objectives]
        sets, best = self.sets(table, s, self.tau_q)
        if self.rule == "q-learning":
            return best
        picked = [max(sets[i], key=lambda a, i=i: self.q[table, s, i, a]) for i in objectives]
        return [self.q[1 - table, s, i, picked[i]] for i in objectives]

    def learn(self, s, a, reward, successor, discount, table=0, next_action=None):
        boot = self.boot(table, successor, next_action)
        self.visits[table, s, a] += 1
        rate = self.alpha(self.visits[table, s, a])
        for i, gamma in enumerate(self.gamma):
            target = reward[i] + gamma * discount * boot[i]
            self.q[table, s, i, a] += rate * (target - self.q[table, s, i, a])

    def table(self, copies, states):
        objectives = range(len(self.gamma))
        return np.array(
            [
                [[[self.q[c, s, i, a] for a in self.actions] for i in objectives] for s in range(states)]
                for c in range(copies)
            ]
        )


def walk(seed, steps, states, actions, objectives):
    """A random walk through random transitions: tasks that end, episodes that are cut off, rewards close together."""
    rng = np.random.default_rng(seed)
    s, steps_taken = 0, []
    for _ in range(steps):
        a, successor = int(rng.integers(actions)), int(rng.integers(states))
        reward = np.round(rng.normal(size=objectives) + 0.5 * (a == s % actions), 1).tolist()
        discount, cut = float(rng.random() > 0.08), bool(rng.random() < 0.08)
        last = discount == 0 or cut
        steps_taken.append((s, a, reward, successor, discount, last))
        s = int(rng.integers(states)) if last else successor
    return steps_taken


GAMMA, STATES, ACTIONS = (0.9, 0.5, 0.7), 4, 3
TAU_B = (Absolute(0.05) + Relative(0.2), Relative(0.3), Absolute(0.2))
TAU_Q = (Relative(0.1), Absolute(0.1) + Relative(0.05), Absolute(0.0))


def tau_b(i, best):
    return (0.05 + 0.2 * abs(best), 0.3 * abs(best), 0.2)[i]


def tau_q(i, best):
    return (0.1 * abs(best), 0.1 + 0.05 * abs(best), 0.0)[i]


BANDITS = {
    "epsilon": (lexrl.EpsilonGreedy(glie(5.0)), ("epsilon", lambda n: min(1.0, 5.0 / n))),
    "softmax": (lexrl.Softmax(Power(0.3)), ("softmax", lambda n: n**-0.3)),
}


@pytest.mark.parametrize(
    ("rule", "bandit"), [(rule, "epsilon") for rule in RULES] + [("sarsa", "softmax"), ("expected-sarsa", "softmax")]
)
def test_agrees_with_the_reference(rule, bandit):
    settings, plain = BANDITS[bandit]
    algorithm = make(rule, GAMMA, Power(0.6), settings, tolerance=TAU_B, update_tolerance=TAU_Q)
    reference = Reference(rule, ACTIONS, GAMMA, lambda n: n**-0.6, plain, tau_b, tau_q)
    state = algorithm.init(spec(STATES, ACTIONS, 3), KEY)
    copies, before, drawn = len(tables(state)), None, set()
    for time, step in enumerate(walk(1, 400, STATES, ACTIONS, 3)):
        after = update(algorithm, state, seen(*step), jax.random.fold_in(KEY, time))
        if rule == "sarsa":
            before, step = step, before
        if step is not None:
            s, a, reward, successor, discount, last = step
            table = int(visits_of(after)[-1].sum() > visits_of(state)[-1].sum()) if rule == "double-q" else 0
            next_action = before[1] if rule == "sarsa" else None
            if rule == "sarsa" and last and discount:
                # No action was taken there: read off what was drawn, and see that the bandit could have.
                next_action = read_off(reference, s, a, reward, successor, np.asarray(tables(after))[0, s, :, a])
                assert reference.chances(0, successor)[next_action] > 0
                drawn.add(next_action)
            reference.learn(s, a, reward, successor, discount, table, next_action)
        np.testing.assert_allclose(
            tables(after), reference.table(copies, STATES), rtol=1e-4, atol=1e-4, err_msg=str(time)
        )
        state = after
    assert int(visits_of(state).sum()) == sum(reference.visits.values()) >= 399
    assert rule != "sarsa" or drawn == set(range(ACTIONS))


def read_off(reference, s, a, reward, successor, moved):
    """The next action that explains best how the values of (s, a) have moved."""
    rate = reference.alpha(reference.visits[0, s, a] + 1)

    def miss(action):
        return sum(
            abs(q + rate * (reward[i] + gamma * reference.q[0, successor, i, action] - q) - moved[i])
            for i, gamma in enumerate(reference.gamma)
            for q in (reference.q[0, s, i, a],)
        )

    return min(reference.actions, key=miss)


@pytest.mark.parametrize("rule", RULES)
def test_greedy_sets_agree_with_the_reference(rule):
    algorithm = make(rule, GAMMA, tolerance=TAU_B, update_tolerance=TAU_Q)
    reference = Reference(rule, ACTIONS, GAMMA, None, None, tau_b, tau_q)
    table = "mean" if rule == "double-q" else 0
    state = algorithm.init(spec(30, ACTIONS, 3), KEY)
    q = np.round(np.random.default_rng(3).normal(size=tables(state).shape), 1)
    for (c, s, i, a), value in np.ndenumerate(q):
        reference.q[c, s, i, a] = value
    sets = np.asarray(algorithm.sets(replaced(state, q=jnp.asarray(q, jnp.float32))))
    for s in range(30):
        for i, expected in enumerate(reference.sets(table, s, tau_b)[0]):
            assert set(np.flatnonzero(sets[s, i])) == expected


def test_one_objective_is_textbook_q_learning():
    for tolerance in (0.0, 10.0):
        algorithm = lexrl.QLearning(gamma=0.9, alpha=0.2, exploration="epsilon 0.1", tolerance=tolerance, **PLAIN)
        state = algorithm.init(spec(STATES, ACTIONS, 1), KEY)
        q = [[0.0] * ACTIONS for _ in range(STATES)]
        for s, a, (reward,), successor, discount, last in walk(2, 300, STATES, ACTIONS, 1):
            state = update(algorithm, state, seen(s, a, [reward], successor, discount, last))
            q[s][a] += 0.2 * (reward + 0.9 * discount * max(q[successor]) - q[s][a])
        np.testing.assert_allclose(tables(state)[0, :, 0], q, rtol=1e-4, atol=1e-5)
    # Without tolerance and ties the greedy policy is the argmax.
    for s in range(STATES):
        chances = lexrl.QLearning(tolerance=0.0, **PLAIN).probabilities(state, jnp.int32(s), greedy=True)
        np.testing.assert_array_equal(chances, np.eye(ACTIONS)[np.argmax(q[s])])


def test_gabor_is_q_learning_without_tolerance():
    gabor = catalog.ALGORITHMS["gabor"]
    plain = lexrl.QLearning(gamma=0.5, alpha=0.01, exploration="epsilon 0.05", tolerance=0.0, **PLAIN)
    assert eqx.tree_equal(gabor.make(gamma=0.5), plain)
    # 4 against 3.75 is a difference now: only action 0 is left to objective 2.
    algorithm = gabor.make(gamma=(0.5, 0.9), alpha=0.5)
    assert_moved(update(algorithm, by_hand("q-learning")[1], MOVE), (2.0, 1.4))


@pytest.mark.parametrize("rule", ["q-learning", "sarsa", "expected-sarsa"])
def test_a_rollout_is_learned_in_the_order_it_came(rule):
    algorithm = make(rule, GAMMA, Power(0.6), BANDITS["epsilon"][0], tolerance=TAU_B, update_tolerance=TAU_Q)
    steps = [seen(*step[:4], step[4], step[4] == 0) for step in walk(5, 6, 2, ACTIONS, 3)]
    one_by_one = algorithm.init(spec(2, ACTIONS, 3), KEY)
    for step in steps:
        one_by_one = update(algorithm, one_by_one, step)
    rollout = jax.tree.map(lambda *leaves: jnp.concatenate(leaves).reshape(3, 2, *leaves[0].shape[2:]), *steps)
    at_once, metrics = algorithm.update(algorithm.init(spec(2, ACTIONS, 3), KEY), rollout, KEY)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), at_once, one_by_one)
    assert int(at_once.num_updates) == 6
    assert metrics["td_error"].shape == (3,)
    assert metrics["num_admissible"].shape == ()


# Acting.


def draws(algorithm, state, n, **how):
    """How often each action is drawn in state 1."""
    draw = jax.jit(jax.vmap(lambda key: algorithm.act(state, jnp.int32(1), key, **how)))
    return np.bincount(draw(jax.random.split(KEY, n)), minlength=3)


@pytest.mark.parametrize("rule", RULES)
def test_without_exploration_only_admissible_actions_are_drawn(rule):
    # D_M = {0, 1}, evenly.
    algorithm, state = by_hand(rule, tolerance=(0.5, 5.0))
    state = replaced(state, q=jnp.broadcast_to(tables(state)[0], tables(state).shape))
    explorer = by_hand(rule, exploration=1.0, tolerance=(0.5, 5.0))[0]
    for counts in (draws(algorithm, state, 2000), draws(explorer, state, 2000, greedy=True)):
        assert counts[2] == 0
        assert abs(counts[0] - 1000) < 4 * math.sqrt(500)
    np.testing.assert_allclose(draws(explorer, state, 3000) / 3000, 1 / 3, atol=4 * math.sqrt(2 / 9 / 3000))


def test_exploration_follows_the_visits_to_the_state():
    # The fourth visit to state 1, all actions counted: epsilon is 2 / 4, and p = (1 / 6, 4 / 6, 1 / 6).
    algorithm, state = by_hand("q-learning", exploration=glie(2.0))
    state = replaced(state, visits=jnp.array([[[50, 50, 50], [1, 0, 2]]]))
    np.testing.assert_allclose(draws(algorithm, state, 4000) / 4000, [1 / 6, 4 / 6, 1 / 6], atol=0.03)


def test_the_draw_never_returns_an_impossible_action(monkeypatch):
    rng = np.random.default_rng(0)
    largest = 1 - 2**-23
    for n in (1, 2, 3, 4, 8, 18):
        for _ in range(30):
            chances = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
            chances[rng.integers(n)] += 0.1
            # Not even where they do not quite sum to 1.
            chances = (chances / chances.sum() * rng.choice([1.0, 0.99, 1.01])).astype(np.float32)
            heights = np.cumsum(chances)
            for point in {0.0, largest, *heights, *np.nextafter(heights, 0), *np.nextafter(heights, 2)}:
                draw = np.float32(min(point, largest))
                monkeypatch.setattr(jax.random, "uniform", lambda key, shape=(), draw=draw: jnp.full(shape, draw))
                assert chances[int(distributions.draw(jnp.asarray(chances), KEY))] > 0


def test_the_draw_follows_its_probabilities():
    chances = jnp.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    n = 20_000
    counts = np.bincount(jax.vmap(lambda key: distributions.draw(chances, key))(jax.random.split(KEY, n)), minlength=6)
    np.testing.assert_allclose(counts / n, chances, atol=4 * math.sqrt(0.25 / n))
    assert (counts[np.asarray(chances) == 0] == 0).all()


# Tolerances that depend on time and on the estimates' errors.


def test_a_scheduled_tolerance_counts_updates():
    # 4 against 3.75 in state 1: 1 / t lets both in up to the fourth update.
    algorithm, state = by_hand("q-learning", tolerance=Absolute(1.0) * Power(1.0))
    for time, both in ((0, True), (3, True), (4, False)):
        now = state._replace(num_updates=jnp.int32(time))
        np.testing.assert_array_equal(algorithm.sets(now)[1, 1], [True, both, False])
        # The update looks at the same sets: objective 2 has 6 left if both are in, else 2.
        np.testing.assert_allclose(update(algorithm, now, MOVE).q[0, :, 2], (2.0, 3.2 if both else 1.4), rtol=1e-6)
        assert int(update(algorithm, now, MOVE).num_updates) == time + 1


def test_the_variance_of_the_estimates_by_hand():
    algorithm, state = by_hand("q-learning", alpha=Power(1.0), gamma=0.0, evidence=Evidence(2.0))
    # First visit, rate 1: errors 1 - 1 = 0 and 2 + 1 = 3; V = (0, 9), Q = (1, 2).
    state = update(algorithm, state, MOVE)
    np.testing.assert_allclose(state.variance[0, :, 2], (0.0, 9.0))
    # Second visit, rate 1/2: errors 4 and -2; V = V / 4 + (error / 2)^2 = (4, 3.25), Q = (3, 1).
    state = update(algorithm, state, seen(0, 2, (5.0, 0.0), 1))
    np.testing.assert_allclose(state.variance[0, :, 2], (4.0, 3.25), rtol=1e-6)
    # Third visit, rate 1/3: errors 3 and 0; V = V * 4 / 9 + (error / 3)^2.
    state = update(algorithm, state, seen(0, 2, (6.0, 1.0), 1))
    np.testing.assert_allclose(state.variance[0, :, 2], (16 / 9 + 1, 13 / 9), rtol=1e-6)
    untouched = np.ones((2, 2, 3), bool)
    untouched[0, :, 2] = False
    assert (np.asarray(state.variance)[untouched] == 0).all()
    np.testing.assert_array_equal(state.extremes, [[1.0, 0.0], [6.0, 2.0]])


def test_evidence_by_hand():
    # In state 1: q_1 = (4, 3.75, 1), q_2 = (2, 6, 12); nothing is a tie but for what the estimates cannot tell apart.
    algorithm, state = by_hand("q-learning", tolerance=0.0, evidence=Evidence(2.0, 0.0))
    extremes, visits = jnp.array([[0.0, 0.0], [10.0, 10.0]]), jnp.full((2, 3), 4)
    state = state._replace(extremes=extremes, visits=visits)
    variance = jnp.full((2, 2, 3), 0.0025)
    # Two standard errors of a difference are 2 * sqrt(2) * 0.05 = 0.14: less than the 0.25 between 4 and 3.75.
    sharp = algorithm.sets(state._replace(variance=variance))[1]
    np.testing.assert_array_equal(sharp, [[True, True, True], [True, False, False], [True, False, False]])
    # An error of 0.15 in action 1 alone: 2 * sqrt(0.0225 + 0.0025) = 0.32; action 2 has an error of its own.
    near = algorithm.sets(state._replace(variance=variance.at[1, 0, 1].set(0.0225)))[1]
    np.testing.assert_array_equal(near, [[True, True, True], [True, True, False], [False, True, False]])
    # A resolution of 2.5 % of a range of 10 does it, too; the last objective takes its best whatever its errors are.
    coarse = by_hand("q-learning", tolerance=0.0, evidence=Evidence(2.0, 0.025))[0]
    np.testing.assert_array_equal(coarse.sets(state._replace(variance=variance.at[1, 1].set(100.0)))[1], near)


def test_what_was_hardly_tried_cannot_be_told_apart():
    algorithm, state = by_hand("q-learning", tolerance=0.0, evidence=Evidence())
    state = state._replace(visits=jnp.array([[9, 9, 9], [9, 9, 3]]), extremes=jnp.zeros((2, 2)))
    np.testing.assert_array_equal(algorithm.sets(state)[1, 1], [True, False, True])


def test_evidence_is_added_to_the_tolerance():
    algorithm, state = by_hand("q-learning", tolerance=0.2, evidence=Evidence(2.0, 0.0))
    state = state._replace(variance=jnp.full((2, 2, 3), 0.0025), visits=jnp.full((2, 3), 4), extremes=jnp.zeros((2, 2)))
    np.testing.assert_array_equal(algorithm.sets(state)[1, 1], [True, True, False])  # 0.25 <= 0.2 + 0.14


@pytest.mark.parametrize("rule", RULES)
def test_prefixes_play_the_first_objectives_alone(rule):
    algorithm, state = by_hand(rule, tolerance=(0.5, 0.0))
    state = replaced(state, q=jnp.broadcast_to(tables(state)[0], tables(state).shape))
    first, both = (algorithm.prefix(state, n) for n in (1, 2))
    np.testing.assert_array_equal(algorithm.probabilities(first, jnp.int32(1), greedy=True), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(algorithm.probabilities(both, jnp.int32(1), greedy=True), [0.0, 1.0, 0.0])


# Episodes: who plays.


def episodes_of(rule, steps, **settings):
    """The episode's state after transitions (obs, action, reward, next_obs, last), with defaults for a run of 100."""
    algorithm = units.resolve(RULES[rule](**settings), 100)
    state = algorithm.init(spec(3, 2, 2), KEY)
    for time, (s, a, reward, successor, last) in enumerate(steps):
        state = update(algorithm, state, seen(s, a, reward, successor, last=last), jax.random.fold_in(KEY, time))
    return algorithm, state


@pytest.mark.parametrize("rule", RULES)
def test_an_episode_adds_up_its_returns(rule):
    _, state = episodes_of(rule, [(0, 0, (1.0, 2.0), 1, False), (1, 1, (4.0, 0.0), 2, False)], gamma=(0.5, 0.9))
    np.testing.assert_allclose(state.episode.returns, [[3.0, 2.0], [5.0, 2.0]])
    np.testing.assert_allclose(state.episode.weight, [0.25, 0.81])
    assert int(state.episode.first) == 0


def test_the_first_episode_explores_and_later_ones_take_turns():
    steps = [(0, 0, (1.0, 0.0), 0, True)] * 300
    algorithm = units.resolve(lexrl.QLearning(), 300)
    state = algorithm.init(spec(1, 2, 2), KEY)
    assert int(state.episode.plays) == 0
    played = Counter()
    for time, (s, a, reward, successor, last) in enumerate(steps):
        state = update(algorithm, state, seen(s, a, reward, successor, last=last), jax.random.fold_in(KEY, time))
        played[int(state.episode.plays)] += 1
    assert set(played) == {-1, 0, 1, 2}
    assert abs(played[1] - played[2]) <= 1, "prefixes take turns"
    assert 10 <= played[1] + played[2] <= 55  # a tenth of 300, give or take four standard deviations


def test_novelty_goes_where_little_was_tried():
    # Action 0 was taken ten times, action 1 once: the latter promises more, and what was never tried the most.
    _, state = episodes_of("q-learning", [(0, 0, (0.0, 0.0), 1, True)] * 10 + [(0, 1, (0.0, 0.0), 1, True)])
    novelty = np.asarray(state.episode.novelty)
    assert novelty[1, 0] >= novelty[0, 1] > novelty[0, 0] > 0
    np.testing.assert_allclose(novelty[1:], 20.0)


def test_one_objective_needs_no_guard():
    assert lexrl.QLearning().init(spec(2, 3, 1), KEY).episode.guard is None
    assert lexrl.QLearning(exploration="epsilon 0.1", **PLAIN).init(spec(2, 3, 2), KEY).episode is None


# What cannot work, and first values.


def test_a_table_needs_numbered_observations_and_actions():
    for observation, action in ((Box((3,)), Discrete(2)), (Discrete(3), Box((1,)))):
        with pytest.raises(InputError, match="discrete observations and actions"):
            lexrl.QLearning().init(Spec(observation, action, ("a",), 10), KEY)


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": (0.9, 0.9, 0.9)},
        {"tolerance": (0.1,)},
        {"update_tolerance": (0.1, 0.1, 0.1)},
        {"initial_q": (0.0,)},
    ],
)
def test_one_for_all_or_one_for_each_objective(settings):
    (name,) = settings
    with pytest.raises(InputError, match=f"^{name} has {len(settings[name])} entries for 2 objectives"):
        lexrl.QLearning(**settings).init(spec(2, 3, 2), KEY)


def test_first_values():
    state = lexrl.DoubleQLearning(initial_q=(1.0, -2.0)).init(spec(4, 3, 2), KEY)
    assert state.q.shape == (2, 4, 2, 3)
    np.testing.assert_array_equal(state.q[:, :, 0], 1.0)
    np.testing.assert_array_equal(state.q[:, :, 1], -2.0)
    assert lexrl.QLearning(alpha=Constant(0.5)).init(spec(4, 3, 2), KEY).q.shape == (4, 2, 3)
