"""Reduce: ufunc reductions for the combiners that NumPy has, a tree of whole arrays for any other."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.compiler.plan.program_plan import Plan, Step
from xarr.dtypes import EXTENDED_FLOAT
from xarr.ir import ops
from xarr.ir.computations import arg_direction, monoids
from xarr.ir.graph import Graph
from xarr.ir.ops.elementwise import numpy_functions
from xarr.ir.types import Ints
from xarr_numpy.ops.table_rows import Rows
from xarr_numpy.ops.zero_signs import settle_zeros

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]

#: The ops by which elements are combined in any order, by NumPy's ufunc.
COMBINERS: Final[dict[np.ufunc, type[ops.Binary]]] = {
    getattr(np, name): op
    for op, name in numpy_functions().items()
    if issubclass(op, ops.Binary) and op.associative and op.commutative
}

#: NumPy's functions by the direction of an extremum.
_FINDERS: Final = {"GT": "np.argmax", "LT": "np.argmin"}


# --- kernels -----------------------------------------------------------------------------------------


#: Whose results need no look at the signs of zeros.
_PLAIN_UFUNCS: Final = frozenset({np.add, np.multiply, np.bitwise_and, np.bitwise_or})


def reduce_ufunc(ufunc: np.ufunc, x: Array, initial: Any, axes: Ints) -> Any:
    """`ufunc` over `axes`, starting from `initial`, in the type of x; narrow floats go through float32.

    The ufunc's own accuracy is kept: NumPy adds in pairs along a contiguous last axis, one by one along
    the others.
    """
    dtype = x.dtype
    if type(initial) is dtype.type and ufunc in _PLAIN_UFUNCS and dtype.type is not np.float16:
        return ufunc.reduce(x, axes, dtype=dtype, initial=initial)
    if dtype in EXTENDED_FLOAT or dtype == np.float16:
        wide = np.asarray(initial).astype(np.float32)
        return reduce_ufunc(ufunc, x.astype(np.float32), wide, axes).astype(dtype)
    first = np.asarray(initial)[()]
    result = ufunc.reduce(x, axis=axes, dtype=dtype, initial=first)
    return settle_zeros(ufunc, result, lambda test: test(x).any(axis=axes) | test(first))


def reduce_any(
    combine: Function, arrays: tuple[Array, ...], initial: tuple[Any, ...], axes: Ints
) -> tuple[Any, ...]:
    """Arrays reduced together by an associative computation on lanes, in row-major order of the elements.

    Neighbours are combined in pairs, so the computation runs about log2(n) times, on whole arrays.
    """
    shape = np.shape(arrays[0])
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    order = (*sorted(axes), *[axis for axis in range(len(shape)) if axis not in axes])
    count = prod(shape[axis] for axis in axes)
    if not count:
        return tuple(np.broadcast_to(value, kept) for value in initial)
    if axes:
        arrays = tuple(np.transpose(x, order).reshape((count, *kept)) for x in arrays)
        arrays = tuple(x[0] for x in _tree(combine, arrays, count))
    return _broadcast(combine(*initial, *arrays), np.shape(arrays[0]))


def _tree(combine: Function, arrays: tuple[Array, ...], count: int) -> tuple[Array, ...]:
    while count > 1:
        even = count - count % 2
        left, right = [x[0:even:2] for x in arrays], [x[1:even:2] for x in arrays]
        combined = _broadcast(combine(*left, *right), left[0].shape)
        if even < count:
            combined = tuple(
                np.concatenate([x, rest[even:]]) for x, rest in zip(combined, arrays, strict=True)
            )
        arrays, count = combined, (count + 1) // 2
    return arrays


def _broadcast(values: tuple[Any, ...], shape: Ints) -> tuple[Array, ...]:
    """Results of a lanes program in full: one that does not depend on the lanes has no shape of its own."""
    return tuple(np.broadcast_to(value, shape) for value in values)


def reduce_argument(
    find: Callable[..., Any],
    combine: Function,
    x: Array,
    initial: tuple[Any, ...],
    axis: int,
    dtype: np.dtype[Any],
) -> tuple[Any, ...]:
    """The extreme values along `axis` and their indices as `dtype`, where `combine` is their computation and
    `find` is np.argmax or np.argmin; both take the first NaN, else the first of equal elements."""
    known = x.astype(np.float32) if x.dtype in EXTENDED_FLOAT else _as_if_writeable(x)
    indices = find(known, axis=axis, keepdims=True)
    values = x[indices] if x.ndim == 1 else np.take_along_axis(x, indices, axis)
    values = values.squeeze(axis)
    if _is_neutral(find, x.dtype, initial):
        return values, indices.squeeze(axis).astype(dtype)
    return _broadcast(combine(*initial, values, indices.squeeze(axis).astype(dtype)), values.shape)


def _is_neutral(find: Callable[..., Any], dtype: np.dtype[Any], initial: tuple[Any, ...]) -> bool:
    """Whether no element is behind `initial`, and none that equals it has a lower index."""
    value, index = initial
    if dtype.kind not in "fiu" or dtype in EXTENDED_FLOAT:
        return False
    least, most = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return bool(index == 0 and value == (least if find is np.argmax else most))


class _Shown:
    """Shows the memory of an array, which it keeps alive, as if that could be written."""

    def __init__(self, array: Array) -> None:
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = array.__array_interface__ | {"data": (address, False)}


def _as_if_writeable(x: Array) -> Array:
    """`x` for functions of NumPy that copy what is read-only before they read it, as argmax does."""
    return x if x.flags.writeable else np.asarray(_Shown(x))


# --- rows --------------------------------------------------------------------------------------------


def ufunc_of(graph: Graph) -> str | None:
    """The NumPy ufunc that a combiner of two scalars is, if it is one."""
    known = monoids(graph)
    return f"np.{known[0].numpy_name}" if known is not None and len(known) == 1 else None


def _reduce(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.Reduce)
    count = len(step.inputs) // 2
    direction = arg_direction(step.node)
    if direction is not None:
        combine, dtype = (
            emitter.function(op.computation, lanes=True),
            emitter.constant(emitter.type(step.inputs[1]).dtype),
        )
        first, *start = map(emitter.value, (step.inputs[0], *step.inputs[2:]))
        arguments = f"{combine}, {first}, ({', '.join(start)}), {op.dimensions[0]}, {dtype}"
        return f"reduce_argument({_FINDERS[direction]}, {arguments})"
    names = emitter.operands(step)
    known = monoids(op.computation)
    if known is not None and op.dimensions:
        calls = [
            f"reduce_ufunc(np.{one.numpy_name}, {x}, {initial}, {op.dimensions})"
            for one, x, initial in zip(known, names[:count], names[count:], strict=True)
        ]
        return calls[0] if count == 1 else f"({', '.join(calls)})"
    combine = emitter.function(op.computation, lanes=True)
    arrays, initial = (
        f"({''.join(f'{name}, ' for name in half)})" for half in (names[:count], names[count:])
    )
    call = f"reduce_any({combine}, {arrays}, {initial}, {op.dimensions})"
    return call if count > 1 else f"{call}[0]"


def counts_only(plan: Plan, indices: int) -> bool:
    """Whether all steps that read a buffer of counted-up indices find them themselves, so that there need be none."""
    if indices in plan.results:
        return False
    return all(
        isinstance(step.op, ops.Reduce)
        and arg_direction(step.node) is not None
        and [k for k, number in enumerate(step.inputs) if number == indices] == [1]
        for step in plan.steps
        if indices in step.inputs
    )


SCOPE: Final[dict[str, Any]] = {f.__name__: f for f in (reduce_ufunc, reduce_any, reduce_argument)}

ROWS: Final[Rows] = {ops.Reduce: _reduce}
