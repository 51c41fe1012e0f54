"""NumPy's scalar classes by its other names, and the abstract ones that `issubdtype` and `isinstance` ask for.

They are NumPy's own, so that `xarr.integer is np.integer`.  Those of element types that xarr has not
(longdouble, strings, objects, dates) are absent.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy import (
    byte,
    cdouble,
    complexfloating,
    csingle,
    double,
    dtype,
    floating,
    generic,
    half,
    inexact,
    int_,
    intc,
    integer,
    intp,
    long,
    longlong,
    number,
    short,
    signedinteger,
    single,
    ubyte,
    uint,
    uintc,
    uintp,
    ulong,
    ulonglong,
    unsignedinteger,
    ushort,
)

__all__ = [
    "False_",
    "True_",
    "byte",
    "cdouble",
    "complexfloating",
    "csingle",
    "double",
    "dtype",
    "floating",
    "generic",
    "half",
    "inexact",
    "int_",
    "intc",
    "integer",
    "intp",
    "long",
    "longlong",
    "number",
    "short",
    "signedinteger",
    "single",
    "ubyte",
    "uint",
    "uintc",
    "uintp",
    "ulong",
    "ulonglong",
    "unsignedinteger",
    "ushort",
]

True_: Final = np.True_
False_: Final = np.False_
