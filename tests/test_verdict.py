"""Verdicts in words and as JSON."""

import json
import math
import pathlib

import pytest

from lexrl import colors, verdict
from lexrl.errors import InputError
from lexrl.verdict import RESERVATIONS, Finding, RareEvents, Verdict, shown


def finding(seed, status, objective="cost", **changes):
    kept = Finding(seed, objective, status, "the reference", 12.3, 0.8, 4.1, 0.5, -8.2, -9.0, -7.4, 0.1, 0.0, 8.2, 2000)
    return kept._replace(**changes)


def of(*findings, seeds=(0, 1, 2), **about):
    return Verdict(seeds, ("cost", "reward"), findings, "The references.", "The method.", 2000, 1.5, **about)


@pytest.mark.parametrize(
    ("statuses", "whole", "sentence"),
    [
        (("kept", "kept", "kept"), "kept", "kept in all 3 seeds"),
        (("kept", "violated", "undecided"), "violated",
         "kept in 1 of 3 seeds; violated in 1 of 3 seeds (seed 1); not decidable in 1 of 3 seeds (seed 2)"),
        (("kept", "undecided", "undecided"), "undecided",
         "kept in 1 of 3 seeds; not decidable in 2 of 3 seeds (seeds 1, 2)"),
    ],
)  # fmt: skip
def test_one_seed_is_enough_to_violate(statuses, whole, sentence):
    found = of(*(finding(seed, status) for seed, status in enumerate(statuses)))
    assert (found.status, found.sentence) == (whole, sentence)
    assert [found.of_seed(seed) for seed in found.seeds] == list(statuses)


def test_the_worst_reference_decides_about_an_objective():
    found = of(finding(0, "kept"), finding(0, "violated"), finding(0, "kept", "reward"), seeds=(0,))
    assert found.of_objective(0, "cost") == "violated"
    assert found.of_objective(0, "reward") == "kept"
    assert found.of_objective(0, "energy") is None
    assert found.sentence == "violated"


def test_findings_in_words():
    assert str(finding(0, "violated")) == (
        "violated at objective 'cost': 12.30 ± 0.80 against 4.10 ± 0.50 of the reference (95 %)"
    )
    undecided = finding(0, "undecided", difference=0.1, low=-0.3, high=0.5)
    assert str(undecided).endswith("with 2,000 episodes: 12.30 ± 0.80 against 4.10 ± 0.50 of the reference "
                                   "(difference 0.10 ± 0.40, tolerance 0.1)")  # fmt: skip
    assert str(finding(0, "kept", episodes=0, test="exact", value_error=0.0, reference_error=0.0)) == (
        "kept 'cost': 12.3 against 4.1 of the reference (exact)"
    )


def test_without_a_reference_nothing_is_kept():
    found = of()
    assert found.status == "undecided"
    assert "nothing to compare with" in str(found)


def test_a_status_is_a_symbol_and_a_word():
    text = str(of(finding(0, "violated"), finding(1, "kept"), finding(2, "undecided")))
    first, *rest = text.splitlines()
    assert first.startswith("✗ Priority kept in 1 of 3")
    assert rest[0].startswith("✗ seed 0: violated at")
    assert rest[1].startswith("? seed 2: not decidable")


def test_many_findings_are_cut():
    found = of(*(finding(seed, "violated") for seed in range(9)), seeds=tuple(range(9)))
    assert "and 4 more" in str(found)


def test_rare_events_in_words():
    events = RareEvents(0, "cost", 0, 400, 0.0075), RareEvents(1, "cost", 0, 400, 0.0075)
    text = str(of(finding(0, "kept"), rare_events=events))
    text = " ".join(text.split())
    assert "Episodes with any cost: 0 of 800; its probability is below 0.0075 in every seed (95 %)." in text
    assert "299 for 1 % and 2,995 for 0.1 %" in text


def test_it_survives_json():
    events = (RareEvents(0, "cost", 1, 400, 0.01),)
    found = of(finding(0, "violated", low=-math.inf), rare_events=events, symptoms=("a",), advice=("b", "c"))
    again = verdict.from_json(json.loads(json.dumps(found.as_json(), allow_nan=False)))
    assert again.findings[0].status == "violated"
    assert math.isnan(again.findings[0].low)
    assert again.as_json() == found.as_json()
    assert (again.rare_events, again.advice) == (events, ("b", "c"))


WRONG = (None, True, 10**400, "x", [], [None], {}, [[]], [3])


@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:9])
def test_what_is_no_verdict_is_a_sentence(value):
    """Every value in turn is of another type: it is refused, or can be shown."""
    found = of(finding(0, "kept"), rare_events=(RareEvents(0, "cost", 1, 400, 0.01),), advice=("b",))
    whole = found.as_json()
    cases = [whole | {name: value} for name in whole]
    for part in ("findings", "rare_events"):
        cases += [whole | {part: [whole[part][0] | {name: value}]} for name in whole[part][0]]
    refused = 0
    for content in cases:
        try:
            again = verdict.from_json(json.loads(json.dumps(content)))
        except InputError as error:
            refused += "is damaged, or of another version" in str(error)
        else:
            assert again.sentence
            assert str(again)
            assert again._repr_html_()
    assert refused > 10


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [(12.345, 0.83, "12.35 ± 0.83"), (1234.5, 120.0, "1,234 ± 120"), (0.5, 0.0, "0.5"), (math.nan, 1.0, "no number")],
)
def test_numbers_have_the_digits_of_their_error(value, error, text):
    assert shown(value, error) == text


def test_every_key_of_the_summary_is_documented():
    """In the table of docs/verdicts.md, also those of findings, of rare events, and of what *kept* is worth."""
    page = (pathlib.Path(__file__).parent.parent / "docs" / "verdicts.md").read_text()
    table = page.split("## In `summary.json`")[1].split("\n## ")[0]
    found = of(finding(0, "violated"), rare_events=(RareEvents(0, "cost", 1, 100, 0.05),)).as_json()
    keys = [*found, *found["findings"][0], *found["rare_events"][0], *RESERVATIONS]
    assert [key for key in keys if f"`{key}`" not in table and key != "itself"] == []


def test_a_notebook_shows_symbols_and_colors():
    page = of(finding(0, "violated", reference="<script>"))._repr_html_()
    assert "✗" in page
    assert colors.RED in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
