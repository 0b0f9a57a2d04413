"""What the tabular algorithms share (VB-LRL, Algorithm 2 of the paper): the tables, one step of learning, the policies.

At each step, for every objective i, with `alpha = max(alpha(n(s, a)), min_alpha(t))`:

    Q_i(s, a) <- Q_i(s, a) + alpha * (r_i + gamma_i * bootstrap_i - Q_i(s, a))

where `bootstrap_i` is the value of the *successor* s' (0 if the task ended there). Only `bootstrap` differs between the
algorithms: see `q_learning`, `sarsa`, `expected_sarsa` and `double_q`. With `evidence`, the sampling variance of each
estimate is kept beside it, `V <- (1 - alpha)^2 V + (alpha * TD error)^2`, that of an average with these weights.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import distributions, lex
from lexrl.algorithms import episodes, validation
from lexrl.algorithms.episodes import Episode
from lexrl.backend import compute_once
from lexrl.errors import InputError
from lexrl.tolerance import Estimates, Moment, Tolerances, slack
from lexrl.types import Discrete, Metrics, Spec, Transition

_LARGEST = np.finfo(np.float32).max
_LEAST_VISITS = 4
"""Below this nothing is known about an estimate's error."""


class State(NamedTuple):
    """Q-values and how often each was updated. Double Q-learning has two tables of both."""

    q: Float[Array, "*tables S M A"]
    visits: Int[Array, "*tables S A"]
    variance: Float[Array, "*tables S M A"] | None
    """Sampling variance of each estimate, where there is evidence to be judged by it."""
    extremes: Float[Array, "2 M"] | None
    """The smallest and the largest target of each objective; the difference is its unit."""
    episode: Episode | None
    """Who plays the episode, where not all are alike."""
    pending: Transition | None
    """SARSA's last transition, whose next action is not known yet."""
    num_objectives: Int[Array, ""]
    """How many objectives the greedy policy serves: all, unless it is a prefix."""
    num_updates: Int[Array, ""]


class StateValues(NamedTuple):
    """What is known about one state of the environment."""

    q: Float[Array, "*batch M A"]
    error: Float[Array, "*batch M A"] | None
    visits: Int[Array, "*batch A"]


def init(
    algorithm: Any,
    spec: Spec,
    *,
    tables: tuple[int, ...] = (),
    update_tolerance: Tolerances | None = None,
    pending: Transition | None = None,
) -> State:
    """Tables at their initial values."""
    if not isinstance(spec.observation_space, Discrete) or not isinstance(spec.action_space, Discrete):
        raise InputError(
            f"A tabular algorithm needs discrete observations and actions, but this environment has "
            f"{spec.observation_space} and {spec.action_space}: use LDQN, or a discrete version of the environment."
        )
    m, num_states, num_actions = len(spec.objectives), spec.observation_space.n, spec.action_space.n
    validation.require_per_objective(
        m,
        gamma=algorithm.gamma,
        initial_q=algorithm.initial_q,
        tolerance=algorithm.tolerance,
        update_tolerance=update_tolerance,
    )
    first = jnp.broadcast_to(jnp.asarray(algorithm.initial_q, jnp.float32), (m,))
    shape = (num_states, m, num_actions)
    judged = algorithm.evidence is not None
    return State(
        q=jnp.broadcast_to(first[:, None], (*tables, *shape)),
        visits=jnp.zeros((*tables, num_states, num_actions), jnp.int32),
        variance=jnp.zeros((*tables, *shape)) if judged else None,
        extremes=jnp.tile(jnp.array([[_LARGEST], [-_LARGEST]]), (1, m)) if judged else None,
        episode=episodes.init(algorithm, spec),
        pending=pending,
        num_objectives=jnp.int32(m),
        num_updates=jnp.int32(0),
    )


def act(algorithm: Any, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
    """An action for one state of the environment."""
    return distributions.draw(algorithm.probabilities(state, obs, greedy=greedy), key)


def probabilities(algorithm: Any, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
    """The probability of each action in this episode; greedy: uniform over `D_M`, or over the last set of a prefix."""
    here = row(state, obs)
    tau = slack_at(algorithm, state, here)
    served = _served(algorithm, here.q, tau)
    if greedy:
        return lex.uniform(served[state.num_objectives - 1])
    explores = explored(algorithm, state, here, tau)
    return explores if state.episode is None else episodes.probabilities(state.episode, obs, explores, served)


def explored(algorithm: Any, state: State, here: StateValues, tau: lex.Slack) -> Float[Array, " A"]:
    """The exploration's probability of each action."""
    return algorithm.exploration.probabilities(here.q, tau, 1 + here.visits.sum(), state.num_updates + 1)


def greedy(algorithm: Any, here: StateValues, tau: lex.Slack) -> Float[Array, " A"]:
    """The probabilities of the policy that serves all objectives, without exploration."""
    return lex.uniform(_served(algorithm, here.q, tau)[-1])


def _served(algorithm: Any, q: Float[Array, "*batch M A"], tau: lex.Slack) -> Bool[Array, "*batch M A"]:
    """What would be played if the order ended with each objective. With evidence the last one takes the best: what
    cannot be told apart matters only if another objective follows."""
    walk = lex.levels(q, tau)
    return walk.sets[..., 1:, :] if algorithm.evidence is None else lex.best_of(q, walk)


def prefix(algorithm: Any, state: State, num_objectives: Any) -> State:
    """The agent whose greedy policy serves the first objectives alone."""
    return state._replace(num_objectives=jnp.asarray(num_objectives, jnp.int32))


def sets(algorithm: Any, state: State) -> Bool[Array, "S L A"]:
    """The learned admissible sets `D_0 .. D_M` of every state, L = M + 1 of them."""
    everywhere = row(state, ...)
    return lex.levels(everywhere.q, slack_at(algorithm, state, everywhere)).sets


def update(algorithm: Any, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
    """`algorithm.learn` from one transition after the other, in the order they were collected."""
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)
    if flat.obs.shape[0] == 1:
        return _step(algorithm, state, jax.tree.map(lambda x: x[0], flat), key)
    keys = jax.random.split(key, flat.obs.shape[0])
    state, metrics = jax.lax.scan(lambda state, item: _step(algorithm, state, *item), state, (flat, keys))
    return state, jax.tree.map(lambda x: x.mean(axis=0), metrics)


def _step(algorithm: Any, state: State, transition: Transition, key: Array) -> tuple[State, Metrics]:
    state, metrics = algorithm.learn(state, transition, key)
    if state.episode is None:
        return state, metrics
    tables = (slice(None),) * (state.visits.ndim - 2)
    visits = state.visits[(*tables, transition.obs, transition.action)].sum()
    draws = jax.random.uniform(key, (3,))[1:]  # the first is what an algorithm may have drawn from the key itself
    episode = episodes.follow(algorithm, state.episode, transition, visits, state.num_updates, draws)
    return state._replace(episode=episode), metrics


Bootstrap = Callable[[StateValues], tuple[Float[Array, " M"], Bool[Array, " A"]]]
"""From what is known about the successor, its value for every objective and its admissible set."""


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
    rate = jnp.maximum(algorithm.alpha(state.visits[(*table, s, a)] + 1), algorithm.min_alpha(state.num_updates + 1))
    alpha = jnp.where(valid, rate, 0.0)
    value, admissible = bootstrap(compute_once(row(state, transition.next_obs, table), always))
    target = transition.reward + jnp.asarray(algorithm.gamma) * transition.discount * value
    error, admissible = compute_once((target - state.q[(*table, s, slice(None), a)], admissible), always)
    step = alpha * error
    variance, extremes, entry = state.variance, state.extremes, (*table, s, slice(None), a)
    if variance is not None and extremes is not None:
        variance = variance.at[entry].set((1 - alpha) ** 2 * variance[entry] + step**2)
        wider = jnp.stack([jnp.minimum(extremes[0], target), jnp.maximum(extremes[1], target)])
        extremes = jnp.where(valid, wider, extremes)
    learned = state._replace(
        q=state.q.at[entry].add(step),
        visits=state.visits.at[(*table, s, a)].add(jnp.int32(valid)),
        variance=variance,
        extremes=extremes,
        num_updates=state.num_updates + 1,
    )
    return learned, {"td_error": jnp.abs(error), "num_admissible": admissible.sum()}


def row(state: State, obs: Any, table: tuple[Array, ...] = ()) -> StateValues:
    """What one table knows about a state of the environment (`...`: about all); of two tables, their mean."""
    if state.q.ndim == 4 and not table:
        one, other = (row(state, obs, (jnp.int32(j),)) for j in (0, 1))
        errors = [each.error for each in (one, other) if each.error is not None]
        error = 0.5 * jnp.sqrt(errors[0] ** 2 + errors[1] ** 2) if errors else None
        return StateValues(0.5 * (one.q + other.q), error, one.visits + other.visits)
    visits = state.visits[(*table, obs)]
    if state.variance is None:
        return StateValues(state.q[(*table, obs)], None, visits)
    error = jnp.sqrt(state.variance[(*table, obs)])
    return StateValues(
        state.q[(*table, obs)], jnp.where((visits < _LEAST_VISITS)[..., None, :], jnp.inf, error), visits
    )


def slack_at(algorithm: Any, state: State, here: StateValues, tolerances: Tolerances | None = None) -> lex.Slack:
    """The tolerance now, with what the estimates at a state cannot tell apart."""
    chosen, time = algorithm.tolerance if tolerances is None else tolerances, state.num_updates + 1
    if here.error is None or state.extremes is None:
        return slack(chosen, Moment(time))
    lowest, highest = state.extremes
    span = jnp.where(highest >= lowest, highest - lowest, 0.0)
    checked = None if state.episode is None else state.episode.guard
    scale = jnp.asarray(lex.gives_way(span.shape[0])) if checked is None else checked.scale
    return slack(chosen, Moment(time, Estimates(here.error, span, scale)), algorithm.evidence)
