"""The check that tests of modules run them, on made-up files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import xarr_numpy
from tests.meta.test_modules import CHECKOUT
from tests.support.reached_modules import (
    ReachedModules,
    find_problems,
    find_tests_of_modules,
    has_functions,
    imported_file,
    main,
)

TESTS = {"run.py": "test_a.py", "idle.py": "test_a.py", "numbers.py": "test_a.py"}


def test_a_test_that_does_not_run_its_module_is_named(tmp_path: Path) -> None:
    for name, text in (
        ("run.py", "def f(): return 1"),
        ("idle.py", "def g(): return 1"),
        ("numbers.py", "N = 1"),
    ):
        (tmp_path / name).write_text(text)
    reached = {"test_a.py": {str(tmp_path / "run.py")}}
    assert find_problems(TESTS, reached, tmp_path.joinpath) == [
        "idle.py: no test of test_a.py runs a function of it"
    ]
    assert find_problems(TESTS, {}, tmp_path.joinpath) == [], "of tests that did not run nothing is said"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("N = 1", False),
        ("class P:\n def f(self): ...", False),
        ('class P:\n def f(self):\n  """What it does."""', False),
        ("class P:\n def f(self):\n  return 1", True),
        ("f = lambda: 1", True),
        ("async def f(): return 1", True),
    ],
)
def test_stubs_are_no_functions(text: str, wanted: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert has_functions(path) is wanted


def test_every_module_has_a_file_of_tests_and_a_file_that_is_imported() -> None:
    tests = find_tests_of_modules(CHECKOUT)
    assert tests["xarr/shapes.py"] == "tests/test_shapes.py"
    assert tests["backends/xarr_numpy/backend.py"] == "tests/test_backend.py"
    installed = Path(xarr_numpy.__path__[0])
    assert imported_file("backends/xarr_numpy/ops/table.py") == installed / "ops" / "table.py"
    assert all(
        (CHECKOUT / test).is_file() and imported_file(module).is_file() for module, test in tests.items()
    )


def test_problems_of_all_files_are_printed_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    line = "idle.py: no test of b.py runs a function of it"
    outputs = {"a.py": (0, "3 passed"), "b.py": (1, f"\n{line}\n1 failed"), "c.py": (4, "no such file")}
    assert main(list(outputs), outputs.__getitem__) == "2 of 3 files"
    assert capsys.readouterr().out.splitlines() == [line, "c.py: pytest ended with 4", "no such file"]
    assert main(["a.py"], outputs.__getitem__) is None


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
            find_problems({}, {})
            reached.end()
        find_problems({}, {})
    finally:
        reached.close()
    assert {
        test for test, files in reached.by_test.items() if find_problems.__code__.co_filename in files
    } == {
        first,
        second,
    }
