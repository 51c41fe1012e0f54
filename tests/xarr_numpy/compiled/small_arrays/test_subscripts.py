"""Rows and ranges of rows in machine code: what NumPy reads and writes, in memory of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.marks import COMPUTED_AT_ONCE

pytestmark = [
    pytest.mark.usefixtures("on_numpy", "machine_code_methods"),
    pytest.mark.implicit,
    COMPUTED_AT_ONCE,
]

ENDS = (None, None, 0, 1, 2, 5, -1, -3, 9, -9, 2**70)


def draw_index(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Ints, and perhaps a slice behind them, for the first dimensions of a shape; often out of bounds."""
    items: list[Any] = [int(rng.integers(-size - 1, size + 1)) for size in shape]
    items = items[: rng.integers(len(shape) + 1)]
    if len(items) < len(shape) and rng.random() < 0.6:
        items.append(
            slice(*[ENDS[rng.integers(len(ENDS))] for _ in range(2)], rng.choice([None, None, 1, 2]))
        )
    return tuple(items) if len(items) != 1 or rng.random() < 0.3 else items[0]


@pytest.mark.parametrize("seed", fuzz.seeds(6, 200))
def test_rows_are_read_and_written_as_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        shape = tuple(rng.choice([1, 2, 3, 4, 40], rng.integers(1, 4)).tolist())
        kind = str(rng.choice(["float64", "int64", "bool", "float32", "uint8"]))
        array = rng.integers(0, 100, shape).astype(kind)
        x, index = (
            xarr.asarray(array) | False if kind == "bool" else xarr.asarray(array) + 0,
            draw_index(rng, shape),
        )
        x = x.astype(kind)
        try:
            wanted = array[index]
        except IndexError:
            with pytest.raises((xarr.errors.IndexingError, IndexError)):
                x[index].evaluate()
            continue
        assert_same(np.asarray(x[index]), wanted)
        value = array.dtype.type(1)
        for written in (value.item(), np.ones(wanted.shape, kind), np.ones(wanted.shape[-1:], kind)):
            own = array.copy()
            own[index] = written
            x[index] = xarr.asarray(written) if isinstance(written, np.ndarray) else written
            assert_same(np.asarray(x.copy()), own)
            x[...] = xarr.asarray(array)


def test_a_row_that_is_read_shows_what_there_was() -> None:
    x = xarr.asarray(np.arange(12.0).reshape(3, 4)) * 1.0
    row, few, address = x[1], x[1:], id(x._value)
    assert not row._value.base and row._part[2] == 1 and few._part[2] == slice(1, None)
    x[1] = 0.0
    assert id(x._value) == address  # written in memory
    x[:2] = x[1:]
    assert row.tolist() == [4.0, 5.0, 6.0, 7.0] and few.tolist()[0] == row.tolist()
    assert x.tolist() == [[0.0] * 4, [8.0, 9.0, 10.0, 11.0], [8.0, 9.0, 10.0, 11.0]]


def test_rows_of_large_arrays_are_copies() -> None:
    x = xarr.asarray(np.arange(90_000.0).reshape(900, 100)) * 1.0
    row = x.evaluate()[7]
    assert (
        row.tolist() == list(range(700, 800)) and type(row._value) is np.ndarray and row._value.base is None
    )
    x[7] = 1.0
    assert float(row[0]) == 700.0 and float(x[7, 0]) == 1.0
