"""Every constraint of windows, broken on its own; the names hold the labels.  And random ones, as XLA judges them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax as jlax
from jax._src.lax import windowed_reductions

from tests.support import fuzz
from tests.support.draws.windows import Form, form
from xarr import lax
from xarr.errors import AxisError, DTypeError, InputError, ShapeError, ValueRangeError, XarrError
from xarr.ir import ops
from xarr.ir.computations import arg_extremum, combiner, scalars
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType
from xarr.shapes import Shape, parse_shape

HostArray = np.ndarray[Any, Any]

F32, S32 = np.dtype(np.float32), np.dtype(np.int32)
NONE = ((0, 0), (0, 0))
SUM = combiner(ops.Add(), F32)
REDUCE = ops.ReduceWindow((2, 3), (1, 1), (1, 1), (1, 1), NONE, SUM)


def at_least(dtype: np.dtype[Any]) -> Graph:
    a, b = scalars(dtype, dtype)
    return Graph((a, b), [Node(ops.Compare("GE"), (a, b))])


SCATTER = ops.SelectAndScatter((2, 3), (1, 1), NONE, at_least(F32), SUM)


def types(*texts: str) -> list[TensorType]:
    shapes = [parse_shape(text) for text in texts]
    return [TensorType(shape.dimensions, shape.dtype) for shape in shapes if isinstance(shape, Shape)]


def assert_refused(label: str, op: Op, *operands: str, error: type[XarrError] = ShapeError) -> None:
    with pytest.raises(error, match=rf"^{op.lax_name} \[{label}\]: wanted ."):
        op.infer(*types(*operands))


def refuse_reduce(label: str, *operands: str, **changes: Any) -> None:
    assert_refused(label, replace(REDUCE, **changes), *(operands or ("f32[4,5]", "f32[]")))


def refuse_scatter(label: str, *operands: str, error: type[XarrError] = ShapeError, **changes: Any) -> None:
    assert_refused(
        label, replace(SCATTER, **changes), *(operands or ("f32[4,5]", "f32[3,3]", "f32[]")), error=error
    )


def test_what_the_others_break_is_whole() -> None:
    operand, source, start = types("f32[4,5]", "f32[3,3]", "f32[]")
    assert REDUCE.infer(operand, start) is source
    assert SCATTER.infer(operand, source, start) is operand


# --- reduce_window -----------------------------------------------------------------------------------


def test_reduce_window_c1() -> None:
    refuse_reduce("C1", "f32[4,5]")
    refuse_reduce("C1", "f32[4,5]", "f32[4,5]", "f32[]")
    with pytest.raises(ShapeError, match=r"\[C1\]"):
        REDUCE.infer()


def test_reduce_window_c2() -> None:
    refuse_reduce("C2", "f32[4,5]", "s32[4,4]", "f32[]", "s32[]")


def test_reduce_window_c3() -> None:
    refuse_reduce("C3", "f32[4,5]", "s32[]")
    refuse_reduce("C3", "f32[4,5]", "f32[1]")


def test_reduce_window_c4() -> None:
    refuse_reduce("C4", window_dimensions=(2,))


def test_reduce_window_c5() -> None:
    refuse_reduce("C5", window_dimensions=(0, 1))
    refuse_reduce("C5", window_dimensions=(1, 2**63))


def test_reduce_window_c6() -> None:
    refuse_reduce("C6", window_strides=(1, 1, 1))


def test_reduce_window_c7() -> None:
    refuse_reduce("C7", window_strides=(1, 0))
    refuse_reduce("C7", window_strides=(-1, 1))


def test_reduce_window_c8() -> None:
    refuse_reduce("C8", base_dilations=())


def test_reduce_window_c9() -> None:
    refuse_reduce("C9", base_dilations=(0, 1))


def test_reduce_window_c10() -> None:
    refuse_reduce("C10", window_dilations=(1,))


def test_reduce_window_c11() -> None:
    refuse_reduce("C11", window_dilations=(1, -1))


def test_reduce_window_c12() -> None:
    refuse_reduce("C12", padding=((0, 0),))
    refuse_reduce("C12", padding=((0, 0), (0, 0, 0)))


def test_reduce_window_c13() -> None:
    refuse_reduce("C13", computation=combiner(ops.Add(), S32))
    refuse_reduce("C13", computation=at_least(F32))
    refuse_reduce("C13", "f32[4,5]", "s32[4,5]", "f32[]", "s32[]")
    pairs = replace(REDUCE, computation=arg_extremum("GT", F32, S32))
    pairs.infer(*types("f32[4,5]", "s32[4,5]", "f32[]", "s32[]"))
    assert_refused("C13", pairs, "s32[4,5]", "f32[4,5]", "s32[]", "f32[]")


def test_reduce_window_c15() -> None:
    refuse_reduce("C15", base_dilations=(2**62, 1))
    refuse_reduce("C15", padding=((2**63, -(2**63)), (0, 0)))
    refuse_reduce("C15", window_dilations=(2**63 - 1, 1), window_dimensions=(3, 1))
    wide = replace(REDUCE, padding=((2**62, -(2**62)), (0, 0)))
    assert wide.infer(*types("f32[4,5]", "f32[]")) is types("f32[3,3]")[0]


# --- select_and_scatter ------------------------------------------------------------------------------


def test_select_and_scatter_c1() -> None:
    refuse_scatter("C1", "f32[4,5]", "f64[3,3]", "f32[]", error=DTypeError)


def test_select_and_scatter_c2() -> None:
    refuse_scatter("C2", "f32[4,5]", "f32[3,4]", "f32[]")
    refuse_scatter("C2", padding=((0, 1), (0, 0)))
    refuse_scatter("C2", padding=((2**63, -(2**63)), (0, 0)))


def test_select_and_scatter_c3() -> None:
    refuse_scatter("C3", "f32[4,5]", "f32[3,3]", "f64[]")
    refuse_scatter("C3", "f32[4,5]", "f32[3,3]", "f32[3,3]")


def test_select_and_scatter_c4() -> None:
    refuse_scatter("C4", window_dimensions=(2, 3, 1))


def test_select_and_scatter_c5() -> None:
    refuse_scatter("C5", window_dimensions=(2, 0))


def test_select_and_scatter_c6() -> None:
    refuse_scatter("C6", window_strides=(1,))


def test_select_and_scatter_c7() -> None:
    refuse_scatter("C7", window_strides=(0, 1))


def test_select_and_scatter_c8() -> None:
    refuse_scatter("C8", padding=((0, 0), (0, 0), (0, 0)))


def test_select_and_scatter_c9() -> None:
    refuse_scatter("C9", select=SUM)
    refuse_scatter("C9", select=at_least(S32))


def test_select_and_scatter_c10() -> None:
    refuse_scatter("C10", scatter=at_least(F32))
    refuse_scatter("C10", scatter=combiner(ops.Add(), S32))


# --- what is checked before there is an op -----------------------------------------------------------

X = np.ones((4, 5), np.float32)
OUTER = lax.reduce_sum(np.ones(2, np.float32), (0,))
CALLS: dict[str, tuple[type[XarrError], str, Callable[[], Any]]] = {
    "structures": (ShapeError, r"\[C1\]", lambda: lax.reduce_window((X, X), (0.0,), lax.add, (1, 1))),
    "no array": (ShapeError, r"\[C1\]", lambda: lax.reduce_window((), (), lax.add, ())),
    "initial value": (DTypeError, "0.5", lambda: lax.reduce_window(X.astype(int), 0.5, lax.add, (1, 1))),
    "large initial value": (
        ValueRangeError,
        "300",
        lambda: lax.reduce_window(X.astype(np.int8), 300, lax.add, (1, 1)),
    ),
    "another structure": (
        ShapeError,
        r"\[C13\]",
        lambda: lax.reduce_window(X, 0.0, lambda a, b: (a, b), (1, 1)),
    ),
    "another type": (ShapeError, r"\[C13\]", lambda: lax.reduce_window(X, 0.0, lax.lt, (1, 1))),
    "outer array": (
        ShapeError,
        r"\[C13\].*outer value",
        lambda: lax.reduce_window(X, 0.0, lambda a, b: lax.add(a, OUTER), (1, 1)),
    ),
    "no function": (InputError, "wanted a function", lambda: lax.reduce_window(X, 0.0, "add", (1, 1))),
    "unknown padding": (
        InputError,
        "one of VALID, SAME",
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), padding="FULL"),
    ),
    "padding is a number": (
        InputError,
        "name or pairs",
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), padding=3),
    ),
    "padding of numbers": (
        InputError,
        "padding",
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), padding=(1, 1)),
    ),
    "padding of three": (
        InputError,
        "pair",
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), padding=[(1, 1, 0)] * 2),
    ),
    "fractions": (InputError, "window_dimensions", lambda: lax.reduce_window(X, 0.0, lax.add, (1.5, 1))),
    "a bool": (InputError, "window_strides", lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), (True, 1))),
    "named and short": (
        ShapeError,
        "SAME padding wants",
        lambda: lax.reduce_window(X, 0.0, lax.add, (1,), padding="SAME"),
    ),
    "named and strideless": (
        ShapeError,
        r"\[C7\]",
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), (0, 1), "SAME"),
    ),
    "select of two": (
        ShapeError,
        r"\[C9\]",
        lambda: lax.select_and_scatter(X, lambda a, b: (a, b), (1, 1), (1, 1), "VALID", X, 0.0, lax.add),
    ),
    "scatter of two": (
        ShapeError,
        r"\[C10\]",
        lambda: lax.select_and_scatter(X, lax.ge, (1, 1), (1, 1), "VALID", X, 0.0, lambda a, b: (a, b)),
    ),
    "axis": (AxisError, "axis 2", lambda: lax.cumsum(X, 2)),
    "axis of a scalar": (AxisError, "axis 0", lambda: lax.cumsum(1.0)),
    "axis that is no int": (InputError, "axis", lambda: lax.cummax(X, 0.0)),
    "sums of bools": (DTypeError, "cumsum: wanted numbers", lambda: lax.cumsum(X > 0)),
    "products of bools": (DTypeError, "cumprod: wanted numbers", lambda: lax.cumprod(X > 0)),
    "logarithms of integers": (
        DTypeError,
        "cumlogsumexp: wanted floats",
        lambda: lax.cumlogsumexp(X.astype(int)),
    ),
    "means of integers": (DTypeError, "avg_pool: wanted floats", lambda: lax.avg_pool(X.astype(int), (2,))),
    "extremes of complex numbers": (DTypeError, "max_pool: complex", lambda: lax.max_pool(X + 1j, (2,))),
    "pool of more dimensions": (
        ShapeError,
        r"min_pool: wanted inputs \(\*batch",
        lambda: lax.min_pool(X, (2, 2)),
    ),
    "pool of other strides": (ShapeError, "max_pool: wanted inputs", lambda: lax.max_pool(X, (2,), (1, 1))),
    "pool of other padding": (
        ShapeError,
        "max_pool: wanted 1 pairs",
        lambda: lax.max_pool(X, (2,), None, [(0, 0)] * 2),
    ),
    "pool without size": (ShapeError, r"\[C5\]", lambda: lax.max_pool(X, (0,))),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_are_refused(name: str) -> None:
    error, message, call = CALLS[name]
    with pytest.raises(error, match=message):
        call()


# --- random ones -------------------------------------------------------------------------------------


def spoilt(random: Random, spread: Form) -> Form:
    """Valid windows with one entry changed, which may or may not still be valid."""
    name = random.choice(("sizes", "strides", "padding", "base", "holes"))
    entries: list[Any] = list(getattr(spread, name))
    new: Any = random.randint(-2, 3)
    if name == "padding":
        new = (random.randint(-9, 3), random.randint(-9, 3))
    if random.random() < 0.7:
        entries[random.randrange(len(entries))] = new
    elif random.random() < 0.5:
        entries.pop()
    else:
        entries.append(1 if name != "padding" else (0, 0))
    return replace(spread, **{name: tuple(entries)})


def is_accepted(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (TypeError, ValueError, IndexError, AssertionError, OverflowError):
        return False
    return True


def reduce(module: Any, spread: Form) -> Any:
    x = np.zeros(spread.shape, np.float32)
    settings = (spread.sizes, spread.strides, spread.padding, spread.base, spread.holes)
    return module.reduce_window(x, np.float32(0), module.add, *settings)


def scatter_windows(scatter: Callable[..., Any], module: Any, spread: Form, source: HostArray) -> Any:
    x = np.zeros(spread.shape, np.float32)
    settings = (spread.sizes, spread.strides, spread.padding)
    return scatter(x, module.ge, *settings, source, np.float32(0), module.add)


@pytest.mark.parametrize("seed", fuzz.seeds(1))
def test_reductions_that_jax_refuses_are_refused(seed: int) -> None:
    random, refusals = fuzz.generator("reductions", seed), 0
    while refusals < 100:
        spread = spoilt(random, form(random))
        ours = is_accepted(partial(reduce, lax, spread))
        theirs = is_accepted(partial(jax.eval_shape, partial(reduce, jlax, spread)))
        assert ours == theirs, f"xarr {ours}, jax {theirs}: {spread}"
        refusals += not ours


@pytest.mark.parametrize("seed", fuzz.seeds(1))
def test_choices_that_jax_refuses_are_refused(seed: int) -> None:
    """jax.lax leaves strides and padding to the verifier of StableHLO, when the call is lowered.

    That takes no pairs of padding at all for none, which is refused here.
    """
    random, refusals = fuzz.generator("choices", seed), 0
    while refusals < 50:
        spread = spoilt(random, form(random, dilates=False))
        spread = replace(spread, base=(1,) * len(spread.shape), holes=(1,) * len(spread.shape))
        source = np.zeros((1,) * len(spread.shape), np.float32)
        if is_accepted(partial(reduce, lax, spread)):
            source = np.zeros(reduce(lax, spread).shape, np.float32)
        ours = is_accepted(partial(scatter_windows, lax.select_and_scatter, lax, spread, source))
        by_jax = partial(scatter_windows, windowed_reductions._select_and_scatter, jlax, spread, source)
        theirs = bool(spread.padding) and is_accepted(jax.jit(by_jax).lower)
        assert ours == theirs, f"xarr {ours}, jax {theirs}: {spread}"
        refusals += not ours
