"""Sphinx configuration."""

project = "lexrl"
author = "The lexrl authors"
extensions = ["myst_nb", "sphinx-mathjax-offline"]
html_theme = "sphinx_book_theme"
html_title = "lexrl"
exclude_patterns = ["_build", "jupyter_execute"]
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
suppress_warnings = ["myst.xref_missing"]
