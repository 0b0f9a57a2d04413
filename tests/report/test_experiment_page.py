"""The page of experiments in a browser: it is whole, it asks for nothing, and it answers pointers and keys."""

import time

import pytest
import synthetic
from browser import MISSING, Browser

from lexrl.report.page import document

pytestmark = pytest.mark.skipif(MISSING, reason="no browser here: chromium is not installed")
CURVES = "document.querySelector(\"figure[data-name='cart-safe-tuned']\")"
FRONT = "document.querySelector(\"figure[data-name='front']\")"
PLANE = "document.querySelector(\"figure[data-name='plane']\")"
SERIES = synthetic.experiment()["sections"][2]["panels"][0]["series"]
KEY = f"{CURVES}.querySelectorAll('.key button')"
FINAL = "document.querySelector(\"figure[data-name='final'] table\")"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    one = synthetic.write(place / "one", synthetic.experiment())
    two = synthetic.write(place / "two", synthetic.experiment(("Sarsa", "Q-learning"), name="other", title="Other"))
    (place / "report.html").write_text(document("Results", [one, two]))
    return (place / "report.html").as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def page(browser, address):
    browser.errors.clear()
    browser.requests.clear()
    browser.open(address)
    yield browser
    assert browser.errors == []
    assert [request for request in browser.requests if not request.startswith("data:")] == [address]


def drawn(page):
    """Charts whose lines or markers take up room."""
    return page.run(
        "[...document.querySelectorAll('.plot svg')].filter(each => [...each.querySelectorAll('.mark-symbol path')]"
        ".some(mark => mark.getBoundingClientRect().width > 2) && each.getBoundingClientRect().width > 200).length"
    )


def wait(page, expression):
    """Until an expression holds: charts are drawn again when they are first used."""
    for _ in range(200):
        if page.run(expression):
            return
        time.sleep(0.05)
    raise TimeoutError(expression)


def live(page, figure=CURVES, panel=0):
    """Bring a chart to life."""
    plot = f"{figure}.querySelectorAll('.plot')[{panel}]"
    page.run(f"{plot}.scrollIntoView({{behavior: 'instant', block: 'center'}}), {plot}.focus()")
    wait(page, f"{plot}.querySelector('.vega-embed, .role-frame') && {plot}.querySelector('div') !== null")
    return plot


def move(page, plot, x, y):
    """The pointer to a place of a chart, in shares of its size; twice, for the first brings it there."""
    box = page.run(
        f"(() => {{ const box = {plot}.querySelector('svg').getBoundingClientRect();"
        "return [box.x, box.y, box.width, box.height]; })()"
    )
    for shift in (1, 0):
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] * x - shift, y=box[1] + box[3] * y)


def readout(page, figure=CURVES):
    shown = f"[...{figure}.querySelectorAll('.readout')].filter(each => !each.hidden)"
    return page.run(f"{shown}.map(each => each.innerText)")


def press(page, key):
    page.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key)
    page.run("new Promise(done => setTimeout(done, 50))")


def lines(page, plot):
    return page.run(f"{plot}.querySelectorAll('.mark-line.role-mark path').length")


def test_every_figure_is_there(page):
    assert drawn(page) == 12
    assert page.run("[...document.querySelectorAll('.picture img')].every(each => each.naturalWidth > 0)")
    assert page.run("document.querySelectorAll('.matrix td.over').length") > 30


def test_without_scripts_it_is_whole(browser, address):
    browser.open(address, scripts=False)
    try:
        assert drawn(browser) == 12
        assert browser.run("document.querySelectorAll('.key').length") > 9
        assert browser.run("document.querySelectorAll('button').length") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_legend_hides_and_shows_a_line_in_all_panels(page):
    plots = [f"{CURVES}.querySelectorAll('.plot')[{i}]" for i in (0, 1)]
    assert [lines(page, plot) for plot in plots] == [9, 9]
    page.run(f"{KEY}[2].click()")
    for plot in plots:
        wait(page, f"{plot}.querySelectorAll('.mark-line.role-mark path').length === 8")
    assert page.run(f"{KEY}[2].getAttribute('aria-pressed')") == "false"
    page.run(f"{KEY}[2].focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    for plot in plots:
        wait(page, f"{plot}.querySelectorAll('.mark-line.role-mark path').length === 9")
    assert page.run(f"{KEY}[2].getAttribute('aria-pressed')") == "true"


def number(text):
    """What a readout says, as a number."""
    factors = {"k": 1e3, "M": 1e6, "G": 1e9}
    return float(text[:-1]) * factors[text[-1]] if text[-1] in factors else float(text)


@pytest.mark.parametrize("place", [(0.3, 0.4), (0.55, 0.75), (0.97, 0.5), (0.12, 0.2)])
def test_a_pointer_reads_a_value_that_is_in_the_data(page, place):
    """Whatever the place: what is shown is one point of one line, with its interval."""
    plot = live(page)
    move(page, plot, *place)
    wait(page, f"[...{CURVES}.querySelectorAll('.readout')].some(each => !each.hidden)")
    (shown,) = readout(page)
    label, *rows = [line.split("\t") for line in shown.splitlines()]
    (x, y, interval) = number(rows[0][1]), number(rows[1][1]), [number(v) for v in rows[1][2].strip("[]").split(", ")]
    (series,) = [one for one in SERIES if one["label"] == label[0]]
    (i,) = [i for i, known in enumerate(series["x"]) if known == pytest.approx(x, rel=1e-3)]
    for key, value in (("middle", y), ("low", interval[0]), ("high", interval[1])):
        assert value == pytest.approx(series[key][i], rel=1e-3)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    wait(page, f"[...{CURVES}.querySelectorAll('.readout')].every(each => each.hidden)")


def test_keys_walk_along_the_lines_and_from_line_to_line(page):
    live(page)
    shown = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        press(page, key)
        shown.append(readout(page)[0].splitlines())
    assert [one[0] for one in shown] == ["LPPO", "LPPO", "LPPO", "LA2C", "LPPO"]
    assert [one[1].split("\t")[1] for one in shown] == ["0", "40.82k", "0", "0", "0"]
    assert page.run(f"{CURVES}.querySelector('.readout').getAttribute('aria-live')") == "polite"
    press(page, "Escape")
    assert readout(page) == []


@pytest.mark.parametrize(("figure", "word"), [(FRONT, "seed"), (PLANE, "seed 1")])
def test_a_pointer_finds_a_seed(page, figure, word):
    plot = live(page, figure)
    place = page.run(
        f"(() => {{ const a = {plot}.querySelector('.layer_2_marks path, .layer_1_marks path').getBoundingClientRect(),"
        f" b = {plot}.querySelector('svg').getBoundingClientRect();"
        "return [(a.x + a.width / 2 - b.x) / b.width, (a.y + a.height / 2 - b.y) / b.height]; })()"
    )
    move(page, plot, *place)
    wait(page, f"[...{figure}.querySelectorAll('.readout')].some(each => !each.hidden)")
    assert word in readout(page, figure)[0]


def test_tables_sort_by_value_and_by_name(page):
    column = f"[...{FINAL}.tBodies[0].rows].map(row => row.cells[0].textContent.trim())"
    before = page.run(column)
    heads = f"{FINAL}.querySelectorAll('thead button')"
    page.run(f"{heads}[1].click(), {heads}[1].click()")
    assert page.run(column) == before[::-1]  # 10.00 comes before 9.00
    assert page.run(f"[...{FINAL}.querySelectorAll('th[scope=col]')].map(each => each.getAttribute('aria-sort'))") == [
        "none", "descending", "none", "none", "none",
    ]  # fmt: skip
    page.run(f"{heads}[0].click()")
    assert page.run(column) == sorted(before, key=str.lower)
    for _ in range(2):
        page.run(f"{heads}[4].click()")
        assert page.run(column)[-1] == "PPO"  # no value is last, both ways


def test_a_picture_opens(page):
    page.run("document.querySelector('.picture img').click()")
    assert page.run("document.querySelector('dialog').open")
    page.run("document.querySelector('dialog').click()")
    assert not page.run("document.querySelector('dialog').open")


@pytest.mark.parametrize("width", [360, 420, 768, 1400])
def test_nothing_sticks_out(browser, address, width):
    browser.open(address, width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_dark_mode_has_other_colors(browser, address):
    shown = []
    line = "document.querySelector('.plot .mark-line path')"
    for dark in (False, True):
        browser.open(address, dark=dark)
        shown.append(browser.run(f"[document.body, {line}].map(each => getComputedStyle(each)).map("
                                 "each => each.backgroundColor + each.stroke)"))  # fmt: skip
    assert shown[0][0] != shown[1][0]
    assert shown[0][1] != shown[1][1]


def test_print_is_in_light_mode(browser, address):
    browser.open(address, dark=True)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.call("Emulation.setEmulatedMedia", media="print", features=[dark])
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('.contents')).display") == "none"
    browser.call("Emulation.setEmulatedMedia", media="")


def test_contents_stay_in_sight_on_a_wide_screen(browser, address):
    browser.open(address, width=1400)
    browser.run("document.querySelector('#other-laptop').scrollIntoView({behavior: 'instant'})")
    top = "document.querySelector('.contents').getBoundingClientRect().top"
    assert 0 <= browser.run(top) < 100
    browser.open(address, width=420)
    assert not browser.run("document.querySelector('.contents details').open")
