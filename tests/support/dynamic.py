"""Live sizes and programs for the tests of dynamic sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

import xarr
from tests.dynamic_cases import Case
from xarr import lax


def late(value: int) -> Any:
    """An int32 scalar that is no constant."""
    return lax.reshape(xarr.asarray(np.array([value], np.int32)), ())


def module_of(case: Case) -> str:
    """The case as a module of its operands of the bounds and the live sizes; it gives the result and its sizes."""
    letters = case.letters

    def function(*arguments: Any) -> list[Any]:
        count = len(case.shapes)
        result = case.apply(arguments[:count], dict(zip(letters, arguments[count:], strict=True)))
        sizes = [lax.get_dimension_size(result, dim) for dim in result._node.tensor_type.dynamic_dimensions]
        return [result, *sizes]

    sizes = [np.int32(0)] * len(letters)
    return str(xarr.lower(function, *case.arrays(), *map(np.asarray, sizes)))
