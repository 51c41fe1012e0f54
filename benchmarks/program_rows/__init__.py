"""The rows of `benchmarks/programs.py`: whole programs, by family."""

from __future__ import annotations

from program_rows import (
    clusters,
    equations,
    factorizations,
    filters,
    images,
    networks,
    particles,
    searches,
    sparse,
    stencils,
    strings,
    tables,
    transforms,
)
from program_rows.row import Program

#: Family -> its programs.
FAMILIES: dict[str, tuple[Program, ...]] = {
    "linear algebra": factorizations.ROWS,
    "dynamic programming": tables.ROWS,
    "searches": searches.ROWS,
    "sparse": sparse.ROWS,
    "filters": filters.ROWS,
    "stencils": stencils.ROWS,
    "particles": particles.ROWS,
    "equations": equations.ROWS,
    "strings": strings.ROWS,
    "images": images.ROWS,
    "complex numbers": transforms.ROWS,
    "clusters and batches": clusters.ROWS,
    "networks": networks.ROWS,
}
ROWS: tuple[Program, ...] = tuple(row for rows in FAMILIES.values() for row in rows)
