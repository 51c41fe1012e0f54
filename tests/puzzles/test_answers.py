"""Answers are users' text: what is no expression of the allowed kind is refused, and nothing grows without end."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import xarr
from xarr import lax
from xarr.puzzles import check
from xarr.puzzles.answers import LAX_NAMES, MEMBERS, NUMPY_NAMES, AnswerError, compile_expression
from xarr.puzzles.array_answers import evaluate_answer

pytestmark = pytest.mark.implicit


def evaluate(text: str, **values: Any) -> Any:
    return evaluate_answer(compile_expression(text, frozenset(values)), values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "one expression"),
        ("a +", "one expression of Python, got 'a \\+'"),
        ("a = 1", "one expression"),
        ("import os", "one expression"),
        ("__import__('os').system('true')", "calls of functions of np or lax|not among"),
        ("().__class__.__bases__[0].__subclasses__()", "not among"),
        ("a.__class__", "not among"),
        ("np.save('x', a)", "np.save is not among"),
        ("np.lib", "np.lib is not among"),
        ("np.load('x')", "not among"),
        ("lax.while_loop", "not among"),
        ("lax.custom_call", "not among"),
        ("open('x')", "calls of functions of np or lax"),
        ("c", "no name 'c' here; there are a, b, m, n, np and lax"),
        ("lambda x: x", "got Lambda"),
        ("[x for x in a]", "got ListComp"),
        ("(a := 1)", "got NamedExpr"),
        ("a if b else a", "got IfExp"),
        ("f'{a}'", "got JoinedStr"),
        ("np.zeros(*a)", "got Starred"),
        ("np.zeros(**a)", "one by one"),
        ("a + 10**9", "an exponent of at most 8"),
        ("a + 1000000", "numbers up to 10,000"),
        ("b'x'", "text, None or"),
        ("1j * a", "constants"),
        ("9 ** 9 ** 9", "exponent"),
        ("(1,) * 1000", "arrays and numbers around an operator"),
        ("a.shape * 9999", "arrays and numbers around an operator"),
        ("'a' * 9999", "arrays and numbers around an operator"),
        ("9999 * 9999 * 9999", "numbers up to 1,000,000"),
        ("np.zeros((9999, 9999))", "at most 1,000,000 elements"),
        ("a[:, None, None, None] + np.zeros((9999, 9999))", "at most 1,000,000 elements"),
        ("np.ones(9999)[:, None] * np.ones(9999)", "at most 1,000,000 elements"),
        ("np.tile(a, 9999 * 100)", "at most 1,000,000 elements"),
        ("np.ones((1000, 1000)) @ np.ones((1000, 1000))", "reads and writes at most 100,000,000"),
        (
            "lax.reduce_window(np.ones(10000), 0.0, lax.add, (9999,), (1,), ((9999, 9999),))",
            "at most 100,000,000",
        ),
        ("a" + " + a" * 200, "at most 500 characters"),
        ("a" + "+a" * 120, "at most 200 parts"),
        ("(" * 240 + "a" + ")" * 240, ""),
        ("-" * 480 + "1", ""),
    ],
)
def test_refused(text: str, words: str) -> None:
    if words:
        with pytest.raises(AnswerError, match=words):
            check(7, text)
    else:
        with contextlib.suppress(AnswerError):
            assert not check(7, text).passed


def test_what_is_allowed_exists() -> None:
    for name in NUMPY_NAMES:
        assert hasattr(xarr, name), name
    for name in LAX_NAMES:
        assert hasattr(lax, name), name
    array = xarr.ones((2, 3))
    for name in MEMBERS:
        assert hasattr(array, name) or hasattr(array.at[0], name), name


def test_no_allowed_name_reaches_files_or_code() -> None:
    reaching = {
        "load",
        "save",
        "savez",
        "fromfile",
        "tofile",
        "loadtxt",
        "savetxt",
        "genfromtxt",
        "memmap",
        "vectorize",
    }
    reaching |= {
        "frompyfunc",
        "fromfunction",
        "apply_along_axis",
        "custom_call",
        "pure_callback",
        "while_loop",
    }
    reaching |= {
        "open",
        "eval",
        "exec",
        "compile",
        "getattr",
        "setattr",
        "globals",
        "vars",
        "input",
        "breakpoint",
    }
    assert not reaching & (NUMPY_NAMES | LAX_NAMES | MEMBERS)
    assert not any(name.startswith("_") for name in NUMPY_NAMES | LAX_NAMES | MEMBERS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(a - b).shape", "no name 'a' here; there are m, n$"),
        ("np.abs(m)", "no name 'np' here"),
        ("(m, n) * 2", "arrays and numbers around an operator"),
        ("(m, n ** 9)", "an exponent of at most 8"),
        ("(m, 9999 * 9999)", "numbers up to 1,000,000"),
    ],
)
def test_an_answer_that_is_a_shape_is_made_of_sizes(text: str, words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        check(1, text)


def test_values() -> None:
    assert evaluate("(m, n * 2)", m=3, n=4) == (3, 8)
    assert float(evaluate("(a ** 2 + 1.5)[0]", a=xarr.ones(2))) == 2.5
    assert evaluate("a.T.shape[0]", a=xarr.ones((2, 3))) == 3


def test_builtins_are_not_there() -> None:
    with pytest.raises(AnswerError):
        evaluate("abs(a)", a=xarr.ones(2))
