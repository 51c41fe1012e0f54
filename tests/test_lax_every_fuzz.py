"""Every operation of XLA's page has random calls that are compared with jax.lax or XLA; this file has what others lack.

Each run of the suite draws 20 of each; LAX_FUZZ=500 in the environment draws that many, and other random ones.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.fuzz_draws import WITH_JAX, WITH_XLA, Call, Drawn, dtype_of, shape_of, values
from tests.lax_oracle import jax_function
from tests.support.checkout import CHECKOUT
from tests.xla import run_stablehlo
from xarr import lax
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError

jax.config.update("jax_enable_x64", True)

COUNT: Final = int(os.environ.get("LAX_FUZZ", "20"))
HERE: Final = Path(__file__).parent

#: Where other files draw random calls, 500 or more of each: a file and the function in it that draws.
ELSEWHERE: Final[dict[str, tuple[str, str]]] = {
    "BatchNormGrad": ("test_lax_numbers_fuzz.py", "draw_norm"),
    "BatchNormInference": ("test_lax_numbers_fuzz.py", "draw_norm"),
    "BatchNormTraining": ("test_lax_numbers_fuzz.py", "draw_norm"),
    "BroadcastInDim": ("test_lax_core_fuzz.py", "draw_broadcast"),
    "Cholesky": ("test_lax_numbers_fuzz.py", "draw_factor"),
    "Conv": ("test_lax_convolution.py", "draw_case"),
    "ConvWithGeneralPadding": ("test_lax_convolution.py", "draw_case"),
    "Dot": ("test_lax_core_fuzz.py", "draw_dot"),
    "DotGeneral": ("test_lax_core_fuzz.py", "draw_dot"),
    "DynamicSlice": ("test_lax_core_fuzz.py", "draw_dynamic_slice"),
    "DynamicUpdateSlice": ("test_lax_core_fuzz.py", "draw_dynamic_update"),
    "Fft": ("test_lax_numbers_fuzz.py", "draw_transform"),
    "Gather": ("test_lax_indexing_fuzz.py", "gather_case"),
    "Pad": ("test_lax_core_fuzz.py", "draw_pad"),
    "Reduce": ("test_lax_core_fuzz.py", "draw_reduce"),
    "ReduceWindow": ("test_lax_windows_fuzz.py", "reduction"),
    "Scatter": ("test_lax_indexing_fuzz.py", "scatter_case"),
    "SelectAndScatter": ("test_lax_windows_fuzz.py", "choice"),
    "Slice": ("test_lax_core_fuzz.py", "draw_slice"),
    "Sort": ("test_lax_core_fuzz.py", "draw_sort"),
    "TriangularSolve": ("test_lax_numbers_fuzz.py", "draw_solve"),
}
#: Compared in this file with something else than results of XLA.
OTHERWISE: Final = {
    "CustomCall": "test_random_custom_calls",
    "RngNormal": "test_random_draws_of_the_process",
    "RngUniform": "test_random_draws_of_the_process",
}
#: Collectives and host transfers have an issue of their own.
LATER: Final = {
    *("AfterAll", "AllGather", "AllReduce", "AllToAll", "CollectivePermute", "CrossReplicaSum", "Infeed"),
    *("Recv", "ReduceScatter", "ReplicaId", "Send"),
}


def page() -> list[str]:
    lines = (CHECKOUT / "docs" / "operations.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[0] for line in lines[1:]]


def test_every_operation_of_the_page_is_drawn_somewhere() -> None:
    places = [set(WITH_JAX), set(WITH_XLA), set(ELSEWHERE), set(OTHERWISE), LATER]
    assert set(page()) == set().union(*places)
    assert len(page()) == sum(map(len, places)) == 99


@pytest.mark.parametrize("operation", ELSEWHERE)
def test_other_files_draw_what_they_should(operation: str) -> None:
    name, function = ELSEWHERE[operation]
    text = (HERE / name).read_text(encoding="utf-8")
    assert re.search(rf"^def {function}\(", text, re.M)
    assert len(re.findall(rf"\b{function}\b", text)) > 1  # and it is used


def test_otherwise_means_a_test_of_this_file() -> None:
    assert all(name in globals() for name in OTHERWISE.values())


class _Jax:
    """jax.lax, and the total orders that it has as primitives only."""

    def __getattr__(self, name: str) -> Any:
        return jax_function(name)


def draws(operation: str, table: dict[str, Callable[[Random], Drawn]]) -> list[Drawn]:
    random = Random(f"{operation} {COUNT}")
    return [table[operation](random) for _ in range(COUNT)]


def compare(got: Any, wanted: Any, drawn: Drawn) -> None:
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        exact = np.asarray(theirs)
        assert_same(mine, exact, ulp=drawn.ulp, normwise=exact.dtype.kind == "c")


@pytest.mark.parametrize("operation", WITH_JAX)
def test_random_calls_agree_with_jax(operation: str) -> None:
    rows = draws(operation, WITH_JAX)
    for at in range(0, len(rows), 50):
        chunk = rows[at : at + 50]

        def every(operands: Any, chunk: list[Drawn] = chunk) -> list[Any]:
            return [row.call(_Jax(), own) for row, own in zip(chunk, operands, strict=True)]

        wanted = jax.jit(every)([row.operands for row in chunk])
        for row, theirs in zip(chunk, wanted, strict=True):
            compare(row.call(lax, row.operands), theirs, row)


@pytest.mark.parametrize("operation", WITH_XLA)
def test_random_calls_agree_with_xla(operation: str) -> None:
    rows = draws(operation, WITH_XLA)
    unknown = sum(compare_with_xla(rows[at : at + 50]) for at in range(0, len(rows), 50))
    assert unknown <= len(rows) // 20


def compare_with_xla(rows: list[Drawn]) -> int:
    """Compare all calls, which are one program; returns how many of them XLA on the CPU cannot run."""
    flat = [operand for row in rows for operand in row.operands]

    def every(*operands: Any) -> list[Any]:
        rest = iter(operands)
        results = [row.call(lax, tuple(next(rest) for _ in row.operands)) for row in rows]
        return jax.tree.leaves(results, is_leaf=lambda leaf: isinstance(leaf, xarr.Array))

    try:
        wanted = run_stablehlo(str(xarr.lower(every, *flat).stage("traced")), *flat)
    except jax.errors.JaxRuntimeError as error:
        # It refuses some dynamic dimensions of size 1 in the middle.
        if "UNIMPLEMENTED" not in str(error):
            raise
        return sum(compare_with_xla([row]) for row in rows) if len(rows) > 1 else 1
    for backend in ("numpy", "reference"):
        with xarr.use_backend(backend):
            for mine, theirs in zip(every(*map(xarr.asarray, flat)), wanted, strict=True):
                found = np.asarray(mine)
                assert_same(found, live_part(theirs, found.shape))
    return 0


def live_part(buffer: Any, shape: tuple[int, ...]) -> Any:
    """XLA lays the live elements of a buffer out as if it had the live sizes."""
    return buffer.reshape(-1)[: int(np.prod(shape, dtype=int))].reshape(shape)


# --- what must be refused ----------------------------------------------------------------------------


#: What xarr takes and jax.lax does not: see the last column of docs/operations.md.
WIDER: Final = {
    *("Add", "BitcastConvertType", "Mul", "Real", "Imag", "Sign", "Conditional(pred)"),
    *("Conditional(branch_index)", "While"),
}
HostCall = tuple[Call, tuple[Any, ...]]


def spoilt(random: Random, drawn: Drawn) -> tuple[HostCall, str]:
    """The call with an operand of another shape or element type, which may still be right."""
    place = random.randrange(len(drawn.operands))
    x = drawn.operands[place]
    changes: dict[str, Callable[[], Any]] = {
        "doubled": lambda: np.concatenate([x, x, x], -1) if x.ndim and x.shape[-1] > 1 else x,
        "deeper": lambda: np.stack([x, x]),
        "complex": lambda: np.ones(x.shape, np.complex64),
        "float": lambda: np.ones(x.shape, np.float32),
        "int": lambda: np.ones(x.shape, np.int16),
        "bool": lambda: np.ones(x.shape, np.bool_),
    }
    name = random.choice(list(changes))
    operands = (*drawn.operands[:place], changes[name](), *drawn.operands[place + 1 :])
    return (drawn.call, operands), name


def refuses(apply: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        apply()
    except errors:
        return True
    return False


@pytest.mark.parametrize("operation", [name for name in WITH_JAX if name not in WIDER | {"Iota"}])
def test_what_jax_refuses_is_refused(operation: str) -> None:
    random, refused = Random(f"spoilt {operation} {COUNT}"), 0
    for _ in range(2 * COUNT):
        (call, operands), change = spoilt(random, WITH_JAX[operation](random))
        shapes = {np.shape(x) for x in operands}
        # Of several operands a scalar or a size of 1 stretches, as XlaBuilder has it.
        if len(shapes) > 1 and any(not shape or 1 in shape for shape in shapes):
            continue

        def theirs(call: Call = call, operands: Any = operands) -> object:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
                return jax.eval_shape(lambda *given: call(_Jax(), given), *operands)

        def mine(call: Call = call, operands: Any = operands) -> object:
            return call(lax, operands)

        # Of other errors than its own JAX has many: AssertionError, IndexError, ValueError …
        if refuses(theirs, Exception):
            refused += 1
            shown = [(str(np.asarray(x).dtype), np.shape(x)) for x in operands]
            assert refuses(mine, ShapeError, DTypeError, InputError, ValueRangeError), (change, shown)


# --- what is compared with something else ------------------------------------------------------------


def test_random_custom_calls() -> None:
    """A registered function gets what it was given and returns what it declared."""
    random = Random(COUNT)
    lax.register_custom_call("tests.fuzz", lambda *arrays, shift: tuple(np.roll(x, shift) for x in arrays))
    try:
        for _ in range(COUNT):
            dtype = random.choice(("float32", "int64", "bool", "complex64"))
            arrays = [values(random, shape_of(random), dtype) for _ in range(random.randint(1, 3))]
            shapes, shift = [(x.shape, x.dtype) for x in arrays], random.randint(-3, 3)
            found = lax.custom_call("tests.fuzz", *arrays, result_types=shapes, attributes={"shift": shift})
            for mine, x in zip(found, arrays, strict=True):
                assert_same(mine, np.roll(x, shift))
    finally:
        lax.unregister_custom_call("tests.fuzz")


def test_random_draws_of_the_process() -> None:
    """Bounds and shapes are kept: the numbers are those of a generator of the process."""
    random = Random(COUNT)
    for _ in range(COUNT):
        shape, dtype = shape_of(random), random.choice(("float32", "float64"))
        low = dtype_of(dtype).type(random.uniform(-5, 5))
        high = dtype_of(dtype).type(float(low) + random.uniform(0.5, 5))
        uniform = np.asarray(lax.rng_uniform(low, high, shape))
        normal = np.asarray(lax.rng_normal(low, abs(high - low), shape))
        wanted = jax.eval_shape(lambda a, b, shape=shape: jax.lax.rng_uniform(a, b, shape), low, high)
        assert (uniform.dtype, uniform.shape) == (wanted.dtype, wanted.shape)
        assert (normal.dtype, normal.shape) == (wanted.dtype, wanted.shape)
        assert np.all((low <= uniform) & (uniform < high)) and np.all(np.isfinite(normal))
