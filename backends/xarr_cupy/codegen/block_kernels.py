"""Kernels of phases whose points the threads of a block work on together.

A block goes through the loops with the word `block`, each thread taking every 256th iteration; after one that stores,
the threads meet at a barrier, so that later loops may read what it stored.  What a loop accumulates the lanes of each
warp combine first, by shuffles, and then the warps, in shared memory.  What stands outside of such loops all threads
compute, and one stores.

Which thread has which iteration is fixed, and so is the order in which they combine: the bits of a sum are the same in
each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from xarr.compiler.loop_ir.loops import Accumulator, Kernel, Loop, LoopError, Memory, Prefix, Runs, Store
from xarr.compiler.loop_ir.scalars import Value, in_order
from xarr_cupy.codegen.kernel_calls import BLOCK, MOST_BLOCKS
from xarr_cupy.codegen.sizes import Sizes
from xarr_cupy.codegen.spelling import type_name
from xarr_cupy.codegen.thread_kernels import MOST_NARROW
from xarr_cupy.codegen.warp_kernels import ALL_LANES, WARP, WarpPrinter

#: Rows of 32 terms of running totals that a warp has at a time, and values of which a term may be computed then: more
#: would take a thread's registers.  On an H200 1 row took 866 us where 4 take 543, and a copy 504.
_ROWS: Final = 4
_MOST_TERM_VALUES: Final = 2**7


class BlockPrinter(WarpPrinter):
    """The text of a phase, of whose grid each block has points."""

    words = Runs.GRID
    word, threads = Runs.BLOCK, BLOCK
    barrier = "__syncthreads();"

    def __init__(self, kernel: Kernel, phase: Loop, sizes: Sizes) -> None:
        super().__init__(kernel, phase, sizes)
        #: Whether a line is run by all threads, each for an iteration of its own.
        self.is_lockstep = False
        used = {store.buffer for loop in phase.walk() for store in loop.stores()}
        self.shared = [each for each in kernel.locals if each.memory is Memory.SHARED and each in used]

    def shared_arrays(self) -> list[str]:
        """The declarations of what a block shares, where words of 16 bytes may be read at once."""
        elements = (
            [each.size for each in self.shared] if self.has_tiles else self.sizes.elements_of(self.shared)
        )
        return [
            f"    __shared__ __align__(16) {type_name(each.dtype)} {each.name}[{count}];"
            for each, count in zip(self.shared, elements, strict=True)
        ]

    def possible_sharers(self) -> Sequence[int]:
        return [self.threads]

    @property
    def own(self) -> str:
        return "threadIdx.x"

    @property
    def blocks(self) -> int:
        return min(self.points, MOST_BLOCKS)

    def head(self) -> str:
        number = "int" if self.points <= MOST_NARROW else "int64"
        return f"for ({number} i = blockIdx.x; i < {self.grid_size()}; i += gridDim.x) {{"

    def loop(self, loop: Loop) -> None:
        if loop.runs == Runs.LOCKSTEP:
            self.lockstep(loop)
        else:
            super().loop(loop)

    def stores(self, stores: Sequence[Store]) -> None:
        super().stores(stores)
        if self.is_lockstep and any(each.buffer.memory is Memory.SHARED for each in stores):
            self.line(self.barrier)

    def lockstep(self, loop: Loop) -> None:
        """The body of a loop of which each thread has an iteration.

        Before and after what they share they meet, and after each has stored something that they share.
        """
        if loop.extent != self.threads or loop.carries or loop.accumulators:
            raise LoopError(f"no CUDA C++ for a loop in lockstep but of {self.threads} iterations alone")
        self.sizes.note_loop(loop)
        self.names[loop.index] = self.new("thread")
        self.line(f"const int {self.names[loop.index]} = {self.own};")
        self.is_alone = self.is_lockstep = True
        self.body(loop.body)
        self.is_alone = self.is_lockstep = False
        self.line(self.barrier)

    def share_in_lockstep(self, loop: Loop) -> None:
        """A shared loop inside of one in lockstep: threads may still read what it writes."""
        self.line(self.barrier)
        self.is_alone = self.is_lockstep = False
        self.shared_loop(loop)
        self.is_alone = self.is_lockstep = True

    def shared_loop(self, loop: Loop) -> None:
        if self.is_lockstep:
            self.share_in_lockstep(loop)
        elif loop.prefixes and not (self.is_alone or loop.carries or loop.search):
            self.running_totals(loop)
        else:
            super().shared_loop(loop)

    def share(self, accumulator: Accumulator, names: Sequence[str]) -> None:
        """Combine the partial results of the lanes, then those of the warps: each thread has the result."""
        super().share(accumulator, names)
        parts = [self.new("parts") for _ in names]
        rows = list(zip(parts, names, accumulator.results, strict=True))
        for part, _, result in rows:
            self.line(f"__shared__ {type_name(result.dtype)} {part}[{BLOCK // WARP}];")
        for part, name, _ in rows:
            self.line(f"if (threadIdx.x % {WARP} == 0) {part}[threadIdx.x / {WARP}] = {name};")
        self.line("__syncthreads();")
        for part, name, _ in rows:
            self.line(f"{name} = {part}[0];")
        self.open(f"for (int warp = 1; warp < {BLOCK // WARP}; warp++) {{")
        others = [self.part_of_warp(part, result) for part, _, result in rows]
        self.combine(accumulator, names, accumulator.right, others, accumulator.combined)
        self.close()
        # The next ones write there.
        self.line("__syncthreads();")
        self.names.update(zip(accumulator.results, names, strict=True))

    def part_of_warp(self, parts: str, value: Value) -> str:
        """A variable of what a warp has left in shared memory."""
        other = self.new("other")
        self.line(f"const {type_name(value.dtype)} {other} = {parts}[warp];")
        return other

    # --- running totals ----------------------------------------------------------------------------------

    def running_totals(self, loop: Loop) -> None:
        """A loop whose iterations know the total of all terms up to theirs: 256 times some of them at a time.

        A warp has that many rows of 32 terms, so that lanes read neighbours, and as many loads are on their way.
        """
        if loop.accumulators or len(loop.prefixes) != 1:
            raise LoopError("no CUDA C++ for a loop with several running totals, or that accumulates too")
        (prefix,) = loop.prefixes
        count = _ROWS if len(in_order(prefix.term)) <= _MOST_TERM_VALUES else 1
        type, initial = type_name(prefix.term.dtype), self.value(prefix.initial)
        total, first, own, running, parts, bank, begin = map(
            self.new, ("total", "first", "own", "running", "parts", "bank", "begin")
        )
        extent, warps = self.extent(loop), BLOCK // WARP
        number = "int" if loop.max_iterations <= MOST_NARROW else "int64"
        # Two parts, since some threads read one while others write the next ones.
        self.line(f"__shared__ {type} {parts}[{2 * warps}];")
        self.line(f"int {bank} = 0;")
        self.line(f"{type} {total} = {initial};")
        self.open(f"for ({number} {first} = 0; {first} < {extent}; {first} += {BLOCK * count}) {{")
        lane = f"threadIdx.x / {WARP} * {WARP * count} + threadIdx.x % {WARP}"
        self.line(f"const {number} {begin} = {first} + {lane};")
        self.line(f"{type} {own}[{count}];")
        row = self.open_rows(loop, begin, count, number)
        self.line(f"{own}[{row}] = {type}{{}};")
        self.open(f"if ({self.names[loop.index]} < {extent}) {{")
        self.assign(f"{own}[{row}]", prefix.term)
        self.close()
        self.close()
        self.scan_warp(prefix, own, count)
        self.line(
            f"if (threadIdx.x % {WARP} == {WARP - 1}) "
            f"{parts}[{bank} + threadIdx.x / {WARP}] = {own}[{count - 1}];"
        )
        self.line("__syncthreads();")
        self.line(f"{type} {running} = {total};")
        self.open(f"for (int warp = 0; warp < {warps}; warp++) {{")
        self.line(f"if (warp == threadIdx.x / {WARP}) {running} = {total};")
        other = self.new("other")
        self.line(f"const {type} {other} = {parts}[{bank} + warp];")
        self.combine(prefix, [total], [prefix.right], [other], [prefix.combined])
        self.close()
        row = self.open_rows(loop, begin, count, number)
        self.open(f"if ({self.names[loop.index]} < {extent}) {{")
        result = self.new("running")
        self.line(f"{type} {result} = {running};")
        self.combine(prefix, [result], [prefix.right], [f"{own}[{row}]"], [prefix.combined])
        self.names[prefix.running] = result
        self.run_alone(loop)
        self.close()
        self.close()
        self.line(f"{bank} = {warps} - {bank};")
        self.close()
        self.line("__syncthreads();")

    def open_rows(self, loop: Loop, begin: str, count: int, number: str) -> str:
        """The head of a loop over the terms of a thread, and their number among these."""
        row, index = self.new("row"), self.new(loop.index.attribute)
        self.line("#pragma unroll")
        self.open(f"for (int {row} = 0; {row} < {count}; {row}++) {{")
        self.line(f"const {number} {index} = {begin} + {row} * {WARP};")
        self.names[loop.index] = index
        return row

    def scan_warp(self, prefix: Prefix, own: str, count: int) -> None:
        """Combine each variable of a lane with those of the lanes before, and of the rows before."""
        self.line("#pragma unroll")
        self.open(f"for (int behind = 1; behind < {WARP}; behind *= 2) {{")
        row = self.new("row")
        self.line("#pragma unroll")
        self.open(f"for (int {row} = 0; {row} < {count}; {row}++) {{")
        other = self.read_lane("up", f"{own}[{row}]", prefix.term, "behind")
        self.open(f"if (threadIdx.x % {WARP} >= behind) {{")
        self.names.update({prefix.left: other, prefix.right: f"{own}[{row}]"})
        self.assign(f"{own}[{row}]", prefix.combined)
        self.close()
        self.close()
        self.close()
        if count == 1:
            return
        row, last, type = self.new("row"), self.new("last"), type_name(prefix.term.dtype)
        self.line("#pragma unroll")
        self.open(f"for (int {row} = 1; {row} < {count}; {row}++) {{")
        self.line(f"const {type} {last} = __shfl_sync({ALL_LANES}, {own}[{row} - 1], {WARP - 1});")
        self.names.update({prefix.left: last, prefix.right: f"{own}[{row}]"})
        self.assign(f"{own}[{row}]", prefix.combined)
        self.close()
