"""Estimates of what collectives cost."""

import pytest

from xarr.distributed.costs import (
    ALGORITHMS,
    LINKS,
    Link,
    direct_seconds,
    gather_seconds,
    own_seconds,
    ring_seconds,
    tree_seconds,
)
from xarr.errors import ValueRangeError

UNIT = Link("unit", latency=1.0, bandwidth=1.0, overhead=1.0, fold=1.0)


def test_costs_of_a_link_on_which_everything_takes_a_second() -> None:
    assert direct_seconds(4, 8, UNIT) == 2 + 6 + 12 + 6
    assert ring_seconds(4, 8, UNIT) == 12 + 12 + 6
    assert tree_seconds(5, 8, UNIT) == 3 * 18
    assert gather_seconds(4, 8, UNIT) == 4 + 48
    assert gather_seconds(16, 1, UNIT) == 8 + 30


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("n", [2, 8, 64, 4096])
def test_direct_messages_win_over_a_ring_and_a_tree_over_both_for_little(link: Link, n: int) -> None:
    for nbytes in (8, 2**20, 2**28):
        assert direct_seconds(n, nbytes, link) <= ring_seconds(n, nbytes, link)
    if n >= 64:
        assert tree_seconds(n, 8, link) < direct_seconds(n, 8, link)
        assert own_seconds(n, 8, link) < direct_seconds(n, 8, link)
    assert own_seconds(n, 2**20, link) == direct_seconds(n, 2**20, link)


def test_one_replica_moves_nothing() -> None:
    assert [seconds(1, 2**20, UNIT) for seconds in ALGORITHMS.values()] == [2.0, 0.0, 0.0]


@pytest.mark.parametrize("field", ["latency", "bandwidth", "overhead", "fold"])
def test_a_link_that_is_no_link_is_refused(field: str) -> None:
    values = {"latency": 1.0, "bandwidth": 1.0, "overhead": 1.0, "fold": 1.0, field: 0.0}
    with pytest.raises(ValueRangeError, match=f"wanted a positive {field}, got 0.0"):
        Link("none", **values)
