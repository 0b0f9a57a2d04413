"""A run whose episodes are written out, and its verdict: nothing is trained."""

from typing import NamedTuple

import numpy as np

import lexrl
from lexrl.loops.evaluation import Evaluation
from lexrl.runs import plan, references, sampling, verification
from lexrl.runs.policy import Policy
from lexrl.runs.references import Reference
from lexrl.runs.result import Result
from lexrl.runs.sampling import Limits

POINTS = 20
ORDER = "min cost > max reward"


class Case(NamedTuple):
    """Some seeds: returns of cost and reward by episode, of the policies and of their references for the cost."""

    final: list
    reference: list | None
    """None: the algorithm keeps no references."""
    curve: np.ndarray
    """`[points, seeds, M]` in training."""
    order: str = ORDER
    metrics: dict = {}  # noqa: RUF012
    faults: dict = {}  # noqa: RUF012
    algorithm: type = lexrl.LPPO
    episodes: int = 3000
    untrained: list | None = None
    """None: a cost of 30 and no reward."""
    same: tuple = ()
    """For each seed: the reference is the policy itself."""
    second: list | None = None
    """References for the first two objectives, of three."""
    known: tuple = ()
    """What returns lie between, by objective, all of them maximized."""


def normal(mean, spread):
    """Returns `[n]` by episode, with randomness that policies share."""
    return lambda noise, n: mean + spread * noise.normal(size=n)


def event(probability, size=1.0):
    return lambda noise, n: size * (noise.random(n) < probability)


def always(value):
    return lambda noise, n: np.full(n, value)


def learning(cost, reward, seeds=3):
    """Curves that fall and rise to these values, and stay there for half of the training."""
    share = np.minimum(np.linspace(0, 2, POINTS), 1.0)[:, None]
    one = np.concatenate([30 + (cost - 30) * share, reward * share], axis=1)
    return np.repeat(one[:, None], seeds, axis=1)


def play(draws):
    """The same numbers for the same episodes."""

    def episodes(first, count, longest=None):
        columns = [[draw(np.random.default_rng([k, first]), count) for draw in seed] for k, seed in enumerate(draws)]
        returns = np.moveaxis(np.array(columns, float), 1, 2)
        return Evaluation(returns, returns, np.full(returns.shape[:2], 10))

    return episodes


UNTRAINED = [always(30.0), always(0.0)]


def judge(case, monkeypatch):
    env = lexrl.CartSafe(effort_signal=case.second is not None)
    run = plan(case.algorithm(gamma=1.0), env, case.order, len(case.final), 10_000)
    spec = run.order.spec(run.env.spec)
    policies = tuple(Policy(run.algorithm, None, spec, run.order, seed) for seed in run.seeds)
    ended = {"num_episodes": np.full(case.curve.shape[:2], 5.0)}
    result = Result(
        run,
        policies,
        np.arange(len(case.curve)),
        {"episode_return": case.curve, **ended, **case.metrics},
        case.faults,
        60.0,
    )
    name = "its own policy for 'cost' alone"
    own = [] if case.reference is None else [Reference(1, name, play(case.reference), case.same)]
    own += [] if case.second is None else [Reference(2, "its own policy for the first 2 objectives", play(case.second))]
    monkeypatch.setattr(sampling, "return_ranges", lambda env, order: case.known)
    monkeypatch.setattr(references, "player", lambda _: play(case.final))
    monkeypatch.setattr(references, "untrained", lambda _: play(case.untrained or [UNTRAINED] * len(case.final)))
    monkeypatch.setattr(references, "own_references", lambda result: own)
    verdict = verification.verify_result(result, Limits(case.episodes))
    assert verdict is not None
    return verdict
