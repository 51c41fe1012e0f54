"""What each operation gives on arrays of dynamic sizes: the operation beside NumPy on the live parts.

A case names its operands' shapes by letters; a letter is a dynamic dimension, a number a static one.
The oracle gets the operands cut to their live sizes and knows nothing of bounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xarr import lax

Host = np.ndarray[Any, Any]
BOUNDS = {"n": 5, "p": 5, "m": 4, "k": 3}


@dataclass(frozen=True)
class Case:
    """One function of `xarr.lax` and what it means.

    * `shapes` - such as "n 3": the operands' dimensions,
    * `function`, `oracle` - from Arrays to an Array, from live NumPy arrays to the wanted live result,
    * `dtype` - the operands' element type,
    * `values` - operands that are not random, by position,
    * `is_defined` - of the live sizes: whether the operation makes sense there,
    * `unlike_xla` - where XLA on the CPU gives no such meaning, what it does instead.
    """

    name: str
    shapes: tuple[str, ...]
    function: Callable[..., Any]
    oracle: Callable[..., Any]
    dtype: str = "float32"
    values: tuple[tuple[int, Any], ...] = ()
    is_defined: Callable[[dict[str, int]], bool] = lambda sizes: True
    unlike_xla: str = ""

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part for shape in self.shapes for part in shape.split() if part in BOUNDS))

    def sizes(self) -> Iterator[dict[str, int]]:
        """Every live size of every letter."""
        for combination in itertools.product(*[range(BOUNDS[letter] + 1) for letter in self.letters]):
            sizes = dict(zip(self.letters, combination, strict=True))
            if self.is_defined(sizes):
                yield sizes

    def arrays(self) -> list[Host]:
        """Operands of the bounds."""
        rng = np.random.default_rng(7)
        values = dict(self.values)
        return [
            values.get(index, _random(rng, _bounds(shape), np.dtype(self.dtype)))
            for index, shape in enumerate(self.shapes)
        ]

    def live(self, arrays: Sequence[Host], sizes: dict[str, int]) -> list[Host]:
        """The operands cut to their live sizes."""
        return [
            array[tuple(slice(sizes.get(part)) for part in shape.split())]
            for array, shape in zip(arrays, self.shapes, strict=True)
        ]

    def poison(self, arrays: Sequence[Host], sizes: dict[str, int]) -> list[Host]:
        """The operands with NaN, or the largest value, where they are dead."""
        result = []
        for array, shape in zip(arrays, self.shapes, strict=True):
            buffer = np.full_like(array, _poison(array.dtype))
            index = tuple(slice(sizes.get(part)) for part in shape.split())
            buffer[index] = array[index]
            result.append(buffer)
        return result

    def apply(self, arrays: Sequence[Any], sizes: dict[str, Any]) -> Any:
        """The function on Arrays, the sizes int32 scalars."""
        operands = []
        for array, shape in zip(arrays, self.shapes, strict=True):
            for dim, part in enumerate(shape.split()):
                if part in BOUNDS:
                    array = lax.set_dimension_size(array, sizes[part], dim)
            operands.append(array)
        return self.function(*operands)


def _bounds(shape: str) -> tuple[int, ...]:
    return tuple(BOUNDS[part] if part in BOUNDS else int(part) for part in shape.split())


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Host:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(1, 50, shape).astype(dtype)
    # Small integers: their sums and products are exact in any order.
    whole = rng.integers(-4, 5, shape)
    return (whole + 1j * rng.integers(-4, 5, shape) if dtype.kind == "c" else whole).astype(dtype)


def _poison(dtype: np.dtype[Any]) -> Any:
    return np.nan if dtype.kind in "fc" else True if dtype.kind == "b" else np.iinfo(dtype).max


def _take(x: Host, starts: Host, size: int) -> Host:
    """Windows of rows at clamped starts; 0 beyond the end."""
    rows = np.concatenate([x, np.zeros((size, *x.shape[1:]), x.dtype)])
    starts_in_bounds = np.clip(starts, 0, max(len(x) - size, 0))
    return (
        np.stack([rows[s : s + size] for s in starts_in_bounds])
        if len(starts_in_bounds)
        else np.zeros((0, size, *x.shape[1:]), x.dtype)
    )


def _scatter_add(x: Host, indices: Host, updates: Host) -> Host:
    result = x.copy()
    for index, update in zip(indices, updates, strict=False):
        if 0 <= index < len(x):
            result[index] += update
    return result


def _update(x: Host, update: Host, *starts: int) -> Host:
    result = x.copy()
    starts_in_bounds = [min(max(s, 0), n - m) for s, n, m in zip(starts, x.shape, update.shape, strict=True)]
    result[tuple(slice(p, p + m) for p, m in zip(starts_in_bounds, update.shape, strict=True))] = update
    return result


def _pairs(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """The product of the affine maps x -> a x + b and x -> c x + d: associative, without inverse."""
    return lax.mul(a, c), lax.add(lax.mul(b, c), d)


def _affine(x: Host, y: Host) -> Host:
    a, b = np.float32(1), np.float32(0)
    for c, d in zip(x, y, strict=True):
        a, b = a * c, b * c + d
    return b


def _joint(a: int, b: int) -> int:
    return b if a == 1 else a if b == 1 else min(a, b)


def _add(x: Host, y: Host) -> Host:
    size = _joint(len(x), len(y))
    return (x if len(x) == 1 else x[:size]) + (y if len(y) == 1 else y[:size])


def _grow(x: Host, width: int) -> Host:
    """The rows that x fills, the last one with zeros."""
    rows = -(-len(x) // width)
    return np.concatenate([x, np.zeros(rows * width - len(x), x.dtype)]).reshape(rows, width)


INDICES = np.array([2, 0, -3, 4, 1], np.int32)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
WINDOWS = lax.GatherDimensionNumbers((1, 2), (), (0,))
SCATTER = lax.ScatterDimensionNumbers((1,), (0,), (0,))

ELEMENTWISE = [
    Case("add", ("n", "n"), lax.add, np.add),
    Case("add_static", ("n", "5"), lax.add, lambda x, y: x + y[: len(x)]),
    Case("static_add", ("3 5", "3 n"), lax.add, lambda x, y: x[:, : y.shape[1]] + y),
    Case("add_scalar", ("n 2",), lambda x: lax.add(x, 1.5), lambda x: x + np.float32(1.5)),
    Case("add_two_sizes", ("n", "p"), lax.add, _add),
    Case("compare", ("n", "5"), lax.lt, lambda x, y: x < y[: len(x)]),
    Case(
        "select",
        ("n", "n", "5"),
        lambda x, y, z: lax.select(lax.gt(x, 0.0), y, z),
        lambda x, y, z: np.where(x > 0, y, z[: len(x)]),
    ),
    Case(
        "clamp",
        ("n 2", "5 2", "n 2"),
        lax.clamp,
        lambda x, y, z: np.minimum(np.maximum(y[: len(x)], x), z),
        unlike_xla="it takes the size of the middle operand alone",
    ),
    Case("negate", ("n m",), lax.neg, np.negative),
    Case("convert", ("n",), lambda x: lax.convert_element_type(x, np.int32), lambda x: x.astype(np.int32)),
    Case("bitcast", ("n",), lambda x: lax.bitcast_convert_type(x, np.int32), lambda x: x.view(np.int32)),
    Case(
        "bitcast_narrow",
        ("n",),
        lambda x: lax.bitcast_convert_type(x, np.uint8),
        lambda x: np.ascontiguousarray(x).view(np.uint8).reshape(len(x), 4),
        unlike_xla="unimplemented",
    ),
    Case(
        "bitcast_wide",
        ("n 2",),
        lambda x: lax.bitcast_convert_type(x, np.float64),
        lambda x: np.ascontiguousarray(x).view(np.float64).reshape(len(x)),
        "int32",
        unlike_xla="unimplemented",
    ),
    Case("reduce_precision", ("n",), lambda x: lax.reduce_precision(x, 5, 2), lambda x: x),
    Case(
        "map",
        ("n", "5"),
        lambda x, y: lax.map_elements(lambda a, b: lax.add(lax.mul(a, b), 1.0), x, y),
        lambda x, y: x * y[: len(x)] + np.float32(1),
    ),
    Case("complex", ("n", "n"), lax.complex, lambda x, y: (x + 1j * y).astype(np.complex64)),
    Case(
        "barrier",
        ("n", "3"),
        lambda x, y: lax.optimization_barrier((y, x))[1],
        lambda x, y: x,
        unlike_xla="unimplemented",
    ),
]

MOVES = [
    Case(
        "broadcast_in_dim",
        ("n",),
        lambda x: lax.broadcast_in_dim(x, (3, 5, 2), (1,)),
        lambda x: np.broadcast_to(x[None, :, None], (3, len(x), 2)),
    ),
    Case("transpose", ("n 3 m",), lambda x: lax.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    Case("rev", ("n 3 m",), lambda x: lax.rev(x, (0, 1, 2)), lambda x: x[::-1, ::-1, ::-1]),
    Case("rev_other", ("n 3",), lambda x: lax.rev(x, (1,)), lambda x: x[:, ::-1]),
    Case(
        "concatenate", ("n 2", "m 2", "3 2"), lambda *x: lax.concatenate(x, 0), lambda *x: np.concatenate(x)
    ),
    Case(
        "concatenate_static_first",
        ("3", "n", "n"),
        lambda *x: lax.concatenate(x, 0),
        lambda *x: np.concatenate(x),
    ),
    Case(
        "concatenate_across",
        ("n 2", "n 3", "5 1"),
        lambda *x: lax.concatenate(x, 1),
        lambda x, y, z: np.concatenate((x, y, z[: len(x)]), 1),
    ),
    Case("pad", ("n m",), lambda x: lax.pad(x, np.float32(7), ((2, 1, 0), (0, 3, 2))), lambda x: _pad(x)),
    Case(
        "pad_negative",
        ("n",),
        lambda x: lax.pad(x, np.float32(7), ((-2, -1, 0),)),
        lambda x: x[2:-1],
        unlike_xla="the size becomes negative and it aborts",
    ),
    Case(
        "pad_to_left",
        ("n",),
        lambda x: lax.pad(x, np.float32(7), ((3, -2, 0),)),
        lambda x: np.concatenate((np.full(3, 7, np.float32), x))[: len(x) + 1],
    ),
    Case("slice_whole", ("n m",), lambda x: lax.slice(x, (0, 0), (5, 4)), lambda x: x),
    Case("slice_part", ("n m",), lambda x: lax.slice(x, (1, 0), (4, 4), (2, 3)), lambda x: x[1:4:2, ::3]),
    Case(
        "slice_one",
        ("n 2",),
        lambda x: lax.slice(x, (1, 0), (2, 2)),
        lambda x: x[1:2] if len(x) > 1 else np.zeros((1, 2), x.dtype),
        unlike_xla="it reads what lies behind the live part",
    ),
    Case("merge_major", ("n 3",), lambda x: lax.reshape(x, (15,)), lambda x: x.reshape(-1)),
    Case("merge_minor", ("3 n",), lambda x: lax.reshape(x, (15,)), lambda x: x.reshape(-1)),
    Case("merge_middle", ("2 n 3",), lambda x: lax.reshape(x, (30,)), lambda x: x.reshape(-1)),
    Case("merge_both", ("n m k",), lambda x: lax.reshape(x, (60,)), lambda x: x.reshape(-1)),
    Case(
        "merge_beside",
        ("n 2 m 3",),
        lambda x: lax.reshape(x, (5, 2, 12)),
        lambda x: x.reshape(len(x), 2, 3 * x.shape[2]),
        unlike_xla="StableHLO reshapes to one dynamic dimension at most",
    ),
    Case(
        "reshape_ones",
        ("n m",),
        lambda x: lax.reshape(x, (1, 5, 1, 4, 1)),
        lambda x: x[None, :, None, :, None],
        unlike_xla="StableHLO reshapes to one dynamic dimension at most",
    ),
    Case(
        "split",
        ("m",),
        lambda x: lax.reshape(x, (2, 2)),
        lambda x: _grow(x, 2),
        unlike_xla="it reports the bound as size",
    ),
    Case(
        "split_beside",
        ("2 m",),
        lambda x: lax.reshape(x, (2, 2, 2)),
        lambda x: np.stack([_grow(row, 2) for row in x]),
        unlike_xla="it reports the bound as size",
    ),
    Case(
        "set_again",
        ("n", "m"),
        lambda x, y: lax.set_dimension_size(x, lax.get_dimension_size(y, 0), 0),
        lambda x, y: x[: len(y)],
        is_defined=lambda s: s["m"] <= s["n"],
    ),
    Case(
        "get",
        ("n 3 m",),
        lambda x: lax.sub(
            lax.get_dimension_size(x, 0), lax.mul(lax.get_dimension_size(x, 2), lax.get_dimension_size(x, 1))
        ),
        lambda x: np.int32(len(x) - 3 * x.shape[2]),
    ),
]


def _pad(x: Host) -> Host:
    rows, columns = x.shape
    result = np.full((rows + 3, columns + 3 + 2 * max(columns - 1, 0)), 7, x.dtype)
    result[2 : 2 + rows, : 3 * columns : 3] = x
    return result


def _reduction(name: str, combine: str, dtype: str) -> Case:
    function = getattr(lax, f"reduce_{name}")
    oracle = getattr(np, combine)
    neutral = np.asarray(function(np.zeros((0,), dtype), (0,)))
    return Case(
        f"reduce_{name}_{dtype}",
        ("n 3 m",),
        lambda x: function(x, (0, 2)),
        lambda x: oracle.reduce(x, (0, 2), dtype=x.dtype, initial=neutral),
        dtype,
    )


REDUCTIONS = [
    *[
        _reduction(*row)
        for row in (
            ("sum", "add", "float32"),
            ("sum", "add", "int16"),
            ("sum", "add", "complex64"),
            ("prod", "multiply", "float64"),
            ("max", "maximum", "float32"),
            ("max", "maximum", "uint8"),
            ("max", "maximum", "bool"),
            ("min", "minimum", "int64"),
            ("min", "minimum", "float16"),
            ("and", "bitwise_and", "int32"),
            ("or", "bitwise_or", "uint32"),
            ("xor", "bitwise_xor", "int8"),
            ("and", "logical_and", "bool"),
            ("or", "logical_or", "bool"),
        )
    ],
    Case("reduce_other", ("n m",), lambda x: lax.reduce_sum(x, (0,)), lambda x: x.sum(0)),
    Case(
        "reduce_from_five",
        ("n",),
        lambda x: lax.reduce(x, 5.0, lax.add, (0,)),
        lambda x: x.sum() + np.float32(5),
        unlike_xla="it combines the initial value once for each dead element",
    ),
    Case(
        "reduce_pairs",
        ("n", "n"),
        lambda x, y: lax.reduce((x, y), (np.float32(1), np.float32(0)), lambda a, b: _pairs(*a, *b), (0,))[1],
        _affine,
    ),
    Case(
        "reduce_difference",
        ("n 2",),
        lambda x: lax.reduce(x, 0.0, lambda a, b: lax.add(lax.add(a, b), 0.0), (0,)),
        lambda x: x.sum(0),
    ),
    Case(
        "argmax",
        ("n 3",),
        lambda x: lax.argmax(x, 0, np.int32),
        lambda x: x.argmax(0).astype(np.int32),
        is_defined=lambda s: s["n"] > 0,
    ),
    Case(
        "argmin",
        ("n",),
        lambda x: lax.argmin(x, 0, np.int64),
        lambda x: x.argmin(0),
        is_defined=lambda s: s["n"] > 0,
    ),
    Case("dot", ("n", "n"), lax.dot, lambda x, y: np.dot(x, y)),
    Case("dot_static", ("n", "5"), lax.dot, lambda x, y: np.dot(x, y[: len(x)])),
    Case("matmul", ("n k", "k m"), lax.dot, lambda x, y: x @ y),
    Case("batch_matmul", ("n 2 k", "n k 2"), lax.batch_matmul, lambda x, y: x @ y),
    Case("dot_int", ("3 n", "n"), lax.dot, lambda x, y: x @ y, "int32"),
    Case("sort", ("n 3",), lambda x: lax.sort(x, dimension=0), lambda x: np.sort(x, 0)),
    Case("sort_other", ("n 3",), lambda x: lax.sort(x, dimension=1), lambda x: np.sort(x, 1)),
    Case("sort_int", ("n",), lambda x: lax.sort(x, dimension=0), np.sort, "int8"),
    Case(
        "sort_pairs",
        ("n", "5"),
        lambda x, y: lax.sort((x, y), dimension=0, num_keys=1)[1],
        lambda x, y: y[: len(x)][np.argsort(x, kind="stable")],
        unlike_xla="it leaves the second array static",
    ),
]

WINDOWED = [
    Case(
        "gather_rows",
        ("n 3", "5"),
        lambda x, i: lax.gather(x, i, ROWS, (1, 3), index_vector_dim=1),
        lambda x, i: _take(x, i, 1)[:, 0],
        values=((1, INDICES),),
        unlike_xla="it reads what lies behind the live part",
    ),
    Case(
        "gather_windows",
        ("n 3", "5"),
        lambda x, i: lax.gather(x, i, WINDOWS, (2, 3), index_vector_dim=1),
        lambda x, i: _take(x, i, 2),
        values=((1, INDICES),),
        unlike_xla="it reads what lies behind the live part",
    ),
    Case(
        "gather_whole",
        ("3 m", "5"),
        lambda x, i: lax.gather(x, i, ROWS, (1, 4), index_vector_dim=1),
        lambda x, i: _take(x, i, 1)[:, 0],
        values=((1, INDICES),),
    ),
    Case(
        "gather_places",
        ("4 3", "n"),
        lambda x, i: lax.gather(x, i, ROWS, (1, 3), index_vector_dim=1),
        lambda x, i: _take(x, i, 1)[:, 0],
        values=((1, INDICES),),
    ),
    Case(
        "gather_narrow",
        ("n 3", "5"),
        lambda x, i: lax.gather(x, i, ROWS, (1, 3), index_vector_dim=1),
        lambda x, i: _take(x, i.astype(int), 1)[:, 0],
        values=((1, np.array([2, 200, 4, 0, 1], np.uint8)),),
        unlike_xla="it reads what lies behind the live part",
    ),
    Case(
        "dynamic_slice",
        ("n m", "2"),
        lambda x, i: lax.dynamic_slice(x, [lax.reshape(lax.slice(i, (0,), (1,)), ()), 0], (2, 4)),
        lambda x, i: _take(x, i[:1], 2)[0],
        values=((1, np.array([2, 1], np.int32)),),
        unlike_xla="unimplemented",
    ),
    Case(
        "dynamic_slice_end",
        ("n",),
        lambda x: lax.dynamic_slice(x, [-2], (2,)),
        lambda x: x[-2:],
        is_defined=lambda s: s["n"] > 1,
        unlike_xla="it clamps to the bound",
    ),
    Case(
        "dynamic_update_slice",
        ("n 3", "2 2"),
        lambda x, u: lax.dynamic_update_slice(x, u, (np.int32(3), np.int32(1))),
        lambda x, u: _update(x, u, 3, 1),
        is_defined=lambda s: s["n"] > 1,
        unlike_xla="it clamps to the bound",
    ),
    Case(
        "dynamic_update",
        ("n 3", "m 3"),
        lambda x, u: lax.dynamic_update_slice(x, u, (np.int32(1), np.int32(0))),
        lambda x, u: _update(x, u, 1, 0),
        is_defined=lambda s: s["m"] <= s["n"],
        unlike_xla="an internal error",
    ),
    Case(
        "dynamic_update_of_static",
        ("6", "n"),
        lambda x, u: lax.dynamic_update_slice(x, u, (np.int32(4),)),
        lambda x, u: _update(x, u, 4),
        unlike_xla="an internal error",
    ),
    Case(
        "scatter_rows",
        ("n 3", "4", "4 3"),
        lambda x, i, u: lax.scatter_add(x, i, u, SCATTER, index_vector_dim=1, mode=None),
        lambda x, i, u: _scatter_add(x, i, u),
        values=((1, INDICES[1:]),),
    ),
    Case(
        "scatter_updates",
        ("4 3", "n", "n 3"),
        lambda x, i, u: lax.scatter_add(x, i, u, SCATTER, index_vector_dim=1),
        lambda x, i, u: _scatter_add(x, i, u),
        values=((1, INDICES),),
    ),
    Case(
        "scatter_unsigned",
        ("n 3", "m", "4 3"),
        lambda x, i, u: lax.scatter_add(x, i, u, SCATTER, index_vector_dim=1),
        lambda x, i, u: _scatter_add(x, i, u),
        values=((1, np.array([1, 3, 1, 0], np.uint8)),),
    ),
    Case(
        "scatter_window",
        ("4 5", "2", "2 n"),
        lambda x, i, u: lax.scatter_add(x, i, u, SCATTER, index_vector_dim=1),
        lambda x, i, u: _scatter_add(x, i, np.pad(u, ((0, 0), (0, 5 - u.shape[1])))),
        values=((1, np.array([1, 1], np.int32)),),
        unlike_xla="it adds what lies behind the live part",
    ),
    Case(
        "scatter_all_dynamic",
        ("m n", "k", "k n"),
        lambda x, i, u: lax.scatter_add(x, i, u, SCATTER, index_vector_dim=1),
        lambda x, i, u: _scatter_add(x, i, u),
        values=((1, np.array([2, 0, 2], np.int32)),),
    ),
]


def _loop(x: Any) -> Any:
    def body(state: Any) -> Any:
        count, y = state
        return lax.add(count, np.int32(1)), lax.rev(lax.add(y, 1.0), (0,))

    return lax.while_loop(lambda state: lax.lt(state[0], np.int32(3)), body, (np.int32(0), x))[1]


def _shrinking(x: Any) -> Any:
    """Halves the live size until it is below 2."""

    def body(y: Any) -> Any:
        return lax.set_dimension_size(y, lax.div(lax.get_dimension_size(y, 0), 2), 0)

    return lax.while_loop(lambda y: lax.gt(lax.get_dimension_size(y, 0), 1), body, x)


def _halve(x: Host) -> Host:
    while len(x) > 1:
        x = x[: len(x) // 2]
    return x


def _is_long(x: Any) -> Any:
    return lax.gt(lax.get_dimension_size(x, 0), 2)


CONTROL = [
    Case("while", ("n",), _loop, lambda x: x[::-1] + np.float32(3)),
    Case("while_shrinking", ("n",), _shrinking, _halve, unlike_xla="it aborts"),
    Case(
        "cond",
        ("n",),
        lambda x: lax.cond(_is_long(x), lambda y: lax.rev(y, (0,)), lax.neg, x),
        lambda x: x[::-1] if len(x) > 2 else -x,
    ),
    Case(
        "switch",
        ("n", "m"),
        lambda x, y: lax.switch(
            lax.get_dimension_size(x, 0),
            [lambda a, b: lax.reduce_sum(a, (0,)), lambda a, b: lax.reduce_sum(b, (0,))],
            x,
            y,
        ),
        lambda x, y: (y if len(x) else x).sum(),
    ),
    Case("call", ("n",), lambda x: lax.call(lambda y: (lax.neg(y), y), x)[0], np.negative),
    Case("tuple", ("n", "3"), lambda x, y: lax.neg(lax.tuple(y, lax.tuple(x))[1][0]), lambda x, y: -x),
    Case(
        "hidden",
        ("3",),
        lambda x: lax.call(lambda y: lax.reduce_sum(lax.set_dimension_size(y, 2, 0), (0,)), x),
        lambda x: x[:2].sum(),
    ),
]

CASES = [*ELEMENTWISE, *MOVES, *REDUCTIONS, *WINDOWED, *CONTROL]
