"""Distributions made of several normal numbers each.  Source: jax.random."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import InputError, ShapeError
from xarr.explanation.errors import broadcast_error
from xarr.lax.core import ArrayLike
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import argument
from xarr.random.continuous import normal
from xarr.random.discrete import rademacher
from xarr.random.keys import KeyLike, Shape, check_fits, one_key, sizes_of
from xarr.random.uniform_and_normal import (
    Sizes,
    draw_normal,
    draw_uniform,
    float_type,
    number,
    pair,
    shape_like,
    spread_to,
    widest_float,
)


def multivariate_normal(
    key: KeyLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Vectors of normal numbers with this mean, of shape (…, n), and covariance, of shape (…, n, n).

    shape: of the result without its last dimension; method: "cholesky", which wants a positive definite
    covariance and gives NaN for another.
    Raises ShapeError for shapes that do not fit, InputError for another method.
    Source: jax.random.multivariate_normal.
    """
    if method != "cholesky":
        raise InputError(
            f"multivariate_normal: wanted the method 'cholesky', the only one supported, got {method!r}"
        )
    center, covariance = argument(mean), argument(cov)
    _check_moments(center.shape, covariance.shape)
    common = widest_float(center.dtype, covariance.dtype)
    element = float_type("multivariate_normal", common if dtype is None else dtype)
    lead = _lead(shape, center.shape[:-1], covariance.shape[:-2])
    rank, size = len(lead), center.shape[-1]
    factor = lax.linalg.cholesky(lax.convert_element_type(covariance, common))
    factor = spread_to("multivariate_normal", factor, (*lead, size, size), common)
    drawn = draw_normal(one_key("multivariate_normal", key), (*lead, size), element)
    batch = tuple(range(rank))
    drawn = lax.convert_element_type(drawn, common)
    turned = lax.dot_general(factor, drawn, (((rank + 1,), (rank,)), (batch, batch)))
    moved = lax.add(spread_to("multivariate_normal", center, turned.shape, common), turned)
    return lax.convert_element_type(moved, element)


@names_errors
def orthogonal(
    key: KeyLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None, m: int | None = None
) -> Array:
    """Uniformly distributed matrices (*shape, n, m) with orthonormal rows, or columns where there are more rows.

    m: n if None; dtype: float, by default xarr's, or complex, for unitary matrices.
    Raises DTypeError for another type, InputError for negative sizes.
    Source: jax.random.orthogonal, by Mezzadri (2007).
    """
    rows, columns = sizes_of("orthogonal", (n, n if m is None else m))
    lead = sizes_of("orthogonal", shape)
    drawn = normal(key, (*lead, max(rows, columns), min(rows, columns)), dtype)
    q, r = lax.linalg.qr(drawn, full_matrices=False)
    rank, least = len(lead), min(rows, columns)
    row, column = (lax.broadcasted_iota(np.int64, (least, least), axis) for axis in range(2))
    inside = lax.broadcast_in_dim(lax.eq(row, column), r.shape, (rank, rank + 1))
    # The sum over the rows of what is zero but on the diagonal.
    diagonal = lax.reduce_sum(lax.select(inside, r, lax.full_like(r, 0)), (rank,))
    signs = lax.broadcast_in_dim(lax.sign(diagonal), q.shape, (*range(rank), rank + 1))
    unitary = lax.mul(q, signs)
    return lax.transpose(unitary, (*range(rank), rank + 1, rank)) if rows < columns else unitary


def _check_moments(mean: Sizes, cov: Sizes) -> None:
    if not mean or len(cov) < 2 or cov[-2:] != (mean[-1], mean[-1]):
        raise ShapeError(
            "multivariate_normal: wanted a mean of shape (…, n) and a covariance of shape (…, n, n), got "
            f"{mean} and {cov}"
        )


def _lead(shape: Shape | None, *shapes: Sizes) -> Sizes:
    if shape is not None:
        sizes = sizes_of("multivariate_normal", shape)
        check_fits("multivariate_normal", sizes, *shapes)
        return sizes
    alignment = align_numpy(*shapes)
    if isinstance(alignment, Misfit):
        raise broadcast_error("multivariate_normal", shapes, names=("mean", "cov"))
    return alignment.result


@names_errors
def maxwell(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Lengths of vectors of three normal numbers.  Source: jax.random.maxwell."""
    element, sizes = float_type("maxwell", dtype), sizes_of("maxwell", shape)
    drawn = draw_normal(one_key("maxwell", key), (*sizes, 3), element)
    return lax.sqrt(lax.reduce_sum(lax.mul(drawn, drawn), (len(sizes),)))


@names_errors
def double_sided_maxwell(
    key: KeyLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """loc + scale · sign · length of vectors of three normal numbers, with a random sign.

    As in JAX the result's shape is `shape` followed by that of the parameters, which counts twice if `shape`
    is ().  Source: jax.random.double_sided_maxwell.
    """
    element = float_type("double_sided_maxwell", dtype)
    for parameter in (loc, scale):
        refuse_dynamic("double_sided_maxwell", parameter, "maxwell and rademacher")
    own = shape_like("double_sided_maxwell", None, loc=loc, scale=scale)
    sizes = (*(sizes_of("double_sided_maxwell", shape) or own), *own)
    for_length, for_sign = pair(one_key("double_sided_maxwell", key))
    signed = lax.mul(rademacher(for_sign, sizes, element), maxwell(for_length, sizes, element))
    middle, width = (spread_to("double_sided_maxwell", value, sizes, element) for value in (loc, scale))
    return lax.add(lax.mul(signed, width), middle)


def wald(key: KeyLike, mean: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of the inverse Gaussian distribution of this mean and shape parameter 1.

    Source: jax.random.wald.
    """
    element = float_type("wald", dtype)
    sizes = shape_like("wald", shape, mean=mean)
    for_normal, for_choice = pair(one_key("wald", key))
    middle = spread_to("wald", mean, sizes, element)
    four, half = number(4, element), number(0.5, element)
    v = draw_normal(for_normal, sizes, element)
    z = draw_uniform("wald", for_choice, sizes, element)
    y, square = lax.mul(v, v), lax.mul(middle, middle)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(four, middle), y), lax.mul(square, lax.mul(y, y))))
    x = lax.sub(lax.add(middle, lax.mul(lax.mul(square, y), half)), lax.mul(lax.mul(middle, half), root))
    return lax.select(lax.le(z, lax.div(middle, lax.add(middle, x))), x, lax.div(square, x))
