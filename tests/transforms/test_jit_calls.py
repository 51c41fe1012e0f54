"""What `xarr.jit` records anew, counts, warns about and refuses."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.jitting import twice
from xarr import backend as backends, lax
from xarr.backend import Program
from xarr.errors import (
    BackendError,
    ConfigError,
    DonationError,
    InputError,
    RecompilationWarning,
    TooLargeError,
    TracedValueError,
)
from xarr.ir.graph import data
from xarr.ir.memory_use import out_of_memory
from xarr.ir.ops import Fusion
from xarr.runtime import handles
from xarr.transforms.signature import exact

# --- signatures ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_numpy", "fused")
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
    with xarr.config(fusion="off"):
        function(x)
    assert function.compilations == len(calls) + 3
    with xarr.use_backend("reference" if xarr.config.backend == "numpy" else "numpy"):
        function(xarr.ones(3, dtype="float32"))
    assert function.compilations == len(calls) + 4
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


@pytest.mark.parametrize("value", [[1], {"a": 1}, np.ones(2), {1}])
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
    with pytest.raises(InputError, match=r"takes 1 positional argument: x$"):
        xarr.jit(lambda x: x, static_argnums=1)
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
    with pytest.raises(InputError, match=r"the result\[1\]\['name'\] is not an array"):
        xarr.jit(lambda x: (x, {"name": "y"}))(1.0)
    with pytest.raises(InputError, match="the result is the tuple value"):
        xarr.jit(lambda x: lax.tuple(x, x))(1.0)


def test_two_backends_are_refused() -> None:
    x = xarr.ones(2)
    with pytest.raises(BackendError, match="operands live on two backends"):
        xarr.jit(lambda x, y: x + y)(x.to("numpy"), x.to("reference"))


MAKERS: dict[str, Callable[[], xarr.Array]] = {
    "zeros": lambda: xarr.zeros(3),
    "full": lambda: xarr.full(3, 2.0),
    "arange": lambda: xarr.arange(3.0),
    "linspace": lambda: xarr.linspace(0.0, 1.0, 3),
    "asarray of a list": lambda: xarr.asarray([1.0, 2.0, 3.0]),
    "asarray of an array": lambda: xarr.asarray(np.arange(3.0)),
    "eye": lambda: xarr.eye(3)[0],
    "tri": lambda: xarr.tri(3)[0],
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_a_traced_function_makes_lives_where_its_arguments_do(name: str) -> None:
    make = MAKERS[name]
    other = next(each for each in ("reference", "numpy") if each != xarr.ones(1).backend)
    x = xarr.asarray([1.0, 2.0, 3.0], device=other)
    wanted = np.asarray(x) + np.asarray(make())

    def loop(x: xarr.Array) -> xarr.Array:
        return lax.fori_loop(0, 1, lambda i, carried: carried + make(), x)

    jitted = xarr.jit(lambda x: x + make())
    for result in (jitted(x), xarr.jit(lambda x: (make(), x + make()))(x)[1], loop(x), xarr.jit(loop)(x)):
        assert result.backend == other
        assert_same(result, wanted)
    assert xarr.jit(lambda x: (make(), x)[0])(x).backend == other
    assert_same(xarr.lower(lambda x: x + make(), x).compile()(x), wanted)
    # Elsewhere it is recorded anew, and outside of the function nothing has changed.
    here = x.to(make().backend)
    assert jitted(here).backend == make().backend != other
    with pytest.raises(BackendError, match="two backends"):
        x + make()


def test_fix_of_a_mixture_in_a_traced_function_works() -> None:
    x, outer = xarr.ones(3, device="reference"), xarr.ones(3, device="numpy")
    with pytest.raises(
        BackendError, match=r'two backends, reference and numpy; move one, e\.g\. x\.to\("reference"\)'
    ):
        xarr.jit(lambda x: x + outer)(x)
    assert_same(xarr.jit(lambda x: x + outer.to("reference"))(x), np.full(3, 2.0))


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
    instead = ("lax.cond", "lax.while_loop", "xarr.where")
    for proposal in ("static_argnames", *(("lax.dynamic_slice",) if function is looks_slice else instead)):
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
    def fail_above_1(x: Any) -> Any:
        if x[0] > 1:
            raise ArithmeticError("too large")
        return x

    @xarr.jit
    def function(x: Any) -> Any:
        y = x + 1
        return lax.custom_call("test.broken", y, result_types=((1,), "float64")) * 2

    lax.register_custom_call("test.broken", fail_above_1)
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
    x = handles.wrap(data(xarr.zeros(10)._node.type, buffer, numpy.device()))
    del buffer
    step({"w": x})
    assert gone() is None
    assert x.dtype == np.float64


def test_only_arrays_can_be_donated() -> None:
    step = xarr.jit(lambda x, n: x * n, donate_argnums=(0, 1))
    host = np.ones(2)
    for result in twice(step, host, 3):
        assert_same(result, np.full(2, 3.0))


# --- arguments that are no arrays, memory ---------------------------------------------------------------


def test_none_is_a_container_without_leaves() -> None:
    jitted = xarr.jit(lambda x, y: y * 2 if x is None else x + y)
    for _ in range(2):
        assert [float(jitted(None, 2.0)), float(jitted(1.0, 2.0))] == [4.0, 3.0]
        assert float(jitted(None, 3.0)) == 6.0
    assert len(jitted.signatures) == 2
    assert xarr.jit(lambda y: (None, y))(2.0)[0] is None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, y: x + y, r"for \+: 'NoneType' and 'Array'"),
        (lambda x, y: y - x, "for -: 'Array' and 'NoneType'"),
        (lambda x, y: xarr.maximum(x, y), "None is not an array; wanted an array, a number or a list"),
    ],
    ids=["left", "right", "function"],
)
@pytest.mark.parametrize("y", [2.0, np.ones(3)], ids=["number", "array"])
def test_computing_with_none_names_no_class_that_nobody_knows(function: Any, message: str, y: Any) -> None:
    with pytest.raises(TypeError, match=message):
        xarr.jit(function)(None, y)


def test_what_stands_for_a_number_calls_itself_an_array() -> None:
    with pytest.raises(AttributeError, match="'Array' object has no attribute 'foo'"):
        xarr.jit(lambda x: x.foo)(2.0)


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize(
    "function",
    [xarr.sin, xarr.sum, xarr.lax.sin, lambda x: xarr.add(x, x)],
    ids=["sin", "sum", "lax.sin", "add"],
)
@pytest.mark.parametrize("items", [(1.0, 2.0), (np.ones(2), np.zeros(2))], ids=["numbers", "arrays"])
def test_a_list_that_jit_takes_apart(function: Any, kind: type[Any], items: tuple[Any, ...]) -> None:
    jitted = xarr.jit(lambda x: function(x))
    with pytest.raises(
        TracedValueError, match=f"wanted an array, got a {kind.__name__} of 2 that holds traced"
    ):
        jitted(kind(items))
    wanted = function(np.asarray(items))
    assert np.allclose(np.asarray(jitted(np.asarray(items))), np.asarray(wanted))
    assert np.allclose(
        np.asarray(xarr.jit(lambda x: function(xarr.asarray(x)))(kind(items))), np.asarray(wanted)
    )


def test_a_bound_method_shows_the_function_and_the_object() -> None:
    @dataclass
    class Model:
        weight: Any

        @xarr.jit
        def scale(self, x: Any) -> Any:
            return self.weight * x

    assert repr(Model(2.0).scale) == "<jitted scale: 0 signatures, 0 compilations> of " + repr(Model(2.0))


def test_a_list_of_known_numbers_is_an_array_everywhere() -> None:
    assert np.allclose(np.asarray(xarr.jit(lambda: xarr.sin([1.0, 2.0]))()), np.sin([1.0, 2.0]))


class _Greedy:
    """A program that finds memory so many times."""

    text = ""

    def __init__(self, program: Program, times: int) -> None:
        self.program = program
        self.times = times

    def __call__(self, *arguments: Any) -> Any:
        self.times -= 1
        if self.times < 0:
            raise MemoryError("720000 bytes")
        return self.program(*arguments)


@pytest.mark.parametrize("times", [0, 1])
def test_a_result_for_which_there_is_no_memory_is_named(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = type(backends.default())
    own = owner.compile
    monkeypatch.setattr(owner, "compile", lambda self, graph: _Greedy(own(self, graph), times))
    x = np.arange(300.0)
    one, two = xarr.jit(lambda x: xarr.cos(x)), xarr.jit(lambda x: (xarr.cos(x), xarr.sin(x)))
    for _ in range(times):
        one(x), two(x)
    with pytest.raises(TooLargeError, match=r"(?s)result f64\[300\] of 2.4 kB.*Built at .*xarr\.cos\(x\)"):
        one(x)
    with pytest.raises(TooLargeError, match="out of memory: 720000 bytes"):
        two(x)


def test_errors_call_a_group_by_what_it_makes() -> None:
    pytest.importorskip("llvmlite")
    with xarr.config(fusion="compiled"):
        fused: Any = xarr.lower(lambda x: (xarr.cos(x) + 1, x * 2), "f32[100]").stage("fused")
    (group,) = {node for node in fused.nodes if isinstance(node.op, Fusion)}
    assert group.op.called == "add and mul"
    assert str(out_of_memory(MemoryError(), group)).startswith("add and mul: out of memory for the result")
