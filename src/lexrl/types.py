"""The few shapes everything else agrees on: what a world says of itself, what it answers, what a learner must do.

Letters in every file: `T` steps, `N` worlds side by side, `M` objectives, `A` actions, `S` states. Objectives are
maximised; a cost is an objective with its sign turned. Objective 0 is the most important one.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from jax import Array

from lexrl.errors import InputError

State = Any
"""A pytree that only its owner (a world, an algorithm) looks into."""

Metrics = dict[str, Array]
"""What an update has to tell: named scalars, or one number per objective."""


class Discrete(NamedTuple):
    """`n` values, the integers 0 .. n-1."""

    n: int


class Box(NamedTuple):
    """Arrays of a shape, each entry between `low` and `high`."""

    shape: tuple[int, ...]
    low: float = -float("inf")
    high: float = float("inf")


class Spec(NamedTuple):
    """All that an algorithm may know of a world. `objectives` names the signals, in the order of the last axis."""

    observation_space: Discrete | Box
    action_space: Discrete | Box
    objectives: tuple[str, ...]
    max_episode_steps: int
    signs: tuple[int, ...] = ()
    """-1 for each objective that an order has turned round (a cost), else 1; empty: none is."""


def require_episode(max_episode_steps: int) -> None:
    """Complain about an episode without a step."""
    if max_episode_steps < 1:
        raise InputError(f"max_episode_steps is {max_episode_steps}; it must be 1 or more.")


AnyArray = Any
"""An array: JAX's in the compiled loop, NumPy's on the host."""


class Step(NamedTuple):
    """A world's answer to an action: where it is now, what is seen, the signals, and 0 where the task ended, else 1.

    A world does not count its steps: an episode that runs out of time is cut off by the loop, at `Spec.max_steps`.
    """

    state: State
    obs: AnyArray
    signals: AnyArray
    discount: AnyArray


class Transition(NamedTuple):
    """What a learner learns from; a rollout has leading axes `[T, N]`."""

    obs: AnyArray
    action: AnyArray
    reward: AnyArray
    """`[..., M]`, already ordered and signed."""
    discount: AnyArray
    """0 where the task ended, else 1: running out of time never stops a bootstrap."""
    next_obs: AnyArray
    """The true successor, never the first observation of the next episode."""
    last: AnyArray
    """An episode ended here, for whatever reason."""


@runtime_checkable
class Env(Protocol):
    """A world written in JAX: pure functions of their arguments, fit for `jit` and `vmap`."""

    @property
    def spec(self) -> Spec: ...
    def reset(self, key: Array) -> tuple[State, Array]: ...
    def step(self, state: State, action: Array, key: Array) -> Step: ...


@runtime_checkable
class Algorithm(Protocol):
    """Hyper-parameters and three verbs; everything that changes lives in the `State` they hand around, whose floats
    must be finite: a learner that has met NaN or infinity is stopped.

    Float hyper-parameters are traced (a new value never compiles again), integers shape the program.
    """

    @property
    def num_steps(self) -> int:
        """Steps each world takes between two updates."""
        ...

    @property
    def num_envs(self) -> int:
        """Worlds side by side that feed one learner."""
        ...

    def init(self, spec: Spec, key: Array) -> State: ...
    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        """An action for one observation."""
        ...

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]: ...


@runtime_checkable
class HasModel(Protocol):
    """An environment whose transitions and signals are known: a finite MOMDP."""

    def momdp(self, gamma: Any) -> Any: ...


@runtime_checkable
class Renderable(Protocol):
    """An environment that draws its states as pictures, `[height, width, 3]`."""

    def render(self, state: Any) -> Any: ...


@runtime_checkable
class Mixture(Protocol):
    """An algorithm whose policy is a mixture: one component is drawn at the start of an episode and plays it."""

    def begin(self, state: State, key: Array) -> State: ...


@runtime_checkable
class HasTolerance(Protocol):
    """An algorithm whose objectives may lose something for the next ones."""

    @property
    def tolerance(self) -> Any: ...


@runtime_checkable
class CostAware(Protocol):
    """An algorithm whose policy must observe what some signals have summed up to since the episode began."""

    @property
    def remembers(self) -> Any: ...


@runtime_checkable
class HasMultipliers(Protocol):
    """An algorithm with Lagrange multipliers: its tolerances are about the return of the whole, stochastic policy."""

    @property
    def dual(self) -> Any: ...


@runtime_checkable
class HasGamma(Protocol):
    """An algorithm with a discount: one for all objectives, or one each."""

    @property
    def gamma(self) -> Any: ...


@runtime_checkable
class Describable(Protocol):
    """An environment that says in a sentence which signals it found, and where."""

    @property
    def found(self) -> str: ...


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
