"""`explain_dtype`: the type is the one that xarr promotes to, the path goes by promotions, losses are real."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.explained import check_views
from xarr.dtypes import TABLE, promote
from xarr.errors import DTypeError, InputError
from xarr.explainers.promotion import names_type

TYPES = [row.dtype for row in TABLE]


def test_every_pair_is_as_it_is_promoted() -> None:
    refused = 0
    for first, second in product(TYPES, repeat=2):
        explanation = xarr.explain_dtype(first, second)
        try:
            wanted = promote(first, second)
        except DTypeError as error:
            refused += 1
            assert explanation.result is None and "no implicit promotion" in str(error)
            assert "no implicit promotion" in explanation.problems()[0]
            continue
        assert explanation.result == wanted
        for operand in explanation.operands:
            path = explanation.path(operand)
            assert path[0] == operand.dtype and path[-1] == wanted
            assert all(promote(low, high) == high for low, high in pairwise(path))
    assert refused > 100


@pytest.mark.parametrize(
    ("first", "second"), [("int64", "float64"), ("int32", "float16"), ("uint64", "int8")]
)
def test_losses_are_real(first: str, second: str) -> None:
    explanation = xarr.explain_dtype(first, second)
    assert explanation.result is not None
    for operand in explanation.operands:
        assert operand.dtype is not None
        largest = np.iinfo(operand.dtype).max if operand.dtype.kind in "iu" else None
        if largest is not None:
            exact = int(np.array(largest - 1, operand.dtype).astype(explanation.result)) == largest - 1
            assert exact == (not explanation.loss(operand))


@pytest.mark.parametrize(
    ("operands", "result", "why"),
    [
        (("float32", 2.0), "float32", "the Python number gives way"),
        (("int8", 2.5), "float64", "the kind of the Python number is higher"),
        (("int8", "uint8"), "int16", "none of them is it"),
        (("int8", "int16"), "int16", "and one of them"),
        ((np.float32, int), "float32", "gives way"),
        ((np.ones(2, np.float32), xarr.ones(2, "int64")), "float64", "smallest type"),
        ((True, 2), "int64", "smallest type"),
        (("i8", "bf16"), "bfloat16", "and one of them"),
    ],
    ids=str,
)
def test_reasons(operands: tuple[Any, ...], result: str, why: str) -> None:
    explanation = xarr.explain_dtype(*operands)
    assert str(explanation.result) == result
    assert why in explanation.text()
    facts = check_views(explanation)
    assert facts["result"] == result


def test_text() -> None:
    assert (
        xarr.explain_dtype("int64", "f32", names=("n", "x")).text()
        == """\
promote n: int64, x: float32   ->  float64

  operand  type     holds                            becomes  loses
  n        int64    -2**63 … 2**63 - 1               float64  integers beyond 2**53 are rounded
  x        float32  24 binary digits, up to 3.4e+38  float64

  steps     1 operands: n is int64 and x is float32
            2 edge 1: n: int64 -> float64, 53 binary digits, up to 1.8e+308; x: float32 -> float64, 53 binary
              digits, up to 1.8e+308
            3 float64: float64 is the smallest type to which all convert; none of them is it; n: integers beyond
              2**53 are rounded
  NumPy     result_type(int64, float32)
  explicit  n1 = lax.convert_element_type(n, 'float64')
            x1 = lax.convert_element_type(x, 'float64')"""
    )


def test_no_common_type_says_what_works() -> None:
    explanation = xarr.explain_dtype("float8_e4m3fn", "float16")
    assert not explanation.fits
    assert "a.astype('float16')" in explanation.text()
    check_views(explanation)


def test_malformed() -> None:
    with pytest.raises(InputError, match="at least one"):
        xarr.explain_dtype()
    with pytest.raises(DTypeError):
        xarr.explain_dtype("flaot32")
    assert names_type("f32") and names_type("int") and names_type("i4") and not names_type("x")


@pytest.mark.parametrize(
    ("number", "lost"), [(300, "300 is out of bounds: an error"), (-129, "-129 is out"), (127, "")]
)
def test_a_number_that_its_type_cannot_hold(number: int, lost: str) -> None:
    explanation = xarr.explain_dtype("int8", number)
    assert explanation.loss(explanation.operands[1]).startswith(lost)
    assert ("out of bounds" in explanation.text()) == bool(lost)


def test_a_number_beside_a_type_of_four_bits() -> None:
    assert "9 is out of bounds" in xarr.explain_dtype("int4", 9).text()
    assert "out of bounds" not in xarr.explain_dtype("int4", 7).text()
