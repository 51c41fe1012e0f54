"""Functions of phases with placeholders for numbers of iterations, offsets and strides.

Kernels that differ in such numbers alone have one text, and may share machine code that reads them from an array:
loops over what is left of a matrix, whose shapes change from step to step, are compiled once.  The numbers decide
which element is read and never what is computed of it, so the bits are those of code with constants.

* `%n3` - number 3,
* `%s3` - that number in all lanes of a vector,
* `%l3` - that number times 0, 1, 2 … in the lanes of a vector.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_PLACEHOLDER: Final = re.compile(r"%([nsl])(\d+)\b")
_ENTRY: Final = "entry:\n"


@dataclass(frozen=True)
class Template:
    """The function of a phase.

    * `text` - its definition, with placeholders,
    * `numbers` - what they stand for,
    * `width` - lanes of its vectors,
    * `slot` - the slot of its table of buffers behind those of the buffers.
    """

    text: str
    numbers: tuple[int, ...]
    width: int
    slot: int

    def with_constants(self) -> str:
        """The definition with the numbers as constants."""
        return _PLACEHOLDER.sub(self._literal, self.text)

    def _literal(self, match: re.Match[str]) -> str:
        number = self.numbers[int(match[2])]
        match match[1]:
            case "n":
                return str(number)
            case "s":
                return f"splat (i64 {number})"
            case _:
                return _vector([lane * number for lane in range(self.width)])

    def with_arguments(self, first: int) -> str:
        """The definition with the numbers read from an array of int64, in which they begin at `first`.

        Its address lies in the slot of the table of buffers.
        """
        lines = [
            f"%n.slot = getelementptr inbounds ptr, ptr %buffers, i64 {self.slot}",
            "%n.all = load ptr, ptr %n.slot, align 8",
        ]
        for kind, k in sorted({(kind, int(k)) for kind, k in _PLACEHOLDER.findall(self.text)}):
            lines += self._argument(kind, k, first)
        head, entry, body = self.text.partition(_ENTRY)
        return "".join([head, entry, *[f"  {line}\n" for line in lines], body])

    def _argument(self, kind: str, k: int, first: int) -> list[str]:
        name, vector = f"%{kind}{k}", f"<{self.width} x i64>"
        number = name if kind == "n" else f"{name}.one"
        lines = [
            f"{name}.at = getelementptr inbounds i64, ptr %n.all, i64 {first + k}",
            f"{number} = load i64, ptr {name}.at, align 8",
        ]
        if kind == "n":
            return lines
        every = name if kind == "s" else f"{name}.all"
        lines += [
            f"{name}.first = insertelement {vector} poison, i64 {number}, i64 0",
            f"{every} = shufflevector {vector} {name}.first, {vector} poison, <{self.width} x i32> zeroinitializer",
        ]
        if kind == "l":
            lines.append(f"{name} = mul {vector} {every}, {_vector(range(self.width))}")
        return lines


def _vector(numbers: Sequence[int]) -> str:
    return f"<{', '.join(f'i64 {number}' for number in numbers)}>"
