"""What cannot work is said in one sentence, before anything is compiled: settings, and worlds that do not fit."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import pytest

import lexrl
from lexrl import Convergence, DualAscent, Networks
from lexrl.algorithms.projection import Projection
from lexrl.order import parse
from lexrl.runs import plan
from lexrl.schedules import Constant, Linear, Power
from lexrl.tolerance import Absolute, Evidence, Relative
from lexrl.types import Box, Discrete, Spec

CART, CAR = lexrl.CartSafe(max_episode_steps=20), lexrl.MountainCarSafe(max_episode_steps=20)
BOTH = "min cost > max reward"
STEPS = 10_000
ALL = {
    "PPO": lexrl.PPO, "A2C": lexrl.A2C, "DQN": lexrl.DQN, "LPPO": lexrl.LPPO, "LA2C": lexrl.LA2C, "LDQN": lexrl.LDQN,
    "Projection": Projection, "RCPO": lexrl.RCPO, "PPOLagrangian": lexrl.PPOLagrangian, "VaRAC": lexrl.VaRAC,
    "PaperLPPO": lexrl.PaperLPPO, "PaperLA2C": lexrl.PaperLA2C,
    "LPPOSecondOrder": lexrl.LPPOSecondOrder, "LA2CSecondOrder": lexrl.LA2CSecondOrder,
    "LPPOAverageReward": lexrl.LPPOAverageReward, "LA2CAverageReward": lexrl.LA2CAverageReward,
    "LPPOQCritic": lexrl.LPPOQCritic,
}  # fmt: skip
DISCOUNTED = [name for name in ALL if "AverageReward" not in name]
SINGLE = ("PPO", "A2C", "DQN")
CONSTRAINED = ("RCPO", "PPOLagrangian", "VaRAC")
ACTORS = ("PPO", "A2C", "LPPO", "LA2C", "PaperLPPO", "PaperLA2C", "Projection", *CONSTRAINED)
MINIBATCHES = (
    "PPO", "LPPO", "Projection", "PPOLagrangian", "PaperLPPO", "LPPOSecondOrder", "LPPOAverageReward", "LPPOQCritic"
)  # fmt: skip
Q_NETWORKS = ("DQN", "LDQN")
LEXICOGRAPHIC = (
    "LPPO", "LA2C", "LDQN", "Projection", "PaperLPPO", "PaperLA2C", "LPPOSecondOrder", "LA2CSecondOrder", "LPPOQCritic"
)  # fmt: skip
WITH_MULTIPLIERS = (
    "PaperLPPO", "PaperLA2C", "LPPOSecondOrder", "LA2CSecondOrder", "LPPOAverageReward", "LA2CAverageReward",
    "LPPOQCritic",
)  # fmt: skip


def planned(name, world=CART, order=None, **settings):
    """As a user would begin: the algorithm is made, then a run of it."""
    return plan(
        ALL[name](**settings),
        world,
        order or ("max reward" if name in SINGLE else BOTH),
        seeds=1,
        total_timesteps=STEPS,
    )


def said(name, *parts, **settings):
    """One sentence (or two), with all of these parts in their order."""
    with pytest.raises(lexrl.InputError) as error:
        planned(name, **settings)
    check(str(error.value), *parts)


def check(sentence, *parts):
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert 20 < len(sentence) < 300
    at = 0
    for part in parts:
        assert part in sentence[at:], (part, sentence)
        at = sentence.index(part, at)


def each(names, cases):
    """Every case for every algorithm."""
    return [pytest.param(name, *case, id=f"{name} {case[0]}") for name in names for case in cases]


class TestCounts:
    @pytest.mark.parametrize("count", [0, -1, -16])
    @pytest.mark.parametrize(
        ("name", "what"),
        each(ALL, [("num_envs",), ("num_steps",)])
        + each(MINIBATCHES, [("num_epochs",), ("num_minibatches",)])
        + each(Q_NETWORKS, [("batch_size",), ("gradient_steps",)]),
    )
    def test_at_least_one(self, name, what, count):
        said(name, f"{what} is {count}", "1 or more", **{what: count})

    @pytest.mark.parametrize("name", MINIBATCHES)
    @pytest.mark.parametrize(("num_steps", "num_envs", "parts"), [(5, 3, 2), (8, 8, 3), (1, 1, 2)])
    def test_minibatches_that_do_not_divide_the_rollout(self, name, num_steps, num_envs, parts):
        said(
            name,
            f"{num_steps} steps of {num_envs} environments make {num_steps * num_envs} transitions",
            f"{parts} minibatches do not divide",
            "change one",
            num_steps=num_steps,
            num_envs=num_envs,
            num_minibatches=parts,
        )

    @pytest.mark.parametrize("name", Q_NETWORKS)
    @pytest.mark.parametrize("capacity", [0, -64])
    def test_a_buffer_without_room(self, name, capacity):
        said(name, f"buffer_size is {capacity}; it must be 1 or more", buffer_size=capacity)

    @pytest.mark.parametrize("name", Q_NETWORKS)
    @pytest.mark.parametrize(("capacity", "instead"), [(33, "32"), (1000, "992"), (31, "32"), (1, "32")])
    def test_a_buffer_that_blocks_do_not_fill(self, name, capacity, instead):
        said(
            name, f"buffer_size is {capacity}", "multiple", "32 transitions (2 steps of 16 environments)",
            f"try {instead}", buffer_size=capacity, learning_starts=0,
        )  # fmt: skip
        planned(name, buffer_size=int(instead), learning_starts=0)  # the advice is good

    @pytest.mark.parametrize("name", Q_NETWORKS)
    def test_a_double_learner_without_a_target_network(self, name):
        said(
            name,
            "needs a target network",
            "target_update_interval is 0",
            "such as 8000",
            double_q=True,
            target_update_interval=0,
        )

    @pytest.mark.parametrize("name", Q_NETWORKS)
    def test_a_warmup_that_never_ends(self, name):
        said(name, "learning_starts is 65", "holds only 64", buffer_size=64, learning_starts=65)
        planned(name, buffer_size=64, learning_starts=64)


class TestOneEach:
    """Settings given one each, for another number of objectives."""

    @pytest.mark.parametrize("many", [1, 3])
    @pytest.mark.parametrize("name", LEXICOGRAPHIC)
    def test_gamma(self, name, many):
        said(name, f"gamma has {many} entries", "2 objectives", "one for all, or one each", gamma=(0.9,) * many)

    @pytest.mark.parametrize("many", [1, 3])
    @pytest.mark.parametrize("name", LEXICOGRAPHIC)
    def test_tolerance(self, name, many):
        said(name, f"{many} tolerances", "2 objectives", "one for all", tolerance=(0.1,) * many)
        with pytest.raises(lexrl.InputError, match=f"tolerance has {many} entries for 2 objectives"):
            started(ALL[name](tolerance=(0.1,) * many), parse(BOTH).spec(CART.spec))

    @pytest.mark.parametrize("many", [1, 3])
    @pytest.mark.parametrize("what", ["return_scale", "update_tolerance"])
    def test_of_the_q_network(self, what, many):
        said("LDQN", f"{what} has {many} entries", "2 objectives", **{what: (0.5,) * many})

    @pytest.mark.parametrize("many", [1, 3])
    @pytest.mark.parametrize("name", WITH_MULTIPLIERS)
    def test_beta(self, name, many):
        said(name, f"beta has {many} rates for 2 objectives", "or 2", multipliers=DualAscent(beta=(1.0,) * many))

    @pytest.mark.parametrize("many", [1, 2, 4])
    @pytest.mark.parametrize("name", WITH_MULTIPLIERS)
    def test_eta(self, name, many):
        """One more than there are objectives: the i-th holds once i have settled."""
        said(name, f"eta has {many} rates for 2 objectives", "or 3", multipliers=DualAscent(eta=(1.0,) * many))

    @pytest.mark.parametrize("name", LEXICOGRAPHIC)
    def test_the_right_number_passes(self, name):
        more = {"return_scale": (1.0, 2.0), "update_tolerance": (0.1, 0.2)} if name == "LDQN" else {}
        if name in ("PaperLPPO", "PaperLA2C"):
            more = {"multipliers": DualAscent(beta=(1.0, 0.5), eta=(1.0, 0.5, 0.1))}
        run = planned(name, gamma=(0.9, 0.8), tolerance=(0.1, Relative(0.2)), **more)
        assert run.algorithm.tolerance == (Absolute(0.1), Relative(0.2))


class TestContradictingRates:
    """A less important objective whose rate falls more slowly becomes the most important one in the end."""

    WRONG: ClassVar = {
        "beta powers": ({"beta": (Power(0.9), Power(0.6))}, ("Rate 2 of beta (n^-0.6)", "rate 1 (n^-0.9)")),
        "beta power, constant": ({"beta": (Power(0.6), Constant(1.0))}, ("Rate 2 of beta (1)", "rate 1 (n^-0.6)")),
        "beta to 0, power": ({"beta": (Linear(1.0, 0.0, 9.0), 1.0)}, ("Rate 2 of beta (1)", "rate 1 (1 to 0 in 9)")),
        "eta, the last": ({"eta": (1.0, Power(0.6), 1.0)}, ("Rate 3 of eta (1)", "rate 2 (n^-0.6)")),
        "written": ({"beta": ("n^-0.9", "n^-0.6")}, ("Rate 2 of beta (n^-0.6)", "rate 1 (n^-0.9)")),
    }

    @pytest.mark.parametrize("case", WRONG)
    @pytest.mark.parametrize("name", WITH_MULTIPLIERS)
    def test_it_is_said(self, name, case):
        rates, parts = self.WRONG[case]
        said(name, *parts, "order of importance", "try", multipliers=DualAscent(**rates))

    @pytest.mark.parametrize(
        "rates",
        [
            {"beta": (Power(0.6), Power(0.9))},
            {"beta": (1.0, 2.0)},  # ratios stay as they are
            {"beta": (1.0, Power(0.6)), "eta": (1.0, Power(0.6), Power(0.6))},
            {"beta": (1.0, 0.0)},
        ],
    )
    def test_what_keeps_the_order_passes(self, rates):
        planned("PaperLPPO", multipliers=DualAscent(**rates))
        planned("PaperLA2C", multipliers=DualAscent(**rates))


class TestObjectives:
    @pytest.mark.parametrize(("name", "instead"), [("PPO", "LPPO"), ("A2C", "LA2C"), ("DQN", "LDQN")])
    def test_one_objective(self, name, instead):
        said(name, f"{name} optimizes one objective", "2 (cost, reward)", f"use {instead}", order=BOTH)

    @pytest.mark.parametrize("name", [name for name in LEXICOGRAPHIC if name != "LDQN"])
    def test_evidence_is_no_tolerance(self, name):
        for tolerance in (Evidence(), (0.1, Evidence())):
            said(name, "Evidence is no tolerance", "absolute or relative", tolerance=tolerance)

    @pytest.mark.parametrize("name", LEXICOGRAPHIC)
    def test_negative_tolerances(self, name):
        said(name, "absolute tolerance is -0.1", "0 or more", tolerance=-0.1)


@pytest.mark.parametrize("rate", [-1e-3, float("nan")])
@pytest.mark.parametrize("name", ALL)
def test_negative_rates(name, rate):
    said(name, "rate", f"{rate:g}", "0 or more", learning_rate=rate)


@pytest.mark.parametrize(
    ("name", "what"),
    each(ACTORS, [("critic_learning_rate",)])
    + each(["PPO", "A2C", "LPPO", "LA2C", "PaperLPPO", "PaperLA2C", *CONSTRAINED], [("ent_coef",)]),
)
def test_negative_rates_are_named(name, what):
    said(name, f"The {what} is -1", "0 or more", **{what: -1})


@pytest.mark.parametrize("text", ["fast", "1e-3 to", "n^2", ""])
@pytest.mark.parametrize("name", ALL)
def test_rates_that_cannot_be_read(name, text):
    said(name, f"{text!r} cannot be read", "write a number", learning_rate=text)


class TestLimits:
    """What is limited must be there, and one objective must be left to improve."""

    LIMITED: ClassVar = {"RCPO": "constraints", "PPOLagrangian": "constraints", "VaRAC": "chance_constraints"}

    @pytest.mark.parametrize("name", CONSTRAINED)
    def test_unknown_signals(self, name):
        what, end = self.LIMITED[name], " with 0.9" if name == "VaRAC" else ""
        said(name, "A limit names 'risk'", "'reward'", **{what: f"risk <= 3{end}"})

    @pytest.mark.parametrize("name", CONSTRAINED)
    def test_nothing_is_left(self, name):
        what, end = self.LIMITED[name], " with 0.9" if name == "VaRAC" else ""
        said(name, "the one objective that has no limit", "there is none", "all but one",
             **{what: f"cost <= 3{end}, reward >= 2{end}"})  # fmt: skip

    @pytest.mark.parametrize("name", CONSTRAINED)
    def test_a_limit_on_what_the_order_leaves_out(self, name):
        said(name, "A limit names 'cost'", "the order has 'reward'", order="max reward")

    def test_a_box(self):
        for box, parts in (("risk in 0..3", ("names 'risk'", "'cost', 'reward'")), ("cost in 3..1", ("is empty",))):
            with pytest.raises(lexrl.InputError) as error:
                plan(lexrl.ApproPO(target_set=box), CART, BOTH, seeds=1, total_timesteps=100)
            check(str(error.value), *parts)

    @pytest.mark.parametrize(
        ("settings", "part"),
        [
            ({"episodes_per_update": 0}, "episodes_per_update is 0"),
            ({"mixture_size": 0}, "mixture_size is 0"),
            ({"kappa": 0.0}, "kappa is 0"),
            ({"eta": -1}, "eta is -1"),
        ],
    )
    def test_numbers_of_a_mixture(self, settings, part):
        with pytest.raises(lexrl.InputError, match=part):
            lexrl.ApproPO(**settings)

    def test_an_oracle_needs_discrete_actions(self):
        with pytest.raises(lexrl.InputError) as error:
            plan(lexrl.ApproPO(), CAR, BOTH, seeds=1, total_timesteps=100)
        check(str(error.value), "needs discrete actions", "Box(shape=(1,)")

    def test_only_one_that_is_there(self):
        with pytest.raises(lexrl.InputError) as error:
            plan(lexrl.SingleObjective(lexrl.PPO(), "risk"), CART, BOTH, seeds=1, total_timesteps=100)
        check(str(error.value), "objective is 'risk'", "'cost', 'reward'", "pick one")


def started(algorithm, spec):
    return jax.eval_shape(lambda key: algorithm.init(spec, key), jax.random.key(0))


def world_of(action=None, observation=None, name="PPO"):
    names = ("reward",) if name in SINGLE else ("reward", "cost")
    return Spec(observation or Box((2,)), action or Discrete(2), names, 9)


class TestActions:
    @pytest.mark.parametrize("name", Q_NETWORKS)
    def test_q_networks_need_discrete_ones(self, name):
        said(name, "needs discrete actions", "Box(shape=(1,)", "LPPO or LA2C", world=CAR)

    def test_q_critics_need_discrete_ones(self):
        said("LPPOQCritic", "Q-critics need discrete actions", "Box(shape=(1,)", "use LPPO", world=CAR)
        planned("LPPOQCritic")

    @pytest.mark.parametrize("bounds", [(), (0.0,), (float("-inf"), 1.0)])
    @pytest.mark.parametrize("name", ACTORS)
    def test_squashing_needs_bounds(self, name, bounds):
        spec = world_of(Box((2,), *bounds), name=name)
        with pytest.raises(lexrl.InputError) as error:
            started(ALL[name](networks=Networks(squash_output=True)), spec)
        check(str(error.value), "Actions lie in (", "inf", "squash_output needs finite bounds", "leave it out")
        started(ALL[name](), spec)

    @pytest.mark.parametrize("shape", [(), (2, 2), (1, 3)])
    @pytest.mark.parametrize("name", ACTORS)
    def test_actions_are_vectors(self, name, shape):
        with pytest.raises(lexrl.InputError) as error:
            started(ALL[name](), world_of(Box(shape, -1.0, 1.0), name=name))
        check(str(error.value), f"shape {shape}", "actions that are vectors")

    @pytest.mark.parametrize("name", ACTORS)
    def test_densities_are_no_probabilities(self, name):
        algorithm, spec = ALL[name](), world_of(Box((2,)), name=name)
        state = started(algorithm, spec)
        with pytest.raises(lexrl.InputError, match="densities, not"):
            jax.eval_shape(lambda state: algorithm.probabilities(state, jnp.zeros(2)), state)


@pytest.mark.parametrize("name", MINIBATCHES)
def test_a_rollout_too_long_to_shuffle(name):
    said(name, "65536 transitions", "too long to shuffle", "fewer steps or environments", num_steps=2**13, num_envs=8)
    ALL[name](num_steps=2**16 - 1, num_envs=1, num_minibatches=1)


RANGES = [
    *each(DISCOUNTED, [("gamma", {"gamma": 1.5}), ("gamma", {"gamma": -0.1}), ("gamma", {"gamma": float("nan")})]),
    *each(LEXICOGRAPHIC, [("gamma", {"gamma": (0.9, 1.5)})]),
    *each(ACTORS, [("gae_lambda", {"gae_lambda": 1.5}), ("gae_lambda", {"gae_lambda": -0.1})]),
    *each(
        ACTORS,
        [
            ("max_grad_norm", {"networks": lambda: Networks(max_grad_norm=-1.0)}),
            ("hidden", {"networks": lambda: Networks(hidden_sizes=(0,))}),
            ("init_std", {"networks": lambda: Networks(init_std=0.0)}),
        ],
    ),
    *each(MINIBATCHES, [("clip_range", {"clip_range": 0.0}), ("clip_range", {"clip_range": -0.2})]),
    *each(
        Q_NETWORKS,
        [("epsilon", {"epsilon": 1.5}), ("hidden", {"hidden_sizes": (0,)}), ("return_scale", {"return_scale": 0.0})],
    ),
    *each(
        Q_NETWORKS,
        [
            ("target_update_interval", {"target_update_interval": -1}),
            ("learning_starts", {"learning_starts": -1}),
            ("max_grad_norm", {"max_grad_norm": -1.0}),
        ],
    ),
    *each(
        WITH_MULTIPLIERS,
        [("stats_window_size", {"convergence": lambda: Convergence(stats_window_size=0.0)})],
    ),
]


@pytest.mark.parametrize(("name", "what", "settings"), RANGES)
def test_numbers_where_they_make_no_sense(name, what, settings):
    with pytest.raises(lexrl.InputError, match=rf"(?i)\b{what}"):
        planned(name, **{key: value() if callable(value) else value for key, value in settings.items()})
