"""Parts of complex numbers as attributes: values that NumPy gives, and writes that stay with their Array."""

from __future__ import annotations

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import DTypeError, PartUpdateWarning

NUMBERS = np.array([[1.5 - 2j, -0.0 + 0j], [np.inf + 1j, np.nan - np.inf * 1j]])


@pytest.mark.parametrize("dtype", ["complex128", "complex64", "float32", "int64"])
def test_components_are_those_of_numpy(dtype: str) -> None:
    with np.errstate(all="ignore"):
        host = (NUMBERS if dtype[0] == "c" else NUMBERS.real * 0 + 3).astype(dtype)
    for x in (xarr.asarray(host), xarr.asarray(host).evaluate(), xarr.asarray(host).T.evaluate()):
        own = np.asarray(x)
        for name in ("real", "imag"):
            got, wanted = getattr(x, name), getattr(own, name)
            assert_same(np.asarray(got), np.ascontiguousarray(wanted))
        assert_same(np.asarray(x.conj()), np.conjugate(own))


def test_a_component_is_written_to_as_a_part() -> None:
    x = xarr.asarray(NUMBERS[0]).evaluate() * 1
    part, before = x.real, np.array(x)
    with pytest.warns(PartUpdateWarning):
        part[0] = 7.0
    assert_same(np.asarray(x), before)
    x.real, x.imag = 3.0, [1.0, 2.0]
    assert x.tolist() == [3 + 1j, 3 + 2j] and part[0] == 7.0
    x.real += 1
    assert x.tolist() == [4 + 1j, 4 + 2j]
    with pytest.raises(DTypeError, match="has no imaginary part"):
        xarr.asarray([1.0, 2.0]).imag = 1.0
