"""Functions with placeholders for numbers of iterations, offsets and strides.

Kernels, and programs of kernels, that differ in such numbers alone have one text, and may share machine code that
reads them from an array, as where shapes change from step to step or from call to call.  The numbers decide which
element is read and never what is computed of it, so the bits are those of code with constants.

* `%n3` - number 3,
* `%s3` - that number in all lanes of a vector,
* `%l3` - that number times 0, 1, 2 … in the lanes of a vector,
* `%d3`, `%f3` - the float64 that has these bits, and the float32 that is as great,
* `%g3`, `%h3` - these in all lanes of a vector.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from weakref import WeakValueDictionary

from xarr_numpy.compiled.codegen.slow_paths import count_lines

_PLACEHOLDER: Final = re.compile(r"%([nsldfgh])(\d+)\b")
#: The kinds of one number -> those of that number in all lanes, and the types of these.
IN_LANES: Final = {"n": "s", "d": "g", "f": "h"}
_TYPES: Final = dict.fromkeys("nsl", "i64") | dict.fromkeys("dg", "double") | dict.fromkeys("fh", "float")
_ENTRY: Final = "entry:\n"


#: Templates of which it is known how many functions there were.
_KEPT: Final = 1024


class TemplateCode:
    """The number of kernels or programs of a template, also those that are made next, and the code that they share.

    * `lines` - those of the text of one,
    * `text` - that of kernels which share their code, once there is one,
    * `codes` - the code of kernels that are there, by their numbers, None if it is shared, and by how it was made.
    """

    def __init__(self, lines: int) -> None:
        self.count = 0
        self.lines = lines
        self.text = ""
        self.codes: WeakValueDictionary[tuple[tuple[int, ...] | None, bool], Any] = WeakValueDictionary()
        self.held: object = None


def code_of_template(template: str) -> TemplateCode:
    """The kernels or programs that have this template."""
    # Not Python's hash: kernels of one key run each other's machine code.
    return _template_code(hashlib.sha256(template.encode()).digest(), count_lines(template))


@lru_cache(_KEPT)
def _template_code(digest: bytes, lines: int) -> TemplateCode:
    return TemplateCode(lines)


@dataclass(frozen=True)
class Template:
    """The function of a phase, or of a program.

    * `text` - its definition, with placeholders,
    * `numbers` - what they stand for,
    * `width` - lanes of its vectors,
    * `slot` - the slot of its table in which the address of an array of numbers lies,
    * `table` - that table.
    """

    text: str
    numbers: tuple[int, ...]
    width: int
    slot: int
    table: str = "%buffers"

    def with_constants(self) -> str:
        """The definition with the numbers as constants."""
        return _PLACEHOLDER.sub(self._literal, self.text)

    def _literal(self, match: re.Match[str]) -> str:
        number = self.numbers[int(match[2])]
        match match[1]:
            case "l":
                return _vector([lane * number for lane in range(self.width)])
            case "n" | "s":
                text = str(number)
            case _:
                text = f"0x{number:016X}"
        return text if match[1] in IN_LANES else f"splat ({_TYPES[match[1]]} {text})"

    def with_arguments(self, first: int) -> str:
        """The definition with the numbers read from an array of int64, in which they begin at `first`.

        Its address lies in the slot of the table.
        """
        lines = [
            f"%n.slot = getelementptr inbounds ptr, ptr {self.table}, i64 {self.slot}",
            "%n.all = load ptr, ptr %n.slot, align 8",
        ]
        for kind, k in sorted({(kind, int(k)) for kind, k in _PLACEHOLDER.findall(self.text)}):
            lines += self._argument(kind, k, first)
        head, entry, body = self.text.partition(_ENTRY)
        return "".join([head, entry, *[f"  {line}\n" for line in lines], body])

    def _argument(self, kind: str, k: int, first: int) -> list[str]:
        name, type = f"%{kind}{k}", _TYPES[kind]
        vector, loaded = f"<{self.width} x {type}>", "i64" if type == "i64" else "double"
        number = name if kind in IN_LANES else f"{name}.one"
        read = f"{name}.wide" if type == "float" else number
        lines = [
            f"{name}.at = getelementptr inbounds i64, ptr %n.all, i64 {first + k}",
            f"{read} = load {loaded}, ptr {name}.at, align 8",
        ]
        if type == "float":
            lines.append(f"{number} = fptrunc double {read} to float")
        if kind in IN_LANES:
            return lines
        every = f"{name}.all" if kind == "l" else name
        lines += [
            f"{name}.first = insertelement {vector} poison, {type} {number}, i64 0",
            f"{every} = shufflevector {vector} {name}.first, {vector} poison, <{self.width} x i32> zeroinitializer",
        ]
        if kind == "l":
            lines.append(f"{name} = mul {vector} {every}, {_vector(range(self.width))}")
        return lines


def _vector(numbers: Sequence[int]) -> str:
    return f"<{', '.join(f'i64 {number}' for number in numbers)}>"
