"""Walks along operands, or users: what is computed of operands before it is of their users, and what is reached.

None is made of calls that nest as deep as operands do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")


def compute_operands_first(
    root: Key,
    known: MutableMapping[Key, Result],
    operands_of: Callable[[Key], Iterable[Key]],
    compute: Callable[[Key], Result],
) -> Result:
    """`compute` of a root, once it is `known` of all its operands; each result is added there."""
    stack = [root]
    while stack:
        last = stack[-1]
        if last not in known:
            missing = [each for each in operands_of(last) if each not in known]
            if missing:
                stack += missing
                continue
            known[last] = compute(last)
        stack.pop()
    return known[root]


def reach(roots: Iterable[Key], following: Callable[[Key], Iterable[Key]]) -> Iterator[Key]:
    """Each of `roots`, and of what follows from these, step by step, once."""
    stack = list(dict.fromkeys(roots))
    seen = set(stack)
    while stack:
        each = stack.pop()
        yield each
        for other in following(each):
            if other not in seen:
                seen.add(other)
                stack.append(other)
