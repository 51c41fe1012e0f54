"""Groups of operations that run as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xarr.ir.op import FREE, INSTRUCTION, Op, operation
from xarr.ir.ops.control import Call, GetTupleElement, While
from xarr.ir.ops.custom_calls import CustomCall
from xarr.ir.stablehlo.literals import ints
from xarr.ir.types import Ints, TensorType, Type

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer


@operation
class Fusion(Call):
    """A call whose computation a backend runs as loops over `domain`, without arrays in between.

    Made by the fusing stage only.  The loops over the `reduced` dimensions of the domain are those of the
    reductions inside; values after a reduction have the domain's other dimensions.  `describe` says for
    people what the loops cost.  `ranges` has for operands the least and the greatest integer that they hold, if that
    is known; none for any if it is empty.
    """

    runs_graphs = False
    domain: tuple[int, ...]
    reduced: tuple[int, ...] = ()
    describe: Callable[[Fusion], str] | None = None
    ranges: tuple[tuple[int, int] | None, ...] = ()

    @property
    def title(self) -> str:
        return "group"

    @property
    def called(self) -> str:
        results = [
            node.operands[0] if isinstance(node.op, GetTupleElement) else node
            for node in self.computation.results
        ]
        return " and ".join(dict.fromkeys(node.op.called for node in results))

    def remark(self, node: Node) -> str | None:
        return None if self.describe is None else f"fusion: {self.describe(self)}"


@operation
class Empty(Op):
    """An array whose elements are whatever its memory holds.

    Made by the fusing stage only, where each element is written before it is read.
    """

    type: TensorType
    name = "xarr.empty"
    is_internal = True
    cost = FREE

    def infer(self, *operands: Type) -> Type:
        return self.type

    def assembly(self, node: Node, printer: Printer) -> str:
        return f"stablehlo.custom_call @AllocateBuffer() : () -> {self.type}"  # XLA's name for it


@operation
class StridedUpdate(Op):
    """The operand with the elements of an update on it: from `starts` on, `strides` apart.

    Made by the fusing stage only, where they fit.  Operands: array, update, of one rank.
    """

    starts: Ints
    strides: Ints
    name = "xarr.strided_update"
    is_internal = True
    cost = INSTRUCTION

    def infer(self, *operands: Type) -> Type:
        return operands[0]

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"starts = {ints(self.starts)}, strides = {ints(self.strides)}")


@operation
class NativeWhile(While):
    """A loop that a backend runs in machine code: no step returns to Python.

    Made by the fusing stage only.  `remark_text` describes in printed programs how it runs, `checks`
    says which carried values are checked after the last step, and by what.  `ranges` are those of the operands, as of
    a `Fusion`.
    """

    runs_graphs = False
    remark_text: str = ""
    checks: tuple[tuple[int, CustomCall], ...] = ()
    ranges: tuple[tuple[int, int] | None, ...] = ()

    def remark(self, node: Node) -> str | None:
        return self.remark_text
