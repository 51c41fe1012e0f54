"""The functions of `xarr.tree` beside those of `jax.tree`, and classes that users register."""

from __future__ import annotations

import dataclasses
import operator
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import jax
import jax.tree_util
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax, tree, tree_util
from xarr.errors import InputError

Point = namedtuple("Point", ["x", "y"])


class Pair:
    """A container that both libraries know, as a class with methods."""

    def __init__(self, first: Any, second: Any, tag: Any = "tag") -> None:
        self.first, self.second, self.tag = first, second, tag

    def __repr__(self) -> str:
        # The workers of a run must call their tests alike: no address of an object.
        return f"{type(self).__name__}({self.first!r}, {self.second!r}, {self.tag!r})"

    def tree_flatten(self) -> tuple[tuple[Any, Any], Any]:
        return (self.first, self.second), self.tag

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Pair:
        return cls(*children, aux)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Keyed(Pair):
    """One whose children have names in paths."""

    @staticmethod
    def keys(module: Any) -> Callable[[Any], Any]:
        name = module.GetAttrKey
        return lambda value: (((name("first"), value.first), (name("second"), value.second)), value.tag)


@dataclasses.dataclass
class Layer:
    weight: Any
    size: int = tree.static(default=3)


for module in (tree, jax.tree_util):
    module.register_pytree_node_class(Pair)  # type: ignore[attr-defined]
    module.register_dataclass(Layer)  # type: ignore[attr-defined]
    keys = Keyed.keys(tree_util if module is tree else jax.tree_util)
    module.register_pytree_with_keys(Keyed, keys, Keyed.tree_unflatten)  # type: ignore[attr-defined]

TREES: list[Any] = [
    *(7, None, (), [], {}, (1,), [[], [1]], {"a": None}, {"b": 1, "a": (2, [3])}),
    *(Point(1, {"k": 2}), OrderedDict(z=1, a=2), defaultdict(list, z=1, a=2)),
    *(Pair(1, (2, 3)), Keyed([1], Pair(2, 3)), Layer(1, 5), {"p": [Layer((1, 2))]}),
]


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def test_the_names_of_jax_are_there_and_nothing_else_shows() -> None:
    shown = {name for name in dir(jax.tree) if not name.startswith("_")}
    registration = {name for name in dir(jax.tree_util) if name.startswith("register_")}
    own = {name for name in dir(tree) if not name.startswith("_")}
    assert own == shown | registration | {"keystr"}
    assert {name for name in dir(tree_util) if name.startswith(("tree_", "register_"))} == {
        name for name in dir(jax.tree_util) if name.startswith(("tree_", "register_"))
    }


@pytest.mark.parametrize("value", TREES, ids=str)
@pytest.mark.parametrize("is_leaf", [None, is_list])
def test_leaves_and_paths(value: Any, is_leaf: Any) -> None:
    assert tree.leaves(value, is_leaf) == jax.tree.leaves(value, is_leaf)
    ours, theirs = tree.leaves_with_path(value, is_leaf), jax.tree.leaves_with_path(value, is_leaf)
    assert [leaf for _, leaf in ours] == [leaf for _, leaf in theirs]
    for simple in (False, True):
        got = [tree.keystr(path, simple=simple, separator="/" * simple) for path, _ in ours]
        wanted = [jax.tree_util.keystr(path, simple=simple, separator="/" * simple) for path, _ in theirs]
        assert got == wanted


@pytest.mark.parametrize("value", TREES, ids=str)
def test_flatten_unflatten_and_map(value: Any) -> None:
    leaves, structure = tree.flatten(value)
    assert structure == tree.structure(value) and structure.num_leaves == len(leaves)
    assert tree.unflatten(structure, iter(leaves)) == value
    assert structure.unflatten(leaves) == value
    assert tree.map(lambda a: -a, value) == jax.tree.map(lambda a: -a, value)
    assert tree.map(operator.add, value, value) == jax.tree.map(operator.add, value, value)
    assert tree.all(value) == jax.tree.all(value)
    assert tree.reduce(operator.add, value, 5) == jax.tree.reduce(operator.add, value, 5)
    of_both = [
        module.map_with_path(lambda path, a, b, text=text: (text(path), a - b), value, value)
        for module, text in ((tree, tree.keystr), (jax.tree, jax.tree_util.keystr))
    ]
    assert of_both[0] == of_both[1]


def test_rest_may_lie_deeper_than_the_first_tree() -> None:
    prefix, full = (1, [2, 3]), ((4, {"a": 5}), [6, (7, 8)])
    assert tree.map(lambda a, b: (a, b), prefix, full) == jax.tree.map(lambda a, b: (a, b), prefix, full)
    assert tree.broadcast(prefix, full) == jax.tree.broadcast(prefix, full)
    assert tree.broadcast(9, full) == jax.tree.broadcast(9, full)
    with pytest.raises(InputError, match=r"at \[1\]: wanted .*, got \(\*, \*, \*\)"):
        tree.map(max, prefix, (1, (1, 2, 3)))
    with pytest.raises(InputError, match="wanted 2 elements, got 3"):
        tree.broadcast(prefix, (1, [1, 2, 3]))


def test_reduce_without_initializer() -> None:
    assert tree.reduce(operator.sub, [10, (1, {"a": 2})]) == 7
    with pytest.raises(TypeError, match="empty"):
        tree.reduce(operator.add, ())


@pytest.mark.parametrize("count", range(1, 9))
def test_reduce_associative_keeps_the_order(count: int) -> None:
    values = [str(k) for k in range(count)]
    wanted = jax.tree.reduce_associative(operator.add, values)
    assert tree.reduce_associative(operator.add, values) == wanted == "".join(values)
    assert tree.reduce_associative(operator.add, (), identity="e") == "e"
    with pytest.raises(InputError, match="identity"):
        tree.reduce_associative(operator.add, [])


@pytest.mark.parametrize("inner", [{"a": 0, "b": (0, 0)}, 0, ()])
@pytest.mark.parametrize("outer", [[0, 0, 0], (0,), {"x": 0, "y": [0]}])
@pytest.mark.parametrize("is_known", [True, False])
def test_transpose(inner: Any, outer: Any, is_known: bool) -> None:
    count = iter(range(100))
    value = tree.map(lambda _: tree.map(lambda _: next(count), inner), outer)
    ours = tree.transpose(tree.structure(outer), tree.structure(inner) if is_known else None, value)
    theirs = jax.tree.transpose(
        jax.tree.structure(outer), jax.tree.structure(inner) if is_known else None, value
    )
    assert ours == theirs
    assert tree.structure(outer).compose(tree.structure(inner)) == tree.structure(value)


def test_transpose_refuses_inner_trees_that_differ() -> None:
    with pytest.raises(InputError, match="wanted 2 elements, got 1"):
        tree.transpose(tree.structure([0, 0]), None, [(1, 2), (3,)])


def test_is_leaf_may_look_at_the_path() -> None:
    value = {"a": [1, 2], "b": [3]}
    for module in (tree, jax.tree):
        results = module.leaves_with_path(value, lambda path, _: len(path) == 1, is_leaf_takes_path=True)
        assert [leaf for _, leaf in results] == [[1, 2], [3]]


def test_a_class_is_registered_once() -> None:
    for cls in (Pair, Layer, tuple, dict, type(None)):
        with pytest.raises(InputError, match="already a pytree node"):
            tree.register_pytree_node(cls, lambda value: ((), None), lambda aux, children: None)
    with pytest.raises(InputError, match="is a class"):
        tree.register_static(3)  # type: ignore[type-var]


def test_register_dataclass_wants_each_field_once() -> None:
    @dataclasses.dataclass
    class Other:
        a: Any
        b: Any
        c: Any = None

    with pytest.raises(
        InputError, match="the fields of Other are a, b, c, data_fields and meta_fields name a, b"
    ):
        tree.register_dataclass(Other, ["a"], ["b"])
    with pytest.raises(InputError, match="or neither"):
        tree.register_dataclass(Other, ["a"])
    tree.register_dataclass(Other, ["a"], ["b"], ["c"])
    assert tree.leaves(Other(1, 2, 3)) == [1]
    assert tree.map(lambda a: a + 1, Other(1, 2, 3)) == Other(2, 2, None)


def test_a_static_class_has_no_leaves() -> None:
    @tree.register_static
    class Name(str):
        pass

    assert tree.leaves([Name("a"), 1]) == [1]
    assert tree.structure(Name("a")) != tree.structure(Name("b"))


def test_registered_classes_under_jit_loops_and_branches() -> None:
    @xarr.jit
    def swap(pair: Pair, layer: Layer) -> tuple[Pair, OrderedDict[str, Layer]]:
        return Pair(pair.second * layer.size, pair.first, pair.tag), OrderedDict(only=layer)

    for step in range(3):  # the second and third call replay
        pair, named = swap(Pair(xarr.arange(3), step + 1), Layer(xarr.ones(2) * step))
        assert pair.tag == "tag" and type(named) is OrderedDict and named["only"].size == 3
        assert_same(pair.first, np.asarray(3 * (step + 1)))
        assert_same(named["only"].weight, np.full(2, float(step)))
    assert swap.compilations == 1
    swap(Pair(xarr.arange(3), 1, tag="other"), Layer(xarr.ones(2), 4))
    assert swap.compilations == 2

    start = Pair(xarr.zeros(2), xarr.ones(2))
    looped = lax.fori_loop(0, 3, lambda i, p: Pair(p.first + p.second, p.second * 2), start)
    assert_same(looped.first, np.full(2, 7.0))
    chosen = lax.cond(xarr.asarray(False), lambda p: p, lambda p: Pair(p.second, p.first), start)
    assert_same(chosen.first, np.ones(2))
    _, stacked = lax.scan(lambda c, x: (c, Pair(x, c)), xarr.asarray(2.0), xarr.arange(3.0))
    assert_same(stacked.second, np.full(3, 2.0))


def test_static_parts_must_be_hashable_under_jit() -> None:
    identity = xarr.jit(lambda pair: pair.first)
    with pytest.raises(
        InputError, match=r"the static part of pair, Pair\(\['t'\], \*, \*\), must be hashable"
    ):
        identity(Pair(1.0, 2.0, tag=["t"]))


def test_other_containers_are_replayed_as_they_are_built() -> None:
    @xarr.jit
    def double(named: Any) -> Any:
        return tree.map(lambda leaf: leaf * 2, named)

    for kind in (OrderedDict, lambda **names: defaultdict(list, names)):
        for step in range(3):
            got = double(kind(b=xarr.ones(2) * step, a=step))
            assert type(got) is type(kind())
            assert list(got) == (["b", "a"] if kind is OrderedDict else ["a", "b"])
            assert_same(got["b"], np.full(2, 2.0 * step))


def test_evaluate_and_block_until_ready_take_pytrees() -> None:
    pair = Pair(xarr.ones(2) + 1, [xarr.ones(3) * 2])
    xarr.evaluate({"p": pair})
    assert pair.first.is_evaluated and pair.second[0].is_evaluated
    lazy = {"a": xarr.ones(2) + 3, "b": "text", "c": 4, "d": None}
    assert xarr.block_until_ready(lazy) is lazy
    assert lazy["a"].is_evaluated  # type: ignore[attr-defined]
    single = xarr.ones(2) + 3
    assert single.block_until_ready() is single and single.is_evaluated
