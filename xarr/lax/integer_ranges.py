"""Ranges of integers in what is being recorded: values at hand and counters of loops count too."""

from __future__ import annotations

from math import prod
from typing import Final
from weakref import WeakKeyDictionary

from xarr.dtypes import BOOL
from xarr.ir.graph import Node
from xarr.ir.integer_ranges import MOST_VALUES, Range, has_range, range_by_rule, range_of_values
from xarr.runtime.live_values import values_at_hand
from xarr.runtime.pending import StandIn

#: The counters of loops that are being recorded, and of those that were as long as they live.
_counters: Final[WeakKeyDictionary[Node, Range]] = WeakKeyDictionary()
#: Longer chains are not looked through.
_DEEPEST: Final = 12


def counts(index: Node, start: Node, stop: Node) -> None:
    """Remember that `index` counts from `start` to below `stop`, if that says anything."""
    first, last = range_of(start), range_of(stop)
    if first is not None and last is not None and first[0] < last[1]:
        _counters[index] = first[0], last[1] - 1


def range_of(node: Node) -> Range | None:
    """Between which numbers the elements of an integer array lie, None if that is not known or there are none."""
    return _range_of(node, 0, {})


def _range_of(node: Node, depth: int, known: dict[tuple[Node, int], Range | None]) -> Range | None:
    """The range of a node so deep; rules ask for the same one many times."""
    if not has_range(node):
        return None
    if node in _counters:
        return _counters[node]
    if node.dtype in BOOL:
        return 0, 1
    if node.value is not None or type(node) is StandIn:
        values = values_at_hand(node) if prod(node.shape) <= MOST_VALUES else None
        return None if values is None else range_of_values(values)
    if depth > _DEEPEST:
        return None
    if (node, depth) not in known:
        known[node, depth] = range_by_rule(node, lambda each: _range_of(each, depth + 1, known))
    return known[node, depth]
