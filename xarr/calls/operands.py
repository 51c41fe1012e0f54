"""From a NumPy-style call to an explicit one: promotion, then implicit broadcasting spelled out.

Every function of this level prepares its operands with `prepare_operands`.  After that all
operands have one element type and one shape, and `xarr.lax` never has to guess.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.base.at_once.obstacles import Obstacle
from xarr.base.broadcasting import Alignment, Misfit, align_numpy, ambiguous_alternatives, refusal
from xarr.base.configuration import current as config
from xarr.base.frozen_dataclasses import record
from xarr.base.host_arrays import SCALARS, host_array, is_weak as is_weak, scalar_kind
from xarr.base.tracebacks import shorten
from xarr.base.typing import Array
from xarr.dtypes import BOOL, default_of, promote_all, promote_weak, xla_name
from xarr.errors import AmbiguousBroadcastWarning, BroadcastWarning, OuterBroadcastWarning, XarrError
from xarr.explanation.errors import broadcast_error, explain_shapes
from xarr.ir.device import Device
from xarr.ir.graph import Graph, Node
from xarr.ir.ops import Convert
from xarr.ir.source import Source, here, warn_here, written_operation
from xarr.lax.core import ArrayLike, broadcast_node, host_node, scalar_node
from xarr.runtime.device_arrays import from_device_array, lies_on_device
from xarr.runtime.handles import Handle, common_device, count_unowned, weak_kind, wrap
from xarr.runtime.trace_stack import is_alone, recording

DType = np.dtype[Any]


@record
class ImplicitBroadcast:
    """One broadcast that NumPy's rule made: by which function, of which shapes, at which source line."""

    op: str
    alignment: Alignment
    dtypes: tuple[str, ...]
    source: Source | None
    nodes: tuple[Node, ...] = ()


@record
class MatrixProduct:
    """One `@` of operands of these shapes, at which source line."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    source: Source | None


@record
class RecordedCall:
    """One call of a function that runs as a program of its own: what it was recorded as, and its name."""

    name: str
    graph: Graph
    source: Source | None


Event: TypeAlias = ImplicitBroadcast | MatrixProduct | RecordedCall
#: Called with every event while `watching`; empty otherwise.
observers: list[Callable[[Event], None]] = []


@contextmanager
def watching(observer: Callable[[Event], None], all_threads: bool = False) -> Iterator[None]:
    """Call `observer` with every event of this thread in the block, or of all."""
    thread = threading.get_ident()

    def own(event: Event) -> None:
        if (all_threads or threading.get_ident() == thread) and not is_alone.get():
            observer(event)

    obstacle = Obstacle()
    observers.append(own)
    try:
        yield
    finally:
        observers.remove(own)
        del obstacle


_config: Final = config.__dict__
_overrides: Final = config._overrides.get


def are_in_force(state: tuple[object, object] | None) -> bool:
    """Whether these are the settings in force, by identity, and no function is being recorded or watched."""
    return (
        state is not None
        and state[0] is _config["_global"]
        and state[1] is _overrides()
        and not recording
        and not observers
    )


def observe_product(x1: ArrayLike, x2: ArrayLike) -> None:
    """Tell the observers of `x1 @ x2`."""
    arrays = (as_array(x1), as_array(x2))
    dtypes = tuple([xla_name(array.dtype) for array in arrays])
    _tell(MatrixProduct(tuple([array.shape for array in arrays]), dtypes, here()))


def observe_call(name: str, graph: Graph) -> None:
    """Tell the observers of a call of what was recorded as `graph`."""
    _tell(RecordedCall(name, graph, here()))


def _tell(event: Event) -> None:
    for observer in observers:
        observer(event)


def as_array(value: ArrayLike) -> Array:
    """`value` as an Array; Python numbers take the default dtypes, NumPy arrays are copied.

    What is not an Array yet is committed to no device: it goes with the Arrays that it is given beside.  Arrays of
    other libraries on a GPU are copied and committed there.
    """
    if isinstance(value, Handle):
        return value if value._weak is None else wrap(value._node)  # type: ignore[return-value]
    if is_weak(value):
        return wrap(scalar_node(value, default_of(scalar_kind(value))))
    try:
        if lies_on_device(value):
            return from_device_array(value, None)
        return wrap(host_node(host_array(value), None))
    except XarrError as error:
        shorten(error)
        raise


def as_numbers(x: ArrayLike) -> Array:
    """x as an Array, bools as int8: what NumPy does where it has no loop for bools."""
    array = as_array(x)
    return array.astype(np.int8) if array.dtype in BOOL else array


def fresh(array: Array) -> Array:
    """Another handle on the same value, so that writing to the one leaves the other alone."""
    return wrap(array._node)


def common_dtype(*values: ArrayLike) -> DType:
    """The element type that the values are promoted to, by NumPy 2's rules."""
    return promoted_type([dtype_or_kind(value) for value in values])


def promoted_type(operands: Sequence[DType | type[Any]]) -> DType:
    """The element type that arrays of these types, and Python numbers of these kinds, are promoted to."""
    first = operands[0]
    if not isinstance(first, type) and len({*operands}) == 1:
        return first
    strong = [each for each in operands if not isinstance(each, type)]
    weak = sorted([each for each in operands if isinstance(each, type)], key=SCALARS.index)
    return reduce(promote_weak, weak, promote_all(*strong)) if strong else default_of(weak[-1])


def dtype_or_kind(value: ArrayLike) -> DType | type[Any]:
    """The element type of an array, or the kind of a Python number; values of the host are not copied for that."""
    kind = weak_kind(value)
    if kind is not None:
        return kind
    try:
        dtype: DType
        if isinstance(value, Handle):
            dtype = value._node.dtype
        else:
            dtype = (from_device_array(value, None) if lies_on_device(value) else host_array(value)).dtype
        return dtype
    except XarrError as error:
        shorten(error)
        raise


def nodes_of(values: tuple[ArrayLike, ...], dtype: DType | None) -> tuple[Node, ...]:
    """Nodes for the values, converted to `dtype` where it is given."""
    device = common_device(values)
    nodes = [node_of(value, dtype, device) for value in values]
    return tuple(
        [node if dtype is None or node.dtype == dtype else Node(Convert(dtype), (node,)) for node in nodes]
    )


def node_of(value: ArrayLike, dtype: DType | None, device: Device | None) -> Node:
    """The node of a value: a number as `dtype`, where it is given, an array in its own, from the host on `device`."""
    if isinstance(value, Handle):
        return value._node if dtype is None or value._weak is None else value._convert(dtype)
    if is_weak(value):
        return scalar_node(value, default_of(scalar_kind(value)) if dtype is None else dtype)
    if lies_on_device(value):
        return from_device_array(value, None)._node
    return count_unowned(host_node(host_array(value), device))


def promote_operands(name: str, *values: ArrayLike, dtype: DType | None = None) -> tuple[Array, ...]:
    """The values as Arrays of one element type: `dtype`, or the one NumPy 2 promotes them to.

    Raises DTypeError where there is no implicit promotion, ValueRangeError for a Python int that the
    type of the arrays cannot hold, BackendError for arrays of two backends.
    """
    nodes = nodes_of(values, common_dtype(*values) if dtype is None else dtype)
    return tuple([wrap(node) for node in nodes])


def prepare_operands(name: str, *values: ArrayLike, dtype: DType | None = None) -> tuple[Array, ...]:
    """The values as Arrays of one element type and one shape; errors as `promote_operands` and `broadcast_operands`."""
    return broadcast_operands(name, *promote_operands(name, *values, dtype=dtype))


def broadcast_operands(name: str, *arrays: Array) -> tuple[Array, ...]:
    """The arrays in one shape, by NumPy's rule; an explicit broadcast_in_dim for each that changes.

    Raises BroadcastError if the shapes do not fit, or if `config.broadcasting` refuses the broadcast.
    """
    nodes = broadcast_nodes(name, tuple(array._node for array in arrays))
    return tuple(
        array if node is array._node else wrap(node) for node, array in zip(nodes, arrays, strict=True)
    )


def broadcast_nodes(name: str, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Broadcast nodes as `broadcast_operands` does arrays."""
    shapes = [node.shape for node in nodes]
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return nodes
    dtypes = tuple([node.dtype for node in nodes])
    alignment = align(name, tuple(shapes), dtypes)
    observe(name, alignment, dtypes, nodes)
    return tuple(
        broadcast_node(node, alignment.result, dimensions)
        for node, dimensions in zip(nodes, alignment.dimensions, strict=True)
    )


def align_observed(name: str, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[DType, ...]) -> Alignment:
    """Align the shapes as `align` does, and tell the observers."""
    alignment = align(name, shapes, dtypes)
    observe(name, alignment, dtypes)
    return alignment


def align(name: str, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[DType, ...]) -> Alignment:
    """NumPy's alignment of the shapes if it exists and `config.broadcasting` allows it."""
    alignment = align_numpy(*shapes)
    if isinstance(alignment, Misfit):
        op, names = written_operation(name, len(shapes))
        raise broadcast_error(op, shapes, names=names, dtypes=[xla_name(d) for d in dtypes])
    mode = config.broadcasting
    if mode != "numpy":
        _keep_discipline(name, alignment, dtypes, mode)
    return alignment


def broadcasts_silently() -> bool:
    """Whether shapes that differ are broadcast by NumPy's rule without an observer or a warning."""
    return not observers and config.broadcasting == "numpy"


def observe(name: str, alignment: Alignment, dtypes: tuple[DType, ...], nodes: tuple[Node, ...] = ()) -> None:
    """Tell the observers of a broadcast, if it is one that NumPy's rule made."""
    if observers and alignment.is_implicit:
        _tell(ImplicitBroadcast(name, alignment, tuple(map(xla_name, dtypes)), here(), nodes))


def _keep_discipline(name: str, alignment: Alignment, dtypes: tuple[DType, ...], mode: Any) -> None:
    """Refuse, or under "warn" announce, what the mode does not allow."""
    op, names = written_operation(name, len(alignment.operands))
    refused = refusal(alignment, "explicit" if mode == "warn" else mode, names)
    if refused is None:
        return
    shown = [xla_name(dtype) for dtype in dtypes]
    if mode != "warn":
        raise broadcast_error(op, alignment.operands, names, shown, problem=refused)
    text = explain_shapes(*alignment.operands, op=op, names=names, dtypes=shown).text()
    category = (
        OuterBroadcastWarning
        if alignment.is_outer
        else AmbiguousBroadcastWarning
        if ambiguous_alternatives(alignment)
        else BroadcastWarning
    )
    warn_here(text, category)
