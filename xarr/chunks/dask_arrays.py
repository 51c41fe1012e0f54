"""Arrays as chunks of `dask.array`: what tells it is imported after it.

Dask asks its registries by the class of a chunk.  With these rows Arrays stay Arrays where NumPy's functions do not
dispatch: percentiles, empty chunks, operators between a chunk and a dask array, and the functions that make arrays
under `dask.config.set({"array.backend": "xarr"})`.  An entry point of the group `dask.array.backends` loads
`ChunkBackend` where xarr was not imported yet.
"""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch
from dask.array.chunk_types import register_chunk_type
from dask.array.dispatch import empty_lookup, percentile_lookup, to_numpy_dispatch

from xarr.arrays.array import Array
from xarr.runtime.handles import namespace


def _percentile(a: Any, q: Any, method: str = "linear") -> tuple[Any, int]:
    """The percentiles `q` of a chunk, which Dask merges by the number of its elements; None for an empty one."""
    if not len(a):
        return None, 0
    return namespace(None).percentile(a, q, method=method), len(a)


def _to_array(chunk: Any) -> Array:
    result: Array = namespace(None).asarray(chunk)
    return result


def _to_numpy(chunk: Any, **options: Any) -> np.ndarray[Any, Any]:
    return np.asarray(chunk)


def _empty(*args: Any, **options: Any) -> Array:
    result: Array = namespace(None).empty(*args, **options)
    return result


class BitGenerator(np.random.PCG64):
    """NumPy's PCG64, by whose module Dask knows that xarr's Generator draws from it."""


class ChunkBackend(ArrayBackendEntrypoint):
    """Dask's backend "xarr": `d.to_backend("xarr")`, and `da.ones`, `da.arange` … where it is the configured one.

    `da.random` draws NumPy's numbers as Arrays.
    """

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """The function that makes an Array of a chunk."""
        return _to_array

    @classmethod
    def to_backend(cls, data: Any, **options: Any) -> Any:
        """The dask array with each chunk an Array: also of chunks that SciPy made NumPy arrays of."""
        return data.map_blocks(_to_array, meta=_to_array(data._meta), **options)

    @property
    def RandomState(self) -> Any:
        """The class of random states: xarr's, which draw NumPy's numbers as Arrays."""
        return namespace(None).random.RandomState

    @property
    def default_bit_generator(self) -> Any:
        """The class of bit generators: NumPy's, which xarr's Generator draws from."""
        return BitGenerator

    @staticmethod
    def ones(*args: Any, **options: Any) -> Any:
        """As `dask.array.ones`, of Arrays."""
        return _make("ones", args, options)

    @staticmethod
    def zeros(*args: Any, **options: Any) -> Any:
        """As `dask.array.zeros`, of Arrays."""
        return _make("zeros", args, options)

    @staticmethod
    def empty(*args: Any, **options: Any) -> Any:
        """As `dask.array.empty`, of Arrays."""
        return _make("empty", args, options)

    @staticmethod
    def full(*args: Any, **options: Any) -> Any:
        """As `dask.array.full`, of Arrays."""
        return _make("full", args, options)

    @staticmethod
    def arange(*args: Any, like: Any = None, **options: Any) -> Any:
        """As `dask.array.arange`, of Arrays."""
        with dask.config.set({"array.backend": "numpy"}):
            return da.arange(*args, like=_empty(()) if like is None else like, **options)


def _make(name: str, args: Any, options: dict[str, Any]) -> Any:
    """`dask.array.<name>` with chunks like an Array."""
    if options.get("meta") is None:
        options = {**options, "meta": _empty(())}
    with dask.config.set({"array.backend": "numpy"}):
        return getattr(da, name)(*args, **options)


register_chunk_type(Array)
percentile_lookup.register(Array, _percentile)
empty_lookup.register(Array, _empty)
to_numpy_dispatch.register(Array, _to_numpy)
array_creation_dispatch.register_backend("xarr", ChunkBackend())
