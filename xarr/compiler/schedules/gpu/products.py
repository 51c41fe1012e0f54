"""Products, convolutions and reductions of terms of two operands by tiles, with what follows in the same loops.

Results of which each has a row of one operand and a column of another are computed by tiles of rows and columns
(`product_tiles`): products of matrices; convolutions, whose rows are windows, columns output features, and terms the
elements of a window, which are read from where they lie; and any reduction of terms that are computed of one array
which is repeated along columns and of another one which is repeated along rows, as distances are.

What follows element by element is computed where a tile is stored, and a reduction along one side of a tile from its
elements, without an array of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.window_work import free_dimensions
from xarr.compiler.loop_ir.accumulators import Combination, combination
from xarr.compiler.loop_ir.elements import Index, Source
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.gpu import reductions
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.gpu.product_tiles import PairTiles, ReducedTiles
from xarr.compiler.schedules.gpu.tiles import Factor, Output, PairFold, Read
from xarr.compiler.schedules.serial import products
from xarr.compiler.schedules.serial.products import Factors, add_product, finish_sum, types_of_sums
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.operands_first import compute_operands_first, reach
from xarr.ir.types import Ints, TensorType


def dot_general(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """One phase by tiles, or that of the serial schedule where tiles would stay empty or threads idle."""
    assert isinstance(loops, GridLoops) and isinstance(node.op, ops.DotGeneral)
    first = len(node.op.lhs_batching_dimensions)
    second = first + len(free_dimensions(node)[0])
    sides = (tuple(range(first, second)), tuple(range(second, len(node.shape))))
    fold = _sums_of_products(loops, node, sides, *products.terms_of_product(node))
    tiled = _add_tiles(loops, node, fold)
    return products.dot_general(loops, node) if tiled is None else tiled


def convolution(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """As for products; convolutions of groups of features have a thread for each result."""
    assert isinstance(loops, GridLoops) and isinstance(node.op, ops.Convolution)
    if max(node.op.feature_group_count, node.op.batch_group_count) > 1:
        return _add_group_sums(loops, node)
    feature = node.op.out_spec[1]
    sides = (tuple(axis for axis in range(len(node.shape)) if axis != feature), (feature,))
    fold = _sums_of_products(loops, node, sides, *products.terms_of_convolution(loops, node))
    tiled = _add_tiles(loops, node, fold)
    return products.convolution(loops, node) if tiled is None else tiled


def _add_group_sums(loops: GridLoops, node: Node) -> Sequence[Source]:
    """The phase of a convolution of groups: of few terms, as by channels, each has its own line."""
    terms, factors = products.terms_of_convolution(loops, node)
    if prod(terms) > loops.target.max_unrolled_terms:
        return products.convolution(loops, node)
    start, step = products.start_and_step(loops, node, factors)

    def finish(index: Index, held: Sequence[Value]) -> list[Value]:
        return [finish_sum(loops, node, held[0])]

    return sources_of(loops.fold_unrolled(node.shape, terms, start, step, finish, [node.dtype]))


def reduce(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """A reduction of tiles, or one whose terms have two operands, by tiles; others as `reductions` has them."""
    assert isinstance(loops, GridLoops)
    if node in loops.deferred:
        return loops.deferred[node]()
    fold = _pair_fold(loops, node)
    tiled = None if fold is None else _add_tiles(loops, node, fold)
    return reductions.reduce(loops, node) if tiled is None else tiled


def _add_tiles(loops: GridLoops, node: Node, fold: PairFold) -> Sequence[Source] | None:
    """The phase of a node by tiles, now, or with what follows; None where tiles do not pay."""
    followers = _followers(loops, node)
    if followers.reduction is not None and _defer_reduction(loops, node, fold, followers.reduction):
        return ()
    tiles = PairTiles(loops, fold)
    if not tiles.pays(loops.target.min_product_terms):
        return None
    if followers.results and not loops.deferred_outputs:
        _defer_outputs(loops, node, tiles, followers.results)
        return ()
    results = loops.results_of(node)
    tiles.add_outputs([Output(each, _part(k)) for k, each in enumerate(results)])
    return sources_of(results)


def _part(number: int) -> Callable[[Index, Sequence[Value]], Value]:
    """The result of a number, of several that a fold has."""
    return lambda index, held: held[number]


# --- folds ---------------------------------------------------------------------------------------------------


def _sums_of_products(
    loops: GridLoops, node: Node, sides: tuple[Ints, Ints], terms: Ints, factors: Factors
) -> PairFold:
    """Sums of products, of which an operand each has a side of the result."""
    dtype, _ = types_of_sums(node)

    def factor(number: int) -> Factor:
        operand = node.operands[number]

        def locate(index: Index, term: Index) -> tuple[Value | None, Read]:
            *at, exists = factors(index, term)

            def read(predicate: Value | None) -> Value:
                return loops.convert(loops.at(operand, at[number], predicate), operand.dtype, dtype)

            return (None if number else exists), read

        return Factor(number, register_dtype(dtype), locate)

    def step(index: Index, term: Index, held: Sequence[Value], elements: Sequence[Value]) -> list[Value]:
        return [add_product(loops, dtype, *elements, *held)]

    return PairFold(
        node.shape,
        sides,
        terms,
        [factor(0), factor(1)],
        [dtype],
        [loops.values.constant(0, register_dtype(dtype))],
        step,
        lambda held: [finish_sum(loops, node, held[0])],
        ignores_zeros=True,
    )


def _pair_fold(loops: GridLoops, node: Node) -> PairFold | None:
    """A reduction whose terms are computed of rows and of columns; None of any other."""
    combiner = combination(node)
    shape, dimensions = combiner.arrays[0].shape, sorted(node.op.expect(ops.Reduce).dimensions)
    if combiner.in_order or not dimensions:
        return None
    remaining = [axis for axis in range(len(shape)) if axis not in dimensions]
    parts = _parts_of_pairs(combiner, remaining)
    if parts is None:
        return None
    sides, leaves = parts
    initial = [loops.at(each, ()) for each in node.operands[len(combiner.arrays) :]]

    def whole(index: Index, term: Index) -> Index:
        at = dict(zip((*remaining, *dimensions), (*index, *term), strict=True))
        return tuple(at[axis] for axis in range(len(shape)))

    def factor(leaf: Node, side: int) -> Factor:
        def locate(index: Index, term: Index) -> tuple[None, Read]:
            return None, lambda predicate: loops.at(leaf, whole(index, term), predicate)

        return Factor(side, register_dtype(leaf.dtype), locate)

    def step(index: Index, term: Index, held: Sequence[Value], elements: Sequence[Value]) -> Sequence[Value]:
        at = whole(index, term)
        with loops.elements_known(dict(zip(leaves, elements, strict=True))):
            return combiner.next(held, [loops.at(array, at) for array in combiner.arrays])

    axes = {axis: k for k, axis in enumerate(remaining)}
    return PairFold(
        tuple(shape[axis] for axis in remaining),
        (tuple(axes[axis] for axis in sides[0]), tuple(axes[axis] for axis in sides[1])),
        tuple(shape[axis] for axis in dimensions),
        [factor(leaf, side) for leaf, side in leaves.items()],
        combiner.held,
        combiner.starts(loops.values, initial),
        step,
        lambda held: combiner.finish(initial, held),
    )


def _parts_of_pairs(
    combiner: Combination, remaining: Sequence[int]
) -> tuple[tuple[Ints, Ints], dict[Node, int]] | None:
    """The axes of rows and of columns of what a reduction reads, and arrays that depend on one of them, with which."""
    varying = _VaryingAxes(combiner.arrays[0].shape)
    origins = [
        varying.axes_among(each, remaining) for array in combiner.arrays for each in varying.origins(array)
    ]
    own = [axes for axes in origins if axes]
    if not own:
        return None
    batch = frozenset.intersection(*own)
    columns: frozenset[int] = frozenset()
    # The columns are all axes along which something varies together with the last one.
    last = max((axis for axes in own for axis in axes - batch), default=None)
    if last is None:
        return None
    columns = frozenset([last])
    for _ in own:
        columns = columns.union(*(axes - batch for axes in own if axes & columns))
    rows = frozenset().union(*own) - batch - columns
    if not rows:
        return None
    leaves: dict[Node, int] = {}
    stack = list(combiner.arrays)
    while stack:
        node = stack.pop()
        axes = varying.axes_among(node, remaining) - batch
        if node in leaves or not varying.of(node):
            continue
        if axes <= columns or axes <= rows:
            leaves[node] = int(axes <= columns)
        else:
            stack += node.operands
    return (tuple(sorted(rows)), tuple(sorted(columns))), leaves


class _VaryingAxes:
    """Along which axes of a shape the elements of arrays vary of which those of an array are computed."""

    def __init__(self, shape: Ints) -> None:
        self.shape = shape
        self._known: dict[Node, frozenset[int]] = {}

    def axes_among(self, node: Node, axes: Sequence[int]) -> frozenset[int]:
        return self.of(node).intersection(axes)

    def of(self, root: Node) -> frozenset[int]:
        """The axes along which an array of the shape varies."""
        return compute_operands_first(root, self._known, self._operands, self._own)

    def _operands(self, node: Node) -> Sequence[Node]:
        """The arrays of the shape of which one is computed element by element."""
        is_computed = node.op.is_elementwise and all(each.shape == self.shape for each in node.operands)
        return node.operands if is_computed else ()

    def _own(self, node: Node) -> frozenset[int]:
        operands, op = self._operands(node), node.op
        if operands:
            return frozenset().union(*(self._known[each] for each in operands))
        if isinstance(op, ops.Constant):
            return frozenset()
        if isinstance(op, ops.Iota):
            return frozenset([op.dimension])
        if isinstance(op, ops.BroadcastInDim):
            rows = zip(op.broadcast_dimensions, node.operands[0].shape, strict=True)
            return frozenset(axis for axis, size in rows if size != 1)
        return frozenset(axis for axis, size in enumerate(self.shape) if size != 1)

    def origins(self, root: Node) -> list[Node]:
        """The arrays of the shape of which one is computed, which are not computed themselves."""
        return [each for each in reach([root], self._operands) if not self._operands(each)]


# --- what follows --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Followers:
    """All that uses what a node has element by element: one reduction, or all results of the graph, or neither."""

    reduction: Node | None = None
    results: Sequence[Node] = ()


def _followers(loops: GridLoops, node: Node) -> _Followers:
    if not isinstance(node.type, TensorType):
        return _Followers()
    reductions, members = set(), [node]
    for each in members:
        for user in loops.users.get(each, ()):
            if isinstance(user.op, ops.Reduce):
                reductions.add(user)
            elif not (user.op.is_elementwise and user.shape == node.shape):
                return _Followers()
            elif user not in members:
                members.append(user)
    results = loops.graph.results
    if not reductions:
        # A result that is none of them might be written over what they read.
        return _Followers(results=results) if results and set(results) <= set(members) else _Followers()
    is_one = len(reductions) == 1 and set(results).isdisjoint(members)
    return _Followers(reductions.pop()) if is_one else _Followers()


def _defer_reduction(loops: GridLoops, node: Node, fold: PairFold, user: Node) -> bool:
    """Let the rule of a reduction add the tiles of a fold that it reduces, if it goes along a side, and they pay."""
    combiner, dimensions = combination(user), set(user.op.expect(ops.Reduce).dimensions)
    if combiner.in_order or combiner.arrays[0].shape != node.shape or user in loops.deferred:
        return False
    for columns in (1, 0):
        side, others = set(fold.sides[columns]), set(fold.sides[1 - columns])
        if side <= dimensions and dimensions - side in (set(), others):
            tiles = PairTiles(loops, fold, columns)
            if tiles.pays(1):
                loops.deferred[user] = partial(_add_reduction, loops, node, tiles, user)
                return True
    return False


def _add_reduction(loops: GridLoops, node: Node, tiles: PairTiles, user: Node) -> Sequence[Source]:
    """The phases of tiles and of the reduction of what is computed of them element by element."""
    results, reduction = loops.results_of(user), reductions.SharedReduction(loops, user)

    def elements(index: Index, held: Sequence[Value], predicate: Value | None) -> Sequence[Value]:
        with loops.elements_known({node: held[0]}):
            return [loops.at(each, index, predicate) for each in reduction.combiner.arrays]

    loops.label = f"{node.op.called}, {loops.label}"
    ReducedTiles(tiles, reduction, elements).add_phases(results)
    return sources_of(results)


def _defer_outputs(loops: GridLoops, node: Node, tiles: PairTiles, results: Sequence[Node]) -> None:
    """Let the last of the graph's results add the tiles of which all are computed element by element."""
    outputs: list[Output] = []

    def add_output(result: Node, array: Scratch) -> None:
        def element(index: Index, held: Sequence[Value]) -> Value:
            with loops.elements_known({node: held[0]}):
                return loops.at(result, index)

        outputs.append(Output(array, element))
        if len(outputs) == len(results):
            loops.label = ", ".join(dict.fromkeys((node.op.called, loops.label)))
            tiles.add_outputs(outputs)

    loops.deferred_outputs.update({result: partial(add_output, result) for result in results})
