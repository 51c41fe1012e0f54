"""Calls that are remembered as programs: they give what functions give that record, and are not for all calls."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.calls.remembered_tables import table_in_force
from tests.compare import assert_same
from xarr.calls import host_functions, remembered_calls
from xarr.calls.call_programs import LooksAt
from xarr.calls.repeated_calls import KnownCall
from xarr.errors import IndexingError, PartUpdateWarning, TracedValueError, XarrError

pytestmark = pytest.mark.usefixtures("on_numpy", "eager")

DTYPES = (
    *(bool, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64),
    *(np.complex64, np.complex128, ml_dtypes.bfloat16),
)
SHAPES = ((), (1,), (4,), (3, 4), (4, 4), (3, 1), (0, 4), (2, 3, 4))
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e30)
NUMBERS = (2, -3, 0.5, -0.0, 0.0, True, 1, 1.0, 1.5 + 2j, 1000, float("nan"))

#: Functions of two arrays, a number and an axis.
CALLS: dict[str, Callable[[Any, Any, Any, int | None], Any]] = {
    "sum": lambda x, y, n, axis: xarr.sum(x, axis),
    "sum of a type": lambda x, y, n, axis: xarr.sum(x, axis, np.float32, keepdims=True),
    "sum from": lambda x, y, n, axis: x.sum(axis, initial=n, where=x == x),
    "mean": lambda x, y, n, axis: x.mean(axis=axis),
    "std": lambda x, y, n, axis: xarr.std(x, axis, ddof=1),
    "max": lambda x, y, n, axis: xarr.max(x, axis),
    "argmax": lambda x, y, n, axis: xarr.argmax(x, axis),
    "any": lambda x, y, n, axis: xarr.any(x, axis),
    "cumsum": lambda x, y, n, axis: xarr.cumsum(x, axis),
    "sort": lambda x, y, n, axis: xarr.sort(x, axis),
    "where": lambda x, y, n, axis: xarr.where(x == y, x, n),
    "clip": lambda x, y, n, axis: xarr.clip(x, n, 3),
    "maximum": lambda x, y, n, axis: xarr.maximum(x, y),
    "power": lambda x, y, n, axis: xarr.power(x, n),
    "square": lambda x, y, n, axis: xarr.square(x),
    "hypot": lambda x, y, n, axis: xarr.hypot(x, y),
    "exp": lambda x, y, n, axis: xarr.expm1(x),
    "isfinite": lambda x, y, n, axis: xarr.isfinite(x),
    "matmul": lambda x, y, n, axis: x @ y,
    "dot": lambda x, y, n, axis: xarr.dot(x, y),
    "outer": lambda x, y, n, axis: xarr.outer(x, y),
    "einsum": lambda x, y, n, axis: xarr.einsum("i...,i...->...", x, y),
    "norm": lambda x, y, n, axis: xarr.linalg.norm(x, axis=axis),
    "concatenate": lambda x, y, n, axis: xarr.concatenate([x, y], axis),
    "stack": lambda x, y, n, axis: xarr.stack((x, y), 0 if axis is None else axis),
    "split": lambda x, y, n, axis: xarr.split(x, 2, 0 if axis is None else axis)[1],
    "roll": lambda x, y, n, axis: xarr.roll(x, 1, axis),
    "diff": lambda x, y, n, axis: xarr.diff(x, axis=-1 if axis is None else axis),
    "flip": lambda x, y, n, axis: xarr.flip(x, axis),
    "transpose": lambda x, y, n, axis: x.T,
    "reshape": lambda x, y, n, axis: x.T.reshape(-1),
    "pad": lambda x, y, n, axis: xarr.pad(x, 1),
    "tril": lambda x, y, n, axis: xarr.tril(x),
    "diagonal": lambda x, y, n, axis: xarr.trace(x),
    "zeros": lambda x, y, n, axis: xarr.zeros_like(x) + y,
    "full": lambda x, y, n, axis: xarr.where(x == x, xarr.zeros(x.shape), x),
    "take": lambda x, y, n, axis: xarr.take(x, y, axis),
    "real": lambda x, y, n, axis: xarr.real(x),
    "round": lambda x, y, n, axis: xarr.round(x, 1),
    "median": lambda x, y, n, axis: xarr.median(x, axis),
    "divmod": lambda x, y, n, axis: xarr.divmod(x, y)[1],
    "reduce": lambda x, y, n, axis: xarr.multiply.reduce(x, axis),
    "accumulate": lambda x, y, n, axis: xarr.minimum.accumulate(x, axis or 0),
    "reduceat": lambda x, y, n, axis: xarr.add.reduceat(x, [1, 0, 2], axis or 0),
    "outer ufunc": lambda x, y, n, axis: xarr.subtract.outer(x, y),
    "bincount": lambda x, y, n, axis: xarr.bincount(x, minlength=3),
}
#: Others, some of which compute values at once, to see whether there are any.
FACTORS: dict[str, Callable[[Any, Any, Any, int | None], Any]] = {
    "convolve": lambda x, y, n, axis: xarr.convolve(x, y),
    "det": lambda x, y, n, axis: xarr.linalg.det(x),
    "qr": lambda x, y, n, axis: xarr.linalg.qr(x)[1],
    "svd": lambda x, y, n, axis: xarr.linalg.svd(x)[1],
    "eigh": lambda x, y, n, axis: xarr.linalg.eigh(x).eigenvalues,
    "pinv": lambda x, y, n, axis: xarr.linalg.pinv(x),
    "inv": lambda x, y, n, axis: xarr.linalg.inv(x),
    "solve": lambda x, y, n, axis: xarr.linalg.solve(x, y),
    "cond": lambda x, y, n, axis: xarr.linalg.cond(x, 1),
    "polyfit": lambda x, y, n, axis: xarr.polyfit(x, y, 1),
}


@pytest.fixture
def at_first(monkeypatch: pytest.MonkeyPatch, python_methods: None) -> Iterator[None]:
    """Each call is remembered when it comes for the first time, and none is NumPy's own."""
    monkeypatch.setattr(remembered_calls, "CALLS_BEFORE", 0)
    monkeypatch.setattr(host_functions.HostFunction, "_by_numpy", lambda *_: None)
    host_functions.run_by(lambda host: host.in_python)
    table_in_force().clear()
    yield
    monkeypatch.undo()
    host_functions.run_by(None)


def is_remembered(call: Callable[[], Any]) -> bool:
    """Whether a call leaves a program behind."""
    table_in_force().clear()
    call()
    return any(isinstance(program, KnownCall) for program in table_in_force().values())


def draw_array(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    shape, dtype = SHAPES[rng.integers(len(SHAPES))], np.dtype(DTYPES[rng.integers(len(DTYPES))])
    values = rng.normal(size=shape) * 4
    if dtype.kind in "fc" and rng.random() < 0.4:
        values = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL), values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(abs(values) if dtype.kind == "u" else values).astype(dtype)


def outcome(call: Callable[..., Any], *arguments: Any) -> str:
    """The bits of a result as text, or the error."""
    try:
        result = call(*arguments)
        host = np.asarray(result)
    except (XarrError, TypeError, ValueError, IndexError) as error:
        return f"{type(error).__name__}: {error}"
    nan = host != host
    shown = np.where(nan, np.zeros((), host.dtype), host)
    return f"{host.dtype} {host.shape} {result._weak} {nan.tolist()} {shown.tobytes().hex()}"


@pytest.mark.implicit
@pytest.mark.usefixtures("at_first")
@pytest.mark.parametrize("name", [*CALLS, *FACTORS])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_remembered_calls_give_the_bits_and_errors_of_recorded_ones(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [draw_array(rng), draw_array(rng)]
    if rng.random() < 0.5:
        values[1] = values[0].copy()[::-1] if values[0].ndim else values[0]
    arrays = [xarr.asarray(value) for value in values]
    if rng.random() < 0.3 and arrays[0].ndim:
        arrays[0] = arrays[0][::-1].T  # a view in another order
    number = NUMBERS[rng.integers(len(NUMBERS))]
    axis = None if rng.random() < 0.4 else int(rng.integers(3)) - 1
    call = (CALLS | FACTORS)[name]
    # The third time by the function that was written for the line.
    thrice = [outcome(call, *arrays, number, axis) for _ in range(3)]
    with xarr.config(small_arrays="lazy"):
        assert thrice == [outcome(call, *arrays, number, axis)] * 3


@pytest.mark.usefixtures("at_first")
def test_what_is_remembered() -> None:
    x, y = xarr.asarray([[1.0, 2.0], [3.0, 4.0]]), xarr.asarray([1.0, 2.0])
    for call in (
        lambda: xarr.sum(x, axis=0),
        lambda: x.mean(),
        lambda: xarr.where(x > 1, x, 0.0),
        lambda: x @ y,
        lambda: xarr.concatenate([x, x], axis=1),
        lambda: xarr.argmax(y),
        lambda: xarr.split(y, 2),
        lambda: xarr.zeros_like(x),
        lambda: xarr.abs(xarr.asarray(np.array([1, 2], np.uint8))),
        lambda: xarr.where(x > 1, x, xarr.zeros((2, 2))),
        lambda: xarr.linalg.norm(y),
        lambda: xarr.multiply.reduce(x, axis=1),
        lambda: xarr.minimum.accumulate(y),
        lambda: xarr.subtract.outer(y, y),
        lambda: xarr.add.reduceat(x, xarr.asarray([1, 0])),
        lambda: xarr.bincount(xarr.asarray([1, 0]), weights=y, minlength=4),
    ):
        assert is_remembered(call)
    assert is_remembered(lambda: (xarr.add.reduce(y), xarr.multiply.reduce(y)))
    assert len(table_in_force()) == 2, "one for each ufunc whose method it is"
    assert xarr.sum(x, axis=0).is_evaluated
    assert is_remembered(lambda: xarr.zeros((2, 2), dtype=np.float32)) and is_remembered(
        lambda: xarr.arange(4)
    )
    constants = xarr.zeros((2, 2)), xarr.zeros_like(x)
    assert not any(array.is_evaluated for array in constants), "constants stay recorded"
    assert constants[0]._node.source.line < xarr.zeros((2, 2))._node.source.line
    assert xarr.sum(x, axis=0).sum(keepdims=True).shape == (1,)


@pytest.mark.usefixtures("at_first")
def test_results_of_calls_without_arrays_are_values_of_their_own() -> None:
    for call in (lambda: xarr.hanning(8), lambda: xarr.tril_indices(4)[1], lambda: xarr.kaiser(8, 2.0)):
        first, second = call(), call()
        wanted = np.asarray(second).copy()
        first[0] = 9
        assert first.tolist()[0] == 9 and call().tolist() == second.tolist() == wanted.tolist()
        doubled = xarr.jit(lambda a: a * 2, donate_argnums=0)(call())
        assert doubled.tolist() == (wanted * 2).tolist() and call().tolist() == wanted.tolist()


@pytest.mark.usefixtures("at_first")
def test_a_result_that_is_there_twice_is_one_array_in_each_call() -> None:
    x = xarr.asarray(np.eye(3)).evaluate()
    for call in (lambda: xarr.diag_indices(3), lambda: xarr.diag_indices_from(x)):
        for _ in range(2):
            first, second = call()
            first[0] = 2
            assert second.tolist() == [2, 1, 2]


@pytest.mark.usefixtures("at_first")
def test_an_argument_is_checked_in_each_call_of_which_nothing_is_the_result() -> None:
    for index in (0, 1, 0, 1):
        x = xarr.asarray(np.array(index)).evaluate()
        if index:
            with pytest.raises(xarr.errors.FlatIndexError, match="index 1 is out of bounds"):
                xarr.unravel_index(x, ())
        else:
            assert xarr.unravel_index(x, ()) == ()


@pytest.mark.usefixtures("at_first")
def test_systems_without_a_result_raise_in_each_call() -> None:
    good, bad = np.eye(3), np.ones((3, 3))
    for host in (good, bad, good, bad, np.full((3, 3), np.nan)):
        x = xarr.asarray(host.astype(np.float32)).evaluate()
        for call in (xarr.linalg.inv, lambda a: xarr.linalg.solve(a, a)):
            if host is bad:
                with pytest.raises(xarr.errors.LinAlgError, match="Singular matrix"):
                    call(x)
            else:
                assert call(x).shape == (3, 3)
    assert type(xarr.linalg.svd(xarr.asarray(good).evaluate())).__name__ == "SVDResult"
    assert is_remembered(lambda: xarr.linalg.svd(xarr.asarray(good).evaluate()))
    assert not is_remembered(lambda: xarr.linalg.svd(xarr.asarray(np.ones((40, 40))).evaluate()))


@pytest.mark.usefixtures("at_first")
def test_values_that_a_function_looks_at_tell_calls_apart() -> None:
    host = np.arange(6.0)
    x, index = xarr.asarray(host).evaluate(), xarr.asarray(np.array([1, 3])).evaluate()
    for _ in range(3):
        for shift in (1, 2, -1, 7):
            own = xarr.asarray(np.array(shift)).evaluate()
            assert xarr.roll(x, own).tolist() == np.roll(host, shift).tolist()
        for counts in ([0, 1, 2, 0, 0, 3], [1, 1, 1, 1, 1, 1]):
            own = xarr.asarray(np.array(counts)).evaluate()
            assert xarr.repeat(x, own).tolist() == np.repeat(host, counts).tolist()
        assert xarr.delete(x, index).tolist() == np.delete(host, np.asarray(index)).tolist()
        index[0] = (int(index[0]) + 1) % 6
        with pytest.raises(IndexingError):
            xarr.delete(x, xarr.asarray(np.array([6])).evaluate())
    programs = table_in_force()
    assert sum([isinstance(program, LooksAt) for program in programs.values()]) == 4
    by_values = [key[0].__name__ for key in programs if type(key[1]) is tuple]
    assert by_values.count("roll") == 4 and by_values.count("repeat") == 2


@pytest.mark.usefixtures("at_first")
def test_views_of_other_types_are_remembered() -> None:
    host = np.array([1.0, -0.0, np.nan])
    x = xarr.asarray(host).evaluate() * 1
    for dtype in ("int64", np.float32, np.dtype(np.uint8), "complex64") * 2:
        view = x.view(dtype)
        assert_same(np.asarray(view), host.view(dtype))
        with pytest.warns(PartUpdateWarning):
            view[0] = 1
    assert is_remembered(lambda: x.view("int64"))
    with pytest.raises(XarrError, match=r"^view: "):
        x.view("float128x")


@pytest.mark.usefixtures("at_first")
def test_nothing_is_known_by_all_of_its_values() -> None:
    for _ in range(2):
        xarr.unique_counts(xarr.asarray(np.array([1, 2, 1])).evaluate())
    programs = [program for key, program in table_in_force().items() if key[0].__name__ == "unique_counts"]
    assert programs == [None]


@pytest.mark.usefixtures("at_first")
def test_what_is_not_remembered() -> None:
    x, out = xarr.asarray([1.0, 2.0]), xarr.asarray(0.0)
    for call in (
        lambda: xarr.sum(x, out=out),
        lambda: xarr.roots(xarr.asarray([1.0, 2.0, 1.0])),
        lambda: xarr.jit(lambda a: xarr.sum(a))(x),
    ):
        assert not is_remembered(call)
    assert xarr.unique_counts(x).counts.tolist() == [1, 1]
    wholes = [key[0].__name__ for key, program in table_in_force().items() if program is not None]
    assert "unique_counts" not in wholes, "its size depends on values, if not the parts of its work"
    with xarr.config(debug=True):
        assert remembered_calls.remembered_calls() is None
    with xarr.config(broadcasting="warn"):
        assert remembered_calls.remembered_calls() is None


def test_a_call_is_remembered_once_it_came_often() -> None:
    x = xarr.asarray(np.arange(7.0))
    table_in_force().clear()
    for _ in range(remembered_calls.CALLS_BEFORE):
        xarr.std(x, keepdims=True)
    assert not table_in_force()
    assert xarr.std(x, keepdims=True).tolist() == [2.0]
    assert len(table_in_force()) == 1


@pytest.mark.usefixtures("at_first")
def test_numbers_that_compare_equal_are_other_arguments() -> None:
    x, mask = xarr.asarray(np.array([1, 2], np.int8)), xarr.asarray([True, False])
    results = [xarr.where(mask, x, number) for number in (1, 1.0, True, 1 + 0j)]
    assert [str(result.dtype) for result in results] == ["int8", "float64", "int8", "complex128"]
    y = xarr.asarray([5.0, 5.0])
    signs = [str(np.signbit(np.asarray(xarr.where(mask, y, zero)))[1]) for zero in (0.0, -0.0, 0.0)]
    assert signs == ["False", "True", "False"]
    for _ in range(2):
        assert np.isnan(np.asarray(xarr.where(mask, y, float("nan")))[1])
        with pytest.raises(xarr.errors.ValueRangeError):
            xarr.where(mask, x, 1000)


@pytest.mark.usefixtures("at_first")
@pytest.mark.parametrize("name", ["transpose", "flip", "squeeze", "real", "ravel"])
def test_parts_are_parts_and_share_no_write(name: str) -> None:
    for _ in range(2):
        x = xarr.asarray(np.arange(6.0).reshape(2, 3))
        x[0, 0] = 9  # memory of its own from now on
        part = getattr(xarr, name)(x)
        x[0, 0] = 7
        assert 9 in part.tolist() or [9, 3] in part.tolist() or 9 in np.asarray(part)
        with pytest.warns(PartUpdateWarning, match="is a part of x"):
            part[...] = 5
        assert x[0, 0] == 7 and x[1, 2] == 5


@pytest.mark.usefixtures("at_first")
def test_the_whole_of_a_part_of_a_part_is_named() -> None:
    for _ in range(2):
        x = xarr.asarray(np.arange(6.0).reshape(2, 3))
        y = xarr.ravel(x.T[1:].T)
        z = xarr.swapaxes(x, 0, 1)
        with pytest.warns(PartUpdateWarning, match=r"z, that is x\.T, is a part of x"):
            z[0, 0] = 5
        assert y.shape == (4,)


@pytest.mark.usefixtures("at_first")
def test_a_result_says_which_line_made_it() -> None:
    x = xarr.asarray([1.0, 2.0])
    first = xarr.cumsum(x)
    second = xarr.cumsum(x)
    lines = [array._node.source.line for array in (first, second)]
    assert lines[1] == lines[0] + 1
    with pytest.raises(TracedValueError, match=r"second = xarr\.cumsum\(x\)"):
        xarr.jit(lambda a: second.fill(0) or a)(x)


@pytest.mark.usefixtures("at_first")
def test_errors_are_the_ones_of_the_function() -> None:
    x = xarr.asarray([1.0, 2.0])
    for _ in range(3):
        with pytest.raises(xarr.errors.AxisError, match=r"^sum: "):
            xarr.sum(x, axis=3)
        with pytest.raises(TypeError, match="axes"):
            xarr.sum(x, axes=3)
        with pytest.raises(IndexError):
            np.asarray(xarr.take(x, xarr.asarray([5])))


def test_each_call_warns_that_warns_at_first() -> None:
    x = xarr.asarray(np.ones(3, np.float32))
    for _ in range(remembered_calls.CALLS_BEFORE + 3):
        with pytest.warns(RuntimeWarning, match="overflow"):
            padded = xarr.pad(x, 1, constant_values=1e300)
        assert padded.tolist() == [np.inf, 1, 1, 1, np.inf]


@pytest.mark.usefixtures("at_first")
def test_an_index_out_of_bounds_is_the_error_that_it_is_without_remembering() -> None:
    x, i = xarr.asarray([1.0, 2.0, 3.0]), xarr.asarray([0, -1])
    assert is_remembered(lambda: xarr.take(x, i))
    assert xarr.take(x, i).is_evaluated and xarr.take(x, i).tolist() == [1.0, 3.0]
    for _ in range(2):
        with pytest.raises(IndexError, match=r"take: index 3 is out of bounds") as raised:
            xarr.take(x, xarr.asarray([0, 3]))
        with xarr.config(small_arrays="lazy"), pytest.raises(IndexError) as recorded:
            xarr.take(x, xarr.asarray([0, 3]))
        assert str(raised.value) == str(recorded.value)
    assert xarr.take(x, i, mode="clip").tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("at_first")
def test_an_array_that_is_donated_meanwhile_is_read_before_it_is_written_over() -> None:
    give_away = xarr.jit(lambda a: a + 1, donate_argnums=0)
    values, wrong = np.full(300, 2.0), []

    def read(array: xarr.Array) -> None:
        try:
            total = xarr.var(array, axis=0, keepdims=True).tolist()
        except xarr.errors.DonationError:
            return
        if total != [0.0]:
            wrong.append(total)

    for _ in range(200):
        x = xarr.asarray(values).evaluate() * 1
        threads = [threading.Thread(target=read, args=(x,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        give_away(x)
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.usefixtures("at_first")
def test_threads_remember_at_once() -> None:
    x, seen = xarr.asarray(np.arange(8.0)), []
    table_in_force().clear()

    def work(shift: int) -> None:
        for k in range(100):
            seen.append(xarr.roll(x, (k + shift) % 8)[0] == (-(k + shift)) % 8)

    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 400 and all(bool(each) for each in seen)


@pytest.mark.usefixtures("at_first")
def test_programs_are_bounded_and_belong_to_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_calls, "_MOST_REMEMBERED", 8)
    monkeypatch.setattr(remembered_calls, "_MOST_COUNTED", 8)
    x = xarr.asarray(np.arange(40.0))
    for shift in range(30):
        xarr.roll(x, shift)
    assert 0 < len(table_in_force()) <= 8
    i = xarr.asarray([1, 2])
    assert xarr.mean(i).dtype == np.float64
    with xarr.config(default_dtype="float32"):
        assert xarr.mean(i).dtype == np.float32
    monkeypatch.setattr(remembered_calls, "CALLS_BEFORE", 3)
    for number in range(20):
        xarr.where(x > 1, x, float(number))
    assert len(table_in_force().counts) <= 8


@pytest.mark.usefixtures("at_first")
def test_who_watches_broadcasts_sees_each() -> None:
    x, v = xarr.asarray(np.ones((2, 3))), xarr.asarray(np.ones(3))
    for _ in range(2):
        xarr.hypot(x, v)
    assert "broadcast" in str(xarr.explain(lambda: xarr.hypot(x, v)))


def test_a_long_list_is_not_looked_at() -> None:
    x = xarr.asarray([1.0])
    table_in_force().counts.clear()
    xarr.concatenate([x] * 100)
    assert not any(key[0].__name__ == "concatenate" for key in table_in_force().counts)
