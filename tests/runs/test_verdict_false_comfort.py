"""More ways to go wrong, in which a verdict could comfort its reader, or alarm him, for no reason."""

import numpy as np
import pytest
from judging import POINTS, UNTRAINED, Case, always, event, judge, learning, normal

import lexrl

GOOD, BAD = [normal(0.5, 0.5), always(9.0)], [normal(12.0, 0.5), always(9.0)]


def own(seeds):
    """References that are the policies' equals in the first objective."""
    return [seed[:1] for seed in seeds]


def test_a_seed_without_numbers_hides_no_other(monkeypatch):
    """Seed 1 met NaN; seed 2 keeps what it reached, which is far behind seed 0."""
    seeds = [GOOD, [always(np.nan)] * 2, BAD]
    verdict = judge(Case(seeds, own(seeds), learning(0.5, 9.0), faults={1: "Seed 1 stopped."}), monkeypatch)
    assert [verdict.of_seed(seed) for seed in (0, 1, 2)] == ["kept", "undecided", "violated"]
    assert any(one.startswith("'cost' is not a finite number in fresh episodes") for one in verdict.symptoms)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nothing_is_played_for_returns_that_are_no_numbers(monkeypatch, value):
    """More episodes decide nothing: they are neither played nor suggested."""
    seeds = [[always(value), always(1.0)]] * 2
    verdict = judge(Case(seeds, own(seeds), learning(1.0, 9.0, 2)), monkeypatch)
    assert (verdict.status, verdict.episodes) == ("undecided", 100)
    assert not [one for one in verdict.advice if "more episodes" in one]


def test_one_explosion_in_training_makes_no_loss_small(monkeypatch):
    """A hundred times the cost of the reference: nothing compared with the one point of a curve that is a million."""
    curve = learning(1.0, 9.0)
    curve[2, 1, 0] = 1e6
    seeds = [[normal(100.0, 1.0), always(9.0)]] * 3
    verdict = judge(Case(seeds, [[normal(1.0, 1.0)]] * 3, curve), monkeypatch)
    assert verdict.status != "kept"
    assert verdict.findings[0].tolerance == pytest.approx(0.99, abs=0.05)


def test_a_cost_that_is_large_for_everybody(monkeypatch):
    """All policies cost about 1,000, and differ by 30 at most: of that range a loss of 3 is no trifle."""
    curve = learning(0.0, 9.0) + np.array([1000.0, 0.0])
    seeds, before = [[normal(1003.0, 1.0), always(9.0)]] * 3, [[always(1030.0), always(0.0)]] * 3
    verdict = judge(Case(seeds, [[normal(1000.0, 1.0)]] * 3, curve, untrained=before), monkeypatch)
    assert verdict.status == "violated"
    assert verdict.findings[0].tolerance == pytest.approx(0.3, abs=0.02)


def test_nothing_was_learned(monkeypatch):
    """Policies, references and untrained policies are alike, and only noise differs."""
    seeds = [[normal(25.0, 0.2), normal(9.0, 1.0)]] * 3
    curve = np.array([26.0, 9.0]) + np.random.default_rng(0).normal(size=(POINTS, 3, 2))
    verdict = judge(Case(seeds, own(seeds), curve, untrained=seeds), monkeypatch)
    assert verdict.sentence == "kept in all 3 seeds, but an objective is no better than before training (seeds 0, 1, 2)"
    assert any("--retrain" in one for one in verdict.advice)
    half = [[normal(12.0, 0.2), normal(9.0, 1.0)]] * 3  # of a cost, however much it was in between
    curve[3:6] = [400.0, 9.0]
    better = judge(Case(half, own(half), curve, untrained=seeds), monkeypatch)
    assert not better.reservations["unlearned"]


@pytest.mark.parametrize("points", [1, 3, 5])
def test_training_was_too_short_to_show_anything(monkeypatch, points):
    """A few updates, in which everything became better: nobody knows how much more there is to learn."""
    curve = np.repeat(np.linspace([30.0, 0.0], [20.0, 5.0], points + 1)[1:, None], 3, axis=1)
    seeds = [[normal(20.0, 0.5), normal(5.0, 1.0)]] * 3
    verdict = judge(Case(seeds, own(seeds), curve), monkeypatch)
    assert "but training was too short to show whether it had converged" in verdict.sentence
    assert verdict.advice[0].startswith("more steps")
    limited = judge(Case(seeds, None, curve, order="cost <= 25 > max reward"), monkeypatch)
    assert limited.sentence == "kept in all 3 seeds"  # that is enough, however short it was


def test_no_number_of_a_seed_is_in_its_curve(monkeypatch):
    curve = learning(0.5, 9.0)
    curve[:, 1] = np.nan
    verdict = judge(Case([GOOD] * 3, own([GOOD] * 3), curve), monkeypatch)
    assert verdict.reservations["brief"] == (1,)


THREE = "min cost > max reward > min effort"


def three(cost):
    curve = np.concatenate([learning(cost, 9.0, 1), learning(cost, 9.0, 1)[..., :1]], axis=-1)
    before = [[*UNTRAINED, always(30.0)]]
    return {"curve": curve, "order": THREE, "untrained": before}


def test_an_objective_that_was_compared_with_nothing(monkeypatch):
    """The policy for cost and reward costs more than the policy, so that its reward is no reference."""
    final = [[normal(0.5, 0.5), normal(3.0, 0.5), always(1.0)]]
    second = [[normal(5.0, 0.5), normal(9.0, 0.5)]]
    verdict = judge(Case(final, [[normal(0.5, 0.5)]], second=second, **three(0.5)), monkeypatch)
    assert verdict.sentence.startswith("kept, but an objective was compared with nothing")
    assert any(one.startswith("'reward' was compared with nothing") for one in verdict.symptoms)
    fair = [[normal(0.5, 0.5), normal(9.0, 0.5)]]
    assert judge(Case(final, [[normal(0.5, 0.5)]], second=fair, **three(0.5)), monkeypatch).status == "violated"


def test_a_later_reference_may_be_the_better_one(monkeypatch):
    """The policy costs as much as that of the first stage; but the second stage found one that costs less."""
    final = [[normal(12.0, 0.5), normal(9.0, 0.5), always(1.0)]]
    second = [[normal(5.0, 0.5), normal(9.0, 0.5)]]
    verdict = judge(Case(final, [[normal(12.0, 0.5)]], second=second, **three(12.0)), monkeypatch)
    assert verdict.of_objective(0, "cost") == "violated"
    (found,) = [one for one in verdict.findings if one.status == "violated"]
    assert found.reference == "its own policy for the first 2 objectives"


def test_returns_in_hundreds_of_millions(monkeypatch):
    """A difference of one is none where numbers have seven digits; a difference of a tenth is one."""
    curve = learning(1e8, 9.0)
    curve[..., 0] = np.linspace(2e8, 1e8, POINTS)[:, None]
    before = [[always(2e8), always(0.0)]] * 3

    def of(cost):
        return judge(Case([[always(cost), always(9.0)]] * 3, [[always(1e8)]] * 3, curve, untrained=before), monkeypatch)

    assert of(1e8 + 1).status == "kept"
    assert of(1.1e8).status == "violated"


@pytest.mark.parametrize(("cost", "status"), [(9.0, "kept"), (10.0, "undecided"), (11.0, "violated")])
def test_a_limit_is_no_matter_of_margins(monkeypatch, cost, status):
    """At the limit nothing can be said, although the range of the cost is thirty times the noise."""
    seeds = [[normal(cost, 1.0), always(9.0)]] * 3
    verdict = judge(Case(seeds, None, learning(cost, 9.0), order="cost <= 10 > max reward"), monkeypatch)
    assert verdict.status == status


def test_a_catastrophe_that_everybody_has(monkeypatch):
    """One episode in fifty costs 500, of the reference as well, by the same accidents: no violation, but it is told."""
    seeds = [[event(0.02, 500.0), always(9.0)]] * 3
    verdict = judge(Case(seeds, own(seeds), learning(10.0, 9.0)), monkeypatch)
    assert verdict.status != "violated"
    assert all(one.events > 0 and one.bound < 0.1 for one in verdict.rare_events)


def test_heavy_tails_are_no_violation(monkeypatch):
    """Returns of policy and reference have the same distribution, without a mean, and are not paired."""

    def wild(row):
        return lambda noise, n: noise.standard_cauchy(size=(2, n))[row] * 10

    for start in range(5):

        def shifted(row, start=start):
            return lambda noise, n: wild(row)(np.random.default_rng([start, noise.integers(2**31)]), n)

        case = Case([[shifted(0), always(9.0)]] * 2, [[shifted(1)]] * 2, learning(0.0, 9.0, 2), episodes=1000)
        assert judge(case, monkeypatch).status != "violated"


def test_a_seed_is_not_compared_with_luck(monkeypatch):
    """Ten equal seeds, noisy ones: the best of the first batch is not better, and nobody is told that it is."""
    seeds = [[normal(5.0, 20.0), always(9.0)]] * 10
    case = Case(seeds, None, learning(5.0, 9.0, 10), algorithm=lexrl.Projection)
    assert judge(case, monkeypatch).status == "undecided"
