"""What a picture can be made of, and that every drawing can be drawn."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from lexrl.errors import InputError
from lexrl.report import learning_curves, maps, tradeoffs
from lexrl.report.picture import Picture

NAN = float("nan")
BEGINNINGS = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def curves() -> Picture:
    returns = np.random.default_rng(0).normal(size=(20, 3, 2))
    returns[:5, 0] = NAN
    returns[:2] = NAN
    return learning_curves.draw(np.arange(20) * 100, returns, ["min cost", "max reward"], "a title")


class TestPicture:
    def test_png_is_one(self, curves, tmp_path):
        (tmp_path / "picture").write_bytes(curves.png)
        with Image.open(tmp_path / "picture") as image:
            image.load()
            assert image.format == "PNG"
            assert image.width > image.height > 300

    def test_svg_is_one(self, curves):
        assert ElementTree.fromstring(curves.svg).tag.endswith("svg")

    def test_the_same_picture_has_the_same_bytes(self, curves, tmp_path):
        assert curves.svg == curves.svg
        assert curves.png == curves.png
        for name in ("one.pdf", "other.pdf"):
            curves.save(tmp_path / name)
        assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "other.pdf").read_bytes()

    @pytest.mark.parametrize("kind", BEGINNINGS)
    def test_is_saved_after_the_names_ending(self, curves, kind, tmp_path):
        path = tmp_path / f"curves.{kind}"
        curves.save(path)
        assert path.read_bytes().startswith(BEGINNINGS[kind])
        curves.save(str(tmp_path / f"again.{kind.upper()}"))
        assert (tmp_path / f"again.{kind.upper()}").read_bytes() == path.read_bytes()

    @pytest.mark.parametrize("name", ["curves.docx", "curves"])
    def test_an_ending_that_is_none_is_one_sentence(self, curves, name, tmp_path):
        with pytest.raises(
            InputError, match=rf"cannot be saved as '{name}'; use a file name that ends in .png, .svg or .pdf\."
        ):
            curves.save(tmp_path / name)
        assert not list(tmp_path.iterdir())

    def test_a_notebook_shows_it(self, curves):
        assert curves._repr_png_() == curves.png


class TestLearningCurves:
    def test_one_panel_for_each_objective_in_its_order(self, curves):
        assert [axes.get_title(loc="left") for axes in curves.figure.axes] == ["1. min cost", "2. max reward"]

    def test_the_thick_line_is_the_median_of_the_seeds_that_are_known(self):
        returns = np.array([[[1.0], [2.0], [9.0]], [[NAN], [4.0], [6.0]], [[NAN], [NAN], [NAN]]])
        picture = learning_curves.draw(np.array([1, 2, 3]), returns, ["max reward"], "")
        thick = max(picture.figure.axes[0].lines, key=lambda line: line.get_linewidth())
        np.testing.assert_array_equal(thick.get_xydata(), [[1, 2], [2, 5]])

    def test_an_objective_without_any_episode_stays_empty(self):
        picture = learning_curves.draw(np.array([1, 2]), np.full((2, 3, 1), NAN), ["max reward"], "")
        assert picture.png.startswith(BEGINNINGS["png"])


def test_the_slack_curve_begins_at_the_optimum_and_goes_to_the_other_extreme():
    slack, cost, reward = np.array([0.0, 1.0, 3.0]), np.array([2.0, 3.0, 5.0]), np.array([0.0, 8.0, 10.0])
    picture = tradeoffs.slack_curve(slack, cost, reward, ("cost", "reward"), "a title")
    texts = [text.get_text() for text in picture.figure.axes[0].texts]
    assert texts == ["lexicographic optimum\ncost 2, reward ≈ 0", "best reward with no regard to cost: 10"]


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
        return tradeoffs.tolerance_curves(tolerances, panels, gap, "a title")

    def test_one_panel_for_each_objective_in_its_order(self):
        assert [axes.get_ylabel() for axes in self.drawn(0.1).figure.axes] == ["cost given up", "reward"]

    def test_with_a_bound_the_axis_has_powers_of_ten(self):
        bounded = self.drawn(0.1, bound=np.geomspace(1e-3, 1, 10)).figure
        assert [axes.get_yscale() for axes in bounded.axes] == ["log", "linear"]
        assert [text.get_text() for text in bounded.legends[0].texts] == ["exact", "bound"]

    @pytest.mark.parametrize(("gap", "side"), [(0.002, "left"), (0.5, "right")])
    def test_the_gap_is_named_where_there_is_room(self, gap, side):
        (text,) = self.drawn(gap).figure.axes[0].texts
        assert text.get_text().startswith(f"below the gap of {gap}")
        assert text.get_horizontalalignment() == side

    def test_what_was_learned_has_its_mean(self):
        learned = (np.array([0.01, 0.1]), np.array([[1.0, 3.0], [4.0, 8.0]]))
        lines = self.drawn(0.1, learned=learned).figure.axes[0].lines
        assert any(np.array_equal(line.get_xydata(), [[0.01, 2.0], [0.1, 6.0]]) for line in lines)


def test_a_map_can_be_drawn():
    obstacles = np.zeros(9, bool)
    obstacles[4] = True
    picture = maps.grid_policy(3, obstacles, 1, np.eye(4)[np.arange(9) % 4], np.ones(9), "a title")
    assert picture.png.startswith(BEGINNINGS["png"])
