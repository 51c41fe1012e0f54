"""Random graphs give the same on every path: op by op, as compiled loops, and on the reference backend."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support import fuzz
from tests.support.random_graphs import Bound, Sample, check, sample
from xarr.backend import get
from xarr.base.configuration import current as config
from xarr.compiler.pipeline import make_program

Array = np.ndarray[Any, Any]
SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def results(sample: Sample, fusion: str = "off", backend: str = "numpy") -> list[Array]:
    engine = get(backend)
    with config(fusion=fusion):
        program = make_program(sample.graph, engine).program
        values = program(*[engine.from_host(array) for array in sample.inputs])
    return [np.asarray(engine.to_host(value)) for value in values]


def agree_with_compiled(drawing: Sample) -> None:
    pytest.importorskip("llvmlite")
    agree(drawing, results(drawing, "compiled"))


def agree(drawing: Sample, values: list[Array]) -> None:
    with fuzz.showing(drawing.graph.to_text):
        check(values, results(drawing), drawing.bounds)


@pytest.mark.parametrize("seed", fuzz.seeds(25, 400))
def test_compiled_loops_agree_with_separate_operations(seed: int) -> None:
    agree_with_compiled(sample(fuzz.generator("graphs", seed), most=4096))


@pytest.mark.parametrize("seed", fuzz.seeds(15, 150))
def test_compiled_loops_agree_on_large_arrays(seed: int) -> None:
    agree_with_compiled(sample(fuzz.generator("large graphs", seed)))


@given(st.randoms(use_true_random=False))
@settings(fuzz.examples(25), suppress_health_check=SLOW_TO_DRAW)
def test_compiled_loops_agree_on_small_graphs(random: Random) -> None:
    agree_with_compiled(sample(random, count=12, most=300))


@pytest.mark.parametrize("seed", fuzz.seeds(20, 300))
def test_the_reference_agrees_with_numpy(seed: int) -> None:
    drawing = sample(fuzz.generator("graphs of the reference", seed), count=25, most=64)
    agree(drawing, results(drawing, backend="reference"))


@pytest.mark.parametrize(
    ("mine", "theirs", "error"),
    [(1.0, 1.5, 0.25), (0.0, -0.0, 0.0), (np.nan, 1.0, 10.0), (np.inf, 1.0, 10.0), (1.0, np.nan, 0.0)],
)
def test_differences_are_seen(mine: float, theirs: float, error: float) -> None:
    with pytest.raises(AssertionError, match="result 0: 1 of 1 differ"):
        check([np.array(mine)], [np.array(theirs)], [Bound(2.0, error)])
