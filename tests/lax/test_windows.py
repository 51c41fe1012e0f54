"""Windows: reductions, choices, running totals and pooling, against jax.lax and plain definitions.

Known differences from XLA on the CPU, each with a test of what holds here:

* XLA forgets the initial value of a reduction of windows of rank 0; here it takes part, as StableHLO says.
* XLA goes through some windows of several dimensions column by column; here elements meet in row-major order, as
  StableHLO says.  It shows only with rounding, or computations that are not associative.
* XLA rounds running sums of narrow floats at every step; here they are added in float32 and rounded once.
* XLA ends the process where padding cuts off more of a dimension than there is in a select_and_scatter; here, as
  StableHLO says, no window is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from jax import lax as jlax
from jax._src.lax import windowed_reductions

import xarr
import xarr_numpy.ops.windows
from tests.compare import assert_same
from tests.lax_values import COMPLEXES, FLOAT8, FLOATS, INTS, dtype_of
from tests.programs import BACKENDS
from tests.support import fuzz
from tests.xla import parse, run_stablehlo
from xarr import lax, stablehlo
from xarr.errors import ParseError
from xarr.ir.types import Ints
from xarr.ir.windows import WindowDimension
from xarr_numpy import engine
from xarr_numpy.ops import overlapping_windows

jax.config.update("jax_enable_x64", True)

HostArray = np.ndarray[Any, Any]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with xarr.use_backend(request.param), xarr.config(broadcasting="explicit"):
        yield request.param


def same_as_jax(function: Callable[..., Any], *arguments: Any) -> None:
    """`function(lax, *arguments)` gives the same bits with xarr.lax and jax.lax."""
    for result, wanted in zip(*(jax.tree.leaves(function(m, *arguments)) for m in (lax, jlax)), strict=True):
        assert_same(result, np.asarray(wanted))


X = np.arange(1.0, 21.0, dtype=np.float32).reshape(4, 5)


# --- reduce_window -----------------------------------------------------------------------------------


def test_defaults_as_jax(backend: str) -> None:
    same_as_jax(lambda m: m.reduce_window(X, np.float32(0), m.add, (2, 2)))
    same_as_jax(lambda m: m.reduce_window(X, np.float32(0), m.add, (2, 2), (1, 1), padding="SAME"))
    same_as_jax(lambda m: m.reduce_window(X, np.float32(-np.inf), m.max, (2, 3), (2, 2), "same_lower"))
    same_as_jax(lambda m: m.reduce_window(X, np.float32(1), m.mul, (2, 1), window_dilation=(2, 1)))
    same_as_jax(lambda m: m.reduce_window(X, np.float32(1), m.min, (2, 1), base_dilation=(1, 3)))


def test_trees_as_jax(backend: str) -> None:
    """Largest elements and where they stand, in a dict."""
    indices = np.arange(20, dtype=np.int32).reshape(4, 5)

    def function(m: Any, x: Any) -> Any:
        def larger(a: Any, b: Any) -> Any:
            keep = m.ge(a["x"], b["x"])
            return {"i": m.select(keep, a["i"], b["i"]), "x": m.max(a["x"], b["x"])}

        start = {"x": np.float32(-np.inf), "i": np.int32(-1)}
        return m.reduce_window({"x": x, "i": indices}, start, larger, (3, 2), (1, 2), [(1, 1), (-1, 2)])

    same_as_jax(function, -X)


def test_python_scalars_take_the_element_type(backend: str) -> None:
    result = lax.reduce_window(X.astype(np.int8), 0, lax.add, (4, 5))
    assert_same(result, np.array([[210 - 256]], np.int8))


def test_padding_and_holes_take_no_part(backend: str) -> None:
    """With an initial value that is not neutral it shows."""
    x = np.arange(1, 4).astype(np.float32)
    same_as_jax(lambda m: m.reduce_window(x, np.float32(100), m.add, (2,), (1,), [(3, 2)]))
    same_as_jax(lambda m: m.reduce_window(x, np.float32(100), m.mul, (2,), (1,), [(1, 0)], (3,), (2,)))
    result = lax.reduce_window(x, 100, lambda a, b: lax.add(lax.add(a, a), b), (2,), (1,), [(2, 0)])
    assert_same(result, np.array([100, 201, 404, 407], np.float32))


def test_windows_without_elements(backend: str) -> None:
    empty = np.zeros((0, 3), np.float32)
    assert_same(
        lax.reduce_window(empty, 7, lax.add, (2, 1), padding=((1, 2), (0, 0))), np.full((2, 3), 7, np.float32)
    )
    assert_same(lax.reduce_window(X, 7, lax.add, (9, 1)), np.zeros((0, 5), np.float32))
    assert_same(
        lax.reduce_window(X, 7, lax.add, (1, 1), padding=((-3, -3), (0, 0))), np.zeros((0, 5), np.float32)
    )


def test_rank_0_where_xla_forgets_the_initial_value(backend: str) -> None:
    x = np.float32(3)
    assert_same(lax.reduce_window(x, 4, lax.add, ()), np.float32(7))
    assert np.asarray(jlax.reduce_window(x, np.float32(4), lambda a, b: a + b, ())) == 3


def test_row_major_order_where_xla_has_another(backend: str) -> None:
    x = np.array([[2, 0, 0, -2, 3], [-1, 2, 3, -1, -2], [0, -2, -1, -3, 0], [1, -1, 2, 2, -1]])

    def function(m: Any) -> Any:
        return m.reduce_window(x, np.int64(0), lambda a, b: m.add(m.add(a, a), b), (3, 2), (1, 2), "SAME")

    # The first window holds 2, 0, -1, 2.
    assert np.asarray(function(lax))[0, 0] == 16
    assert np.asarray(function(jlax))[0, 0] == 14


# --- large windows, which the NumPy backend folds ----------------------------------------------------

COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.add,
    "multiply": lax.mul,
    "max": lax.max,
    "min": lax.min,
    "first": lambda a, b: a,
    "last": lambda a, b: b,
    "affine": lambda a, b: lax.add(lax.add(a, b), lax.mul(a, b)),
}


@st.composite
def windows(draw: st.DrawFn) -> tuple[HostArray, str, tuple[Any, ...]]:
    """An array of small numbers, the name of an associative computation, windows of any form."""
    rank = draw(st.integers(1, 3))

    def some(low: int, high: int) -> Ints:
        return tuple(draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))

    shape, sizes = some(0, 7), some(1, 6)
    strides, base, holes = some(1, 3), some(1, 3), some(1, 3)
    padding = tuple(zip(some(-3, 6), some(-3, 6), strict=True))
    if draw(st.booleans()):
        sizes, strides, base, holes = tuple(max(n, 1) for n in shape), *((1,) * rank,) * 3
        ends = draw(st.lists(st.sampled_from([(1, 0), (0, 1)]), min_size=rank, max_size=rank))
        padding = tuple((low * (n - 1), high * (n - 1)) for n, (low, high) in zip(sizes, ends, strict=True))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = generator.integers(-2, 3, shape)
    dtype = draw(st.sampled_from([np.int32, np.float32, np.float64, np.complex64]))
    # Complex numbers have no order, and the signs of zeros in their products depend on how they are grouped.
    names = [n for n in COMBINERS if dtype is not np.complex64 or n not in ("max", "min", "multiply")]
    name = draw(st.sampled_from(names))
    if name == "affine":
        dtype = np.int32
    if name == "multiply":
        x = np.where(x == 0, 1, x)
    values = x.astype(dtype)
    if name in ("max", "min") and dtype is not np.int32:
        values = np.where(x == 0, generator.choice(np.array([0.0, -0.0, np.nan], dtype), shape), values)
    return values, name, (sizes, strides, padding, base, holes)


@fuzz.examples(150)
@given(windows(), st.integers(0, 2))
def test_folded_windows_as_the_reference(case: tuple[HostArray, str, tuple[Any, ...]], start: int) -> None:
    """For any initial value, neutral or not, alone and beside a second array; the sums are exact."""
    x, name, form = case

    def reduce(x: Any) -> list[Any]:
        both = lax.reduce_window(
            (x, x), (start, 0), lambda a, b: (COMBINERS[name](a[0], b[0]), lax.add(a[1], b[1])), *form
        )
        return [lax.reduce_window(x, start, COMBINERS[name], *form), *both]

    with xarr.use_backend("reference"):
        wanted = [np.asarray(each) for each in reduce(x)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xarr_numpy.ops.windows, "_SMALL", 0)
        patch.setattr(xarr_numpy.ops.windows, "_MEDIUM", 0)
        for result, each in zip(reduce(xarr.asarray(x)), wanted, strict=True):
            assert_same(result, each)


@fuzz.examples(80)
@given(windows(), st.sampled_from([lax.ge, lax.gt, lax.le]))
def test_folded_choices_as_the_reference(
    case: tuple[HostArray, str, tuple[Any, ...]], select: Callable[[Any, Any], Any]
) -> None:
    """Of equal elements too; without NaN, for which the order in which elements meet shows."""
    sizes, strides, padding, _, _ = case[2]
    x = np.asarray(np.nan_to_num(case[0].real)).astype(np.int32)
    shape = np.asarray(lax.reduce_window(x, 0, lax.add, sizes, strides, padding)).shape
    source = np.arange(np.prod(shape)).reshape(shape).astype(np.int32)

    def scatter_source(x: Any, source: Any) -> Any:
        return lax.select_and_scatter(x, select, sizes, strides, padding, source, -1, lax.add)

    with xarr.use_backend("reference"):
        wanted = np.asarray(scatter_source(x, source))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xarr_numpy.ops.windows, "_SMALL", 0)
        patch.setattr(xarr_numpy.ops.windows, "_MEDIUM", 0)
        assert_same(scatter_source(xarr.asarray(x), xarr.asarray(source)), wanted)


N = 200_000
NUMBERS = np.random.default_rng(3).integers(-1000, 1000, N)


@pytest.mark.parametrize("size", [1, 2, 1000, 65_537, N - 1, N])
@pytest.mark.parametrize("stride", [1, 7, 70_000])
def test_windows_of_any_size_cost_alike(size: int, stride: int) -> None:
    """Sums and extremes of up to 200,000 neighbours, at up to 200,000 positions: by definition 10^10 steps."""
    sums = np.concatenate([[0], np.cumsum(NUMBERS)])
    wanted = (sums[size:] - sums[:-size])[::stride]
    assert_same(lax.reduce_window(NUMBERS, 0, lax.add, (size,), (stride,)), wanted)
    result = lax.reduce_window(NUMBERS, 0, lambda a, b: lax.add(b, lax.add(a, 0)), (size,), (stride,))
    assert_same(result, wanted)
    steps = np.arange(N)
    assert_same(lax.reduce_window(steps, -1, lax.max, (size,), (stride,)), steps[size - 1 :][::stride])


def test_holes_are_not_laid_out() -> None:
    """Windows and arrays that would take 8 TB with all their holes."""
    x, far = np.arange(5, dtype=np.float32), 2**40
    result = lax.reduce_window(x, 0, lax.add, (40,), (far,), [(38 * far, far)], (far,), (far,))
    assert_same(result, np.array([1, 3, 6, 10, 10], np.float32))


def test_large_windows_keep_infinities_apart() -> None:
    """A sum of neighbours is no difference of running sums."""
    x = np.ones(5000, np.float32)
    x[[100, 4000]] = np.inf, np.nan
    results = np.asarray(lax.reduce_window(x, 0, lax.add, (1000,)))
    assert np.isinf(results[:101]).all()
    assert (results[101:3001] == 1000).all()
    assert np.isnan(results[3001:]).all()


def test_large_sums_are_accurate() -> None:
    """Within 20 spacings of the sum of magnitudes, log2(1000) of which pairs of pairs are entitled to twice."""
    x = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    exact = np.convolve(x.astype(np.float64), np.ones(1000), "valid")
    scale = np.convolve(np.abs(x).astype(np.float64), np.ones(1000), "valid")
    result = np.asarray(lax.reduce_window(x, 0, lax.add, (1000,))).astype(np.float64)
    assert np.all(np.abs(result - exact) <= 20 * np.finfo(np.float32).eps * scale)


@pytest.mark.parametrize("tile", [1, 16, 300])
@pytest.mark.parametrize(
    "ufunc", [np.add, np.maximum, np.bitwise_and, np.bitwise_xor], ids=lambda ufunc: ufunc.__name__
)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32"])
def test_wide_windows_in_tiles_of_any_size(
    dtype: str, ufunc: np.ufunc, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against each window on its own: tiles that hold a part of a line, or several lines."""
    monkeypatch.setattr(overlapping_windows, "_TILE", tile)
    if dtype == "float32":
        ufunc = {np.bitwise_xor: np.minimum, np.bitwise_and: np.minimum}.get(ufunc, ufunc)
    x = np.random.default_rng(1).integers(0, 100, (3, 70, 2)).astype(dtype)
    for size, stride, step in (
        (2, 1, 1),
        (7, 1, 1),
        (16, 3, 1),
        (33, 1, 1),
        (5, 2, 4),
        (9, 1, 7),
        (70, 1, 1),
    ):
        windows = (70 - (size - 1) * step - 1) // stride + 1
        dimension = WindowDimension(size, stride, window_dilation=step)
        result = overlapping_windows.fold_neighbours(ufunc, x, 1, dimension, windows)
        for k in range(windows):
            own = x[:, k * stride : k * stride + (size - 1) * step + 1 : step]
            assert_same(result[:, k], ufunc.reduce(own, axis=1, dtype=x.dtype))


# --- select_and_scatter ------------------------------------------------------------------------------


def choose_and_scatter(m: Any, select: str, x: HostArray, *settings: Any) -> Any:
    scatter = lax.select_and_scatter if m is lax else windowed_reductions._select_and_scatter
    shape = np.asarray(lax.reduce_window(x, 0, lax.add, *settings)).shape
    source = np.arange(1, np.prod(shape) + 1).reshape(shape).astype(x.dtype)
    return scatter(x, getattr(m, select), *settings, source, np.zeros((), x.dtype), m.add)


def test_ties_and_nan(backend: str) -> None:
    x = np.array([1, 5, 5, 2, np.nan, 3, 7], np.float32)
    settings = ((3,), (1,), ((0, 0),))
    for select, wanted in {"ge": [0, 3, 0, 0, 3, 4, 5], "gt": [0, 0, 3, 0, 3, 4, 5]}.items():
        same_as_jax(lambda m, select=select: choose_and_scatter(m, select, x, *settings))
        assert_same(choose_and_scatter(lax, select, x, *settings), np.array(wanted, np.float32))


def test_windows_of_padding_choose_nothing(backend: str) -> None:
    x = -np.arange(1.0, 5.0)
    same_as_jax(lambda m: choose_and_scatter(m, "ge", x, (2,), (1,), ((4, 3),)))
    same_as_jax(lambda m: choose_and_scatter(m, "ge", x, (2,), (2,), ((-1, 1),)))


def test_a_source_without_elements(backend: str) -> None:
    nothing = np.zeros(0, np.float32)
    result = lax.select_and_scatter(np.ones(3, np.float32), lax.ge, (4,), (1,), "VALID", nothing, 5, lax.add)
    assert_same(result, np.full(3, 5, np.float32))
    result = lax.select_and_scatter(
        np.ones(3, np.float32), lax.ge, (1,), (1,), [(-2, -2)], nothing, 5, lax.add
    )
    assert_same(result, np.full(3, 5, np.float32))
    result = lax.select_and_scatter(nothing, lax.ge, (1,), (1,), [(1, 0)], np.ones(1, np.float32), 5, lax.add)
    assert_same(result, nothing)


def test_choices_of_rank_0(backend: str) -> None:
    result = lax.select_and_scatter(np.float32(3), lax.ge, (), (), "VALID", np.float32(2), 5, lax.add)
    assert_same(result, np.float32(7))


@pytest.mark.parametrize("select", ["ge", "le"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16", "float64"])
def test_select_and_scatter_add_as_jax(dtype: str, select: str, backend: str) -> None:
    generator = np.random.default_rng(1)
    x = generator.permutation(30).reshape(5, 6).astype(dtype_of(dtype))
    source = generator.integers(-5, 5, (3, 4)).astype(dtype_of(dtype))
    settings = ((2, 3), (2, 2), ((1, 0), (1, 2)))
    wanted = windowed_reductions._select_and_scatter_add(source, x, getattr(jlax, f"{select}_p"), *settings)
    assert_same(lax.select_and_scatter_add(source, x, getattr(lax, select), *settings), np.asarray(wanted))


def test_select_and_scatter_add_of_bools(backend: str) -> None:
    x = np.array([False, True, True, False])
    result = lax.select_and_scatter_add(np.array([True, True]), x, lax.ge, (2,), (2,), "VALID")
    assert_same(result, x)


def test_the_gradient_of_max_pooling(backend: str) -> None:
    x = np.random.default_rng(2).permutation(2 * 6 * 6 * 3).reshape(2, 6, 6, 3).astype(np.float32)
    window = ((1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    wanted = jax.grad(lambda x: jlax.reduce_window(x, -np.inf, jlax.max, *window).sum())(x)
    result = lax.select_and_scatter_add(np.ones((2, 3, 3, 3), np.float32), x, lax.ge, *window)
    assert_same(result, np.asarray(wanted))


@pytest.mark.parametrize("fusion", ["off", *["compiled"] * engine.available()])
@pytest.mark.parametrize("stride", [1, 3])
def test_choices_combined_by_any_computation(fusion: str, stride: int) -> None:
    random = np.random.default_rng(4)
    x, source = random.permutation(90).astype(np.float32).reshape(9, 10), random.normal(size=(9, 10))
    settings = ((3, 3), (stride, stride), "SAME")
    source = source[::stride, :10:stride].astype(np.float32)

    def scatter_source() -> Any:
        return lax.select_and_scatter(x, lax.ge, *settings, source, 7, lambda a, b: a * 0.5 + b)

    with xarr.use_backend("reference"):
        wanted = np.asarray(scatter_source())
    with xarr.config(fusion=fusion), xarr.use_backend("numpy"):
        assert_same(scatter_source(), wanted)


# --- running totals ----------------------------------------------------------------------------------

RUNNING = ("cumsum", "cumprod", "cummax", "cummin")


def small(shape: Ints, dtype: str, name: str) -> HostArray:
    """Numbers of which sums and products are exact in any order."""
    generator = np.random.default_rng(len(shape))
    choices = [-2, -1, 1, 1, 0.5] if name == "cumprod" and dtype not in INTS else [-3, -1, 0, 1, 2]
    values = generator.choice(choices, shape)
    if dtype in COMPLEXES:
        values = values + (1j * generator.choice(choices, shape) if name != "cumprod" else 0)
    if dtype.startswith("u"):
        values = np.abs(values)
    return np.asarray(values).astype(dtype_of(dtype))


@pytest.mark.parametrize(
    ("dtype", "name", "reverse"),
    fuzz.one_of_last(["int8", "int64", "uint16", "uint64", *FLOATS, *COMPLEXES], RUNNING, [False, True]),
)
def test_running_totals_as_jax(name: str, dtype: str, reverse: bool, backend: str) -> None:
    for shape in ((3, 0), (2, 1, 5)):
        x = small(shape, dtype, name)
        for axis in range(len(shape)):
            same_as_jax(lambda m, x=x, a=axis: getattr(m, name)(x, axis=a, reverse=reverse))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", RUNNING)
def test_running_totals_of_special_values_as_jax(name: str, dtype: str, backend: str) -> None:
    special = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -0.0, 0.0]
    rows = np.array([np.roll(special, k) for k in range(8)] + [[-0.0] * 8]).astype(dtype_of(dtype))
    for reverse in (False, True):
        same_as_jax(lambda m, r=reverse: getattr(m, name)(rows, axis=1, reverse=r))


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes_of_bools(name: str, backend: str) -> None:
    x = np.array([False, True, False])
    wanted = np.logical_or.accumulate(x) if name == "cummax" else np.logical_and.accumulate(x)
    assert_same(getattr(lax, name)(x), wanted)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_running_totals_of_float8(dtype: str) -> None:
    x = np.array([1.0, 2.0, 0.5, 1.0]).astype(dtype_of(dtype))
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        with xarr.use_backend("reference"):
            wanted = np.asarray(getattr(lax, name)(x))
        result = np.asarray(getattr(lax, name)(x)).astype(np.float32)
        # Sums are rounded once, not at every step; float8_e8m0fnu has no 0 to start from, but NaN.
        assert result == pytest.approx(wanted.astype(np.float32), rel=0.5, nan_ok=True)


@pytest.mark.parametrize("size", [1, 2, 33, 1000])
def test_running_sums_are_accurate(size: int) -> None:
    """Each step errs by half a spacing of the sum so far: at most so many spacings of the sum of magnitudes."""
    for dtype in (np.float32, np.float64):
        x = np.random.default_rng(0).normal(size=(3, size)).astype(dtype)
        exact = np.cumsum(x.astype(np.longdouble), axis=1)
        scale = np.cumsum(np.abs(x).astype(np.longdouble), axis=1) * np.finfo(dtype).eps * size
        for result in (lax.cumsum(x, 1), jlax.cumsum(x, 1)):
            assert np.all(np.abs(np.asarray(result) - exact) <= scale)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_narrow_running_sums_are_rounded_once(dtype: Any) -> None:
    x = np.full(5000, 0.1).astype(dtype)
    wanted = np.cumsum(x.astype(np.float32)).astype(dtype)
    assert_same(lax.cumsum(x), wanted)
    assert_same(lax.cumsum(x, reverse=True), wanted[::-1])


def test_long_running_totals() -> None:
    """10^6 elements, which the definition takes 10^12 steps for."""
    x = np.random.default_rng(1).integers(-5, 5, 1_000_000)
    assert_same(lax.cumsum(x), np.cumsum(x))
    assert_same(lax.cummin(x, reverse=True), np.minimum.accumulate(x[::-1])[::-1])
    assert_same(lax.cumsum(x.reshape(1000, 1000), 0), np.cumsum(x.reshape(1000, 1000), 0))


@pytest.mark.parametrize(
    ("dtype", "along"),
    fuzz.one_of_last(
        ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"],
        [(0, False), (1, False), (1, True)],
    ),
)
def test_cumlogsumexp_as_jax(dtype: str, along: tuple[int, bool]) -> None:
    """Within 8 spacings, each of at most 40 steps adding a part of one.  The reference takes them one by one."""
    x = (np.random.default_rng(4).normal(size=(2, 40)) * 4).astype(dtype_of(dtype))
    axis, reverse = along
    wanted = np.asarray(jlax.cumlogsumexp(x, axis=axis, reverse=reverse))
    for name in ("numpy", "reference"):
        with xarr.use_backend(name):
            assert_same(lax.cumlogsumexp(x, axis=axis, reverse=reverse), wanted, ulp=8, normwise=True)


def test_cumlogsumexp_neither_overflows_nor_loses_infinities(backend: str) -> None:
    x = np.array([-np.inf, 1000.0, -1000.0, 1000.0, np.inf, 0.0, np.nan])
    wanted = [-np.inf, 1000.0, 1000.0, 1000 + np.log(2), np.inf, np.inf, np.nan]
    assert_same(lax.cumlogsumexp(x), np.array(wanted), ulp=2)
    assert_same(lax.cumlogsumexp(np.full(3, -np.inf)), np.full(3, -np.inf))
    assert_same(lax.cumlogsumexp(np.zeros((0, 2), np.float32)), np.zeros((0, 2), np.float32))


# --- pooling -----------------------------------------------------------------------------------------


def pool(
    x: HostArray, window: Ints, strides: Ints, padding: Any, how: Callable[[HostArray], Any]
) -> HostArray:
    """By definition: NaN stands for padding, and `how` is told what is left of each window."""
    batch = x.ndim - len(window) - 1
    pairs = [(0, 0)] * batch + list(padding) + [(0, 0)]
    wide = np.pad(x.astype(np.float64), pairs, constant_values=np.nan)
    view = np.lib.stride_tricks.sliding_window_view(wide, window, axis=tuple(range(batch, x.ndim - 1)))
    view = view[(slice(None),) * batch + tuple(slice(None, None, s) for s in strides)]
    rows = view.reshape(*view.shape[: x.ndim], -1)
    return np.apply_along_axis(lambda row: how(row[~np.isnan(row)]), -1, rows).astype(x.dtype)


POOLS = [
    ((2, 6, 7, 3), (2, 3), (2, 2), ((0, 0), (0, 0))),
    ((6, 7, 3), (3, 3), (1, 2), ((1, 1), (2, 0))),
    ((2, 1, 5, 4), (2,), (3,), ((1, 1),)),
    ((9, 2), (4,), (1,), ((2, 3),)),
]


@pytest.mark.parametrize(("shape", "window", "strides", "padding"), POOLS, ids=str)
def test_pools_by_definition(shape: Ints, window: Ints, strides: Ints, padding: Any, backend: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    size = int(np.prod(window))
    functions: list[tuple[Any, Callable[[HostArray], Any]]] = [
        (lax.max_pool, np.max),
        (lax.min_pool, np.min),
        (lax.avg_pool, lambda row: np.float32(row.sum()) / np.float32(size)),
    ]
    for function, how in functions:
        wanted = pool(x, window, strides, padding, how)
        assert_same(function(x, window, strides, padding), wanted)
    wanted = pool(x, window, strides, padding, lambda row: np.float32(row.sum()) / np.float32(row.size))
    assert_same(lax.avg_pool(x, window, strides, padding, count_include_pad=False), wanted)


def test_pools_with_named_padding(backend: str) -> None:
    x = np.arange(5, dtype=np.float32)[:, None]
    assert np.asarray(lax.max_pool(x, (2,), padding="SAME"))[:, 0].tolist() == [1, 2, 3, 4, 4]
    assert np.asarray(lax.max_pool(x, (2,), padding="SAME_LOWER"))[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert np.asarray(lax.max_pool(x, (2,), (2,)))[:, 0].tolist() == [1, 3]
    means = lax.avg_pool(x, (2,), padding="SAME", count_include_pad=False)
    assert np.asarray(means)[:, 0].tolist() == [0.5, 1.5, 2.5, 3.5, 4]


def test_pools_of_padding_alone(backend: str) -> None:
    x = np.ones((2, 1), np.float32)
    assert np.asarray(lax.max_pool(x, (1,), padding=[(1, 0)]))[:, 0].tolist() == [-np.inf, 1, 1]
    assert np.asarray(lax.min_pool(x.astype(np.int8), (1,), padding=[(0, 1)]))[:, 0].tolist() == [1, 1, 127]
    assert np.isnan(np.asarray(lax.avg_pool(x, (1,), padding=[(1, 0)], count_include_pad=False))[0, 0])


def test_narrow_pools_are_exact() -> None:
    x = np.random.default_rng(5).normal(size=(1, 9, 9, 2))
    for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        narrow = x.astype(dtype)
        wide = np.asarray(lax.max_pool(narrow.astype(np.float32), (3, 3), (2, 2), "SAME"))
        assert_same(lax.max_pool(narrow, (3, 3), (2, 2), "SAME"), wide.astype(dtype))


def test_padtype_to_pads_as_jax() -> None:
    for padding in ("SAME", "VALID", "SAME_LOWER", [(1, 2), (-3, 4)]):
        result = lax.padtype_to_pads((7, 8), (3, 2), (2, 3), padding)
        if isinstance(padding, str):
            assert list(result) == list(jlax.padtype_to_pads((7, 8), (3, 2), (2, 3), padding))
        else:
            assert result == ((1, 2), (-3, 4))


# --- as text -----------------------------------------------------------------------------------------

BODY = """({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }"""
AT_LEAST = """({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %s : tensor<i1>
      }, """


def test_what_text_may_leave_out() -> None:
    """Strides, dilations and padding."""
    text = f"""func.func @main(%x: tensor<2x3xf32>, %z: tensor<f32>) -> (tensor<1x2xf32>, tensor<2x3xf32>) {{
      %0 = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: 2, 2>}}> {BODY}) :
        (tensor<2x3xf32>, tensor<f32>) -> tensor<1x2xf32>
      %1 = "stablehlo.select_and_scatter"(%x, %x, %z) <{{window_dimensions = array<i64: 1, 1>}}>
        {AT_LEAST} {BODY[1:]}) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
      return %0, %1 : tensor<1x2xf32>, tensor<2x3xf32>
    }}"""
    x, zero = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32(1)
    for result, wanted in zip(stablehlo.run(text, x, zero), run_stablehlo(text, x, zero), strict=True):
        assert_same(result, wanted)
    with pytest.raises(ParseError, match=r"\[C4\]: wanted 2 window_dimensions"):
        stablehlo.parse(text.replace("<{window_dimensions = array<i64: 1, 1>}>", ""))


def test_text_of_rank_0_may_leave_out_the_window() -> None:
    """MLIR takes it too; XLA ends the process."""
    text = f"""func.func @main(%z: tensor<f32>) -> tensor<f32> {{
      %0 = "stablehlo.select_and_scatter"(%z, %z, %z)
        {AT_LEAST} {BODY[1:]}) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }}"""
    parse(text)
    (result,) = stablehlo.run(text, np.float32(3))
    assert_same(result, np.float32(6))
