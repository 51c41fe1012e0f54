"""Groups of operations on tiles: where tiles end, to the bit, and without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests import lax_values
from tests.compare import assert_same
from tests.support.graphs import constant, graph, node, tensor
from tests.support.operations import own_operations
from xarr import lax
from xarr.backend import get
from xarr.compiler.pipeline import compile_graph, lower
from xarr.dtypes import COMPLEX, FLOAT, TABLE, info
from xarr.errors import BackendError, XarrError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.ops.elementwise import Elementwise
from xarr_numpy import engine, tile_grid
from xarr_numpy.tile_grid import grid
from xarr_numpy.tiles import TiledKernel

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]
RNG = np.random.default_rng(5)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles of 64 elements."""
    engine._kernel.cache_clear()
    monkeypatch.setattr(tile_grid, "TILE", 64)
    monkeypatch.setattr(tile_grid, "COLUMNS", 4)
    monkeypatch.setattr(tile_grid, "ROWS", 8)
    yield
    engine._kernel.cache_clear()


def groups(program: Graph) -> list[TiledKernel]:
    """The kernels of a graph's groups."""
    with xarr.config(fusion="tiles"):
        fused = lower(program, get("numpy"), "fused")
        return [engine.kernel(n.op) for n in fused.nodes if isinstance(n.op, ops.Fusion)]


def run(program: Graph, fusion: str, *arrays: Array) -> Sequence[Any]:
    with xarr.config(fusion=fusion):
        return compile_graph(program, get("numpy"))(*arrays)


def assert_tiles_agree(program: Graph, *arrays: Array, ulp: float = 0, count: int = 1) -> TiledKernel:
    """Tiles give what the program without fusion gives, in `count` groups; the last group's kernel."""
    kernels = groups(program)
    assert len(kernels) == count, lower(program, get("numpy"), "fused").to_text()
    wanted = run(program, "off", *arrays)
    for found, exact in zip(run(program, "tiles", *arrays), wanted, strict=True):
        assert_same(found, exact, ulp=ulp)
    return kernels[-1]


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.normal(size=shape).astype(dtype)


def spread(x: Node, shape: Ints, *dims: int) -> Node:
    return node(ops.BroadcastInDim(shape, dims), x)


def total(x: Node, axes: Ints, op: type[Op] = ops.Add, first: Any = 0) -> Node:
    scalar = tensor(x.dtype)
    return node(
        ops.Reduce(axes, graph(lambda a, b: node(op(), a, b), scalar, scalar)), x, constant(first, x.dtype)
    )


# --- grids ---------------------------------------------------------------------------------------------------

DOMAINS = [
    *(((n,), r) for n in (1, 63, 64, 65, 95, 97, 1000) for r in ((), (0,))),
    *(((), ()), ((1, 1), ()), ((1, 1), (1,)), ((3, 1, 200), ()), ((200, 3), ()), ((2, 3, 5, 7, 11), ())),
    *(((7, 300), (1,)), ((300, 7), (0,)), ((300, 7), (1,)), ((5000, 3), (0,)), ((3, 5000), (1,))),
    *(((5, 33, 7), (1,)), ((5, 33, 7), (0, 2)), ((40, 50, 6), (0, 1, 2)), ((2000, 40, 2), (0, 2))),
]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("domain", "reduced"), DOMAINS, ids=repr)
def test_tiles_cover_the_domain_once(domain: Ints, reduced: Ints) -> None:
    tiles = grid(domain, reduced)
    seen = np.zeros(domain, np.int64)
    parts: dict[int, set[tuple[tuple[int, int], ...]]] = {}
    for number in range(tiles.total):
        part, ranges = tiles.tile(number)
        assert all(0 <= each.start < each.stop for each in ranges)
        assert prod(each.stop - each.start for each in ranges) <= prod(tiles.chunks)
        seen[tuple(ranges)] += 1
        parts.setdefault(part, set()).add(tuple((ranges[axis].start, ranges[axis].stop) for axis in reduced))
    assert (seen == 1).all()
    assert sorted(parts) == list(range(tiles.parts))
    assert all(len(each) == 1 for each in parts.values())
    assert tiles.partial or tiles.parts == 1
    most = tile_grid.STRETCH * tile_grid.TILE
    assert prod(tiles.chunks) <= most
    assert tiles.total == 1 or prod(domain) > tile_grid.TILE


def test_large_domains_have_large_tiles() -> None:
    assert grid((10**7,), ()).chunks[0] in range(2**15, 2**17)
    assert grid((4096, 1024), (1,)).chunks == (64, 1024)
    assert not grid((4096, 1024), (1,)).partial
    assert grid((10**7,), (0,)).partial
    assert grid((4096, 4096), (0,)).partial
    assert grid((10, 10**6), (0,)).chunks[0] == 10


# --- where tiles end -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 95, 96, 97, 127, 128, 129, 1000])
@pytest.mark.parametrize("before", [(), (3,), (2,)], ids=repr)
@pytest.mark.parametrize("after", [(), (3,), (5,)], ids=repr)
def test_sizes_around_that_of_a_tile(before: Ints, size: int, after: Ints) -> None:
    sizes = (*before, size, *after)
    type = tensor("f4", *sizes)
    program = graph(
        lambda x, y: node(ops.Multiply(), node(ops.Exponential(), node(ops.Add(), x, y)), x), type, type
    )
    assert_tiles_agree(program, normal(*sizes), normal(*sizes))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("domain", "reduced"), [row for row in DOMAINS if row[1]], ids=repr)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?", "f2", "bfloat16", "c8"])
def test_reductions_of_any_shape(domain: Ints, reduced: Ints, dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    kept = tuple(axis for axis in range(len(domain)) if axis not in reduced)

    def centred(x: Node) -> tuple[Node, ...]:
        double = node(ops.Add(), x, x)
        found = total(double, reduced)
        return found, node(ops.Multiply(), double, spread(found, domain, *kept))

    program = graph(centred, tensor(kind, *domain))
    x = (normal(*domain, dtype="f8") * (0.1 if dtype == "f2" else 5)).astype(kind)
    wanted = run(program, "off", x)
    found = run(program, "tiles", x)
    assert len(groups(program)) == 1
    for mine, exact in zip(found, wanted, strict=True):
        if kind in FLOAT | COMPLEX:
            wide = np.complex128 if kind in COMPLEX else np.float64
            terms = 2 * np.abs(x.astype(wide))
            bound = 20 * float(info(kind).eps) * float(terms.sum()) * max(1.0, float(terms.max()))
            np.testing.assert_allclose(mine.astype(wide), exact.astype(wide), rtol=0, atol=bound)
            assert mine.dtype == exact.dtype
        else:
            assert_same(mine, exact)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("op", [ops.Add, ops.Multiply, ops.Maximum, ops.Minimum, ops.And, ops.Or, ops.Xor])
@pytest.mark.parametrize(
    ("domain", "reduced"), [((5000,), (0,)), ((300, 7), (0,)), ((7, 300), (1,))], ids=repr
)
def test_every_combiner_with_an_initial_value(op: type[Op], domain: Ints, reduced: Ints) -> None:
    program = graph(lambda x: total(node(ops.Add(), x, x), reduced, op, 3), tensor("i4", *domain))
    assert_tiles_agree(program, (normal(*domain) * 9).astype("i4"))


@pytest.mark.usefixtures("small_tiles")
def test_several_results_and_shared_operands() -> None:
    def several(x: Node, v: Node) -> tuple[Node, ...]:
        rows = spread(v, (37, 53), 1)
        e = node(ops.Exponential(), node(ops.Add(), x, rows))
        product = node(ops.Multiply(), e, rows)
        return e, product, node(ops.Add(), node(ops.Multiply(), product, e), x)

    program = graph(several, tensor("f4", 37, 53), tensor("f4", 53))
    kernel = assert_tiles_agree(program, normal(37, 53), normal(53))
    assert len(kernel.fusion.computation.results) == 3


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("axis", [0, 1])
def test_results_that_repeat_what_they_are_made_of(axis: int) -> None:
    """A result of full shape whose elements are the same along a dimension."""

    def repeated(v: Node, x: Node) -> tuple[Node, ...]:
        thin = node(ops.Negate(), spread(v, (70, 60), axis))
        return thin, node(ops.Add(), thin, x), total(thin, (axis,)), total(thin, (1 - axis,))

    program = graph(repeated, tensor("f8", (70, 60)[axis]), tensor("f8", 70, 60))
    arrays = normal((70, 60)[axis], dtype="f8"), normal(70, 60, dtype="f8")
    wanted = run(program, "off", *arrays)
    for found, exact in zip(run(program, "tiles", *arrays), wanted, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("small_tiles")
def test_what_a_step_keeps_for_the_next_ones() -> None:
    """exp(x) is a result, is summed, and is used again after that."""

    def softmax(x: Node, keep: bool) -> Any:
        e = node(ops.Exponential(), node(ops.Add(), x, x))
        sum = spread(total(e, (0, 1)), (60, 50))
        found = node(ops.Divide(), e, sum)
        return (e, found) if keep else found

    for keep in (True, False):
        program = graph(lambda x, keep=keep: softmax(x, keep), tensor("f8", 60, 50))
        kernel = assert_tiles_agree(program, normal(60, 50, dtype="f8"), ulp=8)
        assert kernel.grid.partial and len(kernel.steps) == 2
        assert str(kernel).count("np.exp") == 1
        assert ("kept" in str(kernel)) != keep


@pytest.mark.usefixtures("small_tiles")
def test_rows_of_three() -> None:
    def squares(a: Node, b: Node) -> Node:
        shape = (40, 50, 3)
        d = node(ops.Subtract(), spread(a, shape, 0, 2), spread(b, shape, 1, 2))
        return total(node(ops.Multiply(), d, d), (2,))

    program = graph(squares, tensor("f4", 40, 3), tensor("f4", 50, 3))
    kernel = assert_tiles_agree(program, normal(40, 3), normal(50, 3), ulp=2)
    assert kernel.grid.first == 2


@pytest.mark.parametrize("layout", ["F", "every second", "backwards", "no stride", "read-only"])
def test_operands_of_any_layout(layout: str) -> None:
    x = normal(500, 700)
    arrays = {
        "F": np.asfortranarray(x),
        "every second": normal(1000, 1400)[::2, ::2],
        "backwards": x[::-1, ::-1],
        "no stride": np.broadcast_to(x[:1], x.shape),
    }
    x = arrays.get(layout, x)
    x.flags.writeable = False
    type = tensor("f4", 500, 700)
    program = graph(lambda x: node(ops.Tanh(), node(ops.Multiply(), x, x)), type)
    before = x.copy()
    assert_tiles_agree(program, x)
    assert (x == before).all()


def test_tiles_in_several_threads() -> None:
    size = 3 * 10**6 + 1
    program = graph(lambda x: node(ops.Log(), node(ops.Add(), x, x)), tensor("f8", size))
    x = normal(size, dtype="f8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of the logarithms of negative numbers, from any thread
        kernel = assert_tiles_agree(program, x)
        found = kernel.call(x)
    assert kernel.grid.total > 40
    assert np.isnan(found).any()


def test_sums_have_the_same_bits_each_time() -> None:
    program = graph(lambda x: total(node(ops.Multiply(), x, x), (0,)), tensor("f4", 10**6))
    (kernel,) = groups(program)
    x = normal(10**6)
    first = kernel.call(x)
    assert all(kernel.call(x).tobytes() == first.tobytes() for _ in range(20))
    np.testing.assert_allclose(first, np.square(x, dtype=np.float64).sum(), rtol=2e-7)


# --- to the bit ----------------------------------------------------------------------------------------------


def _accepted(op: Op, *types: Any) -> bool:
    try:
        op.infer(*types)
    except XarrError:
        return False
    return True


def _elementwise() -> Iterator[tuple[Op, tuple[Any, ...]]]:
    """Every element-wise operation with every combination of element types that it takes."""
    for cls in own_operations(Elementwise):
        if get("numpy").supports(cls) and cls is not ops.Compare:
            for row in TABLE:
                types = (tensor(row.dtype, 2),) * cls.arity
                if _accepted(cls(), *types):
                    yield cls(), types
    for row in TABLE:
        own = tensor(row.dtype, 2)
        several = [ops.Compare(direction) for direction in ("EQ", "LT", "GE")]
        several += [ops.Compare("LT", True)] if row.dtype in FLOAT else []
        for op, types in [
            *((compare, (own, own)) for compare in several),
            (ops.Select(), (tensor("?", 2), own, own)),
            (ops.Clamp(), (own, own, own)),
            (ops.ReducePrecision(4, 3), (own,)),
            *((ops.Convert(other.dtype), (own,)) for other in TABLE if other is not row),
            *((ops.BitcastConvert(other.dtype), (own,)) for other in TABLE if other is not row),
        ]:
            if _accepted(op, *types) and op.infer(*types).shape == (2,):  # type: ignore[union-attr]
                yield op, types


CASES = {
    f"{op.name}-{op}-{'-'.join(str(t.dtype) for t in types)}": (op, types) for op, types in _elementwise()
}


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("group", range(20))
def test_every_element_wise_operation_to_the_bit(group: int) -> None:
    for name, (op, types) in list(CASES.items())[group::20]:
        arrays = _operands(types)
        own = [tensor(array.dtype, *array.shape) for array in arrays]
        program = graph(lambda *operands, op=op: node(op, *operands), *own)
        wanted = run(program, "off", *arrays)[0]
        assert groups(program), name
        assert_same(run(program, "tiles", *arrays)[0], wanted)


def _operands(types: tuple[Any, ...]) -> list[Array]:
    if len(types) == 1:
        return [lax_values.values(types[0].dtype)]
    first, second = lax_values.pairs(types[-1].dtype)
    if len(types) == 2:
        return [first, second]
    if types[0].dtype == np.bool_ and types[1].dtype != np.bool_:
        return [RNG.integers(0, 2, first.shape).astype(bool), first, second]
    low, high = (RNG.permutation(first) for _ in range(2))
    return [low, second, high]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("op", [ops.Maximum, ops.Minimum])
@pytest.mark.parametrize("bound", [0.0, -0.0, 1.0, -1.0, np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bfloat16"])
def test_extrema_with_constants_keep_the_signs_of_zeros(op: type[Op], bound: float, dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    x = np.concatenate([lax_values.values(kind), np.array([0.0, -0.0] * 70, kind)])
    type = tensor(kind, *x.shape)

    def both(x: Node) -> tuple[Node, Node, Node]:
        limit = spread(constant(bound, kind), x.shape)
        one = spread(constant(1, kind), x.shape)
        return node(op(), x, limit), node(op(), limit, x), node(ops.Clamp(), limit, x, one)

    program = graph(both, type)
    wanted = run(program, "off", x)
    for found, exact in zip(run(program, "tiles", x), wanted, strict=True):
        assert_same(found, exact)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("exponent", [0.5, 2.0, -1.0, 0.3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_with_one_exponent_and_with_one_for_each_row(exponent: float, dtype: str) -> None:
    def powers(x: Node, y: Node) -> tuple[Node, Node]:
        scalar = spread(constant(exponent, dtype), x.shape)
        return node(ops.Power(), x, scalar), node(ops.Power(), x, spread(y, x.shape, 0))

    x = np.concatenate([normal(1000, dtype=dtype), np.array([0.0, -0.0, np.inf, -np.inf] * 50, dtype)])
    x = x.reshape(8, 150)
    program = graph(powers, tensor(dtype, 8, 150), tensor(dtype, 8))
    rows = np.array([0.5, 2, -1, 0.3, 0.5, 0.5, 1, 3], dtype)
    wanted = run(program, "off", x, rows)
    for found, exact in zip(run(program, "tiles", x, rows), wanted, strict=True):
        assert_same(found, exact)


FLOATING: tuple[type[Elementwise], ...] = (
    ops.Add,
    ops.Subtract,
    ops.Multiply,
    ops.Maximum,
    ops.Tanh,
    ops.Negate,
    ops.Logistic,
    ops.Abs,
)


@st.composite
def chains(draw: st.DrawFn) -> Graph:
    """Up to 30 operations on (9, 23), some results broadcast from rows and columns, no reduction."""
    shape = (9, 23)

    def build(x: Node, row: Node, column: Node) -> tuple[Node, ...]:
        pool = [x, spread(row, shape, 1), spread(column, shape, 0), spread(constant(0.5), shape)]
        for _ in range(draw(st.integers(1, 30))):
            a, b = (pool[draw(st.integers(0, len(pool) - 1))] for _ in range(2))
            op = draw(st.sampled_from(FLOATING))
            if draw(st.booleans()):
                a = node(ops.Select(), node(ops.Compare("LT"), a, b), b, x)
            pool.append(node(op(), *(a, b)[: op.arity]))
        chosen = draw(st.lists(st.integers(4, len(pool) - 1), min_size=1, max_size=4, unique=True))
        return tuple(pool[k] for k in chosen)

    return graph(build, tensor("f4", *shape), tensor("f4", 23), tensor("f4", 9))


@given(chains())
@settings(max_examples=60, deadline=None)
def test_any_element_wise_graph_to_the_bit(program: Graph) -> None:
    tile, tile_grid.TILE = tile_grid.TILE, 48  # type: ignore[misc]
    engine._kernel.cache_clear()
    try:
        arrays = normal(9, 23), normal(23), normal(9)
        wanted = run(program, "off", *arrays)
        for found, exact in zip(run(program, "tiles", *arrays), wanted, strict=True):
            assert_same(found, exact)
    finally:
        tile_grid.TILE = tile  # type: ignore[misc]
        engine._kernel.cache_clear()


# --- which engine --------------------------------------------------------------------------------------------


def test_the_text_of_a_kernel() -> None:
    with xarr.config(fusion="tiles"):
        lowered = xarr.lower(lambda x: lax.exp(lax.mul(x, x)), "f32[1000,1000]")
        text = str(lowered.stage("program"))
    assert text == (
        "def program(a0):\n"
        "    v0 = k0(a0)\n"
        "    del a0\n"
        "    return (sealed(v0), )\n"
        "\n"
        "k0:\n"
        "    15 tiles of (67, 1000) over (1000, 1000)\n"
        "    # tile0: b0 = float32[s0, s1] in memory 0\n"
        "    def tile0(part, s0, s1, in0, out0, b0):\n"
        "        x0 = in0[s0]\n"
        "        y0 = out0[s0]\n"
        "        np.multiply(x0, x0, out=b0)\n"
        "        np.exp(b0, out=y0)\n"
    )


def test_auto_leaves_small_arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "available", lambda: False)
    small, large = (
        graph(lambda x: node(ops.Exponential(), node(ops.Add(), x, x)), tensor("f4", n)) for n in (100, 10**7)
    )
    with xarr.config(fusion="auto"):
        assert engine.chosen() == "tiles"
        for hot in (False, True):
            fused = [lower(each, get("numpy"), "fused", hot) for each in (small, large)]
            found = [any(isinstance(n.op, ops.Fusion) for n in each.nodes) for each in fused]
            assert found == [False, True]


def test_the_compiler_is_not_replaced_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "available", lambda: False)
    with xarr.config(fusion="compiled"):
        with pytest.raises(BackendError, match=r"wants llvmlite.*pip install 'xarr\[jit\]'"):
            engine.chosen()
        assert "pip install 'xarr[jit]'" in engine.description()


BLOCKED = """\
import sys
sys.modules["llvmlite"] = None
import numpy as np
import xarr
from xarr.__main__ import main

x = xarr.asarray(np.linspace(-3, 3, 10**6))
lowered = xarr.lower(lambda x: xarr.exp(x) * x + 1, x)
print(lowered.stage("program"))
y = xarr.exp(x) * x + 1
wanted = np.exp(np.asarray(x)) * np.asarray(x) + 1
assert np.array_equal(np.asarray(y), wanted)
assert "xarr_numpy.tiles" in sys.modules and "xarr_numpy.compiled.kernel" not in sys.modules
main(["doctor"])
"""


def outside(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(each for each in sys.path if each)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_without_the_compiler_there_are_tiles() -> None:
    done = outside(BLOCKED, XARR_FUSION="", XARR_BROADCASTING="numpy")
    assert done.returncode == 0, done.stderr
    assert " tiles of (" in done.stdout and "np.exp(" in done.stdout
    assert "tiles: llvmlite is not installed; for compiled loops pip install 'xarr[jit]'" in done.stdout


def test_without_the_compiler_it_cannot_be_asked_for() -> None:
    code = BLOCKED.replace("x = xarr", "xarr.config.fusion = 'compiled'\nx = xarr", 1)
    done = outside(code, XARR_FUSION="", XARR_BROADCASTING="numpy")
    assert done.returncode != 0
    assert "BackendError: config.fusion is 'compiled', which wants llvmlite" in done.stderr
    assert "pip install 'xarr[jit]'" in done.stderr


@pytest.mark.parametrize("fusion", ["tiles", "off", "auto"])
def test_doctor_names_the_engine(fusion: str) -> None:
    done = outside("from xarr.__main__ import main; main(['doctor'])", XARR_FUSION=fusion)
    wanted = {
        "tiles": "tiles, as config.fusion = 'tiles' says",
        "off": "none, as config.fusion = 'off' says: one NumPy call for each operation",
        "auto": "compiled loops (llvmlite " if engine.available() else "tiles: llvmlite is not installed",
    }
    assert wanted[fusion] in done.stdout
