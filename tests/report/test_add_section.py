"""A kind of section is one file: one from outside the package is read, written, shown and exported."""

import json
import sys

import pytest
import synthetic

from lexrl.errors import InputError
from lexrl.report import export, page
from lexrl.report import folder as reports

HISTOGRAM = '''
"""How often each value occurs."""

from typing import NamedTuple

from lexrl.report import markup


class Histogram(NamedTuple):
    kind = "histogram"
    name: str
    title: str
    counts: dict


def read(part):
    return Histogram(part.text("name", ""), part.text("title", ""), dict(part.mapping("counts")))


def write(section, folder):
    return section._asdict()


def labels(section):
    return ["LPPO"]


def html(section, styles):
    bars = "".join(f"<meter class=k{styles['LPPO']} max=9 value={count}></meter>" for count in section.counts.values())
    return f"<figure>{bars}{markup.caption(section.name, section.title, '', rows(section))}</figure>"


def figure(section, styles):
    from lexrl.report import picture

    with picture.drawing(4, 3) as drawn:
        drawn.add_subplot().bar(list(section.counts), list(section.counts.values()))
        return picture.finish(drawn)


def rows(section):
    return [["value", "count"], *map(list, section.counts.items())]
'''


@pytest.fixture
def histogram(tmp_path, monkeypatch):
    """A module of its own, as a package of a user's has it."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_histogram.py").write_text(HISTOGRAM)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setattr(page, "KINDS", page.KINDS.copy())
    monkeypatch.setattr(export, "KINDS", page.KINDS)
    import my_histogram

    yield my_histogram
    sys.modules.pop("my_histogram")


@pytest.fixture
def folder(tmp_path, histogram):
    page.add_kind("histogram", histogram)
    section = histogram.Histogram("lengths", "Episode lengths", {"10": 3, "20": 7})
    content = synthetic.experiment(("LPPO", "LDQN"), points=3)
    content["sections"].insert(0, page.write(section, tmp_path))
    return synthetic.write(tmp_path / "experiment", content)


def test_it_is_in_the_page(folder):
    text = page.document("Results", [folder])
    assert "<h3>Episode lengths</h3>" in text
    assert text.count("<meter") == 2
    assert "download='lengths.csv'" in text
    assert text.count("<section") == 1 + 9 + 1


def test_it_is_written_to_files(folder):
    export.write_data(folder)
    assert (folder / "data" / "lengths.csv").read_text() == "value,count\n10,3\n20,7\n"
    export.write_figures(folder)
    assert (folder / "figures" / "lengths.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_read_is_what_was_written(folder, histogram):
    content = json.loads((folder / "experiment.json").read_text())
    for section, written in zip(page.read(folder).sections, content["sections"], strict=True):
        again = json.loads(json.dumps(page.write(section, folder)))
        shared = again.keys() & written.keys() - {"name", "images", "rows", "panels"}
        assert {key: again[key] for key in shared} == {key: written[key] for key in shared}
    assert page.read(folder).sections[0] == histogram.Histogram("lengths", "Episode lengths", {"10": 3, "20": 7})


def test_without_it_the_kind_is_unknown(folder, monkeypatch):
    monkeypatch.delitem(page.KINDS, "histogram")
    with pytest.raises(InputError, match="section 1 has the unknown kind 'histogram'; known are text, curves"):
        page.document("Results", [folder])


def test_a_name_is_taken_once(histogram):
    page.add_kind("histogram", histogram)
    page.add_kind("histogram", histogram)
    with pytest.raises(InputError, match="There is a kind of section called 'text' already; choose another name"):
        page.add_kind("text", histogram)


def test_names_of_sections_do_not_lead_out_of_the_folder(tmp_path):
    """They come from a file that may be somebody else's, and become names of files."""
    content = synthetic.experiment()
    named = [part for part in content["sections"] if part.get("name")]
    for part, name in zip(named, ("../../escaped", "/tmp/escaped", "..", "a/b", "x" * 300), strict=False):
        part["name"] = name
    folder = synthetic.write(tmp_path / "deep" / "down" / "one", content)
    before = set(tmp_path.rglob("*"))
    written = {*export.write_figures(folder), *export.write_data(folder)}
    made = {path for path in set(tmp_path.rglob("*")) - before if path.is_file()}
    assert made == written
    assert {path.parent for path in written} == {folder / "figures", folder / "data"}
    assert export.file_name("cart-safe/tuned ±5 %") == "cart-safe-tuned-5"


def test_links_in_an_experiment_are_not_written_through(tmp_path):
    folder = synthetic.write(tmp_path / "one", synthetic.experiment())
    precious = tmp_path / "precious"
    precious.mkdir()
    (folder / "data").symlink_to(precious)
    with pytest.raises(InputError, match="is a link to"):
        reports.write(folder, tmp_path / "report.html")
    assert list(precious.iterdir()) == []
