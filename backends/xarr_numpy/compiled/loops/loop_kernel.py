"""A native loop as machine code that runs on NumPy arrays.

It runs in chunks of steps that take about a tenth of a second, between which Python sees to interrupts and
progress bars are drawn.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xarr.base.host.memory import pool
from xarr.base.progress import CountSteps
from xarr.compiler.while_loops.fully_written import fully_written_tables
from xarr.compiler.while_loops.native_loops import Carried, NativeLoop
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.registers import order_of
from xarr_numpy.compiled.cpython_abi import addresses
from xarr_numpy.compiled.loops import loop_code
from xarr_numpy.compiled.loops.loop_code import LONGEST, WANTED
from xarr_numpy.compiled.threads import costs
from xarr_numpy.compiled.threads.phases import Phase
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]

#: A chunk that takes less is followed by a longer one, and one that takes more by a shorter one.
SHORT_SECONDS: Final = 0.05
LONG_SECONDS: Final = 0.2
MOST_STEPS: Final = 2**40


class LoopKernel:
    """The machine code of a loop.  `call` takes the carried values and gives those after the last step."""

    def __init__(self, loop: NativeLoop) -> None:
        self.loop = loop
        self.text = loop_code.emit(loop)
        self._has_points = loop.has_points()
        self._width = loop_code.width_of(loop)
        self._tiles = -(-loop.count // self._width)
        self._cost = loop.cost()
        names = ["scalars", *(["points"] if self._has_points else [])]
        self._code = llvm_jit.compile_module(self.text, names)
        scalars = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._scalars = scalars(self._code.addresses["scalars"])
        #: Nanoseconds of a step of one tile, or of the scalars if there are no points.
        self._step = costs.operations(order_of(loop.roots()), in_lanes=self._has_points)
        if self._has_points:
            self._step *= self._width
        self._table = ctypes.c_void_p * (2 * len(loop.carried) + 2)
        #: What the control array holds before the first step, by the values that are wanted.
        self._controls: dict[frozenset[int], Array] = {}
        self._loaded = loop.loaded_values()
        self._fully_written = fully_written_tables(loop)

    @property
    def origin(self) -> str:
        """Where the machine code comes from, and how long that took."""
        return self._code.origin

    def call(
        self, wanted: Sequence[int], free: Sequence[int], *operands: Any, count: CountSteps | None = None
    ) -> tuple[Any, ...]:
        """The carried values after the loop; of arrays of points only those `wanted` are good for anything.

        The operands `free` may be written to, unless they are read-only.  `count` is told the steps of each
        chunk; then the first chunks are short.
        """
        run = _LoopCall(self, frozenset(wanted), frozenset(free), operands)
        most = (
            1
            if count is not None
            else max(1, PROCESSOR.first_chunk_operations // (self._cost * max(1, self.loop.count // 16)))
        )
        while True:
            started = time.perf_counter()
            steps = self._chunk(run, most)
            if count is not None and steps:
                count(steps)
            if steps < most:
                return run.results()
            run.go_on()
            most = adapt_chunk(most, time.perf_counter() - started)

    def _chunk(self, run: _LoopCall, most: int) -> int:
        """Take up to `most` steps; how many were taken."""
        if not self._has_points:
            return int(self._scalars(run.address, most, 1))
        steps = int(self._scalars(run.address, most, 0))
        run.control[:WANTED] = steps, steps == most, 0
        points = Phase(self._code.addresses["points"], self._tiles, max(1, steps) * self._step)
        points.run(run.address, held=(self, run))
        if self.loop.alive is not None:
            steps = int(run.control[LONGEST])
        return int(self._scalars(run.address, steps, 1))

    def control(self, wanted: frozenset[int]) -> Array:
        """A new control array of a call after which these carried values are wanted."""
        if wanted not in self._controls:
            flags = [int(number in wanted) for number in range(len(self.loop.carried))]
            self._controls[wanted] = np.array([0] * WANTED + flags, np.int64)
        return self._controls[wanted].copy()

    def __str__(self) -> str:
        """One step as text."""
        return str(self.loop)


def adapt_chunk(most: int, seconds: float) -> int:
    """The number of iterations of the chunk after one of `most` that took so long."""
    if seconds < SHORT_SECONDS:
        return min(4 * most, MOST_STEPS)
    return max(1, most // 2) if seconds > LONG_SECONDS else most


class _LoopCall:
    """The memory of one call."""

    def __init__(
        self, kernel: LoopKernel, wanted: frozenset[int], free: frozenset[int], operands: tuple[Any, ...]
    ) -> None:
        self.free = free
        self.carried = kernel.loop.carried
        self.operands = operands
        count = len(self.carried)
        self.steps = np.zeros(count, np.int64)
        self.control = kernel.control(wanted)
        unread = {
            number
            for number, rows in kernel._fully_written.items()
            if rows.holds(*(int(np.asarray(operands[k]).item()) for k in (rows.counter, rows.limit)))
        }
        self.after = [
            self._output_array(number, each, number in unread) for number, each in enumerate(self.carried)
        ]
        self.before = [
            self._input_array(number, kernel, np.asarray(operand)) for number, operand in enumerate(operands)
        ]
        self._pointers = kernel._table()
        self.address = ctypes.addressof(self._pointers)
        outputs = [old if new is None else new for old, new in zip(self.before, self.after, strict=True)]
        addresses.collect(self.address, (), (*self.before, *outputs, self.steps, self.control))

    def _input_array(self, number: int, kernel: LoopKernel, operand: Array) -> Array:
        is_one = self.carried[number].kind == "points" and not any(operand.strides)
        if is_one and number not in kernel._loaded:
            return np.full(kernel._width, operand.reshape(-1)[:1])
        self.steps[number] = 1
        after = self.after[number]
        if after is not None and self.carried[number].kind == "table":  # it is read where it is written
            return after
        return np.ascontiguousarray(operand)

    def _output_array(self, number: int, carried: Carried, is_unread: bool) -> Array | None:
        operand = np.asarray(self.operands[number])
        if carried.is_fixed:
            return None
        if number in self.free and operand.flags.carray:
            return operand
        copy = pool.empty(operand.shape, operand.dtype)
        if carried.kind == "table" and not is_unread:
            copy[...] = operand
        return copy

    def go_on(self) -> None:
        """Let the next chunk begin where the last one ended."""
        for number, array in enumerate(self.after):
            if array is not None:
                self._pointers[number] = array.ctypes.data
                self.steps[number] = 1

    def results(self) -> tuple[Any, ...]:
        pairs = zip(self.operands, self.after, strict=True)
        return tuple([operand if array is None else array for operand, array in pairs])
