"""The explicit level: `jax.lax`'s names and argument order, and nothing implicit but scalars.

Binary functions also take XLA's `broadcast_dimensions=`.
"""

from xarr.lax.contraction import (
    batch_matmul as batch_matmul,
)
from xarr.lax.contraction import (
    dot as dot,
)
from xarr.lax.contraction import (
    dot_general as dot_general,
)
from xarr.lax.control import (
    call as call,
)
from xarr.lax.control import (
    cond as cond,
)
from xarr.lax.control import (
    conditional as conditional,
)
from xarr.lax.control import (
    fori_loop as fori_loop,
)
from xarr.lax.control import (
    map_elements as map_elements,
)
from xarr.lax.control import (
    optimization_barrier as optimization_barrier,
)
from xarr.lax.control import (
    switch as switch,
)
from xarr.lax.control import (
    while_loop as while_loop,
)
from xarr.lax.creation import (
    broadcasted_iota as broadcasted_iota,
)
from xarr.lax.creation import (
    full as full,
)
from xarr.lax.creation import (
    full_like as full_like,
)
from xarr.lax.creation import (
    iota as iota,
)
from xarr.lax.dynamic_slicing import (
    dynamic_index_in_dim as dynamic_index_in_dim,
)
from xarr.lax.dynamic_slicing import (
    dynamic_slice as dynamic_slice,
)
from xarr.lax.dynamic_slicing import (
    dynamic_slice_in_dim as dynamic_slice_in_dim,
)
from xarr.lax.dynamic_slicing import (
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
)
from xarr.lax.dynamic_slicing import (
    dynamic_update_slice as dynamic_update_slice,
)
from xarr.lax.dynamic_slicing import (
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from xarr.lax.elementwise import (
    RoundingMethod as RoundingMethod,
)
from xarr.lax.elementwise import (
    abs as abs,
)
from xarr.lax.elementwise import (
    acos as acos,
)
from xarr.lax.elementwise import (
    acosh as acosh,
)
from xarr.lax.elementwise import (
    add as add,
)
from xarr.lax.elementwise import (
    asin as asin,
)
from xarr.lax.elementwise import (
    asinh as asinh,
)
from xarr.lax.elementwise import (
    atan as atan,
)
from xarr.lax.elementwise import (
    atan2 as atan2,
)
from xarr.lax.elementwise import (
    atanh as atanh,
)
from xarr.lax.elementwise import (
    bitcast_convert_type as bitcast_convert_type,
)
from xarr.lax.elementwise import (
    bitwise_and as bitwise_and,
)
from xarr.lax.elementwise import (
    bitwise_not as bitwise_not,
)
from xarr.lax.elementwise import (
    bitwise_or as bitwise_or,
)
from xarr.lax.elementwise import (
    bitwise_xor as bitwise_xor,
)
from xarr.lax.elementwise import (
    cbrt as cbrt,
)
from xarr.lax.elementwise import (
    ceil as ceil,
)
from xarr.lax.elementwise import (
    clamp as clamp,
)
from xarr.lax.elementwise import (
    clz as clz,
)
from xarr.lax.elementwise import (
    complex as complex,
)
from xarr.lax.elementwise import (
    conj as conj,
)
from xarr.lax.elementwise import (
    convert_element_type as convert_element_type,
)
from xarr.lax.elementwise import (
    cos as cos,
)
from xarr.lax.elementwise import (
    cosh as cosh,
)
from xarr.lax.elementwise import (
    div as div,
)
from xarr.lax.elementwise import (
    eq as eq,
)
from xarr.lax.elementwise import (
    eq_to as eq_to,
)
from xarr.lax.elementwise import (
    exp as exp,
)
from xarr.lax.elementwise import (
    expm1 as expm1,
)
from xarr.lax.elementwise import (
    floor as floor,
)
from xarr.lax.elementwise import (
    ge as ge,
)
from xarr.lax.elementwise import (
    ge_to as ge_to,
)
from xarr.lax.elementwise import (
    gt as gt,
)
from xarr.lax.elementwise import (
    gt_to as gt_to,
)
from xarr.lax.elementwise import (
    imag as imag,
)
from xarr.lax.elementwise import (
    integer_pow as integer_pow,
)
from xarr.lax.elementwise import (
    is_finite as is_finite,
)
from xarr.lax.elementwise import (
    le as le,
)
from xarr.lax.elementwise import (
    le_to as le_to,
)
from xarr.lax.elementwise import (
    log as log,
)
from xarr.lax.elementwise import (
    log1p as log1p,
)
from xarr.lax.elementwise import (
    logistic as logistic,
)
from xarr.lax.elementwise import (
    lt as lt,
)
from xarr.lax.elementwise import (
    lt_to as lt_to,
)
from xarr.lax.elementwise import (
    max as max,
)
from xarr.lax.elementwise import (
    min as min,
)
from xarr.lax.elementwise import (
    mul as mul,
)
from xarr.lax.elementwise import (
    ne as ne,
)
from xarr.lax.elementwise import (
    ne_to as ne_to,
)
from xarr.lax.elementwise import (
    neg as neg,
)
from xarr.lax.elementwise import (
    nextafter as nextafter,
)
from xarr.lax.elementwise import (
    population_count as population_count,
)
from xarr.lax.elementwise import (
    pow as pow,
)
from xarr.lax.elementwise import (
    real as real,
)
from xarr.lax.elementwise import (
    reciprocal as reciprocal,
)
from xarr.lax.elementwise import (
    reduce_precision as reduce_precision,
)
from xarr.lax.elementwise import (
    rem as rem,
)
from xarr.lax.elementwise import (
    round as round,
)
from xarr.lax.elementwise import (
    rsqrt as rsqrt,
)
from xarr.lax.elementwise import (
    select as select,
)
from xarr.lax.elementwise import (
    select_n as select_n,
)
from xarr.lax.elementwise import (
    shift_left as shift_left,
)
from xarr.lax.elementwise import (
    shift_right_arithmetic as shift_right_arithmetic,
)
from xarr.lax.elementwise import (
    shift_right_logical as shift_right_logical,
)
from xarr.lax.elementwise import (
    sign as sign,
)
from xarr.lax.elementwise import (
    sin as sin,
)
from xarr.lax.elementwise import (
    sinh as sinh,
)
from xarr.lax.elementwise import (
    sqrt as sqrt,
)
from xarr.lax.elementwise import (
    square as square,
)
from xarr.lax.elementwise import (
    sub as sub,
)
from xarr.lax.elementwise import (
    tan as tan,
)
from xarr.lax.elementwise import (
    tanh as tanh,
)
from xarr.lax.indexing import (
    GatherDimensionNumbers as GatherDimensionNumbers,
)
from xarr.lax.indexing import (
    GatherScatterMode as GatherScatterMode,
)
from xarr.lax.indexing import (
    ScatterDimensionNumbers as ScatterDimensionNumbers,
)
from xarr.lax.indexing import (
    gather as gather,
)
from xarr.lax.indexing import (
    scatter as scatter,
)
from xarr.lax.indexing import (
    scatter_add as scatter_add,
)
from xarr.lax.indexing import (
    scatter_apply as scatter_apply,
)
from xarr.lax.indexing import (
    scatter_max as scatter_max,
)
from xarr.lax.indexing import (
    scatter_min as scatter_min,
)
from xarr.lax.indexing import (
    scatter_mul as scatter_mul,
)
from xarr.lax.indexing import (
    scatter_sub as scatter_sub,
)
from xarr.lax.indexing import (
    scatter_with as scatter_with,
)
from xarr.lax.movement import (
    broadcast as broadcast,
)
from xarr.lax.movement import (
    broadcast_in_dim as broadcast_in_dim,
)
from xarr.lax.movement import (
    collapse as collapse,
)
from xarr.lax.movement import (
    concatenate as concatenate,
)
from xarr.lax.movement import (
    expand_dims as expand_dims,
)
from xarr.lax.movement import (
    index_in_dim as index_in_dim,
)
from xarr.lax.movement import (
    pad as pad,
)
from xarr.lax.movement import (
    reshape as reshape,
)
from xarr.lax.movement import (
    rev as rev,
)
from xarr.lax.movement import (
    slice as slice,
)
from xarr.lax.movement import (
    slice_in_dim as slice_in_dim,
)
from xarr.lax.movement import (
    split as split,
)
from xarr.lax.movement import (
    squeeze as squeeze,
)
from xarr.lax.movement import (
    transpose as transpose,
)
from xarr.lax.reduction import (
    argmax as argmax,
)
from xarr.lax.reduction import (
    argmin as argmin,
)
from xarr.lax.reduction import (
    reduce as reduce,
)
from xarr.lax.reduction import (
    reduce_and as reduce_and,
)
from xarr.lax.reduction import (
    reduce_max as reduce_max,
)
from xarr.lax.reduction import (
    reduce_min as reduce_min,
)
from xarr.lax.reduction import (
    reduce_or as reduce_or,
)
from xarr.lax.reduction import (
    reduce_prod as reduce_prod,
)
from xarr.lax.reduction import (
    reduce_sum as reduce_sum,
)
from xarr.lax.reduction import (
    reduce_xor as reduce_xor,
)
from xarr.lax.rows import (
    gather_rows as gather_rows,
)
from xarr.lax.rows import (
    segment_max as segment_max,
)
from xarr.lax.rows import (
    segment_min as segment_min,
)
from xarr.lax.rows import (
    segment_prod as segment_prod,
)
from xarr.lax.rows import (
    segment_sum as segment_sum,
)
from xarr.lax.rows import (
    take as take,
)
from xarr.lax.sorting import (
    sort as sort,
)
from xarr.lax.sorting import (
    sort_key_val as sort_key_val,
)
from xarr.lax.sorting import (
    sort_with as sort_with,
)
from xarr.lax.tuples import (
    TupleValue as TupleValue,
)
from xarr.lax.tuples import (
    get_tuple_element as get_tuple_element,
)
from xarr.lax.tuples import (
    tuple as tuple,
)
