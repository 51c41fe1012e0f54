"""`explain_layout`: where each element of an array lies in memory, and what a step along each axis costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr.base.layouts import Layout
from xarr.errors import InputError
from xarr.explainers.operands import read
from xarr.explanation.broadcast_facts import Operand
from xarr.explanation.sheets.layout import LayoutExplanation
from xarr.runtime.handles import Handle


def explain_layout(x: Any, layout: Any = None, name: str = "x") -> LayoutExplanation:
    """Explain where the elements of `x` lie in memory.

    x: an array, or a shape as a tuple of ints or as text such as "f32[2,3]".  layout: a Layout, its text, such as
        "{0,1}", or the axes from the most minor to the most major; by default that of the array, row-major of a shape.

    A NumPy view that is no block of memory is explained by its strides.  Raises ShapeError and ParseError for layouts
    that do not fit, InputError for what is no layout.
    """
    operand = _operand(x, name)
    if layout is None and isinstance(x, np.ndarray):
        strides = tuple(stride // x.itemsize if x.itemsize else 0 for stride in x.strides)
        return LayoutExplanation(operand, strides, Layout.of(x))
    whole = _layout(x, layout, len(operand.shape))
    return LayoutExplanation(operand, whole.strides(operand.shape), whole)


def _operand(x: Any, name: str) -> Operand:
    """Read what is explained without copying NumPy's arrays, which may be views of far less memory."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return read("explain_layout", name, x)
    none = read("explain_layout", name, x[(slice(0),) * x.ndim])
    return Operand(none.name, x.shape, none.dtype)


def _layout(x: Any, layout: Any, rank: int) -> Layout:
    if layout is None:
        own = x.layout if isinstance(x, Handle) else None  # type: ignore[attr-defined]
        return own or Layout.row_major(rank)
    if isinstance(layout, str):
        return Layout.parse(layout)
    if isinstance(layout, Layout):
        return layout
    if isinstance(layout, tuple | list):
        return Layout(layout)
    raise InputError(f'explain_layout: wanted a Layout, text such as "{{0,1}}" or axes, got {layout!r}')
