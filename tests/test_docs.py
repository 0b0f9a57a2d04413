"""The documentation is true: its examples run, its commands, names and links exist, its drawing matches the layers."""

import dataclasses
import functools
import importlib
import io
import itertools
import pathlib
import re
import shlex
import tokenize
import tomllib

import pytest

from lexrl import catalog, cli

ROOT = pathlib.Path(__file__).parent.parent
BUILT = {"_build", "jupyter_execute"}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not BUILT & set(page.relative_to(ROOT).parts)),
]


def name_of(page: pathlib.Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in page.read_text()], ids=name_of)
def test_examples_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def commands(page: pathlib.Path) -> list[list[str]]:
    """Commands of lexrl on a page, in blocks and between backticks, as lists of words."""
    text = page.read_text().replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    inline = re.findall(r"`(lexrl [^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    lines = [line for line in blocks.splitlines() if line.startswith("lexrl ")]
    return [shlex.split(line, comments=True)[1:] for line in [*lines, *(" ".join(one.split()) for one in inline)]]


def target(words: list[str]) -> tuple[str, ...]:
    """The words whose help has the flags of a command; empty where names are only placeholders."""
    names = list(catalog.ALGORITHMS) if words[0] in ("train", "check", "sweep") else []
    needed = {"train": 2, "check": 2, "sweep": 2, "solve": 1}.get(words[0], 0)
    chosen = ["gym:CartPole-v1" if word.startswith("gym:") else word for word in words[1 : 1 + needed]]
    known = {*names, *catalog.ENVS, "gym:CartPole-v1"}
    return (words[0], *chosen) if known.issuperset(chosen) and len(chosen) == needed else ()


@functools.cache
def flags(words: tuple[str, ...]) -> frozenset[str]:
    """The flags in the help of a command."""
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", text)
        with pytest.raises(SystemExit):
            cli.main([*words, "--help"])
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", text.getvalue()))


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_flags_exist(page):
    for words in commands(page):
        used = {word for word in words if word.startswith("--")}
        if used and target(words):
            missing = used - flags(target(words))
            assert not missing, f"lexrl {shlex.join(words)}: there is no {', '.join(sorted(missing))}"


@functools.cache
def identifiers() -> frozenset[str]:
    """Every name in the code, and every word in its texts: metrics and files go by strings."""
    found: set[str] = set()
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]:
        found |= {path.stem, path.parent.name}
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type in (tokenize.NAME, tokenize.STRING):
                found |= set(re.findall(r"\w+", token.string))
    return frozenset(found)


OTHERS = {"coming-from": "names of other libraries", "own-environments": "signals of its examples", "faq": "likewise"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in OTHERS], ids=name_of)
def test_names_in_the_text_exist(page):
    """A name with an underscore between backticks is a name in the code."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", text)
    names = {name for span in spans if "/" not in span for name in re.findall(r"(?<![\w-])[a-z]+(?:_[a-z0-9]+)+", span)}
    assert names <= identifiers(), f"not in the code: {sorted(names - identifiers())}"


def test_every_algorithm_shows_its_settings():
    shown = re.findall(r"\{settings\} lexrl\.(\w+)", "\n".join(page.read_text() for page in PAGES))
    same = {"Sarsa", "ExpectedSarsa", "DoubleQLearning"}  # one table for all tabular algorithms
    variants = re.compile("(SecondOrder|AverageReward|QCritic)$")  # described with what they vary
    kinds = {entry.target.rpartition(":")[2] for entry in catalog.ALGORITHMS.values()}
    missing = {kind for kind in kinds - same - set(shown) if not variants.search(kind)}
    assert not missing, f"no page has {{settings}} for {sorted(missing)}"


@pytest.mark.parametrize("name", catalog.ALGORITHMS)
def test_the_tables_of_settings_and_metrics(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    tables = importlib.import_module("code_tables")
    kind = catalog.ALGORITHMS[name].load()
    blank = [row[0] for row in tables.settings(kind) if not row[2]]
    assert dataclasses.is_dataclass(kind)
    assert not blank, f"{kind.__name__} does not explain {blank}"
    assert all(meaning for *_, meaning in tables.metrics(name))  # read off a traced update


def layers() -> dict[str, int]:
    """Each module's layer, from the top, as import-linter has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return {name.strip(): i for i, line in enumerate(contract["layers"]) for name in line.split("|")}


def test_the_drawing_matches_the_layers():
    drawing = re.findall(r"```text\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)[0]
    rows = [re.findall(r"\[(\w+)\]", line) for line in drawing.splitlines()]
    drawn = [name for row in rows for name in row]
    packages = {path.parent.name for path in (ROOT / "src" / "lexrl").glob("*/__init__.py")}
    assert set(drawn) >= packages, f"not drawn: {sorted(packages - set(drawn))}"
    order = layers()
    assert set(drawn) <= set(order), f"not a layer: {sorted(set(drawn) - set(order))}"
    depths = [[order[name] for name in row] for row in rows]
    for above, below in itertools.pairwise(filter(None, depths)):
        assert max(above) <= min(below)


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    import lexrl

    assert lexrl.__version__ == project
    assert f"version: {project}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == project


def test_types_are_shipped():
    assert (ROOT / "src" / "lexrl" / "py.typed").exists()


def test_every_line_has_a_place():
    """CONTRIBUTING.md says where a line lives: in files that exist, and every module or package is among them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("## Where does a line live?")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ")]
    named = set(re.findall(r"`([a-z_/]+(?:\.py|/))`", "\n".join(rows)))
    source = ROOT / "src" / "lexrl"
    assert not [name for name in named if not (source / name).exists()]
    places = {f"{path.name}/" if path.is_dir() else path.name for path in source.iterdir()}
    assert {name for name in places if re.fullmatch(r"[a-z]\w*(\.py|/)", name)} <= {
        *named,
        *(f"{name.partition('/')[0]}/" for name in named if "/" in name),
    }
