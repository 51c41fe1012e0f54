"""`xarr.jit`: the values of the plain function, one recording for each signature, and clear refusals."""

from __future__ import annotations

import functools
import gc
import threading
import warnings
import weakref
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xarr
from tests.compare import assert_same
from xarr import lax, lazy, tree
from xarr.errors import (
    BackendError,
    ConfigError,
    DonationError,
    InputError,
    RecompilationWarning,
    TracedValueError,
    ValueRangeError,
    XarrError,
)
from xarr.ir import ops
from xarr.ir.graph import Leaf, data
from xarr.transforms.jit import Jitted
from xarr.transforms.signature import exact

Point = namedtuple("Point", ["x", "y"])


@dataclass
class Layer:
    weight: Any
    bias: Any


def twice(jitted: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
    """The results of a call and of its repetition, which takes the fast path."""
    return [jitted(*args, **kwargs) for _ in range(2)]


def assert_same_tree(actual: Any, expected: Any) -> None:
    got, structure = tree.flatten(actual)
    wanted, its = tree.flatten(expected)
    assert structure == its
    for one, other in zip(got, wanted, strict=True):
        assert isinstance(one, xarr.Array)
        assert_same(one, xarr.asarray(other))


# --- values ----------------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "chain": lambda x, y: xarr.tanh(xarr.exp(x) * y - x / 3),
    "reduce": lambda x, y: (xarr.sum(x, axis=0), xarr.max(y) if y.size else y),
    "transpose": lambda x, y: [x.T, y.T],
    "arguments": lambda x, y: (y, x, y),
    "duplicates": lambda x, y: {"a": x + y, "b": (z := x * y), "c": z},
    "constants": lambda x, y: (1, 2.5, True, None, xarr.ones(3), np.arange(2)),
    "nothing": lambda x, y: None,
    "empty": lambda x, y: ((), [], {}),
    "update": lambda x, y: x.copy().at[...].set(y) + 1,
    "view": lambda x, y: x.reshape(-1)[::-1],
}


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "int8", "uint64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_the_function(name: str, dtype: str, backend: str) -> None:
    if dtype == "complex64" and name == "reduce":
        pytest.skip("complex numbers have no order")
    function = FUNCTIONS[name]
    with xarr.use_backend(backend):
        for shape in ((2, 3), (), (0, 2), (1, 1)):
            if name == "reduce" and not shape:
                continue
            x = xarr.asarray(np.arange(int(np.prod(shape))).reshape(shape), dtype)
            y = xarr.ones(shape, dtype=dtype) * 3
            jitted = xarr.jit(function)
            for result in twice(jitted, x, y):
                assert_same_tree(result, function(x, y))
            assert jitted.compilations == 1


SPECIAL = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-45, 3.4e38, -1.5], np.float32)


def test_special_values_keep_their_bits() -> None:
    x = xarr.asarray(SPECIAL)
    for result in twice(xarr.jit(lambda x: (x, -x, x * 2, abs(x), xarr.sqrt(x))), x):
        assert_same_tree(result, (x, -x, x * 2, abs(x), xarr.sqrt(x)))


LEAVES = st.one_of(
    st.integers(-5, 5).map(lambda n: xarr.asarray(np.full((2,), n, np.float32))),
    st.integers(0, 3).map(lambda n: np.arange(n)),
    st.integers(-5, 5),
    st.floats(-2, 2),
    st.booleans(),
    st.sampled_from([np.float32(1.5), np.int8(-3), np.bool_(True)]),
)
TREES = st.recursive(
    LEAVES | st.none(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["a", "b", "c*"]) | st.just("d"), inner, max_size=3),
        st.tuples(inner, inner).map(lambda pair: Point(*pair)),
        st.tuples(inner, inner).map(lambda pair: Layer(*pair)),
    ),
    max_leaves=6,
)


@given(st.lists(TREES, max_size=3), st.dictionaries(st.sampled_from(["p", "q"]), TREES))
def test_pytrees_go_in_and_come_out(args: list[Any], kwargs: dict[str, Any]) -> None:
    @xarr.jit
    def function(*args: Any, **kwargs: Any) -> Any:
        return tree.map_leaves(lambda leaf: leaf + leaf, (args, kwargs))

    wanted = tree.map_leaves(lambda leaf: leaf + leaf, (tuple(args), kwargs))
    for result in twice(function, *args, **kwargs):
        assert_same_tree(result, wanted)
    assert function.compilations == 1


def test_a_numpy_array_may_change_after_the_call() -> None:
    host = np.arange(4.0)
    results = twice(xarr.jit(lambda x: (x, x[1:])), host)
    host[:] = -1
    for whole, part in results:
        assert_same(whole, np.arange(4.0))
        assert_same(part, np.arange(1.0, 4.0))


@pytest.mark.parametrize("host", [np.arange(6.0).reshape(2, 3).T, np.arange(4, dtype=">i4"), np.float16(2.5)])
def test_numpy_arrays_of_any_layout_and_scalars(host: Any) -> None:
    jitted = xarr.jit(lambda x: x * 2)
    for result in twice(jitted, host):
        assert_same(result, xarr.asarray(host) * 2)
    assert_same(jitted(xarr.asarray(host)), xarr.asarray(host) * 2)
    assert jitted.compilations == 1, "an Array of that type has the same signature"


def test_unevaluated_arguments_are_evaluated_first() -> None:
    x = xarr.arange(3.0)
    jitted = xarr.jit(lambda x, y: x * y)
    for _ in range(2):
        assert_same(jitted(x + 1, x), np.arange(3.0) * (np.arange(3.0) + 1))


def test_dynamic_sizes() -> None:
    x = lax.set_dimension_size(xarr.arange(5.0), 3, 0)
    jitted = xarr.jit(lambda x: (x * 2, lax.reduce_sum(x, (0,))))
    for doubled, total in twice(jitted, x):
        assert np.asarray(doubled).tolist() == [0.0, 2.0, 4.0]
        assert float(total) == 3.0


def test_results_are_ordinary_arrays() -> None:
    x = xarr.asarray(np.arange(3.0))
    jitted = xarr.jit(lambda x: (y := x + 1, y))
    jitted(x)
    first, second = jitted(x)
    assert type(first._node) is Leaf
    whole = data(first._node.type, first._node.value, first._node.owner)
    for name in ("op", "operands", "type", "value", "owner", "depth", "traced"):
        assert name == "value" or getattr(first._node, name) == getattr(whole, name)
    assert first._node.handles == 1
    assert str(first._node.source).startswith(f"{__file__}:")
    first[0] = 7.0
    assert_same(first, np.array([7.0, 2.0, 3.0]))
    assert_same(second, np.array([1.0, 2.0, 3.0]))
    assert_same(first + second, np.array([8.0, 4.0, 6.0]))


# --- Python numbers --------------------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x + n": lambda x, n: x + n,
    "n - x": lambda x, n: n - x,
    "x * (n + 1)": lambda x, n: x * (n + 1),
    "x + n * n": lambda x, n: x + n * n,
    "maximum": lambda x, n: xarr.maximum(x, n),
    "where": lambda x, n: xarr.where(x == x, x, n),
    "asarray": lambda x, n: x + xarr.asarray(n),
    "set": lambda x, n: x.at[0].set(n),
    "-n": lambda x, n: x + -n,
    "n": lambda x, n: (n, n + n, n * 2.5, n / 2, abs(n)),
    "n == 3": lambda x, n: (n == 3, x * (n != 1), (n == 3) + x),
}


@pytest.mark.implicit
@pytest.mark.parametrize("default", ["float64", "float32"])
@pytest.mark.parametrize("number", [3, 0.1, True, 1 + 2j], ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("name", OPERATIONS)
def test_python_numbers_promote_as_outside(name: str, number: Any, default: str) -> None:
    function = OPERATIONS[name]
    with xarr.config(default_dtype=default):
        for dtype in ("uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"):
            x = xarr.asarray(np.arange(3), dtype)
            try:
                wanted = function(x, number)
            except XarrError as error:
                with pytest.raises(type(error)):
                    xarr.jit(function)(x, number)
                continue
            for result in twice(xarr.jit(function), x, number):
                assert_same_tree(result, wanted)


def test_the_value_of_a_number_is_no_part_of_the_signature() -> None:
    x = xarr.asarray(np.arange(3, dtype=np.float32))
    jitted = xarr.jit(lambda x, rate: x * rate)
    for rate in (0.1, 0.2, np.inf, -0.0, 1e300, np.nan):
        assert_same(jitted(x, rate), x * rate)
    assert jitted.compilations == 1
    assert_same(jitted(x, 3), x * 3)
    assert jitted.compilations == 2


def test_an_int_that_does_not_fit_is_refused_in_every_call() -> None:
    x = xarr.asarray(np.arange(3, dtype=np.uint8))
    jitted = xarr.jit(lambda x, n: x + n)
    with pytest.raises(ValueRangeError, match="300"):
        jitted(x, 300)
    assert_same(jitted(x, 200), x + 200)
    for wrong in (300, -1, 2**70):
        with pytest.raises(ValueRangeError):
            jitted(x, wrong)
    assert_same(jitted(x, 5), x + 5)


def test_an_int_is_compared_exactly() -> None:
    x = xarr.asarray(np.array([0, 255], np.uint8))
    jitted = xarr.jit(lambda x, n: (x < n, n <= x, x == n))
    for n in (-1, 0, 255, 256, 10**12):
        assert_same_tree(jitted(x, n), (x < n, n <= x, x == n))


def test_integers_above_int64() -> None:
    x = xarr.asarray(np.array([1], np.uint64))
    assert_same(xarr.jit(lambda x, n: x + n)(x, 2**63), x + 2**63)


@pytest.mark.parametrize(("base", "exponent"), [(2, 3), (2.0, 3), (2, 0.5), (2.0, -1)])
def test_powers_of_numbers(base: Any, exponent: Any) -> None:
    assert_same(xarr.jit(lambda n: n**exponent)(base), xarr.asarray(base**exponent))


def test_an_int_to_a_traced_int_is_refused() -> None:
    with pytest.raises(TracedValueError, match="depends on the sign of the exponent"):
        xarr.jit(lambda n: 2**n)(3)
    assert_same(xarr.jit(lambda n: n**-2)(4), xarr.asarray(4**-2))


def test_rebinding_a_number_changes_no_argument() -> None:
    def function(n: int) -> Any:
        total = n
        total += 1
        total *= n
        return total, divmod(total, 4), n

    for result in twice(xarr.jit(function), 5):
        assert_same_tree(result, function(5))


def test_numbers_in_loops_and_inner_functions() -> None:
    x = xarr.asarray(np.arange(3, dtype=np.float32))

    @xarr.jit
    def function(x: Any, rate: Any) -> Any:
        @xarr.jit
        def inner(x: Any, r: Any) -> Any:
            return x * r

        y, _ = lax.scan(lambda c, _: (c * rate + inner(c, rate), None), x, None, length=2)
        return lax.while_loop(lambda c: xarr.sum(c) < 10, lambda c: c + inner(c, 2.0), y)

    for result in twice(function, x, 0.25):
        assert_same(result, np.arange(3, dtype=np.float32) * np.float32(0.25 * 27))


# --- signatures ------------------------------------------------------------------------------------------


def test_what_makes_a_new_signature() -> None:
    runs: list[Any] = []

    @xarr.jit(static_argnames="mode")
    def function(x: Any, *, mode: str = "a") -> Any:
        runs.append(mode)
        return x + 1

    x = xarr.asarray(np.ones(3, np.float32))
    calls: list[Callable[[], Any]] = [
        lambda: function(x),
        lambda: function(xarr.ones(4, dtype="float32")),
        lambda: function(xarr.ones(3, dtype="float64")),
        lambda: function(x, mode="a"),
        lambda: function(x, mode="b"),
        lambda: function(1),
        lambda: function(1.0),
        lambda: function(True),
    ]
    for _ in range(3):
        for call in calls:
            call()
    assert len(runs) == function.compilations == len(function.signatures) == len(calls)
    with xarr.config(default_dtype="float32"):
        assert function(1.0).dtype == np.float32
        function(x)
    assert function(1.0).dtype == np.float64
    assert function.compilations == len(calls) + 2
    with xarr.use_backend("reference"):
        assert function(xarr.ones(3, dtype="float32")).backend == "reference"
    assert "function(x: f32[4])" in function.signatures
    assert "mode='b'" in " ".join(function.signatures)


def test_explicit_mode_holds_where_the_function_is_called() -> None:
    jitted = xarr.jit(lambda x, v: x + v)
    x, v = xarr.ones((2, 3)), xarr.ones(3)
    with xarr.config(broadcasting="numpy"):
        jitted(x, v)
    with xarr.config(broadcasting="explicit"), pytest.raises(xarr.errors.BroadcastError):
        jitted(x, v)
    with xarr.config(broadcasting="numpy"):
        assert_same(jitted(x, v), np.full((2, 3), 2.0))
    assert jitted.compilations == 1


def test_static_arguments_by_position_or_name() -> None:
    @xarr.jit(static_argnums=(1,), static_argnames="flag")
    def function(x: Any, n: int, flag: bool = False) -> Any:
        assert isinstance(n, int)
        return x.reshape(n, -1) if flag else x[:n]

    x = xarr.arange(6)
    for _ in range(2):
        assert function(x, 2).shape == (2,)
        assert function(x, n=2).shape == (2,)
        assert function(x, 3, True).shape == (3, 2)
        assert function(x, n=3, flag=True).shape == (3, 2)
    assert xarr.jit(lambda n, x: x[:n], static_argnums=-2)(2, x).shape == (2,)


def test_static_values_that_compare_equal_are_told_apart() -> None:
    jitted = xarr.jit(lambda n: xarr.asarray(n), static_argnums=0)
    for value in (1, 1.0, True, 0.0, -0.0, (1, 2), (1.0, 2)):
        for result in twice(jitted, value):
            assert_same(result, xarr.asarray(value))
    assert len({exact(v) for v in (0, 0.0, -0.0, False, 0j, (0,), (0.0,), "0")}) == 8


@pytest.mark.parametrize("value", [[1], {"a": 1}, np.ones(2), slice(0, 2) if not hash else {1}])
def test_static_arguments_must_have_a_hash(value: Any) -> None:
    jitted = xarr.jit(lambda x, shape: x, static_argnames="shape")
    with pytest.raises(InputError, match="the static argument shape must be hashable, got"):
        jitted(xarr.ones(2), value)


def test_wrong_options() -> None:
    def function(x: Any, n: int) -> Any:
        return x

    with pytest.raises(InputError, match=r"static_argnames has 'm', but the arguments of function are x, n"):
        xarr.jit(function, static_argnames="m")
    with pytest.raises(
        InputError, match="static_argnums has 2, but function takes 2 positional arguments: x, n"
    ):
        xarr.jit(function, static_argnums=2)
    with pytest.raises(InputError, match="wanted an int or a sequence of ints for donate_argnums"):
        xarr.jit(function, donate_argnums=("x",))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="wanted a name or a sequence of names"):
        xarr.jit(function, static_argnames=(1,))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a static argument cannot be donated"):
        xarr.jit(function, static_argnums=1, donate_argnames="n")
    with pytest.raises(InputError, match="wanted a function, got 3"):
        xarr.jit(3)  # type: ignore[call-overload]


def test_arguments_that_are_no_arrays() -> None:
    jitted = xarr.jit(lambda x, options: x)
    with pytest.raises(InputError, match=r"options\['mode'\] is a str(.|\n)*static_argnames"):
        jitted(xarr.ones(2), {"mode": "fast"})
    with pytest.raises(InputError, match="options is an object"):
        jitted(xarr.ones(2), object())
    with pytest.raises(InputError, match="wanted arrays in Python tuples for options"):
        jitted(xarr.ones(2), lax.tuple(xarr.ones(2)))
    with pytest.raises(TypeError, match="positional argument"):
        jitted(xarr.ones(2))
    assert jitted.signatures == ()


def test_results_that_are_no_arrays() -> None:
    with pytest.raises(InputError, match=r"the result\[1\]\['name'\] is no array"):
        xarr.jit(lambda x: (x, {"name": "y"}))(1.0)
    with pytest.raises(InputError, match="the result is the tuple value"):
        xarr.jit(lambda x: lax.tuple(x, x))(1.0)


def test_two_backends_are_refused() -> None:
    x = xarr.ones(2)
    with pytest.raises(BackendError, match="operands live on two backends"):
        xarr.jit(lambda x, y: x + y)(x.to("numpy"), x.to("reference"))


# --- recording once --------------------------------------------------------------------------------------


def test_side_effects_happen_once_for_each_signature(capsys: pytest.CaptureFixture[str]) -> None:
    @xarr.jit
    def function(x: Any) -> Any:
        print("recording", x.shape)
        return x + 1

    for size in (2, 2, 3, 2, 3):
        function(xarr.ones(size))
    assert capsys.readouterr().out == "recording (2,)\nrecording (3,)\n"
    function.clear_cache()
    function(xarr.ones(2))
    assert function.cache_info() == (1, 256, 3)


def test_a_failure_leaves_nothing_behind() -> None:
    fails = [True]

    @xarr.jit
    def function(x: Any) -> Any:
        if fails[0]:
            raise KeyError("in the function")
        return x + 1

    for _ in range(2):
        with pytest.raises(KeyError):
            function(xarr.ones(2))
    assert function.cache_info()[::2] == (0, 0)
    assert not function._pending
    fails[0] = False
    assert_same(function(xarr.ones(2)), np.full(2, 2.0))


def test_the_signatures_kept_are_bounded() -> None:
    jitted = xarr.jit(lambda n: xarr.asarray(n), static_argnums=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecompilationWarning)
        for n in range(300):
            jitted(n)
        assert jitted.cache_info() == (256, 256, 300)
        jitted(299)
        assert jitted.compilations == 300
        jitted(0)
        assert jitted.compilations == 301


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda f, n: f(xarr.ones(n + 1), "a"), r"x was f64\[3\] and is f64\[4\]"),
        (lambda f, n: f(xarr.ones(2), n), r"the static argument mode was 2 and is 3"),
        (lambda f, n: f([1.0] * n, "a"), r"x was \[\*, \*\] and is \[\*, \*, \*\]"),
        (
            lambda f, n: f({"w": xarr.ones(2, dtype=f"int{2**n * 4}")}, 0),
            r"x\['w'\] was s16\[2\] and is s32\[2\]",
        ),
        (lambda f, n: f(*[1, "a"], **{f"k{n}": 1}), r"the arguments were \(.*k2: int\) and are .*k3: int\)"),
    ],
    ids=["shape", "static", "structure", "dtype", "arguments"],
)
def test_a_warning_says_what_changed(call: Callable[..., Any], told: str) -> None:
    @xarr.jit(static_argnames="mode")
    def step(x: Any, mode: Any, **others: Any) -> Any:
        return x

    with xarr.config(jit_warn_compilations=2):
        for n in (1, 2):
            call(step, n)
        with pytest.warns(
            RecompilationWarning, match=f"step has been compiled 3 times. This time {told}"
        ) as got:
            call(step, 3)
        assert got[0].filename == __file__
        call(step, 3)


def test_the_limit_is_a_setting() -> None:
    with pytest.raises(ConfigError, match="positive integer"), xarr.config(jit_warn_compilations=0):
        pass
    assert xarr.config.jit_warn_compilations == 20


# --- values from outside ---------------------------------------------------------------------------------


def test_an_outer_array_has_the_value_of_the_recording() -> None:
    outer = xarr.arange(3.0) + 1  # not evaluated
    table = np.arange(3.0)

    @xarr.jit
    def function(x: Any) -> Any:
        return x * outer + table

    assert_same(function(2.0), np.array([2.0, 5.0, 8.0]))
    outer = outer * 100
    table[:] = 50
    assert_same(function(2.0), np.array([2.0, 5.0, 8.0]))
    function.clear_cache()
    assert_same(function(2.0), np.array([250.0, 450.0, 650.0]))


def test_writing_to_an_outer_array_later_changes_nothing() -> None:
    outer = xarr.zeros(3)
    jitted = xarr.jit(lambda x: x + outer)
    jitted(xarr.ones(3))
    outer[0] = 5.0
    assert_same(jitted(xarr.ones(3)), np.ones(3))


def test_an_outer_array_is_passed_and_not_written_into_the_program() -> None:
    outer = xarr.asarray(np.arange(1000.0))
    jitted = xarr.jit(lambda x: x + outer)
    lowered = jitted.lower("f64[1000]")
    assert len(lowered.graph.parameters) == 2
    assert not any(isinstance(node.op, ops.Constant) for node in lowered.graph.nodes)
    for result in twice(jitted, xarr.ones(1000)):
        assert_same(result, np.arange(1000.0) + 1)


# --- inside of other traced functions --------------------------------------------------------------------


def test_jit_in_jit_is_one_call_in_the_graph() -> None:
    @xarr.jit
    def inner(x: Any, n: Any) -> Any:
        return x * n, x.sum()

    @xarr.jit
    def outer(x: Any) -> Any:
        y, total = inner(x, 2)
        z, _ = inner(y, 3)
        return z + total

    x = xarr.asarray(np.arange(3, dtype=np.int8))
    for result in twice(outer, x):
        assert_same(result, x * 6 + x.sum())
    assert inner.compilations == outer.compilations == 1
    assert "call @inner" in str(outer.lower(x))
    assert "call @inner" in str(xarr.lower(outer, x)) or "call @outer" in str(xarr.lower(outer, x))


def test_inside_of_loops_branches_and_combiners() -> None:
    double = xarr.jit(lambda x: x * 2)
    x = xarr.arange(4.0)
    assert_same(lax.scan(lambda c, y: (double(c), double(y)), x, x)[1], np.arange(4.0) * 2)
    assert_same(lax.while_loop(xarr.jit(lambda x: x.sum() < 100), double, x), np.arange(4.0) * 32)
    assert_same(lax.cond(xarr.asarray(True), double, lambda x: x, x), np.arange(4.0) * 2)
    add = xarr.jit(lambda a, b: a + b)
    total = lax.reduce(x, 0.0, add, (0,))
    assert_same(total, np.float64(6))
    (node,) = [n for n in xarr.lower(lambda x: lax.reduce(x, 0.0, add, (0,)), x).graph.nodes if n.op.graphs]
    assert [type(n.op) for n in node.op.graphs[0].nodes] == [ops.Add], "a plain sum, which backends recognise"


def test_an_inner_function_may_use_the_arguments_of_the_outer_one() -> None:
    kept: list[Jitted] = []

    @xarr.jit
    def outer(x: Any) -> Any:
        inner = xarr.jit(lambda y: x + y)
        kept.append(inner)
        return inner(xarr.ones(3)) * inner(xarr.ones(3))

    assert_same(outer(xarr.ones(3)), np.full(3, 4.0))
    assert kept[0].signatures == (), "what uses the argument of another call is not kept"
    with pytest.raises(TracedValueError, match="a traced function that has ended"):
        kept[0](xarr.ones(3))


def test_a_recursive_function() -> None:
    @xarr.jit
    def total(x: Any) -> Any:
        return x[0] + total(x[1:]) if x.size else xarr.asarray(0.0)

    for result in twice(total, xarr.arange(5.0)):
        assert_same(result, np.float64(10))


def test_results_do_not_leak_out_of_a_trace() -> None:
    kept: list[Any] = []
    jitted = xarr.jit(lambda x: kept.append(x + 1) or x)
    jitted(xarr.ones(2))
    with pytest.raises(TracedValueError):
        np.asarray(kept[0])
    with pytest.raises(TracedValueError):
        jitted(kept[0])


def test_explain_sees_the_broadcasts_of_a_jitted_function() -> None:
    jitted = xarr.jit(lambda x, v: x + v)
    x, v = xarr.ones((2, 3)), xarr.ones(3)
    with xarr.config(broadcasting="numpy"):
        jitted(x, v)
        assert len(xarr.explain(lambda: jitted(x, v)).steps) == 1  # type: ignore[union-attr]


# --- control flow that depends on values -----------------------------------------------------------------


def looks_if(x: Any) -> Any:
    return x if x > 0 else -x  # the line


def looks_while(x: Any) -> Any:
    while x < 10:  # the line
        x = x * 2
    return x


def looks_float(x: Any) -> Any:
    return float(x + 1)  # the line


def looks_int(x: Any) -> Any:
    return xarr.zeros(int(x))  # the line


def looks_range(x: Any) -> Any:
    return sum(x for _ in range(x))  # the line


def looks_numpy(x: Any) -> Any:
    return np.asarray(x) + 1  # the line


def looks_slice(x: Any) -> Any:
    return xarr.arange(5)[:x]  # the line


def looks_shape(x: Any) -> Any:
    return xarr.ones((x, 2))  # the line


@pytest.mark.parametrize(
    "function",
    [looks_if, looks_while, looks_float, looks_int, looks_range, looks_numpy, looks_slice, looks_shape],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("argument", [3, np.int32(3)], ids=["number", "array"])
def test_looking_at_a_value_names_the_line(function: Callable[..., Any], argument: Any) -> None:
    jitted = xarr.jit(function)
    with pytest.raises(TracedValueError) as caught:
        jitted(argument)
    text = str(caught.value)
    with open(__file__, encoding="utf-8") as file:
        lines = list(enumerate(file, 1))
    first = function.__code__.co_firstlineno
    (line,) = [n for n, text_ in lines[first : first + 3] if "# the line" in text_]
    assert f"asked for at {__file__}:{line}" in text
    for proposal in ("lax.cond", "lax.while_loop", "xarr.where", "static_argnames"):
        assert proposal in text
    assert jitted.signatures == ()


def test_changing_an_argument_in_place_is_refused() -> None:
    def function(state: Any) -> Any:
        state["x"][0] = 1.0
        return state["x"]

    with pytest.raises(
        TracedValueError, match=r"function changes its argument state\['x'\] in place"
    ) as caught:
        xarr.jit(function)({"x": xarr.zeros(2)})
    assert f"changed at {__file__}" in str(caught.value)


# --- errors when it runs ---------------------------------------------------------------------------------


def test_an_error_while_running_names_the_line() -> None:
    def broken(x: Any) -> Any:
        if x[0] > 1:
            raise ArithmeticError("too large")
        return x

    @xarr.jit
    def function(x: Any) -> Any:
        y = x + 1
        return lax.custom_call("test.broken", y, result_types=((1,), "float64")) * 2

    lax.register_custom_call("test.broken", broken)
    try:
        for value in (0.0, 0.0, 5.0, 5.0, 0.0):
            if value:
                with pytest.raises(ArithmeticError, match="too large") as caught:
                    function(np.full(1, value))
                (note,) = caught.value.__notes__
                assert f"while computing custom_call -> tensor<1xf64>, built at {__file__}" in note
            else:
                assert_same(function(np.full(1, value)), np.full(1, 2.0))
    finally:
        lax.unregister_custom_call("test.broken")


# --- donation --------------------------------------------------------------------------------------------


def test_a_donated_array_is_gone() -> None:
    step = xarr.jit(lambda x, y: x + y, donate_argnums=0)
    y = xarr.ones(3)
    for _ in range(3):
        x = xarr.zeros(3) + 1
        shown = x.copy()
        result = step(x, y)
        assert_same(result, np.full(3, 2.0))
        assert x.shape == (3,)
        later = x * 2
        looks: list[Callable[[Any], Any]] = [np.asarray, repr, xarr.evaluate, lambda x: step(x, y)]
        for look, array in [*[(look, x) for look in looks], (np.asarray, later)]:
            with pytest.raises(DonationError, match=rf"donated to <lambda>, first called at {__file__}"):
                look(array)
        assert_same(shown, np.ones(3))
        assert_same(y, np.ones(3))


def test_donating_lets_the_value_go() -> None:
    class Buffer(np.ndarray[Any, Any]):
        pass

    buffer = np.zeros(10).view(Buffer)
    gone = weakref.ref(buffer)
    numpy = xarr.get_backend("numpy")
    step = xarr.jit(lambda state: state["w"] + 1, donate_argnames=["state"])
    step({"w": xarr.zeros(10)})
    x = lazy.wrap(data(xarr.zeros(10)._node.type, buffer, numpy), numpy)
    del buffer
    step({"w": x})
    assert gone() is None
    assert x.dtype == np.float64


def test_only_arrays_can_be_donated() -> None:
    step = xarr.jit(lambda x, n: x * n, donate_argnums=(0, 1))
    host = np.ones(2)
    for result in twice(step, host, 3):
        assert_same(result, np.full(2, 3.0))


# --- threads ---------------------------------------------------------------------------------------------


def test_threads_record_once_and_get_their_own_results() -> None:
    recorded: list[int] = []
    errors: list[BaseException] = []

    @xarr.jit
    def function(x: Any, n: Any) -> Any:
        recorded.append(1)
        return x * n + 1

    barrier = threading.Barrier(4)

    def work(n: int) -> None:
        try:
            barrier.wait()
            for round_ in range(50):
                size = 3 + round_ % 2
                x = xarr.asarray(np.full(size, float(n)))
                assert_same(function(x, round_), np.full(size, n * float(round_) + 1))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(recorded) == function.compilations == 2


# --- functions, methods, lifetime ------------------------------------------------------------------------


def test_decorators_lambdas_partials_and_names() -> None:
    @xarr.jit(static_argnames="n")
    def function(x: Any, n: int = 2) -> Any:
        """The docstring."""
        return x * n

    assert (function.__name__, function.__doc__) == ("function", "The docstring.")
    assert repr(function) == "<jitted function: 0 signatures, 0 compilations>"
    assert_same(xarr.jit(functools.partial(lambda a, b: a - b, 1))(3), xarr.asarray(-2))
    assert_same(xarr.jit(function)(3), xarr.asarray(6))
    assert_same(xarr.jit(xarr.exp)(xarr.ones(1)), xarr.exp(xarr.ones(1)))


class Model:
    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.weight = xarr.ones(2)
        self.more: dict[str, Any] = {}

    @xarr.jit
    def step(self, x: Any) -> Any:
        RECORDED.append(self.rate)
        result = x * self.rate + self.weight
        return result + self.more["b"][0] if self.more else result

    @staticmethod
    @xarr.jit
    def plain(x: Any) -> Any:
        return x + 1


RECORDED: list[float] = []


def test_methods_of_objects_are_recorded_for_each_object() -> None:
    RECORDED.clear()
    one, two = Model(2.0), Model(3.0)
    for _ in range(3):
        assert_same(one.step(xarr.ones(2)), np.full(2, 3.0))
        assert_same(two.step(xarr.ones(2)), np.full(2, 4.0))
    assert RECORDED == [2.0, 3.0]
    one.rate = 5.0
    assert_same(one.step(xarr.ones(2)), np.full(2, 6.0))
    one.weight[0] = 9.0
    assert_same(one.step(xarr.ones(2)), np.array([14.0, 6.0]))
    one.weight = xarr.zeros(2)
    assert_same(one.step(xarr.ones(2)), np.full(2, 5.0))
    one.more = {"b": [xarr.ones(2)]}
    assert_same(one.step(xarr.ones(2)), np.full(2, 6.0))
    one.more["b"][0] += 1
    for _ in range(2):
        assert_same(one.step(xarr.ones(2)), np.full(2, 7.0))
    assert one.step.compilations == 6
    assert str(one.step.lower(xarr.ones(2)))
    assert_same(one.plain(xarr.ones(2)), np.full(2, 2.0))
    assert isinstance(Model.step, Jitted)


def test_objects_with_jitted_methods_are_freed() -> None:
    model = Model(2.0)
    model.itself, model.others = model, [model, {model}]  # type: ignore[attr-defined]
    model.step(xarr.ones(2))
    gone, methods = weakref.ref(model), Model.step._methods
    count = len(methods)
    del model
    gc.collect()
    assert gone() is None
    assert len(methods) == count - 1


def test_a_dataclass_with_methods_is_a_pytree() -> None:
    @dataclass
    class Line:
        slope: Any
        offset: Any

        @xarr.jit
        def at(self, x: Any) -> Any:
            return self.slope * x + self.offset

    for slope in (2.0, 3.0):
        line = Line(xarr.asarray(slope), 1.0)
        assert_same(line.at(xarr.ones(2)), np.full(2, slope + 1))
        assert line.at.compilations == 1
        assert "multiply" in str(line.at.lower(xarr.ones(2)))


def test_an_object_without_weak_references() -> None:
    class Slotted:
        __slots__ = ()

        @xarr.jit
        def step(self, x: Any) -> Any:
            return x

    with pytest.raises(InputError, match="there are no weak references"):
        Slotted().step(1.0)


def test_a_jitted_function_that_dies_frees_its_programs() -> None:
    big = xarr.asarray(np.arange(1000.0))
    jitted = xarr.jit(lambda x: x + big)
    jitted(xarr.ones(1000))
    jitted(xarr.ones(1000))
    traced = weakref.ref(next(iter(jitted._cache.values())))
    gc.collect()
    gc.disable()
    try:
        del jitted
        assert traced() is None, "by counting references alone"
    finally:
        gc.enable()


# --- what can be printed ---------------------------------------------------------------------------------

REPLAY = """\
def make(program, explain, backend, settings, overridden, S0, E0, K0, T0, D0, L0, L1, O0, P0):
    def replay(args, kwargs):
        if recording or observers or kwargs or len(args) != 3:
            return MISSED
        a0, x1, a2, = args
        if a2 is not S0 and exact(a2) != E0:
            return MISSED
        t0 = a0
        if type(t0) is not dict or t0.keys() != K0:
            return MISSED
        x0 = t0['w']
        if type(x0) is not Array:
            return MISSED
        n0 = x0._node
        b0 = n0.value
        if n0.type is not T0 or n0.owner is not backend or x0._backend is not backend or b0 is None:
            return MISSED
        if type(x1) is not float:
            return MISSED
        if config._global is not settings or overrides() is not overridden:
            return MISSED
        c0 = backend.from_host(array(x1, D0) if L0 <= x1 <= L1 else scalar(x1, D0))
        try:
            v0, = program(b0, c0)
        except BaseException as error:
            explain(error)
            raise
        m0 = new(Leaf)
        m0.op = O0
        m0.type = T0
        m0.value = v0
        m0.owner = backend
        m0.handles = 1
        m0._place = P0
        y0 = new(Array)
        y0._node = m0
        y0._backend = backend
        return [y0, None]
    return replay
"""


def test_the_text_that_is_replayed() -> None:
    jitted = xarr.jit(lambda tree, rate, mode: [tree["w"] * rate, None], static_argnums=2)
    assert jitted.replay_text == ""
    x = xarr.ones((2, 3), dtype="float32").evaluate()
    jitted({"w": x}, 0.5, "a")
    assert jitted.replay_text == REPLAY
    jitted.clear_cache()
    assert jitted.replay_text == ""


def test_lower_gives_the_graph_and_runs_nothing() -> None:
    jitted = xarr.jit(lambda x, n: xarr.sum(x * n), static_argnames=())
    lowered = jitted.lower("f32[2,3]", 2.0)
    assert [str(type_) for type_ in lowered.graph.parameter_types] == ["tensor<2x3xf32>", "tensor<f32>"]
    assert "def program(a0, a1):" in lowered.stage("program").text  # type: ignore[union-attr]
    assert_same(jitted(xarr.ones((2, 3), dtype="float32"), 2.0), np.float32(12))
    assert jitted.compilations == 1
