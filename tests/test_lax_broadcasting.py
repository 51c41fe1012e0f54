"""XlaBuilder's broadcasting in every binary function and comparison of `xarr.lax`.

What each function computes is tested beside `jax.lax` elsewhere; here it must compute the same of operands
that were broadcast by hand.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from tests.compare import assert_same
from tests.lax_values import HostArray, dtype_of, filled
from tests.support.operations import own_operations
from xarr import lax
from xarr.errors import BroadcastError
from xarr.ir import ops
from xarr.ir.ops.elementwise import Binary
from xarr.lazy import to_host

Shape = tuple[int, ...]
Dims = tuple[int, ...] | None

_SHIFTS: Final = ("shift_left", "shift_right_arithmetic", "shift_right_logical")
_BITWISE: Final = ("bitwise_and", "bitwise_or", "bitwise_xor")
_COMPARISONS: Final = ("eq", "ge", "gt", "le", "lt", "ne")

#: Every function of two operands that broadcasts, with an element type to run it on.
FUNCTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("add", "div", "max", "min", "mul", "pow", "rem", "sub", "atan2", "nextafter", "complex"), "float32"
    ),
    **dict.fromkeys((*_COMPARISONS, *[f"{name}_to" for name in _COMPARISONS]), "float32"),
    **dict.fromkeys((*_SHIFTS, *_BITWISE), "int32"),
}

#: lhs, rhs, broadcast_dimensions, and the shape of the result.
VALID: Final[list[tuple[Shape, Shape, Dims, Shape]]] = [
    ((), (), None, ()),
    ((), (2, 3), None, (2, 3)),
    ((2, 3), (), None, (2, 3)),
    ((2, 3), (), (), (2, 3)),
    ((), (0, 3), None, (0, 3)),
    ((2, 3), (2, 3), None, (2, 3)),
    ((2, 3), (2, 3), (0, 1), (2, 3)),
    ((2, 1), (2, 3), None, (2, 3)),
    ((1, 3), (2, 1), None, (2, 3)),
    ((1,), (4,), None, (4,)),
    ((1, 1), (2, 3), None, (2, 3)),
    ((0, 1), (1, 3), None, (0, 3)),
    ((2, 3), (3,), (1,), (2, 3)),
    ((2, 3), (2,), (0,), (2, 3)),
    ((3,), (2, 3), (1,), (2, 3)),
    ((2, 3, 4), (2, 4), (0, 2), (2, 3, 4)),
    ((3, 4), (2, 3, 4), (1, 2), (2, 3, 4)),
    ((2, 3, 1, 2, 1), (3, 2), (1, 3), (2, 3, 1, 2, 1)),
    ((2, 1, 4), (3, 4), (1, 2), (2, 3, 4)),
    ((2, 3, 4), (1, 4), (0, 2), (2, 3, 4)),
    ((1, 3, 1), (2, 4), (0, 2), (2, 3, 4)),
    ((2, 5), (1,), (0,), (2, 5)),
    ((2, 0, 4), (1, 4), (1, 2), (2, 0, 4)),
]

#: lhs, rhs, broadcast_dimensions, and the label of the rule they break.
INVALID: Final[list[tuple[Shape, Shape, Dims, str]]] = [
    ((2, 3), (3,), None, "B1"),
    ((3,), (2, 3), (), "B1"),
    ((2, 3), (3,), (0, 1), "B2"),
    ((2, 3, 4), (3, 4), (1,), "B2"),
    ((2, 3), (2, 3), (0,), "B2"),
    ((2, 3), (3,), (2,), "B3"),
    ((2, 3), (3,), (-1,), "B3"),
    ((2, 3, 4), (4, 3), (2, 1), "B4"),
    ((2, 2), (2, 2), (1, 0), "B4"),
    ((2, 3, 4), (3, 3), (1, 1), "B4"),
    ((2, 3), (2, 4), None, "B5"),
    ((2, 3), (3, 2), None, "B5"),
    ((2, 3), (2,), (1,), "B5"),
    ((0,), (2,), None, "B5"),
]


def _by_hand(x: HostArray, rank: int, dims: Dims, result: Shape) -> HostArray:
    """x with dimension i at dims[i] of `rank` dimensions, then stretched."""
    if x.ndim == rank or not x.ndim:
        return np.broadcast_to(x, result)
    assert dims is not None
    sizes = [1] * rank
    for axis, dim in enumerate(dims):
        sizes[dim] = x.shape[axis]
    return np.broadcast_to(x.reshape(sizes), result)


@pytest.mark.parametrize(("lhs", "rhs", "dims", "result"), VALID, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operands_broadcast(name: str, lhs: Shape, rhs: Shape, dims: Dims, result: Shape) -> None:
    dtype = dtype_of(FUNCTIONS[name])
    x, y = filled(lhs, dtype, 1), filled(rhs, dtype, 2)
    rank = max(len(lhs), len(rhs))
    function = getattr(lax, name)
    wanted = function(
        *[np.ascontiguousarray(_by_hand(v, rank, dims, result)).reshape(result) for v in (x, y)]
    )
    assert_same(function(x, y, broadcast_dimensions=dims), to_host(wanted))


@pytest.mark.parametrize(("lhs", "rhs", "dims", "label"), INVALID, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_refused(name: str, lhs: Shape, rhs: Shape, dims: Dims, label: str) -> None:
    dtype = dtype_of(FUNCTIONS[name])
    with pytest.raises(BroadcastError, match=rf"\[{label}\]"):
        getattr(lax, name)(filled(lhs, dtype), filled(rhs, dtype), broadcast_dimensions=dims)


def test_result_against_numpy_spelled_out() -> None:
    """One case of each kind beside NumPy's own broadcasting, which needs no help by xarr."""
    x, y = filled((2, 1, 4), dtype_of("float32"), 1), filled((3, 4), dtype_of("float32"), 5)
    assert_same(lax.sub(x, y, broadcast_dimensions=(1, 2)), x - y)
    assert_same(lax.sub(y, x, broadcast_dimensions=(1, 2)), y - x)
    assert_same(
        lax.sub(x, filled((2,), dtype_of("float32")), (0,)),
        x - filled((2,), dtype_of("float32"))[:, None, None],
    )
    assert_same(lax.lt(x, y[0, 0], broadcast_dimensions=()), x < y[0, 0])


def test_every_binary_function_is_in_the_table() -> None:
    names = {cls.lax_name for cls in own_operations(Binary) if cls is not ops.Compare}
    assert names | set(_COMPARISONS) | {f"{name}_to" for name in _COMPARISONS} == set(FUNCTIONS)
