"""`import xarr.einops_backend` lets `einops.rearrange`, `reduce`, `repeat`, `pack` and `einsum` take Arrays.

einops finds the backend of an array among the subclasses of its AbstractBackend that exist, so that the
import is all there is to do.  Without it the functions of `einops.array_api` take Arrays too, but these are
fewer: no `einsum`, no layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from einops._backends import AbstractBackend

from xarr.arrays.array import Array
from xarr.dtypes import FLOAT
from xarr.runtime.handles import namespace


class XarrBackend(AbstractBackend):
    """The calls that einops makes of a library: shapes are tuples of ints, and results stay lazy."""

    framework_name = "xarr"

    def is_appropriate_type(self, tensor: object) -> bool:
        return isinstance(tensor, Array)

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Array:
        return _make("asarray", x)

    def to_numpy(self, x: Array) -> np.ndarray[Any, Any]:
        return np.asarray(x)

    def arange(self, start: int, stop: int) -> Array:
        return _make("arange", start, stop)

    def stack_on_zeroth_dimension(self, tensors: list[Array]) -> Array:
        return _make("stack", tensors)

    def concat(self, tensors: list[Array], axis: int) -> Array:
        return _make("concat", tensors, axis=axis)

    def add_axis(self, x: Array, new_position: int) -> Array:
        return _make("expand_dims", x, axis=new_position)

    def tile(self, x: Array, repeats: tuple[int, ...]) -> Array:
        return _make("tile", x, repeats)

    def is_float_type(self, x: Array) -> bool:
        return x.dtype in FLOAT

    def einsum(self, pattern: str, *x: Array) -> Array:
        return _make("einsum", pattern, *x)


def _make(name: str, *args: Any, **options: Any) -> Array:
    result: Array = getattr(namespace(None), name)(*args, **options)
    return result
