"""What is computed of operands before it is of their users, without calls that nest as deep as operands do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
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
