"""The pages of the API reference, written when the site is built: a list for each namespace, a page for each name.

A namespace's list is in the order of the modules that its functions come from, which is by subject; a name that stands
in several namespaces has one page.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from website.writing import title, write

#: What a namespace holds, for the page that lists them.
NAMESPACES: Final = {
    "xarr": "arrays, NumPy's functions, transformations and explanations",
    "xarr.lax": "XLA's operations, whose broadcasting is said",
    "xarr.linalg": "matrices: solving, factors, eigenvalues, norms",
    "xarr.fft": "Fourier transforms",
    "xarr.random": "JAX's random numbers by keys, and NumPy's without",
    "xarr.polynomial": "series of polynomials",
    "xarr.emath": "roots and logarithms that become complex",
    "xarr.tree": "nested containers of arrays",
    "xarr.tree_util": "nested containers, by JAX's older names",
    "xarr.distributed": "meshes, replicas and what they exchange",
    "xarr.stablehlo": "reading and running StableHLO",
    "xarr.debug": "printing and callbacks from compiled functions",
    "xarr.errors": "what is raised",
    "xarr.puzzles": "the checker of the puzzles",
}
_OTHERS: Final = "Types and constants"


def names_of(namespace: str) -> list[str]:
    """The public names of the namespace that is called so."""
    return public_names(importlib.import_module(namespace))


def public_names(namespace: ModuleType) -> list[str]:
    """The names that the library itself defines, submodules and NumPy's own objects left out."""
    names = getattr(namespace, "__all__", None) or dir(namespace)
    return [name for name in sorted(names) if not name.startswith("_") and _is_own(getattr(namespace, name))]


def _is_own(value: object) -> bool:
    home = str(getattr(value, "__module__", "") or "")
    return not inspect.ismodule(value) and home.partition(".")[0] == "xarr" and "absent_names" not in home


def group_by_subject(namespace: ModuleType) -> dict[str, list[str]]:
    """Names by the module they come from, as a heading: `numpy_api.sorting.sets` is "Sorting: sets"."""
    result: dict[str, list[str]] = {}
    for name in public_names(namespace):
        value = getattr(namespace, name)
        is_function = callable(value) and not inspect.isclass(value)
        heading = _heading(str(value.__module__)) if is_function else _OTHERS
        result.setdefault(heading, []).append(name)
    return dict(sorted(result.items(), key=lambda item: (item[0] == _OTHERS, item[0])))


def _heading(module: str) -> str:
    parts = [
        part.strip("_").replace("_", " ")
        for part in module.split(".")[1:]
        if part not in ("numpy_api", "calls")
    ]
    words = ": ".join(parts[-2:]) or "xarr"
    return words[0].upper() + words[1:]


def write_pages(folder: Path) -> None:
    """Write the list of namespaces and each of their lists into `folder`; unchanged files stay as they are."""
    write(folder / "index.rst", "\n".join(_index_lines()))
    for name in NAMESPACES:
        write(folder / f"{name}.rst", "\n".join(_namespace_lines(name)))


def _index_lines() -> Iterator[str]:
    yield from title("API reference", "=")
    yield "Every public name, with its parameters and an example that the tests run."
    yield "Names of NumPy, JAX and Python lead to their own pages."
    yield "``help`` shows the docstrings: shapes, element types, errors and sources, without the examples, which every"
    yield "program would load with the functions, and which would make the wheel larger by 50 kB."
    yield from ("", ".. list-table::", "")
    for name, content in NAMESPACES.items():
        yield from (f"   * - :doc:`{name} <{name}>`", f"     - {content}")
    yield from ("", ".. toctree::", "   :hidden:", "", *(f"   {name}" for name in NAMESPACES), "")


def _namespace_lines(name: str) -> Iterator[str]:
    namespace = importlib.import_module(name)
    yield from title(name, "=")
    yield from (f"{NAMESPACES[name][0].upper()}{NAMESPACES[name][1:]}.", "", f".. currentmodule:: {name}", "")
    for heading, names in group_by_subject(namespace).items():
        yield from title(heading, "-")
        yield from (".. autosummary::", "   :toctree: names", "   :nosignatures:", "")
        yield from (*(f"   {each}" for each in names), "")
