"""Loops whose number of steps may depend on values: while, for, and scans.

Functions given here are called once, on arguments without values, to record what they do.  They take and
return pytrees (tuples, lists, dicts, dataclasses), and may use outer arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from xarr import tree
from xarr.base.host_arrays import is_weak, scalar
from xarr.base.progress import check_label
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import INTEGER, PREDICATE
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.device import join_devices
from xarr.ir.graph import Node
from xarr.ir.types import TensorType, Type
from xarr.lax.core import ArrayLike, broadcast_node, flag, integer, operands, scalar_node
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from xarr.lax.elementwise import add, lt, sub
from xarr.lax.integer_ranges import counts
from xarr.lax.tracing import (
    Computation,
    argument_nodes,
    check_arity,
    close,
    device_of_nodes,
    record,
    results_of,
    tuple_of,
)
from xarr.runtime.effects import keep_ordered
from xarr.runtime.handles import weak_kind, wrap
from xarr.tree import LEAF, Structure

Function = Callable[..., Any]
#: `progress=`: a bar that is called so, or by the loop's name if True.
ShowProgress = bool | str


@names_errors
def while_loop(
    cond_fun: Function, body_fun: Function, init_val: Any, *, progress: ShowProgress = False
) -> Any:
    """Apply `body_fun` as long as `cond_fun` holds, starting from `init_val`.

    init_val: pytree of arrays, the carried value; cond_fun: carried value -> bool scalar;
    body_fun: carried value -> carried value of the same structure, shapes and element types.
    progress: count the steps on standard error while the loop runs, under this label.

    Raises ShapeError [C1] for the condition, [C2] for a body that changes the carried type (both are shown).
    Source: XLA's While, with jax.lax's arguments.
    """
    return _while("while_loop", cond_fun, body_fun, init_val, _progress("while_loop", progress))


def _progress(
    name: str, progress: ShowProgress, counter: tuple[int, int] | None = None
) -> ops.Progress | None:
    label = check_label(name, progress, name)
    return None if label is None else ops.Progress(label, counter)


def _while(
    name: str,
    cond_fun: Function,
    body_fun: Function,
    init_val: Any,
    progress: ops.Progress | None,
    own: int | None = None,
) -> Any:
    """The carried value after the loop; `own`: which item of it the caller gave, None if all."""
    leaves, structure = tree.flatten(init_val)
    nodes = argument_nodes(name, leaves)
    types, arguments = tuple(node.type for node in nodes), tuple_of(structure)
    device = device_of_nodes(nodes)
    cond = record(name, "cond_fun", cond_fun, arguments, types, device, effects=True)
    _check_condition(name, cond)
    body = record(name, "body_fun", body_fun, arguments, types, device, effects=True, own=own)
    body = body.with_dtypes([node.dtype for node in nodes]) if body.structure == structure else body
    _check_carry(name, "body_fun", body, structure, types, leaves, own)
    (closed, step), captured = close(cond, body)
    looped = step.graph.derive({}, (*step.graph.results, *step.graph.parameters[len(nodes) :]))
    device = join_devices(cond.device, body.device)
    loop = ops.While(closed.graph, looped, progress)
    results = results_of(loop, (*nodes, *captured), len(nodes), device)
    return tree.unflatten(structure, results)


def _check_condition(name: str, cond: Computation) -> None:
    types = cond.graph.result_types
    if cond.structure != LEAF or types[0] is not TensorType((), PREDICATE):
        got = cond.structure if cond.structure != LEAF else types[0].short()
        raise ShapeError(
            f"{name} [C1]: wanted a bool scalar from cond_fun, got {got}; compare with lt, ne …, and "
            "join several bools with reduce_and or reduce_or"
        )


def _check_carry(
    name: str,
    role: str,
    body: Computation,
    structure: Structure,
    types: Sequence[Type],
    leaves: Sequence[Any],
    own: int | None = None,
) -> None:
    if body.structure != structure:
        wanted, got = structure, body.structure
        if own is not None:
            wanted, got = wanted.children[own], got.children[own]
        raise ShapeError(
            f"{name} [C2]: {role} must return the structure of its argument: "
            f"{tree.difference(wanted, got)}; init_val is {wanted}, the body gives {got}"
        )
    for path, old, new, leaf in zip(structure.paths(), types, body.graph.result_types, leaves, strict=True):
        if old is not new:
            path = path if own is None else path.removeprefix(f"[{own}]")
            where = f"the carried value{path and f' at {path}'}"
            raise ShapeError(
                f"{name} [C2]: {role} must return the types of its argument: {where} is {old.short()} "
                f"in init_val and {new.short()} after the body; {_carry_fix(old, new, leaf)}"
            )


def _carry_fix(old: Type, new: Type, leaf: Any) -> str:
    assert isinstance(old, TensorType) and isinstance(new, TensorType)
    if old.shape != new.shape:
        return f"start from an array of shape {new.shape} (broadcast_in_dim), or reshape the body's result"
    if is_weak(leaf):
        kind = type(leaf).__name__
        return f"the Python {kind} {leaf!r} became {old.dtype}; start from numpy.{new.dtype}({leaf!r})"
    return (
        f"start from convert_element_type(init, numpy.{new.dtype}), or end the body with "
        f"convert_element_type(result, numpy.{old.dtype})"
    )


@names_errors
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Function,
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    progress: ShowProgress = False,
) -> Any:
    """`for i in range(lower, upper): val = body_fun(i, val)`, starting from `init_val`.

    lower, upper: integer scalars of one element type; a Python int takes that of the other, or int64.
    unroll: accepted for jax.lax's sake; it changes nothing.
    progress: show a bar on standard error while the loop runs, under this label.

    Errors as while_loop, and DTypeError for bounds that are no integers.  Source: jax.lax.fori_loop.
    """
    for bound in (lower, upper):
        if weak_kind(bound) not in (None, int):
            raise DTypeError(f"fori_loop: wanted two integer scalars for lower and upper, got {bound!r}")
    start, stop = operands("fori_loop", lower, upper)
    if start.type is not stop.type or start.shape or start.dtype not in INTEGER:
        raise DTypeError(
            "fori_loop: wanted two integer scalars of one element type for lower and upper, got "
            f"{start.tensor_type.short()} and {stop.tensor_type.short()}"
        )
    if not callable(body_fun):
        raise InputError(f"fori_loop: wanted a function for body_fun, got {body_fun!r}")
    check_arity("fori_loop", "body_fun", body_fun, 2)
    shown = _progress("fori_loop", progress, _COUNTER)
    return _count_loop("fori_loop", wrap(start), wrap(stop), body_fun, init_val, shown)


#: Where the carried values of a counted loop have its index and the end.
_COUNTER: Final = (0, 1)


def _count_loop(
    name: str, start: Array, stop: Array, body_fun: Function, init_val: Any, progress: ops.Progress | None
) -> Any:
    """The value that `body_fun(index, value)` leaves after the indices from start to stop."""
    one = scalar(1, start.dtype)

    def cond(carry: tuple[Array, Array, Any]) -> Array:
        return lt(carry[0], carry[1])

    def body(carry: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
        index, end, value = carry
        counts(index._node, start._node, stop._node)
        return add(index, one), end, body_fun(index, value)

    return _while(name, cond, body, (start, stop, init_val), progress, own=2)[2]


# --- scans -----------------------------------------------------------------------------------------


@names_errors
def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    progress: ShowProgress = False,
) -> tuple[Any, Any]:
    """Carry a value along the leading axis of `xs`, and stack what each step gives.

        carry = init
        for x in xs: carry, y = f(carry, x); ys.append(y)
        return carry, stack(ys)

    f: (carry, x) -> (carry, y), with a carry of the structure, shapes and element types of `init`.
    xs: pytree of arrays of shape (length, …), or None, where `length` says how often to step.
    reverse: walk from the last element to the first; ys stand in the order of xs all the same.
    unroll: accepted for jax.lax's sake; it changes nothing.
    progress: show a bar on standard error while the loop runs, under this label.

    Returns the last carry and the ys, each of shape (length, *y.shape).  Raises ShapeError for arrays without
    a leading axis or of different lengths, [C2] for a carry that changes its type, InputError for an f that
    returns no pair.  Source: jax.lax.scan.
    """
    return scan_called("scan", f, init, xs, length, reverse, progress)


def scan_called(
    name: str,
    f: Function,
    init: Any,
    xs: Any,
    length: int | None = None,
    reverse: bool = False,
    progress: ShowProgress = False,
    own: int | None = None,
) -> tuple[Any, Any]:
    """`scan` under the name by which the user called it; `own`: which item of f's result the user's gave."""
    carries, carry_structure = tree.flatten(init)
    slices, structure = tree.flatten(xs)
    carry_nodes = argument_nodes(name, carries)
    nodes = argument_nodes(name, slices)
    count = _length(name, nodes, structure, length)
    types = [*[node.type for node in carry_nodes], *[_element(node) for node in nodes]]
    device = device_of_nodes([*carry_nodes, *nodes])
    step = record(name, "f", f, tuple_of(carry_structure, structure), types, device, effects=True, own=own)
    step = _checked_step(name, step, carry_structure, carry_nodes, carries)
    for result in step.graph.results[len(carries) :]:
        refuse_dynamic(f"a y of {name}", result, "set_dimension_size(y, bound, dimension)")
    stacks = [
        wrap(broadcast_node(scalar_node(0, type.dtype), (count, *type.shape), ()))
        for type in step.graph.result_types[len(carries) :]
        if isinstance(type, TensorType)
    ]
    shown = _progress(name, progress, _COUNTER)
    state = ([wrap(node) for node in carry_nodes], stacks)
    if count:
        arrays = [wrap(node) for node in nodes]
        state = _scan_loop(name, step, state, arrays, count, flag(name, "reverse", reverse), shown)
    return (
        tree.unflatten(carry_structure, state[0]),
        tree.unflatten(step.structure.children[1], state[1]),
    )


State = tuple[list[Any], list[Any]]


def _scan_loop(
    name: str,
    step: Computation,
    state: State,
    xs: Sequence[Array],
    count: int,
    reverse: bool,
    progress: ops.Progress | None,
) -> State:
    """The carry and the stacks after `count` steps."""

    def body(index: Array, state: State) -> State:
        at = sub(scalar(count - 1, np.dtype(np.int64)), index) if reverse else index
        slices = [
            dynamic_index_in_dim(each, at, keepdims=False, allow_negative_indices=False)._node for each in xs
        ]
        carries = [carry._node for carry in state[0]]
        last = _inline(step, (*carries, *slices))
        rows = zip(state[1], last[len(carries) :], strict=True)
        return last[: len(carries)], [
            dynamic_update_index_in_dim(stack, y, at, 0, allow_negative_indices=False) for stack, y in rows
        ]

    start, stop = (wrap(scalar_node(each, np.dtype(np.int64))) for each in (0, count))
    last: State = _count_loop(name, start, stop, body, state, progress)
    return last


def _inline(step: Computation, arguments: Sequence[Node]) -> list[Array]:
    """The results of a computation as operations of the function that is recorded, with its side effects."""
    ordered: list[Node] = []
    results = [wrap(node) for node in step.graph.inline(*arguments, *step.captured, ordered=ordered)]
    keep_ordered(ordered)
    return results


def _length(name: str, nodes: Sequence[Node], structure: Structure, length: int | None) -> int:
    if length is not None:
        length = integer(name, "length", length)
    for path, node in zip(structure.paths(), nodes, strict=True):
        argument = f"xs{path}"
        if not node.shape:
            raise ShapeError(
                f"{name}: wanted arrays with a leading axis for xs, {argument} is {node.tensor_type.short()}"
            )
        refuse_dynamic(f"{argument} of {name}", node, "while_loop up to lax.get_dimension_size(x, 0)")
        if length is not None and node.shape[0] != length:
            raise ShapeError(
                f"{name}: {argument} is {node.tensor_type.short()}, but "
                f"{'the length wanted' if argument == 'xs' else 'the other length'} is {length}; "
                "slice the arrays to one length"
            )
        length = node.shape[0]
    if length is None:
        raise InputError(f"{name}: wanted a length, as there are no xs to take it from")
    if length < 0:
        raise InputError(f"{name}: wanted a length >= 0, got {length}")
    return length


def _element(node: Node) -> TensorType:
    return node.tensor_type.with_shape(node.shape[1:])


def _checked_step(
    name: str, step: Computation, structure: Structure, carries: Sequence[Node], leaves: Sequence[Any]
) -> Computation:
    """`step` with Python scalars in its carry as the carry's element types; its carry must fit."""
    result = step.structure
    if result.container is not tuple or len(result.children) != 2:
        raise InputError(
            f"{name}: f must return a pair (carry, y), got {result}; return (carry, None) without y"
        )
    if result.children[0] == structure:
        dtypes: list[np.dtype[Any] | None] = [node.dtype for node in carries]
        step = step.with_dtypes(dtypes + [None] * result.children[1].count)
    carried = replace(
        step,
        graph=step.graph.derive({}, step.graph.results[: result.children[0].count]),
        structure=result.children[0],
    )
    _check_carry(name, "the carry of f", carried, structure, [node.type for node in carries], leaves)
    return step
