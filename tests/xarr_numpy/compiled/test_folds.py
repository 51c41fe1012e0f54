"""Folds in machine code: the bits of NumPy's functions, of each operation, element type and number of rows."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import dtypes, lax
from xarr.communication import algorithms
from xarr.communication.communicator import current_communicator
from xarr.compiler.plan.planner import plan
from xarr.distributed import simulate
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType

pytest.importorskip("llvmlite")

from xarr_numpy import engine
from xarr_numpy.compiled import folds
from xarr_numpy.ops import collectives
from xarr_numpy.processor import PROCESSOR
from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
OPS: tuple[type[ops.Binary], ...] = (
    *(ops.Add, ops.Multiply, ops.Maximum, ops.Minimum),
    *(ops.And, ops.Or, ops.Xor),
)
TYPES: tuple[DType, ...] = tuple(row.dtype for row in dtypes.TABLE)
CASES = [(op, dtype) for op in OPS for dtype in TYPES if dtypes.SUB_BYTE.get(dtype, dtype) in op.accepts]


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Folds of any size are in machine code."""
    monkeypatch.setattr(collectives, "LEAST_AT_ONCE", 0)
    with xarr.config(fusion="compiled"), np.errstate(all="ignore"):  # as programs run
        yield


@cache
def fold_for(op: type[ops.Binary], dtype: DType) -> algorithms.Fold:
    """The fold that a program has."""
    x = [parameter(TensorType((), dtype)) for _ in range(2)]
    graph = Graph(x, [Node(op(), tuple(x))])
    made = plan(graph, schedule=engine.schedule, target=PROCESSOR)
    return collectives.fold_by(graph, Emitter(made, lanes=True, name="f0").run().function)


def draw(dtype: DType, count: int, size: int) -> list[Array]:
    """Rows of awkward elements, many of them zeros and small numbers, which NaN would hide else."""
    rng = np.random.default_rng([count, size])
    few = np.array([0.0, -0.0, 1.0, 2.0]).astype(dtype)
    known = np.concatenate([folds.awkward(dtype), *[few] * 10])
    return [known[rng.integers(len(known), size=size)] for _ in range(count)]


def combine(fold: algorithms.Fold, rows: Sequence[Array]) -> Array:
    """The rows combined by NumPy's functions."""
    out = np.empty_like(rows[0])
    fold.combine(rows, out)
    return out


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=lambda each: getattr(each, "__name__", str(each)))
def test_bits_are_those_of_numpy(op: type[ops.Binary], dtype: DType) -> None:
    fold, block = fold_for(op, dtype), folds.BLOCK_BYTES // dtype.itemsize
    answers = set()
    for count in (1, 2, 3, 4, 8):
        for size in (0, 1, 127, 128, 193, 1000, *((block, 2 * block + 33) if count == 3 else ())):
            rows = draw(dtype, count, size)
            memory = [np.zeros((size + 2) * dtype.itemsize, np.uint8) for _ in range(count)]
            is_done = fold.at_once(rows, [each.view(dtype)[1:-1] for each in memory])
            edge, nothing = bytes(dtype.itemsize), bytes(size * dtype.itemsize)
            wanted = edge + (combine(fold, rows).tobytes() if is_done else nothing) + edge
            assert all(each.tobytes() == wanted for each in memory)
            assert not is_done or (count > 1 and size > 127)
            if count > 1 and size > 127:
                answers.add(is_done)
    assert len(answers) == 1
    if dtype in dtypes.BOOL | dtypes.INTEGER:
        assert answers == {True}
    if folds.fold_of(op(), dtype) is None:
        assert answers == {False}


def test_what_numpy_is_to_fold() -> None:
    left = {(op.__name__, dtype.name) for op, dtype in CASES if folds.fold_of(op(), dtype) is None}
    complex_types = {"complex64", "complex128"}
    assert {name for _, name in left} == complex_types | {dtype.name for dtype in dtypes.SUB_BYTE}
    assert {op for op, name in left if name in complex_types} == {"Multiply", "Maximum", "Minimum"}


def test_without_conversions_of_float16_numpy_is_to_fold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    half = np.dtype(np.float16)
    assert folds.fold_of(ops.Add(), half) is not None
    monkeypatch.setattr(folds.llvm_jit, "has_float16", lambda: False)
    assert folds.fold_of(ops.Add(), half) is None
    assert folds.fold_of(ops.Add(), np.dtype(np.float32)) is not None


def test_a_fold_of_other_bits_is_not_taken() -> None:
    dtype = np.dtype(np.float32)
    machine = folds.fold_of(ops.Add(), dtype)
    assert machine is not None

    def backwards(rows: Sequence[Array], out: Array) -> None:
        """Sums of the rows in another order."""
        fold_for(ops.Add, dtype).combine(rows[::-1], out)

    assert engine.fold_of(ops.Add(), dtype, backwards) is None
    assert not folds.has_bits_of(lambda rows, out: np.copyto(out, rows[0]), machine, dtype)


@pytest.mark.parametrize("name", ["float32", "complex128", "bfloat16"])
@pytest.mark.parametrize("keeps", [0, 1])
def test_of_two_nan_the_one_stays_that_numpy_keeps(keeps: int, name: str) -> None:
    """Beside sums of NumPy's that would keep the one or the other, as it has code for processors that do."""
    dtype = dtypes.canonical(name)

    def add(rows: Sequence[Array], out: Array) -> None:
        total = rows[0]
        for row in rows[1:]:
            both = np.isnan(total.view(real)) & np.isnan(row.view(real))
            kept = np.where(both, (row if keeps else total).view(real), total.view(real))
            other = np.where(both, kept, row.view(real))
            total = (kept + other).view(dtype)
        out[...] = total

    real = dtypes.real_part_of(dtype)
    fold = engine.fold_of(ops.Add(), dtype, add)
    assert fold is not None
    rows, out = draw(dtype, 3, 1000), np.empty(1000, dtype)
    assert fold(rows, [out])
    add(rows, wanted := np.empty_like(out))
    assert out.tobytes() == wanted.tobytes()


def test_what_lies_otherwise_is_left_to_numpy() -> None:
    fold = fold_for(ops.Add, np.dtype(np.int32))
    rows, out = [np.arange(600, dtype=np.int32)] * 2, np.zeros(600, np.int32)
    odd = np.zeros(2401, np.uint8)[1:].view(np.int32)
    apart = np.zeros(1200, np.int32)[::2]
    assert fold.at_once(rows, [out])
    for each in (odd, apart):
        assert not fold.at_once([rows[0], each], [out])
        assert not fold.at_once(rows, [out, each])
    assert not fold.at_once(rows[:1], [out])
    with xarr.config(fusion="off"):
        assert not fold.at_once(rows, [out])


def test_combiners_that_are_no_reduction_are_left_to_numpy() -> None:
    x = [parameter(TensorType((), np.dtype(np.float32))) for _ in range(2)]
    fold = collectives.fold_by(Graph(x, [Node(ops.Subtract(), tuple(x))]), lambda a, b: (a - b,))
    assert not fold.at_once([np.ones(300, np.float32)] * 2, [np.zeros(300, np.float32)])


def test_long_folds_are_cut_so_that_python_sees_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    fold = folds.fold_of(ops.Add(), np.dtype(np.int16))
    assert fold is not None
    calls: list[tuple[int, int]] = []
    function = fold._function

    def count(address: int, rows: int, results: int, begin: int, end: int) -> None:
        calls.append((begin, end))
        function(address, rows, results, begin, end)

    monkeypatch.setattr(fold, "_function", count)
    monkeypatch.setattr(folds, "UNINTERRUPTED_BYTES", 1000)
    rows, out = [np.arange(300, dtype=np.int16)] * 3, np.zeros(300, np.int16)
    assert fold(rows, [out, np.zeros_like(out)])
    assert calls == [(0, 100), (100, 200), (200, 300)]
    assert (out == 3 * rows[0]).all()


def test_few_elements_are_no_call_of_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "LEAST_AT_ONCE", 4000)
    fold = fold_for(ops.Add, np.dtype(np.float32))
    few, many = np.ones(999, np.float32), np.ones(1000, np.float32)
    assert not fold.at_once([few, few], [np.empty_like(few)])
    assert fold.at_once([many, many], [np.empty_like(many)])


def test_another_thread_runs_python_meanwhile() -> None:
    fold = fold_for(ops.Add, np.dtype(np.float32))
    rows, out = [np.ones(2**20, np.float32)] * 2, np.empty(2**20, np.float32)
    assert fold.at_once(rows, [out])
    gate, has_run, interval = threading.Lock(), threading.Event(), sys.getswitchinterval()
    gate.acquire()
    other = threading.Thread(target=lambda: gate.acquire() and has_run.set(), daemon=True)
    other.start()
    sys.setswitchinterval(1000.0)  # so that it gets the lock from those alone who let go of it
    try:
        gate.release()
        for _ in range(5000):
            fold.at_once(rows, [out])
            if has_run.is_set():
                break
        is_done = has_run.is_set()
    finally:
        sys.setswitchinterval(interval)
    other.join(60)
    assert is_done


Program = Callable[[Any], Any]
REDUCTIONS: dict[str, tuple[str, Program]] = {
    "sum": ("float32", lambda x: lax.all_reduce(x, lax.add)),
    "product": ("float64", lambda x: lax.all_reduce(x, lax.mul)),
    "complex sum": ("complex64", lambda x: lax.all_reduce(x, lax.add)),
    "max": ("float32", lambda x: lax.all_reduce(x, lax.max)),
    "min": ("int16", lambda x: lax.all_reduce(x, lax.min)),
    "and": ("bool", lambda x: lax.all_reduce(x, lax.bitwise_and)),
    "or": ("uint8", lambda x: lax.all_reduce(x, lax.bitwise_or)),
    "xor": ("int64", lambda x: lax.all_reduce(x, lax.bitwise_xor)),
    "narrow": ("bfloat16", lambda x: lax.all_reduce(x, lax.add)),
    "scatter": ("float64", lambda x: lax.reduce_scatter(x, lax.add, 0)),
}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_programs_have_the_bits_of_those_without_machine_code(name: str, n: int) -> None:
    dtype, program = REDUCTIONS[name]
    kind = dtypes.canonical(dtype)
    operands = draw(kind, n, 2**18 // kind.itemsize // n * n + n)

    def run() -> Array:
        return np.asarray(program(xarr.asarray(operands[current_communicator().rank])))

    got = simulate(n, run)
    with xarr.config(fusion="off"):
        wanted = simulate(n, run)
    assert [each.tobytes() for each in got] == [each.tobytes() for each in wanted]
