"""The element type of three operands and more depends on which they are, not on their order."""

from itertools import combinations_with_replacement, permutations, product

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.support.functions import expression
from xarr.dtypes import EXTENDED_FLOAT
from xarr.errors import DTypeError

NATIVE = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64"),
]
EXTENDED = sorted(EXTENDED_FLOAT, key=str)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)


@pytest.mark.parametrize("number", [(), (True,), (1,), (1.5,), (1j,), (1j, 2)], ids=str)
def test_every_triple_is_promoted_as_by_numpy(number):
    for triple in product(NATIVE, repeat=3):
        wanted = np.result_type(*[np.empty(1, dtype) for dtype in triple], *number)
        assert xarr.result_type(*triple, *number) == wanted, (triple, number)


def _promote(dtypes):
    try:
        return xarr.result_type(*dtypes)
    except DTypeError:
        return None


def test_triples_with_types_that_numpy_does_not_know():
    for triple in combinations_with_replacement([*map(np.dtype, NATIVE), *EXTENDED], 3):
        assert len({_promote(order) for order in permutations(triple)}) == 1, triple


@pytest.mark.parametrize(
    ("dtypes", "wanted"),
    [
        ((BFLOAT16, "int8", "uint64"), BFLOAT16),
        ((E5M2, "bool", "int64"), E5M2),
        ((BFLOAT16, "float16", "int8"), "float32"),
        ((BFLOAT16, E5M2, "float32"), "float32"),
        ((BFLOAT16, "int64", "float32"), "float64"),
        ((E5M2, E5M2, "complex64"), "complex64"),
        ((BFLOAT16, E5M2, "int8"), None),
        ((BFLOAT16, "float16", E5M2), None),
    ],
    ids=str,
)
def test_types_that_numpy_does_not_know(dtypes, wanted):
    assert _promote(dtypes) == (None if wanted is None else np.dtype(wanted))


CALLS = [
    "xp.concatenate(x)",
    "xp.stack(x)",
    "xp.select([np.ones(2, bool)] * 2, x[:2], x[2])",
    "xp.choose(np.zeros(2, int), x)",
    "xp.clip(*x)",
    "xp.einsum('i,i,i->i', *x)",
    "xp.block(list(x))",
    "xp.column_stack(x)",
    "xp.linalg.multi_dot([x[0], np.ones((2, 2), x[1].dtype), x[2]])",
]


@pytest.mark.parametrize("text", CALLS)
def test_functions_of_three_arrays(text):
    call = expression(text)
    for dtypes in product(["int8", "uint8", "float16", "float32"], repeat=3):
        arrays = [np.ones(2, dtype) for dtype in dtypes]
        result = call(xarr, [xarr.asarray(array) for array in arrays])
        assert result.dtype == call(np, arrays).dtype, dtypes
