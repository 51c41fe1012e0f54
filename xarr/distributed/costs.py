"""Seconds that collectives take on a link that is described: what an algorithm costs before it is run.

A replica that sends messages of S bytes over a link waits latency + S / bandwidth for the last of them, and spends
overhead on posting each.  An all-reduce of S bytes at n replicas is one of

* direct, which xarr does: all-to-all of parts, a fold, all-gather; all messages of a round are posted at once:
  2 latency + 2 (n - 1) overhead + 2 (n - 1) / n S / bandwidth + (n - 1) / n S / fold,
* ring: 2 (n - 1) (latency + overhead) + 2 (n - 1) / n S / bandwidth + (n - 1) / n S / fold,
* tree, by doubling: ceil(log2(n)) (latency + overhead + S / bandwidth + S / fold).

A ring and a tree combine operands in another order than that of the group, so they are no choices for what must have
the same bits everywhere; xarr gathers small arrays by doubling, and folds what it has gathered.  Source: R. Thakur,
R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Final

from xarr.base.frozen_dataclasses import record
from xarr.communication.algorithms import DIRECT_MEMBERS, is_small
from xarr.errors import ValueRangeError


@record
class Link:
    """A connection of each replica with the others: seconds, and bytes a second in one direction.

    * `latency` - until the first byte arrives, `bandwidth` - of one replica, `overhead` - to post a message,
    * `fold` - bytes of operands that a replica combines in a second.
    """

    name: str
    latency: float
    bandwidth: float
    overhead: float
    fold: float = 12e9

    def __post_init__(self) -> None:
        for what in ("latency", "bandwidth", "overhead", "fold"):
            if not getattr(self, what) > 0:
                raise ValueRangeError(f"Link: wanted a positive {what}, got {getattr(self, what)!r}")


#: Links for estimates.  The first was measured on one machine, the others are what their kind is sold for.
LINKS: Final = (
    Link("shared memory", 1e-6, 11e9, 0.5e-6),
    Link("10 GbE, TCP", 30e-6, 1.1e9, 5e-6),
    Link("25 GbE, RoCE", 4e-6, 2.9e9, 1e-6),
    Link("200 Gb/s InfiniBand", 2e-6, 23e9, 0.5e-6),
)


def direct_seconds(n: int, nbytes: int, link: Link) -> float:
    """The time of an all-reduce by two rounds of messages of all to all."""
    moved = (n - 1) / n * nbytes
    return 2 * link.latency + 2 * (n - 1) * link.overhead + 2 * moved / link.bandwidth + moved / link.fold


def ring_seconds(n: int, nbytes: int, link: Link) -> float:
    """The time of an all-reduce around a ring."""
    moved = (n - 1) / n * nbytes
    rounds = 2 * (n - 1) * (link.latency + link.overhead)
    return rounds + 2 * moved / link.bandwidth + moved / link.fold


def tree_seconds(n: int, nbytes: int, link: Link) -> float:
    """The time of an all-reduce by doubling, in which every replica folds everything."""
    step = link.latency + link.overhead + nbytes / link.bandwidth + nbytes / link.fold
    return ceil(log2(n)) * step if n > 1 else 0.0


def gather_seconds(n: int, nbytes: int, link: Link) -> float:
    """The time of an all-reduce that gathers all operands, as xarr does with small ones, and folds them."""
    is_direct = n <= DIRECT_MEMBERS
    posts = (
        link.latency + (n - 1) * link.overhead
        if is_direct
        else ceil(log2(n)) * (link.latency + link.overhead)
    )
    return posts + (n - 1) * nbytes * (1 / link.bandwidth + 1 / link.fold)


#: By the name of an algorithm, the seconds of an all-reduce of so many bytes at n replicas.
ALGORITHMS: Final[dict[str, Callable[[int, int, Link], float]]] = {
    "direct": direct_seconds,
    "ring": ring_seconds,
    "tree": tree_seconds,
}


def own_seconds(n: int, nbytes: int, link: Link) -> float:
    """The time that xarr's own algorithm takes, by the size of the operand."""
    return gather_seconds(n, nbytes, link) if is_small(n, nbytes) else direct_seconds(n, nbytes, link)
