"""A plugin of pytest that says which rows of `tests/meta/modules.tsv` name a test that does not run the module.

`python -m pytest -n 0 -p tests.support.reached_modules`, on Python 3.12 or later: the files of tests that the table
names are run, and no others.  A module counts as run where a test enters one of its functions; of a module without
functions, or one that only other processes run, nothing can be said.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.meta.test_modules import CHECKOUT, TABLE, rows_of


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
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(
        isinstance(each, functions) for each in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    )


def find_problems(
    root: Path, rows: Mapping[str, tuple[str, str]], reached: Mapping[Path, Iterable[str]]
) -> list[str]:
    """A line for each row whose test ran without entering a function of the module."""
    return [
        f"{module}: no test of {test} runs a function of it"
        for module, (test, _) in rows.items()
        if root / test in reached
        and has_functions(root / module)
        and str(root / module) not in reached[root / test]
    ]


_ROWS = rows_of(TABLE.read_text(encoding="utf-8"))
_TESTS = {CHECKOUT / test for test, _ in _ROWS.values()}
_REACHED: ReachedModules | None = None


def pytest_configure() -> None:
    global _REACHED
    _REACHED = ReachedModules()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of files in the table, file by file."""
    items[:] = sorted((each for each in items if each.path in _TESTS), key=lambda each: each.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    assert _REACHED is not None
    _REACHED.begin(item.path)
    try:
        return (yield)
    finally:
        _REACHED.end()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    assert _REACHED is not None
    lines = find_problems(CHECKOUT, _ROWS, _REACHED.by_test)
    tests = f"{len(_REACHED.by_test)} of {len(_TESTS)} files"
    terminalreporter.section(f"rows of modules.tsv whose test does not run the module, {tests}")
    for line in lines:
        terminalreporter.write_line(line)
