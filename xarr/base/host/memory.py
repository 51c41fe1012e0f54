"""Memory for results, used again when their arrays are gone.

Fresh pages of memory cost as much as the arithmetic that fills them, so large blocks are kept for a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

#: Smaller arrays come from NumPy, whose allocator keeps their pages; glibc's gives larger ones back to the system.
MIN_POOLED_BYTES: Final = 2**17
#: Bytes that may lie unused.
MOST_UNUSED: Final = 2**29
ALIGNMENT: Final = 64


def fresh_block(nbytes: int) -> Array:
    """New bytes of NumPy's."""
    return np.empty(nbytes, np.uint8)


class _Block:
    """Bytes, and the first address of theirs that is aligned, which NumPy takes a microsecond to tell."""

    __slots__ = ("address", "memory", "nbytes")

    def __init__(self, memory: Array) -> None:
        self.memory, self.nbytes = memory, len(memory)
        self.address = -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT


class Lease:
    """Lends a block to an array; when the last view of it is gone the block goes back.

    A block from before the pool had another source is gone with it: what lies there may have to lie elsewhere now.
    """

    __slots__ = ("__array_interface__", "_block", "_pool", "_source")

    def __init__(self, pool: Pool, block: _Block, shape: tuple[int, ...], dtype: DType) -> None:
        self._pool, self._source = pool, pool.source
        self._block = block
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": np.dtype(f"V{dtype.itemsize}").str,
            "data": (block.address, False),
        }

    def __del__(self) -> None:
        if self._pool.source is self._source:
            self._pool.give_back(self._block)


class Pool:
    """Unused blocks, those given back last at the right end.

    Blocks come back whenever the garbage collector likes, in any thread, so every step is one operation of
    a deque, which nothing can interrupt.
    """

    def __init__(self, most_unused: int = MOST_UNUSED) -> None:
        self.most_unused = most_unused
        #: Makes the bytes of a new block.
        self.source: Callable[[int], Array] = fresh_block
        self._unused: deque[_Block] = deque()

    @property
    def unused(self) -> int:
        """Bytes that lie unused."""
        return sum([block.nbytes for block in list(self._unused)])

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """A new array, its elements undefined; large ones begin at a multiple of 64 bytes."""
        return (
            np.empty(shape, dtype)
            if prod(shape) * dtype.itemsize < MIN_POOLED_BYTES
            else self.lend(shape, dtype)
        )

    def lend(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """A new array as `empty` makes large ones."""
        block = self._block(prod(shape) * dtype.itemsize + ALIGNMENT)
        return np.asarray(Lease(self, block, shape, dtype)).view(dtype)

    def _block(self, nbytes: int) -> _Block:
        """A block that is large enough and not a quarter too large."""
        for _ in range(len(self._unused)):
            try:
                block = self._unused.pop()
            except IndexError:
                break
            if nbytes <= block.nbytes <= nbytes + nbytes // 4:
                return block
            self._unused.appendleft(block)
        return _Block(self.source(nbytes))

    def give_back(self, block: _Block) -> None:
        """Keep a block, and let the oldest go while too much lies unused."""
        self._unused.append(block)
        while self.unused > self.most_unused:
            try:
                self._unused.popleft()
            except IndexError:
                return

    def clear(self) -> None:
        self._unused.clear()


pool: Final = Pool()


def copy_array(array: Array) -> Array:
    """A copy in row-major order."""
    copy = pool.empty(array.shape, array.dtype)
    np.copyto(copy, array)
    return copy


def claim(array: Array) -> bool:
    """Make an array writeable whose memory was made here.  Who else sees that memory is the caller's to judge."""
    view = array
    base = view.base
    while type(base) is np.ndarray:
        view, base = base, base.base
    if (base is None and view.flags.owndata) or isinstance(base, Lease):
        try:
            array.flags.writeable = True
        except ValueError:  # what it is a view of is read-only
            return False
        return True
    return False
