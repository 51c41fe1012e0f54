"""Slices at computed starts of parts of arrays read the arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.while_loops.parts_of_parts import read_from_wholes
from xarr.ir import ops
from xarr.ir.graph import Graph

X = np.arange(4 * 6 * 5).reshape(4, 6, 5)

#: What is read of `X` at a start, and whether it is read from `X` itself.
READS: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "an element of a column": (lambda x, i: lax.dynamic_slice(x[:, 1, 2], (i,), (1,)), True),
    "rows of a plane": (lambda x, i: lax.dynamic_slice(x[:, 3], (i, 0), (2, 5)), True),
    "all of a range": (lambda x, i: lax.dynamic_slice(x[:, 2:4], (i, i, i), (2, 2, 3)), True),
    "part of a range": (lambda x, i: lax.dynamic_slice(x[:, 2:5], (i, i, i), (2, 2, 3)), False),
    "all of every second": (lambda x, i: lax.dynamic_slice(x[:, ::2], (i, i, i), (2, 3, 3)), False),
    "one of every seventh": (lambda x, i: lax.dynamic_slice(x[:, 1::7], (i, i, i), (2, 1, 3)), True),
    "with a dimension more": (lambda x, i: lax.dynamic_slice(x[:, None], (i, i, i, i), (1, 1, 2, 3)), True),
    "two of one": (lambda x, i: lax.dynamic_slice(x.reshape(24, 5), (i, i), (3, 2)), False),
    "a part of a plane of a plane": (lambda x, i: lax.dynamic_slice(x[:, 4][:, 2], (i,), (3,)), True),
}


def operand_of_slice(graph: Graph) -> Any:
    (node,) = (node for node in graph.nodes if isinstance(node.op, ops.DynamicSlice))
    return node.operands[0]


@pytest.mark.parametrize("name", READS)
def test_parts_of_parts_are_parts(name: str) -> None:
    read, is_moved = READS[name]
    for kind in ("s64", "s8"):
        graph = xarr.jit(read).lower("s64[4,6,5]", f"{kind}[]").stage("decomposed")
        changed = read_from_wholes(graph)
        changed.verify()
        assert (operand_of_slice(changed) is changed.parameters[0]) == is_moved
        assert [each.type for each in changed.results] == [each.type for each in graph.results]
    for start in (-5, 0, 1, 2, 9):

        def loop(x: Any, start: Any = start) -> Any:
            first = read(x, xarr.asarray(0))
            return lax.fori_loop(0, 1, lambda i, total: total + read(x, i + start), first * 0)

        with xarr.config(fusion="off"):
            wanted = xarr.jit(loop)(xarr.asarray(X))
        assert_same(xarr.jit(loop)(xarr.asarray(X)), wanted)


def test_a_start_fits_into_the_type_of_starts() -> None:
    def read(x: Any, i: Any) -> Any:
        return lax.dynamic_slice(x[:, 200], (i,), (1,))

    for kind, is_moved in (("s8", False), ("u8", True), ("s16", True)):
        graph = xarr.jit(read).lower("s64[3,300]", f"{kind}[]").stage("decomposed")
        assert (operand_of_slice(read_from_wholes(graph)) is graph.parameters[0]) == is_moved
