"""Theorem 3 and its corollaries: every condition both ways, and rates that contradict the order."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.momdp import MOMDP
from lexrl.order import parse
from lexrl.schedules import Linear, Power
from lexrl.tolerance import Absolute, Relative, Rounding, Tolerance

ORDER = "max a > max b"
# Two states that lead to each other; either action, one of which may also stay.
RING = MOMDP.from_arrays(
    [[[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]],
    [[[1.0, 0.0], [0.0, 3.0]], [[0.0, 1.0], [2.0, 0.0]]],
    0.9,
    signals=["a", "b"],
)
MULTIPLIERS = {
    "beta": (1.0, "n^-0.2"),
    "eta": ("n^-0.57", "n^-0.7", "n^-0.9"),
    "normalize_violation": False,
    "max_multiplier": math.inf,
}
NETS = {"hidden_sizes": (), "use_bias": False, "optimizer": "sgd", "max_grad_norm": 0.0}


class Own(Tolerance):
    """A tolerance of somebody's own, which the checker cannot look into."""

    def __call__(self, values, allowed, best, time, spread):
        return 1 / time


def learner(kind=lexrl.PaperLA2C, multipliers=None, nets=None, **changes):
    """By default all that Theorem 3 asks for and can be set: alpha 0.55, beta 0.6 and 0.8, eta 0.57, 0.7 and 0.9."""
    given = {
        "critic_learning_rate": "n^-0.55",
        "learning_rate": "n^-0.6",
        "tolerance": Absolute(2.0) * Power(0.85),
        "gamma": 0.9,
        "gae_lambda": 0.0,
        "discounted_states": True,
        "normalize_advantage": False,
        "multipliers": lexrl.DualAscent(**(MULTIPLIERS | (multipliers or {}))),
        "networks": lexrl.Networks(**(NETS | (nets or {}))),
    }
    names = {field.name for field in dataclasses.fields(kind)}  # mean rewards have no discount
    return kind(**({name: value for name, value in given.items() if name in names} | changes))


def eta(*rates):
    """Other rates of the multipliers."""
    return {"multipliers": {"eta": rates}}


def lppo(kind=lexrl.LPPOQCritic, **changes):
    """All that Corollary 2 asks for and can be set."""
    nets = {"hidden_sizes": (32,), "activation": "relu"} | changes.pop("nets", {})
    return learner(kind, nets=nets, **({"surrogate": "kl_penalty"} | changes))


def condition(guarantee, words):
    (one,) = [one for one in guarantee.conditions if words in one.text]
    return one


def theorem(algorithm, words, world=RING, order=ORDER):
    return condition(lexrl.check(algorithm, world, order)[0], words)


def corollary(algorithm, words, world=RING, order=ORDER):
    return condition(lexrl.check(algorithm, world, order)[1], words)


class TestTheorem3:
    @pytest.mark.parametrize(
        ("algorithm", "name"),
        [
            (learner(), "Corollary 1 (LA2C)"),
            (learner(lexrl.PaperLPPO, surrogate="kl_penalty"), "Corollary 2 (LPPO)"),
        ],
    )
    def test_what_can_be_set_is(self, algorithm, name):
        first, second = lexrl.check(algorithm, RING, ORDER)
        assert (first.name, second.name) == ("Theorem 3", name)
        unknown = [one.text for one in first.conditions if one.verdict != "holds"]
        assert unknown == ["parameters are kept in a compact set", "with one objective the algorithm converges"]
        assert first.verdict == "unknown"
        assert condition(second, "Theorem 3's own").verdict == "unknown"

    @pytest.mark.parametrize("algorithm", [lexrl.LA2C(), lexrl.LPPO()])
    def test_it_is_about_the_papers_algorithms(self, algorithm):
        name = type(algorithm).__name__
        said = rf"Theorem 3 is about {name} as the paper .* is paper-{name.lower()} \(lexrl\.Paper{name}\) here"
        with pytest.raises(lexrl.InputError, match=said):
            lexrl.check(algorithm, RING, ORDER)

    @pytest.mark.parametrize("algorithm", [lexrl.PaperLA2C(), lexrl.PaperLPPO()])
    @pytest.mark.parametrize(
        ("world", "order"),
        [
            (RING, ORDER),
            (lexrl.GridNav.generate(3), "min cost > max reward"),
            (lexrl.CartSafe(), "min cost > max reward"),
        ],
    )
    def test_the_usual_settings_are_outside_and_say_why(self, algorithm, world, order):
        first, second = lexrl.check(algorithm, world, order)
        assert first.verdict == second.verdict == "fails"
        text = f"{first}\n{second}"
        assert "constant rates are the practical default, and the theorem does not cover them" in text
        assert "nan" not in text
        assert condition(first, "with one objective").verdict == "unknown"

    def test_the_policy(self):
        words = "twice continuously"
        assert theorem(learner(), words)[1:] == ("holds", "no hidden layers")
        assert theorem(learner(nets={"hidden_sizes": (8,)}), words)[1:] == ("holds", "tanh is smooth")
        relu = learner(nets={"hidden_sizes": (8,), "activation": "relu"})
        assert theorem(relu, words)[1:] == ("fails", "relu has no derivative at 0")
        assert corollary(relu, words).verdict == "fails"
        assert theorem(learner(nets={"activation": "relu"}), words).verdict == "holds"

    def test_the_critics(self):
        words = "critics are continuously"
        relu = {"hidden_sizes": (8,), "activation": "relu"}
        assert theorem(learner(nets=relu), words).verdict == "fails"
        assert theorem(learner(nets=relu | {"critic_hidden_sizes": ()}), words).verdict == "holds"

    @pytest.mark.parametrize(
        ("algorithm", "form"),
        [
            (learner(), "K_i = E[log pi A_i]"),
            (lppo(), "K_i = E[rho Q_i] - kappa KL"),
            (learner(lexrl.PaperLPPO), "K_i = E[rho A_i], clipped"),
        ],
    )
    def test_the_form(self, algorithm, form):
        assert theorem(algorithm, "same form")[1:] == ("holds", form)

    def test_rewards(self):
        assert theorem(learner(), "bounded")[1:] == ("holds", "at most 3")
        assert theorem(learner(), "bounded", lexrl.FiniteEnv(RING, reward_noise=0.1)).verdict == "fails"
        assert theorem(learner(), "bounded", lexrl.CartSafe(), "max reward > min cost").verdict == "unknown"

    @pytest.mark.parametrize(
        ("changes", "outside"),
        [
            ({}, None),
            ({"critic_learning_rate": 2.0}, "alpha = 2"),
            ({"learning_rate": 3.0}, "beta_1 = 3"),
            ({"critic_learning_rate": Linear(0.0, 1.5, 10.0)}, "alpha = 0 to 1.5 in 10"),
            ({"critic_learning_rate": "5 n^-0.55"}, None),  # never above 1
            ({"multipliers": {"eta": 4.0}}, "eta_0 = 4, eta_1 = 4, eta_2 = 4"),
            ({"learning_rate": 0.1, "multipliers": {"beta": (20.0, 1.0)}}, "beta_1 = (0.1) x (20)"),
        ],
    )
    def test_between_0_and_1(self, changes, outside):
        one = theorem(learner(**changes), "lies in [0, 1]")
        assert one.verdict == ("holds" if outside is None else "fails")
        assert outside is None or outside in one.evidence

    @pytest.mark.parametrize(
        ("changes", "fault"),
        [
            ({"critic_learning_rate": 0.1}, "constant: alpha = 0.1 (constant rates are"),
            ({"critic_learning_rate": "n^-0.5"}, "squares do not converge: alpha = n^-0.5"),
            ({"critic_learning_rate": "n^-1.1"}, "the sum converges: alpha = n^-1.1"),
            ({"critic_learning_rate": 0.0}, "0 in the end: alpha = 0"),
            ({"critic_learning_rate": Linear(1.0, 0.0, 9.0)}, "0 in the end: alpha = 1 to 0 in 9"),
            ({"learning_rate": "n^-0.85"}, "the sum converges: beta_2 = (n^-0.85) x (n^-0.2)"),
            ({"learning_rate": "n^-0.4"}, "squares do not converge: beta_1 = n^-0.4"),
            ({"multipliers": {"eta": ("n^-0.57", "n^-0.7", "n^-2")}}, "the sum converges: eta_2 = n^-2"),
            (
                {"learning_rate": 0.1, "multipliers": {"beta": 0.5, "eta": 1.0}},
                "constant: beta_1 = (0.1) x (0.5), beta_2 = (0.1) x (0.5), eta",
            ),
        ],
    )
    def test_sums(self, changes, fault):
        one = theorem(learner(**changes), "its sum diverges")
        assert one.verdict == "fails"
        assert fault in one.evidence
        assert ("practical default" in one.evidence) == ("constant:" in one.evidence)

    def test_exponents_add_up_exactly(self):
        """0.7 + 0.3 and 0.1 + 0.9 are 1, and rounding must not push them above."""
        for rate, beta in (("n^-0.7", "n^-0.3"), ("n^-0.1", "n^-0.9"), ("n^-0.9", "n^-0.1")):
            algorithm = learner(learning_rate=rate, multipliers={"beta": beta})
            assert "the sum converges" not in theorem(algorithm, "its sum diverges").evidence

    @pytest.mark.parametrize(
        ("changes", "words", "shown"),
        [
            ({"critic_learning_rate": "n^-0.6"}, "beta_i / alpha", "beta_1 / alpha does not vanish"),
            ({"critic_learning_rate": "n^-0.7"}, "beta_i / alpha", "beta_1 / alpha is like n^0.1"),
            ({"critic_learning_rate": 0.0}, "beta_i / alpha", "beta_1 / alpha divides by a rate that is 0 in the end"),
            (eta("n^-0.57", "n^-0.59", "n^-0.9"), "eta_i / beta_i", "eta_1 / beta_1 is like n^0.01"),
            (eta("n^-0.57", "n^-0.7", "n^-0.8"), "eta_i / beta_i", "eta_2 / beta_2 does not vanish"),
            (eta("n^-0.65", "n^-0.7", "n^-0.9"), "beta_i / eta_{i-1}", "beta_1 / eta_0 is like n^0.05"),
            (eta("n^-0.57", "n^-0.9", "n^-0.9"), "beta_i / eta_{i-1}", "beta_2 / eta_1 is like n^0.1"),
            ({"learning_rate": 0.1}, "eta_i / beta_i", "eta_2 / beta_2 is like n^-0.7"),
        ],
    )  # fmt: skip
    def test_time_scales(self, changes, words, shown):
        one = theorem(learner(**changes), words)
        assert one.verdict == ("holds" if "n^-" in shown else "fails")
        assert shown in one.evidence

    def test_time_scales_of_one_objective(self):
        algorithm = learner(multipliers={"beta": 1.0, "eta": ("n^-0.57", "n^-0.7")})
        first, _ = lexrl.check(algorithm, RING, "max b")
        assert condition(first, "eta_i / beta_i")[1:] == ("holds", "eta_1 / beta_1 is like n^-0.1")
        assert condition(first, "beta_i / eta_{i-1}")[1:] == ("holds", "beta_1 / eta_0 is like n^-0.03")
        assert condition(first, "tau > 0")[1:] == ("holds", "one objective constrains no other")
        assert condition(first, "multipliers are plain").verdict == "holds"

    @pytest.mark.parametrize(
        ("tolerance", "verdict", "shown"),
        [
            (Absolute(2.0) * Power(0.85), "holds", "tau_1 = (2) x (n^-0.85): like n^-0.85, and beta_M like n^-0.8"),
            ((Absolute(2.0) * Power(0.85), 0.1), "holds", "tau_1"),  # the last objective's is never used
            (0.1, "fails", "tau_1 = 0.1: constant"),
            (0.0, "fails", "tau_1 = 0: 0 in the end"),
            (Absolute(1.0) * Linear(1.0, 0.0, 10.0), "fails", "0 in the end"),
            (Absolute(1.0) * Power(0.8), "fails", "like n^-0.8, but beta_M is like n^-0.8"),
            (Relative(0.1), "fails", "tau_1 = 10%: constant"),
            (Relative(0.1) * Power(0.9), "unknown", "vanishes like n^-0.9 or faster, but is 0 where the return is"),
            ((Relative(0.1) + Absolute(1.0)) * Power(0.9), "holds", "like n^-0.9"),
            (Absolute(1.0) * Power(0.9) + Relative(0.1), "fails", "constant"),
            (Absolute(0.0) + Relative(0.1) * Power(0.9), "unknown", "0 where the return is"),
            (Rounding(0.1) * Power(0.9), "unknown", "0 where the return is"),
            (Absolute(1.0) * Power(0.5) * Power(0.5), "holds", "like n^-1"),
            (Own(), "unknown", "how fast it shrinks is not known"),
            (Absolute(1.0) + Own(), "unknown", "how fast it shrinks is not known"),
            (Own() * Power(0.9), "unknown", "how fast it shrinks is not known"),
        ],
    )
    def test_tolerance(self, tolerance, verdict, shown):
        one = theorem(learner(tolerance=tolerance), "tau > 0")
        assert one.verdict == verdict, one
        assert shown in one.evidence

    def test_the_orders_tolerance_counts(self):
        assert theorem(learner(), "tau > 0", order="max a ±0.1 > max b").evidence == "tau_1 = 0.1: constant"
        assert theorem(learner(), "tau > 0", order="max a > max b ±0.1").verdict == "holds"

    @pytest.mark.parametrize(
        ("algorithm", "shown"),
        [
            (learner(nets={"optimizer": "adam"}), "the optimizer is Adam"),
            (learner(nets={"max_grad_norm": 0.5}), "gradients are clipped to norm 0.5"),
            (learner(normalize_advantage=True), "advantages are normalized"),
            (learner(ent_coef=0.01), "there is an entropy bonus, 0.01"),
            (
                learner(convergence=lexrl.Convergence(sequential=True)),
                "one objective moves the policy at a time (sequential)",
            ),
            (learner(lexrl.LA2CSecondOrder), "terms of second order are added"),
            (learner(lexrl.PaperLPPO), "the clipped objective of a sum is not the sum of clipped ones"),
        ],
    )
    def test_steps(self, algorithm, shown):
        assert theorem(algorithm, "steps are plain")[1:] == ("fails", shown)

    def test_clipping_one_objective_is_its_own_form(self):
        algorithm = learner(lexrl.PaperLPPO, multipliers={"beta": 1.0, "eta": ("n^-0.57", "n^-0.7")})
        assert theorem(algorithm, "steps are plain", order="max a").verdict == "holds"

    @pytest.mark.parametrize(
        ("multipliers", "verdict", "shown"),
        [
            ({}, "holds", "eta counts per 100 episodes, no upper bound"),
            ({"normalize_violation": True}, "fails", "standard deviations"),
            ({"max_multiplier": 50.0}, "unknown", "no multiplier rises above 50"),
        ],
    )
    def test_multipliers(self, multipliers, verdict, shown):
        one = theorem(learner(multipliers=multipliers), "multipliers are plain")
        assert one.verdict == verdict
        assert shown in one.evidence

    def test_what_does_not_fit_the_order(self):
        with pytest.raises(lexrl.InputError, match="beta has 2 rates for 1 objectives"):
            lexrl.check(learner(), RING, "max a")
        with pytest.raises(lexrl.InputError, match="gamma has 3 entries for 2 objectives"):
            lexrl.check(learner(gamma=(0.9, 0.9, 0.9)), RING, ORDER)
        with pytest.raises(lexrl.InputError, match="'a', 'b'"):
            lexrl.check(learner(), RING, "max speed")


def halves(state):
    """Two features of a state that are independent, but make a constant."""
    return jnp.stack([state % 2, 1 - state % 2]).astype(jnp.float32)


def height(state):
    """One feature, which makes no constant."""
    return state[None].astype(jnp.float32)


def twice(state):
    """Two features that are one."""
    return jnp.stack([state, 2 * state]).astype(jnp.float32)


class TestCorollaryOfLA2C:
    def test_all_but_what_the_library_cannot(self):
        _, second = lexrl.check(learner(nets={"critic_features": height}), RING, ORDER)
        assert not [one.text for one in second.conditions if one.verdict == "fails"]

    def test_units(self):
        assert corollary(learner(normalize_advantage=True), "units that converge").verdict == "fails"
        assert corollary(learner(), "units that converge").verdict == "holds"

    def test_finite(self):
        assert corollary(learner(), "finite")[1:] == ("holds", "2 states, 2 actions")
        cart = corollary(learner(), "finite", lexrl.CartSafe(), "max reward > min cost")
        assert cart.verdict == "fails"
        shown = corollary(learner(), "finite", lexrl.GridNav.generate(3, one_hot=True), "min cost > max reward")
        assert shown[1:] == ("holds", "9 states, 4 actions")  # states are finite, however they are shown

    @pytest.mark.parametrize(
        ("changes", "verdict", "shown"),
        [
            ({"gamma": (0.9, 0.5)}, "holds", "gamma is at most 0.9"),
            ({"gamma": (0.9, 1.0)}, "fails", "gamma is at most 1"),
            ({"kind": lexrl.LA2CAverageReward}, "holds", "limit averages"),
        ],
    )
    def test_objectives(self, changes, verdict, shown):
        assert corollary(learner(**changes), "objectives are discounted or")[1:] == (verdict, shown)

    def test_irreducible(self):
        words = "each state leads to each"
        assert corollary(learner(), words).verdict == "holds"
        trap = MOMDP.from_arrays(
            [[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]], np.zeros((2, 2, 2)), 0.9, signals=["a", "b"]
        )
        one = corollary(learner(), words, trap)
        assert one.verdict == "fails"
        assert "they fall into 2 classes" in one.evidence
        ends = dataclasses.replace(trap, terminal=np.array([False, True]), initial=np.array([1.0, 0.0]))
        assert corollary(learner(), words, ends).verdict == "holds"  # the next episode begins where it began
        away = dataclasses.replace(trap, initial=np.array([0.0, 1.0]))
        one = corollary(learner(), words, away)  # what is out of reach does not count
        assert one.verdict == "holds"
        assert "1 states that can be reached (of 2)" in one.evidence
        cart = corollary(learner(), words, lexrl.CartSafe(), "max reward > min cost")
        assert cart[1:] == ("unknown", "the process is not known")

    def test_a_state_that_is_left_for_ever(self):
        process = MOMDP.from_arrays(
            [[[0.0, 1.0]], [[0.0, 1.0]]], np.zeros((2, 2, 1)), 0.9, initial=[1.0, 0.0], signals=["a", "b"]
        )
        assert corollary(learner(), "each state leads", process).verdict == "fails"

    def test_grids(self):
        assert (
            corollary(learner(), "each state leads", lexrl.GridNav.generate(5), "min cost > max reward").verdict
            == "holds"
        )

    def test_linear_critics(self):
        words = "linear in features"
        assert corollary(learner(), words)[1:] == ("holds", "no hidden layers")
        assert corollary(learner(nets={"hidden_sizes": (8,)}), words)[1:] == ("fails", "hidden layers of (8,)")
        assert corollary(learner(nets={"hidden_sizes": (8,), "critic_hidden_sizes": ()}), words).verdict == "holds"

    def test_td0(self):
        assert corollary(learner(), "TD(0)")[1:] == ("holds", "gae_lambda is 0")
        assert corollary(learner(gae_lambda=0.95), "TD(0)")[1:] == ("fails", "gae_lambda is 0.95")

    @pytest.mark.parametrize(
        ("nets", "verdict", "shown"),
        [
            ({}, "holds", "2 features of 2 states have rank 2"),
            ({"use_bias": True}, "fails", "3 features (with the bias) of 2 states have rank 2"),
            ({"critic_features": halves}, "holds", "2 features of 2 states have rank 2"),
            ({"critic_features": height}, "holds", "1 features of 2 states have rank 1"),
            (
                {"critic_features": height, "use_bias": True},
                "holds",
                "2 features (with the bias) of 2 states have rank 2",
            ),
            ({"critic_features": twice}, "fails", "2 features of 2 states have rank 1"),
            ({"hidden_sizes": (8,)}, "unknown", "critics are not linear in features"),
        ],
    )
    def test_independent_features(self, nets, verdict, shown):
        assert corollary(learner(nets=nets), "independent")[1:] == (verdict, shown)

    @pytest.mark.parametrize(
        ("nets", "verdict", "shown"),
        [
            ({}, "fails", "one-hot features add up to 1; only the proof for limit averages needs this"),
            ({"use_bias": True}, "fails", "the bias does; only the proof for limit averages needs this"),
            ({"critic_features": halves}, "fails", "some do; only the proof for limit averages needs this"),
            ({"critic_features": height}, "holds", "a constant is not in their span"),
            ({"critic_features": height, "use_bias": True}, "fails", "the bias does"),
            ({"hidden_sizes": (8,)}, "unknown", "critics are not linear in features"),
        ],
    )
    def test_no_constant(self, nets, verdict, shown):
        one = corollary(learner(nets=nets), "1 everywhere")
        assert one.verdict == verdict
        assert one.evidence.startswith(shown)

    def test_features_of_what_is_not_numbered(self):
        world, order = lexrl.GridNav.generate(3, one_hot=True), "min cost > max reward"
        for words in ("independent", "1 everywhere"):
            assert corollary(learner(), words, world, order)[1:] == ("unknown", "what a state looks like is not known")
        assert corollary(learner(nets={"use_bias": True}), "1 everywhere", world, order).verdict == "fails"

    def test_discounted_samples(self):
        words = "the actor's samples"
        assert corollary(learner(), words).verdict == "holds"
        assert corollary(learner(discounted_states=False), words).verdict == "fails"
        assert corollary(learner(lexrl.LA2CAverageReward), words).verdict == "holds"


class TestCorollaryOfLPPO:
    def test_all_but_what_the_library_cannot(self):
        world = lexrl.CartSafe()
        _, second = lexrl.check(lppo(), world, "min cost > max reward")
        held = {one.text for one in second.conditions if one.verdict == "fails"}
        assert {text.split(":")[0] for text in held} == {
            "initial weights",
            "Theorem 3's own conditions",  # relu
        }

    def test_spaces(self):
        words = "compact"
        assert corollary(lppo(), "state space is compact")[1:] == ("holds", "Discrete(n=2), Discrete(n=2)")
        shown = corollary(
            lppo(), "state space is " + words, lexrl.GridNav.generate(3, one_hot=True), "min cost > max reward"
        )
        assert shown.verdict == "holds"
        cart = corollary(lppo(), "state space is " + words, lexrl.CartSafe(), "min cost > max reward")
        assert cart.verdict == "unknown"

    def test_continuous_actions(self):
        class Open:
            spec = lexrl.CartSafe().spec._replace(action_space=lexrl.types.Box((1,), -1.0, 1.0))

        _, second = lexrl.check(learner(lexrl.PaperLPPO), Open(), "min cost > max reward")
        assert condition(second, "state space").verdict == "fails"
        assert "normal policy" in condition(second, "softmax").evidence

    def test_objectives(self):
        assert corollary(lppo(), "objectives are discounted").verdict == "holds"
        assert corollary(lppo(lexrl.LPPOAverageReward), "objectives are discounted")[1:] == ("fails", "limit averages")
        assert corollary(lppo(gamma=1.0), "objectives are discounted").verdict == "fails"

    def test_networks(self):
        assert corollary(lppo(), "one hidden layer")[1:] == ("holds", "widths (32,) and (32,)")
        for nets in ({"hidden_sizes": ()}, {"hidden_sizes": (8, 8)}, {"critic_hidden_sizes": ()}):
            assert corollary(lppo(nets=nets), "one hidden layer").verdict == "fails"
        assert corollary(lppo(), "relu").verdict == "holds"
        assert "Theorem 3 wants a policy that is twice differentiable" in corollary(lppo(), "are relu").evidence
        assert corollary(lppo(nets={"activation": "tanh"}), "are relu").verdict == "fails"
        assert corollary(lppo(), "initial weights").verdict == "fails"

    def test_critics(self):
        assert corollary(lppo(), "Q-critics").verdict == "holds"
        assert corollary(lppo(lexrl.PaperLPPO), "Q-critics").verdict == "fails"
        assert corollary(lppo(), "TD(0)").verdict == "holds"
        assert corollary(lppo(gae_lambda=0.5), "TD(0)").verdict == "fails"
        assert corollary(lppo(), "every policy's values").verdict == "unknown"

    def test_samples(self):
        assert corollary(lppo(), "the actor's samples").verdict == "holds"
        assert corollary(lppo(discounted_states=False), "the actor's samples").verdict == "fails"

    def test_density(self):
        assert corollary(lppo(), "hyperplane").verdict == "fails"
        assert corollary(lppo(), "hyperplane", lexrl.CartSafe(), "min cost > max reward").verdict == "unknown"

    def test_the_penalty(self):
        assert corollary(lppo(), "KL(pi || pi_old)").verdict == "holds"
        assert "clip" in corollary(lppo(surrogate="clip"), "KL(pi || pi_old)").evidence
        assert corollary(lppo(), "kappa > 1")[1:] == ("unknown", "kappa is adapted to a divergence of 0.01")
        assert corollary(lppo(surrogate="clip"), "kappa > 1").verdict == "fails"


class TestQNetworks:
    def test_a_network_is_no_table(self):
        (only,) = lexrl.check(lexrl.LDQN(), RING, ORDER)
        assert (only.name, only.verdict) == ("Theorem 1", "fails")
        assert only.conditions[0] == (
            "values are a table",
            "fails",
            "a network approximates them (hidden layers of (64, 64), biases)",
        )
        for what in ("replay buffer", "Huber", "Adam", "cross targets of 2 members", "target networks", "norm 10"):
            assert what in condition(only, "updates").evidence

    def test_a_table_is_updated_in_another_way(self):
        table = lexrl.LDQN(
            hidden_sizes=(),
            use_bias=False,
            num_members=1,
            target_update_interval=0,
            double_q=False,
            optimizer="sgd",
            max_grad_norm=0.0,
            learning_rate="n^-0.7",
            epsilon="1/n",
        )
        (only,) = lexrl.check(table, RING, ORDER)
        assert [one.verdict for one in only.conditions] == ["holds", "fails", "holds", "holds"]
        assert condition(only, "updates").evidence == "here: batches from a replay buffer, the Huber loss"
        (only,) = lexrl.check(table, lexrl.GridNav.generate(3, one_hot=True), "min cost > max reward")
        assert "observations in Box" in only.conditions[0].evidence
        (only,) = lexrl.check(table, lexrl.GridNav.generate(3), "min cost > max reward")
        assert only.conditions[0].verdict == "holds"

    @pytest.mark.parametrize("algorithm", [lexrl.A2C(), lexrl.PPO(), lexrl.DQN(), lexrl.Random()])
    def test_no_theorem(self, algorithm):
        with pytest.raises(lexrl.InputError, match=r"no theorem about \w+ here; there are some about QLearning, Sarsa"):
            lexrl.check(algorithm, RING, ORDER)


class TestRatesThatContradictTheOrder:
    @pytest.mark.parametrize(
        "multipliers",
        [
            lexrl.DualAscent(),
            lexrl.DualAscent(beta=(1.0, 0.5)),
            lexrl.DualAscent(beta=(0.5, 1.0)),  # constants do not contradict it in the long run
            lexrl.DualAscent(beta=(1.0, "n^-0.1"), eta=(1.0, 1.0, "n^-0.1")),
            lexrl.DualAscent(beta=("n^-0.5", "n^-0.5")),
            lexrl.DualAscent(beta="n^-0.7", eta="n^-0.9"),
        ],
    )
    def test_fine(self, multipliers):
        multipliers.check(2)

    @pytest.mark.parametrize(
        ("multipliers", "words"),
        [
            (lexrl.DualAscent(beta=("n^-0.8", "n^-0.6")), r"Rate 2 of beta \(n\^-0.6\).*than rate 1 \(n\^-0.8\)"),
            (lexrl.DualAscent(beta=("n^-0.1", 1.0)), r"Rate 2 of beta \(1\)"),
            (lexrl.DualAscent(beta=("1 to 0 in 10", "n^-3")), r"Rate 2 of beta"),
            (lexrl.DualAscent(eta=(1.0, "n^-0.9", "n^-0.8")), r"Rate 3 of eta \(n\^-0.8\).*than rate 2 \(n\^-0.9\)"),
        ],
    )
    def test_refused(self, multipliers, words):
        with pytest.raises(lexrl.InputError, match=words):
            multipliers.check(2)
        algorithm = lexrl.PaperLA2C(multipliers=multipliers)
        with pytest.raises(lexrl.InputError, match=words):
            lexrl.check(algorithm, RING, ORDER)
        spec = parse(ORDER).spec(lexrl.FiniteEnv(RING).spec)
        with pytest.raises(lexrl.InputError, match=words):
            jax.eval_shape(lambda key: algorithm.init(spec, key), jax.random.key(0))

    def test_numbers_still_count(self):
        with pytest.raises(lexrl.InputError, match="eta has 2 rates for 2 objectives; give one for all, or 3"):
            lexrl.DualAscent(eta=(1.0, 1.0)).check(2)

    def test_traced_rates_pass(self):
        jax.jit(lambda multipliers: multipliers.check(2))(lexrl.DualAscent(beta=("n^-0.8", "n^-0.6")))
