"""The page of docs/play in the site: assembled into the output, and linked where lessons show examples and puzzles."""

from __future__ import annotations

import ast
import html
import importlib.util
import logging
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import quote

SOURCE: Final = Path(__file__).resolve().parents[1] / "play"
#: Where the page lies in the site.
FOLDER: Final = "play"

#: One of Sphinx, which is not needed otherwise.
_LOGGER: Final = logging.getLogger(f"sphinx.{__name__}")
_CELL: Final = re.compile(r"```\{code-cell\} python\n(?P<code>.*?)\n```\n", re.DOTALL)
_PUZZLES: Final = "\n## Puzzles\n"


def add_links(text: str, root: str) -> str:
    """A lesson with a link behind each cell that explains, and a link for each number of a puzzle at its end.

    `root` is the way from the lesson to the site's own folder, such as `../`.
    """
    before, title, after = text.partition(_PUZZLES)
    before = _CELL.sub(lambda cell: cell[0] + _link_cell(cell["code"], root), before)
    parts = [part if i % 2 else _link_numbers(part, root) for i, part in enumerate(after.split("`"))]
    return before + title + "`".join(parts)


def _link_numbers(text: str, root: str) -> str:
    return re.sub(r"\b\d+\b", lambda number: _link(f"p={number[0]}", root, number[0]), text)


def _link_cell(code: str, root: str) -> str:
    query = find_query(code)
    return (
        ""
        if query is None
        else f'\n<p class="try-it">{_link(query, root, "Try it with shapes of your own")}</p>\n'
    )


def find_query(code: str) -> str | None:
    """The address in the page of what a cell explains: of a text, or of two shapes and their `broadcast_dimensions`."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "xarr.explain":
            return f"e={quote(ast.literal_eval(node.args[0]), safe='(),')}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "xarr.explain_broadcast":
            named = {each.arg: ast.literal_eval(each.value) for each in node.keywords}
            operands = f" {named['op']} ".join(map(ast.unparse, node.args))
            dims = ",".join(map(str, named["broadcast_dimensions"]))
            return f"e={quote(operands, safe='(),')}&d={dims}"
    return None


def _link(query: str, root: str, words: str) -> str:
    return f'<a class="reference external" href="{root}{FOLDER}/index.html#{html.escape(query)}">{words}</a>'


def link_lesson(app: Any, docname: str, source: list[str]) -> None:
    """Add the links to a lesson that Sphinx reads."""
    if app.builder.format == "html" and docname.startswith("learn/"):
        source[0] = add_links(source[0], "../" * docname.count("/"))


def write_page(app: Any, exception: Exception | None) -> None:
    """Assemble the page into the output; without Pyodide it shows its examples, and Sphinx says so."""
    if exception is not None or app.builder.format != "html":
        return
    script = load_script()
    with tempfile.TemporaryDirectory() as work:
        try:
            pyodide = script.fetch_pyodide(Path(work))
        except script.PyodideMissingError as error:
            _LOGGER.info("the page of docs/play answers nothing that is typed: %s", error)
            pyodide = None
        script.assemble(Path(app.outdir) / FOLDER, pyodide, home="../index.html")


def load_script() -> ModuleType:
    """`docs/play/assemble.py` as a module."""
    spec = importlib.util.spec_from_file_location("play_assemble", SOURCE / "assemble.py")
    assert spec is not None and spec.loader is not None, "the page lies beside the site"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
