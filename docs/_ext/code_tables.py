"""Parts of the documentation that are read from the code: tables of settings, metrics and names, and the API reference.

A page asks for them by an empty fence:

    {settings} lexrl.LPPO          the fields of a dataclass: name, default, docstring
    {metrics} lppo                 what an algorithm's update returns, explained by lexrl.types.METRICS; no name: all
    {catalog} algorithms           a table of lexrl.catalog
    {api} lexrl.order lexrl.lex    the public names of modules, by autodoc; `pkg.*` means every module of a package,
                                   `rest` every module that no other page shows

Nothing is repeated by hand, so nothing can be documented that does not exist.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import pathlib
import pkgutil
import re
import textwrap
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

import lexrl
from lexrl import catalog, units
from lexrl.types import METRICS, Discrete, Spec, Transition

if TYPE_CHECKING:
    from sphinx.application import Sphinx

Rows = list[tuple[str, ...]]


def expand(app: "Sphinx", page: str, source: list[str]) -> None:
    """Replace the fences on a page by Markdown, before it is parsed."""
    writers = {"settings": settings_table, "metrics": metrics_table, "catalog": catalog_table, "api": api}
    fence = re.compile(r"^```\{(" + "|".join(writers) + r")\} *(.*)\n```$", re.MULTILINE)
    source[0] = fence.sub(lambda match: writers[match[1]](match[2].strip()), source[0])


def settings_table(name: str) -> str:
    return markdown_table(("setting", "default", "meaning"), settings(find_object(name)))


def metrics_table(algorithm: str) -> str:
    if algorithm:
        return markdown_table(("metric", "shape", "meaning"), metrics(algorithm))
    return markdown_table(("metric", "meaning", "in units of the return", "reported by"), all_metrics())


def catalog_table(which: str) -> str:
    entries = {"algorithms": catalog.ALGORITHMS, "envs": catalog.ENVS, "experiments": catalog.EXPERIMENTS}
    rows = [(f"`{name}`", entry.title, summary(entry.load())) for name, entry in entries[which].items()]
    return markdown_table(("name", "title", "what it is"), rows)


def api(patterns: str) -> str:
    """A heading and autodoc for each module."""
    found = [
        module
        for pattern in patterns.split()
        for module in (remaining_modules() if pattern == "rest" else modules(pattern))
    ]
    options = ":members:\n   :ignore-module-all:\n   :member-order: bysource"
    return "\n\n".join(f"## {one}\n\n```{{eval-rst}}\n.. automodule:: {one}\n   {options}\n```" for one in found)


def settings(kind: type) -> Rows:
    """The fields of a dataclass that a user may set."""
    meanings = field_docstrings(kind)
    return [
        (f"`{field.name}`", shown_default(field), meanings.get(field.name) or summary_of_default(field))
        for field in dataclasses.fields(kind)
        if field.init and not field.name.startswith("_")
    ]


def default_of(field: dataclasses.Field) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def shown_default(field: dataclasses.Field) -> str:
    value = default_of(field)
    if value is dataclasses.MISSING:
        return "required"
    if dataclasses.is_dataclass(
        value
    ):  # schedules and tolerances have a text form, other parts are a class of settings
        text = str(value) if "__str__" in vars(type(value)) else f"{type(value).__name__}()"
    else:
        text = repr(value)
    return f"`{text}`"


def summary_of_default(field: dataclasses.Field) -> str:
    """What a part is, from its own docstring: `networks` needs none in every algorithm."""
    value = default_of(field)
    return summary(type(value)) if dataclasses.is_dataclass(value) else ""


@functools.cache
def field_docstrings(kind: type) -> dict[str, str]:
    """The string below each field, from the class and what it inherits."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("lexrl"):
            body = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
            assert isinstance(body, ast.ClassDef)
            for field, below in zip(body.body, body.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text(below):
                    found[field.target.id] = " ".join(below.value.value.split())  # pyright: ignore
    return found


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def metrics(algorithm: str) -> Rows:
    """The metrics of one algorithm; shape `M` is one number for each objective."""
    return [(f"`{name}`", shape, explained(name)) for name, shape in metric_shapes(algorithm).items()]


def all_metrics() -> Rows:
    """Every metric that is declared, and who reports it; the loops report what no algorithm does."""
    reported: dict[str, list[str]] = {}
    for algorithm in catalog.ALGORITHMS:
        for name in metric_shapes(algorithm):
            reported.setdefault(name, []).append(f"`{algorithm}`")
    return [
        (f"`{name}`", explained(name), "yes" if metric.in_return_units else "", ", ".join(reported.get(name, ["all"])))
        for name, metric in METRICS.items()
    ]


def explained(name: str) -> str:
    if name not in METRICS:
        raise KeyError(f"The metric {name} is not declared in lexrl.types.METRICS.")
    text = METRICS[name].help
    return f"{text[0].upper()}{text[1:]}"


@functools.cache
def metric_shapes(algorithm: str) -> dict[str, str]:
    """What `update` returns, found by tracing it: no number is computed."""
    entry = catalog.ALGORITHMS[algorithm]
    single = algorithm in {one.parent for one in catalog.ALGORITHMS.values()}
    objectives = ("reward",) if single else ("cost", "reward")
    try:
        made = lexrl.preset(algorithm, "grid-nav").algorithm
    except lexrl.InputError:
        made = entry.make()
    made = units.resolve(made, total_timesteps=10**6)  # schedules over fractions of a run
    spec = Spec(Discrete(5), Discrete(3), objectives, 10)
    batch = (made.num_steps, made.num_envs)
    whole, number = jnp.zeros(batch, jnp.int32), jnp.zeros(batch)
    reward, flag = jnp.zeros((*batch, len(objectives))), jnp.zeros(batch, bool)
    key = jax.random.key(0)
    state = jax.eval_shape(lambda key: made.init(spec, key), key)
    rollout = Transition(whole, whole, reward, number, whole, flag)
    _, found = jax.eval_shape(made.update, state, rollout, key)
    return {name: "M" if leaf.ndim else "" for name, leaf in sorted(found.items())}


def find_object(name: str) -> Any:
    """`lexrl.LPPO`, or `lexrl.schedules.Linear`."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def summary(thing: Any) -> str:
    """The first sentence of a docstring."""
    first = inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0]
    return re.split(r"(?<=[.:]) ", " ".join(first.split()))[0].rstrip(":")


def modules(pattern: str) -> list[str]:
    """A module, or where the pattern ends in `.*` a package and all modules in it."""
    found = importlib.import_module(pattern.removesuffix(".*"))
    if not pattern.endswith(".*") or not inspect.ismodule(found) or found.__spec__.submodule_search_locations is None:
        return [found.__name__]
    below = pkgutil.walk_packages(found.__path__, f"{found.__name__}.")
    return [found.__name__, *(one.name for one in below)]


def remaining_modules() -> list[str]:
    """The modules of lexrl that no page of the reference shows; the command line has a help of its own."""
    pages = (pathlib.Path(__file__).parents[1] / "api").glob("*.md")
    directives = re.findall(r"\{api\} (.*)", "\n".join(page.read_text() for page in pages))
    shown = {
        module for line in directives for pattern in line.split() if pattern != "rest" for module in modules(pattern)
    }
    return [module for module in modules("lexrl.*")[1:] if module not in shown and not module.startswith("lexrl.cli")]


def markdown_table(header: tuple[str, ...], rows: Rows) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def docstring_to_rst(app: "Sphinx", what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings here are plain text with `code` and indented equations: make both what reStructuredText calls them."""
    from sphinx.ext.napoleon import Config, GoogleDocstring  # the tables are tested where Sphinx is not installed

    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()
    text = "\n".join(lines)
    args = re.search(r"^(Args|Returns|Raises|Yields):$", text, re.MULTILINE)
    head, sections = (text[: args.start()], text[args.start() :]) if args else (text, "")
    paragraphs = [one if one.startswith("    ") else escape(one) for one in re.split(r"\n\s*\n", head)]
    marked = [f"::\n\n{one}" if one.startswith("    ") else one for one in paragraphs]
    result = [*"\n\n".join(marked).splitlines(), "", *escape(sections).splitlines()]
    if what not in {"attribute", "data"}:  # there napoleon takes what stands before a colon for a type
        result = GoogleDocstring(result, Config(), app, what, name, obj, options).lines()
    lines[:] = result


def escape(text: str) -> str:
    """Single backticks are code; everything else with a meaning in reStructuredText is meant literally."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.DOTALL)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"``{part.strip('`')}``"
        else:
            parts[i] = re.sub(r"([*|])", r"\\\1", re.sub(r"(?<=\w)_(?!\w)", r"\\_", part)).replace("`", r"\`")
    # A code span must be followed by white space or punctuation.
    return re.sub(r"(``.+?``)(?=\w)", r"\1\\ ", "".join(parts), flags=re.DOTALL)


def setup(app: "Sphinx") -> dict[str, Any]:
    app.connect("source-read", expand)
    app.connect("autodoc-process-docstring", docstring_to_rst)
    return {"parallel_read_safe": True}
