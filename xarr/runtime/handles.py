"""Handles on lazy values: how they are made, what keeps them from growing without bound, how they change.

A handle shows a node of the graph, and holds nothing else.  Nothing here knows about NumPy-like methods:
those are `xarr.Array`'s, the class of every handle on an array, which is bound below once so that the
layers under it can return Arrays without importing it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from xarr import backend as backends
from xarr.base.configuration import current as config
from xarr.base.host_arrays import is_weak, scalar_kind
from xarr.base.tracebacks import shorten
from xarr.base.typing import Array
from xarr.errors import TracedValueError, ValueRangeError, XarrError
from xarr.ir.device import Device, join_devices
from xarr.ir.graph import Data, Donated, Leaf, Node, data, data_of
from xarr.ir.types import TensorType
from xarr.runtime import view_tracking
from xarr.runtime.check_flags import read, unread
from xarr.runtime.evaluation import run_one
from xarr.runtime.live_values import moved_value
from xarr.runtime.trace_stack import Trace, innermost, recording

if TYPE_CHECKING:
    import numpy as np


#: Below these no bound of the configuration is looked up, to keep recording cheap.
_UNCHECKED_DEPTH: Final = 256
_UNCHECKED_BYTES: Final = 2**20
ARRAY_API_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


class _Orphans:
    """Computed values that no Array shows any more but unevaluated ops may still need, and their size.

    A value without users leaves at once, as its node goes.  Small values are not counted: the depth of
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
            reference = self._reference(node, self._forget)
            if reference not in self._sizes:
                self._sizes[reference] = size
                self.nbytes += size

    def discard(self, node: Node) -> None:
        """An Array shows the value again."""
        self._forget(self._reference(node))

    def _forget(self, reference: weakref.ref[Node]) -> None:
        # Popped first: between reading nbytes and writing it back no other code may run.
        size = self._sizes.pop(reference, 0)
        self.nbytes -= size


_orphans: Final = _Orphans()


class Handle:
    """A lazy value: it shows a node."""

    __slots__ = ("__weakref__", "_made_in", "_node", "_part")
    _node: Node
    #: Set while a function is being recorded.
    _made_in: Trace | None
    #: For what in NumPy would be a view of another Array, until something is written to it; results of jitted
    #: functions, which are made without `__init__`, have none.
    _part: view_tracking.Part | None
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

    def _show(self, other: Handle, write: view_tracking.Write | None = None) -> None:
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
            view_tracking.warn_of_write(self, part, write)
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

    def _convert(self, dtype: np.dtype[Any]) -> Node:
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


def count_unowned(node: Node) -> Node:
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
        try:
            compute(handle)
        except XarrError as error:
            shorten(error)
            raise


def compute(handle: Handle) -> Node:
    """The node that `handle` shows now, with its value, whatever another thread makes the handle show."""
    node = handle._node
    if node.value is None:
        device = node.device.committed if node.device is not None else backends.default_device()
        run_one(node, device)
    return node


def move(handle: Handle, device: Device) -> Array:
    """The value of `handle`, computed if need be, on another device."""
    if handle._node.traced:
        raise TracedValueError(
            f"a traced function runs on one device, that of its arguments, so that an array in it cannot be moved to "
            f"{device}; move the arguments before the call, or the results after it"
        )
    node = compute(handle)
    assert node.device is not None
    node.exposed = True
    if unread:
        read(node)
    return wrap(data(node.type, moved_value(node.type, node.value, node.device, device), device))


def _refuse_change(handle: Handle, new: Node) -> None:
    """A handle changes only in the function that made it; no argument outlives the call of its function."""
    trace = innermost()
    if trace is not None and getattr(handle, "_made_in", None) is not trace:
        line = f"\nIt was made at {handle._node.source}" if handle._node.source else ""
        raise TracedValueError(
            "an array from outside of a traced function cannot be changed inside: that would happen once, while "
            "the function is recorded, and not when it runs; write y = x + 1 for x += 1, y = x.at[i].set(v) for "
            f"x[i] = v, and return y{line}"
        )
    if trace is None and new.traced:
        raise TracedValueError(
            f"the new value {new.type.short()} depends on an argument of a traced function that has ended; return "
            "it from that function instead of keeping it in an outer variable"
        )


# The one injection point: `xarr.arrays.array` calls bind(Array) when it is imported.
_array_class: type[Handle] = Handle
_new: Final = object.__new__


def bind(array_class: type[Handle]) -> None:
    """Make `array_class` the class of the handles that `wrap` returns."""
    global _array_class
    _array_class = array_class


def array_class() -> type[Handle]:
    """The class of the handles that `wrap` returns."""
    return _array_class


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


def wrap_leaf(
    op: Data,
    type: TensorType,
    value: Any,
    device: Device,
    exposed: bool,
    location: tuple[CodeType, int] | None,
) -> Array:
    """An Array that shows a new leaf with a value, outside of functions that are recorded.

    op: that of values of `type`; location: the line that made it; others as in `data`.
    """
    leaf = _new(Leaf)
    leaf.op = op
    leaf.type = type
    leaf.value = value
    leaf.device = device
    leaf.exposed = exposed
    leaf.handles = 1
    leaf._location = location
    array = _new(_array_class)
    array._node = leaf
    array._part = None
    return array  # type: ignore[return-value]


def show_leaf(array: Handle, value: Any, device: Device, location: tuple[CodeType, int] | None) -> None:
    """Make `array` show a new leaf of its type with a value that nothing else sees, outside of functions."""
    node = array._node
    leaf = _new(Leaf)
    leaf.op = data_of(node.type)
    leaf.type = node.type
    leaf.value = value
    leaf.device = device
    leaf.exposed = False
    leaf.handles = 1
    leaf._location = location
    array._node = leaf
    release(node)


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
        return move(array, committed)
    return wrap(Node(node.op, node.operands, node.type, node._location, committed))


def current_device() -> Device:
    """The device of what a user makes now: of the function that is being recorded, else the default one.

    A recorded function is one program, which runs where its arguments are.
    """
    trace = innermost() if recording else None
    return backends.default_device() if trace is None or trace.device is None else trace.device


def from_host(array: np.ndarray[Any, Any], device: Device) -> Array:
    """An Array of the values of `array` on `device`."""
    return wrap(data(TensorType(array.shape, array.dtype), device.backend.from_host(array), device))
