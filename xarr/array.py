"""Array: a handle on a lazy value with NumPy's operators and methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr import lazy
from xarr.lazy import Handle


class Array(Handle):
    """An n-dimensional array of numbers whose value is computed when somebody looks."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._node.tensor_type.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        host = lazy.to_host(self)
        return np.array(host, dtype, copy=copy)


lazy.bind(Array)
