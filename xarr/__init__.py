"""xarr: a JAX-style array library over pluggable backends that explains itself."""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from xarr import lax as lax
from xarr.array import Array as Array
from xarr.backend import get as get_backend
from xarr.backend import set_backend as set_backend
from xarr.backend import use_backend as use_backend
from xarr.config import current as config
from xarr.dtypes import (
    bfloat16 as bfloat16,
)
from xarr.dtypes import (
    bool_ as bool,
)
from xarr.dtypes import (
    bool_ as bool_,
)
from xarr.dtypes import (
    complex64 as complex64,
)
from xarr.dtypes import (
    complex128 as complex128,
)
from xarr.dtypes import (
    float8_e3m4 as float8_e3m4,
)
from xarr.dtypes import (
    float8_e4m3 as float8_e4m3,
)
from xarr.dtypes import (
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
)
from xarr.dtypes import (
    float8_e4m3fn as float8_e4m3fn,
)
from xarr.dtypes import (
    float8_e4m3fnuz as float8_e4m3fnuz,
)
from xarr.dtypes import (
    float8_e5m2 as float8_e5m2,
)
from xarr.dtypes import (
    float8_e5m2fnuz as float8_e5m2fnuz,
)
from xarr.dtypes import (
    float8_e8m0fnu as float8_e8m0fnu,
)
from xarr.dtypes import (
    float16 as float16,
)
from xarr.dtypes import (
    float32 as float32,
)
from xarr.dtypes import (
    float64 as float64,
)
from xarr.dtypes import (
    int8 as int8,
)
from xarr.dtypes import (
    int16 as int16,
)
from xarr.dtypes import (
    int32 as int32,
)
from xarr.dtypes import (
    int64 as int64,
)
from xarr.dtypes import (
    uint8 as uint8,
)
from xarr.dtypes import (
    uint16 as uint16,
)
from xarr.dtypes import (
    uint32 as uint32,
)
from xarr.dtypes import (
    uint64 as uint64,
)
from xarr.explanation.program import explain as explain
from xarr.explanation.program import explain_broadcast as explain_broadcast
from xarr.functions.creation_functions import (
    INT64 as INT64,
)
from xarr.functions.creation_functions import (
    arange as arange,
)
from xarr.functions.creation_functions import (
    array as array,
)
from xarr.functions.creation_functions import (
    asarray as asarray,
)
from xarr.functions.creation_functions import (
    copy as copy,
)
from xarr.functions.creation_functions import (
    diag as diag,
)
from xarr.functions.creation_functions import (
    empty as empty,
)
from xarr.functions.creation_functions import (
    empty_like as empty_like,
)
from xarr.functions.creation_functions import (
    eye as eye,
)
from xarr.functions.creation_functions import (
    from_dlpack as from_dlpack,
)
from xarr.functions.creation_functions import (
    full as full,
)
from xarr.functions.creation_functions import (
    full_like as full_like,
)
from xarr.functions.creation_functions import (
    identity as identity,
)
from xarr.functions.creation_functions import (
    linspace as linspace,
)
from xarr.functions.creation_functions import (
    meshgrid as meshgrid,
)
from xarr.functions.creation_functions import (
    ones as ones,
)
from xarr.functions.creation_functions import (
    ones_like as ones_like,
)
from xarr.functions.creation_functions import (
    tri as tri,
)
from xarr.functions.creation_functions import (
    tril as tril,
)
from xarr.functions.creation_functions import (
    triu as triu,
)
from xarr.functions.creation_functions import (
    zeros as zeros,
)
from xarr.functions.creation_functions import (
    zeros_like as zeros_like,
)
from xarr.functions.data_type_functions import (
    astype as astype,
)
from xarr.functions.data_type_functions import (
    broadcast_shapes as broadcast_shapes,
)
from xarr.functions.data_type_functions import (
    can_cast as can_cast,
)
from xarr.functions.data_type_functions import (
    finfo as finfo,
)
from xarr.functions.data_type_functions import (
    iinfo as iinfo,
)
from xarr.functions.data_type_functions import (
    isdtype as isdtype,
)
from xarr.functions.data_type_functions import (
    promote_types as promote_types,
)
from xarr.functions.data_type_functions import (
    result_type as result_type,
)
from xarr.functions.elementwise_functions import (
    abs as abs,
)
from xarr.functions.elementwise_functions import (
    absolute as absolute,
)
from xarr.functions.elementwise_functions import (
    acos as acos,
)
from xarr.functions.elementwise_functions import (
    acosh as acosh,
)
from xarr.functions.elementwise_functions import (
    add as add,
)
from xarr.functions.elementwise_functions import (
    arccos as arccos,
)
from xarr.functions.elementwise_functions import (
    arccosh as arccosh,
)
from xarr.functions.elementwise_functions import (
    arcsin as arcsin,
)
from xarr.functions.elementwise_functions import (
    arcsinh as arcsinh,
)
from xarr.functions.elementwise_functions import (
    arctan as arctan,
)
from xarr.functions.elementwise_functions import (
    arctan2 as arctan2,
)
from xarr.functions.elementwise_functions import (
    arctanh as arctanh,
)
from xarr.functions.elementwise_functions import (
    around as around,
)
from xarr.functions.elementwise_functions import (
    asin as asin,
)
from xarr.functions.elementwise_functions import (
    asinh as asinh,
)
from xarr.functions.elementwise_functions import (
    atan as atan,
)
from xarr.functions.elementwise_functions import (
    atan2 as atan2,
)
from xarr.functions.elementwise_functions import (
    atanh as atanh,
)
from xarr.functions.elementwise_functions import (
    bitwise_and as bitwise_and,
)
from xarr.functions.elementwise_functions import (
    bitwise_invert as bitwise_invert,
)
from xarr.functions.elementwise_functions import (
    bitwise_left_shift as bitwise_left_shift,
)
from xarr.functions.elementwise_functions import (
    bitwise_not as bitwise_not,
)
from xarr.functions.elementwise_functions import (
    bitwise_or as bitwise_or,
)
from xarr.functions.elementwise_functions import (
    bitwise_right_shift as bitwise_right_shift,
)
from xarr.functions.elementwise_functions import (
    bitwise_xor as bitwise_xor,
)
from xarr.functions.elementwise_functions import (
    cbrt as cbrt,
)
from xarr.functions.elementwise_functions import (
    ceil as ceil,
)
from xarr.functions.elementwise_functions import (
    clip as clip,
)
from xarr.functions.elementwise_functions import (
    conj as conj,
)
from xarr.functions.elementwise_functions import (
    conjugate as conjugate,
)
from xarr.functions.elementwise_functions import (
    copysign as copysign,
)
from xarr.functions.elementwise_functions import (
    cos as cos,
)
from xarr.functions.elementwise_functions import (
    cosh as cosh,
)
from xarr.functions.elementwise_functions import (
    deg2rad as deg2rad,
)
from xarr.functions.elementwise_functions import (
    degrees as degrees,
)
from xarr.functions.elementwise_functions import (
    divide as divide,
)
from xarr.functions.elementwise_functions import (
    divmod as divmod,
)
from xarr.functions.elementwise_functions import (
    equal as equal,
)
from xarr.functions.elementwise_functions import (
    exp as exp,
)
from xarr.functions.elementwise_functions import (
    exp2 as exp2,
)
from xarr.functions.elementwise_functions import (
    expm1 as expm1,
)
from xarr.functions.elementwise_functions import (
    fabs as fabs,
)
from xarr.functions.elementwise_functions import (
    fix as fix,
)
from xarr.functions.elementwise_functions import (
    floor as floor,
)
from xarr.functions.elementwise_functions import (
    floor_divide as floor_divide,
)
from xarr.functions.elementwise_functions import (
    fmax as fmax,
)
from xarr.functions.elementwise_functions import (
    fmin as fmin,
)
from xarr.functions.elementwise_functions import (
    fmod as fmod,
)
from xarr.functions.elementwise_functions import (
    greater as greater,
)
from xarr.functions.elementwise_functions import (
    greater_equal as greater_equal,
)
from xarr.functions.elementwise_functions import (
    hypot as hypot,
)
from xarr.functions.elementwise_functions import (
    imag as imag,
)
from xarr.functions.elementwise_functions import (
    invert as invert,
)
from xarr.functions.elementwise_functions import (
    isfinite as isfinite,
)
from xarr.functions.elementwise_functions import (
    isinf as isinf,
)
from xarr.functions.elementwise_functions import (
    isnan as isnan,
)
from xarr.functions.elementwise_functions import (
    left_shift as left_shift,
)
from xarr.functions.elementwise_functions import (
    less as less,
)
from xarr.functions.elementwise_functions import (
    less_equal as less_equal,
)
from xarr.functions.elementwise_functions import (
    log as log,
)
from xarr.functions.elementwise_functions import (
    log1p as log1p,
)
from xarr.functions.elementwise_functions import (
    log2 as log2,
)
from xarr.functions.elementwise_functions import (
    log10 as log10,
)
from xarr.functions.elementwise_functions import (
    logaddexp as logaddexp,
)
from xarr.functions.elementwise_functions import (
    logical_and as logical_and,
)
from xarr.functions.elementwise_functions import (
    logical_not as logical_not,
)
from xarr.functions.elementwise_functions import (
    logical_or as logical_or,
)
from xarr.functions.elementwise_functions import (
    logical_xor as logical_xor,
)
from xarr.functions.elementwise_functions import (
    maximum as maximum,
)
from xarr.functions.elementwise_functions import (
    minimum as minimum,
)
from xarr.functions.elementwise_functions import (
    mod as mod,
)
from xarr.functions.elementwise_functions import (
    multiply as multiply,
)
from xarr.functions.elementwise_functions import (
    negative as negative,
)
from xarr.functions.elementwise_functions import (
    nextafter as nextafter,
)
from xarr.functions.elementwise_functions import (
    not_equal as not_equal,
)
from xarr.functions.elementwise_functions import (
    positive as positive,
)
from xarr.functions.elementwise_functions import (
    pow as pow,
)
from xarr.functions.elementwise_functions import (
    power as power,
)
from xarr.functions.elementwise_functions import (
    rad2deg as rad2deg,
)
from xarr.functions.elementwise_functions import (
    radians as radians,
)
from xarr.functions.elementwise_functions import (
    real as real,
)
from xarr.functions.elementwise_functions import (
    reciprocal as reciprocal,
)
from xarr.functions.elementwise_functions import (
    remainder as remainder,
)
from xarr.functions.elementwise_functions import (
    right_shift as right_shift,
)
from xarr.functions.elementwise_functions import (
    rint as rint,
)
from xarr.functions.elementwise_functions import (
    round as round,
)
from xarr.functions.elementwise_functions import (
    sign as sign,
)
from xarr.functions.elementwise_functions import (
    signbit as signbit,
)
from xarr.functions.elementwise_functions import (
    sin as sin,
)
from xarr.functions.elementwise_functions import (
    sinh as sinh,
)
from xarr.functions.elementwise_functions import (
    sqrt as sqrt,
)
from xarr.functions.elementwise_functions import (
    square as square,
)
from xarr.functions.elementwise_functions import (
    subtract as subtract,
)
from xarr.functions.elementwise_functions import (
    tan as tan,
)
from xarr.functions.elementwise_functions import (
    tanh as tanh,
)
from xarr.functions.elementwise_functions import (
    true_divide as true_divide,
)
from xarr.functions.elementwise_functions import (
    trunc as trunc,
)
from xarr.functions.linear_algebra_functions import (
    dot as dot,
)
from xarr.functions.linear_algebra_functions import (
    inner as inner,
)
from xarr.functions.linear_algebra_functions import (
    matmul as matmul,
)
from xarr.functions.linear_algebra_functions import (
    outer as outer,
)
from xarr.functions.linear_algebra_functions import (
    tensordot as tensordot,
)
from xarr.functions.linear_algebra_functions import (
    vdot as vdot,
)
from xarr.functions.linear_algebra_functions import (
    vecdot as vecdot,
)
from xarr.functions.manipulation_functions import (
    array_split as array_split,
)
from xarr.functions.manipulation_functions import (
    atleast_1d as atleast_1d,
)
from xarr.functions.manipulation_functions import (
    atleast_2d as atleast_2d,
)
from xarr.functions.manipulation_functions import (
    atleast_3d as atleast_3d,
)
from xarr.functions.manipulation_functions import (
    broadcast_arrays as broadcast_arrays,
)
from xarr.functions.manipulation_functions import (
    broadcast_to as broadcast_to,
)
from xarr.functions.manipulation_functions import (
    column_stack as column_stack,
)
from xarr.functions.manipulation_functions import (
    concat as concat,
)
from xarr.functions.manipulation_functions import (
    concatenate as concatenate,
)
from xarr.functions.manipulation_functions import (
    dsplit as dsplit,
)
from xarr.functions.manipulation_functions import (
    dstack as dstack,
)
from xarr.functions.manipulation_functions import (
    expand_dims as expand_dims,
)
from xarr.functions.manipulation_functions import (
    flip as flip,
)
from xarr.functions.manipulation_functions import (
    fliplr as fliplr,
)
from xarr.functions.manipulation_functions import (
    flipud as flipud,
)
from xarr.functions.manipulation_functions import (
    hsplit as hsplit,
)
from xarr.functions.manipulation_functions import (
    hstack as hstack,
)
from xarr.functions.manipulation_functions import (
    matrix_transpose as matrix_transpose,
)
from xarr.functions.manipulation_functions import (
    moveaxis as moveaxis,
)
from xarr.functions.manipulation_functions import (
    pad as pad,
)
from xarr.functions.manipulation_functions import (
    permute_dims as permute_dims,
)
from xarr.functions.manipulation_functions import (
    ravel as ravel,
)
from xarr.functions.manipulation_functions import (
    repeat as repeat,
)
from xarr.functions.manipulation_functions import (
    reshape as reshape,
)
from xarr.functions.manipulation_functions import (
    roll as roll,
)
from xarr.functions.manipulation_functions import (
    rot90 as rot90,
)
from xarr.functions.manipulation_functions import (
    split as split,
)
from xarr.functions.manipulation_functions import (
    squeeze as squeeze,
)
from xarr.functions.manipulation_functions import (
    stack as stack,
)
from xarr.functions.manipulation_functions import (
    swapaxes as swapaxes,
)
from xarr.functions.manipulation_functions import (
    tile as tile,
)
from xarr.functions.manipulation_functions import (
    transpose as transpose,
)
from xarr.functions.manipulation_functions import (
    unstack as unstack,
)
from xarr.functions.manipulation_functions import (
    vsplit as vsplit,
)
from xarr.functions.manipulation_functions import (
    vstack as vstack,
)
from xarr.functions.searching_functions import (
    argmax as argmax,
)
from xarr.functions.searching_functions import (
    argmin as argmin,
)
from xarr.functions.searching_functions import (
    where as where,
)
from xarr.functions.sorting_functions import (
    argsort as argsort,
)
from xarr.functions.sorting_functions import (
    sort as sort,
)
from xarr.functions.statistical_functions import (
    INT64 as INT64,
)
from xarr.functions.statistical_functions import (
    all as all,
)
from xarr.functions.statistical_functions import (
    amax as amax,
)
from xarr.functions.statistical_functions import (
    amin as amin,
)
from xarr.functions.statistical_functions import (
    any as any,
)
from xarr.functions.statistical_functions import (
    average as average,
)
from xarr.functions.statistical_functions import (
    count_nonzero as count_nonzero,
)
from xarr.functions.statistical_functions import (
    max as max,
)
from xarr.functions.statistical_functions import (
    mean as mean,
)
from xarr.functions.statistical_functions import (
    min as min,
)
from xarr.functions.statistical_functions import (
    prod as prod,
)
from xarr.functions.statistical_functions import (
    ptp as ptp,
)
from xarr.functions.statistical_functions import (
    std as std,
)
from xarr.functions.statistical_functions import (
    sum as sum,
)
from xarr.functions.statistical_functions import (
    var as var,
)
from xarr.functions.utility_functions import (
    allclose as allclose,
)
from xarr.functions.utility_functions import (
    array_equal as array_equal,
)
from xarr.functions.utility_functions import (
    isclose as isclose,
)
from xarr.lazy import evaluate as evaluate
from xarr.lowering import lower as lower
from xarr.make_explicit import make_explicit as make_explicit
from xarr.shapes import Layout as Layout
from xarr.shapes import Shape as Shape

newaxis = None
__version__ = "0.1.0"
