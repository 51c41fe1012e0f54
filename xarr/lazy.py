"""Handles on lazy values: how they are made, when they are computed, how a function is traced.

A handle shows a node of the graph and knows the backend that will compute it.  Nothing here knows
about NumPy-like methods: those are `xarr.array.Array`'s, the class of every handle on an array, which
is bound below once so that the layers under it can return Arrays without importing it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from xarr import backend as backends
from xarr.backend import AbstractBackend, Program
from xarr.compiler.pipeline import compile_graph
from xarr.config import current as config
from xarr.errors import BackendError, TracedValueError, ValueRangeError
from xarr.ir.graph import Graph, Node, data, next_serial, parameter, postorder, substitute
from xarr.ir.ops import Constant, Iota, Tuple
from xarr.ir.types import TensorType, Type

if TYPE_CHECKING:
    import numpy as np

    from xarr.array import Array

#: Below these no bound of the configuration is looked up, to keep recording cheap.
_UNCHECKED_DEPTH: Final = 256
_UNCHECKED_BYTES: Final = 2**20
_PROGRAMS_KEPT: Final = 4096
ARRAY_API_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


class Handle:
    """A lazy value: a node and the backend that computes it.  `None` stands for "any backend"."""

    __slots__ = ("__weakref__", "_backend", "_node")
    _node: Node
    _backend: AbstractBackend | None

    def __init__(self, node: Node, backend: AbstractBackend | None) -> None:
        self._node = node
        self._backend = backend
        node.handles += 1
        if node.depth > _UNCHECKED_DEPTH or _orphans.nbytes > _UNCHECKED_BYTES:
            _bound_growth(self)

    def __del__(self) -> None:
        try:
            node = self._node
        except AttributeError:
            return  # __init__ failed
        node.handles -= 1
        # References: this local, the slot, and getrefcount's own argument; any more are users.
        if node.value is not None and not node.handles and sys.getrefcount(node) > 3:
            _orphans.add(node)


class _Orphans:
    """Computed values that no Array shows any more but unevaluated ops still need, and their size."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._sizes: dict[weakref.ref[Node], int] = {}

    def add(self, node: Node) -> None:
        size = node.type.nbytes if isinstance(node.type, TensorType) else 0
        self._sizes[weakref.ref(node, self._gone)] = size
        self.nbytes += size

    def _gone(self, reference: weakref.ref[Node]) -> None:
        self.nbytes -= self._sizes.pop(reference)


_orphans: Final = _Orphans()


def _bound_growth(handle: Handle) -> None:
    """Evaluate a chain that grew too long, or that keeps too much otherwise dead data alive."""
    node = handle._node
    if node.traced or node.value is not None:
        return
    if node.depth > config.max_depth or (_orphans.nbytes > config.max_pending_bytes and node.operands):
        evaluate(handle)


# The one injection point: `xarr.array` calls bind(Array) when it is imported.
_array_class: type[Handle] = Handle


def bind(array_class: type[Handle]) -> None:
    """Make `array_class` the class of the handles that `wrap` returns."""
    global _array_class
    _array_class = array_class


def namespace(api_version: str | None) -> ModuleType:
    """The package `xarr`, which defines the class of the Arrays, as their Array API namespace."""
    if api_version not in (None, *ARRAY_API_VERSIONS):
        raise ValueRangeError(f"wanted an Array API version of {', '.join(ARRAY_API_VERSIONS)}, got {api_version!r}")
    return sys.modules[_array_class.__module__.partition(".")[0]]


def wrap(node: Node, backend: AbstractBackend | None) -> Array:
    """An Array that shows `node`."""
    return _array_class(node, backend)  # type: ignore[return-value]


def common_backend(handles: Iterable[Handle]) -> AbstractBackend | None:
    """The one backend of the handles, None if none of them has one; BackendError if they differ."""
    found: AbstractBackend | None = None
    for handle in handles:
        if found is None:
            found = handle._backend
        elif handle._backend is not None and handle._backend is not found:
            raise mixed(found, handle._backend)
    return found


def mixed(first: AbstractBackend, second: AbstractBackend) -> BackendError:
    """The error for operands on two backends."""
    return BackendError(
        f"operands live on two backends, {first.name} and {second.name}; move one, e.g. "
        f'x.to("{first.name}")'
    )


def from_host(array: np.ndarray[Any, Any], backend: AbstractBackend) -> Array:
    """An Array of the values of `array` on `backend`."""
    return wrap(data(TensorType(array.shape, array.dtype), backend.from_host(array)), backend)


# --- evaluation ----------------------------------------------------------------------------------


def evaluate(*handles: Handle) -> None:
    """Compute the values of `handles` now, all in one program for each backend.

    Values of other live Arrays that are computed on the way are kept too.  Raises TracedValueError for
    an Array that stands for an argument of a traced function.
    """
    pending: dict[int, list[Handle]] = {}
    for handle in handles:
        if handle._node.value is None:
            if handle._backend is None:
                handle._backend = backends.default()
            pending.setdefault(id(handle._backend), []).append(handle)
    for group in pending.values():
        _run([handle._node for handle in group], group[0]._backend)  # type: ignore[arg-type]


def value_of(handle: Handle) -> Any:
    """The backend's buffer with the value of `handle`, computed if need be."""
    if handle._node.value is None:
        evaluate(handle)
    return handle._node.value


def to_host(handle: Handle) -> np.ndarray[Any, Any]:
    """The value as a read-only NumPy array, computed if need be."""
    value = value_of(handle)
    assert handle._backend is not None
    view = handle._backend.to_host(value).view()
    view.flags.writeable = False
    return view


_programs: dict[Any, Program] = {}


def _is_leaf(node: Node) -> bool:
    return node.value is not None


def _run(roots: list[Node], backend: AbstractBackend) -> None:
    order = _single(roots) or postorder(roots, _is_leaf)
    key, arguments, outputs = _linearise(order, roots, backend)
    program = _programs.get(key)
    if program is None:
        program = compile_graph(_as_graph(order, outputs), backend)
        if len(_programs) >= _PROGRAMS_KEPT:
            del _programs[next(iter(_programs))]
        _programs[key] = program
    try:
        values = program(*arguments)
    except Exception:
        # The cached program knows the source lines of the graph it was compiled from, which may be
        # another one of the same structure.  Failing once more with these lines makes the message right.
        values = compile_graph(_as_graph(order, outputs), backend)(*arguments)
    for node, value in zip(outputs, values, strict=True):
        node.settle(value)


def _single(roots: list[Node]) -> list[Node] | None:
    """The order of a single op over computed values, the common case of eager use."""
    root = roots[0]
    if len(roots) > 1:
        return None
    for operand in root.operands:
        if operand.value is None:
            return None
    return [*dict.fromkeys(root.operands), root]


def _is_scalar_constant(node: Node) -> bool:
    return type(node.op) is Constant and not node.op.type.shape


def _linearise(
    order: list[Node], roots: list[Node], backend: AbstractBackend
) -> tuple[tuple[Any, ...], list[Any], list[Node]]:
    """The structure of a pending graph as a key, its leaves' buffers, and the nodes whose values to keep.

    Scalar constants count as leaves, so that `x * rate` is one program for every rate.
    """
    number: dict[Node, int] = {}
    rows: list[Any] = [backend.name]
    arguments: list[Any] = []
    outputs: list[Node] = []
    for index, node in enumerate(order):
        number[node] = index
        if node.value is not None:
            rows.append(node.type)
            arguments.append(node.value)
            continue
        if _is_scalar_constant(node):
            rows.append(node.type)
            arguments.append(backend.from_host(node.op.array))  # type: ignore[attr-defined]
        else:
            _refuse_parameter(node)
            rows.append((node.op, *[number[operand] for operand in node.operands]))
        if _is_kept(node):
            outputs.append(node)
    outputs += [root for root in dict.fromkeys(roots) if not _is_kept(root)]
    rows.append(tuple([number[node] for node in outputs]))
    return tuple(rows), arguments, outputs


def _is_kept(node: Node) -> bool:
    """Whether somebody may look at the value later: an Array, or an element of a tuple not yet taken out of it."""
    if type(node.type) is TensorType:
        return node.handles > 0
    return type(node.op) is not Tuple


def _refuse_parameter(node: Node) -> None:
    if not node.operands and node.traced:
        place = f"\nIt became an argument at {node.source}" if node.source else ""
        raise TracedValueError(
            "the value of a traced array was asked for (by print, float, bool, int, np.asarray …), but inside a "
            "traced function an argument has no value yet; use lax.cond, lax.select or lax.while_loop for control "
            f"flow that depends on values, or look at the value outside{place}"
        )


def _as_graph(order: list[Node], outputs: list[Node]) -> Graph:
    """The pending nodes as a closed graph whose parameters are the leaves, in the order of the arguments."""
    leaves = [node for node in order if node.value is not None or _is_scalar_constant(node)]
    parameters = {leaf: parameter(leaf.type) for leaf in leaves}
    return Graph(parameters.values(), substitute(outputs, parameters))


# --- tracing ---------------------------------------------------------------------------------------


def trace(
    function: Callable[..., Sequence[Handle]],
    types: Sequence[Type],
    backend: AbstractBackend | None = None,
    name: str = "main",
) -> tuple[Graph, tuple[Node, ...]]:
    """Run `function` on parameters of `types` and return what it recorded as a graph.

    Arrays from outside that the function uses are returned as second element: they became the graph's
    last parameters, one each, and must be passed to it after the others.  Outside arrays that are made
    of constants alone are not captured but computed inside.
    """
    parameters = tuple(parameter(type) for type in types)
    start = next_serial()
    results = [handle._node for handle in function(*[wrap(node, backend) for node in parameters])]
    captured = _captures(results, parameters, start)
    inner = {node: parameter(node.type) for node in captured}
    return Graph((*parameters, *inner.values()), substitute(results, inner), name), captured


def _captures(results: list[Node], parameters: tuple[Node, ...], start: int) -> tuple[Node, ...]:
    """The nodes built before `start` and the data leaves that the nodes built since use."""
    own = frozenset(parameters)
    order = postorder(results, own.__contains__)
    outside: dict[Node, bool] = dict.fromkeys(own, False)
    for node in order:
        is_leaf = not node.operands and not isinstance(node.op, Constant | Iota)
        outside.setdefault(node, is_leaf or any(outside[operand] for operand in node.operands))

    def is_captured(node: Node) -> bool:
        return outside[node] and (node.serial < start or not node.operands)

    return tuple(node for node in postorder(results, lambda n: n in own or is_captured(n)) if is_captured(node))
