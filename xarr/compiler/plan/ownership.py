"""Which steps make memory of their own, and which buffers of a plan share theirs with no other one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from xarr.base.records import record
from xarr.compiler.plan import records
from xarr.compiler.plan.overwriting import is_update
from xarr.compiler.plan.records import Plan, Step
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.ir.types import TupleType, Type


def is_new(step: Step) -> bool:
    """Whether the outputs of a step are arrays of their own, whatever library the engine uses, or an input's."""
    return isinstance(step, records.Launch | records.LaunchLoop) or is_update(step.node)


def shared_inputs(step: Step) -> Collection[int]:
    """The inputs of a step of which it may make a view or show them to others, or that it reads as several operands."""
    inputs = step.inputs
    if isinstance(step, records.Loop):
        own = {inputs[k] for k in step.body.donated}
        return [each for each in inputs if each not in own or inputs.count(each) > 1]
    if (
        is_new(step)
        or isinstance(step, records.Copy)
        or (isinstance(step, records.Check) and not step.outputs)
    ):
        return [each for each in inputs if inputs.count(each) > 1]
    return inputs


def unshared(plan: Plan) -> frozenset[int]:
    """The parameters and results whose memory no other of them has, nor anybody else, once the plan has run.

    A result among them is made by a step that makes memory of its own, or lies over an input that nothing else needs;
    and there is no view of any, nor has code outside seen it.
    """
    shared = {number for number, count in Counter(plan.results).items() if count > 1}
    new: set[int] = set()
    for step in plan.steps:
        # No product is a view of an operand.
        if not isinstance(step.node.op, ops.DotGeneral):
            shared.update(shared_inputs(step))
        if is_new(step):
            new.update(step.outputs)
    alone = new.intersection(plan.results).union(set(plan.parameters).difference(plan.results))
    return frozenset(alone - shared)


@record
class Exposure:
    """For each parameter and for each result of a graph whether its memory may be that of another value too."""

    parameters: tuple[bool, ...]
    results: tuple[bool, ...]


def exposure(graph: Graph, plan: Plan | None) -> Exposure:
    """The exposure of a graph's values when `plan` runs it; everything is exposed where no plan says otherwise."""
    if plan is None:
        return Exposure((True,) * len(graph.parameters), (True,) * len(graph.results))
    alone = unshared(plan)
    parameters, results = iter(plan.parameters), iter(plan.results)
    return Exposure(
        tuple([not _holds(alone, type, parameters) for type in graph.parameter_types]),
        tuple([not _holds(alone, type, results) for type in graph.result_types]),
    )


def _holds(alone: frozenset[int], type: Type, numbers: Iterator[int]) -> bool:
    """Whether all buffers of a value, the next of `numbers`, are among `alone`."""
    if isinstance(type, TupleType):
        return all([_holds(alone, element, numbers) for element in type.elements])
    return next(numbers) in alone
