"""Scripts of the checkout that are no modules: loaded, or run as a user runs them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.checkout import CHECKOUT


def docs_script(name: str) -> ModuleType:
    """`docs/<name>.py` as a module, for its functions."""
    return _script("docs", name)


def ci_script(name: str) -> ModuleType:
    """`.ci/<name>.py` as a module, for its functions."""
    return _script(".ci", name)


def _script(folder: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, CHECKOUT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    # Dataclasses look their module up while it is executed.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


def benchmark_importer(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[Callable[[str], ModuleType]]:
    """Gives what imports a module of `benchmarks/`, and then forgets the modules, and the folders, of these names."""
    monkeypatch.syspath_prepend(CHECKOUT / "benchmarks")
    yield importlib.import_module
    for name in [name for name in sys.modules if name.partition(".")[0] in names]:
        del sys.modules[name]


def run_example(
    name: str, *arguments: str, directory: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python examples/<name>.py` with `arguments`, with the library under test and no XARR_* variable."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("XARR_")}
    clean["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "examples" / f"{name}.py"), *arguments],
        cwd=directory,
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
