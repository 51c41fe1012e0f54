"""Ops on small arrays computed when they are recorded; parts read and written in memory, by index arrays too."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from xarr.errors import XarrError
from xarr.ir.ops import Add
from xarr.runtime import small_ops

pytestmark = pytest.mark.usefixtures("on_numpy", "eager")

DTYPES = (
    *(bool, np.int8, np.uint8, np.int32, np.int64, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4),
)
SHAPES = ((), (1,), (4,), (3, 4), (3, 1), (0, 4), (2, 3, 4))
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e30)
BINARY = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "floor_divide"),
    *("arctan2", "less", "equal", "greater_equal", "logical_and", "bitwise_xor", "hypot", "copysign"),
)
UNARY = (
    *("negative", "abs", "sqrt", "exp", "sin", "log1p", "sign", "floor", "isnan", "square", "reciprocal"),
    *("conj", "logical_not", "invert", "tanh"),
)
REDUCTIONS = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "cumsum", "var", "sort", "argsort")
INDICES: tuple[Any, ...] = (
    *(
        0,
        -1,
        slice(1, None),
        slice(None, None, -1),
        slice(None, None, 2),
        ...,
        None,
        (0, 0),
        (-1, slice(None)),
    ),
    *(
        (slice(None), 1),
        (..., 0),
        (slice(0, 1), slice(1, 3)),
        [0, 1],
        np.array([True, False, True]),
        7,
        (1, 9),
    ),
    *(slice(2, 1), (None, 0), np.int64(1), (slice(None, None, 2), None, slice(None, None, -2))),
    *(
        xarr.asarray([0, 2, 0]),
        (slice(None), [1, 0, 1]),
        (0, [0, 1]),
        ([0, 1], slice(None), [1, 1]),
        [5],
        [-1],
    ),
    *(
        np.array([[0], [1]]),
        (np.array([[0], [1]]), [0, 1]),
        (..., [0]),
        (np.array([2, 0]), None),
        np.uint64([1]),
    ),
    *(
        np.array([[True, False, True, True]] * 3),
        (slice(None), np.array([True, False, False, True])),
        np.True_,
        True,
    ),
    *(
        (xarr.asarray(1), slice(None)),
        slice(np.int64(1), None),
        np.zeros(0, int),
        [],
        (1, xarr.asarray([1, 0])),
    ),
    *(
        (np.array([True, False, True]), [0, 2]),
        (np.array([True, False, True]), 1),
        xarr.asarray([True, False, True]),
    ),
)


@pytest.fixture
def eager() -> Iterator[None]:
    """Whatever the run is about: with compiled groups alone nothing is computed at once."""
    with xarr.config(fusion="auto", small_arrays="eager"):
        yield


def draw_array(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
    values = rng.normal(size=shape) * 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dtype.kind in "fc" and rng.random() < 0.3:
            values = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL), values)
        return np.asarray(abs(values) if dtype.kind == "u" else values).astype(dtype)


def run_random_program(seed: int) -> list[str]:
    """The results of a program, one after the other, as text of their bits; of steps that are refused the errors."""
    rng = np.random.default_rng(seed)
    arrays = [xarr.asarray(draw_array(rng, SHAPES[rng.integers(len(SHAPES))])) for _ in range(4)]
    seen = []
    for _ in range(14):
        step = STEPS[rng.integers(len(STEPS))]
        try:
            result = step(rng, arrays)
        except (XarrError, IndexError, TypeError, ValueError) as error:
            seen.append(f"{type(error).__name__}: {error}")
            continue
        if result is not None:
            arrays[rng.integers(len(arrays))] = result
    return seen + [bits(array) for array in arrays]


def bits(array: xarr.Array) -> str:
    try:
        host = np.asarray(array)
    except XarrError as error:
        return f"{type(error).__name__}: {error}"
    nan = host != host
    shown = np.where(nan, np.zeros((), host.dtype), host)
    return f"{host.dtype} {host.shape} {nan.tolist()} {shown.tobytes().hex()}"


def pick(rng: np.random.Generator, arrays: list[xarr.Array]) -> xarr.Array:
    return arrays[rng.integers(len(arrays))]


def number(rng: np.random.Generator) -> Any:
    return (2, -3, 0.5, -0.0, True, 1.5 + 2j, 1000, float("nan"))[rng.integers(8)]


def binary(rng: np.random.Generator, arrays: list[xarr.Array]) -> xarr.Array:
    function = getattr(xarr, BINARY[rng.integers(len(BINARY))])
    x = pick(rng, arrays)
    y = pick(rng, arrays) if rng.random() < 0.6 else number(rng)
    return function(x, y) if rng.random() < 0.7 else function(y, x)


def unary(rng: np.random.Generator, arrays: list[xarr.Array]) -> xarr.Array:
    return getattr(xarr, UNARY[rng.integers(len(UNARY))])(pick(rng, arrays))


def reduction(rng: np.random.Generator, arrays: list[xarr.Array]) -> xarr.Array:
    x = pick(rng, arrays)
    axis = None if rng.random() < 0.4 or not x.ndim else int(rng.integers(x.ndim))
    return getattr(xarr, REDUCTIONS[rng.integers(len(REDUCTIONS))])(x, axis=axis)


def move(rng: np.random.Generator, arrays: list[xarr.Array]) -> xarr.Array:
    x = pick(rng, arrays)
    return (
        lambda: x.T,
        lambda: x.reshape(-1),
        lambda: xarr.flip(x),
        lambda: xarr.concatenate([x, x]),
        lambda: xarr.where(x > 0, x, 0),
        lambda: xarr.where(x == pick(rng, arrays), x, pick(rng, arrays)),
        lambda: x.astype(DTYPES[rng.integers(len(DTYPES))]),
        lambda: x @ x.T,
        lambda: xarr.broadcast_to(x, (2, *x.shape)),
    )[rng.integers(9)]()


def read(rng: np.random.Generator, arrays: list[xarr.Array]) -> xarr.Array:
    part: xarr.Array = pick(rng, arrays)[INDICES[rng.integers(len(INDICES))]]
    return part


def write(rng: np.random.Generator, arrays: list[xarr.Array]) -> None:
    x = pick(rng, arrays)
    x[INDICES[rng.integers(len(INDICES))]] = number(rng) if rng.random() < 0.5 else pick(rng, arrays)


def change(rng: np.random.Generator, arrays: list[xarr.Array]) -> None:
    x = pick(rng, arrays)
    if rng.random() < 0.5:
        x += pick(rng, arrays)
    else:
        x[INDICES[rng.integers(len(INDICES))]] *= 2


def accumulate(rng: np.random.Generator, arrays: list[xarr.Array]) -> xarr.Array | None:
    x, index = pick(rng, arrays), INDICES[rng.integers(len(INDICES))]
    value = number(rng) if rng.random() < 0.5 else pick(rng, arrays)
    method = ("set", "add", "subtract", "multiply", "max", "min")[rng.integers(6)]
    if rng.random() < 0.2:
        xarr.add.at(x, index, value)
        return None
    result: xarr.Array = getattr(x.at[index], method)(value)
    return result


def look(rng: np.random.Generator, arrays: list[xarr.Array]) -> xarr.Array:
    """A number that Python reads, and a value that comes of it."""
    x = pick(rng, arrays).reshape(-1)[0]
    return pick(rng, arrays) * (2 if x == x and bool(x) else 3)


STEPS: tuple[Callable[..., Any], ...] = (
    *(
        binary,
        binary,
        unary,
        reduction,
        move,
        read,
        read,
        write,
        write,
        write,
        change,
        look,
        accumulate,
        accumulate,
    ),
)


@pytest.fixture
def silent() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.implicit
@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("block", range(8))
def test_random_programs_give_the_bits_and_errors_of_recorded_ones(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        at_once = run_random_program(seed)
        with xarr.config(small_arrays="lazy"):
            assert run_random_program(seed) == at_once, f"seed {seed}"


def test_what_is_computed_at_once_and_what_is_recorded() -> None:
    x = xarr.asarray(np.arange(12.0).reshape(3, 4))
    for result in (x + x, x + 1, x > 2, -x, x[1], x[1, 2], x.T, x.sum(), x @ x.T, xarr.where(x > 1, x, 0)):
        assert result.is_evaluated
    constant = xarr.zeros(3) + 1
    assert not constant.is_evaluated, "functions that are recorded later compute it inside"
    assert (x[:, 0] + constant).is_evaluated
    assert not constant.is_evaluated
    large = xarr.asarray(np.zeros(2**16))
    assert not (large + 1).is_evaluated
    assert not (large[1:] + x[0, 0]).is_evaluated
    assert large[7].is_evaluated and large[:5].is_evaluated
    assert large[::2].is_evaluated and not large[1:].is_evaluated, "a copy of so many bytes at most"


@pytest.mark.implicit
def test_a_function_that_is_called_again_looks_at_settings_types_and_observers() -> None:
    x, row = xarr.asarray([[1.0, 2.0], [3.0, 4.0]]), xarr.asarray([1.0, 2.0])
    for _ in range(3):
        assert (x + row).is_evaluated and (x + 1).is_evaluated and xarr.sqrt(x).is_evaluated
    with xarr.config(small_arrays="lazy"):
        assert not (x + row).is_evaluated and not (1 + x).is_evaluated and not xarr.sqrt(x).is_evaluated
    with xarr.config(broadcasting="explicit"), pytest.raises(XarrError, match="explicit"):
        x + row
    with xarr.config(debug_nans=True):
        assert not (x + 1).is_evaluated
    assert "broadcast" in str(xarr.explain(lambda: x + row))
    counts = xarr.asarray(np.array([250, 3], np.uint8))
    assert bits(counts + 5) == bits(xarr.asarray(np.array([255, 8], np.uint8)))
    for wrong in (256, -1):
        with pytest.raises(XarrError):
            counts + wrong
    assert [str(v) for v in (-0.0 * x[0, 0], 0.0 * x[0, 0])] == ["-0.0", "0.0"]
    assert (x + True).dtype == (x + 1).dtype == np.float64 and (x * float("nan")).is_evaluated
    donated = xarr.asarray([1.0, 2.0]).evaluate()
    xarr.jit(lambda a: a * 2, donate_argnums=0)(donated)
    for call in (lambda: donated + 1, lambda: donated + row, lambda: -donated):
        with pytest.raises(XarrError):
            np.asarray(call())


def test_indices_with_arrays_are_computed_at_once() -> None:
    x = xarr.asarray(np.arange(12.0).reshape(3, 4))
    rows, mask = xarr.asarray([0, 2, 0]), xarr.asarray([True, False, True])
    at = x.at[rows, 1]
    for result in (
        x[rows],
        x[[2, 0], 1:],
        x[mask],
        x[:, [1]],
        x[xarr.asarray(1)],
        at.set(1.0),
        at.add(x[0, :3]),
    ):
        assert result.is_evaluated
    np.testing.assert_array_equal(at.add(1.0)[:, 1], [3, 5, 10])
    x[[0, 1]] = x[[1, 0]]
    x[mask, 0] = -1
    x[1:] += xarr.ones((2, 4))
    xarr.subtract.at(x, (rows, 3), 1.0)
    assert x.is_evaluated
    np.testing.assert_array_equal(x, [[-1, 5, 6, 5], [1, 2, 3, 4], [0, 10, 11, 11]])
    large = xarr.asarray(np.zeros(2**16))
    assert large[rows].is_evaluated and not large[xarr.arange(2**16)].is_evaluated
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        x[[0, 3]]


@pytest.mark.implicit
@pytest.mark.parametrize("mode", ["numpy", "explicit"])
def test_index_arrays_and_values_that_stretch_are_refused_as_before(mode: Any) -> None:
    x, columns = xarr.asarray(np.zeros((3, 4))), xarr.asarray([[0], [1]])

    def outcome() -> list[str]:
        steps = (lambda: x[columns, xarr.asarray([0, 1])], lambda: x.at[1:].set(xarr.asarray([1.0, 2, 3, 4])))
        seen = []
        for step in steps:
            try:
                seen.append(bits(step()))
            except XarrError as error:
                seen.append(f"{type(error).__name__}: {error}")
        return seen

    with xarr.config(broadcasting=mode):
        at_once = outcome()
        with xarr.config(small_arrays="lazy"):
            assert outcome() == at_once


def test_what_is_made_of_constants_alone_is_written_to_in_memory() -> None:
    x = xarr.zeros(4)
    x[0] = 1.0
    assert x.is_evaluated and x[0].is_evaluated
    for _ in range(100):
        x[1] = 2 * x[0]
        x[0] = x[1] / 2
    assert x.is_evaluated


def test_a_long_chain_of_constants_ends_in_a_value() -> None:
    x, y = xarr.zeros(3), xarr.asarray([1.0, 2.0, 3.0])
    for _ in range(30):
        x = xarr.sin(x) + 1
        assert (x * y).is_evaluated


def test_all_results_of_an_op_are_computed_at_once() -> None:
    x = xarr.asarray([[3.0, 1.0, 2.0], [0.0, 5.0, 5.0]])
    keys, order = xarr.lax.sort((x, xarr.lax.broadcasted_iota(np.int64, (2, 3), 1)), num_keys=1)
    for result in (
        x.argmax(axis=1),
        keys,
        order,
        xarr.fft.fft(x),
        xarr.lax.optimization_barrier(x),
        x.argsort(),
    ):
        assert result.is_evaluated
    np.testing.assert_array_equal(order, [[1, 2, 0], [0, 1, 2]])
    barred, same = xarr.lax.optimization_barrier((x, x[0]))
    x[0, 0] = 7.0
    assert barred[0, 0] == 3 and same[0] == 3


@pytest.mark.parametrize(
    "settings",
    [{"small_arrays": "lazy"}, {"debug_nans": True}, {"debug_overflow": True}, {"fusion": "compiled"}],
    ids=str,
)
def test_settings_that_have_everything_recorded(settings: dict[str, Any]) -> None:
    x = xarr.asarray([1.0, 2.0])
    with xarr.config(**settings):
        y = x + 1
        assert not y.is_evaluated and not x[0].is_evaluated
        x[0] = 3
        assert not x.is_evaluated
    assert (xarr.asarray([1.0]) + 1).is_evaluated


def test_nothing_is_computed_while_a_function_is_recorded() -> None:
    outside = xarr.asarray([1.0, 2.0])
    made = []

    @xarr.jit
    def function(x: xarr.Array) -> xarr.Array:
        made.append(outside + 1)
        assert not made[-1].is_evaluated and not outside[0].is_evaluated
        return x * made[-1]

    assert function(outside).tolist() == [2.0, 6.0]


def test_a_write_in_place_is_seen_by_nobody_else() -> None:
    x = xarr.asarray(np.zeros((40, 40)))
    x[0, 0] = 1  # memory of its own from now on
    address = x._node.value.ctypes.data
    x[1, 1] = 2
    assert x._node.value.ctypes.data == address
    others = [
        x.copy(),
        x[:],
        x[1],
        x.T,
        x.reshape(-1),
        xarr.asarray(x),
        np.asarray(x),
        x + 0,
        np.from_dlpack(x),
    ]
    before = [np.array(other) for other in others]
    pending = xarr.asarray(np.ones(2**16)).reshape(-1)[:1600].reshape(40, 40) * x
    wanted = np.array(x)
    x[1, 1] = 5
    x[0] = 7
    for other, value in zip(others, before, strict=True):
        if other is not others[5]:  # which is x itself
            np.testing.assert_array_equal(np.asarray(other), value)
    np.testing.assert_array_equal(np.asarray(pending), wanted)
    assert x[0, 3] == 7 and x[1, 1] == 5


def test_memory_of_others_is_not_written_to() -> None:
    host = np.zeros(4)
    x = xarr.from_dlpack(host)
    x[0] = 1
    assert host.tolist() == [0, 0, 0, 0] and x.tolist() == [1, 0, 0, 0]
    step = xarr.jit(lambda a: a)
    y = step(x)
    x[1] = 2
    assert y.tolist() == [1, 0, 0, 0]


@pytest.mark.usefixtures("silent")  # of the warning that a part is written to
@pytest.mark.parametrize("name", ["real", "imag", "conj", "abs", "negative", "squeeze", "real_if_close"])
@pytest.mark.parametrize("shape", [(), (4,), (3, 4)], ids=str)
def test_a_result_that_shows_memory_of_its_operand_stays_as_it_is(name: str, shape: tuple[int, ...]) -> None:
    x = xarr.asarray(np.full(shape, 2 + 1j))
    x[...] = 3 + 4j  # memory of its own from now on
    result = getattr(xarr, name)(x)
    before = np.array(result)
    x[...] = 7
    np.testing.assert_array_equal(np.asarray(result), before)
    result[...] = 5
    np.testing.assert_array_equal(np.asarray(x), np.full(shape, 7 + 0j))


def test_a_view_that_another_thread_makes_while_an_array_is_written_to_is_not_written_to_later(
    python_methods: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = xarr.asarray(np.zeros(40_000))  # of smaller ones references are counted
    x[0] = 1  # memory of its own from now on
    backend = type(x._node.device.backend)
    claim, seen = backend.claim, []

    def claim_while_another_thread_looks(self: Any, buffer: Any) -> bool:
        is_claimed = claim(self, buffer)
        if not seen:
            seen.append(np.asarray(x))
        return is_claimed

    monkeypatch.setattr(backend, "claim", claim_while_another_thread_looks)
    x[1] = 2
    assert seen[0][1] == 0 and x[1] == 2
    with pytest.raises(ValueError, match="read-only"):
        x._node.value[0] = 3


def test_a_reader_that_came_by_the_memory_before_a_write_keeps_what_it_sees_then() -> None:
    x = xarr.asarray(np.zeros(400))
    x[0] = 1
    node = x._node
    view = node.value[:]
    x[1] = 2  # by another thread, before the reader says that it looks
    seen = float(view[1])
    node.exposed = True
    x[1] = 3
    assert view[1] == seen and x[1] == 3


@pytest.mark.parametrize("dtype", [np.int8, np.float64])
def test_arrays_of_so_many_elements_that_numpy_lets_others_run_count_a_reader(dtype: Any) -> None:
    node = xarr.asarray(np.zeros(500, dtype))._node
    small_ops.apply_op(Add(), (node, node))
    table = small_ops.small_ops()
    assert table is not None
    small = table[Add(), node.device.committed, node.type, node.type]
    assert small is not None and small.is_shared


def test_settings_that_another_thread_looks_up_meanwhile_are_not_taken_for_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with xarr.config(default_dtype="float32"):
        other = xarr.config.state(), small_ops.small_ops()
    look_up = small_ops._look_up

    def look_up_between() -> Any:
        result = look_up()
        small_ops._known = other
        return result

    monkeypatch.setattr(small_ops, "_look_up", look_up_between)
    monkeypatch.setattr(small_ops, "_known", other)
    state = small_ops.state_at_once()
    assert state is not None and xarr.config.is_in(state)
    assert small_ops.small_ops() is not None


def test_a_method_that_was_recorded_for_a_number_sees_that_it_is_written_to() -> None:
    class Power:
        def __init__(self) -> None:
            self.count = xarr.asarray(np.array(2))

        @xarr.jit
        def apply(self, x: xarr.Array) -> xarr.Array:
            for _ in range(int(self.count)):
                x = x * 2
            return x

    power = Power()
    power.count[()] = 2  # memory of its own from now on
    assert power.apply(xarr.asarray([1.0])).tolist() == [4.0]
    power.count[()] = 3
    assert power.apply(xarr.asarray([1.0])).tolist() == [8.0]


def test_writing_to_a_small_part_warns_and_leaves_the_whole() -> None:
    x = xarr.asarray(np.zeros((4, 4)))
    row = x[0]
    with pytest.warns(xarr.errors.PartUpdateWarning):
        row[1] = 5
    row[2] = 6  # an array of its own
    assert row.tolist() == [0, 5, 6, 0] and not x.any()


def test_values_of_other_kinds_are_refused_as_before() -> None:
    x = xarr.asarray(np.zeros(3, np.int8))
    for index, value, error in (
        (0, 1000, xarr.errors.ValueRangeError),
        (0, float("nan"), xarr.errors.ValueRangeError),
        (0, 1j, xarr.errors.DTypeError),
        (3, 1, IndexError),
        ((0, 0), 1, IndexError),
        (0, [1, 2], xarr.errors.BroadcastError),
        (2**63, 1, IndexError),
        (2**70, 1, IndexError),
    ):
        with pytest.raises(error) as at_once:
            x[index] = value
        with xarr.config(small_arrays="lazy"), pytest.raises(error) as recorded:
            x[index] = value
        assert str(at_once.value) == str(recorded.value)
    assert x.tolist() == [0, 0, 0]
    for index in (2**63, -(2**70)):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
            x[index]


def test_errors_name_the_line_that_made_an_array() -> None:
    x = xarr.asarray([1.0, 2.0])
    y = x + 1
    with pytest.raises(xarr.errors.TracedValueError, match=r"y = x \+ 1"):
        xarr.jit(lambda a: y.fill(0) or a)(x)


def test_a_thousand_writes_and_reads_keep_no_memory(python_methods: None) -> None:
    x = xarr.asarray(np.zeros(2000))

    def sweep() -> None:
        for k in range(1000):
            x[k] = x[k + 1] + 1.0

    sweep()
    gc.collect()
    tracemalloc.start()
    sweep()
    used, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 20_000 and peak < 60_000
    assert x[0] == 2.0


def test_the_functions_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_ops, "_FUNCTIONS_KEPT", 8)
    x = xarr.asarray(np.arange(40.0))
    for size in range(2, 30):
        assert xarr.lax.sin(x[:size]).shape == (size,)
    table = small_ops.small_ops()
    assert table is not None and len(table) <= 8
