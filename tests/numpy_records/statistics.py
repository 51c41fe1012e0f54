"""Sums, extremes, moments, truth, order and search."""

from tests.support.functions import FLOATS
from tests.support.numpy_records import Record

_CLOSE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-13, "complex64": 2e-5}
_REAL = ("bool", "int8", "uint8", "int64", "uint64", *FLOATS)
_RANK_1 = ((0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 1, 4))
_SOME = ((1,), (5,), (3, 4), (2, 3, 1, 4))


def _sums(name: str, **options) -> Record:
    calls = (
        f"xp.{name}(x)",
        f"xp.{name}(x, axis=0)",
        f"xp.{name}(x, -1, keepdims=True)",
        f"xp.{name}(x, axis=(0, -1))",
        f"xp.{name}(x, axis=0, where=x > 1)",
    )
    options = {"rtol": _CLOSE, "dtypes": _REAL, "special": False, "limits": (-3, 3), **options}
    return Record(calls, shapes=((1, 1), (5, 1), (3, 4), (2, 3, 1, 4)), **options)


def _extreme(name: str) -> Record:
    calls = (
        f"xp.{name}(x)",
        f"xp.{name}(x, axis=0)",
        f"xp.{name}(x, axis=-1, keepdims=True)",
        f"xp.{name}(x, initial=1)",
    )
    return Record(calls, shapes=_RANK_1, rtol=0)


def _running(name: str, *more: str) -> Record:
    calls = (f"xp.{name}(x)", f"xp.{name}(x, axis=-1)", f"xp.{name}(x, 0, dtype='float64')", *more)
    return Record(calls, shapes=_SOME, special=False, limits=(-3, 3), rtol=_CLOSE)


def _running_standard(name: str) -> Record:
    calls = (f"xp.{name}(x, axis=-1)", f"xp.{name}(x, axis=0, include_initial=True)")
    return Record(calls, shapes=_SOME, special=False, limits=(-3, 3), rtol=_CLOSE)


def _record(*texts: str, **options) -> Record:
    return Record(texts, **options)


RECORDS = {
    "sum": _sums("sum"),
    "prod": _sums("prod"),
    "mean": _sums("mean"),
    "std": _sums("std"),
    "var": _sums("var"),
    **{name: _extreme(name) for name in ("max", "min", "amax", "amin")},
    "cumsum": _running("cumsum"),
    "cumprod": _running("cumprod"),
    "cumulative_sum": _running_standard("cumulative_sum"),
    "cumulative_prod": _running_standard("cumulative_prod"),
    "ptp": _record("xp.ptp(x)", "xp.ptp(x, axis=0, keepdims=True)", dtypes=_REAL[1:], shapes=_SOME),
    "average": _record(
        "xp.average(x)",
        "xp.average(x, axis=0)",
        "xp.average(x, weights=abs(y) + 1, returned=True)",
        "xp.average(x, -1, abs(y) + 1, keepdims=True)",
        shapes=_SOME,
        dtypes=("int8", "int64", "float32", "float64"),
        special=False,
        limits=(-9, 9),
        inputs=2,
        rtol=_CLOSE,
        differs="weights that sum to 0 give NaN or infinity, where NumPy raises ZeroDivisionError",
    ),
    "all": _record("xp.all(x)", "xp.all(x, axis=0)", "xp.all(x, -1, keepdims=True)", shapes=_RANK_1),
    "any": _record("xp.any(x)", "xp.any(x, axis=0)", "xp.any(x, -1, keepdims=True)", shapes=_RANK_1),
    "count_nonzero": _record(
        "xp.count_nonzero(x)", "xp.count_nonzero(x, axis=0, keepdims=True)", shapes=_RANK_1
    ),
    "argmax": _record(
        "xp.argmax(x)",
        "xp.argmax(x, axis=0)",
        "xp.argmax(x, -1, keepdims=True)",
        dtypes=_REAL,
        shapes=_RANK_1,
    ),
    "argmin": _record(
        "xp.argmin(x)",
        "xp.argmin(x, axis=0)",
        "xp.argmin(x, -1, keepdims=True)",
        dtypes=_REAL,
        shapes=_RANK_1,
    ),
    "argsort": _record("xp.argsort(x, stable=True)", "xp.argsort(x, axis=0, kind='stable')", shapes=_RANK_1),
    "sort": _record("xp.sort(x)", "xp.sort(x, axis=0)", "xp.sort(x, axis=None)", shapes=_RANK_1, rtol=0),
    "where": _record(
        "xp.where(x > 1, x, y)", "xp.where(x, y, 3)", "xp.where(x > y, 1, 2.5)", inputs=2, dtypes=_REAL
    ),
    "isclose": _record(
        "xp.isclose(x, y)", "xp.isclose(x, x, equal_nan=True)", "xp.isclose(x, y, atol=9)", inputs=2
    ),
}
