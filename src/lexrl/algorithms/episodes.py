"""Which policy plays the next episode, for tabular algorithms: most explore; some look for novelty; and some are played
without exploration, by the full policy and by those of its prefixes in turn, whose returns the guard compares.

Novelty is a table of its own, for a reward that only counts: the more often an action was tried, the less it pays,

    U(s, a) <- U(s, a) + n^-0.7 (n^-0.5 + 0.95 max_b U(s', b) - U(s, a)),        n = n(s, a)

with the first state of the episode in place of s' where it ends, so that an early end is no loss. It starts at the
most that can be had, 1 / (1 - 0.95), so that what was never tried is the most attractive.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import guard, lex
from lexrl.algorithms.exploration import Prefixes
from lexrl.backend import compute_once
from lexrl.types import Discrete, Spec, Transition

EXPLORES, NOVELTY = 0, -1
"""Who plays, besides the policies of the first 1, 2, .. M objectives."""

_GAMMA = 0.95
"""Discount of novelty."""

EVALUATED = 0.1
"""Share of episodes that are played without exploration, for the guard."""


class Episode(NamedTuple):
    """The episode in progress, and what is remembered from one to the next."""

    plays: Int[Array, ""]
    """`EXPLORES`, `NOVELTY`, or how many objectives the policy serves."""
    turn: Int[Array, ""]
    """The number of objectives that the next policy without exploration serves."""
    first: Int[Array, ""]
    """The first state."""
    returns: Float[Array, "2 M"]
    """So far, discounted and undiscounted."""
    weight: Float[Array, " M"]
    """What the next reward is discounted by."""
    begins: Bool[Array, ""]
    guard: guard.State | None
    novelty: Float[Array, "S A"] | None


def init(algorithm: Any, spec: Spec) -> Episode | None:
    """The first episode explores. None for an algorithm whose episodes are all alike."""
    m = len(spec.objectives)
    checks = algorithm.guard if m > 1 else None
    curious = isinstance(algorithm.exploration, Prefixes)
    if checks is None and not curious:
        return None
    assert isinstance(spec.observation_space, Discrete)
    assert isinstance(spec.action_space, Discrete)
    return Episode(
        plays=jnp.int32(EXPLORES),
        turn=jnp.int32(1),
        first=jnp.int32(0),
        returns=jnp.zeros((2, m)),
        weight=jnp.ones(m),
        begins=jnp.bool_(True),
        guard=None if checks is None else checks.init(m),
        novelty=jnp.full((spec.observation_space.n, spec.action_space.n), 1 / (1 - _GAMMA)) if curious else None,
    )


def probabilities(
    episode: Episode, obs: Array, explores: Float[Array, " A"], served: Bool[Array, "M A"]
) -> Float[Array, " A"]:
    """Of each action, by who plays: `explores` has those of the exploration, `served` what each prefix would play."""
    chosen = jnp.where(episode.plays > 0, lex.uniform(served[episode.plays - 1]), explores)
    if episode.novelty is None:
        return chosen
    curious = lex.uniform(episode.novelty[obs] == episode.novelty[obs].max())
    return jnp.where(episode.plays == NOVELTY, curious, chosen)


def follow(
    algorithm: Any, episode: Episode, transition: Transition, visits: Int[Array, ""], time: Array, draws: Array
) -> Episode:
    """After a transition whose action was taken `visits` times; two `draws` decide who plays the next episode."""
    m = transition.reward.shape[-1]
    first = jnp.where(episode.begins, transition.obs, episode.first)
    reward, last = transition.reward, transition.last
    returns = episode.returns + jnp.stack([episode.weight * reward, reward])
    checked, plays, turn = episode.guard, jnp.int32(EXPLORES), episode.turn
    novelty = episode.novelty
    if novelty is not None:
        novelty = _learn_novelty(novelty, transition, jnp.where(last, first, transition.next_obs), visits, time)
        curious = draws[0] < algorithm.exploration.novelty * algorithm.exploration.epsilon(time)
        plays = jnp.where(curious, NOVELTY, plays)
    if checked is not None:
        played = last & (episode.plays > 0)
        checked = jax.lax.cond(
            played,
            lambda: algorithm.guard.update(episode.guard, episode.plays, returns, algorithm.tolerance, time),
            lambda: episode.guard,
        )
        evaluates = draws[1] < EVALUATED
        plays = jnp.where(evaluates, turn, plays)
        turn = jnp.where(last & evaluates, turn % m + 1, turn)
    return Episode(
        plays=jnp.where(last, plays, episode.plays),
        turn=turn,
        first=first,
        returns=jnp.where(last, 0.0, returns),
        weight=jnp.where(last, 1.0, episode.weight * jnp.asarray(algorithm.gamma)),
        begins=last,
        guard=checked,
        novelty=novelty,
    )


def _learn_novelty(
    table: Float[Array, "S A"], transition: Transition, ahead: Array, visits: Array, time: Array
) -> Float[Array, "S A"]:
    n = jnp.maximum(visits, 1).astype(jnp.float32)
    value = compute_once(table[ahead].max(), time > 0)
    target = n**-0.5 + _GAMMA * value
    here = transition.obs, transition.action
    return table.at[here].add(n**-0.7 * (target - table[here]))
