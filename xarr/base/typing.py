"""The class `Array` as the modules below it know it: a name for annotations.

`xarr.arrays` stands on all of them, so none may import the class.  For type checkers `Array` is the class itself,
with everything that users call on it; at run time it is a protocol of what every Array has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xarr.arrays.array import Array as Array
else:
    from typing import Any, Protocol

    import numpy as np

    class Array(Protocol):
        """Shape, element type and values; `xarr.runtime.handles.wrap` makes one of a node."""

        shape: tuple[int, ...]
        dtype: np.dtype[Any]

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...


__all__ = ["Array"]
