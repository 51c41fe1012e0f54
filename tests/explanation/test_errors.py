"""Errors with explanations: every argument reaches the function that explains, which is loaded when one is raised."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from xarr.explanation import broadcast, errors
from xarr.explanation.sheets import contraction

SHAPES = [(3, 4), (3,)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"names": ("x", "v"), "dtypes": ("f32", None)},
        {"broadcast_dimensions": (1,)},
        {"explicit": True},
        {"problem": "refused, for a reason"},
    ],
    ids=str,
)
def test_broadcast_error(options: dict[str, Any]) -> None:
    got, wanted = (module.broadcast_error("subtract", SHAPES, **options) for module in (errors, broadcast))
    assert type(got) is type(wanted) and str(got) == str(wanted)
    assert got.explanation == wanted.explanation
    assert str(got) != str(broadcast.broadcast_error("add", SHAPES))


@pytest.mark.parametrize("pairs", [None, [(1, 0)]])
@pytest.mark.parametrize("problem", [None, "refused, for a reason"])
def test_product_error(pairs: Any, problem: str | None) -> None:
    arguments = ("matmul", SHAPES, ("x", "v"), ("f32", "f64"), pairs, problem)
    got, wanted = errors.product_error(*arguments), contraction.product_error(*arguments)
    assert type(got) is type(wanted) and str(got) == str(wanted)
    assert got.explanation == wanted.explanation


def test_explain_shapes() -> None:
    options: dict[str, Any] = {"op": "-", "names": ("x", "y"), "dtypes": ("f32", "f64")}
    got, wanted = (module.explain_shapes((5, 1), (5,), **options) for module in (errors, broadcast))
    assert got == wanted
    assert got.text().startswith("x - y    x: f32[5,1]   y: f64[5]")
    assert errors.explain_shapes((5, 1), (5,)) == broadcast.explain_shapes((5, 1), (5,))


def test_explanations_are_loaded_when_an_error_is_raised() -> None:
    code = (
        "import sys, numpy, xarr\n"
        "names = ('xarr.explanation.broadcast', 'xarr.explanation.sheets.contraction')\n"
        "assert not set(names) & set(sys.modules)\n"
        "try: xarr.ones((2, 3)) @ numpy.ones((2, 3))\n"
        "except ValueError as error: assert 'a: f64[2,3]' in str(error), error\n"
        "assert names[1] in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "XARR_BACKEND": "numpy"}, check=True, timeout=60
    )
