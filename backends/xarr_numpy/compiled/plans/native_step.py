"""A loop of a plan as machine code that runs on NumPy arrays, with all that is inside of it."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xarr.base.progress import CountSteps
from xarr.compiler.plan.program_plan import LoopStep
from xarr.compiler.schedule import Schedule
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.loops.loop_kernel import MOST_STEPS, adapt_chunk
from xarr_numpy.compiled.plans import plan_code
from xarr_numpy.compiled.plans.function_code import Slot
from xarr_numpy.compiled.threads import phases
from xarr_numpy.memory import pool

Array = np.ndarray[Any, Any]

#: It keeps Python's lock, which the function lets go of, and raises what a handler of a signal raised.
_RUN: Final = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


class NativeLoopStep:
    """The machine code of a loop.  `call` takes the carried values and gives those after the last iteration.

    Raises NotNative for a loop with a step that has no machine code.
    """

    def __init__(self, step: LoopStep, schedule: Schedule) -> None:
        self.step = step
        code = plan_code.emit(step, schedule)
        self.text = code.text
        self._slots = code.slots
        self._arena = code.arena
        self._checks = code.checks
        self._failure = code.failure
        self._code = llvm_jit.compile_module(code.text, ["run"])
        self._run = _RUN(self._code.addresses["run"])
        self._table = ctypes.c_void_p * len(code.slots)
        self._types = [
            (node.tensor_type.shape, node.tensor_type.dtype) for node in step.op.graphs[1].parameters
        ]

    @property
    def origin(self) -> str:
        """Where the machine code comes from, and how long that took."""
        return self._code.origin

    def call(self, free: Sequence[int], *operands: Any, count: CountSteps | None = None) -> tuple[Any, ...]:
        """The carried values after the loop; the operands `free` may be written to, unless they are read-only.

        `count` is told the iterations of each chunk; then the first chunks are short.
        """
        state = [np.asarray(operand) for operand in operands]
        arrays = [self._array(slot, state, free) for slot in self._slots]
        addresses = [each if isinstance(each, int) else each.ctypes.data for each in arrays]
        table = self._table(*addresses)
        address = ctypes.addressof(table)
        most = MOST_STEPS if count is None else 1
        while True:
            started = time.perf_counter()
            iterations = self._run(address, most)
            if iterations < 0:
                value = arrays[0][self._failure :][:8]
                self._checks[-2 - iterations].fail(int(value.view(np.int64)[0]))
            if count is not None and iterations:
                count(iterations)
            if iterations < most:
                break
            most = adapt_chunk(most, time.perf_counter() - started)
        own: dict[tuple[int, int | None], Array] = {
            (slot.number, address): array
            for slot, array, address in zip(self._slots, arrays, addresses, strict=True)
            if slot.kind in ("next", "spare")
        }
        for number, slot in enumerate(self._slots):
            if slot.kind == "in place":
                state[slot.number] = arrays[number]
            elif slot.kind == "state":  # its own arrays, if there was an iteration
                state[slot.number] = own.get((slot.number, table[number]), state[slot.number])
        return tuple(state)

    def _array(self, slot: Slot, state: list[Array], free: Sequence[int]) -> Any:
        """The array of a slot, or the address that stands there."""
        match slot.kind:
            case "arena":
                return pool.empty((self._arena,), np.dtype(np.uint8))
            case "pool":
                return phases.shared_addresses()[0]
            case "share":
                return phases.shared_addresses()[1]
            case "constant":
                assert slot.constant is not None
                return _row_major(slot.constant.array)
            case "fixed" | "state":
                return _row_major(state[slot.number])
            case "in place":
                array = state[slot.number]
                if slot.number in free and array.flags.carray:
                    return array
                own = pool.empty(array.shape, array.dtype)
                own[...] = array
                return own
            case _:
                return pool.empty(*self._types[slot.number])

    def __str__(self) -> str:
        """The plans of the condition and of the body."""
        return f"native loop: all of it in machine code\n{self.step.cond}\n{self.step.body}"


def _row_major(array: Any) -> Array:
    """The array, or a copy of it that lies in row-major order."""
    whole = np.asarray(array)
    flags = whole.flags
    return whole if flags.c_contiguous and flags.aligned else np.array(whole, order="C")
