"""Record a function for one signature, and put the recorded graph into that of another traced function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final

from xarr import tree
from xarr.arrays.array import Array
from xarr.calls.operands import as_array
from xarr.compiler.collection import full_collection_paused
from xarr.errors import DTypeError, EndlessCallError, InputError, TracedValueError
from xarr.ir import ops
from xarr.ir.device import Device, join_devices
from xarr.ir.graph import Graph, Node
from xarr.ir.source import here
from xarr.ir.types import TensorType
from xarr.lax.core import host_node, scalar_node
from xarr.lax.tracing import results_of
from xarr.runtime import handles as lazy, trace_to_graph
from xarr.runtime.effects import keep_ordered
from xarr.runtime.handles import Handle
from xarr.transforms.signature import PARTS, BoundCall, Signature, Static, TracedArgument
from xarr.transforms.traced import Converted, Donation, Traced
from xarr.transforms.weak_numbers import Number, Numbers, compute, define


def record(name: str, function: Callable[..., Any], signature: Signature, donated: Set[int | str]) -> Traced:
    """Call `function` once, on arguments without values, and keep what it does as a graph.

    donated: the positions of the arguments that are given away.  Raises InputError for a result that is no
    array, TracedValueError for an argument that is changed in place, EndlessCallError for a function that calls
    itself, and for functions that call one another, until Python's recursion limit.
    """
    key, deepest = id(function), _running.deepest
    outside, all_outside = _running.depths.get(key, 0), _running.depth
    _running.depths[key] = outside + 1
    _running.depth = all_outside + 1
    if not all_outside:
        _running.deepest_of_all = 0
    _running.deepest_of_all = max(_running.depth, _running.deepest_of_all)
    deepest[key] = max(outside + 1, deepest.get(key, 0))
    try:
        return _record(name, function, signature, donated)
    except RecursionError as error:
        depth, of_all = deepest[key], _running.deepest_of_all
        if (
            not all_outside
            and depth == 1
            and of_all > _MANY_CALLS
            and not isinstance(error, EndlessCallError)
        ):
            raise EndlessCallError(
                f"{name}: {of_all} functions under jit call one another, and Python's recursion limit is reached. "
                f"Apply jit to {name} alone: what it calls is compiled with it, and then takes fewer levels of Python"
            ) from None
        if outside or depth == 1 or isinstance(error, EndlessCallError):
            raise
        raise EndlessCallError(
            f"{name} calls itself endlessly: {depth} nested calls were recorded until Python's recursion limit was "
            "reached. The values of traced arguments cannot end the recursion; let a static argument count "
            "the calls, or write the recursion as lax.while_loop or lax.fori_loop"
        ) from None
    finally:
        _running.depths[key], _running.depth = outside, all_outside
        if not outside:
            del deepest[key], _running.depths[key]


#: Calls inside of one another from which on they, and not what one function does, take up Python's stack.
_MANY_CALLS: Final = 20
#: Operations on scalars up to which a call is copied: what calls that twice, and is itself called twice, grows.
_MOST_COPIED: Final = 200


class _Running(threading.local):
    """The functions that a thread is recording, by identity."""

    def __init__(self) -> None:
        #: How many calls of each are inside of one another now, and were at most.
        self.depths: dict[int, int] = {}
        self.deepest: dict[int, int] = {}
        #: The same of all functions together.
        self.depth = 0
        self.deepest_of_all = 0


_running: Final = _Running()


def _record(name: str, function: Callable[..., Any], signature: Signature, donated: Set[int | str]) -> Traced:
    extra: list[Node] = []
    numbers = Numbers(extra)
    seen: dict[str, Any] = {}

    def body(*handles: Handle) -> list[Handle]:
        arrays = iter(handles)
        leaves = [
            Number.of(f"x{index}", leaf, numbers) if isinstance(leaf, type) else next(arrays)
            for index, leaf in enumerate(signature.types)
        ]
        before = [leaf._node for leaf in leaves]
        args, kwargs = _arguments(signature, leaves)
        outputs, seen["structure"] = tree.flatten(function(*args, **kwargs))
        _refuse_changed(name, signature, leaves, before)
        paths = seen["structure"].paths("the result")
        results = [_result(name, path, leaf) for path, leaf in zip(paths, outputs, strict=True)]
        device = join_devices(signature.device, lazy.common_device(results))
        seen["device"] = device if device is None or device.is_committed else None
        return results

    types = [leaf for leaf in signature.types if not isinstance(leaf, type)]
    owner = signature.device or signature.default_device
    with full_collection_paused():
        graph, captured = trace_to_graph.trace(body, types, signature.device, name, extra, True, owner)
    parameters, used = _drop_unused(graph, numbers)
    results = tuple(dict.fromkeys(graph.results))
    number_of = {node: number for number, node in enumerate(results)}
    result_numbers = tuple([number_of[node] for node in graph.results])
    definitions = numbers.definitions([each.text for each in used])
    return Traced(
        *(signature, graph.derive({}, results, parameters, name), used, definitions, captured),
        *(seen["structure"], result_numbers, seen["device"], _donation(name, signature, donated)),
    )


def _arguments(signature: Signature, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments for the function itself, with these leaves in the traced ones."""
    remaining = iter(leaves)
    values: dict[int | str, Any] = {}
    for argument in signature.arguments:
        if isinstance(argument, Static):
            values[argument.key] = argument.value
        else:
            own = [next(remaining) for _ in argument.types]
            values[argument.key] = tree.unflatten(argument.structure, own)
    positions = sorted(position for position in values if isinstance(position, int))
    return [values[position] for position in positions], {
        k: v for k, v in values.items() if isinstance(k, str)
    }


def _refuse_changed(name: str, signature: Signature, leaves: Sequence[Any], before: Sequence[Node]) -> None:
    """Refuse an argument that was changed in place: called as it is, `function` would change the caller's."""
    for path, leaf, node in zip(_paths(signature), leaves, before, strict=True):
        if leaf._node is not node:
            raise TracedValueError(
                f"{name} changes its argument {path} in place, which under jit would not change the Array of the "
                "caller; write y = x + 1 for x += 1, y = x.at[i].set(v) for x[i] = v, or begin with "
                f"x = x.copy()\nIt was changed at {leaf._node.source}"
            )


def _paths(signature: Signature) -> Iterator[str]:
    for argument in signature.arguments:
        if isinstance(argument, TracedArgument):
            yield from argument.structure.paths(argument.label)


def _result(name: str, path: str, value: Any) -> Handle:
    if isinstance(value, Handle) and not isinstance(value._node.type, TensorType):
        raise InputError(
            f"{name}: {path} is the tuple value {value._node.type.short()}; return a Python tuple"
        )
    try:
        return as_array(value)
    except (InputError, DTypeError) as error:
        raise type(error)(
            f"{name}: {path} is not an array, number, or tuple, list, dict or dataclass of them: {error}"
        ) from None


def _drop_unused(graph: Graph, numbers: Numbers) -> tuple[list[Node], tuple[Converted, ...]]:
    """The parameters but those for numbers that nothing uses, and what those for numbers stand for."""
    if not numbers.nodes:
        return [*graph.parameters], ()
    used = {operand for node in graph.nodes for operand in node.operands} | set(graph.results)
    meaning = {node: Converted(*key) for key, node in numbers.nodes.items()}
    kept = [node for node in graph.parameters if node not in meaning or node in used]
    return kept, tuple([meaning[node] for node in kept if node in meaning])


def _donation(name: str, signature: Signature, donated: Set[int | str]) -> Donation:
    leaves: list[int] = []
    start = 0
    for argument in signature.arguments:
        if isinstance(argument, TracedArgument):
            end = start + argument.structure.count
            leaves += range(start, end) if argument.key in donated else ()
            start = end
    line = here() if leaves else None
    return Donation(tuple(leaves), f"{name}{f', first called at {line}' if line else ''}")


def run_call(name: str, traced: Traced, call: BoundCall) -> Any:
    """The result of a call, of whose arguments some may be arrays in parts."""
    if PARTS not in call.sources:
        return traced.run(call.leaves)
    from xarr.transforms.sharding.split_calls import call_in_parts

    return call_in_parts(name, traced, call.leaves)


def inline_call(traced: Traced, call: BoundCall) -> Any:
    """The result of a call inside of another traced function: a call in its graph.

    What computes little, and with scalars alone, is copied instead, so that a combiner is recognised as one, and
    what has no operands, since a call without them would count as data from outside.
    """
    if PARTS in call.sources:
        got = call.leaves[call.sources.index(PARTS)]
        raise InputError(
            f"wanted whole arrays in a function that is recorded, as by jit, got {got!r}; let it be an argument of the "
            "function, or join the parts by np.asarray before"
        )
    graph, operands = traced.graph, operands_of(traced, call.leaves, call.signature.device)
    if not operands or (_is_scalar(graph) and len(graph.nodes) <= _MOST_COPIED):
        ordered: list[Node] = []
        results = [lazy.wrap(node) for node in graph.inline(*operands, ordered=ordered)]
        keep_ordered(ordered)
    elif graph.results or graph.ordered:
        results = results_of(ops.Call(graph), operands, len(graph.results))
    else:
        results = []
    return tree.unflatten(traced.structure, [results[index] for index in traced.result_numbers])


def operands_of(traced: Traced, leaves: Sequence[Any], device: Device | None) -> list[Node]:
    """The operands of a call of the graph in that of another traced function, with these leaves as arguments.

    device: that of the arguments.
    """
    # What another call of the same signature was made with says nothing about this one.
    device = join_devices(device, traced.device if traced.captured else None)
    values = define(traced.definitions, {f"x{index}": leaf for index, leaf in enumerate(leaves)})
    operands = [_node(leaves[index], device) for index in traced.arrays]
    operands += [_number(compute(each.text, values), each.dtype) for each in traced.numbers]
    operands += traced.captured
    return operands


def _is_scalar(graph: Graph) -> bool:
    types = (*graph.parameter_types, *graph.result_types)
    return all(isinstance(each, TensorType) and not each.shape for each in types)


def _node(leaf: Any, device: Device | None) -> Node:
    node: Node = leaf._node if isinstance(leaf, Handle) else host_node(leaf, device)
    return node


def _number(value: Any, dtype: Any) -> Node:
    if isinstance(value, Number):
        return value._convert(dtype)
    # Numbers of two functions together are an ordinary Array.
    node: Node = value.astype(dtype)._node if isinstance(value, Array) else scalar_node(value, dtype)
    return node
