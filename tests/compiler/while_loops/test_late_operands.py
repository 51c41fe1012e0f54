"""Minima and maxima in loops of scalars: what the last step leaves is compared last, to the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr.compiler.while_loops.late_operands import compare_late_operands_last

F64 = np.dtype(np.float64)


def operands_of(value: Value) -> set[Value]:
    return set(value.operands)


def test_the_last_step_is_compared_last() -> None:
    values = Values()
    left, best, across = (values.argument(name, F64) for name in ("left", "best", "across"))
    late = left - 10.0
    here = best.maximum((across - 0.5).maximum(late))
    new = compare_late_operands_last([here], {left: here})
    assert new is not None
    assert new[here] is best.maximum(across - 0.5).maximum(late)


def test_what_comes_earliest_of_two_carried_values() -> None:
    """`across` waits for one maximum, `left` for two."""
    values = Values()
    left, best, across = (values.argument(name, F64) for name in ("left", "best", "across"))
    following = (across - 0.5).maximum(left - 10.0)
    here = best.maximum(following)
    new = compare_late_operands_last([here, following], {left: here, across: following})
    assert new is not None
    assert new[here].operands[1] is left - 10.0 and new[following].operands[1] is left - 10.0


def test_a_number_is_added_to_what_is_compared() -> None:
    values = Values()
    left, up = (values.argument(name, F64) for name in ("left", "up"))
    here = (left.minimum(up) + 2.0).minimum(9.0)
    new = compare_late_operands_last([here], {left: here})
    assert new is not None
    assert new[here].operands[1] is left + 2.0
    assert operands_of(new[here].operands[0]) == {values.constant(9.0, F64), up + 2.0}


@pytest.mark.parametrize("number", [0.0, -0.0, np.inf, -np.inf, np.nan])
def test_numbers_that_are_not_added_before(number: float) -> None:
    """-0.0 + 0.0 is 0.0, and infinities of both signs are NaN: there the order counts."""
    values = Values()
    left, up = (values.argument(name, F64) for name in ("left", "up"))
    inner = left.maximum(up)
    here = (inner + number).maximum(9.0)
    new = compare_late_operands_last([here], {left: here})
    assert new is not None
    assert new[here].operands[1] is new[inner] + number


def test_others_stay_as_they_are() -> None:
    values = Values()
    left, up = (values.argument(name, F64) for name in ("left", "up"))
    assert compare_late_operands_last([left + up], {left: left + up}) is None
    mixed = left.maximum(up.minimum(3.0))
    new = compare_late_operands_last([mixed], {left: mixed})
    assert new is not None and operands_of(new[mixed]) == {left, up.minimum(3.0)}
    product = left.maximum(up) * 2.0
    both = product.maximum(up)
    new = compare_late_operands_last([both], {left: both})
    assert new is not None and operands_of(new[both]) == {up, new[product]}


def test_many_operands_are_compared_as_they_stand() -> None:
    values = Values()
    left = values.argument("left", F64)
    here = left
    for k in range(12):
        here = here.maximum(values.argument(f"x{k}", F64))
    new = compare_late_operands_last([here], {left: here})
    assert new is not None
    last: Any = new[here]
    assert values.argument("x11", F64) in last.operands


NUMBERS = np.array([0.0, -0.0, 1.0, np.nan, -np.inf, 3.0, -2.0, np.inf, 0.0, -0.0, 2.0, -3.0])


def step(carry: Any, x: Any) -> Any:
    left, across = carry
    across = lax.max(lax.sub(across, 1.0), lax.sub(left, 2.0))
    here = lax.min(lax.max(lax.max(x, across), -9.0), lax.add(lax.min(left, x), 4.0))
    return (here, across), here


def test_bits_of_a_recurrence() -> None:
    """Of all starts at special numbers, as operation by operation."""
    jitted = xarr.jit(lambda a, b, x: lax.scan(step, (a, b), x))
    for first in NUMBERS:
        for second in NUMBERS[:8]:
            carry: Any = (xarr.asarray(first), xarr.asarray(second))
            got = jitted(*carry, NUMBERS)[1]
            wanted = []
            for x in NUMBERS:
                carry, here = step(carry, xarr.asarray(x))
                wanted.append(float(here))
            assert_same(np.asarray(got), np.array(wanted))


@pytest.mark.parametrize("is_shared", [True, False])
def test_extremes_of_many_operands_stay_as_they_are(is_shared: bool) -> None:
    """Operands that are shared sixty times over are more than can be counted; a long chain is deep."""
    values = Values()
    last = values.argument("last", F64)
    here = last
    for k in range(60 if is_shared else 3000):
        here = here.maximum(here - (k + 1.0)) if is_shared else here.maximum(values.argument(str(k), F64))
    new = compare_late_operands_last([here], {last: here})
    assert new is not None and here in new
