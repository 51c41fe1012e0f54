"""Elements chosen from several arrays by conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xarr import lax
from xarr.base.host_arrays import is_weak
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.arguments import check_casting, fill, truth, where_mask
from xarr.calls.operands import DType, as_array, broadcast_operands, fresh, promote_operands
from xarr.calls.outputs import cast_for_writing
from xarr.dtypes import BOOL
from xarr.errors import BroadcastError, DTypeError, InputError, ShapeError
from xarr.lax.core import ArrayLike
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.manipulation.splitting import unstack
from xarr.runtime.handles import Handle, weak_kind
from xarr.runtime.view_tracking import ALL

__all__ = ["copyto", "piecewise", "select"]


@names_errors
def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """Where the first condition holds the element of the first choice, else where the second holds that of the
    second, and so on; `default` where none does.

    Conditions, arrays of bools, choices and default broadcast, the latter promote.  Raises ShapeError for
    different counts or none, DTypeError for conditions that are not bools, BroadcastError.
    Source: NumPy, `select`.
    """
    for lists in (condlist, choicelist):
        if not hasattr(lists, "__len__"):
            raise InputError(f"select: wanted lists of conditions and of choices, got {lists!r}")
    if len(condlist) != len(choicelist):
        raise ShapeError(
            f"select: wanted as many choices as conditions, got {len(choicelist)} for {len(condlist)}"
        )
    if not len(condlist):
        raise ShapeError("select: wanted at least one condition, got none")
    conditions = [as_array(condition) for condition in condlist]
    for number, condition in enumerate(conditions):
        if condition.dtype not in BOOL:
            raise DTypeError(
                f"select: wanted bools as conditions, got {condition.dtype} for number {number}; write x != 0"
            )
    choices = promote_operands("select", *choicelist, default)
    laid = broadcast_operands("select", *conditions, *choices)
    count = len(conditions)
    *values, result = laid[count:]
    for condition, value in zip(reversed(laid[:count]), reversed(values), strict=True):
        result = lax.select(condition, value, result)
    return result


@names_errors
def piecewise(
    x: ArrayLike, condlist: Any, funclist: Sequence[Callable[..., Any] | ArrayLike], *args: Any, **kw: Any
) -> Array:
    """For each element what the function of the last condition that holds gives, in the element type of x.

    condlist: conditions of the shape of x, or one, which may be a bool for all elements.
    funclist: for each condition a function, called as f(x, *args, **kw), or a scalar; one more stands for where no
        condition holds, by default 0.

    The functions get all of x, and what they give where their condition does not hold is dropped: they must
    be element-wise.  Raises ShapeError for other counts or shapes.  Source: NumPy, `piecewise`.
    """
    array = as_array(x)
    refuse_dynamic("piecewise", array, "xarr.where")
    conditions = [
        _fit_condition(condition, array.shape) for condition in _conditions(condlist, len(array.shape))
    ]
    if len(funclist) == len(conditions) + 1:
        covered = fill(array.shape, False, np.dtype(bool))
        for condition in conditions:
            covered = lax.bitwise_or(covered, condition)
        conditions.append(lax.bitwise_not(covered))
    if len(funclist) != len(conditions):
        raise ShapeError(
            f"piecewise: wanted {len(conditions)} functions, or one more for the rest, for {len(conditions)} "
            f"conditions, got {len(funclist)}"
        )
    result = fill(array.shape, 0, array.dtype, array._node.device)
    for condition, function in zip(conditions, funclist, strict=True):
        value = function(array, *args, **kw) if callable(function) else function
        result = lax.select(condition, _fit_value(value, array), result)
    return fresh(result)


def _conditions(condlist: Any, rank: int) -> list[Array]:
    """One condition, or a sequence of them; a sequence of bools is one for a vector."""
    if isinstance(condlist, list | tuple):
        is_several = not rank or isinstance(condlist[0], list | tuple | np.ndarray | Handle)
        return [truth(one) for one in condlist] if is_several else [truth(condlist)]
    array = truth(condlist)
    if not array.shape or (len(array.shape) == 1 and rank):
        return [array]
    return list(unstack(array))


def _fit_condition(condition: Array, shape: tuple[int, ...]) -> Array:
    """A condition in the shape of x; as a mask does, it may have the leading dimensions only, or none."""
    if condition.shape != shape[: len(condition.shape)]:
        raise ShapeError(f"piecewise: wanted conditions of the shape {shape} of x, got {condition.shape}")
    return lax.broadcast_in_dim(condition, shape, range(len(condition.shape)))


def _fit_value(value: ArrayLike, array: Array) -> Array:
    if is_weak(value) and isinstance(value, int):
        result = promote_operands("piecewise", value, dtype=array.dtype)[0]
    else:
        result = cast_for_writing(as_array(value), array.dtype)
    if result.shape not in ((), array.shape):
        raise ShapeError(
            f"piecewise: wanted a scalar or the shape {array.shape} of x from each function, got {result.shape}"
        )
    return lax.broadcast_in_dim(result, array.shape, range(len(result.shape)))


@names_errors
def copyto(dst: Any, src: ArrayLike, casting: str = "same_kind", where: ArrayLike = True) -> None:
    """Make the Array `dst` show `src`, broadcast to its shape, where `where` holds.

    As `dst[...] = src` does, it changes this handle and no other Array.  Raises InputError for what is no
    Array, DTypeError where `casting` does not allow the conversion, BroadcastError; in a traced function
    TracedValueError for a `dst` from outside.  Source: NumPy, `copyto`.
    """
    if not isinstance(dst, Handle):
        raise InputError(
            f"copyto: wanted an xarr Array to change, got {type(dst).__name__}; numpy.copyto writes into "
            "NumPy arrays"
        )
    array = as_array(dst)
    refuse_dynamic("copyto", array, "lax.select")
    _check_casting(src, array.dtype, casting)
    (value,) = (
        promote_operands("copyto", src, dtype=array.dtype)
        if is_weak(src)
        else (cast_for_writing(as_array(src), array.dtype),)
    )
    mask = where_mask("copyto", where)
    value, mask = (_without_leading_ones(part, len(array.shape)) for part in (value, mask))
    laid, spread, old = broadcast_operands("copyto", value, mask, array)
    if old.shape != array.shape:
        raise BroadcastError(
            f"copyto: src of shape {value.shape} and where of shape {mask.shape} do not broadcast to the shape "
            f"{array.shape} of dst"
        )
    dst._show(lax.select(spread, laid, old), ("set", ALL, src))


def _without_leading_ones(array: Array, rank: int) -> Array:
    """As in an assignment, leading dimensions of size 1 may be too many."""
    extra = len(array.shape) - rank
    if extra > 0 and array.shape[:extra] == (1,) * extra:
        return lax.reshape(array, array.shape[extra:])
    return array


def _check_casting(src: ArrayLike, dtype: DType, casting: Any) -> None:
    kind = weak_kind(src)
    source = as_array(src).dtype if kind is None else np.dtype(kind)
    is_small = kind is int and dtype.kind in "iuf"  # its value decides
    check_casting("copyto", casting, [] if is_small else [source], dtype)
