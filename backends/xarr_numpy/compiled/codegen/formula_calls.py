"""Functions for formulas that a phase has many results of: quick code calls them, other code has a copy at each call.

LLVM takes as long for a call as for an instruction, and for a formula as for fifty.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from xarr.compiler.loop_ir.scalars import DType, Value, Values, in_order
from xarr_numpy.compiled.codegen.instructions import ATTRIBUTES, Block, register_type
from xarr_numpy.compiled.codegen.slow_paths import COPIED
from xarr_numpy.processor import PROCESSOR

#: Functions that are kept.
_KEPT: Final = 256


class Formula(NamedTuple):
    """A function of Values that computes a result; for each operand a constant's bytes, or None, and its type."""

    compute: Callable[..., Value]
    constants: tuple[tuple[bytes | None, DType], ...]
    operands: tuple[Value, ...] = ()

    def call(self, block: Block, value: Value) -> str:
        """Call the function in a block, which then defines it; the register of the result."""
        width = block.width_of(value)
        name, texts, declarations = _define(self.compute, self.constants, width)
        block.functions |= texts
        block.declarations |= declarations
        arguments = ", ".join([block.typed_operand(operand, width) for operand in self.operands])
        return block.line(f"call {register_type(value.dtype, width)} @{name}({arguments})")


@lru_cache(_KEPT)
def _define(
    compute: Callable[..., Value], constants: tuple[tuple[bytes | None, DType], ...], width: int
) -> tuple[str, dict[str, str], set[str]]:
    """The name of the function for so many lanes, the texts of what is to be defined, and declarations."""
    values, names = Values(), dict[Value, str]()
    operands = []
    for k, (constant, dtype) in enumerate(constants):
        operand = (
            values.argument(str(k), dtype) if constant is None else values.constant_of_bytes(constant, dtype)
        )
        operands.append(operand)
        if constant is None:
            names[operand] = f"%a{k}"
    root = compute(*operands)
    inner = Block(width)
    inner.emit([root], names)
    result = register_type(root.dtype, width)
    parameters = ", ".join([f"{register_type(x.dtype, width)} {name}" for x, name in names.items()])
    lines = "".join([f"  {line}\n" for line in (*inner.lines, f"ret {result} {inner.operand(root, width)}")])
    text = f"({parameters}) {COPIED} {ATTRIBUTES} {{\n{lines}}}"
    name = f"formula.{hashlib.sha256(f'{result}{text}'.encode()).hexdigest()[:16]}"
    return name, inner.functions | {name: f"define internal {result} @{name}{text}"}, inner.declarations


NO_FORMULAS: Final[Mapping[Value, Formula]] = MappingProxyType({})


def find_formulas(values: Iterable[Value]) -> Mapping[Value, Formula]:
    """The results of formulas among these values, where they are many, by functions that compute several of them.

    Those are left out that have parts in common, as sines and cosines of one angle.
    """
    roots = [value for value in values if value in value.values.formulas]
    if len(roots) < PROCESSOR.min_called_formulas:
        return NO_FORMULAS
    formulas: dict[Value, Formula] = {}
    for value in _without_common_parts(roots):
        compute, operands = value.values.formulas[value]
        # A formula may be another one for constants.
        constants = [(x.attribute if x.op == "constant" else None, x.dtype) for x in operands]
        formulas[value] = Formula(
            compute, tuple(constants), tuple([x for x in operands if x.op != "constant"])
        )
    counts = Counter([formula[:2] for formula in formulas.values()])
    return {value: formula for value, formula in formulas.items() if counts[formula[:2]] > 1}


def _without_common_parts(roots: Sequence[Value]) -> list[Value]:
    """Those of these results that share no more with another one than what is one operation away from an operand."""
    constants: set[Value] = set()
    for value in in_order(*roots):
        if value.op == "constant" or (value.operands and constants.issuperset(value.operands)):
            constants.add(value)
    owners: dict[Value, Value] = {}
    common: set[Value] = set()
    for root in roots:
        stack, operands = [root], root.values.formulas[root][1]
        while stack:
            value = stack.pop()
            inner = [each for each in value.operands if each not in constants and each not in operands]
            owner = owners.setdefault(value, root) if inner else root
            if owner is not root:
                common |= {owner, root}
            else:
                stack += [each for each in inner if owners.get(each) is not root]
    return [root for root in roots if root not in common]
