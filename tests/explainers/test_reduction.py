"""`explain_reduce`: its code computes what NumPy computes, for each op, set of axes and shape."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.explained import check_views, code_of, run_loop, run_program
from xarr.errors import InputError, ParseError
from xarr.explanation.grids import fold, indices_in
from xarr.explanation.sheets.reduction import REDUCTIONS

SHAPES = [(), (3,), (1,), (0,), (3, 4), (1, 3), (2, 0), (2, 1, 3), (2, 3, 2, 2), (1, 2, 1, 2, 2)]


@pytest.mark.parametrize("op", REDUCTIONS)
def test_code_is_numpys(op: str) -> None:
    generator, refused = np.random.default_rng(1), 0
    for shape in SHAPES:
        x = generator.integers(0, 3, shape).astype(bool if op in ("any", "all") else float)
        axes = [None, *(axes for count in (1, 2) for axes in combinations(range(len(shape)), count))]
        for number, axis in enumerate(axes):
            keepdims = number % 2 == 1
            explanation = xarr.explain_reduce(x, axis, op, keepdims)
            if not explanation.fits:
                refused += 1
                with pytest.raises(ValueError, match="zero-size"):
                    getattr(x, op)(axis=axis)
                continue
            if op == "mean" and not explanation.count:
                continue  # NumPy warns
            wanted = np.asarray(getattr(x, op)(axis=axis, keepdims=keepdims))
            assert explanation.result.shape == wanted.shape
            assert_same(run_program(code_of(explanation, "explicit"), x), wanted)
            assert_same(np.asarray(eval(code_of(explanation, "NumPy"), {"x": x})), wanted)
            loop = run_loop(explanation.loop, np.empty(wanted.shape, wanted.dtype), x=x)
            np.testing.assert_allclose(loop, wanted, rtol=1e-14)
    assert refused > 0 or op not in ("max", "min")


def test_text() -> None:
    text = xarr.explain_reduce("s32[3,4]", 1).text()
    assert text.startswith(
        """\
x.sum(axis=1)    x: s32[3,4]   ->  s64[3]

  axis    0                           1
  x       3                           4
  result  3                           gone
  how     kept, axis 0 of the result  reduced

  steps     1 axes: axis 1 of size 4 goes; axis 0 of size 3 stays
            2 one group: x[1,0], x[1,1], x[1,2], x[1,3] go to result[1]
            3 sum: of 4 elements
                result[1] = x[1,0] + x[1,1] + x[1,2] + x[1,3]
            4 every group: 3 groups of 4 elements, one for each element of the result
  loop      result[...] = 0
            for i in range(3):
                for j in range(4):
                    result[i] += x[i, j]
  NumPy     x.sum(axis=1)
"""
    )
    assert text.endswith(
        """\
  reads     each element of the result is made of 4 elements
  memory    x 12 elements (48 B), result 3 elements (24 B)

  others:
      x.sum(axis=1, keepdims=True)   ->  s64[3,1], which broadcasts against x
      x.sum(axis=0)                  ->  s64[4]"""
    )


@pytest.mark.parametrize(
    ("x", "axis", "op"),
    [
        ((3, 4), 1, "sum"),
        ((), None, "prod"),
        ((2, 30, 40), (0, 2), "max"),
        ((0, 3), 0, "min"),
        ((0, 3), 1, "sum"),
        ((2,) * 9, 3, "any"),
        (np.ones((2, 3)), None, "mean"),
    ],
    ids=str,
)
def test_views(x: Any, axis: Any, op: str) -> None:
    explanation = xarr.explain_reduce(x, axis, op)
    facts = check_views(explanation)
    assert facts["op"] == op and facts["result"]["shape"] == list(explanation.result.shape)
    assert explanation.headline in explanation.html().replace("&gt;", ">")


def test_what_fails_says_what_works() -> None:
    text = xarr.explain_reduce((0, 3), 0, "max").text()
    assert "axis 0 of x is empty, and no element is the max of none" in text
    assert "x.max(axis=0, initial=0)   ->  (3,)" in text
    assert np.zeros((0, 3)).max(axis=0, initial=0).shape == (3,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: xarr.explain_reduce((3,), 1),
            InputError,
            "axis 1 is out of range for rank 1; legal are -1 … 0",
        ),
        (lambda: xarr.explain_reduce((3,), (0, -1)), InputError, "wanted each axis once"),
        (lambda: xarr.explain_reduce((3,), "0"), InputError, "wanted an int, ints or None for axis"),
        (lambda: xarr.explain_reduce((3,), 0, "median"), InputError, "wanted op to be one of sum, prod"),
        (lambda: xarr.explain_reduce({3}, 0), InputError, "wanted an array, a shape such as"),
        (lambda: xarr.explain_reduce("f32[3", 0), ParseError, "cannot read"),
    ],
)
def test_malformed(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_long_axes_are_cut_off() -> None:
    assert fold(4, 8) == (0, 1, 2, 3)
    assert fold(100, 5) == (0, 1, 2, None, 99)
    assert indices_in((1, 2, 100)) == [(0, 0, 0), (0, 0, 1), (0, 0, 99), (0, 1, 0), (0, 1, 1), (0, 1, 99)]
    assert len(xarr.explain_reduce((1000, 1000, 1000), 1).html()) < 30_000


def test_the_steps_of_what_is_empty() -> None:
    for op, value in (("sum", "0"), ("prod", "1"), ("mean", "nan"), ("any", "False"), ("all", "True")):
        steps = xarr.explain_reduce((0, 3), 0, op).steps()
        assert [step.text for step in steps[1:]] == [f"{op} of no elements is {value}"]
    assert xarr.explain_reduce((2, 0), 0).steps()[-1].text == "it has no elements"


@pytest.mark.parametrize(
    "name", ["x + y", "a.b", "w[0]", "class", "x=print('run')", "program", "call", "lax"]
)
def test_any_name_is_shown_and_none_is_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    explained: list[Any] = [
        xarr.explain_reduce((3, 4), 0, name=name),
        xarr.explain_window((3, 4), 2, op="conv", name=name),
        xarr.explain_einsum("ij,jk->ik", (3, 4), (4, 2), names=[name, name]),
    ]
    for each in explained:
        assert name in each.text()
        compile(code_of(each, "explicit"), "<explicit>", "exec")
    assert not capsys.readouterr().out


def test_names_of_parameters_are_unlike() -> None:
    explained = xarr.explain_einsum("i,i,i,i->i", (3,), (3,), (3,), (3,), names=["x", "x", "u + v", "x0"])
    assert "def program(x, x1, x2, x0):" in explained.text()


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 3, 0)])
def test_what_numpy_refuses_is_said_not_to_run(op: str, shape: tuple[int, ...]) -> None:
    ranks = range(len(shape))
    for axes in [axes for count in ranks for axes in combinations(ranks, count + 1)]:
        for keepdims in (False, True):
            explained = xarr.explain_reduce(shape, axes, op, keepdims)
            check_views(explained)
            try:
                getattr(np, op)(np.zeros(shape), axes, keepdims=keepdims)
            except ValueError:
                assert not explained.fits
                assert "initial=0)" in explained.text()
            else:
                assert explained.fits


def test_the_loop_of_a_mean_of_nothing_gives_nan() -> None:
    x = np.zeros((0, 3))
    loop = code_of(xarr.explain_reduce(x, 0, "mean"), "loop")
    assert_same(run_loop(loop.replace("nan", "np.nan"), np.zeros(3), x=x, np=np), np.full(3, np.nan))
