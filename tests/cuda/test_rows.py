"""What follows a reduction of rows for each of them, in the kernel that reduces them."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.test_cupy_backend import device
from tests.cuda.test_shared_work import bits_in_each_order, normal

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Functions of an array of two axes that end with an element for each row.
FUNCTIONS: dict[str, Any] = {
    "mean": lambda x: x.mean(1),
    "variance": lambda x: xarr.var(x, axis=1),
    "norm": lambda x: xarr.sqrt((x * x).sum(1)),
    "logsumexp": lambda x: xarr.log(xarr.exp(x - x.max(1, keepdims=True)).sum(1)) + x.max(1),
    "with another array": lambda x: x.sum(1) * 0.5 + x[:, 0],
}


@pytest.mark.parametrize("shape", [(5, 40), (3, 300)], ids=["warps", "blocks"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_ends_in_the_kernel_that_reduces_it(
    name: str, shape: tuple[int, int], cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, x = FUNCTIONS[name], normal(*shape)
    result = bits_in_each_order(function, [x], cupy, monkeypatch)
    assert [text.count("__global__") for text in device(cupy).texts] == [1]
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.asarray(function(xarr.asarray(x))), rtol=1e-12, atol=1e-12)
    device(cupy).races = True
    np.asarray(xarr.jit(function)(xarr.asarray(x)))


def test_eager_rows_end_there_too(cupy: Any) -> None:
    x = normal(4, 64)
    for rows in (4, 3):
        assert_same(np.asarray((xarr.asarray(np.ones_like(x[:rows])) * 3).mean(1)), np.full(rows, 3.0))
    assert [text.count("__global__") for text in device(cupy).texts if "xarr_0(" in text] == [1]
