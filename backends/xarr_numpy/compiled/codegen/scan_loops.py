"""Searches and prefixes in LLVM IR: vector loops whose iterations go on from those before."""

from __future__ import annotations

from xarr.compiler.loop_ir.loops import Loop, Prefix, Search
from xarr.compiler.loop_ir.scalars import BOOL, Value
from xarr_numpy.compiled.codegen.accumulators import Phi
from xarr_numpy.compiled.codegen.instructions import numbers_of, register_type
from xarr_numpy.compiled.codegen.lane_lines import rises
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
        labels = head, _, done, further = self.labels("head", "body", "done", "further")
        lanes = f"<{self.width} x i1>"
        with self.rounds(labels, begin, end) as rounds:
            base = rounds.counter
            # As wide as what is compared: bits would be packed before they are looked at.
            number = f"i{_compared_bits(search.condition)}"
            kind, wanted = f"<{self.width} x {number}>", ""
            for copy in range(copies):
                inside = self.inner()
                self.base[loop.index] = (
                    self.line(f"add nsw i64 {base}, {copy * self.width}") if copy else base
                )
                if masked:
                    self.mask = self.first_lanes(base, end)
                self.compute([search.condition])
                truths = self.block.operand(search.condition, self.width)
                if masked:
                    truths = self.line(f"and {lanes} {truths}, {self.mask}")
                spread = self.line(f"sext {lanes} {truths} to {kind}")
                wanted = self.line(f"or {kind} {wanted}, {spread}") if wanted else spread
                self.leave(inside)
            bits = f"i{self.width * int(number[1:])}"
            some = self.line(f"icmp ne {bits} {self.line(f'bitcast {kind} {wanted} to {bits}')}, 0")
            last = self.label
            self.write(f"br i1 {some}, label %{done}, label %{further}")
            self.begin(further)
            rounds.following = self.line(f"add nsw i64 {base}, {copies * self.width}")
        nothing = f"[ zeroinitializer, %{head} ]"
        return base, self.line(f"phi {lanes} {nothing}, [ {truths}, %{last} ]")

    def prefix_loop(self, loop: Loop, begin: str, end: str) -> None:
        """One register an iteration; each goes on from the total of those before."""
        self.vectors.add(loop.index)
        self.vectors.update(prefix.running for prefix in loop.prefixes)
        self.rising.update(prefix.running for prefix in loop.prefixes if rises(prefix))
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
        labels = self.labels("head", "body", "done")
        slots = [f"%{labels[0]}.p{number}" for number in range(len(held))]
        with self.rounds(labels, begin, end) as rounds:
            self.base[loop.index] = rounds.counter
            if masked:
                self.mask = self.first_lanes(rounds.counter, end)
            following = [self._runs(prefix, slot) for prefix, slot in zip(loop.prefixes, slots, strict=True)]
            self.body(loop)
            rounds.following = self.line(f"add nsw i64 {rounds.counter}, {self.width}")
            kinds = [register_type(prefix.running.dtype, self.width) for prefix in loop.prefixes]
            rounds.phis += map(Phi, slots, kinds, held, following)
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
        return self.emit_apart((prefix.combined,), {prefix.left: left, prefix.right: right}, True)[0]


def _compared_bits(condition: Value) -> int:
    """The width of what a condition compares."""
    while condition.dtype == BOOL and condition.operands:
        condition = condition.operands[0]
    return 8 * condition.dtype.itemsize
