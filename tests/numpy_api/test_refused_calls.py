"""The same wrong call on NumPy and on xarr: who refuses it, with what kind of error, and what the error says.

The calls are lines of `tests/refused_calls/*.txt`, under headings `[kind: reason]`:

- refused: both raise, and xarr's error is one of its own, an instance of NumPy's class, and names the function.
- another kind, in other words: both raise, and the reason says why xarr's error is not that.
- only xarr refuses, only NumPy refuses: the other one computes, for the reason given.
- same, differs: both compute, and to the same or not.
- at once: xarr alone is asked, since NumPy may take the memory, or the time.

A call that moves to another kind has to move in the files.  A line break in a call is written `\\n`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.checkout import CHECKOUT
from tests.support.numpy_records import OLDER
from xarr import errors
from xarr.errors import BroadcastError, XarrError

pytestmark = pytest.mark.implicit

CALLS = CHECKOUT / "tests" / "refused_calls"
#: Calls that a NumPy before 2.4 answers otherwise: it lacks the function or the option, or it takes with a
#: deprecation what later ones refuse.
CHANGED_IN_NUMPY = frozenset(
    {
        "np.zeros(None)",
        "np.arange(np.asarray([3]))",
        'np.fromstring("1 a 3", sep=" ")',
        'np.trim_zeros(x, "zz")',
        "np.trim_zeros(m)",
        "np.trim_zeros(5)",
        "np.pad(x, {1: 2})",
        "np.reshape(x, None)",
        "np.bincount(i, minlength=None)",
        'np.bincount(N.array([1], "uint64"))',
        "np.vecmat(x, m)",
        "np.matvec(m, m)",
        'np.quantile(x, 0.5, interpolation="zz")',
        "bool(e)",
        "bool(np.asarray([]))",
        "float(np.asarray([2.5]))",
        "int(np.asarray([[2.5]]))",
        "np.asarray([True])**2.0",
        "np.linalg.norm([], inf)",
    }
)
_TWO_NAMES = re.compile(r"[\w.]+: [\w.]+: ")


def sections() -> Iterator[tuple[str, str, list[str]]]:
    for path in sorted(CALLS.glob("*.txt")):
        for section in path.read_text().strip().split("\n\n"):
            heading, *calls = section.split("\n")
            yield path.stem, heading[1:-1], calls


def variables(xp: ModuleType) -> dict[str, Any]:
    values = {
        "x": np.arange(5.0),
        "i": np.array([3, 1, 2]),
        "m": np.arange(12.0).reshape(3, 4),
        "q": np.array([[2.0, 1.0], [1.0, 3.0]]),
        "b": np.array([True, False, True]),
        "c": np.array([1 + 2j, 3]),
        "s": np.arange(24.0).reshape(2, 3, 4),
        "z": np.array(2.5),
        "e": np.zeros((0, 3)),
        "u": np.array([1, 2, 250], np.uint8),
        "h": np.array([[True, False], [True, True]]),
        "f4": np.array([1, 2, 3], np.float32),
    }
    made = {name: xp.asarray(value) for name, value in values.items()}
    return {"np": xp, "N": np, "nan": np.nan, "inf": np.inf, **made}


def on_host(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [on_host(each) for each in value]
    return np.asarray(value) if isinstance(value, xarr.Array) else value


def run(xp: ModuleType, call: str) -> Any:
    """The value of an expression, or what statements call `r`; an error that its evaluation raises is marked."""
    scope = variables(xp)
    try:
        code = compile(call, call, "eval")
    except SyntaxError:
        exec(compile(call, call, "exec"), scope)
        return on_host(scope["r"])
    value = eval(code, scope)
    try:
        return on_host(value)
    except XarrError as error:
        error.add_note("at evaluation")
        raise


def outcome(xp: ModuleType, call: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run(xp, call.replace("\\n", "\n"))
        except Exception as error:
            return error


def is_of_kind(error: Exception, wanted: Exception) -> bool:
    """Whether who catches NumPy's error catches xarr's."""
    if isinstance(wanted, np.exceptions.AxisError):
        return isinstance(error, np.exceptions.AxisError)
    if isinstance(wanted, np.linalg.LinAlgError):
        return isinstance(error, np.linalg.LinAlgError)
    return isinstance(error, next(kind for kind in type(wanted).__mro__ if kind.__module__ == "builtins"))


def is_named(error: Exception, call: str) -> bool:
    """Whether the text names a function that is called, and no other; an explained operation has its own name."""
    names = re.findall(r"\b[a-z]\w*(?:\.[a-z]\w*)*\.([a-z]\w+)\(", call)
    if not names or isinstance(error, BroadcastError | np.linalg.LinAlgError):
        return True
    late = "at evaluation" in getattr(error, "__notes__", ())
    return late or (any(name in str(error) for name in names) and not _TWO_NAMES.match(str(error)))


def same(results: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return len(results) == len(wanted) and all(map(same, results, wanted))
    if not isinstance(wanted, np.ndarray | np.generic):
        return type(results) is type(wanted) and bool(results == wanted or results is wanted)
    alike = (results.dtype, results.shape) == (wanted.dtype, wanted.shape)
    return alike and np.allclose(results, wanted, rtol=1e-6, equal_nan=True)


def fault(kind: str, call: str) -> str | None:
    """The fault of a call of a kind; None if there is none."""
    result = outcome(xarr, call)
    if kind == "at once":
        right = isinstance(result, XarrError) and isinstance(result, MemoryError | ValueError | LookupError)
        return None if right else repr(result)
    wanted = outcome(np, call)
    refuses, numpy_refuses = isinstance(result, Exception), isinstance(wanted, Exception)
    expected = {"only xarr refuses": (True, False), "only NumPy refuses": (False, True)}.get(
        kind, (False, False) if kind in ("same", "differs") else (True, True)
    )
    if (refuses, numpy_refuses) != expected:
        return f"xarr: {result!r}, NumPy: {wanted!r}"
    if kind in ("same", "differs"):
        return None if same(result, wanted) == (kind == "same") else f"xarr: {result!r}, NumPy: {wanted!r}"
    if kind == "only xarr refuses":
        return None if isinstance(result, XarrError | TypeError | AttributeError) else repr(result)
    if kind == "only NumPy refuses":
        return None
    right = isinstance(result, XarrError) and is_of_kind(result, wanted) and is_named(result, call)
    if kind == "in other words":
        return None if is_of_kind(result, wanted) and not right else repr(result)
    return None if right == (kind == "refused") else f"{result!r}, where NumPy raises {wanted!r}"


@pytest.mark.parametrize(
    ("heading", "calls"), [pytest.param(h, calls, id=f"{stem}: {h}") for stem, h, calls in sections()]
)
def test_calls(heading: str, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kind, _, reason = heading.partition(": ")
    assert reason and len(set(calls)) == len(calls)
    calls = [call for call in calls if not (OLDER and call in CHANGED_IN_NUMPY)]
    faults = [f"{call}: {problem}" for call in calls if (problem := fault(kind, call)) is not None]
    assert not faults, "\n".join(faults)


def test_there_are_calls_to_all_of_the_surface() -> None:
    calls = [call for _, _, calls in sections() for call in calls]
    assert len(calls) > 1000 and set(calls) > CHANGED_IN_NUMPY
    text = "\n".join(calls)
    for module, least in ((np, 200), (np.linalg, 25), (np.fft, 15)):
        prefix = {np: "np", np.linalg: "np.linalg", np.fft: "np.fft"}[module]
        named = {name for name in re.findall(rf"\b{re.escape(prefix)}\.(\w+)", text) if hasattr(module, name)}
        assert len(named) > least, (prefix, len(named))


def test_an_error_with_two_names_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    call = "np.zeros(2, order='Z')"
    assert fault("refused", call) is None
    monkeypatch.setattr(errors, "_without_function", str)
    assert "zeros: full: wanted order" in str(fault("refused", call))
