"""Loops, branches, calls, maps, tuples and the barrier.

In a program on lanes a condition differs from lane to lane: there each branch runs on the lanes that
take it, and a loop on the lanes that still go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.base.custom_calls import run_custom_call
from xarr.base.host.memory import copy_array, pool
from xarr.base.progress import CountSteps, show_progress
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.program_plan import Step
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.types import TensorType
from xarr_numpy import engine
from xarr_numpy.ops.table_rows import Rows
from xarr_numpy.processor import PROCESSOR

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]


# --- kernels -----------------------------------------------------------------------------------------


def while_loop(
    cond: Function, body: Function, *state: Any, count: CountSteps | None = None
) -> tuple[Any, ...]:
    """The carried values after the last iteration; `count` is told of each."""
    while cond(*state)[0]:
        state = body(*state)
        if count is not None:
            count(1)
    return state


def while_loop_then(
    loop: ops.While, cond: Function, body: Function, *state: Any, count: CountSteps | None = None
) -> tuple[Any, ...]:
    """`while_loop` of an unknown number of iterations: after many iterations it goes on in machine code."""
    for _ in range(PROCESSOR.max_python_iterations):
        if not cond(*state)[0]:
            return state
        state = body(*state)
        if count is not None:
            count(1)
    native = engine.loop_kernel_if_any(loop)
    if native is None:
        program = None if count is not None else engine.native_loop_if_any(loop)
        return while_loop(cond, body, *state, count=count) if program is None else program.call(*state)
    kernel, checked = native
    wanted = range(len(state))
    if checked is None:
        results: tuple[Any, ...] = kernel.call(wanted, (), *state, count=count)
        return results
    indices = [initial.array for initial in checked.initial]
    results = kernel.call(wanted, (), *state, *indices, count=count)
    for index, call in checked.checks:
        check_indices(call, results[index])
    return results[: len(state)]


def check_indices(call: ops.CustomCall, indices: Any) -> None:
    """Raise the error of a check, unless it lets these pass."""
    declared = tuple((type.dtype, type.shape) for type in call.result_types if isinstance(type, TensorType))
    run_custom_call(call.call_target_name, dict(call.attribute_items), declared, (indices,))


def custom_call(target: Any, attributes: Any, declared: Any, *operands: Any) -> tuple[Any, ...]:
    """The results of a function, or of the one registered under a name."""
    return run_custom_call(target, dict(attributes), declared, operands)


def branch(index: Any, functions: Sequence[Function]) -> Function:
    """Function number `index`, the last one if there is no such number."""
    return functions[int(index)] if 0 <= index < len(functions) else functions[-1]


def map_lanes(function: Function, *arrays: Any) -> Any:
    """The one result of a program on lanes, in the shape of the arrays."""
    return np.broadcast_to(function(*arrays)[0], np.broadcast_shapes(*map(np.shape, arrays)))


def while_lanes(cond: Function, body: Function, *state: Any) -> tuple[Any, ...]:
    """`while_loop` for each lane on its own."""
    shape = np.broadcast_shapes(*map(np.shape, state))
    current = [np.broadcast_to(value, shape).reshape(-1) for value in state]
    final = [value.copy() for value in current]
    lanes = np.arange(current[0].size)
    while lanes.size:
        going = np.broadcast_to(cond(*current)[0], lanes.shape)
        for result, value in zip(final, current, strict=True):
            result[lanes[~going]] = value[~going]
        lanes = lanes[going]
        if lanes.size:
            values = body(*[value[going] for value in current])
            current = [np.broadcast_to(value, lanes.shape) for value in values]
    return tuple(result.reshape(shape) for result in final)


def branch_lanes(
    index: Any, functions: Sequence[Function], dtypes: Sequence[np.dtype[Any]], *operands: Any
) -> tuple[Any, ...]:
    """For each lane the results of function number `index`, of the last one if there is no such number."""
    shape = np.broadcast_shapes(np.shape(index), *map(np.shape, operands))
    outside = (index < 0) | (index >= len(functions))
    chosen = np.broadcast_to(np.where(outside, len(functions) - 1, index), shape)
    results = tuple(np.empty(shape, dtype) for dtype in dtypes)
    for number, function in enumerate(functions):
        lanes = chosen == number
        if lanes.any():
            values = function(*[np.broadcast_to(value, shape)[lanes] for value in operands])
            for result, value in zip(results, values, strict=True):
                result[lanes] = value
    return results


# --- steps -------------------------------------------------------------------------------------------


def assignment(names: Sequence[str], expression: str, is_array: bool = False) -> str:
    """The line that gives the value of an expression, an array or a tuple of arrays, these names."""
    if not names:
        return expression
    return f"{', '.join(names)}{'' if is_array or len(names) > 1 else ','} = {expression}"


def _unpacking(names: Sequence[str], call: str) -> str:
    """The line for the results of a function, which are a tuple."""
    return f"{names[0]} = {call}[0]" if len(names) == 1 else assignment(names, call)


def _launch(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    pairs = emitter.in_place_pairs(step)
    name = emitter.kernel_name(emitter.kernel(step), bool(pairs))
    # What is written over is named first: (result, operand).
    call = f"{name}({f'{pairs}, ' if pairs else ''}{emitter.values(step.inputs)})"
    return assignment(names, call, isinstance(step.node.type, TensorType))


def _launch_loop(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    assert isinstance(step, program_plan.LaunchLoop) and isinstance(step.op, ops.NativeWhile)
    assert step.program is not None, "the plan was made with a schedule"
    kernel = engine.loop_kernel(step.program)
    name = emitter.constant(kernel.call, "k")
    emitter.show(name, kernel)
    used = zip(step.carried, step.outputs, strict=True)
    wanted = tuple([k for k, number in used if emitter.plan.is_used(number)])
    reused = tuple([operand for _, operand in emitter.in_place_pairs(step)])
    state = list(step.inputs)
    for k, number in zip(step.carried, step.outputs, strict=True):
        state[k] = number
    return _counted_loop(emitter, step, names, state, f"{name}({wanted}, {reused}")


def _counted_loop(emitter: Emitter, step: Step, names: Sequence[str], state: Sequence[int], loop: str) -> str:
    """The line for a loop, from its call without the carried values; it counts its iterations where that is shown."""
    values, progress = emitter.values(step.inputs), step.op.expect(ops.While).progress
    call, shown = ", ".join(filter(None, [loop, values])), ""
    if emitter.counts:
        call += ", count=counter.iterate"
    elif progress is not None:
        total = f"{emitter.constant(progress)}.total([{values}])"
        shown = f"with show_progress({progress.label!r}, {total}) as counter: "
        call += ", count=counter.step"
    return shown + _next_state(emitter, step, names, state, f"{call})")


def _next_state(emitter: Emitter, step: Step, names: Sequence[str], state: Sequence[int], call: str) -> str:
    """The line for what a loop carried; what it hands on unchanged keeps its name."""
    outputs = dict(zip(step.outputs, names, strict=True))
    targets = [outputs.get(number) or emitter.value(number) for number in state]
    return _unpacking([target if target.isidentifier() else "_" for target in targets], call)


def _loop(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    assert isinstance(step, program_plan.LoopStep) and isinstance(step.op, ops.While)
    if not emitter.lanes and engine.active_engine() == "compiled":
        native = engine.native_loop_step(
            step, emitter.plan.used_state(step), lambda graph: emitter.scope[emitter.function(graph)]
        )
        if isinstance(native, str):
            line = _loop_in_python(
                emitter, step, names, "while_loop_then(" + emitter.constant(step.op) + ", "
            )
            return f"{line}  # in Python, since {native}"
        name = emitter.constant(native.call, "k")
        emitter.show(name, native)
        reused = tuple([operand for _, operand in emitter.in_place_pairs(step)])
        return _counted_loop(emitter, step, names, step.state, f"{name}({reused}")
    return _loop_in_python(emitter, step, names, "while_loop(")


def _loop_in_python(
    emitter: Emitter, step: program_plan.LoopStep, names: Sequence[str], function: str
) -> str:
    functions = f"{emitter.function(step.cond)}, {emitter.function(step.body)}"
    if emitter.lanes and step.inputs:
        call = f"while_lanes({functions}, {emitter.values(step.inputs)})"
        return _next_state(emitter, step, names, step.state, call)
    return _counted_loop(emitter, step, names, step.state, f"{function}{functions}")


def _plan_call(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    assert isinstance(step, program_plan.PlanCall)
    function = emitter.function(step.plan, counts=emitter.counts)
    counter = "counter, " if emitter.counts else ""
    return _unpacking(names, f"{function}({counter}{emitter.values(step.inputs)})")


def _branch(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    assert isinstance(step, program_plan.Branch)
    functions = [emitter.function(each) for each in step.branches]
    chosen, operands = emitter.value(step.inputs[0]), emitter.values(step.inputs[1:])
    if emitter.lanes:
        index = f"np.where({chosen}, 0, 1)" if isinstance(step.op, ops.If) else chosen
        types = [emitter.constant(type.dtype) for type in emitter.types(step.outputs)]
        dtypes = f"({''.join(f'{dtype}, ' for dtype in types)})"
        arguments = f"{index}, ({', '.join(functions)},), {dtypes}{operands and ', '}{operands}"
        return _unpacking(names, f"branch_lanes({arguments})")
    if isinstance(step.op, ops.If):
        return _unpacking(names, f"({functions[0]} if {chosen} else {functions[1]})({operands})")
    return _unpacking(names, f"branch({chosen}, ({', '.join(functions)},))({operands})")


def _python_call(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    op = step.op.expect(ops.CustomCall)
    if emitter.lanes:
        raise BackendError(
            f"backend 'numpy' runs scalar computations on whole arrays and cannot call {op.call_target_name!r} "
            "inside one; call it outside of the combiner, comparator or map"
        )
    types = [each for each in op.result_types if isinstance(each, TensorType)]
    declared = emitter.constant(tuple((type.dtype, type.shape) for type in types))
    attributes = emitter.constant(op.attribute_items)
    operands = "".join(f", {emitter.value(number)}" for number in step.inputs)
    target = repr(op.call_target_name) if op.function is None else emitter.constant(op.function)
    return _unpacking(names, f"custom_call({target}, {attributes}, {declared}{operands})")


def _check(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    assert isinstance(step, program_plan.CheckStep)
    if isinstance(step.op, ops.Check):
        raises = "" if step.op.raises == ops.Check.raises else f", {step.op.raises!r}"
        return f"{names[0]} = check({emitter.values(step.inputs)}, {step.op.message!r}{raises})"
    if names:
        return _python_call(emitter, step, names)
    return f"check_indices({emitter.constant(step.call)}, {emitter.value(step.inputs[0])})"


def _copy(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    return f"{names[0]} = copy_array({emitter.value(step.inputs[0])})"


def _allocate(emitter: Emitter, step: Step, names: Sequence[str]) -> str:
    type = emitter.result_type(step)
    return f"{names[0]} = empty({type.shape}, {emitter.constant(type.dtype)})"


#: How steps are written that no row of the backend's table computes: (emitter, step, names of outputs) -> line.
STEPS: Final[dict[type[Step], Callable[[Emitter, Step, Sequence[str]], str]]] = {
    program_plan.Allocate: _allocate,
    program_plan.Branch: _branch,
    program_plan.CheckStep: _check,
    program_plan.Copy: _copy,
    program_plan.Launch: _launch,
    program_plan.LaunchLoop: _launch_loop,
    program_plan.LoopStep: _loop,
    program_plan.PlanCall: _plan_call,
    program_plan.PythonCall: _python_call,
}


# --- rows --------------------------------------------------------------------------------------------


def _map(emitter: Emitter, step: Step) -> str:
    operands = emitter.values(step.inputs)
    return f"map_lanes({emitter.function(step.op.expect(ops.Map).computation, lanes=True)}, {operands})"


SCOPE: Final[dict[str, Any]] = {
    f.__name__: f
    for f in (
        *(while_loop, while_loop_then, while_lanes, show_progress, check_indices, custom_call),
        *(branch, branch_lanes, map_lanes, copy_array, pool.empty),
    )
}

ROWS: Final[Rows] = {ops.Map: _map}
