"""Pickles of Arrays, the devices that they go to, and the tokens of Dask."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import backend as backends
from xarr.arrays.pickling import receive_on
from xarr.errors import TracedValueError

pytestmark = pytest.mark.usefixtures("on_numpy")


@pytest.fixture(autouse=True)
def where_they_go() -> Iterator[None]:
    """Each Array goes to its own device again after a test."""
    before = receive_on(None)
    yield
    receive_on(before)


def test_a_pickle_has_the_value_which_is_computed() -> None:
    x = xarr.asarray(np.ones((300, 300))) + 1
    assert not x.is_evaluated
    again = pickle.loads(pickle.dumps(x))
    assert x.is_evaluated and again.is_evaluated
    assert_same(again, np.full((300, 300), 2.0))


def test_protocol_5_sends_the_memory_itself() -> None:
    x = xarr.asarray(np.arange(1000.0)).evaluate()
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(stream) < 500 and [each.raw().nbytes for each in buffers] == [8000]
    assert np.shares_memory(np.asarray(pickle.loads(stream, buffers=buffers)), np.asarray(x))


def test_a_pickle_of_an_other_backend_goes_there() -> None:
    x = xarr.ones(3, device="reference")
    assert pickle.loads(pickle.dumps(x)).backend == "reference"


def test_all_go_to_the_device_of_a_worker() -> None:
    stream = pickle.dumps(xarr.ones(3))
    before = receive_on(backends.get("reference").device())
    try:
        assert pickle.loads(stream).backend == "reference"
    finally:
        receive_on(before)
    assert pickle.loads(stream).backend == "numpy"


def test_traced_arrays_are_not_pickled() -> None:
    with pytest.raises(TracedValueError):
        xarr.jit(lambda x: pickle.dumps(x))(xarr.ones(3))


def test_tokens_are_those_of_values_types_and_devices() -> None:
    tokenize = pytest.importorskip("dask.base").tokenize
    x = xarr.asarray(np.arange(6.0)).reshape(2, 3)
    assert tokenize(x) == tokenize(xarr.arange(6.0).reshape(2, 3))
    others = (
        *(x + 1, x.reshape(3, 2), x.astype("float32"), x.T, np.asarray(x), -x),
        *(x.to("reference"), x[:0], x[0], x.view("int64"), x.astype("bfloat16")),
    )
    assert len({tokenize(x), *map(tokenize, others)}) == 1 + len(others)


def test_a_token_follows_what_a_handle_shows() -> None:
    tokenize = pytest.importorskip("dask.base").tokenize
    x = xarr.arange(6.0)
    before = tokenize(x)
    x[0] = 7.0
    assert tokenize(x) != before
