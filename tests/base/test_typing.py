"""The class `Array` as lower modules annotate with it."""

import typing

import xarr
from xarr.base.typing import Array


def test_annotations_of_public_functions_evaluate() -> None:
    for function in (xarr.sum, xarr.lax.exp, xarr.random.normal, xarr.linalg.norm):
        assert typing.get_type_hints(function)["return"] is Array


def test_every_array_has_what_the_protocol_names() -> None:
    array = xarr.ones((2, 3))
    assert all(hasattr(array, name) for name in (*typing.get_type_hints(Array), "__array__"))
