"""Loops that repeat one group of operations natively: the bits of the loop step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.support.jitting import assert_compiled_loops_agree
from tests.support.threads import threads
from xarr import lax
from xarr.compiler.plan.planner import peak
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

RNG = np.random.default_rng(8)
NEVER_SERIAL = PROCESSOR.replace(max_serial_bytes=0)


def smooth(u: Any) -> Any:
    return u.at[1:-1, 1:-1].set(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]))


def repeat(step: Callable[..., Any], steps: int) -> Callable[..., Any]:
    return lambda *state: lax.fori_loop(0, steps, lambda i, s: step(*s), state)


def remarks(function: Callable[..., Any], *arrays: Any) -> list[str]:
    with xarr.config(fusion="compiled"):
        fused = xarr.jit(function).lower(*arrays).stage("fused")
    assert isinstance(fused, Graph)
    loops = [node.op for node in fused.nodes if isinstance(node.op, ops.While)]
    return [op.remark_text if isinstance(op, ops.NativeWhile) else "" for op in loops]


def agree(function: Callable[..., Any], *arrays: Any, same_sums: bool = True) -> None:
    assert_compiled_loops_agree(function, *arrays, compare=assert_same if same_sums else assert_close)


def assert_close(got: Any, wanted: Any) -> None:
    assert np.shape(got) == np.shape(wanted)
    assert np.allclose(np.asarray(got), np.asarray(wanted), rtol=1e-10)


@pytest.fixture
def in_many_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few rows at a time, few steps a pass, and more threads than there are processors."""
    from xarr_numpy.compiled import schedule
    from xarr_numpy.compiled.loops import iterated_kernel

    monkeypatch.setattr(schedule, "SCHEDULE", replace(schedule.SCHEDULE, target=NEVER_SERIAL))
    monkeypatch.setattr(iterated_kernel, "PROCESSOR", PROCESSOR.replace(wavefront_bytes=2**14))
    with threads(4):
        yield


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(8, 9), (100, 30), (301, 17), (1000, 64)])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 7, 50])
def test_a_stencil_in_pieces(shape: tuple[int, ...], steps: int, in_many_pieces: None) -> None:
    agree(repeat(lambda u: (smooth(u),), steps), RNG.normal(size=shape))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_a_stencil(dtype: str) -> None:
    u = xarr.asarray(RNG.normal(size=(400, 300)), dtype=dtype)
    function = repeat(lambda u: (smooth(u),), 11)
    (remark,) = remarks(function, u)
    assert "several steps a pass" in remark and "1 rows" in remark
    agree(function, u)


def wave(u: Any, before: Any, speed: Any) -> Any:
    """Two carried grids and one that stays: the equation of waves, whose steps swap the grids."""
    inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    following = before.at[1:-1, 1:-1].set(2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + speed[1:-1, 1:-1] * inner)
    return following, before * 1 + u * 0, speed


def wide(u: Any) -> Any:
    """Five points up and down."""
    return u.at[2:-2].set((u[:-4] - u[1:-3] + u[3:-1] - u[4:]) * 0.3)


def shift(u: Any, v: Any) -> Any:
    """Fields that read one another, on the same part of the grid."""
    return (
        u.at[1:-1, :].set(u[1:-1, :] + 0.1 * (v[2:, :] - v[1:-1, :])),
        v.at[1:-1, :].set(v[1:-1, :] - 0.1 * (u[1:-1, :] - u[:-2, :])),
    )


def volume(u: Any) -> Any:
    return u.at[1:-1, 1:-1, 1:-1].set((u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, 1:-1, 2:]) * 0.3)


def periodic(u: Any) -> Any:
    """Each row reads one far away: no rows can run ahead."""
    return xarr.roll(u, 1, axis=0) * 0.5 + xarr.roll(u, -1, axis=0) * 0.25


def mixed_border(u: Any, v: Any) -> Any:
    """The border of the update of one grid comes from the other, and changes from step to step."""
    return v.at[1:-1].set(u[:-2] + u[2:]), u.at[1:-1].set(v[:-2] * 0.5)


STEPS: dict[str, tuple[Callable[..., Any], int, tuple[int, ...]]] = {
    "wave": (wave, 3, (90, 40)),
    "wide": (lambda u: (wide(u),), 1, (90, 40)),
    "fields": (shift, 2, (90, 40)),
    "volume": (lambda u: (volume(u),), 1, (30, 12, 9)),
    "periodic": (lambda u: (periodic(u),), 1, (90, 40)),
    "mixed border": (mixed_border, 2, (90, 40)),
    "rows of one": (lambda u: (wide(u),), 1, (90, 1)),
    "one dimension": (lambda u: (wide(u),), 1, (900,)),
    "reversed": (lambda u: (u[::-1] * 0.5 + u,), 1, (90, 40)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_steps(name: str, steps: int, in_many_pieces: None) -> None:
    step, count, shape = STEPS[name]
    agree(repeat(step, steps), *[RNG.normal(size=shape) for _ in range(count)])


@pytest.mark.parametrize("name", STEPS)
def test_small_steps(name: str) -> None:
    step, count, shape = STEPS[name]
    agree(repeat(step, 13), *[RNG.normal(size=shape) for _ in range(count)])


def test_what_cannot_run_ahead_of_its_rows_goes_on_step_by_step(in_many_pieces: None) -> None:
    for name in ("periodic", "mixed border", "reversed"):
        step, count, shape = STEPS[name]
        assert remarks(repeat(step, 5), *[np.ones(shape)] * count) == [""]


def test_small_groups_with_sums_repeat_too() -> None:
    function = repeat(lambda s: (s / xarr.sum(s * s),), 20)
    assert remarks(function, np.ones(50)) == ["native loop: repeats one group"]
    agree(function, RNG.normal(size=50), same_sums=False)
    agree(
        repeat(lambda s: (s / xarr.sum(s, axis=1, keepdims=True) + 1,), 9), np.ones((7, 5)), same_sums=False
    )


@pytest.mark.parametrize("steps", [0, 1])
def test_what_is_written_over_the_result_leaves_what_the_loop_began_with(steps: int) -> None:
    def program(x: Any, count: Any) -> Any:
        start = x * 2 + 1
        return lax.fori_loop(0, count, lambda i, u: smooth(u), start) * 2 + 1, start

    agree(program, RNG.normal(size=(200, 200)), steps)


def test_a_loop_that_ends_by_its_arrays_goes_on_step_by_step() -> None:
    def function(u: Any) -> Any:
        return lax.while_loop(lambda s: xarr.sum(s[1]) > 3, lambda s: (s[0] + 1, smooth(s[1])), (0, u))

    assert remarks(function, np.ones((30, 20))) == [""]
    u = np.zeros((30, 20))
    u[10:12, 5:9] = 2.0
    agree(function, u)


def test_a_bar_counts_the_steps(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr.base import progress

    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_LOG", 0.0)
    with xarr.config(fusion="compiled"):
        function = xarr.jit(lambda u: lax.fori_loop(0, 57, lambda i, u: smooth(u), u, progress="heat"))
        function(RNG.normal(size=(200, 200))).evaluate()
    assert "57/57" in capsys.readouterr().err


@st.composite
def stencils(draw: st.DrawFn) -> tuple[Callable[..., Any], list[Any]]:
    """Updates of the middle of one or two grids from shifted windows of them."""
    shape = (draw(st.integers(5, 60)), draw(st.integers(5, 20)))
    margins = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape]
    sizes = tuple(n - low - high for n, (low, high) in zip(shape, margins, strict=True))
    count = draw(st.integers(1, 2))
    reads = st.tuples(
        st.integers(0, count - 1),
        *[st.integers(0, low + high) for low, high in margins],
    )
    taps = [draw(st.lists(reads, min_size=1, max_size=4)) for _ in range(count)]

    def step(*grids: Any) -> Any:
        results = []
        for k, grid in enumerate(grids):
            total: Any = None
            for source, *at in taps[k]:
                window = grids[source][tuple(slice(a, a + n) for a, n in zip(at, sizes, strict=True))]
                total = window * 0.375 if total is None else total - window * 0.5
            results.append(lax.dynamic_update_slice(grid, total, tuple(low for low, _ in margins)))
        return tuple(results)

    return repeat(step, draw(st.integers(0, 12))), [RNG.normal(size=shape) for _ in range(count)]


@given(stencils())
@settings(max_examples=40, deadline=None)
def test_random_stencils(stencil: tuple[Callable[..., Any], list[Any]]) -> None:
    from xarr_numpy.compiled import schedule
    from xarr_numpy.compiled.loops import iterated_kernel

    with pytest.MonkeyPatch.context() as patch, threads(3):
        patch.setattr(schedule, "SCHEDULE", replace(schedule.SCHEDULE, target=NEVER_SERIAL))
        patch.setattr(iterated_kernel, "PROCESSOR", PROCESSOR.replace(wavefront_bytes=2**12))
        agree(stencil[0], *stencil[1])


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 8])
def test_a_donated_grid_is_one_of_the_two_that_take_turns(steps: int) -> None:
    u = RNG.normal(size=(400, 300))
    wanted = xarr.jit(repeat(lambda u: (smooth(u),), steps))(xarr.asarray(u))[0]
    with xarr.config(fusion="compiled"):  # in memory that the library knows to be its own
        grid = (xarr.asarray(u) * 1).evaluate()
    address = np.asarray(grid._node.value).ctypes.data
    (result,) = xarr.jit(repeat(lambda u: (smooth(u),), steps), donate_argnums=0)(grid)
    assert_same(result, wanted)
    if steps % 2 == 0:
        assert np.asarray(result._node.value).ctypes.data == address


@pytest.mark.usefixtures("fused")
def test_the_second_grid_counts_as_memory_in_use() -> None:
    fused = xarr.jit(repeat(lambda u: (smooth(u),), 8)).lower(np.zeros((400, 300))).stage("fused")
    assert isinstance(fused, Graph)
    assert peak(fused).total == pytest.approx(3 * 400 * 300 * 8, rel=1e-3)
