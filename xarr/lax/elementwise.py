"""Element-wise functions of the explicit level.

Names and argument order are `jax.lax`'s.  Element types never promote.  Binary functions and
comparisons follow XlaBuilder: scalars broadcast freely, size-1 dimensions of arrays of equal rank
stretch, and arrays of different rank need `broadcast_dimensions`, which maps the dimensions of the
lower-rank operand, in increasing order, to dimensions of the higher-rank one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from numpy.typing import DTypeLike

from xarr.broadcasting import align_xla
from xarr.dtypes import canonical, complex_of
from xarr.errors import BroadcastError
from xarr.explanation.broadcast import broadcast_error
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.lax.core import ArrayLike, apply, broadcast_node, integer, integers, operands
from xarr.lazy import wrap

if TYPE_CHECKING:
    from xarr.array import Array


class BinaryFunction(Protocol):
    """(x, y, broadcast_dimensions=None) -> Array"""

    __name__: str

    def __call__(
        self, x: ArrayLike, y: ArrayLike, broadcast_dimensions: Sequence[int] | None = None
    ) -> Array: ...


UnaryFunction = Callable[[ArrayLike], "Array"]


def _unary(op: Op) -> UnaryFunction:
    def function(x: ArrayLike) -> Array:
        return apply(op, x)

    return _documented(function, op, "x: array of shape S, or a scalar.\n\nReturns an Array of shape S.")


def _binary(op: Op) -> BinaryFunction:
    def function(x: ArrayLike, y: ArrayLike, broadcast_dimensions: Sequence[int] | None = None) -> Array:
        (lhs, rhs), backend = operands(op.lax_name, x, y)
        if lhs.type is not rhs.type or broadcast_dimensions is not None:
            lhs, rhs = _aligned(op, lhs, rhs, broadcast_dimensions)
        return wrap(Node(op, (lhs, rhs)), backend)

    return _documented(
        function,
        op,
        "x, y: arrays of one element type, or Python scalars.\n"
        "broadcast_dimensions: for arrays of different rank, where each dimension of the lower-rank one goes.\n\n"
        "Raises BroadcastError [B1]-[B5] for shapes that do not fit, DTypeError for element types.",
    )


def _documented[F](function: F, op: Op, rest: str) -> F:
    return function


def _aligned(op: Op, lhs: Node, rhs: Node, dimensions: Sequence[int] | None) -> tuple[Node, Node]:
    dims = None if dimensions is None else integers(op.lax_name, "broadcast_dimensions", dimensions)
    alignment = align_xla(lhs.shape, rhs.shape, dims)
    left, right = alignment.dimensions
    return broadcast_node(lhs, alignment.result, left), broadcast_node(rhs, alignment.result, right)
