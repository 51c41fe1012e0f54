"""Single operations as functions of arrays, for small arrays that are computed when their operations are recorded.

Each gives the bits of a program of the operation alone: what is a view or one function of NumPy's is called without
making that program, all else is the program's function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from xarr.backend import EagerFunction, Program
from xarr.base.at_once.numpy_warnings import loud, quiet
from xarr.compiler.plan.ownership import exposed_results
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER
from xarr.ir import ops
from xarr.ir.op import Op
from xarr.ir.ops.elementwise import DIRECTIONS
from xarr.ir.types import Ints, TensorType
from xarr_numpy.functions import floating_point
from xarr_numpy.ops.table import NUMPY_FUNCTIONS
from xarr_numpy.program import NumpyProgram, SilentProgram

Array = np.ndarray[Any, Any]
Function = Callable[..., Array]


def eager_function(
    op: Op, types: Sequence[TensorType] | None, program: Callable[[], Program]
) -> EagerFunction | None:
    """Give `op` as `AbstractBackend.eager_function` says; None if its program is no function of arrays."""
    view = _view(op)
    if view is not None:
        return EagerFunction(view, is_view=True)
    function = _numpy_function(op, types) if types else None
    if types and function is not None:
        ufunc = function if isinstance(function, np.ufunc) else None
        return EagerFunction(_call_of(function, types), is_view=False, ufunc=ufunc)
    made = program()
    if not isinstance(made, NumpyProgram):
        return None
    is_exposed = any(exposed_results(made.plan.graph, made.plan))
    return EagerFunction(_program_call(made), is_exposed, _elementwise(op, types) if types else None)


def _elementwise(op: Op, types: Sequence[TensorType]) -> Callable[..., Any] | None:
    """The function that the program of `op` calls, if it is one for arrays of these element types and any shapes."""
    is_float = all(type.dtype.char in "fd" for type in types)
    if not is_float and any(type.dtype not in INTEGER | BOOL or type.dtype.isbuiltin != 1 for type in types):
        return None
    match op:
        case ops.Maximum():
            return floating_point.maximum if is_float else np.maximum
        case ops.Minimum():
            return floating_point.minimum if is_float else np.minimum
    return None


# --- views -----------------------------------------------------------------------------------------------------


def _view(op: Op) -> Function | None:
    """The function of an operation that shows its operand in another way; None for other operations."""
    match op:
        case ops.Slice():
            rows = zip(op.start_indices, op.limit_indices, op.strides, strict=True)
            return partial(_index, index=(*[slice(*row) for row in rows], ...))
        case ops.Reverse():
            last = max(op.dimensions, default=-1)
            steps = [-1 if axis in op.dimensions else None for axis in range(last + 1)]
            return partial(_index, index=(*[slice(None, None, step) for step in steps], ...))
        case ops.Reshape():
            return partial(_reshape, shape=op.shape)
        case ops.Transpose():
            return partial(np.transpose, axes=op.permutation)
    return None


def _index(array: Array, index: tuple[Any, ...]) -> Array:
    return array[index]  # type: ignore[no-any-return]


def _reshape(array: Array, shape: Ints) -> Array:
    view = array.reshape(shape)
    view.flags.writeable = False  # which a copy is, of an array whose elements do not lie in order
    return view


# --- NumPy's functions -------------------------------------------------------------------------------------------


def _numpy_function(op: Op, types: Sequence[TensorType]) -> Callable[..., Any] | None:
    """The function of NumPy's that the program of `op` calls, which has these types too; None for others."""
    if any(type.dtype.isbuiltin != 1 for type in types):
        return None
    match op:
        case ops.Compare(total_order=False):
            return getattr(np, DIRECTIONS[op.direction])  # type: ignore[no-any-return]
        case ops.Divide() if types[0].dtype in FLOAT:  # complex numbers have a function of their own
            return np.true_divide
        case ops.Select():
            return np.where
    return NUMPY_FUNCTIONS.get(type(op))  # type: ignore[arg-type]


def _call_of(function: Callable[..., Any], types: Sequence[TensorType]) -> Function:
    """`function` as one that gives read-only arrays, and never warns."""
    warns = any(type.dtype in FLOAT or type.dtype in COMPLEX for type in types)

    def call(*operands: Array) -> Array:
        state = quiet()
        try:
            result = function(*operands)
        finally:
            loud(state)
        result.flags.writeable = False
        return result  # type: ignore[no-any-return]

    def call_exact(*operands: Array) -> Array:
        result = function(*operands)
        result.flags.writeable = False
        return result  # type: ignore[no-any-return]

    def call_scalar(*operands: Array) -> Array:
        state = quiet()
        try:
            result = np.asarray(function(*operands))
        finally:
            loud(state)
        result.flags.writeable = False
        return result

    return call_scalar if not any(type.shape for type in types) else call if warns else call_exact


def _program_call(program: NumpyProgram) -> Callable[..., Any]:
    """The function of a program: to its only result, or to those of several."""
    function: Callable[..., Sequence[Array]] = program.function
    is_alone = len(program.plan.results) == 1

    def call(*operands: Array) -> Any:
        state = quiet()
        try:
            return function(*operands)[0] if is_alone else function(*operands)
        finally:
            loud(state)

    if not isinstance(program, SilentProgram):
        return call
    return (lambda *operands: function(*operands)[0]) if is_alone else function
