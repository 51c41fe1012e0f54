"""Intervals of the integers of loop programs."""

from __future__ import annotations

import numpy as np

from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loops import index_value
from xarr.compiler.loop_ir.scalars import INT64, Values


def test_ranges_of_numbers() -> None:
    values = Values()
    i, loaded = index_value(values, "i"), values.argument("x", INT64)
    ranges = Ranges({i: (2, 5)})
    rows = [
        (i * -3 + 1, (-14, -5)),
        (i / 2, (1, 2)),
        (-i / 2, (-2, -1)),
        (i.rem(4), (0, 3)),
        ((i - 2).rem(4), (0, 3)),
        (i.rem(16), (2, 5)),
        (loaded.rem(4), (-np.inf, np.inf)),
        (loaded.lt(3).select(loaded, 3), (-np.inf, 3)),
        (loaded.ge(0).select(loaded, 7), (0, np.inf)),
        (i.lt(9).convert(INT64), (1, 1)),
        (i.eq(9).select(loaded, i), (2, 5)),
        ((i.lt(9) & loaded.lt(9)).convert(INT64), (0, 1)),
        ((~i.lt(9)).convert(INT64), (0, 0)),
        (i.convert(np.int8) * np.int8(100), (-np.inf, np.inf)),
    ]
    for value, wanted in rows:
        assert ranges.of(value) == wanted, value


def test_a_condition_narrows_what_it_compares() -> None:
    values = Values()
    i, loaded = index_value(values, "i"), values.argument("x", INT64)
    ranges = Ranges({i: (2, 5)}).assuming(loaded.ge(0) & loaded.lt(i) & i.gt(3))
    assert ranges.of(loaded) == (0, 4)
    assert ranges.of(i) == (4, 5)
    either = Ranges({i: (2, 5)}).assuming(loaded.ge(0) | loaded.lt(i))
    assert either.of(loaded) == (-np.inf, np.inf)
