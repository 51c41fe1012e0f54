"""The backend of docs/backend_in_an_afternoon.md does what the page says, and the page shows that file."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from tests.compare import assert_same
from tests.programs import run
from tests.support.checkout import CHECKOUT
from xarr import backend as backends, lax
from xarr.dtypes import FLOAT
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import operation
from xarr.runtime.handles import wrap

SOURCE = CHECKOUT / "tests" / "toy_backend.py"
PAGE = CHECKOUT / "docs" / "backend_in_an_afternoon.md"


def code_blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def test_the_page_shows_the_very_file() -> None:
    assert code_blocks(PAGE.read_text()) == [SOURCE.read_text()]


def test_a_page_that_shows_another_file_would_be_noticed() -> None:
    assert code_blocks("text\n```python\nx = 1\n```\n```toml\ny = 2\n```\n") == ["x = 1\n"]
    altered = PAGE.read_text().replace("operator.add", "operator.sub")
    assert code_blocks(altered) != [SOURCE.read_text()]


def test_it_is_an_afternoon_s_work() -> None:
    assert len(SOURCE.read_text().splitlines()) < 150


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Whatever is loaded under the name `toy` is forgotten afterwards."""
    yield
    backends._loaded.pop("toy", None)
    sys.modules.pop("xarr_toy", None)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: None) -> backends.AbstractBackend:
    """The toy, found as the page says: a module `xarr_toy` on the path."""
    shutil.copy(SOURCE, tmp_path / "xarr_toy.py")
    monkeypatch.syspath_prepend(tmp_path)
    return backends.get("toy")


def test_it_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch, forgotten: None) -> None:
    entry = metadata.EntryPoint("toy", "tests.toy_backend:Backend", backends.ENTRY_POINTS)
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda group, name="toy": [entry] if (group, name) == (backends.ENTRY_POINTS, "toy") else [],
    )
    assert backends.get("toy").name == "toy"
    assert "toy" in backends.available()


def test_without_the_module_there_is_no_such_backend() -> None:
    with pytest.raises(BackendError, match=r"no backend called 'toy'.*available: .*numpy"):
        backends.get("toy")


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3, 2), (2, 0)])
def test_its_arithmetic_is_that_of_the_reference(
    toy: backends.AbstractBackend, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, *shape))
    x.reshape(-1)[1:3] = (np.nan, -0.0) if x.size > 2 else ()
    for op in (ops.Add(), ops.Subtract(), ops.Multiply(), ops.Maximum(), ops.Minimum()):
        assert_same(run(op, x, y, backend="toy"), run(op, x, y))
    assert_same(run(ops.Negate(), x, backend="toy"), -x)
    assert_same(run(ops.Reshape((x.size, 1)), x, backend="toy"), x.reshape(-1, 1))
    repeat = ops.BroadcastInDim((3, *shape), tuple(range(1, x.ndim + 1)))
    assert_same(run(repeat, x, backend="toy"), run(repeat, x))


def test_it_is_one_flag_away(toy: backends.AbstractBackend) -> None:
    with backends.use_backend("toy"):
        column, row = np.full((2, 3), [[1.0], [2.0]]), np.full((2, 3), [10.0, 20.0, 30.0])
        result = lax.sub(lax.mul(column, row), 1.0)
        assert_same(result, np.array([[9.0, 19, 29], [19, 39, 59]]))


def test_an_operation_it_lacks_is_refused_by_name_and_source_line(toy: backends.AbstractBackend) -> None:
    with backends.use_backend("toy"):
        x = lax.sin(np.array([1.0]))
        with pytest.raises(
            BackendError, match=r"'toy' has no stablehlo\.sine and it is not composite"
        ) as caught:
            np.asarray(x)
    assert "test_toy_backend.py" in str(caught.value)


def test_an_element_type_it_lacks_is_refused(toy: backends.AbstractBackend) -> None:
    with pytest.raises(BackendError, match=r"'toy' cannot hold f32\[2\]: wanted float64"):
        toy.from_host(np.ones(2, np.float32))


@operation
class SumOfSquares(ops.Binary):
    """x * x + y * y: an operation that no backend here runs whole."""

    name = "test.sum_of_squares"
    lax_name = "sum_of_squares"
    accepts = FLOAT

    def decompose(self, *operands: Node) -> Node:
        squares = [Node(ops.Multiply(), (operand, operand)) for operand in operands]
        return Node(ops.Add(), tuple(squares))


@operation
class NormOfPair(ops.Binary):
    """The square root of that: composite of an operation that the toy lacks."""

    name = "test.norm_of_pair"
    lax_name = "norm_of_pair"
    accepts = FLOAT

    def decompose(self, *operands: Node) -> Node:
        return Node(ops.Sqrt(), (Node(SumOfSquares(), operands),))


def test_composite_operations_are_decomposed_for_it(toy: backends.AbstractBackend) -> None:
    with backends.use_backend("toy"):
        x, y = lax.full((2,), 3.0), lax.full((2,), 4.0)
        assert_same(wrap(Node(SumOfSquares(), (x._node, y._node))), np.array([25.0, 25.0]))
        with pytest.raises(BackendError, match=r"backend 'toy' has no stablehlo\.sqrt"):
            np.asarray(wrap(Node(NormOfPair(), (x._node, y._node))))
    assert_same(run(NormOfPair(), np.float64(3), np.float64(4)), np.float64(5))


def test_the_library_s_composite_operations_run_on_it(toy: backends.AbstractBackend) -> None:
    x = np.array([-2.0, np.nan, 0.5, 7.0])
    with backends.use_backend("toy"):
        assert_same(lax.clamp(-1.0, x, 1.0), np.array([-1.0, np.nan, 0.5, 1.0]))
        assert_same(lax.call(lambda a: lax.mul(a, a), x), x * x)
        assert_same(lax.map_elements(lambda a: lax.add(a, 1.0), x), x + 1)
        assert_same(lax.optimization_barrier(lax.add(x, 1.0)), x + 1)


def test_its_text_lists_what_runs(toy: backends.AbstractBackend) -> None:
    (x,) = lax.neg(lax.full((2,), 1.0))._node.operands
    graph = Graph([], [Node(ops.Negate(), (x,))])
    assert toy.compile(graph).text == (
        "stablehlo.constant -> tensor<f64>\nstablehlo.broadcast_in_dim -> tensor<2xf64>\n"
        "stablehlo.negate -> tensor<2xf64>\n"
    )
