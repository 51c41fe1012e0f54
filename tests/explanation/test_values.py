"""Values in explanations: which are kept, and what is computed of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from xarr.errors import InputError
from xarr.explanation.broadcast import explain_shapes
from xarr.explanation.values import apply_to_values, as_values


def test_values_are_copied_up_to_a_limit() -> None:
    array = np.arange(4.0)
    kept = as_values(array, (4,), limit=4)
    array[0] = 7
    assert kept is not None and kept.tolist() == [0, 1, 2, 3]
    assert as_values(array, (4,), limit=3) is None
    assert as_values([], (0,), limit=0) is not None


def test_values_of_small_element_types_are_shown_as_floats() -> None:
    kept = as_values(np.array([1.5], ml_dtypes.bfloat16), (1,), limit=4)
    assert kept is not None and kept.dtype == np.float32 and kept[0] == 1.5


def test_values_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"wanted values of the shape \(2,\), got \(3,\)"):
        as_values([1, 2, 3], (2,), limit=9)
    with pytest.raises(InputError, match="numbers"):
        as_values(["a"], (1,), limit=9)


@pytest.mark.parametrize(
    ("op", "values", "result"),
    [
        ("-", ([[1], [2]], [10, 20]), [[-9, -19], [-8, -18]]),
        ("where", ([True, False], [1, 1], [2, 2]), [1, 2]),
        ("maximum", ([1.0, np.nan], [0.0, 0.0]), [1.0, np.nan]),
        ("**", ([2, 2], [-1, -1]), None),
        ("atan2", ([1.0], [1.0]), None),
    ],
)
def test_results(op: str, values: tuple[object, ...], result: object) -> None:
    shapes = [np.shape(value) for value in values]  # type: ignore[call-overload]
    explanation = explain_shapes(*shapes, op=op, values=values)  # type: ignore[arg-type]
    for got in (explanation.result_values, apply_to_values(explanation)):
        assert (got is None) is (result is None)
        assert got is None or np.array_equal(got, result, equal_nan=True)  # type: ignore[arg-type]


def test_no_result_of_one_value_alone() -> None:
    assert explain_shapes((1,), (1,), values=[[1], None]).result_values is None
