"""Bits and digits."""

from tests.support.numpy_records import Record


def _of_python(*calls: str) -> Record:
    return Record(calls, dtypes=("bool",), shapes=((),), inputs=0)


RECORDS = {
    "bitwise_count": Record(("xp.bitwise_count(x)",)),
    "packbits": Record(
        (
            "xp.packbits(x)",
            "xp.packbits(x, axis=0)",
            "xp.packbits(x, -1, 'little')",
            "xp.packbits(x, bitorder='little')",
        ),
        shapes=((0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 9), (17, 2)),
    ),
    "unpackbits": Record(
        (
            "xp.unpackbits(x)",
            "xp.unpackbits(x, axis=0, count=5)",
            "xp.unpackbits(x, -1, -3)",
            "xp.unpackbits(x, count=70, bitorder='little')",
        ),
        shapes=((0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 9)),
    ),
    "base_repr": _of_python(
        "xp.base_repr(0)", "xp.base_repr(-37, 3)", "xp.base_repr(255, 16, 3)", "xp.base_repr(np.int8(-5))"
    ),
    "binary_repr": _of_python(
        "xp.binary_repr(0, 4)",
        "xp.binary_repr(-5)",
        "xp.binary_repr(-5, width=6)",
        "xp.binary_repr(np.uint8(200))",
    ),
}
