"""Parts of arrays at computed starts that are read where they lie, as row i of a matrix that no step of a loop changes.

A part that lies side by side is the address of its first element, if nothing writes to the array, or over the part,
while it is read.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import prod

from xarr.compiler.plan.native_steps import lies_together, list_bases
from xarr.compiler.plan.program_plan import Plan, Step
from xarr.ir import ops
from xarr_numpy.compiled.plans.function_code import FunctionCode


def is_row_view(plan: Plan, step: Step, pointers: Mapping[int, str], copies: Container[int]) -> bool:
    """Whether the result of a step is a part of an argument or a constant that may be read where it lies.

    `pointers` are the addresses of buffers, as far as they are known: no two lie in the memory of an argument that is
    written.  `copies` are views with memory of their own, which is gone after their last reader.
    """
    if not isinstance(step.op, ops.DynamicSlice) or len(step.outputs) != 1:
        return False
    (number,), array = step.outputs, plan.root(step.inputs[0])
    types = [plan.buffers[each].type for each in (step.inputs[0], *step.inputs[1:], number)]
    if any(each.dynamic for each in types):
        return False
    whole, *starts, part = types
    is_part = part.size > 1 and lies_together(whole.shape, part.shape, (1,) * len(whole.shape))
    has_starts = all(each.dtype.kind == "i" for each in starts)
    is_read = array in plan.parameters or plan.buffers[array].constant is not None
    if any(number in copies for number in list_bases(plan, step.inputs[0])):
        return False
    return is_part and has_starts and is_read and not _is_written(plan, number, array, pointers)


def _is_written(plan: Plan, part: int, array: int, pointers: Mapping[int, str]) -> bool:
    """Whether something is written to an array or over its part, or whether the part is a result."""
    roots = {number: plan.root(number) for number in range(len(plan.buffers))}
    written = {each.base for each in plan.buffers if each.base is not None and not each.is_view}
    if any(roots[number] in (part, array) for number in written) or part in map(plan.root, plan.results):
        return True
    if any(plan.parameters[k] == array for k in plan.donated):
        return True
    beside = [number for number, pointer in pointers.items() if pointer == pointers.get(array)]
    return any(roots[number] != array for number in beside)


def write_row_view(code: FunctionCode, step: Step, inputs: Sequence[str]) -> str:
    """The address of a part whose starts are clamped."""
    node, address = step.node, inputs[0]
    whole = node.operands[0].shape
    for axis, (size, kept) in enumerate(zip(whole, node.shape, strict=True)):
        if size == kept:
            continue
        dtype = node.operands[1 + axis].dtype
        kind = f"i{8 * dtype.itemsize}"
        start = code.line(f"load {kind}, ptr {inputs[1 + axis]}, align {dtype.itemsize}")
        start = start if kind == "i64" else code.line(f"sext {kind} {start} to i64")
        for name, limit in (("smax", 0), ("smin", size - kept)):
            code.functions.declarations.add(f"declare i64 @llvm.{name}.i64(i64, i64)")
            start = code.line(f"call i64 @llvm.{name}.i64(i64 {start}, i64 {limit})")
        nbytes = prod(whole[axis + 1 :]) * node.dtype.itemsize
        offset = code.line(f"mul i64 {start}, {nbytes}")
        address = code.line(f"getelementptr i8, ptr {address}, i64 {offset}")
    return address
