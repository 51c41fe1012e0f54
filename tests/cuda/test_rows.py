"""What follows a reduction of rows for each, in the kernel that reduces them, and what threads keep of a row."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.emulator.module import ORDERS, Module
from tests.cuda.test_cupy_backend import device
from tests.cuda.test_shared_work import bits_in_each_order, layer_norm, normal, softmax
from xarr import lax
from xarr.compiler.loop_ir.loops import Kernel, LoopError, grid_loops
from xarr.compiler.schedules.gpu.builders import program_of
from xarr.compiler.schedules.gpu.target import TARGET
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.codegen.kernel_calls import BLOCK

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Functions of an array of two axes that end with an element for each row.
FUNCTIONS: dict[str, Any] = {
    "mean": lambda x: x.mean(1),
    "variance": lambda x: xarr.var(x, axis=1),
    "norm": lambda x: xarr.sqrt((x * x).sum(1)),
    "logsumexp": lambda x: xarr.log(xarr.exp(x - x.max(1, keepdims=True)).sum(1)) + x.max(1),
    "with another array": lambda x: x.sum(1) * 0.5 + x[:, 0],
}


@pytest.mark.parametrize("shape", [(5, 40), (3, 300)], ids=["warps", "blocks"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_ends_in_the_kernel_that_reduces_it(
    name: str, shape: tuple[int, int], cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, x = FUNCTIONS[name], normal(*shape)
    result = bits_in_each_order(function, [x], cupy, monkeypatch)
    assert [text.count("__global__") for text in device(cupy).texts] == [1]
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.asarray(function(xarr.asarray(x))), rtol=1e-12, atol=1e-12)
    device(cupy).races = True
    np.asarray(xarr.jit(function)(xarr.asarray(x)))


def test_eager_rows_end_there_too(cupy: Any) -> None:
    x = normal(4, 64)
    for rows in (4, 3):
        assert_same(np.asarray((xarr.asarray(np.ones_like(x[:rows])) * 3).mean(1)), np.full(rows, 3.0))
    assert [text.count("__global__") for text in device(cupy).texts if "xarr_0(" in text] == [1]


# --- what threads keep of a row --------------------------------------------------------------------------------


def softmax_in_another_order(x: Any) -> Any:
    """A softmax of elements in another order, which loads them at numbers that it loads."""
    numbers = lax.convert_element_type(lax.abs(x[0]), "int32")
    return softmax(x.at[:, numbers].get(mode="clip"))


def with_index(x: Any) -> Any:
    """Three results for each row, and one for each element."""
    total = lax.reduce_sum(x, (1,))
    centred = lax.sub(x, lax.broadcast_in_dim(total, x.shape, (0,)))
    return total, lax.argmax(centred, 1, "int32"), lax.reduce_max(centred, (1,)), lax.mul(centred, x)


#: A function of an array of two axes, of one kernel but for copies of results.
HELD: dict[str, Any] = {
    "softmax": softmax,
    "layer norm": layer_norm,
    "with an index": with_index,
    "a sum": lambda x: lax.reduce_sum(x, (1,)),
    "loads at numbers that are loaded": softmax_in_another_order,
}
#: Rows, and elements of them: as many as lanes, fewer and more; rows that fill a warp or not; of blocks.
ROW_SHAPES = [(8, 64), (5, 33), (3, 65), (2, 100), (3, 256), (2, 300), (2, 1024)]


def kernel_of(function: Any, x: Any, **target: int) -> Kernel:
    graph: Any = xarr.jit(function).lower(x).stage("decomposed")
    return program_of(graph, TARGET.replace(**target))


def run(kernel: Kernel, x: Any, any_sizes: bool, order: str) -> list[bytes]:
    """The bytes that the results of a program have on the emulated device."""
    source = emit(kernel, any_sizes)
    module = Module(source.text, races=True)
    memory = {each: np.full(each.nbytes, 0xA5, np.uint8) for each in (*kernel.outputs, *kernel.scratch)}
    memory |= {each: np.asarray(x).reshape(-1).view(np.uint8).copy() for each in kernel.inputs}
    for call in source.calls:
        sizes = [np.array(each) for each in call.sizes]
        arrays = [*(memory[each] for each in call.buffers), *sizes]
        arguments = [(each.ctypes.data, each.nbytes) for each in arrays]
        module.launch(call.name, (call.blocks,), (BLOCK,), arguments, order)
    return [memory[each].tobytes() for each in kernel.outputs]


@pytest.mark.sampled
@pytest.mark.parametrize("shape", ROW_SHAPES, ids=str)
@pytest.mark.parametrize("name", HELD)
def test_rows_that_are_held_have_the_same_bits(name: str, shape: tuple[int, int]) -> None:
    x = normal(*shape).astype("float32") * 40
    wanted = None
    for target in ({"held_registers": 0}, {}, {"held_lanes": 2}, {"held_elements": 0}):
        kernel = kernel_of(HELD[name], x, **target)
        assert any(grid_loops(phase)[-1].sharers for phase in kernel.phases) is (
            "held_registers" not in target
        )
        for any_sizes, order in ((False, ORDERS[0]), (True, ORDERS[2])):
            got = run(kernel, x, any_sizes, order)
            wanted = wanted or got
            assert got == wanted, (target, any_sizes)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "int8", "complex64", "bool"])
@pytest.mark.parametrize("shape", [(3, 65), (2, 300)], ids=str)
def test_rows_of_each_element_type_have_the_same_bits(dtype: str, shape: tuple[int, int]) -> None:
    x = np.asarray(xarr.asarray(normal(*shape) * 3).astype(dtype))

    def function(x: Any) -> Any:
        if dtype == "bool":
            least = lax.reduce_min(x, (1,))
            return lax.bitwise_xor(x, lax.broadcast_in_dim(least, x.shape, (0,)))
        total = lax.reduce_sum(x, (1,))
        centred = lax.sub(x, lax.broadcast_in_dim(total, x.shape, (0,)))
        return total, lax.reduce_sum(lax.mul(centred, centred), (1,)), lax.mul(centred, x)

    kernels = [kernel_of(function, x, **target) for target in ({"held_registers": 0}, {})]
    results = [run(kernel, x, any_sizes, "shuffled") for kernel in kernels for any_sizes in (False, True)]
    assert len({tuple(each) for each in results}) == 1


def test_an_element_of_a_row_is_loaded_and_computed_once() -> None:
    for shape in ((8, 64), (8, 4096)):
        x = np.zeros(shape, np.float32)
        held, other = (emit(kernel_of(softmax, x, **target)).text for target in ({}, {"held_registers": 0}))
        assert (held.count("= in0["), held.count("1.442695f")) == (1, 1)
        assert (other.count("in0["), other.count("1.442695f")) == (3, 2)


def test_rows_of_other_lengths_need_a_text_for_each_power_of_two() -> None:
    texts = {emit(kernel_of(softmax, np.zeros((n, 9 * n), np.float32)), True).text for n in (29, 31, 43, 56)}
    assert len(texts) == 1
    assert emit(kernel_of(softmax, np.zeros((3, 600), np.float32)), True).text not in texts


def test_other_numbers_of_threads_are_refused() -> None:
    for shape, wrong in (((3, 64), 12), ((3, 300), 128)):
        kernel = kernel_of(softmax, np.zeros(shape, np.float32))
        grid_loops(kernel.phases[0])[-1].sharers = wrong
        with pytest.raises(LoopError, match=f"no CUDA C.. for rows that {wrong} threads share"):
            emit(kernel)
