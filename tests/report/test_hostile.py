"""Names that are markup: on the page they are text, and nothing they say is done."""

import pytest
import synthetic
from browser import MISSING, Browser

import lexrl
from lexrl import store
from lexrl.report import folder as reports
from lexrl.report import markup
from lexrl.report.page import document

pytestmark = pytest.mark.skipif(MISSING, reason="no browser here: chromium is not installed")
PAYLOAD = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>'\"><svg onload=window.hacked=3>"
    "--><script>window.hacked=4</script></title></style></svg><a href=javascript:window.hacked=5>&lt;$\u2028"
)
KEPT = ("kind", "state", "seen", "file", "folder", "format")
"""What a page looks up, and does not show."""
PLANTED = (
    "[window.hacked ?? null, document.querySelectorAll('[onerror], [onload], img[src=x], a[href^=javascript]').length, "
    "[...document.scripts].filter(each => each.type !== 'application/json').length]"
)


def hostile(value, key=""):
    """Every text with the payload after it."""
    if isinstance(value, dict):
        return {key: hostile(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [hostile(part, key) for part in value]
    return value + PAYLOAD if isinstance(value, str) and key not in KEPT else value


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def shown(browser, path, text):
    """Open a page; what went wrong in it."""
    path.write_text(text, encoding="utf-8")
    browser.errors.clear()
    browser.requests.clear()
    browser.open(path.as_uri())
    return browser.errors, [each for each in browser.requests if not each.startswith(("data:", "file:"))]


def test_an_experiment(browser, tmp_path):
    folder = synthetic.write(tmp_path / "one", hostile(synthetic.experiment()))
    assert shown(browser, tmp_path / "report.html", document("Results" + PAYLOAD, [folder])) == ([], [])
    assert browser.run(PLANTED) == [None, 0, 2]
    assert browser.run("document.body.innerText.split('window.hacked=2').length") > 50
    assert "window.hacked=1" in browser.run("document.title")
    browser.run("document.querySelectorAll('button').forEach(each => each.click())")
    read_everything(browser)
    assert browser.run(PLANTED) == [None, 0, 2]
    assert browser.errors == []


def read_everything(browser):
    """Bring every chart to life, and read its first values by keyboard."""
    count = browser.run("document.querySelectorAll('.plot').length")
    for i in range(count):
        browser.run(
            f"(async () => {{ const plot = document.querySelectorAll('.plot')[{i}]; plot.focus();"
            "for (const key of ['ArrowRight', 'ArrowDown'])"
            " plot.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));"
            "for (let i = 0; i < 200 && !plot.querySelector('div svg'); i++)"
            " await new Promise(done => setTimeout(done, 50)); })()"
        )
    assert browser.run("document.querySelectorAll('.plot div svg').length") == count


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two finished runs, an unfinished one and a solution, whose files say what nobody would."""
    place = tmp_path_factory.mktemp("runs")
    settings = {"seeds": 2, "total_timesteps": 640, "num_log_points": 2, "eval_episodes": 2}
    lexrl.train("random", "cart-safe", **settings, out=place / "source")
    about, summary = (store.read_json(place / "source" / name) for name in (store.RUN, store.SUMMARY))
    names = {name: name + PAYLOAD for name in ("cost", "reward")}
    rows = [
        row | {"objective": names.get(row["objective"], "")} for row in store.read_csv(place / "source" / store.METRICS)
    ]
    about = hostile({key: part for key, part in about.items() if key not in ("format", "id", "hash")}) | {
        "format": store.FORMAT, "objectives": [[names["cost"], -1], [names["reward"], 1]], "id": PAYLOAD,
    }  # fmt: skip
    about["hash"] = store.deciding_hash(about)
    summary["per_episode"] = {names[name]: values for name, values in summary["per_episode"].items()}
    summary["stopped"] = {"0": PAYLOAD}
    for name in ("one", "two", "three"):
        folder = place / "hostile" / f"{name}<img src=x onerror=window.hacked=6>"
        store.write_json(folder / store.RUN, about)
        store.write_csv(folder / store.METRICS, rows)
        if name == "three":
            store.tie_curves(folder, store.read_identity(folder))
        else:
            identity = store.read_identity(folder)._asdict()
            store.write_json(folder / store.SUMMARY, summary | {"files": {}, "run": identity})
    solution = {"env": "grid", "order": "min cost", "gamma": [0.9], "returns": {"cost": 1.0}, "command": "lexrl"}
    solution = hostile(solution) | {"returns": {PAYLOAD: 1.0}}
    store.write_json(place / "hostile" / "solved" / "solution.json", solution)
    (place / "hostile" / "broken<script>window.hacked=7<").mkdir()
    (place / "hostile" / "broken<script>window.hacked=7<" / store.RUN).write_text("{" + PAYLOAD)
    return place / "hostile"


def test_runs(browser, runs, tmp_path):
    page = reports.page(runs)
    assert shown(browser, tmp_path / "report.html", page) == ([], [])
    assert browser.run(PLANTED) == [None, 0, 2]
    read_everything(browser)
    assert browser.run(PLANTED) == [None, 0, 2]
    text = browser.run("document.body.textContent")
    assert text.count("Left out:") == 1
    assert text.count("window.hacked=1") > 20
    assert browser.run("document.querySelectorAll('.plot svg').length") == 1 + 3 * 2


@pytest.mark.parametrize("charts", ["<figure class='charts'></figure>", ""])
@pytest.mark.parametrize(
    "planted",
    [
        "<script>window.hacked=1</script>",
        "<img src='data:,' onerror='window.hacked=1'>",
        "<img src='http://127.0.0.1:9/x.png'>",
        "<iframe src='data:text/html,<script>1</script>'></iframe>",
        "<link rel=stylesheet href='http://127.0.0.1:9/x.css'>",
        "<base href='http://127.0.0.1:9/'>",
        "<object data='http://127.0.0.1:9/x'></object>",
    ],
)
def test_the_policy_stops_what_got_through(browser, tmp_path, charts, planted):
    """Were something not escaped, the browser would still refuse it."""
    body = f"<p>text</p>{planted}{charts}"
    shown(browser, tmp_path / "page.html", markup.document("Title", body))
    assert browser.run("window.hacked ?? null") is None
    assert any("Content Security Policy" in each for each in browser.errors), browser.errors
