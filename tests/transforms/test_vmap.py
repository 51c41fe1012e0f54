"""`vmap`: each operation for all slices at once, beside a loop over the slices; collectives beside jax.vmap."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.distributed import PartitionSpec as P, make_mesh, simulate
from xarr.errors import XarrError

_RANDOM = np.random.default_rng(0)
X = _RANDOM.normal(size=(4, 3, 5))
Y = _RANDOM.normal(size=(4, 5, 2))
V = _RANDOM.normal(size=(4, 5))
I = _RANDOM.integers(0, 3, 4)  # noqa: E741
S = _RANDOM.normal(size=4)
M = X @ X.transpose(0, 2, 1) + 3 * np.eye(3)
K = _RANDOM.integers(0, 5, (4, 6))
KERNELS = _RANDOM.normal(size=(4, 2, 3, 2))

#: Functions of slices, and arrays of four slices each.
PROGRAMS: list[tuple[Any, Any]] = [
    (lambda x: xarr.sin(x) * 2 + x.sum(), (X,)),
    (
        lambda x, y: x @ y,
        (
            X,
            Y,
        ),
    ),
    (
        lambda x, v: x @ v,
        (
            X,
            V,
        ),
    ),
    (
        lambda v, w: v @ w,
        (
            V,
            V,
        ),
    ),
    (lambda v: xarr.outer(v, v), (V,)),
    (lambda x: x.T[::-1, 1:], (X,)),
    (lambda x: x.reshape(5, 3).cumsum(0), (X,)),
    (lambda x: xarr.sort(x, axis=0), (X,)),
    (lambda x: xarr.argsort(x), (X,)),
    (lambda x: x.max(1) - x.min(), (X,)),
    (
        lambda x, i: x[i],
        (
            X,
            I,
        ),
    ),
    (
        lambda x, k: x[:, k],
        (
            X,
            K,
        ),
    ),
    (
        lambda x, i: xarr.asarray(x).at[i].set(0.0),
        (
            X,
            I,
        ),
    ),
    (
        lambda x, k: xarr.asarray(x).at[:, k].add(1.0),
        (
            X,
            K,
        ),
    ),
    (
        lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2)),
        (
            X,
            I,
        ),
    ),
    (
        lambda x, i: lax.dynamic_update_slice(x, x[:1] * 0, (i, 0)),
        (
            X,
            I,
        ),
    ),
    (lambda m: xarr.linalg.inv(m), (M,)),
    (lambda m: xarr.linalg.cholesky(m), (M,)),
    (lambda m: xarr.linalg.eigh(m)[0], (M,)),
    (lambda m: xarr.linalg.svd(m)[1], (M,)),
    (
        lambda m, x: xarr.linalg.solve(m, x),
        (
            M,
            X,
        ),
    ),
    (lambda m: xarr.linalg.det(m), (M,)),
    (lambda m: xarr.linalg.qr(m)[1], (M,)),
    (lambda x: xarr.fft.fft(x).real, (X,)),
    (lambda x: xarr.fft.irfft(x, axis=0), (X,)),
    (lambda x: xarr.where(x > 0, x, -1.0), (X,)),
    (lambda x: xarr.concatenate([x, x * 2], 1), (X,)),
    (lambda x: xarr.pad(x, ((1, 2), (0, 1))), (X,)),
    (lambda x: xarr.median(x, axis=1), (X,)),
    (lambda x: xarr.std(x), (X,)),
    (lambda x: xarr.clip(x, -0.5, 0.5), (X,)),
    (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0] * 0, x)[1], (X,)),
    (lambda s: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2 + 1, xarr.abs(s)), (S,)),
    (
        lambda x, i: lax.fori_loop(0, i, lambda k, c: c * 2 + k, x),
        (
            X,
            I,
        ),
    ),
    (lambda x: lax.fori_loop(0, 3, lambda k, c: c @ xarr.ones((5, 5)), x), (X,)),
    (
        lambda s, x: lax.cond(s > 0, lambda a: a.sum(0), lambda a: a[0] * 2, x),
        (
            S,
            X,
        ),
    ),
    (
        lambda i, x: lax.switch(i, [lambda a: a, lambda a: -a, lambda a: a * 3], x),
        (
            I,
            X,
        ),
    ),
    (lambda x: lax.cond(True, lambda a: a * 2, lambda a: a, x), (X,)),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID"), (X,)),
    (lambda x: lax.conv_general_dilated(x[None], xarr.ones((2, 3, 2)), (1,), "SAME"), (X,)),
    (
        lambda x, k: lax.conv_general_dilated(x[None], k, (1,), "SAME"),
        (
            X,
            KERNELS,
        ),
    ),
    (lambda x: xarr.pure_callback(lambda a: a * 2, x, x), (X,)),
    (lambda s: xarr.random.uniform(xarr.random.key(0), (3,)) + s, (S,)),
    (lambda x: xarr.einsum("ij,kj->ik", x, x), (X,)),
    (lambda x: xarr.unravel_index(xarr.argmax(x), (3, 5))[0], (X,)),
    (lambda x: lax.reduce(x, 1.0, lambda a, b: a * b, (0,)), (X,)),
    (lambda x: lax.associative_scan(lax.add, x, axis=1), (X,)),
    (lambda x: xarr.interp(x, xarr.arange(5.0), xarr.arange(5.0) ** 2), (X,)),
    (lambda x: lax.top_k(x, 2)[0], (X,)),
    (lambda x: lax.map(lambda r: r.sum(), x), (X,)),
    (lambda x: xarr.jit(lambda a: a * 2 + 1)(x), (X,)),
    (lambda s: s, (S,)),
    (lambda s: 3.0, (S,)),
    (lambda x: lax.bitcast_convert_type(x, xarr.int32), (X,)),
    (lambda x: xarr.searchsorted(xarr.arange(3.0), x), (X,)),
    (lambda k: xarr.bincount(k, length=5), (K,)),
    (lambda x: lax.cumlogsumexp(x, 1), (X,)),
    (lambda x: xarr.roll(x, 1, 0), (X,)),
    (lambda x: xarr.nanmean(x), (X,)),
    (lambda x: xarr.linalg.norm(x), (X,)),
    (lambda x: xarr.kron(x, x), (X,)),
    (lambda m: xarr.linalg.slogdet(m)[1], (M,)),
    (lambda x: xarr.tril(x), (X,)),
    (lambda x: lax.clamp(0.0, x, 1.0), (X,)),
    (
        lambda x, k: lax.rng_bit_generator(xarr.arange(4, dtype="uint32"), (2,))[1] + k[:2].astype("uint32"),
        (X, K),
    ),
    (lambda x: x[x.shape[0] - 1], (X,)),
    (lambda x: xarr.linalg.matrix_power(x @ x.T, 3), (X,)),
    (lambda k: xarr.random.normal(xarr.random.key(k), (2,)), (I,)),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("f", "arrays"), PROGRAMS)
@pytest.mark.parametrize("how", ["alone", "jit", "twice"])
def test_all_slices_at_once(f: Any, arrays: tuple[Any, ...], how: str) -> None:
    wanted = np.stack([np.asarray(f(*[each[k] for each in arrays])) for k in range(4)])
    if how == "twice":
        result = xarr.vmap(xarr.vmap(f))(*[np.stack([each, each]) for each in arrays])
        wanted = np.stack([wanted, wanted])
    else:
        result = (xarr.jit(xarr.vmap(f)) if how == "jit" else xarr.vmap(f))(*arrays)
    host = np.asarray(result)
    assert (host.shape, host.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(host, wanted, rtol=1e-10, atol=1e-10)


#: Collectives of float32[4,3] along an axis i of four slices.
COLLECTIVES = [
    "lax.psum(a, 'i')", "lax.pmean(a, 'i')", "lax.pmax(a, 'i')", "lax.pmin(-a, 'i')", "lax.all_gather(a, 'i')",
    "lax.all_gather(a, 'i', axis=1)", "lax.all_gather(a, 'i', axis=1, tiled=True)", "lax.axis_index('i') + a",
    "lax.ppermute(a, 'i', [(0, 1), (1, 3), (3, 0), (2, 2)])", "lax.all_to_all(a, 'i', 0, 1)", "lax.psum(1, 'i') * a",
    "lax.all_to_all(a, 'i', 0, 1, tiled=True)", "lax.psum_scatter(a, 'i')", "lax.psum_scatter(a, 'i', tiled=True)",
    "lax.pshuffle(a, 'i', [1, 2, 3, 0])", "lax.pswapaxes(a, 'i', 0)", "lax.axis_size('i') * a",
    "lax.psum({'a': a, 'b': a[0]}, 'i')['a']", "lax.fori_loop(0, 2, lambda _, c: lax.psum(c, 'i') / 4, a)",
]  # fmt: skip


SLICES = np.arange(48, dtype=np.float32).reshape(4, 4, 3)
PAIR = np.stack([SLICES, SLICES + 1], 1)


def map_at_each_level(library: Any, f: Callable[[Any], Any]) -> list[Any]:
    """The results of a function of slices that are mapped alone, below others and above others."""
    return [
        library.vmap(f, axis_name="i")(SLICES),
        library.vmap(library.vmap(f), axis_name="i")(PAIR),
        library.vmap(library.vmap(f, axis_name="i"), in_axes=1)(PAIR),
    ]


def make_function(library: Any, text: str) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = eval(f"lambda a: {text}", {"lax": library.lax})
    return function


@pytest.fixture(scope="module")
def by_jax() -> dict[str, list[Any]]:
    """All that JAX gives, from one compilation."""
    every = jax.jit(
        lambda: {text: map_at_each_level(jax, make_function(jax, text)) for text in COLLECTIVES}
    )()
    results: dict[str, list[Any]] = jax.tree.map(np.asarray, every)
    return results


@pytest.mark.parametrize("text", COLLECTIVES)
def test_collectives_are_those_of_jax(text: str, by_jax: dict[str, list[Any]]) -> None:
    function = make_function(xarr, text)
    for result, wanted in zip(map_at_each_level(xarr, function), by_jax[text], strict=True):
        assert result.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-6)
    jitted = xarr.jit(xarr.vmap(function, axis_name="i"))(SLICES)
    np.testing.assert_allclose(np.asarray(jitted), by_jax[text][0], rtol=1e-6)


def test_what_only_some_slices_send() -> None:
    shifted = xarr.vmap(lambda a: lax.ppermute(a, "i", [(0, 1), (2, 3)]), axis_name="i")(
        np.array([1, 2, 3, 4])
    )
    np.testing.assert_array_equal(shifted, [0, 1, 0, 3])
    first = xarr.vmap(lambda a: lax.pbroadcast(a, "i", 2), axis_name="i")(np.array([1, 2, 3, 4]))
    np.testing.assert_array_equal(first, [3, 3, 3, 3])


def test_two_axes_with_names() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for axes in (("i", "j"), ("j", "i")):
        ours = xarr.vmap(
            xarr.vmap(lambda a, axes=axes: lax.psum(a, axes) + lax.axis_index(axes), axis_name="j"),
            axis_name="i",
        )
        theirs = jax.vmap(
            jax.vmap(lambda a, axes=axes: jax.lax.psum(a, axes) + jax.lax.axis_index(axes), axis_name="j"),
            axis_name="i",
        )
        np.testing.assert_array_equal(ours(x), np.asarray(theirs(x.astype(np.float32))))


def test_nan_stays_in_extremes_and_empty_axes_are_sums_of_nothing() -> None:
    values = np.array([1.0, np.nan, 3.0])
    assert np.isnan(np.asarray(xarr.vmap(lambda a: lax.pmax(a, "i"), axis_name="i")(values))).all()
    assert xarr.vmap(lambda a: lax.psum(a, "i"), axis_name="i")(np.zeros((0, 2))).shape == (0, 2)
    assert xarr.vmap(lambda a: a + 1)(np.zeros((0, 2), np.int8)).dtype == np.int8


# --- arguments and results ------------------------------------------------------------------------------------


def test_axes_of_arguments_and_results() -> None:
    f = xarr.vmap(
        lambda x, scale: (x * scale, {"sum": x.sum()}, scale), in_axes=(1, None), out_axes=(1, 0, None)
    )
    first, rest, scale = f(X[0], 10.0)
    np.testing.assert_allclose(first, X[0] * 10)
    np.testing.assert_allclose(rest["sum"], X[0].sum(0))
    assert float(scale) == 10
    np.testing.assert_allclose(xarr.vmap(lambda x: x.T, in_axes=-1, out_axes=-1)(X), X.transpose(1, 0, 2))


def test_numbers_give_way_and_keywords_are_mapped() -> None:
    f = xarr.vmap(lambda x, factor, *, shift: x * factor + shift, in_axes=(0, None))
    result = f(np.float32([1, 2]), 3.0, shift=np.float32([10, 20]))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [13, 26])
    np.testing.assert_array_equal(
        xarr.vmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=3)(), [0, 1, 2]
    )


def test_as_decorator_and_with_arrays_from_outside() -> None:
    table = xarr.arange(5.0)

    @functools.partial(xarr.vmap, in_axes=({"a": 0, "b": None},))
    def f(tree: dict[str, Any]) -> xarr.Array:
        return table[tree["a"]] + tree["b"]

    np.testing.assert_array_equal(f({"a": I, "b": np.ones(2)}), np.asarray(table)[I][:, None] + np.ones(2))
    np.testing.assert_array_equal(xarr.vmap(in_axes=1)(lambda x: x[0])(X[0]), X[0][0])
    assert f.__name__ == "f"


def test_side_effects_happen_slice_by_slice(capsys: pytest.CaptureFixture[str]) -> None:
    def show(x: xarr.Array) -> xarr.Array:
        xarr.debug.print("slice {}", x)
        return x * 2

    for f in (xarr.vmap(show), xarr.jit(xarr.vmap(show))):
        np.testing.assert_array_equal(f(np.arange(3)), [0, 2, 4])
        assert capsys.readouterr().out == "slice 0\nslice 1\nslice 2\n"


def test_an_index_out_of_bounds_in_one_slice() -> None:
    with pytest.raises(IndexError):
        np.asarray(xarr.vmap(lambda x, i: x[i])(X, np.array([0, 1, 3, 0])))


def test_an_axis_hides_others_of_its_name() -> None:
    def inner(row: xarr.Array) -> xarr.Array:
        return row - lax.psum(row, "i")

    def outer(rows: xarr.Array) -> xarr.Array:
        return xarr.vmap(inner, axis_name="i")(rows) + lax.psum(rows, "i")

    x = np.arange(24.0).reshape(2, 3, 4)
    result = xarr.vmap(outer, axis_name="i")(x)
    np.testing.assert_array_equal(result, x - x.sum(1, keepdims=True) + x.sum(0))
    f = xarr.shard_map(
        lambda part: lax.psum(part, "i"), mesh=make_mesh(2, "i"), in_specs=P("i"), out_specs=P()
    )
    mapped = xarr.vmap(lambda row: f(row) * lax.psum(1, "i"), axis_name="i")(x[0])
    np.testing.assert_array_equal(mapped, (x[0, :, :2] + x[0, :, 2:]) * 3)


# --- with replicas --------------------------------------------------------------------------------------------


def _run_with_replicas() -> list[Any]:
    mesh, x = make_mesh((2, 2), ("x", "y")), np.arange(32.0).reshape(4, 8)

    def differ(part: xarr.Array) -> xarr.Array:
        return part - lax.pmean(part, "x")

    parts = xarr.shard_map(differ, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    total = xarr.vmap(lambda a: lax.psum(a, ("i", "x")), axis_name="i")
    both = xarr.vmap(lambda a: a + lax.axis_index(("x", "i")), axis_name="i")
    stacked = xarr.vmap(lambda a: lax.all_gather(a, ("i", "x")).sum(0), axis_name="i")
    results = [
        xarr.jit(xarr.vmap(parts))(x),
        xarr.vmap(parts)(x),
        xarr.vmap(parts, spmd_axis_name="y")(x),
        xarr.vmap(parts, in_axes=1, out_axes=1)(x.T.copy()),
        xarr.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())(x),
        xarr.shard_map(both, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x),
        xarr.shard_map(stacked, mesh=mesh, in_specs=P("x"), out_specs=P())(x),
    ]
    return [np.asarray(each) for each in results]


def test_over_and_in_functions_under_shard_map() -> None:
    x = np.arange(32.0).reshape(4, 8)
    halves = (x[:, :4] - x[:, 4:]) / 2
    wanted = [np.concatenate([halves, -halves], 1)] * 3
    wanted += [wanted[0].T, np.tile(x.sum(0), (2, 1)), x + np.arange(4)[:, None], np.tile(x.sum(0), (2, 1))]
    for results in (_run_with_replicas(), *simulate(4, _run_with_replicas)):
        for result, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result, want)


# --- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xarr.vmap(3), "vmap: wanted a function, got 3"),
        (lambda: xarr.vmap(lambda x: x)(1.0), "vmap: args[0]: wanted an array with axis 0, which is mapped"),
        (lambda: xarr.vmap(lambda x, y: x)(np.ones(2), np.ones(3)), "got 2, 3"),
        (lambda: xarr.vmap(lambda x: x, axis_size=2)(np.ones(3)), "got 2, 3; axis_size is 2"),
        (lambda: xarr.vmap(lambda: 1)(), "got none"),
        (lambda: xarr.vmap(lambda x: x, out_axes=None)(np.ones(2)), "the result differs from slice to slice"),
        (
            lambda: xarr.vmap(lambda x: x, out_axes=1)(np.ones(2)),
            "wanted an axis in out_axes from -1 to 0, got 1",
        ),
        (lambda: xarr.vmap(lambda x: x, in_axes="a")(np.ones(2)), "wanted ints or None in in_axes, got 'a'"),
        (lambda: xarr.vmap(lambda x: x, in_axes=(0, 0))(np.ones(2)), "in_axes is no prefix of the arguments"),
        (
            lambda: xarr.vmap(lambda x: (x, x), out_axes=(0,))(np.ones(2)),
            "out_axes is no prefix of the results",
        ),
        (lambda: xarr.vmap(lambda x: float(x))(np.ones(2)), "the value of a traced array was asked for"),
        (lambda: _map_along("j", lambda x: lax.psum(x, "i")), "wanted an axis with a name ('j'), got 'i'"),
        (
            lambda: _map_along("i", lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]])),
            "no axis_index_groups",
        ),
        (lambda: _map_along("i", lambda x: lax.ppermute(x, "i", [(0, 2)])), "indices from 0 to 1"),
        (
            lambda: _map_along("i", lambda x: lax.ppermute(x, "i", [(0, 1), (0, 0)])),
            "each source and each target",
        ),
        (lambda: _map_along("i", lambda x: lax.pbroadcast(x, "i", 2)), "0 to 1, got 2"),
        (lambda: _map_along("i", lambda x: lax.psum_scatter(x, "i")), "tiled=True keeps the dimension"),
        (lambda: _map_along("i", lambda x: lax.psum_scatter(x, "i", tiled=True)), "that 2 divides, got (3,)"),
        (lambda: xarr.vmap(lambda x: x, spmd_axis_name=3)(np.ones(2)), "wanted names of axes of a mesh"),
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(XarrError, match=re.escape(message)):
        call()


def _map_along(name: str, f: Any) -> Any:
    return xarr.vmap(f, axis_name=name)(np.ones((2, 3)))


def test_effects_where_slices_meet_in_branches_of_their_own_are_refused() -> None:
    def function(value: xarr.Array) -> Any:
        def meet(own: xarr.Array) -> Any:
            xarr.debug.callback(lambda _: None, own)
            return lax.psum(own, "i")

        return lax.cond(value > 0, meet, lambda own: own, value)

    with pytest.raises(xarr.errors.InputError, match="move the effects out of it"):
        xarr.vmap(function, axis_name="i")(xarr.arange(3.0))


def test_gathers_of_no_slices_have_no_elements() -> None:
    none, indices = xarr.ones((0, 7)), xarr.zeros(0, "int64")
    assert xarr.vmap(lambda v, i: v[i])(none, indices).shape == (0,)
    assert xarr.vmap(lambda v, i: lax.dynamic_slice(v, (i,), (3,)))(none, indices).shape == (0, 3)


#: A function, `in_axes`, and what stands behind a matrix among the arguments.
SAME_FOR_ALL: dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]] = {
    "a string": (lambda x, how: x * 2 if how == "double" else x, (0, None), ("double",)),
    "a function": (lambda x, f: f(x), (0, None), (lambda x: x[0] + 1,)),
    "an object": (lambda x, each: x * len({each}), (0, None), (object(),)),
    "None": (lambda x, y: x if y is None else y, (0, None), (None,)),
    "a number that is a size": (lambda x, count: x[:count], (1, None), (1,)),
    "a number that gives way": (lambda x, y: x * y, (0, None), (2.5,)),
    "a scalar of NumPy": (lambda x, y: x * y, (0, None), (np.float64(2.5),)),
    "a tree of all": (lambda x, y: x * y["k"][0] if y["s"] == "q" else x, (0, None), ({"k": [2], "s": "q"},)),
    "beside a mapped one": (lambda x, y: x * y[0] if y[1] else x, (0, (0, None)), ((np.arange(2.0), "m"),)),
}


@pytest.mark.parametrize("name", SAME_FOR_ALL)
def test_what_is_the_same_for_all_slices_may_be_anything(name: str) -> None:
    f, axes, others = SAME_FOR_ALL[name]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    wanted, got = jax.vmap(f, axes)(x, *others), xarr.vmap(f, axes)(x, *others)
    assert got.dtype == (np.float64 if "NumPy" in name or "beside" in name else np.float32)
    np.testing.assert_array_equal(np.asarray(got, np.float32), wanted)


def test_what_is_mapped_must_be_an_array() -> None:
    with pytest.raises(XarrError, match="strings cannot be array elements"):
        xarr.vmap(lambda x, how: x)(np.ones(2), "double")
