"""One thing has one name, and it is the field's: no word of the old dialect comes back.

Words are looked for inside identifiers as well: `own_world` and `GymWorld` both contain "world". An exception names the
files, the text around the word, and the reason.
"""

import fnmatch
import functools
import io
import pathlib
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SEARCHED = ("src/**/*", "docs/**/*", "examples/**/*", "README.md", "CONTRIBUTING.md", "tests/cli/help/*")
SUFFIXES = {".py", ".md", ".txt", ".html", ".css", ".js", ".ipynb"}
SKIPPED = ("docs/results/", "docs/_build/", "docs/jupyter_execute/")

INSTEAD = {
    "world": "environment, env",
    "learner": "algorithm (settings), agent (what it learned), policy",
    "price": "multiplier (shadow price only in exact/)",
    "priced": "multiplied, penalized",
    "level": "return, return estimate",
    "floor": "threshold (k - tau)",
    "seat": "train state",
    "crowd": "batched env",
    "passage": "episode statistics",
    "track": "episode tracker",
    "outing": "trajectory, episode",
    "film": "video",
    "numbered": "discrete",
    "chance": "probability (but: chance constraint)",
    "people": "population, users",
    "everyone": "all members",
    "nobody": "none",
    "route": "trajectory",
    "settle": "converge",
    "settled": "converged",
    "settling": "converging",
    "unsettle": "diverge again",
    "bandit": "exploration",
}

PHRASES = {
    "told limits": "constrained",
    "told a limit": "constrained",
    "is told": "is given",
    "are told": "are given",
    "was told": "was given",
    "hand that slips": "moves may slip",
    "who watches": "say what is shown",
    "user's hand": "invalid input",
    "lexrl watch": "lexrl video",
    "--steps": "--total-timesteps",
    "--rate": "--learning-rate",
    "--stochastic": "--no-deterministic",
}

BRITISH = re.compile(
    "(colour|behaviour|neighbour|centre|(optim|summar|normal|standard|minim|maxim|penal|initial|serial|discret)is(e|i))",
    re.IGNORECASE,
)


class Allowed(NamedTuple):
    """Where a word is right: files, the text it must be part of, and why."""

    files: str
    text: str
    reason: str


EXCEPTIONS = (
    Allowed("*", r"(continue|resume) .*--steps|--steps STEPS|`--steps`", "how much further: not a total"),
    Allowed("*", r"shadow[ _-]?prices?", "the field's word for the dual of a linear program"),
    Allowed("src/lexrl/exact/*", r"prices?", "shadow prices, and the price of priority"),
    Allowed("*", r"chance[ _-]?constraint", "the field's word"),
    Allowed("src/lexrl/exact/*", r"levels?", "the objective that a lexicographic program is at"),
    Allowed("src/lexrl/lex.py", r"levels?", "likewise"),
    Allowed("*", r"(double_)?levels\(|lex\.levels|LevelSolution|gap\(.*\)\.level", "names from exact/ and lex.py"),
    Allowed("*", r"(confidence|optimization|logging|log)[ _-]?level", "the field's words"),
    Allowed("*", r"(np|jnp|xp|math|Math)\.floor", "rounding down"),
    Allowed("src/lexrl/envs/*", r"tracks?", "what a cart runs on"),
    Allowed("src/lexrl/report/maps.py", r"tracks?", "likewise"),
    Allowed("src/lexrl/experiments/policies.py", r"tracks?", "likewise"),
    Allowed("src/lexrl/envs/drawing.py", r"level car", "horizontal"),
    Allowed("*", r"of (its|the) track|leaves the track|the track ends|track_episodes", "likewise; keeping track"),
    Allowed("src/lexrl/envs/intersection/*", r"routes?", "what a vehicle follows, as in highway-env"),
    Allowed("docs/intersection.md", r"follows the route", "likewise"),
    Allowed("docs/coming-from.md", r"--track", "a flag of CleanRL"),
    Allowed("docs/speed.md", r"--steps", "a flag of a benchmark"),
    Allowed("examples/*", r"--steps", "a flag of the example"),
    Allowed("*", r"(is|are) told apart", "distinguished"),
    Allowed("*", r"(grid|hello|real)[ -]?world", "proper names"),
)


class Found(NamedTuple):
    place: str
    word: str
    line: str

    def __str__(self) -> str:
        return f"{self.place}: {self.word!r} in: {self.line.strip()[:100]}"


def files() -> Iterator[pathlib.Path]:
    for pattern in SEARCHED:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and path.suffix in SUFFIXES and not name.startswith(SKIPPED):
                yield path


def words(line: str) -> list[str]:
    """The words of a line in lower case, also those that identifiers are made of."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", line)]


def without_exceptions(name: str, line: str) -> str:
    for exception in EXCEPTIONS:
        if fnmatch.fnmatch(name, exception.files):
            line = re.sub(exception.text, "...", line, flags=re.IGNORECASE)
    return line


@functools.cache
def lines() -> list[tuple[str, str, str]]:
    """Every line: where it is, as it stands, and without the exceptions."""
    found = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found.append((f"{name}:{number}", line, without_exceptions(name, line)))
    return found


def report(found: list[Found], instead: str) -> str:
    return f"{len(found)} places; say {instead} instead:\n" + "\n".join(map(str, found))


@pytest.mark.parametrize("word", INSTEAD)
def test_word_is_not_used(word):
    forms = {word, f"{word}s"}
    found = [Found(place, word, line) for place, line, left in lines() if forms & set(words(left))]
    assert not found, report(found, INSTEAD[word])


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrase_is_not_used(phrase):
    pattern = re.compile(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])", re.IGNORECASE)
    found = [Found(place, phrase, line) for place, line, left in lines() if pattern.search(left)]
    assert not found, report(found, PHRASES[phrase])


def test_identifiers_are_american():
    found = []
    for path in files():
        if path.suffix != ".py":
            continue
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type == tokenize.NAME and BRITISH.search(token.string):
                name = path.relative_to(ROOT).as_posix()
                found.append(Found(f"{name}:{token.start[0]}", token.string, token.line))
    assert not found, report(found, "the American spelling")


def test_the_search_finds_what_it_should():
    assert words("own_world, GymWorld, LPPOWorlds") == ["own", "world", "gym", "world", "lppo", "worlds"]
    assert "..." in without_exceptions("docs/x.md", "a chance constraint")
    assert without_exceptions("docs/x.md", "by chance") == "by chance"
    assert len(lines()) > 10_000
