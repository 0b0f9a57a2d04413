"""The environment: highway-env's `intersection-v0`, stepped many at a time by compiled code.

The ego, on its way to the west from the south, turns left at a crossing of two roads; it chooses only its speed, and
steers by itself. Signals: `collision = 1` when it crashes and `arrived = 1` when it is 25 m beyond the crossing; either
ends the episode. Both can be 1 in the same step. Collisions of others do not count, though they may block the way.
After 13 steps of one second the episode is truncated.

A seed gives the same episode as in highway-env: the same traffic is drawn from the same random numbers.
"""

import dataclasses
import importlib
import numbers
from typing import Any, ClassVar

import jax
import numpy as np

from lexrl.envs.gym import seeds_of
from lexrl.envs.intersection import picture
from lexrl.envs.intersection.state import NUM_FEATURES, NUM_ROWS, SUBSTEPS, State, empty_state
from lexrl.errors import InputError, require_whole
from lexrl.types import BatchedStep, Box, Discrete, EnvSpec, Keys, Step

ACTIONS = ("SLOWER", "IDLE", "FASTER")
MAX_INITIAL = 20
"""Vehicles in the beginning: more do not fit on the roads."""


@dataclasses.dataclass(frozen=True)
class Intersection:
    """Turn left through the traffic of a crossing, without a collision."""

    render_fps: ClassVar[float] = 3.0

    initial_vehicle_count: int = 10
    """Maximum number of vehicles at the start; one of them goes straight."""
    spawn_probability: float = 0.6
    """Probability that a new vehicle tries to join in a step."""
    connected_lanes: bool = False
    """Drivers consider vehicles beyond the end of their own lane, as in highway-env's intersection-v2, which reduces
    collisions."""
    max_episode_steps: int = 13
    """Length of an episode, in seconds."""
    timeout_terminates: bool = False
    """Running out of time ends the task: who has not arrived by then has failed. Otherwise it truncates the episode,
    and algorithms bootstrap there."""
    observe_time: bool = False
    """Observe the share of the time that is over, as an eighth feature of the ego's row, which highway-env has not."""

    def __post_init__(self):
        require_whole(max_episode_steps=self.max_episode_steps)
        require_whole(1, MAX_INITIAL, initial_vehicle_count=self.initial_vehicle_count)
        probability = self.spawn_probability
        if not isinstance(probability, numbers.Real) or not 0 <= probability <= 1:
            raise InputError(f"spawn_probability is {probability!r}; it must be a number from 0 to 1.")
        for name in ("connected_lanes", "timeout_terminates", "observe_time"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is {getattr(self, name)!r}; it must be True or False.")
        _batch()  # complains if the compiler is missing

    @property
    def spec(self) -> EnvSpec:
        space = Box((NUM_ROWS, NUM_FEATURES + self.observe_time), -1.0, 1.0)
        return EnvSpec(space, Discrete(3), ("collision", "arrived"), self.max_episode_steps)

    @property
    def return_bounds(self) -> dict[str, tuple[float, float]]:
        """What sums of the signals lie between: either of the two ends the episode."""
        return {"collision": (0.0, 1.0), "arrived": (0.0, 1.0)}

    def batched(self, n: int) -> "IntersectionEnvs":
        """`n` intersections, before their first reset."""
        return IntersectionEnvs(self, empty_state(n))

    def empty_state(self, n: int) -> State:
        """The state of `n` intersections before their first reset."""
        return empty_state(n)

    def begin(self, seed: int) -> tuple[State, np.ndarray]:
        """The state of one intersection and its observation, as highway-env's after `reset(seed=seed)`."""
        require_whole(0, 2**32 - 1, seed=seed)
        state = empty_state(1)
        obs, _, _ = self.advance(state, np.array([True]), np.array([seed]), np.array([-1]))
        return _only(state), obs[0]

    def step(self, state: State, action: Any) -> Step:
        """The state of one intersection after a step; the given one is not changed."""
        if np.ndim(action) or action not in range(len(ACTIONS)):
            raise InputError(f"The action is {action!r}; it must be 0 (SLOWER), 1 (IDLE) or 2 (FASTER).")
        after = State(*(np.array(part)[None] for part in state))
        obs, signals, discount = self.advance(after, np.array([False]), np.array([0]), np.array([int(action)]))
        return Step(_only(after), obs[0], signals[0], discount[0])

    def render(self, state: State) -> np.ndarray:
        """A picture of the state of one intersection, `[height, width, 3]`."""
        return picture.draw(state)

    def advance(
        self, state: State, resets: np.ndarray, seeds: np.ndarray, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Reset some intersections, and step the others whose action is not negative; see `batch.advance`."""
        places = np.linspace(0.0, 80.0, self.initial_vehicle_count)[: self.initial_vehicle_count - 1]
        settings = (places, float(self.spawn_probability), bool(self.connected_lanes))
        dynamics = _batch()
        obs, signals, discount = dynamics.advance(state, resets, seeds, actions, settings)
        length = dynamics.episode.motion.FREQUENCY * self.max_episode_steps
        elapsed = (state.counters[:, SUBSTEPS] - dynamics.traffic.WARM_UP) / length
        if self.timeout_terminates:
            discount[elapsed >= 1] = 0.0
        if self.observe_time:
            obs = np.pad(obs, ((0, 0), (0, 0), (0, 1)))
            obs[:, 0, -1] = elapsed
        return obs, signals, discount


@dataclasses.dataclass
class IntersectionEnvs:
    """Intersections side by side."""

    env: Intersection
    state: State

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        n = len(which)
        return self.env.advance(self.state, which, np.array(seeds_of(keys())), np.full(n, -1))[0]

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        n = len(actions)
        obs, signals, discount = self.env.advance(self.state, np.zeros(n, bool), np.zeros(n), actions)
        return BatchedStep(obs, signals, discount, np.zeros(n, bool))

    def save(self) -> State:
        return jax.tree.map(np.copy, self.state)

    def restore(self, state: State) -> None:
        self.state = jax.tree.map(np.array, state)

    def close(self) -> None:
        pass


def _batch() -> Any:
    """The compiled part, which is imported late: describing the environment must not need it."""
    return importlib.import_module("lexrl.envs.intersection.batch")


def _only(state: State) -> State:
    return State(*(part[0] for part in state))
