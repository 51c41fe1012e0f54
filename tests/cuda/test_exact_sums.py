"""Sums of float32 by scatters that are exact, whatever the order of the updates, on the emulated device."""

from __future__ import annotations

import math
import shutil
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from tests.cuda.test_cupy_backend import device
from tests.cuda.test_shared_work import bits_in_each_order
from xarr.compiler.schedules.gpu import builders
from xarr.compiler.schedules.gpu.target import TARGET
from xarr.compiler.schedules.gpu.updates import exact_sums
from xarr.compiler.schedules.gpu.updates.exact_sums import adds_exactly
from xarr.ir import ops
from xarr_cupy import backend

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
#: Elements, and updates: as many as bins pay for.
SIZE, COUNT = 40, 600


@pytest.fixture
def bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins add up sums of few elements too."""
    for schedules in (builders.SCHEDULES, backend._SCHEDULES):
        schedule = schedules[True]
        fewer = xarr.compiler.schedule.Schedule(
            TARGET.replace(min_exact_results=1), schedule.builders, schedule.limits
        )
        monkeypatch.setitem(schedules, True, fewer)


def add(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].add(u, mode="drop")


def round_once(total: Fraction) -> np.float32:
    """A rational as the nearest float32, of two the even one."""
    if total == 0:
        return np.float32(0)
    exponent = max(math.floor(math.log2(abs(total))) - 23, -149)
    while abs(total) >= Fraction(2) ** (exponent + 24):
        exponent += 1
    while exponent > -149 and abs(total) < Fraction(2) ** (exponent + 23):
        exponent -= 1
    digits = round(total / Fraction(2) ** exponent)
    with np.errstate(over="ignore"):
        return np.float32(float(digits) * 2.0**exponent) if abs(digits) < 2**30 else np.float32(np.inf)


def sum_exactly(x: Any, i: Any, u: Any) -> np.ndarray[Any, Any]:
    """The sums of finite numbers, each rounded once."""
    sums = [Fraction(float(each)) for each in x]
    for at, each in zip(i, u, strict=True):
        if 0 <= at < len(sums):
            sums[at] += Fraction(float(each))
    return np.array([round_once(each) for each in sums])


def draw_bits(rng: np.random.Generator, count: int, exponents: int = 254) -> np.ndarray[Any, Any]:
    """Finite float32 of all exponents up to a number, of both signs."""
    bits = rng.integers(0, (exponents + 1) << 23, count, dtype=np.uint32)
    return (bits | rng.integers(0, 2, count, dtype=np.uint32) << 31).view(np.float32)


def draw_near(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.normal(size=COUNT).astype("f4")


def draw_cancelling(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Great numbers of both signs, and small ones that remain."""
    u = draw_bits(rng, COUNT, 253)
    u[1::3] = -u[0::3]
    u[2::3] *= np.float32(2.0**-120)
    return u


#: Updates of finite numbers.
DRAWN = {
    "near one another": draw_near,
    "of all exponents": lambda rng: draw_bits(rng, COUNT, 251),
    "subnormal": lambda rng: draw_bits(rng, COUNT, 1),
    "cancelling": draw_cancelling,
    "beyond the greatest": lambda rng: draw_bits(rng, COUNT, 254) * np.float32(1),
    "halves of a last place": lambda rng: np.where(rng.random(COUNT) < 0.5, 1, 2.0**-24).astype("f4"),
}


@needs_compiler
@pytest.mark.usefixtures("bins")
@pytest.mark.parametrize("name", DRAWN)
def test_sums_are_exact_and_rounded_once(name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    u = DRAWN[name](rng)
    i = np.repeat(rng.integers(-1, SIZE + 1, COUNT // 3), 3) if name == "cancelling" else None
    i = rng.integers(-1, SIZE + 1, COUNT) if i is None else i
    x = DRAWN[name](rng)[:SIZE]
    device(cupy).races = True
    result = bits_in_each_order(add, [x, i, u], cupy, monkeypatch)
    i = np.where(i < 0, i + SIZE, i)
    assert_same(result, sum_exactly(x, i, u))
    assert any("atomicAdd((uint64 *)" in text for text in device(cupy).texts)


@needs_compiler
@pytest.mark.usefixtures("bins")
def test_what_is_not_finite_and_zeros_are_those_of_floats(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inf, nan, most = np.inf, np.nan, np.finfo("f4").max
    cases: list[tuple[float, list[float], float]] = [
        (0.0, [], 0.0),
        (-0.0, [], -0.0),
        (-0.0, [-0.0, -0.0], -0.0),
        (-0.0, [-0.0, 0.0], 0.0),
        (-0.0, [1.0, -1.0], 0.0),
        (0.0, [-0.0], 0.0),
        (-1.0, [1.0], 0.0),
        (inf, [1.0], inf),
        (inf, [], inf),
        (-inf, [most], -inf),
        (inf, [-inf], nan),
        (1.0, [inf, inf], inf),
        (1.0, [-inf], -inf),
        (1.0, [inf, -inf], nan),
        (1.0, [nan, inf], nan),
        (nan, [1.0], nan),
        (nan, [], nan),
        (most, [most, -most], most),
        (most, [most], inf),
        (-most, [-(2.0**103)], -inf),
        (-most, [-most * 2.0**-25], -most),
        (0.0, [2.0**-149, 2.0**-149], 2.0**-148),
    ]
    x = np.array([case[0] for case in cases], "f4")
    i = np.repeat(np.arange(len(cases)), [len(case[1]) for case in cases])
    u = np.array([each for case in cases for each in case[1]], "f4")
    # Updates of nothing, so that there are enough of them.
    i, u = (np.resize(each, 400) for each in (np.append(i, [len(x)] * 400), np.append(u, [nan] * 400)))
    result = bits_in_each_order(add, [x, i, u], cupy, monkeypatch)
    assert_same(result, np.array([case[2] for case in cases], "f4"))
    onto_zeros = xarr.jit(lambda i, u: xarr.zeros(SIZE, dtype="float32").at[i].add(u, mode="drop"))
    zeros = np.full(len(u), -0.0, "f4")
    assert_same(np.asarray(onto_zeros(i, zeros)), np.zeros(SIZE, "f4"))


@needs_compiler
@pytest.mark.usefixtures("bins")
def test_complex_numbers_windows_and_several_arrays(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    i = rng.integers(0, 7, (900, 2))
    u = rng.integers(-9, 9, (900, 2, 2)) @ np.array([1, 1j])

    def function(i: Any, u: Any) -> Any:
        z = xarr.zeros((7, 8), dtype="complex64").at[i[:, 0], i[:, 1]].add(xarr.astype(u[:, 0], "complex64"))
        rows = xarr.zeros((7, 2), dtype="float32").at[i[:, 0]].add(xarr.astype(u.real, "float32"))
        return xarr.concatenate([z.real.ravel(), z.imag.ravel(), rows.ravel()])

    result = bits_in_each_order(function, [i, u], cupy, monkeypatch)
    with xarr.use_backend("numpy"):
        assert_same(result, np.asarray(function(*map(xarr.asarray, (i, u)))))


@pytest.mark.parametrize("count", [1, 2, 100, 2**16, 10**7, 2**24 - 1, 2**31 - 2])
def test_a_bin_holds_the_sum_of_as_many_as_there_are(count: int) -> None:
    """All of its greatest number, with the operand and what is carried there; and a sum has digits enough to round."""
    powers = exact_sums._powers_of_bin(count)
    assert powers >= 1
    greatest = (2**24 - 1) << (powers - 1)
    most = (count + 1) * greatest
    assert most + (2 * most >> powers) < 2**63
    # What is left of a sum when no digits fit any more has two bits more than a float32.
    assert 62 - powers >= 26
    assert exact_sums._count_bins(powers) * powers >= 254


def scatter_of(shape: Any, count: int, dtype: str = "float32", window: Any = ()) -> Any:
    """The scatter of a sum of so many updates."""
    arrays = xarr.zeros(shape, dtype=dtype), np.zeros(count, int), xarr.ones((count, *window), dtype=dtype)
    (node,) = [each for each in graph_of(add, *arrays).nodes if isinstance(each.op, ops.Scatter)]
    return node


def test_bins_pay_for_many_single_sums_into_many_elements() -> None:
    size = TARGET.min_exact_results
    many = 7 * size
    assert adds_exactly(scatter_of(size, many), TARGET)
    assert adds_exactly(scatter_of((size, 2), 2 * many, window=(2,)), TARGET)
    assert adds_exactly(scatter_of(size, 2 * many, "complex64"), TARGET)
    for other in (
        scatter_of(size - 1, many),
        scatter_of(size, size),
        scatter_of(size, many, "float64"),
        scatter_of(size, many, "bfloat16"),
        scatter_of((size, 16), 16 * many, window=(16,)),
    ):
        assert not adds_exactly(other, TARGET)
    assert not adds_exactly(scatter_of(size, many), TARGET.replace(deterministic=0))
    assert not adds_exactly(scatter_of(size, many), TARGET.replace(max_exact_updates=0))


def test_sums_into_bins_are_three_phases_and_one_for_a_flag() -> None:
    size = TARGET.min_exact_results
    arrays = np.zeros(7 * size, int), np.ones(7 * size, "f4")
    onto_zeros = graph_of(lambda i, u: xarr.zeros(size, dtype="float32").at[i].add(u, mode="drop"), *arrays)
    onto_others = graph_of(add, xarr.ones(size, dtype="float32"), *arrays)
    # The last one copies the result, which a program computes where it is wanted.
    assert len(builders.program_of(onto_zeros).phases) == 3 + 1
    assert len(builders.program_of(onto_others).phases) == 4 + 1
