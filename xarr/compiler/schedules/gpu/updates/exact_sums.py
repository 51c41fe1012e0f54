"""Sums of float32 by scatters, exact and rounded once, so in any order: integers of 64 bits add them up.

A float32 is an integer of 24 bits times a power of two.  Each result has a bin for so many neighbouring powers; an
update is shifted to the least power of its bin and added to that, atomically, which loses nothing.  A last phase
carries from bin to bin, and rounds what 64 bits hold of the sum, with a bit that says whether there is more.

Beside its bins a result has flags: of infinities and NaN, and, where an operand is -0, of updates that are anything
else, since only sums of nothing else are -0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Affine, Atomic, Loop, Store
from xarr.compiler.loop_ir.scalars import INT64, Value, constant_of
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.compiler.schedules.serial.scatters import Updates
from xarr.compiler.schedules.serial.serial_loops import Scratch, store_all
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node
from xarr.ir.types import Ints

_INT32, _FLOAT, _DOUBLE, _COMPLEX = map(np.dtype, ("i4", "f4", "f8", "c8"))
#: Bits of a float32: its digits without the leading one; those of its exponent, all of them 1 in what is not finite.
_FRACTION_BITS, _FRACTION, _EXPONENT = 23, 2**23 - 1, 2**8 - 1
_NEGATIVE_ZERO: Final = -(2**31)
#: Powers of two that finite numbers have, the least of them, and bits that sums in a bin may have.
_POWERS, _LEAST_POWER, _BIN_BITS = 254, -149, 62
#: Powers of a bin, at most: what 64 bits hold of a sum has more bits than a float32 then.
_MOST_OF_BIN: Final = 24
#: Flags of a result.
_PLUS, _MINUS, _NAN, _OTHER = 1, 2, 4, 8
#: Bytes of keys and numbers for each update while these are sorted: bins take no more.
_SORTED_BYTES: Final = 24


def adds_exactly(node: Node, target: GpuTarget) -> bool:
    """Whether bins add up the updates of a scatter: many sums of single float32 into many elements."""
    op, count = node.op.expect(ops.Scatter), len(node.operands) // 2
    operands, updates = node.operands[:count], node.operands[count + 1 :]
    combiners, dtypes = monoids(op.update_computation), {each.dtype for each in (*operands, *updates)}
    if not target.deterministic or op.unique_indices or dtypes not in ({_FLOAT}, {_COMPLEX}):
        return False
    windows = op.windows(*[each.tensor_type for each in node.operands[count - 1 : count + 2]])
    size, number = operands[0].tensor_type.size, prod(windows.batch_shape)
    parts = count * next(iter(dtypes)).itemsize // _FLOAT.itemsize
    bins = _count_bins(_powers_of_bin(number * prod(windows.sizes)))
    nbytes = parts * size * (bins * INT64.itemsize + _INT32.itemsize)
    return (
        combiners == (ops.Add,) * count
        and parts * prod(windows.sizes) <= target.max_exact_updates
        and size >= target.min_exact_results
        and nbytes <= _SORTED_BYTES * number < 2**31
    )


def _powers_of_bin(count: int) -> int:
    """Powers of two that share a bin into which so many updates and an operand may go."""
    return min(_MOST_OF_BIN, _BIN_BITS - _FRACTION_BITS - (count + 1).bit_length())


def _count_bins(powers: int) -> int:
    return -(-_POWERS // powers)


def add_exactly(loops: GridLoops, updates: Updates, results: Sequence[Scratch]) -> None:
    """The phases that fill the results: empty the bins, add the updates, round the sums."""
    _ExactSums(loops, updates, results).add_phases()


@dataclass(frozen=True)
class _FixedPoint:
    """A float32 as its bits say it: a number times the least power of a bin, and whether it is finite."""

    bits: Value
    bin: Value
    number: Value
    is_finite: Value


class _ExactSums:
    """The bins and flags of all results, of the real and the imaginary parts of complex ones."""

    def __init__(self, loops: GridLoops, updates: Updates, results: Sequence[Scratch]) -> None:
        self.loops, self.values, self.updates, self.results = loops, loops.values, updates, results
        self.shape: Ints = results[0].shape
        self.powers = _powers_of_bin(prod(updates.extents))
        self.count = _count_bins(self.powers)
        parts = range(sum(2 if each.dtype == _COMPLEX else 1 for each in updates.operands))
        self.bins = [loops.new(INT64, (self.count, *self.shape)) for _ in parts]
        self.flags = [loops.new(_INT32, self.shape) for _ in parts]
        #: Whether an element of an operand is -0.
        self.has_negative_zeros: Scratch | None = None

    def add_phases(self) -> None:
        loops = self.loops
        zero = self.values.constant(0, _INT32)
        if self._may_be_negative_zero():
            self.has_negative_zeros = flag = loops.new(_INT32, (1,))
            loops.phase((1,), lambda index: [flag.store(index, zero)])
        loops.phase(self.shape, self._empty)
        loops.phase(self.updates.extents, self._add)
        loops.phase(self.shape, self._round)

    def _may_be_negative_zero(self) -> bool:
        operands = self._operands((Affine(),) * len(self.shape))
        known = [constant_of(each) for each in operands if each.op == "constant"]
        return len(known) < len(operands) or any(each == 0 and np.signbit(each) for each in known)

    def _operands(self, index: Index) -> list[Value]:
        return _real_parts([self.loops.at(each, index) for each in self.updates.operands])

    def _split(self, value: Value) -> _FixedPoint:
        bits = value.bitcast(_INT32)
        exponent, fraction = (bits >> _FRACTION_BITS) & _EXPONENT, bits & _FRACTION
        # Subnormal numbers have the least power too, and no leading digit.
        is_normal = exponent.ne(0)
        digits = is_normal.select(fraction | _FRACTION + 1, fraction).convert(INT64)
        power = is_normal.select(exponent - 1, exponent)
        shifted = digits << power.rem(self.powers).convert(INT64)
        number = bits.lt(0).select(-shifted, shifted)
        return _FixedPoint(bits, (power / self.powers).convert(INT64), number, exponent.lt(_EXPONENT))

    def _empty(self, index: Index) -> Sequence[Loop | Store]:
        """Make the bins and flags of a result 0, and note where an operand is -0."""
        none, zero, one = self.values.constant(0, INT64), *[self.values.constant(k, _INT32) for k in (0, 1)]
        stores = [
            bins.store((Affine(constant=number), *index), none)
            for bins in self.bins
            for number in range(self.count)
        ]
        stores += [each.store(index, zero) for each in self.flags]
        if self.has_negative_zeros is None:
            return stores
        note = replace(self.has_negative_zeros.store((Affine(),), one), atomic=Atomic.OR)
        zeros = [each.bitcast(_INT32).eq(_NEGATIVE_ZERO) for each in self._operands(index)]
        return [*stores, *[loop for each in zeros for loop in self.loops.only_if(each, [note])]]

    def _add(self, index: Index) -> Sequence[Loop | Store]:
        """Add an update to a bin of the element that it goes to, or note in its flags what it is."""
        target, fits = self.updates.target(index)
        has_zeros = self.has_negative_zeros
        parts: list[Loop | Store] = []
        elements = _real_parts(self.updates.elements(index))
        for bins, flags, element in zip(self.bins, self.flags, elements, strict=True):
            new = self._split(element)
            at = (Affine(((new.bin, 1),)), *target)
            added = replace(bins.store(at, new.number), atomic=Atomic.ADD)
            parts += self.loops.only_if(new.is_finite & new.number.ne(0), [added])
            infinite = new.bits.lt(0).select(self.values.constant(_MINUS, _INT32), _PLUS)
            flag = (new.bits & _FRACTION).ne(0).select(_NAN, infinite)
            is_noted = ~new.is_finite
            if has_zeros is not None:
                flag = is_noted.select(flag, _OTHER)
                is_noted |= has_zeros.load((Affine(),)).ne(0) & new.bits.ne(_NEGATIVE_ZERO)
            parts += self.loops.only_if(is_noted, [replace(flags.store(target, flag), atomic=Atomic.OR)])
        return self.updates.only_if(fits, parts)

    def _round(self, index: Index) -> Sequence[Loop | Store]:
        """Store the sums of a result's bins and its operands."""
        sums = [
            self._sum(operand, bins, flags.load(index), index)
            for operand, bins, flags in zip(self._operands(index), self.bins, self.flags, strict=True)
        ]
        if len(sums) > len(self.results):
            sums = [self.values.complex(*sums[k : k + 2]) for k in range(0, len(sums), 2)]
        return store_all(self.results, index, sums)

    def _sum(self, operand: Value, bins: Scratch, flags: Value, index: Index) -> Value:
        """A sum of a result's bins and an operand, rounded to nearest."""
        own, constant = self._split(operand), self.values.constant
        total = self._total(own, [bins.load((Affine(constant=k), *index)) for k in range(self.count)])

        def part(flag: int, number: float) -> Value:
            return (flags & flag).ne(0).select(constant(number, _FLOAT), 0.0)

        infinite = operand + (part(_PLUS, np.inf) + part(_MINUS, -np.inf))
        special = (flags & _NAN).ne(0).select(constant(np.nan, _FLOAT), infinite)
        is_kept = ~own.is_finite
        if self.has_negative_zeros is not None:
            is_kept |= own.bits.eq(_NEGATIVE_ZERO) & total.eq(0.0) & (flags & _OTHER).eq(0)
        return (flags & (_PLUS | _MINUS | _NAN)).ne(0).select(special, is_kept.select(operand, total))

    def _total(self, own: _FixedPoint, sums: Sequence[Value]) -> Value:
        """The sum of an operand and of bins."""
        values, powers = self.values, self.powers
        first, *others = [each + own.bin.eq(k).select(own.number, 0) for k, each in enumerate(sums)]
        head, digits = first, []
        for following in others:
            digits.append(head & 2**powers - 1)
            head = following + (head >> powers)
        # As many digits as fit; what follows is not negative, so an odd last one says whether there is any.
        scale = values.constant(self._scale(len(digits)), _DOUBLE)
        rest, least = values.constant(0, INT64), 2 ** (_BIN_BITS - powers)
        for k, digit in reversed([*enumerate(digits)]):
            fits = head.lt(least) & head.ge(-least)
            rest = fits.select(rest, rest | digit)
            scale = fits.select(values.constant(self._scale(k), _DOUBLE), scale)
            head = fits.select(head << powers | digit, head)
        rounded = (head | rest.ne(0).select(values.constant(1, INT64), 0)).convert(_FLOAT)
        # Exact but for what is beyond float32: those below its normal numbers have all their digits.
        return (rounded.convert(_DOUBLE) * scale).convert(_FLOAT)

    def _scale(self, number: int) -> float:
        """The number that is 1 in a bin."""
        return 2.0 ** (_LEAST_POWER + number * self.powers)


def _real_parts(values: Sequence[Value]) -> list[Value]:
    """The values, or both parts of complex ones."""
    pairs = [(each.real(), each.imag()) if each.dtype == _COMPLEX else (each,) for each in values]
    return [part for pair in pairs for part in pair]
