"""Loop programs of groups that differ in sizes and offsets alone: made once, with symbolic numbers.

The first groups of a kind get loop programs of their own.  Then one is made with numbers that note what is asked of
them, and so is all that a backend needs to know of it; for other groups whose numbers answer alike, this is what their
loop programs would have given, and they are not built at all unless a stage shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, Final

from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.symbolic_numbers import LITERAL, NumberTrace
from xarr.ir import ops
from xarr.ir.constants import integer_of
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType, Type, element_types

#: From a loop program to what a backend makes of it and the numbers in that, each time as many.
Draft = Callable[[Kernel], tuple[Any, Sequence[Any]]]
Build = Callable[[ops.Fusion], Kernel]

#: Kinds of groups that are kept.
_KEPT: Final = 256
#: Groups from which on a template pays, templates of a kind at most, and from which on their uses say whether more are
#: made.
_MIN_ALIKE: Final = 4
_MOST: Final = 16
_LEAST: Final = 3


class TemplateKernel(Kernel):
    """A loop program that is built when it is looked at.

    * `draft` - what the backend makes of programs that are alike, and the numbers of this one.
    """

    def __init__(
        self, build: Callable[[], Kernel], draft: tuple[Any, Sequence[Any]], has_scratch: bool
    ) -> None:
        self.draft = draft
        self._build = build
        if not has_scratch:  # which plans ask of each
            self.scratch = ()

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise AttributeError(name)
        # One for all threads: its parts refer to one another.
        built = self.__dict__.setdefault("_built", self._build())
        self.__dict__.update({each: getattr(built, each) for each in _FIELDS})
        return self.__dict__[name]


_FIELDS: Final = frozenset(each.name for each in fields(Kernel))


class _Template:
    """The loop program of a group with symbolic numbers, and what a backend makes of it."""

    def __init__(self, kernel: Kernel, trace: NumberTrace, draft: Draft) -> None:
        self._has_scratch = bool(kernel.scratch)
        self._made, results = draft(kernel)
        self._follow = trace.follow(results)
        trace.forget()
        self.uses = 0

    def kernel(self, fusion: ops.Fusion, numbers: Sequence[int], build: Build) -> Kernel | None:
        """The loop program of a group that is alike; None if its numbers answer otherwise."""
        results = self._follow(*numbers)
        if results is None:
            return None
        self.uses += 1
        return TemplateKernel(lambda: build(fusion), (self._made, results), self._has_scratch)


class _AlikeGroups:
    """Groups with one outline.  Two threads may make a template each of it."""

    def __init__(self) -> None:
        self.may_have_templates = True
        self.misses = 0
        self.templates: list[_Template] = []

    def kernel(self, fusion: ops.Fusion, numbers: Sequence[int], build: Build, draft: Draft) -> Kernel:
        for template in self.templates:
            kernel = template.kernel(fusion, numbers, build)
            if kernel is not None:
                return kernel
        self.misses += 1
        count = len(self.templates)
        is_useful = count < _LEAST or sum([each.uses for each in self.templates]) >= _MIN_ALIKE * count
        if self.misses < _MIN_ALIKE or count >= _MOST or not (is_useful and self.may_have_templates):
            return build(fusion)
        self.misses, trace = 0, NumberTrace(numbers, _literals(fusion.computation))
        symbolic = _with_numbers(fusion, dict(zip(numbers, trace.inputs, strict=True)))
        if symbolic is None:
            self.may_have_templates = False
            return build(fusion)
        template = _Template(build(symbolic), trace, draft)
        self.templates.append(template)
        kernel = template.kernel(fusion, numbers, build)
        assert kernel is not None, "a template is that of the group of which it is made"
        return kernel


@lru_cache(_KEPT)
def _kind(outline: Any, owner: Hashable) -> _AlikeGroups:
    return _AlikeGroups()


@lru_cache(_KEPT)
def _count(classes: Any) -> list[int]:
    """The number of groups that have ops of these classes, in this order."""
    return [0]


def shared_kernel(fusion: ops.Fusion, build: Build, draft: Draft, owner: Hashable) -> Kernel:
    """The loop program of a group, by a template where there are enough that are alike.

    owner: the schedule that has the builder and `draft`; templates hang on the numbers of its machine.
    """
    count = _count(tuple([type(node.op) for node in fusion.computation.nodes]))
    count[0] += 1
    if count[0] < _MIN_ALIKE:
        return build(fusion)
    outline, numbers = _outline(fusion)
    return _kind(outline, owner).kernel(fusion, numbers, build, draft)


# --- groups and their numbers --------------------------------------------------------------------------------


@lru_cache(1024)
def _hole(number: int) -> object:
    """A mark for one of the numbers in an outline."""
    return object()


class _GroupOutline:
    """A group without its numbers, which are listed each once, in the order in which they come.

    literals: those that stand for themselves.
    """

    def __init__(self, literals: range) -> None:
        self.numbers: dict[int, int] = {}
        self._literals = literals

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind is int:
            return (
                value if value in self._literals else _hole(self.numbers.setdefault(value, len(self.numbers)))
            )
        if kind is tuple:
            return tuple([self.of(each) for each in value])
        if kind is TensorType:
            return kind, self.of(value.shape), value.dtype, value.dynamic
        return value


def _literals(graph: Graph) -> range:
    """Integers that stand for themselves: among them those that may be dimensions, of which builders make tables."""
    types = [node.type for node in (*graph.parameters, *graph.nodes)]
    return range(
        LITERAL.start, max([LITERAL.stop, *[each.rank for each in types if isinstance(each, TensorType)]])
    )


def _outline(fusion: ops.Fusion) -> tuple[Any, tuple[int, ...]]:
    """The outline of a group, equal for those that differ in numbers alone, and the numbers."""
    graph, outline = fusion.computation, _GroupOutline(_literals(fusion.computation))
    starts = _starts(graph)
    index = {node: k for k, node in enumerate(graph.parameters)}
    rows: list[Any] = [outline.of(node.type) for node in graph.parameters]
    for node in graph.nodes:
        op = node.op
        own = [outline.of(each) for each in op.attributes().values()]
        if node in starts:
            own[1] = outline.of(starts[node])
        rows.append((type(op), *own, *[index[operand] for operand in node.operands]))
        index[node] = len(index)
    results = tuple([index[node] for node in graph.results])
    rest = [outline.of(each) for name, each in fusion.attributes().items() if name != "computation"]
    return (tuple(rows), results, *rest), tuple(outline.numbers)


def _starts(graph: Graph) -> dict[Node, int]:
    """The constants that are nothing but the starts of updates."""
    updates = [node for node in graph.nodes if isinstance(node.op, ops.DynamicUpdateSlice)]
    if not updates:
        return {}
    others = {
        operand
        for node in graph.nodes
        for operand in (node.operands[:2] if isinstance(node.op, ops.DynamicUpdateSlice) else node.operands)
    }
    others.update(graph.results)
    starts = [each for node in updates for each in node.operands[2:] if each not in others]
    return {each: number for each in starts if (number := integer_of(each)) is not None}


def _with_numbers(fusion: ops.Fusion, numbers: Mapping[int, Any]) -> ops.Fusion | None:
    """The group with others in place of its numbers; None if a size is not computed of these.

    As a key it would be another one than a symbolic number, although both may be sizes of one array.
    """

    def exchange(value: Any) -> Any:
        kind = type(value)
        if kind is int:
            return numbers.get(value, value)
        if kind is tuple:
            return tuple([exchange(each) for each in value])
        return TensorType(exchange(value.shape), value.dtype, value.dynamic) if kind is TensorType else value

    def exchange_in(op: Op) -> Op:
        return replace(op, **{name: exchange(each) for name, each in op.attributes().items()})

    graph = fusion.computation
    literals, starts = _literals(graph), _starts(graph)
    new = {node: parameter(exchange(node.type)) for node in graph.parameters}
    parameters = list(new.values())
    for node in graph.nodes:
        if node in starts:
            start: Any = exchange(starts[node])
            new[node] = Node(ops.Constant(node.tensor_type, start), (), node.type)
        else:
            op, operands = exchange_in(node.op), tuple([new[each] for each in node.operands])
            inferred = _infer(op, operands, literals)
            if inferred is None:
                return None
            new[node] = Node(op, operands, inferred, ())
    return replace(
        fusion,
        **{name: exchange(each) for name, each in fusion.attributes().items()}
        | {"computation": graph.derive(new, parameters=parameters)},
    )


def _infer(op: Op, operands: Sequence[Node], literals: range) -> Type | None:
    """The type of a result; None if the operation counts a size, as of five arrays of one element each."""
    inferred = op.infer(*[each.type for each in operands])
    sizes = [size for each in element_types(inferred) if isinstance(each, TensorType) for size in each.shape]
    return None if any([type(size) is int and size not in literals for size in sizes]) else inferred
