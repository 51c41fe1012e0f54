"""A loop of a plan, or a plan, as machine code that runs on NumPy arrays, with all that is inside of it."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from xarr.base.progress import CountSteps
from xarr.compiler.plan.program_plan import LoopStep, Plan
from xarr.compiler.schedule import Schedule
from xarr.ir.types import TensorType
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.loops.loop_kernel import MOST_STEPS, adapt_chunk
from xarr_numpy.compiled.plans import plan_code
from xarr_numpy.compiled.plans.function_code import Slot
from xarr_numpy.compiled.threads import phases
from xarr_numpy.memory import pool

Array = np.ndarray[Any, Any]

#: It keeps Python's lock, which the function lets go of, and raises what a handler of a signal raised.
_RUN: Final = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
#: Modules that are kept, for programs that are made again.
_KEPT: Final = 128


@lru_cache(_KEPT)
def _compile(text: str) -> llvm_jit.Code:
    return llvm_jit.compile_module(text, ["run"])


class _Native:
    """A function `run`, and the arrays that its table holds."""

    def __init__(self, code: plan_code.PlanCode) -> None:
        self._plan_code = code
        self._code = _compile(code.text)
        self._function = _RUN(self._code.addresses["run"])
        self._table = ctypes.c_void_p * len(code.slots)

    @property
    def origin(self) -> str:
        """Where the machine code comes from, and how long that took."""
        return self._code.origin

    def _run(self, table: Any, most: int, arena: Array) -> int:
        """Call the function; raises what a check raises."""
        iterations: int = self._function(ctypes.addressof(table), most)
        if iterations < 0:
            value = arena[self._plan_code.failure :][:8].view(np.int64)
            self._plan_code.checks[-2 - iterations].fail(int(value[0]))
        return iterations

    def _array(self, slot: Slot, inputs: Sequence[Array], types: Sequence[TensorType]) -> Any:
        """The array of a slot, or the address that stands there; `types` are those of carried values, or of results."""
        match slot.kind:
            case "arena":
                return pool.empty((self._plan_code.arena,), np.dtype(np.uint8))
            case "pool":
                return phases.shared_addresses()[0]
            case "share":
                return phases.shared_addresses()[1]
            case "constant":
                assert slot.constant is not None
                return _row_major(slot.constant.array)
            case "fixed" | "state":
                return _row_major(inputs[slot.number])
            case _:
                type = types[slot.number]
                return pool.empty(type.shape, type.dtype)


class NativeLoopStep(_Native):
    """The machine code of a loop.  `call` takes the carried values and gives those after the last iteration.

    Raises NotNative for a loop with a step that has no machine code.
    """

    def __init__(self, step: LoopStep, schedule: Schedule) -> None:
        super().__init__(plan_code.emit(step, schedule))
        self.step = step
        self._types = [step.body.buffers[number].type for number in step.body.parameters]

    def call(self, free: Sequence[int], *operands: Any, count: CountSteps | None = None) -> tuple[Any, ...]:
        """The carried values after the loop; the operands `free` may be written to, unless they are read-only.

        `count` is told the iterations of each chunk; then the first chunks are short.
        """
        state = [np.asarray(operand) for operand in operands]
        slots = self._plan_code.slots
        arrays = [
            _own(state[slot.number], slot.number in free)
            if slot.kind == "in place"
            else self._array(slot, state, self._types)
            for slot in slots
        ]
        addresses = [_address(each) for each in arrays]
        table = self._table(*addresses)
        most = MOST_STEPS if count is None else 1
        while True:
            started = time.perf_counter()
            iterations = self._run(table, most, arrays[0])
            if count is not None and iterations:
                count(iterations)
            if iterations < most:
                break
            most = adapt_chunk(most, time.perf_counter() - started)
        own: dict[tuple[int, int | None], Array] = {
            (slot.number, address): array
            for slot, array, address in zip(slots, arrays, addresses, strict=True)
            if slot.kind in ("next", "spare")
        }
        for number, slot in enumerate(slots):
            if slot.kind == "in place":
                state[slot.number] = arrays[number]
            elif slot.kind == "state":  # its own arrays, if there was an iteration
                state[slot.number] = own.get((slot.number, table[number]), state[slot.number])
        return tuple(state)

    def __str__(self) -> str:
        """The plans of the condition and of the body."""
        return f"native loop: all of it in machine code\n{self.step.cond}\n{self.step.body}"


class NativePlan(_Native):
    """The machine code of a plan that writes over no argument.  `call` takes the arguments and gives the results.

    Raises NotNative for a plan with a step that has no machine code.
    """

    def __init__(self, plan: Plan, schedule: Schedule) -> None:
        super().__init__(plan_code.emit_plan(plan, schedule))
        self._types = [plan.buffers[number].type for number in plan.results]
        #: For each result the argument that it is, if it is one.
        self._arguments = [
            plan.parameters.index(number) if number in plan.parameters else None for number in plan.results
        ]

    def call(self, *operands: Any) -> tuple[Any, ...]:
        """The results; those that are arguments are these themselves."""
        inputs = [np.asarray(operand) for operand in operands]
        slots = self._plan_code.slots
        arrays = [self._array(slot, inputs, self._types) for slot in slots]
        self._run(self._table(*map(_address, arrays)), 0, arrays[0])
        made = {
            slot.number: array for slot, array in zip(slots, arrays, strict=True) if slot.kind == "result"
        }
        return tuple(
            [made[k] if number is None else operands[number] for k, number in enumerate(self._arguments)]
        )


def _own(array: Array, is_free: bool) -> Array:
    """An array that may be written to: this one, or a copy."""
    if is_free and array.flags.carray:
        return array
    copy = pool.empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _address(array: Any) -> int:
    return array if isinstance(array, int) else int(array.ctypes.data)


def _row_major(array: Any) -> Array:
    """The array, or a copy of it that lies in row-major order."""
    whole = np.asarray(array)
    flags = whole.flags
    return whole if flags.c_contiguous and flags.aligned else np.array(whole, order="C")
