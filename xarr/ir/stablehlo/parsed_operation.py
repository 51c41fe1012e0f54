"""An operation of the text with its operands as nodes: what a builder gets to see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from xarr.communication.process_groups import Mesh
from xarr.ir.graph import Graph, Node
from xarr.ir.stablehlo.constant_elements import LiteralElements, read_elements
from xarr.ir.stablehlo.syntax_tree import (
    Attribute,
    DynamicType,
    Literal,
    ParsedOperation,
    ParsedValue,
    ReadType,
)
from xarr.ir.types import Ints, TensorType

if TYPE_CHECKING:
    from xarr.ir.stablehlo.graph_builder import Builder, Scope


class Site:
    """One operation where it stands.

    Attributes are asked for by kind; every method refuses one that is missing or of another kind with a
    ParseError that shows the line.
    """

    def __init__(
        self, builder: Builder, operation: ParsedOperation, operands: tuple[Node, ...], scope: Scope
    ) -> None:
        self.operation = operation
        self.operands = operands
        self._builder = builder
        self.scope = scope

    @property
    def name(self) -> str:
        return self.operation.name

    def fail(self, message: str) -> NoReturn:
        raise self._builder.source.text.error(f"{self.name}: {message}", self.operation.position)

    def take(self, count: int) -> tuple[Node, ...]:
        """The operands, of which there must be `count`."""
        if len(self.operands) != count:
            self.fail(f"expected {count} operands, got {len(self.operands)}")
        return self.operands

    def at_least(self, count: int) -> tuple[Node, ...]:
        """The operands, of which there must be `count` or more."""
        if len(self.operands) < count:
            self.fail(f"expected at least {count} operands, got {len(self.operands)}")
        return self.operands

    # --- types ---

    def declared_type(self, index: int = 0) -> ReadType:
        """The type of a result as it is written, unknown sizes included."""
        if index >= len(self.operation.result_types):
            self.fail(f"expected {index + 1} results, got {len(self.operation.result_types)}")
        return self.operation.result_types[index]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the first result."""
        declared = self.declared_type()
        if not isinstance(declared, TensorType | DynamicType):
            self.fail(f"expected an array as result, got {declared}")
        return declared.dtype

    def type(self, index: int = 0) -> TensorType:
        """The type of a result, which must be an array of known sizes."""
        declared = self.declared_type(index)
        if not isinstance(declared, TensorType):
            self.fail(f"expected an array of known sizes as result, got {declared}")
        return declared

    # --- attributes ---

    def has(self, name: str) -> bool:
        return self.operation.attributes.get(name) is not None

    def attribute(self, name: str) -> Attribute:
        """An attribute that must be there."""
        if not self.has(name):
            self.fail(f"the attribute {name} is missing")
        return self.operation.attributes[name]

    def integer(self, name: str, default: int | None = None) -> int:
        if default is not None and not self.has(name):
            return default
        return self.as_integer(name, self.attribute(name))

    def as_integer(self, name: str, value: Attribute) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(f"expected an integer for {name}, got {value!r}")
        return value

    def integers(self, name: str, default: Sequence[int] | None = None) -> Ints:
        """`array<i64: …>`, `[…]` or `dense<…>` of integers."""
        if default is not None and not self.has(name):
            return tuple(default)
        return self.as_integers(name, self.attribute(name))

    def as_integers(self, name: str, value: Attribute) -> Ints:
        if isinstance(value, Literal):
            value = tuple(self.elements(name, value).array().reshape(-1).tolist())
        if not isinstance(value, tuple):
            self.fail(f"expected a list of integers for {name}, got {value!r}")
        return tuple(self.as_integer(name, item) for item in value)

    def pairs(
        self, name: str, default: Sequence[tuple[int, int]] | None = None
    ) -> tuple[tuple[int, int], ...]:
        """Paddings: `dense<[[1, 2], …]>`, or a list of pairs."""
        if default is not None and not self.has(name):
            return tuple(default)
        value = self.attribute(name)
        rows = self.elements(name, value).array().tolist() if isinstance(value, Literal) else value
        if not isinstance(rows, list | tuple):
            self.fail(f"expected pairs of integers for {name}, got {rows!r}")
        pairs = [self.as_integers(name, tuple(row) if isinstance(row, list) else row) for row in rows]
        if any(len(row) != 2 for row in pairs):
            self.fail(f"expected pairs of integers for {name}, got {rows!r}")
        return tuple((row[0], row[1]) for row in pairs)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.operation.attributes.get(name, default)
        if not isinstance(value, bool):
            self.fail(f"expected true or false for {name}, got {value!r}")
        return value

    def flags(self, name: str, default: Sequence[bool]) -> tuple[bool, ...]:
        """`array<i1: …>`, `[…]` or `dense<…>` of bools."""
        value = self.attribute(name) if self.has(name) else tuple(default)
        if isinstance(value, Literal):
            value = tuple(self.elements(name, value).array().reshape(-1).tolist())
        if not isinstance(value, tuple) or not all(isinstance(item, bool) for item in value):
            self.fail(f"expected a list of true and false for {name}, got {value!r}")
        return value

    def word(self, name: str, default: str | None = None) -> str:
        """A string, a symbol or an enumerator."""
        if default is not None and not self.has(name):
            return default
        value = self.attribute(name)
        if not isinstance(value, str):
            self.fail(f"expected a name for {name}, got {value!r}")
        return value

    def words(self, name: str, default: Sequence[str]) -> tuple[str, ...]:
        value = self.attribute(name) if self.has(name) else tuple(default)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            self.fail(f"expected a list of names for {name}, got {value!r}")
        return value

    def record(self, name: str) -> dict[str, Attribute]:
        """Dimension numbers: `#stablehlo.gather<…>`, `#stablehlo.conv<…>` and their like."""
        value = self.attribute(name)
        if not isinstance(value, dict):
            self.fail(f"expected named values for {name}, got {value!r}")
        return value

    def field(self, record: dict[str, Attribute], name: str) -> Ints:
        """A list of integers in a record; MLIR leaves empty ones out."""
        return self.as_integers(name, record.get(name, ()))

    def elements(self, name: str, value: Attribute, type: TensorType | None = None) -> LiteralElements:
        """The elements of a literal: of the type that stands with it, or else of `type`."""
        if not isinstance(value, Literal):
            self.fail(f"expected dense<…> for {name}, got {value!r}")
        declared = type if value.type is None else value.type
        if not isinstance(declared, TensorType):
            self.fail(f"expected an array type for {name}, got {declared}")
        return read_elements(value, declared, self._builder.source.text, self._builder.source.resources)

    def keep_ordered(self, node: Node) -> None:
        """Let a node run where it stands, whether it is needed or not."""
        self.scope.ordered.append(node)
        # A computation inside must not do it again, though it may depend on no argument.
        node.traced = True

    def mesh(self, name: str | Mesh) -> Mesh:
        """The mesh of that name in the module, or that stands there itself."""
        if isinstance(name, Mesh):
            return name
        meshes = self._builder.source.meshes
        if name not in meshes:
            self.fail(f"there is no mesh @{name}")
        return meshes[name]

    # --- computations ---

    def computation(self, index: int = 0) -> Graph:
        """Region `index` as a graph of its arguments alone.

        It may use outer values made of constants; ParseError for others, as XLA has no operands for them.
        """
        (graph,), captured = self.capturing(index)
        if captured:
            extra = [value for value in self.operation.regions[index].free if self._is_traced(value)]
            name = extra[0].name if extra else "an outer value"
            self.fail(f"the computation uses {name}, but may use nothing but its arguments and constants")
        if graph.ordered:
            self.fail(
                f"the computation has {graph.ordered[0].op.name}, but runs on single elements, in any order"
            )
        return graph

    def _is_traced(self, value: ParsedValue) -> bool:
        return self.scope.get(value).traced

    def capturing(self, *indices: int) -> tuple[list[Graph], tuple[Node, ...]]:
        """Regions as graphs over their arguments and then the outer values that any of them uses."""
        if any(index >= len(self.operation.regions) for index in indices):
            self.fail(f"expected {max(indices) + 1} regions, got {len(self.operation.regions)}")
        return self._builder.close([self.operation.regions[index] for index in indices], self.scope)

    def loop(self) -> tuple[list[Graph], tuple[Node, ...]]:
        """`capturing` of a condition and a body over the operands."""
        if len(self.operation.regions) != 2:
            self.fail(f"expected a condition and a body, got {len(self.operation.regions)} regions")
        return self._builder.loop(self.operation.regions, self.operands, self.scope)

    def function(self, name: str) -> tuple[Node, ...]:
        """The results of the function that the attribute `name` names, over the operands."""
        return self._builder.call(self.word(name), self)

    def called_computation(self) -> Graph:
        """The function of known types that `called_computations` names."""
        names = self.words("called_computations", ())
        graph = self._builder.function_graph(names[0]) if len(names) == 1 else None
        if graph is None:
            self.fail(f"expected a function of known types in called_computations, got {names}")
        return graph

    # --- values ---

    def value(self, node: Node) -> np.ndarray[Any, Any]:
        """The value of a node that must not depend on arguments: a shape, a start."""
        if node.traced:
            self.fail(
                "a size depends on the values of arguments, so the module does not refine to static shapes"
            )
        return self._builder.fold(node)
