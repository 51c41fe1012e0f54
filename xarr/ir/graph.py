"""Nodes and graphs: frozen data, checked when built, walked without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import count, zip_longest
from typing import Any, Final, Generic, TypeVar

from xarr.errors import InputError, ShapeError, XarrError, pluralize
from xarr.ir.device import Device, join_devices
from xarr.ir.op import FREE, DynamicOperands, Op, dynamic_type, infer_type, operation
from xarr.ir.source import Location, Source, caller
from xarr.ir.stablehlo.printer import print_module
from xarr.ir.types import TensorType, Type, element_types as element_types

T = TypeVar("T")


@operation
class Parameter(Op):
    """An argument of a graph.  Its number is given by the graph's `parameters`."""

    type: Type
    name = "parameter"
    is_leaf = True
    cost = FREE

    def infer(self, *operands: Type) -> Type:
        return self.type


@operation
class Data(Op):
    """A leaf with a value: made from data, or computed earlier."""

    type: Type
    name = "data"
    is_leaf = True

    def infer(self, *operands: Type) -> Type:
        return self.type


@operation
class Donated(Op):
    """The leaf of an Array whose value `taker`, a line of the program, was given for good."""

    type: Type
    taker: str
    name = "donated"
    is_leaf = True

    def infer(self, *operands: Type) -> Type:
        return self.type


_serials: Final = count()
#: Gives a number above the serial of every node so far and below those to come.
next_serial: Final = _serials.__next__


class Node:
    """One operation applied to operands.  Its meaning never changes.

    What does change is whether the value has been computed: `settle` attaches the value and lets the
    operands go, after which the node is a leaf.

    * `source` - where in the user's program the node was built,
    * `depth` - length of the longest unevaluated chain below,
    * `traced` - whether the value depends on a Parameter, so that it cannot be computed on its own,
    * `device` - where the value lies, or will be computed: that of the operands, or `device`.  None for what is made
      of constants alone, which any device may compute; once one has, the value lies there and is not committed,
    * `handles` - how many live Arrays show this node.  Threads count exactly as long as nothing is called
      between reading and writing it back: an interpreter with a global lock does not switch there.  Without
      that lock it is a hint, and a value may be kept longer than needed or computed once more,
    * `value` - the computed value, a buffer of the device's backend, None before,
    * `exposed` - whether the memory of the value may be seen by other ways than one Array that shows this node:
      by a node recorded over it, another value, NumPy, or code outside.  Once true it stays true,
    * `serial` - counts nodes in the order they were built.
    """

    __slots__ = (
        "__weakref__",
        "_location",
        "depth",
        "device",
        "exposed",
        "handles",
        "op",
        "operands",
        "serial",
        "traced",
        "type",
        "value",
    )
    op: Op
    operands: tuple[Node, ...]
    type: Type
    value: Any
    device: Device | None
    depth: int
    exposed: bool
    traced: bool
    handles: int
    serial: int

    def __init__(
        self,
        op: Op,
        operands: tuple[Node, ...] = (),
        type: Type | None = None,
        location: Location | tuple[()] | None = None,
        device: Device | None = None,
    ) -> None:
        """location: where the node was built, () for an unknown line, None to look."""
        depth, traced = 0, False
        for operand in operands:
            operand.exposed = True
            if operand.depth > depth:
                depth = operand.depth
            if operand.traced:
                traced = True
            own = operand.device
            if own is not device:
                device = own if device is None else join_devices(device, own)
        self.op = op
        self.operands = operands
        if type is None:
            try:
                type = op.infer(*[operand.type for operand in operands])
            except DynamicOperands as refusal:
                type = dynamic_type(op, [operand.type for operand in operands], refusal)
        self.type = type
        self.depth = depth + 1
        self.traced = traced
        self.exposed = False
        self.handles = 0
        self.serial = next(_serials)
        self.value = None
        self.device = device
        self._location = caller() if location is None else location

    @property
    def source(self) -> Source | None:
        return Source(*self._location) if self._location else None

    def forget_source(self) -> None:
        """For a node that many programs share."""
        self._location = None

    def take_source(self, other: Node) -> None:
        """For a node that is made of another one."""
        self._location = other._location

    @property
    def tensor_type(self) -> TensorType:
        """The type of a node that is an array."""
        if not isinstance(self.type, TensorType):
            raise ShapeError(
                f"{self.op.lax_name}: wanted an array as result, got the tuple {self.type.short()}"
            )
        return self.type

    @property
    def shape(self) -> tuple[int, ...]:
        own = self.type  # asked so often that a second property would count
        return own.shape if type(own) is TensorType else self.tensor_type.shape

    @property
    def dtype(self) -> Any:
        return self.tensor_type.dtype

    def settle(self, value: Any, device: Device, exposed: bool = True) -> None:
        """Attach the value that `device`, a committed one, computed and drop the operands.

        exposed: whether its memory may be that of another value too.
        """
        if exposed:
            self.exposed = True
        if self.device is not device:  # first: who sees the value in another thread wants its device too
            self.device = device.uncommitted
        self.value = value
        if self.operands:  # A constant stays one: a computation may use it, but no outside data.
            self.op = data_of(self.type)
        self.operands = ()
        self.depth = 0

    def rebuilt(self, operands: tuple[Node, ...], op: Op | None = None) -> Node:
        """Rebuild the node over other operands, at its source line, with `op` instead of its own if given."""
        type: Type | None = self.type
        if op is None:
            op = self.op
            for new, old in zip(operands, self.operands, strict=True):
                if new.type is not old.type:
                    type = None
        else:
            type = None
        return Node(op, operands, type, self._location or ())

    def __repr__(self) -> str:
        return f"<{self.op.name} : {self.type}>"


class Leaf(Node):
    """A node with a value and nothing else, for code that makes many: it is filled in field by field.

    To be set are op, type, value, device, exposed, handles and _location; the other fields never change.  No serial is
    counted: what is captured from outside is known by it, and a leaf is captured anyway.
    """

    __slots__ = ()
    operands = ()
    depth = 0
    traced = False
    serial = 0


@lru_cache(maxsize=4096)
def data_of(type: Type) -> Data:
    """The op of values of a type: one for all of them."""
    return Data(type)


@lru_cache(maxsize=4096)
def _parameter_of(type: Type) -> Parameter:
    """The op of arguments of a type: one for all of them."""
    return Parameter(type)


def parameter(type: Type, device: Device | None = None, location: tuple[()] | None = None) -> Node:
    """A new graph argument; `location` is () if its source line is never asked for."""
    node = Node(_parameter_of(type), (), type, location, device)
    node.depth, node.traced = 0, True
    return node


def data(type: Type, value: Any, device: Device, exposed: bool = True) -> Node:
    """A leaf that holds a value, a buffer on `device`.

    exposed: whether others may see its memory.
    """
    node = Node(data_of(type), (), type, device=device)
    node.value, node.exposed, node.depth = value, exposed, 0
    return node


def postorder(roots: Iterable[Node], stop: Callable[[Node], bool] | None = None) -> list[Node]:
    """Every node below `roots`, operands before users, each once; nodes where `stop` holds are leaves."""
    listed: set[Node] = set()
    order: list[Node] = []
    stack = list(roots)[::-1]
    while stack:
        node = stack[-1]
        if node not in listed:
            operands = node.operands
            if not listed.issuperset(operands) and (stop is None or not stop(node)):
                stack += [operand for operand in operands[::-1] if operand not in listed]
                continue
            listed.add(node)
            order.append(node)
        stack.pop()
    return order


def list_ordered(roots: Sequence[Node], parameters: Iterable[Node]) -> list[Node]:
    """The nodes whose op is ordered among `roots` and what they need, in the order of the `roots`."""
    if not roots:
        return []
    return [node for node in postorder(roots, set(parameters).__contains__) if node.op.is_ordered]


class Graph:
    """Parameters -> results: a traced function, a loop body, a combiner or a comparator alike.

    Two graphs are equal when they compute the same thing in the same way: the same ops with the same
    attributes over the same operands, parameters matched by position.  Names and source lines do not count.

    `ordered` are the nodes whose op is ordered, all of them, in the order of the program: they run in that order, and
    whether a result needs them or not.
    """

    def __init__(
        self,
        parameters: Iterable[Node],
        results: Iterable[Node],
        name: str = "main",
        ordered: Iterable[Node] = (),
    ) -> None:
        self.parameters: Final = tuple(parameters)
        self.results: Final = tuple(results)
        self.name: Final = name
        self.ordered: Final = tuple(ordered)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes but the parameters, operands before users, and the ordered ones in their order."""
        parameters = set(self.parameters)
        roots = (*self.ordered, *self.results) if self.ordered else self.results
        order = postorder(roots, parameters.__contains__)
        return tuple([node for node in order if node not in parameters])

    def derive(
        self,
        new: Mapping[Node, Node],
        results: Iterable[Node] | None = None,
        parameters: Iterable[Node] | None = None,
        name: str | None = None,
    ) -> Graph:
        """A graph made of this one, in which nothing that is ordered gets lost.

        new: what became of nodes, all of which are nodes of the new graph; what is not there stays as it is.
        results, parameters, name: those of the new graph, if they are not what became of this one's.
        """
        inputs = self.parameters if parameters is None else tuple(parameters)
        outputs = [new.get(node, node) for node in self.results] if results is None else results
        ordered = list_ordered([new.get(node, node) for node in self.ordered], inputs)
        return Graph(inputs, outputs, self.name if name is None else name, ordered)

    @property
    def parameter_types(self) -> tuple[Type, ...]:
        return tuple([node.type for node in self.parameters])

    @property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(node.type for node in self.results)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """The structure as hashable data: what equality and hash are made of."""
        number = {node: index for index, node in enumerate(self.parameters)}
        rows = []
        for node in self.nodes:
            rows.append((node.op, tuple(number[operand] for operand in node.operands)))
            number[node] = len(number)
        return (self.parameter_types, tuple(rows), tuple(number[node] for node in self.results))

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Graph):
            return False
        if self.key is not other.key:
            if hash(self) != hash(other) or self.key != other.key:
                return False
            # One key for both: where graphs carry the same graphs again and again, each pair is compared once.
            self.__dict__["key"] = other.key
        return True

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Row by row, since pickle would follow a chain of nodes by recursion.
        if any(node.value is not None for node in self.nodes):
            raise InputError(f"graph {self.name} holds data, which cannot be pickled: make it a parameter")
        types = tuple(node.type for node in self.nodes)
        return _restore_graph, (*self.key, types, self.name)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    @cached_property
    def is_pure(self) -> bool:
        """Whether no op has an effect besides its results, in the computations that ops carry neither."""
        return all(node.op.is_pure and all(each.is_pure for each in node.op.graphs) for node in self.nodes)

    @cached_property
    def op_classes(self) -> frozenset[type[Op]]:
        """The classes of the ops in it and in the graphs that they carry: which passes have something to do."""
        return frozenset({type(node.op) for each in self.walk() for node in each.nodes})

    @cached_property
    def types(self) -> frozenset[Type]:
        """The types of the values in it and in the graphs that its ops carry, parameters included."""
        return frozenset({node.type for each in self.walk() for node in (*each.parameters, *each.nodes)})

    @cached_property
    def operation_count(self) -> int:
        """The number of operations that run, those of a computation as often as an op carries it, each loop once."""
        if not self._inner:
            return len(self.nodes)
        return sum(1 + sum(each.operation_count for each in node.op.graphs) for node in self.nodes)

    def walk(self, graphs_of: Callable[[Node], tuple[Graph, ...]] | None = None) -> list[Graph]:
        """This graph and those that its nodes carry, at any depth, each object once, outer ones first.

        graphs_of: which of those a node carries; all if None.
        """
        return [self, *self._inner] if graphs_of is None else _walk(self, graphs_of)

    @cached_property
    def _inner(self) -> list[Graph]:
        """All graphs that its nodes carry, at any depth; without itself, which would be a circle of references."""
        return _walk(self, None)[1:]

    def with_name(self, name: str) -> Graph:
        return self.derive({}, name=name)

    def inline(self, *operands: Node, ordered: list[Node] | None = None) -> tuple[Node, ...]:
        """The results as new nodes over `operands` in place of the parameters.

        Every node is a copy, so that computing the results leaves the graph as it is.
        ordered: gets the copies of the ordered nodes; GraphError is raised for a graph that has some without it.
        """
        if len(operands) != len(self.parameters):
            raise ShapeError(
                f"{self.name} takes {pluralize(len(self.parameters), 'argument')}, got {len(operands)}"
            )
        new: dict[Node, Node] = dict(zip(self.parameters, operands, strict=True))
        for node in self.nodes:
            is_data = node.value is not None
            new[node] = node if is_data else node.rebuilt(tuple([new[operand] for operand in node.operands]))
        if self.ordered:
            if ordered is None:
                raise GraphError(
                    f"{self.name} is copied to where it may run at another time, or not at all",
                    self.ordered[0],
                )
            ordered += [new[node] for node in self.ordered]
        return tuple(new[result] for result in self.results)

    def to_text(self, locations: bool = False) -> str:
        """The graph as a StableHLO module, as MLIR prints it.

        Leaves that hold data become arguments after the parameters.  With `locations`, each operation
        ends in the location where it was built, as `loc("file.py":12:5)`.
        """
        return print_module(self, locations)

    def svg(self) -> str:
        """The graph as a self-contained SVG document: a box for each operation, lines for the arrays between them.

        Loops, branches and groups have what they run inside of them.  Of long graphs the middle is one box.
        """
        from xarr.ir.pictures.drawing import draw_graph

        return draw_graph(self)

    def _repr_html_(self) -> str:
        from xarr.ir.pictures.drawing import show_graph

        return show_graph(self)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        parameters, results = (
            ", ".join(str(node.type) for node in nodes) for nodes in (self.parameters, self.results)
        )
        return f"<graph {self.name}({parameters}) -> {results}, {pluralize(len(self.nodes), 'node')}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # Notebooks show what one wants to read; a repr within other text stays one line.
        printer.text(str(self))

    def verify(self, before: Graph | None = None) -> Graph:
        """Check what the rest of the library relies on; returns the graph itself.

        Every leaf is a parameter, a constant or data (no stray parameter of another graph), every type
        is what the op's rule says, and every element-wise op has operands of one shape (the rule says so):
        no node relies on implicit broadcasting.  All ordered nodes are in `ordered`, in an order that their operands
        allow, and as many of them as in the graph `before`, which this one was made of.
        """
        for graph in self.walk():
            graph._verify_nodes()
            graph._verify_order()
        if before is not None and len(self.ordered) < len(before.ordered):
            lost = before.ordered[len(self.ordered)]
            raise GraphError(
                f"graph {self.name}: {len(before.ordered)} ordered nodes became {len(self.ordered)}", lost
            )
        return self

    def _verify_order(self) -> None:
        ordered = [node for node in self.nodes if node.op.is_ordered]
        for present, listed in zip_longest(ordered, self.ordered):
            if present is not listed:
                node = present or listed
                raise GraphError(
                    f"graph {self.name}: {node!r} is not in its position in the order, {list(self.ordered)}",
                    node,
                )

    def _verify_nodes(self) -> None:
        parameters = set(self.parameters)
        for node in self.nodes:
            if isinstance(node.op, Parameter):
                raise GraphError(f"graph {self.name}: {node!r} is a parameter of another graph", node)
            inferred = infer_type(node.op, [operand.type for operand in node.operands])
            if inferred is not node.type:
                raise GraphError(
                    f"graph {self.name}: {node!r} has a type other than inferred, {inferred}", node
                )
        if len(parameters) != len(self.parameters):
            raise GraphError(f"graph {self.name}: a parameter is listed twice", self.parameters[0])


def _walk(graph: Graph, graphs_of: Callable[[Node], tuple[Graph, ...]] | None) -> list[Graph]:
    graphs = [graph]
    seen = {id(graph)}
    for each in graphs:
        for node in each.nodes:
            for inner in node.op.graphs if graphs_of is None else graphs_of(node):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    graphs.append(inner)
    return graphs


def _restore_graph(
    parameter_types: tuple[Type, ...],
    rows: tuple[tuple[Op, tuple[int, ...]], ...],
    results: tuple[int, ...],
    types: tuple[Type, ...],
    name: str,
) -> Graph:
    """A pickled graph; its nodes know no source lines."""
    nodes = [parameter(type) for type in parameter_types]
    for (op, operands), type in zip(rows, types, strict=True):
        nodes.append(Node(op, tuple([nodes[index] for index in operands]), type))
    for node in nodes:
        node._location = None
    ordered = [node for node in nodes if node.op.is_ordered]
    return Graph(nodes[: len(parameter_types)], [nodes[index] for index in results], name, ordered)


def rewritten(graph: Graph, rule: Callable[[Node, tuple[Node, ...]], Node | None]) -> Graph:
    """The graph with `rule(node, operands)` in place of each node for which that is one; itself if there is none.

    `operands` are the node's in the new graph.
    """
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        operands = tuple([new.get(operand, operand) for operand in node.operands])
        replacement = rule(node, operands)
        if replacement is not None:
            new[node] = replacement
        elif operands != node.operands:
            new[node] = node.rebuilt(operands)
    if not new:
        return graph
    return graph.derive(new)


class OncePerGraph(Generic[T]):
    """A function of graphs whose results are kept by graph object: many ops may carry one and the same graph.

    `function(graph, once)` calls `once` for the graphs inside.  Those that `graphs_of` gives for a node have their
    results before, so that calls may nest deeper than Python's stack is high.
    """

    def __init__(
        self,
        function: Callable[[Graph, OncePerGraph[T]], T],
        graphs_of: Callable[[Node], tuple[Graph, ...]] | None = None,
    ) -> None:
        self._function = function
        self._graphs_of = graphs_of
        #: By identity; the graph is kept so that no other one gets its id.
        self._results: dict[int, tuple[Graph, T]] = {}

    def __call__(self, graph: Graph) -> T:
        if id(graph) not in self._results:
            for each in reversed(graph.walk(self._graphs_of)):  # but for odd orders the inner ones first
                if id(each) not in self._results:
                    self._results[id(each)] = each, self._function(each, self)
        return self._results[id(graph)][1]


def map_graphs(op: Op, change: Callable[[Graph], Graph]) -> Op:
    """`op` with `change` applied to every computation that it carries; `op` itself if none became another."""
    if not op.graphs:
        return op
    changed = {name: _change_graphs(value, change) for name, value in op.attributes().items()}
    return replace(op, **changed) if changed != op.attributes() else op


def _change_graphs(value: Any, change: Callable[[Graph], Graph]) -> Any:
    if isinstance(value, Graph):
        return change(value)
    return tuple([_change_graphs(item, change) for item in value]) if isinstance(value, tuple) else value


class GraphError(XarrError):
    """A graph breaks an invariant: an error in xarr or in a rewriting pass, never of the user."""

    def __init__(self, message: str, node: Node) -> None:
        location = f"\nbuilt at {node.source}" if node.source else ""
        super().__init__(message + location)
        self.node = node
