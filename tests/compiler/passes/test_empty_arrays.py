"""Graphs whose results no element of some operand matters to: rewritten, and as the reference defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.programs import graph, type_of
from xarr import lax, tree
from xarr.backend import get
from xarr.compiler.passes.empty_arrays import without_empty_operands
from xarr.ir.graph import Graph, element_types
from xarr.ir.types import TensorType, Type
from xarr.lax.indexing import GatherDimensionNumbers, ScatterDimensionNumbers

EMPTY, VALUES = np.zeros((0, 3)), np.arange(6.0).reshape(2, 3)
NOWHERE = np.zeros((0, 1), np.int64)
ROWS = ScatterDimensionNumbers((1,), (0,), (0,))

Program = Callable[[Any, Any, Any], Any]

#: Functions of an empty array, of one with elements and of no indices.
CASES: dict[str, Program] = {
    "reduce": lambda e, x, i: lax.reduce(e, 2.0, lax.add, (0,)),
    "reduce to a scalar": lambda e, x, i: lax.reduce(e, -0.0, lax.max, (0, 1)),
    "reduce two": lambda e, x, i: lax.reduce(
        (e, e), (1.0, 2.0), lambda a, b: (lax.add(a[0], b[0]), lax.mul(a[1], b[1])), (0,)
    ),
    "reduce_window": lambda e, x, i: lax.reduce_window(e, 2.0, lax.add, (1, 1), (1, 1), ((2, 1), (0, 0))),
    "concatenate": lambda e, x, i: lax.concatenate([e, x, e, x], 0),
    "concatenate one": lambda e, x, i: lax.concatenate([e, x, e], 0) + 1,
    "pad": lambda e, x, i: lax.pad(e, 3.0, ((1, 2, 0), (0, 1, 1))),
    "dot": lambda e, x, i: lax.dot_general(e, e, (((0,), (0,)), ((), ()))),
    "convolution": lambda e, x, i: lax.conv_general_dilated(
        lax.reshape(e, (1, 0, 3)), lax.reshape(e, (2, 0, 3)), (1,), "VALID"
    ),
    "scatter": lambda e, x, i: lax.scatter_add(x, i, e, ROWS),
    "dynamic_update_slice": lambda e, x, i: lax.dynamic_update_slice(x, e, (0, 0)),
    "in a loop": lambda e, x, i: lax.fori_loop(
        0, 3, lambda k, state: state + lax.reduce(e, 2.0, lax.add, (0,)), x[0]
    ),
    "in a branch": lambda e, x, i: lax.cond(
        x[0, 0] > 3, lambda e, x: x * 2, lambda e, x: lax.concatenate([e, x], 0), e, x
    ),
}


def has_empty_operands(graph: Graph) -> bool:
    """Whether an operation with elements has an operand without, here or in the graphs inside."""
    return any(
        not is_empty(node.type) and any(is_empty(operand.type) for operand in node.operands)
        for each in graph.walk()
        for node in each.nodes
        if not node.op.runs_graphs
    )


def is_empty(type: Type) -> bool:
    return all(isinstance(each, TensorType) and 0 in each.shape for each in element_types(type))


@pytest.mark.parametrize("function", CASES.values(), ids=CASES)
def test_results_are_those_of_the_reference(function: Program) -> None:
    before = graph(lambda *arrays: tree.leaves(function(*arrays)), *map(type_of, (EMPTY, VALUES, NOWHERE)))
    after = without_empty_operands(before)
    assert has_empty_operands(before)
    assert not has_empty_operands(after)
    assert after.result_types == before.result_types
    backend = get("reference")
    buffers = [backend.from_host(each) for each in (EMPTY, VALUES, NOWHERE)]
    for result, wanted in zip(*[backend.compile(each)(*buffers) for each in (after, before)], strict=True):
        assert_same(backend.to_host(result), backend.to_host(wanted))


def test_other_graphs_stay_as_they_are() -> None:
    for function, array in ((lambda x: [x + 1], VALUES), (lambda x: [lax.rev(x, (0,))], EMPTY)):
        before = graph(function, type_of(array))
        assert without_empty_operands(before) is before


def test_what_depends_on_other_operands_stays() -> None:
    numbers = GatherDimensionNumbers((), (0, 1), (0, 1))
    before = graph(
        lambda e: [lax.gather(e, xarr.zeros((2, 2), "int64"), numbers, (0, 0), mode="clip")], type_of(EMPTY)
    )
    assert without_empty_operands(before) is before


def test_updates_of_empty_indices_go_to_the_beginning() -> None:
    numbers = ScatterDimensionNumbers((), (), ())
    before = graph(
        lambda x, i, u: [lax.scatter_add(x, i, u, numbers)],
        *map(type_of, (np.float64(1), np.zeros((3, 0), int), np.ones(3))),
    )
    assert without_empty_operands(before) is before
