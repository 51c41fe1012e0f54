"""Tests as if the machine had another number of processors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from xarr_numpy import workers
from xarr_numpy.compiled.threads import phases
from xarr_numpy.processor import PROCESSOR


@cache
def _pool(count: int) -> phases._ThreadPool:
    """Threads stay until the process ends, so each number of them is made once."""
    return phases._ThreadPool(count)


@contextmanager
def threads(count: int, **limits: int) -> Iterator[None]:
    """As if the machine had so many processors, and nothing were too little to be shared, but for `limits`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "WORTH_A_THREAD", 1)
        patch.setattr(workers, "count", lambda: count)
        patch.setattr(workers, "_pool", None)
        low = {"min_shared_nanoseconds": 1, "min_waking_nanoseconds": 1, "min_range_nanoseconds": 1}
        patch.setattr(phases, "PROCESSOR", PROCESSOR.replace(**{**low, **limits}))
        patch.setattr(phases, "_pool", _pool(count))
        yield
