"""Element-wise functions as branch-free scalar expressions, by the names of the graph's operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from xarr.compiler.scalars import Value
from xarr_numpy.compiled.functions import exponential, logarithm, trigonometric

FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "Exponential": exponential.exp,
    "Tanh": exponential.tanh,
    "Log": logarithm.log,
    "Sine": trigonometric.sin,
    "Cosine": trigonometric.cos,
}
