"""Functions in Python's syntax with machine types: what they compute, and what is refused."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from itertools import product
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.typed_python import compile_functions

DECLARED = """
NARROW: i32 = 16
SECOND = 8
LEAST = -9223372036854775808
TENTH = 0.1
def Py_IncRef(object: ptr): ...
def Py_DecRef(object: ptr): ...
def PyTuple_Pack(n: i64, *others) -> ptr: ...
def llvm_fabs_f64(x: double) -> double: ...
def llvm_sadd_with_overflow_i64(m: i64, n: i64) -> "{i64, i1}": ...
"""
INT, FLOAT = ctypes.c_int64, ctypes.c_double


def compile_text(text: str, result: Any = INT, *arguments: Any) -> Callable[..., Any]:
    """The function `f` of a text."""
    ir = "@_Py_NoneStruct = external global i8\n" + compile_functions(DECLARED + dedent(text))
    code = llvm_jit.compile_module(ir, ["f"], serial=("",))
    made = ctypes.PYFUNCTYPE(result, *arguments)(code.addresses["f"])
    made.code = code  # type: ignore[attr-defined]
    return made


def test_the_example_of_the_module() -> None:
    text = """
        def step(length: i64, stride: i64, index: i64) -> i64:
            if index < 0:
                index += length
            return index * stride if unsigned(index) < length else LEAST

        @exported
        def f(length: i64, index: i64) -> i64:
            return step(length, 8, index)
    """
    f = compile_text(text, INT, INT, INT)
    assert [f(3, index) for index in (0, 2, -3)] == [0, 16, 0]
    assert {f(3, 3), f(3, -4), f(0, 0)} == {-(2**63)}


def test_loops_end_early_and_go_on() -> None:
    text = """
        @exported
        def f(n: i64) -> i64:
            sum = 0
            for k in range(1, n):
                if k == 7:
                    break
                if k & 1:
                    continue
                for j in range(k):
                    sum += j
            while sum > 100:
                sum -= 100
            return sum
    """
    f = compile_text(text, INT, INT)
    assert [f(n) for n in (0, 3, 100)] == [0, 1, 1 + 6 + 15]


def test_what_decides_nothing_any_more_is_not_computed() -> None:
    text = """
        @exported
        def f(p: ptr) -> i64:
            return p is not null and p.i64[0] != 0 and not p.i64[1]
    """
    with pytest.raises(AssertionError, match="is i1"):
        compile_text(text, INT, ctypes.c_void_p)
    f = compile_text(text.replace("return p", "return i64(p").rstrip() + ")\n", INT, ctypes.c_void_p)
    tables = [(INT * 2)(*pair) for pair in product((0, 1), repeat=2)]
    assert f(None) == 0 and [f(ctypes.addressof(each)) for each in tables] == [0, 0, 1, 0]


def test_chains_and_alternatives_are_values() -> None:
    text = """
        @exported
        def f(m: i64, n: i64) -> i64:
            is_between = -2 <= m < n or m == 9
            return (1 if is_between else 0) + (10 if not is_between and m else 20)
    """
    f = compile_text(text, INT, INT, INT)
    for m, n in product((-3, -2, 0, 3, 9), (0, 4)):
        is_between = -2 <= m < n or m == 9
        assert f(m, n) == (1 if is_between else 0) + (10 if not is_between and m else 20)


@pytest.mark.parametrize(
    "sign", ["+", "-", "*", "&", "|", "^", "<", "<=", "==", "!=", ">", ">=", "/", "<<", ">>"]
)
def test_operators_of_integers(sign: str) -> None:
    f = compile_text(f"@exported\ndef f(m: i64, n: i64) -> i64:\n    return i64(m {sign} n)\n", INT, INT, INT)
    for m, n in product((-9, -1, 0, 7), (1, 3, 5)):
        wanted = int(m / n) if sign == "/" else int(eval(f"m {sign} n", {"m": m, "n": n}))
        assert f(m, n) == wanted, (m, n)


def test_unsigned_integers_and_bits() -> None:
    text = """
        @exported
        def f(m: i64, n: i64) -> i64:
            return (unsigned(m) >> 60) + (unsigned(m) / n & ~1) + i64(unsigned(m) > n)
    """
    f = compile_text(text, INT, INT, INT)
    assert f(-1, 2**62) == 15 + ((2**64 - 1) // 2**62 & ~1) + 1 and f(8, 3) == 3


@pytest.mark.parametrize("sign", ["<", "<=", "==", "!=", ">", ">="])
def test_comparisons_of_floats(sign: str) -> None:
    text = f"@exported\ndef f(x: double, y: double) -> i64:\n    return i64(x {sign} y)\n"
    f = compile_text(text, INT, FLOAT, FLOAT)
    for x, y in product((-0.0, 0.0, 1.5, np.inf, np.nan), repeat=2):
        assert f(x, y) == int(eval(f"x {sign} y", {"x": x, "y": y})), (x, y)


def test_floats_are_kept_to_the_bit() -> None:
    text = """
        @exported
        def f(x: double, n: i64) -> double:
            y = TENTH if bits(x) < 0 else llvm_fabs_f64(-x)
            return y * 3.0 - double(n) / 7
    """
    f = compile_text(text, FLOAT, FLOAT, INT)
    assert f(-0.0, 5) == 0.1 * 3.0 - 5 / 7 and f(2.5, -1) == 7.5 + 1 / 7


def test_memory_is_read_and_written_by_type() -> None:
    text = """
        @exported
        def f(p: ptr) -> i64:
            p.i64[0] += 5
            p.SECOND = p
            p.NARROW = -7
            (p + 20).i8[0] = i8(True)
            last = p + 24
            last.double[0] = 1.5
            here = 3
            there = address(here)
            there.i64[0] *= 2
            own = stack(i64, 2)
            own.i64[1] = here
            return i64(p.SECOND is p) + i64(p.NARROW) + own.i64[1]
    """
    f = compile_text(text, INT, ctypes.c_void_p)
    table = (INT * 4)(1, 2, 0, 0)
    assert f(ctypes.addressof(table)) == 1 - 7 + 6
    raw = bytes(table)
    assert table[0] == 6 and table[1] == ctypes.addressof(table)
    assert raw[16:21] == (-7).to_bytes(4, sys.byteorder, signed=True) + b"\1"
    assert np.frombuffer(raw[24:], np.float64)[0] == 1.5


def test_several_ways_lead_to_a_label() -> None:
    text = """
        @exported
        def f(n: i64) -> i64:
            if n < 0:
                goto(slow)
            n += 1
            if n > 5:
                goto(slow)
            return n
            label(slow)
            return -n
    """
    f = compile_text(text, INT, INT)
    assert [f(n) for n in (-3, 0, 4, 5)] == [3, 1, 5, -6]


def test_parts_of_results_calls_by_address_and_functions_without_one() -> None:
    text = """
        def note(at: ptr, number: i64):
            if not number:
                return
            at.i64[0] = number

        @inline
        def twice(number: i64) -> i64:
            return 2 * number

        @exported
        def f(m: i64, n: i64) -> i64:
            noted = 0
            sum, over = llvm_sadd_with_overflow_i64(m, n)
            note(address(noted), call(i64, twice, sum))
            return -1 if over else noted
    """
    f = compile_text(text, INT, INT, INT)
    assert f(3, 4) == 14 and f(2**63 - 1, 1) == -1 and f(1, -1) == 0


def test_numbers_that_threads_share() -> None:
    text = """
        @exported
        def f(p: ptr) -> i64:
            atomic_store(p, 12)
            before = atomic_and(p, 4) * 100 + atomic_sub(p, 1) * 10 + atomic_xchg(p, 8)
            if exchange_if(p, 7, 1) or not exchange_if(p, 8, 9):
                return -1
            return before + 1000 * atomic_load(p)
    """
    f, number = compile_text(text, INT, ctypes.c_void_p), INT(0)
    assert f(ctypes.addressof(number)) == 12 * 100 + 4 * 10 + 3 + 9000 and number.value == 9


def test_references_are_counted_and_arguments_may_follow() -> None:
    text = """
        @exported
        def f(x: ptr) -> ptr:
            hold(x, x)
            release(x, x)
            return PyTuple_Pack(2, x, None)
    """
    f, x = compile_text(text, ctypes.py_object, ctypes.py_object), object()
    before = sys.getrefcount(x)
    made = f(x)
    after = sys.getrefcount(x)
    assert after == before + 1 and made == (x, None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("with n: pass", "is no statement"),
        ("return [n]", "is no value"),
        ("n[0] = 1", "is no element"),
        ("return null", "is ptr"),
        ("return i64(address(n) - 8)", "numbers are added alone"),
        ("x: i64 | i32", "a type is a name"),
    ],
)
def test_what_is_not_of_the_language_is_refused(line: str, message: str) -> None:
    with pytest.raises((TypeError, AssertionError), match=message):
        compile_functions(f"def f(n: i64) -> i64:\n    {line}\n")
