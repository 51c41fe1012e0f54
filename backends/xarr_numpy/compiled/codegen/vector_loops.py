"""Vector loops in LLVM IR: several registers of lanes an iteration, long ones in chunks."""

from __future__ import annotations

from xarr.compiler.loop_ir.loops import Loop
from xarr_numpy.compiled.codegen.accumulators import Accumulators
from xarr_numpy.processor import PROCESSOR


class VectorLoops(Accumulators):
    """A phase, with its vector loops."""

    #: Whether the function is called inside of others, which may soon read what it stores.
    is_inner = False

    def body(self, loop: Loop) -> None:
        """Write what an iteration of a loop does, but for its accumulators."""
        raise NotImplementedError

    def vector_loop(self, loop: Loop, begin: str, end: str) -> None:
        """Full registers first, several an iteration; then one register an iteration, the last one in part."""
        copies = self._copies(loop)
        step = copies * self.width
        count = self.line(f"sub nsw i64 {end}, {begin}")
        full = self.line(f"and i64 {count}, {-step}")
        middle = self.line(f"add nsw i64 {begin}, {full}")
        self.vectors.add(loop.index)
        starts = self.starts(loop.accumulators, True)
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
                self.merge(a, x, y, True) for a, x, y in zip(loop.accumulators, total, other, strict=True)
            ]
        is_known = isinstance(loop.extent, int) and begin == "0"
        length = loop.max_iterations if is_known else 1
        few = length % self.width
        if self.is_inner and is_known and few and length <= PROCESSOR.max_inner_registers * self.width:
            last = self.line(f"sub nsw i64 {end}, {few}")
            if length % step > few:
                (total,) = self._iterations(loop, middle, last, [total], self.width)
            self.first_few = few
            (total,) = self._iterations(loop, last, end, [total], self.width, True)
            self.first_few = 0
        elif length % step:
            (total,) = self._iterations(loop, middle, end, [total], self.width, few != 0)
        for accumulator, registers in zip(loop.accumulators, total, strict=True):
            folded = self.fold(accumulator, registers)
            self.block.names.update(zip(accumulator.results, folded, strict=True))

    def _copies(self, loop: Loop) -> int:
        if any(isinstance(part, Loop) for part in loop.body):
            return 1
        size = len(self.values_of(loop))
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
        labels = self.labels("head", "body", "done")
        slots, following = _slots_of(held, labels[0]), []
        with self.rounds(labels, begin, end) as rounds:
            base = rounds.counter
            for copy, slot in enumerate(slots):
                inside = self.inner()
                self.base[loop.index] = (
                    self.line(f"add nsw i64 {base}, {copy * self.width}") if copy else base
                )
                if masked:
                    self.mask = self.first_lanes(base, end)
                self.body(loop)
                following.append(self.accumulate(loop, slot, masked))
                self.leave(inside)
            rounds.following = self.line(f"add nsw i64 {base}, {step}")
            for row in zip(slots, held, following, strict=True):
                rounds.phis += self.phis(loop.accumulators, True, *row)
        return slots

    def _chunks(
        self, loop: Loop, begin: str, end: str, held: list[list[list[str]]], step: int
    ) -> list[list[list[str]]]:
        """A long loop in chunks, each of which accumulates anew: sums of sums, whose errors grow slowly."""
        labels = self.labels("chunk", "inside", "after")
        slots = _slots_of(held, labels[0])
        with self.rounds(labels, begin, end) as rounds:
            rounds.following = self.line(f"add nsw i64 {rounds.counter}, {step * PROCESSOR.chunk_iterations}")
            short = self.line(f"icmp slt i64 {rounds.following}, {end}")
            limit = self.line(f"select i1 {short}, i64 {rounds.following}, i64 {end}")
            sums = self._iterations(loop, rounds.counter, limit, held, step)
            for slot, first, new in zip(slots, held, sums, strict=True):
                following = [
                    self.merge(a, x, y, True) for a, x, y in zip(loop.accumulators, slot, new, strict=True)
                ]
                rounds.phis += self.phis(loop.accumulators, True, slot, first, following)
        return slots


def _slots_of(held: list[list[list[str]]], head: str) -> list[list[list[str]]]:
    """For each register of each accumulator of each copy of a body the one that changes from round to round."""
    return [
        [[f"%{head}.a{copy}.{n}.{k}" for k in range(len(each))] for n, each in enumerate(registers)]
        for copy, registers in enumerate(held)
    ]
