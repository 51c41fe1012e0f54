"""What cannot become an array, or a graph: each ends in an error that says what is wrong and what works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.errors import BackendError, DTypeError, InputError, TracedValueError, ValueRangeError, XarrError

#: NumPy and Python ask these themselves, or they are no operand of an operator.
NO_OPERAND = str | bytes | dict | set | type(None) | int | np.generic

BAD_VALUES: dict[str, tuple[Any, type[XarrError], str]] = {
    "object array": (
        np.array([1, None]),
        InputError,
        r"Python objects \(NoneType, int\) cannot be computed with",
    ),
    "dict": ({"a": 1}, InputError, r"Python objects \(dict\)"),
    "None": (None, InputError, "None is not an array; wanted an array, a number or a list of numbers"),
    "set": ({1, 2}, InputError, r"Python objects \(set\)"),
    "generator": ((i for i in range(3)), InputError, r"Python objects \(generator\)"),
    "ragged list": ([[1, 2], [3]], InputError, r"ragged list is not an array: .* got \[\[1, 2\], \[3\]\]"),
    "ragged depth": ([1, [2]], InputError, "ragged"),
    "string": (
        "abc",
        InputError,
        r"cannot be array elements, got 'abc'; xarr.asarray\(strings, dtype=float\)",
    ),
    "bytes": (b"abc", InputError, "strings cannot be array elements"),
    "strings": (["1", "2"], InputError, "strings cannot be array elements"),
    "dates": (
        np.array(["2020-01-01"], "datetime64[D]"),
        InputError,
        r"dates and durations .* datetime64\[D\]",
    ),
    "durations": (np.timedelta64(3, "s"), InputError, "dates and durations"),
    "records": (np.zeros(2, [("x", float)]), DTypeError, "is not an element type of xarr"),
    "long double": (np.zeros(2, np.longdouble), DTypeError, "is not an element type of xarr"),
    "a huge int": (10**400, ValueRangeError, "out of bounds for int64"),
    "a list with a huge int": ([1, 10**400], InputError, "too large for any element type"),
    "an int of too many digits to print": (10**5000, ValueRangeError, "out of bounds|too large"),
}


@pytest.mark.parametrize("what", BAD_VALUES)
def test_what_is_no_array(what: str) -> None:
    value, error, message = BAD_VALUES[what]
    with pytest.raises(error, match=message):
        xarr.asarray(value)
    if not isinstance(value, NO_OPERAND) and what != "generator":
        with pytest.raises(error, match=message):
            xarr.asarray([1.0, 2.0]) + value


#: What NumPy reads as numbers where a dtype asks for them.
READABLE: dict[str, Any] = {
    "text": ("1.5", "float64", 1.5),
    "bytes": (b"2", "float32", 2.0),
    "None": (None, "float64", np.nan),
    "words": (["1", "2.5", "nan", "-inf"], "float64", [1, 2.5, np.nan, -np.inf]),
    "integers": (["1", "-2"], "int8", [1, -2]),
    "narrow": (["1.5"], "bfloat16", [1.5]),
    "complex": (["1+2j"], "complex128", [1 + 2j]),
    "text array": (np.array([["1"], ["2"]]), "int64", [[1], [2]]),
    "object array": (np.array([1, None]), "float64", [1, np.nan]),
    "huge ints": ([2**70, 1], "float64", [2.0**70, 1]),
}


@pytest.mark.parametrize("what", READABLE)
def test_an_element_type_makes_numbers_of_text(what: str) -> None:
    value, dtype, wanted = READABLE[what]
    got = xarr.asarray(value, dtype=dtype)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted, dtype))
    target = xarr.zeros(got.shape, dtype)
    target[...] = value
    np.testing.assert_array_equal(np.asarray(target), np.asarray(wanted, dtype))


@pytest.mark.parametrize(
    "what", ["dict", "set", "ragged list", "ragged depth", "string", "dates", "durations"]
)
def test_an_element_type_does_not_make_it_one(what: str) -> None:
    value, error, _ = BAD_VALUES[what]
    with pytest.raises(error):
        xarr.asarray(value, dtype="float64")
    for text in (["1.5"], "nan", "9" * 30, [None]):
        with pytest.raises(InputError if text == [None] else ValueError, match="asarray"):
            xarr.asarray(text, dtype="int64")


def test_none_is_not_a_number_and_no_integer() -> None:
    floats, flags, integers = xarr.zeros(2), xarr.ones(2, bool), xarr.zeros(2, int)
    floats[0] = None
    flags[0] = None
    assert np.isnan(np.asarray(floats)[0]) and np.asarray(flags).tolist() == [False, True]
    with pytest.raises(InputError, match="None"):
        integers[0] = None


@pytest.mark.parametrize("function", ["add", "sqrt", "less", "where"])
def test_functions_refuse_them_too(function: str) -> None:
    arguments = {"add": 2, "sqrt": 1, "less": 2, "where": 3}[function]
    for bad in ([[1, 2], [3]], ["a"], [None]):
        with pytest.raises(InputError):
            getattr(xarr, function)(*[bad] * arguments)


def test_numbers_beyond_a_type() -> None:
    x = xarr.asarray([1.0, 2.0])
    for compute in (lambda: x + 10**400, lambda: x * -(10**400), lambda: xarr.asarray(10**400, "float64")):
        with pytest.raises(OverflowError, match="too large for float64"):
            compute()
    narrow = xarr.asarray(np.ones(2, np.float32))
    assert np.asarray(narrow * 1e300).tolist() == [np.inf, np.inf]
    assert (narrow * 1e300).dtype == np.float32


@pytest.mark.parametrize("dtype", ["object", "str", "datetime64[s]", "float128", "V8", "nonsense"])
def test_bad_dtypes(dtype: str) -> None:
    for compute in (lambda: xarr.asarray([1.0], dtype=dtype), lambda: xarr.asarray([1.0]).astype(dtype)):
        with pytest.raises(DTypeError, match=r"is not (a dtype|an element type)"):
            compute()


@pytest.mark.parametrize(
    "look",
    [bool, float, int, np.asarray, lambda x: [10, 20][x], lambda x: range(3)[x]],
    ids=["bool", "float", "int", "asarray", "list index", "range index"],
)
def test_a_traced_value(look: Callable[[Any], Any]) -> None:
    with pytest.raises(TracedValueError, match="value of a traced array was asked for"):
        xarr.lower(lambda x: (look(x), x)[1], xarr.asarray(1))


def test_an_unknown_backend() -> None:
    with pytest.raises(BackendError, match=r"no backend called 'warp'.*available: numpy"):
        xarr.set_backend("warp")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(
            lambda: xarr.evaluate([xarr.ones(2), "a"]),
            "evaluate wants Arrays, and pytrees of them, got str",
            id="evaluate",
        ),
        pytest.param(lambda: xarr.lower(3), "lower wants a function, got int", id="lower"),
        pytest.param(lambda: xarr.stablehlo.parse(b"module"), "the text of a module, got bytes", id="parse"),
        pytest.param(lambda: xarr.stablehlo.run(None), "the text of a module, got NoneType", id="run"),
    ],
)
def test_entry_points_say_what_they_take(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("dtype", ["(2,3) - (3,)", "f4,,", "2f4"])
def test_text_that_numpy_cannot_read_as_a_dtype(dtype: str) -> None:
    with pytest.raises(DTypeError, match="wanted one of bool"):
        xarr.zeros(2).astype(dtype)


def test_a_ragged_list_is_a_value_error_as_in_numpy() -> None:
    for ragged in ([[1, 2], [3]], [[1, 2], xarr.ones(3)]):
        with pytest.raises(ValueError, match="a ragged list is not an array"):
            xarr.asarray(ragged)


ONE = np.ones(3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: xarr.concatenate(xarr.ones(3), xarr.ones(3)), r"one sequence: concatenate\(\(x, y\)\)"),
        (lambda: xarr.concatenate(ONE, ONE), r"wanted an int for axis, got an array; .*concatenate"),
        (lambda: xarr.stack(ONE, ONE), r"one sequence: stack\(\(x, y\)\)"),
        (
            lambda: xarr.sum(ONE, xarr.ones((2, 3))),
            r"sum: axis must be an integer, got an array of shape \(3,\)",
        ),
        (lambda: xarr.argsort(ONE, ONE), r"axis must be an integer, got an array of shape \(3,\)"),
        (lambda: xarr.sum(ONE, [xarr.ones((2, 3))]), r"an integer, got an array of shape \(2, 3\)"),
        (lambda: xarr.sum(ONE, [xarr.asarray(0.5)]), "an integer, got"),
    ],
)
def test_an_array_where_an_axis_is_wanted(call: Callable[[], object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: xarr.lax.switch(0, 5), "switch: wanted a sequence of functions for branches, got 5"),
        (lambda: xarr.lax.stack(None), "stack: wanted a sequence of arrays, got None"),
        (lambda: xarr.select(None, [ONE]), "select: wanted lists of conditions and of choices, got None"),
        (lambda: xarr.select([ONE > 0], 1.5), "select: wanted lists of conditions and of choices, got 1.5"),
    ],
)
def test_what_is_no_sequence(call: Callable[[], object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        call()


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("flaot32", r"'flaot32' is not a dtype; did you mean float32\? wanted one of bool, int8"),
        ("zzz", "'zzz' is not a dtype; wanted one of bool, int8"),
        (3, r"3 is not a dtype; for a shape of several sizes write one tuple, \(…, 3\); wanted one of"),
    ],
)
def test_a_dtype_that_is_none(dtype: Any, text: str) -> None:
    with pytest.raises(DTypeError, match=text):
        xarr.zeros(2, dtype)


def test_messages_name_what_the_caller_wrote() -> None:
    x = xarr.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match=r"^AtIndex\.set\(\) missing"):
        x.at[0].set()  # type: ignore[call-arg]
    with pytest.raises(xarr.errors.InputError, match=r"^tree.unflatten: wanted a structure.* got int$"):
        xarr.tree.unflatten(3, [1])
    with pytest.raises(xarr.errors.DTypeError, match=r"^finfo: ") as caught:
        xarr.finfo("int8")
    assert type(caught.value).__name__ == "KindError"
    with pytest.raises(xarr.errors.TracedValueError, match=r"one device.*move the arguments"):
        xarr.jit(lambda y: y.to("reference"))(x)
