"""A small engine that runs plans as their documentation says: one block of memory, everything at its offset.

Single ops are computed by NumPy's backend; `tests/support/c_engine.py` has another library.  What a step fills is
spoilt before, so that a step that reads memory which is another buffer's by now gets a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from xarr.backend import get, read_only
from xarr.base.custom_calls import run_custom_call
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.layout import Workspace
from xarr.compiler.plan.program_plan import Plan, PlanBuffer, Step
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import TupleType, Type

Array = np.ndarray[Any, Any]
Memory = np.ndarray[Any, Any]


def run_plan(plan: Plan, *arguments: Array) -> tuple[Array, ...]:
    """The results of a plan that was made without views, of these arguments; donated ones are spoilt."""
    return PlanRun.of(plan, arguments)


def _flat_values(value: Any) -> list[Array]:
    return (
        [each for element in value for each in _flat_values(element)] if isinstance(value, tuple) else [value]
    )


@lru_cache(4096)
def _program(op: Op, types: tuple[Type, ...]) -> Any:
    operands = [parameter(type) for type in types]
    return get("numpy").compile(Graph(operands, [Node(op, tuple(operands))]))


class PlanRun:
    """The arrays of one run, by buffer."""

    def __init__(self, plan: Plan, arguments: Sequence[Array], arena: Memory) -> None:
        self.plan = plan
        self.arena = arena
        self.arrays: dict[int, Array] = dict(zip(plan.parameters, arguments, strict=True))
        for index, step in enumerate(plan.steps):
            for number in step.inputs:
                self.array(number)
            in_place = {step.outputs[result] for result, _ in plan.input_output_aliases(step)}
            for number in step.outputs:
                if number not in in_place and plan.buffers[number].base is None:
                    self.array(number).reshape(-1).view(np.uint8)[...] = 0xAB
            self.step(step, plan.layout.workspaces[index])
            for buffer in plan.buffers:
                if buffer.end == index:
                    self.arrays.pop(buffer.number, None)

    @classmethod
    def of(cls, plan: Plan, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a run in a new arena."""
        return cls(plan, arguments, np.empty(plan.layout.arena, np.uint8)).results()

    def results(self) -> tuple[Array, ...]:
        return tuple([np.array(self.array(number)) for number in self.plan.results])

    def array(self, number: int) -> Array:
        if number not in self.arrays:
            self.arrays[number] = self._memory_of(self.plan.buffers[number])
        return self.arrays[number]

    def _memory_of(self, buffer: PlanBuffer) -> Array:
        shape, dtype = buffer.type.shape, buffer.type.dtype
        if buffer.constant is not None:
            return np.asarray(buffer.constant.array)
        if buffer.base is not None:
            whole = self.array(buffer.base)
            assert whole.flags.c_contiguous
            return whole.reshape(-1).view(np.uint8).view(dtype).reshape(shape)
        offset = self.plan.layout.offsets[buffer.number]
        if offset is None:
            return np.empty(shape, dtype)
        part = self.arena[offset : offset + buffer.type.nbytes]
        return part.view(dtype).reshape(shape)

    def step(self, step: Step, space: Workspace | None) -> None:
        self.workspace = (
            self.arena[:0] if space is None else self.arena[space.offset : space.offset + space.nbytes]
        )
        values = self.values(step, [self.array(number) for number in step.inputs])
        for number, value in zip(step.outputs, values, strict=True):
            if not self.plan.buffers[number].is_view:
                self.array(number)[...] = value

    def values(self, step: Step, inputs: list[Array]) -> Sequence[Array]:
        if isinstance(step, program_plan.Copy):
            return [np.array(inputs[0])]
        if isinstance(step, program_plan.Allocate):
            return [self.array(number) for number in step.outputs]
        if isinstance(step, program_plan.CheckStep) and not step.outputs:
            assert step.call is not None
            run_custom_call(
                step.call.call_target_name,
                dict(step.call.attribute_items),
                ((inputs[0].dtype, inputs[0].shape),),
                tuple(inputs),
            )
            return []
        if isinstance(step, program_plan.PlanCall):
            return self.run_inside(step.plan, inputs)
        if isinstance(step, program_plan.Branch):
            count, chosen = len(step.branches), int(inputs[0])
            if inputs[0].dtype == np.bool_:
                chosen = 1 - chosen
            return self.run_inside(step.branches[chosen if 0 <= chosen < count else -1], inputs[1:])
        if isinstance(step, program_plan.LoopStep):
            return self.loop(step, inputs)
        return self.compute(step, inputs)

    def compute(self, step: Step, inputs: list[Array]) -> Sequence[Array]:
        """The results of the library, or of a loop program."""
        results = _flat_values(_program(step.op, tuple(each.type for each in step.node.operands))(*inputs))
        carried = step.carried if isinstance(step, program_plan.LaunchLoop) else range(len(results))
        return [np.array(results[k]) for k in carried]

    def run_inside(self, plan: Plan, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a plan inside of a step, whose arena is the beginning of the workspace."""
        return type(self)(plan, inputs, self.workspace).results()

    def loop(self, step: program_plan.LoopStep, inputs: list[Array]) -> Sequence[Array]:
        state = [np.array(value) if k in step.body.donated else value for k, value in enumerate(inputs)]
        while self.run_inside(step.cond, state)[0]:
            state = list(self.run_inside(step.body, state))
            for spare, value in zip(step.spares, state, strict=False):
                if spare is not None:
                    assert spare >= step.body.layout.arena
                    self.workspace[spare : spare + value.nbytes] = value.reshape(-1).view(np.uint8)
        return [state[k] for k, number in enumerate(step.state) if number in step.outputs]


def flat_results(values: Sequence[Any]) -> list[Array]:
    """The arrays among a program's results, those in tuples one by one."""
    return _flat_values(tuple(values))


def packed_results(types: Sequence[Type], arrays: Iterable[Array]) -> tuple[Any, ...]:
    """The reverse: a program's results of these types, as tuples where they are, whose arrays are the next ones."""
    left = iter(arrays)
    return tuple(
        [
            packed_results(type.elements, left) if isinstance(type, TupleType) else read_only(next(left))
            for type in types
        ]
    )
