"""Each operation of each element type on the emulated device, or on a GPU, has the bits of the compiled CPU engine.

The graphs are those of `tests/support/graphs.py`, with all element types that their operations accept.  Element-wise
operations get numbers of every kind: NaN, infinities, zeros of both signs, subnormal numbers, extremes.  A normal run
takes a few element types of each operation, one of `--thorough` all, and CI, which has the profile of a normal run,
a third of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.compare import assert_same
from tests.cuda.emulator.driver import EmulatedDriver
from tests.support import fuzz
from tests.support.gpu_operations import computer_of, nodes_of
from tests.support.graph_parts import Case
from tests.support.retyped_graphs import ELEMENTWISE, OTHERS, elementwise_case, typed_cases
from xarr.backend import get
from xarr.base.configuration import current as config
from xarr.compiler.pipeline import make_program
from xarr.dtypes import info, real_part_of
from xarr_cupy import host
from xarr_cupy.codegen import emitter, spelling

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

NAMES = (*ELEMENTWISE, *OTHERS)
#: Libraries whose results have other bits than the CPU's, and those of which several results are right.
LIBRARIES = frozenset({"cuBLAS", "cuFFT", "cuSOLVER", "cuBLAS or cuSOLVER"})
FACTORISATIONS = LIBRARIES - {"cuBLAS", "cuFFT"}
#: Of so many element types in a row a normal run takes one.
APART = 23


def cases_of(name: str, is_thorough: bool) -> Iterator[tuple[str, Case]]:
    """All cases of a name, or those whose numbers among all are some multiples."""
    for number, (dtype, case) in enumerate(typed_cases(name)):
        if is_thorough or (number + 7 * NAMES.index(name)) % APART == 0:
            yield str(dtype), case


def results(case: Case, backend: Any) -> list[np.ndarray[Any, Any]]:
    program = make_program(case.graph, backend).program
    buffers = program(*map(backend.from_host, case.inputs))
    # Checks that are looked at later follow behind them.
    return [backend.to_host(buffer) for buffer in buffers[: len(case.graph.results)]]


def assert_bits_of_the_cpu(case: Case, cupy: Any) -> None:
    """Compare the results of a case on the device with those of the compiled CPU engine.

    Of a library of CUDA's they are as near as its arithmetic; where more than one result is right, as of
    factorisations, `tests/cuda/test_on_gpu.py` looks at what it means.
    """
    actual = results(case, cupy)
    with config(fusion="compiled"):
        expected = results(case, get("numpy"))
    computers = {computer_of(node) for node in nodes_of(case.graph)}
    for result, wanted in zip(actual, expected, strict=True):
        if computers & LIBRARIES and not isinstance(cupy._engine.driver, EmulatedDriver):
            assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
            if not computers & FACTORISATIONS:
                assert_near(result, wanted)
        else:
            assert_same(result, wanted)


def assert_near(result: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """As near as sums in another order: the sixteenth part of the digits is lost at most."""
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    digits = -np.log2(float(info(real_part_of(wanted.dtype)).eps))
    result, wanted = result.astype(wide), wanted.astype(wide)
    scale = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
    np.testing.assert_allclose(result, wanted, rtol=0, atol=scale * 2 ** (-digits * 15 / 16))


THOROUGH = pytest.param(True, marks=pytest.mark.thorough, id="all types")


@pytest.mark.parametrize("is_thorough", [pytest.param(False, id="some types"), THOROUGH])
@pytest.mark.parametrize("name", NAMES)
def test_each_operation_has_the_bits_of_the_cpu(name: str, is_thorough: bool, cupy: Any) -> None:
    cases = [*cases_of(name, is_thorough)]
    if is_thorough and len(cases) > 6:
        cases = fuzz.one_in(3, cases, NAMES.index(name))
    for dtype, case in cases:
        host.CALLS.clear()
        with fuzz.showing(lambda dtype=dtype: f"{name} of {dtype}"):
            assert_bits_of_the_cpu(case, cupy)
        computers = {computer_of(node) for node in nodes_of(case.graph)}
        # What others are made of is not looked at one by one, and a check when the caller looks.
        if name != "Check" and not computers & {"graphs", "parts"}:
            assert bool(host.CALLS) == ("host" in computers), (dtype, host.CALLS)


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_scalars_and_arrays_without_elements(name: str, shape: tuple[int, ...], cupy: Any) -> None:
    for dtype, _ in cases_of(name, is_thorough=False):
        case = elementwise_case(ELEMENTWISE[name], np.dtype(dtype), shape)
        assert_bits_of_the_cpu(case, cupy)


def test_each_element_type_is_in_a_normal_run() -> None:
    everything = {dtype for name in NAMES for dtype, _ in cases_of(name, True)}
    assert {dtype for name in NAMES for dtype, _ in cases_of(name, False)} == everything


def test_a_wrong_bit_is_seen(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    emitter.emit.cache_clear()
    monkeypatch.setitem(spelling.INFIX, "mul", "+")
    with pytest.raises(AssertionError, match="differ by more than 0 ULP"):
        assert_bits_of_the_cpu(elementwise_case(ELEMENTWISE["Multiply"], np.dtype("float32"), (5,)), cupy)
    emitter.emit.cache_clear()
