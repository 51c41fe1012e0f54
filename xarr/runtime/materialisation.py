"""Values of Arrays: computed now, and read on the host."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from xarr import backend as backends, tree
from xarr.base.progress import check_label
from xarr.base.tracebacks import shorten
from xarr.base.typing import Array
from xarr.errors import InputError, XarrError
from xarr.ir.device import Device
from xarr.ir.graph import Node, postorder
from xarr.ir.types import TensorType
from xarr.runtime.check_flags import read, unread
from xarr.runtime.evaluation import run
from xarr.runtime.handles import Handle, Recipe, compute, content_of, lend, recipe_of
from xarr.runtime.live_values import live_part
from xarr.runtime.pending import StandIn

Tree = TypeVar("Tree")


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
    try:
        _evaluate(handles, None if progress is False else check_label("evaluate", progress, "evaluate"))
    except XarrError as error:
        shorten(error)
        raise


def _evaluate(handles: tuple[object, ...], label: str | None) -> None:
    if label is None and len(handles) == 1 and isinstance(handles[0], Handle):
        if not (_is_there(handles[0]) or _own_if_constant(handles[0])):
            compute(handles[0])
        return
    pending: dict[Device, list[Node]] = {}
    for handle in tree.leaves(handles):
        if not isinstance(handle, Handle):
            raise InputError(f"evaluate wants Arrays, and pytrees of them, got {type(handle).__name__}")
        if not _own_if_constant(handle) and handle._node.value is None:
            pending.setdefault(device_of(handle._node), []).append(handle._node)
    for device, nodes in pending.items():
        run(nodes, device, label)


def own_constant(handle: Handle) -> bool:
    """Let an Array hold the small value of constants alone as its own, without a node; False if none may be."""
    device = backends.default_device()
    if not device.backend.computes_small_ops:
        return False
    content = content_of(handle)
    handle._location = content.location if isinstance(content, Recipe) else content._location or None
    handle._value = np.array(handle._value) if type(handle._value) is np.ndarray else handle._value
    handle._device = device.uncommitted
    handle._shown = handle._share = None
    return True


def _own_if_constant(handle: Handle) -> bool:
    """Let an Array without a node hold the small value of constants alone as its own; False for any other."""
    recipe = None if handle._value is None or handle._shown is not None else recipe_of(handle)
    if recipe is None or not own_constant(handle):
        return False
    recipe.want()
    return True


def read_checks(*arrays: Array) -> None:
    """Raise what checks would have raised that the values of `arrays`, computed now if need be, hang on.

    Where checks raise when they run, this is `evaluate`.
    """
    evaluate(*arrays)
    try:
        for array in arrays:
            if unread:
                read(array._node)
    except XarrError as error:
        shorten(error)
        raise


def stand_for_arguments(*arrays: Array) -> bool:
    """Whether the values of some of `arrays` hang on arrays that stand for arguments, and never have one."""
    return any([type(node) is StandIn for node in postorder([array._node for array in arrays])])


def block_until_ready(x: Tree) -> Tree:
    """`x`, a pytree, once the Arrays in it have been computed; other leaves are left alone.

    Waits for the device where that is not the host, and raises there what checks have found wrong.  Errors as
    `evaluate`.  Source: jax.block_until_ready.
    """
    if isinstance(x, Handle) and _is_there(x):
        return x
    handles = [leaf for leaf in tree.leaves(x) if isinstance(leaf, Handle) and not _is_there(leaf)]
    evaluate(*handles)
    try:
        for handle in handles:
            _wait_for(handle._node)
    except XarrError as error:
        shorten(error)
        raise
    return x


def _is_there(handle: Handle) -> bool:
    """Whether a handle holds a value of the host alone, of which no node need be made."""
    return handle._shown is None and handle._value is not None and handle._device is not None


def _wait_for(node: Node) -> None:
    """Wait for a value, and raise what checks that it hangs on would have raised."""
    value, device = node.value, node.device
    if value is None or device is None or device.backend.is_on_host:
        return
    if unread:
        read(node)
    device.backend.block_until_ready(value)


def to_host(handle: Handle, name: str | None = None) -> np.ndarray[Any, Any]:
    """The value, of a dynamic Array its live part, as a read-only NumPy array, computed if need be.

    name: the method that wants it, with which the text of an error begins.
    """
    if handle._shown is None and (lent := lend(handle)) is not None:
        return lent
    try:
        node = compute(handle)
        # Before the value is read: a call in another thread that was given the Array may write over it else.
        node.exposed = True
        value = node.value
        if value is None:
            return to_host(handle, name)  # that call was faster: the Array is gone
        if unread:
            read(node)
    except XarrError as error:
        shorten(error, name)
        raise
    assert node.device is not None
    if type(node.type) is TensorType and node.type.dynamic:
        return live_part(node.type, value, node.device)
    view: np.ndarray[Any, Any] = node.device.backend.to_host(value).view()
    view.flags.writeable = False
    return view
