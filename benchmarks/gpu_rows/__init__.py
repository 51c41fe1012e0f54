"""The rows of benchmarks/gpu.py, in the order of their letters."""

from gpu_rows import elementwise, indexing, windows

ROWS = tuple(sorted((*elementwise.ROWS, *indexing.ROWS, *windows.ROWS), key=lambda row: row.letter))
