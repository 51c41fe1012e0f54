"""Collectives by hand, without graphs: what tests of communicators let replicas do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xarr.communication import algorithms
from xarr.communication.communicator import Array, CollectiveCall, current_communicator

Combine = Callable[[Array, Array], Any]


def fold_by(combine: Combine) -> algorithms.Fold:
    """A fold from the left by a function of two arrays."""

    def fold(rows: Sequence[Array], out: Array) -> None:
        result = rows[0]
        for row in rows[1:]:
            result = np.asarray(combine(result, row), out.dtype)
        out[...] = result

    return algorithms.Fold(fold)


def halve_and_add(left: Array, right: Array) -> Any:
    """Neither commutative nor associative: the order of the operands shows in the result."""
    return left * left.dtype.type(0.5) + right


def rank() -> int:
    return current_communicator().rank


def call(
    name: str, operand: Array, members: Sequence[int] | None = None, attributes: str = ""
) -> CollectiveCall:
    """A call as an operation of a program would make it."""
    group = tuple(members) if members is not None else tuple(range(current_communicator().size))
    signature = f"({operand.dtype}[{','.join(map(str, operand.shape))}]{attributes})"
    return CollectiveCall(name, signature, group, "program.py:1")


def all_reduce(
    operand: Any, combine: Combine = np.add, members: Sequence[int] | None = None, name: str = "all_reduce"
) -> Array:
    """The operands of a group, all if `members` is None, combined."""
    communicator, array = current_communicator(), np.asarray(operand)
    made = call(name, array, members)
    with communicator.collective(made):
        return algorithms.all_reduce(communicator, made.members, [array], [fold_by(combine)])[0]


def all_gather(operand: Any, members: Sequence[int] | None = None) -> Array:
    """The operands of a group, stacked."""
    communicator, array = current_communicator(), np.asarray(operand)
    made = call("all_gather", array, members)
    with communicator.collective(made):
        return algorithms.all_gather(communicator, made.members, array)
