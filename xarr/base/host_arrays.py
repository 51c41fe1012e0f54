"""From Python objects to NumPy arrays of an element type, with an error that says what is wrong."""

from __future__ import annotations

from itertools import chain
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr.dtypes import (
    ANY,
    BOOL,
    COMPLEX,
    EXTENDED_FLOAT,
    INTEGER,
    SUB_BYTE,
    SUB_BYTE_INTEGER,
    canonical,
    check_fits,
    default_of,
    info,
)
from xarr.errors import ArgumentError, DTypeError, InputError, RaggedError, TracedValueError, ValueRangeError

HostArray = np.ndarray[Any, Any]

SCALARS = (bool, int, float, complex)
_NUMBERS: Final = frozenset(SCALARS)
_SEQUENCES: Final = frozenset({list, tuple})
_KNOWN: Final = ANY | frozenset(SUB_BYTE)
#: Element types of which nothing need be asked.
_USUAL: Final = frozenset(map(np.dtype, "?bBhHiIlLqQfdFD"))
#: Dimensions that a NumPy array may have.
_MOST_LEVELS: Final = 64


def scalar_kind(value: Any) -> type[Any]:
    """bool, int, float or complex, whichever the value is an instance of (an IntEnum is an int)."""
    return next(kind for kind in SCALARS if isinstance(value, kind))


def is_weak(value: object) -> bool:
    """Whether `value` is a Python scalar, whose element type gives way to that of arrays."""
    return isinstance(value, SCALARS) and not isinstance(value, np.generic)


def scalar(value: complex, dtype: np.dtype[Any], *, is_requested: bool = False) -> HostArray:
    """A Python scalar as a 0-d array; `is_requested` says that the caller asked for `dtype` by name.

    Raises ValueRangeError for an int that the dtype cannot hold, and for NaN and infinity as an integer;
    DTypeError for a complex number as a real one.
    """
    if scalar_kind(value) is complex and dtype not in COMPLEX | BOOL:
        raise DTypeError(
            f"the complex number {value!r} does not fit {dtype}; take .real, .imag or abs() first"
        )
    if (dtype in INTEGER or dtype in SUB_BYTE_INTEGER) and isinstance(value, int):
        check_fits(value, dtype, is_requested=is_requested)
    try:
        with np.errstate(over="ignore"):  # a float beyond the type is infinity, as in NumPy
            if isinstance(value, int) and dtype in EXTENDED_FLOAT and value.bit_length() > 63:
                return np.array(float(value), dtype)  # ml_dtypes takes no longer ints
            return np.array(value, dtype)
    except OverflowError:
        raise ValueRangeError(f"the number {_show(value)} is too large for {dtype}") from None
    except ValueError:
        raise ValueRangeError(f"{value!r} is not an integer and does not fit {dtype}") from None


class NoOperand:
    """Base of what NumPy can read as an array and xarr's functions do not take; `operand_advice` says why."""

    operand_advice: ClassVar[str]
    #: Whether it is an array in parts, whose `shape` and `dtype` are those of the whole.
    is_in_parts: ClassVar[bool] = False


def host_array(value: Any, dtype: DTypeLike | None = None, *, copy: bool | None = True) -> HostArray:
    """`value` (array, scalar, nested sequence, anything with `__array__`) as a NumPy array.

    Python numbers alone take xarr's default dtypes.  With `copy=None` the memory of an existing array
    may be shared; with `copy=False` it must be.  Raises RaggedError for ragged lists, InputError for objects and
    for strings without a `dtype` to read them as, DTypeError for an element type that xarr has not, ValueError
    where `copy=False` needs a copy.
    """
    if type(value) is np.ndarray and dtype is None and copy is True and value.dtype in _USUAL:
        return np.array(value)
    wanted = None if dtype is None else canonical(dtype)
    if is_weak(value):
        if copy is False:
            raise ValueError("a Python scalar has no memory to share, so copy=False is not possible")
        dtype = _default_for(value) if wanted is None else wanted
        return scalar(value, dtype, is_requested=wanted is not None)
    if isinstance(value, NoOperand):
        raise InputError(value.operand_advice)
    _refuse_subclass(value)
    owns_memory = not isinstance(value, list | tuple | np.generic)
    array = _as_numpy(value, copy if owns_memory else None)
    if wanted is not None and copy is not False and array.dtype.kind in "OUST":
        return _read(value, array, wanted)
    if array.dtype.kind in "OUSTMm" or (array.dtype.newbyteorder("=") not in _KNOWN and wanted is None):
        _refuse(value, array)
    if not isinstance(value, np.ndarray | np.generic) and not hasattr(value, "__array__"):
        array = _default_typed(array, wanted, value)
    target = canonical(array.dtype) if wanted is None else wanted
    return np.asarray(array, target) if copy is not False else _share_memory(array, target)


def _read(value: Any, array: HostArray, wanted: np.dtype[Any]) -> HostArray:
    """Text and objects as the numbers that NumPy reads in them: of None a NaN, of "1.5" a float."""
    try:
        with np.errstate(all="ignore"):
            return array.astype(np.float64 if wanted in EXTENDED_FLOAT else wanted).astype(wanted)
    except TypeError:
        _refuse(value, array)
        raise
    except ValueError as error:
        raise ArgumentError(f"wanted what can be read as {wanted}, got {_show(value)}: {error}") from None
    except OverflowError:
        raise ValueRangeError(f"a number in {_show(value)} is too large for {wanted}") from None


def _as_numpy(value: Any, copy: bool | None) -> HostArray:
    try:
        array = _by_numpy(value)
        # Not np.array(value, copy=True): an old `__array__` does not know the argument and would warn.
        return np.array(array, subok=False) if copy else array
    except OverflowError as error:
        raise InputError(f"a number in {_show(value)} is too large for any element type") from error
    except TracedValueError as error:
        raise _without_values(value, error) from None
    except ValueError as error:
        raise RaggedError(
            f"a ragged list is not an array: wanted sequences of equal length at each level, got {_show(value)}"
        ) from error


def _by_numpy(value: Any) -> HostArray:
    """np.asarray(value), also if its method `__array__` gives an Array of xarr's, which NumPy refuses."""
    try:
        return np.asarray(value)
    except ValueError:
        if isinstance(value, list | tuple) or not hasattr(value, "__array__"):
            raise
        array = value.__array__()
        if isinstance(array, np.ndarray) or not hasattr(array, "__array__"):
            raise
        return np.asarray(array)


def _without_values(value: Any, error: TracedValueError) -> TracedValueError:
    """The error for a list that holds arrays of a traced function, whose values NumPy has asked for."""
    if not isinstance(value, list | tuple):
        return error
    kind = type(value).__name__
    locations = str(error).partition("\n")[2]
    return TracedValueError(
        f"wanted an array, got a {kind} of {len(value)} that holds traced arrays or numbers: xarr.asarray(values) "
        f"makes an array of it, xarr.stack(values) joins arrays of one shape. A {kind} that is an argument of a "
        "jitted function is flattened, and each of its elements is an argument of its own; to give the "
        f"function one array, call it with numpy.asarray(values)\n{locations}"
    )


def _default_for(value: complex) -> np.dtype[Any]:
    """The default element type, and for ints beyond it that of a list with them: NumPy's uint64."""
    default = default_of(scalar_kind(value))
    beyond = type(value) is int and default == np.int64 and 2**63 <= value < 2**64
    return np.dtype(np.uint64) if beyond else default


def kinds_of_lists(ints: np.dtype[Any]) -> dict[np.dtype[Any], type[Any]]:
    """The kinds of Python numbers in lists, by NumPy's element types, where xarr's default may be another.

    ints: NumPy's type of a list of ints, that of indices: of 32 bits on some machines, such as WebAssembly's.
    """
    kinds: dict[np.dtype[Any], type[Any]] = {np.dtype(np.float64): float, np.dtype(np.complex128): complex}
    return kinds if ints == np.int64 else {**kinds, ints: int}


_DEFAULTS = kinds_of_lists(np.dtype(np.intp))


def _default_typed(array: HostArray, wanted: np.dtype[Any] | None, value: Any) -> HostArray:
    """Lists of Python numbers get xarr's default dtypes, lists of arrays keep theirs."""
    if wanted is None and array.dtype in _DEFAULTS:
        return array.astype(default_of(_DEFAULTS[array.dtype])) if _only_python_numbers(value) else array
    if wanted is not None and wanted in INTEGER and array.dtype == np.float64 and array.size:
        return _as_integers(value, wanted)
    if wanted is not None and wanted in INTEGER and array.dtype.kind in "iu" and array.size:
        limits = info(wanted)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            check_fits(int(array.min()), wanted, is_requested=True)
            check_fits(int(array.max()), wanted, is_requested=True)
    if wanted is not None and wanted not in COMPLEX | BOOL and array.dtype.kind == "c":
        raise DTypeError(
            f"the complex numbers in {_show(value)} do not fit {wanted}; take .real, .imag or abs() first"
        )
    return array


def _refuse_subclass(value: Any) -> None:
    """InputError for arrays of NumPy's whose meaning would be lost: masks, and matrices' own `*`."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(
            "a masked array cannot become an xarr array, which has no masks: x.filled(0) puts a value in the "
            "masked elements, numpy.asarray(x) takes what lies under the mask"
        )
    if isinstance(value, np.matrix):
        raise InputError(
            "a numpy.matrix has its own rules for products and shapes: pass numpy.asarray(x) to compute with an array"
        )


def _as_integers(value: Any, wanted: np.dtype[Any]) -> HostArray:
    """A list with floats, or with ints that only float64 holds in common; fractions are dropped."""
    try:
        with np.errstate(invalid="raise"):
            return np.array(value, wanted)
    except (ArithmeticError, ValueError) as error:
        raise ValueRangeError(f"a number in {_show(value)} is out of bounds for {wanted}") from error


def only_numbers(value: Any) -> bool:
    """Whether `value` is nested lists and tuples, equally deep, of Python numbers and nothing else.

    False may also mean that this is not to be seen quickly: level by level, without a step for each number.
    """
    level = [value]
    for _ in range(_MOST_LEVELS):
        kinds = set(map(type, level))
        if kinds <= _NUMBERS:
            return True
        if not kinds <= _SEQUENCES:
            return False
        # A list may hold itself, or another one many times.
        level = list(chain.from_iterable({id(each): each for each in level}.values()))
    return False


def _only_python_numbers(value: Any) -> bool:
    if only_numbers(value):
        return True
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list | tuple):
            stack.extend(item)
        elif isinstance(item, np.generic) or not isinstance(item, SCALARS):
            return False
    return True


def _share_memory(array: HostArray, target: np.dtype[Any]) -> HostArray:
    if array.dtype != target:
        raise ValueError(f"copy=False is not possible: {array.dtype} must be converted to {target}")
    return array


def _refuse(value: Any, array: HostArray) -> None:
    if array.dtype.kind in "UST":
        raise ArgumentError(
            f"strings cannot be array elements, got {_show(value)}; "
            "xarr.asarray(strings, dtype=float) reads numbers from them"
        )
    if array.dtype.kind in "Mm":
        raise InputError(f"dates and durations cannot be array elements, got {array.dtype}; use .astype(int)")
    if array.dtype.kind != "O":
        raise DTypeError(f"{array.dtype} is not an element type of xarr; {_way_out(array.dtype)}")
    if value is None:
        raise InputError("None is not an array; wanted an array, a number or a list of numbers")
    kinds = sorted({type(item).__name__ for item in array.reshape(-1)[:100]})
    if isinstance(value, np.ndarray) and kinds and set(kinds) <= {"bool", "int", "float", "complex"}:
        kind = max(kinds, key=[each.__name__ for each in SCALARS].index)
        raise InputError(
            f"an array of dtype object cannot be computed with, got {_show(value)}; convert it, e.g. "
            f".astype({kind})"
        )
    if set(kinds) <= {"bool", "int"} and kinds:
        raise InputError(f"an integer in {_show(value)} is too large for any element type")
    raise InputError(
        f"an array of Python objects ({', '.join(kinds)}) cannot be computed with; wanted numbers or bools "
        f"in sequences of equal length, got {_show(value)}"
    )


def _way_out(dtype: np.dtype[Any]) -> str:
    if dtype.names:
        return f"take one of its fields, e.g. x[{dtype.names[0]!r}]"
    if dtype.kind == "V":
        return "say what its bytes are, e.g. x.view('uint8')"
    return f"convert it, e.g. .astype({'complex128' if dtype.kind == 'c' else 'float64'!r})"


def _show(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python refuses to print integers of more than 4300 digits
        return f"a {type(value).__name__} too large to print"
    return text if len(text) <= 60 else f"{text[:57]}..."
