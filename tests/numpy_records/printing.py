"""Arrays as text."""

from tests.support.numpy_records import Record

RECORDS = {
    "array2string": Record(
        (
            "xp.array2string(x)",
            "xp.array2string(x, 30, 3, True)",
            "xp.array2string(x, precision=2, separator=', ', prefix='abc', suffix=')')",
            "xp.array2string(x, threshold=2, edgeitems=1, floatmode='fixed', sign='+')",
            "xp.array2string(x, formatter={'all': lambda v: 'v'})",
        )
    ),
    "array_repr": Record(
        (
            "xp.array_repr(x).partition('(')[2].partition(']')[0].replace(' ', '')",
            "xp.array_repr(x, None, 2, True).partition('(')[2].partition(']')[0].replace(' ', '')",
        ),
        shapes=((1,), (5,), (3, 4), (2, 3, 1, 4)),
        dtypes=("int8", "int64", "float64", "complex64"),
        differs="says Array(…), with the dtype always, and the backend where it is not numpy",
    ),
    "array_str": Record(("xp.array_str(x)", "xp.array_str(x, 30, 2, True)")),
    "base_repr": Record(
        tuple(f"xp.base_repr({numbers})" for numbers in ("10", "-10, 3", "0, 2, 4", "x.size, 36, padding=2")),
        shapes=((3, 4),),
        dtypes=("int8",),
    ),
    "binary_repr": Record(
        tuple(
            f"xp.binary_repr({numbers})"
            for numbers in ("10", "-3, 5", "-3", "0, 3", "2**70", "x.size, width=8")
        ),
        shapes=((3, 4),),
        dtypes=("int8",),
    ),
}
