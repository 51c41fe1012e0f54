"""NumPy's Fourier transforms of small arrays, and their frequencies: rows for `host_functions`.

They are added when `xarr.fft` is imported, since NumPy's functions take a while to import.  Left to the functions there
is what NumPy scales in another order than XLA: inverse transforms of another norm than "backward".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xarr.base.at_once.numpy_calls import ArgumentKind, NumPyCall
from xarr.calls.host_functions import options_of, refuse, refuse_large

HostArray = np.ndarray[Any, Any]


def _along_one_axis(call: Callable[..., HostArray]) -> Callable[..., HostArray]:
    """A transform of one dimension, to no more points than arrays are small."""

    def transform(a: HostArray, n: int | None = None, axis: int = -1, norm: str | None = None) -> HostArray:
        if n is not None:
            refuse_large(a.size // a.shape[axis], n)
        return call(a, n, axis, norm)

    return transform


def _frequencies(call: Callable[..., HostArray]) -> Callable[..., HostArray]:
    """Frequencies of no more points than arrays are small."""

    def compute(n: int, d: float = 1.0) -> HostArray:
        refuse(n < 1)
        refuse_large(n)
        return call(n, d)

    return compute


_EITHER_NORM: Final = frozenset({None, "backward", "ortho", "forward"})
_PLAIN_NORM: Final = frozenset({None, "backward"})
_DOUBLE: Final = "bBhHiIlLqQ?d"
_REAL: Final = _DOUBLE + "f"
_COMPLEX: Final = _REAL + "DF"
#: For inverse transforms NumPy computes with reals of single precision in double precision.
_INVERSE: Final = _DOUBLE + "DF"


def _one(name: str, chars: str, norm: frozenset[str | None]) -> NumPyCall:
    options = options_of(n=ArgumentKind.INT | ArgumentKind.NONE, axis=ArgumentKind.INT, norm=norm)
    return NumPyCall(_along_one_axis(getattr(np.fft, name)), chars, options=options)


def _several(name: str, chars: str, norm: frozenset[str | None]) -> NumPyCall:
    kinds = ArgumentKind.INTS if name.endswith("2") else ArgumentKind.INTS | ArgumentKind.NONE
    options = options_of(s=ArgumentKind.NONE, axes=kinds, norm=norm)
    return NumPyCall(getattr(np.fft, name), chars, options=options)


_POINTS: Final = options_of(n=ArgumentKind.INT, d=ArgumentKind.INT | ArgumentKind.FLOAT)
_AXES: Final = options_of(axes=ArgumentKind.NONE | ArgumentKind.INT | ArgumentKind.INTS)
#: By the names of functions as errors have them.
FOURIER_ROWS: Final[dict[str, NumPyCall]] = {
    "fft.fft": _one("fft", _COMPLEX, _EITHER_NORM),
    "fft.rfft": _one("rfft", _REAL, _EITHER_NORM),
    **{f"fft.{name}": _one(name, _INVERSE, _PLAIN_NORM) for name in ("ifft", "irfft")},
    **{f"fft.{name}": _several(name, _COMPLEX, _EITHER_NORM) for name in ("fft2", "fftn")},
    **{f"fft.{name}": _several(name, _REAL, _EITHER_NORM) for name in ("rfft2", "rfftn")},
    **{
        f"fft.{name}": _several(name, _INVERSE, _PLAIN_NORM)
        for name in ("ifft2", "ifftn", "irfft2", "irfftn")
    },
    **{
        f"fft.{name}": NumPyCall(_frequencies(getattr(np.fft, name)), most=0, options=_POINTS)
        for name in ("fftfreq", "rfftfreq")
    },
    **{
        f"fft.{name}": NumPyCall(getattr(np.fft, name), _COMPLEX, options=_AXES)
        for name in ("fftshift", "ifftshift")
    },
}
