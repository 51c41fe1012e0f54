"""xarr: a JAX-style array library over pluggable backends that explains itself."""

import importlib as _importlib
import typing as _typing
from math import e as e, inf as inf, nan as nan, pi as pi

from xarr import (
    lax as lax,
)
from xarr.arrays import (
    import_hooks as _import_hooks,
)
from xarr.arrays.array import (
    Array as Array,
)
from xarr.backend import (
    get_backend as get_backend,
    set_backend as set_backend,
    use_backend as use_backend,
)
from xarr.base import (
    absent as _absent,
)
from xarr.base.configuration import (
    current as _config,
)
from xarr.base.names import (
    public_names as _public_names,
)
from xarr.dtypes import (
    bfloat16 as bfloat16,
    bool_ as bool_,
    complex64 as complex64,
    complex128 as complex128,
    float4_e2m1fn as float4_e2m1fn,
    float6_e2m3fn as float6_e2m3fn,
    float6_e3m2fn as float6_e3m2fn,
    float8_e3m4 as float8_e3m4,
    float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int2 as int2,
    int4 as int4,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint2 as uint2,
    uint4 as uint4,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from xarr.numpy_api.creation.arrays import (
    arange as arange,
    array as array,
    asarray as asarray,
    copy as copy,
    empty as empty,
    empty_like as empty_like,
    from_dlpack as from_dlpack,
    full as full,
    full_like as full_like,
    linspace as linspace,
    meshgrid as meshgrid,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from xarr.numpy_api.creation.matrices import (
    diag as diag,
    eye as eye,
    identity as identity,
    tri as tri,
    tril as tril,
    triu as triu,
)
from xarr.numpy_api.data_types.conversion import (
    astype as astype,
    broadcast_shapes as broadcast_shapes,
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    promote_types as promote_types,
    result_type as result_type,
)
from xarr.numpy_api.indexing_routines.selection import (
    choose as choose,
    compress as compress,
    take as take,
    take_along_axis as take_along_axis,
)
from xarr.numpy_api.linear_algebra.products import (
    cross as cross,
    dot as dot,
    inner as inner,
    kron as kron,
    matmul as matmul,
    matvec as matvec,
    outer as outer,
    tensordot as tensordot,
    vdot as vdot,
    vecdot as vecdot,
    vecmat as vecmat,
)
from xarr.numpy_api.manipulation.shapes import (
    array_split as array_split,
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays,
    broadcast_to as broadcast_to,
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    dsplit as dsplit,
    dstack as dstack,
    expand_dims as expand_dims,
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    hsplit as hsplit,
    hstack as hstack,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    ravel as ravel,
    repeat as repeat,
    reshape as reshape,
    roll as roll,
    rot90 as rot90,
    split as split,
    squeeze as squeeze,
    stack as stack,
    swapaxes as swapaxes,
    tile as tile,
    transpose as transpose,
    unstack as unstack,
    vsplit as vsplit,
    vstack as vstack,
)
from xarr.numpy_api.mathematics.comparisons import (
    allclose as allclose,
    array_equal as array_equal,
    diff as diff,
    isclose as isclose,
)
from xarr.numpy_api.mathematics.division import (
    divmod as divmod,
    floor_divide as floor_divide,
    fmod as fmod,
    mod as mod,
    remainder as remainder,
)
from xarr.numpy_api.mathematics.elementwise import (
    abs as abs,
    absolute as absolute,
    acos as acos,
    acosh as acosh,
    add as add,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    around as around,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    cbrt as cbrt,
    ceil as ceil,
    clip as clip,
    conj as conj,
    conjugate as conjugate,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    divide as divide,
    equal as equal,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    fabs as fabs,
    fix as fix,
    floor as floor,
    fmax as fmax,
    fmin as fmin,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    imag as imag,
    invert as invert,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    power as power,
    rad2deg as rad2deg,
    radians as radians,
    real as real,
    reciprocal as reciprocal,
    right_shift as right_shift,
    rint as rint,
    round as round,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    true_divide as true_divide,
    trunc as trunc,
)
from xarr.numpy_api.sorting.searching import (
    argmax as argmax,
    argmin as argmin,
    argwhere as argwhere,
    flatnonzero as flatnonzero,
    nonzero as nonzero,
    searchsorted as searchsorted,
    where as where,
)
from xarr.numpy_api.sorting.sorting import (
    argsort as argsort,
    sort as sort,
)
from xarr.numpy_api.statistics.reductions import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    average as average,
    count_nonzero as count_nonzero,
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    ptp as ptp,
    std as std,
    sum as sum,
    var as var,
)
from xarr.runtime.materialisation import (
    block_until_ready as block_until_ready,
    evaluate as evaluate,
)
from xarr.shapes import (
    Layout as Layout,
    Shape as Shape,
)
from xarr.transforms.lowering import (
    ShapeDtypeStruct as ShapeDtypeStruct,
    lower as lower,
)

if _typing.TYPE_CHECKING:
    from xarr import (
        debug as debug,
        emath as emath,
        errors as errors,
        fft as fft,
        lib as lib,
        linalg as linalg,
        polynomial as polynomial,
        random as random,
        stablehlo as stablehlo,
        tree as tree,
        tree_util as tree_util,
    )
    from xarr.doctor import show_config as show_config, show_runtime as show_runtime
    from xarr.explainers.explicit_program import make_explicit as make_explicit
    from xarr.explainers.gather import explain_gather as explain_gather, explain_scatter as explain_scatter
    from xarr.explainers.index import explain_index as explain_index
    from xarr.explainers.program import explain as explain, explain_broadcast as explain_broadcast
    from xarr.numpy_api.creation.sources import *
    from xarr.numpy_api.data_types.inspection import __array_namespace_info__ as __array_namespace_info__
    from xarr.numpy_api.data_types.questions import *
    from xarr.numpy_api.data_types.scalar_types import *
    from xarr.numpy_api.functional.mapping import *
    from xarr.numpy_api.indexing_routines.assignment import *
    from xarr.numpy_api.indexing_routines.conditions import *
    from xarr.numpy_api.indexing_routines.diagonals import (
        diagflat as diagflat,
        diagonal as diagonal,
        trace as trace,
    )
    from xarr.numpy_api.indexing_routines.index_builders import *
    from xarr.numpy_api.indexing_routines.iterators import *
    from xarr.numpy_api.input_output.files import *
    from xarr.numpy_api.input_output.text import *
    from xarr.numpy_api.linear_algebra.einsum import einsum as einsum, einsum_path as einsum_path
    from xarr.numpy_api.manipulation.adding_and_removing import *
    from xarr.numpy_api.manipulation.padding import *
    from xarr.numpy_api.mathematics.bits import *
    from xarr.numpy_api.mathematics.differences import *
    from xarr.numpy_api.mathematics.float_errors import *
    from xarr.numpy_api.mathematics.floating_point import *
    from xarr.numpy_api.mathematics.further_elementwise import *
    from xarr.numpy_api.mathematics.logic import *
    from xarr.numpy_api.mathematics.window_functions import *
    from xarr.numpy_api.polynomials.arithmetic import *
    from xarr.numpy_api.polynomials.roots_and_fits import *
    from xarr.numpy_api.sorting.sets import *
    from xarr.numpy_api.statistics.correlations import *
    from xarr.numpy_api.statistics.histograms import *
    from xarr.numpy_api.statistics.nan_reductions import *
    from xarr.numpy_api.statistics.order_statistics import *
    from xarr.polynomial._host import poly1d as poly1d
    from xarr.transforms.callbacks import effects_barrier as effects_barrier, pure_callback as pure_callback
    from xarr.transforms.jit import eval_shape as eval_shape, jit as jit

# What an import gives another name is not exported to type checkers, what is assigned is.
ndarray = Array
config = _config
bool = bool_
newaxis = None
euler_gamma = 0.5772156649015329
__array_api_version__ = "2025.12"
__version__ = "0.1.0"

#: What is imported when it is first asked for, so that `import xarr` stays short: from a module below
#: `xarr` to the names it gives, "" if the module itself is the name.
_LATE_MODULES: _typing.Final = {
    "explainers.explicit_program": "make_explicit",
    "explainers.gather": "explain_gather explain_scatter",
    "explainers.index": "explain_index",
    "explainers.program": "explain explain_broadcast",
    "debug": "",
    "doctor": "show_config show_runtime",
    "fft": "",
    "numpy_api.indexing_routines.diagonals": "diagflat diagonal trace",
    "numpy_api.linear_algebra.einsum": "einsum einsum_path",
    "numpy_api.data_types.inspection": "__array_namespace_info__",
    "numpy_api.mathematics.bits": "bitwise_count packbits unpackbits",
    "numpy_api.indexing_routines.conditions": "copyto piecewise select",
    "numpy_api.statistics.correlations": "convolve corrcoef correlate cov",
    "numpy_api.creation.sources": (
        "asanyarray asarray_chkfinite ascontiguousarray asfortranarray frombuffer fromfile fromfunction "
        "fromiter fromstring geomspace logspace require vander"
    ),
    "numpy_api.mathematics.differences": "ediff1d gradient interp trapezoid unwrap",
    "numpy_api.input_output.files": "genfromtxt load loadtxt save savetxt savez savez_compressed",
    "numpy_api.mathematics.float_errors": "errstate geterr seterr",
    "numpy_api.mathematics.floating_point": "frexp ldexp modf spacing",
    "numpy_api.functional.mapping": "apply_along_axis apply_over_axes broadcast vectorize",
    "numpy_api.statistics.histograms": (
        "bincount digitize histogram histogram2d histogram_bin_edges histogramdd"
    ),
    "numpy_api.indexing_routines.index_builders": (
        "c_ diag_indices diag_indices_from index_exp indices ix_ mask_indices mgrid ogrid r_ "
        "ravel_multi_index s_ tril_indices tril_indices_from triu_indices triu_indices_from unravel_index"
    ),
    "numpy_api.indexing_routines.iterators": "ndenumerate ndindex nditer",
    "numpy_api.mathematics.logic": "iscomplex iscomplexobj isneginf isposinf isreal isrealobj",
    "numpy_api.mathematics.further_elementwise": (
        "angle float_power gcd heaviside i0 lcm logaddexp2 nan_to_num real_if_close sinc"
    ),
    "numpy_api.statistics.nan_reductions": (
        "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod "
        "nanquantile nanstd nansum nanvar"
    ),
    "numpy_api.statistics.order_statistics": (
        "argpartition lexsort median partition percentile quantile sort_complex"
    ),
    "numpy_api.manipulation.padding": "pad",
    "numpy_api.indexing_routines.assignment": "extract fill_diagonal place put put_along_axis putmask",
    "numpy_api.polynomials.roots_and_fits": "poly polyfit roots",
    "numpy_api.polynomials.arithmetic": "polyadd polyder polydiv polyint polymul polysub polyval",
    "numpy_api.input_output.text": (
        "array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific "
        "get_printoptions printoptions set_printoptions"
    ),
    "numpy_api.manipulation.adding_and_removing": "append block delete insert resize rollaxis trim_zeros",
    "numpy_api.data_types.scalar_types": (
        "False_ True_ byte cdouble complexfloating csingle double dtype floating generic half inexact "
        "int_ intc integer intp long longlong number short signedinteger single ubyte uint uintc uintp "
        "ulong ulonglong unsignedinteger ushort"
    ),
    "numpy_api.data_types.questions": (
        "array_equiv common_type isscalar issubdtype iterable min_scalar_type mintypecode ndim shape size"
    ),
    "numpy_api.mathematics.window_functions": "bartlett blackman hamming hanning kaiser",
    "numpy_api.sorting.sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values"
    ),
    "emath": "",
    "lib": "",
    "linalg": "",
    "polynomial": "",
    "polynomial._host": "poly1d",
    "random": "",
    "stablehlo": "",
    "tree_util": "",
    "transforms.callbacks": "effects_barrier pure_callback",
    "transforms.jit": "eval_shape jit",
}
_LATE: _typing.Final = {
    name: module for module, names in _LATE_MODULES.items() for name in names.split() or [module]
}


#: The modules below `xarr` that users reach as its attributes; all others are its own affair.
_PUBLIC_MODULES: _typing.Final = frozenset(
    {"errors", "lax", "tree", *(module for module, names in _LATE_MODULES.items() if not names)}
)

if not _typing.TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker

    def __getattr__(name: str) -> object:
        if name == "__all__":  # for `from xarr import *`, which else has not what is imported late
            return [each for each in __dir__() if not each.startswith("_")]
        if name not in _LATE:
            raise _absent.missing("xarr", name)
        module = _importlib.import_module(f"xarr.{_LATE[name]}")
        value = globals()[name] = module if name == _LATE[name] else getattr(module, name)
        return value


def __dir__() -> list[str]:
    return _public_names(globals(), (*_LATE, *_PUBLIC_MODULES))


_import_hooks.install()
