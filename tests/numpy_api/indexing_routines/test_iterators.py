"""`nditer`, beyond the records in tests/numpy_records: what it allocates, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import BroadcastError, InputError, ParseError, TracedValueError


def test_what_is_allocated_is_an_array_of_that_moment() -> None:
    a, b = xarr.arange(3).reshape(3, 1), xarr.arange(3).reshape(1, 3)
    it = xarr.nditer([a, b, None])
    for x, y, z in it:
        z[...] = x + y
    first = it.operands[2]
    assert_same(first, np.add.outer(np.arange(3), np.arange(3)))
    assert it.operands[0] is a
    it.reset()
    for _, _, z in it:
        z[...] = 7
    assert_same(first, np.add.outer(np.arange(3), np.arange(3)))
    assert_same(it.operands[2], np.full((3, 3), 7))


def test_numpys_arrays_are_written_to() -> None:
    host = np.zeros(3)
    with xarr.nditer([xarr.arange(3.0), host], op_flags=[["readonly"], ["writeonly"]]) as it:
        for x, y in it:
            y[...] = 2 * x
        assert it.operands[1] is host
    assert host.tolist() == [0.0, 2.0, 4.0]


def test_the_position_can_be_set_and_is_that_of_a_copy() -> None:
    it = xarr.nditer(xarr.arange(6).reshape(2, 3), ["multi_index"])
    it.multi_index = (1, 1)
    other = it.copy()
    assert it[0] == 4 and other[0] == 4 and len(it) == 1 and it.shape == (2, 3)
    it.multi_index = (1, 2)
    assert it[0] == 5 and other.multi_index == (1, 1)


@pytest.mark.parametrize("flags", [["readwrite"], [["readwrite"]], [["writeonly"]]])
def test_an_array_is_not_written_to(flags: Any) -> None:
    with pytest.raises(InputError, match=r"operand 0 is an Array.*give None instead"):
        xarr.nditer(xarr.arange(3), op_flags=flags)
    for element in xarr.nditer(xarr.arange(3)):
        with pytest.raises(ValueError, match="read-only"):
            element[...] = 1


def test_refusals_are_xarrs() -> None:
    with pytest.raises(BroadcastError, match="nditer"):
        xarr.nditer([xarr.zeros((3, 1)), xarr.zeros((2, 2))])
    with pytest.raises(ParseError, match="nditer: Unexpected iterator global flag"):
        xarr.nditer(xarr.zeros(3), flags=["no such flag"])
    with pytest.raises(TracedValueError):
        xarr.jit(lambda x: next(float(each) for each in xarr.nditer(x)))(xarr.zeros(3))


def test_show_config_prints_what_the_doctor_says(capsys: pytest.CaptureFixture[str]) -> None:
    xarr.show_config()
    assert "versions" in capsys.readouterr().out
    with pytest.raises(InputError, match="mode must be 'stdout'"):
        xarr.show_config("dicts")
