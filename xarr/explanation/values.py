"""Small values of the operands of an explanation, by NumPy: apart from the rest, which explains shapes without it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xarr.base.broadcasting import Shape
from xarr.errors import InputError
from xarr.explanation.broadcast_facts import BroadcastFacts


def as_values(values: ArrayLike, shape: Shape, limit: int) -> NDArray[Any] | None:
    """A copy of the values, which must have the shape; None if they are more than `limit`."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufc":  # the element types of ml_dtypes are of kind V
            array = array.astype(np.float32)
    except (TypeError, ValueError):
        raise InputError("wanted values that form an array of numbers") from None
    if array.shape != shape:
        raise InputError(f"wanted values of the shape {shape}, got {array.shape}")
    return array.copy() if array.size <= limit else None


def apply_to_values(facts: BroadcastFacts) -> NDArray[Any] | None:
    """The result's values by NumPy, if every operand has values and NumPy knows the op; else None."""
    values = [operand.values for operand in facts.operands]
    alignment = facts.alignment
    if alignment is None or any(value is None for value in values):
        return None
    placed = [np.expand_dims(np.asarray(v), alignment.new_axes(i)) for i, v in enumerate(values)]
    if facts.operator.name == "where" and len(placed) == 3:
        return np.asarray(np.where(placed[0].astype(bool), placed[1], placed[2]))
    function = getattr(np, facts.operator.name, None)
    if facts.operator.symbol is None and facts.operator.name not in ("maximum", "minimum"):
        return None
    if not isinstance(function, np.ufunc) or function.nin != len(placed):
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(*placed))
    except (TypeError, ValueError):  # NumPy lacks the op for these dtypes, or for a negative exponent
        return None
