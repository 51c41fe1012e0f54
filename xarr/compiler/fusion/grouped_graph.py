"""The graph with its groups in it: a node for each, which has the members as its computation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from xarr.compiler.fusion.groups import Group
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.operands_first import reach


class GroupedGraph:
    """Writes the graph anew, with a node for each group."""

    def __init__(
        self,
        graph: Graph,
        groups: dict[Node, list[Group]],
        kept: set[Group],
        describe: Callable[[ops.Fusion], str] | None,
    ) -> None:
        self.graph = graph
        self.describe = describe
        self.kept = kept
        self.group_of = {
            node: each[0] for node, each in groups.items() if not node.op.moves and each[0] in kept
        }
        self._assign_parts(groups)
        self.new: dict[Node, Node] = {node: node for node in graph.parameters}
        self.position = {node: position for position, node in enumerate((*graph.parameters, *graph.nodes))}
        self.inputs = {group: self._inputs(group) for group in kept}
        demanded = self._array_nodes()
        self.outputs = {
            group: [node for node in group.members() if node in demanded and node in self.group_of]
            for group in kept
        }

    def _assign_parts(self, groups: dict[Node, list[Group]]) -> None:
        """Let the parts of a reduction's results belong to its group, and others read them as arrays."""
        for part in self.graph.nodes:
            if not isinstance(part.op, ops.GetTupleElement):
                continue
            whole = part.operands[0]
            owner = self.group_of.get(whole)
            for group in groups.get(part, ()):
                if group is not owner:
                    group.along.pop(part, None)
            if owner is not None:
                owner.along[part] = owner.along[whole]
                self.group_of[part] = owner

    def _inputs(self, group: Group) -> list[Node]:
        operands = {operand for node in group.members() for operand in node.operands}
        return sorted(operands.difference(group.along), key=self.position.__getitem__)

    def _array_nodes(self) -> set[Node]:
        """Nodes whose values are wanted as arrays."""
        return set(reach([*self.graph.ordered, *self.graph.results], self._list_operands))

    def _list_operands(self, node: Node) -> Sequence[Node]:
        """The inputs of a node's group; its operands if it is in none."""
        group = self.group_of.get(node)
        return self.inputs[group] if group else node.operands

    def run(self) -> Graph:
        stack = [*reversed(self.graph.results), *reversed(self.graph.ordered)]
        tries: Counter[Group | Node] = Counter()
        while stack:
            node = stack[-1]
            if node in self.new:
                stack.pop()
                continue
            group = self.group_of.get(node)
            needed = self._list_operands(node)
            missing = [operand for operand in needed if operand not in self.new]
            if missing:
                tries[group or node] += 1
                assert tries[group or node] <= len(needed) + 1, "two groups wait for each other"
                stack.extend(missing)
            elif group:
                self._write(group)
            else:
                operands = tuple([self.new[operand] for operand in node.operands])
                self.new[node] = node if operands == node.operands else node.rebuilt(operands)
        return self.graph.derive(self.new)

    def _write(self, group: Group) -> None:
        inputs, outputs = self.inputs[group], self.outputs[group]
        inner: dict[Node, Node] = {node: parameter(node.type) for node in inputs}
        for node in group.members():
            inner[node] = node.rebuilt(tuple([inner[operand] for operand in node.operands]))
        graph = Graph([inner[node] for node in inputs], [inner[node] for node in outputs], "fusion")
        fusion = ops.Fusion(graph, group.domain, group.reduced, self.describe)
        operands = tuple(self.new[node] for node in inputs)
        result = outputs[-1].rebuilt(operands, fusion)
        for number, node in enumerate(outputs):
            only = len(outputs) == 1
            self.new[node] = result if only else node.rebuilt((result,), ops.GetTupleElement(number))
