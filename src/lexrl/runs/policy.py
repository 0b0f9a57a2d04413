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
from lexrl.errors import InputError
from lexrl.loops import keys
from lexrl.loops.evaluation import draw_component
from lexrl.loops.keys import Purpose
from lexrl.loops.population import number
from lexrl.order import Order, parse
from lexrl.runs import codec, trees
from lexrl.types import Discrete, Mixture, Spec


@dataclasses.dataclass(frozen=True)
class Policy:
    """One seed's policy."""

    algorithm: Any
    state: Any
    """The agent state, without its replay buffer."""
    spec: Spec
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
        """The action for an observation, or the actions for several of them.

        Args:
            observation: one, or several along a first axis.
            state: what the previous call returned. Only mixtures use it: the number of the episode, for which one
                component was drawn. Others return it unchanged.
            episode_start: an episode starts here; a mixture then draws a component.
            deterministic: the greedy action; else one is sampled, from a sequence that is the same each time the
                policy is loaded.
        """
        seen = self._seen(observation)
        single = seen.ndim == len(self._shape)
        several = seen[None] if single else seen
        number = np.uint32(0 if deterministic else next(self._draws))
        agent = self.state
        if isinstance(self.algorithm, Mixture):
            state = next(self._episodes) if state is None or np.any(episode_start) else state
            agent = self.begun(state).state
        actions = np.asarray(_predict(self._numbers, agent, several, np.uint32(self.seed), number, deterministic))
        return (np.asarray(actions[0]) if single else actions), state

    def begun(self, episode: int) -> "Policy":
        """The policy of one episode: of a mixture, the component that is drawn for it."""
        if not isinstance(self.algorithm, Mixture):
            return self
        return dataclasses.replace(self, state=draw_component(self._numbers, self.state, np.uint32(self.seed), episode))

    def act(self, observation: Any, key: Array) -> np.ndarray:
        """The greedy action; where several are equally good, the key decides."""
        return np.asarray(_act(self._numbers, self.state, observation, key))

    @functools.cached_property
    def _numbers(self) -> Any:
        """The algorithm in the precision it was trained in."""
        return as_numbers(self.algorithm)

    @property
    def _shape(self) -> tuple[int, ...]:
        space = self.spec.observation_space
        return () if isinstance(space, Discrete) else space.shape

    def _seen(self, observation: Any) -> np.ndarray:
        discrete = isinstance(self.spec.observation_space, Discrete)
        try:
            seen = np.asarray(observation, np.int32 if discrete else np.float32)
        except (TypeError, ValueError):
            raise InputError(
                f"A {type(observation).__name__} is not an observation; {self.spec.observation_space} is needed."
            ) from None
        if seen.shape != self._shape and seen.shape[1:] != self._shape:
            raise InputError(
                f"The observation has shape {list(seen.shape)}, but this policy was trained on "
                f"{self.spec.observation_space}; give one observation, or several along a first axis."
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
        store.write_arrays(pathlib.Path(path), trees.flatten(self.state), about)

    @staticmethod
    def load(path: str | pathlib.Path, algorithm: Any = None) -> "Policy":
        """Read a policy that `save` wrote; an algorithm that is not in the catalog must be given again."""
        arrays, about = store.read_arrays(pathlib.Path(path))
        if "policy" not in about:
            raise InputError(
                f"The file {str(path)!r} holds no policy; the policies of a run are in its folder policies/."
            )
        algorithm = codec.decode(about["policy"]) if algorithm is None else algorithm
        spec = codec.decode(about["spec"])
        state = trees.rebuild(state_of(algorithm, spec), arrays)
        return Policy(algorithm, state, spec, parse(about["order"]), about["seed"])


def make_policies(
    each: Sequence[Any], agents: Any, spec: Spec, order: Order, seeds: Sequence[int]
) -> tuple[Policy, ...]:
    """One policy for each seed, from the agent states `[members, ...]` of a loop."""
    states = jax.tree.map(np.asarray, _without_replay(agents))
    return tuple(
        Policy(algorithm, jax.tree.map(lambda leaf, i=i: leaf[i], states), spec, order, seed)
        for i, (algorithm, seed) in enumerate(zip(each, seeds, strict=True))
    )


_without_replay = jax.jit(jax.vmap(replay.emptied))


def state_of(algorithm: Any, spec: Spec) -> Any:
    """The shapes of a policy's state."""
    return jax.eval_shape(lambda: replay.emptied(as_numbers(algorithm).init(spec, keys.stream(0, Purpose.INIT))))


def as_numbers(algorithm: Any) -> Any:
    """Settings in the precision they are computed with."""
    return jax.tree.map(lambda leaf: jnp.asarray(number(leaf)), algorithm)


@functools.partial(jax.jit, static_argnames="greedy")
def _predict(algorithm: Any, state: Any, seen: Array, seed: Any, number: Any, greedy: bool) -> Array:
    def one(obs: Array, position: Array) -> Array:
        # A deterministic choice does not depend on an observation's position in the batch.
        key = keys.at(keys.stream(seed, Purpose.PREDICT, jnp.uint32(0) if greedy else position), number)
        return algorithm.act(state, obs, key, greedy=greedy)

    return jax.vmap(one)(seen, jnp.arange(seen.shape[0], dtype=jnp.uint32))


@jax.jit
def _act(algorithm: Any, state: Any, obs: Array, key: Array) -> Array:
    return algorithm.act(state, obs, key, greedy=True)
