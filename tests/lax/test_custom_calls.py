"""Calls of registered functions: what they get, what they must return, how they print and are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.graphs import constant, graph, node, tensor
from tests.xla import parse, squeeze_spaces
from xarr import lax, stablehlo
from xarr.errors import BackendError, EvaluationError, InputError, ParseError, ShapeError
from xarr.ir import ops

NAME = "test.scale-and-count"


@pytest.fixture
def calls() -> Iterator[list[Any]]:
    """Registers a function and gives what it was called with."""
    seen: list[Any] = []

    def scale(x: Any, **attributes: Any) -> Any:
        seen.append((x, attributes))
        return x * attributes.get("factor", 2), np.int64(x.size)

    lax.register_custom_call(NAME, scale)
    yield seen
    lax.unregister_custom_call(NAME)


TYPES = (((2, 3), np.float32), ((), np.int64))


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_calls_the_registered_function(calls: list[Any], backend: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with xarr.use_backend(backend):
        scaled, count = lax.custom_call(
            NAME, xarr.asarray(x), result_types=TYPES, attributes={"factor": 3, "on": True, "name": "n"}
        )
        assert not calls, "a call runs when its result is looked at"
        assert_same(scaled, x * 3)
        assert_same(count, np.int64(6))
    ((operand, attributes),) = calls
    assert attributes == {"factor": 3, "on": True, "name": "n"}
    assert type(attributes["on"]) is bool
    assert not operand.flags.writeable


def test_results_have_the_structure_that_was_declared(calls: list[Any]) -> None:
    x = xarr.ones((2, 3), dtype="float32")
    results = lax.custom_call(NAME, x, result_types={"scaled": x, "size": ((), "int64")})
    assert sorted(results) == ["scaled", "size"]
    assert_same(results["size"], np.int64(6))


def test_results_are_copies() -> None:
    kept = np.zeros(2)
    lax.register_custom_call("test.kept", lambda: kept)
    try:
        result = lax.custom_call("test.kept", result_types=((2,), np.float64))
        assert_same(result, np.zeros(2))
        kept[:] = 1
        assert_same(result, np.zeros(2))
    finally:
        lax.unregister_custom_call("test.kept")


def test_equal_calls_merge_only_without_side_effects(calls: list[Any]) -> None:
    x = xarr.ones((2, 3), dtype="float32")

    def twice(effect: bool) -> int:
        calls.clear()
        pair = [lax.custom_call(NAME, x, result_types=TYPES, has_side_effect=effect)[1] for _ in range(2)]
        assert int(pair[0] + pair[1]) == 12
        return len(calls)

    assert twice(False) == 1
    assert twice(True) == 2


def test_an_attribute_1_is_not_true(calls: list[Any]) -> None:
    whole, flag = (ops.CustomCall("f", (), (("a", value),)) for value in (1, True))
    assert whole != flag


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            np.zeros(3),
            r"\[R2\]: result 0 of 'test.bad' was declared f64\[2\], the function returned float64\[3\]",
        ),
        (np.zeros(2, np.float32), r"\[R2\].*float32\[2\]"),
        ((np.zeros(2), np.zeros(2)), r"\[R1\]: 'test.bad' declared 1 results and returned 2"),
        (None, r"\[R1\].*returned 0"),
    ],
    ids=["shape", "dtype", "too many", "none"],
)
@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_function_must_keep_its_promise(result: Any, message: str, backend: str) -> None:
    lax.register_custom_call("test.bad", lambda: result)
    try:
        with xarr.use_backend(backend), pytest.raises(EvaluationError, match=message):
            np.asarray(lax.custom_call("test.bad", result_types=((2,), np.float64)))
    finally:
        lax.unregister_custom_call("test.bad")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: lax.custom_call("nobody", result_types=((), "int8")),
            "no function is registered as 'nobody'",
        ),
        (lambda: lax.custom_call(NAME, result_types=3), r"wanted a pair \(shape, dtype\)"),
        (lambda: lax.custom_call(NAME, result_types=((-1,), "int8")), "sizes >= 0"),
        (lambda: lax.custom_call(NAME, result_types=((), "int8"), attributes={"a": [1]}), "attribute 'a'"),
        (lambda: lax.custom_call(NAME, result_types=((), "int8"), attributes={"a b": 1}), "identifiers"),
        (lambda: lax.custom_call(NAME, result_types=((), "int8"), attributes={"a": 2**63}), "int64"),
        (lambda: lax.register_custom_call(NAME, 3), "wanted a function"),  # type: ignore[arg-type]
        (lambda: lax.register_custom_call("", print), "wanted a name"),
        (lambda: lax.unregister_custom_call("nobody"), "no function is registered"),
    ],
    ids=["unknown", "type", "size", "list", "name", "large", "function", "no name", "unregister"],
)
def test_refuses_what_cannot_be_called(calls: list[Any], call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_custom_call_c0_operands_are_arrays(calls: list[Any]) -> None:
    pair = node(ops.Tuple(), constant(1), constant(2))
    with pytest.raises(ShapeError, match=r"custom_call \[C0\]: wanted arrays, got \(f32\[\], f32\[\]\)"):
        node(ops.CustomCall(NAME, (tensor(np.float32),)), pair)


def test_refuses_a_call_in_a_combiner(calls: list[Any]) -> None:
    def combine(a: Any, b: Any) -> Any:
        return lax.custom_call(NAME, a, result_types=[((), "float64")])[0] + b

    with pytest.raises(BackendError, match="cannot call"):
        np.asarray(lax.reduce(xarr.ones(3), 0.0, combine, (0,)))


def test_prints_text_that_mlir_reads_and_reads_it_back(calls: list[Any]) -> None:
    items = (("a", 1), ("b", True), ("c", 1e-5), ("d", 'x"y'), ("e", float("inf")), ("f", -0.0))
    op = ops.CustomCall(NAME, (tensor(np.float32, 2, 3), tensor(np.int64)), items, True)
    made = graph(
        lambda x: tuple(
            node(ops.GetTupleElement(index), call) for call in (node(op, x),) for index in range(2)
        ),
        tensor(np.float32, 2, 3),
    )
    text = made.to_text()
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(text)
    read = stablehlo.parse(text).main
    assert read == made
    assert squeeze_spaces(read.to_text()) == squeeze_spaces(text)


def test_a_module_with_an_unknown_call_says_how_to_make_it_known() -> None:
    text = graph(lambda: node(ops.CustomCall("nobody", (tensor(np.float32),)))).to_text()
    with pytest.raises(ParseError, match=r"@nobody \(lax.register_custom_call\('nobody', function\)"):
        stablehlo.parse(text)


def test_make_explicit_spells_a_call(calls: list[Any]) -> None:
    def program(x: Any) -> Any:
        return lax.custom_call(NAME, x, result_types=TYPES, attributes={"factor": 3})[0]

    x = xarr.ones((2, 3), dtype="float32")
    explicit = xarr.make_explicit(program, x)
    assert f"lax.custom_call({NAME!r}, x, result_types=" in str(explicit)
    assert_same(explicit(x), np.full((2, 3), 3, np.float32))


def _in_a_loop(x: xarr.Array) -> Any:
    return lax.fori_loop(0, 3, lambda _, x: _tell(x) * 2 + 1, x)


def _in_a_branch(x: xarr.Array) -> Any:
    return lax.cond(x[0] > 0, lambda x: _tell(x) + 1, lambda x: x, x)


def _tell(x: xarr.Array) -> xarr.Array:
    lax.custom_call(NAME, x, result_types=((0,), "float64"), has_side_effect=True)
    return x


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize(
    ("function", "count"), [(lambda x: _tell(x) + 1, 1), (_in_a_loop, 3), (_in_a_branch, 1)]
)
def test_effects_without_a_byte_of_results_are_not_left_out(
    function: Callable[[xarr.Array], Any], count: int, size: int, backend: str
) -> None:
    told: list[float] = []

    def keep(x: Any) -> Any:
        told.append(x[0])
        return np.empty(0)

    lax.register_custom_call(NAME, keep)
    try:
        with xarr.use_backend(backend):
            jitted = xarr.jit(function)
            for _ in range(2):
                assert_same(jitted(xarr.ones(size)), np.full(size, [2.0, 15.0][count == 3]))
    finally:
        lax.unregister_custom_call(NAME)
    assert told == [1.0, 3.0, 7.0][:count] * 2
