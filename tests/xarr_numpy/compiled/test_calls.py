"""Calling compiled code: as a built-in function on small arrays, through ctypes on large and on odd ones."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.compiler.pipeline import lower
from xarr.ir import ops
from xarr_numpy.compiled.schedule import SCHEDULE

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.compiled.kernel import CompiledKernel

pytestmark = pytest.mark.usefixtures("fused")


def kernel(function: Any, *types: str) -> CompiledKernel:
    lowered = xarr.lower(function, *types)
    graph = lower(lowered.graph, lowered.backend, hot=True)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.Fusion)]
    assert isinstance(node.op, ops.Fusion)
    assert node.operands == graph.parameters, "write the function so that it asks for them in this order"
    return CompiledKernel(SCHEDULE.build(node.op), node.op.computation.result_types)


@pytest.mark.parametrize("direct", [True, False])
def test_operands_of_any_layout(direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if direct and not struct_offsets.works():
        pytest.skip("machine code may not read array objects here")
    monkeypatch.setattr(struct_offsets, "works", lambda: direct)
    add = kernel(lambda x, y: 2 * x + y, "f32[3,4]", "f32[3,4]")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    padded = np.zeros((3, 8), np.float32)
    odd = np.zeros(49, np.uint8)[1:].view(np.float32).reshape(3, 4)  # not aligned
    odd[:] = x
    for y in (x, np.asfortranarray(x), padded[:, ::2], np.broadcast_to(x[:1], (3, 4)), x[::-1, ::-1], odd):
        assert_same(add.call(x, y), 2 * x + y)
        assert_same(add.call(y, x), 2 * y + x)


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.skipif(not struct_offsets.works(), reason="machine code may not read array objects here")
def test_a_short_kernel_is_called_without_functions_between() -> None:
    with xarr.config(fusion="compiled"):
        both = xarr.jit(lambda x, y: (x + y, x * y))
        x, y = xarr.asarray(np.arange(6.0).reshape(2, 3)), xarr.asarray(np.full((2, 3), 2.0))
        turned = xarr.evaluate(x, y) or y.T.reshape(3, 2).T.evaluate()
        for other in (y, turned, y):
            for _ in range(3):
                total, product = both(x, other)
                assert_same(total, np.arange(6.0).reshape(2, 3) + 2)
                assert_same(product, np.arange(6.0).reshape(2, 3) * 2)
                assert not any(each._node.value.flags.writeable for each in (total, product))
                assert not np.shares_memory(total._node.value, product._node.value)
        assert "if not F0(b0, b1, v0, v1):" in both.replay_text
        donating = xarr.jit(lambda x: x + 1, donate_argnums=0)
        donating(both(x, y)[0])
        long = xarr.jit(lambda x: xarr.exp(x) * 2)
        long(xarr.ones(100_000).evaluate())
        assert not any("if not F0(" in each.replay_text for each in (donating, long))


def test_several_results() -> None:
    both = kernel(lambda x: (x + 1, x * 2), "s32[5]")
    x = np.arange(5, dtype=np.int32)
    more, twice = both.call(x)
    assert_same(more, x + 1)
    assert_same(twice, x * 2)


def test_results_do_not_share_memory() -> None:
    add = kernel(lambda x: x + 1, "f64[4]")
    x = np.ones(4)
    first, second = add.call(x), add.call(first := add.call(x))
    assert first.flags.owndata and not np.shares_memory(first, second)
    assert_same(second, np.full(4, 3.0))


def test_references_are_counted() -> None:
    add = kernel(lambda x: x + 1, "f64[4]")
    x = np.ones(4)
    before = sys.getrefcount(x), sys.getrefcount(True)
    for _ in range(1000):
        add.call(x)
    after = sys.getrefcount(x), sys.getrefcount(True)
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) < 100


def test_the_program_can_be_read() -> None:
    text = str(kernel(lambda x: x + 1, "f64[4]"))
    assert "in in0: float64[4]" in text
    assert "out out0: float64[4]" in text
    assert "out0[i0] = v" in text


SCATTERED = """
import numpy as np
import xarr
from xarr_numpy.compiled.kernel import CompiledKernel
from xarr.compiler.pipeline import lower
from xarr_numpy.compiled.schedule import SCHEDULE
from xarr.ir import ops

kept = []
for count in range(1, 41):
    kept.append(np.empty(2**28, np.uint8))  # addresses, not memory
    lowered = xarr.lower(lambda x: xarr.exp(x) * 3, f"f64[{count}]")
    graph = lower(lowered.graph, lowered.backend, hot=True)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.Fusion)]
    kernel = CompiledKernel(SCHEDULE.build(node.op), node.op.computation.result_types)
    kept.append(kernel)
    assert np.allclose(kernel.call(np.ones(count)), np.exp(1) * 3)
print("fine")
"""


def test_kernels_far_apart_in_memory() -> None:
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", SCATTERED],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "fine\n", done.stderr[-2000:]
