"""Arrays in the DataArrays and Datasets of xarray."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import xarr

xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")
from tests.chunks import xarray_calls

mpl.use("Agg")
from matplotlib import pyplot as plt

pytestmark = [pytest.mark.usefixtures("on_numpy"), pytest.mark.implicit]

VALUES = np.random.default_rng(0).standard_normal((24, 5, 6))
WITH_NAN = VALUES.copy()
WITH_NAN[3, 2, 1] = np.nan


def data_array(values: Any) -> Any:
    """A DataArray of values by 24 days, y and x, with labels along x."""
    coordinates = {
        "time": pd.date_range("2024-01-01", periods=24, freq="D"),
        "y": np.arange(5.0) * 10,
        "x": np.arange(6.0),
        "lab": ("x", list("aabbcc")),
    }
    return xr.DataArray(values, dims=("time", "y", "x"), coords=coordinates, name="v")


def both(call: xarray_calls.Call) -> tuple[Any, Any]:
    """The results of a call on values of NumPy and of xarr."""
    own = data_array(xarr.asarray(VALUES)), data_array(xarr.asarray(WITH_NAN))
    with dask.config.set(scheduler="synchronous"):
        return call(data_array(VALUES), data_array(WITH_NAN)), call(*own)


@pytest.mark.parametrize("name", xarray_calls.ARRAYS)
def test_results_hold_arrays(name: str) -> None:
    wanted, got = both(xarray_calls.ARRAYS[name])
    assert type(got.data) is xarr.Array
    assert got.dims == wanted.dims and got.dtype == wanted.dtype
    xr.testing.assert_allclose(got.as_numpy(), wanted, rtol=1e-9)


@pytest.mark.parametrize("name", xarray_calls.NUMPYS)
def test_numpy_arrays_where_a_library_makes_them_and_the_way_back(name: str) -> None:
    call, _reason = xarray_calls.NUMPYS[name]
    wanted, got = both(call)
    assert type(got.data) is np.ndarray
    xr.testing.assert_allclose(got, wanted, rtol=1e-6)
    assert type(xr.apply_ufunc(xarr.asarray, got).data) is xarr.Array


def test_without_the_adapter_assignments_go_to_other_elements() -> None:
    """The reason for it: xarray's own method broadcasts positions that it means one by one."""
    from xarray.core.indexing import ArrayApiIndexingAdapter, OuterIndexer

    d = xarr.zeros((4, 5))
    general = ArrayApiIndexingAdapter._oindex_set.__wrapped__
    general(ArrayApiIndexingAdapter(d), OuterIndexer((np.array([0, 2]), np.array([1, 3]))), 7)
    assert int((d == 7).sum()) == 2
    own = xr.DataArray(xarr.zeros((4, 5)), dims=("y", "x"))
    own[{"y": [0, 2], "x": [1, 3]}] = 7
    assert int((own == 7).sum()) == 4


def test_arrays_of_the_standard_keep_xarrays_adapter() -> None:
    strict = pytest.importorskip("array_api_strict")
    d = xr.DataArray(strict.zeros((4, 5)), dims=("y", "x"))
    with pytest.raises(TypeError, match="Vectorized indexing is not supported"):
        d.isel(y=xr.DataArray([0, 1], dims="p"), x=xr.DataArray([0, 1], dims="p"))


def test_zarr_keeps_the_values(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    d = data_array(xarr.asarray(VALUES)).drop_vars("lab")  # of texts, for which Zarr 3 has no standard yet
    d.to_zarr(tmp_path / "store", consolidated=False)
    again = xr.open_dataarray(tmp_path / "store", engine="zarr", consolidated=False, chunks={})
    np.testing.assert_array_equal(again.to_numpy(), VALUES)
    own = again.map_blocks(lambda b: b.copy(data=xarr.asarray(b.data)), template=again)
    assert type(own.mean("time").compute().data) is xarr.Array


def test_netcdf_keeps_the_values(tmp_path: Path) -> None:
    d = data_array(xarr.asarray(VALUES))
    d.to_netcdf(tmp_path / "file.nc", engine="scipy")
    with xr.open_dataarray(tmp_path / "file.nc", engine="scipy") as again:
        np.testing.assert_array_equal(again.to_numpy(), VALUES)


def test_pandas_pickles_and_dicts_keep_the_values() -> None:
    d = data_array(xarr.asarray(VALUES))
    np.testing.assert_array_equal(d.isel(time=0).to_pandas().to_numpy(), VALUES[0])
    np.testing.assert_array_equal(d.to_series().to_numpy(), VALUES.ravel())
    np.testing.assert_array_equal(d.to_dataframe().v.to_numpy(), VALUES.ravel())
    np.testing.assert_array_equal(np.asarray(d.to_dict()["data"]), VALUES)
    again = pickle.loads(pickle.dumps(d))
    assert type(again.data) is xarr.Array and again.identical(d)


def test_plots() -> None:
    d = data_array(xarr.asarray(VALUES))
    for draw in (
        lambda: d.isel(time=0).plot(),
        lambda: d.isel(time=0, x=0).plot(),
        lambda: d.plot.hist(),
        lambda: d.isel(time=slice(0, 4)).plot(col="time"),
        lambda: d.isel(time=0).plot.contourf(),
        lambda: d.to_dataset().isel(time=0).plot.scatter(x="x", y="v"),
    ):
        draw()
        plt.gcf().canvas.draw()
        plt.close("all")


def test_texts_show_values() -> None:
    d = data_array(xarr.asarray(VALUES))
    assert "xarr" in repr(d) or "Array" in repr(d)
    assert "<div" in d._repr_html_()


@pytest.mark.parametrize("first", ["xarray, xarr", "xarr, xarray"])
def test_xarray_indexes_arrays_whichever_is_imported_first(first: str) -> None:
    code = (
        f"import {first}; p = xarray.DataArray([0, 2], dims='p');"
        "d = xarray.DataArray(xarr.arange(9).reshape(3, 3), dims=('y', 'x')).isel(y=p, x=p);"
        "assert d.data.tolist() == [0, 8] and type(d.data).__name__ == 'Array'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
