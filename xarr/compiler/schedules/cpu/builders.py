"""The builders of the loop programs of each kind of group for processors, and which nodes they are for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xarr.compiler.schedule import Builder, Kind, Limit
from xarr.compiler.schedules.cpu import (
    convolutions,
    group_loops,
    products,
    scans,
    scatters,
    select_and_scatter,
    windows,
)
from xarr.compiler.schedules.serial import systems

BUILDERS: Final[Mapping[Kind, Builder]] = {
    Kind.NEST: group_loops.build,
    Kind.SCAN: scans.build,
    Kind.SCATTER: scatters.build,
    Kind.ACCUMULATING_SCATTER: scatters.build,
    Kind.WINDOWS: windows.build,
    Kind.SELECT_AND_SCATTER: select_and_scatter.build,
    Kind.CONVOLUTION: convolutions.build,
    Kind.PRODUCT: products.build,
    Kind.SYSTEMS: systems.build,
}

#: By what is beyond a builder, and by what NumPy or a BLAS does faster.
LIMITS: Final[Mapping[Kind, Limit]] = {
    Kind.NEST: group_loops.takes,
    Kind.WINDOWS: windows.takes,
    Kind.SELECT_AND_SCATTER: select_and_scatter.takes,
    Kind.CONVOLUTION: convolutions.takes,
    Kind.PRODUCT: products.takes,
    Kind.SYSTEMS: systems.takes,
}
