"""LDQN: DQN for objectives in order of importance: lexicographic Q-learning with one network that gives `Q[M, A]`.

    Q_i(s, a)  moves towards  r_i + gamma_i max_{b in D_{i-1}(s')} Q_i(s', b)        for every objective i

where Q and the admissible sets D at s' are the target network's, with the update's tolerance; with `double_q`, the
network itself forms the sets and chooses b, and the target network gives its value. Actions are chosen by lexicographic
epsilon-greedy (Algorithm 1) on the network. With one objective and tolerance 0 this is DQN, bit for bit.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import distributions, lex
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import dqn, validation
from lexrl.algorithms.dqn import State
from lexrl.networks import Builder, as_builder
from lexrl.optimizers import Optimizer, as_optimizer
from lexrl.perceptrons import Activation
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, named
from lexrl.tolerance import Absolute, Moment, Tolerances, as_optional_tolerance, as_tolerance, slack
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class LDQN(eqx.Module):
    """Lexicographic deep Q-learning."""

    num_envs: int = eqx.field(static=True, default=8)
    """Parallel environments."""
    num_steps: int = eqx.field(static=True, default=4)
    """Steps of each environment between updates."""
    batch_size: int = eqx.field(static=True, default=64)
    """Transitions in a gradient step, drawn from the buffer."""
    gradient_steps: int = eqx.field(static=True, default=2)
    """Gradient steps after each rollout, each on a batch of its own."""
    buffer_size: int = eqx.field(static=True, default=102_400)
    """Transitions the buffer holds."""
    learning_starts: int = eqx.field(static=True, default=1_024)
    """Transitions to collect before learning."""
    target_update_interval: int = eqx.field(static=True, default=8_000)
    """Environment steps between updates of the target network; 0: no target network."""
    double_q: bool = eqx.field(static=True, default=False)
    """Let the network choose the action whose value the target network gives."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one for all objectives, or one each."""
    learning_rate: Schedule = eqx.field(
        converter=named("learning_rate"), default=Constant(1e-3), metadata=counts("gradient steps")
    )
    """Step size, by the number of gradient steps."""
    epsilon: Schedule = eqx.field(
        converter=named("epsilon"), default=Constant(0.05), metadata=counts("environment steps")
    )
    """Probability of a random action, by the number of environment steps."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.01), metadata=counts("gradient steps"))
    """What an objective's value may lose for the next one at a state: 0.01, 5%, '0.01 + 5%'; one, or one each."""
    update_tolerance: Tolerances | None = eqx.field(
        converter=as_optional_tolerance, default=None, metadata=counts("gradient steps")
    )
    """Another tolerance for the targets (tau_Q) than for choosing actions (tau_B)."""
    return_scale: tuple[float, ...] | float = 1.0
    """Typical size of returns, one or one each: the network's output is in units of it."""
    hidden_sizes: tuple[int, ...] = eqx.field(static=True, default=(64, 64))
    """Sizes of the hidden layers; none: linear."""
    activation: Activation = eqx.field(static=True, default="relu")
    """Between the layers."""
    use_bias: bool = eqx.field(static=True, default=True)
    """A network with biases; without hidden layers and biases it is a table on discrete observations."""
    network: Builder | None = eqx.field(static=True, converter=as_builder, default=None)
    """A function (key, spec) -> eqx.Module that builds a Q-network of your own, whose output has shape (M, A)."""
    optimizer: Optimizer = eqx.field(static=True, converter=as_optimizer, default="adam")
    """'adam', 'sgd', or an optax optimizer such as optax.adamw."""
    max_grad_norm: float = 10.0
    """Gradients are clipped to this norm; 0: never."""

    __repr__ = short_repr

    def __check_init__(self):
        dqn.check(self)
        validation.require_plain_tolerance(self.tolerance)
        if self.update_tolerance is not None:
            validation.require_plain_tolerance(self.update_tolerance)

    def num_gradient_steps(self, num_updates: int) -> int:
        return dqn.num_gradient_steps(self, num_updates)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_per_objective(
            len(spec.objectives),
            gamma=self.gamma,
            tolerance=self.tolerance,
            update_tolerance=self.update_tolerance,
            return_scale=self.return_scale,
        )
        return dqn.init(self, spec, key)

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return distributions.draw(self.probabilities(state, obs, greedy=greedy), key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """Lexicographic epsilon-greedy; greedy: uniform over `D_M`."""
        epsilon = 0.0 if greedy else self.epsilon(state.replay.added + 1)
        return lex.epsilon_greedy(self.values(state, obs), self._slack(state.num_updates + 1), epsilon)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        def lexmax(
            q: Float[Array, "B M A"], value: Float[Array, "B M A"], time: Array
        ) -> tuple[Float[Array, "B M"], Metrics]:
            sets, best = lex.double_levels(q, value, self._slack(time, update=True))
            sizes = sets[:, 1:].sum(axis=-1).astype(jnp.float32).mean(axis=0)
            return best, {"num_admissible": sizes}

        return dqn.learn(self, state, rollout, key, lexmax)

    def values(self, state: State, obs: Array) -> Float[Array, "M A"]:
        """`Q_i(s, a)` in the units of the returns."""
        q = state.net(obs)
        return q * ac.per_objective(self.return_scale, q.shape[-2])[:, None]

    def _slack(self, time: Array, *, update: bool = False) -> lex.Slack:
        chosen = self.update_tolerance if update and self.update_tolerance is not None else self.tolerance
        return slack(chosen, Moment(time))
