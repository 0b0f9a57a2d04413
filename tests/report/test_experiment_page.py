"""The page of experiments in a browser: it is whole, it asks for nothing, and it answers pointers and keys."""

import pytest
import synthetic
from browser import MISSING, Browser

from lexrl.report.page import document

pytestmark = pytest.mark.skipif(MISSING, reason="no browser here: chromium is not installed")
CURVES = "document.querySelector(\"figure[data-name='cart-safe-tuned']\")"
FRONT = "document.querySelector(\"figure[data-name='front']\")"
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
    """Charts whose lines take up room."""
    return page.run(
        "[...document.querySelectorAll('svg.chart')].filter(each => each.querySelector('.s path.end, .s path.big')"
        ".getBoundingClientRect().width > 0 && each.getBoundingClientRect().width > 200).length"
    )


def move(page, x, y, figure=CURVES):
    """The pointer to a place of a figure's first chart, in shares of its size."""
    page.run(f"{figure}.scrollIntoView({{behavior: 'instant'}})")
    box = page.run(
        f"(() => {{ const box = {figure}.querySelector('svg.chart').getBoundingClientRect();"
        "return [box.x, box.y, box.width, box.height]; })()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] * x, y=box[1] + box[3] * y)


def readout(page, figure=CURVES):
    shown = f"[...{figure}.querySelectorAll('.readout')].filter(each => !each.hidden)"
    return page.run(f"{shown}.map(each => each.innerText)")


def test_every_figure_is_there(page):
    assert drawn(page) == 10
    assert page.run("[...document.querySelectorAll('.picture img')].every(each => each.naturalWidth > 0)")
    assert page.run("document.querySelectorAll('.matrix td.over').length") > 30


def test_without_scripts_it_is_whole(browser, address):
    browser.open(address, scripts=False)
    try:
        assert drawn(browser) == 10
        assert browser.run("document.querySelectorAll('.key').length") > 9
        assert browser.run("document.querySelectorAll('button').length") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_legend_hides_and_shows_a_line_in_all_panels(page):
    hidden = f"[...{CURVES}.querySelectorAll('g.s')].filter(each => getComputedStyle(each).display === 'none')"
    assert page.run(f"{hidden}.length") == 0
    page.run(f"{KEY}[2].click()")
    assert page.run(f"{hidden}.map(each => each.dataset.l)") == ["LDQN", "LDQN"]
    assert page.run(f"{KEY}[2].getAttribute('aria-pressed')") == "false"
    page.run(f"{KEY}[2].focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    assert page.run(f"{hidden}.length") == 0
    assert page.run(f"{KEY}[2].getAttribute('aria-pressed')") == "true"


def test_a_pointer_reads_the_values_of_the_lines_that_are_shown(page):
    page.run(f"{KEY}[2].click()")
    move(page, 0.999, 0.5)
    cost, reward = readout(page)
    assert cost.startswith("2M")
    assert "LPPO" in cost
    assert "LDQN" not in cost
    assert len(cost.splitlines()) == len(reward.splitlines()) == 1 + 8
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert readout(page) == []


def test_the_values_are_those_of_the_file(page):
    move(page, 0.999, 0.5)
    wanted = synthetic.experiment()["sections"][2]["panels"][0]["series"][0]
    row = next(line for line in readout(page)[0].splitlines() if line.startswith("LPPO"))
    assert float(row.split("\t")[1]) == pytest.approx(wanted["middle"][-1], rel=1e-3)


def test_keys_walk_along_the_lines(page):
    page.run(f"{CURVES}.querySelector('svg.chart').focus()")
    firsts = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key)
        firsts.append(readout(page)[0].splitlines()[0])
    assert firsts == ["0", "40.82k", "0"]
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Escape", code="Escape")
    assert readout(page) == []


def test_a_pointer_finds_a_seed_in_the_front(page):
    place = page.run(
        f"(() => {{ const a = {FRONT}.querySelector('.big').getBoundingClientRect(),"
        f" b = {FRONT}.querySelector('svg.chart').getBoundingClientRect();"
        "return [(a.x + a.width / 2 - b.x) / b.width, (a.y + a.height / 2 - b.y) / b.height]; })()"
    )
    move(page, *place, FRONT)
    assert "seed" in readout(page, FRONT)[0]


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
    line = "document.querySelector('g.s path.m')"
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
