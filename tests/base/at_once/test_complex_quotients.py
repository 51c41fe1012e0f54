"""Complex numbers that NumPy divides as the op does."""

from __future__ import annotations

import numpy as np
import pytest

from xarr.base.at_once.complex_quotients import are_ordinary

TINY = np.finfo(np.float64).tiny


@pytest.mark.parametrize("other", [2, -1.5, 1j, np.complex128(3), np.array([1.0, -2.0]), np.array([2, 3])])
def test_numbers_of_ordinary_size_are(other: object) -> None:
    for value in (np.array([1j, 2.0]), 0j, np.array([0j, 1.0]), np.array([], complex)):
        assert are_ordinary(value, other)
        assert are_ordinary(other, value) == (np.size(value) > 0 and bool(np.all(value))) or not np.size(
            value
        )


@pytest.mark.parametrize("part", [np.inf, np.nan, 1e308, -1e308, TINY, 5e-324])
def test_extreme_numbers_are_not(part: float) -> None:
    for number in (complex(part, 0), complex(0, part)):
        for value in (number, np.complex128(number), np.array([1.0, number])):
            assert not are_ordinary(value, 2.0) and not are_ordinary(2.0, value), value
    assert not are_ordinary(part, 1j) and not are_ordinary(np.array([part]), 1j)


def test_no_number_is_divided_by_zero() -> None:
    for zero in (0, 0.0, 0j, np.zeros(2), np.zeros(2, int), np.array([0j, 1])):
        assert not are_ordinary(1j, zero)


def test_other_types_and_great_ints_are_left() -> None:
    assert not are_ordinary(np.array([1j], np.complex64), 2) and not are_ordinary(1j, np.float32(2))
    assert not are_ordinary(1j, True) and not are_ordinary(1j, np.array([True]))
    assert not are_ordinary(1j, 10**400) and are_ordinary(1j, 2**80)
    assert not are_ordinary(1j, np.array([2], np.int32)) and are_ordinary(1j, np.array([-(2**63)]))
