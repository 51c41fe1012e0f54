"""Loop programs as LLVM IR.

Each phase of a kernel is a function `phase(ptr buffers, i64 begin, i64 end)`, which runs those turns of the
outermost loop.  A vector loop runs several registers of lanes a turn, then single registers whose last one
is masked, so that no element is computed by other code than its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from xarr.compiler.loops import Access, Accumulator, Affine, Buffer, Kernel, Loop, Store
from xarr.compiler.scalars import BOOL, INT64, DType, Value
from xarr_numpy.compiled.instructions import Block, element_type, register_type

#: Bytes of a vector register.
REGISTER: Final = 64
#: Turns of a vector loop after which its accumulators join those of the loop around, for accuracy.
CHUNK: Final = 64
#: Values up to which the body of a vector loop is repeated, and how often.
SHORT: Final = 40
UNROLL: Final = 4

_ATTRIBUTES: Final = 'nounwind "prefer-vector-width"="512"'


def emit(kernel: Kernel) -> tuple[str, list[str]]:
    """The module, and the names of the phases' functions."""
    functions = [_Function(kernel, phase, f"phase{number}") for number, phase in enumerate(kernel.phases)]
    texts = [function.text() for function in functions]
    declared = sorted({line for function in functions for line in function.declarations})
    helpers = {name: text for function in functions for name, text in function.helpers.items()}
    return "\n".join([*declared, *helpers.values(), *texts]) + "\n", [each.name for each in functions]


def memory_type(dtype: DType, width: int = 1) -> str:
    """Elements in memory: a bool takes a byte there."""
    element = "i8" if dtype == BOOL else element_type(dtype)
    return element if width == 1 else f"<{width} x {element}>"


def width_of(phase: Loop) -> int:
    """Lanes of a register that holds the widest elements of the phase."""
    sizes = [4]
    for value in _order(root for loop in phase.walk() for root in _roots(loop)):
        if value.dtype != INT64 or value.op == "load":
            sizes.append(value.dtype.itemsize)
    width = REGISTER // max(sizes)
    # Where lanes go through a loop of their own, several registers of neighbours share its turns.
    return width * UNROLL if len(sizes) <= SHORT and _has_loop_of_lanes(phase) else width


def _has_loop_of_lanes(phase: Loop) -> bool:
    return any(each.vector and any(isinstance(part, Loop) for part in each.body) for each in phase.walk())


def _roots(loop: Loop) -> Iterator[Value]:
    yield from loop.roots()
    if isinstance(loop.extent, Value):
        yield loop.extent
    for accumulator in loop.accumulators:
        yield from accumulator.identities


def _order(roots: Iterable[Value]) -> list[Value]:
    """What `roots` need, operands first; of `rarely` not what is seldom wanted."""
    found: dict[Value, None] = {}
    stack = list(roots)[::-1]
    while stack:
        value = stack[-1]
        needed = value.operands[:2] if value.op == "rarely" else value.operands
        missing = [operand for operand in needed if operand not in found]
        if value in found or not missing:
            found[value] = None
            stack.pop()
        else:
            stack.extend(reversed(missing))
    return list(found)


class _Function:
    """The function of one phase."""

    def __init__(self, kernel: Kernel, phase: Loop, name: str) -> None:
        self.kernel = kernel
        self.phase = phase
        self.name = name
        self.width = width_of(phase)
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.pointers: dict[Buffer, str] = {}
        #: Values without operands that are vectors, and the scalar that a vector index begins with.
        self.vectors: set[Value] = set()
        self.base: dict[Value, str] = {}
        #: The lanes that count, None for all.
        self.mask: str | None = None
        self.label = "entry"
        self._count = 0
        self.block = self._new_block({}, {})

    def text(self) -> str:
        self._entry()
        self._loop(self.phase, "%begin", "%end")
        self._write("ret void")
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in self.lines)
        return f"define void @{self.name}(ptr %buffers, i64 %begin, i64 %end) {_ATTRIBUTES} {{\nentry:\n{body}\n}}"

    def _entry(self) -> None:
        kernel = self.kernel
        for number, buffer in enumerate((*kernel.inputs, *kernel.outputs, *kernel.scratch)):
            slot = self._line(f"getelementptr inbounds ptr, ptr %buffers, i64 {number}")
            self.pointers[buffer] = self._line(f"load ptr, ptr {slot}, align 8")
        for buffer in kernel.locals:
            size = f"[{buffer.size + REGISTER} x {memory_type(buffer.dtype)}]"
            self.pointers[buffer] = self._line(f"alloca {size}, align {REGISTER}")
        self.pointers_of_nothing = self._line(f"alloca [{REGISTER} x i8], align {REGISTER}")
        self._write(
            f"store <{REGISTER} x i8> zeroinitializer, ptr {self.pointers_of_nothing}, align {REGISTER}"
        )

    # --- lines and blocks --------------------------------------------------------------------------------

    def _new_block(self, names: dict[Value, str], spread: dict[Value, str]) -> Block:
        self._count += 1
        block = Block(self.width, self.vectors.__contains__, prefix=f"b{self._count}.")
        block.names = dict(names)
        block._spread = dict(spread)
        return block

    def _line(self, instruction: str) -> str:
        self._flush()
        register = self.block.line(instruction)
        self._flush()
        return register

    def _write(self, instruction: str) -> None:
        self._flush()
        self.lines.append(instruction)

    def _flush(self) -> None:
        self.lines += self.block.lines
        self.block.lines = []
        self.declarations |= self.block.declarations
        self.helpers |= self.block.functions

    def _begin(self, label: str) -> None:
        """A new basic block, which those before it dominate."""
        self._flush()
        self.lines.append(f"{label}:")
        self.label = label

    def _labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def _inner(self) -> Block:
        """Enter a part of the function whose registers are not seen outside; the block to return to."""
        before = self.block
        self._flush()
        self.block = self._new_block(before.names, before._spread)
        return before

    def _leave(self, before: Block) -> None:
        self._flush()
        self.block = before

    # --- values ------------------------------------------------------------------------------------------

    def _compute(self, roots: Iterable[Value]) -> None:
        """Give `roots` registers."""
        block = self.block
        for value in _order(roots):
            if value in block.names:
                continue
            if value.op == "index":
                block.names[value] = self._lane_numbers(value)
            elif value.op == "load":
                block.names[value] = self._load(value)
            else:
                block.emit([value])

    def _lane_numbers(self, index: Value) -> str:
        lanes = ", ".join(f"i64 {lane}" for lane in range(self.width))
        vector = f"<{self.width} x i64>"
        first = self.block.line(f"insertelement {vector} poison, i64 {self.base[index]}, i64 0")
        all_lanes = self.block.line(
            f"shufflevector {vector} {first}, {vector} poison, <{self.width} x i32> zeroinitializer"
        )
        return self.block.line(f"add {vector} {all_lanes}, <{lanes}>")

    def _needed(self, roots: Iterable[Value]) -> Iterator[Value]:
        """`roots`, without the indices that places use: these need no vector."""
        return (root for root in roots if root.op != "index" or root not in self.base)

    def _hoist(self, loop: Loop) -> None:
        """Compute in front of a loop what does not change in it."""
        inside: set[Value] = set()
        roots: list[Value] = []
        for each in loop.walk():
            inside.add(each.index)
            inside.update(value for a in each.accumulators for value in (*a.results, *a.left, *a.right))
            roots.extend(_roots(each))
        fixed = []
        for value in _order(roots):
            if value in inside or any(operand in inside for operand in value.operands):
                inside.add(value)
            elif value.op != "constant" and not (value.op == "index" and value in self.base):
                fixed.append(value)
        self._compute(fixed)
        if loop.vector:
            for value in fixed:
                if not self.block.varies(value):
                    self.block.operand(value, self.width)
            self._flush()

    # --- memory ------------------------------------------------------------------------------------------

    def _address(self, buffer: Buffer, place: Affine) -> tuple[str, int | None]:
        """Where the first lane lies, and how far apart the lanes; None if that is not even.

        In the last case the address is a vector of pointers.
        """
        scalar: list[str] = [str(place.constant)] if place.constant else []
        vectors: list[tuple[Value, int]] = []
        stride = 0
        for value, factor in place.terms:
            if value in self.base:
                stride += factor
                scalar.append(self._times(self.base[value], factor))
            elif self.block.varies(value):
                vectors.append((value, factor))
            else:
                scalar.append(self._times(self.block.operand(value, 1), factor))
        total = "0"
        for part in scalar:
            total = part if total == "0" else self.block.line(f"add nsw i64 {total}, {part}")
        kind, pointer = memory_type(buffer.dtype), self.pointers[buffer]
        address = self.block.line(f"getelementptr {kind}, ptr {pointer}, i64 {total}")
        if not vectors and stride in (-1, 0, 1):
            return address, stride
        return self._addresses(kind, address, stride, vectors), None

    def _times(self, register: str, factor: int) -> str:
        return register if factor == 1 else self.block.line(f"mul nsw i64 {register}, {factor}")

    def _addresses(self, kind: str, address: str, stride: int, vectors: list[tuple[Value, int]]) -> str:
        width = self.width
        vector = f"<{width} x i64>"
        total = f"<{', '.join(f'i64 {lane * stride}' for lane in range(width))}>"
        for value, factor in vectors:
            part = self.block.operand(value, width)
            if factor != 1:
                part = self.block.line(f"mul {vector} {part}, splat (i64 {factor})")
            total = self.block.line(f"add {vector} {total}, {part}")
        return self.block.line(f"getelementptr {kind}, ptr {address}, {vector} {total}")

    def _load(self, value: Value) -> str:
        access = value.attribute
        assert isinstance(access, Access)
        count = len(access.factors)
        terms = tuple(zip(value.operands[:count], access.factors, strict=True))
        predicate = value.operands[count] if access.masked else None
        buffer = access.buffer
        if not self.block.varies(value):
            return self._load_one(buffer, Affine(terms, access.constant), predicate)
        self._compute(v for v, _ in terms if v not in self.base)
        address, stride = self._address(buffer, Affine(terms, access.constant))
        mask = self._lanes(predicate)
        width, kind = self.width, memory_type(buffer.dtype, self.width)
        align = buffer.dtype.itemsize
        if stride == 0:
            found = self._gather(buffer, self._spread_pointer(address), mask)
        elif stride is None:
            found = self._gather(buffer, address, mask)
        elif stride == 1:
            found = self._load_lanes(kind, address, mask, align)
        else:
            step = memory_type(buffer.dtype)
            address = self.block.line(f"getelementptr {step}, ptr {address}, i64 {1 - width}")
            turned = None if mask is None else self._reversed(f"<{width} x i1>", mask)
            found = self._reversed(kind, self._load_lanes(kind, address, turned, align))
        return self._truth(found, width) if buffer.dtype == BOOL else found

    def _truth(self, register: str, width: int) -> str:
        kind = memory_type(BOOL, width)
        return self.block.line(f"icmp ne {kind} {register}, {'0' if width == 1 else 'zeroinitializer'}")

    def _load_one(self, buffer: Buffer, place: Affine, predicate: Value | None) -> str:
        address, _ = self._address(buffer, place)
        kind = memory_type(buffer.dtype)
        if predicate is not None:
            chosen = self.block.operand(predicate, 1)
            nothing = self.pointers_of_nothing
            address = self.block.line(f"select i1 {chosen}, ptr {address}, ptr {nothing}")
        found = self.block.line(f"load {kind}, ptr {address}, align {buffer.dtype.itemsize}")
        return self._truth(found, 1) if buffer.dtype == BOOL else found

    def _lanes(self, predicate: Value | None) -> str | None:
        """The lanes to touch: those that count and for which the predicate holds."""
        if predicate is None:
            return self.mask
        wanted = self.block.operand(predicate, self.width)
        if self.mask is None:
            return wanted
        return self.block.line(f"and <{self.width} x i1> {wanted}, {self.mask}")

    def _load_lanes(self, kind: str, address: str, mask: str | None, align: int) -> str:
        if mask is None:
            return self.block.line(f"load {kind}, ptr {address}, align {align}")
        name = f"llvm.masked.load.{_mangled(kind)}.p0"
        lanes = f"<{self.width} x i1>"
        return self.block.call(
            name,
            kind,
            ["ptr", "i32", lanes, kind],
            [f"ptr {address}", f"i32 {align}", f"{lanes} {mask}", f"{kind} zeroinitializer"],
        )

    def _gather(self, buffer: Buffer, addresses: str, mask: str | None) -> str:
        width = self.width
        kind, lanes, pointers = memory_type(buffer.dtype, width), f"<{width} x i1>", f"<{width} x ptr>"
        name = f"llvm.masked.gather.{_mangled(kind)}.v{width}p0"
        every = mask or "splat (i1 true)"
        return self.block.call(
            name,
            kind,
            [pointers, "i32", lanes, kind],
            [
                f"{pointers} {addresses}",
                f"i32 {buffer.dtype.itemsize}",
                f"{lanes} {every}",
                f"{kind} zeroinitializer",
            ],
        )

    def _spread_pointer(self, address: str) -> str:
        kind = f"<{self.width} x ptr>"
        first = self.block.line(f"insertelement {kind} poison, ptr {address}, i64 0")
        return self.block.line(
            f"shufflevector {kind} {first}, {kind} poison, <{self.width} x i32> zeroinitializer"
        )

    def _reversed(self, kind: str, register: str) -> str:
        lanes = ", ".join(f"i32 {lane}" for lane in reversed(range(self.width)))
        return self.block.line(
            f"shufflevector {kind} {register}, {kind} poison, <{self.width} x i32> <{lanes}>"
        )

    def _store(self, store: Store) -> None:
        buffer, block = store.buffer, self.block
        self._compute([store.value, *self._needed(value for value, _ in store.place.terms)])
        address, stride = self._address(buffer, store.place)
        vector = stride == 1
        width = self.width if vector else 1
        register = block.operand(store.value, width)
        kind = memory_type(buffer.dtype, width)
        if buffer.dtype == BOOL:
            register = block.line(f"zext {register_type(BOOL, width)} {register} to {kind}")
        align = buffer.dtype.itemsize
        assert vector or (stride == 0 and not block.varies(store.value)), "outputs are written in order"
        if vector and self.mask is not None:
            lanes = f"<{width} x i1>"
            name = f"llvm.masked.store.{_mangled(kind)}.p0"
            self.declarations.add(f"declare void @{name}({kind}, ptr, i32, {lanes})")
            self._write(
                f"call void @{name}({kind} {register}, ptr {address}, i32 {align}, {lanes} {self.mask})"
            )
        else:
            self._write(f"store {kind} {register}, ptr {address}, align {align}")

    # --- loops -------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop, begin: str, end: str) -> None:
        self._hoist(loop)
        if loop.vector:
            self._vector_loop(loop, begin, end)
        else:
            self._serial_loop(loop, begin, end)

    def _body(self, loop: Loop) -> None:
        for part in loop.body:
            if isinstance(part, Store):
                self._store(part)
            else:
                extent = part.extent
                if isinstance(extent, Value):
                    self._compute([extent])
                    self._loop(part, "0", self.block.operand(extent, 1))
                else:
                    self._loop(part, "0", str(extent))

    def _serial_loop(self, loop: Loop, begin: str, end: str) -> None:
        head, body, done = self._labels("head", "body", "done")
        # In a vector loop every lane gathers its own.
        wide = [bool(self.base)] * len(loop.accumulators)
        first = self._starts(loop.accumulators, wide)
        before_label = self.label
        self._write(f"br label %{head}")
        self._begin(head)
        index = f"%{head}.i"
        slots = self._phi_slots(loop.accumulators, wide, head)
        place = len(self.lines)
        self._write(f"%{head}.more = icmp slt i64 {index}, {end}")
        self._write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside = self._inner()
        self._begin(body)
        self.block.names[loop.index] = index
        self._body(loop)
        following = [
            self._combine(accumulator, slot, accumulator.terms, is_wide)
            for accumulator, slot, is_wide in zip(loop.accumulators, slots, wide, strict=True)
        ]
        step = self._line(f"add nsw i64 {index}, 1")
        last = self.label
        self._write(f"br label %{head}")
        phis = [f"{index} = phi i64 [ {begin}, %{before_label} ], [ {step}, %{last} ]"]
        phis += self._phis(loop.accumulators, wide, slots, first, before_label, following, last)
        self.lines[place:place] = phis
        self._leave(outside)
        self._begin(done)
        for accumulator, slot, is_wide in zip(loop.accumulators, slots, wide, strict=True):
            for result, register in zip(accumulator.results, slot, strict=True):
                if is_wide:
                    self.vectors.add(result)
                self.block.names[result] = register

    def _starts(self, accumulators: list[Accumulator], wide: list[bool]) -> list[list[str]]:
        self._compute(value for accumulator in accumulators for value in accumulator.identities)
        return [
            [self.block.operand(value, self.width if is_wide else 1) for value in accumulator.identities]
            for accumulator, is_wide in zip(accumulators, wide, strict=True)
        ]

    def _phi_slots(self, accumulators: list[Accumulator], wide: list[bool], head: str) -> list[list[str]]:
        return [
            [f"%{head}.a{number}.{k}" for k in range(len(accumulator.results))]
            for number, accumulator in enumerate(accumulators)
        ]

    def _phis(
        self,
        accumulators: list[Accumulator],
        wide: list[bool],
        slots: list[list[str]],
        first: list[list[str]],
        before: str,
        following: list[list[str]],
        last: str,
    ) -> list[str]:
        found = []
        for number, accumulator in enumerate(accumulators):
            width = self.width if wide[number] else 1
            for k, value in enumerate(accumulator.results):
                kind = register_type(value.dtype, width)
                found.append(
                    f"{slots[number][k]} = phi {kind} [ {first[number][k]}, %{before} ], "
                    f"[ {following[number][k]}, %{last} ]"
                )
        return found

    def _combine(
        self, accumulator: Accumulator, held: list[str], terms: tuple[Value, ...], wide: bool
    ) -> list[str]:
        """The registers after `terms` have joined what is `held`."""
        self._compute(terms)
        width = self.width if wide else 1
        return self._combined(accumulator, held, [self.block.operand(term, width) for term in terms], wide)

    def _combined(self, accumulator: Accumulator, left: list[str], right: list[str], wide: bool) -> list[str]:
        width = self.width if wide else 1
        block = Block(width, lambda value: wide, prefix=f"{self._labels('c')[0]}.")
        names = dict(zip(accumulator.left, left, strict=True)) | dict(
            zip(accumulator.right, right, strict=True)
        )
        block.emit(accumulator.combined, names)
        found = [block.operand(value, width) for value in accumulator.combined]
        self._flush()
        self.lines += block.lines
        self.declarations |= block.declarations
        self.helpers |= block.functions
        return found

    # --- vector loops ------------------------------------------------------------------------------------

    def _vector_loop(self, loop: Loop, begin: str, end: str) -> None:
        """Full registers first, several a turn; then one register a turn, the last one in part."""
        copies = self._copies(loop)
        step = copies * self.width
        count = self._line(f"sub nsw i64 {end}, {begin}")
        full = self._line(f"and i64 {count}, {-step}")
        middle = self._line(f"add nsw i64 {begin}, {full}")
        self.vectors.add(loop.index)
        starts = self._starts(loop.accumulators, [True] * len(loop.accumulators))
        held = [list(starts) for _ in range(copies)]
        chunked = bool(loop.accumulators) and not (
            isinstance(loop.extent, int) and loop.extent <= 2 * CHUNK * step
        )
        if chunked:
            held = self._chunks(loop, begin, middle, held, step)
        else:
            held = self._turns(loop, begin, middle, held, step)
        total = held[0]
        for other in held[1:]:
            total = [
                self._combined(a, x, y, True) for a, x, y in zip(loop.accumulators, total, other, strict=True)
            ]
        length = loop.extent if isinstance(loop.extent, int) and begin == "0" else 1
        if length % step:
            masked = length % self.width != 0
            (total,) = self._turns(loop, middle, end, [total], self.width, masked)
        for accumulator, registers in zip(loop.accumulators, total, strict=True):
            folded = self._fold(accumulator, registers)
            self.block.names.update(zip(accumulator.results, folded, strict=True))

    def _copies(self, loop: Loop) -> int:
        size = len(_order(root for each in loop.walk() for root in _roots(each)))
        if len(loop.body) and any(isinstance(part, Loop) for part in loop.body):
            return 1
        wanted = UNROLL if loop.accumulators else 2
        if isinstance(loop.extent, int):
            wanted = min(wanted, max(1, loop.extent // self.width))
        copies = wanted if size <= SHORT else 1
        return 1 << (copies.bit_length() - 1)

    def _turns(
        self, loop: Loop, begin: str, end: str, held: list[list[list[str]]], step: int, masked: bool = False
    ) -> list[list[list[str]]]:
        """A loop of `len(held)` registers a turn; what the accumulators hold at its end."""
        head, body, done = self._labels("head", "body", "done")
        count = len(loop.accumulators)
        before_label = self.label
        self._write(f"br label %{head}")
        self._begin(head)
        base = f"%{head}.i"
        slots = [
            [[f"%{head}.a{copy}.{n}.{k}" for k in range(len(held[copy][n]))] for n in range(count)]
            for copy in range(len(held))
        ]
        place = len(self.lines)
        self._write(f"%{head}.more = icmp slt i64 {base}, {end}")
        self._write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside = self._inner()
        self._begin(body)
        following = []
        around_base, around_mask = dict(self.base), self.mask
        for copy, slot in enumerate(slots):
            inside = self._inner()
            self.base[loop.index] = self._line(f"add nsw i64 {base}, {copy * self.width}") if copy else base
            if masked:
                self.mask = self._first_lanes(base, end)
            self._body(loop)
            following.append(self._joined(loop, slot, masked))
            self._leave(inside)
        self.base, self.mask = around_base, around_mask
        next_base = self._line(f"add nsw i64 {base}, {step}")
        last = self.label
        self._write(f"br label %{head}")
        phis = [f"{base} = phi i64 [ {begin}, %{before_label} ], [ {next_base}, %{last} ]"]
        wide = [True] * count
        for copy, slot in enumerate(slots):
            phis += self._phis(loop.accumulators, wide, slot, held[copy], before_label, following[copy], last)
        self.lines[place:place] = phis
        self._leave(outside)
        self._begin(done)
        return slots

    def _joined(self, loop: Loop, slot: list[list[str]], masked: bool) -> list[list[str]]:
        """What the accumulators hold after a turn; lanes that do not count keep what they had."""
        found = []
        for accumulator, registers in zip(loop.accumulators, slot, strict=True):
            new = self._combine(accumulator, registers, accumulator.terms, True)
            if masked:
                kinds = [register_type(value.dtype, self.width) for value in accumulator.results]
                lanes = f"<{self.width} x i1> {self.mask}"
                new = [
                    self._line(f"select {lanes}, {kind} {x}, {kind} {y}")
                    for kind, x, y in zip(kinds, new, registers, strict=True)
                ]
            found.append(new)
        return found

    def _first_lanes(self, base: str, end: str) -> str:
        """Which lanes lie in front of `end`."""
        left = self._line(f"sub nsw i64 {end}, {base}")
        kind = f"<{self.width} x i64>"
        first = self._line(f"insertelement {kind} poison, i64 {left}, i64 0")
        every = self._line(
            f"shufflevector {kind} {first}, {kind} poison, <{self.width} x i32> zeroinitializer"
        )
        lanes = ", ".join(f"i64 {lane}" for lane in range(self.width))
        return self._line(f"icmp slt {kind} <{lanes}>, {every}")

    def _chunks(
        self, loop: Loop, begin: str, end: str, held: list[list[list[str]]], step: int
    ) -> list[list[list[str]]]:
        """A long loop in chunks, each of which gathers anew: sums of sums, whose errors grow slowly."""
        head, body, done = self._labels("chunk", "inside", "after")
        before_label = self.label
        self._write(f"br label %{head}")
        self._begin(head)
        base = f"%{head}.i"
        slots = [
            [[f"%{head}.a{copy}.{n}.{k}" for k in range(len(each))] for n, each in enumerate(registers)]
            for copy, registers in enumerate(held)
        ]
        place = len(self.lines)
        self._write(f"%{head}.more = icmp slt i64 {base}, {end}")
        self._write(f"br i1 %{head}.more, label %{body}, label %{done}")
        outside = self._inner()
        self._begin(body)
        following_base = self._line(f"add nsw i64 {base}, {step * CHUNK}")
        short = self._line(f"icmp slt i64 {following_base}, {end}")
        limit = self._line(f"select i1 {short}, i64 {following_base}, i64 {end}")
        gathered = self._turns(loop, base, limit, held, step)
        following = [
            [self._combined(a, x, y, True) for a, x, y in zip(loop.accumulators, slot, new, strict=True)]
            for slot, new in zip(slots, gathered, strict=True)
        ]
        last = self.label
        self._write(f"br label %{head}")
        phis = [f"{base} = phi i64 [ {begin}, %{before_label} ], [ {following_base}, %{last} ]"]
        wide = [True] * len(loop.accumulators)
        for copy, slot in enumerate(slots):
            phis += self._phis(loop.accumulators, wide, slot, held[copy], before_label, following[copy], last)
        self.lines[place:place] = phis
        self._leave(outside)
        self._begin(done)
        return slots

    def _fold(self, accumulator: Accumulator, registers: list[str]) -> list[str]:
        """One result of all lanes, by halves."""
        distance = self.width // 2
        while distance:
            lanes = ", ".join(f"i32 {(lane + distance) % self.width}" for lane in range(self.width))
            others = [
                self._line(f"shufflevector {kind} {register}, {kind} poison, <{self.width} x i32> <{lanes}>")
                for kind, register in (
                    (register_type(value.dtype, self.width), register)
                    for value, register in zip(accumulator.results, registers, strict=True)
                )
            ]
            registers = self._combined(accumulator, registers, others, True)
            distance //= 2
        return [
            self._line(f"extractelement {register_type(value.dtype, self.width)} {register}, i64 0")
            for value, register in zip(accumulator.results, registers, strict=True)
        ]


def _mangled(kind: str) -> str:
    """The suffix by which an intrinsic is named for vectors of a kind."""
    count, element = kind.strip("<>").split(" x ")
    names = {"half": "f16", "float": "f32", "double": "f64"}
    return f"v{count}{names.get(element, element)}"
