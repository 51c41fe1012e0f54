"""Loads and stores of lanes of a mask, side by side or anywhere, of complex numbers part by part or both at once."""

from __future__ import annotations

from xarr.compiler.loop_ir.loops import Buffer
from xarr.compiler.loop_ir.scalars import INT64, DType
from xarr.dtypes import real_part_of
from xarr_numpy.compiled.codegen.instructions import (
    Block,
    CodeLines,
    alignment,
    element_type,
    intrinsic_suffix,
    mask_type,
    memory_type,
    numbers_of,
    register_type,
)


class Gathers(CodeLines):
    """The lines of a function, with loads and stores of lanes; `width` of these fill a register."""

    width: int

    def spread_pointer(self, address: str) -> str:
        return self.block.splat(f"<{self.width} x ptr>", f"ptr {address}")

    def load_masked(self, dtype: DType, address: str, mask: str) -> str:
        """Elements that lie side by side as memory has them, zeros in lanes that are not of a mask."""
        kind, lanes = memory_type(dtype, self.width), mask_type(dtype, self.width)
        wanted = _mask_of(self.block, mask, dtype)
        return self.block.call(
            f"llvm.masked.load.{intrinsic_suffix(kind)}.p0",
            kind,
            ["ptr", "i32", lanes, kind],
            [f"ptr {address}", f"i32 {alignment(dtype)}", f"{lanes} {wanted}", f"{kind} zeroinitializer"],
        )

    def store_masked(self, dtype: DType, register: str, address: str, mask: str) -> None:
        """Store the lanes of a mask side by side."""
        kind, lanes = memory_type(dtype, self.width), mask_type(dtype, self.width)
        wanted = _mask_of(self.block, mask, dtype)
        name = f"llvm.masked.store.{intrinsic_suffix(kind)}.p0"
        self.declarations.add(f"declare void @{name}({kind}, ptr, i32, {lanes})")
        self.write(
            f"call void @{name}({kind} {register}, ptr {address}, i32 {alignment(dtype)}, {lanes} {wanted})"
        )

    def gather(self, buffer: Buffer, addresses: str, mask: str | None) -> str:
        if buffer.dtype.kind != "c":
            return self.gather_numbers(buffer.dtype, addresses, mask)
        part, width = real_part_of(buffer.dtype), self.width
        if part.itemsize == 4:  # both parts at once
            numbers = self.gather_numbers(INT64, addresses, mask, part.itemsize)
            return self.block.line(f"bitcast <{width} x i64> {numbers} to {memory_type(buffer.dtype, width)}")
        kind = f"<{width} x ptr>"
        if mask is None:
            return self.load_each(buffer.dtype, addresses)
        behind = self.block.line(f"getelementptr {memory_type(part)}, {kind} {addresses}, i64 1")
        real, imag = (self.gather_numbers(part, each, mask) for each in (addresses, behind))
        lanes = [source for lane in range(width) for source in (lane, width + lane)]
        return self.block.shuffle(f"{register_type(part, width)} {real}", imag, lanes)

    def load_strided(self, buffer: Buffer, address: str, stride: str) -> str:
        """Lanes so many elements apart, one by one: their addresses fill no register, and gathers take no less time."""
        dtype = INT64 if buffer.dtype.kind == "c" else buffer.dtype
        kind, one = memory_type(dtype, self.width), memory_type(dtype)
        name = f"strided.{intrinsic_suffix(kind)}.{alignment(buffer.dtype)}"
        lines, lanes = [], "poison"
        for lane in range(self.width):
            lines += [
                f"%x{lane} = load {one}, ptr %p{lane}, align {alignment(buffer.dtype)}",
                f"%p{lane + 1} = getelementptr {one}, ptr %p{lane}, i64 %stride",
                f"%v{lane} = insertelement {kind} {lanes}, {one} %x{lane}, i64 {lane}",
            ]
            lanes = f"%v{lane}"
        head = f"define internal {kind} @{name}(ptr %p0, i64 %stride) alwaysinline nounwind"
        self.helpers[name] = "\n".join([f"{head} {{", *lines, f"ret {kind} {lanes}", "}"])
        register = self.block.line(f"call {kind} @{name}(ptr {address}, i64 {stride})")
        whole = memory_type(buffer.dtype, self.width)
        return register if whole == kind else self.block.line(f"bitcast {kind} {register} to {whole}")

    def load_for_all(self, buffer: Buffer, address: str, mask: str | None, nothing: str | None) -> str:
        """One element in all lanes of a mask, zeros in others; `nothing` is read where it need not exist."""
        if mask is None or numbers_of(buffer.dtype) != 1:
            return self.gather(buffer, self.spread_pointer(address), mask)
        width, kind, lanes = self.width, memory_type(buffer.dtype), f"<{self.width} x i1>"
        if nothing is not None:
            name = f"llvm.vector.reduce.or.v{width}i1"
            some = self.block.call(name, "i1", [lanes], [f"{lanes} {mask}"])
            address = self.block.line(f"select i1 {some}, ptr {address}, ptr {nothing}")
        vector = memory_type(buffer.dtype, width)
        element = self.block.line(f"load {kind}, ptr {address}, align {alignment(buffer.dtype)}")
        first = self.block.line(f"insertelement {vector} poison, {kind} {element}, i64 0")
        spread = self.block.shuffle(f"{vector} {first}", "poison", [0] * width)
        return self.block.line(f"select {lanes} {mask}, {vector} {spread}, {vector} zeroinitializer")

    def load_each(self, dtype: DType, addresses: str) -> str:
        """Lanes that fill a register of their own, put together by halves."""
        kind, pointers = memory_type(dtype), f"<{self.width} x ptr>"
        vectors = []
        for lane in range(self.width):
            address = self.block.line(f"extractelement {pointers} {addresses}, i64 {lane}")
            vectors.append(self.block.line(f"load {kind}, ptr {address}, align {alignment(dtype)}"))
        while len(vectors) > 1:
            size = 2 * numbers_of(dtype) * self.width // len(vectors)
            kind = f"<{size // 2} x {element_type(real_part_of(dtype))}>"
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self.block.shuffle(f"{kind} {x}", y, list(range(size))) for x, y in pairs]
        return vectors[0]

    def load_near(self, buffer: Buffer, address: str, stride: int) -> str:
        """Lanes a few elements apart: of neighbouring registers, the last of which ends with the last lane."""
        width, kind, element = self.width, memory_type(buffer.dtype, self.width), memory_type(buffer.dtype)
        merged_lanes, size = f"{kind} poison", numbers_of(buffer.dtype)
        filled = 0
        for number in range(stride):
            first = number * width if number < stride - 1 else (width - 1) * (stride - 1)
            start = self.block.line(f"getelementptr {element}, ptr {address}, i64 {first}")
            part = self.block.line(f"load {kind}, ptr {start}, align {alignment(buffer.dtype)}")
            stop = min(width, (first + width - 1) // stride + 1)
            lanes = [
                lane if lane < filled else width + lane * stride - first if lane < stop else 0
                for lane in range(width)
            ]
            merged = self.block.shuffle(
                merged_lanes, part, [lane * size + k for lane in lanes for k in range(size)]
            )
            merged_lanes, filled = f"{kind} {merged}", stop
        return merged

    def store_near(self, dtype: DType, registers: list[str], address: str) -> None:
        """Store registers whose lanes alternate in memory, as so many neighbouring registers."""
        count, width = len(registers), self.width
        kind, element = memory_type(dtype, width), memory_type(dtype)
        for number in range(count):
            sources = [divmod(number * width + lane, count) for lane in range(width)]
            merged = "poison"
            for source, register in enumerate(registers):
                lanes = [width + lane if own == source else at for at, (lane, own) in enumerate(sources)]
                merged = self.block.shuffle(f"{kind} {merged}", register, lanes)
            at = self.block.line(f"getelementptr {element}, ptr {address}, i64 {number * width}")
            self.write(f"store {kind} {merged}, ptr {at}, align {alignment(dtype)}")

    def gather_numbers(self, dtype: DType, addresses: str, mask: str | None, align: int = 0) -> str:
        width = self.width
        kind, lanes, pointers = memory_type(dtype, width), f"<{width} x i1>", f"<{width} x ptr>"
        name = f"llvm.masked.gather.{intrinsic_suffix(kind)}.v{width}p0"
        every = mask or "splat (i1 true)"
        return self.block.call(
            name,
            kind,
            [pointers, "i32", lanes, kind],
            [
                f"{pointers} {addresses}",
                f"i32 {align or dtype.itemsize}",
                f"{lanes} {every}",
                f"{kind} zeroinitializer",
            ],
        )

    def scatter_lanes(self, dtype: DType, register: str, addresses: str, mask: str | None) -> None:
        """Store lanes each at an address of its own."""
        width, part, pointers = self.width, real_part_of(dtype), f"<{self.width} x ptr>"
        kind, lanes, count = memory_type(part, width), f"<{width} x i1>", numbers_of(dtype)
        name = f"llvm.masked.scatter.{intrinsic_suffix(kind)}.v{width}p0"
        self.declarations.add(f"declare void @{name}({kind}, {pointers}, i32, {lanes})")
        for number in range(count):
            numbers, at = register, addresses
            if count > 1:
                whole = memory_type(dtype, width)
                chosen = ", ".join([f"i32 {lane * count + number}" for lane in range(width)])
                numbers = self.block.line(
                    f"shufflevector {whole} {register}, {whole} poison, <{width} x i32> <{chosen}>"
                )
                at = self.block.line(
                    f"getelementptr {memory_type(part)}, {pointers} {addresses}, i64 {number}"
                )
            arguments = f"{kind} {numbers}, {pointers} {at}, i32 {alignment(dtype)}"
            self.write(f"call void @{name}({arguments}, {lanes} {mask or 'splat (i1 true)'})")

    def reverse_lanes(self, kind: str, register: str, size: int = 1) -> str:
        """The lanes from the last to the first, each of so many numbers."""
        lanes = [lane * size + k for lane in reversed(range(self.width)) for k in range(size)]
        return self.block.shuffle(f"{kind} {register}", "poison", lanes)


def _mask_of(block: Block, mask: str, dtype: DType) -> str:
    """Which elements of a vector in memory lanes touch: of complex numbers both parts."""
    count = numbers_of(dtype)
    if count == 1:
        return mask
    lanes = [lane for lane in range(block.width) for _ in range(count)]
    return block.shuffle(f"<{block.width} x i1> {mask}", "poison", lanes)
