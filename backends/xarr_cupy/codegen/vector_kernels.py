"""Kernels whose threads load and store several neighbouring elements by one access.

Where a thread has several neighbouring points of a grid, what differs among these is computed in a loop over them that
NVRTC unrolls, all else once before it.  Where blocks have points, the loads and stores of an iteration that are seen to
lie side by side are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, Memory, Store, offset_of
from xarr.compiler.loop_ir.scalars import DType, Value, in_order
from xarr.compiler.loop_ir.vector_accesses import roots_of, vector_accesses
from xarr_cupy.codegen.block_kernels import BlockPrinter
from xarr_cupy.codegen.kernel_calls import VECTOR_NBYTES
from xarr_cupy.codegen.sizes import Sizes
from xarr_cupy.codegen.spelling import choose, enclose, type_name
from xarr_cupy.codegen.thread_kernels import ThreadPrinter

#: An access, or what stands for it.
_T = TypeVar("_T")


@dataclass
class _WantedVector:
    """A vector of which loads need elements.

    * `buffer`, `offset`, `dtype` - where it begins, in elements from the first point of a thread, and of what it is,
    * `lanes` - for each of the loads which points need an element of it, where a predicate holds,
    * `positions` - those of the elements in it,
    * `condition` - the variable that says whether there is one, "" for always.
    """

    buffer: Buffer
    offset: Affine
    dtype: DType
    lanes: list[tuple[Value | None, range]] = field(default_factory=list)
    positions: set[int] = field(default_factory=set)
    condition: str = ""


@dataclass(frozen=True)
class _LoadedVector:
    """A variable of a vector, or of the one element of it that is wanted."""

    name: str
    is_whole: bool

    def element(self, position: str) -> str:
        """The element at a position, or the one that there is."""
        return f"{self.name}.at[{position}]" if self.is_whole else self.name


class VectorPrinter(ThreadPrinter):
    """The text of a phase whose innermost loop has a width: a thread has so many neighbouring points of its grid.

    The grid counts vectors along its last axis, and so do offsets of vectors.  Arrays lie at multiples of their bytes.
    """

    has_vectors = True

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
        #: Of what is computed of the number of a point, and of that of a vector.
        self.point_ranges = self.ranges
        self.ranges = Ranges({**self.ranges.known, last.index: (0, count - 1)})

    def body(self, parts: Sequence[Loop | Store]) -> None:
        stores = [part for part in parts if isinstance(part, Store)]
        self._compute_common(stores)
        loaded = self._load_parts() if self.accesses.needs_index else {}
        vectors = {
            load: loaded[load][0].name if loaded else self._load_vector(load) for load in self.accesses.loads
        }
        results = [vectors.get(store.value) or self._declare_vector(store.value) for store in stores]
        rows = list(zip(stores, results, strict=True))
        computed = [(store, name) for store, name in rows if store.value not in vectors]
        if computed:
            lane = self._open_lanes()
            self.names.update({load: f"{name}.at[{lane}]" for load, name in vectors.items()})
            for load in self.accesses.shifted:
                self._define_element(load, loaded[load], lane)
            for store, name in computed:
                self.assign(f"{name}.at[{lane}]", store.value)
            self._close_lanes()
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

    def _open_lanes(self) -> str:
        """The head of a loop over the points of a thread; its variable."""
        vector, lane = self.value(self.index) if self.accesses.needs_index else "", self.new("lane")
        self.line("#pragma unroll")
        self.open(f"for (int {lane} = 0; {lane} < {self.width}; {lane}++) {{")
        if vector:
            self.ranges, self.vector_ranges = self.point_ranges, self.ranges
            wide = "" if self.is_narrow(self.index) else "(int64)"
            self.define(self.index, f"{self.width} * {wide}{enclose(vector, 11)} + {lane}")
        return lane

    def _close_lanes(self) -> None:
        self.close()
        if self.accesses.needs_index:
            self.ranges = self.vector_ranges

    # --- parts of vectors --------------------------------------------------------------------------------

    def _load_parts(self) -> dict[Value, list[_LoadedVector]]:
        """Load the vectors of which loads read parts, each of them once; those of each load."""
        wanted: dict[tuple[Any, ...], _WantedVector] = {}
        rows = []
        for load in (*self.accesses.loads, *self.accesses.shifted):
            access, offset = load.attribute, offset_of(load)
            shift, keys = offset.constant % self.width, []
            for first in range(0, self.width + shift, self.width):
                at = offset + (first - shift)
                key = (access.buffer, frozenset(at.terms), at.constant)
                each = wanted.setdefault(key, _WantedVector(access.buffer, at, load.dtype))
                lanes = range(max(0, first - shift), min(self.width, first - shift + self.width))
                each.lanes.append((load.operands[-1] if access.masked else None, lanes))
                each.positions.update(lane + shift - first for lane in lanes)
                keys.append(key)
            rows.append((load, keys))
        self._find_wanted(wanted.values())
        loaded = {key: self._load_wanted(each) for key, each in wanted.items()}
        return {load: [loaded[key] for key in keys] for load, keys in rows}

    def _find_wanted(self, vectors: Iterable[_WantedVector]) -> None:
        """Variables that say which vectors are wanted, where that differs among points or loads."""
        computed = []
        for each in vectors:
            predicates = {predicate for predicate, _ in each.lanes}
            if None in predicates:
                continue
            (first, *others) = predicates
            if not others and first is not None and first not in self.accesses.varying:
                each.condition = self.value(first)
                continue
            each.condition = self.new("wanted")
            self.line(f"bool {each.condition} = false;")
            computed.append(each)
        if not computed:
            return
        lane = self._open_lanes()
        for each in computed:
            for predicate, lanes in each.lanes:
                assert predicate is not None
                conditions = [enclose(self.value(predicate), 2)]
                conditions += [f"{lane} >= {lanes.start}"] if lanes.start else []
                conditions += [f"{lane} < {lanes.stop}"] if lanes.stop < self.width else []
                self.line(f"{each.condition} = {each.condition} || {' && '.join(conditions)};")
        self._close_lanes()

    def _load_wanted(self, wanted: _WantedVector) -> _LoadedVector:
        """Load a vector, or the one element of it that is wanted."""
        buffer, offset = wanted.buffer, wanted.offset
        is_whole, type = len(wanted.positions) > 1, self._type_of(wanted.dtype)
        if is_whole:
            text = self._vector(buffer, offset)
        else:
            type = type_name(wanted.dtype)
            terms = [(value, self.width if value is self.index else factor) for value, factor in offset.terms]
            at = Affine(tuple(terms), offset.constant + min(wanted.positions))
            text = f"{buffer.name}[{self.offset(at, buffer)}]"
        if wanted.condition:
            text = choose(wanted.condition, text, f"{type}{{}}")
        name = self.new("v")
        self.line(f"const {type} {name} = {text};")
        return _LoadedVector(name, is_whole)

    def _define_element(self, load: Value, vectors: Sequence[_LoadedVector], lane: str) -> None:
        """A variable of the element that a load reads in a point."""
        shift = offset_of(load).constant % self.width
        rest = self.width - shift
        text = vectors[0].element(f"{lane} + {shift}" if shift else lane)
        if shift:
            text = choose(f"{lane} < {rest}", text, vectors[1].element(f"{lane} - {rest}"))
        if load.attribute.masked:
            text = choose(self.value(load.operands[-1]), text, f"{type_name(load.dtype)}{{}}")
        self.define(load, text)

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
        return self._type_of(element.dtype)

    def _type_of(self, dtype: DType) -> str:
        return f"vector<{type_name(dtype)}, {self.width}>"

    def _vector(self, buffer: Buffer, offset: Affine) -> str:
        """The vector that begins at an offset of the first point of a thread."""
        factors = [
            (value, 1 if value is self.index else factor // self.width) for value, factor in offset.terms
        ]
        at = self.offset(Affine(tuple(factors), offset.constant // self.width), buffer)
        return f"vectors<{self.width}>({buffer.name})[{at}]"


class VectorBlockPrinter(BlockPrinter):
    """The text of a phase whose points blocks have, with vectors of what lies side by side in global memory."""

    def stores(self, stores: Sequence[Store]) -> None:
        if self.is_alone and not any(each.atomic for each in stores):
            offsets = [value for each in stores for value, _ in each.offset.terms]
            roots = [*offsets, *[each.value for each in stores]]
            self._load_runs([each for each in self.missing_of(roots) if each.op == "load"])
        super().stores(stores)

    def missing_of(self, roots: Sequence[Value]) -> list[Value]:
        """Those and what they need, as far as they have no names."""
        return list(dict.fromkeys([value for root in roots for value in self.missing(root)]))

    def _load_runs(self, loads: Sequence[Value]) -> None:
        """Variables of the elements that lie side by side, and exist all or none."""
        rows = [
            ((load.attribute.buffer, load.operands, load.attribute.factors), load.attribute.constant, load)
            for load in loads
            if load not in self.names and load.attribute.buffer not in self.written
        ]
        for run in _runs(rows):
            first = run[0]
            access, type = first.attribute, self._type(first.dtype, len(run))
            predicate = self.value(first.operands[-1]) if access.masked else None
            text, name = self._vector(access.buffer, offset_of(first), len(run)), self.new("v")
            self.line(
                f"const {type} {name} = {choose(predicate, text, f'{type}{{}}') if predicate else text};"
            )
            self.names.update({load: f"{name}.at[{k}]" for k, load in enumerate(run)})

    def write(self, rows: Sequence[tuple[Store, str]]) -> None:
        runs = _runs(
            [((each.buffer, each.offset.terms), each.offset.constant, (each, text)) for each, text in rows]
        )
        together = {store for run in runs for store, _ in run}
        super().write([row for row in rows if row[0] not in together])
        for run in runs:
            (first, _), type = run[0], self._type(run[0][0].buffer.dtype, len(run))
            values = ", ".join([text for _, text in run])
            self.line(f"{self._vector(first.buffer, first.offset, len(run))} = {type}{{{{{values}}}}};")

    def _type(self, dtype: DType, width: int) -> str:
        return f"vector<{type_name(dtype)}, {width}>"

    def _vector(self, buffer: Buffer, offset: Affine, width: int) -> str:
        """The vector that begins at an offset."""
        self.has_vectors = True
        terms = tuple([(value, factor // width) for value, factor in offset.terms])
        return (
            f"vectors<{width}>({buffer.name})[{self.offset(Affine(terms, offset.constant // width), buffer)}]"
        )


def _runs(rows: Sequence[tuple[tuple[Any, ...], int, _T]]) -> list[list[_T]]:
    """Accesses that are one: of four neighbours in global memory, or two, from a multiple of so many on.

    rows: for each access the buffer, the terms of the offset, and what else must be equal; the constant of the offset;
    what stands for it.
    """
    groups: dict[tuple[Any, ...], dict[int, _T]] = {}
    for key, constant, access in rows:
        groups.setdefault(key, {})[constant] = access
    runs = []
    for (buffer, *rest), accesses in groups.items():
        if buffer.memory is not Memory.GLOBAL:
            continue
        factors = rest[-1] if len(rest) == 2 else [factor for _, factor in rest[0]]
        for width in (4, 2):
            if width * buffer.dtype.itemsize > VECTOR_NBYTES or any(each % width for each in factors):
                continue
            for first in sorted(accesses):
                numbers = range(first, first + width)
                if first % width == 0 and all(number in accesses for number in numbers):
                    runs.append([accesses.pop(number) for number in numbers])
    return runs
