"""What users of xarray do on their first day, for values of NumPy and of xarr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import xarr

Call = Callable[[Any, Any], Any]

#: Of d, float64[24,5,6] by time, y and x, and n, the same with a NaN: results hold Arrays.
ARRAYS: dict[str, Call] = {
    "arithmetic": lambda d, n: (d + 1) * d.x - d.time.dt.day,
    "broadcast": lambda d, n: d - d.mean("time"),
    "alignment": lambda d, n: d[1:] + d[:-1],
    "labels": lambda d, n: d.sel(y=20.0).sel(x=[1.2, 3], method="nearest"),
    "positions": lambda d, n: d.isel(x=[0, 2], y=slice(1, 4)),
    "points": lambda d, n: d.isel(x=xr.DataArray([0, 1], dims="p"), y=xr.DataArray([1, 2], dims="p")),
    "points by label": lambda d, n: d.sel(x=xr.DataArray([0.0, 5.0], dims="p"), y=20.0),
    "dates": lambda d, n: d.sel(time=slice("2024-01-03", "2024-01-09")),
    "mask of labels": lambda d, n: d[:, d.y.values > 10],
    "assignment": lambda d, n: _assign(d),
    "where": lambda d, n: xr.where(d.where(d > 0, 0) > 1, d, -d).where(d.y > 10, drop=True),
    "missing values": lambda d, n: n.fillna(0) + n.isnull() + n.notnull() + n.count(),
    "dropna": lambda d, n: n.dropna("time"),
    "clip": lambda d, n: d.clip(-1, 1) + d.isin([1.0]),
    **{
        f"{name} without NaN": lambda d, n, name=name: getattr(n, name)("time")
        for name in (
            "sum",
            "mean",
            "std",
            "var",
            "min",
            "max",
            "median",
            "prod",
            "argmax",
            "argmin",
            "cumsum",
            "any",
        )
    },
    "skipna": lambda d, n: n.mean("time", skipna=False) + n.sum("time", min_count=2),
    "quantile": lambda d, n: n.quantile([0.3, 0.5], "time"),
    "idxmax": lambda d, n: d.idxmax("x"),
    "shift": lambda d, n: d.shift(time=1) + d.roll(x=1) + d.diff("time"),
    "derivatives": lambda d, n: d.differentiate("x") + d.integrate("x") + d.cumulative_integrate("x"),
    "dot": lambda d, n: xr.dot(d, d.isel(time=0), dim="x") + d @ d.isel(time=0),
    "correlation": lambda d, n: xr.cov(d, d, "time") + xr.corr(d, n, "time"),
    "weights": lambda d, n: d.weighted(d.y).mean("y") + d.weighted(d.y).std("y"),
    "polyfit": lambda d, n: d.polyfit("y", 1, skipna=False).polyfit_coefficients,
    "groupby": lambda d, n: d.groupby("lab").mean() + d.groupby("lab").median() + d.groupby("lab").first(),
    "groupby months": lambda d, n: d.groupby("time.month").sum(),
    "anomalies": lambda d, n: d.groupby("time.dayofweek") - d.groupby("time.dayofweek").mean("time"),
    "groupby bins": lambda d, n: d.groupby_bins("y", [0, 15, 40]).max(),
    "groupby map": lambda d, n: d.groupby("lab").map(lambda g: g - g.mean()),
    "resample": lambda d, n: d.resample(time="W").mean() + d.resample(time="5D").max().isel(time=0),
    "resample to more": lambda d, n: d.resample(time="12h").ffill() + d.resample(time="12h").nearest(),
    "rolling": lambda d, n: d.rolling(time=3).mean() + d.rolling(time=3, center=True).sum(),
    "rolling extremes": lambda d, n: d.rolling(time=3, min_periods=1).max() - d.rolling(time=3).median(),
    "rolling in two dimensions": lambda d, n: d.rolling(x=3, y=3, center=True).std(),
    "rolling windows": lambda d, n: d.rolling(time=3).construct("w"),
    "coarsen": lambda d, n: d.coarsen(time=3).mean() + d.coarsen(time=5, boundary="trim").max().isel(time=0),
    "reindex": lambda d, n: d.reindex(x=[0, 1, 9]) + d.reindex_like(d.isel(x=slice(2))),
    "transpose": lambda d, n: d.transpose("x", "y", "time").T,
    "stack": lambda d, n: d.stack(z=("y", "x"))[:, 1:].unstack("z"),
    "expand": lambda d, n: d.expand_dims(e=3).isel(x=[0]).squeeze(),
    "concat": lambda d, n: xr.concat(
        [d.drop_vars("lab"), d.drop_vars("lab")[:, :, 2:4]], "time", join="outer"
    ),
    "merge": lambda d, n: xr.merge([d, (d * 2).rename("w")]).w + n.combine_first(d),
    "pad": lambda d, n: d.pad(x=1).fillna(0) + d.drop_vars("lab").pad(x=1, mode="reflect").data,
    "sort": lambda d, n: d.sortby("x", ascending=False) + d.argsort(axis=0),
    "ufuncs": lambda d, n: np.sin(d).astype("f4").round(2) + (d + 1j).real,
    "apply_ufunc": lambda d, n: xr.apply_ufunc(
        lambda a: a - a.mean(-1, keepdims=True), d, input_core_dims=[["x"]], output_core_dims=[["x"]]
    ),
    "a jitted function": lambda d, n: xr.apply_ufunc(_jitted, d),
    "like": lambda d, n: xr.full_like(d, 3.0) + xr.zeros_like(d) + xr.broadcast(d.isel(time=0), d)[0],
    "datasets": lambda d, n: xr.Dataset({"a": d, "b": 2 * d}).mean("time").to_dataarray(),
    "coordinates": lambda d, n: d.assign_coords(z=d * 2).z.swap_dims(x="lab"),
    "copies": lambda d, n: d.copy(deep=True).drop_duplicates("time").head(time=3).thin(x=2),
    "iteration": lambda d, n: list(d)[1],
    "chunks": lambda d, n: (d.chunk(time=6) - d.mean("time")).compute(),
    "chunks by group": lambda d, n: d.chunk(time=6).groupby("time.dayofweek").mean().compute(),
    "chunks and windows": lambda d, n: d.chunk(time=6).rolling(time=3).mean().compute(),
    "chunks of weeks": lambda d, n: d.chunk(time=6).resample(time="W").mean().compute(),
    "chunks of a jitted function": lambda d, n: xr.apply_ufunc(
        _jitted, d.chunk(time=6), dask="parallelized", output_dtypes=[float]
    ).compute(),
    "map_blocks": lambda d, n: d.chunk(time=6).map_blocks(lambda b: b * 2).compute(),
    "chunks and quantiles": lambda d, n: d.chunk(time=6, x=6, y=5).quantile(0.3, "x").compute(),
}

#: xarray calls SciPy, pandas or numpy.vectorize, which return NumPy arrays, and the words for the page.
NUMPYS: dict[str, tuple[Call, str]] = {
    "interp": (lambda d, n: d.interp(x=[0.5, 1.5]), "scipy.interpolate"),
    "interpolate_na": (lambda d, n: n.interpolate_na("time"), "numpy.vectorize"),
    "polyfit with NaN": (lambda d, n: n.polyfit("y", 1).polyfit_coefficients, "numpy.empty"),
    "curvefit": (lambda d, n: d.curvefit("x", lambda x, a: a * x).curvefit_coefficients, "scipy.optimize"),
    "vectorize": (
        lambda d, n: xr.apply_ufunc(lambda a: a.sum(), d, input_core_dims=[["x"]], vectorize=True),
        "numpy.vectorize",
    ),
}

_jitted = xarr.jit(lambda a: xarr.sin(a) * 2)


def _assign(d: Any) -> Any:
    d = d.copy()
    d[0] = 0
    d[:, 1] = d[:, 2]
    d.loc[{"y": 20.0}] = 5
    d[{"y": [0, 2], "x": [1, 3]}] = 7
    d[{"y": xr.DataArray([0, 1], dims="p"), "x": xr.DataArray([0, 1], dims="p")}] = 9
    return d
