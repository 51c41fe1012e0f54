"""Shorthand for LLVM IR that is written by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.codegen.shorthand import expand


def test_loops_are_written_out_one_inside_the_other() -> None:
    inner = "  for %k from 1 below %n\n  %x = add i64 %k, %b\n  end %k"
    text = expand(f"  for %b from 0 below 4, %at from %s then %to\n{inner}\n  ; then\n  end %b\n  ret void")
    assert not {"for", "end"} & set(text.split())
    assert text.count("phi i64") == 3
    assert "%at = phi i64 [ %s, %b.first ], [ %to, %b.last ]" in text


def test_branches_name_the_block_that_is_next() -> None:
    text = expand("  unless %usual goto slow, look:\n  if %lacks goto slow, give:\n  then done:\n  ret void")
    assert text.splitlines() == [
        "  br i1 %usual, label %look, label %slow",
        "look:",
        "  br i1 %lacks, label %slow, label %give",
        "give:",
        "  br label %done",
        "done:",
        "  ret void",
    ]


def test_loads_compute_their_addresses() -> None:
    text = expand(
        "  %size = load i64, ptr %sizes[%k]\n  %flags = load i32, ptr @table + 24\n  %x = load i64, ptr %y, align 8"
    )
    assert text.splitlines() == [
        "  %size.slot = getelementptr i64, ptr %sizes, i64 %k",
        "  %size = load i64, ptr %size.slot, align 8",
        "  %flags.slot = getelementptr i8, ptr @table, i64 24",
        "  %flags = load i32, ptr %flags.slot, align 4",
        "  %x = load i64, ptr %y, align 8",
    ]


def test_references_are_counted_one_by_one() -> None:
    assert expand("  hold %a, @b\n  release %a").splitlines() == [
        "  call void @Py_IncRef(ptr %a)",
        "  call void @Py_IncRef(ptr @b)",
        "  call void @Py_DecRef(ptr %a)",
    ]


def test_bodies_of_loops_end_in_branches_of_shorthand() -> None:
    text = expand(
        "  for %k from 0 below %n\n  if %out goto no, look:\n  call void @f()\n  end %k\nno:\n  ret void"
    )
    assert "br i1 %out, label %no, label %look\nlook:\n  call void @f()\n  br label %k.last" in text


def test_what_is_returned_early_has_a_block_at_the_end() -> None:
    head, other = "define i1 @f(i1 %a) {", "define ptr @g() {\n  ret ptr null\n}"
    body = "  if %a return true, on:\n  unless %b return -1, off:\n  switch i64 %k, label %return.true [ ]"
    text = expand(f"{head}\n{body}\n}}\n{other}")
    assert text.splitlines()[1:] == [
        "  br i1 %a, label %return.true, label %on",
        "on:",
        "  br i1 %b, label %off, label %return.-1",
        "off:",
        "  switch i64 %k, label %return.true [ ]",
        "return.true:",
        "  ret i1 true",
        "return.-1:",
        "  ret i64 -1",
        "}",
        *other.splitlines(),
    ]
    assert expand(text) == text
