"""Many small systems of equations, each of which a lane solves in registers, or a few very small ones.

The pivot is the entry of the largest magnitude, the first of equal ones and a NaN before all; rows are exchanged by
choices.  Single precision is solved in double, as `numpy.linalg.solve` does.
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from xarr.compiler.loop_ir.elements import buffer_of
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, Store, in_threads, index_value, lanes_if, load
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node

_DOUBLE: Final = np.dtype(np.float64)
_TYPES: Final = frozenset(map(np.dtype, (np.float32, np.float64)))


def takes(node: Node, target: Target) -> bool:
    """Whether systems are so small, or small and so many, that registers hold them: a library takes longer."""
    if not isinstance(node.op, ops.Solve) or node.operands[0].dtype not in _TYPES:
        return False
    *batch, count, columns = node.operands[1].shape
    work = count * count * (count + columns)
    most = target.max_lane_system_work if prod(batch) >= target.min_systems else target.max_single_system_work
    return 0 < work <= most and prod(batch) > 0


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group that is one operation, `Solve`."""
    graph, values = fusion.computation, Values()
    inputs = tuple(buffer_of(f"in{k}", each, "in") for k, each in enumerate(graph.parameters))
    outputs = tuple(buffer_of(f"out{k}", each, "out") for k, each in enumerate(graph.results))
    *batch, count, columns = graph.parameters[1].shape
    loop = Loop(index_value(values, "system"), prod(batch), lanes_if(prod(batch) >= target.min_systems))

    def offset(width: int, i: int, j: int) -> Affine:
        return Affine(((loop.index, count * width),), i * width + j)

    rows = [
        [
            load(values, buffer, offset(width, i, j)).convert(_DOUBLE)
            for buffer, width in zip(inputs, (count, columns), strict=True)
            for j in range(width)
        ]
        for i in range(count)
    ]
    singular = _eliminate(rows)
    _substitute(rows)
    solution, flags = outputs
    for i, row in enumerate(rows):
        for j, value in enumerate(row[count:]):
            element = singular.select(float("nan"), value).convert(solution.dtype)
            loop.body.append(Store(solution, offset(columns, i, j), element))
    loop.body.append(Store(flags, Affine(((loop.index, 1),)), singular))
    return Kernel(inputs, outputs, (), (), in_threads([loop]))


def _eliminate(rows: list[list[Value]]) -> Value:
    """Make a matrix with right sides beside it upper triangular; whether a pivot is 0."""
    singular: Value | None = None
    for k in range(len(rows)):
        for i in range(k + 1, len(rows)):
            _exchange_if(_is_ahead(rows[i][k], rows[k][k]), rows, k, i)
        pivot = rows[k]
        for i in range(k + 1, len(rows)):
            factor = -(rows[i][k] / pivot[k])
            rows[i] = [factor.fma(pivot[j], each) if j > k else each for j, each in enumerate(rows[i])]
        is_zero = pivot[k].eq(0)
        singular = is_zero if singular is None else singular | is_zero
    assert singular is not None, "a system has equations"
    return singular


def _is_ahead(entry: Value, pivot: Value) -> Value:
    """Whether an entry is a better pivot than one above it."""
    return ~entry.abs().le(pivot.abs()) & pivot.eq(pivot)


def _exchange_if(condition: Value, rows: list[list[Value]], k: int, i: int) -> None:
    """Exchange two rows, of which nothing is needed in front of column k."""
    for j in range(k, len(rows[k])):
        upper, lower = rows[k][j], rows[i][j]
        rows[k][j], rows[i][j] = condition.select(lower, upper), condition.select(upper, lower)


def _substitute(rows: list[list[Value]]) -> None:
    """Write the solutions of triangular systems over their right sides, from the last row up."""
    count = len(rows)
    for i in reversed(range(count)):
        for j in range(count, len(rows[i])):
            total = rows[i][j]
            for k in range(i + 1, count):
                total = (-rows[i][k]).fma(rows[k][j], total)
            rows[i][j] = total / rows[i][i]
