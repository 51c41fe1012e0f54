"""The syntax tree of a module, before it means anything: operations, regions, functions, modules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from xarr.communication.process_groups import Mesh
from xarr.ir.stablehlo.lexer import Text
from xarr.ir.types import TensorType, TupleType


@dataclass(frozen=True)
class DynamicType:
    """An array type of which some sizes (None) are known only when the arguments are."""

    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"tensor<{''.join('?x' if size is None else f'{size}x' for size in self.shape)}{self.dtype}>"

    def fits(self, type: object) -> bool:
        """Whether `type` is one of the types that this one stands for."""
        if not isinstance(type, TensorType) or type.dtype != self.dtype or type.rank != len(self.shape):
            return False
        return all(size in (None, known) for size, known in zip(self.shape, type.shape, strict=True))


@dataclass(frozen=True)
class UnsupportedType:
    """A type that xarr has not; `reason` says why, for the message."""

    text: str
    reason: str

    def __str__(self) -> str:
        return self.text


ReadType: TypeAlias = TensorType | TupleType | DynamicType | UnsupportedType

#: bool, int, float, str (strings, enumerators and symbols), tuple, dict, Literal, a type, or None.
Attribute: TypeAlias = Any


@dataclass(frozen=True)
class FunctionType:
    """`(types) -> types`."""

    parameters: tuple[ReadType, ...]
    results: tuple[ReadType, ...]


@dataclass(frozen=True)
class Literal:
    """The elements of a constant as they are written.

    * `style` - "list" (`body` is what stands between the angle brackets), "hex" (the digits) or "resource"
      (the name),
    * `type` - the type that was written after it, if one was.
    """

    style: str
    body: str
    position: int
    type: ReadType | None = None


@dataclass(frozen=True)
class ParsedValue:
    """A use of result number `index` of the operation that defines `name`, or of an argument."""

    name: str
    index: int
    position: int

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.index

    def __str__(self) -> str:
        return f"{self.name}#{self.index}" if self.index else self.name


@dataclass
class ParsedOperation:
    """One operation, whichever of its forms it was written in.

    `attributes` go by the names of the generic form.  `operand_types` is None where the form does not
    say them.  `results` holds the names on the left and how many values each stands for.
    """

    name: str
    position: int
    operands: list[ParsedValue] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    regions: list[ParsedRegion] = field(default_factory=list)
    operand_types: tuple[ReadType, ...] | None = None
    result_types: tuple[ReadType, ...] = ()
    results: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class ParsedArgument:
    """An argument of a function or a block."""

    name: str
    type: ReadType
    position: int


@dataclass
class ParsedRegion:
    """One block: its arguments and operations, of which the last returns."""

    arguments: list[ParsedArgument]
    operations: list[ParsedOperation]
    position: int

    @cached_property
    def free(self) -> tuple[ParsedValue, ...]:
        """The outer values that are used here, in the order of their first use, each once."""
        own = {argument.name for argument in self.arguments}
        values: dict[tuple[str, int], ParsedValue] = {}
        for operation in self.operations:
            used = [*operation.operands, *(value for inner in operation.regions for value in inner.free)]
            for value in used:
                if value.name not in own:
                    values.setdefault(value.key, value)
            own.update(name for name, _ in operation.results)
        return tuple(values.values())


@dataclass
class ParsedFunction:
    """`body` is None for a declaration."""

    name: str
    arguments: list[ParsedArgument]
    result_types: tuple[ReadType, ...]
    body: ParsedRegion | None
    position: int

    @property
    def is_dynamic(self) -> bool:
        """Whether the sizes of an argument are left to the caller."""
        return any(isinstance(argument.type, DynamicType) for argument in self.arguments)


@dataclass
class SourceModule:
    """A module as it is written."""

    text: Text
    name: str | None = None
    functions: dict[str, ParsedFunction] = field(default_factory=dict)
    #: The bytes of each `dense_resource`, as hexadecimal digits.
    resources: dict[str, str] = field(default_factory=dict)
    meshes: dict[str, Mesh] = field(default_factory=dict)


def walk(region: ParsedRegion) -> Iterator[ParsedOperation]:
    """Every operation of a region and of the regions inside."""
    stack = list(reversed(region.operations))
    while stack:
        operation = stack.pop()
        yield operation
        for inner in reversed(operation.regions):
            stack.extend(reversed(inner.operations))
