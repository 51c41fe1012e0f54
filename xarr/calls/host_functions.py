"""Functions of the NumPy level that NumPy's own function of the same name computes, where arrays are small.

A function of the NumPy level checks its arguments, records ops and computes them one by one.  Where all of its Arrays
hold small values of element types for which NumPy's function gives the same element types, shapes and bits, that is
called instead, and what it gives is wrapped.  `tests/calls/test_host_functions.py` compares both for every row of
`ROWS`.  A row says what else it may be called with; every other argument, and what NumPy refuses, is left to the
function itself, which says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from sys import _getframe as frame_of
from types import FrameType, MappingProxyType, NoneType
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy import ndarray

from xarr.base.at_once.numpy_calls import WIDE, ArgumentKind, Kinds, NumPyCall, Unless, kind_of
from xarr.base.at_once.numpy_warnings import call_quietly
from xarr.base.at_once.obstacles import obstacles
from xarr.base.tracebacks import mark_boundary, name_in_errors, shorten
from xarr.calls.concrete_values import (
    hold_beside,
    join,
    plain_value,
    small_value,
    wrap_constant,
    wrap_value,
)
from xarr.calls.small_values import spread
from xarr.errors import XarrError
from xarr.ir.device import Device
from xarr.ir.source import location_of
from xarr.ir.types import MOST_COMBINED, MOST_PLAIN_BYTES, PLAIN, TensorType
from xarr.runtime import handles
from xarr.runtime.handles import wrap_leaf
from xarr.runtime.small_ops import MOST_COMPUTED

P = ParamSpec("P")
R = TypeVar("R")
HostArray = np.ndarray[Any, Any]

#: Items of the longest list of arguments that is looked at, and how deep lists may lie in lists.
_LONGEST: Final = 4096
_DEEPEST_LIST: Final = 4
#: What stands in calls of NumPy's for the number that an Array without dimensions holds: of that type, never weak.
STRONG: Final = {float: np.float64, int: np.int64, bool: np.bool_}
#: The codes of these types.
_CHARS: Final = {kind: np.dtype(own).char for kind, own in STRONG.items()}
#: What NumPy raises for arguments that it refuses.
REFUSALS: Final = (ArithmeticError, LookupError, TypeError, ValueError)
#: From what wraps the result to the caller of the function that users call.
DEPTH: Final = 3

#: What runs a call instead: a function of arguments by position and by name.
Run: TypeAlias = "Callable[[tuple[Any, ...], dict[str, Any]], Any]"
#: What runs a function instead of Python, None for one that it does not know.
Maker: TypeAlias = "Callable[[HostFunction], Run | None]"
#: What makes `run` of functions, in place of Python's; None for nothing.
_maker: Maker | None = None


def _do_nothing(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Leave a call to others."""


class HostFunction:
    """A function by its row.

    run: gives the result for arguments by position and by name, by what `otherwise` gives where NumPy's may be
    another one, which is None for no such function.  names: the parameters that may be arrays; is_for_python: whether
    Python runs it where no machine code does.
    """

    __slots__ = ("front", "in_python", "names", "note_constant", "otherwise", "row", "run")
    run: Run

    def __init__(
        self,
        row: NumPyCall,
        otherwise: Run | None = None,
        names: Sequence[str] = (),
        is_for_python: bool = True,
    ) -> None:
        self.row, self.otherwise, self.names = row, otherwise, names
        #: Called with the arguments, of which none is an array, and the result.
        self.note_constant: Callable[[tuple[Any, ...], dict[str, Any], Any], None] | None = None
        #: Makes of `run` what tries something else first, if anything does.
        self.front: Callable[[Run], Run] | None = None
        self.in_python: Run | None = self.run_in_python if is_for_python else None
        self.run_by(_maker)

    def run_by(self, maker: Maker | None) -> None:
        """Let it be run by what `maker` makes; by Python for None, and where that does not know the row."""
        made = None if maker is None else maker(self)
        run = made or self.in_python or _do_nothing
        self.run = run if self.front is None else self.front(run)

    def try_first(self, front: Callable[[Run], Run]) -> None:
        """Let `run` be what `front` makes of it, from now on."""
        self.front, self.run = front, front(self.run)

    def takes_too(self, char: str) -> None:
        """Let arrays of the element type with this code be among its arguments from now on."""
        self.row = self.row._replace(chars=self.row.chars + char)
        self.run_by(_maker)

    def run_in_python(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """As `run`."""
        result = None if obstacles else self._by_numpy(*_by_position(self.names, args, kwargs))
        return result if result is not None or self.otherwise is None else self.otherwise(args, kwargs)

    def _by_numpy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of NumPy's function; None where that may be another one."""
        row = self.row
        arrays: list[Any] = []
        numbers: list[Any] = []
        operands: list[Any] = []
        if not self._collect(args[: row.most], operands, arrays, numbers) or (not arrays and row.most):
            return None
        if not row.combines({_char_of(array._value) for array in arrays}, numbers):
            return None
        options = args[row.most :]
        if (options or kwargs) and not self._takes_options(options, kwargs):
            return None
        if not row.is_bounded and not _are_few(operands, arrays, row):
            return None
        if row.fills and len(args) == row.most and next(iter(row.options)) not in kwargs:
            options = (None,)
        device = arrays[0]._device if arrays else None
        for array in arrays:
            if array._device is not device:
                device = join(device, array._device)
                if device is None:
                    return None
        if row.unless and not _is_sure(row.unless, operands[0]):
            return None
        try:
            result = call_quietly(row.call, *operands, *options, **kwargs)
        except REFUSALS:
            return None
        if row.unless & Unless.ZEROS_OF_BOTH_SIGNS and _has_zeros_of_both_signs(operands, result):
            return None
        frame = frame_of(DEPTH)
        if device is not None:
            if row.is_bounded and result.nbytes > MOST_PLAIN_BYTES:
                return wrap_large(result, device, frame)
            return wrap_result(result, device, frame)
        if row.several or self.otherwise is None or (value := value_of_result(result)) is None:
            return None
        if row.lists and type(args[0]) in (list, tuple):
            parts = args[0]
            if not {*map(type, parts)}.isdisjoint((list, tuple)):
                return None
            own = (self.otherwise, kwargs, len(parts), *parts, *args[1:])
            return wrap_constant(value, _record_list, own, frame)
        made = wrap_constant(value, _record, (self.otherwise, kwargs, *args), frame)
        if not arrays and made is not None and self.note_constant is not None:
            self.note_constant(args, kwargs, made)
        return made

    def _takes_options(self, positional: Sequence[Any], named: Mapping[str, Any]) -> bool:
        row = self.row
        if len(positional) > row.by_position:
            return False
        for name, value in zip(row.options, positional, strict=False):
            if name in named or not row.takes(name, value):
                return False
        return all([row.takes(name, value) for name, value in named.items()])

    def _collect(
        self,
        values: Sequence[Any],
        operands: list[Any],
        arrays: list[Any],
        numbers: list[Any],
        depth: int = _DEEPEST_LIST,
    ) -> bool:
        """Add what stands for `values` in the call of NumPy's, Arrays and numbers; False for one that nothing does."""
        row = self.row
        for value in values:
            kind = type(value)
            if kind is handles._array_class:
                own = value._value
                if own is None and (own := small_value(value)) is None:
                    return False
                if _char_of(own) not in row.chars or not (type(own) is ndarray or row.numbers or row.lists):
                    return False
                arrays.append(value)
                operands.append(STRONG[type(own)](own) if type(own) in STRONG else own)
            elif kind is ndarray:
                held = hold_beside(value) if value.dtype.char in row.chars else None
                if held is None:
                    return False
                arrays.append(held)
                operands.append(held._value)
            elif row.numbers and (kind is float or kind_of(value) & (ArgumentKind.INT | ArgumentKind.BOOL)):
                operands.append(value)
                numbers.append(value)
            elif row.lists and (kind is list or kind is tuple) and len(value) <= _LONGEST and depth:
                inner: list[Any] = []
                if not self._collect(value, inner, arrays, numbers, depth - 1 if row.numbers else 0):
                    return False
                operands.append(inner)
            else:
                return False
        return True


def _char_of(value: Any) -> str:
    """The code of the element type of a small value."""
    return _CHARS.get(type(value)) or value.dtype.char


def _by_position(
    names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, of which those with `names` stand by position as far as that goes."""
    left = names[len(args) :] if kwargs else ()
    if not left or left[0] not in kwargs:
        return args, kwargs
    positional, options = list(args), dict(kwargs)
    for name in left:
        if name not in options:
            break
        positional.append(options.pop(name))
    return tuple(positional), options


def _is_sure(unless: int, operand: HostArray) -> bool:
    """Whether an operand alone says nothing against NumPy's result."""
    if unless & Unless.EMPTY and not operand.size:
        return False
    return not (unless & Unless.NEGATIVE_ZEROS and has_negative_zeros(operand))


def _are_few(operands: list[Any], arrays: list[Any], row: NumPyCall) -> bool:
    """Whether no result of these operands can be large: of one array, of arrays of one shape, or of few elements."""
    if len(arrays) < 2:
        return True
    if row.numbers:
        return spread(*operands) <= MOST_COMBINED or (
            len({array._value.shape for array in arrays if type(array._value) is ndarray}) == 1
        )
    first = arrays[0]._value
    combined = 1
    for array in arrays:
        value = array._value
        combined *= value.size if type(value) is ndarray else 1
    if row.contracts and type(first) is ndarray and first.ndim:
        combined //= max(first.shape[-1], 1) ** 2
    return combined <= MOST_COMBINED or (
        all([type(array._value) is ndarray and array._value.shape == first.shape for array in arrays])
        and len(operands) == len(arrays)
    )


def value_of_result(result: Any) -> Any:
    """Make of what NumPy gave what an Array holds; None for what is too large for a small value, or is no array."""
    if type(result) is ndarray:
        if result.nbytes > MOST_PLAIN_BYTES:
            return None
        if not result.ndim:
            return plain_value(result[()])
        return result if result.flags.c_contiguous else np.array(result, order="C")
    return plain_value(result) if isinstance(result, np.generic) else None


def wrap_result(result: Any, device: Device, frame: FrameType) -> Any:
    """Wrap what NumPy gave as an Array, or as a tuple of them; None for what `value_of_result` has none."""
    if isinstance(result, tuple):
        arrays = [wrap_result(each, device, frame) for each in result]
        if NoneType in map(type, arrays):
            return None
        return tuple(arrays) if type(result) is tuple else result._make(arrays)  # type: ignore[attr-defined]
    value = value_of_result(result)
    return None if value is None else wrap_value(value, device, frame)


def wrap_large(result: HostArray, device: Device, frame: FrameType) -> Any:
    """Wrap what NumPy has joined of many small arrays; None for more than is computed at once at all."""
    if result.nbytes > MOST_COMPUTED:
        return None
    result = np.ascontiguousarray(result)
    result.flags.writeable = False
    return wrap_leaf(TensorType(result.shape, result.dtype), result, device, False, location_of(frame))


def _record(run: Run, options: dict[str, Any], *args: Any) -> Any:
    return run(args, options)


def _record_list(run: Run, options: dict[str, Any], count: int, *args: Any) -> Any:
    """As `_record`, of a list of the first `count` arguments, and the others."""
    return run(([*args[:count]], *args[count:]), options)


# --- the functions --------------------------------------------------------------------------------------------


def refuse(is_refused: Any) -> None:
    """ValueError for what NumPy's function would do in another way."""
    if is_refused:
        raise ValueError


def has_negative_zeros(x: Any) -> Any:
    """Whether -0.0 is among numbers."""
    if type(x) is float:
        return x == 0 and math.copysign(1.0, x) < 0
    if x.dtype.kind == "c":
        return has_negative_zeros(x.real) or has_negative_zeros(x.imag)
    return x.dtype.kind == "f" and (np.signbit(x) & (x == 0)).any()


def _has_zeros_of_both_signs(operands: Sequence[Any], result: Any) -> bool:
    """Whether a result has zeros and an operand -0.0; those of which none is are numbers and arrays."""
    if result.all():
        return False
    return any([has_negative_zeros(each) for each in operands if type(each) not in (int, bool)])


def refuse_large(*sizes: int) -> None:
    """ValueError for a result with so many elements along its dimensions that it is no small array of any type."""
    refuse(math.prod(sizes) > MOST_PLAIN_BYTES)


def _pad(array: HostArray, pad_width: Any, mode: Any = "constant") -> HostArray:
    """`pad` to no more than arrays are small."""
    widths = [pad_width] if type(pad_width) is int else pad_width
    pairs = [each if type(each) is tuple else (each,) for each in widths]
    most = max([width for pair in pairs for width in pair], default=0)
    refuse_large(*[size + 2 * most for size in array.shape])
    return np.pad(array, pad_width, mode)


def _repeat(a: HostArray, repeats: int, axis: int | None = None) -> HostArray:
    """`repeat`, which of no elements NumPy makes less than none."""
    refuse(repeats < 0)
    refuse_large(a.size, repeats)
    return np.repeat(a, repeats, axis)


def _tile(A: HostArray, reps: int | tuple[int, ...]) -> HostArray:
    """As `_repeat`."""
    counts = reps if isinstance(reps, tuple) else (reps,)
    refuse(min(counts, default=0) < 0)
    refuse_large(A.size, *counts)
    return np.tile(A, reps)


def _outer(a: HostArray, b: HostArray) -> HostArray:
    refuse_large(np.size(a), np.size(b))
    dtype = np.result_type(a, b)  # what is converted meanwhile may be rounded otherwise
    return np.outer(np.asarray(a, dtype), np.asarray(b, dtype))


def _triangle(call: Callable[..., HostArray]) -> Callable[..., HostArray]:
    """`tril` or `triu`, which make a matrix of a vector."""

    def keep(m: HostArray, k: int = 0) -> HostArray:
        refuse_large(m.size, m.size if m.ndim == 1 else 1)
        return call(m, k)

    return keep


def _diff(a: HostArray, n: int = 1, *rest: Any, **options: Any) -> HostArray:
    """`diff` that is not the array itself, and for which NumPy does not go on when nothing is left."""
    refuse(not 0 < n <= max(a.shape, default=0))
    return np.diff(a, n, *rest, **options)


#: Beyond it NumPy multiplies tens for as long as that takes.
_MOST_DECIMALS: Final = 400


def _round(a: HostArray, decimals: int = 0) -> HostArray:
    """`round` to decimals that floats may have."""
    refuse(abs(decimals) > _MOST_DECIMALS)
    return a.round(decimals)


def _accumulate_sums(
    a: HostArray, axis: int | None = None, dtype: None = None, out: None = None
) -> HostArray:
    """`cumsum` that begins with 0.0, so that -0.0 alone is 0.0."""
    sums = a.cumsum(axis)
    return sums + 0.0 if sums.dtype.kind in "fc" else sums


def _sort_indices(a: HostArray, axis: int | None = -1, **options: Any) -> HostArray:
    if a.ndim > 32:
        raise ValueError("argsort of NumPy goes no further than 32 dimensions")
    return np.argsort(a, axis, kind="stable")


def _square(x: Any) -> Any:
    """`square` of an array, which may round complex numbers otherwise than that of a single one."""
    return np.square(np.asarray(x))


def _range(start: int, stop: int | None = None, step: int = 1) -> HostArray:
    """`arange` of ints, of no more than arrays are small."""
    numbers = range(0, start, step) if stop is None else range(start, stop, step)
    refuse(len(numbers) > MOST_COMBINED)
    return np.arange(numbers.start, numbers.stop, numbers.step)


def _refuse_product(a: HostArray, b: HostArray) -> None:
    refuse(1 in a.shape or 1 in b.shape or not (a.ndim and b.ndim))
    terms = max(a.shape[-1], 1)
    refuse_large(a.size // terms, b.size // terms)


def _dot(a: HostArray, b: HostArray) -> HostArray:
    """`dot` of what a BLAS multiplies: products without a sum have other zeros."""
    _refuse_product(a, b)
    return np.dot(a, b)  # type: ignore[no-any-return]


def _inner(a: HostArray, b: HostArray) -> HostArray:
    """As `_dot`."""
    _refuse_product(a, b)
    return np.inner(a, b)  # type: ignore[no-any-return]


def options_of(**kinds: Kinds) -> Mapping[str, Kinds]:
    return MappingProxyType(kinds)


AXIS: Final = options_of(axis=ArgumentKind.INT | ArgumentKind.NONE)
_AXES: Final = ArgumentKind.NONE | ArgumentKind.INT | ArgumentKind.INTS
#: Of sums and of extremes, for which NumPy's functions have the same order up to `out`.
_OF_SUMS: Final = options_of(
    axis=_AXES, dtype=ArgumentKind.NONE, out=ArgumentKind.NONE, keepdims=ArgumentKind.BOOL
)
_OF_EXTREMES: Final = options_of(axis=_AXES, out=ArgumentKind.NONE, keepdims=ArgumentKind.BOOL)
_ACCUMULATED: Final = options_of(
    axis=ArgumentKind.INT | ArgumentKind.NONE, dtype=ArgumentKind.NONE, out=ArgumentKind.NONE
)
_ELEMENT_WISE: Final = ("isnan", "isinf", "isfinite", "floor", "ceil", "trunc", "abs")
#: The codes of all element types of NumPy's that small values have, and of those but complex numbers.
_ALL: Final = "".join(sorted(PLAIN))
_REAL: Final = _ALL.translate(dict.fromkeys(map(ord, "FD")))
EITHER: Final = Unless.ZEROS_OF_BOTH_SIGNS
#: The methods of ufuncs that reductions are; NumPy's functions and methods of arrays call them in Python.
_SUMS: Final = {"sum": np.add, "prod": np.multiply}
_EXTREMES: Final = {
    **{"any": (np.logical_or, 0), "all": (np.logical_and, 0)},
    **{"max": (np.maximum, EITHER), "min": (np.minimum, EITHER)},
}
#: By the names of functions as errors have them; `fourier_calls` adds some.  Methods of NumPy's arrays are quicker than
#: functions.
ROWS: Final[dict[str, NumPyCall]] = {
    **{name: NumPyCall(ufunc.reduce, _ALL, options=_OF_SUMS, fills=True) for name, ufunc in _SUMS.items()},
    **{
        name: NumPyCall(ufunc.reduce, _ALL, options=_OF_EXTREMES, fills=True, unless=unless)
        for name, (ufunc, unless) in _EXTREMES.items()
    },
    "mean": NumPyCall(np.ndarray.mean, _REAL, options=_OF_SUMS, unless=Unless.EMPTY),
    # Of those in the middle NumPy takes any.
    "median": NumPyCall(
        np.median,
        _REAL,
        options=options_of(axis=_AXES, keepdims=ArgumentKind.BOOL),
        unless=Unless.EMPTY | EITHER,
    ),
    **{
        name: NumPyCall(
            getattr(np.ndarray, name),
            _ALL,
            options=options_of(axis=ArgumentKind.INT | ArgumentKind.NONE, out=ArgumentKind.NONE),
        )
        for name in ("argmax", "argmin")
    },
    "cumsum": NumPyCall(_accumulate_sums, _ALL, options=_ACCUMULATED),
    "cumprod": NumPyCall(np.ndarray.cumprod, _REAL, options=_ACCUMULATED),
    # -0.0 comes before 0.0.
    "sort": NumPyCall(np.sort, _ALL, options=AXIS, unless=Unless.NEGATIVE_ZEROS),
    "argsort": NumPyCall(
        _sort_indices,
        _ALL,
        options=options_of(**AXIS, stable=ArgumentKind.BOOL),
        unless=Unless.NEGATIVE_ZEROS,
    ),
    "trace": NumPyCall(np.ndarray.trace, _ALL),
    "count_nonzero": NumPyCall(np.count_nonzero, _ALL),
    **{
        name: NumPyCall(getattr(np, name), _ALL, options=AXIS, lists=True, is_bounded=True)
        for name in ("concatenate", "stack")
    },
    **{
        name: NumPyCall(getattr(np, name), _ALL, lists=True, is_bounded=True) for name in ("hstack", "vstack")
    },
    **{
        name: NumPyCall(_triangle(getattr(np, name)), _ALL, options=options_of(k=ArgumentKind.INT))
        for name in ("tril", "triu")
    },
    "roll": NumPyCall(
        np.roll, _ALL, options=options_of(shift=ArgumentKind.INT | ArgumentKind.INTS, axis=_AXES)
    ),
    "diff": NumPyCall(_diff, _ALL, options=options_of(n=ArgumentKind.INT, axis=ArgumentKind.INT)),
    "pad": NumPyCall(
        _pad,
        _ALL,
        options=options_of(
            pad_width=ArgumentKind.INT | ArgumentKind.INTS | ArgumentKind.PAIRS,
            mode=frozenset({"constant", "edge"}),
        ),
    ),
    **{name: NumPyCall(getattr(np, name), _ALL, numbers=True) for name in _ELEMENT_WISE},
    "where": NumPyCall(np.where, _ALL, most=3, numbers=True),
    **{name: NumPyCall(getattr(np, name), _ALL, numbers=True) for name in ("conj", "logical_not")},
    "sign": NumPyCall(np.sign, _REAL, numbers=True),
    "square": NumPyCall(_square, _ALL, numbers=True),
    "reciprocal": NumPyCall(np.reciprocal, "dfDF", numbers=True),
    **{
        name: NumPyCall(getattr(np, name), _ALL, most=2, numbers=True, alike=True)
        for name in ("logical_and", "logical_or", "logical_xor", "floor_divide", "remainder")
    },
    "clip": NumPyCall(
        lambda a, low, high: np.asarray(a).clip(low, high),
        _REAL,
        most=3,
        numbers=True,
        alike=True,
        unless=EITHER,
    ),
    "round": NumPyCall(_round, "dfDF", options=options_of(decimals=ArgumentKind.INT)),
    "repeat": NumPyCall(
        _repeat, _ALL, options=options_of(repeats=ArgumentKind.INT, axis=ArgumentKind.INT | ArgumentKind.NONE)
    ),
    "tile": NumPyCall(_tile, _ALL, options=options_of(reps=ArgumentKind.INT | ArgumentKind.INTS)),
    "array": NumPyCall(np.array, WIDE, lists=True, numbers=True, is_bounded=True),
    "outer": NumPyCall(_outer, _ALL, most=2),
    "matmul": NumPyCall(np.matmul, _ALL, most=2, contracts=True),
    "vdot": NumPyCall(np.vdot, _REAL, most=2),
    "dot": NumPyCall(_dot, _ALL, most=2, contracts=True),
    "inner": NumPyCall(_inner, _ALL, most=2, contracts=True),
    "arange": NumPyCall(
        _range,
        most=0,
        options=options_of(
            start=ArgumentKind.INT, stop=ArgumentKind.INT | ArgumentKind.NONE, step=ArgumentKind.INT
        ),
    ),
}


functions: Final[list[HostFunction]] = []


def run_by(maker: Maker | None) -> None:
    """Let functions be run by what `maker` makes of their rows; by Python for None."""
    global _maker
    _maker = maker
    for each in functions:
        each.run_by(maker)


def tries_host(function: Callable[P, R]) -> Callable[P, R]:
    """`function` for users, as `names_errors` gives it, by its row of `ROWS` where that is sure."""
    name = name_in_errors(function)
    host = host_function(function, lambda args, kwargs: function(*args, **kwargs))
    assert host is not None, name
    return run_for_users(function, name, host)


def run_for_users(function: Callable[P, R], name: str, runner: Any) -> Callable[P, R]:
    """`function` for users: what a runner gives for its arguments, and errors that begin with a name."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return runner.run(args, kwargs)  # type: ignore[no-any-return]
        except XarrError as error:
            shorten(error, name)
            raise

    return mark_boundary(call)


def host_function(function: Callable[..., Any], otherwise: Run) -> HostFunction | None:
    """The function of NumPy's that stands for one of the NumPy level where arrays are small; None for no row.

    otherwise: what runs a call of the function else.
    """
    row = ROWS.get(name_in_errors(function))
    if row is None:
        return None
    functions.append(HostFunction(row, otherwise, [*signature(function).parameters][: row.most]))
    return functions[-1]
