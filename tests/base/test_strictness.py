"""config.broadcasting: what each mode refuses, warns about, and where it is set."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import (
    AmbiguousBroadcastWarning,
    BroadcastError,
    BroadcastWarning,
    ConfigError,
    OuterBroadcastWarning,
)

pytestmark = pytest.mark.implicit


def ones(*shape: int) -> xarr.Array:
    return xarr.asarray(np.ones(shape))


def modes_that_refuse(function: Callable[[], Any]) -> set[str]:
    refused = set()
    for mode in ("numpy", "warn", "rank", "explicit"):
        with xarr.config(broadcasting=mode), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                function()
            except BroadcastError:
                refused.add(mode)
    return refused


def set_row(shape: tuple[int, ...]) -> None:
    x = ones(4, 3)
    x[1:] = ones(*shape)


CASES: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "equal shapes": (lambda: ones(2, 3) + ones(2, 3), set()),
    "Python number": (lambda: ones(2, 3) + 1, set()),
    "number on the left": (lambda: 1 - ones(2, 3), set()),
    "0-d array": (lambda: ones(2, 3) + ones(), set()),
    "stretched": (lambda: ones(2, 3) * ones(2, 1), {"explicit"}),
    "both stretched": (lambda: ones(2, 1) * ones(1, 3), {"explicit"}),
    "new axis": (lambda: ones(2, 3) - ones(3), {"rank", "explicit"}),
    "new and stretched": (lambda: ones(2, 3) - ones(1), {"rank", "explicit"}),
    "comparison": (lambda: ones(2, 3) < ones(3), {"rank", "explicit"}),
    "NumPy operand": (lambda: ones(2, 3) + np.ones(3), {"rank", "explicit"}),
    "list operand": (lambda: ones(2, 3) * [1.0, 2.0, 3.0], {"rank", "explicit"}),
    "floor_divide": (lambda: ones(2, 3) // ones(3), {"rank", "explicit"}),
    "hypot": (lambda: xarr.hypot(ones(2, 3), ones(3)), {"rank", "explicit"}),
    "logical": (lambda: xarr.logical_and(ones(2, 3), ones(2, 1)), {"explicit"}),
    "uint64 and int64": (
        lambda: xarr.asarray(np.ones((2, 3), np.uint64)) < xarr.asarray(np.ones(3, np.int64)),
        {"rank", "explicit"},
    ),
    "where": (lambda: xarr.where(ones(2, 3) > 0, ones(3), 0.0), {"rank", "explicit"}),
    "clip": (lambda: xarr.clip(ones(2, 3), ones(2, 1), 5), {"explicit"}),
    "setitem of the shape": (lambda: set_row((3, 3)), set()),
    "setitem of a scalar": (lambda: set_row(()), set()),
    "setitem of a row": (lambda: set_row((3,)), {"rank", "explicit"}),
    "setitem of a column": (lambda: set_row((3, 1)), {"explicit"}),
    "at": (lambda: ones(4, 3).at[1:].add(ones(3)), {"rank", "explicit"}),
    "in place": (lambda: ones(4, 3).__iadd__(ones(3)), {"rank", "explicit"}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_each_mode_refuses(case: str) -> None:
    function, refused = CASES[case]
    assert modes_that_refuse(function) == refused


@pytest.mark.parametrize("mode", ["rank", "explicit"])
def test_a_refusal_names_mode_operand_and_fixes(mode: str) -> None:
    image, bias = ones(2, 3), ones(3)
    with xarr.config(broadcasting=mode), pytest.raises(BroadcastError) as caught:
        image + bias
    text = str(caught.value)
    assert f'broadcasting="{mode}" refuses to broadcast bias' in text
    assert "lax.broadcast_in_dim(bias, (2, 3), (1,))" in text
    assert "lax.add(image, bias, broadcast_dimensions=(1,))" in text


def test_refused_setitem_leaves_the_array() -> None:
    x = ones(4, 3)
    with xarr.config(broadcasting="explicit"), pytest.raises(BroadcastError):
        x[1:] = np.zeros(3)
    assert_same(x, np.ones((4, 3)))


def test_the_explicit_level_works_in_every_mode() -> None:
    x, v = ones(2, 3), ones(3)
    with xarr.config(broadcasting="explicit"):
        assert_same(xarr.lax.add(x, v, broadcast_dimensions=(1,)), np.full((2, 3), 2.0))
        assert_same(x + xarr.lax.broadcast_in_dim(v, (2, 3), (1,)), np.full((2, 3), 2.0))


@pytest.mark.parametrize(
    ("function", "category"),
    [
        (lambda: ones(2, 1) * ones(1, 3), OuterBroadcastWarning),
        (lambda: ones(3, 3) * ones(3), AmbiguousBroadcastWarning),
        (lambda: ones(2, 3) * ones(3), BroadcastWarning),
    ],
    ids=["outer", "ambiguous", "plain"],
)
def test_warnings_name_category_and_line(function: Callable[[], Any], category: type[Warning]) -> None:
    with xarr.config(broadcasting="warn"), pytest.warns(BroadcastWarning) as caught:
        function()
    (warning,) = caught
    assert warning.category is category
    assert warning.filename == __file__
    assert warning.lineno == function.__code__.co_firstlineno


def test_warn_is_silent_where_nothing_broadcasts() -> None:
    with xarr.config(broadcasting="warn"), warnings.catch_warnings():
        warnings.simplefilter("error")
        ones(2, 3) + ones(2, 3) * 2.0


def test_by_code_and_in_a_block() -> None:
    xarr.config.broadcasting = "rank"
    with xarr.config(broadcasting="numpy"):
        ones(2, 3) + ones(3)
        with xarr.config(broadcasting="explicit"), pytest.raises(BroadcastError):
            ones(2, 3) + ones(2, 1)
        ones(2, 3) + ones(2, 1)
    with pytest.raises(BroadcastError):
        ones(2, 3) + ones(3)


def test_a_block_ends_with_an_error_too() -> None:
    xarr.config.broadcasting = "numpy"
    with pytest.raises(KeyError), xarr.config(broadcasting="explicit"):
        raise KeyError
    assert xarr.config.broadcasting == "numpy"


def test_blocks_are_local_to_the_thread_and_assignments_are_not() -> None:
    seen: list[str] = []
    xarr.config.broadcasting = "rank"
    with xarr.config(broadcasting="explicit"):
        thread = threading.Thread(target=lambda: seen.append(xarr.config.broadcasting))
        thread.start()
        thread.join()
        assert xarr.config.broadcasting == "explicit"
    assert seen == ["rank"]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("XARR_")}
    clean["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


PROGRAM = (
    "import xarr, numpy as np; print(xarr.config.broadcasting); xarr.asarray(np.ones((2, 3))) + np.ones(3)"
)


@pytest.mark.parametrize(("mode", "status"), [("numpy", 0), ("rank", 1)])
def test_by_environment(mode: str, status: int) -> None:
    done = run(PROGRAM, XARR_BROADCASTING=mode)
    assert done.returncode == status
    assert done.stdout.strip() == mode
    assert ("BroadcastError" in done.stderr) == (status == 1)


def test_a_bad_environment_variable_is_named() -> None:
    done = run("import xarr", XARR_BROADCASTING="loose")
    assert done.returncode == 1
    assert "ConfigError: environment variable XARR_BROADCASTING" in done.stderr
    assert "wanted one of 'numpy', 'warn', 'rank', 'explicit', got 'loose'" in done.stderr


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"config\.broadcasting: wanted one of .*, got 'loose'"):
        xarr.config.broadcasting = "loose"
    with pytest.raises(ConfigError), xarr.config(broadcasting=None):
        pass
