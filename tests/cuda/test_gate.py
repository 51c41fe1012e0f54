"""Every kind of kernel compiles for each architecture, and keeps all in registers: no stack, no spills.

Skipped where NVRTC is not installed: `pip install nvidia-cuda-nvrtc`, or set NVRTC_DIRECTORY.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compiler.schedules.serial.test_serial_loops import CASES, graph_of
from tests.cuda import nvrtc
from tests.cuda.test_product_tiles import REDUCED
from tests.cuda.test_shared_work import layer_norm, softmax
from xarr import lax
from xarr.compiler.passes.sorted_updates import sort_updates
from xarr.compiler.schedules.gpu.builders import program_of
from xarr.compiler.schedules.gpu.target import TARGET
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.machine_code import OPTIONS

pytestmark = nvrtc.needed

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
DTYPES = (
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float32",
    "float64",
    "complex64",
    "int8",
    "uint16",
    "int64",
)


def move(x: Any) -> Any:
    """Arithmetic, moves, a conversion and a sum."""
    y = lax.pad(lax.transpose(x * x + x, (1, 0)), xarr.zeros((), dtype=x.dtype), ((1, 0, 0), (0, 2, 0)))
    return lax.reduce_sum(y, (0,)), lax.convert_element_type(
        lax.real(y) if "complex" in str(x.dtype) else y, "float16"
    )


def functions(x: Any) -> Any:
    """Functions with formulas."""
    return lax.exp(x) + lax.log(x) * lax.sin(x) + lax.erf(x) + lax.pow(x, x) + lax.atan2(x, x) + lax.rem(x, x)


def text_of(function: Any, *arrays: Any) -> str:
    return emit(program_of(graph_of(function, *arrays))).text


def two_of(text: str) -> tuple[str, str]:
    """An older architecture and a newer one, which the text decides: each compiles half of the texts."""
    number = zlib.crc32(text.encode())
    return ARCHITECTURES[number % 2], ARCHITECTURES[2 + number // 2 % 2]


def check(text: str, architectures: Any = None) -> None:
    for architecture in two_of(text) if architectures is None else architectures:
        usages = nvrtc.usage_of(text, architecture, OPTIONS)
        assert usages
        for usage in usages:
            assert usage.stack == usage.spills == 0, f"{architecture}: {usage}\n{text}"


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_each_kind_compile(name: str) -> None:
    function, arrays = CASES[name]
    check(text_of(function, *arrays))


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_any_sizes_compile(name: str) -> None:
    function, arrays = CASES[name]
    check(emit(program_of(graph_of(function, *arrays)), any_sizes=True).text)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_of_each_element_type_compile(dtype: str) -> None:
    check(text_of(move, xarr.ones((3, 4), dtype=dtype)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_functions_compile(dtype: str) -> None:
    check(text_of(functions, xarr.ones((3, 4), dtype=dtype)))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_complex_numbers_compile(dtype: str) -> None:
    functions = (lax.acos, lax.acosh, lax.asinh, lax.atan, lax.atanh, lax.exp, lax.log, lax.tanh, lax.sqrt)
    x = xarr.ones((3, 4), dtype=dtype)
    check(text_of(lambda x: [lax.pow(x, x), *(function(x) for function in functions)], x))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "int64"])
def test_atomics_compile(dtype: str) -> None:
    x, i = np.zeros(5, dtype), np.zeros(3, "int64")
    check(text_of(lambda x, i: x.at[i].add(x[:3], mode="drop").at[i].max(x[:3], mode="drop"), x, i))


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"]
)
def test_scatters_compile(dtype: str, deterministic: bool) -> None:
    def function(x: Any, i: Any) -> Any:
        if dtype == "bool":
            return lax.scatter_max(x, i[:, None], x[:3], lax.ScatterDimensionNumbers((), (0,), (0,)))
        at = x.at[i].add(x[:3], mode="drop").at[i]
        if "c" not in dtype:
            return at.max(x[:3], mode="drop")
        return at.multiply(x[:3], mode="drop").at[i].set(x[:3], mode="drop")

    graph = graph_of(
        function, np.zeros(5, xarr.dtype(dtype) if dtype != "bfloat16" else "float32"), np.zeros(3, int)
    )
    check(emit(program_of(graph, TARGET.replace(deterministic=int(deterministic)))).text)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128"])
def test_folds_by_blocks_compile(dtype: str) -> None:
    x, i = xarr.zeros(8, dtype=dtype), np.zeros(4000, int)
    text = text_of(lambda x, i, u: x.at[i].add(u, mode="drop"), x, i, xarr.ones(4000, dtype=dtype))
    check(text, ARCHITECTURES[-2:])


@pytest.mark.parametrize("any_sizes", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_exact_sums_compile(dtype: str, any_sizes: bool) -> None:
    size, count = TARGET.min_exact_results, 2**19
    arrays = xarr.ones(size, dtype=dtype), np.zeros(count, int), xarr.ones(count, dtype=dtype)
    graph = graph_of(lambda x, i, u: x.at[i].add(u, mode="drop"), *arrays)
    text = emit(program_of(graph), any_sizes).text
    assert "atomicAdd((uint64 *)" in text
    check(text)


@pytest.mark.parametrize("count", [100, 4000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128"])
def test_folds_of_sorted_updates_compile(dtype: str, count: int) -> None:
    arrays = xarr.zeros((8, 3), dtype=dtype), np.zeros(count, int), xarr.ones((count, 3), dtype=dtype)
    graph = graph_of(lambda x, i, u: x.at[i].add(u, mode="drop"), *arrays)
    check(emit(program_of(sort_updates(graph, lambda node: True))).text, ARCHITECTURES[-2:])


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_sorts_compile(dtype: str) -> None:
    x = xarr.ones((5, 3), dtype=dtype)
    check(text_of(lambda x: lax.sort((x, lax.broadcasted_iota("int32", (5, 3), 0)), dimension=0), x))
    long = xarr.ones((20000,), dtype=dtype)
    text = text_of(lambda x: lax.sort((x, lax.broadcasted_iota("int32", (20000,), 0))), long)
    assert "__shared__" in text
    check(text)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int64"])
def test_reductions_by_blocks_compile(dtype: str) -> None:
    text = text_of(lambda x: lax.reduce_sum(x, (1,)), xarr.ones((3, 1000), dtype=dtype))
    assert "__shared__" in text
    check(text)


@pytest.mark.parametrize("shape", [(3, 40), (1, 10001), (80, 40)])
def test_ways_of_reductions_compile(shape: tuple[int, ...]) -> None:
    axis = 0 if shape[0] > shape[1] else 1
    for function in (lambda x: lax.reduce_sum(x, (axis,)), lambda x: lax.argmax(x, axis, "int32")):
        text = text_of(function, xarr.ones(shape, dtype="float32"))
        assert ("__shfl" in text) == (axis == 1)
        check(text)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int8", "uint64"])
@pytest.mark.parametrize("size", [300, 8193])
def test_running_totals_compile(size: int, dtype: str) -> None:
    text = text_of(lambda x: lax.cumsum(x, 0), xarr.ones((size,), dtype=dtype))
    assert "__shfl_up_sync" in text
    check(text)
    if "float" in dtype and size == 300:
        for term in (lax.exp, lax.lgamma):
            check(text_of(lambda x, term=term: lax.cumsum(term(x), 0), xarr.ones((size,), dtype=dtype)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_running_totals_of_columns_compile(dtype: str) -> None:
    text = text_of(lambda x: lax.cumsum(x, 0), xarr.ones((8000, 33), dtype=dtype))
    assert "shared0[512]" in text
    check(text)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex128"])
def test_parts_of_sorted_updates_compile(dtype: str) -> None:
    def function(i: Any, u: Any) -> Any:
        return xarr.zeros((8, *u.shape[1:]), dtype=dtype).at[i].add(u, mode="drop")

    for inner in ((), (16,)):
        text = text_of(function, np.zeros(9000, int), xarr.ones((9000, *inner), dtype=dtype))
        assert ("__shfl" in text) == (dtype not in ("float16", "complex128"))
        check(text)


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
def test_tiles_and_tables_compile(dtype: str) -> None:
    text = text_of(lambda x: lax.transpose(x, (1, 0)), xarr.ones((40, 70), dtype=dtype))
    assert "__shared__" in text
    check(text)
    graph = graph_of(
        lambda i: xarr.zeros(8, dtype=dtype).at[i].add(xarr.ones(9000, dtype=dtype), mode="drop"),
        np.zeros(9000, int),
    )
    text = emit(program_of(graph, TARGET.replace(deterministic=0))).text
    assert "__shared__" in text
    check(text)


@pytest.mark.parametrize("dtype", ["int8", "bool", "int64", "float32", "bfloat16", "complex128"])
def test_products_by_tiles_compile(dtype: str) -> None:
    x, y = xarr.ones((8, 70, 40), dtype=dtype), xarr.ones((8, 40, 65), dtype=dtype)
    text = text_of(lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), x, y)
    assert "__shared__" in text
    check(text)
    if dtype != "bool":
        x, y = xarr.ones((2, 5, 36, 36), dtype=dtype), xarr.ones((17, 5, 3, 3), dtype=dtype)
        text = text_of(lambda x, y: lax.conv_general_dilated(x, y, (1, 1), "SAME"), x, y)
        assert "__shared__" in text
        check(text)


#: Reductions of tiles: each of one element type, and one of several others.
TILES = [
    *[(name, "float32") for name in REDUCED],
    *[("the nearest", x) for x in ("int8", "bfloat16", "float64")],
]


@pytest.mark.parametrize(("name", "dtype"), TILES)
def test_reduced_tiles_compile(name: str, dtype: str) -> None:
    x, y = xarr.ones((70, 19), dtype=dtype), xarr.ones((1030, 19), dtype=dtype)
    with xarr.config(broadcasting="numpy"):
        graph = graph_of(REDUCED[name], x, y)
    for any_sizes in (False, True):
        text = emit(program_of(graph), any_sizes).text
        assert "__shared__" in text
        check(text, ["sm_90"])


@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16"])
def test_large_tiles_keep_three_blocks(dtype: str) -> None:
    """Tiles of 128 rows: three blocks of 256 threads fit into the registers of a multiprocessor, two of integers."""
    element = np.zeros((), "float32" if dtype == "bfloat16" else dtype)
    x, y = (xarr.astype(np.broadcast_to(element, shape), dtype) for shape in ((2048, 2048), (2048, 2048)))
    texts = [text_of(lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))), x, y)]
    image, kernel = (
        xarr.astype(np.broadcast_to(element, shape), dtype) for shape in ((8, 56, 56, 64), (3, 3, 64, 256))
    )
    layout = ("NHWC", "HWIO", "NHWC")
    texts.append(
        text_of(
            lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout),
            image,
            kernel,
        )
    )
    for text in texts:
        for architecture in ("sm_80", "sm_90"):
            usages = nvrtc.usage_of(text, architecture, OPTIONS)
            assert max(each.registers for each in usages) <= (96 if dtype == "int32" else 80)
            assert not any(each.stack or each.spills for each in usages)


@pytest.mark.parametrize("shape", [(5, 300), (20, 64)])
def test_rows_of_several_phases_compile(shape: tuple[int, int]) -> None:
    for function in (softmax, layer_norm):
        check(text_of(function, xarr.ones(shape, dtype="float32")))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64", "int8"])
@pytest.mark.parametrize("shape", [(7, 64), (2000, 8192), (20000, 1000)], ids=str)
def test_rows_in_registers_compile(shape: tuple[int, int], dtype: str) -> None:
    """As many as threads keep: 8 of a lane, and rows of blocks and of warps that fill registers."""
    functions = (softmax, layer_norm)
    if dtype in ("complex64", "int8"):
        functions = (lambda x: x - xarr.sum(x, axis=1, keepdims=True).astype(x.dtype),)
    for function in functions:
        graph: Any = xarr.jit(function).lower(xarr.ShapeDtypeStruct(shape, dtype)).stage("decomposed")
        for any_sizes in (False, True):
            text = emit(program_of(graph), any_sizes).text
            assert "#pragma unroll" in text or (dtype != "float32" and shape[1] > 64)
            check(text, ("sm_75", "sm_90"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int8", "uint64"])
@pytest.mark.parametrize("window", [(1, 31, 31), (9, 5, 1), (1, 1, 100)])
def test_wide_windows_compile(window: tuple[int, ...], dtype: str) -> None:
    def reduce(x: Any) -> Any:
        return lax.reduce_window(x, xarr.zeros((), dtype=dtype), lax.add, window, (1, 1, 1), "SAME")

    x = xarr.ones((20, 40, 300), dtype=dtype)
    check(text_of(reduce, x), ARCHITECTURES[1:])
    check(emit(program_of(graph_of(reduce, x)), any_sizes=True).text, ARCHITECTURES[-1:])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "int8"])
def test_neighbours_of_a_thread_compile(dtype: str) -> None:
    busy = TARGET.replace(busy_threads=2**5)
    x, weights = xarr.ones((2, 8, 20, 64), dtype=dtype), xarr.ones((3, 3, 1, 64), dtype=dtype)

    def convolve(x: Any, weights: Any) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(
            x, weights, (1, 1), "SAME", dimension_numbers=names, feature_group_count=64
        )

    def pool(x: Any) -> Any:
        least = xarr.asarray(-99, dtype=dtype)
        return lax.reduce_window(x, least, lax.max, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")

    for graph in (graph_of(convolve, x, weights), graph_of(pool, x)):
        check(emit(program_of(graph, busy)).text)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "complex128"])
@pytest.mark.parametrize("window", [(1, 3, 3, 1), (1, 9, 9, 1)])
def test_gradients_of_poolings_compile(window: tuple[int, ...], dtype: str) -> None:
    def gradient(x: Any, source: Any) -> Any:
        zero = xarr.zeros((), dtype=dtype)
        return lax.select_and_scatter(
            x,
            lambda a, b: lax.ge(lax.real(a), lax.real(b)) if dtype.startswith("c") else lax.ge(a, b),
            window,
            (1, 2, 2, 1),
            "SAME",
            source,
            zero,
            lax.add,
        )

    arrays = xarr.ones((2, 20, 19, 5), dtype=dtype), xarr.ones((2, 10, 10, 5), dtype=dtype)
    check(text_of(gradient, *arrays))
    check(emit(program_of(graph_of(gradient, *arrays)), any_sizes=True).text, ARCHITECTURES[-1:])


#: The texts that the suite left are so many parts, so that several processes compile them; and so many of them are one.
PARTS = 32
JOINED = 16


def check_joined(texts: list[str], architectures: Any) -> None:
    """As `check` of each; only one that fails is compiled by itself."""
    try:
        check(nvrtc.join_texts(texts), architectures)
    except (AssertionError, nvrtc.CompileError):
        for text in texts:
            check(text, architectures)
        raise


@pytest.mark.skipif(nvrtc.TEXTS not in os.environ, reason="needs CUDA_TEXTS, a folder of texts of the suite")
@pytest.mark.parametrize("part", range(PARTS))
def test_texts_of_the_suite_compile(part: int) -> None:
    """All of them for one architecture, and a sample for each."""
    paths = sorted(Path(os.environ[nvrtc.TEXTS]).glob("*.cu"))
    assert len(paths) > PARTS
    texts = [path.read_text(encoding="utf-8") for path in paths[part::PARTS]]
    check_joined(texts[::16], ARCHITECTURES)
    rest = [text for number, text in enumerate(texts) if number % 16]
    for begin in range(0, len(rest), JOINED):
        check_joined(rest[begin : begin + JOINED], ["sm_90"])


def test_each_architecture_compiles_about_half_of_the_texts() -> None:
    chosen = [two_of(f"kernel {number}") for number in range(400)]
    for architectures in (ARCHITECTURES[:2], ARCHITECTURES[2:]):
        counts = [sum(each in two for two in chosen) for each in architectures]
        assert sum(counts) == 400 and min(counts) > 150


def test_what_kernels_take_is_printed() -> None:
    compiled = {"sm_100": [(8, 0, 0), (40, 16, 4)], "sm_75": [(7, 0, 0)]}
    assert nvrtc.summary(compiled).splitlines() == [
        "sm_75: 1 kernels of 7 to 7 registers, 7 on average; 0 B of stack, 0 B spilled",
        "sm_100: 2 kernels of 8 to 40 registers, 24 on average; 16 B of stack, 4 B spilled",
    ]


def test_what_cuda_has_not_is_refused() -> None:
    text = text_of(move, xarr.ones((3, 4)))
    with pytest.raises(nvrtc.CompileError, match="wchar_of"):
        check_joined([text, text.replace("const double", "const wchar_of", 1)], ["sm_90"])


def test_local_arrays_with_a_computed_index_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "compiled", {})
    text = """extern "C" __global__ void k(const int *x, int *y) {
        int held[64];
        for (int i = 0; i < 64; i++) held[i] = x[i];
        for (int i = 0; i < 64; i++) y[i] = held[x[i] & 63];
    }"""
    with pytest.raises(AssertionError, match="stack=256"):
        check(text, ["sm_90"])
    others = [text_of(move, xarr.ones((3, 4))), text_of(move, xarr.ones((4, 5), dtype="float16"))]
    check_joined(others, ["sm_90"])
    with pytest.raises(AssertionError, match=r"kernel='k', .* stack=256") as caught:
        check_joined([*others, text], ["sm_90"])
    assert others[0] not in str(caught.value)
