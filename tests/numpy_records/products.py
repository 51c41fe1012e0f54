"""Products of vectors and matrices."""

from tests.support.numpy_records import Record

_CLOSE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-13, "complex64": 2e-5}


def _record(*texts: str, shapes=((5,), (3, 3), (2, 4, 4)), **options) -> Record:
    return Record(texts, shapes=shapes, inputs=2, special=False, limits=(-9, 9), rtol=_CLOSE, **options)


RECORDS = {
    "dot": _record(
        "xp.dot(x, y)",
        shapes=((), (5,), (3, 3), (2, 4, 4), (0, 0)),
        differs="a Python number takes the array's type, as in all other functions",
    ),
    "inner": _record("xp.inner(x, y)", shapes=((), (5,), (3, 4), (2, 3, 4))),
    "matmul": _record("xp.matmul(x, y)", "xp.matmul(x, y[-1:][0])", shapes=((5,), (3, 3), (2, 4, 4))),
    "outer": _record("xp.outer(x, y)", shapes=((), (5,), (3, 4))),
    "tensordot": _record(
        "xp.tensordot(x, y, axes=0)", "xp.tensordot(x, y, 1)", "xp.tensordot(x, y, axes=((0,), (0,)))"
    ),
    "vdot": _record("xp.vdot(x, y)", shapes=((5,), (3, 4))),
    "vecdot": _record("xp.vecdot(x, y)", "xp.vecdot(x, y, axis=0)", shapes=((5,), (3, 4), (2, 3, 4))),
}
