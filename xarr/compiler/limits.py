"""Refusals before anything is compiled: arrays and programs that are too large, attributes that are no plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from math import prod
from typing import Any, Final

from xarr.backend import AbstractBackend, Limits
from xarr.errors import InputError, TooLargeError
from xarr.ir.graph import Graph, Node
from xarr.ir.ops import Reduce, ReduceWindow
from xarr.ir.types import TensorType, Type

#: Operations that a program may run, calls counted as often as they are made: some hours of small ones.
MAX_OPERATIONS: Final = 2**32

#: Classes whose objects print nothing but what Python prints.
_PLAIN: Final = frozenset({int, bool, float, complex, str, bytes, type(None)})

#: Ops that go through more elements than they have in memory.
_LONG: Final = frozenset({Reduce, ReduceWindow})


def check_limits(graph: Graph, backend: AbstractBackend) -> None:
    """Refuse what `backend` cannot compute, before it is compiled.

    Raises TooLargeError for an array beyond its limits, whatever its memory, and for calls that would never end,
    InputError for an attribute that might write text of its own into a program.
    """
    if graph.operation_count > MAX_OPERATIONS:
        raise TooLargeError(
            f"{graph.name} runs {graph.operation_count:.3g} operations, because its functions call one another "
            f"repeatedly; that would take days, and at most 2**{MAX_OPERATIONS.bit_length() - 1} are run: put repeated "
            "calls into a loop, lax.fori_loop or stablehlo.while"
        )
    is_moderate = _LONG.isdisjoint(graph.op_classes) and _are_moderate(graph.types, backend.limits)
    for each in graph.walk():
        for node in each.nodes:
            attributes = [value for value in vars(node.op).values() if type(value) not in _PLAIN]
            if attributes and not all(map(_is_plain, attributes)):
                raise InputError(
                    f"{node.op.lax_name}: wanted plain numbers and strings, got {node.op.attributes()}"
                )
            if not is_moderate and isinstance(node.type, TensorType):
                _check_size(node, node.type, backend)
    memory = backend.limits.max_memory
    for node in graph.results:  # before anything is compiled for them
        if memory is not None and isinstance(node.type, TensorType) and node.type.nbytes > memory:
            raise _too_large(
                node, node.type, f"{node.type.nbytes >> 40} TiB, beyond the memory of any machine"
            )


def _are_moderate(types: Iterable[Type], limits: Limits) -> bool:
    """Whether values are so far within the limits of a backend that nothing else need be asked."""
    for each in types:
        if isinstance(each, TensorType):
            rank, nbytes = len(each.shape), each.nbytes
            if rank > (limits.max_rank or rank) or not 0 < nbytes <= (limits.max_nbytes or nbytes):
                return False
    return True


def _check_size(node: Node, type: TensorType, backend: AbstractBackend) -> None:
    limits = backend.limits
    # NumPy counts the bytes of an empty array as if its empty dimensions were not there.
    nbytes = type.dtype.itemsize * prod([size for size in type.shape if size])
    if limits.max_rank is not None and type.rank > limits.max_rank:
        reason = (
            f"{type.rank} dimensions, and arrays of backend {backend.name!r} have at most {limits.max_rank}"
        )
    elif limits.max_nbytes is not None and nbytes > limits.max_nbytes:
        least = f"2**{nbytes.bit_length() - 1}"
        reason = f"{least} bytes or more, which is beyond what backend {backend.name!r} can address"
    elif limits.max_steps is not None and (steps := _steps(node)) > limits.max_steps:
        reason = (
            f"{steps:.3g} elements to go through, which is beyond what backend {backend.name!r} does in a sensible "
            f"time, at most 2**{limits.max_steps.bit_length() - 1}; reduce it in parts"
        )
    else:
        return
    raise _too_large(node, type, reason)


def _too_large(node: Node, type: TensorType, reason: str) -> TooLargeError:
    origin = f", built at {node.source}" if node.source else ""
    return TooLargeError(f"{node.op.lax_name}: the result {type.short()} has {reason}{origin}")


def _steps(node: Node) -> int:
    """The number of elements that an op goes through whose operands need never be in memory."""
    return prod(node.operands[0].shape) if type(node.op) in _LONG else 0


def _is_plain(attribute: Any) -> bool:
    """Whether an attribute may be written into the source of a program: no part of it prints text of its own.

    Objects of other classes than those of Python's values are never written, only referred to.
    """
    if type(attribute) in _PLAIN:
        return True
    if isinstance(attribute, tuple | list):
        return _PLAIN.issuperset(map(type, attribute)) or all(map(_is_plain, attribute))
    if is_dataclass(attribute):
        return all(_is_plain(getattr(attribute, field.name)) for field in fields(attribute))
    return not isinstance(attribute, int | float | complex | str | bytes)
