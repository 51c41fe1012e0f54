"""Alignment of bare shapes: NumPy's rule, XLA's rule, and the completeness and truth of the fixes."""

from __future__ import annotations

from itertools import combinations, islice, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from xarr.base.broadcasting import (
    Alignment,
    Clash,
    Fix,
    Misfit,
    Shape,
    align_numpy,
    align_xla,
    alignments,
    ambiguous_alternatives,
    count_alignments,
    fixes,
    legal_alignments,
    new_axis_index,
    refusal,
)
from xarr.errors import BroadcastError, ConfigError, InputError

SMALL_SHAPES = [shape for rank in range(5) for shape in product((1, 2, 3), repeat=rank)]


def align(*shapes: Shape) -> Alignment:
    alignment = align_numpy(*shapes)
    assert isinstance(alignment, Alignment)
    return alignment


# --- NumPy's rule ---------------------------------------------------------------------------------


def test_numpy_alignment_of_a_matrix_and_a_vector() -> None:
    alignment = align((5, 1), (5,))
    assert alignment == Alignment(((5, 1), (5,)), (5, 5), ((0, 1), (1,)))
    assert alignment.is_implicit and alignment.is_outer
    assert (alignment.new_axes(0), alignment.new_axes(1)) == ((), (0,))
    assert (alignment.stretched_axes(0), alignment.stretched_axes(1)) == ((1,), ())
    assert (alignment.reuse(0), alignment.reuse(1)) == (5, 5)


def test_equal_shapes_are_not_implicit() -> None:
    assert not align((2, 3), (2, 3)).is_implicit
    assert not align().is_implicit and not align().is_outer


def test_scalar_with_array_is_implicit_but_not_outer() -> None:
    alignment = align((), (4, 3))
    assert alignment.is_implicit and not alignment.is_outer
    assert alignment.dimensions[0] == ()
    assert alignment.reuse(0) == 12


@pytest.mark.parametrize(
    ("shapes", "result"),
    [(((0,), (1,)), (0,)), (((0, 1), (3,)), (0, 3)), (((1, 0), (2, 1)), (2, 0)), (((), (0,)), (0,))],
)
def test_empty_axes_meet_axes_of_size_one(shapes: tuple[Shape, ...], result: Shape) -> None:
    alignment = align(*shapes)
    assert alignment.result == result
    assert [alignment.reuse(i) for i in range(2)] == [0, 0]
    assert not alignment.is_outer


def test_stretching_to_size_zero_counts_as_stretching() -> None:
    assert align((0,), (1,)).stretched_axes(1) == (0,)


def test_a_size_one_axis_that_stays_one_is_not_stretched() -> None:
    alignment = align((2, 1), (1, 1))
    assert (alignment.stretched_axes(0), alignment.stretched_axes(1)) == ((), (0,))


def test_misfit_names_every_clashing_axis() -> None:
    assert align_numpy((3, 4), (3,)) == Misfit(((3, 4), (3,)), (Clash(1, (4, 3)),))
    assert align_numpy((0,), (3,)) == Misfit(((0,), (3,)), (Clash(0, (0, 3)),))
    misfit = align_numpy((2, 5, 3), (4, 1), (7, 2, 4))
    assert isinstance(misfit, Misfit)
    assert misfit.clashes == (Clash(0, (2, None, 7)), Clash(1, (5, 4, 2)), Clash(2, (3, 1, 4)))


shapes = st.lists(st.integers(0, 4), max_size=6).map(tuple)


@given(st.lists(shapes, max_size=5))
def test_numpy_alignment_equals_numpy(operands: list[Shape]) -> None:
    alignment = align_numpy(*operands)
    try:
        expected = np.broadcast_shapes(*operands)
    except ValueError:
        assert isinstance(alignment, Misfit) and alignment.clashes
        return
    assert isinstance(alignment, Alignment)
    assert alignment.result == expected
    for i, shape in enumerate(operands):
        assert len(alignment.dimensions[i]) == len(shape)
        assert list(alignment.dimensions[i]) == sorted(set(alignment.dimensions[i]))
        strides = np.broadcast_to(np.empty(shape, np.int8), expected).strides
        virtual = {*alignment.new_axes(i), *alignment.stretched_axes(i)}
        assert all(strides[axis] == 0 for axis in virtual)


# --- XLA's rule: every example of the page "Broadcasting semantics" ----------------------------------


@pytest.mark.parametrize(
    ("lhs", "rhs", "dimensions", "result"),
    [
        pytest.param((2, 3), (), None, (2, 3), id="scalar onto a matrix"),
        pytest.param((), (2, 3), (), (2, 3), id="scalar at the left"),
        pytest.param((2, 3), (3,), (1,), (2, 3), id="vector of 3 onto 2x3, dimension 1"),
        pytest.param((3, 3), (3,), (1,), (3, 3), id="vector of 3 onto 3x3, way 1"),
        pytest.param((3, 3), (3,), (0,), (3, 3), id="vector of 3 onto 3x3, way 2"),
        pytest.param((2, 3, 4), (3, 4), (1, 2), (2, 3, 4), id="3x4 onto a 2x3x4 cuboid"),
        pytest.param((2, 3, 4, 5), (5,), (3,), (2, 3, 4, 5), id="T onto MxNxPxQ, dim 3"),
        pytest.param((2, 3, 4, 5), (4,), (2,), (2, 3, 4, 5), id="T onto MxNxPxQ, dim 2"),
        pytest.param((2, 3, 4, 5), (3,), (1,), (2, 3, 4, 5), id="T onto MxNxPxQ, dim 1"),
        pytest.param((2, 3, 4, 5), (2,), (0,), (2, 3, 4, 5), id="T onto MxNxPxQ, dim 0"),
        pytest.param((2, 3, 4, 5), (4, 5), (2, 3), (2, 3, 4, 5), id="TxV onto MxNxPxQ, dims 2,3"),
        pytest.param((2, 3, 4, 5), (3, 4), (1, 2), (2, 3, 4, 5), id="TxV onto MxNxPxQ, dims 1,2"),
        pytest.param((2, 3, 4, 5), (2, 5), (0, 3), (2, 3, 4, 5), id="TxV onto MxNxPxQ, dims 0,3"),
        pytest.param((2, 1), (2, 3), None, (2, 3), id="degenerate 1"),
        pytest.param((1, 2, 5), (7, 2, 5), None, (7, 2, 5), id="degenerate 2"),
        pytest.param((7, 2, 5), (7, 1, 5), None, (7, 2, 5), id="degenerate 3"),
        pytest.param((2, 1), (1, 3), None, (2, 3), id="outer operation"),
        pytest.param((4,), (1, 2), (0,), (4, 2), id="composition: vector of 4 and 1x2"),
        pytest.param((1, 2), (4, 3, 1), (1, 2), (4, 3, 2), id="composition: 1x2 and 4x3x1"),
    ],
)
def test_valid_examples_of_the_page(lhs: Shape, rhs: Shape, dimensions: Any, result: Shape) -> None:
    alignment = align_xla(lhs, rhs, dimensions)
    assert alignment.operands == (lhs, rhs)
    assert alignment.result == result
    for shape, own in zip((lhs, rhs), alignment.dimensions, strict=True):
        assert own == (tuple(range(len(result))) if len(shape) == len(result) else tuple(dimensions or ()))
    mirrored = align_xla(rhs, lhs, dimensions)
    assert (mirrored.result, mirrored.dimensions) == (result, alignment.dimensions[::-1])


@pytest.mark.parametrize(
    ("lhs", "rhs", "dimensions", "label"),
    [
        pytest.param((2, 3), (3,), None, "B1", id="matrix and vector without a specification"),
        pytest.param((2, 3), (3,), (0,), "B5", id="2x3 and a vector of 3, dimension 0"),
        pytest.param((7, 2, 5), (7, 2, 6), None, "B5", id="degenerate 4: incompatible"),
        pytest.param((2, 3, 4, 5), (5, 4), (3, 2), "B4", id="T to P and V to N: wrong order"),
        pytest.param((2, 3, 3, 3), (2, 3), (3, 3), "B4", id="V to both P and N"),
    ],
)
def test_invalid_examples_of_the_page(lhs: Shape, rhs: Shape, dimensions: Any, label: str) -> None:
    for first, second in ((lhs, rhs), (rhs, lhs)):
        with pytest.raises(BroadcastError, match=rf"^\[{label}\]"):
            align_xla(first, second, dimensions)


# --- XLA's rule: one negative test per label, and the corners ---------------------------------------


def message(lhs: Shape, rhs: Shape, dimensions: Any = None) -> str:
    with pytest.raises(BroadcastError) as caught:
        align_xla(lhs, rhs, dimensions)
    return str(caught.value)


@pytest.mark.parametrize("dimensions", [None, ()])
def test_B1_ranks_differ_and_no_dimensions_are_given(dimensions: Any) -> None:
    text = message((3, 3), (3,), dimensions)
    assert text.startswith("[B1]") and "ranks 2 and 1" in text
    assert "legal here: broadcast_dimensions=(0,), (1,)" in text


def test_B2_wrong_length() -> None:
    assert message((2, 3), (3,), (0, 1)).startswith("[B2]")
    assert message((2, 3, 4), (3, 4), (1,)).startswith("[B2]")
    assert message((2, 3), (), (0,)).startswith("[B2]")
    assert message((2, 3), (2, 3), (0,)).startswith("[B2]")
    assert "wanted 1 for the operand (3,)" in message((2, 3), (3,), (0, 1))


@pytest.mark.parametrize("dimensions", [(2,), (-1,)])
def test_B3_out_of_range(dimensions: Any) -> None:
    text = message((2, 3), (3,), dimensions)
    assert text.startswith("[B3]") and "wanted 0 to 1" in text


def test_B4_not_strictly_increasing_names_the_transpose() -> None:
    text = message((2, 3, 4), (4, 2), (2, 0))
    assert text.startswith("[B4]")
    assert "wanted transpose(rhs, (1, 0)) with broadcast_dimensions=(0, 2)" in text
    moved = tuple((4, 2)[axis] for axis in (1, 0))
    assert align_xla((2, 3, 4), moved, (0, 2)).result == (2, 3, 4)
    assert "transpose(lhs, (1, 2, 0))" in message((4, 2, 3), (2, 3, 4, 9), (2, 0, 1))


def test_B4_repeated_axis_has_no_transpose() -> None:
    text = message((2, 3, 3), (3, 3), (1, 1))
    assert text.startswith("[B4]") and "wanted transpose" not in text and "named twice" in text


def test_B4_offers_no_transpose_that_would_not_fit() -> None:
    assert "wanted transpose" not in message((2, 3, 4), (4, 5), (2, 0))


def test_B4_equal_ranks_accept_only_the_identity() -> None:
    assert message((3, 3), (3, 3), (1, 0)).startswith("[B4]")
    identities: list[Any] = [None, (), (0, 1), [0, 1], np.array([0, 1])]
    for dimensions in identities:
        assert align_xla((3, 1), (3, 3), dimensions).result == (3, 3)


def test_B5_sizes_differ_and_none_is_one() -> None:
    text = message((2, 3), (3,), (0,))
    assert text.startswith("[B5]") and "wanted size 2 or 1, got 3" in text
    assert "legal here: broadcast_dimensions=(1,)" in text
    assert message((0,), (3,)).startswith("[B5]")
    assert "no broadcast_dimensions fits" in message((2, 3), (5,), (0,))


@pytest.mark.parametrize("dimensions", [1, (1.0,), "1", (None,)], ids=repr)
def test_dimensions_must_be_integers(dimensions: Any) -> None:
    with pytest.raises(InputError, match="sequence of integers"):
        align_xla((2, 3), (3,), dimensions)


@given(shapes, shapes, st.none() | st.lists(st.integers(-1, 4), max_size=4))
def test_xla_rule_against_a_direct_reading(lhs: Shape, rhs: Shape, dimensions: list[int] | None) -> None:
    small, big = sorted((lhs, rhs), key=len)
    identity = list(range(len(big)))
    if len(small) == len(big):
        accepted, placed = dimensions in (None, [], identity), identity
    else:
        placed = dimensions or []
        accepted = (
            len(placed) == len(small) and placed == sorted(set(placed)) and set(placed) <= set(identity)
        )
    accepted = accepted and all(s == big[d] or 1 in (s, big[d]) for s, d in zip(small, placed, strict=True))
    if not accepted:
        assert message(lhs, rhs, dimensions).startswith("[B")
        return
    unsqueezed = [1] * len(big)
    for size, axis in zip(small, placed, strict=True):
        unsqueezed[axis] = size
    assert align_xla(lhs, rhs, dimensions).result == np.broadcast_shapes(tuple(unsqueezed), big)


# --- fixes: all of them run, none is missing ----------------------------------------------------------


def fails(a: NDArray[Any], b: NDArray[Any], fix: Fix) -> str | None:
    """Apply a fix in each of its spellings with NumPy; what goes wrong, or None."""
    scope = {"a": a, "b": b}
    scope["ab"[fix.operand]] = eval(fix.numpy, scope.copy())
    try:
        by_index = scope["a"] + scope["b"]
    except ValueError as error:
        return f"{fix.numpy}: {error}"
    if by_index.shape != fix.result:
        return f"{fix.numpy}: wanted {fix.result}, got {by_index.shape}"
    if fix.broadcast_dimensions is None:
        return None
    if list(fix.broadcast_dimensions) != sorted(set(fix.broadcast_dimensions)):
        return f"{fix.broadcast_dimensions} is not strictly increasing"
    small, big = (a, b) if fix.operand == 0 else (b, a)
    shape = [1] * big.ndim
    for size, axis in zip(small.shape, fix.broadcast_dimensions, strict=True):
        shape[axis] = size
    explicit = small.reshape(shape) + big
    return None if np.array_equal(explicit, by_index) else f"{fix.numpy} is not {fix.broadcast_dimensions}"


def test_the_fix_checker_can_fail() -> None:
    a, b = np.ones((3, 4)), np.arange(3.0)
    (good,) = fixes((3, 4), (3,))
    assert fails(a, b, good) is None
    assert fails(a, b, Fix(1, "b[None, :]", (3, 4), (0,))) is not None
    assert fails(a, b, Fix(1, "b[:, None]", (3, 3), (0,))) is not None
    assert fails(a, b, Fix(1, "b.T", (3, 4), permutation=(0,))) is not None
    square = np.ones((3, 3))
    assert fails(square, b, Fix(1, "b[:, None]", (3, 3), (1,))) is not None
    assert fails(np.ones((3, 3, 3)), square, Fix(1, "b[None]", (3, 3, 3), (2, 1))) is not None


def expected_placements(small: Shape, big: Shape) -> set[Shape]:
    return {
        dimensions
        for dimensions in combinations(range(len(big)), len(small))
        if all(s == big[d] or s == 1 or big[d] == 1 for s, d in zip(small, dimensions, strict=True))
    }


def expected_orders(a: Shape, b: Shape) -> set[Shape]:
    return {
        order
        for order in permutations(range(len(b)))
        if all(s == b[d] or s == 1 or b[d] == 1 for s, d in zip(a, order, strict=True))
    }


def test_every_pair_up_to_rank_4_broadcasts_as_numpy_or_lists_every_fix_that_runs() -> None:
    arrays = {shape: np.arange(np.prod(shape)).reshape(shape) for shape in SMALL_SHAPES}
    empty = {shape: np.empty(shape, np.int8) for shape in SMALL_SHAPES}
    tried = {"fits": 0, "fixed": 0, "hopeless": 0, "fixes": 0}
    for a, b in product(SMALL_SHAPES, repeat=2):
        alignment = align_numpy(a, b)
        results = fixes(a, b, limit=24)
        try:
            assert np.broadcast(empty[a], empty[b]).shape == alignment.result  # type: ignore[union-attr]
            tried["fits"] += 1
        except ValueError:
            assert isinstance(alignment, Misfit) and alignment.clashes
            tried["fixed" if results else "hopeless"] += 1
        for fix in results:
            assert fails(arrays[a], arrays[b], fix) is None, (a, b)
        tried["fixes"] += len(results)
        if len(a) != len(b):
            small, big = sorted((a, b), key=len)
            assert {fix.broadcast_dimensions for fix in results} == expected_placements(small, big)
            assert len(results) == count_alignments(small, big)
        elif isinstance(alignment, Misfit):
            assert {fix.permutation for fix in results} == expected_orders(a, b)
    assert tried["fits"] + tried["fixed"] + tried["hopeless"] == 121**2
    assert min(tried.values()) > 1000


def test_spelling_of_fixes() -> None:
    assert [fix.numpy for fix in fixes((3, 4), (3,))] == ["b[:, None]"]
    assert [fix.numpy for fix in fixes((4,), (3, 4, 5))] == ["a[None, :, None]"]
    assert [fix.numpy for fix in fixes((2, 3), (3, 2))] == ["b.T"]
    assert [fix.numpy for fix in fixes((2, 3, 4), (4, 2, 3))] == ["b.transpose(1, 2, 0)"]
    assert fixes((2, 3), (4, 5)) == ()
    assert fixes((2, 3), (2, 1)) == ()
    assert [fix.numpy for fix in fixes((3, 4), (3,), names=("x", "y"))] == ["y[:, None]"]
    assert new_axis_index((), 2) == "" and new_axis_index((0, 1), 2) == ""


def test_high_ranks_are_counted_not_listed() -> None:
    small, big = (2,) * 30, (2,) * 60
    assert count_alignments(small, big) == 118264581564861424
    assert len(fixes(small, big)) == 16
    assert next(legal_alignments(small, big)) == tuple(range(30))
    assert "and 118264581564861408 more" in message(small, big)
    hopeless = (*small[:-1], 3)
    assert count_alignments(hopeless, big) == 0 and fixes(hopeless, big) == ()
    deep = (2,) * 400
    assert list(islice(legal_alignments(deep, deep), 2)) == [tuple(range(400))]
    assert fixes(tuple(range(2, 32)), tuple(range(3, 33))) == ()


@given(st.lists(shapes, min_size=1, max_size=4))
def test_alignments_of_many_operands_run_and_none_is_missing(operands: list[Shape]) -> None:
    rank = max(map(len, operands))
    choices = [list(combinations(range(rank), len(shape))) for shape in operands]
    if np.prod([len(choice) for choice in choices]) > 2000:
        return
    expected = set()
    for dimensions in product(*choices):
        placed = []
        for shape, own in zip(operands, dimensions, strict=True):
            full = [1] * rank
            for size, axis in zip(shape, own, strict=True):
                full[axis] = size
            placed.append(tuple(full))
        try:
            expected.add((np.broadcast_shapes(*placed), dimensions))
        except ValueError:
            continue
    assert {(a.result, a.dimensions) for a in alignments(*operands, effort=10**6)} == expected


# --- ambiguity and strictness -----------------------------------------------------------------------


def test_ambiguity_needs_another_meaning() -> None:
    (other,) = ambiguous_alternatives(align((3, 3), (3,)))
    assert other.dimensions == ((0, 1), (0,))
    assert ambiguous_alternatives(align((2, 3), (3,))) == ()
    assert ambiguous_alternatives(align((2, 3), (1,))) == ()  # elsewhere, but the same values
    assert ambiguous_alternatives(align((3, 3), (3, 1))) == ()  # equal ranks
    assert ambiguous_alternatives(align((3, 3), ())) == ()
    assert [a.result for a in ambiguous_alternatives(align((5, 1), (5,)))] == [(5, 1)]


@pytest.mark.parametrize(
    ("operands", "refused_by"),
    [
        (((2, 3), (2, 3)), set()),
        (((2, 3), ()), set()),
        (((), ()), set()),
        (((2, 3), (2, 1)), {"explicit"}),
        (((2, 3), (3,)), {"rank", "explicit"}),
        (((2, 3), (1,)), {"rank", "explicit"}),
        (((2, 1), (1, 3)), {"explicit"}),
        (((2, 3), (), (3,)), {"rank", "explicit"}),
    ],
)
def test_strictness(operands: tuple[Shape, ...], refused_by: set[str]) -> None:
    alignment = align(*operands)
    modes: Any = ("numpy", "warn", "rank", "explicit")
    assert {mode for mode in modes if refusal(alignment, mode) is not None} == refused_by


def test_refusal_names_the_operand() -> None:
    text = refusal(align((2, 3), (3,)), "rank", ("x", "v"))
    assert text == 'broadcasting="rank" refuses to broadcast v: wanted rank 2, got rank 1'
    text = refusal(align((2, 3), (2, 1)), "explicit")
    assert (
        text
        == 'broadcasting="explicit" refuses to broadcast operand 1: wanted shape (2, 3), got shape (2, 1)'
    )


def test_unknown_mode_is_an_error() -> None:
    mode: Any = "strict"
    with pytest.raises(ConfigError, match="numpy, warn, rank, explicit"):
        refusal(align((2,), ()), mode)
