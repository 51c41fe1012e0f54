"""Arrays from shapes, ranges, data and other arrays."""

from tests.support.functions import FLOATS
from tests.support.numpy_records import Record

_MATRICES = ((3, 4), (1, 5), (2, 2, 3), (0, 3))


def _calls(*texts: str, **options) -> Record:
    """Calls that take no array."""
    return Record(texts, dtypes=("bool",), shapes=((),), inputs=0, **options)


def _each(*texts: str, **options) -> Record:
    return Record(texts, **options)


RECORDS = {
    "arange": Record(
        (
            "xp.arange(5)",
            "xp.arange(2, 11, 3)",
            "xp.arange(5, 2)",
            "xp.arange(0.0, 1.0, 0.3)",
            "xp.arange(10, 0, -3, dtype='float32')",
            "xp.arange(3, step=2)",
            "xp.arange(start=1, stop=7, step=2)",
        ),
        dtypes=("bool",),
        shapes=((),),
        inputs=0,
        signature="`start` is a keyword too, as in NumPy, whose signature does not say so",
    ),
    "array": Record(
        (
            "xp.array(x)",
            "xp.array(x, dtype='complex64')",
            "xp.array(x, ndmin=3)",
            "xp.array([[1, 2], [3, 4]])",
        ),
        signature="ndmax is 64 without being given, as in NumPy, whose signature says 0",
    ),
    "asarray": _each("xp.asarray(x)", "xp.asarray(x, 'float32')", "xp.asarray(3)", "xp.asarray([1, 2.5])"),
    "copy": _each("xp.copy(x)"),
    "diag": _each("xp.diag(x)", "xp.diag(x, 1)", "xp.diag(x, k=-2)", shapes=((5,), (0,), (3, 4), (4, 2))),
    "empty": _calls("xp.empty((2, 3)).shape", "xp.empty(4, 'int8').dtype"),
    "empty_like": _each("xp.empty_like(x).shape", "xp.empty_like(x, dtype='int16').dtype"),
    "eye": _calls("xp.eye(3)", "xp.eye(3, 5, k=1)", "xp.eye(4, M=2, k=-1, dtype='int8')", "xp.eye(0)"),
    "full": _calls("xp.full((2, 3), 7)", "xp.full(4, 2.5, dtype='float32')", "xp.full((), 1j)"),
    "full_like": _each(
        "xp.full_like(x, 3)", "xp.full_like(x, 1, dtype='int16')", "xp.full_like(x, 2, shape=4)"
    ),
    "identity": _calls("xp.identity(3)", "xp.identity(n=2, dtype='complex64')"),
    "linspace": _calls(
        "xp.linspace(0, 1)",
        "xp.linspace(2, 3, 5)",
        "xp.linspace(2, 3, 5, endpoint=False)",
        "xp.linspace(0, 10, num=4, dtype='int32')",
        "xp.linspace(0, 1, 5, retstep=True)",
        "xp.linspace(0, 1, 0)",
        "xp.linspace(5, -5, 1)",
        rtol=1e-15,
    ),
    "meshgrid": Record(
        (
            "xp.meshgrid(x, y)",
            "xp.meshgrid(x, y, x)",
            "xp.meshgrid(x, y, indexing='ij')",
            "xp.meshgrid(x, y, sparse=True)",
        ),
        shapes=((), (1,), (5,)),
        inputs=2,
    ),
    "ones": _calls("xp.ones((2, 3))", "xp.ones(4, dtype='int8')", "xp.ones(())"),
    "ones_like": _each("xp.ones_like(x)", "xp.ones_like(x, dtype='int16')", "xp.ones_like(x, shape=(2, 3))"),
    "tri": _calls("xp.tri(3)", "xp.tri(3, 5, k=1)", "xp.tri(4, M=2, k=-1, dtype='int8')"),
    "tril": _each("xp.tril(x)", "xp.tril(x, 1)", "xp.tril(x, k=-1)", shapes=_MATRICES),
    "triu": _each("xp.triu(x)", "xp.triu(x, 1)", "xp.triu(x, k=-1)", shapes=_MATRICES),
    "zeros": _calls("xp.zeros((2, 3))", "xp.zeros(4, dtype='int8')", "xp.zeros(())"),
    "zeros_like": _each(
        "xp.zeros_like(x)", "xp.zeros_like(x, dtype='int16')", "xp.zeros_like(x, shape=(2, 3))"
    ),
    "from_dlpack": Record(("xp.from_dlpack(x)",), dtypes=("int8", "uint64", *FLOATS, "complex64")),
}
