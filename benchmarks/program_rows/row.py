"""A row of `benchmarks/programs.py`: one algorithm in NumPy's spelling, in JAX's, and as loops for numba."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

Array = Any
Function = Callable[..., Any]

#: numba's parallel range where it is installed; the loops of a row are plain Python without it.
prange: Any = import_module("numba").prange if find_spec("numba") else range


@dataclass(frozen=True)
class Program:
    """One algorithm, spelled as the users of three libraries spell it.

    * `data(size)` - the arguments: arrays, and Python numbers that are part of the program,
    * `by_numpy(xp, *arguments)` - NumPy's spelling, for a namespace with NumPy's names,
    * `by_jax(jnp, lax, *arguments)` - JAX's, for namespaces with the names of jax.numpy and jax.lax,
    * `by_loops(*arguments)` - loops over elements, which numba compiles; in parallel where they use `prange`,
    * `sizes` - three that are measured; `tiny` is one for tests, where loops run in Python,
    * `tolerance` - by how many units in the last place of the greatest element of a result others may differ from
      NumPy, `unequal` the part of the elements that may differ where they are no floats,
    * `untraceable` - why NumPy's spelling cannot be traced; empty if it can.
    """

    name: str
    data: Callable[[int], tuple[Any, ...]]
    by_numpy: Function
    by_jax: Function
    by_loops: Function
    sizes: tuple[int, int, int]
    tiny: int
    tolerance: float = 1e5
    unequal: float = 0
    untraceable: str = ""


def normal(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    """Normal numbers, the same at each call."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def uniform(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    """Numbers in [0, 1), the same at each call."""
    return np.random.default_rng(seed).random(shape).astype(dtype)


def integers(below: int, *shape: int, seed: int = 0, dtype: str = "int64") -> np.ndarray:
    """Integers in [0, below), the same at each call."""
    return np.random.default_rng(seed).integers(below, size=shape).astype(dtype)


#: Reasons why a spelling cannot be traced.
VALUE_DECIDES = "Python's `if` or `while` needs a value"
VALUE_INDEXES = "the bounds of a slice are values"
VALUE_SHAPES = "the shape of a result depends on values, as of `bincount` and masks"
EACH_ELEMENT = "a Python loop over all elements"
