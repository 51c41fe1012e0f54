"""On a backend whose memory is its own, programs copy their arguments in and what is looked at out, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.programs import graph, type_of
from tests.support.opaque_backend import Backend, Buffer, OpaqueMemoryError
from xarr import lax
from xarr.backend import get

VALUES = np.arange(12.0).reshape(3, 4)


LOOKS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "from_dlpack": np.from_dlpack,
    "shape": np.shape,
    "memoryview": memoryview,
    "len": len,
    "list": list,
    "bool": bool,
    "int": int,
    "float": float,
    "item": lambda buffer: buffer[0],
    "in": lambda buffer: 1 in buffer,
    "nbytes": lambda buffer: buffer.nbytes,
    "sum": lambda buffer: buffer + buffer,
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_nobody_reads_its_buffers(opaque: Backend, look: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        look(opaque.from_host(VALUES))


def test_its_programs_take_no_arrays(opaque: Backend) -> None:
    x = xarr.asarray(VALUES)
    program = opaque.compile(graph(lambda x: [lax.add(x, x)], type_of(VALUES)))
    (found,) = program(x._node.value)
    assert type(found) is Buffer
    assert_same(opaque.to_host(found), VALUES + VALUES)
    with pytest.raises(OpaqueMemoryError, match="wanted a buffer of the backend 'opaque', got ndarray"):
        program(VALUES)


def test_a_buffer_shares_no_memory_with_the_host(opaque: Backend) -> None:
    values = VALUES.copy()
    x = xarr.asarray(values)
    values[0] = -1
    assert_same(x, VALUES)
    assert not np.may_share_memory(opaque.to_host(x._node.value), opaque.to_host(x._node.value))


def test_it_is_no_backend_of_the_library() -> None:
    assert get("numpy").name == "numpy"
    assert "opaque" not in xarr.backend.available()


def transfers(opaque: Backend, run: Callable[[], Any]) -> tuple[int, int]:
    """How often `run` and the computation of what it returns copy to the backend, and from it."""
    with opaque.transfers() as counted:
        xarr.evaluate(run())
    return counted.from_host, counted.to_host


def test_transfers_are_counted(opaque: Backend) -> None:
    x = xarr.asarray(VALUES)
    assert transfers(opaque, lambda: xarr.asarray(VALUES)) == (1, 0)
    assert transfers(opaque, lambda: [xarr.asarray(np.asarray(x))]) == (1, 1)
    with opaque.transfers() as counted:
        pass
    assert (counted.from_host, counted.to_host) == (0, 0)
