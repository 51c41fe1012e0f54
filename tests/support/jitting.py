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


def assert_same_tree(actual: Any, expected: Any) -> None:
    got, structure = tree.flatten(actual)
    wanted, its = tree.flatten(expected)
    assert structure == its
    for one, other in zip(got, wanted, strict=True):
        assert isinstance(one, xarr.Array)
        assert_same(one, xarr.asarray(other))
