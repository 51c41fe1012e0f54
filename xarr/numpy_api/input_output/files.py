"""Arrays in files: NumPy's npy and npz, and text."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from tokenize import TokenError
from types import TracebackType
from typing import Any, Final
from zipfile import BadZipFile

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.dtypes import EXTENDED_FLOAT, SUB_BYTE
from xarr.errors import ArgumentError, InputError, ParseError
from xarr.lax.core import ArrayLike
from xarr.numpy_api.creation.arrays import asarray
from xarr.numpy_api.creation.numpy_readers import call_guarded, read
from xarr.runtime.materialisation import to_host

__all__ = ["genfromtxt", "load", "loadtxt", "save", "savetxt", "savez", "savez_compressed"]

#: What NumPy has no numbers of.
_EXTENDED: Final = EXTENDED_FLOAT | frozenset(SUB_BYTE)
_NARROW: Final = {str(dtype): dtype for dtype in _EXTENDED}
#: What Python's readers of headers and of zip files raise besides ValueError.
_DAMAGED: Final = (*(BadZipFile, NotImplementedError, RecursionError, SyntaxError, TokenError, zlib.error),)
_BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)


# --- npy and npz ----------------------------------------------------------------------------------


def _encode(array: ArrayLike) -> np.ndarray[Any, Any]:
    """The values as a file of NumPy's can hold them.

    bfloat16 becomes V2, as jax.numpy saves and reads it.  NumPy cannot read back what it writes of narrower
    types: they become bytes in a field that has the name of the type.
    """
    host = to_host(as_array(array))
    if host.dtype == _BFLOAT16:
        return host.view("V2")
    return host.view([(str(host.dtype), "u1")]) if host.dtype in _EXTENDED else host


def _decode(host: np.ndarray[Any, Any]) -> Array:
    names = host.dtype.names
    if names is not None and len(names) == 1 and names[0] in _NARROW and host.dtype.itemsize == 1:
        return asarray(host.view(_NARROW[names[0]]), device=None)
    return asarray(host.view(_BFLOAT16) if host.dtype == np.dtype("V2") else host, device=None)


@names_errors
def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's npy format; `load` reads it back with its element type.

    file: a path, to which ".npy" is added if need be, or an open file.  allow_pickle changes nothing, as no
    array of xarr's needs it.  Raises TracedValueError in a traced function.  Source: NumPy, `save`.
    """
    np.save(file, _encode(arr), allow_pickle=False)


@names_errors
def savez(file: Any, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """Write several arrays to a file in NumPy's npz format, as "arr_0", "arr_1" … and under their keywords.

    See `save`.  Raises InputError for a keyword that is a positional array's name.  Source: NumPy, `savez`.
    """
    _savez("savez", np.savez, file, args, kwds)


@names_errors
def savez_compressed(file: Any, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """`savez`, compressed.  Source: NumPy, `savez_compressed`."""
    _savez("savez_compressed", np.savez_compressed, file, args, kwds)


def _savez(
    name: str, function: Any, file: Any, args: tuple[ArrayLike, ...], kwds: dict[str, ArrayLike]
) -> None:
    clashes = [f"arr_{number}" for number in range(len(args)) if f"arr_{number}" in kwds]
    if clashes:
        raise ArgumentError(
            f"{name}: {clashes[0]} is the name of a positional array and a keyword; rename the keyword"
        )
    arrays = {key: _encode(value) for key, value in kwds.items()}
    # NumPy before 2.2 would save allow_pickle as an array of that name; nothing that is encoded needs it.
    function(file, *map(_encode, args), **arrays)


class SavedArrays(Mapping[str, "Array"]):
    """The arrays of an npz file by name, read when they are asked for.  `with` closes the file."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    @property
    def files(self) -> list[str]:
        """The names."""
        return list(self._opened.files)

    def __getitem__(self, name: str) -> Array:
        return _decode(_load_without_pickle(lambda: self._opened[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened.files)

    def __len__(self) -> int:
        return len(self._opened.files)

    def __repr__(self) -> str:
        return f"SavedArrays({', '.join(self.files)})"

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def __enter__(self) -> SavedArrays:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _load_without_pickle(function: Callable[[], Any]) -> Any:
    """Read by NumPy without unpickling anything.  ParseError for a damaged file and for objects."""
    try:
        return call_guarded("load", function)
    except MemoryError as error:
        raise ParseError(
            f"load: {error}: its header gives that size; if it is not damaged, "
            "numpy.load(file, mmap_mode='r') reads it in parts"
        ) from error
    except _DAMAGED as error:
        raise ParseError(f"load: the file is damaged: {error}") from error
    except ParseError as error:
        if "allow_pickle" not in str(error):
            raise
        never = (
            "xarr never unpickles, which could run any program. If you trust the file, "
            "numpy.load(file, allow_pickle=True) reads it"
        )
        if "Object arrays" in str(error):
            raise ArgumentError(
                f"load: the file holds an array of Python objects, pickled; {never}"
            ) from error
        raise ParseError(f"load: the file is neither npy nor npz; {never} if it is a pickle") from error


@names_errors
def load(
    file: Any,
    mmap_mode: str | None = None,
    allow_pickle: bool = False,
    fix_imports: bool = True,
    encoding: str = "ASCII",
    *,
    max_header_size: int = 10000,
) -> Any:
    """The Array of an npy file, or the `SavedArrays` of an npz file.

    bfloat16 and float8 come back as what they were when `save` wrote them.  mmap_mode "r" and "c" read from
    mapped memory; others would write into the file, which an Array does not.  Objects cannot be computed
    with, and unpickling them would run what the file says: they are refused, whatever `allow_pickle` is.
    Raises ParseError for another format or a damaged file, ArgumentError for objects, InputError for mmap modes
    that write.
    Source: NumPy, `load`.
    """
    if mmap_mode not in (None, "r", "c"):
        raise InputError(
            f"load: wanted mmap_mode 'r', 'c' or None, got {mmap_mode!r}; arrays never write to files"
        )

    def open_file() -> Any:
        return np.load(
            file,
            mmap_mode,  # type: ignore[arg-type]
            False,
            fix_imports,
            encoding,  # type: ignore[arg-type]
            max_header_size=max_header_size,
        )

    contents = _load_without_pickle(open_file)
    return _decode(contents) if isinstance(contents, np.ndarray) else SavedArrays(contents)


# --- text -----------------------------------------------------------------------------------------


@names_errors
def loadtxt(
    fname: Any,
    dtype: DTypeLike = float,
    comments: Any = "#",
    delimiter: str | None = None,
    converters: Any = None,
    skiprows: int = 0,
    usecols: Any = None,
    unpack: bool = False,
    ndmin: Any = 0,
    encoding: str | None = None,
    max_rows: int | None = None,
    *,
    quotechar: str | None = None,
) -> Array:
    """The numbers of a text file with one row in each line; arguments as NumPy's.

    Raises ParseError, with the line, for what is no number and for rows of different lengths.
    Source: NumPy, `loadtxt`, whose parser it is.
    """
    columns: Array = read(
        *("loadtxt", np.loadtxt, dtype, fname),
        comments=comments,
        delimiter=delimiter,
        converters=converters,
        skiprows=skiprows,
        usecols=usecols,
        unpack=unpack,
        ndmin=ndmin,
        encoding=encoding,
        max_rows=max_rows,
        quotechar=quotechar,
    )
    return columns


@names_errors
def savetxt(
    fname: Any,
    X: ArrayLike,
    fmt: Any = "%.18e",
    delimiter: str = " ",
    newline: str = "\n",
    header: str = "",
    footer: str = "",
    comments: str = "# ",
    encoding: str | None = None,
) -> None:
    """Write a vector or matrix to a text file, one row in each line; arguments as NumPy's.

    Raises ParseError for another rank and for a format that does not fit.  Source: NumPy, `savetxt`.
    """
    host = to_host(as_array(X))
    values = host.astype(np.float32) if host.dtype in _EXTENDED else host
    options = {"header": header, "footer": footer, "comments": comments, "encoding": encoding}
    call_guarded("savetxt", lambda: np.savetxt(fname, values, fmt, delimiter, newline, **options))  # type: ignore[arg-type]


@names_errors
def genfromtxt(
    fname: Any,
    dtype: DTypeLike | None = float,
    comments: Any = "#",
    delimiter: Any = None,
    skip_header: int = 0,
    skip_footer: int = 0,
    converters: Any = None,
    missing_values: Any = None,
    filling_values: Any = None,
    usecols: Any = None,
    names: Any = None,
    excludelist: Any = None,
    deletechars: str = " !#$%&'()*+,-./:;<=>?@[\\]^{|}~",
    replace_space: str = "_",
    autostrip: bool = False,
    case_sensitive: Any = True,
    defaultfmt: str = "f%i",
    unpack: bool | None = None,
    usemask: bool = False,
    loose: bool = True,
    invalid_raise: bool = True,
    max_rows: int | None = None,
    encoding: str | None = None,
    *,
    ndmin: int = 0,
) -> Any:
    """`loadtxt` for files where numbers are missing, which become `filling_values`; arguments as NumPy's.

    Raises ParseError for rows of different lengths, InputError for named columns and masks, as xarr has no
    structured and no masked arrays.  Source: NumPy, `genfromtxt`, whose parser it is.
    """
    if usemask or names is not None:
        wanted = "usemask=False" if usemask else "names=None"
        raise InputError(f"genfromtxt: wanted {wanted}: xarr has no structured and no masked arrays")
    return read(
        *("genfromtxt", np.genfromtxt, dtype, fname),
        comments=comments,
        delimiter=delimiter,
        skip_header=skip_header,
        skip_footer=skip_footer,
        converters=converters,
        missing_values=missing_values,
        filling_values=filling_values,
        usecols=usecols,
        excludelist=excludelist,
        deletechars=deletechars,
        replace_space=replace_space,
        autostrip=autostrip,
        case_sensitive=case_sensitive,
        defaultfmt=defaultfmt,
        unpack=unpack,
        loose=loose,
        invalid_raise=invalid_raise,
        max_rows=max_rows,
        encoding=encoding,
        ndmin=ndmin,
    )
