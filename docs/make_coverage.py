"""Write `docs/coverage.md`, NumPy's names and what xarr has for each: `python docs/make_coverage.py`.

What is the same follows from the library and from the records of `tests/numpy_records`; why a name is
absent, or how one without a record differs, stands in `docs/coverage.tsv`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = CHECKOUT / "docs" / "coverage.md"
REASONS: Final = CHECKOUT / "docs" / "coverage.tsv"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import xarr  # noqa: E402
from tests.support.numpy_records import attribute, records  # noqa: E402

_HEAD: Final = """\
# NumPy's names in xarr

<!-- Written by docs/make_coverage.py from tests/numpy_records and docs/coverage.tsv: change those and run it. -->

Each public name of NumPy {version} and what xarr has for it. *Same* means: the same parameters, and the same results
for the dtypes, shapes and arguments of its record in `tests/numpy_records`, to the bit or within the tolerance given
there. Parameters for writing into arrays, for subclasses and for memory order (`out`, `order`, `subok`, `like`,
`casting`; `where` and `dtype` of ufuncs) are left aside: an Array is a value. What NumPy does with objects, strings,
dates and records is absent everywhere.

What no row tells, since it holds everywhere: a slice is a value, not a view, so `r = x[0]; r += 1` leaves `x` as it
is, and `x[0] += 1` changes it; what has no dimensions is an Array, not a Python or NumPy scalar; floats beyond the
range of an integer type become its limit, as in XLA, where NumPy wraps.
"""


@dataclass(frozen=True)
class Row:
    """A name of NumPy; `state` is same, differs or absent, `remark` how or why."""

    name: str
    state: str
    remark: str


def numpy_names() -> dict[str, list[str]]:
    """The public names of NumPy by the part of it that they stand in."""
    parts: dict[str, Any] = {"": np, "linalg.": np.linalg, "fft.": np.fft}
    found = {
        prefix: [prefix + name for name in sorted(module.__all__) if not name.startswith("__")]
        for prefix, module in parts.items()
    }
    found["ndarray."] = [f"ndarray.{name}" for name in sorted(dir(np.ndarray)) if not name.startswith("_")]
    return found


def reasons() -> dict[str, tuple[str, str]]:
    """From each name of `docs/coverage.tsv`, its state (differs or absent) and remark."""
    return _read(REASONS)


@cache
def _read(path: Path) -> dict[str, tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    fields = [line.split("\t") for line in lines if line and not line.startswith("#")]
    for line in fields:
        if len(line) != 3 or line[1] not in ("same", "differs", "absent"):
            raise ValueError(f"coverage.tsv: wanted name, same/differs/absent and a remark, got {line}")
    if len({name for name, _, _ in fields}) != len(fields):
        raise ValueError("coverage.tsv: a name stands there twice")
    return {name: (state, remark) for name, state, remark in fields}


def in_xarr(name: str) -> bool:
    try:
        attribute(xarr, name)
    except AttributeError:
        return False
    return True


def row(name: str) -> Row | None:
    """The row of a name; None if nobody has said what becomes of it."""
    told = reasons().get(name)
    if told is not None:
        return Row(name, *told) if in_xarr(name) == (told[0] != "absent") else None
    if not in_xarr(name) or name not in records():
        return None
    record = records()[name]
    remark = "; ".join(filter(None, [record.signature, record.differs]))
    return Row(name, "differs" if remark else "same", remark)


def undecided() -> list[str]:
    """Names of NumPy that have neither a record nor a line that tells the truth in `docs/coverage.tsv`."""
    return [name for names in numpy_names().values() for name in names if row(name) is None]


def stale() -> list[str]:
    """Lines of `docs/coverage.tsv` about names that NumPy has not."""
    known = {name for names in numpy_names().values() for name in names}
    return sorted(reasons().keys() - known)


def _sections() -> Iterator[str]:
    titles = {"": "numpy", "linalg.": "numpy.linalg", "fft.": "numpy.fft", "ndarray.": "Methods of arrays"}
    for prefix, names in numpy_names().items():
        rows = [found for name in names if (found := row(name)) is not None]
        counts = {state: sum(one.state == state for one in rows) for state in ("same", "differs", "absent")}
        yield f"\n## {titles[prefix]}\n\n{', '.join(f'{n} {state}' for state, n in counts.items())}.\n"
        same = [f"`{one.name}`" for one in rows if one.state == "same" and not one.remark]
        yield f"\nSame: {', '.join(same)}.\n" if same else ""
        yield "\n| name | state | how or why |\n| --- | --- | --- |\n"
        yield from (f"| `{one.name}` | {one.state} | {one.remark} |\n" for one in rows if one.remark)


def page() -> str:
    """The text of `docs/coverage.md`."""
    version = ".".join(np.__version__.split(".")[:2])
    return _HEAD.format(version=version) + "".join(_sections())


if __name__ == "__main__":
    missing = undecided()
    if missing:
        print(f"{len(missing)} names are undecided: {', '.join(missing)}", file=sys.stderr)
    PAGE.write_text(page(), encoding="utf-8")
