"""The numbers of a machine: what is worth compiling, which operations run as one, and how their loops are laid out."""

from __future__ import annotations

from typing import Self


class Target:
    """A record of what groups, schedules and plans ask about a machine; a backend owns one.

    The defaults are those of a processor with vector registers and two threads, measured on the machine that
    docs/performance.md names; sizes of caches and lines are what nearly every processor has at least.  A backend
    subclasses it to give what differs, and what only its own code generator asks.

    Names begin with `min` or `max` where a number is a limit that still counts, and say what is counted: bytes,
    elements, iterations of a loop, instructions.  None changes what a program computes but for the order of float
    sums.  Numbers are never assigned: `replace` gives another record.
    """

    __slots__ = ()

    # --- what is worth compiling -------------------------------------------------------------------------
    #: Instructions that all elements of a group take together, from which compiling it pays; for graphs that a
    #: loop, a branch or a call runs; and 1 for programs that run often, as under `jit`.
    min_work: int = 2**22
    min_loop_work: int = 2**16
    #: Bytes of an array up to which an op outside of functions is computed when it is recorded (`runtime.small_ops`):
    #: as many as `cache_bytes`, so that the next op reads it from there; recording more costs more than fusing saves.
    max_eager_bytes: int = 2**18
    #: Values of the body of a loop that becomes one native loop: it bounds the time to compile one.
    max_native_values: int = 600
    #: Elements of a carried array that become numbers of such a loop, which one thread computes, 0 if none do; those of
    #: arrays that a step makes of them, and instructions that this may take beyond those on whole arrays, which fill no
    #: register.
    max_carried_elements: int = 9
    max_split_elements: int = 64
    max_split_work: int = 400
    #: Steps besides views of a program that is one function of machine code, in loops too, which bound the time to
    #: compile one, and the bytes of its arrays: calls of more take little of its time.
    max_native_steps: int = 2**10
    max_native_bytes: int = 2**24
    #: Bytes of all arrays of a group that a loop repeats, up to which its iterations run one after the other, each
    #: over all elements; from there on only rows that stay in a cache go through several iterations.
    max_serial_bytes: int = 2**17
    #: Elements of an array that a loop reads in part, or multiplies by another, from which it is computed before the
    #: loop, not in each iteration.
    min_hoisted_elements: int = 64
    #: Operations of a function whose calls become copies of it, and of all copies together: they bound the time to
    #: compile these.
    max_inlined_operations: int = 32
    max_copied_operations: int = 2**12

    #: Whether its engine runs `Allocate`, memory that holds nothing yet, for arrays that a loop fills.
    has_empty_arrays: bool = False
    #: Whether its engine runs `StridedUpdate`, which writes elements a few apart.
    has_strided_updates: bool = False
    #: Whether its library multiplies no narrow floats and no integers, which groups around a product then convert.
    widens_products: bool = False

    # --- memory ------------------------------------------------------------------------------------------
    #: Bytes of a cache that one processor has for itself: loops over less read it from there the second time.
    cache_bytes: int = 2**18
    #: Bytes that each step of a loop goes through, from which on independent rows go through all steps block by block,
    #: 0 if they never do; bytes of all arrays of a step on one block, and what its numbers of rows are multiples of.
    min_blocked_bytes: int = 0
    max_block_bytes: int = 2**17
    min_blocked_rows: int = 16
    #: Bytes of an array of 64-bit integers that a loop carries in 32 bits where they fit, 0 if none does so, and
    #: iterations of the loop that repay converting it.
    min_narrow_bytes: int = 0
    min_narrow_iterations: int = 4
    #: Bytes of local buffers that a thread has, which is what one iteration of a parallel loop may keep of
    #: intermediate values; loop programs that want more are refused (rule L11 of `loop_ir.verifier`).
    local_bytes: int = 2**17
    #: Bytes of a line of a cache, and bytes apart after which addresses fall on the same lines: strides that are a
    #: multiple of the latter are avoided in copies.
    line_bytes: int = 64
    alias_bytes: int = 4096
    #: Bytes that groups may take at once, whatever the operations one by one do.
    spare_bytes: int = 2**20
    #: Bytes beyond these operations that they, and loops and programs of machine code alone, may take at any size: a
    #: few megabytes are nothing beside a process.
    added_bytes: int = 2**22
    #: Bytes of a result from which it is written over an operand that nothing else needs: less lies in a cache, and
    #: its memory is soon used again.
    min_reused_bytes: int = 2**15
    #: Elements of an array up to which reading it in steps does no harm.
    max_strided_elements: int = 2**15

    # --- threads -----------------------------------------------------------------------------------------
    #: Iterations of a parallel loop, or rows to reduce, that keep all processors busy.
    min_busy_iterations: int = 16
    #: Elements from which loops with fewer iterations are laid out anew, so that processors share them.
    min_shared_elements: int = 2**18
    #: Elements of the last dimension that a processor then goes through at once.
    part_elements: int = 2**13
    #: Elements of a result around an update from which threads share the loops that copy them.
    min_copied_elements: int = 2**14

    # --- lanes and registers -----------------------------------------------------------------------------
    #: Neighbouring results from which lanes of their own pay while something else is reduced.
    min_vector_columns: int = 128
    #: Neighbouring elements of a window of a scatter from which a loop in lanes pays.
    min_vector_row: int = 4
    #: Neighbouring windows that stick out at an end from which a loop in lanes pays.
    min_edge_windows: int = 4
    #: Columns of a result from which a loop in lanes along them pays.
    min_vector_features: int = 8
    #: Elements from which loops are cut where elements come from other operands of a pad or a concatenation, and parts
    #: of a loop, of which each has code of its own.
    min_cut_elements: int = 2**10
    max_regions: int = 16
    #: Elements of a row of which each is compared with the next, over and over, instead of a sort: the square counts.
    max_compared_row: int = 10
    #: Elements of a sorted vector that are looked for one by one, and elements for each of them from which that pays;
    #: whether it pays for rows, too.
    max_first_elements: int = 8
    min_elements_behind: int = 4
    looks_for_firsts_of_rows: bool = False
    #: Elements of a row that is sorted by counting what comes before each, which takes the square, and comparisons of
    #: all rows: with more it takes less time to call a library.
    max_ranked_row: int = 64
    max_rank_comparisons: int = 2**16
    #: Elements apart up to which neighbouring lanes are loaded and stored as whole registers.
    max_lane_stride: int = 4
    #: Results that are summed up in registers at once.
    max_register_sums: int = 6
    #: Bytes of a register of neighbouring results, registers of a tile of sums of products, and rows of such a tile.
    register_bytes: int = 64
    max_tile_sums: int = 6
    max_tile_rows: int = 8

    # --- groups ------------------------------------------------------------------------------------------
    #: Operations of a group, and groups of one domain among which siblings are looked for: they bound the time
    #: to compile one.
    max_group_members: int = 120
    max_siblings: int = 32
    #: Iterations of a reduction from which it pays to run only those that a condition of the index wants.
    min_bounded_iterations: int = 16
    #: Arrays and numbers that a group is given, where operations of more than two operands make them many.
    max_group_inputs: int = 2**16
    #: Indices at which one operation of a group is computed for a point of its domain, at most: a step of a cellular
    #: automaton by `roll` asks for 32 of the step before, two steps for 1,024.
    max_paths: int = 2**9
    #: Groups that differ in the parts of arrays and the numbers that they read alone, from which on they share a loop
    #: program: each spares the time to compile it, and costs a view or two in each call.
    min_alike_groups: int = 16
    #: Elements of a reduction along the last dimension that fill no register, and results from which reducing
    #: them side by side pays.
    max_short_reduction: int = 16
    min_results_side_by_side: int = 64
    #: Operations of a group, as they cost, that are written out for each index of reduced dimensions which fill no
    #: register: they bound the time to compile it.
    max_written_out_operations: int = 2**9
    #: Elements of a row before which a costly operation pays that all of them share, and that has no lanes there.
    max_uniform_row: int = 64
    #: Elements of a row that is gone through several times whose inner results can be kept meanwhile.
    max_kept_row: int = 2**14
    #: Cheap operations that are computed again for each window.
    max_repeated_operations: int = 4
    #: Cheap operations that are computed again for each element that a gather picks, however often it picks one.
    max_gather_operations: int = 0

    # --- reductions --------------------------------------------------------------------------------------
    #: Elements of the reduced dimensions that make a block of their own where there are few results, and rows of
    #: a block of columns.
    block_elements: int = 2**15
    min_block_rows: int = 64
    #: Elements above each of neighbouring results from which columns are cut into such blocks.
    min_cut_column: int = 256
    #: Terms of an inner reduction that are written out, without a loop, and values that this may take.
    max_unrolled_terms: int = 16
    max_unrolled_values: int = 256
    #: Terms after which a partial sum of an inner reduction joins others, for accuracy.
    chain_terms: int = 128
    #: Operations of an element that may be computed twice rather than kept.
    max_light_operations: int = 8

    # --- copies in the order in which loops read ---------------------------------------------------------
    #: Iterations of a loop in lanes inside a loop over packed panels.
    panel_elements: int = 64
    #: How often each element must be read, and how many reads there must be, to be worth a copy.
    min_reads_per_copy: int = 4
    min_copied_reads: int = 2**14
    #: Elements from one that is read to the next, up to which all those in between are copied along.
    max_copied_step: int = 16
    #: Rows and columns of a tile through which a transposed operand is read, those that a domain must have, and
    #: the elements from which tiles pay.
    tile_side: int = 32
    min_tiled_side: int = 8
    min_tiled_elements: int = 2**15

    # --- cumulative reductions ---------------------------------------------------------------------------
    #: Elements of a row of cumulative results that go through the axis together.
    min_scan_row: int = 64
    max_scan_row: int = 1024

    # --- gathers and scatters ----------------------------------------------------------------------------------------
    #: Indices that are checked from which a reduction in a loop costs less than passes of a library.
    min_reduced_checks: int = 2**12
    #: Indices that a dimension should have to be cut into ranges, one for each thread.
    min_range_extent: int = 64
    #: Updates that are looked through before those among them that belong to a thread are applied, or those that have
    #: a target.  Operations that say where an update goes from which on they are done in lanes, before the updates.
    listed_updates: int = 1024
    max_target_operations: int = 12
    #: Elements of a window from which two threads are faster than one although both look through all updates.
    min_shared_window: int = 64

    # --- windows, convolutions, products -----------------------------------------------------------------
    #: Elements of a window in some dimension from which there are better ways than to look at each.
    min_wide_window: int = 16
    #: Elements of a window at most, and of one that is reduced: a library does that along one dimension at a time.
    max_window: int = 256
    max_reduced_window: int = 64
    #: Terms of a sum of products that are added one after the other, if it has an inner loop: longer ones are sums of
    #: sums, for accuracy.
    max_chain_terms: int = 2**11
    #: Bytes of a right matrix that stay in a processor's cache, and of small products, which a BLAS takes longer to
    #: get ready for than to do.
    max_matrix_bytes: int = 2**15
    #: Matrices from which threads share products of small ones, and rows that share what is read of the right one.
    min_matrices: int = 4
    min_matrix_rows: int = 4
    #: Systems of equations from which lanes solve them, operations of one, about, up to which its entries stay in
    #: registers, and up to which they do where there are fewer systems.
    min_systems: int = 8
    max_lane_system_work: int = 2**9
    max_single_system_work: int = 2**7
    #: Multiplications of each of many small products, up to which groups compute them with what is around.
    max_small_product: int = 2**8
    #: Terms of products that need not be stored when they are reduced, rows and columns and elements of the product
    #: from which that pays, and how many of them a reduction combines.
    max_inner_terms: int = 64
    min_inner_lines: int = 1
    min_unstored_elements: int = 2**16
    min_reduced_products: int = 64
    #: Classes between which a product with a one-hot matrix is a scatter: with fewer the product is as fast, with
    #: more the tables are many.  Rows from which it is, and those of a table, a power of two.
    min_classes: int = 8
    max_classes: int = 1024
    min_one_hot_rows: int = 2**10
    min_table_rows: int = 2**9

    def runs_blocks(self) -> bool:
        """Whether blocks of rows pay, which are run one after the other."""
        return self.min_blocked_bytes > 0

    def replace(self, **numbers: float) -> Self:
        """A target with other numbers; AttributeError for a name that it does not have."""
        for name in numbers:
            getattr(self, name)
        target: Self = type(type(self).__name__, (type(self),), {"__slots__": (), **numbers})()
        return target
