"""The plugin that finds rows of `modules.tsv` whose test does not run the module, on made-up files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.reached_modules import ReachedModules, find_problems

ROWS = {"run.py": ("test_a.py", "f"), "idle.py": ("test_a.py", "g"), "numbers.py": ("test_a.py", "N")}


def test_a_test_that_does_not_run_its_module_is_named(tmp_path: Path) -> None:
    for name, text in (("run.py", "def f(): ..."), ("idle.py", "def g(): ..."), ("numbers.py", "N = 1")):
        (tmp_path / name).write_text(text)
    reached = {tmp_path / "test_a.py": {str(tmp_path / "run.py")}}
    assert find_problems(tmp_path, ROWS, reached) == ["idle.py: no test of test_a.py runs a function of it"]
    assert find_problems(tmp_path, ROWS, {}) == [], "of tests that did not run nothing is said"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has sys.monitoring")
def test_an_older_python_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match=r"wanted Python 3\.12"):
        ReachedModules()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring, of Python 3.12")
def test_functions_count_for_the_test_that_enters_them() -> None:
    reached = ReachedModules()
    first, second = Path("first.py"), Path("second.py")
    try:
        for test in (first, second):
            reached.begin(test)
            find_problems(Path(), {}, {})
            reached.end()
        find_problems(Path(), {}, {})
    finally:
        reached.close()
    assert {
        test for test, files in reached.by_test.items() if find_problems.__code__.co_filename in files
    } == {
        first,
        second,
    }
