"""Sums of rewards along a rollout `[T, N]`, one column per objective: advantages, and the episodes that ended."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int


def td_errors(
    reward: Float[Array, "*batch M"],
    discount: Float[Array, "*batch"],
    value: Float[Array, "*batch M"],
    next_value: Float[Array, "*batch M"],
    gamma: Float[Array, " M"],
    average: Float[Array, " M"] | float = 0.0,
) -> Float[Array, "*batch M"]:
    """`r_i - J_i + gamma_i V_i(s') - V_i(s)`, without `V_i(s')` where the task ended.

    `average` (J) is 0 for discounted objectives; with `gamma = 1` and the mean reward per step it is the differential
    error of limit averages.
    """
    return reward - average + gamma * discount[..., None] * next_value - value


def gae(
    errors: Float[Array, "T N M"],
    last: Bool[Array, "T N"],
    gamma: Float[Array, " M"],
    gae_lambda: Float[Array, ""] | float,
) -> Float[Array, "T N M"]:
    """Generalized advantage estimates: `A_t = delta_t + gamma_i lambda A_{t+1}`, cut at the end of an episode.

    With `lambda = 0` these are the TD errors themselves, with 1 the distance from the value to the return.
    """

    def back(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        error, ended = now
        here = error + gamma * gae_lambda * jnp.where(ended[:, None], 0.0, later)
        return here, here

    return jax.lax.scan(back, jnp.zeros(errors.shape[1:]), (errors, last), reverse=True)[1]


class EpisodeTracker(NamedTuple):
    """Where each of N environments is in its episode."""

    age: Int[Array, " N"]
    """Steps since the episode began."""
    weight: Float[Array, "N M"]
    """`gamma_i^age`"""
    earned: Float[Array, "N M"]
    """Discounted sum of rewards since the episode began."""


class EpisodeStats(NamedTuple):
    """What a rollout did to the episodes it is part of."""

    first: Bool[Array, "T N"]
    """An episode began here."""
    ended: Bool[Array, "T N"]
    """An episode, or a segment of one, ended here."""
    weight: Float[Array, "T N M"]
    """`gamma_i^t` at the t-th step of an episode."""
    earned: Float[Array, "T N M"]
    """Where an episode ended, its discounted return; else 0."""
    episodes: Float[Array, ""]
    """Episodes that ended."""
    total: Float[Array, " M"]
    """Sum of their discounted returns."""
    squares: Float[Array, " M"]
    """Sum of the squares of these."""
    length: Float[Array, ""]
    """Sum of their lengths."""


def init_tracker(num_envs: int, num_objectives: int) -> EpisodeTracker:
    """Every environment at the beginning of an episode."""
    return EpisodeTracker(
        jnp.zeros(num_envs, jnp.int32), jnp.ones((num_envs, num_objectives)), jnp.zeros((num_envs, num_objectives))
    )


def track_episodes(
    episode_tracker: EpisodeTracker,
    reward: Float[Array, "T N M"],
    last: Bool[Array, "T N"],
    gamma: Float[Array, " M"],
    max_length: Any = None,
) -> tuple[EpisodeTracker, EpisodeStats]:
    """Follow the episodes through a rollout; those longer than `max_length` are cut into segments."""

    def step(episode_tracker: EpisodeTracker, now: tuple[Array, Array]) -> tuple[EpisodeTracker, tuple[Array, ...]]:
        paid, ended = now
        earned = episode_tracker.earned + episode_tracker.weight * paid
        age = episode_tracker.age + 1
        ended = ended if max_length is None else ended | (age >= max_length)
        seen = (
            episode_tracker.age == 0,
            ended,
            episode_tracker.weight,
            jnp.where(ended[:, None], earned, 0.0),
            jnp.where(ended, age, 0),
        )
        here = ended[:, None]
        following = EpisodeTracker(
            jnp.where(ended, 0, age), jnp.where(here, 1.0, episode_tracker.weight * gamma), jnp.where(here, 0.0, earned)
        )
        return following, seen

    episode_tracker, (first, ended, weight, earned, length) = jax.lax.scan(step, episode_tracker, (reward, last))
    return episode_tracker, EpisodeStats(
        first=first,
        ended=ended,
        weight=weight,
        earned=earned,
        episodes=ended.sum().astype(jnp.float32),
        total=earned.sum(axis=(0, 1)),
        squares=(earned**2).sum(axis=(0, 1)),
        length=length.sum().astype(jnp.float32),
    )


def judged_discount(gamma: Float[Array, " M"], limits: Float[Array, " M"] | float) -> Float[Array, " M"]:
    """The discount of the returns that objectives are judged by: none where there is a limit on what users count."""
    return jnp.where(jnp.isfinite(limits), 1.0, gamma)


def share(episodes: Float[Array, ""], seen: Float[Array, ""], window: Any) -> Float[Array, ""]:
    """How much of a running average is new after `episodes` more of `seen` in all.

    A plain average until the window is full; then one that forgets, each episode counting `1 - 1 / window` of the next.
    """
    plain = jnp.where(episodes > 0, episodes / jnp.maximum(seen, 1.0), 0.0)
    return jnp.maximum(plain, 1 - (1 - 1 / window) ** episodes) * (episodes > 0)


def of_action(q: Float[Array, "*batch M A"], action: Int[Array, "*batch"]) -> Float[Array, "*batch M"]:
    """Each objective's value of the action taken; a masked sum is cheaper than a gather, forward and backward."""
    chosen = jnp.arange(q.shape[-1]) == action[..., None]
    return jnp.sum(jnp.where(chosen[..., None, :], q, 0.0), axis=-1)
