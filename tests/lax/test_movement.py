"""The data-moving functions of `xarr.lax` beside `jax.lax` on the CPU, same arguments, to the bit."""

from __future__ import annotations

from typing import Any, Final

import jax
import numpy as np
import pytest

from tests import compare
from tests.compare import assert_same
from tests.lax.test_elementwise import functions_of, missing
from tests.lax_oracle import Call, Record, check_results
from tests.lax_values import BOOLS, COMPLEXES, FLOAT8, FLOATS, INTS, dtype_of, fill, values
from xarr.lax import movement
from xarr.runtime.materialisation import to_host

ALL: Final = BOOLS + INTS + FLOATS + COMPLEXES + FLOAT8
DType = np.dtype[Any]

#: The shape of the operand and the further arguments.  All run on float32, the first two on every type.
_SHAPED: Final[dict[str, list[tuple[Any, ...]]]] = {
    "broadcast": [
        ((3, 4), (2,)),
        ((), (2, 3)),
        ((0, 3), (2,)),
        ((1,), ()),
        ((2, 1, 3, 1, 2), (0, 2)),
        ((3, 4), ()),
    ],
    "broadcast_in_dim": [
        *(
            ((3,), (2, 3), (1,)),
            ((3, 1), (3, 4), (0, 1)),
            ((), (2, 3), ()),
            ((), (), ()),
            ((3,), (3, 0), (0,)),
        ),
        *(
            ((1, 1), (2, 3, 4), (0, 2)),
            ((0, 3), (2, 0, 3), (1, 2)),
            ((2, 1, 3, 1, 2), (2, 5, 3, 1, 2), (0, 1, 2, 3, 4)),
        ),
    ],
    "collapse": [
        ((3, 4), 0),
        ((2, 1, 3, 1, 2), 1, 4),
        ((2, 1, 3, 1, 2), -3, -1),
        ((2, 3), 0, 1),
        ((0, 3), 0, 2),
    ],
    "expand_dims": [
        ((3, 4), (0,)),
        ((), (0, 1)),
        ((3, 4), (1, 3)),
        ((3,), (-1,)),
        ((0, 3), (0, -1)),
        ((3,), ()),
    ],
    "index_in_dim": [
        *(((3, 4), 1), ((3, 4), -1, 1), ((3, 4), 2, 0, False), ((3, 4), -4, -1, False), ((1,), 0, 0, False)),
        *(((2, 1, 3, 1, 2), 2, 2), ((0, 3), 1, 1)),
    ],
    "reshape": [
        *(
            ((3, 4), (2, 6)),
            ((3, 4), (12,), (1, 0)),
            ((), (1, 1)),
            ((1,), ()),
            ((0, 3), (5, 0)),
            ((3, 4), (3, 4)),
        ),
        *(
            ((2, 1, 3, 1, 2), (4, 3)),
            ((2, 1, 3, 1, 2), (3, 4), (2, 0, 4, 1, 3)),
            ((2, 3, 4), (24,), (2, 1, 0)),
        ),
    ],
    "rev": [
        ((3, 4), (0,)),
        ((3, 4), (0, 1)),
        ((3, 4), ()),
        ((), ()),
        ((0, 3), (0,)),
        ((2, 1, 3, 1, 2), (4, 2, 0)),
    ],
    "slice": [
        *(((3, 4), (1, 0), (3, 3)), ((3, 4), (0, 1), (3, 4), (2, 3)), ((), (), ()), ((0, 3), (0, 1), (0, 2))),
        *(
            ((3, 4), (3, 4), (3, 4)),
            ((7,), (1,), (7,), (4,)),
            ((2, 1, 3, 1, 2), (0, 0, 1, 0, 1), (2, 1, 3, 1, 2)),
        ),
        ((3,), (1,), (1,), (2,)),
    ],
    "slice_in_dim": [
        *(
            ((3, 4), 1, 3),
            ((3, 4), 0, 4, 2, 1),
            ((3, 4), None, None),
            ((3, 4), -2, None),
            ((3, 4), 1, -1, 1, -1),
        ),
        *(((0, 3), 0, 0), ((0, 3), 1, 3, 2, 1), ((7,), None, None, 3)),
    ],
    "split": [
        ((3, 4), (1, 2)),
        ((3, 4), (1, 0, 3), 1),
        ((3, 4), (4,), -1),
        ((0, 3), (0, 0)),
        ((5,), (2, 2, 1)),
    ],
    "squeeze": [
        *(
            ((1, 3), (0,)),
            ((2, 1, 3, 1, 2), (1, 3)),
            ((2, 1, 3, 1, 2), (-2,)),
            ((1, 1), (0, 1)),
            ((3, 4), ()),
        ),
        ((0, 1), (1,)),
    ],
    "transpose": [
        *(((3, 4), (1, 0)), ((2, 1, 3, 1, 2), (4, 2, 0, 1, 3)), ((), ()), ((3,), (0,)), ((0, 3), (1, 0))),
        ((2, 3, 4), (0, 2, 1)),
    ],
}

_PADDINGS: Final[list[tuple[tuple[int, ...], list[tuple[int, int, int]]]]] = [
    ((3, 4), [(1, 2, 0), (0, 1, 2)]),
    ((3, 4), [(-1, 2, 1), (1, -2, 0)]),
    ((), []),
    ((3,), [(0, 0, 0)]),
    ((0, 3), [(2, 1, 3), (0, 0, 1)]),
    ((1,), [(1, 1, 5)]),
    ((5,), [(-2, -3, 0)]),
    ((5,), [(-2, -2, 1)]),
    ((5,), [(-6, 0, 1)]),
    ((5,), [(-7, 9, 1)]),
    ((5,), [(9, -12, 1)]),
    ((5,), [(3, -12, 1)]),
    ((4,), [(-4, 0, 2)]),
    ((2, 1, 3, 1, 2), [(0, 1, 0), (1, 0, 0), (-1, 0, 1), (0, 0, 2), (1, 1, 1)]),
]

_JOINED: Final[list[tuple[list[tuple[int, ...]], int]]] = [
    ([(3, 4), (2, 4)], 0),
    ([(3, 1), (3, 0), (3, 2)], 1),
    ([(5,)], 0),
    ([(0, 3), (0, 3)], 0),
    ([(2, 1, 3, 1, 2), (2, 1, 1, 1, 2)], 2),
]


def _few(dtype: DType, calls: list[Call]) -> list[Call]:
    return calls if dtype == np.float32 else calls[:2]


def _reshape(name: str) -> Record:
    return Record(
        name,
        ALL,
        lambda dtype: _few(dtype, [(fill(shape, dtype), *rest) for shape, *rest in _SHAPED[name]]),
    )


def _paddings(dtype: DType) -> list[Call]:
    value = fill((1,), dtype, 5)[0]
    return _few(dtype, [(fill(shape, dtype), value, config) for shape, config in _PADDINGS])


def _join(dtype: DType) -> list[Call]:
    return _few(
        dtype, [([fill(shape, dtype, k) for k, shape in enumerate(shapes)], dim) for shapes, dim in _JOINED]
    )


RECORDS: Final = (*map(_reshape, _SHAPED), Record("pad", ALL, _paddings), Record("concatenate", ALL, _join))

_CASES: Final = [
    pytest.param(record, dtype, id=f"{record.name}-{dtype}") for record in RECORDS for dtype in record.dtypes
]


@pytest.mark.parametrize(("record", "dtype"), _CASES)
def test_agrees_with_xla(record: Record, dtype: str) -> None:
    def check(call: Call, got: Any, wanted: Any) -> None:
        if not isinstance(got, list):
            got, wanted = [got], [wanted]
        assert len(got) == len(wanted)
        for mine, theirs in zip(got, wanted, strict=True):
            assert_same(mine, theirs)

    check_results(record, dtype, check, compare)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64"])
def test_bits_survive(dtype: str) -> None:
    """NaN payloads, signs of zero and subnormals move unchanged; XLA makes one NaN of all in bfloat16."""
    x = values(dtype_of(dtype))
    moved = {
        "rev": (movement.rev(x, (0,)), x[::-1]),
        "broadcast": (movement.broadcast(x, (2,)), np.stack([x, x])),
        "concatenate": (movement.concatenate([x, x], 0), np.concatenate([x, x])),
        "slice": (movement.slice(x, (1,), (9,)), x[1:9]),
        "pad": (movement.pad(x, x[-1], [(1, 0, 0)]), np.concatenate([x[-1:], x])),
        "reshape": (movement.reshape(x, (1, x.size)), x[None]),
    }
    for name, (got, wanted) in moved.items():
        assert to_host(got).tobytes() == wanted.tobytes(), name


@pytest.mark.parametrize("name", ["transpose", "rev", "slice", "reshape", "pad"])
def test_operands_that_are_not_contiguous(name: str) -> None:
    x = np.arange(48.0).reshape(4, 12)[::-1, ::3].T
    rest: dict[str, tuple[Any, ...]] = {
        "transpose": ((1, 0),),
        "rev": ((1,),),
        "slice": ((1, 0), (3, 4), (1, 2)),
        "reshape": ((2, 8),),
        "pad": (0.0, [(1, 0, 1), (0, -1, 0)]),
    }
    assert_same(getattr(movement, name)(x, *rest[name]), np.asarray(getattr(jax.lax, name)(x, *rest[name])))


def test_every_function_has_a_record() -> None:
    functions = functions_of(movement)
    assert len(functions) == 14
    assert missing(functions, list(RECORDS), {}) == set()


def test_a_function_without_record_is_found() -> None:
    assert missing({"pad", "frobnicate"}, list(RECORDS), {}) == {"frobnicate"}
