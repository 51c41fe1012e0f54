"""Functions of phases: those that run all iterations have the bits of those that run ranges, and less code.

And what there is no machine code for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compiler.loop_ir.test_verifier import F32, Program
from tests.support.line_counts import count_lines

pytest.importorskip("llvmlite")

from xarr.compiler.loop_ir.loops import Affine, Atomic, Kernel, Loop, LoopError, Runs, Store
from xarr.compiler.plan.program_plan import Launch, Plan
from xarr_numpy.compiled.codegen import emitter, llvm_jit
from xarr_numpy.compiled.kernel import CompiledKernel
from xarr_numpy.compiled.threads import costs


def _launch(function: Callable[..., Any], *types: str) -> Launch:
    """The one launch of a jitted function's plan."""
    made = xarr.jit(function).lower(*types).stage("plan")
    assert isinstance(made, Plan)
    (step,) = made.steps
    assert isinstance(step, Launch) and step.program is not None
    return step


def _kernel(function: Callable[..., Any], *types: str) -> Kernel:
    program = _launch(function, *types).program
    assert program is not None
    return program


INTS = ("int8", "uint16", "int32", "int64")
#: Bytes behind each array.
BEHIND = 64


def _bytes_of(kernel: Kernel, is_whole: Callable[[Loop], bool], shares: bool = False) -> list[bytes]:
    """The bytes that the phases store, called for all iterations; `shares` if they read numbers from an array.

    Raises AssertionError if they store something behind an array.
    """
    random = np.random.default_rng(3)
    functions, names = emitter.functions_of(kernel, is_whole)
    text, numbers = functions.shared_module() if shares else (functions.module(), [0])
    read = np.array(numbers, np.int64)
    code = llvm_jit.compile_module(text, names)
    arrays = [random.standard_normal(buffer.size).astype(buffer.dtype) for buffer in kernel.inputs]
    written = (*kernel.outputs, *kernel.scratch)
    spaces = [np.zeros(buffer.nbytes + BEHIND, np.uint8) for buffer in written]
    outputs = [space[:-BEHIND].view(buffer.dtype) for space, buffer in zip(spaces, written, strict=True)]
    every = (*arrays, *outputs, read)
    pointers = (ctypes.c_void_p * len(every))(*[array.ctypes.data for array in every])
    for name, phase in zip(names, kernel.phases, strict=True):
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.addresses[name])
        run(ctypes.addressof(pointers), 0, costs.extent_of(phase))
    assert not any(space[-BEHIND:].any() for space in spaces), "stored behind an array"
    return [output.tobytes() for output in outputs]


def _smooth(x: Any, dtype: str) -> Any:
    """Neighbours added up, with a border of one element at each end, of what was wider numbers."""
    y = ((x * 9).astype("int64") * 3).astype(dtype)
    return y.at[1:-1].set(y[:-2] + y[2:]) if len(y) > 2 else y


_PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "element-wise": lambda x: xarr.tanh(x) * 3 + x,
    "a mask": lambda x: xarr.where(x[::-1] > 0, x, x * 2) + xarr.roll(x, 1),
    "a sum": lambda x: xarr.sum(x * x),
    "rows": lambda x: x[:, None] - xarr.max(x[None, :] * x[:, None], axis=1, keepdims=True),
    "running totals": lambda x: xarr.cumsum(x * 2) + x,
    "narrow": lambda x: (x * 3).astype("bfloat16") + (x > 0),
    **{f"a border of {name}": lambda x, name=name: _smooth(x, name) for name in INTS},
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", _PROGRAMS)
@pytest.mark.parametrize("size", [2, 7, 8, 9, 31, 32, 33, 64, 100])
def test_all_iterations_have_the_bits_of_ranges(name: str, size: int) -> None:
    kernel = _kernel(_PROGRAMS[name], f"f64[{size}]")
    whole, ranges = (_bytes_of(kernel, lambda phase, each=each: each) for each in (True, False))
    assert whole == ranges
    assert whole == _bytes_of(kernel, lambda phase: True, shares=True)
    assert whole == _bytes_of(kernel, lambda phase: False, shares=True)


_PARTS: dict[str, Callable[[Any], Any]] = {
    "an update": lambda a: a[2:, 3:] - a[2:, 2, None] * a[None, 1, 3:],
    "a column": lambda a: a[1:, 1] / a[0, 0],
    "neighbours": lambda a: a[1:-1, :-2] + a[1:-1, 2:] * a[:-2, 1:-1],
    "every third": lambda a: a[::3, ::-1] * 2.0,
    "sums of columns": lambda a: xarr.sum(a[1:] * a[:-1], axis=0),
    "rows of a table": lambda a: a[xarr.asarray([2, 0, 1, 1, 0])] + 1.0,
    "products": lambda a: xarr.min(a[:, None, :] * a[None, :, :], axis=-1),
}


@pytest.mark.parametrize("name", _PARTS)
@pytest.mark.parametrize("shape", [(5, 6), (9, 17), (16, 16), (41, 33)])
def test_shared_code_has_the_bits_of_constants(name: str, shape: tuple[int, int]) -> None:
    rows, columns = shape
    kernel = _kernel(_PARTS[name], f"f64[{rows},{columns}]")
    assert _bytes_of(kernel, lambda phase: True) == _bytes_of(kernel, lambda phase: True, shares=True)


def test_code_for_a_rest_that_never_is_is_not_written() -> None:
    kernel = _kernel(lambda x: xarr.tanh(x), "f64[256]")
    whole, ranges = (emitter.emit(kernel, lambda phase, each=each: each)[0] for each in (True, False))
    assert "llvm.masked.store" in ranges and "llvm.masked.store" not in whole
    assert whole.count("fdiv") < ranges.count("fdiv")


def test_an_update_branches_on_its_bounds() -> None:
    kernel = _kernel(lambda x, i: x.at[i].add(1, mode="drop"), "s64[50]", "s64[300]")
    _, phase = emitter.emit(kernel)[0].split("define void @phase1")
    (test,) = [line.split()[0] for line in phase.splitlines() if "icmp ule" in line]
    assert f"br i1 {test}," in phase


def test_kernels_that_threads_share_are_written_for_ranges() -> None:
    small, large = (_launch(lambda x: xarr.tanh(x), f"f64[{size}]") for size in (256, 2**20))
    texts = []
    for step in (small, large):
        assert step.program is not None
        (phase,) = step.program.phases
        texts.append(CompiledKernel(step.program, (step.node.tensor_type,)).text)
        assert costs.is_shared(phase) is (step is large)
    assert [("%begin" in text.partition("entry:")[2]) for text in texts] == [False, True]


def test_what_results_share_is_gone_through_once() -> None:
    def results(x: Any, steps: int) -> list[Any]:
        made = []
        for k in range(steps):
            x = x * 0.5 + k
            made.append(x)
        return made

    counts = []
    for steps in (8, 16):
        kernel = _kernel(lambda x, steps=steps: results(x, steps), "f64[256]")
        counts.append(count_lines(lambda kernel=kernel: emitter.emit(kernel)))
    assert counts[1] < 1.6 * counts[0], counts  # 1.8 where each result goes through what others need again


def test_programs_are_printed_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[Kernel] = []
    shown = Kernel.__str__

    def show(kernel: Kernel) -> str:
        printed.append(kernel)
        return shown(kernel)

    monkeypatch.setattr(Kernel, "__str__", show)
    program = xarr.jit(lambda x: [xarr.sum(xarr.tanh(x)) * x, x + 1]).lower("f64[100]").stage("program")
    assert not printed
    assert "parallel vector" in program.text  # type: ignore[union-attr]
    assert printed


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.mark.parametrize("word", [Runs.GRID, Runs.GRID | Runs.BLOCK, Runs.THREADS | Runs.WARP])
def test_no_machine_code_for_words_of_other_machines(program: Program, word: Runs) -> None:
    emitter.emit(program.kernel)
    program.rows.runs = word
    with pytest.raises(
        LoopError, match=rf"no LLVM IR for a loop that runs by {word & ~Runs.THREADS}, only by"
    ):
        emitter.emit(program.kernel)


def test_no_machine_code_for_a_phase_of_one_thread(program: Program) -> None:
    program.rows.runs = Runs.SERIAL
    with pytest.raises(LoopError, match="outermost loop that threads do not share"):
        emitter.emit(program.kernel)
    program.rows.runs, program.columns.runs = Runs.THREADS, Runs.THREADS
    with pytest.raises(LoopError, match="a loop that runs by threads, only by lanes"):
        emitter.emit(program.kernel)


def test_no_machine_code_for_atomic_stores(program: Program) -> None:
    (store,) = program.columns.stores()
    program.columns.body[:] = [replace(store, atomic=Atomic.MAXIMUM)]
    with pytest.raises(LoopError, match=r"combines atomically \(maximum\)"):
        emitter.emit(program.kernel)


def test_no_machine_code_for_shared_buffers(program: Program) -> None:
    shared = program.add("shared", 8)
    zero = program.values.constant(0, F32)
    program.columns.body.append(Store(shared, Affine(((program.columns.index, 1),)), zero))
    with pytest.raises(LoopError, match="more_shared, which a block shares"):
        emitter.emit(program.kernel)
