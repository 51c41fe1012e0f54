"""Arrays of more than 2^31 elements, of which kernels reach the last."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    # 2 GiB for each array.
    pytest.mark.thorough,
]

SIZE = 2**31 + 100
LAST = np.arange(1, 9, dtype=np.int8)
INDICES = np.array([SIZE - 1, 3, SIZE - 8, -1, 2**31])

READS: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda x, i: xarr.take(x, i, mode="clip"),
    "index": lambda x, i: x[i],
    "wrapped": lambda x, i: xarr.take(x, i + SIZE, mode="wrap"),
    "rows": lambda x, i: x.reshape(-1, 4)[(i // 4)],
    "arithmetic around": lambda x, i: (x * 2 + 1)[i] * 3,
    "slice": lambda x, i: x[-9:] * 2,
    "steps back": lambda x, i: x[:-9:-3] + 1,
    "dynamic_slice": lambda x, i: lax.dynamic_slice(x, (i[0] - 7,), (8,)),
}


def large() -> np.ndarray[Any, Any]:
    x = np.zeros(SIZE, np.int8)
    x[-8:], x[2**31], x[3] = LAST, 77, 5
    return x


@pytest.mark.parametrize("is_jitted", [False, True])
def test_what_lies_behind_2_31_elements_is_read(is_jitted: bool, cupy: Any) -> None:
    host = large()
    x, i = xarr.asarray(host), xarr.asarray(INDICES)
    wanted = {
        "take": np.take(host, INDICES, mode="clip"),
        "index": host[INDICES],
        "wrapped": host[INDICES],
        "rows": host.reshape(-1, 4)[INDICES // 4],
        "arithmetic around": (host[INDICES] * 2 + 1) * 3,
        "slice": host[-9:] * 2,
        "steps back": host[:-9:-3] + 1,
        "dynamic_slice": LAST,
    }
    for name, function in READS.items():
        result = (xarr.jit(function) if is_jitted else function)(x, i)
        assert_same(np.asarray(result), wanted[name])


def test_what_lies_behind_2_31_elements_is_written(cupy: Any) -> None:
    x = xarr.asarray(large()).evaluate()
    write = xarr.jit(lambda x, i: x.at[i].add(2), donate_argnums=0)
    result = write(x, xarr.asarray(INDICES))
    # The last element is there twice.
    wanted = np.array([8 + 4, 5 + 2, 1 + 2, 8 + 4, 77 + 2], np.int8)
    assert_same(np.asarray(result[INDICES]), wanted)
    with pytest.raises(IndexError, match=f"index {SIZE} is out of bounds"):
        np.asarray(result[xarr.asarray([SIZE])])
