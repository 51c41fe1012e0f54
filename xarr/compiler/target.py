"""The numbers of a machine that decide which operations run as one, and how their loops are laid out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What schedules and the forming of groups ask about a machine; a backend owns one.

    Names begin with `min` or `max` where a number is a limit that still counts, and say what is counted: bytes,
    elements, iterations of a loop.  None changes what a program computes but for the order of float sums.
    """

    # --- memory ------------------------------------------------------------------------------------------
    #: Bytes of a cache that one processor has for itself: loops over less read it from there the second time.
    cache_bytes: int
    #: Bytes of intermediate values that one iteration of a parallel loop may keep in memory of its own.
    local_bytes: int
    #: Bytes of a line of a cache, and bytes apart after which addresses fall on the same lines.
    line_bytes: int
    alias_bytes: int
    #: Bytes that groups may take at once, whatever the operations one by one do.
    spare_bytes: int
    #: Elements of an array up to which reading it in steps does no harm.
    max_strided_elements: int

    # --- threads -----------------------------------------------------------------------------------------
    #: Iterations of a parallel loop, or rows to reduce, that keep all processors busy.
    min_busy_iterations: int
    #: Elements from which loops with fewer iterations are laid out anew, so that processors share them.
    min_shared_elements: int
    #: Elements of the last dimension that a processor then goes through at once.
    part_elements: int
    #: Elements of a result around an update from which threads share the loops that copy them.
    min_copied_elements: int

    # --- lanes and registers -----------------------------------------------------------------------------
    #: Neighbouring results from which lanes of their own pay while something else is reduced.
    min_vector_columns: int
    #: Neighbouring elements of a window of a scatter from which a loop in lanes pays.
    min_vector_row: int
    #: Neighbouring windows that stick out at an end from which a loop in lanes pays.
    min_edge_windows: int
    #: Features or columns of a result from which a loop in lanes along them pays.
    min_vector_features: int
    #: Results that are summed up in registers at once.
    max_register_sums: int

    # --- groups ------------------------------------------------------------------------------------------
    #: Operations of a group, and groups of one domain among which siblings are looked for: they bound the time
    #: to compile one.
    max_group_members: int
    max_siblings: int
    #: Elements of a reduction along the last dimension that fill no register, and results from which reducing
    #: them side by side pays.
    max_short_reduction: int
    min_results_side_by_side: int
    #: Elements of a row that is gone through several times whose inner results can be kept meanwhile.
    max_kept_row: int
    #: Cheap operations that are computed again for each window.
    max_repeated_operations: int

    # --- reductions --------------------------------------------------------------------------------------
    #: Elements of the reduced dimensions that make a block of their own where there are few results, and rows of
    #: a block of columns.
    block_elements: int
    min_block_rows: int
    #: Elements above each of neighbouring results from which columns are cut into such blocks.
    min_cut_column: int
    #: Terms of an inner reduction that are written out, without a loop, and values that this may take.
    max_unrolled_terms: int
    max_unrolled_values: int
    #: Terms after which a partial sum of an inner reduction joins others, for accuracy.
    chain_terms: int
    #: Operations of an element that may be computed twice rather than kept.
    max_light_operations: int

    # --- copies in the order in which loops read ---------------------------------------------------------
    #: Iterations of a loop in lanes inside a loop over panels.
    panel_elements: int
    #: How often each element must be read, and how many reads there must be, to be worth a copy.
    min_reads_per_copy: int
    min_copied_reads: int
    #: Steps between elements up to which all those in between are copied along.
    max_copied_step: int
    #: Rows and columns of a tile through which a transposed operand is read, those that a domain must have, and
    #: the elements from which tiles pay.
    tile_side: int
    min_tiled_side: int
    min_tiled_elements: int

    # --- running totals ----------------------------------------------------------------------------------
    #: Elements of a row of running totals that go through the axis together.
    min_scan_row: int
    max_scan_row: int

    # --- scatters ----------------------------------------------------------------------------------------
    #: Indices that a dimension should have to be cut into ranges.
    min_range_extent: int
    #: Updates that are looked through before those among them that belong to a thread are applied.
    listed_updates: int
    #: Elements of a window from which two threads are faster than one although both look through all updates.
    min_shared_window: int

    # --- windows, convolutions, products -----------------------------------------------------------------
    #: Windows that are as wide in some dimension have better ways than to look at each element.
    min_wide_window: int
    #: Elements of a window at most, and of one that is reduced: a library does that along one dimension at a time.
    max_window: int
    max_reduced_window: int
    #: Bytes of a kernel of a convolution that stay in a processor's cache.
    max_kernel_bytes: int
    #: Products of a convolution, and bytes of a right matrix, that a BLAS takes longer to get ready for than to do.
    max_loop_products: int
    max_matrix_bytes: int
    #: Matrices from which threads share products of small ones, and rows that share what is read of the right one.
    min_matrices: int
    min_matrix_rows: int
    #: Terms of products that need not be stored when they are reduced, elements of the product from which that
    #: pays, and how many of them a reduction combines.
    max_inner_terms: int
    min_unstored_elements: int
    min_reduced_products: int
    #: Classes between which a product with a one-hot matrix is a scatter: with fewer the product is as fast, with
    #: more the tables are many.  Rows from which it is, and those of a table, a power of two.
    min_classes: int
    max_classes: int
    min_one_hot_rows: int
    min_table_rows: int
