"""Creation functions against NumPy."""

import pickle
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

import xarr
from tests.support.functions import DTYPES, SHAPES, XP, against_numpy, expression, same, sample
from xarr.base.host_arrays import only_numbers
from xarr.errors import BackendError, BroadcastError, DTypeError, InputError, ShapeError, ValueRangeError
from xarr.ir.graph import Data, postorder

RANGES = [
    (5,),
    (0,),
    (-3,),
    (2, 7),
    (7, 2),
    (7, 2, -1),
    (7, 2, -2),
    (0, 10, 3),
    (0.0, 1.0, 0.1),
    (1.0, 2.0, 0.3),
    (-1.5, 4),
    (5, 0, -0.7),
    (0.1, 0.1),
    (0, 1e-320, 1e10),
    (0.3, 7, 1.1),
    (-0.0, 3),
    (1, 3, 1e-1),
    (1e-9, 2, 0.7),
    (True,),
    (np.float32(0.5), 3),
    (np.int8(1), np.int8(9), 2),
    (np.array(4),),
]


@pytest.mark.parametrize("arguments", RANGES, ids=str)
@pytest.mark.parametrize("dtype", [None, "int16", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_arange_has_numpys_bits(arguments, dtype):
    try:
        wanted = np.arange(*arguments, dtype=dtype)
    except OverflowError:
        with pytest.raises(OverflowError):
            XP.arange(*arguments, dtype=dtype)
    else:
        same(XP.arange(*arguments, dtype=dtype), wanted)


@pytest.mark.parametrize("arguments", [(300,), (254, 256), (3, 600, 7), (200, 0, -3)], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
def test_arange_of_unsigned_integers(arguments, dtype):
    same(XP.arange(*arguments, dtype=dtype), np.arange(*arguments, dtype=dtype))


def test_arange_beyond_the_exact_floats():
    same(XP.arange(2**62, 2**62 + 3), np.arange(2**62, 2**62 + 3))


def test_arange_of_bools():
    same(XP.arange(2, dtype=bool), np.arange(2, dtype=bool))
    same(XP.arange(1, 3, dtype=bool), np.arange(1, 3, dtype=bool))
    with pytest.raises(DTypeError, match="wanted at most 2 elements for a range of bools, got 3"):
        XP.arange(3, dtype=bool)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_arange_of_narrow_floats(dtype):
    wanted = np.arange(5, dtype=np.float32).astype(dtype)
    same(XP.arange(5, dtype=dtype), wanted)
    same(XP.arange(0.5, 5, dtype=dtype), np.arange(0.5, 5, dtype=np.float32).astype(dtype))


def test_long_range_of_float16_rounds_each_element():
    same(XP.arange(3000, dtype="float16"), np.arange(3000, dtype="float16"))


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(0.5, 1e3) | st.floats(-1e3, -0.5))
def test_any_range(start, stop, step):
    for dtype in ("float64", "float32"):
        same(XP.arange(start, stop, step, dtype=dtype), np.arange(start, stop, step, dtype=dtype))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, 5, 0), ValueRangeError, "step other than 0"),
        ((np.nan,), ValueRangeError, "finite length"),
        ((0, np.inf), ValueRangeError, "finite length"),
        ((1j,), DTypeError, "real number"),
        (([3],), InputError, "wanted a number"),
        ((np.arange(3),), InputError, r"shape \(3,\)"),
        ((1e30,), ShapeError, "below 2"),
    ],
)
def test_arange_refuses(arguments, error, words):
    with pytest.raises(error, match=words):
        XP.arange(*arguments)
    with pytest.raises(ValueRangeError, match="out of bounds for uint8"):
        XP.arange(300, 305, dtype="uint8")


ENDS = [(0, 1), (0.0, 1.0), (3, 3), (-2, 5.5), (1, 1j), (0, 5e-324), (-0.0, 0.0)]


@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("num", [0, 1, 2, 3, 7, 50])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_linspace_has_numpys_bits(ends, num, endpoint):
    same(XP.linspace(*ends, num, endpoint), np.linspace(*ends, num, endpoint))
    result, step = XP.linspace(*ends, num, endpoint, retstep=True)
    wanted, wanted_step = np.linspace(*ends, num, endpoint, retstep=True)
    same(result, wanted)
    np.testing.assert_array_equal(np.asarray(step), wanted_step)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float16", "complex128"])
def test_linspace_of_a_dtype(dtype):
    same(XP.linspace(0, 10.7, 6, dtype=dtype), np.linspace(0, 10.7, 6, dtype=dtype))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_linspace_between_arrays(axis):
    low, high = np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 5e-324])
    for ends in ((low, high), (low, 2), (np.float32(1), high), (low[:1] * 0, high[2:])):
        against_numpy(lambda xp, a, b: xp.linspace(a, b, 4, axis=axis), *ends)


def test_linspace_of_float32_stays_float32():
    ends = np.array([1, 2], np.float32), np.array([3, 9], np.float32)
    against_numpy(lambda xp, a, b: xp.linspace(a, b, 5), *ends)
    assert XP.linspace(np.float32(1), 2, 3).dtype == np.float32


def test_linspace_refuses_a_negative_number():
    with pytest.raises(ValueRangeError, match="num >= 0"):
        XP.linspace(0, 1, -1)
    with pytest.raises(InputError, match="int for num"):
        XP.linspace(0, 1, 2.5)


FILLED = [
    "xp.zeros(x, y)",
    "xp.ones(x, y)",
    "xp.full(x, 1, y)",
    "xp.full(x, np.int8(1), y)",
    "xp.zeros_like(np.ones(x, y))",
    "xp.ones_like(np.zeros(x), y)",
    "xp.full_like(np.zeros(x, y), 1)",
    "xp.ones_like(np.zeros(3, y), shape=x)",
]


@pytest.mark.parametrize("text", FILLED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_filled_arrays(text, dtype):
    for shape in SHAPES:
        same(expression(text)(XP, shape, dtype), expression(text)(np, shape, dtype))


def test_defaults_of_filled_arrays():
    same(XP.zeros(3), np.zeros(3))
    same(XP.ones([2, 2]), np.ones([2, 2]))
    same(XP.full((2,), 7), np.full((2,), 7))
    same(XP.full((2,), 7.5), np.full((2,), 7.5))
    same(XP.full((2, 3), [1, 2, 3]), np.full((2, 3), [1, 2, 3]))
    same(XP.empty((2, 3), "int8"), np.zeros((2, 3), "int8"))
    same(XP.empty_like(np.ones(2)), np.zeros(2))
    with xarr.config(default_dtype="float32"):
        assert {XP.zeros(1).dtype, XP.eye(1).dtype, XP.arange(1.0).dtype} == {np.dtype("float32")}
    assert XP.zeros(1).dtype == np.float64


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xp.zeros(-1)", ShapeError, "integers >= 0"),
        ("xp.zeros(2.0)", ShapeError, "integers"),
        ("xp.zeros(3, object)", DTypeError, "object"),
        ('xp.zeros(3, "no such")', DTypeError, "not a dtype"),
        ('xp.zeros(3, order="F")', InputError, "order"),
        ('xp.zeros(3, device="abacus")', BackendError, "abacus"),
        ("xp.zeros(3, device=7)", InputError, "device"),
        ('xp.full(3, 300, "uint8")', ValueRangeError, "out of bounds"),
        ("xp.full((2, 3), [1, 2])", BroadcastError, "2"),
        ("xp.full(3, np.ones((2, 3)))", BroadcastError, "does not fit"),
        ("xp.asarray([[1, 2], [3]])", InputError, "ragged"),
        ("xp.asarray([xp.ones(2), xp.ones(3)])", InputError, "ragged"),
        ('xp.asarray("text")', InputError, "strings"),
        ("xp.asarray([object()])", InputError, "objects"),
        ("xp.asarray(2**70)", ValueRangeError, "out of bounds"),
        ("xp.asarray([1.0], copy=False)", ValueError, "copy=False"),
        ("xp.asarray(1.0, copy=False)", ValueError, "copy=False"),
        ('xp.asarray(xp.ones(2), "int8", copy=False)', ValueError, "copy=False"),
        ("xp.asarray([xp.ones(2)], copy=False)", ValueError, "copy=False"),
        ("xp.from_dlpack([1])", InputError, "__dlpack__"),
        ("xp.tril(1.0)", ShapeError, "rank 1"),
        ("xp.diag(1.0)", ShapeError, "vector or a matrix"),
        ("xp.diag(np.ones((2, 2, 2)))", ShapeError, "vector or a matrix"),
        ('xp.meshgrid([1], indexing="yx")', ValueRangeError, "'xy' or 'ij'"),
        ("xp.eye(-1)", ShapeError, "integers >= 0"),
        ("xp.eye(2, k=0.5)", InputError, "^eye: wanted an int for k"),
        ("xp.tril(xp.ones((2, 2)), 0.5)", InputError, "^tril: wanted an int for k"),
    ],
)
def test_creation_refuses(text, error, words):
    with pytest.raises(error, match=words):
        expression(text)(XP)


@pytest.mark.parametrize("offset", [-5, -2, -1, 0, 1, 2, 5])
def test_matrices_by_diagonal(offset):
    for shape in ((3, 3), (2, 5), (5, 2), (0, 3), (1, 1)):
        same(XP.eye(*shape, offset), np.eye(*shape, offset))
        same(XP.tri(*shape, offset, "int8"), np.tri(*shape, offset, "int8"))
        matrix = sample(shape, "float64")
        for name in ("tril", "triu", "diag"):
            against_numpy(lambda xp, m, name=name: getattr(xp, name)(m, offset), matrix)
    same(XP.eye(3, dtype=bool), np.eye(3, dtype=bool))
    same(XP.identity(2), np.identity(2))


@pytest.mark.parametrize("shape", [(4,), (0,), (2, 3, 4), (2, 0, 3)])
def test_triangles_of_other_ranks(shape):
    for name in ("tril", "triu"):
        against_numpy(lambda xp, m, name=name: getattr(xp, name)(m), sample(shape, "float32"))


@pytest.mark.parametrize("offset", [-2, 0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonal_matrix_of_a_vector(offset, dtype):
    for size in (0, 1, 4):
        against_numpy(lambda xp, v: xp.diag(v, offset), sample((size,), dtype))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
def test_meshgrid(indexing, sparse):
    vectors = [np.arange(3), sample((2,), "float32"), np.float64(2), np.ones(0)]
    for count in range(5):
        call = lambda xp, *xi: xp.meshgrid(*xi, indexing=indexing, sparse=sparse)  # noqa: E731
        against_numpy(call, *vectors[:count])


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_asarray_keeps_values_and_dtype(dtype):
    for shape in SHAPES:
        values = sample(shape, "float32").astype(dtype) if dtype == "bfloat16" else sample(shape, dtype)
        same(XP.asarray(values), values)
        if 0 not in shape:
            same(XP.asarray(values.tolist(), dtype), values)
        strided = np.asfortranarray(values)[..., ::-1] if shape else values
        same(XP.asarray(strided), strided)
        assert XP.asarray(values, "complex128").dtype == np.complex128


def test_asarray_of_python_numbers():
    for value in (True, 1, 1.5, 1j, [1, 2], [1, 2.5], [[True]], [], (), [1, 1j], np.float32(3), range(3)):
        same(XP.asarray(value), np.asarray(value))
    same(XP.asarray(memoryview(b"abc")), np.asarray(memoryview(b"abc")))
    same(XP.array(5, ndmin=2), np.array(5, ndmin=2))


def test_asarray_converts_as_convert_element_type_does():
    floats = np.array([1.9, -1.9, np.nan, 1e30, -np.inf])
    same(XP.asarray(floats, "int8"), np.array([1, -1, 0, 127, -128], np.int8))
    same(XP.asarray(np.array([1 + 2j, np.nan]), "float32"), np.array([1, np.nan], np.float32))
    same(XP.asarray(np.array([300, -1]), "uint8"), np.array([44, 255], np.uint8))
    for refused in ([np.nan], [np.inf], [300], [1e30]):
        with pytest.raises(ValueRangeError, match="int8"):
            XP.asarray(refused, "int8")


def test_asarray_does_not_see_later_writes():
    source = np.arange(3.0)
    for value in (source, memoryview(source), _Exporter(source)):
        source[0] = 0
        later = XP.asarray(value)
        source[0] = 99
        assert np.asarray(later)[0] == 0


class _Exporter:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.usefixtures("on_numpy")
def test_copy_false_shares_memory():
    source = np.arange(3.0)
    shared = XP.asarray(source, copy=False)
    source[0] = 99
    assert np.asarray(shared)[0] == 99


def test_an_array_is_its_own_asarray_but_not_its_copy():
    x = XP.asarray([1, 2, 3])
    assert XP.asarray(x) is x
    assert XP.asarray(x, "int64") is x
    for other in (XP.asarray(x, copy=True), XP.array(x), XP.copy(x)):
        other += 1
        assert np.asarray(x).tolist() == [1, 2, 3]
        assert np.asarray(other).tolist() == [2, 3, 4]


def test_sequences_of_arrays_are_stacked_without_looking():
    x, y = XP.ones(2) + 1, XP.zeros(2, "float32")
    stacked = XP.asarray([[x, y], [y, x]])
    assert not x.is_evaluated
    same(stacked, np.array([[[2, 2], [0, 0]], [[0, 0], [2, 2]]], float))
    same(XP.asarray([x[0], 5]), np.array([2.0, 5.0]))


@pytest.mark.usefixtures("on_numpy")
def test_dlpack():
    source = np.arange(6.0).reshape(2, 3)
    same(XP.from_dlpack(source), source)
    same(XP.from_dlpack(XP.asarray(source)), source)
    shared = XP.from_dlpack(source, copy=False)
    source[0, 0] = 7
    assert np.asarray(shared)[0, 0] == 7


@pytest.mark.usefixtures("on_numpy")
def test_devices():
    for device in (None, "cpu", "numpy", xarr.get_backend("numpy")):
        assert XP.zeros(2, device=device).backend == "numpy"
        assert XP.asarray([1], device=device).backend == "numpy"
        assert XP.arange(2, device=device).backend == "numpy"


def test_nothing_is_filled_before_somebody_looks():
    huge = (10**6, 10**6)
    arrays = [
        XP.zeros(huge),
        XP.ones(huge),
        XP.full(huge, 3),
        XP.empty(huge),
        XP.zeros_like(XP.zeros(huge)),
        XP.eye(10**6),
        XP.arange(10**12),
        XP.arange(0, 1e12, 0.5),
        XP.linspace(0, 1, 10**12),
    ]
    for array in arrays:
        assert not any(isinstance(node.op, Data) for node in postorder([array._node]))


def test_results_pickle():
    same(pickle.loads(pickle.dumps(XP.eye(2))), np.eye(2))


def test_lists_that_hold_themselves_or_are_nested_too_deep_are_refused() -> None:
    itself: list[Any] = []
    itself.append(itself)
    deep: Any = 1.0
    for _ in range(2000):
        deep = [deep]
    for value in (itself, deep):
        with pytest.raises(InputError, match="a ragged list is not an array"):
            xarr.asarray(value)


def test_lists_of_nothing_but_numbers_are_known_at_a_glance() -> None:
    twice_itself: list[Any] = []
    twice_itself.extend([twice_itself, twice_itself])
    for value in ([1, 2.0], [[1, True], (2.0, 3j)], [], [[], []], 1.0):
        assert only_numbers(value)
    for other in (twice_itself, [1, [2]], [np.float64(1)], [xarr.asarray(1)], np.ones(2), ["a"]):
        assert not only_numbers(other)


@pytest.mark.parametrize(
    ("value", "dtype", "error", "message"),
    [
        pytest.param(float("nan"), "int32", ValueRangeError, "nan is not an integer", id="nan"),
        pytest.param(float("inf"), "int32", ValueRangeError, "inf is too large", id="inf"),
        pytest.param(1j, "float32", DTypeError, "complex number 1j does not fit float32", id="complex"),
        pytest.param(10**5000, "bfloat16", ValueRangeError, "too large for bfloat16", id="huge"),
        pytest.param(-(2**63) - 1, None, ValueRangeError, "write it as a float", id="-2^63-1"),
        pytest.param(2**64, None, ValueRangeError, "write it as a float", id="2^64"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(
    value: complex, dtype: str | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        xarr.asarray(value, dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float32"])
def test_integers_of_more_than_64_bits_become_floats(dtype: str) -> None:
    for value in (2**70, -(2**70)):
        same(xarr.asarray(value, dtype), np.asarray(float(value)).astype(xarr.asarray(0, dtype).dtype))
