"""Offsets of buffers in one block of memory."""

from __future__ import annotations

from bisect import insort
from typing import Final

#: Bytes of which every offset is a multiple: a line of a cache, and the widest register.
ALIGNMENT: Final = 64


def aligned_size(nbytes: int) -> int:
    """`nbytes`, rounded up to a multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """A block of memory that grows as it must: `nbytes` is what it has come to."""

    def __init__(self) -> None:
        self.nbytes = 0
        #: Offset and size of what is free below `nbytes`, in order; no two are neighbours.
        self._free: list[tuple[int, int]] = []

    def allocate(self, nbytes: int) -> int:
        """The offset of `nbytes`: the smallest free block that holds them, else at the end."""
        wanted = aligned_size(nbytes)
        if not wanted:
            return 0
        fitting = [(size, offset) for offset, size in self._free if size >= wanted]
        if fitting:
            size, offset = min(fitting)
            self._free.remove((offset, size))
            if size > wanted:
                insort(self._free, (offset + wanted, size - wanted))
            return offset
        offset = self.nbytes
        if self._free and sum(self._free[-1]) == offset:  # the last block grows
            offset = self._free.pop()[0]
        self.nbytes = offset + wanted
        return offset

    def release(self, offset: int, nbytes: int) -> None:
        """Let go of bytes that were allocated."""
        size = aligned_size(nbytes)
        if not size:
            return
        insort(self._free, (offset, size))
        index = self._free.index((offset, size))
        if index + 1 < len(self._free) and self._free[index + 1][0] == offset + size:
            size += self._free.pop(index + 1)[1]
        if index and sum(self._free[index - 1]) == offset:
            offset, before = self._free[index - 1]
            self._free.pop(index)
            index, size = index - 1, before + size
        self._free[index] = (offset, size)
