"""Random windows of every form, against jax.lax and against XLA given our own text, on both backends.

Many cases make one program, so that XLA compiles once.  Windows are small, so that XLA goes through their elements
one by one; how it groups those of large ones is its own affair.  In windows of one dimension it does so in order.  In
windows of several it takes some of them column by column, so what depends on the order (rounding, ties, NaN,
computations that are not associative) is compared in the former only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import jax
import ml_dtypes
import numpy as np
from hypothesis import given, settings, strategies as st
from jax import lax as jlax
from jax._src.lax import windowed_reductions

import xarr
from tests.compare import assert_same
from tests.xla import run_stablehlo
from xarr import lax
from xarr.ir.types import Ints
from xarr.ir.windows import Window
from xarr.runtime.handles import Handle

HostArray = np.ndarray[Any, Any]

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (np.int8, np.int32, np.uint16, np.uint64)
TYPES = (*FLOATS, *INTEGERS, np.bool_, np.complex64)


@dataclass
class Case:
    """A function of lax (ours or that of JAX) and arrays, and the arrays to call it with."""

    function: Callable[..., Any]
    arguments: list[HostArray]
    name: str

    def __repr__(self) -> str:
        shown = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arguments)
        return f"{self.name} of {shown}"


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
        found = Form(
            some(0, 1, 2, 3, 4, 5, 5, 6),
            some(1, 1, 1, 2, 2, 3, 4),
            some(1, 1, 2, 3),
            tuple(
                (random.choice((0, 0, 1, 2, -1, 4)), random.choice((0, 0, 1, 2, -2, 4))) for _ in range(rank)
            ),
            some(1, 1, 1, 2, 3) if dilates else (1,) * rank,
            some(1, 1, 1, 2, 3) if dilates else (1,) * rank,
        )
        if found.is_sane:
            return found


def values(
    random: Random, shape: Ints, dtype: Any, fractions: bool = True, special: bool = False
) -> HostArray:
    """Few distinct numbers, so that there are ties, or fractions, or with infinities, NaN, zeros of both signs."""
    generator = np.random.default_rng(random.getrandbits(32))
    found = np.asarray(generator.integers(-3, 4, shape)).astype(dtype)
    if np.dtype(dtype) in map(np.dtype, FLOATS) and fractions and random.random() < 0.5:
        found = np.asarray(generator.normal(size=shape)).astype(dtype)
        if special:
            odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(dtype)
            found = np.where(generator.random(shape) < 0.3, generator.choice(odd, shape), found)
    return np.asarray(found)


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
    found: dict[str, Callable[..., Any]] = {
        "first": lambda lax, a, b: a,
        "last": lambda lax, a, b: b,
    }
    if dtype in (np.bool_, *INTEGERS):
        found |= {
            "and": lambda lax, a, b: lax.bitwise_and(a, b),
            "or": lambda lax, a, b: lax.bitwise_or(a, b),
            "xor": lambda lax, a, b: lax.bitwise_xor(b, a),
        }
    if dtype is not np.bool_:
        found |= {
            "add": lambda lax, a, b: lax.add(a, b),
            "add twice": lambda lax, a, b: lax.add(lax.add(a, a), b),
            "subtract": lambda lax, a, b: lax.sub(b, a),
        }
    if dtype is not np.complex64:
        found |= {"max": lambda lax, a, b: lax.max(a, b), "min": lambda lax, a, b: lax.min(b, a)}
    if dtype in (*INTEGERS, np.float32, np.float64):
        found |= {"multiply": lambda lax, a, b: lax.mul(a, b)}
    return found


def reduction(random: Random) -> Case:
    spread, dtype = form(random), random.choice(TYPES)
    computations = combiners(dtype)
    name = random.choice([name for name in computations if spread.is_line or name not in ORDERED])
    combine = computations[name]
    padding: Any = spread.padding
    if random.random() < 0.3:
        padding = random.choice(("SAME", "VALID", "SAME_LOWER"))
    initial = np.asarray(random.choice((0, 1, -2))).astype(dtype)

    def function(lax: Any, x: Any, init: Any) -> Any:
        return lax.reduce_window(
            x,
            init,
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
    arguments = [operand, initial]
    return Case(function, arguments, f"{name} with {padding} in {spread}")


def pairs(random: Random) -> Case:
    """Two arrays reduced together: sums, and what stands where the greatest is."""
    spread = form(random)

    def combine(lax: Any, a: Any, b: Any) -> Any:
        keep = lax.ge(a[1], b[1])
        return lax.select(keep, a[0], b[0]), lax.max(a[1], b[1])

    def function(lax: Any, x: Any, y: Any) -> Any:
        found = lax.reduce_window(
            (x, y),
            (np.float32(7), np.int32(-2)),
            lambda a, b: combine(lax, a, b),
            spread.sizes,
            spread.strides,
            spread.padding,
            spread.base,
            spread.holes,
        )
        return lax.add(found[0], lax.convert_element_type(found[1], np.float32))

    keys = distinct(random, spread.shape, np.int32)
    if spread.is_line:
        keys = values(random, spread.shape, np.int32)
    arguments = [values(random, spread.shape, np.float32), keys]
    return Case(function, arguments, f"pairs in {spread}")


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


def choice(random: Random) -> Case:
    spread, dtype = form(random, dilates=False), random.choice((*FLOATS, np.int8, np.int32))
    name, other = random.choice(tuple(SELECTS)), random.choice(tuple(SCATTERS))
    if not spread.is_line:
        dtype = random.choice((np.float16, np.float32, np.float64, np.int32))
        name, other = random.choice(("ge", "gt", "le")), random.choice(("add", "max"))
    initial = np.asarray(random.choice((0, 1, -2))).astype(dtype)

    def function(lax: Any, operand: Any, source: Any, init: Any) -> Any:
        scatter = lax.select_and_scatter if lax is not jlax else windowed_reductions._select_and_scatter
        return scatter(
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
    arguments = [operand, source, initial]
    return Case(function, arguments, f"{other} where {name} in {spread}")


def by_jax(cases: list[Case]) -> list[HostArray]:
    def all_of_them(arguments: list[list[Any]]) -> list[Any]:
        return [case.function(jlax, *each) for case, each in zip(cases, arguments, strict=True)]

    return [np.asarray(value) for value in jax.jit(all_of_them)([case.arguments for case in cases])]


def by_text(cases: list[Case]) -> list[HostArray]:
    together = [argument for case in cases for argument in case.arguments]

    def all_of_them(*arrays: Any) -> list[Any]:
        rest = iter(arrays)
        return [case.function(lax, *[next(rest) for _ in case.arguments]) for case in cases]

    return run_stablehlo(xarr.lower(all_of_them, *together).graph.to_text(), *together)


def check(cases: list[Case], expected: list[HostArray]) -> None:
    for case, wanted in zip(cases, expected, strict=True):
        for name in ("numpy", "reference"):
            with xarr.use_backend(name):
                found = case.function(lax, *map(xarr.asarray, case.arguments))
                assert isinstance(found, Handle)
                try:
                    assert_same(found, wanted)
                except AssertionError as error:
                    raise AssertionError(
                        f"{name} and XLA differ: {case}\n{case.arguments}\n{error}"
                    ) from None


RANDOMS = st.integers(0, 2**32).map(Random)


@settings(max_examples=6)
@given(st.lists(RANDOMS.map(reduction), min_size=50, max_size=50))
def test_reduced_windows_as_jax(cases: list[Case]) -> None:
    check(cases, by_jax(cases))


@settings(max_examples=5)
@given(st.lists(RANDOMS.map(choice), min_size=50, max_size=50))
def test_choices_as_jax(cases: list[Case]) -> None:
    check(cases, by_jax(cases))


@settings(max_examples=4)
@given(st.lists(RANDOMS.map(pairs), min_size=30, max_size=30))
def test_pairs_as_jax(cases: list[Case]) -> None:
    check(cases, by_jax(cases))


@settings(max_examples=2)
@given(
    st.lists(RANDOMS.map(reduction), min_size=30, max_size=30),
    st.lists(RANDOMS.map(choice), min_size=30, max_size=30),
)
def test_our_text_run_by_xla(reductions: list[Case], choices: list[Case]) -> None:
    check(reductions + choices, by_text(reductions + choices))
