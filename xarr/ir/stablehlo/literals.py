"""Attributes and literals as MLIR writes them: `[1, 0]`, `dense<1.000000e+00>`, `loc("f.py":3:1)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Context
from math import isfinite
from typing import Any, Final

import numpy as np

from xarr.dtypes import element_type
from xarr.ir.types import TensorType

Bits = np.ndarray[Any, Any]

#: MLIR writes the elements of longer literals as one hexadecimal string.
_LONGEST_LIST: Final = 100


def ints(values: Iterable[int]) -> str:
    """`[1, 0]`: dimension numbers, sizes."""
    return f"[{', '.join(str(int(value)) for value in values)}]"


def array_literal(values: Iterable[int]) -> str:
    """`array<i64: 1, 0>`: a list of integers that is an attribute of its own type; `array<i64>` if empty."""
    listed = ", ".join(str(int(value)) for value in values)
    return f"array<i64: {listed}>" if listed else "array<i64>"


def quote(text: str) -> str:
    """`text` as an MLIR string: everything but printable ASCII becomes two hexadecimal digits."""
    raw = text.encode(errors="surrogateescape")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in raw) + '"'


def symbol(name: str) -> str:
    """`name` with every character that a symbol name may not have replaced by `_`."""
    legal = re.sub(r"[^A-Za-z0-9_.]", "_", name)
    return legal if re.match(r"[A-Za-z_]", legal) else f"_{legal}"


def reference(name: str) -> str:
    """A reference to the symbol `name`, whatever characters it has."""
    return f"@{name}" if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$.]*", name) else f"@{quote(name)}"


def float64(value: float) -> str:
    """A float attribute, without its type."""
    return _floats(np.array([value]))[0]


def float32(value: float) -> str:
    """A float32 attribute, without its type."""
    return _floats(np.array([value], np.float32))[0]


def dense(type: TensorType, raw: bytes) -> str:
    """The literal of the elements whose bytes are `raw`, every bit of every NaN included."""
    if not type.size:
        return "dense<>"
    width = type.dtype.itemsize
    if raw == raw[:width] * type.size:
        return f"dense<{_elements(TensorType((1,), type.dtype), raw[:width])[0]}>"
    if type.size > _LONGEST_LIST:
        return f'dense<"0x{raw.hex().upper()}">'
    return f"dense<{nest_lists(_elements(type, raw), type.shape)}>"


def nest_lists(items: list[str], shape: tuple[int, ...]) -> str:
    """`items` in row-major order as nested lists, one level for each dimension; no size may be 0."""
    for size in reversed(shape):
        items = [f"[{', '.join(items[start : start + size])}]" for start in range(0, len(items), size)]
    return items[0]


def _elements(type: TensorType, raw: bytes) -> list[str]:
    kind = element_type(type.dtype).kind
    array = np.frombuffer(raw, type.dtype)
    if kind == "bool":
        return ["true" if item else "false" for item in array.tolist()]
    if kind == "complex":
        parts = _floats(array.view(f"f{type.dtype.itemsize // 2}"))
        return [f"({real},{imag})" for real, imag in zip(parts[::2], parts[1::2], strict=True)]
    return _floats(array) if kind == "float" else list(map(str, array.tolist()))


def _floats(array: Bits) -> list[str]:
    bits = array.view(f"u{array.dtype.itemsize}").tolist()
    convert: Callable[[float], Any] = array.dtype.type
    digits = 17 if array.dtype == np.float64 else 9
    # A signalling NaN is "invalid" to a cast, and a value next to the largest one may round out of range.
    with np.errstate(invalid="ignore", over="ignore"):
        values = array.astype(np.float64).tolist()
        return [
            _finite(value, convert, digits) if isfinite(value) else f"0x{pattern:X}"
            for value, pattern in zip(values, bits, strict=True)
        ]


def _finite(value: float, convert: Callable[[float], Any], digits: int) -> str:
    """Six digits if they name the value (always, in a type of 16 bits or fewer), else `digits`, which do."""
    short = float(_round(value, 6))
    if float(convert(short)) == value:
        mantissa, exponent = f"{short:.5e}".split("e")
        return f"{mantissa}0e{exponent}"
    return _shorten(value, digits)


def _round(value: float, digits: int) -> str:
    # LLVM's APFloat rounds a decimal half up, Python's formatting half to even.
    return str(Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal_from_float(value))


def _shorten(value: float, precision: int) -> str:
    """As APFloat::toString lays digits out: up to three zeros on either side, more as an exponent.

    MLIR itself gives up on whole numbers here, as 123456789.0, and writes their bits; we stay readable.
    """
    number = Context(prec=precision, rounding=ROUND_HALF_UP).create_decimal_from_float(value)
    sign, decimals, exponent = number.normalize(Context(prec=precision)).as_tuple()
    assert isinstance(exponent, int)
    digits, minus = "".join(map(str, decimals)), "-" * sign
    top = exponent + len(digits) - 1
    if top < -3 or exponent > 3 or top >= precision:
        return f"{minus}{digits[0]}.{digits[1:] or '0'}E{'-' if top < 0 else '+'}{abs(top)}"
    if exponent >= 0:
        return f"{minus}{digits}{'0' * exponent}.0"
    if top < 0:
        return f"{minus}0.{'0' * (-top - 1)}{digits}"
    return f"{minus}{digits[: top + 1]}.{digits[top + 1 :]}"
