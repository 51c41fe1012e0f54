"""Which axes of a group one index can go through, as its elements tell before there are loops."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

from tests.support.graphs import graph, node, scalars, tensor
from xarr.compiler.fusion.accesses import Accesses
from xarr.compiler.fusion.form_groups import form_groups
from xarr.compiler.schedules.cpu import group_loops
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr_numpy.compiled.schedule import SCHEDULE
from xarr_numpy.processor import PROCESSOR

F32, I32 = np.dtype("float32"), np.dtype("int32")


def group(function: Callable[..., Any], *types: TensorType) -> ops.Fusion:
    fused = form_groups(graph(function, *types), SCHEDULE, lambda domain, cost: True)
    (fusion,) = (each.op for each in fused.nodes if isinstance(each.op, ops.Fusion))
    return fusion


def twice(x: Node) -> Node:
    return node(ops.Add(), x, x)


def total(x: Node, *dims: int) -> Node:
    add = scalars(lambda a, b: node(ops.Add(), a, b), x.dtype, x.dtype)
    return node(ops.Reduce(dims, add), x, node(ops.Constant.of(np.array(0, x.dtype))))


def with_row(x: Node, v: Node) -> Node:
    return node(ops.Multiply(), x, node(ops.BroadcastInDim(x.shape, (2,)), v))


def with_count(x: Node) -> Node:
    count = node(ops.Iota(TensorType(x.shape, I32), 1))
    return node(ops.Multiply(), x, node(ops.Convert(F32), count))


def part(x: Node) -> Node:
    return twice(node(ops.Slice((0, 0, 0), (4, 5, 3), (1, 1, 1)), x))


def gather(x: Node, indices: Node) -> Node:
    return twice(node(ops.Gather((1,), (0,), (), (), (0,), 1, (1, x.shape[1])), x, indices))


def transpose(x: Node) -> Node:
    return twice(node(ops.Transpose((1, 0)), x))


CUBE = tensor(F32, 4, 5, 6)


@pytest.mark.parametrize(
    ("function", "types", "runs"),
    [
        (twice, [CUBE], [[0, 1, 2]]),
        (twice, [tensor(F32, 4, 1, 6)], [[0, 2]]),
        (twice, [tensor(F32)], []),
        (with_row, [CUBE, tensor(F32, 6)], [[0, 1], [2]]),
        (with_count, [CUBE], [[0], [1], [2]]),
        (part, [CUBE], [[0, 1], [2]]),
        (gather, [tensor(F32, 9, 8), tensor(I32, 5)], [[0], [1]]),
        (transpose, [tensor(F32, 30, 20)], [[0], [1]]),
        (lambda x: total(x, 1, 2), [CUBE], [[0], [1, 2]]),
        (lambda x: total(x, 0, 1, 2), [CUBE], [[0, 1, 2]]),
        (lambda x: total(x, 1), [CUBE], [[0], [1], [2]]),
    ],
)
def test_runs(function: Callable[..., Any], types: list[TensorType], runs: list[list[int]]) -> None:
    fusion = group(function, *types)
    assert Accesses(fusion).runs() == runs
    extents = {prod(fusion.domain[axis] for axis in run) for run in runs}
    loops = {loop.extent for phase in SCHEDULE.build(fusion).phases for loop in phase.walk()}
    # A reduction over all axes has a loop of one iteration around it.
    assert loops - {1} == extents


def test_the_run_along_which_an_operand_lies() -> None:
    accesses = Accesses(group(transpose, tensor(F32, 300, 200)))
    assert accesses.transposed_run([[0], [1]], 8) == 0
    assert accesses.transposed_run([[0], [1]], 201) is None
    assert Accesses(group(twice, tensor(F32, 300, 200))).transposed_run([[0], [1]], 8) is None


@pytest.mark.parametrize("function", [twice, transpose])
def test_loops_are_laid_out_once(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    lay_out = group_loops._kernel
    monkeypatch.setattr(group_loops, "_kernel", lambda nest: built.append(nest) or lay_out(nest))
    group_loops.build(group(function, tensor(F32, 300, 200)), PROCESSOR)
    assert len(built) == 1
