"""Graphs as modules of StableHLO, letter for letter as MLIR prints them, names of values included.

MLIR numbers all values of a block before those of the regions inside it, names constants `%c` and
`%cst` and loop variables `%iterArg`, and tells equal names apart by one counter; so does this.

Each op writes its own assembly (`Op.assembly`) with the help of a Printer: what stands here is common to
all of them.  A node's operands have names before the node is written, so nothing here recurses over nodes;
only computations inside computations nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

from xarr.ir.stablehlo.literals import quote, symbol
from xarr.ir.types import Type

if TYPE_CHECKING:
    from types import CodeType

    from xarr.ir.graph import Graph, Node

_STEP: Final = "  "
_MAIN: Final = "public @main"


def print_module(graph: Graph, locations: bool = False) -> str:
    """`graph` as a module whose function `main` it is.

    Leaves that hold data, and stray parameters of other graphs, become arguments of `main` after those of
    the graph.  With `locations`, every operation says where in the user's program it was built.
    """
    module = ModuleNames(locations)
    functions = [module.function(_MAIN, graph)]
    functions += [module.function(f"private @{name}", body) for name, body in module.pending()]
    return f"module @{symbol(graph.name)} {{\n{''.join(functions)}}}"


class ModuleNames:
    """Names and captures that the functions of a module share: symbols, and the leaves of each computation."""

    def __init__(self, locations: bool) -> None:
        self._locations: dict[tuple[int, int], str] | None = {} if locations else None
        self._code: list[CodeType] = []
        self._symbols: dict[Graph | int, str] = {}
        self._names_in_use = {"main"}
        self._counters: dict[str, Iterator[int]] = {}
        self._queue: list[tuple[str, Graph]] = []
        self._captures: dict[int, tuple[Node, ...]] = {}

    def symbol(self, graph: Graph) -> str:
        """The name of the function that holds `graph`; equal graphs share one."""
        # Graphs that capture leaves can be equal and yet differ in how many distinct ones they capture.
        key = id(graph) if self.captures(graph) else graph
        if key not in self._symbols:
            self._symbols[key] = self._unique(symbol(graph.name))
            self._queue.append((self._symbols[key], graph))
        return self._symbols[key]

    def _unique(self, base: str) -> str:
        name = base
        while name in self._names_in_use:
            name = f"{base}_{next(self._counters.setdefault(base, count()))}"
        self._names_in_use.add(name)
        return name

    def pending(self) -> Iterator[tuple[str, Graph]]:
        """The functions called so far, those included that are called for the first time meanwhile."""
        index = 0
        while index < len(self._queue):
            yield self._queue[index]
            index += 1

    def captures(self, graph: Graph) -> tuple[Node, ...]:
        """The leaves that `graph` and the computations inside it use but do not have as parameters."""
        captured = self._captures.get(id(graph))
        if captured is None:
            leaves: dict[Node, None] = {}
            for node in graph.nodes:
                if node.op.is_leaf:
                    leaves[node] = None
                for inner in node.op.graphs:
                    leaves.update(dict.fromkeys(self.captures(inner)))
            for own in graph.parameters:
                leaves.pop(own, None)
            captured = self._captures[id(graph)] = tuple(leaves)
        return captured

    def location(self, node: Node) -> str:
        """` loc("file.py":12:5)`, columns counted from 1 and 0 if unknown; nothing if not asked for."""
        if self._locations is None or node.source is None:
            return ""
        source = node.source
        key = (id(source.code), source.offset)
        if key not in self._locations:
            self._code.append(source.code)  # alive, so that no other code gets its id
            line, column, _ = source.position
            shown = 0 if column is None else column + 1
            self._locations[key] = f" loc({quote(source.filename)}:{line}:{shown})"
        return self._locations[key]

    def function(self, header: str, graph: Graph) -> str:
        """The text of one function."""
        arguments = graph.parameters + self.captures(graph)
        body = Printer(self, _STEP * 2, is_function=True)
        names = body.bind(arguments)
        typed = (
            f"{name}: {node.type}{self.location(node)}" for name, node in zip(names, arguments, strict=True)
        )
        results = f" -> {_list_types(graph.result_types)}" if graph.results else ""
        text = body.block(graph, "return")
        return f"{_STEP}func.func {header}({', '.join(typed)}){results} {{\n{text}{_STEP}}}\n"


class Printer:
    """Writes one block: the body of a function, or a region of an op.

    `indent` is what stands before each line of the block.
    """

    def __init__(
        self, module: ModuleNames, indent: str, outer: Printer | None = None, is_function: bool = False
    ) -> None:
        self.module = module
        self.indent = indent
        self.is_function = is_function
        self._names: dict[Node, str] = {}
        # Nodes with several results: what stands left of `=`, and the name of each result.
        self._packs: dict[Node, tuple[str, list[str]]] = {}
        # The nodes that are written instead of a node.
        self._spellings: dict[Node, Node] = {}
        self._values: int = outer._values if outer else 0
        self._arguments: int = outer._arguments if outer else 0
        self._conflicts: int = outer._conflicts if outer else 0
        self._hints: set[str] = set(outer._hints) if outer else set()

    # --- what ops use ---

    def name(self, node: Node) -> str:
        """The name of a node's value."""
        return self._names[node]

    def names(self, nodes: Iterable[Node]) -> str:
        """The names of several values with commas between."""
        return ", ".join([self._names[node] for node in nodes])

    def regular(self, node: Node, attributes: str = "") -> str:
        """`name %a, %b, attributes : type` where all types are one, else with all of them."""
        types = [operand.type for operand in node.operands]
        same = all(type is node.type for type in types)
        if node.op.name.startswith("chlo."):
            tail = f"{join_types(types)} -> {node.type}"
        else:
            tail = str(node.type) if same else function_type(types, (node.type,))
        return f"{self._head(node, attributes)} : {tail}"

    def functional(self, node: Node, attributes: str = "") -> str:
        """`name %a, %b, attributes : (types) -> type`."""
        return f"{self._head(node, attributes)} : {self.signature(node)}"

    def _head(self, node: Node, attributes: str) -> str:
        return ", ".join(filter(None, [f"{node.op.name} {self.names(node.operands)}".rstrip(), attributes]))

    def signature(self, node: Node) -> str:
        """`(types) -> type`, with every result of an op that has several."""
        return function_type([operand.type for operand in node.operands], node.op.results(node))

    def region(
        self,
        graph: Graph,
        hint: str | None = None,
        operands: Sequence[Node] | None = None,
        terminator: str = "stablehlo.return",
    ) -> tuple[list[str], str]:
        """The names of a computation's parameters, and its body as an indented block.

        The parameters are new arguments of the block, called after `hint`; given `operands`, they are
        these, for the ops whose regions have no arguments but see the values around.
        """
        inner = Printer(self.module, self.indent + _STEP, self)
        for leaf in self.module.captures(graph):
            inner._names[leaf] = self._names[leaf]
        if operands is None:
            names = inner.bind(graph.parameters, hint)
        else:
            names = [self._names[operand] for operand in operands]
            inner._names.update(zip(graph.parameters, names, strict=True))
        return names, inner.block(graph, terminator)

    def generic(self, node: Node, attributes: str, regions: Iterable[str], operands: Sequence[Node]) -> str:
        """`"name"(%a) <{attributes}> ({ region }, { region }) : (types) -> type`."""
        bodies = ", ".join(f"{{\n{region}{self.indent}}}" for region in regions)
        properties = f" <{{{attributes}}}>" if attributes else ""
        types = function_type([operand.type for operand in operands], node.op.results(node))
        return f'"{node.op.name}"({self.names(operands)}){properties} ({bodies}) : {types}'

    def labelled_region(self, graph: Graph) -> str:
        """A computation as a region that starts with `^bb0(%arg0: type):`."""
        names, body = self.region(graph)
        return f"{self.indent}^bb0({name_with_types(names, graph.parameters)}):\n{body}"

    def call(self, node: Node, graph: Graph) -> str:
        """A call of `graph`, which the module then holds as a private function."""
        operands = node.operands + self.module.captures(graph)
        types = function_type([operand.type for operand in operands], node.op.results(node))
        # Directly inside a function the prefix of the dialect `func` is understood.
        verb = "call" if self.is_function else "func.call"
        return f"{verb} @{self.module.symbol(graph)}({self.names(operands)}) : {types}"

    # --- the block itself ---

    def bind(self, arguments: Sequence[Node], hint: str | None = None) -> list[str]:
        """Name the arguments of the block."""
        for node in arguments:
            if hint is None:
                self._names[node] = f"%arg{self._arguments}"
                self._arguments += 1
            else:
                self._names[node] = self._unique(hint)
        return [self._names[node] for node in arguments]

    def block(self, graph: Graph, terminator: str) -> str:
        """The lines of the block, whose arguments are bound."""
        tuples = _used_whole(graph)
        nodes = [
            each for node in graph.nodes if node not in self._names for each in self._printed_nodes(node)
        ]
        for node in nodes:
            self._number(node, node in tuples)
        lines = [line for node in nodes if node.op.result_number(node) is None for line in self._lines(node)]
        lines.append(_return_line(terminator, self.names(graph.results), graph.result_types))
        return "".join([f"{self.indent}{line}\n" for line in lines])

    def _printed_nodes(self, node: Node) -> Iterator[Node]:
        """`node`, or the nodes that are written instead, at its source location, which is where the user built it."""
        form = node.op.printed_form(node)
        if form is not None:
            yield from _parts(form, node.operands)
            self._spellings[node] = form
        yield node

    def _number(self, node: Node, whole: bool) -> None:
        number = node.op.result_number(node)
        if number is not None:
            self._names[node] = self._packs[node.operands[0]][1][number]
        elif len(results := node.op.results(node)) == 1:
            self._names[node] = self._next(node.op.value_name())
        else:
            self._packs[node] = self._pack(node.op.result_names(), len(results))
            if whole:
                self._names[node] = self._next(None)

    def _pack(self, hints: Sequence[str], count: int) -> tuple[str, list[str]]:
        """`%0:2` with the names `%0#0` and `%0#1`, or a name after each hint."""
        if not count:
            return "", []
        if hints:
            names = [self._unique(hint) for hint in hints]
            return ", ".join(names), names
        pack = self._next(None)
        return f"{pack}:{count}", [f"{pack}#{index}" for index in range(count)]

    def _next(self, hint: str | None) -> str:
        if hint is not None:
            return self._unique(hint)
        self._values += 1
        return f"%{self._values - 1}"

    def _unique(self, hint: str) -> str:
        if hint not in self._hints:
            self._hints.add(hint)
            return f"%{hint}"
        self._conflicts += 1
        return f"%{hint}_{self._conflicts - 1}"

    def _lines(self, node: Node) -> Iterator[str]:
        form = self._spellings.get(node, node)
        if (remark := node.op.remark(node)) is not None:
            yield f"// {remark}"
        text = form.op.assembly(form, self) + self.module.location(node)
        if node not in self._packs:
            yield f"{self._names[node]} = {text}"
            return
        pack, names = self._packs[node]
        yield f"{pack} = {text}" if pack else text
        if node in self._names:
            # An op uses the tuple of the results; in MLIR there is none until it is made.
            whole = f"{self._names[node]} = stablehlo.tuple {', '.join(names)} : {node.type}"
            yield " ".join(whole.split())


def _parts(expression: Node, leaves: Sequence[Node]) -> Iterator[Node]:
    """The nodes below a small expression down to `leaves`, operands before users."""
    for operand in expression.operands:
        if operand not in leaves:
            yield from _parts(operand, leaves)
            yield operand


def _used_whole(graph: Graph) -> set[Node]:
    """The nodes whose value is used other than by taking one result of it."""
    used = set(graph.results)
    for node in graph.nodes:
        if node.op.result_number(node) is None:
            used.update(node.operands)
    return used


def _return_line(terminator: str, names: str, types: Sequence[Type]) -> str:
    return f"{terminator} {names} : {join_types(types)}" if types else terminator


def join_types(types: Iterable[Type]) -> str:
    """`type, type`."""
    return ", ".join(map(str, types))


def _list_types(types: Sequence[Type]) -> str:
    return str(types[0]) if len(types) == 1 else f"({join_types(types)})"


def function_type(operands: Sequence[Type], results: Sequence[Type]) -> str:
    """`(types) -> type`, with parentheses on the right unless there is one result."""
    return f"({join_types(operands)}) -> {_list_types(results)}"


def name_with_types(names: Iterable[str], nodes: Iterable[Node]) -> str:
    """`%a: type, %b: type`."""
    return ", ".join(f"{name}: {node.type}" for name, node in zip(names, nodes, strict=True))
