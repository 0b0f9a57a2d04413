"""What was learned, to be used elsewhere: `policy.predict(obs)`, one small file, no training code needed."""

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl import replay, store
from lexrl.errors import InputError
from lexrl.loops import keys
from lexrl.loops.evaluation import draw_component
from lexrl.loops.keys import Purpose
from lexrl.loops.population import number
from lexrl.order import Order, parse
from lexrl.runs import codec, trees
from lexrl.types import Discrete, Spec


@dataclasses.dataclass(frozen=True)
class Policy:
    """One seed's policy."""

    algorithm: Any
    state: Any
    """The learner's state, without the transitions it remembers."""
    spec: Spec
    """The world as the learner saw it: the objectives are those of the order."""
    order: Order
    seed: int
    _draws: Iterator[int] = dataclasses.field(default_factory=itertools.count, repr=False, compare=False)
    """Numbers the actions that were drawn at random."""
    _episodes: Iterator[int] = dataclasses.field(default_factory=itertools.count, repr=False, compare=False)
    """Numbers the episodes that mixtures were asked to play."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, Any]:
        """The action for an observation, or the actions for several of them.

        Args:
            observation: one, or several along a first axis.
            state: what came back with the action before. Only mixtures need it: the number of the episode, for which
                one of their parts was drawn. Others hand it back as it is.
            episode_start: an episode begins here; a mixture then draws anew.
            deterministic: the greedy action, always the same one; else one is drawn, the next of a sequence that is
                the same each time the policy is loaded.
        """
        seen = self._seen(observation)
        single = seen.ndim == len(self._shape)
        several = seen[None] if single else seen
        number = np.uint32(0 if deterministic else next(self._draws))
        learner = self.state
        if hasattr(self.algorithm, "begin"):
            state = next(self._episodes) if state is None or np.any(episode_start) else state
            learner = self.begun(state).state
        actions = np.asarray(_predict(self._numbers, learner, several, np.uint32(self.seed), number, deterministic))
        return (np.asarray(actions[0]) if single else actions), state

    def begun(self, episode: int) -> "Policy":
        """The policy that plays an episode of a given number: of a mixture, one part is drawn for it."""
        if not hasattr(self.algorithm, "begin"):
            return self
        return dataclasses.replace(self, state=draw_component(self._numbers, self.state, np.uint32(self.seed), episode))

    def act(self, observation: Any, key: Array) -> np.ndarray:
        """The greedy action with a key of one's own: where several actions are as good, it picks among them."""
        return np.asarray(_act(self._numbers, self.state, observation, key))

    @functools.cached_property
    def _numbers(self) -> Any:
        """The algorithm as it computed while learning."""
        return as_numbers(self.algorithm)

    @property
    def _shape(self) -> tuple[int, ...]:
        space = self.spec.observation_space
        return () if isinstance(space, Discrete) else space.shape

    def _seen(self, observation: Any) -> np.ndarray:
        discrete_observations = isinstance(self.spec.observation_space, Discrete)
        try:
            seen = np.asarray(observation, np.int32 if discrete_observations else np.float32)
        except (TypeError, ValueError):
            raise InputError(
                f"A {type(observation).__name__} is no observation; {self.spec.observation_space} is needed."
            ) from None
        if seen.shape != self._shape and seen.shape[1:] != self._shape:
            raise InputError(
                f"The observation has shape {list(seen.shape)}, but this policy knows {self.spec.observation_space}; "
                "give one of those, or several along a first axis."
            )
        return seen

    def save(self, path: str | pathlib.Path) -> None:
        """Write the policy to one file: settings and parameters."""
        about = {
            "policy": codec.encode(self.algorithm),
            "spec": codec.encode(self.spec),
            "order": str(self.order),
            "seed": self.seed,
        }
        store.write_arrays(pathlib.Path(path), trees.named(self.state), about)

    @staticmethod
    def load(path: str | pathlib.Path) -> "Policy":
        """Read a policy that `save` wrote."""
        arrays, about = store.read_arrays(pathlib.Path(path))
        if "policy" not in about:
            raise InputError(f"The file {str(path)!r} holds no policy; those of a run are in its folder policies/.")
        algorithm, spec = codec.decode(about["policy"]), codec.decode(about["spec"])
        state = trees.rebuilt(state_of(algorithm, spec), arrays)
        return Policy(algorithm, state, spec, parse(about["order"]), about["seed"])


def state_of(algorithm: Any, spec: Spec) -> Any:
    """The shapes of a policy's state."""
    return jax.eval_shape(lambda: replay.emptied(as_numbers(algorithm).init(spec, keys.stream(0, Purpose.INIT))))


def as_numbers(algorithm: Any) -> Any:
    """Settings in the precision they are computed with."""
    return jax.tree.map(lambda leaf: jnp.asarray(number(leaf)), algorithm)


@functools.partial(jax.jit, static_argnames="greedy")
def _predict(algorithm: Any, state: Any, seen: Array, seed: Any, number: Any, greedy: bool) -> Array:
    def one(obs: Array, place: Array) -> Array:
        # A deterministic choice is the same wherever an observation stands.
        key = keys.at(keys.stream(seed, Purpose.PREDICT, jnp.uint32(0) if greedy else place), number)
        return algorithm.act(state, obs, key, greedy=greedy)

    return jax.vmap(one)(seen, jnp.arange(seen.shape[0], dtype=jnp.uint32))


@jax.jit
def _act(algorithm: Any, state: Any, obs: Array, key: Array) -> Array:
    return algorithm.act(state, obs, key, greedy=True)
