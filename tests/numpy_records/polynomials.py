"""Polynomials as vectors of coefficients."""

from tests.support.numpy_records import Record

CLOSE = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-12, "complex64": 4e-6}
VECTORS = ((), (1,), (2,), (5,), (8,))
UNTRIMMED = "in a traced function leading zeros stay, by trim_leading_zeros=False"


def _record(*calls: str, differs: str = "", shapes: tuple[tuple[int, ...], ...] = VECTORS) -> Record:
    return Record(calls, shapes=shapes, inputs=2, special=False, limits=(-9, 9), rtol=CLOSE, differs=differs)


RECORDS = {
    "polyadd": _record("xp.polyadd(x, y)", "xp.polyadd(x, [1, 2, 3])", "xp.polyadd([], x)"),
    "polysub": _record("xp.polysub(x, y)", "xp.polysub(x, [1.5, 2, 3])", "xp.polysub(1, x)"),
    "polymul": _record(
        "xp.polymul(x, y)", "xp.polymul(x, [0, 0, 2, 3])", "xp.polymul([0, 0], x)", "xp.polymul(x, 2)",
        differs=UNTRIMMED,
    ),
    "polydiv": _record(
        "xp.polydiv(x, [2, 1])", "xp.polydiv([1, 3, 3, 1], [1, 1])", "xp.polydiv(x, 4.0)", "xp.polydiv([1, 2], x)",
        differs=UNTRIMMED,
    ),
    "polyder": Record(
        ("xp.polyder(x)", "xp.polyder(x, 3)", "xp.polyder(x, 9)", "xp.polyder(x, m=0)"),
        shapes=((0,), (1,), (2,), (5,), (8,)),
        rtol=0.0,
    ),
    "polyint": Record(
        ("xp.polyint(x)", "xp.polyint(x, 2, 3)", "xp.polyint(x, m=2, k=[1, 2.5])", "xp.polyint(x, 0)"),
        shapes=((1,), (2,), (5,), (8,)),
        rtol=CLOSE,
    ),
    "polyval": _record(
        "xp.polyval(x, y)", "xp.polyval([], x)", "xp.polyval([1, -2, 0.5], x)", "xp.polyval(x, [[1, 2], [0, -1]])",
        "xp.polyval(x, 2)", "xp.polyval(np.linspace(1, 2, 50), x / 10)",
        "xp.polyval([1, 2], 2.5)", shapes=VECTORS[1:],
    ),
    "poly": _record(
        "xp.poly(x)", "xp.poly([1, 2j, -2j])", "xp.poly([1 + 1j, 2])", "xp.poly((-1, 0, 0.5, 2))",
        "xp.poly([[2.0, 1], [1, 3]])", "xp.poly([[0, -1], [1, 0]])",
        shapes=VECTORS[1:],
    ),
    "roots": Record(
        ("xp.roots(x)", "xp.roots([0, 0, 1, -3, 2, 0])", "xp.roots([0, 0])", "xp.roots([2])", "xp.roots([1, 0, 4])"),
        dtypes=("bool", "int8", "int64", "float32", "float64", "complex64"),
        shapes=((1,), (2,), (3,), (4,)),
        special=False,
        limits=(1, 9),
        rtol={"float32": 1e-4, "float64": 1e-9, "complex64": 1e-4},
        differs="in a traced function roots are complex",
    ),
    "polyfit": Record(
        (
            "xp.polyfit([0, 1, 2, 3, 5], x, 2)",
            "xp.polyfit(np.arange(5), x, 1, w=[1, 2, 1, 0, 1])",
            "xp.polyfit([0, 1, 2, 3, 5.5], x, 1, full=True)[:4]",
            "xp.polyfit([0, 1, 2, 3, 5.5], x, 1, cov=True)",
            "xp.polyfit([0, 1, 2, 3, 5.5], x, 1, cov='unscaled')",
            "xp.polyfit([0, 1, 1, 1, 0], x, 3)",
            "xp.polyfit(np.float32([0, 1, 2, 3, 5]), x, 1.0)",
        ),
        dtypes=("int64", "float32", "float64", "complex64"),
        shapes=((4,), (5,), (5, 2)),
        special=False,
        limits=(-9, 9),
        rtol=1e-9,
        differs="does not warn of a low rank; a degree that is not an integer is refused, NumPy truncates it",
    ),
}  # fmt: skip
