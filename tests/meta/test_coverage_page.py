"""The page of NumPy's names: every name has an answer, and the page is the one that the script writes."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import warnings
from types import ModuleType

import numpy as np
import pytest

import xarr
from tests.support.numpy_records import OLDER
from tests.support.scripts import docs_script
from xarr.base import absent_names


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    return docs_script("make_coverage")


def skip_for_other_numpys(coverage: ModuleType) -> None:
    text: str = coverage.PAGE.read_text(encoding="utf-8")
    written = text.partition("Each public name of NumPy ")[2].partition(" ")[0]
    if written != ".".join(np.__version__.split(".")[:2]):
        pytest.skip(f"the page is about NumPy {written}")


def test_every_name_of_numpy_has_an_answer(coverage: ModuleType) -> None:
    skip_for_other_numpys(coverage)
    assert coverage.find_undecided() == []
    assert coverage.stale() == []


def test_the_page_is_up_to_date(coverage: ModuleType) -> None:
    skip_for_other_numpys(coverage)
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page(), "run: python docs/make_coverage.py"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sum\tsame", "wanted name, same"),
        ("sum\tperhaps\t", "wanted name, same"),
        ("e\tsame\t\ne\tsame\t", "twice"),
    ],
    ids=["short", "state", "twice"],
)
def test_a_line_that_says_nothing_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        absent_names.parse(["# name", *line.splitlines()])


def test_names_without_or_with_a_wrong_answer_show(
    coverage: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["sum\tabsent\tno", "matrix\tsame\t", "nonsense\tabsent\tno"]
    monkeypatch.setattr(coverage, "remarks", lambda: absent_names.parse(lines))
    assert {"sum", "matrix", "pi"} <= set(coverage.find_undecided())
    assert coverage.stale() == ["nonsense"]


ABSENT = [name for name, (state, _) in absent_names.remarks().items() if state == "absent"]


@pytest.mark.parametrize("name", [name for name in ABSENT if not name.startswith(("ndarray.", "ufunc."))])
def test_an_absent_name_says_what_the_page_says(coverage: ModuleType, name: str) -> None:
    path, _, last = f"xarr.{name}".rpartition(".")
    module = importlib.import_module(path)
    assert not hasattr(module, last)
    with pytest.raises(AttributeError) as caught:
        getattr(module, last)
    said = str(caught.value).removeprefix(f"module '{path}' has no attribute '{last}', which NumPy has: ")
    assert f"| `{name}` | absent | {said} |" in coverage.PAGE.read_text(encoding="utf-8")


REMOVED = [name for name, (state, _) in absent_names.remarks().items() if state == "removed"]


@pytest.mark.parametrize("name", [name for name in REMOVED if not name.startswith("ndarray.")])
def test_a_name_that_numpy_removed_says_what_replaces_it(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert OLDER or not hasattr(np, name)  # an older NumPy may have it still, as deprecated
    reason = absent_names.remarks()[name][1]
    with pytest.raises(AttributeError, match=rf"'{name}', which NumPy has removed: {re.escape(reason)}$"):
        getattr(xarr, name)
    for replacement in re.findall(r"`xarr\.(\w+)", reason):
        assert hasattr(xarr, replacement)


@pytest.mark.parametrize("name", [name for name in REMOVED if name.startswith("ndarray.")])
def test_a_method_that_numpy_removed_says_what_replaces_it(name: str) -> None:
    method = name.removeprefix("ndarray.")
    assert OLDER or not hasattr(np.ndarray, method)
    with pytest.raises(AttributeError, match=re.escape(absent_names.remarks()[name][1])):
        getattr(xarr.ones(2), method)


def test_every_name_that_numpy_2_removed_is_listed() -> None:
    expired = pytest.importorskip("numpy._expired_attrs_2_0").__expired_attributes__
    former = getattr(np, "__former_attrs__", {})
    assert {*expired, *former} - {*REMOVED} == set()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("from xarr import ma", "'ma' from 'xarr', which NumPy has: no masked arrays"),
        ("from xarr import trapz", "'trapz' from 'xarr', which NumPy has removed: `xarr.trapezoid`"),
        ("from xarr import ones, matrix", "'matrix' from 'xarr', which NumPy has: no subclasses"),
        ("from xarr import nonsense", "cannot import name 'nonsense'"),
    ],
)
def test_an_import_of_an_absent_name_gives_the_reason(statement: str, reason: str) -> None:
    with pytest.raises(ImportError, match=reason):
        exec(statement, {})


@pytest.mark.parametrize("path", ["xarr", "xarr.linalg", "xarr.fft", "xarr.random"])
def test_other_names_are_only_absent(path: str) -> None:
    for name in ("nonsense", "__nonsense__", "_nonsense"):
        with pytest.raises(AttributeError, match=f"^module '{path}' has no attribute '{name}'$"):
            getattr(importlib.import_module(path), name)


def test_the_words_are_read_when_a_name_is_missing() -> None:
    code = (
        "import xarr, xarr.base.absent_names as absent; assert not absent.remarks.cache_info().currsize;"
        "assert not hasattr(xarr, 'ma') and absent.remarks.cache_info().currsize"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
