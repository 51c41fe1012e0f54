"""Sphinx configuration: pages are Markdown, read by MyST; the reference is written from docstrings."""

import functools
import inspect
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "backends")]

from website.docstrings import annotations, to_rst  # noqa: E402
from website.examples import example_to_rst, find_example  # noqa: E402
from website.lite import link_notebook, write_lite  # noqa: E402
from website.operations import write_pages as write_operations  # noqa: E402
from website.parameters import describe  # noqa: E402
from website.play import link_lesson, write_page  # noqa: E402
from website.reference import write_pages as write_reference  # noqa: E402
from website.references import link, write_inventories  # noqa: E402

project = "xarr"
author = "The xarr founders"
release = installed_version("xarr")
version = release

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
]
# Names in docstrings are linked by inventories of our own, since none can be asked for without a network.
intersphinx_mapping = write_inventories(HERE / "_inventories")
intersphinx_disabled_reftypes = ["*"]
exclude_patterns = ["website/**"]
templates_path = ["_templates"]
nitpicky = True
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_title = "xarr"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "header_links_before_dropdown": 6,
    "navbar_end": ["play_link.html", "theme-switcher", "navbar-icon-links"],
}

# `explain` prints its tables in plain text; pages show them in fences without a language.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True

autosummary_generate = True
autodoc_typehints = "none"
nitpick_ignore = [("py:class", "xarr.base.pytrees.Structure")]  # What `PyTreeDef` is an alias of.
default_role = "code"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def _signature(obj: object) -> inspect.Signature:
    try:
        return inspect.signature(obj)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return inspect.Signature()


def shorten_defaults(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Show a default of many punctuation characters as `...`: Sphinx would read references in it."""
    for parameter in _signature(obj).parameters.values():
        if isinstance(parameter.default, str) and ";" in parameter.default:
            signature = signature and signature.replace(repr(parameter.default), "...")
    return signature, returns


def rewrite_docstring(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Make reStructuredText of a docstring, the function's example below it."""
    parameters, returns = annotations(_signature(obj))
    lines[:] = to_rst(
        "\n".join(lines), parameters, "" if what == "class" else returns, functools.partial(describe, name)
    )
    lines[:] = [link(line, name) for line in lines]
    example = find_example(name, obj)
    if example is not None:
        lines += [".. rubric:: Example", "", *example_to_rst(example)]


def setup(app: Sphinx) -> None:
    """Write the pages of the reference before Sphinx looks for pages."""
    write_reference(HERE / "reference")
    write_operations(HERE / "operation")
    app.connect("autodoc-process-signature", shorten_defaults)
    app.connect("autodoc-process-docstring", rewrite_docstring)
    app.connect("source-read", link_lesson)
    app.connect("source-read", link_notebook)
    app.connect("build-finished", write_page)
    app.connect("build-finished", write_lite)
