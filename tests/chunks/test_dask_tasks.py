"""Sizes of Arrays, for which Dask's workers ask when a task ends."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import xarr

sizeof = pytest.importorskip("dask.sizeof").sizeof

pytestmark = pytest.mark.usefixtures("on_numpy")


@pytest.mark.parametrize("shape", [(), (0,), (5,), (300, 300)])
@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "complex128"])
def test_the_size_is_that_of_the_memory(shape: tuple[int, ...], dtype: str) -> None:
    x = xarr.ones(shape, dtype=dtype) * 1
    assert x.nbytes <= sizeof(x) <= x.nbytes + 200


def test_who_asks_for_the_size_gets_a_value() -> None:
    x = xarr.asarray(np.ones((300, 300))) + 1
    assert not x.is_evaluated
    assert sizeof(x) >= 720_000 and x.is_evaluated


def test_the_size_in_memory_that_is_not_the_hosts() -> None:
    with xarr.use_backend("reference"):
        x = xarr.ones((10, 10)) + 1
        assert sizeof(x) >= 800 and x.is_evaluated


def test_other_objects_keep_their_sizes() -> None:
    assert sizeof(np.ones(1000)) == 8000 and sizeof("text") == sys.getsizeof("text")


def test_importing_xarr_imports_none_of_the_libraries() -> None:
    names = {"dask", "distributed", "cloudpickle", "xarray", "cubed", "xarr.chunks"}
    code = (
        f"import sys, xarr; xarr.ones(3).sum().item(); assert not {names!r} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dask_alone_tells_sizes() -> None:
    code = (
        "import xarr, dask, sys; assert 'dask.array' not in sys.modules;"
        "from dask.sizeof import sizeof; assert sizeof(xarr.ones(1000)) >= 8000;"
        "from dask.base import tokenize; assert tokenize(xarr.ones(3)) == tokenize(xarr.ones(3))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
