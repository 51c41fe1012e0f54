"""The numbers of GPUs."""

from __future__ import annotations

from typing import Final

from xarr.compiler.schedules.serial import builders
from xarr.compiler.target import Target


class GpuTarget(Target):
    """A target with what only the schedule of GPUs asks.  Not measured yet: see docs/backends.md."""

    __slots__ = ()

    #: Terms of a reduction from which a block of threads shares those of a result, and results up to which it does:
    #: more of them keep all threads busy one by one.
    min_block_terms: int = 2**8
    max_block_results: int = 2**14
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
