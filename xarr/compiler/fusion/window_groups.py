"""Groups around operations on windows, which are made after those of element-wise operations and reductions.

An operation on windows takes in

* what comes after it: a group of element-wise operations that alone uses its result, element by element
  (not after select_and_scatter, whose results are complete at the end only),
* what comes before it: a group of a few cheap operations that it alone uses, though an element is computed
  once for each window that it lies in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from xarr.compiler.fusion.groups import find_dependents
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import INSTRUCTION
from xarr.ir.types import TensorType

#: What reads elements at other indices than that of its result's.
_ELSEWHERE: Final = (ops.Gather, ops.Reduce, ops.ReduceWindow, ops.Scatter)
#: Running totals and updates, of a part of an array too, have loops of their own.
_OWN_LOOPS: Final = (ops.ReduceWindow, ops.Scatter, ops.DynamicUpdateSlice)

Describe = Callable[[ops.Fusion], str]
#: (domain of the loops, instructions for each of its elements) -> whether to make a group.
Worth = Callable[[tuple[int, ...], int], bool]


def fuse(
    graph: Graph, target: Target, work: Callable[[Node], int], worth: Worth, describe: Describe
) -> Graph:
    """`graph` with groups around operations on windows; `work` is how many elements of the array each of the
    results is made of, 0 for what is no such operation or none that loops can hold.
    """
    elements = {node: work(node) for node in graph.nodes}
    if not any(elements.values()):
        return graph
    return _Grouping(graph, target, elements, worth, describe).run()


class _Grouping:
    def __init__(
        self, graph: Graph, target: Target, work: dict[Node, int], worth: Worth, describe: Describe
    ) -> None:
        self.graph = graph
        self.target = target
        self.describe = describe
        self.results = set(graph.results)
        self.users = find_dependents(graph)
        self.roots = {node for node, taps in work.items() if taps and worth(node.shape, taps)}
        #: A node that is written as part of a later one -> that one.
        self.after = {root: self._consumer(root) for root in self.roots}
        #: A group that is written as part of what comes before it is no part of what comes after it, too.
        written = set(self.after.values())
        self.before = {root: [x for x in self._producer(root) if x not in written] for root in self.roots}

    def run(self) -> Graph:
        absorbed = {node for nodes in self.before.values() for node in nodes}
        absorbed |= {root for root, user in self.after.items() if user is not None}
        root_of = {user: root for root, user in self.after.items() if user is not None}
        root_of |= {root: root for root, user in self.after.items() if user is None}
        new: dict[Node, Node] = {node: node for node in self.graph.parameters}
        for node in self.graph.nodes:
            if node in absorbed:
                continue
            if node in root_of:
                new[node] = self._group(root_of[node], new)
            else:
                operands = tuple(new.get(operand, operand) for operand in node.operands)
                same = all(a is b for a, b in zip(operands, node.operands, strict=True))
                new[node] = node if same else node.rebuilt(operands)
        return self.graph.derive(new)

    def _only_user(self, node: Node) -> Node | None:
        users = self.users.get(node, [])
        return users[0] if len(users) == 1 and node not in self.results else None

    def _consumer(self, root: Node) -> Node | None:
        """The group that takes the result of `root` and nothing else does."""
        user = self._only_user(root)
        if (
            isinstance(root.op, ops.SelectAndScatter)
            or user is None
            or not isinstance(user.op, ops.Fusion)
            or user.op.reduced
        ):
            return None
        if user.op.domain != root.shape or user.operands.count(root) != 1:
            return None
        # Of two roots that feed one group, the first takes it.
        if any(other in self.roots and other is not root for other in user.operands):
            return None
        if any(isinstance(node.op, _OWN_LOOPS) for node in user.op.computation.nodes):
            return None
        entry = user.op.computation.parameters[user.operands.index(root)]
        return user if _is_read_element_by_element(user.op.computation, entry) else None

    def _producer(self, root: Node) -> list[Node]:
        """The group, if any, that gives `root` its first operand and nothing else uses."""
        source = root.operands[0]
        if self._only_user(source) is not root or root.operands.count(source) != 1:
            return []
        op = source.op
        if not isinstance(op, ops.Fusion) or op.reduced or not isinstance(source.type, TensorType):
            return []
        nodes = [node for node in op.computation.nodes if not node.op.moves]
        if len(nodes) > self.target.max_repeated_operations or any(
            node.op.cost > INSTRUCTION for node in nodes
        ):
            return []
        return [source]

    def _group(self, root: Node, new: dict[Node, Node]) -> Node:
        """The group around `root`."""
        before, after = self.before[root], self.after[root]
        parts = [*before, root] + ([after] if after is not None else [])
        outside = [x for part in parts for x in part.operands if x not in (*before, root)]
        scalars = {node for node in outside if isinstance(node.op, ops.Constant) and not node.shape}
        inputs = list(dict.fromkeys(node for node in outside if node not in scalars))
        inner = {node: parameter(node.type) for node in inputs} | {node: node.rebuilt(()) for node in scalars}
        results: tuple[Node, ...] = ()
        for part in parts:
            operands = tuple(inner[operand] for operand in part.operands)
            if isinstance(part.op, ops.Fusion):
                results = part.op.computation.inline(*operands)
            else:
                results = (part.rebuilt(operands),)
            inner[part] = results[0]
        computation = Graph([inner[node] for node in inputs], results, "fusion")
        fusion = ops.Fusion(computation, root.shape, (), self.describe)
        return parts[-1].rebuilt(tuple(new.get(node, node) for node in inputs), fusion)


def _is_read_element_by_element(graph: Graph, entry: Node) -> bool:
    """Whether each result is computed from the element of `entry` at its own index."""
    below = {entry}
    for node in graph.nodes:
        if below.isdisjoint(node.operands):
            continue
        if node.op.moves or isinstance(node.op, _ELSEWHERE) or node.shape != entry.shape:
            return False
        below.add(node)
    return True
