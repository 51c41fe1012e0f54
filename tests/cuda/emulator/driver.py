"""The emulated device as a driver of `xarr_cupy`: memory of the host, kernels by g++.

What is allocated holds no numbers: its bytes are 0xAB.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

import numpy as np

from tests.cuda.emulator.module import Module
from tests.cuda.libraries import ARRAYS, gemm_strided_batched_ex
from xarr.ir.types import TensorType
from xarr_cupy.driver import BLOCK, HostArray

_ALIGNMENT = 256


class EmulatedMemory:
    """Bytes of the host, from an aligned address on."""

    def __init__(self, nbytes: int) -> None:
        self.bytes = np.full(nbytes + _ALIGNMENT, 0xAB, np.uint8)
        self.address = -(-self.bytes.ctypes.data // _ALIGNMENT) * _ALIGNMENT


class EmulatedDriver:
    """A device that runs the threads of a kernel one after the other, in one of three orders.

    `launches` counts kernels, `products` calls of cuBLAS, `blocks` bounds grids, so that threads have several points.
    With `races` a kernel in which two threads access an element, and nothing says who does first, is a fault.
    """

    description = "emulated on the host"
    arrays = ARRAYS

    def __init__(self, order: str = "forward", blocks: int = 2, races: bool = False) -> None:
        self.order, self.blocks, self.races = order, blocks, races
        self.texts: dict[str, None] = {}
        self.launches = self.downloads = self.uploads = self.products = 0

    def allocate(self, nbytes: int) -> EmulatedMemory:
        return EmulatedMemory(nbytes)

    def upload(self, address: int, array: HostArray) -> None:
        self.uploads += 1
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array: HostArray, address: int) -> None:
        self.downloads += 1
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(target, source, nbytes)

    def view(self, memory: EmulatedMemory, offset: int, type: TensorType) -> Any:
        start = memory.address - memory.bytes.ctypes.data + offset
        return memory.bytes[start : start + type.nbytes].view(type.dtype).reshape(type.shape)

    def memory_of(self, array: Any) -> EmulatedMemory:
        memory = EmulatedMemory(array.nbytes)
        array = np.ascontiguousarray(array)
        ctypes.memmove(memory.address, array.ctypes.data, array.nbytes)
        return memory

    def library_calls(self) -> AbstractContextManager[None]:
        return nullcontext()

    def gemm(self, arguments: Sequence[int]) -> None:
        self.products += 1
        gemm_strided_batched_ex(0, *arguments)

    def load(self, text: str) -> Any:
        self.texts[text] = None
        return _module(text, self.races)

    def launch(self, module: Any, name: str, blocks: int, arguments: Sequence[tuple[int, int]]) -> None:
        self.launches += 1
        module.launch(name, [min(blocks, self.blocks)], [BLOCK], arguments, self.order)


_module = lru_cache(None)(Module)
