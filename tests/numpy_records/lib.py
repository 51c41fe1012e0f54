"""`lib.stride_tricks`, and `emath`, whose results are complex where real numbers have no real value."""

from tests.support.numpy_records import Record

#: Not bfloat16 and its kin, which NumPy has not.
_DTYPES = ("int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "complex64")
_RTOL = {"float16": 2e-3, "int8": 1e-5, "uint8": 1e-5, "float32": 1e-5, "complex64": 1e-5, "float64": 1e-12}


def _emath(*expressions: str) -> Record:
    return Record(expressions, dtypes=_DTYPES, rtol=_RTOL, special=False, limits=(0, 50))


def _of_one(name: str) -> Record:
    return _emath(f"xp.emath.{name}(x)", f"xp.emath.{name}(x / 50)", f"xp.emath.{name}(-x.astype('float64'))")


_WINDOWS = "xp.lib.stride_tricks.sliding_window_view"

RECORDS = {
    **{
        f"emath.{name}": _of_one(name)
        for name in ("sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh")
    },
    "emath.logn": _emath("xp.emath.logn(x, 2)", "xp.emath.logn(2, x)", "xp.emath.logn([2, 4], [-8, 8])"),
    "emath.power": _emath(
        "xp.emath.power(x, 2)",
        "xp.emath.power([2, 4], -2)",
        "xp.emath.power([-2, 4], [2, -3])",
        "xp.emath.power(x, 0.5)",
        "xp.emath.power(-x.astype('float32'), 0.5)",
    ),
    "lib.stride_tricks.sliding_window_view": Record(
        (
            f"{_WINDOWS}(x, 2, axis=0)",
            f"{_WINDOWS}(x, 1, -1)",
            f"{_WINDOWS}(x, (2, 3))",
            f"{_WINDOWS}(x, (2, 3), axis=(1, 0))",
            f"{_WINDOWS}(x, (1, 2), axis=(-1, 0))",
            f"{_WINDOWS}(x, (2, 2), axis=(0, 0))",
            f"{_WINDOWS}(x, (1, 2, 2, 1), axis=(1, 0, 1, 0))",
            f"{_WINDOWS}(x, (), axis=())",
            f"{_WINDOWS}(x, 0, 0)",
            f"{_WINDOWS}(x, x.shape)",
            f"{_WINDOWS}(x, 2, axis=0).sum(axis=-1)",
        ),
        shapes=((), (0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 1, 4)),
        rtol=1e-2,
        differs="the result is not a view; `writeable=True` is refused",
    ),
    "broadcast": Record(
        (
            "xp.broadcast(x, xp.zeros((2, 1, 1, 1))).shape",
            "list(xp.broadcast(x, 2))",
            "[list(each) for each in xp.broadcast(xp.arange(2)[:, None], xp.any(x)).iters]",
            "[getattr(xp.broadcast(x, xp.broadcast(x, 1)), name) for name in ('size', 'ndim', 'numiter', 'index')]",
        ),
        differs="the elements are Arrays without dimensions",
    ),
    "nditer": Record(
        (
            "[str(a) for a in xp.nditer(xp.asarray(x), ['zerosize_ok'])]",
            "[(str(a), str(b)) for a, b in xp.nditer([xp.asarray(x), xp.zeros((2, 1, 1, 1))], ['zerosize_ok'])]",
            "[it.multi_index for it in [xp.nditer(xp.asarray(x), ['multi_index', 'zerosize_ok'])] for _ in it]",
            "xp.nditer([xp.asarray(x), None, 2], ['zerosize_ok'], order='C').operands[1].shape",
            "[str(a) for a in xp.nditer(x, ['zerosize_ok', 'buffered'], op_dtypes=['complex128'], casting='unsafe')]",
        ),
        differs="the elements of an Array are read-only; `operands` shows what was allocated as an Array",
    ),
    "ndenumerate": Record(("list(xp.ndenumerate(x))",)),
}
