"""Loops over points inside of other code: calls of the functions of `loop_code`, chunk after chunk."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xarr.compiler.loop_ir.scalars import in_order
from xarr.compiler.while_loops.native_loops import NativeLoop
from xarr_numpy.compiled.codegen.registers import order_of
from xarr_numpy.compiled.loops import loop_code
from xarr_numpy.compiled.loops.loop_code import LONGEST, MORE, STEPS, WANTED
from xarr_numpy.compiled.plans.function_code import FunctionCode
from xarr_numpy.compiled.threads import costs
from xarr_numpy.compiled.threads.phases import Phase
from xarr_numpy.processor import PROCESSOR

#: Iterations of a loop of which that is not known.
USUAL_ITERATIONS = 100


def write(
    code: FunctionCode,
    loop: NativeLoop,
    before: Sequence[str],
    after: Sequence[str | None],
    wanted: Collection[int],
    iterations: int | None,
) -> None:
    """Run a loop; the addresses of its carried values before and after, and those of which the results are used."""
    code.loops += 1
    carried, prefix = loop.carried, f"loop{len(code.functions.texts)}."
    loop_code.add_functions(code.functions, loop, prefix)
    if not loop.has_points():
        code.lengths[f"{prefix}scalars"] = code.functions.texts[-1].count("\n")
    count = len(carried)
    table = code.first(f"alloca [{2 * count + 2} x ptr], align 8")
    ones = code.integers([1] * count)
    control = code.integers([0] * WANTED + [int(k in wanted) for k in range(count)])
    slots = [code.first(f"getelementptr ptr, ptr {table}, i64 {k}") for k in range(2 * count + 2)]
    before = [code.outer_address(pointer) for pointer in before]
    for slot, pointer in zip(slots[2 * count :], (ones, control), strict=True):
        code.entry.append(f"store ptr {pointer}, ptr {slot}, align 8")
    for k, (old, new, each) in enumerate(zip(before, after, carried, strict=True)):
        if new is not None:
            code.write(f"store ptr {new}, ptr {slots[count + k]}, align 8")
            if each.kind == "table":  # it is read where it is written
                code.copy(new, old, each.size * each.dtype.itemsize)
                old = new
        code.write(f"store ptr {old}, ptr {slots[k]}, align 8")
    most = max(1, int(PROCESSOR.max_unpolled_nanoseconds / _step_time(loop)))
    usual = min(most, iterations or USUAL_ITERATIONS)
    if _points(loop, usual).plan_in_threads() is None:
        most = min(most, _steps_together(loop) or most)
    if iterations is not None and iterations < most:
        _chunk(code, loop, prefix, table, control, most, iterations)
        return
    nanoseconds = most * _step_time(loop)
    code.loops_cost += max(0, (iterations or USUAL_ITERATIONS) - most) * _step_time(loop)
    code.longest = max(code.longest, nanoseconds)
    chunk, on, done = code.labels("chunk", "on", "done")
    code.jump(chunk)
    code.begin(chunk)
    steps = _chunk(code, loop, prefix, table, control, most, min(most, iterations or USUAL_ITERATIONS))
    code.write(f"br i1 {code.line(f'icmp slt i64 {steps}, {most}')}, label %{done}, label %{on}")
    code.begin(on)
    for k, new in enumerate(after):
        if new is not None:
            code.write(f"store ptr {new}, ptr {slots[k]}, align 8")
    code.poll(nanoseconds)
    code.jump(chunk)
    code.begin(done)


def _chunk(
    code: FunctionCode, loop: NativeLoop, prefix: str, table: str, control: str, most: int, usual: int
) -> str:
    """Take up to `most` steps, `usual` ones about; how many were taken."""
    scalars = f"call i64 @{prefix}scalars(ptr {table}, i64 "
    nanoseconds = usual * _step_time(loop)
    if not loop.has_points():
        code.cost += nanoseconds
        return code.line(f"{scalars}{most}, i64 1){code.inline(f'{prefix}scalars', is_loop=True)}")
    steps = code.line(f"{scalars}{most}, i64 0)")
    more = code.line(f"zext i1 {code.line(f'icmp eq i64 {steps}, {most}')} to i64")
    for number, value in ((STEPS, steps), (MORE, more), (LONGEST, "0")):
        where = code.first(f"getelementptr i64, ptr {control}, i64 {number}")
        code.write(f"store i64 {value}, ptr {where}, align 8")
    points = _points(loop, usual)
    if nanoseconds < PROCESSOR.min_waking_nanoseconds:
        code.cost += nanoseconds
        code.write(f"call void @{prefix}points(ptr {table}, i64 0, i64 {code.number(points.extent)})")
    else:
        code.share(f"{prefix}points", points, table)
    if loop.alive is not None:
        where = code.first(f"getelementptr i64, ptr {control}, i64 {LONGEST}")
        steps = code.line(f"load i64, ptr {where}, align 8")
    return code.line(f"{scalars}{steps}, i64 1)")


def _points(loop: NativeLoop, steps: int) -> Phase:
    """The work of so many steps of all points."""
    tiles = -(-loop.count // loop_code.width_of(loop))
    return Phase(0, tiles, steps * _step_time(loop) / tiles)


def _steps_together(loop: NativeLoop) -> int:
    """Steps that all points take together, so that rows of large tables are read and written side by side; 0 if the
    points may take all steps one after the other.
    """
    rows = {
        value.attribute.number
        for value in in_order(*loop.roots())
        if value.op == "load" and value.attribute.wide
    }
    tables = [loop.carried[number] for number in rows | {write.number for write in loop.writes if write.wide}]
    nbytes = sum(each.size * each.dtype.itemsize for each in tables)
    if nbytes <= PROCESSOR.cache_bytes or loop.done:
        return 0
    return max(1, PROCESSOR.rows_bytes // (loop.count * sum(each.dtype.itemsize for each in tables)))


def _step_time(loop: NativeLoop) -> float:
    """Nanoseconds of a step of all points, or of the scalars if there are no points."""
    has_points = loop.has_points()
    time = 1 + costs.operations(order_of(loop.roots()), in_lanes=has_points)
    return time * (max(1, loop.count) if has_points else 1)
