"""Evaluation of nodes: the program for a pending graph, its run, and the errors that come of it.

Programs are kept by the structure of their graphs.  Arrays are `xarr.runtime.handles`'s: here are nodes only.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from xarr.backend import failed_node
from xarr.base.configuration import current as config
from xarr.base.progress import ProgressBar, ProgressCallback, show_progress
from xarr.base.tracebacks import keep_text
from xarr.compiler.pipeline import lower, make_program, prepare
from xarr.compiler.programs import CompiledGraph, Programs
from xarr.errors import XarrError
from xarr.ir.device import Device
from xarr.ir.graph import Node, data
from xarr.ir.memory_use import out_of_memory
from xarr.ir.ops import Constant
from xarr.ir.types import Type
from xarr.runtime.check_flags import Flags, attach, attach_results, inherit, unread
from xarr.runtime.live_values import moved_value
from xarr.runtime.nan_checks import run_checked
from xarr.runtime.pending import (
    LONGEST,
    graph_of,
    key_of_few,
    nodes_of,
    order_of,
    parts_of,
    structure_of,
)

#: Called with the nodes that are about to be computed, as long as their operands are there; empty but for `explain`.
watchers: Final[list[Callable[[Sequence[Node]], None]]] = []
_programs: Final = Programs()
#: Held while the graph is read or nodes are settled, not while a program runs.
_lock: Final = threading.RLock()


def run(roots: list[Node], device: Device, label: str | None = None) -> None:
    """Compute these nodes on a device, a long graph in parts; with a `label`, under a progress bar of that name.

    With `config.debug` each operation is computed and checked by itself.
    """
    if config.debugging():
        run_checked(roots, device, _run_part, _lock)
        return
    with _lock:
        order = order_of(roots)
        parts = [(order, roots)] if len(order) <= LONGEST else parts_of(order, roots)
    if label is None:
        for part, needed in parts:
            _run_part(part, needed, device)
    elif len(parts) == 1:
        with ProgressBar(label) as bar:
            _run_part(*parts[0], device, bar)
    else:
        with show_progress(label, len(parts)) as counter:
            for part, needed in parts:
                _run_part(part, needed, device)
                counter.step()


def _run_part(
    order: list[Node], roots: list[Node], device: Device, progress: ProgressCallback | None = None
) -> None:
    """Compute the `roots`, and tell `progress` how far that is."""
    with _lock:
        key, leaves, outputs = structure_of(order, roots, device)
        compiled = _programs.get(key) or _make_and_keep(key, order, leaves, outputs, device)
        if progress is not None:
            compiled = compiled.with_progress(progress)
    _compute(compiled, order, leaves, outputs, device)


def _make_and_keep(
    key: tuple[Any, ...], order: list[Node], leaves: list[Node], outputs: list[Node], device: Device
) -> CompiledGraph:
    """A new program for a pending graph, kept for the next one of this key.  The caller holds the lock."""
    compiled = make_program(graph_of(order, leaves, outputs), device.backend)
    _programs.add(key, compiled, device.backend.program_nbytes(compiled.graph))
    return compiled


def run_one(node: Node, device: Device) -> None:
    """Compute one node, as `run` does, but without its lock where its `key_of_few` has a program.

    A number alone needs no program.
    """
    is_number = type(node.op) is Constant and not node.shape and device.backend.computes_small_ops
    if is_number and not watchers and not config.debugging():
        node.settle(_number(node.op, device), device)
        return
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
                compiled = _make_and_keep(key, order, leaves, [node], device)
    if compiled is None:
        run([node], device)
    else:
        _compute(compiled, None, leaves, [node], device)


def _compute(
    compiled: CompiledGraph, order: list[Node] | None, leaves: list[Node], outputs: list[Node], device: Device
) -> None:
    """Let a program compute `outputs` from `leaves`; `order` if it is known already."""
    for watcher in tuple(watchers):
        watcher(outputs)
    buffers = [
        # What `buffer_of` gives for most leaves, without a call for each.
        leaf.value if leaf.device is device and leaf.value is not None else buffer_of(leaf, device)
        for leaf in leaves
    ]
    values = execute(compiled, buffers, (leaves, outputs, device))
    with _lock:
        if compiled.checks is not None or unread:
            order = order_of(outputs) if order is None else order
            _keep_flags(compiled, order, leaves, outputs, values, device)
        exposed = compiled.exposed_results
        for number, node in enumerate(outputs):
            if node.value is None:  # another thread may have been faster
                node.settle(values[number], device, exposed[number])


#: What a kept program computes this time: from which leaves, which nodes, where.
Pending = tuple[list[Node], list[Node], Device]


def execute(compiled: CompiledGraph, buffers: Sequence[Any], pending: Pending | None = None) -> Sequence[Any]:
    """The results of a program for these buffers: all programs that the frontend runs are called here.

    But for those that `transforms.python_replay` writes, which call the program themselves, and `explain`.
    pending: what is computed, if the program is kept for other graphs of the structure too.
    """
    try:
        return compiled.program(*buffers)
    except BaseException as error:
        explain(error, compiled, pending)
        raise


def _keep_flags(
    compiled: CompiledGraph,
    order: list[Node],
    leaves: list[Node],
    outputs: list[Node],
    values: Sequence[Any],
    device: Device,
) -> None:
    """Remember on which flags the values of a run hang, before their nodes let their operands go."""
    if unread:
        inherit(order, outputs)
    if compiled.checks is not None:
        nodes = nodes_of(leaves, outputs)
        sources = [nodes[index].source for index in compiled.checks.indices]
        count = len(outputs)
        attach_results(compiled.checks, range(count), outputs, values[count:], device, sources)


def results_of(
    compiled: CompiledGraph,
    types: Sequence[Type],
    numbers: Sequence[int],
    values: Sequence[Any],
    device: Device,
    flags: Flags = (),
) -> list[Node]:
    """Leaves for results of a program, by their numbers, from `values`, which it gave on `device`.

    types: those of all results; flags: those that its arguments hang on, whose checks came before its own.
    """
    exposed, counts = compiled.exposed_results, Counter(numbers)
    nodes = [data(types[k], values[k], device, exposed[k] or counts[k] > 1) for k in numbers]
    attach(nodes, flags)
    if compiled.checks is not None:
        attach_results(compiled.checks, numbers, nodes, values[len(types) :], device)
    return nodes


def explain(error: BaseException, compiled: CompiledGraph, pending: Pending | None = None) -> None:
    """Add to an error of a program the line that built the operation it comes from, and the function called there.

    Raises TooLargeError for a MemoryError: it names the array, and what would need less.
    """
    node = failed_node(error, compiled.graph)
    if node is not None and pending is not None:
        node = _counterpart(node, compiled, pending)
    if isinstance(error, MemoryError):
        results = compiled.graph.results if pending is None else pending[1]
        raise out_of_memory(error, node or (results[0] if len(results) == 1 else None)) from error
    if node is not None:
        source = node.source
        if isinstance(error, XarrError) and source is not None and source.function:
            error.name_function(source.function)
            keep_text(error)
        error.add_note(f"while computing {node.op.called} -> {node.type}, built at {source}")


def _counterpart(node: Node, compiled: CompiledGraph, pending: Pending) -> Node:
    """The node of the `pending` graph for `node` of the one that was compiled, perhaps from other lines."""
    leaves, outputs, device = pending
    with _lock:
        order = order_of(outputs)
        if any(each.value is not None for each in set(order).difference(leaves)):
            return node  # Another thread has computed it meanwhile, so that its structure is gone.
        graph, _ = prepare(graph_of(order, leaves, outputs), device.backend)
        present = lower(graph, device.backend)
    return present.nodes[compiled.graph.nodes.index(node)]


def buffer_of(leaf: Node, device: Device) -> Any:
    """The value of a computed node or a constant, on `device`, a committed one.

    It is for a program whose results may share its memory.
    """
    leaf.exposed = True
    value, own = leaf.value, leaf.device
    if value is not None and own is not None and own.committed is device:
        return value
    op = leaf.op
    if isinstance(op, Constant):
        return device.backend.from_host(op.array) if op.type.shape else _number(op, device)
    # A value made of constants alone may have been computed elsewhere: it is not committed.
    assert own is not None
    return moved_value(leaf.type, value, own, device)


@lru_cache(maxsize=4096)
def _number(constant: Constant, device: Device) -> Any:
    """A constant without dimensions, which programs use again and again."""
    return device.backend.from_number(constant.array)
