"""Work of a device that needs no host: kernels and copies, whose addresses are a slot of a table and an offset each.

A list of them is made once for a program.  A run has a table of addresses, its arena's, its arguments', its results',
so that it computes all addresses by adding numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from xarr.ir.graph import Node
from xarr_cupy.codegen.kernel_calls import KernelCall

#: The slot of the table whose address is 0: a number is an offset there.
NUMBER: Final = 0


class Location(NamedTuple):
    """Bytes of the device: so many from the address in a slot of the table on."""

    slot: int
    offset: int = 0

    def plus(self, nbytes: int) -> Location:
        return Location(self.slot, self.offset + nbytes)


class Argument(NamedTuple):
    """A pointer that a kernel takes, and how many bytes from there on it may access."""

    location: Location
    nbytes: int


class KernelLaunch(NamedTuple):
    """A kernel of a module that the driver has loaded, run in blocks of `BLOCK` threads; it takes `sizes` last.

    * `sizes` - numbers, or locations whose addresses are numbers of a run,
    * `call` - what it was made of, where that is one kernel of a loop program,
    * `node` - what is computed by it, where a program knows.
    """

    module: Any
    name: str
    blocks: int
    arguments: tuple[Argument, ...]
    sizes: tuple[np.generic | Location, ...] = ()
    call: KernelCall | None = None
    node: Node | None = None


class MemoryCopy(NamedTuple):
    """Copy bytes inside of the device."""

    target: Location
    source: Location
    nbytes: int


Launches = Sequence[KernelLaunch | MemoryCopy]
#: The addresses of a run by their slots.
Table = Sequence[int]


def address_of(location: Location, table: Table) -> int:
    """The address of a location in a run."""
    return table[location.slot] + location.offset
