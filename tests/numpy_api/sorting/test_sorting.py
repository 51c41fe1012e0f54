"""Searching, sorting, comparison of arrays and questions about types, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.support.functions import DTYPES, SHAPES, XP, against_numpy, expression, same, sample
from xarr.errors import AxisError, BroadcastError, DTypeError, InputError, ShapeError, ValueRangeError

REAL = ["bool", "int8", "uint64", "float16", "float64"]
INDEX_CALLS = [
    "xp.argmax(x)",
    "xp.argmin(x)",
    "xp.argmax(x, axis=0)",
    "xp.argmin(x, axis=-1, keepdims=True)",
    "xp.argmax(x, keepdims=True)",
    "xp.sort(x)",
    "xp.sort(x, axis=0)",
    "xp.sort(x, axis=None)",
    "xp.sort(x, kind='heapsort')",
    "xp.sort(x, stable=True)",
    "xp.argsort(x, kind='stable')",
    "xp.argsort(x, axis=0, stable=True)",
    "xp.argsort(x, axis=None, stable=True)",
]


@pytest.mark.parametrize("text", INDEX_CALLS)
@pytest.mark.parametrize("dtype", REAL)
def test_indices_and_order(text, dtype):
    # Only a stable sort of NumPy's keeps equal zeros in their order and, with AVX-512, NaNs their bits.
    rtol = 0 if "xp.sort" in text and "stable" not in text else None
    for shape in SHAPES[1:]:
        against_numpy(expression(text), sample(shape, dtype), rtol=rtol)
        against_numpy(expression(text), few(shape, dtype), rtol=rtol)


def few(shape, dtype):
    """Many equal elements."""
    return (sample(shape, "uint8") % 3).astype(dtype)


def test_order_of_scalars():
    same(XP.sort(3.0, axis=None), np.sort(3.0, axis=None))
    same(XP.argsort(3.0, axis=None), np.argsort(3.0, axis=None))
    same(XP.argmax(3.0), np.argmax(3.0))
    with pytest.raises(AxisError, match="no dimensions"):
        XP.sort(3.0)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_extremes_of_complex_numbers(name):
    nan, inf = np.nan, np.inf
    rows = [[1 + 2j, 1 + 3j, 1 + 1j], [2j, -0.0 + 2j, 0j], [inf + 1j, -inf + 0j, inf + 2j], [1, 1, 1]]
    rows += [[5, complex(0, nan), nan], [complex(nan, 1), complex(1, nan), 7]]
    values = np.array(rows)
    for dtype in ("complex64", "complex128"):
        x = values.astype(dtype)
        for axis in (None, 0, 1):
            same(getattr(XP, name)(x, axis=axis), getattr(np, name)(x, axis=axis))
            same(
                xarr.jit(lambda x, axis=axis: getattr(xarr, name)(x, axis=axis))(x),
                getattr(np, name)(x, axis=axis),
            )
    same(getattr(XP, name)(1 + 2j), getattr(np, name)(1 + 2j))


def test_special_floats():
    values = np.array([np.nan, 1, -np.inf, np.inf, -0.0, 0.0, np.nan, -1])
    same(XP.sort(values), np.sort(values, stable=True))
    same(XP.argsort(values), np.argsort(values, stable=True))
    assert np.asarray(XP.argmax(values)) == np.argmax(values) == 0
    assert np.asarray(XP.argmin(values[1:])) == np.argmin(values[1:]) == 5
    assert np.asarray(XP.argmax(np.full(3, -np.inf))) == 0


@settings(max_examples=40)
@given(st.lists(st.integers(-2, 2), max_size=12), st.booleans())
def test_descending_sorts_keep_equal_elements_in_order(items, backwards):
    values = np.array(items, np.int8)
    wanted = sorted(range(len(items)), key=lambda i: -items[i] if backwards else items[i])
    same(XP.argsort(values, descending=backwards), np.array(wanted, np.int64))
    same(XP.sort(values, descending=backwards), values[wanted])


CHOICES = [
    ((), (3,), (3,)),
    ((2, 3), (2, 3), (2, 3)),
    *(
        pytest.param(shapes, marks=pytest.mark.implicit)
        for shapes in (((2, 1), (3,), ()), ((0,), (1,), (0,)), ((2,), (3,), (1,)))
    ),
]


@pytest.mark.parametrize("shapes", CHOICES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_where(shapes, dtype):
    condition, x, y = shapes
    inputs = sample(condition, "bool"), sample(x, dtype), sample(y, "int8")
    against_numpy(expression("xp.where(x, y, z)"), *inputs)
    against_numpy(expression("xp.where(y, y, z)"), *inputs)
    against_numpy(expression("xp.where(x, y, 1)"), *inputs)
    against_numpy(expression("xp.where(x, 1.5, z)"), *inputs)


COMPARED = [
    "xp.isclose(x, y)",
    "xp.isclose(x, y, rtol=0.1, atol=0)",
    "xp.isclose(x, y, equal_nan=True)",
]


@pytest.mark.parametrize("text", COMPARED)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "float64", "complex64"])
def test_isclose(text, dtype):
    x = sample((4, 5), dtype)
    with np.errstate(all="ignore"):
        near = (x * (1 + 1e-6)).astype(dtype)
    for y in (x, near, np.float64(1), np.roll(x, 1)):
        against_numpy(expression(text), x, y)


@pytest.mark.implicit
@pytest.mark.parametrize("text", COMPARED)
def test_isclose_broadcasts(text):
    against_numpy(expression(text), sample((4, 5), "float64"), sample((5,), "float64", seed=1))


@pytest.mark.parametrize("name", ["allclose", "array_equal"])
def test_equality_of_whole_arrays(name):
    x = sample((3, 3), "float64")
    finite = sample((3, 3), "float64", special=False)
    for a, b in [
        (x, x),
        (finite, finite),
        (finite, finite + 1e-12),
        (finite, finite + 1),
        (finite, 2),
        ([], []),
    ]:
        for equal_nan in (False, True):
            result = getattr(XP, name)(a, b, equal_nan=equal_nan)
            assert result.dtype == bool and result.shape == ()
            assert bool(result) == getattr(np, name)(a, b, equal_nan=equal_nan)
    assert not XP.array_equal([1, 2], [1, 2, 3])
    assert XP.array_equal([1, 2], [1.0, 2.0])
    assert not XP.array_equal([1], [1, 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_can_cast_and_promote(dtype):
    for other in DTYPES:
        assert XP.can_cast(dtype, other) == np.can_cast(dtype, other)
        assert XP.can_cast(XP.zeros(2, dtype), other, "same_kind") == np.can_cast(dtype, other, "same_kind")
        assert XP.promote_types(dtype, other) == np.promote_types(dtype, other)
        arrays = np.zeros(2, dtype), np.zeros(1, other)
        for extra in ((), (1,), (1.5,), (1j,), (True, 2), (np.int16(3),), (np.dtype("int16"),)):
            wanted = np.result_type(*arrays, *extra)
            assert XP.result_type(*arrays, *extra) == wanted
            assert XP.result_type(XP.asarray(arrays[0]), other, *extra) == wanted


def test_limits():
    for dtype in ("float16", "float32", "complex64", ml_dtypes.bfloat16):
        assert (
            XP.finfo(dtype).eps == ml_dtypes.finfo(dtype).eps
            if dtype == ml_dtypes.bfloat16
            else np.finfo(dtype).eps
        )
        assert XP.finfo(XP.zeros(1, dtype)).bits == XP.finfo(dtype).bits
    for dtype in ("int8", "uint64"):
        assert XP.iinfo(dtype).max == np.iinfo(dtype).max
        assert XP.iinfo(XP.zeros(1, dtype)).min == np.iinfo(dtype).min


KINDS = [
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
]


def test_isdtype():
    for dtype in map(np.dtype, DTYPES):
        for kind in [*KINDS, np.dtype("int8"), ("bool", "integral"), (np.dtype("float32"), "bool"), ()]:
            assert XP.isdtype(dtype, kind) == np.isdtype(dtype, kind)
    assert XP.isdtype(ml_dtypes.bfloat16, "real floating")


def test_astype():
    x = XP.asarray([1.7, -1.7, 0.0])
    same(XP.astype(x, "int8"), np.array([1, -1, 0], np.int8))
    same(XP.astype(x, bool), np.array([True, True, False]))
    assert XP.astype(x, "float64", copy=False) is x
    assert XP.astype(x, "float64") is not x


@pytest.mark.parametrize("shapes", [((2, 1), (3,)), (3, (1,)), ((0,), 1), (), ((2,), (3,))], ids=str)
def test_broadcast_shapes(shapes):
    try:
        wanted = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(BroadcastError):
            XP.broadcast_shapes(*shapes)
    else:
        assert XP.broadcast_shapes(*shapes) == wanted


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xp.where(x, x)", InputError, "got only one of x and y"),
        ("xp.where(x, x, np.ones(4))", BroadcastError, "4"),
        ("xp.argmax(x, axis=2)", AxisError, "out of range"),
        ("xp.argmax(x[:0])", ShapeError, "at least one element"),
        ("xp.argmin(x[:0], axis=0)", ShapeError, "at least one element"),
        ("xp.nanargmax(x + 1j)", DTypeError, "complex"),
        ("xp.argmax(x, out=5)", InputError, "out="),
        ("xp.sort(x, kind='bogo')", ValueRangeError, "kind"),
        ("xp.sort(x, order='name')", InputError, "structured"),
        ("xp.argsort(x, axis=2)", AxisError, "out of range"),
        ("xp.isclose(x, x, rtol=None)", InputError, "rtol"),
        ("xp.can_cast(3, 'int8')", InputError, "no dtype"),
        ("xp.can_cast('int8', 'int8', 'loose')", ValueRangeError, "casting"),
        ("xp.result_type()", InputError, "at least one"),
        ("xp.promote_types('float8_e5m2', 'float16')", DTypeError, "promotion"),
        ("xp.finfo('int8')", DTypeError, "iinfo"),
        ("xp.iinfo('float32')", DTypeError, "finfo"),
        ("xp.isdtype('int8', 'integer')", ValueRangeError, "signed integer"),
        ("xp.astype(x, 'object')", DTypeError, "element type"),
        ("xp.broadcast_shapes((-1,))", ShapeError, "integers >= 0"),
    ],
)
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        expression(text)(XP, XP.ones((2, 3)))


def test_strict_broadcasting():
    with xarr.config(broadcasting="explicit"):
        same(XP.where(np.array([True, False]), 1.0, np.array([2.0, 3.0])), np.array([1.0, 3.0]))
        with pytest.raises(BroadcastError, match="explicit"):
            XP.where(np.ones((2, 1), bool), np.ones((2, 3)), 0.0)
        with pytest.raises(BroadcastError, match="explicit"):
            XP.isclose(np.ones((2, 3)), np.ones(3))
