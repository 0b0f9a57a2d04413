"""Tiny worlds that only a learner which respects priority solves, for every learner with a network.

All have three signals: `cost` is to be kept small, then `reward` made large, then `bonus`. An episode starts in
state 0; every action leads to a fixed successor; state 5 ends it. What is right follows from a look at each world.

LDQN's tolerance is about an action's value at a state, the others' about the whole policy's return: where these would
differ (a policy may use up its slack by taking the tempting action now and then) a probe says so.
"""

import functools
from typing import NamedTuple

import jax
import numpy as np
import pytest

import lexrl
from lexrl import Dual, Networks, Optimiser, exact
from lexrl.algos.projection import Projection
from lexrl.schedules import Linear, Power
from lexrl.tolerance import Absolute

pytestmark = pytest.mark.slow  # about thirty programs to compile


ORDER = "min cost > max reward > max bonus"
SIGNALS = ("bonus", "reward", "cost")
STATES, ACTIONS, END = 6, 3, 5
GAMMA = 0.9
LEARNERS = ("LDQN", "LA2C", "LPPO", "Projection")
STEPS = {"LDQN": 40_000, "LA2C": 160_000, "LPPO": 160_000, "Projection": 160_000}
SURE = 0.9
"""A policy has found the right action if it takes it so often."""


class Probe(NamedTuple):
    """`moves[state]` has the successor of each of three actions; `pays[state, action]` what it pays, else nothing."""

    moves: dict
    pays: dict
    right: dict
    """The actions that are right, by state."""
    tolerance: tuple = (0.02, 0.02, 0.02)

    def process(self):
        transitions, rewards = np.zeros((STATES, ACTIONS, STATES)), np.zeros((3, STATES, ACTIONS))
        for state in range(STATES):
            for action, successor in enumerate(self.moves.get(state, (END,) * ACTIONS)):
                transitions[state, action, successor] = 1
        for (state, action), signals in self.pays.items():
            for name, amount in signals.items():
                rewards[SIGNALS.index(name), state, action] = amount
        first = np.eye(STATES)[0]
        return lexrl.momdp(transitions, rewards, GAMMA, initial=first, terminal=[END], objectives=SIGNALS)

    def world(self):
        return lexrl.finite_world(self.process(), max_steps=10)


def paying(state, **signals):
    """Every action of a state pays the same."""
    return {(state, action): signals for action in range(ACTIONS)}


# Five of reward for half a unit of cost, both a step later; the loss in cost is 0.9 * 0.5 = 0.45.
TEMPTATION = Probe(moves={0: (1, 2, 2)}, pays=paying(1, cost=0.5, reward=5) | paying(2, reward=1), right={0: {1, 2}})
PROBES = {
    # Both ways from 0 are free of cost; one leads to more reward, a step later. The third way costs and pays a lot.
    "1 ties and 2 decides": Probe(
        moves={0: (1, 2, END)},
        pays={(0, 2): {"cost": 1, "reward": 10}} | paying(1, reward=1) | paying(2, reward=2),
        right={0: {1}},
    ),
    "1 says nothing at all": Probe(
        moves={0: (1, 2, END)},
        pays={(0, 2): {"reward": 0.5}} | paying(1, reward=2) | paying(2, reward=1),
        right={0: {0}},
    ),
    "2 tempts away from 1": TEMPTATION,
    "a small slack does not let it": TEMPTATION._replace(tolerance=(0.04, 0.02, 0.02)),
    "slack just lets it": TEMPTATION._replace(tolerance=(0.5, 0.02, 0.02), right={0: {0}}),
    # Cost and reward are the same on two ways, though they are paid at different times; action 2 costs more and is out.
    "3 decides": Probe(
        moves={0: (1, 2, END)},
        pays={(0, 0): {"cost": 1, "reward": 1}, (0, 1): {"reward": 1}, (0, 2): {"cost": 1.5, "reward": 2, "bonus": 9}}
        | paying(1, bonus=3)
        | paying(2, cost=1 / GAMMA, bonus=5),
        right={0: {1}},
    ),
    # Slack on objective 2 instead: half a unit less of reward is fine for the sake of the bonus, not two less.
    "slack on 2 lets 3 decide": Probe(
        moves={},
        pays={(0, 0): {"reward": 3}, (0, 1): {"reward": 2.5, "bonus": 2}, (0, 2): {"cost": 1, "reward": 5, "bonus": 9}},
        right={0: {1}},
        tolerance=(0.02, 0.6, 0.02),
    ),
    # Three now, and a chain at whose end a cost waits that nobody escapes; or one now, and no cost.
    "the cost comes three steps later": Probe(
        moves={0: (1, 4, 4), 1: (2, 2, 2), 2: (3, 3, 3)},
        pays={(0, 0): {"reward": 3}, (0, 1): {"reward": 1}, (0, 2): {"reward": 1}} | paying(3, cost=1),
        right={0: {1, 2}},
    ),
    # State 1 promises a reward of 10, but only to those who accept a cost of 1 there; state 2 gives 5 for nothing.
    "what the successor may not take is no promise": Probe(
        moves={0: (1, 2, 1)},
        pays={(1, 0): {"cost": 1, "reward": 10}} | paying(2, reward=5),
        right={0: {1}},
    ),
    "a negative cost is a gain": Probe(
        moves={0: (1, 2, END)}, pays=paying(1, cost=-0.5) | paying(2, reward=5), right={0: {0}}
    ),
}  # fmt: skip


TABLE = Networks(hidden=(), bias=False)


def dual(**changes):
    return Dual(**({"sequential": True, "window": 1000.0, "patience": 3000.0, "eta": 10.0, "ceiling": 100.0} | changes))


def learner(name, tolerance, **changes):
    """A table in place of a network; what is most important is learned first."""
    steps = STEPS[name]
    if name == "LDQN":
        settings = {
            "epsilon": 0.3, "rate": Linear(0.05, 0.0, steps / 16), "period": 25, "scale": 5.0, "capacity": 6_400,
            "warmup": 320, "hidden": (), "bias": False,
        }  # fmt: skip
        return lexrl.LDQN(gamma=GAMMA, tolerance=tolerance, **(settings | changes))
    settings = {
        "worlds": 16, "rollout": 16, "trace": 0.9, "rate": Linear(0.05, 0.0, steps / 256), "critic_rate": 0.05,
        "dual": dual(), "networks": TABLE,
    }  # fmt: skip
    if name != "LA2C":
        settings |= {"epochs": 2, "minibatches": 2}
    kind = {"LA2C": lexrl.LA2C, "LPPO": lexrl.LPPO, "Projection": Projection}[name]
    return kind(gamma=GAMMA, tolerance=tolerance, **(settings | changes))


def train(name, probes, order=ORDER, **changes):
    """The policies `[S, A]` that a learner ends with in each world, greedy ones for LDQN; one program trains all."""
    algorithms = [learner(name, **({"tolerance": probe.tolerance} | changes)) for probe in probes]
    worlds = lexrl.per_seed([probe.world() for probe in probes])
    result = lexrl.train(algorithms, worlds, order, seeds=len(probes), steps=STEPS[name], chunks=1)
    assert not result.faults
    return result.policies(greedy=name == "LDQN")


@functools.cache
def learned(name):
    return dict(zip(PROBES, train(name, list(PROBES.values())), strict=True))


MISSED = {("slack just lets it", name) for name in ("LA2C", "LPPO", "Projection")} | {("1 says nothing at all", "LA2C")}
"""What learners do not manage yet, at this budget."""


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("probe", PROBES)
def test_priority_is_respected(probe, name, request):
    if (probe, name) in MISSED:
        request.applymarker(pytest.mark.xfail(reason="settles before it has found what slack buys", strict=False))
    policy = learned(name)[probe]
    for state, right in PROBES[probe].right.items():
        assert policy[state, list(right)].sum() >= SURE, policy[state]


@pytest.mark.parametrize("probe", PROBES)
def test_the_exact_solver_sees_each_world_the_same_way(probe):
    solution = lexrl.solve(PROBES[probe].process(), ORDER, tolerance=PROBES[probe].tolerance)
    for state, right in PROBES[probe].right.items():
        assert set(np.flatnonzero(solution.sets[-1, state])) == right


@pytest.mark.parametrize("name", LEARNERS)
def test_the_other_order_gives_in_to_temptation(name):
    policies = train(
        name, [TEMPTATION, PROBES["the cost comes three steps later"]], "max reward > min cost > max bonus"
    )
    assert (policies[:, 0, 0] >= SURE).all()


# Variants of PB-LRL. Each must resist the temptation, and make the best of a tie; one objective after the other is how
# all of the above learn.


def one_hot(obs):
    return jax.nn.one_hot(obs, STATES)


TWO = "min cost > max reward"
PAIR = ("2 tempts away from 1", "1 ties and 2 decides")
VARIANTS = {
    "simultaneous": {"dual": dual(sequential=False, beta=(1.0, 0.05))},
    "second order": {"dual": dual(second_order=True)},
    "level of the critic": {"level": "critic"},
    "level with the surrogate": {"level": "surrogate"},
    "penalised": {"surrogate": "penalised", "divergence": 0.02},
    "weighted": {"weighted": True},
    "linear critic": {"networks": Networks(hidden=(16,), critic_hidden=(), features=one_hot)},
    "action critics": {"networks": Networks(hidden=(), bias=False, actions=True)},
    # Half a unit at first, which is enough to give in; in the end too little.
    "decaying tolerance": {"tolerance": Absolute(0.5) * Power(0.6)},
    "Robbins-Monro rates": {
        "networks": Networks(hidden=(), bias=False, optimiser=Optimiser("sgd", longest=0.0)), "standardise": False,
        "rate": Power(0.6, 10.0), "critic_rate": Power(0.55, 10.0),
    },
}  # fmt: skip
LPPO_ONLY = ("level with the surrogate", "penalised")
FAST = {"second order": "LA2C", "linear critic": "LA2C", "decaying tolerance": "LA2C", "Robbins-Monro rates": "LA2C"}
"""The learner whose test is not slow; else LPPO."""


def cases(variants):
    for variant in variants:
        for name in ("LPPO",) if variant in LPPO_ONLY else ("LA2C", "LPPO"):
            slow = name != FAST.get(variant, "LPPO")
            yield pytest.param(variant, name, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("variant", "name"), cases(VARIANTS))
def test_every_variant_respects_priority(variant, name):
    probes = [PROBES[probe]._replace(tolerance=(0.02, 0.02)) for probe in PAIR]
    policies = train(name, probes, TWO, **VARIANTS[variant])
    for probe, policy in zip(probes, policies, strict=True):
        assert policy[0, list(probe.right[0])].sum() >= SURE, policies[:, 0]


@pytest.mark.parametrize("name", ["LA2C", pytest.param("LPPO", marks=pytest.mark.xfail(strict=False)), "Projection"])
def test_slack_just_lets_it_with_two_objectives(name):
    """The last objective has all the time it needs to find what the slack on the first one buys."""
    generous, strict = (TEMPTATION._replace(tolerance=(slack, 0.02)) for slack in (0.5, 0.04))
    policies = train(name, [generous, strict], TWO)
    assert policies[0, 0, 0] >= SURE
    assert policies[1, 0, 0] <= 1 - SURE


@pytest.mark.parametrize(("variant", "name"), cases(["limit average"]))
def test_limit_averages(variant, name):
    """In state 0 one may stay, for a reward of 1 or 2 a step, or go round by state 1 for more, which costs."""
    transitions = np.zeros((2, 3, 2))
    transitions[0, [0, 1, 2], [0, 1, 0]] = transitions[1, :, 0] = 1
    cost, reward = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5]], [[1.0, 5.0, 2.0], [5.0, 5.0, 5.0]]
    process = lexrl.momdp(transitions, [cost, reward], 1.0, initial=[1.0, 0.0], objectives=("cost", "reward"))
    # Here each world's rollout counts as an episode: there are 16 of them between updates.
    algorithm = learner(name, (0.02, 0.02), average=True, dual=dual(window=150.0, patience=400.0))
    world = lexrl.finite_world(process, max_steps=32)
    result = lexrl.train(algorithm, world, TWO, seeds=2, steps=STEPS[name], chunks=1)
    best = lexrl.solve_average(process, TWO).returns
    np.testing.assert_allclose(best, [0.0, 2.0], atol=1e-9)
    for policy in result.policies(greedy=False):
        achieved = exact.average_returns(process.ordered(TWO), policy)
        np.testing.assert_allclose(achieved, best, atol=0.05)
