"""Accumulators of loops in LLVM IR: their registers, and what joins what they hold."""

from __future__ import annotations

from xarr.compiler.loop_ir.loops import Accumulator, Loop
from xarr.compiler.loop_ir.scalars import BOOL, Value
from xarr_numpy.compiled.codegen.instructions import Block, register_type
from xarr_numpy.compiled.codegen.registers import Registers
from xarr_numpy.processor import PROCESSOR


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

    def combine(
        self, accumulator: Accumulator, held: list[str], terms: tuple[Value, ...], wide: bool
    ) -> list[str]:
        """The registers after `terms` have joined what is `held`."""
        self.compute(terms)
        width = self.width if wide else 1
        names = dict(zip(accumulator.left, held, strict=True))
        added = accumulator.arguments or accumulator.right
        names.update((name, self.block.operand(term, width)) for name, term in zip(added, terms, strict=True))
        return self._emit(accumulator.step or accumulator.combined, names, wide)

    def merge(self, accumulator: Accumulator, left: list[str], right: list[str], wide: bool) -> list[str]:
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
        first = self.line(f"insertelement {kind} poison, {number} {left}, i64 0")
        every = self.line(
            f"shufflevector {kind} {first}, {kind} poison, <{self.width} x i32> zeroinitializer"
        )
        lanes = ", ".join(f"{number} {lane}" for lane in range(self.width))
        return self.line(f"icmp slt {kind} <{lanes}>, {every}")


def _joins_bools(accumulator: Accumulator) -> bool:
    """Whether an accumulator holds whether a bool was true in any iteration, or in all."""
    (joined, *others) = accumulator.combined
    is_join = joined.dtype == BOOL and joined.op in ("or", "and")
    return is_join and not others and set(joined.operands) == {*accumulator.left, *accumulator.right}
