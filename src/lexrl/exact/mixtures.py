"""Mixtures of policies: one of them is drawn at the beginning of each episode."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from lexrl.exact.programs import common_gamma, occupancy
from lexrl.momdp import MOMDP


def stationary(
    momdp: MOMDP, weights: Sequence[float] | Float[np.ndarray, " K"], policies: Float[np.ndarray, "K S A"]
) -> Float[np.ndarray, "S A"]:
    """The one policy with the discounted returns of a mixture: it chooses actions as often as the mixture does.

        policy(a | s) = sum_k w_k x_k(s, a) / sum_k w_k d_k(s)

    where `x_k` and `d_k` are the occupancies of the k-th policy. (The weighted mean of the policies is another policy,
    with other returns.) Where the mixture never is, the first policy stands.
    """
    common_gamma(momdp)
    visits = sum(weight * occupancy(momdp, policy) for weight, policy in zip(weights, policies, strict=True))
    total = np.sum(visits, axis=-1, keepdims=True)
    return np.where(total > 0, visits / np.where(total > 0, total, 1.0), policies[0])
