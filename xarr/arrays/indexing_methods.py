"""Methods of Array that take, find and change elements: each is the function of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as as_int
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, cast

from xarr import lax
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import INTEGER
from xarr.errors import ArgumentError, ShapeError, ValueRangeError
from xarr.indexing import update
from xarr.indexing.bounds import Mode
from xarr.indexing.flat import Flat, flatten, put
from xarr.lax.core import ArrayLike, flag
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.indexing_routines import selection as functions
from xarr.numpy_api.manipulation.memory_views import view_as
from xarr.numpy_api.sorting import searching, sorting
from xarr.runtime.handles import Handle, namespace
from xarr.runtime.materialisation import to_host
from xarr.runtime.view_tracking import ALL, refusal
from xarr.shapes import check_sizes

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class IndexingMethods(Handle):
    """The methods of Array that index, search and sort."""

    __slots__ = ()

    #: `ndarray[Any, dtype[float64]]` of annotations that run; type checkers know Array without parameters.
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    def _array(self) -> Array:
        return cast("Array", self)

    @property
    def flat(self) -> Flat:
        """The elements in order as if there were one dimension; `x.flat[i] = v` and `x.flat = v` change x.

        Source: NumPy, `ndarray.flat`.
        """
        return Flat(self._array())

    @flat.setter
    def flat(self, values: ArrayLike) -> None:
        self.flat[:] = values

    @names_errors
    def fill(self, value: ArrayLike) -> None:
        """x[...] = value, for a scalar.  Source: NumPy, `ndarray.fill`."""
        refuse_dynamic("x.fill", self, "lax.full_like")
        if getattr(value, "shape", ()) or isinstance(value, list | tuple):
            raise ShapeError(f"fill: wanted a scalar, got {value!r}; x[...] = v takes arrays")
        self._show(update(self._array(), ..., value), ("set", ALL, value))

    @names_errors
    def put(self, indices: ArrayLike, values: ArrayLike, mode: str = "raise") -> None:
        """x.flat[indices] = values, which are repeated or cut; `mode` as in `xarr.take`.

        Source: NumPy, `ndarray.put`.
        """
        self._show(put(self._array(), indices, values, Mode.of(mode)), ("set", "i", values))

    @names_errors
    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """Make x show its elements in another shape, without the last ones or with zeros after them.

        new_shape: sizes, or a sequence of them; none, or None, changes nothing.  refcheck: changes nothing, as other
        Arrays keep their values.  Raises ArgumentError for a part of an Array, ShapeError for negative sizes,
        InputError for what are no sizes.  Source: NumPy, `ndarray.resize`; `xarr.resize` repeats the elements instead.
        """
        flag("resize", "refcheck", refcheck)
        sizes = new_shape[0] if len(new_shape) == 1 else new_shape
        if sizes is None or not new_shape:
            return
        if refusal("resize", self) is not None:
            raise ArgumentError(
                "resize: wanted an array that owns its data, got a part of another; x.copy() makes one"
            )
        shape, flat = check_sizes(sizes), flatten(self._array())
        missing = prod(shape) - flat.size
        if missing > 0:
            flat = lax.pad(flat, lax.full((), 0, flat.dtype), [(0, missing, 0)])
        self._show(lax.reshape(lax.slice_in_dim(flat, 0, prod(shape)), shape))

    def sort(
        self,
        axis: int = -1,
        kind: str | None = None,
        order: None = None,
        *,
        stable: bool | None = None,
        descending: bool = False,
    ) -> None:
        """x[...] = xarr.sort(x, axis): returns None, as NumPy's; `xarr.sort` leaves x as it is."""
        result = sorting.sort(self, axis, kind, order, stable=stable, descending=descending)
        self._show(result, ("set", ALL, "xarr.sort({part})"))

    def take(
        self, indices: ArrayLike, axis: int | None = None, out: Array | None = None, mode: str = "raise"
    ) -> Array:
        """The slices at `indices` along `axis`, or elements of the flattened array."""
        return functions.take(self, indices, axis, out, mode)

    def compress(self, condition: ArrayLike, axis: int | None = None, out: Array | None = None) -> Array:
        """The slices along `axis` for which a vector of bools holds."""
        return functions.compress(condition, self, axis, out)

    def choose(self, *choices: Any, out: Array | None = None, mode: str = "raise") -> Array:
        """choices[x[i]][i] for each index i, of one sequence of arrays or of several arrays."""
        return functions.choose(self, choices[0] if len(choices) == 1 else choices, out, mode)

    def nonzero(self) -> tuple[Array, ...]:
        """Where elements differ from 0: the indices for each dimension."""
        return searching.nonzero(self)

    def searchsorted(self, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None) -> Array:
        """Where each of `v` would go into this sorted vector."""
        return searching.searchsorted(self, v, side, sorter)

    def partition(
        self,
        kth: int | Sequence[int],
        axis: int = -1,
        kind: str = "introselect",
        order: None = None,
    ) -> None:
        """x[...] = xarr.partition(x, kth, axis): returns None, as NumPy's; `xarr.partition` leaves x as it is."""
        result: Array = namespace(None).partition(self, kth, axis, kind, order)
        self._show(result, ("set", ALL, "xarr.partition({part}, k)"))

    def argpartition(
        self,
        kth: int | Sequence[int],
        axis: int | None = -1,
        kind: str = "introselect",
        order: None = None,
    ) -> Array:
        """The indices that partition the elements along `axis`."""
        result: Array = namespace(None).argpartition(self, kth, axis, kind, order)
        return result

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The elements with equal indices in two dimensions."""
        result: Array = namespace(None).diagonal(self, offset, axis1, axis2)
        return result

    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: Array | None = None,
    ) -> Array:
        """The sum of `diagonal`."""
        result: Array = namespace(None).trace(self, offset, axis1, axis2, dtype, out)
        return result

    def __delitem__(self, index: object) -> None:
        raise ValueRangeError("the elements of an array cannot be deleted; write x = xarr.delete(x, i)")

    def __bytes__(self) -> bytes:
        # NumPy's integers without dimensions are counts to bytes(), as Python's: so many zeros.
        count = not self._node.shape and self._node.tensor_type.dtype in INTEGER
        return bytes(as_int(cast("Array", self))) if count else self.tobytes()

    @names_errors
    def view(self, dtype: Any = None, type: Any = None) -> Array:
        """A new Array, a part of this one, that holds its bits as elements of `dtype`.

        The last dimension has as many elements as its bytes hold.  Bytes other than 0 become True as bools.
        Raises ShapeError where they are not a whole number of elements, or an array without dimensions would need
        another size, DTypeError for types of less than a byte beside those of other sizes, ArgumentError for another
        class than Array.  Source: NumPy, `ndarray.view`.
        """
        return view_as(self._array(), dtype, type)

    def tobytes(self, order: str = "C") -> bytes:
        """The elements in row-major order, or with "F" column-major, as bytes.

        Source: NumPy, `ndarray.tobytes`.
        """
        return to_host(self, "tobytes").tobytes(order)  # type: ignore[arg-type]
