"""The communicator in use, the world of one member, and grids of replicas and partitions."""

import contextvars

import ml_dtypes
import numpy as np
import pytest

from xarr.communication.communicator import (
    CollectiveCall,
    Communicator,
    Grid,
    SingleMember,
    current_communicator,
    current_grid,
    describe_arrays,
    use_communicator,
)
from xarr.errors import CommunicationError


class Pair(SingleMember):
    """The second member of two, which never sends."""

    rank = 1
    size = 2


def test_a_program_of_its_own_is_in_use_by_default() -> None:
    assert (current_communicator().rank, current_communicator().size) == (0, 1)
    assert current_grid() == Grid(1, 1)


def test_the_innermost_communicator_is_in_use_in_its_own_context() -> None:
    outer, inner = Pair(), SingleMember()
    with use_communicator(outer) as used:
        assert used is current_communicator() is outer
        elsewhere = contextvars.Context().run(current_communicator)
        with use_communicator(inner):
            assert current_communicator() is inner
        assert current_communicator() is outer
    assert elsewhere is current_communicator() is not outer


def test_a_grid_divides_the_world_in_replicas_of_partitions() -> None:
    with use_communicator(Pair(), num_partitions=2):
        assert current_grid() == Grid(1, 2)
    grid = Grid(2, 3)
    assert [grid.coordinates_of(rank) for rank in range(6)] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    assert [grid.rank_of(*grid.coordinates_of(rank)) for rank in range(6)] == list(range(6))


@pytest.mark.parametrize("partitions", [0, 3])
def test_partitions_that_do_not_divide_the_world_are_refused(partitions: int) -> None:
    refused = use_communicator(Pair(), num_partitions=partitions)
    with pytest.raises(CommunicationError, match=f"divides a world of 2 members, got {partitions}"), refused:
        pass


def test_one_member_receives_what_it_sends_itself() -> None:
    world, out = SingleMember(), np.zeros(3, ml_dtypes.bfloat16)
    with world.collective(CollectiveCall("all_gather", "bf16[3]", (0,))):
        world.exchange({0: np.arange(3).astype(ml_dtypes.bfloat16)}, {0: out})
    assert out.tolist() == [0, 1, 2]


@pytest.mark.parametrize("recvs", [{1: np.zeros(2)}, {0: np.zeros(2)}])
def test_one_member_has_nobody_else_to_receive_from(recvs: dict[int, np.ndarray]) -> None:
    with pytest.raises(CommunicationError, match="a program of one member"):
        SingleMember().exchange({}, recvs)


def test_what_was_sent_first_is_received_first_and_is_a_copy() -> None:
    world, sent, out = SingleMember(), np.array([1.0, 2.0]), np.zeros(2)
    world.send(sent, 0, channel=3)
    sent[:] = 0
    world.send(sent, 0, channel=3)
    world.recv(out, 0, channel=3)
    assert out.tolist() == [1, 2]


def test_a_receipt_of_what_nobody_sends_is_an_error() -> None:
    world = SingleMember()
    world.send(np.zeros(1), 0, channel=1)
    with pytest.raises(CommunicationError, match="nothing was sent by member 0 through channel 2"):
        world.recv(np.zeros(1), 0, channel=2)
    with pytest.raises(CommunicationError, match="no member 1"):
        world.send(np.zeros(1), 1, channel=1)


def test_host_queues_keep_the_order() -> None:
    world, wanted = SingleMember(), [(np.dtype("i4"), (2,))]
    world.feed([np.array([1, 2], "i4")])
    world.feed([np.array([3, 4], "i4")])
    assert [world.take_infeed(wanted)[0].tolist() for _ in range(2)] == [[1, 2], [3, 4]]
    world.put_outfeed([np.array(5.0)])
    world.put_outfeed([])
    assert [len(world.fetch()) for _ in range(2)] == [1, 0]


def test_queues_that_hold_nothing_or_other_arrays_are_errors() -> None:
    world = SingleMember()
    with pytest.raises(CommunicationError, match=r"wanted \(int32\[2\]\), and nothing waits"):
        world.take_infeed([(np.dtype("i4"), (2,))])
    world.feed([np.zeros(3, "i4")])
    with pytest.raises(CommunicationError, match=r"wanted \(int32\[2\]\), and \(int32\[3\]\) waits"):
        world.take_infeed([(np.dtype("i4"), (2,))])
    with pytest.raises(CommunicationError, match="no outfeed has put anything out"):
        world.fetch()


def test_a_world_that_only_exchanges_says_what_it_lacks() -> None:
    class Exchanging(Communicator):
        rank = 0
        size = 4

        def exchange(self, sends: object, recvs: object) -> None: ...

    world, array = Exchanging(), np.zeros(1)
    fast = (world.all_gather((0,), array, array), world.all_to_all((0,), array, array))
    assert not any((*fast, world.all_reduce((0,), "add", array, array)))
    for call in (
        lambda: world.send(array, 1, 7),
        lambda: world.recv(array, 1, 7),
        lambda: world.feed([]),
        lambda: world.take_infeed([]),
        lambda: world.put_outfeed([]),
        world.fetch,
    ):
        with pytest.raises(CommunicationError, match=r"communicator"):
            call()


def test_types_of_arrays_are_described_in_one_line() -> None:
    assert describe_arrays([(np.dtype("f4"), (2, 3)), (np.dtype("?"), ())]) == "(float32[2,3], bool[])"
