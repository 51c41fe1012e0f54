"""What is printed as StableHLO is read back as the same graph, also from MLIR's generic form."""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.ir.stablehlo.test_random import programs
from tests.support.graphs import CASES
from tests.support.stablehlo_graphs import GRAPHS, graphs, tensor
from tests.xla import context, parse as mlir_parse
from xarr import stablehlo
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter


@pytest.mark.parametrize("name", GRAPHS)
def test_reads_back_what_is_printed(name: str) -> None:
    text = GRAPHS[name].to_text()
    assert stablehlo.parse(text).main == GRAPHS[name]
    assert stablehlo.parse(text).main.to_text() == text


@pytest.mark.parametrize("name", GRAPHS)
def test_generic_form_means_the_same(name: str) -> None:
    with context():
        generic = mlir_parse(GRAPHS[name].to_text()).operation.get_asm(print_generic_op_form=True)
    assert '"func.return"(' in generic
    assert stablehlo.parse(generic).main == GRAPHS[name]


def test_tuples() -> None:
    x = parameter(tensor(2))
    pair = Node(ops.Tuple(), (x, Node(ops.Tuple(), (x,))))
    inner = Node(ops.GetTupleElement(1), (pair,))
    graph = Graph((x,), [Node(ops.GetTupleElement(0), (inner,)), pair])
    module = stablehlo.parse(graph.to_text())
    assert module.main == graph
    results = stablehlo.run(module, np.float32([1, 2]))
    assert [np.asarray(result).tolist() for result in results] == [[1, 2]] * 3


@given(graphs())
@settings(max_examples=150)
def test_reads_back_random_graphs(graph: Graph) -> None:
    assert stablehlo.parse(graph.to_text()).main == graph


#: A use of all results at once.  MLIR has no such value, so the text makes a tuple of them.
WITH_A_TUPLE_IN_BETWEEN = "Tuple of results"


@pytest.mark.parametrize("name", CASES)
def test_reads_back_every_op(name: str) -> None:
    text = str(CASES[name].graph)
    graph = stablehlo.parse(text).main
    assert str(graph) == text
    assert (graph == CASES[name].graph) == (name != WITH_A_TUPLE_IN_BETWEEN)


@given(programs())
@settings(max_examples=100)
def test_reads_back_random_programs_of_every_dtype(program: Graph) -> None:
    assert stablehlo.parse(str(program)).main == program
