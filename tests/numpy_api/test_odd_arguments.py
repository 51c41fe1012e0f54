"""Arguments at the edge of what a function takes: each gives what NumPy or JAX gives, or an error that helps."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.xla import run_stablehlo
from xarr import lax, random
from xarr.errors import (
    BroadcastError,
    DTypeError,
    EvaluationError,
    InputError,
    ShapeError,
    ValueRangeError,
)

X = xarr.asarray([0.0, 1.0, 2.0])
KEY = random.key(0)


@pytest.mark.parametrize(
    ("low", "high"), [(-1, 300), (0, 255), (2, 300), (-5, 2), (None, 10**30), (True, 300)]
)
def test_clip_by_numbers_beyond_the_type(low: Any, high: Any) -> None:
    values = np.array([1, 2, 3], np.uint8)
    wanted = np.clip(values, low, high)
    got = np.asarray(xarr.clip(values, low, high))
    assert (got.dtype, got.tolist()) == (wanted.dtype, wanted.tolist())
    for bounds in ((300, None), (None, -1)):
        with pytest.raises(ValueRangeError, match="out of bounds for uint8"):
            xarr.clip(values, *bounds)


@pytest.mark.parametrize("decimals", [400, -400, 2**70, 308, -308])
def test_round_to_decimals_beyond_the_type(decimals: int) -> None:
    values = np.array([1.5, 0.0, -3e300])
    with np.errstate(all="ignore"):
        wanted = np.round(values, min(decimals, 1000))
    np.testing.assert_array_equal(np.asarray(xarr.round(values, decimals)), wanted)
    np.testing.assert_array_equal(np.asarray(xarr.round(np.array([2, 3]), 400)), [2, 3])


def test_lax_round_names_its_methods() -> None:
    for bad in (5, "half", None):
        with pytest.raises(InputError, match=r"RoundingMethod\.TO_NEAREST_EVEN, got .*xarr\.round"):
            lax.round(X, bad)  # type: ignore[arg-type]
    assert np.asarray(lax.round(0.5, lax.RoundingMethod.TO_NEAREST_EVEN)) == 0
    assert np.asarray(lax.round(0.5, 1)) == 0  # type: ignore[arg-type]


def test_expand_dims_wants_a_sequence() -> None:
    with pytest.raises(InputError, match="expand_dims: wanted a sequence of ints for dimensions, got 0"):
        lax.expand_dims(X, 0)  # type: ignore[arg-type]


def test_item_of_several_elements() -> None:
    live = lax.set_dimension_size(xarr.arange(5.0), xarr.asarray(3, "int32"), 0)
    for array in (X, live):
        with pytest.raises(ShapeError, match=r"item: wanted one element, got 3 .*x\.item\(0\)"):
            array.item()
        assert array.item(1) == 1.0


def test_powers_have_two_arguments() -> None:
    with pytest.raises(InputError, match=r"pow\(x, y\) % modulo"):
        pow(X, 2, 3)
    assert np.asarray(pow(X, 2)).tolist() == [0, 1, 4]


def test_adding_to_a_numpy_array_in_place() -> None:
    n = np.zeros(3)
    with pytest.raises(InputError, match=r"n \+= numpy\.asarray\(x\)"):
        n += X
    n += np.asarray(X)
    assert n.tolist() == [0, 1, 2]


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "while": (
        lambda: lax.while_loop(lambda: True, lambda c: c, X),
        r"cond_fun is called with 1 argument, .*\(\)",
    ),
    "fori": (lambda: lax.fori_loop(0, 3, lambda c: c, X), r"fori_loop: body_fun is called with 2 arguments"),
    "scan": (lambda: lax.scan(lambda c: c, X, X), r"scan: f is called with 2 arguments, .* takes \(c\)"),
    "cond": (lambda: lax.cond(True, lambda: X, lambda a: a, X), r"cond: true_fun is called with 1 argument"),
    "reduce": (lambda: lax.reduce(X, 0.0, lambda a: a, (0,)), r"reduce: computation is called with 2"),
    "lower": (lambda: xarr.lower(lambda a, b: a, X), r"lower: the function is called with 1 .*missing .*'b'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_functions_of_another_arity(name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        call()


def test_the_errors_of_a_users_function_are_its_own() -> None:
    with pytest.raises(TypeError, match=r"object of type 'int' has no len\(\)"):
        lax.fori_loop(0, 3, lambda i, c: len(5), X)  # type: ignore[arg-type]


def test_ordered_dicts_keep_their_order_and_defaultdicts_their_factory() -> None:
    def step(carry: Any) -> Any:
        return OrderedDict(b=carry["b"] + 1, a=carry["a"] + carry["b"])

    start = OrderedDict(b=np.int64(0), a=np.int64(5))
    got = lax.while_loop(lambda c: c["b"] < 3, step, OrderedDict(start))
    wanted = jax.lax.while_loop(lambda c: c["b"] < 3, step, OrderedDict(start))
    assert type(got) is OrderedDict
    assert [(key, int(value)) for key, value in got.items()] == [(key, int(v)) for key, v in wanted.items()]

    result = lax.cond(True, lambda d: d, lambda d: d, defaultdict(list, z=X, a=X + 1))
    assert type(result) is defaultdict
    assert (result.default_factory, list(result), result["missing"]) == (list, ["a", "z"], [])
    with pytest.raises(ShapeError, match="default_factory"):
        lax.cond(True, lambda d: d, lambda d: defaultdict(int, d), defaultdict(list, a=X))


def test_trees_that_are_too_deep() -> None:
    deep: Any = X
    for _ in range(199):
        deep = (deep,)
    assert lax.cond(True, lambda d: d, lambda d: d, deep)[0][0]
    loop: list[Any] = []
    loop.append(loop)
    for value in ((deep, deep, (deep,)), loop):
        with pytest.raises(InputError, match="200 levels deep"):
            lax.while_loop(lambda c: True, lambda c: c, value)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_arrays_beyond_the_limits_of_numpy_name_their_line(backend: str) -> None:
    with xarr.use_backend(backend):
        too_many = {
            "65 dimensions": xarr.ones((1,) * 65) + 1,
            "70 dimensions": lax.reshape(xarr.arange(3), (1,) * 69 + (3,)),
            "2\\*\\*83 bytes": xarr.zeros((2**40, 2**40))[0, 0],
            "2\\*\\*3971 bytes": xarr.ones((2**62,) * 64) + 1,
        }
        for message, array in too_many.items():
            with pytest.raises(EvaluationError, match=rf"{message}.*{backend}.*test_odd_arguments\.py"):
                np.asarray(array)
        assert np.asarray(xarr.ones((1,) * 64) + 1).ndim == 64


def test_random_parameters_that_do_not_broadcast() -> None:
    two, three = xarr.zeros(2), xarr.ones(3)
    calls: list[tuple[Callable[[], Any], tuple[str, str]]] = [
        (lambda: random.truncated_normal(KEY, two, three), ("lower", "upper")),
        (lambda: random.weibull_min(KEY, two, three), ("scale", "concentration")),
        (lambda: random.triangular(KEY, 0.0, two, three), ("mode", "right")),
    ]
    for call, names in calls:
        with pytest.raises(BroadcastError, match=rf"(?s){names[0]} has 2, {names[1]} has 3"):
            call()


BOTH = xarr.asarray([True, False])
FLAGS: dict[str, Callable[[Any], Any]] = {
    "sum: keepdims": lambda flag: xarr.sum(X, keepdims=flag),
    "argmax: keepdims": lambda flag: xarr.argmax(X, keepdims=flag),
    "sort: descending": lambda flag: xarr.sort(X, descending=flag),
    "argsort: stable": lambda flag: xarr.argsort(X, stable=flag),
    "allclose: equal_nan": lambda flag: xarr.allclose(X, X, equal_nan=flag),
    "array_equal: equal_nan": lambda flag: xarr.array_equal(X, X, equal_nan=flag),
    "lax.sort: is_stable": lambda flag: lax.sort(X, is_stable=flag),
    "lax.cumsum: reverse": lambda flag: lax.cumsum(X, reverse=flag),
    "lax.scan: reverse": lambda flag: lax.scan(lambda c, x: (c, x), 0.0, X, reverse=flag),
    "cholesky: symmetrize_input": lambda flag: lax.linalg.cholesky(xarr.eye(2), symmetrize_input=flag),
    "triangular_solve: lower": lambda flag: lax.linalg.triangular_solve(xarr.eye(2), xarr.eye(2), lower=flag),
    "choice: replace": lambda flag: random.choice(KEY, 3, (2,), replace=flag),
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_are_single(name: str) -> None:
    argument = name.split(": ")[1]
    for flag in (BOTH, np.array([True, False])):
        with pytest.raises(
            InputError, match=rf"wanted True or False for {argument}, got an array of shape \(2,\)"
        ):
            FLAGS[name](flag)
    for flag in (True, np.False_, xarr.asarray(True)):
        FLAGS[name](flag)


def test_random_parameters_are_real() -> None:
    for low in (1j, xarr.asarray(1j), np.array([1j])):
        with pytest.raises(DTypeError, match="truncated_normal: wanted real parameters"):
            random.truncated_normal(KEY, low, 2.0)


def test_random_shapes_of_one_number() -> None:
    for shape in (3, np.int64(3)):
        wanted = np.asarray(jax.random.uniform(jax.random.key(0), 3, np.float32))  # type: ignore[arg-type]
        np.testing.assert_array_equal(np.asarray(random.uniform(KEY, shape, np.float32)), wanted)
    assert random.split(KEY, 3).shape == (3,)
    with pytest.raises(InputError, match="sizes >= 0"):
        random.uniform(KEY, -3)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_extremes_of_no_complex_numbers(dtype: str) -> None:
    empty = np.zeros((0, 3), dtype)
    for name in ("reduce_max", "reduce_min"):
        got = np.asarray(getattr(lax, name)(empty, (0,)))
        np.testing.assert_array_equal(got, np.asarray(getattr(jax.lax, name)(empty, (0,))).astype(dtype))
    lone = np.array([complex(-np.inf, -1)], dtype)
    np.testing.assert_array_equal(np.asarray(lax.reduce_max(lone, (0,))), lone[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_sign_of_zero_is_lost_on_xla_too(dtype: str) -> None:
    values = np.array([-0.0, 0.0, -2.0, 3.0, np.nan], dtype)
    wanted = np.sign(values)
    assert_same(xarr.sign(values), wanted)
    (printed,) = run_stablehlo(str(xarr.lower(xarr.sign, xarr.asarray(values))), values)
    assert_same(np.asarray(printed), wanted)
    live = lax.set_dimension_size(xarr.asarray(values), xarr.asarray(2, "int32"), 0)
    assert_same(np.asarray(xarr.sign(live)), wanted[:2])
