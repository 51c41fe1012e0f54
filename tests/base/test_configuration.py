"""The configuration: names, values, scopes."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.base.test_strictness import run
from xarr.errors import ConfigError

DEFAULTS = {
    "default_dtype": "float64",
    "max_depth": 10_000,
    "max_pending_bytes": 64 * 2**20,
    "deterministic": True,
}


def test_defaults() -> None:
    done = run("import xarr; print(xarr.config)")
    for name, value in {"broadcasting": "numpy", "backend": "numpy", **DEFAULTS}.items():
        assert f"{name} = {value!r}" in done.stdout


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("broadcasting", 3, "wanted one of"),
        ("backend", "", "wanted the name of a backend, got ''"),
        ("backend", 5, "wanted the name of a backend, got 5"),
        ("default_dtype", "int32", "wanted one of 'float64', 'float32', got 'int32'"),
        ("deterministic", "yes", "wanted True or False, got 'yes'"),
        ("max_depth", 0, "wanted a positive integer, got 0"),
        ("max_depth", -3, "wanted a positive integer, got -3"),
        ("max_depth", True, "wanted a positive integer, got True"),
        ("max_depth", "many", "wanted a positive integer, got 'many'"),
        ("max_pending_bytes", 1.5, "wanted a positive integer, got 1.5"),
    ],
)
def test_bad_values(name: str, value: Any, message: str) -> None:
    before = getattr(xarr.config, name)
    with pytest.raises(ConfigError, match=f"config.{name}: {message}"):
        setattr(xarr.config, name, value)
    with pytest.raises(ConfigError, match=message), xarr.config(**{name: value}):
        pass
    assert getattr(xarr.config, name) == before


def test_unknown_names() -> None:
    for use in (
        lambda: xarr.config.broadcast,
        lambda: setattr(xarr.config, "broadcast", "numpy"),
        lambda: xarr.config(broadcast="numpy").__enter__(),
    ):
        with pytest.raises(ConfigError, match="no option 'broadcast'; there are broadcasting, backend"):
            use()
    assert not hasattr(xarr.config, "__wrapped__") and not hasattr(xarr.config, "broadcast")
    assert getattr(xarr.config, "broadcast", None) is None and inspect.signature(xarr.config)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_there_is_one_object_of_settings(copied: Callable[[Any], Any]) -> None:
    assert copied(xarr.config) is xarr.config


def test_a_bad_block_changes_nothing() -> None:
    with pytest.raises(ConfigError), xarr.config(max_depth=5, default_dtype="int8"):
        pass
    assert xarr.config.max_depth == DEFAULTS["max_depth"]


def test_default_dtype() -> None:
    for value in ("float32", np.float32, np.dtype("float32")):
        xarr.config.default_dtype = value
        assert xarr.config.default_dtype == "float32"
        assert xarr.asarray([1.0]).dtype == np.float32
        assert xarr.asarray([1j]).dtype == np.complex64
    with xarr.config(default_dtype="float64"):
        assert xarr.asarray(1.0).dtype == np.float64


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("XARR_MAX_DEPTH", "77", "max_depth", 77),
        ("XARR_MAX_PENDING_BYTES", "4096", "max_pending_bytes", 4096),
        ("XARR_DEFAULT_DTYPE", "float32", "default_dtype", "float32"),
        ("XARR_BACKEND", "reference", "backend", "reference"),
    ],
)
def test_environment(variable: str, text: str, name: str, value: object) -> None:
    done = run(f"import xarr; print(repr(xarr.config.{name}))", **{variable: text})
    assert done.stdout.strip() == repr(value)


@pytest.mark.parametrize(("variable", "text"), [("XARR_MAX_DEPTH", "deep"), ("XARR_DEFAULT_DTYPE", "int8")])
def test_bad_environment(variable: str, text: str) -> None:
    done = run("import xarr", **{variable: text})
    assert done.returncode == 1
    assert f"ConfigError: environment variable {variable}" in done.stderr


def test_blocks_nest_and_threads_do_not_see_them() -> None:
    seen: list[int] = []
    with xarr.config(max_depth=5), xarr.config(max_pending_bytes=7):
        assert (xarr.config.max_depth, xarr.config.max_pending_bytes) == (5, 7)
        thread = threading.Thread(target=lambda: seen.append(xarr.config.max_depth))
        thread.start()
        thread.join()
    assert seen == [DEFAULTS["max_depth"]]
    assert xarr.config.max_depth == DEFAULTS["max_depth"]


def test_a_block_that_comes_again_has_the_same_state() -> None:
    def state(**values: Any) -> tuple[object, object]:
        with xarr.config(**values):
            return xarr.config.state()

    first = state(deterministic=False)
    assert all(x is y for x, y in zip(first, state(deterministic=False), strict=True))
    assert state(deterministic=True)[1] is not first[1]
    with xarr.config(default_dtype="float32"):
        inside = state(deterministic=False)
        assert inside[1] is not first[1] and xarr.config.default_dtype == "float32"
    for number in range(1000):
        with xarr.config(max_depth=10 + number):
            assert xarr.config.max_depth == 10 + number
    assert xarr.config.max_depth == state()[0]["max_depth"]  # type: ignore[index]


def test_jitted_functions_find_what_they_know_in_a_block_that_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f, x, misses = xarr.jit(lambda x: x * 2 + 1), xarr.asarray([1.0, 2.0]).evaluate(), []
    after_miss = type(f)._call_after_miss

    def count(self: Any, *arguments: Any) -> Any:
        misses.append(arguments)
        return after_miss(self, *arguments)

    monkeypatch.setattr(type(f), "_call_after_miss", count)
    for number in range(20):
        with xarr.config(deterministic=bool(number % 2)):
            assert f(x).tolist() == [3.0, 5.0]
    first = len(misses)
    for _ in range(20):
        with xarr.config(deterministic=True):
            f(x)
    assert len(misses) <= first + 1


def test_all_settings_at_once_are_those_of_the_block() -> None:
    with xarr.config(max_depth=5):
        assert xarr.config.now()["max_depth"] == 5
        assert {name: getattr(xarr.config, name) for name in xarr.config.now()} == xarr.config.now()
    assert xarr.config.now()["max_depth"] == DEFAULTS["max_depth"]


def test_empty_environment_variables_count_as_none() -> None:
    done = run("import xarr; print(xarr.config.broadcasting)", XARR_BROADCASTING="")
    assert done.stdout.strip() == "numpy", done.stderr


@pytest.mark.parametrize(
    ("variable", "hint"),
    [("XARR_BACKENDS", "did you mean XARR_BACKEND?"), ("XARR_QQ", "there are XARR_BROADCASTING, XARR_")],
)
def test_unknown_variables_are_warned_of_once(variable: str, hint: str) -> None:
    done = run("import xarr; print(xarr.config.backend)", **{variable: "reference"})
    assert done.stdout.strip() == "numpy"
    assert (
        done.stderr.count(f"UnknownVariableWarning: xarr reads no environment variable {variable}; {hint}")
        == 1
    )


def test_variables_that_something_reads_are_not_warned_of() -> None:
    done = run("import xarr", XARR_CACHE_DIR="/tmp", XARR_FUSION="off", MY_XARR_OPTION="1")
    assert done.stderr == ""
