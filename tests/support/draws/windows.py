"""Random windows of every form: reductions of one array or two, and windows that choose where numbers go.

Windows are small, so that XLA goes through their elements one by one; how it groups those of large ones is its own
affair.  In windows of one dimension it does so in order.  In windows of several it takes some of them column by
column, so what depends on the order (rounding, ties, NaN, computations that are not associative) is compared in the
former only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any, Final

import ml_dtypes
import numpy as np

from tests.support.fuzz import Draw, Drawn, HostArray
from xarr.ir.types import Ints
from xarr.ir.windows import Window

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (np.int8, np.int32, np.uint16, np.uint64)
TYPES = (*FLOATS, *INTEGERS, np.bool_, np.complex64)


@dataclass
class Form:
    """The shape of an operand and windows over it."""

    shape: Ints
    sizes: Ints
    strides: Ints
    padding: tuple[tuple[int, int], ...]
    base: Ints
    holes: Ints

    @property
    def window(self) -> Window:
        return Window.of(self.sizes, self.strides, self.padding, self.base, self.holes)

    @property
    def is_line(self) -> bool:
        """Whether a window has one dimension, so that there is but one order."""
        return sum(size > 1 for size in self.sizes) < 2

    @property
    def is_sane(self) -> bool:
        """Whether XLA takes it: it crashes where padding cuts off more than there is, or cuts off from windows of 1."""
        rows = zip(self.window.dimensions, self.shape, strict=True)
        if self.window.size == 1 and any(side < 0 for pair in self.padding for side in pair):
            return False
        return self.window.size <= 32 and all(each.padded_size(size) >= 0 for each, size in rows)


def form(random: Random, dilates: bool = True) -> Form:
    rank = random.randint(1, 4)

    def some(*choices: int) -> Ints:
        return tuple(random.choice(choices) for _ in range(rank))

    while True:
        drawn = Form(
            some(0, 1, 2, 3, 4, 5, 5, 6),
            some(1, 1, 1, 2, 2, 3, 4),
            some(1, 1, 2, 3),
            tuple(
                (random.choice((0, 0, 1, 2, -1, 4)), random.choice((0, 0, 1, 2, -2, 4))) for _ in range(rank)
            ),
            some(1, 1, 1, 2, 3) if dilates else (1,) * rank,
            some(1, 1, 1, 2, 3) if dilates else (1,) * rank,
        )
        if drawn.is_sane:
            return drawn


def values(
    random: Random, shape: Ints, dtype: Any, fractions: bool = True, special: bool = False
) -> HostArray:
    """Few distinct numbers, so that there are ties, or fractions, or with infinities, NaN, zeros of both signs."""
    generator = np.random.default_rng(random.getrandbits(32))
    numbers = np.asarray(generator.integers(-3, 4, shape)).astype(dtype)
    if np.dtype(dtype) in map(np.dtype, FLOATS) and fractions and random.random() < 0.5:
        numbers = np.asarray(generator.normal(size=shape)).astype(dtype)
        if special:
            odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(dtype)
            numbers = np.where(generator.random(shape) < 0.3, generator.choice(odd, shape), numbers)
    return np.asarray(numbers)


def distinct(random: Random, shape: Ints, dtype: Any) -> HostArray:
    """Whole numbers in any order, each once."""
    generator = np.random.default_rng(random.getrandbits(32))
    return np.asarray(generator.permutation(prod(shape)).reshape(shape)).astype(dtype)


def powers(random: Random, shape: Ints, dtype: Any) -> HostArray:
    """Numbers whose products are exact."""
    generator = np.random.default_rng(random.getrandbits(32))
    return np.asarray(generator.choice([-2, -1, 1, 2, 0.5], shape)).astype(dtype)


#: Computations whose result depends on the order of the elements.
ORDERED = ("add twice", "subtract")


def combiners(dtype: Any) -> dict[str, Callable[..., Any]]:
    """Computations on (lax, a, b) that the element type allows."""
    computations: dict[str, Callable[..., Any]] = {
        "first": lambda lax, a, b: a,
        "last": lambda lax, a, b: b,
    }
    if dtype in (np.bool_, *INTEGERS):
        computations |= {
            "and": lambda lax, a, b: lax.bitwise_and(a, b),
            "or": lambda lax, a, b: lax.bitwise_or(a, b),
            "xor": lambda lax, a, b: lax.bitwise_xor(b, a),
        }
    if dtype is not np.bool_:
        computations |= {
            "add": lambda lax, a, b: lax.add(a, b),
            "add twice": lambda lax, a, b: lax.add(lax.add(a, a), b),
            "subtract": lambda lax, a, b: lax.sub(b, a),
        }
    if dtype is not np.complex64:
        computations |= {"max": lambda lax, a, b: lax.max(a, b), "min": lambda lax, a, b: lax.min(b, a)}
    if dtype in (*INTEGERS, np.float32, np.float64):
        computations |= {"multiply": lambda lax, a, b: lax.mul(a, b)}
    return computations


def reduction(random: Random) -> Drawn:
    spread, dtype = form(random), random.choice(TYPES)
    computations = combiners(dtype)
    name = random.choice([name for name in computations if spread.is_line or name not in ORDERED])
    combine = computations[name]
    padding: Any = spread.padding
    if random.random() < 0.3:
        padding = random.choice(("SAME", "VALID", "SAME_LOWER"))
    initial = np.asarray(random.choice((0, 1, -2))).astype(dtype)

    def call(lax: Any, a: tuple[Any, ...]) -> Any:
        return lax.reduce_window(
            *a,
            lambda a, b: combine(lax, a, b),
            spread.sizes,
            spread.strides,
            padding,
            spread.base,
            spread.holes,
        )

    operand = values(random, spread.shape, dtype, spread.is_line)
    if name in ("max", "min", "first", "last"):
        operand = values(random, spread.shape, dtype, special=True)
    if name == "multiply" and not spread.is_line:
        operand = powers(random, spread.shape, dtype)
    return Drawn(call, (operand, initial), name=f"{name} with {padding} in {spread}")


def pairs(random: Random) -> Drawn:
    """Two arrays reduced together: sums, and what stands where the greatest is."""
    spread = form(random)

    def combine(lax: Any, a: Any, b: Any) -> Any:
        keep = lax.ge(a[1], b[1])
        return lax.select(keep, a[0], b[0]), lax.max(a[1], b[1])

    def call(lax: Any, a: tuple[Any, ...]) -> Any:
        results = lax.reduce_window(
            a,
            (np.float32(7), np.int32(-2)),
            lambda a, b: combine(lax, a, b),
            spread.sizes,
            spread.strides,
            spread.padding,
            spread.base,
            spread.holes,
        )
        return lax.add(results[0], lax.convert_element_type(results[1], np.float32))

    keys = distinct(random, spread.shape, np.int32)
    if spread.is_line:
        keys = values(random, spread.shape, np.int32)
    return Drawn(call, (values(random, spread.shape, np.float32), keys), name=f"pairs in {spread}")


SELECTS: dict[str, Callable[..., Any]] = {
    "ge": lambda lax, a, b: lax.ge(a, b),
    "gt": lambda lax, a, b: lax.gt(a, b),
    "le": lambda lax, a, b: lax.le(a, b),
    "the last": lambda lax, a, b: lax.ne(a, a),
    "close": lambda lax, a, b: lax.lt(lax.abs(lax.sub(a, b)), lax.abs(a)),
}
SCATTERS: dict[str, Callable[..., Any]] = {
    "add": lambda lax, a, b: lax.add(a, b),
    "max": lambda lax, a, b: lax.max(a, b),
    "add twice": lambda lax, a, b: lax.add(lax.add(a, a), b),
    "replace": lambda lax, a, b: b,
}


def choice(random: Random) -> Drawn:
    spread, dtype = form(random, dilates=False), random.choice((*FLOATS, np.int8, np.int32))
    name, other = random.choice(tuple(SELECTS)), random.choice(tuple(SCATTERS))
    if not spread.is_line:
        dtype = random.choice((np.float16, np.float32, np.float64, np.int32))
        name, other = random.choice(("ge", "gt", "le")), random.choice(("add", "max"))
    initial = np.asarray(random.choice((0, 1, -2))).astype(dtype)

    def call(lax: Any, a: tuple[Any, ...]) -> Any:
        operand, source, init = a
        return lax.select_and_scatter(
            operand,
            lambda a, b: SELECTS[name](lax, a, b),
            spread.sizes,
            spread.strides,
            spread.padding,
            source,
            init,
            lambda a, b: SCATTERS[other](lax, a, b),
        )

    source = values(random, spread.window.output_shape(spread.shape), dtype, spread.is_line)
    operand = distinct(random, spread.shape, dtype)
    if spread.is_line:
        operand = values(random, spread.shape, dtype, special=True)
    return Drawn(call, (operand, source, initial), name=f"{other} where {name} in {spread}")


DRAWS: Final[dict[str, Draw]] = {
    "ReduceWindow": reduction,
    "ReduceWindow of pairs": pairs,
    "SelectAndScatter": choice,
}
