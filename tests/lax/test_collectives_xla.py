"""Collectives of eight replicas beside XLA's of eight devices of the host: the same bits, but for what is listed."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.support.checkout import CHECKOUT
from xarr import lax
from xarr.communication.communicator import current_communicator
from xarr.communication.process_groups import Mesh
from xarr.distributed import simulate
from xarr.runtime.named_axes import bind_axes

Array = np.ndarray[Any, Any]
COUNT = 8
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "float64", "complex64", "complex128"),
)
#: What both libraries compute of `x` of the shape (16, 3) at each replica, `e` of (8, 0) and `s` of ().
MOVES = (
    "lax.all_gather(x, 'i')",
    "lax.all_gather(x, 'i', axis=1, tiled=True)",
    "lax.all_gather(s, 'i')",
    "lax.all_gather(e, 'i', axis=1)",
    "lax.all_gather(x, 'i', axis_index_groups=[[3, 1, 7, 5], [0, 2, 4, 6]])",
    "lax.all_to_all(x, 'i', 0, 0, tiled=True)",
    "lax.all_to_all(x, 'i', 0, 1, tiled=True)",
    "lax.all_to_all(e, 'i', 0, 0)",
    "lax.all_to_all(x[:2], 'i', 0, 1, axis_index_groups=[[0, 7], [6, 1], [2, 5], [4, 3]])",
    "lax.ppermute(x, 'i', [(0, 3), (3, 1), (1, 2), (5, 5)])",
    "lax.ppermute(s, 'i', [(j, (j + 1) % 8) for j in range(8)])",
    "lax.pshuffle(x, 'i', [7, 6, 5, 4, 0, 1, 2, 3])",
    "lax.pswapaxes(x[:8], 'i', 0)",
)
MOVED = ("bool", "bfloat16", "float32", "int64", "complex128")
SUMS = (
    "lax.psum(x, 'i')",
    "lax.psum(s, 'i')",
    "lax.psum(e, 'i')",
    "lax.psum(x, 'i', axis_index_groups=[[3, 1, 7, 5], [0, 2, 4, 6]])",
    "lax.psum(x, 'i', axis_index_groups=[[0], [1], [2], [3], [4], [5], [6], [7]])",
    "lax.psum_scatter(x, 'i', tiled=True)",
    "lax.psum_scatter(x[:8], 'i')",
)
EXTREMES = ("lax.pmax(x, 'i')", "lax.pmin(x, 'i')", "lax.pmax(s, 'i')", "lax.pmin(e, 'i')")
#: Where XLA's bits are others, and why, as docs/distributed.md has it.
LOST, NARROW, ZEROS = DIFFERENCES = (
    ("`pmax`, `pmin` of floats with NaN", "NaN stays NaN, as StableHLO's maximum has it; XLA may lose it"),
    (
        "`psum`, `psum_scatter` of bfloat16 and float8",
        "each sum of two is rounded; XLA adds in float32, and rounds once",
    ),
    ("`psum`, `psum_scatter` of -0.0 at all replicas", "-0.0; 0.0 in XLA, whose sums begin with 0"),
)

_JAX_PROGRAM = """
import os, sys
os.environ["JAX_PLATFORMS"], os.environ["XLA_FLAGS"] = "cpu", "--xla_force_host_platform_device_count=8"
import jax, numpy as np, ml_dtypes, pickle
jax.config.update("jax_enable_x64", True)
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P
mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
with open(sys.argv[1], "rb") as file:
    operands, texts = pickle.load(file)
results = {}
for key, (x, e, s) in operands.items():
    expressions = texts[key]
    def f(x, e, s):
        scope = {"lax": lax, "x": x[0], "e": e[0], "s": s[0]}
        return [eval(text, scope)[None] for text in expressions]
    g = jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    got = jax.jit(g)(x, e, s)
    results[key] = {text: np.asarray(each) for text, each in zip(expressions, got, strict=True)}
with open(sys.argv[2], "wb") as file:
    pickle.dump(results, file)
"""


def _kind(dtype: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


def _expressions(dtype: str, has_nan: bool, is_thorough: bool) -> tuple[str, ...]:
    """Calls for an element type: in a normal run moves of one type of each size alone, without NaN."""
    moves = MOVES if is_thorough or (dtype in MOVED and not has_nan) else ()
    if dtype == "bool":
        return moves
    return (*moves, *SUMS) if dtype.startswith("complex") else (*moves, *SUMS, *EXTREMES)


def operands(dtype: str, has_nan: bool) -> tuple[Array, Array, Array]:
    """Those of all replicas: random numbers whose sums are rounded or wrap, and infinities and NaN on demand."""
    random, kind = np.random.default_rng(7), _kind(dtype)
    if kind.kind == "b":
        x = random.integers(0, 2, (COUNT, 16, 3)) == 1
    elif kind.kind in "iu":
        info = np.iinfo(kind)
        x = random.integers(info.min, info.max, (COUNT, 16, 3), kind, endpoint=True)
    else:
        wide = random.standard_normal((COUNT, 16, 3)) * (1 + 1j if kind.kind == "c" else 1)
        if has_nan:
            wide[random.random(wide.shape) < 0.1] = np.nan
            wide[random.random(wide.shape) < 0.05] = -0.0
            wide[random.random(wide.shape) < 0.05] = 40
        x = wide.astype(kind)
    return x, np.zeros((COUNT, 8, 0), kind), x[:, 0, 0].copy()


def _keys() -> list[tuple[str, bool]]:
    return [
        (dtype, has_nan)
        for dtype in DTYPES
        for has_nan in (False, True)
        if not has_nan or "float" in dtype or "complex" in dtype
    ]


@pytest.fixture(scope="module")
def by_xla(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[tuple[str, bool], dict[str, Array]]:
    """The results of XLA by element type and expression, a row for each device."""
    folder: Path = tmp_path_factory.mktemp("xla")
    is_thorough = request.config.getoption("--thorough")
    texts = {key: _expressions(*key, is_thorough) for key in _keys()}
    (folder / "operands").write_bytes(pickle.dumps(({key: operands(*key) for key in _keys()}, texts)))
    files = [str(folder / name) for name in ("operands", "results")]
    subprocess.run([sys.executable, "-c", _JAX_PROGRAM, *files], check=True, timeout=600)
    results: dict[tuple[str, bool], dict[str, Array]] = pickle.loads((folder / "results").read_bytes())
    return results


def by_xarr(values: tuple[Array, Array, Array], texts: tuple[str, ...]) -> dict[str, Array]:
    """The results of xarr by expression, a row for each replica."""
    x, e, s = values

    def run() -> list[Array]:
        rank = current_communicator().rank
        scope = {"lax": lax, **{k: xarr.asarray(v[rank]) for k, v in {"x": x, "e": e, "s": s}.items()}}
        with bind_axes(Mesh((("i", COUNT),))):
            return [np.asarray(eval(text, scope)) for text in texts]

    rows = simulate(COUNT, run)
    return {text: np.stack([row[number] for row in rows]) for number, text in enumerate(texts)}


def _is_same(got: Array, want: Array) -> bool:
    """Whether bits are equal, those of NaN among themselves aside."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    if got.dtype.kind in "fcV":
        parts = [(got.real, want.real), (got.imag, want.imag)] if got.dtype.kind == "c" else [(got, want)]
        for one, other in parts:
            nan = np.isnan(one.astype(np.float64))
            if not np.array_equal(nan, np.isnan(other.astype(np.float64))):
                return False
            if np.where(nan, 0, one).tobytes() != np.where(nan, 0, other).tobytes():
                return False
        return True
    return got.tobytes() == want.tobytes()


def _difference(text: str, got: Array, want: Array, wide: Array) -> tuple[str, str] | None:
    """The row that says why XLA's bits are others, None if none does; `wide`: what float32 gives, of narrow floats."""
    nan, function = np.isnan(got.astype(np.complex128)), text.partition("(")[0]
    if function in ("lax.pmax", "lax.pmin"):
        is_lost = nan.any() and _is_same(np.where(nan, want, got), want)
        return LOST if is_lost else None
    zero = np.zeros((), got.dtype)
    if _is_same(np.where(got == 0, zero, got), np.where(want == 0, zero, want)):
        return ZEROS
    is_narrow = got.dtype.itemsize < 4 and _is_same(
        np.where(wide == 0, zero, wide.astype(got.dtype)), np.where(want == 0, zero, want)
    )
    return NARROW if is_narrow and text in SUMS else None


def test_the_bits_are_those_of_xla_but_for_listed_differences(
    by_xla: dict[tuple[str, bool], dict[str, Array]],
) -> None:
    rows, equal = set(), 0
    for (dtype, has_nan), wanted in by_xla.items():
        texts, values = tuple(wanted), operands(dtype, has_nan)
        got = by_xarr(values, texts)
        is_narrow = "float" in dtype and _kind(dtype).itemsize < 4
        x, e, s = (each.astype(np.float32) if is_narrow else each for each in values)
        wide = by_xarr((x, e, s), texts) if is_narrow else got
        for text, want in wanted.items():
            if _is_same(got[text], want):
                equal += 1
                continue
            row = _difference(text, got[text], want, wide[text])
            assert row is not None, (dtype, has_nan, text, got[text], want)
            rows.add(row)
    assert rows == set(DIFFERENCES)
    assert equal > 250


def test_a_difference_that_no_row_explains_is_noticed() -> None:
    x = np.float32([1, -0.0, np.nan])
    assert not _is_same(x, np.float32([1, 0.0, np.nan]))
    assert _is_same(x, np.float32([1, -0.0, -np.nan]))
    assert _difference(SUMS[0], x, np.float32([1, 0.0, np.nan]), x) == ZEROS
    assert _difference(EXTREMES[0], x, np.float32([1, -0.0, 7]), x) == LOST
    assert _difference(EXTREMES[0], x, np.float32([2, -0.0, 7]), x) is None
    assert _difference(SUMS[0], x, np.float32([1, 1, np.nan]), x) is None
    assert _difference(MOVES[0], x, np.float32([2, -0.0, np.nan]), x) is None


def test_the_page_lists_the_differences() -> None:
    page = (CHECKOUT / "docs" / "distributed.md").read_text(encoding="utf-8")
    for what, why in DIFFERENCES:
        assert f"| {what} | {why} |" in page
