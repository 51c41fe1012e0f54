"""Evaluation of nodes: the program for a pending graph, its run, and the errors that come of it.

Programs are kept by the structure of their graphs.  Arrays are `xarr.runtime.handles`'s: here are nodes only.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from xarr.backend import failed_node
from xarr.base.configuration import current as config
from xarr.base.progress import ProgressBar
from xarr.compiler.passes.checks import Checks, without_checks
from xarr.compiler.pipeline import lower
from xarr.compiler.programs import Compiled, Programs
from xarr.ir.device import Device
from xarr.ir.graph import Graph, Node
from xarr.ir.memory_use import out_of_memory
from xarr.ir.ops import Constant
from xarr.runtime.check_flags import attach_results, inherit, unread
from xarr.runtime.live_values import moved_value
from xarr.runtime.nan_checks import run_checked
from xarr.runtime.pending import (
    LONGEST,
    computed_nodes,
    copies_of,
    graph_of,
    key_of_few,
    order_of,
    parts_of,
    structure_of,
)

_programs: Final = Programs()
#: Held while the graph is read or nodes are settled, not while a program runs.
_lock: Final = threading.RLock()


def run(roots: list[Node], device: Device, label: str | None = None) -> None:
    """Compute these nodes on a device, a long graph in parts; with a `label`, under a progress bar of that name.

    With `config.debug` each operation is computed and checked by itself.
    """
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
        compiled = _programs.get(key) if bar is None else None
        if compiled is None:
            if bar is None:
                compiled = _kept(key, order, leaves, outputs, device)
            else:
                graph, checks = _lowered(order, leaves, outputs, device)
                compiled = Compiled(device.backend.compile_watched(graph, bar), graph, device.backend, checks)
    _compute(compiled, order, leaves, outputs, device)


def _kept(
    key: tuple[Any, ...], order: list[Node], leaves: list[Node], outputs: list[Node], device: Device
) -> Compiled:
    """A new program for a pending graph, kept for the next one of this key.  The caller holds the lock."""
    graph, checks = _lowered(order, leaves, outputs, device)
    compiled = Compiled(device.backend.compile(graph), graph, device.backend, checks)
    _programs.add(key, compiled, device.backend.program_nbytes(graph))
    return compiled


def run_one(node: Node, device: Device) -> None:
    """Compute one node, as `run` does, but without its lock where a program is there for its `key_of_few`."""
    few = key_of_few(node, device)
    if few is None:
        run([node], device)
        return
    key, leaves = few
    compiled = _programs.get(key)
    if compiled is None:
        with _lock:
            order = order_of([node])
            # Another thread may have computed a part of it since the key was made.
            if set(leaves).issubset(order):
                compiled = _kept(key, order, leaves, [node], device)
    if compiled is None:
        run([node], device)
    else:
        _compute(compiled, None, leaves, [node], device)


def _compute(
    compiled: Compiled, order: list[Node] | None, leaves: list[Node], outputs: list[Node], device: Device
) -> None:
    """Let a program compute `outputs` from `leaves`; `order` if it is known already."""
    buffers = [
        # What `buffer_of` gives for most leaves, without a call for each.
        leaf.value if leaf.device is device and leaf.value is not None else buffer_of(leaf, device)
        for leaf in leaves
    ]
    values = execute(compiled, buffers, (leaves, outputs, device))
    with _lock:
        if compiled.checks is not None or unread:
            _keep_flags(compiled, order_of(outputs) if order is None else order, outputs, values, device)
        exposed = compiled.exposed_results
        for number, node in enumerate(outputs):
            if node.value is None:  # another thread may have been faster
                node.settle(values[number], device, exposed[number])


#: What a kept program computes this time: from which leaves, which nodes, where.
Pending = tuple[list[Node], list[Node], Device]


def execute(compiled: Compiled, buffers: Sequence[Any], pending: Pending | None = None) -> Sequence[Any]:
    """The results of a program for these buffers: all programs that the frontend runs are called here.

    But for those that `transforms.python_replay` writes, which call the program themselves, and `explain`.
    pending: what is computed, if the program is kept for other graphs of the structure too.
    """
    try:
        return compiled.program(*buffers)
    except BaseException as error:
        explain(error, compiled, pending)
        raise


def _lowered(
    order: list[Node], leaves: list[Node], outputs: list[Node], device: Device
) -> tuple[Graph, Checks | None]:
    """The pending graph as the backend compiles it, and the checks that became flags."""
    if device.backend.is_on_host:
        return lower(graph_of(order, leaves, outputs), device.backend), None
    new = copies_of(order, leaves)
    graph = Graph([new[leaf] for leaf in leaves], [new[node] for node in outputs])
    graph, checks = without_checks(graph, device.backend)
    if checks is not None:
        index = {new[node]: number for number, node in enumerate(computed_nodes(order))}
        indices = tuple([index[check.outermost] for check in checks.checks])
        checks = Checks(checks.checks, checks.flags, indices)
    return lower(graph, device.backend), checks


def _keep_flags(
    compiled: Compiled, order: list[Node], outputs: list[Node], values: Sequence[Any], device: Device
) -> None:
    """Remember on which flags the values of a run hang, before their nodes let their operands go."""
    if unread:
        inherit(order, outputs)
    if compiled.checks is not None:
        nodes = computed_nodes(order)
        sources = [nodes[index].source for index in compiled.checks.indices]
        attach_results(outputs, compiled.checks, sources, values[len(outputs) :], device)


def explain(error: BaseException, compiled: Compiled, pending: Pending | None = None) -> None:
    """Add to an error of a program the line that built the operation it comes from.

    Raises TooLargeError for a MemoryError: it names the array, and what would need less.
    """
    node = failed_node(error, compiled.graph)
    if node is not None and pending is not None:
        node = _counterpart(node, compiled, pending)
    if isinstance(error, MemoryError):
        results = compiled.graph.results if pending is None else pending[1]
        raise out_of_memory(error, node or (results[0] if len(results) == 1 else None)) from error
    if node is not None:
        error.add_note(f"while computing {node.op.called} -> {node.type}, built at {node.source}")


def _counterpart(node: Node, compiled: Compiled, pending: Pending) -> Node:
    """The node of the `pending` graph for `node` of the one that was compiled, perhaps from other lines."""
    leaves, outputs, device = pending
    with _lock:
        order = order_of(outputs)
        if any(each.value is not None for each in set(order).difference(leaves)):
            return node  # Another thread has computed it meanwhile, so that its structure is gone.
        present, _ = _lowered(order, leaves, outputs, device)
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
