"""Donated arguments and the memory of runs, on the emulated device."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.emulator.module import ORDERS
from tests.cuda.test_cupy_backend import device
from xarr import lax
from xarr.arrays import device_memory
from xarr.errors import BroadcastError, DonationError, TooLargeError
from xarr.runtime import dlpack
from xarr_cupy import libraries

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

LARGE = np.arange(10_000.0)


def address_of(x: Any) -> int:
    """Where an Array lies."""
    address: int = x.evaluate()._node.value.address
    return address


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 + 1,
        lambda x: lax.dynamic_update_slice(x, x[:3] * 0, (5,)),
        lambda x: lax.fori_loop(0, 3, lambda k, s: s.at[k].set(-1.0), x),
    ],
    ids=["chain", "update", "loop"],
)
def test_a_result_lies_in_donated_memory(function: Any, cupy: Any) -> None:
    with xarr.use_backend("numpy"):
        wanted = np.asarray(xarr.jit(function)(xarr.asarray(LARGE)))
    compiled = xarr.jit(function, donate_argnums=0)
    for _ in range(3):
        x = xarr.asarray(LARGE) * 1.0
        before = address_of(x)
        y = compiled(x)
        assert_same(y, wanted)
        assert before == address_of(y)
        with pytest.raises(DonationError):
            np.asarray(x)


UPDATES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "a row": ((300, 300), (1, 300), (7, 0)),
    "a part of a column": ((300, 300), (60, 1), (20, 299)),
    "beyond the end": ((90_000,), (3,), (89_999,)),
    "before the start": ((90_000,), (3,), (-5,)),
    "all": ((90_000,), (90_000,), (0,)),
    "nothing": ((90_000,), (0,), (4,)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "complex64", "bool", "int8"])
@pytest.mark.parametrize("name", UPDATES)
def test_an_update_of_a_donated_array_writes_the_part_alone(name: str, dtype: str, cupy: Any) -> None:
    shape, part, starts = UPDATES[name]
    host = np.arange(np.prod(shape)).reshape(shape) % 2
    new = 1 - np.arange(np.prod(part)).reshape(part) % 2
    with xarr.use_backend("numpy"):
        wanted = np.asarray(
            lax.dynamic_update_slice(
                xarr.asarray(host).astype(dtype), xarr.asarray(new).astype(dtype), starts
            )
        )
    compiled = xarr.jit(lambda x, v, *starts: lax.dynamic_update_slice(x, v, starts), donate_argnums=0)
    update = xarr.asarray(new).astype(dtype).evaluate()
    for _ in range(3):
        x = xarr.asarray(host).astype(dtype).evaluate()
        before, launches, address = device(cupy).copies_inside, device(cupy).launches, address_of(x)
        y = compiled(x, update, *starts)
        assert_same(y, wanted)
        assert address_of(y) == address
        # Numbers are stored by a kernel of their own, the first times.
        assert (
            device(cupy).copies_inside == before and device(cupy).launches <= launches + 2 * len(starts) + 1
        )
    if name in ("a row", "a part of a column"):
        lowered = compiled.lower(xarr.ShapeDtypeStruct(shape, dtype), update, *starts)
        assert f"i < {np.prod(part)};" in str(lowered.stage("program"))


def test_an_update_of_an_array_that_is_needed_copies_it_in_one_pass(cupy: Any) -> None:
    compiled = xarr.jit(lambda x, v: (lax.dynamic_update_slice(x, v, (5,)), x))
    x, v = xarr.asarray(LARGE).evaluate(), (xarr.asarray(LARGE[:3]) * 0).evaluate()
    compiled(x, v)
    before, launches = device(cupy).copies_inside, device(cupy).launches
    y, same = compiled(x, v)
    assert (device(cupy).copies_inside, device(cupy).launches) == (before, launches + 1)
    assert_same(same, LARGE)
    assert_same(y, np.concatenate([LARGE[:5], np.zeros(3), LARGE[8:]]))


#: Scatters into an array, and how many kernels they take where nothing needs that array any more.
SCATTERS = {
    "atomically": (lambda x, i, u: x.at[i].max(u, mode="drop"), 1),
    "the last one": (lambda x, i, u: x.at[i].set(u, mode="drop"), 3),
    "into what is computed": (lambda x, i, u: (x * 2).at[i].max(u, mode="drop"), 2),
    "in their order, without merges": (lambda x, i, u: x.at[i].add(u, mode="drop"), 5),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_into_donated_memory_copy_nothing(
    name: str, order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, launches = SCATTERS[name]
    monkeypatch.setattr(device(cupy), "order", order)
    rng = np.random.default_rng(2)
    updates = rng.integers(-9, LARGE.size + 9, 1000), rng.normal(size=1000)
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(*map(xarr.asarray, (LARGE, *updates))))
    if "order" in name:
        monkeypatch.setattr(libraries, "MIN_SORTED", 64)
    device(cupy).races = True
    compiled = xarr.jit(function, donate_argnums=0)
    others = [xarr.asarray(each).evaluate() for each in updates]
    for _ in range(2):
        x = (xarr.asarray(LARGE) * 1.0).evaluate()
        address, before = address_of(x), device(cupy).launches
        result = compiled(x, *others).evaluate()
        assert device(cupy).launches - before == launches
        assert address_of(result) == address
        assert_same(result, wanted)


def test_what_others_see_is_not_written_over(cupy: Any) -> None:
    compiled = xarr.jit(lambda x: x * 2 + 1, donate_argnums=0)
    x = xarr.asarray(LARGE) * 1.0
    seen = x[...].evaluate()
    kept = np.asarray(x)
    y = compiled(x)
    assert_same(y, LARGE * 2 + 1)
    assert_same(kept, LARGE)
    assert_same(seen, LARGE)


def test_donated_memory_serves_temporaries(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    allocate = device(cupy).allocate

    def count(wanted: Any) -> Any:
        sizes.extend(wanted)
        return allocate(wanted)

    def function(x: Any) -> Any:
        return lax.dot(x * 2, xarr.ones((100, 2)))

    monkeypatch.setattr(device(cupy), "allocate", count)
    total, square = [], LARGE.reshape(100, 100)
    for donated in ((), (0,)):
        compiled, x = xarr.jit(function, donate_argnums=donated), (xarr.asarray(square) * 1.0).evaluate()
        sizes.clear()
        assert_same(compiled(x), square * 2 @ np.ones((100, 2)))
        total.append(sum(sizes))
    # The doubled array lies where the argument was.
    assert total[0] - total[1] >= square.nbytes


@pytest.mark.parametrize("calls_before", [0, 3])
def test_a_call_without_memory_says_that_what_was_donated_is_gone(
    calls_before: int, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(nbytes: int) -> Any:
        raise TooLargeError("no memory")

    compiled = xarr.jit(lambda x: lax.cumsum(x * 2), donate_argnums=0)
    for _ in range(calls_before):
        compiled((xarr.asarray(LARGE) * 1.0).evaluate())
    x, refused = (xarr.asarray(LARGE) * 1.0).evaluate(), xarr.asarray(LARGE[:7]).evaluate()
    with pytest.raises(BroadcastError):
        xarr.jit(lambda x, y: x + y, donate_argnums=0)(x, refused)
    assert_same(x, LARGE)
    monkeypatch.setattr(device(cupy), "allocate", refuse)
    with pytest.raises(TooLargeError) as caught:
        compiled(x)
    assert "the Arrays that were donated to this call are gone, although it failed" in caught.value.__notes__
    with pytest.raises(DonationError):
        np.asarray(x)


def test_a_loop_allocates_nothing_in_its_iterations(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    allocate = device(cupy).allocate
    monkeypatch.setattr(device(cupy), "allocate", lambda nbytes: calls.append(nbytes) or allocate(nbytes))
    for steps in (3, 30):
        x = xarr.asarray(np.arange(8.0))
        calls.clear()
        y = xarr.jit(lambda x, steps=steps: lax.fori_loop(0, steps, lambda k, s: lax.cumsum(s) * 0.5, x))(x)
        wanted = np.arange(8.0)
        for _ in range(steps):
            wanted = np.cumsum(wanted) * 0.5
        assert_same(y, wanted)
        assert len(calls) <= 6


@pytest.mark.parametrize(
    ("module", "lent"),
    [
        (device_memory, lambda x: x.__cuda_array_interface__),
        (dlpack, lambda x: x.__dlpack__(max_version=(1, 0))),
    ],
    ids=["interface", "dlpack"],
)
def test_an_array_that_is_given_away_meanwhile_is_not_lent(
    module: Any, lent: Callable[[Any], Any], cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, read_checks = xarr.asarray(np.arange(10_000.0)) * 1.0, module.read_checks
    increased = xarr.jit(lambda x: x + 1.0, donate_argnums=0)

    def read_and_give_away(array: Any) -> None:
        read_checks(array)
        increased(array)  # as another thread may

    monkeypatch.setattr(module, "read_checks", read_and_give_away)
    with pytest.raises(DonationError):
        lent(x)
