"""Tokens, and transfers between a program, other members of its world, and its host.

A token stands for what came before: an operation that takes one comes after it.  In xarr operations with effects come
in the order of the program anyway, so tokens serve programs that were written with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xarr import tree
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import InputError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.effects import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE
from xarr.ir.types import TokenType
from xarr.lax.collectives import id_rows
from xarr.lax.core import flag, integer
from xarr.lax.custom_calls import flatten_types
from xarr.lax.tracing import argument_nodes, results_of
from xarr.runtime.handles import Handle

__all__ = ["after_all", "create_token", "infeed", "outfeed", "recv", "send"]

Pairs = Sequence[tuple[int, int]]


def _token(name: str, token: Any) -> Node:
    if isinstance(token, Handle) and token._node.type is TokenType():
        return token._node
    if token is None:
        return create_token()._node
    raise InputError(f"{name}: wanted a token, as lax.create_token() makes one, got {token!r}")


@names_errors
def create_token(_: Any = None) -> Array:
    """A token that follows nothing.  Source: jax.lax.create_token."""
    return results_of(ops.AfterAll(), (), 1)[0]


@names_errors
def after_all(*operands: Array) -> Array:
    """A token that comes after all of these tokens.

    Raises InputError for what is no token.  Source: XLA's AfterAll, jax.lax.after_all.
    """
    return results_of(ops.AfterAll(), [_token("after_all", each) for each in operands], 1)[0]


@names_errors
def send(
    x: Any,
    token: Array | None,
    channel_id: int,
    source_target_pairs: Pairs = (),
    is_host_transfer: bool = False,
) -> Array:
    """Send `x`, a pytree of arrays, through a channel, without waiting until it is received; returns a token.

    token: what it comes after; None for nothing.
    source_target_pairs: which member sends to which, by ranks; a member that is no source sends nothing.
    is_host_transfer: put it out to the host instead, as `outfeed` does.

    Raises ShapeError [C1 to C4] for other pairs.  Source: XLA's Send.
    """
    nodes = argument_nodes("send", tree.leaves(x))
    is_host = flag("send", "is_host_transfer", is_host_transfer)
    op = ops.Send(
        integer("send", "channel_id", channel_id),
        id_rows("send", "source_target_pairs", source_target_pairs),
        is_host,
        DEVICE_TO_HOST if is_host else DEVICE_TO_DEVICE,
    )
    return results_of(op, (*nodes, _token("send", token)), 1)[0]


@names_errors
def recv(
    result_types: Any,
    token: Array | None,
    channel_id: int,
    source_target_pairs: Pairs = (),
    is_host_transfer: bool = False,
) -> tuple[Any, Array]:
    """The arrays that were sent to this member through a channel, and a token; waits for them.

    result_types: what is received: a pair (shape, dtype), or anything with `shape` and `dtype`, or a tuple, list or
        dict of those.  A member that is no target gets zeros.
    source_target_pairs: which member sends to which, as `send` had them.
    is_host_transfer: take what the host fed instead, as `infeed` does.

    Raises ShapeError [C1 to C4] for other pairs, CommunicationError, when it runs, if nobody sends.
    Source: XLA's Recv.
    """
    declared, structure = flatten_types("recv", result_types)
    is_host = flag("recv", "is_host_transfer", is_host_transfer)
    op = ops.Recv(
        declared,
        integer("recv", "channel_id", channel_id),
        id_rows("recv", "source_target_pairs", source_target_pairs),
        is_host,
        HOST_TO_DEVICE if is_host else DEVICE_TO_DEVICE,
    )
    *results, last = results_of(op, (_token("recv", token),), len(declared) + 1)
    return tree.unflatten(structure, results), last


@names_errors
def infeed(token: Array | None, shape: Any, partitions: None = None) -> tuple[Any, Array]:
    """The arrays that the host fed first, and a token; waits for them.

    shape: what they are: a pair (shape, dtype), or anything with `shape` and `dtype`, or a tuple, list or dict of
        those.

    Raises CommunicationError, when it runs, for arrays of other types, and if nothing was fed.  Source: XLA's Infeed.
    """
    if partitions is not None:
        raise InputError(f"infeed: wanted None for partitions, got {partitions!r}")
    declared, structure = flatten_types("infeed", shape)
    *results, last = results_of(ops.Infeed(declared), (_token("infeed", token),), len(declared) + 1)
    return tree.unflatten(structure, results), last


@names_errors
def outfeed(token: Array | None, xs: Any, partitions: None = None) -> Array:
    """Put `xs`, a pytree of arrays, out to the host, without waiting until it takes them; returns a token.

    Source: XLA's Outfeed.
    """
    if partitions is not None:
        raise InputError(f"outfeed: wanted None for partitions, got {partitions!r}")
    nodes = argument_nodes("outfeed", tree.leaves(xs))
    return results_of(ops.Outfeed(), (*nodes, _token("outfeed", token)), 1)[0]
