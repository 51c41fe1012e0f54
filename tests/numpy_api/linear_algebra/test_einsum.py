"""einsum against NumPy: every form of subscripts, random ones by hypothesis, element types, and paths."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from xarr.errors import BroadcastError, DTypeError, InputError, ShapeError

jax.config.update("jax_enable_x64", True)

IMPLICIT = pytest.mark.implicit
SIZES = {"i": 2, "j": 3, "k": 4, "l": 2, "m": 1, "n": 0}
DTYPES = ("bool", "int8", "uint64", "float16", "float32", "float64", "complex64")


def values(shape: tuple[int, ...], dtype: str = "int64", seed: int = 0) -> Any:
    draw = np.random.default_rng([seed, *shape])
    values = draw.integers(0 if dtype in ("bool", "uint64") else -3, 4, shape)
    return (values + 1j if dtype.startswith("c") else values).astype(dtype)


def operands(text: str, dtype: str = "int64") -> list[Any]:
    terms = text.partition("->")[0].split(",")
    return [values(tuple(SIZES[x] for x in term), dtype, seed) for seed, term in enumerate(terms)]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "ij->ji",
            "ij->ij",
            "ij->",
            "ij->i",
            "ij",
            "ji",
            "ii->i",
            "ii",
            "ii->",
            "iij->ij",
            "iji->j",
            "iii->i",
            "->",
        ),
        *(
            "ij,jk",
            "ij,jk->ki",
            "ij,ij->ij",
            "ij,ij->",
            "i,j->ij",
            "i,j",
            "ij,j",
            "ij,k->ijk",
            "ij,k->",
            "ii,ij->j",
        ),
        *(
            "lij,ljk->lik",
            "lij,ljk->ik",
            ",ij->ij",
            "ij,->j",
            ",",
            "ij,kl->jk",
            "ij,jk,kl->il",
            "i,i,i->i",
            "i,j,k->",
        ),
        *(
            "ij,jk,kl,li->",
            "ij,ij,jk,ik->ik",
            "im,mj->ij",
            "in,nj->ij",
            "n,n->",
            "in->i",
            "n->n",
            "ijk,k,j,i->",
        ),
    ],
)
def test_text(text: str) -> None:
    arguments = operands(text)
    for optimize in (False, True, "optimal"):
        assert_same(xarr.einsum(text, *arguments, optimize=optimize), np.asarray(np.einsum(text, *arguments)))


@IMPLICIT
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("...ij->...ji", [(2, 3, 4, 5)]),
        ("...->...", [(2, 3)]),
        ("...", [(2, 3)]),
        ("i...->...", [(2, 3, 4)]),
        ("...i,...i->...", [(2, 3, 4), (3, 4)]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]),
        ("...ij,jk", [(5, 2, 3), (3, 2)]),
        ("i...,i...->i...", [(2, 3), (2, 4, 3)]),
        ("...,...", [(3,), (2, 1)]),
        ("...a,b->b...a", [(2, 3), (4,)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("ij,ij->ij", [(1, 3), (2, 1)]),
        ("i,i,i->", [(1,), (3,), (3,)]),
        ("ij...,jk...->ik...", [(2, 3, 1), (3, 2, 5)]),
        (" i j , j k -> i k ", [(2, 3), (3, 4)]),
        ("Ab,bA->Ab", [(2, 3), (3, 2)]),
        ("ba", [(2, 3)]),
    ],
)
def test_ellipses_and_sizes_of_one(text: str, shapes: list[tuple[int, ...]]) -> None:
    arguments = [values(shape, seed=seed) for seed, shape in enumerate(shapes)]
    assert_same(xarr.einsum(text, *arguments), np.asarray(np.einsum(text, *arguments)))
    assert_same(xarr.einsum(text, *map(xarr.asarray, arguments)), np.asarray(np.einsum(text, *arguments)))


def test_interleaved_operands() -> None:
    a, b = values((2, 3)), values((3, 4))
    for arguments in (
        (a, [0, 1], b, [1, 2], [0, 2]),
        (a, [0, 1], b, [1, 2]),
        (a, [3, 0], b, [0, 30], [30, 3]),
        (a, [Ellipsis, 1], b, [1, 2], [2, Ellipsis]),
        (a, (0, 1)),
    ):
        assert_same(xarr.einsum(*arguments), np.asarray(np.einsum(*arguments)))


@st.composite
def expressions(draw: st.DrawFn) -> tuple[str, list[Any]]:
    terms = draw(st.lists(st.text("ijkl", max_size=3), min_size=1, max_size=4))
    every = sorted(set("".join(terms)))
    text = ",".join(terms)
    if draw(st.booleans()) or not every:
        text += "->" + "".join(draw(st.permutations(every))[: draw(st.integers(0, len(every)))])
    return text, operands(text)


@given(expressions(), st.sampled_from([False, True, "optimal"]))
@settings(max_examples=100)
def test_random_subscripts(case: tuple[str, list[Any]], optimize: Any) -> None:
    text, arguments = case
    assert_same(xarr.einsum(text, *arguments, optimize=optimize), np.asarray(np.einsum(text, *arguments)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(dtype: str) -> None:
    for text in ("ij,jk->ik", "ij->j", "ii->i", "ij,jk,kl->il", "i,i->"):
        arguments = operands(text, dtype)
        wanted = np.einsum(text, *arguments)
        assert_same(xarr.einsum(text, *arguments), np.asarray(wanted))
        assert xarr.einsum(text, *arguments).dtype == jax.numpy.einsum(text, *arguments).dtype
    mixed = [values((2, 3), dtype), values((3,), "float32")]
    assert_same(xarr.einsum("ij,j->i", *mixed), np.einsum("ij,j->i", *mixed))
    assert xarr.einsum("i,i->", *[np.ones(2, ml_dtypes.bfloat16)] * 2).dtype == ml_dtypes.bfloat16


def test_options() -> None:
    a, b = values((2, 3), "float32"), values((3, 2), "int8")
    assert_same(xarr.einsum("ij,jk", a, b, dtype=np.float64), np.einsum("ij,jk", a, b, dtype=np.float64))
    assert_same(
        xarr.einsum("ij->j", a, dtype=int, casting="unsafe"),
        np.einsum("ij->j", a, dtype=int, casting="unsafe"),
    )
    with pytest.raises(DTypeError, match="cannot cast float32 to int64 under casting='safe'"):
        xarr.einsum("ij", a, dtype=int)
    with pytest.raises(InputError, match="wanted dtype, order and casting as options, got axis"):
        xarr.einsum("ij", a, axis=0)
    with pytest.raises(InputError, match="out="):
        xarr.einsum("ij", a, out=a)


def test_python_numbers_and_lists() -> None:
    wanted = np.einsum("i,->i", np.float32([1, 2]), 2.0)
    assert_same(xarr.einsum("i,->i", np.float32([1, 2]), 2.0), wanted)
    assert_same(xarr.einsum(",->", 2, 3), np.asarray(6))
    assert_same(xarr.einsum("ij->i", [[1, 2], [3, 4]]), np.array([3, 7]))


@pytest.mark.parametrize(
    "optimize", [True, False, "greedy", "optimal", ("greedy", 20), ["einsum_path", (0, 1), (0, 1)]]
)
def test_paths_are_numpy_s(optimize: Any) -> None:
    arguments = operands("ij,jk,kl->il")
    path, report = xarr.einsum_path("ij,jk,kl->il", *arguments, optimize=optimize)
    wanted, text = np.einsum_path("ij,jk,kl->il", *arguments, optimize=optimize)
    assert (path, report) == (wanted, text)
    assert_same(xarr.einsum("ij,jk,kl->il", *arguments, optimize=path), np.einsum("ij,jk,kl->il", *arguments))
    assert_same(
        xarr.einsum("ij,jk,kl->il", *arguments, optimize=optimize), np.einsum("ij,jk,kl->il", *arguments)
    )


@IMPLICIT
def test_path_of_ellipses() -> None:
    arguments = [xarr.ones((5, 2, 3)), xarr.ones((3, 4)), xarr.ones((1, 4))]
    path, report = xarr.einsum_path("...ij,jk,...k->...i", *arguments)
    wanted, _ = np.einsum_path("...ij,jk,...k->...i", *map(np.asarray, arguments))
    assert path == wanted
    assert "Complete contraction" in report
    with pytest.raises(InputError, match="einsum_call=True is internal"):
        xarr.einsum_path("i", np.ones(2), einsum_call=True)


def test_it_is_one_graph() -> None:
    a, b = values((2, 3), "float64"), values((3, 4), "float64")
    text = str(xarr.lower(lambda x, y: xarr.einsum("ij,jk->ki", x, y), a, b).graph)
    assert "dot_general" in text
    assert_same(xarr.jit(lambda x, y: xarr.einsum("ij,jk->ki", x, y))(a, b), np.einsum("ij,jk->ki", a, b))


def test_without_implicit_broadcasting() -> None:
    with xarr.config(broadcasting="explicit"):
        for text in ("ij,jk,kl->il", "i,j->ij", "ii->i", "lij,ljk->lik"):
            arguments = operands(text)
            assert_same(xarr.einsum(text, *arguments), np.einsum(text, *arguments))
        with pytest.raises(BroadcastError):
            xarr.einsum("ij,jk", np.ones((2, 1)), np.ones((3, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ij", np.ones(2)), "operand 0 has 1 dimension, its subscripts name 2"),
        (("...ij", np.ones(1)), "operand 0 has 1 dimension, its subscripts name 2"),
        (("ij,jk", np.ones((2, 3))), "the subscripts are for 2 operands, got 1"),
        (
            ("ij,jk", np.ones((2, 3)), np.ones((4, 2))),
            "'j' has size 3 in operands before, and 4 in operand 1",
        ),
        (("ij->ik", np.ones((2, 3))), "'k' of the result is in no operand"),
        (("ij->ii", np.ones((2, 3))), "'i' is in the result twice"),
        (("i...->i", np.ones((2, 3))), "must have '...' where"),
        (("ii->i", np.ones((2, 3))), "'i' has sizes 2 and 3 in operand 0"),
        (("i$", np.ones((2, 3))), "wanted letters, commas"),
        (("i....", np.ones((2, 3))), "wanted letters, commas"),
        (("i->j->k", np.ones(2)), "wanted letters, commas"),
        ((np.ones(2), [Ellipsis, Ellipsis]), "at most one Ellipsis"),
    ],
)
def test_refused_subscripts(arguments: Any, message: str) -> None:
    for function in (xarr.einsum, xarr.einsum_path):
        with pytest.raises(ShapeError, match=message):
            function(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [(), (np.ones(2), [52]), (np.ones(2), ["i"]), (np.ones(2), 3), (np.ones(2), [0], [0], np.ones(2))],
    ids=str,
)
def test_refused_arguments(arguments: Any) -> None:
    with pytest.raises(InputError, match="wanted"):
        xarr.einsum(*arguments)


@pytest.mark.parametrize("optimize", ["fast", 3, ["einsum_path", (0, 9)], ["einsum_path", (0,)]], ids=str)
def test_refused_paths(optimize: Any) -> None:
    arguments = operands("ij,jk,kl->il")
    with pytest.raises(InputError, match="wanted another path"):
        xarr.einsum("ij,jk,kl->il", *arguments, optimize=optimize)
