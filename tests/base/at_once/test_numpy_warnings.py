"""Programs of NumPy calls warn of nothing, and leave NumPy's settings as they were."""

import subprocess
import sys
import threading
import warnings
from contextvars import ContextVar

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.base.at_once import numpy_warnings

ZEROS = np.zeros(3, np.float32)


@pytest.mark.parametrize(
    "variable",
    [numpy_warnings.numpy_variable(), None, ContextVar("other"), "no variable"],
    ids=["NumPy's", "none", "an empty one", "something else"],
)
def test_switches(variable: object) -> None:
    off, on = numpy_warnings.switches(variable)
    with np.errstate(divide="raise", invalid="warn"):
        before = np.geterr()
        outer = off()
        inner = off()
        assert set(np.geterr().values()) == {"ignore"}
        assert np.isnan(ZEROS / ZEROS).all()
        on(inner)
        assert set(np.geterr().values()) == {"ignore"}
        on(outer)
        assert np.geterr() == before
        with pytest.raises(FloatingPointError):
            1 / ZEROS


def test_numpy_has_the_variable() -> None:
    assert isinstance(numpy_warnings.numpy_variable(), ContextVar), "np.errstate is used, which is slower"


@pytest.mark.parametrize("lost", ["np._core", "np._core.umath", "np._core.umath._extobj_contextvar"])
def test_a_numpy_without_its_private_names(lost: str) -> None:
    code = f"""
import numpy as np
zeros = np.zeros(3, np.float32)
del {lost}
import xarr
from xarr.base.at_once import numpy_warnings
from xarr_numpy import blas
assert numpy_warnings.numpy_variable() is None
assert np.isnan((xarr.asarray(zeros) / zeros).evaluate()[0])
before = np.geterr()
state = numpy_warnings.quiet()
assert set(np.geterr().values()) == {{"ignore"}}
numpy_warnings.loud(state)
assert np.geterr() == before
if {lost!r} == "np._core":
    assert not blas.can_be_held()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_programs_warn_of_nothing_and_restore() -> None:
    x = xarr.asarray(ZEROS).evaluate()
    before = np.geterr()
    with warnings.catch_warnings(), xarr.config(fusion="off"):
        warnings.simplefilter("error")
        assert_same(np.asarray(1 / x), np.full(3, np.inf, np.float32))
    assert np.geterr() == before


@pytest.mark.usefixtures("unfused", "recorded")
def test_error_of_a_program_restores(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("kernel out of order")

    x = xarr.asarray(ZEROS).evaluate()
    before = np.geterr()
    for _ in range(2):
        monkeypatch.setattr(np, "add", fail)
        with pytest.raises(OSError, match="out of order"):
            (x + x).evaluate()
        monkeypatch.undo()
        assert np.geterr() == before
        assert_same(np.asarray(x + x), ZEROS + ZEROS)


def test_threads_have_their_own_state() -> None:
    x = xarr.asarray(ZEROS).evaluate()
    results: list[object] = []

    def work() -> None:
        with np.errstate(over="raise"):
            for _ in range(200):
                (x / x).evaluate()
            results.append(np.geterr()["over"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["raise"] * 4
