"""What builds the loop programs of each kind of group for processors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xarr.compiler.schedule import Builder, Kind
from xarr.compiler.schedules.cpu import (
    convolutions,
    group_loops,
    products,
    scans,
    scatters,
    select_and_scatter,
    windows,
)

BUILDERS: Final[Mapping[Kind, Builder]] = {
    Kind.NEST: group_loops.build,
    Kind.SCAN: scans.build,
    Kind.SCATTER: scatters.build,
    Kind.WINDOWS: windows.build,
    Kind.SELECT_AND_SCATTER: select_and_scatter.build,
    Kind.CONVOLUTION: convolutions.build,
    Kind.PRODUCT: products.build,
}
