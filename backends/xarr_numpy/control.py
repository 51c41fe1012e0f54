"""Loops, branches, calls, maps, tuples and the barrier.

In a program on lanes a condition differs from lane to lane: there each branch runs on the lanes that
take it, and a loop on the lanes that still go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.custom_calls import run_custom_call
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.ops.ciphers import cipher_of
from xarr.ir.ops.fusion import written_over
from xarr.ir.types import TensorType
from xarr.progress import ProgressBar
from xarr_numpy import engine
from xarr_numpy.rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]
Places = tuple[int, ...]
#: Places of carried indices, and what checks them.
Checks = tuple[tuple[int, ops.CustomCall], ...]

#: Iterations of a loop in Python that take about as long as compiling it.
MANY: Final = 4096


# --- kernels -----------------------------------------------------------------------------------------


def while_loop(cond: Function, body: Function, *state: Any) -> tuple[Any, ...]:
    """The carried values after the last iteration."""
    while cond(*state)[0]:
        state = body(*state)
    return state


def while_loop_then(loop: ops.While, cond: Function, body: Function, *state: Any) -> tuple[Any, ...]:
    """`while_loop` of which nobody knows how long it is: after many iterations it goes on in machine code."""
    for _ in range(MANY):
        if not cond(*state)[0]:
            return state
        state = body(*state)
    found = engine.loop_kernel_if_any(loop)
    if found is None:
        return while_loop(cond, body, *state)
    kernel, checked = found
    places = range(len(state))
    if checked is None:
        results: tuple[Any, ...] = kernel.call(places, (), None, *state)
        return results
    indices = [initial.array for initial in checked.initial]
    return in_bounds(checked.checks, kernel.call(places, (), None, *state, *indices))[: len(state)]


def in_bounds(checks: Checks, state: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a loop carried, if the indices among it are what the loop's checks let pass, else their error."""
    for place, call in checks:
        declared = tuple(
            (type.dtype, type.shape) for type in call.result_types if isinstance(type, TensorType)
        )
        run_custom_call(call.call_target_name, dict(call.attribute_items), declared, (state[place],))
    return state


def while_loop_shown(progress: ops.Progress, cond: Function, body: Function, *state: Any) -> tuple[Any, ...]:
    """`while_loop` with a progress bar."""
    with ProgressBar(progress.label, progress.total(state)) as bar:
        while cond(*state)[0]:
            state = body(*state)
            bar.step()
    return state


def while_loop_watched(bar: ProgressBar, cond: Function, body: Function, *state: Any) -> tuple[Any, ...]:
    """`while_loop` as one step of a program that shows how far it is."""
    while cond(*state)[0]:
        state = body(*state)
        bar.turn()
    return state


def native_loop(loop: Function, wanted: Places, free: Places, *state: Any) -> tuple[Any, ...]:
    """The carried values after the last iteration of a loop in machine code."""
    return loop(wanted, free, None, *state)


def native_loop_shown(
    progress: ops.Progress, loop: Function, wanted: Places, free: Places, *state: Any
) -> tuple[Any, ...]:
    """`native_loop` with a progress bar."""
    with ProgressBar(progress.label, progress.total(state)) as bar:
        return loop(wanted, free, bar.step, *state)


def native_loop_watched(
    bar: ProgressBar, loop: Function, wanted: Places, free: Places, *state: Any
) -> tuple[Any, ...]:
    """`native_loop` as one step of a program that shows how far it is."""
    return loop(wanted, free, bar.turn, *state)


def owned(state: tuple[Any, ...], places: Sequence[int]) -> tuple[Any, ...]:
    """The carried values with those at `places` copied, so that the body may write into them."""
    return tuple([np.array(value) if place in places else value for place, value in enumerate(state)])


def custom_call(target: Any, attributes: Any, declared: Any, *operands: Any) -> tuple[Any, ...]:
    """The results of a function, or of the one registered under a name."""
    return run_custom_call(target, dict(attributes), declared, operands)


def branch(index: Any, functions: Sequence[Function]) -> Function:
    """Function number `index`, the last one if there is no such number."""
    return functions[int(index)] if 0 <= index < len(functions) else functions[-1]


def map_lanes(function: Function, *arrays: Any) -> Any:
    """The one result of a program on lanes, in the shape of the arrays."""
    return np.broadcast_to(function(*arrays)[0], np.broadcast_shapes(*map(np.shape, arrays)))


def while_lanes(cond: Function, body: Function, *state: Any) -> tuple[Any, ...]:
    """`while_loop` for each lane on its own."""
    shape = np.broadcast_shapes(*map(np.shape, state))
    current = [np.broadcast_to(value, shape).reshape(-1) for value in state]
    final = [value.copy() for value in current]
    lanes = np.arange(current[0].size)
    while lanes.size:
        going = np.broadcast_to(cond(*current)[0], lanes.shape)
        for result, value in zip(final, current, strict=True):
            result[lanes[~going]] = value[~going]
        lanes = lanes[going]
        if lanes.size:
            found = body(*[value[going] for value in current])
            current = [np.broadcast_to(value, lanes.shape) for value in found]
    return tuple(result.reshape(shape) for result in final)


def branch_lanes(
    index: Any, functions: Sequence[Function], dtypes: Sequence[np.dtype[Any]], *operands: Any
) -> tuple[Any, ...]:
    """For each lane the results of function number `index`, of the last one if there is no such number."""
    shape = np.broadcast_shapes(np.shape(index), *map(np.shape, operands))
    outside = (index < 0) | (index >= len(functions))
    chosen = np.broadcast_to(np.where(outside, len(functions) - 1, index), shape)
    results = tuple(np.empty(shape, dtype) for dtype in dtypes)
    for number, function in enumerate(functions):
        lanes = chosen == number
        if lanes.any():
            found = function(*[np.broadcast_to(value, shape)[lanes] for value in operands])
            for result, value in zip(results, found, strict=True):
                result[lanes] = value
    return results


# --- rows --------------------------------------------------------------------------------------------


def _names(emitter: Emitter, operands: Sequence[Node]) -> str:
    return ", ".join(emitter.full(operand) for operand in operands)


def _packed(node: Node, call: str) -> str:
    """The expression of an op's value from one for the tuple of its results."""
    return f"{call}[0]" if isinstance(node.type, TensorType) else call


def _tuple(emitter: Emitter, node: Node) -> str:
    return f"({''.join(f'{emitter.full(operand)}, ' for operand in node.operands)})"


def _get_tuple_element(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.GetTupleElement)
    return f"{emitter.full(node.operands[0])}[{node.op.index}]"


def _barrier(emitter: Emitter, node: Node) -> str:
    return _packed(node, _tuple(emitter, node))


def _call(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.Call)
    cipher = None if emitter.lanes else cipher_of(node)
    if cipher:
        words = ", ".join(emitter.names[operand] for operand in node.operands)
        return f"{cipher}({node.operands[0].shape}, {words})"
    function = emitter.function(node.op.computation, bar=emitter.bar)
    return _packed(node, f"{function}({_names(emitter, node.operands)})")


def _fusion(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.Fusion)
    kernel = engine.kernel(node.op)
    pairs = emitter.reused.get(node)
    if node in emitter.in_place:
        (place,) = (place for place, new in updated_in_place(emitter.graph).items() if new is node)
        pairs = written_over(node, emitter.graph.parameters[place])
    name = emitter.constant(kernel.write_over if pairs else kernel.call, "k")
    emitter.show(name, kernel)
    # What is written over is named first: (result, operand).
    return f"{name}({f'{pairs}, ' if pairs else ''}{_names(emitter, node.operands)})"


def _map(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.Map)
    return f"map_lanes({emitter.function(node.op.computation, lanes=True)}, {_names(emitter, node.operands)})"


def _while(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.While)
    if emitter.lanes and node.operands:
        functions = [emitter.function(graph) for graph in node.op.graphs]
        return _packed(node, f"while_lanes({', '.join([*functions, _names(emitter, node.operands)])})")
    written = updated_in_place(node.op.body)
    functions = [
        emitter.function(node.op.cond),
        emitter.function(node.op.body, in_place=frozenset(written.values())),
    ]
    loop = f"while_loop({', '.join(functions)}"
    if engine.chosen() == "compiled":
        loop = f"while_loop_then({emitter.constant(node.op)}, {', '.join(functions)}"
    if emitter.bar is not None:
        loop = f"while_loop_watched(bar, {', '.join(functions)}"
    elif node.op.progress is not None:
        loop = f"while_loop_shown({emitter.constant(node.op.progress)}, {', '.join(functions)}"
    state = _names(emitter, node.operands)
    if written:
        state = f"*owned({_tuple(emitter, node)}, {(*written,)})"
    return _packed(node, f"{', '.join(filter(None, [loop, state]))})")


def _native_while(emitter: Emitter, node: Node) -> str:
    assert isinstance(node.op, ops.NativeWhile)
    kernel = engine.loop_kernel(node.op)
    name = emitter.constant(kernel.call, "k")
    emitter.show(name, kernel)
    free = tuple(operand for _, operand in emitter.reused.get(node, ()))
    arguments = f"{name}, {_wanted(emitter.graph, node)}, {free}"
    loop = f"native_loop({arguments}"
    if emitter.bar is not None:
        loop = f"native_loop_watched(bar, {arguments}"
    elif node.op.progress is not None:
        loop = f"native_loop_shown({emitter.constant(node.op.progress)}, {arguments}"
    call = f"{loop}, {_names(emitter, node.operands)})"
    return _packed(node, f"in_bounds({emitter.constant(node.op.checks)}, {call})" if node.op.checks else call)


def _wanted(graph: Graph, node: Node) -> tuple[int, ...]:
    """Which results of a loop are used."""
    found = set()
    for user in (*graph.nodes, *graph.results):
        if isinstance(user.op, ops.GetTupleElement) and user.operands == (node,):
            found.add(user.op.index)
        elif node in user.operands or user is node:
            is_own_place = user is node and node not in graph.results
            if not is_own_place:
                return tuple(range(len(node.operands)))
    return tuple(sorted(found))


def updated_in_place(body: Graph) -> dict[int, Node]:
    """Carried values by place that a loop's body only updates, with the op that may write into them.

    Nothing else uses the old value, or the new one before the next iteration, so that no copy is missed.
    """
    uses = Counter(operand for node in body.nodes for operand in node.operands)
    uses.update(body.results)
    found = {}
    for place, (old, new) in enumerate(zip(body.parameters, body.results, strict=True)):
        is_update = isinstance(new.op, ops.DynamicUpdateSlice) and new.operands[0] is old and bool(new.shape)
        if uses[old] == uses[new] == 1 and (is_update or written_over(new, old)):
            found[place] = new
    return found


def _custom_call(emitter: Emitter, node: Node) -> str:
    op = node.op
    assert isinstance(op, ops.CustomCall)
    if emitter.lanes:
        raise BackendError(
            f"backend 'numpy' runs scalar computations on whole arrays and cannot call {op.call_target_name!r} "
            "inside one; call it outside of the combiner, comparator or map"
        )
    types = [each for each in op.result_types if isinstance(each, TensorType)]
    declared = emitter.constant(tuple((type.dtype, type.shape) for type in types))
    attributes = emitter.constant(op.attribute_items)
    operands = "".join(f", {emitter.full(operand)}" for operand in node.operands)
    target = repr(op.call_target_name) if op.function is None else emitter.constant(op.function)
    return _packed(node, f"custom_call({target}, {attributes}, {declared}{operands})")


def _if(emitter: Emitter, node: Node) -> str:
    functions = [emitter.function(graph) for graph in node.op.graphs]
    predicate, operands = emitter.full(node.operands[0]), node.operands[1:]
    if emitter.lanes:
        return _packed(node, _lanes_call(emitter, node, f"np.where({predicate}, 0, 1)", functions))
    return _packed(node, f"({functions[0]} if {predicate} else {functions[1]})({_names(emitter, operands)})")


def _case(emitter: Emitter, node: Node) -> str:
    functions = [emitter.function(graph) for graph in node.op.graphs]
    index, operands = emitter.full(node.operands[0]), node.operands[1:]
    if emitter.lanes:
        return _packed(node, _lanes_call(emitter, node, index, functions))
    return _packed(node, f"branch({index}, ({', '.join(functions)},))({_names(emitter, operands)})")


def _lanes_call(emitter: Emitter, node: Node, index: str, functions: Sequence[str]) -> str:
    types = element_types(node.type)
    dtypes = [emitter.constant(each.dtype) for each in types if isinstance(each, TensorType)]
    operands = "".join(f", {emitter.full(operand)}" for operand in node.operands[1:])
    return (
        f"branch_lanes({index}, ({', '.join(functions)},), ({''.join(f'{d}, ' for d in dtypes)}){operands})"
    )


SCOPE: Final[dict[str, Any]] = {
    f.__name__: f
    for f in (
        *(while_loop, while_loop_then, while_loop_shown, while_loop_watched, owned, custom_call),
        *(native_loop, native_loop_shown, native_loop_watched, in_bounds),
        *(branch, map_lanes, while_lanes, branch_lanes),
    )
}

ROWS: Final[Rows] = {
    ops.Call: _call,
    ops.Case: _case,
    ops.CustomCall: _custom_call,
    ops.GetTupleElement: _get_tuple_element,
    ops.If: _if,
    ops.Fusion: _fusion,
    ops.Map: _map,
    ops.NativeWhile: _native_while,
    ops.OptimizationBarrier: _barrier,
    ops.Tuple: _tuple,
    ops.While: _while,
}
