"""The shape of the source: small modules that can be imported by their path, small functions, no guessing protocols."""

import ast
import importlib
import json
import pathlib
import statistics
import subprocess
import sys

import pytest

import lexrl

ROOT = pathlib.Path(lexrl.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
NAMES = {
    path: ".".join(("lexrl", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__") for path in FILES
}


def test_every_module_is_what_its_path_says():
    """No function hides a module of the same name."""
    for name in NAMES.values():
        module = importlib.import_module(name)
        parent, _, last = name.rpartition(".")
        if parent:
            assert getattr(importlib.import_module(parent), last) is module, name


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def nesting(node, depth=0):
    """Blocks within blocks, as a reader sees them: `elif` is no deeper than its `if`."""
    blocks = ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Match
    deepest = depth
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.FunctionDef | ast.ClassDef):
                continue
            chained = isinstance(node, ast.If) and field == "orelse" and isinstance(child, ast.If)
            inner = isinstance(child, blocks) and not chained
            deepest = max(deepest, nesting(child, depth + inner))
    return deepest


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_are_short_and_flat(path):
    for function in functions(ast.parse(path.read_text())):
        lines = function.end_lineno - function.lineno + 1
        assert lines <= 50, f"{function.name} has {lines} lines"
        assert nesting(function) <= 3, f"{function.name} is nested {nesting(function)} deep"


def lines_of_code(path):
    """Without blank lines, comments and documentation."""
    text = path.read_text()
    documentation = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for i, line in lines if i not in documentation and line.strip() and not line.strip().startswith("#"))


def test_modules_are_small():
    lengths = sorted(lines_of_code(path) for path in FILES)
    assert statistics.median(lengths) <= 80
    assert lengths[int(0.9 * len(lengths))] <= 180


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_protocol_by_attribute_name(path):
    """What a thing can do is said by a protocol or a class, not found out by `hasattr` or `getattr` with a default."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "hasattr", f"line {node.lineno}"
            assert node.func.id != "getattr" or len(node.args) < 3, f"line {node.lineno}"


NAMED_TWICE = {
    "State",  # of every environment, algorithm and controller; only its owner looks into it
    "Experiment", "Sweep",  # what they are, and the arguments of the command
    "Evaluation", "Progress",  # of a learned policy and of an exact solution; of training and of a solver
    "Evidence", "HasTable", "Judged", "Measured", "Mixture", "Outcome", "Range", "Row", "Sample", "Scale",
}  # fmt: skip
"""Classes of the same name in several modules."""


def test_a_new_class_has_a_name_of_its_own():
    found = {}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(NAMES[path])
    several = {name: places for name, places in found.items() if len(places) > 1 and name not in NAMED_TWICE}
    assert not several


THE_PAPERS_LPPO = [
    "algorithms/paper_lppo.py",
    "algorithms/ppo.py",
    "algorithms/actor_critic.py",
    "convergence.py",
    "dual_ascent.py",
]


def test_the_papers_lppo_is_soon_read():
    assert sum(lines_of_code(ROOT / name) for name in THE_PAPERS_LPPO) <= 550


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_touches_nothing():
    """No environment variable, and neither JAX nor anything else that is large."""
    program = """
import json, os, sys
os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "hide"  # Gymnasium sets it
before = dict(os.environ)
import lexrl
large = [name for name in ("jax", "equinox", "matplotlib", "scipy", "tyro") if name in sys.modules]
print(json.dumps([before == dict(os.environ), large]))
"""
    assert run(program) == [True, []]


MAX_FILES = 70
"""Of the command below: 9 of LPPO and its networks, 7 that every algorithm uses (returns, schedules, order, ...),
9 of loops and environments, 8 of the run and its folder, 13 of the verdict, 6 of the report, which draws the learning
curves, 5 of the command line, 2 of presets, 4 that check input and memory and lock the folder, and 7 that find,
configure and print all of these."""


def test_one_command_passes_few_files(tmp_path):
    """Files of which a function is executed by `lexrl train lppo cart-safe`: what one must read to follow it."""
    program = f"""
import inspect, json, os, sys, threading
seen = set()
def watch(frame, event, argument):
    code = frame.f_code
    function = code.co_flags & inspect.CO_OPTIMIZED  # not the body of a module or a class
    if function and "/lexrl/" in code.co_filename:
        seen.add(code.co_filename.split("/lexrl/")[-1])
os.chdir({str(tmp_path)!r})
from lexrl import cli
threading.setprofile(watch)
sys.setprofile(watch)
cli.main("train lppo cart-safe --total-timesteps 4096 --seeds 1 --eval-episodes 2".split())
sys.setprofile(None)
print(json.dumps(sorted(seen)))
"""
    passed = run(program)
    assert len(passed) <= MAX_FILES, passed
