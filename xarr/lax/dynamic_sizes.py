"""Dimensions whose size is known only when the program runs, below a bound that is known: f32[<=10]."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import InputError, ShapeError, ValueRangeError
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Node
from xarr.ir.ops.dynamic_sizes import SIZE
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, integer, operands
from xarr.runtime.handles import Handle, wrap


@names_errors
def get_dimension_size(operand: ArrayLike, dimension: int) -> Array:
    """The size of `dimension` as an int32 scalar: the live one of a dynamic dimension, else a constant.

    Raises ShapeError [C1] for a dimension that the operand has not, [C2] for a size beyond int32.
    Source: XLA's GetDimensionSize.
    """
    (node,) = operands("get_dimension_size", operand)
    op = ops.GetDimensionSize(integer("get_dimension_size", "dimension", dimension))
    size = Node(op, (node,))
    if not node.tensor_type.dynamic or not node.tensor_type.dynamic[op.dimension]:
        size = constant(node.shape[op.dimension], SIZE.dtype)
    return wrap(size)


@names_errors
def set_dimension_size(operand: ArrayLike, size: ArrayLike, dimension: int) -> Array:
    """`operand` with `dimension` holding only its first `size` elements: f32[10] becomes f32[<=10].

    size: an int, or an int32 scalar, known only when the program runs.  It is held to [0, bound]; an int or a
        constant outside of it is refused at once (XLA leaves both open).  The bound itself, as an int or a
        constant, makes the dimension static again.

    The shape of the result is that of the operand, the bounds.  Growing a dimension shows what its buffer
    holds: after set_dimension_size alone these are the operand's elements, after other operations anything.
    Raises ShapeError [C1], [C2], DTypeError [C3] for a size that is no int32 scalar, ValueRangeError.
    Source: XLA's SetDimensionSize.
    """
    (node,) = operands("set_dimension_size", operand)
    length = _size_node(size)
    dim = integer("set_dimension_size", "dimension", dimension)
    op = ops.SetDimensionSize(dim)
    result = Node(op, (node, length))
    known = int(length.op.array) if isinstance(length.op, ops.Constant) else None
    bound = node.shape[dim]
    if known is not None and not 0 <= known <= bound:
        raise ValueRangeError(
            f"set_dimension_size: wanted a size in [0, {bound}] for dimension {dim} of "
            f"{node.tensor_type.short()}, got {known}"
        )
    if known == bound:
        is_dynamic = dim in node.tensor_type.dynamic_dimensions
        result = Node(ops.SetDimensionSize(dim, to_bound=True), (node, length)) if is_dynamic else node
    return wrap(result)


def with_sizes_of(array: Array, like: ArrayLike) -> Array:
    """`array`, of the shape of `like`, with the dynamic dimensions and live sizes of `like`."""
    (node,) = operands("set_dimension_size", like)
    for dim in node.tensor_type.dynamic_dimensions:
        array = set_dimension_size(array, get_dimension_size(like, dim), dim)
    return array


def refuse_dynamic(
    what: str, array: ArrayLike | Node, instead: str, dimensions: Iterable[int] | None = None
) -> None:
    """Refuse for dynamic dimensions, all or those among `dimensions`, what would take bounds for sizes.

    what: the function as the user wrote it.  instead: what works.
    """
    node = array._node if isinstance(array, Handle) else array
    type = node.type if isinstance(node, Node) else None
    if not isinstance(type, TensorType) or not type.dynamic:
        return
    if dimensions is None or not set(type.dynamic_dimensions).isdisjoint(dimensions):
        raise ShapeError(
            f"{what} of a dynamic array {type.short()} would see the bound, not the live size; use {instead}, or "
            "numpy.asarray(x), which is the live part"
        )


def refuse_empty(name: str, result: Array, array: Array, dimensions: Sequence[int]) -> Array:
    """`result`, which needs at least one element of `array` along these dimensions.

    Raises ShapeError when it runs, if one of them that is dynamic has the size 0.
    """
    type = array._node.tensor_type
    dynamic = [dim for dim in dimensions if dim in type.dynamic_dimensions]
    if not dynamic:
        return result
    zero, sizes = constant(0, SIZE.dtype), [get_dimension_size(array, dim)._node for dim in dynamic]
    filled = [Node(ops.Compare("NE"), (size, zero)) for size in sizes]
    good = reduce(lambda a, b: Node(ops.And(), (a, b)), filled)
    message = (
        f"{name}: wanted at least one element along {'axis' if len(dynamic) == 1 else 'axes'} "
        f"{', '.join(map(str, dynamic))} of a dynamic array {type.short()}, got none, and {name} of no elements has "
        "no value"
    )
    return wrap(Node(ops.Check(message, "ShapeError"), (result._node, good)))


def refuse_named_padding(
    name: str, node: Node, strides: Sequence[int], padding: Any, dimensions: Iterable[int]
) -> None:
    """Refuse "SAME" and its like where the padding that they stand for depends on a live size.

    strides: one for each of `dimensions`.  With a stride of 1 the padding does not depend on the size.
    """
    if isinstance(padding, str) and padding.upper() != "VALID":
        sliding = [dim for dim, stride in zip(dimensions, strides, strict=False) if stride != 1]
        refuse_dynamic(f"{name} with padding {padding!r}", node, "pairs (low, high)", sliding)


def _size_node(size: ArrayLike) -> Node:
    if isinstance(size, Handle):
        return size._node
    if isinstance(size, np.ndarray):
        (node,) = operands("set_dimension_size", size)
        return node
    if isinstance(size, bool | np.bool_):
        raise InputError(f"set_dimension_size: wanted an int or an int32 scalar as size, got the bool {size}")
    try:
        value = operator.index(size)
    except TypeError:
        raise InputError(
            f"set_dimension_size: wanted an int or an int32 scalar as size, got {size!r}"
        ) from None
    if not -(2**31) <= value < 2**31:
        raise ValueRangeError(f"set_dimension_size: sizes are int32, got {value}")
    return constant(value, SIZE.dtype)
