"""Control flow that depends on values: branches, calls, maps, and the barrier.  Loops have their own file.

Functions given here are called once, on arguments without values, to record what they do.  They take and
return pytrees, and may use outer arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from xarr import tree
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import BOOL, COMPLEX, INTEGER
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.device import join_devices
from xarr.ir.graph import Graph, Node
from xarr.lax.core import ArrayLike, items, operands
from xarr.lax.elementwise import bitwise_and, clamp, convert_element_type, ge, lt, ne, select
from xarr.lax.tracing import (
    Computation,
    argument_nodes,
    close,
    device_of_nodes,
    record,
    record_scalar,
    results_of,
    tuple_of,
)
from xarr.runtime.handles import wrap
from xarr.tree import LEAF

Function = Callable[..., Any]


# --- branches --------------------------------------------------------------------------------------


#: Stands for an `operand` that was not given, which may be None.
_NO_OPERAND: Final = object()


@names_errors
def cond(
    pred: ArrayLike, true_fun: Function, false_fun: Function, *operands: Any, operand: Any = _NO_OPERAND
) -> Any:
    """`true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`; only one of them runs.

    pred: bool scalar, or a real number that counts as true unless it is 0.
    true_fun, false_fun: give the same structure, shapes and element types.
    operand: the only operand, by name.

    Raises ShapeError [C1] for a predicate that is not a scalar, DTypeError [C1] for a complex one, ShapeError
    [C3] for branches that differ (both results are shown).  Source: XLA's Conditional, with jax.lax's
    arguments.
    """
    return _cond("cond", pred, (true_fun, false_fun), _with_operand("cond", operands, operand))


def _cond(name: str, pred: ArrayLike, functions: Sequence[Function], arguments: tuple[Any, ...]) -> Any:
    predicate = _predicate(name, pred)
    roles = tuple(zip(("true_fun", "false_fun"), functions, strict=True))
    return _branches(name, roles, arguments, predicate, lambda graphs: ops.If(*graphs))


def _predicate(name: str, pred: ArrayLike) -> Node:
    (node,) = operands(name, pred)
    if node.shape:
        raise ShapeError(
            f"{name} [C1]: wanted a scalar predicate, got {node.tensor_type.short()}; reduce_and or "
            "reduce_or makes one of it, select chooses element by element"
        )
    if node.dtype in COMPLEX:
        raise DTypeError(
            f"{name} [C1]: wanted a bool or a real number, got {node.tensor_type.short()}; compare it"
        )
    return node if node.dtype in BOOL else ne(wrap(node), 0)._node


def _with_operand(name: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _NO_OPERAND:
        return operands
    if operands:
        raise InputError(f"{name}: wanted operands by position or one by name, got both")
    return (operand,)


@names_errors
def switch(index: ArrayLike, branches: Sequence[Function], *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """`branches[index](*operands)`, with `index` moved to the nearest branch if it is out of range.

    index: integer scalar; operand: the only operand, by name.

    Raises ShapeError or DTypeError [C1] for another index, ShapeError [C3] without
    branches or for branches that differ.  Source: jax.lax.switch.
    """
    if not isinstance(branches, Iterable):
        raise InputError(f"switch: wanted a sequence of functions for branches, got {branches!r}")
    functions = tuple(branches)
    node = _branch_index("switch", index)
    last = min(max(len(functions) - 1, 0), int(np.iinfo(node.dtype).max))
    clamped = clamp(0, wrap(node), last)
    return _switch("switch", clamped, functions, _with_operand("switch", operands, operand))


def _branch_index(name: str, index: ArrayLike) -> Node:
    (node,) = operands(name, index)
    if node.shape:
        raise ShapeError(f"{name} [C1]: wanted a scalar index, got {node.tensor_type.short()}")
    if node.dtype not in INTEGER:
        raise DTypeError(f"{name} [C1]: wanted an integer index, got {node.tensor_type.short()}")
    return node


def _switch(
    name: str,
    index: Array,
    functions: Sequence[Function],
    arguments: Sequence[Any],
) -> Any:
    if not functions:
        raise ShapeError(f"{name} [C3]: wanted at least one branch, got none")
    selector = convert_element_type(index, np.int32)._node
    roles = [(f"branch {number}", function) for number, function in enumerate(functions)]
    return _branches(name, roles, arguments, selector, lambda graphs: ops.Case(graphs))


@names_errors
def conditional(selector: ArrayLike, *arguments: Any) -> Any:
    """XLA's Conditional in its two forms.

    conditional(pred, true_operand, true_computation, false_operand, false_computation): a computation of its
    own operand, by a predicate as in `cond`.

    conditional(branch_index, branch_computations, branch_operands): one of N, each of its own operand; an
    int32 index out of range takes the last one.

    Raises InputError for another number of arguments, and the errors of `cond` and `switch`.
    Source: XLA's Conditional.
    """
    if len(arguments) == 4:
        true_operand, true_computation, false_operand, false_computation = arguments
        functions = [_only(true_computation, 0), _only(false_computation, 1)]
        return _cond("conditional", selector, functions, (true_operand, false_operand))
    names = ("branch_computations", "branch_operands")
    sequences = [items("conditional", *pair) for pair in zip(names, arguments, strict=False)]
    if len(arguments) != 2 or len(sequences[0]) != len(sequences[1]):
        raise InputError(
            "conditional: wanted (pred, true_operand, true_computation, false_operand, false_computation) or "
            f"(branch_index, branch_computations, branch_operands) of one length, got {len(arguments)} more"
        )
    computations, its_operands = sequences
    node = _branch_index("conditional", selector)
    functions = [_only(function, number) for number, function in enumerate(computations)]
    index = _outside_to_last(wrap(node), len(functions))
    return _switch("conditional", index, functions, its_operands)


def _outside_to_last(index: Array, count: int) -> Array:
    """An index that is out of range as the last one, where the conversion to int32 would lose that it is."""
    if index.dtype.itemsize < 4 or index.dtype == np.int32:
        return index
    inside = bitwise_and(ge(index, 0), lt(index, count))
    return select(inside, index, max(count - 1, 0))


def _only(function: Any, number: int) -> Function:
    """`function` of argument `number` alone."""
    if not callable(function):
        raise InputError(f"conditional: wanted a function for computation {number}, got {function!r}")

    def apply(*operands: Any) -> Any:
        return function(operands[number])

    return apply


def _branches(
    name: str,
    roles: Sequence[tuple[str, Function]],
    arguments: Sequence[Any],
    selector: Node,
    op: Callable[[tuple[Graph, ...]], ops.If | ops.Case],
) -> Any:
    leaves, structure = tree.flatten(tuple(arguments))
    nodes = argument_nodes(name, leaves)
    types, device = [node.type for node in nodes], device_of_nodes(nodes)
    computations = [
        record(name, role, function, structure, types, device, effects=True) for role, function in roles
    ]
    for each in computations:
        device = join_devices(device, each.device)
    agreed = _reconcile(name, [role for role, _ in roles], computations)
    closed, captured = close(*agreed)
    count = computations[0].structure.count
    results = results_of(
        op(tuple([each.graph for each in closed])), (selector, *nodes, *captured), count, device
    )
    return tree.unflatten(computations[0].structure, results)


def _reconcile(name: str, roles: Sequence[str], computations: Sequence[Computation]) -> list[Computation]:
    """The branches, with Python scalars in the element type that another has there; [C3] if they differ."""
    first = computations[0]
    for role, each in zip(roles, computations, strict=True):
        if each.structure != first.structure:
            raise ShapeError(
                f"{name} [C3]: {roles[0]} and {role} must give the same structure: "
                f"{tree.difference(first.structure, each.structure)}"
            )
    dtypes = [_strong_dtype(computations, number) for number in range(first.structure.count)]
    agreed = [each.with_dtypes(dtypes) for each in computations]
    for role, each in zip(roles, agreed, strict=True):
        pairs = zip(
            first.structure.paths(), agreed[0].graph.result_types, each.graph.result_types, strict=True
        )
        for path, wanted, got in pairs:
            if wanted is not got:
                raise ShapeError(
                    f"{name} [C3]: the branches must give the same types, but {roles[0]} gives "
                    f"{wanted.short()} and {role} gives {got.short()}{path and f' at {path}'}; convert_element_type or "
                    "broadcast_in_dim one"
                )
    return agreed


def _strong_dtype(computations: Sequence[Computation], number: int) -> np.dtype[Any] | None:
    return next(
        (each.graph.results[number].dtype for each in computations if each.weak[number] is None), None
    )


# --- calls, maps, barrier ---------------------------------------------------------------------------


@names_errors
def call(function: Function, *operands: Any) -> Any:
    """`function(*operands)`, kept as one computation of its own in the graph.  Source: XLA's Call."""
    leaves, structure = tree.flatten(operands)
    nodes = argument_nodes("call", leaves)
    types, device = [node.type for node in nodes], device_of_nodes(nodes)
    computation = record("call", "function", function, structure, types, device, effects=True)
    results = results_of(
        ops.Call(computation.graph),
        (*nodes, *computation.captured),
        computation.structure.count,
        computation.device,
    )
    return tree.unflatten(computation.structure, results)


@names_errors
def map_elements(computation: Function, *operands: ArrayLike) -> Array:
    """`computation`, from N scalars to one, applied to the elements of N arrays of one shape.

    The computation may use nothing but its arguments.  Raises ShapeError [C1] for arrays of several shapes,
    [C3] for the computation.  Source: XLA's Map.
    """
    nodes = argument_nodes("map_elements", operands)
    if not nodes:
        raise ShapeError("map_elements [C1]: wanted at least one array, got none")
    dtypes = [node.dtype for node in nodes]
    recorded = record_scalar("map_elements", "C3", computation, tuple_of(*[LEAF] * len(nodes)), dtypes)
    if recorded.structure != LEAF:
        raise ShapeError(
            f"map_elements [C3]: wanted one scalar from the computation, got {recorded.structure}"
        )
    op = ops.Map(tuple(range(len(nodes[0].shape))), recorded.graph)
    return wrap(Node(op, nodes))


@names_errors
def stop_gradient(x: Any) -> Any:
    """`x` itself: there are no derivatives that it could stop.  Source: jax.lax.stop_gradient."""
    return x


@names_errors
def optimization_barrier(operand: Any) -> Any:
    """A pytree of the same values, which no rewriting looks through: work on its two sides is never merged.

    operand: of arrays, and of tokens, as `create_token` makes one.
    Source: XLA's OptimizationBarrier.
    """
    leaves, structure = tree.flatten(operand)
    nodes = argument_nodes("optimization_barrier", leaves)
    if not nodes:
        return operand
    return tree.unflatten(structure, results_of(ops.OptimizationBarrier(), nodes, len(nodes)))
