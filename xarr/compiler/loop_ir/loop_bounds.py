"""Conditions of an index as bounds of its loop: a sum of `where(arange(n) < i, x, 0)` runs over i terms.

Where a condition does not hold, an iteration accumulates a value that no iteration changes.  If it may be accumulated
again and again with the result of doing so once (`Accumulator.repeatable`), the loop leaves these iterations out, and
it is accumulated once at the end.  What other iterations compute is what they computed before, NaN and infinity too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from xarr.compiler.loop_ir.index_ranges import COMPARED, Literal, Ranges, conjuncts
from xarr.compiler.loop_ir.loops import Accumulator, Loop
from xarr.compiler.loop_ir.scalars import BOOL, INT64, MIRRORED, DType, Value, Values, constant_of, in_order
from xarr.ir.operands_first import compute_operands_first


def bound_by_conditions(loop: Loop, apart: Collection[Value], min_iterations: int) -> list[tuple[Value, ...]]:
    """Let a loop that does nothing but accumulate run where conditions of its index hold; what it accumulates then.

    `apart` are the indices that its bounds may not depend on.  A loop of less than `min_iterations` stays as it is.
    """
    results = [accumulator.results for accumulator in loop.accumulators]
    does_more = loop.body or loop.carries or loop.prefixes or loop.search or loop.condition
    if does_more or not isinstance(loop.extent, int) or loop.extent < min_iterations:
        return results
    conditions = Conditions(loop, loop.extent, frozenset((loop.index, *apart)))
    terms = [term for each in loop.accumulators if (term := conditions.term_of(each)) is not None]
    if len(terms) < len(results) or not terms:
        return results
    common = [each for each in terms[0].literals if all(each in term.literals for term in terms)]
    bounding = [each for each in common if any(conditions.bounds_by(each))]
    if not bounding:
        return results
    loop.first, loop.extent = conditions.bounds(bounding)
    return [_accumulate_rest(loop, number, term, bounding, conditions) for number, term in enumerate(terms)]


def _accumulate_rest(
    loop: Loop, number: int, term: _Term, settled: Iterable[Literal], conditions: Conditions
) -> tuple[Value, ...]:
    """The result of an accumulator, and of what it gets where the settled conditions do not hold."""
    accumulator = loop.accumulators[number]
    terms = tuple(settle(value, settled) for value in term.values)
    loop.accumulators[number] = replace(accumulator, terms=terms)
    (total,) = accumulator.results
    if term.rest is accumulator.identities[0]:
        return (total,)
    names = dict(zip((*accumulator.left, *accumulator.right), (total, term.rest), strict=True))
    both = total.values.rebuild(accumulator.combined[0], names)
    return (conditions.leaves_out(loop).select(both, total),)


@dataclass(frozen=True)
class _Term:
    """The value that an iteration accumulates, or the factors of one, which is `rest` unless all literals hold."""

    values: tuple[Value, ...]
    rest: Value
    literals: tuple[Literal, ...]


class Conditions:
    """The conditions of a loop's index: comparisons with what no iteration changes."""

    def __init__(self, loop: Loop, extent: int, varying: frozenset[Value]) -> None:
        self.index = loop.index
        self.values: Values = loop.index.values
        self.extent = extent
        self.varying = varying
        # What is known of values, which may be operands of many others.
        self._splits: dict[tuple[Value, bool], tuple[Value, list[Literal]] | None] = {}

    # --- what an iteration accumulates -----------------------------------------------------------------------

    def term_of(self, accumulator: Accumulator) -> _Term | None:
        """The term of an accumulator, if it may be left out where conditions do not hold."""
        if not accumulator.repeatable or len(accumulator.identities) != 1:
            return None
        if accumulator.arguments:
            return self._product_of(accumulator)
        (value,), (identity,) = accumulator.terms, accumulator.identities
        is_one = accumulator.repeatable == "one"
        rests_on = bool(constant_of(identity)) if identity.dtype == BOOL else is_one
        split = self._split(value, rests_on)
        if split is None:
            return None
        rest, literals = split
        if accumulator.repeatable != "any" and not (rest.op == "constant" and constant_of(rest) == is_one):
            return None
        return _Term((value,), rest, tuple(literals))

    def _product_of(self, accumulator: Accumulator) -> _Term | None:
        """The product that a sum adds, if both factors are +0.0 where conditions do not hold."""
        (step,), names = accumulator.step, accumulator.arguments
        if (
            step.op != "fma"
            or step.operands != (*names, *accumulator.left)
            or accumulator.repeatable != "zero"
        ):
            return None
        splits = [self._split(value, False) for value in accumulator.terms]
        zero = self.values.constant(0, step.dtype)
        if any(split is None or split[0] is not zero for split in splits):
            return None
        first, second = ([] if split is None else split[1] for split in splits)
        return _Term(accumulator.terms, zero, tuple(each for each in first if each in second))

    def _split(self, value: Value, rests_on: bool) -> tuple[Value, list[Literal]] | None:
        """The rest, which a value is unless all of some literals hold; a bool is to be `rests_on` then."""
        key = value, rests_on
        if key not in self._splits:
            self._splits[key] = self._split_anew(value, rests_on)
        return self._splits[key]

    def _split_anew(self, value: Value, rests_on: bool) -> tuple[Value, list[Literal]] | None:
        if value.op == "convert":
            inner = self._split(value.operands[0], rests_on)
            return inner and (_convert_rest(inner[0], value.dtype), inner[1])
        if value.op == "mul" and value.dtype.kind in "iu":
            return self._split_product(value, rests_on)
        if value.op == "select":
            predicate, on_true, on_false = value.operands
            for rest, other, truth in ((on_false, on_true, True), (on_true, on_false, False)):
                if self.is_fixed(rest):
                    inner = self._split(other, rests_on)
                    more = inner[1] if inner is not None and inner[0] is rest else []
                    return rest, [*literals_of(predicate, truth), *more]
            return None
        if value.dtype == BOOL:
            return self.values.constant(rests_on, BOOL), [*literals_of(value, not rests_on)]
        return None

    def _split_product(self, value: Value, rests_on: bool) -> tuple[Value, list[Literal]] | None:
        """A product of integers, which is 0 where a factor is, whatever the other one is; of floats it is not."""
        zero = self.values.constant(0, value.dtype)
        splits = [self._split(operand, rests_on) for operand in value.operands]
        literals = [each for split in splits if split is not None and split[0] is zero for each in split[1]]
        return (zero, literals) if literals else None

    def is_fixed(self, value: Value) -> bool:
        return self.varying.isdisjoint(in_order(value))

    # --- the iterations that are left ------------------------------------------------------------------------

    def bounds(self, literals: Iterable[Literal]) -> tuple[Value | None, int | Value]:
        """The first iteration and the end of those in which all literals hold, each of which bounds them."""
        firsts: list[Value] = []
        ends: list[Value] = []
        for literal in literals:
            for is_first, bound in self.bounds_by(literal):
                (firsts if is_first else ends).append(bound)
        first = self.values.constant(0, INT64) if firsts else None
        for each in firsts:
            assert first is not None
            first = each.gt(first).select(each, first)
        if not ends:
            return first, self.extent
        end = ends[0]
        for each in ends[1:]:
            end = each.lt(end).select(each, end)
        end = end.lt(0).select(0, end)
        return first, end.lt(self.extent).select(end, self.extent)

    def leaves_out(self, loop: Loop) -> Value:
        """Whether the bounds of the loop leave iterations out."""
        end = loop.extent if isinstance(loop.extent, Value) else self.values.constant(loop.extent, INT64)
        return (end if loop.first is None else end - loop.first).lt(self.extent)

    def bounds_by(self, literal: Literal) -> Iterator[tuple[bool, Value]]:
        """Whether it is the first iteration or the end, and which, between -1 and one behind the extent; nothing if a
        literal says more than these, as `index != 3` and `x[index] > 0` do.
        """
        comparison, truth = literal
        left, right = comparison.operands
        op = comparison.op if truth else COMPARED[comparison.op]
        if self.is_fixed(left):
            left, right, op = right, left, MIRRORED[op]
        number = linear(left, self.index, self.extent)
        if number is None or number[0] not in (1, -1) or not self.is_fixed(right):
            return
        factor, start = number
        ends = (start - 1, start + self.extent) if factor == 1 else (start - self.extent, start + 1)
        info = np.iinfo(right.dtype)
        low, high = max(ends[0], int(info.min)), min(ends[1], int(info.max))
        clamped = right.lt(low).select(low, right)
        clamped = clamped.gt(high).select(high, clamped).convert(INT64)
        at = clamped - start if factor == 1 else start - clamped
        op = op if factor == 1 else MIRRORED[op]
        if op in ("gt", "ge", "eq"):
            yield True, at + 1 if op == "gt" else at
        if op in ("lt", "le", "eq"):
            yield False, at if op == "lt" else at + 1


def linear(value: Value, index: Value, extent: int) -> tuple[int, int] | None:
    """The factor of an index and what is added to it, if no iteration leaves the integers of the type."""
    known: dict[Value, tuple[int, int] | None] = {index: (1, 0)}

    def operands_of(value: Value) -> tuple[Value, ...]:
        return value.operands if value.op in _LINEAR else ()

    def combine(value: Value) -> tuple[int, int] | None:
        return _combine(value, [known[operand] for operand in operands_of(value)], extent)

    return compute_operands_first(value, known, operands_of, combine)


def _combine(value: Value, parts: list[tuple[int, int] | None], extent: int) -> tuple[int, int] | None:
    """The linear form of a value, given those of its operands."""
    if value.dtype.kind not in "iu":
        return None
    if value.op == "constant":
        return 0, int(constant_of(value))
    numbers = [part for part in parts if part is not None]
    pair = _linear_of(value.op, numbers) if numbers and len(numbers) == len(parts) else None
    if pair is None:
        return None
    factor, start = pair
    info = np.iinfo(value.dtype)
    return pair if all(info.min <= start + factor * at <= info.max for at in (0, extent - 1)) else None


#: Operations of which `linear` looks at the operands.
_LINEAR: Final = frozenset({"convert", "neg", "add", "sub", "mul"})


def _linear_of(op: str, parts: list[tuple[int, int]]) -> tuple[int, int] | None:
    """The factor and the start of what an operation makes of linear numbers."""
    (factor, start), (other, more) = parts[0], parts[-1]
    match op:
        case "convert":
            return factor, start
        case "neg":
            return -factor, -start
        case "add":
            return factor + other, start + more
        case "sub":
            return factor - other, start - more
    return None if factor and other else (factor * more + other * start, start * more)


def _convert_rest(rest: Value, dtype: DType) -> Value:
    """A value in another type; of a known bool a constant."""
    if rest.op == "constant" and rest.dtype == BOOL:
        return rest.values.constant(constant_of(rest), dtype)
    return rest.convert(dtype)


def literals_of(predicate: Value, truth: bool) -> list[Literal]:
    """The comparisons of integers that hold or fail where a condition is this."""
    return [
        (value, own)
        for value, own in conjuncts(predicate, truth)
        if value.op in COMPARED and value.operands[0].dtype.kind in "iu"
    ]


def settle(root: Value, literals: Iterable[Literal]) -> Value:
    """A value where the literals are what they are; what must not run elsewhere stays as it is.

    A loop may compute what no iteration changes before it asks for the literals.
    """
    return with_truths(root, dict(literals), guards=True)


def simplify(root: Value, ranges: Ranges) -> Value:
    """A value without the choices that ranges of integers settle."""
    bools = [value for value in in_order(root) if value.dtype == BOOL and value.operands]
    settled = {value: ranges.of(value) for value in bools}
    return with_truths(root, {value: bool(low) for value, (low, high) in settled.items() if low == high})


def _is_guarded(value: Value) -> bool:
    """Whether a value may be an error where a choice among its operands keeps that away: by 0, or out of bounds."""
    return value.op == "load" or (value.op in ("div", "rem") and value.dtype.kind in "iu")


def with_truths(root: Value, truths: Mapping[Value, bool], guards: bool = False) -> Value:
    """A value where conditions have these truths; with `guards` not in operands of what these may protect."""
    values = root.values
    known = {condition: values.constant(truth, BOOL) for condition, truth in truths.items()}
    for value in in_order(root):
        if guards and _is_guarded(value):
            known.setdefault(value, value)
        elif value not in known:
            known[value] = _fold(value, tuple([known[operand] for operand in value.operands]))
    return known[root]


def _fold(value: Value, operands: tuple[Value, ...]) -> Value:
    """The value over these operands, without what constants among them decide."""
    op, values, first = value.op, value.values, operands[0] if operands else value
    is_known = first.op == "constant" and first.dtype == BOOL
    if op == "select" and (is_known or operands[1] is operands[2]):
        return operands[1] if not is_known or constant_of(first) else operands[2]
    if op in ("not", "convert") and is_known:
        return values.constant(constant_of(first) != (op == "not"), value.dtype)
    if op == "complex":
        return values.complex(*operands)
    if op in ("and", "or", "xor", "add", "sub") and value.dtype.kind in "biu":
        joined = _fold_binary(op, *operands)
        if joined is not None:
            return joined
    if all(new is old for new, old in zip(operands, value.operands, strict=True)):
        return value
    return values.make(op, operands, value.dtype, value.attribute)


def _fold_binary(op: str, x: Value, y: Value) -> Value | None:
    """Two integers or bools one of which is all zeros, or all ones beside an and."""
    for this, other, is_left in ((x, y, True), (y, x, False)):
        if this.op != "constant":
            continue
        is_zero = not any(this.attribute)
        if is_zero and op == "and":
            return this
        if is_zero and (op != "sub" or not is_left):
            return other
        if this.dtype == BOOL and not is_zero and op in ("and", "or"):
            return other if op == "and" else this
    return None
