"""Helpers of the tests of `xarr.jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xarr
from tests.compare import assert_same
from xarr import tree


def twice(jitted: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
    """The results of a call and of its repetition, which takes the fast path."""
    return [jitted(*args, **kwargs) for _ in range(2)]


def assert_compiled_loops_agree(
    function: Callable[..., Any], *arrays: Any, compare: Callable[[Any, Any], None] = assert_same
) -> None:
    """Compare the results of `function` jitted to compiled loops with those of one NumPy call for each operation."""
    operands = tuple(map(xarr.asarray, arrays))
    with xarr.config(fusion="off"):
        wanted = tree.flatten(function(*operands))[0]
        xarr.evaluate(*wanted)
    with xarr.config(fusion="compiled"):
        results = tree.flatten(xarr.jit(function)(*operands))[0]
    for got, expected in zip(results, wanted, strict=True):
        compare(got, expected)


def assert_same_tree(actual: Any, expected: Any) -> None:
    got, structure = tree.flatten(actual)
    wanted, its = tree.flatten(expected)
    assert structure == its
    for one, other in zip(got, wanted, strict=True):
        assert isinstance(one, xarr.Array)
        assert_same(one, xarr.asarray(other))
