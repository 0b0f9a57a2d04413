"""Every kind of section: what is written is read again, whatever the numbers are."""

import json
import math

import numpy as np
import pytest

from lexrl.report import page
from lexrl.report.experiment import FILE, FORMAT
from lexrl.report.panels import Panel, Series
from lexrl.report.sections import claims, curves, front, images, plane, ranking, scaling, table, text

NAN = math.nan
X = np.array([1.0, 2.0, 4.0])
GAPS = np.array([0.5, NAN, 1000.0])  # five digits are written
SERIES = Series("LPPO", X, GAPS, GAPS - 1, GAPS + 1)
PANEL = Panel("cost", "y", False, (SERIES,), (SERIES,), ((1.0, "stage 2"),), ((0.5, "limit"),))
SECTIONS = {
    "text": text.Text("Read me", ("One.", "Two.")),
    "curves": curves.Curves("c", "Curves", "caption", "steps", (PANEL,)),
    "plane": plane.Plane(
        "p", "Plane", "", "cost", "reward", (front.Points("A", X, GAPS, (3, 4, 5)), front.Points("B", X, X))
    ),
    "scaling": scaling.Scaling(
        "s", "Scaling", "", "M", "y",
        (Panel("256", "y", True, (SERIES._replace(exponent=(0.5, 0.25, 0.75), fit=(X, X**0.5)), SERIES)),),
    ),
    "table": table.Table("t", "Table", "", ("a", "b"), ((table.Cell("x"), table.Cell("1 [0, 2]", 1.0)),)),
    "ranking": ranking.Ranking(
        "r", "Ranking", "", ("A", "B"), (("A",), ("B",)), np.array([[NAN, 0.75], [0.25, NAN]])
    ),
    "front": front.Front(
        "f", "Front", "", "cost", "reward", front.Points("exact", X, X), (front.Points("A", X, GAPS),)
    ),
    "claims": claims.Claims("Claims", (claims.Claim("It is.", "yes", "1"), claims.Claim("No.", "not decidable", ""))),
}  # fmt: skip


def read_again(section, folder):
    written = page.write(section, folder)
    content = {"format": FORMAT, "experiment": "x", "title": "X", "runs": [], "sections": [written]}
    (folder / FILE).write_text(json.dumps(content, allow_nan=False))
    (found,) = page.read(folder).sections
    return found


def same(one, other):
    """Equal values, arrays and NaNs included."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float | np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return one == other


@pytest.mark.parametrize("kind", SECTIONS)
def test_read_is_written(kind, tmp_path):
    section = SECTIONS[kind]
    assert section.kind == kind
    found = read_again(section, tmp_path)
    assert type(found) is type(section)
    assert same(found, section._replace(name=found.name))


def test_an_image_goes_to_its_file(tmp_path):
    image = images.Image(tmp_path.__class__("figures", "a.png"), "a map", "LPPO", b"content")
    found = read_again(images.Images("Maps", "caption", (image,)), tmp_path)
    assert (tmp_path / "figures" / "a.png").read_bytes() == b"content"
    assert found == images.Images("Maps", "caption", (images.Image(tmp_path / "figures" / "a.png", "a map", "LPPO"),))


def test_every_kind_is_here():
    assert {*SECTIONS, "images"} == set(page.KINDS)
