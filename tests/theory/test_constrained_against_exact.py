"""Learners with limits against ground truth: small layered MOMDPs whose constrained optimum is a linear program.

An episode passes three layers of three states; whole costs, and rewards that grow with them, so that limits bind. With
`C(pi)` what a policy spends (its cost, or its risk) and `V(c)` the most reward for spending c, by the program, a
learner has found the constrained optimum if

    |C(pi) - limit| <= CLOSE        and        J_reward(pi) >= (1 - SHORT) V(C(pi))

where both are computed exactly from the learned table of chances. A limit half-way between the least cost and what the
best reward costs always binds, and the best policy is randomised. Risk needs to know what was spent: there the process
is one of pairs of a state and the cost so far, built here, apart from the package's own.

The settings were chosen on the world of every day and on worlds from 300 on; the long worlds played no part in it.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import DQN, LA2C, LPPO, RCPO, ApproPO, Networks, PIDLagrangian, PPOLagrangian, Projection, VaRAC, exact
from lexrl.schedules import Constant

LAYERS, WIDTH, ACTIONS = 3, 3, 3
END = LAYERS * WIDTH
MOST = 2 * LAYERS
"""The largest cost of an episode."""
ORDER = "min cost > max reward"
QUICK, LONG = (201,), tuple(range(210, 218))
"""Seeds of the worlds."""
CLOSE, SHORT = 0.1, 0.02
TABLE = Networks(hidden_sizes=(), use_bias=False)
LIMITS, KEPT = {"var": 3, "cvar": 3.5}, 0.8
"""Episodes are to cost no more than this, so often, or in the mean of the worst others."""
UPDATES = 3000


@functools.cache
def layered(seed):
    rng = np.random.default_rng(seed)
    transitions, rewards = np.zeros((END + 1, ACTIONS, END + 1)), np.zeros((2, END + 1, ACTIONS))
    for state in range(END):
        layer = state // WIDTH
        for action in range(ACTIONS):
            if layer == LAYERS - 1:
                transitions[state, action, END] = 1
            else:
                transitions[state, action, (layer + 1) * WIDTH : (layer + 2) * WIDTH] = rng.dirichlet(np.ones(WIDTH))
            cost = rng.integers(0, 3)
            rewards[:, state, action] = rng.uniform(0, 1) + 0.7 * cost, cost
    transitions[END, :, END] = 1
    first = np.repeat([1 / WIDTH, 0], [WIDTH, END + 1 - WIDTH])
    return lexrl.MOMDP.from_arrays(transitions, rewards, 1.0, initial=first, terminal=[END], signals=("reward", "cost"))


def most_reward(process, spent, allowed):
    """`V(allowed)`: the most reward of a policy that spends no more of that signal."""
    order = f"min {spent} > max reward"
    least = -exact.solve(process, order).returns[0]
    return exact.solve_slack(process, order, slack=(max(allowed - least, 0.0), 0.0)).returns[1]


def worth(process, policy, spent):
    """What a policy spends, and its reward."""
    negative, reward = exact.evaluate(process, policy, f"min {spent} > max reward").returns
    return -negative, reward


def trained(algorithms, seeds, first, updates=UPDATES, block=384):
    worlds = lexrl.per_seed([lexrl.FiniteEnv(layered(seed), max_episode_steps=LAYERS + 1) for seed in seeds])
    numbers = range(first, first + len(seeds))
    result = lexrl.train(algorithms, worlds, ORDER, seeds=numbers, total_timesteps=block * updates, num_log_points=1)
    assert not result.faults
    return result


def both(quick, slow):
    """Worlds of every day, and more for the long tests."""
    return [*quick, *(pytest.param(seed, marks=pytest.mark.slow) for seed in slow)]


def group(seed):
    """Worlds that are learned by one program."""
    return QUICK if seed in QUICK else LONG


def middle(process):
    """A limit that binds."""
    least = worth(process, exact.solve(process, ORDER).policy, "cost")[0]
    return round(0.5 * (least + worth(process, exact.solve(process, "max reward > min cost").policy, "cost")[0]), 2)


COMMON = {
    "networks": TABLE, "num_envs": 64, "num_steps": 6, "gamma": 1.0, "gae_lambda": 1.0, "critic_learning_rate": 0.03
}  # fmt: skip
MEAN = {
    "RCPO": lambda limit: RCPO(
        constraints=limit, learning_rate=f"0.03 to 0.0003 in {UPDATES}",
        lagrangian=PIDLagrangian(ki=0.1, stats_window_size=300.0, kp=1.0), **COMMON,
    ),
    "PPOLagrangian": lambda limit: PPOLagrangian(
        constraints=limit, learning_rate=f"0.01 to 0.0001 in {UPDATES}", num_minibatches=1,
        lagrangian=PIDLagrangian(ki=0.1, stats_window_size=300.0, kp=1.0), **COMMON,
    ),
}  # fmt: skip


@functools.cache
def learned_means(name, seeds):
    algorithms = [MEAN[name](f"cost <= {middle(layered(seed))}") for seed in seeds]
    return trained(algorithms, seeds, 7000)


@pytest.mark.parametrize("seed", both(QUICK, LONG))
@pytest.mark.parametrize("name", MEAN)
def test_a_limit_on_the_mean(name, seed):
    process, place = layered(seed), group(seed).index(seed)
    limit = middle(process)
    result = learned_means(name, group(seed))
    cost, reward = worth(process, result.probabilities(deterministic=False)[place], "cost")
    assert cost == pytest.approx(limit, abs=CLOSE)
    assert reward >= (1 - SHORT) * most_reward(process, "cost", cost)


LEXICOGRAPHIC = {
    "LPPO": (lambda **more: LPPO(learning_rate=0.02, num_minibatches=1, **more), 1000),
    "LA2C": (lambda **more: LA2C(learning_rate=0.03, **more), 2000),
    "Projection": (lambda **more: Projection(learning_rate=0.02, num_minibatches=1, **more), 1000),
}  # fmt: skip
"""With the number of updates."""
LEARNERS, ENOUGH = 3, 2


@functools.cache
def learned_limits(name, seeds):
    """The exact (cost, reward) of each learner `[worlds, 3, learners, 2]`, where the limit is one that binds, one that
    no policy satisfies, and one that every policy does: one program."""
    make, updates = LEXICOGRAPHIC[name]
    limits = [limit for seed in seeds for limit in (middle(layered(seed)), -1.0, MOST) for _ in range(LEARNERS)]
    each = [make(limits=(-float(limit), np.inf), **COMMON) for limit in limits]
    worlds = [seed for seed in seeds for _ in range(3 * LEARNERS)]
    policies = trained(each, worlds, 7300, updates=updates).probabilities(deterministic=False)
    found = [worth(layered(seed), policy, "cost") for seed, policy in zip(worlds, policies, strict=True)]
    return np.array(found).reshape(len(seeds), 3, LEARNERS, 2)


@pytest.mark.parametrize("seed", both(QUICK, LONG))
@pytest.mark.parametrize("name", LEXICOGRAPHIC)
class TestLimitsInTheOrder:
    """`cost <= limit > max reward`: as learners may fail by bad luck, two of three must succeed."""

    def found(self, name, seed, kind):
        return learned_limits(name, group(seed))[group(seed).index(seed), kind]

    def test_one_that_binds(self, name, seed):
        process, found = layered(seed), self.found(name, seed, 0)
        reached = [
            abs(cost - middle(process)) <= CLOSE and reward >= (1 - SHORT) * most_reward(process, "cost", cost)
            for cost, reward in found
        ]
        assert sum(reached) >= ENOUGH, found.tolist()

    def test_one_that_cannot_be_satisfied_is_approached(self, name, seed):
        least = -exact.solve(layered(seed), ORDER).returns[0]
        found = self.found(name, seed, 1)
        assert (found[:, 0] <= least + CLOSE).sum() >= ENOUGH, found.tolist()

    def test_one_that_does_not_bind_costs_nothing(self, name, seed):
        top = exact.solve(layered(seed), "max reward > min cost").returns[0]
        found = self.found(name, seed, 2)
        assert (found[:, 1] >= (1 - SHORT) * top).sum() >= ENOUGH, found.tolist()


def with_spending(process, risk):
    """The process of pairs (state, cost so far); `risk(C)` is paid when the episode is over."""
    n, kinds = END + 1, MOST + 1
    plain = np.asarray(process.transitions.todense()).reshape(n, ACTIONS, n)
    transitions, rewards = np.zeros((n, kinds, ACTIONS, n, kinds)), np.zeros((2, n, kinds, ACTIONS))
    for state in range(n):
        for spent in range(kinds):
            for action in range(ACTIONS):
                reward, cost = process.rewards[:, state, action]
                after = min(MOST, spent + round(cost))
                if state == END:
                    transitions[state, spent, action, state, spent] = 1
                    continue
                transitions[state, spent, action, :, after] = plain[state, action]
                rewards[:, state, spent, action] = reward, risk(after) * plain[state, action, END]
    first = np.zeros((n, kinds))
    first[:, 0] = process.initial
    size = n * kinds
    ends = [END * kinds + spent for spent in range(kinds)]
    return lexrl.MOMDP.from_arrays(
        transitions.reshape(size, ACTIONS, size), rewards.reshape(2, size, ACTIONS), 1.0, initial=first.ravel(),
        terminal=ends, signals=("reward", "risk"),
    )  # fmt: skip


def spread_out(table, limit):
    """A policy that knows costs up to just beyond the limit, for those who count them all."""
    whole = int(limit)
    known = table.reshape(END + 1, whole + 2, ACTIONS)
    return known[:, np.minimum(np.arange(MOST + 1), whole + 1)].reshape(-1, ACTIONS)


# Without the large proportional parts, the prices swing about the right one.
PRICES = {
    "var": PIDLagrangian(ki=Constant(3.0), stats_window_size=300.0, kp=30.0),
    # The quantile must move slowly: where costs are whole, it jumps for small changes of the policy.
    "cvar": PIDLagrangian(ki=Constant(0.3), stats_window_size=3000.0, kp=3.0),
}


def risky(measure):
    return VaRAC(
        chance_constraints=f"cost <= {LIMITS[measure]} with {KEPT}", risk_measure=measure,
        learning_rate=f"0.03 to 0.0003 in {UPDATES}",
        lagrangian=PRICES[measure], **COMMON,
    )  # fmt: skip


@functools.cache
def learned_risks(measure, seeds):
    return trained(risky(measure), seeds, 7100)


@pytest.mark.parametrize("seed", both(QUICK, LONG))
def test_a_limit_on_the_chance(seed):
    limit = LIMITS["var"]
    process = with_spending(layered(seed), lambda cost: float(cost > limit))
    table = learned_risks("var", group(seed)).probabilities(deterministic=False)[group(seed).index(seed)]
    chance, reward = worth(process, spread_out(table, limit), "risk")
    assert worth(process, exact.solve(process, "max reward > min risk").policy, "risk")[0] > 2 * (1 - KEPT)
    assert chance == pytest.approx(1 - KEPT, abs=0.03)
    assert reward >= (1 - SHORT) * most_reward(process, "risk", chance)


def cvar(process, policy):
    """`min over nu of nu + E[(C - nu)+] / (1 - p)`: for whole costs some whole nu is the best."""
    beyond = [
        worth(with_spending(process, lambda cost, nu=nu: max(cost - nu, 0)), policy, "risk") for nu in range(MOST)
    ]
    return min(nu + excess / (1 - KEPT) for nu, (excess, _) in enumerate(beyond)), beyond[0][1]


def most_reward_under_cvar(process, allowed):
    """For each whole nu a program; the best of these."""
    best = -np.inf
    for nu in range(int(allowed) + 1):
        pairs = with_spending(process, lambda cost, nu=nu: max(cost - nu, 0))
        least = -exact.solve(pairs, "min risk > max reward").returns[0]
        if least <= (1 - KEPT) * (allowed - nu):
            best = max(best, most_reward(pairs, "risk", (1 - KEPT) * (allowed - nu)))
    return best


@pytest.mark.parametrize("seed", both(QUICK, LONG))
def test_a_limit_on_the_mean_of_the_worst(seed):
    process = layered(seed)
    table = learned_risks("cvar", group(seed)).probabilities(deterministic=False)[group(seed).index(seed)]
    risk, reward = cvar(process, spread_out(table, LIMITS["cvar"]))
    assert risk == pytest.approx(LIMITS["cvar"], abs=CLOSE)
    assert reward >= (1 - SHORT) * most_reward_under_cvar(process, risk)


def boxes(seed):
    """One that is just feasible, by the program, and one that is a unit of reward beyond what any policy has."""
    process = layered(seed)
    limit, top = middle(process), exact.solve(process, "max reward > min cost").returns[0]
    within = most_reward(process, "cost", limit) - 0.02
    return f"reward in {within:.3f}..9, cost in 0..{limit}", f"reward in {top + 1:.3f}..9, cost in 0..9"


ORACLE = DQN(
    num_envs=16,
    num_steps=4,
    hidden_sizes=(),
    use_bias=False,
    gamma=1.0,
    learning_rate=0.02,
    epsilon=0.1,
    num_members=1,
    target_update_interval=1600,
    polyak=1.0,
    double_q=False,
    buffer_size=6400,
    learning_starts=64,
    gradient_steps=2,
    batch_size=256,
)
TURNED = 9000
MIXED = 500
"""Policies that are kept."""


@functools.cache
def mixtures(seeds):
    """For each world, first in the feasible box, then in the other: the exact (reward, cost) of the mixture."""
    algorithms = [
        ApproPO(target_set=boxes(seed)[kind], episodes_per_update=64, mixture_size=MIXED, oracle=ORACLE)
        for kind in (0, 1)
        for seed in seeds
    ]
    result = trained(algorithms, seeds * 2, 7200, updates=TURNED, block=64)
    found = []
    for place, (algorithm, seed) in enumerate(zip(algorithms, seeds * 2, strict=True)):
        learner = result.agent(place)
        assert learner.num_direction_updates > MIXED

        def chances(part, seen, algorithm=algorithm, agent=learner):
            return algorithm.probabilities(agent._replace(playing=part), seen, greedy=True)

        over = jax.vmap(jax.vmap(chances, (None, 0)), (0, None))
        tables = np.asarray(over(jnp.arange(MIXED), jnp.arange(END + 1)), float)
        tables /= tables.sum(axis=-1, keepdims=True)
        found.append(np.mean([worth(layered(seed), table, "cost")[::-1] for table in tables], axis=0))
    return found[: len(seeds)], found[len(seeds) :]


@pytest.mark.parametrize("seed", both(QUICK, LONG))
def test_a_mixture_in_the_box(seed):
    """Within a feasible box but for a little: no single deterministic policy, such as its parts are, need be in it."""
    reward, cost = mixtures(group(seed))[0][group(seed).index(seed)]
    limit = middle(layered(seed))
    assert cost <= limit + CLOSE
    assert reward >= (1 - SHORT) * (most_reward(layered(seed), "cost", limit) - 0.02)


@pytest.mark.parametrize("seed", both(QUICK, LONG))
def test_a_mixture_as_near_as_can_be(seed):
    """No policy is in the other box: the nearest has the most reward there is, whatever it costs."""
    reward, _ = mixtures(group(seed))[1][group(seed).index(seed)]
    top = exact.solve(layered(seed), "max reward > min cost").returns[0]
    assert reward >= (1 - SHORT) * top
