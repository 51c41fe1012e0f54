"""Methods of Array that show or set the parts of complex numbers."""

from __future__ import annotations

import sys
from typing import cast

from xarr import indexing
from xarr.base.at_once.obstacles import obstacles
from xarr.base.typing import Array
from xarr.dtypes import COMPLEX, PREDICATE
from xarr.errors import DTypeError
from xarr.indexing.small_parts import show_component
from xarr.lax.core import ArrayLike
from xarr.lax.elementwise import complex as complex_of
from xarr.numpy_api.mathematics import complex_numbers
from xarr.runtime.handles import Handle


class ComponentMethods(Handle):
    """The part of Array that is about real and imaginary parts."""

    __slots__ = ()

    def _own(self) -> Array:
        return cast("Array", self)

    def conj(self, out: Array | None = None) -> Array:
        """Complex conjugate; bools stay bools, other than by `xarr.conj`.  Source: NumPy, `ndarray.conj`."""
        array = self._own()
        return array.copy() if out is None and array.dtype == PREDICATE else complex_numbers.conj(array, out)

    conjugate = conj

    @property
    def real(self) -> Array:
        """Real part."""
        if not obstacles and (part := show_component(self._own(), True, sys._getframe(1))) is not None:
            return part
        return complex_numbers.real(self._own())

    @real.setter
    def real(self, values: ArrayLike) -> None:
        part = indexing.update(self.real, ..., values)
        self._show(part if self._own().dtype not in COMPLEX else complex_of(part, self.imag))

    @property
    def imag(self) -> Array:
        """Imaginary part."""
        if not obstacles and (part := show_component(self._own(), False, sys._getframe(1))) is not None:
            return part
        return complex_numbers.imag(self._own())

    @imag.setter
    def imag(self, values: ArrayLike) -> None:
        if self._own().dtype not in COMPLEX:
            raise DTypeError(
                f"imag: {self._own().dtype} has no imaginary part to set; write x = x + 1j * values"
            )
        self._show(complex_of(self.real, indexing.update(self.imag, ..., values)))
