"""Quotients and remainders of integers in lanes, for which processors have no instruction: by way of floats.

A quotient estimated in floats is wrong by less than one if the dividend has few bits.  The remainder that it leaves is
exact, and its sign says whether the quotient is one too far from zero.  Of dividends of up to 64 bits the remainder of
a first estimate is divided once more, which corrects that estimate.  Every result is exact, at every width.

Divisors are not 0, nor -1 below the least number, as `div` and `rem` want it.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from xarr.compiler.loop_ir.index_ranges import Range
from xarr.compiler.loop_ir.scalars import DType, Value, constant_of

#: Dividends of this size at most have quotients that float64 estimates well, and adding _ROUNDER rounds these.
_FEW_BITS: Final = 2**51
#: A float whose neighbours are 1 apart: adding it to a smaller one rounds that to a whole number.
_ROUNDERS: Final = {"double": 1.5 * 2**52, "float": 1.5 * 2**23}
#: The float64 nearest to the greatest number of the type, which is not beyond it.
_GREATEST: Final = {"i": 2.0**63 - 2.0**10, "u": 2.0**64 - 2.0**11}


class LaneWriter(Protocol):
    """A writer of instructions, as `Block`."""

    width: int

    def line(self, instruction: str) -> str:
        """Append an instruction that has a result; its register."""

    def call(self, name: str, result: str, kinds: list[str], arguments: list[str]) -> str:
        """Call an intrinsic."""


def divides_in_lanes(value: Value) -> bool:
    """Whether a quotient or remainder is to be computed here: not if LLVM multiplies or shifts in lanes instead."""
    divisor = value.operands[1]
    if value.op not in ("div", "rem") or value.dtype.kind not in "iu":
        return False
    if divisor.op != "constant":
        return True
    number = abs(int(constant_of(divisor)))
    return value.dtype.itemsize == 8 and number & (number - 1) != 0


def write_division(lines: LaneWriter, value: Value, x: str, y: str, range_of_x: Range) -> str:
    """The register with the quotients or remainders of the lanes of `x` and `y`, the first of which lie in a range."""
    bits = 8 * value.dtype.itemsize
    least, greatest = _clip_range(range_of_x, value.dtype)
    if bits == 64 and not (least >= -_FEW_BITS and greatest <= _FEW_BITS):
        return (_Long if value.dtype.kind == "i" else _LongUnsigned)(lines, value.dtype).divide(
            value.op, x, y
        )
    return _Short(lines, value.dtype, least >= 0).divide(value.op, x, y)


def _clip_range(range_: Range, dtype: DType) -> Range:
    info = np.iinfo(dtype)
    return max(range_[0], int(info.min)), min(range_[1], int(info.max))


class _Lanes:
    """Instructions on vectors of integers and floats."""

    def __init__(self, lines: LaneWriter, dtype: DType) -> None:
        self.lines = lines
        self.bits = 8 * dtype.itemsize
        self.sign = "s" if dtype.kind == "i" else "u"
        self.float = "float" if self.bits < 32 else "double"
        self.integers = f"<{lines.width} x i{self.bits}>"
        self.floats = f"<{lines.width} x {self.float}>"

    def number(self, number: float) -> str:
        """A float in all lanes."""
        literal = f"{number:e}" if number == 1 else write_float(number)
        return f"splat ({self.float} {literal})"

    def with_floats(self, op: str, x: str, y: str) -> str:
        return self.lines.line(f"{op} {self.floats} {x}, {y}")

    def with_integers(self, op: str, x: str, y: str) -> str:
        return self.lines.line(f"{op} {self.integers} {x}, {y}")

    def choose(self, condition: str, x: str, y: str, kind: str) -> str:
        return self.lines.line(f"select <{self.lines.width} x i1> {condition}, {kind} {x}, {kind} {y}")

    def to_floats(self, x: str, sign: str) -> str:
        return self.lines.line(f"{sign}itofp {self.integers} {x} to {self.floats}")

    def to_integers(self, x: str, sign: str) -> str:
        return self.lines.line(f"fpto{sign}i {self.floats} {x} to {self.integers}")

    def intrinsic(self, name: str, *operands: str) -> str:
        suffix = "f32" if self.float == "float" else "f64"
        return self.lines.call(
            f"llvm.{name}.v{self.lines.width}{suffix}",
            self.floats,
            [self.floats] * len(operands),
            [f"{self.floats} {each}" for each in operands],
        )

    def round_product(self, x: str, y: str) -> str:
        """The product, rounded to a whole number once, plus `_ROUNDERS`."""
        return self.intrinsic("fma", x, y, self.number(_ROUNDERS[self.float]))


def write_float(number: float) -> str:
    """A float64 as LLVM reads it exactly."""
    return f"0x{int(np.float64(number).view(np.uint64)):016X}"


class _Short(_Lanes):
    """Of dividends with few bits, in floats alone."""

    def __init__(self, lines: LaneWriter, dtype: DType, is_positive: bool) -> None:
        super().__init__(lines, dtype)
        self.is_positive = is_positive
        self.sign_of_divisor = self.sign
        #: Between integers of 64 bits, of which few are used, and floats, instructions know signs.
        self.sign = "s" if self.bits == 64 else self.sign

    def divide(self, op: str, dividend: str, divisor: str) -> str:
        x, y = self.to_floats(dividend, self.sign), self.to_floats(divisor, self.sign_of_divisor)
        inverse = self.with_floats("fdiv", self.number(1), y)
        rounder = self.number(_ROUNDERS[self.float])
        quotient = self.with_floats("fsub", self.round_product(x, inverse), rounder)
        negative = self.lines.line(f"fneg {self.floats} {quotient}")
        rest = self.intrinsic("fma", negative, y, x)
        signed = rest if self.is_positive else self.with_floats("fmul", rest, x)
        is_wrong = self.with_floats("fcmp olt", signed, "zeroinitializer")
        if op == "rem":
            step = y if self.sign == "u" else self.intrinsic("fabs", y)
            step = step if self.is_positive else self.intrinsic("copysign", step, x)
            result, other = rest, self.with_floats("fadd", rest, step)
        else:
            signs = y if self.is_positive else self.with_floats("fmul", x, y)
            step = self.intrinsic("copysign", self.number(1), signs)
            result, other = quotient, self.with_floats("fsub", quotient, step)
        return self.to_integers(self.choose(is_wrong, other, result, self.floats), self.sign)


class _Long(_Lanes):
    """Of signed integers of 64 bits."""

    def divide(self, op: str, x: str, y: str) -> str:
        quotient, rest = self.estimate(x, y)
        other_sign = self.with_integers("icmp slt", self.with_integers("xor", rest, x), "zeroinitializer")
        some = self.with_integers("icmp ne", rest, "zeroinitializer")
        is_wrong = self.lines.line(f"and <{self.lines.width} x i1> {other_sign}, {some}")
        apart = self.with_integers("icmp slt", self.with_integers("xor", rest, y), "zeroinitializer")
        if op == "rem":
            result, pair = rest, [self.with_integers(each, rest, y) for each in ("add", "sub")]
        else:
            one = "splat (i64 1)"
            result, pair = quotient, [self.with_integers(each, quotient, one) for each in ("sub", "add")]
        other = self.choose(apart, pair[0], pair[1], self.integers)
        return self.choose(is_wrong, other, result, self.integers)

    def estimate(self, x: str, y: str) -> tuple[str, str]:
        """A quotient that is wrong by less than one, and the remainder that it leaves, between -|y| and |y|."""
        inverse = self.with_floats("fdiv", self.number(1), self.to_floats(y, self.sign))
        product = self.with_floats("fmul", self.to_floats(x, self.sign), inverse)
        greatest = self.number(_GREATEST[self.sign.replace("s", "i")])
        is_less = self.with_floats("fcmp olt", product, greatest)
        whole = self.intrinsic("rint", self.choose(is_less, product, greatest, self.floats))
        first = self.to_integers(whole, self.sign)
        rest = self.with_integers("sub", x, self.with_integers("mul", first, y))
        rounded = self.round_product(self.to_floats(rest, "s"), inverse)
        rounder = int(np.float64(_ROUNDERS["double"]).view(np.int64))
        bits = self.lines.line(f"bitcast {self.floats} {rounded} to {self.integers}")
        second = self.with_integers("sub", bits, f"splat (i64 {rounder})")
        left = self.with_integers("sub", rest, self.with_integers("mul", second, y))
        return self.with_integers("add", first, second), left


class _LongUnsigned(_Long):
    """Of unsigned integers of 64 bits; a divisor of 2**63 and more goes into a number once or not at all."""

    def divide(self, op: str, x: str, y: str) -> str:
        quotient, rest = self.estimate(x, y)
        is_wrong = self.with_integers("icmp slt", rest, "zeroinitializer")
        is_great = self.with_integers("icmp slt", y, "zeroinitializer")
        once = self.with_integers("icmp uge", x, y)
        if op == "rem":
            result, other = rest, self.with_integers("add", rest, y)
            great = self.choose(once, self.with_integers("sub", x, y), x, self.integers)
        else:
            result, other = quotient, self.with_integers("sub", quotient, "splat (i64 1)")
            great = self.lines.line(f"zext <{self.lines.width} x i1> {once} to {self.integers}")
        usual = self.choose(is_wrong, other, result, self.integers)
        return self.choose(is_great, great, usual, self.integers)
