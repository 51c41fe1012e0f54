"""Tokens, and transfers between a program, other members of its world, and its host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xarr.communication.process_groups import Rows, Strategy
from xarr.ir.graph import Node
from xarr.ir.op import Op, operation
from xarr.ir.ops.collectives import Collective, assemble, check_pairs, id_table
from xarr.ir.stablehlo.literals import ints, quote
from xarr.ir.types import Ints, TensorType, TokenType, TupleType, Type

if TYPE_CHECKING:
    from xarr.ir.stablehlo.printer import Printer

#: The types of channels: between members, and from and to the host.
DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3


@operation
class AfterAll(Op):
    """A token that comes after others, or one that follows nothing.

    * C0: the operands are tokens.
    """

    name = "stablehlo.after_all"

    @property
    def is_pure(self) -> bool:
        return False

    @property
    def is_ordered(self) -> bool:
        return True

    def infer(self, *operands: Type) -> Type:
        for operand in operands:
            if operand is not TokenType():
                self.fail("C0", f"wanted tokens, got {operand.short()}")
        return TokenType()

    def assembly(self, node: Node, printer: Printer) -> str:
        return f"{self.name} {printer.names(node.operands)} : {node.type}"


class _Transfer(Collective):
    """Base of transfers, the last operand of which is a token, and which give one as their last result."""

    def arrays(self, operands: tuple[Type, ...]) -> tuple[TensorType, ...]:
        """The operands before the token, which must be there."""
        if not operands or operands[-1] is not TokenType():
            got = operands[-1].short() if operands else "nothing"
            self.fail("C0", f"wanted a token as the last operand, got {got}")
        return self.tensors(operands[:-1])


class _ThroughChannel(_Transfer):
    """Base of transfers through a channel.

    * `source_target_pairs` - which member sends to which, by ranks, as XLA's device ids; empty for a transfer from or
      to the host.
    """

    source_target_pairs: Rows
    is_host_transfer: bool

    @property
    def strategy(self) -> Strategy:
        return Strategy.FLATTENED_IDS

    def check_channel(self, host: int) -> None:
        check_pairs(self, self.source_target_pairs)
        wanted = host if self.is_host_transfer else DEVICE_TO_DEVICE
        if self.channel_type != wanted:
            self.fail(
                "C5",
                f"wanted a channel of the type {wanted} where is_host_transfer is {self.is_host_transfer}, "
                f"got {self.channel_type}",
            )

    def items(self) -> Iterable[str]:
        if self.is_host_transfer:
            yield "is_host_transfer = true"
        if self.source_target_pairs:
            yield id_table("source_target_pairs", self.source_target_pairs)


@operation
class Send(_ThroughChannel):
    """Send arrays through a channel, to another member or to the host, without waiting until they are received.

    Operands: the arrays and a token; the result is a token.

    * C0: the last operand is a token, the others are arrays.
    * C1: each pair is a source and a target.
    * C2: no source stands in two pairs.
    * C3: no target stands in two pairs.
    * C4: ids are not negative.
    * C5: the channel's type is that of such a transfer.
    """

    channel_id: int
    source_target_pairs: Rows = ()
    is_host_transfer: bool = False
    channel_type: int = DEVICE_TO_DEVICE
    name = "stablehlo.send"

    def infer(self, *operands: Type) -> Type:
        self.arrays(operands)
        self.check_channel(DEVICE_TO_HOST)
        return TokenType()


@operation
class Recv(_ThroughChannel):
    """Receive arrays through a channel, from another member or from the host, and wait for them.

    The operand is a token; the results are the arrays and a token.  A member that is no target gets zeros.

    * C0: there is one operand, a token; the results declared are arrays.
    * C1: each pair is a source and a target.
    * C2: no source stands in two pairs.
    * C3: no target stands in two pairs.
    * C4: ids are not negative.
    * C5: the channel's type is that of such a transfer.
    """

    result_types: tuple[Type, ...]
    channel_id: int
    source_target_pairs: Rows = ()
    is_host_transfer: bool = False
    channel_type: int = DEVICE_TO_DEVICE
    name = "stablehlo.recv"

    def infer(self, *operands: Type) -> Type:
        if self.arrays(operands):
            self.fail("C0", "wanted a token alone")
        self.check_channel(HOST_TO_DEVICE)
        return received_type(self, self.result_types)


def received_type(op: Op, types: tuple[Type, ...]) -> Type:
    """The type of what gives arrays and then a token."""
    return TupleType((*op.tensors(types), TokenType())) if types else TokenType()


class _HostQueue(_Transfer):
    """Base of transfers through a queue of the host."""

    channel_id = channel_type = 0

    def assembly(self, node: Node, printer: Printer) -> str:
        return assemble(self, node, printer, list(self.items()))


@operation
class Infeed(_HostQueue):
    """The arrays that the host fed first, and waits for them.

    The operand is a token; the results are the arrays and a token.

    * C0: there is one operand, a token; the results declared are arrays.
    * C2: a layout, if there is one, has an order of dimensions for each array.
    """

    result_types: tuple[Type, ...]
    infeed_config: str = ""
    layout: tuple[Ints, ...] = ()
    name = "stablehlo.infeed"

    def infer(self, *operands: Type) -> Type:
        if self.arrays(operands):
            self.fail("C0", "wanted a token alone")
        result = received_type(self, self.result_types)
        ranks = [type.rank for type in self.tensors(self.result_types)]
        if self.layout and [sorted(each) for each in self.layout] != [list(range(rank)) for rank in ranks]:
            self.fail("C2", f"wanted an order of the dimensions of each array, got {self.layout}")
        return result

    def items(self) -> Iterable[str]:
        yield f"infeed_config = {quote(self.infeed_config)}"
        if self.layout:
            yield f"layout = [{', '.join(map(ints, self.layout))}]"


@operation
class Outfeed(_HostQueue):
    """Put arrays out to the host, without waiting until it takes them.

    Operands: the arrays and a token; the result is a token.

    * C0: the last operand is a token, the others are arrays.
    """

    outfeed_config: str = ""
    name = "stablehlo.outfeed"

    def infer(self, *operands: Type) -> Type:
        self.arrays(operands)
        return TokenType()

    def items(self) -> Iterable[str]:
        yield f"outfeed_config = {quote(self.outfeed_config)}"
