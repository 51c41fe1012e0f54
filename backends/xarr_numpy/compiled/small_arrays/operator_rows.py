"""The operators of Python that small arrays have in machine code, a row for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np


@dataclass(frozen=True)
class NativeOperator:
    """An operator: the C function for arrays, statements for two doubles and for two ints, and the kinds of arrays.

    The statements return what doubles `a` and `b`, or ints `m` and `n`, give, or null where Python computes; those for
    doubles are empty where it always does.  number: of comparisons, as `PyObject_RichCompare` counts them.
    """

    name: str
    call: str
    doubles: str
    ints: str
    kinds: str
    number: int | None = None

    @property
    def ufunc(self) -> np.ufunc:
        """NumPy's function of the operator."""
        ufunc: np.ufunc = getattr(np, _UFUNCS[self.name])
        return ufunc


#: NumPy's functions by the names of the operators.
_UFUNCS: Final = {
    **{
        "add": "add",
        "sub": "subtract",
        "mul": "multiply",
        "truediv": "true_divide",
        "floordiv": "floor_divide",
    },
    **{"mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"},
    **{"lshift": "left_shift", "rshift": "right_shift", "lt": "less", "le": "less_equal", "eq": "equal"},
    **{"ne": "not_equal", "gt": "greater", "ge": "greater_equal"},
}


def _of_doubles(result: str) -> str:
    return f"return PyFloat_FromDouble({result})"


def _of_ints(result: str) -> str:
    return f"return PyLong_FromLongLong({result})"


def _overflowing(name: str) -> str:
    """Ints beyond the greatest of int64, and the least, which has no opposite, are left to Python."""
    return f"""\
made, over = llvm_{name}_with_overflow_i64(m, n)
return null if over or made == LEAST else PyLong_FromLongLong(made)"""


_DIVIDED: Final = "return null if b == 0.0 else PyFloat_FromDouble(a / b)"

#: Ints that floats hold, as floats.
_DIVIDED_INTS: Final = """\
is_usual_pair = is_exact(m) and is_exact(n) and n != 0
return PyFloat_FromDouble(double(m) / double(n)) if is_usual_pair else null"""

#: Towards minus infinity, with the remainder of the divisor's sign, as Python has it.
_DIVIDED_WHOLE: Final = """\
if n == 0:
    return null
rest = m - m / n * n
is_below = rest != 0 and (rest ^ n) < 0
"""

_SHIFTED_LEFT: Final = """\
if unsigned(n) >= 64:
    return null
made = m << n
return PyLong_FromLongLong(made) if made >> n == m and made != LEAST else null"""
_SHIFTED_RIGHT: Final = "return PyLong_FromLongLong(m >> n) if unsigned(n) < 64 else null"

_INTEGERS: Final = "int64 int32 int16 int8 uint64 uint32 uint16 uint8"
_REALS: Final = f"float64 float32 float16 {_INTEGERS}"
_NUMBERS: Final = f"{_REALS} complex128 complex64"


def _comparisons() -> list[NativeOperator]:
    rows = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}
    return [
        NativeOperator(
            name,
            f"compare_{name}",
            f"return truth(a {sign} b)",
            f"return truth(m {sign} n)",
            f"{_NUMBERS} bool" if name in ("eq", "ne") else f"{_REALS} bool",
            number,
        )
        for number, (name, sign) in enumerate(rows.items())
    ]


def _bitwise(name: str, call: str, sign: str) -> NativeOperator:
    return NativeOperator(name, call, "", _of_ints(f"m {sign} n"), f"{_INTEGERS} bool")


def _whole(name: str, call: str, ints: str) -> NativeOperator:
    return NativeOperator(name, call, "", ints, _INTEGERS)


OPERATORS: Final = (
    NativeOperator("add", "PyNumber_Add", _of_doubles("a + b"), _overflowing("sadd"), _NUMBERS),
    NativeOperator("sub", "PyNumber_Subtract", _of_doubles("a - b"), _overflowing("ssub"), _NUMBERS),
    NativeOperator("mul", "multiply", _of_doubles("a * b"), _overflowing("smul"), _NUMBERS),
    NativeOperator("truediv", "divide", _DIVIDED, _DIVIDED_INTS, "float64 float32 float16 int64 complex128"),
    _whole("floordiv", "PyNumber_FloorDivide", _DIVIDED_WHOLE + _of_ints("m / n - i64(is_below)")),
    _whole("mod", "PyNumber_Remainder", _DIVIDED_WHOLE + _of_ints("rest + (n if is_below else 0)")),
    _bitwise("and", "PyNumber_And", "&"),
    _bitwise("or", "PyNumber_Or", "|"),
    _bitwise("xor", "PyNumber_Xor", "^"),
    _whole("lshift", "PyNumber_Lshift", _SHIFTED_LEFT),
    _whole("rshift", "PyNumber_Rshift", _SHIFTED_RIGHT),
    *_comparisons(),
)
