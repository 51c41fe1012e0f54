"""The arrays that an answer is tried on, and the result that the loops of a puzzle give for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from xarr.puzzles.records import ArraySpec, Puzzle, draw_sizes, shape_of


@dataclass(frozen=True)
class Draw:
    """Sizes, the arrays of these sizes, and the result that is wanted for them."""

    sizes: Mapping[str, int]
    arrays: Mapping[str, np.ndarray[Any, Any]]
    result: Any

    @property
    def elements(self) -> int:
        """The elements of all arrays."""
        return sum(array.size for array in self.arrays.values())


def draws_of(puzzle: Puzzle) -> Iterator[Draw]:
    """Every draw for which the puzzle means something: an index into nothing does not, nor a step along one element."""
    for seed, sizes in enumerate(draw_sizes(puzzle)):
        if all(
            sizes[spec.below] > 0 or shape_of(spec, sizes) == (0,) for spec in puzzle.arrays if spec.below
        ):
            arrays = {spec.name: _values(spec, sizes, seed, k) for k, spec in enumerate(puzzle.arrays)}
            try:
                yield Draw(sizes, arrays, wanted_result(puzzle, sizes, arrays))
            except IndexError:  # the loops look at an element that arrays of these sizes lack
                continue


def _values(spec: ArraySpec, sizes: Mapping[str, int], seed: int, number: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, distinct and not in order, so that sums are exact; of an index with repetitions."""
    shape, generator = shape_of(spec, sizes), np.random.default_rng([seed, number])
    total = int(np.prod(shape))
    if spec.below is not None:
        index = generator.integers(0, max(1, sizes[spec.below]), shape)
        if total > 1:
            index.flat[1] = index.flat[0]
        return index
    if spec.dtype == "bool":
        return generator.permutation(np.arange(total) % 2 == 0).reshape(shape)
    values = generator.permutation(np.arange(total) * 2 - total + 2 + seed % 3).reshape(shape)
    return values.astype(spec.dtype)


def wanted_result(
    puzzle: Puzzle, sizes: Mapping[str, int], arrays: Mapping[str, np.ndarray[Any, Any]]
) -> Any:
    """The result of the loops that the puzzle gives, by NumPy."""
    scope: dict[str, Any] = {"np": np, **sizes, **{name: array.copy() for name, array in arrays.items()}}
    exec(puzzle.wanted, scope)
    return scope["result"]


def first_difference(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """The first index at which two arrays of one shape differ; None if they do not."""
    same = (got == wanted) | (np.not_equal(got, got) & np.not_equal(wanted, wanted))
    return next(zip(count(), map(tuple, np.argwhere(~same).tolist()), strict=False), (0, None))[1]
