"""ReduceWindow and SelectAndScatter: one whole-array operation for each element of a window, or fewer.

Small windows are folded in row-major order, one element of all windows after the other, which gives the bits that
XLA gives.  Large ones, and computations for which the order does not matter, go through `folding`, which takes
the computation to be associative.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.compiler.plan.program_plan import Step
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, FLOAT
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.ir.types import Ints
from xarr.ir.windows import Window, WindowDimension
from xarr_numpy.functions.conversion import unsigned_bits
from xarr_numpy.ops.indexing import combiner, in_order, offsets, scatter_ufunc_of, strides_of, write
from xarr_numpy.ops.reductions import COMBINERS, ufunc_of
from xarr_numpy.ops.table_rows import Rows
from xarr_numpy.ops.window_folds import Arrays, Monoid, element_ranges, fold
from xarr_numpy.ops.zero_signs import settle_zeros

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]

_INEXACT: Final = FLOAT | COMPLEX
#: Windows of at most so many elements are folded in order, element by element.
_SMALL: Final = 32
#: And larger ones, up to so many elements, as long as windows hardly overlap.
_MEDIUM: Final = 256
#: Nor may padding and holes outnumber elements and windows so many times, above a size that does no harm.
_SPARSE: Final = 16
_SPARSE_AT_LEAST: Final = 1 << 24


def is_direct(window: Window, shape: Ints) -> bool:
    """Whether to fold element by element."""
    if window.size <= _SMALL:
        return True
    windows, size = window.output_shape(shape), prod(shape)
    if window.size <= _MEDIUM and window.size * prod(windows) <= 4 * size:
        return True
    # Folding lays out padding and holes, which may be most of what there is.
    rows = zip(window.dimensions, windows, strict=True)
    extent = prod((count - 1) * each.stride + each.dilated_size for each, count in rows)
    return extent > _SPARSE * (size + prod(windows)) + _SPARSE_AT_LEAST


# --- reduce_window -----------------------------------------------------------------------------------


def reduce_window_ufunc(ufunc: np.ufunc, x: Array, initial: Any, window: Window) -> Array:
    """The windows of x reduced by a ufunc that combines elements of its type into one of the type.

    Sums and products of floats in windows that are not small are formed in float32 if the type is narrower.
    """
    dtype, start = x.dtype, np.asarray(initial)[()]
    if ufunc in (np.maximum, np.minimum):
        return _extreme(ufunc, x, start, window)
    is_plain = dtype not in EXTENDED_FLOAT and dtype not in COMPLEX  # whose NaN get other signs
    axis = _prefix_axis(window, x.shape) if is_plain else None
    if dtype in _INEXACT:
        if is_direct(window, x.shape):
            if axis is not None:
                return _accumulate(ufunc, x, start, axis)
            return _in_order(ufunc, x, start, window)
        if dtype.itemsize < 4:
            return _reduce(ufunc, x.astype(np.float32), np.float32(start), window).astype(dtype)
    elif axis is not None:
        return _accumulate(ufunc, x, start, axis)
    return _reduce(ufunc, x, start, window)


def _prefix_axis(window: Window, shape: Ints) -> int | None:
    """The axis along which each window is all elements up to its own, as of a running sum; None if there is none."""
    axes = [axis for axis, each in enumerate(window.dimensions) if not each.is_trivial]
    if len(axes) != 1 or not prod(shape):
        return None
    size = shape[axes[0]]
    return axes[0] if window.dimensions[axes[0]] == WindowDimension(size, 1, size - 1) else None


def _accumulate(ufunc: np.ufunc, x: Array, initial: Any, axis: int) -> Array:
    """As `_in_order` for windows of all elements up to each one: the same operations, each once."""
    own = x.copy()
    first = own[(slice(None),) * axis + (slice(1),)]
    ufunc(initial, first, out=first)
    total: Array = ufunc.accumulate(own, axis, x.dtype)
    return total


def _in_order(ufunc: np.ufunc, x: Array, initial: Any, window: Window) -> Array:
    total = np.full(window.output_shape(x.shape), initial, x.dtype)
    for _, (windows, ranges) in element_ranges(window, x.shape):
        target = total[windows]
        ufunc(target, x[ranges], out=target)
    return total


def _reduce(ufunc: np.ufunc, x: Array, initial: Any, window: Window) -> Array:
    """By folding, and the initial value last: it is neutral, or the computation commutative."""
    neutral = COMBINERS[ufunc].identity(x.dtype)
    monoid = Monoid(lambda a, b: (ufunc(a[0], b[0]),), (neutral,), is_neutral=True, ufunc=ufunc)
    (total,), _ = fold(monoid, (x,), window)
    if initial.tobytes() == neutral.tobytes():
        return total
    is_own = total.base is None and total is not x
    return ufunc(initial, total, out=total if is_own else None)  # type: ignore[no-any-return]


def _extreme(ufunc: np.ufunc, x: Array, initial: Any, window: Window) -> Array:
    """The extremes of windows, 0.0 being larger than -0.0.  Narrow floats are compared as float32, exactly."""
    if x.dtype in EXTENDED_FLOAT or x.dtype == np.float16:
        wide = _extreme(ufunc, x.astype(np.float32), np.float32(initial), window)
        return wide.astype(x.dtype)

    def is_among(test: Callable[[Any], Any]) -> Any:
        present, first = test(x), np.bool_(test(initial))
        if not (first or present.any()):
            return False
        return _reduce(np.bitwise_or, present, first, window)

    result: Array = settle_zeros(ufunc, _reduce(ufunc, x, initial, window), is_among)
    return result


def reduce_window_any(combine: Function, arrays: Arrays, initial: tuple[Any, ...], window: Window) -> Arrays:
    """The windows of N arrays reduced together by a computation on lanes."""
    shape = arrays[0].shape
    total = tuple(
        np.full(window.output_shape(shape), value, x.dtype) for x, value in zip(arrays, initial, strict=True)
    )
    if is_direct(window, shape):
        for _, (windows, ranges) in element_ranges(window, shape):
            targets = [each[windows] for each in total]
            write(targets, combine(*targets, *[x[ranges] for x in arrays]))
        return total
    monoid = Monoid(_on_tuples(combine), tuple(initial))
    folded, some = fold(monoid, arrays, window)
    whole = combine(*total, *folded)
    if some is None:
        return tuple(np.broadcast_to(value, total[0].shape) for value in whole)
    return tuple(np.where(some, value, each) for value, each in zip(whole, total, strict=True))


def _on_tuples(combine: Function) -> Callable[[Arrays, Arrays], Arrays]:
    def function(first: Arrays, second: Arrays) -> Arrays:
        shape = first[0].shape
        return tuple(np.broadcast_to(value, shape) for value in combine(*first, *second))

    return function


# --- select_and_scatter ------------------------------------------------------------------------------


def select_and_scatter(
    select: Function,
    scatter: Function | Graph | np.ufunc,
    operand: Array,
    source: Array,
    initial: Any,
    window: Window,
) -> Array:
    """Each source element combined into the element of its window that `select` chooses, row-major.

    `scatter` is a ufunc, a computation on lanes, or one of scalars, compiled.
    """
    result = np.full(operand.size, initial, operand.dtype)
    if not source.size or not operand.size:
        return result.reshape(operand.shape)
    if is_direct(window, operand.shape):
        chosen = _chosen_in_order(select, operand, window)
    else:
        chosen = _chosen_by_folding(select, operand, window)
    some = chosen >= 0
    targets, new = (chosen.reshape(-1), source.reshape(-1)) if some.all() else (chosen[some], source[some])
    if isinstance(scatter, np.ufunc):
        scatter.at(result, targets, new)
    elif not isinstance(scatter, Graph) and all(each.stride >= each.size for each in window.dimensions):
        result[targets] = scatter(result[targets], new)[0]
    else:
        in_order(scatter, [result], [new], targets)
    return result.reshape(operand.shape)


def _chosen_in_order(select: Function, operand: Array, window: Window) -> Array:
    """The flat index that each window chooses, -1 in one of nothing but padding."""
    shape = window.output_shape(operand.shape)
    value, number = np.zeros(shape, operand.dtype), np.full(shape, -1, np.int16)
    everywhere = False
    for element, (windows, ranges) in element_ranges(window, operand.shape):
        best, best_number, candidate = value[windows], number[windows], operand[ranges]
        stays = select(best, candidate)[0]
        passed = ~stays if everywhere else ~(stays & (best_number >= 0))
        _replace(best, candidate, passed)
        # Numbers increase, so the latest is the greatest.
        np.maximum(best_number, np.multiply(passed, element, dtype=np.int16), out=best_number)
        everywhere = everywhere or best.shape == shape
    strides = strides_of(operand.shape)
    # Without dilation, elements of a window are at the same distances in each.
    positions = np.take(offsets(window.sizes, strides).reshape(-1), number)
    rows = zip(window.dimensions, shape, strides, strict=True)
    for axis, (dimension, count, stride) in enumerate(rows):
        first = (np.arange(count) * dimension.stride - dimension.padding_low) * stride
        positions += first.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return positions if everywhere else np.where(number >= 0, positions, -1)


def _replace(target: Array, new: Array, where: Any) -> None:
    """target[where] = new[where]; without branches, which cost several times as much where they are a toss-up."""
    if target.dtype.itemsize > 8:
        np.copyto(target, new, where=where)
        return
    bits, other = unsigned_bits(target), unsigned_bits(new)
    np.bitwise_xor(bits, np.multiply(bits ^ other, where, dtype=bits.dtype), out=bits)


def _chosen_by_folding(select: Function, operand: Array, window: Window) -> Array:
    positions = np.arange(operand.size).reshape(operand.shape)

    def choose(first: Arrays, second: Arrays) -> Arrays:
        (stays,) = select(first[0], second[0])
        return tuple(np.where(stays, a, b) for a, b in zip(first, second, strict=True))

    (_, chosen), some = fold(Monoid(choose, (operand.dtype.type(0), -1)), (operand, positions), window)
    return chosen if some is None else np.where(some, chosen, -1)


# --- rows --------------------------------------------------------------------------------------------


def _reduce_window(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.ReduceWindow)
    names = emitter.operands(step)
    count = len(names) // 2
    ufunc = window_ufunc_of(op.computation)
    # A scalar has no dimensions to slide along, nor have lanes.
    if count == 1 and ufunc is not None and op.window_dimensions:
        return f"reduce_window_ufunc({ufunc}, {names[0]}, {names[1]}, {emitter.constant(op.window)})"
    combine = emitter.function(op.computation, lanes=True)
    arrays, initial = (
        f"({''.join(f'{name}, ' for name in half)})" for half in (names[:count], names[count:])
    )
    if op.window_dimensions:
        call = f"reduce_window_any({combine}, {arrays}, {initial}, {emitter.constant(op.window)})"
    else:
        call = f"reduce_any({combine}, {arrays}, {initial}, ())"
    return call if count > 1 else f"{call}[0]"


def window_ufunc_of(graph: Graph) -> str | None:
    """The NumPy ufunc that a computation is, but for complex products and extremes.

    NumPy orders complex numbers otherwise where there is NaN, and a product with 1 can change infinities.
    """
    if graph.parameters[0].dtype in COMPLEX and not isinstance(graph.results[0].op, ops.Add):
        return None
    return ufunc_of(graph)


def _select_and_scatter(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.SelectAndScatter)
    operand, source, initial = emitter.operands(step)
    scatter = scatter_ufunc_of(op.scatter)
    # Among zeros the sign of an extreme is chance in NumPy.
    if scatter is None or isinstance(op.scatter.results[0].op, ops.Maximum | ops.Minimum):
        scatter = combiner(emitter, op.scatter, emitter.type(step.inputs[1]).size)
    if not op.window_dimensions:
        return f"{emitter.function(op.scatter, lanes=True)}({initial}, {source})[0]"
    select = emitter.function(op.select, lanes=True)
    window = emitter.constant(op.window)
    return f"select_and_scatter({select}, {scatter}, {operand}, {source}, {initial}, {window})"


SCOPE: Final[dict[str, Any]] = {
    f.__name__: f for f in (reduce_window_ufunc, reduce_window_any, select_and_scatter)
}

ROWS: Final[Rows] = {ops.ReduceWindow: _reduce_window, ops.SelectAndScatter: _select_and_scatter}
