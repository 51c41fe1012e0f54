"""Write the table of operations in `docs/backends.md`, who computes each on a GPU: `python docs/make_backends.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = CHECKOUT / "docs" / "backends.md"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

from tests.support.graphs import CASES  # noqa: E402
from xarr.backend import get  # noqa: E402
from xarr.compiler.schedules.gpu.builders import computes  # noqa: E402
from xarr.ir import ops  # noqa: E402
from xarr.ir.graph import Graph, Node, element_types  # noqa: E402
from xarr.ir.types import TensorType  # noqa: E402
from xarr_cupy import host, libraries  # noqa: E402

START: Final = "<!-- Written by docs/make_backends.py from here on. -->"
_HEAD: Final = f"""\
{START}

## Who computes what on a GPU

By the graphs of `tests/support/graphs.py`, an operation on its own: *kernel* is one of `xarr_cupy`, which in a group
with others is one with theirs, to the bit what the compiled CPU engine gives where [Accuracy beside XLA](accuracy.md)
has its bound; a library is named; *host* is the NumPy backend, by the table above; *parts* are the operations that it
is defined by; *graphs* is what runs others, whose operations are found here, and of which the host may read a number;
*memory* is what needs no computation; – is in none of the graphs. All kernels are emulated or compiled only, and what
libraries compute is unproved.

| operation | integers, bools | floats | complex |
| --- | --- | --- | --- |
"""
_KINDS: Final = ("biu", "fV", "c")


def text() -> str:
    """The page."""
    above = PAGE.read_text(encoding="utf-8").partition(START)[0]
    columns_by_name: dict[str, list[set[str]]] = {}
    for case in CASES.values():
        for node in _nodes(case.graph):
            for kind, who in zip(
                _KINDS, columns_by_name.setdefault(node.op.name, [set(), set(), set()]), strict=True
            ):
                if _kind(node) in kind:
                    who.add(computer_of(node))
    rows = [
        f"| `{name}` | {' | '.join(', '.join(sorted(who)) or '–' for who in columns)} |"
        for name, columns in sorted(columns_by_name.items())
    ]
    return above + _HEAD + "\n".join(rows) + "\n"


def computer_of(node: Node) -> str:
    """`kernel`, the name of a library, `host`, `parts`, `graphs` or `memory`."""
    if not get("reference").supports(type(node.op)):
        return "parts"
    if libraries.computes(node):
        return libraries.LIBRARIES[type(node.op)]
    if computes(node):
        return "kernel"
    if node.op.runs_graphs:
        return "graphs"
    return "memory" if isinstance(node.op, ops.Tuple) or not any(host.reasons(node)) else "host"


def _nodes(graph: Graph) -> Iterator[Node]:
    """The operations of a graph, on arrays with elements."""
    for node in graph.nodes:
        types = [each for x in (node, *node.operands) for each in element_types(x.type)]
        if node.operands and not any(isinstance(each, TensorType) and 0 in each.shape for each in types):
            yield node


def _kind(node: Node) -> str:
    """The letter of the element type of the first array."""
    types = [each for x in (*node.operands, node) for each in element_types(x.type)]
    return next((each.dtype.kind for each in types if isinstance(each, TensorType)), " ")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
