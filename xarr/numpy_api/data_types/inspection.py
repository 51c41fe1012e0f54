"""The Array API standard's inspection functions: capabilities, devices and element types."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr import backend as backends
from xarr.calls.arguments import DeviceLike, as_device
from xarr.dtypes import default_complex, default_float
from xarr.errors import ValueRangeError

__all__ = ["__array_namespace_info__"]

DTypes = dict[str, np.dtype[Any]]

_SIGNED: Final = ("int8", "int16", "int32", "int64")
_UNSIGNED: Final = ("uint8", "uint16", "uint32", "uint64")
_REAL: Final = ("float32", "float64")
_COMPLEX: Final = ("complex64", "complex128")
#: The names that the standard has; float16, bfloat16 and the float8 types are xarr's own.
_KINDS: Final = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


class NamespaceInfo:
    """The answers of `xarr.__array_namespace_info__()`.  Source: Array API 2025.12, inspection."""

    def capabilities(self) -> dict[str, bool | int | None]:
        """Whether masks index, whether shapes may depend on values, and the most dimensions of an array.

        Shapes that depend on values need values: under `jit` they are refused.
        """
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": backends.default().limits.max_rank,
        }

    def default_device(self) -> str:
        """The first device of the default backend."""
        return backends.default().devices()[0]

    def devices(self) -> tuple[str, ...]:
        """The devices of the default backend; `device=` also takes the name of any backend."""
        return backends.default().devices()

    def default_dtypes(self, *, device: DeviceLike = None) -> DTypes:
        """The element types of arrays made without `dtype=`, by kind; `config.default_dtype` narrows floats.

        Raises BackendError for an unknown device.
        """
        as_device(device)
        integer = np.dtype(np.int64)
        return {
            "real floating": default_float(),
            "complex floating": default_complex(),
            "integral": integer,
            "indexing": integer,
        }

    def dtypes(self, *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None) -> DTypes:
        """The element types of a kind of the standard, or of any of several, by name.

        xarr has more than the standard names: float16, bfloat16 and the float8 types.  Raises
        ValueRangeError for an unknown kind, BackendError for an unknown device.
        """
        as_device(device)
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for one in kinds:
            if one not in _KINDS:
                known = ", ".join(map(repr, _KINDS))
                raise ValueRangeError(f"dtypes: wanted a kind of {known} or a tuple of these, got {one!r}")
        return {name: np.dtype(name) for one in kinds for name in _KINDS[one]}


def __array_namespace_info__() -> NamespaceInfo:
    """Questions about what xarr supports: capabilities, devices, element types.  Source: Array API 2025.12."""
    return NamespaceInfo()
