"""Methods of machine code: the same values, types, errors and warnings as of the methods in Python and recorded ops."""

from __future__ import annotations

import inspect
import operator
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.calls.test_repeated_calls import calls_of_python
from tests.calls.test_small_values import DTYPES, METHODS, outcome, same, values
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.marks import COMPUTED_AT_ONCE
from xarr.arrays import native_methods
from xarr.base.at_once.obstacles import Obstacle
from xarr.calls.concrete_values import small_value
from xarr.errors import DonationError, ElementLoopWarning, IndexingError, PartUpdateWarning, XarrError
from xarr.indexing import element_loops
from xarr.ir import source

pytestmark = [
    pytest.mark.usefixtures("on_numpy", "machine_code_methods"),
    pytest.mark.implicit,
    COMPUTED_AT_ONCE,
]

SHAPES: Final = [(3,), (1,), (0,), (2, 3), (3, 1), (2, 0, 3), (2, 1, 3)]
NUMBERS: Final = [0, 1, -1, 3, 255, 2**24 + 1, 2**53 + 1, 2**64, -(2**63), True]
FLOATS: Final = [0.0, -0.0, 1.5, np.inf, -np.inf, float("nan"), 1e308, 1e39]
NUMPY_FOLDER: Final = os.path.join(os.path.dirname(np.__file__), "")
Draw = Callable[[np.random.Generator], Any]


@pytest.mark.parametrize("symbol", METHODS)
def test_operators_beside_numbers_of_numpys_and_complex_ones(symbol: str) -> None:
    numbers: list[Any] = [1j, 2 - 3j, complex(0, np.inf), 1e300j, 0j, 1e-320 + 0j, complex(np.nan, 1)]
    numbers += [number for dtype in DTYPES for number in values(dtype)[1::9]]
    for row, first in enumerate(DTYPES):
        array, single = (xarr.asarray(each).evaluate() for each in (values(first), values(first)[-1]))
        for number in fuzz.one_in(3, numbers, row + [*METHODS].index(symbol)):
            for each in (array, single):
                same(METHODS[symbol], each, number, (first, number))
                same(METHODS[symbol], number, each, (number, first))


def test_quotients_of_complex_numbers() -> None:
    rng = np.random.default_rng(5)
    scales = np.array([1.0, 1e-300, 1e300, 1e-320, 0.0, -0.0, np.inf, np.nan])
    for count in range(60):
        parts = rng.uniform(0.5, 2.0, (2, 2, 9)) * (
            scales[rng.integers(8, size=(2, 2, 9))] if count % 3 else 1.0
        )
        pairs = [np.ascontiguousarray(each.T).view(np.complex128)[:, 0] for each in parts]
        left, right = (xarr.asarray(each).evaluate() for each in pairs)
        same(operator.truediv, left, right, parts)
        same(operator.truediv, left[::2], right[::2], parts)
        same(operator.truediv, left[0], right, parts)
        same(operator.truediv, left, xarr.asarray(parts[1, 1]).evaluate(), parts)


def test_arrays_that_are_committed_and_that_are_not_are_computed_with_in_machine_code() -> None:
    x, rows = xarr.asarray([1.0, 2.0, 3.0]), xarr.asarray(np.arange(9.0).reshape(3, 3))
    u, chosen, order = xarr.zeros(3), xarr.zeros(3, dtype=bool), xarr.arange(3)
    u[1], chosen[2], order[0] = 4.0, True, 2
    device = x._device
    assert u._device is chosen._device is order._device is device.uncommitted
    calls: list[Callable[[], Any]] = [lambda: x + u, lambda: u * x, lambda: xarr.where(chosen, u, x)]
    calls += [lambda: xarr.concatenate([u, x]), lambda: rows[order], lambda: rows[chosen], lambda: u @ rows]
    for call in calls:
        call(), call(), call()
        assert call()._device is device
        # The lambda, what users call, NumPy's dispatcher, and the look-up of recorded calls where there are any.
        # Now and then machine code lets Python count what it has computed.
        assert min(calls_of_python(call) for _ in range(3)) <= 4
        same(lambda *_, call=call: call(), x, u, call)
    assert (u + order)._device is device.uncommitted
    u += x
    assert u._device is device and u.tolist() == [1.0, 6.0, 3.0]


def test_operators_of_constants_alone() -> None:
    for symbol, method in METHODS.items():
        constants = [xarr.arange(4), xarr.full(4, 2.5), xarr.zeros(4), xarr.arange(4) > 1, xarr.ones(())]
        for other in (2, 0.5, 1j, np.float32(3), *constants):
            same(method, xarr.arange(4), other, (symbol, other))
            same(method, other, xarr.full(4, 1.5), (symbol, other))
    row = xarr.arange(4) * 2 + 1
    assert row._device is None and small_value(row) is not None and row._node.op.name == "stablehlo.add"


def test_parts_of_parts_know_what_they_are_parts_of() -> None:
    x = xarr.asarray(np.arange(24.0).reshape(4, 6)).evaluate()
    part = x[1:][:, 2:][0]
    with pytest.warns(PartUpdateWarning, match=r"x\[1:\]\[:, 2:\]\[0\]"):
        part[0] = 1.0
    rows = x.reshape(8, 3)[1:]
    with pytest.warns(PartUpdateWarning, match=r"x\.reshape\(8, 3\)\[1:\]"):
        rows[0] = 1.0
    lost = xarr.asarray(np.arange(6.0)).evaluate()[1:][1:]
    lost[0] = 3.0  # of what is gone no warning


def pick(rng: np.random.Generator, items: list[Any]) -> Any:
    return items[rng.integers(len(items))]


def draw_array(
    rng: np.random.Generator, dtypes: list[Any], shape: tuple[int, ...] | None = None
) -> xarr.Array:
    """An Array with a value, in some order in memory, of special values too."""
    dtype = pick(rng, dtypes)
    shape = pick(rng, SHAPES) if shape is None else shape
    special = values(dtype)
    host = special[rng.integers(len(special), size=shape)].astype(dtype)
    if rng.random() < 0.3:
        host = np.asfortranarray(host)
    elif rng.random() < 0.2 and host.ndim:
        host = np.repeat(host, 2, 0)[::2]
    array = xarr.asarray(host).evaluate()
    small_value(array)
    return array


def draw_operand(rng: np.random.Generator) -> Any:
    kind = rng.random()
    if kind < 0.2:
        return pick(rng, NUMBERS)
    if kind < 0.35:
        return pick(rng, FLOATS)
    if kind < 0.6:
        return draw_array(rng, DTYPES, ())
    return draw_array(rng, DTYPES)


@pytest.mark.parametrize("seed", fuzz.seeds(8, 400))
def test_operators_give_what_ops_give(seed: int) -> None:
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(400):
        left, right = draw_operand(rng), draw_operand(rng)
        if isinstance(left, xarr.Array) or isinstance(right, xarr.Array):
            same(pick(rng, [*METHODS.values()]), left, right, (left, right))
            compared += 1
    assert compared > 100


UNARY: Final = {
    "neg": operator.neg,
    "abs": operator.abs,
    "square": lambda x: x**2,
    "inverse": lambda x: x**-1,
    "root": lambda x: pow(x, 0.5),
    "bool": bool,
    "float": float,
    "int": int,
    "index": operator.index,
}


@pytest.mark.parametrize("function", UNARY.values(), ids=UNARY)
def test_functions_of_one_value_give_what_ops_give(function: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(1)
    for dtype in DTYPES:
        for shape in ((), (3,), (2, 3)):
            array = draw_array(rng, [dtype], shape)
            same(lambda x, _: function(x), array, None, (dtype, shape))


STATEMENTS: Final = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.iand,
    operator.irshift,
]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: str(statement.__name__))
def test_statements_change_this_array_alone(statement: Callable[[Any, Any], Any]) -> None:
    rng = np.random.default_rng(2)

    def run(array: xarr.Array, other: Any) -> Any:
        own = array.copy()
        result = statement(own, other)
        assert result is own
        return own

    for _ in range(200):
        array, other = draw_array(rng, DTYPES), draw_operand(rng)
        before = np.array(array)
        same(run, array, other, (array, other))
        assert_same(np.asarray(array), before)


def draw_index(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    def item(size: int) -> Any:
        number = int(rng.integers(-size - 1, size + 1)) if size else 0
        ends = [None if rng.random() < 0.4 else int(rng.integers(-4, 5)) for _ in range(2)]
        step = pick(rng, [None, 1, 2, -1])
        return pick(
            rng,
            [
                number,
                number,
                slice(*ends, step),
                slice(None),
                None,
                ...,
                xarr.asarray(number).evaluate(),
                [0],
            ],
        )

    count = int(rng.integers(1, len(shape) + 2))
    items = tuple([item(shape[k] if k < len(shape) else 2) for k in range(count)])
    return items[0] if count == 1 and rng.random() < 0.7 else items


@pytest.mark.parametrize("seed", fuzz.seeds(8, 400))
def test_reading_gives_what_numpy_reads_or_the_same_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(300):
        array = draw_array(rng, DTYPES)
        index = draw_index(rng, array.shape)
        same(lambda x, i: x[i], array, index, (array, index))


@pytest.mark.parametrize("seed", fuzz.seeds(8, 400))
def test_writing_gives_what_is_written_otherwise(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def write(array: xarr.Array, arguments: Any) -> Any:
        index, value = arguments
        own, seen = array * 1 if array.dtype != bool else array & array, array
        before = np.array(seen)
        own[index] = value
        own[index] = value
        assert_same(np.asarray(seen), before)
        return own

    for _ in range(300):
        array = draw_array(rng, DTYPES)
        index = draw_index(rng, array.shape)
        value = draw_operand(rng)
        if rng.random() < 0.5:
            value = draw_array(rng, [array.dtype], ())
        same(write, array, (index, value), (array, index, value))


def test_what_machine_code_computes_makes_no_call_of_python() -> None:
    """The other tests compare nothing if all is left to Python."""
    x = xarr.asarray([1.0, 2.0, 3.0]).evaluate() * 1
    s, i = x[0], xarr.asarray([0, 1]).evaluate()[1]
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and not frame.f_code.co_filename.startswith(NUMPY_FOLDER):
            called.append(frame.f_code.co_qualname)

    def compute() -> list[Any]:
        made = [s + s, x + x, 1.0 - x, x[i], x[1:], -x, abs(s), s < 2.0, x**2, i % 2, x @ x]
        x[1], x[i], x[1:] = 5.0, s, 7.0
        number = s * 1.0
        number += 1.0
        return [*made, bool(s > 1.0), float(number), int(i)]

    compute()
    sys.setprofile(note)
    try:
        made = compute()
    finally:
        sys.setprofile(None)
    assert called == [compute.__qualname__]
    assert x.tolist() == [1.0, 7.0, 7.0] and made[-3:] == [False, 2.0, 1]


@contextmanager
def on_call(function: Any, act: Callable[[], object]) -> Iterator[list[str]]:
    """Act once as a function in Python is entered, as another thread or Ctrl-C may; gives the name of one entered."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is function.__code__ and not entered:
            entered.append(frame.f_code.co_name)
            act()

    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(None)


def test_an_index_that_changes_the_array_reads_what_there_was() -> None:
    x = xarr.asarray(np.full((40, 40), 2.0, np.float32)).evaluate() * 1
    i, others = xarr.asarray(np.int32(3)).evaluate(), []
    small_value(i)

    def change() -> None:
        x.__iadd__(1)
        others.extend([np.full((40, 40), 9.0, np.float32) for _ in range(8)])

    with on_call(native_methods._replaced["__index__"], change) as entered:
        element = x[i, 3]
    assert entered and others and float(element) == 2.0 and float(x[i, 3]) == 3.0


def test_an_array_changed_while_the_line_is_looked_for_is_written_to_as_it_is_then() -> None:
    x = xarr.asarray(np.zeros(40)).evaluate() * 1
    first, addresses = id(x._value), []

    def change() -> None:
        for _ in range(4):
            x.__iadd__(1)
            addresses.append(id(x._value))

    with on_call(native_methods._locate, change) as entered:
        x[3] = 7.0
    assert entered and first not in addresses
    assert x[3] == 7.0 and x[4] == 4.0


DOUBLE: Final = xarr.jit(lambda x: x * 2 + 1, donate_argnums=0)
MAKE: Final = xarr.jit(lambda x: x * 1 + 0)


def shared_array() -> xarr.Array:
    """An Array of ones with a node, of so many elements that NumPy lets other threads run while it reads them."""
    x: xarr.Array = MAKE(xarr.asarray(np.ones(20_000)))
    assert x._node.handles == 1
    small_value(x)
    return x


def test_memory_that_anything_else_refers_to_is_not_written_over() -> None:
    """As an operator in another thread does, which is no reader of the node; else it is written over."""
    for is_held in (False, True):
        x = shared_array()
        address = x._node.value.ctypes.data
        held = x._value if is_held else None
        assert (np.asarray(DOUBLE(x)).ctypes.data == address) is not is_held
        assert held is None or (held == 1).all()


@pytest.mark.parametrize(
    "read",
    [
        lambda x: np.asarray(x + x) == 2,
        lambda x: np.asarray(-x) == -1,
        lambda x: np.asarray(x.sum()) == 20_000,
        lambda x: np.asarray(xarr.isnan(x)) == 0,
        lambda x: np.asarray(x[1:]) == 1,
    ],
    ids=["operator", "sign", "method", "function", "part"],
)
def test_a_thread_reads_all_or_finds_it_donated(read: Callable[[Any], Any]) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    wrong: list[object] = []

    def run(x: xarr.Array, start: threading.Barrier) -> None:
        start.wait()
        try:
            for _ in range(20):
                if not np.all(read(x)):
                    wrong.append("another value")
        except DonationError:
            pass

    try:
        for _ in range(60):
            x, start = shared_array(), threading.Barrier(2)
            thread = threading.Thread(target=run, args=(x, start))
            thread.start()
            start.wait()
            y = DOUBLE(x)
            thread.join()
            assert (np.asarray(y) == 3).all()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_an_obstacle_leaves_all_to_python() -> None:
    x = xarr.asarray([1.0, 2.0]).evaluate() * 1
    obstacle = Obstacle()
    y = x + 1
    with xarr.config(small_arrays="lazy"):
        assert not (x + 1).is_evaluated and not x.sum().is_evaluated
    del obstacle
    assert y.tolist() == [2.0, 3.0]


def test_arrays_that_share_a_value_are_written_to_apart() -> None:
    x = xarr.asarray(np.arange(300.0)).evaluate() + 1
    copy, view, host = x.copy(), x[100:], np.asarray(x)
    x[100] = -1.0
    x[200:] = 0.0
    assert copy[100] == view[0] == host[100] == 101.0 and copy[250] == view[150] == host[250] == 251.0
    assert x[100] == -1.0 and x[250] == 0.0


def test_writing_to_a_part_warns() -> None:
    x = xarr.asarray(np.arange(6.0).reshape(2, 3)).evaluate() * 1
    row = x[0]
    with pytest.warns(PartUpdateWarning, match=r"x\[0\]"):
        row[1] = 5.0
    assert x[0, 1] == 1.0 and row[1] == 5.0
    x[1] += 1.0
    assert x[1].tolist() == [4.0, 5.0, 6.0]


def test_errors_are_those_of_the_methods_in_python() -> None:
    x = xarr.asarray([1.0, 2.0]).evaluate() * 1
    with pytest.raises(IndexingError, match="index 2 is out of bounds"):
        x[2]
    with pytest.raises(IndexingError, match="index -3 is out of bounds"):
        x[-3] = 1.0
    with pytest.raises(XarrError, match="does not broadcast"):
        x + xarr.asarray([1.0, 2.0, 3.0])
    with pytest.raises(TypeError):
        x.__setitem__(0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        x.sum(axes=0)
    with pytest.raises(xarr.errors.AxisError):
        x.sum(axis=1)


def test_results_know_the_line_that_made_them() -> None:
    x = xarr.asarray([1.0, 2.0]).evaluate() * 1
    for _ in range(3):
        y, s = x + 1.0, x[1]
        total = x.sum()
    for each, written in ((y, "x + 1.0"), (s, "x[1]"), (total, "x.sum()")):
        assert written in each._node.source.text()


def test_elements_of_a_line_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(element_loops, "LIMIT", 2000)
    element_loops.forget()
    x = xarr.asarray(np.zeros(3)).evaluate() * 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(1500):
            x[1]
        assert not caught
        for _ in range(2500):
            x[1] = 2.0
    assert [each.category for each in caught] == [ElementLoopWarning]
    element_loops.forget()


def test_a_warning_that_is_an_error_leaves_the_array_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(element_loops, "LIMIT", 500)
    element_loops.forget()
    x = xarr.asarray(np.zeros(1)).evaluate() * 1
    written = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ElementLoopWarning):
            for k in range(2000):
                x[0] = k + 1.0
                written = k + 1
    assert x.tolist() == [written]
    element_loops.forget()


WRONG_CALLS: Final[dict[str, Callable[[Any], object]]] = {
    "sum": lambda x: x.sum(1, 2, 3, 4, 5, 6, 7, 8),
    "many": lambda x: x.sum(*range(3000)),
    "named": lambda x: x.sum(1, 2, 3, 4, 5, 6, 7, 8, axes=0, wrong=1),
    "dot": lambda x: x.dot(1, 2, 3, 4, 5, 6, 7, 8),
    "pow none": lambda x: x.__pow__(),
    "pow many": lambda x: x.__pow__(2, None, 3, 4),
    "pow more": lambda x: x.__pow__(2, None, 3, 4, 5, 6, 7, 8, 9, 10),
    "set none": lambda x: x.__setitem__(),
    "set one": lambda x: x.__setitem__(0),
    "set many": lambda x: x.__setitem__(0, 1.0, 2.0, 3.0),
}


def error_text(call: Callable[[Any], object], array: xarr.Array) -> str:
    with pytest.raises((TypeError, XarrError)) as caught:
        call(array)
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_calls_with_too_many_or_few_arguments_fail_with_the_text_of_python(
    call: Callable[[Any], object],
) -> None:
    x = xarr.asarray([1.0, 2.0]).evaluate() * 1
    text = error_text(call, x)
    assert native_methods.uninstall()
    assert text == error_text(call, x)


def test_a_method_of_the_user_stays() -> None:
    x, added = xarr.asarray([1.0, 2.0]).evaluate() * 1, []
    native_methods.uninstall()

    def add(self: xarr.Array, other: Any) -> Any:
        added.append(other)
        return native_methods._in_python["__add__"](self, other)

    try:
        xarr.Array.__add__ = add  # type: ignore[method-assign]
        assert native_methods.install()
        assert (x + 1).tolist() == [2.0, 3.0] and added == [1]
        assert not inspect.isfunction(xarr.Array.__mul__)
        xarr.Array.__mul__ = add  # type: ignore[method-assign]
        assert native_methods.uninstall()
        assert xarr.Array.__dict__["__add__"] is add is xarr.Array.__dict__["__mul__"]
    finally:
        for name in ("__add__", "__mul__"):
            setattr(xarr.Array, name, native_methods._in_python[name])


@pytest.mark.parametrize(
    "error", [xarr.errors.BackendError("LLVM refused a program"), OSError("no such library")], ids=type
)
def test_a_compiler_that_fails_leaves_the_methods_in_python(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[object] = []

    def fail(_: object, array_class: object) -> None:
        tries.append(array_class)
        raise error

    native_methods.uninstall()
    x = xarr.asarray([1.0, 2.0]).evaluate() * 1
    with monkeypatch.context() as patch:
        patch.setattr(native_methods, "_made", [])
        patch.setattr(native_methods, "failures", [])
        patch.setattr(type(xarr.backend.default_device().backend), "array_methods", fail)
        source.call_when_many(2, native_methods.install)
        assert [(x + k)[0].item() for k in range(4)] == [1.0, 2.0, 3.0, 4.0]
        assert len(tries) == 1 and native_methods.failures == [str(error)]
        assert not native_methods.install() and len(tries) == 1
        assert inspect.isfunction(xarr.Array.__add__)


def test_counts_are_forgotten_once_while_methods_are_there() -> None:
    forget_counts = native_methods._made[0].forget_counts  # type: ignore[union-attr]
    for _ in range(2):
        native_methods.uninstall()
        assert forget_counts not in element_loops.others_forget
        native_methods.install()
        assert element_loops.others_forget.count(forget_counts) == 1


def test_help_and_signatures_are_those_of_the_methods_in_python() -> None:
    for name, method in native_methods._replaced.items():
        own = getattr(xarr.Array, name)
        assert own is not method and own.__name__ == name
        assert own.__doc__ == (method.__doc__ and inspect.cleandoc(method.__doc__))
    assert str(inspect.signature(xarr.Array.__add__)) == "(self, other, /)"
    assert [*inspect.signature(xarr.Array.sum).parameters] == [
        "self",
        "axis",
        "dtype",
        "out",
        "keepdims",
        "initial",
        "where",
    ]


def test_methods_are_put_back() -> None:
    made = xarr.Array.__dict__["__add__"]
    assert native_methods.install() and native_methods.uninstall()
    assert xarr.Array.__dict__["__add__"] is not made and inspect.isfunction(xarr.Array.__add__)
    assert not native_methods.uninstall()
    assert native_methods.install() and xarr.Array.__dict__["__add__"] is made


def test_a_subclass_and_what_stands_for_a_number_are_left_to_python() -> None:
    total = xarr.jit(lambda x, n: x[0] + n * x)(xarr.asarray([1.0, 2.0]), 3)
    assert total.tolist() == [4.0, 7.0]
    assert outcome(operator.add, xarr.asarray([1.0]), "text") is TypeError
