"""The shapes everything else agrees on: environments, algorithms, transitions, and the metrics they report.

Letters in every file: `T` steps, `N` environments side by side, `M` objectives, `K` signals, `A` actions, `S` states.
Objectives are maximized; a cost is an objective with its sign turned. Objective 0 is the most important one.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jax import Array

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
    "stage": Metric("the objective that is optimized now, counted from 1"),
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
    "guard_scale": Metric("scale of what the objective gives away at a state, c_i"),
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
class HasFixedNumber(Protocol):
    """A batchable environment that holds so many copies, no fewer and no more."""

    @property
    def num_envs(self) -> int: ...


@runtime_checkable
class SavableBatchedEnv(BatchedEnv, Protocol):
    """Environments that can be put back to where they were: checkpoints hold their state, and nothing is replayed."""

    def save(self) -> State:
        """A tree of NumPy arrays with a leading axis `[N]`, which later steps do not change: all that the future
        depends on, random generators included."""
        ...

    def restore(self, state: State) -> None:
        """Continue from what `save` returned, here or in another process."""
        ...


@runtime_checkable
class Savable(Batchable, Protocol):
    """An environment that is stepped from Python, and whose `batched(n)` is a `SavableBatchedEnv`."""

    def empty_state(self, n: int) -> State:
        """Arrays of the shapes and types that `save` returns."""
        ...


@runtime_checkable
class HasModel(Protocol):
    """An environment whose finite MOMDP is known."""

    @property
    def spec(self) -> EnvSpec: ...
    def momdp(self, gamma: Any) -> Any: ...


@runtime_checkable
class HasReturnBounds(Protocol):
    """An environment that knows what its returns lie between, so that a verdict need not assume anything else.

    For a signal: the least and the largest that its sum over the steps of an episode may be, at any time of the
    episode. The discounted sum then lies between them, too, since it is an average of such sums.
    """

    @property
    def return_bounds(self) -> Mapping[str, tuple[float, float]]: ...


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
    """An environment whose signals were found by looking at a few steps, with a sentence on which they are."""

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
class ActsByEnv(Protocol):
    """An algorithm that plays differently in some of its environments: there it measures what it would hand over."""

    def act_in(self, state: State, env: Array, obs: Array, key: Array) -> Array:
        """An action in training, for one observation of the environment with this index."""
        ...


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
class HasLimits(Protocol):
    """An algorithm that honors the limits of an order, which sets them: `Order.limits()`, one for each objective."""

    @property
    def limits(self) -> Any: ...


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
class HasCandidates(Protocol):
    """An algorithm that keeps several policies while it is trained; when it is done, fresh episodes choose one."""

    @property
    def tolerance(self) -> Any: ...
    def num_candidates(self, num_objectives: int) -> int:
        """0: there is nothing to choose."""
        ...

    def candidate(self, state: State, index: Any) -> State:
        """The agent state that plays a candidate."""
        ...

    def first_returns(self, state: State) -> Any:
        """`[2, M]`: mean returns of the first episodes of training, or the lowest there were, discounted and
        undiscounted, maximized: how far training has come is counted from them."""
        ...

    def describe_candidate(self, num_objectives: int, index: int) -> dict[str, Any]:
        """What is said about a candidate that was chosen."""
        ...


@runtime_checkable
class MaySample(Protocol):
    """An algorithm whose policy may have to be sampled even where the greedy one is asked for."""

    def is_sampled(self, state: State) -> Any: ...


@runtime_checkable
class HasTable(Protocol):
    """An algorithm whose values are a table: it takes discrete observations only."""

    def sets(self, state: State) -> Any:
        """The learned admissible sets of every observation."""
        ...


@runtime_checkable
class HasPrefixes(Protocol):
    """An algorithm that can play the first of its objectives alone, as if the order ended there."""

    def prefix(self, state: State, num_objectives: Any) -> State:
        """The agent state whose greedy policy serves the first `num_objectives` objectives only."""
        ...


@runtime_checkable
class HasColumns(Protocol):
    """An algorithm that keeps further policies, columns, to use the slack of an objective by a mixture of policies."""

    @property
    def mixture(self) -> bool:
        """May the policy be a mixture? Else the best single one is wanted."""
        ...

    def num_columns(self, num_objectives: int) -> int:
        """Their indices follow those of the other candidates."""
        ...

    def mix(self, state: State, weights: Any) -> State:
        """The agent state that plays a mixture, from the probability of each candidate and column."""
        ...


@runtime_checkable
class Mixture(Protocol):
    """An algorithm whose policy may be a mixture: one of several policies is drawn when an episode begins."""

    def begin(self, state: State, key: Array) -> State:
        """The state that plays one episode."""
        ...

    def weights(self, state: State) -> Array:
        """The probability of each policy that may be drawn; all 0: the state is no mixture."""
        ...

    def component(self, state: State, index: Any) -> State:
        """The state that plays one of them."""
        ...


@runtime_checkable
class CostAware(Protocol):
    """An algorithm that must observe what was spent so far of each limit in `remembers`."""

    @property
    def remembers(self) -> Any: ...


def unwrapped(env: Any) -> Any:
    """The environment inside all wrappers."""
    return env.unwrapped if isinstance(env, Wrapper) else env
