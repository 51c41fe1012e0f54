"""Diagonals, and products of vectors and matrices beyond `matmul`."""

from tests.support.numpy_records import Record

_NUMBERS = ("int8", "uint64", "float32", "float64", "complex64")
_RTOL = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5}

RECORDS = {
    "diagonal": Record(
        (
            "xp.diagonal(x)",
            "xp.diagonal(x, 1)",
            "xp.diagonal(x, -2)",
            "xp.diagonal(x, 9)",
            "xp.diagonal(x, 0, -1, 0)",
            "xp.diagonal(x, axis1=1, axis2=2)",
        )
    ),
    "trace": Record(
        ("xp.trace(x)", "xp.trace(x, 1)", "xp.trace(x, 0, -1, 0)", "xp.trace(x, dtype='complex128')"),
        special=False,
        rtol={"float16": 4e-3, **_RTOL},
        limits=(-9, 9),
    ),
    "diagflat": Record(("xp.diagflat(x)", "xp.diagflat(x, 2)", "xp.diagflat(x, -1)")),
    "kron": Record(
        ("xp.kron(x, y)", "xp.kron(x, y[..., None])", "xp.kron(x[None], y)"),
        shapes=((0,), (1,), (3, 2), (2, 1, 3)),
        inputs=2,
        special=False,
        limits=(-9, 9),
        rtol=1e-5,
        differs="a Python number takes the array's type, as in all other functions",
    ),
    "cross": Record(
        (
            "xp.cross(x[..., :3], y[..., :3])",
            "xp.cross(x, y, axis=0)",
            "xp.cross(x, y, axisa=0, axisb=0, axisc=0)",
            "xp.cross(x, y, 0, 0, -1)",
        ),
        dtypes=_NUMBERS,
        shapes=((3,), (3, 3), (3, 4), (3, 0, 3), (3, 2, 4)),
        inputs=2,
        special=False,
        limits=(-9, 9),
        rtol=_RTOL,
    ),
    "matvec": Record(
        ("xp.matvec(x, y[..., 0, :])", "xp.matvec(x, y.T)", "xp.matvec(x[:1], y[-1:])"),
        dtypes=(*_NUMBERS, "bool"),
        shapes=((3, 3), (2, 3), (1, 2, 3), (2, 4, 3)),
        inputs=2,
        special=False,
        limits=(-9, 9),
        rtol=_RTOL,
    ),
    "vecmat": Record(
        ("xp.vecmat(x[..., 0], y)", "xp.vecmat(x.T, y)"),
        dtypes=(*_NUMBERS, "bool"),
        shapes=((3, 3), (2, 3), (1, 2, 3), (2, 4, 3)),
        inputs=2,
        special=False,
        limits=(-9, 9),
        rtol=_RTOL,
    ),
    "einsum": Record(
        (
            "xp.einsum('ij,kj->ik', x, y)",
            "xp.einsum('ij->j', x)",
            "xp.einsum('...j,...j', x, y)",
            "xp.einsum(x, [0, 1], y, [0, 1], [1])",
        ),
        shapes=((3, 3), (2, 3), (2, 0)),
        inputs=2,
        special=False,
        limits=(-9, 9),
        rtol={"float16": 4e-3, **_RTOL},
    ),
    "einsum_path": Record(
        ("len(xp.einsum_path('ij,kj->ik', x, y)) and xp.einsum('ij,kj->ik', x, y).shape",),
        dtypes=("int64",),
        shapes=((2, 3),),
        inputs=2,
    ),
}
