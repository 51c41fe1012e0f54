"""Functions of users applied to parts of arrays."""

from tests.support.numpy_records import Record

REAL = ("int8", "uint8", "int64", "float32", "float64")
SHAPES = ((), (1,), (5,), (3, 4), (2, 3, 1, 4))

#: Compiled loops add in another order, and keep a product that is added unrounded.
_SUMS = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14}

RECORDS = {
    "apply_along_axis": Record(
        (
            "xp.apply_along_axis(lambda v: v.max(), 0, x)",
            "xp.apply_along_axis(lambda v: v[::-1], -1, x)",
            "xp.apply_along_axis(sorted, 0, x)",
            "xp.apply_along_axis(lambda v: v[:, None] * v, 1, x)",
            "xp.apply_along_axis(lambda v, k, s=0: v * k + s, 0, x, 2, s=1)",
            "xp.apply_along_axis(lambda v: int(v[0] > 1), 0, x)",
        ),
        shapes=SHAPES,
        dtypes=REAL,
        special=False,
        limits=(0, 10),
    ),
    "apply_over_axes": Record(
        (
            "xp.apply_over_axes(xp.max, x, 0)",
            "xp.apply_over_axes(xp.sum, x, [0, -1])",
            "xp.apply_over_axes(lambda v, axis: xp.sum(v, axis, keepdims=True), x, (1, 0))",
        ),
        dtypes=REAL,
        special=False,
        limits=(0, 10),
        shapes=((1,), (5,), (3, 4), (2, 3, 1, 4)),
        rtol=_SUMS,
    ),
    "vectorize": Record(
        (
            "xp.vectorize(lambda a, b: a * b + 1)(x, y)",
            "xp.vectorize(lambda a, b: a - b if a > b else a + b)(x, 2)",
            "xp.vectorize(lambda a: (a, a * 2))(x)",
            "xp.vectorize(lambda a: a * 2, otypes=['float64'])(x)",
            "xp.vectorize(lambda a: a * 2, otypes='f')(x)",
            "xp.vectorize(lambda a, k=1: a * k)(x, k=3)",
            "xp.vectorize(lambda p, a: p[0] + a, excluded={0})([3, 4], x)",
            "xp.vectorize(lambda p, a: p[0] + a, excluded=['p'])(p=[3, 4], a=x)",
            "xp.vectorize(lambda v: v.sum(), signature='(n)->()')(x)",
            "xp.vectorize(lambda v, w: v * w, signature='(n),(n)->(n)')(x, x)",
            "xp.vectorize(lambda v, w: (v.max(), w.min()), signature='(n),(m)->(),()')(x, x[:1])",
            "xp.vectorize(lambda v: float(v[0]), signature='(n)->()')(x)",
        ),
        dtypes=REAL,
        special=False,
        limits=(0, 10),
        inputs=2,
        shapes=((5,), (3, 4), (2, 3, 1, 4)),
        rtol=_SUMS,
    ),
}
