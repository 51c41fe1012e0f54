"""Loops that repeat one group of fused operations, as native loops over its kernel.

Two arrays for each carried one alternate as input and output of a step.  A small group runs step
after step.  The rows of a large grid go through several steps while they lie in a processor's cache: behind
the front of the first step, `radius` rows later, follows that of the second, and so on.  That needs that a step
reads rows at most `radius` away from those that it writes, and that what lies around the rows stays as it is.

Threads take ranges of rows.  Near the boundaries between them each step leaves out `radius` rows more than the one
before; these are done when all threads have ended.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from xarr.base.host.memory import pool
from xarr.base.progress import CountSteps
from xarr.compiler.while_loops.iterated_groups import IteratedGroup
from xarr.compiler.while_loops.native_loops import NativeLoop
from xarr_numpy import workers
from xarr_numpy.compiled.codegen import emitter, llvm_jit
from xarr_numpy.compiled.loops import wavefront_code
from xarr_numpy.compiled.loops.loop_kernel import LoopKernel
from xarr_numpy.compiled.threads import costs
from xarr_numpy.compiled.threads.phases import Phase
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]


class IteratedKernel:
    """The machine code of an iterated group.  `call` is that of a `LoopKernel`."""

    def __init__(self, group: IteratedGroup) -> None:
        self.group = group
        self.program = group.kernel
        self._scalars = LoopKernel(group.scalars)
        functions, names = emitter.functions_of(self.program)
        functions.texts.append(wavefront_code.driver(self.program, names))
        names = ["steps", "ranges", "boundaries"]
        self._code = llvm_jit.compile_module(functions.module(), names, serial=(*names, "front"))
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        steps = ctypes.CFUNCTYPE(None, pointer, pointer, integer)
        self._steps = steps(self._code.addresses["steps"])
        buffers = (*self.program.inputs, *self.program.outputs, *self.program.scratch)
        self._table = pointer * len(buffers)

    @property
    def origin(self) -> str:
        """Where the machine code comes from, and how long that took."""
        return f"{self._code.origin}, its scalars {self._scalars.origin}"

    def call(
        self, wanted: Sequence[int], free: Sequence[int], *operands: Any, count: CountSteps | None = None
    ) -> tuple[Any, ...]:
        """The carried values after the loop; `count` is told how many steps were taken.

        All of them, `wanted` or not: a step makes every array.  The operands `free` may be written to.
        """
        steps, state = self._count([operands[k] for k in self.group.scalar_indices])
        results = list(operands)
        for number, value in zip(self.group.scalar_indices, state, strict=True):
            results[number] = value
        for number, value in self._repeat(steps, frozenset(free), count, operands).items():
            results[number] = value
        return tuple(results)

    def _count(self, state: list[Any]) -> tuple[int, tuple[Any, ...]]:
        """The number of steps, and the scalars after them."""
        counts: list[int] = []
        everything = range(len(state))
        after = self._scalars.call(everything, (), *state, count=counts.append)
        return sum(counts), after

    def _repeat(
        self, steps: int, free: frozenset[int], count: CountSteps | None, operands: tuple[Any, ...]
    ) -> dict[int, Any]:
        """The arrays after so many steps, by carried value."""
        run = _Tables(self, free, operands)
        done = 0
        # Two steps of all phases: after them both arrays hold what no step changes.
        while done < min(steps, 2):
            self._steps(run.address(done), run.address(done + 1), 1)
            run.note_step()
            done += 1
            if count is not None:
                count(1)
        most, block = self._chunk()
        while done < steps:
            chunk = min(most, steps - done)
            if self.group.radius is None:
                self._steps(run.address(done), run.address(done + 1), chunk)
            else:
                self._fronts(run, done, chunk, block)
            done += chunk
            if count is not None:
                count(chunk)
        return run.results(steps)

    def _chunk(self) -> tuple[int, int]:
        """Steps that are taken at once, and rows that go through them together."""
        program, radius = self.program, self.group.radius
        if radius is None:
            elements = sum(buffer.size for buffer in (*program.inputs, *program.outputs))
            return max(1, PROCESSOR.uninterrupted_elements // elements), 1
        phase = program.phases[-1]
        assert isinstance(phase.extent, int), "rows were counted"
        buffers = [
            b for k, b in zip(self.group.operands, program.inputs, strict=True) if k in self.group.results
        ]
        row = sum(buffer.nbytes for buffer in (*buffers, *program.outputs)) // max(1, phase.extent)
        rows = PROCESSOR.wavefront_bytes // max(1, row)
        steps = max(1, min((rows // 2 - radius) // max(1, radius), phase.extent // 8))
        return steps, max(1, rows - (steps + 2) * radius)

    def _fronts(self, run: _Tables, done: int, steps: int, block: int) -> None:
        phase, radius = self.program.phases[-1], self.group.radius
        assert isinstance(phase.extent, int) and radius is not None
        rows = phase.extent
        ranges = max(1, min(workers.count(), rows // max(1, 4 * steps * radius)))
        numbers = (run.address(done), run.address(done + 1), rows, ranges, steps, radius, block)
        arguments = (ctypes.c_int64 * wavefront_code.FIELDS)(*numbers)
        address = ctypes.addressof(arguments)
        row = costs.iteration(phase)
        held = (self, run, arguments)
        Phase(self._code.addresses["ranges"], ranges, steps * rows * row / ranges).run(address, held)
        if ranges > 1:
            boundary = steps * steps * radius * row
            Phase(self._code.addresses["boundaries"], ranges - 1, boundary).run(address, held)


def kernel_of(program: NativeLoop | IteratedGroup) -> LoopKernel | IteratedKernel:
    """The machine code of a native loop."""
    return IteratedKernel(program) if isinstance(program, IteratedGroup) else LoopKernel(program)


class _Tables:
    """The arrays of one call, and the tables of their addresses for steps with even and odd numbers."""

    def __init__(self, kernel: IteratedKernel, free: frozenset[int], operands: tuple[Any, ...]) -> None:
        self.group = kernel.group
        self.operands = operands
        self.free = free
        self.inputs = {k: np.ascontiguousarray(operands[k]) for k in kernel.group.operands}
        self.pairs = {k: _pair(np.asarray(operands[k]), k in free) for k in kernel.group.results}
        self.scratch = [np.empty(buffer.size, buffer.dtype) for buffer in kernel.program.scratch]
        self._kernel = kernel
        self._steps_taken = 0
        self._tables = [self._table(0), self._table(1)]

    def _table(self, parity: int) -> Any:
        """For a step of this parity, which reads what the step before wrote."""
        is_own = self._steps_taken >= 2 - parity
        before = [
            self.pairs[k][1 - parity] if is_own and k in self.pairs else self.inputs[k]
            for k in self.group.operands
        ]
        after = [self.pairs[k][parity] for k in self.group.results]
        return self._kernel._table(*[array.ctypes.data for array in (*before, *after, *self.scratch)])

    def note_step(self) -> None:
        """Note that one of the first two steps was taken."""
        self._steps_taken += 1
        self._tables = [self._table(0), self._table(1)]

    def address(self, step: int) -> int:
        return ctypes.addressof(self._tables[step % 2])

    def results(self, steps: int) -> dict[int, Any]:
        if not steps:
            return {k: self._unshared_input(k) for k in self.group.results}
        return {k: pair[(steps - 1) % 2] for k, pair in self.pairs.items()}

    def _unshared_input(self, number: int) -> Any:
        """An array that another group may write over, and so no view of one that is still needed."""
        operand = self.operands[number]
        return operand if number in self.free else np.array(operand)


def _pair(operand: Array, is_free: bool) -> list[Array]:
    """The arrays that steps with even and with odd numbers write: step 1 may write over what step 0 alone has read."""
    first = pool.empty(operand.shape, operand.dtype)
    if is_free and operand.flags.carray:
        return [first, operand]
    return [first, pool.empty(operand.shape, operand.dtype)]
