"""A page for each of XLA's operations, written when the site is built.

Each says the same thing five times: the rule and its constraints, the function of `xarr.lax` with its example, the
attributes of the op in the graph, a graph of the tests as StableHLO text, and the loops of the reference backend.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from operation_rows import Row, op_classes, rows

from tests.support.completeness import entry, function, read_back, rule
from tests.support.graphs import CASES
from website.docstrings import annotation_text, to_rst
from website.writing import slug, title, write
from xarr.ir.op import Op

#: The pictures of the gallery that show what an op does, by its class.
_PICTURES: Final = {
    "BroadcastInDim": ("broadcast", "A column and a row that become one grid: one axis stretched, one new"),
    "Gather": ("gather", "Windows at indices of an array, side by side"),
    "Scatter": ("scatter", "Rows that are added to the rows of an array"),
    "ReduceWindow": ("pooling", "Windows of an array, one of which gives one element"),
    "Convolution": ("convolution", "A kernel that lies over a window of an array"),
    "DotGeneral": ("matmul", "A row and a column that give one element of the product"),
    "Reduce": ("reduction", "An array whose elements along one axis become one"),
    "Transpose": ("layout", "The order of the elements of an array in memory"),
    "Convert": ("dtype", "The type that two element types are promoted to"),
}


def write_pages(folder: Path) -> None:
    """Write a page for each row of the table of operations, and the list of them."""
    write(folder / "index.rst", "\n".join(_index_lines(rows())))
    for row in rows():
        write(folder / f"{slug(row.operation)}.rst", "\n".join(_page_lines(row)))


def _index_lines(operations: list[Row]) -> Iterator[str]:
    yield from title("Operations, one by one", "=")
    yield "Which backend runs each, its tests and its differences from XLA are in one table: :doc:`/operations`."
    for family in dict.fromkeys(row.family for row in operations):
        yield from ("", *title(family[0].upper() + family[1:], "-"), ".. toctree::", "   :maxdepth: 1", "")
        yield from (f"   {slug(row.operation)}" for row in operations if row.family == family)
    yield ""


def _page_lines(row: Row) -> Iterator[str]:
    op = op_classes()[row.op]
    yield from title(row.operation, "=")
    words = to_rst(op.__doc__ or "", {})
    end = words.index("") + 1
    yield from (*words[:end], *_picture(op), *words[end:])
    yield from title("The function", "-")
    for name in dict.fromkeys(row.names):
        yield from _function(name)
    yield from title("In the graph", "-")
    yield from _attributes(row, op)
    yield from _graph(op)
    yield from title("As the reference backend computes it", "-")
    yield from _code(_reference_source(op))
    if row.differences:
        yield from title("Beside XLA", "-")
        yield from to_rst(row.differences, {})


def _picture(op: type[Op]) -> Iterator[str]:
    if op.__name__ in _PICTURES:
        name, words = _PICTURES[op.__name__]
        yield from (f".. figure:: /images/explanations/{name}.svg", f"   :alt: {words}", "")


def _function(name: str) -> Iterator[str]:
    module = function(name).__module__
    home = "xarr.lax.linalg" if name.startswith("linalg.") else "xarr.lax"
    assert module.startswith("xarr."), name
    yield from (f".. autofunction:: {home}.{name.removeprefix('linalg.')}", "   :no-index:", "")


def _attributes(row: Row, op: type[Op]) -> Iterator[str]:
    yield from (f"``{row.op}``" + (" with the attributes:" if fields(op) else ", without attributes."), "")
    if fields(op):
        yield from (".. list-table::", "   :header-rows: 1", "", "   * - attribute", "     - type")
        for field in fields(op):
            yield from (f"   * - ``{field.name}``", f"     - ``{annotation_text(field.type)}``")
        yield ""


def _graph(op: type[Op]) -> Iterator[str]:
    names = read_back().get(op, [])
    own = [name for name in names if re.match(rf"{op.__name__}\b", name)] or names
    if own:
        yield from ("A graph of the tests, as StableHLO text:", "")
        yield from _code(str(CASES[own[0]].graph), "text")


def _reference_source(op: type[Op]) -> str:
    """The loops of the reference backend; for an op of other ops, how it is made of them."""
    if entry("xarr_reference", op) is None:
        return inspect.cleandoc("\n" + inspect.getsource(op.decompose))
    return inspect.getsource(_inner_function(rule("xarr_reference", op)))


def _inner_function(value: Callable[..., Any]) -> Callable[..., Any]:
    """The function of single elements that a rule for all elements holds, if it holds one."""
    inner = [each for each in inspect.getclosurevars(value).nonlocals.values() if inspect.isfunction(each)]
    return inner[0] if inner else value


def _code(text: str, language: str = "python") -> Iterator[str]:
    yield from (f".. code-block:: {language}", "", *(f"   {line}".rstrip() for line in text.splitlines()), "")
