"""Distinct elements, and vectors as sets."""

from tests.support.numpy_records import Record

#: Few different values, so that many are equal; zeros of both signs are equal, and NumPy keeps either.
FEW = {"inputs": 2, "limits": (-3, 3), "rtol": 0.0}

RECORDS = {
    "unique": Record(
        (
            "xp.unique(x)",
            "xp.unique(x, equal_nan=False)",
            "xp.unique(x, return_index=True)",
            "xp.unique(x, return_inverse=True)",
            "xp.unique(x, return_counts=True)",
            "xp.unique(x, True, True, True)",
            "xp.unique(x, axis=0)",
            "xp.unique(x, True, True, True, axis=-1)",
            "xp.unique(xp.sort(x.ravel()), True, True, True, 0)",
        ),
        differs="of complex NaNs the first in NumPy's order stays, as in NumPy where it is asked for indices too; "
        "without them NumPy gives `nan+nanj`",
        **{**FEW, "inputs": 1},
    ),
    "union1d": Record(("xp.union1d(x, y)", "xp.union1d(x, [1, 2])"), **FEW),
    "intersect1d": Record(
        (
            "xp.intersect1d(x, y)",
            "xp.intersect1d(x, [1, 2, 1])",
            "xp.intersect1d(x, y, return_indices=True)",
            "xp.intersect1d(np.unique(x), np.unique(y), True, True)",
            "xp.intersect1d(np.unique(x), np.unique(y), True)",
        ),
        **FEW,
    ),
    "setdiff1d": Record(
        (
            "xp.setdiff1d(x, y)",
            "xp.setdiff1d(x, [1, 2, 1])",
            "xp.setdiff1d(np.unique(x)[::-1], np.unique(y), assume_unique=True)",
        ),
        **FEW,
    ),
    "setxor1d": Record(
        (
            "xp.setxor1d(x, y)",
            "xp.setxor1d(x, [1, 2, 1])",
            "xp.setxor1d(np.unique(x), np.unique(y), assume_unique=True)",
        ),
        **FEW,
    ),
}
