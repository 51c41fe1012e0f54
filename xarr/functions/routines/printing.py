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

from xarr.functions._core import as_array
from xarr.lax.core import ArrayLike
from xarr.lazy import to_host

__all__ = [
    "array2string",
    "array_repr",
    "array_str",
    "format_float_positional",
    "format_float_scientific",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
]


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
    return np.array_str(to_host(array), max_line_width, precision, suppress_small)


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
    host = to_host(as_array(a))
    return np.array2string(host, max_line_width, precision, suppress_small, separator, prefix, **options)
