"""xarr: a JAX-style array library over pluggable backends that explains itself."""

import importlib as _importlib
import sys as _sys
import typing as _typing
from math import e as e, inf as inf, nan as nan, pi as pi

from xarr import errors as errors
from xarr.arrays import (
    import_hooks as _import_hooks,
)
from xarr.base import absent_names as _absent
from xarr.base.configuration import (
    current as _config,
)
from xarr.base.late_names import (
    LATE_MODULES as _LATE_MODULES,
)
from xarr.base.names import (
    public_names as _public_names,
)

# What is imported when it is first asked for: `python docs/make_late_names.py` makes a table of it.
if _typing.TYPE_CHECKING:
    from xarr import (
        debug as debug,
        distributed as distributed,
        emath as emath,
        fft as fft,
        lax as lax,
        lib as lib,
        linalg as linalg,
        polynomial as polynomial,
        puzzles as puzzles,
        random as random,
        stablehlo as stablehlo,
        tree as tree,
        tree_util as tree_util,
    )
    from xarr.arrays.array import (
        Array as Array,
    )
    from xarr.backend import (
        get_backend as get_backend,
        set_backend as set_backend,
        use_backend as use_backend,
    )
    from xarr.broadcast_trace import trace_broadcasts as trace_broadcasts
    from xarr.doctor import show_config as show_config, show_runtime as show_runtime
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
    from xarr.explainers.collective import explain_collective as explain_collective
    from xarr.explainers.explicit_program import make_explicit as make_explicit
    from xarr.explainers.gathers.gather import (
        explain_gather as explain_gather,
        explain_scatter as explain_scatter,
    )
    from xarr.explainers.index import explain_index as explain_index
    from xarr.explainers.layout import explain_layout as explain_layout
    from xarr.explainers.products import explain_einsum as explain_einsum, explain_matmul as explain_matmul
    from xarr.explainers.program import explain as explain, explain_broadcast as explain_broadcast
    from xarr.explainers.promotion import explain_dtype as explain_dtype
    from xarr.explainers.reduction import explain_reduce as explain_reduce
    from xarr.explainers.windows import explain_window as explain_window
    from xarr.numpy_api.creation.arrays import *
    from xarr.numpy_api.creation.existing_data import *
    from xarr.numpy_api.creation.logarithmic_ranges import *
    from xarr.numpy_api.creation.matrices import *
    from xarr.numpy_api.data_types.dtype_routines import *
    from xarr.numpy_api.data_types.inspection import *
    from xarr.numpy_api.data_types.scalar_types import *
    from xarr.numpy_api.functional.mapping import *
    from xarr.numpy_api.indexing_routines.assignment import *
    from xarr.numpy_api.indexing_routines.conditions import *
    from xarr.numpy_api.indexing_routines.diagonals import *
    from xarr.numpy_api.indexing_routines.index_builders import *
    from xarr.numpy_api.indexing_routines.iterators import *
    from xarr.numpy_api.indexing_routines.selection import *
    from xarr.numpy_api.input_output.files import *
    from xarr.numpy_api.input_output.text import *
    from xarr.numpy_api.linear_algebra.einsum import *
    from xarr.numpy_api.linear_algebra.products import *
    from xarr.numpy_api.manipulation.adding_and_removing import *
    from xarr.numpy_api.manipulation.joining import *
    from xarr.numpy_api.manipulation.padding import *
    from xarr.numpy_api.manipulation.rearranging import *
    from xarr.numpy_api.manipulation.shapes import *
    from xarr.numpy_api.manipulation.splitting import *
    from xarr.numpy_api.manipulation.tiling import *
    from xarr.numpy_api.mathematics.bits import *
    from xarr.numpy_api.mathematics.complex_numbers import *
    from xarr.numpy_api.mathematics.differences import *
    from xarr.numpy_api.mathematics.division import *
    from xarr.numpy_api.mathematics.elementwise import *
    from xarr.numpy_api.mathematics.float_errors import *
    from xarr.numpy_api.mathematics.floating_point import *
    from xarr.numpy_api.mathematics.logic import *
    from xarr.numpy_api.mathematics.rounding import *
    from xarr.numpy_api.mathematics.special_functions import *
    from xarr.numpy_api.mathematics.window_functions import *
    from xarr.numpy_api.polynomials.arithmetic import *
    from xarr.numpy_api.polynomials.roots_and_fits import *
    from xarr.numpy_api.sorting.searching import *
    from xarr.numpy_api.sorting.sets import *
    from xarr.numpy_api.sorting.sorting import *
    from xarr.numpy_api.statistics.correlations import *
    from xarr.numpy_api.statistics.histograms import *
    from xarr.numpy_api.statistics.nan_reductions import *
    from xarr.numpy_api.statistics.order_statistics import *
    from xarr.numpy_api.statistics.reductions import *
    from xarr.polynomial._series import poly1d as poly1d
    from xarr.runtime.materialisation import (
        block_until_ready as block_until_ready,
        evaluate as evaluate,
    )
    from xarr.shapes import (
        Layout as Layout,
        Shape as Shape,
    )
    from xarr.transforms.batching.vmap import vmap as vmap
    from xarr.transforms.callbacks import effects_barrier as effects_barrier, pure_callback as pure_callback
    from xarr.transforms.jit import eval_shape as eval_shape, jit as jit
    from xarr.transforms.lowering import (
        ShapeDtypeStruct as ShapeDtypeStruct,
        lower as lower,
    )
    from xarr.transforms.sharding.pmap import pmap as pmap
    from xarr.transforms.sharding.shard_map import shard_map as shard_map

    # What an import gives another name is not exported to type checkers, what is assigned is.
    ndarray = Array
    bool = bool_

config = _config
newaxis = None
euler_gamma = 0.5772156649015329
__array_api_version__ = "2025.12"
__version__ = "0.1.0"

#: Names that are others of what has a name already.
_ALIASES: _typing.Final = {"ndarray": "Array", "bool": "bool_"}

_LATE: _typing.Final = {name: module for module, names in _LATE_MODULES.items() for name in names or [module]}

#: The modules below `xarr` that users reach as its attributes; all others are its own affair.
_PUBLIC_MODULES: _typing.Final = frozenset(
    {"errors", *(module for module, names in _LATE_MODULES.items() if not names)}
)

if not _typing.TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker

    def __getattr__(name: str) -> object:
        if name == "__all__":  # for `from xarr import *`, which else has not what is imported late
            return [each for each in __dir__() if not each.startswith("_")]
        own_name = _ALIASES.get(name, name)
        module = _LATE.get(own_name)
        imported = _sys._getframe(1).f_code.co_name == "_handle_fromlist"  # by `from xarr import name`
        if module != own_name and not (module is None and (imported or name.startswith("_"))):
            # First the class of Arrays with all that it stands on: what is loaded does not depend on the first name.
            _importlib.import_module("xarr.arrays.array")
        if module is None:
            if name in globals():  # a module that was loaded just now
                return globals()[name]
            raise _absent.missing("xarr", name)
        loaded = _importlib.import_module(f"xarr.{module}")
        value = globals()[name] = loaded if module == own_name else getattr(loaded, own_name)
        return value


def __dir__() -> list[str]:
    return _public_names(globals(), (*_LATE, *_ALIASES, *_PUBLIC_MODULES))


_import_hooks.install()
