"""The contenders: each function here makes calls that are timed out of a program.

A program is written once, as a function of two namespaces, NumPy's and XLA's (`xp` and `lax`), and returns the
function of arrays.  The libraries that are not installed do not take part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from measure import Call, Contenders

import xarr

Function = Callable[..., Any]
Program = Callable[[Any, Any], Function]
#: `case(dtype, size)`: all the contenders of one row, with their data.
Case = Callable[[np.dtype, int], Contenders]

SIZES = (10**3, 10**5, 10**7)
PEERS = ("numpy", "numexpr", "jax", "numba", "numba fast", "torch")


@dataclass(frozen=True)
class Row:
    """A line of the table for each dtype and size.

    `sizes` are what `case` is called with: lengths for a one-dimensional row, counts of steps, or a 0 that means
    nothing.  `traffic` is how many elements must be read and written, at least.  `tolerance` and `unequal` are
    `measure.check`'s.
    """

    letter: str
    name: str
    case: Case
    sizes: tuple[int, ...] = (0,)
    one_dimensional: bool = False
    quick_sizes: tuple[int, ...] = ()
    traffic: Callable[[int], int] | None = None
    tolerance: float = 64
    unequal: float = 0


@cache
def is_installed(name: str) -> bool:
    return find_spec(name) is not None


@cache
def numba_kernels() -> ModuleType | None:
    """Loops for numba to compile, or None where it is not installed."""
    return import_module("cpu_rows.numba_kernels") if is_installed("numba") else None


def by_numba(name: str, *arguments: Any) -> Contenders:
    """A function of `numba_kernels` without and with `fastmath`; no call where numba is not installed."""
    kernels = numba_kernels()
    if kernels is None:
        return {}
    fast = getattr(kernels, name)
    exact = kernels.exactly(fast)
    return {"numba": lambda: exact(*arguments), "numba fast": lambda: fast(*arguments)}


def random(dtype: np.dtype, *shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers, the same at each call."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def contenders(
    program: Program,
    *arrays: np.ndarray,
    by_numpy: Call | None = None,
    numba_kernel: str = "",
    expression: str = "",
    names: Mapping[str, np.ndarray] | None = None,
    by_torch: bool = False,
) -> Contenders:
    """`program` of `arrays` by xarr, NumPy, JAX and, where they are given, others.

    `by_numpy` stands for the program where NumPy has no such function; `numba_kernel` names a function
    of `numba_kernels`; numexpr gets `expression` of `names`.  `by_torch` says that the program is one of tensors too.
    """
    function = program(xarr, xarr.lax)
    result: Contenders = by_xarr(function, *arrays)
    numpy_function = program(np, None)
    result["numpy"] = by_numpy or (lambda: numpy_function(*arrays))
    if expression and is_installed("numexpr"):
        result["numexpr"] = _numexpr(expression, names or {})
    if is_installed("jax"):
        result["jax"] = _jax(program, arrays)
    if numba_kernel:
        result |= by_numba(numba_kernel, *arrays)
    if by_torch and is_installed("torch"):
        result |= _torch(program, arrays)
    return result


def by_xarr(function: Function, *arrays: np.ndarray) -> Contenders:
    """`function` of Arrays, under `jit` and evaluated as it is recorded."""
    held = [xarr.asarray(array).evaluate() for array in arrays]
    compiled = xarr.jit(function)

    def lazy() -> Any:
        result = function(*held)
        xarr.evaluate(*result) if isinstance(result, tuple) else result.evaluate()
        return result

    return {"xarr": lambda: compiled(*held), "lazy": lazy}


def _numexpr(expression: str, names: Mapping[str, np.ndarray]) -> Call:
    numexpr = import_module("numexpr")
    return lambda: numexpr.evaluate(expression, local_dict=names)


@cache
def jax() -> ModuleType:
    """JAX, which computes in float64 where it is asked to."""
    module = import_module("jax")
    module.config.update("jax_enable_x64", True)
    return module


def _jax(program: Program, arrays: tuple[np.ndarray, ...]) -> Call:
    module = jax()
    held = [module.device_put(array) for array in arrays]
    compiled = module.jit(program(module.numpy, module.lax))
    return lambda: module.block_until_ready(compiled(*held))


def _torch(program: Program, arrays: tuple[np.ndarray, ...]) -> Contenders:
    torch = import_module("torch")
    held = [torch.from_numpy(array) for array in arrays]
    function = program(torch, None)
    compiled = torch.compile(function)
    return {"torch": lambda: function(*held), "torch.compile": lambda: compiled(*held)}
