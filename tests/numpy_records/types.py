"""Element types: promotion, limits and kinds."""

from tests.support.functions import DTYPES
from tests.support.numpy_records import Record

_CONVERSIONS = (
    "a float that an integer type cannot hold becomes its nearest number, and NaN 0, where NumPy wraps or gives "
    "what the processor gives; so for `x[i] = v`"
)


def _calls(*texts: str, **options) -> Record:
    return Record(texts, dtypes=("bool",), shapes=((),), inputs=0, **options)


_PAIRS = [(one, other) for one in DTYPES for other in DTYPES]

RECORDS = {
    "astype": Record(
        tuple(f"xp.astype(x, '{dtype}')" for dtype in DTYPES),
        tuple(DTYPES[:-1]),
        special=False,
        limits=(0, 100),
        differs=_CONVERSIONS,
    ),
    "broadcast_shapes": _calls(
        "xp.broadcast_shapes((2, 1), (3,))",
        "xp.broadcast_shapes()",
        "xp.broadcast_shapes((5,), (), (4, 1))",
        "xp.broadcast_shapes(3, (2, 1))",
    ),
    "can_cast": _calls(
        *(f"xp.can_cast('{one}', '{other}')" for one, other in _PAIRS),
        "xp.can_cast('float64', 'float32', casting='same_kind')",
    ),
    "finfo": _calls(
        *(
            f"float(xp.finfo('{dtype}').{field})"
            for dtype in ("float16", "float32", "float64", "complex64")
            for field in ("eps", "max", "min", "smallest_normal", "bits")
        ),
        signature="its parameter has no name",
    ),
    "iinfo": _calls(
        *(
            f"xp.iinfo('{dtype}').{field}"
            for dtype in ("int8", "uint8", "int64", "uint64")
            for field in ("max", "min", "bits")
        ),
        signature="its parameter has no name",
    ),
    "isdtype": _calls(
        "xp.isdtype(np.dtype('int8'), 'integral')",
        "xp.isdtype(np.dtype('int8'), ('real floating', 'bool'))",
        "xp.isdtype(np.dtype('complex64'), np.dtype('complex64'))",
    ),
    "promote_types": _calls(*(f"xp.promote_types('{one}', '{other}')" for one, other in _PAIRS)),
    "result_type": Record(
        ("xp.result_type(x, 3)", "xp.result_type(x, 3.5, 'int16')", "xp.result_type(x, 1j)")
    ),
}
