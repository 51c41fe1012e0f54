"""Records of NumPy functions: how each name that xarr shares with NumPy is tried beside NumPy's own.

A module of `tests/numpy_records` holds `RECORDS`, from the name (`median`, `linalg.solve`) to its `Record`;
`tests/test_numpy_functions.py` runs them all, and `docs/make_coverage.py` reads what differs.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

import xarr
from tests.support.functions import DTYPES, SHAPES, expression, same, sample
from xarr.errors import XarrError

FOLDER: Final = Path(__file__).resolve().parents[1] / "numpy_records"

#: Parameters that NumPy has for writing into arrays, subclasses and memory order, which values have not:
#: xarr leaves them out, or takes them only to refuse them with the reason.
WITHOUT: Final = frozenset(
    {"out", "order", "subok", "like", "casting", "signature", "overwrite_input", "where"}
    | {"device", "stable", "mean", "correction", "copy"}
)


@dataclass(frozen=True)
class Record:
    """How a function is tried beside NumPy's.

    Each of `expressions` (`"xp.median(x, axis=0)"`) is evaluated with NumPy and with xarr, for `x`, `y`, `z`
    of every dtype and shape, given as NumPy arrays and as Arrays.  An input is `sample`d with seed 0, 1, 2;
    `special` says whether NaN, infinities and extremes are among the values, and `limits`, if given, clips
    them.  With `rtol` None results have the same bits; else they lie within it (a dict says it by dtype).
    What NumPy refuses xarr must refuse; `wider` names expressions that xarr may refuse or answer otherwise
    where NumPy fails.  `signature` says in words how the parameters differ, "" where they are equal up to
    `WITHOUT`.  `differs` says in words how results differ, for docs/coverage.md.
    """

    expressions: tuple[str, ...]
    dtypes: tuple[str, ...] = tuple(DTYPES)
    shapes: tuple[tuple[int, ...], ...] = tuple(SHAPES)
    rtol: float | dict[str, float] | None = None
    special: bool = True
    limits: tuple[float, float] | None = None
    signature: str = ""
    differs: str = ""
    #: How many of `x`, `y`, `z` the expressions use.
    inputs: int = field(default=1)

    def tolerance(self, dtype: str) -> float | None:
        return self.rtol.get(dtype) if isinstance(self.rtol, dict) else self.rtol


@cache
def records() -> dict[str, Record]:
    """All records by name.  ValueError if two modules have the same name."""
    found: dict[str, Record] = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem.startswith("_"):
            continue
        for name, record in importlib.import_module(f"tests.numpy_records.{path.stem}").RECORDS.items():
            if name in found:
                raise ValueError(f"{path.name}: {name} has a record already")
            found[name] = record
    return found


def attribute(module: Any, name: str) -> Any:
    """`linalg.solve` of NumPy or xarr; AttributeError if it is not there."""
    return attrgetter(name)(module)


def inputs(record: Record, shape: tuple[int, ...], dtype: str) -> list[np.ndarray[Any, Any]]:
    values = [sample(shape, dtype, special=record.special, seed=seed) for seed in range(record.inputs)]
    if record.limits is None or dtype == "bool":
        return values
    low, high = (np.asarray(limit).astype(dtype) for limit in record.limits)
    return [np.clip(value, low, high) if np.dtype(dtype).kind != "c" else value for value in values]


def combinations(record: Record) -> Iterator[tuple[tuple[int, ...], str]]:
    """Shapes and dtypes to try: all of them with NUMPY_RECORDS=all in the environment.  Otherwise each
    dtype in the largest shape of rank 2 or less, and each shape in int64 and float64."""
    if os.environ.get("NUMPY_RECORDS") == "all":
        yield from ((shape, dtype) for dtype in record.dtypes for shape in record.shapes)
        return
    usual = max(record.shapes, key=lambda shape: (len(shape) <= 2, len(shape), math.prod(shape)))
    wide = [dtype for dtype in ("int64", "float64") if dtype in record.dtypes] or record.dtypes[:1]
    for dtype in record.dtypes:
        yield from ((shape, dtype) for shape in record.shapes if shape == usual or dtype in wide)


def try_beside_numpy(text: str, record: Record, shape: tuple[int, ...], dtype: str) -> bool:
    """Assert that the expression gives in xarr what it gives in NumPy; False if NumPy refuses it."""
    call, given = expression(text), inputs(record, shape, dtype)
    forms = (given, [xarr.asarray(value) for value in given])
    try:
        with np.errstate(all="ignore"):
            wanted = call(np, *[value.copy() for value in given])
    except (ValueError, TypeError, IndexError, np.linalg.LinAlgError) as error:
        for form in forms:
            _assert_refused(call, form, error)
        return False
    for form in forms:
        same(_plain(call(xarr, *form)), _plain(wanted), record.tolerance(dtype))
    return True


def _assert_refused(call: Any, form: list[Any], error: Exception) -> None:
    try:
        found = call(xarr, *form)
        if isinstance(found, xarr.Array):
            found.evaluate()
    except (XarrError, np.linalg.LinAlgError):
        return
    raise AssertionError(f"NumPy refuses this ({type(error).__name__}: {error}), xarr gives {found!r}")


def _plain(value: Any) -> Any:
    """Named tuples as tuples."""
    return tuple(value) if isinstance(value, tuple) else value


def signature_difference(name: str) -> str:
    """What differs between the parameters of NumPy's function and xarr's, "" for nothing.

    Parameters `WITHOUT` are left aside on both sides.  A function whose signature NumPy does not tell
    (ValueError) has nothing to differ from.
    """
    try:
        theirs = _parameters(attribute(np, name))
    except (ValueError, TypeError):
        return ""
    ours = _parameters(attribute(xarr, name))
    return "" if ours == theirs else f"NumPy has ({', '.join(theirs)}), xarr ({', '.join(ours)})"


def _parameters(function: Any) -> list[str]:
    found = inspect.signature(function).parameters.values()
    return [
        f"{'*' if one.kind is one.KEYWORD_ONLY else ''}{one.name}{_default(one)}"
        for one in found
        if one.name not in WITHOUT and one.kind not in (one.VAR_KEYWORD,)
    ]


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return ""
    default = parameter.default
    return "=…" if default is np._NoValue else f"={default!r}"  # type: ignore[attr-defined]
