"""config.debug_nans and config.debug_overflow: which op is named, and which numbers are nobody's fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.errors import ConfigError, NotANumberError, NumberOverflowError, XarrError

VALUES = [1.0, -4.0, 0.0]


@pytest.fixture
def x() -> xarr.Array:
    return xarr.asarray(VALUES)


NANS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "log": (xarr.log, r"^log made a NaN of -4.0 at index \(1,\) in f64\[3\]; built at .*test_nan_checks.py"),
    "within": (lambda x: (xarr.sqrt(x) * 2).sum(), r"^sqrt made a NaN of -4.0 at index \(1,\)"),
    "several": (lambda x: xarr.log(-abs(x) - 1), r"made a NaN of -2.0 at index \(0,\), the first of 3,"),
    "scalar": (lambda x: xarr.asarray(xarr.inf) - xarr.inf, r"^sub made a NaN of inf and inf in f64\[\]"),
    "complex": (lambda x: (x + 0j) / 0, "made a NaN"),
    "jitted": (xarr.jit(lambda x: xarr.sqrt(x) + 1), r"^sqrt made a NaN of -4.0"),
    "sum": (lambda x: (x[:2] * xarr.asarray([xarr.inf, xarr.inf])).sum(), r"^reduce made a NaN in f64\[\]"),
    "product": (
        lambda x: xarr.asarray([[xarr.inf, 1.0], [2.0, 3.0]]) @ xarr.asarray([[1.0, 0.0], [2.0, 3.0]]),
        r"^dot_general made a NaN at index \(0, 1\)",
    ),
    "loop": (
        lambda x: lax.fori_loop(0, 3, lambda i, y: xarr.sqrt(y) - 2, xarr.asarray(4.0)),
        r"^sqrt made a NaN of -2.0 in f64\[\]; built at .*test_nan_checks.py(.|\n)*"
        r"\nin iteration 2 of the loop built at .*test_nan_checks.py",
    ),
    "scan": (
        lambda x: lax.scan(lambda c, y: (c - y, xarr.log(c) + 1), x[0] * 2, abs(x))[1],
        r"^log made a NaN of -3.0 in f64\[\]; (.|\n)*\nin iteration 2 of the loop",
    ),
    "map": (
        lambda x: lax.map(lambda row: xarr.sqrt(row).sum(), xarr.stack([abs(x), x])),
        r"^sqrt made a NaN of -4.0 at index \(1,\) in f64\[3\]; (.|\n)*\nin iteration 1 of the loop",
    ),
    "loop in a loop": (
        lambda x: lax.fori_loop(
            0,
            3,
            lambda i, y: lax.while_loop(lambda z: z > 0.5, lambda z: xarr.sqrt(z - 2) + 0.5, y),
            x[0] * 6,
        ),
        r"^sqrt made a NaN of -0.79\d* (.|\n)*\nin iteration 2 of the loop (.|\n)*\nin iteration 0 of the loop",
    ),
    "branch": (
        lambda x: lax.cond(x[1] < 0, xarr.log, xarr.sqrt, x[1]),
        r"^log made a NaN of -4.0 in f64\[\];",
    ),
    "switch": (lambda x: lax.switch(7, [abs, lambda y: xarr.log(y) * 2], x[1]), r"^log made a NaN of -4.0"),
    "call": (lambda x: lax.call(lambda y: xarr.log(y) * 2, x), r"^log made a NaN of -4.0 at index \(1,\)"),
    # Another run would draw other numbers.
    "random loop": (
        lambda x: lax.fori_loop(0, 2, lambda i, y: xarr.log(y) + lax.rng_uniform(0.0, 1.0, ()), x[1]),
        "^get_tuple_element made a NaN in",
    ),
}


@pytest.mark.parametrize(("call", "message"), NANS.values(), ids=list(NANS))
def test_the_op_that_makes_a_nan_is_named(call: Callable[[Any], Any], message: str, x: xarr.Array) -> None:
    with xarr.config(debug_nans=True), pytest.raises(NotANumberError, match=message) as caught:
        np.asarray(call(x))
    assert isinstance(caught.value, FloatingPointError)
    np.asarray(call(x))  # No error without the setting.


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + xarr.nan,
        lambda x: xarr.asarray([xarr.nan]) * 2,
        lambda x: xarr.max(x),
        lambda x: x.astype("int32") // 2,
        lambda x: xarr.random.normal(xarr.random.key(0), (3,)),
        lambda x: lax.bitcast_convert_type(xarr.asarray([2**63 - 1]), "float64"),
        lambda x: xarr.sort(x)[::-1],
    ],
    ids=["literal", "data", "reduction", "integers", "random", "bits", "variadic"],
)
def test_nans_that_were_there_are_no_error(call: Callable[[Any], Any], x: xarr.Array) -> None:
    wanted = np.asarray(call(x))
    with xarr.config(debug_nans=True, debug_overflow=True):
        assert_same(call(x), wanted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: xarr.exp(x * 1000), r"^exp made an infinity of 1000.0 at index \(0,\) in f64\[3\]; built"),
        (lambda x: 1 / x, r"^div made an infinity of .* at index \(2,\)"),
        (lambda x: (x * 1e300).astype("float32"), "convert_element_type made an infinity of 1e.300"),
    ],
    ids=["exp", "division", "conversion"],
)
def test_the_op_that_makes_an_infinity_is_named(
    call: Callable[[Any], Any], message: str, x: xarr.Array
) -> None:
    with xarr.config(debug_overflow=True), pytest.raises(NumberOverflowError, match=message):
        np.asarray(call(x))
    with xarr.config(debug_nans=True):
        assert np.isinf(np.asarray(call(x))).any()


def test_infinities_that_were_there_are_no_error() -> None:
    with xarr.config(debug_overflow=True):
        assert np.asarray(xarr.asarray([xarr.inf, 1.0]) * 2).tolist() == [np.inf, 2]
        assert np.asarray(xarr.min(xarr.asarray([3.0]))) == 3


def test_a_function_that_is_compiled_already_is_checked_too(x: xarr.Array) -> None:
    function = xarr.jit(lambda x: xarr.log(x) * 2)
    for _ in range(3):
        function(x)
    with xarr.config(debug_nans=True), pytest.raises(NotANumberError, match=r"^log made a NaN"):
        np.asarray(function(x))
    assert np.isnan(np.asarray(function(x))).any()


INF = xarr.inf
GUARDED: dict[str, Callable[[Any], Any]] = {
    "i0": lambda x: xarr.i0(xarr.zeros_like(x)),
    "isclose": lambda x: xarr.isclose(x, x),
    "allclose": lambda x: xarr.allclose(x, x),
    "hypot": lambda x: xarr.hypot(x, -x),
    "logaddexp": lambda x: xarr.logaddexp(-x, -INF),
    "logaddexp2": lambda x: xarr.logaddexp2(-x, -INF),
    "interp": lambda x: xarr.interp(x, xarr.asarray([0.0, 1.0]), xarr.asarray([0.0, 1.0])),
    "truncated_normal": lambda x: xarr.random.truncated_normal(xarr.random.key(0), -1.0, x, (1,)),
    "sort of two": lambda x: lax.sort((x, xarr.asarray([xarr.nan])))[1],
}


@pytest.mark.parametrize("call", GUARDED.values(), ids=list(GUARDED))
def test_a_nan_that_its_own_function_guards_is_no_error(call: Callable[[Any], Any]) -> None:
    x = xarr.asarray([INF])
    wanted = np.asarray(call(x))
    with xarr.config(debug_nans=True):
        for result in (call(x), xarr.jit(call)(x)):
            assert_same(result, wanted)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: xarr.logaddexp(x, -x),
        lambda x: xarr.isclose(x, -x),
        lambda x: xarr.i0(xarr.zeros_like(x)),
    ],
    ids=["logaddexp", "isclose", "i0"],
)
def test_an_infinity_that_its_own_function_guards_is_no_error(call: Callable[[Any], Any]) -> None:
    x = xarr.asarray([1e308])
    wanted = np.asarray(call(x))
    with xarr.config(debug_overflow=True):
        assert_same(call(x), wanted)


#: Functions that are not called, or hand out a NaN without an error: why.
EXCUSED = {
    "breakpoint": "stops the program",
    "empty_like": "its values are anything",
    "geomspace": "NumPy computes it where the ends have values: no op makes the NaN",
    "save": "writes a file",
    "savetxt": "writes a file",
    "savez": "writes a file",
    "savez_compressed": "writes a file",
}
SPECIAL = ([0.0], [INF], [-INF, 2.0, -1.0])


@pytest.mark.parametrize(
    "namespace", [xarr, xarr.linalg, xarr.fft, lax], ids=["xarr", "linalg", "fft", "lax"]
)
def test_functions_raise_where_a_result_has_a_nan(namespace: Any) -> None:
    calls, wrong = 0, []
    for name in sorted(set(dir(namespace)) - EXCUSED.keys()):
        function = getattr(namespace, name)
        if name.startswith("_") or not callable(function) or isinstance(function, type):
            continue
        for values in SPECIAL:
            for arguments in ((values,), (values, values), (values, [0.0])):
                try:  # With new Arrays for each call: the second may be `out`.
                    wanted = _has_nan(function(*map(xarr.asarray, arguments)))
                except (XarrError, TypeError, ValueError, AttributeError):
                    continue  # It wants other arguments.
                calls += 1
                with xarr.config(debug_nans=True):
                    try:
                        raised = False
                        _has_nan(function(*map(xarr.asarray, arguments)))
                    except NotANumberError:
                        raised = True
                if raised is not wanted:
                    wrong.append((name, *arguments))
    assert not wrong
    assert calls > 20


def _has_nan(result: Any) -> bool:
    """Whether an array of a result holds a NaN: they are read one after the other."""
    arrays = [np.asarray(leaf) for leaf in xarr.tree.leaves(result) if isinstance(leaf, xarr.Array)]
    return any([bool((array != array).any()) for array in arrays])


def test_a_nan_that_the_user_guards_is_an_error(x: xarr.Array) -> None:
    with xarr.config(debug_nans=True), pytest.raises(NotANumberError, match=r"^log made a NaN of -4.0"):
        np.asarray(xarr.where(x > 0, xarr.log(x), 0.0))


def test_each_later_read_raises_again(x: xarr.Array) -> None:
    with xarr.config(debug_nans=True):
        root = xarr.sqrt(x)
        result = root + 1
        for array in (result, root, result):
            with pytest.raises(NotANumberError, match=r"^sqrt made a NaN of -4.0"):
                np.asarray(array)
    assert not root.is_evaluated
    assert_same(result, np.sqrt(np.asarray(VALUES).astype(complex)).real * [1, np.nan, 1] + 1)


@pytest.mark.usefixtures("recorded")
def test_a_read_in_each_thread_raises(x: xarr.Array) -> None:
    def ask(result: xarr.Array) -> str:
        with xarr.config(debug_nans=True):
            try:
                return f"{np.asarray(result)}"
            except NotANumberError as error:
                return str(error).partition(" of")[0]

    result = xarr.sqrt(x * 2) + 1
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, [result] * 8)) == {"sqrt made a NaN"}


def test_both_settings_are_flags() -> None:
    for name in ("debug_nans", "debug_overflow"):
        with pytest.raises(ConfigError, match="True or False"):
            setattr(xarr.config, name, "perhaps")


def test_a_loop_with_side_effects_runs_once(x: xarr.Array) -> None:
    seen: list[float] = []

    def body(i: Any, y: Any) -> Any:
        xarr.debug.callback(lambda value: seen.append(float(value)), y)
        return xarr.sqrt(y) - 2

    with xarr.config(debug_nans=True), pytest.raises(NotANumberError):
        np.asarray(lax.fori_loop(0, 2, body, xarr.asarray(1.0)))
    assert seen == [1.0, -1.0]


def test_an_infinity_is_found_in_the_iteration_that_makes_it() -> None:
    with xarr.config(debug_overflow=True), pytest.raises(NumberOverflowError) as caught:
        np.asarray(lax.fori_loop(0, 9, lambda i, y: y * y, np.float32(10)))
    assert re.match(
        r"mul made an infinity of 1.0\d*e\+32 and (.|\n)*\nin iteration 5 of the loop", str(caught.value)
    )
