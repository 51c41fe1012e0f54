"""Shapes, joining, splitting, tiling and turning."""

from tests.support.numpy_records import Record

_RANK_1 = ((1,), (5,), (3, 4), (2, 0, 3), (2, 3, 1, 4))
_RANK_2 = ((3, 4), (2, 0, 3), (2, 3, 1, 4))
_SQUARES = ((2, 2), (4, 4, 3), (2, 4, 6))


def _record(*texts: str, **options) -> Record:
    return Record(texts, **options)


RECORDS = {
    "array_split": _record("xp.array_split(x, 3)", "xp.array_split(x, [1, 2], axis=-1)", shapes=_RANK_1),
    "atleast_1d": _record("xp.atleast_1d(x)", "xp.atleast_1d(x, y)", inputs=2),
    "atleast_2d": _record("xp.atleast_2d(x)", "xp.atleast_2d(x, y)", inputs=2),
    "atleast_3d": _record("xp.atleast_3d(x)", "xp.atleast_3d(x, y)", inputs=2),
    "broadcast_arrays": _record(
        "xp.broadcast_arrays(x, 3)", "xp.broadcast_arrays(x, y[..., None])", inputs=2
    ),
    "broadcast_to": _record("xp.broadcast_to(x, (2, *x.shape))", "xp.broadcast_to(x, x.shape)"),
    "column_stack": _record("xp.column_stack((x, y))", shapes=((5,), (3, 4), (0,)), inputs=2),
    "concat": _record(
        "xp.concat((x, y))", "xp.concat([x, y], axis=-1)", "xp.concat((x, y), axis=None)", inputs=2
    ),
    "concatenate": _record(
        "xp.concatenate((x, y))",
        "xp.concatenate([x, y, x], axis=-1)",
        "xp.concatenate((x, y), axis=None)",
        "xp.concatenate((x, y), dtype='complex64')",
        inputs=2,
    ),
    "dsplit": _record("xp.dsplit(x, 3)", "xp.dsplit(x, [1])", shapes=((2, 4, 6), (1, 0, 3))),
    "dstack": _record("xp.dstack((x, y))", inputs=2),
    "expand_dims": _record("xp.expand_dims(x, 0)", "xp.expand_dims(x, axis=(0, -1))"),
    "flip": _record("xp.flip(x)", "xp.flip(x, 0)", "xp.flip(x, axis=(0, -1))", shapes=_RANK_1),
    "fliplr": _record("xp.fliplr(x)", shapes=_RANK_2),
    "flipud": _record("xp.flipud(x)", shapes=_RANK_1),
    "hsplit": _record("xp.hsplit(x, 2)", "xp.hsplit(x, [1])", shapes=((4,), (2, 4, 6), (3, 2))),
    "hstack": _record("xp.hstack((x, y))", "xp.hstack([x, y], dtype='complex64')", inputs=2),
    "matrix_transpose": _record("xp.matrix_transpose(x)"),
    "moveaxis": _record("xp.moveaxis(x, 0, -1)", "xp.moveaxis(x, (0, 1), (-1, -2))"),
    "permute_dims": _record("xp.permute_dims(x)", "xp.permute_dims(x, axes=(1, 0))"),
    "ravel": _record("xp.ravel(x)"),
    "repeat": _record(
        "xp.repeat(x, 2)", "xp.repeat(x, 3, axis=-1)", "xp.repeat(x, 0, axis=0)", shapes=_RANK_1
    ),
    "reshape": _record("xp.reshape(x, -1)", "xp.reshape(x, (-1, 1))", "xp.reshape(x, (2, 6))"),
    "roll": _record("xp.roll(x, 2)", "xp.roll(x, -1, axis=0)", "xp.roll(x, (1, 2), axis=(0, -1))"),
    "rot90": _record("xp.rot90(x)", "xp.rot90(x, k=-1)", "xp.rot90(x, 2, axes=(-1, 0))", shapes=_RANK_2),
    "split": _record("xp.split(x, 2)", "xp.split(x, [1, 3], axis=-1)", shapes=((4,), *_SQUARES)),
    "squeeze": _record("xp.squeeze(x)", "xp.squeeze(x, axis=2)", "xp.squeeze(x, axis=())"),
    "stack": _record("xp.stack((x, y))", "xp.stack([x, y], axis=-1)", inputs=2),
    "swapaxes": _record("xp.swapaxes(x, 0, -1)"),
    "tile": _record("xp.tile(x, 2)", "xp.tile(x, (2, 1, 3))", "xp.tile(x, ())"),
    "transpose": _record("xp.transpose(x)", "xp.transpose(x, (1, 0))"),
    "unstack": _record("xp.unstack(x)", "xp.unstack(x, axis=-1)"),
    "vsplit": _record("xp.vsplit(x, 2)", "xp.vsplit(x, [1])", shapes=_SQUARES),
    "vstack": _record("xp.vstack((x, y))", inputs=2),
}
