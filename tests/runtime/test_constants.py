"""Constants that have their values at once, and recipes of which nodes are made when they are asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.calls.operands import watching
from xarr.errors import PartUpdateWarning
from xarr.runtime import evaluation, live_values, small_ops

pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy", "eager")]


@pytest.fixture
def eager() -> Iterator[None]:
    """Settings under which values are computed at once, whatever the run is about."""
    with xarr.config(fusion="auto", small_arrays="eager", broadcasting="numpy"):
        yield


def repeat(make: Callable[[], Any]) -> Any:
    """Call `make` until its calls are remembered, and give what it gives then."""
    for _ in range(5):
        result = make()
    return result


CONSTANTS: Final[dict[str, Callable[[], xarr.Array]]] = {
    "zeros": lambda: xarr.zeros((2, 3)),
    "range": lambda: xarr.arange(2, 8),
    "sum": lambda: xarr.arange(6) * 2.5 - xarr.ones(6),
    "reflected": lambda: 3 - xarr.arange(4),
    "comparison": lambda: xarr.arange(4) > 1,
    "broadcast": lambda: xarr.arange(3)[:, None] + xarr.arange(4),
    "part": lambda: xarr.arange(9)[2:7:2],
    "other shape": lambda: (xarr.arange(6) * 1.5).reshape(-1, 2),
    "other order": lambda: xarr.arange(6).reshape(2, 3).transpose(1, 0) * 2,
    "in reverse": lambda: xarr.arange(6).reshape(2, 3).T,
    "elements": lambda: xarr.arange(9)[[1, 1, 0]],
    "function": lambda: xarr.exp(xarr.arange(3) * 1.0),
    "of two": lambda: xarr.maximum(xarr.arange(5), 2),
    "reduction": lambda: xarr.sum(xarr.arange(6.0) * 1.5, axis=0),
    "choice": lambda: xarr.where(xarr.arange(4) > 1, xarr.arange(4), 0),
    "quotient": lambda: -2j * xarr.arange(4) / 3,
    "power": lambda: (xarr.arange(4) * 0.5) ** 3,
    "joined": lambda: xarr.concatenate([xarr.arange(2), xarr.zeros(2, dtype=int)]),
    "stacked": lambda: xarr.stack((xarr.arange(2.0), xarr.ones(2)), axis=1),
    "long": lambda: functools.reduce(lambda x, _: x * 0.5 + 1, range(12), xarr.ones(3)),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_have_the_values_and_nodes_of_recorded_ones(name: str) -> None:
    make = CONSTANTS[name]
    with xarr.config(small_arrays="lazy"):
        recorded = make()
        graph = str(xarr.jit(lambda: make() + 0).lower().stage("traced"))
        wanted = np.asarray(recorded)
    constant = repeat(make)
    if name != "long":
        assert not constant.is_evaluated
        assert constant._node.value is None and constant._node.device is recorded._node.device
    assert constant.dtype == wanted.dtype and constant.shape == wanted.shape
    assert str(xarr.jit(lambda: make() + 0).lower().stage("traced")) == graph
    outer = repeat(make)
    inside = xarr.jit(lambda x: x + outer)(xarr.zeros((), wanted.dtype if wanted.dtype != bool else int))
    np.testing.assert_allclose(np.asarray(inside), wanted, rtol=1e-12)  # by compiled loops
    assert_same(np.asarray(constant), wanted)
    assert constant.is_evaluated


def test_a_recipe_is_followed_under_the_settings_of_then_and_watched_by_nobody() -> None:
    constant = repeat(lambda: xarr.arange(3)[:, None] + xarr.arange(4) / 2)
    broadcasts: list[Any] = []
    with xarr.config(broadcasting="explicit", default_dtype="float32"), watching(broadcasts.append):
        node = constant._node
    assert node.type.short() == "f64[3,4]" and not broadcasts
    assert "xarr.arange(3)[:, None] + xarr.arange(4) / 2" in node.source.text()


def test_what_is_joined_of_constants_does_not_change_with_the_list() -> None:
    parts = [xarr.arange(2), xarr.arange(3)]
    joined = repeat(lambda: xarr.concatenate(parts))
    assert joined._shown is None and not joined.is_evaluated
    parts[:] = [xarr.zeros(1)]
    assert joined._node.type.short() == "s64[5]" and joined.tolist() == [0, 1, 0, 1, 2]


def test_a_call_without_arrays_is_written_for_its_line() -> None:
    def ranges() -> list[xarr.Array]:
        return [xarr.arange(n) for n in (2, 3, True)]

    first, *others = [ranges() for _ in range(7)]
    assert [x.tolist() for x in first] == [[0, 1], [0, 1, 2], [0]]
    for other in others:
        assert [x.tolist() for x in other] == [x.tolist() for x in first]
    again = ranges()
    again[0][0] = 5
    assert again[0].tolist() == [5, 1] and ranges()[0].tolist() == [0, 1] == others[-1][0].tolist()
    with xarr.config(default_dtype="float32"):
        assert [xarr.arange(2.0).dtype for _ in range(6)][5] == np.float32
    assert {xarr.arange(2.0).dtype for _ in range(6)} == {np.dtype(np.float64)}
    lines = [xarr.arange(2)._node.source.line for _ in range(6)]
    assert {*lines} == {xarr.arange(2)._node.source.line - 1}


def test_a_number_alone_needs_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "key_of_few", lambda *_: pytest.fail("a program is made"))
    for value in (7, 2.5, True, 1j, float("nan")):
        number = xarr.asarray(value)
        assert not number.is_evaluated
        assert_same(np.asarray(number), np.asarray(value))
        assert number.is_evaluated and number._node.op.name == "stablehlo.constant"
    assert int(xarr.asarray(255, dtype="uint8")) == 255
    one = xarr.asarray(1.0).evaluate()
    one += 1
    assert float(one) == 2.0 and float(xarr.asarray(1.0)) == 1.0


def test_a_constant_is_another_value_once_it_was_written_to() -> None:
    x = repeat(lambda: xarr.zeros(3))
    y, z = x.copy(), x + 1
    x[1] = 5.0
    y += 2
    assert (x.tolist(), y.tolist(), z.tolist()) == ([0.0, 5.0, 0.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    assert (z + x).tolist() == [1.0, 6.0, 1.0]
    u = repeat(lambda: xarr.zeros(3))
    node = u._node
    u._node = xarr.ones(3)._node
    assert (u + 1).tolist() == [2.0, 2.0, 2.0] and node.type is u._node.type
    v = repeat(lambda: xarr.arange(4))
    float(v.sum())
    v[0] = 7
    assert v.tolist() == [7, 1, 2, 3] and xarr.arange(4).tolist() == [0, 1, 2, 3]


def test_an_element_that_is_converted_has_no_dimensions() -> None:
    x = xarr.asarray([1.5, 0.0]).evaluate() * 1
    assert x[..., 0].astype(bool).shape == () and x.astype("float32").dtype == np.float32
    assert xarr.asarray(np.arange(6.0).reshape(2, 3)).evaluate().T.astype(int).tolist() == [
        [0, 3],
        [1, 4],
        [2, 5],
    ]


@pytest.mark.usefixtures("on_numpy")
def test_constants_lie_on_the_backend_of_the_block_that_makes_them() -> None:
    xarr.set_backend("reference")
    with xarr.use_backend("numpy"):
        for _ in range(6):  # the last ones are remembered
            assert (xarr.arange(3) + 1).backend == xarr.arange(3)[1:].backend == "numpy"
            assert xarr.flip(xarr.arange(4)).backend == "numpy"


@pytest.mark.parametrize("is_list", [True, False])
def test_a_selection_of_constants_is_that_of_the_call_whatever_its_index_becomes(is_list: bool) -> None:
    x = xarr.zeros((3, 4), dtype="int64") + xarr.arange(4)
    numbers, stop = [0, 1], xarr.arange(4)[3] * 1
    part = x[xarr.arange(2), numbers if is_list else slice(0, stop)]
    numbers[:] = [3, 2]
    stop[()] = 1
    wanted = [0, 1] if is_list else [[0, 1, 2]] * 2
    assert part.tolist() == xarr.jit(lambda n: n + part)(xarr.asarray(0)).tolist() == wanted


def test_what_a_list_selects_of_constants_has_no_value_before_it_is_wanted_where_it_is_large() -> None:
    few, many = (xarr.arange(4) * 1)[[1] * 20], (xarr.arange(4) * 1)[[1] * 200_000]
    assert few._value is not None and many._value is None
    assert int(many.sum()) == 200_000


def test_nothing_is_recorded_for_an_index_of_constants_alone() -> None:
    x = xarr.asarray(np.arange(12.0).reshape(3, 4))
    rows, row = xarr.arange(3) - 1, xarr.asarray(3) - 1
    np.testing.assert_array_equal(x[rows, rows + 1], [8, 1, 6])
    assert x[row, row].is_evaluated
    x[rows, row] = 0.0
    np.testing.assert_array_equal(x[:, 2], [0, 0, 0])
    assert rows._shown is None
    assert row._shown is None


def test_other_shapes_and_orders_of_constants_are_made_without_a_node() -> None:
    x = xarr.arange(6) * 0.5
    parts = [x.reshape(2, 3), x.reshape((3, -1)), x.reshape(2, 3).T, x.reshape(1, 2, 3).transpose(2, 0, 1)]
    assert x._shown is None and all(part._shown is None for part in parts)
    with pytest.warns(PartUpdateWarning):
        parts[0][0, 0] = 7.0
    assert x.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]


def test_what_is_known_of_a_constant_is_not_computed_again_for_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = xarr.asarray(np.ones(6)).evaluate()
    constant = repeat(lambda: xarr.exp(xarr.arange(6) * 0.5))
    node = constant._node
    assert node.value is None and node in live_values.constants
    monkeypatch.setattr(small_ops, "_keep", lambda *args: pytest.fail("the value is there"))
    table = small_ops.small_ops()
    assert table is not None
    got = small_ops.pending_value(table, node, x._node.device)
    np.testing.assert_array_equal(got, np.exp(np.arange(6) * 0.5))
