"""Random graphs of which it is known how far two correct backends may differ.

Each node has a `Bound`.  Integers, bools, movement and the operations of IEEE 754 are exact: every backend
gives the same bits.  Sums of floats and transcendental functions are not, and what is computed from them
differs by no more than `error`, which is carried along as numerical analysis does; where no bound can be
carried (rounding to an integer, a comparison) only exact operands are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf, prod
from random import Random
from typing import Any, Final

import numpy as np

from xarr.dtypes import FLOAT, INTEGER, SIGNED, bfloat16, info
from xarr.ir import ops
from xarr.ir.computations import arg_extremum
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
Shape = tuple[int, ...]

PRED: Final[DType] = np.dtype(np.bool_)
FLOATS: Final[list[DType]] = [np.dtype(n) for n in ("float16", "float32", "float64")] + [np.dtype(bfloat16)]
INTEGERS: Final[list[DType]] = [
    np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
]
DTYPES: Final = [PRED, *INTEGERS, *FLOATS]
#: A float that may be larger counts as one that may be infinite or NaN.
LARGEST: Final = {dtype: 1e4 if dtype.itemsize == 2 else 1e30 for dtype in FLOATS}
#: Elements of a node at most.
MOST: Final = 2**17
SPECIAL: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e-7, 3e38, -1e300, 5e-324, np.inf, -np.inf, np.nan)
#: Their derivatives are nowhere above 1, and their errors are a few ULP of a result that is at most 2.
GENTLE: Final = (ops.Tanh, ops.Sine, ops.Cosine, ops.Logistic, ops.Erf, ops.Atan)
EXACT_OF_FLOATS: Final = (
    *(ops.Floor, ops.Ceil, ops.RoundNearestEven, ops.RoundNearestAfz, ops.Sign, ops.Sqrt, ops.Remainder),
    *(ops.Divide,),
)
OF_ANY_FLOATS: Final = (ops.Add, ops.Subtract, ops.Multiply, ops.Maximum, ops.Minimum, ops.Negate, ops.Abs)
OF_INTEGERS: Final = (
    *(ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Remainder, ops.Power, ops.Maximum, ops.Minimum),
    *(ops.And, ops.Or, ops.Xor, ops.Not, ops.Negate, ops.ShiftLeft, ops.ShiftRightArithmetic),
    *(ops.ShiftRightLogical, ops.Popcnt, ops.CountLeadingZeros),
)
OF_SIGNED: Final = (ops.Abs, ops.Sign)
OF_BOOLS: Final = (ops.And, ops.Or, ops.Xor, ops.Not, ops.Add, ops.Multiply, ops.Maximum, ops.Minimum)
UNARY: Final = frozenset(
    {
        *(ops.Negate, ops.Abs, ops.Not, ops.Popcnt, ops.CountLeadingZeros, ops.Sign, ops.Sqrt),
        *(ops.Floor, ops.Ceil, ops.RoundNearestEven, ops.RoundNearestAfz),
    }
)


@dataclass(frozen=True)
class Bound:
    """`size`: no element is larger; infinite if there may be infinities and NaNs.  `error`: 0 if exact.

    `zeros`: whether the sign of a zero is left to the backend.
    """

    size: float = inf
    error: float = 0.0
    zeros: bool = False

    @property
    def exact(self) -> bool:
        return not self.error


@dataclass(frozen=True)
class Sample:
    """A graph, operands for it, and the bound of each result."""

    graph: Graph
    inputs: tuple[Array, ...]
    bounds: tuple[Bound, ...]


def sample(random: Random, count: int = 50, most: int = MOST) -> Sample:
    """A graph of about `count` operations on arrays of up to `most` elements."""
    return _Builder(random, most).run(count)


def epsilon(dtype: DType) -> float:
    return float(info(dtype).eps)


def computation(op: type[Op], dtype: DType) -> Graph:
    scalars = [parameter(TensorType((), dtype)) for _ in range(2)]
    return Graph(scalars, [Node(op(), tuple(scalars))], "combine")


class _TooLarge(Exception):
    """An inexact number may be infinite on one backend and not on another."""


@dataclass
class _Builder:
    random: Random
    most: int
    bounds: dict[Node, Bound] = field(default_factory=dict)
    inputs: dict[Node, Array] = field(default_factory=dict)

    def run(self, count: int) -> Sample:
        self.main = self._main_shape()
        self.dims = self._any_dims(len(self.main))
        self.sizes = [1, *self.main, *(self.random.randint(1, 9) for _ in range(2))]
        for _ in range(self.random.randint(1, 3)):
            self.leaf(self.random.choice(DTYPES), self.main)
        while len(self.bounds) < count:
            self.step()
        used = {operand for node in self.bounds for operand in node.operands}
        nodes = [node for node in self.bounds if node not in self.inputs]
        ends = [node for node in nodes if node not in used]
        chosen = self.random.sample(ends, min(len(ends), self.random.randint(1, 12)))
        results = [*chosen, *self.random.sample(nodes, self.random.randint(0, 3))]
        results = list(dict.fromkeys(results or nodes[-1:]))
        graph = Graph(list(self.inputs), results)
        return Sample(graph, tuple(self.inputs.values()), tuple(self.bounds[node] for node in results))

    def _main_shape(self) -> Shape:
        """The shape of most arrays: small, or with sizes beyond a register, or beyond a block of loops."""
        kind = self.random.random()
        if kind < 0.3:
            return tuple(self.random.randint(1, 9) for _ in range(self.random.randint(0, 4)))
        if kind < 0.65:
            large = [17, 33, 70, 129, 300, 1025, 4097]
        else:
            large = [256, 257, 1100, 8200, 9001, 40000, 70001, 70016, 131000]
        sizes = [self.random.choice([size for size in large if size <= self.most] or [self.most])]
        while len(sizes) < 4 and self.random.random() < 0.7:
            sizes.append(self.random.choice([1, 2, 3, 7, 13, 17, 33, 129, 257, 301]))
        while prod(sizes) > self.most:
            sizes.pop()
        self.random.shuffle(sizes)
        return tuple(sizes)

    def shape(self) -> Shape:
        """One of its own, or what is left of the main one without some dimensions."""
        if self.random.random() < 0.8:
            return tuple(size for size in self.main if self.random.random() < 0.7)
        sizes = tuple(self.random.choice(self.sizes) for _ in range(self.random.randint(0, 4)))
        return sizes if prod(sizes) <= self.most else self.main

    # --- nodes -------------------------------------------------------------------------------------------

    def add(self, op: Op, *operands: Node, bound: Bound) -> Node:
        node = Node(op, operands)
        if node.dtype not in FLOATS:
            bound = Bound()
        elif bound.size > LARGEST[node.dtype]:
            if not bound.exact:
                raise _TooLarge
            bound = Bound(inf, 0.0, bound.zeros)
        self.bounds[node] = bound
        if not bound.exact and bound.size > 16:
            self._scale(node, bound)
        return node

    def _scale(self, node: Node, bound: Bound) -> None:
        """Scale a node down by a power of two, for what comes."""
        factor = self.constant(2.0 ** -int(np.log2(bound.size)), node.dtype)
        self.multiply(node, self.fit(factor, node.shape))

    def constant(self, value: Any, dtype: DType) -> Node:
        with np.errstate(all="ignore"):
            array = np.asarray(value).astype(dtype)
        return self.add(ops.Constant.of(array), bound=Bound(_size(array)))

    def leaf(self, dtype: DType, shape: Shape) -> Node:
        array = self._numbers(dtype, shape)
        node = parameter(TensorType(shape, dtype))
        self.bounds[node] = Bound(_size(array)) if dtype in FLOATS else Bound()
        self.inputs[node] = array
        return node

    def _numbers(self, dtype: DType, shape: Shape) -> Array:
        generator = np.random.default_rng(self.random.randrange(2**32))
        if dtype == PRED:
            return generator.integers(0, 2, shape).astype(bool)
        if dtype in INTEGER:
            low, high = info(dtype).min, info(dtype).max
            few = generator.integers(max(low, -9), 10, shape)
            wide = generator.integers(low, high, shape, dtype, endpoint=True)
            return np.where(generator.integers(0, 2, shape) > 0, few.astype(dtype), wide)
        numbers = generator.uniform(-4, 4, shape)
        if self.random.random() < 0.2:
            numbers = np.where(generator.random(shape) < 0.5, numbers, generator.choice(SPECIAL, shape))
        with np.errstate(all="ignore"):
            return np.asarray(numbers.astype(dtype))

    def pick(self, wanted: Callable[[Node], bool] = lambda node: True) -> Node:
        """A node, rather one of the last."""
        nodes = [node for node in self.bounds if wanted(node)]
        if not nodes or self.random.random() < 0.03:
            return self.leaf(self.random.choice(DTYPES), self.shape())
        return nodes[-1 - int(min(len(nodes) - 1, self.random.expovariate(0.15)))]

    def like(self, node: Node, dtype: DType | None = None, exact: bool = False) -> Node:
        """Another node of the same shape and of a dtype, if need be by way of moving and converting."""
        dtype = dtype or node.dtype

        def fits(other: Node) -> bool:
            return other.dtype == dtype and (self.bounds[other].exact or not exact)

        same = [other for other in self.bounds if fits(other) and other.shape == node.shape]
        if same and self.random.random() < 0.5:
            return self.random.choice(same)
        others = [other for other in self.bounds if fits(other) and other is not node]
        if not others or self.random.random() < 0.1:
            return self.leaf(dtype, node.shape)
        return self.fit(self.random.choice(others[-12:]), node.shape)

    def fit(self, node: Node, shape: Shape) -> Node:
        """The node broadcast, cut or padded to a shape."""
        bound = self.bounds[node]
        if node.shape == shape:
            return node
        dims = _embed(node.shape, shape)
        if dims is not None:
            return self.add(ops.BroadcastInDim(shape, dims), node, bound=bound)
        if len(node.shape) != len(shape):
            index = tuple(self.random.randrange(size) for size in node.shape)
            after = tuple(k + 1 for k in index)
            one = self.add(ops.Slice(index, after, (1,) * len(index)), node, bound=bound)
            return self.fit(self.add(ops.Reshape(()), one, bound=bound), shape)
        low = tuple(self.random.randint(-2, 2) for _ in shape)
        gaps = [(a, b, k) for a, b, k in zip(shape, node.shape, low, strict=True)]
        low = tuple(k if b + k > 0 else 0 for _, b, k in gaps)
        high = tuple(a - b - k for a, b, k in zip(shape, node.shape, low, strict=True))
        filler = self.constant(self.random.choice([0, 1, 2.5]), node.dtype)
        both = Bound(max(bound.size, 2.5), bound.error, bound.zeros)
        return self.add(ops.Pad(low, high, (0,) * len(shape)), node, filler, bound=both)

    # --- one more operation ------------------------------------------------------------------------------

    def step(self) -> None:
        kinds = [self.arithmetic] * 12 + [self.gentle, self.convert, self.compare, self.select] * 2
        kinds += [self.move] * 3 + [self.reduce] * 2 + [self.normalise] * 3
        kinds += [self.extremum, self.pairs]
        kinds += [self.clamp, self.pad, self.concatenate, self.iota]
        with suppress(_TooLarge):
            self.random.choice(kinds)()

    def arithmetic(self) -> None:
        x = self.pick()
        if x.dtype in FLOATS:
            self.float_arithmetic(x)
            return
        table = OF_BOOLS if x.dtype == PRED else OF_INTEGERS + (OF_SIGNED if x.dtype in SIGNED else ())
        op = self.random.choice(table)
        self.add(op(), *((x,) if op in UNARY else (x, self.like(x))), bound=Bound())

    def float_arithmetic(self, x: Node) -> None:
        exact = self.bounds[x].exact
        op = self.random.choice(OF_ANY_FLOATS + EXACT_OF_FLOATS if exact else OF_ANY_FLOATS)
        if op in UNARY:
            bound = self.bounds[x]
            size = max(bound.size, 1.0) + 1 if op in EXACT_OF_FLOATS else bound.size
            size = inf if op is ops.Sqrt else size
            self.add(op(), x, bound=Bound(size, bound.error, bound.zeros))
            return
        y = self.like(x, exact=op in EXACT_OF_FLOATS)
        if op in EXACT_OF_FLOATS:
            if not self.bounds[y].zeros:
                self.add(op(), x, y, bound=Bound(zeros=self.bounds[x].zeros))
            return
        self.combine(op, x, y)

    def combine(self, op: type[Op], x: Node, y: Node) -> Node | None:
        """The sum and its kind, of floats that may be inexact."""
        a, b = self.bounds[x], self.bounds[y]
        if (not a.exact or not b.exact) and inf in (a.size, b.size):
            return None
        if op is ops.Multiply:
            return self.multiply(x, y)
        zeros = a.zeros or b.zeros
        if op in (ops.Maximum, ops.Minimum):
            bound = Bound(max(a.size, b.size), max(a.error, b.error), True)
        else:
            bound = self._round(x.dtype, a.size + b.size, a.error + b.error, zeros)
        return self.add(op(), x, y, bound=bound)

    def multiply(self, x: Node, y: Node) -> Node:
        a, b = self.bounds[x], self.bounds[y]
        size = a.size * b.size if inf not in (a.size, b.size) else inf
        error = 0.0 if a.exact and b.exact else a.size * b.error + b.size * a.error + a.error * b.error
        return self.add(ops.Multiply(), x, y, bound=self._round(x.dtype, size, error, a.zeros or b.zeros))

    def _round(self, dtype: DType, size: float, error: float, zeros: bool) -> Bound:
        return Bound(size, error + epsilon(dtype) * size if error else 0.0, zeros)

    def finite(self, node: Node) -> bool:
        return node.dtype in FLOATS and self.bounds[node].size < inf

    def gentle(self) -> None:
        x = self.pick(self.finite)
        if self.finite(x):
            error = self.bounds[x].error + 16 * epsilon(x.dtype)
            self.add(self.random.choice(GENTLE)(), x, bound=Bound(2.0, error, True))

    def convert(self) -> None:
        x, dtype = self.pick(), self.random.choice(DTYPES)
        bound = self.bounds[x]
        if dtype not in FLOATS:
            if bound.exact:
                self.add(ops.Convert(dtype), x, bound=Bound())
            return
        if x.dtype not in FLOATS:
            size = 1.0 if x.dtype == PRED else float(np.iinfo(x.dtype).max) + 1
            self.add(ops.Convert(dtype), x, bound=Bound(size))
            return
        # An inexact number that is too large for the new type would become infinite, or not.
        if bound.exact or bound.size < LARGEST[dtype]:
            self.add(ops.Convert(dtype), x, bound=self._round(dtype, bound.size, bound.error, bound.zeros))

    def compare(self) -> None:
        x = self.pick(lambda node: self.bounds[node].exact)
        y = self.like(x, exact=True)
        direction = self.random.choice(["EQ", "NE", "LT", "LE", "GT", "GE"])
        self.add(ops.Compare(direction), x, y, bound=Bound())

    def select(self) -> None:
        x = self.pick()
        y = self.like(x)
        a, b = self.bounds[x], self.bounds[y]
        if (a.exact and b.exact) or inf not in (a.size, b.size) or x.dtype not in FLOATS:
            predicate = self.like(x, PRED)
            bound = Bound(max(a.size, b.size), max(a.error, b.error), a.zeros or b.zeros)
            self.add(ops.Select(), predicate, x, y, bound=bound)

    def clamp(self) -> None:
        x = self.pick()
        low, high = (self.fit(self.constant(k, x.dtype), x.shape) for k in (0, 1))
        if self.bounds[x].exact or self.finite(x):
            bound = self.bounds[x]
            self.add(ops.Clamp(), low, x, high, bound=Bound(max(bound.size, 1.0), bound.error, True))

    def move(self) -> None:
        x = self.pick()
        op = self.random.choice(
            [self._broadcast, self._slice, self._reverse, self._transpose, self._reshape]
        )(x)
        if op is not None and prod(Node(op, (x,)).shape) <= self.most:
            self.add(op, x, bound=self.bounds[x])

    def _broadcast(self, x: Node) -> Op | None:
        if len(x.shape) > 3:
            return None
        sizes: list[int] = []
        dims: list[int] = []
        for axis, size in enumerate(x.shape):
            if len(sizes) - axis + len(x.shape) < 4 and self.random.random() < 0.4:
                sizes.append(self.random.choice(self.sizes))
            dims.append(len(sizes))
            sizes.append(self.random.choice(self.sizes) if size == 1 else size)
        if len(sizes) < 4:
            sizes.append(self.random.choice(self.sizes))
        return ops.BroadcastInDim(tuple(sizes), tuple(dims))

    def _slice(self, x: Node) -> Op:
        start, limit, step = [], [], []
        for size in x.shape:
            start.append(self.random.choice([0, 0, self.random.randrange(size)]))
            limit.append(self.random.choice([size, size, self.random.randint(start[-1] + 1, size)]))
            step.append(self.random.choice([1, 1, 2, 3]))
        return ops.Slice(tuple(start), tuple(limit), tuple(step))

    def _reverse(self, x: Node) -> Op:
        return ops.Reverse(tuple(axis for axis in range(len(x.shape)) if self.random.random() < 0.5))

    def _transpose(self, x: Node) -> Op:
        axes = list(range(len(x.shape)))
        self.random.shuffle(axes)
        return ops.Transpose(tuple(axes))

    def _reshape(self, x: Node) -> Op:
        """Dimensions joined, split in two, of size 1 put in and left out."""
        sizes = list(x.shape)
        for _ in range(self.random.randint(1, 2)):
            at = self.random.randint(0, len(sizes))
            kind = self.random.randrange(4)
            if kind == 0 and at + 1 < len(sizes):
                sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
            elif kind == 1 and at < len(sizes) < 4:
                factor = self.random.choice([k for k in range(1, 10) if sizes[at] % k == 0])
                sizes[at : at + 1] = [factor, sizes[at] // factor]
            elif kind == 2 and len(sizes) < 4:
                sizes.insert(at, 1)
            elif 1 in sizes:
                sizes.remove(1)
        return ops.Reshape(tuple(sizes))

    def pad(self) -> None:
        x = self.pick()
        low = tuple(self.random.randint(-2, 3) for _ in x.shape)
        high = tuple(self.random.randint(-2, 3) for _ in x.shape)
        interior = tuple(self.random.choice([0, 0, 0, 0, 0, 1]) for _ in x.shape)
        sizes = [n + a + b + (n - 1) * k for n, a, b, k in zip(x.shape, low, high, interior, strict=True)]
        if all(size > 0 for size in sizes) and prod(sizes) <= self.most:
            filler = self.like(self.constant(0, x.dtype))
            a, b = self.bounds[x], self.bounds[filler]
            if (a.exact and b.exact) or inf not in (a.size, b.size):
                bound = Bound(max(a.size, b.size), max(a.error, b.error), a.zeros or b.zeros)
                self.add(ops.Pad(low, high, interior), x, filler, bound=bound)

    def concatenate(self) -> None:
        x = self.pick(lambda node: bool(node.shape))
        if not x.shape:
            return
        dim = self.random.randrange(len(x.shape))
        parts = [x]
        for _ in range(self.random.randint(0, 2)):
            y = self.like(x)
            size = self.random.randint(1, min(y.shape[dim], 9))
            limit = (*y.shape[:dim], size, *y.shape[dim + 1 :])
            parts.append(
                self.add(ops.Slice((0,) * len(limit), limit, (1,) * len(limit)), y, bound=self.bounds[y])
            )
        self.random.shuffle(parts)
        bounds = [self.bounds[part] for part in parts]
        largest, error = max(b.size for b in bounds), max(b.error for b in bounds)
        total = sum(part.shape[dim] for part in parts) * x.tensor_type.size // x.shape[dim]
        if (not error or largest < inf) and total <= self.most:
            bound = Bound(largest, error, any(b.zeros for b in bounds))
            self.add(ops.Concatenate(dim), *parts, bound=bound)

    def iota(self) -> None:
        shape, dtype = self.shape(), self.random.choice(DTYPES[1:])
        if shape:
            dim = self.random.randrange(len(shape))
            self.add(ops.Iota(TensorType(shape, dtype), dim), bound=Bound(float(shape[dim])))

    def normalise(self) -> None:
        """Combine what was reduced with what it was reduced from, as softmax does."""
        inner = self.random.random() < 0.8
        x = self.pick(lambda node: node.shape == self.main if inner else len(node.shape) > 0)
        dims = self._some_dims(x)
        before = len(self.bounds)
        self.reduce(x, dims)
        for total in list(self.bounds)[before:]:
            if isinstance(total.op, ops.Reduce):
                remaining = tuple(axis for axis in range(len(x.shape)) if axis not in dims)
                wide = self.add(ops.BroadcastInDim(x.shape, remaining), total, bound=self.bounds[total])
                if x.dtype in FLOATS:
                    self.combine(self.random.choice((ops.Subtract, ops.Multiply, ops.Maximum)), x, wide)
                else:
                    op = self.random.choice((ops.Xor, ops.Add, ops.Maximum))
                    self.add(op(), x, wide, bound=Bound())

    def _some_dims(self, x: Node) -> Shape:
        if x.shape == self.main and self.random.random() < 0.7:
            return self.dims  # so that one group can hold several reductions
        return self._any_dims(len(x.shape))

    def _any_dims(self, rank: int) -> Shape:
        kind = self.random.randrange(4)
        if kind == 0 and rank:
            return (rank - 1,)
        if kind == 1:
            return tuple(range(self.random.randint(0, rank)))
        return tuple(axis for axis in range(rank) if self.random.random() < 0.5)

    def reduce(self, x: Node | None = None, dims: Shape | None = None) -> None:
        x = x or self.pick()
        dims = self._some_dims(x) if dims is None else dims
        bound = self.bounds[x]
        first = self.like(self.constant(1, x.dtype), exact=True)
        if x.dtype not in FLOATS:
            bits = (ops.Maximum, ops.Minimum, ops.And, ops.Or, ops.Xor)
            combiner = self.random.choice((ops.Add, ops.Multiply, *bits))
            self.add(ops.Reduce(dims, computation(combiner, x.dtype)), x, first, bound=Bound())
            return
        op = self.random.choice((ops.Maximum, ops.Minimum, ops.Add))
        start = self.bounds[first]
        size = max(bound.size, start.size)
        error = bound.error
        if op is ops.Add:
            count = prod(x.shape[axis] for axis in dims)
            size = bound.size * count + start.size
            error = count * error + 2 * epsilon(x.dtype) * (count + 1) * size
        if (bound.exact and op is not ops.Add) or size < inf:
            bound = Bound(size, error, True)
            self.add(ops.Reduce(dims, computation(op, x.dtype)), x, first, bound=bound)

    def extremum(self) -> None:
        """The index of the greatest or least element, and the element."""
        x = self.pick(lambda node: bool(node.shape) and self.bounds[node].exact)
        if not x.shape or not self.bounds[x].exact:
            return
        axis, dtype = self.random.randrange(len(x.shape)), self.random.choice(INTEGERS[2:4])
        computation = arg_extremum(self.random.choice(["GT", "LT"]), x.dtype, dtype)
        positions = self.add(ops.Iota(TensorType(x.shape, dtype), axis), bound=Bound())
        first = self.like(self.constant(1, x.dtype), exact=True)
        pair = Node(ops.Reduce((axis,), computation), (x, positions, first, self.constant(0, dtype)))
        bound = Bound(max(self.bounds[x].size, self.bounds[first].size), 0.0, True)
        for number, each in enumerate((bound, Bound())):
            if self.random.random() < 0.8:
                self.add(ops.GetTupleElement(number), pair, bound=each)

    def pairs(self) -> None:
        """Each row of one array with each of another: a reduction of their elements, and one of its results."""
        x = self.pick(lambda node: len(node.shape) == 2)
        if len(x.shape) != 2 or x.shape[0] * x.tensor_type.size > self.most:
            return
        y = self.like(x)
        shape = (x.shape[0], *x.shape)
        a = self.add(ops.BroadcastInDim(shape, (0, 2)), x, bound=self.bounds[x])
        b = self.add(ops.BroadcastInDim(shape, (1, 2)), y, bound=self.bounds[y])
        op = self.random.choice([ops.Add, ops.Multiply, ops.Maximum])
        both = self.combine(op, a, b) if x.dtype in FLOATS else self.add(op(), a, b, bound=Bound())
        if both is not None and both in self.bounds:
            self.reduce(both, (2,))
            last = next(reversed(self.bounds))
            if last is not both and last.shape == shape[:2]:
                self.reduce(last, (self.random.randrange(2),))


def _size(array: Array) -> float:
    if array.dtype not in FLOAT:
        return inf
    largest = float(np.max(np.abs(array.astype(np.float64)), initial=0.0))
    return largest if np.isfinite(largest) else inf


def _embed(shape: Shape, larger: Shape) -> Shape | None:
    """Dimensions of `larger` along which an array of `shape` can be broadcast."""
    dims: list[int] = []
    for size in shape:
        after = dims[-1] + 1 if dims else 0
        dim = next((k for k in range(after, len(larger)) if size in (1, larger[k])), None)
        if dim is None:
            return None
        dims.append(dim)
    return tuple(dims)


def check(results: Sequence[Array], wanted: Sequence[Array], bounds: Sequence[Bound]) -> None:
    """Raise AssertionError unless the results agree as their bounds say."""
    for number, (mine, theirs, bound) in enumerate(zip(results, wanted, bounds, strict=True)):
        problem = difference(np.asarray(mine), np.asarray(theirs), bound)
        assert problem is None, f"result {number}: {problem}"


def difference(mine: Array, theirs: Array, bound: Bound) -> str | None:
    """Say what is wrong with a result, if something is."""
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return f"got {mine.dtype}{mine.shape}, wanted {theirs.dtype}{theirs.shape}"
    if mine.dtype not in FLOAT:
        wrong = mine != theirs
    else:
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        nan = np.isnan(a) & np.isnan(b)
        with np.errstate(invalid="ignore"):
            wrong = ~nan & ~(np.abs(a - b) <= bound.error) & (a != b)
        if bound.exact and not bound.zeros:
            wrong |= ~nan & (np.signbit(a) != np.signbit(b))
    if not np.any(wrong):
        return None
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return (
        f"{int(np.sum(wrong))} of {wrong.size} differ, at {at}: got {mine[at]}, wanted {theirs[at]}, {bound}"
    )
