"""Evaluation of nodes: the program for a pending graph, its run, and the errors that come of it.

Programs are kept by the structure of their graphs.  Arrays are `xarr.lazy`'s: here are nodes only.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from xarr.backend import failed_node
from xarr.checked import run_checked
from xarr.compiler.passes.checks import Checks, without_checks
from xarr.compiler.pipeline import lower
from xarr.compiler.programs import Compiled, Programs
from xarr.config import current as config
from xarr.errors import TooLargeError
from xarr.flags import attach_results, inherit, unread
from xarr.ir.device import Device
from xarr.ir.graph import Graph, Node
from xarr.ir.memory_use import out_of_memory
from xarr.ir.ops import Constant
from xarr.live_values import moved_value
from xarr.pending import (
    LONGEST,
    Pending,
    computed_nodes,
    copies_of,
    graph_of,
    key_of_few,
    order_of,
    parts_of,
    structure_of,
)
from xarr.progress import ProgressBar

_programs: Final = Programs()
#: Held while the graph is read or nodes are settled, not while a program runs.
_lock: Final = threading.RLock()


def run(roots: list[Node], device: Device, label: str | None = None) -> None:
    if config.debugging():
        run_checked(roots, device, _run_part)
        return
    with _lock:
        order = order_of(roots)
        parts = [(order, roots)] if len(order) <= LONGEST else parts_of(order, roots)
    if label is None:
        for part, needed in parts:
            _run_part(part, needed, device)
    elif len(parts) == 1:
        with ProgressBar(label, None) as bar:
            _run_part(*parts[0], device, bar)
    else:
        with ProgressBar(label, len(parts)) as bar:
            for part, needed in parts:
                _run_part(part, needed, device)
                bar.step()


def _run_part(order: list[Node], roots: list[Node], device: Device, bar: ProgressBar | None = None) -> None:
    """Compute the `roots`; with a `bar`, by a program made for this run that counts its steps there."""
    with _lock:
        key, leaves, outputs = structure_of(order, roots, device)
        arguments = [buffer_of(leaf, device) for leaf in leaves]
        compiled = _programs.get(key) if bar is None else None
        if compiled is None:
            graph, checks = _lowered((order, leaves, outputs), device)
            if bar is None:
                compiled = Compiled(device.backend.compile(graph), graph, checks)
                _programs.add(key, compiled)
            else:
                compiled = Compiled(device.backend.compile_watched(graph, bar), graph, checks)
    try:
        values = compiled.program(*arguments)
    except MemoryError as error:
        raise _too_large(error, compiled, (order, leaves, outputs), device) from error
    except BaseException as error:
        _say_where(error, compiled, (order, leaves, outputs), device)
        raise
    with _lock:
        if compiled.checks is not None or unread:
            _keep_flags(compiled, (order, leaves, outputs), values, device)
        for node, value, exposed in zip(outputs, values, compiled.exposed, strict=compiled.checks is None):
            if node.value is None:  # another thread may have been faster
                node.settle(value, device, exposed)


def run_few(node: Node, device: Device) -> bool:
    """Compute a node by a program that is there for its `key_of_few`; False where there is none.

    What `run` does, for the common case of eager use.
    """
    few = key_of_few(node, device)
    compiled = None if few is None else _programs.get(few[0])
    if few is None or compiled is None:
        return False
    leaves = few[1]
    try:
        values = compiled.program(*[buffer_of(leaf, device) for leaf in leaves])
    except MemoryError as error:
        raise _too_large(error, compiled, (order_of([node]), leaves, [node]), device) from error
    except BaseException as error:
        _say_where(error, compiled, (order_of([node]), leaves, [node]), device)
        raise
    with _lock:
        if compiled.checks is not None or unread:
            _keep_flags(compiled, (order_of([node]), leaves, [node]), values, device)
        if node.value is None:
            node.settle(values[0], device, compiled.exposed[0])
    return True


def _lowered(pending: Pending, device: Device) -> tuple[Graph, Checks | None]:
    """The pending graph as the backend compiles it, and the checks that became flags."""
    order, leaves, outputs = pending
    if device.backend.is_on_host:
        return lower(graph_of(order, leaves, outputs), device.backend), None
    new = copies_of(order, leaves)
    graph = Graph([new[leaf] for leaf in leaves], [new[node] for node in outputs])
    graph, checks = without_checks(graph, device.backend)
    if checks is not None:
        place = {new[node]: place for place, node in enumerate(computed_nodes(order))}
        places = tuple([place[check.outermost] for check in checks.checks])
        checks = Checks(checks.checks, checks.flags, places)
    return lower(graph, device.backend), checks


def _keep_flags(compiled: Compiled, pending: Pending, values: Sequence[Any], device: Device) -> None:
    """Remember on which flags the values of a run hang, before their nodes let their operands go."""
    order, _, outputs = pending
    if unread:
        inherit(order, outputs)
    if compiled.checks is not None:
        nodes = computed_nodes(order)
        sources = [nodes[place].source for place in compiled.checks.places]
        attach_results(outputs, compiled.checks, sources, values[len(outputs) :], device)


def _say_where(error: BaseException, compiled: Compiled, pending: Pending, device: Device) -> None:
    """Add to an error of a program the line that built the node it comes from."""
    node = failed_node(error, compiled.graph)
    if node is not None:
        here = _counterpart(node, compiled, pending, device)
        error.add_note(f"while computing {node.op.called} -> {node.type}, built at {here.source}")


def _too_large(error: MemoryError, compiled: Compiled, pending: Pending, device: Device) -> TooLargeError:
    """The error for a program that found no memory: it names the array and the line that built it."""
    node = failed_node(error, compiled.graph)
    if node is None and len(pending[2]) > 1:
        return out_of_memory(error, None)
    return out_of_memory(
        error, pending[2][0] if node is None else _counterpart(node, compiled, pending, device)
    )


def _counterpart(
    node: Node,
    compiled: Compiled,
    pending: Pending,
    device: Device,
) -> Node:
    """The node of the `pending` graph for `node` of the one that was compiled, perhaps from other lines."""
    order, leaves, _ = pending
    with _lock:
        if any(node.value is not None for node in set(order).difference(leaves)):
            return node  # Another thread has computed it meanwhile, so that its structure is gone.
        present, _ = _lowered(pending, device)
    return present.nodes[compiled.graph.nodes.index(node)]


def buffer_of(leaf: Node, device: Device) -> Any:
    """The value of a computed node or a constant, on `device`, a committed one.

    It is for a program whose results may share its memory.
    """
    leaf.exposed = True
    value, own = leaf.value, leaf.device
    if value is not None and own is not None and own.committed is device:
        return value
    if isinstance(leaf.op, Constant):
        array = leaf.op.array
        return device.backend.from_host(array) if array.shape else _number(leaf.op, device)
    # A value made of constants alone may have been computed elsewhere: it is not committed.
    assert own is not None
    return moved_value(leaf.type, value, own, device)


@lru_cache(maxsize=4096)
def _number(constant: Constant, device: Device) -> Any:
    """A constant without dimensions, which programs use again and again."""
    return device.backend.from_number(constant.array)
