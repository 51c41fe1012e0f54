"""Sets, searches and differences of the Array API standard, which NumPy has too."""

from tests.support.numpy_records import Record

_REAL = ("bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64")
_RANK_1 = ((1,), (5,), (3, 4), (2, 0, 3), (2, 3, 1, 4))

RECORDS = {
    "diff": Record(
        (
            "xp.diff(x)",
            "xp.diff(x, 2, axis=0)",
            "xp.diff(x, n=0)",
            "xp.diff(x, axis=0, prepend=x, append=x)",
        ),
        shapes=((), *_RANK_1),
    ),
    "isin": Record(
        ("xp.isin(x, y)", "xp.isin(x, y, invert=True)", "xp.isin(x, 1)", "xp.isin(x, [])"), inputs=2
    ),
    "searchsorted": Record(
        (
            "xp.searchsorted(xp.sort(x.ravel()), y)",
            "xp.searchsorted(xp.sort(x.ravel()), y, side='right')",
            "xp.searchsorted(x.ravel(), y, sorter=xp.argsort(x.ravel()))",
        ),
        inputs=2,
        dtypes=_REAL,
    ),
    "unique_values": Record(
        ("xp.sort(xp.unique_values(x))",),
        special=False,
        differs="elements are in order, in NumPy they may be in any",
    ),
} | {
    name: Record((f"xp.{name}(x)",), special=False)
    for name in ("unique_all", "unique_counts", "unique_inverse")
}
