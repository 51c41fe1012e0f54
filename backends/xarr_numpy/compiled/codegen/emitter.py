"""Loop programs as LLVM IR.

Each phase of a kernel is a function `phase(ptr buffers, i64 begin, i64 end)`, which runs those iterations of the
outermost loop, or all of them where no caller asks for less: then the numbers of iterations are constants, and there
is no code for a rest that there never is.  A vector loop runs several registers of lanes an iteration, then single
registers whose last one is masked, so that no element is computed by other code than its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from xarr.compiler.loop_ir.loops import Buffer, Carry, Kernel, Loop, LoopError, Memory, Runs, Store
from xarr.compiler.loop_ir.scalars import Value, constant_of, in_order
from xarr_numpy.compiled.codegen.accumulators import Phi
from xarr_numpy.compiled.codegen.instructions import ATTRIBUTES, register_type
from xarr_numpy.compiled.codegen.scan_loops import ScanLoops
from xarr_numpy.compiled.codegen.templates import Template
from xarr_numpy.processor import PROCESSOR


@dataclass
class Functions:
    """Functions of one module: lines that declare what they call, helpers by name, their own texts, and templates.

    `templates` are those of phases.
    """

    declarations: set[str] = field(default_factory=set)
    helpers: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    templates: list[Template] = field(default_factory=list)

    def add(
        self,
        kernel: Kernel,
        prefix: str = "phase",
        is_whole: Callable[[Loop], bool] = lambda phase: False,
        is_inner: bool = False,
    ) -> list[str]:
        """Write the functions of a kernel's phases; their names begin with `prefix`.

        Those of which `is_whole` holds are always called for all iterations.  Where they are `is_inner`, functions of
        the module alone call them, which may soon read what they store.
        Raises LoopError for loops, buffers and stores that only other machines have.
        """
        names = []
        for number, phase in enumerate(kernel.phases):
            _refuse_others(phase)
            function = _PhaseIR(kernel, phase, f"{prefix}{number}", is_whole(phase), is_inner)
            self.templates.append(function.template())
            self.declarations |= function.declarations
            self.helpers |= function.helpers
            names.append(function.name)
        return names

    def module(self) -> str:
        """The text of the module."""
        return self._module([template.with_constants() for template in self.templates])

    def template(self) -> str:
        """The text of the module with placeholders in place of numbers: equal for kernels that are alike."""
        return self._module([template.text for template in self.templates])

    def with_numbers(self, numbers: Iterator[int]) -> Functions:
        """The functions of phases that are alike, with the next of these numbers."""
        templates = [
            replace(each, numbers=tuple([next(numbers) for _ in each.numbers])) for each in self.templates
        ]
        return replace(self, templates=templates)

    def shared_module(self, before: int = 0) -> tuple[str, list[int]]:
        """The text of a module that reads numbers from an array, for all that have this `template`, and the numbers.

        So many others lie `before` them.
        """
        numbers: list[int] = []
        definitions = []
        for template in self.templates:
            definitions.append(template.with_arguments(before + len(numbers)))
            numbers += template.numbers
        return self._module(definitions), numbers

    def _module(self, definitions: list[str]) -> str:
        return (
            "\n".join([*sorted(self.declarations), *self.helpers.values(), *definitions, *self.texts]) + "\n"
        )


def emit(kernel: Kernel, is_whole: Callable[[Loop], bool] = lambda phase: False) -> tuple[str, list[str]]:
    """The module, and the names of the phases' functions; `is_whole` as for `Functions.add`.

    Raises LoopError for loops, buffers and stores that only other machines have.
    """
    functions, names = functions_of(kernel, is_whole)
    return functions.module(), names


def functions_of(
    kernel: Kernel, is_whole: Callable[[Loop], bool] = lambda phase: False
) -> tuple[Functions, list[str]]:
    """The functions of one kernel, and the names of its phases'; otherwise as `emit`."""
    functions = Functions()
    return functions, functions.add(kernel, is_whole=is_whole)


def _refuse_others(phase: Loop) -> None:
    """Refuse what is not for processors: they have threads, outermost, and lanes."""
    for loop in phase.walk():
        known = Runs.LANES | (Runs.THREADS if loop is phase else Runs.SERIAL)
        if unknown := loop.runs & ~known or (loop.condition and "a condition"):
            raise LoopError(f"no LLVM IR for a loop that runs by {unknown}, only by {known}")
        for store in loop.stores():
            if store.atomic is not None:
                raise LoopError(f"no LLVM IR for a store that combines atomically ({store.atomic.value})")
            if store.buffer.memory is Memory.SHARED:
                raise LoopError(f"no LLVM IR for {store.buffer.name}, which a block shares")
    if Runs.THREADS not in phase.runs:
        raise LoopError("no LLVM IR for an outermost loop that threads do not share")


class _PhaseIR(ScanLoops):
    """The function of one phase; one that `is_whole` goes through all iterations, whichever it is called for."""

    def __init__(self, kernel: Kernel, phase: Loop, name: str, is_whole: bool, is_inner: bool) -> None:
        super().__init__(kernel, phase, name)
        self.is_whole = is_whole
        self.is_inner = is_inner

    def template(self) -> Template:
        self.entry()
        if self.phase.bounds:
            self.block.names.update(zip(self.phase.bounds, ("%begin", "%end"), strict=True))
            self.body(self.phase)
        elif self.is_whole:
            assert isinstance(self.phase.extent, int), "the outermost loop has a fixed number of iterations"
            self._loop(self.phase, "0", self.number(self.phase.extent))
        else:
            self._loop(self.phase, "%begin", "%end")
        self.write("ret void")
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in self.lines)
        linkage = "internal " if self.is_inner else ""
        head = (
            f"define {linkage}void @{self.name}(ptr %buffers, i64 %begin, i64 %end) {ATTRIBUTES} {{\nentry:\n"
        )
        kernel = self.kernel
        slot = len(kernel.inputs) + len(kernel.outputs) + len(kernel.scratch)
        return Template(f"{head}{body}\n}}", tuple(self.numbers), self.width, slot)

    # --- loops -------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop, begin: str, end: str) -> None:
        self.hoist(loop)
        if (
            isinstance(loop.extent, Value)
            and loop.max_iterations == 1
            and not loop.accumulators + loop.carries
        ):
            self._once_or_not(loop, end)
        elif loop.search is not None:
            self.search_loop(loop, loop.search, begin, end)
        elif loop.prefixes:
            self.prefix_loop(loop, begin, end)
        elif loop.vector and begin == "0" and self._is_one_register(loop):
            self._one_register(loop, end)
        elif loop.vector:
            self.vector_loop(loop, begin, end)
        elif loop.extent == 1 and begin == "0" and self.is_inner:
            self._once(loop)
        else:
            self._serial_loop(loop, begin, end)

    def body(self, loop: Loop) -> None:
        for are_stores, parts in groupby(loop.body, lambda part: isinstance(part, Store)):
            if are_stores:
                self._store_all([part for part in parts if isinstance(part, Store)])
                continue
            for part in parts:
                assert isinstance(part, Loop)
                self.compute(part.limits)
                extent = part.extent
                end = self.block.operand(extent, 1) if isinstance(extent, Value) else self.number(extent)
                self._loop(part, self._first(part, end), end)

    def _store_all(self, stores: Sequence[Store]) -> None:
        """Stores that follow one another: as whole registers those whose lanes lie between one another."""
        alike: dict[tuple[Buffer, object], list[Store]] = {}
        for store in stores if self.mask is None and self.base else ():
            alike.setdefault((store.buffer, store.offset.terms), []).append(store)
        together = {
            id(store): group for group in alike.values() if self._lie_side_by_side(group) for store in group
        }
        for store in stores:
            group = together.get(id(store))
            if group is None:
                self.store(store)
            elif group[-1] is store:  # Nothing reads what the others stored before.
                self._store_together(group)

    def _lie_side_by_side(self, stores: list[Store]) -> bool:
        """Whether neighbouring lanes of some stores to a buffer lie side by side, in a few registers together."""
        dtype, terms, count = stores[0].buffer.dtype, stores[0].offset.terms, len(stores)
        if not 1 < count <= min(self.width, PROCESSOR.max_lane_stride) or dtype.kind in "bc":
            return False
        if any(self.block.varies(value) for value, _ in terms if value not in self.base):
            return False
        offsets = sorted([each.offset.constant for each in stores])
        is_whole = offsets == [*range(offsets[0], offsets[0] + count)]
        return is_whole and sum([factor for value, factor in terms if value in self.base]) == count

    def _store_together(self, stores: list[Store]) -> None:
        """Store lanes as whole registers."""
        stores = sorted(stores, key=lambda each: each.offset.constant)
        buffer = stores[0].buffer
        indices = [value for value, _ in stores[0].offset.terms]
        self.compute([*[each.value for each in stores], *self._vector_roots(indices)])
        address, _ = self._address(buffer, stores[0].offset, len(stores))
        registers = [self.block.operand(each.value, self.width) for each in stores]
        self.store_near(buffer.dtype, registers, address)

    def _first(self, loop: Loop, end: str) -> str:
        """The first iteration of a loop, which is none behind the end."""
        if loop.first is None:
            return "0"
        numbers = [f"i64 {self.block.operand(loop.first, 1)}", f"i64 {end}"]
        return self.block.call("llvm.smin.i64", "i64", ["i64", "i64"], numbers)

    def _is_one_register(self, loop: Loop) -> bool:
        """Whether a vector loop that does nothing but store has one iteration."""
        stores = not (loop.accumulators or loop.prefixes) and all(
            isinstance(part, Store) for part in loop.body
        )
        return stores and isinstance(loop.extent, int) and loop.extent <= self.width

    def _one_register(self, loop: Loop, end: str) -> None:
        around_base, around_mask = dict(self.base), self.mask
        outside = self.inner()
        self.vectors.add(loop.index)
        self.base[loop.index] = "0"
        if loop.extent != self.width:
            is_hidden = loop.extent == 1 or _has_predicates(loop)
            self.mask = self.first_lanes("0", self._hide(end) if is_hidden else end)
            self.first_few = loop.max_iterations if self.is_inner else 0
        self.body(loop)
        self.first_few = 0
        self.leave(outside)
        self.base, self.mask = around_base, around_mask

    def _hide(self, number: str) -> str:
        """A number that the code generator does not know.

        LLVM 22 may read half a register where it knows that the lanes of this half are never wanted, and the mask
        is one of those joined with a condition: it takes the mask for one that is not there.  Where it knows that one
        lane is stored, of integers that were made narrower, it stores as many bytes as they had before.
        """
        nothing = self.line("ashr i64 %end, 63")  # ranges end at no negative number
        return self.line(f"add i64 {number}, {nothing}")

    def _once_or_not(self, loop: Loop, end: str) -> None:
        """A loop that accumulates nothing and whose extent is 1 or 0."""
        body, done = self.labels("body", "done")
        condition = _condition_of(loop)
        if condition is not None and condition in self.block.names:
            runs = self.block.operand(condition, 1)
        else:
            runs = self.line(f"icmp sgt i64 {end}, 0")
        self.write(f"br i1 {runs}, label %{body}, label %{done}")
        outside = self.inner()
        self.begin(body)
        self.block.names[loop.index] = "0"
        self.body(loop)
        self.write(f"br label %{done}")
        self.leave(outside)
        self.begin(done)

    def _once(self, loop: Loop) -> None:
        """A loop of one iteration, as what that does: later passes may not see that a loop ends after one."""
        wide = bool(self.base)
        first = self.starts(loop.accumulators, wide)
        self._name_carries(loop, self._registers_of([carry.initial for carry in loop.carries]))
        outside = self.inner()
        self.block.names[loop.index] = "0"
        slots, carried = self._iterate(loop, first)
        self.leave(outside)
        self._name_results(loop, slots, carried)

    def _iterate(self, loop: Loop, held: list[list[str]]) -> tuple[list[list[str]], list[str]]:
        """Run the body of a loop once; what its accumulators, which held this, and its carries hold then."""
        wide = bool(self.base)
        self.body(loop)
        following = [
            self.combine(accumulator, slot, accumulator.terms, wide)
            for accumulator, slot in zip(loop.accumulators, held, strict=True)
        ]
        return following, self._registers_of([carry.following for carry in loop.carries])

    def _serial_loop(self, loop: Loop, begin: str, end: str) -> None:
        labels = self.labels("head", "body", "done")
        # In a vector loop every lane accumulates its own.
        wide = bool(self.base)
        first = self.starts(loop.accumulators, wide)
        initial = self._registers_of([carry.initial for carry in loop.carries])
        slots = self.phi_slots(loop.accumulators, labels[0])
        held = [f"%{labels[0]}.c{number}" for number in range(len(loop.carries))]
        self._name_carries(loop, held)
        with self.rounds(labels, begin, end) as rounds:
            self.block.names[loop.index] = rounds.counter
            following, carried = self._iterate(loop, slots)
            rounds.following = self.line(f"add nsw i64 {rounds.counter}, 1")
            rounds.phis += self.phis(loop.accumulators, wide, slots, first, following)
            kinds = map(self._kind, loop.carries)
            rounds.phis += map(Phi, held, kinds, initial, carried)
        self._name_results(loop, slots, held)

    def _name_results(self, loop: Loop, slots: list[list[str]], held: list[str]) -> None:
        """Let what a loop accumulates and carries have the registers in which that is when it has ended."""
        self.block.names.update((carry.result, slot) for carry, slot in zip(loop.carries, held, strict=True))
        for accumulator, slot in zip(loop.accumulators, slots, strict=True):
            for result, register in zip(accumulator.results, slot, strict=True):
                if self.base:
                    self.vectors.add(result)
                self.block.names[result] = register

    def _name_carries(self, loop: Loop, slots: list[str]) -> None:
        """Let what the loop carries have registers: in a vector loop every lane has its own."""
        for carry, slot in zip(loop.carries, slots, strict=True):
            self.block.names[carry.argument] = slot
            if self.base:
                self.vectors.update((carry.argument, carry.result))

    def _registers_of(self, values: list[Value]) -> list[str]:
        self.compute(values)
        return [self.block.operand(value, self.width if self.base else 1) for value in values]

    def _kind(self, carry: Carry) -> str:
        return register_type(carry.argument.dtype, self.width if self.base else 1)


def _condition_of(loop: Loop) -> Value | None:
    """The condition on which the extent of a loop is 1, and else 0; None for other extents."""
    extent = loop.extent
    if not isinstance(extent, Value) or extent.op != "select":
        return None
    condition, *extents = extent.operands
    are_known = all(each.op == "constant" for each in extents)
    return condition if are_known and [int(constant_of(each)) for each in extents] == [1, 0] else None


def _has_predicates(loop: Loop) -> bool:
    """Whether a loop reads elements under a condition."""
    return any(value.op == "load" and value.attribute.masked for value in in_order(*loop.roots()))
