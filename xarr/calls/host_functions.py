"""Functions of the NumPy level that NumPy's own function of the same name computes, where arrays are small.

A function of the NumPy level checks its arguments, records ops and computes them one by one.  Where all of its Arrays
hold small values of element types for which NumPy's function gives the same element types, shapes and bits, that is
called instead, and what it gives is wrapped.  `tests/calls/test_host_functions.py` compares both for every row of
`ROWS`.  A row says what else it may be called with; every other argument, and what NumPy refuses, is left to the
function itself, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from sys import _getframe as frame_of
from types import FrameType, MappingProxyType, NoneType
from typing import Any, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy import ndarray

from xarr.base.at_once.numpy_warnings import call_quietly
from xarr.base.at_once.obstacles import obstacles
from xarr.base.tracebacks import mark_boundary, name_in_errors, shorten
from xarr.calls.small_values import join, plain_value, show_small_value, small_value, wrap_value
from xarr.errors import XarrError
from xarr.ir.device import Device
from xarr.ir.types import MOST_COMBINED, MOST_PLAIN_BYTES
from xarr.runtime import handles

P = ParamSpec("P")
R = TypeVar("R")
HostArray = np.ndarray[Any, Any]

#: Items of the longest list of arguments that is looked at.
_LONGEST: Final = 32
#: What stands in calls of NumPy's for the number that an Array without dimensions holds: of that type, never weak.
STRONG: Final = {float: np.float64, int: np.int64, bool: np.bool_}
#: The codes of these types.
_CHARS: Final = {kind: np.dtype(own).char for kind, own in STRONG.items()}
#: Integers beyond are left to the functions, for axes, widths and operands.
_LARGEST_INT: Final = 2**31
#: What NumPy raises for arguments that it refuses.
REFUSALS: Final = (ArithmeticError, LookupError, TypeError, ValueError)
#: From `HostFunction.run_in_python` to the caller of the function that users call.
_DEPTH: Final = 2


#: Of a row what runs it, None for one that it does not know.
Maker: TypeAlias = "Callable[[NumPyCall], Callable[..., Any] | None]"
#: What makes `run` of functions, in place of Python's; None for nothing.
_maker: Maker | None = None


def _is_whole(value: Any) -> bool:
    return type(value) is int and -_LARGEST_INT < value < _LARGEST_INT


def _is_axis(value: Any) -> bool:
    return value is None or _is_whole(value)


def _are_axes(value: Any) -> bool:
    return _is_axis(value) or (type(value) is tuple and all(map(_is_whole, value)))


def _is_shift(value: Any) -> bool:
    return value is not None and _are_axes(value)


def _is_width(value: Any) -> bool:
    """Whether a width for all sides is given, or a pair, or a pair for each dimension."""
    return _is_shift(value) or (
        type(value) is tuple and all(type(pair) is tuple and _is_shift(pair) for pair in value)
    )


def _is_bool(value: Any) -> bool:
    return type(value) is bool


class NumPyCall(NamedTuple):
    """A function of NumPy's that stands for one of the NumPy level, and what it may be called with.

    call: it; chars: the codes of the element types of its arrays; most: so many of the first arguments may be arrays.
    options: the arguments after these in their order, by position or by name, and by name alone `keepdims` of those
        that have an axis; each with what tells whether a value of it means the same to both.
    lists: whether a list of arrays may stand for one; numbers: whether arrays without dimensions and numbers may.
    """

    call: Callable[..., Any]
    chars: str = "dl?"
    most: int = 1
    options: Mapping[str, Callable[[Any], bool]] = MappingProxyType({})
    lists: bool = False
    numbers: bool = False


class HostFunction:
    """A function by its row.

    run: gives the result for arguments by position and by name, in the frame of what users call; None where NumPy's may
    be another one.
    """

    __slots__ = ("row", "run")
    run: Callable[[Sequence[Any], Mapping[str, Any]], Any]

    def __init__(self, row: NumPyCall) -> None:
        self.row = row
        self.run_by(_maker)

    def run_by(self, maker: Maker | None) -> None:
        """Let it be run by what `maker` makes; by Python for None, and where that does not know the row."""
        self.run = (maker and maker(self.row)) or self.run_in_python

    def run_in_python(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """As `run`."""
        row = self.row
        arrays: list[Any] = []
        operands: list[Any] = []
        if obstacles or not self._collect(args[: row.most], operands, arrays):
            return None
        if (len(args) > row.most or kwargs) and not self._takes_options(args[row.most :], kwargs):
            return None
        operands += args[row.most :]
        if not arrays or not _are_few(operands, arrays):
            return None
        device = arrays[0]._device
        for array in arrays:
            if array._device is not device:
                device = join(device, array._device)
        if device is None:
            return None
        nodes = [array._shown for array in arrays if array._shown is not None]
        for node in nodes:
            node.handles += 1  # so that nobody writes over it meanwhile
        try:
            if any([array._value is None for array in arrays]):  # given away just now, by another thread
                return None
            result = call_quietly(row.call, *operands, **kwargs)
        except REFUSALS:
            return None
        finally:
            for node in nodes:
                handles.release(node)
        return wrap_result(result, device, frame_of(_DEPTH))

    def _takes_options(self, positional: Sequence[Any], named: Mapping[str, Any]) -> bool:
        known = self.row.options
        if len(positional) > len(known) - ("keepdims" in known):
            return False
        arguments = {**dict(zip(known, positional, strict=False)), **named}
        return len(arguments) == len(positional) + len(named) and all(
            [name in known and known[name](value) for name, value in arguments.items()]
        )

    def _collect(self, values: Sequence[Any], operands: list[Any], arrays: list[Any]) -> bool:
        """Add what stands for `values` in the call of NumPy's, and the Arrays; False for one that nothing does."""
        for value in values:
            kind = type(value)
            if kind is handles._array_class:
                own = value._value
                if own is None and (own := small_value(value)) is None:
                    return False
                char = own.dtype.char if type(own) is ndarray else _CHARS.get(type(own))
                if (
                    char is None
                    or char not in self.row.chars
                    or not (type(own) is ndarray or self.row.numbers)
                ):
                    return False
                arrays.append(value)
                operands.append(own if type(own) is ndarray else STRONG[type(own)](own))
            elif self.row.numbers and (kind is float or kind is bool or _is_whole(value)):
                operands.append(value)
            elif self.row.lists and (kind is list or kind is tuple) and len(value) <= _LONGEST:
                inner: list[Any] = []
                items = [each for each in value if type(each) is handles._array_class]
                if len(items) < len(value) or not self._collect(items, inner, arrays):
                    return False
                operands.append(inner)
            else:
                return False
        return True


def _are_few(operands: list[Any], arrays: list[Any]) -> bool:
    """Whether no result of these operands can be large: of one array, of arrays of one shape, or of few elements."""
    if len(arrays) == 1:
        return True
    first = arrays[0]._value
    combined = 1
    for array in arrays:
        value = array._value
        combined *= value.size if type(value) is ndarray else 1
    return combined <= MOST_COMBINED or (
        all([type(array._value) is ndarray and array._value.shape == first.shape for array in arrays])
        and len(operands) == len(arrays)
    )


def wrap_result(result: Any, device: Device, frame: FrameType) -> Any:
    """Wrap what NumPy gave as an Array; None for what is too large for a small value, or is no array."""
    if type(result) is ndarray:
        if result.nbytes > MOST_PLAIN_BYTES:
            return None
        if not result.ndim:
            return wrap_value(plain_value(result[()]), device, frame)
        if not result.flags.c_contiguous:
            result = np.array(result, order="C")
        return wrap_value(result, device, frame)
    if isinstance(result, np.generic):
        return wrap_value(plain_value(result), device, frame)
    if type(result) is tuple:  # of several arrays
        arrays = [wrap_result(each, device, frame) for each in result]
        return None if NoneType in map(type, arrays) else tuple(arrays)
    return None


# --- the functions --------------------------------------------------------------------------------------------


def _refuse(is_refused: Any) -> None:
    """ValueError for what NumPy's function would do in another way."""
    if is_refused:
        raise ValueError


def _has_negative_zeros(x: HostArray) -> Any:
    return x.dtype.kind == "f" and (np.signbit(x) & (x == 0)).any()


def _count(x: HostArray, weights: Any = None, minlength: int = 0) -> HostArray:
    """`bincount` of numbers that are no larger than arrays are small."""
    _refuse(x.ndim != 1 or (x.size and int(x.max()) >= MOST_COMBINED) or minlength > MOST_COMBINED)
    _refuse(weights is not None and x.shape != np.shape(weights))
    return np.bincount(x, weights, minlength)


def _largest(a: HostArray, *rest: Any, **options: Any) -> Any:
    """`max` that is no zero, of which NumPy's may be either."""
    result = a.max(*rest, **options)
    _refuse(a.dtype.kind == "f" and not np.all(result))
    return result


def _least(a: HostArray, *rest: Any, **options: Any) -> Any:
    """As `_largest`."""
    result = a.min(*rest, **options)
    _refuse(a.dtype.kind == "f" and not np.all(result))
    return result


def _pad(array: HostArray, pad_width: Any, *rest: Any, **options: Any) -> HostArray:
    """`pad` by no more than arrays are small."""
    _refuse(np.max(pad_width, initial=0) > MOST_COMBINED)
    return np.pad(array, pad_width, *rest, **options)


def _diff(a: HostArray, n: int = 1, *rest: Any, **options: Any) -> HostArray:
    """`diff` that is not the array itself."""
    _refuse(not n)
    return np.diff(a, n, *rest, **options)


def _mean(a: HostArray, *rest: Any, **options: Any) -> Any:
    """`mean` of some elements: of none NumPy warns."""
    _refuse(not a.size)
    return np.mean(a, *rest, **options)


def _median(a: HostArray, *rest: Any, **options: Any) -> Any:
    """`median` of some elements that is no zero: of those in the middle NumPy takes any."""
    _refuse(not a.size)
    result = np.median(a, *rest, **options)
    _refuse(not np.all(result))
    return result


def _accumulate_sums(a: HostArray, axis: int | None = None) -> HostArray:
    """`cumsum` that begins with 0.0, so that -0.0 alone is 0.0."""
    sums = np.cumsum(a, axis)
    return sums + 0.0 if sums.dtype.kind == "f" else sums


def _sort(a: HostArray, axis: int | None = -1) -> HostArray:
    """`sort` of numbers of which none is -0.0, which comes before 0.0."""
    _refuse(_has_negative_zeros(a))
    return np.sort(a, axis)


def _sort_indices(a: HostArray, axis: int | None = -1) -> HostArray:
    _refuse(_has_negative_zeros(a))
    return np.argsort(a, axis, kind="stable")


def _take(a: HostArray, indices: HostArray, axis: int | None = None) -> HostArray:
    """`take` at integers, at which NumPy does not look if there is nothing to take."""
    _refuse(indices.dtype.kind != "i" or not a.size)
    return np.take(a, indices, axis)


def _dot(a: HostArray, b: HostArray) -> HostArray:
    """`dot` of what a BLAS multiplies: products without a sum have other zeros."""
    _refuse(1 in (*np.shape(a), *np.shape(b)) or not (np.ndim(a) and np.ndim(b)))
    return np.dot(a, b)  # type: ignore[no-any-return]


def _inner(a: HostArray, b: HostArray) -> HostArray:
    """As `_dot`."""
    _refuse(1 in (*np.shape(a), *np.shape(b)) or not (np.ndim(a) and np.ndim(b)))
    return np.inner(a, b)  # type: ignore[no-any-return]


_AXIS: Final = MappingProxyType({"axis": _is_axis})
#: By position an axis alone: what follows are other arguments.
_BY_NAME: Final = MappingProxyType({"axis": _are_axes, "keepdims": _is_bool})
_ELEMENT_WISE: Final = ("isnan", "isinf", "isfinite", "floor", "ceil", "trunc", "sign", "abs")
#: By the names of functions as errors have them.  Methods of NumPy's arrays are quicker than functions.
ROWS: Final[dict[str, NumPyCall]] = {
    **{
        name: NumPyCall(getattr(np.ndarray, name), options=_BY_NAME) for name in ("sum", "prod", "any", "all")
    },
    **{name: NumPyCall(call, options=_BY_NAME) for name, call in (("max", _largest), ("min", _least))},
    **{name: NumPyCall(call, options=_BY_NAME) for name, call in (("mean", _mean), ("median", _median))},
    **{name: NumPyCall(getattr(np.ndarray, name), options=_AXIS) for name in ("argmax", "argmin", "cumprod")},
    **{"cumsum": NumPyCall(_accumulate_sums, options=_AXIS), "sort": NumPyCall(_sort, options=_AXIS)},
    "argsort": NumPyCall(_sort_indices, options=_AXIS),
    **{name: NumPyCall(getattr(np.ndarray, name)) for name in ("trace", "nonzero")},
    **{name: NumPyCall(getattr(np, name)) for name in ("count_nonzero", "flatnonzero")},
    **{name: NumPyCall(getattr(np, name), options=_AXIS, lists=True) for name in ("concatenate", "stack")},
    **{name: NumPyCall(getattr(np, name), lists=True) for name in ("hstack", "vstack")},
    **{
        name: NumPyCall(getattr(np, name), options=MappingProxyType({"k": _is_whole}))
        for name in ("tril", "triu")
    },
    "roll": NumPyCall(np.roll, options=MappingProxyType({"shift": _is_shift, "axis": _are_axes})),
    "diff": NumPyCall(_diff, options=MappingProxyType({"n": _is_whole, "axis": _is_whole})),
    "pad": NumPyCall(_pad, options=MappingProxyType({"pad_width": _is_width})),
    **{name: NumPyCall(getattr(np, name), numbers=True) for name in _ELEMENT_WISE},
    "where": NumPyCall(np.where, most=3, numbers=True),
    **{name: NumPyCall(getattr(np, name), most=2) for name in ("outer", "matmul", "vdot", "searchsorted")},
    **{
        "dot": NumPyCall(_dot, most=2),
        "inner": NumPyCall(_inner, most=2),
        "take": NumPyCall(_take, most=2, options=_AXIS),
    },
    "bincount": NumPyCall(_count, most=2, options=MappingProxyType({"minlength": _is_whole})),
    "linalg.solve": NumPyCall(np.linalg.solve, "d", 2),
    **{f"linalg.{name}": NumPyCall(getattr(np.linalg, name), "d") for name in ("inv", "cholesky")},
}


_functions: Final[list[HostFunction]] = []


def run_by(maker: Maker | None) -> None:
    """Let functions be run by what `maker` makes of their rows; by Python for None."""
    global _maker
    _maker = maker
    for each in _functions:
        each.run_by(maker)


def tries_host(function: Callable[P, R]) -> Callable[P, R]:
    """`function` for users, as `names_errors` gives it, by its row of `ROWS` where that is sure."""
    name = name_in_errors(function)
    host = host_function(function)
    assert host is not None, name

    names = [*signature(function).parameters][: host.row.most]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        positional, options = _by_position(names, args, kwargs) if kwargs else (args, kwargs)
        result = host.run(positional, options)
        if result is not None:
            return result  # type: ignore[no-any-return]
        try:
            return function(*args, **kwargs)
        except XarrError as error:
            shorten(error, name)
            raise

    return mark_boundary(call)


def _by_position(
    names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, of which those with `names` stand by position as far as that goes."""
    positional, options = list(args), dict(kwargs)
    for name in names[len(args) :]:
        if name not in options:
            break
        positional.append(options.pop(name))
    return tuple(positional), options


_EXACT: Final = ("add", "multiply", "maximum", "minimum")
#: Methods of ufuncs that are the same, which for floats add in another order, as rows of `ROWS`.
_UFUNC_METHODS: Final[dict[tuple[str, str], NumPyCall]] = {
    **{("reduceat", name): NumPyCall(getattr(np, name).reduceat, "l", 2, _AXIS) for name in _EXACT},
    **{("accumulate", name): NumPyCall(getattr(np, name).accumulate, "l", 1, _AXIS) for name in _EXACT},
}
_by_ufunc: Final[dict[tuple[str, str], HostFunction]] = {}


def run_method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the method `name` of NumPy's ufunc for the one that is the first argument; None where that is not sure."""
    key = name, args[0].__name__ if args else ""
    row = _UFUNC_METHODS.get(key)
    if row is None:
        return None
    host = _by_ufunc.get(key)
    if host is None:
        host = _by_ufunc[key] = HostFunction(row)
        _functions.append(host)
    return host.run(args[1:], kwargs)


#: Functions whose `at` is the same, by the codes of element types: floats are added in the order of the indices.
_UPDATES: Final = {"l": frozenset(_EXACT), "d": frozenset({"add", "subtract"})}


def update_at(name: str, array: Any, indices: Any, b: Any) -> bool:
    """Do `ufunc.at` of this name on small arrays of one type; False where that is not sure, and nothing is done."""
    kind = handles._array_class
    if type(array) is not kind or type(indices) is not kind or type(b) is not kind:
        return False
    own, chosen, values = small_value(array), small_value(indices), small_value(b)
    if type(own) is not ndarray or type(chosen) is not ndarray or type(values) is not ndarray:
        return False
    char, device = own.dtype.char, join(array._device, indices._device)
    if name not in _UPDATES.get(char, ()) or values.dtype is not own.dtype or chosen.dtype.char != "l":
        return False
    if (
        device is None
        or join(device, b._device) is not array._device
        or chosen.size * own.size > MOST_COMBINED
    ):
        return False
    new = np.array(own)
    try:
        call_quietly(getattr(np, name).at, new, chosen, values)
    except REFUSALS:
        return False
    return show_small_value(array, wrap_value(new, device, frame_of(_DEPTH)))


def host_ufunc(call: Callable[..., Any], operands: int) -> HostFunction:
    """A function that computes an op of float64 element by element, of so many operands."""
    made = HostFunction(NumPyCall(call, "d", operands, numbers=True))
    _functions.append(made)
    return made


def host_function(function: Callable[..., Any]) -> HostFunction | None:
    """The function of NumPy's that stands for one of the NumPy level where arrays are small; None for no row."""
    row = ROWS.get(name_in_errors(function))
    if row is None:
        return None
    _functions.append(HostFunction(row))
    return _functions[-1]
