"""xarray's pointwise indexing of Arrays: `d.isel(x=points, y=points)`, `d[{"x": [0, 2], "y": [1, 2]}] = 0`.

xarray takes all that has an `__array_namespace__` for arrays that the standard alone describes, which have no indexing
by several arrays.  Arrays have NumPy's, and so does xarray's adapter for arrays like NumPy's: of an Array its methods
are called.  Without this such a selection is an error, and such an assignment writes to other elements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from xarray.core.indexing import ArrayApiIndexingAdapter, NdArrayLikeIndexingAdapter

from xarr.arrays.array import Array

_METHODS: Final = ("_oindex_get", "_vindex_get", "_oindex_set", "_vindex_set")


def _as_numpys(name: str) -> Callable[..., Any]:
    """The method of xarray's adapter, and for an Array that of the adapter for arrays like NumPy's."""
    general = getattr(ArrayApiIndexingAdapter, name)

    @wraps(general)
    def method(adapter: Any, *args: Any) -> Any:
        if isinstance(adapter.array, Array):
            return getattr(NdArrayLikeIndexingAdapter(adapter.array), name)(*args)
        return general(adapter, *args)

    return method


for _name in _METHODS:  # private to xarray: another version may have others
    if hasattr(ArrayApiIndexingAdapter, _name) and hasattr(NdArrayLikeIndexingAdapter, _name):
        setattr(ArrayApiIndexingAdapter, _name, _as_numpys(_name))
