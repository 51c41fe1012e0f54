"""Memory of a GPU that other libraries read an Array in: `__cuda_array_interface__`."""

from __future__ import annotations

import importlib
import weakref
from typing import Any, Final

import numpy as np

from xarr.arrays.numpy_protocols import HostMemory
from xarr.dtypes import EXTENDED_FLOAT, SUB_BYTE, bfloat16
from xarr.errors import DTypeError
from xarr.ir.graph import Node
from xarr.runtime.materialisation import device_of, read_checks

#: `kDLCUDA` of DLPack.
_CUDA: Final = 2
#: The buffers whose addresses were told, by the `id` of their Array: they live as long as that does, since a consumer
#: holds the Array, which may show another value by then.
_lent: Final[dict[int, list[Any]]] = {}


def has_cuda_interface(node: Node) -> bool:
    """Whether the value of a node is, or will be, on a GPU, of a type that CUDA arrays have a code for."""
    type = node.tensor_type
    has_code = type.dtype not in EXTENDED_FLOAT and type.dtype not in SUB_BYTE and not type.dynamic
    return not node.traced and has_code and device_of(node).backend.dlpack_device()[0] == _CUDA


class CudaMemory(HostMemory):
    """Attributes by which other libraries read the value of an Array: on the host, and in the memory of a GPU."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        names = super().__dir__()
        return [
            name for name in names if name != "__cuda_array_interface__" or has_cuda_interface(self._node)
        ]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The address of the value, computed if need be, its type and the stream on which it is ready.

        The memory is read-only, and lives as long as the Array.  AttributeError for an Array that is not on a GPU, in a
        traced function, or of elements that CUDA arrays have no code for.  Source: CUDA Array Interface, version 3.
        """
        node = self._node
        backend = device_of(node).backend
        if not has_cuda_interface(node):
            raise AttributeError(
                "__cuda_array_interface__ is for values on a GPU, of types that NumPy has; from_dlpack reads others"
            )
        read_checks(self)  # type: ignore[arg-type]
        # Before the value is read: a call in another thread that was given the Array may write over it else.
        node.exposed = True
        buffer = node.value
        if buffer is None:
            return self.__cuda_array_interface__  # that call was faster: the Array is gone
        self._hold(buffer)
        described: dict[str, Any] = backend.cuda_array_interface(buffer)
        return described

    def __cupy_get_ndarray__(self) -> Any:
        """The value as an array of CuPy, which asks for it where there is no `__cuda_array_interface__`.

        Of bfloat16 on a GPU it is the memory itself, else a copy.  DTypeError for element types that CuPy has not.
        Source: CuPy, `cupy.asarray`.
        """
        cupy, dtype = importlib.import_module("cupy"), self._node.dtype
        if dtype in SUB_BYTE or (dtype in EXTENDED_FLOAT and dtype != bfloat16):
            other = "float16" if dtype in EXTENDED_FLOAT else SUB_BYTE[dtype]
            raise DTypeError(
                f"cupy.asarray: wanted elements of a type that CuPy has, got {dtype}; "
                f'cupy.asarray(x.astype("{other}")) has the numbers'
            )
        is_there = not self._node.traced and device_of(self._node).backend.dlpack_device()[0] == _CUDA
        return cupy.from_dlpack(self) if is_there and dtype == bfloat16 else cupy.array(np.asarray(self))

    def _hold(self, buffer: Any) -> None:
        """Keep a buffer for as long as this Array lives."""
        key = id(self)
        if key not in _lent:
            _lent[key] = []
            weakref.finalize(self, _lent.pop, key).atexit = False
        if not any(each is buffer for each in _lent[key]):
            _lent[key].append(buffer)
