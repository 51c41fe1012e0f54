"""Lists and tuples times an integer without dimensions, which repeats them as Python's and NumPy's integers do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xarr.dtypes import INTEGER

if TYPE_CHECKING:
    from xarr.array import Array


def repeating(multiply: Callable[[Array, Any], Array]) -> Callable[[Array, Any], Array]:
    """`multiply`, but lists and tuples are left to Python where it can repeat them.

    `[0] * x.max()` is a list of that many zeros, as for the scalars that NumPy's reductions give; its arrays
    without dimensions would multiply the elements, which `xarr.asarray([0]) * x.max()` does.
    """

    def method(self: Array, other: Any) -> Array:
        if isinstance(other, list | tuple) and not self._node.shape and self.dtype in INTEGER:
            return NotImplemented  # type: ignore[no-any-return]
        return multiply(self, other)

    return method
