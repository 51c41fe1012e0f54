"""Intervals of the integers of loop programs."""

from __future__ import annotations

import numpy as np

from xarr.compiler.loop_ir.index_ranges import Ranges, conjuncts
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
        (i.rem(loaded), (0, 5)),
        (i.rem(-4), (0, 3)),
        (loaded.ge(0).select(loaded, 7).rem(-4), (0, 3)),
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


def test_nothing_is_known_of_what_may_wrap_around() -> None:
    values, anything = Values(), (-np.inf, np.inf)
    loaded, narrow = values.argument("x", np.dtype(np.uint32)), values.argument("y", np.dtype(np.int8))
    positive = narrow.lt(1).select(1, narrow)
    ranges = Ranges({})
    rows = [
        (loaded.lt(3).select(3, loaded), (3, np.inf)),
        (loaded.lt(3).select(3, loaded).convert(INT64), (3, np.inf)),
        (loaded.lt(3).select(3, loaded).convert(np.int32), anything),
        (loaded.gt(3).select(3, loaded).convert(np.int32), (-np.inf, 3)),
        (positive.convert(np.uint8), (1, np.inf)),
        (narrow.convert(np.uint8), anything),
        (positive - 5, (-4, np.inf)),
        (positive + 1, anything),
        (positive * 2, anything),
        (positive.gt(9).select(9, positive).convert(INT64) * 2, (2, 18)),
        (-positive, (-np.inf, -1)),
        (-narrow.gt(1).select(1, narrow), anything),
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


def test_an_index_from_the_end_is_in_bounds() -> None:
    values = Values()
    loaded = values.argument("x", INT64)
    low = loaded.gt(-5).select(loaded, -5)
    clipped = low.lt(4).select(low, 4)
    ranges = Ranges({})
    assert ranges.of(clipped.lt(0).select(clipped + 5, clipped)) == (0, 4)
    assert ranges.of(clipped.ge(0).select(clipped, 5 + clipped)) == (0, 4)
    assert ranges.of(clipped.gt(0).select(clipped - 1, 0)) == (0, 3)
    assert ranges.of(loaded.lt(0).select(clipped + 5, clipped)) == (-5, 9)
    assert ranges.of(loaded.lt(0).select(loaded + 5, loaded)) == (-np.inf, np.inf)


def test_a_remainder_with_the_sign_of_its_divisor_is_in_bounds() -> None:
    values = Values()
    loaded = values.argument("x", INT64)
    rest = (loaded.gt(-16).select(loaded, -16)).lt(16).select(loaded.gt(-16).select(loaded, -16), 16)
    negative = values.constant(17, INT64).lt(0)
    wrong = rest.ne(0) & rest.lt(0).ne(negative)
    ranges = Ranges({})
    assert ranges.of(wrong.select(rest + 17, rest)) == (0, 16)
    assert ranges.of((~wrong).select(rest, rest + 17)) == (0, 16)
    assert ranges.of((rest.ne(0) & rest.lt(0).eq(negative)).select(rest + 17, rest)) == (-16, 33)


def test_of_alternatives_each_may_hold() -> None:
    values = Values()
    i, loaded = index_value(values, "i"), values.argument("x", INT64)
    ranges = Ranges({i: (2, 5)})
    assert ranges.of((i.lt(3) | i.gt(4)).select(i, 3)) == (2, 5)
    assert ranges.of((i.eq(3) | i.eq(4)).select(i, 3)) == (3, 4)
    assert ranges.of((i.eq(3) | loaded.gt(4)).select(i, 3)) == (2, 5)
    assert ranges.of((i.lt(4) & i.gt(2)).select(3, i)) == (2, 5)
    assert ranges.of((i.gt(3) & (i.gt(2) & loaded.lt(9))).select(i, 4)) == (4, 5)


def test_conditions_that_share_conditions_are_looked_at_once() -> None:
    values = Values()
    i = index_value(values, "i")
    parts = [i.lt(k) for k in range(60)]
    mask, other = parts[0], ~parts[0]
    for part in parts[1:]:
        mask = (mask & part) & (part & mask)
        other = (~part | other) | (other | ~part)
    wanted = [(part, True) for part in parts]
    assert list(conjuncts(mask, True)) == wanted
    assert list(conjuncts(~mask, False)) == wanted
    assert list(conjuncts(mask, False)) == [(mask, False)]
    assert list(conjuncts(other, False)) == wanted[::-1]
