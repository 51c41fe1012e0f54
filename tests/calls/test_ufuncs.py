"""NumPy's ufuncs on Arrays: which are answered, which refused, and who else is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import InputError


class Answers:
    """Takes part in ufuncs by itself, and has operators."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> str:
        return f"{ufunc.__name__}.{method}"

    def __radd__(self, other: Any) -> str:
        return "radd"


class AnswersAndConverts(Answers):
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.zeros(2)


class Subclass(np.ndarray[Any, Any]):
    def __array_ufunc__(self, *arguments: Any, **options: Any) -> str:
        return "subclass"

    def __radd__(self, other: Any) -> str:
        return "radd"


class Refuses:
    """Takes no part in ufuncs, so that only its operators are asked."""

    __array_ufunc__ = None

    def __radd__(self, other: Any) -> str:
        return "radd"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.zeros(2)


class Plain(np.ndarray[Any, Any]):
    """A subclass that leaves ufuncs to NumPy."""


@pytest.fixture
def x() -> xarr.Array:
    return xarr.asarray([1.0, 4.0])


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "n+x": lambda n, x: n + x,
    "x+n": lambda n, x: x + n,
    "n@x": lambda n, x: n @ x,
    "n**x": lambda n, x: n**x,
    "n<x": lambda n, x: n < x,
    "scalar-x": lambda n, x: np.float64(3) - x,
    "sqrt": lambda n, x: np.sqrt(x),
    "absolute": lambda n, x: np.abs(x),
    "arctan2": lambda n, x: np.arctan2(n, x),
    "divmod": lambda n, x: np.divmod(x, n)[1],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_known_ufuncs_give_arrays(call: Callable[[Any, Any], Any], x: xarr.Array) -> None:
    n = np.array([2.0, 3.0])
    got = call(n, x)
    assert type(got) is xarr.Array
    assert_same(got, np.asarray(call(n, np.asarray(x))))


@pytest.mark.parametrize(
    "other",
    [Answers(), AnswersAndConverts(), np.zeros(2).view(Subclass)],
    ids=["object", "convertible", "subclass"],
)
def test_an_operand_with_its_own_ufuncs_answers(other: Any, x: xarr.Array) -> None:
    assert x + other == "radd"
    wanted = "subclass" if isinstance(other, Subclass) else "add.__call__"
    assert np.add(x, other) == wanted
    assert np.add(other, x) == wanted


def test_an_operand_without_ufuncs_is_asked_by_operators_only(x: xarr.Array) -> None:
    assert x + Refuses() == "radd"
    with pytest.raises(TypeError, match="does not support ufuncs"):
        np.add(x, Refuses())


def test_a_subclass_that_leaves_ufuncs_to_numpy_counts_as_an_array(x: xarr.Array) -> None:
    plain = np.array([2.0, 3.0]).view(Plain)
    for got in (x + plain, plain + x, np.add(plain, x)):
        assert type(got) is xarr.Array
        assert_same(got, np.array([3.0, 7.0]))


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "at": (
        lambda n, x: np.add.at(n, [0], x),
        r"add\.at: wanted an xarr Array to update.*write numpy\.add\.at\(n, i, numpy",
    ),
    "reduce-out": (
        lambda n, x: np.add.reduce(x, out=n),
        r"add\.reduce: wanted an xarr Array for out=, got ndarray",
    ),
    "function": (lambda n, x: np.busday_count(x, x), r"np\.busday_count does not take xarr arrays; pass"),
    "function-out": (lambda n, x: np.sum(x, out=n), "sum: wanted an xarr Array for out=, got ndarray"),
    "out": (lambda n, x: np.add(x, x, out=n), "add: .* xarr does not write into NumPy arrays"),
    "in-place": (lambda n, x: n.__iadd__(x), r"n \+= numpy\.asarray\(x\) for n \+= x"),
    "where": (lambda n, x: np.add(x, x, where=n > 2), r"write xarr\.where\(condition, xarr\.add"),
    "order": (lambda n, x: np.add(x, x, order="F"), "add: wanted order"),
    "dates": (lambda n, x: np.isnat(x), r"np\.isnat does not take xarr arrays"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=list(REFUSED))
def test_everything_else_is_a_type_error(
    call: Callable[[Any, Any], Any], message: str, x: xarr.Array
) -> None:
    n = np.array([2.0, 3.0])
    with pytest.raises(InputError, match=message) as caught:
        call(n, x)
    assert isinstance(caught.value, TypeError)
    assert n.tolist() == [2, 3]
    assert_same(x, np.array([1.0, 4.0]))


METHODS: dict[str, Callable[[Any], Any]] = {
    "add.reduce": lambda x: np.add.reduce(x),
    "add.reduce-axis": lambda x: np.add.reduce(x, axis=1, keepdims=True),
    "add.reduce-all": lambda x: np.add.reduce(x, axis=None),
    "multiply.reduce": lambda x: np.multiply.reduce(x, axis=-1),
    "maximum.reduce": lambda x: np.maximum.reduce(x),
    "minimum.reduce": lambda x: np.minimum.reduce(x, initial=0),
    "logical_and.reduce": lambda x: np.logical_and.reduce(x),
    "logical_or.reduce": lambda x: np.logical_or.reduce(x),
    "add.accumulate": lambda x: np.add.accumulate(x),
    "multiply.accumulate": lambda x: np.multiply.accumulate(x, axis=1),
    "subtract.outer": lambda x: np.subtract.outer(x, [1.0, 2.0]),
    "equal.outer": lambda x: np.equal.outer([1.0, 4.0], x),
    "add.reduceat": lambda x: np.add.reduceat(x, [1, 0]),
    "hypot.reduce": lambda x: np.abs(np.hypot.reduce(x, axis=1)),
    "maximum.accumulate": lambda x: np.maximum.accumulate(x, axis=1),
    "outer-dtype": lambda x: np.add.outer(x, [1, 2], dtype="float32"),
    "dtype": lambda x: np.add(x, x, dtype="float32"),
    "matmul": lambda x: np.matmul(x, x, axes=[(0, 1), (1, 0), (0, 1)]),
    "vecdot": lambda x: np.vecdot(x, x, axis=0),
}


@pytest.mark.parametrize("call", METHODS.values(), ids=list(METHODS))
def test_methods_of_ufuncs_are_functions_of_xarr(call: Callable[[Any], Any]) -> None:
    n = np.array([[1.0, 4.0, -2.0], [0.5, 3.0, 4.0]])
    got = call(xarr.asarray(n))
    assert type(got) is xarr.Array
    assert_same(got, call(n))


def test_at_changes_the_array_that_it_is_given(x: xarr.Array) -> None:
    other = x.copy()
    np.add.at(x, np.array([0, 0, 1]), xarr.asarray([1.0, 2.0, 3.0]))
    assert_same(x, np.array([4.0, 7.0]))
    assert_same(other, np.array([1.0, 4.0]))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "concatenate-mixed": lambda x: np.concatenate([np.zeros((1, 3)), x]),
    "sum": lambda x: np.sum(x, axis=0),
    "where": lambda x: np.where(x > 1, x, 0),
    "zeros_like": lambda x: np.zeros_like(x),
    "linalg.norm": lambda x: np.linalg.norm(x),
    "fft.fft": lambda x: np.fft.fft(x),
    "clip": lambda x: np.clip(x, a_min=0, a_max=2),
    "stack": lambda x: np.stack([x, x]),
    "tensordot": lambda x: np.tensordot(x, x.T, 1),
    "median": lambda x: np.median(x),
    "shape": lambda x: np.asarray(np.shape(x)),
}


@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_functions_of_numpy_stay_in_xarr(call: Callable[[Any], Any]) -> None:
    n = np.array([[1.0, 4.0, -2.0], [0.5, 3.0, 4.0]])
    got = call(xarr.asarray(n))
    wanted = call(n)
    assert type(got) is (np.ndarray if "shape" in call.__code__.co_names else xarr.Array)
    assert_same(got, wanted, ulp=2)


def test_arrays_of_others_are_asked_first(x: xarr.Array) -> None:
    class Other:
        def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> str:
            return "other"

    assert np.concatenate([x, Other()]) == "other"


def test_a_function_that_only_looks_like_numpys_is_not_taken_for_it() -> None:
    from xarr.arrays import numpy_protocols

    def sum(x: Any) -> Any:
        return x

    sum.__module__ = "numpy"
    with pytest.raises(InputError, match=r"sum does not take xarr arrays"):
        numpy_protocols.function(sum, (xarr.ones(2),), {})


def test_a_ufunc_of_the_same_name_is_another() -> None:
    special = pytest.importorskip("scipy.special")
    assert special.cbrt.__name__ == "cbrt"
    assert_same(special.cbrt(xarr.asarray([8.0])), special.cbrt(np.array([8.0])))


@pytest.mark.implicit
def test_updates_are_not_looked_for_among_remembered_calls() -> None:
    x, i = (xarr.asarray([3, 1, 2]).evaluate() * 1 for _ in range(2))
    index, called = i % 3, set()
    xarr.add.at(x, index, 1)
    sys.setprofile(lambda frame, event, value: called.add(frame.f_globals["__name__"]))
    try:
        xarr.minimum.at(x, index, 3)
    finally:
        sys.setprofile(None)
    assert "xarr.calls.ufunc_methods" in called
    assert "xarr.calls.remembered_calls" not in called
    assert x.tolist() == [3, 2, 3]
