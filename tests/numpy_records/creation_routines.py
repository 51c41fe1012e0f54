"""Arrays from formulas, iterables, bytes and text."""

from tests.support.numpy_records import Record

FILE = "f := __import__('tempfile').TemporaryFile()"
REAL = ("int8", "int64", "float32", "float64")


def _calls(*texts: str, **options) -> Record:
    return Record(texts, dtypes=("bool",), shapes=((),), inputs=0, **options)


RECORDS = {
    "asanyarray": Record(("xp.asanyarray(x)", "xp.asanyarray(x, 'float32')"), special=False, limits=(0, 9)),
    "asarray_chkfinite": Record(("xp.asarray_chkfinite(x)", "xp.asarray_chkfinite(x[..., :0])"), wider=True),
    "ascontiguousarray": Record(("xp.ascontiguousarray(x)", "xp.ascontiguousarray(x.T)")),
    "asfortranarray": Record(("xp.asfortranarray(x)", "xp.asfortranarray(x.T)")),
    "frombuffer": _calls(
        "xp.frombuffer(b'abcdefgh')",
        "xp.frombuffer(b'abcdefgh', 'int8', 3, 2)",
        "xp.frombuffer(bytearray(8), dtype='uint16')",
    ),
    "fromfile": _calls(
        f"[{FILE}, f.write(b'abcdefgh'), f.seek(0), xp.fromfile(f, 'uint16', offset=2), f.close()][3]",
        f"[{FILE}, f.write(b'1, 2.5,3'), f.seek(0), xp.fromfile(f, sep=','), f.close()][3]",
    ),
    "fromfunction": _calls(
        "xp.fromfunction(lambda i, j: i + 10 * j, (3, 4))",
        "xp.fromfunction(lambda i, j, k: i == j * k, (2, 3), dtype=int, k=2)",
        "xp.fromfunction(lambda i: i, (0,))",
        "xp.fromfunction(lambda: 3, ())",
    ),
    "fromiter": _calls(
        "xp.fromiter((i * i for i in range(5)), float)",
        "xp.fromiter([1, 2, 3], 'int8', count=2)",
        "xp.fromiter([], 'float32')",
    ),
    "fromstring": _calls(
        "xp.fromstring('1, 2.5,3', sep=',')", "xp.fromstring('1 2', dtype=int, count=1, sep=' ')"
    ),
    "geomspace": Record(
        (
            "xp.geomspace(1, 1000, 4)",
            "xp.geomspace(-8, -1, num=5, endpoint=False)",
            "xp.geomspace(1, 256, num=9, dtype=int)",
            "xp.geomspace(-1 + 0j, 1, num=5)",
            "xp.geomspace(3, 7, 0)",
            "xp.geomspace(3, 7, 1)",
            "xp.geomspace(x + 1, 99, 5, axis=-1)",
            "xp.geomspace(x + 1, x + 2, 5)",
        ),
        dtypes=REAL,
        special=False,
        limits=(0, 9),
        rtol={"float32": 1e-13, "float64": 1e-13},
    ),
    "logspace": Record(
        (
            "xp.logspace(0, 3, 7)",
            "xp.logspace(0, 3, 7, base=2, endpoint=False)",
            "xp.logspace(0, 3, 4, dtype=int)",
            "xp.logspace(x, 3, 4, axis=-1)",
            "xp.logspace(0, 1, 4, base=np.asarray(x))",
            "xp.logspace(0, [1, 2], 4, base=[2.0, 3.0], axis=-1)",
        ),
        dtypes=REAL,
        special=False,
        limits=(0, 9),
        rtol={"float32": 1e-5, "float64": 1e-13},
    ),
    "require": Record(
        (
            "xp.require(x)",
            "xp.require(x, 'float32', ['A', 'W'])",
            "xp.require(x, None, 'CE')",
            "xp.require(x, None, 'CF')",
        )[:3],
        special=False,
        limits=(0, 9),
    ),
    "vander": Record(
        (
            "xp.vander(x)",
            "xp.vander(x, 3)",
            "xp.vander(x, 0)",
            "xp.vander(x, N=1)",
            "xp.vander(x, 4, increasing=True)",
        ),
        special=False,
        limits=(0, 9),
        rtol={"float16": 1e-2, "float32": 1e-6, "float64": 1e-14, "complex64": 1e-5},
    ),
}
