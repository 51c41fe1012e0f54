"""The functions of jax.tree: what to do with values held in nested containers.

Containers are tuples, lists, dicts (OrderedDict and defaultdict too), named tuples, dataclasses, None, and the
classes that were registered.  Whatever is none of these is a leaf, and everything is where `is_leaf` says so.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from xarr.base.names import public_names
from xarr.base.pytrees import (
    LEAF as LEAF,
    IsLeaf,
    Structure as Structure,
    children_of,
    difference as difference,
    flatten as flatten,
    keystr as keystr,
    register_dataclass as register_dataclass,
    register_pytree_node as register_pytree_node,
    register_pytree_node_class as register_pytree_node_class,
    register_pytree_with_keys as register_pytree_with_keys,
    register_pytree_with_keys_class as register_pytree_with_keys_class,
    register_static as register_static,
    static as static,
    unflatten as unflatten,
)
from xarr.errors import InputError


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree`, depth first.  Source: jax.tree.leaves."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> Structure:
    """The structure of `tree`.  Source: jax.tree.structure."""
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """`f` of corresponding leaves of `tree` and `rest`, in the structure of `tree`.

    The structure of `tree` must be a prefix of those of `rest`; what they have where it has a leaf goes to `f` whole.
    Raises InputError, saying where, if it is none.  Source: jax.tree.map.
    """
    values, treedef = flatten(tree, is_leaf)
    columns = [values, *[treedef.flatten_up_to(each) for each in rest]]
    return unflatten(treedef, [f(*row) for row in zip(*columns, strict=True)])


def reduce(function: Callable[[Any, Any], Any], tree: Any, *initializer: Any, is_leaf: IsLeaf = None) -> Any:
    """`function(function(initializer, first leaf), second leaf)` and so on; without initializer, from the first leaf.

    Raises TypeError for no leaves without initializer, as functools.reduce does.  Source: jax.tree.reduce.
    """
    return functools.reduce(function, leaves(tree, is_leaf), *initializer)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true.  Source: jax.tree.all."""
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: Structure, inner_treedef: Structure | None, pytree_to_transpose: Any) -> Any:
    """A tree of the structure `outer_treedef` of trees of `inner_treedef`, the other way round.

    inner_treedef: None for that of the first inner tree.  Raises InputError for a tree of another structure.
    Source: jax.tree.transpose.
    """
    parts = outer_treedef.flatten_up_to(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = structure(parts[0]) if parts else LEAF
    rows = []
    for part in parts:
        row, its = flatten(part)
        if its != inner_treedef:
            raise InputError(f"transpose: {difference(inner_treedef, its)}")
        rows.append(row)
    columns = zip(*rows, strict=True) if rows else ((),) * inner_treedef.count
    return unflatten(inner_treedef, [unflatten(outer_treedef, column) for column in columns])


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """`full_tree` with each leaf of `prefix_tree` instead of all the leaves below it.

    Raises InputError unless the structure of the one is a prefix of the other's.  Source: jax.tree.broadcast.
    """
    values, prefix = flatten(prefix_tree, is_leaf)
    leaves: list[Any] = []
    for value, part in zip(values, prefix.flatten_up_to(full_tree), strict=True):
        leaves += [value] * structure(part, is_leaf).count
    return unflatten(structure(full_tree, is_leaf), leaves)


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], Structure]:
    """Pairs of the path to a leaf and the leaf, and the structure; `keystr` writes a path.

    is_leaf_takes_path: `is_leaf` is called with path and value.  Source: jax.tree.flatten_with_path.
    """
    if is_leaf is None or not is_leaf_takes_path:
        values, treedef = flatten(tree, is_leaf)
    else:
        values = []
        treedef = _flatten_by_path(tree, (), values, is_leaf)
    return list(zip(treedef.key_paths(), values, strict=True)), treedef


def _flatten_by_path(
    value: Any, path: tuple[Any, ...], leaves: list[Any], is_leaf: Callable[..., bool]
) -> Structure:
    """`_flatten` with leaves decided by their path as well."""
    parts = None if is_leaf(path, value) else children_of(value)
    if parts is None:
        leaves.append(value)
        return LEAF
    outline = Structure(type(value), parts[0])
    pairs = zip(parts[0], parts[1], strict=True)
    children = [_flatten_by_path(each, (*path, outline.entry(key)), leaves, is_leaf) for key, each in pairs]
    return Structure(type(value), parts[0], tuple(children), parts[2])


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """Pairs of the path to a leaf and the leaf.  Source: jax.tree.leaves_with_path."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """`f(path, leaf, …)` of corresponding leaves, as `map` does it.  Source: jax.tree.map_with_path."""
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = zip(*[treedef.flatten_up_to(each) for each in rest], strict=True) if rest else [()] * len(pairs)
    return unflatten(treedef, [f(*pair, *row) for pair, row in zip(pairs, others, strict=True)])


def reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = ..., is_leaf: IsLeaf = None
) -> Any:
    """The leaves combined in pairs, and the results in pairs again, by an associative function.

    identity: the result for no leaves, without which that is an InputError.  Source: jax.tree.reduce_associative.
    """
    values = leaves(tree, is_leaf)
    if not values and identity is ...:
        raise InputError("reduce_associative: a tree without leaves needs an identity")
    while len(values) > 1:
        pairs = [operation(*values[at : at + 2]) for at in range(0, len(values) - 1, 2)]
        values = pairs + values[len(values) - len(values) % 2 :]
    return values[0] if values else identity


__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "static",
    "structure",
    "transpose",
    "unflatten",
]


def __dir__() -> list[str]:
    return public_names(globals())
