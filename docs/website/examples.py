"""Examples of public functions: `docs/website/examples/*.md`, a heading for each function and its doctest below.

A page of the reference shows them on the function's page; tests run them as those of every other page.  In the files of
`xarr.lax` a second fence holds the same in NumPy's words.  A function of several names, such as `xarr.abs` and
`xarr.absolute`, has one example.

Docstrings, and so `help`, do not have them: they are 250 kB, 53 kB compressed, beside a wheel that may have 1.8 MB, and
Python reads docstrings whenever it imports a module.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "examples"
_HEADING: Final = re.compile(r"^## `([\w.]+)`$", re.MULTILINE)


@cache
def read_examples() -> dict[str, str]:
    """The Markdown below the heading of each function, by its full name: `xarr.lax.add`."""
    return dict(
        pair for path in sorted(FOLDER.glob("*.md")) for pair in split_examples(path.read_text("utf-8"))
    )


def find_example(name: str, value: object) -> str | None:
    """The example of `value`, whose full name is `name`, or that of another name of the same object; None without."""
    by_name = read_examples()
    names = (name, *_names_by_identity().get(id(value), ()))
    return next((by_name[each] for each in names if each in by_name), None)


@cache
def _names_by_identity() -> dict[int, list[str]]:
    """The names with an example of each object, by its identity: the namespaces keep the objects."""
    names: dict[int, list[str]] = {}
    for name in read_examples():
        names.setdefault(id(_find(name)), []).append(name)
    return names


def _find(name: str) -> object:
    namespace, _, last = name.rpartition(".")
    return getattr(importlib.import_module(namespace), last)


def split_examples(text: str) -> list[tuple[str, str]]:
    """Full names and what stands below them; a name that comes twice is an error."""
    _, *parts = _HEADING.split(text)
    names = parts[::2]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two examples of {', '.join(twice)}: each function has one heading")
    return [(name, part.strip()) for name, part in zip(names, parts[1::2], strict=True)]


def example_to_rst(markdown: str) -> list[str]:
    """Fences as blocks of code, doctest's marks of blank lines as these; the lines between fences as they are."""
    result: list[str] = []
    for index, part in enumerate(re.split(r"^```\w*\n(.*?)^```$", markdown, flags=re.MULTILINE | re.DOTALL)):
        if index % 2:
            result += [
                ".. code-block:: pycon",
                "",
                *(f"   {line}".rstrip() for line in part.replace("<BLANKLINE>", "").splitlines()),
                "",
            ]
        elif part.strip():
            result += [part.strip().replace("`", "``"), ""]
    return result
