"""While loops as native loops: as they are, without the checks of their steps, or over one group of fused operations.

A loop may carry more than it did, so that it can be a native loop: what its steps compute anew from what never
changes, and the indices that its checks look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from xarr.compiler.passes.transposed_operands import contract_untransposed
from xarr.compiler.schedule import Schedule
from xarr.compiler.target import Target
from xarr.compiler.while_loops.batch_blocks import in_blocks
from xarr.compiler.while_loops.bounds_check_hoisting import CheckedLoop, without_checks
from xarr.compiler.while_loops.filled_arrays import without_initial_values
from xarr.compiler.while_loops.iterated_groups import IteratedGroup, iterated_group
from xarr.compiler.while_loops.loop_invariants import without_invariants
from xarr.compiler.while_loops.loop_rewriting import first_results
from xarr.compiler.while_loops.native_loops import NativeLoop, native_loop
from xarr.compiler.while_loops.parts_of_parts import read_from_wholes
from xarr.compiler.while_loops.row_exchanges import exchange_rows, update_under_conditions
from xarr.compiler.while_loops.structural_zeros import leave_out_zeros
from xarr.compiler.while_loops.wanted_parts import leave_out_unwanted
from xarr.ir import ops
from xarr.ir.constants import integer_of
from xarr.ir.graph import Graph, Node, map_graphs, parameter
from xarr.ir.integer_ranges import Range
from xarr.ir.ops.control import pack_results, unpack_results
from xarr.ir.single_elements import NotSplit, SingleElements, join, split
from xarr.ir.types import TensorType

#: Loops whose forms are kept.
KEPT: Final = 1024


def lower_loop(
    node: Node,
    operands: tuple[Node, ...],
    min_work: int,
    schedule: Schedule,
    fused: Callable[[Graph], Graph],
) -> Node:
    """A While over `operands`, as a native loop if it can be one, else with the `fused` body and condition.

    It can be one if that saves `min_work` instructions.  A loop with ordered operations runs step by step.
    """
    loop = node.op.expect(ops.While)
    if loop.is_ordered:
        return node.rebuilt(operands, map_graphs(loop, fused))
    body = update_under_conditions(loop.body)
    if body is not loop.body:
        loop = replace(loop, body=body)
        node = node.rebuilt(operands, loop)
    if schedule.target.has_empty_arrays:
        operands = without_initial_values(loop, operands)
    if _pays(node, min_work, schedule.target):
        forms: list[_ExtendedLoop] = []
        for extended in _extended_forms(loop):
            forms.append(extended)
            form = native_form(extended.loop, schedule.target)
            if form is not None:
                return extended.replacement(node, operands, extended.native(extended.loop, form.describe()))
        for extended in forms if schedule.target.max_carried_elements else ():
            by_elements = _by_elements(extended, node, operands, schedule.target)
            if by_elements is not None:
                return by_elements

    def lower(node: Node) -> Node:
        return _loop_of_groups(node.op.expect(ops.While), node, node.operands, schedule, fused)

    # Python would take more steps.
    blocked = in_blocks(node, operands, schedule.target, lower) if min_work <= 1 else None
    return blocked or _loop_of_groups(loop, node, operands, schedule, fused)


def native_form(loop: ops.While, target: Target) -> NativeLoop | None:
    """The expressions of a step of one point; None if the points are not independent."""
    ranges = loop.ranges if isinstance(loop, ops.NativeWhile) else ()
    return _native_form(_bare(loop), target.max_native_values, ranges)


def iterated_form(loop: ops.While, schedule: Schedule) -> IteratedGroup | None:
    """The one group that a loop whose body is fused repeats; None if there is more in it."""
    return _iterated_form(_bare(loop), schedule)


def loop_program(loop: ops.NativeWhile, schedule: Schedule) -> NativeLoop | IteratedGroup:
    """The program of a native loop: expressions for one point, or the group that it repeats."""
    program = native_form(loop, schedule.target) or iterated_form(loop, schedule)
    assert program is not None, "the stage fused makes native loops of those only that have a form"
    return program


def checked_form(loop: ops.While, target: Target) -> tuple[NativeLoop, CheckedLoop | None] | None:
    """The native form of a loop, without its checks if it has one only then; None if it has none."""
    form = native_form(loop, target)
    if form is not None:
        return form, None
    checked = without_checks(loop)
    form = None if checked is None else native_form(checked.loop, target)
    return None if form is None else (form, checked)


@lru_cache(KEPT)
def _native_form(loop: ops.While, max_values: int, ranges: tuple[Range | None, ...]) -> NativeLoop | None:
    return native_loop(loop, max_values, ranges)


@lru_cache(KEPT)
def _iterated_form(loop: ops.While, schedule: Schedule) -> IteratedGroup | None:
    return iterated_group(loop, schedule)


def _bare(loop: ops.While) -> ops.While:
    """The loop without its progress bar, its checks and its remark, which change nothing of what a step computes."""
    return ops.While(loop.cond, loop.body)


def _pays(node: Node, min_work: int, target: Target) -> bool:
    """Whether a loop is worth to be one native loop."""
    assert isinstance(node.op, ops.While)
    body = node.op.body
    size = max((each.tensor_type.size for each in body.nodes if isinstance(each.type, TensorType)), default=0)
    work = size * len(body.nodes)
    iterations = node.op.iterations(node)
    return (
        min_work <= 1
        or work >= min(min_work, target.min_loop_work)
        or (iterations is not None and iterations * work >= min_work)
    )


@dataclass(frozen=True)
class _ExtendedLoop:
    """A loop that carries more than it did, so that it can be a native loop.

    initial: the values that it carries beyond those before, from these.
    checks: which of the values are looked at after the last step, and by what.
    """

    loop: ops.While
    initial: Graph | None = None
    checks: tuple[tuple[int, ops.CustomCall], ...] = ()

    @classmethod
    def hoist(cls, loop: ops.While, min_read: int | None = None) -> _ExtendedLoop | None:
        """The loop that carries what does not change from step to step, as `without_invariants`."""
        hoisted = without_invariants(loop, min_read)
        return hoisted and cls(*hoisted)

    def without_checks(self) -> _ExtendedLoop | None:
        """The loop that carries the indices that its checks look at; None without any."""
        checked, parameters = without_checks(self.loop), self.loop.body.parameters
        if checked is None:
            return None
        initial = self.initial or Graph(parameters, ())
        values = (*initial.results, *map(Node, checked.initial))
        return _ExtendedLoop(checked.loop, Graph(initial.parameters, values), checked.checks)

    def native(self, loop: ops.While, text: str) -> ops.NativeWhile:
        return ops.NativeWhile(loop.cond, loop.body, self.loop.progress, text, self.checks)

    def replacement(self, node: Node, operands: tuple[Node, ...], op: ops.While) -> Node:
        """This loop, as `op`, instead of `node`, with the results of that."""
        if self.initial is None:
            return node.rebuilt(operands, op)
        return first_results(node.rebuilt((*operands, *self.initial.inline(*operands)), op), node)


def _extended_forms(loop: ops.While) -> Iterator[_ExtendedLoop]:
    """The loop, without the checks of its steps, and without what does not change from step to step either."""
    plain = _ExtendedLoop(loop)
    yield plain
    if (checked := plain.without_checks()) is not None:
        yield checked
    if (hoisted := _ExtendedLoop.hoist(loop)) is not None:
        yield hoisted.without_checks() or hoisted


def _by_elements(
    extended: _ExtendedLoop, node: Node, operands: tuple[Node, ...], target: Target
) -> Node | None:
    """The results of a loop that carries the elements of short arrays, as a native loop; None if there is none."""
    tables = _short_tables(extended.loop.body, target)
    made = _split_loop(extended.loop, tables, target)
    if made is None and tables:
        made = _split_loop(extended.loop, frozenset(), target)
    if made is None:
        return None
    loop, form, counts = made
    first = [sum(counts[:k]) for k in range(len(counts))]
    checks = tuple([(first[k], call) for k, call in extended.checks])
    op = ops.NativeWhile(loop.cond, loop.body, extended.loop.progress, form.describe(), checks)
    carried = operands if extended.initial is None else (*operands, *extended.initial.inline(*operands))
    rows = [split(old) if count > 1 else [old] for old, count in zip(carried, counts, strict=True)]
    parts = unpack_results(Node(op, tuple([each for row in rows for each in row])))
    results = [
        join(parts[k : k + count], old.shape) if count > 1 else parts[k]
        for k, count, old in zip(first, counts, operands, strict=False)
    ]
    return pack_results(results)


def _split_loop(
    loop: ops.While, tables: frozenset[int], target: Target
) -> tuple[ops.While, NativeLoop, list[int]] | None:
    """A loop that carries the elements of short arrays, but for tables, its native form, and how many elements become
    of each carried value; None if there is no such form.
    """
    try:
        counts = _elements_carried(loop, target, tables)
        cond = _with_elements(loop.cond, counts, [1], target)
        body = _with_elements(loop.body, counts, counts, target)
    except NotSplit:
        return None
    split_loop = ops.While(cond, body)
    form = native_form(split_loop, target)
    return None if form is None else (split_loop, form, counts)


def _short_tables(body: Graph, target: Target) -> frozenset[int]:
    """The numbers of short arrays of which elements at computed indices are read or written, as of a stack.

    Where elements are chosen among so many, they are read from memory sooner.
    """
    origins = {each: number for number, each in enumerate(body.parameters)}
    choices: Counter[int] = Counter()
    for node in body.nodes:
        if (
            not isinstance(node.op, ops.DynamicSlice | ops.DynamicUpdateSlice)
            or node.operands[0] not in origins
        ):
            continue
        number = origins[node.operands[0]]
        is_update = isinstance(node.op, ops.DynamicUpdateSlice)
        if is_update:
            origins[node] = number
        if any(integer_of(start) is None for start in node.operands[1 + is_update :]):
            choices[number] += node.operands[0].tensor_type.size
    return frozenset(number for number, count in choices.items() if count > target.max_carried_elements)


def _elements_carried(loop: ops.While, target: Target, tables: frozenset[int]) -> list[int]:
    """For each carried value how many elements become of it; 1 for what stays as it is.  Raises NotSplit."""
    counts = []
    for number, (old, new) in enumerate(zip(loop.body.parameters, loop.body.results, strict=True)):
        if not isinstance(old.type, TensorType) or old.type.dynamic or not old.type.size:
            raise NotSplit
        is_whole = new is old or number in tables or old.type.size > target.max_carried_elements
        counts.append(1 if is_whole else old.type.size)
    return counts


def _with_elements(graph: Graph, counts: list[int], wanted: list[int], target: Target) -> Graph:
    """The condition or the body of a loop that carries the elements of short arrays.  Raises NotSplit.

    counts, wanted: for each parameter and each result how many elements become of it.
    """
    known = SingleElements(target.max_split_elements, target.max_split_work)
    rows: list[list[Node]] = []
    for old, count in zip(graph.parameters, counts, strict=True):
        type = TensorType((), old.dtype) if count > 1 else old.tensor_type
        rows.append([parameter(type) for _ in range(count)])
        if old.tensor_type.size <= target.max_carried_elements and count == old.tensor_type.size:
            known.give(old, [Node(ops.Reshape(()), (each,)) if each.shape else each for each in rows[-1]])
        else:
            known.give_table(old, rows[-1][0])
    known.compute(graph)
    after = dict(zip(graph.parameters, rows, strict=True))
    results: list[Node] = []
    for result, count in zip(graph.results, wanted, strict=True):
        is_carried = len(after.get(result, ())) == count
        results += after[result] if is_carried else _results_of(known, result, count)
    return graph.derive({}, results, [each for row in rows for each in row])


def _results_of(known: SingleElements, node: Node, count: int) -> list[Node]:
    """The nodes of a result: so many elements, one number, or a table."""
    if node.tensor_type.size == 1:
        return [join(known.elements(node), node.shape)]
    return known.elements(node) if count > 1 else [known.table(node)]


def _loop_of_groups(
    loop: ops.While,
    node: Node,
    operands: tuple[Node, ...],
    schedule: Schedule,
    fused: Callable[[Graph], Graph],
) -> Node:
    """A loop whose body and condition are made of groups; a native loop if it is one group, but for its scalars."""
    min_terms = schedule.target.min_bounded_iterations
    loop = _with_body(loop, leave_out_zeros(loop, operands, min_terms))
    loop = _with_body(
        loop, read_from_wholes(exchange_rows(contract_untransposed(loop.body, schedule.target)))
    )
    loop = _with_body(loop, leave_out_unwanted(loop, operands, min_terms))
    extended = _ExtendedLoop.hoist(loop, schedule.target.min_hoisted_elements) or _ExtendedLoop(loop)
    op = map_graphs(extended.loop, fused)
    assert isinstance(op, ops.While)
    for each in filter(None, (extended, extended.without_checks())):
        grouped = op if each is extended else map_graphs(each.loop, fused)
        assert isinstance(grouped, ops.While)
        repeating = _with_fused_arrays(each.loop, grouped)
        form = repeating and iterated_form(repeating, schedule)
        if repeating and form:
            return each.replacement(node, operands, each.native(repeating, form.describe()))
    return extended.replacement(node, operands, op)


def _with_body(loop: ops.While, body: Graph) -> ops.While:
    """The loop with another body; itself with its own."""
    return loop if body is loop.body else replace(loop, body=body)


def _with_fused_arrays(loop: ops.While, fused: ops.While) -> ops.While | None:
    """The loop with the arrays that its fused body computes, and its scalars as they were before."""
    body = fused.body
    if body.parameters != loop.body.parameters:
        return None
    results = [
        old if isinstance(old.type, TensorType) and old.tensor_type.size == 1 else new
        for old, new in zip(loop.body.results, body.results, strict=True)
    ]
    return ops.While(loop.cond, body.derive({}, results))
