"""Pytrees: values held in nested tuples, lists, dicts, named tuples, dataclasses and None.

Whatever is none of these is a leaf.  The keys of a dict and of a defaultdict are taken in sorted order, as
in JAX, so that two dicts with the same keys have the same structure; those of an OrderedDict in its own.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from xarr.errors import InputError
from xarr.records import record


@record
class Structure:
    """The nesting of a pytree without its leaves.

    `container` is the class of the node, None for a leaf; `keys` are what its children are called:
    positions, dict keys or field names; `factory` is the default_factory of a defaultdict.
    """

    container: type[Any] | None
    keys: tuple[Any, ...] = ()
    children: tuple[Structure, ...] = ()
    factory: Any = None

    @property
    def count(self) -> int:
        """The number of leaves."""
        return 1 if self.container is None else sum(child.count for child in self.children)

    def paths(self, prefix: str = "") -> Iterator[str]:
        """How Python reaches each leaf from the value, as in `[0]['w'].bias`; "" for a lone leaf."""
        if self.container is None:
            yield prefix
        for key, child in zip(self.keys, self.children, strict=True):
            yield from child.paths(prefix + self.step(key))

    def step(self, key: Any) -> str:
        """How the child called `key` is reached."""
        by_name = self.container is not None and (
            is_dataclass(self.container) or _is_namedtuple(self.container)
        )
        return f".{key}" if by_name else f"[{key!r}]"

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
        if self.container in _MAPPINGS:
            items = f"{{{', '.join(f'{key!r}: {child}' for key, child in named)}}}"
            return items if self.container is dict else f"{self.container.__name__}({items})"
        return f"{self.container.__name__}({', '.join(f'{key}={child}' for key, child in named)})"


LEAF = Structure(None)
_MAPPINGS: Final = (dict, OrderedDict, defaultdict)
#: Levels of nesting.  Structures are walked by recursion, of which Python allows about 1000 calls.
_DEEPEST: Final = 200


def _is_namedtuple(container: type[Any]) -> bool:
    return issubclass(container, tuple) and hasattr(container, "_fields")


def _children(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """The keys and the children of a container, None for a leaf."""
    kind = type(value)
    if value is None:
        return (), ()
    if kind in (tuple, list):
        return tuple(range(len(value))), tuple(value)
    if _is_namedtuple(kind):
        return kind._fields, tuple(value)
    if kind in _MAPPINGS:
        keys = tuple(value) if kind is OrderedDict else _sorted_keys(value)
        return keys, tuple(value[key] for key in keys)
    if is_dataclass(kind):
        names = tuple(field.name for field in fields(kind) if field.init)
        return names, tuple(getattr(value, name) for name in names)
    return None


def _sorted_keys(value: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(value))
    except TypeError:
        raise InputError(
            f"the keys of a dict of arrays must have an order among themselves, got {list(value)}; "
            "use keys of one type"
        ) from None


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of `value`, depth first, and its structure.

    Raises InputError for dict keys without an order, and for more than 200 levels of nesting.
    """
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves, 0)


def _flatten(value: Any, leaves: list[Any], depth: int) -> Structure:
    found = _children(value)
    if found is None:
        leaves.append(value)
        return LEAF
    if depth == _DEEPEST:
        raise InputError(
            f"a tree of arrays may nest {_DEEPEST} levels deep, this {type(value).__name__} lies deeper, or "
            "holds itself; put the arrays into one flat list"
        )
    children = tuple(_flatten(child, leaves, depth + 1) for child in found[1])
    return Structure(
        type(value), found[0], children, value.default_factory if type(value) is defaultdict else None
    )


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The value with this structure and these leaves.  InputError for a wrong number of leaves."""
    if len(leaves) != structure.count:
        raise InputError(f"{structure} has {structure.count} leaves, got {len(leaves)}")
    return _build(structure, iter(leaves))


def _build(structure: Structure, leaves: Iterator[Any]) -> Any:
    container = structure.container
    if container is None:
        return next(leaves)
    if container is type(None):
        return None
    children = [_build(child, leaves) for child in structure.children]
    if container in (tuple, list):
        return container(children)
    named = dict(zip(structure.keys, children, strict=True))
    if container is defaultdict:
        return defaultdict(structure.factory, named)
    build: Any = container
    return build(named) if container in _MAPPINGS else build(**named)


def map_leaves(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """`function` applied to corresponding leaves of values of one structure.  InputError if they differ."""
    leaves, structure = flatten(value)
    columns = [leaves]
    for other in others:
        below, its = flatten(other)
        if its != structure:
            raise InputError(f"wanted values of one structure: {difference(structure, its)}")
        columns.append(below)
    return unflatten(structure, [function(*row) for row in zip(*columns, strict=True)])


def difference(wanted: Structure, got: Structure, path: str = "") -> str | None:
    """Where two structures first differ, in words; None where they are equal."""
    if wanted == got:
        return None
    place = f"at {path}: " if path else ""
    if wanted.container is not got.container or wanted.container is None:
        return f"{place}wanted {wanted}, got {got}"
    if wanted.keys != got.keys:
        missing, extra = ([k for k in a.keys if k not in b.keys] for a, b in ((wanted, got), (got, wanted)))
        if wanted.container in (tuple, list):
            return f"{place}wanted {len(wanted.keys)} elements, got {len(got.keys)}: {wanted} and {got}"
        return f"{place}wanted the keys {list(wanted.keys)}, missing {missing}, not wanted {extra}"
    if wanted.factory is not got.factory:
        return f"{place}wanted a default_factory {wanted.factory}, got {got.factory}"
    pairs = zip(wanted.keys, wanted.children, got.children, strict=True)
    return next(filter(None, (difference(a, b, path + wanted.step(key)) for key, a, b in pairs)))
