"""Evaluation op by op that looks for NaNs and infinities: `config.debug_nans`, `config.debug_overflow`.

As with NumPy's `errstate(invalid="raise", over="raise")`, an error is what a call makes out of numbers, not
what it hands on.  The ops of one call of a public function have one source line, the user's: what one of them makes
and another guards, as `where` does in `hypot`, is no fault.  It is one when it reaches an op of another line, or
its value is read; then the op that made it is named.  Calls that share a line, as in a helper function that makes
them for others, count as one call: what the first makes and the second guards is not seen.

Jitted functions run as plain ones meanwhile, so that every op has its source line.  Loops, branches and calls run
whole; one that makes such a number is run again step by step, so that the op of its body is named, unless it has side
effects or draws random numbers, which another run would do anew.  Slow: each op is a program of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.base.configuration import current as config
from xarr.base.frozen_dataclasses import record
from xarr.dtypes import COMPLEX, FLOAT
from xarr.errors import NotANumberError, NumberOverflowError
from xarr.ir.device import Device
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops import BitcastConvert, Call, Case, Constant, GetTupleElement, If, While
from xarr.ir.types import TensorType
from xarr.runtime.check_flags import attach, flags_of
from xarr.runtime.pending import order_of

Numbers: TypeAlias = np.ndarray[Any, Any] | None
Run: TypeAlias = Callable[[list[Node], list[Node], Device], None]
Fault: TypeAlias = NotANumberError | NumberOverflowError


def run_checked(roots: list[Node], device: Device, run: Run, lock: AbstractContextManager[Any]) -> None:
    """Compute the `roots` and check what is made of numbers: see `_run`."""
    _run(roots, [kind for kind in _KINDS if getattr(config, kind.option)], _Machine(device, run, lock))


@record
class _Machine:
    """A device, the function that computes nodes on it, and the lock that is held where they get values."""

    device: Device
    run: Run
    lock: AbstractContextManager[Any]


def _run(roots: list[Node], kinds: Sequence[_Kind], machine: _Machine) -> None:
    """Compute the `roots` and every array below them by `run`, each alone, and check its numbers.

    Copies of the nodes are computed: only what is no fault becomes the value of a node, so that each
    later read, in this thread or another, raises the error again.
    Raises NotANumberError, NumberOverflowError, each with the op, the index of the number, the numbers that
    it was made of, and the source line.
    """
    device, run, lock = machine.device, machine.run, machine.lock
    with lock:
        copies: dict[Node, Node] = {}
        for node in order_of(roots):
            is_leaf = node.value is not None or not node.operands
            copies[node] = node if is_leaf else node.rebuilt(tuple([copies[each] for each in node.operands]))
    searches = [_Search(kind, machine) for kind in kinds]
    read = {copies[root] for root in roots}
    # A node with a value has neither op nor operands any longer.
    parts = {copy: (copy.op, copy.operands) for copy in copies.values()}
    for node, copy in copies.items():
        if copy is node:
            continue
        op, operands = parts[copy]
        for search in searches:
            search.refuse_users(copy)
        if type(copy.type) is TensorType or copy in read:
            run(order_of([copy]), [copy], device)
        carrier = operands[0] if isinstance(op, GetTupleElement) else copy
        for search in searches:
            search.look_at(copy, op, operands, _Carrier(carrier, *parts[carrier]))
            if copy in read:
                search.refuse(copy)
        if copy.value is not None and not any(copy in search.faults for search in searches):
            with lock:
                _hand_over(copy, node, device)
    left = [root for root in roots if root.value is None and copies[root] is root]
    if left:
        run(order_of(left), left, device)


def _hand_over(copy: Node, node: Node, device: Device) -> None:
    """Give `node` the value of its copy, unless another thread was faster.  The caller holds the lock."""
    if node.value is None:
        attach([node], flags_of([copy]))
        node.settle(copy.value, device)


@record
class _Kind:
    """A kind of number to search for: those that are a fault, and those that they become."""

    option: str
    text: str
    error: type[NotANumberError] | type[NumberOverflowError]
    is_fault: Callable[[Any], Any]
    is_trace: Callable[[Any], Any]


def _is_not_finite(value: Any) -> Any:
    return ~np.isfinite(value)


_KINDS: Final = (
    _Kind("debug_nans", "a NaN", NotANumberError, np.isnan, np.isnan),
    _Kind("debug_overflow", "an infinity", NumberOverflowError, np.isinf, _is_not_finite),
)


@record(eq=False)
class _Carrier:
    """The node whose op made a value, itself or as an element of a tuple, with its op and its operands."""

    node: Node
    op: Op
    operands: tuple[Node, ...]


class _Search:
    """The search for one kind of number: which values have some, and the errors of those made of numbers."""

    def __init__(self, kind: _Kind, machine: _Machine) -> None:
        self._kind: Final = kind
        self._machine: Final = machine
        self._has_some: Final[dict[Node, bool]] = {}
        #: By values: the error of a read outside the call that made them.
        self.faults: Final[dict[Node, Fault]] = {}

    def refuse(self, node: Node) -> None:
        if node in self.faults:
            raise self.faults[node]

    def refuse_users(self, node: Node) -> None:
        """Refuse a node that has a fault of another call as an operand."""
        for operand in node.operands:
            if not node._location or operand._location != node._location:
                self.refuse(operand)

    def look_at(self, node: Node, op: Op, operands: tuple[Node, ...], carrier: _Carrier) -> None:
        """Examine the value of `node`, made by `op` of the operands; `carrier` is what ran for it."""
        handed_on = next((self.faults[each] for each in operands if each in self.faults), None)
        had_some = any([self._had_some(each) for each in operands])
        elements, some = self._examine(node, had_some)  # Of a tuple, elements are looked at when unpacked.
        self._has_some[node] = some
        if some and handed_on is not None:
            self.faults[node] = handed_on
        elif some and not had_some and type(op) is not BitcastConvert:
            assert elements is not None
            bad = self._kind.is_fault(elements)
            if bad.any():
                self.faults[node] = self._fault_inside(carrier) or self._kind.error(
                    _message(op, node, self._kind.text, bad, operands)
                )

    def _fault_inside(self, carrier: _Carrier) -> Fault | None:
        """The fault of an op in the graphs of a loop, a branch or a call, which is run again for that."""
        op, source = carrier.op, carrier.node.source
        if not op.runs_graphs or not all(graph.is_pure for graph in op.graphs):
            return None
        steps = _Steps(self._kind, self._machine)
        try:
            steps.run(op, carrier.operands)
        except self._kind.error as error:
            built = f" built at {source}" if source else ""
            return self._kind.error(
                f"{error}\nin {steps.iteration}the loop{built}" if isinstance(op, While) else str(error)
            )
        return None

    def _had_some(self, node: Node) -> bool:
        """Whether an operand has such numbers; a leaf is looked at once."""
        known = self._has_some.get(node)
        if known is None:
            _, known = self._examine(node, True)  # A tuple was computed without a check: it may have some.
            self._has_some[node] = known
        return known

    def _examine(self, node: Node, of_tuple: bool) -> tuple[Numbers, bool]:
        """The numbers of a node, and whether it has some of the kind: `of_tuple` for a tuple."""
        if type(node.type) is not TensorType:
            return None, of_tuple
        elements = _numbers(node)
        return elements, elements is not None and bool(self._kind.is_trace(elements).any())


class _Steps:
    """Another run of a loop, a branch or a call, in which the ops of its graphs are computed one by one."""

    def __init__(self, kind: _Kind, machine: _Machine) -> None:
        self._kind: Final = kind
        self._machine: Final = machine
        #: The iteration of a loop that runs, in words.
        self.iteration = ""

    def run(self, op: Op, operands: tuple[Node, ...]) -> None:
        """Compute what `op` does with the operands.  Raises the first fault."""
        if isinstance(op, While):
            self._loop(op, operands)
        elif isinstance(op, If):
            branch = op.true_branch if self._read(operands[0]) else op.false_branch
            self._check(branch.inline(*operands[1:]))
        elif isinstance(op, Case):
            index, count = int(self._read(operands[0])), len(op.branches)
            self._check(op.branches[index if 0 <= index < count else -1].inline(*operands[1:]))
        elif isinstance(op, Call):
            self._check(op.computation.inline(*operands))

    def _loop(self, op: While, operands: tuple[Node, ...]) -> None:
        """Run whole iterations up to the first that makes such a number, and that one op by op."""
        carried, count = operands, 0
        while self._read(*op.cond.inline(*carried)):
            following = op.body.inline(*carried)
            self._compute(following)
            if any(map(self._has_some, following)):
                self.iteration = f"iteration {count:,} of "
                self._check(op.body.inline(*carried))
            carried, count = following, count + 1

    def _check(self, results: tuple[Node, ...]) -> None:
        _run(list(results), [self._kind], self._machine)

    def _compute(self, results: tuple[Node, ...]) -> None:
        left = [each for each in results if each.value is None]
        if left:
            self._machine.run(order_of(left), left, self._machine.device)

    def _read(self, node: Node) -> Any:
        """The value of a scalar."""
        self._compute((node,))
        return self._machine.device.backend.to_host(node.value)[()]

    def _has_some(self, node: Node) -> bool:
        numbers = _numbers(node)
        return numbers is not None and bool(self._kind.is_fault(numbers).any())


def _numbers(node: Node) -> Numbers:
    """The values of floats on the host, None for other types."""
    if node.type.dtype not in FLOAT | COMPLEX:  # type: ignore[union-attr]
        return None
    if node.value is None:
        return np.asarray(node.op.array) if isinstance(node.op, Constant) else None
    assert node.device is not None
    node.exposed = True
    return node.device.backend.to_host(node.value)  # type: ignore[no-any-return]


def _message(op: Op, node: Node, what: str, bad: np.ndarray[Any, Any], operands: tuple[Node, ...]) -> str:
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    count = int(bad.sum())
    others = f", the first of {count}," if count > 1 else ""
    at = f" at index {index}{others}" if index else ""
    # Ops that are not element-wise combine numbers of other indices.
    near = [_numbers(each) for each in operands] if op.is_elementwise else []
    of = [f"{value[index]}" for value in near if value is not None and value.shape == bad.shape]
    made = f" of {' and '.join(of)}" if of else ""
    line = f"; built at {node.source}" if node.source else ""
    return f"{op.lax_name} made {what}{made}{at} in {node.type.short()}{line}"
