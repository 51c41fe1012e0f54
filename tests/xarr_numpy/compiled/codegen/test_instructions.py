"""Scalar expressions as LLVM IR: each primitive gives NumPy's bits at every width; assembling and loading."""

import ctypes
import errno
import math
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tests.compare import assert_same
from tests.support.elementwise_kernels import Kernel
from xarr.compiler.loop_ir.scalars import BOOL, Value, Values
from xarr.errors import BackendError
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.instructions import Block, element_type

Array = np.ndarray[Any, Any]
WIDTHS = (1, 8, 16)
FLOATS = [np.dtype(name) for name in ("f2", "f4", "f8")]
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


def numbers(dtype: np.dtype[Any], count: int = 300, seed: int = 0) -> Array:
    """Any bits of the type, and a few numbers."""
    bits = np.random.default_rng(seed).integers(0, 256, count * dtype.itemsize, np.uint8, endpoint=False)
    few = np.array([0, 1, 2, 3, 5, 100], dtype)
    result = np.concatenate([bits.view(dtype), few])
    return (
        np.concatenate([result, np.negative(few), [np.inf, np.nan]]).astype(dtype)
        if dtype.kind == "f"
        else result
    )


def check(function: Callable[..., Value], wanted: Callable[..., Array], *operands: Array) -> None:
    with np.errstate(all="ignore"):
        exact = wanted(*operands)
    for width in WIDTHS:
        assert_same(Kernel(function, [x.dtype for x in operands], width)(*operands), exact)


FLOAT_OPERATIONS: dict[str, tuple[Callable[..., Value], Callable[..., Array]]] = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "div": (lambda x, y: x / y, np.divide),
    "rem": (lambda x, y: x.rem(y), np.fmod),
    "copysign": (lambda x, y: x.copysign(y), np.copysign),
    "neg": (lambda x, y: -x, lambda x, y: np.negative(x)),
    "abs": (lambda x, y: x.abs(), lambda x, y: np.abs(x)),
    "sqrt": (lambda x, y: x.sqrt(), lambda x, y: np.sqrt(x)),
    "rint": (lambda x, y: x.rint(), lambda x, y: np.rint(x)),
    "floor": (lambda x, y: x.floor(), lambda x, y: np.floor(x)),
    "ceil": (lambda x, y: x.ceil(), lambda x, y: np.ceil(x)),
    "trunc": (lambda x, y: x.trunc(), lambda x, y: np.trunc(x)),
    "eq": (lambda x, y: x.eq(y), np.equal),
    "ne": (lambda x, y: x.ne(y), np.not_equal),
    "lt": (lambda x, y: x.lt(y), np.less),
    "le": (lambda x, y: x.le(y), np.less_equal),
    "gt": (lambda x, y: x.gt(y), np.greater),
    "ge": (lambda x, y: x.ge(y), np.greater_equal),
    "isnan": (lambda x, y: x.isnan(), lambda x, y: np.isnan(x)),
    "select": (lambda x, y: x.lt(y).select(x, y), lambda x, y: np.where(x < y, x, y)),
    "select of constants": (
        lambda x, y: x.lt(y).select(x.constant(1.5), -2.0),
        lambda x, y: np.where(x < y, x.dtype.type(1.5), x.dtype.type(-2.0)),
    ),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FLOAT_OPERATIONS)
def test_float_operations(name: str, dtype: np.dtype[Any]) -> None:
    x, y = numbers(dtype), np.random.default_rng(1).permutation(numbers(dtype))
    check(*FLOAT_OPERATIONS[name], x, y)


INTEGER_OPERATIONS: dict[str, tuple[Callable[..., Value], Callable[..., Array]]] = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "and": (lambda x, y: x & y, np.bitwise_and),
    "or": (lambda x, y: x | y, np.bitwise_or),
    "xor": (lambda x, y: x ^ y, np.bitwise_xor),
    "not": (lambda x, y: ~x, lambda x, y: np.invert(x)),
    "neg": (lambda x, y: -x, lambda x, y: np.negative(x)),
    "shl": (lambda x, y: x << (y & 7), lambda x, y: np.left_shift(x, y & 7)),
    "shr": (lambda x, y: x >> (y & 7), lambda x, y: np.right_shift(x, y & 7)),
    "div": (lambda x, y: x / ((y & 7) + 1), lambda x, y: (x - np.fmod(x, (y & 7) + 1)) // ((y & 7) + 1)),
    "rem": (lambda x, y: x.rem((y & 7) + 1), lambda x, y: np.fmod(x, (y & 7) + 1)),
    "lt": (lambda x, y: x.lt(y), np.less),
    "ge": (lambda x, y: x.ge(y), np.greater_equal),
    "eq": (lambda x, y: x.eq(y), np.equal),
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", INTEGER_OPERATIONS)
def test_integer_operations(name: str, dtype: np.dtype[Any]) -> None:
    check(*INTEGER_OPERATIONS[name], numbers(dtype), numbers(dtype, seed=1))


def test_bool_operations() -> None:
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    check(lambda a, b: a & b, np.logical_and, x, y)
    check(lambda a, b: a | b, np.logical_or, x, y)
    check(lambda a, b: a ^ b, np.logical_xor, x, y)
    check(lambda a, b: ~a, lambda a, b: ~a, x, y)
    check(lambda a, b: a.lt(b), np.less, x, y)
    check(lambda a, b: a.select(b, False), np.logical_and, x, y)


@pytest.mark.parametrize(("dtype", "wider"), [("f4", np.float64), ("f8", np.longdouble)])
def test_fma_rounds_once(dtype: str, wider: Any) -> None:
    if np.finfo(wider).nmant < 2 * np.finfo(dtype).nmant:
        # No type holds the products: one where the rounded sum would be 0.
        x = np.array([1 + 2.0**-30])
        check(lambda a: a.fma(a, -(1 + 2.0**-29)), lambda a: np.array([2.0**-60]), x)
        return
    x = np.random.default_rng(2).normal(size=500).astype(dtype)
    check(lambda a: a.fma(a, -1.0), lambda a: (a.astype(wider) * a - 1).astype(dtype), x)


def test_bits() -> None:
    x = numbers(np.dtype(np.float32))
    check(lambda a: a.bitcast(np.uint32), lambda a: a.view(np.uint32), x)
    check(lambda a: a.bitcast(np.int32).bitcast(np.uint32) >> 4, lambda a: a.view(np.uint32) >> 4, x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_constants_are_exact(dtype: np.dtype[Any]) -> None:
    unsigned = np.dtype(f"u{dtype.itemsize}")
    info = np.finfo(dtype)
    known = np.array(
        [1 / 3, -0.0, float(info.smallest_subnormal), float(info.max), math.inf, -math.inf], dtype
    )
    quiet = np.array([math.nan], dtype).view(unsigned)
    payloads = (
        (quiet | unsigned.type(5)).view(dtype),
        (quiet | unsigned.type(1 << (info.bits - 1))).view(dtype),
    )
    for number in [*known, *np.concatenate(payloads)]:
        kernel = Kernel(
            lambda x, number=number: x.constant(number).bitcast(unsigned) + x.bitcast(unsigned), [dtype], 4
        )
        got = kernel(np.zeros(3, dtype))
        assert_same(got, np.full(3, number.view(unsigned)))


def test_signalling_nan_of_float32_stays() -> None:
    bits = np.array([0x7F800001], np.uint32)
    values = Values()
    x = values.argument("x", np.float32)
    constant = values.make("constant", (), np.dtype(np.float32), bits.tobytes())
    block = Block(1)
    block.emit([constant.bitcast(np.uint32) + x.bitcast(np.uint32)], {x: "%x"})
    ir = f"define i32 @f(float %x) {{\n{chr(10).join(block.lines)}\nret i32 {[*block.names.values()][-1]}\n}}"
    code = llvm_jit.load(llvm_jit.assemble(ir), ["f"])
    assert ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_float)(code.addresses["f"])(0.0) == 0x7F800001


def test_rarely_visits_the_elements_that_want_it() -> None:
    x = numbers(np.dtype(np.float64))

    def function(a: Value) -> Value:
        inner = a.gt(1e100).rarely(a.rem(3.0) + 1.0, a * 2.0)
        return a.abs().gt(1.0).rarely(inner * a.constant(0.5), a.rint())

    def compute_wanted(a: Array) -> Array:
        inner = np.where(a > 1e100, np.fmod(a, 3.0) + 1.0, a * 2.0)
        return np.where(np.abs(a) > 1.0, inner * 0.5, np.rint(a))

    check(function, compute_wanted, x)


def test_one_slow_path_serves_every_width() -> None:
    def block(width: int) -> Block:
        x = Values().argument("x", np.float32)
        block = Block(width)
        block.emit([x.gt(2.0).rarely(x.rem(3.0), x)], {x: "%x"})
        return block

    names = [{name for name in block(width).functions if name.count(".") == 1} for width in (1, 8)]
    assert names[0] == names[1]
    assert len(names[0]) == 1


def test_what_does_not_vary_stays_scalar() -> None:
    values = Values()
    x, scale = values.argument("x", np.float32), values.argument("scale", np.float32)
    block = Block(8, varies=lambda value: value.attribute == "x")
    root = scale.sqrt() + 1.0
    product = x * root
    chosen = scale.lt(0.0).select(product, x)
    block.emit([chosen], {x: "%x", scale: "%scale"})
    assert [block.width_of(value) for value in (root, product, chosen)] == [1, 8, 8]
    text = "\n".join(block.lines)
    assert "call float @llvm.sqrt.f32(float %scale)" in text
    assert text.count("shufflevector") == 1
    assert "select i1" in text
    assert block.declarations == {"declare float @llvm.sqrt.f32(float)"}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("last", [0, 100])
def test_bounds_on_both_sides(dtype: np.dtype[Any], last: int) -> None:
    limits = np.iinfo(dtype)
    ends = np.array([limits.min, limits.max, last, last + 1], dtype)
    x = np.concatenate([numbers(dtype), ends])
    check(lambda x: x.ge(0) & x.le(last), lambda x: (x >= 0) & (x <= last), x)
    check(lambda x: x.ge(3) & x.le(last), lambda x: (x >= 3) & (x <= last), x)
    check(lambda x, y: x.ge(0) & y.le(last), lambda x, y: (x >= 0) & (y <= last), x, x[::-1].copy())


@pytest.mark.parametrize(("dtype", "last", "is_one"), [("i8", 25, True), ("i4", 0, True), ("i8", -1, False)])
def test_bounds_on_both_sides_are_one_comparison(dtype: str, last: int, is_one: bool) -> None:
    x = Values().argument("x", np.dtype(dtype))
    block = Block(1)
    inside = x.ge(0) & x.le(last)
    block.emit([inside], {x: "%x"})
    text = "\n".join(block.lines)
    assert ("icmp ule" in text, "and i1" in text) == (is_one, not is_one)


@pytest.mark.parametrize("settled", [(0,), (1,), (0, 1)])
def test_bounds_of_which_some_are_settled(settled: tuple[int, ...]) -> None:
    x = Values().argument("x", np.int64)
    bounds = (x.ge(0), x.le(25))
    block = Block(1)
    for k in settled:
        block.settle(bounds[k], True)
    names = {} if len(settled) == 2 else {x: "%x"}
    block.emit([bounds[0] & bounds[1]], names)
    assert block.lines[-1].partition(" = ")[2] == ("icmp ule i64 %x, 25" if names else "and i1 true, true")


def test_equal_values_are_computed_once() -> None:
    values = Values()
    x = values.argument("x", np.float32)
    block = Block(4)
    block.emit([(x + 1.0) * (x + 1.0)], {x: "%x"})
    block.emit([x + 1.0])
    assert block.lines == [
        "%v1 = fadd <4 x float> %x, splat (float 0x3FF0000000000000)",
        "%v2 = fmul <4 x float> %v1, %v1",
    ]


def test_deep_expressions() -> None:
    x = Values().argument("x", np.float32)
    root = x
    for _ in range(5000):
        root = root * x + 1.0
    block, after = Block(4), Block(4, prefix="w")
    block.emit([root], {x: "%x"})
    assert len(block.lines) == 10_000
    after.emit([root.sqrt()], {root: block.names[root]})
    assert after.lines[0] == f"%w1 = call <4 x float> @llvm.sqrt.v4f32(<4 x float> {block.names[root]})"


def test_refusals() -> None:
    values = Values()
    half = values.argument("h", np.float16)
    with pytest.raises(TypeError, match="compute it in float32"):
        Block(1).emit([half.fma(half, half)], {half: "%h"})
    with pytest.raises(TypeError, match="no instruction for argument of float16"):
        Block(1).emit([half])
    with pytest.raises(TypeError, match="no register holds complex64"):
        element_type(np.dtype(np.complex64))
    flag = values.argument("b", BOOL)
    with pytest.raises(TypeError, match="convert it"):
        Block(1).emit([flag.bitcast(np.uint8)], {flag: "%b"})


# --- the assembler -----------------------------------------------------------------------------------

INCREMENT = "define i32 @increment(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}"


def call(code: llvm_jit.Code) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.addresses["increment"])
    result: int = function(41)
    return result


def test_code_goes_through_bytes() -> None:
    kept = bytes(bytearray(llvm_jit.assemble(INCREMENT)))
    first, second = (llvm_jit.load(kept, ["increment"]) for _ in range(2))
    assert first.addresses != second.addresses
    del first
    assert call(second) == 42
    assert call(llvm_jit.load(llvm_jit.assemble(INCREMENT, optimise=True), ["increment"])) == 42


def test_target_names_the_processor() -> None:
    assert llvm_jit.target().startswith("LLVM ")
    assert llvm_jit.target() == llvm_jit.target()


@pytest.mark.parametrize(
    "damaged",
    [b"", b"not code", llvm_jit.assemble(INCREMENT)[:200]],
    ids=["empty", "text", "cut"],
)
def test_foreign_bytes_are_refused(damaged: bytes) -> None:
    with pytest.raises(BackendError, match="could not load"):
        llvm_jit.load(damaged, ["increment"])


def test_missing_functions_are_refused() -> None:
    with pytest.raises(BackendError, match="Symbols not found"):
        llvm_jit.load(llvm_jit.assemble(INCREMENT), ["decrement"])


@pytest.mark.skipif(not llvm_jit._MAPPINGS, reason="the system does not say how memory is mapped")
def test_an_error_says_that_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "define i32 @f() { ret i32 5 }"
    code = llvm_jit.assemble(text)
    monkeypatch.setattr(llvm_jit, "_LEAST_MEMORY", 2**60)
    for call in (lambda: llvm_jit.load(code, ["f"]), lambda: llvm_jit._assemble(text, (), 0)):
        with pytest.raises(BackendError, match="no memory for machine code: Cannot allocate"):
            call()


@pytest.mark.skipif(not llvm_jit._MAPPINGS, reason="the system does not say how memory is mapped")
def test_code_that_nobody_uses_gives_its_memory_before_others_lack_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = llvm_jit.assemble("define i32 @f() { ret i32 5 }")
    ring: list[Any] = [llvm_jit.load(code, ["f"])]
    ring.append(ring)
    unused, mmap = weakref.ref(ring[0]), llvm_jit.mmap.mmap
    del ring

    def lacks(*arguments: Any, **options: Any) -> Any:
        if unused():
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return mmap(*arguments, **options)

    monkeypatch.setattr(llvm_jit.mmap, "mmap", lacks)
    llvm_jit.load(code, ["f"])
    assert unused() is None


def test_text_that_is_no_program_is_refused() -> None:
    with pytest.raises(BackendError, match="expected type"):
        llvm_jit.assemble("define hello")


def test_threads_assemble_at_once() -> None:
    results: list[int] = []

    def work() -> None:
        for _ in range(5):
            results.append(call(llvm_jit.load(llvm_jit.assemble(INCREMENT), ["increment"])))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [42] * 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_child_of_a_fork_assembles() -> None:
    before = llvm_jit.load(llvm_jit.assemble(INCREMENT), ["increment"])
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            llvm_jit.load(llvm_jit.assemble(INCREMENT), ["increment"])

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        child = os.fork()
        if child == 0:
            after = llvm_jit.load(llvm_jit.assemble(INCREMENT), ["increment"])
            os._exit(0 if call(before) == call(after) == 42 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
