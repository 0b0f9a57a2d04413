"""What a picture can be made of, and that every drawing can be drawn."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from lexrl.errors import InputError
from lexrl.report import figures, maps, palette, tradeoffs
from lexrl.report.chart import Chart
from lexrl.report.learning_curves import Learned, draw

NAN = float("nan")
BEGINNINGS = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<svg", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def curves() -> Chart:
    returns = np.random.default_rng(0).normal(size=(20, 3, 2))
    returns[:5, 0] = NAN
    returns[:2] = NAN
    learned = Learned(
        np.arange(20) * 100, {"episode_return": returns}, ["min cost", "max reward"], ["cost", "reward"], (0, 1, 2)
    )
    return draw(learned, "a title")


class TestChart:
    def test_png_is_one(self, curves, tmp_path):
        (tmp_path / "picture").write_bytes(curves.png)
        with Image.open(tmp_path / "picture") as image:
            image.load()
            assert image.format == "PNG"
            assert image.width > image.height > 300

    def test_svg_is_one_in_the_colors_of_light_mode(self, curves):
        assert ElementTree.fromstring(curves.svg).tag.endswith("svg")
        assert b"var(--" not in curves.svg
        assert palette.LIGHT[0].encode() in curves.svg

    def test_on_a_page_its_colors_are_the_pages_and_its_ids_its_own(self, curves):
        shown = curves.inline()
        assert 'stroke="var(--k0)"' in shown
        assert not [color for color in palette.LIGHT if color in shown]
        assert len(set(re.findall(r'id="(c[0-9a-f]{8})-clip', shown))) == 1
        assert set(re.findall(r"url\(#([^)]*)\)", shown)) <= set(re.findall(r'id="([^"]*)"', shown))

    def test_the_same_chart_has_the_same_bytes(self, curves):
        assert curves.svg == curves.svg
        assert curves.png == curves.png

    @pytest.mark.parametrize("kind", BEGINNINGS)
    def test_is_saved_after_the_names_ending(self, curves, kind, tmp_path):
        for name in (f"curves.{kind}", f"again.{kind.upper()}"):
            curves.save(str(tmp_path / name))
            assert (tmp_path / name).read_bytes().startswith(BEGINNINGS[kind])

    @pytest.mark.parametrize("name", ["curves.docx", "curves"])
    def test_an_ending_that_is_none_is_one_sentence(self, curves, name, tmp_path):
        with pytest.raises(
            InputError, match=rf"cannot be saved as '{name}'; use a file name that ends in .png, .svg or .pdf\."
        ):
            curves.save(tmp_path / name)
        assert not list(tmp_path.iterdir())

    def test_a_notebook_shows_it(self, curves):
        assert curves._repr_png_() == curves.png

    def test_one_panel_for_each_objective_in_its_order(self, curves):
        assert [panel["title"]["text"] for panel in curves.spec["concat"]] == ["1. min cost", "2. max reward"]

    def test_the_pointer_finds_the_rows_that_are_drawn(self, curves):
        """What a page keeps for the pointer are the rows of the specification, column by column."""
        spec = curves.spec["concat"][0]
        columns = figures.compact(figures.live(spec))["columns"]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        assert rows == spec["data"]["values"]
        assert all(row["y"] is not None for row in rows)

    def test_an_objective_without_any_episode_stays_empty(self):
        empty = {"episode_return": np.full((2, 3, 1), NAN)}
        chart = draw(Learned(np.array([1, 2]), empty, ["max reward"], ["reward"], (0, 1, 2)), "")
        assert chart.png.startswith(BEGINNINGS["png"])


def texts(spec):
    """All words that a specification draws."""
    drawn = [layer["mark"].get("text") for layer in spec["layer"]]
    return [each for each in drawn if each] + [
        row["text"] for layer in spec["layer"] if "data" in layer for row in layer["data"]["values"]
    ]


def test_the_slack_curve_begins_at_the_optimum_and_goes_to_the_other_extreme():
    slack, cost, reward = np.array([0.0, 1.0, 3.0]), np.array([2.0, 3.0, 5.0]), np.array([0.0, 8.0, 10.0])
    chart = tradeoffs.slack_curve(slack, cost, reward, ("cost", "reward"), "a title")
    assert ["lexicographic optimum", "cost 2, reward ≈ 0"] in texts(chart.spec)
    assert "best reward with no regard to cost: 10" in texts(chart.spec)
    corners = [(row["x"], row["y"]) for row in chart.spec["data"]["values"] if row["kind"] == "corner"]
    assert corners == [(0, 0), (1, 8), (3, 10)]


def test_a_curve_of_one_point_can_be_drawn():
    one = np.array([0.0])
    assert tradeoffs.slack_curve(one, one, one, ("cost", "reward"), "").png.startswith(BEGINNINGS["png"])


class TestToleranceCurves:
    def drawn(self, gap, **more):
        tolerances = np.geomspace(1e-3, 1, 10)
        panels = [
            tradeoffs.ToleranceCurve("cost given up", tolerances - 1e-3, **more),
            tradeoffs.ToleranceCurve("reward", np.arange(10.0)),
        ]
        chart = tradeoffs.tolerance_curves(tolerances, panels, gap, "a title")
        assert chart.svg.startswith(b"<svg")
        return chart.spec["vconcat"]

    def test_one_panel_for_each_objective_in_its_order(self):
        assert [panel["usermeta"]["y"] for panel in self.drawn(0.1)] == ["cost given up", "reward"]

    def test_with_a_bound_the_axis_has_powers_of_ten(self):
        bounded = self.drawn(0.1, bound=np.geomspace(1e-3, 1, 10))
        scales = [panel["layer"][2]["encoding"]["y"]["scale"]["type"] for panel in bounded]
        assert scales == ["log", "linear"]
        assert {row["label"] for row in bounded[0]["data"]["values"]} == {"exact", "bound"}

    @pytest.mark.parametrize(("gap", "side"), [(0.002, "left"), (0.5, "right")])
    def test_the_gap_is_named_where_there_is_room(self, gap, side):
        words = self.drawn(gap)[0]["layer"][1]
        assert words["data"]["values"][0]["text"].startswith(f"below the gap of {gap}")
        assert words["mark"]["align"] == side

    def test_what_was_learned_has_its_mean(self):
        learned = (np.array([0.01, 0.1]), np.array([[1.0, 3.0], [4.0, 8.0]]))
        rows = self.drawn(0.1, learned=learned)[0]["data"]["values"]
        means = [(row["x"], row["y"]) for row in rows if row["label"] == tradeoffs.LEARNED and row["kind"] == "line"]
        assert means == [(0.01, 2), (0.1, 6)]


def test_a_map_can_be_drawn():
    obstacles = np.zeros(9, bool)
    obstacles[4] = True
    picture = maps.grid_policy(3, obstacles, 1, np.eye(4)[np.arange(9) % 4], np.ones(9), "a title")
    assert picture.png.startswith(BEGINNINGS["png"])
