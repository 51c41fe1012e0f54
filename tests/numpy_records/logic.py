"""Comparisons of whole arrays."""

from tests.support.numpy_records import Record

RECORDS = {
    "allclose": Record(
        ("xp.allclose(x, y)", "xp.allclose(x, x, equal_nan=True)", "xp.allclose(x, y, atol=20)"), inputs=2
    ),
    "array_equal": Record(
        ("xp.array_equal(x, y)", "xp.array_equal(x, x, equal_nan=True)", "xp.array_equal(x, x)"), inputs=2
    ),
}
