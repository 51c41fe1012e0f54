"""Work that a program asks of a GPU, without one: its launches, its calls of libraries, what the host does, the bytes.

The backend is connected to a device that computes nothing: the commands that a program becomes are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

import xarr
from gpu_rows.row import Case, Row
from xarr.base.configuration import current as config
from xarr.compiler.loop_ir.loops import Loop, Runs, loads_of
from xarr.compiler.loop_ir.scalars import Value, in_order
from xarr_cupy import driver
from xarr_cupy.codegen.emitter import KernelSource
from xarr_cupy.runtime.commands import (
    Branching,
    Checking,
    Computing,
    Launching,
    Multiplying,
    Sorting,
    compute_by_library,
)
from xarr_cupy.runtime.launches import KernelLaunch, Launches, MemoryCopy
from xarr_cupy.runtime.loop_commands import kernels_of
from xarr_cupy.runtime.repetitions import Batching, Continuing, Looping, Repeating


class ListingMemory:
    """No bytes at all."""

    address = 0


class ListingDriver:
    """A device that holds and computes nothing: its modules are their texts, and prepared launches what they were."""

    description = "none: what would be asked of a device is listed"
    arrays = None
    ordinal, count = 0, 1

    def at(self, ordinal: int) -> ListingDriver:
        return self

    def active(self) -> AbstractContextManager[None]:
        return nullcontext()

    def allocate(self, sizes: Sequence[int]) -> list[ListingMemory]:
        return [ListingMemory() for _ in sizes]

    def upload(self, address: int, array: np.ndarray) -> None:
        """Constants, which programs copy to the device once, are nowhere."""

    def load(self, text: str) -> str:
        return text

    def prepare(self, launches: Launches) -> Launches:
        return tuple(launches)


@dataclass
class Work:
    """The work that one run asks for.

    * `kernels`, `libraries`, `copies` - launches, calls, copies inside of the device,
    * `host` - steps that the host computes, or waits for a number of,
    * `moved` - bytes of the arrays that those launches and calls take, each array once for each,
    * `accessed` - bytes that loads and stores of kernels ask for, in caches or not; where a loop ends by numbers of an
      array, and for libraries, those that are moved,
    * `texts` - the modules, with the kernels of each that are launched.
    """

    kernels: int = 0
    libraries: int = 0
    copies: int = 0
    host: list[str] = field(default_factory=list)
    moved: int = 0
    accessed: int = 0
    texts: dict[str, set[str]] = field(default_factory=dict)

    def add(self, other: Work, times: int = 1) -> None:
        self.kernels += times * other.kernels
        self.libraries += times * other.libraries
        self.copies += times * other.copies
        self.moved += times * other.moved
        self.accessed += times * other.accessed
        self.host += [f"{times} × {each}" if times > 1 else each for each in other.host]
        for text, names in other.texts.items():
            self.texts.setdefault(text, set()).update(names)


def least_bytes(case: Case) -> int:
    """Bytes of the inputs and the results of a case, each once."""
    results = xarr.eval_shape(case.program(xarr, xarr.lax), *_types(case))
    results = results if isinstance(results, tuple | list) else (results,)
    return sum(each.nbytes for each in case.inputs) + sum(
        prod(each.shape) * each.dtype.itemsize for each in results
    )


def _types(case: Case) -> list[xarr.ShapeDtypeStruct]:
    return [xarr.ShapeDtypeStruct(each.shape, each.dtype) for each in case.inputs]


@contextmanager
def no_device() -> Iterator[None]:
    """Let the backend `cupy` be one of no device, and put what there was back."""
    loaded, connect = xarr.backend._loaded, driver.connect
    before = {name: loaded.pop(name) for name in list(loaded) if name.startswith("cupy")}
    driver.connect = ListingDriver
    try:
        with config(backend="cupy"):
            yield
    finally:
        driver.connect = connect
        for name in [name for name in loaded if name.startswith("cupy")]:
            del loaded[name]
        loaded.update(before)


def work_of(case: Case, row: Row) -> Work:
    """The work of a run of a case under jit.  Within `no_device`."""
    with config(deterministic=row.deterministic):
        program = xarr.jit(case.program(xarr, xarr.lax)).lower(*_types(case)).stage("program")
    return _work(program._loaded._commands, _accesses(program), row.iterations)


def _work(commands: Iterable[Any], accesses: dict[Any, int], iterations: int) -> Work:
    work = Work()
    for command in commands:
        work.add(_work_of_command(command, accesses, iterations))
    return work


def _work_of_command(command: Any, accesses: dict[Any, int], iterations: int) -> Work:
    match command:
        case Launching():
            return _work_of_launches(command.prepared, accesses)
        case Multiplying():
            nbytes = sum(each.type.nbytes for each in (command.lhs, command.rhs, command.result))
            return Work(libraries=1, moved=nbytes, accessed=nbytes)
        case Sorting():
            # The library reads and writes them more than once, in memory of its own too.
            nbytes = 2 * command.keys.type.nbytes + (command.numbers.type.nbytes if command.numbers else 0)
            return Work(libraries=1, moved=nbytes, accessed=nbytes)
        case Computing():
            arrays = [each for each in (*command.inputs, *command.outputs) if each is not None]
            nbytes = sum(each.type.nbytes for each in arrays)
            if command.computation is compute_by_library:
                return Work(libraries=1, moved=nbytes, accessed=nbytes)
            return Work(host=[command.operation.op.name], moved=nbytes, accessed=nbytes)
        case Checking():
            return Work(host=[f"check {command.call.call_target_name}"])
        case Branching():
            work = Work(host=["number of a branch"])
            work.add(
                max((_work(each, accesses, iterations) for each in command.branches), key=lambda w: w.moved)
            )
            return work
        case Looping():
            work = _work(command.start, accesses, iterations)
            first, second = command.iterations[0], command.iterations[-1]
            work.add(_work((*first.condition, *first.body), accesses, iterations))
            work.add(_work((*second.condition, *second.body), accesses, iterations), iterations - 1)
            work.host += [f"{iterations + 1} × condition of a loop"]
            work.add(_work(second.finish, accesses, iterations))
            return work
        case Repeating():
            work = Work()
            work.add(_work(command.commands, accesses, iterations), command.times)
            return work
        case Batching():
            work = _work((*command.start, *command.finish[1]), accesses, iterations)
            work.add(_work(command.pair, accesses, iterations), -(-iterations // 2))
            work.host.append("condition of a loop, now and then")
            return work
        case Continuing():
            work = _work(command.first, accesses, iterations)
            work.host.append("whether a loop goes on")
            return work
        case _:
            return Work(host=[type(command).__name__])


def _work_of_launches(launches: Sequence[KernelLaunch | MemoryCopy], accesses: dict[Any, int]) -> Work:
    work = Work()
    for each in launches:
        if isinstance(each, MemoryCopy):
            work.add(Work(copies=1, moved=2 * each.nbytes, accessed=2 * each.nbytes))
            continue
        of_buffers = sum(argument.nbytes for argument in dict.fromkeys(each.arguments))
        asked = accesses.get((each.module, each.name, each.sizes), of_buffers)
        text = {each.module: {each.name}}
        work.add(Work(1, moved=min(of_buffers, asked), accessed=asked, texts=text))
    return work


# --- loads and stores ----------------------------------------------------------------------------------------


def _accesses(program: Any) -> dict[Any, int]:
    """Bytes that kernels of the groups of a program ask for, by text, name and sizes."""
    accesses: dict[Any, int] = {}
    steps = [(plan, step) for plan in program.plan.walk() for step in plan.steps]
    kernels = dict.fromkeys(kernel for each in steps for kernel in kernels_of(*each))
    for kernel, source in zip(kernels, program.sources, strict=True):
        _note_accesses(kernel.phases, source, accesses)
    return accesses


def _note_accesses(phases: Sequence[Loop], source: KernelSource, accesses: dict[Any, int]) -> None:
    for phase, call in zip(phases, source.calls, strict=True):
        # What runs once or not at all, such as the edges of tiles, counts as once.
        if all(isinstance(loop.extent, int) or loop.max_iterations == 1 for loop in phase.walk()):
            accesses[source.text, call.name, call.sizes] = accessed_bytes(phase)


def accessed_bytes(phase: Loop) -> int:
    """Bytes that all loads and stores of a phase of loops of known extents ask for, those of shared memory apart.

    A load runs as often as the innermost of the loops whose numbers its offset is computed of, and a store as often as
    the loop that holds it.
    """
    counts: dict[Value, int] = {}
    total = 0

    def visit(loop: Loop, outer: dict[Value, int], times: int, threads: int = 1) -> None:
        nonlocal total
        threads = int(loop.max_iterations) if Runs.LOCKSTEP in loop.runs else threads
        if threads > 1 and Runs.BLOCK in loop.runs:  # Once for all threads, and not for each.
            outer = {each: count // threads if count >= times else count for each, count in outer.items()}
            times, threads = times // threads, 1
        for value in in_order(*[carry.initial for carry in loop.carries]):
            if value.op == "load":
                counts[value] = max(
                    counts.get(value, 1), *[outer[x] for x in in_order(value) if x in outer], 1
                )
        times *= int(loop.max_iterations)
        inside = {**outer, loop.index: times}
        for carry in loop.carries:
            inside[carry.argument] = times
        for store in loop.stores():
            if store.buffer.role in ("in", "out", "scratch"):
                total += times * store.buffer.dtype.itemsize * (2 if store.atomic else 1)
        for value in in_order(*loop.roots()):
            if value.op == "load":
                needed = [inside[each] for each in in_order(value) if each in inside]
                counts[value] = max(counts.get(value, 1), *needed, 1)
        for part in loop.body:
            if isinstance(part, Loop):
                visit(part, inside, times, threads)

    visit(phase, {}, 1)
    for value in loads_of(phase):
        if value.attribute.buffer.role in ("in", "out", "scratch"):
            total += counts.get(value, 1) * value.attribute.buffer.dtype.itemsize
    return total
