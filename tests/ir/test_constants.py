"""Nodes for numbers that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compare import assert_same
from xarr.dtypes import TABLE
from xarr.ir import ops
from xarr.ir.constants import constant, full
from xarr.runtime.handles import wrap


@pytest.mark.parametrize("dtype", [row.dtype for row in TABLE])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 1, 3)], ids=str)
def test_one_number_in_each_element(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    node = full(1, shape, dtype)
    kinds = [type(each.op) for each in (node, *node.operands)]
    assert kinds == ([ops.BroadcastInDim, ops.Constant] if shape else [ops.Constant]), "one element is kept"
    assert_same(wrap(node), np.full(shape, 1).astype(dtype))


@pytest.mark.parametrize("value", [-0.0, np.inf, np.nan, 2.5])
def test_scalars_keep_their_bits(value: float) -> None:
    for dtype in map(np.dtype, (np.float16, np.float32, np.float64)):
        for node in (constant(value, dtype), full(value, (), dtype)):
            assert isinstance(node.op, ops.Constant) and not node.operands
            assert_same(wrap(node), np.array(value, dtype))
