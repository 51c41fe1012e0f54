"""Parse StableHLO text with MLIR and run it with XLA on the CPU: the oracle of the differential tests."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import lapack, xla_client
from jax._src.lib.mlir import ir
from jax.extend.backend import get_backend

from tests.support.answers import recorded

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

# XLA calls LAPACK through pointers that are null until one of its functions has been asked for.
lapack.prepare_lapack_call("potrf", np.dtype(np.float32))

Array = np.ndarray[Any, Any]

#: How far results of one operation may be from ours, relatively or absolutely; 0 for all other types.
TOLERANCE = {
    "float16": 5e-3,
    "bfloat16": 4e-2,
    "float32": 2e-5,
    "float64": 1e-11,
    "complex64": 5e-5,
    "complex128": 1e-11,
}


@cache
def context() -> Any:
    """One MLIR context with the dialects that JAX uses, StableHLO and CHLO among them."""
    return mlir.make_ir_context()


def parse(text: str) -> Any:
    """`text` as a verified MLIR module; jaxlib's MLIRError says what is wrong with it."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        module.operation.verify()
    return module


@recorded
def run_stablehlo(text: str, *inputs: Any) -> list[Array]:
    """The results of the function `main` of a StableHLO module, compiled by XLA for the CPU.

    Inputs must have exactly the shapes and dtypes of main's arguments: XLA reads their memory as such.
    Raises ValueError if they do not, or if main takes or returns a tuple, which XLA cannot pass.
    """
    return compile_stablehlo(text)(*inputs)


def compile_stablehlo(text: str) -> Callable[..., list[Array]]:
    """`run_stablehlo` for many inputs."""
    module = parse(text)
    backend = get_backend("cpu")
    device = backend.local_devices()[0]
    devices = xla_client.DeviceList((device,))
    programs: list[Any] = []

    def run(*inputs: Any) -> list[Array]:
        arrays = [np.asarray(value) for value in inputs]
        with context(), ir.Location.unknown():
            _check(module, arrays)
        if not programs:
            programs.append(backend.compile_and_load(module, devices, xla_client.CompileOptions()))
        buffers = [jax.device_put(array, device) for array in arrays]
        shards = programs[0].execute_sharded(buffers).disassemble_into_single_device_arrays()
        return [np.asarray(shard[0]) for shard in shards]

    return run


def _check(module: Any, arrays: list[Array]) -> None:
    functions = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in module.body.operations}
    type = ir.FunctionType(ir.TypeAttr(functions["main"].attributes["function_type"]).value)
    for wanted in itertools.chain(type.inputs, type.results):
        if str(wanted).startswith("tuple"):
            raise ValueError(f"main cannot take or return a tuple, got {wanted}; use its elements")
    got = [str(ir.RankedTensorType.get(a.shape, mlir.dtype_to_ir_type(a.dtype))) for a in arrays]
    if got != [str(wanted) for wanted in type.inputs]:
        raise ValueError(f"main wants {[str(wanted) for wanted in type.inputs]}, got {got}")


def squeeze_spaces(text: str) -> str:
    """`text` with one space for several and none at line ends: MLIR releases differ in these."""
    return "\n".join(re.sub(" +", " ", line).rstrip() for line in text.strip().splitlines())


def assert_close(got: Array, want: Array, tolerance: float) -> None:
    """Equal types and shapes, and values equal or within `tolerance`; NaN equals NaN."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    if tolerance:
        np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)
