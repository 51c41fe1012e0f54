"""Collectives and transfers over replicas in threads: beside JAX's, beside NumPy, and on each backend."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.xla import parse, squeeze_spaces
from xarr import lax, stablehlo
from xarr.communication.communicator import SingleMember, current_communicator, use_communicator
from xarr.communication.process_groups import Mesh
from xarr.distributed import simulate
from xarr.errors import CommunicationError
from xarr.runtime.named_axes import bind_axes

Array = np.ndarray[Any, Any]

#: Members in rows of two: the axes i and j of the tests.
MESH = Mesh((("i", 2), ("j", 2)))
BACKENDS = ("numpy", "reference")

#: What both libraries compute of a member's `x`, int32[4,6], over the named axes i and j.
EXPRESSIONS = [
    "lax.psum(x, 'i')",
    "lax.psum(x, ('j', 'i'))",
    "lax.psum(x, 'i', axis_index_groups=[[1], [0]])",
    "lax.psum({'a': x, 'b': x[0] > 3}, 'j')['b']",
    "lax.pmean(x, 'j')",
    "lax.pmax(x, 'i')",
    "lax.pmin(x, ('i', 'j'))",
    "lax.all_gather(x, 'i')",
    "lax.all_gather(x, 'j', axis=1)",
    "lax.all_gather(x, ('i', 'j'), axis=2)",
    "lax.all_gather(x, 'i', axis=1, tiled=True)",
    "lax.all_gather((x, x[:, 0]), 'j')[1]",
    "lax.all_to_all(x, ('i', 'j'), 0, 0)",
    "lax.all_to_all(x, ('i', 'j'), 0, 1)",
    "lax.all_to_all(x[:2], 'i', 0, 1)",
    "lax.all_to_all(x[:, :2], 'i', 1, 0)",
    "lax.all_to_all(x, 'j', 0, 1, tiled=True)",
    "lax.all_to_all(x, 'j', 1, 0, tiled=True)",
    "lax.all_to_all(x, 'j', 1, 1, tiled=True)",
    "lax.ppermute(x, 'i', [(0, 1)])",
    "lax.ppermute(x, ('i', 'j'), [(0, 3), (3, 1), (1, 2)])",
    "lax.pshuffle(x, 'j', [1, 0])",
    "lax.pswapaxes(x, ('i', 'j'), 0)",
    "lax.psum_scatter(x, ('i', 'j'))",
    "lax.psum_scatter(x, 'i', scatter_dimension=1, tiled=True)",
    "lax.axis_index('i')",
    "lax.axis_index('j')",
    "lax.axis_index(('j', 'i'))",
    "x + lax.axis_size('i') + lax.psum(1, ('i', 'j'))",
]

_JAX_PROGRAM = """
import os, sys
os.environ["JAX_PLATFORMS"], os.environ["XLA_FLAGS"] = "cpu", "--xla_force_host_platform_device_count=4"
import jax, numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("i", "j"), axis_types=(AxisType.Auto,) * 2)
x = np.load(sys.argv[1])
results = {}
for number, text in enumerate(open(sys.argv[2]).read().splitlines()):
    f = eval(f"lambda x: jax.tree.map(lambda y: y[None], {text})", {"lax": lax, "jax": jax})
    g = jax.shard_map(lambda x: f(x[0]), mesh=mesh, in_specs=P(("i", "j")), out_specs=P(("i", "j")), check_vma=False)
    results[str(number)] = np.asarray(jax.jit(g)(x))
np.savez(sys.argv[3], **results)
"""


def operand(rank: int) -> Array:
    return np.random.default_rng(rank).integers(-50, 50, (4, 6)).astype(np.int32)


@pytest.fixture(scope="module")
def by_jax(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array]:
    """The results of JAX for each expression, one row for each of four devices."""
    folder: Path = tmp_path_factory.mktemp("jax")
    np.save(folder / "x.npy", np.stack([operand(rank) for rank in range(4)]))
    (folder / "expressions").write_text("\n".join(EXPRESSIONS), encoding="utf-8")
    files = [str(folder / name) for name in ("x.npy", "expressions", "results.npz")]
    subprocess.run([sys.executable, "-c", _JAX_PROGRAM, *files], check=True, timeout=300)
    with np.load(folder / "results.npz") as results:
        return dict(results)


def on_members(function: Callable[..., Any], *, count: int = 4, jitted: bool = False) -> list[Any]:
    """The results of a function of the operand of each member, as NumPy arrays."""

    def run() -> Any:
        x = xarr.asarray(operand(current_communicator().rank))
        with bind_axes(MESH):
            result = (xarr.jit(function) if jitted else function)(x)
        return xarr.tree.map(np.asarray, result)

    return simulate(count, run)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jit"])
def test_named_axes_are_those_of_jax(by_jax: dict[str, Array], backend: str, jitted: bool) -> None:
    with xarr.use_backend(backend):
        for number, text in enumerate(EXPRESSIONS):
            got = on_members(eval(f"lambda x: {text}", {"lax": lax}), jitted=jitted)
            for row, want in zip(got, by_jax[str(number)], strict=True):
                assert row.shape == want.shape, text
                assert np.array_equal(row, want), text


def test_pbroadcast() -> None:
    """Which JAX has for GPUs alone."""
    for rank, row in enumerate(on_members(lambda x: lax.pbroadcast(x, "i", 1))):
        assert_same(row, operand(2 + rank % 2))


# --- collectives of ids -------------------------------------------------------------------------------------

DTYPES = (
    *("bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128"),
    *("bfloat16", "float8_e4m3fn"),
)
#: The others, which thorough runs take too.
MORE_DTYPES = (
    *("int4", "uint4", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)


def values(rank: int, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Small numbers, among them NaN and -0.0 where there are such."""
    random = np.random.default_rng([rank, *shape])
    array = random.integers(0, 4, shape).astype(np.float64)
    if dtype.kind in "fcV":
        array = np.where(array == 3, np.nan, np.where(array == 2, -0.0, array))
    with np.errstate(invalid="ignore"):
        return np.asarray(array).astype(dtype)


def collectives(x: Any, count: int) -> dict[str, Any]:
    """Every collective of arrays of one dimension, whose size `count` divides."""
    order = [[*range(count)][::-1]]
    pairs = [(source, (source + 1) % count) for source in range(1, count)]
    return {
        "gather": lax.all_gather(x, axis=0, tiled=True, replica_groups=order),
        "reduce": lax.all_reduce(x, lambda a, b: b, order),
        "exchange": lax.all_to_all(x, None, 0, 0, tiled=True),
        "permute": lax.collective_permute(x, pairs),
        "broadcast": lax.collective_broadcast([x, x[:0]], order),
        "scatter": lax.reduce_scatter(x, lambda a, b: a, 0),
    }


def expect(rows: list[Array], rank: int) -> dict[str, Any]:
    count = len(rows)
    parts = [np.split(row, count) for row in rows]
    source = rank - 1 if rank >= 2 else count - 1 if rank == 0 and count > 1 else None
    return {
        "gather": np.concatenate(rows[::-1]),
        "reduce": rows[0],
        "exchange": np.concatenate([part[rank] for part in parts]),
        "permute": np.zeros_like(rows[0]) if source is None else rows[source],
        "broadcast": [rows[-1], rows[-1][:0]],
        "scatter": parts[0][rank],
    }


@pytest.mark.sampled
@pytest.mark.parametrize(
    "dtype", [*DTYPES, *[pytest.param(each, marks=pytest.mark.thorough) for each in MORE_DTYPES]]
)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_element_type_goes_through_every_collective(dtype: str, count: int) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for backend in BACKENDS:
        for size in (0, 2 * count, 1200 * count if backend == "numpy" else count):
            rows = [values(rank, kind, (size,)) for rank in range(count)]

            def run(rows: list[Array] = rows, backend: str = backend) -> Any:
                with xarr.use_backend(backend):
                    x = xarr.asarray(rows[current_communicator().rank])
                    return xarr.tree.map(np.asarray, collectives(x, count))

            for rank, got in enumerate(simulate(count, run)):
                want = expect(rows, rank)
                for name in want:
                    for one, other in zip(*map(_list, (got[name], want[name])), strict=True):
                        assert one.dtype == other.dtype
                        assert one.tobytes() == other.tobytes(), (name, backend, size)


def _list(value: Any) -> list[Array]:
    return list(value) if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [(), (3,), (5000,)], ids=str)
def test_reductions_fold_from_the_left_in_the_order_of_the_group(backend: str, size: tuple[int, ...]) -> None:
    """A computation that neither commutes nor associates, at every member the same bits."""
    if backend == "reference" and size == (5000,):
        pytest.skip("index by index that takes long, and is the same as for few elements")

    def run() -> Any:
        x = xarr.asarray(np.full(size, current_communicator().rank + 1.0))
        with xarr.use_backend(backend):
            groups = [[2, 0, 1, 3]]
            return np.asarray(lax.all_reduce(x.to(backend), lambda a, b: a / 3 + b, groups))

    want = ((3 / 3 + 1.0) / 3 + 2.0) / 3 + 4.0
    for row in simulate(4, run):
        assert_same(row, np.full(size, want))


@pytest.mark.parametrize("backend", BACKENDS)
def test_nan_stays_in_extremes(backend: str) -> None:
    def run() -> Any:
        value = [1.0, np.nan, 2.0, 3.0][current_communicator().rank]
        with xarr.use_backend(backend), bind_axes(MESH):
            return [np.asarray(f(value, ("i", "j"))) for f in (lax.pmax, lax.pmin)]

    for row in simulate(4, run):
        assert np.isnan(row).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_accumulators_may_be_wider(backend: str) -> None:
    text = """func.func @main(%x: tensor<2xf16>) -> tensor<2xf32> {
      %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<> : tensor<0x0xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<2xf16>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""

    def run() -> Array:
        return np.asarray(stablehlo.run(text, np.float16([60000, 1]), backend=backend)[0])

    for row in simulate(2, run):
        assert_same(row, np.float32([120000, 2]))


def test_a_ragged_group_reduces_and_does_not_gather() -> None:
    def run() -> list[Array]:
        rank = current_communicator().rank
        groups = [[0, 2], [1]]
        return [
            np.asarray(lax.all_reduce(rank + 1, lax.add, groups)),
            np.asarray(lax.cross_replica_sum(rank + 1, groups)),
        ]

    assert [row[0].item() for row in simulate(3, run)] == [4, 2, 4]
    assert [row[1].item() for row in simulate(3, run)] == [4, 2, 4]


def test_members_in_no_group_get_zeros_of_a_broadcast() -> None:
    def run() -> Array:
        return np.asarray(lax.collective_broadcast(current_communicator().rank + 5, [[2, 0]]))

    assert [row.item() for row in simulate(3, run)] == [7, 0, 7]


def test_ids_of_a_grid() -> None:
    def run() -> Any:
        rank = xarr.asarray(current_communicator().rank)
        ids = (
            lax.replica_id(),
            lax.partition_id(),
            *xarr.jit(lambda: (lax.replica_id(), lax.partition_id()))(),
        )
        sums = [
            lax.all_reduce(rank, lax.add),
            lax.all_reduce(rank, lax.add, channel_id=1),
            lax.all_reduce(rank, lax.add, [[0, 3], [1, 2]], channel_id=1, use_global_device_ids=True),
            lax.all_gather(rank, channel_id=1)[-1],
            lax.collective_permute(rank, [(0, 1)], channel_id=1),
        ]
        return [int(each) for each in (*ids, *sums)]

    assert simulate(4, run, num_partitions=2) == [
        [0, 0, 0, 0, 2, 6, 3, 3, 0],
        [0, 1, 0, 1, 4, 6, 3, 3, 0],
        [1, 0, 1, 0, 2, 6, 3, 3, 0],
        [1, 1, 1, 1, 4, 6, 3, 3, 2],
    ]


def test_loops_and_branches_hold_collectives() -> None:
    def program(x: Any) -> Any:
        total = lax.fori_loop(0, 3, lambda i, x: lax.psum(x, ("i", "j")) + i.astype("int32"), x)
        same = lax.cond(lax.psum(1.0, "i") > 1, lambda y: lax.psum(y, "i"), lambda y: y, total)
        return lax.scan(lambda carry, row: (carry + lax.psum(row, "j"), row), total[0] * 0, same)[0]

    total = sum(operand(rank) for rank in range(4))
    total = 4 * total + 1  # 4 (total + 0) + 1 after the second step
    want = (2 * (4 * total + 2) * 2).sum(0).astype(np.int32)
    for row in (*on_members(program), *on_members(program, jitted=True)):
        assert_same(row, want)


def test_a_function_under_jit_is_recorded_for_the_axes_in_use() -> None:
    function = xarr.jit(lambda x: x * lax.axis_size("i"))
    for size in (1, 2, 1, 3):
        for _ in range(3):
            with bind_axes(Mesh((("i", size),))):
                assert int(function(xarr.asarray(5))) == 5 * size


def test_what_is_traced_has_no_value() -> None:
    with bind_axes(Mesh((("i", 1),))), pytest.raises(xarr.errors.TracedValueError):
        xarr.jit(lambda: bool(lax.axis_index("i") == 0))()


def test_a_function_under_jit_runs_at_all_members() -> None:
    function = xarr.jit(lambda x: x + lax.replica_id().astype("int32"))
    assert simulate(3, lambda: int(function(xarr.asarray(np.int32(10))))) == [10, 11, 12]


# --- tokens and transfers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jit"])
def test_send_and_recv(backend: str, jitted: bool) -> None:
    pairs = [(0, 1), (1, 2)]

    def program(x: Any) -> Any:
        token = lax.after_all(lax.create_token(), lax.create_token())
        token = lax.send({"a": x, "b": x[0]}, token, 7, pairs)
        received, token = lax.recv({"a": x, "b": ((6,), "int32")}, token, 7, pairs)
        return received["a"], received["b"]

    with xarr.use_backend(backend):
        got = on_members(program, count=3, jitted=jitted)
    for rank, (a, b) in enumerate(got):
        want = operand(rank - 1) if rank else np.zeros((4, 6), np.int32)
        assert_same(a, want)
        assert_same(b, want[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jit"])
def test_infeed_and_outfeed(backend: str, jitted: bool) -> None:
    def program(x: Any) -> Any:
        first, token = lax.infeed(lax.create_token(), ((2,), "float32"))
        (a, b), token = lax.infeed(token, [((), "int8"), ((0, 3), "float64")])
        token = lax.outfeed(token, (first * 2, a))
        lax.outfeed(None, [])
        return x + a, b

    with xarr.use_backend(backend), use_communicator(SingleMember()) as world:
        function = xarr.jit(program) if jitted else program
        for number in range(3):
            world.feed([np.float32([number, 2])])
            world.feed([np.int8(3), np.zeros((0, 3))])
            total, empty = function(xarr.asarray(1))
            assert (int(total), empty.shape) == (4, (0, 3))
            out = world.fetch()
            assert_same(out[0], np.float32([2 * number, 4]))
            assert_same(out[1], np.int8(3))
            assert world.fetch() == ()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_jitted_function_takes_and_gives_tokens(backend: str) -> None:
    with xarr.use_backend(backend), use_communicator(SingleMember()) as world:
        step = xarr.jit(lambda token, x: (lax.outfeed(token, x), x + 1))
        token, x = lax.create_token(), xarr.asarray(0)
        for number in range(3):
            token, x = step(token, x)
            assert str(token._node.type) == "!stablehlo.token"
            assert [each.item() for each in world.fetch()] == [number]
        assert int(x) == 3


def test_transfers_with_the_host_by_channels() -> None:
    with use_communicator(SingleMember()) as world:
        token = lax.send([1.0, 2], None, 3, is_host_transfer=True)
        assert [each.item() for each in world.fetch()] == [1, 2]
        world.feed([np.float32(5)])
        value, token = lax.recv(((), "float32"), token, 4, is_host_transfer=True)
        assert float(value) == 5
        assert str(token._node.type) == "!stablehlo.token"


def test_nothing_was_fed() -> None:
    with use_communicator(SingleMember()), pytest.raises(CommunicationError, match="nothing waits"):
        lax.infeed(None, ((), "float32"))


def test_groups_that_the_world_has_not() -> None:
    with pytest.raises(CommunicationError, match="wanted each number from 0 to 0 in one of the groups"):
        lax.all_reduce(1.0, lax.add, [[0, 1]])
    with pytest.raises(CommunicationError, match="wanted sources and targets from 0 to 0"):
        lax.collective_permute(1.0, [(0, 1)])


def test_a_program_of_another_world_is_refused() -> None:
    text = """func.func @main(%x: tensor<2xf64>) -> tensor<4xf64> {
      %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<> : tensor<0x0xi64>}>
          : (tensor<2xf64>) -> tensor<4xf64>
      return %0 : tensor<4xf64>
    }"""
    for (row,) in simulate(2, lambda: [np.asarray(each) for each in stablehlo.run(text, np.ones(2))]):
        assert_same(row, np.ones(4))
    with pytest.raises(
        CommunicationError, match="wanted groups of 2 members, for which the program was made, got 1"
    ):
        stablehlo.run(text, np.ones(2))


# --- text ---------------------------------------------------------------------------------------------------

_SUM = """({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    })"""
_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"
_ROWS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
_RAGGED = "replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>"
_MESH = (
    'replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>, '
    '<name = "y", size = 4>], device_ids=dense<[0, 2, 1, 3, 4, 5, 6, 7]> : tensor<8xi64>>, '
    'axes = [#stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>'
)
_NONE = "replica_groups = dense<> : tensor<0x0xi64>"
_ONE = "replica_groups = dense<0> : tensor<1x1xi64>"
_PAIR = "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"
_X, _T = "tensor<4x6xf32>", "!stablehlo.token"

#: Operations of all forms: operands x, an array, and t, a token.
FORMS = {
    f"{name}, {number}": line
    for name, lines in {
        "all_gather": [
            f'"stablehlo.all_gather"(%arg0) <{{all_gather_dim = 1 : i64, {groups}}}> : ({_X}) -> tensor<4x12xf32>'
            for groups in (
                _ROWS,
                f"{_CHANNEL}, {_ROWS}, use_global_device_ids",
                _MESH,
                _NONE,
            )
        ]
        + [
            f'"stablehlo.all_gather"(%arg0, %arg0) <{{all_gather_dim = 0 : i64, {_CHANNEL}, {_ROWS}}}> : '
            f"({_X}, {_X}) -> (tensor<16x6xf32>, tensor<16x6xf32>)"
        ],
        "all_reduce": [
            f'"stablehlo.all_reduce"(%arg0) <{{{groups}}}> {_SUM} : ({_X}) -> {_X}'
            for groups in (
                _ROWS,
                _RAGGED,
                _MESH,
                _ONE,
                f"{_CHANNEL}, {_ROWS}",
            )
        ],
        "all_to_all": [
            f'"stablehlo.all_to_all"(%arg0) <{{{_CHANNEL}, concat_dimension = 1 : i64, {_ROWS}, split_count = 2 : i64, '
            f"split_dimension = 0 : i64}}> : ({_X}) -> tensor<2x12xf32>"
        ],
        "collective_broadcast": [f'"stablehlo.collective_broadcast"(%arg0) <{{{_ROWS}}}> : ({_X}) -> {_X}'],
        "collective_permute": [
            f'"stablehlo.collective_permute"(%arg0) <{{{_CHANNEL}, {_PAIR}}}> : ({_X}) -> {_X}'
        ],
        "cross_replica_sum": [f'"stablehlo.cross-replica-sum"(%arg0) <{{{_ROWS}}}> : ({_X}) -> {_X}'],
        "reduce_scatter": [
            f'"stablehlo.reduce_scatter"(%arg0) <{{{groups}, scatter_dimension = 1 : i64}}> {_SUM} : '
            f"({_X}) -> tensor<4x3xf32>"
            for groups in (_ROWS, _NONE)
        ],
        "replica_id": ["stablehlo.replica_id : tensor<ui32>"],
        "partition_id": ["stablehlo.partition_id : tensor<ui32>"],
        "after_all": [f"stablehlo.after_all  : {_T}", f"stablehlo.after_all %arg1, %arg1 : {_T}"],
        "send": [
            '"stablehlo.send"(%arg0, %arg1) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, '
            f"source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}}> : ({_X}, {_T}) -> {_T}",
            '"stablehlo.send"(%arg0, %arg1) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 2>, '
            f"is_host_transfer = true}}> : ({_X}, {_T}) -> {_T}",
        ],
        "recv": [
            '"stablehlo.recv"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, '
            f"source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}}> : ({_T}) -> ({_X}, {_T})",
            '"stablehlo.recv"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 3>, '
            f"is_host_transfer = true}}> : ({_T}) -> ({_X}, {_T})",
        ],
        "infeed": [
            f'"stablehlo.infeed"(%arg1) <{{infeed_config = "a\\22b"}}> : ({_T}) -> ({_X}, {_T})',
            f'"stablehlo.infeed"(%arg1) <{{infeed_config = "", layout = [[0, 1]]}}> : ({_T}) -> ({_X}, {_T})',
            f'"stablehlo.infeed"(%arg1) <{{infeed_config = ""}}> : ({_T}) -> {_T}',
        ],
        "outfeed": [
            f'"stablehlo.outfeed"(%arg0, %arg1) <{{outfeed_config = "c"}}> : ({_X}, {_T}) -> {_T}',
            f'"stablehlo.outfeed"(%arg1) <{{outfeed_config = ""}}> : ({_T}) -> {_T}',
        ],
    }.items()
    for number, line in enumerate(lines)
}


def module_of(line: str) -> str:
    """A module that has one operation, whose results nobody uses."""
    count = (
        line.rpartition("->")[2].count("tensor") + line.rpartition("->")[2].count("!") if "->" in line else 1
    )
    names = "%0" if count == 1 else f"%0:{count}"
    return (
        f"module @main {{\n  func.func public @main(%arg0: {_X}, %arg1: {_T}) -> {_X} {{\n    {names} = {line}\n"
        f"    return %arg0 : {_X}\n  }}\n}}"
    )


@pytest.mark.parametrize("name", [name for name in FORMS if not name.endswith("_id, 0")])
def test_forms_are_read_and_printed_as_mlir_does(name: str) -> None:
    text = module_of(FORMS[name])
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(text)
    graph = stablehlo.parse(text).main
    assert squeeze_spaces(graph.to_text()) == squeeze_spaces(text)
    assert stablehlo.parse(graph.to_text()).main == graph
    assert len(graph.ordered) == 1


@pytest.mark.parametrize("name", ["replica_id", "partition_id"])
def test_ids_are_read_and_printed_as_mlir_does(name: str) -> None:
    text = (
        f"module @main {{\n  func.func public @main() -> tensor<ui32> {{\n    %0 = stablehlo.{name} : tensor<ui32>\n"
        "    return %0 : tensor<ui32>\n  }\n}"
    )
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(stablehlo.parse(text).main.to_text())


def test_a_mesh_by_name() -> None:
    text = f"""sdy.mesh @m = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]> {{stablehlo.mesh = {{}}}}
    func.func @main(%x: {_X}) -> tensor<8x6xf32> {{
      %0 = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, replica_groups =
        #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>}}>
          : ({_X}) -> tensor<8x6xf32>
      return %0 : tensor<8x6xf32>
    }}"""
    (node,) = stablehlo.parse(text).main.ordered
    assert node.op.replica_groups.ids == ((0, 1), (2, 3))
    with pytest.raises(xarr.errors.ParseError, match="there is no mesh @n"):
        stablehlo.parse(text.replace("mesh = @m", "mesh = @n"))


def test_combiners_have_no_collectives() -> None:
    text = f"""func.func @main(%x: {_X}) -> {_X} {{
      %0 = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<0> : tensor<1x1xi64>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = "stablehlo.cross-replica-sum"(%a) <{{{_ONE}}}> : (tensor<f32>) -> tensor<f32>
        stablehlo.return %c : tensor<f32>
      }}) : ({_X}) -> {_X}
      return %0 : {_X}
    }}"""
    with pytest.raises(xarr.errors.ParseError, match="runs on single elements, in any order"):
        stablehlo.parse(text)


def test_an_explicit_program_has_the_same_effects() -> None:
    def program(x: Any) -> Any:
        y = lax.all_reduce((x, x + 1), lax.max)[1]
        y = lax.all_gather(y, axis=1, tiled=True, replica_groups=[[1, 0]]) + lax.cross_replica_sum(
            np.int32(1)
        )
        y = lax.all_to_all(y, None, 0, 1, tiled=True, replica_groups=[[0, 1]])
        y = lax.collective_permute(lax.collective_broadcast(y), [(0, 1)])
        y = (
            lax.reduce_scatter(y, lax.add, 0, replica_groups=[[0, 1]])
            + lax.replica_id().astype("int32")
            + lax.partition_id().astype("int32")
        )
        z, _ = lax.recv(y, lax.send(y, None, 1, [(0, 1)]), 1, [(0, 1)])
        lax.outfeed(None, z)
        w, _ = lax.infeed(None, z)
        return w - z

    written = xarr.make_explicit(program, operand(0))

    def run() -> Any:
        x, rank = xarr.asarray(operand(current_communicator().rank)), current_communicator().rank
        results = []
        for function in (program, written):
            current_communicator().feed([np.full((1, 24), rank, np.int32)])
            results += [np.asarray(function(x)), *current_communicator().fetch()]
        return results

    for first, out, again, out_again in simulate(2, run):
        assert_same(first, again)
        assert_same(out, out_again)
