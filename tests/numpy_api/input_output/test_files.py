"""Arrays in files: element types that NumPy has not, archives, what is no array; creation in traced functions."""

import io
import pickle
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.dtypes import EXTENDED_FLOAT
from xarr.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    InputError,
    ParseError,
    ShapeError,
    TracedValueError,
    ValueRangeError,
)


@pytest.mark.parametrize("dtype", sorted(map(str, EXTENDED_FLOAT)))
@pytest.mark.parametrize("shape", [(), (0, 2), (3,), (2, 2)])
def test_narrow_floats_come_back(tmp_path, dtype, shape):
    x = xarr.asarray(np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)).astype(dtype)
    xarr.save(tmp_path / "x", x)
    result = xarr.load(tmp_path / "x.npy")
    assert (result.dtype, result.shape) == (x.dtype, shape)
    assert np.asarray(result).tobytes() == np.asarray(x).tobytes()
    xarr.savez(tmp_path / "y", x, named=x)
    with xarr.load(tmp_path / "y.npz") as archive:
        assert archive["named"].dtype == archive["arr_0"].dtype == x.dtype


def test_bfloat16_is_saved_as_jax_saves_it():
    jax = pytest.importorskip("jax")
    stream = io.BytesIO()
    xarr.save(stream, xarr.asarray([1.5, -2.0]).astype("bfloat16"))
    stream.seek(0)
    assert jax.numpy.load(stream).tolist() == [1.5, -2.0]
    stream = io.BytesIO()
    jax.numpy.save(stream, jax.numpy.array([1.5, -2.0], jax.numpy.bfloat16))
    stream.seek(0)
    assert xarr.load(stream).dtype == np.dtype("bfloat16")


def test_numpy_reads_what_is_saved(tmp_path):
    xarr.save(tmp_path / "x.npy", xarr.asarray([[1, 2], [3, 4]]).T)
    assert np.load(tmp_path / "x.npy").tolist() == [[1, 3], [2, 4]]


def test_archives(tmp_path):
    xarr.savez_compressed(tmp_path / "x", [1, 2], b=3.5)
    archive = xarr.load(tmp_path / "x.npz", mmap_mode="r")
    assert archive.files == list(archive)
    assert sorted(archive) == ["arr_0", "b"]
    assert len(archive) == 2
    assert isinstance(archive["b"], xarr.Array)
    assert repr(archive) == f"SavedArrays({', '.join(archive)})"
    with pytest.raises(KeyError):
        archive["c"]
    archive.close()


def test_mapped_memory_is_read(tmp_path):
    xarr.save(tmp_path / "x.npy", [1, 2])
    assert xarr.load(tmp_path / "x.npy", mmap_mode="r").tolist() == [1, 2]


@pytest.mark.parametrize("order", ["<", ">", "="])
@pytest.mark.parametrize("code", ["?", "i1", "u4", "i8", "f2", "f8", "c8"])
def test_bytes_in_either_order(tmp_path, order, code):
    dtype = np.dtype(f"{order}{code}")
    raw = np.array([0, 1, 3, 100]).astype(dtype).tobytes()
    wanted = np.frombuffer(raw, dtype)
    path = tmp_path / "raw"
    path.write_bytes(raw)
    for values in (
        xarr.frombuffer(raw, dtype=dtype),
        xarr.fromfile(path, dtype),
        xarr.fromfile(path, dtype, 2),
    ):
        assert_same(values, wanted[: values.size].astype(dtype.newbyteorder("=")))


def test_the_bits_of_an_array_are_in_the_order_of_the_machine():
    other = np.dtype("u4").newbyteorder("S")
    with pytest.raises(DTypeError, match="the machine's byte order"):
        xarr.lax.bitcast_convert_type(np.float32(1), other)


def test_text_of_narrow_floats():
    stream = io.StringIO()
    xarr.savetxt(stream, xarr.asarray([1.5, 2.0]).astype("bfloat16"), "%.1f")
    assert stream.getvalue() == "1.5\n2.0\n"
    stream.seek(0)
    assert xarr.loadtxt(stream, "bfloat16").dtype == np.dtype("bfloat16")
    assert xarr.fromstring("1 2", "float8_e5m2", sep=" ").tolist() == [1, 2]


def test_columns_of_their_own():
    first, second = xarr.loadtxt(io.StringIO("1 2\n3 4"), unpack=True)
    assert (first.tolist(), second.tolist()) == ([1, 3], [2, 4])


def test_iterables_of_arrays():
    assert xarr.fromiter(xarr.asarray([1.5, 2.5]), float).tolist() == [1.5, 2.5]


def test_ranges_in_a_traced_function():
    x = np.array([1.0, 8.0])
    result = xarr.jit(lambda a: xarr.geomspace(a, 64.0, 4, axis=-1))(x)
    np.testing.assert_allclose(np.asarray(result), np.geomspace(x, [64.0, 64.0], 4, axis=-1), rtol=1e-14)
    result = xarr.jit(lambda a: xarr.geomspace(-a, -a * 8, 4, endpoint=False))(x)
    np.testing.assert_allclose(np.asarray(result), np.geomspace(-x, -x * 8, 4, endpoint=False), rtol=1e-14)
    result = xarr.jit(lambda a: xarr.geomspace(a * (1 + 0j), a * 8j, 4))(x)
    np.testing.assert_allclose(np.asarray(result), np.geomspace(x * (1 + 0j), x * 8j, 4), rtol=1e-13)
    result = xarr.jit(lambda a: xarr.logspace(a, 2 * a, 4, base=2))(x)
    np.testing.assert_allclose(np.asarray(result), np.logspace(x, 2 * x, 4, base=2), rtol=1e-14)
    result = xarr.jit(lambda a: xarr.vander(a, 4))(x)
    np.testing.assert_array_equal(np.asarray(result), np.vander(x, 4))


def test_with_explicit_broadcasting():
    x = np.array([1.0, 8.0])
    with xarr.config(broadcasting="explicit"):
        result = xarr.logspace(x, x, 3, base=x)
        np.testing.assert_allclose(np.asarray(result), np.logspace(x, x, 3, base=x), rtol=1e-14)
        np.testing.assert_allclose(np.asarray(xarr.geomspace(x, x + 1, 3)), np.geomspace(x, x + 1, 3))
        result = xarr.jit(lambda a: xarr.geomspace(a, 64.0, 4))(x)
        np.testing.assert_allclose(np.asarray(result), np.geomspace(x, 64.0, 4), rtol=1e-14)
        assert xarr.vander([1, 2, 3]).shape == (3, 3)
        assert xarr.fromfunction(lambda i, j: i + j, (2, 2)).tolist() == [[0, 1], [1, 2]]


def stream(text):
    return io.StringIO(text)


def npy(shape):
    """A file of 24 bytes of float64 whose header says that they have this shape."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}\n".encode()
    return io.BytesIO(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(24))


def test_damaged_files_end_in_an_error_of_xarr():
    """Bytes changed, removed and inserted anywhere in archives and in single arrays."""
    rng = np.random.default_rng(7)
    files = [io.BytesIO() for _ in range(3)]
    xarr.save(files[0], np.arange(10.0))
    xarr.savez(files[1], a=np.arange(4), b=np.ones(3))
    xarr.savez_compressed(files[2], a=np.arange(100), b=np.ones(3))
    refused = 0
    for file in files:
        for _ in range(150):
            raw = bytearray(file.getvalue())
            begin, width = rng.integers(len(raw)), rng.integers(0, 8)
            raw[begin : begin + width] = rng.bytes(rng.integers(0, 8))
            try:
                loaded = xarr.load(io.BytesIO(bytes(raw)))
                for name in getattr(loaded, "files", []):
                    loaded[name].tolist()
            except (ParseError, InputError):
                refused += 1
    assert refused > 150


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xarr.load(io.BytesIO(b'nonsense'))", ParseError, "load"),
        ("xarr.load(io.BytesIO(b''))", ParseError, "load"),
        ("xarr.load(npy('(3,'))", ParseError, "the file is damaged: .*EOF"),
        (
            "xarr.load(npy('(1000000000000,)}'))",
            ParseError,
            "7.28 TiB .*: its header gives that size",
        ),
        ("xarr.load(io.BytesIO(b'PK\\3\\4' + bytes(60)))", ParseError, "the file is damaged: .*zip"),
        ("xarr.load('x.npy', mmap_mode='r+')", InputError, "never write to files"),
        ("xarr.load('/none/x.npy')", FileNotFoundError, "none"),
        ("xarr.savez(io.BytesIO(), 1, arr_0=2)", InputError, "rename the keyword"),
        ("xarr.save(io.BytesIO(), ['text'])", InputError, "text"),
        ("xarr.jit(lambda x: xarr.save(io.BytesIO(), x))(np.ones(2))", TracedValueError, "asked for"),
        ("xarr.loadtxt(stream('1 b'))", ParseError, "row 0, column 2"),
        ("xarr.loadtxt(stream('1 2'), dtype=str)", DTypeError, "element type"),
        ("xarr.genfromtxt(stream('1 2'), names=True)", InputError, "names=None"),
        ("xarr.genfromtxt(stream('1 2'), usemask=True)", InputError, "masked"),
        ("xarr.genfromtxt(stream('1 2\\n3'))", ParseError, "Line #2"),
        ("xarr.savetxt(stream(''), np.ones((2, 2, 2)))", ParseError, "3D"),
        ("xarr.savetxt(stream(''), np.ones(2), '%d %d %d')", ParseError, "format|fmt"),
        ("xarr.fromiter([1, 2], int, 3)", ParseError, "fromiter"),
        ("xarr.fromiter(['a'], int)", ParseError, "fromiter"),
        ("xarr.fromiter(3, int)", InputError, "an iterable"),
        ("xarr.frombuffer(b'abc')", ParseError, "multiple of element size"),
        ("xarr.frombuffer(3)", InputError, "frombuffer"),
        ("xarr.fromstring('1', sep='')", InputError, "frombuffer reads bytes"),
        ("xarr.fromfunction(lambda i: i, -1)", ShapeError, "size"),
        ("xarr.geomspace(1, 3, -1)", ValueRangeError, "num >= 0"),
        ("xarr.geomspace(1, 3, axis=1)", AxisError, "out of range"),
        ("xarr.geomspace(0, 3)", ValueRangeError, "cannot include 0"),
        ("xarr.vander([[1]])", ShapeError, "wanted a vector"),
        ("xarr.vander([1], -1)", ShapeError, "N"),
        ("xarr.require([1], None, 'X')", ValueRangeError, "got 'X'"),
        ("xarr.require([1], None, ['C', 'F'])", ValueRangeError, "contradict"),
        ("xarr.asarray_chkfinite([1, np.nan])", ValueRangeError, "NaN or infinity"),
        ("xarr.asarray_chkfinite([1, np.inf * 1j])", ValueError, "NaN or infinity"),
        ("xarr.jit(xarr.asarray_chkfinite)(np.ones(2))", TracedValueError, "asked for"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        eval(text)


class _Trap:
    """Makes a pickle that would leave a mark behind if it were read."""

    def __init__(self, mark: Any) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.mark), "w")


@pytest.mark.parametrize("allow_pickle", [False, True])
def test_nothing_is_unpickled(tmp_path: Any, allow_pickle: bool) -> None:
    mark = tmp_path / "mark"
    trap = np.array([_Trap(mark)], dtype=object)
    np.save(tmp_path / "a.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "b.npz", trap=trap, numbers=np.arange(3))
    (tmp_path / "c.pkl").write_bytes(pickle.dumps(_Trap(mark)))
    with pytest.raises(ArgumentError, match=r"load: .* objects, pickled; xarr never unpickles.*numpy\.load"):
        xarr.load(tmp_path / "a.npy", allow_pickle=allow_pickle)
    with xarr.load(tmp_path / "b.npz", allow_pickle=allow_pickle) as archive:
        assert_same(np.asarray(archive["numbers"]), np.arange(3))
        with pytest.raises(ArgumentError, match=r"xarr never unpickles"):
            archive["trap"]
    with pytest.raises(ParseError, match=r"neither npy nor npz; xarr never unpickles"):
        xarr.load(tmp_path / "c.pkl", allow_pickle=allow_pickle)
    assert not mark.exists()
