"""A check that the tests of each module run it, for Python 3.12 or later, by a plugin of pytest.

`python -m tests.support.reached_modules`, or with files of tests after it.  Each file runs in a process of its own: a
function that keeps its results (`functools.cache`, compiled programs) runs only in the first file that calls it.  A
module counts as run where a test enters one of its functions; of one without functions nothing can be said.
Whether the tests pass is left to other runs.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.meta.test_modules import CHECKOUT, TABLE, find_tests_by_name, modules_of, rows_of

#: Exit statuses of a run of pytest that ran all its tests, whether they passed or not.
_COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class ReachedModules:
    """The files whose functions run while a test of a file runs, by that file."""

    def __init__(self) -> None:
        if sys.version_info < (3, 12):
            raise pytest.UsageError(
                f"wanted Python 3.12, whose sys.monitoring this needs, got {sys.version.split()[0]}"
            )
        self.by_test: dict[Path, set[str]] = defaultdict(set)
        self._test: Path | None = None
        monitoring: Any = sys.monitoring
        self._monitoring = monitoring
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "reached modules")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.PY_START, self._enter)

    def begin(self, test: Path) -> None:
        """Count what runs from now on for this file."""
        if test != self._test:
            self._test = test
            self._monitoring.restart_events()
        self._monitoring.set_events(self._monitoring.COVERAGE_ID, self._monitoring.events.PY_START)

    def end(self) -> None:
        self._monitoring.set_events(self._monitoring.COVERAGE_ID, 0)

    def close(self) -> None:
        """Give the tool's number back."""
        self._monitoring.free_tool_id(self._monitoring.COVERAGE_ID)

    def _enter(self, code: CodeType, _offset: int) -> Any:
        # Bodies of modules and classes run when they are imported, by the first test that needs them.
        if self._test is not None and code.co_flags & CO_OPTIMIZED:
            self.by_test[self._test].add(code.co_filename)
        return self._monitoring.DISABLE


def has_functions(module: Path) -> bool:
    """Whether anything can be said of a module: a function other than a stub of a protocol."""
    return any(
        isinstance(each, ast.Lambda)
        or (isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not all(map(_is_stub, each.body)))
        for each in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    )


def _is_stub(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring or an ellipsis."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def find_tests_of_modules(root: Path) -> dict[str, str]:
    """The file of tests of each module, by its name or by the table."""
    named = {
        module.as_posix(): test.as_posix()
        for module, test in find_tests_by_name(root, modules_of(root)).items()
    }
    rows = rows_of(TABLE.read_text(encoding="utf-8"))
    return named | {module: test for module, (test, _) in rows.items()}


def imported_file(module: str) -> Path:
    """The file that a module is imported from: backends may lie where they were installed."""
    package, *rest = Path(module.removeprefix("backends/")).parts
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, f"{package} is not installed"
    return Path(spec.origin).parent.joinpath(*rest)


def find_problems(
    tests: Mapping[str, str],
    reached: Mapping[str, Iterable[str]],
    file_of: Callable[[str], Path] = imported_file,
) -> list[str]:
    """A line for each module whose test ran without entering a function of it."""
    return [
        f"{module}: no test of {test} runs a function of it"
        for module, test in tests.items()
        if test in reached and has_functions(file_of(module)) and str(file_of(module)) not in reached[test]
    ]


# --- the plugin, of a run of some files -------------------------------------------------------------------

_REACHED: ReachedModules | None = None


def pytest_configure() -> None:
    global _REACHED
    _REACHED = ReachedModules()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    assert _REACHED is not None
    _REACHED.begin(item.path)
    try:
        return (yield)
    finally:
        _REACHED.end()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Let the exit status of a run that is complete say whether there are problems, and print them."""
    assert _REACHED is not None
    if exitstatus in _COMPLETE:
        reached = {test.relative_to(CHECKOUT).as_posix(): files for test, files in _REACHED.by_test.items()}
        lines = find_problems(find_tests_of_modules(CHECKOUT), reached)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if lines else pytest.ExitCode.OK
        print("", *lines, sep="\n")


# --- all files ----------------------------------------------------------------------------------------------


def run_file(test: str) -> tuple[int, str]:
    """The exit status and the output of a run of one file with the plugin."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "tests.support.reached_modules", test]
    result = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def main(files: Sequence[str], run: Callable[[str], tuple[int, str]] = run_file) -> str | None:
    """Print the problems of the files, by default of all that modules have; returns why the check failed."""
    tests = list(files) or sorted(set(find_tests_of_modules(CHECKOUT).values()))
    bad = 0
    with ThreadPoolExecutor(2) as pool:
        for test, (status, output) in zip(tests, pool.map(run, tests), strict=True):
            lines = [line for line in output.splitlines() if f": no test of {test} runs" in line]
            bad += status != pytest.ExitCode.OK
            if lines or status != pytest.ExitCode.OK:
                print(*(lines or [f"{test}: pytest ended with {status}", output]), sep="\n", flush=True)
    return f"{bad} of {len(tests)} files" if bad else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
