"""Counter-based random bits: Threefry with 20 rounds and Philox with 10, as arithmetic on nodes.

Source: J. Salmon and others, Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import FUNCTION, operation
from xarr.ir.ops.control import Call, unpack_results
from xarr.ir.ops.elementwise import Elementwise
from xarr.ir.ops.formula import Term, fill
from xarr.ir.ops.systems import Composite
from xarr.ir.stablehlo.literals import quote
from xarr.ir.types import Ints, TensorType, Type

U32: Final = np.dtype(np.uint32)
U64: Final = np.dtype(np.uint64)

THREEFRY_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_PARITY: Final = 0x1BD11BDA
#: Of Threefry-4x32, for two pairs of words in each of eight rounds.
_WIDE_ROTATIONS: Final = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
PHILOX_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
#: Of Philox-2x32, whose Weyl constant is the first of those.
_NARROW_MULTIPLIER: Final = 0xD256D193

_THREEFRY: Final = "threefry2x32"
_PHILOX: Final = "philox4x32"

#: What a cipher costs: it takes as long as so many elementary functions.
COST: Final = 14 * FUNCTION

DType = np.dtype[Any]
Pair = tuple[Term, Term]
Words = tuple[Term, ...]


def threefry2x32(key: Pair, counter: Pair) -> Pair:
    """Two words for each counter.  All terms are uint32 of one shape."""
    return words(threefry_bits("joined", key, counter))


def threefry_bits(form: str, key: Pair, counter: Pair) -> Term:
    """Both words for each counter as one number, in a form of ThreefryBits.  All terms are uint32 of one shape."""
    return Term(Node(ThreefryBits(form), tuple([term.node for term in (*key, *counter)])))


@lru_cache(maxsize=256)
def threefry_graph(shape: tuple[int, ...]) -> Graph:
    """(key 0, key 1, counter 0, counter 1) -> two words; one object for each shape."""
    parameters = [parameter(TensorType(shape, U32)) for _ in range(4)]

    @cache
    def number(value: int) -> Term:
        return fill(value, shape, U32)

    key0, key1, x0, x1 = map(Term, parameters)
    keys = (key0, key1, key0 ^ key1 ^ number(THREEFRY_PARITY))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for step in range(5):
        for rotation in THREEFRY_ROTATIONS[step % 2]:
            x0 = x0 + x1
            x1 = ((x1 << number(rotation)) | (x1 >> number(32 - rotation))) ^ x0
        x0 = x0 + keys[(step + 1) % 3]
        # The sum of key and step is the same for all counters of one key.
        x1 = x1 + (keys[(step + 2) % 3] + number(step + 1))
    return Graph(parameters, (x0.node, x1.node), _THREEFRY)


def philox4x32(key: Pair, counter: Words) -> Pair:
    """Four words for each counter, as the uint64 of two and two, the first ones low.

    All terms are uint32 of one shape.
    """
    operands = tuple([term.node for term in (*key, *counter)])
    first, second = (Term(Node(PhiloxPair(index), operands)) for index in range(2))
    return first, second


@lru_cache(maxsize=256)
def philox_graph(shape: tuple[int, ...]) -> Graph:
    """(key 0, key 1, counter 0 … 3) -> two pairs of words; one object for each shape."""
    parameters = [parameter(TensorType(shape, U32)) for _ in range(6)]

    @cache
    def number(value: int, dtype: np.dtype[np.generic] = U32) -> Term:
        return fill(value, shape, dtype)

    def product(x: Term, factor: int) -> Pair:
        wide = x.convert(U64) * number(factor, U64)
        return (wide >> number(32, U64)).convert(U32), wide.convert(U32)

    key0, key1, x0, x1, x2, x3 = map(Term, parameters)
    for step in range(10):
        if step:
            key0, key1 = key0 + number(PHILOX_WEYL[0]), key1 + number(PHILOX_WEYL[1])
        high0, low0 = product(x0, PHILOX_MULTIPLIERS[0])
        high1, low1 = product(x2, PHILOX_MULTIPLIERS[1])
        x0, x1, x2, x3 = high1 ^ x1 ^ key0, low1, high0 ^ x3 ^ key1, low0
    pairs = ((high.convert(U64) << number(32, U64)) | low.convert(U64) for high, low in ((x1, x0), (x3, x2)))
    return Graph(parameters, [pair.node for pair in pairs], _PHILOX)


def threefry4x32(key: Words, counter: Words) -> Words:
    """Four words for each counter of four, as a call of one computation.  All terms are uint32 of one shape."""
    return _call(_threefry4x32_graph(counter[0].node.shape), (*key, *counter))


@lru_cache(maxsize=64)
def _threefry4x32_graph(shape: tuple[int, ...]) -> Graph:
    parameters = [parameter(TensorType(shape, U32)) for _ in range(8)]

    @cache
    def number(value: int) -> Term:
        return fill(value, shape, U32)

    def mix(x: Term, y: Term, rotation: int) -> Pair:
        x = x + y
        return x, ((y << number(rotation)) | (y >> number(32 - rotation))) ^ x

    terms = [Term(each) for each in parameters]
    key, x = terms[:4], terms[4:]
    keys = (*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ number(THREEFRY_PARITY))
    x = [x[at] + keys[at] for at in range(4)]
    for step in range(20):
        first, second = _WIDE_ROTATIONS[step % 8]
        one, three = (1, 3) if step % 2 == 0 else (3, 1)
        x[0], x[one] = mix(x[0], x[one], first)
        x[2], x[three] = mix(x[2], x[three], second)
        if step % 4 == 3:
            injection = step // 4 + 1
            x = [x[at] + keys[(injection + at) % 5] for at in range(4)]
            x[3] = x[3] + number(injection)
    return Graph(parameters, [term.node for term in x], "threefry4x32")


def philox2x32(key: Term, counter: Pair) -> Words:
    """Two words for each counter, as a call of one computation.  All terms are uint32 of one shape."""
    return _call(_philox2x32_graph(counter[0].node.shape), (key, *counter))


@lru_cache(maxsize=64)
def _philox2x32_graph(shape: tuple[int, ...]) -> Graph:
    parameters = [parameter(TensorType(shape, U32)) for _ in range(3)]
    key, x0, x1 = map(Term, parameters)
    multiplier, weyl = fill(_NARROW_MULTIPLIER, shape, U64), fill(PHILOX_WEYL[0], shape, U32)
    for step in range(10):
        key = key + weyl if step else key
        high, low = words(x0.convert(U64) * multiplier)
        x0, x1 = high ^ x1 ^ key, low
    return Graph(parameters, (x0.node, x1.node), "philox2x32")


def _call(graph: Graph, terms: Words) -> Words:
    call = Node(Call(graph), tuple(term.node for term in terms))
    return tuple(map(Term, unpack_results(call)))


def words(x: Term) -> Pair:
    """The high and the low word of a uint64."""
    return (x >> 32).convert(U32), x.convert(U32)


def join_words(high: Term, low: Term) -> Term:
    """The uint64 of two words."""
    return (high.convert(U64) << 32) | low.convert(U64)


class _Cipher(Composite, Elementwise):
    """Base of a cipher's results: numbers of a key and a counter, uint32 operands, element by element.

    It is one operation, so that it is a part of the loops that use it.  As text it is a composite, which other readers
    take for a call of the cipher.
    """

    accepts = frozenset({U32})
    cost = COST
    is_internal = True

    def computation(self, shape: Ints) -> Graph:
        """The operands' words as the words of the cipher."""
        raise NotImplementedError

    def result_of(self, results: Words) -> Term:
        """The op's result, of those of the computation."""
        raise NotImplementedError

    def decompose(self, *operands: Node) -> Node:
        results = self.computation(operands[0].shape).inline(*operands)
        return self.result_of(tuple(map(Term, results))).node

    def definition(self, *operands: Node) -> Node:
        return self.result_of(_call(self.computation(operands[0].shape), tuple(map(Term, operands)))).node


@operation
class ThreefryBits(_Cipher):
    """Threefry's two words for a key and a counter, four operands.

    form: their "xor", or both "joined" to a uint64, of which the first is the high half, the low one if "swapped".

    * C4: the form is one of these.
    """

    form: str
    name = "xarr.threefry2x32_bits"
    arity = 4

    def infer(self, *operands: Type) -> Type:
        if self.form not in _FORMS:
            self.fail("C4", f"wanted a form of {', '.join(_FORMS)}, got {self.form!r}")
        return super().infer(*operands)

    def result_dtype(self, dtype: DType) -> DType:
        return dtype if self.form == "xor" else U64

    def computation(self, shape: Ints) -> Graph:
        return threefry_graph(shape)

    def result_of(self, results: Words) -> Term:
        first, second = results
        if self.form == "xor":
            return first ^ second
        return join_words(first, second) if self.form == "joined" else join_words(second, first)

    def composite_attributes(self) -> str:
        return f"form = {quote(self.form)}"


_FORMS: Final = ("xor", "joined", "swapped")


@operation
class PhiloxPair(_Cipher):
    """Two of the four words that Philox gives for a key and a counter, six operands, as a uint64.

    index: 0 for the first two, 1 for the others.

    * C4: the index is one of these.
    """

    index: int
    name = "xarr.philox4x32_pair"
    arity = 6

    def infer(self, *operands: Type) -> Type:
        if self.index not in (0, 1):
            self.fail("C4", f"wanted index 0 or 1, got {self.index}")
        return super().infer(*operands)

    def result_dtype(self, dtype: DType) -> DType:
        return U64

    def computation(self, shape: Ints) -> Graph:
        return philox_graph(shape)

    def result_of(self, results: Words) -> Term:
        return results[self.index]

    def composite_attributes(self) -> str:
        return f"index = {self.index} : i64"
