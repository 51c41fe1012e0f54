"""Write `docs/coverage.md`, NumPy's names and what xarr has for each: `python docs/make_coverage.py`.

What is the same follows from the library and from the records of `tests/numpy_records`; why a name is
absent, or how one without a record differs, stands in `xarr/base/numpy_names.tsv`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = CHECKOUT / "docs" / "coverage.md"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import xarr  # noqa: E402
from tests.support.numpy_records import attribute, records  # noqa: E402
from xarr.base.absent_names import remarks  # noqa: E402

_HEAD: Final = """\
# NumPy's names in xarr

<!-- Written by docs/make_coverage.py from tests/numpy_records and xarr/base/numpy_names.tsv: change these, run it. -->

Each public name of NumPy {version} and what xarr has for it. *Same* means: the same parameters, and the same results
for the dtypes, shapes and arguments of its record in `tests/numpy_records`, to the bit or within the tolerance given
there. Parameters for subclasses and for memory order (`order`, `subok`, `like`, and `casting` but of ufuncs) are left
aside. An Array given as `out=` shows the result, as `x[...] = result` does; an array of NumPy's is refused there. What
NumPy does with objects, strings, dates and records is absent everywhere. `xarr.ma` and every other absent name is an
AttributeError that says what stands here.

What no row tells, since it holds everywhere: a slice is a value, not a view; what has no dimensions is an Array, not
a Python or NumPy scalar; floats beyond the range of an integer type become its limit, as in XLA, where NumPy wraps.

```pycon
>>> import xarr
>>> u = xarr.asarray([[1, 2], [3, 4]])
>>> r = u[0].copy()
>>> r += 1  # of NumPy's arrays, and without copy(), this would change u too; without it a warning says so
>>> u
Array([[1, 2],
       [3, 4]], dtype=int64)
>>> u[0] += 1  # this does
>>> u
Array([[2, 3],
       [3, 4]], dtype=int64)
>>> x = xarr.zeros(2, dtype="uint8")
>>> x[0] = 300.7  # NumPy: 44
>>> x
Array([255,   0], dtype=uint8)

```
"""


@dataclass(frozen=True)
class Row:
    """A name of NumPy; `state` is same, differs or absent, `remark` how or why."""

    name: str
    state: str
    remark: str


def _public(module: Any) -> list[str]:
    """The names that a module of NumPy's offers."""
    return getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]


def numpy_names() -> dict[str, list[str]]:
    """The public names of NumPy by the part of it that they stand in."""
    parts: dict[str, Any] = {
        "": np,
        "linalg.": np.linalg,
        "fft.": np.fft,
        "random.": np.random,
        "emath.": np.emath,
        "lib.stride_tricks.": np.lib.stride_tricks,
    }
    names = {
        prefix: [prefix + name for name in sorted(_public(module)) if not name.startswith("__")]
        for prefix, module in parts.items()
    }
    for kind in (np.ndarray, np.ufunc):
        prefix = f"{kind.__name__}."
        names[prefix] = [prefix + name for name in sorted(dir(kind)) if not name.startswith("_")]
    return names


def in_xarr(name: str) -> bool:
    try:
        attribute(xarr, name)
    except AttributeError:
        return False
    return True


def row(name: str) -> Row | None:
    """The row of a name; None if the table says nothing of it."""
    told = remarks().get(name)
    if told is not None:
        return Row(name, *told) if in_xarr(name) == (told[0] in ("same", "differs")) else None
    if not in_xarr(name) or name not in records():
        return None
    record = records()[name]
    remark = "; ".join(filter(None, [record.signature, record.differs]))
    return Row(name, "differs" if remark else "same", remark)


def find_undecided() -> list[str]:
    """Names of NumPy that have neither a record nor a line that tells the truth in `xarr/base/numpy_names.tsv`."""
    return [name for names in numpy_names().values() for name in names if row(name) is None]


def stale() -> list[str]:
    """Lines of `xarr/base/numpy_names.tsv` about names that NumPy has not."""
    known = {name for names in numpy_names().values() for name in names}
    return sorted({name for name, (state, _) in remarks().items() if state != "removed"} - known)


def _sections() -> Iterator[str]:
    titles = {"ndarray.": "Methods of arrays", "ufunc.": "Methods of ufuncs"}
    for prefix, names in numpy_names().items():
        title = titles.get(prefix, f"numpy.{prefix}".strip("."))
        rows = [line for name in names if (line := row(name)) is not None]
        counts = {state: sum(one.state == state for one in rows) for state in ("same", "differs", "absent")}
        yield f"\n## {title}\n\n{', '.join(f'{n} {state}' for state, n in counts.items())}.\n"
        same = [f"`{one.name}`" for one in rows if one.state == "same" and not one.remark]
        yield f"\nSame: {', '.join(same)}.\n" if same else ""
        yield "\n| name | state | how or why |\n| --- | --- | --- |\n"
        yield from (f"| `{one.name}` | {one.state} | {one.remark} |\n" for one in rows if one.remark)


def _list_removed() -> Iterator[str]:
    """The names that NumPy had once, and what replaced them."""
    rows = [(name, remark) for name, (state, remark) in remarks().items() if state == "removed"]
    yield "\n## Names that NumPy has removed\n\nAn AttributeError says what replaces them.\n"
    yield "\n| name | instead |\n| --- | --- |\n"
    yield from (f"| `{name}` | {remark} |\n" for name, remark in rows)


def page() -> str:
    """The text of `docs/coverage.md`."""
    version = ".".join(np.__version__.split(".")[:2])
    return _HEAD.format(version=version) + "".join([*_sections(), *_list_removed()])


if __name__ == "__main__":
    missing = find_undecided()
    if missing:
        print(f"{len(missing)} names are undecided: {', '.join(missing)}", file=sys.stderr)
    PAGE.write_text(page(), encoding="utf-8")
