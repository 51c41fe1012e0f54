"""The shape rules of the ops that carry computations: each label refuses what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.graphs import F32, PRED, S32, add, constant, less, node, scalars
from xarr.errors import ShapeError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType

SCALAR, INDEX, FLAG = (parameter(TensorType((), dtype)) for dtype in (F32, S32, PRED))
ROW, LONGER = (parameter(TensorType((size,), np.dtype(np.float32))) for size in (2, 3))
SUM = scalars(add, F32, F32)
SAME = scalars(lambda x: x, F32)
NEVER = scalars(lambda x: less(x, x), F32)


def assert_refused(label: str, op: Op, *operands: Node, match: str = "wanted") -> None:
    with pytest.raises(ShapeError, match=rf"{op.lax_name} \[{label}\]: .*{match}"):
        Node(op, operands)


def to_bool(*dtypes: Any) -> Graph:
    return scalars(lambda *_: constant(True, PRED), *dtypes)


def test_reduce_c1() -> None:
    assert_refused("C1", ops.Reduce((0,), SUM))
    assert_refused("C1", ops.Reduce((0,), SUM), ROW, ROW, SCALAR)
    assert_refused("C1", ops.Reduce((0,), SUM), ROW, LONGER, SCALAR, SCALAR)


def test_reduce_c2() -> None:
    assert_refused("C2", ops.Reduce((0,), SUM), ROW, INDEX)
    assert_refused("C2", ops.Reduce((0,), SUM), ROW, ROW)


def test_reduce_c3() -> None:
    for dimensions in ((1,), (-1,), (0, 0)):
        assert_refused("C3", ops.Reduce(dimensions, SUM), ROW, SCALAR)


def test_reduce_c4() -> None:
    assert_refused("C4", ops.Reduce((0,), SAME), ROW, SCALAR)
    assert_refused("C4", ops.Reduce((0,), to_bool(F32, F32)), ROW, SCALAR)


def test_sort_c1() -> None:
    assert_refused("C1", ops.Sort(0, True, to_bool(F32, F32)))
    assert_refused("C1", ops.Sort(0, True, to_bool(F32, F32, F32, F32)), ROW, LONGER)


def test_sort_c2() -> None:
    for dimension in (-1, 1):
        assert_refused("C2", ops.Sort(dimension, True, to_bool(F32, F32)), ROW)


def test_sort_c3() -> None:
    assert_refused("C3", ops.Sort(0, True, SUM), ROW)
    assert_refused("C3", ops.Sort(0, True, to_bool(F32)), ROW)


def test_get_tuple_element_c1() -> None:
    assert_refused("C1", ops.GetTupleElement(0), ROW, match="a tuple, got f32")


def test_get_tuple_element_c2() -> None:
    pair = node(ops.Tuple(), ROW, SCALAR)
    for index in (-1, 2):
        assert_refused("C2", ops.GetTupleElement(index), pair, match=rf"\[0, 2\), got {index}")


def test_call_c1() -> None:
    assert_refused("C1", ops.Call(SAME), ROW)
    assert_refused("C1", ops.Call(SAME))


def test_map_c1() -> None:
    assert_refused("C1", ops.Map((), SUM))
    assert_refused("C1", ops.Map((0,), SUM), ROW, LONGER)


def test_map_c2() -> None:
    assert_refused("C2", ops.Map((), SAME), ROW)
    assert_refused("C2", ops.Map((1,), SAME), ROW)


def test_map_c3() -> None:
    two = Graph(SUM.parameters, SUM.results * 2)
    assert_refused("C3", ops.Map((0,), two), ROW, ROW)
    assert_refused("C3", ops.Map((0,), SUM), ROW)


def test_while_c1() -> None:
    assert_refused("C1", ops.While(SAME, SAME), SCALAR)
    assert_refused("C1", ops.While(NEVER, SAME), SCALAR, SCALAR)


def test_while_c2() -> None:
    assert_refused("C2", ops.While(NEVER, NEVER), SCALAR)
    assert_refused("C2", ops.While(NEVER, SUM), SCALAR)


def test_if_c1() -> None:
    assert_refused("C1", ops.If(SAME, SAME), INDEX, SCALAR)
    assert_refused("C1", ops.If(SAME, SAME), parameter(TensorType((1,), PRED)), SCALAR)


def test_if_c2() -> None:
    assert_refused("C2", ops.If(SAME, SAME), FLAG, ROW)
    assert_refused("C2", ops.If(SAME, SUM), FLAG, SCALAR)


def test_if_c3() -> None:
    assert_refused("C3", ops.If(SAME, NEVER), FLAG, SCALAR, match="branches differ")


def test_case_c1() -> None:
    assert_refused("C1", ops.Case((SAME,)), FLAG, SCALAR)
    assert_refused("C1", ops.Case((SAME,)), parameter(TensorType((), np.dtype(np.int64))), SCALAR)


def test_case_c2() -> None:
    assert_refused("C2", ops.Case((SAME, SUM)), INDEX, SCALAR)


def test_case_c3() -> None:
    assert_refused("C3", ops.Case(()), INDEX)
    assert_refused("C3", ops.Case((SAME, NEVER)), INDEX, SCALAR, match="branches differ")
