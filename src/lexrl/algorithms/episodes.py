"""Which policy plays the next episode, for tabular algorithms: most explore; some look for novelty; and some are played
without exploration, by the full policy and by those of its prefixes in turn, whose returns the guard compares.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import guard, lex
from lexrl.algorithms import novelty
from lexrl.algorithms.exploration import Prefixes
from lexrl.types import Discrete, Spec, Transition

EXPLORES, NOVELTY = 0, -1
"""Who plays, besides the policies of the first 1, 2, .. M objectives."""

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
        novelty=novelty.initial_values(spec.observation_space.n, spec.action_space.n) if curious else None,
    )


def probabilities(
    episode: Episode, obs: Array, explores: Float[Array, " A"], served: Bool[Array, "M A"]
) -> Float[Array, " A"]:
    """Of each action, by who plays: `explores` has those of the exploration, `served` what each prefix would play."""
    chosen = jnp.where(episode.plays > 0, lex.uniform(served[episode.plays - 1]), explores)
    if episode.novelty is None:
        return chosen
    return jnp.where(episode.plays == NOVELTY, novelty.most_novel(episode.novelty[obs]), chosen)


def follow(
    algorithm: Any, episode: Episode, transition: Transition, visits: Int[Array, ""], time: Array, draws: Array
) -> Episode:
    """After a transition whose action was taken `visits` times; two `draws` decide who plays the next episode."""
    m = transition.reward.shape[-1]
    first = jnp.where(episode.begins, transition.obs, episode.first)
    reward, last = transition.reward, transition.last
    returns = episode.returns + jnp.stack([episode.weight * reward, reward])
    checked, plays, turn = episode.guard, jnp.int32(EXPLORES), episode.turn
    novel = episode.novelty
    if novel is not None:
        ahead = jnp.where(last, first, transition.next_obs)
        novel = novelty.learn(novel, (transition.obs, transition.action), ahead, visits)
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
        novelty=novel,
    )
