"""Choices: permutations, elements of an array drawn with or without replacement, categories.  Source: jax.random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from xarr import lax
from xarr.base.host_arrays import is_weak
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import FLOAT, default_float
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError, pluralize
from xarr.ir.types import replace_at
from xarr.lax.core import ArrayLike, flag, integer
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import argument
from xarr.random.continuous import check_mode, gumbel
from xarr.random.discrete import draw_integers
from xarr.random.keys import Key, KeyLike, Shape, check_fits, one_key, random_bits, sizes_of
from xarr.random.uniform_and_normal import (
    Sizes,
    draw_uniform,
    number,
    pair,
)
from xarr.shapes import normalize_axis

_INT64: Final = np.dtype(np.int64)


def permutation(key: KeyLike, x: ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """The elements of `x` along `axis` in random order; of range(x) for an int.

    independent: shuffle each line along the axis on its own, instead of all in the same way.
    Source: jax.random.permutation.
    """
    single = one_key("permutation", key)
    if is_weak(x):
        return _shuffle(single, lax.iota(_INT64, max(integer("permutation", "x", x), 0)), 0)
    array = argument(x)
    if not array.ndim:
        raise InputError("permutation: wanted an int or an array with dimensions, got an array of rank 0")
    along = normalize_axis(axis, array.ndim)
    refuse_dynamic("permutation", array, "sort_key_val with random numbers as keys", (along,))
    if independent or array.ndim == 1:
        return _shuffle(single, array, along)
    return lax.take(array, _shuffle(single, lax.iota(_INT64, array.shape[along]), 0), axis=along)


def _shuffle(single: Key, x: Array, axis: int) -> Array:
    """Sorted by random numbers, as often as it takes to make equal ones unlikely."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        single, drawn = pair(single)
        _, x = lax.sort_key_val(random_bits(drawn, 32, x.shape), x, axis)
    return x


def choice(
    key: KeyLike,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of `a` along `axis`, or of range(a) for an int.

    shape: of the choice; replace: whether an element may be chosen again; p: probabilities, one each; mode: as of
    `gumbel`, which chooses where there is a p and no replacement.
    Raises ValueRangeError for more elements than there are, ShapeError for a p of another shape.
    Source: jax.random.choice.
    """
    single, sizes, replace = (
        one_key("choice", key),
        sizes_of("choice", shape),
        flag("choice", "replace", replace),
    )
    check_mode("choice", mode)
    array = None if is_weak(a) else argument(a)
    if array is not None and not array.ndim:
        raise InputError("choice: wanted an int or an array with dimensions for a, got an array of rank 0")
    along = 0 if array is None else normalize_axis(axis, array.ndim)
    if array is not None:
        below = "lax.take(x, randint(key, shape, 0, lax.get_dimension_size(x, axis)), axis)"
        refuse_dynamic("choice", array, below, (along,))
    count = integer("choice", "a", a) if array is None else array.shape[along]
    draws = math.prod(sizes)
    if draws and count <= 0:
        raise ValueRangeError(f"choice: wanted something to choose from, got {pluralize(count, 'element')}")
    if not replace and draws > count:
        raise ValueRangeError(
            f"choice: wanted at most {pluralize(count, 'element')} without replacement, got {draws}"
        )
    if p is None and not replace and draws:
        whole = permutation(single, count if array is None else array, along)
        drawn = lax.slice_in_dim(whole, 0, draws, axis=along)
        return lax.reshape(drawn, replace_at(drawn.shape, along, *sizes))
    indices = _drawn_indices(single, count, sizes, replace, p, mode) if draws else lax.full(sizes, 0, _INT64)
    return indices if array is None else lax.take(array, indices, axis=along)


def _drawn_indices(
    single: Key, count: int, shape: Sizes, replace: bool, p: ArrayLike | None, mode: str | None
) -> Array:
    """Draw the indices of the elements that are chosen."""
    if p is None:
        return draw_integers(single, shape, _INT64, 0, count)
    weights = argument(p)
    refuse_dynamic("the p of choice", weights, "categorical(key, log(p))")
    if weights.dtype not in FLOAT:
        weights = lax.convert_element_type(weights, default_float())
    if weights.shape != (count,):
        raise ShapeError(f"choice: wanted a probability for each of {count} elements, got {weights.shape}")
    dtype = weights.dtype
    if not replace:
        draws = math.prod(shape)
        scores = lax.add(gumbel(single, (count,), dtype, mode), lax.log(weights))
        order = lax.sort_key_val(lax.neg(scores), lax.iota(_INT64, count))[1]
        return lax.reshape(lax.slice_in_dim(order, 0, draws), shape)
    total = lax.cumsum(weights)
    u = lax.sub(number(1, dtype), draw_uniform("choice", single, shape, dtype))
    last = lax.index_in_dim(total, count - 1, keepdims=False)
    return _first_not_below(total, lax.mul(lax.broadcast_in_dim(last, shape, ()), u))


def _first_not_below(ordered: Array, values: Array) -> Array:
    """The index of the first element of `ordered` that is not below each value, by halving."""
    count = ordered.shape[0]
    low, high = (lax.full(values.shape, end, _INT64) for end in (0, count))
    for _ in range(count.bit_length()):
        middle = lax.div(lax.add(low, high), _INT64.type(2))
        open_ = lax.lt(low, high)
        below = lax.bitwise_and(open_, lax.lt(lax.take(ordered, middle, axis=0), values))
        low = lax.select(below, lax.add(middle, _INT64.type(1)), low)
        high = lax.select(lax.bitwise_and(open_, lax.bitwise_not(below)), middle, high)
    return low


@names_errors
def categorical(
    key: KeyLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Numbers of categories, whose logarithms of (not normalised) probabilities lie along `axis`.

    shape: of the result; its last dimensions must be those of `logits` without `axis`.
    replace: whether draws in the leading dimensions of `shape` may repeat a category.
    Raises ShapeError for another shape, ValueRangeError for more draws than categories.
    Source: jax.random.categorical.
    """
    array, single = argument(logits), one_key("categorical", key)
    if array.dtype not in FLOAT:
        raise DTypeError(f"categorical: wanted float logits, got {array._node.tensor_type.short()}")
    along = normalize_axis(axis, array.ndim)
    batch = tuple(size for at, size in enumerate(array.shape) if at != along)
    sizes = batch if shape is None else sizes_of("categorical", shape)
    check_fits("categorical", sizes, batch)
    lead = sizes[: len(sizes) - len(batch)]
    if sizes[len(lead) :] != batch:
        raise ShapeError(f"categorical: wanted a shape that ends in {batch}, got {sizes}")
    if not replace:
        return _without_replacement(single, array, along, lead, batch, mode)
    drawn = gumbel(single, (*lead, *array.shape), array.dtype, mode)
    own = lax.broadcast_in_dim(array, drawn.shape, range(len(lead), drawn.ndim))
    return lax.argmax(lax.add(drawn, own), len(lead) + along, _INT64)


def _without_replacement(
    single: Key, logits: Array, axis: int, lead: Sizes, batch: Sizes, mode: str | None
) -> Array:
    count, draws = logits.shape[axis], math.prod(lead)
    if draws > count:
        raise ValueRangeError(f"categorical: wanted at most {count} draws without replacement, got {draws}")
    scores = lax.neg(lax.add(logits, gumbel(single, logits.shape, logits.dtype, mode)))
    numbers = lax.broadcasted_iota(np.int32, logits.shape, axis)
    order = lax.sort_key_val(scores, numbers, axis)[1]
    best = lax.slice_in_dim(order, 0, draws, axis=axis)
    front: Sequence[int] = (axis, *[dim for dim in range(logits.ndim) if dim != axis])
    return lax.reshape(lax.transpose(best, front), (*lead, *batch))
