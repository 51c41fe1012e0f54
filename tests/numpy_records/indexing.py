"""Taking and finding elements, and making indices."""

from tests.support.numpy_records import Record

#: Functions of sizes alone are tried once.
ONCE = {"dtypes": ("bool",), "shapes": ((),), "inputs": 0}

RECORDS = {
    "take": Record(
        (
            "xp.take(x, 0)",
            "xp.take(x, [[0, -1]], axis=-1)",
            "xp.take(x, [7, -9], axis=0, mode='clip')",
            "xp.take(x, [7, -9], axis=0, mode='wrap')",
        ),
    ),
    "take_along_axis": Record(
        (
            "xp.take_along_axis(x, xp.argsort(x), -1)",
            "xp.take_along_axis(x, xp.argsort(x, axis=0), 0)",
            "xp.take_along_axis(x, xp.argmax(x, axis=-1, keepdims=True))",
            "xp.take_along_axis(x, xp.asarray([1, 0, -1]), None)",
        ),
        dtypes=("bool", "int8", "uint8", "int64", "uint64", "float32", "float64"),
    ),
    "compress": Record(
        (
            "xp.compress([False, True], x)",
            "xp.compress([True], x, axis=0)",
            "xp.compress([0, 2, 1], x, axis=-1)",
        )
    ),
    "extract": Record(("xp.extract(x != 0, x)", "xp.extract(x, x)")),
    "choose": Record(
        (
            "xp.choose(x == 0, [x, -9])",
            "xp.choose(xp.asarray([[0], [2]]), [1, 2, x])",
            "xp.choose([0, -7, 9], [x, x, 3], mode='clip')",
            "xp.choose([0, -7, 9], [x, x, 3], mode='wrap')",
        ),
        dtypes=("int64", "float32", "float64"),
        shapes=((), (1,), (3,), (2, 3)),
    ),
    "nonzero": Record(("xp.nonzero(x)",)),
    "flatnonzero": Record(("xp.flatnonzero(x)",)),
    "argwhere": Record(("xp.argwhere(x)",)),
    "ix_": Record(
        ("xp.ix_([0, 2], [True, False, True], [5])", "xp.ix_([1])", "xp.ix_()", "xp.ix_([], [1])"), **ONCE
    ),
    "indices": Record(
        (
            "xp.indices((2, 3))",
            "xp.indices((2, 0, 3), dtype='float32')",
            "xp.indices((2, 3), sparse=True)",
            "xp.indices(())",
            "xp.indices((), sparse=True)",
        ),
        **ONCE,
    ),
    "diag_indices": Record(
        ("xp.diag_indices(3)", "xp.diag_indices(2, ndim=3)", "xp.diag_indices(0)"), **ONCE
    ),
    "diag_indices_from": Record(("xp.diag_indices_from(x)",), dtypes=("int64",), shapes=((2, 2), (3, 3, 3))),
    "tril_indices": Record(
        ("xp.tril_indices(3)", "xp.tril_indices(3, 1, 5)", "xp.tril_indices(4, -1, 2)"), **ONCE
    ),
    "triu_indices": Record(
        ("xp.triu_indices(3)", "xp.triu_indices(3, 1, 5)", "xp.triu_indices(4, -1, 2)"), **ONCE
    ),
    "tril_indices_from": Record(
        ("xp.tril_indices_from(x)", "xp.tril_indices_from(x, -1)"), dtypes=("int64",)
    ),
    "triu_indices_from": Record(("xp.triu_indices_from(x)", "xp.triu_indices_from(x, 1)"), dtypes=("int64",)),
    "mask_indices": Record(("xp.mask_indices(3, xp.triu)", "xp.mask_indices(4, xp.tril, -1)"), **ONCE),
    "unravel_index": Record(
        (
            "xp.unravel_index(22, (4, 6))",
            "xp.unravel_index([[22, 0], [41, 37]], (7, 6))",
            "xp.unravel_index([31, 41, 13], (7, 6), order='F')",
            "xp.unravel_index(1621, (6, 7, 8, 9))",
            "xp.unravel_index([3], 4)",
        ),
        **ONCE,
        differs="raises IndexError, not ValueError, for what is out of bounds",
    ),
    "ravel_multi_index": Record(
        (
            "xp.ravel_multi_index(([3, 6, 6], [4, 5, 1]), (7, 6))",
            "xp.ravel_multi_index(([3, 6, 6], [4, 5, 1]), (7, 6), order='F')",
            "xp.ravel_multi_index(([3, 6, 6], [4, 5, -1]), (4, 6), mode='clip')",
            "xp.ravel_multi_index(([3, 6, 6], [4, 5, -1]), (4, 4), mode=('clip', 'wrap'))",
            "xp.ravel_multi_index((3, 1, 4, 1), (6, 7, 8, 9))",
            "xp.ravel_multi_index(([[3], [6]], [4, 5, 1]), (7, 6))",
        ),
        **ONCE,
        differs="raises IndexError, not ValueError, for what is out of bounds",
    ),
}

_RANK_1 = ((1,), (5,), (3, 4))


def _change(*calls: str, **options) -> Record:
    """Changes, which return None: what becomes of an array."""
    return Record(tuple(f"(lambda a: (a.{call}, a)[1])(xp.array(x))" for call in calls), **options)


METHODS = {
    "choose": Record(
        ("(xp.array(x) == 0).choose([y, -9])", "(xp.array(x) == 0).choose(y, -9)"),
        inputs=2,
        dtypes=("int64", "float64"),
        signature="the choices may come one by one, as NumPy takes them too",
    ),
    "compress": Record(("x.compress([False, True])", "x.compress([True], axis=0)")),
    "fill": _change("fill(2)"),
    "nonzero": Record(("x.nonzero()",)),
    "put": _change("put([0, -1], 2)", "put([9, -9], [2, 3], mode='clip')", shapes=_RANK_1),
    # Zeros of both signs are equal, and only a stable sort keeps their order.
    "sort": _change("sort()", "sort(axis=0)", shapes=_RANK_1, rtol=0),
    "take": Record(("x.take(0)", "x.take([[0, -1]], axis=-1)", "x.take([9], mode='clip')")),
}
RECORDS |= {f"ndarray.{name}": record for name, record in METHODS.items()}
