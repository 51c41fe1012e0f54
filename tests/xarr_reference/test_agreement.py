"""The NumPy backend gives what the reference gives: element-wise ops, conversions and movement."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from tests.compare import assert_same
from tests.elementwise_ops import REGULAR, has_formula
from tests.programs import graph, run, type_of
from tests.support import fuzz
from xarr import lax
from xarr.backend import get
from xarr.compiler.pipeline import make_program
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, SUB_BYTE, TABLE, element_type, info
from xarr.ir import ops
from xarr.ir.op import Op
from xarr.ir.ops.special import SpecialFunction
from xarr_reference.interpreter import TABLE as REFERENCE

Shape = tuple[int, ...]
DTYPES = [row.dtype for row in TABLE]
NAN = np.nan
#: Floats without sign and zero: most functions have no value there, and NumPy's are accidents.
POWERS_OF_TWO = np.dtype(ml_dtypes.float8_e8m0fnu)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.0, 100.25, 1e-30, 1e30, 5e-324, np.inf, -np.inf, np.nan)

#: Computed in the element type by NumPy and in a wider one by the reference: the largest distance in ULP.
APPROXIMATE = {op: 4 for op in REGULAR if has_formula(op)}
#: The same for complex numbers, in ULP of the larger part.
APPROXIMATE_COMPLEX = dict.fromkeys(APPROXIMATE, 8) | {
    ops.Abs: 2,
    ops.Divide: 6,
    ops.Multiply: 4,
    ops.Sign: 4,
    ops.Sqrt: 4,
}

shapes = st.sampled_from([(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (1, 3, 1), (2, 1, 2, 1, 2)])


@st.composite
def arrays(draw: st.DrawFn, dtype: np.dtype[Any], shape: Shape) -> Any:
    values = [draw(elements(dtype)) for _ in range(int(np.prod(shape)))]
    if dtype in SUB_BYTE:
        return np.array(values, np.uint8).view(dtype).reshape(shape)
    with np.errstate(all="ignore"):
        result = np.array(values, np.dtype(float) if dtype in FLOAT else dtype).astype(dtype).reshape(shape)
    # Backends must not depend on the memory order.
    return result.T.copy().T if draw(st.booleans()) else result


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if dtype in BOOL:
        return st.booleans()
    if dtype in SUB_BYTE:  # as their bits
        return st.integers(0, 2 ** element_type(dtype).bits - 1)
    if dtype in INTEGER:
        low, high = int(info(dtype).min), int(info(dtype).max)
        return (
            st.sampled_from([low, high, 0, 1, 2, 7, 8])
            | st.integers(low, high)
            | st.integers(max(low, -3), 64)
        )
    if dtype in COMPLEX:
        # Where infinities and huge parts meet, no standard says what the other part is.
        part = st.sampled_from([0.0, -0.0, 1.0, -1.0]) | st.floats(1e-3, 30) | st.floats(-30, -1e-3)
        return st.builds(complex, part, part)
    return st.sampled_from(SPECIAL) | st.floats(-8, 8) | st.floats()


def agree(op: Op, *operands: Any, ulp: int = 0, normwise: bool = False) -> None:
    actual, expected = run(op, *operands, backend="numpy"), run(op, *operands)
    if isinstance(op, ops.Maximum | ops.Minimum | ops.Clamp):
        # Which of 0.0 and -0.0 is the larger is left to the backend.
        actual, expected = (np.where(x == 0, np.zeros_like(x), x) for x in (actual, expected))
    assert_same(actual, expected, ulp=ulp, normwise=normwise)


def cases() -> list[Any]:
    classes = [cls for cls in REFERENCE if issubclass(cls, ops.Elementwise) and cls is not ops.Compare]
    # Special functions have definitions of their own on the reference backend: test_special.py.
    results = [cls() for cls in classes if not issubclass(cls, SpecialFunction)]
    return sorted(results, key=lambda op: op.name)


@pytest.mark.parametrize("op", cases(), ids=lambda op: op.name)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_elementwise(op: ops.Elementwise, data: st.DataObject) -> None:
    accepted = [dtype for dtype in DTYPES if dtype in op.accepts and dtype != POWERS_OF_TWO]
    dtype, shape = data.draw(st.sampled_from(accepted)), data.draw(shapes)
    operands = [data.draw(arrays(dtype, shape)) for _ in range(op.arity)]
    if dtype in COMPLEX and isinstance(op, ops.Power):
        # The error of x**y grows with |y log x|, without bound.
        operands[1] = np.clip(operands[1].real, -3, 3).astype(dtype)
    if dtype in COMPLEX:
        agree(op, *operands, ulp=APPROXIMATE_COMPLEX.get(type(op), 0), normwise=True)
    else:
        agree(op, *operands, ulp=APPROXIMATE.get(type(op), 0) if dtype in FLOAT else 0)


@pytest.mark.parametrize("dtype", sorted(FLOAT - {POWERS_OF_TWO}, key=str))
def test_the_signs_of_zeros(dtype: Any) -> None:
    x, y = np.array([0.0, 0.0, -0.0, -0.0], dtype), np.array([0.0, -0.0, 0.0, -0.0], dtype)
    for op in (ops.NextAfter(), ops.Add(), ops.Subtract(), ops.Multiply(), ops.Atan2()):
        agree(op, x, y)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("exponent", [0.5, -0.5, 2, -1, 0, 3, NAN])
def test_powers_with_one_exponent(dtype: Any, exponent: float) -> None:
    """NumPy has shortcuts for some exponents that are one number for all elements."""
    x = np.array([-np.inf, -2.0, -0.0, 0.0, 3.0, np.inf, NAN], dtype)
    program = graph(lambda a: [lax.pow(a, exponent)], type_of(x))
    actual, expected = (make_program(program, get(name)).program(x)[0] for name in ("numpy", "reference"))
    assert_same(actual, expected)
    agree(ops.Power(), dtype(-np.inf), dtype(exponent))


@settings(fuzz.examples(75), deadline=None)
@given(data=st.data())
def test_compare(data: st.DataObject) -> None:
    dtype, shape = data.draw(st.sampled_from(DTYPES)), data.draw(shapes)
    directions = ("EQ", "NE") if dtype in COMPLEX else ("EQ", "NE", "GE", "GT", "LE", "LT")
    total = dtype in FLOAT and data.draw(st.booleans())
    op = ops.Compare(data.draw(st.sampled_from(directions)), total)
    agree(op, data.draw(arrays(dtype, shape)), data.draw(arrays(dtype, shape)))


@settings(fuzz.examples(50), deadline=None)
@given(data=st.data())
def test_select_and_clamp(data: st.DataObject) -> None:
    dtype, shape = data.draw(st.sampled_from(DTYPES)), data.draw(shapes)
    operands = [data.draw(arrays(dtype, shape)) for _ in range(3)]
    agree(ops.Select(), data.draw(arrays(np.dtype(bool), shape)), *operands[:2])
    if dtype not in COMPLEX and dtype != POWERS_OF_TWO:
        agree(ops.Clamp(), *operands)


@settings(fuzz.examples(75), deadline=None)
@given(data=st.data())
def test_convert(data: st.DataObject) -> None:
    old, new, shape = (
        data.draw(st.sampled_from(DTYPES)),
        data.draw(st.sampled_from(DTYPES)),
        data.draw(shapes),
    )
    agree(ops.Convert(new), data.draw(arrays(old, shape)))


@pytest.mark.parametrize("new", sorted(FLOAT - {POWERS_OF_TWO}, key=str))
@pytest.mark.parametrize("old", [np.float64, np.int32, np.uint32, np.int64, np.uint64])
def test_conversion_to_floats_rounds_once(old: Any, new: Any) -> None:
    """Values a little off the middle between two floats: two roundings would lose the little."""
    middle = [2.0**k * (1 + 2.0**-digits) for k in range(24, 62, 3) for digits in (2, 3, 4, 5, 8, 11, 24)]
    middle = [value for value in middle if value < info(np.dtype(old)).max and value == int(value)]
    assert len(middle) > 10
    near = [int(value) + step for value in middle for step in (-1, 0, 1)]
    agree(ops.Convert(new), np.array(near, old))
    if old is np.float64:
        agree(ops.Convert(new), np.array([value * 2.0**-40 for value in near]))


@settings(fuzz.examples(75), deadline=None)
@given(data=st.data())
def test_bitcast(data: st.DataObject) -> None:
    old, new = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(DTYPES))
    rigid = BOOL | COMPLEX
    if old in rigid or new in rigid:
        new = old
    widths = element_type(old).bits, element_type(new).bits
    assume(max(widths) % min(widths) == 0)
    ratio = max(1, widths[1] // widths[0])
    shape = (*data.draw(shapes), ratio) if ratio > 1 else data.draw(shapes)
    agree(ops.BitcastConvert(new), data.draw(arrays(old, shape)))


@settings(fuzz.examples(75), deadline=None)
@given(data=st.data(), exponent=st.integers(1, 12), mantissa=st.integers(0, 60))
def test_reduce_precision(data: st.DataObject, exponent: int, mantissa: int) -> None:
    dtype = data.draw(st.sampled_from(sorted(FLOAT, key=str)))
    agree(ops.ReducePrecision(exponent, mantissa), data.draw(arrays(dtype, data.draw(shapes))))


# --- movement -----------------------------------------------------------------------------------------


@settings(fuzz.examples(60), deadline=None)
@given(data=st.data())
def test_movement(data: st.DataObject) -> None:
    dtype, shape = data.draw(st.sampled_from(DTYPES)), data.draw(shapes)
    x = data.draw(arrays(dtype, shape))
    agree(data.draw(movements(shape)), x)


@st.composite
def movements(draw: st.DrawFn, shape: Shape) -> Op:
    dims = list(range(len(shape)))
    kind = draw(st.sampled_from(["transpose", "reverse", "slice", "reshape", "broadcast"]))
    if kind == "transpose":
        return ops.Transpose(tuple(draw(st.permutations(dims))))
    if kind == "reverse":
        return ops.Reverse(tuple(draw(st.lists(st.sampled_from(dims), unique=True)) if dims else ()))
    if kind == "slice":
        start = tuple(draw(st.integers(0, size)) for size in shape)
        limit = tuple(draw(st.integers(low, size)) for low, size in zip(start, shape, strict=True))
        return ops.Slice(start, limit, tuple(draw(st.integers(1, 4)) for _ in shape))
    if kind == "reshape":
        return ops.Reshape(tuple(draw(st.permutations([1, *shape]))))
    rank = len(shape) + draw(st.integers(0, 2))
    kept = sorted(draw(st.permutations(range(rank)))[: len(shape)])
    sizes = [draw(st.integers(0, 3)) for _ in range(rank)]
    for dim, size in zip(kept, shape, strict=True):
        sizes[dim] = size if size != 1 else sizes[dim]
    return ops.BroadcastInDim(tuple(sizes), tuple(kept))


@settings(fuzz.examples(60), deadline=None)
@given(data=st.data())
def test_pad(data: st.DataObject) -> None:
    dtype, shape = data.draw(st.sampled_from(DTYPES)), data.draw(shapes)
    low, high, interior = [], [], []
    for size in shape:
        gap = data.draw(st.integers(0, 2))
        before = data.draw(st.integers(-6, 4))
        least = -before - size - max(size - 1, 0) * gap
        low.append(before)
        high.append(data.draw(st.integers(max(-6, least), max(4, least))))
        interior.append(gap)
    x, value = data.draw(arrays(dtype, shape)), data.draw(arrays(dtype, ()))
    agree(ops.Pad(tuple(low), tuple(high), tuple(interior)), x, value)


@settings(fuzz.examples(50), deadline=None)
@given(data=st.data(), sizes=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_concatenate(data: st.DataObject, sizes: list[int]) -> None:
    dtype, dim = data.draw(st.sampled_from(DTYPES)), data.draw(st.integers(0, 2))
    shape = [data.draw(st.integers(0, 3)) for _ in range(3)]
    operands = [data.draw(arrays(dtype, (*shape[:dim], size, *shape[dim + 1 :]))) for size in sizes]
    agree(ops.Concatenate(dim), *operands)
