"""Arrays whose sizes are known only when the program runs, against NumPy on their live parts and XLA."""

from __future__ import annotations

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.dynamic_cases import CASES, Case
from tests.support.dynamic import late, module_of
from tests.xla import compile_stablehlo

pytestmark = pytest.mark.filterwarnings("error")


def check_on(case: Case, backend: str, poisoned: bool) -> None:
    arrays = case.arrays()
    with xarr.use_backend(backend):
        for sizes in case.sizes():
            given = case.poisoned(arrays, sizes) if poisoned else arrays
            operands = [xarr.asarray(array) for array in given]
            result = case.apply(operands, {letter: late(size) for letter, size in sizes.items()})
            try:
                assert_same(np.asarray(result), case.oracle(*case.live(arrays, sizes)))
            except AssertionError as error:
                raise AssertionError(f"{case.name} at {sizes}: {error}") from error


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_numpy_on_the_live_part(case: Case) -> None:
    check_on(case, "numpy", "set_again" not in case.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference_as_numpy_on_the_live_part(case: Case) -> None:
    check_on(case, "reference", False)


# --- XLA ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [case for case in CASES if not case.unlike_xla], ids=lambda case: case.name)
def test_as_xla(case: Case) -> None:
    arrays, run = case.arrays(), compile_stablehlo(module_of(case))
    for sizes in case.sizes():
        values = [np.int32(sizes[letter]) for letter in case.letters]
        given = case.poisoned(arrays, sizes) if case.name != "set_again" else arrays
        buffer, *found = run(*given, *values)
        wanted = case.oracle(*case.live(arrays, sizes))
        # XLA lays the live elements out as if the array had the live sizes.
        assert_same(buffer.reshape(-1)[: wanted.size].reshape(wanted.shape), wanted)
        assert [int(size) for size in found] == [wanted.shape[dim] for dim in _dynamic(case)]


def _dynamic(case: Case) -> tuple[int, ...]:
    result = case.apply(list(map(xarr.asarray, case.arrays())), {letter: late(0) for letter in case.letters})
    dims: tuple[int, ...] = result._node.tensor_type.dynamic_dimensions
    return dims
