"""How errors and explanations write `x[i] = v`, `x.at[i].add(v)` and `x[i, j]`: as the user did."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.errors import BroadcastError
from xarr.explanation.broadcast import ExplainedBroadcastError
from xarr.explanation.broadcast_code import explicit_ops

pytestmark = pytest.mark.implicit

x, v = xarr.arange(12.0).reshape(4, 3), xarr.asarray([1.0, 2.0, 3.0])
rows, columns = xarr.asarray([[0], [1]]), xarr.asarray([0, 2])


def assign_all() -> None:
    x[:] = v


def assign_part() -> None:
    x[1:3, :] = v


def assign_in_a_loop() -> None:
    """Several assignments in a line, as in a cell of a notebook."""
    text, name = "for k in (0, 1): y[k:2] = 0.0; y[1:k + 2] = v\n", "<a cell>"
    linecache.cache[name] = (len(text), None, [text], name)
    exec(compile(text, name, "exec"), {"y": x.copy(), "v": v})


def assign_long() -> None:
    x[1:3, :] = xarr.asarray(np.array([1.0, 2.0, 3.0]))


def assign_in_two_lines() -> None:
    x[1:3, :] = xarr.where(
        v > 2, v, v
    )  # fmt: skip


def assign_at_arrays() -> None:
    x[rows, columns] = 1.0


CALLS: dict[str, tuple[Callable[[], Any], str, tuple[str, ...]]] = {
    "all": (assign_all, "x[:] = v ", ("v1 = lax.broadcast_in_dim(v, (4, 3), (1,))", "x[:] = v1")),
    "part": (assign_part, "x[1:3, :] = v ", ("x[1:3, :] = v1",)),
    "a loop": (assign_in_a_loop, "y[1:k + 2] = v ", ("y[1:k + 2] = v1",)),
    "long": (assign_long, "x[1:3, :] = value ", ("x[1:3, :] = value1",)),
    "two lines": (assign_in_two_lines, "x[...] = value ", ("x[...] = value1",)),
    "at arrays": (assign_at_arrays, "x[rows, columns] ", ("result = x[rows1, columns1]",)),
    "add": (lambda: x.at[1:].add(v), "x.at[1:].add(v) ", ("result = x.at[1:].add(v1)",)),
    "read": (lambda: x[rows, columns], "x[rows, columns] ", ("result = x[rows1, columns1]",)),
    "read between": (
        lambda: x[None, rows, columns],
        "x[None, rows, columns] ",
        ("result = x[None, rows1, columns1]",),
    ),
    "ix_": (lambda: x[np.ix_([0], [1, 2])], "x[np.ix_([0], [1, 2])[0], np.ix_([0], [1, 2])[1]] ", ()),
    "a dict": (lambda: {"k": x}["k"][rows, columns], "{'k': x}['k'][rows, columns] ", ()),
    "not to be read": (lambda: eval("x[rows, columns]"), "x[a, b] ", ("result = x[a1, b1]",)),
}


@pytest.mark.parametrize("name", CALLS)
def test_explicit_mode_names_operands_and_writes_what_works(name: str) -> None:
    call, headline, lines = CALLS[name]
    before = np.asarray(x)
    with xarr.config(broadcasting="explicit"), pytest.raises(BroadcastError) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(headline)
    assert name == "not to be read" or "operand 0" not in text
    assert "setitem" not in text and "getitem" not in text
    for line in lines:
        assert f" {line}\n" in text
    assert_same(x, before)


def test_the_explicit_assignment_is_accepted() -> None:
    with xarr.config(broadcasting="explicit"), pytest.raises(ExplainedBroadcastError) as caught:
        assign_part()
    scope: dict[str, Any] = {"lax": lax, "x": x.copy(), "v": v}
    wanted = np.asarray(x).copy()
    wanted[1:3] = np.asarray(v)
    with xarr.config(broadcasting="explicit"):
        exec("\n".join(explicit_ops(caught.value.explanation)), scope)
    assert_same(scope["x"], wanted)


def test_an_unreadable_source_line_has_plain_names() -> None:
    scope: dict[str, Any] = {"x": x.copy(), "v": v}
    with xarr.config(broadcasting="explicit"), pytest.raises(BroadcastError, match=r"x\[\.\.\.\] = value"):
        exec("x[:] = v", scope)


def test_loops_do_not_use_the_users_index_names() -> None:
    i = slice(1, 3)

    def assign() -> None:
        x[i] = v

    with xarr.config(broadcasting="explicit"), pytest.raises(BroadcastError, match=r"x\[i\]\[j,k\] = v\[k\]"):
        assign()
