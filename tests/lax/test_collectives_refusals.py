"""Collectives and transfers that are refused, each by the label of the constraint that it violates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from xarr import lax
from xarr.communication.process_groups import AxisRef, Mesh, ReplicaGroups
from xarr.errors import ArgumentError, DTypeError, InputError, ShapeError, XarrError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType, TokenType, TupleType

F32 = np.dtype(np.float32)
X = TensorType((4, 6), F32)
TOKEN = TokenType()
PAIR = TupleType((X, X))


def groups(*rows: tuple[int, ...]) -> ReplicaGroups:
    return ReplicaGroups.of(rows)


TWO = groups((0, 1))


def combiner(dtype: Any = np.float32, op: Op | None = None) -> Graph:
    a, b = (parameter(TensorType((), np.dtype(dtype))) for _ in range(2))
    return Graph((a, b), [Node(op or ops.Add(), (a, b))])


def assert_refused(op: Op, label: str, *types: Any, error: type[XarrError] = ShapeError) -> None:
    with pytest.raises(error, match=re.escape(f"{op.lax_name} [{label}]")):
        Node(op, tuple(map(parameter, types or (X,))))


# --- all_gather ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("types", [(TOKEN,), (PAIR,), (X, TOKEN)])
def test_all_gather_c0_arrays(types: Any) -> None:
    assert_refused(ops.AllGather(0, TWO), "C0", *types)


def test_all_gather_c0_at_least_one() -> None:
    with pytest.raises(ShapeError, match=r"all_gather \[C0\]"):
        Node(ops.AllGather(0, TWO))


@pytest.mark.parametrize("dim", [-1, 2])
def test_all_gather_c1_dimension(dim: int) -> None:
    assert_refused(ops.AllGather(dim, TWO), "C1")


def test_all_gather_c2_an_id_twice() -> None:
    assert_refused(ops.AllGather(0, groups((0, 1), (1, 2))), "C2")


@pytest.mark.parametrize("rows", [((0, -2),), ((0, 1), (-5, 2))])
def test_all_gather_c4_negative_ids(rows: Any) -> None:
    assert_refused(ops.AllGather(0, groups(*rows)), "C4")


@pytest.mark.parametrize("axis", [AxisRef("z"), AxisRef("x", (3, 2)), AxisRef("x", (1, 3))])
def test_all_gather_c4_axes_of_no_mesh(axis: AxisRef) -> None:
    assert_refused(ops.AllGather(0, ReplicaGroups((), Mesh((("x", 4),)), (axis,))), "C4")


@pytest.mark.parametrize("channel", [0, -1])
def test_all_gather_c5_global_ids_without_channel(channel: int) -> None:
    assert_refused(ops.AllGather(0, TWO, channel, use_global_device_ids=True), "C5")


@pytest.mark.parametrize(
    ("rows", "count"), [(((0, 1), (2,)), 0), (((0, 1),), 3), ((), 0)], ids=["ragged", "other", "unknown"]
)
def test_all_gather_c6_size_of_groups(rows: Any, count: int) -> None:
    assert_refused(ops.AllGather(0, groups(*rows), shard_count=count), "C6")


def test_all_gather_c6_partitions_times_replicas() -> None:
    assert_refused(ops.AllGather(0, TWO, 1, shard_count=3), "C6")
    assert Node(ops.AllGather(0, TWO, 1, shard_count=4), (parameter(X),)).shape == (16, 6)


# --- all_reduce ---------------------------------------------------------------------------------------------


def test_all_reduce_c0_arrays() -> None:
    assert_refused(ops.AllReduce(combiner()), "C0", X, TOKEN)


def test_all_reduce_c1_an_id_twice() -> None:
    assert_refused(ops.AllReduce(combiner(), groups((0, 0))), "C1")


def test_all_reduce_c3_negative_ids() -> None:
    assert_refused(ops.AllReduce(combiner(), groups((-2, 0))), "C3")


def test_all_reduce_c4_global_ids_without_channel() -> None:
    assert_refused(ops.AllReduce(combiner(), TWO, use_global_device_ids=True), "C4")


def test_all_reduce_c5_computation() -> None:
    x = parameter(TensorType((), F32))
    assert_refused(ops.AllReduce(Graph((x,), (x,)), TWO), "C5")
    assert_refused(ops.AllReduce(Graph((), ()), TWO), "C5")
    assert_refused(ops.AllReduce(combiner(op=ops.Compare("LT")), TWO), "C5")


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.int64, np.complex64])
def test_all_reduce_c5_elements_that_it_cannot_hold(dtype: Any) -> None:
    assert_refused(ops.AllReduce(combiner(dtype), TWO), "C5", error=DTypeError)


def test_all_reduce_takes_narrower_elements() -> None:
    node = Node(ops.AllReduce(combiner(np.float64), TWO), (parameter(X),))
    assert (node.shape, node.dtype) == ((4, 6), np.float64)


# --- all_to_all ---------------------------------------------------------------------------------------------


def test_all_to_all_c0_arrays() -> None:
    assert_refused(ops.AllToAll(0, 1, 2), "C0", TOKEN)


@pytest.mark.parametrize("dim", [-1, 2])
def test_all_to_all_c1_split_dimension(dim: int) -> None:
    assert_refused(ops.AllToAll(dim, 0, 2), "C1")


def test_all_to_all_c2_size_that_is_not_divisible() -> None:
    assert_refused(ops.AllToAll(0, 1, 3), "C2")


@pytest.mark.parametrize("dim", [-1, 2])
def test_all_to_all_c3_concat_dimension(dim: int) -> None:
    assert_refused(ops.AllToAll(0, dim, 2), "C3")


@pytest.mark.parametrize("count", [0, -2])
def test_all_to_all_c4_split_count(count: int) -> None:
    assert_refused(ops.AllToAll(0, 1, count), "C4")


def test_all_to_all_c5_an_id_twice() -> None:
    assert_refused(ops.AllToAll(0, 1, 2, groups((1, 1))), "C5")


def test_all_to_all_c7_negative_ids() -> None:
    assert_refused(ops.AllToAll(0, 1, 2, groups((-3, 1))), "C7")


@pytest.mark.parametrize("rows", [((0,),), ((0, 1, 2),), ((0, 1), (2,))])
def test_all_to_all_c8_size_of_groups(rows: Any) -> None:
    assert_refused(ops.AllToAll(0, 1, 2, groups(*rows)), "C8")


# --- collective_broadcast, collective_permute ---------------------------------------------------------------


def test_collective_broadcast_c0_arrays() -> None:
    assert_refused(ops.CollectiveBroadcast(TWO), "C0", PAIR)


def test_collective_broadcast_c1_an_id_twice() -> None:
    assert_refused(ops.CollectiveBroadcast(groups((0, 0))), "C1")


def test_collective_broadcast_c2_negative_ids() -> None:
    assert_refused(ops.CollectiveBroadcast(groups((0, -2))), "C2")


@pytest.mark.parametrize("types", [(TOKEN,), (X, X)])
def test_collective_permute_c0_one_array(types: Any) -> None:
    assert_refused(ops.CollectivePermute(()), "C0", *types)


@pytest.mark.parametrize("pairs", [((0,),), ((0, 1, 2),)])
def test_collective_permute_c1_pairs(pairs: Any) -> None:
    assert_refused(ops.CollectivePermute(pairs), "C1")


def test_collective_permute_c2_a_source_twice() -> None:
    assert_refused(ops.CollectivePermute(((0, 1), (0, 2))), "C2")


def test_collective_permute_c3_a_target_twice() -> None:
    assert_refused(ops.CollectivePermute(((0, 1), (2, 1))), "C3")


def test_collective_permute_c4_negative_ids() -> None:
    assert_refused(ops.CollectivePermute(((0, -1),)), "C4")


# --- reduce_scatter, cross_replica_sum ----------------------------------------------------------------------


@pytest.mark.parametrize("types", [(TOKEN,), (X, X)])
def test_reduce_scatter_c0_one_array(types: Any) -> None:
    assert_refused(ops.ReduceScatter(0, combiner(), TWO), "C0", *types)


def test_reduce_scatter_c1_size_that_is_not_divisible() -> None:
    assert_refused(ops.ReduceScatter(0, combiner(), groups((0, 1, 2))), "C1")


@pytest.mark.parametrize("dim", [-1, 2])
def test_reduce_scatter_c2_dimension(dim: int) -> None:
    assert_refused(ops.ReduceScatter(dim, combiner(), TWO), "C2")


def test_reduce_scatter_c3_an_id_twice() -> None:
    assert_refused(ops.ReduceScatter(0, combiner(), groups((0, 0))), "C3")


def test_reduce_scatter_c5_negative_ids() -> None:
    assert_refused(ops.ReduceScatter(0, combiner(), groups((0, -2))), "C5")


def test_reduce_scatter_c6_global_ids_without_channel() -> None:
    assert_refused(ops.ReduceScatter(0, combiner(), TWO, use_global_device_ids=True), "C6")


def test_reduce_scatter_c7_computation() -> None:
    x = parameter(TensorType((), F32))
    assert_refused(ops.ReduceScatter(0, Graph((x,), (x,)), TWO), "C7")
    assert_refused(ops.ReduceScatter(0, combiner(np.int32), TWO), "C7", error=DTypeError)


@pytest.mark.parametrize(("rows", "count"), [(((0, 1), (2,)), 0), (((0, 1),), 4), ((), 0)])
def test_reduce_scatter_c8_size_of_groups(rows: Any, count: int) -> None:
    assert_refused(ops.ReduceScatter(0, combiner(), groups(*rows), shard_count=count), "C8")


@pytest.mark.parametrize("types", [(TOKEN,), (X, X)])
def test_cross_replica_sum_c0_one_array(types: Any) -> None:
    assert_refused(ops.CrossReplicaSum(TWO), "C0", *types)


def test_cross_replica_sum_c1_an_id_twice() -> None:
    assert_refused(ops.CrossReplicaSum(groups((0, 0))), "C1")


def test_cross_replica_sum_c3_negative_ids() -> None:
    assert_refused(ops.CrossReplicaSum(groups((0, -2))), "C3")


def test_replica_id_c0_no_operands() -> None:
    assert_refused(ops.ReplicaId(), "C0")


def test_partition_id_c0_no_operands() -> None:
    assert_refused(ops.PartitionId(), "C0")


# --- tokens and transfers -----------------------------------------------------------------------------------


def test_after_all_c0_tokens() -> None:
    assert_refused(ops.AfterAll(), "C0", TOKEN, X)


@pytest.mark.parametrize("types", [(X,), (TOKEN, X), (TOKEN, TOKEN)])
def test_send_c0_arrays_and_a_token(types: Any) -> None:
    assert_refused(ops.Send(1, ((0, 1),)), "C0", *types)


def test_send_c0_something() -> None:
    with pytest.raises(ShapeError, match=r"send \[C0\].*got nothing"):
        Node(ops.Send(1))


def test_send_c1_pairs() -> None:
    assert_refused(ops.Send(1, ((0,),)), "C1", X, TOKEN)


def test_send_c2_a_source_twice() -> None:
    assert_refused(ops.Send(1, ((0, 1), (0, 2))), "C2", X, TOKEN)


def test_send_c3_a_target_twice() -> None:
    assert_refused(ops.Send(1, ((0, 1), (2, 1))), "C3", X, TOKEN)


def test_send_c4_negative_ids() -> None:
    assert_refused(ops.Send(1, ((-1, 1),)), "C4", X, TOKEN)


@pytest.mark.parametrize(("is_host", "kind"), [(False, 2), (True, 1), (True, 3)])
def test_send_c5_type_of_the_channel(is_host: bool, kind: int) -> None:
    assert_refused(ops.Send(1, (), is_host, kind), "C5", X, TOKEN)


@pytest.mark.parametrize("types", [(X,), (X, TOKEN)])
def test_recv_c0_a_token(types: Any) -> None:
    assert_refused(ops.Recv((X,), 1), "C0", *types)


def test_recv_c0_results_are_arrays() -> None:
    assert_refused(ops.Recv((X, TOKEN), 1), "C0", TOKEN)


def test_recv_c1_pairs() -> None:
    assert_refused(ops.Recv((X,), 1, ((0,),)), "C1", TOKEN)


def test_recv_c2_a_source_twice() -> None:
    assert_refused(ops.Recv((X,), 1, ((0, 1), (0, 2))), "C2", TOKEN)


def test_recv_c3_a_target_twice() -> None:
    assert_refused(ops.Recv((X,), 1, ((0, 1), (2, 1))), "C3", TOKEN)


def test_recv_c4_negative_ids() -> None:
    assert_refused(ops.Recv((X,), 1, ((-1, 1),)), "C4", TOKEN)


@pytest.mark.parametrize(("is_host", "kind"), [(False, 3), (True, 1), (True, 2)])
def test_recv_c5_type_of_the_channel(is_host: bool, kind: int) -> None:
    assert_refused(ops.Recv((X,), 1, (), is_host, kind), "C5", TOKEN)


def test_infeed_c0_a_token() -> None:
    assert_refused(ops.Infeed((X,)), "C0", X, TOKEN)


@pytest.mark.parametrize("layout", [((0,),), ((0, 0),), ((0, 1), (0, 1))])
def test_infeed_c2_layout(layout: Any) -> None:
    assert_refused(ops.Infeed((X,), "", layout), "C2", TOKEN)


def test_outfeed_c0_arrays_and_a_token() -> None:
    assert_refused(ops.Outfeed(), "C0", TOKEN, X)


# --- the functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.psum(1.0, "i"),
            ArgumentError,
            r"psum: wanted an axis with a name \(none here\), got 'i'",
        ),
        (lambda: lax.axis_index("i"), ArgumentError, "axis_index: wanted an axis with a name"),
        (lambda: lax.all_gather(1.0, "i"), ArgumentError, "all_gather: wanted an axis with a name"),
        (lambda: lax.all_gather([1.0], "i", replica_groups=[[0]]), InputError, "got both"),
        (lambda: lax.all_gather([1.0], axis_index_groups=[[0]]), InputError, "wanted axis_name beside"),
        (lambda: lax.all_reduce(1.0, lax.add, [0]), InputError, "a sequence of ints for replica_groups"),
        (lambda: lax.all_reduce(1.0, lax.add, [["a"]]), ArgumentError, "an int for replica_groups"),
        (lambda: lax.collective_permute(1.0, 3), ArgumentError, "source_target_pairs"),
        (lambda: lax.after_all(1.0), InputError, r"wanted a token, as lax.create_token\(\) makes one"),
        (lambda: lax.send(1.0, 2.0, 1), InputError, "send: wanted a token"),
        (lambda: lax.recv(3, None, 1), InputError, r"recv: wanted a pair \(shape, dtype\)"),
        (
            lambda: lax.infeed(None, ((), "f4"), partitions=2),
            InputError,
            "infeed: wanted None for partitions",
        ),
        (lambda: lax.outfeed(None, 1.0, partitions=2), InputError, "outfeed: wanted None for partitions"),
        (
            lambda: lax.reduce(np.ones(3), 0.0, lambda a, b: lax.cross_replica_sum(a + b), (0,)),
            InputError,
            "effects",
        ),
    ],
)
def test_other_calls_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# --- computations of parts ------------------------------------------------------------------------------------


ALONG_X = ((AxisRef("x"),),)


def parts(
    before: Any = ALONG_X, after: Any = ALONG_X, shape: Any = (2, 6), names: tuple[str, ...] = ("x",)
) -> Op:
    part = parameter(TensorType(shape, F32))
    mesh = Mesh((("x", 2), ("y", 3)))
    return ops.ManualComputation(mesh, (before,), (after,), names, Graph((part,), (part,)), lambda op, _: op)


def test_shard_map_c0_arrays() -> None:
    assert_refused(parts(), "C0", TOKEN)


@pytest.mark.parametrize("op", [parts(((),) * 3), parts(after=((),) * 3)])
def test_shard_map_c1_dimensions(op: Op) -> None:
    assert_refused(op, "C1")


def test_shard_map_c1_a_split_each() -> None:
    assert_refused(parts(), "C1", X, X)


@pytest.mark.parametrize(
    "axes", [(AxisRef("y"),), (AxisRef("x"), AxisRef("x")), (AxisRef("x", (1, 4)),), (AxisRef("z"),)]
)
def test_shard_map_c2_axes(axes: Any) -> None:
    assert_refused(parts((axes,), names=("x", "z") if axes[0].name == "z" else ("x",)), "C2")


def test_shard_map_c3_divisible() -> None:
    assert_refused(parts(), "C3", TensorType((3, 6), F32))


def test_shard_map_c4_parameters() -> None:
    assert_refused(parts(shape=(4, 6)), "C4")
    pair = parameter(PAIR)
    other = ops.ManualComputation(Mesh((("x", 2),)), (), ((),), (), Graph((), (pair,)), lambda op, _: op)
    with pytest.raises(ShapeError, match=r"shard_map \[C4\]: wanted arrays as results, got "):
        Node(other)
