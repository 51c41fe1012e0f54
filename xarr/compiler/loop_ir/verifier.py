"""The rules of loop programs, which builders keep to and emitters rely on, and a check of all of them.

L1  A name, such as an index or what a loop carries, is bound once, and used only where it is known: an index inside
    its loop, a result behind its loop.
L2  A value is made by a known operation, from operands of the types that this takes.
L3  What a loop stores, carries, combines or looks for has the type of what it becomes.
L4  The outermost loop of a phase runs a fixed number of times, at least once; a computed extent of another one has a
    constant that it does not exceed, a computed first iteration is none below 0.  Only an outermost loop has bounds.
L5  Each buffer that is used is one of the program's, once, under a name of its own; inputs are never written.
L6  Scratch, local buffers and outputs are written before they are read, local ones in the same phase; each output is
    written.
L7  No offset lies outside of its buffer, neither in the first iteration of any loop nor in the last, be the bounds of
    an outermost loop all its iterations, the first, or the last.  In a loop whose extent is selected by a condition, or
    else 0, the condition holds.  A number that was loaded and clamped may be any of those that it was clamped to;
    where it is used as it is, nothing is known of the offset.
L8  Iterations of an outermost loop that run at the same time do not write to one element unless they combine
    atomically.  Where a buffer has no other element, the extent of the loop around says which of them writes.
L9  A loop in lanes carries nothing and is in no other one; loops inside it run equally often in all lanes.  Only such
    a loop looks for an iteration, which does nothing else, and only such a one or one of a block has running totals.
    Only a serial loop that holds no other one has a condition.
L10 Threads run an outermost loop alone; a grid one too, or some that hold nothing but the next one, as if they were
    one.  A block runs a loop inside a grid, a warp one inside a block.  Only what a block runs shares buffers.  Loops
    that a block runs inside of one in lockstep do the same in all its iterations, and what iterations of that store
    for the block no extent that differs among them keeps some from.
L11 Local buffers, and those that a block shares in a phase, take no more memory than the target has for them
    (`Target.local_bytes`): `Schedule.build`
    sees to it for each program.
L12 A loop with a width is the innermost one of a grid, and so many of its iterations can be taken together.
L13 A loop with sharers is the innermost one of a grid.  The loops inside have one index and one fixed extent, all are
    run by a block, or all by a warp, and do nothing but to accumulate, or to store, what none of them reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import Final

from xarr.compiler.loop_ir.held_rows import can_hold
from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Affine,
    Buffer,
    Carry,
    Exchange,
    Kernel,
    Loop,
    LoopError,
    Memory,
    Prefix,
    Runs,
    Search,
    Store,
    grid_loops,
    offset_of,
)
from xarr.compiler.loop_ir.scalars import BOOL, INT64, DType, Value, in_order
from xarr.compiler.loop_ir.value_rules import LEAVES, problem
from xarr.compiler.loop_ir.vector_accesses import vector_accesses


def verify(kernel: Kernel) -> Kernel:
    """Check a loop program by all rules but L11, which needs a machine; the program itself.

    Raises LoopError, which names the rule, where one is broken.
    """
    _check_buffers(kernel)
    checker = _Checker(kernel)
    for phase in kernel.phases:
        checker.phase(phase)
    missing = [buffer.name for buffer in kernel.outputs if buffer not in checker.written]
    _demand("L6", not missing, f"nothing is stored in {', '.join(missing)}")
    for phase in kernel.phases:
        _Bounds(phase).check()
    return kernel


def _demand(rule: str, holds: bool, message: str) -> None:
    if not holds:
        raise LoopError(f"{rule}: {message}")


def check_local_bytes(kernel: Kernel, most: int) -> Kernel:
    """Check by rule L11 that local buffers take no more bytes than a thread has for them; the program itself."""
    of_threads = sum(buffer.nbytes for buffer in kernel.locals if buffer.memory is Memory.LOCAL)
    stores = [{store.buffer for loop in phase.walk() for store in loop.stores()} for phase in kernel.phases]
    of_blocks = [sum(each.nbytes for each in used if each.memory is Memory.SHARED) for used in stores]
    held = of_threads + max(of_blocks, default=0)
    _demand("L11", held <= most, f"local buffers take {held} bytes, more than the {most} of the target")
    return kernel


def _check_buffers(kernel: Kernel) -> None:
    roles = (
        ("in", kernel.inputs),
        ("out", kernel.outputs),
        ("scratch", kernel.scratch),
        ("local", kernel.locals),
    )
    for role, buffers in roles:
        for buffer in buffers:
            fits = buffer.role == role or (buffer.role == "shared" and role == "local")
            _demand("L5", fits, f"{buffer.name}, a buffer of role {buffer.role}, stands as {role}")
            _demand("L5", buffer.size > 0, f"{buffer.name} has {buffer.size} elements")
    names = [buffer.name for _, buffers in roles for buffer in buffers]
    for before, after in pairwise(sorted(names)):
        _demand("L5", before != after, f"two buffers are called {before}")


class _Checker:
    """Goes through the phases in the order in which they run: L1 to L6, L8 and L9."""

    def __init__(self, kernel: Kernel) -> None:
        self.buffers = {*kernel.inputs, *kernel.outputs, *kernel.scratch, *kernel.locals}
        self.written = set(kernel.inputs)
        #: Loops that have the index of one before.
        self.alike: set[Loop] = set()
        #: The names that were bound anywhere, and what is known here: these and what was computed from them.
        self.bound: set[Value] = set()
        self.known: set[Value] = set()

    # --- names and values ------------------------------------------------------------------------------------

    def bind(self, *names: Value) -> None:
        """Let names be known from here to the end of the present scope."""
        for name in names:
            _demand("L1", name not in self.bound, f"{_show_value(name)} is bound twice")
            _demand("L1", name.op in LEAVES, f"{_show_value(name)} is not a name")
        self.bound.update(names)
        self.known.update(names)

    def use(self, *roots: Value) -> None:
        """Let values be computed here."""
        for value in in_order(*roots):
            if value in self.known:
                continue
            _demand("L1", value.op not in LEAVES, f"{_show_value(value)} is used where it is not known")
            wrong = problem(value)
            _demand("L2", wrong is None, str(wrong))
            if value.op == "load":
                buffer = value.attribute.buffer
                self._check_owned(buffer)
                _demand("L6", buffer in self.written, f"{buffer.name} is read before it is written")
            self.known.add(value)

    def _check_owned(self, buffer: Buffer) -> None:
        _demand("L5", buffer in self.buffers, f"{buffer.name} is not a buffer of this program")

    # --- loops -----------------------------------------------------------------------------------------------

    def phase(self, phase: Loop) -> None:
        extent = phase.extent
        _demand(
            "L4", isinstance(extent, int) and extent > 0, "an outermost loop runs a fixed number of times"
        )
        self.known = set()
        if phase.bounds:
            _alike("bounds", (INT64, INT64), phase.bounds)
            self.bind(*phase.bounds)
        _check_words(grid_loops(phase)[-1], Runs.SERIAL)
        _check_sharers(phase)
        if grid_loops(phase)[-1].sharers:
            self.alike.update([part for part in grid_loops(phase)[-1].body if isinstance(part, Loop)][1:])
        self.loop(phase, None)
        self.written = {buffer for buffer in self.written if buffer.memory is Memory.GLOBAL}
        _check_shared(phase)
        _check_widths(phase)

    def loop(self, loop: Loop, lanes: Loop | None) -> None:
        """Check a loop, in lanes of the loop `lanes` if that is one."""
        self._extent(loop, lanes)
        self._lanes(loop, lanes)
        for carry in loop.carries:
            self._carry(carry)
        for accumulator in loop.accumulators:
            self._accumulator(accumulator)
        self.use(*(prefix.initial for prefix in loop.prefixes))
        outside = set(self.known)
        _alike("an index", (INT64,), (loop.index,))
        if loop in self.alike:
            self.known.add(loop.index)
        else:
            self.bind(loop.index)
        self.bind(*(carry.argument for carry in loop.carries))
        for prefix in loop.prefixes:
            self._prefix(prefix)
        if loop.condition is not None:
            self._condition(loop, loop.condition)
        for part in loop.body:
            if isinstance(part, Store):
                self._store(part)
            else:
                self.loop(part, loop if loop.vector else lanes)
        for accumulator in loop.accumulators:
            self.use(*accumulator.terms)
        self.use(*(carry.following for carry in loop.carries))
        if loop.search is not None:
            self._search(loop.search)
        self.known = outside
        self.bind(*(carry.result for carry in loop.carries))
        self.bind(*(result for accumulator in loop.accumulators for result in accumulator.results))
        if loop.search is not None:
            self.bind(loop.search.result)

    def _extent(self, loop: Loop, lanes: Loop | None) -> None:
        extent = loop.extent
        if loop.first is not None:
            self.use(loop.first)
            _alike("a first iteration", (INT64,), (loop.first,))
            varies = lanes is not None and lanes.index in in_order(loop.first)
            _demand("L9", not varies, "a loop inside lanes begins not equally in all of them")
        if isinstance(extent, int):
            _demand("L4", extent > 0, f"a loop runs {extent} times")
            return
        self.use(extent)
        _alike("an extent", (INT64,), (extent,))
        has_most = extent.op == "select" and any(each.op == "constant" for each in extent.operands)
        _demand("L4", has_most, f"the extent {_show_value(extent)} has no constant that it does not exceed")
        varies = lanes is not None and lanes.index in in_order(extent)
        _demand("L9", not varies, "a loop inside lanes runs not equally often in all of them")

    def _lanes(self, loop: Loop, lanes: Loop | None) -> None:
        if loop.vector:
            _demand("L9", lanes is None, "a loop in lanes is inside another one")
            _demand("L9", not loop.carries, "a loop in lanes carries what its iterations leave")
        shares = bool(loop.runs & (Runs.LANES | Runs.BLOCK))
        _demand(
            "L9", shares or not loop.prefixes, "running totals of a loop that is not in lanes, nor of a block"
        )
        if loop.search is not None:
            alone = loop.vector and not (loop.body or loop.accumulators or loop.prefixes)
            _demand("L9", alone, "a loop that looks for an iteration is one in lanes that does nothing else")

    def _store(self, store: Store) -> None:
        self.use(store.value, *(value for value, _ in store.offset.terms))
        self._check_owned(store.buffer)
        _demand("L5", store.buffer.role != "in", f"the input {store.buffer.name} is written")
        _alike(f"what {store.buffer.name} gets", (store.buffer.dtype,), (store.value,))
        _alike("an offset", (INT64,) * len(store.offset.terms), [value for value, _ in store.offset.terms])
        is_new = store.atomic is not None and store.buffer not in self.written
        _demand("L6", not is_new, f"{store.buffer.name} is combined with before it is written")
        if isinstance(store.atomic, Exchange):
            names = (store.atomic.old, store.atomic.new)
            _alike("an exchange", (store.buffer.dtype,) * 3, (*names, store.atomic.combined))
            self._combine(names, (store.atomic.combined,))
        self.written.add(store.buffer)

    def _carry(self, carry: Carry) -> None:
        self.use(carry.initial)
        _alike("a carry", (carry.initial.dtype,) * 3, (carry.argument, carry.following, carry.result))

    def _condition(self, loop: Loop, condition: Value) -> None:
        self.use(condition)
        _alike("a condition", (BOOL,), (condition,))
        plain = not (loop.runs or loop.accumulators) and all(isinstance(part, Store) for part in loop.body)
        _demand("L9", plain, "a loop with a condition is shared, accumulates, or holds another loop")

    def _search(self, search: Search) -> None:
        self.use(search.condition)
        _alike("a search", (BOOL, INT64), (search.condition, search.result))

    def _prefix(self, prefix: Prefix) -> None:
        self.use(prefix.term)
        names = (prefix.left, prefix.right)
        _alike("a running total", (prefix.term.dtype,) * 4, (prefix.initial, *names, prefix.combined))
        _alike("a running total", (prefix.term.dtype,), (prefix.running,))
        self._combine(names, (prefix.combined,))
        self.bind(prefix.running)

    def _accumulator(self, accumulator: Accumulator) -> None:
        """All but the terms, which the iterations compute."""
        self.use(*accumulator.identities)
        dtypes = [value.dtype for value in accumulator.results]
        for values in (accumulator.identities, accumulator.left, accumulator.right, accumulator.combined):
            _alike("an accumulator", dtypes, values)
        self._combine((*accumulator.left, *accumulator.right), accumulator.combined)
        if accumulator.step:
            _alike("the step of an accumulator", dtypes, accumulator.step)
            _alike("the terms of a step", [value.dtype for value in accumulator.arguments], accumulator.terms)
            self._combine((*accumulator.left, *accumulator.arguments), accumulator.step)
        else:
            _alike("an accumulator", dtypes, accumulator.terms)

    def _combine(self, names: Sequence[Value], results: Sequence[Value]) -> None:
        """Check a computation that knows nothing but these names, which others may have too."""
        _demand("L1", len({*names}) == len(names), "two operands of a computation have one name")
        outside, self.known = self.known, {*names}
        self.use(*results)
        self.known = outside


def _alike(what: str, wanted: Sequence[DType], values: Iterable[Value]) -> None:
    got = [value.dtype for value in values]
    _demand("L3", got == list(wanted), f"{what}: wanted {_list_dtypes(wanted)}, got {_list_dtypes(got)}")


def _list_dtypes(dtypes: Iterable[DType]) -> str:
    return f"({', '.join(map(str, dtypes))})"


def _show_value(value: Value) -> str:
    name = f" {value.attribute}" if value.op in LEAVES else ""
    return f"the {value.op}{name}: {value.dtype}"


#: The words of loops that are inside others: which must be around, and which must not.
_AROUND: Final = {
    Runs.THREADS: (Runs.SERIAL, ~Runs.SERIAL),
    Runs.GRID: (Runs.SERIAL, ~Runs.SERIAL),
    Runs.BLOCK: (Runs.GRID, Runs.BLOCK | Runs.WARP | Runs.LANES),
    Runs.WARP: (Runs.BLOCK, Runs.WARP | Runs.LANES),
    Runs.LOCKSTEP: (Runs.GRID, Runs.BLOCK | Runs.WARP | Runs.LANES | Runs.LOCKSTEP),
}


def _check_words(loop: Loop, around: Runs, depth: int = 0) -> None:
    """Whether the words of loops inside one another fit (L10); `around` are those of the loops outside."""
    here = around | loop.runs
    for word, (wanted, unwanted) in _AROUND.items():
        if word not in loop.runs:
            continue
        alone = depth == 0 or word not in Runs.THREADS | Runs.GRID
        fits = alone and wanted in here and not around & unwanted
        _demand("L10", fits, f"a loop runs by {loop.runs} inside of {around}")
    if Runs.LOCKSTEP in loop.runs:
        _check_lockstep(loop)
    for store in loop.stores():
        is_shared = store.buffer.memory is Memory.SHARED
        _demand(
            "L10", not is_shared or Runs.GRID in here, f"{store.buffer.name} is shared where no block runs"
        )
    for part in loop.body:
        if isinstance(part, Loop):
            _check_words(part, here, depth + 1)


def _check_lockstep(loop: Loop) -> None:
    """Whether what a block does inside of a loop in lockstep is the same in each of its iterations (L10)."""
    own = {loop.index}
    for inner in loop.walk():
        own.update(carry.argument for carry in inner.carries)
    for shared in (each for inner in loop.walk() for each in inner.walk() if each.runs == Runs.BLOCK):
        used = in_order(*(root for each in shared.walk() for root in each.roots()))
        _demand("L10", own.isdisjoint(used), "a block shares what differs from thread to thread")
    stores = [store for each in _own_extents(loop, own) for inner in each.walk() for store in inner.stores()]
    is_shared = any(store.buffer.memory is Memory.SHARED for store in stores)
    _demand("L10", not is_shared, "some threads of a block may store what it shares, and others not")


def _own_extents(loop: Loop, own: set[Value]) -> list[Loop]:
    """The outermost loops in a loop whose extents depend on `own`, without those that a block runs."""
    inner = []
    for part in loop.body:
        if isinstance(part, Loop) and part.runs != Runs.BLOCK:
            is_own = isinstance(part.extent, Value) and not own.isdisjoint(in_order(part.extent))
            inner += [part] if is_own else _own_extents(part, own)
    return inner


def _check_shared(phase: Loop) -> None:
    """Whether iterations that may run at the same time write to elements of their own (L8)."""
    for inner in phase.walk():
        _demand("L4", inner is phase or not inner.bounds, "a loop inside another one has bounds")
    at_once = phase.runs & (Runs.THREADS | Runs.GRID | Runs.LANES)
    indices = [each.index for each in grid_loops(phase) if each.extent != 1]
    if not indices or phase.bounds or not at_once:
        return
    for around, store in ((loop, store) for loop in phase.walk() for store in loop.stores()):
        if store.atomic is not None or store.buffer.memory is not Memory.GLOBAL:
            continue
        guards = [around.extent] if store.buffer.size == 1 and isinstance(around.extent, Value) else []
        known = in_order(*(value for value, _ in store.offset.terms), *guards)
        own = all(index in known for index in indices)
        _demand("L8", own, f"all iterations of an outermost loop write to one element of {store.buffer.name}")


def _check_widths(phase: Loop) -> None:
    """Whether the iterations that a thread may take together load and store vectors (L12)."""
    last = grid_loops(phase)[-1]
    for loop in phase.walk():
        fits = loop.width == 1 or (loop is last and vector_accesses(phase, loop.width) is not None)
        _demand("L12", fits, f"{loop.width} iterations of a loop cannot be taken together")


def _check_sharers(phase: Loop) -> None:
    """Whether threads can keep what the loops that they share compute (L13)."""
    last = grid_loops(phase)[-1]
    wrong = [loop for loop in phase.walk() if loop.sharers and loop is not last]
    _demand("L13", not wrong, "a loop whose rows are held is not the innermost one of a grid")
    if last.sharers:
        indices = {part.index for part in last.body if isinstance(part, Loop)}
        fits = Runs.GRID in phase.runs and len(indices) == 1 and can_hold(phase)
        _demand("L13", fits, "loops between which rows are held are not alike, or read what they store")


class _Bounds:
    """The offsets that a phase reads and writes in the first and the last iteration of each of its loops (L7)."""

    def __init__(self, phase: Loop) -> None:
        self.top = phase
        #: What each loop's own iteration loads.
        self.loads = {loop: _loads(loop) for loop in phase.walk()}

    def check(self) -> None:
        end = self.top.max_iterations
        for bounds in dict.fromkeys(((0, end), (0, 1), (end - 1, end))):
            self._loop(
                self.top, Ranges({b: (at, at) for b, at in zip(self.top.bounds, bounds, strict=False)})
            )
            if not self.top.bounds:
                return

    def _loop(self, loop: Loop, around: Ranges) -> None:
        low, high = (loop.extent,) * 2 if isinstance(loop.extent, int) else around.of(loop.extent)
        high = min(high, loop.max_iterations)
        if high < 1:
            return
        least = 0 if loop.first is None else around.of(loop.first)[0]
        _demand("L4", least >= 0, f"a loop begins at {least}")
        if least >= high:
            return
        around = _where_it_runs(loop, around)
        # Where it is not known how often it runs, any iteration may be there.
        ends = ((least, least), (high - 1, high - 1))
        iterations = dict.fromkeys(ends if low == high else ((least, high - 1),))
        for iteration in iterations:
            ranges = around.inside_loop(loop.index, iteration)
            for value in self.loads[loop]:
                self._load(value, ranges)
            for part in loop.body:
                if isinstance(part, Store):
                    self._check_offset(part.buffer, part.offset, ranges)
                else:
                    self._loop(part, ranges)

    def _load(self, value: Value, ranges: Ranges) -> None:
        access = value.attribute
        if access.masked and ranges.of(value.operands[-1]) != (1, 1):
            return
        self._check_offset(access.buffer, offset_of(value), ranges)

    def _check_offset(self, buffer: Buffer, offset: Affine, ranges: Ranges) -> None:
        low, high = ranges.of_offset(offset)
        # Where a loaded number is used as it is, the program has looked at it before, in a condition.
        inside = inf in (-low, high) or (low >= 0 and high < buffer.size)
        _demand("L7", inside, f"{buffer.name}[{buffer.size}] at {_show_range(low, high)}")


def _where_it_runs(loop: Loop, around: Ranges) -> Ranges:
    """The ranges inside a loop that a condition keeps from running: there the condition holds."""
    extent = loop.extent
    if isinstance(extent, Value) and extent.op == "select" and extent.operands[0].op == "gt":
        # Of the lesser of two numbers, which is no 0 where the other is none.
        most, other = extent.operands[1:]
        extent = other if extent.operands[0].operands == (other, most) else extent
    if isinstance(extent, int) or extent.op != "select" or around.of(extent.operands[2]) != (0, 0):
        return around
    return around.assuming(extent.operands[0])


def _show_range(low: float, high: float) -> str:
    return str(low) if low == high else f"{low} … {high}"


def _loads(loop: Loop) -> list[Value]:
    return [value for value in in_order(*loop.roots()) if value.op == "load"]
