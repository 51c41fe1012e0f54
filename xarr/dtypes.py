"""Element types, their names in each dialect, and NumPy 2 promotion with weak Python scalars.

An element type is a `np.dtype`; the names that users write (`xarr.float32`) are NumPy's scalar
classes, as in NumPy itself, plus those of `ml_dtypes`.  Promotion is NumPy's wherever NumPy has a
rule.  Where it has none (bfloat16 with an integer, bfloat16 with float16) JAX's answer is taken.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from xarr.base.configuration import current as config
from xarr.base.frozen_dataclasses import record
from xarr.base.names import did_you_mean
from xarr.errors import DTypeError, ValueRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import DTypeLike

bool_ = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64 = np.float16, np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128
bfloat16 = ml_dtypes.bfloat16
float8_e3m4, float8_e4m3 = ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3
float8_e4m3b11fnuz, float8_e4m3fn = ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.float8_e4m3fn
float8_e4m3fnuz, float8_e5m2 = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2
float8_e5m2fnuz, float8_e8m0fnu = ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu
int2, int4, uint2, uint4 = ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4
float4_e2m1fn = ml_dtypes.float4_e2m1fn
float6_e2m3fn, float6_e3m2fn = ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn


class extended:
    """The base of types of elements that are no numbers, for `issubdtype`.  Source: jax.dtypes."""


class prng_key(extended):
    """The base of the type of random keys, for `issubdtype`.  Source: jax.dtypes."""


@record
class KeyType:
    """The element type of an array of random keys of an `impl`.  No numbers are converted to it."""

    impl: str
    itemsize: int = 8
    type = prng_key

    @property
    def name(self) -> str:
        return f"key<{self.impl}>"

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


@record
class ElementType:
    """One row of the table: a dtype and what it is called.

    `kind` is one of "bool", "signed", "unsigned", "float", "complex"; `bits` counts the bits that a value has
    (a bool has 8, as in XLA; an element of 2, 4 or 6 bits has the lower ones of a byte).  `wide` is the type
    that computes with the elements: another one for what has less than 8 bits.
    """

    dtype: np.dtype[Any]
    kind: str
    xla: str
    mlir: str
    bits: int
    wide: np.dtype[Any]


def _row(
    scalar: type[Any], kind: str, xla: str, mlir: str, bits: int | None = None, wide: type[Any] | None = None
) -> ElementType:
    dtype = np.dtype(scalar)
    return ElementType(dtype, kind, xla, mlir, bits or dtype.itemsize * 8, np.dtype(wide or scalar))


TABLE: Final[tuple[ElementType, ...]] = (
    _row(bool_, "bool", "pred", "i1"),
    _row(int8, "signed", "s8", "i8"),
    _row(int16, "signed", "s16", "i16"),
    _row(int32, "signed", "s32", "i32"),
    _row(int64, "signed", "s64", "i64"),
    _row(uint8, "unsigned", "u8", "ui8"),
    _row(uint16, "unsigned", "u16", "ui16"),
    _row(uint32, "unsigned", "u32", "ui32"),
    _row(uint64, "unsigned", "u64", "ui64"),
    _row(float16, "float", "f16", "f16"),
    _row(bfloat16, "float", "bf16", "bf16"),
    _row(float32, "float", "f32", "f32"),
    _row(float64, "float", "f64", "f64"),
    _row(complex64, "complex", "c64", "complex<f32>"),
    _row(complex128, "complex", "c128", "complex<f64>"),
    _row(float8_e3m4, "float", "f8e3m4", "f8E3M4"),
    _row(float8_e4m3, "float", "f8e4m3", "f8E4M3"),
    _row(float8_e4m3b11fnuz, "float", "f8e4m3b11fnuz", "f8E4M3B11FNUZ"),
    _row(float8_e4m3fn, "float", "f8e4m3fn", "f8E4M3FN"),
    _row(float8_e4m3fnuz, "float", "f8e4m3fnuz", "f8E4M3FNUZ"),
    _row(float8_e5m2, "float", "f8e5m2", "f8E5M2"),
    _row(float8_e5m2fnuz, "float", "f8e5m2fnuz", "f8E5M2FNUZ"),
    _row(float8_e8m0fnu, "float", "f8e8m0fnu", "f8E8M0FNU"),
    _row(int2, "signed", "s2", "i2", 2, int8),
    _row(int4, "signed", "s4", "i4", 4, int8),
    _row(uint2, "unsigned", "u2", "ui2", 2, uint8),
    _row(uint4, "unsigned", "u4", "ui4", 4, uint8),
    _row(float4_e2m1fn, "float", "f4e2m1fn", "f4E2M1FN", 4, float32),
    _row(float6_e2m3fn, "float", "f6e2m3fn", "f6E2M3FN", 6, float32),
    _row(float6_e3m2fn, "float", "f6e3m2fn", "f6E3M2FN", 6, float32),
)

#: The wide type of each type of less than 8 bits.  These types hold numbers and compute by way of the wide one;
#: they are in none of the sets of a kind, since what is made for whole bytes is not made for them.
SUB_BYTE: Final = {row.dtype: row.wide for row in TABLE if row.bits < 8}
_WHOLE: Final = tuple(row for row in TABLE if row.bits >= 8)

_BY_DTYPE: Final = {row.dtype: row for row in TABLE}
_BY_XLA: Final = {row.xla: row for row in TABLE}
_BY_MLIR: Final = {row.mlir: row for row in TABLE}

BOOL: Final = frozenset(row.dtype for row in _WHOLE if row.kind == "bool")
SIGNED: Final = frozenset(row.dtype for row in _WHOLE if row.kind == "signed")
UNSIGNED: Final = frozenset(row.dtype for row in _WHOLE if row.kind == "unsigned")
INTEGER: Final = SIGNED | UNSIGNED
FLOAT: Final = frozenset(row.dtype for row in _WHOLE if row.kind == "float")
COMPLEX: Final = frozenset(row.dtype for row in _WHOLE if row.kind == "complex")
NUMBER: Final = INTEGER | FLOAT | COMPLEX
ANY: Final = NUMBER | BOOL

#: Floats that NumPy itself does not know; they have no NumPy promotion rules with most types.
#: `dtype.kind` does not tell: it is "f" for float8_e5m2 and "V" for the others.
EXTENDED_FLOAT: Final = frozenset(dtype for dtype in FLOAT if not issubclass(dtype.type, np.floating))

#: Those whose only NaN has the bits that others have for -0.  A total order has it last.
WITHOUT_MINUS_ZERO: Final = frozenset(
    map(np.dtype, (float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz)),
)

SUB_BYTE_INTEGER: Final = frozenset(dtype for dtype, wide in SUB_BYTE.items() if wide in INTEGER)

PREDICATE: Final = np.dtype(np.bool_)

#: Types that hold all numbers of the extended floats.
_WIDE: Final = COMPLEX | {np.dtype(float32), np.dtype(float64)}


def _names(rows: Iterable[ElementType]) -> str:
    return ", ".join(str(row.dtype) for row in rows)


def element_type(dtype: np.dtype[Any]) -> ElementType:
    """The table row of `dtype`; DTypeError if xarr has no such element type."""
    row = _BY_DTYPE.get(dtype)
    if row is None:
        remedy = _instead(dtype) or f"; wanted one of {_names(TABLE)}"
        raise DTypeError(f"dtype {dtype} is not an element type of xarr{remedy}")
    return row


def _instead(dtype: np.dtype[Any]) -> str:
    """Text on what to do about an element type that NumPy has and xarr has not; "" where there is nothing to say."""
    if dtype.names is not None:
        fields = ", ".join(f"{name!r}: xarr.zeros(n)" for name in dtype.names[:3])
        more = ", …" if len(dtype.names) > 3 else ""
        return f", which has no records: keep one array for each field, as in {{{fields}{more}}}"
    if dtype.kind in "SUT":
        return (
            ", which has no strings: keep them in a list, and their numbers in an array, e.g. "
            "xarr.asarray(numpy.unique(strings, return_inverse=True)[1])"
        )
    if dtype.kind == "M":
        return (
            ', which has no dates: count days, e.g. xarr.asarray(dates.astype("datetime64[D]").astype(int))'
        )
    if dtype.kind == "m":
        return ', which has no durations: count seconds, e.g. xarr.asarray(durations / numpy.timedelta64(1, "s"))'
    if dtype.kind == "O":
        return ", which has no Python objects: keep them in a list, and what is computed with in arrays of numbers"
    if dtype.kind in "fc":
        return (
            ", which has no extended precision: "
            + ("complex128" if dtype.kind == "c" else "float64")
            + " is widest"
        )
    return ""


def widen_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that computes with elements of `dtype`: the type itself, but for those of less than 8 bits."""
    return SUB_BYTE.get(dtype, dtype)


def accumulator_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that accumulates elements of `dtype`: float32 for narrower floats, as NumPy and XLA do it."""
    return np.dtype(np.float32) if dtype in FLOAT and dtype.itemsize < 4 else dtype


def canonical(dtype: DTypeLike | None) -> np.dtype[Any]:
    """`dtype` as a native-endian element type; accepts whatever `np.dtype` accepts.

    Raises DTypeError for everything that is not in the table (object, str, datetime64, longdouble).
    """
    if dtype is None:
        return default_float()
    try:
        return _canonical(dtype)  # type: ignore[arg-type]
    except (TypeError, ValueError, SyntaxError) as error:
        if isinstance(error, DTypeError):
            raise
        try:
            native = np.dtype(dtype)  # what has no hash, such as a list of fields, does not reach the cache
        except (TypeError, ValueError, SyntaxError):
            raise DTypeError(
                f"{dtype!r} is not a dtype; {_guess_meaning(dtype)}wanted one of {_names(TABLE)}"
            ) from error
        return element_type(native.newbyteorder("=")).dtype


def _guess_meaning(dtype: object) -> str:
    """A guess at what a caller meant that gave `dtype` for an element type, with a space behind it; often ""."""
    if isinstance(dtype, str):
        hint = did_you_mean(dtype, [str(row.dtype) for row in TABLE])
        return f"{hint} " if hint else ""
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        return f"for a shape of several sizes write one tuple, (…, {dtype}); "
    return ""


@lru_cache(maxsize=256)
def _canonical(dtype: DTypeLike) -> np.dtype[Any]:
    return element_type(np.dtype(dtype).newbyteorder("=")).dtype


def with_byte_order(dtype: DTypeLike | None) -> np.dtype[Any]:
    """`canonical(dtype)` in the byte order that `dtype` names, as bytes in a file or buffer are to be read."""
    element = canonical(dtype)
    return element if dtype is None else element.newbyteorder(np.dtype(dtype).byteorder)


def xla_name(dtype: np.dtype[Any]) -> str:
    """XLA's short name, as in `f32[2,3]`: pred, s8 … u64, f16, bf16, f32, f64, c64, c128, f8…"""
    return element_type(dtype).xla


def from_xla_name(name: str) -> np.dtype[Any]:
    """The dtype that XLA calls `name`; DTypeError if there is none."""
    if name not in _BY_XLA:
        raise DTypeError(f"{name!r} is not an XLA element type; wanted one of {', '.join(_BY_XLA)}")
    return _BY_XLA[name].dtype


def mlir_name(dtype: np.dtype[Any]) -> str:
    """The element type as StableHLO text spells it: i1, i32, ui8, f32, complex<f32> …"""
    return element_type(dtype).mlir


def from_mlir_name(name: str) -> np.dtype[Any]:
    """The dtype that StableHLO text calls `name`; DTypeError if there is none."""
    if name not in _BY_MLIR:
        raise DTypeError(f"{name!r} is not a StableHLO element type; wanted one of {', '.join(_BY_MLIR)}")
    return _BY_MLIR[name].dtype


def default_float() -> np.dtype[Any]:
    """float64, unless `config.default_dtype` says otherwise."""
    return np.dtype(config.default_dtype)


def default_complex() -> np.dtype[Any]:
    return np.dtype(complex128 if default_float() == float64 else complex64)


def default_of(scalar: type[Any]) -> np.dtype[Any]:
    """The dtype of an array made from Python bools, ints, floats or complexes alone."""
    if scalar is bool:
        return PREDICATE
    if scalar is int:
        return np.dtype(int64)
    return default_complex() if scalar is complex else default_float()


def real_part_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for complex64, float64 for complex128, and the type itself for reals."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype in COMPLEX else dtype


def total_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of a sum or product, as in NumPy: int64 for bools and signed integers, uint64 for unsigned ones."""
    wide = widen_dtype(dtype)
    if wide in SIGNED or wide in BOOL:
        return np.dtype(int64)
    return np.dtype(uint64) if wide in UNSIGNED else dtype


def complex_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex type with `dtype` parts; narrow floats go to complex64."""
    if dtype in COMPLEX:
        return dtype
    return np.dtype(complex128 if dtype == float64 else complex64)


@lru_cache(64)
def info(dtype: np.dtype[Any]) -> Any:
    """`finfo` or `iinfo` of an element type, `ml_dtypes` types included."""
    # mypy: ml_dtypes leaves the constructors of iinfo and finfo untyped.
    if dtype in INTEGER:
        return np.iinfo(dtype)
    if dtype in SUB_BYTE_INTEGER:
        return ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    known = dtype not in EXTENDED_FLOAT and dtype not in SUB_BYTE
    return np.finfo(dtype) if known else ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def lowest(dtype: np.dtype[Any]) -> Any:
    """The value of the type that is below all others: -inf where it exists."""
    return False if dtype in BOOL else _extreme(dtype, -np.inf, "min")


def highest(dtype: np.dtype[Any]) -> Any:
    """The value of the type that is above all others: inf where it exists."""
    return True if dtype in BOOL else _extreme(dtype, np.inf, "max")


def _extreme(dtype: np.dtype[Any], infinity: float, end: str) -> Any:
    if dtype in INTEGER | SUB_BYTE_INTEGER:
        return getattr(info(dtype), end)
    if dtype in COMPLEX:
        return complex(infinity, infinity)
    known = dtype not in EXTENDED_FLOAT and dtype not in SUB_BYTE
    has_infinity = known or np.isinf(np.array(np.inf).astype(dtype).astype(np.float32))
    signed = dtype != float8_e8m0fnu
    return infinity if has_infinity and (signed or infinity > 0) else getattr(info(dtype), end)


@lru_cache(maxsize=1024)
def promote(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    """The type both convert to, by NumPy 2; DTypeError where no implicit promotion exists.

    bfloat16 and the float8 types have no NumPy rule with integers or with each other: integers take
    the float's type and bfloat16 with float16 gives float32, as in JAX; two different float8 types,
    or float8 with a wider 16-bit float, are refused.  A type of less than 8 bits takes bools alone, as in JAX.
    """
    if first == second:
        return first
    if first in SUB_BYTE or second in SUB_BYTE:
        narrow, other = (first, second) if first in SUB_BYTE else (second, first)
        if other in BOOL:
            return narrow
        raise DTypeError(
            f"{first} and {second} have no implicit promotion: types of less than 8 bits only hold numbers; "
            f"convert, e.g. x.astype({str(widen_dtype(narrow) if other in SUB_BYTE else other)!r})"
        )
    if first not in EXTENDED_FLOAT and second not in EXTENDED_FLOAT:
        return np.promote_types(first, second)
    for one, other in ((first, second), (second, first)):
        if other in BOOL | INTEGER:
            return one
    if {first, second} == {np.dtype(bfloat16), np.dtype(float16)}:
        return np.dtype(float32)
    if first in _WIDE or second in _WIDE:
        return np.promote_types(first, second)
    raise DTypeError(
        f"{first} and {second} have no implicit promotion: neither holds all values of the other; "
        f"convert one of them, e.g. x.astype({second})"
    )


@lru_cache(maxsize=1024)
def promote_all(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The type that all of them convert to, in whatever order they stand; DTypeError where there is none.

    It does not come from pairs: int8, uint8 and float16 are a float16, int8 and uint8 alone an int16, which with
    float16 would be a float32.  Types that NumPy knows are promoted by NumPy, and the result as in `promote` with
    each of the others.
    """
    if not SUB_BYTE.keys().isdisjoint(dtypes):  # which bools alone join, in any order
        return reduce(promote, dtypes)
    extended = sorted({*dtypes} & EXTENDED_FLOAT, key=str)
    native = [dtype for dtype in dtypes if dtype not in EXTENDED_FLOAT]
    if not extended:
        return np.result_type(*native)
    # Integers alone give way to every float.
    result = np.result_type(*native) if not {*native} <= BOOL | INTEGER else extended[0]
    if result in _WIDE:
        return result
    floats = sorted({*extended, result}, key=str)
    # Of two floats of 8 and 16 bits only bfloat16 and float16 have a promotion, so that a third never meets it.
    return reduce(promote, [promote(*pair) for pair in combinations(floats, 2)] or floats)


@lru_cache(maxsize=1024)
def _promote_weak(dtype: np.dtype[Any], scalar: type[Any], float_: np.dtype[Any]) -> np.dtype[Any]:
    if scalar is bool:
        return dtype
    if dtype in SUB_BYTE and (scalar is complex or (scalar is float and dtype in SUB_BYTE_INTEGER)):
        raise DTypeError(
            f"{dtype} and a Python {scalar.__name__} have no implicit promotion: types of less than 8 bits only "
            f"hold numbers; convert, e.g. x.astype({str(float_)!r})"
        )
    if scalar is int:
        return default_of(int) if dtype == PREDICATE else dtype
    if scalar is float:
        return dtype if dtype in FLOAT | COMPLEX or dtype in SUB_BYTE else float_
    return complex_of(float_ if dtype in BOOL | INTEGER else dtype)


def promote_weak(dtype: np.dtype[Any], scalar: type[Any]) -> np.dtype[Any]:
    """The type of `array op python_scalar`: the scalar gives way unless its kind is higher (NEP 50)."""
    kind: Any = scalar
    return _promote_weak(dtype, kind, default_float())


def _fix_for(value: int, shown: str) -> str:
    if value in range(np.iinfo(np.int64).min, np.iinfo(np.int64).max + 1):
        return f"wrap it in xarr.asarray({shown})"
    if value in range(np.iinfo(np.uint64).max + 1):
        return f'wrap it in xarr.asarray({shown}, "uint64")'
    return "write it as a float"


def _fix_alone(value: int) -> str:
    if value in range(np.iinfo(np.int64).min, np.iinfo(np.uint64).max + 1):
        return f'give dtype="{np.min_scalar_type(value)}", which holds it'
    return 'give dtype="float64"'


def check_fits(value: int, dtype: np.dtype[Any], *, is_requested: bool = False) -> None:
    """Refuse a Python int that an integer dtype cannot hold (NumPy 2 raises OverflowError too).

    `is_requested`: the caller asked for `dtype` by name, so that no promotion could help.
    """
    if dtype not in INTEGER and dtype not in SUB_BYTE_INTEGER:
        return
    limits = info(dtype)
    if not limits.min <= value <= limits.max:
        # Python refuses to print integers of more than 4300 digits.
        shown = str(value) if value.bit_length() < 1000 else f"of {value.bit_length()} bits"
        raise ValueRangeError(
            f"Python integer {shown} is out of bounds for {dtype} ({limits.min} … {limits.max}); "
            f"{_fix_alone(value) if is_requested else f'{_fix_for(value, shown)} to promote the result instead'}"
        )
