"""The kernels that a run of a program launches, as text: its commands are built on a device that computes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from xarr.compiler.plan.program_plan import Plan
from xarr.ir.graph import Node
from xarr_cupy.codegen.kernel_calls import DECLARATION, KernelCall, with_comments
from xarr_cupy.runtime.command_builder import ARENA, CodeOptions, CommandList, ProgramMemory
from xarr_cupy.runtime.commands import Branching, Commands, Launching
from xarr_cupy.runtime.device import LoadedDevice
from xarr_cupy.runtime.launches import KernelLaunch, Launches, Location
from xarr_cupy.runtime.loop_commands import ProgramCommands
from xarr_cupy.runtime.repetitions import Batching, Continuing, Looping, Repeating, ShowingProgress


class _NoMemory(NamedTuple):
    """Memory of a device that has none."""

    address: int = 0


class _ListingDriver:
    """A device as far as commands are built on it: modules are their texts, and what is prepared stays what it was."""

    def load(self, text: str) -> str:
        return text

    def prepare(self, launches: Launches) -> Launches:
        return tuple(launches)

    def allocate(self, sizes: Sequence[int]) -> list[_NoMemory]:
        return [_NoMemory()] * len(sizes)

    def upload(self, address: int, array: Any) -> None:
        """Leave constants where they are."""


class _LaunchedText:
    """Launches of a text: the operations, and by the names of kernels what they compute, and how often."""

    def __init__(self) -> None:
        self.nodes: dict[Node, None] = {}
        self.labels: dict[str, dict[str, None]] = {}
        self.launches: dict[str, int | None] = {}

    def print(self, text: str) -> str:
        """The text with comments."""
        notes = dict.fromkeys(re.findall(rf"{re.escape(DECLARATION)} (\w+)\(", text), "not launched")
        for name, labels in self.labels.items():
            count = self.launches[name]
            often = "; launched as often as the host finds" if count is None else f"; {count} launches"
            notes[name] = ", ".join(labels) + ("" if count == 1 else often)
        return "\n".join([*dict.fromkeys(map(_comment_of, self.nodes)), with_comments(text, notes)])


def commands_of(
    plan: Plan, device: LoadedDevice, options: CodeOptions, counts: bool = False
) -> tuple[ProgramMemory, ProgramCommands, Commands]:
    """The commands of a program, and what knows where its arrays are; counts: whether steps are counted."""
    memory, out = ProgramMemory(plan, device), CommandList(device)
    own = {buffer.number: memory.result(index) for index, buffer in enumerate(memory.results)}
    builder = ProgramCommands(memory, options, out, plan, Location(ARENA), memory.arguments, own)
    builder.counts = counts
    builder.add_all()
    return memory, builder, out.commands()


def print_kernels(plan: Plan, options: CodeOptions) -> list[str]:
    """The texts of a program's kernels, in the order in which a run launches them first.

    Comments say which operations they compute, the lines that built those, and how often each kernel is launched.
    """
    driver: Any = _ListingDriver()
    texts: dict[str, _LaunchedText] = {}
    for launch, times in _launches_of(commands_of(plan, LoadedDevice(driver), options)[2], 1):
        own = texts.setdefault(launch.module, _LaunchedText())
        if launch.node is not None:
            own.nodes[launch.node] = None
        labels = own.labels.setdefault(launch.name, {})
        labels[_label_of(launch.call)] = None
        before = own.launches.get(launch.name, 0)
        own.launches[launch.name] = None if times is None or before is None else before + times
    return [own.print(text) for text, own in texts.items()]


def _label_of(call: KernelCall | None) -> str:
    if call is None:
        return "iterations of a loop, one after the other"
    return "a copy of a result" if call.copied else call.label


def _launches_of(commands: Commands, times: int | None) -> Iterator[tuple[KernelLaunch, int | None]]:
    """The launches of commands that run so many times, and how often each is launched; None for nobody knows."""
    for command in commands:
        match command:
            case Launching():
                for each in command.prepared:
                    if isinstance(each, KernelLaunch):
                        yield each, times
            case Repeating():
                yield from _launches_of(command.commands, None if times is None else times * command.times)
            case Branching():
                for branch in command.branches:
                    yield from _launches_of(branch, None)
            case Continuing():
                yield from _launches_of(command.first, times)
                yield from _launches_of(command.following, None)
            case Batching():
                yield from _launches_of(command.start, times)
                yield from _launches_of(command.pair, None)
                for part in command.finish:
                    yield from _launches_of(part, None)
            case Looping():
                yield from _launches_of(command.start, times)
                for iteration in command.iterations:
                    for part in (iteration.condition, iteration.body, iteration.finish):
                        yield from _launches_of(part, None)
            case ShowingProgress():
                yield from _launches_of(command.commands, times)


def _comment_of(node: Node) -> str:
    """A comment with the operation of a node, and the lines that built it or what it consists of."""
    nodes = [node, *[inner for graph in node.op.graphs for inner in graph.nodes]]
    lines = dict.fromkeys(
        f"{os.path.basename(each.source.filename)}:{each.source.line}"
        for each in nodes
        if each.source is not None
    )
    where = f", built at {', '.join(lines)}" if lines else ""
    return f"// {node.op.called} -> {node.type.short()}{where}"
