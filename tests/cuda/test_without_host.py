"""What the backend `cupy` computes without the host, on the emulated device: no elements, and those of some bits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.gpu_arrays import make_emulated
from xarr import lax
from xarr.dtypes import element_type
from xarr_cupy import host

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

EMPTY, VALUES = np.zeros((0, 3)), np.arange(6.0).reshape(2, 3)

#: Functions of a module with NumPy's names, of an empty array, and of one with elements.
EMPTY_CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda xp, e, x: e.sum(0),
    "sum of all": lambda xp, e, x: xp.exp(e).sum() + 1,
    "prod": lambda xp, e, x: e.prod(0),
    "all": lambda xp, e, x: (e > 0).all(0),
    "max": lambda xp, e, x: xp.max(e, axis=0, initial=-5.0),
    "concatenate": lambda xp, e, x: xp.concatenate([e, x, e]) * 2,
    "pad": lambda xp, e, x: xp.pad(e, ((1, 2), (0, 1)), constant_values=3.0),
    "dot": lambda xp, e, x: (e.T @ e + 1) * 2,
    "bincount": lambda xp, e, x: xp.bincount(e.ravel().astype(int), minlength=4),
    "cumsum": lambda xp, e, x: xp.cumsum(e, 0),
    "sort": lambda xp, e, x: xp.sort(e, 0),
    "elements of no index": lambda xp, e, x: x[xp.zeros(0, dtype=int)],
    "arithmetic": lambda xp, e, x: xp.sin(e) * 2,
}


@pytest.mark.parametrize("is_jitted", [False, True], ids=["lazy", "jit"])
@pytest.mark.parametrize("function", EMPTY_CASES.values(), ids=EMPTY_CASES)
def test_arrays_without_elements(
    function: Callable[[Any, Any, Any], Any], is_jitted: bool, cupy: Any
) -> None:
    def call(e: Any, x: Any) -> Any:
        return function(xarr, e, x)

    host.CALLS.clear()
    result = (xarr.jit(call) if is_jitted else call)(xarr.asarray(EMPTY), xarr.asarray(VALUES))
    assert_same(result, np.asarray(function(np, EMPTY, VALUES)))
    assert not host.CALLS


NARROW = ("int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
#: Numbers of other types, some of which no narrow type has.
NUMBERS = (
    np.arange(-300, 300, dtype=np.int32),
    np.linspace(-20, 20, 401, dtype=np.float32),
    np.array([np.nan, np.inf, -np.inf, 1e30, -0.0, 0.5, 1.5, 2.5, 3.5, 5.0, 5.0 + 2**-40]),
    np.array([True, False]),
    np.array([1 + 2j, -9j, 7.5]),
    np.arange(-20, 20).astype(xarr.bfloat16),
)
#: Functions of two arrays of each narrow type.
NARROW_CASES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.add,
    "mul": lax.mul,
    "lt": lax.lt,
    "max": lambda x, y: lax.reduce(x, y[0], lax.max, (0,)),
    "rev": lambda x, y: lax.rev(x, (0,)),
    "select": lambda x, y: lax.select(lax.eq(x, y), lax.rev(x, (0,)), y),
    "pad": lambda x, y: lax.pad(x, y[1], ((1, 2, 1),)),
    "concatenate": lambda x, y: lax.concatenate([x, y], 0),
    "gather": lambda x, y: x[np.array([1, 0, -1])],
    "scatter": lambda x, y: x.at[np.array([1, 3])].set(y[:2]),
    "sort": lambda x, y: lax.sort(lax.rev(x, (0,))),
    **{
        f"to {dtype}": lambda x, y, dtype=dtype: lax.convert_element_type(x, dtype)
        for dtype in (*NARROW, "bool", "int8", "uint64", "float16", "float64", "bfloat16", "complex64")
    },
}

#: Sums of products of two arrays of each narrow type, which the CPU accumulates in a wider one.
NARROW_PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "dot": lambda x, y: lax.dot(lax.reshape(x, (x.size // 4, 4)), lax.reshape(y, (4, y.size // 4))),
    "wider dot": lambda x, y: lax.dot(x[:9], y[:9], preferred_element_type=np.float32),
    "convolution": lambda x, y: lax.conv_general_dilated(x[None, None], y[None, None, :3], (1,), [(2, -1)]),
}


def call_on(backend: str, function: Callable[..., Any], *operands: Any) -> np.ndarray[Any, Any]:
    with xarr.use_backend(backend):
        return np.asarray(xarr.jit(function)(*map(xarr.asarray, operands)))


@pytest.mark.thorough
@pytest.mark.parametrize("function", NARROW_CASES.values(), ids=NARROW_CASES)
def test_elements_of_less_than_a_byte(function: Callable[[Any, Any], Any], cupy: Any) -> None:
    for name in NARROW:
        x = np.arange(2 ** element_type(np.dtype(name)).bits, dtype=np.uint8).view(name)
        operands = np.repeat(x, 4), np.tile(x, 4)
        host.CALLS.clear()
        result = call_on("cupy", function, *operands)
        assert not host.CALLS
        assert_same(result, call_on("reference", function, *operands))


@pytest.mark.thorough
@pytest.mark.parametrize("function", NARROW_PRODUCTS.values(), ids=NARROW_PRODUCTS)
def test_products_of_elements_of_less_than_a_byte(function: Callable[[Any, Any], Any], cupy: Any) -> None:
    for name in NARROW:
        x = np.arange(2 ** element_type(np.dtype(name)).bits, dtype=np.uint8).view(name)
        operands = np.repeat(x, 4), np.tile(x, 4)
        with xarr.config(fusion="off"):
            wanted = call_on("numpy", function, *operands)
        host.CALLS.clear()
        for backend in ("cupy", "numpy", "reference"):
            assert_same(call_on(backend, function, *operands), wanted)
        assert not host.CALLS


@pytest.mark.thorough
@pytest.mark.parametrize("name", NARROW)
def test_numbers_become_elements_of_less_than_a_byte(name: str, cupy: Any) -> None:
    for numbers in NUMBERS:
        host.CALLS.clear()
        result = call_on("cupy", lambda x: lax.convert_element_type(x, name), numbers)
        assert not host.CALLS
        assert_same(result, call_on("reference", lambda x: lax.convert_element_type(x, name), numbers))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(("bfloat16", "int16"), ("int16", "bfloat16"), ("bfloat16", "float16"), ("float8_e5m2", "uint8")),
        *(
            ("uint8", "float8_e4m3fn"),
            ("int4", "uint4"),
            ("uint4", "float4_e2m1fn"),
            ("float4_e2m1fn", "int4"),
        ),
    ],
)
def test_bits_of_one_width_become_another_type(old: str, new: str, cupy: Any) -> None:
    bits = element_type(np.dtype(old)).bits
    x = np.arange(0, 2**bits, 251 if bits == 16 else 1, dtype=f"u{max(bits // 8, 1)}").view(old)
    host.CALLS.clear()
    result = call_on("cupy", lambda x: lax.bitcast_convert_type(x, new), x)
    assert not host.CALLS
    assert result.dtype == np.dtype(new)
    assert result.tobytes() == x.tobytes()


@pytest.mark.parametrize("index", [[1, 0], [[1], [-1]], 1], ids=["vector", "matrix", "scalar"])
def test_arrays_of_others_are_indices(index: Any, cupy: Any) -> None:
    x = xarr.asarray(VALUES)
    assert_same(x[make_emulated(index)], VALUES[np.array(index)])
    wanted = VALUES.copy()
    wanted[np.array(index)] = 7
    assert_same(x.at[make_emulated(index)].set(make_emulated(7.0)), wanted)


def test_arrays_of_others_are_masks(cupy: Any) -> None:
    assert_same(xarr.asarray(VALUES)[make_emulated(VALUES > 2)], VALUES[VALUES > 2])


#: Types, shapes and the types of the same bits.
BITCASTS = [
    ("int32", (3,), "uint8"),
    ("uint8", (3, 4), "float32"),
    ("float64", (2, 3), "uint16"),
    ("bfloat16", (2, 4), "uint64"),
    ("float8_e5m2", (5, 2), "float16"),
    ("int8", (5,), "uint2"),
    ("int4", (3, 4), "uint16"),
    ("bool", (4,), "bool"),
    ("complex64", (4,), "complex64"),
]


@pytest.mark.parametrize(("old", "shape", "new"), BITCASTS)
def test_bits_of_other_types(old: str, shape: tuple[int, ...], new: str, cupy: Any) -> None:
    width = element_type(xarr.dtype(old)).bits
    codes = np.random.default_rng(0).integers(0, 2 ** min(width, 8), (*shape, max(width // 8, 1)))
    codes = codes % 2 if old == "bool" else codes
    x = codes.astype(np.uint8).view(xarr.dtype(old)).reshape(shape)
    host.CALLS.clear()
    result = xarr.jit(lambda x: lax.bitcast_convert_type(x, new))(x)
    assert not host.CALLS
    with xarr.use_backend("reference"):
        assert_same(result, lax.bitcast_convert_type(xarr.asarray(x), new))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "complex64", "int4"]
)
def test_counters_of_every_type(dtype: str, cupy: Any) -> None:
    host.CALLS.clear()
    result = np.asarray(lax.broadcasted_iota(dtype, (2, 3000), 1))
    assert not host.CALLS
    with xarr.use_backend("reference"):
        assert_same(result, lax.broadcasted_iota(dtype, (2, 3000), 1))
