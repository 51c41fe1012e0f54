"""`import xarr.pandas_groups` lets pandas group by Arrays: `frame.groupby(x)`, `series.groupby([x, y])`.

pandas groups by what is an array by its class, NumPy's or its own, asks for no protocol, and takes all else for a
function of the labels.  So an Array becomes its values before pandas looks; all else passes as it came.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from pandas.core.groupby import grouper

from xarr.arrays.array import Array
from xarr.runtime.materialisation import to_host


def _taking_arrays(convert: Any) -> Any:
    """`convert(axis, grouper)` of pandas, given the values of an Array."""

    @wraps(convert)
    def convert_grouper(axis: Any, grouper: Any) -> Any:
        return convert(axis, to_host(grouper) if isinstance(grouper, Array) else grouper)

    return convert_grouper


if hasattr(grouper, "_convert_grouper"):  # private to pandas: another version may have none
    grouper._convert_grouper = _taking_arrays(grouper._convert_grouper)
