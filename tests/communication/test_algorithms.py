"""Collectives above `exchange`, on threads that exchange and nothing more, and on threads that share memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.collectives import Combine, call, fold_by, halve_and_add
from xarr.communication import algorithms
from xarr.communication.communicator import Array, Communicator, current_communicator, use_communicator
from xarr.distributed.simulation import simulate
from xarr.distributed.threads import ThreadCommunicator

SIZES = (1, 2, 3, 4, 8, 11)


class ExchangesOnly(ThreadCommunicator):
    """A communicator that has the one required method."""

    def __init__(self, other: ThreadCommunicator) -> None:
        super().__init__(other._world, other.rank)

    def all_gather(self, members: Sequence[int], operand: Array, out: Array) -> bool:
        return False

    @contextmanager
    def share(
        self, members: Sequence[int], read: tuple[Array, ...], written: tuple[Array, ...] = ()
    ) -> Iterator[None]:
        yield None


Program = Callable[[Communicator], Any]


@pytest.fixture(params=["threads", "exchange"])
def run(request: pytest.FixtureRequest) -> Callable[[int, Program], list[Any]]:
    """Run a program at n replicas that share memory, or that exchange."""

    def run_at(n: int, program: Program) -> list[Any]:
        def replica() -> Any:
            own = current_communicator()
            assert isinstance(own, ThreadCommunicator)
            communicator = own if request.param == "threads" else ExchangesOnly(own)
            with use_communicator(communicator):
                return program(communicator)

        return simulate(n, replica)

    return run_at


def _operand(rank: int, shape: tuple[int, ...], dtype: Any) -> Array:
    random = np.random.default_rng(rank)
    values = random.integers(-9, 9, shape) if np.dtype(dtype).kind in "iub" else random.standard_normal(shape)
    return np.asarray(values).astype(dtype)


def _fold(combine: Combine, operands: Sequence[Array]) -> Array:
    return reduce(lambda left, right: np.asarray(combine(left, right), left.dtype), operands)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7, 5), (40, 50), (300, 301)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex64, ml_dtypes.bfloat16])
def test_all_reduce_folds_from_the_left_in_group_order(
    run: Callable[..., Any], n: int, shape: tuple[int, ...], dtype: Any
) -> None:
    members = tuple(reversed(range(n)))
    operands = [_operand(rank, shape, dtype) for rank in range(n)]

    def program(communicator: Communicator) -> Array:
        mine = operands[communicator.rank]
        with communicator.collective(call("all_reduce", mine, members)):
            return algorithms.all_reduce(communicator, members, [mine], [fold_by(halve_and_add)])[0]

    wanted = _fold(halve_and_add, [operands[rank] for rank in members])
    for got in run(n, program):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("count", [3, 3000, 70_000])
def test_several_operands_of_several_types_go_in_one_exchange(
    run: Callable[..., Any], n: int, count: int
) -> None:
    types = (np.int8, np.float64, np.float16)
    operands = [[_operand(rank, (count + k,), t) for k, t in enumerate(types)] for rank in range(n)]
    folds = [fold_by(np.add), fold_by(halve_and_add), fold_by(np.maximum)]
    members = tuple(range(n))

    def program(communicator: Communicator) -> list[Array]:
        mine = operands[communicator.rank]
        with communicator.collective(call("all_reduce", mine[0])):
            return algorithms.all_reduce(communicator, members, mine, folds)

    for results in run(n, program):
        for k, combine in enumerate((np.add, halve_and_add, np.maximum)):
            wanted = _fold(combine, [each[k] for each in operands])
            assert results[k].tobytes() == wanted.tobytes()


@pytest.mark.sampled
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 2), (5000,), (70_000,)])
def test_gathering_and_scattering(run: Callable[..., Any], n: int, shape: tuple[int, ...]) -> None:
    members = tuple(reversed(range(n)))
    rows = [_operand(rank, (n, *shape), np.float32) for rank in range(n)]

    def program(communicator: Communicator) -> tuple[Array, ...]:
        mine = rows[communicator.rank]
        with communicator.collective(call("all_gather", mine, members)):
            stacked = algorithms.all_gather(communicator, members, mine[0, ...])
        with communicator.collective(call("all_to_all", mine, members)):
            swapped = algorithms.all_to_all(communicator, members, mine)
        with communicator.collective(call("reduce_scatter", mine, members)):
            scattered = algorithms.reduce_scatter(communicator, members, mine, fold_by(halve_and_add))
        with communicator.collective(call("collective_broadcast", mine, members)):
            sent = algorithms.broadcast(communicator, members, mine)
        return stacked, swapped, scattered, sent

    for rank, (stacked, swapped, scattered, sent) in enumerate(run(n, program)):
        own = members.index(rank)
        np.testing.assert_array_equal(stacked, np.stack([rows[each][0] for each in members]))
        np.testing.assert_array_equal(swapped, np.stack([rows[each][own] for each in members]))
        assert scattered.tobytes() == _fold(halve_and_add, [rows[each][own] for each in members]).tobytes()
        np.testing.assert_array_equal(sent, rows[members[0]])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_who_is_no_target_of_a_permutation_gets_zeros(run: Callable[..., Any], n: int) -> None:
    pairs = [(rank, rank + 1) for rank in range(n - 1)]

    def program(communicator: Communicator) -> Array:
        operand = np.full(3, communicator.rank + 1.0)
        with communicator.collective(call("collective_permute", operand)):
            return algorithms.permute(communicator, operand, pairs)

    assert [result.tolist() for result in run(n, program)] == [[float(rank)] * 3 for rank in range(n)]


def test_groups_of_several_sizes_at_once(run: Callable[..., Any]) -> None:
    groups = ((2, 0), (1, 4, 3))

    def program(communicator: Communicator) -> float:
        members = next(group for group in groups if communicator.rank in group)
        operand = np.asarray(float(communicator.rank))
        with communicator.collective(call("all_reduce", operand, members)):
            return float(algorithms.all_reduce(communicator, members, [operand], [fold_by(np.add)])[0])

    assert run(5, program) == [2.0, 8.0, 2.0, 8.0, 8.0]


def test_an_operand_may_change_when_the_call_returns(run: Callable[..., Any]) -> None:
    members = (0, 1, 2)

    def program(communicator: Communicator) -> float:
        total = 0.0
        operand = np.ones(30_000)
        for step in range(30):
            with communicator.collective(call("all_reduce", operand)):
                total += algorithms.all_reduce(communicator, members, [operand], [fold_by(np.add)])[0].sum()
            operand[...] = step
        return total

    assert run(3, program) == [90_000.0 * (1 + sum(range(29)))] * 3


@pytest.mark.parametrize(
    ("members", "nbytes", "wanted"),
    [
        *((1, 2**12, True), (1, 2**12 + 1, False), (2, 2**17, True), (2, 2**17 + 1, False)),
        *((3, 2**16, True), (3, 2**16 + 1, False), (5, 0, True)),
        *((4096, 2**12, True), (4096, 2**12 + 1, False)),
    ],
)
def test_what_is_small_depends_on_how_many_gather_it(members: int, nbytes: int, wanted: bool) -> None:
    assert algorithms.is_small(members, nbytes) == wanted


def test_a_native_reduction_is_asked_for_by_name() -> None:
    asked: list[str] = []

    class Native(ThreadCommunicator):
        def all_reduce(self, members: Sequence[int], operation: str, operand: Array, out: Array) -> bool:
            asked.append(operation)
            out[...] = 7
            return True

    def replica() -> list[Array]:
        own = current_communicator()
        assert isinstance(own, ThreadCommunicator)
        native, operand = Native(own._world, own.rank), np.ones(2)
        with native.collective(call("all_reduce", operand)):
            folds = [fold_by(np.add)] * 2
            return algorithms.all_reduce(native, (0, 1), [operand, operand], folds, ["add", None])

    for first, second in simulate(2, replica):
        assert (first.tolist(), second.tolist()) == ([7.0, 7.0], [2.0, 2.0])
    assert asked == ["add", "add"]


@pytest.mark.parametrize(
    "dtype", [np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16), np.dtype(np.complex128)]
)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 21])
def test_blocks_are_folded_whole_and_in_part(size: int, dtype: np.dtype[Any]) -> None:
    rows = [np.arange(30).astype(dtype), np.arange(30, 60).astype(dtype)]
    others = [np.zeros(30, dtype), np.zeros(30, dtype)]
    sizes = list[int]()

    def add(blocks: Sequence[Array], out: Array) -> None:
        sizes.append(out.size)
        np.subtract(*blocks, out=out)

    out, fold = np.zeros(size, dtype), algorithms.Fold(add)
    algorithms._fold_blocks(8 * dtype.itemsize, fold, rows, 3, out, others)
    assert sizes == [8] * (size // 8) + [size % 8] * (size % 8 > 0)
    wanted = (rows[0] - rows[1])[3 : 3 + size]
    assert (out == wanted).all()
    for other in others:
        assert (other[3 : 3 + size] == wanted).all()
        assert not other[:3].any() and not other[3 + size :].any()
