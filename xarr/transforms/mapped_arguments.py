"""Axes and other words on arguments and results, in a pytree that is a prefix of theirs, as `vmap` takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from xarr import tree
from xarr.errors import ArgumentError, InputError, ShapeError
from xarr.shapes import normalize_axis

_NOUNS: Final = {"in": "arguments, a tuple", "out": "results"}


def words_of(
    function: str, what: str, prefix: Any, values: Any, wanted: str, is_word: Callable[[Any], bool]
) -> list[Any]:
    """The word on each leaf of `values`, or None: that of the part of `prefix` in which the leaf lies.

    Raises ArgumentError for what is no word, and for what is no prefix.
    """
    leaves, structure = tree.flatten(prefix, is_leaf=lambda each: each is None or is_word(each))
    for leaf in leaves:
        if leaf is not None and not is_word(leaf):
            raise ArgumentError(f"{function}: wanted {wanted} in {what}, got {leaf!r}")
    try:
        parts = structure.flatten_up_to(values)
    except InputError as error:
        noun = _NOUNS[what.partition("_")[0]]
        raise ArgumentError(f"{function}: {what} is no prefix of the {noun}: {error}") from None
    return [leaf for leaf, part in zip(leaves, parts, strict=True) for _ in tree.flatten(part)[0]]


def axes_of(function: str, what: str, axes: Any, values: Any) -> list[int | None]:
    """The axis of each leaf of `values`, None for none."""
    return words_of(function, what, axes, values, "ints or None", lambda each: type(each) is int)


def axis_of(function: str, path: str, axis: int, shape: Sequence[int], otherwise: str) -> int:
    """The axis of an argument, counted from the front; ShapeError, which says what None is for, where it has none."""
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(
            f"{function}: {path}: wanted an array with axis {axis}, which is mapped, got one of shape {tuple(shape)}; "
            f"in_axes says which axis of each argument is mapped, None that {otherwise}"
        )
    return normalize_axis(axis, len(shape))
