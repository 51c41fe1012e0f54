"""The only module in which shapes are aligned: NumPy's implicit rule and XLA's explicit one, on bare shapes.

An alignment says, for each operand, which axis of the result each of its axes becomes.  That is XLA's
`broadcast_dimensions`; NumPy's rule is the special case in which the axes go to the trailing ones.

Constraints of the explicit rule (XLA, "Broadcasting semantics"; `XlaBuilder` binary operations):

* `[B1]` operands of different rank need `broadcast_dimensions`, unless one is a scalar;
* `[B2]` it has one entry per axis of the lower-rank operand (for equal ranks: none, or the identity);
* `[B3]` each entry names an axis of the higher-rank operand;
* `[B4]` the entries are strictly increasing;
* `[B5]` sizes that meet are equal, or one of them is 1.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from math import prod
from typing import SupportsIndex, TypeAlias

from xarr.base.configuration import MODES, Mode
from xarr.base.frozen_dataclasses import record
from xarr.errors import BroadcastError, ConfigError, InputError, pluralize

Shape: TypeAlias = tuple[int, ...]
Dimensions: TypeAlias = tuple[int, ...]
LISTED = 16
"""How many alignments an error or explanation lists; the rest is counted."""


@record
class Alignment:
    """The way in which operands of given shapes broadcast to one result shape.

    `dimensions[i]` holds, for each axis of operand `i`, the axis of the result that it becomes.  It is
    strictly increasing.  Result axes that it leaves out are *new* for the operand; an axis of size 1
    that becomes a larger (or empty) one is *stretched*.
    """

    operands: tuple[Shape, ...]
    result: Shape
    dimensions: tuple[Dimensions, ...]

    @property
    def is_implicit(self) -> bool:
        """Whether some operand has another shape than the result."""
        return any(shape != self.result for shape in self.operands)

    @property
    def is_outer(self) -> bool:
        """Whether the result has more elements than every operand."""
        return prod(self.result) > max((prod(shape) for shape in self.operands), default=1)

    def new_axes(self, operand: int) -> tuple[int, ...]:
        """Axes of the result that the operand lacks."""
        own = self.dimensions[operand]
        return tuple(axis for axis in range(len(self.result)) if axis not in own)

    def stretched_axes(self, operand: int) -> tuple[int, ...]:
        """Axes of the result along which the operand has size 1 and the result another size."""
        pairs = zip(self.operands[operand], self.dimensions[operand], strict=True)
        return tuple(axis for size, axis in pairs if size != self.result[axis])

    def reuse(self, operand: int) -> int:
        """The number of times that each element of the operand is read; 0 if the operand or the result is empty."""
        stored = prod(self.operands[operand])
        return prod(self.result) // stored if stored else 0

    @property
    def meaning(self) -> tuple[Shape, tuple[Dimensions, ...]]:
        """The result shape, and where the axes of size other than 1 go.

        Two alignments of the same operands with equal meanings compute the same values: it does not
        matter to which result axis an axis of size 1 is assigned.
        """
        return self.result, tuple(
            tuple(axis for size, axis in zip(shape, dimensions, strict=True) if size != 1)
            for shape, dimensions in zip(self.operands, self.dimensions, strict=True)
        )


@record
class Clash:
    """An axis of the would-be result on which sizes differ and are not 1.

    `sizes` has one entry per operand; None where the operand lacks the axis.
    """

    axis: int
    sizes: tuple[int | None, ...]


@record
class Misfit:
    """Operands that do not broadcast, with every clashing axis."""

    operands: tuple[Shape, ...]
    clashes: tuple[Clash, ...]


@record
class Fix:
    """One change to one operand after which the two operands broadcast.

    `numpy` is the changed operand in NumPy's spelling.  For operands of different rank
    `broadcast_dimensions` does the same in one explicit op; a fix for equal ranks is a `permutation`.
    """

    operand: int
    numpy: str
    result: Shape
    broadcast_dimensions: Dimensions | None = None
    permutation: Dimensions | None = None


# --- NumPy's rule ---------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def align_numpy(*shapes: Shape) -> Alignment | Misfit:
    """Align any number of shapes by NumPy's rule: trailing axes meet; sizes are equal, or one is 1.

    A size-1 axis meets an empty one as any other: 1 and 0 give 0.  Source: NumPy user guide,
    "Broadcasting"; Array API standard, "Broadcasting".
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    clashing = False
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                clashing = clashing or result[axis] not in (1, size)
                result[axis] = size
    if clashing:
        return Misfit(shapes, _clashes(shapes, rank))
    return Alignment(shapes, tuple(result), tuple(_trailing(len(shape), rank) for shape in shapes))


def _trailing(own: int, rank: int) -> Dimensions:
    return tuple(range(rank - own, rank))


def _clashes(shapes: tuple[Shape, ...], rank: int) -> tuple[Clash, ...]:
    clashes = []
    for axis in range(rank):
        dims = [axis - rank + len(shape) for shape in shapes]
        sizes = tuple(s[p] if p >= 0 else None for s, p in zip(shapes, dims, strict=True))
        if len(set(sizes) - {None, 1}) > 1:
            clashes.append(Clash(axis, sizes))
    return tuple(clashes)


# --- XLA's rule -----------------------------------------------------------------------------------


def align_xla(
    lhs: Shape, rhs: Shape, broadcast_dimensions: Sequence[SupportsIndex] | None = None
) -> Alignment:
    """Align two shapes by the rules of XlaBuilder's binary operations.

    Scalars broadcast freely; equal ranks may stretch axes of size 1 on either side; for other ranks
    `broadcast_dimensions` names, for each axis of the lower-rank operand, the axis of the other that
    it meets, after which axes of size 1 stretch on either side too.  As in XlaBuilder, `()` means "not
    given", and for equal ranks the identity is accepted.

    Raises BroadcastError with the label of the violated constraint: `[B1]` ranks differ and no
    dimensions are given, `[B2]` wrong length, `[B3]` out of range, `[B4]` not strictly increasing,
    `[B5]` sizes that differ and are not 1.  Raises InputError if the dimensions are not integers.

    Source: XLA, "Broadcasting semantics"; `ShapeInference::InferElementwiseBinaryOpShape`.
    """
    dimensions = as_dimensions(broadcast_dimensions)
    problem = xla_violation(lhs, rhs, dimensions)
    if problem is not None:
        raise BroadcastError("\n".join(filter(None, (problem, _legal_here(lhs, rhs)))))
    return _align_fitting(lhs, rhs, dimensions or None)


def as_dimensions(dimensions: Sequence[SupportsIndex] | None) -> Dimensions:
    """Dimensions as a tuple of ints, `()` for None.  Raises InputError for anything else."""
    if dimensions is None:
        return ()
    try:
        return tuple(operator.index(entry) for entry in dimensions)
    except TypeError:
        raise InputError(
            f"broadcast_dimensions must be a sequence of integers such as (1,), got {dimensions!r}"
        ) from None


@lru_cache(maxsize=4096)
def xla_violation(lhs: Shape, rhs: Shape, dimensions: Dimensions) -> str | None:
    """The first constraint of the explicit rule that is violated, with its label; None if all hold."""
    small, big = (lhs, rhs) if len(lhs) <= len(rhs) else (rhs, lhs)
    equal_ranks = len(small) == len(big)
    if not dimensions and small and not equal_ranks:
        return (
            f"[B1] operands {lhs} and {rhs} have ranks {len(lhs)} and {len(rhs)}: "
            f"wanted broadcast_dimensions with {pluralize(len(small), 'entry')}, got none"
        )
    if not dimensions:
        return _size_violation(small, big, _trailing(len(small), len(big)) if small else ())
    if len(dimensions) != len(small):
        wanted = "() or the identity, as the ranks are equal" if equal_ranks else "one per axis"
        return (
            f"[B2] broadcast_dimensions={dimensions} has {pluralize(len(dimensions), 'entry')}: "
            f"wanted {len(small)} for the operand {small} ({wanted})"
        )
    outside = [entry for entry in dimensions if not 0 <= entry < len(big)]
    if outside:
        return (
            f"[B3] broadcast_dimensions={dimensions} names axis {outside[0]}: "
            f"wanted 0 to {len(big) - 1}, the axes of the operand {big}"
        )
    if any(before >= after for before, after in pairwise(dimensions)):
        return _order_violation(small, big, dimensions, "lhs" if small is lhs else "rhs")
    return _size_violation(small, big, dimensions)


def _order_violation(small: Shape, big: Shape, dimensions: Dimensions, name: str) -> str:
    text = f"[B4] broadcast_dimensions={dimensions} is not strictly increasing"
    if len(set(dimensions)) < len(dimensions):
        return f"{text}: an axis is named twice, and no transpose mends that"
    order = tuple(sorted(range(len(dimensions)), key=dimensions.__getitem__))
    increasing = tuple(sorted(dimensions))
    moved = tuple(small[axis] for axis in order)
    if _size_violation(moved, big, increasing) is not None:
        return f"{text}; nor do the sizes of {small} match those axes of {big}"
    return f"{text}: wanted transpose({name}, {order}) with broadcast_dimensions={increasing}"


def _size_violation(small: Shape, big: Shape, dimensions: Dimensions) -> str | None:
    for axis, (size, target) in enumerate(zip(small, dimensions, strict=True)):
        if size != big[target] and 1 not in (size, big[target]):
            return (
                f"[B5] axis {axis} of {small} meets axis {target} of {big}: "
                f"wanted size {big[target]} or 1, got {size}"
            )
    return None


def _legal_here(lhs: Shape, rhs: Shape) -> str:
    small, big = (lhs, rhs) if len(lhs) < len(rhs) else (rhs, lhs)
    if len(small) == len(big):
        return "" if isinstance(align_numpy(lhs, rhs), Misfit) else "legal here: no broadcast_dimensions"
    total = count_alignments(small, big)
    if not total:
        return "no broadcast_dimensions fits these shapes"
    first = ", ".join(map(str, islice(legal_alignments(small, big), LISTED)))
    more = f" and {total - LISTED} more" if total > LISTED else ""
    return f"legal here: broadcast_dimensions={first}{more}"


@lru_cache(maxsize=4096)
def _align_fitting(lhs: Shape, rhs: Shape, dimensions: Dimensions | None) -> Alignment:
    """The alignment of operands that are known to fit; dimensions default to the trailing axes."""
    rank = max(len(lhs), len(rhs))

    def own(shape: Shape) -> Dimensions:
        return tuple(range(rank)) if len(shape) == rank else dimensions or ()

    both = (own(lhs), own(rhs))
    return Alignment((lhs, rhs), _merge(_merge((1,) * rank, lhs, both[0]), rhs, both[1]), both)


def _merge(result: Shape, shape: Shape, dimensions: Dimensions) -> Shape:
    merged = list(result)
    for size, axis in zip(shape, dimensions, strict=True):
        if size != 1:
            merged[axis] = size
    return tuple(merged)


# --- every alignment that would work --------------------------------------------------------------


def _fits(size: int, other: int) -> bool:
    return size == other or size == 1 or other == 1


def _ways(small: Shape, big: Shape) -> list[list[int]]:
    """ways[i][k]: how many strictly increasing placements of `small[i:]` into `big[k:]` fit."""
    ways = [[0] * (len(big) + 1) for _ in small] + [[1] * (len(big) + 1)]
    for i in reversed(range(len(small))):
        for k in reversed(range(len(big))):
            ways[i][k] = ways[i][k + 1] + (ways[i + 1][k + 1] if _fits(small[i], big[k]) else 0)
    return ways


def count_alignments(small: Shape, big: Shape) -> int:
    """Count the `legal_alignments` without listing them: O(rank²) time."""
    return _ways(small, big)[0][0]


def legal_alignments(small: Shape, big: Shape) -> Iterator[Dimensions]:
    """Every strictly increasing `broadcast_dimensions` by which `small` fits `big`, in order, lazily.

    Axes of size 1 stretch on either side.  The number can be exponential in the rank, but the walk has
    no dead ends, so the first `n` cost O(n · rank²).
    """
    ways = _ways(small, big)
    stack: list[tuple[Dimensions, int]] = [((), 0)]
    while stack:
        placed, start = stack.pop()
        i = len(placed)
        if i == len(small):
            yield placed
            continue
        if start >= len(big) or not ways[i][start]:
            continue
        stack.append((placed, start + 1))
        if _fits(small[i], big[start]) and ways[i + 1][start + 1]:
            stack.append(((*placed, start), start + 1))


def alignments(*shapes: Shape, effort: int = 4096) -> Iterator[Alignment]:
    """Every alignment of any number of operands to the highest of their ranks, lazily.

    Operands of the highest rank keep their axes; each other one is placed wherever it fits.  With
    three or more operands the search may meet dead ends; it gives up after `effort` placements.
    """
    rank = max(map(len, shapes), default=0)
    lower = [i for i, shape in enumerate(shapes) if len(shape) < rank]
    base = align_numpy(*(shape for shape in shapes if len(shape) == rank))
    if isinstance(base, Misfit):
        return
    walks: list[Iterator[_Partial]] = [iter([((), base.result)])]
    for _ in range(effort):
        partial = next(walks[-1], None)
        if partial is None:
            walks.pop()
            if not walks:
                return
        elif len(walks) <= len(lower):
            walks.append(_placements(shapes[lower[len(walks) - 1]], *partial))
        else:
            placed = dict(zip(lower, partial[0], strict=True))
            own = tuple(placed.get(i, tuple(range(rank))) for i in range(len(shapes)))
            yield Alignment(shapes, partial[1], own)


_Partial: TypeAlias = tuple[tuple[Dimensions, ...], Shape]
"""Where the first few lower-rank operands went, and the result shape so far."""


def _placements(shape: Shape, placed: tuple[Dimensions, ...], result: Shape) -> Iterator[_Partial]:
    for dimensions in legal_alignments(shape, result):
        yield (*placed, dimensions), _merge(result, shape, dimensions)


@lru_cache(maxsize=1024)
def ambiguous_alternatives(alignment: Alignment) -> tuple[Alignment, ...]:
    """The alignments of the same operands, other than the given one, that compute something else.

    Empty if the ranks are equal, or if nothing else fits.  At most `LISTED`.
    """
    if len(set(map(len, alignment.operands))) < 2:
        return ()
    others = {alignment.meaning: alignment}
    for other in islice(alignments(*alignment.operands), 64 * LISTED):
        others.setdefault(other.meaning, other)
        if len(others) > LISTED:
            break
    return tuple(others.values())[1:]


# --- fixes ----------------------------------------------------------------------------------------


def fixes(a: Shape, b: Shape, names: Sequence[str] = ("a", "b"), limit: int = LISTED) -> tuple[Fix, ...]:
    """Find what makes two operands broadcast: every legal placement, or transposes for equal ranks.

    For different ranks: one fix per legal alignment of the lower-rank operand, the one that NumPy
    would take included.  For equal ranks that do not fit: the permutations of the second operand's
    axes that do.  Raising both ranks always "works" as an outer product, so it is never listed.
    `names` stand in the spelling as they are: put parentheses around an expression.
    """
    if len(a) == len(b):
        if isinstance(align_numpy(a, b), Alignment):
            return ()
        return tuple(_transpose_fix(a, b, names[1], order) for order in islice(_permutations(a, b), limit))
    operand = 0 if len(a) < len(b) else 1
    small, big = (a, b) if operand == 0 else (b, a)
    return tuple(
        Fix(
            operand,
            names[operand] + new_axis_index(dimensions, len(big)),
            _merge(big, small, dimensions),
            broadcast_dimensions=dimensions,
        )
        for dimensions in islice(legal_alignments(small, big), limit)
    )


def fits_into(own: Shape, shape: Shape) -> bool:
    """Whether an array of shape `given` broadcasts to `shape` by NumPy's rule, without changing it."""
    offset = len(shape) - len(own)
    return offset >= 0 and all(size in (1, shape[axis]) for axis, size in enumerate(own, offset))


def explain_misfit(own: Shape, shape: Shape, name: str) -> str:
    """Why an array of shape `given`, called `name`, does not broadcast to `shape`, and what of it would."""
    spellings = [
        fix.numpy for fix in fixes(shape, own, ("", name)) if fix.operand == 1 and fix.result == shape
    ]
    fix = f"; {' or '.join(spellings)} would fit" if spellings else ""
    return f"sizes, counted from the last, must be equal, or 1 in the {name}{fix}"


def new_axis_index(dimensions: Dimensions, rank: int) -> str:
    """The NumPy index that gives an operand its new axes: (1,) in rank 3 is `[None, :, None]`.

    Empty if there is nothing to give: no axis is new, or the operand is a scalar.
    """
    if len(dimensions) in (0, rank):
        return ""
    return "[" + ", ".join(":" if axis in dimensions else "None" for axis in range(rank)) + "]"


def _transpose_fix(a: Shape, b: Shape, name: str, order: Dimensions) -> Fix:
    moved = tuple(b[axis] for axis in order)
    spelling = f"{name}.T" if len(order) == 2 else f"{name}.transpose({', '.join(map(str, order))})"
    return Fix(1, spelling, _merge(a, moved, tuple(range(len(a)))), permutation=order)


def _permutations(a: Shape, b: Shape) -> Iterator[Dimensions]:
    """Every order of b's axes in which it broadcasts with `a`, lexicographically, without dead ends."""
    stack: list[Dimensions] = [()]
    while stack:
        order = stack.pop()
        if len(order) == len(a):
            yield order
            continue
        left = [axis for axis in range(len(b)) if axis not in order]
        for axis in reversed(left):
            rest = [b[other] for other in left if other != axis]
            if _fits(a[len(order)], b[axis]) and _matchable(a[len(order) + 1 :], rest):
                stack.append((*order, axis))


def _matchable(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether some pairing of equally many sizes fits: what is not paired with its equal needs a 1.

    As both sides are equally many, enough ones on the one side means enough on the other.
    """
    ours, theirs = Counter(a), Counter(b)
    del ours[1]
    spare = theirs.pop(1, 0)
    return (ours - theirs).total() <= spare


# --- strictness -----------------------------------------------------------------------------------


def stretching_refusal(alignment: Alignment, names: Sequence[str]) -> str | None:
    """Why `broadcasting="explicit"` refuses an alignment at the explicit level; None if it does not.

    Where each dimension goes is said there, but not that one of size 1 is repeated.
    """
    for i, name in enumerate(names):
        axes = alignment.stretched_axes(i)
        if axes:
            size = alignment.result[axes[0]]
            return (
                f'broadcasting="explicit" refuses to stretch {name} along axis {axes[0]} of the result: wanted size '
                f"{size}, got 1"
            )
    return None


def refusal(alignment: Alignment, mode: Mode, names: Sequence[str] | None = None) -> str | None:
    """Why `config.broadcasting = mode` refuses this implicit alignment; None if it does not.

    `numpy` and `warn` refuse nothing (under `warn` the caller warns where `explicit` would refuse);
    `rank` refuses operands of different rank; `explicit` refuses every broadcast.  Operands of rank 0
    are never refused.  Raises ConfigError for an unknown mode.
    """
    if mode not in MODES:
        raise ConfigError(f"unknown broadcasting mode {mode!r}: wanted one of {', '.join(MODES)}")
    if mode in ("numpy", "warn"):
        return None
    rank = len(alignment.result)
    for i, shape in enumerate(alignment.operands):
        name = names[i] if names else f"operand {i}"
        if not shape or shape == alignment.result:
            continue
        if mode == "rank" and len(shape) == rank:
            continue
        wanted = f"rank {rank}" if mode == "rank" else f"shape {alignment.result}"
        got = f"rank {len(shape)}" if mode == "rank" else f"shape {shape}"
        return f'broadcasting="{mode}" refuses to broadcast {name}: wanted {wanted}, got {got}'
    return None
