"""The fields of a record of `tests/elementwise_ops.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class InLoops:
    """The distance of compiled loops from the exact results, and the bounds that the tests hold them to, in ULP.

    Measured on every 67th float32 (64 million values) against float64, and on some 10**6 float64 against numbers
    of 64 bits or mpmath; subnormal results in units of the smallest number.  The bounds leave room for values that
    were not tried.  No instruction depends on the machine, so the errors do not either.
    """

    float32: float
    float64: float
    tested32: float = 2.0
    tested64: float = 2.0

    @property
    def is_exact(self) -> bool:
        """Whether every result is the number next to the exact one."""
        return self.tested64 <= 0.5


@dataclass(frozen=True)
class Record:
    """One function.

    beside_xla: by element type the largest errors of xarr and of XLA, and how many ULP apart the tests let them be;
    `tests/ulp_bounds.py` says how they were measured.  What is not listed agrees to the bit.
    reasons: why a bound is large, by element type.
    in_loops, exact: the errors of compiled loops, and the function in a longer type that they are measured against.
    exact_of_float64: the same for float64, where no longer type has the function.
    special: operands and results of compiled loops.
    keeps_subnormals: whether the function of subnormal numbers is XLA's in float64, rounded.
    positive: whether random operands are positive.
    in_annex_g: whether C99 lists its special values in Annex G.
    against_one: whether its errors are measured in units of the larger of the result and 1.
    """

    beside_xla: Mapping[str, tuple[float, float, int]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    in_loops: InLoops | None = None
    exact: Callable[..., Array] | None = None
    exact_of_float64: Callable[[Array], Array] | None = None
    special: tuple[list[float], list[float]] | None = None
    keeps_subnormals: bool = False
    positive: bool = False
    in_annex_g: bool = False
    against_one: bool = False
