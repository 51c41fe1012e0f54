"""Which parts of a graph run as one: compiled loops where llvmlite is installed, else one NumPy call an operation.

The answer depends on the graph and on `config.fusion` alone, never on how often something ran before, so
that a program gives the same bits each time.

A program of Python calls machine code of four kinds: `CompiledKernel` for a group; `LoopKernel` for a loop of points,
`IteratedKernel` for one that repeats a group, `NativeLoopStep` for any other.  `NativePlan` is a small program as one
function, which has the text of all these in it (`compiled/plans/plan_code.py`), as loops have that of loops inside.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.backend import ArrayClass, ArrayMethods
from xarr.base.configuration import current as config
from xarr.compiler.fusion import stage
from xarr.compiler.plan import native_steps, program_plan
from xarr.compiler.plan.planner import plan
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.ops.control import unpack_results
from xarr_numpy.processor import PROCESSOR

if TYPE_CHECKING:
    from xarr.compiler.loop_ir.loops import Kernel
    from xarr.compiler.plan.program_plan import LoopStep, Plan, Step
    from xarr.compiler.schedule import Schedule
    from xarr.compiler.while_loops.bounds_check_hoisting import CheckedLoop
    from xarr.compiler.while_loops.iterated_groups import IteratedGroup
    from xarr.compiler.while_loops.native_loops import NativeLoop
    from xarr.ir.types import TensorType
    from xarr_numpy.compiled.kernel import CompiledKernel
    from xarr_numpy.compiled.loops.iterated_kernel import IteratedKernel
    from xarr_numpy.compiled.loops.loop_kernel import LoopKernel
    from xarr_numpy.compiled.plans.native_step import InPython, NativeLoopStep, NativePlan

Array = np.ndarray[Any, Any]

#: Kernels that are kept.
KEPT: Final = 1024


@cache
def available() -> bool:
    """Whether the compiler is installed (`pip install 'xarr[jit]'`)."""
    return importlib.util.find_spec("llvmlite") is not None


def active_engine() -> str:
    """The engine in use: "compiled" or "off".

    Raises BackendError if `config.fusion` wants the compiler and it is not installed.
    """
    mode = config.fusion
    if mode == "compiled" and not available():
        raise BackendError(
            "config.fusion is 'compiled', which needs llvmlite, and that is not installed: pip install 'xarr[jit]', "
            "or choose 'off' or 'auto', which do not need it"
        )
    if mode == "auto":
        return "compiled" if available() else "off"
    return mode


def description() -> str:
    """The engine in use and why, in one line."""
    asked = "" if config.fusion == "auto" else f", as config.fusion = {config.fusion!r} says"
    if config.fusion == "off":
        return f"none{asked}: one NumPy call for each operation"
    if available():
        from xarr_numpy.compiled.cpython_abi import struct_offsets

        obstacle = struct_offsets.obstacle()
        calls = f"; arrays are passed through ctypes: {obstacle}" if obstacle else ""
        return f"compiled loops (llvmlite {metadata.version('llvmlite')}){asked}{calls}"
    return (
        f"none{asked}: one NumPy call for each operation, as llvmlite is not installed; "
        "for compiled loops pip install 'xarr[jit]'"
    )


def fuse(graph: Graph, hot: bool, run: Callable[[Graph], Sequence[Array]]) -> Graph:
    """`graph` with groups that run as one; `run` gives the results of a graph that only moves elements."""
    if active_engine() == "off":
        return graph
    # Under jit a call of a kernel costs no more than one of NumPy's functions.
    return stage.fuse(
        graph,
        PROCESSOR,
        schedule,
        hot or config.fusion != "auto",
        lambda graph, most: _fold(graph, run, most),
    )


def _fold(graph: Graph, run: Callable[[Graph], Sequence[Array]], most_elements: int) -> Graph:
    from xarr_numpy.compiled.known_values import fold

    return fold(graph, run, most_elements)


# What compiles is loaded when there is something to compile, since that takes a while.


def schedule() -> Schedule:
    """The builders of loop programs."""
    from xarr_numpy.compiled.schedule import SCHEDULE

    return SCHEDULE


def array_methods(array_class: ArrayClass, backend: type[Any]) -> ArrayMethods | None:
    """Methods for small arrays in machine code; None without the compiler, or where objects may not be read."""
    if not available():
        return None
    from xarr_numpy.compiled.small_arrays import methods

    if methods.obstacle(array_class) is not None:
        return None
    made = methods.NativeMethods(array_class, backend)
    return ArrayMethods(made.methods, made.forget_counts, made.host_call, made.slots.fill, made.slots.empty)


def fold_segments(name: str, x: Array, starts: Array) -> Array | None:
    """As `AbstractBackend.fold_segments`; None without the compiler, or where objects may not be read."""
    if not available():
        return None
    from xarr_numpy.compiled import segments
    from xarr_numpy.compiled.cpython_abi import struct_offsets

    return segments.fold(name, x, starts) if struct_offsets.obstacle() is None else None


def fold_of(
    op: ops.Binary, dtype: np.dtype[Any], combine: Callable[[Sequence[Array], Array], None]
) -> Callable[[Sequence[Array], Sequence[Array]], bool] | None:
    """A fold of rows in machine code, which writes it to several arrays; None if it has other bits than `combine`."""
    from xarr_numpy.compiled import folds

    return folds.fold_like(combine, op, dtype)


@lru_cache(KEPT)
def kernel(
    program: Kernel,
    results: tuple[TensorType, ...],
    may_be_quick: bool = False,
    may_be_shared: bool = False,
) -> CompiledKernel:
    """The loop program of a group as a function of arrays, which gives results of these types."""
    from xarr_numpy.compiled.kernel import CompiledKernel

    return CompiledKernel(program, results, may_be_quick, may_be_shared)


def launched_programs(steps: Iterable[Step]) -> list[Kernel]:
    """The loop programs that these steps launch, each once."""
    programs: dict[Kernel, None] = {}
    for step in steps:
        if isinstance(step, program_plan.Launch) and step.program is not None:
            programs[step.program] = None
    return list(programs)


def expect_kernels(steps: Iterable[Step]) -> None:
    """Let the kernels that a program launches next share machine code from the first on, where many are alike."""
    programs = launched_programs(steps)
    if len(programs) >= PROCESSOR.min_alike_kernels:
        from xarr_numpy.compiled.kernel import expect_kernels

        expect_kernels(programs)


def sequential(computation: Graph, steps: int) -> bool:
    """Whether a computation of scalars that must run so often in order is compiled."""
    if active_engine() != "compiled" or (config.fusion == "auto" and steps < PROCESSOR.min_sequential_steps):
        return False
    is_compiled: bool = sequential_module().computes(computation)
    return is_compiled


def sequential_module() -> ModuleType:
    """The module that compiles such computations."""
    from xarr_numpy.compiled.loops import sequential

    return sequential


def loop_kernel_if_any(loop: ops.While) -> tuple[LoopKernel | IteratedKernel, CheckedLoop | None] | None:
    """A loop of which it is not known whether it can be native, as a function of arrays; None if it cannot.

    With its checks taken out if only then it can.
    """
    from xarr.compiler.while_loops.lowering import checked_form

    form = checked_form(loop, PROCESSOR)
    return form and (loop_kernel(form[0]), form[1])


def native_loop_step(step: LoopStep, wanted: Collection[int], in_python: InPython) -> NativeLoopStep | str:
    """A loop of a plan, with all that is inside, as a function of arrays; else the step without code, and why.

    The carried values `wanted` are those that are used afterwards.  `in_python` makes the functions of Python that it
    calls for what has no machine code.
    """
    from xarr_numpy.compiled.plans.native_step import NativeLoopStep
    from xarr_numpy.compiled.plans.plan_code import NotNative

    try:
        return NativeLoopStep(step, wanted, schedule(), in_python)
    except NotNative as error:
        return str(error)


def native_plan(plan: Plan) -> NativePlan | tuple[Step, str] | None:
    """A small plan as one function of arrays, or a step of it that has no machine code, and why; None for others."""
    if active_engine() != "compiled" or not native_steps.is_small(plan, PROCESSOR):
        return None
    from xarr_numpy.compiled.plans.native_step import NativePlan
    from xarr_numpy.compiled.plans.plan_code import NotNative

    for step in plan.steps:
        reason = native_steps.obstacle(step)
        if reason is not None:
            return step, reason
    limits = PROCESSOR.replace(
        max_native_products=PROCESSOR.max_native_call_products,
        max_native_lane_products=PROCESSOR.max_native_call_products,
        max_native_nanoseconds=PROCESSOR.max_native_call_nanoseconds,
    )
    try:
        return NativePlan(plan, schedule(), limits, may_be_quick=True)
    except NotNative as error:
        return error.step, error.reason


def steps_in_python(plan: Plan) -> list[tuple[Step, str]]:
    """The steps of a plan that keep loops, or a small program, from being machine code alone, and why."""
    made = native_plan(plan)
    reasons = [(made[0], f"in Python: {made[1]}")] if isinstance(made, tuple) else []
    if made is None or reasons:
        _look_for_loops(plan, reasons)
    return reasons


def _look_for_loops(plan: Plan, reasons: list[tuple[Step, str]]) -> None:
    """Add those that Python runs as part of a loop or of a branch."""
    if active_engine() != "compiled":
        return
    from xarr_numpy.compiled.plans import plan_code

    for step in plan.steps:
        if isinstance(step, program_plan.LoopStep):
            try:
                code = plan_code.emit(step, plan.used_state(step), schedule())
                reasons += [(each.step, f"called back in Python: {each.reason}") for each in code.calls]
                continue
            except plan_code.NotNative as error:
                reasons.append((step, f"in Python, since {error}"))
                reasons.append((error.step, f"in Python: {error.reason}"))
        for inner in step.plans.values():
            _look_for_loops(inner, reasons)


@lru_cache(KEPT)
def native_loop_if_any(loop: ops.While) -> NativePlan | None:
    """A loop whose operations are in no groups as a function of arrays; None if a step of it has no machine code."""
    from xarr_numpy.compiled.plans.native_step import NativePlan
    from xarr_numpy.compiled.plans.plan_code import NotNative

    state = [parameter(node.type) for node in loop.body.parameters]
    results = unpack_results(Node(ops.While(loop.cond, loop.body), tuple(state)))
    graph = stage.fuse(Graph(state, results), PROCESSOR, schedule, hot=True)
    try:
        return NativePlan(plan(graph, schedule=schedule, target=PROCESSOR), schedule())
    except NotNative:
        return None


@lru_cache(KEPT)
def loop_kernel(program: NativeLoop | IteratedGroup) -> LoopKernel | IteratedKernel:
    """The program of a native loop as a function of arrays."""
    from xarr_numpy.compiled.loops.iterated_kernel import kernel_of

    return kernel_of(program)
