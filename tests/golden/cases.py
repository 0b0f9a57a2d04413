"""Tiny trainings of every algorithm, and what is recorded of each.

Only the tables at the top and the builders below them know the library's own names; the recorded file has stable
names. After a refactoring these change, and the file `golden.json` does not.
"""

import hashlib
import json
import pathlib
import platform
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jaxlib
import numpy as np

import lexrl
from lexrl import Convergence, DualAscent, Networks, PIDLagrangian, units
from lexrl.constraints import as_limits
from lexrl.envs.cost_aware import CostAwareObservation
from lexrl.loops import compiled, host
from lexrl.loops.population import make_population
from lexrl.order import parse
from lexrl.tolerance import Evidence

# Where the library keeps what is recorded: groups of arrays, by their place in an algorithm's state.

Q_TABLE = {
    "q_table": "q",
    "visits": "visits",
    "q_variance": "variance",
    "target_extremes": "extremes",
    "episode": "episode",
    "num_objectives": "num_objectives",
    "num_updates": "num_updates",
}
SARSA = Q_TABLE | {"pending_transition": "pending"}
Q_NETWORK = {
    "q_network": "net",
    "target_network": "target",
    "opt_state": "opt_state",
    "replay": "replay.rows",
    "replay_added": "replay.added",
    "num_updates": "num_updates",
    "return_scale": "scale",
}
LEX_Q_NETWORK = {name: f"agent.{place}" for name, place in Q_NETWORK.items()} | {
    "disagreement": "error",
    "measured": "measured",
    "novelty": "novelty",
    "rewards": "rewards",
    "num_episodes": "num_episodes",
    "num_served": "num_served",
}
ACTOR_CRITIC = {
    "actor": "agent.actor",
    "critic": "agent.critic",
    "actor_opt_state": "agent.actor_opt_state",
    "critic_opt_state": "agent.critic_opt_state",
    "value_scale": "agent.value_scale",
    "mean_reward": "agent.mean_reward",
    "episode_step": "agent.episode_tracker.age",
    "episode_discount": "agent.episode_tracker.weight",
    "episode_discounted_return": "agent.episode_tracker.earned",
    "num_updates": "agent.num_updates",
}
PENALTY = {"penalty_coefficient": "kappa"}
CONVERGENCE = {
    "return_estimates": "convergence.mean",
    "slow_return_estimates": "convergence.slow_mean",
    "return_variance": "convergence.variance",
    "num_episodes": "convergence.num_episodes",
    "stable_episodes": "convergence.num_stable",
    "converged": "convergence.converged",
    "thresholds": "convergence.threshold",
    "num_dual_updates": "convergence.num_updates",
}
MULTIPLIERS = {"multipliers": "multipliers.value", "violations": "multipliers.violation"}
COURSE = {
    "stage": "course.stages.stage",
    "stage_begin": "course.stages.begin",
    "stage_episode": "course.stages.episode_tracker",
    "return_origin": "course.stages.origin",
    "recent_returns": "course.stages.recent",
    "block_returns": "course.stages.block",
    "return_variance": "course.stages.variance",
    "thresholds": "course.stages.threshold",
    "best_returns": "course.stages.best",
    "found": "course.stages.found",
    "at_limit": "course.stages.at_limit",
    "multipliers": "course.multipliers.log",
    "advantage_squares": "course.square",
    "returns_by_block": "course.multipliers.returns",
    "multiplier_lead": "course.multipliers.lead",
    "average_actor": "course.average",
    "num_averaged": "course.num_averaged",
    "references": "course.references",
    "num_references": "course.num_references",
    "restricts": "course.restricts",
    "freedom": "course.freedom",
    "candidates": "course.candidates",
    "columns": "course.columns",
    "mixture_weights": "course.weights",
    "sampled": "course.sampled",
}
PROJECTED = {name: place for name, place in COURSE.items() if "multipliers" not in place} | {"violation": "violation"}
SECOND_ORDER = {"second_order_multipliers": "nu"}
LIMITS = {
    "return_estimates": "lagrangian.mean",
    "num_episodes": "lagrangian.num_episodes",
    "multiplier_integral": "lagrangian.integral",
    "violations": "lagrangian.violation",
    "multipliers": "lagrangian.value",
    "num_dual_updates": "lagrangian.num_updates",
    "undiscounted_step": "episode_tracker.age",
    "undiscounted_weight": "episode_tracker.weight",
    "undiscounted_return": "episode_tracker.earned",
}
OBJECTIVES = {"objective_weights": "objective_weights", "constraint_weights": "constraint_weights"}
APPROPO = {name: f"oracle.{place}" for name, place in Q_NETWORK.items()} | {
    "direction": "direction",
    "constraint_weights": "sides",
    "undiscounted_step": "episode_tracker.age",
    "undiscounted_weight": "episode_tracker.weight",
    "undiscounted_return": "episode_tracker.earned",
    "return_total": "total",
    "num_episodes": "episodes",
    "num_direction_updates": "num_direction_updates",
    "mixture_return": "average",
    "mixture": "mixture",
    "mixture_index": "playing",
}
RANDOM = {"probabilities": "probabilities", "action_low": "low", "action_high": "high"}
ONLY_PPO = {name: f"agent.{place}" for name, place in (ACTOR_CRITIC | PENALTY).items()} | {"column": "column"}

# The same for what the training loop carries from update to update.

ALGORITHM_STATE = "agent"
LOOP_STATE = {
    "loop_observation": "obs",
    "loop_episode_step": "episode_step",
    "loop_episode_return": "episode_return",
    "loop_iteration": "iteration",
}

# Environments and algorithms.

SEEDS = (3, 7)
CHUNKS = 5
ORDERS = {1: "max signal_2", 2: "max signal_2 > min signal_1", 3: "max signal_2 > min signal_1 > max signal_3"}


def finite(objectives: int = 2) -> Any:
    """Six states, three actions; every step may end the episode (5 %), and it is cut off after four steps."""
    process = lexrl.MOMDP.random(2, 6, 3, objectives, num_successors=3, episodic=True)
    return lexrl.FiniteEnv(process, reward_noise=0.2, max_episode_steps=4)


def cart() -> Any:
    return lexrl.CartSafe(observe_cos_sin=True, max_episode_steps=6)


def car() -> Any:
    """Continuous actions."""
    return lexrl.MountainCarSafe(max_episode_steps=6)


def tabular(rule: Callable[..., Any] = lexrl.QLearning, **changes: Any) -> Any:
    settings: dict[str, Any] = {"alpha": "n^-0.6", "exploration": "epsilon 0.3", "initial_q": 0.5, "gamma": 0.9}
    plain = {"tolerance": 0.05, "evidence": None, "guard": None, "min_alpha": 0.0}
    return rule(**(settings | plain | changes))


def networks(**changes: Any) -> Networks:
    return Networks(hidden_sizes=(8,), **({"normalize_observations": False} | changes))


def convergence(**changes: Any) -> Convergence:
    """So eager that objectives converge, and multipliers move, within five updates."""
    return Convergence(stats_window_size=4.0, patience=4.0, **changes)


def lagrangian() -> PIDLagrangian:
    return PIDLagrangian(ki=1.0, stats_window_size=4.0, kp=0.1, kd=0.1)


def actor_critic(kind: Callable[..., Any], **changes: Any) -> Any:
    settings = {
        "num_envs": 4,
        "num_steps": 8,
        "gamma": 0.9,
        "learning_rate": 0.02,
        "critic_learning_rate": 0.03,
        "networks": networks(),
    }
    tuned = {"gae_lambda": 0.95} if kind in (lexrl.A2C, lexrl.PPO, lexrl.LA2C, lexrl.LPPO) else {}
    return kind(**(settings | tuned | changes))


def surrogate(kind: Callable[..., Any], **changes: Any) -> Any:
    return actor_critic(kind, **({"num_epochs": 2, "num_minibatches": 2} | changes))


def staged() -> dict[str, Any]:
    """Stages of two or three updates: in five, the policy is restricted, and multipliers move. Not the defaults, so
    that these may be tuned."""
    stages = lexrl.Stages(
        budget=5.0,
        preview=0.3,
        initial_ent_coef=0.05,
        final_ent_coef=0.02,
        initial_rate=2.0,
        final_rate=0.2,
        critic_initial_rate=2.0,
        critic_final_rate=2.0,
        last_length=1.0,
    )
    multipliers = lexrl.Multipliers(initial_multiplier=1.0, step_size=2.0, decay=8.0, max_multiplier=1e4)
    return {"stages": stages, "multipliers": multipliers, "tolerance": 0.01, "ent_coef": 0.01}


def lppo(kind: Callable[..., Any] = lexrl.PaperLPPO, **changes: Any) -> Any:
    return surrogate(kind, **({"tolerance": 0.01, "convergence": convergence(), "ent_coef": 0.01} | changes))


def la2c(kind: Callable[..., Any] = lexrl.PaperLA2C, **changes: Any) -> Any:
    return actor_critic(kind, **({"tolerance": 0.01, "convergence": convergence(), "ent_coef": 0.01} | changes))


def average_reward(algorithm: Callable[..., Any], kind: Callable[..., Any]) -> Any:
    """Without a discount."""
    return algorithm(lambda gamma, **settings: kind(**settings))


def q_network(kind: Callable[..., Any] = lexrl.LDQN, **changes: Any) -> Any:
    """The buffer is written over, the target network renewed and the guard asked within five updates."""
    sizes: dict[str, Any] = {
        "num_envs": 2,
        "num_steps": 8,
        "hidden_sizes": (8,),
        "buffer_size": 64,
        "learning_starts": 32,
        "batch_size": 8,
        "target_update_interval": 24,
        "polyak": 0.5,
    }
    if kind is lexrl.LDQN:
        sizes["guard"] = lexrl.Guard(num_episodes=1.0, interval=1.0, growth_ends=4.0)
    return kind(
        **(sizes | {"gamma": 0.9, "learning_rate": 0.02, "epsilon": "0.5 to 0.1 in 60", "return_scale": 2.0} | changes)
    )


class Case(NamedTuple):
    """A training."""

    algorithm: Any
    groups: dict[str, str]
    """What to record of the algorithm's state."""
    objectives: int = 2
    env: Any = None
    order: str = ""
    loops: tuple[str, ...] = ("compiled", "host")

    @property
    def updates(self) -> int:
        return 200 if self.groups in (Q_TABLE, SARSA) else 5


COMPILED = ("compiled",)
LPPO_STATE = ACTOR_CRITIC | PENALTY | CONVERGENCE | MULTIPLIERS
LA2C_STATE = ACTOR_CRITIC | CONVERGENCE | MULTIPLIERS
CART_ORDER = "min cost > max reward"


def cases() -> dict[str, Case]:
    """All of them, by name. Variants that only change an update's mathematics run in one loop."""
    return dict(_tabular()) | dict(_q_networks()) | dict(_actor_critics()) | dict(_constrained())


def _tabular() -> Iterator[tuple[str, Case]]:
    rules = {
        "q-learning": lexrl.QLearning,
        "expected-sarsa": lexrl.ExpectedSarsa,
        "double-q": lexrl.DoubleQLearning,
    }
    for name, rule in rules.items():
        yield name, Case(tabular(rule), Q_TABLE)
    yield "sarsa", Case(tabular(lexrl.Sarsa), SARSA)
    yield "gabor", Case(tabular(tolerance=0.0), Q_TABLE)
    variants = {
        "evidence": tabular(evidence=Evidence(0.5, 0.01)),
        "softmax": tabular(exploration="softmax n^-0.3"),
        "update tolerance": tabular(tolerance="5%", update_tolerance="0.01 + 1%"),
    }
    for name, algorithm in variants.items():
        yield f"q-learning, {name}", Case(algorithm, Q_TABLE, loops=COMPILED)
    for name, rule in (rules | {"sarsa": lexrl.Sarsa}).items():
        yield f"{name}, defaults", Case(units.resolve(rule(), 100), SARSA if name == "sarsa" else Q_TABLE)
    yield "q-learning, M=1", Case(tabular(), Q_TABLE, 1, loops=COMPILED)
    yield "q-learning, M=3", Case(tabular(gamma=(0.8, 0.9, 0.95)), Q_TABLE, 3, loops=COMPILED)


def _q_networks() -> Iterator[tuple[str, Case]]:
    yield "DQN", Case(q_network(lexrl.DQN), Q_NETWORK, 1)
    yield "LDQN", Case(q_network(tolerance=0.05), LEX_Q_NETWORK)
    changed = q_network(
        double_q=True, tolerance=0.1, update_tolerance=0.02, gamma=(0.8, 0.9, 0.95), return_scale=(1.0, 2.0, 3.0)
    )
    yield "LDQN, double, M=3", Case(changed, LEX_Q_NETWORK, 3, loops=COMPILED)
    textbook: dict[str, Any] = {
        "evidence": None,
        "explore_prefixes": False,
        "explore_novelty": False,
        "num_members": 1,
        "double_q": False,
    }
    plain = q_network(target_update_interval=0, **textbook)
    yield (
        "LDQN, no target network",
        Case(plain, LEX_Q_NETWORK, env=cart(), order=CART_ORDER, loops=COMPILED),
    )
    units = q_network(num_envs=4, num_steps=4, return_scale=None, polyak=0.1)
    yield "LDQN, units found while learning", Case(units, LEX_Q_NETWORK, loops=COMPILED)


def _actor_critics() -> Iterator[tuple[str, Case]]:
    yield "A2C", Case(actor_critic(lexrl.A2C), ACTOR_CRITIC, 1)
    yield "PPO", Case(surrogate(lexrl.PPO), ACTOR_CRITIC | PENALTY, 1)
    normalized = surrogate(lexrl.PPO, networks=networks(normalize_observations=True))
    yield "PPO, normalized observations", Case(normalized, ACTOR_CRITIC | PENALTY, 1)
    yield "LA2C", Case(actor_critic(lexrl.LA2C, **staged()), ACTOR_CRITIC | COURSE)
    yield "LPPO", Case(surrogate(lexrl.LPPO, **staged()), ACTOR_CRITIC | PENALTY | COURSE)
    gammas = (0.8, 0.9, 0.95)
    yield "LPPO, M=3", Case(surrogate(lexrl.LPPO, **staged(), gamma=gammas), ACTOR_CRITIC | PENALTY | COURSE, 3)
    squashed = actor_critic(lexrl.LA2C, **staged(), networks=networks(squash_output=True))
    yield (
        "LA2C, continuous",
        Case(squashed, ACTOR_CRITIC | COURSE, env=car(), order="max reward > min cost", loops=COMPILED),
    )
    yield "PaperLA2C", Case(la2c(), LA2C_STATE)
    yield "PaperLPPO", Case(lppo(), LPPO_STATE)
    yield "PaperLPPO, M=1", Case(lppo(), LPPO_STATE, 1, loops=COMPILED)
    yield "PaperLPPO, M=3", Case(lppo(gamma=(0.8, 0.9, 0.95), multipliers=DualAscent(damping=0.5)), LPPO_STATE, 3)
    yield (
        "Projection",
        Case(surrogate(lexrl.Projection, stages=staged()["stages"]), ACTOR_CRITIC | PROJECTED),
    )
    yield "Random", Case(lexrl.Random(num_envs=4, num_steps=8), RANDOM)
    yield "Only PPO", Case(lexrl.SingleObjective(surrogate(lexrl.PPO), "signal_1"), ONLY_PPO)
    variants = {
        "average": average_reward(lppo, lexrl.LPPOAverageReward),
        "Q-critic": lppo(lexrl.LPPOQCritic),
        "penalised": lppo(surrogate="kl_penalty", kl_target=0.001),
        "estimates by the surrogate": lppo(return_estimate="surrogate"),
        "weighted": lppo(discounted_states=True),
        "sequential": lppo(convergence=convergence(sequential=True)),
    }
    for name, algorithm in variants.items():
        yield f"PaperLPPO, {name}", Case(algorithm, LPPO_STATE, loops=COMPILED)
    yield "PaperLPPO, second order", Case(lppo(lexrl.LPPOSecondOrder), LPPO_STATE | SECOND_ORDER, loops=COMPILED)
    falling = "max signal_1 > min signal_2"  # as the critic learns, its estimates of signal_1 fall
    yield (
        "PaperLPPO, estimates by the critic",
        Case(lppo(return_estimate="critic"), LPPO_STATE, order=falling, loops=COMPILED),
    )
    plain = networks(optimizer="sgd")
    variants = {
        "average": average_reward(la2c, lexrl.LA2CAverageReward),
        "as in the theory": la2c(
            networks=plain,
            normalize_advantage=False,
            discounted_states=True,
            multipliers=DualAscent(normalize_violation=False),
        ),
    }
    for name, algorithm in variants.items():
        yield f"PaperLA2C, {name}", Case(algorithm, LA2C_STATE, loops=COMPILED)
    yield "PaperLA2C, second order", Case(la2c(lexrl.LA2CSecondOrder), LA2C_STATE | SECOND_ORDER, loops=COMPILED)
    squashed = la2c(networks=networks(squash_output=True), tolerance=0.001)
    yield "PaperLA2C, continuous", Case(squashed, LA2C_STATE, env=car(), order="max reward > min cost", loops=COMPILED)


def _constrained() -> Iterator[tuple[str, Case]]:
    state = ACTOR_CRITIC | LIMITS
    limit = {"constraints": "signal_1 <= -0.5", "lagrangian": lagrangian()}
    yield "RCPO", Case(actor_critic(lexrl.RCPO, **limit), state | OBJECTIVES)
    yield (
        "PPOLagrangian",
        Case(surrogate(lexrl.PPOLagrangian, **limit), state | PENALTY | {"constraint_weights": "reward_weights"}),
    )
    chance = {"chance_constraints": "signal_1 <= 0.2 with 0.9", "lagrangian": lagrangian()}
    shown = CostAwareObservation.wrap(finite(), as_limits("signal_1 <= 0.2"))
    risk_state = state | OBJECTIVES | {"quantile": "quantile"}
    yield "VaRAC", Case(actor_critic(lexrl.VaRAC, **chance), risk_state, env=shown)
    yield (
        "VaRAC, CVaR",
        Case(actor_critic(lexrl.VaRAC, risk_measure="cvar", **chance), risk_state, env=shown, loops=COMPILED),
    )
    box = "signal_1 in -1..-0.5, signal_2 in 0.5..1"
    yield "ApproPO", Case(lexrl.ApproPO(target_set=box, mixture_size=3, oracle=q_network(lexrl.DQN)), APPROPO)


def train(case: Case, loop: str) -> Any:
    """The chunks of a training, two seeds on one device."""
    env = finite(max(2, case.objectives)) if case.env is None else case.env
    order = parse(case.order or ORDERS[case.objectives])
    agents = make_population(case.algorithm, env, order, SEEDS, jax.devices()[:1])
    steps = case.updates * case.algorithm.num_envs * case.algorithm.num_steps
    if loop == "compiled":
        return compiled.advance(agents, compiled.start(agents), steps, num_log_points=CHUNKS)
    return host.advance(agents, env, host.start(agents, env), steps, num_log_points=CHUNKS)


def with_other_numbers(algorithm: Any) -> Any:
    """The same algorithm with every float hyper-parameter a little smaller: no new program."""
    return jax.tree.map(lambda leaf: 0.98 * leaf if isinstance(leaf, float) else leaf, algorithm)


# What is recorded.

FILE = pathlib.Path(__file__).with_name("golden.json")


def measure(case: Case, loop: str) -> dict[str, Any]:
    """Train, and give hash and floats of every group of the last state and of every metric."""
    chunks = list(train(case, loop))
    assert not chunks[-1].faults
    last = chunks[-1].train_states
    algorithm_state = attrgetter(ALGORITHM_STATE)(last)
    state = {name: jax.tree.leaves(attrgetter(place)(algorithm_state)) for name, place in case.groups.items()}
    recorded, all_of_it = sum(map(len, state.values())), len(jax.tree.leaves(algorithm_state))
    assert recorded == all_of_it, f"{recorded} of {all_of_it} arrays of the state are recorded"
    state |= {name: jax.tree.leaves(attrgetter(place)(last)) for name, place in LOOP_STATE.items()}
    metrics = {name: np.stack([chunk.metrics[name] for chunk in chunks]) for name in chunks[0].metrics}
    return {
        "state": {name: {"sha256": digest(leaves), "sums": sums(leaves)} for name, leaves in state.items() if leaves},
        "metrics": {name: {"sha256": digest([each]), "values": floats(each)} for name, each in metrics.items()},
    }


def digest(leaves: list[Any]) -> str:
    """Over the raw bytes of the arrays, one after the other; every NaN counts as the same."""
    whole = hashlib.sha256()
    for leaf in map(np.asarray, leaves):
        array = np.where(np.isnan(leaf), np.array(np.nan, leaf.dtype), leaf) if leaf.dtype.kind == "f" else leaf
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()


def sums(leaves: list[Any]) -> list[float | None]:
    """Sum and sum of squares of each array, in double precision."""
    wide = [np.asarray(leaf).astype(np.float64) for leaf in leaves]
    return floats(np.array([[leaf.sum(), (leaf**2).sum()] for leaf in wide]))


def floats(array: np.ndarray) -> list[float | None]:
    """All values in a row, with nine digits; None where there is none."""
    return [None if np.isnan(value) else float(f"{value:.9g}") for value in np.asarray(array, np.float64).ravel()]


def compilations(name: str) -> dict[str, int]:
    """How many programs a training compiles: the first time, and again with other float hyper-parameters."""
    events = []
    case = cases()[name]
    changed = case._replace(algorithm=with_other_numbers(case.algorithm))

    def count(event: str, *_: Any, **__: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            events.append(event)

    def run(case: Case) -> int:
        before = len(events)
        list(train(case, "compiled"))
        return len(events) - before

    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        return {"first": run(case), "other_numbers": run(changed)}
    finally:
        jax.monitoring.unregister_event_duration_listener(count)


COUNTED = ("q-learning", "LDQN", "LA2C", "LPPO", "PaperLA2C", "PaperLPPO")


def fingerprint() -> dict[str, str]:
    """What the last bits depend on: the processor and the versions of what computes."""
    processor = {}
    cpu = pathlib.Path("/proc/cpuinfo")
    for line in cpu.read_text().splitlines() if cpu.exists() else ():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "flags") and key.strip() not in processor:
            processor[key.strip()] = value.strip()
    return {
        "machine": platform.machine(),
        "cpu": processor.get("model name", platform.processor()),
        "cpu_flags": processor.get("flags", ""),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
    }


def recorded() -> dict[str, Any]:
    """The file."""
    return json.loads(FILE.read_text())
