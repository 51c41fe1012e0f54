"""The kernel of a phase each of whose threads takes several neighbouring points: what lies side by side is one access.

What differs among these points is computed in a loop over them that NVRTC unrolls, all else once before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, Store, offset_of
from xarr.compiler.loop_ir.scalars import Value, in_order
from xarr.compiler.loop_ir.vector_accesses import roots_of, vector_accesses
from xarr_cupy.codegen.sizes import Sizes
from xarr_cupy.codegen.spelling import choose, type_name
from xarr_cupy.codegen.thread_kernels import ThreadPrinter


class VectorPrinter(ThreadPrinter):
    """The text of a phase whose innermost loop has a width: a thread has so many neighbouring points of its grid.

    The grid counts vectors along its last axis, and so do offsets of vectors.  Arrays lie at multiples of their bytes.
    """

    def __init__(self, kernel: Kernel, phase: Loop, sizes: Sizes) -> None:
        super().__init__(kernel, phase, sizes)
        *outer, last = self.grid
        assert isinstance(last.extent, int)
        accesses = vector_accesses(phase, last.width)
        assert accesses is not None, "the verifier has seen to it"
        self.width, self.index, self.accesses = last.width, last.index, accesses
        count = last.extent // last.width
        self.grid = [*outer, replace(last, extent=count)]
        self.points //= last.width
        self.ranges = Ranges({**self.ranges.known, last.index: (0, count - 1)})

    def body(self, parts: Sequence[Loop | Store]) -> None:
        stores = [part for part in parts if isinstance(part, Store)]
        self._compute_common(stores)
        vectors = {load: self._load_vector(load) for load in self.accesses.loads}
        results = [vectors.get(store.value) or self._declare_vector(store.value) for store in stores]
        rows = list(zip(stores, results, strict=True))
        self._compute_each([(store, name) for store, name in rows if store.value not in vectors], vectors)
        for store, name in rows:
            self.line(f"{self._vector(store.buffer, store.offset)} = {name};")

    def _compute_common(self, stores: Sequence[Store]) -> None:
        """Variables of what is equal in all points of a thread, and what differs is computed of."""
        varying = self.accesses.varying
        for value in in_order(*roots_of(stores, self.index)):
            if value in varying and value not in self.accesses.loads:
                for operand in value.operands:
                    if operand not in varying:
                        self.value(operand)
        for store in stores:
            if store.value not in varying:
                self.value(store.value)

    def _compute_each(self, stores: Sequence[tuple[Store, str]], vectors: dict[Value, str]) -> None:
        """A loop over the points of a thread that computes the elements of named vectors."""
        if not stores:
            return
        lane = self.new("lane")
        self.line("#pragma unroll")
        self.open(f"for (int {lane} = 0; {lane} < {self.width}; {lane}++) {{")
        self.names.update({load: f"{name}.at[{lane}]" for load, name in vectors.items()})
        for store, name in stores:
            self.assign(f"{name}.at[{lane}]", store.value)
        self.close()

    def _load_vector(self, load: Value) -> str:
        """A variable of the elements that a load reads in all points of a thread."""
        access = load.attribute
        # Before the line that needs it.
        predicate = self.value(load.operands[-1]) if access.masked else None
        text, type = self._vector(access.buffer, offset_of(load)), self._type(load)
        name = self.new("v")
        self.line(f"const {type} {name} = {choose(predicate, text, f'{type}{{}}') if predicate else text};")
        return name

    def _declare_vector(self, element: Value) -> str:
        name = self.new("result")
        self.line(f"{self._type(element)} {name};")
        return name

    def _type(self, element: Value) -> str:
        return f"vector<{type_name(element.dtype)}, {self.width}>"

    def _vector(self, buffer: Buffer, offset: Affine) -> str:
        """The vector that begins at an offset of the first point of a thread."""
        factors = [
            (value, 1 if value is self.index else factor // self.width) for value, factor in offset.terms
        ]
        at = self.offset(Affine(tuple(factors), offset.constant // self.width), buffer)
        return f"vectors<{self.width}>({buffer.name})[{at}]"
