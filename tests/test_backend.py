"""How backends are found and chosen, and what is said when one is missing or cannot work here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from tests.base.test_strictness import run
from tests.compare import assert_same
from xarr import backend as backends, doctor
from xarr.errors import BackendError, ConfigError, UnknownBackendError
from xarr_numpy.backend import NumpyBackend


class Twin(NumpyBackend):
    """NumPy's backend under another name."""

    name = "twin"


class Nameless(NumpyBackend):
    """Registered under a name that it does not have."""


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Backends loaded by a test are forgotten after it."""
    monkeypatch.setattr(backends, "_loaded", dict(backends._loaded))
    yield


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three third parties' backends: one that works, one whose package lacks a module, one that lies."""
    points = [
        EntryPoint("twin", f"{__name__}:Twin", backends.ENTRY_POINTS),
        EntryPoint("broken", "no_such_module_anywhere:Backend", backends.ENTRY_POINTS),
        EntryPoint("liar", f"{__name__}:Nameless", backends.ENTRY_POINTS),
        EntryPoint("thing", "builtins:dict", backends.ENTRY_POINTS),
    ]

    def select_entries(**wanted: str) -> list[EntryPoint]:
        return [
            entry for entry in points if all(getattr(entry, key) == value for key, value in wanted.items())
        ]

    monkeypatch.setattr(backends, "_entry_points", select_entries)
    monkeypatch.setattr(EntryPoint, "load", _load)


def _load(entry: EntryPoint) -> Any:
    import builtins
    import importlib

    module, _, attribute = entry.value.partition(":")
    if module == __name__:
        return globals()[attribute]
    if module == "builtins":
        return getattr(builtins, attribute)
    return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("number", ["x", "-1", "", "1.0"])
def test_what_is_no_number_of_a_device_is_refused(number: str) -> None:
    with pytest.raises(
        UnknownBackendError, match=f"backend 'numpy' has no device '{number}': wanted its number"
    ):
        xarr.ones(3, device=f"numpy:{number}")


def test_unknown_backend() -> None:
    with pytest.raises(
        BackendError, match=r"no backend called 'warp' \(available: numpy, reference.*xarr_<name>"
    ):
        xarr.get_backend("warp")
    with pytest.raises(BackendError, match="'warp'"):
        xarr.set_backend("warp")
    with pytest.raises(BackendError, match="'warp'"), xarr.use_backend("warp"):
        pass
    with pytest.raises(BackendError, match="'warp'"):
        xarr.asarray([1.0]).to("warp")
    for odd in ("", "a.b", "../x", "numpy "):
        with pytest.raises(BackendError, match="no backend called"):
            xarr.get_backend(odd)


@pytest.mark.parametrize("name", [None, 3, ["numpy"], np])
def test_what_is_no_name(name: Any) -> None:
    with pytest.raises(BackendError, match="wanted the name of a backend, got"):
        xarr.set_backend(name)


def test_a_backend_is_loaded_once() -> None:
    assert xarr.get_backend("numpy") is xarr.get_backend("numpy")


@pytest.mark.usefixtures("entry_points")
def test_entry_points() -> None:
    assert {"numpy", "reference", "twin", "broken"} <= set(backends.available())
    x = xarr.asarray([1.0, 2.0]).to("twin")
    assert x.backend == "twin"
    assert_same(x + 1, np.array([2.0, 3.0]))
    with pytest.raises(
        BackendError, match="backend 'broken' is installed but cannot be imported: No module named"
    ):
        xarr.get_backend("broken")
    for name in ("liar", "thing"):
        with pytest.raises(BackendError, match=f"backend '{name}': wanted an AbstractBackend of that name"):
            xarr.get_backend(name)


GPU = """
from xarr.errors import BackendError
from xarr_numpy.backend import NumpyBackend

class Backend(NumpyBackend):
    name = "gpu"
    def __init__(self):
        raise BackendError("backend 'gpu' needs an NVIDIA GPU: cudaErrorNoDevice; use the numpy backend")
"""


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that is installed and says why it cannot work on this machine."""
    (tmp_path / "xarr_gpu").mkdir()
    (tmp_path / "xarr_gpu" / "__init__.py").write_text(GPU, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("gpu")
def test_a_gpu_backend_without_gpu() -> None:
    before = xarr.config.backend
    for _ in range(2):
        with pytest.raises(
            BackendError, match="needs an NVIDIA GPU: cudaErrorNoDevice; use the numpy backend"
        ):
            xarr.set_backend("gpu")
    with pytest.raises(BackendError, match="NVIDIA"):
        xarr.asarray([1.0]).to("gpu")
    assert xarr.config.backend == before
    with xarr.config(backend="gpu"):
        assert "* gpu                unavailable: backend 'gpu' needs an NVIDIA GPU" in doctor.report()


def test_cupy_is_refused_clearly_or_works() -> None:
    try:
        xarr.set_backend("cupy")
    except BackendError as error:
        assert "cupy" in str(error)
        assert xarr.config.backend != "cupy"
    else:
        assert xarr.asarray([1.0]).backend == "cupy"


def test_the_flag_in_all_its_forms() -> None:
    here = xarr.config.backend
    with xarr.use_backend("reference") as backend:
        assert backend.name == "reference"
        assert xarr.asarray([1.0]).backend == "reference"
        assert xarr.zeros(3).backend == "reference"
        with xarr.use_backend("numpy"):
            assert xarr.asarray([1.0]).backend == "numpy"
    assert xarr.asarray([1.0]).backend == here
    xarr.set_backend("reference")
    x = xarr.asarray([1.0])
    assert x.backend == "reference"
    xarr.set_backend("numpy")
    assert (x + 1).backend == "reference"
    assert x.to("numpy").backend == "numpy"


def test_the_environment_variable() -> None:
    code = "import xarr; print(xarr.asarray([1.0]).backend)"
    assert run(code, XARR_BACKEND="reference").stdout.strip() == "reference"
    failed = run(code, XARR_BACKEND="warp")
    assert failed.returncode == 1
    assert "BackendError: asarray: no backend called 'warp'" in failed.stderr


def test_use_backend_refuses_before_the_block() -> None:
    entered = False
    with pytest.raises(BackendError), xarr.use_backend("warp"):
        entered = True
    assert not entered
    with pytest.raises(ConfigError):
        xarr.config.backend = ""


def test_mixing_two_backends() -> None:
    x, y = xarr.asarray([1.0]).to("numpy"), xarr.asarray([2.0]).to("reference")
    flags = xarr.asarray([True]).to("numpy")
    for compute in (
        lambda: x + y,
        lambda: x < y,
        lambda: x // y,
        lambda: xarr.lax.add(x, y),
        lambda: xarr.hypot(x, y),
        lambda: xarr.where(flags, x, y),
        lambda: xarr.where(flags, y, y),
        lambda: xarr.concatenate([x, y]),
        lambda: x.__iadd__(y),
    ):
        with pytest.raises(BackendError, match=r"two backends, .*; move one, e\.g\. x\.to\("):
            compute()


def test_evaluating_on_two_backends_at_once() -> None:
    x, y = xarr.asarray([1.0]).to("numpy") + 1, xarr.asarray([2.0]).to("reference") + 1
    xarr.evaluate(x, y)
    assert x.is_evaluated
    assert y.is_evaluated


def test_a_constant_goes_anywhere() -> None:
    one = xarr.lax.full_like(xarr.asarray(1.0), 1)
    assert_same(xarr.asarray([2.0]).to("reference") + 1.0, np.array([3.0]))
    assert one.shape == ()


def test_threads_that_load_a_backend_at_once_get_the_same_one(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=10)

    def slow() -> Twin:
        both.wait()
        return Twin()

    monkeypatch.setattr(backends, "_from_entry_point", lambda name: slow)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(backends.get, ["twin", "twin"])
    assert first is second is backends.get("twin")


@pytest.mark.usefixtures("on_numpy")
def test_the_backend_of_new_arrays_is_got_without_a_name() -> None:
    assert xarr.get_backend() is xarr.get_backend("numpy")
    assert repr(xarr.get_backend()) == "<backend numpy on cpu>"
    with xarr.use_backend("reference") as chosen:
        assert xarr.get_backend() is chosen


@pytest.mark.usefixtures("on_numpy")
def test_cpu_names_a_backend() -> None:
    x = xarr.arange(3)
    assert xarr.get_backend("cpu") is xarr.get_backend("numpy")
    assert x.to("cpu") is x and x.to(x.device) is x
    y = x.to("reference")
    assert y.to(y.device) is y
    assert y.to("numpy").backend == "numpy"
    with xarr.use_backend("cpu"):
        assert xarr.config.backend == "numpy"


def test_the_variable_may_say_cpu() -> None:
    code = "import xarr; print(xarr.arange(2).backend)"
    assert run(code, XARR_BACKEND="cpu").stdout == "numpy\n"


@pytest.mark.skipif(find_spec("cupy") is not None, reason="tests what is said where CuPy is missing")
@pytest.mark.parametrize("name", ["cupy", "cuda", "cuda:0", "cupy:1"])
def test_without_cupy_the_message_says_what_to_install(name: str) -> None:
    with pytest.raises(BackendError, match=r"needs CuPy 14 or later, .* pip install 'xarr\[cuda13\]'"):
        xarr.ones(2).to(name)


@pytest.mark.parametrize("name", ["GPU", "rocm:0", "tpu"])
def test_other_accelerators_have_no_backend(name: str) -> None:
    with pytest.raises(BackendError, match="the one for GPUs, those of NVIDIA, is 'cupy'; available: numpy"):
        xarr.ones(2).to(name)


@pytest.mark.parametrize(("name", "meant"), [("numpi", "numpy"), ("refrence", "reference"), ("cpuu", "cpu")])
def test_a_misspelled_backend(name: str, meant: str) -> None:
    with pytest.raises(BackendError, match=f"no backend called '{name}'; did you mean {meant}?"):
        xarr.set_backend(name)


def test_the_doctor_offers_nothing_that_does_not_exist() -> None:
    text = doctor.report()
    assert "xarr[mpi]" not in text
    if find_spec("cupy") is None:
        assert "CuPy               missing; for the backend cupy: pip install 'xarr[cuda13]'" in text
        assert "cupy               unavailable: backend 'cupy' needs CuPy 14 or later" in text
