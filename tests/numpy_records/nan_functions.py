"""Reductions that leave NaN out."""

from tests.numpy_records.order_statistics import CLOSE, DIFFERENCE, REAL
from tests.support.numpy_records import Record

#: Sums in another order.
SUMS = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-14, "complex64": 4e-6}
#: Floats of 16 bits are computed with as float32, as in `var`.
SQUARES = {**SUMS, "float16": 2e-2}
SHAPES = ((0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 1, 4))
INDICES = "-1 where all is NaN, where NumPy raises; complex numbers are refused"


def _reductions(name: str, *more: str) -> tuple[str, ...]:
    return (
        f"xp.{name}(2.5)",
        f"xp.{name}(x)",
        f"xp.{name}(x, axis=-1, keepdims=True)",
        f"xp.{name}(x, (0, 1))",
        *(f"xp.{name}(x, {options})" for options in more),
    )


RECORDS = {
    "nansum": Record(_reductions("nansum", "dtype='float64', initial=3"), shapes=SHAPES, rtol=SUMS),
    "nanprod": Record(_reductions("nanprod", "initial=2"), shapes=SHAPES, rtol=SUMS, limits=(-3, 3)),
    "nancumsum": Record(
        ("xp.nancumsum(1)", "xp.nancumsum(x)", "xp.nancumsum(x, 0)", "xp.nancumsum(x, -1, 'float64')"),
        shapes=SHAPES,
        rtol=SUMS,
    ),
    "nancumprod": Record(
        ("xp.nancumprod(1)", "xp.nancumprod(x)", "xp.nancumprod(x, axis=-1)"),
        shapes=SHAPES,
        rtol=SUMS,
        limits=(-3, 3),
    ),
    "nanmax": Record(
        _reductions("nanmax", "axis=0, initial=1", "initial=0, where=x != 1"), shapes=SHAPES, rtol=0.0
    ),
    "nanmin": Record(
        _reductions("nanmin", "axis=0, initial=1", "initial=0, where=x != 1"), shapes=SHAPES, rtol=0.0
    ),
    "nanargmax": Record(
        ("xp.nanargmax(x)", "xp.nanargmax(x, axis=0)", "xp.nanargmax(x, -1, keepdims=True)"),
        dtypes=REAL,
        shapes=((0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 5, 6)),
        differs=INDICES,
    ),
    "nanargmin": Record(
        ("xp.nanargmin(x)", "xp.nanargmin(x, axis=0)", "xp.nanargmin(x, -1, keepdims=True)"),
        dtypes=REAL,
        shapes=((0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 5, 6)),
        differs=INDICES,
    ),
    "nanmean": Record(_reductions("nanmean", "where=x == x", "dtype='complex128'"), shapes=SHAPES, rtol=SUMS),
    "nanvar": Record(
        _reductions("nanvar", "ddof=1", "-1, where=x != 1", "-1, correction=2", "0, mean=xp.nanmean(x, 0)"),
        shapes=SHAPES,
        rtol=SQUARES,
        limits=(-50, 50),
    ),
    "nanstd": Record(_reductions("nanstd", "0, ddof=2"), shapes=SHAPES, rtol=SQUARES, limits=(-50, 50)),
    "nanmedian": Record(_reductions("nanmedian", "0, overwrite_input=True"), shapes=SHAPES, rtol=CLOSE),
    "nanquantile": Record(
        _reductions(
            "nanquantile",
            "[0.3, 1], axis=-1",
            "0.8, axis=0, method='hazen'",
            "0.4, method='lower'",
            "0.5, axis=-1, method='nearest'",
            "0.4, axis=-1, method='averaged_inverted_cdf'",
            "[0.4, 0.8], axis=-1, method='inverted_cdf', weights=np.cumsum(np.ones(np.shape(x)), -1)",
        )[3:],
        dtypes=REAL,
        shapes=SHAPES,
        rtol=CLOSE,
        limits=(0, 100),
        differs=DIFFERENCE,
    ),
    "nanpercentile": Record(
        _reductions("nanpercentile", "[[30], [100]], axis=-1", "80, keepdims=True")[3:],
        dtypes=REAL,
        shapes=SHAPES,
        rtol=CLOSE,
        limits=(0, 100),
        differs=DIFFERENCE,
    ),
}
