"""Sphinx configuration."""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

project = "lexrl"
author = "The lexrl authors"
extensions = ["myst_nb", "sphinx-mathjax-offline", "sphinx.ext.autodoc", "code_tables"]
html_theme = "sphinx_book_theme"
html_title = "lexrl"
exclude_patterns = ["_build", "jupyter_execute"]
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
suppress_warnings = ["myst.xref_missing", "ref.python"]  # every algorithm has a `State`
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
toc_object_entries = False
autodoc_inherit_docstrings = False
