"""Looking at values where a shape or a refusal depends on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xarr.errors import TracedValueError
from xarr.ir.source import here
from xarr.lazy import to_host

if TYPE_CHECKING:
    from xarr.array import Array


def is_known(*arrays: Array) -> bool:
    """Whether the values can be looked at: none of the arrays depends on an argument of a traced function.

    To look at them may still mean to compute them, which the docstring of a public function has to say.
    """
    return not any(array._node.traced for array in arrays)


def known(name: str, array: Array, purpose: str, instead: str) -> np.ndarray[Any, Any]:
    """The values, computed now; TracedValueError that says what they decide and what helps if there are none."""
    if not is_known(array):
        place = f"\nIt was called at {here()}" if here() else ""
        raise TracedValueError(
            f"{name}: {purpose} depends on values, and inside a traced function {array._node.type} has none yet; "
            f"{instead}, or call it outside{place}"
        )
    return to_host(array)
