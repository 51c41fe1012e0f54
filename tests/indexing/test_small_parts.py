"""Elements and parts of small values: the same as by the functions that record, on memory that nobody else sees."""

from __future__ import annotations

import operator
import sys
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

import xarr
from tests.calls.test_repeated_calls import calls_of_python
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.marks import COMPUTED_AT_ONCE
from xarr.base.at_once.obstacles import Obstacle
from xarr.errors import ShapeError
from xarr.indexing import small_parts

pytestmark = [pytest.mark.usefixtures("on_numpy"), pytest.mark.implicit]

SHAPES = ((5,), (3, 4), (2, 3, 2), (0,), (1,), ())
DTYPES = ("f8", "f4", "i8", "i4", "u1", "?", "c16")


def indices() -> list[Any]:
    def number(value: int) -> xarr.Array:
        return xarr.asarray(value).evaluate()

    array, mask = xarr.asarray([0, 1, 0]).evaluate(), xarr.asarray([True, False, True]).evaluate()
    return [
        *(0, -1, 4, 9, True, 1.5, None, ..., slice(1, None), slice(None, None, -2), slice(3, 1), np.int8(1)),
        *((0, 1), (-1, -1), (0, slice(1, 3)), (slice(None), 1), (..., 0), (None, 1), (1, 2, 0), (0, 0, 0, 0)),
        *(
            number(1),
            (number(0), number(1)),
            slice(number(0), number(2)),
            (number(1), ...),
            xarr.asarray(1.0),
        ),
        *(
            [0, 1],
            [0, 7],
            [],
            [2**70],
            array,
            (array, array),
            (0, array),
            (slice(None), [1, 0, 1]),
            (array, 0, array),
        ),
        *(
            mask,
            (mask, 0),
            mask[:2],
            xarr.asarray([[True, False, True, False]] * 3).evaluate(),
            (array[:, None], array),
        ),
        *(
            "a",
            (0, "a"),
            xarr.asarray(np.uint8([1, 0])).evaluate(),
            (xarr.asarray([2]).evaluate(), slice(None, 1)),
        ),
    ]


def draw(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(3).normal(size=shape) * 9).astype(dtype)


def outcome(act: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(act())
    except Exception as error:
        return type(error)


def write_twice(values: np.ndarray[Any, Any], index: Any, value: Any) -> xarr.Array:
    array = xarr.asarray(values).evaluate() * 1 if values.dtype != bool else xarr.asarray(values).evaluate()
    array[index] = value
    array[index] = value
    return array


def same(act: Any, what: object) -> None:
    got = outcome(act)
    obstacle = Obstacle()
    wanted = outcome(act)
    del obstacle
    if isinstance(wanted, type) or isinstance(got, type):
        assert got is wanted, (what, got, wanted)
    else:
        assert_same(got, wanted)
        assert got.dtype == wanted.dtype, what


@pytest.mark.parametrize("shape", SHAPES)
def test_reading(shape: tuple[int, ...]) -> None:
    for dtype in DTYPES:
        array = xarr.asarray(draw(shape, dtype)).evaluate()
        for index in indices():
            same(partial(operator.getitem, array, index), (dtype, index))


@pytest.mark.parametrize("shape", SHAPES)
def test_writing(shape: tuple[int, ...]) -> None:
    for row, dtype in enumerate(DTYPES):
        values = draw(shape, dtype)
        same_type = [xarr.asarray(draw(own, dtype)).evaluate() for own in ((), (1,), (3,), (4,), (1, 1))]
        written = (0, -1, 2.5, True, 300, 2**60, np.nan, 1j, *same_type, xarr.asarray(1.5).evaluate())
        for number, index in enumerate(indices()):
            for value in fuzz.one_in(3, written, row + number):
                same(partial(write_twice, values, index, value), (dtype, index, value))


@COMPUTED_AT_ONCE
def test_where_memory_is_written_in_place() -> None:
    x = xarr.asarray(np.zeros(4)).evaluate() + 1
    memory = x._value
    address = memory.ctypes.data
    del memory
    x[0] = 3.0
    x[1:3] = 5.0
    assert x._value.ctypes.data == address
    held = x._value
    x[0] = 4.0
    assert x._value is not held and held[0] == 3.0


def test_iteration_sees_what_is_written_meanwhile() -> None:
    x = xarr.asarray([1.0, 2.0, 3.0]).evaluate() + 0
    seen = []
    for element in x:
        seen.append(float(element))
        x[2] = 9.0
    assert seen == [1.0, 2.0, 9.0]


@pytest.mark.usefixtures("machine_code_methods")
def test_an_iteration_takes_no_call_of_python_for_an_element() -> None:
    x, rows = xarr.asarray(np.arange(18.0)), xarr.asarray(np.arange(36.0).reshape(18, 2))
    for array in (x, rows, x.astype("float32")):
        assert calls_of_python(lambda array=array: [*array]) <= 9
        for each, wanted in zip(array, np.asarray(array), strict=True):
            assert_same(np.asarray(each), np.asarray(wanted))
    (a, b), *_ = rows
    assert (float(a), float(b)) == (0.0, 1.0) and a._node.source.line == sys._getframe().f_lineno - 1
    assert [float(each) for each in xarr.arange(3)] == [0.0, 1.0, 2.0]


def test_items() -> None:
    assert small_parts.small_items((0, slice(1, None))) == (0, slice(1, None))
    assert small_parts.small_items(1.5) is None and small_parts.small_items((0, "a")) is None


def test_no_axes_at_all_are_not_those_in_reverse_order() -> None:
    x = xarr.asarray(np.ones((2, 2))).evaluate() + 1
    assert x.transpose().shape == x.transpose(None).shape == (2, 2)
    with pytest.raises(ShapeError, match="wanted 2 axes"):
        x.transpose(())


def test_a_single_value_that_is_written_to_is_computed_with_as_it_is_then() -> None:
    for dtype in (np.float64, np.complex64, np.uint8):
        x = xarr.asarray(np.arange(6, dtype=dtype).reshape(2, 3)).evaluate()[1, 2]
        for index in ((), ...):
            x[index] = 2
            assert (x + x) == 4 and int(x.real) == 2
            x[index] = 3
            assert (x + x) == 6


#: Parts that NumPy makes views of, without a copy where they are small.
VIEWS: dict[str, Any] = {
    "every second": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "flip": xarr.flip,
    "transpose": xarr.transpose,
    "real": xarr.real,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VIEWS)
def test_a_copy_of_a_part_is_written_to_alone(name: str, dtype: str) -> None:
    x, part = xarr.asarray(np.array([2, 0, 0, 3, 0, 4]).astype(dtype)), VIEWS[name]
    for operand in (x, x + x.dtype.type(0)):
        before = np.array(operand)
        for copy in (xarr.copy, lambda each: each.copy(), lambda each: xarr.asarray(each).astype(each.dtype)):
            for index in (0, ..., [0, -1], xarr.asarray([True] + [False] * (part(operand).size - 1))):
                own = copy(part(operand))
                own[index] = 1
                assert_same(operand, before)
