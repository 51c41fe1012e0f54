"""Handles on lazy values: how they are made, when they are computed, how a function is traced.

A handle shows a node of the graph, and holds nothing else.  Nothing here knows about NumPy-like methods:
those are `xarr.Array`'s, the class of every handle on an array, which is bound below once so that the
layers under it can return Arrays without importing it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from xarr import backend as backends, tree
from xarr.base.configuration import current as config
from xarr.base.host import is_weak, scalar_kind
from xarr.base.records import record
from xarr.base.tracebacks import shorten
from xarr.errors import (
    InputError,
    TracedValueError,
    ValueRangeError,
    XarrError,
)
from xarr.ir.device import Device, join_devices
from xarr.ir.graph import Donated, Graph, Node, data, next_serial, parameter, postorder
from xarr.ir.ops import Constant, Iota
from xarr.ir.types import TensorType, Type
from xarr.runtime import parts
from xarr.runtime.check_flags import read, unread
from xarr.runtime.evaluation import run, run_one
from xarr.runtime.live_values import live_part, moved_value
from xarr.runtime.pending import ended

if TYPE_CHECKING:
    import numpy as np

    from xarr.arrays.array import Array

Tree = TypeVar("Tree")
#: Below these no bound of the configuration is looked up, to keep recording cheap.
_UNCHECKED_DEPTH: Final = 256
_UNCHECKED_BYTES: Final = 2**20
ARRAY_API_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


class _Orphans:
    """Computed values that no Array shows any more but unevaluated ops may still need, and their size.

    A value that nobody needs leaves at once, as its node goes.  Small values are not counted: the depth of
    a chain bounds them.
    """

    SMALL: Final = 1024
    # Not by the module's name for it: that is gone when the interpreter ends, and handles end after it.
    _reference = staticmethod(weakref.ref)

    def __init__(self) -> None:
        self.nbytes = 0
        self._sizes: dict[weakref.ref[Node], int] = {}

    def add(self, node: Node) -> None:
        size = node.type.nbytes
        if size > self.SMALL:
            reference = self._reference(node, self._gone)
            if reference not in self._sizes:
                self._sizes[reference] = size
                self.nbytes += size

    def discard(self, node: Node) -> None:
        """An Array shows the value again."""
        self._gone(self._reference(node))

    def _gone(self, reference: weakref.ref[Node]) -> None:
        # Popped first: between reading nbytes and writing it back no other code may run.
        size = self._sizes.pop(reference, 0)
        self.nbytes -= size


_orphans: Final = _Orphans()


class Handle:
    """A lazy value: it shows a node."""

    __slots__ = ("__weakref__", "_made_in", "_node", "_part")
    _node: Node
    #: Set while a function is being recorded.
    _made_in: _Trace | None
    #: For what in NumPy would be a view of another Array, until something is written to it; results of jitted
    #: functions, which are made without `__init__`, have none.
    _part: parts.Part | None
    #: bool, int, float or complex for what stands for a Python number in a traced function, else None.
    _weak: ClassVar[type[Any] | None] = None

    def __init__(self, node: Node) -> None:
        self._node = node
        self._part = None
        node.handles += 1
        if node.value is not None:
            _orphans.discard(node)
        if recording:
            self._made_in = innermost()
        if node.depth > _UNCHECKED_DEPTH or _orphans.nbytes > _UNCHECKED_BYTES:
            _bound_growth(self)

    def __del__(self, add: Callable[[Node], None] = _orphans.add, small: int = _Orphans.SMALL) -> None:
        # Bound here because module globals are gone when the interpreter ends.
        try:
            node = self._node
        except AttributeError:
            return  # __init__ failed
        handles = node.handles = node.handles - 1
        if not handles and node.type.nbytes > small and node.value is not None:
            add(node)

    def _show(self, other: Handle, write: parts.Write | None = None) -> None:
        """Make this handle show what another one shows, because the user has written to it; it stays on its device.

        write: what is written, for the PartUpdateWarning that it causes if this is a part of another Array.
        Raises as `_rebind`, and BackendError for a value that is committed to another device.
        """
        device = self._node.device
        if other._node.device is not device and device is not None and device.is_committed:
            join_devices(device, other._node.device)
            if not other._node.traced:
                other = commit(other, device)  # type: ignore[arg-type]
        part = getattr(self, "_part", None)
        if part is not None:
            parts.warn_of_write(self, part, write)
        self._rebind(other)
        if part is not None:
            self._part = None  # an array of its own from now on

    def _rebind(self, other: Handle) -> None:
        """Make this handle show what another one shows.

        Raises TracedValueError in a traced function for a handle that is older than its call: that would change
        once, when the function is recorded, and might leave an argument without a value in it.
        """
        _refuse_change(self, other._node)
        node = self._node
        other._node.handles += 1
        node.handles -= 1
        self._node = other._node
        if node.value is not None and not node.handles:
            _orphans.add(node)

    def _to(self, dtype: np.dtype[Any]) -> Node:
        """Of a weak handle: the value in the element type that it gives way to."""
        raise NotImplementedError

    def _give_away(self, taker: str) -> None:
        """Let the value go to `taker`, after which looking at it is a DonationError."""
        node = self._node
        self._node = Node(Donated(node.type, taker), (), node.type)
        self._node.handles = 1
        node.handles -= 1
        if node.value is not None and not node.handles:
            _orphans.add(node)


def weak_kind(value: object) -> type[Any] | None:
    """The kind of a Python number, or of what stands for one in a traced function; None for all else."""
    if isinstance(value, Handle):
        return value._weak
    return scalar_kind(value) if is_weak(value) else None


def unowned(node: Node) -> Node:
    """Count a leaf that no Array shows, only the op it is made for, as data that this op keeps alive."""
    if node.value is not None:
        _orphans.add(node)
    return node


def release(node: Node) -> None:
    """Count a call that has read the value of a node among its readers no more."""
    handles = node.handles = node.handles - 1
    if not handles and node.value is not None:
        _orphans.add(node)


def _bound_growth(handle: Handle) -> None:
    """Evaluate a chain that grew too long, or that keeps too much otherwise dead data alive."""
    node = handle._node
    if node.traced or node.value is not None:
        return
    if node.depth > config.max_depth or (_orphans.nbytes > config.max_pending_bytes and node.operands):
        evaluate(handle)


# The one injection point: `xarr.arrays.array` calls bind(Array) when it is imported.
_array_class: type[Handle] = Handle
_new: Final = object.__new__


def bind(array_class: type[Handle]) -> None:
    """Make `array_class` the class of the handles that `wrap` returns."""
    global _array_class
    _array_class = array_class


def namespace(api_version: str | None) -> ModuleType:
    """The package `xarr`, which defines the class of the Arrays, as their Array API namespace."""
    if api_version not in (None, *ARRAY_API_VERSIONS):
        known = ", ".join(ARRAY_API_VERSIONS)
        raise ValueRangeError(f"wanted an Array API version of {known}, got {api_version!r}")
    return sys.modules[_array_class.__module__.partition(".")[0]]


def wrap(node: Node) -> Array:
    """An Array that shows `node`."""
    # Not by calling the class, which makes an array as NumPy's `ndarray` does.
    array = _new(_array_class)
    Handle.__init__(array, node)
    return array  # type: ignore[return-value]


def common_device(values: Iterable[object]) -> Device | None:
    """The device of the Arrays among `values`, None for any; BackendError if two are committed to different ones."""
    device: Device | None = None
    for value in values:
        if isinstance(value, Handle):
            device = join_devices(device, value._node.device)
    return device


def commit(array: Array, device: Device | None = None) -> Array:
    """`array`; one that is not committed on `device`, by default `current_device`, for a user who made it there."""
    node = array._node
    if node.device is not None and node.device.is_committed:
        return array
    committed = current_device() if device is None else device.committed
    if node.value is not None:
        assert node.device is not None
        return moved(array, committed)
    return wrap(Node(node.op, node.operands, node.type, node._place, committed))


def current_device() -> Device:
    """The device of what a user makes now: of the function that is being recorded, else the default one.

    A recorded function is one program, which runs where its arguments are.
    """
    trace = innermost() if recording else None
    return backends.default_device() if trace is None or trace.device is None else trace.device


def from_host(array: np.ndarray[Any, Any], device: Device) -> Array:
    """An Array of the values of `array` on `device`."""
    return wrap(data(TensorType(array.shape, array.dtype), device.backend.from_host(array), device))


# --- evaluation ----------------------------------------------------------------------------------


def device_of(node: Node) -> Device:
    """The device that computes `node`, a committed one: its own, else the default one of now."""
    return backends.default_device() if node.device is None else node.device.committed


def evaluate(*handles: Any, progress: bool | str = False) -> None:
    """Compute the values of `handles`, Arrays and pytrees of them, now, all in one program for each backend.

    progress: show on standard error how far the program is, under this label; the values are the same.

    Values of other live Arrays that are computed on the way are kept too.  Raises TracedValueError for
    an Array that stands for an argument of a traced function, InputError for what is no Array or another kind of
    `progress`.
    """
    if type(progress) not in (bool, str):
        raise InputError(f"evaluate: wanted True, False or a label for progress, got {progress!r}")
    try:
        _evaluate(handles, progress)
    except XarrError as error:
        shorten(error)
        raise


def _evaluate(handles: tuple[object, ...], progress: bool | str) -> None:
    if progress is False and len(handles) == 1 and isinstance(handles[0], Handle):
        _computed(handles[0])
        return
    label = "evaluate" if progress is True else progress or None
    pending: dict[Device, list[Node]] = {}
    for handle in tree.leaves(handles):
        if not isinstance(handle, Handle):
            raise InputError(f"evaluate wants Arrays, and pytrees of them, got {type(handle).__name__}")
        if handle._node.value is None:
            pending.setdefault(device_of(handle._node), []).append(handle._node)
    for device, nodes in pending.items():
        run(nodes, device, label)


def read_checks(*arrays: Array) -> None:
    """Raise what checks would have raised that the values of `arrays`, computed now if need be, hang on.

    Where checks raise when they run, this is `evaluate`.
    """
    evaluate(*arrays)
    for array in arrays:
        if unread:
            read(array._node)


def block_until_ready(x: Tree) -> Tree:
    """`x`, a pytree, once the Arrays in it have been computed; other leaves are left alone.

    Errors as `evaluate`.  Source: jax.block_until_ready.
    """
    evaluate(*[leaf for leaf in tree.leaves(x) if isinstance(leaf, Handle)])
    return x


def _computed(handle: Handle) -> Node:
    """The node that `handle` shows now, with its value, whatever another thread makes the handle show."""
    node = handle._node
    if node.value is None:
        device = node.device.committed if node.device is not None else backends.default_device()
        if config.debugging():
            run([node], device)
        else:
            run_one(node, device)
    return node


def to_host(handle: Handle) -> np.ndarray[Any, Any]:
    """The value, of a dynamic Array its live part, as a read-only NumPy array, computed if need be."""
    try:
        node = _computed(handle)
        # Before the value is read: a call in another thread that was given the Array may write over it else.
        node.exposed = True
        value = node.value
        if value is None:
            return to_host(handle)  # that call was faster: the Array is gone
    except XarrError as error:
        shorten(error)
        raise
    assert node.device is not None
    if unread:
        read(node)
    if type(node.type) is TensorType and node.type.dynamic:
        return live_part(node.type, value, node.device)
    view: np.ndarray[Any, Any] = node.device.backend.to_host(value).view()
    view.flags.writeable = False
    return view


def moved(handle: Handle, device: Device) -> Array:
    """The value of `handle`, computed if need be, on another device."""
    node = _computed(handle)
    assert node.device is not None
    node.exposed = True
    if unread:
        read(node)
    return wrap(data(node.type, moved_value(node.type, node.value, node.device, device), device))


# --- tracing ---------------------------------------------------------------------------------------


@record(eq=False)
class _Trace:
    """A function that is being recorded, what stands for its arguments, and parameters made meanwhile.

    effects: for the first side effect, the parameter for what it follows, and after that the token of each; None if
    whoever records the function cannot have any.  device: where it runs, None for the default device.
    """

    parameters: tuple[Node, ...]
    extra: list[Node]
    effects: list[Node] | None = None
    device: Device | None = None


#: The functions that are being recorded, the innermost last.
_traces: Final[ContextVar[tuple[_Trace, ...]]] = ContextVar("traces", default=())
#: Those of all threads: while there is none, an Array need not look up where it is made.
recording: Final[list[_Trace]] = []


def is_tracing() -> bool:
    """Whether this thread or task is recording a function."""
    return bool(_traces.get())


def innermost() -> _Trace | None:
    """The function that this thread or task is recording, the innermost of them."""
    traces = _traces.get()
    return traces[-1] if traces else None


@contextmanager
def _tracing(trace: _Trace) -> Iterator[None]:
    token = _traces.set((*_traces.get(), trace))
    recording.append(trace)
    try:
        yield
    finally:
        recording.remove(trace)
        _traces.reset(token)


def _refuse_change(handle: Handle, new: Node) -> None:
    """A handle changes only in the function that made it; no argument outlives the call of its function."""
    trace = innermost()
    if trace is not None and getattr(handle, "_made_in", None) is not trace:
        place = f"\nIt was made at {handle._node.source}" if handle._node.source else ""
        raise TracedValueError(
            "an array from outside of a traced function cannot be changed inside: that would happen once, while "
            "the function is recorded, and not when it runs; write y = x + 1 for x += 1, y = x.at[i].set(v) for "
            f"x[i] = v, and return y{place}"
        )
    if trace is None and new.traced:
        raise TracedValueError(
            f"the new value {new.type.short()} depends on an argument of a traced function that has ended; return "
            "it from that function instead of keeping it in an outer variable"
        )


def _refuse_foreign(name: str, captured: Sequence[Node]) -> None:
    """Arguments of functions that have ended have no value and never will."""
    traced = [node for node in captured if node.traced]
    if not traced:
        return
    known = {
        node
        for trace in _traces.get()
        for node in (*trace.parameters, *trace.extra, *(trace.effects or ())[:1])
    }
    for node in postorder(traced, known.__contains__):
        if node not in known and node.traced and not node.operands:
            place = f"\nIt became an argument at {node.source}" if node.source else ""
            raise TracedValueError(
                f"{name} uses an argument {node.type} of a traced function that has ended, kept in an outer "
                f"variable; return it from that function instead{place}"
            )


def trace(
    function: Callable[..., Sequence[Handle]],
    types: Sequence[Type],
    device: Device | None = None,
    name: str = "main",
    extra: list[Node] | None = None,
    effects: list[Node] | None = None,
    owner: Device | None = None,
) -> tuple[Graph, tuple[Node, ...]]:
    """Run `function` on parameters of `types`, which live on `device`, and return what it recorded as a graph.

    owner: where the graph will run; if it is not known yet, on `device`, or with the function around that is recorded.

    The function may append more parameters to `extra`; the graph has them after those of `types`.
    effects: an empty list; if the function has side effects, it is filled, the graph has the token that they
    follow as one more parameter after those, and the token of the last one as its last result.

    Arrays from outside that the function uses are returned as second element: they became the graph's
    last parameters, one each, and must be passed to it after the others.  Outside arrays that are made
    of constants alone are not captured but computed inside.
    """
    parameters = tuple(parameter(type, device) for type in types)
    start = next_serial()
    extra = [] if extra is None else extra
    if owner is None and device is not None and device.is_committed:
        owner = device
    if owner is None and (around := innermost()) is not None:
        owner = around.device
    with _tracing(_Trace(parameters, extra, effects, owner)):
        handles = function(*[wrap(node) for node in parameters])
    results = [handle._node for handle in handles]
    parameters = (*parameters, *extra)
    if effects:
        parameters, results = (*parameters, effects[0]), [*results, effects[-1]]
    ended.update(parameters)
    captured = _captures(results, parameters, start)
    _refuse_foreign(name, captured)
    for node in captured:
        node.exposed = True
    inner = {node: parameter(node.type) for node in captured}
    new = {**dict(zip(parameters, parameters, strict=True)), **inner}
    for node in postorder(results, new.__contains__):
        if node not in new:
            # A copy even if nothing below changed: an Array outside may show the node and be evaluated.
            new[node] = node.rebuilt(tuple(new[operand] for operand in node.operands))
    return Graph((*parameters, *inner.values()), [new[node] for node in results], name), captured


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

    order = postorder(results, lambda node: node in own or is_captured(node))
    return tuple(node for node in order if is_captured(node))
