"""A row of the GPU's table: a program, its arrays, and the way in which others write it.

A program is written once for xarr and JAX, as a function of their namespaces (`xp` and `lax`), which returns the
function of arrays.  Arrays are described, and made where something runs: a description of what runs needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

import xarr

Function = Callable[..., Any]
Program = Callable[[Any, Any], Function]
#: The function of arrays of a module: CuPy, with NumPy's names, or PyTorch.
Spelling = Callable[[Any], Function]

#: Random numbers of a large array, which repeat.
_DRAWN = 2**22
FLOATS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Input:
    """An array: normal numbers, or integers from 0 on that are `below` a number."""

    shape: tuple[int, ...]
    dtype: str
    below: int = 0

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * xarr.dtype(self.dtype).itemsize

    def make(self, seed: int) -> np.ndarray:
        draw, size = np.random.default_rng(seed), prod(self.shape)
        count = min(size, _DRAWN)
        few = draw.integers(0, self.below, count) if self.below else draw.normal(size=count)
        return np.resize(few.astype(xarr.dtype(self.dtype)), self.shape)


@dataclass(frozen=True)
class Case:
    """A program at one size.

    * `inputs` - its arrays,
    * `by_cupy` - who -> what a user of CuPy writes: `cupy` as it comes to mind, `cupy best` as fast as it gets; the
      first is what the results of the others are compared with; empty where there is nothing to compare with,
    * `by_torch`, `by_jax` - the function of PyTorch, and of the module jax where it is not the program itself,
    * `flops` - of a product, by which it is compared with the rate of matrix products,
    * `nbytes` - the least that must be read and written where it is not all inputs and results, each once,
    * `most_bytes` - what arrays between take in the worst of the spellings, besides inputs and results.
    """

    program: Program
    inputs: tuple[Input, ...]
    by_cupy: Mapping[str, Spelling] = field(default_factory=dict)
    by_torch: Spelling | None = None
    by_jax: Spelling | None = None
    flops: int = 0
    nbytes: int = 0
    most_bytes: int = 0


@dataclass(frozen=True)
class Row:
    """A line of the table for each dtype.

    * `case(dtype, *size)` - the program; `size` is what is measured, `small` what a test runs,
    * `kernels` - how many the device should need, kernels and calls of libraries,
    * `share` - of the copy bandwidth that is wanted, None where none is,
    * `tolerance` - units in the last place of float32 of the greatest element by which results may differ,
    * `deterministic` - the setting of that name,
    * `iterations` - how often a loop of the program runs, whose kernels count once each time,
    * `unequal` - the part of a result of integers that may differ.
    """

    letter: str
    name: str
    case: Callable[..., Case]
    size: tuple[int, ...]
    small: tuple[int, ...]
    kernels: int = 1
    share: float | None = None
    dtypes: tuple[str, ...] = FLOATS
    tolerance: float = 64
    deterministic: bool = True
    iterations: int = 0
    unequal: float = 0

    @property
    def title(self) -> str:
        """The name with its letter, as tables have it."""
        return f"({self.letter}) {self.name}"


def fuse(cp: Any, function: Function) -> Function:
    """`cupy.fuse` of an element-wise function; NumPy has no such thing."""
    # CuPy's own name for the kernel of a lambda is none of C++.
    made: Function = cp.fuse(kernel_name="fused")(function) if hasattr(cp, "fuse") else function
    return made


def arrays_of(inputs: tuple[Input, ...]) -> list[np.ndarray]:
    """Arrays of the host for the inputs, the same at each call."""
    return [each.make(seed) for seed, each in enumerate(inputs)]
