"""What decides which program a call of a jitted function runs: nesting, types, static values, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from xarr import backend as backends, tree
from xarr.arrays.array import Array
from xarr.base.configuration import current as config
from xarr.base.host_arrays import SCALARS, NoOperand, host_array
from xarr.communication.communicator import current_communicator
from xarr.errors import DTypeError, InputError
from xarr.ir.device import Device
from xarr.ir.types import TensorType, Type
from xarr.runtime.device_arrays import from_device_array, lies_on_device
from xarr.runtime.handles import Handle, common_device, weak_kind
from xarr.runtime.named_axes import current_batch_axes, current_mesh, current_names
from xarr.tree import Structure

#: A Type for an array; bool, int, float or complex for a Python number.
LeafType = Type | type[Any]
#: Settings that change what a function records.
_SETTINGS: Final = ("broadcasting", "default_dtype", "default_prng_impl", "backend")
#: The name of what is no setting among them.
REPLICA: Final = "replica"
#: The source of a leaf that is an array in parts.
PARTS: Final = "parts"
#: The named axes that a function is recorded for.
AXES: Final = "the mesh of named axes"
MAPPED: Final = "the axes of vmap"


@dataclass(frozen=True)
class TracedArgument:
    """An argument that is traced: a pytree of arrays and numbers.

    key: its position, or its keyword; label: what it is called in messages.
    """

    key: int | str
    label: str
    structure: Structure
    types: tuple[LeafType, ...]

    def __str__(self) -> str:
        text = str(self.structure)
        for leaf in self.types:
            text = text.replace("*", shown_type(leaf), 1)
        return f"{self.label}: {text}"

    def changes(self, other: TracedArgument) -> Iterator[str]:
        """Describe how this one differs from `other`, an earlier one of the same key."""
        if self.structure != other.structure:
            yield f"{self.label} was {other.structure} and is {self.structure}"
            return
        paths = self.structure.paths(self.label)
        for path, new, old in zip(paths, self.types, other.types, strict=True):
            if new is not old:
                yield f"{path} was {shown_type(old)} and is {shown_type(new)}"


@dataclass(frozen=True)
class Static:
    """An argument whose value is part of the signature.  `exact` tells apart what compares equal."""

    key: int | str
    label: str
    exact: Any
    value: Any = field(compare=False)

    def __str__(self) -> str:
        return f"{self.label}={self.value!r}"

    def changes(self, other: Static) -> Iterator[str]:
        if self != other:
            yield f"the static argument {self.label} was {other.value!r} and is {self.value!r}"


@dataclass(frozen=True)
class Signature:
    """The arguments that a program was compiled for.

    settings: names and values of those that matter, "backend" the last;
    device: that of the argument Arrays, None if none is committed.
    """

    arguments: tuple[TracedArgument | Static, ...]
    settings: tuple[tuple[str, Any], ...]
    device: Device | None

    @cached_property
    def types(self) -> tuple[LeafType, ...]:
        """Those of all leaves of traced arguments, in order."""
        return tuple([t for each in self.arguments if isinstance(each, TracedArgument) for t in each.types])

    @property
    def keys(self) -> tuple[Signature, ...]:
        """Signatures to look for: arguments that are not committed are as good as those on the default device."""
        if self.device is not None:
            return (self,)
        return replace(self, device=self.default_device), self

    @property
    def default_device(self) -> Device:
        """The device that was the default one."""
        return backends.get(self.settings[-1][1]).device()

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.arguments))})"

    def changes(self, other: Signature) -> list[str]:
        """In words, how this one differs from an earlier one."""
        if [(type(a), a.key) for a in self.arguments] != [(type(a), a.key) for a in other.arguments]:
            return [f"the arguments were {other} and are {self}"]
        pairs: Any = zip(self.arguments, other.arguments, strict=True)
        texts = [text for new, old in pairs for text in new.changes(old)]
        known = dict(other.settings)
        for name, setting in self.settings:
            before = known.get(name, setting)
            if setting != before and name != REPLICA:
                what = name if name in (AXES, MAPPED) else f"config.{name}"
                texts.append(f"{what} was {before!r} and is {setting!r}")
        if self.device is not other.device:
            names = [each.name if each else "none" for each in (other.device, self.device)]
            texts.append(f"the backend of the arguments was {names[0]} and is {names[1]}")
        return texts


@dataclass(frozen=True)
class BoundCall:
    """The arguments of one call, flattened.

    leaves: an Array, a NumPy array (a private copy, which cannot change) or a number for each leaf;
    sources: what stood there, which a fast path looks for next time: "Array", "ndarray", "generic" (a NumPy
    scalar), "number", PARTS for an array in parts, or "other" for what has no fast path.
    """

    signature: Signature
    leaves: tuple[Any, ...]
    sources: tuple[str, ...]


def settings(device: Device | None) -> tuple[tuple[str, Any], ...]:
    """The settings that are part of a signature: of any function, and of programs on `device`, None the default one.

    With them the number of the replica, if there are several: what a function records may depend on it, and no replica
    waits for what another one records.
    """
    options = (device or backends.default_device()).backend.options
    world, mesh = current_communicator(), current_mesh()
    replica = [(REPLICA, (world.rank, world.size))] if world.size > 1 else []
    axes: list[tuple[str, Any]] = [] if mesh is None else [(AXES, (mesh, current_names()))]
    axes += [(MAPPED, current_batch_axes())] if current_batch_axes() else []
    return tuple([*replica, *axes, *[(name, getattr(config, name)) for name in (*options, *_SETTINGS)]])


def shown_type(leaf: LeafType) -> str:
    """`f32[2,3]` for an array, `float` for a Python number."""
    return leaf.__name__ if isinstance(leaf, type) else leaf.short()


def exact(value: Any) -> Any:
    """Something hashable that is equal for values which a function cannot tell apart: 1, 1.0 and True differ."""
    kind = type(value)
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, tuple):
        return kind, tuple([exact(item) for item in value])
    return kind, value


def static(name: str, key: int | str, label: str, value: Any) -> Static:
    """A static argument; InputError if it has no hash."""
    try:
        hash(value)
    except TypeError as error:
        advice = (
            "leave it out of static_argnums and static_argnames, so that it is traced"
            if isinstance(value, Handle | np.ndarray)
            else "pass a tuple for a list, or a frozen dataclass"
        )
        raise InputError(
            f"{name}: the static argument {label} must be hashable, got {type(value).__name__} ({error}); {advice}"
        ) from None
    return Static(key, label, exact(value), value)


def call_of(name: str, statics: Sequence[Static], traced: Sequence[tuple[int | str, str, Any]]) -> BoundCall:
    """A call with these static arguments and these others: (key, label, value)."""
    arguments: list[TracedArgument | Static] = list(statics)
    leaves: list[Any] = []
    sources: list[str] = []
    for key, label, value in traced:
        below, structure = tree.flatten(value)
        _refuse_unhashable(name, label, structure)
        kinds = [_leaf(name, path, leaf) for path, leaf in zip(structure.paths(label), below, strict=True)]
        arguments.append(TracedArgument(key, label, structure, tuple([kind for kind, _, _ in kinds])))
        leaves += [leaf for _, leaf, _ in kinds]
        sources += [source for _, _, source in kinds]
    device = common_device(map(_array_here, leaves, sources))
    if device is not None and not device.is_committed:
        device = None
    return BoundCall(Signature(tuple(arguments), settings(device), device), tuple(leaves), tuple(sources))


def _array_here(leaf: Any, source: str) -> Any:
    """A leaf, or of an array in parts one that lies in this process."""
    return leaf.addressable_shards[0].data if source == PARTS else leaf


def _refuse_unhashable(name: str, label: str, structure: Structure) -> None:
    """InputError for a structure whose static parts have no hash, so that no program is known by it."""
    try:
        hash(structure)
    except TypeError as error:
        raise InputError(
            f"{name}: the static part of {label}, {structure}, must be hashable ({error}); let the flatten function of "
            "its class return a tuple for a list as aux, and arrays among the children"
        ) from None


def _leaf(name: str, path: str, value: Any) -> tuple[LeafType, Any, str]:
    """The type of a leaf, the leaf as it is passed on, and its source."""
    kind = weak_kind(value)
    if kind is not None:
        return kind, value, "number" if type(value) in SCALARS else "other"
    if isinstance(value, Handle):
        type_ = value._node.type
        if not isinstance(type_, TensorType):
            raise InputError(
                f"{name}: wanted arrays in Python tuples for {path}, got the tuple value {type_.short()}"
            )
        return type_, value, "Array" if type(value) is Array else "other"
    if isinstance(value, NoOperand) and value.is_in_parts:
        whole: Any = value
        return TensorType(whole.shape, whole.dtype), value, PARTS
    if lies_on_device(value):
        moved = from_device_array(value, None)
        return moved._node.type, moved, "other"
    try:
        array = host_array(value)
    except (InputError, DTypeError) as error:
        raise type(error)(
            f"{name}: {path} is {_article(value)}, which cannot be traced: {error}; name it in static_argnames if "
            "it is not an array"
        ) from None
    return TensorType(array.shape, array.dtype), array, _source(value, array)


def _source(value: Any, array: np.ndarray[Any, Any]) -> str:
    if type(value) is np.ndarray and value.dtype == array.dtype:
        return "ndarray"
    return "generic" if isinstance(value, np.generic) and value.dtype == array.dtype else "other"


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
