"""Calls of what `tests/numpy_records` lacks: functions of `xarr.lax`, of `xarr.random`, and those that write.

Each is an expression of one namespace or more and of these variables, whose dimensions `n` and `m` the tests make
dynamic, one after the other; in an expression `n` and `m` are the bounds of dynamic dimensions, else the sizes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

SIZES: Final = {"n": 4, "m": 6}
#: Variables: their dimensions and element types.
VARIABLES: Final[dict[str, tuple[str, str]]] = {
    "x": ("n m", "float64"),
    "y": ("n m", "float64"),
    "i": ("n m", "int64"),
    "j": ("n m", "int64"),
    "p": ("n m", "bool"),
    "z": ("n m", "complex128"),
    "s": ("n", "float64"),
    "v": ("m", "float64"),
    "rows": ("n", "int32"),
    "b": ("2 n m", "float64"),
    "c": ("2 m n", "float64"),
    "image": ("1 n m 2", "float64"),
    "channels": ("1 2 n m", "float64"),
}


def sample(name: str) -> np.ndarray[Any, Any]:
    """A variable, of the sizes: small positive numbers, all different but for the booleans and the row numbers."""
    dimensions, dtype = VARIABLES[name]
    shape = tuple(SIZES[part] if part in SIZES else int(part) for part in dimensions.split())
    rng = np.random.default_rng([len(name), *map(ord, name)])
    numbers = rng.permutation(int(np.prod(shape))).reshape(shape) + 1
    if name == "rows":
        return (numbers % 3).astype(dtype)
    if dtype == "bool":
        return numbers % 2 == 0
    return (numbers / 32 if dtype[0] in "fc" else numbers).astype(dtype)


#: Functions of lax that take no arrays, or are about dynamic sizes themselves.
LAX_WITHOUT_ARRAYS: Final = frozenset(
    {
        *("broadcast_shapes", "broadcasted_iota", "conv_dimension_numbers", "empty", "full", "iota"),
        *("padtype_to_pads", "register_custom_call", "rng_bit_generator", "rng_normal", "rng_uniform"),
        *("seed_rng", "unregister_custom_call", "get_dimension_size", "set_dimension_size"),
        *(
            "after_all",
            "axis_index",
            "axis_size",
            "create_token",
            "infeed",
            "partition_id",
            "recv",
            "replica_id",
        ),
    }
)
_ROWS: Final = "lax.GatherDimensionNumbers((1,), (0,), (0,))"
_SCATTER: Final = "lax.ScatterDimensionNumbers((1,), (0,), (0,))"


def _every(names: str, *calls: str) -> dict[str, tuple[str, ...]]:
    """Calls for several functions, whose name stands for `{}`."""
    return {name: tuple(call.format(name) for call in calls) for name in names.split()}


LAX: Final[dict[str, tuple[str, ...]]] = {
    "all_gather": (
        "along_axis(lambda: lax.all_gather(x, 'i'))",
        "along_axis(lambda: lax.all_gather(x, 'i', axis=1, tiled=True))",
    ),
    "all_reduce": ("lax.all_reduce(x, lax.add)",),
    "all_to_all": ("along_axis(lambda: lax.all_to_all(lax.expand_dims(x, (0,)), 'i', 0, 1))",),
    "collective_broadcast": ("lax.collective_broadcast(x)",),
    "collective_permute": ("lax.collective_permute(x, [(0, 0)])", "lax.collective_permute(x, [])"),
    "cross_replica_sum": ("lax.cross_replica_sum(x)",),
    "outfeed": ("[lax.outfeed(None, x), fetch()][1]",),
    "pbroadcast": ("along_axis(lambda: lax.pbroadcast(x, 'i', 0))",),
    **_every("pmax pmean pmin psum", "along_axis(lambda: lax.{}(x, 'i'))"),
    "ppermute": ("along_axis(lambda: lax.ppermute(x, 'i', [(0, 0)]))",),
    "pshuffle": ("along_axis(lambda: lax.pshuffle(x, 'i', [0]))",),
    "psum_scatter": ("along_axis(lambda: lax.psum_scatter(x, 'i', tiled=True))",),
    "pswapaxes": ("along_axis(lambda: lax.pswapaxes(lax.expand_dims(x, (0,)), 'i', 0))",),
    "reduce_scatter": ("lax.reduce_scatter(x, lax.add, 0, 1)",),
    "send": ("lax.recv([((4, 6), x.dtype)], lax.send(x, None, 1, [(0, 0)]), 1, [(0, 0)])[0]",),
    **_every("argmax argmin", "lax.{}(x, 0, np.int64)", "lax.{}(x, 1, np.int32)"),
    "associative_scan": (
        "lax.associative_scan(lax.add, x, axis=0)",
        "lax.associative_scan(lax.add, x, reverse=True, axis=1)",
    ),
    "avg_pool": (
        "lax.avg_pool(image, (2, 2))",
        "lax.avg_pool(image, (2, 2), (2, 2), 'SAME', count_include_pad=False)",
        "lax.avg_pool(image, (2, 1), (1, 1), 'SAME')",
    ),
    "batch_matmul": ("lax.batch_matmul(b, c)",),
    "batch_norm_grad": ("lax.batch_norm_grad(x, v, v, v, y, 0.1, 1)",),
    "batch_norm_inference": ("lax.batch_norm_inference(x, v, v, v, v, 0.1, 1)",),
    "batch_norm_training": ("lax.batch_norm_training(x, v, v, 0.1, 1)",),
    **_every("bessel_i0e bessel_i1e digamma erf erf_inv erfc lgamma", "lax.{}(x)"),
    "bitcast_convert_type": (
        "lax.bitcast_convert_type(x, np.int64)",
        "lax.bitcast_convert_type(x, np.int32)",
    ),
    "broadcast": ("lax.broadcast(x, (2,))",),
    "broadcast_in_dim": ("lax.broadcast_in_dim(x, (2, n, 3, m), (1, 3))",),
    "broadcast_to_rank": ("lax.broadcast_to_rank(x, 4)",),
    "call": ("lax.call(lax.neg, x)",),
    "clamp": ("lax.clamp(1.0, x, y)", "lax.clamp(x, y, 2.0)"),
    "collapse": ("lax.collapse(x, 0, 2)", "lax.collapse(b, 1)", "lax.collapse(b, 0, 2)"),
    "concatenate": ("lax.concatenate([x, y], 0)", "lax.concatenate([x, y], 1)"),
    "cond": ("lax.cond(True, lax.neg, lax.exp, x)",),
    "conditional": ("lax.conditional(np.bool_(True), x, lax.neg, x, lax.exp)",),
    "conj": ("lax.conj(z)",),
    "conv": ("lax.conv(channels, np.ones((3, 2, 2, 2)), (1, 1), 'VALID')",),
    "conv_general_dilated": (
        "lax.conv_general_dilated(channels, np.ones((3, 2, 2, 2)), (2, 1), 'VALID')",
        "lax.conv_general_dilated(channels, np.ones((3, 2, 2, 2)), (1, 1), 'SAME')",
        "lax.conv_general_dilated(channels, np.ones((3, 2, 2, 2)), (2, 2), 'SAME')",
        "lax.conv_general_dilated(channels, np.ones((2, 1, 2, 2)), (1, 1), [(1, 0), (0, 1)], (2, 1), "
        "feature_group_count=2)",
    ),
    "conv_transpose": (
        "lax.conv_transpose(channels, np.ones((3, 2, 2, 2)), (2, 2), 'SAME', "
        "dimension_numbers=('NCHW', 'OIHW', 'NCHW'))",
        "lax.conv_transpose(channels, np.ones((3, 2, 2, 2)), (1, 2), 'VALID', "
        "dimension_numbers=('NCHW', 'OIHW', 'NCHW'))",
    ),
    "conv_with_general_padding": (
        "lax.conv_with_general_padding(channels, np.ones((3, 2, 2, 2)), (1, 1), [(1, 0), (0, 1)], None, None)",
    ),
    "convert_element_type": ("lax.convert_element_type(x, np.float32)",),
    **_every("cumlogsumexp cummax cummin cumprod cumsum", "lax.{}(x)", "lax.{}(x, 1, reverse=True)"),
    "custom_call": ("lax.custom_call('xarr.checked_indices', i, result_types=[((n, m), np.int64)], "
        "attributes={'axis': 0, 'size': 99})",),
    "dot": ("lax.dot(s, x)", "lax.dot(x, v)"),
    "dot_general": (
        "lax.dot_general(b, c, (((2,), (1,)), ((0,), (0,))))",
        "lax.dot_general(x, y, (((0,), (0,)), ((), ())))",
    ),
    "dynamic_index_in_dim": ("lax.dynamic_index_in_dim(x, 2)", "lax.dynamic_index_in_dim(x, -1, 1)"),
    "dynamic_slice": ("lax.dynamic_slice(x, (1, 2), (2, 3))", "lax.dynamic_slice(x, (1, 0), (2, m))"),
    "dynamic_slice_in_dim": (
        "lax.dynamic_slice_in_dim(x, 1, 2)",
        "lax.dynamic_slice_in_dim(x, -2, 2)",
        "lax.dynamic_slice_in_dim(x, -3, 2, 1)",
    ),
    "dynamic_update_index_in_dim": ("lax.dynamic_update_index_in_dim(x, v, -1, 0)",),
    "dynamic_update_slice": ("lax.dynamic_update_slice(x, np.ones((2, 2)), (3, 5))",),
    "dynamic_update_slice_in_dim": (
        "lax.dynamic_update_slice_in_dim(x, lax.expand_dims(s, (1,)), 1, 1)",
        "lax.dynamic_update_slice_in_dim(s, np.ones(2), -2, 0)",
    ),
    **_every("eq ge gt le lt ne", "lax.{}(x, y)", "lax.{}(x, 1.0)"),
    **_every("eq_to ge_to gt_to le_to lt_to ne_to", "lax.{}(x, y)"),
    "exp2": ("lax.exp2(x)",),
    "expand_dims": ("lax.expand_dims(x, (1,))", "lax.expand_dims(x, (0, -1))"),
    "fft": ("lax.fft(x, 'FFT', (m,))", "lax.fft(x, 'RFFT', (m,))", "lax.fft(z, 'IFFT', (n, m))"),
    "fori_loop": ("lax.fori_loop(0, 3, lambda _, a: lax.add(a, x), y)",),
    "full_like": ("lax.full_like(x, 2.0)",),
    "gather": (
        f"lax.gather(x, rows, {_ROWS}, (1, m), index_vector_dim=1)",
        f"lax.gather(x, rows, {_ROWS}, (1, 2), index_vector_dim=1)",
        f"lax.gather(x, rows, {_ROWS}, (1, m), index_vector_dim=1, mode='fill')",
    ),
    "gather_rows": ("lax.gather_rows(x, rows)", "lax.gather_rows(x, [-1, 0])"),
    "get_tuple_element": ("lax.get_tuple_element(lax.tuple(x, y), 1)",),
    "index_in_dim": ("lax.index_in_dim(x, 1)", "lax.index_in_dim(x, -1)", "lax.index_in_dim(x, -1, 1)"),
    "integer_pow": ("lax.integer_pow(x, 3)",),
    "map": ("lax.map(lax.neg, x)", "lax.map(lambda row: lax.reduce_sum(row, (0,)), b)"),
    "map_elements": ("lax.map_elements(lax.add, x, y)",),
    **_every(
        "max_pool min_pool",
        "lax.{}(image, (2, 2))",
        "lax.{}(image, (2, 2), (2, 2), 'SAME')",
        "lax.{}(image, (2, 2), (1, 1), 'SAME')",
    ),
    "optimization_barrier": ("lax.optimization_barrier((x, y))",),
    "pad": ("lax.pad(x, 0.0, ((1, 2, 0), (0, 1, 1)))", "lax.pad(x, 0.0, ((-1, 0, 0), (0, -2, 0)))"),
    "reciprocal": ("lax.reciprocal(x)",),
    "reduce": ("lax.reduce(x, 1.0, lax.add, (0,))", "lax.reduce(x, 0.0, lambda a, b: lax.sub(a, b), (1,))"),
    **_every("reduce_max reduce_min reduce_prod reduce_sum", "lax.{}(x, (0,))", "lax.{}(x, (0, 1))"),
    **_every("reduce_and reduce_or reduce_xor", "lax.{}(i, (0,))", "lax.{}(p, (1,))"),
    "reduce_precision": ("lax.reduce_precision(x, 5, 10)",),
    "reduce_window": (
        "lax.reduce_window(x, 0.0, lax.add, (2, 2))",
        "lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), 'SAME')",
        "lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), [(1, 1), (0, 1)], (2, 1), (1, 2))",
    ),
    "reshape": ("lax.reshape(x, (n * m,))", "lax.reshape(x, (n, 1, m))", "lax.reshape(b, (2 * n, m))"),
    "rev": ("lax.rev(x, (0,))", "lax.rev(x, (0, 1))"),
    "scan": (
        "lax.scan(lambda c, row: (lax.add(c, row), c), np.zeros(6), x)",
        "lax.scan(lambda c, row: (lax.add(c, row), c), s, lax.transpose(x, (1, 0)))",
        "lax.scan(lambda c, _: (lax.add(c, x), lax.reduce_sum(c, (0, 1))), y, None, 2)",
        "lax.scan(lambda c, _: (c, x), 0.0, None, 2)",
    ),
    **_every(
        "scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub",
        f"lax.{{}}(x, rows, y, {_SCATTER}, index_vector_dim=1)",
        f"lax.{{}}(x, np.array([0, 2]), np.ones((2, m)), {_SCATTER}, index_vector_dim=1)",
    ),
    "scatter_apply": (
        f"lax.scatter_apply(x, rows, lax.neg, {_SCATTER}, update_shape=(n, m), index_vector_dim=1)",
    ),
    "scatter_with": (f"lax.scatter_with(x, rows, y, lax.sub, {_SCATTER}, index_vector_dim=1)",),
    **_every("segment_max segment_min segment_prod segment_sum", "lax.{}(x, rows, 3)", "lax.{}(v, [2, 1, 0] * 2, 3)"),
    "select": ("lax.select(p, x, y)",),
    "select_n": ("lax.select_n(p, x, y)",),
    **_every(
        "select_and_scatter_add",
        "lax.{}(lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2)), x, lax.ge, (2, 2), (2, 2), 'VALID')",
        "lax.{}(lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 2)), x, lax.ge, (1, 2), (1, 2), 'VALID')",
    ),
    "select_and_scatter": (
        "lax.select_and_scatter(x, lax.ge, (1, 2), (1, 2), 'VALID', "
        "lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 2)), 0.0, lax.add)",
    ),
    "slice": ("lax.slice(x, (1, 0), (3, m))", "lax.slice(x, (0, 1), (n, 4), (2, 2))"),
    "slice_in_dim": (
        "lax.slice_in_dim(x, 1, None)",
        "lax.slice_in_dim(x, -2, None)",
        "lax.slice_in_dim(x, None, -1, axis=1)",
        "lax.slice_in_dim(x, 0, None, 2, 1)",
    ),
    "sort": ("lax.sort(x)", "lax.sort(x, dimension=0)", "lax.sort((x, y), dimension=0, num_keys=2)"),
    "sort_key_val": ("lax.sort_key_val(x, y)", "lax.sort_key_val(x, y, 0)"),
    "sort_with": ("lax.sort_with((x, y), lambda a, b, c, d: lax.gt(a, b), 0)",),
    "split": ("lax.split(x, (1, 3))", "lax.split(x, (2, 2, 2), 1)", "lax.split(x, (n,))"),
    "square": ("lax.square(x)",),
    "squeeze": ("lax.squeeze(lax.expand_dims(x, (1,)), (1,))",),
    "stack": ("lax.stack([x, y])", "lax.stack([x, y], -1)"),
    "stop_gradient": ("lax.stop_gradient(x)",),
    "switch": ("lax.switch(1, [lax.neg, lax.exp], x)",),
    "take": ("lax.take(x, rows, 0)", "lax.take(x, [0, -1], 1)", "lax.take(x, [9, 0], 0, mode='fill')"),
    "tile": ("lax.tile(x, (2, 1))", "lax.tile(x, (1, 2))"),
    "top_k": ("lax.top_k(x, 2)", "lax.top_k(x, 2, axis=0)"),
    "transpose": ("lax.transpose(x, (1, 0))", "lax.transpose(b, (2, 0, 1))"),
    "tuple": ("list(lax.tuple(x, y))",),
    "unstack": ("lax.unstack(x)", "lax.unstack(x, 1)"),
    "while_loop": ("lax.while_loop(lambda a: lax.lt(lax.reduce_sum(a, (0, 1)), 9.0), lambda a: lax.add(a, x), y)",),
}  # fmt: skip

#: Of `xarr.random`: shapes of results come from those of the parameters.
RANDOM: Final[dict[str, tuple[str, ...]]] = {
    **_every(
        "bernoulli chisquare dirichlet gamma geometric loggamma lognormal pareto poisson rayleigh t wald",
        "random.{}(key, x)",
        "random.{}(key, s)",
    ),
    **_every("beta binomial double_sided_maxwell f truncated_normal weibull_min", "random.{}(key, x, y)"),
    "categorical": ("random.categorical(key, x)", "random.categorical(key, x, 0)"),
    "choice": ("random.choice(key, x)", "random.choice(key, s, (2,))", "random.choice(key, 4, p=s)"),
    "generalized_normal": ("random.generalized_normal(key, x, (n, m))",),
    "multinomial": ("random.multinomial(key, 4, x)",),
    "multivariate_normal": ("random.multivariate_normal(key, s, np.eye(4))",),
    "permutation": ("random.permutation(key, x)", "random.permutation(key, x, 1, True)"),
    "randint": ("random.randint(key, (n, m), i, 9)",),
    "shuffle": ("[a := xarr.array(x), random.shuffle(a), a][2]",),
    "triangular": ("random.triangular(key, x, x, y)",),
    "uniform": ("random.uniform(key, (n, m), None, x, y)",),
}

#: Functions and methods that write to an Array, and what else of `xarr` has no record.
WRITING: Final[dict[str, tuple[str, ...]]] = {
    "fill_diagonal": ("[a := xarr.array(x), xarr.fill_diagonal(a, 2.0), a][2]",),
    "place": ("[a := xarr.array(x), xarr.place(a, p, [1.0, 2.0]), a][2]",),
    "put": ("[a := xarr.array(x), xarr.put(a, [0, -1], 2.0), a][2]",),
    "put_along_axis": (
        "[a := xarr.array(x), xarr.put_along_axis(a, lax.rem(i, lax.full_like(i, 3)), y, 1), a][2]",
    ),
    "putmask": ("[a := xarr.array(x), xarr.putmask(a, p, [1.0, 2.0]), a][2]",),
    "Array.__setitem__": (
        "[a := xarr.array(x), a.__setitem__(0, 2.0), a][2]",
        "[a := xarr.array(x), a.__setitem__(Ellipsis, 2.0), a][2]",
    ),
    "Array.__getitem__": ("x[0]", "x[-1]", "x[..., -1]", "x[:, None]", "x[p]", "x[rows]", "x[1:]", "x[::-1]"),
    "Array.__iter__": ("list(x)",),
    "Array.__len__": ("len(x)",),
    "Array.at": ("x.at[0].set(1.0)", "x.at[p].add(1.0)"),
    "Array.flat": ("list(x.flat)", "x.flat[1]"),
    "Array.fill": ("[a := xarr.array(x), a.fill(2.0), a][2]",),
    "Array.sort": ("[a := xarr.array(x), a.sort(0), a][2]",),
    "Array.__iadd__": ("[a := xarr.array(x), a.__iadd__(y), a][2]",),
    "Array.tolist": ("x.tolist()",),
    "ufunc.reduce": (
        "xarr.add.reduce(x, initial=2.0, where=p)",
        "xarr.maximum.reduce(x, axis=1)",
        "xarr.subtract.reduce(x)",
        "xarr.fmax.reduce(x, 1)",
    ),
    "ufunc.accumulate": ("xarr.add.accumulate(x)", "xarr.subtract.accumulate(x, 1)"),
    "ufunc.outer": ("xarr.add.outer(s, v)",),
    "ufunc.reduceat": ("xarr.add.reduceat(s, [0, 2])",),
    "ufunc.at": ("[a := xarr.array(s), xarr.add.at(a, [0, -1], 1.0), a][2]",),
}

#: Names of records that take no array, or of which no call is left to try: theirs read sizes, or give types.
RECORDS_WITHOUT_ARRAYS: Final = frozenset(
    {
        *(
            "arange",
            "bartlett",
            "base_repr",
            "binary_repr",
            "blackman",
            "broadcast_shapes",
            "broadcast_to",
            "can_cast",
        ),
        *("diag_indices", "einsum_path", "empty", "empty_like", "eye", "fft.fftfreq", "fft.rfftfreq"),
        *("finfo", "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "full"),
        *("genfromtxt", "hamming", "hanning", "identity", "iinfo", "indices", "isdtype", "issubdtype"),
        *("ix_", "kaiser", "linalg.cholesky", "linspace", "loadtxt", "mask_indices", "min_scalar_type"),
        *(
            "mintypecode",
            "ndarray.argpartition",
            "ndarray.dtype",
            "ndarray.nbytes",
            "ndarray.ndim",
            "ndarray.shape",
        ),
        *("ndarray.size", "ones", "promote_types", "ravel_multi_index", "tri", "tril_indices"),
        *("triu_indices", "unpackbits", "unravel_index", "zeros"),
    }
)

#: Functions that NumPy has too, without a record and without arrays.
WITHOUT_RECORD: Final = frozenset(
    {
        *("format_float_positional", "format_float_scientific", "get_printoptions", "geterr"),
        *("printoptions", "set_printoptions", "seterr", "show_config", "show_runtime"),
    }
)
#: Functions of xarr.random whose arrays are seeds and keys, or fit no shape that is dynamic.
OF_KEYS: Final = frozenset({"PRNGKey", "ball", "bits", "fold_in", "key", "key_data", "wrap_key_data"})
