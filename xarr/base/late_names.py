"""Names of `xarr` that are imported when they are first asked for, so that `import xarr` stays short.

Written by docs/make_late_names.py from `xarr/__init__.py` and the `__all__` of modules: change these, run it.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import Final

_ROWS: Final = """arrays.array Array
backend get_backend set_backend use_backend
broadcast_trace trace_broadcasts
debug
distributed
doctor show_config show_runtime
dtypes bfloat16 bool_ complex64 complex128 float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float16 float32 float64 int2 int4 int8 int16 int32 int64 uint2 uint4 uint8 uint16 uint32 uint64
emath
explainers.collective explain_collective
explainers.explicit_program make_explicit
explainers.gathers.gather explain_gather explain_scatter
explainers.index explain_index
explainers.layout explain_layout
explainers.products explain_einsum explain_matmul
explainers.program explain explain_broadcast
explainers.promotion explain_dtype
explainers.reduction explain_reduce
explainers.windows explain_window
fft
lax
lib
linalg
numpy_api.creation.arrays arange array asarray copy empty empty_like from_dlpack full full_like linspace meshgrid ones ones_like zeros zeros_like
numpy_api.creation.existing_data asanyarray asarray_chkfinite ascontiguousarray asfortranarray frombuffer fromfile fromfunction fromiter fromstring require
numpy_api.creation.logarithmic_ranges geomspace logspace
numpy_api.creation.matrices diag eye identity tri tril triu vander
numpy_api.data_types.dtype_routines astype can_cast common_type finfo iinfo isdtype issubdtype min_scalar_type mintypecode promote_types result_type
numpy_api.data_types.inspection __array_namespace_info__
numpy_api.data_types.scalar_types False_ True_ byte cdouble complexfloating csingle double dtype floating generic half inexact int_ intc integer intp long longlong number short signedinteger single ubyte uint uintc uintp ulong ulonglong unsignedinteger ushort
numpy_api.functional.mapping apply_along_axis apply_over_axes broadcast vectorize
numpy_api.indexing_routines.assignment extract fill_diagonal place put put_along_axis putmask
numpy_api.indexing_routines.conditions copyto piecewise select
numpy_api.indexing_routines.diagonals diagflat diagonal trace
numpy_api.indexing_routines.index_builders c_ diag_indices diag_indices_from index_exp indices ix_ mask_indices mgrid ogrid r_ ravel_multi_index s_ tril_indices tril_indices_from triu_indices triu_indices_from unravel_index
numpy_api.indexing_routines.iterators ndenumerate ndindex nditer
numpy_api.indexing_routines.selection choose compress take take_along_axis
numpy_api.input_output.files genfromtxt load loadtxt save savetxt savez savez_compressed
numpy_api.input_output.text array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific get_printoptions printoptions set_printoptions
numpy_api.linear_algebra.einsum einsum einsum_path
numpy_api.linear_algebra.products cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat
numpy_api.manipulation.adding_and_removing append delete insert resize trim_zeros
numpy_api.manipulation.joining block column_stack concat concatenate dstack hstack stack vstack
numpy_api.manipulation.padding pad
numpy_api.manipulation.rearranging flip fliplr flipud roll rot90
numpy_api.manipulation.shapes atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims iterable matrix_transpose moveaxis ndim permute_dims ravel reshape rollaxis shape size squeeze swapaxes transpose
numpy_api.manipulation.splitting array_split dsplit hsplit split unstack vsplit
numpy_api.manipulation.tiling repeat tile
numpy_api.mathematics.bits bitwise_count packbits unpackbits
numpy_api.mathematics.complex_numbers angle conj conjugate imag real real_if_close
numpy_api.mathematics.differences diff ediff1d gradient interp trapezoid unwrap
numpy_api.mathematics.division divmod floor_divide fmod gcd lcm mod remainder
numpy_api.mathematics.elementwise abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cbrt clip copysign cos cosh deg2rad degrees divide equal exp exp2 expm1 fabs float_power fmax fmin greater greater_equal hypot invert isfinite isinf isnan left_shift less less_equal log log1p log2 log10 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow power rad2deg radians reciprocal right_shift sign signbit sin sinh sqrt square subtract tan tanh true_divide
numpy_api.mathematics.float_errors errstate geterr seterr
numpy_api.mathematics.floating_point frexp ldexp modf nan_to_num spacing
numpy_api.mathematics.logic allclose array_equal array_equiv isclose iscomplex iscomplexobj isneginf isposinf isreal isrealobj isscalar
numpy_api.mathematics.rounding around ceil fix floor rint round trunc
numpy_api.mathematics.special_functions heaviside i0 sinc
numpy_api.mathematics.window_functions bartlett blackman hamming hanning kaiser
numpy_api.polynomials.arithmetic polyadd polyder polydiv polyint polymul polysub polyval
numpy_api.polynomials.roots_and_fits poly polyfit roots
numpy_api.sorting.searching argmax argmin argwhere flatnonzero nonzero searchsorted where
numpy_api.sorting.sets intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values
numpy_api.sorting.sorting argsort sort
numpy_api.statistics.correlations convolve corrcoef correlate cov
numpy_api.statistics.histograms bincount digitize histogram histogram2d histogram_bin_edges histogramdd
numpy_api.statistics.nan_reductions nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar
numpy_api.statistics.order_statistics argpartition lexsort median partition percentile ptp quantile sort_complex
numpy_api.statistics.reductions all amax amin any average count_nonzero cumprod cumsum cumulative_prod cumulative_sum max mean min prod std sum var
polynomial
polynomial._series poly1d
puzzles
random
runtime.materialisation block_until_ready evaluate
shapes Layout Shape
stablehlo
transforms.batching.vmap vmap
transforms.callbacks effects_barrier pure_callback
transforms.jit eval_shape jit
transforms.lowering ShapeDtypeStruct lower
transforms.sharding.pmap pmap
transforms.sharding.shard_map shard_map
tree
tree_util
"""

#: From a module below `xarr` to the names that it gives; none if the module itself is the name.
LATE_MODULES: Final = {module: tuple(names) for module, *names in map(str.split, _ROWS.splitlines())}
