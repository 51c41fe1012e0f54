"""Links to the pages of NumPy, JAX and Python: names in docstrings become references, without a network.

`references.txt` is the list of names.  Sphinx's inventories of them are written when the site is built, by the patterns
of these sites' addresses; with XARR_INVENTORIES=online Sphinx asks the sites for theirs first.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

LIST: Final = Path(__file__).with_name("references.txt")
SITES: Final = {
    "numpy": "https://numpy.org/doc/stable/",
    "jax": "https://docs.jax.dev/en/latest/",
    "python": "https://docs.python.org/3/",
}
#: Pages by the beginning of a name; the first that fits counts.
_PAGES: Final = (
    ("numpy.random.", "reference/random/generated/{name}.html#{name}"),
    ("numpy.", "reference/generated/{name}.html#{name}"),
    ("jax.stages.", "jax.stages.html#{name}"),
    ("jax.sharding.", "jax.sharding.html#{name}"),
    ("jax.", "_autosummary/{name}.html#{name}"),
    ("builtins.", "library/{page}.html#{short}"),
    ("", "library/{module}.html#{name}"),
)
_ERROR: Final = re.compile(r"Error$|Warning$|Exception$|^KeyboardInterrupt$")
#: What code in docstrings means Python's; other words are names of xarr's functions, as `max` is.
_OF_PYTHON: Final = frozenset(["bool", "complex", "float", "int", "len", "print", "str"])
_BARE: Final = re.compile(r"(?<![\w.`])(?:numpy|jax)(?:\.\w+)+")
_CODE: Final = re.compile(r"``([\w.]+)``")
#: Namespaces of NumPy by those of xarr.
_SAME: Final = {
    "xarr.Array": "numpy.ndarray",
    "xarr": "numpy",
    **{f"xarr.{name}": f"numpy.{name}" for name in ("linalg", "fft", "random", "emath")},
}


@cache
def read_names() -> frozenset[str]:
    """The names that are linked, as they are imported: `numpy.sort`, `builtins.ValueError`."""
    return frozenset(LIST.read_text(encoding="utf-8").split())


def site_of(name: str) -> str:
    """The site that has the page of a name."""
    first = name.partition(".")[0]
    return first if first in SITES else "python"


def page_of(name: str) -> str:
    """The page of a name and the position on it, below the address of its site."""
    module, _, short = name.rpartition(".")
    page = "exceptions" if _ERROR.search(short) else "functions"
    pattern = next(pattern for start, pattern in _PAGES if name.startswith(start))
    return pattern.format(name=name, module=module, short=short, page=page)


def inventory(site: str, names: Iterable[str]) -> bytes:
    """The names of a site as Sphinx's inventory, version 2."""
    head = f"# Sphinx inventory version 2\n# Project: {site}\n# Version: \n# The remainder is compressed using zlib.\n"
    rows = [
        f"{_inventory_name(name)} py:function 1 {page_of(name)} -\n"
        for name in sorted(names)
        if site_of(name) == site
    ]
    return head.replace("remainder is", "remainder of this file is").encode() + zlib.compress(
        "".join(rows).encode()
    )


def write_inventories(folder: Path) -> dict[str, tuple[str, tuple[str | None, ...]]]:
    """Write the inventories, and return Sphinx's setting for them."""
    folder.mkdir(exist_ok=True)
    asked = (None,) if os.environ.get("XARR_INVENTORIES") == "online" else ()
    for site in SITES:
        (folder / f"{site}.inv").write_bytes(inventory(site, read_names()))
    return {site: (address, (*asked, str(folder / f"{site}.inv"))) for site, address in SITES.items()}


def own_name(name: str) -> str:
    """NumPy's name of what xarr calls so."""
    namespace, _, last = name.rpartition(".")
    return f"{_SAME.get(namespace, '')}.{last}"


def link(line: str, own: str = "") -> str:
    """A line of reStructuredText with references in place of names that are linked.

    own: the full name of what the docstring is of; where its source is said to be NumPy, that is the link.
    """
    names = read_names()
    parts = re.split(r"(``.+?``)", line)
    parts[1::2] = [_CODE.sub(lambda code: _role(_full(code[1])) or code[0], part) for part in parts[1::2]]
    parts[::2] = [_BARE.sub(lambda bare: _role(bare[0]) or bare[0], part) for part in parts[::2]]
    text = "".join(parts)
    if text.startswith("**Source**") and own_name(own) in names:
        return re.sub(r"\bNumPy\b", _role(own_name(own), "NumPy"), text, count=1)
    return text


def mentions(text: str) -> Iterator[str]:
    """The names of NumPy and JAX that a docstring mentions, and those of Python in code."""
    yield from _BARE.findall(text)
    yield from (_full(code) for code in re.findall(r"`([\w.]+)`", text))


def _full(name: str) -> str:
    """A name as it is imported; a word that means something else stays as it is."""
    return f"builtins.{name}" if name in _OF_PYTHON or _ERROR.search(name) else name


def _inventory_name(name: str) -> str:
    return name.removeprefix("builtins.")


def _role(name: str, text: str = "") -> str:
    """A reference to a name that is linked; "" for any other."""
    if name not in read_names():
        return ""
    target = f"{text} <{_inventory_name(name)}>" if text else _inventory_name(name)
    return f":external+{site_of(name)}:py:obj:`{target}`"
