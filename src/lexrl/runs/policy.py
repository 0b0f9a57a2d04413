"""A learned policy, to be used elsewhere: `policy.predict(obs)`, one small file."""

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl import replay, store
from lexrl.backend import ensure_configured
from lexrl.errors import InputError, as_path, require_whole
from lexrl.loops import keys
from lexrl.loops.evaluation import draw_component
from lexrl.loops.keys import Purpose
from lexrl.loops.population import number
from lexrl.order import Order, parse
from lexrl.runs import codec
from lexrl.types import Discrete, HasPrefixes, MaySample, Mixture, Spec


@dataclasses.dataclass(frozen=True)
class Policy:
    """One seed's policy."""

    algorithm: Any
    state: Any = dataclasses.field(repr=False)
    """The agent state, without its replay buffer."""
    spec: Spec = dataclasses.field(repr=False)
    """The environment as the agent observed it: the objectives are those of the order."""
    order: Order
    seed: int
    _draws: Iterator[int] = dataclasses.field(default_factory=itertools.count, repr=False, compare=False)
    """Counts the actions that were sampled."""
    _episodes: Iterator[int] = dataclasses.field(default_factory=itertools.count, repr=False, compare=False)
    """Counts the episodes that a mixture was asked to play."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, Any]:
        """The action for an observation, or the actions for several of them; continuous ones within their bounds.

        Args:
            observation: one, or several along a first axis.
            state: what the previous call returned. Only mixtures use it: the number of the episode, for which one
                component was drawn. Others return it unchanged.
            episode_start: an episode starts here; a mixture then draws a component.
            deterministic: the greedy action, if this policy has greedy ones (`is_sampled` says whether it does); else
                one is sampled, from a sequence that is the same each time the policy is loaded.
        """
        seen = self._seen(observation)
        single = seen.ndim == len(self._shape)
        several = seen[None] if single else seen
        player = self
        if self._weights.any():
            state = next(self._episodes) if state is None or np.any(episode_start) else state
            player = self.begun(state)
        samples = player.is_sampled or not deterministic
        number = np.uint32(next(self._draws) if samples else 0)
        # A deterministic choice does not depend on an observation's position in the batch.
        positions = np.arange(len(several), dtype=np.uint32) * np.uint32(samples)
        streams = np.uint32(self.seed), positions, number
        actions = self._clipped(np.asarray(_predict(self._numbers, player.state, several, *streams, deterministic)))
        return (np.asarray(actions[0]) if single else actions), state

    def _clipped(self, actions: np.ndarray) -> np.ndarray:
        """Actions that the environment takes."""
        space = self.spec.action_space
        return actions if isinstance(space, Discrete) else np.clip(actions, space.low, space.high)

    @functools.cached_property
    def is_sampled(self) -> bool:
        """Actions are sampled even where greedy ones are asked for: greedy ones lose something important."""
        return isinstance(self.algorithm, MaySample) and bool(self.algorithm.is_sampled(self.state))

    def begun(self, episode: int) -> "Policy":
        """The policy of one episode: of a mixture, the component that is drawn for it."""
        if not self._weights.any():
            return self
        return dataclasses.replace(self, state=draw_component(self._numbers, self.state, np.uint32(self.seed), episode))

    def prefix(self, num_objectives: int) -> "Policy":
        """The policy that serves the first objectives alone, as if the order ended there: what a less important
        objective costs a more important one is the difference between the two."""
        if not isinstance(self.algorithm, HasPrefixes):
            raise InputError(
                f"{type(self.algorithm).__name__} does not learn policies for the first objectives alone; train it "
                "with a shorter order."
            )
        require_whole(1, len(self.spec.objectives), num_objectives=num_objectives)
        return dataclasses.replace(self, state=self.algorithm.prefix(self.state, np.int32(num_objectives)))

    def components(self) -> list[tuple[float, "Policy"]]:
        """The policies that a mixture draws from, with their probabilities; else the policy itself."""
        states = ((self._weights[i], _component(self._numbers, self.state, i)) for i in np.flatnonzero(self._weights))
        return [(float(weight), dataclasses.replace(self, state=state)) for weight, state in states] or [(1.0, self)]

    def act(self, observation: Any, key: Array) -> np.ndarray:
        """The greedy action; where several are equally good, the key decides."""
        return np.asarray(_act(self._numbers, self.state, observation, key))

    @functools.cached_property
    def _numbers(self) -> Any:
        """The algorithm in the precision it was trained in."""
        return as_numbers(self.algorithm)

    @functools.cached_property
    def _weights(self) -> np.ndarray:
        """The probabilities of the policies in a mixture; all 0: it is none."""
        return np.asarray(_weights(self._numbers, self.state)) if isinstance(self.algorithm, Mixture) else np.zeros(1)

    @property
    def _shape(self) -> tuple[int, ...]:
        space = self.spec.observation_space
        return () if isinstance(space, Discrete) else space.shape

    def _seen(self, observation: Any) -> np.ndarray:
        space = self.spec.observation_space
        discrete = isinstance(space, Discrete)
        try:
            seen = np.asarray(observation, np.int32 if discrete else np.float32)
        except (OverflowError, TypeError, ValueError):
            raise InputError(
                f"A {type(observation).__name__} is not an observation; {self.spec.observation_space} is needed."
            ) from None
        if seen.shape != self._shape and seen.shape[1:] != self._shape:
            raise InputError(
                f"The observation has shape {list(seen.shape)}, but this policy was trained on "
                f"{self.spec.observation_space}; give one observation, or several along a first axis."
            )
        if (
            isinstance(space, Discrete)
            and not ((seen >= 0) & (seen < space.n) & (seen == np.asarray(observation))).all()
        ):
            raise InputError(f"The observation is {observation}; it must be a whole number from 0 to {space.n - 1}.")
        return seen

    def save(self, path: str | pathlib.Path, run: store.Identity | None = None) -> None:
        """Write the policy to one file: settings and parameters; and the identity of its run, if it has one."""
        about = {
            "policy": codec.encode(self.algorithm),
            "spec": codec.encode(self.spec),
            "order": str(self.order),
            "seed": self.seed,
            **({} if run is None else {"run": run._asdict()}),
        }
        store.write_arrays(as_path(path), codec.flatten(self.state), about)

    @staticmethod
    def load(path: str | pathlib.Path, algorithm: Any = None, run: store.Identity | None = None) -> "Policy":
        """Read a policy that `save` wrote; an algorithm that is not in the catalog must be given again. With `run`, it
        must be a policy of that run."""
        ensure_configured()
        arrays, about = store.read_arrays(as_path(path), run)
        if not {"policy", "spec", "order", "seed"} <= about.keys():
            raise InputError(
                f"The file {str(path)!r} holds no policy; the policies of a run are in its folder policies/."
            )
        store.require(as_path(path), about, {"order": str, "seed": int})
        with codec.reading():
            algorithm = codec.decode(about["policy"]) if algorithm is None else algorithm
            spec = codec.decode(about["spec"])
            if not isinstance(spec, Spec):
                raise store.Damaged(f"The file {str(path)!r} is damaged: its 'spec' describes no environment.")
            state = codec.rebuild(state_of(algorithm, spec), arrays)
            return Policy(algorithm, state, spec, parse(about["order"]), about["seed"])


def make_policies(
    each: Sequence[Any], agents: Any, spec: Spec, order: Order, seeds: Sequence[int]
) -> tuple[Policy, ...]:
    """One policy for each seed, from the agent states `[members, ...]` of a loop."""
    states = jax.tree.map(np.asarray, without_replay(agents))
    return tuple(
        Policy(algorithm, jax.tree.map(lambda leaf, i=i: leaf[i], states), spec, order, seed)
        for i, (algorithm, seed) in enumerate(zip(each, seeds, strict=True))
    )


without_replay = jax.jit(jax.vmap(replay.emptied))
"""Agent states `[members, ...]` of a loop without what only training needs."""


def state_of(algorithm: Any, spec: Spec) -> Any:
    """The shapes of a policy's state."""
    return jax.eval_shape(lambda: replay.emptied(as_numbers(algorithm).init(spec, keys.stream(0, Purpose.INIT))))


def as_numbers(algorithm: Any) -> Any:
    """Settings in the precision they are computed with."""
    return jax.tree.map(lambda leaf: jnp.asarray(number(leaf)), algorithm)


@functools.partial(jax.jit, static_argnames="greedy")
def _predict(algorithm: Any, state: Any, seen: Array, seed: Any, positions: Any, number: Any, greedy: bool) -> Array:
    def one(obs: Array, position: Array) -> Array:
        key = keys.at(keys.stream(seed, Purpose.PREDICT, position), number)
        return algorithm.act(state, obs, key, greedy=greedy)

    return jax.vmap(one)(seen, positions)


@jax.jit
def _act(algorithm: Any, state: Any, obs: Array, key: Array) -> Array:
    return algorithm.act(state, obs, key, greedy=True)


@jax.jit
def _weights(algorithm: Any, state: Any) -> Array:
    return algorithm.weights(state)


@jax.jit
def _component(algorithm: Any, state: Any, index: Any) -> Any:
    return algorithm.component(state, index)
