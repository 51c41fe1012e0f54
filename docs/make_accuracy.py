"""Write `docs/accuracy.md` from the table of bounds that the tests use: `python docs/make_accuracy.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = CHECKOUT / "docs" / "accuracy.md"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

from tests.ulp_bounds import APART, BOUNDS, DIFFERENCES, EXTREMES, REASONS, Bound, Difference  # noqa: E402

_HEAD: Final = """\
# Accuracy beside XLA

<!-- Written by docs/make_accuracy.py from tests/ulp_bounds.py: change that and run the script. -->

Every function of `xarr.lax` that `jax.lax` has is tested against it, on XLA for the CPU, with the same
arguments. Integers, bools, comparisons, conversions and all data movement agree to the bit, and so do the
float operations that IEEE 754 defines exactly: `add`, `sub`, `mul`, `div`, `rem`, `sqrt`, `floor`, `ceil`,
`round`, `max`, `min`, `integer_pow`, `reduce_precision` and their like.

For the others this table says how large the error of each side is, and how far apart the tests let them be.
"Error" is the largest distance to the exact result that was found, in units in the last place (ULP) of the
exact result, on every value of the 16-bit types, 80,000 values of float32 and float64, and 2,100 of the
complex types, whose errors are measured against the larger part. Errors of `digamma` and `lgamma`, whose
terms cancel near their zeros, are measured against the larger of the result and 1. The exact result came
from the next longer type or, for complex numbers and special functions, from mpmath with 60 and 33 digits.
Measured with NumPy 2.4 (AVX2) and jaxlib 0.10.2 on glibc 2.36; other processors and C libraries differ a
little. Results near or below the smallest normal number are left aside here, see the next section.
"""

_DIFFERENCES: Final = """\
## Where XLA is not followed

**Subnormal numbers.** XLA for the CPU reads a subnormal operand as zero and writes zero for a subnormal
result, for bfloat16, float32, float64 and the complex types. xarr keeps them, as IEEE 754 says. The tests
compare such results with XLA's in float64, where they are not subnormal, rounded once.

**Rounding once.** From float64 and 64-bit integers to float16, bfloat16 and float8, XLA goes by way of
float32 and so rounds twice. xarr rounds once.

**Special values.** The tests check that XLA still differs in each row, and that it agrees everywhere else.
"""

_EXTREMES: Final = """\
**Extremes of complex numbers.** On a grid of all pairs of huge, tiny, subnormal and special parts, the NumPy
backend gives what the reference gives, and XLA too but for subnormal numbers, the rows above and these. Of
`mul`, `div` and `pow`, which compute with products of parts, a result may be infinite or NaN in both backends
and XLA where the exact one is finite in a part; which one depends on whether the processor fuses products and
sums, so these are compared between backends only: where one result is infinite, so is the other.
"""

_APART: Final = """\
## Random numbers

For the same key, integers and bits are those of `jax.random`, and so are the counts of `poisson`, `binomial`,
`multinomial` and `geometric`. `uniform` has the same bits too; `normal`, `exponential`, `gumbel` and what else is one
function of one uniform number lie within 2 ULP of the larger of the number and 1, but for `lognormal`, `pareto`,
`logistic`, `triangular` (4), `weibull_min` (6) and `cauchy` (8). These are made of several, and may
lie further apart, in the same ULP. "Found" is the largest distance among 120 (of vectors) to 15,000 numbers of
float32 and as many of float64. Which candidates are accepted, and so which random bits are used, was the same in
all of them.
"""

_WALD: Final = """\
`wald` subtracts terms of the size of the mean's square. With a mean of 0.1 to 30 its numbers lay within 3,300 such
ULP of JAX's, which loses the same digits; the tests allow 64 times the largest mean's square.
"""

_ACCEPTED: Final = """\
## What only one side accepts

xarr accepts what StableHLO defines and `jax.lax` refuses: `add`, `mul` of bools, `pow` of integers, `real`
and `imag` of real numbers. It refuses, with a labelled error, what XLA has no operation for and `jax.lax`
makes up: `clamp` and `atan2` of complex numbers, the total orders of integers, a `broadcast_in_dim` that
permutes, slices with too few limits.
"""


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    return "\n".join([_row(header), _row("---" for _ in header), *map(_row, rows)]) + "\n"


def _bound(row: Bound) -> tuple[object, ...]:
    reason = REASONS.get((row.function, row.dtype), "")
    tested = f"{row.tested} ULP" if row.tested else "same bits"
    return f"`{row.function}`", row.dtype, f"{row.xarr:.2f}", f"{row.xla:.2f}", tested, reason


def _difference(row: Difference) -> tuple[object, ...]:
    functions = ", ".join(f"`{name}`" for name in row.functions)
    return functions, ", ".join(row.dtypes), row.condition, row.xarr, row.xla, row.reason


def page() -> str:
    """The whole page."""
    header = ("function", "dtype", "error of xarr", "error of XLA", "tested to", "why so far")
    bounds = table(header, [_bound(row) for row in BOUNDS])
    header = ("functions", "dtypes", "where", "xarr", "XLA", "why")
    stated = table(header, [_difference(row) for row in DIFFERENCES])
    extremes = table(header, [_difference(row) for row in EXTREMES])
    drawn = table(
        ("function", "found", "tested to", "why"),
        [(f"`{row.function}`", row.largest, f"{row.tested} ULP", row.reason) for row in APART],
    )
    return "\n".join(
        [_HEAD, bounds, _DIFFERENCES, stated, _EXTREMES, extremes, _APART, drawn, _WALD, _ACCEPTED]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
