"""The loop program of a group: which builder makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from xarr.compiler.fusion.running_totals import computes
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.cpu import (
    chosen_windows,
    convolutions,
    nests,
    products,
    scans,
    scatters,
    windows,
)
from xarr.config import current as config
from xarr.ir import ops
from xarr.ir.op import Op

_Build = Callable[[ops.Fusion], Kernel]

#: Builders of the groups around an operation of one kind.
_BUILDERS: Final[dict[type[Op], _Build]] = {
    ops.Convolution: convolutions.build,
    ops.DotGeneral: products.build,
    ops.ReduceWindow: windows.build,
    ops.Scatter: scatters.build,
    ops.SelectAndScatter: chosen_windows.build,
}


def build(fusion: ops.Fusion) -> Kernel:
    """The loop program of a group: nested loops over its domain where nothing in it needs loops of its own.

    With `config.verify_graphs` it is checked.
    """
    kernel = _builder(fusion)(fusion)
    return verify(kernel) if config.verify_graphs else kernel


def _builder(fusion: ops.Fusion) -> _Build:
    nodes = fusion.computation.nodes
    # Running totals are windows too, which reach to the end of the array.
    if any(computes(node) for node in nodes):
        return scans.build
    found = [_BUILDERS[type(node.op)] for node in nodes if type(node.op) in _BUILDERS]
    return found[0] if found else nests.build
