"""Random loops of independent points on the emulated device: the bits are those of the CPU."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.cuda.test_loops import assert_as_on_the_cpu
from tests.support import fuzz

pytest.importorskip("llvmlite")

from tests.xarr_numpy.compiled.loops.test_native_loops import bodies

pytestmark = [
    pytest.mark.implicit,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]


@settings(fuzz.examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies())
def test_random_bodies(body: tuple[Callable[..., Any], list[Any]], cupy: Any) -> None:
    function, arrays = body
    assert_as_on_the_cpu(function, arrays)
