"""Methods and attributes of arrays."""

from tests.support.functions import FLOATS
from tests.support.numpy_records import Record

_CONVERSIONS = (
    "a float that an integer type cannot hold becomes its nearest number, and NaN 0, where NumPy wraps or gives "
    "what the processor gives; so for `x[i] = v`"
)

_CLOSE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-13, "complex64": 2e-5}
_REAL = ("bool", "int8", "uint8", "int64", "uint64", *FLOATS)
_RANK_1 = ((1,), (5,), (3, 4), (2, 3, 1, 4))


def _record(*texts: str, **options) -> Record:
    return Record(tuple(f"x.{text}" for text in texts), **options)


def _reduction(name: str, **options) -> Record:
    calls = (f"{name}()", f"{name}(axis=0)", f"{name}(-1, keepdims=True)")
    options = {"shapes": _RANK_1, "dtypes": _REAL, "special": False, "limits": (-3, 3), **options}
    return _record(*calls, **options)


METHODS = {
    "argpartition": _record(
        "argpartition(1).shape", "argpartition(0, axis=0).dtype", shapes=_RANK_1[1:], differs="all are sorted"
    ),
    "diagonal": _record(
        "diagonal()", "diagonal(1)", "diagonal(-1, axis1=1, axis2=0)", shapes=((3, 4), (2, 3, 1, 4))
    ),
    "searchsorted": _record(
        "searchsorted(0)",
        "searchsorted([-1, 3], side='right')",
        shapes=((1,),),
        dtypes=_REAL[1:],
        special=False,
    ),
    "tobytes": _record("tobytes()", "tobytes('F')", special=False),
    "trace": _record(
        "trace()", "trace(1)", "trace(-1, 1, 0)", shapes=((3, 4), (2, 3, 1, 4)), special=False, rtol=_CLOSE
    ),
    "T": _record("T"),
    "all": _reduction("all"),
    "any": _reduction("any"),
    "argmax": _reduction("argmax"),
    "argmin": _reduction("argmin"),
    "argsort": _record("argsort(kind='stable')", "argsort(0, kind='stable')", shapes=_RANK_1),
    "astype": _record(
        "astype('float32')",
        "astype('bool')",
        "astype('complex64', copy=False)",
        special=False,
        differs=_CONVERSIONS,
    ),
    "clip": _record("clip(1, 5)", "clip(min=2)", "clip(max=3)", dtypes=(*_REAL[1:], "complex64"), rtol=0),
    "conj": _record("conj()", dtypes=(*_REAL[1:], "complex64")),
    "conjugate": _record("conjugate()", dtypes=(*_REAL[1:], "complex64")),
    "cumprod": _record(
        "cumprod()", "cumprod(axis=-1)", shapes=_RANK_1, special=False, limits=(-3, 3), rtol=_CLOSE
    ),
    "cumsum": _record(
        "cumsum()", "cumsum(0, dtype='float64')", shapes=_RANK_1, special=False, limits=(-3, 3), rtol=_CLOSE
    ),
    "dot": _record("dot(y)", shapes=((5,), (3, 3)), inputs=2, special=False, limits=(-9, 9), rtol=_CLOSE),
    "dtype": _record("dtype"),
    "flatten": _record("flatten()"),
    "imag": _record("imag"),
    "item": _record("item()", shapes=((), (1,), (1, 1)), dtypes=("int8", "float64", "bool")),
    "itemsize": _record("itemsize"),
    "mT": _record("mT", shapes=((3, 4), (2, 0, 3))),
    "max": _reduction("max"),
    "mean": _reduction("mean", rtol=_CLOSE),
    "min": _reduction("min"),
    "nbytes": _record("nbytes"),
    "ndim": _record("ndim"),
    "prod": _reduction("prod", rtol=_CLOSE),
    "ravel": _record("ravel()"),
    "real": _record("real"),
    "repeat": _record("repeat(2)", "repeat(3, axis=0)", shapes=_RANK_1),
    "reshape": _record("reshape(-1)", "reshape(-1, 1)", "reshape((2, -1))"),
    "round": _record("round()", "round(1)", "round(decimals=-1)", limits=(-99, 99), dtypes=_REAL[1:]),
    "shape": _record("shape"),
    "size": _record("size"),
    "squeeze": _record("squeeze()", "squeeze(axis=0)", shapes=_RANK_1),
    "std": _reduction("std", rtol=_CLOSE),
    "sum": _reduction("sum", rtol=_CLOSE),
    "swapaxes": _record("swapaxes(0, -1)", shapes=_RANK_1),
    "to_device": _record("to_device(x.device)"),
    "tolist": _record("tolist()", special=False),
    "transpose": _record("transpose()", "transpose(1, 0)", "transpose((1, 0))"),
    "var": _reduction("var", rtol=_CLOSE),
}
RECORDS = {f"ndarray.{name}": record for name, record in METHODS.items()}
