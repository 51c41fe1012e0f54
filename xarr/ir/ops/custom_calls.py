"""Calls of functions that are not in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from xarr.ir.op import Op, operation
from xarr.ir.stablehlo.literals import float64, quote, reference, symbol
from xarr.ir.types import Type, pack_types

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

#: What an attribute of a call may be.
AttributeValue = bool | int | float | str
#: The function that raises IndexError for an index that no element of a dimension has.
CHECKED_INDICES: Final = "xarr.checked_indices"


@operation
class CustomCall(Op):
    """The results of a registered function, or of `function` itself, of the types declared here.

    Text has the name alone, and its reader needs a function that is registered under that.

    * C0: the operands are arrays.
    * R1, R2: the function returns results of these types (checked when it runs).
    """

    call_target_name: str
    result_types: tuple[Type, ...]
    attribute_items: tuple[tuple[str, AttributeValue], ...] = ()
    has_side_effect: bool = False
    function: Callable[..., Any] | None = None
    name = "stablehlo.custom_call"

    def _key(self) -> tuple[Any, ...]:
        # 1, 1.0 and True are equal, as are 0.0 and -0.0, but not the same to a function.
        return (*super()._key(), tuple(repr(value) for _, value in self.attribute_items))

    @property
    def is_pure(self) -> bool:
        return not self.has_side_effect

    @property
    def is_ordered(self) -> bool:
        return self.has_side_effect

    def infer(self, *operands: Type) -> Type:
        self.tensors(operands)
        return pack_types(self.tensors(self.result_types))

    def results(self, node: Node) -> tuple[Type, ...]:
        return self.result_types

    def assembly(self, node: Node, printer: Printer) -> str:
        items = []
        if self.attribute_items:
            config = ", ".join(
                f"{symbol(name)} = {_attribute(value)}" for name, value in self.attribute_items
            )
            items = ["api_version = 4 : i32", f"backend_config = {{{config}}}"]
        if self.has_side_effect:
            items.append("has_side_effect = true")
        attributes = f" {{{', '.join(items)}}}" if items else ""
        call = f"{self.name} {reference(self.call_target_name)}({printer.names(node.operands)})"
        return f"{call}{attributes} : {printer.signature(node)}"


def _attribute(value: AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    return quote(value) if isinstance(value, str) else f"{float64(value)} : f64"
