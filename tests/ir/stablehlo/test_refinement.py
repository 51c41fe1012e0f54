"""Modules whose sizes become known with the arguments: what jax.export makes of symbolic shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax as jlax

import xarr
from tests.compare import assert_same
from xarr import stablehlo
from xarr.errors import ParseError
from xarr.shapes import Shape

jax.config.update("jax_enable_x64", True)

Function = Callable[[Any], Any]


def _sum_of_rows(x: Any) -> Any:
    return jlax.fori_loop(0, x.shape[0], lambda i, total: total + x[i], jnp.zeros(4))


def _nested_loops(x: Any) -> Any:
    def row(i: Any, total: Any) -> Any:
        return jlax.fori_loop(0, x.shape[0], lambda j, t: t + x[i, 0] * x[j].sum(), total)

    return jlax.fori_loop(0, x.shape[0], row, 0.0) + jnp.ones(x.shape[0])


#: Name -> function of an array f64[b, 4] with b unknown and at least 2.
FUNCTIONS: dict[str, Function] = {
    "mean": lambda x: x.mean(0),
    "variance": lambda x: x.var(),
    "attention": lambda x: jax.nn.softmax(x @ x.T) @ x,
    "flatten": lambda x: x.reshape(-1),
    "reshape": lambda x: x.reshape(x.shape[0] * 2, -1),
    "concatenate": lambda x: jnp.concatenate([x, x + 1, jnp.zeros((x.shape[0], 1))], 1),
    "concatenate_rows": lambda x: jnp.concatenate([x, jnp.ones((3, 4)), x]),
    "pad": lambda x: jlax.pad(x, 0.0, ((-1, x.shape[0], 0), (0, 0, 1))),
    "iota": lambda x: jnp.arange(x.shape[0])[:, None] * x,
    "slice": lambda x: x[1:, ::2],
    "slice_half": lambda x: x[: x.shape[0] // 2],
    "reverse": lambda x: x[::-1],
    "gather": lambda x: x[jnp.array([0, 1, 0])],
    "gather_columns": lambda x: x[:, jnp.array([1, 0])],
    "gather_many": lambda x: jnp.take(x, jnp.arange(x.shape[0]) // 2, axis=0),
    "last": lambda x: x[-1],
    "dynamic_slice": lambda x: jlax.dynamic_slice(x, (1, 0), (x.shape[0] - 1, 2)),
    "dynamic_update_slice": lambda x: jlax.dynamic_update_slice(x, jnp.ones((2, 4)), (x.shape[0] - 2, 0)),
    "scatter": lambda x: x.at[jnp.arange(x.shape[0])].multiply(2.0),
    "sort": lambda x: jnp.sort(x, axis=0),
    "argmax": lambda x: jnp.argmax(x, axis=0),
    "where": lambda x: jnp.where(x > 0, x, 0),
    "running_sum": lambda x: jnp.cumsum(x, axis=0),
    "pooling": lambda x: jlax.reduce_window(x, -jnp.inf, jlax.max, (2, 2), (1, 1), "SAME"),
    "pooling_within": lambda x: jlax.reduce_window(x, 0.0, jlax.add, (2, 2), (1, 2), "VALID"),
    "repeat": lambda x: jnp.repeat(x, 2, axis=0),
    "loop": _sum_of_rows,
    "nested_loops": _nested_loops,
    "scan": lambda x: jlax.scan(lambda carry, row: (carry + row, carry * 2), jnp.zeros(4), x),
    "map": lambda x: jlax.map(lambda row: row.sum(), x),
    "cond": lambda x: jlax.cond(x.sum() > 0, lambda: x, lambda: -x),
    "top_k": lambda x: jlax.top_k(x.T, x.shape[0]),
    "size_arithmetic": lambda x: x.sum() * (x.shape[0] ** 2 % 5) + jnp.maximum(x.shape[0], 3),
    "random": lambda x: x + jax.random.uniform(jax.random.key(0), x.shape),
    "triangle": lambda x: jnp.tril(x) + jnp.eye(x.shape[0], 4),
    "roll": lambda x: jnp.roll(x, 1, axis=0),
    "outer": lambda x: jnp.matmul(x[:, :, None], x[:, None, :]),
}


def export_text(function: Function, shape: str = "b, 4", constraints: tuple[str, ...] = ("b >= 2",)) -> str:
    sizes = export.symbolic_shape(shape, constraints=constraints)
    text: str = export.export(jax.jit(function))(jax.ShapeDtypeStruct(sizes, jnp.float64)).mlir_module()
    return text


def check(function: Function, module: stablehlo.Module, *shapes: tuple[int, ...]) -> None:
    for shape in shapes:
        x = np.random.default_rng(0).standard_normal(shape)
        wanted = jax.tree.leaves(jax.jit(function)(x))
        for got, want in zip(stablehlo.run(module, x), wanted, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_jax_for_every_batch_size(name: str) -> None:
    check(FUNCTIONS[name], stablehlo.parse(export_text(FUNCTIONS[name])), (2, 4), (5, 4))


def test_two_unknown_sizes() -> None:
    def function(x: Any) -> Any:
        return jnp.einsum("ij,kj->ik", x, x).reshape(-1), x.T.reshape(-1), jnp.argsort(x.ravel())

    check(function, stablehlo.parse(export_text(function, "b, c", ())), (2, 4), (3, 5), (1, 1))


def test_gradient_of_a_network() -> None:
    weights = jnp.ones((4, 3))

    def loss(x: Any) -> Any:
        return jax.grad(lambda w: jnp.tanh(x @ w).mean())(weights)

    check(loss, stablehlo.parse(export_text(loss)), (2, 4), (7, 4))


def test_refine_takes_types_and_shapes() -> None:
    module = stablehlo.parse(export_text(FUNCTIONS["mean"]))
    graph = module.refine(["f64[5,4]"])
    assert [type.short() for type in graph.parameter_types] == ["f64[5,4]"]
    assert module.refine([Shape.parse("f64[5,4]")]) == graph
    assert module.refine(list(graph.parameter_types)) == graph


def test_assertions_about_sizes_are_checked() -> None:
    module = stablehlo.parse(export_text(FUNCTIONS["mean"]))
    with pytest.raises(ParseError, match=r"symbolic shape constraint b >= 2.*but found -1"):
        stablehlo.run(module, np.ones((1, 4)))
    with pytest.raises(ParseError, match="takes"):
        stablehlo.run(module, np.ones((2, 5)))


LOOP = """
func.func @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %r:2 = stablehlo.while(%i = %size, %y = %x) : tensor<i32>, tensor<?xf32>
  cond {{
    %c = stablehlo.compare GT, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %next = stablehlo.subtract %i, %one : tensor<i32>
    %shape = stablehlo.reshape {used} : (tensor<i32>) -> tensor<1xi32>
    %z = stablehlo.dynamic_reshape %y, %shape : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
    stablehlo.return %next, %z : tensor<i32>, tensor<?xf32>
  }}
  return %r#1 : tensor<?xf32>
}}
"""


def test_a_size_from_outside_is_known_in_a_loop() -> None:
    (result,) = stablehlo.run(LOOP.format(used="%size"), np.arange(3, dtype=np.float32), np.int32(1))
    assert_same(result, np.arange(3, dtype=np.float32))


@pytest.mark.parametrize("used", ["%i", "%n"])
def test_a_size_that_depends_on_values_is_refused(used: str) -> None:
    with pytest.raises(ParseError, match="a size depends on the values of arguments"):
        stablehlo.run(LOOP.format(used=used), np.arange(3, dtype=np.float32), np.int32(1))


def test_lazy_arrays_refine_too() -> None:
    module = stablehlo.parse(export_text(FUNCTIONS["flatten"]))
    (result,) = stablehlo.run(module, xarr.asarray(np.ones((3, 4))) * 2.0)
    assert_same(result, np.full(12, 2.0))


def test_dynamic_gather_takes_its_sizes_from_an_operand() -> None:
    text = """
    func.func @main(%x: tensor<4x3xf32>, %i: tensor<2xi32>) -> tensor<2x3xf32> {
      %sizes = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
      %r = "stablehlo.dynamic_gather"(%x, %i, %sizes) <{
        dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
          start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false
      }> : (tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x3xf32>
      return %r : tensor<2x3xf32>
    }"""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (result,) = stablehlo.run(text, x, np.array([3, 1], np.int32))
    assert_same(result, x[[3, 1]])
    with pytest.raises(ParseError, match="wanted sizes >= 0"):
        stablehlo.run(text.replace("[1, 3]", "[1, -3]"), x, np.array([3, 1], np.int32))
