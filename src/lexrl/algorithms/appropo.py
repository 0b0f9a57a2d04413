"""ApproPO (Miryoosefi et al. 2019): a mixture of policies whose mean returns lie in a given convex set.

A game between a direction lambda and a policy. With z the signals' sums over an episode and `C` the set, lifted to the
cone `K = { a (x, kappa) : x in C, a >= 0 }`, the distance of z to the set is about the largest `lambda . (z, kappa)`
over directions of length up to 1 in the polar cone `{ lambda : lambda . y <= 0 for all y in K }`. In turns:

    policy     best response to the scalar reward  -lambda . z : here a DQN that goes on learning
    direction  lambda <- nearest direction in the polar cone to  lambda + eta (z of that policy, kappa)

The result is not the last policy but the mixture of all of them: one is drawn when an episode begins, and acts until
its end. A uniform sample of `mixture_size` of them is kept.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lexrl import distributions, replay, returns
from lexrl.algorithms import dqn, lagrangian, validation
from lexrl.algorithms.dqn import DQN
from lexrl.constraints import ConvexSet, TargetBox, as_target_set
from lexrl.networks import Network
from lexrl.reprs import short_repr
from lexrl.returns import EpisodeTracker
from lexrl.schedules import Power, Schedule, named
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The oracle, the direction and the mixture."""

    oracle: dqn.State
    direction: Float[Array, " K+1"]
    """lambda, in the lifted space."""
    sides: Float[Array, "K M"]
    """Each row picks a signal of the set, in the user's sign."""
    episode_tracker: EpisodeTracker
    """Undiscounted sums of these since each episode began."""
    total: Float[Array, " K"]
    """Sum of returns over the episodes since the last update of the direction."""
    episodes: Float[Array, ""]
    """Number of these episodes."""
    num_direction_updates: Int[Array, ""]
    average: Float[Array, " K"]
    """Mean of z over all updates of the direction: the returns of the mixture."""
    mixture: Network
    """`[mixture_size, ...]`: the sample of the policies."""
    playing: Int[Array, ""]
    """Index of the policy that acts; -1: the one that learns."""


class ApproPO(eqx.Module):
    """A mixture of policies whose mean returns lie in a box (or another convex set)."""

    target_set: ConvexSet = eqx.field(
        converter=as_target_set, default=as_target_set("reward in 90..350, cost in 0..10")
    )
    """The set in which the mean returns of the signals should lie, as in 'reward in 90..350, cost in 0..10'."""
    episodes_per_update: int = eqx.field(static=True, default=1)
    """Number of episodes between updates of the direction."""
    mixture_size: int = eqx.field(static=True, default=32)
    """Number of policies in the mixture."""
    eta: Schedule = eqx.field(converter=named("eta"), default=Power(0.5), metadata=counts("direction updates"))
    """Step size of the direction, in units where the distance of the set is about 1; may be a schedule over its
    updates."""
    kappa: float = 1.0
    """The constant that lifts the set to a cone, in units of the set's size."""
    oracle: DQN = DQN()
    """The algorithm that learns a best response to the direction."""

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_positive(episodes_per_update=self.episodes_per_update, mixture_size=self.mixture_size)
        validation.require_above_zero(kappa=self.kappa)

    @property
    def num_envs(self) -> int:
        return self.oracle.num_envs

    @property
    def num_steps(self) -> int:
        return self.oracle.num_steps

    @property
    def gamma(self) -> float:
        return self.oracle.gamma

    def init(self, spec: Spec, key: Array) -> State:
        names = self.target_set.names
        k = len(names)
        single = spec._replace(objectives=("response",), signs=())
        oracle = dqn.init(self.oracle, single, key)._replace(replay=replay.empty(spec, self.oracle.buffer_size))
        return State(
            oracle=oracle,
            direction=jnp.zeros(k + 1),
            sides=jnp.asarray(lagrangian.constraint_weights(names, (1,) * k, spec)),
            episode_tracker=returns.init_tracker(self.oracle.num_envs, k),
            total=jnp.zeros(k),
            episodes=jnp.float32(0),
            num_direction_updates=jnp.int32(0),
            average=jnp.zeros(k),
            mixture=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.mixture_size, *leaf.shape)), oracle.net),
            playing=jnp.int32(-1),
        )

    def begin(self, state: State, key: Array) -> State:
        """The state with a policy drawn from the mixture for the next episode."""
        return self.component(state, jax.random.randint(key, (), 0, self._num_policies(state)))

    def weights(self, state: State) -> Float[Array, " policies"]:
        """The probability of each policy of the mixture; 0 once one was drawn."""
        number = self._num_policies(state)
        return jnp.where((jnp.arange(self.mixture_size) < number) & (state.playing < 0), 1.0 / number, 0.0)

    def component(self, state: State, index: Array) -> State:
        """The state that plays one of them."""
        return state._replace(playing=jnp.asarray(index, jnp.int32))

    def _num_policies(self, state: State) -> Int[Array, ""]:
        return jnp.clip(state.num_direction_updates, 1, self.mixture_size)

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return distributions.draw(self.probabilities(state, obs, greedy=greedy), key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """Epsilon-greedy with respect to the policy that acts."""
        drawn = jax.tree.map(lambda leaf: leaf[jnp.maximum(state.playing, 0)], state.mixture)
        net = jax.tree.map(lambda own, other: jnp.where(state.playing < 0, own, other), state.oracle.net, drawn)
        return self.oracle.probabilities(state.oracle._replace(net=net), obs, greedy=greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        learn, pick = jax.random.split(key)
        size = self._size()
        weights = -(state.direction[:-1] / size) @ state.sides
        oracle, metrics = dqn.learn(
            self.oracle, state.oracle, rollout, learn, dqn.best, lambda reward: (reward @ weights)[..., None]
        )
        signals = rollout.reward @ state.sides.T
        episode_tracker, episode_stats = returns.track_episodes(
            state.episode_tracker, signals, rollout.last, jnp.ones_like(size)
        )
        state = state._replace(
            oracle=oracle,
            episode_tracker=episode_tracker,
            total=state.total + episode_stats.total,
            episodes=state.episodes + episode_stats.episodes,
        )
        # The oracle stays outside of the branch: its replay would be copied.
        rest = jax.lax.cond(
            state.episodes >= self.episodes_per_update,
            lambda rest: self._update_direction(rest, oracle.net, pick),
            lambda rest: rest,
            state._replace(oracle=()),
        )
        state = rest._replace(oracle=oracle)
        away = state.average - self.target_set.project(state.average)
        reported = {
            "distance": jnp.linalg.norm(away / size),
            "multiplier": -(state.direction[:-1] / size) @ state.sides,
            "loss": metrics["loss"][0],
            "td_error": metrics["td_error"][0],
        }
        return state, reported

    def _update_direction(self, state: State, net: Network, key: Array) -> State:
        """Move the direction, and add the oracle's policy to the mixture."""
        here = state.total / jnp.maximum(state.episodes, 1.0)
        num_direction_updates = state.num_direction_updates + 1
        size = self._size()
        lifted = jnp.append(here / size, self.kappa)
        wanted = state.direction + self.eta(num_direction_updates) * lifted
        cone = nearest_in_cone(lambda x: self.target_set.project(x * size) / size, self.kappa, wanted)
        direction = wanted - cone  # Moreau: what is left of a cone's nearest point is its polar cone's
        direction = direction / jnp.maximum(1.0, jnp.linalg.norm(direction))
        # A uniform sample of all policies (Vitter's reservoir).
        place = jax.random.randint(key, (), 0, num_direction_updates)
        place = jnp.where(state.num_direction_updates < self.mixture_size, state.num_direction_updates, place)
        mixture = jax.tree.map(
            lambda kept, new: jnp.where(
                place < self.mixture_size, kept.at[jnp.minimum(place, self.mixture_size - 1)].set(new), kept
            ),
            state.mixture,
            net,
        )
        return state._replace(
            direction=direction,
            total=jnp.zeros_like(state.total),
            episodes=jnp.float32(0),
            num_direction_updates=num_direction_updates,
            average=state.average + (here - state.average) / num_direction_updates,
            mixture=mixture,
        )

    def _size(self) -> Float[Array, " K"]:
        """Typical size of each signal's returns: the unit it is measured in.

        One unit for all signals unless the set is a box: only there is the nearest point the same in units of each.
        """
        zero = jnp.zeros(len(self.target_set.names))
        far = jnp.full_like(zero, 1e9)
        corners = jnp.stack(
            [self.target_set.project(zero), self.target_set.project(far), self.target_set.project(-far)]
        )
        bounded = jnp.where(jnp.abs(corners) < 1e8, jnp.abs(corners), 0.0)
        each = jnp.maximum(bounded.max(axis=0), 1.0)
        return each if isinstance(self.target_set, TargetBox) else jnp.full_like(each, each.max())


def nearest_in_cone(project: Any, kappa: Any, point: Float[Array, " L"]) -> Float[Array, " L"]:
    """The nearest point to `point` of `{ a (x, kappa) : x in C, a >= 0 }`, where `project` finds the nearest in C.

    For a given a it is `(a project(v / a), a kappa)`; half the derivative of the squared distance by a is
    `-(v - a p) . p - kappa (w - a kappa)`, which rises with a: its zero is found by halving.
    """
    v, w = point[:-1], point[-1]

    def at(a: Array) -> Float[Array, " L"]:
        return jnp.append(project(v / jnp.maximum(a, 1e-9)) * a, a * kappa)

    def slope(a: Array) -> Array:
        p = project(v / jnp.maximum(a, 1e-9))
        return -jnp.dot(v - a * p, p) - kappa * (w - a * kappa)

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        return jax.tree.map(lambda x, y: jnp.where(slope(middle) > 0, x, y), (low, middle), (middle, high))

    # Nothing in the cone is nearer than the origin's distance: a kappa is at most the length of the point.
    most = jnp.linalg.norm(point) / kappa + 1e-6
    low, high = jax.lax.fori_loop(0, 50, halve, (jnp.zeros_like(most), most))
    return at(0.5 * (low + high))
