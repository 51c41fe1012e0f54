"""The function of a plan while it is written: lines, registers, the kernels that it calls, and where arrays lie."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final, Literal, TypeAlias

from xarr.base.frozen_dataclasses import record
from xarr.compiler.loop_ir.changed_parts import change_in_place, read_before_written
from xarr.compiler.loop_ir.loops import Buffer, Kernel, Loop, copied_buffers
from xarr.compiler.loop_ir.split_loops import split_by_conditions
from xarr.compiler.plan.arena import Arena
from xarr.compiler.plan.program_plan import Step
from xarr.compiler.while_loops.native_loops import NativeLoop
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy.compiled.codegen.emitter import Functions
from xarr_numpy.compiled.codegen.instructions import ATTRIBUTES
from xarr_numpy.compiled.codegen.templates import Template, code_of_template
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.threads import costs
from xarr_numpy.compiled.threads.phases import Phase, shared_phase
from xarr_numpy.processor import PROCESSOR

#: Functions of Python's C API, one that lets Python handle signals, and one that calls a function of Python with the
#: address of a table, and says whether it raised an error.  Where Python's lock is not held, the state of the thread
#: lies at `lock`.
_HELPERS: Final = """
def PyEval_SaveThread() -> ptr: ...
def PyEval_RestoreThread(thread: ptr): ...
def PyErr_CheckSignals() -> i32: ...
def PyLong_FromVoidPtr(address: ptr) -> ptr: ...
def PyObject_CallOneArg(function: ptr, argument: ptr) -> ptr: ...
def Py_DecRef(object: ptr): ...

def interrupted(lock: ptr) -> i1:
    raised = False
    if lock.ptr[0]:
        PyEval_RestoreThread(lock.ptr[0])
        raised = PyErr_CheckSignals() != 0
    lock.ptr[0] = PyEval_SaveThread()
    return raised

# Whether quick code has run for so long, Python's lock not held, that it is better begun anew.
@inline
def is_over(lock: ptr, most: i64) -> i1:
    return most != 0 and lock.ptr[0] is not null

def call_python(lock: ptr, function: ptr, table: ptr) -> i1:
    holds = lock.ptr[0] is null
    if not holds:
        PyEval_RestoreThread(lock.ptr[0])
        lock.ptr[0] = null
    number = PyLong_FromVoidPtr(table)
    result = PyObject_CallOneArg(function, number)
    release(number)
    if not result:
        return True
    release(result)
    if not holds:
        lock.ptr[0] = PyEval_SaveThread()
    return False

@exported
def run(table: ptr, most: i64) -> i64:
    lock = null
    status = call(i64, steps, table, most, address(lock))
    if lock:
        PyEval_RestoreThread(lock)
    return status
"""


@cache
def _helpers() -> str:
    return compile_functions(_HELPERS)


@record(eq=False)
class CallBack:
    """A step that Python computes: `graph` of its inputs, and the `reason`.  The table has inputs, then outputs."""

    step: Step
    graph: Graph
    reason: str


@record
class Routine:
    """A routine of LAPACK in NumPy's library, such as `dgesv`."""

    name: str


@record
class UfuncPointer:
    """The address of the inner loop of one of NumPy's ufuncs, or that of its data."""

    address: int


#: The elements of a constant, a function of Python or of a library, or the threads and the function by which they
#: share a phase.
Static: TypeAlias = ops.Constant | CallBack | Routine | UfuncPointer | Literal["pool", "share"]


class FunctionCode:
    """Writes the function.  Registers of the entry are those that do not change while it runs."""

    def __init__(self) -> None:
        self.functions = Functions()
        self.statics: list[Static] = []
        #: Texts of functions that it calls, each there once.
        self.helpers: dict[str, str] = {"": _helpers()}
        #: What placeholders (`templates`) stand for: offsets, bytes, numbers of iterations.
        self.numbers: list[int] = []
        #: Slots of tables of kernels for the address of these, where they are read from an array.
        self._number_slots: list[tuple[str, int]] = []
        self._slots = 0
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.label = "begin"
        #: The arena, which begins with the value of a check that fails, and what is in use: bytes by their offset.
        self._space = Arena()
        self._space.allocate(8)
        self._reserved: dict[int, int] = {}
        #: Nanoseconds of what has been written since the loop around it began.
        self.cost = 0.0
        #: The same of the loops in it, in which Python may handle signals.
        self.loops_cost = 0.0
        #: The longest time that passes before Python may handle signals.
        self.longest = 0.0
        #: Whether the function may end with 1 then, its results not written, if `most` is not 0.
        self.gives_up = False
        #: The addresses of the pool of threads and of the function by which they share a phase, if any is shared.
        self.threads: tuple[str, ...] = ()
        self._count = 0
        self._at: dict[int, str] = {}
        self._fixed: set[str] = set()
        self._constants: dict[int, str] = {}
        #: The constants of one number, by the addresses of their registers.
        self._numbers: dict[str, ops.Constant] = {}
        self._kernels: dict[Kernel, list[tuple[str, Loop]]] = {}
        #: Kernels as they are where results lie in the memory of operands, by these.
        self._in_place: dict[tuple[Kernel, tuple[tuple[Buffer, Buffer], ...]], Kernel] = {}
        #: The lines of the functions of phases, how many of them are to be copied to where they are called, and how
        #: many loops are around what is being written.
        self.lengths: dict[str, int] = {}
        self._inlined = 0
        self.depth = 0
        #: The loops that have been written.
        self.loops = 0
        #: The loop programs of kernels and of loops over points, in the order in which they are first called.
        self.parts: list[Kernel | NativeLoop] = []

    def module_of(self, head: list[str], may_share: bool) -> tuple[str, list[int]]:
        """The text of the module, whose function begins with these lines, and the numbers that it reads from an array:
        none, unless it `may_share` its machine code with programs that are alike, and there are enough.
        """
        helpers = "".join(self.helpers.values())
        steps = self._template([*head, *self.entry])
        if may_share:
            alike = code_of_template(self.functions.template() + helpers + steps.text)
            alike.count += 1
            if alike.count >= PROCESSOR.min_alike_kernels:
                stores = []
                for k, (table, slot) in enumerate(self._number_slots):
                    stores.append(f"%n.table{k} = getelementptr ptr, ptr {table}, i64 {slot}")
                    stores.append(f"store ptr %n.all, ptr %n.table{k}, align 8")
                first = len(self.statics) + 1
                kernels, numbers = self.functions.shared_module(first)
                steps = self._template([*head, *self.entry, *stores])
                text = steps.with_arguments(first + len(numbers))
                return kernels + helpers + text, [*numbers, *self.numbers]
        return self.functions.module() + helpers + steps.with_constants(), []

    def _template(self, entry: list[str]) -> Template:
        body = "\n".join(
            each if each.endswith(":") else f"  {each}"
            for each in [*entry, "br label %begin", "begin:", *self.lines]
        )
        over = "over:\n  ret i64 1\n" if self.gives_up else ""
        text = (
            f"define internal i64 @steps(ptr %table, i64 %most, ptr %lock) {ATTRIBUTES} {{\n"
            f"entry:\n{body}\nraise:\n  ret i64 -1\n{over}}}\n"
        )
        return Template(text, tuple(self.numbers), 1, self._slots - 1, "%table")

    # --- lines ---------------------------------------------------------------------------------------------

    def line(self, instruction: str) -> str:
        """Write an instruction with a result; its register."""
        self._count += 1
        register = f"%r{self._count}"
        self.lines.append(f"{register} = {instruction}")
        return register

    def write(self, instruction: str) -> None:
        self.lines.append(instruction)

    def first(self, instruction: str) -> str:
        """Write an instruction of the entry; its register."""
        self._count += 1
        register = f"%e{self._count}"
        self.entry.append(f"{register} = {instruction}")
        self._fixed.add(register)
        return register

    def labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def number(self, number: int) -> str:
        """A placeholder for a number that may be another one in a program that is alike."""
        self.numbers.append(number)
        return f"%n{len(self.numbers) - 1}"

    def call(self, function: str, pointers: Iterable[str], numbers: Iterable[int]) -> None:
        """Call a function of the module with addresses, and numbers that may be others in a program that is alike."""
        arguments = [f"ptr {each}" for each in pointers]
        arguments += [f"i64 {self.number(each)}" for each in numbers]
        self.write(f"call void @{function}({', '.join(arguments)})")

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        self.write(f"br label %{label}")

    # --- addresses -----------------------------------------------------------------------------------------

    def slot(self) -> tuple[str, str]:
        """The next slot of the table: the address that it holds when the function begins, and its own."""
        slot = self.first(f"getelementptr ptr, ptr %table, i64 {self._slots}")
        self._slots += 1
        return self.first(f"load ptr, ptr {slot}, align 8"), slot

    def name_last(self, name: str) -> None:
        """Give the register that was written last in the entry a name."""
        register, instruction = self.entry[-1].split(" ", 1)
        self._fixed.symmetric_difference_update((register, name))
        self.entry[-1] = f"{name} {instruction}"

    def static(self, static: Static) -> str:
        """An address that does not change from call to call."""
        slot = self.first(f"getelementptr ptr, ptr %statics, i64 {len(self.statics)}")
        self.statics.append(static)
        return self.first(f"load ptr, ptr {slot}, align 8")

    def at(self, offset: int) -> str:
        """The address of a byte of the arena."""
        if offset not in self._at:
            self._at[offset] = self.first(f"getelementptr i8, ptr %arena, i64 {self.number(offset)}")
        return self._at[offset]

    @property
    def arena(self) -> int:
        """The bytes of the arena."""
        return self._space.nbytes

    def reserve(self, nbytes: int) -> int:
        """Where bytes of the arena begin that are in use until `release` or the end of the scope."""
        offset = self._space.allocate(max(1, nbytes))
        self._reserved[offset] = max(1, nbytes)
        return offset

    def release(self, offset: int) -> None:
        """Let what follows use reserved bytes again."""
        self._space.release(offset, self._reserved.pop(offset))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Release what is reserved inside."""
        before = set(self._reserved)
        yield
        for offset in set(self._reserved) - before:
            self.release(offset)

    def allocate(self, nbytes: int) -> str:
        """The address of bytes that are reserved."""
        return self.at(self.reserve(nbytes))

    def constant(self, op: ops.Constant) -> str:
        """The address of a constant; of one number, whose bits machine code then knows, that of a register."""
        if id(op) not in self._constants:
            is_number = op.type.size == 1 and op.type.nbytes.bit_count() == 1
            self._constants[id(op)] = self._number(op) if is_number else self.static(op)
        return self._constants[id(op)]

    def _number(self, op: ops.Constant) -> str:
        address = self.register(op.type.nbytes)
        self._numbers[address] = op
        bits = int.from_bytes(op.raw, sys.byteorder)
        self.entry.append(f"store i{8 * op.type.nbytes} {bits}, ptr {address}, align 1")
        return address

    def outer_address(self, pointer: str) -> str:
        """An address for a function that LLVM does not look into: of a copy, where it is that of a constant number,
        which stays known elsewhere.
        """
        op = self._numbers.get(pointer)
        return pointer if op is None else self._number(op)

    def advance(self, pointer: str, nbytes: int) -> str:
        """An address so many bytes behind another one."""
        if not nbytes:
            return pointer
        instruction = f"getelementptr i8, ptr {pointer}, i64 {self.number(nbytes)}"
        return self.first(instruction) if pointer in self._fixed else self.line(instruction)

    def register(self, nbytes: int) -> str:
        """The address of bytes that a register may hold instead."""
        return self.first(f"alloca [{nbytes} x i8], align 16")

    def in_registers(self, source: str, nbytes: int, is_in_place: bool) -> tuple[str, ...]:
        """The addresses of a carried number: of what it is, and, if it needs another one, of what it becomes."""
        addresses = [self.register(nbytes) for _ in range(1 if is_in_place else 2)]
        self.copy(addresses[0], source, nbytes)
        return tuple(addresses)

    def copy(self, target: str, source: str, nbytes: int) -> None:
        if target != source and nbytes.bit_count() == 1 and nbytes <= PROCESSOR.max_number_bytes:
            number = self.line(f"load i{8 * nbytes}, ptr {source}, align 1")
            self.write(f"store i{8 * nbytes} {number}, ptr {target}, align 1")
        elif target != source and nbytes:
            self.cost += nbytes * PROCESSOR.byte_time
            self.functions.declarations.add("declare ptr @memcpy(ptr, ptr, i64)")
            self.line(f"call ptr @memcpy(ptr {target}, ptr {source}, i64 {self.number(nbytes)})")

    def holds(self, pointer: str) -> str:
        byte = self.line(f"load i8, ptr {pointer}, align 1")
        return self.line(f"icmp ne i8 {byte}, 0")

    def poll(self, nanoseconds: float) -> None:
        """Let Python handle signals from time to time; `nanoseconds` have passed."""
        self.longest = max(self.longest, nanoseconds)
        poll, reset, on = self.labels("poll", "reset", "on")
        left = self.line("load i64, ptr %budget, align 8")
        left = self.line(f"sub i64 {left}, {int(nanoseconds) + 2}")
        self.write(f"store i64 {left}, ptr %budget, align 8")
        self.write(f"br i1 {self.line(f'icmp slt i64 {left}, 0')}, label %{poll}, label %{on}")
        self.begin(poll)
        self._handle_signals(reset)
        self.write(f"store i64 {PROCESSOR.max_unpolled_nanoseconds}, ptr %budget, align 8")
        self.jump(on)
        self.begin(on)

    def _handle_signals(self, following: str) -> None:
        """Let Python handle signals, and begin the block that follows."""
        if self.gives_up:
            (ask,) = self.labels("ask")
            over = self.line("call i1 @is_over(ptr %lock, i64 %most)")
            self.write(f"br i1 {over}, label %over, label %{ask}")
            self.begin(ask)
        raised = self.line("call i1 @interrupted(ptr %lock)")
        self.write(f"br i1 {raised}, label %raise, label %{following}")
        self.begin(following)

    def launch(self, kernel: Kernel, pointers: list[str]) -> None:
        """Call the functions of a kernel's phases."""
        pointers += [self.allocate(buffer.nbytes) for buffer in kernel.scratch]
        kernel = self._kernel_in_place(kernel, pointers)
        if kernel not in self._kernels:
            first = len(self.functions.templates)
            names = self.functions.add(
                kernel,
                f"k{len(self._kernels)}.",
                is_whole=_is_whole,
                is_inner=True,
            )
            templates = self.functions.templates[first:]
            self.lengths |= {name: each.text.count("\n") for name, each in zip(names, templates, strict=True)}
            self.parts.append(kernel)
            self._kernels[kernel] = list(zip(names, kernel.phases, strict=True))
        table = self.table(pointers)
        addresses = dict(zip((*kernel.inputs, *kernel.outputs, *kernel.scratch), pointers, strict=True))
        for name, phase in self._kernels[kernel]:
            copied = copied_buffers(phase)
            if copied is None or addresses[copied[0]] != addresses[copied[1]]:
                self.phase(name, phase, table)

    def _kernel_in_place(self, kernel: Kernel, pointers: Sequence[str]) -> Kernel:
        """The kernel where some of its results lie in the memory of operands."""
        addresses = dict(zip((*kernel.inputs, *kernel.outputs), pointers, strict=False))
        pairs = [
            (result, operand)
            for result in kernel.outputs
            for operand in kernel.inputs
            if addresses[result] == addresses[operand]
        ]
        key = kernel, tuple(pairs)
        if key not in self._in_place:
            over = dict(pairs)
            changed = change_in_place(kernel, over, _is_whole) if over else kernel
            changed = split_by_conditions(changed, _is_whole)
            if over and changed is not kernel:
                changed = read_before_written(changed, over) or kernel
            self._in_place[key] = changed
        return self._in_place[key]

    def table(self, pointers: Sequence[str]) -> str:
        """The address of a table of addresses."""
        table = self.first(f"alloca [{len(pointers) + 1} x ptr], align 8")
        self._number_slots.append((table, len(pointers)))
        for number, pointer in enumerate(map(self.outer_address, pointers)):
            slot = self.first(f"getelementptr ptr, ptr {table}, i64 {number}")
            lines = self.entry if pointer in self._fixed else self.lines
            lines.append(f"store ptr {pointer}, ptr {slot}, align 8")
        return table

    def integers(self, numbers: Sequence[int]) -> str:
        """The address of integers that are there from the beginning."""
        address = self.first(f"alloca [{len(numbers)} x i64], align 8")
        for k, number in enumerate(numbers):
            where = self.first(f"getelementptr i64, ptr {address}, i64 {k}")
            self.entry.append(f"store i64 {number}, ptr {where}, align 8")
        return address

    def call_back(self, call: CallBack, pointers: Sequence[str]) -> None:
        """Let Python compute a step."""
        self.cost += PROCESSOR.call_back_time
        raised = self.line(
            f"call i1 @call_python(ptr %lock, ptr {self.static(call)}, ptr {self.table(pointers)})"
        )
        (on,) = self.labels("on")
        self.write(f"br i1 {raised}, label %raise, label %{on}")
        self.begin(on)

    def inline(self, name: str, is_loop: bool = False) -> str:
        """The word of a call to which the function is copied: of a small one, inside of a loop, or if it is one."""
        length = self.lengths[name]
        is_small = length <= PROCESSOR.max_inlined_lines
        if not ((self.depth or is_loop) and is_small) or self._inlined + length > PROCESSOR.max_copied_lines:
            return ""
        self._inlined += length
        return " alwaysinline"

    def phase(self, name: str, phase: Loop, table: str) -> None:
        """Call the function of a phase, or let threads share it."""
        self.share(name, shared_phase(0, phase), table, may_copy=True)

    def share(self, name: str, shared: Phase, table: str, may_copy: bool = False) -> None:
        """Call a function for all iterations of a phase, which a call `may_copy`, or let threads share it."""
        numbers = shared.plan_in_threads()
        if numbers is None:
            self.cost += shared.work
            word = self.inline(name) if may_copy else ""
            self.write(f"call void @{name}(ptr {table}, i64 0, i64 {self.number(shared.extent)}){word}")
            return
        if not self.threads:
            self.threads = (self.static("pool"), self.static("share"))
        pool, share = self.threads
        part, again, done = self.labels("part", "again", "done")
        before = self.label
        self.jump(part)
        self.begin(part)
        extent, *rest = [self.number(number) for number in (shared.extent, *numbers)]
        arguments = ", ".join(f"i64 {number}" for number in rest)
        self.write(f"%{part}.i = phi i64 [ 0, %{before} ], [ %{part}.next, %{again}.on ]")
        self.write(
            f"%{part}.next = call i64 {share}(ptr {pool}, ptr @{name}, ptr {table}, i64 %{part}.i, "
            f"i64 {extent}, {arguments}, i64 {PROCESSOR.max_unpolled_nanoseconds})"
        )
        self.write(f"%{part}.left = icmp slt i64 %{part}.next, {extent}")
        self.write(f"br i1 %{part}.left, label %{again}, label %{done}")
        self.begin(again)
        self._handle_signals(f"{again}.on")
        self.jump(part)
        self.begin(done)
        self.cost += shared.work


def _is_whole(phase: Loop) -> bool:
    """Whether one caller runs a phase for all iterations."""
    return not costs.is_shared(phase)
