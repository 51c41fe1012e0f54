"""Runs a native loop from what the plan says of it alone: every point on its own, as a thread of a GPU would.

Points are lanes of NumPy arrays here; one that has ended is computed on, and what it had is kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from xarr.compiler.loop_ir.scalars import Value, constant_of, in_order
from xarr.compiler.plan.program_plan import LaunchLoop
from xarr.compiler.while_loops.native_loops import NativeLoop

Array = np.ndarray[Any, Any]

OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    **{
        name: getattr(operator, name)
        for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "neg")
    },
    **{"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert},
    **{"div": np.divide, "sqrt": np.sqrt, "abs": np.abs, "maximum": np.maximum, "minimum": np.minimum},
    "select": np.where,
}


class PointRun:
    """The carried values of a loop while it runs: scalars, arrays with one element a point, and tables."""

    def __init__(self, program: NativeLoop, inputs: Sequence[Array]) -> None:
        self.program = program
        self.points = np.arange(program.count)
        self.carried = [np.array(each).reshape(-1) for each in inputs]
        for k, each in enumerate(program.carried):
            if each.kind == "scalar":
                self.carried[k] = self.carried[k].reshape(())

    def values(self, roots: Sequence[Value]) -> dict[Value, Any]:
        """The values of these expressions at every point."""
        program, known = self.program, {self.program.point: self.points}
        known |= {value: self.carried[k] for k, value in enumerate(program.arguments) if value is not None}
        for value in in_order(*roots):
            operands = [known.get(operand) for operand in value.operands]
            if value.op == "constant":
                known[value] = constant_of(value)
            elif value.op == "load":
                index = operands[0] + (self.points if value.attribute.wide else 0)
                known[value] = self.carried[value.attribute.number][index]
            elif value.op == "convert":
                known[value] = np.asarray(operands[0]).astype(value.dtype)
            elif value not in known:
                known[value] = OPERATIONS[value.op](*operands)
        return known

    def run(self) -> list[Array]:
        program = self.program
        assert program.going is not None
        while True:
            known = self.values(program.roots())
            alive = True if program.alive is None else np.broadcast_to(known[program.alive], program.count)
            if not (known[program.going] and np.any(alive)):
                return self.carried
            after = list(self.carried)
            for k, value in enumerate(program.following):
                if value is not None and program.carried[k].kind == "points":
                    after[k] = np.where(alive, known[value], self.carried[k]).astype(self.carried[k].dtype)
                elif value is not None:
                    after[k] = np.asarray(known[value]).astype(self.carried[k].dtype)
            for write in program.writes:
                index = known[write.start] + (self.points if write.wide else 0)
                after[write.number][index] = known[write.value]
            self.carried = after


def run_points(step: LaunchLoop, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a native loop over points."""
    assert isinstance(step.program, NativeLoop)
    with np.errstate(all="ignore"):
        carried = PointRun(step.program, inputs).run()
    return [carried[k].reshape(inputs[k].shape) for k in step.carried]
