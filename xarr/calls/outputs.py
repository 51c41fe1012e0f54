"""`out=`: an Array that is made to show a result, as `x[...] = result` does, and is returned.

Rules of conversion and of shapes are NumPy's: a ufunc broadcasts to its `out`, any other function wants the shape of
its result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import BoundArguments, Parameter, signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from xarr import lax
from xarr.base.broadcasting import fits_into
from xarr.base.tracebacks import mark_boundary, name_in_errors, shorten
from xarr.base.typing import Array
from xarr.calls.arguments import check_casting, convert, truth, where_mask
from xarr.calls.operands import DType, as_array, broadcast_operands
from xarr.calls.remembered_calls import runner
from xarr.dtypes import BOOL, COMPLEX, EXTENDED_FLOAT, FLOAT, promote
from xarr.errors import DTypeError, InputError, ShapeError, XarrError
from xarr.lax.core import ArrayLike
from xarr.runtime import view_tracking
from xarr.runtime.handles import Handle

P = ParamSpec("P")
R = TypeVar("R")

#: A rule of conversion beside NumPy's: what `out` holds must convert to the result, which then is converted back.
THERE_AND_BACK = "there and back"
#: That of `take` and `compress` of NumPy up to 2.4 is `THERE_AND_BACK`, that of later ones "same_kind": either will do.
EITHER_WAY = "either way"


def cast_for_writing(values: Array, dtype: DType) -> Array:
    """Values as an assignment to elements of `dtype` converts them: without imaginary parts, bools by their truth."""
    if dtype in BOOL:
        return truth(values)
    return convert(lax.real(values) if values.dtype in COMPLEX and dtype not in COMPLEX else values, dtype)


def takes_out(
    casting: str, *, sums: bool = False, broadcasts: bool = False, keeps_inexact: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that adds `out=` to a function, which gets None for it.

    casting: the rule for the conversion to `out`, if the call gives no `casting=`.
    sums: without `dtype=` it computes in what the types of its operand and of `out` promote to.
    broadcasts: `out` may be larger than the result.
    keeps_inexact: `out` may not be of integers or bools where the operand is not.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(function)
        name, own = name_in_errors(function), runner(function)
        is_by_name = parameters.parameters["out"].kind is Parameter.KEYWORD_ONLY
        # Where no `out` is among the positional arguments, it is not looked for.
        position = len(parameters.parameters) if is_by_name else list(parameters.parameters).index("out")

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                if (len(args) <= position or args[position] is None) and kwargs.get("out") is None:
                    return own.run(args, kwargs)  # type: ignore[no-any-return]
                bound = parameters.bind(*args, **kwargs)
                target, bound.arguments["out"] = target_of(name, bound.arguments["out"]), None
                if keeps_inexact:
                    _refuse_exact(name, bound, target)
                if sums and bound.arguments.get("dtype") is None:
                    bound.arguments["dtype"] = _wide(bound, target)
                result: Any = function(*bound.args, **bound.kwargs)
                return show(name, target, result, _casting_of(bound, casting), broadcasts=broadcasts)  # type: ignore[return-value]
            except XarrError as error:
                shorten(error, name)
                raise

        # Tracebacks tell by the code which function was called.
        call.__code__ = call.__code__.replace(co_name=function.__name__)
        return wraps(function)(mark_boundary(call))

    return decorate


def _casting_of(bound: BoundArguments, default: str) -> str:
    options = {**bound.arguments, **bound.arguments.get("kwargs", {})}
    return options.get("casting", default)  # type: ignore[no-any-return]


def _refuse_exact(name: str, bound: BoundArguments, out: Array) -> None:
    own = _operand(bound).dtype
    if own in FLOAT | COMPLEX and out.dtype not in FLOAT | COMPLEX:
        raise DTypeError(
            f"{name}: wanted an out of floats or complex numbers for elements of {own}, got {out.dtype}"
        )


def _operand(bound: BoundArguments) -> Array:
    return as_array(next(iter(bound.arguments.values())))


def _wide(bound: BoundArguments, out: Array) -> DType | None:
    """The type that NumPy computes a sum in; None for that without `out`."""
    own = _operand(bound).dtype
    if own in EXTENDED_FLOAT | {out.dtype} and out.dtype in EXTENDED_FLOAT:
        return None
    return promote(own, out.dtype)


def target_of(name: str, out: object) -> Array:
    """The one Array that `out=` is, or a tuple of it.  InputError for anything else, and for a part of an Array."""
    if isinstance(out, tuple):
        if len(out) != 1:
            raise InputError(f"{name}: wanted one Array for out=, or a tuple of one, got {len(out)}")
        (out,) = out
    if not isinstance(out, Handle) or out._weak is not None:
        raise InputError(
            f"{name}: wanted an xarr Array for out=, got {type(out).__name__}; xarr does not write into NumPy arrays: "
            f"write n[...] = xarr.{name}(…) for a NumPy array n, and n += numpy.asarray(x) for n += x"
        )
    refused = view_tracking.refusal(name, out)
    if refused is not None:
        raise InputError(refused)
    return out  # type: ignore[return-value]


def show(
    name: str,
    out: Array,
    result: Array,
    casting: str,
    *,
    broadcasts: bool = True,
    where: ArrayLike = True,
) -> Array:
    """Make `out` show `result`, where `where` holds, and return it.

    Raises DTypeError for what the rule `casting` does not convert, ShapeError for another shape, and what
    `Handle._show` raises in a traced function.
    """
    _check_types(name, result.dtype, out.dtype, casting)
    mask = None if where is True else where_mask(name, where)
    wanted = result.shape if mask is None else _common(name, result.shape, mask.shape)
    if wanted != out.shape and not (broadcasts and fits_into(wanted, out.shape)):
        larger = ", or a larger one that it broadcasts to" if broadcasts else ""
        raise ShapeError(f"{name}: wanted an out of shape {wanted}{larger}, got {out.shape}")
    if mask is None:
        result, _ = broadcast_operands(name, result, out)
        out._show(cast_for_writing(result, out.dtype))
    else:
        result, mask, old = broadcast_operands(name, result, mask, out)
        out._show(lax.select(mask, cast_for_writing(result, out.dtype), old))
    return out


def _common(name: str, result: tuple[int, ...], where: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(result, where)
    except ValueError:
        raise ShapeError(
            f"{name}: wanted a where= that broadcasts with the shape {result} of the result, got shape {where}"
        ) from None


def _check_types(name: str, result: DType, out: DType, casting: str) -> None:
    if casting in (THERE_AND_BACK, EITHER_WAY):
        is_same_kind = casting == EITHER_WAY and np.can_cast(result, out, "same_kind")
        if not (is_same_kind or np.can_cast(out, result, "safe")):
            raise DTypeError(
                f"{name}: wanted an out of {result}, or of a type that converts to it without loss, got {out}"
            )
        return
    check_casting(name, casting)
    if result == out or (
        result in FLOAT | COMPLEX and out in FLOAT | COMPLEX and {result, out} & EXTENDED_FLOAT
    ):
        return
    check_casting(name, casting, [result], out, f'wanted an out= of {result}, or casting="unsafe"')
