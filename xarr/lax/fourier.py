"""The discrete Fourier transform."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import BOOL, COMPLEX, INTEGER, complex_of
from xarr.errors import InputError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.fourier import FFT_TYPES
from xarr.lax.core import ArrayLike, integers, operands, text
from xarr.runtime.handles import wrap
from xarr.runtime.small_ops import apply_op


class FftType(Enum):
    """The transforms, numbered as XLA does."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


@names_errors
def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The transform of the last dimensions of x, as many as there are lengths (1 to 3, or none at all).

    fft_type: FFT, IFFT (to and from complex numbers), RFFT (of reals) or IRFFT (to reals).
    fft_lengths: the sizes of those dimensions; for IRFFT those of the result.

    Integers count as float64, and reals as complex numbers where those are wanted.  Raises ShapeError
    [C1], [C3], DTypeError [C2], InputError for another type.  Source: XLA's Fft, with jax.lax's arguments.
    """
    kind = fft_type.name if isinstance(fft_type, FftType) else text("fft", "fft_type", fft_type).upper()
    if kind not in FFT_TYPES:
        raise InputError(f"fft: wanted a type of {', '.join(FFT_TYPES)}, got {fft_type!r}")
    lengths = integers("fft", "fft_lengths", fft_lengths)
    (node,) = operands("fft", x)
    if not lengths:
        return wrap(node)
    if node.dtype in INTEGER | BOOL:
        node = Node(ops.Convert(np.dtype(np.float64)), (node,))
    if kind != "RFFT" and node.dtype not in COMPLEX and node.dtype.itemsize >= 4:
        node = Node(ops.Convert(complex_of(node.dtype)), (node,))
    return apply_op(ops.Fft(kind, lengths), (node,))
