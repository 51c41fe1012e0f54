"""Pytrees: flatten, unflatten, structures and how they are told apart."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest

from xarr import tree
from xarr.errors import InputError

Point = namedtuple("Point", ["x", "y"])


@dataclass
class Layer:
    weight: Any
    bias: Any
    size: Any = field(init=False, default=0)


NESTED: Any = {"b": (1, [2, None, ()]), "a": Point(3, Layer(4, {"k": 5}))}


def test_flatten_takes_dict_keys_in_order_and_children_depth_first() -> None:
    leaves, structure = tree.flatten(NESTED)
    assert leaves == [3, 4, 5, 1, 2]
    assert structure.count == 5
    assert str(structure) == "{'a': Point(x=*, y=Layer(weight=*, bias={'k': *})), 'b': (*, [*, None, ()])}"


def test_unflatten_gives_the_value_back_with_its_classes() -> None:
    leaves, structure = tree.flatten(NESTED)
    assert tree.unflatten(structure, leaves) == NESTED
    assert isinstance(tree.unflatten(structure, "vwxyz")["a"], Point)


@pytest.mark.parametrize("value", [7, (), [], {}, None, (1,), [[]], {"a": None}])
def test_small_values_survive_the_round_trip(value: Any) -> None:
    leaves, structure = tree.flatten(value)
    assert tree.unflatten(structure, leaves) == value
    assert tree.flatten(tree.unflatten(structure, leaves))[1] == structure


def test_paths_are_written_as_python_reaches_the_leaves() -> None:
    paths = list(tree.flatten(NESTED)[1].paths())
    assert paths == ["['a'].x", "['a'].y.weight", "['a'].y.bias['k']", "['b'][0]", "['b'][1][0]"]
    assert list(tree.LEAF.paths()) == [""]


def test_a_structure_is_shown_as_it_nests() -> None:
    assert repr(tree.structure({"a": [1, (2, None)]})) == "Structure({'a': [*, (*, None)]})"


def test_structures_are_equal_by_classes_and_keys_not_by_leaves() -> None:
    def structure(value: Any) -> tree.Structure:
        return tree.flatten(value)[1]

    assert structure({"a": 1, "b": 2}) == structure({"b": "x", "a": 5})
    assert hash(structure((1, 2))) == hash(structure(("p", "q")))
    different = [(1, 2), [1, 2], Point(1, 2), {"x": 1, "y": 2}, (1, (2,)), 1, None, Layer(1, 2)]
    assert len({structure(value) for value in different}) == len(different)


@pytest.mark.parametrize(
    ("wanted", "got", "words"),
    [
        ((1, 2), [1, 2], "wanted (*, *), got [*, *]"),
        ((1, (2, 3)), (1, (2,)), "at [1]: wanted 2 elements, got 1"),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, "missing ['b'], not wanted ['c']"),
        ({"a": (1, None)}, {"a": (1, 2)}, "at ['a'][1]: wanted None, got *"),
        (Layer(1, (2,)), Layer(1, 2), "at .bias: wanted (*,), got *"),
    ],
)
def test_difference_says_where(wanted: Any, got: Any, words: str) -> None:
    first, second = tree.flatten(wanted)[1], tree.flatten(got)[1]
    said = tree.difference(first, second)
    assert said is not None and words in said
    assert tree.difference(first, first) is None


def test_map_applies_a_function_to_corresponding_leaves() -> None:
    assert tree.map(lambda a, b: a + b, {"a": (1, 2)}, {"a": (10, 20)}) == {"a": (11, 22)}


def test_map_refuses_two_structures() -> None:
    with pytest.raises(InputError, match=r"wanted \(\*, \*\), got \[\*, \*\]"):
        tree.map(max, (1, 2), [1, 2])


def test_unflatten_refuses_a_wrong_number_of_leaves() -> None:
    with pytest.raises(InputError, match="has 2 leaves, got 3"):
        tree.unflatten(tree.flatten((1, 2))[1], [1, 2, 3])


def test_flatten_refuses_dict_keys_without_an_order() -> None:
    with pytest.raises(InputError, match="use keys of one type"):
        tree.flatten({1: 0, "a": 0})
