"""Arrays as chunks of `dask.array`: results are those of NumPy's chunks, and Arrays from end to end."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.errors import ShapeError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
from tests.chunks import dask_calls

pytestmark = [pytest.mark.usefixtures("on_numpy"), pytest.mark.implicit]

RNG = np.random.default_rng(0)
D = RNG.standard_normal((60, 40)).astype("f4")
V = RNG.standard_normal(500)


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    """Tasks run in the thread of the test, where its settings hold."""
    with dask.config.set(scheduler="synchronous"):
        yield


def both(call: dask_calls.Call) -> tuple[Any, Any]:
    """The dask arrays of a call, of chunks of NumPy and of xarr."""
    own = da.from_array(xarr.asarray(D), chunks=20), da.from_array(xarr.asarray(V), chunks=100)
    return call(da.from_array(D, chunks=20), da.from_array(V, chunks=100)), call(*own)


def assert_close(got: Any, wanted: Any) -> None:
    """Values within the accuracy of float32 after a reduction; the order of sums may differ."""
    assert np.asarray(got).shape == np.asarray(wanted).shape
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", dask_calls.ARRAYS)
def test_arrays_from_end_to_end(name: str) -> None:
    wanted, got = both(dask_calls.ARRAYS[name])
    assert type(got._meta) is xarr.Array
    value = got.compute()
    assert type(value) is xarr.Array and value.dtype == got.dtype == wanted.dtype
    assert_close(value, wanted.compute())


@pytest.mark.parametrize("name", dask_calls.ARRAYS_UNTOLD)
def test_arrays_though_dask_guesses_numpys(name: str) -> None:
    wanted, got = both(dask_calls.ARRAYS_UNTOLD[name])
    value = got.compute()
    assert type(value) is xarr.Array
    assert_close(value, wanted.compute())


@pytest.mark.parametrize("name", dask_calls.NUMPYS)
def test_numpy_arrays_where_dask_or_scipy_makes_them_and_the_way_back(name: str) -> None:
    call, _reason = dask_calls.NUMPYS[name]
    wanted, got = both(call)
    assert_close(got.compute(), wanted.compute())
    back = got.to_backend("xarr")
    assert type(back._meta) is type(back.compute()) is xarr.Array
    assert_close(back.compute(), wanted.compute())


def test_wrong_values_are_noticed() -> None:
    with pytest.raises(AssertionError):
        assert_close(xarr.ones(3), np.ones(3) * 1.01)
    with pytest.raises(AssertionError):
        assert_close(xarr.ones(3), np.ones((1, 3)))


def test_counts_of_unique_values_are_refused_by_dask_and_work_on_numpys_chunks() -> None:
    d = da.from_array(xarr.asarray([2, 1, 2, 2]), chunks=2)
    with pytest.raises(ValueError, match="does not support"):
        da.unique(d, return_counts=True)
    values, counts = da.unique(d.to_backend("numpy"), return_counts=True)
    assert (values.compute().tolist(), counts.compute().tolist()) == ([1, 2], [1, 3])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "complex64"])
def test_chunks_of_each_rank_and_type(shape: tuple[int, ...], dtype: str) -> None:
    x = xarr.ones(shape, dtype=dtype)
    d = da.from_array(x, chunks=2)
    got = da.concatenate([d, d]) if shape else da.stack([d, d])
    value = got.compute()
    assert type(value) is xarr.Array and value.dtype == x.dtype
    assert value.shape == got.shape and bool((value == 1).all())


def test_nans_and_zeros_with_signs_keep_their_bits() -> None:
    values = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf])
    got = np.asarray(da.from_array(xarr.asarray(values), chunks=2).rechunk(3)[::-1].compute())
    np.testing.assert_array_equal(got.view("i8"), values[::-1].view("i8"))


def test_empty_chunks_have_no_percentile() -> None:
    d = da.from_array(xarr.asarray(V), chunks=((0, 300, 0, 200),))
    got = da.percentile(d, [0, 50, 100]).compute()
    assert type(got) is xarr.Array
    wanted = da.percentile(da.from_array(V, chunks=((300, 200),)), [0, 50, 100]).compute()
    np.testing.assert_array_equal(np.asarray(got), wanted)


def test_the_extreme_of_no_elements_is_refused_in_words_that_dask_knows() -> None:
    with pytest.raises(
        ShapeError, match="zero-size array to reduction operation max has no value; give init"
    ):
        np.max(xarr.zeros((0, 2)), axis=0)


MAKERS = {
    "ones": lambda: da.ones((4, 5), chunks=2),
    "zeros": lambda: da.zeros((4, 5), chunks=2),
    "full": lambda: da.full((4, 5), 2.5, chunks=2),
    "arange": lambda: da.arange(2, 10, chunks=3),
    "random": lambda: da.random.random((4, 4), chunks=2) * 0,
    "normal": lambda: da.random.default_rng(0).normal(size=(4, 4), chunks=2),
    "integers": lambda: da.random.default_rng(1).integers(0, 9, size=(4,), chunks=2),
    "random state": lambda: da.random.RandomState(0).normal(size=4, chunks=2),
}


@pytest.mark.parametrize("name", MAKERS)
def test_dask_makes_arrays_of_the_configured_backend(name: str) -> None:
    with dask.config.set({"array.backend": "xarr"}):
        got = MAKERS[name]()
        assert type(got._meta) is type(got.compute()) is xarr.Array
    wanted = MAKERS[name]().compute()
    assert type(wanted) is np.ndarray and wanted.dtype == got.dtype
    np.testing.assert_array_equal(np.asarray(got.compute()), wanted)


def test_empty_arrays_of_the_configured_backend_have_a_shape() -> None:
    with dask.config.set({"array.backend": "xarr"}):
        got = da.empty((3, 4), chunks=2, dtype="i4")
    assert type(got.compute()) is xarr.Array and (got.compute().shape, got.dtype) == ((3, 4), np.int32)


def test_the_bit_generator_is_numpys_and_is_pickled() -> None:
    with dask.config.set({"array.backend": "xarr"}):
        rng = da.random.default_rng(3)
    again = pickle.loads(pickle.dumps(rng))
    wanted = da.random.default_rng(3).normal(size=6, chunks=3).compute()
    np.testing.assert_array_equal(np.asarray(again.normal(size=6, chunks=3).compute()), wanted)


def test_chunks_go_to_xarr_and_to_numpy() -> None:
    there = da.from_array(D, chunks=20).to_backend("xarr")
    assert "chunktype=xarr.Array" in repr(there)
    back = there.to_backend("numpy")
    assert type(back._meta) is type(back.compute()) is np.ndarray
    np.testing.assert_array_equal(back.compute(), D)


def test_arrays_are_stored_in_numpy_arrays() -> None:
    target = np.zeros_like(D)
    (da.from_array(xarr.asarray(D), chunks=20) * 2).store(target)
    np.testing.assert_array_equal(target, 2 * D)


def test_arrays_make_dataframes() -> None:
    frames = pytest.importorskip("pandas")
    value = da.from_array(xarr.asarray(D), chunks=20)[:3, :2].compute()
    np.testing.assert_array_equal(frames.DataFrame(value).to_numpy(), D[:3, :2])


def test_threads_share_chunks() -> None:
    d = da.from_array(xarr.asarray(np.ones((600, 600))), chunks=100)
    with dask.config.set(scheduler="threads"):
        assert float((d @ d).sum().compute()) == 600.0**3


@pytest.mark.parametrize("first", ["dask.array, xarr", "xarr, dask.array"])
def test_dask_knows_arrays_whichever_is_imported_first(first: str) -> None:
    code = (
        f"import {first}; import dask.array as da; d = da.ones(3);"
        "assert type((xarr.ones(3) + d).compute()).__name__ == 'Array';"
        "assert type(d.to_backend('xarr').compute()).__name__ == 'Array'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
