"""Sums of products over indices that have names: `einsum`, which is contractions of two arrays at a time."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.frozen_dataclasses import record
from xarr.base.typing import Array
from xarr.calls.arguments import check_casting, check_order, convert, is_listed
from xarr.calls.concrete_values import look_at
from xarr.calls.operands import DType, align_observed, as_array, fresh, promote_operands
from xarr.calls.outputs import show, target_of
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, EXTENDED_FLOAT, FLOAT, canonical, promote
from xarr.errors import ArgumentError, InputError, ShapeError, pluralize
from xarr.numpy_api.indexing_routines.diagonals import diagonal
from xarr.numpy_api.linear_algebra.products import product
from xarr.runtime.handles import Handle
from xarr.runtime.view_tracking import EINSUM, TRANSPOSE, mark

__all__ = ["einsum", "einsum_path"]

#: One name for each dimension of an array: a letter, or a number below 0 for one that an ellipsis stands for.
Labels = tuple[Any, ...]
_NARROW: Final = 4


@record
class Subscripts:
    """The labels of each operand, and of the result."""

    inputs: tuple[Labels, ...]
    output: Labels


# --- reading --------------------------------------------------------------------------------------


def _split_operands(
    name: str, operands: tuple[Any, ...]
) -> tuple[list[list[Any]], list[Any] | None, list[Any]]:
    """Split arguments: labels of the operands, of the result (None if there are none), and the operands."""
    if not operands:
        raise ArgumentError(f"{name}: wanted subscripts and operands, got nothing")
    if isinstance(operands[0], str):
        return *_of_text(name, operands[0]), list(operands[1:])
    items = list(operands)
    output = _sublist(name, items.pop()) if len(items) % 2 else None
    if not all(is_listed(each) for each in items[1::2]):
        raise InputError(f"{name}: wanted a string, or operands each followed by a list of its subscripts")
    return [_sublist(name, each) for each in items[1::2]], output, items[::2]


def _of_text(name: str, text: str) -> tuple[list[list[Any]], list[Any] | None]:
    before, arrow, after = text.replace(" ", "").partition("->")
    terms = [_letters(name, term, text) for term in before.split(",")]
    return terms, _letters(name, after, text) if arrow else None


def _letters(name: str, term: str, text: str) -> list[Any]:
    """The letters of one operand, with Ellipsis for three dots."""
    before, dots, after = term.partition("...")
    rest = before + after
    if not all(letter.isascii() and letter.isalpha() for letter in rest):
        raise ShapeError(
            f"{name}: wanted letters, commas, one '->' and '...' as subscripts, got {term!r} in {text!r}"
        )
    return [*before, *([Ellipsis] if dots else []), *after]


def _sublist(name: str, labels: Any) -> list[Any]:
    if not is_listed(labels) or isinstance(labels, str):
        raise ArgumentError(f"{name}: wanted a list of ints and Ellipsis as subscripts, got {labels!r}")
    labels = look_at(name, "subscripts", labels, "give them as a list of ints")
    labels = labels.tolist() if isinstance(labels, np.ndarray) else labels
    labels = [label if label is Ellipsis else _number(name, label) for label in labels]
    if sum(label is Ellipsis for label in labels) > 1:
        raise ShapeError(f"{name}: wanted at most one Ellipsis in the subscripts {labels!r}")
    # As NumPy numbers them: 0 is A, 26 is a.
    return [label if label is Ellipsis else chr(label + (65 if label < 26 else 71)) for label in labels]


def _number(name: str, label: Any) -> int:
    """A subscript that is a number; ArgumentError for bools, for what is no integer, and for others than 52."""
    try:
        number = -1 if isinstance(label, bool) else operator.index(label)
    except TypeError:
        number = -1
    if not 0 <= number < 52:
        raise ArgumentError(f"{name}: wanted ints from 0 to 51 and Ellipsis as subscripts, got {label!r}")
    return number


def _parse(name: str, operands: tuple[Any, ...]) -> tuple[Subscripts, list[Any]]:
    terms, output, values = _split_operands(name, operands)
    if len(terms) != len(values):
        raise ShapeError(
            f"{name}: the subscripts are for {pluralize(len(terms), 'operand')}, got {len(values)}"
        )
    arrays: list[Any] = [value if isinstance(value, Handle) else as_array(value) for value in values]
    return _name_all(name, terms, output, [array.ndim for array in arrays]), arrays


def read_subscripts(name: str, text: str, ranks: Sequence[int]) -> Subscripts:
    """The labels that a text such as `ij,jk->ik` gives the dimensions of operands of these ranks; ShapeError."""
    terms, output = _of_text(name, text)
    if len(terms) != len(ranks):
        raise ShapeError(
            f"{name}: the subscripts are for {pluralize(len(terms), 'operand')}, got {len(ranks)}"
        )
    return _name_all(name, terms, output, ranks)


def _name_all(
    name: str, terms: list[list[Any]], output: list[Any] | None, ranks: Sequence[int]
) -> Subscripts:
    inputs = tuple(
        _name_dimensions(name, number, term, rank)
        for number, (term, rank) in enumerate(zip(terms, ranks, strict=True))
    )
    dots = sorted({label for labels in inputs for label in labels if isinstance(label, int)})
    return Subscripts(inputs, _result(name, inputs, output, dots))


def _name_dimensions(name: str, number: int, term: list[Any], rank: int) -> Labels:
    """Give each dimension a label; those of an ellipsis are numbered from the last one, -1, on."""
    if Ellipsis not in term:
        if len(term) != rank:
            raise ShapeError(
                f"{name}: operand {number} has {pluralize(rank, 'dimension')}, its subscripts name {len(term)}"
            )
        return tuple(term)
    more = rank - (len(term) - 1)
    if more < 0:
        raise ShapeError(
            f"{name}: operand {number} has {pluralize(rank, 'dimension')}, its subscripts name {len(term) - 1}"
        )
    position = term.index(Ellipsis)
    return (*term[:position], *range(-more, 0), *term[position + 1 :])


def _result(name: str, inputs: tuple[Labels, ...], output: list[Any] | None, dots: list[int]) -> Labels:
    """The labels of the result; without '->' those that occur once, in alphabetical order."""
    every = [label for labels in inputs for label in labels]
    if output is None:
        return (
            *dots,
            *sorted(label for label in set(every) if isinstance(label, str) and every.count(label) == 1),
        )
    if Ellipsis in output:
        position = output.index(Ellipsis)
        chosen: Labels = (*output[:position], *dots, *output[position + 1 :])
    else:
        chosen = tuple(output)
        if dots:
            raise ShapeError(
                f"{name}: the result must have '...' where the operands' ellipses stand for "
                f"{pluralize(len(dots), 'dimension')}"
            )
    for label in chosen:
        if label not in every:
            raise ShapeError(f"{name}: the subscript {label!r} of the result is in no operand")
        if chosen.count(label) > 1:
            raise ShapeError(f"{name}: the subscript {label!r} is in the result twice")
    return chosen


def _sizes(name: str, expression: Subscripts, arrays: Sequence[Array]) -> dict[Any, int]:
    """The size of each label; sizes of 1 broadcast, within what `config.broadcasting` allows."""
    sizes: dict[Any, int] = {}
    for number, (labels, array) in enumerate(zip(expression.inputs, arrays, strict=True)):
        for label, size in zip(labels, array.shape, strict=True):
            known = sizes.setdefault(label, size)
            own = array.shape[labels.index(label)]
            if own != size:
                raise ShapeError(
                    f"{name}: the subscript {_quote(label)} has sizes {own} and {size} in operand {number} of shape "
                    f"{array.shape}"
                )
            if known != size and 1 not in (known, size):
                raise ShapeError(
                    f"{name}: the subscript {_quote(label)} has size {known} in operands before, and {size} in operand "
                    f"{number} of shape {array.shape}"
                )
            if known != size:
                align_observed(name, ((known,), (size,)), (array.dtype, array.dtype))
                sizes[label] = size if known == 1 else known
    return sizes


def _quote(label: Any) -> str:
    return f"'{label}'" if isinstance(label, str) else f"of dimension {label} of '...'"


# --- contracting ----------------------------------------------------------------------------------


@record(eq=False)
class LabelledArray:
    """An array with a label for each dimension."""

    array: Array
    labels: Labels

    def without_repeats(self) -> LabelledArray:
        """The diagonal of dimensions with one label."""
        term = self
        for label in dict.fromkeys(self.labels):
            while term.labels.count(label) > 1:
                first, second = [axis for axis, each in enumerate(term.labels) if each == label][:2]
                rest = [each for axis, each in enumerate(term.labels) if axis not in (first, second)]
                term = LabelledArray(diagonal(term.array, 0, first, second), (*rest, label))
        return term

    def without_ones(self, sizes: dict[Any, int]) -> LabelledArray:
        """Without the dimensions of size 1 whose label has another size elsewhere."""
        ones = [a for a, label in enumerate(self.labels) if self.array.shape[a] == 1 != sizes[label]]
        kept = tuple(label for axis, label in enumerate(self.labels) if axis not in ones)
        return LabelledArray(lax.squeeze(self.array, ones), kept) if ones else self

    def sum_over(self, labels: Iterable[Any]) -> LabelledArray:
        """Sum over the labels that are not among `labels`."""
        axes = [axis for axis, label in enumerate(self.labels) if label not in labels]
        if not axes:
            return self
        return LabelledArray(_sum(self.array, axes), tuple(label for label in self.labels if label in labels))

    def transpose(self, labels: Labels) -> LabelledArray:
        return LabelledArray(
            lax.transpose(self.array, [self.labels.index(label) for label in labels]), labels
        )


def _sum(array: Array, axes: Sequence[int]) -> Array:
    if array.dtype in BOOL:
        return lax.reduce_or(array, axes)
    wide = np.dtype(np.float32) if array.dtype in FLOAT and array.dtype.itemsize < _NARROW else array.dtype
    return convert(lax.reduce_sum(convert(array, wide), axes), array.dtype)


def _contract(left: LabelledArray, right: LabelledArray, labels: Iterable[Any]) -> LabelledArray:
    """Multiply two terms and sum over the labels that both have and that are not in `labels`."""
    wanted = set(labels)
    left, right = left.sum_over(wanted.union(right.labels)), right.sum_over(wanted.union(left.labels))
    both = [label for label in left.labels if label in right.labels]
    batch, summed = [x for x in both if x in wanted], [x for x in both if x not in wanted]
    contracting, own = (
        (tuple([left.labels.index(x) for x in group]), tuple([right.labels.index(x) for x in group]))
        for group in (summed, batch)
    )
    array = product(left.array, right.array, contracting, own)
    free = [label for term in (left, right) for label in term.labels if label not in both]
    return LabelledArray(array, (*batch, *free))


def _evaluate(expression: Subscripts, arrays: Sequence[Array], sizes: dict[Any, int], path: Any) -> Array:
    terms = [
        LabelledArray(array, labels).without_repeats().without_ones(sizes)
        for array, labels in zip(arrays, expression.inputs, strict=True)
    ]
    for step in path:
        chosen = [terms.pop(index) for index in sorted(step, reverse=True)][::-1]
        others = {label for term in terms for label in term.labels}.union(expression.output)
        while len(chosen) > 1:
            left, right, *chosen = chosen
            later = others.union(*[term.labels for term in chosen])
            chosen.insert(0, _contract(left, right, later))
        terms.append(chosen[0].sum_over(others))
    (last,) = terms
    result = last.sum_over(expression.output)
    return _spread(result, expression.output, sizes)


def _spread(term: LabelledArray, output: Labels, sizes: dict[Any, int]) -> Array:
    """The result with all of its labels, also those that every operand has in size 1 or not at all."""
    own = term.transpose(tuple(label for label in output if label in term.labels))
    shape = tuple(sizes[label] for label in output)
    dims = [output.index(label) for label in own.labels]
    return own.array if own.array.shape == shape else lax.broadcast_in_dim(own.array, shape, dims)


# --- the functions --------------------------------------------------------------------------------


@remembers_calls
def einsum(*operands: Any, out: Array | None = None, optimize: Any = False, **kwargs: Any) -> Array:
    """The sum of products of the operands' elements over the subscripts that the result lacks.

    operands: a string such as "ij,jk->ik" and the arrays, or each array followed by a list of ints, and a last
    list for the result.  Subscripts: a letter for each dimension; a repeated one takes the diagonal; "..."
    stands for the dimensions without a letter, which broadcast.  Without "->" the result has the letters
    that occur once, in alphabetical order.
    optimize: False, True, "greedy", "optimal", or a path, as `einsum_path` gives and takes; operands are
    multiplied two at a time in any case, False in the greedy order.
    kwargs: dtype, order, casting, as in NumPy.

    The result has the element type that the operands are promoted to; floats narrower than 32 bits are summed
    as float32 and rounded after each product.  Raises ShapeError for subscripts that do not fit, InputError,
    DTypeError for what `casting` does not allow.  Source: NumPy, `einsum`.
    """
    dtype, casting = _options(kwargs)
    check_casting("einsum", casting)
    expression, values = _parse("einsum", operands)
    if out is not None:
        target = target_of("einsum", out)
        wide = (
            reduce(promote, [as_array(each).dtype for each in values], target.dtype)
            if dtype is None
            else dtype
        )
        result = einsum(*operands, optimize=optimize, **{**kwargs, "dtype": wide})
        return show("einsum", target, result, casting, broadcasts=False)
    if dtype is not None:
        own = [array.dtype for array in values if not {array.dtype, dtype} & EXTENDED_FLOAT]
        check_casting("einsum", casting, own, dtype)
    arrays = promote_operands("einsum", *values, dtype=dtype)
    sizes = _sizes("einsum", expression, arrays)
    path = _path(expression, sizes, arrays, optimize or "greedy")
    result = _evaluate(expression, arrays, sizes, path)
    if len(values) == 1 and result.dtype == as_array(values[0]).dtype:
        return _part(values[0], expression, result)
    return result


def _part(operand: Any, expression: Subscripts, result: Array) -> Array:
    """Mark `result` as a part of the one operand, unless dimensions of it were added up or stretched."""
    (labels,), output = expression.inputs, expression.output
    if not isinstance(operand, Handle) or set(labels) != set(output):
        return result
    result = fresh(result) if result is operand else result
    if len(labels) == len(output):
        return mark(operand, result, TRANSPOSE, tuple([labels.index(label) for label in output]))
    return mark(operand, result, EINSUM, _text(expression))


def _options(kwargs: dict[str, Any]) -> tuple[DType | None, Any]:
    unknown = sorted(set(kwargs) - {"dtype", "order", "casting"})
    if unknown:
        raise InputError(f"einsum: wanted dtype, order and casting as options, got {', '.join(unknown)}")
    check_order("einsum", kwargs.get("order", "K"))
    dtype = kwargs.get("dtype")
    return None if dtype is None else canonical(dtype), kwargs.get("casting", "safe")


@remembers_calls
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> tuple[list[Any], str]:
    """(path, report): which operands `einsum` multiplies in which step, and what that costs.

    optimize: True or "greedy", "optimal", ("greedy" or "optimal", the most elements of an intermediate result),
    False for all at once, or a path, which is reported on.
    Raises what `einsum` raises.  Source: NumPy's `einsum_path`, which plans and reports here too.
    """
    if einsum_call:
        raise InputError("einsum_path: einsum_call=True is internal to NumPy; wanted False")
    expression, values = _parse("einsum_path", operands)
    _sizes("einsum_path", expression, values)
    return _numpys(expression, [array.shape for array in values], optimize)


def _numpys(
    expression: Subscripts, shapes: Sequence[tuple[int, ...]], optimize: Any
) -> tuple[list[Any], str]:
    text = _text(expression)
    stand_ins = [np.broadcast_to(np.float64(0), shape) for shape in shapes]
    try:
        path, report = np.einsum_path(text, *stand_ins, optimize=optimize)
    except (TypeError, KeyError, RuntimeError, ValueError, IndexError) as error:
        raise InputError(
            f"einsum: wanted another path for {text} than optimize={optimize!r}: {error}"
        ) from error
    return list(path), report


def _text(expression: Subscripts) -> str:
    """The subscripts, with a letter for each dimension."""
    letters = _unused_letters(expression)
    every = [*expression.inputs, expression.output]
    *terms, output = ["".join(str(letters.get(label, label)) for label in labels) for labels in every]
    return f"{','.join(terms)}->{output}"


def _unused_letters(expression: Subscripts) -> dict[Any, str]:
    """Letters for the dimensions that an ellipsis stands for."""
    every = {label for labels in expression.inputs for label in labels}
    numbers = sorted(label for label in every if isinstance(label, int))
    letters = [chr(code) for code in (*range(65, 91), *range(97, 123)) if chr(code) not in every]
    if len(numbers) > len(letters):
        raise ShapeError("einsum: wanted at most 52 different subscripts, those of '...' included")
    return dict(zip(numbers, letters, strict=False))


def _path(expression: Subscripts, sizes: dict[Any, int], arrays: Sequence[Array], optimize: Any) -> list[Any]:
    """The steps; with one or two operands there is nothing to choose."""
    count = len(arrays)
    if count <= 2 and isinstance(optimize, str | bool):
        return [tuple(range(count))]
    path, _ = _numpys(expression, [array.shape for array in arrays], optimize)
    return path[1:]
