"""The errors of `xarr.errors` that are NumPy's too; apart from the others, which need no NumPy."""

from typing import Any

import numpy as np

from xarr.errors import ShapeError, XarrError


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis lies outside the rank of its array, or is named twice; NumPy's AxisError too.

    `axis` and `ndim` are the number that was given and the rank, None where the text alone says what is wrong.
    Source: NumPy, `exceptions.AxisError`.
    """

    __module__ = "xarr.errors"

    def __init__(self, axis: int | str, ndim: int | None = None, msg_prefix: str | None = None) -> None:
        text = axis if isinstance(axis, str) else f"axis {axis} is out of range for an array of rank {ndim}"
        self.args = (text if msg_prefix is None else f"{msg_prefix}: {text}",)
        super().__init__(*self.args)
        self.axis = None if isinstance(axis, str) else axis
        self.ndim = ndim

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, {"axis": self.axis, "ndim": self.ndim}

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        for name, value in (state or {}).items():
            setattr(self, name, value)


class LinAlgError(XarrError, np.linalg.LinAlgError):
    """A matrix is singular, not positive definite, or an iteration did not converge."""

    __module__ = "xarr.errors"


class MatrixShapeError(ShapeError, LinAlgError):
    """Shapes of which `xarr.linalg` makes nothing, for which NumPy raises its LinAlgError."""

    __module__ = "xarr.errors"
