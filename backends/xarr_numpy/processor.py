"""The processor that compiled groups run on: its numbers, and those that only the generator of machine code asks."""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr.compiler.processors import count
from xarr.compiler.target import Target


def _has_wide_registers() -> bool:
    """Whether registers are those of AVX-512, as NumPy finds; what is computed does not depend on it."""
    module = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    features = getattr(module, "__cpu_features__", {})
    return bool(features.get("AVX512F", features.get("X86_V4", False)))


class Processor(Target):
    """The numbers of a processor, measured on an AMD EPYC with AVX-512, two virtual cores (docs/performance.md)."""

    __slots__ = ()

    # --- what is worth compiling -------------------------------------------------------------------------
    #: Scalar updates or comparisons, one after the other, that take NumPy longer than the compiler takes.
    min_sequential_steps: int = 2**9
    #: Iterations of a loop in Python that take about as long as compiling it.
    max_python_iterations: int = 2**12

    #: Bytes of tables of elementary functions that a graph holds rather than computing them in each call.
    max_table_bytes: int = 2**17

    has_empty_arrays = True
    has_strided_updates = True
    widens_products = True
    looks_for_firsts_of_rows = True
    min_blocked_bytes = 2**21
    #: Processors up to which one of them runs blocks of rows sooner than all share each step.
    max_block_processors: int = 3
    min_narrow_bytes = 2**14

    # --- registers ---------------------------------------------------------------------------------------
    #: Bytes of a number, complex ones too, that is copied by way of a register.
    max_number_bytes: int = 16
    #: Registers of a tile of sums, of 64 bytes: with AVX-512 there are 32 in all, elsewhere as many as 8 at least.
    max_tile_sums = 24 if _has_wide_registers() else 6
    #: Registers of neighbours in one iteration of a loop in lanes, and values of its body up to which there are as
    #: many: a longer body has work for all units of the processor anyway.
    unrolled_registers: int = 4
    max_unrolled_body: int = 40
    #: Values up to which several registers of neighbours share the iterations of a loop.
    max_shared_body: int = 100
    #: Iterations in lanes after which a float sum begins anew, and joins the sum of these: for accuracy.
    chunk_iterations: int = 64
    #: Registers that hold what one tile of a native loop carries, at most (there are 32 in all, or 16), and those of
    #: one value.  Where points are left early, more of them would wait for one another.
    max_tile_registers: int = 20
    max_value_registers: int = 4
    max_early_exit_registers: int = 2
    #: Bytes of rows of tables that do not fit into a cache, which all points of a native loop go through together.
    rows_bytes: int = 2**16

    # --- loops of groups ---------------------------------------------------------------------------------
    #: Bytes of rows that go through several iterations together, so that they stay in a cache.
    wavefront_bytes: int = 2**20
    #: Elements that a small group computes, iteration after iteration, before Python looks for Ctrl-C.
    uninterrupted_elements: int = 2**26
    #: Operations of the first chunk of a native loop, about; the chunks that follow are made longer or shorter.
    first_chunk_operations: int = 2**28

    #: Multiplications of a product, of one whose columns or terms lie side by side, and nanoseconds of another
    #: operation that is in no group, which are loops where a loop runs them in machine code.
    max_native_products: int = 2**18
    max_native_lane_products: int = 2**23
    max_native_nanoseconds: int = 10**6
    #: Nanoseconds of a product by a BLAS that machine code calls, in loops and outside.
    max_native_blas_nanoseconds: int = 10**7
    #: Nanoseconds of such a loop after which Python looks for Ctrl-C, about.
    max_unpolled_nanoseconds: int = 20_000_000

    #: The same of those outside of loops, in a program that is machine code alone.
    max_native_call_products: int = 2**14
    max_native_call_nanoseconds: int = 20_000

    #: Kernels that differ in numbers of iterations, offsets and strides alone, from which on they share machine code,
    #: and nanoseconds of those that do: longer ones are better off with constants, and soon repay compiling them.
    min_alike_kernels: int = 4
    max_shared_code_nanoseconds: int = 10**6

    #: Kernels of a program, or lines of LLVM IR of a loop or of a program that is one function, from which on its
    #: first machine code is made without optimisation; nanoseconds for which LLVM optimises a line, and by how many
    #: code takes longer that it has not optimised, for each that `costs` says.
    min_quick_kernels: int = 8
    min_quick_lines: int = 500
    optimising_time: float = 30_000.0
    #: The part of that time for which quick code runs, in all calls, before it is optimised.
    quick_share: float = 0.25
    #: Results of formulas in a phase from which on these are functions, which quick code calls.
    min_called_formulas: int = 8
    #: Lines of LLVM IR for each thread from which on threads compile parts of a module.
    min_part_lines: int = 400
    quick_delay: float = 0.5

    #: Registers of a loop in lanes inside of other loops up to which the last one is stored as smaller ones, if it is
    #: not full: what masked lanes store cannot be read before it reached the cache.
    max_inner_registers: int = 8
    #: Lines of a function in LLVM IR that is copied to where a loop calls it, and of all such copies in a module: they
    #: bound the time to compile it.
    max_inlined_lines: int = 200
    max_copied_lines: int = 4000

    # --- threads -----------------------------------------------------------------------------------------
    #: Nanoseconds of work from which Python's lock is let go of meanwhile.
    min_unlocked_nanoseconds: int = 5_000
    #: Nanoseconds of work below which threads are not asked, and below which those that sleep are let sleep.
    min_shared_nanoseconds: int = 20_000
    min_waking_nanoseconds: int = 100_000
    #: Nanoseconds that a range takes at least, and at most.
    min_range_nanoseconds: int = 5_000
    max_range_nanoseconds: int = 10_000_000
    #: Ranges for each thread of what is left: large ones first.
    ranges_per_thread: int = 3
    #: Nanoseconds after which Python looks for Ctrl-C.
    max_uninterrupted_nanoseconds: int = 100_000_000
    #: Nanoseconds for which a thread looks out for more work before it sleeps, and a caller for the end of the last
    #: ranges.
    awake_nanoseconds: int = 100_000

    # --- nanoseconds of compiled loops, good to a factor of two -------------------------------------------
    #: Of one operation on a byte of a whole register, and of an operation that has no neighbours in a register.
    lane_byte_time: float = 0.0065
    scalar_time: float = 0.25
    #: Of a byte that is read or written in order, and of an element that lies anywhere.
    byte_time: float = 0.02
    random_access_time: float = 1.0
    #: Of an iteration of a loop beside what is in it.
    iteration_time: float = 0.25
    #: Of a call back into Python, besides what it computes.
    call_back_time: float = 3000.0
    #: Of a call of LAPACK, or of BLAS, besides its products.
    lapack_call_time: float = 200.0
    blas_call_time: float = 50.0
    #: Of a comparison of a sort, and what it moves; of an element of rows of integers.
    comparison_time: float = 3.0
    sorted_element_time: float = 25.0

    def runs_blocks(self) -> bool:
        return super().runs_blocks() and count() <= PROCESSOR.max_block_processors


PROCESSOR: Final = Processor()
