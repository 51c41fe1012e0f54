"""Reductions that MPI computes itself: of integers and bools, whose bits no order changes, and of floats on demand.

A reduction of MPI's knows nothing of who else calls it for what, so all members of a group meet before: by messages
that only the same collective takes, each of which says whether its sender can go on this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xarr.communication.communicator import Array

#: Communicators of groups that are kept for good: MPI has a few thousand, and freeing one takes all of its members.
MOST_GROUPS: Final = 256

_BITWISE: Final = {"and": "BAND", "or": "BOR", "xor": "BXOR"}
_OPERATIONS: Final = {"add": "SUM", "multiply": "PROD", "maximum": "MAX", "minimum": "MIN", **_BITWISE}
#: What arithmetic is on bools, which are bytes of 0 and 1.
_OF_BOOLS: Final = {"add": "BOR", "multiply": "BAND", "maximum": "BOR", "minimum": "BAND", **_BITWISE}
_TYPES: Final = {
    **{f"int{bits}": f"INT{bits}_T" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UINT{bits}_T" for bits in (8, 16, 32, 64)},
    **{"bool": "UINT8_T", "float32": "FLOAT", "float64": "DOUBLE"},
    **{"complex64": "C_FLOAT_COMPLEX", "complex128": "C_DOUBLE_COMPLEX"},
}


class NativeSums:
    """The reductions of one process."""

    def __init__(self, mpi: Any, world: Any) -> None:
        self._mpi, self._world = mpi, world
        self._groups: dict[tuple[int, ...], Any] = {}

    def can_reduce(self, operation: str, dtype: np.dtype[Any]) -> bool:
        """Whether MPI has an element type, and an operation on it that wraps."""
        # Sums of 8 and 16 bits saturate in Open MPI, where the processor has AVX: its issue 8045, "wontfix".
        saturates = operation == "add" and dtype.kind in "iu" and dtype.itemsize < 4
        return dtype.name in _TYPES and not saturates

    def has_room(self, members: Sequence[int]) -> bool:
        """Whether this process has a communicator for a group, or can keep one more."""
        return tuple(members) in self._groups or len(self._groups) < MOST_GROUPS

    def start(self, members: Sequence[int], operation: str, operand: Array, out: Array) -> Any:
        """The request of a reduction, which all members of the group are about to start."""
        names = _OF_BOOLS if operand.dtype == np.bool_ else _OPERATIONS
        # Integers wrap, which C says of those without a sign alone.
        wraps = operation in ("add", "multiply") and operand.dtype.kind == "i"
        name = f"{'u' if wraps else ''}{operand.dtype.name}"
        type_, combine = getattr(self._mpi, _TYPES[name]), getattr(self._mpi, names[operation])
        return self._group(tuple(members)).Iallreduce([operand, type_], [out, type_], combine)

    def _group(self, members: tuple[int, ...]) -> Any:
        if members not in self._groups:
            group = self._world.Get_group().Incl(list(members))
            self._groups[members] = self._world.Create_group(group)
            group.Free()
        return self._groups[members]
