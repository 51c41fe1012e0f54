"""Merge sorts on the emulated device, in tiles so small that all ways of sorting meet in short rows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.emulator.driver import EmulatedDriver
from tests.cuda.emulator.module import ORDERS
from xarr import lax
from xarr.compiler.schedules.gpu.target import TARGET
from xarr_cupy import backend, host

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Threads sort 3 elements, and blocks 12.
SMALL = TARGET.replace(sorted_run=3, sorted_tile=15, local_bytes=2 * 15 * 12)
#: Rows of a run, of a tile, of several, with and without a rest; rows along other axes, and many of them.
SHAPES = {
    **{(1,): 0, (2,): 0, (3,): 0, (4,): 0, (12,): 0, (13,): 0, (24,): 0, (48,): 0, (100,): 0},
    **{
        (0,): 0,
        (4, 0): 0,
        (0, 4): 0,
        (5, 3): 1,
        (3, 5): 0,
        (2, 3, 7): 2,
        (40, 5): 0,
        (2, 30, 2): 1,
        (7, 6): 1,
    },
}


@pytest.fixture
def device(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> EmulatedDriver:
    """An emulated device that finds races, for which sorts have small tiles."""
    small = {key: replace(each, target=SMALL) for key, each in backend._SCHEDULES.items()}
    monkeypatch.setattr(backend, "_SCHEDULES", small)
    result = cupy._engine.driver
    assert isinstance(result, EmulatedDriver)
    monkeypatch.setattr(result, "races", True)
    return result


@pytest.mark.thorough
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES.items())
def test_sorts_are_stable(
    shape: tuple[int, ...], axis: int, order: str, device: EmulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "order", order)
    x = np.random.default_rng(0).integers(0, 5, shape)
    host.CALLS.clear()
    numbers = lax.broadcasted_iota("int32", shape, axis)
    keys, numbers = lax.sort((xarr.asarray(x), numbers), dimension=axis, num_keys=1)
    wanted = np.argsort(x, axis=axis, kind="stable")
    assert_same(numbers, wanted.astype("int32"))
    assert_same(keys, np.take_along_axis(x, wanted, axis))
    assert not host.CALLS or 0 in shape


@pytest.mark.thorough
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float8_e5m2", "float64", "complex64", "int8", "uint64", "bool"]
)
def test_sorts_of_each_element_type(
    dtype: str, order: str, device: EmulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "order", order)
    rng = np.random.default_rng(1)
    x = rng.choice([0, -0.0, 1, -1, 2, np.nan, -np.nan, np.inf, -np.inf], 61)
    x = rng.integers(0, 9, 61) if dtype in ("int8", "uint64", "bool") else x
    x = np.array([*map(complex, x, rng.permutation(x))]) if dtype == "complex64" else x

    def result() -> list[np.ndarray[Any, Any]]:
        sorted_ = lax.sort(xarr.asarray(x).astype(dtype))
        return [np.asarray(sorted_), np.asarray(xarr.argsort(xarr.asarray(x).astype(dtype), descending=True))]

    made = result()
    with xarr.use_backend("reference"):
        wanted = result()
    assert [each.tobytes() for each in made] == [each.tobytes() for each in wanted]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(7,), (61,), (20, 3)])
def test_sorts_by_several_keys_and_by_any_comparator(
    shape: tuple[int, ...], order: str, device: EmulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "order", order)
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-3, 4, shape).astype("float32") for _ in range(2))
    made = lax.sort((xarr.asarray(x), xarr.asarray(y), xarr.arange(x.size).reshape(shape)), 0, num_keys=2)
    with xarr.use_backend("reference"):
        wanted = lax.sort(
            (xarr.asarray(x), xarr.asarray(y), xarr.arange(x.size).reshape(shape)), 0, num_keys=2
        )
        wanted = [np.asarray(each) for each in wanted]
    for each, other in zip(made, wanted, strict=True):
        assert_same(np.asarray(each), other)


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [3, 12, 13, 100])
def test_sorts_by_any_comparator(
    size: int, order: str, device: EmulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "order", order)
    x = np.random.default_rng(4).integers(-9, 9, size)
    made, numbers = lax.sort_with(
        (xarr.asarray(x), xarr.arange(size)), lambda a, b, c, d: lax.abs(a) > lax.abs(b)
    )
    wanted = np.argsort(-abs(x), kind="stable")
    assert_same(numbers, wanted)
    assert_same(made, x[wanted])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["lt", "le", "eq", "ne"])
def test_a_comparator_that_is_no_order_permutes(
    name: str, order: str, device: EmulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "order", order)
    x = np.random.default_rng(5).choice([1.0, 2.0, 3.0, np.nan], 100).astype("float32")
    made = np.asarray(lax.sort_with(xarr.asarray(x), getattr(lax, name)))
    assert_same(np.sort(made.view("int32")), np.sort(x.view("int32")))


def test_a_doubling_takes_two_kernels(device: EmulatedDriver) -> None:
    x = xarr.arange(60, dtype="float64")
    x.block_until_ready()
    before = device.launches
    assert_same(np.asarray(lax.sort(x)), np.arange(60.0))
    # Tiles of 12 float64, and three doublings of two phases each.
    assert device.launches - before == 1 + 2 * 3


@pytest.mark.parametrize("order", ORDERS)
def test_updates_are_folded_in_their_order(
    order: str, device: EmulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "order", order)
    rng = np.random.default_rng(3)
    index, updates = rng.integers(-1, 6, 70), rng.normal(size=70).astype("float32")
    made = xarr.zeros(5, dtype="float32").at[xarr.asarray(index)].add(xarr.asarray(updates), mode="drop")
    made = np.asarray(made)
    with xarr.use_backend("numpy"):
        wanted = (
            xarr.zeros(5, dtype="float32").at[xarr.asarray(index)].add(xarr.asarray(updates), mode="drop")
        )
        wanted = np.asarray(wanted)
    assert made.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_many_updates_of_few_elements_are_folded_in_their_order(
    shape: tuple[int, ...], order: str, device: EmulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "order", order)
    rng = np.random.default_rng(6)
    # One element has most of them, and some have none.
    index = rng.choice([-1, 0, 3, 3, 3, 3, 4, 7], 90)
    updates = rng.normal(size=(90, *shape)).astype("float32")

    def result() -> np.ndarray[Any, Any]:
        target = xarr.ones((6, *shape), dtype="float32").at[xarr.asarray(index)]
        return np.asarray(target.add(xarr.asarray(updates), mode="drop"))

    made = result()
    with xarr.use_backend("numpy"):
        assert made.tobytes() == result().tobytes()
