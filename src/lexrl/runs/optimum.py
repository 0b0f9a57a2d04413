"""What policies are worth exactly, next to the lexicographic optimum, where the environment has a finite model."""

from typing import Any, NamedTuple

import numpy as np

from lexrl import exact
from lexrl.envs.grid_nav import GridNav
from lexrl.errors import InputError
from lexrl.momdp import MOMDP
from lexrl.order import Order
from lexrl.runs.result import Result
from lexrl.types import Discrete, HasCandidates, HasGamma, HasModel, HasMultipliers, HasProbabilities

GAMMA = 0.99
"""For an algorithm without a discount of its own."""


class ExactReturns(NamedTuple):
    """Discounted returns over an infinite horizon, in the user's signs."""

    returns: np.ndarray
    """`[seeds, M]`: of each seed's policy."""
    optimum: np.ndarray
    """`[M]`"""
    stochastic: bool
    """Are these the stochastic policies, or the greedy ones?"""
    map: bytes | None
    """A picture (PNG) of the first seed's policy, where the environment is a grid."""

    def summary(self, order: Order) -> dict[str, Any]:
        """For `summary.json`."""
        return {
            "exact_discounted": {name: self.returns[:, i].tolist() for i, name in enumerate(order.names)},
            "exact_optimum": dict(zip(order.names, self.optimum.tolist(), strict=True)),
            "exact_policies": "stochastic" if self.stochastic else "greedy",
        }


def compare(result: Result, env: HasModel) -> ExactReturns | None:
    """The policies of a result next to the optimum; None where that is not known."""
    run, algorithm = result.run, result.policies[0].algorithm
    spec = run.env.spec
    if not isinstance(algorithm, HasProbabilities) or not isinstance(spec.observation_space, Discrete):
        return None
    gamma = algorithm.gamma if isinstance(algorithm, HasGamma) else GAMMA
    if run.order.limited and np.min(gamma) < 1:  # the limits are on undiscounted returns
        return None
    try:
        return _compare(result, env, env.momdp(run.order.discounts(gamma, spec.signals)))
    except InputError:  # such as a discount of 1: there is no optimum over an infinite horizon
        return None


def _compare(result: Result, env: Any, process: MOMDP) -> ExactReturns:
    order = result.run.order
    algorithm = result.policies[0].algorithm
    # With multipliers, tolerances are about the return of the whole policy, and the best policies are stochastic.
    of_policy = isinstance(algorithm, HasMultipliers) and len(set(process.gamma)) == 1
    solution = exact.solve_slack(process, order) if of_policy else exact.solve(process, order)
    # Where candidates were compared, the policy handed over is as stochastic as it should be.
    stochastic = of_policy and not isinstance(algorithm, HasCandidates)
    policies = result.probabilities(deterministic=not stochastic, process=process)
    returns = np.stack([exact.evaluate(process, policy, order).returns for policy in policies])
    title = f"Learned by {result.run.name}, seed {result.run.seeds[0]}: {order}"
    picture = draw_map(env, process, policies[0], title) if isinstance(env, GridNav) else None
    return ExactReturns(order.unsigned(returns), order.unsigned(solution.returns), stochastic, picture)


def draw_map(env: GridNav, process: MOMDP, policy: np.ndarray, title: str) -> bytes:
    """A picture (PNG) of a policy on its grid: where it goes, and how often it is there."""
    from lexrl.report import maps  # matplotlib takes its time to import

    visits = exact.occupancy(process, policy).sum(axis=1)
    return maps.grid_policy(env.size, np.asarray(env.obstacles), int(env.goal), policy, visits, title).png
