"""Names of JAX: which are there, which are not and why, and in what the signatures of the shared ones differ."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import jax
import pytest

import xarr
from tests.support.checkout import CHECKOUT
from xarr import absent

MODULES = {"": jax, "lax": jax.lax, "lax.linalg": jax.lax.linalg, "random": jax.random, "tree": jax.tree}


def _own(path: str) -> ModuleType:
    module = xarr
    for part in filter(None, path.split(".")):
        module = getattr(module, part)
    return module


def _missing(path: str, theirs: ModuleType) -> Iterator[str]:
    for name in dir(theirs):
        if not name.startswith("_") and not name.endswith("_p") and not hasattr(_own(path), name):
            yield f"{path}.{name}".removeprefix(".")


def test_every_name_of_jax_is_there_or_has_a_reason() -> None:
    missing = {name for path, theirs in MODULES.items() for name in _missing(path, theirs)}
    listed = set(absent.reasons_of_jax())
    assert missing <= listed, sorted(missing - listed)
    assert listed - missing <= {"core", "float0", "version", "dtypes"}, sorted(listed - missing)


def test_the_table_names_each_once() -> None:
    with open(absent.PATH_OF_JAX, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
    names = [name for row in rows for name in row[1].split()]
    assert len(names) == len(set(names)) and all(len(row) == 2 for row in rows)


def test_the_page_lists_what_is_left_out() -> None:
    page = (CHECKOUT / "docs" / "beside_jax_lax.md").read_text(encoding="utf-8")
    names: dict[str, list[str]] = {}
    for name, reason in absent.reasons_of_jax().items():
        names.setdefault(reason, []).append(f"`{name}`")
    for reason, shown in names.items():
        assert f"| {reason} | {', '.join(shown)} |" in page


@pytest.mark.parametrize(
    ("path", "name", "words"),
    [
        ("", "grad", "which JAX has: derivatives are planned"),
        ("", "vmap", r"vmap is planned; until then lax\.map"),
        ("", "make_jaxpr", r"xarr\.lower\(f, \*args\) gives the graph"),
        ("lax", "psum", "several devices are planned"),
        ("lax.linalg", "schur", "LAPACK's routine"),
    ],
)
def test_the_error_says_why(path: str, name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(_own(path), name)


@pytest.mark.parametrize(
    ("expression", "suggestion"),
    [
        ("xarr.lax.dynamicslice", "dynamic_slice"),
        ("xarr.random.unifrom", "uniform"),
        ("xarr.tree.mapp", "map"),
    ],
)
def test_python_suggests_the_name_that_was_meant(expression: str, suggestion: str) -> None:
    code = f"import xarr, xarr.tree; {expression}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"Did you mean: '{suggestion}'?" in run.stderr


def test_stop_gradient_changes_nothing() -> None:
    x = {"a": xarr.ones(2)}
    assert xarr.lax.stop_gradient(x) is x


def test_an_import_of_a_name_says_why() -> None:
    with pytest.raises(ImportError, match="which JAX has: derivatives are planned"):
        from xarr import grad  # type: ignore[attr-defined]  # noqa: F401
