"""Python functions on pytrees as graphs: the only module in which lax calls a user's function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, Final

import numpy as np

from xarr import tree
from xarr.base import frozen_dataclasses
from xarr.base.host_arrays import host_array, is_weak, scalar, scalar_kind
from xarr.base.tracebacks import shorten
from xarr.base.typing import Array
from xarr.dtypes import default_of
from xarr.errors import DTypeError, InputError, ShapeError, XarrError, pluralize
from xarr.ir.computations import combiner
from xarr.ir.device import Device, join_devices
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.ops import Constant, GetTupleElement
from xarr.ir.types import TensorType, Type
from xarr.lax.core import BINARY, gives_way, host_node, operands
from xarr.runtime.device_arrays import from_device_array, lies_on_device
from xarr.runtime.effects import add_ordered
from xarr.runtime.handles import Handle, wrap
from xarr.runtime.small_ops import compute_results
from xarr.runtime.trace_to_graph import trace
from xarr.tree import LEAF, Structure


@frozen_dataclasses.record
class Computation:
    """A function as a graph.

    * `captured` - values from outside that the function uses, the last parameters of the graph,
    * `structure` - that of the result, whose leaves are the graph's results,
    * `weak` - for each leaf the Python scalar that the function returned there, or None,
    * `device` - where the results live, None for any.
    """

    graph: Graph
    captured: tuple[Node, ...]
    structure: Structure
    weak: tuple[Any, ...]
    device: Device | None

    @property
    def arity(self) -> int:
        """The number of parameters without those for captured values."""
        return len(self.graph.parameters) - len(self.captured)

    def with_dtypes(self, dtypes: Sequence[np.dtype[Any] | None]) -> Computation:
        """Python scalars among the results as these element types, where those can hold their kind."""
        results = [
            Node(Constant.of(scalar(value, dtype)))
            if value is not None and dtype is not None and gives_way(scalar_kind(value), dtype)
            else node
            for node, value, dtype in zip(self.graph.results, self.weak, dtypes, strict=True)
        ]
        return replace(self, graph=self.graph.derive({}, results))


def record(
    name: str,
    role: str,
    function: Callable[..., Any],
    arguments: Structure,
    types: Sequence[Type],
    device: Device | None,
    effects: bool = False,
    own: int | None = None,
) -> Computation:
    """Call `function` once, on leaves of these types in a tuple structure, and record what it does.

    `name` and `role` are the lax function and its argument, for messages, and `own` the item of the result that the
    argument gave, None if all; `effects` says that the function may have side effects.  Raises InputError for what
    cannot be called, InputError or DTypeError for a leaf of the result that cannot become an array.
    """
    if not callable(function):
        raise InputError(f"{name}: wanted a function for {role}, got {function!r}")
    check_arity(name, role, function, len(arguments.children))
    seen: dict[str, Any] = {}

    def flat(*handles: Handle) -> list[Handle]:
        leaves, seen["structure"] = tree.flatten(function(*tree.unflatten(arguments, handles)))
        seen["weak"] = tuple(leaf if is_weak(leaf) else None for leaf in leaves)
        paths = result_paths(role, seen["structure"], own)
        results = [result_of(name, *pair, device) for pair in zip(paths, leaves, strict=True)]
        seen["device"] = join_devices(device, device_of_nodes([result._node for result in results]))
        return results

    try:
        graph, captured = trace(flat, types, device, getattr(function, "__name__", role), effects=effects)
    except XarrError as error:
        shorten(error)
        raise
    return Computation(graph, captured, **seen)


def check_arity(name: str, role: str, function: Callable[..., Any], count: int) -> None:
    """InputError unless `function` can be called with `count` positional arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins do not say what they take
        return
    try:
        signature.bind(*range(count))
    except TypeError as error:
        called = getattr(function, "__name__", repr(function))
        raise InputError(
            f"{name}: {role} is called with {pluralize(count, 'argument')}, but {called} takes "
            f"{signature}: {error}"
        ) from None


def record_scalar(
    op: str,
    label: str,
    function: Callable[..., Any],
    arguments: Structure,
    dtypes: Sequence[np.dtype[Any]],
    role: str = "computation",
) -> Computation:
    """`record` for a computation on scalars, which may use nothing but its arguments.

    What a function of the library records is kept; a user's may record something else each time.
    Raises ShapeError with `label`, naming the line, if it uses an outer array.
    """
    known = _known_op(function)
    if known is not None and arguments == _PAIR and dtypes[0] == dtypes[1]:
        return _by_op(known, dtypes[0])
    types = [TensorType((), dtype) for dtype in dtypes]
    recorded = record(op, role, function, arguments, types, None)
    if recorded.captured:
        node = recorded.captured[0]
        location = f"\nIt was built at {node.source}" if node.source else ""
        raise ShapeError(
            f"{op} [{label}]: a computation may use its arguments only, but this one uses the outer value "
            f"{node.type.short()}; pass it as one more operand, or apply it to the result{location}"
        )
    return recorded


def _known_op(function: Any) -> Op | None:
    """The operation that a function of the library applies to two scalars, if it does nothing else."""
    return BINARY.get(function) if isinstance(function, FunctionType) else None


def _by_op(op: Op, dtype: np.dtype[Any]) -> Computation:
    return Computation(combiner(op, dtype), (), LEAF, (None,), None)


def result_paths(role: str, structure: Structure, own: int | None = None) -> Iterator[str]:
    """Each leaf of what the argument `role` returned, in messages; `own`: see `record`."""
    result = f"the result of {role}"
    for path in structure.paths(result):
        yield path if own is None else f"{result}{path.removeprefix(f'{result}[{own}]')}"


def result_of(name: str, path: str, value: Any, device: Device | None) -> Handle:
    """A leaf of what a function returned as an Array; InputError or DTypeError for what cannot become one."""
    if isinstance(value, Handle):
        _refuse_tuple(name, value._node)
        return value
    try:
        return _constant(value, device)
    except (InputError, DTypeError) as error:
        raise type(error)(
            f"{name}: {path} is not an array, number, or tuple, list, dict or dataclass of them: {error}"
        ) from None


def _constant(value: Any, device: Device | None) -> Handle:
    if is_weak(value):
        return wrap(Node(Constant.of(scalar(value, default_of(scalar_kind(value))))))
    if lies_on_device(value):
        return from_device_array(value, None)
    return wrap(host_node(host_array(value), device))


def argument_nodes(name: str, leaves: Sequence[Any]) -> tuple[Node, ...]:
    """A node for each leaf of a function's arguments.  Each has its own element type."""
    nodes = []
    for leaf in leaves:
        (node,) = operands(name, leaf)
        _refuse_tuple(name, node)
        nodes.append(node)
    return tuple(nodes)


def device_of_nodes(nodes: Sequence[Node]) -> Device | None:
    """The device on which nodes meet, None for any; BackendError if two are committed to different ones."""
    device: Device | None = None
    for node in nodes:
        device = join_devices(device, node.device)
    return device


def _refuse_tuple(name: str, node: Node) -> None:
    if not isinstance(node.type, TensorType):
        raise InputError(
            f"{name}: wanted arrays in Python tuples, lists or dicts, got the tuple value "
            f"{node.type.short()}; read its elements with get_tuple_element"
        )


def close(*computations: Computation) -> tuple[tuple[Computation, ...], tuple[Node, ...]]:
    """The computations with one common list of captured values after their own parameters, and that list."""
    captured = tuple(dict.fromkeys([node for each in computations for node in each.captured]))
    return tuple([_close(each, captured) for each in computations]), captured


def _close(computation: Computation, captured: tuple[Node, ...]) -> Computation:
    graph, arity = computation.graph, computation.arity
    own = dict(zip(computation.captured, graph.parameters[arity:], strict=True))
    extra = [own.get(node) or parameter(node.type) for node in captured]
    closed = graph.derive({}, parameters=(*graph.parameters[:arity], *extra))
    return replace(computation, graph=closed, captured=captured)


def results_of(op: Op, nodes: Sequence[Node], count: int, device: Device | None = None) -> list[Array]:
    """The first `count` results of `op` over `nodes`, on `device` where these do not decide it."""
    if op.is_ordered:
        node = Node(op, tuple(nodes), device=device)
        handles = [wrap(part) for part in add_ordered(node)]
        return handles[:count]
    at_once = None if device is not None else compute_results(op, tuple(nodes), count)
    if at_once is not None:
        return at_once
    node = Node(op, tuple(nodes), device=device)
    if isinstance(node.type, TensorType):
        return [wrap(node)][:count]
    return [wrap(Node(GetTupleElement(index), (node,))) for index in range(count)]


def tuple_of(*structures: Structure) -> Structure:
    """The structure of a tuple of values of these structures."""
    return Structure(tuple, tuple(range(len(structures))), structures)


_PAIR: Final = tuple_of(LEAF, LEAF)
