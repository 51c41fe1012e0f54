"""Loop programs as LLVM IR.

Each phase of a kernel is a function `phase(ptr buffers, i64 begin, i64 end)`, which runs those iterations of the
outermost loop.  A vector loop runs several registers of lanes an iteration, then single registers whose last one
is masked, so that no element is computed by other code than its neighbours.
"""

from __future__ import annotations

from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Carry,
    Kernel,
    Loop,
    LoopError,
    Memory,
    Prefix,
    Runs,
    Search,
    Store,
)
from xarr.compiler.loop_ir.scalars import BOOL, Value, in_order
from xarr_numpy.compiled.codegen.instructions import ATTRIBUTES, Block, numbers_of, register_type
from xarr_numpy.compiled.codegen.registers import Registers, order_of, roots_of
from xarr_numpy.processor import PROCESSOR


def emit(kernel: Kernel) -> tuple[str, list[str]]:
    """The module, and the names of the phases' functions.

    Raises LoopError for loops, buffers and stores that only other machines have.
    """
    for phase in kernel.phases:
        _refuse_others(phase)
    functions = [_PhaseIR(kernel, phase, f"phase{number}") for number, phase in enumerate(kernel.phases)]
    texts = [function.text() for function in functions]
    declared = sorted({line for function in functions for line in function.declarations})
    helpers = {name: text for function in functions for name, text in function.helpers.items()}
    return "\n".join([*declared, *helpers.values(), *texts]) + "\n", [each.name for each in functions]


def _refuse_others(phase: Loop) -> None:
    """Refuse what is not for processors: they have threads, outermost, and lanes."""
    for loop in phase.walk():
        known = Runs.LANES | (Runs.THREADS if loop is phase else Runs.SERIAL)
        if unknown := loop.runs & ~known or (loop.condition and "a condition"):
            raise LoopError(f"no LLVM IR for a loop that runs by {unknown}, only by {known}")
        for store in loop.stores():
            if store.atomic is not None:
                raise LoopError(f"no LLVM IR for a store that combines atomically ({store.atomic.value})")
            if store.buffer.memory is Memory.SHARED:
                raise LoopError(f"no LLVM IR for {store.buffer.name}, which a block shares")
    if Runs.THREADS not in phase.runs:
        raise LoopError("no LLVM IR for an outermost loop that threads do not share")


class _PhaseIR(Registers):
    """The function of one phase."""

    def text(self) -> str:
        self.entry()
        if self.phase.bounds:
            self.block.names.update(zip(self.phase.bounds, ("%begin", "%end"), strict=True))
            self._body(self.phase)
        else:
            self._loop(self.phase, "%begin", "%end")
        self.write("ret void")
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in self.lines)
        return f"define void @{self.name}(ptr %buffers, i64 %begin, i64 %end) {ATTRIBUTES} {{\nentry:\n{body}\n}}"

    # --- loops -------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop, begin: str, end: str) -> None:
        self.hoist(loop)
        if (
            isinstance(loop.extent, Value)
            and loop.max_iterations == 1
            and not loop.accumulators + loop.carries
        ):
            self._once_or_not(loop, end)
        elif loop.search is not None:
            self._search_loop(loop, loop.search, begin, end)
        elif loop.prefixes:
            self._prefix_loop(loop, begin, end)
        elif loop.vector and begin == "0" and self._is_one_register(loop):
            self._one_register(loop, end)
        elif loop.vector:
            self._vector_loop(loop, begin, end)
        else:
            self._serial_loop(loop, begin, end)

    def _body(self, loop: Loop) -> None:
        for part in loop.body:
            if isinstance(part, Store):
                self.store(part)
            else:
                extent = part.extent
                if isinstance(extent, Value):
                    self.compute([extent])
                    self._loop(part, "0", self.block.operand(extent, 1))
                else:
                    self._loop(part, "0", str(extent))

    def _is_one_register(self, loop: Loop) -> bool:
        """Whether a vector loop that does nothing but store has one iteration."""
        stores = not (loop.accumulators or loop.prefixes) and all(
            isinstance(part, Store) for part in loop.body
        )
        return stores and isinstance(loop.extent, int) and loop.extent <= self.width

    def _one_register(self, loop: Loop, end: str) -> None:
        around_base, around_mask = dict(self.base), self.mask
        outside = self.inner()
        self.vectors.add(loop.index)
        self.base[loop.index] = "0"
        if loop.extent != self.width:
            self.mask = self._first_lanes("0", self._hide(end) if _has_predicates(loop) else end)
        self._body(loop)
        self.leave(outside)
        self.base, self.mask = around_base, around_mask

    def _hide(self, number: str) -> str:
        """A number that the code generator does not know.

        LLVM 22 may read half a register where it knows that the lanes of this half are never wanted, and the mask
        is one of those joined with a condition: it takes the mask for one that is not there.
        """
        nothing = self.line("ashr i64 %end, 63")  # ranges end at no negative number
        return self.line(f"add i64 {number}, {nothing}")

    def _once_or_not(self, loop: Loop, end: str) -> None:
        """A loop that accumulates nothing and whose extent is 1 or 0."""
        body, done = self.labels("body", "done")
        runs = self.line(f"icmp sgt i64 {end}, 0")
        self.write(f"br i1 {runs}, label %{body}, label %{done}")
        outside = self.inner()
        self.begin(body)
        self.block.names[loop.index] = "0"
        self._body(loop)
        self.write(f"br label %{done}")
        self.leave(outside)
        self.begin(done)

    def _serial_loop(self, loop: Loop, begin: str, end: str) -> None:
        head, body, done = self.labels("head", "body", "done")
        # In a vector loop every lane accumulates its own.
        wide = bool(self.base)
        first = self._starts(loop.accumulators, wide)
        initial = self._registers_of([carry.initial for carry in loop.carries])
        before_label = self.label
        self.write(f"br label %{head}")
        self.begin(head)
        index = f"%{head}.i"
        slots = self._phi_slots(loop.accumulators, head)
        held = self._name_carries(loop, head)
        line = len(self.lines)
        self.write(f"%{head}.more = icmp slt i64 {index}, {end}")
        self.write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside = self.inner()
        self.begin(body)
        self.block.names[loop.index] = index
        self._body(loop)
        following = [
            self._combine(accumulator, slot, accumulator.terms, wide)
            for accumulator, slot in zip(loop.accumulators, slots, strict=True)
        ]
        carried = self._registers_of([carry.following for carry in loop.carries])
        step = self.line(f"add nsw i64 {index}, 1")
        last = self.label
        self.write(f"br label %{head}")
        phis = [f"{index} = phi i64 [ {begin}, %{before_label} ], [ {step}, %{last} ]"]
        phis += self._phis(loop.accumulators, wide, slots, first, before_label, following, last)
        rows = zip(loop.carries, held, initial, carried, strict=True)
        phis += [
            f"{slot} = phi {self._kind(carry)} [ {x}, %{before_label} ], [ {y}, %{last} ]"
            for carry, slot, x, y in rows
        ]
        self.lines[line:line] = phis
        self.leave(outside)
        self.begin(done)
        self.block.names.update((carry.result, slot) for carry, slot in zip(loop.carries, held, strict=True))
        for accumulator, slot in zip(loop.accumulators, slots, strict=True):
            for result, register in zip(accumulator.results, slot, strict=True):
                if wide:
                    self.vectors.add(result)
                self.block.names[result] = register

    def _name_carries(self, loop: Loop, head: str) -> list[str]:
        """Registers for what the loop carries: in a vector loop every lane has its own."""
        slots = [f"%{head}.c{number}" for number in range(len(loop.carries))]
        for carry, slot in zip(loop.carries, slots, strict=True):
            self.block.names[carry.argument] = slot
            if self.base:
                self.vectors.update((carry.argument, carry.result))
        return slots

    def _registers_of(self, values: list[Value]) -> list[str]:
        self.compute(values)
        return [self.block.operand(value, self.width if self.base else 1) for value in values]

    def _kind(self, carry: Carry) -> str:
        return register_type(carry.argument.dtype, self.width if self.base else 1)

    def _starts(self, accumulators: list[Accumulator], wide: bool) -> list[list[str]]:
        self.compute(value for accumulator in accumulators for value in accumulator.identities)
        width = self.width if wide else 1
        return [
            [self.block.operand(value, width) for value in accumulator.identities]
            for accumulator in accumulators
        ]

    def _phi_slots(self, accumulators: list[Accumulator], head: str) -> list[list[str]]:
        return [
            [f"%{head}.a{number}.{k}" for k in range(len(accumulator.results))]
            for number, accumulator in enumerate(accumulators)
        ]

    def _phis(
        self,
        accumulators: list[Accumulator],
        wide: bool,
        slots: list[list[str]],
        first: list[list[str]],
        before: str,
        following: list[list[str]],
        last: str,
    ) -> list[str]:
        lines = []
        width = self.width if wide else 1
        for number, accumulator in enumerate(accumulators):
            for k, value in enumerate(accumulator.results):
                kind = register_type(value.dtype, width)
                lines.append(
                    f"{slots[number][k]} = phi {kind} [ {first[number][k]}, %{before} ], "
                    f"[ {following[number][k]}, %{last} ]"
                )
        return lines

    def _combine(
        self, accumulator: Accumulator, held: list[str], terms: tuple[Value, ...], wide: bool
    ) -> list[str]:
        """The registers after `terms` have joined what is `held`."""
        self.compute(terms)
        width = self.width if wide else 1
        names = dict(zip(accumulator.left, held, strict=True))
        added = accumulator.arguments or accumulator.right
        names.update((name, self.block.operand(term, width)) for name, term in zip(added, terms, strict=True))
        return self._emit(accumulator.step or accumulator.combined, names, wide)

    def _merge(self, accumulator: Accumulator, left: list[str], right: list[str], wide: bool) -> list[str]:
        names = dict(zip(accumulator.left + accumulator.right, left + right, strict=True))
        return self._emit(accumulator.combined, names, wide)

    def _emit(self, values: tuple[Value, ...], names: dict[Value, str], wide: bool) -> list[str]:
        width = self.width if wide else 1
        block = Block(width, lambda value: wide, prefix=f"{self.labels('c')[0]}.")
        block.emit(values, names)
        registers = [block.operand(value, width) for value in values]
        self.flush()
        self.lines += block.lines
        self.declarations |= block.declarations
        self.helpers |= block.functions
        return registers

    # --- vector loops ------------------------------------------------------------------------------------

    def _vector_loop(self, loop: Loop, begin: str, end: str) -> None:
        """Full registers first, several an iteration; then one register an iteration, the last one in part."""
        copies = self._copies(loop)
        step = copies * self.width
        count = self.line(f"sub nsw i64 {end}, {begin}")
        full = self.line(f"and i64 {count}, {-step}")
        middle = self.line(f"add nsw i64 {begin}, {full}")
        self.vectors.add(loop.index)
        starts = self._starts(loop.accumulators, True)
        held = [list(starts) for _ in range(copies)]
        rounded = any(
            value.dtype.kind == "f" and value.op in ("add", "mul")
            for accumulator in loop.accumulators
            for value in accumulator.combined
        )
        is_short = isinstance(loop.extent, int) and loop.extent <= 2 * PROCESSOR.chunk_iterations * step
        if rounded and not is_short:
            held = self._chunks(loop, begin, middle, held, step)
        else:
            held = self._iterations(loop, begin, middle, held, step)
        total = held[0]
        for other in held[1:]:
            total = [
                self._merge(a, x, y, True) for a, x, y in zip(loop.accumulators, total, other, strict=True)
            ]
        length = loop.extent if isinstance(loop.extent, int) and begin == "0" else 1
        if length % step:
            masked = length % self.width != 0
            (total,) = self._iterations(loop, middle, end, [total], self.width, masked)
        for accumulator, registers in zip(loop.accumulators, total, strict=True):
            folded = self._fold(accumulator, registers)
            self.block.names.update(zip(accumulator.results, folded, strict=True))

    # --- searches ----------------------------------------------------------------------------------------

    def _search_loop(self, loop: Loop, search: Search, begin: str, end: str) -> None:
        """Several registers an iteration until one has a lane that is wanted; then one, which says which lane."""
        self.vectors.add(loop.index)
        step = PROCESSOR.unrolled_registers * self.width
        count = self.line(f"sub nsw i64 {end}, {begin}")
        middle = self.line(f"add nsw i64 {begin}, {self.line(f'and i64 {count}, {-step}')}")
        first, _ = self._search_iterations(
            loop, search, begin, middle, PROCESSOR.unrolled_registers, masked=False
        )
        last, lanes = self._search_iterations(loop, search, first, end, 1, masked=True)
        kind = f"i{self.width}"
        bits = self.line(f"bitcast <{self.width} x i1> {lanes} to {kind}")
        lane = self.block.call(f"llvm.cttz.{kind}", kind, [kind, "i1"], [f"{kind} {bits}", "i1 false"])
        self.flush()
        wide = lane if self.width == 64 else self.line(f"zext {kind} {lane} to i64")
        found_index = self.line(f"add nsw i64 {last}, {wide}")
        some = self.line(f"icmp slt i64 {last}, {end}")
        self.block.names[search.result] = self.line(f"select i1 {some}, i64 {found_index}, i64 0")

    def _search_iterations(
        self, loop: Loop, search: Search, begin: str, end: str, copies: int, masked: bool
    ) -> tuple[str, str]:
        """A loop that ends with the first iteration of so many registers that has a lane that is wanted.

        Gives where that iteration begins, or where the loop ends, and which lanes of its last register are wanted.
        """
        head, body, further, done = self.labels("head", "body", "further", "done")
        lanes = f"<{self.width} x i1>"
        base, before_label = f"%{head}.i", self.label
        self.write(f"br label %{head}")
        self.begin(head)
        line_number = len(self.lines)
        self.write(f"%{head}.more = icmp slt i64 {base}, {end}")
        self.write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside, around_base, around_mask = self.inner(), dict(self.base), self.mask
        self.begin(body)
        # As wide as what is compared: bits would be packed before they are looked at.
        number = f"i{_compared_bits(search.condition)}"
        kind, wanted = f"<{self.width} x {number}>", ""
        for copy in range(copies):
            inside = self.inner()
            self.base[loop.index] = self.line(f"add nsw i64 {base}, {copy * self.width}") if copy else base
            if masked:
                self.mask = self._first_lanes(base, end)
            self.compute([search.condition])
            truths = self.block.operand(search.condition, self.width)
            if masked:
                truths = self.line(f"and {lanes} {truths}, {self.mask}")
            spread = self.line(f"sext {lanes} {truths} to {kind}")
            wanted = self.line(f"or {kind} {wanted}, {spread}") if wanted else spread
            self.leave(inside)
        self.base, self.mask = around_base, around_mask
        bits = f"i{self.width * int(number[1:])}"
        some = self.line(f"icmp ne {bits} {self.line(f'bitcast {kind} {wanted} to {bits}')}, 0")
        last = self.label
        self.write(f"br i1 {some}, label %{done}, label %{further}")
        self.begin(further)
        next_base = self.line(f"add nsw i64 {base}, {copies * self.width}")
        self.write(f"br label %{head}")
        self.lines.insert(
            line_number, f"{base} = phi i64 [ {begin}, %{before_label} ], [ {next_base}, %{further} ]"
        )
        self.leave(outside)
        self.begin(done)
        nothing = f"[ zeroinitializer, %{head} ]"
        return base, self.line(f"phi {lanes} {nothing}, [ {truths}, %{last} ]")

    # --- running totals ----------------------------------------------------------------------------------

    def _prefix_loop(self, loop: Loop, begin: str, end: str) -> None:
        """One register an iteration; each goes on from the total of those before."""
        self.vectors.add(loop.index)
        self.vectors.update(prefix.running for prefix in loop.prefixes)
        initial = [prefix.initial for prefix in loop.prefixes]
        self.compute(initial)
        held = [self.block.operand(value, self.width) for value in initial]
        count = self.line(f"sub nsw i64 {end}, {begin}")
        full = self.line(f"and i64 {count}, {-self.width}")
        middle = self.line(f"add nsw i64 {begin}, {full}")
        held = self._scan_iterations(loop, begin, middle, held, masked=False)
        length = loop.extent if isinstance(loop.extent, int) and begin == "0" else 1
        if length % self.width:
            self._scan_iterations(loop, middle, end, held, masked=True)

    def _scan_iterations(self, loop: Loop, begin: str, end: str, held: list[str], masked: bool) -> list[str]:
        """A loop of one register an iteration; the totals at its end, in all lanes."""
        head, body, done = self.labels("head", "body", "done")
        before_label = self.label
        self.write(f"br label %{head}")
        self.begin(head)
        base = f"%{head}.i"
        slots = [f"%{head}.p{number}" for number in range(len(held))]
        line_number = len(self.lines)
        self.write(f"%{head}.more = icmp slt i64 {base}, {end}")
        self.write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside, around_base, around_mask = self.inner(), dict(self.base), self.mask
        self.begin(body)
        self.base[loop.index] = base
        if masked:
            self.mask = self._first_lanes(base, end)
        following = [self._runs(prefix, slot) for prefix, slot in zip(loop.prefixes, slots, strict=True)]
        self._body(loop)
        self.base, self.mask = around_base, around_mask
        next_base = self.line(f"add nsw i64 {base}, {self.width}")
        last = self.label
        self.write(f"br label %{head}")
        phis = [f"{base} = phi i64 [ {begin}, %{before_label} ], [ {next_base}, %{last} ]"]
        kinds = [register_type(prefix.running.dtype, self.width) for prefix in loop.prefixes]
        rows = zip(slots, kinds, held, following, strict=True)
        phis += [
            f"{slot} = phi {kind} [ {x}, %{before_label} ], [ {y}, %{last} ]" for slot, kind, x, y in rows
        ]
        self.lines[line_number:line_number] = phis
        self.leave(outside)
        self.begin(done)
        return slots

    def _runs(self, prefix: Prefix, before: str) -> str:
        """Give the totals of an iteration a register; what goes on to the next iteration."""
        width, dtype = self.width, prefix.term.dtype
        self.compute([prefix.term])
        terms = self.block.operand(prefix.term, width)
        kind, distance = register_type(dtype, width), numbers_of(dtype)
        numbers = range(distance * width)
        last = list(numbers[-distance:]) * width
        while distance < len(numbers):
            shifted = self._lanes_of(kind, terms, [max(n % numbers_of(dtype), n - distance) for n in numbers])
            total = self._total(prefix, shifted, terms)
            has_more = ", ".join(f"i1 {'true' if n >= distance else 'false'}" for n in numbers)
            terms = self.line(f"select <{len(numbers)} x i1> <{has_more}>, {kind} {total}, {kind} {terms}")
            distance *= 2
        self.block.names[prefix.running] = self._total(prefix, before, terms)
        # The last lane of the totals, but sooner there than by way of them.
        return self._total(prefix, before, self._lanes_of(kind, terms, last))

    def _lanes_of(self, kind: str, register: str, lanes: list[int]) -> str:
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.line(f"shufflevector {kind} {register}, {kind} poison, <{len(lanes)} x i32> <{order}>")

    def _total(self, prefix: Prefix, left: str, right: str) -> str:
        block = Block(self.width, lambda value: True, prefix=f"{self.labels('c')[0]}.")
        block.emit([prefix.combined], {prefix.left: left, prefix.right: right})
        register = block.operand(prefix.combined, self.width)
        self.flush()
        self.lines += block.lines
        self.declarations |= block.declarations
        self.helpers |= block.functions
        return register

    def _copies(self, loop: Loop) -> int:
        size = len(order_of(root for each in loop.walk() for root in roots_of(each)))
        if len(loop.body) and any(isinstance(part, Loop) for part in loop.body):
            return 1
        results = sum(len(accumulator.results) for accumulator in loop.accumulators)
        wanted = PROCESSOR.unrolled_registers if results == 1 else 2
        if isinstance(loop.extent, int):
            wanted = min(wanted, max(1, loop.extent // self.width))
        copies = wanted if size <= PROCESSOR.max_unrolled_body else 1
        return 1 << (copies.bit_length() - 1)

    def _iterations(
        self, loop: Loop, begin: str, end: str, held: list[list[list[str]]], step: int, masked: bool = False
    ) -> list[list[list[str]]]:
        """A loop of `len(held)` registers an iteration; what the accumulators hold at its end."""
        head, body, done = self.labels("head", "body", "done")
        count = len(loop.accumulators)
        before_label = self.label
        self.write(f"br label %{head}")
        self.begin(head)
        base = f"%{head}.i"
        slots = [
            [[f"%{head}.a{copy}.{n}.{k}" for k in range(len(held[copy][n]))] for n in range(count)]
            for copy in range(len(held))
        ]
        line_number = len(self.lines)
        self.write(f"%{head}.more = icmp slt i64 {base}, {end}")
        self.write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside = self.inner()
        self.begin(body)
        following = []
        around_base, around_mask = dict(self.base), self.mask
        for copy, slot in enumerate(slots):
            inside = self.inner()
            self.base[loop.index] = self.line(f"add nsw i64 {base}, {copy * self.width}") if copy else base
            if masked:
                self.mask = self._first_lanes(base, end)
            self._body(loop)
            following.append(self._accumulate(loop, slot, masked))
            self.leave(inside)
        self.base, self.mask = around_base, around_mask
        next_base = self.line(f"add nsw i64 {base}, {step}")
        last = self.label
        self.write(f"br label %{head}")
        phis = [f"{base} = phi i64 [ {begin}, %{before_label} ], [ {next_base}, %{last} ]"]
        for copy, slot in enumerate(slots):
            phis += self._phis(loop.accumulators, True, slot, held[copy], before_label, following[copy], last)
        self.lines[line_number:line_number] = phis
        self.leave(outside)
        self.begin(done)
        return slots

    def _accumulate(self, loop: Loop, slot: list[list[str]], masked: bool) -> list[list[str]]:
        """Contents of the accumulators after an iteration; lanes that do not count keep what they had."""
        joined = []
        for accumulator, registers in zip(loop.accumulators, slot, strict=True):
            new = self._combine(accumulator, registers, accumulator.terms, True)
            if masked:
                kinds = [register_type(value.dtype, self.width) for value in accumulator.results]
                lanes = f"<{self.width} x i1> {self.mask}"
                new = [
                    self.line(f"select {lanes}, {kind} {x}, {kind} {y}")
                    for kind, x, y in zip(kinds, new, registers, strict=True)
                ]
            joined.append(new)
        return joined

    def _first_lanes(self, base: str, end: str) -> str:
        """Which lanes lie in front of `end`."""
        left = self.line(f"sub nsw i64 {end}, {base}")
        most = self.line(f"icmp slt i64 {left}, {self.width}")
        left = self.line(f"select i1 {most}, i64 {left}, i64 {self.width}")
        # Numbers as wide as the elements are compared in as many registers as these fill.
        number = f"i{max(8, min(64, 8 * PROCESSOR.register_bytes // self.width))}"
        if number != "i64":
            left = self.line(f"trunc i64 {left} to {number}")
        kind = f"<{self.width} x {number}>"
        first = self.line(f"insertelement {kind} poison, {number} {left}, i64 0")
        every = self.line(
            f"shufflevector {kind} {first}, {kind} poison, <{self.width} x i32> zeroinitializer"
        )
        lanes = ", ".join(f"{number} {lane}" for lane in range(self.width))
        return self.line(f"icmp slt {kind} <{lanes}>, {every}")

    def _chunks(
        self, loop: Loop, begin: str, end: str, held: list[list[list[str]]], step: int
    ) -> list[list[list[str]]]:
        """A long loop in chunks, each of which accumulates anew: sums of sums, whose errors grow slowly."""
        head, body, done = self.labels("chunk", "inside", "after")
        before_label = self.label
        self.write(f"br label %{head}")
        self.begin(head)
        base = f"%{head}.i"
        slots = [
            [[f"%{head}.a{copy}.{n}.{k}" for k in range(len(each))] for n, each in enumerate(registers)]
            for copy, registers in enumerate(held)
        ]
        line_number = len(self.lines)
        self.write(f"%{head}.more = icmp slt i64 {base}, {end}")
        self.write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside = self.inner()
        self.begin(body)
        following_base = self.line(f"add nsw i64 {base}, {step * PROCESSOR.chunk_iterations}")
        short = self.line(f"icmp slt i64 {following_base}, {end}")
        limit = self.line(f"select i1 {short}, i64 {following_base}, i64 {end}")
        sums = self._iterations(loop, base, limit, held, step)
        following = [
            [self._merge(a, x, y, True) for a, x, y in zip(loop.accumulators, slot, new, strict=True)]
            for slot, new in zip(slots, sums, strict=True)
        ]
        last = self.label
        self.write(f"br label %{head}")
        phis = [f"{base} = phi i64 [ {begin}, %{before_label} ], [ {following_base}, %{last} ]"]
        for copy, slot in enumerate(slots):
            phis += self._phis(loop.accumulators, True, slot, held[copy], before_label, following[copy], last)
        self.lines[line_number:line_number] = phis
        self.leave(outside)
        self.begin(done)
        return slots

    def _fold(self, accumulator: Accumulator, registers: list[str]) -> list[str]:
        """One result of all lanes, by halves."""
        distance = self.width // 2
        while distance:
            lanes = ", ".join(f"i32 {(lane + distance) % self.width}" for lane in range(self.width))
            others = [
                self.line(f"shufflevector {kind} {register}, {kind} poison, <{self.width} x i32> <{lanes}>")
                for kind, register in (
                    (register_type(value.dtype, self.width), register)
                    for value, register in zip(accumulator.results, registers, strict=True)
                )
            ]
            registers = self._merge(accumulator, registers, others, True)
            distance //= 2
        return [
            self.line(f"extractelement {register_type(value.dtype, self.width)} {register}, i64 0")
            for value, register in zip(accumulator.results, registers, strict=True)
        ]


def _compared_bits(condition: Value) -> int:
    """The width of what a condition compares."""
    while condition.dtype == BOOL and condition.operands:
        condition = condition.operands[0]
    return 8 * condition.dtype.itemsize


def _has_predicates(loop: Loop) -> bool:
    """Whether a loop reads elements under a condition."""
    return any(value.op == "load" and value.attribute.masked for value in in_order(*loop.roots()))
