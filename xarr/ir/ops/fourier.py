"""The discrete Fourier transform over the last one to three dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.dtypes import COMPLEX, complex_of, real_part_of
from xarr.errors import ValueRangeError
from xarr.ir.op import Op, operation
from xarr.ir.stablehlo.literals import ints
from xarr.ir.types import Ints, Type

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer


FFT_TYPES: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
_REAL: Final = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


@operation
class Fft(Op):
    """The transform of the last dimensions, whose sizes on the longer side are `fft_length`.

    FFT and IFFT take and give complex numbers.  RFFT takes reals and gives the first half, `n // 2 + 1` of n
    in the last dimension; IRFFT goes the other way and ignores imaginary parts that cannot be.  The inverse
    transforms divide by the number of elements.

    * C1: 1 to 3 lengths, as many as the operand has dimensions or fewer.
    * C2: float32 or float64 for RFFT, complex numbers for the others.
    * C3: the operand's last sizes are the lengths; for IRFFT the very last is `n // 2 + 1`.
    """

    fft_type: str
    fft_length: Ints
    name = "stablehlo.fft"

    def __post_init__(self) -> None:
        if self.fft_type not in FFT_TYPES:
            raise ValueRangeError(f"fft: wanted a type of {', '.join(FFT_TYPES)}, got {self.fft_type!r}")

    def infer(self, *operands: Type) -> Type:
        (x,) = self.tensors(operands, 1)
        count = len(self.fft_length)
        if not 1 <= count <= min(3, x.rank):
            self.fail(
                "C1", f"wanted 1 to 3 lengths, at most one for each dimension of {x.short()}, got {count}"
            )
        real = self.fft_type == "RFFT"
        if x.dtype not in (_REAL if real else COMPLEX):
            wanted = "float32 or float64" if real else "complex64 or complex128"
            self.fail_dtype("C2", f"wanted {wanted} elements for {self.fft_type}, got {x.short()}")
        halved = (*self.fft_length[:-1], half_length(self.fft_length[-1]))
        wanted_sizes = halved if self.fft_type == "IRFFT" else self.fft_length
        if x.shape[-count:] != wanted_sizes:
            self.fail("C3", f"wanted the last sizes {wanted_sizes} for {self.fft_type}, got {x.short()}")
        sizes = halved if real else self.fft_length
        return x.with_shape((*x.shape[:-count], *sizes)).with_dtype(self.result_dtype(x.dtype))

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The result's element type for operands of element type `dtype`."""
        return real_part_of(dtype) if self.fft_type == "IRFFT" else complex_of(dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"type = {self.fft_type}, length = {ints(self.fft_length)}")


def half_length(length: int) -> int:
    """The number of elements that determine the transform of `length` reals; 0 of none."""
    return length // 2 + 1 if length else 0
