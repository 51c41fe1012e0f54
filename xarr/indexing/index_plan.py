"""The dimensions of an index with arrays: NumPy's rule, on shapes alone.

The arrays of an index broadcast among themselves to one shape, the *batch*.  Its dimensions stand in the result
where the arrays stood in the index; if something stood between the arrays (a slice, `...` or None), they come
first.  Ints count as arrays as soon as there is one array.  Source: NumPy, advanced indexing.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from xarr.base.frozen_dataclasses import record
from xarr.errors import IndexingError, IndexTypeError, TracedValueError, pluralize
from xarr.indexing.basic import BasicIndex
from xarr.indexing.bounds import Mode, out_of_bounds
from xarr.indexing.items import IndexArray, Item, KnownInt, Mask, count_dimensions
from xarr.ir.types import Ints


class ShapePart(Enum):
    """A part of the result's shape: a new dimension, one of the array, or all those of the batch."""

    NEW = "new"
    KEPT = "kept"
    BATCH = "batch"


@record(eq=False)
class IndexPlan:
    """The way of an index with arrays through the dimensions of an array of `shape`.

    * `region` - what its ints and slices leave of the array; dimensions with arrays stay whole,
    * `groups` - dimensions of the region that go together: one that is kept, one that an array of integers
      indexes, or all those that a mask is about; `indexed` - which array of `arrays` that is, None if kept,
    * `arrays` - the index's arrays that are about a dimension, `scalars` - its bools without dimensions,
    * `axes` - for each of `arrays` the dimension of the array where it begins,
    * `tokens` - the dimensions of the result, `separated` - whether the batch had to come first.
    """

    shape: Ints
    region: BasicIndex
    groups: tuple[Ints, ...]
    indexed: tuple[int | None, ...]
    arrays: tuple[IndexArray | Mask, ...]
    scalars: tuple[Mask, ...]
    axes: Ints
    tokens: tuple[ShapePart, ...]
    separated: bool

    @property
    def inner(self) -> Ints:
        """The shape of the region."""
        return self.region.shape

    @property
    def folded_shape(self) -> Ints:
        """The shape of the region with the dimensions of each mask as one."""
        return tuple([_product([self.inner[dim] for dim in group]) for group in self.groups])

    @property
    def kept_sizes(self) -> Ints:
        """The sizes of the dimensions that no array is about."""
        rows = zip(self.groups, self.indexed, strict=True)
        return tuple([self.inner[dim] for group, array in rows if array is None for dim in group])

    @property
    def batch_position(self) -> int:
        """The number of kept dimensions before those of the batch."""
        return self.tokens[: self.tokens.index(ShapePart.BATCH)].count(ShapePart.KEPT)

    def result_without_new(self, batch: Ints) -> Ints:
        """The shape of the result without new dimensions."""
        return self.kept_sizes[: self.batch_position] + batch + self.kept_sizes[self.batch_position :]

    def result(self, batch: Ints) -> Ints:
        """The shape of the result."""
        kept = iter(self.kept_sizes)
        sizes: list[int] = []
        for token in self.tokens:
            sizes += batch if token is ShapePart.BATCH else (1,) if token is ShapePart.NEW else (next(kept),)
        return tuple(sizes)


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def layout_of(items: Sequence[Item], shape: Ints, mode: Mode) -> IndexPlan | BasicIndex:
    """The layout of items that name every dimension of `shape`; a Region if no array is among them.

    Raises IndexingError for an int out of bounds, if the mode is "error", and a mask of another shape.
    """
    items = _arrays_for_ints_out_of_bounds(items, shape, mode)
    if not any(isinstance(item, IndexArray | Mask) for item in items):
        return BasicIndex.of(items, shape)  # type: ignore[arg-type]
    axis = 0
    for item in items:
        if isinstance(item, Mask):
            _check_mask(item, shape, axis)
        axis += count_dimensions(item)
    arrays = tuple([item for item in items if isinstance(item, IndexArray | Mask) and count_dimensions(item)])
    scalars = tuple([item for item in items if isinstance(item, Mask) and not item.shape])
    forms = tuple([_form(item) for item in items])
    region, groups, indexed, axes, tokens, separated = _without_values(forms, shape)
    return IndexPlan(shape, region, groups, indexed, arrays, scalars, axes, tokens, separated)


#: An item without its values, to be looked up: a slice as its three parts, an array as how many dimensions it is about.
Form = tuple[Any, Any, Any] | int | str | None
_OF_BOOLS: Final = "bools "
_OF_INTEGERS: Final = "integers"


def _form(item: Item) -> Form:
    if isinstance(item, slice):
        return _bound(item, item.start), _bound(item, item.stop), _bound(item, item.step)
    if isinstance(item, IndexArray):
        return _OF_INTEGERS
    if isinstance(item, Mask):
        return f"{_OF_BOOLS}{len(item.shape)}"
    return "..." if item is Ellipsis else item


def _bound(item: slice, part: Any) -> int | None:
    """A part of a slice as an int, since the cache would take 1.0 for 1."""
    if part is None or type(part) is int:
        return part
    try:
        return operator.index(part)
    except TracedValueError:
        raise
    except TypeError:
        raise IndexTypeError(f"wanted ints or None in a slice, got {item}") from None


@lru_cache(maxsize=4096)
def _without_values(
    forms: tuple[Form, ...], shape: Ints
) -> tuple[BasicIndex, tuple[Ints, ...], tuple[int | None, ...], Ints, tuple[ShapePart, ...], bool]:
    """The fields of a layout that depend on no values, in order."""
    basic: list[slice | int] = []
    groups: list[Ints] = []
    indexed: list[int | None] = []
    axes: list[int] = []
    dim = 0
    for form in forms:
        if isinstance(form, int):
            basic.append(form)
        elif isinstance(form, tuple):
            basic.append(slice(*form))
            groups.append((dim,))
            indexed.append(None)
            dim += 1
        elif count := _dimensions(form):
            axes.append(len(basic))
            basic += [slice(None)] * count
            groups.append(tuple(range(dim, dim + count)))
            indexed.append(len(axes) - 1)
            dim += count
    tokens, separated = _tokens(forms)
    return BasicIndex.of(basic, shape), tuple(groups), tuple(indexed), tuple(axes), tokens, separated


def _dimensions(form: str | None) -> int:
    """The number of dimensions that an array item is about; 0 for other items."""
    if form == _OF_INTEGERS:
        return 1
    return int(form.removeprefix(_OF_BOOLS)) if form and form.startswith(_OF_BOOLS) else 0


def _arrays_for_ints_out_of_bounds(items: Sequence[Item], shape: Ints, mode: Mode) -> list[Item]:
    """The items, where ints out of bounds are arrays if the mode allows them."""
    result: list[Item] = []
    axis = 0
    for item in items:
        if isinstance(item, int) and not -shape[axis] <= item < shape[axis]:
            if mode is Mode.ERROR and not isinstance(item, KnownInt):
                raise out_of_bounds(item, axis, shape[axis], shape)
            item = item.as_array() if isinstance(item, KnownInt) else IndexArray.of_int(item)
        result.append(int(item) if isinstance(item, KnownInt) else item)
        axis += count_dimensions(item)
    return result


def _check_mask(mask: Mask, shape: Ints, axis: int) -> None:
    wanted = shape[axis : axis + len(mask.shape)]
    # An empty mask may have 0 for any size, as in NumPy.
    if any(own not in (0, size) for own, size in zip(mask.shape, wanted, strict=True)):
        raise IndexingError(
            f"wanted a boolean mask of shape {wanted} for dimensions {axis} to {axis + len(wanted) - 1} of an "
            f"array of shape {shape}, got {mask.shape}"
            if len(wanted) > 1
            else f"wanted a boolean mask of {pluralize(wanted[0], 'element')} for dimension {axis} of an array of "
            f"shape {shape}, got {mask.shape[0]}"
        )


def _tokens(forms: Sequence[Form]) -> tuple[tuple[ShapePart, ...], bool]:
    is_array = [isinstance(form, int) or (isinstance(form, str) and form != "...") for form in forms]
    first = is_array.index(True)
    count = sum(is_array)
    separated = not all(is_array[first : first + count])
    tokens: list[ShapePart] = []
    for position, form in enumerate(forms):
        if position == first and not separated:
            tokens.append(ShapePart.BATCH)
        if form is None or isinstance(form, tuple):
            tokens.append(ShapePart.KEPT if form is not None else ShapePart.NEW)
    return tuple([ShapePart.BATCH, *tokens] if separated else tokens), separated
