"""Convolutions over all features in tiles: whole numbers, whose sums are exact, and sums of them in memory's order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.cpu.convolutions import has_tiles, ways
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.ir.windows import WindowDimension
from xarr_numpy.compiled.kernel import CompiledKernel
from xarr_numpy.compiled.schedule import SCHEDULE

pytest.importorskip("llvmlite")

#: Layouts: forward, the gradient by the array and that by the kernel, as JAX writes them.
FORWARD, BACKWARD = ("NHWC", "HWIO", "NHWC"), ("NHWC", "HWOI", "NHWC")
BY_KERNEL = ("CHWN", "IHWO", "HWNC")


@dataclass(frozen=True)
class Case:
    layout: tuple[str, str, str]
    array: tuple[int, ...]
    kernel: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "windows of one image": Case(FORWARD, (1, 9, 11, 5), (3, 3, 5, 40), ((1, 1), (1, 1))),
    "high images": Case(FORWARD, (1, 23, 3, 5), (3, 3, 5, 16), ((1, 1), (1, 1))),
    "a batch": Case(FORWARD, (9, 4, 5, 3), (3, 3, 3, 24), ((1, 1), (1, 1))),
    "strides": Case(FORWARD, (2, 9, 11, 5), (3, 3, 5, 16), ((1, 2), (0, 1)), {"window_strides": (2, 2)}),
    "windows with holes": Case(
        FORWARD, (2, 9, 11, 4), (3, 3, 4, 8), ((-2, 1), (5, -3)), {"rhs_dilation": (2, 3)}
    ),
    "far beside the array": Case(FORWARD, (1, 3, 4, 2), (3, 3, 2, 8), ((5, 5), (-1, 7))),
    "kernels read from the end": Case(
        FORWARD, (2, 6, 7, 3), (3, 2, 3, 16), ((1, 1), (1, 0)), {"window_reversal": (True, True)}
    ),
    "a kernel beyond a cache": Case(FORWARD, (2, 3, 3, 128), (3, 3, 128, 129), ((1, 1), (1, 1))),
    "one feature and long sums": Case(FORWARD, (1, 4, 9, 1100), (2, 2, 1100, 8), ((0, 0), (0, 0))),
    "an array with holes": Case(
        BACKWARD, (3, 4, 5, 16), (3, 3, 24, 16), ((2, 1), (2, 1)), {"lhs_dilation": (2, 2)}
    ),
    "a batch with holes": Case(
        BACKWARD, (8, 2, 3, 16), (3, 3, 24, 16), ((2, 1), (2, 1)), {"lhs_dilation": (2, 2)}
    ),
    "holes that a kernel of one element meets": Case(
        BACKWARD, (2, 4, 5, 8), (1, 1, 24, 8), ((0, 1), (0, 1)), {"lhs_dilation": (2, 3)}
    ),
    "doubled images": Case(FORWARD, (1, 4, 5, 8), (2, 2, 8, 24), ((1, 1), (1, 1)), {"lhs_dilation": (2, 2)}),
    "holes read from the end": Case(
        FORWARD,
        (1, 4, 5, 8),
        (3, 3, 8, 8),
        ((1, 1), (2, 2)),
        {"lhs_dilation": (2, 2), "window_reversal": (True, False)},
    ),
    "by the kernel": Case(BY_KERNEL, (5, 8, 9, 5), (5, 8, 9, 20), ((1, 1), (1, 1))),
    "by the kernel, of few features": Case(BY_KERNEL, (2, 40, 40, 3), (2, 38, 38, 33), ((1, 1), (1, 1))),
    "by the kernel, of strides": Case(
        BY_KERNEL, (5, 8, 8, 16), (5, 4, 4, 24), ((0, -1), (0, 1)), {"rhs_dilation": (2, 2)}
    ),
    "many features with holes": Case(
        BACKWARD, (8, 2, 3, 16), (3, 3, 64, 16), ((2, 1), (2, 1)), {"lhs_dilation": (2, 2)}
    ),
    "by the kernel, of many features": Case(BY_KERNEL, (5, 8, 9, 16), (5, 8, 9, 64), ((1, 1), (1, 1))),
    "arrays of one feature": Case(FORWARD, (2, 7, 9, 1), (2, 3, 1, 33), ((-1, 0), (0, 1))),
    "arrays of one feature, by strides": Case(
        FORWARD, (1, 9, 9, 1), (3, 2, 1, 16), ((1, 0), (0, 1)), {"window_strides": (3, 3)}
    ),
    "results of one feature": Case(FORWARD, (2, 9, 11, 5), (3, 2, 5, 1), ((1, 1), (0, 2))),
    "one of a batch": Case(FORWARD, (9, 4, 5, 3), (3, 3, 3, 1), ((1, 1), (1, 1))),
    "of three features, by strides": Case(
        FORWARD, (1, 9, 11, 20), (3, 3, 20, 3), ((1, 2), (0, 1)), {"window_strides": (2, 2)}
    ),
    "of two features with holes": Case(
        BACKWARD, (2, 4, 5, 16), (3, 3, 2, 16), ((2, 1), (2, 1)), {"lhs_dilation": (2, 2)}
    ),
    "one dimension": Case(("NWC", "WIO", "NWC"), (1, 40, 5), (3, 5, 40), ((1, 1),)),
    "three dimensions": Case(
        ("NDHWC", "DHWIO", "NDHWC"),
        (1, 6, 5, 7, 3),
        (3, 2, 3, 3, 8),
        ((1, 1), (1, 1), (1, 1)),
        {"lhs_dilation": (2, 3, 1)},
    ),
    "no dimension": Case(("NC", "IO", "NC"), (7, 6), (6, 12), ()),
    "nothing between": Case(("NCHW", "HWIO", "NHWC"), (3, 4, 6, 5), (2, 2, 4, 16), ((0, 1), (1, 0))),
}


def convolve(case: Case) -> Any:
    strides = case.options.get("window_strides", (1,) * len(case.padding))
    others = {name: value for name, value in case.options.items() if name != "window_strides"}
    return lambda x, kernel: lax.conv_general_dilated(
        x, kernel, strides, case.padding, dimension_numbers=case.layout, **others
    )


def arrays(case: Case, dtype: str) -> tuple[Any, Any]:
    """Small whole numbers."""
    random = np.random.default_rng(len(case.array) + case.array[1])
    array, kernel = (random.integers(-3, 4, shape).astype(dtype) for shape in (case.array, case.kernel))
    return array, kernel


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_are_those_of_numpy(name: str, dtype: str) -> None:
    function, (x, kernel) = convolve(CASES[name]), arrays(CASES[name], dtype)
    with xarr.config(fusion="off"):
        wanted = np.asarray(function(xarr.asarray(x), xarr.asarray(kernel)))
    with xarr.config(fusion="compiled"):
        lowered = xarr.lower(function, x, kernel)
        assert "launch conv_general_dilated" in str(lowered.stage("plan"))
        got = np.asarray(function(xarr.asarray(x), xarr.asarray(kernel)))
    assert got.any()
    assert_same(got, wanted)


@pytest.mark.parametrize(
    "name", ["windows of one image", "a batch", "many features with holes", "by the kernel, of many features"]
)
def test_bits_do_not_depend_on_the_registers_of_a_machine(name: str) -> None:
    case = CASES[name]
    random = np.random.default_rng(3)
    arrays = [random.standard_normal(shape).astype("f") for shape in (case.array, case.kernel)]
    with xarr.config(fusion="compiled"):
        graph = xarr.jit(convolve(case)).lower(*arrays).stage("fused")
    assert isinstance(graph, Graph)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.Fusion)]
    assert isinstance(node.op, ops.Fusion)
    kernel = (
        arrays[1] if node.operands[1] is graph.parameters[1] else arrays[1].transpose(0, 1, 3, 2).copy()
    )  # HWIO
    assert kernel.shape == node.operands[1].shape
    pairs = []
    for sums in (24, 6):
        target = SCHEDULE.target.replace(max_tile_sums=sums)
        program = Schedule(target, SCHEDULE.builders, SCHEDULE.limits).build(node.op)
        pairs.append(
            (str(program), CompiledKernel(program, node.op.computation.result_types).call(arrays[0], kernel))
        )
    (wide, first), (narrow, second) = pairs
    assert wide != narrow
    assert_same(first, second)


@pytest.mark.parametrize("padding", [((1, 1), (1, 1)), ((2, 1), (2, 1))])
def test_infinite_elements_meet_no_padding_and_no_hole(padding: tuple[tuple[int, int], ...]) -> None:
    x, kernel = np.full((1, 3, 4, 2), np.inf, np.float32), np.ones((3, 3, 2, 8), np.float32)
    case = Case(FORWARD, x.shape, kernel.shape, padding, {"lhs_dilation": (2, 2)})
    function = convolve(case)
    with xarr.config(fusion="compiled"):
        got = np.asarray(function(xarr.asarray(x), xarr.asarray(kernel)))
        weights = np.asarray(function(xarr.asarray(np.ones_like(x)), xarr.asarray(kernel * np.inf)))
    assert not np.isnan(got).any()
    assert not np.isnan(weights).any()


def test_each_position_is_gone_through_in_one_way() -> None:
    for padding in range(-3, 5):
        for size in range(1, 6):
            for holes in range(1, 4):
                dimension = WindowDimension(size, padding_low=padding, base_dilation=holes)
                separate = [
                    (way, way.first + k * way.first_apart, way.start + k * way.start_apart)
                    for way in ways(dimension, 7)
                    for k in range(way.alike)
                ]
                positions = [first + way.step * k for way, first, _ in separate for k in range(way.extent)]
                assert sorted(positions) == list(range(7))
                for way, first, start in separate:
                    taps = range(start, size, way.step) if way.window else range(0)
                    # These elements of the kernel meet elements, all others meet holes.
                    assert [k for k in range(size) if (first - padding + k) % holes == 0] == list(taps)
    assert [way.alike for way in ways(WindowDimension(2, padding_low=1, base_dilation=2), 8)] == [2]
    assert [way.alike for way in ways(WindowDimension(3, padding_low=1, base_dilation=2), 8)] == [1, 1]


@pytest.mark.parametrize(
    ("layout", "shapes", "dtype", "options"),
    [
        (("NCHW", "OIHW", "NCHW"), ((1, 3, 5, 5), (8, 3, 3, 3)), "float32", {}),
        (FORWARD, ((1, 5, 5, 4), (3, 3, 2, 8)), "float32", {"feature_group_count": 2}),
        (FORWARD, ((1, 5, 5, 4), (3, 3, 4, 8)), "int32", {}),
        (FORWARD, ((1, 5, 5, 4), (3, 3, 4, 8)), "float16", {}),
        (FORWARD, ((1, 5, 5, 4), (3, 3, 4, 8)), "complex64", {}),
        (
            FORWARD,
            ((1, 5, 5, 4), (3, 3, 4, 8)),
            "float32",
            {"lhs_dilation": (2, 2), "window_strides": (2, 1)},
        ),
    ],
)
def test_other_convolutions_have_no_tiles(
    layout: Any, shapes: Any, dtype: str, options: dict[str, Any]
) -> None:
    case = Case(layout, *shapes, ((1, 1), (1, 1)), options)
    graph = xarr.lower(convolve(case), *arrays(case, dtype)).stage("traced")
    assert isinstance(graph, Graph)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.Convolution)]
    assert not has_tiles(node)
