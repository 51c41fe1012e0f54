"""Numbers of a kernel that depend on the shapes of arrays: literals, or parameters.

With parameters a text serves all shapes whose loops have the same structure, so that a new shape compiles nothing.
Numbers that the structure has anyway stay literals: 0, 1 and -1, halves, and all of tiles, whose divisions are cheap
then.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from xarr.compiler.loop_ir.loops import Buffer, Loop, Memory
from xarr.compiler.loop_ir.scalars import COMPARISONS, INT64, Value, constant_of
from xarr_cupy.codegen.kernel_calls import SHARED_BYTES
from xarr_cupy.codegen.spelling import type_name

#: Operations on int64 that may be computed as int where operands and result fit.
INDEX_OPERATIONS: Final = frozenset({"add", "sub", "mul", "div", "rem", "neg", "select", "rarely", "convert"})
#: Those of which a constant operand may be a size, with the numbers that are none.
_LITERALS: Final = {
    **dict.fromkeys(("add", "sub", "mul", "select", "rarely"), (0, 1, -1)),
    **dict.fromkeys(("div", "rem"), (1, 2)),
    **dict.fromkeys(COMPARISONS, (0,)),
}
_LOGIC: Final = frozenset({"and", "or", "not"})
#: What is greater is the end of a type's range, and no size.
_MOST: Final = 2**62


class Sizes:
    """The numbers of one kernel.

    * `are_parameters` - whether those that depend on shapes are parameters,
    * `arguments` - of parameters, by their names, in the order in which the text needs them.
    """

    def __init__(self, are_parameters: bool) -> None:
        self.are_parameters = are_parameters
        self.arguments: dict[str, np.generic] = {}
        self._names: dict[Hashable, str] = {}
        self._counts: dict[str, int] = {}
        #: Values that are computed of indices and integers alone, and those of indices of tiles.
        self._of_indices: set[Value] = set()
        self._of_tiles: set[Value] = set()

    @property
    def parameters(self) -> list[str]:
        """The declarations of the parameters."""
        return [
            f"{type_name(each.dtype) if each.dtype.name != 'int32' else 'int'} {name}"
            for name, each in self.arguments.items()
        ]

    def number(self, number: int, word: str, key: Hashable, is_wide: bool = False) -> str:
        """A size: a literal, or a parameter named by a word.  Equal numbers of one key are one parameter."""
        if not self.are_parameters or number in (0, 1, -1):
            return f"{number}{'ll' if is_wide else ''}"
        fits = not is_wide and -(2**31) <= number < 2**31
        return self._parameter(np.int32(number) if fits else np.int64(number), word, key)

    def _parameter(self, number: Any, word: str, key: Hashable) -> str:
        known = (word, key, int(number), number.dtype)
        if known not in self._names:
            self._counts[word] = self._counts.get(word, -1) + 1
            name = f"{word}{self._counts[word] or ''}"
            self._names[known], self.arguments[name] = name, number
        return self._names[known]

    def constant(self, value: Value, position: int) -> str | None:
        """The parameter for a constant operand of a value, if that is a size."""
        operand = value.operands[position]
        literals = _LITERALS.get(value.op)
        if not self.are_parameters or operand.op != "constant" or literals is None:
            return None
        if operand.dtype.kind not in "iu" or operand.dtype.itemsize < 4:
            return None
        number = int(constant_of(operand))
        others = [each for each in value.operands if each.op != "constant"]
        if number in literals or abs(number) >= _MOST or not all(map(self.is_index, value.operands)):
            return None
        if others and all(each in self._of_tiles for each in others):
            return None
        known = constant_of(operand)
        if operand.dtype == INT64 and -(2**31) <= number < 2**31:
            known = np.int32(number)
        # A bound is compared and then selected: both times with what is brought into bounds.
        own = [each for each in others if each.dtype == operand.dtype]
        return self._parameter(known, _word(value), own[0] if own else (value, position))

    # --- what is known of values ---------------------------------------------------------------------------

    def is_index(self, value: Value) -> bool:
        """Whether a value is a constant, an index, an integer or a bool from elsewhere, or computed of such."""
        if value.op in ("load", "argument", "result"):
            return value.dtype.kind in "iub"
        return value.op in ("constant", "index") or value in self._of_indices

    def note(self, value: Value) -> None:
        """Remember what a value is computed of; of its operands that is known."""
        is_shift = value.op in ("shl", "shr") and value.dtype.kind == "i"
        if value.op not in INDEX_OPERATIONS | COMPARISONS | _LOGIC and not is_shift:
            return
        if all(map(self.is_index, value.operands)):
            self._of_indices.add(value)
        if all(each.op == "constant" or each in self._of_tiles for each in value.operands):
            self._of_tiles.add(value)

    def note_loop(self, loop: Loop) -> None:
        """Remember the index of a loop over a tile."""
        if loop.is_of_tile:
            self._of_tiles.add(loop.index)

    def elements_of(self, buffers: Sequence[Buffer]) -> list[int]:
        """The elements that a block reserves for buffers of its own.

        Where they depend on shapes these are powers of two, or what a block may have in all, each in its proportion:
        buffers of one size have the same elements then, however many they need.
        """
        assert all(each.memory is Memory.SHARED for each in buffers)
        exact = [each.size for each in buffers]
        if not self.are_parameters:
            return exact
        powers = [1 << (size - 1).bit_length() for size in exact]
        if _nbytes(buffers, powers) <= SHARED_BYTES:
            return powers
        needed = _nbytes(buffers, exact)
        return [max(size, size * SHARED_BYTES // needed // 16 * 16) for size in exact]


def _nbytes(buffers: Sequence[Buffer], elements: Sequence[int]) -> int:
    return sum(each.dtype.itemsize * count for each, count in zip(buffers, elements, strict=True))


def _word(value: Value) -> str:
    """The name of a size by what it does."""
    if value.op in ("div", "rem"):
        return "divisor"
    return {"mul": "factor", "add": "shift", "sub": "shift"}.get(value.op, "bound")
