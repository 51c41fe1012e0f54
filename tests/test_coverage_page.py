"""The page of NumPy's names: every name has an answer, and the page is the one that the script writes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support.scripts import docs_script


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
    assert coverage.undecided() == []
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
def test_a_line_that_says_nothing_is_refused(
    coverage: ModuleType, line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "coverage.tsv"
    path.write_text(f"# name\n{line}\n", encoding="utf-8")
    monkeypatch.setattr(coverage, "REASONS", path)
    with pytest.raises(ValueError, match=message):
        coverage.reasons()


def test_names_without_or_with_a_wrong_answer_show(
    coverage: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "coverage.tsv"
    path.write_text("sum\tabsent\tno\nmatrix\tsame\t\nnonsense\tabsent\tno\n", encoding="utf-8")
    monkeypatch.setattr(coverage, "REASONS", path)
    assert {"sum", "matrix", "pi"} <= set(coverage.undecided())
    assert coverage.stale() == ["nonsense"]
