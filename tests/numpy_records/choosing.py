"""Elements chosen by conditions."""

from tests.support.numpy_records import Record

REAL = ("bool", "int8", "uint8", "int64", "float32", "float64")

RECORDS = {
    "copyto": Record(
        (
            "[z := xp.asarray(x), xp.copyto(z, y), z][-1]",
            "[z := xp.asarray(x), xp.copyto(z, 1, where=z == z), z][-1]",
            "[z := xp.asarray(x), xp.copyto(z, y, where=[True, False, True, False]), z][-1]",
            "[z := xp.asarray(x), xp.copyto(z, 1.5), z][-1]",
            "[z := xp.asarray(x), xp.copyto(z, True, 'safe'), z][-1]",
            "[z := xp.asarray(x), xp.copyto(z, 2.5, casting='unsafe'), z][-1]",
            "[z := xp.asarray(x), xp.copyto(z, y[None]), z][-1]",
        ),
        inputs=2,
        special=False,
        limits=(0, 100),
    ),
    "piecewise": Record(
        (
            "xp.piecewise(x, [x < 0, x >= 0], [4, 1])",
            "xp.piecewise(x, [x < 0, x > 1], [lambda v: v * v, lambda v: v + v, 2])",
            "xp.piecewise(x, x > 1, [lambda v, w: v * w, 5], 3)",
            "xp.piecewise(x, [x > 0, x > 2], [lambda v, k: v + k, lambda v, k: v], k=2)",
            "xp.piecewise(x, [[True, False, True, False, True]], [3])",
            "xp.piecewise(x, [True, False, True, False, True], [3])",
        ),
        dtypes=REAL,
        special=False,
        limits=(0, 10),
        shapes=((), (1,), (5,), (3, 4), (2, 3, 1, 4)),
    ),
    "select": Record(
        (
            "xp.select([x < 3, x > 5], [x, y])",
            "xp.select([x < 3, y > 5], [x, y * 1.5], default=42)",
            "xp.select([x < 3], [1], 2.5)",
            "xp.select([x < 3, [True]], [[[1]], y])",
            "xp.select([True, x > 3], [x, y])",
            "xp.select([x], [x])",
        ),
        dtypes=REAL,
        inputs=2,
        special=False,
    ),
}
