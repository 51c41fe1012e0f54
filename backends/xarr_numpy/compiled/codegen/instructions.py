"""Values as LLVM IR: one `Block` of straight-line instructions on scalars or vectors.

No instruction carries a fast-math flag.  A result has the same bits at every width, in the tail of a loop
and on every machine.  Source: LLVM Language Reference Manual.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import numpy as np

from xarr.compiler.functions.rounding import float16_of_float64
from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.scalars import BOOL, COMPARISONS, INT64, DType, Value, constant_of, in_order
from xarr.dtypes import real_part_of
from xarr.ir.operands_first import compute_operands_first
from xarr_numpy.compiled.codegen import scalar_extremes, slow_paths
from xarr_numpy.compiled.codegen.integer_division import divides_in_lanes, write_division
from xarr_numpy.compiled.codegen.templates import IN_LANES

#: What is said of each function: it raises nothing, and may use the widest registers.
ATTRIBUTES: Final = 'nounwind "prefer-vector-width"="512"'

_FLOATS: Final = {
    np.dtype(np.float16): "half",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}
_BINARY_FLOAT: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
_BINARY_INTEGER: Final = {
    **{"add": "add", "sub": "sub", "mul": "mul", "div": "sdiv", "rem": "srem"},
    **{"and": "and", "or": "or", "xor": "xor", "shl": "shl", "shr": "ashr"},
}
#: The greatest number that is part of the text of every function.
_MOST_LITERAL: Final = 2
#: Operations of integers that take less time where the second operand is known.
_BY_CONSTANTS: Final = frozenset({"div", "rem", "and", "or", "xor", "shl", "shr"})
_UNSIGNED: Final = {**_BINARY_INTEGER, "div": "udiv", "rem": "urem", "shr": "lshr"}
_INTRINSICS: Final = {
    **{"sqrt": "sqrt", "rint": "rint", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "abs": "fabs"},
    **{"maximum": "maximum", "minimum": "minimum"},
    **{"copysign": "copysign", "fma": "fma", "popcount": "ctpop", "count_leading_zeros": "ctlz"},
}


def element_type(dtype: DType) -> str:
    """LLVM's type of one element in a register; bools are i1 there and i8 in memory."""
    if dtype == BOOL:
        return "i1"
    if dtype.kind in "iu":
        return f"i{dtype.itemsize * 8}"
    if dtype not in _FLOATS:
        raise TypeError(f"no register holds {dtype}; load its bits as an unsigned integer and widen them")
    return _FLOATS[dtype]


@lru_cache(maxsize=256)
def register_type(dtype: DType, width: int) -> str:
    """LLVM's type of `width` elements in a register: a scalar for one, else a vector.

    Complex numbers lie there as in memory, their parts beside each other.
    """
    if dtype.kind == "c":
        return f"<{2 * width} x {element_type(real_part_of(dtype))}>"
    element = element_type(dtype)
    return element if width == 1 else f"<{width} x {element}>"


def memory_type(dtype: DType, width: int = 1) -> str:
    """LLVM's type of elements in memory: a bool takes a byte there."""
    if dtype == BOOL:
        return "i8" if width == 1 else f"<{width} x i8>"
    return register_type(dtype, width)


def alignment(dtype: DType) -> int:
    """Bytes that the addresses of elements are multiples of."""
    return real_part_of(dtype).itemsize


def numbers_of(dtype: DType) -> int:
    """Numbers that an element consists of: a complex one of its parts."""
    return 2 if dtype.kind == "c" else 1


def mask_type(dtype: DType, width: int) -> str:
    """LLVM's type of such a mask."""
    return f"<{numbers_of(dtype) * width} x i1>"


def literal(value: Value) -> str:
    """A constant as LLVM writes it, to the bit."""
    return _literal(value.attribute, value.dtype)


def _spread_literal(value: Value, width: int) -> str:
    """A constant as it is, in all lanes if these are several."""
    return literal(value) if width == 1 else f"splat ({element_type(value.dtype)} {literal(value)})"


@lru_cache(maxsize=4096)
def _literal(raw: bytes, dtype: DType) -> str:
    # Kept, because the coefficients of a polynomial are in every kernel that has its function.
    (number,) = np.frombuffer(raw, dtype)
    if dtype == BOOL:
        return "true" if number else "false"
    if dtype.kind != "f":
        return str(number)
    if dtype == np.float16:
        return f"0xH{int(number.view(np.uint16)):04X}"
    return f"0x{_double_bits(number):016X}"


def _count_of(value: Value) -> int | None:
    """The integer, or the bits of the float64, of a constant that may count elements; None of others.

    Powers of two are none of floats, which are divided by them in less time.
    """
    if value.dtype == INT64:
        number = int(constant_of(value))
        return number if abs(number) > _MOST_LITERAL else None
    if value.dtype.kind != "f" or value.dtype == np.float16:
        return None
    count = float(constant_of(value))
    is_count = _MOST_LITERAL < count < 2**53 and count.is_integer()
    return _double_bits(np.float64(count)) if is_count and int(count).bit_count() > 1 else None


def _double_bits(number: Any) -> int:
    """The bits of the float64 that stands for this float32 or float64; by hand, since NumPy quiets NaNs."""
    if number.dtype == np.float64:
        return int(number.view(np.uint64))
    if number == number:
        return int(np.float64(number).view(np.uint64))
    bits = int(number.view(np.uint32))
    return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29


class Block:
    """Prints values as instructions, each once, for vectors of `width` elements or for scalars (1).

    A value is a vector if it varies from element to element: if one of its operands does or if `varies`
    says so of an argument or a load.  Others stay scalars, and are spread where a vector needs them.

    lines           the instructions
    declarations    the `declare` lines of what they call
    functions       definitions that the module needs besides, by name

    `prefix` makes names that differ from those of another block in the same LLVM function; `suffix` does so
    for functions in the same module.
    """

    def __init__(
        self, width: int, varies: Callable[[Value], bool] = lambda value: True, prefix: str = "v"
    ) -> None:
        self.width = width
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.functions: dict[str, str] = {}
        self.names: dict[Value, str] = {}
        self._leaf_varies = varies
        self._prefix = prefix
        #: Bools that are known, though what they are computed from varies; shared with inner blocks.
        self._settled: set[Value] = set()
        #: What is known of integers.
        self.ranges = Ranges({})
        #: Gives a number of elements a placeholder of a kind (`templates`); None where texts have numbers.
        self.placeholder: Callable[[int, str], str] | None = None
        self._varying: dict[Value, bool] = {}
        self._spread: dict[Value, str] = {}
        #: Addresses by what they are computed from: a pointer, and registers with their factors.
        self.addresses: dict[tuple[str, tuple[tuple[str, int], ...]], str] = {}
        self._count = 0

    def inner(self, prefix: str) -> Block:
        """A block for instructions that follow these, whose registers these do not see."""
        block = Block(self.width, self._leaf_varies, prefix)
        block.names, block._spread = dict(self.names), dict(self._spread)
        block.addresses = dict(self.addresses)
        block._settled, block.ranges = self._settled, self.ranges
        block.placeholder = self.placeholder
        return block

    # --- what a loop emitter calls -------------------------------------------------------------------

    def emit(self, values: Iterable[Value], names: dict[Value, str] | None = None) -> None:
        """Compute these values.  `names` has those that registers hold already (arguments, loads)."""
        self.names.update(names or {})
        for value in self._missing(values):
            self.write(value)

    def write(self, value: Value) -> None:
        """Compute a value whose operands have registers."""
        self.names[value] = self.constant(value, 1) if value.op == "constant" else self._write(value)

    def constant(self, value: Value, width: int) -> str:
        """A constant, or a placeholder for one that may count elements; without its type."""
        bits = self.placeholder and _count_of(value)
        if bits and self.placeholder:
            is_float = value.dtype.kind == "f"
            kind = ("d" if value.dtype.itemsize == 8 else "f") if is_float else "n"
            return self.placeholder(bits, kind if width == 1 else IN_LANES[kind])
        return _spread_literal(value, width)

    def settle(self, value: Value, truth: bool) -> None:
        """Let a bool be what it is in every iteration, whatever it is computed from."""
        self.names[value] = "true" if truth else "false"
        self._settled.add(value)
        self._varying[value] = False

    def varies(self, value: Value) -> bool:
        """Whether the value is a vector (of a block that is wider than 1)."""
        known = self._varying.get(value)
        if known is not None:
            return known
        return compute_operands_first(value, self._varying, attrgetter("operands"), self._varies_itself)

    def _varies_itself(self, value: Value) -> bool:
        if value in self._settled:
            return False
        if value.operands:
            return any([self._varying[operand] for operand in value.operands])
        return value.op != "constant" and self._leaf_varies(value)

    def width_of(self, value: Value) -> int:
        """Number of elements of a value's register."""
        return self.width if self.width > 1 and self.varies(value) else 1

    def operand(self, value: Value, width: int) -> str:
        """The register or constant of a value that has been emitted, without its type."""
        if width == 1 or self.width_of(value) == width:
            return self.names[value]
        if value.op == "constant":
            self._spread.setdefault(value, self.constant(value, width))
        if value in self._settled:
            return f"splat (i1 {self.names[value]})"
        if value not in self._spread:
            self._spread[value] = self._spread_out(value)
        return self._spread[value]

    def typed_operand(self, value: Value, width: int) -> str:
        """The register or constant of a value that has been emitted, after its type."""
        return f"{register_type(value.dtype, width)} {self.operand(value, width)}"

    def line(self, instruction: str) -> str:
        """Append an instruction that has a result; its register."""
        self._count += 1
        register = f"%{self._prefix}{self._count}"
        self.lines.append(f"{register} = {instruction}")
        return register

    # --- printing ------------------------------------------------------------------------------------

    def _missing(self, values: Iterable[Value]) -> Iterator[Value]:
        """Values without a register yet, operands first; the costly side of `rarely` is left to it."""
        stack = list(values)[::-1]
        while stack:
            value = stack[-1]
            needed = value.operands[:2] if value.op == "rarely" else value.operands
            missing = [operand for operand in needed if operand not in self.names]
            if value in self.names or not missing:
                stack.pop()
                if value not in self.names:
                    yield value
            else:
                stack.extend(reversed(missing))

    def _write(self, value: Value) -> str:
        op, dtype, width = value.op, value.dtype, self.width_of(value)
        if op in COMPARISONS:
            return self._compare(value, width)
        if op in _CONVERSIONS:
            convert: Callable[[Value, int], str] = getattr(self, f"_{op}")
            return convert(value, width)
        if op == "select":
            return self._select(value, width)
        if op in _INTRINSICS:
            return self._intrinsic(value, width)
        if op in ("neg", "not"):
            return self._unary(value, width)
        if op in ("real", "imag"):
            return self._part(value, width)
        if op == "complex":
            return self._pair(value, width)
        table = _BINARY_FLOAT if dtype.kind == "f" else _BINARY_INTEGER if dtype.kind == "i" else _UNSIGNED
        if op not in table or len(value.operands) != 2:
            raise TypeError(f"no instruction for {op} of {dtype}; give the names of arguments and loads")
        x, y = value.operands
        if width > 1 and divides_in_lanes(value):
            return write_division(
                self, value, self.operand(x, width), self.operand(y, width), self.ranges.of(x)
            )
        interval = _interval(x, y) if width == 1 and dtype == BOOL and op == "and" else None
        if interval is not None and interval[0] in self.names:
            # Of a comparison that is settled no operand has a register.
            return self.line(
                f"icmp ule {self.typed_operand(interval[0], 1)}, {self.constant(interval[1], 1)}"
            )
        is_known = y.op == "constant" and op in _BY_CONSTANTS and dtype.kind != "f"
        right = _spread_literal(y, width) if is_known else self.operand(y, width)
        return self.line(f"{table[op]} {self.typed_operand(x, width)}, {right}")

    def _unary(self, value: Value, width: int) -> str:
        (x,) = value.operands
        kind = register_type(value.dtype, width)
        if value.op == "not":
            ones = "true" if value.dtype == BOOL else "-1"
            all_ones = ones if width == 1 else f"splat ({element_type(value.dtype)} {ones})"
            return self.line(f"xor {self.typed_operand(x, width)}, {all_ones}")
        if value.dtype.kind == "f":
            return self.line(f"fneg {self.typed_operand(x, width)}")
        return self.line(f"sub {kind} {'0' if width == 1 else 'zeroinitializer'}, {self.operand(x, width)}")

    def _compare(self, value: Value, width: int) -> str:
        x, y = value.operands
        if x.dtype.kind == "f":
            predicate = "une" if value.op == "ne" else f"o{value.op}"
            return self.line(f"fcmp {predicate} {self.typed_operand(x, width)}, {self.operand(y, width)}")
        sign = "" if value.op in ("eq", "ne") else "s" if x.dtype.kind == "i" else "u"
        return self.line(f"icmp {sign}{value.op} {self.typed_operand(x, width)}, {self.operand(y, width)}")

    def _select(self, value: Value, width: int) -> str:
        predicate, x, y = value.operands
        chosen = self.typed_operand(predicate, self.width_of(predicate))
        return self.line(f"select {chosen}, {self.typed_operand(x, width)}, {self.typed_operand(y, width)}")

    def _intrinsic(self, value: Value, width: int) -> str:
        if value.op == "fma" and value.dtype == np.float16:
            raise TypeError("no processor has an fma of float16 that rounds once; compute it in float32")
        kind = register_type(value.dtype, width)
        arguments = [self.typed_operand(x, width) for x in value.operands]
        kinds = [kind] * len(arguments)
        if scalar_extremes.is_known(value.op, kind):
            name = f"{value.op}.{kind}"
            self.functions[name] = scalar_extremes.function(name, value.op, kind)
            return self.line(f"call {kind} @{name}({', '.join(arguments)})")
        if value.op == "count_leading_zeros":
            arguments, kinds = [*arguments, "i1 false"], [*kinds, "i1"]
        return self.call(f"llvm.{_INTRINSICS[value.op]}.{intrinsic_suffix(kind)}", kind, kinds, arguments)

    def call(self, name: str, result: str, kinds: list[str], arguments: list[str]) -> str:
        """Call an intrinsic."""
        self.declarations.add(f"declare {result} @{name}({', '.join(kinds)})")
        return self.line(f"call {result} @{name}({', '.join(arguments)})")

    def _part(self, value: Value, width: int) -> str:
        (x,) = value.operands
        first = int(value.op == "imag")
        if width == 1:
            return self.line(f"extractelement {self.typed_operand(x, 1)}, i64 {first}")
        return self.shuffle(
            self.typed_operand(x, width), "poison", [2 * lane + first for lane in range(width)]
        )

    def _pair(self, value: Value, width: int) -> str:
        x, y = value.operands
        if width == 1:
            kind = register_type(value.dtype, 1)
            first = self.line(f"insertelement {kind} poison, {self.typed_operand(x, 1)}, i64 0")
            return self.line(f"insertelement {kind} {first}, {self.typed_operand(y, 1)}, i64 1")
        lanes = [source for lane in range(width) for source in (lane, width + lane)]
        return self.shuffle(self.typed_operand(x, width), self.operand(y, width), lanes)

    def shuffle(self, first: str, second: str, lanes: list[int]) -> str:
        """Lanes of two registers, of which the first is given with its type."""
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        # A constant has spaces of its own.
        kind = first[: first.index(">") + 1]
        return self.line(f"shufflevector {first}, {kind} {second}, <{len(lanes)} x i32> <{order}>")

    def _spread_out(self, value: Value) -> str:
        if value.dtype.kind == "c":
            return self.shuffle(self.typed_operand(value, 1), "poison", [0, 1] * self.width)
        return self.splat(register_type(value.dtype, self.width), self.typed_operand(value, 1))

    def splat(self, kind: str, number: str) -> str:
        """A register of this type whose lanes are one number, which is given with its type."""
        first = self.line(f"insertelement {kind} poison, {number}, i64 0")
        return self.line(f"shufflevector {kind} {first}, {kind} poison, <{self.width} x i32> zeroinitializer")

    # --- conversions ---------------------------------------------------------------------------------

    def _cast(self, instruction: str, operand: str, dtype: DType, width: int) -> str:
        return self.line(f"{instruction} {operand} to {register_type(dtype, width)}")

    def _bitcast(self, value: Value, width: int) -> str:
        (x,) = value.operands
        same = element_type(x.dtype) == element_type(value.dtype)
        if BOOL in (x.dtype, value.dtype):
            raise TypeError("a bool has no bits in a register; convert it")
        return (
            self.operand(x, width)
            if same
            else self._cast("bitcast", self.typed_operand(x, width), value.dtype, width)
        )

    def _convert(self, value: Value, width: int) -> str:
        (x,) = value.operands
        old, new = x.dtype, value.dtype
        if new == BOOL:
            zero = "0" if width == 1 and old.kind != "f" else "0.0" if width == 1 else "zeroinitializer"
            compare = "fcmp une" if old.kind == "f" else "icmp ne"
            return self.line(f"{compare} {self.typed_operand(x, width)}, {zero}")
        if old.kind == new.kind == "f":
            return self._convert_float(x, new, width)
        if old.kind == "f":
            return self._saturate(x, new, width)
        if new.kind == "f":
            return self._from_integer(x, new, width)
        return self._convert_integer(x, new, width)

    def _convert_float(self, x: Value, new: DType, width: int) -> str:
        if x.dtype == np.float64 and new == np.float16:
            # The instruction is a call into a library that may not be there.
            rounded = float16_of_float64(x)
            self.emit([rounded])
            return self.operand(rounded, width)
        instruction = "fpext" if new.itemsize > x.dtype.itemsize else "fptrunc"
        return self._cast(instruction, self.typed_operand(x, width), new, width)

    def _saturate(self, x: Value, new: DType, width: int) -> str:
        if x.dtype == np.float16:
            x = x.convert(np.float32)
            self.emit([x])
        kind, old = register_type(new, width), register_type(x.dtype, width)
        instruction = f"fpto{'s' if new.kind == 'i' else 'u'}i"
        if width > 1:
            return self._saturate_lanes(
                x, new, self._cast(instruction, self.typed_operand(x, width), new, width)
            )
        name = f"llvm.{instruction}.sat.{intrinsic_suffix(kind)}.{intrinsic_suffix(old)}"
        return self.call(name, kind, [old], [self.typed_operand(x, width)])

    def _saturate_lanes(self, x: Value, new: DType, converted: str) -> str:
        """Lanes of floats that were converted where they fit: LLVM's own instruction takes them one by one."""
        limits, width = np.iinfo(new), self.width
        kind, lanes = register_type(new, width), f"<{width} x i1>"
        floats, each = self.typed_operand(x, width), element_type(new)
        real = element_type(x.dtype)
        low, high = (literal(x.constant(float(end))) for end in (limits.min, limits.max + 1))
        within = self.line(f"freeze {kind} {converted}")
        above = self.line(f"fcmp oge {floats}, splat ({real} {high})")
        within = self.line(f"select {lanes} {above}, {kind} splat ({each} {limits.max}), {kind} {within}")
        below = self.line(f"fcmp ult {floats}, splat ({real} {low})")  # or NaN
        least = f"{kind} zeroinitializer"
        if limits.min:
            is_nan = self.line(f"fcmp uno {floats}, {self.operand(x, width)}")
            least = f"select {lanes} {is_nan}, {least}, {kind} splat ({each} {limits.min})"
            least = f"{kind} {self.line(least)}"
        return self.line(f"select {lanes} {below}, {least}, {kind} {within}")

    def _from_integer(self, x: Value, new: DType, width: int) -> str:
        instruction = "sitofp" if x.dtype.kind == "i" else "uitofp"
        if new != np.float16:
            return self._cast(instruction, self.typed_operand(x, width), new, width)
        # By way of float32, which rounds no integer that float16 can hold.
        wide = self._cast(instruction, self.typed_operand(x, width), np.dtype(np.float32), width)
        return self._cast("fptrunc", f"{register_type(np.dtype(np.float32), width)} {wide}", new, width)

    def _convert_integer(self, x: Value, new: DType, width: int) -> str:
        old_bits = 1 if x.dtype == BOOL else x.dtype.itemsize * 8
        new_bits = new.itemsize * 8
        if old_bits == new_bits:
            return self.operand(x, width)
        extend = "sext" if x.dtype.kind == "i" else "zext"
        return self._cast(
            "trunc" if new_bits < old_bits else extend, self.typed_operand(x, width), new, width
        )

    # --- what few elements need ----------------------------------------------------------------------

    def _rarely(self, value: Value, width: int) -> str:
        condition, usual, exceptional = value.operands
        parts = [each for each in in_order(exceptional) if each.op in ("real", "imag")]
        self.emit(part for part in parts if part.operands[0] in self.names)
        inputs = self._inputs(exceptional)
        kinds = [element_type(x.dtype) for x in inputs]
        result = element_type(value.dtype)
        slow = self._define_slow(exceptional, inputs, kinds)
        name = f"{slow}.{width}"
        if width == 1:
            self.functions[name] = slow_paths.for_one(name, slow, result, kinds)
        else:
            self.functions[name] = slow_paths.for_lanes(name, slow, result, kinds, width)
            self.declarations.add(f"declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)")
        arguments = ", ".join([self.typed_operand(x, width) for x in (condition, usual, *inputs)])
        return self.line(f"call {register_type(value.dtype, width)} @{name}({arguments})")

    def _inputs(self, root: Value) -> list[Value]:
        """Values in registers from which a value is computed."""
        inputs: dict[Value, None] = {}
        seen: set[Value] = set()
        stack = [root]
        while stack:
            value = stack.pop()
            if value in seen or value.op == "constant":
                continue
            seen.add(value)
            if value in self.names:
                inputs[value] = None
            else:
                stack.extend(reversed(value.operands))
        return list(inputs)

    def _define_slow(self, root: Value, inputs: list[Value], kinds: list[str]) -> str:
        inner = Block(1)
        inner.emit([root], {x: f"%a{index}" for index, x in enumerate(inputs)})
        self.declarations |= inner.declarations
        self.functions |= inner.functions
        result, last = element_type(root.dtype), inner.operand(root, 1)
        content = repr((result, kinds, inner.lines, last)).encode()
        name = f"slow.{hashlib.sha256(content).hexdigest()[:16]}"
        self.functions[name] = slow_paths.scalar(name, result, kinds, inner.lines, last)
        return name


_CONVERSIONS: Final = frozenset({"bitcast", "convert", "rarely"})


def _interval(low: Value, high: Value) -> tuple[Value, Value] | None:
    """The number x and the constant n, where two comparisons say that 0 <= x and x <= n: one without signs."""
    if (low.op, high.op) != ("ge", "le"):
        return None
    (number, zero), (same, last) = low.operands, high.operands
    are_known = zero.op == last.op == "constant" and number.dtype.kind == "i"
    if same is not number or not are_known or constant_of(zero) != 0 or constant_of(last) < 0:
        return None
    return number, last


class CodeLines:
    """The lines of a function while they are written: those of the present block, and what stands between.

    lines           what has been written
    declarations    the `declare` lines that it needs
    helpers         the definitions that it needs besides, by name
    """

    def __init__(self, block: Block) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.block = block
        self._count = 0

    def line(self, instruction: str) -> str:
        """Write an instruction that has a result; its register."""
        register = self.block.line(instruction)
        self.flush()
        return register

    def write(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self.flush()
        self.lines.append(instruction)

    def flush(self) -> None:
        """Take over what the block has."""
        self.lines += self.block.lines
        self.block.lines = []
        self.declarations |= self.block.declarations
        self.helpers |= self.block.functions

    def inner(self) -> Block:
        """Enter a part of the function whose registers are not seen outside; the block to return to."""
        self.flush()
        before = self.block
        self._count += 1
        self.block = before.inner(f"b{self._count}.")
        return before

    def leave(self, before: Block) -> None:
        self.flush()
        self.block = before


def intrinsic_suffix(kind: str) -> str:
    """The suffix by which an intrinsic is named for scalars or vectors of a kind."""
    *count, element = kind.strip("<>").split(" x ")
    names = {"half": "f16", "float": "f32", "double": "f64"}
    return "".join([f"v{each}" for each in count]) + names.get(element, element)
