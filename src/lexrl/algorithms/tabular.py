"""What the tabular algorithms share (VB-LRL, Algorithm 2 of the paper): exploration, the tables, one step of learning.

At each step, for every objective i, with `alpha = alpha(n(s, a))`:

    Q_i(s, a) <- Q_i(s, a) + alpha * (r_i + gamma_i * bootstrap_i - Q_i(s, a))

where `bootstrap_i` is the value of the *successor* s' (0 if the task ended there). Only `bootstrap` differs between the
algorithms: see `q_learning`, `sarsa`, `expected_sarsa` and `double_q`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import distributions, lex
from lexrl.algorithms import validation
from lexrl.backend import once
from lexrl.errors import InputError
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Moment, Tolerances, needs_spread, slack
from lexrl.types import Discrete, Metrics, Spec, Transition
from lexrl.units import counts


class EpsilonGreedy(eqx.Module):
    """Lexicographic epsilon-greedy (Algorithm 1): epsilon is a schedule in n(s), the visits to the state."""

    epsilon: Schedule = eqx.field(converter=named("epsilon"), default=Constant(0.05), metadata=counts("visits"))

    def __str__(self) -> str:
        return f"epsilon {self.epsilon}"

    def probabilities(self, q: Array, tau: lex.Slack, visits: Array) -> Array:
        return lex.epsilon_greedy(q, tau, self.epsilon(visits))


class Softmax(eqx.Module):
    """Lexicographic softmax: the temperature is a schedule in n(s), the visits to the state."""

    temperature: Schedule = eqx.field(converter=named("temperature"), default=Constant(0.05), metadata=counts("visits"))

    def __str__(self) -> str:
        return f"softmax {self.temperature}"

    def probabilities(self, q: Array, tau: lex.Slack, visits: Array) -> Array:
        return lex.softmax(q, tau, self.temperature(visits))


Exploration = EpsilonGreedy | Softmax


def as_exploration(given: Any) -> Any:
    """Text may be `epsilon 0.05`, `epsilon 100/n` or `softmax n^-0.3`."""
    if not isinstance(given, str):
        return given
    kind, _, rate = given.strip().partition(" ")
    if kind not in ("epsilon", "softmax") or not rate:
        raise InputError(
            f"The exploration {given!r} cannot be read; write 'epsilon 0.05', 'epsilon 100/n' or 'softmax 0.1'."
        )
    schedule = as_schedule(rate, name="epsilon" if kind == "epsilon" else "temperature")
    return EpsilonGreedy(schedule) if kind == "epsilon" else Softmax(schedule)


class State(NamedTuple):
    """Q-values and how often each was updated. Double Q-learning has two tables of both."""

    q: Float[Array, "*tables S M A"]
    visits: Int[Array, "*tables S A"]
    variance: Float[Array, "S M A"] | None
    """Sampling variance of each estimate, where a tolerance needs it."""
    num_updates: Int[Array, ""]


def init(
    algorithm: Any, spec: Spec, *, tables: tuple[int, ...] = (), update_tolerance: Tolerances | None = None
) -> State:
    """Tables at their initial values."""
    if not isinstance(spec.observation_space, Discrete) or not isinstance(spec.action_space, Discrete):
        raise InputError(
            f"A tabular algorithm needs discrete observations and actions, but this environment has "
            f"{spec.observation_space} and {spec.action_space}: use LDQN, or a discrete version of the environment."
        )
    num_objectives, num_states, num_actions = len(spec.objectives), spec.observation_space.n, spec.action_space.n
    validation.require_per_objective(
        num_objectives,
        gamma=algorithm.gamma,
        initial_q=algorithm.initial_q,
        tolerance=algorithm.tolerance,
        update_tolerance=update_tolerance,
    )
    first = jnp.broadcast_to(jnp.asarray(algorithm.initial_q, jnp.float32), (num_objectives,))
    shape = (num_states, num_objectives, num_actions)
    tolerances = (algorithm.tolerance, *(() if update_tolerance is None else (update_tolerance,)))
    return State(
        q=jnp.broadcast_to(first[:, None], (*tables, *shape)),
        visits=jnp.zeros((*tables, num_states, num_actions), jnp.int32),
        variance=jnp.full(shape, 1e12, jnp.float32) if any(map(needs_spread, tolerances)) else None,
        num_updates=jnp.int32(0),
    )


def act(algorithm: Any, state: Any, obs: Array, key: Array, *, greedy: bool = False) -> Array:
    """An action for one state of the environment."""
    return distributions.draw(algorithm.probabilities(state, obs, greedy=greedy), key)


def probabilities(algorithm: Any, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
    """The exploration's probability of each action; greedy: uniform over `D_M`."""
    tau = slack_at(algorithm.tolerance, state, obs)
    return policy(algorithm.exploration, state.q[obs], tau, state.visits[obs].sum(), greedy)


def policy(
    exploration: Exploration, q: Float[Array, "M A"], tau: lex.Slack, visits: Array, greedy: bool = False
) -> Float[Array, " A"]:
    """The same from the Q-values of a state and the visits to it."""
    return lex.uniform(lex.admissible(q, tau)) if greedy else exploration.probabilities(q, tau, 1 + visits)


def sets(algorithm: Any, state: State) -> Bool[Array, "S L A"]:
    """The learned admissible sets `D_0 .. D_M` of every state, L = M + 1 of them."""
    return lex.levels(state.q, slack_at(algorithm.tolerance, state, ...)).sets


def update(algorithm: Any, state: Any, rollout: Transition, key: Array) -> tuple[Any, Metrics]:
    """`algorithm.learn` from one transition after the other, in the order they were collected."""
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)
    if flat.obs.shape[0] == 1:
        return algorithm.learn(state, jax.tree.map(lambda x: x[0], flat), key)
    keys = jax.random.split(key, flat.obs.shape[0])
    state, metrics = jax.lax.scan(lambda state, item: algorithm.learn(state, *item), state, (flat, keys))
    return state, jax.tree.map(lambda x: x.mean(axis=0), metrics)


Bootstrap = Callable[[Float[Array, "M A"]], tuple[Float[Array, " M"], Bool[Array, " A"]]]
"""From the Q-values of the successor, its value for every objective and its admissible set."""


def learn(
    algorithm: Any,
    state: State,
    transition: Transition,
    bootstrap: Bootstrap,
    *,
    table: tuple[Array, ...] = (),
    valid: Array | bool = True,
) -> tuple[State, Metrics]:
    """One step of learning, in one of several `table`s if there are such; a transition that is not `valid` is skipped.

    Each read of the table is computed once, before it is written: XLA would copy the whole table instead.
    """
    s, a, always = transition.obs, transition.action, state.num_updates >= 0
    alpha = jnp.where(valid, algorithm.alpha(state.visits[(*table, s, a)] + 1), 0.0)
    value, admissible = bootstrap(once(state.q[(*table, transition.next_obs)], always))
    target = transition.reward + jnp.asarray(algorithm.gamma) * transition.discount * value
    error, admissible = once((target - state.q[(*table, s, slice(None), a)], admissible), always)
    step = alpha * error
    variance = state.variance
    if variance is not None:
        variance = variance.at[s, :, a].set((1 - alpha) ** 2 * variance[s, :, a] + step**2)
    learned = State(
        q=state.q.at[(*table, s, slice(None), a)].add(step),
        visits=state.visits.at[(*table, s, a)].add(jnp.int32(valid)),
        variance=variance,
        num_updates=state.num_updates + 1,
    )
    return learned, {"td_error": jnp.abs(error), "num_admissible": admissible.sum()}


def slack_at(tolerances: Tolerances, state: State, obs: Any) -> lex.Slack:
    """The tolerance now, at a state of the environment (`...`: at all of them)."""
    spread = None if state.variance is None else jnp.sqrt(state.variance[obs])
    return slack(tolerances, Moment(state.num_updates + 1, spread))
