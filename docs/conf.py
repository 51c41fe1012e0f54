"""Sphinx configuration: the pages are Markdown, read by MyST."""

from importlib.metadata import version as installed_version

project = "xarr"
author = "The xarr founders"
release = installed_version("xarr")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns: list[str] = []
html_theme = "alabaster"
nitpicky = True

# `explain` prints its tables in plain text; pages show them in fences without a language.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
