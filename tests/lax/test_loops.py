"""Scans, counted loops and their progress bars, against jax.lax on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.programs import BACKENDS
from tests.support.graphs import on_numpy
from tests.xla import run_stablehlo, squeeze_spaces
from xarr import lax, stablehlo, tree
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir import ops

jax.config.update("jax_enable_x64", True)


def same(mine: Any, theirs: Any) -> None:
    got, wanted = tree.flatten(mine)[0], jax.tree.leaves(theirs)
    assert len(got) == len(wanted)
    for left, right in zip(got, wanted, strict=True):
        assert_same(left, np.asarray(right))


@dataclass
class Carry:
    total: Any
    steps: Any


jax.tree_util.register_dataclass(Carry, ["total", "steps"], [])

XS = {"a": np.arange(12, dtype=np.int64).reshape(4, 3), "b": (np.arange(4.0), [np.ones((4, 0), np.int8)])}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_scan_carries_and_stacks_pytrees(reverse: bool, backend: str) -> None:
    def step(carry: Any, x: Any) -> Any:
        total = carry.total + x["a"]
        return Carry(total, carry.steps + np.int64(1)), {"y": (total * 2, x["b"][1][0]), "none": None}

    init = Carry(np.zeros(3, np.int64), np.int64(7))
    with xarr.use_backend(backend):
        mine = lax.scan(step, init, XS, reverse=reverse)
    same(mine, jax.lax.scan(step, init, XS, reverse=reverse))
    assert isinstance(mine[0], Carry)
    assert mine[1]["none"] is None


def test_scan_without_xs_counts_by_length() -> None:
    def step(carry: Any, x: Any) -> Any:
        assert x is None
        return carry * np.float32(2), carry

    same(lax.scan(step, np.float32(1), None, 5), jax.lax.scan(step, np.float32(1), None, 5))


def test_scan_over_nothing_gives_empty_stacks() -> None:
    def step(carry: Any, x: Any) -> Any:
        return carry, x + carry

    xs = np.zeros((0, 2), np.int64)
    same(lax.scan(step, np.int64(3), xs), jax.lax.scan(step, np.int64(3), xs))


def test_python_scalars_in_a_carry_take_its_element_type() -> None:
    (last, ys) = lax.scan(lambda c, x: (c + 1, 2.5), 0, None, 3)
    assert_same(last, np.int64(3))
    assert_same(ys, np.full(3, 2.5))


def test_scan_sees_outer_arrays_and_nests() -> None:
    weights = np.arange(3.0)

    def run(module: Any, outer: Any) -> Any:
        def inner(carry: Any, x: Any) -> Any:
            return carry + x * outer.sum(), carry

        def step(carry: Any, row: Any) -> Any:
            return module.scan(inner, carry, row)

        return module.scan(step, np.float64(0), np.arange(6.0).reshape(2, 3))

    same(run(lax, xarr.asarray(weights)), run(jax.lax, weights))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 5),
    st.sampled_from(["int8", "uint32", "float32", "bool"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.booleans(),
)
def test_scan_of_any_shape(count: int, dtype: str, shape: list[int], reverse: bool) -> None:
    xs = np.random.default_rng(count).integers(0, 2, (count, *shape)).astype(dtype)

    def step(module: Any) -> Any:
        return lambda carry, x: (module.max(carry, x), module.min(carry, x))

    init = np.zeros(shape, dtype)
    same(
        lax.scan(step(lax), init, xs, reverse=reverse), jax.lax.scan(step(jax.lax), init, xs, reverse=reverse)
    )


@pytest.mark.usefixtures("on_numpy")
def test_stacks_are_updated_in_place() -> None:
    with xarr.config(fusion="off"):
        lowered = xarr.lower(lambda xs: lax.scan(lambda c, x: (c, x), 0, xs)[1], xarr.arange(4))
        text = str(lowered.stage("program"))
    assert "dynamic_update_in_place" in text
    assert "copy_array(" in text


def test_a_part_of_a_carry_is_read_before_it_is_updated_in_place() -> None:
    def body(i: Any, x: Any) -> Any:
        return lax.dynamic_update_slice(x, lax.slice(x, (0,), (2,)), (i,))

    start = xarr.asarray([1, 2, 3, 4, 5])
    lowered = xarr.lower(lambda x: lax.fori_loop(0, 3, body, x), start)
    text = str(lowered.stage("program"))
    assert "copy_array(" in text or "dynamic_update_in_place" not in text
    wanted = jax.lax.fori_loop(
        0, 3, lambda i, x: jax.lax.dynamic_update_slice(x, x[:2], (i,)), np.asarray(start)
    )
    same(lax.fori_loop(0, 3, body, start), wanted)


def test_in_place_updates_leave_the_callers_arrays_alone() -> None:
    start = xarr.asarray([0, 0, 0])
    one = xarr.asarray([1])
    result = lax.fori_loop(0, 3, lambda i, x: lax.dynamic_update_slice(x, one, (i,)), start)
    both = lax.fori_loop(0, 2, lambda i, c: (lax.dynamic_update_slice(c[0], one, (i,)), c[1]), (start, start))
    assert_same(result, np.array([1, 1, 1]))
    assert_same(both[0], np.array([1, 1, 0]))
    assert_same(both[1], np.array([0, 0, 0]))
    assert_same(start, np.array([0, 0, 0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((lambda c, x: (c, x), 0, 3), "wanted arrays with a leading axis for xs, xs is"),
        ((lambda c, x: (c, x), 0, {"a": np.ones(3), "b": np.ones(4)}), r"xs\['b'\] is f64\[4\]"),
        ((lambda c, x: (c, x), 0, np.ones(3), 4), "the length wanted is 4"),
        ((lambda c, x: (c * 1.5, x), 1, np.ones(3)), r"scan \[C2\].*start from numpy.float64\(1\)"),
        ((lambda c, x: ((c, c), x), 0, np.ones(3)), r"scan \[C2\]"),
        ((lambda c, x: (c[None], x), np.int64(0), np.ones(3)), r"scan \[C2\].*s64\[\].*s64\[1\]"),
    ],
    ids=["scalar xs", "lengths", "length", "dtype", "structure", "shape"],
)
def test_scan_refuses_shapes_that_do_not_fit(arguments: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        lax.scan(*arguments)


@pytest.mark.parametrize(
    ("body", "start", "message"),
    [
        (lambda i, v: v * 1.5, 1, r"the carried value is s64\[\] in init_val"),
        (lambda i, v: (v[0], v[1] * 1.5), (1, 1), r"the carried value at \[1\] is s64\[\] in init_val"),
        (
            lambda i, v: (v, v),
            1,
            r"argument: wanted \*, got \(\*, \*\); init_val is \*, the body gives \(\*, \*\)$",
        ),
    ],
    ids=["value", "item", "structure"],
)
def test_fori_loop_says_where_its_own_value_changes(body: Any, start: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=r"fori_loop \[C2\].*" + message):
        lax.fori_loop(0, 2, body, start)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((lambda c, x: c, 0, np.ones(3)), r"a pair \(carry, y\)"),
        ((lambda c, x: (c, x), 0), "wanted a length"),
        ((lambda c, x: (c, x), 0, None, -1), "length >= 0"),
        ((lambda c, x: (c, x), 0, None, 2.0), "wanted an int for length"),
        ((3, 0, np.ones(3)), "wanted a function for f"),
    ],
    ids=["no pair", "no length", "negative", "float", "no function"],
)
def test_scan_refuses_other_arguments(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        lax.scan(*arguments)


# --- progress --------------------------------------------------------------------------------------


def _show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, compute: Any) -> str:
    monkeypatch.setattr("xarr.base.progress._PATIENCE", 0.0)
    monkeypatch.setattr("xarr.base.progress._LOG", 0.0)
    np.asarray(compute())
    return capsys.readouterr().err


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_counted_loop_shows_how_far_it_is(
    backend: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with xarr.use_backend(backend):
        text = _show(
            capsys, monkeypatch, lambda: lax.fori_loop(2, 6, lambda i, x: x + i, 0, progress="adding")
        )
    assert "adding  25% |" in text
    assert "adding 100% |" in text
    assert "4/4" in text


@pytest.mark.usefixtures("on_numpy")
def test_a_scan_and_a_while_loop_show_their_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = _show(
        capsys, monkeypatch, lambda: lax.scan(lambda c, x: (c, x), 0, np.arange(3), progress=True)[1]
    )
    assert "scan 100% |" in scanned
    looped = _show(
        capsys,
        monkeypatch,
        lambda: lax.while_loop(lambda x: x < 100, lambda x: x * 3, 1, progress="tripling"),
    )
    assert "tripling 5 steps" in looped


def test_a_short_loop_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert int(lax.fori_loop(0, 2, lambda i, x: x + i, 0, progress=True)) == 1
    assert capsys.readouterr().err == ""


def test_progress_must_be_a_label() -> None:
    with pytest.raises(InputError, match="wanted True, False or a label for progress, in one line, got 3"):
        lax.fori_loop(0, 2, lambda i, x: x, 0, progress=3)  # type: ignore[arg-type]


def test_fori_loop_wants_integer_bounds() -> None:
    with pytest.raises(DTypeError, match="two integer scalars"):
        lax.fori_loop(0.0, 2.0, lambda i, x: x, 0)


def test_a_loop_with_progress_prints_and_reads_as_stablehlo() -> None:
    lowered = xarr.lower(
        lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, x, progress='a "bar"'), xarr.asarray(2.0)
    )
    text = str(lowered.stage("traced"))
    read = stablehlo.parse(text).main
    (loop,) = (node for node in read.nodes if isinstance(node.op, ops.While))
    assert loop.op.progress == ops.Progress('a "bar"', (0, 1))
    assert squeeze_spaces(read.to_text()) == squeeze_spaces(text)
    (result,) = run_stablehlo(text, np.float64(2))
    assert_same(on_numpy(read, np.float64(2))[0], result)
