"""Accumulators of loops in LLVM IR: their registers, and what joins what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from xarr.compiler.loop_ir.loops import Accumulator, Loop
from xarr.compiler.loop_ir.scalars import BOOL, Value
from xarr_numpy.compiled.codegen.instructions import Block, register_type
from xarr_numpy.compiled.codegen.registers import Registers
from xarr_numpy.processor import PROCESSOR


class Phi(NamedTuple):
    """A register of a type that has one value in the first round of a loop, and another one in each that follows."""

    slot: str
    kind: str
    first: str
    following: str


@dataclass
class Rounds:
    """A loop while it is written: its counter, what that is in the next round, and other registers that change."""

    counter: str
    following: str = ""
    phis: list[Phi] = field(default_factory=list)


class Accumulators(Registers):
    """The registers of a phase, with those of accumulators: `wide` ones hold a number for each lane."""

    def starts(self, accumulators: list[Accumulator], wide: bool) -> list[list[str]]:
        self.compute(value for accumulator in accumulators for value in accumulator.identities)
        width = self.width if wide else 1
        return [
            [self.block.operand(value, width) for value in accumulator.identities]
            for accumulator in accumulators
        ]

    def phi_slots(self, accumulators: list[Accumulator], head: str) -> list[list[str]]:
        return [
            [f"%{head}.a{number}.{k}" for k in range(len(accumulator.results))]
            for number, accumulator in enumerate(accumulators)
        ]

    def phis(
        self,
        accumulators: list[Accumulator],
        wide: bool,
        slots: list[list[str]],
        first: list[list[str]],
        following: list[list[str]],
    ) -> Iterator[Phi]:
        """The slots of accumulators, with their registers before the first round and after one."""
        width = self.width if wide else 1
        for accumulator, *registers in zip(accumulators, slots, first, following, strict=True):
            for value, *row in zip(accumulator.results, *registers, strict=True):
                slot, x, y = row
                yield Phi(slot, register_type(value.dtype, width), x, y)

    @contextmanager
    def rounds(self, labels: Sequence[str], begin: str, end: str) -> Iterator[Rounds]:
        """Write a loop from one number up to another, whose blocks have these labels; the caller writes the body."""
        head, body, done, *_ = labels
        rounds, before, around = Rounds(f"%{head}.i"), self.label, (dict(self.base), self.mask)
        self.write(f"br label %{head}")
        self.begin(head)
        line = len(self.lines)
        self.write(f"%{head}.more = icmp slt i64 {rounds.counter}, {end}")
        self.write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside = self.inner()
        self.begin(body)
        yield rounds
        self.base, self.mask = around
        self.write(f"br label %{head}")
        phis = [Phi(rounds.counter, "i64", begin, rounds.following), *rounds.phis]
        self.lines[line:line] = [
            f"{slot} = phi {kind} [ {x}, %{before} ], [ {y}, %{self.label} ]" for slot, kind, x, y in phis
        ]
        self.leave(outside)
        self.begin(done)

    def combine(
        self, accumulator: Accumulator, held: list[str], terms: tuple[Value, ...], wide: bool
    ) -> list[str]:
        """The registers after `terms` have joined what is `held`."""
        self.compute(terms)
        width = self.width if wide else 1
        names = dict(zip(accumulator.left, held, strict=True))
        added = accumulator.arguments or accumulator.right
        names.update((name, self.block.operand(term, width)) for name, term in zip(added, terms, strict=True))
        return self.emit_apart(accumulator.step or accumulator.combined, names, wide)

    def merge(self, accumulator: Accumulator, left: list[str], right: list[str], wide: bool) -> list[str]:
        names = dict(zip(accumulator.left + accumulator.right, left + right, strict=True))
        return self.emit_apart(accumulator.combined, names, wide)

    def emit_apart(self, values: tuple[Value, ...], names: dict[Value, str], wide: bool) -> list[str]:
        """The registers of values that are computed of these names alone, in lanes if they are `wide`."""
        width = self.width if wide else 1
        block = Block(width, lambda value: wide, prefix=f"{self.labels('c')[0]}.")
        block.emit(values, names)
        registers = [block.operand(value, width) for value in values]
        self.flush()
        self.lines += block.lines
        self.declarations |= block.declarations
        self.helpers |= block.functions
        return registers

    def accumulate(self, loop: Loop, slot: list[list[str]], masked: bool) -> list[list[str]]:
        """Contents of the accumulators after an iteration; lanes that do not count keep what they had."""
        joined = []
        for accumulator, registers in zip(loop.accumulators, slot, strict=True):
            new = self.combine(accumulator, registers, accumulator.terms, True)
            if masked:
                kinds = [register_type(value.dtype, self.width) for value in accumulator.results]
                lanes = f"<{self.width} x i1> {self.mask}"
                new = [
                    self.line(f"select {lanes}, {kind} {x}, {kind} {y}")
                    for kind, x, y in zip(kinds, new, registers, strict=True)
                ]
            joined.append(new)
        return joined

    def fold(self, accumulator: Accumulator, registers: list[str]) -> list[str]:
        """One result of all lanes, by halves; whether a bool is true in any, or in all, from the bits of a mask."""
        if _joins_bools(accumulator):
            bits, op = f"i{self.width}", accumulator.combined[0].op
            mask = self.line(f"bitcast <{self.width} x i1> {registers[0]} to {bits}")
            return [
                self.line(f"icmp {'ne' if op == 'or' else 'eq'} {bits} {mask}, {0 if op == 'or' else -1}")
            ]
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
            registers = self.merge(accumulator, registers, others, True)
            distance //= 2
        return [
            self.line(f"extractelement {register_type(value.dtype, self.width)} {register}, i64 0")
            for value, register in zip(accumulator.results, registers, strict=True)
        ]

    def first_lanes(self, base: str, end: str) -> str:
        """Which lanes lie in front of `end`."""
        left = self.line(f"sub nsw i64 {end}, {base}")
        most = self.line(f"icmp slt i64 {left}, {self.width}")
        left = self.line(f"select i1 {most}, i64 {left}, i64 {self.width}")
        # Numbers as wide as the elements are compared in as many registers as these fill.
        number = f"i{max(8, min(64, 8 * PROCESSOR.register_bytes // self.width))}"
        if number != "i64":
            left = self.line(f"trunc i64 {left} to {number}")
        kind = f"<{self.width} x {number}>"
        every = self.block.splat(kind, f"{number} {left}")
        lanes = ", ".join(f"{number} {lane}" for lane in range(self.width))
        return self.line(f"icmp slt {kind} <{lanes}>, {every}")


def _joins_bools(accumulator: Accumulator) -> bool:
    """Whether an accumulator holds whether a bool was true in any iteration, or in all."""
    (joined, *others) = accumulator.combined
    is_join = joined.dtype == BOOL and joined.op in ("or", "and")
    return is_join and not others and set(joined.operands) == {*accumulator.left, *accumulator.right}
