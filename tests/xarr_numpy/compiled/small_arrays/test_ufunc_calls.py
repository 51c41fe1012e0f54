"""Operators on arrays by loops of NumPy's ufuncs: the bits of its operators, whatever lies where."""

from __future__ import annotations

import operator
import os
import sys
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.marks import COMPUTED_AT_ONCE

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.small_arrays import ufunc_calls
from xarr_numpy.compiled.small_arrays.objects import KINDS
from xarr_numpy.compiled.small_arrays.operator_rows import OPERATORS

pytestmark = [
    pytest.mark.usefixtures("on_numpy", "machine_code_methods"),
    pytest.mark.implicit,
    COMPUTED_AT_ONCE,
]

SHAPES = [
    (),
    (1,),
    (3,),
    (2, 3),
    (2, 1),
    (1, 3),
    (4, 1, 3),
    (4, 2, 1),
    (2, 2, 2, 3),
    (1, 1),
    (0, 3),
    (33,),
    (7, 33),
]
CALLS = {
    own.name: getattr(operator, {"and": "and_", "or": "or_"}.get(own.name, own.name)) for own in OPERATORS
}


def draw(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    """An array that may be a view: transposed, reversed or with gaps."""
    wide = tuple(2 * size for size in shape)
    if kind == "bool":
        array = rng.random(wide) < 0.5
    elif np.dtype(kind).kind == "f":
        array = rng.choice([0.0, -0.0, 1.5, -3.25, np.inf, -np.inf, np.nan, 1e-300, 7.0], wide)
        array = array.astype(kind)
    else:
        array = rng.integers(0, 100, wide).astype(kind)
    way = rng.integers(4)
    if way == 0:
        return np.ascontiguousarray(array[tuple(slice(size) for size in shape)])
    if way == 1:
        return array[(slice(None, None, 2),) * len(shape)]
    if way == 2:
        return array[(slice(None, None, -2),) * len(shape)]
    return np.asarray(array.T[tuple(slice(size) for size in shape[::-1])]).T


@pytest.mark.parametrize("seed", fuzz.seeds(12, 300))
def test_operators_give_the_bits_of_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for _ in range(20):
            name, kind = rng.choice([*CALLS]), str(rng.choice([*KINDS][:3] * 3 + [*KINDS]))
            if np.dtype(kind).kind == "c":
                continue
            first, second = (draw(rng, kind, SHAPES[rng.integers(len(SHAPES))]) for _ in range(2))
            try:
                wanted = CALLS[name](first, second)
            except (TypeError, ValueError):
                continue
            x, y = (view_of(each) for each in (first, second))
            got = CALLS[name](x, y)
            assert got.shape == wanted.shape and got.dtype == wanted.dtype
            assert_same(np.asarray(got), wanted)


def view_of(array: Any) -> Any:
    """An Array whose value lies in memory as `array` does."""
    made = xarr.asarray(np.array(array, order="C")) * xarr.asarray(np.ones((), array.dtype))
    if type(made._value) is np.ndarray:
        made._value = array[(slice(None),) * array.ndim]
    return made


def test_numbers_stand_for_arrays_of_their_type() -> None:
    x, n, b = xarr.asarray([1.5, -2.0, np.nan]), xarr.asarray([5, -7, 2]), xarr.asarray([True, False])
    assert_same(np.asarray(2 - x * 3), 2 - np.asarray(x) * 3)
    assert_same(np.asarray(n // 2 + n % 3), np.asarray(n) // 2 + np.asarray(n) % 3)
    assert_same(np.asarray(n * 2.5), np.asarray(n) * 2.5)
    assert_same(np.asarray(b & True), np.asarray(b))
    assert_same(np.asarray(b < 2), np.asarray(b) < 2)
    assert_same(np.asarray(n / 2), np.asarray(n) / 2)


def test_results_lie_in_row_major_order() -> None:
    x = xarr.asarray(np.arange(6.0).reshape(2, 3)) * 1.0
    y = x.T + x.T
    assert y._value.flags.c_contiguous and y.tolist() == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]


def test_loops_are_those_of_numpys_functions() -> None:
    table = ufunc_calls.loop_table([np.add, np.less, np.left_shift])
    function, _, kind = table.reshape(-1, 3)[1 + KINDS["float64"]]
    assert function and kind == KINDS["float64"]
    width = len(KINDS) + 1
    assert table[1 + width + KINDS["int64"], 2] == KINDS["bool"]
    assert not table[1 + 2 * width + KINDS["float64"]].any() and not table[1 + KINDS["complex128"]].any()
    assert ufunc_calls.row_of(1) == 3 * (1 + width)


FOLDS = ("sum", "prod", "max", "min", "mean", "any", "all")


@pytest.mark.parametrize("seed", fuzz.seeds(6, 200))
def test_folds_give_the_bits_of_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for _ in range(60):
            shape = tuple(rng.choice([1, 2, 3, 8, 9, 40, 130], rng.integers(1, 4)).tolist())
            kind = str(rng.choice(["float64", "int64", "bool", "float32", "int16"]))
            array = rng.normal(size=shape) * np.exp(rng.normal(size=shape) * 4)
            if rng.random() < 0.3:
                array = rng.choice([0.0, -0.0, 1.0, np.nan, np.inf, -1.0], shape)
            array = (
                np.where(np.isfinite(array), array, 0).astype(kind) if kind[0] != "f" else array.astype(kind)
            )
            x, axis = xarr.asarray(array), [None, -1, 0, len(shape) - 1, len(shape)][rng.integers(5)]
            name = str(rng.choice(FOLDS))
            try:
                wanted = getattr(array, name)(axis=axis)
            except ValueError:
                with pytest.raises(xarr.errors.AxisError):
                    getattr(x, name)(axis)
                continue
            for got in (getattr(x, name)(axis=axis), getattr(x, name)(axis), getattr(xarr, name)(x, axis)):
                if name in ("max", "min"):  # of zeros of both signs any
                    np.testing.assert_array_equal(np.asarray(got), wanted)
                else:
                    assert_same(np.asarray(got), wanted)


def test_means_make_no_call_of_numpys_functions_in_python() -> None:
    x, called = xarr.asarray([1.0, 2.0, 6.0]) * 1.0, []
    x.mean()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and "numpy" in frame.f_code.co_filename.split(os.sep):
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        mean = x.mean()
    finally:
        sys.setprofile(None)
    assert not called and float(mean) == 3.0 and x.mean().dtype == np.float64


def test_functions_of_regular_arrays_give_the_bits_of_numpys() -> None:
    rng = np.random.default_rng(0)
    names = (
        "sqrt",
        "floor",
        "absolute",
        "negative",
        "sign",
        "minimum",
        "maximum",
        "add",
        "less",
        "logical_and",
    )
    for _ in range(5):  # the first calls teach the function its ufunc
        for shape in SHAPES[1:]:
            one, two = (draw(rng, "float64", shape) for _ in range(2))
            x, y = (xarr.asarray(each) for each in (one, two))
            for name in names:
                ufunc = getattr(np, name)
                with np.errstate(all="ignore"):
                    own = [one, two][: ufunc.nin], [x, y][: ufunc.nin]
                    wanted, got = ufunc(*own[0]), getattr(xarr, name)(*own[1])
                if name in ("minimum", "maximum"):
                    np.testing.assert_array_equal(np.asarray(got), wanted)
                else:
                    assert_same(np.asarray(got), wanted)


def test_only_types_that_are_their_own_results_are_folded() -> None:
    table = ufunc_calls.fold_table(np.add)
    assert [*table[1]] == [1, 0, 0] and table[1 + KINDS["float64"], 0] and table[1 + KINDS["int64"], 0]
    assert not table[1 + KINDS["bool"]].any() and not table[1 + KINDS["float32"]].any()
    assert [*ufunc_calls.fold_table(np.multiply)[1, :2]] == [1, 1]
    assert [*ufunc_calls.fold_table(np.maximum)[1, :2]] == [0, 0]
    assert ufunc_calls.fold_table(np.logical_and)[1 + KINDS["bool"]].any()
    assert ufunc_calls.table_of(np.matmul) is None is ufunc_calls.table_of(np.where)
    assert ufunc_calls.table_of(np.sqrt) is not None and ufunc_calls.table_of(np.add.reduce) is not None
