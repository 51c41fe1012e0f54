"""Handles on lazy values: how they are made, what keeps them from growing without bound, how they change.

A handle shows a node of the graph, or holds a small value of which a node is made when it is asked for.  Nothing here
knows about NumPy-like methods: those are `xarr.Array`'s, the class of every handle on an array, which is bound below
once so that the layers under it can return Arrays without importing it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from sys import getrefcount as references
from types import ModuleType
from typing import Any, ClassVar, Final

import numpy as np

from xarr import backend as backends
from xarr.base.at_once.obstacles import Obstacle
from xarr.base.configuration import current as config
from xarr.base.host_arrays import is_weak, scalar_kind
from xarr.base.tracebacks import shorten
from xarr.base.typing import Array
from xarr.errors import TracedValueError, ValueRangeError, XarrError
from xarr.ir.device import Device, join_devices
from xarr.ir.graph import Donated, Leaf, Node, data, data_of, postorder
from xarr.ir.source import Location
from xarr.ir.types import TensorType
from xarr.runtime import view_tracking
from xarr.runtime.check_flags import read, unread
from xarr.runtime.evaluation import run_one
from xarr.runtime.live_values import constants, moved_value
from xarr.runtime.trace_stack import Trace, innermost, lone_context, recording

_new: Final = object.__new__


def list_python_types(ints: np.dtype[Any]) -> frozenset[np.dtype[Any]]:
    """The element types that Python computes in, and of which NumPy makes arrays of Python's numbers.

    ints: NumPy's type for Python's ints, that of indices: of 32 bits on some machines, such as WebAssembly's.
    """
    types = frozenset(map(np.dtype, (np.float64, np.int64, np.bool_)))
    return types if ints == np.int64 else types - {np.dtype(np.int64)}


PYTHON_TYPES: Final = list_python_types(np.dtype(np.intp))
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


class Share:
    """Counts as one of the Arrays that show `node`, as long as it is there: an Array that shows one holds it."""

    __slots__ = ("node",)
    node: Node

    def __del__(self, add: Callable[[Node], None] = _orphans.add, small: int = _Orphans.SMALL) -> None:
        # Bound here because module globals are gone when the interpreter ends.
        try:
            node = self.node
        except AttributeError:
            return  # its maker was interrupted
        handles = node.handles = node.handles - 1
        if not handles and node.value is not None and node.type.nbytes > small:
            add(node)


def _share_of(node: Node) -> Share:
    share = _new(Share)
    share.node = node
    node.handles += 1
    return share


class Recipe:
    """The way a small value of constants alone was computed, of which a node is made when that is asked for.

    function: gives an Array that is recorded, of these operands, constants by their nodes or recipes; location: the
    line; backend: the name of the device of new arrays then; depth: recipes that lie over one another.
    """

    __slots__ = ("_node", "backend", "depth", "function", "is_wanted", "location", "operands")

    def __init__(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        location: Location | None,
        backend: str,
        depth: int = 1,
    ) -> None:
        self.function, self.operands, self.location, self.depth = function, operands, location, depth
        self.backend = backend
        self._node: Node | None = None
        #: Whether the value has been looked at, or one that was computed of it.
        self.is_wanted = False

    def want(self) -> None:
        """Say that the value is looked at, which would have computed it and what it is made of."""
        if not self.is_wanted:
            self.is_wanted = True
            for each in self.operands:
                if isinstance(each, Recipe):
                    each.want()

    def node(self) -> Node:
        """The node, as it would have been recorded: under the settings of then, and watched by nobody."""
        if self._node is None:
            nodes = [each.node() if type(each) is Recipe else each for each in self.operands]
            self._node = lone_context(self.backend).run(self._record, nodes)
        return self._node

    def _record(self, operands: list[Any]) -> Node:
        obstacle = Obstacle()
        own = [wrap(each) if isinstance(each, Node) else each for each in operands]
        node: Node = self.function(*own)._node
        del obstacle
        known = {*map(id, operands)}
        for each in postorder([node], lambda inner: id(inner) in known):
            if id(each) not in known:
                each._location = self.location or ()
        return node


def recipe_of(handle: Handle) -> Recipe | None:
    """The recipe of what a handle shows, which may be another node by now; None for none."""
    location = getattr(handle, "_location", None)
    if isinstance(location, Recipe) and handle._shown in (None, location._node):
        return location
    return None


def number_of(handle: Handle) -> Any:
    """The small value of a handle, for who wants it as a Python number; None if it has none."""
    value = handle._value
    if value is not None and handle._device is None and (recipe := recipe_of(handle)) is not None:
        recipe.want()
    return value


def is_wanted(handle: Handle) -> bool:
    """Whether the small value of constants alone has been looked at, which has no node with a value then."""
    recipe = recipe_of(handle)
    return recipe is not None and recipe.is_wanted


def content_of(constant: Handle) -> Recipe | Node:
    """Give what an Array made of constants alone shows now, for recipes."""
    recipe = recipe_of(constant)
    return constant._node if recipe is None else recipe


class Handle:
    """A lazy value: it shows a node, or holds a small value of which a node is made when it is asked for.

    * `_shown` - the node; None where only the value is there,
    * `_share` - what counts this handle as one that shows the node,
    * `_value` - a small value on the host of which ops are computed at once: a NumPy array; without dimensions a float,
      int or bool, or for other types a scalar of NumPy's.  It is that of the node, if that is there too.  None where
      the node has none, and of others until it is asked for.  While nobody else refers to the NumPy array, which its
      count of references tells, it may be written to,
    * `_device` - where `_value` lies; None for one that is made of constants alone,
    * `_location` - the line that made a value without a node; the recipe of one that is made of constants alone.
    """

    __slots__ = (
        *("__weakref__", "_device", "_location", "_made_in", "_part"),
        *("_share", "_shown", "_value"),
    )
    _shown: Node | None
    _share: Share | None
    _value: Any
    _device: Device | None
    _location: Location | Recipe | None
    #: Set while a function is being recorded.
    _made_in: Trace | None
    #: For what in NumPy would be a view of another Array, until something is written to it; results of jitted
    #: functions, which are made without `__init__`, have none.
    _part: view_tracking.Part | None
    #: bool, int, float or complex for what stands for a Python number in a traced function, else None.
    _weak: ClassVar[type[Any] | None] = None

    def __init__(self, node: Node) -> None:
        self._share = share = _new(Share)
        share.node = node
        node.handles += 1
        self._shown = node
        self._value = self._part = None
        if node.value is not None:
            _orphans.discard(node)
        if recording:
            self._made_in = innermost()
        if node.depth > _UNCHECKED_DEPTH or _orphans.nbytes > _UNCHECKED_BYTES:
            _bound_growth(self)

    @property
    def _node(self) -> Node:
        """The node, made now if only the value is there."""
        node = self._shown
        return _leaf_of(self) if node is None else node

    @_node.setter
    def _node(self, node: Node) -> None:
        share = _share_of(node)
        # In this order: who sees the node in another thread finds it counted.
        self._share, self._shown, self._value = share, node, None

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
        node = other._node
        if recording or node.traced:
            _refuse_change(self, node)
        self._node = node

    def _convert(self, dtype: np.dtype[Any]) -> Node:
        """Of a weak handle: the value in the element type that it gives way to."""
        raise NotImplementedError

    def _give_away(self, taker: str) -> None:
        """Let the value go to `taker`, after which looking at it is a DonationError."""
        node = self._node
        self._node = Node(Donated(node.type, taker), (), node.type)


def may_be_small(array: Handle) -> bool:
    """Whether an Array holds a small value, or shows a node that may have one."""
    node = array._shown
    return node is None or (type(node.type) is TensorType and node.type.is_plain)


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


def _settle_constant(handle: Handle, node: Node) -> bool:
    """Give the node of constants alone the value that is known of them; whether one is, where it is to be computed."""
    value, recipe = handle._value, recipe_of(handle)
    device = backends.default_device() if node.device is None else node.device.committed
    if value is None or recipe is None or not device.backend.computes_small_ops:
        return False
    array = value if type(value) is np.ndarray else np.asarray(value)
    array.flags.writeable = False
    recipe.want()
    node.settle(array, device, True)
    if handle._shown is node and handle._value is value:
        handle._device, handle._location = node.device, recipe.location
    return True


def compute(handle: Handle) -> Node:
    """The node that `handle` shows now, with its value, whatever another thread makes the handle show."""
    node = handle._shown or handle._node
    if node.value is None and (handle._value is None or not _settle_constant(handle, node)):
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
_array_class: type[Handle] = None  # type: ignore[assignment]


def bind(array_class: type[Handle]) -> None:
    """Make `array_class` the class of the handles that `wrap` returns."""
    global _array_class
    _array_class = array_class


def array_class() -> type[Handle]:
    """The class of the handles that `wrap` returns.

    After nothing but `import xarr.lax` it is not bound yet: `xarr`, which stands above, imports it when asked for it.
    """
    known: type[Handle] = _array_class or sys.modules["xarr"].Array
    return known


def namespace(api_version: str | None) -> ModuleType:
    """The package `xarr`, which defines the class of the Arrays, as their Array API namespace."""
    if api_version not in (None, *ARRAY_API_VERSIONS):
        known = ", ".join(ARRAY_API_VERSIONS)
        raise ValueRangeError(f"wanted an Array API version of {known}, got {api_version!r}")
    return sys.modules[array_class().__module__.partition(".")[0]]


def wrap(node: Node) -> Array:
    """An Array that shows `node`."""
    # Not by calling the class, which makes an array as NumPy's `ndarray` does.
    array = _new(_array_class or array_class())
    # As `Handle.__init__`, whose call takes a while.
    array._share = share = _new(Share)
    share.node = node
    node.handles += 1
    array._shown = node
    array._value = array._part = None
    if node.value is not None:
        _orphans.discard(node)
    if recording:
        array._made_in = innermost()
    if node.depth > _UNCHECKED_DEPTH or _orphans.nbytes > _UNCHECKED_BYTES:
        _bound_growth(array)
    return array  # type: ignore[return-value]


def wrap_leaf(
    type: TensorType,
    value: Any,
    device: Device,
    exposed: bool,
    location: Location | None,
) -> Array:
    """An Array that shows a new value, outside of functions that are recorded; a node is made when it is asked for.

    location: the line that made it; others as in `data`.
    """
    array = _new(_array_class or array_class())
    array._part = None
    if type.is_plain:
        array._shown = None
        array._value = value if type.shape else scalar_value(value)
        array._device, array._location = device, location
    else:
        array._shown = leaf = _filled_leaf(type, value, device, exposed, location)
        array._value = None
        array._share = _share_of(leaf)
    return array  # type: ignore[return-value]


def scalar_value(value: Any) -> Any:
    """Give what a handle holds for an array without dimensions: a Python number, or a scalar of NumPy's."""
    return value.item() if value.dtype in PYTHON_TYPES else value[()]


def _filled_leaf(
    type: TensorType, value: Any, device: Device, exposed: bool, location: Location | None
) -> Leaf:
    leaf = _new(Leaf)
    leaf.op = data_of(type)
    leaf.type = type
    leaf.value = value
    leaf.device = device
    leaf.exposed = exposed
    leaf.handles = 0
    leaf._location = location
    return leaf


def _leaf_of(handle: Handle) -> Node:
    """The node of a handle that holds a value alone: from now on it shows that too."""
    value = own = handle._value
    device, made = handle._device, handle._location
    if isinstance(made, Recipe):
        return _show_recipe(handle, made)
    if type(value) is np.ndarray:
        exposed = references(value) > _OWN_REFERENCES or (value.base is not None and _shares_base(value))
    else:
        value, exposed = np.asarray(value), False
    if device is None or own is None:  # another thread wrote to it meanwhile
        return handle._node
    value.flags.writeable = False
    leaf = _filled_leaf(TensorType(value.shape, value.dtype), value, device, exposed, made)
    share = _share_of(leaf)
    # From here to the last line nothing is called, so that no other thread comes between.
    if handle._shown is None and handle._value is own:
        handle._share = share
        handle._shown = leaf
        return leaf
    return handle._node


def _show_recipe(handle: Handle, recipe: Recipe) -> Node:
    share, value, device = _share_of(recipe.node()), handle._value, backends.default_device()
    if value is not None and share.node.device in (None, device) and device.name == recipe.backend:
        constants[share.node] = device.committed, np.asarray(value)
    if handle._shown is None and handle._location is recipe:
        handle._share = share
        handle._shown = share.node
        return share.node
    return handle._node


def _shares_base(view: np.ndarray[Any, Any]) -> bool:
    """Whether anything else refers to the memory that a view is of; if so it is read-only from now on."""
    base = view.base
    while base is not None:
        is_array = type(base) is np.ndarray
        if references(base) > _REFERENCES_OF_VIEW:
            if is_array:
                base.flags.writeable = False  # so that who gets the view cannot make it writeable
            return True
        base = base.base if is_array else None
    return False


def lend(handle: Handle) -> np.ndarray[Any, Any] | None:
    """The small value of a handle without a node as a read-only array for others; None if it has a node just now.

    What has been seen may have been handed on, by its address too: so a node is made that says it.
    """
    value = handle._value
    if type(value) is not np.ndarray:
        return None if value is None else _read_only_scalar(value)
    node = _leaf_of(handle)
    node.exposed = True
    if node.value is not value:
        return None
    view: np.ndarray[Any, Any] = value.view()
    return view


def _read_only_scalar(value: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(value)
    array.flags.writeable = False
    return array


def _count_own() -> tuple[int, int]:
    """Count as `_leaf_of` and `_shares_base` do what refers to a value that one handle has, and to a view's memory."""
    handle = _new(Handle)
    handle._value = np.zeros(1)[:]
    value = own = handle._value
    base = own.base
    return references(value) if own is value else 0, references(base)


_OWN_REFERENCES, _REFERENCES_OF_VIEW = _count_own()


def show_leaf(array: Handle, value: Any, device: Device, location: Location | None) -> None:
    """Make `array` show a new leaf of its type with a value that nothing else sees, outside of functions."""
    type = array._node.tensor_type
    if type.is_plain:
        array._value = value if type.shape else scalar_value(value)
        array._device, array._location = device, location
        array._shown = array._share = None
    else:
        array._node = _filled_leaf(type, value, device, False, location)


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
