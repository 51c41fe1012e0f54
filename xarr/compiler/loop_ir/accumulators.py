"""Accumulating the elements of a reduction: what they begin with, how they combine, what comes out.

A reduction combines

* by operations that need no order, one for each of its arrays: add, multiply, maximum, minimum, and, or, xor,
* by `xarr.ir.computations.arg_extremum` over counted indices, which needs no order either once NaN counts as
  ahead of everything and the least index decides between equals,
* by any other computation, element after element in row-major order, as the products of complex numbers: where
  parts are infinite, the order shows, and no number is neutral, since (1 + 0 i) (inf + 0 i) is inf + NaN i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from xarr.compiler.functions import apply_elementwise, apply_graph, register_dtype
from xarr.compiler.loop_ir.loops import Accumulator
from xarr.compiler.loop_ir.scalars import DType, Value, Values
from xarr.dtypes import COMPLEX, FLOAT, accumulator_dtype, real_part_of
from xarr.ir import ops
from xarr.ir.computations import arg_direction, monoids
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType

#: By operations the terms that leave what they leave if there are more of them.
_REPEATABLE: Final[dict[tuple[type[ops.Binary], ...], Literal["any", "zero", "one"]]] = {
    (ops.Maximum, ops.Minimum, ops.And, ops.Or): "any",
    (ops.Add, ops.Xor): "zero",
    (ops.Multiply,): "one",
}


@dataclass(frozen=True)
class Combination:
    """The computation of a reduction, as loops see it.

    monoids     the operation for each array, if each is combined on its own and in any order
    direction   "GT" or "LT" for the index of a greatest or least element, its indices counting the elements
    arrays      what is accumulated: the reduction's arrays, the indices in a type of the values' width
    """

    node: Node
    arrays: tuple[Node, ...]
    monoids: tuple[type[ops.Binary], ...] | None
    direction: str | None

    @property
    def computation(self) -> Graph:
        return self.node.op.expect(ops.Reduce).computation

    @property
    def in_order(self) -> bool:
        """Whether elements have to meet in row-major order."""
        return self.monoids is None and self.direction is None

    @property
    def held(self) -> tuple[DType, ...]:
        """The types of partial results: narrow floats are accumulated in float32, as NumPy does it.

        Complex numbers are accumulated as two floats, their parts.
        """
        return tuple(real_part_of(dtype) for dtype in self._numbers for _ in range(1 + (dtype.kind == "c")))

    @property
    def _numbers(self) -> tuple[DType, ...]:
        """The types of what is accumulated, one for each array."""
        if self.in_order:
            return tuple(register_dtype(array.dtype) for array in self.arrays)
        return tuple(accumulator_dtype(array.dtype) for array in self.arrays)

    def _whole(self, parts: Sequence[Value]) -> tuple[Value, ...]:
        """The accumulated values, one for each array: complex numbers of their parts."""
        left = iter(parts)
        return tuple(
            x.values.complex(x, next(left)) if dtype.kind == "c" else x
            for dtype, x in ((dtype, next(left)) for dtype in self._numbers)
        )

    def terms(self, elements: Sequence[Value]) -> tuple[Value, ...]:
        """Elements of the arrays as partial results."""
        rows = zip(self.arrays, elements, self._numbers, strict=True)
        return _parts([_convert(value, array.dtype, held) for array, value, held in rows])

    def starts(self, values: Values, initial: Sequence[Value]) -> tuple[Value, ...]:
        """Neutral elements; the initial values themselves where the computation is not known."""
        if self.in_order:
            return _parts(initial)
        if self.direction is None:
            assert self.monoids is not None
            rows = zip(self.monoids, self._numbers, strict=True)
            return _parts([values.constant(op.identity(dtype), dtype) for op, dtype in rows])
        value, index = self.held
        behind = ops.Maximum if self.direction == "GT" else ops.Minimum
        return values.constant(behind.identity(value), value), values.constant(np.iinfo(index).max, index)

    def combine(self, left: Sequence[Value], right: Sequence[Value]) -> tuple[Value, ...]:
        """Two partial results as one."""
        if self.direction is not None:
            return _extremum(self.direction, left, right)
        left, right = self._whole(left), self._whole(right)
        if self.monoids is None:
            results = apply_graph(self.computation, (*left, *right))
            assert results is not None, "no loop computes this computation"
            return _parts(results)
        combinations = [
            apply_elementwise(op(), (x.dtype, x.dtype), (x, y))
            for op, x, y in zip(self.monoids, left, right, strict=True)
        ]
        assert None not in combinations, "no loop combines these"
        return _parts([value for value in combinations if value is not None])

    def _factors(self, terms: Sequence[Value]) -> tuple[Value, ...]:
        """The two numbers whose product a sum adds, which need not be rounded before."""
        is_product = isinstance(self.arrays[0].op, ops.Multiply | ops.Power) and terms[0].op == "mul"
        if self.monoids != (ops.Add,) or not is_product or self._numbers[0].kind != "f":
            return ()
        return terms[0].operands

    def step(
        self, held: Sequence[Value], terms: Sequence[Value]
    ) -> tuple[tuple[Value, ...], tuple[Value, ...], tuple[Value, ...]] | None:
        """A shorter way of an iteration, for one element that comes after all those held, if there is one.

        Values of the iteration, names that stand for them, and what is held afterwards.
        """
        if self.direction is not None:
            names = _arguments(terms)
            return tuple(terms), names, _later_extremum(self.direction, held, names)
        factors = self._factors(terms)
        if not factors:
            return None
        names = _arguments(factors)
        return factors, names, (names[0].fma(names[1], held[0]),)

    def finish(self, initial: Sequence[Value], totals: Sequence[Value]) -> tuple[Value, ...]:
        """The results from all elements, with the initial values."""
        if self.in_order:
            return self._whole(totals)
        dtypes = [each.dtype for each in self.node.operands[: len(self.arrays)]]
        if self.direction is not None:
            value, index = totals
            # No element is ahead of the neutral one: all are equal to it, and the first is the first.
            position = index.eq(np.iinfo(index.dtype).max).select(0, index)
            rows = zip((value, position), self.held, dtypes, strict=True)
            partial_results = [_convert(each, held, wanted) for each, held, wanted in rows]
            results = apply_graph(self.computation, (*initial, *partial_results))
            assert results is not None
            return results
        pairs = zip(initial, dtypes, self._numbers, strict=True)
        first = _parts([_convert(each, dtype, held) for each, dtype, held in pairs])
        combined = zip(self._whole(self.combine(first, totals)), self._numbers, dtypes, strict=True)
        return tuple(_convert(each, held, dtype) for each, held, dtype in combined)

    def accumulator(self, elements: Sequence[Value], initial: Sequence[Value]) -> Accumulator:
        """Accumulate these elements of each iteration."""
        accumulator = self.accumulator_of_terms(self.terms(elements), initial)
        step = self.step(accumulator.left, accumulator.terms)
        if step is None:
            return accumulator
        terms, arguments, held = step
        return replace(accumulator, terms=terms, arguments=arguments, step=held)

    def accumulator_of_terms(self, terms: Sequence[Value], initial: Sequence[Value] = ()) -> Accumulator:
        """Accumulate these partial results, one of each iteration."""
        values = terms[0].values
        left, right = _arguments(terms), _arguments(terms)
        results = tuple(map(_result, terms))
        combined = self.combine(left, right)
        starts, repeatable = self.starts(values, initial), self._repeatable() if len(terms) == 1 else ""
        return Accumulator(starts, tuple(terms), left, right, combined, results, repeatable=repeatable)

    def _repeatable(self) -> Literal["", "any", "zero", "one"]:
        """The terms of one array that may be accumulated any number of times, as `Accumulator` says."""
        for kinds, repeatable in _REPEATABLE.items():
            if self.monoids is not None and self.monoids[0] in kinds:
                return repeatable
        return ""

    def extremum(self, element: Value) -> Accumulator:
        """Accumulate only the value of `direction`, NaN if one is; its zero may have the other sign."""
        term = _convert(element, self.arrays[0].dtype, self.held[0])
        ((left,), (right,)) = _arguments((term,)), _arguments((term,))
        ahead = right.gt(left) if self.direction == "GT" else right.lt(left)
        winner = ahead.select(right, left)
        if term.dtype.kind == "f":
            winner = right.isnan().select(right, winner)
        start = self.starts(term.values, ())[:1]
        results = (_result(term),)
        return Accumulator(start, (term,), (left,), (right,), (winner,), results, repeatable="any")

    def is_extremum(self, element: Value, extremum: Value) -> Value:
        """Whether an element is what `extremum` accumulated."""
        value = _convert(element, self.arrays[0].dtype, self.held[0])
        if value.dtype.kind != "f":
            return value.eq(extremum)
        # One comparison with what lies just behind the extremum: NaN is not behind either, nor equal.
        greatest = self.direction == "GT"
        end = value.constant((ops.Maximum if greatest else ops.Minimum).identity(value.dtype))
        behind = apply_elementwise(ops.NextAfter(), (value.dtype, value.dtype), (extremum, end))
        assert behind is not None, "no loop finds the next number"
        behind = extremum.isnan().select(-end, behind)
        return ~(value.le(behind) if greatest else value.ge(behind))

    def next(self, held: Sequence[Value], elements: Sequence[Value]) -> tuple[Value, ...]:
        """A partial result and one more element, which comes after those in it."""
        terms = self.terms(elements)
        if self.direction is not None:
            return _later_extremum(self.direction, held, terms)
        factors = self._factors(terms)
        return (factors[0].fma(factors[1], held[0]),) if factors else self.combine(held, terms)


def outer_accumulator(inner: Accumulator, terms: tuple[Value, ...]) -> Accumulator:
    """The accumulator of a loop whose iterations end with these results of `inner`."""
    results = tuple(map(_result, inner.results))
    return Accumulator(inner.identities, terms, inner.left, inner.right, inner.combined, results)


def _parts(values: Sequence[Value]) -> tuple[Value, ...]:
    """The values, of complex numbers their parts."""
    pairs = [(x.real(), x.imag()) if x.dtype.kind == "c" else (x,) for x in values]
    return tuple(part for pair in pairs for part in pair)


def _arguments(values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(each.values.make("argument", (), each.dtype, "x", unique=True) for each in values)


def _result(term: Value) -> Value:
    """The name of a result that a loop accumulates of such terms."""
    return term.values.make("result", (), term.dtype, "r", unique=True)


def _convert(value: Value, dtype: DType, wanted: DType) -> Value:
    """An element of `dtype`, as registers hold it, as one of `wanted`."""
    if dtype == wanted:
        return value
    if register_dtype(dtype) == dtype and register_dtype(wanted) == wanted:
        return value.convert(wanted)
    if value.dtype == wanted:
        return value
    converted = apply_elementwise(ops.Convert(wanted), (dtype,), (value,))
    assert converted is not None, f"no loop converts {dtype} to {wanted}"
    return converted


def _extremum(direction: str, left: Sequence[Value], right: Sequence[Value]) -> tuple[Value, ...]:
    """The pair that is ahead: NaN first, then by value, then by the lesser index."""
    (a, i), (b, j) = left, right
    ahead, tie = _later(direction, a, b), a.eq(b)
    if a.dtype.kind == "f":
        tie = tie | (a.isnan() & b.isnan())
    chosen = ahead | (tie & j.lt(i))
    return chosen.select(b, a), chosen.select(j, i)


def _later_extremum(direction: str, left: Sequence[Value], right: Sequence[Value]) -> tuple[Value, ...]:
    """The pair that is ahead, as `_extremum` says, where the index on the right is the greater one."""
    (a, i), (b, j) = left, right
    if a.dtype.kind != "f":
        chosen = _later(direction, a, b)
        return chosen.select(b, a), chosen.select(j, i)
    # One select in the other: processors whose masks are whole vectors are slow to combine masks.
    behind, ordered = b.le(a) if direction == "GT" else b.ge(a), a.eq(a)
    return behind.select(a, ordered.select(b, a)), behind.select(i, ordered.select(j, i))


def _later(direction: str, a: Value, b: Value) -> Value:
    """Whether b is ahead of a."""
    if a.dtype.kind != "f":
        return b.gt(a) if direction == "GT" else b.lt(a)
    behind = b.le(a) if direction == "GT" else b.ge(a)
    return ~behind & a.eq(a)


# --- which reduction it is -----------------------------------------------------------------------------------


def combination(node: Node) -> Combination:
    """The computation of a Reduce."""
    op = node.op.expect(ops.Reduce)
    count = len(node.operands) // 2
    arrays = node.operands[:count]
    pairwise = monoids(op.computation)
    if any(
        x.dtype in COMPLEX and each is not ops.Add for x, each in zip(arrays, pairwise or (), strict=False)
    ):
        pairwise = None
    direction = None if pairwise is not None else arg_direction(node)
    if direction is not None:
        arrays = (arrays[0], _axis_indices(arrays[0], op.dimensions[0]))
    return Combination(node, arrays, pairwise, direction)


def _axis_indices(values: Node, axis: int) -> Node:
    """Indices along an axis, of the width in which the values are held."""
    narrow = values.dtype.itemsize <= 4 and values.shape[axis] < 2**31 - 1
    return Node(ops.Iota(TensorType(values.shape, np.dtype(np.int32 if narrow else np.int64)), axis))


def computes(node: Node) -> bool:
    """Whether loops can accumulate what a Reduce reduces, and combine it."""
    op = node.op.expect(ops.Reduce)
    dtypes = tuple(operand.dtype for operand in node.operands[: len(node.operands) // 2])
    return _is_lowered(op.computation, dtypes)


@lru_cache(1024)
def _is_lowered(computation: Graph, dtypes: tuple[DType, ...]) -> bool:
    values = Values()
    every = (*dtypes, *dtypes)
    operands = [values.argument(str(k), register_dtype(dtype)) for k, dtype in enumerate(every)]
    results = apply_graph(computation, operands)
    if results is None:
        return False
    known = monoids(computation)
    if known is None:
        return True
    return all(
        dtype not in FLOAT or op not in (ops.And, ops.Or, ops.Xor)
        for op, dtype in zip(known, dtypes, strict=True)
    )
