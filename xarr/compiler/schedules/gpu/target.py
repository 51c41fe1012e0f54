"""The numbers of GPUs."""

from __future__ import annotations

from typing import Final

from xarr.compiler.schedules.serial import builders
from xarr.compiler.target import Target


class GpuTarget(Target):
    """A target with what only the schedule of GPUs asks.  Not measured yet: see docs/backends.md."""

    __slots__ = ()

    #: Neighbouring terms of a reduction from which a warp shares those of a result, and from which a block does; and
    #: results up to which it does, since more of them keep all warps busy.
    min_warp_terms: int = 2**5
    min_block_terms: int = 2**8
    max_block_results: int = 2**14
    #: Terms of a part of a reduction, results times parts that keep all blocks busy, and all threads.
    part_terms: int = 2**12
    busy_blocks: int = 2**10
    busy_threads: int = 2**16
    #: 1 where results may not depend on which thread comes first, 0 where sums of floats may.
    deterministic: int = 1


#: As for the serial schedule, there are no local buffers, and no long programs.
TARGET: Final = GpuTarget().replace(
    cache_bytes=2**22,
    **{
        name: getattr(builders.TARGET, name)
        for name in ("max_group_members", "max_serial_bytes", "local_bytes")
    },
)
