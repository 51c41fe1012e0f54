"""Calls of jitted functions on small arrays as one built-in function: the same checks, the same results."""

from __future__ import annotations

import ctypes
import gc
import inspect
import itertools
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.array import Array
from xarr.ir.graph import Leaf

pytest.importorskip("llvmlite")

from xarr_numpy.compiled import assembler, builtin, builtin_replay

pytestmark = pytest.mark.skipif(not builtin.works(), reason="objects lie in memory in another way")


def arrays(*values: Any) -> list[Array]:
    return [xarr.asarray(value).evaluate() for value in values]


def is_built_in(jitted: Any) -> bool:
    return inspect.isbuiltin(jitted._replay)


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: y - x,
        lambda x, y: (y, x)[0] * 2 + x,
        lambda x, y: (x + y, x - y),
        lambda x, y: (x - y, x * y, x - y),
        lambda x, y: (y * x,),
        lambda x, y: xarr.sum(x * y),
        lambda x, y: x > y,
    ],
    ids=["add", "swapped", "reordered", "two", "one twice", "tuple of one", "sum", "bool"],
)
def test_results_are_those_of_python(function: Callable[..., Any]) -> None:
    x, y = arrays(X, X[::-1] * 3)
    jitted = xarr.jit(function)
    first = jitted(x, y)
    assert is_built_in(jitted)
    second = jitted(x, y)
    assert type(second) is type(first)
    pairs = zip(first, second, strict=True) if isinstance(first, tuple) else [(first, second)]
    for before, after in pairs:
        assert_same(np.asarray(after), np.asarray(before))


@pytest.mark.parametrize(
    "value",
    [
        np.float32(2.5),
        np.zeros((0, 3)),
        np.array([1, -7, 3], np.int8),
        np.array([[0.5, -0.0]], ml_dtypes.bfloat16),
        np.ones((1, 1, 2, 1, 2), np.uint16),
    ],
    ids=["0-d", "empty", "s8", "bf16", "rank 5"],
)
def test_any_shape_and_element_type(value: Any) -> None:
    (x,) = arrays(value)
    jitted = xarr.jit(lambda x: x + x)
    jitted(x)
    assert is_built_in(jitted) is (np.size(value) > 0), "nothing is compiled for empty arrays"
    assert_same(np.asarray(jitted(x)), np.asarray(value) + np.asarray(value))


def test_result_is_an_array_like_any_other() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x + 1)
    jitted(x)
    (fast, slow) = [each((x,), {}) for each in jitted._replays]
    assert type(fast) is Array and fast.is_evaluated and fast.backend == "numpy"
    assert type(fast._node) is Leaf and fast._node.handles == 1
    assert fast._node.source is not None and fast._node.source == slow._node.source
    assert not np.asarray(fast, copy=False).flags.writeable
    assert not fast._node.value.flags.writeable and fast._node.value.flags.owndata
    assert_same(np.asarray(pickle.loads(pickle.dumps(fast))), X + 1)
    assert_same(np.asarray(xarr.sqrt(fast) * fast), np.sqrt(X + 1) * (X + 1))


def count_calls(jitted: Any) -> list[object]:
    """What the built-in function returned, call by call."""
    fast, found = jitted._replay, []

    def counted(args: Any, kwargs: Any) -> Any:
        found.append(fast(args, kwargs))
        return found[-1]

    jitted._replay, jitted._replays = counted, (counted, *jitted._replays[1:])
    return found


def other_backend() -> Array:
    with xarr.use_backend("reference"):
        return xarr.asarray(X).evaluate()


@pytest.mark.parametrize(
    "argument",
    [
        lambda: X,
        lambda: xarr.asarray(X) + 0,
        lambda: xarr.asarray(X.astype(np.float64)).evaluate(),
        lambda: xarr.asarray(X[:2]).evaluate(),
        lambda: xarr.asarray(X.T.copy()).evaluate().T.evaluate(),
        lambda: 2.0,
        other_backend,
    ],
    ids=["ndarray", "not evaluated", "f64", "shape", "column-major", "number", "backend"],
)
def test_another_argument_is_missed(argument: Callable[[], Any]) -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x * 2)
    jitted(x)
    found = count_calls(jitted)
    other = argument()
    result = jitted(other)
    assert_same(np.asarray(result), np.asarray(other, dtype=getattr(other, "dtype", np.float64)) * 2)
    assert found and all(each is replay_missed() for each in found)


def replay_missed() -> object:
    from xarr.transforms.python_replay import MISSED

    return MISSED


def test_other_numbers_of_arguments_are_missed() -> None:
    x, y = arrays(X, X)
    jitted = xarr.jit(lambda x, y=1: x + y)
    jitted(x, y)
    assert is_built_in(jitted)
    fast, missed = jitted._replay, replay_missed()
    assert fast((x, y), {}) is not missed
    for args, kwargs in [((x,), {}), ((x,), {"y": y}), ((x, y, x), {}), ((), {}), ((x, y), {"z": 1})]:
        assert fast(args, kwargs) is missed
    assert fast() is missed
    assert_same(np.asarray(jitted(x, y=y)), X + X)


def test_donated_argument_is_missed() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x + 1)
    jitted(x)
    x._give_away("somebody")
    with pytest.raises(xarr.errors.DonationError):
        jitted(x)


def test_settings_are_looked_at() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x + 1)
    jitted(x)
    fast, missed = jitted._replay, replay_missed()
    with xarr.config(fusion="off"):
        assert fast((x,), {}) is missed
    assert fast((x,), {}) is not missed
    before = xarr.config.snapshot()
    xarr.config.max_depth = 77
    try:
        assert fast((x,), {}) is missed
    finally:
        xarr.config.restore(before)


@pytest.mark.implicit
def test_traced_and_watched_calls_are_missed() -> None:
    x, v = arrays(X, X[0])
    jitted = xarr.jit(lambda x, v: x + v)
    jitted(x, v)
    assert is_built_in(jitted)
    assert xarr.lower(lambda x: jitted(x, v) * 2, x).graph.nodes
    outer = xarr.jit(lambda x: jitted(x, x[0]) * 2)
    assert_same(np.asarray(outer(x)), (X + X[0]) * 2)
    assert "broadcast" in str(xarr.explain(lambda: jitted(x, v)))


def test_references_are_counted() -> None:
    x, y = arrays(X, X)
    jitted = xarr.jit(lambda x, y: (x + y, x - y))
    jitted(x, y)
    fast = jitted._replay
    held = [x, y, x._node, x._node.value, x._backend, x._node.type, x.dtype, Array, Leaf, replay_missed()]
    held += [xarr.config.__dict__, xarr.config._global, xarr.config._overrides.get(), True, None]
    before = [sys.getrefcount(each) for each in held]
    for _ in range(1000):
        fast((x, y), {})
        fast((x,), {})
        fast((x, X), {})
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(new - old) < 50 for new, old in zip(after, before, strict=True))


def test_results_are_freed() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: (x + 1, x * 2))
    jitted(x)
    more, twice = jitted(x)
    gone = [weakref.ref(each) for each in (more, more._node, more._node.value, twice._node.value)]
    assert all(gc.is_tracked(each) for each in (more, more._node))
    del more, twice
    assert [each() for each in gone] == [None] * 4


def test_built_in_function_goes_with_the_jitted_one() -> None:
    class Marked:
        """Something to be weakly referred to."""

    (x,) = arrays(X)
    mark = Marked()
    jitted = xarr.jit(lambda x, mark=mark: x + 1)
    jitted(x)
    gone = weakref.ref(mark)
    del jitted, mark
    gc.collect()
    assert gone() is None


def test_failed_allocation_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    functions = builtin_replay._numpy_functions()
    assert functions is not None
    _, ndarray = functions
    monkeypatch.setattr(builtin_replay, "_numpy_functions", lambda: (failing, ndarray))
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: (x + 1, x * 2))
    jitted(x)
    assert is_built_in(jitted)
    with pytest.raises(MemoryError):
        jitted(x)


def check_python_does_it() -> None:
    """A call that could be a built-in function is none, and right all the same."""
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x: x + 1)
    jitted(x)
    assert not is_built_in(jitted)
    assert_same(np.asarray(jitted(x)), X + 1)


@pytest.mark.parametrize("name", ["_COUNT", "_ITEMS", "_BYTES", "_CLASS", "_NUMBER"])
def test_another_layout_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin_replay, name, getattr(builtin_replay, name) + 8)
    builtin_replay._offsets.cache_clear()
    try:
        check_python_does_it()
    finally:
        monkeypatch.undo()
        builtin_replay._offsets.cache_clear()


#: A function of NumPy's table that takes other arguments, and refuses those of PyArray_NewFromDescr.
OTHER_FUNCTION = builtin_replay._NEW - 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("table", None),
        ("_NDARRAY", builtin_replay._NDARRAY + 1),
        ("_TABLE", 0x03000000),
        ("_NEW", OTHER_FUNCTION),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_numpy_is_noticed(name: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "table":
        monkeypatch.delattr(np._core._multiarray_umath, "_ARRAY_API")  # type: ignore[attr-defined]
    else:
        monkeypatch.setattr(builtin_replay, name, value)
    builtin_replay._numpy_functions.cache_clear()
    try:
        check_python_does_it()
    finally:
        monkeypatch.undo()
        builtin_replay._numpy_functions.cache_clear()


@pytest.mark.parametrize(
    "made",
    [np.zeros(6, np.float32), np.zeros((2, 3)), np.zeros((3, 2), np.float32).T, "an array"],
    ids=["shape", "dtype", "order", "class"],
)
def test_a_function_that_makes_something_else_is_noticed(made: Any) -> None:
    kinds = [ctypes.py_object] * 2 + [ctypes.c_int] + [ctypes.c_void_p] * 3 + [ctypes.c_int, ctypes.c_void_p]
    function = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(lambda *_: made)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    assert not builtin_replay._makes_arrays(address)


def test_what_python_does_stays_with_python() -> None:
    (x,) = arrays(X)
    hidden = xarr.asarray(X).evaluate()
    for function in (
        lambda x: {"a": x + 1},
        lambda x: x + hidden,
        lambda x: xarr.sort(x),
        lambda x: x,
        lambda x: (),
    ):
        jitted = xarr.jit(function)
        jitted(x)
        assert not is_built_in(jitted)


def test_numpy_scalars_are_not_read_as_arrays() -> None:
    kernels: list[Any] = []
    for value in (np.float64(1.5), np.int64(257), np.float32(2)):
        text = builtin.DECLARATIONS + builtin.entry_text("entry", "phase", 2, 1)
        text += "define void @phase(ptr %b, i64 %f, i64 %n) { ret void }"
        kernels.append(assembler.made(text, ["entry"]))
        entry = builtin.function(kernels[-1].addresses["entry"], kernels[-1])
        assert entry(X, X) is True
        assert entry(value, X) is False


def test_large_work_does_not_hold_the_lock() -> None:
    (x,) = arrays(np.ones((1000, 1000), np.float32))
    jitted = xarr.jit(lambda x: x + 1)
    jitted(x)
    assert not is_built_in(jitted)


FLOATS = (1.5, -0.0, 0.1, 1e-320, 3.4e38, 1e300, -1e300, float("inf"), float("nan"))


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.int32], ids=lambda dtype: dtype.__name__
)
def test_numbers_are_converted_as_ever(dtype: Any) -> None:
    (x,) = arrays(np.array([1, 2, 3], dtype))
    jitted, plain = xarr.jit(lambda x, a, b: (a - x) * b), xarr.jit(lambda x, a, b: (a - x) * b)
    jitted(x, 1.5, 2.5)
    assert is_built_in(jitted) is (dtype in (np.float32, np.float64) or dtype is np.int32)
    plain(x, 1.5, 2.5)
    for a, b in itertools.product(FLOATS, (2.5, -0.0)):
        wanted = plain._replays[-1]((x, a, b), {})
        assert_same(np.asarray(jitted(x, a, b)), np.asarray(wanted))


def test_number_that_no_float32_holds_is_missed() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x, a: x * a)
    jitted(x, 2.0)
    fast, missed = jitted._replay, replay_missed()
    assert all(fast((x, a), {}) is missed for a in (1e300, float("inf"), float("nan"), 3.4028235e38))
    assert all(fast((x, a), {}) is not missed for a in (0.0, 1e-300, -3.4e38))


class Own(float):
    """A float that is not quite one."""


@pytest.mark.parametrize("other", [2, True, 2j, np.float64(2), np.float32(2), Own(2), X], ids=repr)
def test_what_is_no_python_float_is_missed(other: Any) -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda x, a: x * a)
    jitted(x, 2.0)
    assert jitted._replay((x, other), {}) is replay_missed()
    assert_same(np.asarray(jitted(x, other)), np.asarray(x * other))


def test_unused_number_is_looked_at_too() -> None:
    (x,) = arrays(X)
    jitted = xarr.jit(lambda a, x, b: x - a)
    jitted(0.5, x, 1.0)
    assert is_built_in(jitted)
    assert_same(np.asarray(jitted(1.5, x, float("nan"))), X - np.float32(1.5))
    assert jitted._replay((1.5, x, 1), {}) is replay_missed()
    assert jitted._replay((1.5, 1.5, 1.0), {}) is replay_missed()
    assert jitted._replay((x, x, 1.0), {}) is replay_missed()


def test_number_of_two_types_and_an_expression_of_numbers() -> None:
    x, y = arrays(X, X.astype(np.float64))
    jitted = xarr.jit(lambda x, y, a: (x * a).astype(np.float64) - y * a)
    jitted(x, y, 0.5)
    assert is_built_in(jitted)
    wanted = (X * np.float32(0.1)).astype(np.float64) - X.astype(np.float64) * 0.1
    assert_same(np.asarray(jitted(x, y, 0.1)), wanted)
    computed = xarr.jit(lambda x, a: x * (a + 1.0))
    computed(x, 0.5)
    assert not is_built_in(computed)
