"""Answers that compute arrays: evaluated by xarr itself, so that the graph is recorded."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from math import prod
from typing import Any

from xarr import lax
from xarr.puzzles.answers import LIMIT, AnswerError, check_number, check_operand, run_answer
from xarr.runtime.handles import Handle


def evaluate_answer(code: Any, values: Mapping[str, Any]) -> Any:
    """The value of a compiled answer for arrays and sizes."""
    namespace = sys.modules["xarr"]  # which stands above this package
    scope = {"np": namespace, "xarr": namespace, "lax": lax, **values}
    return run_answer(code, scope, _check_operand, _check_size)


def _check_operand(value: Any) -> Any:
    return value if isinstance(value, Handle) else check_operand(value)


def _check_size(value: Any) -> Any:
    """A number or an array that is not too large to go on with."""
    if not isinstance(value, Handle):
        return check_number(value)
    size = prod(value._node.shape)
    if size > LIMIT:
        raise AnswerError(f"wanted arrays of at most {LIMIT:,} elements, got {size:,}")
    return value
