"""NumPy's settings for floating point errors.  xarr computes as IEEE 754 has it and never warns.

The settings are NumPy's own: they hold for what NumPy computes in the block, and xarr needs none.  What asks
for more than silence is refused, since xarr would not do it.
"""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, Final

import numpy as np
from numpy import geterr

from xarr.base.tracebacks import names_errors
from xarr.errors import ArgumentError, InputError

__all__ = ["errstate", "geterr", "seterr"]

_QUIET: Final = (None, "ignore", "warn")


def _check(name: str, actions: dict[str, Any]) -> None:
    for kind, action in actions.items():
        if action not in _QUIET:
            raise ArgumentError(
                f"{name}: wanted 'ignore' or 'warn' for {kind}, got {action!r}: xarr does not check for "
                "floating-point errors; xarr.config.debug_nans and debug_overflow raise at the op that makes a NaN "
                "or an infinity, and xarr.isfinite(x) finds them"
            )


@names_errors
def seterr(
    all: str | None = None,
    divide: str | None = None,
    over: str | None = None,
    under: str | None = None,
    invalid: str | None = None,
) -> dict[str, str]:
    """`numpy.seterr`, for what NumPy computes; returns the settings before.

    Raises InputError for "raise", "call", "print" and "log", which xarr does not do.  Source: NumPy, `seterr`.
    """
    actions: dict[str, Any] = {
        "all": all,
        "divide": divide,
        "over": over,
        "under": under,
        "invalid": invalid,
    }
    _check("seterr", actions)
    before: Any = np.seterr(**actions)
    return dict(before)


class errstate(contextlib.ContextDecorator):
    """`with errstate(divide="ignore"):` or a decorator: `numpy.errstate`, for what NumPy computes.

    Raises InputError for "raise", "call", "print" and "log", which xarr does not do.  Source: NumPy, `errstate`.
    """

    def __init__(
        self,
        *,
        call: Any = None,
        all: str | None = None,
        divide: str | None = None,
        over: str | None = None,
        under: str | None = None,
        invalid: str | None = None,
    ) -> None:
        actions = {"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid}
        _check("errstate", actions)
        if call is not None:
            raise InputError(f"errstate: xarr calls no function at floating-point errors; got call={call!r}")
        self._actions: dict[str, Any] = actions
        self._entered: list[np.errstate] = []

    def __enter__(self) -> None:
        block = np.errstate(**self._actions)
        block.__enter__()
        self._entered.append(block)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, error, trace)
