"""Shapes of results, and arrays put together from others: what jax.lax has beside XLA's operations."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType

from numpy.typing import DTypeLike

from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import InputError, ShapeError
from xarr.explanation.errors import broadcast_error
from xarr.ir.graph import Node
from xarr.ir.ops import Slice
from xarr.ir.source import caller
from xarr.ir.types import Type
from xarr.lax.core import ArrayLike, integer, integers, operands
from xarr.lax.creation import full
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.lax.movement import (
    broadcast_in_dim,
    concatenate,
    expand_dims,
    index_in_dim,
    reshape,
)
from xarr.runtime.handles import wrap
from xarr.shapes import check_sizes, normalize_axis


@names_errors
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which all of `shapes` broadcast by NumPy's rule; BroadcastError if there is none.

    Source: jax.lax.broadcast_shapes.
    """
    sizes = [check_sizes(shape) for shape in shapes]
    alignment = align_numpy(*sizes)
    if isinstance(alignment, Misfit):
        raise broadcast_error("broadcast_shapes", sizes, names=[f"shape {at}" for at in range(len(sizes))])
    return alignment.result


@names_errors
def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with size-1 dimensions in front, so that it has `rank` dimensions.  ShapeError for too few.

    Source: jax.lax.broadcast_to_rank.
    """
    (node,) = operands("broadcast_to_rank", x)
    wanted = integer("broadcast_to_rank", "rank", rank)
    if wanted < len(node.shape):
        raise ShapeError(f"broadcast_to_rank: wanted a rank of {len(node.shape)} or more, got {wanted}")
    return expand_dims(x, range(wanted - len(node.shape)))


@names_errors
def empty(shape: Sequence[int], dtype: DTypeLike) -> Array:
    """An array whose elements are unspecified for callers; here they are 0.  Source: jax.lax.empty."""
    return full(shape, 0, dtype)


@names_errors
def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays of one shape and element type along a new dimension `axis`.  Raises as `concatenate` does.

    Source: jax.lax.stack.
    """
    if not hasattr(operands, "__len__"):
        raise InputError(f"stack: wanted a sequence of arrays, got {operands!r}")
    if not len(operands):
        raise InputError("stack: wanted at least one array, got none")
    ranks = [_rank(each) for each in operands]
    along = normalize_axis(integer("stack", "axis", axis), ranks[0] + 1)
    return concatenate([expand_dims(each, (along,)) for each in operands], along)


@names_errors
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of `x` along `axis`, without that dimension.

    Raises AxisError, ShapeError for a dynamic dimension.  Source: jax.lax.unstack.
    """
    (node,) = operands("unstack", x)
    along = normalize_axis(integer("unstack", "axis", axis), len(node.shape))
    refuse_dynamic("unstack", node, "lax.dynamic_index_in_dim", (along,))
    if not node.shape[along]:
        return ()
    first = index_in_dim(x, 0, along, keepdims=False)
    squeezed, location = first._node, caller()
    if not squeezed.operands:  # computed at once, as the others will be
        return first, *[index_in_dim(x, k, along, keepdims=False) for k in range(1, node.shape[along])]
    # The others have the same types, which need not be inferred again.
    parts = _parts(node, along, squeezed.operands[0].type, location)
    return first, *[wrap(Node(squeezed.op, (part,), squeezed.type, location)) for part in parts]


def _parts(node: Node, along: int, type: Type, location: tuple[CodeType, int] | None) -> list[Node]:
    """The slices of size 1, all of one type, without the first one."""
    shape, steps = node.shape, (1,) * len(node.shape)
    before, after = shape[:along], shape[along + 1 :]
    lowest, highest = (0,) * len(before), (0,) * len(after)
    ranges = [
        Slice((*lowest, at, *highest), (*before, at + 1, *after), steps) for at in range(1, shape[along])
    ]
    return [Node(each, (node,), type, location) for each in ranges]


@names_errors
def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """`operand` repeated reps[i] times along dimension i.  Raises ShapeError unless there is one for each.

    Source: jax.lax.tile.
    """
    (node,) = operands("tile", operand)
    counts = integers("tile", "reps", reps)
    if len(counts) != len(node.shape) or any(count < 0 for count in counts):
        raise ShapeError(f"tile: wanted {len(node.shape)} numbers of 0 or more for reps, got {counts}")
    pairs = [size for pair in zip(counts, node.shape, strict=True) for size in pair]
    spread = broadcast_in_dim(operand, pairs, range(1, 2 * len(node.shape), 2))
    return reshape(spread, [count * size for count, size in zip(counts, node.shape, strict=True)])


def _rank(x: ArrayLike) -> int:
    (node,) = operands("stack", x)
    return len(node.shape)
