"""Write what was seen on a GPU, and who computes each operation there, into `docs/backends.md`.

    python docs/make_backends.py
    python docs/make_backends.py FOLDER    # after a session of benchmarks/gpu_session.py that wrote there

The second writes the record of the session first, `docs/gpu_record.json`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = CHECKOUT / "docs" / "backends.md"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

from tests.support import gpu_record  # noqa: E402
from tests.support.gpu_operations import Way, ways  # noqa: E402
from xarr.dtypes import COMPLEX, FLOAT, SIGNED, SUB_BYTE, TABLE, UNSIGNED  # noqa: E402

START: Final = "<!-- Written by docs/make_backends.py from here on. -->"
_REAL: Final = f"""\
{START}

## What ran on a GPU

%s

Tests of the backend, with all that `--thorough` adds; those of several devices were skipped:

| tests | passed | failed | skipped |
| --- | --- | --- | --- |
"""
_HEAD: Final = """\

## Who computes what on a GPU

By the graphs of `tests/support/graphs.py` with every element type that their operations accept. "By" says who computes
an operation on its own:

* *kernel*: one of `xarr_cupy`, which in a group with others is one with theirs;
* a library by its name; *host*: the NumPy backend, by the table above;
* *parts*: the operations that it is defined by; *graphs*: what runs others, whose operations are found here, and of
  which the host may read a number; *memory*: nothing is to be computed.

"Max ULP" is the largest distance from the exact result: 0 where it is exact, 0.5 where it is the nearest number. Of
functions it is what was found of compiled loops on the CPU, by [Accuracy beside XLA](accuracy.md); of complex numbers
the bound of the tests, in ULP of the larger part; *sum*: that of a sum of so many terms, each of which is rounded
once; –: that of the operations or of LAPACK's function behind it. Where a line names two, shapes or another element
type decide.

"Seen" says where: *real* has on the GPU above, and on the emulated device, the bits of the compiled CPU engine, as
`tests/cuda/test_operations.py` compares for each row, in numbers of every kind, empty arrays and scalars; where a
library computes, results there were as near as sums in another order; *emulated* was seen on the emulated device only;
*on the CPU* is computed there, and was tested there; of a library with a *stand-in* only what is asked of it was seen.

| operation | element types | by | max ULP | seen |
| --- | --- | --- | --- | --- |
"""

#: Element types by one word, longer lists first.
_FLOAT8: Final = frozenset(row.dtype for row in TABLE if row.bits == 8 and row.dtype in FLOAT)
_FAMILIES: Final[Mapping[str, frozenset[np.dtype[Any]]]] = {
    "all": frozenset(row.dtype for row in TABLE),
    "integers": SIGNED | UNSIGNED,
    "floats": FLOAT,
    "signed integers": SIGNED,
    "unsigned integers": UNSIGNED,
    "float8": _FLOAT8,
    "less than 8 bits": frozenset(SUB_BYTE),
    "complex": COMPLEX,
}


def text() -> str:
    """The page."""
    above = PAGE.read_text(encoding="utf-8").partition(START)[0]
    record = gpu_record.read(gpu_record.PATH.read_text(encoding="utf-8"))
    files = "".join(
        f"| `{file}` | {' | '.join(map(str, counts))} |\n" for file, counts in record.files.items()
    )
    ways_by_name = ways(record.operations)
    table = "".join(row for name, by_dtype in ways_by_name.items() for row in rows(name, by_dtype))
    return above + _REAL % "\n\n".join(record.device) + files + _HEAD + table


def rows(name: str, by_dtype: Mapping[np.dtype[Any], Way]) -> Iterator[str]:
    """The lines of an operation, one for all element types that it is computed of in the same way."""
    for number, way in enumerate(dict.fromkeys(by_dtype.values())):
        types = [dtype for dtype, other in by_dtype.items() if other == way]
        cells = [
            "" if number else f"`{name}`",
            ", ".join(families(types)),
            ", ".join(way.computers),
            way.ulp,
            way.seen,
        ]
        yield f"| {' | '.join(cells)} |\n"


def families(types: Sequence[np.dtype[Any]]) -> list[str]:
    """The element types in as few words as there are."""
    words, rest = [], list(types)
    for word, family in _FAMILIES.items():
        if family <= set(rest):
            words.append(word)
            rest = [dtype for dtype in rest if dtype not in family]
    return [*words, *map(str, rest)]


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        gpu_record.PATH.write_text(gpu_record.record_of_session(Path(folder)).text, encoding="utf-8")
    PAGE.write_text(text(), encoding="utf-8")
