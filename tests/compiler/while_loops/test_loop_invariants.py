"""What each step of a loop would compute anew from what never changes is computed before the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax

pytestmark = pytest.mark.implicit

LEFT, RIGHT = (np.arange(64, dtype=np.float32).reshape(8, 8) % k - 1 for k in (3, 5))


def multiply_by_both(x: Any, left: Any, right: Any) -> Any:
    """Steps that multiply by a matrix made of two."""

    def step(i: Any, x: Any) -> Any:
        both = lax.dot(x, lax.concatenate([left, right], dimension=1))
        return lax.rem(both[:, :8] - both[:, 8:], 16.0)

    return lax.fori_loop(0, 4, step, x)


def test_an_operand_of_a_product_is_made_once() -> None:
    lowered = xarr.jit(multiply_by_both).lower(*[xarr.asarray(LEFT)] * 3)
    (loop,) = [step for step in lowered.stage("plan").steps if step.word == "loop"]
    assert "concatenate" in str(lowered.stage("plan"))
    assert "concatenate" not in str(loop.body)


def test_the_results_are_those_of_separate_operations() -> None:
    arrays = [xarr.asarray(each) for each in (RIGHT, LEFT, RIGHT)]
    with xarr.config(fusion="off"):
        wanted = multiply_by_both(*arrays)
        wanted.evaluate()
    assert_same(xarr.jit(multiply_by_both)(*arrays), wanted)
