"""What rows of NumPy's functions take beside arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xarr.base.at_once.numpy_calls import ArgumentKind, NumPyCall, kind_of


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *[
            (None, ArgumentKind.NONE),
            (3, ArgumentKind.INT),
            (-(2**31) + 1, ArgumentKind.INT),
            (True, ArgumentKind.BOOL),
            ((0, -1), ArgumentKind.INTS),
        ],
        *[
            (((1, 2), (0, 0)), ArgumentKind.PAIRS),
            (2**31, 0),
            ((), 0),
            ((True,), 0),
            ((None, 1), 0),
            ([1], 0),
            (1.0, ArgumentKind.FLOAT),
        ],
        *[("axis", 0), (np.int64(1), 0), ((1, (2, 3)), 0), ((((1,),),), 0)],
    ],
)
def test_kinds_of_arguments(value: Any, kind: int) -> None:
    assert kind_of(value) == kind


def test_a_subclass_is_of_no_kind() -> None:
    class Own(int):
        pass

    assert kind_of(Own(1)) == 0 and kind_of((Own(1),)) == 0


def test_options_take_their_kinds_or_strings_alone() -> None:
    row = NumPyCall(
        np.sum,
        options={
            "axis": ArgumentKind.INT | ArgumentKind.NONE,
            "mode": frozenset({"edge"}),
            "keepdims": ArgumentKind.BOOL,
        },
    )
    assert row.by_position == 2
    assert row.takes("axis", 1) and row.takes("axis", None) and row.takes("mode", "edge")
    assert row.takes("keepdims", True)
    for name, value in [("axis", (1,)), ("mode", "wrap"), ("mode", 1), ("keepdims", 1), ("out", None)]:
        assert not row.takes(name, value), (name, value)
