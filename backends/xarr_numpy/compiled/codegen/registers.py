"""Registers of a phase's function: which value is in which, and how elements are loaded and stored."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

from xarr.compiler.loop_ir.changed_parts import varying_values
from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loops import Access, Affine, Buffer, Kernel, Loop, Store, offset_of
from xarr.compiler.loop_ir.scalars import BOOL, COMPARISONS, INT64, DType, Value
from xarr.dtypes import real_part_of
from xarr_numpy.compiled.codegen.formula_calls import NO_FORMULAS, Formula, find_formulas
from xarr_numpy.compiled.codegen.gathers import Gathers
from xarr_numpy.compiled.codegen.instructions import (
    Block,
    alignment,
    memory_type,
    numbers_of,
    register_type,
)
from xarr_numpy.compiled.codegen.lane_lines import (
    LaneLine,
    LaneTest,
    integer_bits,
    is_rising,
    lane_line,
    lane_test,
    load_of_line,
)
from xarr_numpy.processor import PROCESSOR

#: Lanes of a register, at most: as many as bits of a number that says which of them are wanted.
MAX_LANES = 64


def width_of(phase: Loop, order: Sequence[Value]) -> int:
    """Lanes of a register that holds the widest elements of the phase, which computes these values."""
    sizes = [1]
    # What is the same in all lanes, such as the number of the row that they are taken from, takes no register.
    indices = {loop.index for loop in phase.walk() if loop.vector}
    lanes = set(indices)
    for value in order:
        if not lanes.isdisjoint(value.operands):
            lanes.add(value)
        elif value.operands or value.op in ("constant", "index"):
            continue
        if value.dtype != INT64 or value.op == "load":
            sizes.append(alignment(value.dtype))
    least = 4 if _computes_with_indices(phase, order, lanes, indices) else 1
    width = PROCESSOR.register_bytes // max(least, *sizes)
    longest = max((loop.max_iterations for loop in phase.walk() if loop.vector), default=1)
    width = min(width, max(PROCESSOR.register_bytes // 4, 1 << (longest - 1).bit_length()))
    # Where lanes go through a loop of their own, several registers of neighbours share its iterations.
    lane_loops = list(_with_loops_of_lanes(phase))
    # A long body reads more than it accumulates, and what all lanes read is read once for all registers.
    is_long = len(sizes) > PROCESSOR.max_unrolled_body // 2
    most = PROCESSOR.unrolled_registers
    if not is_long and max(map(_accumulated_results, lane_loops), default=0) > 1:
        most //= 2
    carried = max(len(loop.carries) for loop in phase.walk())
    shared = max(1, most // max(1, carried)) if len(sizes) <= PROCESSOR.max_shared_body else 1
    return width * min(
        shared, MAX_LANES // width, max((_registers(loop, width) for loop in lane_loops), default=1)
    )


def _computes_with_indices(
    phase: Loop, values: Iterable[Value], lanes: Collection[Value], indices: Collection[Value]
) -> bool:
    """Whether indices of lanes are numbers in registers, and not just compared and added to addresses.

    values: all that the phase computes.
    """
    if any(part.value in indices for loop in phase.walk() for part in loop.stores()):
        return True
    for value in values:
        numbers = [
            each for each in value.operands if each in lanes and each.dtype == INT64 and each.op != "load"
        ]
        if value.op == "load":
            numbers = [each for each in numbers if each not in indices]
        test = lane_test(value, indices)
        is_sum = value.op == "add" and any(each.op == "constant" for each in value.operands)
        if numbers and not is_sum and (test is None or test.bound in lanes):
            return True
    return False


def _with_loops_of_lanes(phase: Loop) -> Iterator[Loop]:
    for each in phase.walk():
        if each.vector and any(isinstance(part, Loop) for part in each.body):
            yield each


def _accumulated_results(loop: Loop) -> int:
    """Number of results that each lane accumulates in loops of its own: all want registers."""
    inner = [each for each in loop.walk() if each is not loop]
    return sum(len(accumulator.results) for each in inner for accumulator in each.accumulators)


def _registers(loop: Loop, width: int) -> int:
    """Number of registers, a power of two, that a vector loop fills in an iteration."""
    full = loop.extent // width if isinstance(loop.extent, int) else PROCESSOR.unrolled_registers
    return 1 << max(1, full).bit_length() - 1


def roots_of(loop: Loop) -> Iterator[Value]:
    yield from loop.roots()
    yield from loop.limits
    for accumulator in loop.accumulators:
        yield from accumulator.identities
    yield from (carry.initial for carry in loop.carries)
    yield from (prefix.initial for prefix in loop.prefixes)


def order_of(
    roots: Iterable[Value],
    known: Container[Value] = (),
    formulas: Mapping[Value, Formula] = NO_FORMULAS,
) -> list[Value]:
    """Values that `roots` need, operands first; of `rarely` not those that are seldom wanted.

    Those that are `known`, and what only they need, are left out, and what only functions of `formulas` compute.
    """
    listed: set[Value] = set()
    order: list[Value] = []
    stack = list(roots)[::-1]
    while stack:
        value = stack[-1]
        if value not in listed and value not in known:
            needed = value.operands[:2] if value.op == "rarely" else value.operands
            if value in formulas:
                needed = formulas[value].operands
            if not listed.issuperset(needed):
                missing = [each for each in needed[::-1] if each not in listed and each not in known]
                if missing:
                    stack += missing
                    continue
            listed.add(value)
            order.append(value)
        stack.pop()
    return order


def _ranges_of_indices(phase: Loop) -> Ranges:
    """The ranges of the indices of a phase's loops."""
    ranges = Ranges({})
    for loop in phase.walk():
        last = loop.extent if isinstance(loop.extent, int) else ranges.of(loop.extent)[1]
        ranges.known[loop.index] = (0, max(0, last - 1))
    return ranges


class Registers(Gathers):
    """The lines of a function of one phase, its registers, and how elements get into them and out."""

    def __init__(self, kernel: Kernel, phase: Loop, name: str) -> None:
        self.kernel = kernel
        self.phase = phase
        self.name = name
        #: What loops compute, operands first, as far as that was asked for.
        self._computed: dict[Loop, list[Value]] = {}
        self.width = width_of(phase, self.values_of(phase))
        self.formulas = find_formulas(self.values_of(phase))
        self.pointers: dict[Buffer, str] = {}
        #: Values without operands that are vectors, and the scalar that a vector index begins with.
        self.vectors: set[Value] = set()
        #: Those that never fall from lane to lane.
        self.rising: set[Value] = set()
        self.base: dict[Value, str] = {}
        #: The lanes that count, None for all; and how many they are, if neighbours are to be read and written as
        #: registers of fewer lanes.
        self.mask: str | None = None
        self.first_few = 0
        self.label = "entry"
        self._ranges = _ranges_of_indices(phase)
        #: Numbers of iterations, offsets and strides, which the text has placeholders for.
        self.numbers: list[int] = []
        super().__init__(Block(self.width, self.vectors.__contains__, prefix="b."))
        self.block.ranges, self.block.placeholder = self._ranges, self.number

    def entry(self) -> None:
        kernel = self.kernel
        for number, buffer in enumerate((*kernel.inputs, *kernel.outputs, *kernel.scratch)):
            slot = self.line(f"getelementptr inbounds ptr, ptr %buffers, i64 {number}")
            self.pointers[buffer] = self.line(f"load ptr, ptr {slot}, align 8")
        whole = PROCESSOR.register_bytes
        for buffer in kernel.locals:
            size = self.number(buffer.size + whole)
            kind = memory_type(buffer.dtype)
            self.pointers[buffer] = self.line(f"alloca {kind}, i64 {size}, align {whole}")
        self.pointers_of_nothing = self.line(f"alloca [{whole} x i8], align {whole}")
        self.write(f"store <{whole} x i8> zeroinitializer, ptr {self.pointers_of_nothing}, align {whole}")

    def values_of(self, loop: Loop) -> list[Value]:
        """The values that a loop and those inside compute, operands first."""
        order = self._computed.get(loop)
        if order is None:
            roots = [root for each in loop.walk() for root in roots_of(each)]
            order = self._computed[loop] = order_of(roots)
        return order

    def number(self, number: int, kind: str = "n") -> str:
        """A placeholder (`templates`) for a number that may be another one in a kernel that is alike."""
        self.numbers.append(number)
        return f"%{kind}{len(self.numbers) - 1}"

    # --- lines and blocks --------------------------------------------------------------------------------

    def begin(self, label: str) -> None:
        """A new basic block, which those before it dominate."""
        self.flush()
        self.lines.append(f"{label}:")
        self.label = label

    def labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    # --- values ------------------------------------------------------------------------------------------

    def compute(self, roots: Iterable[Value]) -> None:
        """Give `roots` registers."""
        block = self.block
        for value in self._list_needed(list(roots)):
            op = value.op
            if op == "load":
                block.names[value] = self._load(value)
            elif value in self.formulas:
                block.names[value] = self.formulas[value].call(block, value)
            elif op == "index":
                block.names[value] = self._lane_numbers(value)
            elif value.dtype == BOOL and (truth := self._find_truth(value)) is not None:
                block.settle(value, truth)
            elif op in COMPARISONS and (test := self._lane_test(value)) is not None:
                block.names[value] = self._compare_lanes(test)
            else:
                block.write(value)

    def _lane_numbers(self, index: Value) -> str:
        lanes = ", ".join(f"i64 {lane}" for lane in range(self.width))
        vector = f"<{self.width} x i64>"
        all_lanes = self.block.splat(vector, f"i64 {self.base[index]}")
        return self.block.line(f"add {vector} {all_lanes}, <{lanes}>")

    def _list_needed(self, roots: list[Value]) -> list[Value]:
        """List the values without registers that `roots` need, operands first."""
        wanted, order = set(roots), []
        for value in reversed(order_of(roots, self.block.names, self.formulas)):
            if value not in wanted:
                continue
            order.append(value)
            if value.op == "load":  # which adds the first lane to its address
                wanted.update([each for each in value.operands if each not in self.base])
            elif value in self.formulas:
                wanted.update(self.formulas[value].operands)
            elif value.dtype != BOOL:
                wanted.update(value.operands)
            elif self._find_truth(value) is None:
                test = self._lane_test(value) if value.op in COMPARISONS else None
                wanted.update(value.operands if test is None else (test.bound,))
        return order[::-1]

    def _lane_test(self, value: Value) -> LaneTest | None:
        """A comparison of the lanes of a vector index with one number."""
        test = lane_test(value, self.base)
        return None if test is None or self.block.varies(test.bound) else test

    def _find_truth(self, value: Value) -> bool | None:
        """Find what a bool is in every iteration, if the ranges of the indices say so."""
        low, high = self._ranges.of(value)
        return bool(low) if low == high else None

    def _compare_lanes(self, test: LaneTest) -> str:
        """A comparison with one number for all lanes, of integers that are as narrow as lanes allow."""
        base = self.base[test.lane]
        if test.offset:
            base = self.block.line(f"add nsw i64 {base}, {self.number(test.offset)}")
        bound = self.block.operand(test.bound, 1)
        call = self.block.call
        pair, triple = ["i64", "i64"], [f"i64 {bound}", f"i64 {base}"]
        lane = call("llvm.ssub.sat.i64", "i64", pair, triple)
        lane = call("llvm.smax.i64", "i64", pair, [f"i64 {lane}", "i64 -1"])
        lane = call("llvm.smin.i64", "i64", pair, [f"i64 {lane}", f"i64 {self.width}"])
        kind, lanes, every = self._lane_integers(lane)
        sign = "" if test.op in ("eq", "ne") else "s"
        return self.block.line(f"icmp {sign}{test.op} {kind} {lanes}, {every}")

    def _lane_integers(self, lane: str) -> tuple[str, str, str]:
        """The type of vectors of narrow integers, the numbers of the lanes, and a number of 64 bits for all lanes."""
        bits = integer_bits(self.width)
        kind = f"<{self.width} x i{bits}>"
        narrow = self.block.line(f"trunc i64 {lane} to i{bits}")
        every = self.block.splat(kind, f"i{bits} {narrow}")
        return kind, f"<{', '.join(f'i{bits} {number}' for number in range(self.width))}>", every

    def _vector_roots(self, roots: Iterable[Value]) -> Iterator[Value]:
        """`roots`, without the indices that offsets use: these need no vector."""
        return (root for root in roots if root.op != "index" or root not in self.base)

    def hoist(self, loop: Loop) -> None:
        """Compute in front of a loop what does not change in it, if it is to run more than once."""
        if loop.max_iterations == 1 and isinstance(loop.extent, Value):
            return
        inside = set(varying_values(loop))
        written = {store.buffer for each in loop.walk() for store in each.stores()}
        fixed = []
        values = self.values_of(loop)
        if self.formulas:
            values = order_of([root for each in loop.walk() for root in roots_of(each)], (), self.formulas)
        for value in values:
            changes = value.op == "load" and value.attribute.buffer in written
            operands = self.formulas[value].operands if value in self.formulas else value.operands
            if changes or value in inside or not inside.isdisjoint(operands):
                inside.add(value)
            elif value.op != "constant" and not (value.op == "index" and value in self.base):
                fixed.append(value)
        self.compute(fixed)
        if loop.vector:
            for value in fixed:
                if not self.block.varies(value):
                    self.block.operand(value, self.width)
            self.flush()

    # --- memory ------------------------------------------------------------------------------------------

    def _address(
        self, buffer: Buffer, offset: Affine, farthest: int = 1, any_stride: bool = False
    ) -> tuple[str, int | None]:
        """Where the first lane lies, and how far apart the lanes; None if that is not even, or too far for the caller.

        In the last case the address is a vector of pointers.
        """
        scalar: list[tuple[str, int]] = []
        vectors: list[tuple[Value, int]] = []
        stride = 0
        for value, factor in offset.terms:
            if value in self.base:
                stride += factor
                scalar.append((self.base[value], factor))
            elif self.block.varies(value):
                vectors.append((value, factor))
            else:
                scalar.append((self.block.operand(value, 1), factor))
        kind = memory_type(buffer.dtype)
        address = self._first_address(self.pointers[buffer], kind, tuple(scalar))
        if offset.constant:
            behind = self.number(offset.constant)
            address = self.block.line(f"getelementptr {kind}, ptr {address}, i64 {behind}")
        if not vectors and (any_stride or -1 <= stride <= farthest):
            return address, stride
        return self._addresses(kind, address, stride, vectors), None

    def _first_address(self, pointer: str, kind: str, terms: tuple[tuple[str, int], ...]) -> str:
        """The address so many elements behind a pointer, which the block computes once."""
        if not terms:
            return pointer
        known = self.block.addresses
        key = pointer, terms
        if key not in known:
            total = ""
            for register, factor in terms:
                part = self._times(register, factor)
                total = self.block.line(f"add nsw i64 {total}, {part}") if total else part
            known[key] = self.block.line(f"getelementptr {kind}, ptr {pointer}, i64 {total}")
        return known[key]

    def _times(self, register: str, factor: int) -> str:
        return register if factor == 1 else self.block.line(f"mul nsw i64 {register}, {self.number(factor)}")

    def _addresses(self, kind: str, address: str, stride: int, vectors: list[tuple[Value, int]]) -> str:
        width = self.width
        vector = f"<{width} x i64>"
        total = self.number(stride, "l") if stride else f"<{', '.join(['i64 0'] * width)}>"
        for value, factor in vectors:
            part = self.block.operand(value, width)
            if factor != 1:
                part = self.block.line(f"mul {vector} {part}, {self.number(factor, 's')}")
            total = self.block.line(f"add {vector} {total}, {part}")
        return self.block.line(f"getelementptr {kind}, ptr {address}, {vector} {total}")

    def _load(self, value: Value) -> str:
        access = value.attribute
        assert isinstance(access, Access)
        offset, predicate = offset_of(value), value.operands[-1] if access.masked else None
        if predicate is not None and self._find_truth(predicate):
            predicate = None
        buffer = access.buffer
        if not self.block.varies(value):
            return self._load_one(buffer, offset, predicate)
        self.compute(v for v, _ in offset.terms if v not in self.base)
        mask = self._lanes(predicate)
        farthest = (
            PROCESSOR.max_lane_stride if mask is None and self.width >= PROCESSOR.max_lane_stride else 1
        )
        width, kind = self.width, memory_type(buffer.dtype, self.width)
        one_by_one = mask is None and (numbers_of(buffer.dtype) == 1 or alignment(buffer.dtype) < 8)
        address, stride = self._address(buffer, offset, farthest, any_stride=one_by_one)
        if stride == 0:
            exists = not offset.terms and 0 <= offset.constant < buffer.size
            lanes = self.load_for_all(buffer, address, mask, None if exists else self.pointers_of_nothing)
        elif stride is None:
            line = self._line_of(offset)
            along = (
                self._load_along(buffer, offset, line, address, mask)
                if line
                else self._load_rising(buffer, offset, address, mask)
            )
            lanes = along or self.gather(buffer, address, mask)
        elif stride == 1:
            lanes = self._load_lanes(buffer.dtype, address, mask)
        elif 1 < stride <= farthest:
            lanes = self.load_near(buffer, address, stride)
        elif stride != -1:
            lanes = self.load_strided(buffer, address, self.number(stride))
        else:
            step = memory_type(buffer.dtype)
            address = self.block.line(f"getelementptr {step}, ptr {address}, i64 {1 - width}")
            turned = None if mask is None else self.reverse_lanes(f"<{width} x i1>", mask)
            lanes = self.reverse_lanes(
                kind, self._load_lanes(buffer.dtype, address, turned), numbers_of(buffer.dtype)
            )
        return self._truth(lanes, width) if buffer.dtype == BOOL else lanes

    def _line_of(self, offset: Affine) -> tuple[Value, LaneLine] | None:
        """The one index in an offset that varies from lane to lane, if it does so by one."""
        varying = [(value, factor) for value, factor in offset.terms if self.block.varies(value)]
        (value, factor), *others = varying
        line = None if others or factor != 1 else lane_line(value, self.base, self.block.varies)
        return None if line is None else (value, line)

    def _load_along(
        self, buffer: Buffer, offset: Affine, line: tuple[Value, LaneLine], addresses: str, mask: str | None
    ) -> str | None:
        """Lanes that lie side by side, unless the first or the last is clamped; None where these are no numbers."""
        if numbers_of(buffer.dtype) != 1:
            return None
        index, (root, step, lows, highs) = line
        others = Affine(tuple(term for term in offset.terms if term[0] is not index), offset.constant)
        first = self._value_at_first_lane(root)
        add = "llvm.sadd.sat.i64" if step == 1 else "llvm.ssub.sat.i64"
        last = self.block.call(add, "i64", ["i64", "i64"], [f"i64 {first}", f"i64 {self.width - 1}"])
        least, greatest = (first, last) if step == 1 else (last, first)
        self.compute([each for each in (*lows, *highs) if isinstance(each, Value)])
        inside = "true"
        for number, test, limits in ((least, "sge", lows), (greatest, "sle", highs)):
            for limit in limits:
                bound = self.block.operand(limit, 1) if isinstance(limit, Value) else str(limit)
                holds = self.block.line(f"icmp {test} i64 {number}, {bound}")
                inside = self.block.line(f"and i1 {inside}, {holds}")
        kind = memory_type(buffer.dtype)
        base, _ = self._address(buffer, others)
        near = self.block.line(f"getelementptr {kind}, ptr {base}, i64 {least}")
        return self._load_together(buffer, inside, near, addresses, mask, step)

    def _load_rising(self, buffer: Buffer, offset: Affine, addresses: str, mask: str | None) -> str | None:
        """One element for all lanes whose index never falls, where the first and the last are the same."""
        varying = [(value, factor) for value, factor in offset.terms if self.block.varies(value)]
        if mask is not None or numbers_of(buffer.dtype) != 1 or len(varying) != 1:
            return None
        ((index, _),) = varying
        if not is_rising(index, self.rising, self.block.varies):
            return None
        lanes, pointers = self.block.operand(index, self.width), f"<{self.width} x ptr>"
        ends = [
            self.block.line(f"extractelement <{self.width} x i64> {lanes}, i64 {lane}")
            for lane in (0, self.width - 1)
        ]
        same = self.block.line(f"icmp eq i64 {ends[0]}, {ends[1]}")
        near = self.block.line(f"extractelement {pointers} {addresses}, i64 0")
        return self._load_together(buffer, same, near, addresses, mask, 0)

    def _load_together(
        self, buffer: Buffer, together: str, near: str, addresses: str, mask: str | None, step: int
    ) -> str:
        kind, lanes = memory_type(buffer.dtype, self.width), f"<{self.width} x i1>"
        name, text, declarations = load_of_line(kind, self.width, alignment(buffer.dtype), step)
        self.helpers[name] = text
        self.declarations |= declarations
        every = mask or "splat (i1 true)"
        arguments = f"i1 {together}, ptr {near}, <{self.width} x ptr> {addresses}, {lanes} {every}"
        return self.block.line(f"call {kind} @{name}({arguments})")

    def _value_at_first_lane(self, value: Value) -> str:
        """The number of a value on a line in the first lane."""
        if value in self.base:
            return self.base[value]
        if not self.block.varies(value):
            self.compute([value])
            return self.block.operand(value, 1)
        x, *others = [self._value_at_first_lane(each) for each in value.operands]
        return self.block.line(f"sub i64 0, {x}" if not others else f"{value.op} i64 {x}, {others[0]}")

    def _truth(self, register: str, width: int) -> str:
        kind = memory_type(BOOL, width)
        return self.block.line(f"icmp ne {kind} {register}, {'0' if width == 1 else 'zeroinitializer'}")

    def _load_one(self, buffer: Buffer, offset: Affine, predicate: Value | None) -> str:
        address, _ = self._address(buffer, offset)
        kind = memory_type(buffer.dtype)
        if predicate is not None:
            chosen = self.block.operand(predicate, 1)
            nothing = self.pointers_of_nothing
            address = self.block.line(f"select i1 {chosen}, ptr {address}, ptr {nothing}")
        element = self.block.line(f"load {kind}, ptr {address}, align {alignment(buffer.dtype)}")
        return self._truth(element, 1) if buffer.dtype == BOOL else element

    def _lanes(self, predicate: Value | None) -> str | None:
        """The lanes to touch: those that count and for which the predicate holds."""
        if predicate is None:
            return self.mask
        wanted = self.block.operand(predicate, self.width)
        if self.mask is None:
            return wanted
        return self.block.line(f"and <{self.width} x i1> {wanted}, {self.mask}")

    def _load_lanes(self, dtype: DType, address: str, mask: str | None) -> str:
        if self.first_few and mask == self.mask:
            return self._load_few(dtype, address)
        if mask is None:
            kind = memory_type(dtype, self.width)
            return self.block.line(f"load {kind}, ptr {address}, align {alignment(dtype)}")
        return self.load_masked(dtype, address, mask)

    def _parts(self, dtype: DType, address: str) -> Iterator[tuple[int, int, str, str]]:
        """Registers of fewer lanes: the first and the end of their numbers, their type, and their address.

        What is stored so and read so soon afterwards need not have reached memory.
        """
        size, element = numbers_of(dtype), memory_type(real_part_of(dtype))
        first, count = 0, self.first_few * size
        while first < count:
            end = first + (1 << ((count - first).bit_length() - 1))
            at = self.block.line(f"getelementptr {element}, ptr {address}, i64 {first}") if first else address
            yield first, end, f"<{end - first} x {element}>", at
            first = end

    def _load_few(self, dtype: DType, address: str) -> str:
        """The first few lanes of a register, whose others hold zeros, as after a masked load.

        They do not repeat one of the few: LLVM 22 selects between such registers wrongly where there is AVX-512.
        """
        width, merged = self.width * numbers_of(dtype), ""
        for first, end, kind, at in self._parts(dtype, address):
            part = self.block.line(f"load {kind}, ptr {at}, align {alignment(dtype)}")
            lanes = [lane - first if first <= lane < end else end - first for lane in range(width)]
            wide = self.block.shuffle(f"{kind} {part}", "zeroinitializer", lanes)
            order = [lane if lane < first else width + lane for lane in range(width)]
            merged = (
                self.block.shuffle(f"{memory_type(dtype, self.width)} {merged}", wide, order)
                if first
                else wide
            )
        return merged

    def _store_few(self, dtype: DType, register: str, address: str) -> None:
        """Store the first few lanes of a register."""
        whole = memory_type(dtype, self.width)
        for first, end, kind, at in self._parts(dtype, address):
            lanes = ", ".join(f"i32 {lane}" for lane in range(first, end))
            part = self.block.line(
                f"shufflevector {whole} {register}, {whole} poison, <{end - first} x i32> <{lanes}>"
            )
            self.write(f"store {kind} {part}, ptr {at}, align {alignment(dtype)}")

    def store(self, store: Store) -> None:
        buffer, block = store.buffer, self.block
        self.compute([store.value, *self._vector_roots(value for value, _ in store.offset.terms)])
        address, stride = self._address(buffer, store.offset)
        vector = stride in (-1, 1)
        width = self.width if vector or stride is None else 1
        register = block.operand(store.value, width)
        kind = memory_type(buffer.dtype, width)
        if buffer.dtype == BOOL:
            register = block.line(f"zext {register_type(BOOL, width)} {register} to {kind}")
        if stride is None:
            self.scatter_lanes(buffer.dtype, register, address, self.mask)
            return
        assert vector or (stride == 0 and not block.varies(store.value)), "outputs are written in order"
        mask = self.mask
        if stride == -1:
            step = memory_type(buffer.dtype)
            address = block.line(f"getelementptr {step}, ptr {address}, i64 {1 - width}")
            register = self.reverse_lanes(kind, register, numbers_of(buffer.dtype))
            mask = None if mask is None else self.reverse_lanes(f"<{width} x i1>", mask)
        if vector and mask is not None and self.first_few and stride == 1:
            self._store_few(buffer.dtype, register, address)
        elif vector and mask is not None:
            self.store_masked(buffer.dtype, register, address, mask)
        else:
            self.write(f"store {kind} {register}, ptr {address}, align {alignment(buffer.dtype)}")
