"""Which steps make memory of their own, and which buffers of a plan share theirs with no other one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice

from xarr.compiler.plan import program_plan
from xarr.compiler.plan.program_plan import Plan, Step
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.ir.types import Type, array_count


def shared_inputs(step: Step) -> Collection[int]:
    """The inputs of a step of which it may make a view or show them to others, or that it reads as several operands."""
    inputs = step.inputs
    if isinstance(step, program_plan.LoopStep):
        own, repeated = {inputs[k] for k in step.body.donated}, _find_repeated(inputs)
        return [each for each in inputs if each not in own or each in repeated]
    if (
        step.makes_new
        or isinstance(step, program_plan.Copy)
        or (isinstance(step, program_plan.CheckStep) and not step.outputs)
    ):
        return _find_repeated(inputs)
    return inputs


def _find_repeated(inputs: Collection[int]) -> set[int]:
    """The inputs that a step reads more than once."""
    if len(set(inputs)) == len(inputs):
        return set()
    return {each for each, count in Counter(inputs).items() if count > 1}


def shared_buffers(steps: Iterable[Step], results: Collection[int]) -> set[int]:
    """The buffers that share their memory with what a step hands on to others, or with a view that is a result.

    A view that only steps with memory of their own read shares its memory with nothing that outlives them.
    """
    shared: set[int] = set()
    views: list[Step] = []
    for step in steps:
        if isinstance(step, program_plan.View):
            views.append(step)
        else:
            shared.update(shared_inputs(step))
    for view in reversed(views):
        if view.outputs[0] in shared or view.outputs[0] in results:
            shared.update((*view.inputs, *view.outputs))
    return shared


def find_unshared(plan: Plan) -> frozenset[int]:
    """The parameters and results whose memory no other of them has, nor anybody else, once the plan has run.

    A result among them is made by a step that makes memory of its own, or lies over an input that nothing else needs;
    and there is no view of any, nor has code outside seen it.
    """
    # No product is a view of an operand.
    steps = [step for step in plan.steps if not isinstance(step.op, ops.DotGeneral)]
    shared = shared_buffers(steps, frozenset(plan.results))
    shared.update([number for number, count in Counter(plan.results).items() if count > 1])
    new = {number for step in plan.steps if step.makes_new for number in step.outputs}
    alone = new.intersection(plan.results).union(set(plan.parameters).difference(plan.results))
    return frozenset(alone - shared)


def exposed_parameters(graph: Graph, plan: Plan | None) -> tuple[bool, ...]:
    """For each parameter of a graph that `plan` runs whether its memory may be that of another value too.

    So it may for all where no plan says otherwise.
    """
    if plan is None:
        return (True,) * len(graph.parameters)
    return _exposure(plan, graph.parameter_types, plan.parameters)


def exposed_results(graph: Graph, plan: Plan | None) -> tuple[bool, ...]:
    """For each result what `exposed_parameters` says for parameters."""
    if plan is None or not any([step.makes_new for step in plan.steps]):
        return (True,) * len(graph.results)
    return _exposure(plan, graph.result_types, plan.results)


def _exposure(plan: Plan, types: Iterable[Type], numbers: Iterable[int]) -> tuple[bool, ...]:
    """For each value of these types, whose buffers have these numbers in order, whether one of them is exposed."""
    alone, left = find_unshared(plan), iter(numbers)
    return tuple([not all([number in alone for number in islice(left, array_count(type))]) for type in types])
