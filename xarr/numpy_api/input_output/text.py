"""Arrays as text.

How many digits, elements and columns are shown, here and by `repr(x)`, is what NumPy is set to show:
`xarr.set_printoptions` is `numpy.set_printoptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy import (
    format_float_positional,
    format_float_scientific,
    get_printoptions,
    printoptions,
    set_printoptions,
)

from xarr.base.tracebacks import names_errors
from xarr.calls.operands import as_array
from xarr.errors import ValueRangeError
from xarr.lax.core import ArrayLike, integer, whole
from xarr.runtime.display import elements, shown_elements

__all__ = [
    "array2string",
    "array_repr",
    "array_str",
    "base_repr",
    "binary_repr",
    "format_float_positional",
    "format_float_scientific",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
]


@names_errors
def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """`repr(x)` of an Array, with other settings where they are given.  Source: NumPy, `array_repr`."""
    settings = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{name: value for name, value in settings.items() if value is not None}):  # type: ignore[arg-type]
        return repr(as_array(arr))


@names_errors
def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """`str(x)` of an Array, with other settings where they are given.  Source: NumPy, `array_str`."""
    array = as_array(a)
    if array._node.traced:
        return str(array)
    return elements(array, max_line_width, precision, suppress_small)


@names_errors
def array2string(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
    separator: str = " ",
    prefix: str = "",
    *,
    formatter: Mapping[str, Callable[[Any], str]] | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    sign: Any = None,
    floatmode: Any = None,
    suffix: str = "",
    legacy: Any = None,
) -> str:
    """The elements as text, with NumPy's settings where they are not given.

    Raises TracedValueError for an Array of a traced function.  Source: NumPy, `array2string`.
    """
    options: dict[str, Any] = {
        "formatter": formatter,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "sign": sign,
        "floatmode": floatmode,
        "suffix": suffix,
        "legacy": legacy,
    }
    host, options = shown_elements(as_array(a), **options)
    return np.array2string(host, max_line_width, precision, suppress_small, separator, prefix, **options)


@names_errors
def base_repr(number: int, base: int = 2, padding: int = 0) -> str:
    """The digits of an integer in another base, with so many zeros before them.

    Raises ValueRangeError for bases below 2 and above 36, InputError for what is no integer.
    Source: NumPy, `base_repr`.
    """
    if not 2 <= integer("base_repr", "base", base) <= 36:
        raise ValueRangeError(f"base_repr: wanted a base from 2 to 36, got {base}")
    return np.base_repr(_number("base_repr", number), base, whole("base_repr", "padding", padding))


@names_errors
def binary_repr(num: int, width: int | None = None) -> str:
    """The bits of an integer, after zeros up to `width`; with a width, a negative one in two's complement.

    Raises ValueRangeError for a width that is too small, InputError for what is no integer.
    Source: NumPy, `binary_repr`.
    """
    wide = None if width is None else integer("binary_repr", "width", width)
    try:
        return np.binary_repr(_number("binary_repr", num), wide)
    except ValueError:
        least = len(np.binary_repr(_number("binary_repr", num), None).lstrip("-"))
        raise ValueRangeError(
            f"binary_repr: wanted a width of {least} or more for {num}, got {width}"
        ) from None


def _number(name: str, value: Any) -> int:
    """An int from anything with `__index__`, bools too."""
    return int(value) if isinstance(value, bool | np.bool_) else integer(name, "the number", value)
