"""The explicit level: `jax.lax`'s names and argument order, and nothing implicit but scalars.

Binary functions also take XLA's `broadcast_dimensions=`.
"""

import typing as _typing

from xarr.base.absent_names import hooks_of as _hooks_of
from xarr.base.custom_calls import (
    register_custom_call as register_custom_call,
    unregister_custom_call as unregister_custom_call,
)
from xarr.base.process_rng import seed_rng as seed_rng
from xarr.lax import linalg as linalg
from xarr.lax.collectives import (
    all_reduce as all_reduce,
    collective_broadcast as collective_broadcast,
    collective_permute as collective_permute,
    cross_replica_sum as cross_replica_sum,
    partition_id as partition_id,
    reduce_scatter as reduce_scatter,
    replica_id as replica_id,
)
from xarr.lax.contraction import (
    batch_matmul as batch_matmul,
    dot as dot,
    dot_general as dot_general,
)
from xarr.lax.control import (
    call as call,
    cond as cond,
    conditional as conditional,
    map_elements as map_elements,
    optimization_barrier as optimization_barrier,
    stop_gradient as stop_gradient,
    switch as switch,
)
from xarr.lax.convolution import (
    ConvDimensionNumbers as ConvDimensionNumbers,
    conv as conv,
    conv_dimension_numbers as conv_dimension_numbers,
    conv_general_dilated as conv_general_dilated,
    conv_transpose as conv_transpose,
    conv_with_general_padding as conv_with_general_padding,
)
from xarr.lax.creation import (
    broadcasted_iota as broadcasted_iota,
    full as full,
    full_like as full_like,
    iota as iota,
)
from xarr.lax.custom_calls import custom_call as custom_call
from xarr.lax.dynamic_sizes import (
    get_dimension_size as get_dimension_size,
    set_dimension_size as set_dimension_size,
)
from xarr.lax.dynamic_slicing import (
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from xarr.lax.effects import (
    after_all as after_all,
    create_token as create_token,
    infeed as infeed,
    outfeed as outfeed,
    recv as recv,
    send as send,
)
from xarr.lax.elementwise import *
from xarr.lax.fourier import FftType as FftType, fft as fft
from xarr.lax.indexing import (
    GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
    gather as gather,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_apply as scatter_apply,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
    scatter_with as scatter_with,
)
from xarr.lax.loops import (
    fori_loop as fori_loop,
    scan as scan,
    while_loop as while_loop,
)
from xarr.lax.movement import (
    broadcast as broadcast,
    broadcast_in_dim as broadcast_in_dim,
    collapse as collapse,
    concatenate as concatenate,
    expand_dims as expand_dims,
    index_in_dim as index_in_dim,
    pad as pad,
    reshape as reshape,
    rev as rev,
    slice as slice,
    slice_in_dim as slice_in_dim,
    split as split,
    squeeze as squeeze,
    transpose as transpose,
)
from xarr.lax.named_axes import (
    all_gather as all_gather,
    all_to_all as all_to_all,
    axis_index as axis_index,
    axis_size as axis_size,
    pbroadcast as pbroadcast,
    pmax as pmax,
    pmean as pmean,
    pmin as pmin,
    ppermute as ppermute,
    pshuffle as pshuffle,
    psum as psum,
    psum_scatter as psum_scatter,
    pswapaxes as pswapaxes,
)
from xarr.lax.normalisation import (
    batch_norm_grad as batch_norm_grad,
    batch_norm_inference as batch_norm_inference,
    batch_norm_training as batch_norm_training,
)
from xarr.lax.pooling import avg_pool as avg_pool, max_pool as max_pool, min_pool as min_pool
from xarr.lax.random import (
    RandomAlgorithm as RandomAlgorithm,
    rng_bit_generator as rng_bit_generator,
    rng_normal as rng_normal,
    rng_uniform as rng_uniform,
)
from xarr.lax.reduction import (
    argmax as argmax,
    argmin as argmin,
    reduce as reduce,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    reduce_xor as reduce_xor,
)
from xarr.lax.rows_and_segments import (
    gather_rows as gather_rows,
    segment_max as segment_max,
    segment_min as segment_min,
    segment_prod as segment_prod,
    segment_sum as segment_sum,
    take as take,
)
from xarr.lax.scans import associative_scan as associative_scan, map as map
from xarr.lax.sorting import (
    sort as sort,
    sort_key_val as sort_key_val,
    sort_with as sort_with,
    top_k as top_k,
)
from xarr.lax.special import (
    bessel_i0e as bessel_i0e,
    bessel_i1e as bessel_i1e,
    digamma as digamma,
    erf as erf,
    erf_inv as erf_inv,
    erfc as erfc,
    lgamma as lgamma,
)
from xarr.lax.stacking_and_tiling import (
    broadcast_shapes as broadcast_shapes,
    broadcast_to_rank as broadcast_to_rank,
    empty as empty,
    stack as stack,
    tile as tile,
    unstack as unstack,
)
from xarr.lax.tuples import (
    TupleValue as TupleValue,
    get_tuple_element as get_tuple_element,
    tuple as tuple,
)
from xarr.lax.windows import (
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
    padtype_to_pads as padtype_to_pads,
    reduce_window as reduce_window,
    select_and_scatter as select_and_scatter,
    select_and_scatter_add as select_and_scatter_add,
)

if not _typing.TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker
    __getattr__, __dir__ = _hooks_of(__name__, ("linalg",))
