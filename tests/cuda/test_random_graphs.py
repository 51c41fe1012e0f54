"""Random graphs on the emulated device give what single operations of the CPU give."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.compiler.test_random_graphs import agree, results
from tests.support import fuzz
from tests.support.random_graphs import sample

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.mark.parametrize("seed", fuzz.seeds(6, 150))
def test_random_graphs(seed: int, cupy: Any) -> None:
    drawing = sample(fuzz.generator("graphs of a GPU", seed), count=25, most=300)
    agree(drawing, results(drawing, backend="cupy"))
