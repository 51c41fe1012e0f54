"""Questions about element types, shapes and kinds of objects."""

from tests.support.functions import DTYPES
from tests.support.numpy_records import Record


def _calls(*texts: str, **options) -> Record:
    return Record(texts, dtypes=("bool",), shapes=((),), inputs=0, **options)


_KINDS = (
    "integer",
    "floating",
    "inexact",
    "number",
    "generic",
    "complexfloating",
    "unsignedinteger",
    "double",
)

RECORDS = {
    "array_equiv": Record(
        ("xp.array_equiv(x, y)", "xp.array_equiv(x, x[None])", "xp.array_equiv(x, [1, 2])"), inputs=2
    ),
    "common_type": Record(
        ("str(xp.common_type(x))", "str(xp.common_type(x, y, xp.asarray(1.0)))", "str(xp.common_type())"),
        inputs=2,
    ),
    "isscalar": Record(("xp.isscalar(x)", "xp.isscalar(3.1)", "xp.isscalar([3.1])", "xp.isscalar('x')")),
    "issubdtype": _calls(
        *(f"xp.issubdtype('{dtype}', xp.{kind})" for dtype in DTYPES for kind in _KINDS),
        "xp.issubdtype(xp.float32, 'float64')",
        "xp.issubdtype(float, xp.double)",
        "xp.issubdtype(xp.integer, xp.number)",
    ),
    "iterable": Record(("xp.iterable(x)", "xp.iterable([1])", "xp.iterable(2)", "xp.iterable('ab')")),
    "min_scalar_type": _calls(
        *(
            f"str(xp.min_scalar_type({value}))"
            for value in (10, -10, 1e50, 3.1, "True", 2**40, -(2**40), "1j")
        ),
        "str(xp.min_scalar_type(xp.asarray([1, 2])))",
        "str(xp.min_scalar_type(xp.asarray(300)))",
    ),
    "mintypecode": _calls("xp.mintypecode(['d', 'f', 'S'])", "xp.mintypecode('ff')"),
    "ndim": Record(("xp.ndim(x)", "xp.ndim([[1]])", "xp.ndim(3)")),
    "shape": Record(("str(xp.shape(x))", "str(xp.shape([[1]]))", "str(xp.shape(3))")),
    "size": Record(
        ("xp.size(x)", "xp.size(x, 0)", "xp.size(x, (0, -1))", "xp.size([[1, 2]])", "xp.size(x, ())")
    ),
}
