"""Random bits from a state, and random numbers from the backend's own generator."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from xarr.dtypes import FLOAT, INTEGER, PREDICATE
from xarr.ir.graph import Node
from xarr.ir.op import Op, operation
from xarr.ir.ops.ciphers import U32, U64, Pair, join_words, philox4x32, threefry_bits, words
from xarr.ir.ops.control import Tuple
from xarr.ir.ops.creation import Iota
from xarr.ir.ops.formula import Term, fill, spread, where
from xarr.ir.ops.movement import Concatenate, Reshape, Slice
from xarr.ir.types import Ints, TensorType, TupleType, Type, replace_at

if TYPE_CHECKING:
    from xarr.ir.stablehlo.printer import Printer


#: Algorithm -> the lengths that its state may have.
STATES: Final = {"THREE_FRY": (2,), "PHILOX": (2, 3), "DEFAULT": (2, 3)}


@operation
class RngBitGenerator(Op):
    """(new state, random bits of the type `result`) from a state: the same for the same state, everywhere.

    DEFAULT is Philox, as on XLA's CPU.  The bits are XLA's.

    * C1: the state is uint64, of length 2 for THREE_FRY, 2 or 3 for PHILOX and DEFAULT.
    * C2: the algorithm is one of the three.
    * C3: the bits are of an integer or a float type of 8 to 64 bits.
    """

    algorithm: str
    result: TensorType
    name = "stablehlo.rng_bit_generator"

    def infer(self, *operands: Type) -> Type:
        (state,) = self.tensors(operands, 1)
        if self.algorithm not in STATES:
            self.fail("C2", f"wanted one of the algorithms {', '.join(STATES)}, got {self.algorithm!r}")
        lengths = STATES[self.algorithm]
        if state.dtype != U64 or state.rank != 1 or state.shape[0] not in lengths:
            wanted = " or ".join(f"u64[{length}]" for length in lengths)
            self.fail("C1", f"wanted a state {wanted} for {self.algorithm}, got {state.short()}")
        if self.result.dtype not in INTEGER | FLOAT:
            self.fail_dtype("C3", f"wanted bits of an integer or float type, got {self.result.short()}")
        return TupleType((state, self.result))

    def results(self, node: Node) -> tuple[Type, ...]:
        return (node.operands[0].type, self.result)

    def result_names(self) -> tuple[str, ...]:
        return ("output_state", "output")

    def decompose(self, *operands: Node) -> Node:
        generate = _threefry_bits if self.algorithm == "THREE_FRY" else _philox_bits
        width = 8 * self.result.dtype.itemsize
        state, bits = generate(operands[0], self.result.shape, width)
        unsigned = np.dtype(f"uint{width}")
        return Node(Tuple(), (state, bits.convert(unsigned).bitcast(self.result.dtype).node))

    def assembly(self, node: Node, printer: Printer) -> str:
        head = f"{self.name} {printer.names(node.operands)}, algorithm = {self.algorithm}"
        return f"{head} : {printer.signature(node)}"


@operation
class Rng(Op):
    """Random numbers from the backend's own generator, other ones each time it runs.

    Operands: the two parameters of the distribution, the least value and the bound for UNIFORM, mean and
    standard deviation for NORMAL; and the sizes of the result, which `shape` says too.

    * C1: two scalars of the result's element type.
    * C2: the distribution is UNIFORM or NORMAL.
    * C3: UNIFORM numbers are bools, integers or floats, NORMAL ones floats.
    * C4: the sizes are int64, one for each dimension.
    """

    distribution: str
    shape: Ints
    name = "stablehlo.rng"

    @property
    def is_pure(self) -> bool:
        return False

    def infer(self, *operands: Type) -> Type:
        first, second, sizes = self.tensors(operands, 3)
        if self.distribution not in ("UNIFORM", "NORMAL"):
            self.fail("C2", f"wanted UNIFORM or NORMAL, got {self.distribution!r}")
        if first.shape or first is not second:
            self.fail(
                "C1", f"wanted two scalars of one element type, got {first.short()} and {second.short()}"
            )
        accepted = FLOAT if self.distribution == "NORMAL" else FLOAT | INTEGER | {PREDICATE}
        if first.dtype not in accepted:
            self.fail_dtype("C3", f"{self.distribution} numbers cannot be {first.dtype}")
        if sizes.dtype != np.int64 or sizes.shape != (len(self.shape),):
            self.fail("C4", f"wanted sizes s64[{len(self.shape)}], got {sizes.short()}")
        return TensorType(self.shape, first.dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"distribution = {self.distribution}")


# --- Threefry ----------------------------------------------------------------------------------------


def _threefry_bits(state: Node, shape: Ints, width: int) -> tuple[Node, Term]:
    """XLA's ThreeFryBitGenerator: 32-bit words in halves along one dimension, 64-bit ones whole."""
    if width == 64:
        return _threefry_numbers("swapped", state, shape)
    if not shape:
        new, both = _threefry_numbers("joined", state, (1,))
        first, _ = words(both)
        return new, Term(Node(Reshape(()), (first.node,)))
    dim = _halved_dimension(shape)
    if dim == len(shape) - 1:
        # The words of a counter lie beside each other, as those of a uint64 do.
        new, both = _threefry_numbers("swapped", state, (*shape[:dim], -(-shape[dim] // 2)))
        bits = _halves(both)
        return new, bits if bits.node.tensor_type.shape == shape else Term(_cut(bits.node, shape))
    half = replace_at(shape, dim, -(-shape[dim] // 2), 1)
    new, both = _threefry_numbers("joined", state, half)
    halves = Node(Concatenate(dim + 1), tuple([word.node for word in words(both)]))
    even = replace_at(shape, dim, half[dim] * 2)
    whole = Node(Reshape(even), (halves,))
    return new, Term(whole if even == shape else _cut(whole, shape))


def _halved_dimension(shape: Ints) -> int:
    """The first dimension of even size, else the first of the largest."""
    even = [dim for dim, size in enumerate(shape) if size % 2 == 0]
    return even[0] if even else shape.index(max(shape))


def _threefry_numbers(form: str, state: Node, shape: Ints) -> tuple[Node, Term]:
    """The state after them, and two words for each element of an array, as one number in a form of ThreefryBits."""
    key, counter = _entry(state, 0), _entry(state, 1)
    counters = spread(counter, shape) + row_major_indices(shape, U64)
    high, low = words(counters)
    key_high, key_low = words(key)
    pair: Pair = (spread(key_low, shape), spread(key_high, shape))
    return _vector(key, counter + prod(shape)), threefry_bits(form, pair, (low, high))


# --- Philox ------------------------------------------------------------------------------------------


def _philox_bits(state: Node, shape: Ints, width: int) -> tuple[Node, Term]:
    """XLA's PhiloxBitGenerator: four words for each counter, one after the other."""
    size = prod(shape)
    per_counter = 2 if width == 64 else 4
    count = -(-size // per_counter)
    key, low = _entry(state, 0), _entry(state, 1)
    longer = state.tensor_type.shape[0] == 3
    high = _entry(state, 2) if longer else key  # as XLA completes the shorter state
    lows, highs = _advance(spread(low, (count,)), spread(high, (count,)), row_major_indices((count,), U64))
    cipher_key, high_words = _scramble(key, highs)
    low_high, low_low = words(lows)
    encrypted = philox4x32(cipher_key, (low_low, low_high, *high_words))
    flat = _interleave(encrypted)
    flat = flat if width == 64 else _halves(flat)
    bits = Node(Reshape(shape), (_cut(flat.node, (size,)),))
    new_low, new_high = _advance(low, high, fill(count, (), U64))
    parts = (key, new_low, new_high) if longer else (key, new_low)
    return _vector(*parts), Term(bits)


def _scramble(key: Term, highs: Term) -> tuple[Pair, Pair]:
    """The key of the cipher, and the upper words of its counters."""
    shape = highs.node.tensor_type.shape
    high_high, high_low = words(highs)
    key_high, key_low = words(key)
    return (spread(key_low, shape), spread(key_high, shape)), (high_low, high_high)


def philox_words(state: tuple[Term, ...], number: Pair) -> tuple[Term, ...]:
    """Four words, the block of this number among those that RngBitGenerator gives for a state of four uint32.

    number: its high and low word.  All terms are of one shape.
    """
    key, start = join_words(state[1], state[0]), join_words(state[3], state[2])
    low, high = _advance(
        start, key, join_words(*number)
    )  # the upper half of the counter is the key, as above
    counter = [word for part in (low, high) for word in words(part)[::-1]]
    pairs = philox4x32((state[0], state[1]), tuple(counter))
    return tuple([word for pair in pairs for word in words(pair)[::-1]])


def _interleave(pairs: Pair) -> Term:
    """The pairs of words, as uint64, in the order of their counters."""
    count = pairs[0].node.tensor_type.shape[0]
    columns = [Node(Reshape((count, 1)), (pair.node,)) for pair in pairs]
    return Term(Node(Reshape((count * 2,)), (Node(Concatenate(1), tuple(columns)),)))


def _advance(low: Term, high: Term, by: Term) -> Pair:
    """The 128-bit number (low, high) plus a 64-bit one."""
    total = low + by
    return total, where(total < low, high + 1, high)


# --- shared ------------------------------------------------------------------------------------------


def row_major_indices(shape: Ints, dtype: np.dtype[np.generic]) -> Term:
    """0, 1, 2 … in row-major order."""
    counts = Node(Iota(TensorType((prod(shape),), dtype), 0))
    return Term(Node(Reshape(shape), (counts,)))


def _halves(pairs: Term) -> Term:
    """Words from pairs of them, the low ones first; the last dimension grows to twice its size."""
    *rest, last = pairs.node.tensor_type.shape
    return Term(Node(Reshape((*rest, 2 * last)), (pairs.bitcast(U32).node,)))


def _entry(vector: Node, index: int) -> Term:
    return Term(Node(Reshape(()), (Node(Slice((index,), (index + 1,), (1,)), (vector,)),)))


def _vector(*scalars: Term) -> Node:
    return Node(Concatenate(0), tuple(Node(Reshape((1,)), (scalar.node,)) for scalar in scalars))


def _cut(node: Node, shape: Ints) -> Node:
    return Node(Slice((0,) * len(shape), shape, (1,) * len(shape)), (node,))
