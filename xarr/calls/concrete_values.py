"""Looking at values where a shape or a refusal depends on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr.base.typing import Array
from xarr.errors import TracedValueError
from xarr.ir.source import here
from xarr.lax.core import ArrayLike
from xarr.runtime.handles import Handle
from xarr.runtime.live_values import values_at_hand
from xarr.runtime.materialisation import to_host


def is_known(*arrays: Array) -> bool:
    """Whether the values can be looked at: none of the arrays depends on an argument of a traced function.

    To look at them may still mean to compute them, which the docstring of a public function has to say.
    """
    return not any(array._node.traced for array in arrays)


def values_of(array: Array) -> np.ndarray[Any, Any]:
    """The values, computed if need be; those of a constant, of which no backend is asked, as they are."""
    host = values_at_hand(array._node)
    return to_host(array) if host is None else host


def look_at(name: str, what: str, value: ArrayLike, instead: str) -> Any:
    """`value`, of an Array its elements, computed now, as a NumPy array.

    Raises TracedValueError for an Array that depends on an argument of a traced function: `name` needs `what`
    of it; `instead` says what works.
    """
    if not isinstance(value, Handle):
        return value
    refuse_traced(name, what, value, instead)
    return to_host(value)


def refuse_traced(name: str, what: str, array: Handle, instead: str) -> None:
    """TracedValueError for an Array without a value."""
    node = array._node
    if not node.traced:
        return
    asked = here()
    location = f"\nIt was asked for at {asked}" if asked else ""
    location += f"\nIt was built at {node.source}" if node.source else ""
    raise TracedValueError(
        f"{name}: the result depends on {what}, and in a traced function {node.type.short()} has no values yet; "
        f"{instead}, or call it outside{location}"
    )
