"""Ways to go wrong, each with the verdict that a person would give: episodes are written out, nothing is trained."""

import numpy as np
import pytest
from judging import ORDER, POINTS, Case, always, event, judge, learning, normal, play

import lexrl
from lexrl import verify


def test_a_large_second_objective_bought_cost(monkeypatch):
    """Rewards in units a thousand times larger: the curves look healthy, the cost was given up."""
    case = Case(
        final=[[normal(3.0, 1.0), normal(500_000, 1000)]] * 3,
        reference=[[normal(0.5, 1.0)]] * 3,
        curve=learning(3.0, 500_000),
    )
    verdict = judge(case, monkeypatch)
    assert verdict.status == "violated"
    assert {one.objective for one in verdict.findings if one.status == "violated"} == {"cost"}
    assert verdict.findings[0].value == pytest.approx(3.0, abs=0.2)
    assert verdict.advice[0].startswith("more steps")
    assert verdict.advice[1].endswith("'min cost ±3.1 > max reward'.")  # 1.2 times the largest loss
    assert "another algorithm" in verdict.advice[2]


def test_what_nobody_would_give_away_is_not_suggested(monkeypatch):
    """The policy lost all that its reference had learned: a tolerance of that size would be no priority."""
    case = Case([[normal(30.0, 1.0), always(9.0)]] * 3, [[normal(0.5, 1.0)]] * 3, learning(0.5, 9.0))
    advice = judge(case, monkeypatch).advice
    assert not [one for one in advice if "tolerance" in one]
    assert advice[0].endswith("'cost' was given up for what is less important.")


def test_units_do_not_matter(monkeypatch):
    def of(unit):
        curve = learning(2.0, 100) * np.array([unit, 1.0])
        final = [[normal(2.0 * unit, 1.0 * unit), always(1.0)]] * 3
        before = [[always(30.0 * unit), always(0.0)]] * 3
        case = Case(final, [[normal(1.9 * unit, 1.0 * unit)]] * 3, curve, untrained=before)
        return judge(case, monkeypatch)

    one, large = of(1.0), of(1024.0)
    assert [f.status for f in one.findings] == [f.status for f in large.findings]
    assert one.episodes == large.episodes


def test_a_reference_that_got_stuck_is_seen_by_other_seeds(monkeypatch):
    """Seed 2 keeps what it reached, but it reached little."""
    good, stuck = [normal(0.5, 0.5), always(9.0)], [normal(12.0, 0.5), always(9.0)]
    case = Case(final=[good, good, stuck], reference=[good[:1], good[:1], stuck[:1]], curve=learning(1.0, 9.0))
    verdict = judge(case, monkeypatch)
    assert [verdict.of_seed(seed) for seed in (0, 1, 2)] == ["kept", "kept", "violated"]
    (found,) = [one for one in verdict.findings if one.status == "violated"]
    assert found.reference.startswith("the best of the other seeds (seed ")
    assert any("better seeds" in one for one in verdict.advice)


def test_a_seed_that_ended_better_than_every_reference_is_one(monkeypatch):
    """All references are poor, and every seed keeps its own; but seed 1 shows what could be reached."""
    poor, good = [normal(12.0, 0.5), always(9.0)], [normal(0.5, 0.5), always(2.0)]
    case = Case(final=[poor, good, poor], reference=[poor[:1]] * 3, curve=learning(1.0, 9.0))
    verdict = judge(case, monkeypatch)
    assert [verdict.of_seed(seed) for seed in (0, 1, 2)] == ["violated", "kept", "violated"]
    assert {one.reference for one in verdict.findings if one.status == "violated"} == {
        "the best of the other seeds (seed 1)"
    }


def test_a_reference_that_the_policy_surpasses_shows_little(monkeypatch):
    """The one seed keeps what it reached in its first stage, where it had hardly begun."""
    case = Case(
        final=[[normal(4.0, 0.5), always(9.0)]], reference=[[normal(12.0, 0.5)]], curve=learning(1.0, 9.0)[:, :1]
    )
    verdict = judge(case, monkeypatch)
    assert verdict.status == "kept"
    assert any("ended better than the policy it was compared with" in one for one in verdict.symptoms)
    assert any("more steps" in one for one in verdict.advice)


def test_too_few_steps(monkeypatch):
    """The priority is kept, but everything was still improving."""
    curve = np.repeat(np.linspace([30.0, 0.0], [15.0, 50.0], POINTS)[:, None], 3, axis=1)
    same = [[normal(15.0, 0.5), always(50.0)]] * 3
    verdict = judge(Case(final=same, reference=[seed[:1] for seed in same], curve=curve), monkeypatch)
    assert verdict.status == "kept"
    assert [one for one in verdict.symptoms if "still improving" in one]
    assert verdict.advice[0] == "more steps, as in `--total-timesteps 30000`."
    assert "--retrain" in verdict.advice[1]
    assert verdict.sentence == (
        "kept in all 3 seeds, but by references that had not been learned to the end (seeds 0, 1, 2)"
    )


def test_episodes_that_never_end(monkeypatch):
    curve = np.full((POINTS, 3, 2), np.nan)
    same = [[normal(5.0, 0.5), always(1.0)]] * 3
    case = Case(
        final=same,
        reference=[seed[:1] for seed in same],
        curve=curve,
        metrics={"num_episodes": np.zeros((POINTS, 3))},
    )
    verdict = judge(case, monkeypatch)
    assert verdict.symptoms == ("No episode ended in training, so there are no returns to go by.",)
    assert verdict.advice[0].startswith("a shorter `max_episode_steps`")
    assert verdict.sentence == "kept in all 3 seeds, but no episode ended in training (seeds 0, 1, 2)"


def test_a_seed_that_met_nan(monkeypatch):
    good, lost = [normal(0.5, 0.5), always(9.0)], [always(np.nan), always(np.nan)]
    sentence = "Seed 1 stopped at step 512: the loss is not a number."
    case = Case(
        final=[good, lost, good],
        reference=[good[:1], lost[:1], good[:1]],
        curve=learning(0.5, 9.0),
        faults={1: sentence},
    )
    verdict = judge(case, monkeypatch)
    assert [verdict.of_seed(seed) for seed in (0, 1, 2)] == ["kept", "undecided", "kept"]
    assert sentence in verdict.symptoms
    assert "no number" in str(verdict)
    # The policy that it had before may be good; but nobody should think that it was trained to the end.
    before = judge(case._replace(final=[good] * 3, reference=[good[:1]] * 3), monkeypatch)
    assert before.sentence == "kept in all 3 seeds, but training stopped before its end (seed 1)"


def test_noise_alone_is_not_violated(monkeypatch):
    """Cost is noise that no policy changes, and larger than everything: nothing may be claimed about it."""
    noisy = [[lambda noise, n: noise.normal(size=n) * 50, always(1.0)]] * 3
    other = [[lambda noise, n: noise.normal(size=(2, n))[1] * 50]] * 3
    verdict = judge(Case(final=noisy, reference=other, curve=learning(0.0, 1.0), episodes=1000), monkeypatch)
    assert verdict.status == "undecided"
    assert any("more episodes" in one for one in verdict.advice)


def test_a_constant_objective_is_kept(monkeypatch):
    curve = learning(0.0, 9.0)
    curve[..., 0] = 7.0
    same = [[always(7.0), normal(9.0, 1.0)]] * 3
    case = Case(final=same, reference=[[always(7.0)]] * 3, curve=curve, untrained=same)
    verdict = judge(case, monkeypatch)
    assert verdict.status == "kept"
    assert verdict.sentence == "kept in all 3 seeds, but an objective was the same for every policy (seeds 0, 1, 2)"
    assert verdict.rare_events == ()


def test_a_goal_that_nobody_ever_found(monkeypatch):
    """A reward of 0 in every episode: all policies are equal in it, and none has learned anything."""
    curve = np.zeros((POINTS, 3, 2))
    curve[..., 1] = np.linspace(-9, 0, POINTS)[:, None]
    same = [[always(0.0), normal(-1.0, 0.5)]] * 3
    case = Case(same, [[always(0.0)]] * 3, curve, order="max reward > min cost", untrained=same)
    verdict = judge(case, monkeypatch)
    assert verdict.sentence.startswith("kept in all 3 seeds, but an objective was the same for every policy")
    assert any(one.startswith("'reward' is the same in every episode") for one in verdict.symptoms)
    assert any("--retrain" in one for one in verdict.advice)
    costs = judge(case._replace(order=ORDER), monkeypatch)  # never any cost: nothing is better
    assert costs.sentence == "kept in all 3 seeds"


def test_a_rare_catastrophe_is_found(monkeypatch):
    """No cost in 19 of 20 episodes; the reference never has any."""
    case = Case(final=[[event(0.05, 30.0), always(9.0)]] * 3, reference=[[event(0.0)]] * 3, curve=learning(1.5, 9.0))
    verdict = judge(case, monkeypatch)
    assert verdict.status == "violated"
    (rare, *_) = verdict.rare_events
    assert 0 < rare.events < 0.1 * rare.episodes
    assert rare.events / rare.episodes < rare.bound < 0.1


def test_too_few_clean_episodes_show_nothing(monkeypatch):
    """A hundred clean episodes are compatible with an accident in fifty."""
    clean = [[event(0.0), always(9.0)]] * 3
    case = Case(final=clean, reference=[seed[:1] for seed in clean], curve=learning(0.0, 9.0), episodes=100)
    verdict = judge(case, monkeypatch)
    assert verdict.status == "undecided"
    assert verdict.rare_events[0].bound == pytest.approx(0.0295, abs=1e-4)


def test_greedy_actions_differ_from_sampled_ones(monkeypatch):
    same = [[normal(25.0, 0.5), always(9.0)]] * 3
    verdict = judge(Case(same, [seed[:1] for seed in same], learning(1.0, 9.0)), monkeypatch)
    assert verdict.sentence.startswith("kept in all 3 seeds, but much worse than earlier in training")
    assert [one for one in verdict.symptoms if one.startswith("'cost' is much worse in fresh episodes")]


def test_without_references_only_seeds_are_compared(monkeypatch):
    good, bad = [normal(0.5, 0.5), always(9.0)], [normal(12.0, 0.5), always(9.0)]
    verdict = judge(Case([good, bad, good], None, learning(1.0, 9.0), algorithm=lexrl.PaperLPPO), monkeypatch)
    assert verdict.of_seed(1) == "violated"
    assert verdict.status == "violated"
    assert "keeps no policies for the first objectives alone" in verdict.references
    assert any("--retrain" in one for one in verdict.advice)
    alone = judge(Case([good], None, learning(1.0, 9.0, 1), algorithm=lexrl.PaperLPPO), monkeypatch)
    assert (alone.status, alone.findings) == ("undecided", ())


def test_slack_is_granted_and_its_use_is_reported(monkeypatch):
    case = Case(
        final=[[normal(3.0, 1.0), always(90.0)]] * 3,
        reference=[[normal(1.0, 1.0)]] * 3,
        curve=learning(3.0, 90.0),
        order="min cost ±3 > max reward",
    )
    verdict = judge(case, monkeypatch)
    found = verdict.findings[0]
    assert found.status == "kept"
    assert found.slack == 3.0
    assert found.slack_used == pytest.approx(2.0)


def test_slack_that_was_used_is_no_symptom(monkeypatch):
    """All of the cost may be spent, and was: it was not forgotten, and need not be better than before training."""
    curve = learning(1.0, 90.0)
    spent = [[normal(30.0, 1.0), always(90.0)]] * 3
    case = Case(spent, [[normal(1.0, 1.0)]] * 3, curve, untrained=[[normal(30.0, 1.0), always(1.0)]] * 3)
    wide = judge(case._replace(order="min cost ±40 > max reward"), monkeypatch)
    assert wide.sentence == "kept in all 3 seeds"
    assert wide.symptoms == ()
    none = judge(case, monkeypatch)
    assert none.status == "violated"
    assert len([one for one in none.symptoms if "given up or forgotten" in one or "no better than before" in one]) == 2


def test_rewards_among_the_costs_are_no_rare_events(monkeypatch):
    """Fresh episodes cost nothing, but some in training cost less than nothing: there is no clean episode to count."""
    clean = [[event(0.0), always(9.0)]] * 3
    case = Case(clean, [seed[:1] for seed in clean], learning(0.0, 9.0))
    assert len(judge(case, monkeypatch).rare_events) == 3
    curve = learning(0.0, 9.0)
    curve[3, 1, 0] = -5.0
    assert judge(case._replace(curve=curve), monkeypatch).rare_events == ()


def test_a_reward_that_is_only_ever_lost_has_rare_events(monkeypatch):
    """An accident is a reward of -1, and there is no other: that is a cost by another name."""
    curve = np.stack([-learning(0.0, 9.0)[..., 0], learning(0.0, 9.0)[..., 1]], axis=-1)
    lost = [[event(0.02, -1.0), always(9.0)]] * 3
    case = Case(lost, [[event(0.0)]] * 3, curve, order="max reward > min cost", untrained=[[always(-30.0)] * 2] * 3)
    verdict = judge(case, monkeypatch)
    assert all(one.loss and 0 < one.events < 0.05 * one.episodes for one in verdict.rare_events)
    assert {one.objective for one in verdict.rare_events} == {"reward"}
    assert any(text.startswith("Episodes with reward below 0: ") for _, text in verdict.lines())
    never = case._replace(final=[[always(0.0), always(9.0)]] * 3, curve=0 * curve, untrained=[[always(0.0)] * 2] * 3)
    assert judge(never, monkeypatch).rare_events == ()  # a goal that nobody found is no accident that nobody had


def test_symptoms_of_multipliers_and_thresholds(monkeypatch):
    """A multiplier at its bound, and a threshold below every cost that was ever measured."""
    costs = np.repeat(np.linspace(30.0, 10.0, POINTS)[:, None], 3, axis=1)
    both = np.stack([costs, 0 * costs], axis=-1)
    multiplier = np.zeros((POINTS, 3, 2))
    multiplier[-1, 1, 0] = 1e4
    case = Case(
        final=[[normal(10.0, 0.5), always(1.0)]] * 3,
        reference=[[normal(10.0, 0.5)]] * 3,
        curve=learning(10.0, 1.0),
        metrics={"return_estimate": both, "threshold": both * [0.1, 1.0], "multiplier": multiplier},
    )
    verdict = judge(case, monkeypatch)
    assert "'cost' has its multiplier at the bound: it cannot be kept so (seed 1)." in verdict.symptoms
    assert "'cost' has a threshold that no policy of this run attained (all seeds)." in verdict.symptoms


def test_a_stage_that_was_too_short(monkeypatch):
    """One seed keeps what it reached in its first stage; but that ended in the middle of learning."""
    curve = learning(12.0, 9.0, seeds=1)
    curve[:10, 0, 0], curve[10:, 0, 0] = np.linspace(30, 12, 10), 12.0
    stage = np.where(np.arange(POINTS) < 10, 1.0, 2.0)[:, None]
    poor = [normal(12.0, 0.5), always(9.0)]
    case = Case(
        final=[poor], reference=[poor[:1]], curve=curve, metrics={"stage": stage}, untrained=[[always(30.0)] * 2]
    )
    verdict = judge(case, monkeypatch)
    assert verdict.status == "kept"
    assert verdict.reservations["weak"] == (0,)
    assert str(verdict).startswith("✓ Priority kept, but by references that had not been learned to the end.")
    assert "'cost' was still improving when its stage ended (its seed)." in verdict.symptoms
    assert [one.split()[0] for one in verdict.advice] == ["more", "`lexrl"]
    settled = curve.copy()
    settled[5:10, 0, 0] = 12.0
    assert judge(case._replace(curve=settled), monkeypatch).reservations["weak"] == ()


def test_a_policy_that_is_its_own_reference(monkeypatch):
    """Nothing better was found than the policy of the first stage, which keeps itself: no episode has to show that."""
    poor = [normal(12.0, 0.5), always(9.0)]
    case = Case(final=[poor], reference=[poor[:1]], curve=learning(12.0, 9.0, 1), same=(True,))
    verdict = judge(case, monkeypatch)
    assert [(one.status, one.test, one.low) for one in verdict.findings] == [("kept", "same policy", 0.0)]
    assert "(the same policy)" in str(verdict.findings[0])
    assert verdict.sentence == "kept, but compared with itself"
    assert any("one for the first objectives alone (its seed)" in one for one in verdict.symptoms)
    assert verdict.episodes == 300
    assert verdict.advice[0].startswith("more steps")


def test_every_policy_is_worse_than_before_training(monkeypatch):
    """Reference and policy agree, and so do the seeds; but doing nothing was better for the first objective."""
    poor = [normal(12.0, 0.5), always(9.0)]
    case = Case([poor] * 3, [poor[:1]] * 3, learning(12.0, 9.0), untrained=[[normal(5.0, 0.5), always(1.0)]] * 3)
    verdict = judge(case, monkeypatch)
    assert verdict.status == "violated"
    assert {one.reference for one in verdict.findings if one.status == "violated"} == {
        "the policy that its training began with"
    }
    assert any("'cost' is no better than before training" in one for one in verdict.symptoms)


def test_a_late_cost_that_the_discount_hides(monkeypatch):
    """Undiscounted, the policy costs 10 and its reference 1; the discounted returns are alike."""
    shown = play
    monkeypatch.setattr("judging.play", lambda draws: lambda *one: hidden(shown(draws)(*one)))
    case = Case([[normal(10.0, 0.1), always(9.0)]], [[normal(1.0, 0.1)]], learning(10.0, 9.0, 1))
    verdict = judge(case, monkeypatch)
    assert verdict.status == "kept"
    assert verdict.sentence == "kept, but worse per episode than what it was compared with, which the discount hides"
    assert verdict.as_json()["reservations"]["hidden"] == [0]
    assert str(verdict.findings[0]).endswith("(discounted, as optimized, the difference is 0.00 ± 0.27; 95 %)")
    assert any("is worse per episode than what it was compared with" in one for one in verdict.symptoms)
    assert any("--gamma 0.999" in one for one in verdict.advice)


def test_a_small_late_cost_that_the_discount_hides(monkeypatch):
    """LDQN on CartSafe: 24 instead of none, where untrained policies cost 500; that is little of the range, but a
    person would not call it kept without a word."""
    shown = play
    monkeypatch.setattr("judging.play", lambda draws: lambda *one: hidden(shown(draws)(*one)))
    bad, good = [event(0.25, 96.0), always(9.0)], [event(0.0), always(9.0)]
    case = Case([bad, good], [[event(0.0)]] * 2, learning(10.0, 9.0, 2), untrained=[[always(500.0), always(9.0)]] * 2)
    verdict = judge(case, monkeypatch)
    assert verdict.reservations["hidden"] == (0,)
    assert verdict.sentence.endswith("which the discount hides (seed 0)")
    alike = judge(case._replace(final=[good, good]), monkeypatch)
    assert alike.reservations["hidden"] == ()


def test_the_discount_hides_that_doing_nothing_was_better(monkeypatch):
    """Policy and reference agree on a late cost of 20; untrained policies had half of that."""
    shown = play
    monkeypatch.setattr("judging.play", lambda draws: lambda *one: hidden(shown(draws)(*one)))
    late, before = [always(20.0), always(9.0)], [[event(0.5, 20.0), always(1.0)]]
    verdict = judge(Case([late], [late[:1]], learning(20.0, 9.0, 1), untrained=before), monkeypatch)
    assert verdict.reservations["hidden"] == (0,)
    assert any("--gamma 0.999" in one for one in verdict.advice)
    assert not any("no better than before" in one for one in verdict.symptoms)  # once is enough


def hidden(played):
    """Nothing is left of the returns once they are discounted."""
    return played._replace(discounted=np.zeros_like(played.returns))


def test_noise_is_no_progress(monkeypatch):
    """A curve that goes up and down by accident is not one that was still improving."""
    curve = learning(10.0, 9.0)
    curve[..., 0] = np.random.default_rng(3).normal(10.0, 5.0, (POINTS, 3))
    curve[-4:, :, 0] -= 2.0
    same = [[normal(10.0, 1.0), always(9.0)]] * 3
    verdict = judge(Case(same, [seed[:1] for seed in same], curve), monkeypatch)
    assert not [one for one in verdict.symptoms if "still improving" in one]


def test_no_cost_at_all_is_kept_without_a_reference(monkeypatch):
    """Nothing is better than a cost of 0, where the environment says that costs are not negative."""
    clean = [[event(0.0), always(9.0)]] * 2
    case = Case(clean, None, learning(0.0, 9.0, 2), algorithm=lexrl.Projection, known=(verify.Range(-30.0, 0.0), None))
    verdict = judge(case, monkeypatch)
    assert verdict.status == "kept"
    assert {one.reference for one in verdict.findings} >= {"the best that is possible"}
    assert "betting" in verdict.method
    assert judge(case._replace(known=()), monkeypatch).status == "undecided"


def test_what_is_shown_may_not_show_why(monkeypatch):
    """Undiscounted returns are alike, and discounted ones are not: the words say which were tested."""
    case = Case([[always(5.0), always(9.0)]], [[always(5.0)]], learning(10.0, 9.0, 1))
    found = judge(case, monkeypatch).findings[0]._replace(status="violated", difference=-4.0, low=-4.5, high=-3.5)
    assert str(found) == (
        "violated at objective 'cost': 5 against 5 of its own policy for 'cost' alone "
        "(discounted, as optimized, 4.00 ± 0.50 worse; 95 %)"
    )


def test_an_objective_that_was_learned_and_forgotten(monkeypatch):
    """The one seed had no cost for half of the training; its networks forgot that, for its reference as well."""
    curve = learning(0.5, 9.0, seeds=1)
    curve[-6:, 0, 0] = 25.0
    poor = [normal(25.0, 0.5), always(9.0)]
    verdict = judge(Case([poor], [poor[:1]], curve, untrained=[[always(30.0)] * 2]), monkeypatch)
    assert verdict.sentence == "kept, but much worse than earlier in training"
    assert any("learned, and given up or forgotten" in one for one in verdict.symptoms)
    assert [one.split()[0] for one in verdict.advice] == ["more", "`lexrl"]
    assert verdict.as_json()["reservations"]["forgotten"] == [0]
