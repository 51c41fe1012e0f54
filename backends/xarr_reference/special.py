"""Special functions, by other means than the formulas they decompose into; and random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from xarr.base.process_rng import draw
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr_reference.elementwise import pointwise
from xarr_reference.scalars import Scalar, round_to, wide
from xarr_reference.values import Array, Rule


def _of_double(function: Callable[[float], float]) -> Callable[[Scalar], Scalar]:
    def rule(x: Scalar) -> Scalar:
        """f(x), computed in float64 and rounded once"""
        return round_to(np.float64(function(float(wide(x)))), x.dtype)

    return rule


def _lgamma(x: float) -> float:
    """log |gamma(x)|, infinite at the poles 0, -1, -2 … and at both infinities"""
    if x <= 0 and (math.isinf(x) or x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:  # Python raises where C gives infinity.
        return math.inf


def rng(node: Node, a: Array, b: Array, sizes: Array) -> Array:
    """result[i] = a number of the process's generator"""
    assert isinstance(node.op, ops.Rng)
    return draw(node.op.distribution, node.op.shape, a, b)


TABLE: Final[dict[type[Op], Rule]] = {
    ops.Erf: pointwise(_of_double(math.erf)),
    ops.Erfc: pointwise(_of_double(math.erfc)),
    ops.Lgamma: pointwise(_of_double(_lgamma)),
    ops.Rng: rng,
}
