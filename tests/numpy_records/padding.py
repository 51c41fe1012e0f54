"""Padding in every mode."""

from tests.support.numpy_records import Record

RECORDS = {
    "pad": Record(
        (
            "xp.pad(x, 0)",
            "xp.pad(x, 2)",
            "xp.pad(x, (1, 0), constant_values=1)",
            "xp.pad(x, ((1, 2),), constant_values=(1, 0))",
            "xp.pad(x, [(0, 1), (2, 0)], constant_values=[(1, 0), (0, 1)])",
            "xp.pad(x, ((1,), (2,)), constant_values=((1,), (0,)))",
            "xp.pad(x, {-1: (1, 3)}, constant_values=1)",
            "xp.pad(x, 0, mode='empty')",
            "xp.pad(x, 2, mode='edge')",
            "xp.pad(x, (7, 3), mode='reflect')",
            "xp.pad(x, (3, 8), mode='symmetric')",
            "xp.pad(x, (9, 2), mode='wrap')",
            "xp.pad(x, (9, 14), mode='wrap')",
            "xp.pad(x, (9, 14), mode='reflect')",
            "xp.pad(x, (2, 1), 'reflect', reflect_type='even')",
            "xp.pad(x, (2, 5), mode='maximum')",
            "xp.pad(x, (2, 5), mode='maximum', stat_length=2)",
            "xp.pad(x, (2, 5), mode='minimum', stat_length=(1, 2))",
            "xp.pad(x, (2, 1), mode='maximum', stat_length=0)",
        )
    ),
}
