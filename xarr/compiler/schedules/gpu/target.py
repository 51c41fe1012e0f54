"""The numbers of GPUs."""

from __future__ import annotations

from typing import Final

from xarr.compiler.target import Target


class GpuTarget(Target):
    """A target with what only the schedule of GPUs asks.

    What was measured on a GPU says so; other numbers were chosen before one was there: see docs/gpu_benchmark.md.
    """

    __slots__ = ()

    #: Neighbouring terms of a reduction from which a warp shares those of a result, and from which a block does; and
    #: results up to which it does, since more of them keep all warps busy.
    min_warp_terms: int = 2**5
    min_block_terms: int = 2**8
    max_block_results: int = 2**14
    #: Terms of a part of a reduction, results times parts that keep all blocks busy, and all threads.
    part_terms: int = 2**12
    busy_blocks: int = 2**10
    busy_threads: int = 2**16
    #: Running totals of columns: how many a block has at most, and how many must lie side by side; terms of each that a
    #: thread has at once, and of a part of one.  On an H200 4 terms take 574 us where 8 take 643, and a copy 504.
    max_columns: int = 2**5
    min_columns: int = 2**2
    column_terms: int = 2**2
    min_column_part: int = 2**8
    #: Registers of a thread in which it keeps a row from loop to loop, at most, and values that it computes for all its
    #: elements of one.  Elements of a row for each of its lanes up to which more rows share a warp, and the fewest
    #: lanes of a row: together they load 32 bytes.  On an H200 softmax of 2^20 rows of 64 took 98 % of the bandwidth of
    #: a copy with 8 lanes a row, 89 % with 16, 78 % with 32 and 65 % with 4.
    held_registers: int = 2**6
    max_held_values: int = 2**12
    held_elements: int = 2**3
    held_lanes: int = 2**3
    #: Bytes that a thread loads or stores at once, at most, and values that it computes for all elements of them: more
    #: would take its registers.
    vector_bytes: int = 2**4
    max_vector_values: int = 2**8
    #: Values that a thread computes for neighbouring points that load the same elements, at most; and its loads, as a
    #: part of those of a thread for each, up to which one thread pays.
    max_neighbours_values: int = 2**9
    max_neighbours_loads: float = 0.7
    #: 1 where results may not depend on which thread comes first, 0 where sums of floats may.
    deterministic: int = 1

    #: Bytes of the tables of results that each block has for itself while updates are scattered into them, tables of a
    #: block, at most, and updates of a result from which one pays; updates of a block.
    table_bytes: int = 2**14
    block_tables: int = 2**5
    min_table_updates: int = 2**3
    block_updates: int = 2**12
    #: Updates of a result that one thread folds in their order, and of a part of more, if there are at most so many
    #: starts for each update; and elements of a window from which threads fold the parts, and not warps.  On an H200
    #: parts of 128 to 512 take the same time; threads take 341 us for windows of 16 elements where warps take 530.
    segment_part: int = 2**8
    max_spots: int = 2**4
    min_thread_window: int = 2**3
    #: Results from which sums of float32 that are to be the same in each run are exact, and the float32 of a window, at
    #: most: each goes to a bin of its own, while those of sorted updates are read together.  0 for none.  Not measured.
    min_exact_results: int = 2**14
    max_exact_updates: int = 2**2
    #: Elements that a thread sorts in registers, at most, and their bytes; elements that a block sorts.
    sorted_run: int = 7
    sorted_run_bytes: int = 2**7
    sorted_tile: int = 2**12
    #: Rows and columns of a tile, and those from which an array that is read across is read in tiles.
    min_tiled_side: int = 2**4
    #: Elements of a window from which it is reduced axis by axis.
    min_wide_window_elements: int = 2**5
    #: Neighbouring windows of a thread, whose partial results are all in registers.
    thread_windows: int = 2**4
    #: Neighbouring windows of a thread along the first axis of a tile: of the rows that a tile reads beyond its own,
    #: more rows read a smaller part.
    thread_rows: int = 2**5
    #: Results that a thread has because they need the same elements, and elements of a window, up to which no loops go
    #: through these, but each has its own line.
    max_thread_results: int = 2**4
    max_unrolled_terms: int = 2**6
    #: Threads of a block; rows and columns of which a thread has results of a product, terms that are read at once; and
    #: terms, rows and columns, and tiles of products from which tiles pay.
    block_threads: int = 2**8
    product_side: int = 4
    product_terms: int = 2**4
    min_product_terms: int = 2**3
    min_product_side: int = 2**4
    min_product_tiles: int = 2**5
    #: Rows of a thread where there are at least so many tiles: each element of a column is read for twice as many.
    many_product_rows: int = 2**3
    min_large_tiles: int = 2**9
    #: Terms of products of floats that a reduction takes in, lines of either side, and elements from which it does: all
    #: tiles are full, and there are enough.  A product that is stored is written and read again, 8 bytes for each
    #: element; own tiles have perhaps 40 % of the rate of additions, cuBLAS 90 %.  With the rates that data sheets of
    #: A100 and H100 have, both are as fast at 41 and at 64 terms.  Not measured.
    max_inner_terms: int = 2**6
    max_small_product: int = 0
    min_inner_lines: int = 2**6
    min_unstored_elements: int = 2**17
    #: A thread computes some while it waits for one load; a table of its own is a launch, and is written and read.
    max_gather_operations: int = 2**3
    #: Operations of a thread in one launch of a loop, at most: about a tenth of a second.  Launches of it that follow
    #: one another without a look of the host, where it is known that no more are needed.
    launch_operations: int = 2**24
    max_loop_launches: int = 2**4
    #: Operations of all branches, and elements that they compute together, up to which all branches are computed.
    max_branch_operations: int = 2**6
    max_branch_elements: int = 2**20
    #: Arrays that one kernel concatenates.
    max_concatenated: int = 2**7


#: As for the serial schedule, there are no local buffers of a thread; a block has shared ones.  Groups are long, since
#: an array between two costs more than the operations of both: erf_inv alone has 130 members, with its numbers.
TARGET: Final = GpuTarget().replace(
    cache_bytes=2**22,
    local_bytes=48 << 10,
    max_group_members=2**8,
    # A loop over short arrays is a kernel of one block, whose threads share each step; one thread alone computes the
    # numbers of a native loop.  Which is faster was not measured.
    max_carried_elements=0,
    # A kernel of CUDA 12.0 has 4,096 bytes of parameters, later ones 32,764.
    max_group_inputs=2**8,
    max_serial_bytes=2**62,
)
