"""Bits."""

from tests.support.numpy_records import Record

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
        shapes=((1,), (5,), (3, 4), (2, 9), (2, 3, 2)),
    ),
}
