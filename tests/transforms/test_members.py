"""Calls of functions under `shard_map` in functions that are recorded: whole arrays in, whole arrays out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.mpi import needs_mpi, run_script
from xarr import lax
from xarr.compiler.pipeline import lower
from xarr.distributed import PartitionSpec as P, ReplicaMesh, device_put, make_mesh, simulate
from xarr.distributed.shardings import NamedSharding
from xarr.errors import ArgumentError, EvaluationError, NotANumberError, ShapeError, XarrError
from xarr.ir import ops

A, B = np.arange(24.0).reshape(4, 6), np.arange(18.0).reshape(6, 3)


def make(shape: tuple[int, ...] = (2, 2)) -> ReplicaMesh:
    return make_mesh(shape, ("x", "y", "z")[: len(shape)])


def map_product(mesh: Any = None) -> Any:
    @xarr.shard_map(mesh=mesh or make(), in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
    def product(a: xarr.Array, b: xarr.Array) -> xarr.Array:
        return lax.psum(a @ b, "y")

    return product


def as_whole(call: Callable[[], Any]) -> list[Any]:
    """The values of a function of whole arrays in a program of its own, and at each replica of a world."""

    def values() -> Any:
        return xarr.tree.map(np.asarray, call())

    return [values(), *simulate(4, values)]


# --- in functions under jit -----------------------------------------------------------------------------------


def test_a_function_of_parts_is_jitted_as_it_is() -> None:
    def call() -> Any:
        product = xarr.jit(map_product())
        first = product(A, B)
        assert isinstance(first, xarr.Array)
        np.testing.assert_array_equal(product(A + 1, B), (A + 1) @ B)
        return first

    for result in as_whole(call):
        np.testing.assert_array_equal(result, A @ B)


def test_several_calls_with_other_operations_between() -> None:
    counted: list[int] = []

    def call() -> Any:
        product = map_product()

        @xarr.jit
        def twice(a: xarr.Array, b: xarr.Array) -> Any:
            counted.append(1)
            first = product(a * 2, b)
            assert first.shape == (4, 3)
            second = product(first @ b.T, b)
            return {"sum": second.sum(), "first": first[::-1]}

        return [twice(A, B) for _ in range(3)][-1]

    first = (A * 2) @ B
    for result in as_whole(call):
        assert result["sum"] == (first @ B.T @ B).sum()
        np.testing.assert_array_equal(result["first"], first[::-1])
    assert len(counted) == 5  # once for each program of its own, and for each replica


def test_in_loops_and_branches() -> None:
    def call() -> Any:
        total = xarr.shard_map(lambda x: x + lax.psum(x, "x"), mesh=make(), in_specs=P("x"), out_specs=P("x"))

        @xarr.jit
        def grow(x: xarr.Array, is_wanted: xarr.Array) -> Any:
            x = lax.fori_loop(0, 3, lambda _, carried: total(carried), x)
            _, rows = lax.scan(lambda carried, _: (total(carried),) * 2, x, None, length=2)
            return rows, lax.cond(is_wanted, total, lambda each: each, x)

        return grow(np.arange(4.0), np.bool_(True)), grow(np.arange(4.0), np.bool_(False))

    def step(x: Any) -> Any:
        return x + np.tile(x[:2] + x[2:], 2)

    x = step(step(step(np.arange(4.0))))
    for there, elsewhere in as_whole(call):
        np.testing.assert_array_equal(there[0], [step(x), step(step(x))])
        np.testing.assert_array_equal(there[1], step(x))
        np.testing.assert_array_equal(elsewhere[1], x)


def test_loops_outside_of_jit_record_their_bodies_too() -> None:
    total = xarr.shard_map(lambda x: lax.pmean(x, "x"), mesh=make(), in_specs=P("x"), out_specs=P())
    result = lax.fori_loop(0, 2, lambda _, x: xarr.concatenate([total(x)] * 2), np.arange(4.0))
    np.testing.assert_array_equal(result, [1, 2, 1, 2])


def test_what_is_used_from_outside() -> None:
    def call() -> Any:
        table = xarr.arange(4.0)

        @xarr.jit
        def scale(x: xarr.Array, factor: float) -> Any:
            shift = x.sum()

            @xarr.shard_map(mesh=make(), in_specs=(P("x"), P()), out_specs=P("x"))
            def f(part: xarr.Array, number: Any) -> xarr.Array:
                return part * factor + shift + table[lax.axis_index("x")] + number

            return f(x, 3)

        return scale(np.arange(4, dtype=np.float32), 2.0), scale(np.ones(4, np.float32), 3.0)

    for first, second in as_whole(call):
        np.testing.assert_array_equal(first, np.arange(4) * 2 + 6 + np.array([0, 0, 1, 1]) + 3)
        np.testing.assert_array_equal(second, 3 + 4 + np.array([0, 0, 1, 1]) + 3)


def test_results_that_are_one_array_in_two_ways() -> None:
    def both(x: xarr.Array) -> Any:
        mean = lax.pmean(x, ("x", "y"))
        return mean, {"joined": mean, "empty": x[:0]}

    def call() -> Any:
        specs = (P(), {"joined": P(("x", "y")), "empty": P(("x", "y"))})
        f = xarr.shard_map(both, mesh=make(), in_specs=P(("x", "y")), out_specs=specs)
        return xarr.jit(f)(np.arange(8, dtype=np.complex64))

    for mean, rest in as_whole(call):
        np.testing.assert_array_equal(mean, [3, 4])
        np.testing.assert_array_equal(rest["joined"], np.tile([3, 4], 4))
        assert rest["empty"].shape == (0,) and rest["empty"].dtype == np.complex64


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "bool", "int4", "float64"])
def test_any_element_type_without_dimensions_and_empty(dtype: str) -> None:
    kind = xarr.dtypes.canonical(dtype)

    def call() -> Any:
        f = xarr.shard_map(lambda x, y: (x, y), mesh=make(), in_specs=(P(), P("x")), out_specs=(P(), P("x")))
        return xarr.jit(f)(np.ones((), kind), np.zeros((0, 3), kind))

    for scalar, empty in as_whole(call):
        assert scalar.dtype == empty.dtype == kind
        assert scalar.shape == () and empty.shape == (0, 3) and scalar == 1


def test_nan_and_the_sign_of_zero_stay() -> None:
    values = np.array([np.nan, -0.0, np.inf, -np.inf])
    f = xarr.jit(xarr.shard_map(lambda x: x, mesh=make(), in_specs=P("y"), out_specs=P("y")))
    np.testing.assert_array_equal(np.asarray(f(values)).view(np.int64), values.view(np.int64))


def test_side_effects_happen_at_each_member(capsys: pytest.CaptureFixture[str]) -> None:
    @xarr.shard_map(mesh=make(), in_specs=P("x"), out_specs=P("x"))
    def f(x: xarr.Array) -> xarr.Array:
        xarr.debug.print("part {}", lax.axis_index("x"))
        return x

    xarr.jit(f)(np.arange(2.0))
    xarr.effects_barrier()
    assert sorted(capsys.readouterr().out.split("\n")) == ["", *["part 0"] * 2, *["part 1"] * 2]


def test_operation_by_operation_arrays_are_whole_too() -> None:
    def call() -> Any:
        product = map_product()
        half = xarr.jit(lambda a, b: product(product(a, b) @ b.T, b) / 2)
        with xarr.config(debug_nans=True):
            return half(A, B)

    for result in as_whole(call):
        np.testing.assert_array_equal(result, A @ B @ B.T @ B / 2)


def test_nan_is_found_inside() -> None:
    f = xarr.jit(xarr.shard_map(lambda x: x / x, mesh=make(), in_specs=P("x"), out_specs=P("x")))
    with xarr.config(debug_nans=True), pytest.raises(NotANumberError):
        f(np.zeros(4))


def test_an_index_out_of_bounds_at_one_member() -> None:
    @xarr.shard_map(mesh=make(), in_specs=(P(), P("x")), out_specs=P("x"))
    def pick(table: xarr.Array, index: xarr.Array) -> xarr.Array:
        return table[index]

    np.testing.assert_array_equal(xarr.jit(pick)(np.arange(3.0), np.array([2, 1])), [2, 1])
    with pytest.raises(IndexError, match="3"):
        np.asarray(xarr.jit(pick)(np.arange(3.0), np.array([2, 3])))


# --- what is refused ------------------------------------------------------------------------------------------


def test_arguments_in_parts_are_refused_where_arrays_are_whole() -> None:
    f = xarr.shard_map(lambda x: x, mesh=make(), in_specs=P("x"), out_specs=P("x"))
    parts = device_put(A, NamedSharding(make(), P("x")))
    with pytest.raises(ArgumentError, match=r"wanted a whole array, got <ShardedArray.*np\.asarray"):
        xarr.jit(lambda x: f(parts))(A)


def test_sizes_and_results_are_checked_when_they_are_recorded() -> None:
    f = xarr.shard_map(lambda x: x, mesh=make(), in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ShapeError, match="divisible by 2"):
        xarr.jit(f)(A[:3])
    wrong = xarr.shard_map(lambda x: x, mesh=make(), in_specs=P("x"), out_specs=P())
    with pytest.raises(ArgumentError, match="the result may differ along 'x'"):
        xarr.jit(wrong)(A)


def test_the_world_is_that_of_the_mesh() -> None:
    mesh = make()
    f = xarr.shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ArgumentError, match="wanted a mesh of all 2 replicas"):
        simulate(2, lambda: xarr.jit(f)(A))


def test_a_program_of_one_process_stays_in_it() -> None:
    compiled = xarr.jit(map_product()).lower(A, B).compile()
    np.testing.assert_array_equal(compiled(A, B), A @ B)
    with pytest.raises((ArgumentError, EvaluationError), match="let the replicas compile it"):
        simulate(4, lambda: np.asarray(compiled(A, B)))


# --- some axes, and one inside of another ---------------------------------------------------------------------


def _nest(mesh: ReplicaMesh, inner_mesh: ReplicaMesh | None) -> Any:
    def inner(part: xarr.Array) -> xarr.Array:
        return lax.psum(part * (lax.axis_index("x") + 1), "y")

    def outer(part: xarr.Array) -> xarr.Array:
        split = xarr.shard_map(inner, mesh=inner_mesh, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})
        return split(part * 2) + lax.axis_index("x")

    return xarr.shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("wrap", [xarr.jit, lambda f: f])
def test_one_inside_of_another_along_other_axes(wrap: Any, is_given: bool) -> None:
    def call() -> Any:
        mesh = make()
        return wrap(_nest(mesh, mesh if is_given else None))(A)

    row = np.array([0, 0, 1, 1])[:, None]
    for result in as_whole(call):
        np.testing.assert_array_equal(result, (A[:, :3] + A[:, 3:]) * 2 * (row + 1) + row)


def test_without_names_the_inner_one_takes_the_axes_that_are_left() -> None:
    mesh = make((2, 2, 2))
    inner = xarr.shard_map(lambda x: lax.psum(x, ("y", "z")), in_specs=P(("y", "z")), out_specs=P())
    f = xarr.shard_map(inner, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    x = np.arange(8.0)
    np.testing.assert_array_equal(xarr.jit(f)(x), [x[:4].sum(), x[4:].sum()])


def test_three_levels_and_a_scan() -> None:
    mesh = make((2, 2, 2))

    def deepest(x: xarr.Array) -> xarr.Array:
        return x + 100 * lax.axis_index("x") + 10 * lax.axis_index("y") + lax.axis_index("z")

    def middle(x: xarr.Array) -> xarr.Array:
        f = xarr.shard_map(deepest, in_specs=P("z"), out_specs=P("z"))
        return lax.fori_loop(0, 2, lambda _, each: f(each), x)

    f = xarr.shard_map(middle, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})
    g = xarr.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    wanted = np.arange(8.0) + 2 * np.array([0, 1, 10, 11, 100, 101, 110, 111])
    for result in (g(np.arange(8.0)), xarr.jit(g)(np.arange(8.0))):
        np.testing.assert_array_equal(np.asarray(result), wanted)


def test_along_other_axes_all_members_compute_the_same() -> None:
    f = xarr.shard_map(
        lambda x: lax.psum(x, "x"), mesh=make(), in_specs=P("x"), out_specs=P(), axis_names={"x"}
    )
    np.testing.assert_array_equal(np.asarray(f(np.arange(4.0))), [2, 4])


@pytest.mark.parametrize(
    ("make_call", "message"),
    [
        (
            lambda: xarr.shard_map(abs, mesh=make(), in_specs=P(), out_specs=P(), axis_names={"w"}),
            "got ['w']",
        ),
        (
            lambda: xarr.shard_map(abs, mesh=make(), in_specs=P(), out_specs=P(), axis_names="x"),
            "wanted a set",
        ),
        (lambda: xarr.shard_map(abs, in_specs=P(), out_specs=P())(A), "wanted a mesh, since no function"),
        (
            lambda: xarr.shard_map(abs, mesh=make(), in_specs=P("y"), out_specs=P(), axis_names={"x"})(A),
            "wanted axes that the function is split along, ('x',), got PartitionSpec('y')",
        ),
        (
            lambda: xarr.shard_map(
                lambda x: lax.psum(x, "y"), mesh=make(), in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
            )(A),
            "wanted an axis with a name ('x'), got 'y'",
        ),
        (lambda: _nest(make(), make_mesh((4, 1), ("x", "y")))(A), "wanted the mesh of the function"),
        (
            lambda: xarr.shard_map(
                xarr.shard_map(abs, in_specs=P(), out_specs=P()), mesh=make(), in_specs=P(), out_specs=P()
            )(A),
            "'x', 'y' are those of functions around",
        ),
    ],
)
def test_axes_that_are_not_free(make_call: Callable[[], Any], message: str) -> None:
    with pytest.raises(XarrError, match=re.escape(message)):
        make_call()


# --- the graph ------------------------------------------------------------------------------------------------


def test_the_graph_has_the_computation_until_it_is_prepared() -> None:
    lowered = xarr.jit(map_product()).lower(A, B)
    assert "sdy.manual_computation" in str(lowered.stage("traced"))
    assert "custom_call @xarr.shard_map" in str(lowered.stage("simplified"))
    (text, *_) = simulate(4, lambda: str(xarr.jit(map_product()).lower(A, B).stage("simplified")))
    assert "replica_id" in text and "all_gather" in text and "manual_computation" not in text


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_on_each_backend(backend: str) -> None:
    with xarr.use_backend(backend):
        result = xarr.jit(map_product())(A, B)
    np.testing.assert_array_equal(np.asarray(result), A @ B)


def test_what_nothing_needs_runs_only_where_members_meet() -> None:
    ran: list[int] = []

    def note(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        ran.append(1)
        return x

    def part(x: xarr.Array) -> xarr.Array:
        return xarr.pure_callback(note, x, x)

    f = xarr.shard_map(part, mesh=make(), in_specs=P(), out_specs=P())
    graph = xarr.jit(lambda x: (f(x), x)[1]).lower(A).graph
    assert ops.ManualComputation not in graph.op_classes
    np.testing.assert_array_equal(xarr.jit(f)(A), A)
    assert lower(graph, xarr.backend.get("numpy")) and len(ran) == 4


_SCRIPT = """
import numpy as np
import xarr
from xarr import lax
from xarr.distributed import NamedSharding, PartitionSpec as P, device_put, make_mesh

mesh = make_mesh((2, 2), ("x", "y"))
a = np.arange(16.0).reshape(4, 4)
total = xarr.shard_map(lambda part: lax.psum(part, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
inner = lambda part: xarr.shard_map(lambda p: lax.psum(p, "y"), in_specs=P(None, "y"), out_specs=P())(part)
rows = xarr.shard_map(inner, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
columns = a[:2] + a[2:]
np.testing.assert_array_equal(xarr.jit(lambda x: total(x * 2) + 1)(a), columns * 2 + 1)
parts = xarr.jit(total)(device_put(a, NamedSharding(mesh, P("x", "y"))))
np.testing.assert_array_equal(np.asarray(parts), columns)
np.testing.assert_array_equal(xarr.jit(rows)(a), a[:, :2] + a[:, 2:])
np.testing.assert_array_equal(xarr.vmap(total)(np.stack([a, a + 1])), np.stack([columns, columns + 2]))
share = xarr.jit(xarr.pmap(lambda x: x / lax.psum(x, "i"), "i"))
np.testing.assert_array_equal(share(np.arange(1.0, 5)), np.arange(1.0, 5) / 10)
print("done")
"""


def _on_two_replicas(function: Callable[[xarr.Array], Any], rows: np.ndarray[Any, Any]) -> list[float]:
    """The first column of what slices of rows give, on two replicas that have half of the rows each."""
    parts = xarr.shard_map(
        xarr.vmap(function), mesh=make_mesh((2,), ("x",)), in_specs=P("x"), out_specs=P("x"), check_vma=False
    )
    eager, compiled = np.asarray(parts(rows)), np.asarray(xarr.jit(parts)(rows))
    np.testing.assert_array_equal(eager, compiled)
    return eager[:, 0].tolist()  # type: ignore[no-any-return]


def test_replicas_meet_for_all_slices_whatever_branches_these_choose() -> None:
    """As in JAX: all branches are computed, so that slices of the same number meet."""
    rows = np.array([[10.0, 1.0], [-20.0, 2.0], [-30.0, 2.0], [40.0, 1.0]])

    def branch(row: xarr.Array) -> Any:
        return lax.cond(row[0] > 0, lambda own: lax.psum(own, "x"), lambda own: -own, row)

    def switch(row: xarr.Array) -> Any:
        branches = [lambda own: lax.pmax(own, "x"), lambda own: lax.psum(own, "x")]
        return lax.switch((row[0] > 0).astype("int32"), branches, row)

    def loop(row: xarr.Array) -> Any:
        def step(carried: Any) -> Any:
            return carried[0] + 1, lax.psum(carried[1], "x")

        return lax.while_loop(lambda carried: carried[0] < row[1], step, (0.0, row))[1]

    assert _on_two_replicas(branch, rows) == [-20.0, 20.0, 30.0, 20.0]
    assert _on_two_replicas(switch, rows) == [-20.0, 40.0, 10.0, 20.0]
    rows[:, 1] = [1.0, 2.0, 2.0, 1.0]
    assert _on_two_replicas(loop, rows) == [-20.0, 40.0, -40.0, 20.0]


@needs_mpi
def test_the_same_under_mpi(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT, encoding="utf-8")
    done = run_script(4, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == 4
