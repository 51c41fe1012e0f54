"""Scatters: the operand as the result, then all updates at once, combined atomically where that gives one result.

Integers are combined to the same number in whatever order updates come.  Updates of floats, and those that replace, run
one after the other in one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from xarr.compiler.loop_ir.elements import Source
from xarr.compiler.loop_ir.loops import Atomic
from xarr.compiler.schedules.serial import scatters
from xarr.compiler.schedules.serial.serial_loops import SerialLoops
from xarr.dtypes import INTEGER
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node
from xarr.ir.op import Op

_ATOMICS: Final[dict[type[Op], Atomic]] = {
    ops.Add: Atomic.ADD,
    ops.Maximum: Atomic.MAXIMUM,
    ops.Minimum: Atomic.MINIMUM,
    ops.And: Atomic.AND,
    ops.Or: Atomic.OR,
    ops.Xor: Atomic.XOR,
}


def scatter(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Two phases, as those of the serial schedule."""
    return scatters.scatter(loops, node, atomics_of(node))


def atomics_of(node: Node) -> Sequence[Atomic] | None:
    """The combination of each result if the order of the updates does not matter; None if it does."""
    assert isinstance(node.op, ops.Scatter)
    combiners = monoids(node.op.update_computation)
    operands = node.operands[: len(node.operands) // 2]
    if combiners is None or not all(operand.dtype in INTEGER for operand in operands):
        return None
    atomics = [_ATOMICS.get(combiner) for combiner in combiners]
    return None if None in atomics else [each for each in atomics if each is not None]
