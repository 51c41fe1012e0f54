"""What `xarr` imports when it is first asked for."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import xarr

MODULES = {module: names.split() for module, names in xarr._LATE_MODULES.items() if names}
ROUTINES = [module for module in MODULES if module.startswith("functions.routines")]


@pytest.mark.parametrize("module", MODULES)
def test_every_late_name_is_there(module):
    loaded = importlib.import_module(f"xarr.{module}")
    for name in MODULES[module]:
        assert getattr(xarr, name) is getattr(loaded, name)
        assert name in dir(xarr)


@pytest.mark.parametrize("module", ROUTINES)
def test_the_table_has_all_that_a_module_of_routines_exports(module):
    assert sorted(MODULES[module]) == sorted(importlib.import_module(f"xarr.{module}").__all__)


def test_type_checkers_see_the_late_modules():
    tree = ast.parse(Path(xarr.__file__).read_text(encoding="utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {inner.module for node in guarded for inner in node.body if isinstance(inner, ast.ImportFrom)}
    assert {f"xarr.{module}" for module in MODULES} == seen


def test_importing_xarr_loads_no_late_module():
    code = "import sys, xarr; print(*(m for m in xarr._LATE_MODULES if f'xarr.{m}' in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'xarr' has no attribute 'hannning'"):
        xarr.hannning  # noqa: B018
