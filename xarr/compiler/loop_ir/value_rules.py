"""The types that the operations of loop values take and give: the table of `scalars`' docstring, to be checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from xarr.compiler.loop_ir.loops import Access
from xarr.compiler.loop_ir.scalars import BOOL, COMPARISONS, INT64, DType, Value
from xarr.dtypes import real_part_of

#: Operations whose operands all have the type of the result: how many they are, and of which kinds of NumPy.
_ALIKE: Final[dict[str, tuple[int, str]]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rem"), (2, "fiu")),
    "neg": (1, "fiu"),
    "fma": (3, "f"),
    **dict.fromkeys(("sqrt", "rint", "floor", "ceil", "trunc", "abs"), (1, "f")),
    **dict.fromkeys(("copysign", "maximum", "minimum"), (2, "f")),
    **dict.fromkeys(("and", "or", "xor"), (2, "iub")),
    "not": (1, "iub"),
    **dict.fromkeys(("shl", "shr"), (2, "iu")),
    **dict.fromkeys(("popcount", "count_leading_zeros"), (1, "iu")),
}
#: Values that a loop or a caller gives: they have no operands.
LEAVES: Final = frozenset({"argument", "index", "result"})


def problem(value: Value) -> str | None:
    """The mistake in the operands or the type of a value; None if there is none."""
    if value.op in _ALIKE:
        count, kinds = _ALIKE[value.op]
        fits = len(value.operands) == count and value.dtype.kind in kinds
        fits = fits and all(operand.dtype == value.dtype for operand in value.operands)
    elif value.op in COMPARISONS:
        fits = len(value.operands) == 2 and value.dtype == BOOL
        fits = fits and value.operands[0].dtype == value.operands[1].dtype
    else:
        rule = _RULES.get(value.op)
        if rule is None:
            return f"{value.op} is not an operation of loop values"
        fits = rule(value, tuple(operand.dtype for operand in value.operands))
    if fits:
        return None
    operands = ", ".join(str(operand.dtype) for operand in value.operands)
    return f"{value.op} of ({operands}) does not give {value.dtype}"


def _leaf(value: Value, operands: tuple[DType, ...]) -> bool:
    return not operands


def _constant(value: Value, operands: tuple[DType, ...]) -> bool:
    return not operands and len(value.attribute) == value.dtype.itemsize


def _select(value: Value, operands: tuple[DType, ...]) -> bool:
    return operands == (BOOL, value.dtype, value.dtype)


def _convert(value: Value, operands: tuple[DType, ...]) -> bool:
    return len(operands) == 1


def _bitcast(value: Value, operands: tuple[DType, ...]) -> bool:
    return [dtype.itemsize for dtype in operands] == [value.dtype.itemsize]


def _part(value: Value, operands: tuple[DType, ...]) -> bool:
    return [(each.kind, real_part_of(each)) for each in operands] == [("c", value.dtype)]


def _complex(value: Value, operands: tuple[DType, ...]) -> bool:
    return value.dtype.kind == "c" and operands == (real_part_of(value.dtype),) * 2


def _load(value: Value, operands: tuple[DType, ...]) -> bool:
    access = value.attribute
    if not isinstance(access, Access) or access.buffer.dtype != value.dtype:
        return False
    return operands == (INT64,) * len(access.factors) + (BOOL,) * access.masked


_RULES: Final[dict[str, Callable[[Value, tuple[DType, ...]], bool]]] = {
    **dict.fromkeys(LEAVES, _leaf),
    "constant": _constant,
    "select": _select,
    "rarely": _select,
    "convert": _convert,
    "bitcast": _bitcast,
    "load": _load,
    "real": _part,
    "imag": _part,
    "complex": _complex,
}
