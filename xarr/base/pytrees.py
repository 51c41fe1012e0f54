"""Pytrees: how nested containers of values are flattened and unflattened, and which classes are containers.

Containers are tuples, lists, dicts (OrderedDict and defaultdict too), named tuples, dataclasses, None, and the
classes that were registered.  Whatever is none of these is a leaf.  The keys of a dict and of a defaultdict come in
sorted order, as in JAX, so that two dicts with the same keys have the same structure; those of an OrderedDict in
its own.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, fields, is_dataclass
from typing import Any, Final, TypeVar

from xarr.base.frozen_dataclasses import record
from xarr.errors import InputError

IsLeaf = Callable[[Any], bool] | None
Class = TypeVar("Class", bound=type[Any])


# --- structures --------------------------------------------------------------------------------------


@record
class Structure:
    """The nesting of a pytree without its leaves: what JAX calls a treedef.

    `container` is the class of the node, None for a leaf; `keys` are what its children are called:
    positions, dict keys, field names, or the entries of a path; `aux` is what else the container is made from:
    the default_factory of a defaultdict, static fields, or what the flatten function of a registered class gave.
    """

    container: type[Any] | None
    keys: tuple[Any, ...] = ()
    children: tuple[Structure, ...] = ()
    aux: Any = None

    @property
    def count(self) -> int:
        """The number of leaves."""
        return 1 if self.container is None else sum(child.count for child in self.children)

    num_leaves = count

    @property
    def is_plain(self) -> bool:
        """Whether no class within has its own functions to flatten and unflatten it."""
        own = self.container not in _registered and self.container not in (OrderedDict, defaultdict)
        return own and self.aux is None and all(child.is_plain for child in self.children)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The value with this structure and these leaves.  InputError for a wrong number of leaves."""
        return unflatten(self, leaves)

    def flatten_up_to(self, value: Any) -> list[Any]:
        """The parts of `value` where this structure has leaves, of which it must be a prefix; else InputError."""
        leaves: list[Any] = []
        _flatten_up_to(self, value, "", leaves)
        return leaves

    def compose(self, inner: Structure) -> Structure:
        """This structure with `inner` instead of each leaf."""
        if self.container is None:
            return inner
        children = tuple([child.compose(inner) for child in self.children])
        return Structure(self.container, self.keys, children, self.aux)

    def paths(self, prefix: str = "") -> Iterator[str]:
        """The path to each leaf as Python writes it, as in `[0]['w'].bias`; "" for a lone leaf."""
        if self.container is None:
            yield prefix
        for key, child in zip(self.keys, self.children, strict=True):
            yield from child.paths(prefix + self.step(key))

    def key_paths(self, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """The path to each leaf, as entries SequenceKey, DictKey, GetAttrKey and those of registered classes."""
        if self.container is None:
            yield prefix
        for key, child in zip(self.keys, self.children, strict=True):
            yield from child.key_paths((*prefix, self.entry(key)))

    def step(self, key: Any) -> str:
        """The step of a path to the child called `key`, as Python writes it."""
        return str(self.entry(key))

    def entry(self, key: Any) -> Any:
        """The entry of a path for the child called `key`."""
        container = self.container
        assert container is not None
        if container in _registered:
            return key
        if container in _MAPPINGS:
            return DictKey(key)
        return SequenceKey(key) if container in (tuple, list) else GetAttrKey(key)

    def __repr__(self) -> str:
        return f"Structure({self})"

    def __str__(self) -> str:
        if self.container is None:
            return "*"
        if self.container is type(None):
            return "None"
        inner = [str(child) for child in self.children]
        if self.container is tuple:
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        if self.container is list:
            return f"[{', '.join(inner)}]"
        named = zip(self.keys, inner, strict=True)
        name = self.container.__name__
        if self.container in _MAPPINGS:
            items = f"{{{', '.join(f'{key!r}: {child}' for key, child in named)}}}"
            return items if self.container is dict else f"{name}({items})"
        if self.container in _registered:
            aux = [] if self.aux in (None, ()) else [repr(self.aux)]
            return f"{name}({', '.join([*aux, *inner])})"
        return f"{name}({', '.join(f'{key}={child}' for key, child in named)})"


LEAF = Structure(None)
_MAPPINGS: Final = (dict, OrderedDict, defaultdict)
#: Levels of nesting.  Structures are walked by recursion, of which Python allows about 1000 calls.
_DEEPEST: Final = 200


# --- the entries of a path ---------------------------------------------------------------------------


@record
class SequenceKey:
    """The element of a tuple or list at position `idx`, as an entry of a path.  Source: jax.tree_util."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@record
class DictKey:
    """The value of a dict under `key`, as an entry of a path.  Source: jax.tree_util."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@record
class GetAttrKey:
    """The attribute `name` of a named tuple or dataclass, as an entry of a path.  Source: jax.tree_util."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@record
class FlattenedIndexKey:
    """A child of a registered class without keys: the one at position `key`.  Source: jax.tree_util."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """The path as text: `[0]['w'].bias`; if `simple`, the names alone, between them `separator`.

    Source: jax.tree_util.keystr.
    """
    return separator.join([_name(key) if simple else str(key) for key in keys])


def _name(entry: Any) -> str:
    if isinstance(entry, SequenceKey):
        return str(entry.idx)
    if isinstance(entry, GetAttrKey):
        return entry.name
    return str(entry.key) if isinstance(entry, DictKey | FlattenedIndexKey) else str(entry)


# --- classes of the user -----------------------------------------------------------------------------


@record
class _Registered:
    """Functions of a registered class: one to (keys, children, aux), one back from aux and children."""

    flatten: Callable[[Any], tuple[tuple[Any, ...], tuple[Any, ...], Any]]
    unflatten: Callable[[Any, Any], Any]


_registered: Final[dict[Any, _Registered]] = {}


def _register(cls: type[Any], registered: _Registered) -> None:
    if not isinstance(cls, type):
        raise InputError(f"a pytree node is a class, got {cls!r}")
    if cls in (tuple, list, type(None), *_MAPPINGS) or cls in _registered:
        raise InputError(f"{cls.__name__} is already a pytree node; register a class once")
    _registered[cls] = registered


def register_pytree_node(
    nodetype: type[Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make `nodetype` a container of pytrees.

    flatten_func: value -> (children, aux), where aux can be hashed and compared.
    unflatten_func: (aux, children) -> value; the children may be anything, not only arrays.
    flatten_with_keys_func: value -> (pairs of an entry of a path and a child, aux).

    Raises InputError for a class that is a container already.
    Source: jax.tree_util.register_pytree_node.
    """

    def flatten(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        if flatten_with_keys_func is not None:
            keyed, aux = flatten_with_keys_func(value)
            pairs = tuple(keyed)
            return tuple([key for key, _ in pairs]), tuple([child for _, child in pairs]), aux
        flat: Any = flatten_func(value)
        if not (isinstance(flat, tuple) and len(flat) == 2):
            raise InputError(
                f"the flatten function of {nodetype.__name__} must return (children, aux), got {flat!r}"
            )
        children = tuple(flat[0])
        return tuple([FlattenedIndexKey(index) for index in range(len(children))]), children, flat[1]

    _register(nodetype, _Registered(flatten, unflatten_func))


def register_pytree_with_keys(
    nodetype: type[Any],
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make `nodetype` a container whose children have entries of paths, as in `register_pytree_node`.

    flatten_func: accepted for JAX's sake; `flatten_with_keys` says the same.
    Source: jax.tree_util.register_pytree_with_keys.
    """
    register_pytree_node(nodetype, flatten_func or flatten_with_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Class) -> Class:
    """Class decorator: a container with the methods tree_flatten(self) and tree_unflatten(cls, aux, children).

    Source: jax.tree_util.register_pytree_node_class.
    """
    register_pytree_node(cls, lambda value: value.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Class decorator: a container with the methods tree_flatten_with_keys and tree_unflatten.

    Source: jax.tree_util.register_pytree_with_keys_class.
    """
    register_pytree_with_keys(cls, lambda value: value.tree_flatten_with_keys(), cls.tree_unflatten)
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make `nodetype` a container whose children are `data_fields`, with `meta_fields` as its aux.

    Without the two, the static fields of a dataclass (see `static`) are its aux, the others its children; that holds of
    a dataclass that is not registered, too.  drop_fields: fields that are neither, and are made by the class.

    Raises InputError for fields that the dataclass does not have, or that neither list names.
    Source: jax.tree_util.register_dataclass.
    """
    if data_fields is None or meta_fields is None:
        if data_fields is not meta_fields:
            raise InputError("register_dataclass: wanted both data_fields and meta_fields, or neither")
        if not is_dataclass(nodetype):
            raise InputError(
                "register_dataclass: wanted data_fields and meta_fields for a class that is not a dataclass"
            )
        data_fields, meta_fields = _fields_of(nodetype)
    data, meta = tuple(data_fields), tuple(meta_fields)
    if is_dataclass(nodetype):
        own = {each.name for each in fields(nodetype) if each.init} - set(drop_fields)
        if own != {*data, *meta}:
            raise InputError(
                f"register_dataclass: the fields of {nodetype.__name__} are {', '.join(sorted(own))}, "
                f"data_fields and meta_fields name {', '.join(sorted({*data, *meta}))}"
            )

    def flatten(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        children = tuple([getattr(value, name) for name in data])
        return tuple(map_keys), children, tuple([getattr(value, name) for name in meta])

    def build(aux: Any, children: Any) -> Any:
        return nodetype(**dict(zip(meta, aux, strict=True)), **dict(zip(data, children, strict=True)))

    map_keys = [GetAttrKey(name) for name in data]
    _register(nodetype, _Registered(flatten, build))
    return nodetype


def register_static(cls: Class) -> Class:
    """Class decorator: a container without children, the whole of which is aux; it must be hashable.

    Source: jax.tree_util.register_static.
    """
    register_pytree_node(cls, lambda value: ((), value), lambda aux, _: aux)
    return cls


def static(**options: Any) -> Any:
    """`dataclasses.field(**options)` for a field that is no child but part of the structure.

    Source: jax.tree.static.
    """
    metadata = {"static": True, **(options.pop("metadata", None) or {})}
    return field(metadata=metadata, **options)


@functools.lru_cache(maxsize=4096)
def _fields_of(kind: type[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a dataclass that are children, and the static ones."""
    own = [each for each in fields(kind) if each.init]
    names = [tuple([e.name for e in own if bool(e.metadata.get("static")) is flag]) for flag in (False, True)]
    return names[0], names[1]


# --- flatten and unflatten ---------------------------------------------------------------------------


def children_of(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], Any] | None:
    """The keys, the children and the aux of a container, None for a leaf."""
    kind = type(value)
    if value is None:
        return (), (), None
    if kind in (tuple, list):
        return tuple(range(len(value))), tuple(value), None
    registered = _registered.get(kind)
    if registered is not None:
        return registered.flatten(value)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind._fields, tuple(value), None
    if kind in _MAPPINGS:
        keys = tuple(value) if kind is OrderedDict else _sorted_keys(value)
        factory = value.default_factory if kind is defaultdict else None
        return keys, tuple(value[key] for key in keys), factory
    if is_dataclass(kind):
        names, fixed = _fields_of(kind)
        aux = tuple([(name, getattr(value, name)) for name in fixed]) or None
        return names, tuple(getattr(value, name) for name in names), aux
    return None


def _sorted_keys(value: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(value))
    except TypeError:
        raise InputError(
            f"the keys of a dict of arrays must be sortable, got {list(value)}; use keys of one type"
        ) from None


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Structure]:
    """The leaves of `tree`, depth first, and its structure.

    is_leaf: which values count as leaves whatever they are.  Raises InputError for dict keys without an order, and
    for more than 200 levels of nesting.  Source: jax.tree.flatten.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, 0, is_leaf)


def _flatten(value: Any, leaves: list[Any], depth: int, is_leaf: IsLeaf) -> Structure:
    children_and_aux = None if is_leaf is not None and is_leaf(value) else children_of(value)
    if children_and_aux is None:
        leaves.append(value)
        return LEAF
    if depth == _DEEPEST:
        raise InputError(
            f"a tree of arrays may nest {_DEEPEST} levels deep, this {type(value).__name__} is nested "
            "deeper, or contains itself; put the arrays into one flat list"
        )
    keys, values, aux = children_and_aux
    children = tuple([_flatten(child, leaves, depth + 1, is_leaf) for child in values])
    return Structure(type(value), keys, children, aux)


def _flatten_up_to(structure: Structure, value: Any, path: str, parts: list[Any]) -> None:
    if structure.container is None:
        parts.append(value)
        return
    contents = children_of(value)
    if contents is None or type(value) is not structure.container:
        where = f"at {path}: " if path else ""
        raise InputError(
            f"{where}wanted values of one structure: wanted {structure}, got {flatten(value)[1]}"
        )
    keys, values, aux = contents
    own = Structure(structure.container, keys, (LEAF,) * len(keys), aux)
    outline = Structure(structure.container, structure.keys, (LEAF,) * len(structure.keys), structure.aux)
    if own != outline:
        raise InputError(f"wanted values of one structure: {difference(outline, own, path)}")
    for key, child, part in zip(keys, structure.children, values, strict=True):
        _flatten_up_to(child, part, path + structure.step(key), parts)


def unflatten(treedef: Structure, leaves: Iterable[Any]) -> Any:
    """The value with this structure and these leaves.  InputError for a wrong number of leaves.

    Source: jax.tree.unflatten.
    """
    if not isinstance(treedef, Structure):
        raise InputError(
            f"tree.unflatten: wanted a structure, as tree.structure gives it, got {type(treedef).__name__}"
        )
    values = list(leaves)
    if len(values) != treedef.count:
        raise InputError(f"{treedef} has {treedef.count} leaves, got {len(values)}")
    return _build(treedef, iter(values))


def _build(structure: Structure, leaves: Iterator[Any]) -> Any:
    container = structure.container
    if container is None:
        return next(leaves)
    if container is type(None):
        return None
    children = [_build(child, leaves) for child in structure.children]
    if container in (tuple, list):
        return container(children)
    if container in _registered:
        return _registered[container].unflatten(structure.aux, tuple(children))
    named = dict(zip(structure.keys, children, strict=True))
    if container is defaultdict:
        return defaultdict(structure.aux, named)
    build: Any = container
    return build(named) if container in _MAPPINGS else build(**named, **dict(structure.aux or ()))


def difference(wanted: Structure, got: Structure, path: str = "") -> str | None:
    """Text on the first difference of two structures; None where they are equal."""
    if wanted == got:
        return None
    prefix = f"at {path}: " if path else ""
    if wanted.container is not got.container or wanted.container is None:
        return f"{prefix}wanted {wanted}, got {got}"
    if wanted.keys != got.keys:
        missing, extra = ([k for k in a.keys if k not in b.keys] for a, b in ((wanted, got), (got, wanted)))
        if wanted.container in (tuple, list) or wanted.container in _registered:
            return f"{prefix}wanted {len(wanted.keys)} elements, got {len(got.keys)}: {wanted} and {got}"
        return f"{prefix}wanted the keys {list(wanted.keys)}, missing {missing}, not wanted {extra}"
    if wanted.aux != got.aux:
        what = "a default_factory" if wanted.container is defaultdict else "the static part"
        return f"{prefix}wanted {what} {wanted.aux}, got {got.aux}"
    pairs = zip(wanted.keys, wanted.children, got.children, strict=True)
    return next(filter(None, (difference(a, b, path + wanted.step(key)) for key, a, b in pairs)))
