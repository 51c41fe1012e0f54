"""How the NumPy backend's compiled groups run: the numbers of processors, and the builders of `schedules.cpu`."""

from __future__ import annotations

from typing import Final

from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.cpu.builders import BUILDERS
from xarr.compiler.target import Target

#: Measured on the machine that docs/performance.md names: AMD EPYC with AVX-512, two virtual cores.  Sizes of caches
#: and lines are what nearly every processor has at least.
PROCESSOR: Final = Target(
    cache_bytes=2**18,
    local_bytes=2**17,
    line_bytes=64,
    alias_bytes=4096,
    spare_bytes=2**20,
    max_strided_elements=2**15,
    min_busy_iterations=16,
    min_shared_elements=2**18,
    part_elements=2**13,
    min_copied_elements=2**14,
    min_vector_columns=128,
    min_vector_row=4,
    min_edge_windows=4,
    min_vector_features=8,
    max_register_sums=6,
    max_group_members=120,
    max_siblings=32,
    max_short_reduction=16,
    min_results_side_by_side=64,
    max_kept_row=2**14,
    max_repeated_operations=4,
    block_elements=2**15,
    min_block_rows=64,
    min_cut_column=256,
    max_unrolled_terms=16,
    max_unrolled_values=256,
    chain_terms=128,
    max_light_operations=8,
    panel_elements=64,
    min_reads_per_copy=4,
    min_copied_reads=2**14,
    max_copied_step=16,
    tile_side=32,
    min_tiled_side=8,
    min_tiled_elements=2**15,
    min_scan_row=64,
    max_scan_row=1024,
    min_range_extent=64,
    listed_updates=1024,
    min_shared_window=64,
    min_wide_window=16,
    max_window=256,
    max_reduced_window=64,
    max_kernel_bytes=3 * 2**17,
    max_loop_products=2**22,
    max_matrix_bytes=2**15,
    min_matrices=4,
    min_matrix_rows=4,
    max_inner_terms=64,
    min_unstored_elements=2**16,
    min_reduced_products=64,
    min_classes=8,
    max_classes=1024,
    min_one_hot_rows=2**10,
    min_table_rows=2**9,
)

SCHEDULE: Final = Schedule(PROCESSOR, BUILDERS)
