"""The shapes everything else agrees on: environments, algorithms, transitions, and the metrics they report.

Letters in every file: `T` steps, `N` environments side by side, `M` objectives, `K` signals, `A` actions, `S` states.
Objectives are maximized; a cost is an objective with its sign turned. Objective 0 is the most important one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jax import Array

from lexrl.errors import InputError

State = Any
"""A pytree that only its owner, an environment or an algorithm, looks into."""

AnyArray = Any
"""An array: JAX's in the compiled loop, NumPy's in the host loop."""

Metrics = dict[str, Array]
"""What an update reports: scalars by name, or one number per objective. All names are in `METRICS`."""


class Metric(NamedTuple):
    """One line of `METRICS`."""

    help: str
    in_return_units: bool = False
    """A return of its objective, and therefore shown with the user's sign: a cost of 3 as 3, not -3."""


METRICS = {
    "episode_return": Metric("mean return of the episodes that ended", in_return_units=True),
    "episode_length": Metric("mean length of the episodes that ended"),
    "num_episodes": Metric("number of episodes that ended"),
    "return_estimate": Metric("estimated return of the current policy, J_j", in_return_units=True),
    "threshold": Metric("return to keep, k_j", in_return_units=True),
    "multiplier": Metric("Lagrange multiplier, lambda_j"),
    "gradient_weight": Metric("weight of the objective in the policy gradient, c_j"),
    "converged": Metric("1 once the objective counts as converged, else 0"),
    "violation": Metric("largest violation of a constraint, negative while all hold"),
    "value_loss": Metric("loss of the critic"),
    "entropy": Metric("entropy of the policy"),
    "surrogate": Metric("surrogate objective of the policy update"),
    "approx_kl": Metric("KL divergence between the old policy and the new one"),
    "q_value": Metric("mean Q-value of the actions taken", in_return_units=True),
    "td_error": Metric("mean absolute TD error"),
    "loss": Metric("loss of the Q-network"),
    "num_admissible": Metric("number of actions that every objective admits"),
    "distance": Metric("distance from the target set"),
}
"""Every metric that algorithms and loops report."""


class Discrete(NamedTuple):
    """`n` values, the integers 0 .. n-1."""

    n: int


class Box(NamedTuple):
    """Arrays of a shape, each entry between `low` and `high`."""

    shape: tuple[int, ...]
    low: float = -float("inf")
    high: float = float("inf")


class EnvSpec(NamedTuple):
    """What an environment says of itself."""

    observation_space: Discrete | Box
    action_space: Discrete | Box
    signals: tuple[str, ...]
    """Names of the signals, in the order of the last axis; the order expression picks among them."""
    max_episode_steps: int


class Spec(NamedTuple):
    """What an algorithm knows of an environment: `Order.spec(env.spec)`."""

    observation_space: Discrete | Box
    action_space: Discrete | Box
    objectives: tuple[str, ...]
    """Names of the objectives, the most important first."""
    max_episode_steps: int
    signs: tuple[int, ...] = ()
    """1 for an objective that is maximized as it is, -1 for one that the order minimizes; empty: all 1."""


def require_episode(max_episode_steps: int) -> None:
    """Raise an error for an episode without a step."""
    if max_episode_steps < 1:
        raise InputError(f"max_episode_steps is {max_episode_steps}; it must be 1 or more.")


class Step(NamedTuple):
    """One step of an environment: the new state, the observation, the signals, and 0 where the task ended, else 1.

    An environment does not count its steps: the loop truncates episodes after `EnvSpec.max_episode_steps`.
    """

    state: State
    obs: AnyArray
    signals: AnyArray
    discount: AnyArray


class Transition(NamedTuple):
    """What an algorithm learns from; a rollout has leading axes `[T, N]`."""

    obs: AnyArray
    action: AnyArray
    reward: AnyArray
    """`[..., M]`, already ordered and signed."""
    discount: AnyArray
    """0 where the task ended, else 1: truncation never stops a bootstrap."""
    next_obs: AnyArray
    """The true successor, never the first observation of the next episode."""
    last: AnyArray
    """An episode ended here, by termination or truncation."""


@runtime_checkable
class Env(Protocol):
    """An environment written in JAX: pure functions of their arguments, fit for `jit` and `vmap`."""

    @property
    def spec(self) -> EnvSpec: ...
    def reset(self, key: Array) -> tuple[State, Array]: ...
    def step(self, state: State, action: Array, key: Array) -> Step: ...


Keys = Callable[[], Array]
"""Gives one key per environment; environments with random generators of their own never ask for a step's."""


class BatchedStep(NamedTuple):
    """One step of `N` environments."""

    obs: np.ndarray
    """`[N, ...]`: the true successors, never the first observations of the next episodes."""
    signals: np.ndarray
    """`[N, K]`"""
    discount: np.ndarray
    """`[N]`: 0 where the task ended, else 1."""
    truncated: np.ndarray
    """`[N]`: the environment itself has truncated the episode, though the task has not ended."""


@runtime_checkable
class BatchedEnv(Protocol):
    """`N` environments stepped from Python. They are stateful: every call changes them."""

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        """Reset those in the mask `which`; observations of all, meaningless where nothing was reset."""
        ...

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep: ...
    def close(self) -> None: ...


@runtime_checkable
class Batchable(Protocol):
    """An environment that is stepped from Python, `N` copies at a time."""

    @property
    def spec(self) -> EnvSpec: ...
    def batched(self, n: int) -> BatchedEnv:
        """`n` environments, before their first reset."""
        ...


@runtime_checkable
class HasModel(Protocol):
    """An environment whose finite MOMDP is known."""

    @property
    def spec(self) -> EnvSpec: ...
    def momdp(self, gamma: Any) -> Any: ...


@runtime_checkable
class Renderable(Protocol):
    """An environment that draws its states, `[height, width, 3]`."""

    @property
    def render_fps(self) -> float: ...
    def render(self, state: State) -> np.ndarray: ...


@runtime_checkable
class Wrapper(Protocol):
    """An environment around another one, as in Gymnasium."""

    @property
    def unwrapped(self) -> Any: ...


@runtime_checkable
class Describable(Protocol):
    """An environment whose signals were found by looking, and that has a sentence on which they are."""

    @property
    def description(self) -> str: ...


@runtime_checkable
class Algorithm(Protocol):
    """Hyper-parameters and three verbs; all that changes is in the `State` they return, whose floats must be finite:
    training stops at NaN or infinity.

    Float hyper-parameters are traced (a new value never recompiles), integers shape the program.
    """

    @property
    def num_steps(self) -> int:
        """Steps of each environment between two updates."""
        ...

    @property
    def num_envs(self) -> int:
        """Environments side by side."""
        ...

    def init(self, spec: Spec, key: Array) -> State: ...
    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        """An action for one observation."""
        ...

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]: ...


@runtime_checkable
class HasGamma(Protocol):
    """An algorithm with a discount, one for all objectives or one each."""

    @property
    def gamma(self) -> Any: ...


@runtime_checkable
class HasTolerance(Protocol):
    """An algorithm with tolerances, which the order expression may set."""

    @property
    def tolerance(self) -> Any: ...


@runtime_checkable
class HasMultipliers(Protocol):
    """An algorithm with Lagrange multipliers: its tolerances are about the return of the whole, stochastic policy."""

    @property
    def multipliers(self) -> Any: ...


@runtime_checkable
class HasReplay(Protocol):
    """An algorithm with a replay buffer of its own."""

    num_envs: int
    num_steps: int
    buffer_size: int
    learning_starts: int


@runtime_checkable
class HasProbabilities(Protocol):
    """An algorithm that gives the probability of each discrete action."""

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Array: ...


@runtime_checkable
class Mixture(Protocol):
    """An algorithm whose policy is a mixture: one of several policies is drawn when an episode begins."""

    def begin(self, state: State, key: Array) -> State: ...


@runtime_checkable
class CostAware(Protocol):
    """An algorithm that must observe what was spent so far of each limit in `remembers`."""

    @property
    def remembers(self) -> Any: ...


def unwrapped(env: Any) -> Any:
    """The environment inside all wrappers."""
    return env.unwrapped if isinstance(env, Wrapper) else env
