"""Methods of Array that reduce and accumulate: each is the function of the same name."""

from __future__ import annotations

from xarr.arrays.operators import as_method
from xarr.numpy_api.sorting import searching
from xarr.numpy_api.statistics import reductions as statistical
from xarr.runtime.handles import Handle


class ReductionMethods(Handle):
    """The part of Array that is about sums, extremes and means over dimensions."""

    __slots__ = ()

    sum = as_method(statistical.sum, "Sum over `axis`.")
    prod = as_method(statistical.prod, "Product over `axis`.")
    cumsum = as_method(
        statistical.cumsum,
        "The sum of the elements up to each one along `axis`, by default of all in one dimension.",
    )
    cumprod = as_method(statistical.cumprod, "The product of the elements up to each one along `axis`.")
    mean = as_method(statistical.mean, "Mean over `axis`.")
    var = as_method(statistical.var, "Variance over `axis`.")
    std = as_method(statistical.std, "Standard deviation over `axis`.")
    max = as_method(statistical.max, "Largest element over `axis`.")
    min = as_method(statistical.min, "Smallest element over `axis`.")
    all = as_method(statistical.all, "Whether all elements over `axis` are true.")
    any = as_method(statistical.any, "Whether any element over `axis` is true.")
    argmax = as_method(searching.argmax, "Index of the first largest element along `axis`.")
    argmin = as_method(searching.argmin, "Index of the first smallest element along `axis`.")
