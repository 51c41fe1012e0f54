"""NumPy's readers and writers, for Arrays, with xarr's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xarr.dtypes import EXTENDED_FLOAT, canonical
from xarr.errors import InputError, ParseError, XarrError
from xarr.numpy_api.creation.arrays import asarray


def read(name: str, function: Callable[..., Any], dtype: Any, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, dtype=dtype, **kwargs)` as an Array; ParseError or InputError for what NumPy refuses.

    NumPy's parsers do not know the narrow floats: these are read as float64.
    """
    wanted = None if dtype is None else canonical(dtype)
    parsed = np.dtype(np.float64) if wanted in EXTENDED_FLOAT else wanted
    values = call_guarded(name, lambda: function(*args, dtype=parsed, **kwargs))
    if isinstance(values, list | tuple):
        return [asarray(one, wanted, device=None) for one in values]
    return asarray(values, wanted, device=None)


def call_guarded(name: str, function: Callable[[], Any]) -> Any:
    """Call a function of NumPy's, with its refusals as errors of xarr's."""
    try:
        return function()
    except XarrError:
        raise
    except (ValueError, OverflowError, EOFError) as error:
        raise ParseError(f"{name}: {error}") from error
    except TypeError as error:
        raise InputError(f"{name}: {error}") from error
