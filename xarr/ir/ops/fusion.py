"""Groups of operations that run as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xarr.ir.memory_use import nbytes, peak, shown_bytes
from xarr.ir.op import operation
from xarr.ir.ops.control import Call, While

if TYPE_CHECKING:
    from xarr.ir.graph import Graph, Node


@operation
class Fusion(Call):
    """A call whose computation a backend runs as loops over `domain`, without arrays in between.

    Made by the fusing stage only.  The loops over the `reduced` dimensions of the domain are those of the
    reductions inside; values after a reduction have the domain's other dimensions.  `describe` says for
    people what the loops cost.
    """

    domain: tuple[int, ...]
    reduced: tuple[int, ...] = ()
    describe: Callable[[Fusion], str] | None = None

    def remark(self, node: Node) -> str | None:
        return None if self.describe is None else f"fusion: {self.describe(self)}"

    def remark_on(self, graph: Graph) -> str:
        found = peak(graph, inside)
        most, arguments = shown_bytes(found.total), shown_bytes(found.arguments)
        return f"arrays: at most {most} at once, {arguments} of it arguments"


@operation
class NativeWhile(While):
    """A loop that a backend runs in machine code: no step returns to Python.

    Made by the fusing stage only.  `remark_text` says for people how it runs.
    """

    remark_text: str = ""

    def remark(self, node: Node) -> str | None:
        return self.remark_text


def inside(node: Node) -> int:
    """Bytes of arrays that the computations of an op make and let go; groups and native loops make none."""
    if isinstance(node.op, Fusion | NativeWhile):
        return 0
    needs = []
    for graph in node.op.graphs:
        found = peak(graph, inside)
        # A loop holds two states at once, of which its result is one; the result of others is theirs.
        shared = 0 if isinstance(node.op, While) else sum(map(nbytes, graph.result_types))
        needs.append(found.total - found.arguments - shared)
    return max([0, *needs])
