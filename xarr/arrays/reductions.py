"""Methods of Array that reduce and accumulate: each is the function of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xarr.base.typing import Array
from xarr.numpy_api.sorting import searching
from xarr.numpy_api.statistics import reductions as statistical
from xarr.runtime.handles import Handle

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


Axis = int | tuple[int, ...] | None


class ReductionMethods(Handle):
    """The part of Array that is about sums, extremes and means over dimensions."""

    __slots__ = ()

    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Array | None = None,
        *rest: Any,
        **options: Any,
    ) -> Array:
        """Sum over `axis`."""
        return statistical.sum(self, axis, dtype, out, *rest, **options)

    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Array | None = None,
        *rest: Any,
        **options: Any,
    ) -> Array:
        """Product over `axis`."""
        return statistical.prod(self, axis, dtype, out, *rest, **options)

    def cumsum(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None
    ) -> Array:
        """The sum of the elements up to each one along `axis`, by default of all in one dimension."""
        return statistical.cumsum(self, axis, dtype, out)

    def cumprod(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None
    ) -> Array:
        """The product of the elements up to each one along `axis`."""
        return statistical.cumprod(self, axis, dtype, out)

    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Array | None = None,
        *rest: Any,
        **options: Any,
    ) -> Array:
        """Mean over `axis`."""
        return statistical.mean(self, axis, dtype, out, *rest, **options)

    def var(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Array | None = None,
        *rest: Any,
        **options: Any,
    ) -> Array:
        """Variance over `axis`."""
        return statistical.var(self, axis, dtype, out, *rest, **options)

    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Array | None = None,
        *rest: Any,
        **options: Any,
    ) -> Array:
        """Standard deviation over `axis`."""
        return statistical.std(self, axis, dtype, out, *rest, **options)

    def max(self, axis: Axis = None, out: Array | None = None, *rest: Any, **options: Any) -> Array:
        """Largest element over `axis`."""
        return statistical.max(self, axis, out, *rest, **options)

    def min(self, axis: Axis = None, out: Array | None = None, *rest: Any, **options: Any) -> Array:
        """Smallest element over `axis`."""
        return statistical.min(self, axis, out, *rest, **options)

    def all(self, axis: Axis = None, out: Array | None = None, *rest: Any, **options: Any) -> Array:
        """Whether all elements over `axis` are true."""
        return statistical.all(self, axis, out, *rest, **options)

    def any(self, axis: Axis = None, out: Array | None = None, *rest: Any, **options: Any) -> Array:
        """Whether any element over `axis` is true."""
        return statistical.any(self, axis, out, *rest, **options)

    def argmax(self, axis: int | None = None, out: Array | None = None, **options: Any) -> Array:
        """Index of the first largest element along `axis`."""
        return searching.argmax(self, axis, out, **options)

    def argmin(self, axis: int | None = None, out: Array | None = None, **options: Any) -> Array:
        """Index of the first smallest element along `axis`."""
        return searching.argmin(self, axis, out, **options)
