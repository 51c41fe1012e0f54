"""Values that hold others: XLA's Tuple and GetTupleElement.

Python's own tuples need none of this; these make one value of the graph, as XLA's operations do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import InputError
from xarr.ir.graph import Node
from xarr.ir.ops import GetTupleElement, Tuple
from xarr.ir.types import TensorType, TupleType
from xarr.lax.core import ArrayLike, integer, operands
from xarr.runtime.handles import Handle, wrap


class TupleValue(Handle):
    """A lazy value that holds Arrays and other TupleValues; `len`, `[i]` and iteration unpack it."""

    __slots__ = ()

    @property
    def type(self) -> TupleType:
        """The types of the elements."""
        assert isinstance(self._node.type, TupleType)
        return self._node.type

    def __len__(self) -> int:
        return len(self.type.elements)

    def __getitem__(self, index: int) -> Array | TupleValue:
        number = integer("get_tuple_element", "index", index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"wanted an index in [{-len(self)}, {len(self)}), got {number}")
        return get_tuple_element(self, number % len(self))

    def __iter__(self) -> Iterator[Array | TupleValue]:
        return (get_tuple_element(self, index) for index in range(len(self)))

    def __repr__(self) -> str:
        return f"TupleValue({self.type.short()})"


@names_errors
def tuple(*elements: ArrayLike | TupleValue) -> TupleValue:
    """One value that holds the elements, Arrays or tuples themselves.  Source: XLA's Tuple."""
    nodes = []
    for element in elements:
        (node,) = operands("tuple", element)
        nodes.append(node)
    return TupleValue(Node(Tuple(), (*nodes,)))


@names_errors
def get_tuple_element(tuple: TupleValue, index: int) -> Array | TupleValue:
    """Element `index` of a tuple.

    Raises InputError for what is not a TupleValue, ShapeError [C2] for an index out of range.
    Source: XLA's GetTupleElement.
    """
    value: Any = tuple
    if not isinstance(value, TupleValue):
        raise InputError(f"get_tuple_element: wanted a value made by lax.tuple, got {type(value).__name__}")
    node = Node(GetTupleElement(integer("get_tuple_element", "index", index)), (value._node,))
    if isinstance(node.type, TensorType):
        return wrap(node)
    return TupleValue(node)
