"""Groups of operations that run as one."""

from __future__ import annotations

from xarr.ir.op import operation
from xarr.ir.ops.control import Call


@operation
class Fusion(Call):
    """A call whose computation a backend runs as loops over `domain`, without arrays in between.

    Made by the fusing stage only.  The loops over the `reduced` dimensions of the domain are those of the
    reductions inside; values after a reduction have the domain's other dimensions.
    """

    domain: tuple[int, ...]
    reduced: tuple[int, ...] = ()
