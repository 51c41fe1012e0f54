"""Loops in LLVM IR that is written by hand: two lines in place of the blocks and registers of each.

      for %k from 0 below %count, %sum from %first then %next
      ...
      end %k

The second number, an int64 that is carried, is there or not.  A body may go to `<k>.last`, the end of a round; between
two lines that end loops there is another one.
"""

from __future__ import annotations

import re
from typing import Final

_HEAD: Final = re.compile(
    r"^  for %(\S+) from (\S+) below ([^\s,]+)(?:, %(\S+) from (\S+) then (\S+))?$", re.M
)
_END: Final = re.compile(r"^(.*)\n  end %(\S+)$", re.M)


def write_loops(text: str) -> str:
    """The text with its loops written out."""
    return _HEAD.sub(_begin_loop, _END.sub(_end_loop, text))


def _begin_loop(match: re.Match[str]) -> str:
    k, start, count, name, first, after = match.groups()
    carried = f"\n  %{name} = phi i64 [ {first}, %{k}.first ], [ {after}, %{k}.last ]" if name else ""
    return f"""  br label %{k}.first
{k}.first:
  br label %{k}.again
{k}.again:
  %{k} = phi i64 [ {start}, %{k}.first ], [ %{k}.next, %{k}.last ]{carried}
  %{k}.is = icmp slt i64 %{k}, {count}
  br i1 %{k}.is, label %{k}.body, label %{k}.end
{k}.body:"""


def _end_loop(match: re.Match[str]) -> str:
    line, k = match.groups()
    ends = line.lstrip().startswith(("br ", "ret "))
    last = line if ends else f"{line}\n  br label %{k}.last"
    return f"""{last}
{k}.last:
  %{k}.next = add i64 %{k}, 1
  br label %{k}.again
{k}.end:"""
