"""What the classes of ops say of themselves, against what the ops compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.lax_values import FLOAT8, dtype_of, values
from tests.support.graphs import CASES, on_numpy
from tests.support.operations import own_operations
from xarr import lax
from xarr.compiler.functions import FUNCTIONS
from xarr.compiler.loop_ir import elements
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, float8_e8m0fnu
from xarr.ir import ops
from xarr.ir.op import FREE, Op

Host = np.ndarray[Any, Any]

#: The binary operations whose result can be an operand of theirs, and the type of elements to try each law with.
BINARY = [op for op in own_operations(ops.Binary) if op not in (ops.Compare, ops.Complex)]
#: Numbers whose sums and products are exact in all types.
EXACT = (0.0, 1.0, -2.0, 0.5, 3.0, -0.0)
LAWS = ("associative", "commutative", "idempotent")


def _try(op: Any, *operands: Host) -> Host:
    return np.asarray(getattr(lax, op.lax_name)(*map(xarr.array, operands)))


def _samples(op: Any) -> list[Host]:
    """Operands for laws, in each kind of type that the op accepts."""
    rows = (("bool", (False, True)), ("int8", (0, 1, 2, 3, -4, -128)), ("uint8", (0, 1, 2, 3, 255)))
    more = (("float32", EXACT), ("complex64", (*EXACT, 1j, 1 - 2j)))
    return [np.array(some, name) for name, some in (*rows, *more) if np.dtype(name) in op.accepts]


def _same(left: Host, right: Host) -> bool:
    """Whether the bits are equal, of complex numbers the numbers: products mix the signs of zeros."""
    if left.dtype in COMPLEX:
        return left.dtype == right.dtype and np.array_equal(left, right)
    try:
        assert_same(left, right)
    except AssertionError:
        return False
    return True


def _holds(op: Any, law: str, some: Host) -> bool:
    if law == "idempotent":
        return _same(_try(op, some, some), some)
    if law == "commutative":
        x, y = (axis.ravel() for axis in np.meshgrid(some, some))
        return _same(_try(op, x, y), _try(op, y, x))
    x, y, z = (axis.ravel() for axis in np.meshgrid(some, some, some))
    return _same(_try(op, _try(op, x, y), z), _try(op, x, _try(op, y, z)))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.lax_name)
def test_the_laws_of_an_op_are_those_that_it_declares(op: Any, law: str) -> None:
    assert all(_holds(op, law, some) for some in _samples(op)) == getattr(op, law)


@pytest.mark.parametrize(
    ("op", "law", "holds"),
    [(ops.Subtract, "associative", False), (ops.Add, "idempotent", False), (ops.Maximum, "idempotent", True)],
)
def test_the_check_of_laws_tells_what_holds(op: Any, law: str, holds: bool) -> None:
    assert all(_holds(op, law, some) for some in _samples(op)) == holds


TYPES = ("bool", "int8", "int64", "uint16", "float16", "float64", "complex128", *FLOAT8)
MONOIDS = [op for op in BINARY if op.associative and op.commutative]


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, dtype_of(name)) for op in MONOIDS for name in TYPES if dtype_of(name) in op.accepts],
    ids=lambda value: getattr(value, "lax_name", str(value)),
)
def test_an_identity_changes_no_number(op: Any, dtype: np.dtype[Any]) -> None:
    identity = op.identity(dtype)
    if identity is None:
        assert dtype == float8_e8m0fnu, "only this type has no zero"
        return
    numbers = _every_number(dtype)
    assert np.asarray(identity).dtype == dtype
    same = np.full_like(numbers, identity)
    assert _same(_try(op, numbers, same), numbers)
    assert _same(_try(op, same, numbers), numbers)


def _every_number(dtype: np.dtype[Any]) -> Host:
    if dtype in COMPLEX:  # products with NaN and infinity mix the parts
        return np.array([0, 1, 2j, -3j, 1e9 - 2j], dtype)
    return np.arange(256, dtype=np.uint8).view(dtype) if dtype in EXTENDED_FLOAT else values(dtype)


def test_ops_without_an_identity_say_so() -> None:
    assert ops.Subtract.identity(np.dtype(np.int8)) is None


@pytest.mark.parametrize("op", own_operations(), ids=lambda op: op.__name__)
def test_what_moves_costs_nothing_and_can_be_copied_into_loops(op: Any) -> None:
    leaves = (ops.GetTupleElement,)  # which the fusing stage follows itself
    assert op.moves == (op.cost == FREE and not op.is_leaf)
    assert not op.is_view or op.moves
    assert not op.moves or op in leaves or op in elements.ROWS


#: Without broadcasts: the result of a program is no array that repeats elements in memory.
VIEWS = {
    name: case
    for name, case in CASES.items()
    if case.graph.results[0].op.is_view and len(case.graph.nodes) == 1 and "Broadcast" not in name
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_the_memory_of_its_operand(name: str, unfused: None) -> None:
    case = VIEWS[name]
    operand = np.ascontiguousarray(case.inputs[0])
    operand.flags.writeable = False
    (result,) = on_numpy(case.graph, operand)
    assert np.shares_memory(operand, result) or not result.size


def test_every_kind_of_view_was_tried() -> None:
    tried = {type(case.graph.results[0].op) for case in VIEWS.values()}
    assert tried == {op for op in own_operations() if op.is_view} - {ops.BroadcastInDim}


@pytest.mark.parametrize("op", own_operations(ops.Elementwise), ids=lambda op: op.__name__)
def test_what_has_a_formula_is_composite_and_is_in_loops(op: Any) -> None:
    assert op.has_formula == (op.name in FUNCTIONS and op.decompose is not Op.decompose)


SINGLE = {name: case for name, case in CASES.items() if len(case.graph.nodes) == 1}


@pytest.mark.parametrize(
    "name", [name for name, case in SINGLE.items() if case.graph.results[0].op.is_elementwise]
)
def test_an_element_of_an_elementwise_op_depends_on_its_index_alone(name: str, unfused: None) -> None:
    case = SINGLE[name]
    flipped = [np.ascontiguousarray(np.flip(operand)) for operand in case.inputs]
    (result,), (of_flipped,) = on_numpy(case.graph, *case.inputs), on_numpy(case.graph, *flipped)
    assert_same(of_flipped, np.flip(result))


def test_every_irregular_elementwise_op_was_tried() -> None:
    irregular = {op for op in own_operations() if op.is_elementwise and not issubclass(op, ops.Elementwise)}
    assert irregular == {ops.Select, ops.Clamp, ops.Convert, ops.ReducePrecision}
    assert irregular <= {type(case.graph.results[0].op) for case in SINGLE.values()}


def test_graphs_that_are_run_take_whole_values() -> None:
    whole, scalar = set(), set()
    for node in (node for case in CASES.values() for graph in case.graph.walk() for node in graph.nodes):
        shapes = [each.tensor_type.shape for graph in node.op.graphs for each in graph.parameters]
        (whole if any(shapes) else scalar).add(type(node.op) if shapes else None)
    assert {op for op in own_operations() if op.runs_graphs} == whole - {None}
    assert not any(op.runs_graphs for op in scalar - whole if op)


def test_users_call_an_op_by_its_mnemonic_unless_its_class_says_another_word() -> None:
    class Plain(Op):
        name = "dialect.some_word"

    class Other(Op):
        name = "dialect.some_word"
        lax_name = "another"

    class Inherited(Other):
        is_view = True

    assert [each.lax_name for each in (Plain, Other, Inherited)] == ["some_word", "another", "another"]
    assert (ops.Select.lax_name, ops.Multiply.lax_name) == ("select", "mul")
