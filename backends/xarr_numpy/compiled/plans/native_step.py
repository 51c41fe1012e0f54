"""A loop of a plan, or a plan, as machine code that runs on NumPy arrays, with all that is inside of it."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from math import prod
from textwrap import indent
from threading import Lock
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from xarr.backend import DirectCall, mark_failed
from xarr.base.host.memory import MIN_POOLED_BYTES, pool
from xarr.base.progress import CountSteps
from xarr.compiler.plan.program_plan import LoopStep, Plan
from xarr.compiler.schedule import Schedule
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.ir.types import TensorType
from xarr_numpy import blas
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.slow_paths import count_lines
from xarr_numpy.compiled.cpython_abi import addresses, builtin, struct_offsets
from xarr_numpy.compiled.loops.loop_kernel import MOST_STEPS, adapt_chunk
from xarr_numpy.compiled.plans import plan_code
from xarr_numpy.compiled.plans.function_code import CallBack, Routine, Static, UfuncPointer
from xarr_numpy.compiled.threads import phases
from xarr_numpy.processor import PROCESSOR, Processor

Array = np.ndarray[Any, Any]

#: Makes the function of a graph, which takes arrays and gives a tuple of them.
InPython: TypeAlias = Callable[[Graph], Callable[..., tuple[Any, ...]]]

#: It keeps Python's lock, which the function lets go of, and raises what a handler of a signal raised.
_RUN: Final = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
_BYTE: Final = np.dtype(np.uint8)
#: How the names of functions end that take one small step after the other.
_SERIAL: Final = ("steps", ".scalars", "_loop", "entry")
#: Modules that are kept, for programs that are made again, and arrays at addresses.
_KEPT: Final = 128


@lru_cache(_KEPT)
def _compile(text: str, names: tuple[str, ...]) -> llvm_jit.Code:
    return llvm_jit.compile_module(text, names, _SERIAL)


class _Native:
    """A function `run`, and the arrays that its table holds; `types` are those of carried values, or of results.

    Code of `quick_lines` lines of LLVM IR and more may be made without optimisation at first; none for None.
    """

    def __init__(
        self,
        code: plan_code.PlanCode,
        types: Sequence[TensorType],
        in_python: InPython | None = None,
        quick_lines: int | None = None,
    ) -> None:
        self._plan_code = code
        self.lines = count_lines(code.text)
        #: Whether the machine code was made without optimisation, so that the first result is there sooner.
        self.is_quick = (
            quick_lines is not None
            and self.lines >= quick_lines
            and llvm_jit.repays_quick_code(self.lines, code.nanoseconds)
        )
        #: What Python computes, in the order of the statics.
        self._calls = [
            _CalledBack(each, in_python)
            for each in code.statics
            if isinstance(each, CallBack) and in_python is not None
        ]
        entry = self._entry(code)
        self._has_entry = bool(entry)
        self.text = code.text + entry
        self._inputs = code.inputs
        self._own = code.own
        self._specs = [(types[k].shape, types[k].dtype) for k in code.own]
        self._table = ctypes.c_void_p * (len(code.inputs) + len(code.own) + 2)
        #: What the statics are, for as long as they are needed, and their addresses.
        self._constants = [_row_major(each.array) for each in code.statics if isinstance(each, ops.Constant)]
        self._shares = "share" in code.statics
        self._lock = Lock()
        self._statics = self._addresses()
        self._load(self.is_quick)

    def _load(self, is_quick: bool) -> None:
        """Make the machine code: what is quick is not kept for others."""
        names = ("run", "entry") if self._has_entry else ("run",)
        if is_quick:
            self._code = llvm_jit.compile_module(self.text, names, _SERIAL, is_quick=True)
        else:
            self._code = _compile(self.text, names)
        self.is_quick = self._code.is_quick
        #: With the code that it is in, which lives as long as a call of it, other code meanwhile or not.
        self._function = self._code, _RUN(self._code.addresses["run"])

    def optimise(self) -> None:
        """Make quick machine code anew, for the calls from now on, unless another thread does meanwhile."""
        if self._lock.acquire(blocking=False):
            try:
                if self.is_quick:
                    self._load(is_quick=False)
            finally:
                self._lock.release()

    @property
    def origin(self) -> str:
        """Where the machine code comes from, and how long that took."""
        return self._code.origin

    def _addresses(self) -> Array:
        constants, calls = iter(self._constants), iter(self._calls)
        shared = phases.shared_addresses() if self._shares else (0, 0)

        def address(each: Static) -> int:
            if isinstance(each, CallBack):
                return id(next(calls))
            if isinstance(each, ops.Constant):
                return int(next(constants).ctypes.data)
            if isinstance(each, Routine):
                return blas.routine(each.name) or 0
            if isinstance(each, UfuncPointer):
                return each.address
            return shared[each == "share"]

        known = np.array([*map(address, self._plan_code.statics), 0], np.uint64)
        return np.concatenate([known, np.array(self._plan_code.numbers, np.int64).view(np.uint64)])

    def _fill(self, values: Sequence[Any], own: Sequence[Array]) -> tuple[Any, Array, Any]:
        """The table, the arena, and what must live until the call is over."""
        table, arena = self._table(), pool.empty((self._plan_code.arena,), _BYTE)
        # A forked process has threads of its own.
        statics = self._addresses() if self._shares else self._statics
        inputs = [values[k] for k in self._inputs]
        copies = addresses.collect(ctypes.addressof(table), inputs, (*own, arena, statics))
        return table, arena, (statics, copies)

    def _run(self, table: Any, most: int, arena: Array) -> int:
        """Call the function; raises what a check raises."""
        code, function = self._function
        iterations: int = function(ctypes.addressof(table), most)
        del code
        if iterations < 0:
            value = arena[:8].view(np.int64)
            self._fail(iterations, int(value[0]))
        return iterations

    def _fail(self, status: int, value: int) -> NoReturn:
        """Raise what the check raises of which the function gave this status."""
        check = self._plan_code.checks[-2 - status]
        try:
            check.fail(value)
        except BaseException as error:
            mark_failed(error, check.outermost)
            raise

    def _entry(self, code: plan_code.PlanCode) -> str:
        """The text of a built-in function `entry`, if there is to be one."""
        return ""


class _CalledBack:
    """A function that machine code calls with the address of a table of its operands and results."""

    def __init__(self, call: CallBack, in_python: InPython) -> None:
        self.function = in_python(call.graph)
        nodes = (*call.graph.parameters, *call.graph.results)
        self.specs = [(node.tensor_type.nbytes, node.shape, node.dtype) for node in nodes]
        self.table = ctypes.c_void_p * len(nodes)
        self.operands = len(call.graph.parameters)
        #: Arrays at addresses where operands and results have lain.
        self.arrays: dict[tuple[int, int | None], Array] = {}

    def __call__(self, address: int) -> None:
        arrays = [self._array(key) for key in enumerate(self.table.from_address(address))]
        results = self.function(*arrays[: self.operands])
        for array, result in zip(arrays[self.operands :], results, strict=True):
            array[...] = result

    def _array(self, key: tuple[int, int | None]) -> Array:
        array = self.arrays.get(key)
        if array is None:
            if len(self.arrays) >= _KEPT:
                self.arrays.clear()
            number, address = key
            nbytes, shape, dtype = self.specs[number]
            memory: Any = (ctypes.c_byte * nbytes).from_address(address or 0) if nbytes else None
            array = self.arrays[key] = np.ndarray(shape, dtype, memory)
        return array


class NativeLoopStep(_Native):
    """The machine code of a loop.  `call` takes the carried values and gives those after the last iteration.

    `in_python` makes functions of Python of what has no machine code.  Raises NotNative for a loop with a step that
    has neither.
    """

    def __init__(
        self, step: LoopStep, wanted: Collection[int], schedule: Schedule, in_python: InPython
    ) -> None:
        types = [step.body.buffers[number].type for number in step.body.parameters]
        code = plan_code.emit(step, wanted, schedule)
        super().__init__(code, types, in_python, PROCESSOR.min_quick_lines)
        self.step = step
        #: Seconds for which quick code is to run.
        self._left = self.lines * PROCESSOR.optimising_time * PROCESSOR.quick_share * 1e-9

    def call(self, free: Sequence[int], *operands: Any, count: CountSteps | None = None) -> tuple[Any, ...]:
        """The carried values after the loop, as far as they are wanted.

        The operands `free` may be written to, unless they are read-only.  `count` is told the iterations of each
        chunk; then the first chunks are short.
        """
        state = [each if type(each) is np.ndarray else np.asarray(each) for each in operands]
        in_place = self._plan_code.in_place
        own = [
            _own(state[k], k in free) if k in in_place else pool.empty(*spec)
            for k, spec in zip(self._own, self._specs, strict=True)
        ]
        table, arena, held = self._fill(state, own)
        most, total = 1, 0
        while True:
            if self.is_quick and self._left <= 0:
                self.optimise()  # which goes on where the quick code has ended
            if count is None and not self.is_quick:
                most = MOST_STEPS
            started = time.perf_counter()
            iterations = self._run(table, most, arena)
            seconds = time.perf_counter() - started
            self._left -= seconds
            total += iterations
            if count is not None and iterations:
                count(iterations)
            if iterations < most:
                break
            most = adapt_chunk(most, seconds)
        del held
        for k, array in zip(self._own, own, strict=True):
            if total or k in in_place:
                state[k] = array
        return tuple(state)

    def __str__(self) -> str:
        """The plans of the condition and of the body."""
        return f"native loop: all of it in machine code\n{self.step.cond}\n{self.step.body}"


class NativePlan(_Native):
    """The machine code of a plan that writes over no argument.  `call` takes the arguments and gives the results.

    `direct` is the same as one built-in function, where machine code may read array objects.

    Raises NotNative for a plan with a step that has no machine code.
    """

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        limits: Processor = PROCESSOR,
        may_be_quick: bool = False,
    ) -> None:
        types = [plan.buffers[number].type for number in plan.results]
        #: For each result the argument that it is, if it is one.
        self._arguments = [
            plan.parameters.index(number) if number in plan.parameters else None for number in plan.results
        ]
        code = plan_code.emit_plan(plan, schedule, limits)
        super().__init__(code, types, quick_lines=PROCESSOR.min_quick_lines if may_be_quick else None)

    def call(self, *operands: Any) -> tuple[Any, ...]:
        """The results; those that are arguments are these themselves.

        Quick code that runs for a while gives up, and optimised code begins anew.
        """
        own = [pool.empty(*spec) for spec in self._specs]
        table, arena, held = self._fill([np.asarray(operand) for operand in operands], own)
        if self._run(table, int(self.is_quick), arena):
            self.optimise()
            self._run(table, 0, arena)
        del held
        made = dict(zip(self._own, own, strict=True))
        return tuple(
            [made[k] if number is None else operands[number] for k, number in enumerate(self._arguments)]
        )

    def _entry(self, code: plan_code.PlanCode) -> str:
        # Threads differ from process to process, and the class of arrays is that of the last result.
        operands, results = len(code.inputs), len(code.own)
        if not results or operands + results > builtin.MAX_ARRAYS or "share" in code.statics:
            return ""
        if not struct_offsets.works():
            return ""
        arena = code.arena
        if code.numbers:  # Programs that are alike have arenas that are about as large.
            arena = max(builtin.MAX_STACK_BYTES, 1 << (arena - 1).bit_length())
        if arena >= MIN_POOLED_BYTES:  # pages that are fresh in each call cost more than Python
            return ""
        return builtin.plan_entry_text("entry", operands, results, arena)

    def _load(self, is_quick: bool) -> None:
        super()._load(is_quick)
        # Quick code is never one built-in function, whose calls nobody would time.
        self.direct = None if self.is_quick or not self._has_entry else self._direct()

    def _direct(self) -> DirectCall:
        run = builtin.function(self._code.addresses["entry"], self._statics, self._fail, self._code)
        specs = iter(self._specs)
        return DirectCall(
            pool.empty
            if any(prod(shape) * dtype.itemsize >= MIN_POOLED_BYTES for shape, dtype in self._specs)
            else np.empty,
            tuple([next(specs) if number is None else None for number in self._arguments]),
            tuple(self._arguments),
            run,
            holds_lock=False,
        )

    def __str__(self) -> str:
        """The loop programs that it runs."""
        lines = ["machine code of all steps:"]
        for number, part in enumerate(self._plan_code.parts):
            lines += [f"part {number}:", indent(str(part), "    ")]
        return "\n".join(lines)


def _own(array: Array, is_free: bool) -> Array:
    """An array that may be written to: this one, or a copy."""
    if is_free and array.flags.carray:
        return array
    copy = pool.empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _row_major(array: Any) -> Array:
    """The array, or a copy of it that lies in row-major order."""
    whole = np.asarray(array)
    flags = whole.flags
    return whole if flags.c_contiguous and flags.aligned else np.array(whole, order="C")
