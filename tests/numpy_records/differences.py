"""Differences, integrals, interpolation."""

from tests.numpy_records.order_statistics import REAL
from tests.support.numpy_records import Record

CLOSE = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-13, "complex64": 4e-6}
NUMBERS = (*REAL[1:], "complex64")
SHAPES = ((1,), (5,), (3, 4), (2, 3, 4, 3))

RECORDS = {
    "ediff1d": Record(
        (
            "xp.ediff1d(x)",
            "xp.ediff1d(x, to_end=[1, 2])",
            "xp.ediff1d(x, 3, to_begin=x)",
            "xp.ediff1d(x, 0.5)",
        ),
        rtol=0.0,
    ),
    "gradient": Record(
        (
            "xp.gradient(x)",
            "xp.gradient(x, 2)",
            "xp.gradient(x, 0.5, axis=-1)",
            "xp.gradient(x, axis=(0, -1), edge_order=2)",
            "xp.gradient(x, [0, 1, 3], [2.5, 1, 0, 4])",
            "xp.gradient(x, [0, 1, 3, 7, 8.5], edge_order=2)",
            "xp.gradient(x, 2, [0, 1, 2, 3])",
            "xp.gradient(x, np.float64(3), 0.5, axis=(1, 0))",
            "xp.gradient(x, 1, 2, 3, 4, 5)",
        )[:-1],
        dtypes=NUMBERS,
        shapes=((), *SHAPES),
        special=False,
        limits=(-50, 50),
        rtol=CLOSE,
    ),
    "interp": Record(
        (
            "xp.interp(x, [-3, 0, 1, 1, 4.5], [1, -2, 3, 4, 0])",
            "xp.interp(x, [0, 2], [1, 5], left=-1, right=7)",
            "xp.interp(x, [2], [5.0])",
            "xp.interp(x, [2, 3, 5], [5.0, 1j, 2], 0.5)",
            "xp.interp(x, [2, 30, -5], [5.0, 1, 2], period=7.5)",
            "xp.interp(x, [2, 3, 5], [np.inf, 1, np.nan])",
            "xp.interp([0, 1.5, 8], xp.sort(xp.ravel(x)), xp.ravel(y))",
        ),
        dtypes=("bool", "int64", "float16", "float64"),
        shapes=((), (0,), (5,), (3, 4)),
        limits=(-50, 50),
        inputs=2,
        rtol=1e-13,
    ),
    "trapezoid": Record(
        (
            "xp.trapezoid(x)",
            "xp.trapezoid(x, dx=2, axis=0)",
            "xp.trapezoid(x, [0, 1, 3, 4.5])",
            "xp.trapezoid(x, y)",
            "xp.trapezoid(x, np.arange(np.shape(x)[0]), axis=0)",
            "xp.trapezoid(x, dx=[[1.0], [2.0], [0.5]])",
        ),
        shapes=((0,), (1,), (5,), (3, 4), (2, 3, 1, 4)),
        special=False,
        limits=(-5, 5),
        inputs=2,
        rtol=CLOSE,
    ),
    "unwrap": Record(
        (
            "xp.unwrap(x)",
            "xp.unwrap(x, 4)",
            "xp.unwrap(x, axis=0, period=5)",
            "xp.unwrap(x, period=6)",
            "xp.unwrap(x, discont=1.0, period=4.0)",
        ),
        dtypes=("bool", "int8", "int64", "float16", "float32", "float64"),
        shapes=((0,), (1,), (5,), (3, 4)),
        special=False,
        limits=(-20, 20),
        rtol={"float16": 2e-2, "float32": 1e-5, "float64": 1e-13},
    ),
}
