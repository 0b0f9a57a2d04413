"""Experiments as chapters: all that was measured is shown, nothing foreign gets in, and what is wrong is said."""

import csv
import html.parser
import io
import json
import pathlib
import re
import urllib.parse

import numpy as np
import PIL.Image
import pytest
import synthetic
from synthetic import HOSTILE, NINE

from lexrl import store
from lexrl.errors import InputError
from lexrl.report import chart, experiment, marks, markup, numbers, page, palette
from lexrl.report.export import write_data, write_figures
from lexrl.report.page import document
from lexrl.report.sections import claims

DRAWN = ("cart-safe-tuned", "ranking", "scaling", "front", "plane")
NUMBERS = (*DRAWN, "final", "what-the-paper-says-and-what-is-seen-here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return synthetic.write(tmp_path_factory.mktemp("experiment"), synthetic.experiment())


class Tree(html.parser.HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def all(self, tag, **wanted):
        return [given for name, given in self.tags if name == tag and wanted.items() <= given.items()]


def _without_scripts(text):
    return re.sub(r"<script.*?</script>|href='[^']*'", "", text, flags=re.DOTALL)


def test_every_kind_is_in_a_chapter(folder):
    text = document("x", [folder])
    for part in (
        "Safety: CartSafe and GridNav", "laptop size", "9 runs", "21 min", "16 November 2026", "commit abc1234",
        "not decidable", "Reward counts <code>after</code>", "undecided among these", "0.31 <small>[0.21, 0.41]",
        "lexrl experiment safety --size laptop", "lexrl train ldqn cart-safe", "x86_64", "all finished",
    ):  # fmt: skip
        assert part in text, part
    tree = Tree(text)
    assert len(tree.all("div", **{"class": "plot"})) == 2 + 2 + 1 + 1
    assert len(tree.all("img")) == 2
    assert all(image["alt"] for image in tree.all("img"))
    assert all(each["aria-label"] for each in tree.all("div", role="img"))
    assert all(head["scope"] in ("col", "row") for head in tree.all("th"))
    assert len(tree.all("a", **{"class": "csv"})) == len(NUMBERS)


def test_a_document_has_contents_and_every_anchor_exists(folder, tmp_path):
    other = synthetic.write(tmp_path / "two", synthetic.experiment(("Sarsa", "LPPO"), name="other", title="Other"))
    text = document("Results", [folder, other])
    tree = Tree(text)
    names = [given["id"] for _, given in tree.tags if "id" in given]
    assert len(set(names)) == len(names)
    links = {given["href"][1:] for given in tree.all("a") if given["href"].startswith("#")}
    assert links <= set(names)
    assert len(links) == 2 * (1 + 9 + 1)
    assert text.count("<h1") == 1
    assert "<h1>Results</h1>" in text
    assert "2 experiments, 11 runs" in text


def test_a_run_of_two_experiments_is_one_run(tmp_path):
    places = [synthetic.write(tmp_path / name, synthetic.experiment(("LDQN", "LPPO"), name=name)) for name in "ab"]
    assert "2 experiments, 2 runs, 3 min of computing" in document("Results", places)


def test_runs_of_several_commits_name_them_all(tmp_path):
    content = synthetic.experiment(("LDQN", "LPPO")) | {"commit": "abc1234, def5678-dirty"}
    assert "commits abc1234, def5678-dirty" in document("Results", [synthetic.write(tmp_path, content)])


def test_the_cover_counts_what_is_finished(tmp_path):
    content = synthetic.experiment(("LDQN", "LPPO", "LA2C"))
    content["runs"][1] |= {"state": "missing", "seconds": None}
    places = [synthetic.write(tmp_path / name, content) for name in "ab"]
    assert "2 experiments, 2 runs, 3 min of computing" in document("Results", places)


def test_a_single_experiment_is_the_title(folder):
    text = document("folder", [folder])
    assert "<title>Safety: CartSafe and GridNav</title>" in text
    assert text.count("<h1") == 1


def test_nothing_is_asked_for_from_elsewhere(folder):
    text = document("x", [folder])
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL).replace('xmlns="http://www.w3.org/2000/svg"', "")
    shown = shown.replace('xmlns:xlink="http://www.w3.org/1999/xlink"', "").replace("data:text/csv", "")
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", shown)
    for _, given in Tree(text).tags:
        for key in ("src", "href"):
            assert given.get(key, "#").startswith(("#", "data:"))


def test_hostile_words_stay_words(tmp_path):
    labels = (HOSTILE, "'\"><img src=x onerror=alert(1)>", "</script><b>", "a & b", "$x_", "_hidden")
    content = synthetic.experiment(labels, points=5, title=HOSTILE)
    content |= {"question": HOSTILE, "command": HOSTILE, "begun": HOSTILE, "commit": HOSTILE, "size": HOSTILE}
    content["versions"] = content["machine"] = {HOSTILE: HOSTILE, "list": [HOSTILE]}
    content["runs"][0] |= {"state": "failed", "why": HOSTILE, "folder": HOSTILE, "command": HOSTILE}
    for section in content["sections"]:
        section |= {key: HOSTILE for key in ("title", "caption", "x", "y", "name") if key in section}
    content["sections"][0]["rows"][0] |= {"claim": HOSTILE, "numbers": HOSTILE}
    content["sections"][1]["text"] = f"{HOSTILE}\n\n`{HOSTILE}` half a letter \ud800"
    content["sections"][3]["heads"][0] = HOSTILE
    content["sections"][7]["images"][0] |= {"alt": HOSTILE, "label": HOSTILE}
    folder = synthetic.write(tmp_path, content)
    text = document(HOSTILE, [folder])
    text.encode()
    tree = Tree(text)
    assert len(tree.all("script")) == 3 + 6  # the page's own two with their style, and the numbers of six charts
    assert len(tree.all("b")) == 1  # the sentence about the failed run
    assert len(tree.all("img")) == 2
    assert not [given for _, given in tree.tags if any(key.startswith("on") for key in given)]
    written = [path.name for path in write_figures(folder) + write_data(folder)]
    assert len(set(written)) == len(written)
    assert all(re.fullmatch(r"[a-z0-9-]+\.(png|svg|csv)", name) for name in written)


def test_failures_come_first_and_the_rest_is_shown(tmp_path):
    content = synthetic.experiment()
    content["runs"][5] |= {"state": "missing", "seconds": None, "why": ""}
    content["runs"][7] |= {"state": "failed", "why": "Seed 3 diverged."}
    text = document("x", [synthetic.write(tmp_path, content)])
    assert "<b>2 of 9 runs did not finish</b> (AproPO, DQN)" in text
    assert text.index("Seed 3 diverged.") < text.index("lexrl train dqn") < text.index("lexrl train lppo")
    assert "9 runs, 2 not finished" in text
    assert text.count("class=plot") == 6


def test_an_experiment_without_results_says_so(tmp_path):
    content = synthetic.experiment() | {"sections": []}
    assert "There are no results yet." in document("x", [synthetic.write(tmp_path, content)])


def test_a_missing_picture_is_told(tmp_path):
    text = document("x", [synthetic.write(tmp_path, synthetic.experiment(), pictures=False)])
    assert "The picture &#x27;a.png&#x27; is missing." in text


def test_a_large_picture_is_made_smaller(tmp_path):
    folder = synthetic.write(tmp_path, synthetic.experiment())
    noise = np.random.default_rng(0).integers(0, 255, (900, 1400, 3), dtype=np.uint8)
    PIL.Image.fromarray(noise).save(folder / "figures" / "a.png")
    assert (folder / "figures" / "a.png").stat().st_size > 3e6
    assert len(document("x", [folder])) - len(chart.runtime()) < 1e6
    (folder / "figures" / "a.png").write_bytes(b"no picture" * 10_000)
    text = document("x", [folder])
    assert "The picture &#x27;a.png&#x27; is damaged." in text
    assert _without_scripts(text).count("<img") == 1


def test_a_page_of_all_algorithms_environments_and_presets_is_small(tmp_path):
    content, rng = synthetic.experiment(), np.random.default_rng(1)
    names = [f"{env}-{preset}" for env in ("cart-safe", "grid-nav") for preset in ("paper", "tuned")]
    content["sections"] += [synthetic.curves(rng, name) for name in names]
    text = document("x", [synthetic.write(tmp_path, content)])
    assert len(text.encode()) - len(chart.runtime()) < 1.5e6


def test_long_curves_are_thinned_on_the_page_and_whole_in_the_file(tmp_path):
    content = synthetic.experiment(points=1200)
    folder = synthetic.write(tmp_path, content)
    text = document("x", [folder])
    assert len(text.encode()) - len(chart.runtime()) < 3e6
    assert "data: <code>data/cart-safe-tuned.csv</code>" in text
    write_data(folder)
    assert len((folder / "data" / "cart-safe-tuned.csv").read_text().splitlines()) == 1 + 2 * 9 * 1200


def test_figures_are_files(tmp_path):
    folder = synthetic.write(tmp_path, synthetic.experiment(NINE[:3], points=5))
    written = write_figures(folder)
    assert [path.name for path in written] == [f"{name}.{kind}" for name in DRAWN for kind in ("png", "svg")]
    for path in written:
        start = b"\x89PNG" if path.suffix == ".png" else b"<svg"
        assert path.read_bytes().startswith(start)
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in write_figures(folder)] == before


def test_data_is_tidy_and_the_same_on_the_page(folder):
    written = {path.stem: path for path in write_data(folder)}
    assert set(written) == set(NUMBERS)
    curves = store.read_csv(written["cart-safe-tuned"])
    assert len(curves) == 2 * 9 * 50
    content = json.loads((folder / "experiment.json").read_text())
    series = content["sections"][2]["panels"][1]["series"][4]
    found = [row for row in curves if (row["panel"], row["label"]) == ("2. max reward", "A2C")]
    for key in ("x", "middle", "low", "high"):
        np.testing.assert_allclose([float(row[key]) for row in found], series[key], rtol=1e-9)
    scaling = store.read_csv(written["scaling"])
    assert {row["what"] for row in scaling} == {"measured", "fit", "exponent"}
    assert [row["middle"] for row in scaling if row["what"] == "exponent"] == ["0.31", "0.72", "1.1"] * 2
    final = store.read_csv(written["final"])
    assert final[0]["cost"] == "2"
    assert final[0]["cost as shown"] == "2.00 [1.20, 3.00]"
    assert final[3]["seconds"] == ""
    assert "seconds as shown" not in final[0]
    assert len(store.read_csv(written["ranking"])) == 9 * 8
    links = {each["download"]: each["href"] for each in Tree(document("x", [folder])).all("a", **{"class": "csv"})}
    for name, path in written.items():
        inside = urllib.parse.unquote(links[f"{name}.csv"].removeprefix("data:text/csv;charset=utf-8,"))
        assert inside == path.read_text()


def test_texts_with_commas_and_quotes_survive_csv():
    section = claims.Claims("", (claims.Claim('a, "b"\nc', "yes", HOSTILE),), "claims")
    rows = list(csv.reader(io.StringIO(markup.csv_text(claims.rows(section)))))
    assert rows[1] == ['a, "b"\nc', "yes", HOSTILE]


def test_a_label_has_one_style_everywhere():
    chapters = [["Q", "Sarsa"], [*NINE], ["LPPO", "Q"]]
    given = palette.assign(chapters)
    assert set(given) == {"Q", "Sarsa", *NINE}
    assert len(set(given.values())) == len(given)
    for labels in chapters:
        assert len({palette.color(given[label]) for label in labels}) == len(labels)
    many = palette.assign([[str(i) for i in range(40)]])
    drawn = {(palette.color(number), palette.dash(number), palette.shape(number)) for number in many.values()}
    assert len(drawn) == 40


def test_colors_have_contrast_with_the_background():
    for colors, background in ((palette.LIGHT, "#ffffff"), (palette.DARK, "#16181b")):
        assert f"--paper: {background}" in markup.style().replace("#fff;", "#ffffff;")
        assert min(_contrast(color, background) for color in colors) >= 2.95


def _contrast(one, other):
    shares = [np.frombuffer(bytes.fromhex(color[1:]), np.uint8) / 255 for color in (one, other)]
    linear = [np.where(each <= 0.03928, each / 12.92, ((each + 0.055) / 1.055) ** 2.4) for each in shares]
    low, high = sorted(float(each @ [0.2126, 0.7152, 0.0722]) for each in linear)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("value", "name"),
    [(0, "0"), (250_000, "250k"), (1e6, "1M"), (1_500_000, "1.5M"), (0.05, "0.05"), (-20, "−20"), (2e-6, "2e−6")],
)
def test_axes_are_readable(value, name):
    assert numbers.format_tick(float(value)) == name


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.5, 2e4, (1, 10, 100, 1000, 10_000)),
        (22e3, 75e3, (30_000, 50_000, 70_000)),
        (8e3, 350e3, (10_000, 30_000, 100_000, 300_000)),
        (1.0, 1e9, (1, 100, 1e4, 1e6, 1e8)),
    ],
)
def test_ticks_of_a_logarithmic_axis(low, high, ticks):
    assert marks.log_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "values",
    [[], [None], [None, 3.0, None], [0.0, 0.0], [-5, 5, 1e300], [1e9, 1e9 + 1], [1e-300, 1], [float("nan"), 2, 3]],
)
def test_any_numbers_can_be_drawn(tmp_path, values, log):
    series = {"label": "A", "x": list(range(len(values))), "middle": values, "low": values, "high": []}
    panel = {"title": "", "y": "", "log": log, "series": [series]}
    point = {"label": "A", "x": values, "y": values}
    drawn: list = [
        {"kind": "curves", "name": "c", "x": "x", "panels": [panel, {"series": []}]},
        {"kind": "scaling", "name": "s", "x": "x", "y": "y", "panels": [{"series": [series]}]},
        {"kind": "front", "name": "f", "x": "x", "y": "y", "curve": point | {"label": "C"}, "points": [point]},
    ]
    folder = synthetic.write(tmp_path, synthetic.experiment() | {"sections": drawn})
    text = document("x", [folder])
    assert text.count("class=plot") == 4
    assert not re.search(r"\b(nan|inf)\b", _without_scripts(text), re.IGNORECASE)
    for _, given in Tree(text).tags:
        assert "nan" not in given.get("d", "")


def _without(key):
    return lambda content: content.pop(key)


def _section(number, **changes):
    def change(content):
        section = content["sections"][number]
        for key, value in changes.items():
            if value is None:
                section.pop(key)
            else:
                section[key] = value

    return change


BROKEN = {
    "no sections": (_without("sections"), "it has no 'sections'"),
    "no runs": (_without("runs"), "it has no 'runs'"),
    "no title": (_without("title"), "it has no 'title'"),
    "sections of texts": (lambda content: content.update(sections=["x"]), "section 1 is 'x', which is not valid"),
    "unknown kind": (_section(1, kind="poem"), "section 2 has the unknown kind 'poem'; known are text, curves"),
    "no kind": (_section(1, kind=None), "section 2 has no 'kind'"),
    "no text": (_section(1, text=None), "section 2 (text) has no 'text'"),
    "no panels": (_section(2, panels=None), "section 3 (curves) has no 'panels'"),
    "text as panels": (_section(2, panels="x"), "section 3 (curves) has 'x' for 'panels', which is not valid"),
    "short series": (
        lambda content: content["sections"][2]["panels"][0]["series"][1]["low"].pop(),
        "series 2 of panel 1 of section 3 (curves) has 49 numbers in 'low' where 50 are needed",
    ),
    "no middle": (
        lambda content: content["sections"][2]["panels"][0]["series"][1].update(middle=[]),
        "series 2 of panel 1 of section 3 (curves) has 0 numbers in 'middle' where 50 are needed",
    ),
    "a word among numbers": (
        lambda content: content["sections"][2]["panels"][0]["series"][0]["x"].append("x"),
        "has 'x' in 'x' where a number is needed",
    ),
    "a huge number": (
        lambda content: content.update(seconds=10**400),
        "it has a number in 'seconds' that is too large",
    ),
    "short row": (lambda content: content["sections"][3]["rows"][1].pop(), "has a row 2 without one cell for each"),
    "a cell of another kind": (
        lambda content: content["sections"][3]["rows"][1].__setitem__(1, [1]),
        "section 4 (table) has [1] in 'rows' where a number is needed",
    ),
    "unknown class": (_section(4, classes=[["unknown"]]), "has 'classes' that are not lists of its labels"),
    "small matrix": (_section(4, matrix=[[1]]), "has a 'matrix' that is not 9 by 9"),
    "front without curve": (_section(6, curve=None), "section 7 (front) has no 'curve'"),
    "unknown answer": (
        lambda content: content["sections"][0]["rows"][1].update(seen="maybe"),
        "row 2 of section 1 (claims) has the unknown answer 'maybe'; known are yes, no, not decidable",
    ),
    "a folder with a name that none has": (
        lambda content: content["runs"][0].update(folder="a\0b"),
        "run 1 has 'a\\x00b' for 'folder', which is not valid",
    ),
    "a folder whose name is no text": (
        lambda content: content["runs"][0].update(folder="\ud800"),
        "run 1 has '\\ud800' for 'folder', which is not valid",
    ),
    "unknown state": (lambda content: content["runs"][1].update(state="lost"), "run 2 has the unknown state 'lost'"),
    "a picture from outside": (
        lambda content: content["sections"][7]["images"][0].update(file="../secret.png"),
        "names the file '../secret.png', which is outside the experiment's folder",
    ),
    "a picture with a name that no file has": (
        lambda content: content["sections"][7]["images"][0].update(file="a\0.png"),
        "names the file 'a\\x00.png', which cannot be one",
    ),
    "no picture": (
        lambda content: content["sections"][7]["images"][0].update(file="figures/a.exe"),
        "which is not an image that a page can hold",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_a_sentence_with_the_file(tmp_path, case):
    change, words = BROKEN[case]
    content = synthetic.experiment()
    change(content)
    folder = synthetic.write(tmp_path, content)
    with pytest.raises(store.Damaged) as caught:
        page.read(folder)
    sentence = str(caught.value)
    assert words in sentence
    assert sentence.startswith(f"The file {str(folder / 'experiment.json')!r} is damaged: ")
    assert sentence.endswith(".")
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("{", "is damaged: it is not JSON"),
        ("[1]", "is damaged: it holds list"),
        ('{"name": "somebody"}', "is from another program"),
        ('{"format": 2, "name": "somebody"}', "is from another program"),
        ('{"format": 1, "experiment": "x"}', "has format 1, and this lexrl reads 2"),
        ('{"format": "2", "experiment": "x"}', "has format '2', and this lexrl reads 2"),
    ],
)
def test_foreign_files_are_sentences(tmp_path, written, words):
    path = tmp_path / "experiment.json"
    path.write_text(written)
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        document("x", [tmp_path])
    assert repr(str(path)) in str(caught.value)


def test_no_experiment_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"There is no file .*experiment.json'; give a folder"):
        document("x", [tmp_path])
    with pytest.raises(InputError, match="There is no experiment to report"):
        document("x", [])
    assert "<p>rest</p>" in document("x", [], [page.Part("rest", "Rest", "<p>rest</p>")])


def test_a_broken_experiment_is_told_and_the_others_are_shown(folder, tmp_path):
    (tmp_path / "experiment.json").write_text("{")
    text = document("x", [tmp_path, folder])
    assert "Left out:" in text
    assert "is not JSON" in text
    assert text.count("class=plot") == 6


def test_experiments_are_found_below_a_folder(tmp_path):
    for name in ("b/one", "a", "b/one/two"):
        synthetic.write(tmp_path / name, synthetic.experiment(points=3))
    assert experiment.below(tmp_path) == [tmp_path / pathlib.Path(name) for name in ("a", "b/one", "b/one/two")]
