"""Generators of random numbers: how each makes a key of a seed, keys of a key, and bits of a key.

Numbers are terms of uint32, element by element; the words of a key are a tuple of them.
Source of all rules: jax.random's generators of the same names, and Salmon et al. (2011).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import reduce
from itertools import starmap
from operator import xor
from typing import Final

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.ir.ops.ciphers import (
    U32,
    Pair,
    join_words,
    philox2x32,
    philox4x32,
    threefry2x32,
    threefry4x32,
    threefry_bits,
    words,
)
from xarr.ir.ops.formula import Term, fill
from xarr.ir.ops.random import philox_words

Words = tuple[Term, ...]


@record
class PRNG(ABC):
    """One generator.

    name: as `impl=` takes it; tag: in the name of its keys' element type; size: how many words a key has.
    """

    name: str
    tag: str
    size: int

    @abstractmethod
    def seed(self, high: Term, low: Term) -> Words:
        """A key of the words of a 64-bit seed."""

    @abstractmethod
    def split(self, key: Words, number: Pair) -> Words:
        """The key of this number, a high and a low word, among those that `random.split` makes."""

    @abstractmethod
    def fold_in(self, key: Words, data: Term) -> Words:
        """A key of a key and one word."""

    @abstractmethod
    def bits(self, key: Words, number: Pair, width: int) -> Term:
        """Random bits of the element of this row-major number, as the unsigned type of this width."""

    @property
    def is_one_stream(self) -> bool:
        """Whether an array of bits is `lax.rng_bit_generator`'s, with the key as state; `bits` is of its start."""
        return False


@record
class _CipherPRNG(PRNG):
    """Encrypts counters of `block` words; further words of a counter tell keys and bits apart."""

    block: int
    encrypt: Callable[[Words, Words], Words]

    def seed(self, high: Term, low: Term) -> Words:
        zero = _zero(low)
        counter = (high, low, *[zero] * (self.block - 2))
        return self.encrypt((zero,) * self.size, counter)[: self.size]

    def split(self, key: Words, number: Pair) -> Words:
        return self.encrypt(key, (*[_zero(key[0])] * (self.block - 2), *number))[: self.size]

    def fold_in(self, key: Words, data: Term) -> Words:
        return self.split(key, (_zero(data), data))

    def bits(self, key: Words, number: Pair, width: int) -> Term:
        drawn = self.encrypt(key, (*number, *[_zero(key[0])] * (self.block - 2)))
        return join_words(*self.wide(drawn)) if width == 64 else _narrow(reduce(xor, drawn), width)

    def wide(self, drawn: Words) -> Pair:
        """The halves of 64 bits."""
        return drawn[0], drawn[1]


class _Threefry2x32(_CipherPRNG):
    def seed(self, high: Term, low: Term) -> Words:
        return high, low

    def bits(self, key: Words, number: Pair, width: int) -> Term:
        drawn = threefry_bits("joined" if width == 64 else "xor", (key[0], key[1]), number)
        return drawn if width == 64 else _narrow(drawn, width)


class _Threefry4x32(_CipherPRNG):
    def seed(self, high: Term, low: Term) -> Words:
        zero = _zero(low)
        return self.encrypt((high, low, zero, zero), (zero,) * 4)

    def wide(self, drawn: Words) -> Pair:
        first, second, third, fourth = drawn
        return first ^ third, second ^ fourth


class _BitGenerator(PRNG):
    """XLA's RngBitGenerator with its default algorithm; keys are split as two of Threefry's."""

    @property
    def is_one_stream(self) -> bool:
        return True

    def seed(self, high: Term, low: Term) -> Words:
        return high, low, high, low

    def split(self, key: Words, number: Pair) -> Words:
        first, second, third, fourth = key
        return (*threefry2x32((first, second), number), *threefry2x32((third, fourth), number))

    def fold_in(self, key: Words, data: Term) -> Words:
        return self.split(key, (_zero(data), data))

    def bits(self, key: Words, number: Pair, width: int) -> Term:
        low, high, *_ = philox_words(key, number)
        return join_words(high, low) if width == 64 else _narrow(low, width)


class _UnsafeBitGenerator(_BitGenerator):
    """Philox as above, but keys are what the generator itself gives, every tenth block of four words."""

    def split(self, key: Words, number: Pair) -> Words:
        return philox_words(key, words(join_words(*number) * 10))

    def fold_in(self, key: Words, data: Term) -> Words:
        zero = _zero(data)
        last = philox_words(self.seed(zero, data), (zero, fill(9, data.node.shape, U32)))
        return tuple(starmap(xor, zip(key, last, strict=True)))


def _zero(like: Term) -> Term:
    return fill(0, like.node.shape, U32)


def _narrow(word: Term, width: int) -> Term:
    return word.convert(np.dtype(f"uint{width}"))


def _encrypt_pair(key: Words, counter: Words) -> Words:
    return threefry2x32((key[0], key[1]), (counter[0], counter[1]))


def _encrypt_four(key: Words, counter: Words) -> Words:
    (second, first), (fourth, third) = map(words, philox4x32((key[0], key[1]), counter))
    return first, second, third, fourth


#: Name -> generator.
PRNGS: Final = {
    each.name: each
    for each in (
        _Threefry2x32("threefry2x32", "fry", 2, 2, _encrypt_pair),
        _Threefry4x32("threefry4x32", "fry4", 4, 4, threefry4x32),
        _CipherPRNG(
            "philox2x32", "phx2", 1, 2, lambda key, counter: philox2x32(key[0], (counter[0], counter[1]))
        ),
        _CipherPRNG("philox4x32", "phx4", 2, 4, _encrypt_four),
        _BitGenerator("rbg", "rbg", 4),
        _UnsafeBitGenerator("unsafe_rbg", "urbg", 4),
    )
}
