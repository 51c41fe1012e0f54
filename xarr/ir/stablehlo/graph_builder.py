"""From records to graphs: names become nodes, regions closed graphs, functions graphs of Call nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from xarr.errors import ParseError, XarrError
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.ops import Call, Constant
from xarr.ir.ops.control import unpack_results
from xarr.ir.stablehlo.lexer import DEEPEST
from xarr.ir.stablehlo.mnemonics import BUILDERS, is_built
from xarr.ir.stablehlo.parsed_operation import Site
from xarr.ir.stablehlo.syntax_tree import (
    DynamicType,
    ParsedArgument,
    ParsedFunction,
    ParsedOperation,
    ParsedRegion,
    ParsedValue,
    ReadType,
    SourceModule,
    UnsupportedType,
    walk,
)
from xarr.ir.types import TensorType, TupleType, Type

Fold = Callable[[Node], np.ndarray[Any, Any]]

_RETURNS: Final = ("func.return", "sdy.return", "stablehlo.return")
_CALLS: Final = {"func.call": "callee", "stablehlo.composite": "decomposition"}
_MOST_REPORTED: Final = 20
#: Operations of functions with unknown sizes, which are built anew for each call.
_MOST_INLINED: Final = 100_000


def constant_only(node: Node) -> np.ndarray[Any, Any]:
    """The value of a constant: what can be known without computing anything."""
    if not isinstance(node.op, Constant):
        raise ParseError(
            f"a size is computed by {node.op.name}; give the types of the arguments to refine it"
        )
    return node.op.array


class Scope:
    """The values that have names at one point of the text."""

    def __init__(self, source: SourceModule) -> None:
        self._source = source
        self._nodes: dict[str, list[Node]] = {}
        #: The nodes that are ordered, so far.
        self.ordered: list[Node] = []

    def define(self, name: str, nodes: Sequence[Node], position: int) -> None:
        """Give `nodes` the names `name#0`, `name#1` …; a name is given once."""
        if name in self._nodes:
            raise self._source.text.error(f"{name} is defined a second time", position)
        self._nodes[name] = list(nodes)

    def bind(self, value: ParsedValue, node: Node) -> None:
        """Let an outer value be seen here as `node`."""
        nodes = self._nodes.setdefault(value.name, [])
        nodes.extend([node] * (value.index + 1 - len(nodes)))
        nodes[value.index] = node

    def get(self, value: ParsedValue) -> Node:
        nodes = self._nodes.get(value.name, [])
        if value.index >= len(nodes):
            what = f"has {len(nodes)} results" if nodes else "is not defined before this"
            raise self._source.text.error(f"{value.name} {what}", value.position)
        return nodes[value.index]


@dataclass(frozen=True)
class LoopValue:
    """A value that a loop carries, as far as it is known: the first one, and whether no iteration changes it.

    A size that a loop carries along is as constant inside as it is outside.
    """

    first: Node
    is_kept: bool


def carried_values(region: ParsedRegion, operands: Sequence[Node]) -> list[LoopValue]:
    """The values that a loop with the body `region` carries, where sizes in it are unknown; nothing otherwise."""
    types = [type for operation in walk(region) for type in operation.result_types]
    if not any(isinstance(type, DynamicType) for type in (*types, *(each.type for each in region.arguments))):
        return []
    returned = region.operations[-1].operands if region.operations else []
    names = [value.name for value in returned]
    if not len(names) == len(region.arguments) == len(operands):
        return []
    return [
        LoopValue(operand, name == argument.name)
        for operand, name, argument in zip(operands, names, region.arguments, strict=True)
    ]


class Builder:
    """Builds the functions of one module."""

    def __init__(self, source: SourceModule, fold: Fold = constant_only) -> None:
        self.source = source
        self.fold = fold
        self._graphs: dict[str, Graph] = {}
        self._depth = 0
        self._inlined = 0

    def build(self) -> dict[str, Graph]:
        """All functions whose types are known; a declaration has no graph."""
        self._refuse_unsupported()
        for name in self._order():
            function = self.source.functions[name]
            if function.body is not None and not function.is_dynamic and not self._needs_caller(function):
                self._graphs[name] = self._graph(function)
        return {name: self._graphs[name] for name in self.source.functions if name in self._graphs}

    def refine(self, name: str, types: Sequence[Type]) -> Graph:
        """The function `name` for arguments of these types."""
        self.build()
        function = self.source.functions[name]
        wanted = [argument.type for argument in function.arguments]
        if len(wanted) != len(types) or not all(map(_agree, wanted, types)):
            shown, got = ", ".join(map(str, wanted)), ", ".join(map(str, types))
            raise self.source.text.error(f"@{name} takes ({shown}), got ({got})", function.position)
        if name in self._graphs:
            return self._graphs[name]
        self._inlined = 0
        return self._graph(function, types)

    # --- what is refused before anything is built ---

    def _refuse_unsupported(self) -> None:
        refusals = list(self._list_unsupported())
        if not refusals:
            return
        text = self.source.text
        lines = [f"  {what}, at {text.location(position)}" for what, position in refusals[:_MOST_REPORTED]]
        if len(refusals) > _MOST_REPORTED:
            lines.append(f"  … and {len(refusals) - _MOST_REPORTED} more")
        listing = "\n".join(lines)
        raise text.error(f"this module uses what xarr does not support:\n{listing}", refusals[0][1])

    def _list_unsupported(self) -> Iterator[tuple[str, int]]:
        for function in self.source.functions.values():
            yield from self._types(function.result_types, function.position)
            for argument in function.arguments:
                yield from self._types([argument.type], argument.position)
            for operation in walk(function.body) if function.body else ():
                yield from self._in_operation(operation)

    def _in_operation(self, operation: ParsedOperation) -> Iterator[tuple[str, int]]:
        if operation.name not in _RETURNS and not is_built(operation):
            target = operation.attributes.get("call_target_name")
            called = ""
            if isinstance(target, str):
                called = f" @{target} (lax.register_custom_call({target!r}, function) makes it known)"
            yield f"{operation.name}{called}", operation.position
        yield from self._types(
            [*(operation.operand_types or ()), *operation.result_types], operation.position
        )
        for region in operation.regions:
            for argument in region.arguments:
                yield from self._types([argument.type], argument.position)

    def _types(self, types: Iterable[ReadType], position: int) -> Iterator[tuple[str, int]]:
        for type in types:
            if isinstance(type, UnsupportedType):
                yield f"the type {type} ({type.reason})", position

    # --- functions ---

    def _calls(self, function: ParsedFunction) -> Iterator[str]:
        for operation in walk(function.body) if function.body else ():
            called = operation.attributes.get(_CALLS.get(operation.name, ""))
            reducers = operation.attributes.get("called_computations", ())
            for callee in (called, *(reducers if isinstance(reducers, tuple) else ())):
                if not isinstance(callee, str):
                    continue
                if callee not in self.source.functions:
                    raise self.source.text.error(f"there is no function @{callee}", operation.position)
                yield callee

    def _order(self) -> list[str]:
        """Every function after those that it calls.  ParseError for recursion and for too deep calls."""
        depth: dict[str, int] = {}
        for root in self.source.functions:
            stack = [(root, iter(self._calls(self.source.functions[root])))]
            path = {root: 0}
            while stack:
                name, calls = stack[-1]
                callee = next((each for each in calls if each not in depth), None)
                if callee is None:
                    stack.pop()
                    del path[name]
                    below = [depth[each] for each in self._calls(self.source.functions[name])]
                    depth[name] = 1 + max(below, default=0)
                    self._refuse_depth(name, depth[name])
                elif callee in path:
                    position = self.source.functions[callee].position
                    raise self.source.text.error(f"@{callee} calls itself, which is not supported", position)
                else:
                    path[callee] = len(stack)
                    stack.append((callee, iter(self._calls(self.source.functions[callee]))))
        return list(depth)

    def _refuse_depth(self, name: str, depth: int) -> None:
        if depth > DEEPEST:
            position = self.source.functions[name].position
            raise self.source.text.error(f"calls nest deeper than {DEEPEST} functions", position)

    def _needs_caller(self, function: ParsedFunction) -> bool:
        """Whether sizes in the body depend on what is passed: then there is a graph for each call only."""
        if function.name == "main":
            return False
        operations = walk(function.body) if function.body else ()
        return any(isinstance(type, DynamicType) for each in operations for type in each.result_types)

    def _graph(self, function: ParsedFunction, types: Sequence[Type] | None = None) -> Graph:
        position = function.position
        own = types or [self._known_type(argument.type, argument.position) for argument in function.arguments]
        nodes = [parameter(type) for type in own]
        ordered: list[Node] = []
        results = self.inline(function, nodes, ordered)
        name = self.source.name if function.name == "main" and self.source.name else function.name
        try:
            return Graph(nodes, results, name, ordered)
        except XarrError as error:
            raise self.source.text.error(str(error), position) from error

    def _known_type(self, type: ReadType, position: int) -> Type:
        if isinstance(type, TensorType | TupleType):
            return type
        raise self.source.text.error(f"expected a type of known sizes, got {type}", position)

    def inline(self, function: ParsedFunction, arguments: Sequence[Node], ordered: list[Node]) -> list[Node]:
        """The results of `function` as nodes over `arguments`; its ordered nodes are added to `ordered`."""
        assert function.body is not None
        scope = Scope(self.source)
        for argument, node in zip(function.arguments, arguments, strict=True):
            scope.define(argument.name, [node], argument.position)
        results = self._block(function.body, scope)
        ordered += scope.ordered
        self._check("result", function.result_types, results, f"@{function.name}", function.position)
        return results

    def call(self, name: str, site: Site) -> tuple[Node, ...]:
        """The results of a call of the function `name`."""
        function = self.source.functions.get(name)
        if function is None or function.body is None:
            site.fail(f"there is no function @{name} with a body")
        wanted = [argument.type for argument in function.arguments]
        if len(wanted) != len(site.operands):
            site.fail(f"@{name} takes {len(wanted)} arguments, got {len(site.operands)}")
        self._check("argument", wanted, site.operands, f"@{name}", site.operation.position)
        if name in self._graphs:
            node = Node(Call(self._graphs[name]), site.operands)
            if node.op.is_ordered:
                site.keep_ordered(node)
            return unpack_results(node)
        self._inlined += len(function.body.operations)
        if self._inlined > _MOST_INLINED:
            site.fail(f"calls repeat more than {_MOST_INLINED} operations of functions of unknown sizes")
        return tuple(self.inline(function, site.operands, site.scope.ordered))

    def function_graph(self, name: str) -> Graph | None:
        """The function `name` as a graph, if it has known types and a body."""
        return self._graphs.get(name)

    # --- regions ---

    def close(
        self, regions: Sequence[ParsedRegion], outer: Scope, carried: Sequence[LoopValue] = ()
    ) -> tuple[list[Graph], tuple[Node, ...]]:
        """Regions as graphs with one common list of captured values after their own arguments, and that list.

        Outer values made of constants alone are not captured but used as they are.  `carried` says what is
        known of the arguments, if anything is.
        """
        seen = dict.fromkeys(outer.get(value) for region in regions for value in region.free)
        captured = tuple(node for node in seen if node.traced)
        return [self._close_region(region, outer, captured, carried) for region in regions], captured

    def loop(
        self, regions: Sequence[ParsedRegion], operands: Sequence[Node], outer: Scope
    ) -> tuple[list[Graph], tuple[Node, ...]]:
        """`close` of the condition and the body of a loop that starts with `operands`."""
        return self.close(regions, outer, carried_values(regions[-1], operands))

    def _close_region(
        self, region: ParsedRegion, outer: Scope, captured: tuple[Node, ...], carried: Sequence[LoopValue]
    ) -> Graph:
        scope = Scope(self.source)
        known = dict(enumerate(carried))
        own = [
            self._argument(argument, scope, known.get(number))
            for number, argument in enumerate(region.arguments)
        ]
        extra = {node: parameter(node.type) for node in captured}
        for value in region.free:
            node = outer.get(value)
            scope.bind(value, extra.get(node, node))
        results = self._block(region, scope)
        return Graph([*own, *extra.values()], results, "computation", scope.ordered)

    def _argument(self, argument: ParsedArgument, scope: Scope, carried: LoopValue | None) -> Node:
        if carried is not None and _agree(argument.type, carried.first.type):
            node = parameter(carried.first.type)
        else:
            node = parameter(self._known_type(argument.type, argument.position))
        is_constant = carried is not None and carried.is_kept and not carried.first.traced
        scope.define(argument.name, [carried.first if carried and is_constant else node], argument.position)
        return node

    def _block(self, region: ParsedRegion, scope: Scope) -> list[Node]:
        self._depth += 1
        if self._depth > DEEPEST + 1:
            raise self.source.text.error(
                f"calls and regions nest deeper than {DEEPEST} levels", region.position
            )
        results = self._operations(region, scope)
        self._depth -= 1
        return results

    def _operations(self, region: ParsedRegion, scope: Scope) -> list[Node]:
        for operation in region.operations:
            operands = tuple([scope.get(value) for value in operation.operands])
            if operation.operand_types is not None:
                self._check("operand", operation.operand_types, operands, operation.name, operation.position)
            if operation.name in _RETURNS:
                if operation is not region.operations[-1]:
                    raise self.source.text.error("operations follow the return", operation.position)
                return list(operands)
            results = self._results(Site(self, operation, operands, scope))
            self._define(operation, results, scope)
        raise self.source.text.error("these operations do not end in a return", region.position)

    def _results(self, site: Site) -> tuple[Node, ...]:
        operation = site.operation
        try:
            results = BUILDERS[operation.name](site)
        except ParseError as error:
            if "\n" in str(error):
                raise
            site.fail(str(error))
        except XarrError as error:
            raise self.source.text.error(str(error), operation.position) from error
        if isinstance(results, Node):
            if results.op.is_ordered:
                site.keep_ordered(results)
            # What a loop captures is among its results, after those that are written.
            results = unpack_results(results)[: len(operation.result_types)]
        self._check("result", operation.result_types, results, operation.name, operation.position)
        return results

    def _define(self, operation: ParsedOperation, results: Sequence[Node], scope: Scope) -> None:
        start = 0
        for name, count in operation.results:
            scope.define(name, results[start : start + count], operation.position)
            start += count

    def _check(
        self, what: str, wanted: Sequence[ReadType], nodes: Sequence[Node], name: str, position: int
    ) -> None:
        """Refuse nodes of other types than those that are written."""
        if len(wanted) != len(nodes):
            raise self.source.text.error(
                f"{name}: expected {len(wanted)} {what}s, got {len(nodes)}", position
            )
        for index, (type, node) in enumerate(zip(wanted, nodes, strict=True)):
            if not _agree(type, node.type):
                message = f"{name}: {what} {index} is {node.type}, but the text says {type}"
                raise self.source.text.error(message, position)


def _agree(written: ReadType, type: Type) -> bool:
    return written.fits(type) if isinstance(written, DynamicType) else written is type
