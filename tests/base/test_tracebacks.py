"""What errors show of the stack: the user's lines, few frames of xarr's in a terminal, and none in a notebook."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.base.tracebacks import shorten, without_own_frames
from xarr.errors import BroadcastError, DTypeError, InputError, TracedValueError, XarrError
from xarr.lib import stride_tricks

HERE = __file__
#: Packages and modules of xarr that have the functions of NumPy's.
SURFACE = frozenset({"calls", "emath", "fft", "lax", "lib", "linalg", "numpy_api", "random"})


def error_of(call: Callable[[], Any]) -> XarrError:
    with pytest.raises(XarrError) as caught:
        call()
    return caught.value


def own_frames(error: BaseException) -> list[str]:
    """The functions of xarr in a traceback."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [
        frame.f_code.co_name
        for frame in frames
        if str(frame.f_globals.get("__name__")).partition(".")[0].startswith("xarr")
    ]


def x(device: str | None = None) -> xarr.Array:
    return xarr.asarray(np.arange(12.0).reshape(3, 4), device=device)


def depends(a: Any) -> Any:
    if a.sum() > 0:
        return a
    return -a


def add_in_place(a: xarr.Array) -> None:
    a += xarr.ones(3)


CALLS: dict[str, tuple[Callable[[], Any], int]] = {
    "an operator": (lambda: x() + xarr.ones(3), 0),
    "reflected": (lambda: np.ones(3) + x(), 1),
    "in place": (lambda: add_in_place(x()), 0),
    "equality": (lambda: x() == xarr.ones(3), 0),
    "matmul": (lambda: x() @ xarr.ones(3), 0),
    "an index": (lambda: x()[3, 0], 0),
    # A device of its own reads an index when a value is looked at.
    "an index array": (lambda: x("numpy")[xarr.asarray([5], device="numpy")], 0),
    "an assignment": (lambda: x().__setitem__(0, xarr.ones(3)), 0),
    "jit": (lambda: xarr.jit(depends)(x()), 0),
    "jit of an array asked for": (lambda: xarr.jit(np.asarray)(x()), 0),
    "a function of NumPy's": (lambda: np.sum(x(), axis=3), 1),
    "a ufunc of NumPy's": (lambda: np.add(x(), np.ones(3)), 1),
    "two results": (lambda: xarr.divmod(x(), xarr.ones(3)), 0),
    "an option": (lambda: xarr.add(x(), 1.0, dtype="int8", casting="safe"), 1),
    "at evaluation": (lambda: np.asarray(x()[xarr.asarray([5]) + 0]), 1),
    "an axis": (lambda: x().sum(axis=2), 0),
    "no number": (lambda: xarr.concatenate([x(), "a"]), 0),
    "evaluate": (lambda: xarr.evaluate(x("numpy")[xarr.asarray([5], device="numpy") + 0]), 0),
}


@pytest.mark.implicit
@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("name", CALLS)
def test_few_frames_are_xarrs(name: str) -> None:
    call, most = CALLS[name]
    with xarr.config(traceback="short"):
        short = error_of(call)
    with xarr.config(traceback="full"):
        full = error_of(call)
    assert len(own_frames(short)) == most < len(own_frames(full))
    assert str(short) == str(full)
    assert type(short) is type(full)


def test_lines_of_a_jitted_function_stay() -> None:
    error = error_of(lambda: xarr.jit(depends)(x()))
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert files[-1] == HERE
    assert names[-1] == "depends"
    assert own_frames(error) == []


def test_lines_of_a_loops_body_stay() -> None:
    error = error_of(lambda: lax.fori_loop(0, 3, lambda i, a: depends(a), x()))
    assert traceback.extract_tb(error.__traceback__)[-1].name == "depends"
    assert "trace" not in own_frames(error)


def test_an_error_of_the_users_is_left_alone() -> None:
    def fails(a: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        xarr.jit(fails)(x())
    assert len(own_frames(caught.value)) > 3


def test_the_cause_stays() -> None:
    def explain(a: Any) -> Any:
        try:
            return a + xarr.ones(3)
        except BroadcastError as error:
            raise InputError("not mine") from error

    error = error_of(lambda: xarr.jit(explain)(x()))
    assert str(error) == "not mine"
    assert isinstance(error.__cause__, BroadcastError)
    assert traceback.extract_tb(error.__cause__.__traceback__)[-1].name == "explain"


def test_what_hides_its_cause_goes_on_hiding_it() -> None:
    error = error_of(lambda: xarr.ones(3).astype("flaot32") + 1)
    raised = DTypeError("one")
    raised.__suppress_context__ = True
    raised.__context__ = error
    before = error.__traceback__
    shorten(raised)
    assert error.__traceback__ is before
    assert raised.__context__ is error


def test_frames_of_other_packages_stay() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        kept = without_own_frames(error.__traceback__)
        assert traceback.format_tb(kept) == traceback.format_tb(error.__traceback__)


def test_a_module_called_alike_is_the_users() -> None:
    scope: dict[str, Any] = {"__name__": "xarr_tools"}
    exec("def fail():\n    raise ValueError", scope)
    try:
        scope["fail"]()
    except ValueError as error:
        kept = without_own_frames(error.__traceback__)
        assert [frame.name for frame in traceback.extract_tb(kept)][-1] == "fail"


# --- names of functions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "start"),
    [
        pytest.param(lambda: xarr.flip(x(), 7), "flip: axis 7", id="a check that many functions share"),
        pytest.param(lambda: xarr.nanmean(x(), axis=7), "nanmean: axis 7", id="the outermost function"),
        pytest.param(lambda: x().squeeze(7), "squeeze: axis 7", id="a method"),
        pytest.param(lambda: np.flip(x(), 7), "flip: axis 7", id="a function of NumPy's"),
        pytest.param(lambda: xarr.fft.fftshift(x(), 7), "fft.fftshift: axis 7", id="a namespace"),
        pytest.param(
            lambda: xarr.linalg.norm(None), "linalg.norm: None is", id="a namespace of more modules"
        ),
        pytest.param(
            lambda: xarr.random.uniform(xarr.random.key(0), dtype=10),
            "random.uniform: 10",
            id="a function of keys",
        ),
        pytest.param(lambda: xarr.sin(None), "sin: None is", id="a ufunc"),
        pytest.param(lambda: xarr.less(x(), None), "less: None is", id="a comparison"),
        pytest.param(lambda: xarr.divmod(x(), None), "divmod: None is", id="a ufunc with two results"),
        pytest.param(
            lambda: xarr.asarray(None), "asarray: None is", id="a function on the way of all others"
        ),
        pytest.param(lambda: x()[7], "index 7 is", id="an index"),
        pytest.param(lambda: x() * ["a"], "strings cannot be", id="an operator"),
        pytest.param(lambda: xarr.ones(3).at[9].get(), "get: index 9", id="a method of at"),
    ],
)
def test_an_error_begins_with_the_function_that_was_called(call: Callable[[], Any], start: str) -> None:
    error = error_of(call)
    assert str(error).startswith(start)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def add_at(x: Any, i: Any) -> Any:
    x = x.copy()
    xarr.add.at(x, i, 1)
    return x


#: Reads of x by an index that is out of bounds, of which xarr learns when a program runs, and how the errors begin.
LATE: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a function": (lambda x, i: xarr.take(x, i), "take: index 2000 is"),
    "a function like it": (lambda x, i: xarr.take_along_axis(x, i, 0), "take_along_axis: index 2000 is"),
    "a method": (lambda x, i: x.take(i), "take: index 2000 is"),
    "a function of NumPy's": (lambda x, i: np.take(x, i), "take: index 2000 is"),
    "a method of a ufunc": (add_at, "add.at: index 2000 is"),
    "an index": (lambda x, i: x[i], "index 2000 is"),
    "a function of functions": (
        lambda x, i: xarr.apply_along_axis(lambda v: xarr.take(v, i), 0, x),
        "take: index 2000 is",
    ),
}


def late_error(read: Callable[[Any, Any], Any], is_jitted: bool, backend: str) -> XarrError:
    """The error of a read of 1,000 elements, in a larger program that other functions of xarr's look at."""

    def program(x: Any, i: Any) -> Any:
        return xarr.sum(read(x, i + 1))

    with xarr.use_backend(backend), xarr.config(small_arrays="lazy"):
        operands = xarr.asarray(np.arange(1000.0)), xarr.asarray(np.array([3, 1999]))
        return error_of(lambda: float((xarr.jit(program) if is_jitted else program)(*operands)))


@pytest.mark.parametrize("is_jitted", [False, True], ids=["recorded", "jit"])
@pytest.mark.parametrize("name", LATE)
def test_an_error_that_a_program_finds_begins_with_the_function_that_recorded_it(
    name: str, is_jitted: bool
) -> None:
    read, start = LATE[name]
    error = late_error(read, is_jitted, "numpy")
    assert str(error).startswith(start)
    assert "built at " in str(error.__notes__)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.usefixtures("opaque")
@pytest.mark.parametrize("is_jitted", [False, True], ids=["recorded", "jit"])
@pytest.mark.parametrize("name", LATE)
def test_an_error_behind_a_flag_begins_with_it_too(name: str, is_jitted: bool) -> None:
    read, start = LATE[name]
    error = late_error(read, is_jitted, "opaque")
    assert str(error).startswith(start)
    assert "built at " in str(error.__notes__)


@pytest.mark.parametrize("traceback_mode", ["short", "full"])
def test_an_error_in_a_users_function_keeps_the_name_that_it_has(traceback_mode: str) -> None:
    with xarr.config(traceback=traceback_mode):
        error = error_of(lambda: xarr.apply_along_axis(lambda v: xarr.flip(v, 7), 0, x()))
    assert str(error).startswith("flip: axis 7")


@pytest.mark.parametrize("call", [xarr.apply_along_axis, lambda f, _, x: xarr.piecewise(x, [x > 0], [f])])
def test_an_error_of_a_jitted_function_names_that_one(call: Callable[..., Any]) -> None:
    def text(_: Any) -> str:
        return "no array"

    assert str(error_of(lambda: call(xarr.jit(text), 0, x()))).startswith("text: the result is not an array")


def test_an_error_names_one_function() -> None:
    for function in (
        xarr.sort,
        xarr.argsort,
        xarr.linalg.norm,
    ):  # whose names count once their modules are loaded
        assert callable(function)
    error = XarrError("sort: wanted more")
    for name, text in (("sort", "sort: wanted more"), ("linalg.norm", "linalg.norm: wanted more")):
        error.name_function(name)
        assert str(error) == text
    error.name_function("")
    assert str(error) == "sort: wanted more"
    for text in (
        "a slice: wanted ints",
        "gather [C1]: wanted ints",
        "wanted ints",
        "x0: wanted ints",
        "a.b: ints",
    ):
        error = XarrError(text)
        error.name_function("linalg.norm")
        assert str(error) == f"linalg.norm: {text}"
    for called in ("argsort", "linalg.norm", "norm"):
        error = XarrError(f"{called}: wanted more, as sort does")
        error.name_function("sort")
        assert str(error) == "sort: wanted more, as sort does"
    explained = error_of(lambda: x() + xarr.ones(2))
    text = str(explained)
    explained.name_function("sort")
    assert str(explained) == text


def _names_errors(function: Any) -> bool:
    """Whether a function, or one that it hands the call to, ends with `shorten`."""
    inner = [cell.cell_contents for cell in function.__closure__ or ()]
    codes = [each.__code__ for each in (function, *inner) if isinstance(each, FunctionType)]
    return any("shorten" in code.co_names for code in codes)


def test_every_function_for_users_names_its_errors() -> None:
    missing, functions = [], 0
    for namespace in (xarr, lax, xarr.linalg, xarr.fft, xarr.random, xarr.emath, stride_tricks):
        for name in dir(namespace):
            function = getattr(namespace, name)
            module = str(getattr(function, "__module__", "")).split(".")
            if isinstance(function, FunctionType) and module[0] == "xarr" and SURFACE & {*module[1:2]}:
                functions += 1
                missing += [] if name.startswith("_") or _names_errors(function) else [name]
    assert functions > 600
    assert missing == [], "each wants the decorator names_errors"
    assert not _names_errors(shorten)


# --- notebooks ----------------------------------------------------------------------------------------


class Shell:
    """The part of IPython's shell that is used."""

    def __init__(self, has_kernel: bool) -> None:
        self.execution_count = 1
        self.published: list[dict[str, str]] = []
        self.display_pub = SimpleNamespace(publish=self.published.append)
        self.InteractiveTB = SimpleNamespace(structured_traceback=self.format_traceback, tb_offset=0)
        if has_kernel:
            self.kernel = object()

    @staticmethod
    def format_traceback(kind: Any, error: Any, trace: Any, tb_offset: int) -> list[str]:
        return traceback.format_exception(kind, error, trace)


def in_shell(monkeypatch: pytest.MonkeyPatch, has_kernel: bool) -> Shell:
    shell, module = Shell(has_kernel), ModuleType("IPython")
    monkeypatch.setattr(module, "get_ipython", lambda: shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", module)
    return shell


def test_without_a_shell_the_lines_are_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with xarr.config(traceback="full"):
        error = error_of(lambda: x().sum(axis=7))
    lines = error._render_traceback_()
    assert all(isinstance(line, str) for line in lines)
    text = "".join(lines)
    assert text.startswith("Traceback (most recent call last)")
    assert "x().sum(axis=7)" in text
    assert "statistics" not in text
    assert "axis 7 is out of range" in text
    with xarr.config(traceback="full"):
        assert "statistics" in "".join(error._render_traceback_())


@pytest.mark.implicit
def test_a_notebook_shows_the_picture_once_and_first(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = in_shell(monkeypatch, has_kernel=True)
    error = error_of(lambda: x() + xarr.ones(3))
    for _ in range(2):  # IPython asks for the lines to show them, and to store them
        text = "".join(error._render_traceback_())
        assert "does not broadcast" in text
        assert "operators.py" not in text
    assert len(shell.published) == 1
    assert "<svg" in shell.published[0]["text/html"]
    assert shell.published[0]["text/plain"] == str(error)
    shell.execution_count += 1  # the same error raised in another cell
    error._render_traceback_()
    assert len(shell.published) == 2


@pytest.mark.implicit
def test_a_terminal_and_other_errors_show_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = in_shell(monkeypatch, has_kernel=False)
    error_of(lambda: x() + xarr.ones(3))._render_traceback_()
    assert not terminal.published
    notebook = in_shell(monkeypatch, has_kernel=True)
    error = error_of(lambda: xarr.jit(depends)(x()))
    text = "".join(error._render_traceback_())
    assert isinstance(error, TracedValueError)
    assert "jit.py" not in text
    assert not notebook.published


CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
if sys.argv[1] == "kernel":
    shell.kernel = object()
shell.run_cell("import xarr; x = xarr.ones((3, 4)); v = xarr.ones(3)")
outputs = []
for cell in (
    "x + v",
    "@xarr.jit\\ndef f(a):\\n    if a.sum() > 0:\\n        return a\\n    return -a\\nf(x)",
    "x[3]",
    "xarr.config.traceback = 'full'; x[3]",
):
    with capture_output() as captured:
        shell.run_cell(cell, store_history=True)
    pictures = [output.data for output in captured.outputs]
    outputs.append([captured.stdout, sum("<svg" in each.get("text/html", "") for each in pictures)])
print(json.dumps(outputs))
"""


@pytest.mark.implicit
@pytest.mark.parametrize("where", ["kernel", "terminal"])
def test_ipython_shows_no_frame_of_xarrs(where: str, tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    script = tmp_path / "cells.py"
    script.write_text(CELLS)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), where],
        capture_output=True,
        text=True,
        timeout=120,
        env={"IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    (clash, pictures), (jitted, _), (index, _), (full, _) = json.loads(done.stdout.splitlines()[-1])
    assert pictures == (1 if where == "kernel" else 0)
    clash, jitted, index, full = (
        re.sub(r"\x1b\[[0-9;]*m", "", text) for text in (clash, jitted, index, full)
    )
    for text, line in ((clash, "x + v"), (jitted, "if a.sum() > 0"), (index, "x[3]")):
        assert line in text
        assert "operators.py" not in text
        assert "jit.py" not in text
        assert "array.py" not in text
    assert "what would work" in clash
    assert "out of bounds" in index
    assert "basic.py" in full
