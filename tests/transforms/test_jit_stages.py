"""What `jit` gives ahead of a call, jitted methods of all kinds, and the options of JAX."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import tree
from xarr.errors import DTypeError, InputError, ShapeError


def function(pair: Any, number: Any) -> Any:
    return {"a": pair[0] @ pair[1] * number, "b": [pair[0].sum(axis=0) > 1, None]}


# --- eval_shape and ShapeDtypeStruct -----------------------------------------------------------------


def test_eval_shape_as_in_jax() -> None:
    def of(module: Any) -> Any:
        struct = module.ShapeDtypeStruct
        arguments = (struct((2, 3), "float32"), struct((3,), np.float32)), struct((), "float32")
        return module.eval_shape(function, *arguments)

    ours, theirs = of(xarr), of(jax)
    assert str(tree.structure(ours)) == "{'a': *, 'b': [*, None]}"
    pairs = zip(tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    for mine, other in pairs:
        assert (mine.shape, mine.dtype, mine.ndim, mine.size) == (
            other.shape,
            other.dtype,
            other.ndim,
            other.size,
        )


def test_eval_shape_takes_arrays_numbers_and_computes_nothing() -> None:
    large = xarr.eval_shape(lambda x, n: x @ x.T + n, xarr.ShapeDtypeStruct((10**6, 10**6), "int8"), 3)
    assert large == xarr.ShapeDtypeStruct((10**6, 10**6), "int8")
    assert xarr.eval_shape(lambda x: x, "f32[2,3]") == xarr.ShapeDtypeStruct((2, 3), "float32")
    assert xarr.jit(lambda x, k: x + k).eval_shape(xarr.ones(2), k=1).shape == (2,)
    assert xarr.eval_shape(lambda: 1.5).dtype == np.float64


def test_shape_dtype_struct() -> None:
    struct = xarr.ShapeDtypeStruct([np.int64(2), 3], float)  # type: ignore[arg-type]
    assert repr(struct) == "ShapeDtypeStruct(shape=(2, 3), dtype=float64)"
    assert len(struct) == 2 and hash(struct) == hash(xarr.ShapeDtypeStruct((2, 3), "float64"))
    with pytest.raises(ShapeError):
        xarr.ShapeDtypeStruct((-1,), "float32")
    with pytest.raises(DTypeError):
        xarr.ShapeDtypeStruct((1,), "object")
    with pytest.raises(InputError, match="no len"):
        len(xarr.ShapeDtypeStruct((), "int8"))


# --- trace, lower, compile ---------------------------------------------------------------------------


def test_trace_lower_compile() -> None:
    jitted = xarr.jit(function)
    pair, number = (xarr.ones((2, 3)), xarr.arange(3.0)), 2.0
    traced = jitted.trace(pair, number)
    assert traced.fun_name == "function"
    assert traced.out_info["a"] == xarr.ShapeDtypeStruct((2,), "float64")
    lowered = traced.lower()
    assert "stablehlo.dot_general" in lowered.as_text() == str(traced.graph)
    assert lowered.out_info == traced.out_info  # type: ignore[attr-defined]
    compiled = lowered.compile()
    assert jitted.compilations == 1
    for factor in (2.0, 3.0):
        assert_same(compiled(pair, factor)["a"], np.asarray(function(pair, factor)["a"]))
    assert compiled.as_text() == jitted.lower(pair, number).stage("program").text
    assert jitted.compilations == 1


def test_compiled_refuses_another_signature() -> None:
    compiled = xarr.jit(lambda x: x + 1).lower("f32[2]").compile()
    assert_same(compiled(xarr.ones(2, dtype="float32")), np.full(2, 2, np.float32))
    with pytest.raises(InputError, match=r"was compiled for \(x: f32\[2\]\): x was f32\[2\] and is f32\[3\]"):
        compiled(xarr.ones(3, dtype="float32"))
    with pytest.raises(InputError, match="the arguments were"):
        compiled()


def test_compile_of_what_xarr_lower_gives() -> None:
    outer = xarr.arange(3.0)
    compiled = xarr.lower(lambda x, y: (x + y * 2, x * outer), "f64[3]", 5).compile()
    first, second = compiled(xarr.ones(3))
    assert_same(first, np.full(3, 11.0))
    assert_same(second, np.arange(3.0))
    with pytest.raises(InputError, match=r"was compiled for \(f64\[3\]\), got \(f64\[4\]\)"):
        compiled(xarr.ones(4))
    assert_same(
        xarr.lower(lambda x: -x, "s32[2]").compile()(np.array([1, 2], np.int32)), np.array([-1, -2], np.int32)
    )


def test_lowered_functions_with_side_effects_run_them(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(x: xarr.Array) -> xarr.Array:
        xarr.debug.print("x = {}", x)
        return x + 1

    for lowered in (xarr.lower(loud, "f64[]"), xarr.jit(loud).lower(xarr.asarray(1.0))):
        assert not capsys.readouterr().out
        compiled = lowered.compile()
        compiled(xarr.asarray(1.0))
        compiled(xarr.asarray(2.5))
        assert capsys.readouterr().out == "x = 1.0\nx = 2.5\n"


def test_lowered_functions_are_pickled_as_their_graphs() -> None:
    lowered = xarr.jit(lambda x: x + 1).lower("f32[2]")
    again = pickle.loads(pickle.dumps(lowered))
    assert again.as_text() == lowered.as_text()


# --- methods -----------------------------------------------------------------------------------------


class Model:
    def __init__(self, weight: float) -> None:
        self.weight = xarr.asarray(weight)

    @xarr.jit
    def predict(self, x: xarr.Array) -> xarr.Array:
        return x * self.weight

    @partial(xarr.jit, static_argnums=0)
    def static_self(self, x: xarr.Array) -> xarr.Array:
        return x + self.weight

    @partial(xarr.jit, static_argnums=(0, 2), static_argnames="axis")
    def more(self, x: xarr.Array, size: int, /, *shape: int, axis: int = 0) -> xarr.Array:
        return xarr.broadcast_to(x, (size, *x.shape)).sum(axis=axis) * self.weight

    @partial(xarr.jit, static_argnames=("self", "n"))
    def by_name(self, x: xarr.Array, n: int) -> xarr.Array:
        return xarr.concat([x] * n) * self.weight

    @partial(xarr.jit, static_argnums=(0,), donate_argnums=(1,))
    def donating(self, x: xarr.Array) -> xarr.Array:
        return x * self.weight


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda model: model.predict(xarr.ones(2)), [2.0, 2.0]),
        (lambda model: model.static_self(xarr.ones(2)), [3.0, 3.0]),
        (lambda model: model.more(xarr.ones(2), 3), [6.0, 6.0]),
        (lambda model: model.more(xarr.ones(2), 3, axis=1), [4.0, 4.0, 4.0]),
        (lambda model: model.by_name(xarr.ones(1), 2), [2.0, 2.0]),
        (lambda model: model.by_name(x=xarr.ones(1), n=1), [2.0]),
        (lambda model: model.donating(xarr.ones(2)), [2.0, 2.0]),
    ],
    ids=["plain", "static_argnums", "several", "keyword", "names", "keywords", "donated"],
)
def test_methods(call: Callable[[Model], Any], expected: list[float]) -> None:
    assert_same(call(Model(2.0)), np.array(expected))  # of a temporary, which nothing else holds
    model = Model(2.0)
    for _ in range(3):
        assert_same(call(model), np.array(expected))
    model.weight = model.weight * 0
    assert float(call(model).sum()) == float(xarr.asarray(call(Model(0.0))).sum())


def test_a_method_keeps_its_object_alive() -> None:
    predict = Model(3.0).predict
    assert_same(predict(xarr.ones(2)), np.full(2, 3.0))
    assert predict.__self__.weight == 3.0  # type: ignore[attr-defined]
    assert "stablehlo.multiply" in Model(2.0).predict.lower("f64[2]").as_text()
    assert Model(2.0).predict.eval_shape("f64[2]").shape == (2,)


# --- options -----------------------------------------------------------------------------------------


def test_options_may_be_none() -> None:
    options: dict[str, Any] = dict.fromkeys(
        ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames")
    )
    assert_same(xarr.jit(lambda a: a + 1, **options)(xarr.ones(2)), np.full(2, 2.0))

    @xarr.jit(static_argnames={"n"}, inline=True, keep_unused=True)
    def repeat(x: xarr.Array, n: int) -> xarr.Array:
        return xarr.concat([x] * n)

    assert repeat(xarr.ones(1), n=3).shape == (3,)


def test_options_that_jax_has_too() -> None:
    wanted = set(inspect.signature(jax.jit).parameters) - {"fun"}
    absent = {"in_shardings", "out_shardings", "device", "backend", "compiler_options"}
    assert set(inspect.signature(xarr.jit).parameters) - {"f"} == wanted - absent
