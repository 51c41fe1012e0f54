"""Windows as compiled loops: the bits of the reference backend, for windows of every form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.support.threads import threads
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.ir.types import Ints
from xarr.ir.windows import Window
from xarr_numpy.compiled.schedule import PROCESSOR

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]

DTYPES = ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64")
COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "max": lax.max,
    "min": lax.min,
    "add": lax.add,
    "mul": lax.mul,
    "first but one": lambda a, b: lax.sub(b, a),
}
SELECTS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(lax, name) for name in ("ge", "gt", "le", "lt", "eq", "ne")
}
SCATTERS: dict[str, Callable[[Any, Any], Any]] = {"add": lax.add, "max": lax.max, "last": lambda a, b: b}


@dataclass(frozen=True)
class Form:
    """The shape of an operand and windows over it."""

    shape: Ints
    sizes: Ints
    strides: Ints
    padding: tuple[tuple[int, int], ...]
    holes: Ints

    @property
    def windows(self) -> Ints:
        """The numbers of windows."""
        return Window.of(self.sizes, self.strides, self.padding, None, self.holes).output_shape(self.shape)


@st.composite
def forms(draw: st.DrawFn, dilates: bool = True) -> Form:
    rank = draw(st.integers(1, 4))

    def each(strategy: st.SearchStrategy[Any]) -> tuple[Any, ...]:
        return tuple(draw(strategy) for _ in range(rank))

    shape = each(st.sampled_from((1, 2, 3, 5, 7, 9)))
    longest = draw(st.sampled_from((1, 5, 19, 37, 70)))
    axis = draw(st.integers(0, rank - 1))
    return Form(
        tuple(longest if k == axis and rank < 4 else size for k, size in enumerate(shape)),
        each(st.sampled_from((1, 1, 2, 3, 4))),
        each(st.sampled_from((1, 1, 2, 3, 5))),
        each(st.tuples(st.integers(-2, 3), st.integers(-2, 3))),
        each(st.sampled_from((1, 1, 2, 3))) if dilates else (1,) * rank,
    )


def values(seed: int, shape: Ints, dtype: str) -> Array:
    """Few distinct numbers, so that there are ties; among floats infinities, NaN and zeros of both signs."""
    random = np.random.default_rng(seed)
    values = random.integers(-3, 4, shape).astype(np.dtype(dtype))
    if np.dtype(dtype).kind in "fV" and seed % 2:
        values = (random.normal(size=shape) * 3).astype(np.dtype(dtype))
    if np.dtype(dtype).kind in "fV" and seed % 3 == 0:
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(np.dtype(dtype))
        values = np.where(random.random(shape) < 0.2, random.choice(odd, shape), values)
    return np.asarray(values)


def both(function: Callable[..., Any], *arrays: Array) -> tuple[Any, Any]:
    """By compiled loops, and by the reference backend."""
    with xarr.config(fusion="compiled"):
        result = np.asarray(function(*map(xarr.asarray, arrays)))
    with xarr.use_backend("reference"):
        wanted = np.asarray(function(*map(xarr.asarray, arrays)))
    return result, wanted


def groups(function: Callable[..., Any], *arrays: Array) -> list[ops.Fusion]:
    """The groups that compiled loops run."""
    with xarr.config(fusion="compiled"):
        fused = xarr.lower(function, *map(xarr.asarray, arrays)).stage("fused")
    assert isinstance(fused, Graph)
    return [node.op for node in fused.nodes if isinstance(node.op, ops.Fusion)]


def holds(groups: list[ops.Fusion], op: type[Any]) -> bool:
    return any(isinstance(node.op, op) for group in groups for node in group.computation.nodes)


POOL = Form((2, 9, 37, 3), (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)), (1, 1, 1, 1))
PLANES = Form((2, 3, 9, 70), (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)), (1, 1, 1, 1))


@settings(max_examples=40, deadline=None)
@given(forms(), st.sampled_from(DTYPES), st.sampled_from(sorted(COMBINERS)), st.integers(0, 2**32))
@example(POOL, "float32", "max", 3)
@example(PLANES, "float32", "max", 3)
@example(PLANES, "float16", "add", 1)
@example(Form((300,), (5,), (3,), ((2, 4),), (2,)), "float64", "min", 3)
def test_reduced_windows_have_the_bits_of_the_reference(form: Form, dtype: str, name: str, seed: int) -> None:
    if dtype == "bool" and name == "first but one":
        return
    array, initial = values(seed, form.shape, dtype), values(seed + 1, (), dtype)

    def function(x: Any, first: Any) -> Any:
        return lax.reduce_window(
            x, first, COMBINERS[name], form.sizes, form.strides, form.padding, window_dilation=form.holes
        )

    result, wanted = both(function, array, initial)
    assert_same(result, wanted)
    if 0 not in form.windows and 1 < prod(form.sizes) <= PROCESSOR.max_reduced_window:
        assert holds(groups(function, array, initial), ops.ReduceWindow)


@settings(max_examples=40, deadline=None)
@given(
    forms(dilates=False),
    st.sampled_from(DTYPES),
    st.sampled_from(sorted(SELECTS)),
    st.sampled_from(sorted(SCATTERS)),
    st.integers(0, 2**32),
)
@example(POOL, "float32", "ge", "add", 3)
@example(PLANES, "float32", "ge", "add", 3)
@example(POOL, "bfloat16", "gt", "add", 1)
def test_windows_choose_and_scatter_as_in_the_reference(
    form: Form, dtype: str, select: str, scatter: str, seed: int
) -> None:
    array, initial = values(seed, form.shape, dtype), values(seed + 1, (), dtype)
    source = values(seed + 2, form.windows, dtype)

    def function(x: Any, source: Any, first: Any) -> Any:
        return lax.select_and_scatter(
            x, SELECTS[select], form.sizes, form.strides, form.padding, source, first, SCATTERS[scatter]
        )

    result, wanted = both(function, array, source, initial)
    assert_same(result, wanted)
    if source.size and max(form.sizes) > 1:
        assert holds(groups(function, array, source, initial), ops.SelectAndScatter)


LAYOUTS = (
    (("NHWC", "HWIO", "NHWC"), (2, 9, 37, 3), (3, 2, 1, 3)),
    (("NHWC", "OIHW", "NHWC"), (2, 9, 11, 17), (17, 1, 3, 2)),
    (("NCHW", "OIHW", "NCHW"), (2, 3, 9, 40), (3, 1, 3, 3)),
    (("NCHW", "OIHW", "NCHW"), (1, 1, 9, 7), (1, 1, 2, 3)),
    (("NWC", "WIO", "NWC"), (2, 70, 5), (4, 1, 5)),
    (("CWN", "WIO", "CWN"), (5, 21, 19), (4, 1, 5)),
)
#: Of all features of the array.
DENSE = (
    (("NHWC", "HWIO", "NHWC"), (2, 9, 17, 3), (3, 2, 3, 19)),
    (("NHWC", "OIHW", "NHWC"), (2, 7, 8, 5), (9, 5, 3, 3)),
    (("NHWC", "HWIO", "NHWC"), (1, 1, 9, 4), (1, 3, 4, 8)),
    (("HWNC", "HWIO", "HWNC"), (5, 4, 3, 2), (2, 3, 2, 33)),
    (("NWC", "WIO", "NWC"), (1, 40, 1), (4, 1, 20)),
    (("NC", "IO", "NC"), (7, 6), (6, 12)),
)


@pytest.mark.thorough
@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([(*layout, True) for layout in LAYOUTS] + [(*layout, False) for layout in DENSE]),
    st.sampled_from([dtype for dtype in DTYPES if dtype != "bool"]),
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(-1, 3), st.integers(-1, 3)), min_size=2
    ),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_convolutions_are_those_of_the_reference(
    layout: Any, dtype: str, rows: Any, whole: bool, seed: int
) -> None:
    names, shape, kernel_shape, depthwise = layout
    rank = len(shape) - 2
    strides, holes, *sides = (tuple(row[k] for row in rows[:rank]) for k in range(4))
    seed = seed * 6 + (2 if whole else 1)  # whole numbers, whose sums are exact, or fractions; all finite
    array, kernel = values(seed, shape, dtype), values(seed + 6, kernel_shape, dtype)

    def function(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            kernel,
            strides,
            tuple(zip(*sides, strict=True)),
            rhs_dilation=holes,
            dimension_numbers=names,
            feature_group_count=shape[names[0].index("C")] if depthwise else 1,
            preferred_element_type=np.float64 if wide else None,
            window_reversal=tuple(bool(stride % 2) for stride in strides),
        )

    wide = dtype == "float32" and bool(seed % 7)
    result, wanted = both(function, array, kernel)
    is_held = depthwise or (dtype in ("float32", "float64") and not wide)
    assert holds(groups(function, array, kernel), ops.Convolution) == (is_held and result.size > 0)
    if whole or np.dtype(dtype).kind in "iu":
        assert_same(result, wanted)
    else:
        eps = float(xarr.finfo(np.dtype(dtype)).eps)
        with xarr.use_backend("reference"):
            magnitudes = function(xarr.asarray(np.abs(array)), xarr.asarray(np.abs(kernel)))
            bound = 20 * eps * np.asarray(magnitudes, np.float64) + eps
        assert (np.abs(np.asarray(result, np.float64) - np.asarray(wanted, np.float64)) <= bound).all()


@pytest.mark.parametrize("depthwise", [True, False])
def test_infinite_weights_do_not_meet_padding(depthwise: bool) -> None:
    x, kernel = np.ones((1, 5, 8), np.float32), np.full((3, 1 if depthwise else 8, 8), np.inf, np.float32)
    function = lambda x, k: lax.conv_general_dilated(  # noqa: E731
        x,
        k,
        (1,),
        ((1, 1),),
        dimension_numbers=("NWC", "WIO", "NWC"),
        feature_group_count=8 if depthwise else 1,
    )
    result, wanted = both(function, x, kernel)
    assert_same(result, wanted)
    assert np.isinf(result).all()


@pytest.mark.parametrize("layout", ["channels last", "channels first"])
def test_bias_relu_and_scaling_join_a_pool(layout: str) -> None:
    last = layout == "channels last"
    shape = (2, 9, 11, 5) if last else (2, 5, 9, 11)
    sizes = (1, 3, 3, 1) if last else (1, 1, 3, 3)
    x, bias = values(1, shape, "float32"), values(2, (5,), "float32")

    def function(x: Any, bias: Any) -> Any:
        wide = lax.broadcast_in_dim(bias, x.shape, (3 if last else 1,))
        active = lax.max(lax.add(x, wide), lax.full_like(x, 0))
        pooled = lax.reduce_window(active, np.float32(-np.inf), lax.max, sizes, (1, 1, 1, 1), "SAME")
        return lax.mul(pooled, lax.full_like(pooled, 2))

    (group,) = groups(function, x, bias)
    assert holds([group], ops.ReduceWindow)
    assert_same(*both(function, x, bias))


def test_what_others_use_is_not_drawn_into_a_pool() -> None:
    x = values(1, (4, 19), "float32")

    def function(x: Any) -> Any:
        twice = lax.add(x, x)
        pooled = lax.reduce_window(twice, np.float32(0), lax.add, (1, 3), (1, 1), "SAME")
        return lax.add(pooled, lax.sort(twice))

    assert len(groups(function, x)) == 2
    assert_same(*both(function, x))


@pytest.mark.thorough
def test_bias_and_relu_join_a_convolution() -> None:
    x, kernel, bias = (
        values(1, (2, 9, 11, 5), "float32"),
        values(7, (3, 3, 5, 16), "float32"),
        np.ones(16, "f"),
    )

    def function(x: Any, kernel: Any, bias: Any) -> Any:
        result = lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        wide = lax.broadcast_in_dim(bias, result.shape, (3,))
        return lax.max(lax.add(result, wide), lax.full_like(result, 0))

    assert len(groups(function, x, kernel, bias)) == 1
    result, wanted = both(function, x, kernel, bias)
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("pool", [lax.max, lax.add])
def test_relu_between_a_convolution_and_a_pool_joins_the_convolution(pool: Callable[..., Any]) -> None:
    x, kernel = values(1, (1, 4, 6, 3), "float32"), values(7, (2, 2, 3, 8), "float32")
    initial = np.float32(-np.inf if pool is lax.max else 0)

    def function(x: Any, kernel: Any) -> Any:
        result = lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        active = lax.max(result, lax.full_like(result, 0))
        return lax.reduce_window(active, initial, pool, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    convolution, pooling = groups(function, x, kernel)
    assert holds([convolution], ops.Convolution) and holds([convolution], ops.Maximum)
    assert holds([pooling], ops.ReduceWindow) and not holds([pooling], ops.Maximum)
    result, wanted = both(function, x, kernel)
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("sizes", [(20,), (1,)])
def test_wide_and_trivial_windows_are_left_to_numpy(sizes: Ints) -> None:
    x = values(1, (64,), "float32")
    function = lambda x: lax.reduce_window(x, np.float32(0), lax.max, sizes, (1,), "SAME")  # noqa: E731
    assert not holds(groups(function, x), ops.ReduceWindow)
    assert_same(*both(function, x))


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    x = values(1, (4, 65, 66, 8), "float32")
    function = lambda x: lax.reduce_window(x, np.float32(0), lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")  # noqa: E731
    with xarr.config(fusion="compiled"):
        with threads(3):
            many = np.asarray(function(xarr.asarray(x)))
        with threads(1):
            one = np.asarray(function(xarr.asarray(x)))
    assert_same(many, one)


@pytest.mark.parametrize("shape", [(128,), (4, 128)])
def test_windows_that_an_update_writes_over_wholly(shape: tuple[int, ...]) -> None:
    def program(x: Any) -> Any:
        sizes, steps = (3,) * len(shape), (1,) * len(shape)
        highest = lax.reduce_window(x, np.float32(-np.inf), lax.max, sizes, steps, "SAME")
        return lax.dynamic_update_slice(highest, x * 2, (0,) * len(shape))

    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    assert_same(xarr.jit(program)(x), x * 2)
