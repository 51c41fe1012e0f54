"""Searches and prefixes in LLVM IR: vector loops whose iterations go on from those before."""

from __future__ import annotations

from xarr.compiler.loop_ir.loops import Loop, Prefix, Search
from xarr.compiler.loop_ir.scalars import BOOL, Value
from xarr_numpy.compiled.codegen.instructions import Block, numbers_of, register_type
from xarr_numpy.compiled.codegen.vector_loops import VectorLoops
from xarr_numpy.processor import PROCESSOR


class ScanLoops(VectorLoops):
    """A phase, with the loops that end with the first lane that is wanted, or that accumulate along lanes."""

    def search_loop(self, loop: Loop, search: Search, begin: str, end: str) -> None:
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
        lane_index = self.line(f"add nsw i64 {last}, {wide}")
        some = self.line(f"icmp slt i64 {last}, {end}")
        self.block.names[search.result] = self.line(f"select i1 {some}, i64 {lane_index}, i64 0")

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
                self.mask = self.first_lanes(base, end)
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

    def prefix_loop(self, loop: Loop, begin: str, end: str) -> None:
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
            self.mask = self.first_lanes(base, end)
        following = [self._runs(prefix, slot) for prefix, slot in zip(loop.prefixes, slots, strict=True)]
        self.body(loop)
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


def _compared_bits(condition: Value) -> int:
    """The width of what a condition compares."""
    while condition.dtype == BOOL and condition.operands:
        condition = condition.operands[0]
    return 8 * condition.dtype.itemsize
