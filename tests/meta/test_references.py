"""Links to NumPy, JAX and Python: the names of the list exist, and docstrings name no others."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "docs"))

from website import reference, references


def object_of(name: str) -> Any:
    """The object that is imported by a full name; None if there is none."""
    module, _, rest = name.partition(".")
    try:
        value: Any = import_module(module)
        for part in rest.split("."):
            try:
                value = getattr(value, part)
            except AttributeError:
                value = import_module(f"{value.__name__}.{part}")
    except (ImportError, AttributeError, TypeError):
        return None
    return value


def docstrings() -> Iterator[tuple[str, str]]:
    """The docstrings of all public names and of the public members of public classes."""
    for namespace in reference.NAMESPACES:
        module = import_module(namespace)
        for name in reference.names_of(namespace):
            value = getattr(module, name)
            yield f"{namespace}.{name}", value.__doc__ or ""
            if inspect.isclass(value):
                for each in dir(value):
                    member = inspect.getattr_static(value, each)
                    text = getattr(member, "__doc__", None)
                    if not each.startswith("_") and isinstance(text, str):
                        yield f"{namespace}.{name}.{each}", text


def list_unlinked(texts: Iterable[tuple[str, str]], names: frozenset[str]) -> list[str]:
    """The names that docstrings mention, and NumPy's of the same functions, which exist and are not in the list."""
    named = set[str]()
    for own, text in texts:
        named.update(references.mentions(text))
        if "NumPy" in text:
            named.add(references.own_name(own))
    kept = sorted(each for each in named - names if each.partition(".")[0] in ("numpy", "jax", "builtins"))
    return [each for each in kept if _is_shown(each)]


def _is_shown(name: str) -> bool:
    """Whether it exists and has a page: modules and constants of Python have none of their own."""
    value = object_of(name)
    return (
        value is not None
        and not inspect.ismodule(value)
        and (callable(value) or not name.startswith("builtins."))
    )


def test_every_name_exists() -> None:
    pytest.importorskip("jax")
    assert [name for name in sorted(references.read_names()) if object_of(name) is None] == []


def test_a_name_that_does_not_exist_is_found() -> None:
    assert (
        object_of("numpy.nosuchfunction")
        is object_of("jax.lax.nosuch")
        is object_of("nosuchmodule.x")
        is None
    )
    assert object_of("numpy.linalg.norm") is not None


def test_names_stand_once_and_in_order() -> None:
    lines = references.LIST.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))


def test_docstrings_mention_no_other_names() -> None:
    pytest.importorskip("jax")
    assert list_unlinked(docstrings(), references.read_names()) == [], (
        "add them to docs/website/references.txt"
    )


def test_a_name_that_is_missing_is_found() -> None:
    texts = [
        ("xarr.sort", "Sort.  Source: NumPy; `numpy.argsort`, `ValueError`, `axis`, `None`, jax.lax.sort.")
    ]
    assert list_unlinked(texts, frozenset()) == [
        "builtins.ValueError",
        "jax.lax.sort",
        "numpy.argsort",
        "numpy.sort",
    ]
    assert (
        list_unlinked(
            texts, frozenset(["numpy.sort", "numpy.argsort", "jax.lax.sort", "builtins.ValueError"])
        )
        == []
    )


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("numpy.sort", "reference/generated/numpy.sort.html#numpy.sort"),
        ("numpy.random.rand", "reference/random/generated/numpy.random.rand.html#numpy.random.rand"),
        ("jax.lax.gather", "_autosummary/jax.lax.gather.html#jax.lax.gather"),
        ("jax.stages.Lowered", "jax.stages.html#jax.stages.Lowered"),
        ("builtins.ValueError", "library/exceptions.html#ValueError"),
        ("builtins.len", "library/functions.html#len"),
        ("json.dumps", "library/json.html#json.dumps"),
    ],
)
def test_pages(name: str, page: str) -> None:
    assert references.page_of(name) == page


def test_sphinx_reads_the_inventories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = pytest.importorskip("sphinx.util.inventory")
    monkeypatch.delenv("XARR_INVENTORIES", raising=False)
    mapping = references.write_inventories(tmp_path / "inventories")
    address, (path,) = mapping["numpy"]
    with open(str(path), "rb") as file:
        read = files.InventoryFile.load(file, address, lambda *parts: "".join(parts))
    assert len(read["py:function"]) == sum(name.startswith("numpy.") for name in references.read_names())
    monkeypatch.setenv("XARR_INVENTORIES", "online")
    assert references.write_inventories(tmp_path / "inventories")["jax"][1][0] is None


def test_lines_get_references() -> None:
    line = references.link("as jax.lax.conv, ``int`` and ``numpy.sort(x)``, ``axis`` of NumPy.", "xarr.sort")
    conv = ":external+jax:py:obj:`jax.lax.conv`"
    assert line == f"as {conv}, :external+python:py:obj:`int` and ``numpy.sort(x)``, ``axis`` of NumPy."
    source = references.link("**Source** NumPy and NumPy.", "xarr.sort")
    assert source == "**Source** :external+numpy:py:obj:`NumPy <numpy.sort>` and NumPy."
    assert references.link("**Source** NumPy.", "xarr.lax.sort") == "**Source** NumPy."
