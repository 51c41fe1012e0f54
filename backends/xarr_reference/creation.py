"""Arrays out of nothing: result[index] depends on the index alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr_reference.elementwise import convert
from xarr_reference.values import Array, Rule, empty, indices


def constant(node: Node) -> Array:
    """result[i] = the literal's element i"""
    return node.op.expect(ops.Constant).array


def iota(node: Node) -> Array:
    """result[i] = i[dimension], converted to the element type"""
    result = empty(node.type)
    for index in indices(result.shape):
        result[index] = convert(np.int64(index[node.op.expect(ops.Iota).dimension]), result.dtype)
    return result


TABLE: Final[dict[type[Op], Rule]] = {ops.Constant: constant, ops.Iota: iota}
