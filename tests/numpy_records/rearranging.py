"""Elements added, taken out, repeated and put together anew."""

from tests.support.numpy_records import Record

RECORDS = {
    "append": Record(
        ("xp.append(x, y)", "xp.append(x, 1)", "xp.append(x, y, axis=0)", "xp.append(x, y, -1)"), inputs=2
    ),
    "block": Record(
        (
            "xp.block(x)",
            "xp.block([x, y])",
            "xp.block([[x, y], [y, x]])",
            "xp.block([[[x], [y]], [[x], [x]]])",
            "xp.block([[x.ravel(), 1], [x.ravel(), 2.5]])",
        ),
        inputs=2,
    ),
    "delete": Record(
        (
            "xp.delete(x, 0)",
            "xp.delete(x, -1, axis=0)",
            "xp.delete(x, 2, axis=1)",
            "xp.delete(x, [0, 2, 0])",
            "xp.delete(x, [0, 2], axis=-1)",
            "xp.delete(x, slice(None, None, 2))",
            "xp.delete(x, slice(2, 0, -1), axis=0)",
            "xp.delete(x, slice(5, 2))",
            "xp.delete(x, [])",
            "xp.delete(x, [True, False, True], axis=0)",
            "xp.delete(x, np.arange(x.size) % 2 == 0)",
            "xp.delete(x, [3])",
        ),
    ),
    "insert": Record(
        (
            "xp.insert(x, 1, 7)",
            "xp.insert(x, 0, [1, 0, 1])",
            "xp.insert(x, -1, 0, axis=0)",
            "xp.insert(x, 1, x, axis=-1)",
            "xp.insert(x, 1, [[1], [0], [1]], axis=1)",
            "xp.insert(x, [1], [[1], [0], [1]], axis=1)",
            "xp.insert(x, [0, 1, 1, -1], 1)",
            "xp.insert(x, [1, 0], [3, 4])",
            "xp.insert(x, [0, 2], 1, axis=0)",
            "xp.insert(x, slice(0, 3, 2), [1, 2])",
            "xp.insert(x, slice(0, 1), 1)",
            "xp.insert(x, np.array([True, False, True]), 1, axis=0)",
            "xp.insert(x, [], [])",
            "xp.insert(x, x.size, 1)",
        )
    ),
    "resize": Record(
        ("xp.resize(x, 7)", "xp.resize(x, (2, 5))", "xp.resize(x, (0, 3))", "xp.resize(x, ())"),
    ),
    "rollaxis": Record(
        ("xp.rollaxis(x, 1)", "xp.rollaxis(x, -1)", "xp.rollaxis(x, 0, 2)", "xp.rollaxis(x, 2, -1)"),
    ),
    "trim_zeros": Record(
        (
            "xp.trim_zeros(x * (np.arange(x.size).reshape(x.shape) > 1))",
            "xp.trim_zeros(x, 'f')",
            "xp.trim_zeros(np.zeros(3) * 0, 'f')",
            "xp.trim_zeros(np.pad(np.asarray(x), 2))",
            "xp.trim_zeros(np.pad(np.asarray(x), 2), 'B')",
            "xp.trim_zeros(np.pad(np.asarray(x), 2), axis=0)",
            "xp.trim_zeros(np.pad(np.asarray(x), 2), 'f', axis=(0, -1))",
        )
    ),
}
