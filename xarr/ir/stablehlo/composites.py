"""Readers for composites: operations of xarr that StableHLO lacks, which are printed with their definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.ciphers import PhiloxPair, ThreefryBits
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.systems import ERRORS
from xarr.ir.stablehlo.parsed_operation import Site

Builder = Callable[[Site], Node | tuple[Node, ...]]


def op_builder(op: Callable[[Site], Op], arity: int = 1) -> Builder:
    """The builder of a call that is an operation as it stands, of `arity` operands."""

    def build(site: Site) -> tuple[Node, ...]:
        return unpack_results(Node(op(site), site.take(arity)))

    return build


#: By their names the number of operands, and the op for the attributes.
_COMPOSITES: Final[dict[str, tuple[int, Callable[[Site], Op]]]] = {
    "xarr.solve": (2, lambda site: ops.Solve()),
    "xarr.slogdet": (1, lambda site: ops.LogDeterminant()),
    "xarr.check": (2, lambda site: ops.Check(_text(site, "message"), _error(site))),
    "xarr.threefry2x32_bits": (4, lambda site: ThreefryBits(_text(site, "form"))),
    "xarr.philox4x32_pair": (6, lambda site: PhiloxPair(_integer(site, "index"))),
}


def _error(site: Site) -> str:
    """The class of error that a check raises, if the text says another than the usual one."""
    if "raises" not in site.record("composite_attributes"):
        return ops.Check.raises
    name = _text(site, "raises")
    if name not in ERRORS:
        site.fail(f"expected one of {', '.join(ERRORS)} as raises, got {name!r}")
    return name


def _text(site: Site, name: str) -> str:
    """An attribute of a composite that is a text."""
    value = site.record("composite_attributes").get(name)
    if not isinstance(value, str):
        site.fail(f"expected a string as {name}, got {value!r}")
    return value


def _integer(site: Site, name: str) -> int:
    """An attribute of a composite that is an integer."""
    return site.as_integer(name, site.record("composite_attributes").get(name))


def composite(site: Site) -> Node | tuple[Node, ...]:
    """An operation of xarr that is defined in terms of others, or else what the composite stands for."""
    if site.has("name") and site.word("name") in _COMPOSITES:
        arity, op = _COMPOSITES[site.word("name")]
        return op_builder(op, arity)(site)
    return site.function("decomposition")
