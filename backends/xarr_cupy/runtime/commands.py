"""The commands of a program, which a run goes through once: launches in a row, and what the host does between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from xarr.backend import mark_failed
from xarr.base.custom_calls import run_custom_call
from xarr.base.progress import CountSteps, StepCounter
from xarr.compiler.plan import program_plan
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr_cupy import host, libraries
from xarr_cupy.runtime.arrays import DeviceArray, flatten, flatten_types, pack
from xarr_cupy.runtime.device import LoadedDevice
from xarr_cupy.runtime.launches import Location, address_of


class LocatedArray(NamedTuple):
    """An array of a program, at a location that each run has anew."""

    location: Location
    type: TensorType


class Frame:
    """The memory of one run: arrays by the slots of the table, and their addresses."""

    __slots__ = ("addresses", "arrays", "count", "counter", "device")

    def __init__(
        self, device: LoadedDevice, arrays: Sequence[DeviceArray | None], counter: StepCounter | None = None
    ) -> None:
        self.device, self.arrays, self.counter = device, arrays, counter
        #: Told how many iterations more the outermost loop has done, where that is shown.
        self.count: CountSteps | None = None
        self.addresses = [0 if each is None else each.address for each in arrays]

    def array(self, operand: LocatedArray) -> DeviceArray:
        """An operand in this run."""
        own = self.arrays[operand.location.slot]
        assert own is not None
        return DeviceArray(own.memory, operand.type, own.offset + operand.location.offset)

    def read(self, operand: LocatedArray) -> np.ndarray[Any, Any]:
        """The elements of an operand on the host, which waits for them."""
        return self.device.download(self.array(operand))

    def write(self, target: LocatedArray, value: np.ndarray[Any, Any] | DeviceArray) -> None:
        """Copy a value of the host or of the device."""
        self.device.write(self.array(target), value)


class Command(Protocol):
    """A thing that a run does."""

    @property
    def node(self) -> Node | None:
        """The node of the program's graph that is told where the command fails, if there is one."""

    def run(self, frame: Frame) -> None: ...


Commands = Sequence[Command]


def run_all(commands: Commands, frame: Frame) -> None:
    """Run commands one after the other."""
    for command in commands:
        try:
            command.run(frame)
        except BaseException as error:
            if command.node is not None:
                mark_failed(error, command.node)
            raise


class Launching(NamedTuple):
    """Launch kernels and copies, of these operations, and wait for none."""

    operations: tuple[Node, ...]
    prepared: Any
    #: The fault of an operation shows later: the device lists those that may have had it.
    node: None = None

    def run(self, frame: Frame) -> None:
        frame.device.submit(self.operations, self.prepared, frame.addresses)


class CountingStep(NamedTuple):
    """Wait for a step of the plan, and count it."""

    node: Node

    def run(self, frame: Frame) -> None:
        frame.device.wait()
        if frame.counter is not None:
            frame.counter.step()


class Multiplying(NamedTuple):
    """Call cuBLAS for a product of operands that lie as it takes them, with `gemm_arguments` around addresses."""

    node: Node
    around: list[tuple[int, ...]]
    lhs: LocatedArray
    rhs: LocatedArray
    result: LocatedArray

    def run(self, frame: Frame) -> None:
        device, table, (sizes, second, first, last) = frame.device, frame.addresses, self.around
        lhs, rhs, result = [address_of(each.location, table) for each in (self.lhs, self.rhs, self.result)]
        device.remember((self.node,))
        with device.faults:
            device.driver.gemm((*sizes, rhs, *second, lhs, *first, result, *last))


class Sorting(NamedTuple):
    """Let CUB sort an array where it lies, and store the numbers that its elements had, if they are wanted."""

    node: Node
    keys: LocatedArray
    numbers: LocatedArray | None = None

    def run(self, frame: Frame) -> None:
        device, table = frame.device, frame.addresses
        numbers = None if self.numbers is None else address_of(self.numbers.location, table)
        device.remember((self.node,))
        with device.faults, device.driver.library_calls():
            keys = address_of(self.keys.location, table)
            libraries.sort_in_place(device.driver.arrays, self.keys.type, keys, numbers)


#: Of an operation and its operands: its results, arrays of the device or of NumPy.
Computation = Callable[[Node, Frame, Sequence[LocatedArray]], Sequence[Any]]


class Computing(NamedTuple):
    """Compute an operation by what allocates or waits, and copy the results to `outputs`, where they are wanted."""

    node: Node
    operation: Node
    computation: Computation
    inputs: tuple[LocatedArray, ...]
    outputs: tuple[LocatedArray | None, ...]

    def run(self, frame: Frame) -> None:
        values = self.computation(self.operation, frame, self.inputs)
        for target, value in zip(self.outputs, values, strict=True):
            if target is not None:
                frame.write(target, value)


def compute_by_host(node: Node, frame: Frame, inputs: Sequence[LocatedArray]) -> Sequence[Any]:
    """The results of an operation that `host` has a reason for."""
    values = pack([operand.type for operand in node.operands], [frame.read(each) for each in inputs])
    return flatten(host.compute(node, list(values)))


def compute_by_library(node: Node, frame: Frame, inputs: Sequence[LocatedArray]) -> Sequence[DeviceArray]:
    """The results of an operation of `libraries.ROUTINES`, in new memory."""
    device, driver = frame.device, frame.device.driver
    device.remember((node,))
    with device.faults, driver.library_calls():
        own = [frame.array(each) for each in inputs]
        arrays = [driver.view(each.memory, each.offset, each.type) for each in own]
        results = libraries.ROUTINES[type(node.op)](driver.arrays, node.op, *arrays)
        pairs = zip(results, flatten_types([node.type]), strict=True)
        return [
            DeviceArray(driver.memory_of(each.astype(type.dtype, copy=False)), type) for each, type in pairs
        ]


class Checking(NamedTuple):
    """Check indices on the host."""

    node: Node
    call: ops.CustomCall
    inputs: tuple[LocatedArray, ...]

    def run(self, frame: Frame) -> None:
        host.CALLS[self.call.name, host.OPERATIONS[ops.CustomCall]] += 1
        arrays = tuple([frame.read(each) for each in self.inputs])
        described = tuple([(each.dtype, each.shape) for each in arrays])
        run_custom_call(self.call.call_target_name, dict(self.call.attribute_items), described, arrays)


class Branching(NamedTuple):
    """Run the commands of one of several branches, by a number that the host reads."""

    node: Node
    step: program_plan.Branch
    number: LocatedArray
    branches: tuple[Commands, ...]

    def run(self, frame: Frame) -> None:
        host.CALLS[self.step.op.name, host.CONTROL[self.step.word]] += 1
        value, count = frame.read(self.number), len(self.branches)
        number = 1 - int(value) if value.dtype == np.bool_ else int(value)
        run_all(self.branches[number if 0 <= number < count else -1], frame)
