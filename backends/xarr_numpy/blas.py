"""Many matrix products at once: the threads of this backend share them, and each product runs in one thread.

A BLAS that splits every small product among threads of its own makes all of them wait for the slowest; to
hand out whole products costs less.  For that the BLAS must be held to one thread, which OpenBLAS has a
function for; where NumPy brings another BLAS nothing is split.

threadpoolctl 3.8 would find the functions of MKL and BLIS too, which no wheel of NumPy brings, for 5.8 ms before the
first product instead of 0.15, and 7 us for each `with` instead of 2.  It is not used, since it could replace no more
than `_functions`: its limits set every BLAS in the process, SciPy's too, and of two threads that hold one at once the
first to leave lets the other go on with many threads, and the second leaves one thread for good.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import numpy as np

from xarr.dtypes import COMPLEX
from xarr.ir.ops.factorisations import LETTERS, Factorisation
from xarr_numpy import workers

#: What OpenBLAS calls its functions, in NumPy's wheels and elsewhere.
_PATTERNS: Final = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
#: And routines of LAPACK with integers of 64 bits.
_ROUTINES: Final = ("scipy_{}_64_", "{}_64_")
#: LAPACK applies so many reflections one by one (ILAENV of its reference).
_MOST_REFLECTIONS: Final = 128
#: Multiplications that count for an element of other work.
_PER_ELEMENT: Final = 16

_lock: Final = threading.Lock()
_holders: Final[set[object]] = set()
#: The threads of BLAS when the first of them came; 0 if none ever did.
_threads_before = 0


@cache
def _functions() -> tuple[Callable[[int], object], Callable[[], int]] | None:
    """Functions to set and ask for the number of threads of NumPy's BLAS; None where it cannot be done."""
    library = _library()
    if library is None:
        return None
    for pattern in _PATTERNS:
        calls = [
            getattr(library, pattern.format(name), None) for name in ("set_num_threads", "get_num_threads")
        ]
        if None not in calls:
            set_threads, get_threads = calls
            return set_threads, get_threads  # type: ignore[return-value]
    return None


@cache
def _library() -> ctypes.CDLL | None:
    # Symbols of the libraries that an extension module was linked with can be reached through it.
    module = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    return None if module is None else ctypes.CDLL(module.__file__)


@cache
def routine(name: str) -> int | None:
    """The address of a routine of LAPACK, such as `dgesv`, with integers of 64 bits; None where it is not known."""
    library = _library()
    functions = [getattr(library, pattern.format(name), None) for pattern in _ROUTINES] if library else []
    return next((ctypes.cast(each, ctypes.c_void_p).value for each in functions if each is not None), None)


def function(name: str, arguments: int) -> Callable[..., None] | None:
    """A routine as a function of the addresses of so many arguments; None where it is not known."""
    address = routine(name)
    return None if address is None else _function_at(address, arguments)


@cache
def _function_at(address: int, arguments: int) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)


def addresses(stack: np.ndarray[Any, Any]) -> range:
    """Where each of a stack of arrays begins, which lie one after the other and have elements."""
    start = stack.ctypes.data
    return range(start, start + stack.nbytes, stack.nbytes // len(stack))


def name_of(op: Factorisation, dtype: np.dtype[Any]) -> str:
    """The name of LAPACK's routine for a factorisation."""
    return f"{LETTERS[dtype]}{op.routines[dtype in COMPLEX]}"


def is_blocked(shape: tuple[int, ...]) -> bool:
    """Whether LAPACK applies the reflections of matrices of such a shape block by block, which takes more memory."""
    return min(shape[-2:]) > _MOST_REFLECTIONS


def can_be_held() -> bool:
    """Whether the threads of BLAS are under control, and there are several."""
    return workers.count() > 1 and _functions() is not None


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread; for the whole process, since it knows no other way."""
    global _threads_before
    functions = _functions()
    assert functions is not None
    set_threads, get_threads = functions
    holder = object()
    try:
        with _lock:
            if not _holders:
                _threads_before = get_threads()
            _holders.add(holder)
            set_threads(1)
        yield
    finally:
        with _lock:
            try:
                _holders.discard(holder)
            finally:  # Ctrl-C may come in between
                if not _holders and _threads_before:
                    set_threads(_threads_before)


def _in_child() -> None:
    """Give BLAS its threads back in a forked process: the threads that held them do not exist there."""
    try:
        if _holders:
            _holders.clear()
            functions = _functions()
            assert functions is not None, "it was held"
            functions[0](_threads_before)
    finally:
        _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)


def are_for_threads(pieces: int, multiplications: int) -> bool:
    """Whether so many pieces of so many multiplications each gain from `share`, where BLAS can be held."""
    return pieces > 1 and pieces * multiplications >= workers.WORTH_A_THREAD * _PER_ELEMENT


def is_worth_sharing(pieces: int, multiplications: int) -> bool:
    """Whether so many pieces of so many multiplications each gain from `share`."""
    return are_for_threads(pieces, multiplications) and can_be_held()


def share(work: Callable[[int, int], None], pieces: int, multiplications: int) -> None:
    """Call `work(start, stop)` for all of range(pieces), in several threads, each with a BLAS of one thread."""

    def phase(_: int, start: int, stop: int) -> None:
        # What NumPy is told to ignore, it is told in each thread.
        with np.errstate(all="ignore"):
            work(start, stop)

    with one_thread():
        workers.run(phase, 0, pieces, max(1, multiplications // _PER_ELEMENT))


def copy(target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
    """target[...] = source, in several threads if they are large."""
    rows = len(target) if target.ndim else 1
    if rows < 2 or target.size < workers.WORTH_A_THREAD:
        np.copyto(target, source)
        return

    def phase(_: int, start: int, stop: int) -> None:
        np.copyto(target[start:stop], source[start:stop])

    workers.run(phase, 0, rows, target.size // rows)
