"""Operations that are defined in terms of others give the same values whole and taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compare import assert_same
from tests.support.completeness import classes_in
from tests.support.graphs import CASES, F32, S32, M, V, add, constant, graph, node, part, scalars, tensor
from tests.support.operations import own_operations
from xarr.backend import get
from xarr.compiler.pipeline import lower, make_program
from xarr.dtypes import COMPLEX, FLOAT
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr_numpy.backend import NumpyBackend

COMPOSITE = [op for op in own_operations() if op.decompose is not Op.decompose]
#: How far apart both forms may be, in units in the last place; all others agree to the bit.
APART = {"Logistic": 2, "Rsqrt": 1, "DotGeneral": 2, "DotGeneral, batched": 2}


class Without(NumpyBackend):
    """NumPy without some of its operations."""

    def __init__(self, *lacking: type[Op]) -> None:
        self.lacking = lacking

    def supports(self, op: type[Op]) -> bool:
        return op not in self.lacking and super().supports(op)


def cases_of(op: type[Op]) -> list[str]:
    return [name for name, case in CASES.items() if op in classes_in(case.graph)]


def is_composite(node: Node) -> bool:
    return node.op.decompose(*node.operands) is not None


@pytest.mark.usefixtures("unfused")
@pytest.mark.parametrize(("op", "name"), [(op, name) for op in COMPOSITE for name in cases_of(op)])
def test_both_forms_agree(op: type[Op], name: str) -> None:
    case, backend = CASES[name], get("numpy")
    parts = [result for result in case.graph.results if type(result.op) is not op or is_composite(result)]
    kept = Graph(case.graph.parameters, parts)
    assert op in classes_in(kept)
    lacking = Without(op)
    assert op not in classes_in(lower(kept, lacking))
    whole, apart = (
        make_program(kept, backend).program(*case.inputs),
        make_program(kept, lacking).program(*case.inputs),
    )
    for one, other in zip(whole, apart, strict=True):
        assert_same(np.asarray(other), np.asarray(one), ulp=APART.get(name, 0))


def test_these_are_composite() -> None:
    names = {op.__name__ for op in COMPOSITE}
    assert names >= {"Call", "Clamp", "DotGeneral", "Logistic", "Map", "OptimizationBarrier", "Rsqrt", "Sign"}
    assert [op.__name__ for op in COMPOSITE if not cases_of(op) and op.__module__ in CORE] == []


CORE = tuple(f"xarr.ir.ops.{name}" for name in ("binary", "composite", "control", "elementwise", "reduction"))
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -700.0, 700.0, 1e-30])


@pytest.mark.parametrize("dtype", sorted(FLOAT, key=str), ids=str)
@pytest.mark.parametrize("op", [ops.Clamp, ops.Logistic, ops.Rsqrt, ops.Sign], ids=lambda op: op.__name__)
def test_special_values(op: type[Op], dtype: np.dtype[Any]) -> None:
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
    operands = (x[::-1].copy(), x, np.roll(x, 1)) if op is ops.Clamp else (x,)
    program = graph(lambda *nodes: node(op(), *nodes), *[tensor(dtype, x.size)] * len(operands))
    (whole,) = make_program(program, get("reference")).program(*operands)
    (apart,) = make_program(program, Without(op)).program(*operands)
    assert_same(apart, whole, ulp={ops.Logistic: 2, ops.Rsqrt: 1}.get(op, 0))


@pytest.mark.parametrize("op", [ops.Rsqrt, ops.Sign], ids=lambda op: op.__name__)
def test_complex_forms_that_have_no_parts_are_refused(op: type[Op]) -> None:
    program = graph(lambda x: node(op(), x), tensor(np.complex64, 3))
    assert program.results[0].dtype in COMPLEX
    with pytest.raises(BackendError, match=f"has no {op.name} and it is not composite"):
        lower(program, Without(op))


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bool", "float16", "float32", "complex64"])
@pytest.mark.parametrize(
    ("shapes", "dimensions"),
    [
        (((2, 3), (3, 4)), ((), (), (1,), (0,))),
        (((3, 2, 4), (4, 5, 3)), ((0,), (2,), (2,), (0,))),
        (((2, 3, 4), (4, 3)), ((), (), (1, 2), (1, 0))),
        (((), ()), ((), (), (), ())),
        (((2, 0), (0, 3)), ((), (), (1,), (0,))),
        (((2,), (3,)), ((), (), (), ())),
    ],
    ids=str,
)
def test_products_of_any_rank(shapes: Any, dimensions: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-5, 5, shape).astype(dtype) for shape in shapes)
    op = ops.DotGeneral(*dimensions, np.dtype(dtype))
    program = graph(lambda a, b: node(op, a, b), tensor(dtype, *x.shape), tensor(dtype, *y.shape))
    (whole,) = make_program(program, get("reference")).program(x, y)
    (apart,) = make_program(program, Without(ops.DotGeneral)).program(x, y)
    assert_same(apart, whole)


@pytest.mark.usefixtures("unfused")
def test_results_of_calls_and_barriers_need_no_tuples() -> None:
    swap = graph(lambda x, y: (y, add(x, x)), V, V)

    def function(x: Node, y: Node) -> tuple[Node, ...]:
        both = node(ops.OptimizationBarrier(), x, y)
        called = node(ops.Call(swap), part(0, both), part(1, both))
        return part(0, called), part(1, called), part(0, node(ops.Tuple(), x, y))

    lacking = Without(ops.Call, ops.OptimizationBarrier, ops.Tuple, ops.GetTupleElement)
    program = graph(function, V, V)
    assert classes_in(lower(program, lacking)) == {ops.Add}
    x, y = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    for one, other in zip(make_program(program, lacking).program(x, y), (y, x + x, x), strict=True):
        assert_same(one, other)


def test_a_tuple_that_is_a_result_is_refused() -> None:
    program = graph(lambda x: node(ops.OptimizationBarrier(), x, x), V)
    with pytest.raises(BackendError, match=r"has no stablehlo\.tuple and it is not composite"):
        lower(program, Without(ops.OptimizationBarrier, ops.Tuple))


def test_a_map_with_a_loop_has_no_parts() -> None:
    cond = scalars(lambda x: node(ops.Compare("LT"), x, constant(9)), F32)
    loop = scalars(lambda x: node(ops.While(cond, scalars(lambda y: add(y, y), F32)), x), F32)
    program = graph(lambda x: node(ops.Map((0, 1), loop), x), M)
    with pytest.raises(BackendError, match=r"has no stablehlo\.map and it is not composite"):
        lower(program, Without(ops.Map))


def test_what_a_computation_calls_is_inlined_too() -> None:
    twice = scalars(lambda x: add(x, x), S32)
    body = scalars(lambda x: node(ops.Call(twice), x), S32)
    cond = scalars(lambda x: node(ops.Compare("LT"), x, constant(100, S32)), S32)
    program = graph(lambda x: node(ops.While(cond, body), x), tensor(S32))
    assert ops.Call not in classes_in(lower(program, Without(ops.Call)))
    assert make_program(program, Without(ops.Call)).program(np.array(3, S32))[0] == 192
