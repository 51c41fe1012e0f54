"""Calls of `dask.array` that users make on their first day, for chunks of NumPy and of xarr."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

import xarr

Call = Callable[[Any, Any], Any]

#: Of d, float32[60,40] in chunks of (20,20), and v, float64[500] in chunks of 100: Arrays, and Dask says so.
ARRAYS: dict[str, Call] = {
    "d": lambda d, v: d,
    "d + 1": lambda d, v: 1 + d + 1,
    "d - mean": lambda d, v: d - d.mean(axis=0),
    "d * numpy": lambda d, v: d * np.ones(40, "f4") + np.ones(40, "f4") * d,
    "d * xarr": lambda d, v: d * xarr.ones(40, dtype="f4") + xarr.ones(40, dtype="f4") * d,
    "powers and signs": lambda d, v: abs(-d) ** 2 // 3 % 2,
    "~": lambda d, v: ~(d > 0) & (d < 1) | (d == 2),
    "slice": lambda d, v: d[10:50:3, ::-1],
    "list": lambda d, v: d[[3, 1, 2]],
    "integers": lambda d, v: d[da.from_array(xarr.asarray([3, 50, 1]), chunks=2)],
    "vindex": lambda d, v: d.vindex[[1, 2, 50], [3, 4, 5]],
    "newaxis": lambda d, v: d[:, None, ..., 0],
    "blocks": lambda d, v: d.blocks[1],
    "set items": lambda d, v: _set_items(d),
    "set mask": lambda d, v: _set_mask(d),
    "np.sin": lambda d, v: np.sin(d),
    "two results": lambda d, v: da.frexp(da.modf(d)[0])[0],
    "logaddexp": lambda d, v: da.logaddexp(d, d),
    "sum": lambda d, v: d.sum(),
    "sum of an axis": lambda d, v: d.sum(axis=0, keepdims=True),
    "mean": lambda d, v: d.mean(axis=1),
    "std": lambda d, v: d.std(),
    "var": lambda d, v: d.var(axis=0, ddof=1),
    "max": lambda d, v: d.max(axis=0) - d.min(),
    "argmax": lambda d, v: d.argmax(axis=0) + d.argmin(),
    "any": lambda d, v: (d > 2).any(axis=0) & (d > 2).all(),
    "prod": lambda d, v: d.prod(axis=0),
    "nansum": lambda d, v: da.nansum(_with_nan(d), axis=0),
    "nanmean": lambda d, v: da.nanmean(_with_nan(d), axis=0),
    "nanstd": lambda d, v: da.nanstd(_with_nan(d)) + da.nanvar(_with_nan(d), axis=0),
    "nanmax": lambda d, v: da.nanmax(_with_nan(d), axis=0) - da.nanmin(_with_nan(d)),
    "nanprod": lambda d, v: da.nanprod(_with_nan(d), axis=0),
    "nanargmax": lambda d, v: da.nanargmax(_with_nan(d), axis=0) + da.nanargmin(_with_nan(d), axis=0),
    "nancumsum": lambda d, v: da.nancumsum(_with_nan(d), axis=0),
    "moment": lambda d, v: d.moment(3),
    "ptp": lambda d, v: da.ptp(d, axis=0),
    "median": lambda d, v: da.median(d, axis=0) + da.nanmedian(d, axis=0),
    "nanquantile": lambda d, v: da.nanquantile(d, 0.3, axis=0),
    "percentile": lambda d, v: da.percentile(v, 50),
    "percentiles": lambda d, v: da.percentile(v, [25, 50, 75]),
    "percentile of integers": lambda d, v: da.percentile((v * 9).astype(int), [10, 90]),
    "topk": lambda d, v: da.topk(d, 3, axis=0) + da.argtopk(d, -3, axis=0),
    "cov": lambda d, v: da.cov(d[:9]) + da.corrcoef(d[:9]),
    "average": lambda d, v: da.average(d, axis=0, weights=np.arange(60)),
    "cumsum": lambda d, v: d.cumsum(axis=0) + d.cumprod(axis=1),
    "diff": lambda d, v: da.diff(d, axis=0),
    "ediff1d": lambda d, v: da.ediff1d(v),
    "transpose": lambda d, v: d.T.reshape(-1).ravel(),
    "rechunk": lambda d, v: d.rechunk((7, 40)),
    "concatenate": lambda d, v: np.concatenate([d, da.vstack([d, d])]),
    "stack": lambda d, v: da.stack([d, d]) + da.dstack([d, d]).transpose(2, 0, 1),
    "block": lambda d, v: da.block([[d, d], [d, d]]),
    "roll": lambda d, v: da.roll(da.flip(d, 0), 3, axis=0) + da.rot90(d, 2),
    "tile": lambda d, v: da.tile(da.repeat(d, 2, axis=0), (2, 1)),
    "pad": lambda d, v: da.pad(d, 1) + da.pad(d, 1, mode="edge") + da.pad(d, 1, mode="reflect"),
    "pad by wrapping": lambda d, v: da.pad(d, 2, mode="wrap") + da.pad(d, 2, mode="linear_ramp"),
    "broadcast": lambda d, v: da.broadcast_to(d, (2, 60, 40)) + da.broadcast_arrays(d, d[0])[1],
    "move axes": lambda d, v: da.moveaxis(da.swapaxes(d, 0, 1), 0, 1) + d[:, None].squeeze(),
    "take": lambda d, v: da.take(d, [1, 2], axis=0) + da.delete(d, [1, 2], axis=0)[:2],
    "insert": lambda d, v: da.insert(d, 1, 0, axis=0),
    "compress": lambda d, v: da.compress(np.arange(60) % 2 == 0, d, axis=0),
    "matmul": lambda d, v: d @ d.T,
    "products": lambda d, v: da.dot(d, d.T) + da.tensordot(d, d, axes=((1,), (1,))),
    "einsum": lambda d, v: da.einsum("ij,kj->ik", d, d),
    "outer": lambda d, v: da.outer(d[0], d[1]) * da.vdot(d, d),
    "matmul of stacks": lambda d, v: da.matmul(da.stack([d, d]), d.T),
    "triangles": lambda d, v: da.tril(d) + da.triu(d, 1),
    "diagonal": lambda d, v: da.diag(v[:50].rechunk(10)) + da.diagonal(d)[0],
    "where": lambda d, v: da.where(d > 0, d, 0) + np.where(d > 0, d, 1),
    "clip": lambda d, v: da.clip(d, -1, 1) + d.clip(-1, 1),
    "select": lambda d, v: da.select([d > 1, d < 0], [d, -d], 0) + da.choose((d > 0).astype(int), [d, -d]),
    "piecewise": lambda d, v: da.piecewise(d, [d < 0, d >= 0], [lambda x: -x, lambda x: x]),
    "isclose": lambda d, v: da.isclose(d, d) & da.allclose(d, d),
    "isin": lambda d, v: da.isin(d.astype(int), [1, 2]),
    "round": lambda d, v: d.round(2) + da.around(d, 1) + da.fix(d) + da.nan_to_num(d),
    "special": lambda d, v: da.i0(d) + da.sinc(d),
    "complex": lambda d, v: da.angle(da.conj(d * 1j)) + da.real(d * 1j) + da.imag(d * 1j),
    "digitize": lambda d, v: da.digitize(d, np.array([-1, 0, 1])),
    "searchsorted": lambda d, v: da.searchsorted(da.from_array(np.arange(10), chunks=5), v),
    "astype": lambda d, v: d.astype("f8") + d.view("i4").astype("f4"),
    "map_blocks": lambda d, v: d.map_blocks(lambda b: b * 2),
    "map_blocks of a jitted function": lambda d, v: d.map_blocks(_jitted),
    "map_blocks to other shapes": lambda d, v: d.map_blocks(lambda b: b[None], new_axis=0, dtype="f4"),
    "map_overlap": lambda d, v: d.map_overlap(lambda b: xarr.roll(b, 1, 0), depth=2, boundary="reflect"),
    "map_overlap of a constant": lambda d, v: d.map_overlap(lambda b: b + 1, depth=1, boundary=0),
    "apply_gufunc": lambda d, v: da.apply_gufunc(
        lambda x: (x.mean(-1), x.std(-1)), "(i)->(),()", d.rechunk((20, 40)), output_dtypes=("f4", "f4")
    )[1],
    "blockwise": lambda d, v: da.blockwise(operator.add, "ij", d, "ij", d, "ij", dtype="f4"),
    "reduction": lambda d, v: da.reduction(d, chunk=np.max, aggregate=np.max, dtype="f4", axis=0),
    "sliding windows": lambda d, v: da.lib.stride_tricks.sliding_window_view(d, 3, axis=0).mean(axis=-1),
    "bincount": lambda d, v: da.bincount(abs(v * 3).astype(int), weights=v, minlength=20),
    "unique": lambda d, v: da.unique((v * 3).astype(int)),
    "union": lambda d, v: da.union1d((v * 3).astype(int), (v * 2).astype(int)),
    "count_nonzero": lambda d, v: da.count_nonzero(d > 0),
    "unravel_index": lambda d, v: da.stack(da.unravel_index((abs(v) * 3).astype(int), (20, 20))),
    "svd": lambda d, v: da.linalg.svd(d.rechunk((15, 40)))[1],
    "svd_compressed": lambda d, v: da.linalg.svd_compressed(d, 40, seed=1, n_power_iter=4)[1][:2],
    "qr": lambda d, v: abs(da.linalg.qr(d.rechunk((30, 40)))[1]),
    "cholesky": lambda d, v: da.linalg.cholesky(_positive(d)),
    "norms": lambda d, v: da.linalg.norm(d) + np.linalg.norm(d, 1) + da.linalg.norm(d, axis=1)[0],
    "fftshift": lambda d, v: da.fft.fftshift(d),
    "like": lambda d, v: da.ones_like(d) + da.zeros_like(d) + da.full_like(d, 3) + 0 * da.empty_like(d),
    "arange like": lambda d, v: da.arange(100, chunks=30, like=d._meta),
    "overlap": lambda d, v: da.overlap.trim_internal(
        da.overlap.overlap(d, {0: 2, 1: 2}, {0: 0, 1: 0}), {0: 2, 1: 2}
    ),
    "shuffle": lambda d, v: d.shuffle([[1, 2], [0, 3]], axis=0),
    "persist": lambda d, v: d.persist(),
}

#: Results are Arrays, but Dask guesses NumPy's: it makes its empty stand-in with NumPy, or a call of no elements fails.
ARRAYS_UNTOLD: dict[str, Call] = {
    "mask": lambda d, v: d[d > 0],
    "rows by a mask": lambda d, v: da.extract(d > 0, d),
    "quantile": lambda d, v: da.quantile(d, 0.3, axis=0),
    "cumsum in a tree": lambda d, v: da.cumsum(d, axis=0, method="blelloch"),
    "gradient": lambda d, v: da.gradient(d, axis=0),
    "apply_along_axis": lambda d, v: da.apply_along_axis(lambda x: x.sum(), 0, d),
    "block_info": lambda d, v: d.map_blocks(
        lambda b, block_info=None: b * block_info[0]["array-location"][0][0], dtype=d.dtype
    ),
    "coarsen": lambda d, v: da.coarsen(np.mean, d, {0: 2, 1: 2}),
    "histogram": lambda d, v: da.histogram(v, bins=10, range=(-3, 3), weights=v)[0],
    "density": lambda d, v: da.histogram(v, bins=np.linspace(-3, 3, 11), density=True)[0],
    "fft": lambda d, v: da.fft.fft(d.rechunk((60, 20)), axis=0),
    "rfft2": lambda d, v: da.fft.rfft2(d.rechunk(-1)),
}

#: Dask or SciPy makes NumPy arrays, whatever the chunks are, and why.
NUMPYS: dict[str, tuple[Call, str]] = {
    "isnull": (lambda d, v: da.isnull(d), "pandas decides; da.isnan gives Arrays"),
    "histogram2d": (
        lambda d, v: da.histogram2d(v, v, 5, ((-3, 3), (-3, 3)))[0],
        "Dask adds tuples of results",
    ),
    "argwhere": (lambda d, v: da.argwhere(d > 1), "Dask counts the indices with NumPy"),
    "nonzero": (lambda d, v: da.nonzero(d > 1)[0], "as argwhere"),
    "lu": (lambda d, v: da.linalg.lu(_positive(d))[2], "scipy.linalg, which returns NumPy arrays"),
    "inv": (lambda d, v: da.linalg.inv(_positive(d)), "as lu"),
    "solve": (lambda d, v: da.linalg.solve(_positive(d), d[:40, 0].rechunk(20)), "as lu"),
    "lstsq": (lambda d, v: da.linalg.lstsq(d.rechunk((30, 40)), d[:, 0])[0], "as lu"),
}

_jitted = xarr.jit(lambda b: xarr.sin(b) * 2 + 1)


def _with_nan(d: Any) -> Any:
    return da.where(d > 2, np.float32(np.nan), d)


def _positive(d: Any) -> Any:
    """A positive definite matrix (40, 40)."""
    return (d.T @ d + 100 * da.eye(40, chunks=20, dtype="f4")).rechunk((20, 20))


def _set_items(d: Any) -> Any:
    d = d.copy()
    d[2:5] = 0
    d[:, 3] = 7
    d[0] = np.arange(40)
    return d


def _set_mask(d: Any) -> Any:
    d = d.copy()
    d[d > 0] = 0
    return d
