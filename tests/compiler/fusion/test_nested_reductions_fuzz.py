"""Random programs of reductions inside of reductions: compiled loops give what separate operations give.

All arrays of a program have the rank of its operands, and sizes that broadcast.  In exact programs they hold small
whole numbers, of which sums and products are the same in any order; in the others, positive numbers that no
operation subtracts, so that an error stays a few roundings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.support import fuzz
from xarr import lax
from xarr.base.configuration import current as config

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

HostArray = np.ndarray[Any, Any]
LENGTHS: Final = (1, 3, 16, 17, 33, 100)
#: Elements of an operand at most.
MOST: Final = 20_000
#: Up to here, whole numbers are exact; integers wrap around, and bools have no sums.
LARGEST: Final = {
    **{"bool": 1, "int8": 2**60, "int32": 2**60, "int64": 2**60},
    **{"bfloat16": 2**8, "float16": 2**11, "float32": 2**24, "float64": 2**53, "complex64": 2**24},
}
FLOATS: Final = ("bfloat16", "float16", "float32", "float64")


@dataclass(frozen=True)
class Term:
    """An array, and a number that none of its elements exceeds in size."""

    array: Any
    bound: int = 1


@dataclass
class Draws:
    """Operations on terms of one dtype, drawn at random.

    results: what else a program may return.
    last: the axes of the last reduction, which others often have too, so that one comes to lie inside of another.
    """

    random: Random
    dtype: str
    results: list[Any] = field(default_factory=list)
    last: tuple[int, ...] = ()

    def axes(self, term: Term) -> tuple[int, ...]:
        """Some axes of a term, seldom one of length 1."""
        shape = term.array.shape
        if self.last and self.random.random() < 0.6:
            return self.last
        long = [axis for axis, size in enumerate(shape) if size > 1]
        if not long or self.random.random() < 0.1:
            long = list(range(len(shape)))
        count = self.random.choice([1, 1, 1, len(long)])
        self.last = tuple(sorted(self.random.sample(long, count)))
        return self.last

    def reduce_along(self, term: Term, reduce: Callable[..., Any], axes: tuple[int, ...], bound: int) -> Term:
        """A reduction along axes, which it keeps or which come back as axes of length 1."""
        if self.random.random() < 0.5:
            array = reduce(term.array, axis=axes, keepdims=True)
        else:
            array = reduce(term.array, axis=axes)
            self.results.append(array)
            array = xarr.expand_dims(array, axes)
        return Term(array, bound)

    def shrink(self, term: Term) -> Term:
        """A term made of another one's elements whose elements are of size 1 at most."""
        x = term.array
        if self.dtype == "bool":
            return term
        if self.dtype == "complex64":
            return Term(
                xarr.where(xarr.real(x) > 0, xarr.asarray(1, dtype=x.dtype), xarr.asarray(1j, dtype=x.dtype))
            )
        return Term(self.random.choice([xarr.sign, lambda x: xarr.clip(x, -1, 1), lambda x: x % 3 - 1])(x))

    def reduce_whole(self, term: Term) -> Term:
        """A reduction of whole numbers."""
        axes = self.axes(term)
        count = prod(term.array.shape[axis] for axis in axes)
        kinds = ["sum", "sum", "prod", "any", "first"]
        if self.dtype != "complex64":
            kinds += ["max", "min", "argmax", "argmin", "norm", "pair"]
        kind = self.random.choice(kinds)
        if kind in ("prod", "norm") or term.bound * count > LARGEST[self.dtype]:
            term = self.shrink(term)
        bound = term.bound
        if self.dtype == "bool" and kind in ("sum", "prod", "norm"):
            kind = "all"
        match kind:
            case "sum":
                if count > LARGEST[self.dtype]:
                    return term
                return self.reduce_along(
                    term, lambda x, **o: xarr.sum(x, dtype=x.dtype, **o), axes, bound * count
                )
            case "prod":
                return self.reduce_along(term, lambda x, **o: xarr.prod(x, dtype=x.dtype, **o), axes, 1)
            case "norm":
                if count > LARGEST[self.dtype]:
                    return term
                return self.reduce_along(
                    term, lambda x, **o: xarr.sum(x * x, dtype=x.dtype, **o), axes, count
                )
            case "any" | "all":
                function = getattr(xarr, kind)
                flags = term if self.dtype == "bool" else Term(term.array != 0)
                return self.from_flags(self.reduce_along(flags, function, axes, 1))
            case "argmax" | "argmin":
                function, axis = getattr(xarr, kind), axes[0]
                index = function(term.array, axis=axis, keepdims=True)
                self.results.append(index)
                return self.from_flags(Term(index % 2 == 1))
            case "first" | "pair":
                return self.reduce_in_order(term, kind, axes)
            case _:
                return self.reduce_along(term, getattr(xarr, kind), axes, bound)

    def from_flags(self, term: Term) -> Term:
        """Bools as 0 and 1."""
        return Term(term.array.astype(self.dtype))

    def reduce_in_order(self, term: Term, kind: str, axes: tuple[int, ...]) -> Term:
        """A reduction by a function that does not commute."""
        x = term.array
        zero = xarr.zeros((), dtype=x.dtype)
        if kind == "first":
            nought = (lambda a: ~a) if self.dtype == "bool" else (lambda a: a == 0)
            array = lax.reduce(x, zero, lambda a, b: xarr.where(nought(a), b, a), axes)
        else:
            index = xarr.broadcast_to(
                xarr.expand_dims(
                    xarr.arange(x.shape[axes[0]], dtype="int32"), tuple(range(1, x.ndim - axes[0]))
                ),
                x.shape,
            )

            def later(a: Any, b: Any) -> Any:
                larger = (b[0] >= a[0]) if self.dtype != "bool" else (b[0] | ~a[0])
                return xarr.where(larger, b[0], a[0]), xarr.where(larger, b[1], a[1])

            least = xarr.asarray(False if self.dtype == "bool" else -100, dtype=x.dtype)
            array, position = lax.reduce((x, index), (least, xarr.asarray(-1, dtype="int32")), later, axes)
            self.results.append(position)
            return Term(xarr.expand_dims(array, axes), max(term.bound, 100))
        return Term(xarr.expand_dims(array, axes), term.bound)

    def combine_whole(self, one: Term, other: Term) -> Term:
        """An operation on the whole numbers of two terms."""
        x, y = one.array, other.array
        if self.dtype == "bool":
            return Term(self.random.choice([lambda: x & y, lambda: x | y, lambda: x ^ y, lambda: ~x])())
        if one.bound * other.bound > LARGEST[self.dtype] or one.bound + other.bound > LARGEST[self.dtype]:
            one, other = self.shrink(one), self.shrink(other)
            x, y = one.array, other.array
        choices = [
            lambda: Term(x + y, one.bound + other.bound),
            lambda: Term(x - y, one.bound + other.bound),
            lambda: Term(x * y, one.bound * other.bound),
            lambda: Term(-x, one.bound),
            lambda: Term(xarr.where(x == y, x, -x), one.bound),
        ]
        if self.dtype != "complex64":
            choices += [
                lambda: Term(xarr.maximum(x, y), max(one.bound, other.bound)),
                lambda: Term(xarr.where(x > y, x, y), max(one.bound, other.bound)),
                lambda: Term(xarr.abs(x), one.bound),
            ]
        return self.random.choice(choices)()

    def reduce_positive(self, term: Term) -> Term:
        """A reduction of positive numbers, whose results are about as large."""
        axes = self.axes(term)
        count = prod(term.array.shape[axis] for axis in axes)
        functions: list[Callable[..., Any]] = [
            xarr.mean,
            xarr.max,
            xarr.min,
            lambda x, **o: xarr.sum(x, **o) / count,
            lambda x, **o: xarr.sqrt(xarr.sum(x * x / count, **o)),
            lambda x, **o: xarr.prod(1 + x / (8 * count), **o),
        ]
        return self.reduce_along(term, self.random.choice(functions), axes, 1)

    def combine_positive(self, one: Term, other: Term) -> Term:
        """An operation on the positive numbers of two terms, whose results are about as large."""
        x, y = one.array, other.array
        functions: list[Callable[[], Any]] = [
            *(lambda: (x + y) / 2, lambda: x / (x + y), lambda: xarr.sqrt(x * y), lambda: xarr.maximum(x, y)),
            *(lambda: xarr.exp(x / (x + y)) / 2, lambda: x / xarr.max(x, axis=-1, keepdims=True)),
        ]
        return Term(self.random.choice(functions)())


def program(random: Random, dtype: str, exact: bool) -> Callable[..., tuple[Any, ...]]:
    """A function of two arrays that broadcast; each call of it draws the operations anew, which are the same."""
    state = random.getstate()

    def function(*arrays: Any) -> tuple[Any, ...]:
        random.setstate(state)
        draws = Draws(random, dtype)
        reduce = draws.reduce_whole if exact else draws.reduce_positive
        combine = draws.combine_whole if exact else draws.combine_positive
        terms = [Term(array) for array in arrays]
        for _ in range(random.randint(3, 9)):
            near = terms[-3:] if random.random() < 0.7 else terms
            kind = random.random()
            if kind < 0.3:
                terms.append(reduce(random.choice(near)))
            elif kind < 0.5:
                terms.append(combine(random.choice(near), random.choice(terms)))
            else:  # an operand beside its reduction, and what is reduced of both
                source = random.choice([*terms[:1], *near])
                inner = reduce(source)
                terms += [inner, reduce(combine(source, inner))]
        most = random.choice([MOST, arrays[0].size // 2])
        others = [term.array for term in terms[2:-1] if term.array.size <= most]
        wanted = [terms[-1].array, *random.sample(others, min(len(others), random.randint(0, 2)))]
        return (*wanted, *random.sample(draws.results, min(len(draws.results), random.randint(0, 2))))

    return function


def operands(random: Random, dtype: str, exact: bool) -> list[Any]:
    """Two arrays of one rank; the second may have length 1 where the first has not."""
    shape = [random.choice(LENGTHS) for _ in range(random.choice([1, 2, 2, 2, 3, 3]))]
    while prod(shape) > MOST:
        shape[shape.index(max(shape))] = random.choice(LENGTHS)
    other = [size if random.random() < 0.7 else 1 for size in shape]
    generator = np.random.default_rng(random.getrandbits(32))
    drawn: list[HostArray] = []
    for each in (shape, other):
        if not exact:
            drawn.append(generator.uniform(0.5, 2, each))
        elif dtype == "complex64":
            drawn.append(1j ** generator.integers(0, 4, each))
        elif dtype == "bool":
            drawn.append(generator.random(each) < random.choice([0.03, 0.5, 0.97]))
        else:
            drawn.append(generator.integers(-1, 2, each) * (generator.random(each) < random.choice([0.1, 1])))
    return [xarr.asarray(np.asarray(each), dtype=dtype) for each in drawn]


def check(name: str, seed: int, exact: bool) -> None:
    """Raise AssertionError unless compiled loops give what separate operations give."""
    random = fuzz.generator(name, seed)
    dtype = random.choice(list(LARGEST) if exact else FLOATS)
    arrays = operands(random, dtype, exact)
    function = program(random, dtype, exact)
    with config(fusion="off"):
        wanted = [np.asarray(each) for each in xarr.jit(function)(*arrays)]
    with fuzz.showing(lambda: str(xarr.lower(function, *arrays).stage("traced"))):
        with config(fusion="compiled"):
            results = [np.asarray(each) for each in xarr.jit(function)(*arrays)]
        for mine, theirs in zip(results, wanted, strict=True):
            assert mine.dtype == theirs.dtype
            if exact:
                np.testing.assert_array_equal(mine, theirs)
            else:
                # Of a product of 20,000 numbers the errors come to some 150 roundings; it may be squared.
                limit = 400 * float(xarr.finfo(dtype).eps)
                one, other = mine.astype(float), theirs.astype(float)
                np.testing.assert_allclose(one, other, rtol=limit, atol=0)


@pytest.mark.parametrize("seed", fuzz.seeds(12, 1500))
def test_whole_numbers_are_the_same(seed: int) -> None:
    check("nested reductions", seed, exact=True)


@pytest.mark.parametrize("seed", [226, 662, 845, 905])
def test_the_last_element_of_an_odd_number_has_inner_reductions_of_its_own(seed: int) -> None:
    """Programs that had those of the loop over the other elements, where they were not known."""
    check("nested reductions", seed, exact=True)


@pytest.mark.parametrize("seed", fuzz.seeds(6, 500))
def test_positive_numbers_are_close(seed: int) -> None:
    check("nested reductions of floats", seed, exact=False)
