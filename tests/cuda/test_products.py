"""Products and convolutions by tiles that a block shares, on the emulated device.

Integers have the bits of the CPU in each order of the threads, floats are within the bounds of their sums, and no two
threads race.
"""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from tests.cuda.emulator.module import ORDERS
from tests.cuda.test_cupy_backend import device
from xarr import lax
from xarr.compiler.loop_ir.loops import LoopError, Runs
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.gpu.builders import program_of
from xarr.compiler.schedules.gpu.target import GpuTarget

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def contract(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> Any:
    return lambda x, y: lax.dot_general(x, y, (((lhs[-1],), (rhs[-1],)), (lhs[:-1], rhs[:-1])))


def convolve(x: Any, w: Any, **options: Any) -> Any:
    return lax.conv_general_dilated(x, w, **{"window_strides": (1, 1), "padding": "SAME", **options})


#: Functions, and the shapes of two arrays: lines and terms that fill tiles, and that stick out of them.
PRODUCTS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "whole tiles": (contract((0, 2), (0, 1)), (32, 64, 16), (32, 16, 64)),
    "tiles that stick out": (contract((0, 2), (0, 1)), (8, 70, 19), (8, 19, 65)),
    "terms first": (contract((1, 0), (2, 0)), (9, 32, 17), (9, 20, 32)),
    "terms last": (contract((0, 2), (0, 2)), (32, 17, 33), (32, 16, 33)),
    "several free axes": (lambda x, y: xarr.tensordot(x, y, axes=((1,), (0,))), (30, 9, 50), (9, 10, 10)),
    "computed factors": (lambda x, y: xarr.matmul(x * x + 1, y - 3), (32, 16, 9), (32, 9, 16)),
}
CONVOLUTIONS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "features first": (convolve, (2, 3, 36, 36), (16, 3, 3, 3)),
    "features last": (
        lambda x, w: convolve(x, w, dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (2, 36, 36, 5),
        (3, 3, 5, 17),
    ),
    "strides, holes and negative padding": (
        lambda x, w: convolve(
            x, w, window_strides=(1, 2), padding=((-1, 2), (3, -2)), lhs_dilation=(1, 2), rhs_dilation=(2, 1)
        ),
        (3, 4, 30, 33),
        (16, 4, 2, 3),
    ),
    "one element": (lambda x, w: convolve(x, w, padding="VALID"), (2, 9, 32, 32), (16, 9, 1, 1)),
    "groups": (lambda x, w: convolve(x, w, feature_group_count=2), (2, 18, 8, 8), (32, 9, 3, 3)),
}
CASES = {**PRODUCTS, **CONVOLUTIONS}


def arrays_of(name: str, dtype: str) -> list[Any]:
    rng = np.random.default_rng(len(name))
    return [rng.integers(-9, 9, shape).astype(dtype) for shape in CASES[name][1:]]


@pytest.mark.parametrize("name", CASES)
def test_tiles_have_the_bits_of_the_cpu(name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arrays = xarr.jit(CASES[name][0]), arrays_of(name, "int32")
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(*map(xarr.asarray, arrays)))
    for order in ORDERS:
        monkeypatch.setattr(device(cupy), "order", order)
        assert np.asarray(function(*map(xarr.asarray, arrays))).tobytes() == wanted.tobytes(), order


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", ["tiles that stick out", "features last"])
def test_tiles_of_each_element_type(name: str, dtype: str, cupy: Any) -> None:
    if dtype == "bool" and name == "features last":
        dtype = "float64"
    arrays = [xarr.astype(xarr.asarray(each), dtype) for each in map(np.asarray, arrays_of(name, "float32"))]
    result = np.asarray(xarr.astype(xarr.jit(CASES[name][0])(*arrays), "complex128"))
    with xarr.use_backend("numpy"):
        exact = [xarr.asarray(np.asarray(each)) for each in arrays]
        wanted = np.asarray(xarr.astype(CASES[name][0](*exact), "complex128"))
    # Sums of small integers are exact, but the sign of zero depends on the order of terms.
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("name", ["tiles that stick out", "features first", "features last"])
def test_tiles_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    np.asarray(xarr.jit(CASES[name][0])(*map(xarr.asarray, arrays_of(name, "int32"))))


#: Layouts of arrays and of windows of one element, and shapes.
POINTS = {
    "features last": (("NHWC", "HWIO", "NHWC"), (2, 5, 6, 9), (1, 1, 9, 16)),
    "features last, outputs first": (("NHWC", "OHWI", "NHWC"), (2, 5, 6, 9), (16, 1, 1, 9)),
    "features behind the batch": (("NCHW", "OIHW", "NCHW"), (3, 9, 5, 6), (16, 9, 1, 1)),
    "features first": (("CHWN", "OIHW", "CHWN"), (9, 5, 6, 3), (16, 9, 1, 1)),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", POINTS)
def test_windows_of_one_element_are_products(name: str, dtype: str, cupy: Any) -> None:
    layout, *shapes = POINTS[name]
    rng = np.random.default_rng(0)
    arrays = [xarr.astype(xarr.asarray(rng.integers(-9, 9, each).astype("f4")), dtype) for each in shapes]
    for options, is_product in (({}, name != "features first"), ({"padding": ((1, 0), (0, 0))}, False)):
        before = device(cupy).products
        function = xarr.jit(lambda x, w, options=options: convolve(x, w, dimension_numbers=layout, **options))
        result = np.asarray(xarr.astype(function(*arrays), "complex128"))
        assert (device(cupy).products > before) == is_product
        with xarr.use_backend("numpy"):
            wanted = function(*[xarr.asarray(np.asarray(each)) for each in arrays])
            # Sums of small integers are exact.
            np.testing.assert_array_equal(result, np.asarray(xarr.astype(wanted, "complex128")))


def test_padding_does_not_meet_infinity(cupy: Any) -> None:
    x, w = (each.astype(np.float32) for each in map(np.asarray, arrays_of("features first", "float32")))
    w[:, :, 0] = np.inf
    x[:] = 1
    result = np.asarray(xarr.jit(convolve)(xarr.asarray(x), xarr.asarray(w)))
    with xarr.use_backend("numpy"):
        wanted = np.asarray(convolve(xarr.asarray(x), xarr.asarray(w)))
    assert np.isfinite(wanted[:, :, 0]).all() and np.isinf(wanted[:, :, 1:]).all()
    assert_same(result, wanted)


@pytest.mark.parametrize("name", CASES)
def test_blocks_have_tiles(name: str) -> None:
    kernel = verify(program_of(graph_of(CASES[name][0], *arrays_of(name, "int32"))))
    has_tiles = any(Runs.LOCKSTEP in loop.runs for loop in kernel.phases[0].walk())
    assert has_tiles == (name != "groups")


def test_small_products_have_none() -> None:
    small, line = np.zeros((64, 64), np.int32), np.zeros((5000, 1), np.int32)
    for arrays in ((small, small), (line[:64].T, small), (line, line.T)):
        kernel = program_of(graph_of(contract((1,), (0,)), *arrays))
        assert not any(Runs.LOCKSTEP in loop.runs for phase in kernel.phases for loop in phase.walk())


def test_a_block_shares_nothing_that_differs_from_thread_to_thread() -> None:
    kernel = program_of(graph_of(CASES["whole tiles"][0], *arrays_of("whole tiles", "int32")))
    (lockstep,) = (loop for loop in kernel.phases[0].walk() if Runs.LOCKSTEP in loop.runs)
    (fill,) = (loop for loop in lockstep.walk() if loop.runs == Runs.BLOCK)
    (store, *_) = fill.stores()
    fill.body.append(type(store)(store.buffer, store.offset, lockstep.index.convert(store.buffer.dtype)))
    with pytest.raises(LoopError, match="L10: a block shares what differs from thread to thread"):
        verify(kernel)


# --- what follows, and bounds of floats -------------------------------------------------------------------------


def finish(x: Any, bias: Any, residual: Any) -> Any:
    """A bias of features, a relu, a scale and a residual."""
    return xarr.maximum(x + bias, 0) * 3 + residual


#: Products and convolutions with what follows, and the shapes of arguments: factors, bias, residual.
FOLLOWED: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "product": (
        lambda x, y, b, r: finish(contract((1,), (0,))(x, y), b, r),
        ((300, 19), (19, 500), (500,), (300, 500)),
    ),
    "convolution": (
        lambda x, w, b, r: finish(convolve(x, w), b[:, None, None], r),
        ((2, 3, 36, 36), (17, 3, 3, 3), (17,), (2, 17, 36, 36)),
    ),
    "features last": (
        lambda x, w, b, r: finish(CONVOLUTIONS["features last"][0](x, w), b, r),
        ((2, 36, 36, 5), (3, 3, 5, 17), (17,), (2, 36, 36, 1)),
    ),
    "two results": (
        lambda x, y, b, r: (
            contract((1,), (0,))(x, y) + b,
            xarr.astype(finish(contract((1,), (0,))(x, y), b, r), "int8"),
        ),
        ((300, 19), (19, 500), (500,), (300, 1)),
    ),
}


@pytest.mark.implicit
@pytest.mark.parametrize("name", FOLLOWED)
def test_what_follows_is_computed_where_a_tile_is_stored(
    name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, shapes = xarr.jit(FOLLOWED[name][0]), FOLLOWED[name][1]
    rng = np.random.default_rng(len(name))
    arrays = [rng.integers(-9, 9, shape).astype("int32") for shape in shapes]
    with xarr.use_backend("numpy"):
        wanted = [np.asarray(each) for each in as_tuple(function(*map(xarr.asarray, arrays)))]
    for order in ORDERS:
        monkeypatch.setattr(device(cupy), "order", order)
        results = as_tuple(function(*map(xarr.asarray, arrays)))
        for got, each in zip(results, wanted, strict=True):
            assert np.asarray(got).tobytes() == each.tobytes(), order
    operands = list(map(xarr.asarray, arrays))
    xarr.block_until_ready(operands)
    before, device(cupy).races = device(cupy).launches, True
    xarr.block_until_ready(function(*operands))
    assert device(cupy).launches == before + 1


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def test_a_donated_residual_is_read_before_it_is_written(cupy: Any) -> None:
    function, shapes = FOLLOWED["product"]
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-9, 9, shape).astype("int32") for shape in shapes]
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(*map(xarr.asarray, arrays)))
    result = xarr.jit(function, donate_argnums=3)(*map(xarr.asarray, arrays))
    assert np.asarray(result).tobytes() == wanted.tobytes()


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["features first", "strides, holes and negative padding", "one element"])
def test_sums_of_floats_keep_their_bounds(name: str, dtype: str, cupy: Any) -> None:
    """Terms are added up one by one, in float32 of narrower floats, which are rounded once."""
    rng = np.random.default_rng(7)
    function, *shapes = CONVOLUTIONS[name]
    arrays = [xarr.astype(xarr.asarray(rng.normal(size=shape)), dtype) for shape in shapes]
    got = np.asarray(xarr.astype(xarr.jit(function)(*arrays), "float64"))
    with xarr.use_backend("numpy"):
        wide = [xarr.asarray(np.asarray(each).astype("float64")) for each in arrays]
        exact, sizes = np.asarray(function(*wide)), np.asarray(function(*[abs(each) for each in wide]))
    terms, wide_eps = np.prod(shapes[1][1:]), np.finfo("float64" if dtype == "float64" else "float32").eps
    bound = terms * wide_eps * sizes
    if dtype in ("float16", "bfloat16"):
        bound = bound + float(lax_eps(dtype)) * abs(exact)
    assert (abs(got - exact) <= bound + 1e-300).all()


def lax_eps(dtype: str) -> float:
    """Half of a unit in the last place, relative to a number at most."""
    return 2.0 ** {"float16": -11, "bfloat16": -8}[dtype]


def test_many_tiles_have_more_rows(cupy: Any) -> None:
    """Tiles of 128 rows where there are enough of them, and the bits of the CPU there too."""
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-9, 9, shape).astype("int32") for shape in ((4000, 9), (9, 1030)))
    graph = graph_of(contract((1,), (0,)), x, y)
    assert program_of(graph).phases[0].extent == -(-4000 // 128)
    assert program_of(graph_of(contract((1,), (0,)), x[:1000], y)).phases[0].extent == -(-1000 // 64)
    result = np.asarray(xarr.jit(contract((1,), (0,)))(xarr.asarray(x), xarr.asarray(y)))
    np.testing.assert_array_equal(result, x @ y)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tiles that stick out", "features first", "features last"])
def test_tiles_of_more_rows_have_no_race(name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("min_large_tiles", "min_product_tiles"):
        monkeypatch.setattr(GpuTarget, limit, 1)
    x, y = arrays_of(name, "int32")
    function = xarr.jit(lambda x, y: CASES[name][0](x, y) - 1)
    device(cupy).races = True
    result = np.asarray(function(xarr.asarray(x), xarr.asarray(y)))
    (text,) = [each for each in device(cupy).texts if "__shared__" in each]
    assert f"[{16 * (128 + 4)}];" in text
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(x), xarr.asarray(y)))
    assert result.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "shapes", [((0, 9), (9, 70)), ((300, 0), (0, 500)), ((300, 9), (9, 0)), ((1, 9), (9, 5000))]
)
def test_products_without_elements_or_lines(shapes: tuple[tuple[int, int], ...], cupy: Any) -> None:
    x, y = (np.ones(shape, "int32") for shape in shapes)
    np.testing.assert_array_equal(
        np.asarray(xarr.jit(contract((1,), (0,)))(xarr.asarray(x), xarr.asarray(y))), x @ y
    )


@pytest.mark.parametrize(
    "name", ["tiles that stick out", "features first", "strides, holes and negative padding"]
)
def test_sizes_of_tiles_may_be_arguments(name: str, cupy: Any) -> None:
    arrays = arrays_of(name, "int32")
    got = np.asarray(CASES[name][0](*map(xarr.asarray, arrays)))
    with xarr.use_backend("numpy"):
        wanted = np.asarray(CASES[name][0](*map(xarr.asarray, arrays)))
    assert got.tobytes() == wanted.tobytes()
