"""XlaBuilder's broadcasting in every binary function and comparison of `xarr.lax`.

What each function computes is tested beside `jax.lax` elsewhere; here it must compute the same of operands
that were broadcast by hand.
"""

from __future__ import annotations

from typing import Final

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.lax_values import HostArray, dtype_of, fill
from tests.support.operations import own_operations
from xarr import lax
from xarr.base.broadcasting import align_xla
from xarr.errors import BroadcastError, BroadcastWarning, DTypeError
from xarr.explanation.broadcast import explain_shapes
from xarr.explanation.broadcast_code import one_op
from xarr.ir import ops
from xarr.ir.ops.elementwise import Binary
from xarr.runtime.materialisation import to_host

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
    x, y = fill(lhs, dtype, 1), fill(rhs, dtype, 2)
    rank = max(len(lhs), len(rhs))
    function = getattr(lax, name)
    wanted = function(
        *[np.ascontiguousarray(_by_hand(v, rank, dims, result)).reshape(result) for v in (x, y)]
    )
    with xarr.config(broadcasting="numpy"):
        assert_same(function(x, y, broadcast_dimensions=dims), to_host(wanted))


@pytest.mark.parametrize(("lhs", "rhs", "dims", "result"), VALID, ids=str)
@pytest.mark.parametrize("name", ["sub", "lt", "complex", "eq_to", "shift_left", "bitwise_and"])
def test_nothing_stretches_in_explicit_mode(
    name: str, lhs: Shape, rhs: Shape, dims: Dims, result: Shape
) -> None:
    function, dtype = getattr(lax, name), dtype_of(FUNCTIONS[name])
    x, y = fill(lhs, dtype, 1), fill(rhs, dtype, 2)
    stretches = any(map(align_xla(lhs, rhs, dims).stretched_axes, (0, 1)))
    with xarr.config(broadcasting="explicit"):
        if not stretches:
            assert function(x, y, broadcast_dimensions=dims).shape == result
            return
        with pytest.raises(BroadcastError, match=r"refuses to stretch [xy] along axis") as refused:
            function(x, y, broadcast_dimensions=dims)
        explanation = refused.value.explanation
        scope = {"lax": lax, "x": x, "y": y}
        single = one_op(explanation)
        assert single is not None
        exec(single, scope)
    with xarr.config(broadcasting="numpy"):
        assert_same(scope["result"], to_host(function(x, y, broadcast_dimensions=dims)))


@pytest.mark.parametrize(
    "shapes", [((5, 1), (5,)), ((3, 4), (3, 1)), ((2, 1), (1, 3)), ((1, 2), ())], ids=str
)
def test_where_an_axis_is_stretched_one_op_is_what_jax_takes(shapes: tuple[Shape, Shape]) -> None:
    a, b = (fill(shape, dtype_of("float32"), seed) for seed, shape in enumerate(shapes))
    scope = {"lax": jax.lax, "a": a, "b": b}
    single = one_op(explain_shapes(*shapes, op="-"))
    assert single is not None
    exec(single, scope)
    assert_same(np.asarray(scope["result"]), a - b)


def test_a_stretched_axis_is_announced_in_warn_mode() -> None:
    x, y = lax.full((3, 4), 1.0), lax.full((3, 1), 2.0)
    with xarr.config(broadcasting="warn"):
        with pytest.warns(BroadcastWarning, match="refuses to stretch y along axis 1") as caught:
            result = lax.sub(x, y)
        assert caught[0].filename == __file__
    assert_same(result, np.full((3, 4), -1.0))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_python_numbers_of_two_kinds_are_refused(name: str) -> None:
    function = getattr(lax, name)
    for x, y in ((0, 0.5), (True, 1), (0.5, 1j), (False, 2.0)):
        with pytest.raises(DTypeError, match=r"wanted Python numbers of one kind|does not fit"):
            function(x, y)
        with pytest.raises(DTypeError, match=r"wanted Python numbers of one kind|does not fit"):
            xarr.jit(lambda x, y=y: function(x, y))(x)
    if FUNCTIONS[name] == "float32":
        with pytest.raises(DTypeError, match="the Python bool True does not fit"):
            function(np.ones(2, np.float32), True)


def test_the_exponent_of_a_power_may_be_an_int() -> None:
    """As in jax.lax, beside a float of Python's as beside an array of floats."""
    assert_same(lax.pow(2.0, 3), np.float64(8))
    assert_same(xarr.jit(lambda n: lax.pow(2.0, n))(3), np.float64(8))
    assert_same(lax.pow(np.float32([2, 3]), 2), np.float32([4, 9]))


@pytest.mark.parametrize(("lhs", "rhs", "dims", "label"), INVALID, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_refused(name: str, lhs: Shape, rhs: Shape, dims: Dims, label: str) -> None:
    dtype = dtype_of(FUNCTIONS[name])
    with pytest.raises(BroadcastError, match=rf"\[{label}\]"):
        getattr(lax, name)(fill(lhs, dtype), fill(rhs, dtype), broadcast_dimensions=dims)


@pytest.mark.implicit
def test_result_against_numpy_spelled_out() -> None:
    """One case of each kind beside NumPy's own broadcasting, which needs no help by xarr."""
    x, y = fill((2, 1, 4), dtype_of("float32"), 1), fill((3, 4), dtype_of("float32"), 5)
    assert_same(lax.sub(x, y, broadcast_dimensions=(1, 2)), x - y)
    assert_same(lax.sub(y, x, broadcast_dimensions=(1, 2)), y - x)
    assert_same(
        lax.sub(x, fill((2,), dtype_of("float32")), (0,)),
        x - fill((2,), dtype_of("float32"))[:, None, None],
    )
    assert_same(lax.lt(x, y[0, 0], broadcast_dimensions=()), x < y[0, 0])


def test_every_binary_function_is_in_the_table() -> None:
    names = {cls.lax_name for cls in own_operations(Binary) if cls is not ops.Compare}
    assert names | set(_COMPARISONS) | {f"{name}_to" for name in _COMPARISONS} == set(FUNCTIONS)
