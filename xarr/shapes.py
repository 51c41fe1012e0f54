"""Shapes: an element type, the sizes of the dimensions, and the layout in memory.

A `Shape` prints and parses as XLA writes it, `f32[2,3]{1,0}`: element type, sizes, and the dimensions
from the most minor to the most major.  A `TupleShape` is a tuple of shapes, `(f32[2]{0}, s32[])`.

    shape   ::= array | tuple
    tuple   ::= "(" [shape {"," shape}] ")"
    array   ::= element-type "[" [size {"," size}] "]" [layout]
    size    ::= integer | "<=" integer
    layout  ::= "{" [integer {"," integer}] [":" padding] "}"
    padding ::= "pad(" [integer {"," integer}] ")" ["=" number]

`padding` is ours: XLA's text has no form for padded dimensions.  The functions here convert between
multi-indices and linear indices, as XLA's `index_util.h` does, and `pack` an array into linear memory
and `unpack` it again.  `xarr.base.layouts` says what a layout is.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeAlias

import numpy as np

from xarr.base.layouts import (
    DIMENSION_LETTERS,
    MAX_SIZE,
    Layout,
    PaddingValue,
    Scanner,
    Sizes,
    bracket,
    check_sizes,
    index_at,
    integer_of,
    items_of,
    normalize_axes,
    normalize_axis,
    parse_layout,
)
from xarr.dtypes import canonical, from_xla_name, xla_name
from xarr.errors import (
    DTypeError,
    IndexingError,
    InputError,
    ParseError,
    ShapeError,
    ValueRangeError,
    pluralize,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = [
    "DIMENSION_LETTERS",
    "AnyShape",
    "Layout",
    "PaddingValue",
    "Shape",
    "Sizes",
    "TupleShape",
    "check_sizes",
    "indices",
    "linear_to_multi_index",
    "multi_index_to_linear",
    "normalize_axes",
    "normalize_axis",
    "pack",
    "parse_shape",
    "unpack",
]

_DEEPEST: Final = 100


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Shape:
    """The element type, sizes and layout of an array.

    `layout` is row-major unless given, as XLA's is.  `dynamic_dimensions` marks, with one bool for
    each dimension, those whose size is only known when the program runs; for them `dimensions` holds
    the upper bound.  Raises ShapeError for sizes or a layout that do not fit, DTypeError for an
    element type that xarr has not.
    """

    dtype: np.dtype[Any]
    dimensions: tuple[int, ...]
    layout: Layout
    dynamic_dimensions: tuple[bool, ...]

    def __init__(
        self,
        dtype: DTypeLike,
        dimensions: Sizes,
        layout: Layout | None = None,
        dynamic_dimensions: Iterable[bool] | None = None,
    ) -> None:
        sizes = check_sizes(dimensions, name="dimensions")
        layout = Layout.row_major(len(sizes)) if layout is None else layout
        if not isinstance(layout, Layout):
            raise InputError(f"layout must be a Layout, got {layout!r}; Layout({layout!r}) may make one")
        layout.check(sizes)
        object.__setattr__(self, "dtype", _element_type(dtype))
        object.__setattr__(self, "dimensions", sizes)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "dynamic_dimensions", _check_dynamic(dynamic_dimensions, len(sizes)))

    @classmethod
    def parse(cls, text: str) -> Shape:
        """The shape of an array that `text` writes, such as `f32[2,3]{1,0}` or `f32[<=10,3]`.

        White space between tokens does not matter, and a missing layout means row-major.  Raises
        ParseError, which shows the character and what was expected there.
        """
        shape = parse_shape(text)
        if not isinstance(shape, cls):
            raise ParseError(f"{text.strip()!r} is a tuple of shapes; TupleShape.parse reads it")
        return shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dimensions)

    @property
    def true_rank(self) -> int:
        """The number of dimensions of a size greater than 1."""
        return sum(size > 1 for size in self.dimensions)

    @property
    def size(self) -> int:
        """The number of elements, without padding."""
        return math.prod(self.dimensions)

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, without padding."""
        return self.size * self.itemsize

    @property
    def allocated_nbytes(self) -> int:
        """The bytes of linear memory under the layout, with padding."""
        return self.layout.allocated_size(self.dimensions) * self.itemsize

    @property
    def is_dynamic(self) -> bool:
        """Whether the size of some dimension is only an upper bound."""
        return any(self.dynamic_dimensions)

    def dimension(self, number: SupportsIndex) -> int:
        """The size of dimension `number`; -1 is the last dimension.  Raises AxisError."""
        return self.dimensions[normalize_axis(number, self.rank, name="dimension")]

    def __str__(self) -> str:
        sizes = ",".join(
            f"<={size}" if dynamic else str(size)
            for size, dynamic in zip(self.dimensions, self.dynamic_dimensions, strict=True)
        )
        layout = str(self.layout)
        return f"{xla_name(self.dtype)}[{sizes}]{layout if layout != '{}' else ''}"

    def __repr__(self) -> str:
        return f"Shape.parse({str(self)!r})"


@dataclass(frozen=True, init=False, repr=False, slots=True)
class TupleShape:
    """A tuple of shapes, which may be tuples themselves; prints as `(f32[2]{0}, (s32[]))`."""

    elements: tuple[AnyShape, ...]

    def __init__(self, elements: Iterable[AnyShape]) -> None:
        items = tuple(elements)
        for position, element in enumerate(items):
            if not isinstance(element, Shape | TupleShape):
                raise InputError(
                    f"element {position} of a TupleShape must be a Shape or a TupleShape, got {element!r}"
                )
        object.__setattr__(self, "elements", items)

    @classmethod
    def parse(cls, text: str) -> TupleShape:
        """The tuple of shapes that `text` writes; raises ParseError."""
        shape = parse_shape(text)
        if not isinstance(shape, cls):
            raise ParseError(f"{text.strip()!r} is the shape of an array; Shape.parse reads it")
        return shape

    @property
    def nbytes(self) -> int:
        """The bytes of all elements of all arrays, without padding."""
        return sum(element.nbytes for element in self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __iter__(self) -> Iterator[AnyShape]:
        return iter(self.elements)

    def __getitem__(self, position: SupportsIndex) -> AnyShape:
        return self.elements[position]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"

    def __repr__(self) -> str:
        return f"TupleShape.parse({str(self)!r})"


AnyShape: TypeAlias = Shape | TupleShape


def _element_type(dtype: DTypeLike) -> np.dtype[Any]:
    """`dtype` as an element type; the string u8 is refused, since NumPy means uint64 by it and XLA uint8."""
    if isinstance(dtype, str):
        try:
            xla = from_xla_name(dtype)
        except DTypeError:
            return canonical(dtype)
        raise DTypeError(
            f"{dtype!r} is XLA's name of a type, which NumPy reads differently or not at all; "
            f"write {xla.name!r}, or Shape.parse('{dtype}[...]')"
        )
    if not isinstance(dtype, Hashable) or isinstance(dtype, tuple):
        raise DTypeError(f"a structured dtype is not an element type: {dtype!r}")
    return canonical(dtype)


def _check_dynamic(dynamic: Iterable[bool] | None, rank: int) -> tuple[bool, ...]:
    if dynamic is None:
        return (False,) * rank
    flags = items_of(dynamic)
    if len(flags) != rank or not all(isinstance(flag, bool | np.bool_) for flag in flags):
        raise ShapeError(f"dynamic_dimensions must be {rank} bools, one for each dimension, got {flags}")
    return tuple(map(bool, flags))


# Text


def parse_shape(text: str) -> AnyShape:
    """The shape, of an array or a tuple, that `text` writes; raises ParseError."""
    scanner = Scanner(text, "shape")
    shape = _parse_any(scanner, _DEEPEST)
    scanner.finish()
    return shape


def _parse_any(scanner: Scanner, depth: int) -> AnyShape:
    if not scanner.peek("("):
        return _parse_array(scanner)
    if not depth:
        raise scanner.error(f"tuples nested deeper than {_DEEPEST}", scanner.mark())
    scanner.expect("(")
    elements = scanner.items(lambda: _parse_any(scanner, depth - 1), ")")
    scanner.expect(")")
    return TupleShape(elements)


def _parse_array(scanner: Scanner) -> Shape:
    start = scanner.mark()
    name = scanner.take("[a-z][a-z0-9]*", "an element type such as 'f32', or '('")
    try:
        dtype = from_xla_name(name)
    except DTypeError as error:
        raise scanner.error(str(error), start) from error
    scanner.expect("[")
    sizes = scanner.items(lambda: _parse_size(scanner), "]")
    scanner.expect("]")
    dimensions = tuple(size for size, _ in sizes)
    mark = scanner.mark()
    layout = parse_layout(scanner) if scanner.peek("{") else None
    try:
        return Shape(dtype, dimensions, layout, tuple(dynamic for _, dynamic in sizes))
    except ShapeError as error:
        raise scanner.error(str(error), mark) from error


def _parse_size(scanner: Scanner) -> tuple[int, bool]:
    """A size, and whether it is the upper bound of a dynamic one."""
    dynamic = scanner.accept("<=")
    if scanner.peek("?"):
        raise scanner.error(
            "a size without a bound is not allowed here; write '<=10' for one of at most 10", scanner.mark()
        )
    return scanner.integer("the bound of a size" if dynamic else "a size"), dynamic


# Indices


def multi_index_to_linear(index: Sizes, shape: Shape | Sizes, layout: Layout | None = None) -> int:
    """The offset in linear memory, in elements, of the element at `index`.

    `index` has one integer for each dimension of `shape`, a Shape or bare sizes.  `layout` is that of
    the Shape unless given, and row-major for bare sizes.  The steps skip what a padded layout pads.
    Raises IndexingError for an index out of bounds or of another length than the rank.
    """
    sizes, layout = _resolve(shape, layout)
    numbers = tuple(
        integer_of(item, IndexingError, "an index must be an integer") for item in items_of(index)
    )
    if len(numbers) != len(sizes):
        raise IndexingError(
            f"the index {numbers} has {len(numbers)} numbers, but {bracket(sizes)} has rank {len(sizes)}"
        )
    for dimension, (number, size) in enumerate(zip(numbers, sizes, strict=True)):
        if not 0 <= number < size:
            legal = f"legal are 0 … {size - 1}" if size else "it has size 0"
            raise IndexingError(
                f"index {number} is out of bounds for dimension {dimension} of {bracket(sizes)}; {legal}"
            )
    return sum(number * stride for number, stride in zip(numbers, layout.strides(sizes), strict=True))


def linear_to_multi_index(
    linear: SupportsIndex, shape: Shape | Sizes, layout: Layout | None = None
) -> tuple[int, ...]:
    """The index of the element at offset `linear` in memory; inverse of `multi_index_to_linear`.

    Raises IndexingError for an offset outside of memory, or one that holds padding.
    """
    sizes, layout = _resolve(shape, layout)
    offset = integer_of(linear, IndexingError, "a linear index must be an integer")
    count = layout.allocated_size(sizes)
    if not 0 <= offset < count:
        legal = f"0 … {count - 1}" if count else "none: there are no elements"
        raise IndexingError(
            f"linear index {offset} is out of bounds for {bracket(sizes)} with layout {layout}; "
            f"legal are {legal}"
        )
    widths = layout.widths(sizes)
    index = index_at(offset, widths, layout.minor_to_major)
    if any(number >= size for number, size in zip(index, sizes, strict=True)):
        raise IndexingError(
            f"linear index {offset} falls in the padding: it is {index} in the padded {bracket(widths)}, "
            f"outside of {bracket(sizes)}"
        )
    return index


def indices(shape: Shape | Sizes, layout: Layout | None = None) -> Iterator[tuple[int, ...]]:
    """The index of each element, in the order of memory (padding is passed over), one at a time."""
    sizes, layout = _resolve(shape, layout)
    return _count_up(sizes, layout.minor_to_major)


def _count_up(sizes: tuple[int, ...], minor_to_major: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    index = [0] * len(sizes)
    exhausted = 0 in sizes
    while not exhausted:
        yield tuple(index)
        for dimension in minor_to_major:
            index[dimension] += 1
            if index[dimension] < sizes[dimension]:
                break
            index[dimension] = 0
        else:
            exhausted = True


def _resolve(shape: Shape | Sizes, layout: Layout | None) -> tuple[tuple[int, ...], Layout]:
    if isinstance(shape, Shape):
        sizes, layout = shape.dimensions, shape.layout if layout is None else layout
    else:
        sizes = check_sizes(shape)
        layout = Layout.row_major(len(sizes)) if layout is None else layout
    return layout.check(sizes), layout


# Linear memory


def pack(array: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    """The linear memory of `array` under `layout`: a new 1-d array, with padding, of the same dtype.

    Raises ShapeError if the layout does not fit the array's shape, ValueRangeError if the array's
    dtype cannot hold the padding value, InputError if `array` is not a NumPy array.
    """
    array = _ndarray(array, "pack")
    sizes = layout.check(array.shape)
    data = array.transpose(layout.major_to_minor)
    if layout.padded_dimensions is None:
        return data.flatten()
    memory = np.full(_physical(layout, sizes, array.itemsize), _padding(layout, array.dtype), array.dtype)
    memory[_slices_without_padding(layout, sizes)] = data
    return memory.reshape(-1)


def unpack(memory: np.ndarray[Any, Any], dimensions: Sizes, layout: Layout) -> np.ndarray[Any, Any]:
    """The array of size `dimensions` that lies in linear `memory` under `layout`: a new C-ordered array.

    What the padding holds is not looked at.  Raises ShapeError if `memory` is not 1-d, has not exactly
    `layout.allocated_size(dimensions)` elements, or the layout does not fit the dimensions.
    """
    sizes = layout.check(dimensions)
    count = layout.allocated_size(sizes)
    memory = _ndarray(memory, "unpack")
    if memory.shape != (count,):
        raise ShapeError(
            f"{bracket(sizes)} with layout {layout} lies in 1-d memory of {pluralize(count, 'element')}, "
            f"got an array of shape {memory.shape}"
        )
    physical = memory.reshape(_physical(layout, sizes, memory.itemsize))[
        _slices_without_padding(layout, sizes)
    ]
    return physical.transpose(np.argsort(layout.major_to_minor)).copy()


def _ndarray(value: object, function: str) -> np.ndarray[Any, Any]:
    if not isinstance(value, np.ndarray | np.generic):  # NumPy's arithmetic makes scalars of 0-d arrays
        raise InputError(
            f"{function} wants a NumPy array, got {type(value).__name__}; numpy.asarray makes one"
        )
    if value.dtype.hasobject:
        raise DTypeError(f"{function} wants elements of a fixed size, got dtype {value.dtype}")
    return np.asarray(value)


def _physical(layout: Layout, sizes: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The widths as memory sees them, from the most major dimension to the most minor."""
    widths = layout.widths(sizes)
    if math.prod(max(width, 1) for width in widths) * itemsize > MAX_SIZE:
        raise ValueRangeError(f"{bracket(sizes)} with layout {layout} takes more than 2**63 bytes")
    return tuple(widths[dimension] for dimension in layout.major_to_minor)


def _slices_without_padding(layout: Layout, sizes: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(sizes[dimension]) for dimension in layout.major_to_minor)


def _padding(layout: Layout, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    value = layout.padding_value
    try:
        padding = _cast(value, dtype)
    except (OverflowError, TypeError):
        padding = None
    if padding is None or not _holds(padding, value):
        raise ValueRangeError(f"dtype {dtype} cannot hold the padding value {value!r} of layout {layout}")
    return padding


def _cast(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if isinstance(value, complex) and dtype.kind not in "cUS":
        raise TypeError("a complex number is not real")
    with np.errstate(all="ignore"):
        return np.asarray(str(value) if dtype.kind in "US" else value).astype(dtype)


def _holds(padding: np.ndarray[Any, Any], value: Any) -> bool:
    """Whether `padding` is `value`; floats may round, but not become inf or nan."""
    if padding.dtype.kind in "US":
        return str(padding.astype(str)) == str(value)
    if padding.dtype.kind in "biu":
        return bool(int(padding) == value)
    got, wanted = complex(padding.astype(np.complex128)), complex(value)
    return cmath.isnan(got) == cmath.isnan(wanted) and cmath.isfinite(got) == cmath.isfinite(wanted)
