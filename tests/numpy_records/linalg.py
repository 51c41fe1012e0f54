"""Linear algebra; factors that are only defined up to signs come from the same routines of LAPACK."""

from tests.support.numpy_records import Record

_DTYPES = ("bool", "int8", "int64", "float16", "float32", "float64", "complex64", "complex128")
_CLOSE = {"float32": 1e-3, "complex64": 1e-3, "float64": 1e-10, "complex128": 1e-10}
_RTOL = {**_CLOSE, "bool": 1e-10, "int8": 1e-10, "int64": 1e-10, "float16": 4e-3}
_SQUARE = ((), (3,), (2, 3), (0, 0), (1, 1), (3, 3), (2, 4, 4), (2, 0, 0), (0, 2, 2))
_ANY = ((), (3,), (0, 0), (3, 0), (1, 1), (2, 3), (4, 3), (2, 3, 3), (2, 2, 3, 4), (0, 2, 2))
_MATRICES = tuple(shape for shape in _ANY if len(shape) > 1)
#: The same matrix for every dtype is regular, positive definite …
_REGULAR = "(x + 40 * np.eye(x.shape[-1], dtype=x.dtype))"
_COMPLEX = "always complex, where NumPy gives reals if all eigenvalues are real"


def _record(*texts: str, shapes=_SQUARE, dtypes=_DTYPES, **options) -> Record:
    return Record(texts, shapes=shapes, dtypes=dtypes, special=False, limits=(-9, 9), rtol=_RTOL, **options)


RECORDS = {
    "linalg.cholesky": _record(
        "xp.linalg.cholesky(x)",
        f"xp.linalg.cholesky({_REGULAR})",
        f"xp.linalg.cholesky({_REGULAR}, upper=True)",
        shapes=((0, 0), (1, 1), (3, 3), (2, 2, 2)),
        dtypes=tuple(set(_DTYPES) - {"bool"}),
    ),
    "linalg.cond": _record(
        f"xp.linalg.cond({_REGULAR})",
        *(f"xp.linalg.cond({_REGULAR}, {p})" for p in ("2", "-2", "'fro'", "1", "-1", "np.inf", "-np.inf")),
        "xp.linalg.cond(x)",
        "xp.linalg.cond(x * 0)",
        shapes=((1, 1), (3, 3), (2, 2, 2), (0, 0)),
        dtypes=("float32", "float64", "complex128"),
    ),
    "linalg.cross": _record(
        "xp.linalg.cross(x, y)",
        "xp.linalg.cross(x, y, axis=0)",
        shapes=((3,), (2,), (3, 3), (2, 3)),
        inputs=2,
        dtypes=tuple(set(_DTYPES) - {"bool"}),
    ),
    "linalg.det": _record("xp.linalg.det(x)"),
    "linalg.diagonal": _record("xp.linalg.diagonal(x)", "xp.linalg.diagonal(x, offset=-1)", shapes=_ANY),
    "linalg.eig": _record(
        "[one.astype('complex128') for one in xp.linalg.eig(x)]",
        shapes=((3,), (2, 3), (0, 0), (1, 1), (3, 3), (2, 4, 4)),
        differs=_COMPLEX,
    ),
    "linalg.eigvals": _record("xp.linalg.eigvals(x).astype('complex128')", differs=_COMPLEX),
    "linalg.eigh": _record("tuple(xp.linalg.eigh(x))", "tuple(xp.linalg.eigh(x, 'U'))"),
    "linalg.eigvalsh": _record("xp.linalg.eigvalsh(x)", "xp.linalg.eigvalsh(x, UPLO='u')"),
    "linalg.inv": _record("xp.linalg.inv(x)", "xp.linalg.inv(x * 0)"),
    "linalg.lstsq": _record(
        "xp.linalg.lstsq(x, y[:, 0])",
        "xp.linalg.lstsq(x, y)",
        "xp.linalg.lstsq(x * 0, y)",
        "xp.linalg.lstsq(x, y, rcond=0.5)",
        "xp.linalg.lstsq(x, y, rcond=-1)",
        shapes=((3, 3), (5, 2), (2, 5), (2, 3, 3), (4, 1)),
        inputs=2,
        differs="in a traced function rank n is taken for granted where it decides on the shape of the residuals",
    ),
    "linalg.matmul": _record(
        "xp.linalg.matmul(x, y)", inputs=2, shapes=((3,), (3, 3), (2, 4, 4), (0, 0), (2, 3))
    ),
    "linalg.matrix_norm": _record(
        *(f"xp.linalg.matrix_norm(x, ord={p})" for p in ("'fro'", "1", "-1", "np.inf", "-np.inf")),
        "xp.linalg.matrix_norm(x)",
        "xp.linalg.matrix_norm(x, keepdims=True)",
        *(f"xp.linalg.matrix_norm(x, ord={p})" for p in ("2", "-2", "'nuc'")),
        shapes=((), (3,), (1, 1), (2, 3), (2, 3, 3), (0, 2, 2)),
        dtypes=("int64", "float32", "float64", "complex64"),
    ),
    "linalg.matrix_power": _record(
        *(f"xp.linalg.matrix_power(x, {n})" for n in (0, 1, 2, 3, 5, 6)),
        "xp.linalg.matrix_power(x.astype('float64'), -2)",
        dtypes=("bool", "int8", "int64", "float64"),
    ),
    "linalg.matrix_rank": _record(
        "xp.linalg.matrix_rank(x)",
        "xp.linalg.matrix_rank(x * 0)",
        "xp.linalg.matrix_rank(x, tol=4.0)",
        "xp.linalg.matrix_rank(x, rtol=0.4)",
        "xp.linalg.matrix_rank(x @ x.mT, hermitian=True)",
        shapes=tuple(shape for shape in _ANY if len(shape) > 1 and shape not in ((0, 0), (3, 0))),
    ),
    "linalg.matrix_transpose": _record("xp.linalg.matrix_transpose(x)", shapes=_ANY),
    "linalg.multi_dot": _record(
        "xp.linalg.multi_dot([x, y])",
        "xp.linalg.multi_dot([x, y, x])",
        "xp.linalg.multi_dot([x, y, x, y[:, :1]])",
        "xp.linalg.multi_dot([x[0], y, x[:, 0]])",
        shapes=((3, 3), (2, 3), (2, 3, 3)),
        inputs=2,
    ),
    "linalg.norm": _record(
        "xp.linalg.norm(x)",
        "xp.linalg.norm(x, keepdims=True)",
        *(
            f"xp.linalg.norm(x, {p})"
            for p in ("'fro'", "1", "np.inf", "-np.inf", "-1", "2", "-2", "'nuc'", "0", "3")
        ),
        *(
            f"xp.linalg.norm(x, {p}, axis=-1)"
            for p in ("None", "1", "2", "np.inf", "-np.inf", "0", "3", "-0.5")
        ),
        *(
            f"xp.linalg.norm(x, {p}, axis=(0, -1))"
            for p in ("None", "1", "2", "np.inf", "-1", "'nuc'", "'f'")
        ),
        "xp.linalg.norm(x, axis=(0, -1), keepdims=True)",
        "xp.linalg.norm(x, 1, axis=(-1, 0), keepdims=True)",
        shapes=((), (3,), (1, 1), (2, 3), (2, 3, 3)),
        dtypes=("int64", "float32", "float64", "complex64"),
    ),
    "linalg.outer": _record("xp.linalg.outer(x, y)", shapes=((), (3,), (0,), (2, 3)), inputs=2),
    "linalg.pinv": _record(
        "xp.linalg.pinv(x)",
        "xp.linalg.pinv(x * 0)",
        "xp.linalg.pinv(x, 0.4)",
        "xp.linalg.pinv(x, rtol=None)",
        "xp.linalg.pinv(x, rtol=0.4)",
        "xp.linalg.pinv(x @ x.mT, hermitian=True, rtol=1e-3)",
        shapes=_MATRICES,
        dtypes=tuple(_CLOSE),
    ),
    "linalg.qr": _record(
        "tuple(xp.linalg.qr(x))",
        "tuple(xp.linalg.qr(x, 'complete'))",
        "xp.linalg.qr(x, 'r')",
        "xp.linalg.qr(x, 'raw')",
        shapes=_ANY,
    ),
    "linalg.slogdet": _record("tuple(xp.linalg.slogdet(x))", "tuple(xp.linalg.slogdet(x * 0))"),
    "linalg.solve": _record(
        "xp.linalg.solve(x, y)",
        "xp.linalg.solve(x, y[..., :1])",
        "xp.linalg.solve(x, y.reshape(-1)[:3])",
        "xp.linalg.solve(x * 0, y)",
        "xp.linalg.solve(x[:1], y)",
        shapes=((3,), (2, 3), (1, 1), (3, 3), (2, 3, 3), (2, 0, 0)),
        inputs=2,
    ),
    "linalg.svd": _record(
        "tuple(xp.linalg.svd(x))",
        "tuple(xp.linalg.svd(x, False))",
        "xp.linalg.svd(x, compute_uv=False)",
        "xp.linalg.svd(x @ x.mT, compute_uv=False, hermitian=True)",
        shapes=_MATRICES,
    ),
    "linalg.svdvals": _record("xp.linalg.svdvals(x)", shapes=_ANY),
    "linalg.tensordot": _record(
        "xp.linalg.tensordot(x, y)",
        "xp.linalg.tensordot(x, y, axes=1)",
        "xp.linalg.tensordot(x, y, axes=((0,), (0,)))",
        shapes=((3,), (3, 3), (2, 3)),
        inputs=2,
    ),
    "linalg.tensorinv": _record(
        "xp.linalg.tensorinv(x.reshape(2, 3, 6))",
        "xp.linalg.tensorinv(x, 1)",
        shapes=((6, 6), (36,)),
    ),
    "linalg.tensorsolve": _record(
        "xp.linalg.tensorsolve(x.reshape(2, 3, 6), y[:, 0].reshape(2, 3))",
        "xp.linalg.tensorsolve(x.reshape(6, 2, 3), y[0], axes=(1, 2))",
        "xp.linalg.tensorsolve(x.reshape(2, 6, 3), y[0].reshape(2, 3), axes=(1,))",
        shapes=((6, 6),),
        inputs=2,
    ),
    "linalg.trace": _record(
        "xp.linalg.trace(x)", "xp.linalg.trace(x, offset=1, dtype='complex128')", shapes=_ANY
    ),
    "linalg.vecdot": _record(
        "xp.linalg.vecdot(x, y)", "xp.linalg.vecdot(x, y, axis=0)", shapes=((3,), (2, 3)), inputs=2
    ),
    "linalg.vector_norm": _record(
        "xp.linalg.vector_norm(x)",
        "xp.linalg.vector_norm(x, keepdims=True)",
        *(f"xp.linalg.vector_norm(x, ord={p})" for p in ("1", "2", "np.inf", "-np.inf", "0", "3", "-0.5")),
        "xp.linalg.vector_norm(x, axis=-1, ord=1)",
        "xp.linalg.vector_norm(x, axis=(0, 1), keepdims=True, ord=4)",
        shapes=((), (3,), (1, 1), (2, 3), (2, 3, 3)),
        dtypes=("int64", "float32", "float64", "complex64"),
    ),
}
