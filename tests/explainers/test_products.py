"""`explain_matmul` and `explain_einsum`: the loops and programs that they show compute what NumPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.explained import check_views, code_of, run_loop, run_program
from xarr.errors import InputError, ShapeError
from xarr.explanation.sheets.product_svg import ProductPicture

CASES: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("ij->ji", [(2, 3)]),
    ("i,j->ij", [(2,), (3,)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("...ij,...jk->...ik", [(4, 2, 3), (4, 3, 2)]),
    ("i,i,i->i", [(3,), (3,), (3,)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
    (",->", [(), ()]),
    ("abcde->ae", [(2, 1, 2, 1, 3)]),
]


@pytest.mark.parametrize(("subscripts", "shapes"), CASES, ids=str)
def test_einsum_is_numpys(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    generator = np.random.default_rng(2)
    arrays = [generator.integers(-3, 4, shape).astype(float) for shape in shapes]
    explanation = xarr.explain_einsum(subscripts, *arrays)
    wanted = np.asarray(np.einsum(subscripts, *arrays))
    assert explanation.fits and explanation.result is not None
    assert explanation.result.shape == wanted.shape
    assert_same(run_program(code_of(explanation, "explicit"), *arrays), wanted)
    names = [operand.name for operand in explanation.operands]
    loop = run_loop(explanation.loop, np.empty(wanted.shape), **dict(zip(names, arrays, strict=True)))
    assert_same(loop, wanted)
    facts = check_views(explanation)
    assert facts["result"] == list(wanted.shape)


def test_labels_and_names_do_not_meet() -> None:
    explanation = xarr.explain_einsum("ab,bc->ac", (2, 3), (3, 2), names=("a", "b"))
    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    assert_same(run_loop(explanation.loop, np.empty((2, 2)), a=a, b=b), a @ b)


def test_a_stretched_axis_is_marked() -> None:
    explanation = xarr.explain_einsum("ij,ij->ij", (2, 1), (2, 3))
    assert explanation.result is not None and explanation.result.shape == (2, 3)
    assert 'class="stretched"' in explanation.html()
    assert "a[i, 0] * b[i, j]" in explanation.loop


def test_code_is_there_in_every_mode() -> None:
    with xarr.config(broadcasting="explicit"):
        text = xarr.explain_einsum("ij,ij->ij", (2, 1), (2, 3)).html()
    assert "func.func public @main" in text


def test_a_clash_says_what_works() -> None:
    explanation = xarr.explain_einsum("ij,jk->ik", (2, 3), (4, 3))
    assert not explanation.fits and explanation.result is None
    assert "axis 1 of a has 3, axis 0 of b has 4; wanted equal sizes, or 1" in explanation.text()
    assert 'einsum("ij,kj->ik", a, b)   ->  (2, 4)' in explanation.text()
    assert check_views(explanation)["fixes"] == ['einsum("ij,kj->ik", a, b)']
    assert np.einsum("ij,kj->ik", np.ones((2, 3)), np.ones((4, 3))).shape == (2, 4)


@pytest.mark.parametrize(
    ("a", "b", "op"),
    [
        ((2, 3), (3, 4), "matmul"),
        ("f32[5,1,2,3]", (7, 3, 4), "matmul"),
        ((3,), (3,), "dot"),
        (np.ones((2, 3)), xarr.ones((2, 3)), "vecdot"),
        ((30, 40), (40, 50), "matmul"),
        ((0, 3), (3, 2), "matmul"),
        ((2, 3), (2, 3), "matmul"),
    ],
    ids=str,
)
def test_views_of_matmul(a: Any, b: Any, op: str) -> None:
    explanation = xarr.explain_matmul(a, b, op)
    check_views(explanation)
    assert explanation.headline in explanation.html().replace("&gt;", ">")


def test_the_picture_reads_a_row_and_a_column() -> None:
    operands = xarr.explain_einsum("ij,jk->ik", (2, 3), (3, 4)).operands
    result = xarr.explain_reduce((2, 4)).operand
    product = ProductPicture(operands, ("ij", "jk"), result, "ik", {"i": 2, "j": 3, "k": 4})
    assert product.reads((1, 2)) == [
        (0, (1, 0)),
        (0, (1, 1)),
        (0, (1, 2)),
        (1, (0, 2)),
        (1, (1, 2)),
        (1, (2, 2)),
    ]


def test_malformed() -> None:
    with pytest.raises(InputError, match="two shapes of rank 1 or more"):
        xarr.explain_matmul((), (3,))
    with pytest.raises(InputError, match="wanted op to be one of matmul, dot, inner, vecdot"):
        xarr.explain_matmul((3,), (3,), "add")
    with pytest.raises(ShapeError, match="the subscripts are for 2 operands, got 1"):
        xarr.explain_einsum("ij,jk", (3, 4))
    with pytest.raises(ShapeError, match="its subscripts name 1"):
        xarr.explain_einsum("i", (3, 4))


@pytest.mark.parametrize(
    ("subscripts", "shapes", "words"),
    [
        ("ij,jk->ik", [(2, 100), (100, 2)], "200 cells"),
        ("ij,jk->ik", [(2, 0), (0, 2)], "0 cells"),
        ("i,j->ij", [(2,), (3,)], "2 cells"),
        ("ij,jk->ik", [(2, 1), (50, 2)], "51 cells"),
        ("ii->", [(9, 9)], "9 cells"),
        ("i->i", [(3,)], "1 cell"),
    ],
)
def test_cells_that_are_read_are_counted_where_they_are_not_drawn(
    subscripts: str, shapes: list[tuple[int, ...]], words: str
) -> None:
    assert f" reads {words}</title>" in xarr.explain_einsum(subscripts, *shapes).svg()


def test_a_diagonal_stretches_no_size_of_1() -> None:
    explanation = xarr.explain_einsum("ii->i", (1, 8))
    assert explanation.result is None
    (problem,) = explanation.problems()
    assert problem.endswith("axis 0 of a has 1, axis 1 of a has 8; wanted equal sizes along a diagonal")
    assert problem in explanation.text()
    assert "no result" in explanation.svg()


def test_more_axes_than_there_are_letters() -> None:
    with pytest.raises(ShapeError, match=r"wanted at most 50 axes for an ellipsis, .* got 52"):
        xarr.explain_einsum("i...", (2,) * 53)
    assert xarr.explain_matmul((2,) * 150, (2,) * 150).result is not None
