"""Where an array object says what its class is, where its data lie and how, and whether that may be relied upon.

Machine code reads these words of C structs only on interpreters on which the tests have run, and after a try on
some arrays.  `XARR_NATIVE_CALLS=off` keeps it from reading them, `on` lets it on other versions of CPython too.

Sources: CPython, Include/object.h; NumPy, numpy/_core/include/numpy/ndarraytypes.h.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import Any, Final

import numpy as np

from xarr.base import python_build
from xarr.errors import ConfigError

#: Bytes from the start of an array object to its class, to the address of its data, and to its flags.
DATA: Final = object.__basicsize__
CLASS: Final = DATA - 8
FLAGS: Final = DATA + 6 * 8
#: In row-major order and aligned.
USABLE: Final = 0x1 | 0x100
WRITEABLE: Final = 0x400

#: Versions of CPython and NumPy on which the engine's tests have passed.
TESTED: Final = frozenset({(3, 11), (3, 12), (3, 13)})
TESTED_NUMPY: Final = 2
VARIABLE: Final = "XARR_NATIVE_CALLS"
_MODES: Final = ("auto", "on", "off")


def works() -> bool:
    """Whether machine code may read array objects here.

    Raises ConfigError for another value of XARR_NATIVE_CALLS than auto, on and off.
    """
    return obstacle() is None


@cache
def obstacle() -> str | None:
    """Why machine code may not read array objects here; None if it may.  Errors as `works`."""
    mode = os.environ.get(VARIABLE) or "auto"
    if mode not in _MODES:
        raise ConfigError(f"environment variable {VARIABLE}: wanted one of {', '.join(_MODES)}, got {mode!r}")
    if mode == "off":
        return f"{VARIABLE} is off"
    if sys.implementation.name != "cpython" or sys.maxsize < 2**62 or sys.platform == "win32":
        return "no CPython of 64 bits on a system other than Windows"
    if python_build.is_free_threaded():
        return "a free-threaded Python has other objects"
    if mode == "auto" and not _is_tested():
        return (
            f"not tested on Python {'.'.join(map(str, sys.version_info[:2]))} with NumPy {np.__version__}; "
            f"{VARIABLE}=on tries it"
        )
    return None if all(map(_is_as_expected, _samples())) else "array objects have another layout"


def _is_tested() -> bool:
    return sys.version_info[:2] in TESTED and np.lib.NumpyVersion(np.__version__).major == TESTED_NUMPY


def _samples() -> list[np.ndarray[Any, Any]]:
    rows = np.zeros((3, 4), np.float32)
    fixed = np.ones(3)
    fixed.flags.writeable = False
    odd = np.zeros(5, np.int8)[1:].view(np.int16)
    return [rows, rows[1:], rows[:, ::2], rows.T, odd, np.array(1.5), fixed]


def _is_as_expected(array: np.ndarray[Any, Any]) -> bool:
    address = id(array)
    data = ctypes.c_void_p.from_address(address + DATA).value
    flags = ctypes.c_int.from_address(address + FLAGS).value
    usable = array.flags.c_contiguous and array.flags.aligned
    writeable = bool(flags & WRITEABLE) is array.flags.writeable
    is_class = ctypes.c_size_t.from_address(address + CLASS).value == id(np.ndarray)
    return is_class and writeable and data == array.ctypes.data and (flags & USABLE == USABLE) is bool(usable)
