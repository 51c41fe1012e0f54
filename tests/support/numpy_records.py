"""Records of NumPy functions: how each name that xarr shares with NumPy is tried beside NumPy's own.

A module of `tests/numpy_records` holds `RECORDS`, from the name (`median`, `linalg.solve`) to its `Record`;
`tests/numpy_api/test_numpy_functions.py` runs them all, and `docs/make_coverage.py` reads what differs.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.functions import DTYPES, SHAPES, expression, same, sample
from xarr.errors import XarrError

FOLDER: Final = Path(__file__).resolve().parents[1] / "numpy_records"

#: Parameters that NumPy has for subclasses and memory order, which values have not:
#: xarr leaves them out, or takes them only to refuse them with the reason.
WITHOUT: Final = frozenset({"order", "subok", "like", "casting", "signature"})

#: The records are of NumPy 2.4; an older one refuses more, and has other values for NaN.
OLDER: Final = tuple(map(int, np.__version__.split(".")[:2])) < (2, 4)

_OF_UFUNCS: Final = frozenset({"dtype", "where", "axes", "axis", "keepdims"})


def skip_without(name: str) -> None:
    """Skip a test that compares with a function (`linalg.solve`) that this NumPy does not have yet."""
    try:
        attrgetter(name)(np)
    except AttributeError:
        pytest.skip(f"NumPy {np.__version__} has no {name}")


@dataclass(frozen=True)
class Record:
    """A way to try a function beside NumPy's.

    Each of `expressions` (`"xp.median(x, axis=0)"`) is evaluated with NumPy and with xarr, for `x`, `y`, `z`
    of every dtype and shape, given as NumPy arrays and (methods, `"x.sum()"`: only) as Arrays; `inputs` says
    how many of them there are.
    They are `sample`d with seed 0, 1, 2; `special` says whether NaN, infinities and extremes are among the
    values (never in complex numbers, where NumPy's platforms differ), and `limits`, if given, clips them.

    With `rtol` None results have the same bits, else they lie within it; a dict says it by dtype of the
    inputs.  What NumPy refuses xarr must refuse, unless `wider` says that it takes more.  `signature` says in
    words how the parameters differ, "" where they are equal up to `WITHOUT`; `differs` how results differ, for
    docs/coverage.md.
    """

    expressions: tuple[str, ...]
    dtypes: tuple[str, ...] = tuple(DTYPES)
    shapes: tuple[tuple[int, ...], ...] = tuple(SHAPES)
    rtol: float | dict[str, float] | None = None
    special: bool = True
    limits: tuple[float, float] | None = None
    signature: str = ""
    differs: str = ""
    wider: bool = False
    inputs: int = 1

    def tolerance(self, dtype: str) -> float | None:
        """Within which results for inputs of `dtype` must lie: for integers and bools that of float64."""
        if not isinstance(self.rtol, dict):
            return self.rtol
        return self.rtol.get(dtype, self.rtol["float64"])


@cache
def records() -> dict[str, Record]:
    """All records by name.  ValueError if two modules have the same name."""
    every: dict[str, Record] = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem.startswith("_"):
            continue
        for name, record in importlib.import_module(f"tests.numpy_records.{path.stem}").RECORDS.items():
            if name in every:
                raise ValueError(f"{path.name}: {name} has a record already")
            every[name] = record
    return every


def attribute(module: Any, name: str) -> Any:
    """`linalg.solve`, `ndarray.sum` or `ufunc.at` of NumPy or xarr; AttributeError if it is not there."""
    own = name.replace("ndarray.", "Array.").replace("ufunc.", "add.")
    return attrgetter(own if module is xarr else name)(module)


def inputs(record: Record, shape: tuple[int, ...], dtype: str) -> list[np.ndarray[Any, Any]]:
    special = record.special and np.dtype(dtype).kind != "c"
    values = [sample(shape, dtype, special=special, seed=seed) for seed in range(record.inputs)]
    if record.limits is None or dtype == "bool":
        return values
    low, high = (np.asarray(limit).astype(dtype) for limit in record.limits)
    return [np.clip(value, low, high) if np.dtype(dtype).kind != "c" else value for value in values]


def combinations(record: Record) -> Iterator[tuple[tuple[int, ...], str]]:
    """Shapes and dtypes to try: all of them with NUMPY_RECORDS=all in the environment.  Otherwise each
    dtype in the largest shape of rank 2 or less, and each shape in int64 or float64, in turn."""
    if os.environ.get("NUMPY_RECORDS") == "all":
        yield from ((shape, dtype) for dtype in record.dtypes for shape in record.shapes)
        return
    usual = max(record.shapes, key=lambda shape: (len(shape) <= 2, len(shape), math.prod(shape)))
    wide = [dtype for dtype in ("int64", "float64") if dtype in record.dtypes] or record.dtypes[:1]
    for dtype in record.dtypes:
        for number, shape in enumerate(record.shapes):
            if shape == usual or dtype == wide[number % len(wide)]:
                yield shape, dtype


def try_beside_numpy(text: str, record: Record, shape: tuple[int, ...], dtype: str) -> bool:
    """Assert that the expression gives in xarr what it gives in NumPy; False if NumPy refuses it."""
    call, arguments = expression(text), inputs(record, shape, dtype)
    arrays = [xarr.asarray(value) for value in arguments]
    forms = (arrays,) if text.startswith("x.") else (arguments, arrays)
    try:
        with np.errstate(all="ignore"):
            wanted = call(np, *[value.copy() for value in arguments])
    except (ValueError, TypeError, IndexError, np.linalg.LinAlgError) as error:
        for form in forms if not record.wider else ():
            _assert_refused(call, form, error)
        return False
    for form in forms:
        compare(call(xarr, *form), wanted, record.tolerance(dtype))
    return True


def compare(result: Any, wanted: Any, rtol: float | None) -> None:
    """Assert one structure (a named tuple is a tuple, a scalar of NumPy or Python an array) and the same values."""
    if isinstance(wanted, list | tuple):
        assert isinstance(result, tuple if isinstance(wanted, tuple) else list), type(result)
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted, strict=True):
            compare(one, other, rtol)
    elif not isinstance(result, xarr.Array):
        assert not isinstance(wanted, np.ndarray), type(result)
        assert (type(result), result) == (type(wanted), wanted)
    elif rtol is None:
        assert_same(result, np.asarray(wanted))
    else:
        same(result, np.asarray(wanted), rtol)


def _assert_refused(call: Any, form: list[Any], error: Exception) -> None:
    try:
        result = call(xarr, *form)
        if isinstance(result, xarr.Array):
            np.asarray(result)  # Where memory is not the host's, a failed check shows when it is read.
    except (XarrError, np.linalg.LinAlgError):
        return
    raise AssertionError(f"NumPy refuses this ({type(error).__name__}: {error}), xarr gives {result!r}")


def signature_difference(name: str) -> str:
    """List what NumPy's function takes and xarr's does not, "" for nothing.

    Parameters `WITHOUT` are left aside, and what all ufuncs take.  The others must have the same names, order
    and defaults in xarr, which may have more of them after or among them, or hand on any keyword.  A function whose
    signature NumPy does not tell (ValueError) has nothing to differ from.
    """
    try:
        theirs = _parameters(attribute(np, name))
    except (ValueError, TypeError):
        return ""
    own = _parameters(attribute(xarr, name))
    positional = [one for one in theirs if one.startswith("position")]
    ours = dict(zip([*positional, *list(own)[len(positional) :]], own.values(), strict=True))
    shared = [one for one in ours if one in theirs]
    wanted = [one for one in theirs if one in ours or not _takes_keywords(attribute(xarr, name))]
    if shared == wanted and all(_agree(theirs[one], ours[one]) for one in shared):
        return ""
    return f"NumPy has ({_show(theirs)}), xarr ({_show(ours)})"


def _parameters(function: Any) -> dict[str, Any]:
    """Defaults by name, `empty` for none.  Arguments without a name to call them by have their positions."""
    left_out = WITHOUT | _OF_UFUNCS if isinstance(function, np.ufunc) else WITHOUT
    nameless = {inspect.Parameter.VAR_POSITIONAL: "*args", inspect.Parameter.POSITIONAL_ONLY: "position "}
    defaults: dict[str, Any] = {}
    for one in inspect.signature(function).parameters.values():
        if one.name not in left_out and one.kind is not one.VAR_KEYWORD:
            position = len(defaults) if one.kind is one.POSITIONAL_ONLY else ""
            defaults[f"{nameless[one.kind]}{position}" if one.kind in nameless else one.name] = one.default
    return defaults


def _takes_keywords(function: Any) -> bool:
    """Whether it hands on keywords, as the methods of arrays do."""
    return any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values())


def _agree(theirs: Any, ours: Any) -> bool:
    """NumPy's "no value" may be any default, and its `float` our None, which is the default dtype."""
    if theirs is np._NoValue:  # type: ignore[attr-defined]
        return ours is not inspect.Parameter.empty
    return (theirs is float and ours is None) or (type(theirs) is type(ours) and bool(theirs == ours))


def _show(parameters: dict[str, Any]) -> str:
    defaults = ("" if one is inspect.Parameter.empty else f"={one!r}" for one in parameters.values())
    return ", ".join(map(str.__add__, parameters, defaults))
