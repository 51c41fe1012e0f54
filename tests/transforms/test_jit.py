"""`xarr.jit`: the values of the plain function, alone and inside of other traced functions; what is printed."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import threading
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
from tests.support.jitting import assert_same_tree, twice
from xarr import lax, tree
from xarr.errors import (
    InputError,
    TracedValueError,
)
from xarr.ir import ops
from xarr.ir.graph import Leaf, data
from xarr.runtime import handles
from xarr.transforms.jit import Jitted


@xarr.jit
def pickle_by_name(x: Any) -> Any:
    return x


Point = namedtuple("Point", ["x", "y"])


@dataclass
class Layer:
    weight: Any
    bias: Any


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


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "int8", "uint64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_the_function(name: str, dtype: str, backend: str) -> None:
    if dtype == "complex64" and name == "reduce":
        pytest.skip("complex numbers have no order")
    function = FUNCTIONS[name]
    # Compiled loops run where they pay, which differs with and without jit, and so do bits.
    with xarr.use_backend(backend), xarr.config(fusion="off"):
        for shape in ((2, 3), (), (0, 2), (1, 1)):
            if name == "reduce" and not shape:
                continue
            x = xarr.asarray(np.arange(int(np.prod(shape))).reshape(shape), dtype)
            y = xarr.ones(shape, dtype=dtype) * 3
            jitted = xarr.jit(function)
            for result in twice(jitted, x, y):
                assert_same_tree(result, function(x, y))
            assert jitted.compilations == 1


def test_compiled_loops_give_the_same_within_ulps() -> None:
    x = xarr.asarray(np.linspace(-3, 3, 10_000, dtype=np.float32))
    wanted = xarr.exp(x) * x + xarr.tanh(x * 2)
    for result in twice(xarr.jit(lambda x: xarr.exp(x) * x + xarr.tanh(x * 2)), x):
        assert_same(result, wanted, ulp=8)


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
        return tree.map(lambda leaf: leaf + leaf, (args, kwargs))

    wanted = tree.map(lambda leaf: leaf + leaf, (tuple(args), kwargs))
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


def test_large_numpy_arrays_are_read_where_they_are_and_not_kept() -> None:
    host = np.arange(20_000.0).reshape(2, -1)
    jitted = xarr.jit(lambda x: (x, x[1:], x.T, x + 1))
    for _ in range(3):
        results = jitted(host)
        wanted = [np.array(each) for each in (host, host[1:], host.T, host + 1)]
        host += 1
        for result, value in zip(results, wanted, strict=True):
            assert_same(result, value)
    assert "from_host(x0)" in jitted.replay_text
    assert host.flags.writeable


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
    whole = data(first._node.type, first._node.value, first._node.device)
    for name in ("op", "operands", "type", "value", "device", "depth", "traced"):
        assert name == "value" or getattr(first._node, name) == getattr(whole, name)
    assert first._node.handles == 1
    assert str(first._node.source).startswith(f"{__file__}:")
    first[0] = 7.0
    assert_same(first, np.array([7.0, 2.0, 3.0]))
    assert_same(second, np.array([1.0, 2.0, 3.0]))
    assert_same(first + second, np.array([8.0, 4.0, 6.0]))


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


def test_data_of_an_outer_array_does_not_count_as_dead() -> None:
    held = [xarr.asarray(np.arange(10_000.0))]
    jitted = xarr.jit(lambda x: x + held[0])
    jitted(1.0)
    gc.collect()
    before = handles._orphans.nbytes
    held.clear()
    assert handles._orphans.nbytes == before
    assert_same(jitted(1.0)[:2], np.array([1.0, 2.0]))


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
    text = str(xarr.lower(outer, x))
    assert "call @outer" in text
    assert "call @inner" in text


def test_a_function_without_arguments_inside_of_another() -> None:
    inner = xarr.jit(lambda: (xarr.ones(3) * 2, xarr.arange(3)))
    outer = xarr.jit(lambda x: x + inner()[0] * inner()[1])
    for result in twice(outer, xarr.ones(3)):
        assert_same(result, np.array([1.0, 3.0, 5.0]))
    assert len(outer.lower("f64[3]").graph.parameters) == 1
    for result in twice(inner):
        assert_same_tree(result, (np.full(3, 2.0), np.arange(3)))


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


def test_copies_are_the_function_itself() -> None:
    jitted = xarr.jit(lambda x: x)
    assert copy.deepcopy([jitted])[0] is copy.copy(jitted) is jitted
    assert pickle.loads(pickle.dumps(pickle_by_name)) is pickle_by_name


def test_alternating_signatures_keep_their_replay_functions() -> None:
    runs: list[int] = []
    jitted = xarr.jit(lambda x: runs.append(1) or x + 1)
    arrays = [xarr.ones(size) for size in range(1, 12)]
    for _ in range(3):
        for x in arrays:
            assert_same(jitted(x), np.full(x.shape, 2.0))
    assert len(runs) == len(arrays)
    assert len(jitted._replays) == 8


def test_decorators_lambdas_partials_and_names() -> None:
    @xarr.jit(static_argnames="n")
    def function(x: Any, n: int = 2) -> Any:
        """The docstring."""
        return x * n

    assert (function.__name__, function.__doc__) == ("function", "The docstring.")
    assert repr(function) == "<jitted function: 0 signatures, 0 compilations>"
    assert_same(xarr.jit(functools.partial(lambda a, b: a - b, 1))(3), xarr.asarray(-2))
    assert_same(xarr.jit(function)(3), xarr.asarray(6))
    assert_same(xarr.jit(xarr.exp)(xarr.ones(1)), xarr.exp(xarr.ones(1)), ulp=2)


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
    one.more = {}
    one.names = {1: "a", "b": 2}  # type: ignore[attr-defined]
    for _ in range(2):
        assert_same(one.step(xarr.ones(2)), np.full(2, 5.0))


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

    with pytest.raises(InputError, match="cannot be weakly referenced"):
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
def make(program, explain, device, backend, settings, overridden, S0, E0, K0, T0, D0, L0, L1, P0):
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
        if config['_global'] is not settings or overrides() is not overridden:
            return MISSED
        if type(x0) is not Array:
            return MISSED
        if type(x1) is not float:
            return MISSED
        n0 = x0._shown or x0._node
        b0 = n0.value
        if n0.type is not T0 or n0.device is not device or b0 is None:
            return MISSED
        c0 = backend.from_number(array(x1, D0) if L0 <= x1 <= L1 else scalar(x1, D0))
        b0 = n0.value
        if b0 is None:
            return MISSED
        n0.handles += 1
        n0.exposed = True
        try:
            v0, = program(b0, c0)
        except BaseException as error:
            explain(error)
            raise
        finally:
            n0.handles -= 1
        y0 = new(Array)
        y0._shown = None
        y0._value = v0
        y0._device = device
        y0._location = P0
        return [y0, None]
    return replay
"""


@pytest.mark.usefixtures("on_numpy", "unfused")
def test_the_text_that_is_replayed() -> None:
    jitted = xarr.jit(lambda tree, rate, mode: [tree["w"] * rate, None], static_argnums=2)
    assert jitted.replay_text == ""
    x = xarr.ones((2, 3), dtype="float32").evaluate()
    jitted({"w": x}, 0.5, "a")
    assert jitted.replay_text == REPLAY
    jitted.clear_cache()
    assert jitted.replay_text == ""


def test_lower_gives_the_graph_and_runs_nothing() -> None:
    jitted = xarr.jit(lambda x, n: xarr.sum(x * n))
    with xarr.use_backend("numpy"):
        lowered = jitted.lower("f32[2,3]", 2.0)
        assert_same(jitted(xarr.ones((2, 3), dtype="float32"), 2.0), np.float32(12))
    assert [str(type_) for type_ in lowered.graph.parameter_types] == ["tensor<2x3xf32>", "tensor<f32>"]
    assert "def program(a0, a1):" in lowered.stage("program").text  # type: ignore[union-attr]
    assert jitted.compilations == 1
