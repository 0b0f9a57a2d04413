"""Tiny worlds that only a learner which respects priority solves. What is right follows from a look at each world.

All have three signals: `cost` is to be kept small, then `reward` made large, then `bonus`. An episode starts in
state 0; every action leads to a fixed successor; state 3 ends it.
"""

import functools
from typing import NamedTuple

import numpy as np
import pytest

import lexrl
from lexrl import catalog

RULES = {
    "q-learning": lexrl.QLearning,
    "sarsa": lexrl.Sarsa,
    "expected-sarsa": lexrl.ExpectedSarsa,
    "double-q": lexrl.DoubleQLearning,
}
ORDER = "min cost > max reward > max bonus"
SIGNALS = ("bonus", "reward", "cost")
GAMMA = 0.9
END = 3
EXACT = (0.01, 0.01, 0.01)


class Probe(NamedTuple):
    """`moves[state]` has the successor of each of three actions; `pays[state, action]` what it pays, else nothing."""

    moves: dict
    pays: dict
    admissible: dict
    """The actions that are right, by state."""
    tolerance: tuple = EXACT

    def world(self):
        transitions, rewards = np.zeros((4, 3, 4)), np.zeros((3, 4, 3))
        for state in range(4):
            for action, successor in enumerate(self.moves.get(state, (END,) * 3)):
                transitions[state, action, successor] = 1
        for (state, action), signals in self.pays.items():
            for name, amount in signals.items():
                rewards[SIGNALS.index(name), state, action] = amount
        first = np.eye(4)[0]
        process = lexrl.MOMDP.from_arrays(transitions, rewards, GAMMA, initial=first, terminal=[END], signals=SIGNALS)
        return lexrl.FiniteEnv(process, max_episode_steps=10)


def paying(state, **signals):
    """Every action of a state pays the same."""
    return {(state, action): signals for action in range(3)}


# Both ways from 0 are free of cost; one leads to more reward, a step later. The third way costs and pays a lot.
TIE = Probe(
    moves={0: (1, 2, END)},
    pays={(0, 2): {"cost": 1, "reward": 10}} | paying(1, reward=1) | paying(2, reward=2),
    admissible={0: {1}},
)
# A thousand of reward for a tenth of cost, both a step later: the gap in cost is 0.9 * 0.1 = 0.09.
TEMPTATION = Probe(
    moves={0: (1, 2, 2)}, pays=paying(1, cost=0.1, reward=1000) | paying(2, reward=1), admissible={0: {1, 2}}
)
WORLDS = {
    "objective 1 ties and 2 decides": TIE,
    "2 tempts away from 1": TEMPTATION,
    "slack just does not let it": TEMPTATION._replace(tolerance=(0.085, 0.01, 0.01)),
    "slack just lets it": TEMPTATION._replace(tolerance=(0.095, 0.01, 0.01), admissible={0: {0}}),
    # Slack on objective 2 instead: one less of reward is fine for the sake of the bonus, not three less.
    "slack on 2 lets 3 decide": Probe(
        moves={0: (1, 2, END)},
        pays={(0, 0): {"reward": 5}, (0, 1): {"reward": 4}, (0, 2): {"reward": 2, "bonus": 9}} | paying(2, bonus=1),
        admissible={0: {1}},
        tolerance=(0.01, 1.5, 0.01),
    ),
    # Cost and reward are the same on all ways, though they are paid at different times; action 2 costs and is out.
    "the third decides": Probe(
        moves={0: (1, 2, END)},
        pays={(0, 0): {"cost": 1, "reward": 1}, (0, 1): {"reward": 1}, (0, 2): {"cost": 1.1, "reward": 1, "bonus": 50}}
        | paying(1, bonus=3)
        | paying(2, cost=1 / GAMMA, bonus=4),
        admissible={0: {1}},
    ),
    # State 1 promises a reward of 10, but only to those who accept a cost of 1 there; state 2 gives 5 for nothing.
    # Who takes the best reward among *all* actions of the successor goes to state 1.
    "what the successor may not take is no promise": Probe(
        moves={0: (1, 2, 1)},
        pays={(1, 0): {"cost": 1, "reward": 10}} | paying(2, reward=5),
        admissible={0: {1}, 1: {1, 2}},
        tolerance=(0.2, 0.5, 0.5),
    ),
    # The price comes later: 10 now, and then a state whose cost nobody escapes.
    "the cost comes later": Probe(
        moves={0: (1, 2, 2)},
        pays={(0, 0): {"reward": 10}, (0, 1): {"reward": 1}, (0, 2): {"reward": 1}} | paying(1, cost=1),
        admissible={0: {1, 2}},
    ),
    # Less cost is better than more, whatever the reward: costs are minimised, not maximised.
    "the smaller cost": Probe(
        moves={},
        pays={(0, 0): {"cost": 3, "reward": 9}, (0, 1): {"cost": 2}, (0, 2): {"cost": 2.5, "reward": 9}},
        admissible={0: {1}},
    ),
    # A cost below 0 is a gain, worth more than any reward.
    "a negative cost": Probe(
        moves={0: (1, 2, END)}, pays=paying(1, cost=-0.2) | paying(2, reward=9), admissible={0: {0}}
    ),
}


@functools.cache
def learned(rule):
    """The sets `[S, M+1, A]` each probe taught a learner; one program trains them all."""
    given = {**catalog.TEXTBOOK, "gamma": GAMMA, "alpha": 0.05, "exploration": "epsilon 0.1"}
    algorithms = [RULES[rule](**{**given, "tolerance": probe.tolerance}) for probe in WORLDS.values()]
    worlds = lexrl.per_seed([probe.world() for probe in WORLDS.values()])
    result = lexrl.train(algorithms, worlds, ORDER, seeds=len(WORLDS), total_timesteps=50_000, num_log_points=1)
    assert not result.faults
    return {name: np.asarray(algorithms[i].sets(result.agent(i))) for i, name in enumerate(WORLDS)}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", WORLDS)
def test_priority_is_respected(name, rule):
    sets = learned(rule)[name]
    for state, admissible in WORLDS[name].admissible.items():
        assert set(np.flatnonzero(sets[state, -1])) == admissible


@pytest.mark.parametrize("name", WORLDS)
def test_the_exact_solver_sees_each_world_the_same_way(name):
    probe = WORLDS[name]
    solution = lexrl.solve(probe.world().momdp(GAMMA), ORDER, tolerance=probe.tolerance)
    for state, admissible in probe.admissible.items():
        assert set(np.flatnonzero(solution.sets[-1, state])) == admissible


def test_the_other_order_gives_in_to_temptation():
    algorithm = lexrl.QLearning(
        **catalog.TEXTBOOK | {"gamma": GAMMA, "alpha": 0.05, "exploration": "epsilon 0.1", "tolerance": 0.01}
    )
    result = lexrl.train(
        algorithm, TEMPTATION.world(), "max reward > min cost", seeds=1, total_timesteps=20_000, num_log_points=1
    )
    np.testing.assert_array_equal(algorithm.sets(result.agent(0))[0, -1], [True, False, False])
