"""Running totals as compiled loops, against the reference backend and exact sums."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base.configuration import current as config
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.runtime.materialisation import to_host

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
TOTALS: dict[str, Callable[..., Any]] = {
    "cumsum": lax.cumsum,
    "cumprod": lax.cumprod,
    "cummax": lax.cummax,
    "cummin": lax.cummin,
    "cumlogsumexp": lax.cumlogsumexp,
}
EXTREMES = ("cummax", "cummin")
DTYPES = ("float32", "float64", "int8", "int32", "int64", "uint16", "uint64", "bool", "float16", "bfloat16")


def compute(function: Callable[..., Any], *arrays: Array, fusion: str = "compiled") -> Array:
    with config(fusion=fusion):
        result: Array = to_host(function(*map(xarr.asarray, arrays)))
    return result


def kernels(function: Callable[..., Any], *types: str) -> int:
    with config(fusion="compiled"):
        fused = xarr.lower(function, *types).stage("fused")
    assert isinstance(fused, Graph)
    others = [
        node
        for node in fused.nodes
        if not isinstance(node.op, ops.Fusion | ops.Constant | ops.GetTupleElement)
    ]
    assert not others, fused.to_text()
    return sum(isinstance(node.op, ops.Fusion) for node in fused.nodes)


def values(seed: int, shape: tuple[int, ...], dtype: str) -> Array:
    """Small numbers, with zeros of both signs, infinities and NaN among floats."""
    generator = np.random.default_rng(seed)
    values = np.asarray(generator.normal(size=shape) * 3)
    if dtype in ("float32", "float64", "float16", "bfloat16"):
        odd = generator.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan]), shape)
        values = np.where(generator.random(shape) < 0.02, odd, values)
    return values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@settings(max_examples=80)
@given(st.data())
def test_totals_as_the_reference(data: st.DataObject) -> None:
    """Integers and extremes to the bit; floats as near as the order of additions allows."""
    name = data.draw(st.sampled_from(sorted(TOTALS)))
    exact = name in EXTREMES
    dtypes = [d for d in DTYPES if d[0] == "f" and "16" not in d] if name == "cumlogsumexp" else DTYPES
    dtype = data.draw(
        st.sampled_from([d for d in dtypes if exact or d not in ("bool", "float16", "bfloat16")])
    )
    sizes = st.lists(st.sampled_from([1, 2, 3, 5, 17, 33]), min_size=1, max_size=3)
    # The reference backend goes through each window anew.
    shape = tuple(data.draw(sizes.filter(lambda sizes: prod(sizes) <= 120)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    reverse = data.draw(st.booleans())
    x = values(data.draw(st.integers(0, 2**32)), shape, dtype)

    def function(x: Any) -> Any:
        return TOTALS[name](x, axis, reverse)

    with xarr.use_backend("reference"):
        wanted = to_host(function(xarr.asarray(x)))
    result = compute(function, x)
    if exact or x.dtype.kind in "iub":
        assert_same(result, wanted)
    else:
        assert result.dtype == wanted.dtype
        scale = np.nanmax(np.abs(np.where(np.isfinite(wanted), wanted, 0)), initial=1)
        bound = 40 * np.finfo(wanted.dtype).eps
        np.testing.assert_allclose(result, wanted, rtol=bound, atol=bound * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), [((100_003,), 0), ((3, 20_001), 1), ((20_001, 70), 0)])
def test_sums_are_no_worse_than_in_turn(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(5).random(shape).astype(dtype)
    wide = np.cumsum(x.astype(np.longdouble), axis=axis)
    result = compute(lambda x: lax.cumsum(x, axis), x)
    in_turn = np.cumsum(x, axis=axis)
    assert np.max(np.abs(result - wide)) <= np.max(np.abs(in_turn - wide))


COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "left": lambda a, b: a,
    "right": lambda a, b: b,
    "last_number": lambda a, b: lax.select(lax.ne(b, b), a, b),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", sorted(COMBINERS))
def test_elements_meet_in_the_order_of_the_window(name: str, axis: int, reverse: bool) -> None:
    """An associative combiner that does not commute tells it: from the end of an axis, totals go on to the left."""
    x = values(5, (7, 19), "float64")
    x[2, 3] = x[:, 11] = np.nan
    size = x.shape[axis]
    window, padding = [1, 1], [(0, 0), (0, 0)]
    window[axis], padding[axis] = size, (0, size - 1) if reverse else (size - 1, 0)

    def windows(x: xarr.Array) -> xarr.Array:
        result: xarr.Array = lax.reduce_window(x, -1.0, COMBINERS[name], window, None, padding)
        return result

    with xarr.use_backend("reference"):
        expected = to_host(windows(xarr.asarray(x)))
    assert_same(compute(windows, x), expected)
    assert_same(to_host(xarr.jit(windows)(xarr.asarray(x))), expected)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_long_axes(axis: int, reverse: bool) -> None:
    """Whole numbers, whose sums are exact, over several blocks of rows and long runs of registers."""
    shape = [2, 3, 4]
    shape[axis] = 700
    shape[(axis + 1) % 3] = 90
    x = np.random.default_rng(7).integers(-9, 9, shape).astype(np.float32)
    wanted = np.cumsum(x[::-1] if reverse and axis == 0 else x, axis=axis)
    if reverse:
        wanted = np.flip(np.cumsum(np.flip(x, axis), axis=axis), axis)
    assert_same(compute(lambda x: lax.cumsum(x, axis, reverse), x), wanted)


def shares(x: Any) -> Any:
    """Running totals of what rows add up to, as parts of the whole."""
    squares = x * x
    return lax.cumsum(squares, 1) / (squares + 1)


def less_mean(x: Any) -> Any:
    return lax.cumsum(x - xarr.mean(x, axis=1, keepdims=True), 1)


def softmax(x: Any) -> Any:
    e = xarr.exp(x - xarr.max(x, axis=-1, keepdims=True))
    return e / xarr.sum(e, axis=-1, keepdims=True)


def largest_less(x: Any) -> Any:
    return xarr.max(x, axis=1, keepdims=True) - x


#: name: function, types of its operands, kernels
def neighbours(x: Any) -> Any:
    """The larger of two neighbours of each element in its row."""
    return lax.reduce_window(x, -9.0, lax.max, (1, 2), (1, 1), ((0, 0), (1, 1)), window_dilation=(1, 2)) * 2


FUSED: dict[str, tuple[Callable[..., Any], list[str], int]] = {
    "before and after": (shares, ["f32[30,100]"], 1),
    "two totals": (lambda x: (lax.cumsum(x, 0), lax.cummax(x * 2, 0)), ["f32[30,100]"], 1),
    "total of totals": (lambda x: lax.cumsum(lax.cumsum(x, 1) * 0.5, 1), ["f64[30,100]"], 1),
    "total of totals of columns": (lambda x: lax.cumsum(lax.cumsum(x, 0) - x, 0), ["f64[30,100]"], 1),
    "other ways": (lambda x: lax.cumsum(x, 1) + lax.cumsum(x, 1, reverse=True), ["f32[30,100]"], 2),
    "shifted": (lambda x: lax.cumsum(x, 1)[:, 1:] - x[:, :-1], ["f32[30,100]"], 2),
    "of gathered rows": (lambda x, i: lax.cumsum(lax.take(x, i, 0), 1), ["f32[30,100]", "s32[50]"], 1),
    "of rows less their mean": (less_mean, ["f32[30,100]"], 1),
    "of few rows less their mean": (less_mean, ["f32[3,100]"], 2),
    "of columns less their mean": (lambda x: lax.cumsum(x - xarr.mean(x, axis=0), 0), ["f32[30,100]"], 2),
    "shares": (lambda x: lax.cumsum(softmax(x), 1), ["f32[30,100]"], 1),
    "shares from the end": (lambda x: 1 - lax.cumsum(softmax(x), 1, reverse=True), ["f64[30,100]"], 1),
    "shares and their sums": (lambda x: (lax.cumsum(softmax(x), 1), xarr.sum(x, axis=1)), ["f32[30,100]"], 2),
    "totals less the largest": (lambda x: largest_less(lax.cumsum(x, 1)), ["f32[30,100]"], 2),
    "totals by the largest": (
        lambda x: lax.cumsum(x, 1) / xarr.max(x, axis=1, keepdims=True),
        ["f32[30,100]"],
        1,
    ),
    "beside other windows": (lambda x: lax.cumsum(x, 1) + neighbours(x), ["f32[30,100]"], 2),
}


@pytest.mark.implicit
@pytest.mark.parametrize("name", FUSED)
def test_totals_run_with_what_surrounds_them(name: str) -> None:
    function, types, count = FUSED[name]
    assert kernels(function, *types) == count
    generator = np.random.default_rng(2)
    arrays = [generator.integers(0, 30, (50,)).astype(np.int32)] * len(types)
    rows = int(types[0].partition("[")[2].partition(",")[0])
    arrays[0] = generator.normal(size=(rows, 100)).astype("float32" if "32" in types[0] else "float64")

    def together(*arrays: Any) -> Any:
        results = function(*arrays)
        return xarr.concatenate(
            [each.reshape(-1) for each in (results if isinstance(results, tuple) else (results,))]
        )

    results, wanted = (compute(together, *arrays, fusion=fusion) for fusion in ("compiled", "off"))
    bound = 300 * float(xarr.finfo(arrays[0].dtype).eps)
    np.testing.assert_allclose(results, wanted, rtol=bound, atol=bound * 100)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
@pytest.mark.parametrize(("shape", "axis"), [((17,), 0), ((40, 17), 1), ((17, 40), 0)])
def test_totals_of_narrow_floats_are_those_of_numpy_in_whole_programs_too(
    dtype: str, shape: tuple[int, ...], axis: int
) -> None:
    x = (np.arange(prod(shape)).reshape(shape) * 0.37 % 19 - 9).astype(getattr(ml_dtypes, dtype, dtype))

    def once(x: Any) -> Any:
        return lax.cumsum(x * x, axis=axis)

    def in_a_loop(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, x: lax.cumsum(x * x, axis=axis, reverse=True), x)

    for function in (once, in_a_loop):
        assert_same(*[compute(xarr.jit(function), x, fusion=fusion) for fusion in ("auto", "off")])
