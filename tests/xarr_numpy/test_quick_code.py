"""Programs of many kernels, whose first machine code is made without optimisation, and optimised once that pays."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax

pytest.importorskip("llvmlite")

from xarr_numpy import engine
from xarr_numpy.compiled.codegen import llvm_jit, templates
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.compiled.plans import native_step
from xarr_numpy.processor import PROCESSOR, Processor
from xarr_numpy.program import NumpyProgram, QuickProgram

pytestmark = pytest.mark.usefixtures("fused")

QUICKLY = "made by LLVM without optimisation"


@pytest.fixture(autouse=True)
def _nothing_compiled() -> None:
    caches: list[Any] = [engine.kernel, templates._template_code, native_step._compile]
    for cache in caches:
        cache.cache_clear()


def eliminate(a: Any) -> Any:
    """Some hundred kernels, two for each step."""
    for k in range(60):
        a = a.at[k + 1 :, k].set(a[k + 1 :, k] / a[k, k])
        a = a.at[k + 1 :, k + 1 :].set(a[k + 1 :, k + 1 :] - a[k + 1 :, k, None] * a[None, k, k + 1 :])
    return a


def mix(x: Any, y: Any) -> Any:
    """Operations drawn at random: nothing repeats, and all of it is one function."""
    random, values = np.random.default_rng(5), [x, y]
    operations = (xarr.add, xarr.subtract, xarr.multiply, xarr.minimum, xarr.maximum)
    for which, *picks in random.integers(0, (6, 20, 20), (900, 3)).tolist():
        a, b = (values[-1 - pick % len(values)] for pick in picks)
        values.append(xarr.tanh(a) if which == 5 else operations[which](a, b) * 0.5)
    return values[-1] + values[-2]


def matrix() -> np.ndarray[Any, Any]:
    random = np.random.default_rng(0)
    return random.random((64, 64)) + 64 * np.eye(64)


def vectors() -> tuple[Any, Any]:
    x, y = np.random.default_rng(1).normal(size=(2, 67))
    x[:4] = np.nan, np.inf, -0.0, 0.0
    return x, y


def program_of(function: Callable[..., Any], *arguments: Any) -> NumpyProgram:
    program = xarr.jit(function).lower(*arguments).stage("program")
    assert isinstance(program, NumpyProgram)
    return program


@pytest.mark.parametrize(
    ("function", "arguments"), [(eliminate, (matrix(),)), (mix, vectors())], ids=["kernels", "one function"]
)
def test_optimised_code_takes_over_with_the_same_bits(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    program = program_of(function, *arguments)
    assert isinstance(program, QuickProgram)
    assert any(QUICKLY in origin for origin in program.origins), program.origins
    (first,) = program(*arguments)
    assert not program.rest.is_done
    program.rest.seconds = 0.0  # as if calls had taken as long as optimising takes
    (later,) = program(*arguments)
    assert program.rest.is_done
    assert first.tobytes() == later.tobytes()


@pytest.mark.parametrize(
    ("function", "arguments"), [(eliminate, (matrix(),)), (mix, vectors())], ids=["kernels", "one function"]
)
def test_quick_code_is_let_go_of(
    function: Callable[..., Any], arguments: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_module, codes = llvm_jit.compile_module, list[weakref.ref[llvm_jit.Code]]()

    def compile_and_note(*operands: Any, is_quick: bool = False) -> llvm_jit.Code:
        code = compile_module(*operands, is_quick=is_quick)
        codes.extend([weakref.ref(code)] if is_quick else [])
        return code

    monkeypatch.setattr(llvm_jit, "compile_module", compile_and_note)
    call = xarr.jit(function)
    call(*arguments)
    assert all(code() is not None for code in codes)
    optimise_soon(call)
    call(*arguments)
    assert codes
    assert [code for code in codes if code() is not None] == []


def optimise_soon(call: Any) -> None:
    """Let the next call of a jitted function optimise, as if calls had taken as long as that takes."""
    program = program_of_call(call)
    assert isinstance(program, QuickProgram)
    program.rest.seconds = 0.0


def test_optimised_code_is_called_at_once() -> None:
    call, (x, y) = xarr.jit(mix), map(xarr.asarray, vectors())
    wanted = call(x, y)
    quick = call.replay_text
    assert "is_final" in quick
    call(x, y)
    assert call.replay_text == quick
    optimise_soon(call)
    for _ in range(3):  # the first optimises, the second makes another function, which the third runs
        assert np.asarray(call(x, y)).tobytes() == np.asarray(wanted).tobytes()
    assert "is_final" not in call.replay_text
    if struct_offsets.works():
        assert "F0(" in call.replay_text


def test_quick_code_computes_what_numpy_does() -> None:
    wanted = matrix()
    for k in range(60):
        wanted[k + 1 :, k] /= wanted[k, k]
        wanted[k + 1 :, k + 1 :] -= wanted[k + 1 :, k, None] * wanted[None, k, k + 1 :]
    np.testing.assert_array_equal(np.asarray(xarr.jit(eliminate)(matrix())), wanted)


def test_calls_are_counted_by_their_time() -> None:
    program = program_of(eliminate, matrix())
    assert isinstance(program, QuickProgram)
    before = program.rest.seconds
    program(matrix())
    assert program.rest.seconds < before


def test_few_kernels_are_optimised_at_once() -> None:
    x = np.ones((50, 3))
    program = program_of(lambda x: xarr.cumsum(x.sum(axis=0)) / 2, x)
    assert len(engine.launched_programs(program.plan.steps)) < PROCESSOR.min_quick_kernels
    assert not isinstance(program, QuickProgram)
    assert not any(QUICKLY in origin for origin in program.origins)


def test_code_that_runs_long_is_optimised_at_once() -> None:
    assert llvm_jit.repays_quick_code(100, 1e3)
    assert not llvm_jit.repays_quick_code(100, 1e9)


def test_an_interrupted_optimisation_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(eliminate, matrix())
    assert isinstance(program, QuickProgram)
    (wanted,) = program(matrix())
    program.rest.seconds = 0.0
    compile_module, calls = llvm_jit.compile_module, list[bool]()

    def compile_or_raise(*arguments: Any, is_quick: bool = False) -> llvm_jit.Code:
        calls.append(is_quick)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return compile_module(*arguments, is_quick=is_quick)

    monkeypatch.setattr(llvm_jit, "compile_module", compile_or_raise)
    with pytest.raises(KeyboardInterrupt):
        program(matrix())
    assert not program.rest.is_done
    assert program(matrix())[0].tobytes() == wanted.tobytes()
    assert program.rest.is_done
    assert len(calls) > 1
    assert not any(calls)


def test_optimised_code_that_the_cache_knows_is_quick_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XARR_CACHE_DIR", str(tmp_path))
    with xarr.config(kernel_cache="on"):
        for is_quick in (True, False):
            program = program_of(mix, *vectors())
            assert isinstance(program, QuickProgram) == is_quick
            if is_quick:
                program.rest.seconds = 0.0
                program(*vectors())


def test_errors_name_the_line_before_and_after() -> None:
    def pick(x: Any, i: Any) -> Any:
        return eliminate(x)[i]

    call = xarr.jit(pick)
    line = pick.__code__.co_firstlineno + 1
    program = program_of(pick, matrix(), np.array([3]))
    assert isinstance(program, QuickProgram)
    for _ in range(2):
        with pytest.raises(IndexError, match="64 is out of bounds"):
            program(matrix(), np.array([64]))
        program.rest.seconds = 0.0
    with pytest.raises(IndexError, match=f"test_quick_code.py:{line}"):
        np.asarray(call(matrix(), np.array([64])))


def test_donated_arguments_are_written_over() -> None:
    step = xarr.jit(eliminate, donate_argnums=0)
    wanted = np.asarray(xarr.jit(eliminate)(matrix()))
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(step(xarr.asarray(matrix()) * 1)), wanted)


def test_threads_call_while_one_optimises() -> None:
    program = program_of(eliminate, matrix())
    assert isinstance(program, QuickProgram)
    (wanted,) = program(matrix())
    answers = list[bytes]()

    def call_often() -> None:
        for _ in range(5):
            program.rest.seconds = 0.0
            answers.append(program(matrix())[0].tobytes())

    threads = [threading.Thread(target=call_often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [wanted.tobytes()] * 15


@pytest.mark.parametrize(
    ("function", "arguments"), [(eliminate, (matrix(),)), (mix, vectors())], ids=["kernels", "one function"]
)
def test_one_thread_optimises_and_others_go_on(
    function: Callable[..., Any], arguments: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(function, *arguments)
    assert isinstance(program, QuickProgram)
    (wanted,) = program(*arguments)
    program.rest.seconds = 0.0
    compile_module, owners = llvm_jit.compile_module, set[int]()
    began, go_on = threading.Event(), threading.Event()

    def compile_late(*operands: Any, is_quick: bool = False) -> llvm_jit.Code:
        owners.add(threading.get_ident())
        began.set()
        if threading.current_thread() is not threading.main_thread():
            assert go_on.wait(60)
        return compile_module(*operands, is_quick=is_quick)

    monkeypatch.setattr(llvm_jit, "compile_module", compile_late)
    thread = threading.Thread(target=program, args=arguments)
    thread.start()
    assert began.wait(60)
    (got,) = program(*arguments)
    assert not program.rest.is_done
    go_on.set()
    thread.join()
    assert got.tobytes() == wanted.tobytes()
    assert program.rest.is_done
    assert owners == {thread.ident}


def stretch(a: Any, v: Any, count: Any) -> Any:
    """A loop of which a step is more than one group."""

    def step(i: Any, v: Any) -> Any:
        w = a @ v
        return w / xarr.sqrt(xarr.sum(w * w)) + i

    return lax.fori_loop(0, count, step, v)


def test_a_loop_goes_on_in_optimised_code(monkeypatch: pytest.MonkeyPatch) -> None:
    a, counts = np.random.default_rng(3).normal(size=(9, 9)), (0, 1, 2, 30, 5000)
    wanted = [np.asarray(xarr.jit(stretch)(a, a[0], count)) for count in counts]
    native_step._compile.cache_clear()
    # Loops that are not part of a function, with code that is to run for less time than a step takes.
    limits = {"max_native_steps": 0, "min_quick_lines": 1, "quick_delay": 0.0, "optimising_time": 1e-3}
    for name, value in limits.items():
        monkeypatch.setattr(Processor, name, value)
    optimise, loops = native_step.NativeLoopStep.optimise, list[Any]()

    def note_and_optimise(loop: Any) -> None:
        loops.append(loop)
        optimise(loop)

    monkeypatch.setattr(native_step.NativeLoopStep, "optimise", note_and_optimise)
    got = [np.asarray(xarr.jit(stretch)(a, a[0], count)) for count in counts]
    assert [each.tobytes() for each in got] == [each.tobytes() for each in wanted]
    assert loops
    assert not any(loop.is_quick for loop in loops)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_quick_code_that_runs_long_gives_up(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop takes more steps than was known: what it has written until then is written anew."""
    monkeypatch.setenv("XARR_THREADS", threads)
    size = 9 if threads == "1" else 300  # whose products threads share
    a = np.random.default_rng(3).normal(size=(size, size))
    counts = (0, 500 if threads == "1" else 100)
    wanted = [np.asarray(xarr.jit(stretch)(a, a[0], count)) for count in counts]
    native_step._compile.cache_clear()
    for name, value in {"min_quick_lines": 1, "max_unpolled_nanoseconds": 10_000}.items():
        monkeypatch.setattr(Processor, name, value)
    call = xarr.jit(stretch)
    with xarr.config(kernel_cache="off"):
        for count, each in zip(counts, wanted, strict=True):
            assert np.asarray(call(a, a[0], count)).tobytes() == each.tobytes()
            (native,) = [part.callee for part in program_of_call(call).parts[1:]]
            assert native.is_quick == (not count)
        assert program_of_call(call).origins


def program_of_call(call: Any) -> NumpyProgram:
    (traced,) = call._cache.values()
    program = traced.compile().program
    assert isinstance(program, NumpyProgram)
    return program


def test_loops_inside_of_others_are_optimised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"max_native_steps": 0, "min_quick_lines": 1}.items():
        monkeypatch.setattr(Processor, name, value)
    a = np.random.default_rng(3).normal(size=(9, 9))

    def twice(a: Any, v: Any) -> Any:
        return lax.fori_loop(0, 2, lambda _, v: stretch(a, v, 3), v)

    loops = [
        part.__self__
        for part in program_of(twice, a, a[0]).function.__globals__.values()
        if callable(part) and hasattr(part, "__self__")
    ]
    loops = [loop for loop in loops if isinstance(loop, native_step.NativeLoopStep)]
    assert loops
    assert not any(loop.is_quick for loop in loops)
