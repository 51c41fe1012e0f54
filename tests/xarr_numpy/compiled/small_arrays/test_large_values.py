"""Elements and parts of arrays that have a node, read and written by machine code: what Python's methods give.

Those of small arrays are compared in `tests/arrays/test_native_methods.py`.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from types import FrameType
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.marks import COMPUTED_AT_ONCE
from xarr.errors import DonationError, IndexingError, PartUpdateWarning
from xarr.ir.types import MOST_PLAIN_BYTES

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.small_arrays import large_values, methods

pytestmark = [
    pytest.mark.usefixtures("on_numpy", "machine_code_methods"),
    pytest.mark.implicit,
    COMPUTED_AT_ONCE,
]

SHAPE: Final = (600, 500)
DTYPES: Final = [np.float64, np.int64, np.bool_, np.float32, np.uint32, np.uint8, np.complex128]
NUMPY_FOLDER: Final = os.path.join(os.path.dirname(np.__file__), "")
TAKE: Final = xarr.jit(lambda x: x + x, donate_argnums=0)


def large_array(dtype: Any = np.float64) -> xarr.Array:
    """An Array of zeros that alone sees its memory."""
    x = xarr.zeros(SHAPE, dtype=dtype)
    x[0, 0] = xarr.zeros((), dtype=dtype)
    assert x._node.value.nbytes > MOST_PLAIN_BYTES and not x._node.exposed
    return x


def address_of(x: xarr.Array) -> int:
    return int(x._node.value.__array_interface__["data"][0])


def test_elements_and_parts_make_no_call_of_python() -> None:
    x, called = large_array(), []
    row = xarr.asarray(np.arange(500.0)).evaluate() * 1
    s, i = row[7], xarr.asarray(np.array([3, 200, 4])).evaluate()
    pair = i, xarr.arange(3) + 1

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and not frame.f_code.co_filename.startswith(NUMPY_FOLDER):
            called.append(frame.f_code.co_qualname)

    def compute() -> list[Any]:
        x[2, 3], x[-1, 5], x[4], x[5, ::2], x[7:9, 1] = 5.0, s, row, 2, 8.0
        x[i], x[[8, 7]], x[pair] = row, row, 3.0
        return [x[2, 3], x[-1], x[:, 3], x[4, 1:-1], x[i], x[7:9], x[pair], x[[8, 8, 4]]]

    for _ in range(2):  # Python learns the lines
        compute()
    sys.setprofile(note)
    try:
        made = compute()
    finally:
        sys.setprofile(None)
    assert called == [compute.__qualname__]
    wanted = np.zeros(SHAPE)
    wanted[2, 3], wanted[-1, 5], wanted[5, ::2] = 5.0, 7.0, 2
    rows = [3, 200, 4]
    wanted[rows] = wanted[[8, 7]] = np.arange(500)
    wanted[rows, [1, 2, 3]] = 3.0
    assert_same(np.asarray(x), wanted)
    parts = [wanted[2, 3], wanted[-1], wanted[:, 3], wanted[4, 1:-1], wanted[rows], wanted[7:9]]
    parts += [wanted[rows, [1, 2, 3]], wanted[[8, 8, 4]]]
    for own, each in zip(made, parts, strict=True):
        assert_same(np.asarray(own), np.asarray(each))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", fuzz.seeds(2, 60))
def test_writes_change_this_array_alone(dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, wanted = large_array(dtype), np.zeros(SHAPE, dtype)
    held: list[tuple[Any, Any]] = []
    holders = [
        lambda x: x.copy(),
        np.asarray,
        lambda x: x.T,
        lambda x: x[3],
        lambda x: x[:],
        lambda x: x == x,
    ]
    for step in range(120):
        start = int(rng.integers(-600, 590))
        index = [
            (start, int(rng.integers(-500, 500))),
            start,
            (slice(None), 7),
            (slice(start, None, 3), start % 500),
            (slice(4), slice(start, start + 9)),
        ][step % 5]
        value = np.asarray(rng.integers(0, 2, wanted[index].shape)).astype(dtype)
        wanted[index] = value
        x[index] = xarr.asarray(value).evaluate() if rng.random() < 0.5 else value.tolist()
        assert_same(np.asarray(x[index]), np.asarray(wanted[index]))
        if step % 17 == 0:
            hold = holders[int(rng.integers(len(holders)))]
            held.append((hold(x), np.array(hold(wanted))))  # type: ignore[no-untyped-call]
    assert_same(np.asarray(x), wanted)
    for own, each in held:
        assert_same(np.asarray(own), each)


def test_memory_is_written_to_in_place_until_somebody_sees_it() -> None:
    x = large_array()
    address = address_of(x)
    for _ in range(3):
        x[1, 1] = 2.0
        x[5] = 1.0
    assert address_of(x) == address and not x._node.value.flags.writeable
    sights: list[tuple[Any, float]] = [(np.asarray, 2.0), (lambda x: x.copy(), 2.0), (lambda x: x * 2.0, 4.0)]
    for see, wanted in (*sights, (np.from_dlpack, 2.0)):
        seen = see(x)
        x[1, 1] = 3.0
        assert address_of(x) != address
        address = address_of(x)
        x[1, 1] = 2.0
        assert address_of(x) == address and float(seen[1, 1]) == wanted


def test_parts_are_parts_and_large_ones_are_recorded() -> None:
    x = large_array()
    row = x[3]
    with pytest.warns(PartUpdateWarning, match=r"x\[3\]"):
        row[1] = 5.0
    assert float(x[3, 1]) == 0.0 and float(row[1]) == 5.0
    assert row._node.value.base is None
    assert not x[1:].is_evaluated and x[1:3].is_evaluated
    assert "x[1:3]" in x[1:3]._node.source.text()  # type: ignore[union-attr]


def test_errors_and_warnings_are_those_of_python() -> None:
    x = large_array()
    with pytest.raises(IndexingError, match="index 600 is out of bounds"):
        x[600]
    with pytest.raises(IndexingError, match="index -501 is out of bounds"):
        x[0, -501] = 1.0
    with pytest.raises(xarr.errors.XarrError, match="the value has shape"):
        x[3] = xarr.asarray(np.zeros(3)).evaluate()
    assert not x._node.value.flags.writeable
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[3] = 1.0
    assert x[3].tolist() == [1.0] * 500


def test_a_donated_array_is_gone_and_a_recorded_function_records() -> None:
    x = large_array()
    with xarr.config(small_arrays="lazy"):
        assert not x[1].is_evaluated
    assert np.asarray(xarr.jit(lambda y: y[1, 2] + x[0, 0])(x)) == 0.0
    TAKE(x)
    with pytest.raises(DonationError):
        np.asarray(x[1])
    x[1, 1] = 2.0
    with pytest.raises(DonationError):
        np.asarray(x)


def test_a_thread_reads_all_of_a_part_or_finds_it_donated() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    wrong: list[object] = []

    def run(x: xarr.Array, start: threading.Barrier) -> None:
        start.wait(60)
        try:
            for _ in range(20):
                if not (np.asarray(x[5:60]) == 1).all():
                    wrong.append("another value")
        except DonationError:
            pass

    try:
        for _ in range(40):
            x, start = large_array(), threading.Barrier(2)
            x[:] = 1.0
            x[0, 0] = 1.0
            thread = threading.Thread(target=run, args=(x, start))
            thread.start()
            start.wait(60)
            y = TAKE(x)
            thread.join(60)
            assert (np.asarray(y) == 2).all()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_a_thread_gives_an_array_another_node_while_a_part_is_written_to() -> None:
    """Python crashed where machine code noted the line in a node that was gone."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            x, start = large_array(), threading.Barrier(2)

            def rebind(x: xarr.Array = x, start: threading.Barrier = start) -> None:
                start.wait(60)
                for _ in range(15):
                    x._node = large_array()._node  # as statements do

            thread = threading.Thread(target=rebind)
            thread.start()
            start.wait(60)
            for _ in range(60):
                x[3:60] = 2.0
            thread.join(60)
            assert float(x[3, 1]) in (0.0, 2.0)
    finally:
        sys.setswitchinterval(interval)


def test_offsets_of_nodes_are_looked_for_in_samples() -> None:
    offsets = methods.all_offsets(xarr.Array)
    wanted = {f"{prefix}{name}" for (_, prefix), names in methods.OTHER_FIELDS.items() for name in names}
    assert offsets.keys() == {*methods.FIELDS} | wanted
    assert "def large_node(" in large_values.LARGE
