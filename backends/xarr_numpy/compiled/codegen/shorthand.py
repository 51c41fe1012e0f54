"""Shorthand for LLVM IR that is written by hand: one line for what takes several, which `expand` writes out.

    for %k from 0 below %count, %sum from %first then %next
    ...
    end %k

A loop; the second number, an int64 that is carried, is there or not.  A body may go to `<k>.last`, the end of a round.

    if %lacks goto raise, wrap:             a branch, and the label of the block that is next
    unless %usual goto slow, look:
    unless %is.array return null, look:     the same, to a block at the end of the function, `return.null`
    then give:                              the block that is next
    %size = load i64, ptr %sizes[%axis]     an element at an address, whose register is %size.slot
    %rank = load i32, ptr %array + 24       what lies so many bytes behind one
    store i64 %n, ptr %sizes[1]             to an element, whose address is %sizes.1
    hold %value, %index                     count references to objects of Python
    release %value, %index
"""

from __future__ import annotations

import re
from typing import Final

_ALIGNMENTS: Final = {"i8": 1, "i32": 4, "float": 4}
_KINDS: Final = {"null": "ptr", "true": "i1", "false": "i1"}
_RETURN: Final = re.compile(r"label %return\.(\S+?)(?=[\s,\]]|$)")
_FUNCTION: Final = re.compile(r"^define .*?^\}", re.M | re.S)
_BRANCH: Final = re.compile(r"^  (if|unless) (\S+) (goto|return) (\S+), (\S+):$", re.M)
_NEXT: Final = re.compile(r"^  then (\S+):$", re.M)
_LOAD: Final = re.compile(r"^  (%\S+) = load (\S+), ptr ([%@]\S+?)(?:\[(\S+)\]| \+ (\S+))$", re.M)
_STORE: Final = re.compile(r"^  store (\S+) (\S+), ptr (%\S+?)\[(\d+)\]$", re.M)
_COUNTS: Final = re.compile(r"^  (hold|release) (.+)$", re.M)
_HEAD: Final = re.compile(
    r"^  for %(\S+) from (\S+) below ([^\s,]+)(?:, %(\S+) from (\S+) then (\S+))?$", re.M
)
_END: Final = re.compile(r"^(.*)\n  end %(\S+)$", re.M)


def expand(text: str) -> str:
    """The text with its shorthand written out."""
    for pattern, write in _RULES:
        text = pattern.sub(write, text)
    return _FUNCTION.sub(_add_returns, text)


def _add_returns(match: re.Match[str]) -> str:
    """A function with the blocks to which it goes in order to return something."""
    text = match[0]
    missing = [each for each in dict.fromkeys(_RETURN.findall(text)) if f"\nreturn.{each}:\n" not in text]
    blocks = [f"return.{each}:\n  ret {_KINDS.get(each, 'i64')} {each}\n" for each in missing]
    return f"{text[:-1]}{''.join(blocks)}}}"


def _branch(match: re.Match[str]) -> str:
    word, condition, way, to, here = match.groups()
    there = to if way == "goto" else f"return.{to}"
    first, second = (there, here) if word == "if" else (here, there)
    return f"  br i1 {condition}, label %{first}, label %{second}\n{here}:"


def _load(match: re.Match[str]) -> str:
    name, kind, address, index, nbytes = match.groups()
    unit, at = (kind, index) if nbytes is None else ("i8", nbytes)
    return f"""  {name}.slot = getelementptr {unit}, ptr {address}, i64 {at}
  {name} = load {kind}, ptr {name}.slot, align {_ALIGNMENTS.get(kind, 8)}"""


def _store(match: re.Match[str]) -> str:
    kind, value, address, index = match.groups()
    return f"""  {address}.{index} = getelementptr {kind}, ptr {address}, i64 {index}
  store {kind} {value}, ptr {address}.{index}, align {_ALIGNMENTS.get(kind, 8)}"""


def _count(match: re.Match[str]) -> str:
    function = {"hold": "Py_IncRef", "release": "Py_DecRef"}[match[1]]
    return "\n".join([f"  call void @{function}(ptr {each})" for each in match[2].split(", ")])


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


#: Ends of loops before their heads, behind what a line of shorthand leaves as the last line of a body.
_RULES: Final = (
    (_BRANCH, _branch),
    (_NEXT, r"  br label %\1\n\1:"),
    (_LOAD, _load),
    (_STORE, _store),
    (_COUNTS, _count),
    (_END, _end_loop),
    (_HEAD, _begin_loop),
)
