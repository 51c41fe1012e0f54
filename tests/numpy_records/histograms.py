"""Counting of values and of elements in bins."""

from tests.numpy_records.order_statistics import REAL
from tests.support.numpy_records import Record

SOME = ((0,), (1,), (3, 4))
CLOSE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14}
LAZY = "values that are not finite, and edges out of order, go unseen in a traced function"

RECORDS = {
    "bincount": Record(
        (
            "xp.bincount(x)",
            "xp.bincount(x, minlength=9)",
            "xp.bincount(x, y)",
            "xp.bincount(x, weights=y, minlength=2)",
            "xp.bincount([])",
            "xp.bincount([1, 0, 4, 1])",
        ),
        dtypes=("bool", "int8", "uint8", "int64", "uint64", "float64"),
        shapes=((), (0,), (1,), (5,), (40,), (3, 4)),
        limits=(0, 12),
        inputs=2,
        rtol=1e-14,
    ),
    "digitize": Record(
        (
            "xp.digitize(x, [-3.5, 0, 1, 1, 8])",
            "xp.digitize(x, np.asarray([9, 2, 0], 'int64'))",
            "xp.digitize(x, [0, 1, 2], right=True)",
            "xp.digitize(x, [3, 3, -1.0], right=True)",
            "xp.digitize(x, [2])",
            "xp.digitize(x, [])",
            "xp.digitize([0.5, 3.0], xp.sort(xp.ravel(x)))",
        ),
        dtypes=REAL,
    ),
    "histogram": Record(
        (
            "xp.histogram(x)",
            "xp.histogram(x, 7, (-3, 5.5))",
            "xp.histogram(x, bins=[-4, 0.5, 1, 1, 9])",
            "xp.histogram(x, bins=np.asarray([-4, 0, 9]), weights=y)",
            "xp.histogram(x, 3, weights=y)",
            "xp.histogram(x, 3, weights=y * 1j, range=(0, 8))",
            "xp.histogram(x, 5, density=True)",
            "xp.histogram(x, [0, 1, 3], density=True)",
            "xp.histogram(x, 4, (2, 2))",
            *(f"xp.histogram(x, {rule!r})" for rule in ("auto", "fd", "doane", "scott", "stone", "rice")),
            "xp.histogram(x, 'sturges', (0, 5))",
            "xp.histogram(x, 'sqrt')",
        ),
        dtypes=("int8", "uint64", "float16", "float64"),
        shapes=SOME,
        special=False,
        limits=(-9, 9),
        inputs=2,
        rtol=CLOSE,
        differs=LAZY,
    ),
    "histogram_bin_edges": Record(
        (
            "xp.histogram_bin_edges(x)",
            "xp.histogram_bin_edges(x, 'fd')",
            "xp.histogram_bin_edges(x, 4, (0, 9))",
        ),
        dtypes=REAL,
        shapes=SOME,
        limits=(0, 90),
        rtol=CLOSE,
    ),
    "histogram2d": Record(
        (
            "xp.histogram2d(x, y)",
            "xp.histogram2d(x, y, 3, [(0, 3), (-5, 5)])",
            "xp.histogram2d(x, y, [2, 3], density=True)",
            "xp.histogram2d(x, y, [0, 1, 2, 4], weights=x)",
            "xp.histogram2d(x, y, [[0, 1, 8], 4])",
        ),
        dtypes=("int8", "uint64", "float32", "float64"),
        shapes=((0,), (1,), (40,)),
        special=False,
        limits=(0, 90),
        inputs=2,
        rtol=CLOSE,
    ),
    "histogramdd": Record(
        (
            "xp.histogramdd(x, 3)",
            "xp.histogramdd(x, (2, 3, 1, 2), [(0, 9)] * 4)",
            "xp.histogramdd(x, 2, density=True)",
            "xp.histogramdd((x[0], x[1], x[2]), [[0, 1, 2], 2, [0, 50]])",
        ),
        dtypes=("int8", "uint64", "float32", "float64"),
        shapes=((3, 4), (7, 4)),
        special=False,
        limits=(0, 90),
        rtol=CLOSE,
    ),
}
