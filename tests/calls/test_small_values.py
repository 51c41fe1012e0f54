"""Operators on small values: the same element types, bits and refusals as of the ops that are recorded otherwise."""

from __future__ import annotations

import operator
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.lax_values import dtype_of
from tests.support import fuzz
from tests.support.marks import COMPUTED_AT_ONCE
from xarr import lax
from xarr.base.at_once.obstacles import Obstacle, obstacles
from xarr.calls import host_functions
from xarr.calls.concrete_values import small_value
from xarr.calls.small_values import OPERATORS, stand_against
from xarr.ir.types import PLAIN
from xarr.runtime import check_flags, handles

pytestmark = pytest.mark.usefixtures("on_numpy")

FLOATS: Final = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.0,
    3.0,
    0.1,
    1e308,
    -1e308,
    5e-324,
    2.0**53 + 2,
    np.inf,
    -np.inf,
    np.nan,
]
INTS: Final = [
    0,
    1,
    -1,
    2,
    3,
    -7,
    5,
    63,
    64,
    100,
    -128,
    127,
    255,
    2**31 - 1,
    -(2**31),
    2**53 + 1,
    2**63 - 1,
    -(2**63),
]
DTYPES: Final = sorted({np.dtype(char) for char in PLAIN}, key=str)
METHODS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv},
    **{"//": operator.floordiv, "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor},
    **{"<<": operator.lshift, ">>": operator.rshift, "==": operator.eq, "!=": operator.ne},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
}


def values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Elements of a type: all that is special of it."""
    if dtype.kind == "b":
        return np.array([False, True])
    with np.errstate(all="ignore"):
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return np.array([n for n in INTS if info.min <= n <= info.max], dtype)
        if dtype.kind == "c":
            return np.array([complex(a, b) for a, b in zip(FLOATS, FLOATS[::-1], strict=True)], dtype)
        return np.array(FLOATS, dtype)


def outcome(method: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The value of an operator, or the class of what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.asarray(method(left, right))
    except Exception as error:
        return type(error)


def same(method: Callable[[Any, Any], Any], left: Any, right: Any, what: object) -> None:
    """Compare what is computed at once with what the op gives."""
    got = outcome(method, left, right)
    obstacle = Obstacle()
    wanted = outcome(method, left, right)
    del obstacle
    assert isinstance(got, type) == isinstance(wanted, type), (what, got, wanted)
    if isinstance(wanted, type):
        assert got is wanted, what
    else:
        assert_same(got, wanted), what
        assert got.dtype == wanted.dtype, what


@pytest.mark.implicit
@pytest.mark.parametrize("symbol", METHODS)
def test_operators_on_arrays_of_all_types(symbol: str) -> None:
    assert METHODS.keys() == OPERATORS.keys()
    for first in DTYPES:
        for second in DTYPES:
            left, right = values(first), values(second)
            pair = xarr.asarray(left[:, None]).evaluate(), xarr.asarray(right).evaluate()
            same(METHODS[symbol], *pair, (first, second))
            same(METHODS[symbol], pair[1], pair[0], (second, first))


@pytest.mark.implicit
@pytest.mark.parametrize("symbol", METHODS)
def test_operators_on_single_elements(symbol: str) -> None:
    kinds = [
        np.dtype(np.float64),
        np.dtype(np.int64),
        np.dtype(np.bool_),
        np.dtype(np.float32),
        np.dtype(np.uint8),
    ]
    for first in kinds:
        for second in kinds:
            for number, a in enumerate(values(first)[:14]):
                for b in fuzz.one_in(3, values(second)[-14:], number + [*METHODS].index(symbol)):
                    same(METHODS[symbol], xarr.asarray(a).evaluate(), xarr.asarray(b).evaluate(), (a, b))


@pytest.mark.implicit
@pytest.mark.parametrize("methods", ["python_methods", "machine_code_methods"])
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/"])
def test_single_complex_numbers_are_rounded_as_those_of_arrays(
    symbol: str, methods: str, request: pytest.FixtureRequest
) -> None:
    """NumPy's loops round a product and a sum once where the processor can, its operator of two numbers twice."""
    request.getfixturevalue(methods)
    rng = np.random.default_rng(0)
    for a, b in rng.normal(size=(12, 2, 2)):
        for first in (np.complex64, np.complex128):
            single = first(complex(*a))
            array = xarr.asarray(single).evaluate()
            for second in (np.complex64, np.complex128, np.float32, np.float64):
                other = second(complex(*b) if second in (np.complex64, np.complex128) else b[0])
                for each in (
                    xarr.asarray(other).evaluate(),
                    other,
                    complex(*b),
                    xarr.asarray([other]).evaluate(),
                ):
                    same(METHODS[symbol], array, each, (single, each))
                    same(METHODS[symbol], each, array, (each, single))
            for power in (xarr.square, lambda x: x**2) if symbol == "*" else ():
                same(lambda x, _, power=power: power(x), array, None, single)


@pytest.mark.implicit
@pytest.mark.parametrize("symbol", METHODS)
def test_operators_beside_numbers_of_numpys(symbol: str) -> None:
    for row, first in enumerate(DTYPES):
        array = xarr.asarray(values(first)).evaluate()
        single = xarr.asarray(values(first)[-1]).evaluate()
        for second in fuzz.one_in(2, DTYPES, row + [*METHODS].index(symbol)):
            for number in values(second)[1::7]:
                for each in (array, single):
                    same(METHODS[symbol], each, number, (first, number))
                    same(METHODS[symbol], number, each, (number, first))


@pytest.mark.implicit
@pytest.mark.parametrize("symbol", METHODS)
def test_operators_beside_arrays_of_numpys(symbol: str) -> None:
    hosts = [values(dtype)[-2:] for dtype in DTYPES] + [np.array(2.5), np.array(3), np.float16([1, 2])]
    hosts += [np.ones((2, 2))[:, ::-1], np.ones(2, ">f8"), np.array(["a", "b"]), np.zeros(0), np.ones(3)]
    for dtype in (np.float64, np.float32, np.int64, np.uint8, np.bool_, np.complex128):
        pair, single = values(np.dtype(dtype))[-2:], values(np.dtype(dtype))[-1]
        for array in (xarr.asarray(pair).evaluate(), xarr.asarray(single).evaluate(), xarr.arange(2) + 1):
            for host in hosts:
                same(METHODS[symbol], array, host, (array, host))
                same(METHODS[symbol], host, array, (host, array))


@pytest.mark.implicit
@COMPUTED_AT_ONCE
def test_arrays_of_numpys_go_along_with_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    host, x, constant = np.arange(3.0), xarr.asarray([1.0, 2.0, 3.0]), xarr.arange(3)
    results = [x + host, host + x, constant + host, host * constant, xarr.maximum(x, host), x[host > 0]]
    results += [xarr.sum(host), xarr.where(host > 1, x, 0.0), xarr.stack([x, host]), host @ x]
    assert [each._shown for each in results] == [None] * len(results)
    for _ in range(6):
        turned = xarr.flip(host)
        sums = xarr.sin(host) + xarr.linalg.norm(host)
        copied = constant[np.array([2, 0])]
        host[0] += 1
    assert turned.tolist() == [2.0, 1.0, 5.0] and copied.tolist() == [2, 0] and sums.shape == (3,)
    uncommitted = xarr.backend.default_device().uncommitted
    for each in (constant + host, host + constant, xarr.sum(host), xarr.flip(host), xarr.sin(host)):
        assert each._node.device is uncommitted
    for each in (x + host, xarr.minimum(host, x)):
        assert each._node.device is x._node.device
    index = np.array([1])
    part = constant[index]
    index[0] = 2
    assert xarr.jit(lambda a: a + part)(xarr.asarray(0)).tolist() == [1]


@pytest.mark.implicit
@pytest.mark.parametrize("symbol", METHODS)
def test_operators_beside_python_numbers(symbol: str) -> None:
    numbers = [
        0,
        1,
        -1,
        3,
        200,
        2**24 + 1,
        2**53 + 1,
        -(2**63),
        2**64,
        0.0,
        -0.0,
        2.5,
        1e39,
        1e308,
        np.inf,
        np.nan,
        True,
    ]
    numbers = [float(n) if isinstance(n, np.floating) else n for n in numbers]
    for dtype in DTYPES:
        for operand in (values(dtype), values(dtype)[1]):
            array = xarr.asarray(operand).evaluate()
            for number in numbers:
                same(METHODS[symbol], array, number, (dtype, number))
                same(METHODS[symbol], number, array, (number, dtype))


@pytest.mark.implicit
@pytest.mark.parametrize(
    "name",
    [
        *(
            "maximum",
            "minimum",
            "add",
            "subtract",
            "multiply",
            "divide",
            "bitwise_and",
            "left_shift",
            "arctan2",
        ),
        *("less", "equal", "nextafter"),
    ],
)
def test_functions_of_two_operands(name: str) -> None:
    function = getattr(xarr, name)
    for dtype in map(np.dtype, ("f8", "f4", "i8", "i4", "u1", "?", "c16")):
        left, right = values(dtype)[:, None], values(dtype)
        for a, b in (
            (left, right),
            (right[1], right),
            (right, right[1]),
            (right[1], right[0]),
            (right, right),
        ):
            pair = xarr.asarray(a).evaluate(), xarr.asarray(b).evaluate()
            outcome(function, *pair)
            same(function, *pair, dtype)
            for number in (0, -1, 3, 300, 2**60, 0.0, -0.0, 1.5, 1e39, np.inf, np.nan, True):
                number = float(number) if isinstance(number, np.floating) else number
                same(function, pair[1], number, (dtype, number))
                same(function, number, pair[1], (number, dtype))


@pytest.mark.parametrize("name", ["sqrt", "exp", "negative", "sin", "invert", "log", "square", "abs", "tanh"])
def test_functions_of_one_operand(name: str) -> None:
    function = getattr(xarr, name)
    for dtype in DTYPES:
        for operand in (values(dtype), values(dtype)[1], values(dtype)[::2]):
            array = xarr.asarray(operand).evaluate()
            for _ in range(6):
                outcome(lambda x, y: function(x), array, None)
            same(lambda x, y: function(x), array, None, dtype)


@pytest.mark.implicit
@COMPUTED_AT_ONCE
def test_complex_numbers_of_ordinary_size_are_divided_at_once() -> None:
    z = xarr.asarray(np.array([1j, 2.0 - 1j, 0j]))
    n, one = xarr.asarray([1, 2, 3]), xarr.asarray(np.array([2j]))[0]
    for left, right in ((z, n), (z, 3), (z, 2.5), (1j, n), (z, one), (one, n), (one, one), (n, 1 - 1j)):
        assert (left / right)._shown is None
        same(operator.truediv, left, right, (left, right))
    assert (n / z)._node.type.short() == "c128[3]" and np.isnan(np.asarray(n / z)[2])


@pytest.mark.implicit
@COMPUTED_AT_ONCE
def test_lists_of_elements_and_functions_of_other_types_are_computed_at_once() -> None:
    x, bytes_ = xarr.asarray([3.0, 1.0, 2.0]), xarr.asarray(np.array([3, 1, 3], np.uint8))
    keys = [xarr.arange(150) % 7 + 0 * bytes_[0].astype(int)] * 2
    calls: dict[str, Callable[[], xarr.Array]] = {
        "elements": lambda: xarr.asarray([x[0], 2.0, [x[1]][0]]),
        "rows": lambda: xarr.asarray([x, [1, 2, x[2]]]),
        "extremes": lambda: xarr.maximum.accumulate(x),
        "counts": lambda: xarr.bincount(bytes_, minlength=6),
        "keys": lambda: xarr.lexsort(keys),
        "limits": lambda: (x * 85.2).astype("uint8"),
        "root": lambda: x[0] ** 0.5,
        "number": lambda: xarr.clip(x[0], -1.0, 1.0),
    }
    pending = (xarr.asarray(np.ones((400, 500))) + 1).sum(0)
    assert pending._value is None and (pending**3).tolist() == [800.0**3] * 500
    for name, call in calls.items():
        assert call()._shown is None, name
        same(lambda *_, call=call: call(), x, None, name)


@pytest.mark.implicit
@COMPUTED_AT_ONCE
def test_arrays_of_numbers_are_copied_at_once() -> None:
    lists: list[Any] = [
        [],
        [[]],
        [1, 2],
        [True, 2],
        (1.5, 2),
        [[1], (2.0,)],
        [1j, 2],
        [2**63],
        [2**70],
        [[1], 2],
    ]
    lists += [[1, "a"], ["1", "2"], [None], [np.float32(1), 2], [-0.0, np.nan], [np.ones(2), [1, 2]], [True]]
    hosts = [values(dtype) for dtype in DTYPES] + [np.ones((2, 3), order="F")[:, ::-1], np.ones(2, ">f8")]
    hosts += [np.ones(2, dtype_of("bfloat16")), np.array("a"), np.array(2.0), np.array(["a"]), np.zeros(0)]
    hosts += [np.ones(2, np.float16), np.zeros(2, "M8[s]"), np.zeros(2, object)]
    for value in (*lists, *hosts):
        for dtype in (None, float, int, "float32", np.bool_, "complex128", "int8", "bfloat16", "nonsense"):
            same(xarr.asarray, value, dtype, (value, dtype))
    assert xarr.asarray([1, 2], float)._shown is None is not xarr.asarray([1.5], "float32")._shown
    host = np.arange(3.0)
    array = xarr.asarray(host)
    host[0], array[1] = 7, 8
    assert array._shown is None
    assert host.tolist() == [7, 1, 2] and array.tolist() == [0, 8, 2]
    assert array._node.device is xarr.backend.default_device()
    assert xarr.asarray(np.zeros(2**16))._shown is not None


@pytest.mark.implicit
@COMPUTED_AT_ONCE
def test_what_is_computed_at_once() -> None:
    """The other tests compare nothing if no operator is computed here."""
    x, y, n = (xarr.asarray(values).evaluate() for values in ([1.0, 2.0], [3.0, 4.0], [1, 2]))
    s = x[0]
    assert type(small_value(s)) is float and s._shown is None
    for symbol, operator_ in OPERATORS.items():
        frame = sys._getframe()
        ints = operator_.combine(n, n, frame)
        assert ints is not None or symbol in ("//", "%")
        assert symbol in ("&", "|", "^", "<<", ">>") or operator_.combine(s, s, frame) is not None
    assert (x + y)._shown is None
    obstacle = Obstacle()
    assert obstacles
    del obstacle
    assert not obstacles


@pytest.mark.implicit
@COMPUTED_AT_ONCE
def test_a_check_that_is_not_read_on_another_device_changes_nothing_here() -> None:
    x = xarr.asarray([1.0, 2.0]).evaluate()
    reference = weakref.ref(x._node)
    check_flags.unread[reference] = ()
    try:
        assert xarr.sum(x * x[None]).is_evaluated
        assert xarr.cumsum(x).is_evaluated
    finally:
        del check_flags.unread[reference]


def test_values_that_two_arrays_hold_are_written_to_apart() -> None:
    x = xarr.asarray([1.0, 2.0]).evaluate() + 1
    y = x.copy()
    view = x[:]
    recorded = xarr.sort(x)
    host = np.asarray(y)
    x[0] = 7
    x += 1
    y[1] = 9
    assert_same(host, np.array([2.0, 3.0]))
    assert_same(view, np.array([2.0, 3.0]))
    assert_same(recorded, np.array([2.0, 3.0]))
    assert_same(x, np.array([8.0, 4.0]))
    assert_same(y, np.array([2.0, 9.0]))


def test_an_array_of_numpys_cannot_be_made_writeable() -> None:
    x = xarr.asarray(np.arange(300.0)).evaluate() + 1
    for host in (np.asarray(x), np.asarray(x[::2]), np.asarray(x[3])):
        assert not host.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.asarray(x).flags.writeable = True


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3b11fnuz", "float8_e5m2", "float4_e2m1fn", "int4", "uint2"]
)
def test_numpy_reads_small_values_of_types_that_it_has_not(name: str) -> None:
    x = xarr.asarray(np.ones(3, dtype_of(name)))
    for value in (x, lax.add(x, x), x[1], x[:2]):
        assert np.asarray(value).dtype == dtype_of(name)


@pytest.mark.implicit
def test_numbers_and_indices_are_int64_where_numpys_ints_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under WebAssembly, where NumPy's own ints have 32 bits, those of `argmax` for one."""
    narrow, array = np.dtype(np.int32), xarr.asarray([3, 1, 2])
    run = host_functions.HostFunction(host_functions.NumPyCall(lambda x: np.int32(0))).run_in_python
    assert stand_against(np.dtype(np.int64)) is None
    assert run([array], {}).dtype == np.int32
    obstacle = stand_against(narrow)
    assert obstacle is not None
    try:
        assert run([array], {}) is None
        monkeypatch.setattr(handles, "PYTHON_TYPES", handles.list_python_types(narrow))
        results = [array.argmax(), array.sum(), xarr.count_nonzero(array), array[0], xarr.asarray(5)]
        assert [result.dtype for result in results] == [np.int64] * 5
        assert type(handles.scalar_value(np.asarray(5))) is np.int64
        assert type(handles.scalar_value(np.asarray(5.0))) is float
    finally:
        del obstacle
    assert handles.list_python_types(np.dtype(np.int64)) >= {np.dtype(np.int64), np.dtype(np.float64)}
