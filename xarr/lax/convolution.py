"""Convolutions of the explicit level, with any number of spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from numpy.typing import DTypeLike

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import canonical
from xarr.errors import InputError, ShapeError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr.ir.windows import PADDINGS, dilate_size, named_padding
from xarr.lax.contraction import precisions
from xarr.lax.core import ArrayLike, integer, integers, operands
from xarr.runtime.handles import wrap
from xarr.shapes import check_sizes

Pairs = tuple[tuple[int, int], ...]

_NAME: Final = "conv_general_dilated"
#: The letters of batch and feature, or output and input feature, in the three strings.
_LETTERS: Final = ("NC", "OI", "NC")


class ConvDimensionNumbers(NamedTuple):
    """Which dimension of lhs, kernel and output is which.  Source: jax.lax.

    * `lhs_spec`, `out_spec` - (batch, feature, spatial …),
    * `rhs_spec` - (output feature, input feature, spatial …).
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


#: Three strings such as ("NHWC", "HWIO", "NHWC"), ConvDimensionNumbers of this library or JAX's, or None.
ConvGeneralDilatedDimensionNumbers: TypeAlias = tuple[str, str, str] | ConvDimensionNumbers | None


@names_errors
def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """`dimension_numbers` as three tuples of dimensions.

    dimension_numbers: three strings with one character per dimension: N is the batch, C the feature, O and I
        the kernel's output and input feature; other characters are spatial dimensions, in the order in which
        the kernel has them.  ("NCHW", "OIHW", "NCHW"), for any number of spatial dimensions, if it is None.

    Raises ShapeError for shapes of two ranks, InputError for strings that do not fit them.
    Source: jax.lax.conv_dimension_numbers.
    """
    if hasattr(dimension_numbers, "lhs_spec"):
        return _numbers(dimension_numbers)
    left, right = check_sizes(lhs_shape), check_sizes(rhs_shape)
    rank = len(left)
    if len(right) != rank:
        raise ShapeError(f"{_NAME} [C1]: wanted arrays of one rank, got shapes {left} and {right}")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if (
        not isinstance(dimension_numbers, tuple | list)
        or len(dimension_numbers) != 3
        or not all(isinstance(spec, str) for spec in dimension_numbers)
    ):
        raise InputError(
            f"{_NAME}: wanted dimension_numbers such as ('NHWC', 'HWIO', 'NHWC'), ConvDimensionNumbers or "
            f"None, got {dimension_numbers!r}"
        )
    for spec, letters in zip(dimension_numbers, _LETTERS, strict=True):
        _check_spec(spec, letters, rank)
    return _permutations(*dimension_numbers)


def _numbers(numbers: Any) -> ConvDimensionNumbers:
    fields = ConvDimensionNumbers._fields
    missing = [field for field in fields if not hasattr(numbers, field)]
    if missing:
        raise InputError(f"{_NAME}: wanted ConvDimensionNumbers, got {numbers!r}, without {missing}")
    return ConvDimensionNumbers(*[integers(_NAME, field, getattr(numbers, field)) for field in fields])


def _check_spec(spec: str, letters: str, rank: int) -> None:
    if len(spec) != rank or len(set(spec)) != rank or not set(letters) <= set(spec):
        raise InputError(
            f"{_NAME}: wanted {rank} different characters, {letters[0]} and {letters[1]} among them, for the "
            f"dimensions of an array of rank {rank}, got {spec!r}"
        )


def _permutations(lhs: str, rhs: str, out: str) -> ConvDimensionNumbers:
    spatial = [letter for letter in rhs if letter not in _LETTERS[1]]
    for spec, letters in ((lhs, _LETTERS[0]), (out, _LETTERS[2])):
        if set(spec) - set(letters) != set(spatial):
            raise InputError(
                f"{_NAME}: wanted the same spatial dimensions in all of dimension_numbers, "
                f"got {(lhs, rhs, out)}"
            )
    specs = zip((lhs, rhs, out), _LETTERS, strict=True)
    return ConvDimensionNumbers(*[tuple(map(spec.index, (*letters, *spatial))) for spec, letters in specs])


@names_errors
def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    window_reversal: Sequence[bool] | None = None,
) -> Array:
    """Sums of products of the kernel `rhs` with the windows of `lhs`.

    lhs: array of rank n + 2: a batch, features, and n >= 0 spatial dimensions.
    rhs: kernel of rank n + 2: output features, input features, spatial dimensions; of lhs's element type.
    window_strides: n steps between windows.
    padding: "VALID", "SAME", "SAME_LOWER", or n pairs (low, high) of zeros to add around; negative ones cut off.
    lhs_dilation: n distances between the elements of lhs, for transposed convolution; 1 by default.
    rhs_dilation: n distances between the elements of the kernel; 1 by default.
    dimension_numbers: as conv_dimension_numbers takes them.
    feature_group_count: how many groups of features see nothing of each other; the features of lhs make a
        depthwise convolution.
    batch_group_count: how many groups the batch falls into, each with its run of the output features.
    precision: as `dot` takes it.
    preferred_element_type: the result's element type; by default that of the operands.
    window_reversal: n flags, whether to read the kernel from its end: what mathematicians call convolution.

    Returns an Array of the batch, the kernel's output features and the windows, placed as dimension_numbers
    say.  Narrow floats accumulate in float32, integers wrap, bools combine by "or" of "and".
    Raises ShapeError [C1]-[C25], DTypeError [C27], InputError for padding by name beside lhs_dilation.
    Source: XLA's ConvGeneralDilated with jax.lax's arguments; window_reversal as StableHLO has it.
    """
    left, right = operands(_NAME, lhs, rhs)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    rank = max(len(right.shape) - 2, 0)
    strides = integers(_NAME, "window_strides", window_strides)
    base = _dilations("lhs_dilation", lhs_dilation, rank)
    kernel = _dilations("rhs_dilation", rhs_dilation, rank)
    if isinstance(padding, str):
        pads = _padding_by_name(padding, left, right, numbers, strides, base, kernel)
    else:
        pads = _pairs(padding)
    op = ops.Convolution(
        lhs_spec=tuple(numbers.lhs_spec),
        rhs_spec=tuple(numbers.rhs_spec),
        out_spec=tuple(numbers.out_spec),
        window_strides=strides,
        padding=pads,
        lhs_dilation=base,
        rhs_dilation=kernel,
        window_reversal=(False,) * rank if window_reversal is None else tuple(map(bool, window_reversal)),
        feature_group_count=integer(_NAME, "feature_group_count", feature_group_count),
        batch_group_count=integer(_NAME, "batch_group_count", batch_group_count),
        dtype=left.dtype if preferred_element_type is None else canonical(preferred_element_type),
        precision=precisions(_NAME, precision),
    )
    return wrap(Node(op, (left, right)))


def _dilations(argument: str, dilation: Sequence[int] | None, rank: int) -> Ints:
    return (1,) * rank if dilation is None else integers(_NAME, argument, dilation)


def _pairs(padding: Any) -> Pairs:
    try:
        return tuple(
            [(integer(_NAME, "padding", low), integer(_NAME, "padding", high)) for low, high in padding]
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{_NAME}: wanted one of {', '.join(PADDINGS)} or pairs (low, high) for padding, got {padding!r}"
        ) from None


def _padding_by_name(
    padding: str,
    lhs: Node,
    rhs: Node,
    numbers: ConvDimensionNumbers,
    strides: Ints,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
) -> Pairs:
    if any(dilation != 1 for dilation in lhs_dilation):
        raise InputError(
            f"{_NAME}: padding {padding!r} beside lhs_dilation {lhs_dilation} could mean two things; give pairs "
            "(low, high), or use conv_transpose"
        )
    base, sizes = (
        [array.shape[dim] for dim in spec[2:] if 0 <= dim < len(array.shape)]
        for array, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec))
    )
    if len(sizes) != len(rhs_dilation):
        raise ShapeError(
            f"{_NAME} [C7]: wanted {len(sizes)} rhs_dilation, one for each dimension of the spatial ones, "
            f"got {rhs_dilation}"
        )
    extents = [dilate_size(size, dilation) for size, dilation in zip(sizes, rhs_dilation, strict=True)]
    return named_padding(_NAME, padding, base, extents, strides)


@names_errors
def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums of products of a kernel with windows, with dimensions (batch, feature, spatial …).

    lhs: [batch, input features, spatial …].  rhs: [output features, input features, spatial …].
    Other arguments, result and errors as conv_general_dilated.  Source: XLA's Conv, jax.lax.conv.
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@names_errors
def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv` with dilations.

    Arguments, result and errors as conv_general_dilated.  Source: XLA's ConvWithGeneralPadding,
    jax.lax.conv_with_general_padding.
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@names_errors
def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """The transpose of a convolution with these strides: it spreads lhs out by them.

    lhs, rhs: as conv_general_dilated, but by default with dimensions (batch, spatial …, feature) and
        (spatial …, input feature, output feature).
    strides: n steps of the convolution whose transpose this is.
    padding: "SAME" or "VALID", as of that convolution; pairs (low, high) are the zeros to add here, or, with
        `use_consistent_padding`, those of that convolution.
    transpose_kernel: whether to read the kernel from its end and to swap its features, as the gradient of a
        convolution does.

    Errors as conv_general_dilated.  Source: jax.lax.conv_transpose.
    """
    left, right = operands(_NAME, lhs, rhs)
    rank = len(right.shape)
    if rank < 2 or len(left.shape) != rank:
        raise ShapeError(
            f"conv_transpose [C1]: wanted arrays of one rank of at least 2, got {left.tensor_type.short()} and "
            f"{right.tensor_type.short()}"
        )
    if dimension_numbers is None:
        last = (0, rank - 1, *range(1, rank - 1))
        numbers = ConvDimensionNumbers(last, (rank - 1, rank - 2, *range(rank - 2)), last)
    else:
        numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    steps = integers("conv_transpose", "strides", strides)
    dilation = _dilations("rhs_dilation", rhs_dilation, rank - 2)
    pads = padding if isinstance(padding, str) else _pairs(padding)
    if use_consistent_padding or pads in ("SAME", "VALID"):
        sizes = [right.shape[dim] for dim in numbers.rhs_spec[2:] if 0 <= dim < rank]
        pads = _transposed_padding(pads, sizes, steps, dilation)
    out, into, *spatial = numbers.rhs_spec
    return conv_general_dilated(
        wrap(left),
        wrap(right),
        (1,) * (rank - 2),
        pads,
        steps,
        dilation,
        numbers._replace(rhs_spec=(into, out, *spatial)) if transpose_kernel else numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        window_reversal=[bool(transpose_kernel)] * (rank - 2),
    )


def _transposed_padding(padding: str | Pairs, sizes: Sequence[int], strides: Ints, dilation: Ints) -> Pairs:
    """The padding of the transpose of a convolution with this padding, kernel, strides and dilation."""
    rows = [padding] * len(sizes) if isinstance(padding, str) else list(padding)
    if not len(rows) == len(sizes) == len(strides) == len(dilation):
        raise ShapeError(
            f"conv_transpose: wanted padding, strides and rhs_dilation for {len(sizes)} spatial dimensions, got "
            f"{padding!r}, {strides} and {dilation}"
        )
    extents = [dilate_size(size, step) for size, step in zip(sizes, dilation, strict=True)]
    return tuple(map(_transposed_pair, rows, extents, strides))


def _transposed_pair(padding: str | tuple[int, int], extent: int, stride: int) -> tuple[int, int]:
    if padding == "SAME":
        total = extent + stride - 2
        low = extent - 1 if stride > extent - 1 else -(-total // 2)
        return low, total - low
    if padding == "VALID":
        return extent - 1, stride - 1 + max(extent - stride, 0)
    if isinstance(padding, str):
        raise InputError(f"conv_transpose: wanted 'SAME', 'VALID' or pairs (low, high), got {padding!r}")
    return extent - 1 - padding[0], extent - 1 - padding[1]
