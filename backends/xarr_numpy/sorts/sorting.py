"""Sort: by numbers where a comparator can be seen to order by columns, else by merging.

Columns become integers that are ordered as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.compiler.plan.program_plan import Step
from xarr.compiler.sort_keys import Column, order_of
from xarr.dtypes import BOOL, COMPLEX, EXTENDED_FLOAT, FLOAT, WITHOUT_MINUS_ZERO
from xarr.ir import ops
from xarr.ir.computations import lexicographic
from xarr.ir.graph import Graph
from xarr_numpy import engine
from xarr_numpy.functions.floating_point import comparison_order, total_order
from xarr_numpy.ops.table_rows import Rows
from xarr_numpy.sorts import parallel_sort
from xarr_numpy.sorts.stable_order import as_rows, axis_last, stable_order, take_in_order

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]
#: Elements up to which NumPy's stable sort takes less time than to get ready for a faster one.
_FEW: Final = 2**10
#: (arrays, axis) -> sorted arrays.
Sorter = Callable[[Arrays, int], Arrays]


# --- by columns --------------------------------------------------------------------------------------


def sort_keys(arrays: Arrays, axis: int, keys: int) -> Arrays:
    """Ascending by the first `keys` arrays, stable: -0 = +0, NaN last, complex numbers by their parts."""
    if len(arrays) == 1 and arrays[0].dtype not in COMPLEX:
        return (_sort_one(arrays[0], axis),)
    first = arrays[0]
    if keys == 1 and first.size <= _FEW and first.dtype.isbuiltin == 1 and first.dtype not in COMPLEX:
        rows = axis_last(first, axis)
        order = as_rows(rows).argsort(axis=-1, kind="stable").reshape(rows.shape)
    else:
        columns = [_with_nan_last(part) for x in arrays[:keys] for part in _parts(x)]
        order = stable_order([axis_last(each, axis) for each in columns])
    return take_in_order(arrays, order, axis)


def _parts(x: Array) -> tuple[Array, ...]:
    return (x.real, x.imag) if x.dtype in COMPLEX else (x,)


def _sort_one(x: Array, axis: int) -> Array:
    if x.dtype in EXTENDED_FLOAT:
        return take_in_order((x,), stable_order([np.moveaxis(_with_nan_last(x), axis, -1)]), axis)[0]
    return parallel_sort.sort(x, axis)


def _with_nan_last(x: Array) -> Array:
    if x.dtype not in FLOAT:
        return _numbers(x, Column(False, False))
    numbers = _numbers(x, Column(False, False))
    nan = np.isnan(x)
    if nan.any():
        numbers[nan] = np.iinfo(numbers.dtype).max
    return numbers


def sort_by_columns(
    key: Callable[..., Arrays], columns: Sequence[Column], merged: Sorter, arrays: Arrays, axis: int
) -> Arrays:
    """Stable by the columns that `key` computes.

    Plain orders say nothing of NaN: then elements go where `merged`, the merge sort of the definition, has them.
    """
    rows = tuple(np.moveaxis(x, axis, -1) for x in arrays)
    if rows[0].shape[-1] < 2 or not rows[0].size:
        return arrays
    values = [np.broadcast_to(value, rows[0].shape) for value in key(*rows)]
    numbers = [_numbers(*pair) for pair in zip(values, columns, strict=True)]
    if any(_has_lost(*pair) for pair in zip(values, columns, strict=True)):
        return merged(arrays, axis)
    return take_in_order(arrays, stable_order(numbers), axis)


def _has_lost(x: Array, column: Column) -> bool:
    return x.dtype in FLOAT and not column.total and bool(np.isnan(x).any())


def sort_plainly(column: Column, merged: Sorter, x: Array, axis: int) -> Array:
    """One array by its own elements."""
    if x.dtype not in FLOAT or column.total:
        ordered = parallel_sort.sort(_numbers(x, column), axis)
        return _from_numbers(ordered, column, x.dtype)
    if x.dtype not in EXTENDED_FLOAT and not column.descending and not np.isnan(x).any():
        return _sort_one(x, axis)
    if x.dtype not in EXTENDED_FLOAT and not np.isnan(x).any() and not np.equal(x, 0).any():
        # Without zeros equal elements have equal bits.
        return sort_plainly(Column(column.descending, True), merged, x, axis)
    return sort_by_columns(lambda each: (each,), (column,), merged, (x,), axis)[0]


def _numbers(x: Array, column: Column) -> Array:
    """New integers that are ordered as `x` is by `column`, where x has no NaN or the order is total."""
    if x.dtype in FLOAT:
        numbers = np.array(comparison_order(np.ascontiguousarray(x)))
        if not column.total and numbers.dtype.kind == "i":
            numbers += numbers == -1  # -0.0, which is 0.0
    else:
        numbers = x.astype(np.uint8) if x.dtype in BOOL else np.array(x)
    return np.invert(numbers, out=numbers) if column.descending else numbers


def _from_numbers(numbers: Array, column: Column, dtype: np.dtype[Any]) -> Array:
    """The elements that such integers stand for, of a total order or of integers."""
    if column.descending:
        numbers = np.invert(numbers)
    if dtype in WITHOUT_MINUS_ZERO:
        numbers = np.where(numbers == 128, -1, numbers).astype(np.int8)
    if dtype in FLOAT:
        # What gives the order of bits gives the bits of the order.
        return total_order(numbers.view(dtype)).view(dtype)
    return numbers.astype(dtype) if dtype in BOOL else numbers


# --- by merging --------------------------------------------------------------------------------------


def merge_compiled(comparator: Graph, arrays: Arrays, axis: int) -> Arrays:
    """Sort by a comparator of scalars, compiled, as `merge_sort` does."""
    rows = tuple(np.array(np.moveaxis(x, axis, -1), order="C") for x in arrays)
    engine.sequential_module().merge_sort(comparator, rows)
    return tuple(np.moveaxis(x, -1, axis) for x in rows)


def merge_sort(before: Callable[..., tuple[Any, ...]], arrays: Arrays, axis: int) -> Arrays:
    """Sort stably by `before(a0, b0, a1, b1 …)`, a computation on lanes: the merge sort of the definition.

    The left half is sorted and the right one, and then an element of the right half passes one of the left only
    if it goes before it.  So relations that are no order, as `<` is none where there is NaN, have one result
    too.  All halves of a size are merged at once.
    """
    rows = tuple(np.moveaxis(x, axis, -1) for x in arrays)
    shape = rows[0].shape
    flat = [row.reshape(-1) for row in rows]
    order = np.arange(prod(shape))
    for first, middle, last in reversed(list(_halves(prod(shape[:-1]), shape[-1]))):
        order = _merge_halves(before, flat, order, first, middle, last)
    return tuple(np.moveaxis(row[order].reshape(shape), -1, axis) for row in flat)


def _halves(lines: int, count: int) -> Iterator[tuple[Array, Array, Array]]:
    """Bounds of all left and right halves of lines of `count` elements: first of lines, at last of pairs."""
    first = np.arange(lines) * count
    last = first + count
    while (last - first).max(initial=0) > 1:
        middle = first + (last - first) // 2
        yield first, middle, last
        first, last = np.concatenate([first, middle]), np.concatenate([middle, last])


def _merge_halves(
    before: Callable[..., tuple[Any, ...]],
    rows: Sequence[Array],
    order: Array,
    first: Array,
    middle: Array,
    last: Array,
) -> Array:
    """The order of elements after each `order[first:middle]` is merged with `order[middle:last]`."""
    merged = order.copy()
    left, right = first.copy(), middle.copy()
    going = np.flatnonzero((left < middle) & (right < last))
    while going.size:
        ours, theirs = order[left[going]], order[right[going]]
        sides = [np.take(row, indices) for row in rows for indices in (theirs, ours)]
        passes = np.broadcast_to(before(*sides)[0], going.shape)
        merged[left[going] + right[going] - middle[going]] = np.where(passes, theirs, ours)
        right[going] += passes
        left[going] += ~passes
        going = going[(left[going] < middle[going]) & (right[going] < last[going])]
    # What is left of a right half is where it was; what is left of a left half comes after the right one.
    counts = middle - left
    rest = np.arange(counts.sum()) + np.repeat(left - (np.cumsum(counts) - counts), counts)
    merged[rest + np.repeat(last - middle, counts)] = order[rest]
    return merged


# --- rows --------------------------------------------------------------------------------------------


def _sort(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.Sort)
    arrays = f"({''.join(f'{operand}, ' for operand in emitter.operands(step))})"
    dtypes = [type.dtype for type in emitter.types(step.inputs)]
    for keys in range(1, len(dtypes) + 1):
        if op.comparator == lexicographic(dtypes, keys):
            return _unpack_single(step, f"sort_keys({arrays}, {op.dimension}, {keys})")
    order = order_of(op.comparator)
    if order is None:
        return _unpack_single(step, _merge(emitter, step, arrays, str(op.dimension)))
    merged = f"lambda x, k: {_merge(emitter, step, 'x', 'k')}"
    if len(dtypes) == 1 and order.array == 0:
        column = emitter.constant(order.columns[0])
        return f"sort_plainly({column}, {merged}, {emitter.value(step.inputs[0])}, {op.dimension})"
    key, columns = emitter.function(order.key, lanes=True), emitter.constant(order.columns)
    return _unpack_single(step, f"sort_by_columns({key}, {columns}, {merged}, {arrays}, {op.dimension})")


def _unpack_single(step: Step, call: str) -> str:
    return call if len(step.inputs) > 1 else f"{call}[0]"


def _merge(emitter: Emitter, step: Step, arrays: str, axis: str) -> str:
    """The call that merges."""
    op = step.op.expect(ops.Sort)
    if engine.sequential(op.comparator, emitter.type(step.inputs[0]).size):
        return f"merge_compiled({emitter.constant(op.comparator)}, {arrays}, {axis})"
    return f"merge_sort({emitter.function(op.comparator, lanes=True)}, {arrays}, {axis})"


SCOPE: Final[dict[str, Any]] = {
    f.__name__: f for f in (sort_keys, sort_plainly, sort_by_columns, merge_sort, merge_compiled)
}

ROWS: Final[Rows] = {ops.Sort: _sort}
