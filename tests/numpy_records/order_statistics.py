"""Medians, quantiles, partial and lexicographic sorting."""

from collections.abc import Sequence

from tests.support.numpy_records import Record

REAL = ("bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64")
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
SOME = ((), (0,), (3, 4), (2, 3, 1, 4))
FEW = ("bool", "int8", "uint64", "float16", "float32", "float64")
#: Of one multiplication and one addition.
CLOSE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-15}
DIFFERENCE = "the distance of two integers is computed as a float, which NumPy lets wrap"


def _quantiles(name: str, q: str, methods: Sequence[tuple[str, int | None]]) -> Record:
    calls = [f"xp.{name}(x, {q}, axis={axis}, method='{m}')" for m, axis in methods]
    more = (
        f"xp.{name}(x, [[{q}, 0], [1, {q}]], axis=0, keepdims=True)",
        f"xp.{name}(x, np.float32({q}), 0)",
        f"xp.{name}(x, np.asarray([{q}], 'float32'))",
        f"xp.{name}(x, 1, 0)",
        f"xp.{name}(x, 0, method='hazen')",
        f"xp.{name}(x, {q}, method='inverted_cdf', weights=np.ones(np.shape(x)))",
        f"xp.{name}(x, [{q}, 1], -1, method='inverted_cdf', weights=np.cumsum(np.ones(np.shape(x)[-1:])))",
    )
    return Record((*calls, *more), dtypes=FEW, shapes=SOME, rtol=CLOSE, limits=(0, 100), differs=DIFFERENCE)


RECORDS = {
    "median": Record(
        (
            "xp.median(x)",
            "xp.median(x, axis=-1)",
            "xp.median(x, axis=(0, 1), keepdims=True)",
            "xp.median(x, 0, overwrite_input=True)",
        ),
        rtol=CLOSE,
    ),
    "quantile": _quantiles("quantile", "0.3", [(method, None) for method in METHODS]),
    "percentile": _quantiles("percentile", "37.5", [("linear", 0), ("lower", -1)]),
    "partition": Record(
        (
            "xp.partition(x, 0)[..., 0]",
            "xp.partition(x, -1)[..., -1]",
            "xp.partition(x, [0, 1], axis=0)[:2]",
            "xp.partition(x, 2, axis=None)[2]",
        ),
        rtol=0.0,
    ),
    "argpartition": Record(
        (
            "xp.sort(xp.argpartition(x, 1, axis=0), 0)",
            "xp.sort(xp.argpartition(x, [-1, 2], axis=None))",
        )
    ),
    "lexsort": Record(
        (
            "xp.lexsort((x, y))",
            "xp.lexsort((y, x > y, x), axis=0)",
            "xp.lexsort(x)",
            "xp.lexsort((x,))",
            "xp.lexsort([y, x])",
        ),
        dtypes=REAL,
        inputs=2,
    ),
    "sort_complex": Record(("xp.sort_complex(x)",), rtol=0.0),
}
