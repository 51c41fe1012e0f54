"""Errors of the functions of xarr.lax name the function that was called, and results that are no arrays."""

import inspect
import random
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.errors import EvaluationError, InputError, XarrError

x = xarr.ones((2, 3))


def _functions(namespace: Any) -> list[Any]:
    return [
        pytest.param(getattr(namespace, name), id=name)
        for name in dir(namespace)
        if isinstance(getattr(namespace, name), FunctionType)
        and not name.startswith("_")
        # lax.linalg also has the functions of lax that it uses.
        and (namespace is lax or getattr(namespace, name).__module__ == namespace.__name__)
    ]


#: Arguments that are wrong in most positions.
WRONG = (
    *("text", None, 1.5, 0, 1, -1, 7, (), (0,), (1, 0), (0, 0), object(), "float32", np.int32, float("nan")),
    *(x, x.astype("int32"), x[0] > 0, x.astype("complex64"), x[0, 0], [x, x], xarr.ones((3, 3)), x[:0]),
    *(lambda *_: "a",),
)
#: Functions whose errors do not begin with their names, and why.
EXCUSED = {
    "create_token": "it takes nothing but what makes it like jax.lax's",
    "partition_id": "it takes nothing",
    "replica_id": "it takes nothing",
    "register_custom_call": "a name and a function are all it wants, and it would keep them",
    "seed_rng": "the seed goes to NumPy, whose error says what is wrong",
    "stop_gradient": "it returns whatever it gets",
}


def _arguments(function: Callable[..., Any], rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for the parameters without defaults, and for a third of the others."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    is_positional = True
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += rng.choices(WRONG, k=rng.randint(0, 3))
        elif parameter.default is not parameter.empty and rng.random() < 0.7:
            is_positional = False
        elif is_positional and parameter.kind is not parameter.KEYWORD_ONLY:
            args.append(rng.choice(WRONG))
        elif parameter.kind is not parameter.VAR_KEYWORD:
            kwargs[parameter.name] = rng.choice(WRONG)
    return args, kwargs


def _find_misnamed(function: Callable[..., Any], calls: int = 40) -> tuple[list[str], int]:
    """The errors of random calls that do not begin with the function's name, and how many calls failed."""
    name, rng = function.__name__, random.Random(function.__name__)
    misnamed, failed = [], 0
    for _ in range(calls):
        args, kwargs = _arguments(function, rng)
        try:
            function(*args, **kwargs)
        except (XarrError, TypeError, ValueError, LookupError, AttributeError) as error:
            failed += 1
            # An explained broadcast begins with the operation as the user wrote it.
            is_named = str(error).startswith((f"{name}: ", f"{name} [", f"{name} of "))
            if not isinstance(error, XarrError) or not (is_named or hasattr(error, "explanation")):
                misnamed.append(repr(error))
    return misnamed, failed


@pytest.mark.parametrize("function", _functions(lax) + _functions(lax.linalg))
def test_errors_begin_with_the_function_that_was_called(function: Callable[..., Any]) -> None:
    misnamed, failed = _find_misnamed(function)
    assert failed or function.__name__ in EXCUSED
    assert misnamed == [] or function.__name__ in EXCUSED, "each wants the decorator names_errors"


def test_an_error_that_names_no_function_is_found() -> None:
    def add(a: Any) -> Any:
        raise InputError("wanted numbers")

    assert _find_misnamed(add, 1) == (["InputError('wanted numbers')"], 1)


def error_of(call: Callable[[], Any]) -> XarrError:
    with pytest.raises(XarrError) as caught:
        call()
    return caught.value


def _text(*_: Any) -> Any:
    return "a"


vector = xarr.ones(3)
NO_ARRAYS = {
    "scan: the result of f is": lambda: lax.scan(_text, 0.0, vector),
    "scan: the result of f[1] is": lambda: lax.scan(lambda c, x: (c, "a"), 0.0, vector),
    "map: the result of f is": lambda: lax.map(_text, vector),
    "map: the result of f['k'] is": lambda: lax.map(lambda x: {"k": "a"}, vector),
    "fori_loop: the result of body_fun is": lambda: lax.fori_loop(0, 3, _text, 1.0),
    "fori_loop: the result of body_fun[0] is": lambda: lax.fori_loop(0, 3, lambda i, c: ("a",), (1.0,)),
    "while_loop: the result of cond_fun is": lambda: lax.while_loop(_text, lambda c: c, 1.0),
    "while_loop: the result of body_fun is": lambda: lax.while_loop(lambda c: c < 1, _text, 1.0),
    "cond: the result of true_fun is": lambda: lax.cond(True, _text, lambda: 1.0),
    "switch: the result of branch 1 is": lambda: lax.switch(0, [lambda: 1.0, _text]),
    "conditional: the result of false_fun is": lambda: lax.conditional(True, 1.0, lambda a: a, 1.0, _text),
    "call: the result of function is": lambda: lax.call(_text, 1.0),
    "associative_scan: the result of fn is": lambda: lax.associative_scan(_text, vector),
    "associative_scan: the result of fn[1] is": lambda: lax.associative_scan(
        lambda a, b: (a[0], "a"), (vector, vector)
    ),
    "map_elements: the result of computation is": lambda: lax.map_elements(_text, vector),
    "reduce: the result of computation is": lambda: lax.reduce(vector, 0.0, _text, (0,)),
    "reduce_window: the result of computation is": lambda: lax.reduce_window(
        vector, 0.0, _text, (2,), (1,), "VALID"
    ),
    "sort_with: the result of comparator is": lambda: lax.sort_with(vector, _text),
}


@pytest.mark.parametrize("start", NO_ARRAYS)
def test_a_result_that_is_no_array_is_named_with_function_argument_and_leaf(start: str) -> None:
    error = error_of(NO_ARRAYS[start])
    assert isinstance(error, InputError)
    assert str(error).startswith(
        f"{start} not an array, number, or tuple, list, dict or dataclass of them: strings"
    )


def test_loops_that_are_scans_go_by_their_own_names() -> None:
    assert str(error_of(lambda: lax.map(lambda a: a, 1.0))).startswith(
        "map: wanted arrays with a leading axis"
    )
    assert str(error_of(lambda: lax.map(lambda a, b: a, vector))).startswith(
        "map: f is called with 1 argument"
    )
    assert str(error_of(lambda: lax.conditional(vector, 1, abs, 1, abs))).startswith("conditional [C1]: ")


def test_a_callback_that_breaks_its_promise_is_named_with_the_leaf() -> None:
    declared = (xarr.ShapeDtypeStruct((3,), "float64"), xarr.ShapeDtypeStruct((2,), "float32"))

    def pair(a: Any) -> Any:
        return a, a

    error = error_of(lambda: xarr.evaluate(xarr.pure_callback(pair, declared, vector)))
    assert isinstance(error, EvaluationError)
    assert "pure_callback: the result of pair[1] was declared float32 of shape (2,)" in str(error)
    assert str(error_of(lambda: xarr.pure_callback(1, declared))).startswith(
        "pure_callback: wanted a function"
    )
