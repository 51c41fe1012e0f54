"""Array: operators by NumPy 2's promotion, values as Python sees them, interchange, copies."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.base import host_arrays
from xarr.errors import BackendError, BroadcastError, DTypeError, InputError, ShapeError, ValueRangeError

pytestmark = pytest.mark.implicit

HostArray = np.ndarray[Any, Any]
Operator = Callable[[Any, Any], Any]

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
ARITHMETIC: list[Operator] = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
DIVISION: list[Operator] = [operator.floordiv, operator.mod, divmod]
COMPARISON: list[Operator] = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS: list[Operator] = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
ALL = ARITHMETIC + DIVISION + COMPARISON + BITS
IN_PLACE: list[Operator] = [
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow, operator.ifloordiv),
    *(operator.imod, operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift),
]

#: Where an operator on floats may differ from NumPy's in the last places: complex division and powers.
ULP = {operator.truediv: 4, operator.itruediv: 4, operator.pow: 8, operator.ipow: 8}
#: Complex powers go by the logarithm, whose error the exponent multiplies: up to 300 here.
COMPLEX_POWER_ULP = 4096


def name(value: Any) -> str:
    return getattr(value, "__name__", repr(value))


def values(dtype: str) -> HostArray:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([True, False, True, False])
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return np.array([1, 0, limits.max, limits.min, 5, 3], kind)
    numbers = [1.5, -0.0, 0.0, np.inf, -2.5, np.nan, 3.0, 7.25]
    if kind.kind == "c":
        return np.array([complex(a, b) for a, b in zip(numbers, numbers[::-1], strict=True)], kind)
    return np.array(numbers, kind)


def numpy_result(function: Operator, x: Any, y: Any) -> Any:
    """NumPy's result, or the error that it raises."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(x, y)
        except (TypeError, ValueError, OverflowError) as error:
            return error


def check(function: Operator, x: Any, y: Any, wanted: Any) -> None:
    """xarr's result is `wanted`, or an error where `wanted` is one."""
    if isinstance(wanted, Exception):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            function(x, y)
        return
    results = function(x, y)
    pairs = zip(results, wanted, strict=True) if isinstance(wanted, tuple) else [(results, wanted)]
    for got, expected in pairs:
        assert isinstance(got, xarr.Array)
        ulp = ULP.get(function, 0)
        if np.asarray(expected).dtype.kind == "c":
            ulp = COMPLEX_POWER_ULP if function in (operator.pow, operator.ipow) else ulp
            # Where a part overflows or is NaN, C libraries disagree about the other part.
            keep = np.isfinite(expected) & np.isfinite(np.asarray(got))
            got, expected = np.asarray(got)[keep], np.asarray(expected)[keep]
        assert_same(got, expected, ulp=ulp, normwise=True)


def exempt(function: Operator, x: HostArray, y: HostArray) -> bool:
    """Cases in which xarr differs on purpose: complex numbers have no order; integer powers never raise."""
    kinds = x.dtype.kind + y.dtype.kind
    if function in COMPARISON[2:] and "c" in kinds:
        return True
    return function is operator.pow and set(kinds) <= set("biu")


@pytest.mark.parametrize("function", ALL, ids=name)
def test_operators_on_every_pair_of_dtypes(function: Operator) -> None:
    for left, right in product(DTYPES, DTYPES):
        x, y = values(left)[:, None], values(right)[None, :]
        if not exempt(function, x, y):
            check(function, xarr.asarray(x), xarr.asarray(y), numpy_result(function, x, y))


@pytest.mark.parametrize("dtype", DTYPES[:9])
def test_powers_of_integers(dtype: str) -> None:
    x = values(dtype)
    exponents = np.array([0, 1, 2, 3], x.dtype)[:, None] if dtype != "bool" else values("bool")[:, None]
    assert_same(xarr.asarray(x) ** xarr.asarray(exponents), x**exponents)


def test_negative_integer_powers_follow_xla() -> None:
    x = xarr.asarray(np.array([1, -1, 2, 0], np.int32))
    assert_same(x ** xarr.asarray(np.array([-3, -3, -1, -1], np.int32)), np.array([1, -1, 0, 0], np.int32))
    with pytest.raises(ValueRangeError, match="power -1"):
        x**-1


SCALARS = [True, 2, -3, 300, 2.5, 1.5j]


@pytest.mark.parametrize("function", ALL, ids=name)
@pytest.mark.parametrize("number", SCALARS, ids=repr)
def test_operators_with_python_numbers(function: Operator, number: complex) -> None:
    for dtype in DTYPES:
        x = values(dtype)
        if function is operator.pow and x.dtype.kind in "biu" and not isinstance(number, float | complex):
            continue
        if function in COMPARISON[2:] and (x.dtype.kind == "c" or isinstance(number, complex)):
            continue
        check(function, xarr.asarray(x), number, numpy_result(function, x, number))
        check(function, number, xarr.asarray(x), numpy_result(function, number, x))


@pytest.mark.parametrize(
    "function", [operator.add, operator.sub, operator.mul, operator.lt, operator.truediv]
)
def test_operators_with_numpy_arrays_and_scalars(function: Operator) -> None:
    for left, right in product(
        ["int8", "uint64", "float32", "float64"], ["int64", "bool", "float16", "float64"]
    ):
        x, y = values(left)[:4], values(right)[:4]
        wanted, flipped = numpy_result(function, x, y), numpy_result(function, y, x)
        check(function, xarr.asarray(x), y, wanted)
        check(function, y, xarr.asarray(x), flipped)
        check(function, xarr.asarray(x), y[0], numpy_result(function, x, y[0]))
        check(function, y[0], xarr.asarray(x), numpy_result(function, y[0], x))


def test_operators_with_lists_and_strangers() -> None:
    x = xarr.asarray([1.0, 2.0])
    assert_same(x * [1, 2], np.array([1.0, 4.0]))
    assert_same([1, 2] - x, np.array([0.0, 0.0]))
    for stranger in (None, "a", object()):
        with pytest.raises(TypeError):
            x + stranger
        with pytest.raises(TypeError):
            stranger * x
        with pytest.raises(TypeError):
            x += stranger


@pytest.mark.parametrize("other", [None, "a"])
def test_none_and_texts_equal_no_number(other: Any) -> None:
    x = xarr.asarray([1.0, np.nan, 3.0])
    assert_same(x == other, np.array([False, False, False]))
    assert_same(other != x, np.array([True, True, True]))
    assert_same(x[x != other], np.asarray(x))
    assert_same(xarr.asarray(2) == other, np.array(False))
    assert_same(x == object(), np.array([False, False, False]))


def test_a_stranger_may_answer_for_itself() -> None:
    class Stranger:
        def __radd__(self, other: object) -> str:
            return "mine"

    assert xarr.asarray([1]) + Stranger() == "mine"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_a_python_int_out_of_range(dtype: str) -> None:
    x = xarr.asarray(np.array([1, 2], dtype))
    beyond = np.iinfo(dtype).max + 1
    for compute in (lambda: x + beyond, lambda: beyond - x, lambda: x * -(2**70)):
        with pytest.raises(OverflowError, match="out of bounds") as caught:
            compute()
        assert isinstance(caught.value, ValueRangeError)
    assert_same(x < beyond, np.array([True, True]))
    assert_same(x == beyond, np.array([False, False]))
    assert_same(x != -(2**70), np.array([True, True]))
    assert_same(x < -(2**70), np.array([False, False]))


def test_int64_and_uint64_compare_exactly() -> None:
    x = np.array([-1, 0, 2**53 + 1, 2**63 - 1], np.int64)[:, None]
    y = np.array([0, 2**53, 2**53 + 1, 2**63, 2**64 - 1], np.uint64)
    for function in COMPARISON:
        assert_same(function(xarr.asarray(x), xarr.asarray(y)), function(x, y))
        assert_same(function(xarr.asarray(y), xarr.asarray(x)), function(y, x))


def test_bfloat16() -> None:
    x = np.array([1.5, -2.0, 3.0], ml_dtypes.bfloat16)
    a = xarr.asarray(x)
    for function in (operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.eq):
        assert_same(function(a, a[::-1]), function(x, x[::-1]))
        assert function(a, 2.5).dtype == function(a, a).dtype  # a Python float gives way, as in JAX
    assert (a + np.float32(1)).dtype == np.float32
    assert (a + np.int64(1)).dtype == ml_dtypes.bfloat16
    assert_same(-a, -x)
    assert_same(abs(a), np.abs(x))
    assert a[0].item() == 1.5


@pytest.mark.parametrize("dtype", DTYPES)
def test_unary_operators(dtype: str) -> None:
    x = values(dtype)
    for function in (operator.neg, operator.pos, abs, operator.invert):
        try:
            wanted = function(x)
        except TypeError:
            with pytest.raises(DTypeError):
                function(xarr.asarray(x))
        else:
            assert_same(function(xarr.asarray(x)), wanted, ulp=2)


# --- in place --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", IN_PLACE, ids=name)
@pytest.mark.parametrize("right", ["bool", "int16", "uint8", "float32", 3, 2.5])
def test_in_place_keeps_the_dtype_or_refuses(function: Operator, right: Any) -> None:
    for left in DTYPES:
        x = values(left)[:3]
        y = values(right)[:3] if isinstance(right, str) else right
        if function is operator.ipow and x.dtype.kind in "biu":
            continue
        a, b = xarr.asarray(x), xarr.asarray(y) if isinstance(right, str) else right
        before = a.copy()
        wanted = numpy_result(function, x.copy(), y)
        check(function, a, b, wanted)
        if not isinstance(wanted, Exception):
            assert a.dtype == x.dtype
        assert_same(before, x)


def test_in_place_changes_this_handle_and_no_other() -> None:
    x = xarr.asarray([1, 2, 3])
    y = x.copy()
    doubled = x * 2
    same = x
    x += 1
    assert same is x
    assert_same(x, np.array([2, 3, 4]))
    assert_same(y, np.array([1, 2, 3]))
    assert_same(doubled, np.array([2, 4, 6]))
    x -= y
    assert_same(x, np.array([1, 1, 1]))


def test_in_place_refuses_another_shape() -> None:
    x = xarr.asarray([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"cannot change shape \(2,\) to \(3, 2\)"):
        x += np.ones((3, 2))
    with pytest.raises(DTypeError, match="cannot convert int64 to float64; write x = x"):
        y = xarr.asarray([1])
        y /= 2
    assert_same(x, np.array([1.0, 2.0]))


# --- looking at values -----------------------------------------------------------------------------------

ZERO_DIMENSIONAL = [True, False, 0, 7, -3, 2.5, -0.0, 1 + 2j, np.nan]
CONVERSIONS: list[Callable[[Any], Any]] = [bool, int, float, complex, operator.index, len, iter, str]


@pytest.mark.parametrize("convert", CONVERSIONS, ids=name)
@pytest.mark.parametrize("value", ZERO_DIMENSIONAL, ids=repr)
def test_conversions_of_a_scalar(convert: Callable[[Any], Any], value: complex) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            wanted = convert(np.array(value))
    except (TypeError, ValueError, np.exceptions.ComplexWarning):
        with pytest.raises((TypeError, ValueError)):
            convert(xarr.asarray(value))
    else:
        result = convert(xarr.asarray(value))
        assert type(result) is type(wanted)
        assert repr(result) == repr(wanted)


@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (2, 2), (0, 3)])
def test_conversions_of_arrays(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.int64)
    a = xarr.asarray(x)
    assert len(a) == len(x)
    assert a.tolist() == x.tolist()
    assert str(a) == str(x)
    assert [row.tolist() for row in a] == x.tolist()
    if x.size == 1:
        assert bool(a) is True
    else:
        with pytest.raises(ValueError, match="ambiguous"):
            bool(a)
        with pytest.raises(ValueError):
            a.item()
    for convert in (int, float, complex, operator.index):
        with pytest.raises(InputError, match="without dimensions"):
            convert(a)


def test_items() -> None:
    x = np.arange(6).reshape(2, 3)
    a = xarr.asarray(x)
    assert a.item(4) == 4
    assert a.item(1, 2) == 5
    with pytest.raises(IndexError):
        a.item(6)
    assert 4 in a
    assert 9 not in a
    assert "a" not in a
    with pytest.raises(TypeError):
        hash(a)


def test_index_is_for_integers_only() -> None:
    assert [10, 20, 30][xarr.asarray(1)] == 20
    for value in (1.0, True, 1j):
        with pytest.raises(TypeError, match="wanted an array of integers"):
            operator.index(xarr.asarray(value))


def test_formats() -> None:
    assert f"{xarr.asarray(2.5):.2f}" == "2.50"
    assert f"{xarr.asarray([1, 2])}" == "[1 2]"
    with pytest.raises(TypeError, match=r"\.2f.*without dimensions"):
        f"{xarr.asarray([1.0]):.2f}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([1, 2]), "Array([1, 2], dtype=int64"),
        (np.array(2.5, np.float32), "Array(2.5, dtype=float32"),
        (np.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float64"),
        (np.array([]), "Array([], dtype=float64"),
        (np.array([[True], [False]]), "Array([[ True],\n       [False]], dtype=bool"),
        (np.array([1.5], ml_dtypes.bfloat16), "Array([1.5], dtype=bfloat16"),
    ],
    ids=["ints", "scalar", "empty matrix", "empty", "bools", "bfloat16"],
)
def test_repr(value: HostArray, text: str) -> None:
    x = xarr.asarray(value)
    assert repr(x).startswith(text)
    assert ("backend" in repr(x)) == (x.backend != "numpy")


@pytest.mark.usefixtures("on_numpy")
def test_its_device_is_that_of_the_host() -> None:
    assert xarr.ones(2).device == "cpu"


@pytest.mark.usefixtures("recorded")
def test_what_it_is() -> None:
    x = xarr.asarray(np.zeros((2, 3), np.float32))
    assert (x.shape, x.dtype, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3), np.float32, 2, 6, 4, 24)
    assert x.backend == xarr.config.backend
    y = x + 1
    assert not y.is_evaluated
    assert y.evaluate() is y
    assert y.is_evaluated
    assert y.layout is not None
    assert y.layout.minor_to_major == (1, 0)


# --- interchange -----------------------------------------------------------------------------------------


def test_array_protocol() -> None:
    x = xarr.asarray([1.5, 2.5])
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 9
    copied = np.array(x)
    copied[0] = 9
    assert_same(x, np.array([1.5, 2.5]))
    assert_same(np.asarray(x, np.float32), np.array([1.5, 2.5], np.float32))
    with pytest.raises(ValueError, match="copy=False"):
        np.array(x, np.int32, copy=False)


@pytest.mark.usefixtures("on_numpy")
def test_memory_of_the_host_is_shown_without_a_copy() -> None:
    assert np.asarray(xarr.asarray([1.5, 2.5]), copy=False).base is not None


def test_data_from_outside_is_copied() -> None:
    mine = np.array([1.0, 2.0])
    x = xarr.asarray(mine)
    total = x + mine
    mine[:] = 7
    assert_same(x, np.array([1.0, 2.0]))
    assert_same(total, np.array([2.0, 4.0]))


UFUNCS = sorted(
    ufunc
    for ufunc in vars(np)
    if isinstance(getattr(np, ufunc), np.ufunc) and callable(getattr(xarr, ufunc, None))
)


def test_every_ufunc_that_xarr_has_is_mapped() -> None:
    assert {"add", "divide", "exp", "bitwise_and", "less", "logical_not", "arctan2", "matmul"} <= set(UFUNCS)
    x = xarr.asarray(np.array([1, 2, 3], np.int8))
    for ufunc_name in UFUNCS:
        ufunc = getattr(np, ufunc_name)
        # Of (m,n),(n)->(m) the first operand is a matrix.
        operands = (ufunc.signature or "").partition("->")[0].split("),(")
        arguments = [xarr.stack([x] * 3) if "," in dims else x for dims in operands[: ufunc.nin]]
        arguments += [x] * (ufunc.nin - len(arguments))
        results = ufunc(*arguments)
        with np.errstate(all="ignore"):
            wanted = ufunc(*map(np.asarray, arguments))
        for part in results if isinstance(results, tuple) else (results,):
            assert isinstance(part, xarr.Array), ufunc_name
        if not isinstance(wanted, tuple):
            assert results.dtype == wanted.dtype, ufunc_name


def test_numpy_on_the_left_gives_an_array() -> None:
    x = xarr.asarray([1.0, 2.0])
    result = np.asarray([1.0]) + x
    assert isinstance(result, xarr.Array)
    assert_same(result, np.array([2.0, 3.0]))
    assert isinstance(np.float32(1) * x, xarr.Array)


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint32", "complex64", "bool"])
def test_dlpack_both_ways(dtype: str) -> None:
    x = values(dtype)[:4]
    a = xarr.asarray(x)
    assert_same(np.from_dlpack(a), x)
    there = jax.dlpack.from_dlpack(a)
    assert_same(np.asarray(there), x)
    assert_same(xarr.from_dlpack(there), x)
    assert_same(xarr.asarray(there), x)


@pytest.mark.usefixtures("on_numpy")
def test_dlpack_of_old_consumers_is_a_copy() -> None:
    class Old:
        def __init__(self, array: xarr.Array) -> None:
            self.array = array

        def __dlpack__(self) -> Any:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    class Wrapper(Old):
        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__()

    x = xarr.asarray([1.0, 2.0])
    got = np.from_dlpack(Wrapper(x))
    assert not np.shares_memory(got, np.asarray(x))


def test_namespace() -> None:
    x = xarr.asarray([1])
    assert x.__array_namespace__() is xarr
    assert x.__array_namespace__(api_version="2024.12") is xarr
    with pytest.raises(ValueRangeError, match="1999"):
        x.__array_namespace__(api_version="1999.01")


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("dtype", ["float64", "bool", "complex64", ml_dtypes.bfloat16])
def test_copies(clone: Callable[[xarr.Array], xarr.Array], dtype: Any) -> None:
    x = xarr.asarray(np.ones((2, 0, 3), dtype))
    y = xarr.asarray(np.array([[1, 2]], dtype))
    assert_same(clone(x), np.ones((2, 0, 3), dtype))
    twin = clone(y)
    y += y
    assert_same(twin, np.array([[1, 2]], dtype))
    assert twin.backend == y.backend


def test_moving_between_backends() -> None:
    x = xarr.asarray([1.0, 2.0]).to("numpy")
    y = x.to("reference")
    assert (x.backend, y.backend, (y + 1).backend) == ("numpy", "reference", "reference")
    assert_same(y + 1, np.array([2.0, 3.0]))
    with pytest.raises(
        BackendError, match=r'two backends, numpy and reference; move one, e\.g\. x\.to\("numpy"\)'
    ):
        x + y
    assert_same(x + y.to("numpy"), np.array([2.0, 4.0]))
    assert x.to_device("cpu").backend == "numpy"
    assert pickle.loads(pickle.dumps(y)).backend == "reference"


def test_writing_on_another_backend_than_the_default() -> None:
    x = xarr.asarray([1.0, 2.0, 3.0]).to("reference")
    x[1:] = 9
    x[0] = x[2]
    assert_same(x.at[0].add(1), np.array([10.0, 9.0, 9.0]))
    assert x.backend == "reference"


def test_shapes_that_do_not_fit() -> None:
    x, y = xarr.asarray(np.ones((5, 3))), xarr.asarray(np.ones(5))
    for function in (operator.add, operator.lt, operator.mod):
        with pytest.raises(BroadcastError, match=r"y\[:, None\]"):
            function(x, y) if function is not operator.add else x + y


def test_round_of_python() -> None:
    x = xarr.asarray([1.25, 2.5, 3.5])
    assert_same(round(x), np.array([1.0, 2.0, 4.0]))
    assert_same(round(x, 1), np.array([1.2, 2.5, 3.5]))
    assert_same(round(x[1]), np.array(2.0))


OPERATORS = [
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
]


@pytest.mark.parametrize(
    "name",
    [
        *[
            f"__{prefix}{name}__"
            for name in OPERATORS
            for prefix in "ri"
            if (prefix, name) != ("i", "divmod")
        ],
        *[
            f"__{name}__"
            for name in (*OPERATORS, "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert")
        ],
    ],
)
def test_an_operator_has_its_name_in_help_and_tracebacks(name: str, python_methods: None) -> None:
    method = getattr(xarr.Array, name)
    assert (method.__name__, method.__qualname__, method.__module__) == (
        name,
        f"Array.{name}",
        "xarr.arrays.array",
    )
    assert method.__code__.co_name == name
    assert method.__doc__ and "self" in method.__doc__


@pytest.mark.parametrize(
    ("operation", "other", "fix"),
    [
        (operator.itruediv, 2, "x = x / y"),
        (operator.ipow, 0.5, "x = x ** y"),
        (operator.imatmul, [1, 2], "x = x @ y"),
        (operator.iadd, np.ones((3, 2, 2)), "x = x + y"),
    ],
    ids=["dtype", "power", "product", "shape"],
)
def test_an_in_place_operation_that_does_not_fit_names_its_own_operator(
    operation: Callable[[Any, Any], Any], other: Any, fix: str
) -> None:
    with pytest.raises((DTypeError, ShapeError)) as caught:
        operation(xarr.asarray([[1, 2], [3, 4]]), xarr.asarray(other))
    assert str(caught.value).endswith(f"; write {fix} instead")


def test_lists_of_ints_are_int64_where_numpys_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under WebAssembly, where NumPy's lists of ints, as its indices, have 32 bits."""
    read = host_arrays._by_numpy

    def read_narrowly(value: object) -> Any:
        array = read(value)
        return array.astype(np.int32) if isinstance(value, list) and array.dtype == np.int64 else array

    monkeypatch.setattr(host_arrays, "_by_numpy", read_narrowly)
    assert host_arrays.host_array([1, 2]).dtype == np.int32
    monkeypatch.setattr(host_arrays, "_DEFAULTS", host_arrays.kinds_of_lists(np.dtype(np.int32)))
    assert host_arrays.host_array([[1], [2]]).dtype == np.int64
    assert host_arrays.host_array([np.int32(1)]).dtype == np.int32
    assert host_arrays.host_array([True]).dtype == np.bool_
    assert host_arrays.host_array([1.5]).dtype == np.float64
