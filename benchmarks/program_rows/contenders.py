"""The contenders of a program: xarr under jit in both spellings and recorded at once, NumPy, numba, jit JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from measure import Call

import xarr
from program_rows.row import Function, Program

#: Contender -> what makes its call; nothing is compiled before the first call.
Makers = dict[str, Callable[[], Call]]

#: Under jit, in the spellings of JAX and NumPy.
OURS: Final = ("xarr", "xarr np")
#: Peer -> its contenders, of which the fastest counts.
PEERS: Final = {"numpy": ("numpy",), "numba": ("numba", "numba fast"), "jax": ("jax", "jax np")}
#: Those whose first call grows with the arrays: Python steps the loops, or unrolls them.
STEPPED: Final = ("numpy", "xarr np", "eager", "jax np")
#: By what a library says that it cannot run a program; numba's own join where it does.
REFUSALS: tuple[type[Exception], ...] = (
    *(RuntimeError, TypeError, ValueError, MemoryError, AttributeError, IndexError, ArithmeticError),
    *(NotImplementedError, xarr.errors.XarrError),
)


def makers(program: Program, arguments: Sequence[Any], is_parallel: bool, with_peers: bool = True) -> Makers:
    """Who takes part, NumPy first.  numba runs in parallel if `is_parallel` and the loops say which may."""
    result: Makers = {"numpy": lambda: lambda: program.by_numpy(np, *arguments)}
    result["xarr"] = lambda: _by_xarr(program.by_jax, (xarr, xarr.lax), arguments)
    if not program.untraceable:
        result["xarr np"] = lambda: _by_xarr(program.by_numpy, (xarr,), arguments)
    result["eager"] = lambda: _by_recording(program, arguments)
    if with_peers and find_spec("numba"):
        in_parallel = is_parallel and "prange" in program.by_loops.__code__.co_names
        for name, is_fast in zip(PEERS["numba"], (False, True), strict=True):
            result[name] = lambda fast=is_fast: _by_numba(program.by_loops, arguments, fast, in_parallel)
    if with_peers and find_spec("jax"):
        result["jax"] = lambda: _by_jax(program.by_jax, arguments, with_lax=True)
        if not program.untraceable:
            result["jax np"] = lambda: _by_jax(program.by_numpy, arguments, with_lax=False)
    return result


def _of_arrays(function: Function, namespaces: tuple[Any, ...], arguments: Sequence[Any]) -> Function:
    """`function` as one of the arrays among its arguments alone; Python numbers are part of it."""

    def program(*arrays: Any) -> Any:
        following = iter(arrays)
        return function(*namespaces, *[next(following) if _is_array(a) else a for a in arguments])

    return program


def _is_array(argument: Any) -> bool:
    return isinstance(argument, np.ndarray)


def _by_xarr(function: Function, namespaces: tuple[Any, ...], arguments: Sequence[Any]) -> Call:
    arrays = [xarr.asarray(a).evaluate() for a in arguments if _is_array(a)]
    compiled = xarr.jit(_of_arrays(function, namespaces, arguments))
    return lambda: compiled(*arrays)


def _by_recording(program: Program, arguments: Sequence[Any]) -> Call:
    own = [xarr.asarray(a).evaluate() if _is_array(a) else a for a in arguments]
    return lambda: xarr.block_until_ready(program.by_numpy(xarr, *own))


def _by_numba(loops: Function, arguments: Sequence[Any], is_fast: bool, is_parallel: bool) -> Call:
    compiled = _numba_function(loops, is_fast, is_parallel)
    return lambda: compiled(*arguments)


@cache
def _numba_function(loops: Function, is_fast: bool, is_parallel: bool) -> Function:
    # It compiles for types, not for sizes: once for all.
    function: Function = import_module("numba").njit(loops, fastmath=is_fast, parallel=is_parallel)
    return function


def _by_jax(function: Function, arguments: Sequence[Any], with_lax: bool) -> Call:
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    namespaces = (jax.numpy, jax.lax) if with_lax else (jax.numpy,)
    arrays = [jax.device_put(a) for a in arguments if _is_array(a)]
    compiled = jax.jit(_of_arrays(function, namespaces, arguments))
    return lambda: jax.block_until_ready(compiled(*arrays))


def refusals() -> tuple[type[Exception], ...]:
    """The errors of contenders that cannot run a program."""
    if find_spec("numba") is None:
        return REFUSALS
    return (*REFUSALS, import_module("numba").core.errors.NumbaError)
