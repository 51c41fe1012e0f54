"""Along which axes of a mesh values differ, compared with what replicas compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.communication.process_groups import Mesh
from xarr.runtime.named_axes import bind_axes
from xarr.transforms.sharding.varying_axes import varying_axes

GRID = Mesh((("x", 2), ("y", 2), ("z", 3)))


def _axes(f: Callable[..., Any], *parameters: str) -> list[str]:
    with bind_axes(GRID):
        graph = xarr.lower(f, *["f64[6]"] * len(parameters)).graph
    axes = varying_axes(graph, GRID, [frozenset(each) for each in parameters])
    return ["".join(sorted(each)) for each in axes]


@pytest.mark.parametrize(
    ("f", "parameters", "wanted"),
    [
        (lambda a: a * 2, ("x",), "x"),
        (lambda a, b: a + b, ("x", "z"), "xz"),
        (lambda a: lax.psum(a, "x"), ("xy",), "y"),
        (lambda a: lax.psum(a, ("x", "z")), ("xyz",), "y"),
        (lambda a: lax.pmax(a, "y"), ("x",), "x"),
        (lambda a: lax.all_gather(a, "x"), ("x",), ""),
        (lambda a: lax.psum_scatter(a, "x", tiled=True), ("",), "x"),
        (lambda a: lax.all_to_all(a, "z", 0, 0, tiled=True), ("y",), "yz"),
        (lambda a: lax.ppermute(a, "x", [(0, 1), (1, 0)]), ("y",), "xy"),
        (lambda a: lax.ppermute(a, "x", [(0, 1)]), ("",), "xyz"),
        (lambda a: a + lax.axis_index("y"), ("",), "y"),
        (lambda a: a + lax.axis_index(("x", "z")), ("",), "xz"),
        (lambda a: a + lax.replica_id().astype(np.float64), ("",), "xyz"),
        (lambda a: lax.psum(a + lax.axis_index("y"), "y"), ("",), ""),
        (lambda a: lax.fori_loop(0, 3, lambda i, c: c + 1, a), ("x",), "x"),
        (lambda a: lax.fori_loop(0, lax.axis_index("z"), lambda i, c: c + 1, a), ("x",), "xz"),
        (lambda a: lax.cond(lax.axis_index("x") > 0, lambda: a, lambda: a + 1), ("",), "x"),
        (lambda a: lax.cond(a[0] > 0, lambda: lax.axis_index("y"), lambda: 0), ("",), "y"),
        (lambda a: lax.cond(a[0] > 0, lambda: a, lambda: a * lax.axis_index("y")), ("x",), "xy"),
        (lambda a: lax.switch(2, [lambda: 0, lambda: 1, lambda: lax.axis_index("z")]), ("",), "z"),
        (lambda a: lax.switch(a[0].astype(int), [lambda: 0, lambda: 1, lambda: 2]), ("y",), "y"),
        (
            lambda a: lax.cond(lax.psum(a, "x")[0] > 0, lambda: lax.psum(a, "x"), lambda: lax.pmax(a, "x")),
            ("x",),
            "",
        ),
        (lambda a: lax.map(lambda b: b + lax.axis_index("z"), a), ("x",), "xz"),
        (lambda a: xarr.jit(lambda b: lax.psum(b, "x"))(a), ("xy",), "y"),
        (lambda a: xarr.zeros(3), ("x",), ""),
    ],
)
def test_axes_of_a_result(f: Callable[..., Any], parameters: tuple[str, ...], wanted: str) -> None:
    assert _axes(f, *parameters) == [wanted]


def test_results_have_axes_of_their_own() -> None:
    assert _axes(lambda a, b: (b, a, lax.psum(b, "y")), "x", "y") == ["y", "x", ""]
    assert _axes(lambda a, b: lax.psum((a, b), "x"), "xy", "xz") == ["y", "z"]


def test_a_loop_carries_what_it_mixes() -> None:
    def f(a: Any, b: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: (c[1], c[0], c[2]), (a, b, a * 0))

    assert _axes(f, "x", "y") == ["xy", "xy", "x"]
