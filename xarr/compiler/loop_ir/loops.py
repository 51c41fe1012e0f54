"""Loop programs: what a group of fused operations becomes before it is LLVM IR.

A `Kernel` runs its phases one after the other.  A phase is a `Loop`, which holds further loops, `Store`s
and accumulators; the scalars in it are `Value`s (xarr.compiler.loop_ir.scalars), to which a loop program adds

    index    how often its loop has run (int64)
    load     an element of a buffer, the `Access` says where; with a predicate as last operand, 0 where
             that is false, and then the element need not exist
    result   what an accumulator, a carry or a search held when its loop ended

Every phase's outermost loop may be cut into ranges that run at the same time.  Offsets in buffers are
`Affine`: a constant plus multiples of index values, so that an emitter sees with which stride they move.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from itertools import pairwise
from typing import ClassVar, Final, Literal

import numpy as np

from xarr.compiler.loop_ir.scalars import BOOL, INT64, DType, Value, Values, constant_of, in_order
from xarr.errors import XarrError

Role = Literal["in", "out", "scratch", "local", "shared"]


class Runs(Flag):
    """Who runs the iterations of a loop: words that may be joined, `THREADS | LANES`; none is one after the other.

    A schedule says it, and an emitter refuses words that it does not know.
    """

    SERIAL = 0
    #: Neighbouring iterations are lanes of one instruction.
    LANES = auto()
    #: Threads of processors take ranges of the iterations of an outermost loop.
    THREADS = auto()
    #: Blocks of a grid, threads of a block, threads of a warp: each inside the one before.
    GRID = auto()
    BLOCK = auto()
    WARP = auto()
    #: The threads of a block have an iteration each, all at the same time: what a loop inside with the word `BLOCK`
    #: does, they do once, together, and each finds it done.
    LOCKSTEP = auto()

    def __str__(self) -> str:
        return " ".join(str(each.name).lower() for each in type(self) if each and each in self) or "serial"


class Memory(Enum):
    """Who reads and writes a buffer."""

    #: All iterations of all loops.
    GLOBAL = "global"
    #: One iteration of an outermost loop: the threads of its block.
    SHARED = "shared"
    #: One iteration of an outermost loop: one thread.
    LOCAL = "local"


class Atomic(Enum):
    """Combination of the value that a store writes with the one in memory, without another store between."""

    ADD = "add"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    AND = "and"
    OR = "or"
    XOR = "xor"


class LoopError(XarrError):
    """A loop program breaks a rule, or asks for what an emitter has not: an error in xarr, never of the user."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory of `size` elements in row-major order.

    `scratch` lives as long as a call of the kernel and joins its phases; `local` and `shared` belong to one iteration
    of the outermost loop, the latter to all threads of the block that runs it.  Integers of an input lie in `range`.
    """

    name: str
    dtype: DType
    size: int
    role: Role
    range: tuple[int, int] | None = None

    @property
    def memory(self) -> Memory:
        """Who reads and writes it, as its role says."""
        return {"local": Memory.LOCAL, "shared": Memory.SHARED}.get(self.role, Memory.GLOBAL)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(slots=True, unsafe_hash=True)
class Affine:
    """`constant + sum(factor * value)` over int64 values."""

    terms: tuple[tuple[Value, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.constant + other) if other else self
        if not (self.terms and other.terms):
            return Affine(self.terms or other.terms, self.constant + other.constant)
        factors = dict(self.terms)
        for value, factor in other.terms:
            factors[value] = factors.get(value, 0) + factor
        terms = tuple([pair for pair in factors.items() if pair[1]])
        return Affine(terms, self.constant + other.constant)

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        if not factor:
            return Affine()
        return Affine(tuple([(v, f * factor) for v, f in self.terms]), self.constant * factor)

    def value(self, values: Values, dtype: DType = INT64) -> Value:
        """The number itself, modulo 2**bits of an integer dtype."""
        total: Value | None = None
        for value, factor in self.terms:
            each = value.convert(dtype)
            part = each if factor == 1 else each * factor
            total = part if total is None else total + part
        if total is None:
            return values.constant(np.int64(self.constant), dtype)
        return total + self.constant if self.constant else total


@dataclass(slots=True, unsafe_hash=True)
class Access:
    """Where a load reads: `buffer[constant + sum(factor * operand)]`."""

    buffer: Buffer
    factors: tuple[int, ...]
    constant: int
    masked: bool = False


@dataclass(frozen=True, eq=False)
class Exchange:
    """Combination of the value of a store with the one that is there by any computation, without another store between.

    `combined` computes from `old`, the element, and `new`, the value of the store.
    """

    old: Value
    new: Value
    combined: Value
    #: Stands in messages where an `Atomic` has its word.
    value: ClassVar[str] = "exchange"


@dataclass(frozen=True, eq=False)
class Store:
    """Write `value` to `buffer[offset]`, or combine it with the value in memory."""

    buffer: Buffer
    offset: Affine
    value: Value
    atomic: Atomic | Exchange | None = None


@dataclass(frozen=True, eq=False)
class Accumulator:
    """Accumulation over all iterations of a loop: N scalars at once, by an associative computation.

    `combined` computes from `left` and `right`, N values each, which stand for two partial results or a
    partial result and the terms of an iteration.  `identities` are neutral.

    With `step` the iterations of one loop are accumulated otherwise, one after the other: it computes from `left` and
    `arguments`, which stand for `terms`, of which there may be another number.
    `repeatable` says which terms may be accumulated any number of times with the result of once: any, zeros (-0.0 and
    then 0.0 twice is -0.0 and then 0.0), or ones.
    """

    identities: tuple[Value, ...]
    terms: tuple[Value, ...]
    left: tuple[Value, ...]
    right: tuple[Value, ...]
    combined: tuple[Value, ...]
    results: tuple[Value, ...]
    arguments: tuple[Value, ...] = ()
    step: tuple[Value, ...] = ()
    repeatable: Literal["", "any", "zero", "one"] = ""


@dataclass(frozen=True, eq=False)
class Carry:
    """A value that a loop that runs in order hands from iteration to iteration.

    An iteration finds it in `argument` and leaves `following`; the first finds `initial`, which is computed before
    the loop, and what the last leaves is the `result`.
    """

    initial: Value
    argument: Value
    following: Value
    result: Value


@dataclass(frozen=True, eq=False)
class Prefix:
    """Running totals of a vector loop.

    `running` is in each iteration what `initial` and the terms up to this one give, combined in order by an associative
    computation: `combined` computes from `left` and `right`, two totals of neighbouring terms.  `initial` is
    computed before the loop.
    """

    initial: Value
    term: Value
    left: Value
    right: Value
    combined: Value
    running: Value


@dataclass(frozen=True, eq=False)
class Search:
    """The number of the first iteration of a vector loop in which a condition holds; 0 if it holds in none.

    Such a loop has nothing else to do, and may end with that iteration.
    """

    condition: Value
    result: Value


@dataclass(eq=False)
class Loop:
    """Run the body for index = 0 … extent - 1; an extent that is a Value is computed before the loop.

    With `first`, computed before the loop and at least 0, iterations in front of it are left out.

    `runs` says who runs its iterations.  Lanes have no order, so a loop in lanes carries nothing but running totals
    (`prefixes`).
    The outermost loop of a phase may have `bounds`: then its body runs once for each range of iterations, whose first
    and whose end, one behind the last, the bounds are.  Where it `repeats`, each range costs so much by itself that
    two are no faster than one.
    `is_of_tile` says that its extent is the schedule's own, that of a tile, which no shape changes.
    The innermost loop of a grid may have a `width`: a thread may take so many neighbouring iterations together, whose
    loads and stores are vectors (`loop_ir.vector_accesses`).  It may have `sharers`: so many threads share the loops
    inside, which have one index, and keep in registers what they load and compute there (`loop_ir.held_rows`).
    `label`, of an outermost loop, names the operations that the phase computes; nothing but comments depends on it.
    A serial loop may have a `condition` of what an iteration finds: the first in which it does not hold is not run, nor
    are those behind it.  All that an iteration of such a loop carries on is computed before it stores anything.
    """

    index: Value
    extent: int | Value
    runs: Runs = Runs.SERIAL
    body: list[Loop | Store] = field(default_factory=list)
    accumulators: list[Accumulator] = field(default_factory=list)
    carries: list[Carry] = field(default_factory=list)
    prefixes: list[Prefix] = field(default_factory=list)
    search: Search | None = None
    bounds: tuple[Value, ...] = ()
    repeats: bool = False
    is_of_tile: bool = False
    width: int = 1
    sharers: int = 0
    label: str = ""
    condition: Value | None = None
    first: Value | None = None

    @property
    def vector(self) -> bool:
        """Whether neighbouring iterations are lanes of one instruction."""
        return Runs.LANES in self.runs

    @property
    def inner_runs(self) -> Runs:
        """Who runs its iterations where other loops are around it."""
        return self.runs & Runs.LANES

    @property
    def limits(self) -> list[Value]:
        """The first iteration and the extent, as far as they are computed."""
        return [each for each in (self.first, self.extent) if isinstance(each, Value)]

    @property
    def max_iterations(self) -> int:
        """The number of iterations, at most: a computed extent is the smaller of two, one of them constant."""
        if isinstance(self.extent, int):
            return self.extent
        numbers = [x for x in self.extent.operands if x.op == "constant" and x.dtype == INT64]
        return int(constant_of(numbers[0]))

    def walk(self) -> Iterator[Loop]:
        """This loop and those inside, outermost first."""
        yield self
        for part in self.body:
            if isinstance(part, Loop):
                yield from part.walk()

    def stores(self) -> Iterator[Store]:
        """Those of the loop's own iteration."""
        return (part for part in self.body if isinstance(part, Store))

    def roots(self) -> Iterator[Value]:
        """The values that the loop's own iteration needs, those of inner loops apart."""
        for part in self.stores():
            yield part.value
            yield from (value for value, _ in part.offset.terms)
        for accumulator in self.accumulators:
            yield from accumulator.terms
        for carry in self.carries:
            yield carry.following
        for prefix in self.prefixes:
            yield prefix.term
        if self.search is not None:
            yield self.search.condition
        if self.condition is not None:
            yield self.condition


@dataclass(eq=False)
class Kernel:
    """A loop program with its buffers.  Inputs and outputs are passed in this order."""

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    locals: tuple[Buffer, ...]
    phases: list[Loop]

    def __str__(self) -> str:
        return "\n".join(_LoopPrinter(self).lines)


def in_threads(phases: Iterable[Loop]) -> list[Loop]:
    """The phases, the iterations of whose outermost loops threads share."""
    threaded = list(phases)
    for phase in threaded:
        phase.runs |= Runs.THREADS
    return threaded


def lanes_if(wanted: bool) -> Runs:
    """The word of a loop in lanes, if it is wanted."""
    return Runs.LANES if wanted else Runs.SERIAL


def nest_loops(loops: Sequence[Loop]) -> Sequence[Loop]:
    """The loops, each put into the one before."""
    for outer, inner in pairwise(loops):
        outer.body.append(inner)
    return loops


def grid_loops(phase: Loop) -> list[Loop]:
    """The loops that a grid runs as one, whose points are all their indices: outermost ones, that hold nothing else.

    The outermost loop alone where no grid runs it.
    """
    loops = [phase]
    while Runs.GRID in phase.runs and len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if not isinstance(inner, Loop) or inner.runs != phase.runs or not isinstance(inner.extent, int):
            break
        loops.append(inner)
    return loops


def index_value(values: Values, name: str) -> Value:
    """A new loop index."""
    return values.make("index", (), INT64, name, unique=True)


def new_carry(values: Values, dtype: DType) -> tuple[Value, Value]:
    """The argument and the result of a new carry."""
    return values.make("argument", (), dtype, "c", unique=True), values.make(
        "result", (), dtype, "r", unique=True
    )


def load(values: Values, buffer: Buffer, offset: Affine, predicate: Value | None = None) -> Value:
    """`buffer[offset]`, or 0 where `predicate` is false."""
    access = Access(buffer, tuple(f for _, f in offset.terms), offset.constant, predicate is not None)
    operands = tuple(value for value, _ in offset.terms) + (() if predicate is None else (predicate,))
    return values.make("load", operands, buffer.dtype, access)


def copied_buffers(phase: Loop) -> tuple[Buffer, Buffer] | None:
    """The buffer that a phase fills with elements of another at the same offsets, and that other; else None."""
    *_, inner = phase.walk()
    stores = [store for loop in phase.walk() for store in loop.stores()]
    if phase.bounds or len(stores) != 1 or stores[0].atomic or list(inner.stores()) != stores:
        return None
    (store,) = stores
    access, value = store.value.attribute, store.value
    if not isinstance(access, Access) or access.masked:
        return None
    read, written = offset_of(value), store.offset
    same = dict(read.terms) == dict(written.terms) and read.constant == written.constant
    return (store.buffer, access.buffer) if same and access.buffer.size == store.buffer.size else None


def loads_of(phase: Loop) -> list[Value]:
    """The loads of a phase: of its iterations, of extents, and of what loops begin with."""
    roots: list[Value] = []
    for loop in phase.walk():
        roots += [*loop.roots(), *loop.limits]
        roots += [carry.initial for carry in loop.carries] + [each.initial for each in loop.prefixes]
        roots += [identity for accumulator in loop.accumulators for identity in accumulator.identities]
    return [value for value in in_order(*roots) if value.op == "load"]


def offset_of(load: Value) -> Affine:
    """Where a load reads in its buffer."""
    access: Access = load.attribute
    indices = load.operands[: len(access.factors)]  # The operand behind them is a predicate.
    return Affine(tuple(zip(indices, access.factors, strict=True)), access.constant)


# --- printing ----------------------------------------------------------------------------------------------

_SIGNS: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}


#: How the words of loops are printed, in this order.
_WORDS: Final = {
    Runs.GRID: "grid",
    Runs.BLOCK: "block",
    Runs.WARP: "warp",
    Runs.LOCKSTEP: "lockstep",
    Runs.THREADS: "parallel",
    Runs.LANES: "vector",
}


class _LoopPrinter:
    """The program as text: one line a value, C's signs for operators."""

    def __init__(self, kernel: Kernel) -> None:
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        for kind in ("inputs", "outputs", "scratch", "locals"):
            for buffer in getattr(kernel, kind):
                within = "" if buffer.range is None else f" of {buffer.range[0]} … {buffer.range[1]}"
                self.lines.append(f"{buffer.role} {buffer.name}: {buffer.dtype}[{buffer.size}]{within}")
        for phase in kernel.phases:
            self.loop(phase, "")

    def loop(self, loop: Loop, indent: str) -> None:
        name = self.name(loop.index, f"i{len(self.names)}")
        words = "".join(f"{_WORDS[each]} " for each in _WORDS if each in loop.runs)
        extent = self.value(loop.extent, indent) if isinstance(loop.extent, Value) else loop.extent
        initial = [self.value(carry.initial, indent) for carry in loop.carries]
        starts = [self.value(prefix.initial, indent) for prefix in loop.prefixes]
        if loop.bounds:
            first, end = (self.name(value, f"i{len(self.names)}") for value in loop.bounds)
            self.lines.append(f"{indent}{words}ranges {first} … {end} of {extent}:")
        else:
            together = f" by {loop.width}" if loop.width > 1 else ""
            together += f" held by {loop.sharers}" if loop.sharers else ""
            start = "" if loop.first is None else f"{self.value(loop.first, indent)} <= "
            self.lines.append(f"{indent}{words}for {start}{name} < {extent}{together}:")
        inner = indent + "    "
        for carry, number in zip(loop.carries, initial, strict=True):
            self.lines.append(f"{inner}{self.name(carry.argument, f'c{len(self.names)}')} carries {number}")
        for running, number in zip(loop.prefixes, starts, strict=True):
            self.prefix(running, number, inner)
        if loop.condition is not None:
            self.lines.append(f"{inner}ends unless {self.value(loop.condition, inner)}")
        for part in loop.body:
            if isinstance(part, Loop):
                self.loop(part, inner)
            else:
                value = self.value(part.value, inner)
                offset = self.offset(part.offset, inner)
                self.lines.append(f"{inner}{_words_of(part)}{part.buffer.name}[{offset}] = {value}")
        for accumulator in loop.accumulators:
            terms = ", ".join(self.value(term, inner) for term in accumulator.terms)
            held, added = accumulator.left, accumulator.arguments or accumulator.right
            left = [self.name(value, f"a{k}") for k, value in enumerate(held)]
            right = [self.name(value, f"b{k}") for k, value in enumerate(added)]
            values = accumulator.identities
            starts = [_constant(x) if x.op == "constant" else self.value(x, inner) for x in values]
            first = ", ".join(starts)
            results = ", ".join(self.name(r, f"r{len(self.names)}") for r in accumulator.results)
            local = dict(zip(held + added, left + right, strict=True))
            step = accumulator.step or accumulator.combined
            combined = ", ".join(_expression(value, local) for value in step)
            self.lines.append(f"{inner}{results} combine {terms}  by {combined}  from {first}")
        if loop.search is not None:
            condition = self.value(loop.search.condition, inner)
            result = self.name(loop.search.result, f"r{len(self.names)}")
            self.lines.append(f"{inner}{result} finds {condition}")
        for carry in loop.carries:
            following = self.value(carry.following, inner)
            self.lines.append(f"{inner}{self.names[carry.argument]} = {following}")
            self.names[carry.result] = self.names[carry.argument]

    def prefix(self, prefix: Prefix, start: str, indent: str) -> None:
        term = self.value(prefix.term, indent)
        total = _expression(prefix.combined, {prefix.left: "a", prefix.right: "b"})
        name = self.name(prefix.running, f"r{len(self.names)}")
        self.lines.append(f"{indent}{name} runs over {term}  by {total}  from {start}")

    def name(self, value: Value, name: str) -> str:
        self.names[value] = name
        return name

    def offset(self, offset: Affine, indent: str) -> str:
        parts = [self.value(v, indent) if f == 1 else f"{f}*{self.value(v, indent)}" for v, f in offset.terms]
        if offset.constant or not parts:
            parts.append(str(offset.constant))
        return " + ".join(parts)

    def value(self, root: Value, indent: str) -> str:
        for value in in_order(root):
            if value not in self.names:
                if value.op == "constant":
                    self.names[value] = _constant(value)
                    continue
                text = self.expression(value)
                self.lines.append(f"{indent}{self.name(value, f'v{len(self.names)}')} = {text}")
        return self.names[root]

    def expression(self, value: Value) -> str:
        operands = [self.names[operand] for operand in value.operands]
        if value.op != "load":
            return _spell_value(value, operands)
        access = value.attribute
        pairs = zip(access.factors, operands, strict=False)
        parts = [name if factor == 1 else f"{factor}*{name}" for factor, name in pairs]
        parts += [str(access.constant)] if access.constant or not parts else []
        text = f"{access.buffer.name}[{' + '.join(parts)}]"
        return f"{operands[-1]} ? {text} : 0" if access.masked else text


def _expression(root: Value, names: dict[Value, str]) -> str:
    """A small expression in one line."""
    for value in in_order(root):
        if value not in names:
            names[value] = (
                _constant(value)
                if value.op == "constant"
                else f"({_spell_value(value, [names[o] for o in value.operands])})"
            )
    return names[root].removeprefix("(").removesuffix(")") if root.operands else names[root]


def _spell_value(value: Value, operands: Sequence[str]) -> str:
    if value.op in _SIGNS:
        return f"{operands[0]} {_SIGNS[value.op]} {operands[1]}"
    if value.op == "select":
        return f"{operands[0]} ? {operands[1]} : {operands[2]}"
    kind = f".{value.dtype}" if value.op in ("convert", "bitcast") else ""
    return f"{value.op}{kind}({', '.join(operands)})"


def _words_of(store: Store) -> str:
    """The words before a store that combines."""
    match store.atomic:
        case Exchange(old, new, combined):
            return f"atomic {_expression(combined, {old: 'a', new: 'b'})} of a = "
        case Atomic() as atomic:
            return f"atomic {atomic.value} "
    return ""


def _constant(value: Value) -> str:
    number = constant_of(value)
    if value.dtype == BOOL:
        return str(bool(number)).lower()
    # The shortest digits of the type, in Python's layout: NumPy's differs from version to version.
    text = str(number)
    if value.dtype.kind == "c":
        return repr(complex(text))
    return text if text.lstrip("-").isdigit() else repr(float(text))
